"""Image files: header, orientation, transparency, depth, frames, thumbnails, hostile bytes."""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from document_files import CORPUS, parse_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw
from shared_cases import case

from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.limits import Limits
from raydex.kernels.picture import FORMATS, read_pixels, thumbnail

RED, BLUE = (220, 20, 30), (20, 40, 210)


def two_colours(mode: str = "RGB", size: tuple[int, int] = (60, 40)) -> Image.Image:
    """Red on the left, blue on the right."""
    image = Image.new("RGB", size, RED)
    image.paste(BLUE, (size[0] // 2, 0, *size))
    return image.convert(mode)


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def parsed_image(data: bytes, media_type: str, path: str = "folder/front.view.png", limits: Limits | None = None) -> ParsedFile:
    return parse_bytes(data, media_type, path, limits)


def near(pixel: object, colour: tuple[int, int, int], by: int = 30) -> bool:
    return bool((abs(np.asarray(pixel, dtype=int) - colour) <= by).all())


def oriented(orientation: int, kind: str = "JPEG") -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return saved(two_colours(), kind, exif=exif, **({"quality": 95} if kind == "JPEG" else {}))


def test_document_of_one_image() -> None:
    data = saved(two_colours(), "PNG", dpi=(300, 300))
    parsed = parsed_image(data, "image/png")
    assert parsed.document is not None
    assert (parsed.document.title, parsed.document.text_state, parsed.document.block_count) == ("front.view", "unavailable", 1)
    assert parsed.document.metadata == {"width": 60, "height": 40, "frames": 1, "mode": "RGB", "dpi": [300.0, 300.0]}
    (block,), (asset,) = parsed.blocks, parsed.assets
    assert (block.kind, block.text, block.asset_ref, str(block.locator)) == (
        "image",
        "",
        asset.asset_id,
        "bbox=0.00,0.00,60.00,40.00;image=1",
    )
    assert (asset.media_type, asset.width, asset.height) == ("image/png", 60, 40)
    assert parsed.blobs == {asset.asset_id: data}
    assert [event.name for event in parsed.events] == ["image_without_text"]


@pytest.mark.parametrize("media_type", sorted(FORMATS))
def test_formats(media_type: str) -> None:
    data = saved(two_colours(), FORMATS[media_type])
    parsed = parsed_image(data, media_type)
    assert parsed.document is not None and parsed.rejects == []
    assert (parsed.assets[0].width, parsed.assets[0].height) == (60, 40)
    pixels = read_pixels(data, media_type, Limits())
    assert pixels.shape == (40, 60, 3) and pixels.dtype == np.uint8
    assert near(pixels[20, 5], RED, 60) and near(pixels[20, 55], BLUE, 60)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation(orientation: int) -> None:
    """The left half of what is stored is red: where it is on the upright image."""
    red = {1: (20, 5), 2: (20, 55), 3: (20, 55), 4: (20, 5), 5: (5, 20), 6: (5, 20), 7: (55, 20), 8: (55, 20)}[orientation]
    for kind, media_type in (("JPEG", "image/jpeg"), ("PNG", "image/png"), ("WEBP", "image/webp")):
        data = oriented(orientation, kind)
        parsed = parsed_image(data, media_type)
        assert (parsed.assets[0].width, parsed.assets[0].height) == ((60, 40) if orientation < 5 else (40, 60))
        assert parsed.blocks[0].metadata.get("orientation", 1) == orientation
        assert near(read_pixels(data, media_type, Limits())[red], RED, 60)
        small = Image.open(BytesIO(b64decode(parsed.blocks[0].metadata["thumbnail"])))
        assert small.size == ((336, 224) if orientation < 5 else (224, 336))


def test_tiff_orientation_is_applied_once() -> None:
    data = saved(two_colours(), "TIFF", tiffinfo={0x0112: 6})
    assert parsed_image(data, "image/tiff").assets[0].width == 40
    pixels = read_pixels(data, "image/tiff", Limits())
    assert pixels.shape == (60, 40, 3) and near(pixels[5, 20], RED)


def test_capture_time() -> None:
    exif = Image.Exif()
    exif[0x0132] = "2020:01:01 00:00:00"
    exif.get_ifd(0x8769).update({0x9003: "2021:07:04 18:30:05", 0x9011: "+02:00"})
    assert parsed_image(saved(two_colours(), "JPEG", exif=exif), "image/jpeg").blocks[0].metadata["taken"] == "2021-07-04T18:30:05+02:00"
    exif = Image.Exif()
    exif[0x0132] = "0000:00:00 00:00:00"
    assert "taken" not in parsed_image(saved(two_colours(), "JPEG", exif=exif), "image/jpeg").blocks[0].metadata


def test_transparency_lies_on_white_unless_the_ink_is_bright() -> None:
    for ink, ground in ((0, 255), (255, 0)):
        image = Image.new("RGBA", (80, 40), (ink, ink, ink, 0))
        ImageDraw.Draw(image).rectangle((20, 10, 60, 30), fill=(ink, ink, ink, 255))
        for made in (image, image.convert("LA")):
            pixels = read_pixels(saved(made, "PNG"), "image/png", Limits())
            assert pixels[0, 0].tolist() == [ground] * 3 and pixels[20, 40].tolist() == [ink] * 3
    clear = read_pixels(saved(Image.new("RGBA", (9, 9), (0, 0, 0, 0)), "PNG"), "image/png", Limits())
    assert clear.min() == 255


def test_transparent_colour_of_a_palette() -> None:
    image = Image.new("P", (10, 10), 0)
    image.putpalette([10, 10, 10, 20, 30, 40])
    image.putpixel((5, 5), 1)
    pixels = read_pixels(saved(image, "PNG", transparency=0), "image/png", Limits())
    assert pixels[0, 0].tolist() == [255, 255, 255] and pixels[5, 5].tolist() == [20, 30, 40]


def test_other_depths() -> None:
    assert near(read_pixels(saved(two_colours("CMYK"), "JPEG", quality=95), "image/jpeg", Limits())[20, 5], RED, 60)
    assert near(read_pixels(saved(two_colours("P"), "GIF"), "image/gif", Limits())[20, 5], RED, 40)
    bits = Image.new("1", (20, 10), 1)
    bits.putpixel((3, 4), 0)
    pixels = read_pixels(saved(bits, "TIFF", compression="group4"), "image/tiff", Limits())
    assert pixels[4, 3].tolist() == [0, 0, 0] and pixels[0, 0].tolist() == [255, 255, 255]
    for brightest in (4095, 65535):  # twelve bits in sixteen are as bright as sixteen
        grey = Image.fromarray(np.linspace(0, brightest, 200).astype(np.uint16).reshape(10, 20))
        pixels = read_pixels(saved(grey, "PNG"), "image/png", Limits())
        assert pixels[0, 0].tolist() == [0, 0, 0] and pixels[-1, -1].tolist() == [255, 255, 255] and 110 < pixels[5, 0, 0] < 145
    floats = Image.fromarray(np.linspace(-1, 1, 200).astype(np.float32).reshape(10, 20))
    assert read_pixels(saved(floats, "TIFF"), "image/tiff", Limits())[-1, -1, 0] == 255


def test_frames() -> None:
    frames = [two_colours(size=(60, 40)), two_colours(size=(30, 50))]
    data = saved(frames[0], "TIFF", save_all=True, append_images=frames[1:])
    parsed = parsed_image(data, "image/tiff")
    assert parsed.document is not None and parsed.document.page_count == 2
    assert [(page.number, page.width, page.height, page.text_state) for page in parsed.pages] == [
        (1, 60, 40, "unavailable"),
        (2, 30, 50, "unavailable"),
    ]
    assert read_pixels(data, "image/tiff", Limits(), 1).shape == (50, 30, 3)
    with pytest.raises(InputError):
        read_pixels(data, "image/tiff", Limits(), 2)
    film = parsed_image(saved(frames[0], "GIF", save_all=True, append_images=[frames[1].resize((60, 40))]), "image/gif")
    assert film.blocks[0].metadata["frames"] == 2 and film.pages == []
    assert [event.message for event in film.events if event.name == "frames_left_out"] == [
        "of an animation of 2 frames the first is read and shown to captions, 1 are not"
    ]
    assert not any(event.name == "frames_left_out" for event in parsed.events)


def test_large_later_frame_costs_itself() -> None:
    data = saved(two_colours(size=(20, 20)), "TIFF", save_all=True, append_images=[two_colours(size=(200, 100))])
    parsed = parsed_image(data, "image/tiff", limits=Limits(image_pixels=1000))
    assert [page.warnings for page in parsed.pages] == [[], ["image_too_large"]]
    (said,) = [event.message for event in parsed.events if event.name == "image_too_large"]
    assert said == "frames 2 (20,000 pixels) are not read; limits.image_pixels allows 1,000"
    with pytest.raises(InputError, match=r"20,000 pixels \(200 x 100\); limits.image_pixels allows 1,000"):
        read_pixels(data, "image/tiff", Limits(image_pixels=1000), 1)


def test_more_frames_than_pages_allowed() -> None:
    data = saved(two_colours(), "TIFF", save_all=True, append_images=[two_colours()] * 4)
    parsed = parsed_image(data, "image/tiff", limits=Limits(pages=3))
    (said,) = [event.message for event in parsed.events if event.name == "too_many_frames"]
    assert len(parsed.pages) == 3 and said == "the picture has 5 frames; limits.pages allows 3, the last 2 are not read"


def size_of(data: bytes) -> tuple[int, int]:
    return Image.open(BytesIO(data)).size


def test_thumbnail_has_the_short_side() -> None:
    for size, small in (((600, 400), (336, 224)), ((400, 600), (224, 336)), ((60, 60), (224, 224)), ((1, 5000), (1, 2048))):
        data = saved(two_colours(size=size), "PNG")
        assert size_of(thumbnail(data, "image/png", Limits())) == small
        assert thumbnail(data, "image/png", Limits()) == thumbnail(data, "image/png", Limits())


def png_header(width: int, height: int) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    body = b"IDAT" + zlib.compress(b"\0" * 100)
    parts = [struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in (chunk, body, b"IEND")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def reject_of(parsed: ParsedFile) -> str:
    assert parsed.document is None and parsed.blocks == []
    return parsed.rejects[0].reject_class


def test_a_refused_picture_tells_its_size_and_the_limit() -> None:
    parsed = parsed_image(png_header(30_000, 30_000), "image/png")
    assert re.search(r"the picture has 900,000,000 pixels; the image library opens [\d,]{9,} at most", parsed.rejects[0].error)
    parsed = parsed_image(png_header(9_500, 9_500), "image/png")
    assert f"90,250,000 pixels (9500 x 9500); limits.image_pixels allows {Limits().image_pixels:,}" in parsed.rejects[0].error


def test_bombs_are_refused_by_their_header() -> None:
    for width, height in ((30_000, 30_000), (12_000, 12_000), (9_500, 9_500)):
        assert reject_of(parsed_image(png_header(width, height), "image/png")) == "bomb"
    small = Limits(image_pixels=60 * 40 - 1)
    for media_type, reader in FORMATS.items():
        assert reject_of(parsed_image(saved(two_colours(), reader), media_type, limits=small)) == "bomb"
    webp = b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\xff\x3f\0\xff\x3f\0" + b"\0" * 40
    assert reject_of(parsed_image(webp, "image/webp")) == "bomb"


@pytest.mark.parametrize("media_type", sorted(FORMATS))
def test_cut_off_files_are_rejected(media_type: str) -> None:
    noise = Image.fromarray(np.random.default_rng(5).integers(0, 255, (64, 64, 3), dtype=np.uint8))
    data = saved(noise, FORMATS[media_type])
    for size in (3, 12, 40, len(data) // 2):
        assert reject_of(parsed_image(data[:size], media_type)) == "invalid_input"


def test_type_and_content_must_agree() -> None:
    assert reject_of(parsed_image(saved(two_colours(), "PNG"), "image/jpeg")) == "invalid_input"
    assert reject_of(parsed_image(b"\0\0\0\x18ftypheic" + b"\0" * 30, "image/heic")) == "unsupported_media_type"


def test_tiff_whose_directories_run_in_circles() -> None:
    data = bytearray(saved(two_colours(), "TIFF"))
    (start,) = struct.unpack("<I", data[4:8])
    (entries,) = struct.unpack("<H", data[start : start + 2])
    data[start + 2 + 12 * entries : start + 6 + 12 * entries] = struct.pack("<I", start)
    parsed = parsed_image(bytes(data), "image/tiff")
    assert parsed.document is not None and parsed.blocks[0].metadata["frames"] == 1


def test_broken_exif_costs_nothing_else() -> None:
    data = saved(two_colours(), "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff" + b"\xff" * 40)
    parsed = parsed_image(data, "image/jpeg")
    assert parsed.document is not None and "orientation" not in parsed.blocks[0].metadata


SEEDS = {media_type: saved(two_colours(size=(16, 12)), reader) for media_type, reader in FORMATS.items()}


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FORMATS)), st.integers(0, 400), st.binary(max_size=12), st.booleans())
def test_any_bytes_give_an_image_or_a_typed_reject(media_type: str, at: int, patch: bytes, insert: bool) -> None:
    data = SEEDS[media_type]
    data = data[:at] + patch + data[at + (0 if insert else len(patch)) :]
    parsed = parsed_image(data, media_type, limits=Limits(image_pixels=1_000_000))
    if parsed.document is None:
        assert reject_of(parsed) in ("invalid_input", "bomb", "empty")
    else:
        assert len(parsed.blocks) == 1 and b64decode(parsed.blocks[0].metadata["thumbnail"])[:2] == b"\xff\xd8"


def test_case_b51_pixels() -> None:
    folder = case("b51-ocr-alpha-exif")
    for name, ground in (("black_on_clear.png", 255), ("white_on_clear.png", 0)):
        pixels = read_pixels((folder / name).read_bytes(), "image/png", Limits())
        assert pixels[0, 0].tolist() == [ground] * 3 and pixels.max() - pixels.min() == 255
    parsed = parsed_image((folder / "rotated_exif.jpg").read_bytes(), "image/jpeg")
    assert parsed.blocks[0].metadata["orientation"] == 6 and parsed.assets[0].width > parsed.assets[0].height  # type: ignore[operator]


def test_corpus_images() -> None:
    folder = CORPUS / "image"
    if not folder.is_dir():
        pytest.skip("shared/corpora is not beside this checkout")
    for name, media_type, size in (
        ("medical_report_p2.jpg", "image/jpeg", (850, 1100)),
        ("webp-test.webp", "image/webp", (2000, 2829)),
    ):
        parsed = parsed_image((folder / name).read_bytes(), media_type)
        assert (parsed.assets[0].width, parsed.assets[0].height) == size
