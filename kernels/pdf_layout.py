"""Segments of one raw page → visual lines in reading order, column by column.

Text of each direction is laid out in its own reading frame, the most frequent one first. A vertical gap is a gutter between columns when
no more than a few segments cross it and both sides are set like text; segments across a gutter divide the columns into bands. The
invariant: every segment lands in exactly one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from math import ceil
from operator import attrgetter

from raydex.kernels.pdf_raw import OBLIQUE, SEGMENT_COLUMNS, Box, Page

SAME_ROW = 0.45
CELL_GAP = 1.2
BIN = 2.0
MIN_GUTTER = 4.0
MAX_DEPTH = 6
# a bullet or an item's number: what follows it is its text, however far apart
MARKER = re.compile(r"[•●○▪■□◦‣⁃–—*·∙\uf0b7\uf0a7-]|\(?(?:\d{1,3}|[a-zA-Z]|[ivxl]{1,6})[.)]")


class Line:
    """A visual line: its extent in the reading frame (x right, y down), `box` on the upright page, `cells` texts set apart by wide gaps."""

    __slots__ = ("base", "box", "cells", "region", "right", "size", "style", "text", "turn", "x0", "x1", "y0", "y1")

    def __init__(
        self, text: str, x0: float, y0: float, x1: float, y1: float, base: float, size: float, style: int, turn: int, box: Box
    ) -> None:
        self.text = text
        self.x0 = x0
        self.y0 = y0
        self.x1 = x1
        self.y1 = y1
        self.base = base
        self.size = size
        self.style = style
        self.turn = turn
        self.box = box
        self.cells = 1
        self.region = 0
        self.right = 0.0


_by_base = attrgetter("base")
_by_left = attrgetter("x0")


def read_lines(page: Page, skip: set[int]) -> list[Line]:
    """Segments of a raw page, without those in `skip` (positions), as one `Line` each, in content order."""
    width, height = page["width"], page["height"]
    out: list[Line] = []
    columns = [page[name] for name in SEGMENT_COLUMNS]
    for at, (text, x0, y0, x1, y1, base, size, style, turn) in enumerate(zip(*columns, strict=True)):
        if at in skip:
            continue
        box = (x0, y0, x1, y1)
        if turn == 1:
            x0, y0, x1, y1 = height - y1, x0, height - y0, x1
        elif turn == 2:
            x0, y0, x1, y1 = width - x1, height - y1, width - x0, height - y0
        elif turn == 3:
            x0, y0, x1, y1 = y0, width - x1, y1, width - x0
        out.append(Line(text, x0, y0, x1, y1, base, size, style, turn, box))
    return out


def order_lines(lines: list[Line]) -> list[Line]:
    """Visual lines in reading order; `region` numbers the columns and bands of the page, `right` is the region's right edge."""
    turns = {line.turn for line in lines}
    if len(turns) > 1:
        weight = {turn: sum(len(line.text) for line in lines if line.turn == turn and turn != OBLIQUE) for turn in turns}
        groups = [[line for line in lines if line.turn == turn] for turn in sorted(turns, key=lambda turn: (-weight[turn], turn))]
    else:
        groups = [lines]
    out: list[Line] = []
    for group in groups:
        for region in _regions(sorted(group, key=_by_base), 0):
            number = out[-1].region + 1 if out else 0
            rows = _rows(region)
            right = max(line.x1 for line in rows)
            for line in rows:
                line.region = number
                line.right = right
            out += rows
    return out


def _columns_possible(lines: list[Line]) -> bool:
    """Whether two neighbours in y stand beside each other; else the page has one column."""
    for at in range(1, len(lines)):
        one, other = lines[at - 1], lines[at]
        if other.x0 > one.x1 or one.x0 > other.x1:
            return True
    return False


def _regions(lines: list[Line], depth: int) -> list[list[Line]]:
    """Lines (sorted by baseline) → regions, each to be read from top to bottom."""
    if len(lines) < 6 or depth >= MAX_DEPTH or not _columns_possible(lines):
        return [lines] if lines else []
    gutter = _gutter(lines)
    if gutter is None:
        return [lines]
    out: list[list[Line]] = []
    flow: list[Line] = []
    for left, right, across in _bands(lines, gutter):
        if _are_columns(left, right):
            out += _regions(flow, depth + 1)
            out += _regions(left, depth + 1)
            out += _regions(right, depth + 1)
            flow = []
        else:
            flow += sorted(left + right, key=_by_base)
        if across is not None:
            flow.append(across)
    if not out:
        return [lines]
    return out + _regions(flow, depth + 1)


def _bands(lines: list[Line], gutter: float) -> Iterator[tuple[list[Line], list[Line], Line | None]]:
    """(lines left of the gutter, right of it, the line across it that ends the band)."""
    left: list[Line] = []
    right: list[Line] = []
    for line in lines:
        if line.x1 <= gutter:
            left.append(line)
        elif line.x0 >= gutter:
            right.append(line)
        else:
            yield left, right, line
            left, right = [], []
    yield left, right, None


def _gutter(lines: list[Line]) -> float | None:
    """The x that parts the lines best: many on its lesser side, few across; the middle of a stretch of at least `MIN_GUTTER` points."""
    start = min(line.x0 for line in lines)
    count = int((max(line.x1 for line in lines) - start) / BIN) + 2
    ends = [0] * (count + 1)
    begins = [0] * (count + 1)
    for line in lines:
        ends[min(count, max(0, ceil((line.x1 - start) / BIN)))] += 1
        begins[min(count, max(0, int((line.x0 - start) / BIN)))] += 1
    ended, begun = 0, 0
    sides: list[tuple[int, int]] = []
    for at in range(count + 1):
        ended += ends[at]
        lesser = len(lines) - begun
        # (lines on the lesser side, lines that neither side holds)
        sides.append((ended if ended < lesser else lesser, begun - ended))
        begun += begins[at]
    best = max(lesser for lesser, _ in sides)
    if best < 3:
        return None
    crossing = min(across for lesser, across in sides if lesser >= 0.85 * best)
    widest, middle, run = 0, 0.0, 0
    for at, (lesser, across) in enumerate(sides):
        run = run + 1 if across == crossing and lesser >= 0.85 * best else 0
        if run > widest:
            widest, middle = run, at - (run - 1) / 2
    return start + middle * BIN if (widest - 1) * BIN >= MIN_GUTTER else None


def _are_columns(left: list[Line], right: list[Line]) -> bool:
    """Both sides are set like text: lines of some length that fill their side; cells of a table are short or ragged."""
    if len(left) < 2 or len(right) < 2:
        return False
    right_bases = [line.base for line in right]
    aligned = sum(1 for line in left if any(abs(line.base - base) < 0.15 * line.size for base in right_bases))
    least = 15 if aligned * 3 > len(left) else 8
    for side in (left, right):
        if sum(len(line.text) for line in side) < least * len(side):
            return False
        rows = len({round(line.base / 3) for line in side})
        extent = max(line.x1 for line in side) - min(line.x0 for line in side)
        if sum(line.x1 - line.x0 for line in side) < 0.45 * rows * extent:
            return False
    return True


def _rows(lines: list[Line]) -> list[Line]:
    """Lines of one region (sorted by baseline) → visual lines: what stands on one baseline is put together."""
    out: list[Line] = []
    row: list[Line] = []
    for line in lines:
        if row:
            first = row[0]
            if line.base - first.base <= SAME_ROW * (line.size if line.size > first.size else first.size) and not _stacked(row, line):
                row.append(line)
                continue
            out.append(_merge(row) if len(row) > 1 else first)
        row = [line]
    if row:
        out.append(_merge(row) if len(row) > 1 else row[0])
    return out


def _stacked(row: list[Line], line: Line) -> bool:
    """Whether the line stands over or under one of the row rather than beside it."""
    return any(min(line.x1, other.x1) - max(line.x0, other.x0) > 0.5 * min(line.x1 - line.x0, other.x1 - other.x0) for other in row)


def _merge(row: list[Line]) -> Line:
    row.sort(key=_by_left)
    main = max(row, key=lambda line: len(line.text))
    parts = [row[0].text]
    style = main.style
    cells = 1
    for one, other in pairwise(row):
        gap = other.x0 - one.x1
        if gap > CELL_GAP * main.size and not (one is row[0] and MARKER.fullmatch(one.text)):
            parts.append("\t")
            cells += 1
        elif gap > 0.12 * main.size or (one is row[0] and MARKER.fullmatch(one.text)):
            parts.append(" ")
        parts.append(other.text)
    for line in row:
        if len(line.text) > 2:
            style &= line.style
    box = (
        min(line.box[0] for line in row),
        min(line.box[1] for line in row),
        max(line.box[2] for line in row),
        max(line.box[3] for line in row),
    )
    x0, x1 = row[0].x0, max(line.x1 for line in row)
    y0, y1 = min(line.y0 for line in row), max(line.y1 for line in row)
    out = Line("".join(parts), x0, y0, x1, y1, main.base, main.size, style, main.turn, box)
    out.cells = cells
    return out
