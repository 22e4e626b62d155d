"""What the benchmarks say at their end: reached, or missed with a reason; every one of them gives a verdict."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

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
