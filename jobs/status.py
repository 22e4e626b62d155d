"""`raydex status`: records by state, rejects by class, last runs, store counts; read from the active generation and the ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import read_delta
from raydex.cluster.lake import Lake, active_generation, load_ledger
from raydex.ir.errors import REJECT_CLASSES
from raydex.jobs.context import PENDING
from raydex.jobs.live import kept_of_unfinished, kept_words
from raydex.jobs.summary import member_states

RUNS_SHOWN = 5


def lake_status(root: Path) -> dict[str, Any]:
    """Raises ConfigError when there is no lake; a lake whose first run has not ended has generation 0."""
    lake = Lake.open(root)
    generation = active_generation(lake)
    columns = ["state", "parent_id", "reject_class", "missing", "media_type", "source_name", "fingerprints", "epoch"]
    ledger = load_ledger(lake, columns)
    writer, unfinished, progress = lake.writer(), lake.dirty(), lake.progress()
    at_work = writer is not None and (writer.life == "alive" or (writer.life == "elsewhere" and bool(progress)))
    versions = generation.table_versions if generation else {}
    seen = observation_states(lake, versions)
    missing: Counter[str] = Counter()
    for items in ledger.column("missing").to_pylist():
        missing.update(items or ())
    rejects = Counter(name for name in ledger.column("reject_class").to_pylist() if name)
    runs = read_delta(lake.tables, "runs", columns=["run_id", "started_at", "ended_at", "state", "generation", "summary"])
    last = runs.sort_by([("started_at", "descending")]).slice(0, RUNS_SHOWN).to_pylist()
    return {
        "lake": str(lake.root),
        "generation": generation.number if generation else 0,
        "unfinished_run": None if at_work else unfinished,
        "kept": "" if at_work or not unfinished else kept_words(kept_of_unfinished(ledger, generation), generation, unfinished),
        "writer": {**asdict(writer), "life": writer.life} if writer else None,
        "sources": list(generation.sources.values()) if generation else [],
        "records": dict(sorted(Counter(ledger.filter(pc.field("parent_id") == "").column("state").to_pylist()).items())),
        "children": {name: count for name, count in member_states(ledger).items() if count},
        "media_types": dict(sorted(Counter(ledger.column("media_type").to_pylist()).items())),
        "missing": dict(sorted(missing.items())),
        "observations": seen,
        "backlog": standing_backlog(ledger, seen),
        "at_work": at_work,
        "running": progress if at_work else {},
        "rejects": dict(sorted(rejects.items())),
        "tables": table_counts(lake, versions),
        "stores": generation.cursors if generation else {},
        "runs": [
            {
                "run": row["run_id"],
                "started_at": row["started_at"].isoformat(),
                "seconds": orjson.loads(row["summary"]).get("seconds"),
                "state": row["state"],
                "generation": row["generation"],
                "records": orjson.loads(row["summary"]).get("records"),
            }
            for row in last
        ],
    }


def observation_states(lake: Lake, versions: dict[str, int]) -> dict[str, dict[str, int]]:
    """ocr, caption → status → pages and images: what models saw, and what no engine or model was there for (`unavailable`)."""
    counts: dict[str, Counter[str]] = {"ocr": Counter(), "caption": Counter()}
    if "observations" in versions:
        rows = read_delta(lake.tables, "observations", columns=["kind", "status"], version=versions["observations"])
        for group in rows.group_by(["kind", "status"]).aggregate([([], "count_all")]).to_pylist():
            counts[group["kind"]][group["status"]] = group["count_all"]
    return {kind: dict(sorted(found.items())) for kind, found in counts.items()}


def standing_backlog(ledger: pa.Table, seen: dict[str, dict[str, int]]) -> dict[str, int]:
    """Stage → what it still has before it: records that the next run tries again (parse, embed) or goes on with (caption), and pages and
    images that wait for an engine or a model to be configured (observe, caption)."""
    waiting = dict.fromkeys(("parse", "observe", "caption", "embed"), 0)
    columns = (ledger.column(name).to_pylist() for name in ("state", "reject_class", "missing", "fingerprints"))
    for state, reject_class, missing, prints in zip(*columns, strict=True):
        missing = missing or ()
        waiting["embed"] += "embedding" in missing
        waiting["caption"] += dict(prints or ()).get("caption") == PENDING
        retried = bool(reject_class) and REJECT_CLASSES[reject_class].retryable
        waiting["parse"] += "current_content" in missing or (retried and (state == "rejected" or "pages" in missing))
    waiting["observe"] = seen["ocr"].get("unavailable", 0)
    waiting["caption"] += seen["caption"].get("unavailable", 0)
    return waiting


def table_counts(lake: Lake, versions: dict[str, int]) -> dict[str, int]:
    """Rows of every pinned table, from the log's statistics."""
    from raydex.cluster.delta import list_data_files

    return {name: sum(file.rows for file in list_data_files(lake.tables, name, version)) for name, version in sorted(versions.items())}
