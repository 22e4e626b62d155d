"""Text of a PDF page that a reader does not see: drawn without paint, white on nothing, or smaller than a point.

Such text is how instructions for machines are slipped into a document; it stays in the blocks, and the page says how much there is. The
invariant: the layer of text that a reader of scans puts over an image is none of it, nor is white text on a dark area.
"""

from __future__ import annotations

import ctypes
from typing import Any

from raydex.kernels.pdf_raw import HIDDEN, Box, Frame, Page, pdfium, upright

LEAST_SIZE = 1.0
MAX_AREAS = 500
MAX_OBJECTS = 20_000


def note_hidden(handle: Any, page: Page, frame: Frame, white: set[int]) -> None:
    """Fills `hidden`, the characters that cannot be seen, and warns of them; `white` are the positions of segments in white or no ink."""
    unseen = [at for at, (size, style) in enumerate(zip(page["size"], page["style"], strict=True)) if size < LEAST_SIZE or style & HIDDEN]
    tiny = {at for at in unseen if page["size"][at] < LEAST_SIZE}
    found = sorted({*unseen, *white})
    if not found:
        return
    areas = _areas(handle, frame) if len(tiny) < len(found) else []
    hidden = [at for at in found if at in tiny or not _lies_on(page, at, areas)]
    page["hidden"] = sum(len(page["text"][at]) for at in hidden)
    if page["hidden"]:
        page["warnings"].append("hidden_text")


def _lies_on(page: Page, at: int, areas: list[Box]) -> bool:
    x, y = (page["x0"][at] + page["x1"][at]) / 2, (page["y0"][at] + page["y1"][at]) / 2
    return any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in areas)


def _areas(handle: Any, frame: Frame) -> list[Box]:
    """Images, forms, shadings and areas that are filled in a colour."""
    calls = pdfium()
    raw = calls.raw
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    owner = ctypes.cast(handle, ctypes.c_void_p)
    out: list[Box] = []
    for index in range(min(raw.FPDFPage_CountObjects(handle), MAX_OBJECTS)):
        address = calls.page_object(owner, index)
        kind = calls.object_type(ctypes.c_void_p(address)) if address else raw.FPDF_PAGEOBJ_TEXT
        if kind == raw.FPDF_PAGEOBJ_TEXT:
            continue
        item = ctypes.cast(ctypes.c_void_p(address), raw.FPDF_PAGEOBJECT)
        if kind == raw.FPDF_PAGEOBJ_PATH and not _is_filled(item):
            continue
        if raw.FPDFPageObj_GetBounds(item, left, bottom, right, top):
            out.append(upright(frame, left.value, bottom.value, right.value, top.value))
        if len(out) >= MAX_AREAS:
            break
    return out


def _is_filled(item: Any) -> bool:
    raw = pdfium().raw
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    if not raw.FPDFPath_GetDrawMode(item, fill, stroke) or not fill.value:
        return False
    ink = [ctypes.c_uint() for _ in range(4)]
    return not raw.FPDFPageObj_GetFillColor(item, *ink) or not is_white([part.value for part in ink])


def is_white(ink: list[int]) -> bool:
    """Red, green, blue and opacity, each to 255: white, or no ink at all."""
    return ink[3] == 0 or min(ink[:3]) >= 250
