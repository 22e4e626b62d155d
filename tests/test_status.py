"""`raydex status` beside a run and after one: a run at work, one that was killed, and what is kept of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from small_lake import add_epoch, context_of, settings_with, write_source

from raydex.cluster.lake import Lake
from raydex.jobs.cli import run
from raydex.jobs.index import IndexRequest, index
from raydex.jobs.status import lake_status

STAGES = {"parse": {"done": 1, "total": 4, "queued": 3, "rejects": 0}}
NO_ENGINES: dict[str, Any] = {"run": {"project": False, "load_graph": False}, "embed": {"model": "none"}}


def leave_behind(lake: Lake, run_id: str, **about: Any) -> None:
    """What a run leaves that was killed while its stages were at work."""
    with lake.lock(run_id):
        held = json.loads((lake.root / "writer.lock").read_bytes())
    (lake.root / "writer.lock").write_text(json.dumps({**held, "pid": 2**30, **about}))
    lake.mark_dirty(run_id)
    lake.write_progress(STAGES)


def said(lake: Lake, capsys: pytest.CaptureFixture[str], *command: str) -> str:
    assert run([*(command or ("status",)), "--lake", str(lake.root)]) == 0
    return capsys.readouterr().out


def test_a_run_at_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(tmp_path / "lake")
    lake.mark_dirty("run_1")
    with lake.lock("run_1"):
        status = lake_status(lake.root)
        assert status["at_work"] and status["unfinished_run"] is None and status["running"] == {}
        assert f"run run_1 (process {os.getpid()} on" in said(lake, capsys)
        lake.write_progress(STAGES)
        assert lake_status(lake.root)["running"] == STAGES
        text = said(lake, capsys)
        assert "is at work" in text and "without finishing" not in text


def test_a_killed_run_is_not_at_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = settings_with()
    source = write_source(tmp_path / "docs", {"a.txt": "a", "b.txt": "b"})
    lake = Lake(tmp_path / "lake")
    leave_behind(lake, "run_1")
    status = lake_status(lake.root)
    assert not status["at_work"] and status["running"] == {} and status["unfinished_run"] == "run_1"
    assert "it had committed nothing, so that it starts anew; there is no generation yet" in said(lake, capsys)
    add_epoch(lake, 1, source, ["a.txt", "b.txt"], context_of(lake, settings).fingerprints)
    text = said(lake, capsys)
    assert "run run_1 (process" in text and "at work" not in text
    assert "stopped without finishing; run `raydex index` again: 2 records that it committed are kept" in text


def test_a_run_on_another_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(tmp_path / "lake")
    leave_behind(lake, "run_1", host="far.example")
    assert lake_status(lake.root)["at_work"], "it told of its progress a moment ago"
    (lake.staging / "progress.json").write_text(json.dumps({"at": "2026-01-01T00:00:00+00:00", "stages": STAGES}))
    assert not lake_status(lake.root)["at_work"]
    assert "can be asked on far.example alone" in said(lake, capsys)


def test_the_next_run_says_what_is_kept(tmp_path: Path) -> None:
    settings = settings_with(**NO_ENGINES)
    source = write_source(tmp_path / "docs", {"a.txt": "", "b.txt": ""})
    lake = Lake(tmp_path / "lake")
    lines: list[str] = []

    def go_on() -> str:
        lines.clear()
        index(IndexRequest(specs=(source.root,), lake=str(lake.root), settings=settings, progress=False, say=lines.append))
        (line,) = (line for line in lines if "did not finish" in line)
        return line

    prints = context_of(lake, settings).fingerprints
    add_epoch(lake, 1, source, ["a.txt", "b.txt"], prints)
    leave_behind(lake, "run_1")
    assert "2 records that it committed are kept; 0 rows that it had not acknowledged are removed" in go_on()
    lake.mark_dirty("run_2")
    assert "it had committed nothing, so that it starts anew; generation 1 stays" in go_on()
