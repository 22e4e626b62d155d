"""The projection step of a run: Spark on, project, Spark off, rows that differ committed: an unchanged graph costs no commit."""

from __future__ import annotations

import shutil
from functools import partial
from typing import Any

from raydex.cluster.delta import commit_files, write_data_file
from raydex.cluster.lake import Lake, acknowledged_epoch, pin_versions
from raydex.ir.ids import make_id
from raydex.ir.rows import Stamp, stamped
from raydex.ir.tables import PROJECT_TABLES
from raydex.jobs.context import RunContext
from raydex.jobs.project import ProjectOutputs, ProjectStamp, project
from raydex.jobs.project_inputs import inputs_of_lake
from raydex.jobs.replace import replace_rows
from raydex.jobs.stopwatch import Stopwatch


def run_projection(lake: Lake, context: RunContext) -> tuple[str, dict[str, float], list[str]]:
    """(projection hash, figures, what to tell the user). The four tables hold exactly the projection of the tables as they are now."""
    from raydex.cluster.spark import PACKAGES, SparkSettings, open_spark

    watch = Stopwatch()
    settings = context.settings.spark
    out = lake.staging / "projection"
    shutil.rmtree(out, ignore_errors=True)
    stamp = ProjectStamp(context.fingerprints["project"], context.run_id, acknowledged_epoch(lake), context.written_at)
    inputs = inputs_of_lake(lake.tables, pin_versions(lake))
    try:
        with open_spark(
            out / "spark", settings.cores or None, settings.memory, SparkSettings(packages=settings.packages or PACKAGES)
        ) as spark:
            started = watch.figures()["seconds"]
            outputs = project(spark, inputs, stamp, out)
        changed = {name: replace_rows(lake.tables, name, partial(outputs.batches, name)) for name in PROJECT_TABLES}
        notes = [_record_problems(lake, context, outputs)] if outputs.problem_counts else []
    finally:
        shutil.rmtree(out, ignore_errors=True)
    figures = watch.figures()
    counts = outputs.counts
    notes.append(
        f"Projection: {counts['nodes']} nodes, {counts['edges']} edges, {counts['evidence']} evidence "
        f"({figures['seconds']:.1f} s, of which Spark's start {started:.1f} s; {sum(changed.values())} rows written)."
    )
    rows = counts["edges"] + counts["nodes"]
    rejects = sum(outputs.problem_counts.values())
    return outputs.projection_hash, {"rows_in": rows, "rows_out": rows, "rejects": rejects, **figures}, notes


def _record_problems(lake: Lake, context: RunContext, outputs: ProjectOutputs) -> str:
    """Edges that could not be made are events, each with both ends named; never silently dropped. Returns what to tell the user."""
    rows: list[dict[str, Any]] = []
    for item in outputs.problems.to_pylist():
        rows.append(
            {
                "event_id": make_id("evt", context.run_id, item["problem"], item["message"] or ""),
                "stage": "project",
                "status": "warning",
                "name": item["problem"],
                "message": (item["message"] or "")[:500],
                "path": item["path"] or "",
                "ms": 0.0,
            }
        )
    stamp = Stamp("", "", context.fingerprints["project"], context.run_id, acknowledged_epoch(lake), context.written_at)
    file = write_data_file(lake.tables, "events", stamped("events", rows, stamp))
    commit_files(lake.tables, "events", [file], metadata={"raydex.run": context.run_id})
    said = ", ".join(f"{count} {name}" for name, count in outputs.problem_counts.items())
    return f"Projection left out: {said} (see the events table)."
