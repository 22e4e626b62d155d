"""The parse stage: one row a record → its IR tables, written as files; blocks and symbols travel on to the chunker.

One warm child process parses for the actor (contracts 21); a bad document costs itself. The bytes are read here, checked against the
hash of the listing, kept in the object store, and dropped. Records that only a later stage has to redo pass through, with the rejects that
stand from before.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from raydex.cluster.faults import fault_point
from raydex.cluster.objects import ObjectStore
from raydex.ir.errors import InputError
from raydex.ir.ids import content_hash
from raydex.ir.rows import Stamp, parse_tables
from raydex.jobs.context import RunContext
from raydex.jobs.flow import BLOCKS, MARKS, SYMBOLS, StageClock, nest, receipt_columns, with_columns
from raydex.jobs.isolation import ParseChild, ParseReply
from raydex.jobs.member_rows import Families
from raydex.jobs.pdf_ranges import join_ranges
from raydex.jobs.places import member_store
from raydex.jobs.progress import expect, report
from raydex.jobs.rejects import reject_rows, standing_rejects
from raydex.jobs.second_parser import SecondParser
from raydex.jobs.settle import settle
from raydex.jobs.sink import Sink
from raydex.jobs.sources import read_uri
from raydex.jobs.streams import file_head
from raydex.jobs.waiting import DEFERRED, Waiting, write_waiting
from raydex.kernels.detect import detect_media_type
from raydex.kernels.ocr_blocks import UNREAD
from raydex.kernels.parse import check_limits, rejected
from raydex.kernels.request import OUTERMOST, ParseRequest
from raydex.kernels.segment import load_segment
from raydex.kernels.too_little import note_if_too_little

READS = (
    "record_id",
    "parent_id",
    "epoch",
    "start",
    "path",
    "uri",
    "size",
    "content_hash",
    "reject_class",
    "error",
    "attempts",
    "missing",
    "ranges",
    "stored",
    *MARKS,
    "stream",
)
WRITES = (
    "media_type",
    "cas_uri",
    "title",
    "language",
    "state",
    "failed",
    "missing",
    "reject_class",
    "error",
    "attempts",
    "blocks",
    "symbols",
    "members",
    "waiting",
    *MARKS,
)
GROUP_BYTES = 32_000_000


class ParseWorker:
    """Actor of the parse stage."""

    def __init__(self, context: RunContext, board: Any = None) -> None:
        self.context = context
        self.board = board
        self.limits = context.settings.limits.to_limits()
        self.kept = context.settings.objects.keep_originals
        self.objects = ObjectStore(context.objects_uri if self.kept else member_store(context.lake_root))
        self.staging = Path(context.lake_root) / "staging" / f"waiting-{context.run_id}"
        self.child = ParseChild(self.limits, keep=self._keep)
        self.second = SecondParser(context.settings.docling.mode, self.limits, keep=self._keep)

    def __call__(self, batch: pa.Table) -> pa.Table:
        rows = batch.drop_columns([c for c in ("blocks", "symbols") if c in batch.column_names]).to_pylist()
        work = [row for row in rows if row["start"] == "parse"]
        clock = StageClock("parse", len(work))
        sink = Sink(self.context.tables)
        parts: dict[str, list[pa.Table]] = {"blocks": [], "symbols": []}
        rejects = 0
        families = Families(self.limits, kept=self.kept)
        waiting = work
        while waiting:
            members: list[dict[str, Any]] = []
            for group in self._groups(waiting):
                for row, reply in self._parse(group):
                    tables = self._finish(row, reply)
                    clock.extra_cpu += reply.ms / 1000
                    rejects += row["state"] == "rejected"
                    sink.add(row["epoch"], tables)
                    for name, kept in parts.items():
                        if name in tables:
                            kept.append(tables[name])
                    if not _is_streamed(row):
                        members += families.members_of(row, reply.parts)
            rows += members
            work = [*work, *members]
            waiting = members
        standing = standing_rejects(self.context, rows)
        for row in rows:
            before = standing.get(row["record_id"])
            if before is not None:
                sink.add(row["epoch"], {"rejects": before})
            if row["start"] == "keep":
                stamp = self.context.stamp("list", row["record_id"], row["content_hash"], row["epoch"])
                sink.add(row["epoch"], reject_rows(row, "list", stamp))
                row.update(state="degraded", failed="list", attempts=(row["attempts"] or 0) + 1)
            elif row["start"] != "parse":
                row.update(state="degraded" if row["missing"] else "indexed", missing=row["missing"] or [], reject_class="", error="")
                if before is not None:
                    row.update(reject_class=before.column("class")[0].as_py(), error=before.column("error")[0].as_py())
        files = sink.flush()
        clock.rows_in = len(work)
        metrics = [clock.stop(len(work) - rejects, rejects)]
        out = _rebuild(_extended(batch, rows), rows)
        ids = [row["record_id"] for row in rows]
        for name, kind in (("blocks", BLOCKS), ("symbols", SYMBOLS)):
            table = pa.concat_tables(parts[name]) if parts[name] else None
            out = with_columns(out, {name: nest(table, kind, ids)})
        for stage in ("parse", "chunk", "embed"):  # attachments and the like, which nobody could count before
            expect(self.board, stage, out.num_rows - batch.num_rows)
        expect(self.board, "observe", sum(bool(row.get("waiting")) for row in work))
        report(self.board, "parse", len(work), rejects, sum(row["size"] or 0 for row in work))
        return receipt_columns(out, files, metrics)

    def _groups(self, rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        """Rows in runs of at most GROUP_BYTES, so that a batch of large files is never in memory at once."""
        groups: list[list[dict[str, Any]]] = []
        room = 0
        for row in rows:
            size = row["size"] or 0
            if not groups or size > room:
                groups.append([])
                room = GROUP_BYTES
            groups[-1].append(row)
            room -= size
        return groups

    def _parse(self, rows: list[dict[str, Any]]) -> list[tuple[dict[str, Any], ParseReply]]:
        context = self.context
        requests: list[tuple[ParseRequest, Any]] = []
        asked: list[dict[str, Any]] = []
        done: list[tuple[dict[str, Any], ParseReply]] = []
        for row in rows:
            fault_point("parse.record", row["path"])
            stamp = context.stamp("parse", row["record_id"], row["content_hash"], row["epoch"])
            request = ParseRequest(
                record_id=row["record_id"],
                content_hash=row["content_hash"],
                path=row["path"],
                media_type="application/octet-stream",
                data=b"",
                workspace=context.workspace,
                repository=row["repository"],
                limits=self.limits,
                nesting=row.get("nesting", OUTERMOST),
                inside=row.get("inside", ""),
                measure=self.second.mode == "fallback",
            )
            if "held" not in row and row["stream"]:
                if _is_streamed(row):
                    done.append((row, self._head(row, request, stamp)))
                    continue
                request = replace(request, segment=load_segment(row["stream"]))
            try:
                if row["reject_class"]:
                    raise InputError(row["error"], reject_class=row["reject_class"])
                data = self.objects.get(row["held"]) if "held" in row else self._read(row)
            except InputError as error:
                parsed = rejected(request, error.reject_class, str(error), (row["attempts"] or 0) + 1)
                done.append((row, ParseReply(parse_tables(parsed, stamp), 0.0)))
                continue
            if "held" not in row and request.segment is None:
                row["media_type"] = detect_media_type(data[:65536], row["path"])
            if self.kept and request.segment is None:
                row["cas_uri"] = self._keep(data)
            if row["ranges"]:
                joined = join_parts(_with(request, row["media_type"], b""), stamp, row["ranges"])
                done.append((row, self.second.review(_with(request, row["media_type"], data), stamp, joined)))
                continue
            requests.append((_with(request, row["media_type"], data), stamp))
            asked.append(row)
        # ours first: while docling reads, no clock of the other child may run
        replies = list(self.child.parse_many(requests))
        for row, (request, stamp), reply in zip(asked, requests, replies, strict=True):
            done.append((row, self.second.review(request, stamp, reply)))
        return done

    def _read(self, row: dict[str, Any]) -> bytes:
        """The bytes that were listed. InputError: too_large before reading, unreadable, changed_while_read."""
        if (row["size"] or 0) > self.limits.input_bytes and not row["stream"]:
            raise InputError(f"{row['size']} bytes are more than limits.input_bytes ({self.limits.input_bytes})", reject_class="too_large")
        try:
            data = self.objects.get(row["cas_uri"]) if row["stream"] and row["cas_uri"] else read_uri(row["uri"])
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", reject_class="unreadable") from error
        if content_hash(data) != row["content_hash"]:
            raise InputError("the content changed between listing and parsing", reject_class="changed_while_read")
        return data

    def _head(self, row: dict[str, Any], request: ParseRequest, stamp: Stamp) -> ParseReply:
        """The reply for a streamed file, whose segments are rows of their own."""
        parsed, row["members"] = file_head(replace(request, media_type=row["media_type"]), row["stream"])
        return ParseReply(parse_tables(parsed, stamp), 0.0)

    def _keep(self, data: bytes) -> str:
        return self.objects.put(data, content_hash(data))

    def _finish(self, row: dict[str, Any], reply: ParseReply) -> dict[str, pa.Table]:
        """Settles the row and returns the tables to be written: those of a record that waits for OCR are staged instead. Assets learn where
        their bytes are kept."""
        tables = reply.tables
        places = {part.asset_id: part.uri for part in reply.parts if part.kind == "asset"}
        if self.kept and "assets" in tables:
            tables["assets"] = _with_places(tables["assets"], places)
        settle(row, tables)
        row["waiting"] = ""
        if not waits(tables, places):
            return tables
        held = row["cas_uri"] if self.kept else row.get("held", "")
        deferred = {name: table for name, table in tables.items() if name in DEFERRED}
        row["waiting"] = write_waiting(self.staging, Waiting(deferred, places, held, reply.ms))
        return {name: table for name, table in tables.items() if name not in DEFERRED}


def waits(tables: dict[str, pa.Table], places: dict[str, str]) -> bool:
    """Whether a record holds images, or pages without usable text. Images of a PDF stay in it: they are cut out of their pages."""
    if "documents" not in tables:
        return False
    if places:
        return True
    if "pages" not in tables or tables["documents"].column("media_type")[0].as_py() != "application/pdf":
        return False
    if "assets" in tables:
        return True
    pages = tables["pages"].select(["text_state", "warnings"]).to_pylist()
    return any(page["text_state"] == "unavailable" and not UNREAD.isdisjoint(page["warnings"] or ()) for page in pages)


def _is_streamed(row: dict[str, Any]) -> bool:
    """Whether it is a file whose segments are in the work already."""
    return bool(row["stream"]) and not row["parent_id"]


def join_parts(request: ParseRequest, stamp: Stamp, files: list[str]) -> ParseReply:
    """The reply for a long PDF whose page ranges other workers have parsed."""
    started = time.perf_counter()
    parsed = join_ranges(request, files)
    if parsed.document is not None:
        try:
            check_limits(parsed, request)
        except InputError as error:
            parsed = rejected(request, error.reject_class, str(error))
    if request.measure:
        note_if_too_little(parsed, request)
    ms = 1000 * (time.perf_counter() - started)
    return ParseReply(parse_tables(parsed, stamp, ms), ms)


def _with(request: ParseRequest, media_type: str, data: bytes) -> ParseRequest:
    return replace(request, media_type=media_type, data=data)


def _with_places(assets: pa.Table, places: dict[str, str]) -> pa.Table:
    uris = [places.get(asset, uri) for asset, uri in zip(assets.column("asset_id").to_pylist(), assets.column("cas_uri").to_pylist())]
    at = assets.schema.get_field_index("cas_uri")
    return assets.set_column(at, assets.schema.field(at), pa.array(uris, pa.string()))


def _extended(batch: pa.Table, rows: list[dict[str, Any]]) -> pa.Table:
    """The batch and behind it the rows that it has not yet: those of members."""
    more = [{name: row.get(name) for name in batch.column_names} for row in rows[batch.num_rows :]]
    return pa.concat_tables([batch, pa.Table.from_pylist(more, batch.schema)]) if more else batch


def _rebuild(batch: pa.Table, rows: list[dict[str, Any]]) -> pa.Table:
    strings = ("media_type", "cas_uri", "title", "language", "state", "failed", "reject_class", "error", *MARKS, "waiting")
    columns: dict[str, pa.Array] = {name: pa.array([row.get(name) or "" for row in rows], pa.string()) for name in strings}
    columns["missing"] = pa.array([row.get("missing") or [] for row in rows], pa.list_(pa.string()))
    columns["attempts"] = pa.array([row.get("attempts") or 0 for row in rows], pa.int32())
    columns["members"] = pa.array([row.get("members") or 0 for row in rows], pa.int32())
    return with_columns(batch, columns)
