"""Content of an OpenDocument text → drafts: headings, paragraphs, list items, code, tables, notes, comments, pictures, text boxes.

Deleted text lies outside the body and is never met. The invariant: each paragraph is read once; in a cell or a note it is a line of its
text, elsewhere a block. Recursion is as deep as the parsed part is, at most 256 levels.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from raydex.ir.document import Link
from raydex.kernels.docx_parts import to_int
from raydex.kernels.drafts import Draft, check_count
from raydex.kernels.odt_styles import TEXT, Counter, ListLevel, OdtStyles
from raydex.kernels.odt_tables import TABLE, read_table
from raydex.kernels.request import ParseRequest
from raydex.kernels.tables import table_text

OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
XLINK = "{http://www.w3.org/1999/xlink}"
SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
DC = "{http://purl.org/dc/elements/1.1/}"
_SPACES = re.compile(r"[ \t\r\n]+")
_MAX_SPACES = 1000
_SKIPPED = frozenset((TEXT + "tracked-changes", TEXT + "sequence-decls", OFFICE + "forms", TEXT + "script", TEXT + "soft-page-break"))
_SOURCES = "-source"
Picture = Callable[[str], tuple[bytes | None, dict[str, Any]]]


@dataclass(slots=True)
class Inline:
    """Content of one paragraph."""

    pieces: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    images: list[Draft] = field(default_factory=list)
    boxes: list[Any] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)

    def add(self, text: str | None) -> None:
        """White space is one space, and none behind a space or at a start."""
        if text:
            text = _SPACES.sub(" ", text)
            last = self.pieces[-1][-1:] if self.pieces else " "
            text = text[1:] if text[0] == " " and last in " \n\t" else text
            if text:
                self.pieces.append(text)


@dataclass(slots=True)
class Context:
    """Where a paragraph stands: the list around it, and whether it opens an item."""

    counter: Counter | None = None
    level: int = -1
    opens: bool = False
    start: str | None = None


class OdtWalk:
    """Walks the body of one document; `picture` gives the bytes of a part and what is known of them."""

    def __init__(self, request: ParseRequest, styles: OdtStyles, picture: Picture, losses: Any) -> None:
        self.request = request
        self.styles = styles
        self.picture = picture
        self.losses = losses
        self.drafts: list[Draft] = []
        self.lines: list[str] | None = None  # of the cell or note that is read
        self.aside = Inline()
        self.headings = Counter(styles.outline)
        self.lists: dict[str, Counter] = {}
        self.paragraphs = 0
        self.notes = 0
        self.place: dict[str, Any] = {}

    def flow(self, container: Any, context: Context | None = None) -> None:
        context = context or Context()
        for element in container:
            tag = element.tag
            if not isinstance(tag, str) or tag in _SKIPPED or tag.endswith(_SOURCES):
                continue
            if tag in (TEXT + "p", TEXT + "h"):
                self._paragraph(element, context)
                context.opens = False
            elif tag == TEXT + "list":
                self._list(element, context)
            elif tag == TABLE + "table":
                self._table(element)
            elif tag == TEXT + "section" and element.get(TEXT + "display") == "none":
                self.losses["hidden_text"] += 1
            elif tag.startswith((TEXT, OFFICE)):
                self.flow(element, context)
            elif tag.startswith(DRAW):
                inline = Inline()
                self._drawing(element, inline)
                self._follow(inline, self.paragraphs + 1)

    def _list(self, element: Any, around: Context) -> None:
        name = element.get(TEXT + "style-name") or ""
        if around.counter is not None and (not name or self.styles.lists.get(name) is around.counter.levels):
            counter = around.counter
        else:
            counter = self._counter(element, name)
        for item in element:
            if item.tag not in (TEXT + "list-item", TEXT + "list-header"):
                continue
            opens = item.tag == TEXT + "list-item"
            self.flow(item, Context(counter, around.level + 1, opens, item.get(TEXT + "start-value") if opens else None))

    def _counter(self, element: Any, name: str) -> Counter:
        """A list counts anew, unless it says which one it goes on with."""
        if not name:
            first = next(element.iter(TEXT + "p", TEXT + "h"), None)
            name = self.styles.find(first.get(TEXT + "style-name")).list_style if first is not None else ""
        goes_on = element.get(TEXT + "continue-list")
        known = self.lists.get(f"#{goes_on}") if goes_on else None
        if known is None and element.get(TEXT + "continue-numbering") == "true":
            known = self.lists.get(name)
        counter = known or Counter(self.styles.lists.get(name) or [ListLevel(bullet=True)] * 10)
        self.lists[name] = counter
        identifier = element.get("{http://www.w3.org/XML/1998/namespace}id")
        if identifier:
            self.lists[f"#{identifier}"] = counter
        return counter

    def _paragraph(self, element: Any, context: Context) -> None:
        self.paragraphs += 1
        number = self.paragraphs
        style = self.styles.find(element.get(TEXT + "style-name"))
        inline = Inline()
        if style.hidden:
            self.losses["hidden_text"] += 1
        else:
            self._inline(element, inline)
        text = "".join(inline.pieces)
        text = text.rstrip() if style.code else text.strip()
        kind, about, label = self._kind(element, style, context)
        if kind == "heading":
            text = " ".join(text.split())
        if self.lines is not None:
            kept = "\n".join(line.rstrip() for line in text.split("\n") if line.strip())
            if kept:
                self.lines.append(f"{label} {kept}" if label else kept)
            self.aside.links += inline.links
            self.aside.images += inline.images
            self.aside.notes += inline.notes
            for box in inline.boxes:
                self.flow(box)
            return
        last = self.drafts[-1] if self.drafts else None
        if (
            kind == "code"
            and last is not None
            and last.kind == "code"
            and last.place.get("paragraph", 0) + last.text.count("\n") + 1 == number
        ):
            last.text += f"\n{text}"
        elif text.strip():
            self._add(Draft(kind, 0, 0, text, about, inline.links, place=self._at(number)))
        elif inline.links and inline.images:
            inline.images[0].links += inline.links
        self._follow(inline, number)

    def _kind(self, element: Any, style: Any, context: Context) -> tuple[str, dict[str, Any], str]:
        """What kind of block a paragraph is, its metadata, and the label in front of it."""
        about: dict[str, Any] = {}
        if element.tag == TEXT + "h" or style.title:
            level = max(1, to_int(element.get(TEXT + "outline-level"), 1))
            label = ""
            if context.opens and context.counter is not None:
                label = context.counter.next(context.level, context.start)[0]
            elif element.tag == TEXT + "h" and element.get(TEXT + "is-list-header") != "true":
                label = self.headings.next(level - 1, element.get(TEXT + "start-value"))[0]
            if label:
                about = {"number": label.rstrip("."), "label": label}
            return "heading", {"level": min(level, 6)} | about, label
        if context.opens and context.counter is not None:
            own = context.counter.levels[min(context.level, 9)]
            label, count = context.counter.next(context.level, context.start)
            about = {"level": context.level, "ordered": bool(label)}
            if label or own.bullet:
                return "list_item", about | ({"number": count, "label": label} if label else {}), label
            return "paragraph", {}, ""
        if style.code:
            return "code", {"language": ""}, ""
        return "paragraph", {"quote": 1} if style.quote else {}, ""

    def _inline(self, parent: Any, into: Inline) -> None:
        into.add(parent.text)
        for child in parent:
            tag = child.tag
            if isinstance(tag, str) and tag not in _SKIPPED:
                self._piece(child, tag, into)
            into.add(child.tail)

    def _piece(self, child: Any, tag: str, into: Inline) -> None:
        if tag == TEXT + "s":
            into.pieces.append(" " * min(max(1, to_int(child.get(TEXT + "c"), 1)), _MAX_SPACES))
        elif tag == TEXT + "tab":
            into.pieces.append("\t")
        elif tag == TEXT + "line-break":
            into.pieces.append("\n")
        elif tag == TEXT + "a":
            start = len(into.pieces)
            self._inline(child, into)
            href = child.get(XLINK + "href", "")
            if href:
                into.links.append(Link(href, "".join(into.pieces[start:]).strip()))
        elif tag == TEXT + "note":
            cited = child.find(TEXT + "note-citation")
            mark = "".join(cited.itertext()).strip() if cited is not None else ""
            into.pieces += [f"[{mark}]"] if mark else []
            into.notes.append(child)
        elif tag == OFFICE + "annotation":
            into.notes.append(child)
        elif tag.startswith(DRAW):
            self._drawing(child, into)
        elif tag == TEXT + "ruby":
            self._ruby(child, into)
        elif self.styles.find(child.get(TEXT + "style-name")).hidden or tag in (TEXT + "hidden-text", TEXT + "hidden-paragraph"):
            self.losses["hidden_text"] += 1
        else:
            self._inline(child, into)

    def _ruby(self, element: Any, into: Inline) -> None:
        base, above = element.find(TEXT + "ruby-base"), element.find(TEXT + "ruby-text")
        if base is not None:
            self._inline(base, into)
        if above is not None:
            into.pieces.append(f"({''.join(above.itertext())})")

    def _drawing(self, element: Any, into: Inline) -> None:
        """Frames: the first picture of each, text boxes, the text of shapes; an embedded object keeps its picture only."""
        described = [element.find(SVG + name) for name in ("desc", "title")]
        alt = next((item.text for item in described if item is not None and item.text), "")
        seen = False
        if element.find(DRAW + "object") is not None or element.find(DRAW + "object-ole") is not None:
            self.losses["embedded_object"] += 1
        link = element.get(XLINK + "href", "") if element.tag == DRAW + "a" else ""
        first = len(into.images)
        for child in element:
            tag = child.tag
            if tag == DRAW + "image":
                if not seen:
                    self._image(child, alt, into)
                seen = True
            elif tag == DRAW + "text-box":
                into.boxes.append(child)
            elif tag in (TEXT + "p", TEXT + "list"):
                into.boxes.append(element)
                break
            elif isinstance(tag, str) and tag.startswith(DRAW):
                self._drawing(child, into)
        if link:
            for image in into.images[first:]:
                image.links.append(Link(link))

    def _image(self, element: Any, alt: str, into: Inline) -> None:
        href = element.get(XLINK + "href", "")
        data, about = self.picture(href)
        into.images.append(Draft("image", 0, 0, alt, about, href=href, data=data))

    def _table(self, element: Any) -> None:
        number = self.paragraphs + 1
        if self.lines is not None:
            self.lines += [line for line in [table_text(read_table(element, self._cell, self.request))] if line]
            return
        kept, self.aside = self.aside, Inline()
        rows = read_table(element, self._cell, self.request)
        aside, self.aside = self.aside, kept
        draft = Draft("table", 0, 0, links=aside.links, rows=rows, place=self._at(number))
        self._add(draft)
        self._follow(aside, number)

    def _cell(self, cell: Any) -> str:
        kept, self.lines = self.lines, []
        self.flow(cell)
        lines, self.lines = self.lines, kept
        return "\n".join(lines)

    def _follow(self, inline: Inline, number: int) -> None:
        """Pictures, text boxes and notes of a block come after it."""
        if self.lines is not None:
            self.aside.images += inline.images
            self.aside.notes += inline.notes
        else:
            for image in inline.images:
                image.place = self._at(number)
                self._add(image)
        for box in inline.boxes:
            self.flow(box)
        for note in inline.notes if self.lines is None else ():
            self._note(note, number)

    def _note(self, element: Any, number: int) -> None:
        self.notes += 1
        counted, kept = self.paragraphs, self.aside
        self.aside, self.place = Inline(), {"note": self.notes}
        body = element.find(TEXT + "note-body")
        text = self._cell(element if body is None else body)
        aside, self.aside, self.paragraphs = self.aside, kept, counted
        if element.tag == OFFICE + "annotation":
            about = {"comment": element.get(OFFICE + "name", "")}
            for tag, key in ((DC + "creator", "author"), (DC + "date", "created")):
                value = (element.findtext(tag) or "").strip()
                about |= {key: value} if value else {}
        else:
            cited = element.find(TEXT + "note-citation")
            kind = "endnote" if element.get(TEXT + "note-class") == "endnote" else "footnote"
            about = {kind: "".join(cited.itertext()).strip() if cited is not None else ""}
        self._add(Draft("note", 0, 0, text, about, aside.links, place=self._at(number)))
        for image in aside.images:
            image.place = self._at(number)
            self._add(image)
        self.place = {}
        for inner in aside.notes:
            self._note(inner, number)

    def _add(self, draft: Draft) -> None:
        self.drafts.append(draft)
        check_count(self.drafts, self.request)

    def _at(self, number: int) -> dict[str, Any]:
        return {"paragraph": number, **self.place}
