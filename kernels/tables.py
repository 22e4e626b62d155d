"""Rows of cells → the text of a table, and spans that stay inside it: the one structure that HTML and Markdown tables share.

A cell is {text, row_span, col_span, header}; items inside a cell (list entries, lines, rows of an inner table) are lines of its text.
The invariant: `table_text` holds each cell's words once, in reading order, one line a row that says anything; what stands under a header in
the table stands under it in the line, since the places that a cell spans are there, empty. A value that spans rows is not said in each of
them: it would be found once for each copy. What is cut off from its row is told it by `values_above`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

Cell = dict[str, Any]
Rows = list[list[Cell]]

MAX_COL_SPAN = 1000  # HTML Standard, "algorithms for processing rows"
_WIDE = 100  # a wider cell is believed only as far as the other rows reach
_PLACES = 100_000
_VALUE = 120  # characters of a value that is a category of rows; a longer one is a text of its own
CELL_MARK = " | "
ITEM_MARK = "; "


def make_cell(text: str, *, row_span: int = 1, col_span: int = 1, header: bool = False) -> Cell:
    return {"text": text, "row_span": row_span, "col_span": col_span, "header": header}


def clamp_spans(rows: Rows) -> None:
    """No cell reaches below the last row; one wider than `_WIDE` columns is as wide as the rest of the table. 0 rows reach to the last."""
    left = len(rows)
    wide: list[Cell] = []
    for row in rows:
        for cell in row:
            if cell["row_span"] != 1:
                cell["row_span"] = left if cell["row_span"] <= 0 else min(cell["row_span"], left)
            if cell["col_span"] < 1:
                cell["col_span"] = 1
            elif cell["col_span"] > _WIDE:
                wide.append(cell)
        left -= 1
    if wide:
        width = max(1, *(sum(cell["col_span"] if cell["col_span"] <= _WIDE else 1 for cell in row) for row in rows))
        for cell in wide:
            cell["col_span"] = min(cell["col_span"], width, MAX_COL_SPAN)


def count_header_rows(rows: Rows) -> int:
    """Leading rows that hold only header cells. One below the first counts only if it fills the width: a lone row header does not."""
    count = 0
    width = 0
    hanging = 0  # columns filled by cells of the rows above
    leaving: Counter[int] = Counter()  # row → columns that hang no longer
    for at, row in enumerate(rows):
        hanging -= leaving.pop(at, 0)
        filled = hanging + sum(cell["col_span"] for cell in row)
        if not row or not all(cell["header"] for cell in row) or filled < width:
            break
        width = width or filled
        count += 1
        for cell in row:
            if cell["row_span"] > 1:
                hanging += cell["col_span"]
                leaving[at + cell["row_span"]] += cell["col_span"]
    return count


def table_text(rows: Rows, caption: str = "") -> str:
    """Caption, then a line a row: cells apart by `CELL_MARK`, items inside a cell by `ITEM_MARK`."""
    return "\n".join([*([caption] if caption else []), *(line for _, line in table_lines(rows))])


def table_lines(rows: Rows) -> Iterator[tuple[int, str]]:
    """(index of the row, its line) of each row with text of its own."""
    for row in placed_rows(rows):
        yield row.at, CELL_MARK.join(row.texts)


def values_above(rows: Rows, header_rows: int) -> list[str]:
    """For each line of `table_lines`: the short values that rows above it, header rows apart, span into it, as a line; mostly empty."""
    return [_value_line([(value.column, value.text) for value in row.above if value.row >= header_rows]) for row in placed_rows(rows)]


def _value_line(values: list[tuple[int, str]]) -> str:
    texts = [""] * (max((column for column, _ in values), default=-1) + 1)
    for column, text in values:
        texts[column] = text
    return CELL_MARK.join(texts)


class SpanningValue(NamedTuple):
    """A value at its column, and the row that it stands in."""

    column: int
    row: int
    text: str


_NONE: Sequence[SpanningValue] = ()


class PlacedRow(NamedTuple):
    """A row's index, its texts at their columns, and the values that cells above it span into it."""

    at: int
    texts: list[str]
    above: Sequence[SpanningValue]


def placed_rows(rows: Rows) -> Iterator[PlacedRow]:
    """Each row with text of its own. There are at most `_PLACES` empty places for spans; behind them, cells stand side by side as they
    come."""
    spans = _Spans()
    for at, row in enumerate(rows):
        texts = [cell["text"].replace("\n", ITEM_MARK) for cell in row]
        said = any(texts)
        above = _NONE
        if spans.room > 0 and (spans.edge or any(cell["col_span"] > 1 or cell["row_span"] > 1 for cell in row)):
            texts, above = spans.place(row, texts, at)
        if said:
            yield PlacedRow(at, texts, above)


class _Spans:
    """The places that cells cover in the rows below them, while the rows are gone through."""

    def __init__(self) -> None:
        self.until: dict[int, int] = {}  # column → the row in which it is free again
        self.values: dict[int, SpanningValue] = {}
        self.edge = 0  # no column from here on is covered
        self.room = _PLACES

    def place(self, row: list[Cell], own: list[str], at: int) -> tuple[list[str], Sequence[SpanningValue]]:
        """The texts of a row at their columns, none behind its last cell, and what is above them."""
        texts: list[str] = []
        covered: list[int] = []
        for cell, text in zip(row, own, strict=True):
            while self.until.get(len(texts), 0) > at:
                covered.append(len(texts))
                texts.append("")
            if cell["row_span"] > 1:
                self._hang(cell, text, len(texts), at)
            texts += [text, *[""] * (cell["col_span"] - 1)]
        while self.edge > len(texts) and self.until.get(self.edge - 1, 0) <= at:
            self.edge -= 1
        behind = range(len(texts), self.edge)
        covered += [column for column in behind if self.until.get(column, 0) > at]
        if row:
            del texts[len(texts) - row[-1]["col_span"] + 1 :]
        self.room -= len(texts) - len(own) + len(behind)
        return texts, [self.values[column] for column in covered if column in self.values]

    def _hang(self, cell: Cell, text: str, column: int, at: int) -> None:
        end = column + cell["col_span"]
        for place in range(column, end):
            self.until[place] = max(at + cell["row_span"], self.until.get(place, 0))
            self.values.pop(place, None)
        if 0 < len(text) <= _VALUE:
            self.values[column] = SpanningValue(column, at, text)
        self.edge = max(self.edge, end)
