"""A large file of records → the segments that it is read in: one scan, block by block, which builds nothing of the content.

Each segment begins where a record begins, at the first one behind a multiple of `SEGMENT_BYTES` or sooner, where the records are small. The
invariant: the segments tile the file, none is longer than `SEGMENT_BYTES` and one record, and memory holds one block, whatever the size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
from blake3 import blake3

from raydex.ir.errors import InputError, LimitError
from raydex.ir.file_range import FileRange
from raydex.ir.locator import split_lines
from raydex.ir.parsed import ParsedFile
from raydex.kernels.csv_data import RUNAWAY_LINES, first_record, say_open_quotes
from raydex.kernels.csv_dialect import SAMPLE_CHARS, CsvDialect, find_dialect, is_open, read_plainly
from raydex.kernels.decode import BOMS, Decoded, decode, decode_as, looks_binary
from raydex.kernels.drafts import Draft, finish
from raydex.kernels.request import ParseRequest
from raydex.kernels.segment import Segment, StreamPlan, segment_of
from raydex.kernels.stream_ends import LINE_FEED, RETURN, Ends, LogLines, csv_ends, line_ends, text_ends, unit_type
from raydex.kernels.stream_xml import XML, plan_xml

PARSER_VERSION = "1"
SEGMENT_BYTES = 1 << 20
SEGMENT_RECORDS = 25_000
BLOCK_BYTES = 4 << 20
RECORD_BYTES = 16 << 20  # a record that is longer never ends
OPEN_QUOTES = 8  # so many of them are read as what they are not: more, and the file is no CSV
CSV_TYPES = ("text/csv", "text/tab-separated-values")
_STATEFUL = ("iso2022_jp", "hz")
_MARKS = tuple(mark for mark, _ in BOMS)

Read = Callable[[int, int], bytes]  # (offset, bytes) → that many, fewer at the end


def dump_plan(plan: StreamPlan) -> bytes:
    return orjson.dumps(plan)


def load_plan(data: bytes) -> StreamPlan:
    value = orjson.loads(data)
    dialect = CsvDialect(**value["dialect"]) if value["dialect"] else None
    return StreamPlan(**{**value, "dialect": dialect, "segments": [segment_of(item) for item in value["segments"]]})


def plan_stream(
    read: Read,
    size: int,
    media_type: str,
    *,
    records: int,
    segment_bytes: int = SEGMENT_BYTES,
    segment_records: int = SEGMENT_RECORDS,
    record_bytes: int = RECORD_BYTES,
) -> StreamPlan:
    """Raises InputError: unsupported_media_type for binary content and stateful encodings, too_many_records, invalid_input for records that
    never end, changed_while_read when the file becomes shorter. Raises NotCut for XML that has to be read whole."""
    if media_type == XML:
        sizes = {"segment_bytes": segment_bytes, "segment_records": segment_records, "record_bytes": record_bytes}
        return plan_xml(read, size, records=records, block_bytes=min(BLOCK_BYTES, record_bytes), **sizes)
    scan = Scan(read, StreamPlan(media_type, size), records, segment_bytes, segment_records, record_bytes)
    scan.run()
    return scan.plan


def find_encoding(read: Read, size: int) -> tuple[str, list[str]]:
    """As `decode` finds it: the first block that is not UTF-8 decides, unless a block before it was, and not by being ASCII."""
    utf8 = False
    at = 0
    while at < size:
        block = read(at, BLOCK_BYTES)
        if not block:
            raise _changed()
        if at == 0:
            wide = decode(block[: 1 << 16])
            if wide.encoding.startswith(("utf-16", "utf-32")):
                return wide.encoding, wide.warnings
        if looks_binary(block):
            decode(block)  # says so
        end = len(block)
        if at + end < size:
            end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1 or end
        part = block[:end]
        try:
            part.decode("utf-8")
            utf8 = utf8 or not part.isascii()
        except UnicodeDecodeError:
            found = decode(part)
            if utf8 or found.encoding == "utf-8":
                return "utf-8", []
            return found.encoding, [name for name in found.warnings if name != "nul_replaced"]
        if b"\x1b$" in part and part.isascii() and decode(part).encoding in _STATEFUL:
            message = "a large file in an encoding with states cannot be cut"
            raise InputError(message, reject_class="unsupported_media_type", remedy="Convert it to UTF-8")
        at += end
    return "utf-8", []


def _changed() -> InputError:
    return InputError("the content changed while it was read", reject_class="changed_while_read")


class Scan:
    """One pass over one file. `at` is the beginning of the first record that has not been passed, `start` that of the open segment."""

    def __init__(self, read: Read, plan: StreamPlan, records: int, segment_bytes: int, segment_records: int, record_bytes: int) -> None:
        self.read = read
        self.plan = plan
        self.most_records = records
        self.segment_bytes = segment_bytes
        self.segment_records = segment_records
        self.record_bytes = record_bytes
        self.block_bytes = min(BLOCK_BYTES, record_bytes)
        self.start = self.at = 0
        self._char = self._line = 0
        self._in_segment = 0
        self._hash = blake3()
        self._width = 0
        self._log: LogLines | None = None
        self._type = np.dtype("u1")

    def run(self) -> None:
        plan = self.plan
        plan.encoding, plan.warnings = find_encoding(self.read, plan.size)
        self._type = unit_type(plan.encoding)
        if plan.media_type in CSV_TYPES:
            head = decode_as(self._bytes(0, min(plan.size, 4 * SAMPLE_CHARS + 64)), plan.encoding)
            plan.dialect = find_dialect(head, plan.media_type)
        elif plan.media_type == "text/x-log":
            self._log = LogLines(plan.encoding)
        mark = next((mark for mark, name in BOMS if name == plan.encoding and self.read(0, 4).startswith(mark)), b"")
        self.at = len(mark)
        want = self.block_bytes
        while self.at < plan.size:
            final = self.at + want >= plan.size
            block = self._bytes(self.at, min(want, plan.size - self.at))
            units = np.frombuffer(block, self._type, len(block) // self._type.itemsize)
            if not final and units.size and units[-1] == 13:
                units = units[:-1]
            ends, open_at = self._ends(units, final)
            if ends.at.size:
                want = self.block_bytes
                self._pass(units, ends)
            if final and not ends.at.size and open_at is None:
                break  # nothing but a part of a code unit
            if open_at is not None or (not ends.at.size and len(block) >= self.record_bytes):
                self._open_quote()
                want = self.block_bytes
            elif not ends.at.size:
                want *= 2
        self._cut(plan.size)
        plan.content_hash = self._hash.hexdigest()

    def _bytes(self, start: int, size: int) -> bytes:
        data = self.read(start, size)
        if len(data) != size:
            raise _changed()
        return data

    def _ends(self, units: np.ndarray, final: bool) -> tuple[Ends, int | None]:
        """Ends in the block; at the end of the file what is left is a record, unless it is an open quote and all that it has eaten."""
        plan = self.plan
        if plan.dialect is not None:
            ends = csv_ends(units, plan.dialect, plan.encoding)
        else:
            ends = text_ends(units, feeds_only=plan.media_type == "application/jsonl")
        if not final:
            return ends, None
        if plan.dialect is not None and not plan.dialect.plain:
            last = int(ends.at[-1]) if ends.at.size else 0
            if last < units.size:
                left = line_ends(units[last:])
                lines = left.size + (not left.size or int(left[-1]) < units.size - last)
                if left.size + 1 > RUNAWAY_LINES or (lines > 1 and is_open(plan.dialect, decode_as(units[last:].tobytes(), plan.encoding))):
                    return ends, last
            elif ends.at.size:
                before = int(ends.at[-2]) if ends.at.size > 1 else 0
                if line_ends(units[before:]).size > RUNAWAY_LINES:
                    return ends.before(before) if before else Ends(ends.at[:0], ends.filled[:0]), before
        if not ends.at.size or ends.at[-1] < units.size:
            first = units[int(ends.at[-1]) if ends.at.size else 0]
            blank = plan.dialect is not None and first in (LINE_FEED, RETURN)
            ends = Ends(np.append(ends.at, units.size), np.append(ends.filled, not blank))
        return ends, None

    def _pass(self, units: np.ndarray, ends: Ends) -> None:
        """Goes on to behind the last of the ends; cuts on the way."""
        base, width = self.at, self._type.itemsize
        counts = np.concatenate(([0], np.cumsum(ends.filled)))
        done = 0
        while True:
            room = self.start + self.segment_bytes - self.start % self.segment_bytes - base
            by_size = int(np.searchsorted(ends.at, max(0, -(-room // width)), "left"))
            by_count = int(np.searchsorted(counts, counts[done] + self.segment_records - self._in_segment, "left")) - 1
            found = self._choose(units, ends.at, max(min(by_size, by_count), done))
            if found is None:
                break
            self._add(int(counts[found + 1] - counts[done]))
            self._cut(base + int(ends.at[found]) * width)
            done = found + 1
        self._add(int(counts[-1] - counts[done]))
        if self._log is not None:
            self._log.settle(units, ends.at)
        self.at = base + int(ends.at[-1]) * width
        if self.at - self.start > self.record_bytes:
            if self._log is None:
                raise self._endless("a record")
            self._cut(self.at)

    def _choose(self, units: np.ndarray, ends: np.ndarray, wanted: int) -> int | None:
        """The first of the ends from `wanted` on at which the file may be cut: never in front of a byte-order mark, which would be lost."""
        while wanted < ends.size:
            if self._log is not None:
                found = self._log.pick(units, ends, wanted)
                if found is None:
                    return None
                wanted = found
            after = units[int(ends[wanted]) : int(ends[wanted]) + 4].tobytes()
            if not after.startswith(_MARKS):
                return wanted
            wanted += 1
        return None

    def _add(self, count: int) -> None:
        self._in_segment += count
        header = self.start == 0 and self.plan.dialect is not None and self.plan.dialect.has_header
        if self.plan.records + self._in_segment - header > self.most_records:
            message = f"more than {self.most_records} records (limits.records)"
            raise LimitError(message, reject_class="too_many_records", remedy="Split the file or raise limits.records")

    def _open_quote(self) -> None:
        """The record at `at` never ends. One line of it is a segment of its own, in which the quote is a character."""
        plan = self.plan
        if plan.dialect is None:
            raise self._endless("a line")
        if len(plan.open_quotes) >= OPEN_QUOTES:
            raise self._endless("too many quotes open a record that")
        block = self._bytes(self.at, min(self.record_bytes, plan.size - self.at))
        units = np.frombuffer(block, self._type, len(block) // self._type.itemsize)
        stops = line_ends(units)
        if not stops.size and len(block) >= self.record_bytes:
            raise self._endless("a line")
        stop = self.at + (int(stops[0]) * self._type.itemsize if stops.size else len(block))
        if self.start < self.at and (self.start or self._in_segment):
            self._cut(self.at)
        plan.open_quotes.append(self._line + 1)
        self._add(1)
        self._cut(stop, plain=True)
        self.at = stop

    def _endless(self, what: str) -> InputError:
        line = self._line + 1
        message = f"{what} of more than {self.record_bytes} bytes, behind line {line}: it never ends"
        return InputError(message, reject_class="invalid_input", remedy="Look for a quote that is never closed, or split the record")

    def _cut(self, end: int, *, plain: bool = False) -> None:
        """Closes the segment that is open."""
        if end <= self.start:
            return
        plan = self.plan
        data = self._bytes(self.start, end - self.start)
        text = decode_as(data, plan.encoding)
        self._hash.update(data)
        records, leads = self._in_segment, self.start == 0
        dialect = plan.dialect
        if dialect is not None:
            dialect = read_plainly(dialect) if plain else dialect
            if leads:
                records -= self._read_head(text, dialect)
        elif plan.media_type == "application/jsonl":
            records = sum(1 for line in text.encode().split(b"\n") if line.strip())
        place = FileRange(self.start, end, self._char, self._line)
        plan.segments.append(
            Segment(
                place,
                plan.records,
                records,
                text.count("\n") + text.count("\r") - text.count("\r\n") + (not text.endswith(("\n", "\r"))),
                blake3(data).hexdigest(),
                plan.encoding,
                dialect,
                plan.columns if dialect is not None else [],
                self._width,
                leads,
            )
        )
        plan.records += records
        self._char += len(text)
        self._line += plan.segments[-1].lines
        self.start, self._in_segment = end, 0

    def _read_head(self, text: str, dialect: CsvDialect) -> int:
        """Names and number of the columns, from the first segment; how many records the header is, with the lines above the table."""
        above = sum(1 for line in split_lines(text)[: dialect.above] if line.strip("\r\n"))
        found = first_record(text, dialect)
        if found is None:
            return above
        self._width = len(found[1])
        if not dialect.has_header:
            return above
        self.plan.columns, self.plan.header = found[1], found[0]
        return above + 1


def stream_document(request: ParseRequest, plan: StreamPlan) -> ParsedFile:
    """The head of a streamed file: what is true of all of its segments, which are records of their own. A header is its one block."""
    drafts = []
    if plan.header:
        about: dict[str, Any] = {"columns": plan.columns, "delimiter": plan.dialect.delimiter if plan.dialect else "", "cells": []}
        drafts.append(Draft("table", 0, len(plan.header), plan.header, about))
    metadata: dict[str, Any] = {"records": plan.records, "segments": len(plan.segments)}
    if plan.dialect is not None:
        metadata |= {"columns": plan.columns, "delimiter": plan.dialect.delimiter}
    warnings = (*plan.warnings, *(("open_quote",) if plan.open_quotes else ()))
    parsed = finish(
        request,
        Decoded(plan.header, plan.encoding),
        drafts,
        parser="stream",
        parser_version=PARSER_VERSION,
        warnings=warnings,
        metadata=metadata,
    )
    say_open_quotes(parsed, plan.open_quotes)
    return parsed
