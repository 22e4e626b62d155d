"""Rules of a page → grids of cells, with the spans that missing inner rules tell; the texts in a grid → one line that holds a table.

Rules that touch are one grid, so that two tables one above the other are two. The invariant: a grid is taken only where each text lies
inside one cell; all others are left to the columns that the texts themselves form (`pdf_tables`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from raydex.kernels.pdf_layout import Line, merge_rows
from raydex.kernels.pdf_raw import BOLD
from raydex.kernels.pdf_text import Vocabulary, join_lines
from raydex.kernels.tables import Rows, make_cell, table_text

NEAR = 2.5  # points between rules that touch, or lie on one line
OPEN_SIDE = 10.0  # by which rules reach over the outermost that cross them, where a table has no rules at its sides
MAX_SLOTS = 20_000
MAX_HEADERS = 4
_OUT = 3.0  # by which a text may reach over its cell
_LEAST_FILLED = 0.3
_PROSE = 400  # characters a cell on average: columns in a frame
_UNRULED = 3  # texts one under the other in every cell of a row

Span = tuple[float, float, float]  # position, begin, end


@dataclass(slots=True)
class Cell:
    row: int
    column: int
    row_span: int
    col_span: int
    lines: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class Grid:
    """`xs` and `ys` are the edges of columns and rows, `slots[row][column]` the cell that covers it."""

    xs: list[float]
    ys: list[float]
    cells: list[Cell]
    slots: list[list[Cell]]


@dataclass(slots=True)
class RuledTable:
    columns: list[tuple[float, float]]
    rows: Rows
    headers: int


def lines_with_tables(lines: list[Line], rules: Sequence[Sequence[float]], vocabulary: Vocabulary) -> list[Line]:
    """The lines of a page, those inside of grids replaced by one line for each table, with its `RuledTable` in `grid`."""
    for grid in find_grids(rules) if rules else ():
        inside = [line for line in lines if line.turn == 0 and _holds(grid, line)]
        if _fill(grid, inside):
            taken = {id(line) for line in inside}
            lines = [line for line in lines if id(line) not in taken]
            lines.append(_table_line(grid, inside, vocabulary))
    return lines


def find_grids(rules: Sequence[Sequence[float]]) -> list[Grid]:
    """Grids of at least two rows and two columns, the largest first."""
    across = _united([((y0 + y1) / 2, x0, x1) for x0, y0, x1, y1 in rules if x1 - x0 >= y1 - y0])
    down = _united([((x0 + x1) / 2, y0, y1) for x0, y0, x1, y1 in rules if x1 - x0 < y1 - y0])
    grids = [grid for parts in _connected(across, down) if (grid := _grid(*parts)) is not None]
    return sorted(grids, key=lambda grid: -(grid.xs[-1] - grid.xs[0]) * (grid.ys[-1] - grid.ys[0]))


def _united(spans: list[Span]) -> list[Span]:
    """Pieces that lie on one line and touch become one."""
    out: list[Span] = []
    for cluster in _clusters(sorted(spans)):
        place = sum(span[0] for span in cluster) / len(cluster)
        begin, end = 0.0, -NEAR * 2
        for _, one, other in sorted(cluster, key=lambda span: span[1]):
            if one > end + NEAR:
                if end > begin:
                    out.append((place, begin, end))
                begin, end = one, other
            end = max(end, other)
        out.append((place, begin, end))
    return out


def _clusters(spans: list[Span]) -> Iterator[list[Span]]:
    cluster: list[Span] = []
    for span in spans:
        if cluster and span[0] - cluster[0][0] > NEAR:
            yield cluster
            cluster = []
        cluster.append(span)
    if cluster:
        yield cluster


def _connected(across: list[Span], down: list[Span]) -> list[tuple[list[Span], list[Span]]]:
    """(horizontal, vertical) rules that touch, directly or by others."""
    parent = list(range(len(across) + len(down)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    for i, (y, x0, x1) in enumerate(across):
        for j, (x, y0, y1) in enumerate(down, len(across)):
            if x0 - NEAR <= x <= x1 + NEAR and y0 - NEAR <= y <= y1 + NEAR:
                parent[root(i)] = root(j)
    found: dict[int, tuple[list[Span], list[Span]]] = defaultdict(lambda: ([], []))
    for at, span in enumerate((*across, *down)):
        found[root(at)][at >= len(across)].append(span)
    return list(found.values())


def _grid(across: list[Span], down: list[Span]) -> Grid | None:
    xs, ys = _edges(down, across), _edges(across, down)
    width, height = len(xs) - 1, len(ys) - 1
    if width < 2 or height < 2 or width * height > MAX_SLOTS:
        return None
    right_of = _walls(down, xs, ys)
    below = _walls(across, ys, xs)
    slots: list[list[Cell | None]] = [[None] * width for _ in range(height)]
    cells: list[Cell] = []
    for row in range(height):
        for column in range(width):
            if slots[row][column] is not None:
                continue
            cell = _cell_at(row, column, lambda r, c: (c + 1, r) in right_of, lambda r, c: (r + 1, c) in below, (height, width))
            for r in range(row, row + cell.row_span):
                for c in range(column, column + cell.col_span):
                    if slots[r][c] is not None:
                        return None
                    slots[r][c] = cell
            cells.append(cell)
    return Grid(xs, ys, cells, [[slot for slot in row if slot is not None] for row in slots])


def _edges(rules: list[Span], crossing: list[Span]) -> list[float]:
    """Where the rules lie; with the ends of those that cross them, where these reach over the outermost."""
    out: list[float] = []
    for place, _, _ in sorted(rules):
        if not out or place - out[-1] > NEAR:
            out.append(place)
    if not out or not crossing:
        return []
    first, last = min(begin for _, begin, _ in crossing), max(end for _, _, end in crossing)
    return [first] * (first < out[0] - OPEN_SIDE) + out + [last] * (last > out[-1] + OPEN_SIDE)


def _walls(rules: list[Span], places: list[float], others: list[float]) -> set[tuple[int, int]]:
    """(edge, slot along it) that a rule covers."""
    middles = [(one + other) / 2 for one, other in pairwise(others)]
    out: set[tuple[int, int]] = set()
    for place, begin, end in rules:
        edge = min(range(len(places)), key=lambda at: abs(places[at] - place))
        out.update((edge, slot) for slot in range(bisect_right(middles, begin), bisect_right(middles, end)))
    return out


def _cell_at(row: int, column: int, right: Callable[[int, int], bool], below: Callable[[int, int], bool], size: tuple[int, int]) -> Cell:
    """The cell that begins in a slot: as wide and then as high as no rule parts it."""
    height, width = size
    columns = rows = 1
    while column + columns < width and not right(row, column + columns - 1):
        columns += 1
    while row + rows < height and not any(below(row + rows - 1, at) for at in range(column, column + columns)):
        rows += 1
    return Cell(row, column, rows, columns)


def _holds(grid: Grid, line: Line) -> bool:
    x, y = (line.x0 + line.x1) / 2, (line.y0 + line.y1) / 2
    return grid.xs[0] < x < grid.xs[-1] and grid.ys[0] < y < grid.ys[-1]


def _fill(grid: Grid, lines: list[Line]) -> bool:
    """Puts the lines into their cells; False where they do not fit, or the grid is no table of theirs."""
    for line in lines:
        row = bisect_right(grid.ys, (line.y0 + line.y1) / 2) - 1
        cell = grid.slots[row][bisect_right(grid.xs, (line.x0 + line.x1) / 2) - 1]
        if line.x0 < grid.xs[cell.column] - _OUT or line.x1 > grid.xs[cell.column + cell.col_span] + _OUT:
            return False
        cell.lines.append(line)
    filled = [cell for cell in grid.cells if cell.lines]
    if len(filled) < max(3.0, _LEAST_FILLED * len(grid.cells)) or sum(len(line.text) for line in lines) > _PROSE * len(filled):
        return False
    if len({cell.row for cell in filled}) < 2 or len({cell.column for cell in filled}) < 2:
        return False
    for cell in filled:
        cell.lines = merge_rows(sorted(cell.lines, key=lambda line: line.base))
        if sum(line.cells > 1 for line in cell.lines) > 1:
            return False  # a frame around texts that have columns of their own
    return not any(_is_unruled(list(row)) for _, row in groupby(filled, key=lambda cell: cell.row))


def _is_unruled(row: list[Cell]) -> bool:
    """Whether every cell holds texts on the same three lines or more: rows of a table that has rules between its columns alone."""
    bases = [sorted({round(line.base) for line in cell.lines}) for cell in row]
    return len(row) > 1 and len(bases[0]) >= _UNRULED and all(other == bases[0] for other in bases)


def _table_line(grid: Grid, inside: list[Line], vocabulary: Vocabulary) -> Line:
    rows: Rows = [[] for _ in grid.slots]
    bold = [True] * len(rows)
    for cell in grid.cells:
        texts = [line.text.replace("\t", " ") for line in cell.lines]
        text = join_lines(texts, None, vocabulary)[0] if texts else ""
        rows[cell.row].append(make_cell(text, row_span=cell.row_span, col_span=cell.col_span))
        bold[cell.row] &= all(line.style & BOLD for line in cell.lines)
    columns = list(pairwise(grid.xs))
    first = inside[0]
    style = first.style
    for line in inside:
        style &= line.style
    size = sorted(line.size for line in inside)[len(inside) // 2]
    box = (grid.xs[0], grid.ys[0], grid.xs[-1], grid.ys[-1])
    out = Line(table_text(rows), *box, grid.ys[0] + size, size, style, 0, box)
    out.cells = max(len(columns), 3)
    out.grid = RuledTable(columns, rows, _count_bold(bold, grid))
    return out


def _count_bold(bold: list[bool], grid: Grid) -> int:
    """Rows at the top in bold type where the others are not, with all that their cells span."""
    count = next((at for at, is_bold in enumerate(bold) if not is_bold), 0)
    reach = max((cell.row + cell.row_span for cell in grid.cells if cell.row < count), default=0)
    return count if count == reach and count <= MAX_HEADERS else 0
