"""Runs that find no work for a stage, on small lakes: what makes a new generation, what only renews it, what leaves it alone."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from small_lake import DIMENSION, add_epoch, context_of, settings_with, write_source

from raydex.cluster.delta import commit_files, list_data_files, write_data_file
from raydex.cluster.lake import (
    Generation,
    Lake,
    active_generation,
    complete_generation,
    load_ledger,
    pin_versions,
    read_pinned,
    source_manifest,
)
from raydex.cluster.store_lock import StoreLock
from raydex.cluster.vectors import VectorStore
from raydex.configs.settings import Settings
from raydex.ir.errors import ConfigError, StoreError
from raydex.ir.ids import content_hash
from raydex.ir.rows import to_table
from raydex.jobs.documents import list_documents
from raydex.jobs.edges import list_edges
from raydex.jobs.index import IndexRequest, index
from raydex.jobs.load import VECTORS, vector_rows
from raydex.jobs.one_model import check_one_model
from raydex.jobs.reading import open_reader
from raydex.jobs.search import search
from raydex.jobs.sources import Source
from raydex.jobs.standing import held_projection
from raydex.jobs.trim import trim_tables
from raydex.jobs.verify import verify

FILES = {f"{name}.txt": f"text of {name}" for name in "abcd"}


class Plant:
    """A folder, and a lake whose ledger knows it as it is."""

    def __init__(self, folder: Path, settings: Settings, name: str = "plant", **changes: Any) -> None:
        self.folder = folder
        self.settings = settings
        self.lake = Lake(folder / "lake")
        self.source: Source = write_source(folder / name, FILES)
        self.said: list[str] = []
        prints = context_of(self.lake, settings).fingerprints
        self.records = add_epoch(self.lake, 1, self.source, sorted(FILES), prints, **changes)

    def run(self, settings: Settings | None = None, **options: Any) -> Generation:
        self.said.clear()
        request = IndexRequest(
            specs=(self.source.root,),
            lake=str(self.lake.root),
            settings=settings or self.settings,
            progress=False,
            say=self.said.append,
            **options,
        )
        self.summary = index(request)
        generation = active_generation(self.lake)
        assert generation is not None
        return generation

    @property
    def was_idle(self) -> bool:
        return any("Nothing changed" in text for text in self.said)


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    return Plant(tmp_path, settings_with())


@pytest.fixture
def bare(tmp_path: Path) -> Plant:
    """Without a vector store: quick."""
    return Plant(tmp_path, settings_with(run={"project": False, "load_graph": False, "load_vectors": False}))


def test_a_second_run_changes_nothing_and_a_lost_store_is_made_anew(plant: Plant) -> None:
    first = plant.run()
    assert (first.number, first.cursors["vectors"]["rows"]) == (1, 8)
    assert plant.run() == first
    assert plant.was_idle
    shutil.rmtree(plant.lake.root / VECTORS)
    result = verify(plant.lake.root)
    assert not result["ok"]
    assert [check["name"] for check in result["checks"] if check["result"] == "failed"] == ["vector keys agree"]
    second = plant.run()
    assert second.number == 2
    assert verify(plant.lake.root)["ok"]
    assert list_documents(plant.lake.root)["mismatches"] == 0
    assert plant.run() == second


def test_verify_says_what_it_could_not_look_at(plant: Plant) -> None:
    plant.run()
    result = verify(plant.lake.root)
    assert (result["ok"], result["not_checked"]) == (True, 0)
    assert {"vector keys agree", "stored vectors agree"} <= {check["name"] for check in result["checks"]}
    lock = StoreLock(f"{plant.lake.root / VECTORS}.lock", 0)
    lock.take()
    result = verify(plant.lake.root)
    lock.free()
    blind = {check["name"] for check in result["checks"] if check["result"] == "not checked" and check["ok"] is None}
    assert blind == {"vector keys agree", "stored vectors agree"}
    assert (result["ok"], result["not_checked"]) == (True, 2)


def test_verify_compares_the_vectors_of_the_store_with_those_of_the_table(plant: Plant) -> None:
    generation = plant.run()
    cursor = generation.cursors["vectors"]
    rows = [row for part in vector_rows(plant.lake, generation, 0) for row in part.to_pylist()]
    rows[0]["embedding"] = rows[1]["embedding"]
    with VectorStore(plant.lake.place(cursor["uri"]), cursor["collection"], DIMENSION) as store:
        store.load(1, [rows], [])
    checks = {check["name"]: check for check in verify(plant.lake.root)["checks"]}
    assert checks["vector keys agree"]["ok"]
    assert checks["stored vectors agree"]["result"] == "failed"
    assert rows[0]["id"] in checks["stored vectors agree"]["detail"]


def test_settings_that_want_other_stores_make_a_new_generation(tmp_path: Path) -> None:
    off = settings_with(run={"project": False, "load_graph": False, "load_vectors": False})
    elsewhere = settings_with(stores={"vectors": str(tmp_path / "other.db")})
    plant = Plant(tmp_path, off)
    assert "vectors" not in plant.run().cursors
    assert plant.run().number == 1
    assert plant.run(settings_with()).cursors["vectors"]["rows"] == 8
    third = plant.run(elsewhere)
    assert (third.number, third.cursors["vectors"]["uri"]) == (3, str(tmp_path / "other.db"))
    assert verify(plant.lake.root)["ok"]
    assert "vectors" not in plant.run(off).cursors


def test_a_lake_of_an_older_release_stays_readable_and_goes_on(plant: Plant) -> None:
    lake = plant.lake
    (lake.root / "lake.json").write_text('{"format": 1, "made_at": "2025"}')
    fingerprints = context_of(lake, plant.settings).fingerprints
    old = Generation(1, pin_versions(lake), "run_0", 1, source_manifest=source_manifest(load_ledger(lake)), fingerprints=fingerprints)
    with VectorStore(lake.place(VECTORS), "raydex_0123456789abcdef_8", DIMENSION) as store:
        store.load(1, vector_rows(lake, old, 0), [])
    embed = {"model": "minilm", "base_url": "", "api_key_env": "", "device": "cpu", "batch_size": 64, "threads": 0}
    cursor = {"uri": VECTORS, "collection": "raydex_0123456789abcdef_8", "dimension": DIMENSION, "generation": 1, "rows": 8, "embed": embed}
    complete_generation(lake, replace(old, cursors={"vectors": cursor}))
    assert verify(lake.root)["ok"]
    assert sum(row["vectors"] for row in list_documents(lake.root)["documents"]) == 8
    assert plant.run().number == 2  # its source was not in the manifest
    assert plant.lake.lake_id
    assert verify(lake.root)["ok"]
    (plant.folder / "plant" / "a.txt").unlink()
    third = plant.run()
    assert third.cursors["vectors"]["collection"].startswith(f"raydex_{plant.lake.lake_id}_")
    assert verify(lake.root)["ok"]


@pytest.mark.parametrize("content", [b"{", b'{"number": 9}', None])
def test_a_lost_pointer_is_written_again(bare: Plant, content: bytes | None) -> None:
    first = bare.run()
    (bare.lake.root / "ACTIVE").unlink()
    if content is not None:
        (bare.lake.root / "ACTIVE").write_bytes(content)
    assert bare.run() == first
    assert bare.was_idle
    assert any("points to 1 again" in text for text in bare.said)


def test_only_sources_differ(plant: Plant) -> None:
    first = plant.run()
    second = plant.run(commit="c0ffee")
    assert (second.number, second.table_versions, second.cursors) == (2, first.table_versions, first.cursors)
    assert [source["commit"] for source in second.sources.values()] == ["c0ffee"]
    assert plant.run(commit="c0ffee") == second
    assert verify(plant.lake.root)["ok"]
    assert list_documents(plant.lake.root)["mismatches"] == 0
    (plant.folder / "plant" / "a.txt").unlink()
    third = plant.run(commit="c0ffee")
    assert third.cursors["vectors"]["rows"] == 6
    assert verify(plant.lake.root)["ok"]


def test_originals_lie_where_the_generation_says(tmp_path: Path) -> None:
    off = {"project": False, "load_graph": False, "load_vectors": False}
    settings = settings_with(run=off, objects={"uri": str(tmp_path / "store")})
    plant = Plant(tmp_path, settings, cas_uri="cas:" + content_hash(b"text of a"))
    with pytest.raises(ConfigError, match="1 of the 1 originals") as caught:
        plant.run()
    assert str(tmp_path / "store") in str(caught.value)
    from raydex.cluster.objects import ObjectStore

    ObjectStore(tmp_path / "store").put(b"text of a", content_hash(b"text of a"))
    assert plant.run().cursors["objects"] == {"uri": str(tmp_path / "store")}
    reader = open_reader(plant.lake.root)
    record = reader.rows("records").to_pylist()[0]
    assert reader.original({**record, "content_hash": content_hash(b"text of a")}) == b"text of a"
    with pytest.raises(ConfigError, match=str(plant.lake.objects)):
        plant.run(settings_with(run=off))


def test_originals_that_are_not_kept_are_read_where_they_were_listed(bare: Plant) -> None:
    bare.run()
    reader = open_reader(bare.lake.root)
    record = next(row for row in reader.rows("records").to_pylist() if row["path"] == "a.txt")
    assert reader.original(record) == b"text of a"
    (bare.folder / "plant" / "a.txt").write_text("another text")
    assert reader.original(record) is None
    (bare.folder / "plant" / "a.txt").unlink()
    assert reader.original(record) is None


def test_two_lakes_on_one_registry_keep_their_documents(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'registry.db'}"
    settings = settings_with(run={"project": False, "load_graph": False, "load_vectors": False}, stores={"registry": url})
    plants = [Plant(tmp_path / name, settings) for name in ("one", "two")]
    for plant in plants:
        assert plant.run().cursors["registry"] == {"url": url}
    (plants[0].folder / "plant" / "a.txt").unlink()
    plants[0].run()
    listed = [list_documents(plant.lake.root) for plant in plants]
    assert [len(result["documents"]) for result in listed] == [3, 4]
    assert [result["mismatches"] for result in listed] == [0, 0]
    assert not (plants[0].lake.stores / "registry.db").exists()


def test_another_registry_gets_every_document(bare: Plant) -> None:
    bare.run()
    url = f"sqlite:///{bare.folder / 'registry.db'}"
    moved = bare.run(bare.settings.model_copy(update={"stores": bare.settings.stores.model_copy(update={"registry": url})}))
    assert moved.number == 2
    result = list_documents(bare.lake.root)
    assert (len(result["documents"]), result["mismatches"]) == (4, 0)


def test_documents_of_a_state_a_class_or_a_type(bare: Plant) -> None:
    bare.run()
    for filters, count in (
        ({"state": "indexed"}, 4),
        ({"state": "rejected"}, 0),
        ({"source_type": "text/plain"}, 4),
        ({"source_type": "document"}, 4),
        ({"source_type": "code"}, 0),
        ({"reject_class": "too_large"}, 0),
    ):
        result = list_documents(bare.lake.root, **filters)
        assert (len(result["documents"]), result["total"]) == (count, 4), filters
    for wrong in ({"state": "lost"}, {"reject_class": "lost"}, {"source_type": "lost"}):
        with pytest.raises(ConfigError, match=r"lost.*Known: "):
            list_documents(bare.lake.root, **wrong)


def test_a_lost_registry_is_filled_again(bare: Plant) -> None:
    first = bare.run()
    (bare.lake.stores / "registry.db").unlink()
    assert list_documents(bare.lake.root)["mismatches"] == 4
    assert bare.run().table_versions == first.table_versions
    assert list_documents(bare.lake.root)["mismatches"] == 0
    assert bare.run().number == 2


def test_another_model_on_part_of_a_lake_is_refused_before_any_work(bare: Plant, tmp_path: Path) -> None:
    prints = context_of(bare.lake, bare.settings).fingerprints
    wiki = write_source(tmp_path / "wiki", FILES)
    add_epoch(bare.lake, 2, wiki, ["a.txt", "b.txt"], {**prints, "embed": "older"})
    before = sorted(bare.lake.tables.rglob("*.json"))
    with pytest.raises(ConfigError, match="2 records of wiki are another model's"):
        bare.run()
    assert sorted(bare.lake.tables.rglob("*.json")) == before
    ledger, ours, theirs = load_ledger(bare.lake), bare.source.source_id, wiki.source_id
    check_one_model(ledger, {ours, theirs}, None, bare.settings, prints["embed"])
    partial = bare.settings.model_copy(update={"embed": bare.settings.embed.model_copy(update={"partial": True})})
    check_one_model(ledger, {ours}, None, partial, prints["embed"])
    with pytest.raises(ConfigError, match="1 records of wiki"):  # a retry touches only its records
        check_one_model(
            ledger, {ours, theirs}, {ledger.column("record_id")[0].as_py()} | set(some_of(ledger, "wiki")), bare.settings, "new"
        )
    bare.run(partial)
    assert any("Search does not find 2 records of wiki" in text for text in bare.said)


def some_of(ledger: Any, name: str) -> list[str]:
    """All records but one of a source, and all of the others."""
    rows = ledger.select(["record_id", "source_name"]).to_pylist()
    own = [row["record_id"] for row in rows if row["source_name"] == name]
    return [*own[1:], *(row["record_id"] for row in rows if row["source_name"] != name)]


def project(lake: Lake, epoch: int) -> None:
    for name, key in (("nodes", "node_id"), ("edges", "edge_id"), ("evidence", "evidence_id"), ("ranks", "node_id")):
        rows = to_table(name, {key: [f"{key}{epoch}"], "epoch": [epoch]})
        commit_files(lake.tables, name, [write_data_file(lake.tables, name, rows)])


def test_a_projection_is_pinned_only_while_its_inputs_stand(bare: Plant) -> None:
    project(bare.lake, 1)
    context = context_of(bare.lake, bare.settings)
    first = bare.run()
    assert "nodes" not in first.table_versions
    with pytest.raises(ConfigError, match=r"run\.project"):
        list(list_edges(bare.lake.root, None, None))
    projected = replace(first, number=2, table_versions=pin_versions(bare.lake), projection_hash="p")
    complete_generation(bare.lake, projected)
    pins = {name: projected.table_versions[name] for name in ("nodes", "edges", "evidence", "ranks")}
    project(bare.lake, 2)  # by a run that was killed
    assert held_projection(bare.lake, projected, context) == (pins, "p")
    assert held_projection(bare.lake, None, context) == ({}, "")
    assert held_projection(bare.lake, replace(projected, fingerprints={"project": "older"}), context) == ({}, "")
    third = bare.run()
    assert (third.number, third.projection_hash) == (3, "p")
    assert pins.items() <= third.table_versions.items()
    (bare.folder / "plant" / "a.txt").unlink()
    fourth = bare.run()
    assert (fourth.projection_hash, pins.keys() & fourth.table_versions.keys()) == ("", set())


def test_a_projection_that_lost_a_file_is_not_pinned(bare: Plant) -> None:
    project(bare.lake, 1)
    bare.run()
    projected = Generation(2, pin_versions(bare.lake), projection_hash="p", fingerprints=context_of(bare.lake, bare.settings).fingerprints)
    (file,) = list_data_files(bare.lake.tables, "edges")
    (bare.lake.tables / "edges" / file.path).unlink()
    assert held_projection(bare.lake, projected, context_of(bare.lake, bare.settings)) == ({}, "")


def test_a_lost_graph_file_is_a_failed_check(bare: Plant) -> None:
    first = bare.run()
    cursor = {"path": "stores/graph-000002.lbug", "generation": 2, "nodes": 0, "edges": 0}
    complete_generation(bare.lake, replace(first, number=2, cursors={**first.cursors, "graph": cursor}))
    failed = {check["name"]: check["detail"] for check in verify(bare.lake.root)["checks"] if check["result"] == "failed"}
    assert set(failed) == {"graph store is loaded", "graph keys agree"}
    assert all("there is no graph file" in detail for detail in failed.values())


def test_a_broken_table_is_a_failed_check(bare: Plant) -> None:
    bare.run()
    (file,) = list_data_files(bare.lake.tables, "chunks")
    (bare.lake.tables / "chunks" / file.path).write_bytes(b"PAR1")
    failed = {check["name"] for check in verify(bare.lake.root)["checks"] if check["result"] == "failed"}
    assert "primary keys are unique" in failed
    assert "blocks are contiguous" not in failed


def test_search_and_documents_of_a_lake_without_text(tmp_path: Path) -> None:
    plant = Plant(tmp_path, settings_with(), chunks=0)
    assert plant.run().cursors["vectors"]["collection"] == ""
    assert search(plant.lake.root, "anything", 3)["hits"] == []
    result = list_documents(plant.lake.root)
    assert (sum(row["vectors"] for row in result["documents"]), result["mismatches"]) == (0, 0)
    assert verify(plant.lake.root)["ok"]


def test_old_data_files_go_and_kept_generations_stay_readable(tmp_path: Path) -> None:
    run = {"project": False, "load_graph": False, "load_vectors": False}
    plant = Plant(tmp_path, settings_with(run=run, stores={"keep_generations": 2}, list={"max_delete_share": 1.0}))
    generations = [plant.run()]
    for name in ("a.txt", "b.txt"):
        (plant.folder / "plant" / name).unlink()
        generations.append(plant.run())
    assert len(list(plant.lake.tables.glob("chunks/*.parquet"))) == 3  # a reader may still be at work
    versions = pin_versions(plant.lake)
    assert trim_tables(plant.lake, 2, plant.said.append, timedelta(0)) > 0
    assert len(list(plant.lake.tables.glob("chunks/*.parquet"))) == 2
    assert pin_versions(plant.lake) == versions
    assert [read_pinned(plant.lake, generation, "chunks").num_rows for generation in generations[1:]] == [6, 4]
    with pytest.raises(StoreError):
        read_pinned(plant.lake, generations[0], "chunks")
    assert trim_tables(plant.lake, 2, plant.said.append, timedelta(0)) == 0


def test_steps_count_their_cpu(plant: Plant) -> None:
    plant.run()
    stages = plant.summary["stages"]
    assert all(stages[name]["cpu_seconds"] > 0 for name in ("list", "vectors", "verify"))
    assert json.loads(json.dumps(plant.summary)) == plant.summary


def test_a_stopwatch_counts_children_that_have_ended() -> None:
    import subprocess
    import sys

    from raydex.jobs.stopwatch import Stopwatch

    watch = Stopwatch()
    subprocess.run([sys.executable, "-c", "for _ in range(3_000_000): pass"], check=True)
    figures = watch.figures()
    assert figures["cpu_seconds"] > 0.01
    assert figures["seconds"] > 0
