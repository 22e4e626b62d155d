"""Paths of a PDF page → rules: straight horizontal and vertical strokes and thin rectangles, as boxes on the upright page.

Curves, slanted strokes and filled areas are none. The invariant: the number of segments read of a page is bounded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from raydex.kernels.pdf_raw import Box, Frame, Matrix, Page, matrix_of, pdfium, upright

MAX_SEGMENTS = 10_000
MAX_PATH = 2_000  # segments of one path
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
        if not 2 <= count <= MAX_PATH or self.left < 0 or len(self.rules) > MAX_RULES:
            return
        fill, stroke = ctypes.c_int(), ctypes.c_int()
        if not raw.FPDFPath_GetDrawMode(path, fill, stroke) or not (fill.value or stroke.value):
            return
        matrices = (matrix_of(path), *around)
        for points in _outlines(item, count):
            placed = [self._place(point, matrices) for point in points]
            self.rules += _rules_of(placed, bool(stroke.value))

    def _place(self, point: Point, matrices: tuple[Matrix, ...]) -> Point:
        x, y = point
        for a, b, c, d, e, f in matrices:
            x, y = a * x + c * y + e, b * x + d * y + f
        return upright(self.frame, x, y, x, y)[:2]


def _outlines(item: Any, count: int) -> Iterator[list[Point]]:
    """The corners of each outline of a path, up to its first curve: what has one is a drawing."""
    calls = pdfium()
    curve, move = calls.raw.FPDF_SEGMENT_BEZIERTO, calls.raw.FPDF_SEGMENT_MOVETO
    kind_of, closes, point_of, segment_of = calls.segment_type, calls.segment_close, calls.segment_point, calls.path_segment
    x, y = ctypes.c_float(), ctypes.c_float()
    x_slot, y_slot = ctypes.byref(x), ctypes.byref(y)
    points: list[Point] = []
    for at in range(count):
        segment = segment_of(item, at)
        kind = kind_of(segment)
        if kind == curve:
            return
        if kind == move:
            if len(points) > 1:
                yield points
            points = []
        point_of(segment, x_slot, y_slot)
        points.append((x.value, y.value))
        if closes(segment):
            points.append(points[0])
    if len(points) > 1:
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
