"""`raydex index`: sources → plan → Ray stages → epochs → sweep → projection → stores → verify → generation marked complete.

The order is the guarantee: nothing is skipped that the ledger has not acknowledged, nothing is visible that has not been verified.
A run that finds nothing to do starts no engine at all.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.faults import fault_point
from raydex.cluster.lake import Generation, Lake, acknowledged_epoch, active_generation, load_ledger, next_epoch
from raydex.configs.settings import Settings
from raydex.ir.errors import ConfigError
from raydex.jobs.context import RunContext, stage_fingerprints
from raydex.jobs.epochs import EpochCommitter, Tally
from raydex.jobs.failures import as_failure
from raydex.jobs.live import sweep, sweep_ledger, sweep_unacknowledged
from raydex.jobs.one_model import check_one_model
from raydex.jobs.places import check_objects, objects_uri
from raydex.jobs.plan import Plan, make_plan
from raydex.jobs.repair import make_whole
from raydex.jobs.servers import check_servers
from raydex.jobs.source_names import check_names, check_run, gone_source, held_repositories, keep_commit, part_repositories
from raydex.jobs.sources import Source, open_source
from raydex.jobs.staging import empty_staging
from raydex.jobs.stopwatch import Stopwatch
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
    """Runs it all and returns the summary that `index --json` prints. Raises RaydexError; what was committed stays.

    Whatever ends a run early, a wrong request apart, leaves a row in `runs`: failed, or interrupted by a signal.
    """
    started, began = time.perf_counter(), datetime.now(UTC)
    run_id = f"run_{uuid.uuid4().hex}"
    opened = open_specs(request)
    lake = Lake(request.lake)
    with lake.lock(run_id):
        empty_staging(lake)
        job = IndexRun(request, lake, opened, run_id, began, started)
        try:
            check_servers(request.settings)
            return job.run()
        except Exception as error:
            failure = as_failure(error)
            if not isinstance(failure, ConfigError):
                job.note_end(str(failure), "failed")
            if failure is error:
                raise
            raise failure from error
        except BaseException as signal:  # the command line turns signals into exceptions
            job.note_end(f"stopped by {type(signal).__name__}", "interrupted")
            raise
        finally:
            empty_staging(lake)


class IndexRun:
    """One run under the lake's lock."""

    def __init__(self, request: IndexRequest, lake: Lake, opened: list[Source], run_id: str, began: datetime, started: float) -> None:
        self.request = request
        self.opened = opened
        self.settings = request.settings
        self.lake = lake
        self.say = request.say
        self.began = began
        self.started = started
        self.seconds: dict[str, float] = {}
        self.listing: dict[str, float] = {}
        self.measured: dict[str, dict[str, float]] = {}
        self.context = RunContext(
            lake_root=str(lake.root),
            run_id=run_id,
            workspace=self.settings.workspace,
            settings=self.settings,
            fingerprints=stage_fingerprints(self.settings),
            written_at=began,
            objects_uri=objects_uri(lake, self.settings),
        )

    def run(self) -> dict[str, Any]:
        from raydex.jobs.finalize import finalize, renew
        from raydex.jobs.standing import standing
        from raydex.jobs.summary import record_run, summarise

        recovered = self._recover()
        sources = self._open_sources()
        watch = Stopwatch()
        ledger = load_ledger(self.lake)
        only = set(self.request.only) if self.request.only is not None else None
        fingerprint = self.context.fingerprints["embed"]
        check_one_model(ledger, {source.source_id for source in sources}, only, self.settings, fingerprint)
        generation = active_generation(self.lake)
        check_objects(self.lake, generation, ledger, self.settings)
        plan = make_plan(
            self.lake,
            sources,
            ledger,
            self.settings,
            self.context.fingerprints,
            allow_empty=self.request.allow_empty,
            max_delete_share=self.request.max_delete_share,
            only=only,
        )
        self.listing = watch.figures()
        self.seconds["list"] = self.listing["seconds"]
        self.say(plan_line(plan, self.seconds["list"]))
        tally = Tally()
        finished: dict[str, Any] = {}
        stands = standing(self.lake, generation, self.context, sources) if plan.idle and not recovered else "make"
        if stands == "current":
            self.say("Nothing changed: no stage has work, no engine was started.")
        elif stands == "renew":
            finished = renew(self.lake, self.context, sources, self.say)
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
        tally.rejects.update(unreported_rejects(ledger, generation, plan))
        generation = active_generation(self.lake)
        summary = summarise(self, plan, tally, generation, finished)
        record_run(self.lake, self.context, summary, self.began, generation)
        return summary

    def note_end(self, error: str, state: str) -> None:
        """A run that ended early is a row of `runs` too: its facts are what an operator looks for first. A second failure, while this is
        written, must not hide the first."""
        from raydex.jobs.summary import record_run

        summary = {"run": self.context.run_id, "error": error, "seconds": round(time.perf_counter() - self.started, 3)}
        try:
            record_run(self.lake, self.context, summary, self.began, active_generation(self.lake), state=state)
        except Exception as second:  # noqa: BLE001 - said, and the first one is raised
            self.say(f"The end of this run could not be written to table runs: {second}")

    def _recover(self) -> bool:
        """What was lost or left half-done, before anything else: data files, the pointer to the active generation, and after a killed run
        the rows that the ledger does not know. Returns whether tables changed."""
        holder = self.lake.dirty()
        repaired = make_whole(self.lake, self.context.run_id, self.say)
        if holder is None:
            return repaired
        swept = sweep_unacknowledged(self.lake, acknowledged_epoch(self.lake))
        self.say(f"The last run ({holder}) did not finish: going on from what it committed; {swept.rows} unacknowledged rows removed.")
        return True

    def _open_sources(self) -> list[Source]:
        """The sources that were named, each under a name and a repository of its own; what they have to say is said."""
        request = self.request
        generation = active_generation(self.lake)
        held = generation.sources if generation else {}
        sources = check_run(self.opened)
        for note in check_names(sources, held, named=request.name is not None):
            self.say(note)
        sources = part_repositories(sources, held_repositories(self.lake), told=request.repository is not None)
        if request.only is not None:
            ledger = load_ledger(self.lake, columns=["record_id", "path"])
            paths = set(ledger.filter(pc.field("record_id").isin(sorted(request.only))).column("path").to_pylist())
            sources = [keep_commit(source, held.get(source.source_id), paths) for source in sources]
        for note in (note for source in sources for note in source.notes):
            self.say(note)
        return sources

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
            board = start_board()
            view = ProgressView(totals, enabled=self.request.progress)
            stages = build_stages(self.context, resources, board, len(rows))
            with view.watching(board):
                for batch in run_stages(rows, stages):
                    committer.add(batch)
        self.seconds["stages"] = time.perf_counter() - clock
        self.measured = view.measured
        return committer.finish()

    def _fan_out(self, work: pa.Table, resources: dict[str, float]) -> pa.Table:
        """Page ranges of long PDFs first, over all workers: one 2,000-page file must not hold the whole run up."""
        from raydex.jobs.pdf_ranges import find_long_pdfs, parse_ranges

        rows = find_long_pdfs(work, self.settings.run.pdf_fan_out_pages, self.settings.limits.input_bytes)
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


def open_specs(request: IndexRequest) -> list[Source]:
    """What the user named, looked at before a lake is made. A place that is gone is an empty source where `allow_empty` is set and the lake
    holds a source of that root. Raises ConfigError."""
    opened = []
    for spec in request.specs:
        try:
            source = open_source(
                spec, workspace=request.settings.workspace, name=request.name, repository=request.repository, commit=request.commit
            )
        except ConfigError as error:
            held = gone_source(request.lake, spec, request.settings.workspace)
            if held is None:
                raise
            if not request.allow_empty:
                remedy = f"The lake holds it as source {held.name}: if it is gone for good, --allow-empty removes its records"
                raise ConfigError(error.message, place=error.place, remedy=remedy) from error
            source = held
        opened.append(source)
    return opened


def unreported_rejects(ledger: pa.Table, generation: Generation | None, plan: Plan) -> Counter[str]:
    """Rejects by class that runs left behind which never came to their end: this one reports them. `ledger` as it was at the start."""
    late = (pc.field("epoch") > (generation.epoch if generation else 0)) & (pc.field("reject_class") != "")
    rows = ledger.select(["record_id", "epoch", "reject_class"]).filter(late)
    again = {*plan.work.column("record_id").to_pylist(), *plan.deleted}
    pairs = zip(rows.column("record_id").to_pylist(), rows.column("reject_class").to_pylist(), strict=True)
    return Counter(name for record, name in pairs if record not in again)


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
