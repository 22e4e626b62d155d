"""Excel workbooks (xlsx, xlsm, xltx, xltm) → DocumentIR: a section a sheet, its tables, lines of text, comments, pictures and charts.

Values are shown by their number format; formulas show the result that is stored. The invariant: sheets stand in the workbook's order and
are all kept, hidden ones marked; a part that cannot be read costs only itself and is said; links to other workbooks are never followed.
"""

from __future__ import annotations

from typing import Any

from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.package import Package, Relation
from raydex.kernels.request import ParseRequest
from raydex.kernels.sheet import CellBudget, NamedTable, Sheet, area_name, read_area
from raydex.kernels.sheet_tables import draft_sheet, tell
from raydex.kernels.xlsx_comments import read_comments, read_persons
from raydex.kernels.xlsx_drawings import DrawingReader
from raydex.kernels.xlsx_sheet import Book, SheetReader, read_strings, relation_id
from raydex.kernels.xlsx_styles import read_styles

PARSER_VERSION = "2"
_SHEETS = ("worksheet", "chartsheet", "dialogsheet", "xlMacrosheet", "xlIntlMacrosheet")
_STATES = ("hidden", "veryHidden")
_MAX_NAMES = 1_000
_PROPERTIES = ("title", "subject", "creator", "keywords", "description", "lastModifiedBy", "created", "modified", "category")
_FATAL = ("bomb", "encrypted", "too_large", "text_too_long", "too_many_blocks")


def parse_xlsx(request: ParseRequest) -> ParsedFile:
    """Raises InputError: invalid_input, encrypted, bomb, too_deep, too_large, text_too_long, too_many_blocks, unsupported_media_type."""
    workbook = _Workbook(request)
    workbook.read()
    parsed = finish(
        request,
        None,
        workbook.drafts,
        parser="xlsx",
        parser_version=PARSER_VERSION,
        title=workbook.properties.get("title", "") or request.path.rpartition("/")[2],
        metadata=workbook.metadata(),
    )
    tell(parsed, workbook.warnings)
    return parsed


class _Workbook:
    def __init__(self, request: ParseRequest) -> None:
        self.request = request
        self.package = Package(request)
        self.book = Book(CellBudget(request), self.package)
        self.drafts: list[Draft] = []
        self.warnings: dict[str, str] = {}
        self.properties: dict[str, str] = {}
        self.sheets: list[dict[str, Any]] = []
        self.names: dict[str, str] = {}
        self.drawings = DrawingReader(self.package)
        self.failures: list[InputError] = []

    def metadata(self) -> dict[str, Any]:
        told: dict[str, Any] = {"sheets": self.sheets}
        if self.names:
            told["defined_names"] = self.names
        if self.properties:
            told["properties"] = self.properties
        return told

    def warn(self, name: str, message: str) -> None:
        self.warnings.setdefault(name, message)

    def read(self) -> None:
        main = self._main_part()
        try:
            root = self.package.xml(main)
        except KeyError:
            raise InputError("the package holds no workbook", reject_class="invalid_input", place=self.request.path) from None
        relations = self.package.relations(main)
        self._read_shared(relations)
        listed: list[Any] = []
        for part in root:
            kind = _local(part)
            if kind == "workbookPr":
                self.book.date1904 = part.get("date1904") in ("1", "true")
            elif kind == "sheets":
                listed += [item for item in part if _local(item) == "sheet"]
            elif kind == "definedNames":
                self._read_names(part)
        persons = self._try("comments_lost", "the list of the comments' authors", lambda: read_persons(self.package, relations)) or {}
        if not listed:
            raise InputError("the workbook lists no sheet", reject_class="invalid_input", place=self.request.path)
        for item in listed:
            self._read_sheet(item, relations, persons)
        if self.failures and not self.drafts[len(self.sheets) :] and len(self.failures) == len(self.sheets):
            raise self.failures[0]
        self._count_losses()

    def _main_part(self) -> str:
        relations = self.package.relations("")
        main = next((relation.target for relation in relations.values() if relation.kind == "officeDocument"), "xl/workbook.xml")
        if main.lower().endswith(".bin"):
            message = "a binary workbook (xlsb) is not read"
            raise InputError(message, reject_class="unsupported_media_type", place=self.request.path, remedy="Save it as xlsx")
        for relation in relations.values():
            if relation.kind == "core-properties" and not relation.external:
                self.properties = self._try("properties_lost", "the document properties", lambda at=relation: self._core(at.target)) or {}
        return main

    def _core(self, name: str) -> dict[str, str]:
        found = {_local(item): (item.text or "").strip() for item in self.package.xml(name)}
        return {key: found[key] for key in _PROPERTIES if found.get(key)}

    def _try(self, warning: str, what: str, read: Any) -> Any:
        """What a part holds, or None and a warning where it cannot be read."""
        try:
            return read()
        except (KeyError, InputError) as error:
            if isinstance(error, InputError) and error.reject_class in _FATAL:
                raise
            self.warn(warning, f"{what} could not be read: {'the part is missing' if isinstance(error, KeyError) else error.message}")
            return None

    def _read_shared(self, relations: dict[str, Relation]) -> None:
        for relation in relations.values():
            target = relation.target
            if relation.external:
                continue
            if relation.kind == "styles":
                self.book.looks = self._try("styles_lost", "the styles", lambda at=target: read_styles(self.package, at)) or {}
            elif relation.kind == "sharedStrings":
                self.book.strings = self._try("strings_lost", "shared strings", lambda at=target: read_strings(self.package, at)) or []

    def _read_names(self, part: Any) -> None:
        """Names that people gave to areas and formulas; those of one sheet with its place in front."""
        for item in part:
            name, text = item.get("name", ""), item.text or ""
            if not name or name.startswith("_xlnm.") or item.get("hidden") in ("1", "true"):
                continue
            if len(self.names) >= _MAX_NAMES:
                self.warn("names_cut", f"only the first {_MAX_NAMES} defined names are kept")
                return
            local = item.get("localSheetId")
            self.names[f"{local}!{name}" if local is not None else name] = text[:1_000]

    def _read_sheet(self, item: Any, relations: dict[str, Relation], persons: dict[str, str]) -> None:
        name, state = item.get("name", ""), item.get("state", "")
        sheet = Sheet(name or f"Sheet{len(self.sheets) + 1}", state if state in _STATES else "visible")
        relation = relations.get(relation_id(item))
        told: dict[str, Any] = {"name": sheet.name, "state": sheet.state}
        self.sheets.append(told)
        own: dict[str, Relation] = {}
        reader = SheetReader(self.book, sheet, own)
        if relation is None or relation.external or relation.kind not in _SHEETS:
            self._fail(told, "the workbook names no part for a sheet")
        else:
            own |= self._try("sheet_relations_lost", "the relations of a sheet", lambda: self.package.relations(relation.target)) or {}
            try:
                reader.read(relation.target)
            except KeyError:
                self._fail(told, "the part of a sheet is missing")
            except InputError as error:
                if error.reject_class in _FATAL:
                    raise
                self._fail(told, f"a sheet breaks off: {error.message}")
            self._read_tables(reader, own)
            sheet.notes = self._try("comments_lost", "comments", lambda: read_comments(self.package, own, persons)) or []
        used = sheet.used_area()
        if used is not None:
            told["cells"] = area_name(used)
        draft_sheet(sheet, self.drafts, self.request)
        self._draw(reader, own)

    def _fail(self, told: dict[str, Any], message: str) -> None:
        told["incomplete"] = True
        self.failures.append(InputError(message, reject_class="invalid_input", place=self.request.path))
        self.warn("sheet_incomplete", message)

    def _read_tables(self, reader: SheetReader, relations: dict[str, Relation]) -> None:
        for key in reader.parts.tables:
            relation = relations.get(key)
            if relation is None or relation.external:
                continue
            table = self._try("tables_lost", "the definition of a table", lambda at=relation.target: self._table(at))
            if table is not None:
                reader.sheet.tables.append(table)

    def _table(self, name: str) -> NamedTable | None:
        root = self.package.xml(name)
        area = read_area(root.get("ref", ""))
        headers = root.get("headerRowCount", "1")
        count = int(headers) if headers.isascii() and headers.isdigit() and len(headers) < 4 else 1
        return NamedTable(area, root.get("displayName") or root.get("name", ""), count) if area is not None else None

    def _draw(self, reader: SheetReader, relations: dict[str, Relation]) -> None:
        """Pictures, text boxes and charts of a sheet, behind its cells."""
        relation = relations.get(reader.parts.drawing)
        if relation is None or relation.external:
            return
        sheet = reader.sheet
        drafts = self.drawings.read(relation.target, sheet.name)
        while True:
            draft = self._try("drawing_lost", "a drawing", lambda: next(drafts, None))
            if draft is None:
                return
            if sheet.state != "visible":
                draft.metadata["sheet_state"] = sheet.state
            self.drafts.append(draft)
            check_count(self.drafts, self.request)

    def _count_losses(self) -> None:
        book = self.book
        if book.not_computed:
            self.warn("formulas_not_computed", f"{book.not_computed} formulas have no stored result: their cells show the formula")
        if book.lost_strings:
            self.warn("strings_lost", f"{book.lost_strings} cells name a shared string that is not there")
        if book.bad_places:
            self.warn("bad_cell_places", f"{book.bad_places} rows or cells lie outside of any sheet")
        if book.lost_formulas:
            self.warn("formulas_cut", f"{book.lost_formulas} formulas are not kept beside their results")
        if self.drawings.lost:
            self.warn("drawing_lost", f"{len(self.drawings.lost)} pictures or charts could not be read")


def _local(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
