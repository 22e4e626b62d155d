"""Delta tables under faults: second writers, damaged logs and files, kills, full disks, exit codes (reliability §5 C1x, S1-S3)."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from delta_files import NAME, edges, keys_of, load, log_entry
from processes import NO_PANDAS, run_python
from shared_cases import case

from raydex.cluster.delta import (
    check_log,
    compact,
    list_data_files,
    read_delta,
    replace_table,
    rewrite_table,
    scan_delta,
    table_version,
    transaction_version,
    vacuum,
)
from raydex.cluster.delta_read import table_errors
from raydex.ir.errors import CapacityError, StoreError

# a second writer


def test_a_transaction_never_lands_twice(tmp_path):
    load(tmp_path, edges(1, "a"), txn=5)
    for number in (5, 4):
        with pytest.raises(StoreError, match="another writer"):
            load(tmp_path, edges(1, "a"), txn=number)
    assert (keys_of(tmp_path), transaction_version(tmp_path, NAME)) == (["a"], 5)
    load(tmp_path, edges(2, "b"))  # commits without a transaction keep the number
    assert transaction_version(tmp_path, NAME) == 5


RACE = (
    NO_PANDAS
    + """
import sys
from raydex.cluster.delta import commit_files, write_data_file
from raydex.ir.errors import StoreError
from raydex.ir.rows import to_table
root, worker, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for n in range(rounds):
    rows = to_table("chunk_edges", {"edge_id": [f"{worker}_{n}"], "epoch": [n]})
    try:
        commit_files(root, "chunk_edges", [write_data_file(root, "chunk_edges", rows, fsync=False)], txn_version=n + 1)
        print("landed", f"{worker}_{n}", flush=True)
    except StoreError as error:
        assert "another writer" in str(error) or "cannot be made" in str(error), error
"""
)


@pytest.mark.parametrize("count", [2, 4])
def test_of_several_writers_one_wins_each_batch(tmp_path, count):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    workers = [subprocess.Popen([sys.executable, "-c", RACE, tmp_path, f"w{n}", "8"], text=True, **pipes) for n in range(count)]
    assert [worker.stdout.readline() for worker in workers] == ["ready\n"] * count
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    outs = [worker.communicate(timeout=120) for worker in workers]
    assert [(worker.returncode, err) for worker, (_, err) in zip(workers, outs)] == [(0, "")] * count
    landed = sorted(line.split()[1] for out, _ in outs for line in out.splitlines())
    assert keys_of(tmp_path) == landed
    assert sorted(int(key.split("_")[1]) for key in landed) == sorted({int(key.split("_")[1]) for key in landed})
    commits = [log_entry(tmp_path, version).read_text() for version in range(table_version(tmp_path, NAME) + 1)]
    assert sum('"add"' in commit for commit in commits) == len(landed)  # two may both make the table, which adds no rows
    check_log(tmp_path, NAME)


# damage


def damaged_log(root: Path, damage: str) -> Path:
    for epoch in range(1, 4):
        load(root, edges(epoch, f"e{epoch}"), edges(epoch, f"f{epoch}"), txn=epoch)
    newest = log_entry(root, 3)
    raw = newest.read_bytes()
    lines = raw.splitlines(keepends=True)
    if damage == "empty":
        newest.write_bytes(b"")
    elif damage == "blank":
        newest.write_bytes(b"\n")
    elif damage == "torn":
        newest.write_bytes(raw[: len(raw) // 2])
    elif damage == "torn at a line's end":
        newest.write_bytes(b"".join(lines[:2]))
    elif damage == "other bytes":
        newest.write_bytes(b"\x00" * len(raw))
    elif damage == "no objects":
        newest.write_bytes(b"[]\n")
    elif damage == "doubled":
        newest = log_entry(root, 4)
        newest.write_bytes(raw)
    elif damage == "gap":
        newest = log_entry(root, 2)
        newest.unlink()
    return newest


@pytest.mark.parametrize("damage", ["empty", "blank", "torn", "torn at a line's end", "other bytes", "no objects", "doubled", "gap"])
def test_a_damaged_log_is_found_by_name_and_can_be_repaired(tmp_path, damage):
    path = damaged_log(tmp_path, damage)
    with pytest.raises(StoreError) as caught:
        check_log(tmp_path, NAME)
    assert caught.value.place == str(path)
    assert NAME in str(caught.value)
    assert caught.value.remedy
    if damage == "gap":
        return
    path.unlink()
    check_log(tmp_path, NAME)
    assert len(keys_of(tmp_path)) == (6 if damage == "doubled" else 4)


@pytest.mark.parametrize("cut", range(0, 2000, 97))
def test_a_newest_entry_cut_anywhere_is_found(tmp_path, cut):
    load(tmp_path, edges(1, "a"), edges(1, "b"), txn=1)
    path = log_entry(tmp_path, 1)
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) * cut // 2000])
    with pytest.raises(StoreError, match="entry of version 1"):
        check_log(tmp_path, NAME)


def test_a_whole_log_passes_with_every_kind_of_commit(tmp_path):
    load(tmp_path, edges(1, "a"), edges(1, "b"), txn=1)
    rewrite_table(tmp_path, NAME, ["edge_id"], lambda table: pc.not_equal(table.column("edge_id"), "a"))
    vacuum(tmp_path, NAME, [], timedelta(0))
    load(tmp_path, edges(2, "c"))
    compact(tmp_path, NAME)
    replace_table(tmp_path, NAME, [])
    check_log(tmp_path, NAME, entries=99)


def test_long_logs_get_checkpoints_and_still_check(tmp_path):
    for epoch in range(1, 54):
        load(tmp_path, edges(epoch, f"e{epoch}"), txn=epoch)
    assert [path.name[:20] for path in (tmp_path / NAME / "_delta_log").glob("*.checkpoint.parquet")] == [f"{50:020}"]
    check_log(tmp_path, NAME)
    assert len(keys_of(tmp_path)) == 53
    assert len(keys_of(tmp_path, version=7)) == 7
    assert transaction_version(tmp_path, NAME) == 53
    assert {file.bounds("epoch") for file in list_data_files(tmp_path, NAME)} == {(epoch, epoch) for epoch in range(1, 54)}
    log_entry(tmp_path, 20).unlink()  # older than the checkpoint: not needed for the newest version
    check_log(tmp_path, NAME)
    log_entry(tmp_path, 51).unlink()
    with pytest.raises(StoreError, match=r"version 51 .* is missing"):
        check_log(tmp_path, NAME)


@pytest.mark.parametrize("damage", ["missing", "truncated", "empty"])
def test_a_damaged_data_file_is_named(tmp_path, damage):
    load(tmp_path, edges(1, "a"), edges(2, "b"), edges(3, "c"))
    path = tmp_path / NAME / sorted(file.path for file in list_data_files(tmp_path, NAME))[1]
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-50] if damage == "truncated" else b"")
    for look in (lambda: check_log(tmp_path, NAME), lambda: read_delta(tmp_path, NAME), lambda: list(scan_delta(tmp_path, NAME))):
        with pytest.raises(StoreError) as caught:
            look()
        assert caught.value.place == str(path)
        assert caught.value.remedy


def test_flipped_bits_are_never_read_as_values(tmp_path):
    rng = random.Random(52)
    rows = edges(1, *(f"edge {n} {rng.random()}" for n in range(400)))
    load(tmp_path, rows)
    (file,) = list_data_files(tmp_path, NAME)
    path = tmp_path / NAME / file.path
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    spots = [rng.randrange(len(whole)) for _ in range(150)] + [rng.randrange(footer, len(whole)) for _ in range(50)]
    loud = 0
    for spot in spots:
        raw = bytearray(whole)
        raw[spot] ^= 1 << rng.randrange(8)
        path.write_bytes(raw)
        for where in (None, pc.field("epoch") == 1):
            try:
                assert read_delta(tmp_path, NAME, where=where).equals(rows)  # a bit that no value hangs on
            except StoreError as error:
                assert error.place == str(path)
                loud += 1
    assert loud > 380


def test_engine_errors_and_panics_are_typed(tmp_path):
    class PanicException(BaseException):
        """What the Rust layer raises."""

    for error in (PanicException("boom\n at frame"), OSError(5, "I/O error"), pa.ArrowInvalid("bad")):
        with (
            pytest.raises(StoreError, match=r"table blocks at version 3: reading: .*(boom|I/O error|bad)$"),
            table_errors("", "blocks", 3, "reading"),
        ):
            raise error
    for error in (OSError(28, "No space left"), OSError("Generic: Os { code: 28, kind: StorageFull }")):
        with pytest.raises(CapacityError), table_errors(tmp_path, "blocks", 3, "writing"):
            raise error
    with pytest.raises(KeyboardInterrupt), table_errors(tmp_path, "blocks", 3, "writing"):
        raise KeyboardInterrupt


def test_tables_with_foreign_features_are_refused(tmp_path):
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / NAME), edges(1, "a"), partition_by=["epoch"])
    with pytest.raises(StoreError, match="partitions"):
        read_delta(tmp_path, NAME)


# processes: exit codes, kills, full disks

WORK = """
import sys
from raydex.cluster.delta import *
from raydex.ir.rows import to_table
root, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for n in range(first, last):
    rows = to_table("chunk_edges", {"edge_id": [f"e{n}_{k}" for k in range(50)], "epoch": [n] * 50})
    commit_files(root, "chunk_edges", [write_data_file(root, "chunk_edges", rows)], txn_version=n)
table = read_delta(root, "chunk_edges")
assert table.num_rows == sum(batch.num_rows for batch in scan_delta(root, "chunk_edges"))
rewrite_table(root, "chunk_edges", ["edge_id"], lambda part: [] if not part.num_rows else part.column("edge_id").is_valid())
"""


def test_processes_that_write_and_read_end_with_0(tmp_path):
    for run in range(10):
        done = run_python(WORK, tmp_path / str(run), 1, 3)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_30_of_30_processes_end_with_0(tmp_path):
    codes = [run_python(WORK, tmp_path / str(run), 1, 4, pandas=True).returncode for run in range(30)]
    assert codes == [0] * 30


def test_case_b52(tmp_path):
    rows = json.loads((case("b52-delta-read-exit-code") / "rows.json").read_text())
    code = """
import sys, json
from raydex.cluster.delta import commit_files, read_delta, write_data_file
from raydex.ir.rows import to_table
rows = json.loads(sys.argv[2])
table = to_table("ranks", {"node_id": [row["id"] for row in rows], "pagerank": [float(row["v"]) for row in rows]})
commit_files(sys.argv[1], "ranks", [write_data_file(sys.argv[1], "ranks", table)])
assert read_delta(sys.argv[1], "ranks").column("node_id").to_pylist() == [row["id"] for row in rows]
"""
    codes = [run_python(code, tmp_path / str(run), json.dumps(rows)).returncode for run in range(10)]
    assert codes == [0] * 10
    assert run_python(code + "raise SystemExit(3)", tmp_path / "bad", json.dumps(rows)).returncode == 3


@pytest.mark.parametrize(
    ("point", "landed"), [("data_file.written", 1), ("delta.commit:chunk_edges:before", 1), ("delta.commit:chunk_edges:after", 2)]
)
def test_a_writer_killed_around_a_commit(tmp_path, point, landed):
    killed = run_python(WORK, tmp_path, 1, 9, RAYDEX_FAULT=f"{point}:kill:2")
    assert killed.returncode == -signal.SIGKILL
    check_log(tmp_path, NAME)
    assert table_version(tmp_path, NAME) == landed
    assert read_delta(tmp_path, NAME).num_rows == 50 * landed
    assert run_python(WORK, tmp_path, landed + 1, 4).returncode == 0
    assert read_delta(tmp_path, NAME).num_rows == 150


FULL = """
import resource, sys
from raydex.cluster.delta import *
from raydex.ir.errors import CapacityError
from raydex.ir.rows import to_table
root, limit, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def rows(n, count): return to_table("chunk_edges", {"edge_id": [f"e{n}_{k}" for k in range(count)], "epoch": [n] * count})
def limit_files(size): resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
commit_files(root, "chunk_edges", [write_data_file(root, "chunk_edges", rows(1, 5))], txn_version=1)
more = [write_data_file(root, "chunk_edges", rows(2, 5)) for _ in range(40)]
limit_files(limit)
try:
    if what == "data":
        write_data_file(root, "chunk_edges", rows(2, 50_000))
    else:
        commit_files(root, "chunk_edges", more, txn_version=2)
except CapacityError as error:
    print("typed", error)
limit_files(resource.RLIM_INFINITY)
check_log(root, "chunk_edges")
assert (table_version(root, "chunk_edges"), read_delta(root, "chunk_edges").num_rows) == (1, 5)
commit_files(root, "chunk_edges", more, txn_version=2)
assert read_delta(root, "chunk_edges").num_rows == 205
"""


@pytest.mark.parametrize("what", ["data", "log"])
def test_a_full_disk_is_typed_and_loses_nothing(tmp_path, what):
    done = run_python(FULL, tmp_path, 8_000, what)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("typed")
    assert not [path for path in (tmp_path / NAME / "_delta_log").iterdir() if path.suffix not in (".json",)]


def test_a_read_only_copy_can_be_read(tmp_path):
    root = tmp_path / "lake"
    load(root, edges(1, "a"))
    before = sorted((path, path.stat().st_mtime_ns) for path in root.rglob("*"))
    for path in root.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert keys_of(root) == ["a"]
    check_log(root, NAME)
    assert sorted((path, path.stat().st_mtime_ns) for path in root.rglob("*")) == before
    shutil.rmtree(root)
