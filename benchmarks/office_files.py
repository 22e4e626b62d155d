"""Office files for benchmarks, written by the formats' own libraries (OpenDocument: by hand, as a zip of XML)."""

from __future__ import annotations

import io
import zipfile
from xml.sax.saxutils import escape

SENTENCE = "The valve releases pressure while engineers note what was measured, where and by which instrument. "
_ODF = "urn:oasis:names:tc:opendocument:xmlns"
_NAMES = " ".join(
    f'xmlns:{prefix}="{_ODF}:{name}:1.0"'
    for prefix, name in {
        "office": "office",
        "text": "text",
        "table": "table",
        "draw": "drawing",
        "presentation": "presentation",
        "svg": "svg-compatible",
    }.items()
)


def make_docx(sections: int) -> bytes:
    """Headings, runs, list items and a table a section."""
    import docx

    document = docx.Document()
    for at in range(sections):
        document.add_heading(f"Section {at}", level=1 + at % 3)
        paragraph = document.add_paragraph(SENTENCE * 3)
        paragraph.add_run("Bold words. ").bold = True
        for item in range(4):
            document.add_paragraph(f"{item} {SENTENCE}", style="List Bullet" if at % 2 else "List Number")
        table = document.add_table(rows=4, cols=4)
        for row in range(4):
            for column in range(4):
                table.cell(row, column).text = f"{at}.{row}.{column}"
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def make_pptx(slides: int) -> bytes:
    """A title, bullets on two levels, a table and notes a slide."""
    import pptx
    from pptx.util import Inches

    deck = pptx.Presentation()
    for at in range(slides):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = f"Slide {at}"
        frame = slide.placeholders[1].text_frame
        frame.text = SENTENCE
        for item in range(4):
            paragraph = frame.add_paragraph()
            paragraph.text, paragraph.level = f"point {item} {SENTENCE}", item % 2
        table = slide.shapes.add_table(4, 4, Inches(1), Inches(4), Inches(6), Inches(2)).table
        for row in range(4):
            for column in range(4):
                table.cell(row, column).text = f"{at}.{row}.{column}"
        slide.notes_slide.notes_text_frame.text = SENTENCE
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def make_xlsx(sheets: int, rows: int) -> bytes:
    """Twelve columns of words, numbers, dates and formulas, with a header and a merged title."""
    from datetime import date

    import openpyxl

    book = openpyxl.Workbook()
    for at in range(sheets):
        sheet = book.active if at == 0 else book.create_sheet()
        sheet.title = f"Sheet {at}"
        sheet.append([f"Title {at}"])
        sheet.merge_cells(start_row=1, start_column=1, end_row=1, end_column=4)
        sheet.append([f"column {column}" for column in range(12)])
        for row in range(rows):
            words = [f"item {row} {column}" for column in range(5)]
            sheet.append([*words, *(row * column / 4 for column in range(5)), date(2026, 1, 1 + row % 28), f"=F{row + 3}+1"])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def make_odt(sections: int) -> bytes:
    parts = []
    for at in range(sections):
        parts.append(f'<text:h text:outline-level="{1 + at % 3}">Section {at}</text:h><text:p>{SENTENCE * 3}</text:p>')
        items = "".join(f"<text:list-item><text:p>{item} {SENTENCE}</text:p></text:list-item>" for item in range(4))
        parts.append(f"<text:list>{items}</text:list>{_odf_table(at, 4, 4)}")
    return _odf("text", f"<office:text>{''.join(parts)}</office:text>")


def make_odp(slides: int) -> bytes:
    frame = (
        '<draw:frame presentation:class="{}" svg:x="1cm" svg:y="{}cm" svg:width="20cm" svg:height="4cm">'
        "<draw:text-box>{}</draw:text-box></draw:frame>"
    )
    pages = []
    for at in range(slides):
        points = "".join(f"<text:p>point {item} {escape(SENTENCE)}</text:p>" for item in range(5))
        shapes = frame.format("title", 1, f"<text:p>Slide {at}</text:p>") + frame.format("outline", 6, points)
        pages.append(f'<draw:page draw:name="page{at}">{shapes}</draw:page>')
    return _odf("presentation", f"<office:presentation>{''.join(pages)}</office:presentation>")


def make_ods(sheets: int, rows: int) -> bytes:
    return _odf("spreadsheet", f"<office:spreadsheet>{''.join(_odf_table(at, rows, 12) for at in range(sheets))}</office:spreadsheet>")


def _odf_table(at: int, rows: int, columns: int) -> str:
    cell = '<table:table-cell office:value-type="string"><text:p>{}.{}.{}</text:p></table:table-cell>'
    lines = (
        f"<table:table-row>{''.join(cell.format(at, row, column) for column in range(columns))}</table:table-row>" for row in range(rows)
    )
    return f'<table:table table:name="T{at}"><table:table-column table:number-columns-repeated="{columns}"/>{"".join(lines)}</table:table>'


def _odf(kind: str, body: str) -> bytes:
    media_type = f"application/vnd.oasis.opendocument.{kind}"
    manifest = (
        f'<manifest:manifest xmlns:manifest="{_ODF}:manifest:1.0"><manifest:file-entry manifest:full-path="/" '
        f'manifest:media-type="{media_type}"/></manifest:manifest>'
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("mimetype", media_type, zipfile.ZIP_STORED)
        package.writestr("content.xml", f"<office:document-content {_NAMES}><office:body>{body}</office:body></office:document-content>")
        package.writestr("META-INF/manifest.xml", manifest)
    return out.getvalue()
