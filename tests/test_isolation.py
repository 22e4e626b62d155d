"""The parser child: a bad document costs itself (reliability P1-P4, L1; case b50); no child reaches the network or outlives its owner."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_cases import CASES, needs_cases

from raydex.cluster.netless import network_isolation
from raydex.ir.rows import Stamp, parse_tables
from raydex.jobs.isolation import ParseChild, ParseReply
from raydex.kernels.limits import Limits
from raydex.kernels.parse import PARSERS, parse
from raydex.kernels.request import ParseRequest

FIXTURES = Path(__file__).parent / "fixtures"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUICK = Limits(seconds=0.6)

Item = tuple[ParseRequest, Stamp]


def ask(number: int, data: str, limits: Limits | None = None, media_type: str = "text/plain", path: str = "") -> Item:
    request = ParseRequest(
        f"rec_{number}", f"hash{number}", path or f"d{number}.txt", media_type, data.encode(), limits=limits or Limits(seconds=30)
    )
    return request, Stamp(request.record_id, request.content_hash, "fp", "run", 1, NOW)


def text_of(reply: ParseReply) -> str:
    return str(reply.tables["blocks"]["text"][0].as_py())


def reject_of(reply: ParseReply) -> dict[str, object]:
    assert set(reply.tables) == {"rejects", "events"}
    (row,) = reply.tables["rejects"].to_pylist()
    return dict(row)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until_gone(pids: list[int], seconds: float = 20.0) -> list[int]:
    deadline = time.monotonic() + seconds
    while (left := [pid for pid in pids if is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


@pytest.fixture(scope="module", autouse=True)
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder for temporary files of every child here; it has to be empty in the end."""
    folder = tmp_path_factory.mktemp("children")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(FIXTURES), str(CASES / "b50-ray-dead-worker")]))
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        yield folder
    assert list(folder.iterdir()) == [], "temporary files are left"


@pytest.fixture(scope="module")
def child(work: Path) -> Iterator[ParseChild]:
    with ParseChild(target="hostile_parsers:parse") as one:
        yield one


def test_one_bad_document_costs_itself(child: ParseChild) -> None:
    words = {57: "signal 11", 58: "sleep", 59: "bloat"}
    replies = list(child.parse_many(ask(n, words.get(n, "ok"), QUICK if n == 58 else None) for n in range(100)))
    assert {n: reply.reject_class for n, reply in enumerate(replies) if reply.reject_class} == {57: "crash", 58: "timeout", 59: "memory"}
    assert [text_of(r) for n, r in enumerate(replies) if n not in words] == [f"text of rec_{n}" for n in range(100) if n not in words]
    for n in words:
        row = reject_of(replies[n])
        assert (row["class"], row["attempts"], row["record_id"], row["path"]) == (replies[n].reject_class, 2, f"rec_{n}", f"d{n}.txt")
        assert row["retryable"] is False


@needs_cases
def test_case_b50() -> None:
    with ParseChild(target="hostile_parsers:parse_case") as child:
        replies = list(child.parse_many(ask(n, "x", Limits(seconds=0.6 if n == 58 else 30)) for n in range(100)))
    good = {n: text_of(reply) for n, reply in enumerate(replies) if not reply.reject_class}
    assert good == {n: f"text of {n}" for n in range(100) if n not in (57, 58, 59)}
    assert [replies[n].reject_class for n in (57, 58, 59)] == ["crash", "timeout", "memory"]


@pytest.mark.parametrize(
    ("word", "reject_class", "message"),
    [
        ("signal 11", "crash", "died by SIGSEGV"),
        ("signal 9", "crash", "died by SIGKILL"),
        ("deep", "crash", "died by SIGSEGV"),
        ("exit 0", "crash", "ended with code 0"),
        ("exit 41", "crash", "ended with code 41"),
        ("sysexit", "crash", "ended with code 1"),
        ("garbage", "crash", "not understood"),
        ("oversize", "crash", "not understood"),
        ("arrow", "crash", "not understood"),
        ("close", "crash", "died by SIGKILL"),
        ("regex", "timeout", "no result within limits.seconds (0.6 s)"),
        ("sleep", "timeout", "no result within limits.seconds (0.6 s)"),
        ("bloat", "memory", "limits.memory_bytes (600000000)"),
        ("creep", "memory", "limits.memory_bytes (600000000)"),
        ("abort", "memory", "limits.memory_bytes (600000000)"),
    ],
)
def test_failures_are_told_apart(child: ParseChild, word: str, reject_class: str, message: str) -> None:
    limits = QUICK if reject_class == "timeout" else Limits(seconds=30, memory_bytes=600_000_000)
    before, bad, after = child.parse_many([ask(1, "ok"), ask(2, word, limits), ask(3, "ok")])
    row = reject_of(bad)
    assert (bad.reject_class, row["class"], row["attempts"]) == (reject_class, reject_class, 2)
    assert message in str(row["error"]) and "tried 2 times" in str(row["error"])
    assert (text_of(before), text_of(after)) == ("text of rec_1", "text of rec_3")


def test_an_error_of_ours_is_internal_and_quotes_no_text(child: ParseChild) -> None:
    bad, good = child.parse_many([ask(1, "raise canary"), ask(2, "ok")])
    row = reject_of(bad)
    assert (row["class"], row["attempts"], row["retryable"]) == ("internal", 1, True)
    assert re.search(r"KeyError at hostile_parsers\.py:\d+ in do_raise", str(row["error"]))
    assert "canary" not in str(bad.tables) and "canary" not in str(row)
    assert text_of(good) == "text of rec_2"


def test_output_is_bounded_and_kept_out_of_rows(child: ParseChild) -> None:
    flooded, bad = child.parse_many([ask(1, "flood"), ask(2, "exit 3")])
    assert text_of(flooded) == "flooded"
    assert "canary" not in str(reject_of(bad))
    assert child._nursery is not None and len(child._nursery.tail) <= 4096


def test_replies_equal_those_of_the_parser_itself() -> None:
    pages = [f'def f{n}(x):\n    """Doc {n}."""\n    if x:\n        return g{n}(x)\n    return x\n' for n in range(30)]
    items = [ask(n, page, media_type="text/x-python", path=f"p{n}.py") for n, page in enumerate(pages)]
    items += [ask(90, "\x00", media_type="application/x-nothing"), ask(91, "")]
    with ParseChild(documents=7) as child:
        replies = list(child.parse_many(items))
    for (request, stamp), reply in zip(items, replies, strict=True):
        expected = parse_tables(parse(request), stamp)
        assert reply.tables.keys() == expected.keys()
        for name, table in expected.items():
            hidden = [column for column in ("ms",) if column in table.column_names]
            assert reply.tables[name].drop_columns(hidden).equals(table.drop_columns(hidden)), name
            assert reply.tables[name].schema.equals(table.schema)
    assert replies[0].ms > 0 and replies[0].attempts == 1
    assert [replies[n].reject_class for n in (30, 31)] == ["", ""]  # the parser's own rejects, not the child's


def test_the_child_is_replaced_after_its_documents() -> None:
    with ParseChild(target="hostile_parsers:parse", documents=5) as child:
        pids = [text_of(reply) for reply in child.parse_many(ask(n, "pid") for n in range(20))]
    assert [len(set(pids[at : at + 5])) for at in (0, 5, 10, 15)] == [1, 1, 1, 1]
    assert len(set(pids)) == 4


@pytest.mark.parametrize(
    "word", ["chdir", "rmcwd", "environ", "thread", "umask", "recursion", "alarm", "locale", "process", "raise", "sysexit"]
)
def test_what_a_parser_leaves_behind_does_not_reach_the_next(child: ParseChild, word: str) -> None:
    first, _, second, state = child.parse_many([ask(1, "pid"), ask(2, word), ask(3, "pid"), ask(4, "state")])
    assert text_of(first) != text_of(second)
    assert text_of(state) == "None 1 [] True"


def test_processes_of_a_parser_are_killed_even_when_they_leave_its_group(child: ParseChild) -> None:
    started, orphan, _ = child.parse_many([ask(1, "process"), ask(2, "orphan"), ask(3, "environ")])
    pids = [int(text_of(started)), int(text_of(orphan))]
    assert wait_until_gone(pids) == []


def test_temporary_files_go_after_each_document(child: ParseChild, work: Path) -> None:
    made, state = child.parse_many([ask(1, "tmp"), ask(2, "state")])
    assert Path(text_of(made)).is_relative_to(work)
    assert text_of(state) == "None 1 [] True"
    assert [p for p in work.rglob("*") if p.is_file()] == []


def test_credentials_stay_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    monkeypatch.setenv("SOME_TOKEN", "canary")
    with ParseChild(target="hostile_parsers:parse") as child:
        replies = child.parse_many([ask(1, "variable AWS_SECRET_ACCESS_KEY"), ask(2, "variable SOME_TOKEN"), ask(3, "variable PATH")])
        assert [text_of(reply) for reply in replies] == ["None", "None", os.environ["PATH"]]


def test_large_documents_and_large_replies_cross_without_blocking(child: ParseChild) -> None:
    items = [ask(1, "size " + "x" * 30_000_000), ask(2, "large 30000000"), ask(3, "size " + "x" * 30_000_000), ask(4, "ok")]
    sizes = [len(text_of(reply)) if n == 1 else text_of(reply) for n, reply in enumerate(child.parse_many(items))]
    assert sizes == ["30000005", 30_000_000, "30000005", "text of rec_4"]


def test_a_consumer_may_stop_early_or_be_slow(child: ParseChild) -> None:
    stream = child.parse_many(ask(n, "ok", QUICK) for n in range(50))
    assert text_of(next(stream)) == "text of rec_0"
    stream.close()  # type: ignore[attr-defined]
    assert text_of(child.parse(*ask(7, "ok"))) == "text of rec_7"
    limits = Limits(seconds=2)
    slow = child.parse_many([ask(n, "large 3000000", limits) for n in range(3)])
    next(slow)
    time.sleep(limits.seconds + 0.2)  # the next reply lies half sent in the socket, past its limit
    assert [len(text_of(reply)) for reply in slow] == [3_000_000, 3_000_000]


def test_bytes_from_inside_a_file_come_apart_and_in_order() -> None:
    kept: list[bytes] = []

    def keep(data: bytes) -> str:
        kept.append(data)
        return f"kept {len(kept)}"

    with ParseChild(target="hostile_parsers:parse_members", keep=keep) as child:
        reply = child.parse(*ask(1, "x"))
    assert [block["text"] for block in reply.tables["blocks"].to_pylist()] == ["parent"]
    assert [(part.kind, part.step, part.name, part.uri, part.size, part.reject_class) for part in reply.parts] == [
        ("member", "part=1", "one", "kept 1", 5, ""),
        ("member", "part=2", "two", "kept 2", 0, "bomb"),
        ("asset", "", "", "kept 3", 6, ""),
    ]
    assert kept == [b"first", b"", b"pixels"] and reply.parts[2].asset_id == "ast_1"


def test_a_dead_nursery_is_replaced(child: ParseChild) -> None:
    for number in range(2):
        assert text_of(child.parse(*ask(number, "ok"))) == f"text of rec_{number}"
        assert child._nursery is not None
        os.kill(child._nursery.process.pid, signal.SIGKILL)
        child._nursery.process.wait()
    assert text_of(child.parse(*ask(2, "ok"))) == "text of rec_2"


def test_the_nursery_has_one_thread_after_loading_every_parser() -> None:
    with ParseChild() as child:
        list(child.parse_many(ask(n, "x", media_type=kind) for n, kind in enumerate(PARSERS)))
        child._drop()
        child.parse(*ask(99, "x"))
        assert child._nursery is not None
        status = Path(f"/proc/{child._nursery.process.pid}/status").read_text()
    assert re.search(r"^Threads:\s+1$", status, re.M)


OWNER = """
import sys
from test_isolation import ask, text_of
from raydex.jobs.isolation import ParseChild
child = ParseChild(target="hostile_parsers:parse")
pid = text_of(child.parse(*ask(1, "pid")))
print(child._nursery.process.pid, pid, flush=True)
child.parse(*ask(2, "sleep"))
"""


@pytest.mark.parametrize("victim", ["owner", "nursery"])
def test_everything_dies_with_its_owner(tmp_path: Path, victim: str) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(FIXTURES), str(Path(__file__).parent)]), "TMPDIR": str(tmp_path)}
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, env=env)
    assert owner.stdout is not None
    pids = [int(word) for word in owner.stdout.readline().split()]
    assert len(pids) == 2 and all(is_running(pid) for pid in pids)
    if victim == "owner":
        owner.kill()
    else:
        os.kill(pids[0], signal.SIGKILL)
    assert wait_until_gone(pids) == []
    owner.kill()
    owner.wait()
    owner.stdout.close()
    if victim == "owner":
        assert list(tmp_path.iterdir()) == []


def test_faults_are_injected_in_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYDEX_FAULT", "parse:segfault:*:poison.txt")
    with ParseChild(target="hostile_parsers:parse") as child:
        good, bad = child.parse_many([ask(1, "ok"), ask(2, "ok", path="a/poison.txt")])
    assert (good.reject_class, bad.reject_class) == ("", "crash")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    server = socket.create_server(("127.0.0.1", 0))
    server.setblocking(False)
    yield server
    server.close()


def accepted(server: socket.socket) -> int:
    count = 0
    while True:
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


def test_no_child_reaches_the_network(child: ParseChild, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    refused, raw = child.parse_many([ask(1, f"connect {port}"), ask(2, f"raw_connect {port}")])
    assert reject_of(refused)["class"] == "internal"
    assert child.network == network_isolation()
    arrived, connected = accepted(listener), text_of(raw) == "0"
    assert arrived == connected, "Python's own connect arrived"
    if child.network != "namespace":
        pytest.skip("this kernel grants no network namespace: the audit hook holds Python's calls, not those of foreign code")
    assert not connected


@pytest.mark.parametrize("namespace", [True, False])
def test_each_way_of_leaving_the_network_refuses(listener: socket.socket, namespace: bool) -> None:
    code = f"""
import socket
from raydex.cluster.netless import leave_network
ours, theirs = socket.socketpair()
print(leave_network(namespace={namespace}))
def attempt(call, *args):
    try:
        call(*args)
    except OSError as error:
        print(type(error).__name__)
    else:
        print("reached")
attempt(socket.create_connection, ("127.0.0.1", {listener.getsockname()[1]}))
attempt(socket.socket(socket.AF_UNIX).connect, "/nowhere")
attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto, b"x", ("127.0.0.1", 9))
attempt(socket.socket().bind, ("127.0.0.1", 0))
attempt(socket.getaddrinfo, "example.org", 80)
ours.send(b"still talking")
print(theirs.recv(100).decode())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    held, *refusals, last = done.stdout.splitlines()
    assert held == (network_isolation() if namespace else "audit hook")
    assert refusals == ["PermissionError"] * 5
    assert last == "still talking"
    assert accepted(listener) == 0


OUTCOMES = {"ok": "", "raise x": "internal", "exit 5": "crash", "garbage": "crash", "environ": "", "signal 6": "crash", "abort": "memory"}


@settings(max_examples=15, deadline=None)
@given(words=st.lists(st.sampled_from(sorted(OUTCOMES)), max_size=12))
def test_every_request_has_one_reply_in_order(child: ParseChild, words: list[str]) -> None:
    replies = list(child.parse_many(ask(n, word) for n, word in enumerate(words)))
    assert [reply.reject_class for reply in replies] == [OUTCOMES[word] for word in words]
    for n, reply in enumerate(replies):
        for table in reply.tables.values():
            assert set(table["record_id"].to_pylist()) == {f"rec_{n}"}
