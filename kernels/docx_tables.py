"""A table of a Word document → rows of cells with spans, as it reads with all changes accepted.

Deleted rows and cells are left out; a cell that goes on below or beside adds to the span of the one that it belongs to. The invariant:
the text of a merged cell stands once, and time grows with the cells that are there, not with the columns that they claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from raydex.kernels.docx_parts import VAL, W, is_on, to_int
from raydex.kernels.docx_styles import Styles
from raydex.kernels.tables import MAX_COL_SPAN, Cell, Rows, make_cell

_ROW, _CELL = W + "tr", W + "tc"
_WRAPPERS = frozenset((W + "sdt", W + "sdtContent", W + "customXml", W + "ins", W + "moveTo"))
_FIRST_ROW = 0x20


@dataclass(frozen=True, slots=True)
class Row:
    cells: list[Any]
    header: bool
    before: int  # columns that the row leaves free at its start
    element: Any


def read_rows(table: Any, losses: Counter[str]) -> list[Row]:
    """Rows that are there when all changes are accepted."""
    rows = []
    for element in _unwrap(table, _ROW):
        properties = element.find(W + "trPr")
        header, before = False, 0
        if properties is not None:
            if properties.find(W + "del") is not None:
                continue
            if is_on(properties.find(W + "hidden")):
                losses["hidden_text"] += 1
                continue
            header = is_on(properties.find(W + "tblHeader"))
            before = _span(properties.find(W + "gridBefore"), 0)
        cells = [cell for cell in _unwrap(element, _CELL) if cell.find(f"{W}tcPr/{W}cellDel") is None]
        if cells:
            rows.append(Row(cells, header, before, element))
    return rows


def make_rows(table: Any, rows: list[Row], styles: Styles, losses: Counter[str], read: Callable[[Any], str]) -> Rows:
    """`read` gives the text of a cell; it is called once a cell, in the order of reading."""
    first_is_header = len(rows) > 1 and _sets_first_row_apart(table, rows, styles)
    out: Rows = []
    hanging: dict[int, Cell] = {}  # column → the cell that may go on below
    for at, row in enumerate(rows):
        header = row.header or (at == 0 and first_is_header)
        made: list[Cell] = []
        beside: Cell | None = None  # the cell that may go on to the right
        below: dict[int, Cell] = {}
        if row.before:
            made.append(make_cell("", col_span=row.before, header=header))
        column = row.before
        for element in row.cells:
            width, goes_down, goes_right = _merges(element.find(W + "tcPr"))
            text = read(element)
            above = hanging.get(column) if goes_down == "continue" else None
            if goes_right == "continue" and beside is not None:
                beside["col_span"] += width
                losses["hidden_text"] += bool(text)
            elif above is not None:
                above["row_span"] += 1
                below[column] = above
                losses["hidden_text"] += bool(text)
                beside = None
            else:
                beside = make_cell(text, col_span=width, header=header)
                made.append(beside)
                if goes_down:
                    below[column] = beside
            column += width
        hanging = below
        out.append(made)
    return out


def _unwrap(parent: Any, wanted: str) -> Iterator[Any]:
    """Children of a kind, through content controls and marks around them."""
    waiting = [iter(parent)]
    while waiting:
        element = next(waiting[-1], None)
        if element is None:
            waiting.pop()
        elif element.tag == wanted:
            yield element
        elif element.tag in _WRAPPERS:
            waiting.append(iter(element))


def _merges(properties: Any) -> tuple[int, str, str]:
    """Columns; and "restart", "continue" or "" for going down and to the right."""
    width, down, right = 1, "", ""
    for item in properties if properties is not None else ():
        tag = item.tag
        if tag == W + "gridSpan":
            width = _span(item, 1)
        elif tag == W + "vMerge":
            down = item.get(VAL, "continue")
        elif tag == W + "hMerge":
            right = item.get(VAL, "continue")
        elif tag == W + "cellMerge":
            down = {"cont": "continue", "rest": "restart"}.get(item.get(W + "vMerge", ""), down)
    return width, down, right


def _span(element: Any, least: int) -> int:
    return least if element is None else min(max(to_int(element.get(VAL), least), least), MAX_COL_SPAN)


def _sets_first_row_apart(table: Any, rows: list[Row], styles: Styles) -> bool:
    """By the table's style, where the table asks for it; else by bold type, where the second row has none."""
    properties = table.find(W + "tblPr")
    look = properties.find(W + "tblLook") if properties is not None else None
    named = properties.find(W + "tblStyle") if properties is not None else None
    if look is not None and named is not None and styles.find(named.get(VAL)).header_row:
        asked = look.get(W + "firstRow")
        if asked is None:
            asked = "1" if _hexadecimal(look.get(VAL, "0")) & _FIRST_ROW else "0"
        if asked in ("1", "true", "on"):
            return True
    return _is_bold(rows[0].element) and not _is_bold(rows[1].element)


def _hexadecimal(text: str) -> int:
    try:
        return int(text[:8], 16)
    except ValueError:
        return 0


def _is_bold(row: Any) -> bool:
    """Every run with text is set bold."""
    found = False
    for text in row.iter(W + "t"):
        if (text.text or "").strip():
            if not is_on(text.getparent().find(f"{W}rPr/{W}b")):
                return False
            found = True
    return found
