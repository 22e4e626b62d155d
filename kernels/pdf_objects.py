"""What stands on a PDF page beside its text: images with their boxes, and whether text may hide in pictures or outlines.

Images are named by page, box and size in pixels; their bytes stay in the file. A walk over a page's objects is bounded in number and depth,
and is spared where no object of the file is an image and the page has text enough. The invariant: boxes are those of the upright page.
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from raydex.kernels.pdf_raw import HIDDEN, Box, Frame, Matrix, Page, matrix_of, pdfium, upright
from raydex.kernels.pdf_rules import MAX_RULES, RuleReader, may_hold_tables

MAX_OBJECTS = 20_000
MAX_FORM_DEPTH = 8
MAX_IMAGES = 500
FEW_CHARS = 200
STAMP_CHARS = 100
OUTLINED_PATHS = 24
LEAST_SIDE = 8.0  # points: less is a rule or a dot
WHOLE_PAGE = 0.8
REPEATED = 3
# a stream's dictionary is never compressed, so that a file with image objects says so somewhere in its bytes
_IMAGE = re.compile(rb"/Subtype\s{0,8}/Image\b")


def has_images(data: bytes) -> bool:
    return _IMAGE.search(data) is not None


def read_objects(handle: Any, page: Page, frame: Frame, images: bool) -> None:
    """Fills `images` ([x0, y0, x1, y1, width, height]: points and pixels), `rules` where texts stand side by side and, for a page with
    little text, its state and warnings."""
    few = page["chars"] < FEW_CHARS and page["state"] == "native"
    ruled = page["state"] == "native" and may_hold_tables(page)
    if not images and not few and not ruled:
        return
    reader = RuleReader(frame) if ruled else None
    found, paths = _walk(handle, frame, reader)
    if reader is not None and len(reader.rules) <= MAX_RULES:
        page["rules"] = [[round(side, 2) for side in box] for box in reader.rules]
    page["images"] = [[*(round(side, 2) for side in box), *size] for box, size in found[:MAX_IMAGES]]
    if few:
        _judge(page, found, paths)


def _judge(page: Page, found: Sequence[tuple[Box, tuple[int, int]]], paths: int) -> None:
    """A page with little or no text: blank, an image of text, or text drawn as outlines?"""
    area = sum((box[2] - box[0]) * (box[3] - box[1]) for box, _ in found)
    if page["chars"] == 0:
        if found or paths >= OUTLINED_PATHS:
            page["state"] = "unavailable"
            page["warnings"].append("no_text_layer")
        else:
            page["warnings"].append("blank_page")
    elif area > 0.5 * page["width"] * page["height"]:
        page["warnings"].append("mostly_image")
        if page["chars"] < STAMP_CHARS and any(_covers(box, page) for box, _ in found) and not all(s & HIDDEN for s in page["style"]):
            page["state"] = "unavailable"  # a scan with a stamp or a number on it; a layer of hidden text is what a reader made of it
            page["warnings"].append("scan_with_stamp")


def _covers(box: Box, page: Page) -> bool:
    return (box[2] - box[0]) * (box[3] - box[1]) > WHOLE_PAGE * page["width"] * page["height"]


def _walk(handle: Any, frame: Frame, reader: RuleReader | None) -> tuple[list[tuple[Box, tuple[int, int]]], int]:
    """(box and pixels of each image, number of paths)."""
    calls = pdfium()
    raw, kind_of = calls.raw, calls.object_type
    image, path, form = raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_FORM
    found: list[tuple[Box, tuple[int, int]]] = []
    paths = seen = 0
    none: tuple[Matrix, ...] = ()
    stack = [(raw.FPDFPage_CountObjects(handle), calls.page_object, ctypes.cast(handle, ctypes.c_void_p), none)]
    while stack and seen < MAX_OBJECTS:
        count, get, owner, around = stack.pop()
        for index in range(min(count, MAX_OBJECTS - seen)):
            seen += 1
            address = get(owner, index)
            if not address:
                continue
            item = ctypes.c_void_p(address)
            kind = kind_of(item)
            if kind == path:
                paths += 1
                if reader is not None:
                    reader.add(item, around)
            elif kind == image:
                box = _bounds(item, around)
                if box is not None:
                    found.append((upright(frame, *box), _pixels(item)))
            elif kind == form and len(around) < MAX_FORM_DEPTH:
                handle_of = ctypes.cast(item, raw.FPDF_PAGEOBJECT)
                stack.append((raw.FPDFFormObj_CountObjects(handle_of), calls.form_object, item, (matrix_of(handle_of), *around)))
    return found, paths


def _bounds(item: Any, around: tuple[Matrix, ...]) -> Box | None:
    """The box of an object in page space; one inside forms is given in the innermost one's space."""
    raw = pdfium().raw
    edges = [ctypes.c_float() for _ in range(4)]
    if not raw.FPDFPageObj_GetBounds(ctypes.cast(item, raw.FPDF_PAGEOBJECT), *edges):
        return None
    x0, y0, x1, y1 = (edge.value for edge in edges)
    for a, b, c, d, e, f in around:
        corners = [(a * x + c * y + e, b * x + d * y + f) for x in (x0, x1) for y in (y0, y1)]
        xs, ys = [corner[0] for corner in corners], [corner[1] for corner in corners]
        x0, y0, x1, y1 = min(xs), min(ys), max(xs), max(ys)
    return (x0, y0, x1, y1) if all(abs(side) < 1e6 for side in (x0, y0, x1, y1)) and x1 > x0 and y1 > y0 else None


def _pixels(item: Any) -> tuple[int, int]:
    raw = pdfium().raw
    width, height = ctypes.c_uint(), ctypes.c_uint()
    known = raw.FPDFImageObj_GetImagePixelSize(ctypes.cast(item, raw.FPDF_PAGEOBJECT), width, height)
    return (int(width.value), int(height.value)) if known else (0, 0)


def pictures_of(pages: Sequence[Page]) -> tuple[list[list[list[float]]], int]:
    """Per page the images that are pictures to a reader, and how many are left out as such that repeat at one place (a letterhead).

    Rules and dots, what lies outside of the page, and the image that is a scanned page itself are no pictures; a page without usable text
    has none, since its layout is found when it is read.
    """
    kept = [[image for image in page["images"] if _is_picture(image, page)] for page in pages]
    seen = Counter(key for images in kept for key in {_key(image) for image in images})
    often = {key for key, count in seen.items() if count >= REPEATED and 2 * count > len(pages)}
    out = [[image for image in images if _key(image) not in often] for images in kept]
    return out, sum(len(images) for images in kept) - sum(len(images) for images in out)


def _key(image: list[float]) -> tuple[int, ...]:
    return tuple(round(value) for value in image)


def _is_picture(image: list[float], page: Page) -> bool:
    x0, y0 = max(image[0], 0.0), max(image[1], 0.0)
    width, height = min(image[2], page["width"]) - x0, min(image[3], page["height"]) - y0
    if width < LEAST_SIDE or height < LEAST_SIDE or page["state"] != "native":
        return False
    return not ("mostly_image" in page["warnings"] and width * height > WHOLE_PAGE * page["width"] * page["height"])
