"""The projection step of a run: Spark on, project, rows that differ committed, Spark off.

Rows that come out as they were stay where they are: only what is new or gone is written, so that an unchanged graph costs no commit.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from raydex.cluster.delta import commit_files, read_delta, rewrite_table, write_data_file
from raydex.cluster.lake import Lake, acknowledged_epoch, pin_versions
from raydex.ir.ids import make_id
from raydex.ir.rows import Stamp, stamped
from raydex.ir.tables import PROJECT_TABLES, TABLES, VOLATILE
from raydex.jobs.context import RunContext
from raydex.jobs.project import ProjectOutputs, ProjectStamp, project
from raydex.jobs.project_inputs import inputs_of_lake

FILE_ROWS = 500_000


def run_projection(lake: Lake, context: RunContext, say: Callable[[str], None]) -> tuple[str, dict[str, float]]:
    """(projection hash, figures). The four tables hold exactly the projection of the tables as they are now."""
    from raydex.cluster.spark import PACKAGES, SparkSettings, open_spark

    clock = time.perf_counter()
    settings = context.settings.spark
    out = lake.staging / "projection"
    shutil.rmtree(out, ignore_errors=True)
    stamp = ProjectStamp(context.fingerprints["project"], context.run_id, acknowledged_epoch(lake), context.written_at)
    inputs = inputs_of_lake(lake.tables, pin_versions(lake))
    try:
        with open_spark(
            out / "spark", settings.cores or None, settings.memory, SparkSettings(packages=settings.packages or PACKAGES)
        ) as spark:
            started = time.perf_counter() - clock
            outputs = project(spark, inputs, stamp, out)
        changed = {name: replace_rows(lake, name, outputs.table(name)) for name in PROJECT_TABLES}
        if outputs.problem_counts:
            _record_problems(lake, context, outputs, say)
    finally:
        shutil.rmtree(out, ignore_errors=True)
    seconds = time.perf_counter() - clock
    counts = outputs.counts
    say(
        f"Projection: {counts['nodes']} nodes, {counts['edges']} edges, {counts['evidence']} evidence "
        f"({seconds:.1f} s, of which Spark's start {started:.1f} s; {sum(changed.values())} rows written)."
    )
    rows = counts["edges"] + counts["nodes"]
    return outputs.projection_hash, {"rows_in": rows, "rows_out": rows, "seconds": seconds, "rejects": sum(outputs.problem_counts.values())}


def replace_rows(lake: Lake, name: str, fresh: pa.Table) -> int:
    """Makes table `name` hold the rows of `fresh`; rows that are equal but for volatile columns are left alone. Returns rows written."""
    spec = TABLES[name]
    own = [column for column in spec.schema.names if column not in VOLATILE]
    held = read_delta(lake.tables, name, columns=own)
    new_marks = _marks(fresh.select(own), spec.key)
    old_marks = _marks(held, spec.key)
    same = new_marks.join(old_marks, on=[spec.key, "mark"], how="semi")[spec.key]
    kept = set(same.to_list())
    added = fresh.filter(pa.array(~new_marks[spec.key].is_in(same.implode()).to_numpy()))
    files = [write_data_file(lake.tables, name, added.slice(at, FILE_ROWS)) for at in range(0, added.num_rows, FILE_ROWS)]

    def keep(part: pa.Table) -> np.ndarray:
        return np.fromiter((key in kept for key in part.column(spec.key).to_pylist()), np.bool_, part.num_rows)

    if held.num_rows == 0:
        if files:
            commit_files(lake.tables, name, files, metadata={"raydex.projection": name})
    elif files or len(kept) < held.num_rows:
        rewrite_table(lake.tables, name, [spec.key], keep, add=files, metadata={"raydex.projection": name})
    return added.num_rows


def _marks(table: pa.Table, key: str) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    lists = [pl.col(name).list.join("\x1f").alias(name) for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    return frame.with_columns(lists).select(pl.col(key), pl.struct(pl.all()).hash(seed=0).alias("mark"))


def _record_problems(lake: Lake, context: RunContext, outputs: ProjectOutputs, say: Callable[[str], None]) -> None:
    """Edges that could not be made are events, each with both ends named; never silently dropped."""
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
    say(f"Projection left out: {said} (see the events table).")
