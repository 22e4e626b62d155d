"""Binary workbooks (BIFF8) record by record, since no library that is installed writes them."""

from __future__ import annotations

import struct
from typing import Any

from container_files import compound_file

DATE, TIME, MOMENT, GENERAL = 1, 2, 3, 0
_FORMATS = (0, 14, 20, 22)  # number formats of the looks above, as the format numbers them
VISIBLE, HIDDEN, VERY_HIDDEN = 0, 1, 2

Cells = dict[tuple[int, int], Any]


def record(kind: int, data: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def _text(text: str, length: str = "<H") -> bytes:
    return struct.pack(length, len(text)) + b"\x01" + text.encode("utf-16-le")


def _cell(row: int, column: int, value: Any) -> bytes:
    look = GENERAL
    if isinstance(value, tuple):
        value, look = value
    place = struct.pack("<HHH", row, column, look)
    if isinstance(value, bool):
        return record(0x205, place + bytes((value, 0)))
    if isinstance(value, bytes):  # an error's code
        return record(0x205, place + value + b"\x01")
    if isinstance(value, (int, float)):
        return record(0x203, place + struct.pack("<d", value))
    return record(0x204, place + _text(value))


def sheet_stream(cells: Cells, merges: list[tuple[int, int, int, int]] = []) -> bytes:  # noqa: B006
    """Rows and columns count from 0; a merge is first row, last row, first column, last column."""
    rows = max((row for row, _ in cells), default=-1) + 1
    columns = max((column for _, column in cells), default=-1) + 1
    out = record(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0, 1997, 0, 0)) + record(0x200, struct.pack("<IIHHH", 0, rows, 0, columns, 0))
    out += b"".join(_cell(row, column, value) for (row, column), value in sorted(cells.items()))
    if merges:
        out += record(0xE5, struct.pack("<H", len(merges)) + b"".join(struct.pack("<HHHH", *merge) for merge in merges))
    return out + record(0x0A)


def biff(*sheets: tuple[str, int, bytes], date1904: bool = False, extra: bytes = b"") -> bytes:
    """A workbook of sheets (name, state, stream); `extra` are further records of the globals."""
    head = record(0x809, struct.pack("<HHHHII", 0x600, 5, 0, 1997, 0, 0)) + extra + record(0x42, struct.pack("<H", 1200))
    head += record(0x22, struct.pack("<H", date1904))
    head += b"".join(record(0xE0, struct.pack("<HHH", 0, form, 0) + bytes(14)) for form in _FORMATS)
    listed = [_text(name, "<B") for name, _, _ in sheets]
    at = len(head) + sum(4 + 6 + len(text) for text in listed) + 4
    for text, (_, state, stream) in zip(listed, sheets, strict=True):
        head += record(0x85, struct.pack("<IBB", at, state, 0) + text)
        at += len(stream)
    stream = head + record(0x0A) + b"".join(stream for _, _, stream in sheets)
    return compound_file({"Workbook": stream.ljust(4096, b"\0")})
