"""Paragraphs whose lines hold several texts apart → tables with rows and cells, also where a table runs on over pages.

Columns are the extents that the cells of the commonest rows share, or of the fullest ones; a line without a first cell that stands closer
than the rows do is the next line of the cells above it. The invariant: every line of a paragraph is in one row, each text in one cell, in
reading order; what does not fall into columns stays a paragraph as it was.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from raydex.kernels.pdf_grids import RuledTable
from raydex.kernels.pdf_layout import Line
from raydex.kernels.pdf_raw import BOLD
from raydex.kernels.pdf_structure import Paragraph
from raydex.kernels.pdf_text import plain
from raydex.kernels.tables import Rows, make_cell, table_text

LEAST_CELLS = 6
_CLOSE = 0.87  # a line as much closer than the rows are to each other goes on with the row above
_FAR = 4.0  # line heights between two rows of a table at most
_TIGHT = 1.6  # and between two lines of a cell
_EDGE = 3.0  # points by which edges of a column may differ
_LOOK = 8  # lines that are looked at
_SAMPLE = 50  # rows that tell whether a column holds numbers
_LIKE = 12.0  # points by which the columns of a table may move from page to page

Columns = list[tuple[float, float]]
Placed = tuple[int, int, str]  # first column, number of columns, text


@dataclass(slots=True)
class Table:
    """`table` numbers the tables of the document, and the parts of one that runs over pages have one number."""

    columns: Columns
    rows: Rows
    headers: int = 0
    table: int = 0
    header: list[list[str]] | None = None  # of the part before


def find_tables(pages: Sequence[list[Paragraph]]) -> None:
    """Makes paragraphs tables, in place: `kind` table, with the `Table` in `table`."""
    number = 0
    last: Table | None = None
    for paragraphs in pages:
        _join_pieces(paragraphs)
        for at, paragraph in enumerate(paragraphs):
            table = _ruled(paragraph) if paragraph.table is not None else _table_of(paragraph)
            if table is None:
                last = None
                continue
            paragraph.kind, paragraph.table, paragraph.text = "table", table, table_text(table.rows)
            if last is None or at or not _runs_on(last, table):
                number += 1
                table.headers = table.headers or _count_headers([bool(line.style & BOLD) for line in paragraph.lines], table.rows)
            table.table = number
            last = table
    _mark_headers(pages)


def table_metadata(table: Table) -> dict[str, Any]:
    about: dict[str, Any] = {"rows": table.rows, "header_rows": table.headers}
    return about | ({"continued": True, "header": table.header} if table.header is not None else {})


def _ruled(paragraph: Paragraph) -> Table:
    found: RuledTable = paragraph.table
    return Table(found.columns, found.rows, found.headers)


def _join_pieces(paragraphs: list[Paragraph]) -> None:
    """Rows that stand far apart, and lines of one cell that wraps, join the rows above them."""
    out: list[Paragraph] = []
    for piece in paragraphs:
        above = out[-1] if out else None
        if above is not None and _is_grid(above) and (_follows(above, piece) or _wraps(above, piece)):
            above.lines += piece.lines
            above.breaks += [True] * len(piece.lines)
        else:
            out.append(piece)
    paragraphs[:] = out


def _is_grid(paragraph: Paragraph) -> bool:
    return paragraph.kind == "paragraph" and paragraph.lines[0].cells > 1


def _is_near(above: Paragraph, piece: Paragraph, most: float) -> bool:
    one, line = above.lines[-1], piece.lines[0]
    size = max(one.size, 1.0)
    near = 0 < line.base - one.base <= most * size and abs(line.size - size) < 0.25 * size
    return near and line.region == one.region and line.turn == one.turn


def _follows(above: Paragraph, piece: Paragraph) -> bool:
    """Whether the cells of the first line each stand below one of the rows above, at the same left or right edge or middle."""
    if not _is_grid(piece) or not _is_near(above, piece, _FAR):
        return False
    known = [(x0, x1) for line in above.lines[-_LOOK:] for _, x0, x1 in _cells(line)]
    return all(any(_aligned(x0, x1, other) for other in known) for _, x0, x1 in _cells(piece.lines[0]))


def _aligned(x0: float, x1: float, other: tuple[float, float], most: float = _EDGE) -> bool:
    return min(abs(x0 - other[0]), abs(x1 - other[1]), abs(x0 + x1 - other[0] - other[1]) / 2) <= most


def _wraps(above: Paragraph, piece: Paragraph) -> bool:
    """Whether a piece of single texts goes on, line under line, with a cell above that is not the first."""
    if piece.kind not in ("paragraph", "list_item") or len(piece.lines) > _LOOK or piece.lines[0].cells > 1:
        return False
    row = next((line for line in reversed(above.lines) if line.cells > 1), above.lines[-1])
    lefts = [x0 for _, x0, _ in _cells(row)[1:]]
    return _is_near(above, piece, _TIGHT) and all(any(abs(line.x0 - left) <= _EDGE for left in lefts) for line in piece.lines)


def _cells(line: Line) -> list[tuple[str, float, float]]:
    """(text, left edge, right edge) of each."""
    if line.parts is None:
        return [(line.text, line.x0, line.x1)]
    texts = line.text.split("\t")
    if 2 * len(texts) != len(line.parts):  # the text holds tabs of its own
        return [(line.text, line.x0, line.x1)]
    return list(zip(texts, line.parts[::2], line.parts[1::2], strict=True))


def _table_of(paragraph: Paragraph) -> Table | None:
    if not _is_grid(paragraph) or sum(line.cells for line in paragraph.lines) < LEAST_CELLS or len(paragraph.lines) < 2:
        return None
    counts = Counter(line.cells for line in paragraph.lines if line.cells > 1)
    for count in dict.fromkeys((max(counts, key=lambda cells: (counts[cells], cells)), max(counts))):
        columns = _columns(paragraph.lines, count)
        starts, ends = [column[0] for column in columns], [column[1] for column in columns]
        places = [place for line in paragraph.lines if columns and (place := _place(line, columns, starts, ends)) is not None]
        if len(places) == len(paragraph.lines):
            return Table(columns, _rows(paragraph.lines, places, len(columns)))
    return None


def _columns(lines: list[Line], common: int) -> Columns:
    """Extents of the cells in lines of that many cells, united where they overlap; none where they do not fall into as many columns."""
    extents = sorted((x0, x1) for line in lines if line.cells == common for _, x0, x1 in _cells(line))
    out: Columns = []
    for x0, x1 in extents:
        if out and x0 <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], x1))
        else:
            out.append((x0, x1))
    return out if len(out) == common else []


def _place(line: Line, columns: Columns, starts: list[float], ends: list[float]) -> list[Placed] | None:
    """The cells of a line; None where two of them share a column."""
    out: list[Placed] = []
    least = 0
    for text, x0, x1 in _cells(line):
        first, last = bisect_right(ends, x0), bisect_left(starts, x1) - 1
        if last < first:  # between two columns: the nearest one
            near = range(max(last, least), min(first + 1, len(columns)))
            if not near:
                return None
            first = last = min(near, key=lambda at: min(abs(starts[at] - x0), abs(ends[at] - x1)))
        if first < least:
            if last < least:
                return None
            first = least
        out.append((first, last - first + 1, text))
        least = last + 1
    return out


def _rows(lines: list[Line], places: list[list[Placed]], width: int) -> Rows:
    tops = [line.base for line, place in zip(lines, places, strict=True) if place[0][0] == 0]
    pitch = min((later - one for one, later in pairwise(tops)), default=0.0)
    rows: list[list[Placed]] = []
    for at, (line, place) in enumerate(zip(lines, places, strict=True)):
        goes_on = at > 0 and place[0][0] != 0 and line.base - lines[at - 1].base < _CLOSE * pitch
        joined = _continued(rows[-1], place) if goes_on else None
        if joined is not None:
            rows[-1] = joined
        else:
            rows.append(place)
    return [_row(row, width) for row in rows]


def _continued(row: list[Placed], place: list[Placed]) -> list[Placed] | None:
    """The row with the texts of a further line in its cells; None where a text has no cell above it."""
    more = {(first, span): text for first, span, text in place}
    known = {(first, span) for first, span, _ in row}
    if not more.keys() <= known:
        return None
    return [(first, span, f"{text} {more[first, span]}" if (first, span) in more else text) for first, span, text in row]


def _row(row: list[Placed], width: int) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = []
    at = 0
    for first, span, text in row:
        cells += [make_cell("") for _ in range(first - at)]
        cells.append({"text": text if text.isascii() else plain(text), "row_span": 1, "col_span": span, "header": False})
        at = first + span
    cells += [make_cell("") for _ in range(width - at)]
    return cells


def _count_headers(bold: list[bool], rows: Rows) -> int:
    """`bold` tells of each line. One where the first line is bold and the others are not, or names columns of numbers; else none."""
    if len(rows) < 2:
        return 0
    if bold[0] and not any(bold[1:]):
        return 1
    first, others = rows[0], rows[1 : 1 + _SAMPLE]
    if len(first) < 2 or any(_is_number(cell["text"]) or not cell["text"] for cell in first):
        return 0
    for at in range(len(first)):
        column = [row[at]["text"] for row in others if len(row) == len(first) and row[at]["text"]]
        if column and all(_is_number(text) for text in column):
            return 1
    return 0


def _is_number(text: str) -> bool:
    digits = sum(char.isdigit() for char in text)
    return digits > 0 and 2 * digits >= len(text.replace(" ", ""))


def _runs_on(before: Table, table: Table) -> bool:
    """Whether a page begins with the columns that the page before ended with."""
    if len(before.columns) != len(table.columns):
        return False
    return all(_aligned(*one, other, _LIKE) for one, other in zip(before.columns, table.columns, strict=True))


def _mark_headers(pages: Sequence[list[Paragraph]]) -> None:
    """Header rows of parts: those of the first part, which repeat on the pages that follow, or which that repetition alone shows."""
    parts: dict[int, list[Table]] = {}
    for paragraphs in pages:
        for paragraph in paragraphs:
            if paragraph.table is not None:
                parts.setdefault(paragraph.table.table, []).append(paragraph.table)
    for tables in parts.values():
        first, others = tables[0], tables[1:]
        top = _texts(first.rows[0])
        if not first.headers and len(first.rows) > 1 and any(_texts(table.rows[0]) == top for table in others):
            first.headers = 1
        header = [_texts(row) for row in first.rows[: first.headers]]
        for table in others:
            table.header = header
            table.headers = first.headers if [_texts(row) for row in table.rows[: first.headers]] == header else 0
        for table in tables:
            for row in table.rows[: table.headers]:
                for cell in row:
                    cell["header"] = True


def _texts(row: list[dict[str, Any]]) -> list[str]:
    return [cell["text"] for cell in row]
