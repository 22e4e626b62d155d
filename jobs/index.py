"""`raydex index`: sources → plan → Ray stages → epochs → sweep → projection → stores → verify → generation marked complete.

The order is the guarantee: nothing is skipped that the ledger has not acknowledged, nothing is visible that has not been verified.
A run that finds nothing to do starts no engine at all.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from raydex.cluster.faults import fault_point
from raydex.cluster.lake import Lake, acknowledged_epoch, active_generation, check_tables, load_ledger, next_epoch
from raydex.configs.settings import Settings
from raydex.ir.errors import CapacityError, ConfigError, RaydexError, StoreError
from raydex.jobs.context import RunContext, stage_fingerprints
from raydex.jobs.epochs import EpochCommitter, Tally
from raydex.jobs.live import sweep, sweep_ledger, sweep_unacknowledged
from raydex.jobs.plan import Plan, make_plan
from raydex.jobs.sources import Source, open_source
from raydex.jobs.work import number_epochs, set_column, work_tables

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """What the command line asks for."""

    specs: tuple[str, ...]
    lake: str
    settings: Settings
    name: str | None = None
    repository: str | None = None
    commit: str | None = None
    allow_empty: bool = False
    max_delete_share: float | None = None
    only: frozenset[str] | None = None
    progress: bool = True
    say: Say = field(default=lambda text: None)


def index(request: IndexRequest) -> dict[str, Any]:
    """Runs it all and returns the summary that `index --json` prints. Raises RaydexError; what was committed stays."""
    started, began = time.perf_counter(), datetime.now(UTC)
    run_id = f"run_{uuid.uuid4().hex}"
    lake = Lake(request.lake)
    with lake.lock(run_id):
        job = IndexRun(request, lake, run_id, began, started)
        try:
            return job.run()
        except (StoreError, CapacityError) as error:
            job.record_failure(error)
            raise


class IndexRun:
    """One run under the lake's lock."""

    def __init__(self, request: IndexRequest, lake: Lake, run_id: str, began: datetime, started: float) -> None:
        self.request = request
        self.settings = request.settings
        self.lake = lake
        self.say = request.say
        self.began = began
        self.started = started
        self.seconds: dict[str, float] = {}
        self.context = RunContext(
            lake_root=str(lake.root),
            run_id=run_id,
            workspace=self.settings.workspace,
            settings=self.settings,
            fingerprints=stage_fingerprints(self.settings),
            written_at=began,
            objects_uri=self.settings.objects.uri or str(Path(lake.root) / "objects"),
        )

    def run(self) -> dict[str, Any]:
        from raydex.jobs.finalize import finalize, is_current
        from raydex.jobs.summary import record_run, summarise

        check_tables(self.lake)
        recovered = self._recover()
        sources = self._open_sources()
        clock = time.perf_counter()
        ledger = load_ledger(self.lake)
        plan = make_plan(
            self.lake,
            sources,
            ledger,
            self.settings,
            self.context.fingerprints,
            allow_empty=self.request.allow_empty,
            max_delete_share=self.request.max_delete_share,
            only=set(self.request.only) if self.request.only is not None else None,
        )
        self.seconds["list"] = time.perf_counter() - clock
        self.say(plan_line(plan, self.seconds["list"]))
        generation = active_generation(self.lake)
        tally = Tally()
        finished: dict[str, Any] = {}
        if plan.idle and not recovered and is_current(generation, self.context, sources):
            self.say("Nothing changed: no stage has work, no engine was started.")
        else:
            self.lake.mark_dirty(self.context.run_id)
            redone = plan.counts["changed"] > 0 or recovered
            if plan.work.num_rows:
                tally = self._run_stages(plan)
            fault_point("index.sweep:before")
            if plan.deleted or redone:
                sweep_ledger(self.lake, set(plan.deleted))
                swept = sweep(self.lake, load_ledger(self.lake))
                sweep(self.lake, load_ledger(self.lake), tables=("rejects",))
                self.say(f"Removed {swept.rows} rows of changed and deleted records ({swept.bytes_written / 1e6:.1f} MB rewritten).")
            finished = finalize(self.lake, self.context, sources, self.say, self.seconds)
            self.lake.clear_dirty()
            generation = active_generation(self.lake)
        summary = summarise(self, plan, tally, generation, finished)
        record_run(self.lake, self.context, summary, self.began, generation)
        return summary

    def record_failure(self, error: RaydexError) -> None:
        """A failed run is a row of `runs` too: its facts are what an operator looks for first."""
        from raydex.jobs.summary import record_run

        summary = {"run": self.context.run_id, "error": str(error), "seconds": round(time.perf_counter() - self.started, 3)}
        record_run(self.lake, self.context, summary, self.began, active_generation(self.lake), state="failed")

    def _recover(self) -> bool:
        """After a killed run: rows that the ledger does not know are removed before anything else."""
        holder = self.lake.dirty()
        if holder is None:
            return False
        swept = sweep_unacknowledged(self.lake, acknowledged_epoch(self.lake))
        self.say(f"The last run ({holder}) did not finish: going on from what it committed; {swept.rows} unacknowledged rows removed.")
        return True

    def _open_sources(self) -> list[Source]:
        request = self.request
        sources = [
            open_source(spec, workspace=self.settings.workspace, name=request.name, repository=request.repository, commit=request.commit)
            for spec in request.specs
        ]
        names: dict[str, Source] = {}
        for source in sources:
            twin = names.get(source.name)
            if twin is not None and twin.root == source.root and twin.pattern != source.pattern:
                raise ConfigError(
                    f"{source.name} is named twice with different patterns",
                    place=source.root,
                    remedy="Index the folder once, with the patterns under list.include",
                )
            if twin is not None and twin.root != source.root:
                raise ConfigError(
                    f"two sources of this run are named {source.name}", place=source.root, remedy="Index them apart, one with --name"
                )
            names[source.name] = source
        self._check_names(list(names.values()))
        return list(names.values())

    def _check_names(self, sources: list[Source]) -> None:
        """A name that another root already has in this workspace is an error (contracts 3), unless that root is gone: then it moved."""
        generation = active_generation(self.lake)
        held = generation.sources if generation else {}
        for source in sources:
            other = held.get(source.source_id)
            if other and other["root"] != source.root and "://" not in other["root"] and Path(other["root"]).exists():
                raise ConfigError(
                    f"the name {source.name} belongs to {other['root']} in workspace {source.workspace}",
                    place=source.root,
                    remedy="Give this source another --name, or another --workspace",
                )

    def _run_stages(self, plan: Plan) -> Tally:
        from raydex.cluster.ray_session import ray_session
        from raydex.cluster.stage import run_stages
        from raydex.jobs.pipeline import build_stages, start_board
        from raydex.jobs.progress import ProgressView

        settings = self.settings
        work, expected = number_epochs(plan.work, next_epoch(self.lake), settings.run.epoch_records)
        totals = stage_totals(plan)
        committer = EpochCommitter(self.context, expected, plan.kept)
        clock = time.perf_counter()
        with ray_session(settings.ray.address, settings.ray.cpus, settings.ray.object_store_bytes) as resources:
            self.seconds["ray_start"] = time.perf_counter() - clock
            self.say(
                f"Ray is up with {resources.get('CPU', 0):g} CPUs and {resources.get('GPU', 0):g} GPUs ({self.seconds['ray_start']:.1f} s)."
            )
            clock = time.perf_counter()
            work = self._fan_out(work, resources)
            rows = work_tables(work, min(stage.batch_size for stage in (settings.stages.parse, settings.stages.chunk)))
            board = start_board() if self.request.progress else None
            view = ProgressView(totals, enabled=self.request.progress)
            stages = build_stages(self.context, resources, board, len(rows))
            with view.watching(board):
                for batch in run_stages(rows, stages):
                    committer.add(batch)
        self.seconds["stages"] = time.perf_counter() - clock
        if committer.waiting:
            raise StoreError(f"{len(committer.waiting)} epochs did not complete: a stage lost rows", place=str(self.lake.root))
        return committer.tally

    def _fan_out(self, work: pa.Table, resources: dict[str, float]) -> pa.Table:
        """Page ranges of long PDFs first, over all workers: one 2,000-page file must not hold the whole run up."""
        from raydex.jobs.pdf_ranges import find_long_pdfs, parse_ranges

        rows = find_long_pdfs(work, self.settings.run.pdf_fan_out_pages)
        if not rows:
            return work
        clock = time.perf_counter()
        cpus = max(min(self.settings.stages.parse.cpus, resources.get("CPU", 1) / 2), 0.01)
        workers = max(1, int(resources.get("CPU", 1) / cpus) - 1)
        ranges = parse_ranges(self.context, rows, cpus, workers)
        work = set_column(work, "ranges", [ranges.get(record, []) for record in work.column("record_id").to_pylist()])
        self.seconds["page_ranges"] = time.perf_counter() - clock
        if ranges:
            count = sum(map(len, ranges.values()))
            self.say(f"{len(ranges)} long PDFs were parsed as {count} page ranges ({self.seconds['page_ranges']:.1f} s).")
        return work


def stage_totals(plan: Plan) -> dict[str, int]:
    """Records that each stage will get at most."""
    parse = plan.starts["parse"]
    chunk = parse + plan.starts["chunk"]
    return {"parse": parse, "chunk": chunk, "embed": plan.work.num_rows}


def plan_line(plan: Plan, seconds: float) -> str:
    c = plan.counts
    return (
        f"{c['seen']} files seen ({plan.listed_bytes / 1e6:.1f} MB, {seconds:.1f} s): {c['new']} new, {c['changed']} changed, "
        f"{c['unchanged']} unchanged, {c['deleted']} deleted"
        + (
            f"; left out by rule: {', '.join(f'{count} {rule}' for rule, count in sorted(plan.excluded.items()))}."
            if plan.excluded
            else "."
        )
    )
