"""The stages as plain functions over a small lake, without an engine: what tests of receipts, rejects and vectors share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import read_delta
from raydex.cluster.lake import Lake, load_ledger, next_epoch
from raydex.configs.settings import Settings, load_settings
from raydex.jobs.caption_stage import CaptionWorker, caption_work, images_of
from raydex.jobs.chunk_stage import ChunkWorker
from raydex.jobs.context import RunContext, stage_fingerprints
from raydex.jobs.embed_stage import EmbedWorker
from raydex.jobs.epochs import EpochCommitter, Tally
from raydex.jobs.flow import CAPTIONS
from raydex.jobs.live import sweep, sweep_ledger
from raydex.jobs.observe_stage import ObserveWorker
from raydex.jobs.parse_stage import ParseWorker
from raydex.jobs.pdf_ranges import RangeWorker, SplitWorker, find_long_pdfs
from raydex.jobs.plan import Plan, make_plan
from raydex.jobs.range_reading import ReadWorker
from raydex.jobs.sources import open_source
from raydex.jobs.streams import CutWorker, find_streams, with_segments
from raydex.jobs.work import number_epochs, set_column, work_tables


class PlainRun:
    """Runs over one folder and one lake; `settings` may change from run to run."""

    def __init__(self, folder: Path, root: Path, **overrides: Any) -> None:
        self.folder = folder
        self.lake = Lake(root)
        self.settings = load_settings(None, {"embed": {"model": "none"}, **overrides})
        self.runs = 0
        self.captioner: Callable[[pa.Table], pa.Table] | None = None  # rows of IMAGES → rows of CAPTIONS

    def change(self, **sections: dict[str, Any]) -> None:
        """Sets keys of sections."""
        changed = {name: getattr(self.settings, name).model_copy(update=keys) for name, keys in sections.items()}
        self.settings = self.settings.model_copy(update=changed)

    def context(self) -> RunContext:
        return plain_context(self.lake, self.settings, f"run_{self.runs}")

    def plan(self) -> Plan:
        prints = stage_fingerprints(self.settings)
        return make_plan(self.lake, [open_source(str(self.folder))], load_ledger(self.lake), self.settings, prints)

    def run(self, lost: dict[int, OSError] | None = None) -> Tally:
        """Plan, page ranges, stages, commits and sweep. `lost`: first page of a range → why its worker cannot read the file."""
        self.runs += 1
        context, plan = self.context(), self.plan()
        first = next_epoch(self.lake)
        work = plan.work.filter(pc.field("start") != "caption")
        work = set_column(work, "ranges", self.ranges(context, work, lost or {}))
        large = [CutWorker(context)(pa.Table.from_pylist([row])) for row in find_streams(work, self.settings.run.stream_bytes)]
        work = with_segments(work, {row["record_id"]: row for table in large for row in table.to_pylist()})
        tally = self._pass(context, plan, work, ObserveWorker(context))
        work = caption_work(self.lake, plan.work, first, bool(self.settings.caption.model))
        if work.num_rows:
            captions = self.captioner(images_of(context, work)) if self.settings.caption.model and self.captioner else None
            tally.join(self._pass(context, plan, work, CaptionWorker(context, None, captions)))
        sweep_ledger(self.lake, set(plan.deleted))
        sweep(self.lake, load_ledger(self.lake))
        sweep(self.lake, load_ledger(self.lake), tables=("rejects",))
        return tally

    def _pass(self, context: RunContext, plan: Plan, work: pa.Table, second: ObserveWorker | CaptionWorker) -> Tally:
        work, expected = number_epochs(work, next_epoch(self.lake), self.settings.run.epoch_records)
        committer = EpochCommitter(context, expected, plan.kept)
        workers = [ParseWorker(context), second, ChunkWorker(context), EmbedWorker(context)]
        for batch in work_tables(work, 8) if work.num_rows else ():
            for worker in workers:
                batch = worker(batch)
            committer.add(batch)
        return committer.finish()

    def ranges(self, context: RunContext, work: pa.Table, lost: dict[int, OSError]) -> list[list[str]]:
        """Staged files of the page ranges of each record, as the range workers write them."""
        run = self.settings.run
        found: dict[str, list[str]] = {}
        for row in find_long_pdfs(work, run.pdf_fan_out_pages, self.settings.limits.input_bytes):
            worker = RangeWorker(context)
            for part in SplitWorker(context)(pa.Table.from_pylist([row])).to_pylist():
                if part["first"] in lost:
                    part["uri"] += ".gone"
                table = worker(pa.Table.from_pylist([part]))
                if self.settings.ocr.engine != "none":
                    table = ReadWorker(context)(table)
                found.setdefault(row["record_id"], []).append(table.to_pylist()[0]["part"])
        return [found.get(record, []) for record in work.column("record_id").to_pylist()]

    def rows(self, table: str) -> list[dict[str, Any]]:
        return read_delta(self.lake.tables, table).to_pylist()

    def record(self, path: str) -> dict[str, Any]:
        return next(row for row in load_ledger(self.lake).to_pylist() if row["path"] == path)


def plain_context(lake: Lake, settings: Settings, run_id: str) -> RunContext:
    prints = stage_fingerprints(settings)
    return RunContext(str(lake.root), run_id, settings.workspace, settings, prints, datetime.now(UTC), str(lake.objects))


def with_prints(context: RunContext, **prints: str) -> RunContext:
    return replace(context, fingerprints={**context.fingerprints, **prints})


class Captioner:
    """Says how the image of a key begins; those under `failing` fail with that class."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.failing: dict[str, str] = {}

    def __call__(self, images: pa.Table) -> pa.Table:
        keys = images.column("key").to_pylist()
        self.asked.append(keys)
        rows = []
        for key in reversed(keys):  # in no order
            name = self.failing.get(key, "")
            said = (
                {"status": "failed", "text": "", "error": "no", "reject_class": name}
                if name
                else {"status": "ok", "text": f"seen {key[-8:]}"}
            )
            rows.append({"error": "", "reject_class": "", **said, "key": key, "engine": "eye", "engine_version": "2"})
        return pa.Table.from_pylist(rows, schema=CAPTIONS)
