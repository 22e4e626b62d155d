"""The parse stage: one row a record → its IR tables, written as files; blocks and symbols travel on to the chunker.

One warm child process parses for the actor (contracts 21); a bad document costs itself. The bytes are read here, checked against the
hash of the listing, kept in the object store, and dropped. Records that only a later stage has to redo pass through, with the rejects that
stand from before.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pyarrow as pa

from raydex.cluster.faults import fault_point
from raydex.cluster.objects import ObjectStore
from raydex.ir.errors import REJECT_CLASSES, InputError
from raydex.ir.ids import content_hash
from raydex.ir.rows import Stamp, parse_tables
from raydex.jobs.context import RunContext
from raydex.jobs.flow import BLOCKS, SYMBOLS, StageClock, nest, receipt_columns, with_columns
from raydex.jobs.isolation import ParseChild, ParseReply
from raydex.jobs.pdf_ranges import join_ranges
from raydex.jobs.progress import report
from raydex.jobs.rejects import reject_rows, standing_rejects
from raydex.jobs.sink import Sink
from raydex.jobs.sources import read_uri
from raydex.kernels.detect import detect_media_type
from raydex.kernels.parse import check_limits, rejected
from raydex.kernels.request import ParseRequest

READS = (
    "record_id",
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
)
GROUP_BYTES = 32_000_000
# document warnings that mean that something is missing, and what
DEGRADING = {
    "parse_error": "symbols",
    "no_text_layer": "text",
    "garbled_text": "text",
    "page_error": "pages",
    "no_semantic_blocks": "blocks",
    "invalid_utf8": "characters",
}


class ParseWorker:
    """Actor of the parse stage."""

    def __init__(self, context: RunContext, board: Any = None) -> None:
        self.context = context
        self.board = board
        self.limits = context.settings.limits.to_limits()
        self.objects = ObjectStore(context.objects_uri) if context.settings.objects.keep_originals else None
        self.child = ParseChild(self.limits)

    def __call__(self, batch: pa.Table) -> pa.Table:
        rows = batch.drop_columns([c for c in ("blocks", "symbols") if c in batch.column_names]).to_pylist()
        work = [row for row in rows if row["start"] == "parse"]
        clock = StageClock("parse", len(work))
        sink = Sink(self.context.tables)
        parts: dict[str, list[pa.Table]] = {"blocks": [], "symbols": []}
        rejects = 0
        for group in self._groups(work):
            for row, reply in self._parse(group):
                self._settle(row, reply.tables)
                clock.extra_cpu += reply.ms / 1000
                rejects += row["state"] == "rejected"
                sink.add(row["epoch"], reply.tables)
                for name, kept in parts.items():
                    if name in reply.tables:
                        kept.append(reply.tables[name])
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
        metrics = [clock.stop(len(work) - rejects, rejects)]
        out = _rebuild(batch, rows)
        ids = [row["record_id"] for row in rows]
        for name, kind in (("blocks", BLOCKS), ("symbols", SYMBOLS)):
            table = pa.concat_tables(parts[name]) if parts[name] else None
            out = with_columns(out, {name: nest(table, kind, ids)})
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
            )
            try:
                if row["reject_class"]:
                    raise InputError(row["error"], reject_class=row["reject_class"])
                data = self._read(row)
            except InputError as error:
                parsed = rejected(request, error.reject_class, str(error), (row["attempts"] or 0) + 1)
                done.append((row, ParseReply(parse_tables(parsed, stamp), 0.0)))
                continue
            row["media_type"] = detect_media_type(data[:65536], row["path"])
            if self.objects is not None:
                row["cas_uri"] = self.objects.put(data, row["content_hash"])
            if row["ranges"]:
                done.append((row, join_parts(_with(request, row["media_type"], b""), stamp, row["ranges"])))
                continue
            requests.append((_with(request, row["media_type"], data), stamp))
            asked.append(row)
        done.extend(zip(asked, self.child.parse_many(requests), strict=True))
        return done

    def _read(self, row: dict[str, Any]) -> bytes:
        """The bytes that were listed. InputError: too_large before reading, unreadable, changed_while_read."""
        if (row["size"] or 0) > self.limits.input_bytes:
            raise InputError(f"{row['size']} bytes are more than limits.input_bytes ({self.limits.input_bytes})", reject_class="too_large")
        try:
            data = read_uri(row["uri"])
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", reject_class="unreadable") from error
        if content_hash(data) != row["content_hash"]:
            raise InputError("the content changed between listing and parsing", reject_class="changed_while_read")
        return data

    def _settle(self, row: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        """State of the record after parsing, from the rows that came out."""
        reject = tables["rejects"].slice(0, 1).to_pylist()[0] if "rejects" in tables else None
        if "documents" not in tables:
            assert reject is not None
            retryable = REJECT_CLASSES[reject["class"]].retryable
            row.update(
                state="rejected",
                failed="parse",
                missing=[],
                reject_class=reject["class"],
                error=reject["error"],
                attempts=(row["attempts"] or 0) + 1 if retryable else max(reject["attempts"] or 1, 1),
            )
            return
        document = tables["documents"].slice(0, 1).to_pylist()[0]
        missing = {DEGRADING[w] for w in document["warnings"] or () if w in DEGRADING}
        if document["text_state"] == "unavailable":
            missing.add("text")
        if reject is not None:
            missing.add("pages")
        row.update(
            state="degraded" if missing else "indexed",
            title=document["title"] or "",
            language=document["language"] or "",
            missing=sorted(missing),
            reject_class=reject["class"] if reject else "",
            error=reject["error"] if reject else "",
            attempts=(row["attempts"] or 0) + 1 if reject and REJECT_CLASSES[reject["class"]].retryable else 0,
        )


def join_parts(request: ParseRequest, stamp: Stamp, files: list[str]) -> ParseReply:
    """The reply for a long PDF whose page ranges other workers have parsed."""
    started = time.perf_counter()
    parsed = join_ranges(request, files)
    if parsed.document is not None:
        try:
            check_limits(parsed, request)
        except InputError as error:
            parsed = rejected(request, error.reject_class, str(error))
    ms = 1000 * (time.perf_counter() - started)
    return ParseReply(parse_tables(parsed, stamp, ms), ms)


def _with(request: ParseRequest, media_type: str, data: bytes) -> ParseRequest:
    return replace(request, media_type=media_type, data=data)


def _rebuild(batch: pa.Table, rows: list[dict[str, Any]]) -> pa.Table:
    strings = ("media_type", "cas_uri", "title", "language", "state", "failed", "reject_class", "error")
    columns: dict[str, pa.Array] = {name: pa.array([row.get(name) or "" for row in rows], pa.string()) for name in strings}
    columns["missing"] = pa.array([row.get("missing") or [] for row in rows], pa.list_(pa.string()))
    columns["attempts"] = pa.array([row.get("attempts") or 0 for row in rows], pa.int32())
    return with_columns(batch, columns)
