"""`raydex doctor`: every check ends in a finding under its own name, stores are really opened, -c decides what is asked."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import raydex.jobs.doctor as doctor
from raydex.cluster.netless import network_isolation
from raydex.configs.settings import load_settings
from raydex.ir.errors import StoreError
from raydex.jobs.cli import run

NAMES = ["python", "java", "spark jars", "embedding model", "ocr", "captions", "gpus", "objects", "vector store", "graph store", "registry"]
NAMES += ["parser isolation", "memory", "git"]


def findings(**sections: dict[str, Any]) -> dict[str, dict[str, str]]:
    result = doctor.examine(load_settings(None, sections))
    return {item["name"]: item for item in result["findings"]}


def test_everything_is_tried_and_in_order_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [item["name"] for item in result["findings"]] == NAMES and result["ok"]
    assert all(item["state"] in ("ok", "note") and item["detail"] for item in result["findings"])
    assert run(["doctor"]) == 0
    assert "Everything that is needed is there." in capsys.readouterr().out


def test_a_configuration_that_cannot_work_is_said_with_remedies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "stores: {registry: 'nosuch://host/db', vectors: 'http://127.0.0.1:9'}\n"
        "embed: {model: /nowhere/at/all}\nstages: {embed: {gpus: 1}}\nobjects: {uri: 'nonsense://bucket'}\n"
        "ocr: {engine: nosuch}\ncaption: {base_url: 'http://127.0.0.1:9'}\n"
    )
    assert run(["doctor", "-c", str(path), "--json"]) == 3
    result = json.loads(capsys.readouterr().out)
    found = {item["name"]: item for item in result["findings"]}
    for name in ("registry", "vector store", "embedding model", "ocr", "captions", "gpus", "objects"):
        assert found[name]["state"] == "missing" and found[name]["detail"] and found[name]["remedy"], found[name]
    assert not result["ok"] and [item["name"] for item in result["findings"]] == NAMES


def test_a_check_that_fails_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import raydex.cluster.graph_store
    import raydex.cluster.spark

    def fail(*_: object, **__: object) -> None:
        raise StoreError("broken", place="there", remedy="mend it")

    def odd(*_: object, **__: object) -> None:
        raise RuntimeError("odd")

    monkeypatch.setattr(raydex.cluster.spark, "jars_ready", fail)
    monkeypatch.setattr(raydex.cluster.graph_store, "build_graph", odd)
    found = findings(embed={"model": "none"})
    assert found["spark jars"] == {"name": "spark jars", "state": "missing", "detail": "there: broken", "remedy": "mend it"}
    assert found["graph store"]["state"] == "missing" and "RuntimeError: odd" in found["graph store"]["detail"]
    assert found["embedding model"]["state"] == "note"


@pytest.mark.parametrize("error", [subprocess.TimeoutExpired(["x"], 1), subprocess.CalledProcessError(1, ["x"]), FileNotFoundError("x")])
def test_a_process_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    network_isolation.cache_clear()
    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(StoreError, match="could not be tried"):
        network_isolation()
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/usr/bin/{name}")
    found = findings(embed={"model": "none"}, objects={"keep_originals": False})
    assert found["parser isolation"]["state"] == found["gpus"]["state"] == "missing"
