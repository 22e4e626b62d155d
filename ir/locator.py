"""One `Locator` for every kind of source, with one canonical string; never empty.

Units (contracts 9): characters are code points of the decoded text (BOM removed, line ends untouched), end exclusive; bytes likewise;
lines, pages, slides and rows are 1-based and inclusive; boxes are x0, y0, x1, y1 from the upper left corner of the upright page in
points (pixels for images).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, fields
from urllib.parse import quote, unquote

from raydex.ir.errors import InputError

_SAFE = "/:.,-_+#$@!~*()[] "


@dataclass(frozen=True, slots=True, kw_only=True)
class Locator:
    """Where something stands in its source. The field order is the order of the canonical string."""

    part: str | None = None  # MIME part number, "1.2"
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
    note: int | None = None
    table: int | None = None
    image: int | None = None
    char: tuple[int, int] | None = None
    byte: tuple[int, int] | None = None
    line: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if all(getattr(self, name) is None for name in _FIELDS):
            raise InputError("a locator must say where: all of its fields are empty")
        if self.bbox is not None:
            object.__setattr__(self, "bbox", tuple(round(float(v), 2) + 0.0 for v in self.bbox))
        for name in ("char", "byte", "line"):
            span = getattr(self, name)
            if span is not None and (span[0] < (1 if name == "line" else 0) or span[1] < span[0]):
                raise InputError(f"locator {name} range {span[0]}-{span[1]} is not a range")

    def __str__(self) -> str:
        parts: list[str] = []
        for name in _FIELDS:
            value = getattr(self, name)
            if value is None:
                continue
            if name == "bbox":
                text = ",".join(f"{v:.2f}" for v in value)
            elif name in _SPANS:
                text = f"{value[0]}-{value[1]}"
            elif name in _INTS:
                text = str(value)
            else:
                text = quote(value, safe=_SAFE)
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
_SPANS = frozenset({"char", "byte", "line"})
_INTS = frozenset({"page", "slide", "shape", "row", "note", "table", "image"})
_SETTERS = tuple(Locator.__dict__[name].__set__ for name in _FIELDS)
_SET_PAGE = Locator.__dict__["page"].__set__
_SET_BBOX = Locator.__dict__["bbox"].__set__


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
    lines: list[str] = []
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
            at = text.find("\n") + 1
            while at:
                starts.append(at)
                at = text.find("\n", at) + 1
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
