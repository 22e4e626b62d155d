"""PDF files: states of pages, limits and refusals, hostile bytes, and the equality of whole parses and merged ranges."""

from __future__ import annotations

import io
import json
import zlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pdf_files import HELVETICA, SENTENCE, column, drawn, one_page, raw_pdf, request, stream, two_columns, with_furniture

from raydex.ir.errors import InputError
from raydex.ir.ids import block_id, block_ids, content_hash
from raydex.ir.locator import Locator, page_box
from raydex.ir.parsed import ParsedFile, to_plain
from raydex.kernels.limits import Limits
from raydex.kernels.parse import parse
from raydex.kernels.pdf import PART_KEY, count_pages, merge_ranges, parse_pdf
from raydex.kernels.request import ParseRequest

# -- states ------------------------------------------------------------------------------------------------------------


def image_page() -> bytes:
    pixels = zlib.compress(bytes(16))
    image = stream(
        pixels, b"/Type /XObject /Subtype /Image /Width 4 /Height 4 /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /FlateDecode "
    )
    return one_page(b"q 500 0 0 700 40 60 cm /I Do Q", resources=b"/XObject << /I 6 0 R >>", more=(image,))


def test_an_image_without_text_is_no_empty_success() -> None:
    parsed = parse_pdf(request(image_page()))
    assert parsed.document is not None
    assert (parsed.document.text_state, parsed.pages[0].text_state, parsed.pages[0].warnings) == (
        "unavailable",
        "unavailable",
        ["no_text_layer"],
    )
    assert parsed.document.warnings == ["no_text_layer"]
    assert {"no_text_layer", "pdf_unavailable"} <= {event.name for event in parsed.events if event.status == "warning"}


def test_text_drawn_as_outlines_is_unavailable_and_a_rule_is_blank() -> None:
    outlined = parse_pdf(request(one_page(b"0 0 m 5 5 l 9 0 l f " * 60)))
    assert outlined.pages[0].warnings == ["no_text_layer"]
    blank = parse_pdf(request(one_page(b"72 400 m 500 400 l S")))
    assert (blank.pages[0].text_state, blank.pages[0].char_count, blank.pages[0].warnings) == ("native", 0, ["blank_page"])
    assert blank.document is not None and blank.document.warnings == ["no_semantic_blocks"]


def test_a_garbled_text_layer_is_unavailable() -> None:
    cmap = stream(
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def "
        b"1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfrange <20> <7E> <E020> endbfrange endcmap end end"
    )
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding /ToUnicode 6 0 R >>"
    parsed = parse_pdf(request(one_page(b"BT /F1 12 Tf 72 700 Td (Not to be read by anybody) Tj ET", font=font, more=(cmap,))))
    assert (parsed.pages[0].text_state, parsed.pages[0].warnings, parsed.blocks) == ("unavailable", ["garbled_text"], [])


def test_a_document_with_and_without_text_is_mixed() -> None:
    def draw(canvas) -> None:  # type: ignore[no-untyped-def]
        from PIL import Image
        from reportlab.lib.utils import ImageReader

        column(canvas, 72, 700, [SENTENCE])
        canvas.showPage()
        canvas.drawImage(ImageReader(Image.new("L", (4, 4))), 40, 60, 500, 700)
        canvas.showPage()

    parsed = parse_pdf(request(drawn(draw)))
    assert parsed.document is not None and parsed.document.text_state == "mixed"
    assert [page.text_state for page in parsed.pages] == ["native", "unavailable"]


def test_a_broken_page_costs_only_itself() -> None:
    data = raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R 99 0 R 6 0 R] /Count 3 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
            stream(b"BT /F1 12 Tf 72 700 Td (A good page.) Tj ET"),
            HELVETICA,
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        ]
    )
    parsed = parse_pdf(request(data))
    assert [block.kind for block in parsed.blocks] == ["paragraph", "error", "paragraph"]
    assert [(page.text_state, page.warnings) for page in parsed.pages] == [("native", []), ("unavailable", ["page_failed"]), ("native", [])]
    assert any(event.name == "page_failed" and event.status == "error" for event in parsed.events)


# -- limits and refusals -----------------------------------------------------------------------------------------------


def reject_class(data: bytes, limits: Limits | None = None) -> str:
    with pytest.raises(InputError) as whole:
        parse_pdf(request(data, limits=limits))
    return whole.value.reject_class


def encrypted(user: str) -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(drawn(lambda canvas: column(canvas, 72, 700, ["Secret words."])))))
    writer.encrypt(user, "owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_encrypted_files() -> None:
    assert reject_class(encrypted("word")) == "encrypted"
    with pytest.raises(InputError, match="password"):
        count_pages(encrypted("word"), Limits())
    opened = parse_pdf(request(encrypted("")))
    assert [block.text for block in opened.blocks] == ["Secret words."]
    assert opened.document is not None and "encrypted" in opened.document.metadata


def test_page_and_text_limits() -> None:
    data = drawn(with_furniture)
    assert count_pages(data, Limits()) == 5
    assert reject_class(data, Limits(pages=4)) == "too_many_pages"
    assert reject_class(data, Limits(text_bytes=300)) == "text_too_long"
    empty = raw_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [] /Count 0 >>"])
    assert reject_class(empty) == "no_pages"


@pytest.mark.parametrize("data", [b"%PDF-1.7\n", b"<html>no pdf</html>", bytes(range(256)) * 8])
def test_what_is_no_pdf_is_invalid(data: bytes) -> None:
    assert reject_class(data) == "invalid_input"


def test_a_bad_range_is_refused() -> None:
    data = drawn(with_furniture)
    for pages in ((0, 2), (4, 3), (6, 9)):
        with pytest.raises(InputError):
            parse_pdf(request(data, pages))


def test_reference_loops_end() -> None:
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>"
    content = stream(b"BT /F1 12 Tf 72 700 Td (Still here.) Tj ET")
    tree = raw_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R 2 0 R] /Count 2 >>", page, content, HELVETICA])
    prev = raw_pdf(
        [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page, content, HELVETICA], b"/Prev @XREF "
    )
    outline = raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R /Outlines 6 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            page,
            content,
            HELVETICA,
            b"<< /Type /Outlines /First 7 0 R /Last 8 0 R /Count 2 >>",
            b"<< /Title (a) /Parent 6 0 R /Next 8 0 R /First 8 0 R /Dest [3 0 R /Fit] >>",
            b"<< /Title (b) /Parent 7 0 R /Next 7 0 R /First 7 0 R /Prev 8 0 R /Dest [3 0 R /Fit] >>",
        ]
    )
    form = stream(
        b"/X Do BT /F1 12 Tf 72 700 Td (Still here.) Tj ET", b"/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources 7 0 R "
    )
    forms = one_page(b"/X Do", resources=b"/XObject << /X 6 0 R >>", more=(form, b"<< /XObject << /X 6 0 R >> /Font << /F1 5 0 R >> >>"))
    for data in (tree, prev, outline, forms):
        parsed = parse(request(data))
        assert parsed.document is not None or parsed.rejects
        assert all(block.text == "Still here." for block in parsed.blocks if block.kind != "error")
    entries = parse_pdf(request(outline)).document.metadata["outline"]  # type: ignore[union-attr]
    assert sorted(entry["title"] for entry in entries) == ["a", "b"]


@pytest.mark.parametrize(("said", "facts"), [(b"/Lang (de-DE)", {"language": "de-DE"}), (b"", {}), (b"/Lang ()", {}), (b"/Lang 7", {})])
def test_the_language_of_the_catalog(said: bytes, facts: dict[str, str]) -> None:
    good = one_page(b"BT /F1 12 Tf 72 700 Td (Words.) Tj ET")
    document = parse_pdf(request(good.replace(b"<< /Type /Catalog", b"<< /Type /Catalog " + said, 1))).document
    assert document is not None
    assert {name: value for name, value in document.metadata.items() if name == "language"} == facts


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_bytes_give_rows_or_one_reject(data: st.DataObject) -> None:
    good = bytearray(one_page(b"BT /F1 12 Tf 72 700 Td (Some words to break.) Tj ET"))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(good) - 1))
        change = data.draw(st.sampled_from(["flip", "cut", "double"]))
        if change == "flip":
            good[at] = data.draw(st.integers(0, 255))
        elif change == "cut":
            del good[at : at + data.draw(st.integers(1, 40))]
        else:
            good[at:at] = good[at : at + 30]
        if not good:
            good = bytearray(b"%")
    parsed = parse(request(bytes(good)))
    assert (parsed.document is None) == (len(parsed.rejects) == 1)
    if parsed.document is not None:
        assert to_plain(parse(request(bytes(good)))) == to_plain(parsed)


# -- ranges ------------------------------------------------------------------------------------------------------------


def long_document() -> bytes:
    def draw(canvas) -> None:  # type: ignore[no-untyped-def]
        for page in range(1, 13):
            column(canvas, 72, 815, ["Running head" if page % 2 else f"Part {page}"], size=8)
            column(canvas, 290, 30, [f"Page {page} of 12"], size=8)
            canvas.bookmarkPage(f"p{page}")
            if page % 3 == 1:
                canvas.addOutlineEntry(f"Chapter {page}", f"p{page}", 0)
            if page == 7:
                two_columns(canvas)
            else:
                column(canvas, 72, 770, [f"Chapter {page}"], "Helvetica-Bold", 16 if page % 2 else 12)
                column(canvas, 72, 740, [SENTENCE, f"that page {page} is auto-", "matic and low-", "cost."] * 2)
                column(canvas, 72, 600, [f"\u2022 item {page}", f"\u2022 other {page}"])
            canvas.showPage()

    return drawn(draw)


LONG = long_document()
WHOLE = to_plain(parse_pdf(request(LONG)))


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(2, 12), max_size=6), st.randoms(use_true_random=False))
def test_merged_ranges_equal_the_whole(cuts: set[int], random: object) -> None:
    borders = [1, *sorted(cuts), 13]
    parts = [parse_pdf(request(LONG, (first, stop - 1))) for first, stop in pairwise(borders)]
    for part in parts:
        assert [block.ordinal for block in part.blocks] == list(range(len(part.blocks)))
    random.shuffle(parts)  # type: ignore[attr-defined]
    without_bytes = ParseRequest("rec_test", content_hash(LONG), "folder/file.pdf", "application/pdf", b"")
    assert to_plain(merge_ranges(without_bytes, parts)) == WHOLE


def test_a_part_survives_json() -> None:
    parts = [parse_pdf(request(LONG, pages)) for pages in ((1, 5), (6, 12))]
    for part in parts:
        assert part.document is not None
        part.document.metadata[PART_KEY] = json.loads(json.dumps(part.document.metadata[PART_KEY]))
    assert to_plain(merge_ranges(request(LONG), parts)) == WHOLE


def test_a_range_that_was_lost_becomes_failed_pages() -> None:
    lost = ParsedFile("rec_test", content_hash(LONG), "folder/file.pdf", "application/pdf")
    lost.add_reject("parse", "crash", "the parser process died, twice", 2)
    merged = merge_ranges(request(LONG), [parse_pdf(request(LONG, (1, 4))), lost, parse_pdf(request(LONG, (7, 12)))])
    assert [page.number for page in merged.pages if page.warnings == ["page_failed"]] == [5, 6]
    assert [block.locator.page for block in merged.blocks if block.kind == "error"] == [5, 6]
    assert [reject.reject_class for reject in merged.rejects] == ["crash"]
    assert merged.document is not None and merged.document.text_state == "mixed"
    with pytest.raises(InputError) as nothing:
        merge_ranges(request(LONG), [lost])
    assert nothing.value.reject_class == "crash"


@given(st.integers(1, 2000), st.tuples(*[st.floats(-1e4, 1e4)] * 4), st.text(), st.text(), st.integers(0, 10**6))
def test_the_quick_ways_to_ids_and_boxes_equal_the_general_ones(
    page: int, box: tuple[float, float, float, float], record: str, content: str, ordinal: int
) -> None:
    assert page_box(page, *box) == Locator(page=page, bbox=box)
    assert block_ids(record, content)(ordinal) == block_id(record, content, ordinal)
