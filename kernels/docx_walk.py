"""Blocks of a Word story → drafts: headings, paragraphs, list items, code, tables, and what hangs on them: pictures, text boxes, notes.

A paragraph whose mark was deleted goes on in the next one. The invariant: each paragraph is read once; in a cell or a note it is a line of
its text, elsewhere a block; list numbers count in the order of reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from raydex.ir.document import Link
from raydex.kernels.docx_fields import Fields
from raydex.kernels.docx_inline import ALTERNATIVES, Inline, InlineReader, Story, looks_like_code
from raydex.kernels.docx_notes import COMMENT, Note, Notes
from raydex.kernels.docx_numbers import Numbering, Shown
from raydex.kernels.docx_parts import VAL, W, WordParts, to_int
from raydex.kernels.docx_pictures import MC, Pictures, choose
from raydex.kernels.docx_styles import BODY_TEXT, Style, Styles
from raydex.kernels.docx_tables import make_rows, read_rows
from raydex.kernels.drafts import Draft, check_count
from raydex.kernels.package import Relation
from raydex.kernels.request import ParseRequest
from raydex.kernels.tables import Rows, table_text

HEADING_LEVELS = 6
PARAGRAPH, TABLE = W + "p", W + "tbl"
_THROUGH = frozenset((W + "customXml", W + "ins", W + "moveTo", W + "smartTag", W + "sdtContent", MC + "Choice", MC + "Fallback"))
_STYLE, _OUTLINE, _NUMBER, _MARK, _FRAME = W + "pStyle", W + "outlineLvl", W + "numPr", W + "rPr", W + "framePr"
_GONE = (W + "del", W + "moveFrom")


@dataclass(slots=True)
class Properties:
    """`pPr` of one paragraph."""

    style: str | None = None
    outline: int | None = None
    number: str | None = None
    number_level: int | None = None
    goes_on: bool = False  # no mark of its own: deleted, or an initial that stands apart


@dataclass(slots=True)
class Paragraph:
    kind: str
    text: str
    metadata: dict[str, Any]
    inline: Inline
    number: int  # of its first part, in the order of reading
    label: str = ""


@dataclass(slots=True)
class Aside:
    """What the paragraphs of a cell or note hold besides their lines."""

    images: list[Draft] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)


class DocxWalk:
    """Walks the main document of one package."""

    def __init__(self, request: ParseRequest, parts: WordParts) -> None:
        self.request = request
        self.parts = parts
        self.losses = parts.losses
        self.styles = Styles(parts.related("styles")[0])
        self.typewritten = self.styles.find(None).mono
        self.numbering = Numbering(parts.related("numbering")[0], lambda style: self.styles.find(style).number)
        self.notes = Notes(parts)
        self.reader = InlineReader(self.styles, self.notes, Pictures(parts))
        self.drafts: list[Draft] = []
        self.paragraphs = 0
        self.outside: dict[str, int] = {}  # of what is read now: the note it stands in

    def walk(self) -> None:
        """Raises InputError."""
        body = self.parts.main()
        self.reader.story = Story(self.parts.main_relations, Fields(body))
        self.flow(body)
        self.notes.count_unused()

    def flow(self, container: Any) -> None:
        """Every block of a container becomes a draft, and is followed by its pictures, text boxes and notes."""
        for item in self.items(container):
            if isinstance(item, Paragraph):
                self._add_paragraph(item)
            else:
                self._add_table(item)
            self._add_notes()

    def items(self, container: Any) -> Iterator[Any]:
        """Paragraphs, read, and elements of tables."""
        open_inline: Inline | None = None
        first = 0
        last: Any = None
        for element in self._blocks(container):
            if element.tag == TABLE:
                if open_inline is not None:
                    yield self._finish(open_inline, read_properties(last), first)
                    open_inline = None
                yield element
                continue
            self.paragraphs += 1
            properties = read_properties(element)
            if open_inline is None:
                open_inline, first = Inline(), self.paragraphs
            style = self.styles.find(properties.style)
            self.reader.read(element, open_inline, hidden=style.hidden, mono=style.mono, paragraph=self.paragraphs)
            last = element
            if not properties.goes_on:
                done, open_inline = open_inline, None
                yield self._finish(done, properties, first)
        if open_inline is not None:
            yield self._finish(open_inline, read_properties(last), first)

    def lines(self, container: Any, aside: Aside) -> list[str]:
        """Paragraphs of a cell or note as lines, a row of an inner table as one; list numbers stand before their text."""
        out: list[str] = []
        for item in self.items(container):
            if not isinstance(item, Paragraph):
                text = table_text(self._rows(item, aside))
                out += [text] if text else []
                continue
            text = "\n".join(line.rstrip() for line in item.text.split("\n") if line.strip())
            if text:
                out.append(f"{self._mark(item)}{text}")
            aside.images += item.inline.images
            aside.links += item.inline.links
            for box in item.inline.boxes:
                with self._story(box, self.reader.story.relations):
                    out += self.lines(box, aside)
        return out

    def _blocks(self, container: Any) -> Iterator[Any]:
        """Paragraphs and tables through everything that only wraps them."""
        waiting = [iter(container)]
        while waiting:
            element = next(waiting[-1], None)
            if element is None:
                waiting.pop()
                continue
            tag = element.tag
            if tag in (PARAGRAPH, TABLE):
                yield element
            elif tag in _THROUGH:
                waiting.append(iter(element))
            elif tag == W + "sdt":
                content = element.find(W + "sdtContent")
                if content is not None:
                    waiting.append(iter(content))
            elif tag == ALTERNATIVES:
                chosen = choose(element)
                if chosen is not None:
                    waiting.append(iter(chosen))
            elif tag == W + "altChunk":
                self.losses["alt_chunk"] += 1

    def _finish(self, inline: Inline, properties: Properties, number: int) -> Paragraph:
        """What kind of block a paragraph is: its outline level first, then its numbering, then its style."""
        style = self.styles.find(properties.style)
        shown = self._count(properties, style)
        outline = style.outline if properties.outline is None else properties.outline
        text = inline.text
        if style.title and outline >= BODY_TEXT:
            outline = 0
        if 0 <= outline < BODY_TEXT:
            about: dict[str, Any] = {"level": min(outline + 1, HEADING_LEVELS)}
            label = shown.label if shown is not None and shown.ordered else ""
            if label:
                about |= {"number": label.rstrip("."), "label": label}
            return Paragraph("heading", " ".join(text.split()), about, inline, number, label)
        if shown is not None and (shown.label or not shown.ordered):
            return self._list_item(shown, properties, style, inline, number)
        about = {"toc": style.toc} if style.toc else {}
        if inline.checked is not None:
            about["checked"] = inline.checked
            text = _without_box(text)
        if style.code or (inline.mono and not self.typewritten and text.strip() and looks_like_code(text)):
            return Paragraph("code", text.rstrip(), {"language": ""}, inline, number)
        return Paragraph("paragraph", text.strip(), about, inline, number)

    def _list_item(self, shown: Shown, properties: Properties, style: Style, inline: Inline, number: int) -> Paragraph:
        level = self._level(properties, style)
        about: dict[str, Any] = {"level": max(level, style.depth if properties.number is None else 0), "ordered": shown.ordered}
        if shown.ordered:
            about |= {"number": shown.number, "label": shown.label}
        text = inline.text.strip()
        if inline.checked is not None:
            about["checked"] = inline.checked
            text = _without_box(text)
        return Paragraph("list_item", text, about, inline, number, shown.label if shown.ordered else "")

    def _count(self, properties: Properties, style: Style) -> Shown | None:
        number = style.number if properties.number is None else properties.number
        return self.numbering.next(number, self._level(properties, style)) if number not in ("", "0") else None

    def _level(self, properties: Properties, style: Style) -> int:
        """Its own level, else the one that the list keeps for its style, else the style's."""
        if properties.number_level is not None:
            return min(max(properties.number_level, 0), 8)
        if properties.number is not None:
            return 0
        kept = self.numbering.level_of_style(style.number, style.number_style)
        return kept if kept is not None else min(max(style.number_level or 0, 0), 8)

    def _add_paragraph(self, item: Paragraph) -> None:
        above = self.drafts[-1] if self.drafts else None
        if item.kind == "code" and above is not None and above.kind == "code":
            above.text += f"\n{item.text}"
            above.links += item.inline.links
        elif item.text.strip():
            self._add(Draft(item.kind, 0, 0, item.text, item.metadata, item.inline.links, place=self._place(item.number)))
        elif item.inline.links and item.inline.images:
            item.inline.images[0].links += item.inline.links
        self._add_images(item.inline.images, item.number)
        for box in item.inline.boxes:
            with self._story(box, self.reader.story.relations):
                self.flow(box)

    def _add_table(self, table: Any) -> None:
        """A frame of one cell is no table: what stands in it are blocks."""
        rows = read_rows(table, Counter())
        if len(rows) == 1 and len(rows[0].cells) == 1:
            self.flow(rows[0].cells[0])
            return
        first, aside = self.paragraphs + 1, Aside()
        draft = Draft("table", 0, 0, place=self._place(first), rows=self._rows(table, aside))
        draft.links = aside.links
        self._add(draft)
        self._add_images(aside.images, first)

    def _rows(self, table: Any, aside: Aside) -> Rows:
        rows = read_rows(table, self.losses)
        return make_rows(table, rows, self.styles, self.losses, lambda cell: "\n".join(self.lines(cell, aside)))

    def _add_images(self, images: list[Draft], number: int) -> None:
        for image in images:
            image.place = self._place(number)
            self._add(image)

    def _add_notes(self) -> None:
        """Notes that the last block refers to, and those that these refer to."""
        if self.outside:
            return
        while self.notes.waiting:
            note = self.notes.waiting.popleft()
            self.outside = {"note": note.ordinal}
            counted, self.paragraphs = self.paragraphs, note.paragraph
            aside = Aside()
            with self._story(note.element, note.relations):
                text = "\n".join(self.lines(note.element, aside))
            self.paragraphs = counted
            place = self._place(note.paragraph) | ({"comment": note.element.get(W + "id", "")} if note.kind == COMMENT else {})
            self._add(Draft("note", 0, 0, text, about_note(note), aside.links, place=place))
            self._add_images(aside.images, note.paragraph)
            self.outside = {}

    @contextmanager
    def _story(self, element: Any, relations: dict[str, Relation]) -> Iterator[None]:
        """Inside, a text box or note is read, whose fields are its own."""
        kept = self.reader.story
        self.reader.story = Story(relations, Fields(element))
        yield
        self.reader.story = kept

    @staticmethod
    def _mark(item: Paragraph) -> str:
        """What stands before a paragraph that is only a line of a cell or note."""
        box = {True: "☒ ", False: "☐ "}.get(item.metadata.get("checked", ""), "")
        return f"{item.label} {box}" if item.label else box

    def _add(self, draft: Draft) -> None:
        self.drafts.append(draft)
        check_count(self.drafts, self.request)

    def _place(self, number: int) -> dict[str, Any]:
        return {"paragraph": number, **self.outside}


def about_note(note: Note) -> dict[str, Any]:
    about: dict[str, Any] = {note.kind: note.label}
    for name, key in (("author", "author"), ("date", "created"), ("initials", "initials")) if note.kind == COMMENT else ():
        value = note.element.get(W + name, "")
        if value:
            about[key] = value
    return about


def _without_box(text: str) -> str:
    """The state of a tick box that opens a paragraph is said in its metadata."""
    text = text.strip()
    return text if text[:1].isalnum() else text[1:].lstrip()


def read_properties(paragraph: Any) -> Properties:
    found = Properties()
    element = paragraph.find(W + "pPr")
    for item in element if element is not None else ():
        tag = item.tag
        if tag == _STYLE:
            found.style = item.get(VAL)
        elif tag == _OUTLINE:
            found.outline = to_int(item.get(VAL), BODY_TEXT)
        elif tag == _NUMBER:
            number, level = item.find(W + "numId"), item.find(W + "ilvl")
            found.number = number.get(VAL, "") if number is not None else None
            found.number_level = to_int(level.get(VAL)) if level is not None else None
        elif tag == _MARK:
            found.goes_on = found.goes_on or any(item.find(name) is not None for name in _GONE)
        elif tag == _FRAME:
            found.goes_on = found.goes_on or item.get(W + "dropCap") in ("drop", "margin")
    return found
