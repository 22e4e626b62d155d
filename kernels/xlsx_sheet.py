"""The XML of one worksheet → a `Sheet`: values as shown, formulas, merged cells, links, filters, frozen and hidden rows.

Rows are read one after the other and let go; area that is only declared costs nothing. The invariant: a cell's text is what its number
format shows of the stored value; a formula without a stored value shows itself, marked as not computed; never more cells than
`limits.cells` and characters than `limits.text_bytes`, all sheets of a workbook together.
"""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from raydex.kernels.package import Package, Relation
from raydex.kernels.serial_date import to_serial
from raydex.kernels.sheet import (
    BOOLEAN,
    DATE,
    ERROR,
    MAX_COLUMN,
    MAX_ROW,
    NUMBER,
    TEXT,
    CellBudget,
    Sheet,
    SheetCell,
    SheetRow,
    column_name,
    column_number,
    read_area,
    read_cell,
)
from raydex.kernels.xlsx_styles import PLAIN, CellLook

_TAGS = ("row", "mergeCell", "hyperlink", "col", "pane", "autoFilter", "tablePart", "drawing")
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_HYPERLINK = re.compile(r'\s*(?:_xlfn\.)?HYPERLINK\(\s*"((?:[^"]|"")*)"', re.IGNORECASE)
_REFERENCE = re.compile(r"""("(?:[^"]|"")*"|'(?:[^']|'')*'!)|(?<![\w.$])(\$?)([A-Z]{1,3})(\$?)([0-9]{1,7})(?![\w(.])""")
_FORMULA_CHARS = 20_000_000  # of all formulas kept; a shared one is written out for each of its cells
_YES = ("1", "true", "on")


@dataclass(slots=True)
class Book:
    """What the sheets of one workbook share, and what was counted while they were read."""

    budget: CellBudget
    package: Package
    looks: dict[str, CellLook] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)
    date1904: bool = False
    not_computed: int = 0
    lost_strings: int = 0
    bad_places: int = 0
    lost_formulas: int = 0
    formula_room: int = _FORMULA_CHARS


@dataclass(slots=True)
class SheetParts:
    """Relation ids that a sheet names: of its tables and its drawing."""

    tables: list[str] = field(default_factory=list)
    drawing: str = ""


def read_strings(package: Package, name: str) -> list[str]:
    """The shared strings. Raises KeyError, InputError."""
    return [rich_text(item) for item in package.stream(name, "si")]


def rich_text(item: Any) -> str:
    """Text of runs, without phonetic guides."""
    if len(item) == 1 and item[0].tag.endswith("}t"):
        return unescape(item[0].text or "")
    parts: list[str] = []
    for child in item:
        tag = child.tag
        if tag.endswith("}t"):
            parts.append(child.text or "")
        elif tag.endswith("}r"):
            parts += [run.text or "" for run in child if run.tag.endswith("}t")]
    return unescape("".join(parts))


def unescape(text: str) -> str:
    """`_x000D_` stands for a character that XML cannot hold."""
    if "_x" in text:
        text = _ESCAPE.sub(lambda found: chr(int(found[1], 16) or 0xFFFD), text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\r\n", "\n") if "\r" in text else text


def relation_id(element: Any) -> str:
    return next((value for name, value in element.attrib.items() if name.endswith("}id")), "")


class SheetReader:
    """Reads one sheet of a book into `sheet`; `parts` are the relations it names."""

    def __init__(self, book: Book, sheet: Sheet, relations: dict[str, Relation]) -> None:
        self.book = book
        self.sheet = sheet
        self.relations = relations
        self.parts = SheetParts()
        self._row = 0
        self._ordered = True
        self._shared: dict[str, tuple[str, int, int]] = {}  # formula, row, column

    def read(self, name: str) -> None:
        """Raises KeyError, InputError; what was read before an error stands."""
        try:
            for element in self.book.package.stream(name, *_TAGS):
                self._take(element, element.tag.rpartition("}")[2])
        finally:
            if not self._ordered:
                _put_in_order(self.sheet)

    def _take(self, element: Any, tag: str) -> None:
        sheet = self.sheet
        if tag == "row":
            self._read_row(element)
        elif tag == "mergeCell":
            area = read_area(element.get("ref", ""))
            if area is not None and area[:2] != area[2:]:
                sheet.merges[area[:2]] = area[2:]
        elif tag == "hyperlink":
            self._read_link(element)
        elif tag == "col":
            first, last = _count(element.get("min")), _count(element.get("max"))
            if element.get("hidden") in _YES and 0 < first <= last:
                sheet.hidden_columns.append((first, min(last, MAX_COLUMN)))
        elif tag == "pane":
            if element.get("state", "").startswith("frozen"):
                sheet.frozen = _count((element.get("ySplit") or "").partition(".")[0])
        elif tag == "autoFilter":
            area = read_area(element.get("ref", ""))
            if area is not None:
                sheet.filters.append(area)
        elif tag == "tablePart":
            self.parts.tables.append(relation_id(element))
        else:
            self.parts.drawing = relation_id(element)

    def _read_link(self, element: Any) -> None:
        area = read_area(element.get("ref", ""))
        if area is None:
            return
        relation = self.relations.get(relation_id(element))
        href, place = relation.target if relation is not None else "", element.get("location")
        self.sheet.links[area[:2]] = f"{href}#{place}" if place else href

    def _read_row(self, element: Any) -> None:
        label = element.get("r")
        number = _count(label) if label is not None else self._row + 1
        if not 0 < number <= MAX_ROW:
            self.book.bad_places += 1
            return
        self._ordered &= number > self._row
        self._row = number
        if element.get("hidden") in _YES:
            _extend(self.sheet.hidden_rows, number)
        label = str(number)
        size = len(label)
        column = last = 0
        cells: list[SheetCell] = []
        for item in element:
            place = item.get("r")
            if place is None:
                column += 1
            else:
                column = column_number(place[:-size]) if place.endswith(label) else (read_cell(place) or (0, 0))[1]
            if len(item) == 0:
                continue
            if not 0 < column <= MAX_COLUMN:
                self.book.bad_places += 1
                column = 0
                continue
            cell = self._read_cell(item, number, column)
            if cell is not None:
                cells.append(cell)
                self._ordered &= column > last
                last = column
        if cells:
            self.book.budget.charge(cells)
            self.sheet.rows.append(SheetRow(number, cells))

    def _read_cell(self, item: Any, row: int, column: int) -> SheetCell | None:
        book = self.book
        kind = item.get("t", "n")
        index = item.get("s")
        look = PLAIN if index is None else book.looks.get(index, PLAIN)
        value: str | None = None
        stored = False
        formula = ""
        for child in item:
            letter = child.tag[-1]
            if letter == "v":
                value = child.text
                stored = True
            elif letter == "f":
                formula = self._read_formula(child, row, column)
            elif letter == "s":
                value = rich_text(child)
        if not value:
            if not formula or (stored and kind == "str"):
                return None
            book.not_computed += 1
            return SheetCell(column, formula, NUMBER, look.style, formula, False)
        text, shown_as = self._show(value, kind, look)
        if not text or text.isspace():
            return None
        if formula:
            book.formula_room -= len(formula)
            if book.formula_room < 0:
                book.lost_formulas += 1
                formula = ""
        return SheetCell(column, text, shown_as, look.style, formula)

    def _show(self, value: str, kind: str, look: CellLook) -> tuple[str, str]:
        """The text of a stored value, and its kind."""
        book = self.book
        if kind == "s":
            at = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else len(book.strings)
            if at >= len(book.strings):
                book.lost_strings += 1
                return "", TEXT
            text = book.strings[at]
            return (text if look.format.text is None else look.format.show_text(text)), TEXT
        if kind == "n":
            if look.format.general and value.isdigit() and len(value) < 16:
                return value, NUMBER
            return self._show_number(value, look), DATE if look.format.is_date else NUMBER
        if kind in ("str", "inlineStr"):
            text = unescape(value) if kind == "str" else value
            return (text if look.format.text is None else look.format.show_text(text)), TEXT
        if kind == "b":
            return ("TRUE" if value.strip() in _YES else "FALSE"), BOOLEAN
        if kind == "d":
            try:
                moment = datetime.datetime.fromisoformat(value).replace(tzinfo=None)
            except ValueError:
                return value, DATE
            return (look.format.show(to_serial(moment)) if look.format.is_date else value), DATE
        return value, ERROR if kind == "e" else TEXT

    def _show_number(self, value: str, look: CellLook) -> str:
        try:
            number = float(value)
        except ValueError:
            return value
        return look.format.show(number, self.book.date1904) if math.isfinite(number) else value

    def _read_formula(self, element: Any, row: int, column: int) -> str:
        """The formula with its =. One that is shared is written out at its first cell and moved for the others."""
        text = element.text or ""
        link = _HYPERLINK.match(text) if "HYPERLINK" in text else None
        if link is not None:
            self.sheet.links.setdefault((row, column), link[1].replace('""', '"'))
        if element.get("t") != "shared":
            return f"={text}" if text else ""
        name = element.get("si", "")
        if text:
            self._shared[name] = (text, row, column)
            return f"={text}"
        source = self._shared.get(name)
        if source is None:
            return ""
        return _SharedFormula(source[0], row - source[1], column - source[2]).text()


@dataclass(slots=True)
class _SharedFormula:
    source: str
    rows: int
    columns: int

    def text(self) -> str:
        return "=" + _REFERENCE.sub(self._move, self.source)

    def _move(self, found: re.Match[str]) -> str:
        if found[1]:
            return found[0]
        column = column_number(found[3])
        row = int(found[5])
        if not found[2]:
            column += self.columns
        if not found[4]:
            row += self.rows
        if not 0 < column <= MAX_COLUMN or not 0 < row <= MAX_ROW:
            return "#REF!"
        return f"{found[2]}{column_name(column)}{found[4]}{row}"


def _put_in_order(sheet: Sheet) -> None:
    """Rows and columns ascend; of two cells at one place the last one counts, as in the programs that write them."""
    numbers = [row.number for row in sheet.rows]
    if any(after <= before for before, after in pairwise(numbers)):
        rows: dict[int, list[SheetCell]] = {}
        for row in sheet.rows:
            rows.setdefault(row.number, []).extend(row.cells)
        sheet.rows[:] = [SheetRow(number, rows[number]) for number in sorted(rows)]
    for row in sheet.rows:
        cells = row.cells
        if any(after[0] <= before[0] for before, after in pairwise(cells)):
            by_column = {cell.column: cell for cell in cells}
            cells[:] = [by_column[column] for column in sorted(by_column)]


def _extend(runs: list[tuple[int, int]], number: int) -> None:
    if runs and runs[-1][1] == number - 1:
        runs[-1] = (runs[-1][0], number)
    else:
        runs.append((number, number))


def _count(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else 0
