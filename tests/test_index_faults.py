"""Faults of the whole job, each in a process of its own: killed drivers, hostile files, bad input, two runs at once, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from raydex.cluster.delta import read_delta
from raydex.cluster.lake import Lake
from raydex.jobs.digest import differing_tables
from raydex.jobs.verify import verify
from tests.corpus import FILES, write_corpus

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]


def start(corpus: Path, lake: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "raydex.jobs.cli", "index", str(corpus), "--lake", str(lake), "--json", *arguments]
    settings = {"RAYDEX_RUN__EPOCH_RECORDS": "4", "RAYDEX_LIMITS__SECONDS": "4", "RAYDEX_LIMITS__MEMORY_BYTES": "1200000000"}
    return subprocess.Popen(
        command, env={**os.environ, **settings, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )


def finish(process: subprocess.Popen[str], code: int) -> dict[str, Any]:
    out, err = process.communicate(timeout=400)
    assert process.returncode == code, err[-3000:]
    return json.loads(out.splitlines()[-1]) if out.strip() else {"error": err}


def run(corpus: Path, lake: Path, code: int = 0, *arguments: str, **environment: str) -> dict[str, Any]:
    return finish(start(corpus, lake, *arguments, **environment), code)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("whole")
    corpus = write_corpus(folder / "plant")
    run(corpus, folder / "lake")
    return {"corpus": corpus, "lake": folder / "lake"}


# the whole list is swept by scripts/faultsweep; these stand for data that nothing acknowledged, for the generation, and for the process
# that projects
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("epoch.acknowledge:before:kill:3", -signal.SIGKILL),
        ("delta.commit:nodes:after:kill:1", 3),
        ("generation.complete:before:kill:1", -signal.SIGKILL),
    ],
)
def test_a_killed_run_and_a_rerun_make_the_same_tables(whole: dict[str, Any], tmp_path: Path, fault: str, code: int) -> None:
    lake = tmp_path / "lake"
    run(whole["corpus"], lake, code, RAYDEX_FAULT=fault)
    run(whole["corpus"], lake)
    assert differing_tables(lake, whole["lake"]) == []
    assert verify(lake)["ok"]


def test_hostile_files_cost_themselves(whole: dict[str, Any], tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "plant")
    for name in ("crash", "hang", "bloat"):
        (corpus / f"{name}.txt").write_text(f"A file that makes the parser {name}.\n")
    faults = "parse:segfault:*:crash.txt,parse:hang:*:hang.txt,parse:bloat:*:bloat.txt"
    lake = tmp_path / "lake"
    summary = run(corpus, lake, 1, RAYDEX_FAULT=faults)
    assert summary["rejects"] == {"crash": 1, "memory": 1, "timeout": 1, "unsupported_media_type": 2}
    assert summary["records"]["seen"] == len(FILES) + 4
    assert summary["records"]["indexed"] == len(FILES) + 1 - 3
    rows = {row["path"]: row for row in read_delta(Lake.open(lake).tables, "rejects").to_pylist()}
    assert {rows[f"{name}.txt"]["attempts"] for name in ("crash", "hang", "bloat")} == {2}
    assert verify(lake)["ok"]
    again = run(corpus, lake, 0, RAYDEX_FAULT=faults)
    assert all(figures["rows_in"] == 0 for name, figures in again["stages"].items() if name != "list")


def test_bad_input_is_named_and_the_run_goes_on(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "plant")
    (corpus / "empty.md").write_bytes(b"")
    (corpus / "binary.md").write_bytes(bytes(range(256)) * 40)
    (corpus / "bad-utf8.txt").write_bytes("Grün ist die Pumpe. ".encode() * 50 + b"\xff\xfe broken \x80\n" + "Und läuft.\n".encode())
    (corpus / "no-pages.pdf").write_bytes(_pdf_without_pages())
    (corpus / "locked.pdf").write_bytes(_encrypted_pdf(tmp_path))
    (corpus / "long-line.txt").write_bytes(b"word " * 10_000_000)  # at limits.text_bytes
    (corpus / "longer-line.txt").write_bytes(b"word " * 10_000_001)
    (corpus / "odd\nname.txt").write_text("A name with a line break.\n")
    os.symlink("..", corpus / "loop")
    os.symlink("/nowhere", corpus / "dangling.txt")
    os.mkfifo(corpus / "pipe.txt")
    lake = tmp_path / "lake"
    summary = run(corpus, lake, 1, RAYDEX_LIMITS__SECONDS="120", RAYDEX_EMBED__MODEL="none")
    records = {row["path"]: row for row in read_delta(Lake.open(lake).tables, "records").to_pylist()}
    classes = {path: row["reject_class"] for path, row in records.items() if row["state"] == "rejected"}
    assert classes["empty.md"] == "empty"
    assert classes["binary.md"] == "unsupported_media_type"
    assert classes["no-pages.pdf"] == "no_pages"
    assert classes["locked.pdf"] == "encrypted"
    assert records["bad-utf8.txt"]["state"] == "degraded"
    assert records["long-line.txt"]["state"] == "indexed"
    assert classes["longer-line.txt"] == "text_too_long"
    assert records["odd\nname.txt"]["state"] == "indexed"
    for odd, wanted in (("loop", "refused"), ("dangling.txt", "refused"), ("pipe.txt", "unsupported_media_type")):
        assert classes[odd] == wanted, odd
        assert records[odd]["error"]
    counts = summary["records"]
    assert counts["seen"] == counts["indexed"] + counts["degraded"] + counts["rejected"] == len(records)
    result = verify(lake)
    assert result["ok"], [check for check in result["checks"] if not check["ok"]]


def test_a_missing_path_and_a_wrong_key_are_usage_errors(tmp_path: Path) -> None:
    said = run(tmp_path / "nowhere", tmp_path / "lake", 2)["error"]
    assert "nowhere" in said
    config = tmp_path / "run.yaml"
    config.write_text("chunk: {max_tokns: 5}\n")
    write_corpus(tmp_path / "plant")
    said = run(tmp_path / "plant", tmp_path / "lake", 2, "-c", str(config))["error"]
    assert "did you mean chunk.max_tokens" in said


def test_the_second_run_is_refused_and_a_signal_leaves_a_lake_that_goes_on(whole: dict[str, Any], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    first = start(whole["corpus"], lake)
    wait_for(lake / "DIRTY", first)
    said = run(whole["corpus"], lake, 3)["error"]
    assert "another run writes to the lake" in said
    assert str(first.pid) in said
    first.send_signal(signal.SIGTERM)
    finish(first, 143)
    second = start(whole["corpus"], lake)
    wait_for(lake / "staging" / "projection", second)  # after Ray, which handles signals in its own way
    second.send_signal(signal.SIGTERM)
    finish(second, 143)
    assert {row["state"] for row in read_delta(Lake.open(lake).tables, "runs").to_pylist()} == {"interrupted"}
    run(whole["corpus"], lake)
    assert differing_tables(lake, whole["lake"]) == []


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)


def _pdf_without_pages() -> bytes:
    parts = [b"%PDF-1.4\n", b"1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n", b"2 0 obj\n<</Type/Pages/Kids[]/Count 0>>\nendobj\n"]
    at = [len(parts[0]), len(parts[0]) + len(parts[1])]
    start_xref = sum(map(len, parts))
    xref = b"xref\n0 3\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in at)
    return b"".join(parts) + xref + b"trailer\n<</Size 3/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % start_xref


def _encrypted_pdf(folder: Path) -> bytes:
    from pypdf import PdfReader, PdfWriter

    from tests.corpus import write_pdf

    write_pdf(folder / "plain.pdf", ["Secret"], 1)
    writer = PdfWriter()
    writer.append(PdfReader(folder / "plain.pdf"))
    writer.encrypt("owner-and-user")
    with open(folder / "locked.pdf", "wb") as file:
        writer.write(file)
    return (folder / "locked.pdf").read_bytes()
