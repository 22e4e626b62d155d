"""Pages of a PDF → upright RGB arrays for models, and boxes in their pixels → points of the upright page.

Sizes are those of `pdf_file`: the page as it is shown, its rotation applied. A broken page costs itself. The invariant: no page has more
than `most` pixels, however large it claims to be; the scale is lowered for it, and `to_points` knows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from raydex.kernels.limits import Limits
from raydex.kernels.pdf_file import open_pdf
from raydex.kernels.pdf_raw import Box, pdfium

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LONG_SIDE = 1800  # pixels: what the default engine reads without scaling it down
SCALES = (1.0, 6.0)
MOST_PIXELS = 25_000_000


@dataclass(frozen=True, slots=True)
class PageImage:
    """`width`, `height` in points; `pixels` None where the page could not be rendered: then `error` says why."""

    number: int
    width: float
    height: float
    pixels: NDArray[np.uint8] | None
    error: str = ""

    def to_points(self, box: Box) -> Box:
        if self.pixels is None:
            return box
        rows, columns = self.pixels.shape[:2]
        x, y = self.width / columns, self.height / rows
        return box[0] * x, box[1] * y, box[2] * x, box[3] * y


def render_pages(data: bytes, numbers: Iterable[int], limits: Limits, scale: float = 0.0, most: int = MOST_PIXELS) -> Iterator[PageImage]:
    """The pages of these 1-based numbers, one at a time; scale 0 makes their longer side `LONG_SIDE`.

    Raises InputError: invalid_input, encrypted, no_pages or too_many_pages.
    """
    with open_pdf(data, limits) as (document, count):
        for number in numbers:
            if 1 <= number <= count:
                yield _render(document, number, scale, min(most, limits.image_pixels))
            else:
                yield PageImage(number, 0.0, 0.0, None, f"there is no page {number} of {count}")


def _render(document: Any, number: int, scale: float, most: int) -> PageImage:
    raw = pdfium().raw
    page = raw.FPDF_LoadPage(document, number - 1)
    if not page:
        return PageImage(number, 0.0, 0.0, None, "PDFium cannot load this page")
    try:
        width, height = raw.FPDF_GetPageWidthF(page), raw.FPDF_GetPageHeightF(page)
        if not (0 < width < math.inf and 0 < height < math.inf):
            return PageImage(number, 0.0, 0.0, None, "the page has no size")
        scale = min(scale or min(max(LONG_SIDE / max(width, height), SCALES[0]), SCALES[1]), math.sqrt(most / (width * height)))
        columns, rows = max(1, int(width * scale)), max(1, int(height * scale))
        if columns * rows > most:
            return PageImage(
                number,
                width,
                height,
                None,
                f"the page is a strip of {columns * rows:,} pixels; at most {most:,} are rendered (limits.image_pixels)",
            )
        return PageImage(number, round(width, 2), round(height, 2), _draw(page, columns, rows))
    finally:
        raw.FPDF_ClosePage(page)


def _draw(page: Any, columns: int, rows: int) -> NDArray[np.uint8]:
    import numpy as np

    raw = pdfium().raw
    pixels = np.full((rows, columns, 4), 255, dtype=np.uint8)
    bitmap = raw.FPDFBitmap_CreateEx(columns, rows, raw.FPDFBitmap_BGRx, pixels.ctypes.data, columns * 4)
    try:
        raw.FPDF_RenderPageBitmap(bitmap, page, 0, 0, columns, rows, 0, raw.FPDF_ANNOT | raw.FPDF_REVERSE_BYTE_ORDER)
    finally:
        raw.FPDFBitmap_Destroy(bitmap)
    return np.ascontiguousarray(pixels[:, :, :3])
