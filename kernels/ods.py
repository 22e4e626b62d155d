"""OpenDocument spreadsheets (ods, ots) → DocumentIR, as Excel workbooks are: a section a sheet, its tables, lines, comments and pictures.

A cell's text is what the file shows of its value, else what `ods_values` does. Repeated cells and rows are written once; empty ones cost
nothing however often they repeat. The invariant: sheets stand in the file's order, hidden ones marked; no more cells than `limits.cells`;
nothing outside is fetched.
"""

from __future__ import annotations

import re
from typing import Any

from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.image_size import describe_image
from raydex.kernels.ods_values import show_value
from raydex.kernels.package import Package, part_name
from raydex.kernels.request import ParseRequest
from raydex.kernels.sheet import (
    MAX_COLUMN,
    MAX_ROW,
    NUMBER,
    CellBudget,
    CellStyle,
    Note,
    Sheet,
    SheetCell,
    SheetRow,
    area_name,
    cell_name,
    read_area,
)
from raydex.kernels.sheet_tables import draft_sheet, tell

PARSER_VERSION = "2"
_TAGS = ("style", "table-column", "table-row", "shapes", "named-range", "database-range")
_OTHER_TEXT = ("annotation", "frame", "custom-shape", "table")  # of a cell, but not its value
_FIELDS = {"title": "title", "subject": "subject", "description": "description", "initial-creator": "creator", "creation-date": "created"}
_MAX_NAMES = 1_000
_PREFIX = re.compile(r"[A-Za-z][\w.-]*:(?==)")  # the language of a formula
_CALC_EXT = ":calcext:1.0"


def parse_ods(request: ParseRequest) -> ParsedFile:
    """Raises InputError: invalid_input, encrypted, bomb, too_deep, too_large, text_too_long, too_many_blocks."""
    reader = _OdsReader(request)
    reader.read()
    drafts = reader.draft()
    metadata: dict[str, Any] = {"sheets": reader.told}
    if reader.names:
        metadata["defined_names"] = reader.names
    if reader.properties:
        metadata["properties"] = reader.properties
    title = reader.properties.get("title", "") or request.path.rpartition("/")[2]
    parsed = finish(
        request,
        None,
        drafts,
        parser="ods",
        parser_version=PARSER_VERSION,
        title=title,
        metadata=metadata,
    )
    tell(parsed, reader.warnings)
    return parsed


class _OdsReader:
    def __init__(self, request: ParseRequest) -> None:
        self.request = request
        self.package = Package(request)
        self.budget = CellBudget(request)
        self.sheets: list[Sheet] = []
        self.pictures: list[list[Draft]] = []
        self.told: list[dict[str, Any]] = []
        self.names: dict[str, str] = {}
        self.properties: dict[str, str] = {}
        self.warnings: dict[str, str] = {}
        self.not_computed = 0
        self._styles: dict[str, CellStyle] = {}
        self._hidden: set[str] = set()
        self._table: Any = None
        self._media: dict[str, bytes] = {}
        self._row = self._column = 0

    def read(self) -> None:
        """Raises InputError."""
        try:
            if any(True for _ in self.package.stream("META-INF/manifest.xml", "encryption-data")):
                raise InputError("the document is encrypted", reject_class="encrypted", place=self.request.path)
            found = {_local(item): (item.text or "").strip() for item in self.package.stream("meta.xml", *_FIELDS)}
            self.properties = {name: found[key] for key, name in _FIELDS.items() if found.get(key)}
        except KeyError:
            pass
        except InputError as error:
            if error.reject_class in ("bomb", "encrypted"):
                raise
            self.warnings["properties_lost"] = f"the document properties could not be read: {error.message}"
        try:
            for element in self.package.stream("content.xml", *_TAGS):
                self._take(element, _local(element))
        except KeyError:
            raise InputError("the package holds no content", reject_class="invalid_input", place=self.request.path) from None
        except InputError as error:
            if error.reject_class != "invalid_input" or not self.sheets or "document type" in error.message:
                raise
            self.warnings["sheet_incomplete"] = f"the content breaks off: {error.message}"
        if self.not_computed:
            self.warnings["formulas_not_computed"] = f"{self.not_computed} formulas have no stored result: their cells show the formula"

    def draft(self) -> list[Draft]:
        """Raises LimitError (too_many_blocks)."""
        drafts: list[Draft] = []
        for sheet, pictures in zip(self.sheets, self.pictures, strict=True):
            used = sheet.used_area()
            self.told.append({"name": sheet.name, "state": sheet.state} | ({"cells": area_name(used)} if used is not None else {}))
            draft_sheet(sheet, drafts, self.request)
            for picture in pictures:
                if sheet.state != "visible":
                    picture.metadata["sheet_state"] = sheet.state
                drafts.append(picture)
                check_count(drafts, self.request)
        return drafts

    def _take(self, element: Any, tag: str) -> None:
        if tag == "style":
            self._read_style(element)
        elif tag == "named-range":
            if len(self.names) < _MAX_NAMES:
                self.names[_get(element, "name")] = _get(element, "cell-range-address")[:1_000]
        elif tag == "database-range":
            self._read_filter(element)
        elif self._find_sheet(element):
            if tag == "table-row":
                self._read_row(element)
            elif tag == "table-column":
                count = _repeat(element, "number-columns-repeated")
                if _get(element, "visibility") in ("collapse", "filter"):
                    self.sheets[-1].hidden_columns.append((self._column + 1, self._column + count))
                self._column += count
            else:
                self._read_pictures(element, {})

    def _find_sheet(self, element: Any) -> bool:
        """Whether the element belongs to a sheet, which is begun with its first one; rows of a table in a cell do not."""
        tables = list(element.iterancestors("{*}table"))
        if len(tables) != 1:
            return False
        if tables[0] is not self._table:
            self._table = tables[0]
            self._row = self._column = 0
            name = _get(self._table, "name") or f"Sheet{len(self.sheets) + 1}"
            self.sheets.append(Sheet(name, "hidden" if _get(self._table, "style-name") in self._hidden else "visible"))
            self.pictures.append([])
        return True

    def _read_style(self, element: Any) -> None:
        name = _get(element, "name")
        strong = bordered = False
        for part in element:
            kind = _local(part)
            if kind == "table-properties" and _get(part, "display") == "false":
                self._hidden.add(name)
            elif kind == "text-properties":
                strong |= _get(part, "font-weight") in ("bold", "600", "700", "800", "900")
            elif kind == "table-cell-properties":
                strong |= _get(part, "background-color").lower() not in ("", "transparent", "#ffffff")
                sides = [_get(part, side) for side in ("border", "border-top", "border-bottom", "border-left", "border-right")]
                bordered = any(side not in ("", "none") for side in sides)
        if _get(element, "family") == "table-cell":
            self._styles[name] = CellStyle(strong, False, bordered)

    def _read_filter(self, element: Any) -> None:
        """The area of a database range with filter buttons: its first row is a header."""
        if _get(element, "display-filter-buttons") != "true":
            return
        first, _, last = _get(element, "target-range-address").replace("$", "").partition(":")
        sheet, _, start = first.rpartition(".")
        area = read_area(f"{start}:{last.rpartition('.')[2]}")
        for one in self.sheets:
            if area is not None and one.name == sheet.strip("'").replace("''", "'"):
                one.filters = [area]

    def _read_row(self, element: Any) -> None:
        sheet = self.sheets[-1]
        number = self._row + 1
        count = _repeat(element, "number-rows-repeated")
        self._row += count
        if number > MAX_ROW:
            return
        if _get(element, "visibility") in ("collapse", "filter"):
            sheet.hidden_rows.append((number, min(self._row, MAX_ROW)))
        if _local(element.getparent()) == "table-header-rows" and sheet.frozen in (0, number - 1):
            sheet.frozen = min(self._row, MAX_ROW)
        cells = self._read_cells(element, number)
        for at in range(number, min(number + count, MAX_ROW + 1)) if cells else ():
            self.budget.charge(cells)
            sheet.rows.append(SheetRow(at, cells))

    def _read_cells(self, element: Any, row: int) -> list[SheetCell]:
        cells: list[SheetCell] = []
        column = 1
        for item in element:
            if _local(item) not in ("table-cell", "covered-table-cell"):
                continue
            count = _repeat(item, "number-columns-repeated")
            cell = self._read_cell(item, row, column) if column <= MAX_COLUMN and len(item.attrib) + len(item) else None
            if cell is not None:
                for at in range(column, min(column + count, MAX_COLUMN + 1)):
                    cells.append(cell if at == column else cell._replace(column=at))
            column += count
        return cells

    def _read_cell(self, item: Any, row: int, column: int) -> SheetCell | None:
        sheet = self.sheets[-1]
        about = _attributes(item)
        texts: list[str] = []
        for part in item:
            kind = _local(part)
            if kind == "p":
                texts.append(_paragraph(part))
                link = next(part.iter("{*}a"), None)
                if link is not None:
                    sheet.links[row, column] = _get(link, "href")
            elif kind == "annotation":
                self._read_note(part, row, column)
            elif kind in _OTHER_TEXT:
                self._read_pictures(part, {"cells": cell_name(row, column)})
        text, kind = show_value("\n".join(texts), about)
        formula = about.get("formula", "")
        prefix = _PREFIX.match(formula)
        written = formula[prefix.end() :] if prefix is not None else formula
        style = self._styles.get(about.get("style-name", ""), CellStyle())
        computed = bool(text)
        if not computed:
            if not written or about.get("value-type"):
                return None
            self.not_computed += 1
            text, kind = written, NUMBER
        down, right = _count(about.get("number-rows-spanned", "")), _count(about.get("number-columns-spanned", ""))
        if down > 1 or right > 1:
            sheet.merges[row, column] = (min(row + down - 1, MAX_ROW), min(column + right - 1, MAX_COLUMN))
        return SheetCell(column, text, kind, style, written, computed)

    def _read_note(self, element: Any, row: int, column: int) -> None:
        told = {_local(part): (part.text or "").strip() for part in element if _local(part) in ("creator", "date")}
        text = "\n".join(_paragraph(part) for part in element if _local(part) == "p").strip()
        if text:
            self.sheets[-1].notes.append(Note(row, column, text, told.get("creator", ""), told.get("date", "")))

    def _read_pictures(self, element: Any, cells: dict[str, str]) -> None:
        for frame in element.iter("{*}frame"):
            image = next((part for part in frame if _local(part) == "image"), None)
            if image is None:
                continue
            alt = next((part.text or "" for kind in ("desc", "title") for part in frame if _local(part) == kind), "")
            href = _get(image, "href")
            place = {"sheet": self.sheets[-1].name} | cells
            try:
                data = self._media[href] if href in self._media else self.package.read(part_name("", href))
            except KeyError:
                self.pictures[-1].append(Draft("image", 0, 0, alt, href=href, place=place))
                continue
            except InputError as error:
                if error.reject_class == "bomb":
                    raise
                self.warnings["drawing_lost"] = f"a picture could not be read: {error.message}"
                continue
            self._media[href] = data
            metadata = describe_image(data, href)
            self.pictures[-1].append(Draft("image", 0, 0, alt, metadata, place=place, data=data))


def _paragraph(element: Any) -> str:
    """Text of a paragraph with its spaces, tabs and line breaks; what is laid over the cell is left out."""
    parts = [element.text or ""]
    for item in element:
        kind = _local(item)
        if kind == "s":
            parts.append(" " * min(_repeat(item, "c"), 1_000))
        elif kind in ("tab", "line-break"):
            parts.append("\t" if kind == "tab" else "\n")
        elif kind not in _OTHER_TEXT:
            parts.append(_paragraph(item))
        parts.append(item.tail or "")
    return "".join(parts)


def _repeat(element: Any, name: str) -> int:
    return _count(_get(element, name))


def _count(text: str) -> int:
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else 1


def _attributes(cell: Any) -> dict[str, str]:
    """A cell's attributes by local name. LibreOffice tells the type a second time, in its own name space, which alone knows errors."""
    about: dict[str, str] = {}
    is_error = False
    for key, value in cell.attrib.items():
        space, _, name = key.rpartition("}")
        if not space.endswith(_CALC_EXT):
            about[name] = value
        else:
            is_error |= name == "value-type" and value == "error"
    if is_error:
        about["value-type"] = "error"
    return about


def _get(element: Any, name: str) -> str:
    """The attribute of that local name: each stands in one name space only."""
    return next((str(value) for key, value in element.attrib.items() if key.endswith(f"}}{name}")), "")


def _local(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
