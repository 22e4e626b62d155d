"""Code units of a streamed text → where its records end: what cutting a large file needs, at the speed of numpy.

The invariant: an end that is given is one in every reading of the file from the beginning of these units on, and what stands behind the
last one is no whole record yet.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

import numpy as np

from raydex.ir.locator import split_lines
from raydex.kernels.csv_dialect import CsvDialect
from raydex.kernels.log_data import BEGINNINGS, Events, line_form

QUOTE, LINE_FEED, RETURN = b'"\n\r'
_RAW_LINES = re.compile(rb"[^\r\n]*+(?:\r\n|\n|\r)|[^\r\n]++\Z")
_WIDTHS = {"utf-16-le": "<u2", "utf-16-be": ">u2", "utf-32-le": "<u4", "utf-32-be": ">u4"}


@dataclass(frozen=True, slots=True)
class Ends:
    """`at`: units behind each record; `filled`: whether it holds anything."""

    at: np.ndarray
    filled: np.ndarray

    def before(self, unit: int) -> Ends:
        """Those that end at or before a unit."""
        count = int(np.searchsorted(self.at, unit, "right"))
        return Ends(self.at[:count], self.filled[:count])


def unit_type(encoding: str) -> np.dtype:
    """The code unit of an encoding. The bytes of a line end, a quote or a delimiter mean these alone in every other one
    that is not stateful."""
    return np.dtype(_WIDTHS.get(encoding, "u1"))


def line_ends(units: np.ndarray, feeds_only: bool = False) -> np.ndarray:
    r"""Offsets behind each \n, \r\n and \r, or behind each \n alone."""
    feeds = np.flatnonzero(units == LINE_FEED) + 1
    if feeds_only:
        return feeds
    returns = np.flatnonzero(units == RETURN) + 1
    if not returns.size:
        return feeds
    inside = returns[returns < units.size]
    alone = np.concatenate((inside[units[inside] != LINE_FEED], returns[inside.size :]))
    return np.sort(np.concatenate((feeds, alone)))


def text_ends(units: np.ndarray, feeds_only: bool) -> Ends:
    """Ends of lines; `filled`: not blank at its first character."""
    at = line_ends(units, feeds_only)
    starts = np.concatenate(([0], at[:-1])).astype(np.int64)
    first = units[starts] if at.size else units[:0]
    return Ends(at, (first > 32))


def csv_ends(units: np.ndarray, dialect: CsvDialect, encoding: str) -> Ends:
    """Ends of the records. Quotes that all stand where the format wants them are counted; what they mean elsewhere the reader tells."""
    at = line_ends(units)
    quotes = np.flatnonzero(units == QUOTE)
    if quotes.size and not dialect.plain:
        if dialect.escaped or not _well_formed(units, quotes, dialect.delimiter):
            return _read_ends(units, dialect, encoding)
        at = at[(np.searchsorted(quotes, at) & 1) == 0]
    starts = np.concatenate(([0], at[:-1])).astype(np.int64)
    first = units[starts] if at.size else units[:0]
    return Ends(at, (first != LINE_FEED) & (first != RETURN))


def _well_formed(units: np.ndarray, quotes: np.ndarray, delimiter: str) -> bool:
    """Whether every odd quote begins a field (or is the second of a pair) and every even one ends a field (or is the first)."""
    bounds = np.array([LINE_FEED, RETURN, ord(delimiter or "\x1f")], units.dtype)
    opening, closing = quotes[0::2], quotes[1::2]
    inner = opening[1:] if opening.size and opening[0] == 0 else opening
    doubled = np.zeros(quotes.size, np.bool_)
    doubled[1:] = np.diff(quotes) == 1
    begins = doubled[0::2][opening.size - inner.size :] | np.isin(units[inner - 1], bounds)
    if not begins.all():
        return False
    last = closing[:-1] if closing.size and closing[-1] == units.size - 1 else closing
    follows = units[last + 1]
    return bool((np.isin(follows, bounds) | (follows == QUOTE)).all())


def _read_ends(units: np.ndarray, dialect: CsvDialect, encoding: str) -> Ends:
    """By the reader itself. The last record is left out: it may go on."""
    csv.field_size_limit(1 << 30)
    data = units.tobytes()
    if units.itemsize > 1:
        lines = split_lines(data.decode(encoding, "surrogatepass"))
        sizes = [len(line.encode(encoding, "surrogatepass")) // units.itemsize for line in lines]
    else:
        raw = _RAW_LINES.findall(data)
        sizes = list(map(len, raw))
        lines = [line.decode(encoding, "replace") for line in raw]
    offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    reader = csv.reader(lines, **dialect.reader_options())  # type: ignore[arg-type]
    at, filled = [], []
    for cells in reader:
        at.append(reader.line_num)
        filled.append(bool(cells))
    return Ends(offsets[np.array(at[:-1], np.int64)], np.array(filled[:-1], np.bool_))


class LogLines:
    """Which lines of a log begin an event. Where one does so by its form alone, nothing that stands before it has to be read."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self._events = Events()
        self._read = 0  # lines of this block that `_events` has seen

    def pick(self, units: np.ndarray, ends: np.ndarray, wanted: int) -> int | None:
        """The first of the ends, from `wanted` on, behind which an event begins. The line behind the last end is not known yet."""
        self._read_to(units, ends, wanted + 1)
        for at in range(wanted, ends.size - 1):
            self._read = at + 2
            if self._begins(self._line(units, ends, at + 1)):
                return at
        return None

    def settle(self, units: np.ndarray, ends: np.ndarray) -> None:
        """Reads the rest of a block, of which the next one is the continuation."""
        self._read_to(units, ends, ends.size)
        self._read = 0

    def _read_to(self, units: np.ndarray, ends: np.ndarray, stop: int) -> None:
        start = stop
        while start > self._read:
            start -= 1
            line = self._line(units, ends, start)
            if line.strip() and line_form(line)[0] in BEGINNINGS:
                break
        for at in range(start, stop):
            self._begins(self._line(units, ends, at))
        self._read = max(self._read, stop)

    def _begins(self, line: str) -> bool:
        return bool(line.strip()) and self._events.begins(line_form(line)[0], line)

    def _line(self, units: np.ndarray, ends: np.ndarray, at: int) -> str:
        start = int(ends[at - 1]) if at else 0
        return units[start : min(int(ends[at]), start + 4096)].tobytes().decode(self.encoding, "replace")
