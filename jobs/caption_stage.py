"""Captions: a second pass of a run, over the records that hold images, once their text is safe in the tables.

Images of all these records are described first, each once (`jobs/caption_models`); then the records run again from here on: observations
with captions beside what OCR saw, chunks that hold both, vectors of the chunks that changed. The invariant: a run that is killed before or
within this pass has lost no text, and the next one goes on with it, since the ledger marks such records `pending`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import read_data_file
from raydex.cluster.faults import fault_point
from raydex.cluster.lake import Lake, load_ledger
from raydex.ir.document import Asset
from raydex.ir.errors import REJECT_CLASSES, ConfigError
from raydex.ir.ids import make_id
from raydex.ir.parsed import ParsedFile
from raydex.ir.rows import parse_tables
from raydex.jobs.context import PENDING, RunContext
from raydex.jobs.flow import IMAGES, SEEN, StageClock, receipt_columns, with_columns
from raydex.jobs.live import live_rows
from raydex.jobs.member_plan import work_row
from raydex.jobs.progress import report
from raydex.jobs.rebuild import to_asset, to_observation
from raydex.jobs.rejects import reject_rows
from raydex.jobs.sink import Sink
from raydex.jobs.work import WorkRows
from raydex.kernels.ocr_blocks import add_unavailable
from raydex.kernels.picture import FORMATS

READS = ("record_id", "epoch", "start", "path", "content_hash", "state", "missing", "attempts", "stored")
WRITES = ("state", "failed", "missing", "reject_class", "error", "attempts", "caption_mark", "seen")
STRINGS = ("state", "failed", "reject_class", "error", "caption_mark")


def check_captions(settings: Any) -> None:
    """Raises ConfigError when captions are asked for that no later pass could make."""
    if settings.caption.base_url and not settings.caption.model:
        raise ConfigError("a server for captions is named, and no model", place="caption.model", remedy="Set caption.model")
    if settings.caption.model and not settings.objects.keep_originals:
        said = "captions need the images in the object store, and objects.keep_originals is off"
        raise ConfigError(said, place="caption.model", remedy="Set objects.keep_originals: true, or clear caption.model")


def caption_work(lake: Lake, planned: pa.Table, first_epoch: int, configured: bool) -> pa.Table:
    """Rows of WORK that start at captions: those that the plan names, and those that this run has left pending, from `first_epoch` on."""
    named = planned.filter(pc.field("start") == "caption")
    if not configured:
        return named
    ledger = load_ledger(lake)
    mark = pc.map_lookup(ledger.column("fingerprints"), pa.scalar("caption"), "first")
    waiting = ledger.filter(pc.and_(pc.fill_null(pc.equal(mark, PENDING), False), pc.greater_equal(ledger.column("epoch"), first_epoch)))
    rows = WorkRows()
    for batch in waiting.to_batches(max_chunksize=4_096):
        for row in batch.to_pylist():
            rows.append({**work_row("caption", row), "missing": row["missing"] or [], "error": row["error"]})
    return pa.concat_tables([named, rows.table(lake)])


def images_of(context: RunContext, work: pa.Table) -> pa.Table:
    """Each different image of these records once: rows of IMAGES."""
    assets = [item for row in work.select(["stored"]).to_pylist() for item in row["stored"] or () if item["table"] == "assets"]
    hashes = dict(zip(work.column("record_id").to_pylist(), work.column("content_hash").to_pylist(), strict=True))
    found: dict[str, str] = {}
    for path in sorted({item["path"] for item in assets}):
        rows = live_rows(read_data_file(context.tables, "assets", path), hashes, context.fingerprints["parse"])
        for uri, media_type in zip(rows.column("cas_uri").to_pylist(), rows.column("media_type").to_pylist(), strict=True):
            if uri and media_type in FORMATS:
                found.setdefault(uri, media_type)
    keys = sorted(found)
    return pa.Table.from_pydict({"key": keys, "uri": keys, "media_type": [found[key] for key in keys]}, schema=IMAGES)


class CaptionWorker:
    """Actor of the caption stage. `captions`: rows of CAPTIONS, or a reference to them in Ray's object store; None when no model is
    configured."""

    def __init__(self, context: RunContext, board: Any, captions: Any) -> None:
        self.context = context
        self.board = board
        self.captions = captions if captions is None or isinstance(captions, pa.Table) else _fetch(captions)
        keys = self.captions.column("key").to_pylist() if self.captions is not None else []
        self.places = {key: at for at, key in enumerate(keys)}

    def __call__(self, batch: pa.Table) -> pa.Table:
        if "seen" not in batch.column_names:
            batch = with_columns(batch, {"seen": pa.array([[] for _ in range(batch.num_rows)], SEEN)})
        rows = batch.drop_columns([c for c in ("blocks", "symbols", "files", "metrics") if c in batch.column_names]).to_pylist()
        work = [row for row in rows if row["start"] == "caption"]
        clock = StageClock("caption", len(work))
        sink = Sink(self.context.tables)
        held = self._load(work)
        rejects = made = 0
        for row in work:
            fault_point("caption.record", row["path"])
            parsed = held[row["record_id"]]
            failures = self._observe(parsed, row)
            made += sum(one.kind == "caption" and one.status == "ok" for one in parsed.observations)
            row["seen"] = [{"asset_id": one.asset_id, "kind": one.kind, "text": one.text} for one in parsed.observations if one.text]
            stamp = self.context.stamp("parse", row["record_id"], row["content_hash"], row["epoch"])
            sink.add(row["epoch"], parse_tables(parsed, stamp))
            again = next((failure for failure in failures if REJECT_CLASSES[failure["reject_class"]].retryable), None)
            row["missing"] = sorted({*(row["missing"] or ())} - {"caption"} | ({"caption"} if again else set()))
            if again is None:
                row.update(caption_mark=self.context.fingerprints["caption"], state="degraded" if row["missing"] else "indexed")
                continue
            rejects += 1
            row.update(state="degraded", failed="caption", reject_class=again["reject_class"], error=again["error"], caption_mark=PENDING)
            sink.add(row["epoch"], reject_rows(row, "caption", stamp))
            row["attempts"] = (row["attempts"] or 0) + 1
        files = sink.flush()
        columns = {name: pa.array([row[name] or "" for row in rows], pa.string()) for name in STRINGS}
        columns["missing"] = pa.array([row["missing"] or [] for row in rows], pa.list_(pa.string()))
        columns["attempts"] = pa.array([row["attempts"] or 0 for row in rows], pa.int32())
        columns["seen"] = pa.array([row["seen"] or [] for row in rows], SEEN)
        report(self.board, "caption", len(work), rejects, made)
        return receipt_columns(with_columns(batch, columns), files, [clock.stop(made, rejects)])

    def _observe(self, parsed: ParsedFile, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Puts captions in the place of those that stood; returns those that failed."""
        parsed.observations = [one for one in parsed.observations if one.kind != "caption"]
        images = [asset for asset in parsed.assets if asset.cas_uri and asset.media_type in FORMATS]
        if self.captions is None:
            add_unavailable(parsed, "caption", images)
            parsed.assets = []
            return []
        _say_frames(parsed)
        failures = []
        for asset in images:
            found = self._caption(asset)
            identity = make_id("obs", parsed.record_id, parsed.content_hash, "caption", asset.asset_id, found["engine"])
            parsed.observations.append(
                to_observation(
                    {
                        "observation_id": identity,
                        "asset_id": asset.asset_id,
                        "kind": "caption",
                        "status": found["status"],
                        "locator": str(asset.locator),
                        "text": found["text"],
                        "confidence": None,
                        "engine": found["engine"],
                        "engine_version": found["engine_version"],
                    }
                )
            )
            if found["status"] != "ok":
                failures.append(found)
                parsed.add_event("caption", "error", "caption_failed", f"{asset.locator}: {found['error']}")
        parsed.assets = []
        return failures

    def _caption(self, asset: Asset) -> dict[str, Any]:
        assert self.captions is not None
        at = self.places.get(asset.cas_uri)
        if at is None:
            missing = {"status": "failed", "text": "", "error": "no answer came for this image", "reject_class": "internal"}
            return {**missing, "engine": self.context.settings.caption.model, "engine_version": ""}
        return self.captions.slice(at, 1).to_pylist()[0]

    def _load(self, work: list[dict[str, Any]]) -> dict[str, ParsedFile]:
        """record_id → its assets and observations as the tables hold them."""
        hashes = {row["record_id"]: row["content_hash"] for row in work}
        out = {row["record_id"]: ParsedFile(row["record_id"], row["content_hash"], row["path"], row["media_type"]) for row in work}
        files: dict[str, set[str]] = defaultdict(set)
        for row in work:
            for item in row["stored"] or ():
                files[item["table"]].add(item["path"])
        where = pc.field("record_id").isin(pa.array(list(hashes), pa.string()))
        for name, key, make in (("assets", "ordinal", to_asset), ("observations", "observation_id", to_observation)):
            parts = [read_data_file(self.context.tables, name, path, where=where) for path in sorted(files[name])]
            if parts:
                table = live_rows(pa.concat_tables(parts), hashes, self.context.fingerprints["parse"])
                for item in table.sort_by(key).to_pylist():
                    getattr(out[item["record_id"]], name).append(make(item))
        return out


def _say_frames(parsed: ParsedFile) -> None:
    """OCR has an observation of each frame of an image file, and keeps those behind the first, which is the file, as assets; one that it
    could not have is none."""
    numbers = {one.locator.page for one in parsed.observations if one.kind == "ocr" and one.locator.page}
    left = len(numbers - {1} - {asset.locator.page for asset in parsed.assets})
    if parsed.media_type in FORMATS and left:
        said = f"{left:,} of {len(numbers):,} frames have no caption, as OCR did not read them; set ocr.engine where it is none"
        parsed.add_event("caption", "warning", "frames_not_captioned", said)


def _fetch(reference: Any) -> pa.Table:
    import ray

    return ray.get(reference)
