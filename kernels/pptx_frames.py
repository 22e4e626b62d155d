"""Tables and SmartArt of a slide → rows of cells, and the texts of a diagram in the order of its tree.

The invariant: a merged cell's words stand once; every text of a diagram comes out, even where its tree is broken.
"""

from __future__ import annotations

from typing import Any

from raydex.ir.document import Link
from raydex.kernels.pptx_place import A, is_true
from raydex.kernels.pptx_text import Href, plain_text, read_paragraphs
from raydex.kernels.tables import Rows, make_cell

DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_NODES = frozenset(("node", "asst", "doc"))


def read_table(table: Any, href: Href, slide: int) -> tuple[Rows, list[Link]]:
    """Rows of an `a:tbl`; its first row and column are headers where the table's style says so."""
    style = table.find(A + "tblPr")
    first_row = style is not None and is_true(style.get("firstRow"))
    first_column = style is not None and is_true(style.get("firstCol"))
    rows: Rows = []
    links: list[Link] = []
    for row in table.iterchildren(A + "tr"):
        cells = []
        for column, cell in enumerate(row.iterchildren(A + "tc")):
            if is_true(cell.get("hMerge")) or is_true(cell.get("vMerge")):
                continue
            body = cell.find(A + "txBody")
            paragraphs = read_paragraphs(body, (), href, slide) if body is not None else []
            links += [link for paragraph in paragraphs for link in paragraph.links]
            header = (first_row and not rows) or (first_column and column == 0)
            text = "\n".join(paragraph.text for paragraph in paragraphs)
            cells.append(make_cell(text, row_span=_span(cell, "rowSpan"), col_span=_span(cell, "gridSpan"), header=header))
        rows.append(cells)
    return rows, links


def read_diagram(root: Any) -> list[tuple[int, str]]:
    """(level, text) of a diagram's nodes, from the root of its tree down, in the order of siblings."""
    texts: dict[str, str] = {}
    roots: list[str] = []
    for point in root.iterfind(f"{DGM}ptLst/{DGM}pt"):
        kind, name = point.get("type") or "node", point.get("modelId") or ""
        if kind in _NODES:
            body = point.find(DGM + "t")
            texts[name] = plain_text(body) if body is not None else ""
            roots += [name] if kind == "doc" else []
    below: dict[str, list[tuple[int, str]]] = {}
    for line in root.iterfind(f"{DGM}cxnLst/{DGM}cxn"):
        if (line.get("type") or "parOf") == "parOf":
            order = line.get("srcOrd") or "0"
            position = int(order) if order.isascii() and order.isdigit() and len(order) < 10 else 0
            below.setdefault(line.get("srcId") or "", []).append((position, line.get("destId") or ""))
    out: list[tuple[int, str]] = []
    seen: set[str] = set()
    for start in [*roots, *texts]:
        waiting = [(-1 if start in roots else 0, start)]
        while waiting:
            level, name = waiting.pop()
            if name in seen or name not in texts:
                continue
            seen.add(name)
            if texts[name]:
                out.append((max(level, 0), texts[name]))
            deeper = level + 1 if texts[name] or level < 0 else level
            waiting += [(deeper, child) for _, child in sorted(below.get(name, []), key=lambda one: one[0], reverse=True)]
    return out


def _span(cell: Any, name: str) -> int:
    value = cell.get(name) or "1"
    return max(1, int(value)) if value.isascii() and value.isdigit() and len(value) < 7 else 1
