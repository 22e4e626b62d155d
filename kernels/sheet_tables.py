"""One sheet → drafts: its heading, tables, lines of text and comments, each with sheet and range; the step that XLSX and ODS share.

A tall table is several blocks of at most `BLOCK_ROWS` rows; those after the first tell the header rows in `header`. A table that is
mostly empty writes a run of empty cells as one cell over their columns. The invariant: every cell's text stands in one block, whose
locator's range holds the cell (a cell merged over two blocks is said in both), and the work is linear in the cells.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from raydex.ir.document import Link
from raydex.ir.parsed import ParsedFile
from raydex.kernels.drafts import Draft, check_count
from raydex.kernels.request import ParseRequest
from raydex.kernels.sheet import Sheet, SheetCell, SheetRow, area_name, cell_name, join_runs, show_runs
from raydex.kernels.sheet_headers import count_headers
from raydex.kernels.sheet_regions import Region, find_regions
from raydex.kernels.tables import Cell, Rows, make_cell, placed_rows

BLOCK_ROWS = 200
_BLOCK_CELLS = 20_000
_SPARSE = 8  # a table with more places than this for each cell is written without its empty places
_SMALL = 5_000  # places that are never too many
_AGAIN = 100_000  # characters that a table may repeat
_MAX_TITLE = 200
_BULLET = re.compile(r"[-–—*•●▪◦·‣][ \t\u00a0]+(?=\S)")
_NUMBER = re.compile(r"(\d{1,4})[.)][ \t\u00a0]+\S")


def draft_sheet(sheet: Sheet, drafts: list[Draft], request: ParseRequest) -> None:
    """Appends the sheet's drafts. Raises LimitError (too_many_blocks)."""
    _SheetDrafts(sheet, drafts, request).write()


def tell(parsed: ParsedFile, warnings: dict[str, str]) -> None:
    """Warnings by name, each with its message as an event."""
    for name, message in warnings.items():
        if parsed.document is not None:
            parsed.document.warnings.append(name)
        parsed.add_event("parse", "warning", name, message)


class _SheetDrafts:
    def __init__(self, sheet: Sheet, drafts: list[Draft], request: ParseRequest) -> None:
        self.sheet = sheet
        self.drafts = drafts
        self.request = request
        self.hidden_rows = join_runs(sheet.hidden_rows)
        self.hidden_columns = join_runs(sheet.hidden_columns)
        self.shared = {} if sheet.state == "visible" else {"sheet_state": sheet.state}

    def write(self) -> None:
        sheet = self.sheet
        used = sheet.used_area()
        metadata: dict[str, Any] = {"level": 1, "sheet_state": sheet.state}
        if used is not None:
            metadata |= self._hidden(used)
        self.add(Draft("heading", 0, 0, sheet.name, metadata, place=self._place(area_name(used) if used is not None else "")))
        regions = find_regions(sheet)
        for at, region in enumerate(regions):
            if region.line:
                self.add_line(region, regions[at + 1] if at + 1 < len(regions) else None)
            else:
                self.add_table(region)
        for note in sheet.notes:
            told = {"note": "comment", "author": note.author, "time": note.time, "reply_to": note.parent}
            place = self._place(cell_name(note.row, note.column)) | ({"comment": note.id} if note.id else {})
            self.add(Draft("note", 0, 0, note.text, {name: value for name, value in told.items() if value}, place=place))

    def add(self, draft: Draft) -> None:
        draft.metadata |= self.shared
        self.drafts.append(draft)
        check_count(self.drafts, self.request)

    def _place(self, cells: str) -> dict[str, Any]:
        return {"sheet": self.sheet.name, "cells": cells} if cells else {"sheet": self.sheet.name}

    def _hidden(self, area: tuple[int, int, int, int]) -> dict[str, Any]:
        """Rows and columns inside an area that the sheet does not show."""
        rows = show_runs(self.hidden_rows, area[0], area[2])
        columns = show_runs(self.hidden_columns, area[1], area[3], columns=True)
        return ({"hidden_rows": rows} if rows else {}) | ({"hidden_columns": columns} if columns else {})

    def add_line(self, region: Region, following: Region | None) -> None:
        """A text alone in its row: a list item by its mark, a heading by its look and by what follows, else a paragraph."""
        row = region.rows[0]
        cell = row.cells[0]
        text = cell.text.strip()
        metadata: dict[str, Any] = self._hidden(region.area) | _formula(cell)
        kind = "paragraph"
        bullet, number = _BULLET.match(text), _NUMBER.match(text)
        if self._is_heading(row, following):
            kind, text = "heading", " ".join(text.split())
            metadata["level"] = 2
        elif bullet:
            kind, text = "list_item", text[bullet.end() :]
            metadata |= {"level": 0, "ordered": False}
        elif number:
            kind = "list_item"
            metadata |= {"level": 0, "ordered": True, "number": int(number[1])}
        links = self._links(row.number, cell)
        self.add(Draft(kind, 0, 0, text, metadata, links, place=self._place(area_name(region.area))))

    def _is_heading(self, row: SheetRow, following: Region | None) -> bool:
        cell = row.cells[0]
        if following is None or len(cell.text) > _MAX_TITLE or cell.text.count("\n") > 1:
            return False
        if cell.style.strong or cell.style.large:
            return not following.line or following.rows[0].cells[0].style != cell.style
        return not following.line and self.sheet.merges.get((row.number, cell.column), (0, 0))[1] > cell.column

    def _links(self, row: int, cell: SheetCell) -> list[Link]:
        href = self.sheet.links.get((row, cell.column))
        return [Link(href, cell.text)] if href else []

    def add_table(self, region: Region) -> None:
        headers = count_headers(self.sheet, region)
        top, left, bottom, right = region.area
        width = right - left + 1
        places = width * len(region.rows)
        count = sum(len(row.cells) for row in region.rows)
        grid = TableGrid(self.sheet, region, headers, sparse=places > _SMALL and places > _SPARSE * count)
        header: list[list[str]] = []
        for start, stop in _cut_blocks(region.rows, 0 if grid.sparse else width):
            rows = grid.write(start, stop)
            area = (
                region.rows[start].number if start else top,
                left,
                region.rows[stop - 1].number if stop < len(region.rows) else bottom,
                right,
            )
            metadata: dict[str, Any] = self._hidden(area)
            numbers = [row.number for row in region.rows[start:stop]]
            if numbers[-1] - numbers[0] + 1 != len(numbers):
                metadata["row_numbers"] = numbers
            if region.named is not None:
                metadata["table_name"] = region.named.name
            if start:
                metadata |= {"continued": True, "header": header}
            else:
                header = [row.texts for row in placed_rows(rows[:headers])]
            links = grid.links(start, stop) if self.sheet.links else []
            self.add(Draft("table", 0, 0, "", metadata, links, rows=rows, place=self._place(area_name(area))))


def _cut_blocks(rows: list[SheetRow], width: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows of at most `BLOCK_ROWS` rows and, above one row, `_BLOCK_CELLS` cells. Without a width, cells that are there."""
    start = cells = 0
    for at, row in enumerate(rows):
        size = width or 2 * len(row.cells)
        if at - start == BLOCK_ROWS or (at > start and cells + size > _BLOCK_CELLS):
            yield start, at
            start, cells = at, 0
        cells += size
    yield start, len(rows)


def _formula(cell: SheetCell) -> dict[str, Any]:
    """What a cell says of its formula; a text that is the formula itself, for want of a stored result, is marked."""
    if not cell.formula:
        return {}
    return {"formula": cell.formula} if cell.computed else {"formula": cell.formula, "computed": False}


class TableGrid:
    """The rows of one region as cells with spans."""

    def __init__(self, sheet: Sheet, region: Region, headers: int, *, sparse: bool) -> None:
        self.sheet = sheet
        self.rows = region.rows
        self.left, self.right = region.area[1], region.area[3]
        self.headers = headers
        self.sparse = sparse
        self.numbers = [row.number for row in region.rows] if sheet.merges else []
        self.again = _AGAIN
        # column → last row, last column and text of a cell that is merged with rows below
        self.hanging: dict[int, tuple[int, int, SheetCell]] = {}

    def write(self, start: int, stop: int) -> Rows:
        """Rows of a block. A merged cell that hangs into the block from above stands in its first row again."""
        plain, empty = self._plain, (make_cell(""), make_cell("", header=True))
        out: Rows = []
        for at in range(start, stop):
            row = self.rows[at]
            header = at < self.headers
            if self.sparse:
                out.append(self._sparse_row(row, header=header))
            elif self.sheet.merges:
                out.append(self._merged_row(at, stop, header=header, first=at == start))
            else:
                out.append(plain(row, empty[header], header=header))
        return out

    def _plain(self, row: SheetRow, empty: Cell, *, header: bool) -> list[Cell]:
        cells = row.cells
        if len(cells) == self.right - self.left + 1:
            return [_make(cell, header=header) for cell in cells]
        line = [empty] * (self.right - self.left + 1)
        for cell in cells:
            line[cell.column - self.left] = _make(cell, header=header)
        return line

    def _sparse_row(self, row: SheetRow, *, header: bool) -> list[Cell]:
        line: list[Cell] = []
        column = self.left
        for cell in row.cells:
            if cell.column > column:
                line.append(make_cell("", col_span=cell.column - column, header=header))
            line.append(_make(cell, header=header))
            column = cell.column + 1
        return line

    def _merged_row(self, at: int, stop: int, *, header: bool, first: bool) -> list[Cell]:
        row = self.rows[at]
        own = {cell.column: cell for cell in row.cells}
        line: list[Cell] = []
        column = self.left
        while column <= self.right:
            hangs = self.hanging.get(column)
            if hangs is not None and hangs[0] < row.number:
                del self.hanging[column]
                hangs = None
            cell = own.get(column)
            if hangs is not None and own and any(other in own for other in range(column, hangs[1] + 1)):
                del self.hanging[column]
                hangs = None
            if hangs is not None:
                if first:
                    line.append(self._spanning(self._again(hangs), at, stop, column, header=header))
                column = hangs[1] + 1
                continue
            if cell is None:
                line.append(make_cell("", header=header))
                column += 1
                continue
            merge = self.sheet.merges.get((row.number, column))
            if merge is None:
                line.append(_make(cell, header=header))
                column += 1
                continue
            end = self._free_end(column, min(merge[1], self.right), own, row.number)
            spans = (merge[0], end, cell)
            line.append(self._spanning(spans, at, stop, column, header=header))
            if merge[0] > row.number:
                self.hanging[column] = spans
            column = end + 1
        return line

    def _again(self, spans: tuple[int, int, SheetCell]) -> tuple[int, int, SheetCell]:
        """A cell that hangs in from the block before, with its text as long as `_AGAIN` allows."""
        cell = spans[2]
        self.again -= len(cell.text)
        return (*spans[:2], cell if self.again >= 0 else cell._replace(text=""))

    def _free_end(self, column: int, end: int, own: dict[int, SheetCell], number: int) -> int:
        """The last column that a merged cell may cover: not one that holds a cell or is covered from above."""
        for other in range(column + 1, end + 1):
            hangs = self.hanging.get(other)
            if other in own or (hangs is not None and hangs[0] >= number):
                return other - 1
        return end

    def _spanning(self, spans: tuple[int, int, SheetCell], at: int, stop: int, column: int, *, header: bool) -> Cell:
        last_row, last_column, cell = spans
        below = bisect_right(self.numbers, last_row, at, stop) - at
        made = _make(cell, header=header)
        made["row_span"], made["col_span"] = max(1, below), last_column - column + 1
        return made

    def links(self, start: int, stop: int) -> list[Link]:
        links = self.sheet.links
        found: list[Link] = []
        for row in self.rows[start:stop]:
            for cell in row.cells:
                href = links.get((row.number, cell.column))
                if href:
                    found.append(Link(href, cell.text))
        return found


def _make(cell: SheetCell, *, header: bool) -> Cell:
    made: Cell = {"text": cell.text, "row_span": 1, "col_span": 1, "header": header}
    if cell.formula:
        made |= _formula(cell)
    return made
