"""The cells of a sheet → regions, cut at empty rows and columns as a person sees them: tables, and lines of text that stand alone.

Empty area is never walked: cuts are gaps between the places of cells, a merged cell reaching as far as it is merged. The invariant: every
cell of the sheet is in exactly one region, and the work is linear in the cells (sorting and `_MAX_CUTS` rounds apart).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from raydex.kernels.sheet import MAX_COLUMN, TEXT, Area, NamedTable, Sheet, SheetCell, SheetRow, area_around

_MAX_CUTS = 12
_MAX_LINES = 100  # a column of more texts is a list in a table, not lines of prose

Merges = dict[tuple[int, int], tuple[int, int]]


@dataclass(slots=True)
class Region:
    """A table, or with `line` one cell of text. `named` is the workbook's own table that it is."""

    rows: list[SheetRow]
    line: bool = False
    named: NamedTable | None = None
    area: Area = field(default=(0, 0, 0, 0))

    def measure(self, merges: Merges) -> None:
        """Sets the area around the cells, as far as they are merged; a table of the workbook's own has the area that it says, as far down
        as cells stand."""
        self.area = area_around(self.rows, merges if self.named is None else {})
        if self.named is not None:
            top, left, _, right = self.named.area
            self.area = (top, left, self.area[2], right)


def find_regions(sheet: Sheet) -> list[Region]:
    """Regions in reading order: from top to bottom, those beside each other from left to right."""
    named, rest = _take_named(sheet)
    regions = [*named, *(_cut(sheet, rest, 0) if rest else ())]
    for region in regions:
        region.measure(sheet.merges)
    if named:
        regions.sort(key=lambda region: region.area[:2])
    return regions


def _take_named(sheet: Sheet) -> tuple[list[Region], list[SheetRow]]:
    """The workbook's own tables, and the rows of what is left. Of tables that overlap the first one counts."""
    if not sheet.tables:
        return [], sheet.rows
    waiting = sorted(sheet.tables, key=lambda table: table.area, reverse=True)
    open_tables: list[tuple[int, NamedTable, list[SheetRow]]] = []  # by left column
    found: list[Region] = []
    rest: list[SheetRow] = []
    for row in sheet.rows:
        if open_tables:
            open_tables = [entry for entry in open_tables if entry[1].area[2] >= row.number]
        while waiting and waiting[-1].area[0] <= row.number:
            table = waiting.pop()
            at = bisect_left(open_tables, table.area[1], key=lambda entry: entry[0])
            left_free = at == 0 or open_tables[at - 1][1].area[3] < table.area[1]
            right_free = at == len(open_tables) or open_tables[at][0] > table.area[3]
            if table.area[2] >= row.number and left_free and right_free:
                region = Region([], named=table)
                found.append(region)
                open_tables.insert(at, (table.area[1], table, region.rows))
        outside: list[SheetCell] = []
        for cell in row.cells:
            at = bisect_right(open_tables, cell.column, key=lambda entry: entry[0]) - 1
            if at < 0 or open_tables[at][1].area[3] < cell.column:
                outside.append(cell)
                continue
            rows = open_tables[at][2]
            if not rows or rows[-1].number != row.number:
                rows.append(SheetRow(row.number, []))
            rows[-1].cells.append(cell)
        if outside:
            rest.append(SheetRow(row.number, outside))
    return [region for region in found if region.rows], rest


def _cut(sheet: Sheet, rows: list[SheetRow], depth: int) -> list[Region]:
    """Regions of some rows: cut between rows, then between columns, each piece again."""
    out: list[Region] = []
    for band in _cut_rows(rows, sheet.merges):
        pieces = _cut_columns(band, sheet.merges)
        if len(pieces) == 1 or depth >= _MAX_CUTS:
            out += _take_lines(sheet, band, depth)
        else:
            for piece in pieces:
                out += _cut(sheet, piece, depth + 1)
    return out


def _cut_rows(rows: list[SheetRow], merges: Merges) -> list[list[SheetRow]]:
    bands: list[list[SheetRow]] = []
    start = 0
    reach = rows[0].number
    for at, row in enumerate(rows):
        if row.number > reach + 1:
            bands.append(rows[start:at])
            start = at
        reach = max(reach, row.number)
        if merges:
            for cell in row.cells:
                merge = merges.get((row.number, cell.column))
                if merge is not None and merge[0] > reach:
                    reach = merge[0]
    bands.append(rows[start:])
    return bands


def _cut_columns(rows: list[SheetRow], merges: Merges) -> list[list[SheetRow]]:
    """Pieces from left to right. A piece that is no table by itself, one empty column away, belongs to its neighbour."""
    ends: dict[int, int] = {}
    for row in rows:
        for cell in row.cells:
            column = cell.column
            end = merges.get((row.number, column), (0, column))[1] if merges else column
            if ends.get(column, 0) < end:
                ends[column] = end
    columns = sorted(ends)
    starts = [columns[0]]
    gaps: list[int] = []
    reach = columns[0]
    for column in columns:
        if column > reach + 1:
            starts.append(column)
            gaps.append(column - reach - 1)
        reach = max(reach, ends[column])
    if len(starts) == 1:
        return [rows]
    parts: list[list[SheetRow]] = [[] for _ in starts]
    for row in rows:
        for cell in row.cells:
            part = parts[bisect_right(starts, cell.column) - 1]
            if not part or part[-1].number != row.number:
                part.append(SheetRow(row.number, []))
            part[-1].cells.append(cell)
    return _join(parts, gaps)


def _join(parts: list[list[SheetRow]], gaps: list[int]) -> list[list[SheetRow]]:
    groups: list[list[list[SheetRow]]] = [[parts[0]]]
    for part, gap in zip(parts[1:], gaps, strict=True):
        left = groups[-1][-1]
        beside = left[0].number <= part[-1].number and part[0].number <= left[-1].number
        if gap == 1 and beside and not (_is_table(left) and _is_table(part)):
            groups[-1].append(part)
        else:
            groups.append([part])
    return [group[0] if len(group) == 1 else _merge_rows(group) for group in groups]


def _merge_rows(parts: list[list[SheetRow]]) -> list[SheetRow]:
    cells: dict[int, list[SheetCell]] = {}
    for part in parts:
        for row in part:
            cells.setdefault(row.number, []).extend(row.cells)
    return [SheetRow(number, cells[number]) for number in sorted(cells)]


def _is_table(rows: list[SheetRow]) -> bool:
    """Two rows and two columns at the least."""
    return len(rows) > 1 and any(row.cells[-1].column != rows[0].cells[0].column or len(row.cells) > 1 for row in rows)


def _take_lines(sheet: Sheet, rows: list[SheetRow], depth: int) -> list[Region]:
    """A piece without gaps: the table, and the lines of text alone in their row that stand above and below it."""
    filtered = next((area for area in sheet.filters if _overlaps(area, rows)), None)
    if not any(len(row.cells) > 1 for row in rows):
        return [Region(rows)] if _is_column(rows) or filtered else [Region([row], line=True) for row in rows]
    top, bottom = (filtered[0], filtered[2]) if filtered else (rows[-1].number, rows[0].number)
    first, last = 0, len(rows)
    left = min(row.cells[0].column for row in rows)
    while rows[first].number < top and _is_title(rows[first], left, sheet.merges):
        first += 1
    while rows[last - 1].number > bottom and _is_remark(rows[last - 1], rows[first]):
        last -= 1
    above = [Region([row], line=True) for row in rows[:first]]
    below = [Region([row], line=True) for row in rows[last:]]
    inner = rows[first:last]
    again = (above or below) and depth < _MAX_CUTS
    return [*above, *(_cut(sheet, inner, depth + 1) if again else [Region(inner)]), *below]


def _is_title(row: SheetRow, left: int, merges: Merges) -> bool:
    """One text in the row; one that is merged over columns begins at the left edge, else it heads a group of columns."""
    cell = row.cells[0]
    if len(row.cells) > 1 or cell.kind != TEXT:
        return False
    merge = merges.get((row.number, cell.column))
    return merge is None or merge[1] == cell.column or cell.column == left


def _is_remark(row: SheetRow, body: SheetRow) -> bool:
    """One text in the row, not framed like the table above it."""
    cell = row.cells[0]
    framed = cell.style.bordered and body.cells[0].style.bordered
    return len(row.cells) == 1 and cell.kind == TEXT and not framed


def _is_column(rows: list[SheetRow]) -> bool:
    """Cells one below the other are a table of one column when they are values, framed, or too many to be prose."""
    if len(rows) < 2 or any(row.cells[0].column != rows[0].cells[0].column for row in rows):
        return False
    values = sum(row.cells[0].kind != TEXT for row in rows)
    framed = sum(row.cells[0].style.bordered for row in rows)
    return len(rows) > _MAX_LINES or values * 2 >= len(rows) or framed == len(rows)


def _overlaps(area: Area, rows: list[SheetRow]) -> bool:
    top, left, bottom, right = area
    if rows[0].number > bottom or rows[-1].number < top:
        return False
    at = bisect_left(rows, top, key=lambda row: row.number)
    return at < len(rows) and rows[at].cells[0].column <= min(right, MAX_COLUMN) and rows[at].cells[-1].column >= left
