"""A golden file for every format: what `parse` makes of a small file, its members included. `GOLDEN=write pytest tests/test_golden.py`
writes them anew."""

from __future__ import annotations

from typing import Any

import pytest
from document_files import children
from golden import FOLDER, assert_golden
from golden_files import Sample, samples

from raydex.ir.parsed import ParsedFile, to_plain
from raydex.kernels.detect import detect_media_type
from raydex.kernels.limits import Limits
from raydex.kernels.parse import PARSERS, PLAIN_TYPES, parse
from raydex.kernels.request import ParseRequest

SAMPLES = {sample.name: sample for sample in samples()}
OTHERS = {"text/html", "text/markdown"}  # test_html and test_markdown have theirs
ALIKE = {"text/x-tsx": "text/x-typescript", "application/x-tar": "application/gzip", **dict.fromkeys(PLAIN_TYPES, "text/plain")}


def read(sample: Sample) -> ParsedFile:
    # the hash stands for the bytes, which the packing library's version may change
    return parse(ParseRequest("rec_golden", f"hash of {sample.name}", sample.name, sample.media_type, sample.data))


def view(parsed: ParsedFile) -> dict[str, Any]:
    """What is printed, without what is empty, the syntax tree and the picture of a picture."""
    found = to_plain(parsed)
    for name in ("code_nodes", "code_edges", "record_id", "content_hash", "path"):
        found.pop(name)
    for block in found["blocks"]:
        block["metadata"].pop("thumbnail", None)
    kept = {name: value for name, value in found.items() if value}
    if parsed.members:
        kept["members"] = [{"path": child.path, **view(child)} for child in children(parsed)]
    return kept


@pytest.mark.parametrize("name", SAMPLES)
def test_golden(name: str) -> None:
    sample = SAMPLES[name]
    assert detect_media_type(sample.data[:65_536], name) == sample.media_type
    assert_golden(f"format_{name}", view(read(sample)))


def test_text_of_a_picture() -> None:
    pytest.importorskip("rapidocr")
    pytest.importorskip("onnxruntime")
    from raydex.kernels.ocr import load_ocr_engine
    from raydex.kernels.ocr_blocks import Reading, add_ocr, numbers_to_read
    from raydex.kernels.pixels import pixels_of

    sample = SAMPLES["gauge.png"]
    parsed = read(sample)
    engine = load_ocr_engine("rapidocr", "cpu", 1)
    found_pixels = pixels_of(sample.data, sample.media_type, numbers_to_read(parsed), Limits())
    places = [(place, pixels) for place, pixels in found_pixels if pixels is not None]
    pages = engine.read([pixels for _, pixels in places])
    add_ocr(parsed, [Reading(place, page) for (place, _), page in zip(places, pages, strict=True)], engine, Limits())
    found = view(parsed)
    (seen,) = found["observations"]
    line = found["blocks"][1]
    assert seen.pop("engine_version") == engine.version
    # the last digits are the processor's
    assert min(seen.pop("confidence"), line["metadata"].pop("confidence"), line["metadata"].pop("least_confidence")) > 0.9
    x0, y0, x1, y1 = line.pop("locator")["bbox"]
    assert 0 <= x0 <= 24 and 20 <= y0 <= 48 and 220 < x1 < 335 and 65 < y1 < 95
    assert_golden("format_gauge.png_ocr", found)


def test_every_format_has_a_golden_file() -> None:
    covered = {sample.media_type for sample in SAMPLES.values()} | OTHERS
    images = {media_type for media_type in PARSERS if media_type.startswith("image/")}
    packed = {"application/x-bzip2", "application/x-xz"}
    assert {ALIKE.get(media_type, media_type) for media_type in set(PARSERS) - images - packed} <= covered
    names = {path.stem for path in FOLDER.glob("format_*.json")}
    assert names == {f"format_{name}" for name in SAMPLES} | {"format_gauge.png_ocr"}
