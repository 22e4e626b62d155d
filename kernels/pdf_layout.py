"""Segments of one raw page → visual lines in reading order, column by column.

Text of each direction is laid out in its own reading frame, the most frequent one first. A vertical gap is a gutter between columns when
no more than a few segments cross it and both sides are set like text; segments across a gutter divide the columns into bands. The
invariant: every segment lands in exactly one line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from raydex.kernels.pdf_bands import bands, barriers, spanning_rows
from raydex.kernels.pdf_raw import OBLIQUE, SEGMENT_COLUMNS, Box, Page

SAME_ROW = 0.45
CELL_GAP = 1.2
MIN_GUTTER = 4.0
MAX_DEPTH = 6
MAX_STACK = 64
# a bullet or an item's number: what follows it is its text, however far apart
MARKER = re.compile(r"[•●○▪■□◦‣⁃–—*·∙\uf0b7\uf0a7-]|\(?(?:\d{1,3}|[a-zA-Z]|[ivxl]{1,6})[.)]")


class Line:
    """A visual line: its extent in the reading frame (x right, y down), `box` on the upright page, `cells` texts set apart by wide gaps.

    `parts` are left and right edge of each where there are several. `right` is the right edge of its region, `measure` that of the
    lines set solid with it (`pdf_structure`); `grid` is the table in rules that it stands for (`pdf_grids.RuledTable`).
    """

    __slots__ = (
        "base",
        "box",
        "cells",
        "grid",
        "measure",
        "parts",
        "region",
        "right",
        "size",
        "style",
        "text",
        "turn",
        "x0",
        "x1",
        "y0",
        "y1",
    )

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
        self.parts: list[float] | None = None
        self.region = 0
        self.right = 0.0
        self.measure = 0.0
        self.grid: Any = None


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


def order_lines(lines: list[Line], pictures: Sequence[Sequence[float]] = (), width: float = 0.0) -> list[Line]:
    """Visual lines in reading order; `region` numbers the columns and bands of the page, `right` is the region's right edge.

    `pictures` are boxes on the upright page of that width: columns end above a wide one.
    """
    turns = {line.turn for line in lines}
    if len(turns) > 1:
        weight = {turn: sum(len(line.text) for line in lines if line.turn == turn and turn != OBLIQUE) for turn in turns}
        groups = [[line for line in lines if line.turn == turn] for turn in sorted(turns, key=lambda turn: (-weight[turn], turn))]
    else:
        groups = [lines]
    out: list[Line] = []
    walls = [Line("", *box, box[3], 0.0, 0, 0, box) for box in barriers(pictures, lines, width)] if pictures else []
    for group in groups:
        upright = walls if group and group[0].turn == 0 else []
        for region in _regions(sorted(group + upright, key=_by_base), 0, width):
            rows = merge_rows([line for line in region if line.text])
            if not rows:
                continue
            number = out[-1].region + 1 if out else 0
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


def _regions(lines: list[Line], depth: int, width: float) -> list[list[Line]]:
    """Lines (sorted by baseline) → regions, each to be read from top to bottom."""
    if len(lines) < 6 or depth >= MAX_DEPTH or not _columns_possible(lines):
        return [lines] if lines else []
    rows, found = spanning_rows(lines, width)
    inside = [line for line in lines if id(line) not in found] if found else lines
    gutter = _gutter(inside if len(inside) >= 4 else lines)
    if gutter is None:
        return [lines]
    out: list[list[Line]] = []
    flow: list[Line] = []
    for left, right, across in bands(rows, found, gutter, width):
        if _are_columns(left, right):
            out += _regions(flow, depth + 1, width)
            out += _regions(left, depth + 1, width)
            out += _regions(right, depth + 1, width)
            flow = []
        else:
            flow += sorted(left + right, key=_by_base)
        flow += across
    if not out:
        return [lines]
    return out + _regions(flow, depth + 1, width)


def _gutter(lines: list[Line]) -> tuple[float, float] | None:
    """Middle and right edge of the gap of at least `MIN_GUTTER` points that parts the lines best: many on its lesser side, few across it,
    then the widest."""
    begins = sorted([line.x0 for line in lines])
    ends = sorted([line.x1 for line in lines])
    count = len(lines)
    gaps: list[tuple[int, int, float, float, float]] = []
    begun = ended = 0
    while begun < count:
        begin = begins[begun]
        while ended < count and ends[ended] <= begin:
            ended += 1
        lesser = min(ended, count - begun)
        if lesser >= 3 and begin - ends[ended - 1] >= MIN_GUTTER:
            gaps.append((lesser, begun - ended, ends[ended - 1] - begin, (begin + ends[ended - 1]) / 2, begin))
        begun += 1
        while begun < count and begins[begun] == begin:
            begun += 1
    if not gaps:
        return None
    best = max(gaps)[0]
    _, _, middle, edge = min(gap[1:] for gap in gaps if gap[0] >= 0.85 * best)
    return middle, edge


def _are_columns(left: list[Line], right: list[Line]) -> bool:
    """Both sides are set like text: lines of some length that fill their side; cells of a table are short or ragged."""
    left = [line for line in left if line.text]
    right = [line for line in right if line.text]
    if len(left) < 2 or len(right) < 2:
        return False
    right_bases = {round(line.base) for line in right}
    aligned = sum(1 for line in left if round(line.base) in right_bases)
    least = 15 if aligned * 3 > len(left) else 8
    for side in (left, right):
        if sum(len(line.text) for line in side) < least * len(side):
            return False
        rows = len({round(line.base / 3) for line in side})
        extent = max(line.x1 for line in side) - min(line.x0 for line in side)
        if sum(line.x1 - line.x0 for line in side) < 0.45 * rows * extent:
            return False
    return True


def merge_rows(lines: list[Line]) -> list[Line]:
    """Lines of one region (sorted by baseline) → visual lines: what stands on one baseline is put together."""
    out: list[Line] = []
    row: list[Line] = []
    base = size = left = right = 0.0
    for line in lines:
        near = (
            row and line.grid is None and row[0].grid is None and line.base - base <= SAME_ROW * (line.size if line.size > size else size)
        )
        # beside the row, or at least not over or under one of its members
        if near and (line.x0 >= right or line.x1 <= left or not _stacked(row, line)):
            row.append(line)
            left = line.x0 if line.x0 < left else left
            right = line.x1 if line.x1 > right else right
            continue
        if row:
            out.append(_merge(row) if len(row) > 1 else row[0])
        row = [line]
        base, size, left, right = line.base, line.size, line.x0, line.x1
    if row:
        out.append(_merge(row) if len(row) > 1 else row[0])
    return out


def _stacked(row: list[Line], line: Line) -> bool:
    """Whether the line stands over or under one of the row rather than beside it."""
    return any(
        min(line.x1, other.x1) - max(line.x0, other.x0) > 0.5 * min(line.x1 - line.x0, other.x1 - other.x0) for other in row[-MAX_STACK:]
    )


def _merge(row: list[Line]) -> Line:
    row.sort(key=_by_left)
    first = row[0]
    main = first
    left, top, right, bottom = first.box
    x1, y0, y1 = first.x1, first.y0, first.y1
    for line in row:
        if len(line.text) > len(main.text):
            main = line
        box = line.box
        left = box[0] if box[0] < left else left
        top = box[1] if box[1] < top else top
        right = box[2] if box[2] > right else right
        bottom = box[3] if box[3] > bottom else bottom
        x1 = line.x1 if line.x1 > x1 else x1
        y0 = line.y0 if line.y0 < y0 else y0
        y1 = line.y1 if line.y1 > y1 else y1
    style = main.style
    size = main.size
    text = first.text
    cells = 1
    parts = [first.x0]
    for at in range(1, len(row)):
        one, other = row[at - 1], row[at]
        gap = other.x0 - one.x1
        if gap > 0.12 * size:
            if gap <= CELL_GAP * size or (at == 1 and MARKER.fullmatch(text)):
                text += " "
            else:
                parts += (one.x1, other.x0)
                text += "\t"
                cells += 1
        text += other.text
        if len(other.text) > 2:
            style &= other.style
    out = Line(text, first.x0, y0, x1, y1, main.base, size, style, main.turn, (left, top, right, bottom))
    if cells > 1:
        out.cells = cells
        out.parts = [*parts, row[-1].x1]
    return out
