"""Recognised lines of one column → headings, paragraphs, list items and tables, by geometry and the text itself.

Lines on one height are a row; rows with three cells or more, one under another, are a table. The invariant: every line that is given is in
exactly one block, and rows stay in order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from raydex.kernels.ocr import Box, OcrLine
from raydex.kernels.pdf_text import Vocabulary, join_lines
from raydex.kernels.tables import Rows, make_cell

HEADING_CHARS = 80  # of one that is told by its looks alone
HEADING_TEXT, HEADING_ROWS = 200, 4  # of one that a layout engine tells
TALL = 1.25
LOOSEST = 1.5  # gap between the lines of one paragraph, in heights
LOOSE = 0.6  # gap, in heights, from which rows need a sign that they belong together
CELL_GAP = 0.8  # of a line's height
_MARKER = re.compile(r"(?:[•●○▪■□◦‣⁃·∙]\s*|[-–—*]\s+|\(?(?P<number>\d{1,3}|[a-z])(?:\)|\.(?<!^[a-z]\.))(?:\s+|(?=[A-Z])))(?=\S)")
_SENTENCE_END = (".", "!", "?", ":", ";", "。", "！", "？", "：", "；")

Row = list[OcrLine]


@dataclass(slots=True)
class TextBlock:
    """A block of a page before it is one of a document.

    `role` is empty for running text, else caption, table_caption, figure_caption, equation, figure_text, header or footer.
    """

    kind: str
    box: Box
    lines: list[OcrLine] = field(default_factory=list)
    text: str = ""
    role: str = ""
    level: int = 0
    ordered: bool = False
    number: str = ""
    rows: Rows | None = None

    @property
    def confidence(self) -> float | None:
        """The mean over characters."""
        size = sum(len(line.text) for line in self.lines)
        return round(sum(line.confidence * len(line.text) for line in self.lines) / size, 4) if size else None

    @property
    def least_confidence(self) -> float | None:
        return min((line.confidence for line in self.lines), default=None)


def bounds(boxes: Sequence[Box]) -> Box:
    return (min(b[0] for b in boxes), min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes))


def body_height(lines: Sequence[OcrLine]) -> float:
    """Height of the lines that most of the text is set in."""
    heights = sorted((line.box[3] - line.box[1], len(line.text)) for line in lines if not is_vertical(line))
    half = sum(size for _, size in heights) / 2
    seen = 0
    for height, size in heights:
        seen += size
        if seen >= half:
            return max(height, 1.0)
    return 1.0


def is_vertical(line: OcrLine) -> bool:
    x0, y0, x1, y1 = line.box
    return len(line.text) > 2 and y1 - y0 > 1.8 * (x1 - x0)


def rows_of(lines: Sequence[OcrLine]) -> list[Row]:
    """Lines side by side → rows from top to bottom, each from left to right."""
    out: list[Row] = []
    for line in sorted(lines, key=lambda line: (line.box[1] + line.box[3], line.box[0])):
        if out and any(_beside(line, other) for other in out[-1][-8:]) and not any(_covers(line, other) for other in out[-1][-64:]):
            out[-1].append(line)
        else:
            out.append([line])
    for row in out:
        row.sort(key=lambda line: line.box[0])
    return out


def _beside(one: OcrLine, other: OcrLine) -> bool:
    height = min(one.box[3] - one.box[1], other.box[3] - other.box[1])
    return abs(one.box[1] + one.box[3] - other.box[1] - other.box[3]) < height


def _covers(one: OcrLine, other: OcrLine) -> bool:
    shared = min(one.box[2], other.box[2]) - max(one.box[0], other.box[0])
    return shared > 0.5 * min(one.box[2] - one.box[0], other.box[2] - other.box[0])


def join(texts: list[str], vocabulary: Vocabulary) -> str:
    return join_lines(texts, None, vocabulary)[0] if texts else ""


def blocks_of(lines: Sequence[OcrLine], body: float, vocabulary: Vocabulary) -> list[TextBlock]:
    """Blocks of lines that are read from top to bottom; `body` is the page's `body_height`."""
    flat = [line for line in lines if not is_vertical(line)]
    rows = rows_of(flat)
    shouting = sum(_is_upper(row) for row in rows) > max(1.0, 0.4 * len(rows))
    out: list[TextBlock] = []
    at = 0
    while at < len(rows):
        end = _table_end(rows, at)
        if end > at:
            out.append(table_block(rows[at:end]))
        else:
            end = _text_end(rows, at)
            out += _text_blocks(rows[at:end], body, shouting, vocabulary)
        at = end
    out += [TextBlock("paragraph", line.box, [line], line.text) for line in lines if is_vertical(line)]
    return out


def title_blocks(rows: list[Row], body: float, width: float, vocabulary: Vocabulary) -> list[TextBlock]:
    """Rows that a layout engine takes for one heading: one, or several, or text after all. `width` is the page's."""
    if _are_entries(rows, width):
        kind = "heading" if median(_height(row) for row in rows) >= TALL * body else "paragraph"
        return [TextBlock(kind, bounds([line.box for line in row]), row, row_text(row)) for row in rows]
    parts = [[rows[0]]]
    for row in rows[1:]:
        if _belong(parts[-1][-1], row):
            parts[-1].append(row)
        else:
            parts.append([row])
    out: list[TextBlock] = []
    for part in parts:
        lines = [line for row in part for line in row]
        text = join([row_text(row) for row in part], vocabulary)
        tall = all(_height(row) >= TALL * body for row in part)
        if (tall or len(parts) == 1) and _may_head(part, text, tall):
            out.append(TextBlock("heading", bounds([line.box for line in lines]), lines, text))
        else:
            out += blocks_of(lines, body, vocabulary)
    return out


def _belong(upper: Row, lower: Row) -> bool:
    """Whether two rows may be of one heading: set closely, and of like height."""
    low, high = sorted((_height(upper), _height(lower)))
    return _gap(upper, lower) <= LOOSE * high and high <= 1.4 * low


def _are_entries(rows: list[Row], width: float) -> bool:
    """Three rows or more that each begin anew at one left edge, with room left in the half of the page that they take."""
    lefts = [row[0].box[0] for row in rows]
    texts = [row_text(row) for row in rows]
    flush = max(lefts) - min(lefts) <= 0.5 * _height(rows[0])
    anew = all(not text[:1].islower() and any(char.islower() for char in text) for text in texts)
    return len(rows) > 2 and flush and anew and max(row[-1].box[2] for row in rows) - min(lefts) < 0.5 * width


def _may_head(rows: list[Row], text: str, tall: bool) -> bool:
    sentence = len(rows) > 1 and text.endswith((".", "。"))
    return len(text) <= HEADING_TEXT and len(rows) <= HEADING_ROWS and (tall or not sentence)


def _text_end(rows: list[Row], at: int) -> int:
    end = at + 1
    while end < len(rows) and not (len(rows[end]) > 2 and _table_end(rows, end) > end):
        end += 1
    return end


def _cells(row: Row) -> list[Row]:
    """Parts of a row that stand clearly apart."""
    out = [[row[0]]]
    for line in row[1:]:
        gap = line.box[0] - out[-1][-1].box[2]
        if gap > CELL_GAP * (line.box[3] - line.box[1]):
            out.append([line])
        else:
            out[-1].append(line)
    return out


def _table_end(rows: list[Row], at: int) -> int:
    """Where the table that begins here ends; `at` when none does."""
    if len(rows[at]) < 3:
        return at
    end = at
    full = 0
    while end < len(rows) and len(rows[end]) > 1:
        cells = len(_cells(rows[end]))
        if cells < 2 or (end > at and _gap(rows[end - 1], rows[end]) > 2.5 * _height(rows[end])):
            break
        full += cells > 2
        end += 1
    return end if full >= 2 and end - at >= 3 else at


def table_block(rows: list[Row]) -> TextBlock:
    """Cells by column: the columns are those of the rows with most cells; a cell over several of them spans them."""
    cells = [[(bounds([line.box for line in cell]), " ".join(line.text for line in cell)) for cell in _cells(row)] for row in rows]
    columns = _columns(cells)
    grid: Rows = []
    for row in cells:
        placed: dict[int, tuple[int, str]] = {}
        for box, text in row:
            first, last = _span(box, columns)
            while first in placed and first < last:
                first += 1
            span, before = placed.get(first, (1, ""))
            placed[first] = (max(span, last - first + 1), f"{before} {text}".strip())
        out = []
        at = 0
        while at < len(columns):
            span, text = placed.get(at, (1, ""))
            span = min(span, next((start for start in sorted(placed) if start > at), len(columns)) - at)
            out.append(make_cell(text, col_span=span))
            at += span
        grid.append(out)
    if len(grid) > 1 and all(cell["text"] and not _is_value(cell["text"]) for cell in grid[0]):
        for cell in grid[0]:
            cell["header"] = True
    lines = [line for row in rows for line in row]
    return TextBlock("table", bounds([line.box for line in lines]), lines, rows=grid)


def _columns(cells: list[list[tuple[Box, str]]]) -> list[tuple[float, float]]:
    most = max(len(row) for row in cells)
    full = [row for row in cells if len(row) == most]
    columns = [(box[0], box[2]) for box, _ in full[0]]
    for row in full[1:]:
        grown = [(min(old[0], box[0]), max(old[1], box[2])) for old, (box, _) in zip(columns, row, strict=True)]
        if all(one[1] <= other[0] for one, other in pairwise(grown)):
            columns = grown
    return columns


def _span(box: Box, columns: list[tuple[float, float]]) -> tuple[int, int]:
    touched = [at for at, (x0, x1) in enumerate(columns) if min(box[2], x1) - max(box[0], x0) > 0.3 * min(x1 - x0, box[2] - box[0])]
    if touched:
        return touched[0], touched[-1]
    middle = (box[0] + box[2]) / 2
    nearest = min(range(len(columns)), key=lambda at: abs(columns[at][0] + columns[at][1] - 2 * middle))
    return nearest, nearest


def _is_value(text: str) -> bool:
    return 2 * sum(char.isdigit() for char in text) >= len(text.replace(" ", ""))


def _text_blocks(rows: list[Row], body: float, shouting: bool, vocabulary: Vocabulary) -> list[TextBlock]:
    typical = median([max(0.0, _gap(one, other)) for one, other in pairwise(rows)] or [0.0])
    typical = 0.0 if _stand_alone(rows, typical) else min(typical, LOOSEST * body)
    rights = [row[-1].box[2] for row in rows]
    groups: list[list[Row]] = []
    for at, row in enumerate(rows):
        if groups and not _breaks(groups[-1], row, typical, max(rights[max(0, at - 3) : at + 3]), body, shouting):
            groups[-1].append(row)
        else:
            groups.append([row])
    return _nested([_text_block(group, body, shouting, vocabulary) for group in groups], body)


def _stand_alone(rows: list[Row], typical: float) -> bool:
    """Whether rows are set far apart though none goes on with a small letter where one could: entries, no lines of loosely set text."""
    texts = [row_text(row) for row in rows]
    cased = all(any(char.islower() for char in text) for text in texts)
    return len(rows) > 2 and cased and typical > LOOSE * _height(rows[0]) and not any(text[:1].islower() for text in texts)


def _breaks(group: list[Row], row: Row, typical: float, right: float, body: float, shouting: bool) -> bool:
    """Whether the row begins a block of its own."""
    last = group[-1]
    text = row_text(row)
    if is_heading(row, body, shouting) or _MARKER.match(text):
        return True
    if len(group) == 1 and is_heading(last, body, shouting):
        return True
    height = min(_height(last), _height(row))
    if _gap(last, row) > 1.5 * typical + 0.3 * height or max(_height(last), _height(row)) > 1.4 * height:
        return True
    item = _MARKER.match(row_text(group[0]))
    inset = row[0].box[0] - group[0][0].box[0]
    if item:
        return inset < 0.3 * height and _has_room(last, row, right)
    if abs(row[0].box[0] - last[0].box[0]) > 2 * height and not (len(group) == 1 and inset < 0):
        return True
    deliberate = row_text(last).endswith(_SENTENCE_END) or not text[:1].islower()
    return deliberate and _has_room(last, row, right)


def _has_room(last: Row, row: Row, right: float) -> bool:
    """Whether the first word of the row would have gone into the line before it, with some to spare."""
    text = row_text(row)
    wide = (row[-1].box[2] - row[0].box[0]) / max(len(text), 1)
    return right - last[-1].box[2] > wide * (1.5 * len(text.split(" ", 1)[0]) + 3)


def _text_block(group: list[Row], body: float, shouting: bool, vocabulary: Vocabulary) -> TextBlock:
    lines = [line for row in group for line in row]
    text = join([row_text(row) for row in group], vocabulary)
    box = bounds([line.box for line in lines])
    if len(group) == 1 and is_heading(group[0], body, shouting):
        return TextBlock("heading", box, lines, text)
    marker = _MARKER.match(text)
    if marker:
        number = marker["number"] or ""
        return TextBlock("list_item", box, lines, text[marker.end() :], ordered=bool(number), number=number)
    return TextBlock("paragraph", box, lines, text)


def _nested(blocks: list[TextBlock], body: float) -> list[TextBlock]:
    """Levels of list items by their left edges."""
    edges: list[float] = []
    for block in blocks:
        if block.kind != "list_item":
            edges = []
            continue
        left = block.box[0]
        while edges and left < edges[-1] - body:
            edges.pop()
        if not edges or left > edges[-1] + body:
            edges.append(left)
        block.level = len(edges) - 1
    return blocks


def row_text(row: Row) -> str:
    return " ".join(line.text for line in row)


def is_heading(row: Row, body: float, shouting: bool) -> bool:
    """One short line that is taller than the text, or in capitals where the text is not."""
    text = row_text(row)
    if len(text) > HEADING_CHARS or sum(char.isalpha() for char in text) < 3 or text.endswith(_SENTENCE_END) or len(_cells(row)) > 1:
        return False
    if _MARKER.match(text):
        return False
    return _height(row) >= TALL * body or (not shouting and _is_upper(row))


def _is_upper(row: Row) -> bool:
    text = row_text(row)
    letters = sum(char.isalpha() for char in text)
    return letters > 4 and text.isupper() and letters > 0.7 * len(text.replace(" ", ""))


def _height(row: Row) -> float:
    return max(line.box[3] - line.box[1] for line in row)


def _gap(upper: Row, lower: Row) -> float:
    return min(line.box[1] for line in lower) - max(line.box[3] for line in upper)
