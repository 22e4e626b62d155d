"""How many rows at the top of a table are header rows: what the workbook says, else what look and types tell.

The invariant: a table never consists of header rows alone, unless the workbook says so; without any sign there are none.
"""

from __future__ import annotations

from raydex.kernels.sheet import TEXT, Sheet, SheetRow
from raydex.kernels.sheet_regions import Region

_MAX_HEADERS = 5
_SAMPLE = 50  # rows below a header that are looked at


def count_headers(sheet: Sheet, region: Region) -> int:
    rows = region.rows
    if region.named is not None:
        last = region.named.area[0] + region.named.headers
        return sum(row.number < last for row in rows[: region.named.headers])
    top, left, bottom, right = region.area
    for area in sheet.filters:
        if top <= area[0] <= bottom and area[1] <= right and area[3] >= left:
            above = sum(row.number <= area[0] for row in rows[:_MAX_HEADERS])
            return above if above < _MAX_HEADERS else 1
    if len(rows) < 2:
        return 0
    if top <= sheet.frozen < bottom and sum(row.number <= sheet.frozen for row in rows[: _MAX_HEADERS + 1]) <= _MAX_HEADERS:
        return sum(row.number <= sheet.frozen for row in rows[:_MAX_HEADERS])
    return _count_strong(rows) or _count_by_type(sheet, region)


def _count_strong(rows: list[SheetRow]) -> int:
    """Leading rows of bold or filled cells, the row below them being plain. The first must be as wide as a header is."""
    count = 0
    while count < min(len(rows), _MAX_HEADERS + 1) and all(cell.style.strong for cell in rows[count].cells):
        count += 1
    return count if 0 < count < len(rows) and count <= _MAX_HEADERS else 0


def _count_by_type(sheet: Sheet, region: Region) -> int:
    """A row of nothing but texts over columns that hold values; rows of the same kind below it count where merged cells tie them."""
    rows = region.rows
    count = 1
    while _ties(sheet, rows[count - 1]) and count < min(len(rows) - 1, _MAX_HEADERS) and _is_text(rows[count]):
        count += 1
    if not _is_text(rows[0]) or count >= len(rows):
        return 0
    heads = {cell.column for row in rows[:count] for cell in row.cells}
    texts: dict[int, int] = dict.fromkeys(heads, 0)
    values: dict[int, int] = dict.fromkeys(heads, 0)
    for row in rows[count : count + _SAMPLE]:
        for cell in row.cells:
            if cell.column in heads:
                kinds = texts if cell.kind == TEXT else values
                kinds[cell.column] += 1
    return count if any(values[column] > texts[column] for column in heads) else 0


def _ties(sheet: Sheet, row: SheetRow) -> bool:
    """Whether a cell of the row is merged with others: a header over several columns or rows."""
    return bool(sheet.merges) and any((row.number, cell.column) in sheet.merges for cell in row.cells)


def _is_text(row: SheetRow) -> bool:
    return all(cell.kind == TEXT for cell in row.cells)
