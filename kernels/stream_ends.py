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
from raydex.kernels.log_data import begins_event

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
    """Which lines of a log begin an event: the ones that carry a time or a level do in any case, others by what stands before them."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self.timed = False

    def pick(self, units: np.ndarray, ends: np.ndarray, wanted: int) -> int | None:
        """The first of the ends, from `wanted` on, behind which an event begins. The line behind the last end is not known yet."""
        self.settle(units, ends, wanted)
        for at in range(wanted, ends.size - 1):
            start, sure = begins_event(self._line(units, ends, at + 1), self.timed)
            if sure is not None:
                self.timed = sure
            if start:
                return at
        return None

    def settle(self, units: np.ndarray, ends: np.ndarray, wanted: int) -> None:
        """`timed` as it is before the line behind `wanted`: as the last line that tells by itself has it."""
        for at in range(wanted, -1, -1):
            _, sure = begins_event(self._line(units, ends, at), self.timed)
            if sure is not None:
                self.timed = sure
                return

    def _line(self, units: np.ndarray, ends: np.ndarray, at: int) -> str:
        start = int(ends[at - 1]) if at else 0
        return units[start : min(int(ends[at]), start + 4096)].tobytes().decode(self.encoding, "replace")
