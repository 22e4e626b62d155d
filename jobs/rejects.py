"""Rows for a record that a stage after parsing had to give up: one reject, one event."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from raydex.ir.errors import REJECT_CLASSES
from raydex.ir.ids import make_id
from raydex.ir.rows import Stamp, stamped


def reject_rows(row: dict[str, Any], stage: str, stamp: Stamp) -> dict[str, pa.Table]:
    """`row` has path, media_type, reject_class, error and attempts."""
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
