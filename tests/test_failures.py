"""What ends a run early: its class, its exit code, its row in `runs`; and servers that are asked before the first stage."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import orjson
import pytest

from raydex.cluster.delta import read_delta
from raydex.configs.settings import load_settings
from raydex.ir.errors import CapacityError, ConfigError, InputError, RaydexError, StoreError
from raydex.jobs.cli import Stopped, run
from raydex.jobs.failures import UnforeseenError, as_failure
from raydex.jobs.index import IndexRequest, IndexRun, index


def runs_of(lake: Path) -> list[tuple[str, str]]:
    """(state, error) of each run."""
    rows = read_delta(lake / "tables", "runs", columns=["state", "summary"]).to_pylist()
    return [(row["state"], orjson.loads(row["summary"])["error"]) for row in rows]


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/lake/x"), CapacityError, "/lake/x: No space left on device. Free some"),
        (OSError(errno.EMFILE, "Too many open files"), CapacityError, "Too many open files"),
        (PermissionError(errno.EACCES, "Permission denied", "/lake"), StoreError, "/lake: Permission denied. See that"),
        (ConnectionError("refused"), StoreError, "refused"),
        (MemoryError(), CapacityError, "memory ran out"),
        (KeyError("x"), UnforeseenError, "KeyError: 'x'. Please report"),
        (ValueError(), UnforeseenError, "ValueError. Please report"),
    ],
)
def test_every_exception_has_a_class_and_a_remedy(error: Exception, kind: type[RaydexError], said: str) -> None:
    failure = as_failure(error)
    assert type(failure) is kind and failure.exit_code == 3
    assert said in str(failure) and failure.remedy


def test_our_own_errors_stay_as_they_are() -> None:
    error = ConfigError("wrong")
    assert as_failure(error) is error


@pytest.mark.parametrize(
    ("error", "code", "state"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 3, "failed"),
        (RuntimeError("odd"), 3, "failed"),
        (StoreError("gone"), 3, "failed"),
        (InputError("no listing", reject_class="unreadable"), 3, "failed"),
        (Stopped(15), 143, "interrupted"),
        (Stopped(2), 130, "interrupted"),
        (SystemExit(15), 143, "interrupted"),
        (ConfigError("wrong"), 2, None),
    ],
)
def test_an_early_end_has_its_exit_code_and_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, state: str | None
) -> None:
    def fail(self: IndexRun) -> dict[str, Any]:
        raise error

    monkeypatch.setattr(IndexRun, "run", fail)
    lake = tmp_path / "lake"
    assert run(["index", str(tmp_path), "--lake", str(lake), "-q"]) == code
    assert [name for name, _ in runs_of(lake)] == ([state] if state else [])
    said = capsys.readouterr().err
    assert said.splitlines()[-1].startswith("raydex: ")
    assert ("Traceback" in said) == isinstance(error, RuntimeError)


def test_a_wrong_configuration_that_shows_late_says_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(self: IndexRun) -> dict[str, Any]:
        self.writes = True
        raise ConfigError("no chat template", place="caption.model", remedy="Name another")

    monkeypatch.setattr(IndexRun, "run", fail)
    assert run(["index", str(tmp_path), "--lake", str(tmp_path / "lake"), "-q"]) == 2
    said = "caption.model: no chat template. Name another. What was committed is kept: run the same command again"
    assert said in capsys.readouterr().err and runs_of(tmp_path / "lake") == [("failed", said)]


def test_a_second_failure_does_not_hide_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import raydex.jobs.summary

    def fail(*_: object, **__: object) -> dict[str, Any]:
        raise StoreError("the first")

    def fail_too(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "the second")

    monkeypatch.setattr(IndexRun, "run", fail)
    monkeypatch.setattr(raydex.jobs.summary, "record_run", fail_too)
    said: list[str] = []
    with pytest.raises(StoreError, match="the first"):
        index(IndexRequest((str(tmp_path),), str(tmp_path / "lake"), load_settings(), say=said.append))
    assert "the second" in said[0]


@pytest.mark.parametrize("url", ["nonsense", "nosuchdialect://host/name", "mysql+nodriver://host/name", "postgresql+missing_driver://h/n"])
def test_a_registry_that_no_driver_takes_stops_before_anything_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr(IndexRun, "run", lambda self: pytest.fail("a stage was started"))
    monkeypatch.setenv("RAYDEX_STORES__REGISTRY", url)
    assert run(["index", str(tmp_path), "--lake", str(tmp_path / "lake"), "-q"]) == 2


def test_a_server_that_does_not_answer_stops_before_anything_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IndexRun, "run", lambda self: pytest.fail("a stage was started"))
    monkeypatch.setenv("RAYDEX_STORES__REGISTRY", f"sqlite:///{tmp_path}/no/such/folder/registry.db")
    assert run(["index", str(tmp_path), "--lake", str(tmp_path / "lake"), "-q"]) == 3
    assert runs_of(tmp_path / "lake")[0][0] == "failed"
