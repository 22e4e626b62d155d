"""Lakes: layout, the one writer, epochs that are never used twice, generations that readers pin."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from processes import NO_PANDAS, run_python

from raydex.cluster.delta import commit_files, read_delta, rewrite_table, vacuum, write_data_file
from raydex.cluster.lake import (
    Generation,
    Lake,
    acknowledged_epoch,
    activate_generation,
    active_generation,
    check_tables,
    complete_generation,
    kept_generations,
    load_generations,
    load_ledger,
    next_epoch,
    next_number,
    pin_versions,
    read_pinned,
    restore_active,
)
from raydex.ir.errors import ConfigError, LockError, StoreError
from raydex.ir.rows import to_table
from raydex.ir.tables import TABLES


@pytest.fixture
def lake(tmp_path) -> Lake:
    return Lake(tmp_path / "lake")


def add(lake: Lake, name: str, epoch: int, *keys: str, **columns: list) -> int:
    rows = to_table(name, {TABLES[name].key: list(keys), "epoch": [epoch] * len(keys), **columns})
    return commit_files(lake.tables, name, [write_data_file(lake.tables, name, rows, fsync=False)], txn_version=epoch)


def keys(table: pa.Table, name: str) -> list[str]:
    return sorted(table.column(TABLES[name].key).to_pylist())


def tree(root: Path) -> list[tuple[str, int, bytes]]:
    return sorted((str(p), p.stat().st_mtime_ns, b"" if p.is_dir() else p.read_bytes()) for p in [root, *root.rglob("*")])


# layout


def test_a_lake_is_made_once_and_opened_again(tmp_path):
    lake = Lake(tmp_path / "a" / "lake")
    assert {path.name for path in lake.root.iterdir()} == {"lake.json", "tables", "objects", "stores", "staging"}
    made = (lake.root / "lake.json").read_bytes()
    assert json.loads(made)["format"] == 1
    assert (lake.tables, lake.objects) == (lake.root / "tables", lake.root / "objects")
    (lake.root / "stores").rmdir()
    assert Lake(str(lake.root)).root == lake.root
    assert (lake.root / "stores").is_dir()
    assert (lake.root / "lake.json").read_bytes() == made
    assert pickle.loads(pickle.dumps(lake)).root == lake.root
    assert Lake(lake.root.as_uri()).root == lake.root


def test_relative_roots_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Lake("lake").root == tmp_path / "lake"


def test_a_folder_that_is_no_lake_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    before = tree(tmp_path)
    for act in (Lake, Lake.open):
        with pytest.raises(ConfigError, match=r"no lake|not empty") as caught:
            act(tmp_path)
        assert str(tmp_path) in str(caught.value)
    with pytest.raises(ConfigError, match="is a file"):
        Lake(tmp_path / "thesis.txt")
    assert tree(tmp_path) == before
    empty = tmp_path / "empty"
    empty.mkdir()
    assert Lake(empty).root == empty


def test_opening_for_reading_writes_nothing(lake):
    for name in ("stores", "staging", "objects"):
        (lake.root / name).rmdir()
    add(lake, "ranks", 1, "a")
    complete_generation(lake, Generation(1, pin_versions(lake)))
    before = tree(lake.root)
    reader = Lake.open(lake.root)
    assert keys(read_pinned(reader, active_generation(reader), "ranks"), "ranks") == ["a"]
    assert (next_epoch(reader), acknowledged_epoch(reader), load_ledger(reader).num_rows, reader.dirty()) == (2, 0, 0, None)
    assert kept_generations(reader)
    assert check_tables(reader) == {}
    assert tree(lake.root) == before


def test_no_lake_at_all(tmp_path):
    with pytest.raises(ConfigError, match="there is no lake"):
        Lake.open(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    for act in (Lake, Lake.open):
        with pytest.raises(ConfigError, match="s3"):
            act("s3://bucket/lake")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b'{"format": 2}', "format 2"), (b'{"format": "x"}', "format x"), (b"{", "damaged"), (b"[]", "damaged"), (b"", "damaged")],
)
def test_a_newer_or_damaged_format_is_refused(lake, content, message):
    (lake.root / "lake.json").write_bytes(content)
    for act in (Lake, Lake.open):
        with pytest.raises(ConfigError, match=message):
            act(lake.root)


def test_every_lake_has_an_id_of_its_own(tmp_path):
    first, second = Lake(tmp_path / "a"), Lake(tmp_path / "b")
    assert len({first.lake_id, second.lake_id, ""}) == 3
    assert Lake.open(first.root).lake_id == first.lake_id
    (first.root / "lake.json").write_text('{"format": 1, "made_at": "2025"}')  # an older release
    assert Lake(first.root).lake_id == ""
    with first.lock("run_1"):
        named = first.lake_id
    with first.lock("run_2"):
        assert first.lake_id == named != ""
    assert json.loads((first.root / "lake.json").read_text()) == {"format": 1, "made_at": "2025", "lake_id": named}


def test_places_move_with_the_lake(lake):
    assert lake.place("stores/vectors.db") == str(lake.root / "stores" / "vectors.db")
    assert lake.place("/data/vectors.db") == "/data/vectors.db"
    assert lake.place("http://host:19530") == "http://host:19530"


# the one writer

HOLD = """
import os, sys, time
from raydex.cluster.lake import Lake
lake = Lake(sys.argv[1])
with lake.lock("run_first"):
    if len(sys.argv) > 2 and os.fork() == 0:
        os.close(1)
        time.sleep(600)
    print("held", flush=True)
    sys.stdin.readline()
"""


def hold(lake: Lake, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", NO_PANDAS + HOLD, str(lake.root), *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_the_second_run_is_told_who_holds_the_lake(lake):
    process = hold(lake)
    with pytest.raises(LockError) as caught, lake.lock("run_second"):
        pytest.fail("two writers")
    assert caught.value.exit_code == 3
    assert all(word in str(caught.value) for word in ("run_first", f"process {process.pid}", str(lake.root)))
    process.communicate("end\n", timeout=60)
    assert process.returncode == 0
    with lake.lock("run_second"):
        assert "run_second" in (lake.root / "writer.lock").read_text()
    assert (lake.root / "writer.lock").read_text() == ""


def test_the_lock_is_free_at_once_after_a_kill(lake):
    process = hold(lake)
    process.kill()
    process.communicate(timeout=60)
    with lake.lock("run_second"):
        pass


def test_a_forked_child_does_not_keep_the_lock(lake):
    process = hold(lake, "fork")
    process.kill()
    process.communicate(timeout=60)
    with lake.lock("run_second"):
        pass
    os.killpg(process.pid, signal.SIGKILL)  # the child


def test_a_lock_excludes_the_same_process_too_and_ends_with_an_error(lake):
    with pytest.raises(RuntimeError, match="stop"), lake.lock("run_1"):
        with pytest.raises(LockError, match="run_1"), lake.lock("run_2"):
            pytest.fail("two writers")
        raise RuntimeError("stop")
    with lake.lock("run_3"):
        pass


def test_a_holder_that_has_not_said_its_name(lake):
    with lake.lock("run_1"):
        (lake.root / "writer.lock").write_text("")
        with pytest.raises(LockError, match="not said its name"), lake.lock("run_2"):
            pytest.fail("two writers")


def test_a_writer_that_was_killed_is_told_from_one_at_work(lake, monkeypatch):
    assert lake.writer() is None
    with lake.lock("run_1"):
        held = (lake.root / "writer.lock").read_bytes()
        assert (lake.writer().run_id, lake.writer().pid, lake.writer().life) == ("run_1", os.getpid(), "alive")
    assert lake.writer() is None
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    for change, life in (
        ({}, "alive"),
        ({"born": "another boot"}, "gone"),  # the number belongs to another process by now
        ({"pid": child.pid}, "gone"),  # ended, and not yet waited for
        ({"pid": 2**30}, "gone"),
        ({"host": "elsewhere.example"}, "elsewhere"),
    ):
        about = {**json.loads(held), **change}
        if about["pid"] == child.pid:
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        (lake.root / "writer.lock").write_text(json.dumps(about))
        assert lake.writer().life == life, change
    child.wait()
    (lake.root / "writer.lock").write_text("{")
    assert lake.writer() is None


def test_an_unfinished_run_leaves_a_note(lake):
    assert lake.dirty() is None
    lake.mark_dirty("run_1")
    assert Lake.open(lake.root).dirty() == "run_1"
    lake.clear_dirty()
    lake.clear_dirty()
    assert lake.dirty() is None


# ledger and epochs


def test_the_ledger_gives_the_newest_row_of_a_record(lake):
    assert load_ledger(lake).schema == TABLES["records"].schema
    add(lake, "records", 1, "r1", "r2", state=["indexed", "rejected"])
    add(lake, "records", 3, "r2", "r3", state=["indexed", "degraded"])
    ledger = load_ledger(lake)
    assert ledger.schema == TABLES["records"].schema
    assert ledger.select(["record_id", "state", "epoch"]).to_pylist() == [
        {"record_id": "r1", "state": "indexed", "epoch": 1},
        {"record_id": "r2", "state": "indexed", "epoch": 3},
        {"record_id": "r3", "state": "degraded", "epoch": 3},
    ]
    assert load_ledger(lake, columns=["state"]).to_pylist() == [{"state": "indexed"}, {"state": "indexed"}, {"state": "degraded"}]


def test_epochs_are_never_used_twice(lake):
    assert (next_epoch(lake), acknowledged_epoch(lake)) == (1, 0)
    add(lake, "blocks", 1, "b1")
    assert (next_epoch(lake), acknowledged_epoch(lake)) == (2, 0)  # killed before the ledger's commit: the next run takes 2
    add(lake, "blocks", 2, "b2")
    add(lake, "records", 2, "r1")
    assert (next_epoch(lake), acknowledged_epoch(lake)) == (3, 2)
    add(lake, "chunks", 7, "c1")
    rewrite_table(lake.tables, "chunks", ["epoch"], lambda table: pc.less_equal(table.column("epoch"), 2))
    assert read_delta(lake.tables, "chunks").num_rows == 0
    assert (next_epoch(lake), acknowledged_epoch(lake)) == (8, 2)  # its rows are gone, the transaction is not


def test_epochs_without_transactions_or_statistics_count(lake):
    rows = to_table("events", {"event_id": ["e1", "e2"], "epoch": [9, None]})
    file = write_data_file(lake.tables, "events", rows)
    commit_files(lake.tables, "events", [file])
    assert file.bounds("epoch") is None
    assert next_epoch(lake) == 10


KILLED = """
import sys
from raydex.cluster.delta import commit_files, write_data_file
from raydex.cluster.lake import Lake, next_epoch
from raydex.ir.rows import to_table
lake = Lake(sys.argv[1])
with lake.lock("run"):
    epoch = next_epoch(lake)
    for name, key in (("blocks", "block_id"), ("records", "record_id")):
        rows = to_table(name, {key: [f"{key}{epoch}"], "epoch": [epoch]})
        commit_files(lake.tables, name, [write_data_file(lake.tables, name, rows)], txn_version=epoch)
print(epoch)
"""


def test_a_run_killed_between_data_and_ledger(lake):
    assert run_python(KILLED, lake.root).stdout == "1\n"
    assert run_python(KILLED, lake.root, RAYDEX_FAULT="delta.commit:records:before:kill").returncode == -signal.SIGKILL
    assert (next_epoch(lake), acknowledged_epoch(lake)) == (3, 1)
    assert read_delta(lake.tables, "blocks", where=pc.field("epoch") > acknowledged_epoch(lake)).num_rows == 1
    assert run_python(KILLED, lake.root).stdout == "3\n"
    assert load_ledger(lake).column("epoch").to_pylist() == [1, 3]
    check_tables(lake)


# generations


def test_readers_see_only_what_the_active_generation_pins(lake):
    assert active_generation(lake) is None
    add(lake, "ranks", 1, "a")
    assert read_pinned(lake, None, "ranks").num_rows == 0
    first = Generation(
        1,
        pin_versions(lake),
        run_id="run_1",
        epoch=1,
        sources={"src_1": {"name": "é", "commit": "abc", "dirty": ["a b"]}},
        source_manifest="m",
        projection_hash="p",
        cursors={"vectors": {"generation": 1, "collection": "c"}},
        fingerprints={"parse": "f1", "chunk": "f2"},
        written_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    complete_generation(lake, first)
    assert active_generation(lake) == first
    add(lake, "ranks", 2, "b")
    add(lake, "nodes", 2, "n")
    assert keys(read_pinned(lake, active_generation(lake), "ranks"), "ranks") == ["a"]
    assert read_pinned(lake, active_generation(lake), "nodes").num_rows == 0
    assert read_pinned(lake, first, "nodes", columns=["name"]).column_names == ["name"]
    complete_generation(lake, Generation(2, pin_versions(lake), "run_2"))
    assert keys(read_pinned(lake, active_generation(lake), "ranks", where=pc.field("epoch") > 1), "ranks") == ["b"]
    assert [generation.number for generation in load_generations(lake)] == [1, 2]
    activate_generation(lake, 1)  # rollback
    assert keys(read_pinned(lake, active_generation(lake), "ranks"), "ranks") == ["a"]
    with pytest.raises(StoreError, match="no generation 9"):
        activate_generation(lake, 9)


def test_generation_numbers_follow(lake):
    complete_generation(lake, Generation(1, {}))
    for number in (1, 3):
        with pytest.raises(StoreError, match="number 2 is next"):
            complete_generation(lake, Generation(number, {}))
    assert (next_number(lake), len(load_generations(lake))) == (2, 1)


SWITCH = """
import sys
from raydex.cluster.lake import *
lake = Lake(sys.argv[1])
complete_generation(lake, Generation(next_number(lake), pin_versions(lake), "run"))
"""


@pytest.mark.parametrize(("point", "active", "following"), [("before", 1, 2), ("row", 1, 3), ("after", 2, 3)])
def test_a_kill_while_a_generation_is_completed(lake, point, active, following):
    complete_generation(lake, Generation(1, {}))
    killed = run_python(SWITCH, lake.root, RAYDEX_FAULT=f"generation.complete:{point}:kill")
    assert killed.returncode == -signal.SIGKILL
    reader = Lake.open(lake.root)
    assert (active_generation(reader).number, next_number(reader)) == (active, following)
    assert run_python(SWITCH, lake.root).returncode == 0
    assert active_generation(reader).number == following
    assert not list(lake.root.glob(".*"))


def test_vacuum_spares_every_kept_generation(lake):
    for epoch in range(1, 6):
        rewrite_table(lake.tables, "ranks", ["epoch"], lambda table: pc.less(table.column("epoch"), 0))
        add(lake, "ranks", epoch, f"k{epoch}")
        complete_generation(lake, Generation(epoch, pin_versions(lake), complete=epoch != 4))
    activate_generation(lake, 1)
    kept = kept_generations(lake, 2)
    assert [generation.number for generation in kept] == [1, 3, 5]
    assert [generation.number for generation in kept_generations(lake)] == [1, 2, 3, 5]
    vacuum(lake.tables, "ranks", [generation.table_versions["ranks"] for generation in kept], timedelta(0))
    assert [keys(read_pinned(lake, generation, "ranks"), "ranks") for generation in kept] == [["k1"], ["k3"], ["k5"]]
    with pytest.raises(StoreError, match="missing"):
        read_pinned(lake, load_generations(lake)[1], "ranks")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"number": "x"}'])
def test_a_damaged_pointer_is_named(lake, content):
    complete_generation(lake, Generation(1, {}))
    (lake.root / "ACTIVE").write_bytes(content)
    with pytest.raises(StoreError, match="damaged") as caught:
        active_generation(lake)
    assert caught.value.place.endswith("ACTIVE")


def test_a_pointer_to_nothing_is_named(lake):
    complete_generation(lake, Generation(1, {}))
    (lake.root / "ACTIVE").write_bytes(b'{"number": 7}')
    with pytest.raises(StoreError, match="generation 7 is active"):
        active_generation(lake)


@pytest.mark.parametrize("content", [None, b"{", b'{"number": 7}', b'{"number": 3}'])
def test_a_writer_points_to_the_newest_complete_generation_again(lake, content):
    assert restore_active(lake) is None
    for number in (1, 2, 3):
        complete_generation(lake, Generation(number, {}, complete=number != 3))
    activate_generation(lake, 1)
    assert restore_active(lake) is None
    assert active_generation(lake).number == 1  # a rollback stands
    (lake.root / "ACTIVE").unlink()
    if content is not None:
        (lake.root / "ACTIVE").write_bytes(content)
    expected = 3 if content == b'{"number": 3}' else 2
    assert restore_active(lake) == (None if expected == 3 else 2)
    assert active_generation(lake).number == expected


def test_a_pointer_without_any_generation_is_taken_away(lake):
    (lake.root / "ACTIVE").write_bytes(b"{")
    assert restore_active(lake) is None
    assert active_generation(lake) is None


# before the first write


def test_lost_log_entries_are_noticed_by_the_pins(lake):
    add(lake, "ranks", 1, "a")
    version = add(lake, "ranks", 2, "b")
    complete_generation(lake, Generation(1, pin_versions(lake)))
    check_tables(lake)
    (lake.tables / "ranks" / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(StoreError, match=f"ends at version {version - 1}"):
        check_tables(lake)
    shutil.rmtree(lake.tables / "ranks")
    with pytest.raises(StoreError, match="ends at version None"):
        check_tables(lake)


def test_tables_of_another_release(lake):
    from deltalake import write_deltalake

    schema = pa.schema([pa.field("node_id", pa.string(), nullable=False), ("epoch", pa.int64())])
    older = pa.table({"node_id": ["a"], "epoch": [1]}, schema=schema)
    write_deltalake(str(lake.tables / "ranks"), older)
    write_deltalake(str(lake.tables / "rejects"), older)
    before = tree(lake.tables)
    with pytest.raises(StoreError, match="table rejects was written by another release"):
        check_tables(lake)
    assert tree(lake.tables) == before  # refused before the first write
    shutil.rmtree(lake.tables / "rejects")
    assert check_tables(lake) == {"ranks": ["pagerank", "record_id", "content_hash", "fingerprint", "run_id", "written_at"]}
    assert check_tables(lake) == {}
    add(lake, "ranks", 2, "b")
    assert keys(read_delta(lake.tables, "ranks"), "ranks") == ["a", "b"]
