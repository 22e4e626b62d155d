"""XML → DocumentIR by expat: text in document order, with the element path and the place of everything; nothing is expanded or fetched.

An element with text of its own is a paragraph with all that is inside it; elements that hold nothing but named values are a record, a line
a value. The invariant: each character of text is in one block, in order; the locator of a block is the path of its element (names as
written, with a number where siblings share a name) and its range in the decoded text. Entities other than XML's own are not expanded,
and a document type is named, not obeyed. A page in Confluence's storage format is handed on.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from raydex.ir.document import Link
from raydex.ir.errors import LimitError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.confluence import parse_storage
from raydex.kernels.confluence_rules import is_storage_format
from raydex.kernels.datum import PIECE
from raydex.kernels.decode import Decoded, declared_encoding, decode
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.request import ParseRequest
from raydex.kernels.segment import decode_segment

PARSER_VERSION = "1"
_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")
_SPACE = re.compile(r"\s+")
FIELD = 200  # characters of a value in a record at most
_LINKS = frozenset(("href", "xlink:href", "src", "url"))


@dataclass(slots=True)
class Element:
    """An open element. `parts` is its inline text so far; `values` what has been gathered for its record, under `names`."""

    name: str
    path: str
    start: int
    attributes: dict[str, str]
    parts: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    seen: Counter[str] = field(default_factory=Counter)
    has_text: bool = False
    has_children: bool = False


@dataclass(slots=True)
class Value:
    """An element that holds one short text, or only attributes."""

    element: Element
    end: int
    text: str


def _attributes(element: Element) -> str:
    return " ".join(f"{name}={value}" for name, value in element.attributes.items())


def parse_xml(request: ParseRequest) -> ParsedFile:
    """Raises InputError: unsupported_media_type, too_deep, too_many_blocks. What stands before a fault is kept, and the rest as it is."""
    segment = request.segment
    decoded = (
        decode_segment(request.data, segment) if segment is not None else decode(request.data, declared=declared_encoding(request.data))
    )
    if segment is None and is_storage_format(decoded.text):
        return parse_storage(request, decoded)
    reader = XmlReader(decoded, request)
    reader.read()
    parsed = finish(
        request,
        decoded,
        reader.drafts,
        parser="xml",
        parser_version=PARSER_VERSION,
        warnings=tuple(reader.warnings),
        metadata={"root": reader.root, "namespaces": reader.namespaces},
    )
    if reader.fault:
        parsed.add_event("parse", "error", "parse_error", reader.fault)
    return parsed


class XmlReader:
    def __init__(self, decoded: Decoded, request: ParseRequest) -> None:
        self.text = decoded.text
        self.request = request
        self.drafts: list[Draft] = []
        self.warnings: dict[str, None] = {}
        self.namespaces: dict[str, str] = {}
        self.root = self.fault = ""
        head = _DECLARATION.match(self.text)
        # the declaration names the encoding of the file, and expat gets UTF-8
        self._data = (" " * head.end() + self.text[head.end() :] if head else self.text).encode()
        self._plain = self._data.isascii()
        self._byte = self._char = 0
        self._open: list[Element] = []
        self._done = 0

    def read(self) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.SkippedEntityHandler = self._skipped
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity
        parser.UseForeignDTD(True)  # an unknown entity is skipped and said, not an error
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self._parser = parser
        segment = self.request.segment
        opening = segment.opening.encode() if segment is not None and not segment.leads else b""
        closing = f"</{segment.root}>".encode() if segment is not None and not segment.closes else b""
        lead = len(self._data) - len(self._data.lstrip())
        self._base = lead - len(opening)
        try:
            parser.Parse(opening + self._data[lead:] + closing, True)
        except expat.ExpatError as error:
            before = segment.place.line if segment is not None else 0
            line = self._data.count(b"\n", 0, max(0, self._base + parser.ErrorByteIndex)) + 1 + before
            self._broken(f"line {line}: {expat.ErrorString(error.code)}")
        except _Refused as refused:
            self._broken(str(refused))

    def _broken(self, what: str) -> None:
        """What has not become a block yet stays as it is written."""
        self.fault = what
        self.warnings["broken_values"] = None
        rest = self.text[self._done :]
        start = self._done + len(rest) - len(rest.lstrip())
        if rest.strip():
            about = {"language": "xml", "broken": True}
            path = self._open[0].path if self._open else "/"
            self.drafts.append(Draft("code", start, start + len(rest.strip()), rest.strip(), about, place={"xpath": path}, section=[]))

    def _at(self, offset: int) -> int:
        """Code points before a byte; asked for in ascending order. What stands outside of a segment is at its edge."""
        offset = min(max(offset, 0), len(self._data))
        if self._plain:
            return offset
        self._char += len(self._data[self._byte : offset].decode())
        self._byte = offset
        return self._char

    def _start(self, name: str, flat: list[str]) -> None:
        attributes = dict(zip(flat[::2], flat[1::2], strict=True))
        if len(self._open) >= self.request.limits.depth:
            raise LimitError(f"nested deeper than limits.depth ({self.request.limits.depth})", reject_class="too_deep")
        for key, value in attributes.items():
            if key.partition(":")[0] == "xmlns":
                self.namespaces.setdefault(key.partition(":")[2], value)
        parent = self._open[-1] if self._open else None
        path = f"/{name}"
        seen: Counter[str] = Counter()
        if parent is None:
            self.root = name
            if self.request.segment is not None:
                seen.update(self.request.segment.before)
        else:
            parent.has_children = True
            parent.seen[name] += 1
            path = f"{parent.path}/{name}[{parent.seen[name]}]"
        shown = {key: value for key, value in attributes.items() if key.partition(":")[0] != "xmlns"}
        self._open.append(Element(name, path, self._at(self._base + self._parser.CurrentByteIndex), shown, seen=seen))

    def _characters(self, text: str) -> None:
        element = self._open[-1]
        element.parts.append(text)
        if not element.has_text and not text.isspace():
            element.has_text = True

    def _end(self, name: str) -> None:
        at = self._base + self._parser.CurrentByteIndex  # of `</`, or behind an element without content
        if self._data.startswith(b"</", max(0, at)):
            at = self._data.index(b">", at) + 1
        end = self._at(at)
        element = self._open.pop()
        parent = self._open[-1] if self._open else None
        links = [Link(value) for key, value in element.attributes.items() if key.lower() in _LINKS]
        element.links += links
        if parent is not None and parent.has_text:
            # inline: part of the paragraph around it
            inner = "".join(element.parts) if element.has_text else ""
            parent.parts.append(inner or "\n")
            parent.links += element.links
            return
        if element.has_text:
            text = tidy("".join(element.parts))
            if parent is not None and not element.has_children and "\n" not in text and len(text) <= FIELD:
                self._value(element, parent, end, text)
            else:
                self._emit(element, element.start, end, text)
        elif not element.has_children and element.attributes:
            self._value(element, parent, end, "")
        self._record(element)

    def _value(self, element: Element, parent: Element | None, end: int, text: str) -> None:
        """A short value: a line of the record around it, unless the record has one of this name already."""
        if parent is None:
            self._emit(element, element.start, end, text or _attributes(element))
            return
        if parent.values and (element.name in parent.names or end - parent.values[0].element.start > PIECE):
            self._record(parent)
        parent.names.add(element.name)
        parent.values.append(Value(element, end, text))

    def _record(self, element: Element) -> None:
        """The values gathered in an element become a block; a lone one of an element without attributes stands under its own path."""
        values, element.values = element.values, []
        element.names.clear()
        if not values:
            return
        if len(values) == 1 and values[0].text and not element.attributes:
            self._emit(values[0].element, values[0].element.start, values[0].end, values[0].text)
            return
        lines = [_attributes(element)] if element.attributes else []
        for value in values:
            own = f" {_attributes(value.element)}" if value.element.attributes else ""
            lines.append(f"{value.element.name}{own}: {value.text}" if value.text else f"{value.element.name}{own}")
        links = [link for value in values for link in value.element.links]
        self._emit(element, values[0].element.start, values[-1].end, "\n".join(lines), links)

    def _emit(self, element: Element, start: int, end: int, text: str, links: list[Link] | None = None) -> None:
        for around in self._open:
            self._record(around)  # what was gathered before stands before it
        section = [step.partition("[")[0] for step in element.path.split("/")[1:]]
        metadata: dict[str, Any] = {"element": element.name}
        if element.attributes:
            metadata["attributes"] = element.attributes
        links = element.links if links is None else links
        self.drafts.append(Draft("paragraph", start, end, text, metadata, links, place={"xpath": element.path}, section=section))
        self._done = max(self._done, end)
        check_count(self.drafts, self.request)

    def _skipped(self, name: str, is_parameter: bool) -> None:
        self.warnings["entity_ignored"] = None
        if not is_parameter and self._open:
            self._characters(f"&{name};")

    def _doctype(self, name: str, system: str | None, public: str | None, has_internal: bool) -> None:
        if has_internal or system or public:
            self.warnings["doctype_ignored"] = None

    def _entity(self, name: str, *_: object) -> None:
        raise _Refused(f"the document declares the entity {name[:80]!r}: entities are not expanded")


class _Refused(Exception):
    """A document that asks for what is not done."""


def tidy(text: str) -> str:
    """Runs of white space as one space; a break that an empty element made stays."""
    lines = [_SPACE.sub(" ", line).strip() for line in text.split("\n")]
    return "\n".join(line for line in lines if line)
