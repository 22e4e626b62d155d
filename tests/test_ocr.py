"""The packaged OCR and layout engines on small images, what becomes of their result, and pages of a PDF as images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
from document_files import parse_bytes
from PIL import Image, ImageDraw, ImageFont
from pypdf import PdfWriter
from shared_cases import case

from raydex.ir.document import check_document
from raydex.ir.errors import CapacityError, ConfigError, LimitError
from raydex.kernels.layout import LayoutEngine, Region, load_layout_engine
from raydex.kernels.limits import Limits
from raydex.kernels.ocr import OcrEngine, OcrLine, OcrPage, load_ocr_engine
from raydex.kernels.ocr_blocks import Place, Reading, add_ocr, needs_ocr, numbers_to_read, observe_asset
from raydex.kernels.parse import parse
from raydex.kernels.pdf_render import render_pages
from raydex.kernels.picture import read_pixels
from raydex.kernels.pixels import pixels_of
from raydex.kernels.request import ParseRequest


@pytest.fixture(scope="module")
def engine() -> Iterator[OcrEngine]:
    pytest.importorskip("rapidocr")
    pytest.importorskip("onnxruntime")
    yield load_ocr_engine("rapidocr", "cpu", 1)


@pytest.fixture(scope="module")
def layout() -> LayoutEngine:
    pytest.importorskip("rapid_layout")
    pytest.importorskip("onnxruntime")
    return load_layout_engine("rapid-layout", "cpu", 1)


def drawn(*texts: tuple[str, int, int], size: tuple[int, int] = (340, 240), height: int = 32) -> Image.Image:
    image = Image.new("RGB", size, "white")
    for text, x, y in texts:
        ImageDraw.Draw(image).text((x, y), text, fill="black", font=ImageFont.load_default(height))
    return image


def array(image: Image.Image) -> np.ndarray:
    return np.asarray(image)


def saved(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def texts(page: OcrPage) -> list[str]:
    return [line.text for line in page.lines]


HELLO = drawn(("Valve pressure 42", 20, 40))


def test_a_line_that_the_classifier_turns_wrongly_is_read_both_ways(engine: OcrEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    classify = engine._engine.cls_and_rotate  # type: ignore[attr-defined]

    def mistaken(crops: list[np.ndarray]) -> tuple[list[np.ndarray], SimpleNamespace]:
        _, found = classify(crops)
        return [crop[::-1, ::-1].copy() for crop in crops], SimpleNamespace(cls_res=[("180", 0.95) for _ in found.cls_res])

    monkeypatch.setattr(engine._engine, "cls_and_rotate", mistaken)  # type: ignore[attr-defined]
    assert [texts(page) for page in engine.read([array(HELLO), array(HELLO.rotate(180))])] == [["Valve pressure 42"]] * 2


def test_images_are_read_together_and_apart_alike(engine: OcrEngine) -> None:
    blank = Image.new("RGB", (200, 100), "white")
    images = [
        array(image) for image in (HELLO, blank, drawn(("Second page", 30, 30)), Image.new("RGB", (5, 900)), Image.new("RGB", (1, 1)))
    ]
    together = engine.read(images)
    assert [texts(page) for page in together] == [["Valve pressure 42"], [], ["Second page"], [], []]
    assert [page.error for page in together] == [""] * 5
    assert [(page.width, page.height) for page in together] == [(image.shape[1], image.shape[0]) for image in images]
    assert [texts(page) for page in engine.read(images[:1])] == [["Valve pressure 42"]]
    (line,) = together[0].lines
    assert line.confidence > 0.9
    x0, y0, x1, y1 = line.box
    assert 0 <= x0 <= 24 and 20 <= y0 <= 48 and 220 < x1 < 335 and 65 < y1 < 95
    assert engine.read([]) == []
    assert engine.name == "rapidocr" and engine.version


def test_turned_text_is_read(engine: OcrEngine) -> None:
    upside_down = HELLO.transpose(Image.Transpose.ROTATE_180)
    on_its_side = HELLO.transpose(Image.Transpose.ROTATE_90)
    flipped, standing = engine.read([array(upside_down), array(on_its_side)])
    assert texts(flipped) == ["Valve pressure 42"] and texts(standing) == ["Valve pressure 42"]
    x0, y0, x1, y1 = standing.lines[0].box
    assert y1 - y0 > 3 * (x1 - x0)


def test_one_failure_costs_one_image(engine: OcrEngine) -> None:
    odd = np.zeros((50, 60, 2), dtype=np.uint8)
    pages = engine.read([array(HELLO), odd, array(HELLO)])
    assert [texts(page) for page in pages] == [["Valve pressure 42"], [], ["Valve pressure 42"]]
    assert pages[1].error and not pages[0].error


def test_a_crop_that_breaks_the_batch(engine: OcrEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    real = engine._recognise  # type: ignore[attr-defined]

    def fails_on_wide(crops: list[np.ndarray]) -> object:
        if any(crop.shape[0] > 50 for crop in crops):
            raise ValueError("cannot")
        return real(crops)

    monkeypatch.setattr(engine, "_recognise", fails_on_wide)
    wide = drawn(("Tall", 10, 40), height=90)
    pages = engine.read([array(HELLO), array(wide)])
    assert texts(pages[0]) == ["Valve pressure 42"] and pages[0].error == ""
    assert pages[1].lines == () and pages[1].error == "ValueError: cannot"


def test_lack_of_memory_is_raised(engine: OcrEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(crops: object) -> None:
        raise RuntimeError("CUDA failure 2: out of memory")

    monkeypatch.setattr(engine, "_recognise", fails)
    with pytest.raises(CapacityError, match="memory"):
        engine.read([array(HELLO)])


def test_unknown_engines_and_devices() -> None:
    for load in (load_ocr_engine, load_layout_engine):
        with pytest.raises(ConfigError, match="nothing"):
            load("nothing")
        with pytest.raises(ConfigError, match="tpu"):
            load(device="tpu")
        with pytest.raises(ConfigError, match="0 threads"):
            load(threads=0)


def test_case_b51(engine: OcrEngine) -> None:
    folder = case("b51-ocr-alpha-exif")
    names = {"black_on_clear.png": "image/png", "white_on_clear.png": "image/png", "rotated_exif.jpg": "image/jpeg"}
    pages = engine.read([read_pixels((folder / name).read_bytes(), media_type, Limits()) for name, media_type in names.items()])
    black, white, turned = (" ".join(texts(page)) for page in pages)
    assert black == "LEVEL 42 OK" and {"GATE", "9", "SHUT"} <= set(white.split()) and turned == "TURN HANDLE"
    x0, y0, x1, y1 = pages[2].lines[0].box
    assert x1 - x0 > y1 - y0


def test_layout_of_a_page(layout: LayoutEngine) -> None:
    rows = [(f"A line of running text with the number {at}, set to be a paragraph of the page", 60, 120 + 24 * at) for at in range(8)]
    page = array(drawn(*rows, size=(800, 1000), height=18))
    found, blank = layout.find([page, np.full((300, 200, 3), 255, dtype=np.uint8)])
    assert blank == []
    assert any(region.kind == "text" and region.box[1] < 200 < region.box[3] for region in found)
    assert all(0 <= region.box[0] < region.box[2] <= 800 and 0 <= region.box[1] < region.box[3] <= 1000 for region in found)


ROWS = ("First line of the label", "Second line below it", "Third and last of them")


def test_a_turned_page_is_read_upright_and_its_boxes_are_of_the_image_as_given(engine: OcrEngine) -> None:
    upright = drawn(*((text, 20, 40 + 60 * at) for at, text in enumerate(ROWS)), size=(420, 240), height=28)
    angles = (0, 1, 2, 3)
    images = [np.ascontiguousarray(np.rot90(array(upright), -angle)) for angle in angles]
    pages = engine.read(images)
    straight = [line.box for line in pages[0].lines]
    for angle, image, page in zip(angles, images, pages, strict=True):
        assert (page.turn, (page.width, page.height), texts(page)) == (angle, (420, 240), list(ROWS))
        for line, box in zip(page.lines, straight, strict=True):
            assert np.allclose(line.box, box, atol=6)
            x0, y0, x1, y1 = (round(edge) for edge in page.original(line.box))
            inside = image[y0:y1, x0:x1]
            assert inside.shape[:2] == ((y1 - y0), (x1 - x0)) and inside.min() < 80  # the ink is there
        assert page.original((0, 0, 420, 240)) == (0, 0, image.shape[1], image.shape[0])
    mostly = drawn(*((text, 20, 20 + 60 * at) for at, text in enumerate(ROWS)), size=(420, 240), height=28)
    mostly.paste(HELLO.crop((0, 20, 340, 80)).transpose(Image.Transpose.ROTATE_180), (20, 190))
    assert engine.read([array(mostly)])[0].turn == 0


class Recorded:
    """An engine whose results are given."""

    name, version = "recorded", "7"

    def read(self, images: Sequence[np.ndarray]) -> list[OcrPage]:
        raise NotImplementedError


def read_page(*lines: tuple[str, float], size: tuple[int, int] = (340, 240), error: str = "") -> OcrPage:
    placed = (OcrLine(text, 0.8, (20.0, y, 20.0 + 10 * len(text), y + 20)) for text, y in lines)
    return OcrPage(*size, tuple(placed), error)


def test_image_file_with_its_text() -> None:
    data = saved(HELLO)
    parsed = parse_bytes(data, "image/png", "gauge.png")
    ((place, pixels),) = pixels_of(data, parsed.media_type, numbers_to_read(parsed), Limits())
    assert place == Place() and pixels is not None and pixels.shape == (240, 340, 3)
    add_ocr(parsed, [Reading(place, read_page(("Valve pressure 42", 40)))], Recorded(), Limits())
    assert [(block.ordinal, block.kind, block.text) for block in parsed.blocks] == [(0, "image", ""), (1, "paragraph", "Valve pressure 42")]
    assert str(parsed.blocks[1].locator) == "bbox=20.00,40.00,190.00,60.00"
    assert parsed.blocks[1].metadata == {"source": "ocr", "confidence": 0.8, "least_confidence": 0.8}
    assert parsed.document is not None
    assert (parsed.document.text_state, parsed.document.block_count, parsed.document.char_count) == ("ocr", 2, 17)
    (seen,) = parsed.observations
    assert (seen.asset_id, seen.kind, seen.status, seen.text, seen.confidence) == (
        parsed.assets[0].asset_id,
        "ocr",
        "ok",
        "Valve pressure 42",
        0.8,
    )
    assert (seen.engine, seen.engine_version, str(seen.locator)) == ("recorded", "7", "bbox=0.00,0.00,340.00,240.00")
    check_document(parsed.document, parsed.blocks, parsed.pages)


@pytest.mark.parametrize(
    ("turn", "bbox"), [(1, (180.0, 20.0, 200.0, 190.0)), (2, (150.0, 180.0, 320.0, 200.0)), (3, (40.0, 150.0, 60.0, 320.0))]
)
def test_blocks_of_a_turned_page_name_the_pixels_of_the_file(turn: int, bbox: tuple[float, ...]) -> None:
    data = saved(Image.new("RGB", (340, 240) if turn == 2 else (240, 340), "white"))
    parsed = parse_bytes(data, "image/png", "gauge.png")
    add_ocr(parsed, [Reading(Place(), replace(read_page(("Valve pressure 42", 40)), turn=turn))], Recorded(), Limits())
    assert parsed.blocks[1].locator.bbox == bbox and parsed.observations[0].locator.bbox == parsed.blocks[0].locator.bbox
    (event,) = [event for event in parsed.events if event.name == "page_turned"]
    assert f"the image by {90 * turn} degrees" in event.message


def events_of(page: OcrPage) -> list[tuple[str, str]]:
    parsed = parse_bytes(saved(HELLO), "image/png", "gauge.png")
    add_ocr(parsed, [Reading(Place(), page)], Recorded(), Limits())
    return [(event.name, event.message) for event in parsed.events if event.stage == "ocr"]


def test_text_that_the_engine_cannot_read_is_said() -> None:
    scores = enumerate((0.62, 0.7, 0.95))
    lines = tuple(OcrLine(f"UI a4XI {at}", score, (20.0, 40.0 * at, 200.0, 40.0 * at + 30)) for at, score in scores)
    ((name, message),) = events_of(OcrPage(340, 240, lines, unread=1))
    assert name == "text_hardly_readable" and "the image (3 of 4 lines)" in message and "recorded" in message and "ocr.engine" in message
    assert [name for name, _ in events_of(OcrPage(340, 240, unread=5))] == ["text_hardly_readable"]  # and not no_text
    assert events_of(OcrPage(340, 240, lines[1:], unread=0)) == []  # two lines tell nothing
    assert events_of(OcrPage(340, 240, tuple(replace(line, confidence=0.0) for line in lines))) == []  # an engine that tells none
    assert events_of(read_page(("Valve", 40), ("pressure", 80), ("gauge", 120))) == []
    parsed = parse_bytes(saved(HELLO), "image/png", "gauge.png")
    observe_asset(parsed, parsed.assets[0], OcrPage(340, 240, unread=5), Recorded())
    assert [event.name for event in parsed.events if event.stage == "ocr"] == ["text_hardly_readable"]


def test_lines_without_a_reading_are_counted_and_noise_turns_no_page(engine: OcrEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    upside_down = drawn(*((text, 20, 40 + 60 * at) for at, text in enumerate(ROWS)), size=(420, 240), height=28)
    image = array(upside_down.transpose(Image.Transpose.ROTATE_180))
    for reading, lines, unread in ((("  ", 0.9), 0, 3), (("noise", 0.3), 0, 3), (("noise", 0.7), 3, 0)):
        monkeypatch.setattr(engine, "_read_lines", lambda crops, reading=reading: [reading for _ in crops])
        (page,) = engine.read([image])
        assert (page.turn, len(page.lines), page.unread) == (0, lines, unread)
        assert page.doubtful == 3


def test_no_text_is_no_failure_and_a_failure_no_success() -> None:
    for page, status, state, events in (
        (read_page(), "no_text", "ocr", ["no_text"]),
        (read_page(error="ValueError: cannot"), "failed", "unavailable", ["ocr_failed"]),
    ):
        parsed = parse_bytes(saved(HELLO), "image/png", "gauge.png")
        add_ocr(parsed, [Reading(Place(), page)], Recorded(), Limits())
        assert parsed.document is not None and [block.kind for block in parsed.blocks] == ["image"]
        assert (parsed.observations[0].status, parsed.observations[0].confidence, parsed.document.text_state) == (status, None, state)
        assert [event.name for event in parsed.events if event.stage == "ocr"] == events
        assert parsed.document.warnings == (["ocr_failed"] if status == "failed" else [])


def test_frames_of_a_tiff_are_pages() -> None:
    data = saved(HELLO, "TIFF", save_all=True, append_images=[drawn(("Second", 20, 40)), drawn(("Third", 20, 40))])
    parsed = parse_bytes(data, "image/tiff", "fax.tif")
    places = [place for place, _ in pixels_of(data, parsed.media_type, numbers_to_read(parsed), Limits())]
    assert [place.page for place in places] == [1, 2, 3]
    pages = [read_page(("FIRST PAGE", 10), ("text of one", 40)), read_page(error="boom"), read_page(("text of three", 40))]
    add_ocr(parsed, [Reading(place, page) for place, page in zip(places, pages, strict=True)], Recorded(), Limits())
    assert [(block.kind, block.text, block.locator.page, block.section_path) for block in parsed.blocks[1:]] == [
        ("heading", "FIRST PAGE", 1, ["FIRST PAGE"]),
        ("paragraph", "text of one", 1, ["FIRST PAGE"]),
        ("paragraph", "text of three", 3, ["FIRST PAGE"]),
    ]
    assert [page.text_state for page in parsed.pages] == ["ocr", "unavailable", "ocr"]
    assert parsed.document is not None and (parsed.document.text_state, parsed.document.warnings) == ("mixed", ["ocr_failed"])
    assert [item.status for item in parsed.observations] == ["ok", "failed", "ok"]
    assert len({item.observation_id for item in parsed.observations}) == 3


def test_limits_hold_for_what_is_read() -> None:
    for limits, reject_class in ((Limits(blocks=1), "too_many_blocks"), (Limits(text_bytes=3), "text_too_long")):
        parsed = parse_bytes(saved(HELLO), "image/png")
        with pytest.raises(LimitError) as caught:
            add_ocr(parsed, [Reading(Place(), read_page(("Valve", 40)))], Recorded(), limits)
        assert caught.value.reject_class == reject_class


def scan_pdf(rotate: int = 0) -> bytes:
    """Three pages: text, a picture of text, and text again; the picture's page is turned."""
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    out = BytesIO()
    canvas = Canvas(out, pagesize=(240, 60))
    canvas.drawString(20, 30, "Native text of page one.")
    canvas.showPage()
    canvas.drawImage(ImageReader(HELLO.crop((0, 30, 340, 115))), 0, 0, 240, 60)
    canvas.showPage()
    canvas.drawString(20, 30, "Native text of page three.")
    canvas.save()
    writer = PdfWriter(clone_from=out)
    writer.pages[1].rotate(rotate)
    turned = BytesIO()
    writer.write(turned)
    return turned.getvalue()


def test_scanned_page_among_native_ones() -> None:
    data = scan_pdf()
    parsed = parse(ParseRequest("rec_test", "hash", "mixed.pdf", "application/pdf", data))
    assert [page.number for page in parsed.pages if needs_ocr(page)] == [2]
    ((place, pixels),) = pixels_of(data, parsed.media_type, numbers_to_read(parsed), Limits())
    assert place.page == 2 and pixels is not None and pixels.shape == (360, 1440, 3)
    page = OcrPage(1440, 360, (OcrLine("Valve pressure 42", 0.8, (60.0, 120.0, 720.0, 240.0)),))
    figure = Region("figure", (900.0, 60.0, 1400.0, 300.0), 0.9)
    add_ocr(parsed, [Reading(place, page, [figure])], Recorded(), Limits())
    assert [(block.kind, block.text, block.locator.page) for block in parsed.blocks] == [
        ("paragraph", "Native text of page one.", 1),
        ("paragraph", "Valve pressure 42", 2),
        ("image", "", 2),
        ("paragraph", "Native text of page three.", 3),
    ]
    assert [block.ordinal for block in parsed.blocks] == [0, 1, 2, 3] and len({block.block_id for block in parsed.blocks}) == 4
    assert parsed.blocks[1].locator.bbox == (10.0, 20.0, 120.0, 40.0)
    assert [(asset.asset_id, str(asset.locator)) for asset in parsed.assets] == [
        (parsed.blocks[2].asset_ref, "page=2;bbox=150.00,10.00,233.33,50.00;image=1")
    ]
    assert [page.text_state for page in parsed.pages] == ["native", "ocr", "native"] and parsed.pages[1].warnings == []
    assert parsed.document is not None and parsed.document.text_state == "mixed" and "no_text_layer" not in parsed.document.warnings
    assert parsed.observations[0].asset_id == parsed.pages[1].page_id


def test_rendered_pages() -> None:
    data = scan_pdf(rotate=90)
    one, two, none = render_pages(data, [1, 2, 9], Limits(), scale=2.0)
    assert one.pixels is not None and one.pixels.shape == (120, 480, 3) and one.pixels[0, 0].tolist() == [255, 255, 255]
    assert two.pixels is not None and two.pixels.shape == (480, 120, 3) and (two.width, two.height) == (60.0, 240.0)
    assert two.to_points((0, 240, 60, 480)) == (0.0, 120.0, 30.0, 240.0)
    assert none.pixels is None and "no page 9" in none.error
    (small,) = render_pages(data, [1], Limits(image_pixels=1000), scale=50.0)
    assert small.pixels is not None and small.pixels.shape[0] * small.pixels.shape[1] <= 1000
    assert small.to_points((0, 0, small.pixels.shape[1], small.pixels.shape[0])) == pytest.approx((0, 0, 240, 60))
    assert (small.pixels < 255).any()


def test_end_to_end(engine: OcrEngine, layout: LayoutEngine) -> None:
    data = scan_pdf()
    parsed = parse(ParseRequest("rec_test", "hash", "mixed.pdf", "application/pdf", data))
    places, pixels = zip(
        *((place, image) for place, image in pixels_of(data, parsed.media_type, numbers_to_read(parsed), Limits()) if image is not None),
        strict=True,
    )
    pages, regions = engine.read(pixels), layout.find(pixels)
    readings = [Reading(*parts) for parts in zip(places, pages, regions, strict=True)]
    add_ocr(parsed, readings, engine, Limits())
    assert "Valve pressure 42" in [block.text for block in parsed.blocks if block.locator.page == 2]
    assert parsed.observations[0].status == "ok" and parsed.observations[0].engine == "rapidocr"


def test_version_of_a_layout_engine(layout: LayoutEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (layout.name, bool(layout.version)) == ("rapid-layout", True)

    def fails(image: object) -> SimpleNamespace:
        raise ValueError("cannot")

    monkeypatch.setattr(layout._engine, "model_handler", fails)  # type: ignore[attr-defined]
    assert layout.find([array(HELLO)]) == [[]]
