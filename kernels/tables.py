"""Rows of cells → the text of a table, and spans that stay inside it: the one structure that HTML and Markdown tables share.

A cell is {text, row_span, col_span, header}; items inside a cell (list entries, lines, rows of an inner table) are lines of its text.
The invariant: `table_text` holds each cell's words once, in reading order, one line a row that says anything; what stands under a header in
the table stands under it in the line, since the places that a cell spans are there, empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

Cell = dict[str, Any]
Rows = list[list[Cell]]

MAX_COL_SPAN = 1000  # HTML Standard, "algorithms for processing rows"
_WIDE = 100  # a wider cell is believed only as far as the other rows reach
_PLACES = 100_000
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
    """(index of the row, its line) of each row with text of its own. There are at most `_PLACES` empty places for spans; behind them,
    cells stand side by side as they come."""
    hanging: dict[int, int] = {}  # column → the row in which it is free again
    room = _PLACES
    for at, row in enumerate(rows):
        texts = [cell["text"].replace("\n", ITEM_MARK) for cell in row]
        said = any(texts)
        if room > 0 and (hanging or any(cell["col_span"] > 1 or cell["row_span"] > 1 for cell in row)):
            texts, places = _spread(row, texts, at, hanging)
            room -= places
        if said:
            yield at, CELL_MARK.join(texts)


def _spread(row: list[Cell], own: list[str], at: int, hanging: dict[int, int]) -> tuple[list[str], int]:
    """The texts of a row at their columns, none behind its last cell, and the number of empty places."""
    texts: list[str] = []
    for cell, text in zip(row, own, strict=True):
        while hanging.get(len(texts), 0) > at:
            texts.append("")
        column, width = len(texts), cell["col_span"]
        if cell["row_span"] > 1:
            until = at + cell["row_span"]
            for place in range(column, column + width):
                hanging[place] = max(until, hanging.get(place, 0))
        texts += [text, *[""] * (width - 1)]
    if row:
        del texts[len(texts) - row[-1]["col_span"] + 1 :]
    return texts, len(texts) - len(own)
