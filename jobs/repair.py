"""A lake that lost data files or its pointer → one that a run can go on with.

A lost file is taken off its table's log. The records that may have had rows in it become rejects of the retryable class `store`, which the
same run, or the next one on their sources, indexes again: until then they are counted and named, never half there. Which records these are
is told by epochs: a record's rows of one table lie in one file, written in the same epoch as its other rows of the same stage. The
invariant: the ledger forgets before the file is dropped, so that a repair that is killed is done again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import DataFile, drop_files, list_data_files, lost_files, read_data_file, rewrite_table, write_data_file
from raydex.cluster.lake import Lake, check_tables, load_ledger, restore_active
from raydex.ir.errors import StoreError
from raydex.ir.tables import RECORD_TABLES, TABLES
from raydex.jobs.one_model import say_sources

Say = Callable[[str], None]
Lost = dict[str, list[DataFile]]


def make_whole(lake: Lake, run_id: str, say: Say) -> bool:
    """What a run does before its first write: checks the tables, and repairs what can be. Returns whether rows were lost.

    Raises StoreError for what cannot be repaired: a broken log, entries that are gone. The caller holds the lake's lock.
    """
    try:
        _check(lake, say)
        return False
    except StoreError as error:
        try:
            lost: Lost = {name: files for name in TABLES if (files := lost_files(lake.tables, name))}
        except StoreError as second:
            raise error from second
        if not lost:
            raise
    repair_tables(lake, run_id, lost, say)
    _check(lake, say)
    return True


def _check(lake: Lake, say: Say) -> None:
    number = restore_active(lake)
    if number is not None:
        say(f"The pointer to the active generation was lost: it points to {number} again, the newest complete one.")
    check_tables(lake)


def repair_tables(lake: Lake, run_id: str, lost: Lost, say: Say) -> None:
    """Takes lost data files, by table, off their tables. The lake stays marked as unfinished until a run has ended."""
    lake.mark_dirty(run_id)
    if "records" in lost:
        _drop(lake, "records", lost, say)
        say("Records that were in it are unknown until their sources are indexed again.")
    ledger = load_ledger(lake)
    forgotten: set[str] = set()
    for name in RECORD_TABLES:
        for file in lost.get(name, ()):
            forgotten |= records_of(lake, ledger, name, file, lost)
    if forgotten:
        rows = forget(lake, ledger, forgotten, ", ".join(sorted(set(lost) & set(RECORD_TABLES))))
        say(f"To be indexed again, with their sources: {say_sources(Counter(rows.column('source_name').to_pylist()))}.")
    for name in lost:
        if name != "records":
            _drop(lake, name, lost, say)


def _drop(lake: Lake, name: str, lost: Lost, say: Say) -> None:
    drop_files(lake.tables, name, lost[name], metadata={"raydex.repair": name})
    say(f"Table {name} lost {len(lost[name])} data files; they were taken off its log.")


def records_of(lake: Lake, ledger: pa.Table, name: str, file: DataFile, lost: Lost) -> set[str]:
    """Records that may have had rows in a lost file of a table: those that the stage succeeded for, that have no row left in the table, and
    whose other rows of the stage, if any, are of the file's epochs."""
    low, high = file.bounds("epoch") or (0, 2**62)
    stage = _stage(name)
    mark = pc.map_lookup(ledger.column("fingerprints"), pa.scalar(stage), "first")
    around = ledger.filter(pc.and_(pc.is_valid(mark), pc.greater_equal(ledger.column("epoch"), low)))
    candidates = set(around.column("record_id").to_pylist())
    inside: set[str] = set()
    outside: set[str] = set()
    for sibling in RECORD_TABLES:
        if _stage(sibling) != stage:
            continue
        for record, epoch in _epochs(lake, sibling, lost):
            if sibling == name:
                candidates.discard(record)
            elif low <= epoch <= high:
                inside.add(record)
            else:
                outside.add(record)
    return candidates - (outside - inside)


def _stage(name: str) -> str:
    return "parse" if TABLES[name].stage == "observe" else TABLES[name].stage


def _epochs(lake: Lake, name: str, lost: Lost) -> set[tuple[str, int]]:
    """(record, epoch) of the rows that are left in a table."""
    gone = {file.path for file in lost.get(name, ())}
    found: set[tuple[str, int]] = set()
    for file in list_data_files(lake.tables, name):
        if file.path not in gone:
            keys = (
                read_data_file(lake.tables, name, file.path, columns=["record_id", "epoch"]).group_by(["record_id", "epoch"]).aggregate([])
            )
            found.update(zip(keys.column("record_id").to_pylist(), keys.column("epoch").to_pylist(), strict=True))
    return found


def forget(lake: Lake, ledger: pa.Table, records: set[str], tables: str) -> pa.Table:
    """The ledger's rows of these records, as rejects that no stage stands for; one commit puts them in the place of the old ones."""
    ids = pa.array(sorted(records), pa.string())
    old = ledger.filter(pc.is_in(ledger.column("record_id"), ids)).to_pylist()
    changes: dict[str, Any] = {
        "state": "rejected",
        "missing": [],
        "fingerprints": [],
        "attempts": 0,
        "reject_class": "store",
        "error": f"a data file of {tables} was lost; the record is indexed again with its source",
    }
    rows = pa.Table.from_pylist([{**row, **changes} for row in old], schema=TABLES["records"].schema)
    written = write_data_file(lake.tables, "records", rows)
    rewrite_table(
        lake.tables,
        "records",
        ["record_id"],
        lambda part: pc.invert(pc.is_in(part.column("record_id"), ids)),
        add=[written],
        metadata={"raydex.repair": "records"},
    )
    return rows
