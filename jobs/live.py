"""Which rows are live: the ledger alone decides.

A row of a record's table is live when the ledger holds its record with the row's content hash, and with the row's fingerprint for the
stage that made it, and no later epoch wrote the same again. Everything else is what a killed run, an edit or a deletion left behind;
`sweep` removes it, and doing so twice changes nothing (contracts 10, 11). The live rejects of a record are those of the epoch of its ledger
row: what stands of earlier ones is written again with each new epoch of the record (`jobs/rejects.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import DataFile, read_delta, rewrite_table, scan_delta
from raydex.cluster.lake import Generation, Lake, load_ledger
from raydex.ir.tables import RECORD_TABLES, TABLES

KEYS = ["record_id", "content_hash", "fingerprint", "epoch"]


def live_rows(table: pa.Table, hashes: dict[str, str], fingerprint: str) -> pa.Table:
    """The live rows of one table among records whose content hashes are given."""
    if table.num_rows == 0:
        return table
    wanted = pa.array([hashes.get(record) for record in table.column("record_id").to_pylist()], pa.string())
    mask = pc.and_(pc.equal(table.column("content_hash"), wanted), pc.equal(table.column("fingerprint"), fingerprint))
    table = table.filter(pc.fill_null(mask, False))
    if table.num_rows == 0:
        return table
    latest = table.group_by("record_id").aggregate([("epoch", "max")])
    top = dict(zip(latest.column("record_id").to_pylist(), latest.column("epoch_max").to_pylist()))
    keep = [top[r] == e for r, e in zip(table.column("record_id").to_pylist(), table.column("epoch").to_pylist())]
    return table.filter(pa.array(keep, pa.bool_()))


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did."""

    tables: dict[str, int]
    bytes_written: int

    @property
    def rows(self) -> int:
        return sum(self.tables.values())


def sweep(lake: Lake, ledger: pa.Table, tables: Iterable[str] = RECORD_TABLES) -> Swept:
    """Removes every dead row from the tables: one commit a table that has any."""
    removed: dict[str, int] = {}
    written = 0
    for name in tables:
        live = live_epochs(lake, ledger, name)

        def keep(part: pa.Table, live: dict[str, int] = live) -> np.ndarray:
            epochs = part.column("epoch").to_numpy()
            wanted = np.fromiter((live.get(r, -1) for r in part.column("record_id").to_pylist()), np.int64, len(epochs))
            return epochs == wanted

        done = rewrite_table(lake.tables, name, ["record_id", "epoch"], keep, metadata={"raydex.sweep": name})
        if done.rows_deleted:
            removed[name] = done.rows_deleted
            written += done.bytes_written
    return Swept(removed, written)


def live_epochs(lake: Lake, ledger: pa.Table, name: str) -> dict[str, int]:
    """record_id → the epoch whose rows in table `name` are live. Records without live rows are absent."""
    if name == "rejects":
        known = ledger.filter(pc.not_equal(ledger.column("reject_class"), ""))
        return dict(zip(known.column("record_id").to_pylist(), known.column("epoch").to_pylist()))
    stage = TABLES[name].stage
    expected: dict[str, tuple[str, str | None]] = {}
    prints = ledger.column("fingerprints").to_pylist()
    for record, content, marks in zip(ledger.column("record_id").to_pylist(), ledger.column("content_hash").to_pylist(), prints):
        expected[record] = (content, dict(marks or ()).get("parse" if stage == "observe" else stage))
    live: dict[str, int] = {}
    for batch in scan_delta(lake.tables, name, columns=KEYS):
        groups = pa.table(batch).group_by(KEYS).aggregate([]) if isinstance(batch, pa.RecordBatch) else batch.group_by(KEYS).aggregate([])
        for record, content, fingerprint, epoch in zip(*(groups.column(key).to_pylist() for key in KEYS)):
            if expected.get(record) == (content, fingerprint) and epoch > live.get(record, -1):
                live[record] = epoch
    return live


def sweep_unacknowledged(lake: Lake, acknowledged: int) -> Swept:
    """Removes rows of epochs that the ledger does not know: the first act of a run after a killed one (contracts 10)."""
    removed: dict[str, int] = {}
    written = 0

    def above(file: DataFile) -> bool:
        bounds = file.bounds("epoch")
        return bounds is None or bounds[1] > acknowledged

    for name in (*RECORD_TABLES, "rejects", "events"):

        def keep(part: pa.Table) -> np.ndarray:
            return part.column("epoch").to_numpy() <= acknowledged

        done = rewrite_table(lake.tables, name, ["epoch"], keep, only=above, metadata={"raydex.sweep": "unacknowledged"})
        if done.rows_deleted:
            removed[name] = done.rows_deleted
            written += done.bytes_written
    return Swept(removed, written)


def kept_of_unfinished(ledger: pa.Table, generation: Generation | None) -> tuple[int, int]:
    """(files, members) that the ledger acknowledges and no generation shows yet: what runs that did not finish have committed. `ledger` has
    epoch and parent_id."""
    rows = ledger.filter(pc.field("epoch") > (generation.epoch if generation else 0))
    files = rows.filter(pc.field("parent_id") == "").num_rows
    return files, rows.num_rows - files


def kept_words(kept: tuple[int, int], generation: Generation | None, run_id: str) -> str:
    """What of the run `run_id`, which did not finish, is kept."""
    files, members = kept
    if files or members:
        inside = f" and {members} inside of them" if members else ""
        return f"{files} records{inside} that it committed are kept"
    if generation is not None and generation.run_id == run_id:
        return f"all of it is kept, as generation {generation.number}"
    stays = f"generation {generation.number} stays" if generation is not None else "there is no generation yet"
    return f"it had committed nothing, so that it starts anew; {stays}"


def stray_members(lake: Lake, deleted: set[str]) -> set[str]:
    """Members whose container is gone or rejected, has other content by now (a member's `change_key` is its container's), or was parsed
    anew by another fingerprint."""
    columns = ["record_id", "parent_id", "change_key", "content_hash", "fingerprints", "state"]
    ledger = load_ledger(lake, columns)
    rows = ledger.filter(pc.field("parent_id") != "").to_pylist()
    if not rows:
        return set()
    parents = {row["parent_id"] for row in rows}
    known = ledger.filter(pc.field("record_id").isin(sorted(parents))).to_pylist()
    lost = {row["record_id"] for row in known if row["state"] == "rejected"}
    holds = {row["record_id"]: (row["content_hash"], _parse_mark(row)) for row in known if row["record_id"] not in deleted | lost}
    stray: set[str] = set()
    while True:
        more = {
            row["record_id"]
            for row in rows
            if row["record_id"] not in stray
            and (row["parent_id"] in stray or holds.get(row["parent_id"]) != (row["change_key"], _parse_mark(row)))
        }
        if not more:
            return stray
        stray |= more


def _parse_mark(row: dict[str, Any]) -> str | None:
    return dict(row["fingerprints"] or ()).get("parse")


def sweep_ledger(lake: Lake, deleted: set[str]) -> int:
    """One row a record: the latest epoch's, and none for deleted records and for members of what a file no longer is. Returns rows
    removed."""
    keys = read_delta(lake.tables, "records", columns=["record_id", "epoch"])
    if keys.num_rows == 0:
        return 0
    latest = keys.group_by("record_id").aggregate([("epoch", "max")])
    top = dict(zip(latest.column("record_id").to_pylist(), latest.column("epoch_max").to_pylist()))
    deleted = deleted | stray_members(lake, deleted)

    def keep(part: pa.Table) -> np.ndarray:
        pairs = zip(part.column("record_id").to_pylist(), part.column("epoch").to_pylist())
        return np.fromiter((r not in deleted and top[r] == e for r, e in pairs), np.bool_, part.num_rows)

    return rewrite_table(lake.tables, "records", ["record_id", "epoch"], keep, metadata={"raydex.sweep": "records"}).rows_deleted
