"""What the tests of spreadsheets share: workbooks written cell by cell as XML, and views of what was parsed."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from document_files import parse_bytes

from raydex.ir.document import Block
from raydex.ir.parsed import ParsedFile

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE_REL = "http://schemas.openxmlformats.org/package/2006/relationships"


def zipped(parts: dict[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as package:
        for name, data in parts.items():
            package.writestr(name, data)
    return out.getvalue()


def relations(*items: tuple[str, str, str]) -> str:
    rows = "".join(
        f'<Relationship Id="{key}" Type="{REL}/{kind}" Target="{target}" TargetMode="{"External" if "://" in target else "Internal"}"/>'
        for key, kind, target in items
    )
    return f'<Relationships xmlns="{PACKAGE_REL}">{rows}</Relationships>'


def sheet_xml(rows: str, after: str = "", before: str = "") -> str:
    return f'<worksheet xmlns="{MAIN}" xmlns:r="{REL}">{before}<sheetData>{rows}</sheetData>{after}</worksheet>'


def text_row(number: int, *texts: str, column: int = 0) -> str:
    cells = "".join(
        f'<c r="{chr(65 + column + at)}{number}" t="inlineStr"><is><t>{text}</t></is></c>' for at, text in enumerate(texts) if text
    )
    return f'<row r="{number}">{cells}</row>'


def workbook(*sheets: str, states: dict[int, str] | None = None, extra: dict[str, str | bytes] | None = None, pr: str = "") -> bytes:
    """A package of sheets named S1, S2 …; `extra` are further or other parts."""
    listed = "".join(
        f'<sheet name="S{at}" sheetId="{at}" r:id="rId{at}" state="{(states or {}).get(at, "visible")}"/>'
        for at in range(1, len(sheets) + 1)
    )
    parts: dict[str, str | bytes] = {
        "_rels/.rels": relations(("rId1", "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{REL}"><workbookPr {pr}/><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(
            *((f"rId{at}", "worksheet", f"worksheets/sheet{at}.xml") for at in range(1, len(sheets) + 1)),
            ("rId91", "styles", "styles.xml"),
            ("rId92", "sharedStrings", "sharedStrings.xml"),
        ),
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs><xf/></cellXfs></styleSheet>',
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}"/>',
        **{f"xl/worksheets/sheet{at}.xml": sheet for at, sheet in enumerate(sheets, start=1)},
    }
    return zipped(parts | (extra or {}))


def parse_xlsx_file(data: bytes, **options: Any) -> ParsedFile:
    return parse_bytes(data, XLSX, **options)


def tables(parsed: ParsedFile) -> list[Block]:
    return [block for block in parsed.blocks if block.kind == "table"]


def grid(block: Block) -> list[list[str]]:
    """Texts of a table's cells."""
    return [[cell["text"] for cell in row] for row in block.metadata["rows"]]


def outline(parsed: ParsedFile) -> list[tuple[str, str | None, str]]:
    return [(block.kind, block.locator.cells, block.text) for block in parsed.blocks]
