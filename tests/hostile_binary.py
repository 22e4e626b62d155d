"""Hostile images and PDF files (rows Z5 and Z6)."""

from __future__ import annotations

import io
import struct
import zlib

import word_files
from hostile_files import add, parsed, refused
from pdf_files import one_page, raw_pdf, stream
from PIL import Image

WITH_FORM = b"/Resources << /XObject << /X 5 0 R >> /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
FONT = b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, pixels: bytes | None = None, before: bytes = b"") -> bytes:
    """Eight-bit greys; without `pixels`, as many zeros as a line needs."""
    data = zlib.compress(bytes(width + 1) if pixels is None else pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + before + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def frames(kind: str, count: int) -> bytes:
    out = io.BytesIO()
    images = [Image.new("L", (2, 2), at % 251) for at in range(count)]
    images[0].save(out, kind, save_all=True, append_images=images[1:])
    return out.getvalue()


def jpeg(**options: object) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (40, 30), "white").save(out, "JPEG", **options)
    return out.getvalue()


def tiff_loop() -> bytes:
    """A directory whose next directory is itself."""
    fields = [
        (256, 4, 1, 2),
        (257, 4, 1, 2),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (273, 4, 1, 110),
        (278, 4, 1, 2),
        (279, 4, 1, 4),
    ]
    entries = b"".join(struct.pack("<HHII", *field) for field in fields)
    return (b"II*\0" + struct.pack("<IH", 8, len(fields)) + entries + struct.pack("<I", 8)).ljust(110, b"\0") + bytes(4)


def text_page(text: bytes) -> bytes:
    return b"BT /F1 12 Tf 72 700 Td (%b) Tj ET" % text


def pages(count: int) -> bytes:
    kids = b" ".join(b"%d 0 R" % (at + 3) for at in range(count))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"
    return raw_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, count), *[page] * count])


def with_page(page: bytes, *more: bytes, pages_node: bytes = b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", root: bytes = b"") -> bytes:
    return raw_pdf([b"<< /Type /Catalog /Pages 2 0 R %b >>" % root, pages_node, page, *more])


def recursive_form() -> bytes:
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R %b >>" % WITH_FORM
    form = stream(b"/X Do", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] %b " % WITH_FORM)
    return with_page(page, stream(text_page(b"Text beside a form that draws itself.") + b" /X Do"), form)


def looping_outline() -> bytes:
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R %b >>" % FONT
    items = [
        b"<< /Type /Outlines /First 6 0 R /Last 7 0 R /Count 2 >>",
        b"<< /Title (One) /Parent 5 0 R /Next 7 0 R /First 6 0 R /Dest [3 0 R /Fit] >>",
        b"<< /Title (Two) /Parent 5 0 R /Next 6 0 R /Dest [3 0 R /Fit] >>",
    ]
    return with_page(page, stream(text_page(b"Text below an outline that has no end.")), *items, root=b"/Outlines 5 0 R")


def looping_tree() -> bytes:
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R %b >>" % FONT
    node = b"<< /Type /Pages /Kids [2 0 R 3 0 R 2 0 R] /Count 3 >>"
    return with_page(page, stream(text_page(b"Text of the only page of the tree.")), pages_node=node)


def looping_xref() -> bytes:
    return raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R %b >>" % FONT,
            stream(text_page(b"Text of a table that is its own predecessor.")),
        ],
        trailer=b"/Prev @XREF ",
    )


def self_reference() -> bytes:
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R %b >>" % FONT
    return with_page(page, b"4 0 R")


def packed_content(size: int) -> bytes:
    content = zlib.compress(text_page(b"Text before a stream of blanks.") + b" " * size)
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R %b >>" % FONT
    return with_page(page, stream(content, b"/Filter /FlateDecode "))


def packed_often(times: int) -> bytes:
    """A stream behind many filters, each of which expands."""
    content = bytes(30_000_000)
    for _ in range(times):
        content = zlib.compress(content, 9)
    filters = b"/FlateDecode " * times
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R %b >>" % FONT
    return with_page(page, stream(content, b"/Filter [%b] " % filters))


def garbage_image(name: bytes) -> bytes:
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R %b >>" % WITH_FORM
    about = b"/Type /XObject /Subtype /Image /Width 60000 /Height 60000 /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /%b " % name
    return with_page(
        page, stream(text_page(b"Text over a picture of garbage.") + b" q 9 0 0 9 0 0 cm /X Do Q"), stream(b"\x97JB2\r\n garbage", about)
    )


def locked() -> bytes:
    """A security handler that asks for a password."""
    entry = b"<< /Filter /Standard /V 1 /R 2 /O <%b> /U <%b> /P -4 >>" % (b"ab" * 32, b"cd" * 32)
    return one_page(text_page(b"Locked."), more=(entry,)).replace(b"/Root 1 0 R", b"/Root 1 0 R /Encrypt 6 0 R /ID [<00> <00>]")


def deep_tree(depth: int) -> bytes:
    nodes = [b"<< /Type /Pages /Parent %d 0 R /Kids [%d 0 R] /Count 1 >>" % (at + 1, at + 3) for at in range(1, depth)]
    page = b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 9 9] >>" % (depth + 1)
    first = b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
    return raw_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", first, *nodes, page])


NO_TEXT, EMPTY, BLANK = ("image_without_text",), ("no_semantic_blocks",), ("blank_page",)
add("Z5", "pixels.png", refused("bomb"), lambda _: png(30_000, 30_000))
add("Z5", "pixels-truncated.png", refused("invalid_input"), lambda _: png(5_000, 5_000)[:-20])
add("Z5", "text-bomb.png", refused("bomb"), lambda _: png(2, 2, bytes(6), chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(70_000_000)))))
add("Z5", "profile-bomb.png", refused("bomb"), lambda _: png(2, 2, bytes(6), chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(9_000_000)))))
add("Z5", "no-pixels.png", refused("invalid_input"), lambda _: png(0, 0))
add("Z5", "frames.tif", parsed(1, events=NO_TEXT), lambda _: frames("TIFF", 1_000))
add("Z5", "frames.gif", parsed(1, events=("frames_left_out", *NO_TEXT)), lambda _: frames("GIF", 2_000))
add("Z5", "loop.tif", parsed(1, events=NO_TEXT), lambda _: tiff_loop())
add("Z5", "garbage-exif.jpg", parsed(1, events=NO_TEXT), lambda _: jpeg(exif=b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + b"\xff" * 200))
add("Z5", "garbage-profile.jpg", parsed(1, events=NO_TEXT), lambda _: jpeg(icc_profile=b"\xff" * 5_000))
add("Z5", "truncated.jpg", refused("invalid_input"), lambda _: jpeg(quality=95)[:-60])
add("Z5", "wide.jp2", refused("unsupported_media_type"), b"\x00\x00\x00\x0cjP  \r\n\x87\n" + b"\xff" * 60)
add("Z5", "canvas.webp", refused("bomb"), b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + b"\xff" * 6 + bytes(8))
add(
    "Z5",
    "picture.docx",
    parsed(2, "Text."),
    lambda _: word_files.word(
        word_files.par("Text.") + word_files.par(word_files.picture('r:embed="p"', alt="Large")),
        links=(("p", "image", "media/p.png"),),
        more={"word/media/p.png": png(30_000, 30_000)},
    ),
)
add("Z5", "data-uri.html", parsed(2, "Text."), lambda _: f'<p>Text.</p><img alt="x" src="data:image/png;base64,{"A" * 3_000_000}">')

add("Z6", "xref-loop.pdf", parsed(1, "Text of a table that is its own predecessor."), lambda _: looping_xref())
add("Z6", "outline-loop.pdf", parsed(1, "Text below an outline that has no end."), lambda _: looping_outline())
add("Z6", "tree-loop.pdf", parsed(3, "Text of the only page of the tree.", warnings=("page_failed",)), lambda _: looping_tree())
add("Z6", "form-loop.pdf", parsed(1, "Text beside a form that draws itself."), lambda _: recursive_form())
add("Z6", "content-is-itself.pdf", parsed(0, warnings=EMPTY, events=BLANK), lambda _: self_reference())
add("Z6", "deep-tree.pdf", parsed(1, warnings=("page_failed",), events=("pdf_unavailable",)), lambda _: deep_tree(5_000))
add("Z6", "ten-thousand-pages.pdf", refused("too_many_pages"), lambda _: pages(10_000))
add("Z6", "no-pages.pdf", refused("no_pages"), lambda _: pages(0))
add("Z6", "stream-bomb.pdf", parsed(1, "Text before a stream of blanks."), lambda _: packed_content(100_000_000))
add("Z6", "filter-chain.pdf", parsed(0, warnings=EMPTY, events=BLANK), lambda _: packed_often(4))
add("Z6", "locked.pdf", refused("encrypted"), lambda _: locked())
add("Z6", "garbage-jbig2.pdf", parsed(2, "Text over a picture of garbage."), lambda _: garbage_image(b"JBIG2Decode"))
add("Z6", "garbage-jpx.pdf", parsed(2, "Text over a picture of garbage."), lambda _: garbage_image(b"JPXDecode"))
add("Z6", "truncated.pdf", refused("invalid_input"), lambda _: one_page(text_page(b"Cut."))[:40])
add("Z6", "count-lies.pdf", parsed(0, warnings=EMPTY, events=BLANK), lambda _: pages(2).replace(b"/Count 2", b"/Count 2000000000"))
