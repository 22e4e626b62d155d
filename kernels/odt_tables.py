"""A table of an OpenDocument text → rows of cells with spans. Covered cells belong to the one that spans them.

The invariant: repeated rows and cells are written out only as far as they hold text, and never beyond `limits.blocks` cells in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from raydex.ir.errors import LimitError
from raydex.kernels.docx_parts import to_int
from raydex.kernels.request import ParseRequest
from raydex.kernels.tables import MAX_COL_SPAN, Cell, Rows, make_cell

TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_HEADER = TABLE + "table-header-rows"
_GROUPS = frozenset((_HEADER, TABLE + "table-rows", TABLE + "table-row-group"))


def read_table(table: Any, read: Callable[[Any], str], request: ParseRequest) -> Rows:
    """`read` gives the text of a cell. Raises LimitError."""
    rows: Rows = []
    left = request.limits.blocks
    for element, header in _rows(table, False):
        row: list[Cell] = []
        for cell in element:
            if cell.tag != TABLE + "table-cell":
                continue
            text = read(cell)
            across, down = (_count(cell, f"number-{name}-spanned") for name in ("columns", "rows"))
            times = _repeats(cell, "columns", bool(text), left)
            row += [make_cell(text, row_span=down, col_span=across, header=header) for _ in range(times)]
            _check(left - len(row), request)
        times = _repeats(element, "rows", any(cell["text"] for cell in row), left)
        left -= len(row) * times
        _check(left, request)
        rows += [row if not at else [dict(cell) for cell in row] for at in range(times)]
    return rows


def _check(left: int, request: ParseRequest) -> None:
    if left < 0:
        cells = request.limits.blocks - left
        message = request.limits.say(f"a table holds {cells} cells or more", "blocks")
        raise LimitError(message, reject_class="too_many_blocks", place=request.path)


def _rows(parent: Any, header: bool) -> Iterator[tuple[Any, bool]]:
    for element in parent:
        if element.tag == TABLE + "table-row":
            yield element, header
        elif element.tag in _GROUPS:
            yield from _rows(element, header or element.tag == _HEADER)


def _count(element: Any, name: str) -> int:
    return min(max(1, to_int(element.get(TABLE + name), 1)), MAX_COL_SPAN)


def _repeats(element: Any, name: str, told: bool, most: int) -> int:
    """An empty cell is repeated for its place in the row, no further than a table is wide; an empty row stands once."""
    count = max(1, to_int(element.get(f"{TABLE}number-{name}-repeated"), 1))
    return min(count, max(most, 0) + 1) if told else (min(count, MAX_COL_SPAN) if name == "columns" else 1)
