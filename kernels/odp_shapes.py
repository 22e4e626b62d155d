"""One page of an OpenDocument presentation → drafts in reading order: texts, tables, charts and pictures with slide, shape and box.

Shapes are numbered in the order of drawing, groups among them: the format gives them no numbers of its own. The invariant: every text of
the page stands in one draft; footers, dates and page numbers are furniture and only counted; an object that is not read is named.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from raydex.ir.document import Link
from raydex.kernels.drafts import Draft, check_count
from raydex.kernels.image_size import describe_image
from raydex.kernels.odp_text import XLINK, ListStyles, TextLine, TextReader
from raydex.kernels.package import part_name
from raydex.kernels.pptx_place import NOWHERE, Box, Item, arrange, in_points, read_length, settle
from raydex.kernels.request import ParseRequest
from raydex.kernels.tables import Rows, make_cell

DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
PRESENTATION = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
CHART = "{urn:oasis:names:tc:opendocument:xmlns:chart:1.0}"
_FURNITURE = frozenset(("header", "footer", "date-time", "page-number"))
_THROUGH = frozenset((DRAW + "a", DRAW + "layer-set"))
_GROUPS = 8
_REPEATS = 1_000
_CELLS = 1_000_000
_SHIFT = re.compile(r"translate\s*\(\s*(\S+?)[\s,]+(\S+?)\s*\)")


class Deck(Protocol):
    """What the pages of one presentation share."""

    request: ParseRequest
    drafts: list[Draft]
    list_styles: ListStyles

    def has(self, name: str) -> bool: ...
    def optional(self, name: str, place: str) -> Any: ...
    def picture(self, name: str, place: str) -> bytes | None: ...
    def lose(self, name: str, detail: str, place: str) -> None: ...


class PageWalk:
    """Drafts are appended to those of the deck, at the end in reading order."""

    def __init__(self, deck: Deck, number: int) -> None:
        self.title = ""
        self.furniture = 0
        self._deck, self._number = deck, number
        self._drafts: list[Draft] = deck.drafts
        self._reader = TextReader(deck.list_styles)
        self._shape = 0
        self._box = NOWHERE
        self._place: dict[str, Any] = {}
        self._alt = ""
        self._links: list[Link] = []

    def walk(self, page: Any) -> None:
        first = len(self._drafts)
        items = self._collect(page)
        self._drafts[first:] = arrange(self._drafts, items, [])

    def _collect(self, page: Any) -> list[Item]:
        root: list[Item] = []
        groups: list[Item] = []
        waiting: list[tuple[Any, list[Item], int, str]] = [(child, root, 0, "") for child in reversed(list(page))]
        while waiting:
            element, target, depth, href = waiting.pop()
            if element.tag == DRAW + "g" or element.tag in _THROUGH:
                href = element.get(XLINK + "href") or href
                below = target
                if element.tag == DRAW + "g":
                    self._shape += 1
                    if depth < _GROUPS:
                        groups.append(Item(NOWHERE))
                        target.append(groups[-1])
                        below = groups[-1].members
                waiting += [(child, below, depth + 1, href) for child in reversed(list(element))]
            elif element.tag.startswith(DRAW) and element.tag != DRAW + "page-thumbnail":
                self._read(element, target, href)
        return settle(root, groups)

    def _read(self, element: Any, target: list[Item], href: str) -> None:
        self._shape += 1
        kind = element.get(PRESENTATION + "class") or ""
        if kind in _FURNITURE:
            self.furniture += 1
            return
        if element.get(PRESENTATION + "placeholder") == "true":
            return
        box = read_frame(element)
        self._box = box or NOWHERE
        self._place = {"slide": self._number, "shape": self._shape}
        if box is not None:
            self._place["bbox"] = in_points(box)
        self._alt = next((text for name in ("desc", "title") if (text := (element.findtext(SVG + name) or "").strip())), "")
        self._links = [Link(href, self._alt)] if href else []
        start = len(self._drafts)
        if element.tag == DRAW + "frame":
            self._frame(element, kind)
        else:
            self._text(element, kind)
        if len(self._drafts) == start and self._alt:
            self._add(Draft("paragraph", 0, 0, self._alt, {"alt_text": True}))
        if len(self._drafts) > start:
            target.append(Item(self._box, start, len(self._drafts)))

    def _add(self, draft: Draft) -> None:
        draft.place = self._place
        draft.links += self._links
        self._links = []
        self._drafts.append(draft)
        check_count(self._drafts, self._deck.request)

    def _frame(self, frame: Any, kind: str) -> None:
        """The first content that is understood: the others of a frame are copies of it in other formats."""
        for content in frame:
            name = content.tag
            if name == DRAW + "text-box":
                return self._text(content, kind)
            if name == TABLE + "table":
                return self._table(content, {})
            if name == DRAW + "image":
                return self._image(content)
            if name == DRAW + "object" and self._chart(content):
                return None
            if name in (DRAW + "object", DRAW + "object-ole", DRAW + "plugin", DRAW + "applet"):
                what = "embedded_media" if name == DRAW + "plugin" else "embedded_object"
                self._deck.lose(what, f"{what.replace('_', ' ')} is not read", f"slide {self._number} shape {self._shape}")
        return None

    def _text(self, holder: Any, kind: str) -> None:
        lines = self._reader.read(holder)
        if lines and all(line.is_field for line in lines):
            self.furniture += 1
        elif kind == "title" and lines and not self.title:
            self.title = " ".join(" ".join(line.text for line in lines).split())
            self._add(Draft("heading", 0, 0, self.title, {"level": 1}, [link for line in lines for link in line.links]))
        else:
            for line in lines:
                self._line(line)

    def _line(self, line: TextLine) -> None:
        if line.level is None:
            self._add(Draft("paragraph", 0, 0, line.text, {}, line.links))
            return
        about: dict[str, Any] = {"level": line.level, "ordered": line.number is not None}
        if line.number is not None:
            about |= {"number": line.number, "marker": line.marker}
        self._add(Draft("list_item", 0, 0, line.text, about, line.links))

    def _image(self, image: Any) -> None:
        alt, self._alt = self._alt, ""
        href = image.get(XLINK + "href") or ""
        if "://" in href:
            self._add(Draft("image", 0, 0, alt, href=href))
            return
        data = self._deck.picture(part_name("", href), f"slide {self._number} shape {self._shape}") if href else None
        about = describe_image(data, href) if data is not None else {}
        self._add(Draft("image", 0, 0, alt, about, data=data))

    def _chart(self, element: Any) -> bool:
        """Whether the object is a chart with its data; its table is among the drafts then."""
        href = element.get(XLINK + "href") or ""
        name = f"{part_name('', href)}/content.xml"
        if not href or "://" in href or not self._deck.has(name):
            return False
        root = self._deck.optional(name, f"slide {self._number} shape {self._shape}")
        chart = root.find(f".//{CHART}chart") if root is not None else None
        table = chart.find(TABLE + "table") if chart is not None else None
        if chart is None or table is None:
            return False
        titles = [chart.find(CHART + "title"), *chart.iterfind(f"{CHART}plot-area/{CHART}axis/{CHART}title")]
        caption = "\n".join(line.text for title in titles if title is not None for line in self._reader.read(title))
        kind = (chart.get(CHART + "class") or "").rpartition(":")[2]
        self._table(table, {"chart": [kind] if kind else [], **({"caption": caption} if caption else {})})
        return True

    def _table(self, table: Any, about: dict[str, Any]) -> None:
        first = table.get(TABLE + "use-first-row-styles") == "true"
        rows: Rows = []
        links: list[Link] = []
        room = _CELLS
        for row in table.iter(TABLE + "table-row"):
            header = row.getparent().tag == TABLE + "table-header-rows" or (first and not rows)
            cells = []
            for cell in row.iterchildren(TABLE + "table-cell"):
                lines = self._reader.read(cell)
                links += [link for line in lines for link in line.links]
                spans = [_count(cell.get(f"{TABLE}number-{name}-spanned")) for name in ("rows", "columns")]
                made = make_cell("\n".join(line.text for line in lines), row_span=spans[0], col_span=spans[1], header=header)
                times = min(_count(cell.get(TABLE + "number-columns-repeated")), room)
                room -= times
                cells += [dict(made) for _ in range(times)]
            rows.append(cells)
        self._add(Draft("table", 0, metadata=about, links=links, rows=rows))


def read_frame(element: Any) -> Box | None:
    """The box of a shape in EMU, from its corner and size, its shift, or the ends of a line."""
    width, height = (read_length(element.get(SVG + name)) or 0.0 for name in ("width", "height"))
    x, y = (read_length(element.get(SVG + name)) for name in ("x", "y"))
    if x is None or y is None:
        shift = _SHIFT.search(element.get(DRAW + "transform") or "")
        x, y = (read_length(shift[1]), read_length(shift[2])) if shift else (None, None)
    if x is None or y is None:
        ends = [read_length(element.get(SVG + name)) for name in ("x1", "y1", "x2", "y2")]
        x0, y0, x1, y1 = (end if end is not None else 0.0 for end in ends)
        return (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)) if None not in ends else None
    return x, y, x + max(width, 0.0), y + max(height, 0.0)


def _count(value: str | None) -> int:
    return min(max(int(value), 1), _REPEATS) if value and value.isascii() and value.isdigit() and len(value) < 10 else 1
