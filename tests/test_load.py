"""Loading the vector store from a small lake: one model, one lake, one base; what is lost is loaded anew, what nobody shows is dropped."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_lake import DIMENSION, add_epoch, context_of, settings_with, unit, write_source

from raydex.cluster.delta import commit_files, write_data_file
from raydex.cluster.lake import Generation, Lake, complete_generation, load_generations, pin_versions, source_manifest
from raydex.cluster.store_lock import StoreLock
from raydex.cluster.vectors import VectorStore
from raydex.configs.settings import Settings, load_settings
from raydex.ir.rows import to_table
from raydex.jobs import chunk_places, load
from raydex.jobs.reading import Reader
from raydex.jobs.standing import stores_stand
from raydex.jobs.verify import (
    check_embeddings,
    check_graph,
    check_graph_keys,
    check_vector_count,
    check_vector_store,
    check_vectors,
)

FILES = {f"{name}.txt": f"text of {name}" for name in "abcd"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    with lake.lock("run_0"):
        return lake


def next_generation(lake: Lake, settings: Settings, epoch: int) -> Generation:
    """What a run would hand to the load."""
    number = 1 + len(load_generations(lake))
    return Generation(number, pin_versions(lake), f"run_{number}", epoch, fingerprints=context_of(lake, settings).fingerprints)


def load_next(lake: Lake, settings: Settings, epoch: int) -> Generation:
    """Loads and completes the next generation."""
    generations = load_generations(lake)
    generation = next_generation(lake, settings, epoch)
    cursor, _ = load.load_vectors(lake, context_of(lake, settings), generations[-1] if generations else None, generation)
    generation = replace(generation, cursors={"vectors": cursor})
    complete_generation(lake, generation)
    return generation


def shown(lake: Lake, generation: Generation) -> set[str]:
    """Texts of the chunks that the store shows."""
    cursor = generation.cursors["vectors"]
    with VectorStore(lake.place(cursor["uri"]), cursor["collection"], cursor["dimension"]) as store:
        keys = set(store.keys(cursor["generation"]))
    chunks = Reader(lake, generation).rows("chunks", columns=["chunk_id", "content"]).to_pylist()
    return {row["content"] for row in chunks if row["chunk_id"] in keys}


def texts(*names: str) -> set[str]:
    return {f"{name}.txt part {at}" for name in names for at in (0, 1)}


def verdicts(lake: Lake, generation: Generation) -> dict[str, bool | None]:
    reader = Reader(lake, generation)
    checks = [check_embeddings, check_vector_count, check_vectors, check_vector_store]
    return {found.name: found.ok for check in checks for found in check(reader)}


def test_lakes_that_share_a_store_show_their_own_vectors(tmp_path: Path) -> None:
    settings = settings_with(stores={"vectors": str(tmp_path / "shared.db")})
    made = []
    for name in ("one", "two"):
        lake = Lake(tmp_path / name)
        source = write_source(tmp_path / "plant", FILES)  # the same source: the same records and chunks in both
        add_epoch(lake, 1, source, ["a.txt", "b.txt"] if name == "one" else ["b.txt"], context_of(lake, settings).fingerprints)
        made.append((lake, load_next(lake, settings, 1)))
    assert [shown(*item) for item in made] == [texts("a", "b"), texts("b")]
    assert all(verdicts(*item)["vector keys agree"] for item in made)


def test_vectors_of_another_model_are_not_loaded_and_named(lake: Lake, tmp_path: Path) -> None:
    settings = settings_with()
    prints = context_of(lake, settings).fingerprints
    plant, wiki = write_source(tmp_path / "plant", FILES), write_source(tmp_path / "wiki", FILES)
    add_epoch(lake, 1, wiki, ["a.txt"], {**prints, "embed": "older"})
    add_epoch(lake, 2, wiki, ["b.txt"], {**prints, "embed": "oldest"}, dimension=DIMENSION + 1)
    add_epoch(lake, 3, plant, ["c.txt"], prints)
    generation = load_next(lake, settings, 3)
    assert generation.cursors["vectors"]["dimension"] == DIMENSION
    assert shown(lake, generation) == texts("c")
    assert set(verdicts(lake, generation).values()) == {True}
    (check,) = check_embeddings(Reader(lake, generation))
    assert "2 records of wiki wait" in check.detail


def test_a_chunk_without_a_vector_of_its_own_model_is_a_failure(lake: Lake, tmp_path: Path) -> None:
    settings = settings_with()
    prints = context_of(lake, settings).fingerprints
    source = write_source(tmp_path / "plant", FILES)
    add_epoch(lake, 1, source, ["a.txt"], prints)
    add_epoch(lake, 2, source, ["b.txt"], prints, vectors=False, missing=["embedding"], state="degraded")
    generation = next_generation(lake, settings, 2)
    assert [check.ok for check in check_embeddings(Reader(lake, generation))] == [True]
    add_epoch(lake, 3, source, ["c.txt"], prints, vectors=False)
    generation = next_generation(lake, settings, 3)
    (check,) = check_embeddings(Reader(lake, generation))
    assert check.ok is False
    assert "missing 2" in check.detail


def test_a_lake_that_gave_up_its_model_lacks_no_vectors(lake: Lake, tmp_path: Path) -> None:
    settings = settings_with(embed={"model": "none"})
    source = write_source(tmp_path / "plant", FILES)
    add_epoch(lake, 1, source, ["a.txt"], {**context_of(lake, settings).fingerprints, "embed": "older"})
    add_epoch(lake, 2, source, ["b.txt"], context_of(lake, settings).fingerprints, vectors=False)
    (check,) = check_embeddings(Reader(lake, next_generation(lake, settings, 2)))
    assert check.ok
    assert "off" in check.detail


def test_a_lake_without_vectors_has_a_cursor_without_a_collection(lake: Lake) -> None:
    settings = settings_with()
    cursor, _ = load.load_vectors(lake, context_of(lake, settings), None, next_generation(lake, settings, 0))
    assert (cursor["collection"], cursor["rows"]) == ("", 0)
    assert not (lake.root / load.VECTORS).exists()


@pytest.mark.parametrize("loss", ["store", "rows", "old data file"])
def test_what_the_store_lost_is_loaded_again_from_the_tables(lake: Lake, tmp_path: Path, loss: str) -> None:
    settings = settings_with()
    prints = context_of(lake, settings).fingerprints
    source = write_source(tmp_path / "plant", FILES)
    add_epoch(lake, 1, source, ["a.txt", "b.txt"], prints)
    first = load_next(lake, settings, 1)
    cursor = first.cursors["vectors"]
    if loss == "store":
        shutil.rmtree(lake.root / load.VECTORS)
    elif loss == "rows":
        with VectorStore(lake.place(cursor["uri"]), cursor["collection"], DIMENSION) as store:
            store._delete([next(store.keys(1))])
            store._call("flush")
    add_epoch(lake, 2, source, ["c.txt"], prints)
    if loss == "old data file":
        lose_epoch_1(lake)
    second = load_next(lake, settings, 2)
    assert shown(lake, second) == (texts("c") if loss == "old data file" else texts("a", "b", "c"))
    assert verdicts(lake, second)["vector keys agree"]


def lose_epoch_1(lake: Lake) -> None:
    """The embeddings of the first epoch are gone from the disk and, as after a repair, from the table."""
    from raydex.cluster.delta import drop_files, list_data_files

    (file,) = [file for file in list_data_files(lake.tables, "embeddings") if file.bounds("epoch") == (1, 1)]
    (lake.tables / "embeddings" / file.path).unlink()
    drop_files(lake.tables, "embeddings", [file])


def test_what_no_kept_generation_shows_is_dropped(lake: Lake, tmp_path: Path) -> None:
    from raydex.cluster.delta import rewrite_table

    settings = settings_with(stores={"keep_generations": 1})
    prints = context_of(lake, settings).fingerprints
    source = write_source(tmp_path / "plant", FILES)
    (gone,) = add_epoch(lake, 1, source, ["a.txt"], prints)
    add_epoch(lake, 2, source, ["b.txt"], prints)
    first = load_next(lake, settings, 2)
    cursor = first.cursors["vectors"]
    with VectorStore(lake.place(cursor["uri"]), "raydex_0123456789abcdef_8", DIMENSION) as store:  # an older release's name
        store.load(1, [[{"id": "chk_1", "doc_id": "rec_1", "embedding": unit("x")}]], [])
    for name in ("documents", "chunks", "embeddings", "records"):
        rewrite_table(lake.tables, name, ["record_id"], lambda part: part.column("record_id").to_numpy(zero_copy_only=False) != gone)
    load_next(lake, settings, 2)
    third = load_next(lake, settings, 2)
    with VectorStore(lake.place(cursor["uri"]), cursor["collection"], DIMENSION) as store:
        rows = [row["id"] for row in store._listed("gen_from >= 0", ["id"])]
        assert store._client.list_collections() == [cursor["collection"]]
    assert len(rows) == len(texts("b"))
    assert shown(lake, third) == texts("b")


def test_a_reader_that_holds_the_store_does_not_fail_the_load(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_with()
    add_epoch(lake, 1, write_source(tmp_path / "plant", FILES), ["a.txt"], context_of(lake, settings).fingerprints)
    reader = StoreLock(f"{lake.root / load.VECTORS}.lock", 0)
    reader.take()
    waits: list[float] = []
    take = StoreLock.take

    def noted(lock: StoreLock) -> None:
        waits.append(lock.wait_s)
        reader.free()
        take(lock)

    monkeypatch.setattr(StoreLock, "take", noted)
    assert load_next(lake, settings, 1).cursors["vectors"]["rows"] == 2
    assert waits == [load.LOAD_WAIT_S]
    assert load.LOAD_WAIT_S >= 120


def test_chunks_are_read_once_however_many_epochs_wrote_them(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_with()
    prints = context_of(lake, settings).fingerprints
    names = [f"{at:02}.txt" for at in range(12)]
    source = write_source(tmp_path / "plant", dict.fromkeys(names, "text"))
    for epoch, name in enumerate(names, 1):
        add_epoch(lake, epoch, source, [name], prints)
    reads: Counter[str] = Counter()
    read = chunk_places.read_data_file

    def counted(root: Path, name: str, path: str, **options: Any) -> Any:
        reads[path] += 1
        return read(root, name, path, **options)

    monkeypatch.setattr(chunk_places, "read_data_file", counted)
    monkeypatch.setattr(load, "GROUP_ROWS", 6)
    generation = next_generation(lake, settings, 12)
    rows = [row for part in load.vector_rows(lake, generation, 0) for row in part.to_pylist()]
    assert sorted(row["content"] for row in rows) == sorted(f"{name} part {at}" for name in names for at in (0, 1))
    assert {row["doc_name"] for row in rows} == set(names)
    assert set(reads.values()) == {2}  # once for its record ids, once for its rows
    assert len(reads) == 12
    reads.clear()
    late = [row["doc_name"] for part in load.vector_rows(lake, generation, 11) for row in part.to_pylist()]
    assert set(late) == {"11.txt"}
    assert sorted(reads.values()) == [1] * 11 + [2]


def test_a_vector_whose_chunk_is_lost_is_an_error(lake: Lake, tmp_path: Path) -> None:
    from raydex.ir.errors import StoreError

    settings = settings_with()
    source = write_source(tmp_path / "plant", FILES)
    add_epoch(lake, 1, source, ["a.txt"], context_of(lake, settings).fingerprints, only=("documents", "embeddings", "records"))
    with pytest.raises(StoreError, match="2 vectors belong to no chunk"):
        list(load.vector_rows(lake, next_generation(lake, settings, 1), 0))


def test_a_graph_file_stands_until_it_is_cut_or_gone(lake: Lake) -> None:
    nodes = to_table("nodes", {"node_id": ["n1", "n2"], "kind": ["file", "function"], "name": ["a", "b"], "source_keys": [[], []]})
    edges = {"edge_id": ["e1"], "source": ["n1"], "target": ["n2"], "relation": ["CONTAINS"], "confidence": ["EXTRACTED"]}
    evidence = to_table("evidence", {"evidence_id": ["v1"], "source_record_id": ["rec_1"], "locator": ["line=1-1"]})
    for name, rows in (("nodes", nodes), ("edges", to_table("edges", {**edges, "evidence_ids": [["v1"]]})), ("evidence", evidence)):
        commit_files(lake.tables, name, [write_data_file(lake.tables, name, rows)])
    settings = load_settings(None, {"embed": {"model": "none"}})
    generation = replace(next_generation(lake, settings, 1), projection_hash="p", source_manifest="m")
    cursor, figures = load.load_graph(lake, generation)
    assert (cursor["nodes"], cursor["edges"], figures["rows_out"]) == (2, 1, 3)
    assert figures["cpu_seconds"] > 0
    generation = replace(generation, cursors={"graph": cursor})
    assert [check.ok for check in (*check_graph(Reader(lake, generation)), *check_graph_keys(Reader(lake, generation)))] == [True, True]
    assert stores_stand(lake, generation, settings)
    assert not stores_stand(lake, replace(generation, projection_hash=""), settings)
    assert not stores_stand(lake, generation, settings_with(embed={"model": "none"}))
    path = lake.root / cursor["path"]
    path.write_bytes(path.read_bytes()[:-100])
    assert not stores_stand(lake, generation, settings)
    path.unlink()
    assert not stores_stand(lake, generation, settings)


def test_the_manifest_is_of_the_ledger(lake: Lake, tmp_path: Path) -> None:
    from raydex.cluster.lake import load_ledger

    empty = source_manifest(load_ledger(lake))
    source = write_source(tmp_path / "plant", FILES)
    add_epoch(lake, 1, source, ["a.txt", "b.txt"], context_of(lake, settings_with()).fingerprints)
    both = source_manifest(load_ledger(lake))
    assert len({empty, both, source_manifest(load_ledger(lake).slice(1))}) == 3
    assert source_manifest(load_ledger(lake).sort_by([("record_id", "descending")])) == both


def test_a_load_waits_while_a_reader_lists_the_store(tmp_path: Path) -> None:
    lock, reader = StoreLock(tmp_path / "v.db.lock", 60), StoreLock(tmp_path / "v.db.lock", 0)
    reader.take()
    timer = threading.Timer(0.3, reader.free)
    timer.start()
    lock.take()
    assert lock.held
    timer.join()
    assert not reader.held
    lock.free()
