"""Content of Word paragraphs → text, links, pictures, text boxes and notes, as it reads with all changes accepted.

Deleted and hidden text and the codes of fields are no text; of alternatives one is read. The invariant: every visible run comes out once,
in order. Recursion is as deep as the parsed part is, at most 256 levels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from raydex.ir.document import Link
from raydex.kernels.docx_fields import FIELD_CHARACTER, Fields, form_value, link_target
from raydex.kernels.docx_notes import COMMENT, ENDNOTE, FOOTNOTE, Notes
from raydex.kernels.docx_parts import VAL, R, W, is_on
from raydex.kernels.docx_pictures import MC, Pictures, choose
from raydex.kernels.docx_styles import Styles, is_mono, turned_as
from raydex.kernels.docx_symbols import UNKNOWN, symbol
from raydex.kernels.drafts import Draft
from raydex.kernels.office_math import OMATH, OMATH_PARAGRAPH, math_text
from raydex.kernels.package import Relation
from raydex.kernels.raised_text import turn_pieces

ALTERNATIVES = MC + "AlternateContent"
_W14 = "{http://schemas.microsoft.com/office/word/2010/wordml}"
_RUN, _TEXT, _RUN_PROPERTIES = W + "r", W + "t", W + "rPr"
_RUN_STYLE, _FONTS, _VANISH, _VERTICAL = W + "rStyle", W + "rFonts", W + "vanish", W + "vertAlign"
_FIELD_CODE, _SYMBOL, _COMMENTED, _RUBY = W + "instrText", W + "sym", W + "commentReference", W + "ruby"
_CONTAINERS = frozenset(
    (
        *(W + name for name in ("ins", "moveTo", "smartTag", "customXml", "dir", "bdo", "sdtContent", "rubyBase")),
        MC + "Choice",
        MC + "Fallback",
    )
)
_CONSTANT = {
    W + "tab": "\t",
    W + "ptab": "\t",
    W + "br": "\n",
    W + "cr": "\n",
    W + "noBreakHyphen": "-",
}
_NOTES = {W + "footnoteReference": FOOTNOTE, W + "endnoteReference": ENDNOTE}
_DRAWN = frozenset((W + "drawing", W + "pict", W + "object"))
_CODE_SIGN = re.compile(
    r"[{}<>=$]|;[ \t]*$|\w\([^)\n]{0,200}\)[ \t]*[:;]?[ \t]*$|^[ \t]*(?:def|class|import|return|#include)\b", re.MULTILINE
)


@dataclass(slots=True)
class Story:
    """One part or text box while it is read: where its relations point and which fields are open."""

    relations: dict[str, Relation]
    fields: Fields


@dataclass(slots=True)
class Inline:
    """What one paragraph holds, or several whose marks between them were deleted."""

    pieces: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    images: list[Draft] = field(default_factory=list)
    boxes: list[Any] = field(default_factory=list)
    checked: bool | None = None
    mono: bool = True  # no visible run is set in another face than a typewriter's

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class InlineReader:
    """Reads paragraphs of one package, one after the other."""

    def __init__(self, styles: Styles, notes: Notes, pictures: Pictures) -> None:
        self.styles = styles
        self.notes = notes
        self.pictures = pictures
        self.losses = pictures.parts.losses
        self.story = Story({}, Fields())
        self.paragraph = 0
        self.into = Inline()
        self._hidden = False
        self._mono = False

    def read(self, element: Any, into: Inline, *, hidden: bool, mono: bool, paragraph: int) -> None:
        """Adds a paragraph's content to `into`; `hidden` and `mono` are what its style says."""
        self.into, self._hidden, self._mono, self.paragraph = into, hidden, mono, paragraph
        for opened in self.story.fields.open:
            opened.start = len(into.pieces)
        self._walk(element)
        for opened in self.story.fields.open:
            if not opened.in_code:
                self._link(opened.href, opened.start)

    def _walk(self, parent: Any) -> None:
        for child in parent:
            if child.tag == _RUN:
                self._run(child)
            else:
                handle = _HANDLERS.get(child.tag)
                if handle is not None:
                    handle(self, child)

    def _run(self, run: Any) -> None:
        hidden, mono, turned = self._hidden, self._mono, ""
        properties = run.find(_RUN_PROPERTIES)
        if properties is not None and len(properties):
            hidden, mono, turned = self._look(properties, hidden, mono)
        start = len(self.into.pieces)
        self._content(run, hidden, mono)
        if turned:
            to_note = any(child.tag in _NOTES for child in run)
            turn_pieces(self.into.pieces, start, low=turned == "subscript", to_note=to_note)

    def _look(self, properties: Any, hidden: bool, mono: bool) -> tuple[bool, bool, str]:
        """Whether a run is hidden, set in a typewriter face, above or below the line: its own properties before its style, before its
        paragraph's."""
        turned = ""
        for item in properties:
            tag = item.tag
            if tag == _RUN_STYLE:
                style = self.styles.find(item.get(VAL, ""))
                hidden, mono, turned = hidden or style.hidden, mono or style.mono, style.turned
            elif tag == _FONTS and item.get(W + "ascii"):
                mono = is_mono(item)
            elif tag == _VANISH:
                hidden = is_on(item)
            elif tag == _VERTICAL:
                turned = turned_as(item)
        return hidden, mono, turned

    def _content(self, run: Any, hidden: bool, mono: bool) -> None:
        fields = self.story.fields
        for child in run:
            tag = child.tag
            if tag == _TEXT:
                text = child.text
                if not text or fields.covered:
                    continue
                if hidden:
                    self.losses["hidden_text"] += 1
                    continue
                if not mono and not text.isspace():
                    self.into.mono = False
                self.into.pieces.append(text if "\n" not in text else text.replace("\n", " "))
            elif tag == FIELD_CHARACTER:
                self._field(child)
            elif tag == _FIELD_CODE:
                fields.add_code(child.text or "")
            elif fields.covered or hidden:
                self.losses["hidden_text"] += hidden and tag in _DRAWN
            elif tag in _CONSTANT:
                self.into.pieces.append(_CONSTANT[tag])
            elif tag in _DRAWN:
                self._draw(child)
            elif tag == ALTERNATIVES:
                chosen = choose(child)
                if chosen is not None:
                    self._content(chosen, hidden, mono)
            elif tag == _SYMBOL:
                self._symbol(child)
            elif tag in _NOTES:
                self._note(run, child, _NOTES[tag])
            elif tag == _COMMENTED:
                self.notes.refer(COMMENT, child.get(W + "id", ""), self.paragraph)
            elif tag == _RUBY:
                self._ruby(child)

    def _math(self, element: Any) -> None:
        if not self.story.fields.covered:
            self.into.pieces.append(math_text(element))
            self.into.mono = False

    def _alternatives(self, element: Any) -> None:
        chosen = choose(element)
        if chosen is not None:
            self._walk(chosen)

    def _sub_document(self, element: Any) -> None:
        self.losses["sub_document"] += 1

    def _draw(self, element: Any) -> None:
        for found in self.pictures.read(element, self.story.relations):
            if isinstance(found, Draft):
                self.into.images.append(found)
            else:
                self.into.boxes.append(found)

    def _symbol(self, element: Any) -> None:
        sign = symbol(element.get(W + "font", ""), element.get(W + "char", ""))
        self.losses["unknown_symbol"] += sign == UNKNOWN
        self.into.pieces.append(sign)

    def _note(self, run: Any, element: Any, kind: str) -> None:
        custom = None
        if element.get(W + "customMarkFollows", "0") not in ("0", "false", "off"):
            custom = "".join(text.text or "" for text in run.iterchildren(_TEXT))
        label = self.notes.refer(kind, element.get(W + "id", ""), self.paragraph, custom)
        if custom is None and label:
            self.into.pieces.append(f"[{label}]")

    def _ruby(self, element: Any) -> None:
        """The base, and above it in brackets how it is read."""
        base, above = element.find(W + "rubyBase"), element.find(W + "rt")
        if base is not None:
            self._walk(base)
        if above is not None:
            self.into.pieces.append("(")
            self._walk(above)
            self.into.pieces.append(")")

    def _simple_field(self, element: Any) -> None:
        start = len(self.into.pieces)
        self._walk(element)
        self._link(link_target(element.get(W + "instr", "")), start)

    def _hyperlink(self, element: Any) -> None:
        start = len(self.into.pieces)
        self._walk(element)
        relation = self.story.relations.get(element.get(R + "id", ""))
        anchor = element.get(W + "anchor", "")
        self._link((relation.target if relation is not None else "") + (f"#{anchor}" if anchor else ""), start)

    def _control(self, element: Any) -> None:
        content, properties = element.find(W + "sdtContent"), element.find(W + "sdtPr")
        if content is None:
            return
        box = properties.find(_W14 + "checkbox") if properties is not None else None
        if box is not None and self.into.checked is None and not any(piece.strip() for piece in self.into.pieces):
            state = box.find(_W14 + "checked")
            self.into.checked = state is not None and state.get(_W14 + "val") in ("1", "true", "on")
        self._walk(content)

    def _field(self, element: Any) -> None:
        fields, kind = self.story.fields, element.get(W + "fldCharType")
        if kind == "begin":
            shown = form_value(element)
            if shown and not fields.covered:
                self.into.pieces.append(shown)
            fields.begin(element)
        elif kind == "separate":
            fields.separate(len(self.into.pieces))
        elif kind == "end":
            ended = fields.end()
            if ended is not None:
                self._link(ended.href, ended.start)

    def _link(self, href: str, start: int) -> None:
        if href and not self.story.fields.covered:
            text = "".join(self.into.pieces[start:]).strip()
            if text or self.into.images:
                self.into.links.append(Link(href, text))


def looks_like_code(text: str) -> bool:
    """What a typewriter face must show besides words to be taken for code."""
    return _CODE_SIGN.search(text) is not None


_HANDLERS = {
    **dict.fromkeys(_CONTAINERS, InlineReader._walk),
    W + "hyperlink": InlineReader._hyperlink,
    W + "sdt": InlineReader._control,
    W + "fldSimple": InlineReader._simple_field,
    W + "subDoc": InlineReader._sub_document,
    OMATH: InlineReader._math,
    OMATH_PARAGRAPH: InlineReader._math,
    ALTERNATIVES: InlineReader._alternatives,
}
