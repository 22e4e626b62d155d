"""A segment of a streamed file: the place of its bytes in the whole, and what its parser has to know of the rest.

The invariant: segments tile their file, each begins where a record begins, and a parser that is given one makes the records and places that
it would make of the whole file: rows, lines and characters are those of the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from raydex.ir.file_range import FileRange
from raydex.kernels.csv_dialect import CsvDialect
from raydex.kernels.decode import Decoded, decode_as

STREAMED = (
    "text/csv",
    "text/tab-separated-values",
    "application/jsonl",
    "text/x-log",
    "application/xml",
)


@dataclass(frozen=True, slots=True)
class Segment:
    """`row` records stand before it (a header is none); it holds `records` and `lines`. `columns` and `width` are those of the header and
    the first record of the file; `leads`: the header is in this segment. Of XML: the root's start tag (`opening`) and name, how many
    elements of each name below the root stand `before`, and whether this segment `closes` the root."""

    place: FileRange
    row: int
    records: int
    lines: int
    content_hash: str
    encoding: str
    dialect: CsvDialect | None = None
    columns: list[str] = field(default_factory=list)
    width: int = 0
    leads: bool = False
    opening: str = ""
    root: str = ""
    before: dict[str, int] = field(default_factory=dict)
    closes: bool = False

    def name(self) -> str:
        """What people see of it: the rows of a table, else the lines."""
        if self.opening:
            return f"elements {self.row + 1}-{self.row + self.records}"
        if self.dialect is not None and self.records:
            return f"rows {self.row + 1}-{self.row + self.records}"
        return f"lines {self.place.line + 1}-{self.place.line + max(self.lines, 1)}"


@dataclass(slots=True)
class StreamPlan:
    """`records` counts those of all segments; `header` is the text of the header line; `content_hash` that of the bytes that were read."""

    media_type: str
    size: int
    encoding: str = ""
    warnings: list[str] = field(default_factory=list)
    records: int = 0
    dialect: CsvDialect | None = None
    columns: list[str] = field(default_factory=list)
    header: str = ""
    open_quotes: list[int] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    content_hash: str = ""


def dump_segment(segment: Segment) -> str:
    return orjson.dumps(segment).decode()


def load_segment(text: str | bytes) -> Segment:
    return segment_of(orjson.loads(text))


def segment_of(value: dict[str, Any]) -> Segment:
    """From the plain values that JSON keeps."""
    dialect = value["dialect"]
    return Segment(**{**value, "place": FileRange(**value["place"]), "dialect": CsvDialect(**dialect) if dialect else None})


def decode_segment(data: bytes, segment: Segment) -> Decoded:
    """The text of a segment in the encoding of its file."""
    decoded = Decoded(decode_as(data, segment.encoding), segment.encoding)
    if segment.encoding == "utf-8" and "\ufffd" in decoded.text:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            decoded.warnings.append("invalid_utf8")
    if "\x00" in decoded.text:
        decoded.warnings.append("nul_replaced")
    return decoded
