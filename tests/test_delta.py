"""Delta tables: what is written comes back, commits are atomic, rewriting is filtering."""

from __future__ import annotations

import json
import pickle
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from delta_files import NAME, NOW, edges, keys_of, load, log_entry
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shared_cases import case

from raydex.cluster.delta import (
    DataFile,
    check_log,
    commit_files,
    commit_metadata,
    compact,
    list_data_files,
    migrate_table,
    read_data_file,
    read_delta,
    replace_table,
    rewrite_table,
    scan_delta,
    table_exists,
    table_version,
    transaction_version,
    vacuum,
    write_data_file,
)
from raydex.cluster.faults import InjectedFault
from raydex.ir.errors import ConfigError, StoreError
from raydex.ir.ids import make_id
from raydex.ir.rows import to_table
from raydex.ir.tables import TABLES

# reading and committing


def test_a_table_that_does_not_exist_reads_as_empty(tmp_path):
    for name, spec in TABLES.items():
        table = read_delta(tmp_path, name)
        assert (table.num_rows, table.schema) == (0, spec.schema)
    assert read_delta(tmp_path, NAME, columns=["epoch"]).schema == pa.schema([("epoch", pa.int64())])
    assert list(scan_delta(tmp_path, NAME)) == []
    assert (table_version(tmp_path, NAME), table_exists(tmp_path, NAME), list_data_files(tmp_path, NAME)) == (None, False, [])
    check_log(tmp_path, NAME)
    with pytest.raises(StoreError, match="no version 3"):
        read_delta(tmp_path, NAME, version=3)
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_was_opened_before_is_read_as_it_is_now(tmp_path):
    """Logs are opened once as long as their newest entry stays the same file."""
    commit_files(tmp_path, NAME, [write_data_file(tmp_path, NAME, edges(1, "a"))])
    first = table_version(tmp_path, NAME)
    assert first is not None and len(list_data_files(tmp_path, NAME)) == 1
    commit_files(tmp_path, NAME, [write_data_file(tmp_path, NAME, edges(2, "b"))])
    assert (table_version(tmp_path, NAME), len(list_data_files(tmp_path, NAME))) == (first + 1, 2)
    assert len(list_data_files(tmp_path, NAME, first)) == 1
    kept = log_entry(tmp_path, first + 1).read_bytes()
    log_entry(tmp_path, first + 1).unlink()
    assert (table_version(tmp_path, NAME), len(list_data_files(tmp_path, NAME))) == (first, 1)
    log_entry(tmp_path, first + 1).write_bytes(b"".join(line for line in kept.splitlines(keepends=True) if not line.startswith(b'{"add"')))
    assert len(list_data_files(tmp_path, NAME)) == 1


def test_uncommitted_files_are_invisible_and_a_commit_is_one(tmp_path):
    files = [write_data_file(tmp_path, NAME, edges(1, f"e{n}")) for n in range(3)]
    assert not table_exists(tmp_path, NAME)
    assert read_delta(tmp_path, NAME).num_rows == 0
    version = commit_files(tmp_path, NAME, files[:2], txn_version=1, metadata={"raydex.run": "run_1"})
    assert keys_of(tmp_path) == ["e0", "e1"]
    assert table_version(tmp_path, NAME) == version == 1
    assert commit_metadata(tmp_path, NAME)["raydex.run"] == "run_1"
    assert transaction_version(tmp_path, NAME) == 1
    assert transaction_version(tmp_path, NAME, "other") is None


@pytest.mark.parametrize("name", list(TABLES))
def test_every_table_comes_back_as_written(tmp_path, name):
    spec = TABLES[name]
    values = {
        pa.string(): "x é \x00 字",
        pa.int64(): 7,
        pa.int32(): 7,
        pa.float64(): 0.5,
        pa.bool_(): True,
        TABLES["runs"].schema.field("started_at").type: NOW,
    }
    columns = {field.name: [values.get(field.type), None] for field in spec.schema}
    for field in spec.schema:
        if pa.types.is_map(field.type):
            columns[field.name] = [[("a", "1" if field.type.item_type == pa.string() else 1)], None]
        elif pa.types.is_list(field.type):
            columns[field.name] = [[], None]
    columns[spec.key] = ["k1", "k2"]
    table = to_table(name, columns)
    commit_files(tmp_path, name, [write_data_file(tmp_path, name, table)])
    assert read_delta(tmp_path, name).equals(table)
    from deltalake import DeltaTable

    assert pa.schema(DeltaTable(str(tmp_path / name)).schema().to_arrow()) == spec.schema


def test_columns_filters_versions_and_batches(tmp_path):
    load(tmp_path, edges(1, "a", "b"), txn=1)
    load(tmp_path, edges(2, "c"), edges(3, *(f"d{n}" for n in range(40))), txn=2)
    assert keys_of(tmp_path, version=1) == ["a", "b"]
    assert keys_of(tmp_path, where=pc.field("epoch") <= 2) == ["a", "b", "c"]
    assert read_delta(tmp_path, NAME, columns=["epoch"], where=pc.field("edge_id") == "c").to_pylist() == [{"epoch": 2}]
    batches = list(scan_delta(tmp_path, NAME, columns=["edge_id"], batch_rows=7))
    assert max(batch.num_rows for batch in batches) <= 7
    assert sorted(key for batch in batches for key in batch.column("edge_id").to_pylist()) == keys_of(tmp_path)
    with pytest.raises(StoreError, match="version 9"):
        read_delta(tmp_path, NAME, version=9)
    with pytest.raises(ValueError, match="nosuch"):
        read_delta(tmp_path, NAME, columns=["nosuch"])
    with pytest.raises(KeyError):
        read_delta(tmp_path, "nosuch")


def test_a_filter_on_epoch_opens_only_files_that_may_match(tmp_path):
    load(tmp_path, edges(1, "a"), edges(2, "b"))
    (other,) = [file for file in list_data_files(tmp_path, NAME) if file.bounds("epoch") == (1, 1)]
    (tmp_path / NAME / other.path).unlink()
    assert keys_of(tmp_path, where=pc.field("epoch") == 2) == ["b"]
    with pytest.raises(StoreError, match="missing"):
        keys_of(tmp_path)


def test_data_files_describe_themselves(tmp_path):
    file = write_data_file(tmp_path, NAME, edges(4, "b", "a"))
    assert file.size == (tmp_path / NAME / file.path).stat().st_size
    assert DataFile.from_row({**file.to_row(), "epoch": 4}) == file == pickle.loads(pickle.dumps(file))
    stats = json.loads(file.stats)
    assert (stats["numRecords"], stats["minValues"]["edge_id"], stats["maxValues"]["edge_id"]) == (2, "a", "b")
    assert file.bounds("epoch") == (4, 4)
    assert file.bounds("run_id") is None  # all null
    commit_files(tmp_path, NAME, [file])
    (listed,) = list_data_files(tmp_path, NAME)
    assert (listed.path, listed.size, listed.rows, json.loads(listed.stats)) == (file.path, file.size, 2, stats)
    assert read_data_file(tmp_path, NAME, file.path, columns=["edge_id"], where=pc.field("edge_id") > "a").num_rows == 1


def test_delta_reads_the_statistics(tmp_path):
    from deltalake import DeltaTable

    load(tmp_path, edges(1, "a", "b"), edges(2, "c"))
    actions = pa.table(DeltaTable(str(tmp_path / NAME)).get_add_actions(flatten=True))
    assert sorted(zip(*(actions.column(name).to_pylist() for name in ("num_records", "min.epoch", "max.edge_id")))) == [
        (1, 2, "c"),
        (2, 1, "b"),
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (edges(1, "a").select(["edge_id", "epoch"]), "another schema"),
        (edges(1, "a").rename_columns(["x", *TABLES[NAME].schema.names[1:]]), "another schema"),
        (edges(1, "a").select(TABLES[NAME].schema.names[::-1]), "another order"),
        (edges(1, "a").set_column(10, "epoch", pa.array([1], pa.int32())), "epoch: int32"),
        (edges(1), "needs rows"),
        (to_table(NAME, {"edge_id": ["a", None]}), "edge_id is null in 1 rows"),
    ],
)
def test_rows_of_another_shape_are_refused(tmp_path, table, message):
    with pytest.raises(ValueError, match=message):
        write_data_file(tmp_path, NAME, table)
    assert list(tmp_path.iterdir()) == []


def test_files_of_another_table_or_gone_are_refused(tmp_path):
    file = write_data_file(tmp_path, NAME, edges(1, "a"))
    with pytest.raises(ValueError, match="of table blocks"):
        commit_files(tmp_path, "blocks", [file])
    with pytest.raises(ValueError, match="needs files"):
        commit_files(tmp_path, NAME, [])
    (tmp_path / NAME / file.path).unlink()
    with pytest.raises(StoreError, match="missing before its commit"):
        commit_files(tmp_path, NAME, [file])


@pytest.mark.parametrize("root", ["s3://bucket/lake", "gs://bucket/lake"])
def test_other_schemes_are_refused_by_name(root):
    for call in (lambda: read_delta(root, NAME), lambda: write_data_file(root, NAME, edges(1, "a")), lambda: table_version(root, NAME)):
        with pytest.raises(ConfigError, match=root.split("/")[0]):
            call()
    with pytest.raises(ConfigError, match="storage options"):
        read_delta("/nowhere", NAME, storage_options={"key": "x"})


def test_a_file_uri_and_odd_folder_names(tmp_path):
    root = tmp_path / "a b% ü#?*"
    load(root, edges(1, "a"))
    load(root, edges(2, "b"))
    assert keys_of(root) == ["a", "b"]
    check_log(root, NAME)
    assert read_delta(f"file://{tmp_path}/a%20b%25%20%C3%BC%23%3F*", NAME).num_rows == 2


@pytest.mark.parametrize("odd", ["a%20b", "a\\b"])
def test_folder_names_that_the_engine_would_decode_are_refused(tmp_path, odd):
    with pytest.raises(ConfigError, match="another name"):
        write_data_file(tmp_path / odd, NAME, edges(1, "a"))
    assert list(tmp_path.iterdir()) == []


# rewriting


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=4),
    st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=3),
    st.booleans(),
)
def test_rewriting_equals_filtering(tmp_path_factory, files, rounds, as_numpy):
    root = tmp_path_factory.mktemp("law")
    load(
        root,
        *(
            edges(at, *(f"f{at}_{n}" for n in range(len(records)))).set_column(6, "record_id", pa.array([f"r{x}" for x in records]))
            for at, records in enumerate(files)
        ),
    )
    expected = read_delta(root, NAME)
    for at, doomed in enumerate(rounds):
        unwanted = pa.array([f"r{x}" for x in doomed], pa.string())

        def keep(table: pa.Table, unwanted: pa.Array = unwanted) -> pa.ChunkedArray | np.ndarray:
            mask = pc.invert(pc.is_in(table.column("record_id"), unwanted))
            return mask.to_numpy() if as_numpy else mask

        before, count = table_version(root, NAME), expected.num_rows
        expected = expected.filter(keep(expected))
        added = [write_data_file(root, NAME, edges(50 + at, f"new{at}"))] if at == 1 else []
        done = rewrite_table(root, NAME, ["record_id"], keep, add=added)
        if added:
            expected = pa.concat_tables([expected, edges(50 + at, f"new{at}")])
        assert done.rows_deleted == count - expected.num_rows + len(added)
        assert done.version == table_version(root, NAME) == before + bool(done.rows_deleted or added)
        assert read_delta(root, NAME).sort_by("edge_id").equals(expected.sort_by("edge_id"))
    check_log(root, NAME)


def test_a_rewrite_touches_only_what_changes(tmp_path):
    load(tmp_path, edges(1, "a", "b"), edges(2, "c", "d"), edges(3, "e", "f"))
    before = {file.path for file in list_data_files(tmp_path, NAME)}
    done = rewrite_table(tmp_path, NAME, ["edge_id"], lambda table: ~np.isin(table.column("edge_id").to_numpy(), ["c", "e", "f"]))
    after = {file.path for file in list_data_files(tmp_path, NAME)}
    assert (done.version, done.files_removed, done.files_rewritten, done.rows_deleted) == (2, 1, 1, 3)
    assert (len(before & after), len(after)) == (1, 2)
    (new,) = [file for file in list_data_files(tmp_path, NAME) if file.path not in before]
    assert (done.bytes_written, new.bounds("epoch")) == (new.size, (2, 2))
    assert keys_of(tmp_path) == ["a", "b", "d"]
    assert keys_of(tmp_path, version=1) == ["a", "b", "c", "d", "e", "f"]


def test_nothing_to_delete_makes_no_commit(tmp_path):
    def everything(table: pa.Table) -> np.ndarray:
        return np.ones(table.num_rows, dtype=bool)

    assert rewrite_table(tmp_path, NAME, ["epoch"], everything).version is None
    load(tmp_path, edges(1, "a"))
    assert rewrite_table(tmp_path, NAME, ["epoch"], everything) == rewrite_table(tmp_path, NAME, ["epoch"], everything)
    assert table_version(tmp_path, NAME) == 1
    assert len(list((tmp_path / NAME).glob("*.parquet"))) == 1


def test_files_outside_only_are_not_even_read(tmp_path):
    load(tmp_path, edges(1, "a"), edges(2, "b"))
    seen = []

    def nothing(table: pa.Table) -> np.ndarray:
        seen.extend(table.column("epoch").to_pylist())
        return np.zeros(table.num_rows, dtype=bool)

    done = rewrite_table(tmp_path, NAME, ["epoch"], nothing, only=lambda file: file.bounds("epoch")[1] > 1)
    assert (seen, done.rows_deleted, keys_of(tmp_path)) == ([2], 1, ["a"])


@pytest.mark.parametrize("mask", [np.ones(1, bool), np.ones(2), pa.array([True, None]), np.array(["a", "b"])])
def test_a_bad_mask_changes_nothing(tmp_path, mask):
    load(tmp_path, edges(1, "a", "b"))
    with pytest.raises(ValueError, match="mask"):
        rewrite_table(tmp_path, NAME, ["epoch"], lambda table: mask)
    assert table_version(tmp_path, NAME) == 1


def test_a_failing_rewrite_leaves_no_files(tmp_path):
    load(tmp_path, *(edges(epoch, f"a{epoch}", f"b{epoch}") for epoch in range(12)))

    def fail_at_9(table: pa.Table) -> np.ndarray:
        if table.column("epoch")[0].as_py() == 9:
            raise RuntimeError("stop")
        return np.array([True, False])

    with pytest.raises(RuntimeError, match="stop"):
        rewrite_table(tmp_path, NAME, ["epoch"], fail_at_9)
    assert (table_version(tmp_path, NAME), len(list((tmp_path / NAME).glob("*.parquet")))) == (1, 12)


def test_an_error_after_the_commit_takes_nothing_back(tmp_path, monkeypatch):
    load(tmp_path, edges(1, "a", "b"), edges(2, "c"))
    monkeypatch.setenv("RAYDEX_FAULT", f"delta.commit:{NAME}:after:raise:*")
    for act in (
        lambda: rewrite_table(tmp_path, NAME, ["edge_id"], lambda table: pc.not_equal(table.column("edge_id"), "a")),
        lambda: compact(tmp_path, NAME),
    ):
        with pytest.raises(InjectedFault):
            act()
        check_log(tmp_path, NAME)
        assert keys_of(tmp_path) == ["b", "c"]
    assert table_version(tmp_path, NAME) == 3


def test_replacing_a_table_is_one_commit(tmp_path):
    load(tmp_path, edges(1, "a"), edges(2, "b"))
    assert replace_table(tmp_path, NAME, [write_data_file(tmp_path, NAME, edges(3, "c"))], txn_version=3) == 2
    assert keys_of(tmp_path) == ["c"]
    assert replace_table(tmp_path, NAME, []) == 3
    assert keys_of(tmp_path) == []
    assert read_delta(tmp_path, NAME).schema == TABLES[NAME].schema


def test_compacting_changes_files_not_rows(tmp_path):
    for epoch in range(6):
        load(tmp_path, edges(epoch, f"e{epoch}"))
    rows = read_delta(tmp_path, NAME).sort_by("edge_id")
    done = compact(tmp_path, NAME)
    assert (done.files_removed, done.files_rewritten, done.rows_deleted) == (6, 1, 0)
    assert read_delta(tmp_path, NAME).sort_by("edge_id").equals(rows)
    assert compact(tmp_path, NAME).version == done.version
    assert keys_of(tmp_path, version=3) == ["e0", "e1", "e2"]
    entry = [json.loads(line) for line in log_entry(tmp_path, done.version).read_text().splitlines()]
    assert {action["add"]["dataChange"] for action in entry if "add" in action} == {False}


def test_vacuum_keeps_pinned_versions_and_young_files(tmp_path):
    load(tmp_path, edges(1, "a", "b"))
    for keep in ("a", "nothing"):
        rewrite_table(
            tmp_path, NAME, ["edge_id"], lambda table, keep=keep: np.array([key == keep for key in table.column("edge_id").to_pylist()])
        )
    load(tmp_path, edges(4, "c"))
    orphan = write_data_file(tmp_path, NAME, edges(9, "open"))
    assert vacuum(tmp_path, NAME, [1], timedelta(minutes=10)) == []
    assert len(vacuum(tmp_path, NAME, [1, 99], timedelta(0))) == 2
    assert (keys_of(tmp_path, version=1), keys_of(tmp_path)) == (["a", "b"], ["c"])
    assert not (tmp_path / NAME / orphan.path).exists()
    with pytest.raises(StoreError, match=r"version 2: a data file is missing"):
        keys_of(tmp_path, version=2)
    check_log(tmp_path, NAME)


# merge keys: null, empty, repeated and odd ones (b46)


def upsert(root: Path, rows: pa.Table) -> None:
    """Replaces rows by key: what a run does with changed records, in one commit."""
    keys = rows.column("edge_id")
    rewrite_table(
        root,
        NAME,
        ["edge_id"],
        lambda table: pc.invert(pc.is_in(table.column("edge_id"), keys.combine_chunks())),
        add=[write_data_file(root, NAME, rows)],
    )


def key_rows(rows: list[dict]) -> pa.Table:
    """Keys are hashes of all fields, so that none is null, and null, "" and "null" differ; equal rows are one."""
    unique = {make_id("edg", row["doc_id"], json.dumps(row["section"]), str(row["ordinal"])): row for row in rows}
    columns = {
        "edge_id": list(unique),
        "source": [row["doc_id"] for row in unique.values()],
        "target": [row["section"] for row in unique.values()],
        "relation": [row["text"] for row in unique.values()],
    }
    return to_table(NAME, columns)


def check_merge(root: Path, rows: list[dict]) -> None:
    expected = {(row["doc_id"], row["section"], row["ordinal"]): row["text"] for row in rows}
    for _ in range(3):
        upsert(root, key_rows(rows))
        stored = read_delta(root, NAME).to_pylist()
        assert len(stored) == len(expected)
        assert {(row["source"], row["target"], row["relation"]) for row in stored} == {(d, s, text) for (d, s, _), text in expected.items()}


def test_null_empty_and_repeated_keys_do_not_multiply(tmp_path):
    rows = [
        ("a/b%2F c", None, 0),
        ("a/b%2F c", "", 0),
        ("a/b%2F c", "null", 0),
        ("a/b%2F c", None, 0),
        ("ä=ö&", "x", 1),
        ("\\'\"\n", "x", 1),
    ]
    check_merge(tmp_path, [{"doc_id": d, "section": s, "ordinal": o, "text": f"{d}|{s}"} for d, s, o in rows])
    assert read_delta(tmp_path, NAME).num_rows == 5


def test_case_b46(tmp_path):
    rows = json.loads((case("b46-delta-null-key-merge") / "rows.json").read_text())
    check_merge(tmp_path, rows)
    stored = read_delta(tmp_path, NAME)
    assert stored.num_rows == 3
    (odd,) = [row for row in stored.to_pylist() if row["source"] == "d 2/x%20y"]
    assert odd["target"] == ""


# schemas of other releases (S5)


def make_table(root: Path, schema: pa.Schema) -> None:
    from deltalake import write_deltalake

    write_deltalake(
        str(root / NAME),
        pa.table({field.name: pa.array(["old"] if field.type == pa.string() else [1], field.type) for field in schema}, schema=schema),
    )


def test_an_older_table_is_migrated_before_the_first_write(tmp_path):
    spec = TABLES[NAME]
    make_table(tmp_path, pa.schema([field for field in spec.schema if field.name not in ("excerpt_hash", "written_at")]))
    assert read_delta(tmp_path, NAME).column("excerpt_hash").to_pylist() == [None]
    with pytest.raises(StoreError, match="excerpt_hash"):
        load(tmp_path, edges(2, "new"))
    assert migrate_table(tmp_path, NAME) == ["excerpt_hash", "written_at"]
    assert migrate_table(tmp_path, NAME) == []
    load(tmp_path, edges(2, "new"))
    assert keys_of(tmp_path) == ["new", "old"]
    assert sorted(map(str, read_delta(tmp_path, NAME).column("written_at").to_pylist())) == sorted(["None", str(NOW)])
    assert rewrite_table(tmp_path, NAME, ["excerpt_hash"], lambda table: np.ones(table.num_rows, bool)).rows_deleted == 0
    check_log(tmp_path, NAME)


@pytest.mark.parametrize("field", [pa.field("colour", pa.string()), pa.field("epoch", pa.string())])
def test_a_newer_or_foreign_table_is_refused(tmp_path, field):
    make_table(tmp_path, pa.schema([*(each for each in TABLES[NAME].schema if each.name not in (field.name, "written_at")), field]))
    for act in (lambda: migrate_table(tmp_path, NAME), lambda: load(tmp_path, edges(1, "a"))):
        with pytest.raises(StoreError, match=field.name):
            act()
    assert table_version(tmp_path, NAME) == 0
