"""Paths of a PDF page → rules: straight horizontal and vertical strokes and thin rectangles, as boxes on the upright page.

Curves, slanted strokes and filled areas are none. The invariant: the number of segments read of a page is bounded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from raydex.kernels.pdf_raw import Box, Frame, Matrix, Page, pdfium, upright

MAX_SEGMENTS = 20_000
MAX_RULES = 600  # of a page: more are a drawing
THIN = 2.5
LEAST = 4.0

Point = tuple[float, float]


def may_hold_tables(page: Page) -> bool:
    """Whether texts stand side by side at all."""
    bases = page["base"]
    return len({round(base) for base in bases}) < len(bases)


class RuleReader:
    """Collects the rules of one page, up to its bounds."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.rules: list[Box] = []
        self.left = MAX_SEGMENTS

    def add(self, item: Any, around: tuple[Matrix, ...]) -> None:
        """Adds what a path object draws; `around` are the matrices of the forms it stands in, the innermost first."""
        raw = pdfium().raw
        path = ctypes.cast(item, raw.FPDF_PAGEOBJECT)
        count = raw.FPDFPath_CountSegments(path)
        self.left -= max(count, 0)
        if count < 2 or self.left < 0 or len(self.rules) > MAX_RULES:
            return
        fill, stroke = ctypes.c_int(), ctypes.c_int()
        if not raw.FPDFPath_GetDrawMode(path, fill, stroke) or not (fill.value or stroke.value):
            return
        own = raw.FS_MATRIX()
        known = raw.FPDFPageObj_GetMatrix(path, own)
        matrices = ((own.a, own.b, own.c, own.d, own.e, own.f), *around) if known else around
        for points in _outlines(path, count):
            placed = [self._place(point, matrices) for point in points]
            self.rules += _rules_of(placed, bool(stroke.value))

    def _place(self, point: Point, matrices: tuple[Matrix, ...]) -> Point:
        x, y = point
        for a, b, c, d, e, f in matrices:
            x, y = a * x + c * y + e, b * x + d * y + f
        return upright(self.frame, x, y, x, y)[:2]


def _outlines(path: Any, count: int) -> Iterator[list[Point]]:
    """The corners of each outline of a path; one with a curve in it is left out."""
    raw = pdfium().raw
    x, y = ctypes.c_float(), ctypes.c_float()
    points: list[Point] = []
    straight = True
    for at in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, at)
        kind = raw.FPDFPathSegment_GetType(segment)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            if straight and len(points) > 1:
                yield points
            points, straight = [], True
        straight = straight and kind != raw.FPDF_SEGMENT_BEZIERTO
        points.append((x.value, y.value))
        if raw.FPDFPathSegment_GetClose(segment):
            points.append(points[0])
    if straight and len(points) > 1:
        yield points


def _rules_of(points: list[Point], stroked: bool) -> Iterator[Box]:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    whole = (min(xs), min(ys), max(xs), max(ys))
    if _is_rule(whole):
        yield whole
    elif stroked:
        for (x0, y0), (x1, y1) in pairwise(points):
            edge = (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
            if _is_rule(edge) and min(edge[2] - edge[0], edge[3] - edge[1]) < 0.5:
                yield edge


def _is_rule(box: Box) -> bool:
    width, height = box[2] - box[0], box[3] - box[1]
    return min(width, height) <= THIN and max(width, height) >= LEAST and all(abs(side) < 1e6 for side in box)
