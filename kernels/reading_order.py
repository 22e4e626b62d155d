"""Regions of a page and its recognised lines → blocks in reading order; running headers and footers apart.

A line belongs to the region that holds most of it; lines in no region are parted into columns and blocks by themselves. What a layout
engine says is checked against the lines: a figure full of text is none, and a header must stand at the edge. The invariant: every line is
in exactly one block, of the text or of the furniture.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from raydex.kernels.layout import Region
from raydex.kernels.ocr import Box, OcrLine, OcrPage
from raydex.kernels.page_text import (
    TextBlock,
    blocks_of,
    body_height,
    bounds,
    is_vertical,
    join,
    row_text,
    rows_of,
    table_block,
    title_blocks,
)
from raydex.kernels.pdf_text import Vocabulary
from raydex.kernels.text_columns import are_columns, runs_on

EDGE = 0.06  # of the page's height
FIGURE_TEXT = 0.15  # of a figure's area
MAX_DEPTH = 6
MAX_GUTTERS = 48
SAME_LEVEL = 0.8
SURE_TABLE = 0.8  # score of a table that only lines which certainly run on belie
INSET = 0.22  # of a line's height: engines draw its box wider than the letters
_PAGE_NUMBER = re.compile(
    r"(?:page|seite|pagina|página|p\.)?\s*\d{1,4}(?:\s*(?:of|von|de|/)\s*\d{1,4})?|[-–—]\s*\d{1,4}\s*[-–—]", re.IGNORECASE
)

Accept = Callable[[list[int], list[int]], bool]


@dataclass(slots=True)
class PageText:
    """`furniture` are headers and footers as the layout engine found them."""

    blocks: list[TextBlock] = field(default_factory=list)
    furniture: list[TextBlock] = field(default_factory=list)


def order_page(page: OcrPage, regions: Sequence[Region] = ()) -> PageText:
    """The blocks of one page. Headings have level 1 until `rank_headings` has seen all pages."""
    lines = page.lines
    vocabulary = Vocabulary(line.text for line in lines)
    body = body_height(lines)
    columns = _columns(lines, body)
    kept = _credible(_within_columns(regions, columns), lines, page)
    owned, free = _assign(lines, kept)
    out = PageText()
    items: list[list[TextBlock]] = []
    for region, inside in zip(kept, owned, strict=True):
        blocks = _region_blocks(region, inside, body, page.width, vocabulary)
        if region.kind in ("header", "footer"):
            out.furniture += blocks
        elif blocks:
            items.append(blocks)
    numbers = [line for line in free if _is_page_number(line, page)]
    out.furniture += [TextBlock("paragraph", line.box, [line], line.text, _edge(line, page)) for line in numbers]
    left = {id(line) for line in free} - {id(line) for line in numbers}
    for column in columns:
        for group in _columns([line for line in column if id(line) in left], body):
            for part in _parts(group, kept):
                items += [[block] for block in blocks_of(part, body, vocabulary)]
    boxes = [bounds([block.box for block in item]) for item in items]
    for group_at in cut(boxes, lambda left, right: True, 0.5 * body):
        for at in _across(group_at, boxes):
            out.blocks += items[at]
    _attach_captions(out.blocks, body)
    return out


def _edge(line: OcrLine, page: OcrPage) -> str:
    return "header" if line.box[1] + line.box[3] < page.height else "footer"


def _is_page_number(line: OcrLine, page: OcrPage) -> bool:
    middle = (line.box[1] + line.box[3]) / 2
    at_edge = min(middle, page.height - middle) < EDGE * page.height
    return at_edge and len(page.lines) > 2 and _PAGE_NUMBER.fullmatch(line.text) is not None


def rank_headings(pages: Sequence[PageText]) -> None:
    """Levels of the headings of a document by the height of their lines."""
    headings = [(_line_height(block), block) for page in pages for block in page.blocks if block.kind == "heading"]
    level = 0
    tallest = 0.0
    for height, block in sorted(headings, key=lambda item: -item[0]):
        if height < SAME_LEVEL * tallest or not level:
            level += 1
            tallest = height
        block.level = min(level, 6)


def cut(boxes: Sequence[Box], accept: Accept, gap: float) -> list[list[int]]:
    """Positions of the boxes in groups: columns and bands in reading order, each group to be read from top to bottom.

    `accept` says whether what stands left and right of a gutter are columns; `gap` is the least width of a gutter.
    """
    order = sorted(range(len(boxes)), key=lambda at: (boxes[at][1], boxes[at][0]))
    return _cut(order, boxes, accept, gap, 0) if order else []


def _cut(order: list[int], boxes: Sequence[Box], accept: Accept, gap: float, depth: int) -> list[list[int]]:
    gutter = _gutter(order, boxes, gap) if len(order) > 1 and depth < MAX_DEPTH else None
    if gutter is None:
        return [order]
    out: list[list[int]] = []
    flow: list[int] = []
    left: list[int] = []
    right: list[int] = []
    for at in [*order, -1]:
        if at >= 0 and boxes[at][2] <= gutter:
            left.append(at)
        elif at >= 0 and boxes[at][0] >= gutter + gap:
            right.append(at)
        else:
            if left and right and accept(left, right):
                out += _cut(flow, boxes, accept, gap, depth + 1) if flow else []
                out += _cut(left, boxes, accept, gap, depth + 1) + _cut(right, boxes, accept, gap, depth + 1)
                flow = []
            else:
                flow += sorted(left + right, key=lambda at: (boxes[at][1], boxes[at][0]))
            left, right = [], []
            flow += [at] if at >= 0 else []
    if not out:
        return [order]
    return out + (_cut(flow, boxes, accept, gap, depth + 1) if flow else [])


def _gutter(order: list[int], boxes: Sequence[Box], gap: float) -> float | None:
    """The left edge of the gutter along which most stands side by side, less what crosses it."""
    edges = sorted({boxes[at][2] for at in order})
    step = -(-len(edges) // MAX_GUTTERS)
    best, found = 0.0, None
    for edge in edges[::step]:
        left = _spans(boxes[at] for at in order if boxes[at][2] <= edge)
        right = _spans(boxes[at] for at in order if boxes[at][0] >= edge + gap)
        if not left or not right:
            continue
        crossing = _spans(boxes[at] for at in order if boxes[at][2] > edge and boxes[at][0] < edge + gap)
        score = _shared(left, right) - 0.5 * sum(y1 - y0 for y0, y1 in crossing)
        if score > best:
            best, found = score, edge
    return found


def _spans(boxes: object) -> list[tuple[float, float]]:
    """Heights that the boxes cover, as disjoint spans from top to bottom."""
    out: list[tuple[float, float]] = []
    for _, y0, _, y1 in sorted(boxes, key=lambda box: box[1]):  # type: ignore[call-overload]
        if out and y0 <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], y1))
        else:
            out.append((y0, y1))
    return out


def _shared(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> float:
    total = 0.0
    i = j = 0
    while i < len(one) and j < len(other):
        total += max(0.0, min(one[i][1], other[j][1]) - max(one[i][0], other[j][0]))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return total


def _across(group: list[int], boxes: Sequence[Box]) -> list[int]:
    """From top to bottom, and from left to right what stands on one height."""
    rows = rows_of([OcrLine(str(at), 1.0, boxes[at]) for at in group])
    return [int(item.text) for row in rows for item in row]


def _columns(lines: Sequence[OcrLine], body: float) -> list[list[OcrLine]]:
    """Columns and what stands between them; lines set upright are left to themselves, at the end."""
    flat = [line for line in lines if not is_vertical(line)]

    def accept(left: list[int], right: list[int]) -> bool:
        return are_columns([flat[at] for at in left], [flat[at] for at in right])

    out = [[flat[at] for at in group] for group in cut([line.box for line in flat], accept, 0.5 * body)]
    return out + [[line] for line in lines if is_vertical(line)]


def _within_columns(regions: Sequence[Region], columns: list[list[OcrLine]]) -> list[Region]:
    """Regions without those that take lines of two columns side by side for one text, heading or table."""
    groups = [(bounds([line.box for line in column]), column) for column in columns if not is_vertical(column[0])]
    out = []
    for region in regions:
        if region.kind in ("text", "title", "table") and len(groups) > 1:
            held = [(box, column) for box, column in groups if any(_lies_in(line, region) for line in column)]
            if region.kind == "table" and region.score >= SURE_TABLE:
                held = [(box, column) for box, column in held if runs_on(column)]
            if any(_side_by_side(one, other) for at, (one, _) in enumerate(held) for other, _ in held[at + 1 :]):
                continue
        out.append(region)
    return out


def _side_by_side(one: Box, other: Box) -> bool:
    apart = one[2] <= other[0] or other[2] <= one[0]
    return apart and min(one[3], other[3]) > max(one[1], other[1])


def _parts(lines: list[OcrLine], regions: Sequence[Region]) -> list[list[OcrLine]]:
    """Lines of a column, parted where a region stands between two of them."""
    out: list[list[OcrLine]] = []
    above = 0.0
    for line in sorted(lines, key=lambda line: line.box[1] + line.box[3]):
        below = (line.box[1] + line.box[3]) / 2
        between = any(
            above < (region.box[1] + region.box[3]) / 2 < below and region.box[0] < line.box[2] and region.box[2] > line.box[0]
            for region in regions
        )
        if out and not between:
            out[-1].append(line)
        else:
            out.append([line])
        above = below
    return out


def _credible(regions: Sequence[Region], lines: Sequence[OcrLine], page: OcrPage) -> list[Region]:
    """Regions without doubles, of kinds that the lines in them bear out."""
    kept: list[Region] = []
    for region in sorted(regions, key=lambda region: (region.kind in ("header", "footer"), -region.score)):
        if region.kind == "figure" and _text_share(region, lines) > FIGURE_TEXT:
            continue
        middle = (region.box[1] + region.box[3]) / 2
        if (region.kind == "header" and middle > EDGE * page.height) or (region.kind == "footer" and middle < (1 - EDGE) * page.height):
            region = replace(region, kind="text")
        if all(_overlap(region.box, other.box) < 0.6 * min(_area(region.box), _area(other.box)) or _holds(region, other) for other in kept):
            kept.append(region)
    return kept


def _holds(one: Region, other: Region) -> bool:
    """A caption or title may lie inside a larger region, and text inside a figure."""
    inner = min(one, other, key=lambda region: _area(region.box))
    outer = other if inner is one else one
    return _area(inner.box) < 0.5 * _area(outer.box) and inner.kind != outer.kind


def _text_share(region: Region, lines: Sequence[OcrLine]) -> float:
    return sum(_overlap(region.box, line.box) for line in lines) / max(_area(region.box), 1.0)


def _assign(lines: Sequence[OcrLine], regions: list[Region]) -> tuple[list[list[OcrLine]], list[OcrLine]]:
    owned: list[list[OcrLine]] = [[] for _ in regions]
    free: list[OcrLine] = []
    for line in lines:
        fits = [(_area(region.box), at) for at, region in enumerate(regions) if _lies_in(line, region)]
        if fits:
            owned[min(fits)[1]].append(line)
        else:
            free.append(line)
    return owned, free


def _lies_in(line: OcrLine, region: Region) -> bool:
    core = _core(line.box)
    return _overlap(core, region.box) > 0.5 * max(_area(core), 1e-9)


def _region_blocks(region: Region, lines: list[OcrLine], body: float, width: float, vocabulary: Vocabulary) -> list[TextBlock]:
    inside = blocks_of(lines, body, vocabulary) if lines else []
    if region.kind == "figure" and not any(block.kind == "table" for block in inside):
        for block in inside:
            block.role = "figure_text"
        return [TextBlock("image", region.box), *inside]
    if not lines:
        return []
    rows = rows_of(lines)
    if region.kind == "table" and len(rows) > 1 and max(len(row) for row in rows) > 1:
        return [table_block(rows)]
    if region.kind in ("text", "table", "figure"):
        return inside
    if region.kind == "title":
        return title_blocks(rows, body, width, vocabulary)
    text = join([row_text(row) for row in rows], vocabulary)
    return [TextBlock("paragraph", bounds([line.box for line in lines]), lines, text, region.kind)]


def _attach_captions(blocks: list[TextBlock], body: float) -> None:
    """A caption next to a table or figure says which of the two it is of."""
    for at, block in enumerate(blocks):
        if block.role != "caption":
            continue
        before = next((other for other in reversed(blocks[:at]) if other.role != "figure_text"), None)
        near = [other for other in (before, *blocks[at + 1 : at + 2]) if other is not None and other.kind in ("table", "image")]
        apart = [(max(other.box[1] - block.box[3], block.box[1] - other.box[3]), other.kind) for other in near]
        if apart and min(apart)[0] < 4 * body:
            block.role = "table_caption" if min(apart)[1] == "table" else "figure_caption"


def _line_height(block: TextBlock) -> float:
    heights = sorted(line.box[3] - line.box[1] for line in block.lines)
    return heights[len(heights) // 2] if heights else 0.0


def _core(box: Box) -> Box:
    inset = INSET * min(box[3] - box[1], box[2] - box[0])
    return box[0] + inset, box[1] + inset, box[2] - inset, box[3] - inset


def _area(box: Box) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def _overlap(one: Box, other: Box) -> float:
    return max(0.0, min(one[2], other[2]) - max(one[0], other[0])) * max(0.0, min(one[3], other[3]) - max(one[1], other[1]))
