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
from raydex.cluster.stage import Stage
from raydex.configs.settings import Settings
from raydex.ir.errors import AGAIN, ConfigError
from raydex.jobs.context import RunContext, stage_fingerprints
from raydex.jobs.epochs import EpochCommitter, Tally
from raydex.jobs.failures import as_failure
from raydex.jobs.live import kept_of_unfinished, kept_words, sweep, sweep_ledger, sweep_unacknowledged
from raydex.jobs.one_model import check_one_model
from raydex.jobs.places import check_objects, objects_uri
from raydex.jobs.plan import Plan, make_plan
from raydex.jobs.preflight import check_settings
from raydex.jobs.repair import make_whole
from raydex.jobs.servers import check_servers
from raydex.jobs.source_names import check_names, check_run, gone_source, held_repositories, keep_commit, part_repositories
from raydex.jobs.sources import Source, open_source
from raydex.jobs.staging import empty_staging
from raydex.jobs.stopwatch import Stopwatch
from raydex.jobs.wording import record_counts
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

    Whatever ends a run early leaves a row in `runs`: failed, or interrupted by a signal. A wrong request that ends it before it has
    written anything does not.
    """
    started, began = time.perf_counter(), datetime.now(UTC)
    run_id = f"run_{uuid.uuid4().hex}"
    check_settings(request.settings)
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
            if job.writes and isinstance(failure, ConfigError):
                failure.remedy = f"{failure.remedy}. {AGAIN}" if failure.remedy else AGAIN
            if job.writes or not isinstance(failure, ConfigError):
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
        self.writes = False
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
        from raydex.jobs.summary import members_of_run, record_run, summarise

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
            self.writes = True
            redone = plan.counts["changed"] > 0 or recovered
            if plan.work.num_rows:
                tally = self._run_stages(plan)
            redone = redone or "caption" in tally.stages  # the second pass wrote what the first one wrote
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
        left = ledger if stands != "make" else load_ledger(self.lake, ["state", "record_id", "parent_id", "source_id"])
        inside = members_of_run(left, {source.source_id for source in sources}, plan if only is not None else None)
        summary = summarise(self, plan, tally, generation, finished, inside)
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
        generation = active_generation(self.lake)
        kept = kept_words(kept_of_unfinished(load_ledger(self.lake, ["epoch", "parent_id"]), generation), generation, holder)
        self.say(f"The last run ({holder}) did not finish: {kept}; {swept.rows} rows that it had not acknowledged are removed.")
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
        from raydex.jobs.caption_stage import caption_work
        from raydex.jobs.model_servers import notes
        from raydex.jobs.pipeline import build_stages, caption_stages, may_hold_images, start_board

        settings = self.settings
        for note in notes(settings):
            self.say(note)
        clock = time.perf_counter()
        tally = Tally()
        first_epoch = next_epoch(self.lake)
        with ray_session(settings.ray.address, settings.ray.cpus, settings.ray.object_store_bytes) as resources:
            self.seconds["ray_start"] = time.perf_counter() - clock
            self.say(
                f"Ray is up with {resources.get('CPU', 0):g} CPUs and {resources.get('GPU', 0):g} GPUs ({self.seconds['ray_start']:.1f} s)."
            )
            clock = time.perf_counter()
            board = start_board()
            work = plan.work.filter(pc.field("start") != "caption")
            if work.num_rows:
                planned = work.num_rows
                work = self._fan_out(work, resources)
                more = work.num_rows - planned
                totals = {name: count + more if name != "observe" else count for name, count in stage_totals(plan).items()}
                images = may_hold_images(work.column("path").to_pylist())
                stages = build_stages(self.context, resources, board, len(batches_of(work, settings)), images=images)
                tally.join(self._pass(work, plan, stages, board, totals))
            work = caption_work(self.lake, plan.work, first_epoch, bool(settings.caption.model))
            if work.num_rows:
                captions = self._captions(work, resources)
                stages = caption_stages(self.context, resources, board, len(batches_of(work, settings)), captions)
                count = work.num_rows
                tally.join(self._pass(work, plan, stages, board, {"parse": 0, "caption": count, "chunk": count, "embed": count}))
        self.seconds["stages"] = time.perf_counter() - clock
        return tally

    def _pass(self, work: pa.Table, plan: Plan, stages: tuple[Stage, ...], board: Any, totals: dict[str, int]) -> Tally:
        """The work through the stages, its receipts committed epoch by epoch."""
        from raydex.cluster.stage import run_stages
        from raydex.jobs.progress import ProgressView

        work, expected = number_epochs(work, next_epoch(self.lake), self.settings.run.epoch_records)
        committer = EpochCommitter(self.context, expected, plan.kept)
        view = ProgressView(totals, enabled=self.request.progress, tell=self.lake.write_progress)
        with view.watching(board):
            for batch in run_stages(batches_of(work, self.settings), stages):
                committer.add(batch)
        for stage, figures in view.measured.items():
            self.measured.setdefault(stage, figures)
        return committer.finish()

    def _captions(self, work: pa.Table, resources: dict[str, float]) -> Any:
        """A reference to the captions of all images of these records; None when no model is configured."""
        if not self.settings.caption.model:
            return None
        from raydex.jobs.caption_models import captions_apart
        from raydex.jobs.caption_stage import images_of

        clock = time.perf_counter()
        images = images_of(self.context, work)
        self.say(f"{images.num_rows} different images of {work.num_rows} records are to be described by {self.settings.caption.model}.")
        captions = captions_apart(images, self.context, resources)
        self.seconds["captions"] = time.perf_counter() - clock
        return captions

    def _fan_out(self, work: pa.Table, resources: dict[str, float]) -> pa.Table:
        """Page ranges of long PDFs first, over all workers: one 2,000-page file must not hold the whole run up. Large files of records
        become segments for the same reason, and so that nothing ever holds one whole."""
        from raydex.jobs.pdf_ranges import find_long_pdfs, parse_ranges
        from raydex.jobs.streams import cut_streams, find_streams, with_segments

        rows = find_long_pdfs(work, self.settings.run.pdf_fan_out_pages, self.settings.limits.input_bytes)
        large = find_streams(work, self.settings.run.stream_bytes)
        cpus = max(min(self.settings.stages.parse.cpus, resources.get("CPU", 1) / 2), 0.01)
        workers = max(1, int(resources.get("CPU", 1) / cpus) - 1)
        if large:
            clock = time.perf_counter()
            count = work.num_rows
            work = with_segments(work, cut_streams(self.context, large, cpus, min(workers, len(large))))
            self.seconds["cuts"] = time.perf_counter() - clock
            self.say(f"{len(large)} large files are read as {work.num_rows - count} segments ({self.seconds['cuts']:.1f} s).")
        if not rows:
            return work
        clock = time.perf_counter()
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


def batches_of(work: pa.Table, settings: Settings) -> list[pa.Table]:
    stages = settings.stages
    return work_tables(work, min(stage.batch_size for stage in (stages.parse, stages.observe, stages.chunk)))


def unreported_rejects(ledger: pa.Table, generation: Generation | None, plan: Plan) -> Counter[str]:
    """Rejects by class that runs left behind which never came to their end: this one reports them. `ledger` as it was at the start."""
    late = (pc.field("epoch") > (generation.epoch if generation else 0)) & (pc.field("reject_class") != "")
    rows = ledger.select(["record_id", "epoch", "reject_class"]).filter(late)
    again = {*plan.work.column("record_id").to_pylist(), *plan.deleted}
    pairs = zip(rows.column("record_id").to_pylist(), rows.column("reject_class").to_pylist(), strict=True)
    return Counter(name for record, name in pairs if record not in again)


def stage_totals(plan: Plan) -> dict[str, int]:
    """Records that each stage will get at most in the first pass."""
    parse = plan.starts["parse"]
    chunk = parse + plan.starts["chunk"]
    return {"parse": parse, "observe": 0, "chunk": chunk, "embed": plan.work.num_rows - plan.starts["caption"]}


def plan_line(plan: Plan, seconds: float) -> str:
    c = plan.counts
    return f"{c['seen']} files seen ({plan.listed_bytes / 1e6:.1f} MB, {seconds:.1f} s): {record_counts(c)}" + (
        f"; left out by rule: {', '.join(f'{count} {rule}' for rule, count in sorted(plan.excluded.items()))}." if plan.excluded else "."
    )
