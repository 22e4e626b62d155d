"""The drawing of a sheet → drafts: pictures with their bytes, text boxes, charts as tables of their cached data.

The invariant: each anchored object is at most one picture, text or chart, placed at the cells that it covers; what lies outside of the
package is an address, never fetched; what is lost is named in `lost`, and costs only itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from raydex.ir.errors import InputError
from raydex.kernels.drafts import Draft
from raydex.kernels.image_size import describe_image
from raydex.kernels.number_format import compile_format
from raydex.kernels.package import Package, Relation
from raydex.kernels.sheet import MAX_COLUMN, MAX_ROW, area_name
from raydex.kernels.tables import Rows, make_cell

_ANCHORS = ("twoCellAnchor", "oneCellAnchor", "absoluteAnchor")
_MAX_POINTS = 20_000  # of one chart
_PLOTS = "Chart"


class DrawingReader:
    """Reads the drawings of one workbook: a picture that stands in many places is unpacked once."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.lost: list[str] = []
        self._media: dict[str, bytes] = {}

    def read(self, name: str, sheet: str) -> Iterator[Draft]:
        """Drafts in the order of the part. Raises KeyError, InputError."""
        relations = self.package.relations(name)
        for anchor in self.package.stream(name, *_ANCHORS):
            place = {"sheet": sheet} | _cells(anchor)
            for shape in _shapes(anchor):
                try:
                    draft = self._draft(shape, relations)
                except (KeyError, InputError) as error:
                    if isinstance(error, InputError) and error.reject_class == "bomb":
                        raise
                    self.lost.append(_local(shape))
                    continue
                if draft is not None:
                    draft.place = dict(place)
                    yield draft

    def _draft(self, shape: Any, relations: dict[str, Relation]) -> Draft | None:
        kind = _local(shape)
        if kind == "pic":
            return self._picture(shape, relations)
        if kind == "graphicFrame":
            return self._chart(shape, relations)
        text = "\n".join(_paragraphs(shape))
        return Draft("paragraph", 0, 0, text, {"text_box": True}) if text.strip() else None

    def _picture(self, shape: Any, relations: dict[str, Relation]) -> Draft | None:
        for blip in _named(shape, "blip"):
            for attribute, value in blip.attrib.items():
                relation = relations.get(value) if attribute.endswith(("}embed", "}link")) else None
                if relation is None:
                    continue
                if relation.external:
                    return Draft("image", 0, 0, _description(shape), href=relation.target)
                data = self._media.get(relation.target)
                if data is None:
                    data = self._media[relation.target] = self.package.read(relation.target)
                metadata = describe_image(data, relation.target)
                return Draft("image", 0, 0, _description(shape), metadata, data=data)
        raise KeyError("blip")

    def _chart(self, shape: Any, relations: dict[str, Relation]) -> Draft | None:
        for element in _named(shape, "chart"):
            relation = next((relations[value] for value in element.attrib.values() if value in relations), None)
            if relation is not None and not relation.external:
                return read_chart(self.package.xml(relation.target), _description(shape))
        return None


def read_chart(root: Any, description: str = "") -> Draft | None:
    """Title as the caption, a column for each series, a row for each category."""
    plots = [item for item in root.iter("{*}*") if _local(item).endswith(_PLOTS) and _local(item) != "chart"]
    titles = [" ".join(_paragraphs(item)) for chart in _named(root, "chart") for item in chart if _local(item) == "title"]
    title = next((text for text in titles if text.strip()), "")
    series = [_Series(item) for plot in plots for item in plot if _local(item) == "ser"]
    metadata: dict[str, Any] = {"chart": _local(plots[0])} if plots else {}
    if description:
        metadata["description"] = description
    places = sorted({at for one in series for at in one.values} | {at for one in series for at in one.categories})
    room = max(1, _MAX_POINTS // max(1, len(series)))
    if len(places) > room or len(series) > _MAX_POINTS:
        metadata["cut"] = True
        places, series = places[:room], series[:_MAX_POINTS]
    if not places:
        return Draft("paragraph", 0, 0, title, metadata) if title else None
    rows: Rows = []
    with_categories = any(one.categories for one in series)
    own = len({tuple(one.categories.items()) for one in series}) > 1
    head: list[str] = []
    for at, one in enumerate(series):
        head += ([""] if own or (with_categories and at == 0) else []) + [one.name]
    if any(head):
        rows.append([make_cell(text, header=True) for text in head])
    for place in places:
        line: list[str] = []
        for at, one in enumerate(series):
            line += ([one.categories.get(place, "")] if own or (with_categories and at == 0) else []) + [one.values.get(place, "")]
        rows.append([make_cell(text) for text in line])
    if title:
        metadata["caption"] = title.strip()
    return Draft("table", 0, 0, "", metadata, rows=rows)


class _Series:
    def __init__(self, item: Any) -> None:
        self.name = ""
        self.values: dict[int, str] = {}
        self.categories: dict[int, str] = {}
        for part in item:
            kind = _local(part)
            if kind == "tx":
                self.name = " ".join(_points(part).values()) or " ".join(item.text or "" for item in part if _local(item) == "v")
            elif kind in ("cat", "xVal"):
                self.categories = _points(part)
            elif kind in ("val", "yVal"):
                self.values = _points(part)


def _points(part: Any) -> dict[int, str]:
    """Cached values by index; of categories in several levels, the texts of all of them."""
    points: dict[int, str] = {}
    code = next((item.text or "" for item in _named(part, "formatCode")), "General")
    for point in _named(part, "pt"):
        index = point.get("idx", "")
        text = next((child.text or "" for child in point if _local(child) == "v"), "")
        if index.isascii() and index.isdigit() and len(index) < 8 and text:
            at = int(index)
            text = text if code == "General" else _show(text, code)
            points[at] = f"{text} {points[at]}" if at in points else text
    return points


def _show(text: str, code: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return text
    return compile_format(code).show(value) if math.isfinite(value) else text


def _shapes(anchor: Any) -> Iterator[Any]:
    """Pictures, frames and shapes with text of an anchor, those in groups too; a fallback repeats what stands beside it."""
    waiting = list(reversed(anchor))
    while waiting:
        element = waiting.pop()
        kind = _local(element)
        if kind in ("pic", "graphicFrame", "sp", "cxnSp"):
            yield element
        elif kind in ("grpSp", "AlternateContent", "Choice"):
            waiting += reversed(element)


def _cells(anchor: Any) -> dict[str, str]:
    corners: list[tuple[int, int]] = []
    for part in anchor:
        if _local(part) in ("from", "to"):
            values = {_local(item): (item.text or "").strip() for item in part}
            row, column = values.get("row", ""), values.get("col", "")
            if row.isascii() and row.isdigit() and column.isascii() and column.isdigit() and len(row) < 8 and len(column) < 6:
                corners.append((min(int(row) + 1, MAX_ROW), min(int(column) + 1, MAX_COLUMN)))
    if not corners:
        return {}
    (top, left), (bottom, right) = corners[0], corners[-1]
    return {"cells": area_name((top, left, max(top, bottom), max(left, right)))}


def _description(shape: Any) -> str:
    for item in _named(shape, "cNvPr"):
        return str(item.get("descr") or item.get("title") or "")
    return ""


def _paragraphs(element: Any) -> list[str]:
    return ["".join(run.text or "" for run in _named(paragraph, "t")) for paragraph in _named(element, "p")]


def _named(element: Any, name: str) -> Iterator[Any]:
    yield from element.iter(f"{{*}}{name}")


def _local(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
