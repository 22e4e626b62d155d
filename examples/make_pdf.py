"""Writes the PDF files of the example corpus: `python examples/make_pdf.py`. The same bytes come out on every run.

`docs/reports/winter-batteries.pdf` has three pages with headings, a table and a running foot; `broken/cut_off.pdf` is its beginning.
"""

from __future__ import annotations

from pathlib import Path

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, ListFlowable, PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

CORPUS = Path(__file__).parent / "corpus"
TITLE = "Batteries in winter"
CUT_BYTES = 900

STYLES = getSampleStyleSheet()
HEAD = ParagraphStyle("Head", parent=STYLES["Title"], fontSize=26, leading=32, spaceAfter=10 * mm)
BODY = ParagraphStyle("Body", parent=STYLES["BodyText"], fontSize=10.5, leading=15)

SUMMARY = """Cold batteries give less. Over two winters the crew measured how much less, and at which charge a bike has to be swapped so
that its rider gets home. The answer is that the limit of 20 per cent, which holds in summer, has to rise to 30 per cent below minus five
degrees."""
METHOD = """Forty bikes carried a logger from November to March. Each logger wrote down the charge, the temperature of the cells and the
distance once a minute. Rides shorter than one kilometre were left out, and so were bikes whose logger had stopped in between."""
RESULT = """A full battery carries a bike 48 kilometres at fifteen degrees and 31 kilometres at minus ten. The loss is not even: most of it
lies in the last third of the charge, where the voltage falls below what the motor needs on a slope."""
RISK = """A bike with 20 per cent left failed on the hill to West Park in nine of a hundred rides when it was colder than minus five, and in
one of two hundred when it was warmer than five degrees."""
PLAN = (
    "The service takes the lowest charge from its settings, so the limit can follow the weather without a new version.",
    "Below minus five degrees the crew swaps at 30 per cent on the same tour, and at 35 per cent when it is at the station anyway, as now.",
    "Stations at the top of a hill are visited first.",
)
TABLE = (
    ("Cell temperature", "Range, full", "Range at 20 %", "Failed rides"),
    ("15 °C", "48 km", "9.1 km", "0.4 %"),
    ("5 °C", "43 km", "7.6 km", "0.5 %"),
    ("−5 °C", "36 km", "4.8 km", "3.8 %"),
    ("−10 °C", "31 km", "2.9 km", "9.2 %"),
)


def main() -> None:
    report = CORPUS / "docs" / "reports" / "winter-batteries.pdf"
    report.parent.mkdir(parents=True, exist_ok=True)
    # invariant: no dates and no random ids; uncompressed: no difference between versions of zlib
    document = SimpleDocTemplate(
        str(report),
        pagesize=A4,
        title=TITLE,
        author="Velodock crew",
        subject="Range of bikes by temperature",
        invariant=1,
        pageCompression=0,
        topMargin=25 * mm,
        bottomMargin=25 * mm,
        leftMargin=25 * mm,
        rightMargin=25 * mm,
    )
    document.build(story(), onFirstPage=draw_furniture, onLaterPages=draw_furniture)
    (CORPUS / "broken" / "cut_off.pdf").write_bytes(report.read_bytes()[:CUT_BYTES])


def story() -> list[Flowable]:
    table = Table(TABLE, colWidths=[38 * mm, 32 * mm, 34 * mm, 32 * mm], repeatRows=1)
    table.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.grey), ("FONT", (0, 0), (-1, 0), "Helvetica-Bold")]))
    return [
        Paragraph(TITLE, HEAD),
        Paragraph("Summary", STYLES["Heading1"]),
        Paragraph(SUMMARY, BODY),
        Paragraph("How it was measured", STYLES["Heading1"]),
        Paragraph(METHOD, BODY),
        PageBreak(),
        Paragraph("Results", STYLES["Heading1"]),
        Paragraph("Range", STYLES["Heading2"]),
        Paragraph(RESULT, BODY),
        Spacer(1, 6 * mm),
        table,
        Spacer(1, 6 * mm),
        Paragraph("Failed rides", STYLES["Heading2"]),
        Paragraph(RISK, BODY),
        PageBreak(),
        Paragraph("What the crew does", STYLES["Heading1"]),
        ListFlowable([Paragraph(item, BODY) for item in PLAN], bulletType="1", leftIndent=8 * mm),
    ]


def draw_furniture(canvas: Canvas, document: SimpleDocTemplate) -> None:
    canvas.saveState()
    canvas.setFont("Helvetica", 8)
    canvas.drawString(25 * mm, A4[1] - 15 * mm, "Velodock · report of the crew")
    canvas.drawRightString(A4[0] - 25 * mm, 15 * mm, f"page {document.page} of 3")
    canvas.restoreState()


if __name__ == "__main__":
    main()
