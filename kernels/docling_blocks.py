"""A document as docling sees it (`DoclingDocument`) → drafts of our blocks, each marked `source: docling`.

Places are those that docling gives: page and box of a PDF, slide and box, sheet and range; where it gives none (HTML, Markdown, DOCX, CSV)
the item's number in docling's order stands as `paragraph`. The invariant: every item with text is in one draft, in docling's order; cells
that docling lists both in a table and below it, and captions, are there once.
"""

from __future__ import annotations

from typing import Any

from raydex.ir.document import Link, Page
from raydex.ir.ids import page_id
from raydex.kernels.data_uri import is_data_uri, read_data_uri
from raydex.kernels.drafts import Draft, check_count
from raydex.kernels.image_size import describe_image
from raydex.kernels.request import ParseRequest
from raydex.kernels.sheet import area_name
from raydex.kernels.tables import Rows, make_cell

SOURCE = "docling"
LAYERS = ("body", "notes")  # content layers that are taken: furniture and hidden text are not
_POINT = 12_700  # units of a slide's box
_KINDS = {
    "title": "heading",
    "section_header": "heading",
    "field_heading": "heading",
    "list_item": "list_item",
    "table": "table",
    "document_index": "table",
    "code": "code",
    "picture": "image",
    "chart": "image",
    "footnote": "note",
}
_ROLES = {"formula": "formula", "caption": "caption", "checkbox_selected": "checked", "checkbox_unselected": "unchecked"}
_LISTS = ("list", "ordered_list")
_DEEPEST = 6
_CLOSING = ".,;:!?)]}"  # stands at the end of what comes before it


def draft_items(document: Any, request: ParseRequest, family: str) -> list[Draft]:
    """`family` is page, slide, sheet or empty: what docling's pages are. Raises LimitError (too_many_blocks)."""
    writer = _Writer(document, request, family)
    for item, depth in document.iterate_items(with_groups=True, included_content_layers=_layers(document)):
        writer.take(item, depth)
        check_count(writer.drafts, request)
    return writer.drafts


def page_rows(document: Any, request: ParseRequest) -> list[Page]:
    """Pages of a PDF; one on which docling found no text is `unavailable`."""
    counts: dict[int, int] = {}
    for item in document.texts:
        for prov in item.prov[:1]:
            counts[prov.page_no] = counts.get(prov.page_no, 0) + len(item.text)
    pages = []
    for number, page in sorted(document.pages.items()):
        state = "native" if counts.get(number) else "unavailable"
        identity = page_id(request.record_id, request.content_hash, number)
        pages.append(Page(identity, number, page.size.width, page.size.height, 0, state, counts.get(number, 0)))
    return pages


def _layers(document: Any) -> set[Any]:
    layer = type(document.body.content_layer)
    return {layer(name) for name in LAYERS}


class _Writer:
    def __init__(self, document: Any, request: ParseRequest, family: str) -> None:
        self.document = document
        self.request = request
        self.family = family
        self.drafts: list[Draft] = []
        self.sheet = ""
        self.slide = 0
        self.below_title = any(_label(text) == "title" for text in document.texts)
        self._count = 0
        self._inside: int | None = None  # depth of the table whose cells come next, as items of their own
        self._run: tuple[int, Draft] | None = None  # depth of a group of inline items, and the draft that they are the text of
        self._captions: set[str] = set()
        self._depths: dict[str, int] = {}  # list item → its depth among lists

    def take(self, item: Any, depth: int) -> None:
        if self._inside is not None and depth > self._inside:
            return
        self._inside = None
        if self._run is not None and depth <= self._run[0]:
            self._run = None
        if not hasattr(item, "prov"):
            self._group(item, depth)
            return
        label = _label(item)
        if label in ("table", "document_index") and hasattr(item, "data"):
            self._inside = depth
        if item.self_ref in self._captions:
            return
        if self._run is not None:
            self._continue(item)
            return
        self._count += 1
        self._add(self._draft(item, label, _KINDS.get(label, "paragraph")), item)

    def _group(self, group: Any, depth: int) -> None:
        label, name = _label(group), group.name or ""
        if label == "sheet":
            self.sheet = name
        elif name.startswith("slide-") and name[6:].isascii() and name[6:].isdigit():
            self.slide = int(name[6:][:6]) + 1
        elif label == "inline" and self._run is None:
            last = self.drafts[-1] if self.drafts else None
            if last is None or last.text or last.kind not in ("list_item", "heading", "paragraph"):
                last = Draft("paragraph", 0, metadata={"source": SOURCE})
                self.drafts.append(last)
            self._run = (depth, last)

    def _continue(self, item: Any) -> None:
        """One more piece of a paragraph whose looks change inside it."""
        draft = self._run[1] if self._run is not None else self.drafts[-1]
        if not draft.place:
            self._count += 1
            draft.place = self._place(item)
        text = getattr(item, "text", "")
        if text:
            apart = " " if draft.text and text[0] not in _CLOSING else ""
            draft.text += apart + text
        draft.links += _links(item)

    def _add(self, draft: Draft, item: Any) -> None:
        draft.metadata["source"] = SOURCE
        if str(item.content_layer.value) == "notes" and draft.kind != "image":
            draft.kind = "note"
        draft.place = self._place(item)
        self.drafts.append(draft)

    def _draft(self, item: Any, label: str, kind: str) -> Draft:
        metadata: dict[str, Any] = {"role": _ROLES[label]} if label in _ROLES else {}
        text = getattr(item, "text", "") or ""
        if kind == "heading":
            level = 1 if label == "title" else int(getattr(item, "level", 1)) + self.below_title
            return Draft(kind, 0, 0, " ".join(text.split()), {"level": max(1, min(level, _DEEPEST))}, _links(item))
        if kind == "list_item":
            ordered = bool(getattr(item, "enumerated", False))
            metadata |= {"level": self._list_depth(item), "ordered": ordered}
            if ordered:
                metadata["number"] = str(item.marker)
        elif kind == "code":
            metadata["language"] = _language(item)
        elif kind == "table":
            return self._table(item)
        elif kind == "image":
            return self._image(item)
        return Draft(kind, 0, 0, text, metadata, _links(item))

    def _list_depth(self, item: Any) -> int:
        """Depth from 0: one below the list item that the list hangs from, where there is one."""
        depth = 0
        at = item.parent
        for _ in range(2 * _DEEPEST):
            if at is None:
                break
            known = self._depths.get(at.cref)
            if known is not None:
                depth = known + 1
                break
            node = at.resolve(self.document)
            if _label(node) not in (*_LISTS, "list_item"):
                break
            at = node.parent
        self._depths[item.self_ref] = depth
        return depth

    def _caption(self, item: Any) -> str:
        texts = []
        for reference in item.captions:
            if reference.cref not in self._captions:
                self._captions.add(reference.cref)
                texts.append(reference.resolve(self.document).text)
        return " ".join(text for text in texts if text)

    def _table(self, item: Any) -> Draft:
        caption = self._caption(item)
        rows = _rows(item.data)
        draft = Draft("table", 0, metadata={"caption": caption} if caption else {}, rows=rows)
        return draft if any(rows) else Draft("paragraph", 0, 0, caption)

    def _image(self, item: Any) -> Draft:
        draft = Draft("image", 0, 0, self._caption(item))
        uri = str(item.image.uri) if item.image is not None else ""
        if is_data_uri(uri):
            _, draft.data, about = read_data_uri(uri)
            draft.metadata |= describe_image(draft.data, "") if draft.data else {key: about[key] for key in ("broken",) if key in about}
        elif "://" in uri:
            draft.href = uri
        return draft

    def _place(self, item: Any) -> dict[str, Any]:
        prov = item.prov[0] if item.prov else None
        if prov is None:
            where: dict[str, Any] = {"slide": self.slide} if self.family == "slide" and self.slide else {}
            where |= {"sheet": self.sheet} if self.family == "sheet" and self.sheet else {}
            return where or {"paragraph": self._count}
        page = self.document.pages.get(prov.page_no)
        box = prov.bbox.to_top_left_origin(page_height=page.size.height if page is not None else 0.0).as_tuple()
        if self.family == "sheet":
            left, top, right, bottom = (int(value) for value in box)
            known = left >= 0 and top >= 0 and right > left and bottom > top
            return {"sheet": self.sheet} | ({"cells": area_name((top + 1, left + 1, bottom, right))} if known else {})
        if self.family == "slide":
            return {"slide": prov.page_no, "bbox": tuple(value / _POINT for value in box)}
        return {"page": prov.page_no, "bbox": box}


def _label(item: Any) -> str:
    label = getattr(item, "label", "")
    return str(getattr(label, "value", label))


def _language(item: Any) -> str:
    language = getattr(item, "code_language", "")
    value = str(getattr(language, "value", language) or "")
    return "" if value == "unknown" else value.lower()


def _links(item: Any) -> list[Link]:
    href = getattr(item, "hyperlink", None)
    return [Link(str(href), getattr(item, "text", "") or "")] if href else []


def _rows(data: Any) -> Rows:
    """Cells where they begin; a cell that spans rows or columns stands once."""
    rows: Rows = [[] for _ in range(data.num_rows)]
    for cell in sorted(data.table_cells, key=lambda cell: (cell.start_row_offset_idx, cell.start_col_offset_idx)):
        if 0 <= cell.start_row_offset_idx < len(rows):
            spans = {"row_span": max(1, cell.row_span), "col_span": max(1, cell.col_span)}
            rows[cell.start_row_offset_idx].append(make_cell(cell.text, **spans, header=bool(cell.column_header)))
    return [row for row in rows if row] if not any(cell.row_span > 1 for cell in data.table_cells) else rows
