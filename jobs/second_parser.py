"""docling beside our parser, in a child process of its own (contracts 21): as a fallback, or as a shadow that only says what differs.

Fallback: where the event `too_little` says that our parser found too little (`kernels/too_little.py`), docling reads the file, and its
result is taken if it holds more text. Shadow: docling reads every file that it knows; ours stays, and the event `docling_difference` holds
figures. The invariant: a failure of docling costs nothing but an event, and no event holds text of the document.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pyarrow as pa

from raydex.ir.parsed import ParsedFile
from raydex.ir.rows import Stamp, parse_tables
from raydex.jobs.isolation import Keep, ParseChild, ParseReply
from raydex.jobs.nursery import ChildKind
from raydex.kernels.docling_parse import FORMATS, OFFLINE, PRELOADED, STAGE, docling_identity
from raydex.kernels.limits import Limits
from raydex.kernels.request import ParseRequest
from raydex.kernels.text_difference import compare_texts
from raydex.kernels.too_little import EVENT, REJECTS

Mode = Literal["off", "fallback", "shadow"]
TARGET = "raydex.kernels.docling_parse:parse_docling"
RESIDENT_BYTES = 4_000_000_000
KIND = ChildKind(resident_bytes=RESIDENT_BYTES, variables=tuple(OFFLINE.items()), kept_out=())


class SecondParser:
    """Stateful: owns docling's child, which is started when the first file needs it. `target` is another second parser, for tests.

    Raises ConfigError where docling is chosen, but not installed.
    """

    def __init__(self, mode: Mode, limits: Limits, *, keep: Keep | None = None, target: str = "") -> None:
        self.mode = mode
        if mode != "off":
            docling_identity()
        modules = () if target else PRELOADED
        self._child = ParseChild(limits, target=target or TARGET, tries=1, keep=keep, kind=KIND, modules=modules)

    def __enter__(self) -> SecondParser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._child.close()

    def review(self, request: ParseRequest, stamp: Stamp, reply: ParseReply) -> ParseReply:
        """Our reply, or docling's in its place; with the events of what was done. `request.data` is the file."""
        if self.mode == "off" or request.media_type not in FORMATS or not self._is_wanted(reply):
            return reply
        theirs = self._child.parse(request, stamp)
        if self.mode == "shadow":
            return self._shadow(request, stamp, reply, theirs)
        return self._fall_back(request, stamp, reply, theirs)

    def _is_wanted(self, reply: ParseReply) -> bool:
        if self.mode == "fallback":
            return EVENT in _column(reply, "events", "name")
        return "documents" in reply.tables or bool(REJECTS.intersection(_column(reply, "rejects", "class")))

    def _fall_back(self, request: ParseRequest, stamp: Stamp, ours: ParseReply, theirs: ParseReply) -> ParseReply:
        failed = _failure(theirs)
        if failed:
            return _with_event(request, stamp, ours, "warning", "docling_failed", failed)
        found, before = _characters(theirs), _characters(ours)
        if found <= before:
            return _with_event(request, stamp, ours, "ok", "docling_no_better", f"docling found {found} characters, ours {before}")
        message = f"docling's result is taken: {found} characters, ours {before}{_rejected(ours)}"
        events = [reply.tables["events"] for reply in (ours, theirs) if "events" in reply.tables]
        tables = {**theirs.tables, "events": pa.concat_tables(events)}
        members = [part for part in ours.parts if part.kind == "member"]
        merged = ParseReply(tables, ours.ms + theirs.ms, ours.attempts, "", [*members, *theirs.parts])
        return _with_event(request, stamp, merged, "warning", "docling_fallback", message)

    def _shadow(self, request: ParseRequest, stamp: Stamp, ours: ParseReply, theirs: ParseReply) -> ParseReply:
        failed = _failure(theirs)
        if failed:
            message = f"docling has no result: {failed}"
            return _with_event(request, stamp, ours, "warning", "docling_difference", message, theirs.ms)
        mine = _column(ours, "blocks", "text")
        message = compare_texts(mine, _column(theirs, "blocks", "text")).message() + _rejected(ours)
        return _with_event(request, stamp, ours, "ok", "docling_difference", message, theirs.ms)


def _column(reply: ParseReply, table: str, column: str) -> list[str]:
    return reply.tables[table].column(column).to_pylist() if table in reply.tables else []


def _characters(reply: ParseReply) -> int:
    return sum(_lengths(reply))


def _lengths(reply: ParseReply) -> Iterator[int]:
    for kind, text in zip(_column(reply, "blocks", "kind"), _column(reply, "blocks", "text"), strict=True):
        if kind not in ("image", "error"):
            yield len(text)


def _failure(reply: ParseReply) -> str:
    """Why there is no document, by reject class alone; empty where there is one."""
    return "" if "documents" in reply.tables else ", ".join(_column(reply, "rejects", "class"))


def _rejected(ours: ParseReply) -> str:
    return "" if "documents" in ours.tables else f"; ours was rejected as {', '.join(_column(ours, 'rejects', 'class'))}"


def _with_event(
    request: ParseRequest, stamp: Stamp, reply: ParseReply, status: str, name: str, message: str, ms: float = 0.0
) -> ParseReply:
    carrier = ParsedFile(request.record_id, request.content_hash, request.path, request.media_type)
    carrier.add_event(STAGE, status, name, message, ms)
    event = parse_tables(carrier, stamp)["events"]
    before = reply.tables.get("events")
    reply.tables["events"] = event if before is None else pa.concat_tables([before, event])
    return reply
