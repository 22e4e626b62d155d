"""Fault points: silent by default; each action does to a process what its name says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raydex.cluster.faults import ACTIONS, EXIT_CODE, fault_point, parse_faults
from raydex.ir.errors import ConfigError

PASS = """
import sys
from raydex.cluster.faults import fault_point
for key in sys.argv[1:]:
    fault_point("stage.record", key)
    print("passed", key, flush=True)
"""


def run(spec: str, *keys: str, code: str = PASS, **environment: object) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "RAYDEX_FAULT": spec, **{key: str(value) for key, value in environment.items()}}
    return subprocess.run([sys.executable, "-c", code, *keys], env=env, capture_output=True, text=True, timeout=60)


def test_nothing_happens_unless_asked(monkeypatch):
    monkeypatch.delenv("RAYDEX_FAULT", raising=False)
    monkeypatch.delenv("RAYDEX_FAULT_LOG", raising=False)
    fault_point("stage.record", "a")
    monkeypatch.setenv("RAYDEX_FAULT", "other.point:raise")
    fault_point("stage.record", "a")


@pytest.mark.parametrize(
    ("action", "code"),
    [("kill", -signal.SIGKILL), ("exit", EXIT_CODE), ("raise", 1), ("segfault", -signal.SIGSEGV)],
)
def test_actions_end_the_process(action, code):
    done = run(f"stage.record:{action}:2", "a", "b", "c")
    assert done.returncode == code
    assert done.stdout.split() == ["passed", "a"]
    assert ("InjectedFault" in done.stderr) == (action == "raise")


def test_bloat_meets_the_memory_limit():
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
    done = run("stage.record:bloat", "a", code=limit + PASS)
    assert done.returncode == 1
    assert "MemoryError" in done.stderr
    assert "no limit struck" not in done.stderr


def test_hang_hangs_until_it_is_killed(tmp_path):
    env = {**os.environ, "RAYDEX_FAULT": "stage.record:hang", "RAYDEX_FAULT_LOG": str(tmp_path / "log")}
    process = subprocess.Popen([sys.executable, "-c", PASS, "a"], env=env, stdout=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1.5)
    process.kill()
    assert process.communicate()[0] == b""
    assert (tmp_path / "log").read_text().startswith("stage.record\t1\t")


def test_match_counts_only_hits_with_the_key():
    done = run("stage.record:exit:2:bad", "good", "bad1", "good", "bad2", "never")
    assert done.returncode == EXIT_CODE
    assert done.stdout.splitlines() == ["passed good", "passed bad1", "passed good"]


def test_every_hit_and_wild_points():
    code = PASS.replace("fault_point(", "\n    try: fault_point(").replace(", key)\n", ", key)\n    except RuntimeError: continue\n", 1)
    assert run("stage.*:raise:*:bad", "bad", "good", "bad", "bad", code=code).stdout.splitlines() == ["passed good"]
    assert run("stage.*:raise:1:bad", "bad", "good", "bad", code=code).stdout.splitlines() == ["passed good", "passed bad"]


def test_state_folder_lets_a_fault_fire_once_over_processes(tmp_path):
    state = tmp_path / "state"
    assert run("stage.record:kill", "a", RAYDEX_FAULT_STATE=state).returncode == -signal.SIGKILL
    second = run("stage.record:kill", "a", RAYDEX_FAULT_STATE=state)
    assert (second.returncode, second.stdout) == (0, "passed a\n")
    assert run("stage.record:kill:1:a", "a", RAYDEX_FAULT_STATE=state).returncode == -signal.SIGKILL  # another fault, another mark


def test_log_numbers_every_point(tmp_path):
    log = tmp_path / "log"
    assert run("", "a", "b\nc", RAYDEX_FAULT_LOG=log).returncode == 0
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    assert [(name, count, key) for name, count, _, key in lines] == [("stage.record", "1", "a"), ("stage.record", "2", "b c")]


def test_a_fork_counts_for_itself(tmp_path):
    code = """
import os
from raydex.cluster.faults import fault_point
fault_point("p")
if os.fork() == 0:
    fault_point("p")
    os._exit(7)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
fault_point("p")
"""
    assert run("p:exit:2", code=code).returncode == EXIT_CODE


def test_several_faults_and_points_with_colons():
    faults = parse_faults("delta.commit:blocks:before:kill:3:7:x, parse.record:raise ,")
    assert [(fault.point, fault.action, fault.hit, fault.match) for fault in faults] == [
        ("delta.commit:blocks:before", "kill", 3, "7:x"),
        ("parse.record", "raise", 1, ""),
    ]


@pytest.mark.parametrize("spec", ["stage.record", "kill", ":", "stage.record:burn"])
def test_a_bad_specification_is_refused(spec, monkeypatch):
    with pytest.raises(ConfigError, match="RAYDEX_FAULT"):
        parse_faults(spec)
    monkeypatch.setenv("RAYDEX_FAULT", spec)
    with pytest.raises(ConfigError):
        fault_point("stage.record")


@given(st.text("ab.:*", min_size=1).filter(lambda point: point.strip(":")), st.sampled_from(ACTIONS), st.integers(1, 9), st.text("ab:"))
def test_specifications_read_back(point, action, hit, match):
    (fault,) = parse_faults(f"{point}:{action}:{hit}:{match}")
    assert (fault.point, fault.action, fault.hit, fault.match) == (point, action, hit, match)


def test_state_marks_are_plain_names(tmp_path):
    run("stage.record:exit:1:../../x", "../../x", RAYDEX_FAULT_STATE=tmp_path / "state")
    assert [path.parent for path in tmp_path.rglob("*exit*")] == [Path(tmp_path / "state")]
