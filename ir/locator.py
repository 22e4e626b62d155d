"""One `Locator` for every kind of source, with one canonical string; never empty.

Units (contracts 9): characters are code points of the decoded text (BOM removed, line ends untouched), end exclusive; bytes likewise;
lines, pages, slides, rows and paragraphs (as they are read, those of cells too) are 1-based and inclusive; boxes are x0, y0, x1, y1 from
the upper left corner of the upright page in points (pixels for images).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, fields
from itertools import accumulate, repeat
from operator import add, attrgetter
from typing import Any
from urllib.parse import quote, unquote

from raydex.ir.errors import InputError

_SAFE = "/:.,-_+#$@!~*()[] "
_NEEDS_NO_QUOTE = re.compile(r"[A-Za-z0-9/:.,\-_+#$@!~*()\[\] ]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Locator:
    """Where something stands in its source. The field order is the order of the canonical string."""

    part: str | None = None  # MIME part number, "1.2"; in an Outlook message body, html, rtf or attach.0
    member: str | None = None  # path inside a container
    page: int | None = None
    bbox: tuple[float, float, float, float] | None = None
    slide: int | None = None
    shape: int | None = None
    sheet: str | None = None
    cells: str | None = None  # A1 range
    row: int | None = None
    pointer: str | None = None  # RFC 6901
    xpath: str | None = None  # element path
    comment: str | None = None
    field: str | None = None  # a named part of a ticket or record
    paragraph: int | None = None
    note: int | None = None
    table: int | None = None
    image: int | None = None
    char: tuple[int, int] | None = None
    byte: tuple[int, int] | None = None
    line: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if _VALUES(self).count(None) == len(_FIELDS):
            raise InputError("a locator must say where: all of its fields are empty")
        if self.bbox is not None:
            object.__setattr__(self, "bbox", _rounded(self.bbox))
        for name in ("char", "byte", "line"):
            span = getattr(self, name)
            if span is not None:
                _check_span(name, span)

    def __str__(self) -> str:
        parts: list[str] = []
        for name, value in zip(_FIELDS, _VALUES(self), strict=True):
            if value is None:
                continue
            if name == "bbox":
                text = ",".join(f"{v:.2f}" for v in value)
            elif name in _SPANS:
                text = f"{value[0]}-{value[1]}"
            elif name in _INTS:
                text = str(value)
            else:
                text = value if _NEEDS_NO_QUOTE.fullmatch(value) else quote(value, safe=_SAFE)
            parts.append(f"{name}={text}")
        return ";".join(parts)

    @classmethod
    def parse(cls, text: str) -> Locator:
        """Inverse of `str`. Raises InputError with the part that is not understood."""
        values: dict[str, object] = {}
        for part in text.split(";"):
            name, eq, raw = part.partition("=")
            if not eq or name not in _FIELDS or name in values:
                raise InputError(f"locator part {part!r} is not understood", place=text)
            try:
                if name == "bbox":
                    x0, y0, x1, y1 = (float(v) for v in raw.split(","))
                    values[name] = (x0, y0, x1, y1)
                elif name in _SPANS:
                    start, _, end = raw.partition("-")
                    values[name] = (int(start), int(end))
                elif name in _INTS:
                    values[name] = int(raw)
                else:
                    values[name] = unquote(raw)
            except ValueError as error:
                raise InputError(f"locator part {part!r} is not understood", place=text) from error
        return cls(**values)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, object]:
        """The object form that `--json` prints: only the fields that are set."""
        out: dict[str, object] = {}
        for name in _FIELDS:
            value = getattr(self, name)
            if value is not None:
                out[name] = list(value) if isinstance(value, tuple) else value
        return out

    def slice_text(self, text: str) -> str | None:
        """The source's own text at this place, from the decoded text; None where the format has no character or line range."""
        if self.char is not None:
            return text[self.char[0] : self.char[1]]
        if self.line is not None:
            return "".join(split_lines(text)[self.line[0] - 1 : self.line[1]])
        return None


_FIELDS: tuple[str, ...] = tuple(f.name for f in fields(Locator))
_VALUES = attrgetter(*_FIELDS)
_SPANS = frozenset({"char", "byte", "line"})
_INTS = frozenset({"page", "slide", "shape", "row", "paragraph", "note", "table", "image"})
_SETTER_OF = {name: Locator.__dict__[name].__set__ for name in _FIELDS}
_SETTERS = tuple(_SETTER_OF.values())
_SET_PAGE = _SETTER_OF["page"]
_SET_BBOX = _SETTER_OF["bbox"]


def _rounded(box: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(round(float(v), 2) + 0.0 for v in box)


def _check_span(name: str, span: tuple[int, int]) -> None:
    if span[0] < (1 if name == "line" else 0) or span[1] < span[0]:
        raise InputError(f"locator {name} range {span[0]}-{span[1]} is not a range")


def locator_of(place: dict[str, Any]) -> Locator:
    """`Locator(**place)` at a third of its cost: documents have one a block. Raises InputError as it does."""
    locator = object.__new__(Locator)
    for set_field in _SETTERS:
        set_field(locator, None)
    empty = True
    for name, value in place.items():
        if value is not None:
            empty = False
            if name in _SPANS:
                _check_span(name, value)
            _SETTER_OF[name](locator, _rounded(value) if name == "bbox" else value)
    if empty:
        raise InputError("a locator must say where: all of its fields are empty")
    return locator


def page_box(page: int, x0: float, y0: float, x1: float, y1: float) -> Locator:
    """`Locator(page=page, bbox=(x0, y0, x1, y1))` at a fifth of its cost: documents have one a block."""
    locator = object.__new__(Locator)
    for set_field in _SETTERS:
        set_field(locator, None)
    _SET_PAGE(locator, page)
    _SET_BBOX(locator, (round(x0, 2) + 0.0, round(y0, 2) + 0.0, round(x1, 2) + 0.0, round(y1, 2) + 0.0))
    return locator


_LINE_END = re.compile(r"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    r"""Lines with their ends; a line ends at \n, \r\n or \r and nothing else (`str.splitlines` also splits at \f, U+2028 …)."""
    if "\r" not in text:
        lines = [line + "\n" for line in text.split("\n")]
        last = lines.pop()[:-1]
        return [*lines, last] if last else lines
    lines = []
    start = 0
    for found in _LINE_END.finditer(text):
        lines.append(text[start : found.end()])
        start = found.end()
    if start < len(text):
        lines.append(text[start:])
    return lines


class LineIndex:
    """Character offset → 1-based line, for one decoded text."""

    __slots__ = ("_starts",)

    def __init__(self, text: str) -> None:
        starts = [0]
        if "\r" in text:
            starts += [found.end() for found in _LINE_END.finditer(text)]
        else:
            starts += accumulate(map(add, map(len, text.split("\n")), repeat(1)))
            starts.pop()
        if len(starts) > 1 and starts[-1] == len(text):
            starts.pop()
        self._starts = starts

    def line_of(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def start_of(self, line: int) -> int:
        """Offset of the first character of a 1-based line."""
        return self._starts[line - 1]

    def __len__(self) -> int:
        return len(self._starts)
