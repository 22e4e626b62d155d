"""The configuration of the last run, as commands without one of their own take it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from raydex.cluster.delta import commit_files, write_data_file
from raydex.cluster.lake import Lake
from raydex.configs.settings import Settings, load_settings
from raydex.ir.errors import ConfigError
from raydex.ir.rows import to_table
from raydex.jobs.last_settings import settings_of_last_run

START = datetime(2026, 1, 1, tzinfo=UTC)


def add_run(lake: Lake, hour: int, config: dict[str, Any], state: str = "complete") -> None:
    row = {"run_id": f"run_{hour}", "started_at": START + timedelta(hours=hour), "state": state, "config": orjson.dumps(config).decode()}
    file = write_data_file(lake.tables, "runs", to_table("runs", {key: [value] for key, value in row.items()}))
    commit_files(lake.tables, "runs", [file])


def config(path: Path, text: str) -> dict[str, Any]:
    path.write_text(text)
    return load_settings(path).model_dump(mode="json")


def test_the_newest_completed_run_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path / "lake")
    with pytest.raises(ConfigError, match="no run"):
        settings_of_last_run(lake)
    text = "workspace: plant\nembed: {model: other, base_url: 'http://x/v1'}\nstages: {embed: {gpus: 1}}\nlist: {include: ['*.md']}\n"
    add_run(lake, 2, config(tmp_path / "a.yaml", text))
    add_run(lake, 1, config(tmp_path / "b.yaml", "workspace: older\n"))
    add_run(lake, 3, config(tmp_path / "c.yaml", "workspace: wrong\n"), state="failed")
    expected = load_settings(tmp_path / "a.yaml")
    monkeypatch.setenv("RAYDEX_EMBED__MODEL", "none")
    assert settings_of_last_run(lake) == expected


def test_a_lake_whose_runs_all_failed_gives_the_last_of_them(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    add_run(lake, 1, config(tmp_path / "a.yaml", "workspace: first\n"), state="failed")
    add_run(lake, 2, config(tmp_path / "b.yaml", "workspace: second\n"), state="failed")
    assert settings_of_last_run(lake).workspace == "second"


def test_keys_of_other_releases_are_left_out_or_have_their_defaults(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    add_run(lake, 1, {"workspace": "plant", "gone": 1, "limits": {"pages": 7, "gone": 2}, "stages": {"parse": {"cpus": 0.25, "gone": 3}}})
    found = settings_of_last_run(lake)
    assert (found.workspace, found.limits.pages, found.stages.parse.cpus) == ("plant", 7, 0.25)
    assert (found.embed, found.run) == (Settings().embed, Settings().run)
    add_run(lake, 2, {"limits": {"pages": -1}})
    with pytest.raises(ConfigError, match="run_2"):
        settings_of_last_run(lake)
