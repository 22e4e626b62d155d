"""The sheet that XLSX and ODS readers make: rows of cells that hold something, and what is known of areas; with A1 names and ranges.

The invariant: a sheet holds no empty cell, its rows ascend and so do the columns of a row; numbers of rows and columns are 1-based.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from raydex.ir.errors import LimitError
from raydex.kernels.request import ParseRequest

MAX_ROW = 1_048_576
MAX_COLUMN = 16_384
_SHOWN_RUNS = 200
_MERGED_OUT = 50  # a cell merged farther than this beyond the last one merges an empty part of the sheet
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})$")

# kinds of a cell's value
TEXT, NUMBER, DATE, BOOLEAN, ERROR = "text", "number", "date", "boolean", "error"

Area = tuple[int, int, int, int]  # top, left, bottom, right


class CellStyle(NamedTuple):
    """What of a cell's look tells of its role. `strong`: bold or filled; `large`: in larger type than the workbook's own."""

    strong: bool = False
    large: bool = False
    bordered: bool = False


class SheetCell(NamedTuple):
    """`text` as shown; `formula` begins with = and is empty where the file does not write one out."""

    column: int
    text: str
    kind: str
    style: CellStyle
    formula: str = ""
    computed: bool = True


class SheetRow(NamedTuple):
    number: int
    cells: list[SheetCell]


class NamedTable(NamedTuple):
    """An area that the workbook itself calls a table. `headers`: how many rows of it are header rows."""

    area: Area
    name: str
    headers: int


class Note(NamedTuple):
    """A comment at a cell. `parent` is the id of the comment that it answers."""

    row: int
    column: int
    text: str
    author: str = ""
    time: str = ""
    id: str = ""
    parent: str = ""


@dataclass(slots=True)
class Sheet:
    """`merges` by upper left cell; `filters` are areas whose first row is a header; `frozen` counts the rows that do not scroll."""

    name: str
    state: str = "visible"
    rows: list[SheetRow] = field(default_factory=list)
    merges: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    links: dict[tuple[int, int], str] = field(default_factory=dict)
    tables: list[NamedTable] = field(default_factory=list)
    filters: list[Area] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    frozen: int = 0
    hidden_rows: list[tuple[int, int]] = field(default_factory=list)
    hidden_columns: list[tuple[int, int]] = field(default_factory=list)

    def used_area(self) -> Area | None:
        """The area around all cells."""
        return area_around(self.rows, self.merges) if self.rows else None


def area_around(rows: list[SheetRow], merges: dict[tuple[int, int], tuple[int, int]]) -> Area:
    """The smallest area around the cells of at least one row, as far as they are merged."""
    left = min(row.cells[0].column for row in rows)
    right = max(row.cells[-1].column for row in rows)
    top, bottom = rows[0].number, rows[-1].number
    if merges:
        ends = [merges.get((row.number, cell.column), (0, 0)) for row in rows for cell in row.cells]
        bottom = max([bottom, *(row for row, _ in ends if row <= bottom + _MERGED_OUT)])
        right = max([right, *(column for _, column in ends if column <= right + _MERGED_OUT)])
    return top, left, bottom, right


@dataclass(slots=True)
class CellBudget:
    """What the cells of one workbook may take: `limits.cells` and `limits.text_bytes`."""

    request: ParseRequest
    cells: int = 0
    characters: int = 0

    def charge(self, row: list[SheetCell]) -> None:
        """Raises LimitError: too_large, text_too_long."""
        limits = self.request.limits
        self.cells += len(row)
        self.characters += sum([len(cell[1]) for cell in row])
        if self.cells > limits.cells:
            message = f"more than {limits.cells} cells hold something (limits.cells)"
            raise LimitError(message, reject_class="too_large", place=self.request.path, remedy="Split the workbook or raise limits.cells")
        if self.characters > limits.text_bytes:
            message = f"the cells hold more than {limits.text_bytes} characters (limits.text_bytes)"
            raise LimitError(message, reject_class="text_too_long", place=self.request.path)


@lru_cache(maxsize=MAX_COLUMN)
def column_name(column: int) -> str:
    name = ""
    while column > 0:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name


@lru_cache(maxsize=MAX_COLUMN)
def column_number(name: str) -> int:
    """0 for what is no column of a sheet."""
    number = 0
    for letter in name.upper():
        if not "A" <= letter <= "Z" or number > MAX_COLUMN:
            return 0
        number = number * 26 + ord(letter) - 64
    return number if number <= MAX_COLUMN else 0


def cell_name(row: int, column: int) -> str:
    return f"{column_name(column)}{row}"


def area_name(area: Area) -> str:
    """A1 for one cell, else A1:B2."""
    top, left, bottom, right = area
    first = cell_name(top, left)
    return first if (top, left) == (bottom, right) else f"{first}:{cell_name(bottom, right)}"


def read_cell(name: str) -> tuple[int, int] | None:
    """Row and column of `B3` or `$B$3`; None for what names no cell of a sheet."""
    found = _CELL.match(name)
    if found is None:
        return None
    row, column = int(found[2]), column_number(found[1])
    return (row, column) if 0 < row <= MAX_ROW and column else None


def read_area(name: str) -> Area | None:
    """The area of `A1:B2` or of a single cell, whichever corners are named."""
    first, _, last = name.partition(":")
    start = read_cell(first)
    end = read_cell(last) if last else start
    if start is None or end is None:
        return None
    return min(start[0], end[0]), min(start[1], end[1]), max(start[0], end[0]), max(start[1], end[1])


def join_runs(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs in order, those that touch made one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(runs):
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def show_runs(runs: list[tuple[int, int]], first: int, last: int, *, columns: bool = False) -> list[str]:
    """What of joined runs lies between two rows or columns, as `3:5` or `C:E`; at most `_SHOWN_RUNS` of them, then an ellipsis."""
    name = column_name if columns else str
    at, stop = bisect_left(runs, first, key=lambda run: run[1]), bisect_right(runs, last, key=lambda run: run[0])
    shown = [f"{name(max(start, first))}:{name(min(end, last))}" for start, end in runs[at : min(stop, at + _SHOWN_RUNS)]]
    return [*shown, "…"] if stop - at > _SHOWN_RUNS else shown
