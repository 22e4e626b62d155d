"""Writes scans, office files, mail and archive of the example corpus: `python examples/make_corpus.py` (with the development packages).

The same bytes come out on every run: members of containers have one date, PDF files no ids, noise is drawn from a seed. The corpus' other
files are text and are written by hand; `make_pdf.py` writes the report on batteries.
"""

from __future__ import annotations

import io
import random
import zipfile
from datetime import UTC, date, datetime
from email.message import EmailMessage
from email.policy import default as mail_policy
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter, ImageFont

CORPUS = Path(__file__).parent / "corpus"
WHEN = datetime(2031, 11, 3, 9, 0, tzinfo=UTC)
ZIP_TIME = (2031, 11, 3, 9, 0, 0)
AUTHOR = "Velodock crew"

# -- pictures ----------------------------------------------------------------------------------------------------------

SCAN = (1240, 1754)  # A4 at 150 dots an inch
ORDER = (
    (46, "Workshop order 47"),
    (26, "Station: Fish Market      Docks: 3, 4 and 9"),
    (26, "Fault: F1, the latch does not close"),
    (34, "What to do"),
    (26, "1. Take the cover off and dry the latch."),
    (26, "2. Replace the spring; the old one goes into the red box."),
    (26, "3. Tighten the two latch screws to 4 newton metres"),
    (26, "    with blue thread lock. More breaks the housing."),
    (26, "4. Close the latch twenty times and read the tag."),
    (34, "Remarks"),
    (26, "Dock 9 needs a new housing. It stays out of service until"),
    (26, "the part from Northlatch has come."),
    (26, "Signed: M. Okafor, 27 October 2031"),
)
HOURS = ((7, 38), (8, 64), (9, 41), (12, 22), (16, 47), (17, 71), (18, 55))


def jpeg(image: Image.Image, quality: int = 60) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality)
    return out.getvalue()


def scanned_page() -> Image.Image:
    """A typed form as a cheap scanner sees it: a little crooked, grey at one edge, with specks."""
    page = Image.new("L", SCAN, 246)
    draw = ImageDraw.Draw(page)
    top = 150
    for size, line in ORDER:
        top += 34 if size > 30 else 0
        draw.text((130, top), line, fill=40, font=ImageFont.load_default(size))
        top += round(size * 1.75)
    draw.rectangle((110, 120, 1130, top + 30), outline=90, width=3)
    page = page.rotate(0.8, Image.Resampling.BICUBIC, fillcolor=246).filter(ImageFilter.GaussianBlur(0.7))
    draw = ImageDraw.Draw(page)
    dice = random.Random(47)
    for _ in range(260):
        x, y, size = dice.randrange(SCAN[0]), dice.randrange(SCAN[1]), dice.randrange(1, 3)
        draw.ellipse((x, y, x + size, y + size), fill=dice.randrange(120, 210))
    for x in range(24):
        draw.line((x, 0, x, SCAN[1]), fill=150 + x * 4)
    return page


def scanned_pdf(page: Image.Image) -> bytes:
    """A PDF whose only page is one picture: there is no text layer in it."""
    data = jpeg(page, 42)
    paint = b"q 595 0 0 842 0 0 cm /Scan Do Q"
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /XObject << /Scan 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(paint), paint),
        b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /DCTDecode "
        b"/Length %d >>\nstream\n%b\nendstream" % (*page.size, len(data), data),
        b"<< /Title (Workshop order 47) /Producer (scanner of the workshop) >>",
    )
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size, start = len(objects) + 1, len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table)
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info 6 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, start)
    return bytes(out)


def chart() -> Image.Image:
    """Bars with words, as someone exports them from a notebook."""
    image = Image.new("RGB", (640, 360), "white")
    draw = ImageDraw.Draw(image)
    draw.text((24, 14), "Holds that ran out, by hour", fill="black", font=ImageFont.load_default(24))
    draw.text((24, 48), "October 2031, all stations", fill=(90, 90, 90), font=ImageFont.load_default(18))
    for at, (hour, holds) in enumerate(HOURS):
        left, top = 50 + at * 82, 310 - holds * 3
        draw.rectangle((left, top, left + 50, 310), fill=(47, 111, 178))
        draw.text((left + 12, top - 24), str(holds), fill="black", font=ImageFont.load_default(18))
        draw.text((left, 318), f"{hour:02}:00", fill="black", font=ImageFont.load_default(18))
    return image


def label(text: str, size: tuple[int, int] = (420, 120)) -> Image.Image:
    """A sign with one line of text."""
    image = Image.new("RGB", size, (233, 240, 226))
    draw = ImageDraw.Draw(image)
    draw.rectangle((4, 4, size[0] - 5, size[1] - 5), outline=(58, 143, 92), width=4)
    draw.text((24, size[1] // 2 - 18), text, fill=(20, 60, 35), font=ImageFont.load_default(30))
    return image


# -- office files ------------------------------------------------------------------------------------------------------


def packed(members: dict[str, bytes]) -> bytes:
    """A ZIP file whose members all have the same date."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, ZIP_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)
    return out.getvalue()


def repacked(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return packed({name: archive.read(name) for name in archive.namelist()})


def lost_bikes() -> bytes:
    """A procedure with headings, a table, a tracked change and a comment on it."""
    from docx import Document
    from docx.oxml import parse_xml
    from docx.oxml.ns import nsdecls

    document = Document()
    document.add_heading("Lost bikes", 0)
    document.add_heading("When a bike counts as lost", 1)
    when = document.add_paragraph("A bike is lost when no dock has seen it for ")
    edit = f'{nsdecls("w")} w:id="%d" w:author="desk" w:date="2031-10-20T08:00:00Z"'
    when._p.append(parse_xml(f"<w:del {edit % 901}><w:r><w:delText>three days</w:delText></w:r></w:del>"))
    when._p.append(parse_xml(f"<w:ins {edit % 902}><w:r><w:t>thirty hours</w:t></w:r></w:ins>"))
    last = when.add_run(". The desk then opens a case and the rider is asked first.")
    remark = document.add_comment(last, "The rider council wants a text message before the call.", author="M. Okafor", initials="MO")
    remark._comment_elm.date = WHEN
    document.add_heading("Who looks for it", 1)
    rows = (
        ("Hour", "Who", "What"),
        ("0", "desk", "asks the last rider"),
        ("6", "crew", "walks the last tour"),
        ("48", "city", "files a report"),
    )
    table = document.add_table(len(rows), 3)
    table.style = "Table Grid"
    table.rows[0]._tr.get_or_add_trPr().append(parse_xml(f"<w:tblHeader {nsdecls('w')}/>"))
    for row, cells in zip(table.rows, rows, strict=True):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    document.add_heading("What it costs", 2)
    document.add_paragraph("A rider who tells the desk within a day pays nothing.", style="List Bullet")
    document.add_paragraph("A bike that was left unlocked costs 80 euros.", style="List Bullet")
    about = document.core_properties
    about.title, about.author, about.created, about.modified, about.last_modified_by = "Lost bikes", AUTHOR, WHEN, WHEN, AUTHOR
    out = io.BytesIO()
    document.save(out)
    return repacked(out.getvalue())


def season_review() -> bytes:
    """A deck: two columns, a group, a table, notes of the speaker, and a picture with text."""
    from pptx import Presentation
    from pptx.util import Cm

    deck = Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[3])
    first.shapes.title.text = "Season 2031 in review"
    first.placeholders[1].text = "What went well\n41,200 trips, a fifth more than last year\nNo night without a working station"
    first.placeholders[
        2
    ].text = "What riders complained about\nWet saddles at stations without a roof\nHolds that ran out at the traffic light"
    first.notes_slide.notes_text_frame.text = "Say that the roof over the harbour station is paid for and will be built in March."
    second = deck.slides.add_slide(deck.slide_layouts[5])
    second.shapes.title.text = "Plan for 2032"
    boxes = second.shapes.add_group_shape()
    for at, text in enumerate(("Spring: roofs", "Summer: 60 new docks", "Autumn: heated locks")):
        box = boxes.shapes.add_textbox(Cm(1.5 + at * 7.6), Cm(4), Cm(7), Cm(1.5))
        box.text_frame.text = text
    rows = (("Work", "Budget", "Owner"), ("Roofs for two stations", "38,000 EUR", "city"), ("Heated locks", "12,500 EUR", "service team"))
    table = second.shapes.add_table(3, 3, Cm(1.5), Cm(6.5), Cm(22), Cm(4)).table
    for row, cells in enumerate(rows):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    sign = second.shapes.add_picture(io.BytesIO(jpeg(label("Dry saddles by April"))), Cm(1.5), Cm(12.5), Cm(8))
    sign._element.nvPicPr.cNvPr.set("descr", "Sign for the stations")
    about = deck.core_properties
    about.title, about.author, about.created, about.modified, about.last_modified_by = "Season 2031", AUTHOR, WHEN, WHEN, AUTHOR
    out = io.BytesIO()
    deck.save(out)
    return repacked(out.getvalue())


def van_log() -> bytes:
    """A workbook: dates, formulas with their results, a merged head, a second sheet and a hidden one."""
    from xlsxwriter import Workbook

    tours = (
        (date(2031, 10, 6), "van 1", 31, 14),
        (date(2031, 10, 7), "van 1", 28, 11),
        (date(2031, 10, 7), "van 2", 44, 19),
        (date(2031, 10, 8), "van 2", 39, 16),
    )
    out = io.BytesIO()
    book = Workbook(out, {"in_memory": True})
    book.set_properties({"title": "Log of the vans", "author": AUTHOR, "created": WHEN.replace(tzinfo=None)})
    bold, day = book.add_format({"bold": True, "align": "center"}), book.add_format({"num_format": "yyyy-mm-dd"})
    sheet = book.add_worksheet("Tours")
    sheet.merge_range("A1:D1", "Tours of the vans, week 41", bold)
    sheet.write_row("A2", ("Day", "Van", "Kilometres", "Batteries swapped"), bold)
    for row, (when, van, distance, swapped) in enumerate(tours, 2):
        sheet.write_datetime(row, 0, when, day)
        sheet.write_row(row, 1, (van, distance, swapped))
    sheet.write("A7", "Sum", bold)
    sheet.write_formula("C7", "=SUM(C3:C6)", None, sum(row[2] for row in tours))
    sheet.write_formula("D7", "=SUM(D3:D6)", None, sum(row[3] for row in tours))
    costs = book.add_worksheet("Costs")
    costs.write_row("A1", ("Item", "Cents a kilometre"), bold)
    costs.write_row("A2", ("Electricity", 9))
    costs.write_row("A3", ("Tyres and brakes", 6))
    costs.write("A4", "Both")
    costs.write_formula("B4", "=B2+B3", None, 15)
    rota = book.add_worksheet("Rota")
    rota.write_row("A1", ("Name", "Van"), bold)
    rota.write_row("A2", ("M. Okafor", "van 1"))
    rota.write_row("A3", ("J. Lindqvist", "van 2"))
    rota.hide()
    book.close()
    return repacked(out.getvalue())


# -- mail and archive --------------------------------------------------------------------------------------------------


def offer_pdf() -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    lines = (
        "Offer 2031-118 of Northlatch to Velodock",
        "Latch assembly, type NL-4: 74 euros each, from ten pieces on 68 euros.",
        "Housing for NL-4, stainless: 112 euros each.",
        "Delivery: three weeks after the order. The offer holds until 30 November 2031.",
    )
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(595, 842), invariant=1, pageCompression=0)
    canvas.setTitle("Offer 2031-118")
    for at, line in enumerate(lines):
        canvas.setFont("Helvetica-Bold" if at == 0 else "Helvetica", 16 if at == 0 else 11)
        canvas.drawString(70, 760 - at * 34, line)
    canvas.save()
    return out.getvalue()


def offer_mail() -> bytes:
    """A mail in two versions with a picture in the text and an offer behind it."""
    mail = EmailMessage(policy=mail_policy)
    mail["From"] = "Ines Falk <ines.falk@northlatch.example.org>"
    mail["To"] = "Velodock desk <desk@velodock.example.org>"
    mail["Cc"] = "M. Okafor <okafor@velodock.example.org>"
    mail["Subject"] = "Offer for new latches at the Fish Market"
    mail["Date"] = WHEN
    mail["Message-ID"] = "<offer-118@northlatch.example.org>"
    mail["In-Reply-To"] = "<latches-1@velodock.example.org>"
    text = "Hello,\n\nthe offer for three latches and one housing is attached. We could fit them on 24 November.\n\n"
    quoted = "> Dock 9 has been out of service for a week.\n> Can you send us an offer?\n"
    mail.set_content(f"{text}{quoted}\n-- \nInes Falk\nNorthlatch\n")
    mail.add_alternative(f"<p>Hello,</p><p>{text[8:].strip()}</p><p><img src='cid:sign' alt='Northlatch'></p>", subtype="html")
    html = mail.get_payload()[1]  # type: ignore[index]
    html.add_related(jpeg(label("NORTHLATCH", (280, 90))), "image", "jpeg", cid="<sign>", disposition="inline", filename="sign.jpg")  # type: ignore[union-attr]
    mail.add_attachment(offer_pdf(), "application", "pdf", filename="offer-2031-118.pdf")
    for number, part in enumerate(part for part in mail.walk() if part.is_multipart()):
        part.set_boundary(f"=-velodock-{number}")
    return mail.as_bytes()


def controller_files() -> bytes:
    report = (
        "Controllers after the cold night\n\nEleven controllers believed that it was the first of January. All have new button cells now.\n"
    )
    clocks = "station,off by seconds\nharbour,4\nwestpark,86400\nlibrary,2\n"
    return packed({"read-me.txt": report.encode(), "clocks/february.csv": clocks.encode()})


def png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.quantize(32, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def main() -> None:
    files = {
        "docs/reports/workshop-order-47.pdf": scanned_pdf(scanned_page()),
        "docs/reports/holds-by-hour.png": png(chart()),
        "docs/handbook/lost-bikes.docx": lost_bikes(),
        "docs/slides/season-2031.pptx": season_review(),
        "data/van-log.xlsx": van_log(),
        "mail/offer-latches.eml": offer_mail(),
        "data/controllers-february.zip": controller_files(),
    }
    for name, data in files.items():
        target = CORPUS / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


if __name__ == "__main__":
    main()
