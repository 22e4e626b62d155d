"""What the benchmarks say at their end: reached, or missed with a reason; every one of them gives a verdict. What they share works, and the
script for GPU machines runs on a CPU."""

from __future__ import annotations

import importlib
import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from document_files import parse_bytes

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    monkeypatch.setenv("BENCH_VERDICTS", str(tmp_path / "verdicts"))
    return runpy.run_path(str(BENCHMARKS / "verdict.py"))


def test_a_verdict_is_printed_and_kept_for_the_table(module: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    module["verdict"]("a", 0.5, 0.5, "never said")
    module["verdict"]("bb", 1.26, 1.2, "it waits", at_most=True)
    module["verdict"]("c", 0.4, 0.5)
    module["verdict"]("d", 12_345.6, None)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "verdict: a: 0.5 (reach at least 0.5) reached",
        "verdict: bb: 1.26 (reach at most 1.2) missed: it waits",
        "verdict: c: 0.4 (reach at least 0.5) missed: the cause is not known",
        "verdict: d: 12,346, no number to reach",
    ]
    module["main"]()
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        line.removeprefix("verdict: ").replace(":", "", 1).split() for line in lines
    ]


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("bench_*.py")), ids=lambda path: path.stem)
def test_every_benchmark_gives_a_verdict(path: Path) -> None:
    assert "    verdict(" in path.read_text(encoding="utf-8")


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the benchmarks by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.syspath_prepend(str(BENCHMARKS / "gpu"))
    before = set(sys.modules)

    def module_of(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield module_of
    for name in set(sys.modules) - before:
        if (path := getattr(sys.modules[name], "__file__", None)) and BENCHMARKS in Path(path).parents:
            del sys.modules[name]


def test_contestants_take_turns_and_a_refused_file_is_left_out(load: Any, capsys: pytest.CaptureFixture[str]) -> None:
    contest = load("contest")
    seen: list[tuple[str, str]] = []

    def run(who: str) -> Any:
        def read(name: str, data: bytes) -> bool:
            seen.append((who, name))
            return data != b"refused"

        return read

    kept = contest.contest({"a.md": b"# x", "b.md": b"refused"}, 2, {"ours": (run("ours"), 2), "peer": (run("peer"), 1)})
    assert [who for who, name in seen if name == "a.md"] == ["ours", "peer", "ours", "peer", "ours"]
    assert list(kept) == ["a.md"] and set(contest.totals(kept)) == {"ours", "peer"}
    assert "b.md: ours refuses it" in capsys.readouterr().out
    assert contest.parse_ours("a.md", b"# x") and not contest.parse_ours("a.md", b"")


def test_generated_files_are_read_whole(load: Any) -> None:
    made = load("office_files")
    files = {
        "a.docx": (made.make_docx(3), "Section 2"),
        "a.pptx": (made.make_pptx(2), "Slide 1"),
        "a.xlsx": (made.make_xlsx(2, 5), "item 4 4"),
        "a.odt": (made.make_odt(3), "Section 2"),
        "a.odp": (made.make_odp(2), "Slide 1"),
        "a.ods": (made.make_ods(2, 5), "1.4.11"),
        "a.eml": (load("bench_mail").make_mail(2), "Engineer"),
        "OPS-3.json": (load("bench_tickets").make_issue(3), "Goal"),
    }
    detect = load("contest").detect_media_type
    for name, (data, text) in files.items():
        parsed = parse_bytes(data, detect(data[:8192], name), path=name)
        assert not parsed.rejects and any(text in block.text for block in parsed.blocks), name
    issue = files["OPS-3.json"][0]
    assert 9_500 < len(issue) < 11_500
    parsed = parse_bytes(issue, "application/json", path="OPS-3.json")
    assert parsed.issue is not None
    assert (len(parsed.issue.comments), len(parsed.issue.changelog), len(parsed.issue.worklogs), len(parsed.issue.remote_links)) == (
        3,
        5,
        1,
        1,
    )


def test_similarity_counts_order_and_words(load: Any) -> None:
    similarity = load("similarity")
    assert similarity.compare("One two, **three**", "One two three") == similarity.Score(1.0, 1.0)
    assert similarity.compare("b a", "a b") == similarity.Score(0.5, 1.0)
    assert similarity.compare("a b c d", "b d", whole=False) == similarity.Score(1.0, 1.0)
    assert similarity.compare("", "") == similarity.Score(1.0, 1.0)
    assert similarity.compare("a", "") == similarity.Score(0.0, 0.0)


def test_similarity_over_a_folder(load: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in {
        "csv/t.csv": "name,age\nAda,36\n",
        "md/a.md": "# Title\n\n1. an [item](https://example.org)\n",
        "email/m.eml": "From: a@example.org\nSubject: Pump\n\nIt stalls.\n",
        "truth/md/a.md.md": "# Title\n\n1. an [item](https://example.org/x)\n\nlost\n",
        "truth/facts.json": json.dumps(
            {
                "docs/csv/t.csv": {"rows": [["name", "age"], ["Ada", "36"]]},
                "docs/email/m.eml": {"subject": "Pump", "body_plain": "It stalls.", "attachments": []},
            }
        ),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    similarity = load("similarity")
    rows = similarity.measure(tmp_path, None)
    assert [(row.truth.path, row.truth.kind, row.ours.order) for row in rows] == [
        ("csv/t.csv", "whole", 1.0),
        ("email/m.eml", "facts", 1.0),
        ("md/a.md", "accepted", pytest.approx(6 / 7)),
    ]
    similarity.report(rows)
    out = capsys.readouterr().out
    assert "| md | accepted | 1 | 0.857 | 0.857 | - | - |" in out
    assert [line.split()[0] for line in out.splitlines() if line.startswith("  ")] == ["md/a.md"]


def test_stages_work_at_once_and_an_error_ends_them(load: Any) -> None:
    flow = load("flow")

    def fail(batch: list[int]) -> list[int]:
        if 5 in batch:
            raise ValueError("batch of 5")
        return batch

    done = flow.run_flow("source", [[at] for at in range(40)], [("double", lambda batch: batch * 2), ("keep", list)], len)
    assert done.done == 80 and set(done.busy) == {"source", "double", "keep"}
    with pytest.raises(ValueError, match="batch of 5"):
        flow.run_flow("source", [[at] for at in range(40)], [("fail", fail), ("keep", list)], len)
    assert list(flow.gather("aabababb", 2, str)) == [["a", "a"], ["b", "b"], ["a", "a"], ["b", "b"]]
    assert list(flow.gather("aba", 2, str)) == [["a", "a"], ["b"]]


@pytest.mark.slow
def test_the_script_for_gpu_machines_runs_on_a_cpu() -> None:
    size = ("--items", "10", "--lines", "3", "--threads", "2", "--seconds", "2400")
    command = [sys.executable, str(BENCHMARKS / "gpu"), "--device", "cpu", *size]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=900).stdout
    said = {line.split()[0]: line for line in out.splitlines() if line.split()[1:2] == ["cpu"]}
    assert list(said) == ["pages", "ocr", "embed", "caption"], out
    for name, unit, count in (("pages", "pages", 10), ("ocr", "images", 10), ("embed", "rows", 100)):
        assert f"{unit}/s over {count};" in said[name] and "busy: " in said[name]
    assert "not measured: no --caption-model" in said["caption"]
