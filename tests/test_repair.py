"""Lakes that lost data files: what was in them is forgotten, named, and indexed again; nothing else is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_lake import add_epoch, context_of, settings_with, write_source

from raydex.cluster.delta import commit_files, drop_files, list_data_files, lost_files, read_delta, write_data_file
from raydex.cluster.lake import Generation, Lake, active_generation, check_tables, complete_generation, load_ledger, pin_versions
from raydex.ir.errors import StoreError
from raydex.ir.rows import to_table
from raydex.jobs.index import IndexRequest, index
from raydex.jobs.live import sweep, sweep_ledger
from raydex.jobs.plan import make_plan
from raydex.jobs.repair import make_whole
from raydex.jobs.sources import Source

FILES = {f"{name}.txt": f"text of {name}" for name in "abcdef"}
SETTINGS = settings_with(run={"project": False, "load_graph": False, "load_vectors": False})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Epochs 1 and 2 of plant, epoch 3 of wiki, in which one record of epoch 1 was chunked again."""
    lake = Lake(tmp_path / "lake")
    prints = context_of(lake, SETTINGS).fingerprints
    plant, wiki = sources(tmp_path)
    add_epoch(lake, 1, plant, ["a.txt", "b.txt"], prints)
    add_epoch(lake, 2, plant, ["c.txt", "d.txt"], prints)
    add_epoch(lake, 3, wiki, ["e.txt"], prints)
    add_epoch(lake, 4, plant, ["b.txt"], prints, only=("chunks", "embeddings", "records"))
    sweep_ledger(lake, set())
    sweep(lake, load_ledger(lake))
    complete_generation(lake, Generation(1, pin_versions(lake), "run_0", 4, fingerprints=prints))
    return lake


def sources(folder: Path) -> tuple[Source, Source]:
    return write_source(folder / "plant", FILES), write_source(folder / "wiki", FILES)


def lose(lake: Lake, name: str, epoch: int | None = None, *, cut: bool = False) -> None:
    """Removes the data files of an epoch, or of all, or cuts them."""
    files = [file for file in list_data_files(lake.tables, name) if epoch is None or file.bounds("epoch") == (epoch, epoch)]
    assert files
    for file in files:
        path = lake.tables / name / file.path
        path.write_bytes(path.read_bytes()[:-1]) if cut else path.unlink()


def rejected(lake: Lake) -> set[str]:
    rows = load_ledger(lake).to_pylist()
    assert all(row["fingerprints"] == [] for row in rows if row["reject_class"] == "store")
    return {f"{row['source_name']}/{row['path']}" for row in rows if (row["state"], row["reject_class"]) == ("rejected", "store")}


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(
    ("name", "epoch", "expected"),
    [
        ("documents", 1, {"plant/a.txt", "plant/b.txt"}),
        ("documents", 2, {"plant/c.txt", "plant/d.txt"}),
        ("chunks", 1, {"plant/a.txt"}),
        ("chunks", 4, {"plant/b.txt"}),
        ("embeddings", 3, {"wiki/e.txt"}),
    ],
)
def test_records_of_a_lost_file_are_planned_anew(lake: Lake, tmp_path: Path, name: str, epoch: int, expected: set[str], cut: bool) -> None:
    lose(lake, name, epoch, cut=cut)
    with pytest.raises(StoreError, match="run `raydex index` on all sources"):
        check_tables(lake)
    said: list[str] = []
    assert make_whole(lake, "run_1", said.append)
    assert rejected(lake) == expected
    assert lake.dirty() == "run_1"
    assert lost_files(lake.tables, name) == []
    assert any(f"Table {name} lost 1 data files" in text for text in said)
    assert any("To be indexed again" in text for text in said)
    plan = make_plan(lake, list(sources(tmp_path)), load_ledger(lake), SETTINGS, context_of(lake, SETTINGS).fingerprints)
    again = {f"{row['source_name']}/{row['path']}" for row in plan.work.to_pylist() if row["start"] == "parse" and row["path"] != "f.txt"}
    assert expected <= again
    sweep(lake, load_ledger(lake))
    left = {row["path"] for row in read_delta(lake.tables, "chunks", columns=["title"]).rename_columns(["path"]).to_pylist()}
    assert left == {"a.txt", "b.txt", "c.txt", "d.txt", "e.txt"} - {path.split("/")[1] for path in expected}
    assert not make_whole(lake, "run_2", said.append)


def test_a_lake_that_lost_nothing_stays_as_it_is(lake: Lake) -> None:
    versions = pin_versions(lake)
    assert not make_whole(lake, "run_1", print)
    assert (pin_versions(lake), lake.dirty(), rejected(lake)) == (versions, None, set())


def test_a_lost_part_of_the_ledger_forgets_its_records(lake: Lake, tmp_path: Path) -> None:
    lose(lake, "records", 2)
    assert make_whole(lake, "run_1", lambda text: None)
    assert rejected(lake) == set()
    assert {row["path"] for row in load_ledger(lake).to_pylist()} == {"a.txt", "b.txt", "e.txt"}
    plan = make_plan(lake, [sources(tmp_path)[0]], load_ledger(lake), SETTINGS, context_of(lake, SETTINGS).fingerprints)
    assert plan.counts["new"] == 4


def test_lost_projections_logs_and_generations_cost_no_record(lake: Lake) -> None:
    for name, key in (("edges", "edge_id"), ("events", "event_id"), ("runs", "run_id")):
        commit_files(lake.tables, name, [write_data_file(lake.tables, name, to_table(name, {key: ["x"], "epoch": [1]}))])
        lose(lake, name)
    lose(lake, "generations")
    assert make_whole(lake, "run_1", lambda text: None)
    assert rejected(lake) == set()
    assert active_generation(lake) is None
    assert all(read_delta(lake.tables, name).num_rows == 0 for name in ("edges", "events", "runs", "generations"))


def test_a_repair_that_is_killed_is_done_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lose(lake, "chunks", 4)
    lose(lake, "documents", 2)

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("raydex.jobs.repair.drop_files", killed)
        make_whole(lake, "run_1", lambda text: None)
    assert rejected(lake) == {"plant/b.txt", "plant/c.txt", "plant/d.txt"}
    assert make_whole(lake, "run_2", lambda text: None)
    assert rejected(lake) == {"plant/b.txt", "plant/c.txt", "plant/d.txt"}


def test_what_cannot_be_repaired_is_still_an_error(lake: Lake) -> None:
    log = sorted((lake.tables / "chunks" / "_delta_log").glob("*.json"))[-1]
    log.write_bytes(log.read_bytes()[:40])
    with pytest.raises(StoreError, match="is torn"):
        make_whole(lake, "run_1", print)
    assert lake.dirty() is None


def test_a_run_goes_on_after_a_repair(lake: Lake, tmp_path: Path) -> None:
    """Lost rows of a source that the run is not about: it ends, and the record waits as a reject."""
    lose(lake, "embeddings", 3)
    plant = tmp_path / "plant"
    for name in ("e.txt", "f.txt"):
        (plant / name).unlink()
    said: list[str] = []
    index(IndexRequest(specs=(str(plant),), lake=str(lake.root), settings=SETTINGS, progress=False, say=said.append))
    assert rejected(lake) == {"wiki/e.txt"}
    generation = active_generation(lake)
    assert generation is not None
    assert (generation.number, lake.dirty()) == (2, None)
    assert read_delta(lake.tables, "documents").num_rows == 4


def test_dropping_files_reads_none(lake: Lake) -> None:
    files = list_data_files(lake.tables, "chunks")
    (lake.tables / "chunks" / files[0].path).unlink()
    drop_files(lake.tables, "chunks", files[:1])
    assert {file.path for file in list_data_files(lake.tables, "chunks")} == {file.path for file in files[1:]}
    check_tables(lake)
