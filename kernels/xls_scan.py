"""The records of a binary workbook (.xls), read once over → what `xls` must know before and beside the library that reads the values.

The invariant: the work is linear in the stream, each record is looked at once, and nothing in it is followed; an encrypted workbook and
one whose cells lie too far apart are refused before anything is laid out.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass, field
from typing import Any

import olefile

from raydex.ir.errors import InputError, LimitError
from raydex.kernels.request import ParseRequest

MOST_PLACES = 8_000_000  # from the first to the last cell of all sheets: the library lays them out, empty ones too
ERRORS = {0x00: "#NULL!", 0x07: "#DIV/0!", 0x0F: "#VALUE!", 0x17: "#REF!", 0x1D: "#NAME?", 0x24: "#NUM!", 0x2A: "#N/A"}
_STREAMS = ("Workbook", "Book")
_BROKEN = (OSError, ValueError, IndexError, KeyError, AttributeError, TypeError, OverflowError, struct.error)
_FORMULA, _EOF, _BOUND_SHEET, _FILE_PASS, _ERROR_VALUE = 0x0006, 0x000A, 0x0085, 0x002F, 0x0205
_BEGINNINGS = (0x0009, 0x0209, 0x0409, 0x0809)
# records of a cell: row and column come first
_CELLS = frozenset((_FORMULA, 0x0201, 0x0203, 0x0204, _ERROR_VALUE, 0x027E, 0x00BD, 0x00BE, 0x00D6, 0x00FD, 0x0406, 0x0206))


@dataclass(slots=True)
class SheetScan:
    """`errors`: shown text of the cells that hold an error, by row and column from 0. `formulas` counts cells that are computed."""

    errors: dict[tuple[int, int], str] = field(default_factory=dict)
    formulas: int = 0
    top: int = 1 << 20
    left: int = 1 << 20
    bottom: int = -1
    right: int = -1

    @property
    def places(self) -> int:
        return (self.bottom - self.top + 1) * (self.right - self.left + 1) if self.bottom >= 0 else 0

    def add(self, row: int, column: int) -> None:
        self.top, self.bottom = min(self.top, row), max(self.bottom, row)
        self.left, self.right = min(self.left, column), max(self.right, column)


def scan_workbook(request: ParseRequest) -> list[SheetScan]:
    """Sheets in the workbook's order. Raises InputError: invalid_input, encrypted, too_large."""
    stream = _stream(request)
    sheets: list[SheetScan] = []
    begins: dict[int, int] = {}
    current: SheetScan | None = None
    depth = at = cells = 0
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        body = stream[at + 4 : at + 4 + size]
        if kind in _BEGINNINGS:
            depth += 1
            if at in begins:
                current, depth = sheets[begins[at]], 1
        elif kind == _EOF:
            depth = max(0, depth - 1)
            current = current if depth else None
        elif kind == _FILE_PASS:
            raise InputError("the workbook is encrypted", reject_class="encrypted", place=request.path, remedy="Remove its password")
        elif kind == _BOUND_SHEET and len(body) >= 4:
            begins.setdefault(struct.unpack_from("<I", body)[0], len(sheets))
            sheets.append(SheetScan())
        elif kind in _CELLS and current is not None and depth == 1 and len(body) >= 6:
            cells += 1
            _take(current, kind, body)
        at += 4 + size
    _check(sheets, cells, request)
    return sheets


def _stream(request: ParseRequest) -> bytes:
    try:
        with olefile.OleFileIO(io.BytesIO(request.data)) as ole:
            name = next((name for name in _STREAMS if ole.exists(name)), None)
            if name is not None:
                found: Any = ole.openstream(name).read()
                return bytes(found)
            encrypted = ole.exists("EncryptedPackage")
    except _BROKEN as error:
        raise InputError(f"the compound file is broken: {type(error).__name__}", place=request.path) from error
    if encrypted:
        raise InputError("the workbook is encrypted", reject_class="encrypted", place=request.path, remedy="Remove its password")
    raise InputError("the compound file holds no workbook", place=request.path)


def _take(sheet: SheetScan, kind: int, body: bytes) -> None:
    row, column = struct.unpack_from("<HH", body)
    sheet.add(row, column)
    if kind in (0x00BD, 0x00BE) and len(body) >= 6:  # several cells of a row: the last column comes last
        sheet.add(row, max(column, struct.unpack_from("<H", body, len(body) - 2)[0]))
    elif kind == _ERROR_VALUE and len(body) >= 8 and body[7] == 1:
        sheet.errors[row, column] = ERRORS.get(body[6], "#UNKNOWN!")
    elif kind == _FORMULA:
        sheet.formulas += 1
        if len(body) >= 14 and body[12:14] == b"\xff\xff" and body[6] == 2:
            sheet.errors[row, column] = ERRORS.get(body[8], "#UNKNOWN!")


def _check(sheets: list[SheetScan], cells: int, request: ParseRequest) -> None:
    if cells > 2 * request.limits.cells:  # cells that only have a look count here
        message = f"{cells} cells are more than twice limits.cells ({request.limits.cells})"
        raise LimitError(message, reject_class="too_large", place=request.path, remedy="Split the workbook or raise limits.cells")
    places = sum(sheet.places for sheet in sheets)
    if places > MOST_PLACES:
        message = f"the cells lie so far apart that {places} places are between them, more than {MOST_PLACES}"
        raise LimitError(message, reject_class="too_large", place=request.path, remedy="Save the workbook as xlsx")
