"""Rejects outside the parser: of a record that a later stage had to give up, and those that stand when a later stage runs again.

The invariant: all that a record lacks is told by the rejects of its newest epoch. So a record that is not parsed again takes the rejects of
the stages that do not run again into its new epoch (the pages that parsing lost are still lost when only the chunker has changed).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import read_data_file
from raydex.ir.errors import REJECT_CLASSES
from raydex.ir.ids import make_id
from raydex.ir.rows import Stamp, stamped
from raydex.jobs.context import STAGES, RunContext
from raydex.jobs.flow import with_columns


def reject_rows(row: dict[str, Any], stage: str, stamp: Stamp) -> dict[str, pa.Table]:
    """One reject and one event. `row` has path, media_type, reject_class, error and attempts."""
    name, error = row["reject_class"], (row["error"] or "")[:500]
    reject = {
        "reject_id": make_id("rej", stamp.record_id, stage, name, stamp.content_hash),
        "stage": stage,
        "class": name,
        "attempts": (row.get("attempts") or 0) + 1,
        "error": error,
        "retryable": REJECT_CLASSES[name].retryable,
        "path": row["path"],
        "media_type": row.get("media_type") or "",
    }
    event = {
        "event_id": make_id("evt", stamp.record_id, stamp.content_hash, stage, name),
        "stage": stage,
        "status": "error",
        "name": name,
        "message": error,
        "path": row["path"],
        "ms": 0.0,
    }
    return {"rejects": stamped("rejects", [reject], stamp), "events": stamped("events", [event], stamp)}


def standing_rejects(context: RunContext, rows: list[dict[str, Any]]) -> dict[str, pa.Table]:
    """record_id → rejects of the stages that do not run, with the record's new epoch, of records that are not parsed and have any.

    `row` has start, epoch, content_hash, reject_class (empty: none stands), and the data files of table rejects under `stored`.
    """
    wanted = {row["record_id"]: row for row in rows if row["start"] != "parse" and row["reject_class"]}
    paths = sorted({item["path"] for row in wanted.values() for item in row["stored"] or () if item["table"] == "rejects"})
    if not paths:
        return {}
    where = pc.field("record_id").isin(pa.array(list(wanted), pa.string()))
    table = pa.concat_tables([read_data_file(context.tables, "rejects", path, where=where) for path in paths])
    found: dict[str, pa.Table] = {}
    for record, row in wanted.items():
        own = table.filter((pc.field("record_id") == record) & (pc.field("content_hash") == row["content_hash"]))
        newest = pc.max(own.column("epoch")).as_py()
        earlier = STAGES if row["start"] == "keep" else STAGES[: STAGES.index(row["start"])]
        kept = own.filter((pc.field("epoch") == newest) & pc.field("stage").isin(earlier))
        if kept.num_rows:
            found[record] = _restamped(kept, context, row["epoch"])
    return found


def _restamped(table: pa.Table, context: RunContext, epoch: int) -> pa.Table:
    values = {"run_id": context.run_id, "epoch": epoch, "written_at": context.written_at}
    kinds = table.schema
    return with_columns(table, {name: pa.repeat(pa.scalar(value, kinds.field(name).type), len(table)) for name, value in values.items()})
