"""SVG drawings → DocumentIR: what they say in words, and the pictures that they hold; nothing is drawn, run, expanded or fetched.

A `text` element is a paragraph, one line for each part that is placed anew; the drawing's `title` is its heading, and other titles and
descriptions are paragraphs with a `role`. The invariant: blocks stand in the order of the file, each with the path and range of its
element; scripts, handlers, notes for programs and text that is not drawn (hidden, or defined and never used) are left out, and an event
counts them; titles and descriptions stay. What a style sheet hides is not known. Entities are refused as in any XML (`xml_data`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from raydex.ir.document import Link
from raydex.ir.parsed import ParsedFile
from raydex.kernels.data_uri import is_data_uri, read_data_uri
from raydex.kernels.decode import declared_encoding, decode
from raydex.kernels.drafts import Draft, check_count, finish, say_if_empty
from raydex.kernels.image_size import image_size
from raydex.kernels.request import ParseRequest
from raydex.kernels.xml_data import Element, XmlReader, tidy

PARSER_VERSION = "2"
_NUMBER = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]{1,3})?)\s*(px|pt|pc|mm|cm|in|em|ex|%)?\s*")
_SEPARATOR = re.compile(r"[\s,]+")
_PLACED = ("x", "y", "dy")
_LEFT_OUT = {"script": "scripts", "handler": "scripts", "metadata": "metadata"}
# elements whose content is drawn only where a `use` names it, if ever
_DEFINES = frozenset(("defs", "symbol", "clippath", "mask"))
_USED = re.compile(r"""<(?:[\w.-]+:)?use\b[^<>]*?\bhref\s*=\s*["']\s*#([^"'<>]+)""")
_STYLED = re.compile(r"(?<![\w-])(display|visibility)\s*:\s*([a-z-]+)", re.IGNORECASE)
_TEXT, _NOTES = ("text", "foreignobject"), ("title", "desc")


def parse_svg(request: ParseRequest) -> ParsedFile:
    """Raises InputError: too_deep, too_many_blocks. What stands before a fault is kept."""
    decoded = decode(request.data, declared=declared_encoding(request.data))
    reader = _SvgReader(decoded, request)
    reader.read()
    parsed = finish(
        request,
        decoded,
        reader.drafts,
        parser="svg",
        parser_version=PARSER_VERSION,
        title=reader.title,
        warnings=tuple(reader.warnings),
        metadata=reader.size,
    )
    if reader.fault:
        parsed.add_event("parse", "error", "parse_error", reader.fault)
    for name, count in sorted(reader.left_out.items()):
        parsed.add_event("parse", "warning", f"svg_{name}_dropped", f"{count} of them stand in the drawing")
    say_if_empty(parsed, bool(reader.fault))
    return parsed


@dataclass(slots=True)
class _Drawn:
    """How an open element is drawn: `gone` (with all inside), invisible, or only a definition; `told` once its text was counted."""

    gone: bool = False
    invisible: bool = False
    defined: bool = False
    told: bool = False

    @property
    def reason(self) -> str:
        """What its text is left out as; empty where it is drawn."""
        return "hidden" if self.gone or self.invisible else "definitions" if self.defined else ""


class _SvgReader(XmlReader):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.title = ""
        self.size: dict[str, Any] = {}
        self.left_out: dict[str, int] = {}
        self._drawn: list[_Drawn] = []
        self._used = set(_USED.findall(self.text)) if "<use" in self.text or ":use" in self.text else set()

    def _broken(self, what: str) -> None:
        self.fault = what
        self.warnings["broken_values"] = None

    def _start(self, name: str, flat: list[str]) -> None:
        super()._start(name, flat)
        element = self._open[-1]
        kind = _local(name)
        self._drawn.append(self._draws(kind, element.attributes))
        if len(self._open) == 1:
            self.size = _measure(element.attributes)
        if kind in _LEFT_OUT:
            self._leave_out(_LEFT_OUT[kind])
        handlers = sum(key[:2].lower() == "on" for key in element.attributes)
        if handlers:
            self._leave_out("scripts", handlers)
        if len(self._open) > 1 and any(key in element.attributes for key in _PLACED) and kind in ("tspan", "textpath"):
            self._open[-2].parts.append("\n")

    def _draws(self, kind: str, attributes: dict[str, str]) -> _Drawn:
        around = self._drawn[-1] if self._drawn else _Drawn()
        says = {name: attributes[name] for name in ("display", "visibility") if name in attributes}
        says |= {name.lower(): value for name, value in _STYLED.findall(attributes.get("style", ""))}
        seen = says.get("visibility", "").strip().lower()
        return _Drawn(
            around.gone or says.get("display", "").strip().lower() == "none",
            seen in ("hidden", "collapse") if seen in ("hidden", "collapse", "visible") else around.invisible,
            (around.defined or kind in _DEFINES) and attributes.get("id") not in self._used,
        )

    def _characters(self, text: str) -> None:
        drawn = self._drawn[-1]
        if drawn.reason and not text.isspace() and _local(self._open[-1].name) not in _NOTES and self._in_text():
            if not drawn.told:
                self._leave_out(drawn.reason)
            drawn.told = True
            return
        super()._characters(text.replace("\n", " "))  # a line ends where a part is placed anew

    def _leave_out(self, what: str, count: int = 1) -> None:
        self.left_out[what] = self.left_out.get(what, 0) + count

    def _end(self, name: str) -> None:
        end = self._at(self._data.index(b">", self._base + self._parser.CurrentByteIndex) + 1)
        element, drawn = self._open.pop(), self._drawn.pop()
        kind = _local(name)
        parent = self._open[-1] if self._open else None
        href = _href(element)
        if any(_local(around.name) in _LEFT_OUT for around in self._open):
            return
        if kind == "image" and (drawn.gone or drawn.invisible):
            self._leave_out("hidden")
        elif kind == "image":
            self._draw(element, href, end)
        elif kind in _NOTES:
            self._note(element, kind, end)
        elif kind in _TEXT:
            text = tidy("".join(element.parts))
            links = [*element.links, *(Link(link) for link in self._links_around())]
            self._add(Draft("paragraph", element.start, end, text, {"element": kind}, links, place={"xpath": element.path}))
        elif parent is not None and kind not in _LEFT_OUT and self._in_text():
            parent.parts += element.parts
            if kind in ("p", "div", "br", "li", "tr"):  # of a foreign object
                parent.parts.append("\n")
            parent.links += [*element.links, *([Link(href, tidy("".join(element.parts)))] if kind == "a" and href else [])]

    def _in_text(self) -> bool:
        return any(_local(around.name) in _TEXT for around in self._open)

    def _links_around(self) -> list[str]:
        """Targets of the links that the whole text stands in."""
        return [href for around in self._open if _local(around.name) == "a" and (href := _href(around))]

    def _note(self, element: Element, kind: str, end: int) -> None:
        text = tidy("".join(element.parts))
        if not text:
            return
        place = {"xpath": element.path}
        if kind == "title" and len(self._open) == 1 and not self.title:
            self.title = text
            self._add(Draft("heading", element.start, end, text, {"level": 1}, place=place))
            return
        self._add(Draft("paragraph", element.start, end, text, {"role": "title" if kind == "title" else "description"}, place=place))

    def _draw(self, element: Element, href: str, end: int) -> None:
        label = element.attributes.get("aria-label", "")
        draft = Draft("image", element.start, end, label, href=href, place={"xpath": element.path})
        if is_data_uri(href):
            draft.href, draft.data, about = read_data_uri(href)
            draft.metadata |= about | (image_size(draft.data) if draft.data else {})
        if href:
            self._add(draft)

    def _add(self, draft: Draft) -> None:
        self.drafts.append(draft)
        check_count(self.drafts, self.request)


def _local(name: str) -> str:
    return name.rpartition(":")[2].lower()


def _href(element: Element) -> str:
    return (element.attributes.get("href") or element.attributes.get("xlink:href") or "").strip()


def _measure(attributes: dict[str, str]) -> dict[str, Any]:
    """Width and height as written, where they are lengths, and the view box; the box is the size where none is written."""
    out: dict[str, Any] = {}
    for side in ("width", "height"):
        found = _NUMBER.fullmatch(attributes.get(side, "")[:50])
        if found is not None and found[2] != "%":
            out[side] = float(found[1])
            if found[2] not in (None, "px"):
                out[f"{side}_unit"] = found[2]
    parts = _SEPARATOR.split(attributes.get("viewBox", "")[:200].strip())
    try:
        box = [float(part) for part in parts]
    except ValueError:
        return out
    if len(box) == 4 and all(abs(value) < 1e9 for value in box) and min(box[2:]) >= 0:
        out["view_box"] = box
        out.setdefault("width", box[2])
        out.setdefault("height", box[3])
    return out
