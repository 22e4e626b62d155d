"""CSV and TSV → DocumentIR: tables of consecutive records, each block the source's own text with its cells beside it (seed 3 §3).

The invariant: a block's text is the slice of the decoded text at its locator; its `rows` are the records in it, cell by cell as the
dialect reads them; the locator's row is the number of its first record, 1-based, the header not counted; every record is in one block.
"""

from __future__ import annotations

import csv
import gc
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

from raydex.ir.locator import split_lines
from raydex.ir.parsed import ParsedFile
from raydex.kernels.csv_dialect import CsvDialect, find_dialect, is_open
from raydex.kernels.decode import decode
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.request import ParseRequest
from raydex.kernels.segment import decode_segment

PARSER_VERSION = "3"
PIECE = 4_000  # characters of one block, unless a record is longer
ROWS = 200  # records of one block
RUNAWAY_LINES = 500  # a record of more lines that never ends has lost a quote
OPEN_QUOTES = 20  # that are told one by one

Record = tuple[int, int, list[str]]  # first line, line behind the last, cells


def parse_csv(request: ParseRequest) -> ParsedFile:
    """Raises InputError: unsupported_media_type for binary content, too_many_blocks."""
    csv.field_size_limit(1 << 30)
    segment = request.segment
    decoded = decode(request.data) if segment is None else decode_segment(request.data, segment)
    text = decoded.text
    dialect = (segment.dialect if segment is not None else None) or find_dialect(text, request.media_type)
    table = CsvTable(text, dialect, request)
    with collector_off():
        table.read()
    if table.open_quotes:
        table.warnings.append("open_quote")
    if table.ragged:
        table.warnings.append("ragged_rows")
    metadata = {"columns": table.columns, "delimiter": dialect.delimiter, "records": table.count - table.before}
    parsed = finish(
        request, decoded, table.drafts, parser="csv", parser_version=PARSER_VERSION, warnings=tuple(table.warnings), metadata=metadata
    )
    say_open_quotes(parsed, table.open_quotes[:OPEN_QUOTES])
    if len(table.open_quotes) > OPEN_QUOTES:
        parsed.add_event("parse", "warning", "open_quote", f"{len(table.open_quotes)} quotes are never closed")
    if table.ragged:
        parsed.add_event("parse", "warning", "ragged_rows", f"{table.ragged} records have another number of cells than the header")
    return parsed


def say_open_quotes(parsed: ParsedFile, lines: list[int]) -> None:
    """An event for each line (1-based) with a quote that is never closed."""
    for line in lines:
        parsed.add_event("parse", "warning", "open_quote", f"line {line}: a quote is never closed; it is read as a character")


def first_record(text: str, dialect: CsvDialect) -> tuple[str, list[str]] | None:
    """(source, cells) of the first record of the table that is not empty."""
    lines = split_lines(text)[dialect.above :]
    reader = csv.reader(lines, **dialect.reader_options())  # type: ignore[arg-type]
    before = 0
    for cells in reader:
        if cells:
            return "".join(lines[before : reader.line_num]).rstrip("\r\n"), cells
        before = reader.line_num
    return None


@contextmanager
def collector_off() -> Iterator[None]:
    """Cells are in no cycle: looking through a million of them again and again would take a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class CsvTable:
    """Drafts of one text. `columns` are the header's names, empty without one; `count` numbers the records up to here, with those `before`
    the text; `ragged` counts records of another width; `open_quotes` are lines of the text, 1-based."""

    def __init__(self, text: str, dialect: CsvDialect, request: ParseRequest) -> None:
        self.text = text
        self.dialect = dialect
        self.request = request
        self.columns: list[str] = []
        self.drafts: list[Draft] = []
        self.warnings: list[str] = []
        self.open_quotes: list[int] = []
        segment = request.segment
        self.count = self.before = segment.row if segment is not None else 0
        self.ragged = 0
        self._width = segment.width if segment is not None and not segment.leads else 0
        self._leads = segment is None or segment.leads
        self._lines = split_lines(text)
        self._starts = [0, *accumulate(map(len, self._lines))]
        self._options = dialect.reader_options()

    def read(self) -> None:
        at = self._titles() if self._leads else 0
        if not self._leads and self.request.segment is not None:
            self.columns = self.request.segment.columns
        elif self.dialect.has_header:
            first = next(self._records(at), None)
            if first is not None:
                _, at, self.columns = first
                self._width = len(self.columns)
        while at < len(self._lines):
            at = self._block(at)
        if self.columns and not any(draft.kind == "table" for draft in self.drafts) and self._leads:
            self._emit(self.dialect.above, len(self._lines), [])

    def _titles(self) -> int:
        """What stands above the table as text; the line behind it."""
        above = min(self.dialect.above, len(self._lines))
        for at in range(1 if self.dialect.named else 0, above):
            line, start = self._lines[at], self._starts[at]
            text = line.strip()
            if text:
                lead = line.index(text[0])
                self.drafts.append(Draft("paragraph", start + lead, start + lead + len(text), text))
        return above

    def _block(self, at: int) -> int:
        """A block of the records from line `at` on; the line behind it."""
        end = bisect_right(self._starts, self._starts[at] + PIECE) - 1
        end = max(at + 1, min(end, at + ROWS, len(self._lines)))
        body = self.text[self._starts[at] : self._starts[end]]
        if not self.dialect.escaped and '"' not in body and "\r" not in body:
            delimiter = self.dialect.delimiter or "\x1f"
            self._emit(at, end, [line.split(delimiter) for line in body.split("\n") if line])
            return end
        rows = list(csv.reader(self._lines[at:end], **self._options))  # type: ignore[arg-type]
        if len(rows) != end - at or not self._is_balanced(at, end):
            # a record of several lines
            limit, rows, last = end, [], at
            for _, high, cells in self._records(at):
                if rows and high > limit:
                    break
                rows.append(cells)
                last = high
            end = last if rows else len(self._lines)
        self._emit(at, end, rows if all(rows) else [cells for cells in rows if cells])
        return end

    def _is_balanced(self, at: int, end: int) -> bool:
        return not is_open(self.dialect, self.text, self._starts[at], self._starts[end])

    def _records(self, at: int) -> Iterator[Record]:
        """Records from line `at` on; empty lines are none. A quote that is never closed is a character like others."""
        count = len(self._lines)
        while at < count:
            restart = -1
            base = before = at
            reader = csv.reader((self._lines[line] for line in range(base, count)), **self._options)  # type: ignore[arg-type]
            for cells in reader:
                after = base + reader.line_num
                if after - before > 1 and self._lost_quote(before, after, cells):
                    restart = before
                    break
                if cells:
                    yield before, after, cells
                before = after
            if restart < 0:
                return
            self.open_quotes.append(restart + 1)
            plain = {**self._options, "quoting": csv.QUOTE_NONE}
            yield restart, restart + 1, next(csv.reader([self._lines[restart]], **plain))  # type: ignore[arg-type]
            at = restart + 1

    def _lost_quote(self, at: int, end: int, cells: list[str]) -> bool:
        """Whether a record of several lines is one only for want of a quote: it runs on to the end of the text and never closes; or each of
        its lines has by itself the number of cells of the table, which the record has not, or not by the rules."""
        if end == len(self._lines) and (end - at > RUNAWAY_LINES or not self._is_balanced(at, end)):
            return True
        if self.request.segment is not None or self._width < 2 or end - at > RUNAWAY_LINES:
            return False  # a part of a streamed file ends where its quotes are read as they stand
        lines, plain = self._lines[at:end], {**self._options, "quoting": csv.QUOTE_NONE}
        if any(len(row) != self._width for row in csv.reader(lines, **plain)):  # type: ignore[arg-type]
            return False
        try:
            return len(cells) != self._width or not list(csv.reader(lines, **self._options, strict=True))  # type: ignore[arg-type]
        except csv.Error:
            return True

    def _emit(self, at: int, end: int, rows: list[list[str]]) -> None:
        if rows:
            self._width = self._width or len(rows[0])
            self.ragged += len(rows) - list(map(len, rows)).count(self._width)
        elif not self.columns or self.count > self.before or not self._leads:
            return
        text = self.text[self._starts[at] : self._starts[end]].rstrip("\r\n")
        start = self._starts[at]
        metadata: dict[str, Any] = {"columns": self.columns, "delimiter": self.dialect.delimiter, "cells": rows}
        self.drafts.append(
            Draft("table", start, start + len(text), text, metadata, place={"row": min(self.count + 1, self.count + len(rows))})
        )
        self.count += len(rows)
        check_count(self.drafts, self.request)
