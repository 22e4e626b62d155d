"""Binary Excel workbooks (.xls, BIFF) → DocumentIR, as XLSX workbooks are: a section a sheet, its tables and lines of text.

Values come from calamine: texts, numbers, dates and the stored results of formulas; it tells no number formats, looks, comments, pictures
or formulas, so numbers stand as they are and a header is told by its types alone. The invariant: sheets stand in the workbook's order,
hidden ones marked; a cell that holds an error shows it; no more cells than `limits.cells`.
"""

from __future__ import annotations

import datetime
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.drafts import Draft, finish
from raydex.kernels.number_format import show_general
from raydex.kernels.request import ParseRequest
from raydex.kernels.sheet import BOOLEAN, DATE, ERROR, NUMBER, TEXT, CellBudget, CellStyle, Sheet, SheetCell, SheetRow, area_name
from raydex.kernels.sheet_tables import draft_sheet, tell
from raydex.kernels.xls_scan import SheetScan, scan_workbook

PARSER_VERSION = "2"
_PLAIN = CellStyle()
_STATES = {"Visible": "visible", "Hidden": "hidden", "VeryHidden": "veryHidden"}


def parse_xls(request: ParseRequest) -> ParsedFile:
    """Raises InputError: invalid_input, encrypted, too_large, text_too_long, too_many_blocks."""
    scans = scan_workbook(request)
    drafts: list[Draft] = []
    told: list[dict[str, Any]] = []
    warnings: dict[str, str] = {}
    for sheet in _read_sheets(request, scans, warnings):
        used = sheet.used_area()
        told.append({"name": sheet.name, "state": sheet.state} | ({"cells": area_name(used)} if used is not None else {}))
        draft_sheet(sheet, drafts, request)
    title = request.path.rpartition("/")[2]
    parsed = finish(request, None, drafts, parser="xls", parser_version=PARSER_VERSION, title=title, metadata={"sheets": told})
    tell(parsed, warnings)
    formulas = sum(scan.formulas for scan in scans)
    if formulas:
        parsed.add_event("parse", "ok", "formulas_not_kept", f"{formulas} formulas stand as their results alone")
    return parsed


@contextmanager
def _faults(request: ParseRequest) -> Iterator[None]:
    """Faults of the library as InputErrors; what it cannot make sense of it tells as a panic, which is no Exception."""
    try:
        yield
    except InputError:
        raise
    except BaseException as error:
        name = type(error).__name__
        if not name.endswith(("Error", "NotFound", "PanicException")) or isinstance(error, (MemoryError, RecursionError)):
            raise
        if name == "PasswordError":
            raise InputError("the workbook is encrypted", reject_class="encrypted", place=request.path) from error
        raise InputError(f"the workbook cannot be read: {name}", place=request.path) from error


def _read_sheets(request: ParseRequest, scans: list[SheetScan], warnings: dict[str, str]) -> Iterator[Sheet]:
    from python_calamine import CalamineWorkbook

    budget = CellBudget(request)
    with _faults(request):
        book = CalamineWorkbook.from_filelike(io.BytesIO(request.data))
        listed = book.sheets_metadata
    for at, about in enumerate(listed):
        sheet = Sheet(about.name or f"Sheet{at + 1}", _STATES.get(str(about.visible).rpartition(".")[2], "visible"))
        errors = dict(scans[at].errors) if len(scans) == len(listed) else {}
        try:
            with _faults(request):
                found = book.get_sheet_by_index(at)
                start, end = found.start, found.end
                merges = found.merged_cell_ranges or []
                rows = found.iter_rows() if start is not None and end is not None else iter(())
        except InputError as error:
            warnings.setdefault("sheet_incomplete", f"a sheet cannot be read: {error.message}")
            yield sheet
            continue
        column = start[1] if start is not None else 0
        _read_rows(sheet, rows, column, errors, budget)
        for first, last in merges:
            if last != first:
                sheet.merges[first[0] + 1, first[1] + 1] = (last[0] + 1, last[1] + 1)
        yield sheet


def _read_rows(sheet: Sheet, rows: Any, left: int, errors: dict[tuple[int, int], str], budget: CellBudget) -> None:
    """Rows count from the first of the sheet, their values from column `left`. Errors, which the library leaves out, are put back."""
    by_row: dict[int, list[SheetCell]] = {}
    for (row, column), text in errors.items():
        by_row.setdefault(row, []).append(SheetCell(column + 1, text, ERROR, _PLAIN))
    for number, values in enumerate(rows):
        cells = [_cell(at, value) for at, value in enumerate(values, left + 1) if value != ""]
        extra = by_row.pop(number, None)
        if extra:
            taken = {cell.column for cell in extra}
            cells = sorted([*(cell for cell in cells if cell.column not in taken), *extra])
        _keep(sheet, number, cells, budget)
    for number in sorted(by_row):
        _keep(sheet, number, sorted(by_row[number]), budget)


def _keep(sheet: Sheet, number: int, cells: list[SheetCell], budget: CellBudget) -> None:
    if cells:
        budget.charge(cells)
        sheet.rows.append(SheetRow(number + 1, cells))


def _cell(column: int, value: Any) -> SheetCell:
    if isinstance(value, str):
        return SheetCell(column, value.replace("\r\n", "\n"), TEXT, _PLAIN)
    if isinstance(value, bool):
        return SheetCell(column, "TRUE" if value else "FALSE", BOOLEAN, _PLAIN)
    if isinstance(value, (int, float)):
        return SheetCell(column, show_general(float(value)), NUMBER, _PLAIN)
    if isinstance(value, datetime.datetime):
        return SheetCell(column, value.isoformat(" "), DATE, _PLAIN)
    if isinstance(value, datetime.timedelta):
        return SheetCell(column, str(value), DATE, _PLAIN)
    return SheetCell(column, value.isoformat(), DATE, _PLAIN)
