"""PDF files for tests: raw ones from numbered objects, drawn ones from a canvas; and the request that asks for one."""

from __future__ import annotations

import io
from collections.abc import Callable

from raydex.ir.ids import content_hash
from raydex.kernels.limits import Limits
from raydex.kernels.request import ParseRequest

HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def request(data: bytes, pages: tuple[int, int] | None = None, limits: Limits | None = None) -> ParseRequest:
    return ParseRequest("rec_test", content_hash(data), "folder/file.pdf", "application/pdf", data, pages=pages, limits=limits or Limits())


def raw_pdf(objects: list[bytes], trailer: bytes = b"", startxref: int | None = None) -> bytes:
    """A PDF from numbered objects; object 1 is the catalogue."""
    out = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + b"".join(b"%010d 00000 n \n" % at for at in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R " % (len(objects) + 1) + trailer.replace(b"@XREF", b"%d" % table)
    out += b">>\nstartxref\n%d\n%%%%EOF" % (table if startxref is None else startxref)
    return bytes(out)


def stream(data: bytes, extra: bytes = b"") -> bytes:
    return b"<< /Length %d " % len(data) + extra + b">>\nstream\n" + data + b"\nendstream"


def one_page(content: bytes, font: bytes = HELVETICA, page: bytes = b"", more: tuple[bytes, ...] = (), resources: bytes = b"") -> bytes:
    """Objects: 1 catalogue, 2 pages, 3 page, 4 content, 5 font, 6… more."""
    head = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> "
    return raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            head + resources + b" >> " + page + b" >>",
            stream(content),
            font,
            *more,
        ]
    )


def drawn(draw: Callable, **options: object) -> bytes:  # type: ignore[type-arg]
    """A PDF drawn on a reportlab canvas."""
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(595, 842), invariant=1, **options)
    draw(canvas)
    canvas.save()
    return out.getvalue()


def column(canvas, x: float, y: float, lines: list[str], font: str = "Helvetica", size: float = 10, leading: float = 12) -> None:  # type: ignore[no-untyped-def]
    canvas.setFont(font, size)
    for at, text in enumerate(lines):
        canvas.drawString(x, y - at * leading, text)


SENTENCE = "Every claim in this report stands on a page with its box and number so"


def two_columns(canvas) -> None:  # type: ignore[no-untyped-def]
    column(canvas, 50, 790, ["A title across both of the columns of this page"], "Helvetica-Bold", 18)
    left = [f"left column line {at} fills its measure" for at in range(20)]
    right = [f"right column line {at} fills its measure" for at in range(20)]
    # drawn row by row, as some producers do, so that content order is of no help
    for at, (one, other) in enumerate(zip(left, right, strict=True)):
        column(canvas, 50, 740 - 12 * at, [one])
        column(canvas, 310, 740 - 12 * at, [other])
    column(canvas, 50, 480, ["This closing remark runs across both columns again, from the left margin to the right margin of it."])


def with_furniture(canvas) -> None:  # type: ignore[no-untyped-def]
    for page in range(1, 6):
        column(canvas, 72, 810, [f"Handbook, release {page}"], size=8)
        column(canvas, 290, 30, [f"- {page} -"], size=8)
        column(canvas, 72, 760, [f"Chapter {page}"], "Helvetica-Bold", 14)
        column(canvas, 72, 730, [SENTENCE, f"that page {page} can be found."] * 3)
        canvas.showPage()
