"""PDF: tables with cells, over pages too, and images with their boxes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pdf_files import SENTENCE, column, drawn, request
from shared_cases import case

from raydex.ir.document import Block
from raydex.kernels.limits import Limits
from raydex.kernels.ocr import OcrLine, OcrPage
from raydex.kernels.ocr_blocks import Place, Reading, add_ocr, needs_ocr
from raydex.kernels.pdf import merge_ranges, parse_pdf
from raydex.kernels.pdf_layout import Line
from raydex.kernels.pdf_structure import Paragraph
from raydex.kernels.pdf_tables import find_tables


def cells_of(block: Block) -> list[list[str]]:
    return [[cell["text"] for cell in row] for row in block.metadata["rows"]]


def grid_of(canvas, rows, xs=(50, 200, 400), top=700, pitch=20, font="Helvetica") -> None:  # type: ignore[no-untyped-def]
    for at, row in enumerate(rows):
        for x, text in zip(xs, row, strict=True):
            for line, part in enumerate(text.split("\n") if text else ()):
                column(canvas, x, top - pitch * at - 11 * line, [part], font if at == 0 else "Helvetica")


def test_case_a_table_over_pages_is_one_table() -> None:
    parsed = parse_pdf(request(case("b18-pdf-table-over-pages/brake-spec.pdf").read_bytes()))
    tables = [block for block in parsed.blocks if block.kind == "table"]
    assert [(block.locator.page, block.locator.table, block.metadata.get("continued")) for block in tables] == [(1, 1, None), (2, 1, True)]
    data = [cells_of(block)[block.metadata["header_rows"] :] for block in tables]
    assert [row[0] for rows in data for row in rows] == [f"BRK-REQ-{number:03}" for number in range(1, 31)]
    for block in tables:
        assert cells_of(block)[: block.metadata["header_rows"]] == [["Req ID", "Text", "Verif."]]
        assert all(cell["header"] for cell in block.metadata["rows"][0])
    assert tables[1].metadata["header"] == [["Req ID", "Text", "Verif."]]
    text = "\n".join(block.text for block in parsed.blocks)
    assert "BRAKE SPEC" not in text and "page 1" not in text and text.endswith("End of list.")


def test_cells_that_wrap_are_empty_or_span_columns() -> None:
    rows = [
        ("Part", "What it does", "Mass"),
        ("valve", "opens under pressure\nand closes again", "3.5"),
        ("bolt", "", "0.1"),
        ("seal", "keeps the oil\nwhere it is\nand the dust out", "0.2"),
    ]
    parsed = parse_pdf(request(drawn(lambda canvas: grid_of(canvas, rows, pitch=35, font="Helvetica-Bold"))))
    (block,) = parsed.blocks
    assert cells_of(block) == [[text.replace("\n", " ") for text in row] for row in rows]
    assert block.metadata["header_rows"] == 1

    def spanned(canvas) -> None:  # type: ignore[no-untyped-def]
        grid_of(canvas, [("K-1", "a", "1"), ("K-2", "b", "2")])
        column(canvas, 50, 660, ["K-3"])
        column(canvas, 200, 660, ["a text that reaches over both of the columns to its right, b"])

    (block,) = parse_pdf(request(drawn(spanned))).blocks
    assert [[cell["col_span"] for cell in row] for row in block.metadata["rows"]] == [[1, 1, 1], [1, 1, 1], [1, 2]]


def test_texts_apart_that_fall_into_no_columns_stay_a_paragraph() -> None:
    def draw(canvas) -> None:  # type: ignore[no-untyped-def]
        for at, (left, right) in enumerate(((50, 150), (90, 400), (50, 150), (130, 330))):
            column(canvas, left, 700 - 14 * at, [f"first {at} of the texts"])
            column(canvas, right + 60, 700 - 14 * at, [f"second {at} of the texts"])

    parsed = parse_pdf(request(drawn(draw)))
    assert all(block.kind == "paragraph" for block in parsed.blocks)
    words = " ".join(block.text for block in parsed.blocks)
    assert all(f"{name} {at} of" in words for at in range(4) for name in ("first", "second"))


def test_two_pages_have_furniture_beside_their_numbers_alone() -> None:
    def draw(canvas) -> None:  # type: ignore[no-untyped-def]
        for page in (1, 2):
            column(canvas, 72, 815, ["Same opening words"])
            column(canvas, 72, 700, [SENTENCE, f"It says so on page {page} too."])
            column(canvas, 72, 30, ["Handbook"])
            column(canvas, 400, 30, [f"page {page} of 2"])
            canvas.showPage()

    parsed = parse_pdf(request(drawn(draw)))
    text = "\n".join(block.text for block in parsed.blocks)
    assert "Handbook" not in text and "of 2" not in text
    assert text.count("Same opening words") == 2


def png(red: int, side: int = 4) -> Any:
    from PIL import Image
    from reportlab.lib.utils import ImageReader

    return ImageReader(Image.new("RGB", (side, 2 * side), (red, 0, 0)))


def test_images_are_blocks_and_assets_with_their_box() -> None:
    def draw(canvas) -> None:  # type: ignore[no-untyped-def]
        column(canvas, 72, 800, [SENTENCE, "in the words above the picture.", SENTENCE])
        canvas.drawImage(png(200), 72, 500, 200, 100)
        canvas.drawImage(png(100), 72, 300, 4, 4)  # a dot
        column(canvas, 72, 400, ["Words below the picture end the page.", SENTENCE, SENTENCE])

    parsed = parse_pdf(request(drawn(draw)))
    kinds = [block.kind for block in parsed.blocks]
    assert kinds.count("image") == 1
    at = kinds.index("image")
    assert "above" in parsed.blocks[at - 1].text + parsed.blocks[at - 2].text and "Words below" in parsed.blocks[at + 1].text
    (asset,) = parsed.assets
    assert parsed.blocks[at].asset_ref == asset.asset_id and asset.cas_uri == ""
    assert (asset.locator.page, asset.locator.bbox, asset.locator.image) == (1, (72.0, 242.0, 272.0, 342.0), 1)
    assert (asset.width, asset.height) == (4, 8)
    assert parsed.blocks[at].locator == asset.locator


def test_images_inside_forms_and_on_turned_pages_have_upright_boxes() -> None:
    def draw(canvas) -> None:  # type: ignore[no-untyped-def]
        canvas.beginForm("stamp")
        canvas.drawImage(png(90), 0, 0, 50, 20)
        canvas.endForm()
        canvas.translate(100, 700)
        canvas.scale(2, 2)
        canvas.doForm("stamp")
        canvas.scale(0.5, 0.5)
        canvas.translate(-100, -700)
        column(canvas, 72, 600, [SENTENCE] * 5)

    assert parse_pdf(request(drawn(draw))).assets[0].locator.bbox == (100.0, 102.0, 200.0, 142.0)

    def turned(canvas) -> None:  # type: ignore[no-untyped-def]
        canvas.setPageRotation(90)
        canvas.drawImage(png(90), 0, 495, 50, 100)  # at the upper left of the page as it is stored: 842 x 595
        column(canvas, 72, 600, [SENTENCE] * 5)

    assert parse_pdf(request(drawn(turned))).assets[0].locator.bbox == (495.0, 0.0, 595.0, 50.0)


@pytest.mark.parametrize(
    ("text", "mode", "state"), [("Bates 000123", 0, "unavailable"), ("Bates 000123", 3, "native"), (SENTENCE * 2, 0, "native")]
)
def test_a_scan_with_a_stamp_is_to_be_read(text: str, mode: int, state: str) -> None:
    def draw(canvas: Any) -> None:
        canvas.drawImage(png(90), 0, 0, 595, 842)
        words = canvas.beginText(20, 20)
        words.setFont("Helvetica", 4)
        words.setTextRenderMode(mode)  # 3: the layer of text that a scanner's program made
        words.textOut(text)
        canvas.drawText(words)

    parsed = parse_pdf(request(drawn(draw)))
    (page,) = parsed.pages
    assert page.text_state == state and "mostly_image" in page.warnings and needs_ocr(page) == (state == "unavailable")
    assert [block.text for block in parsed.blocks] == [text]
    if state == "native":
        return
    lines = (OcrLine(text.upper(), 0.9, (20.0, 810.0, 90.0, 830.0)), OcrLine("Pump house open", 0.9, (50.0, 50.0, 300.0, 90.0)))
    reading = Reading(Place(1), OcrPage(595, 842, lines))
    add_ocr(parsed, [reading], SimpleNamespace(name="reader", version="1"), Limits())  # type: ignore[arg-type]
    assert page.text_state == "mixed" and sorted(block.text for block in parsed.blocks) == [text, "Pump house open"]


def with_attachment(data: bytes, name: str) -> bytes:
    from io import BytesIO

    import pypdfium2

    document = pypdfium2.PdfDocument(data)
    document.new_attachment(name).set_data(b"1,2")
    out = BytesIO()
    document.save(out)
    return out.getvalue()


def test_comments_and_values_of_forms_are_read_and_attachments_named() -> None:
    def draw(canvas: Any) -> None:
        canvas.drawString(72, 700, SENTENCE)
        canvas.textAnnotation("Check this figure, 電池.", Rect=[300, 600, 320, 620])
        canvas.acroForm.textfield(name="inspector", value="Ann Ling", x=72, y=500, width=200, height=20)
        canvas.acroForm.textfield(name="left open", value="", x=72, y=460, width=200, height=20)
        canvas.showPage()
        canvas.drawString(72, 700, SENTENCE)

    data = with_attachment(drawn(draw), "figures.csv")
    whole = parse_pdf(request(data))
    marks = [(block.kind, block.text, block.metadata) for block in whole.blocks if block.text != SENTENCE]
    assert marks == [
        ("note", "Check this figure, 電池.", {}),
        ("paragraph", "inspector: Ann Ling", {"form_field": "inspector"}),
    ]
    note = whole.blocks[1].locator
    assert note.page == 1 and note.bbox is not None and [round(side) for side in note.bbox] == [300, 842 - 620, 320, 842 - 600]
    left = [event.message for event in whole.events if event.name == "attachments_left_out"]
    assert left == ["1 attached files are not read: figures.csv"]
    parts = [parse_pdf(replace(request(data), pages=pages)) for pages in ((1, 1), (2, 2))]
    assert merge_ranges(request(data), parts).blocks == whole.blocks


def test_an_image_on_every_page_is_a_letterhead() -> None:
    def draw(canvas) -> None:  # type: ignore[no-untyped-def]
        logo = png(50)
        for page in range(3):
            canvas.drawImage(logo, 400, 780, 80, 40)
            canvas.drawImage(png(60 + page), 72, 300 + 30 * page, 80, 40)
            column(canvas, 72, 700, [SENTENCE, f"of page {page}.", *[SENTENCE] * 3])
            canvas.showPage()

    parsed = parse_pdf(request(drawn(draw)))
    assert [asset.locator.page for asset in parsed.assets] == [1, 2, 3]
    assert parsed.document is not None and parsed.document.metadata["furniture_images"] == 3


def line_of(cells: list[tuple[int, int]], at: int, pitch: int) -> Line:
    """Cells at (left, width); their texts tell the line and the cell."""
    placed = []
    right = 0.0
    for number, (gap, width) in enumerate(cells):
        left = right + 20 + gap
        right = left + width
        placed.append((f"t{at}.{number}", left, right))
    base = 100.0 + pitch * at
    line = Line("\t".join(text for text, _, _ in placed), placed[0][1], base - 8, right, base + 2, base, 10.0, 0, 0, (0, 0, 1, 1))
    line.cells = len(placed)
    line.parts = [edge for _, x0, x1 in placed for edge in (x0, x1)] if len(placed) > 1 else None
    return line


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 60), st.integers(5, 120)), min_size=1, max_size=5), min_size=1, max_size=12),
    st.integers(9, 50),
)
def test_every_text_is_in_one_cell_and_rows_fill_the_width(rows: list[list[tuple[int, int]]], pitch: int) -> None:
    lines = [line_of(cells, at, pitch) for at, cells in enumerate(rows)]
    paragraphs = [Paragraph([line], [False]) for line in lines]
    find_tables([paragraphs])
    seen = []
    for paragraph in paragraphs:
        if paragraph.table is None:
            seen += [text for line in paragraph.lines for text in line.text.split("\t")]
            continue
        table = paragraph.table.rows
        seen += [text for row in table for cell in row for text in cell["text"].split()]
        assert len({sum(cell["col_span"] for cell in row) for row in table}) == 1
    assert sorted(seen) == sorted(text for line in lines for text in line.text.split("\t"))
