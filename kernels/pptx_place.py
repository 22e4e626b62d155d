"""Where shapes stand on a slide, and the order in which a reader meets them: boxes through nested groups, then rows and columns.

A slide is cut where a gap runs through all of it, first into rows, then into columns, again and again; what no gap parts is read by its
upper edge, then by its left one. A group is read as a whole unless something else stands inside its box. The invariant: the order holds
every item once, depends on boxes and the order of drawing alone, and takes n log n steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from raydex.kernels.drafts import Draft

POINT = 12_700  # EMU
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
CUTS = 12  # rows in columns in rows …
LINE = 24 * POINT  # upper edges that differ by less than a line of text are one height
_MARGIN = 9 * POINT
_FAR = 1e10
_STEEPEST = 1e6
_CHECKS = 200_000
_UNITS = {"mm": 36_000.0, "cm": 360_000.0, "in": 914_400.0, "pt": 12_700.0, "pc": 152_400.0, "pi": 152_400.0}
_LENGTH = re.compile(r"\s*([+-]?\d{1,15}(?:\.\d{1,9})?)\s*(mm|cm|in|pt|pc|pi)?\s*\Z")

Box = tuple[float, float, float, float]  # x0, y0, x1, y1 in EMU
NOWHERE: Box = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Transform:
    """Coordinates inside a group → coordinates of the slide."""

    x_scale: float = 1.0
    y_scale: float = 1.0
    x_shift: float = 0.0
    y_shift: float = 0.0

    def apply(self, box: Box) -> Box:
        x0, x1 = (_bounded(x * self.x_scale + self.x_shift) for x in (box[0], box[2]))
        y0, y1 = (_bounded(y * self.y_scale + self.y_shift) for y in (box[1], box[3]))
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)

    def inside(self, xfrm: Any) -> Transform:
        """The transform for the children of a group; `xfrm` is the group's, None where it has none."""
        outer = _corner_and_size(xfrm, "off", "ext") if xfrm is not None else None
        inner = _corner_and_size(xfrm, "chOff", "chExt") if xfrm is not None else None
        if outer is None or inner is None:
            return self
        x_scale, x_shift = _axis(outer[0], outer[2], inner[0], inner[2], is_true(xfrm.get("flipH")))
        y_scale, y_shift = _axis(outer[1], outer[3], inner[1], inner[3], is_true(xfrm.get("flipV")))
        return Transform(
            _bounded(self.x_scale * x_scale, _STEEPEST),
            _bounded(self.y_scale * y_scale, _STEEPEST),
            _bounded(self.x_scale * x_shift + self.x_shift),
            _bounded(self.y_scale * y_shift + self.y_shift),
        )


@dataclass(slots=True)
class Item:
    """A shape with the range of its drafts, or a group with its members."""

    box: Box
    start: int = 0
    end: int = 0
    members: list[Item] = field(default_factory=list)


def is_true(value: str | None) -> bool:
    return value in ("1", "true", "on")


def read_box(xfrm: Any) -> Box | None:
    """The upright box of an `xfrm`; a shape on its side is as wide as it was high."""
    found = _corner_and_size(xfrm, "off", "ext") if xfrm is not None else None
    if found is None:
        return None
    x, y, width, height = found
    turn = read_length(xfrm.get("rot"))
    if turn is not None and round(turn / 5_400_000) % 2:
        x, y, width, height = x + (width - height) / 2, y + (height - width) / 2, height, width
    return x, y, x + width, y + height


def read_length(value: str | None) -> float | None:
    """EMU of a coordinate: a number, or one with a unit."""
    found = _LENGTH.match(value) if value else None
    return float(found[1]) * (_UNITS[found[2]] if found[2] else 1.0) if found else None


def in_points(box: Box) -> Box:
    return box[0] / POINT, box[1] / POINT, box[2] / POINT, box[3] / POINT


def union(boxes: Iterable[Box]) -> Box:
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def settle(items: list[Item], groups: list[Item]) -> list[Item]:
    """`items` without groups that came out empty; each group, of those in the order of drawing, around its members."""
    for group in reversed(groups):
        group.members = [item for item in group.members if item.members or item.end > item.start]
        group.box = union(item.box for item in group.members) if group.members else NOWHERE
    return [item for item in items if item.members or item.end > item.start]


def arrange(drafts: list[Draft], items: list[Item], background: list[Draft]) -> list[Draft]:
    """The drafts of a slide: its title, its background, then the items' in reading order."""
    shown = [draft for item in reading_order(items) for draft in drafts[item.start : item.end]]
    titles = [draft for draft in shown if draft.kind == "heading"]
    return [*titles, *background, *(draft for draft in shown if draft.kind != "heading")]


def reading_order(items: list[Item]) -> list[Item]:
    """Shapes in reading order; groups give way to their members."""
    out: list[Item] = []
    _read(_dissolve(items), CUTS, out)
    return out


def _read(items: list[Item], cuts: int, out: list[Item]) -> None:
    if len(items) == 1:
        item = items[0]
        if item.members:
            _read(_dissolve(item.members), CUTS, out)
        else:
            out.append(item)
        return
    rows = _cut(items, 1) if cuts else []
    if len(rows) > 1:
        for row in rows:
            _read(row, cuts - 1, out)
        return
    columns = _cut(items, 0) if cuts else []
    if len(columns) > 1:
        for column in _by_height(columns):
            _read(column, cuts - 1, out)
        return
    whole = union(item.box for item in items) if items else NOWHERE
    behind = next((item for item in items if item.box == whole), None) if cuts else None
    if behind is not None:
        _read([behind], cuts, out)
        _read([item for item in items if item is not behind], cuts - 1, out)
        return
    for alone in _by_height([[item] for item in items]):
        _read(alone, cuts, out)


def _cut(items: list[Item], axis: int) -> list[list[Item]]:
    """Parts between the gaps across one axis. Neighbours that overlap by their margins alone are apart."""
    spans = []
    for item in items:
        low, high = item.box[axis], item.box[axis + 2]
        margin = min((high - low) / 10, _MARGIN)
        spans.append((low + margin, high - margin, item))
    spans.sort(key=lambda span: span[0])
    parts: list[list[Item]] = []
    reach = 0.0
    for low, high, item in spans:
        if parts and low < reach:
            parts[-1].append(item)
            reach = max(reach, high)
        else:
            parts.append([item])
            reach = high
    return parts


def _by_height(parts: list[list[Item]]) -> list[list[Item]]:
    """Parts whose upper edges are one height from left to right, higher ones first."""
    placed = sorted(
        ((min(item.box[1] for item in part), min(item.box[0] for item in part), part) for part in parts), key=lambda one: (one[0], one[1])
    )
    out: list[list[Item]] = []
    band: list[tuple[float, float, list[Item]]] = []
    for one in placed:
        if band and one[0] - band[0][0] > LINE:
            out += [part for _, _, part in sorted(band, key=lambda each: each[1])]
            band = []
        band.append(one)
    return out + [part for _, _, part in sorted(band, key=lambda each: each[1])]


def _dissolve(items: list[Item]) -> list[Item]:
    """Groups in whose box another, smaller item has its middle give way to their members."""
    out = items
    checks = 0
    at = 0
    while at < len(out):
        group = out[at]
        checks += len(out) if group.members else 0
        if group.members and checks <= _CHECKS and any(_stands_in(other, group) for other in out if other is not group):
            out = [*out[:at], *group.members, *out[at + 1 :]]
        else:
            at += 1
    return out


def _stands_in(item: Item, group: Item) -> bool:
    x0, y0, x1, y1 = group.box
    left, top, right, bottom = item.box
    smaller = (right - left) * (bottom - top) < (x1 - x0) * (y1 - y0)
    return smaller and x0 < (left + right) / 2 < x1 and y0 < (top + bottom) / 2 < y1


def _corner_and_size(xfrm: Any, corner: str, size: str) -> tuple[float, float, float, float] | None:
    off, ext = xfrm.find(A + corner), xfrm.find(A + size)
    if off is None or ext is None:
        return None
    values = [read_length(value) for value in (off.get("x"), off.get("y"), ext.get("cx"), ext.get("cy"))]
    if any(value is None for value in values):
        return None
    x, y, width, height = (_bounded(value or 0.0) for value in values)
    return x, y, max(0.0, width), max(0.0, height)


def _axis(low: float, length: float, start: float, size: float, flipped: bool) -> tuple[float, float]:
    """Scale and shift of one axis of a group: `low` and `length` outside, `start` and `size` inside."""
    scale = length / size if size else 1.0
    if flipped:
        return -scale, low + length + start * scale
    return scale, low - start * scale


def _bounded(value: float, limit: float = _FAR) -> float:
    return max(-limit, min(limit, value))
