"""Table elements for the walker over HTML: rows and cells of data tables, parts of layout tables, tables inside cells.

The invariant: a table inside a cell, or one that only places boxes, makes no rows of its own: its text stays in reading order where it
stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from raydex.kernels.drafts import Draft
from raydex.kernels.html_rules import CELLS, SHOWN
from raydex.kernels.html_state import CAPTION, CELL, CODE, NUMBER, OpenTable, Scope
from raydex.kernels.tables import CELL_MARK, MAX_COL_SPAN, make_cell

if TYPE_CHECKING:
    from raydex.kernels.html_walk import HtmlWalk

_LAYOUT = re.compile(r"<(?:(/?)(table)|(h[123])|(t[dh]))(?=[\s/>])", re.IGNORECASE)
_MAX_LAYOUT_DEPTH = 8


def open_table_part(walk: HtmlWalk, name: str, values: dict[str, str], start: int) -> None:
    if name == "table":
        open_table(walk, values, start)
        return
    table = walk.tables[-1] if walk.tables else None
    if table is None:
        if walk.visible == SHOWN:
            walk.boundary()
        return
    if name == "colgroup":
        return
    level = {"caption": table.caption, "tr": table.row, "td": table.cell, "th": table.cell}.get(name, table.section)
    open_part = max(table.cell, table.caption) if max(table.cell, table.caption) >= 0 else -1
    for index in (open_part, level):
        if 0 <= index < len(walk.stack):
            walk.pop_to(index, start, start)
    if name not in ("td", "th", "caption") and table.row >= 0:
        walk.pop_to(table.row, start, start)
    elif level < 0 and len(walk.stack) - 1 > max(table.index, table.section, table.row):
        walk.pop_to(max(table.index, table.section, table.row) + 1, start, start)
    if name in CELLS:
        open_cell(walk, table, name, values, start)
        return
    if walk.visible == SHOWN:
        walk.boundary()
    entry = walk.push(name, values, start)
    index = len(walk.stack) - 1
    if name == "tr":
        table.row = index
        table.cells = 0
        if table.draft is not None and table.draft.rows is not None and entry.visible == SHOWN:
            table.draft.rows.append([])
    elif name == "caption":
        table.caption = index
        walk.scopes.append(Scope())
        if table.draft is not None and entry.visible == SHOWN:
            walk.open_sink(entry, CAPTION, table.draft, listed=False)
    else:
        table.section = index
        table.header = name == "thead"


def open_table(walk: HtmlWalk, values: dict[str, str], start: int) -> None:
    if walk.tables and walk.tables[-1].cell < 0 and walk.tables[-1].caption < 0:
        walk.pop_to(walk.tables[-1].index, start, start)
    scope = walk.scopes[-1]
    if scope.paragraph >= 0:
        walk.pop_to(scope.paragraph, start, start)
    if walk.visible == SHOWN:
        walk.boundary()
    entry = walk.push("table", values, start)
    layout = draft = None
    if entry.visible == SHOWN and walk.sink is None:
        layout = walk.layouts < _MAX_LAYOUT_DEPTH and _is_layout(walk, start, values)
        if layout:
            walk.layouts += 1
        else:
            draft = Draft("table", start, metadata={"tag": "table"}, rows=[])
            entry.draft = draft
            walk.item = None
            walk.add_draft(draft)
    entry.role = OpenTable(len(walk.stack) - 1, draft, bool(layout))
    walk.tables.append(entry.role)
    walk.scopes.append(Scope())


def open_cell(walk: HtmlWalk, table: OpenTable, name: str, values: dict[str, str], start: int) -> None:
    draft = table.draft
    nested = walk.sink is not None
    if nested and walk.visible == SHOWN and walk.sink is not None:
        if walk.sink.kind != CODE:
            walk.sink.pieces.append(CELL_MARK if table.cells else " ")
        elif table.cells:
            walk.sink.pieces.append(" ")
    elif walk.visible == SHOWN:
        walk.boundary()
    table.cells += 1
    entry = walk.push(name, values, start)
    table.cell = len(walk.stack) - 1
    walk.scopes.append(Scope())
    if draft is not None and draft.rows is not None and entry.visible == SHOWN:
        if not draft.rows or table.row < 0:
            draft.rows.append([])
        cell = make_cell(
            "",
            row_span=_span(values.get("rowspan", "")),
            col_span=_span(values.get("colspan", "")),
            header=name == "th" or table.header,
        )
        draft.rows[-1].append(cell)
        walk.open_sink(entry, CELL, draft, listed=False)
    elif entry.visible == SHOWN and walk.sink is None:
        walk.fresh = entry


def close_table_part(walk: HtmlWalk, name: str, start: int, end: int) -> None:
    table = walk.tables[-1] if walk.tables else None
    if table is None:
        if walk.visible == SHOWN:
            walk.boundary()
        return
    index = -1
    if name == "table":
        index = table.index
    elif name == "tr":
        index = table.row
    elif name == "caption":
        index = table.caption
    elif name in CELLS:
        index = table.cell
    elif name != "colgroup":
        index = table.section
    if index >= 0:
        walk.pop_to(index, start, end)


def _span(value: str) -> int:
    found = NUMBER.match(value)
    if found is None:
        return MAX_COL_SPAN if value.strip()[:9].isdigit() else 1
    return max(0, int(found.group(1)))


def _is_layout(walk: HtmlWalk, start: int, values: dict[str, str]) -> bool:
    """A table that only places boxes: it says so, holds the page's headings, or has a single cell."""
    if values.get("role", "").lower() in ("presentation", "none") or "highlighttable" in values.get("class", ""):
        return True
    if walk.layout_tables is None:
        walk.layout_tables = _find_layouts(walk.source, start)
    return start in walk.layout_tables


def _find_layouts(source: str, start: int) -> frozenset[int]:
    """Where the tables begin, from `start` on, that hold a heading of the page or, closed, a single cell of their own: in one pass,
    since a table that never closes reaches to the end of the page."""
    found: set[int] = set()
    opened: list[list[int]] = []  # place, cells, whether a heading stands inside
    for match in _LAYOUT.finditer(source, start):
        closes, table, heading, _ = match.groups()
        if table and not closes:
            opened.append([match.start(), 0, 0])
        elif not opened:
            continue
        elif table:
            _close_layout(opened, found, closed=True)
        elif heading:
            opened[-1][2] = 1
        else:
            opened[-1][1] += 1
    while opened:
        _close_layout(opened, found, closed=False)
    return frozenset(found)


def _close_layout(opened: list[list[int]], found: set[int], *, closed: bool) -> None:
    place, cells, headed = opened.pop()
    if headed or (closed and cells == 1):
        found.add(place)
    if headed and opened:
        opened[-1][2] = 1
