"""The observe stage: records whose pages or images wait for OCR → their tables with what was seen; all others pass by untouched.

What the parse stage could not finish lies in a staged file (`jobs/waiting`); here it is joined with the observations and written. Images of
all records of a batch are read together. The engines are loaded when the first record waits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from raydex.cluster.faults import fault_point
from raydex.cluster.objects import ObjectStore
from raydex.ir.errors import InputError
from raydex.ir.ids import content_hash
from raydex.ir.parsed import ParsedFile
from raydex.ir.rows import parse_tables
from raydex.jobs.context import PENDING, RunContext
from raydex.jobs.flow import BLOCKS, SEEN, StageClock, nest, receipt_columns, replaced, with_columns
from raydex.jobs.observe import Bytes, Observer, Sight, captioned, listed_bytes
from raydex.jobs.places import member_store
from raydex.jobs.progress import report
from raydex.jobs.range_reading import read_readings
from raydex.jobs.rebuild import to_parsed
from raydex.jobs.settle import settle
from raydex.jobs.sink import Sink
from raydex.jobs.waiting import Waiting, read_waiting

READS = ("record_id", "epoch", "start", "path", "uri", "content_hash", "media_type", "attempts", "ranges", "waiting", "blocks")
WRITES = ("state", "failed", "missing", "reject_class", "error", "attempts", "title", "language", "observe_mark", "caption_mark", "seen")
STRINGS = ("state", "failed", "reject_class", "error", "title", "language", "observe_mark", "caption_mark")


class ObserveWorker:
    """Actor of the observe stage."""

    def __init__(self, context: RunContext, board: Any = None) -> None:
        self.context = context
        self.board = board
        settings = context.settings
        self.objects = ObjectStore(context.objects_uri if settings.objects.keep_originals else member_store(context.lake_root))
        kept = settings.objects.keep_originals
        self.observer = Observer(settings, gpus=settings.stages.observe.gpus, keep=self._keep if kept else None)

    def __call__(self, batch: pa.Table) -> pa.Table:
        waits = [at for at, path in enumerate(batch.column("waiting").to_pylist()) if path]
        batch = with_columns(batch, {"seen": pa.array([[] for _ in range(batch.num_rows)], SEEN)})
        if not waits:
            return batch
        rows = batch.drop_columns([c for c in ("blocks", "symbols", "seen", "files", "metrics") if c in batch.column_names]).to_pylist()
        clock = StageClock("observe", len(waits), gpu=self.observer.device != "cpu")
        sink = Sink(self.context.tables)
        waiting = {at: read_waiting(rows[at]["waiting"]) for at in waits}
        sights = {at: self._sight(rows[at], waiting[at]) for at in waits}
        for row in (rows[at] for at in waits):
            fault_point("observe.record", row["path"])
        images = self.observer.observe(list(sights.values()))
        blocks: list[pa.Table] = []
        seen: list[list[dict[str, str]]] = [[] for _ in rows]
        rejects = 0
        for at, sight in sights.items():
            row, parsed = rows[at], sight.parsed if sight.refused is None else _refused(sight.parsed, sight.refused)
            stamp = self.context.stamp("parse", row["record_id"], row["content_hash"], row["epoch"])
            tables = parse_tables(parsed, stamp, waiting[at].ms)
            row["observe_mark"] = self.context.fingerprints["observe"]
            if captioned(sight.parsed, sight.assets):
                row["caption_mark"] = PENDING if self.observer.captions else self.context.fingerprints["caption"]
            self._settle(row, tables)
            rejects += row["state"] == "rejected"
            sink.add(row["epoch"], tables)
            if "blocks" in tables:
                blocks.append(tables["blocks"])
            seen[at] = [{"asset_id": one.asset_id, "kind": one.kind, "text": one.text} for one in parsed.observations if one.text]
        files = sink.flush()
        metrics = [clock.stop(images, rejects)]
        out = self._columns(batch, rows, seen)
        ids = [rows[at]["record_id"] for at in waits]
        fresh = nest(pa.concat_tables(blocks) if blocks else None, BLOCKS, ids)
        out = with_columns(out, {"blocks": replaced(batch.column("blocks"), waits, fresh)})
        report(self.board, "observe", len(waits), rejects, images)
        return receipt_columns(out, files, metrics)

    def _keep(self, data: bytes) -> str:
        return self.objects.put(data, content_hash(data))

    def _settle(self, row: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        """State of the record as it is now; what parsing itself lost stays lost."""
        before = {name: row[name] for name in ("reject_class", "error", "attempts")}
        settle(row, tables)
        if row["state"] == "rejected":
            row["failed"] = "observe"
        elif "rejects" not in tables and before["reject_class"]:
            row.update(before, state="degraded", missing=sorted({*row["missing"], "pages"}))

    def _sight(self, row: dict[str, Any], waiting: Waiting) -> Sight:
        get = self.objects.get
        data = partial(get, waiting.held) if waiting.held else partial(listed_bytes, row["uri"], row["content_hash"])
        assets: dict[str, tuple[str, Bytes]] = {identity: (uri, partial(get, uri)) for identity, uri in waiting.places.items()}
        return Sight(to_parsed(waiting.tables, row["path"]), data, assets, read_readings(row["ranges"] or []))

    def _columns(self, batch: pa.Table, rows: list[dict[str, Any]], seen: list[list[dict[str, str]]]) -> pa.Table:
        columns = {name: pa.array([row[name] or "" for row in rows], pa.string()) for name in STRINGS}
        columns["missing"] = pa.array([row["missing"] or [] for row in rows], pa.list_(pa.string()))
        columns["attempts"] = pa.array([row["attempts"] or 0 for row in rows], pa.int32())
        columns["seen"] = pa.array(seen, SEEN)
        return with_columns(batch, columns)


def _refused(parsed: ParsedFile, error: InputError) -> ParsedFile:
    """What is left of a file whose text goes over a limit: why, and what was noticed before."""
    out = ParsedFile(parsed.record_id, parsed.content_hash, parsed.path, parsed.media_type, events=parsed.events)
    out.add_reject("observe", error.reject_class, str(error))
    out.add_event("observe", "error", error.reject_class, str(error))
    return out
