"""The raw form of a PDF page, as plain data that may cross a process border, and the PDFium functions that fill it.

A part is `{"page_count", "first", "last", "encrypted", "info", "language", "outline", "attachments", "pages"}`: `info` maps document
information keys to strings, `language` is what the catalog names, `outline` is `[title, page, level]` rows (page 1-based or 0, level
0-based), `attachments` are names of attached files, `pages` the dicts of `new_page`. All values are JSON.
The invariant: a page's raw form depends on the file and that page alone, so ranges read apart and laid together equal one whole read.
PDFium is not thread-safe: one process works on one document at a time, never in threads.
"""

from __future__ import annotations

import ctypes
import re
from functools import cache
from types import SimpleNamespace
from typing import Any

BOLD, ITALIC, MONO, HIDDEN = 1, 2, 4, 8
OBLIQUE = 4

Box = tuple[float, float, float, float]
Frame = tuple[int, float, float, float, float]
Matrix = tuple[float, float, float, float, float, float]
Page = dict[str, Any]
Part = dict[str, Any]

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff]")
SEGMENT_COLUMNS = ("text", "x0", "y0", "x1", "y1", "base", "size", "style", "turn")


def new_page(number: int) -> Page:
    """An empty raw page. Sizes in points of the upright page; `chars` counts the code points of all segments,
    `hidden` of those that cannot be seen (`pdf_hidden`).

    Segment columns (`SEGMENT_COLUMNS`, in step, in content order): boxes from the upper left corner of the upright page; `base` is the
    baseline in the segment's own reading frame; `turn` counts quarter turns counter-clockwise (OBLIQUE: another angle); `style` is a bit
    set of BOLD, ITALIC, MONO, HIDDEN. `links` are `[href, text, x0, y0, x1, y1]`, `images` `[x0, y0, x1, y1, width, height]` (the latter in
    pixels), `rules` `[x0, y0, x1, y1]` (`pdf_rules`), `marks` as in `pdf_marks`; `error` is empty unless the page could not be read.
    """
    page: Page = {"number": number, "width": 0.0, "height": 0.0, "rotation": 0, "label": "", "chars": 0, "hidden": 0}
    page.update({"state": "native", "warnings": [], "error": "", "links": [], "images": [], "rules": [], "marks": []})
    page.update({name: [] for name in SEGMENT_COLUMNS})
    return page


def failed_page(number: int, error: str) -> Page:
    """A page that could not be read: it becomes an error block, its neighbours go on."""
    page = new_page(number)
    page.update(state="unavailable", warnings=["page_failed"], error=error)
    return page


def utf16_text(call: Any, *arguments: Any) -> str:
    """Clean text of a PDFium call that fills a UTF-16 buffer whose size it tells in bytes."""
    size = call(*arguments, None, 0)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    call(*arguments, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return " ".join(CONTROL.sub("", buffer.raw[: size - 2].decode("utf-16-le", "replace")).split())


def upright(frame: Frame, x0: float, y0: float, x1: float, y1: float) -> Box:
    """A box in page space (y upward) → upper-left origin on the upright page.

    `frame` is (quarter turns clockwise, left, bottom, right, top): how the page is shown and its visible box in page space.
    """
    quarter, left, bottom, right, top = frame
    if quarter == 0:
        return x0 - left, top - y1, x1 - left, top - y0
    if quarter == 1:
        return y0 - bottom, x0 - left, y1 - bottom, x1 - left
    if quarter == 2:
        return right - x1, y0 - bottom, right - x0, y1 - bottom
    return top - y1, right - x1, top - y0, right - x0


def matrix_of(item: Any) -> Matrix:
    """The matrix of a page object, the identity where it has none."""
    raw = pdfium().raw
    matrix = raw.FS_MATRIX()
    if not raw.FPDFPageObj_GetMatrix(item, matrix):
        return (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


@cache
def pdfium() -> SimpleNamespace:
    """PDFium's functions. Those of the inner loops carry no argument types: checking them costs three times the call itself."""
    import pypdfium2.raw as raw

    def bare(name: str, result: Any = ctypes.c_int, *arguments: Any) -> Any:
        address = ctypes.cast(getattr(raw, name), ctypes.c_void_p).value or 0
        return ctypes.CFUNCTYPE(result, *arguments)(address)

    pointer = ctypes.c_void_p
    return SimpleNamespace(
        raw=raw,
        count_rects=bare("FPDFText_CountRects"),
        get_rect=bare("FPDFText_GetRect"),
        char_box=bare("FPDFText_GetCharBox"),
        loose_box=bare("FPDFText_GetLooseCharBox"),
        char_origin=bare("FPDFText_GetCharOrigin"),
        is_generated=bare("FPDFText_IsGenerated"),
        map_error=bare("FPDFText_HasUnicodeMapError"),
        text_object=bare("FPDFText_GetTextObject", pointer, pointer, ctypes.c_int),
        font_of=bare("FPDFTextObj_GetFont", pointer, pointer),
        render_mode=bare("FPDFTextObj_GetTextRenderMode", ctypes.c_int, pointer),
        fill_color=bare("FPDFPageObj_GetFillColor", ctypes.c_int, pointer, pointer, pointer, pointer, pointer),
        matrix=bare("FPDFText_GetMatrix"),
        font_size=bare("FPDFText_GetFontSize", ctypes.c_double),
        page_object=bare("FPDFPage_GetObject", pointer, pointer, ctypes.c_int),
        form_object=bare("FPDFFormObj_GetObject", pointer, pointer, ctypes.c_ulong),
        object_type=bare("FPDFPageObj_GetType"),
        path_segment=bare("FPDFPath_GetPathSegment", pointer, pointer, ctypes.c_int),
        segment_type=bare("FPDFPathSegment_GetType", ctypes.c_int, pointer),
        segment_point=bare("FPDFPathSegment_GetPoint", ctypes.c_int, pointer, pointer, pointer),
        segment_close=bare("FPDFPathSegment_GetClose", ctypes.c_int, pointer),
    )
