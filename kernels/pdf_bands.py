"""What stands across the columns of a page although it need not reach over the gutter: short headings, rows of cells, pictures.

Columns end above such a row and begin anew below it. The invariant: a row is only taken for one when nothing stands beside it, so that a
column is never torn where its neighbour goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from raydex.kernels.pdf_raw import BOLD, Box

if TYPE_CHECKING:
    from raydex.kernels.pdf_layout import Line

LARGER = 1.08
SAME_BASE = 0.45
MAX_BARRIERS = 20
_OVER = 0.2  # of the type size by which two lines may overlap and stand one under the other
_NARROW = 0.3  # of the page's width: what a cell fills at most
_INDENT = 20.0  # points by which a line of text may be indented
_LABEL = 8  # characters of a heading's number
_EDGE = 3.0
_EDGE_LINES = 3
_LEVEL = 0.3  # of the type size: columns that end (or begin) on one height
_SHORTER = 1.6  # and that a balanced column may lack

Row = list["Line"]


def rows_by_base(lines: Sequence[Line]) -> list[Row]:
    """Lines (sorted by baseline) that share one."""
    out: list[Row] = []
    for line in lines:
        if out and line.base - out[-1][0].base <= SAME_BASE * min(line.size, out[-1][0].size):
            out[-1].append(line)
        else:
            out.append([line])
    return out


def barriers(boxes: Sequence[Sequence[float]], lines: Sequence[Line], width: float) -> list[Box]:
    """Those boxes of pictures that part columns: wide ones on which no text lies."""
    wide = [(x0, y0, x1, y1) for x0, y0, x1, y1, *_ in boxes if x1 - x0 > 0.4 * width][:MAX_BARRIERS]
    return [box for box in wide if not any(_on(line, box) for line in lines)]


def _on(line: Line, box: Box) -> bool:
    x, y = (line.x0 + line.x1) / 2, (line.y0 + line.y1) / 2
    return box[0] < x < box[2] and box[1] < y < box[3]


def spanning_rows(lines: Sequence[Line], page_width: float) -> tuple[list[Row], set[int]]:
    """(rows of the lines, ids of the lines in rows that may span columns): barriers, headings that stand alone, rows of cells."""
    rows = rows_by_base(lines)
    tops = list(accumulate((min(line.y0 for line in row) for row in reversed(rows)), min))[::-1]
    bottoms = list(accumulate((max(line.y1 for line in row) for row in rows), max))
    size, bold = _common_type(lines)
    extent = min(line.x0 for line in lines), max(line.x1 for line in lines)
    found: set[int] = set()
    for at, row in enumerate(rows):
        line = row[-1]
        above = line.y0 - bottoms[at - 1] if at else line.size
        below = tops[at + 1] - line.y1 if at + 1 < len(rows) else line.size
        if min(above, below) < -_OVER * line.size or len(row) > 2 or (len(row) == 2 and not _is_label(*row)):
            continue
        heading = line.size >= LARGER * size or (line.style & BOLD and not bold)
        apart = min(above, below) >= 0.8 * line.size
        if heading or not line.text or (apart and len(row) == 1 and _is_centred(line, extent, page_width)):
            found.update(map(id, row))
    for row in _rows_of_cells(rows, extent[1] - extent[0], found):
        found.update(map(id, row))
    return rows, found


def _is_label(line: Line, text: Line) -> bool:
    """Whether the first of two lines side by side may be the number of the other."""
    return len(line.text) <= _LABEL and 0 < text.x0 - line.x1 <= 3 * text.size


def _common_type(lines: Sequence[Line]) -> tuple[float, bool]:
    counts: Counter[tuple[float, bool]] = Counter()
    for line in lines:
        counts[line.size, bool(line.style & BOLD)] += len(line.text)
    return counts.most_common(1)[0][0]


def _rows_of_cells(rows: list[Row], width: float, found: set[int]) -> Iterator[Row]:
    """Rows, at least two one under the other, of three or more short texts, of which one begins where no column of text does."""
    like = [len(row) > 2 and all(line.x1 - line.x0 < _NARROW * width for line in row) for row in rows]
    if not any(like):
        return
    edges: Counter[int] = Counter()
    for row, cells in zip(rows, like, strict=True):
        if not cells:
            edges.update(round(line.x0 / _EDGE) for line in row if id(line) not in found)
    text = {near for edge, count in edges.items() if count >= _EDGE_LINES for near in (edge - 1, edge, edge + 1)}
    for at, row in enumerate(rows if text else ()):
        beside = (at > 0 and like[at - 1]) or (at + 1 < len(rows) and like[at + 1])
        if like[at] and beside and any(round(line.x0 / _EDGE) not in text for line in row):
            yield row


def bands(rows: list[Row], found: set[int], gutter: tuple[float, float], page_width: float) -> Iterator[tuple[Row, Row, Row]]:
    """(lines left of the gutter, right of it, the row across it that ends the band). `gutter` is its middle and its right edge."""
    middle, edge = gutter
    plain = [id(row[0]) not in found for row in rows]
    lines = [line for row, is_plain in zip(rows, plain, strict=True) if is_plain for line in row]
    extent = min((line.x0 for line in lines), default=0.0), max((line.x1 for line in lines), default=0.0)
    last_right = max((at for at, row in enumerate(rows) if plain[at] and row[-1].x0 >= middle), default=-1)
    following = _following(rows, plain)
    left: Row = []
    right: Row = []
    ends = [0.0, 0.0]
    for at, row in enumerate(rows):
        across = any(line.x0 < middle < line.x1 for line in row)
        if not across and not plain[at] and row[-1].text:
            heading = row[-1]
            across = any(line.x1 > middle and line.x0 < edge - _EDGE for line in row)
            across = across or (_are_cells(row, extent[0], gutter) if len(row) > 2 else _is_centred(heading, extent, page_width))
            if not across and len(row) <= 2 and left and right and row[0].x0 <= extent[0] + _EDGE:
                below = following[at] if last_right > at else None
                across = _parts_columns(heading, ends, below, middle) or _opens_across(following[at], middle)
        if across:
            yield left, right, row
            left, right, ends = [], [], [0.0, 0.0]
            continue
        for line in row:
            side = line.x1 > middle
            (right if side else left).append(line)
            ends[side] = max(ends[side], line.y1)
    yield left, right, []


def _following(rows: list[Row], plain: list[bool]) -> list[Row | None]:
    """For each row the next plain one."""
    out: list[Row | None] = []
    last: Row | None = None
    for row, is_plain in zip(reversed(rows), reversed(plain), strict=True):
        out.append(last)
        last = row if is_plain else last
    return out[::-1]


def _are_cells(row: Row, left: float, gutter: tuple[float, float]) -> bool:
    """Whether on each side there are several texts, or one that begins where no text of a column does."""
    sides = [[line.x0 for line in row if (line.x1 > gutter[0]) == right] for right in (False, True)]
    return all(len(side) > 1 or (side and side[0] > edge + _INDENT) for side, edge in zip(sides, (left, gutter[1]), strict=True))


def _is_centred(line: Line, extent: tuple[float, float], page_width: float) -> bool:
    """On the text, or (where its lines end raggedly) on the page."""
    twice = line.x0 + line.x1
    return abs(twice - extent[0] - extent[1]) <= 0.04 * (extent[1] - extent[0]) or abs(twice - page_width) <= _EDGE


def _opens_across(row: Row | None, middle: float) -> bool:
    return row is not None and any(line.x0 < middle < line.x1 for line in row)


def _parts_columns(heading: Line, ends: list[float], below: Row | None, middle: float) -> bool:
    """Whether both columns end on one height above the heading and, where there are columns `below`, begin on one height again."""
    shorter = ends[0] - ends[1]
    if below is None:
        return abs(shorter) <= _LEVEL * heading.size
    sides = [[line.y0 for line in below if (line.x1 > middle) == right] for right in (False, True)]
    begin = all(sides) and abs(min(sides[0]) - min(sides[1])) <= _LEVEL * heading.size
    return begin and -_LEVEL * heading.size <= shorter <= _SHORTER * heading.size
