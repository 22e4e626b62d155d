"""The summary of a run: what `index --json` prints on its last line, what the `runs` table and `run.json` keep."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import commit_files, write_data_file
from raydex.cluster.lake import Generation, Lake
from raydex.ir.kinds import RECORD_STATES
from raydex.ir.rows import to_table
from raydex.jobs.context import STAGES, RunContext
from raydex.jobs.epochs import FIGURES, Tally
from raydex.jobs.held import WHERE_SEEN
from raydex.jobs.member_plan import held_members
from raydex.jobs.plan import Plan

if TYPE_CHECKING:
    from raydex.jobs.index import IndexRun

STAGE_NAMES = ("list", "parse", "observe", "caption", "chunk", "embed", "project", "vectors", "graph", "verify")


def summarise(
    run: IndexRun, plan: Plan, tally: Tally, generation: Generation | None, finished: dict[str, Any], members: pa.Table
) -> dict[str, Any]:
    """records: seen = new + changed + unchanged = indexed + degraded + rejected (contracts 18); deleted is outside seen. Among the changed,
    reprocessed and retried have the same content. children: the members of these records as the run leaves them, by state.

    stages: `seconds` of those that run in actors (parse to embed) add up over their actors, those of the other steps are the driver's.
    `wall_seconds` and `queue` (the most records that waited before the stage) come from the board; they are null where it did not answer.
    """
    states = tally.states + plan.unchanged_states
    counts = plan.counts
    stages: dict[str, dict[str, float | None]] = {name: dict.fromkeys(FIGURES, 0) for name in STAGE_NAMES}
    stages["list"].update(rows_in=counts["seen"], rows_out=counts["seen"], **run.listing)
    for name in STAGES:
        passed_by = name in WHERE_SEEN and not tally.stages[name]["rows_in"]
        unknown = None if plan.work.num_rows and not passed_by else 0
        stages[name].update(tally.stages[name])
        stages[name].update({"wall_seconds": unknown, "queue": unknown, **run.measured.get(name, {})})
    for name in ("project", "vectors", "graph", "verify"):
        stages[name].update(finished.get("stages", {}).get(name, {}))
    for name in set(STAGE_NAMES) - set(STAGES):
        stages[name]["wall_seconds"] = stages[name]["seconds"]
    return {
        "run": run.context.run_id,
        "generation": generation.number if generation else 0,
        "seconds": round(time.perf_counter() - run.started, 3),
        "records": {
            "seen": counts["seen"],
            "new": counts["new"],
            "changed": counts["changed"],
            "reprocessed": counts["reprocessed"],
            "retried": counts["retried"],
            "unchanged": counts["unchanged"],
            "deleted": counts["deleted"],
            "indexed": states["indexed"],
            "degraded": states["degraded"],
            "rejected": states["rejected"],
        },
        "children": member_states(members),
        "stages": {
            name: {key: None if value is None else round(value, 3) for key, value in figures.items()} for name, figures in stages.items()
        },
        "rejects": dict(sorted(tally.rejects.items())),
        "excluded": dict(sorted(plan.excluded.items())),
        "rows": dict(sorted(tally.rows.items())),
        "bytes_listed": plan.listed_bytes,
        "bytes_written": tally.bytes_written,
        "epochs": tally.epochs,
        "started_seconds": {key: round(value, 3) for key, value in run.seconds.items()},
        "stores": finished.get("stores", {}),
    }


def members_of_run(ledger: pa.Table, source_ids: set[str], retried: Plan | None) -> pa.Table:
    """Rows of the members in these sources, of a retry those in the files that it took up."""
    rows = ledger.filter((pc.field("parent_id") != "") & pc.field("source_id").isin(sorted(source_ids)))
    if retried is None or not rows.num_rows:
        return rows
    files = set(retried.work.column("record_id").to_pylist())
    roots = held_members(rows.select(["record_id", "parent_id", "source_id"]), source_ids).roots
    wanted = [record for record in rows.column("record_id").to_pylist() if roots[record] in files]
    return rows.filter(pc.field("record_id").isin(wanted))


def member_states(ledger: pa.Table) -> dict[str, int]:
    """State → members (attachments, files of archives); `ledger` has state and parent_id."""
    states = Counter(ledger.filter(pc.field("parent_id") != "").column("state").to_pylist())
    return {name: states[name] for name in RECORD_STATES}


def join_stages(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """The `stages` of two runs as one: of queues the longer counts, all else adds up; what one did not measure stays unmeasured."""
    joined: dict[str, Any] = {}
    for name, figures in right.items():
        joined[name] = {}
        for key, value in figures.items():
            other = left.get(name, {}).get(key, 0)
            if value is None or other is None:
                joined[name][key] = None
            else:
                joined[name][key] = max(value, other) if key == "queue" else value + other
    return joined


def record_run(
    lake: Lake, context: RunContext, summary: dict[str, Any], began: datetime, generation: Generation | None, state: str = "complete"
) -> None:
    """One row in `runs` and `runs/<run>.json` beside the tables, so that the facts outlive the cluster."""
    row = {
        "run_id": context.run_id,
        "started_at": began,
        "ended_at": datetime.now(UTC),
        "state": state,
        "version": version("raydex"),
        "generation": generation.number if generation else 0,
        "summary": orjson.dumps(summary).decode(),
        "config": orjson.dumps(context.settings.model_dump(mode="json")).decode(),
        "record_id": "",
        "content_hash": "",
        "fingerprint": "",
        "epoch": 0,
        "written_at": context.written_at,
    }
    file = write_data_file(context.tables, "runs", to_table("runs", {key: [value] for key, value in row.items()}))
    commit_files(context.tables, "runs", [file], txn_version=None, metadata={"raydex.run": context.run_id})
    folder = Path(lake.root) / "runs"
    folder.mkdir(exist_ok=True)
    (folder / f"{context.run_id}.json").write_bytes(orjson.dumps(summary, option=orjson.OPT_INDENT_2))
