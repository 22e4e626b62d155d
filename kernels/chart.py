"""Chart parts of OOXML packages → their titles and the cached data of their series as tables, which slides, sheets and texts share.

Series over the same categories are columns of one table; others have tables of their own. The invariant: every cached point stands in one
cell, and the tables never hold more than a small multiple of the points there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from raydex.kernels.tables import Rows, make_cell

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
CX = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"
_QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.|\*.')
_DAY, _CLOCK = re.compile("[yd]", re.IGNORECASE), re.compile("[hs]", re.IGNORECASE)
_EPOCHS = (datetime(1899, 12, 30), datetime(1904, 1, 1))
_LAST_DAY = 2_958_465
_SPARE_CELLS = 10_000
_VALUES = ("val", "yVal", "bubbleSize")

Points = dict[int, str]


@dataclass(slots=True)
class Series:
    """`labels`: one column of categories a level, outermost first. `values`: named columns."""

    labels: list[Points] = field(default_factory=list)
    values: list[tuple[str, Points]] = field(default_factory=list)


@dataclass(slots=True)
class Chart:
    """`kinds` are the plots in order (bar, line …); `label_title` the title of the category axis, `axis_titles` of the others."""

    title: str = ""
    kinds: list[str] = field(default_factory=list)
    label_title: str = ""
    axis_titles: list[str] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)


def read_chart(root: Any) -> Chart:
    """Of a chart part, or of one in the newer format (`chartex`)."""
    if root.tag.startswith(CX):
        return _read_newer(root)
    chart = Chart()
    body = root.find(C + "chart")
    area = body.find(C + "plotArea") if body is not None else None
    if body is None or area is None:
        return chart
    since_1904 = root.find(C + "date1904")
    epoch = _EPOCHS[since_1904 is not None and since_1904.get("val", "1") in ("1", "true")]
    chart.title = _title(body.find(C + "title"))
    for plot in area:
        name = plot.tag.rpartition("}")[2]
        if name.endswith("Ax"):
            title = _title(plot.find(C + "title"))
            if title and name in ("catAx", "dateAx") and not chart.label_title:
                chart.label_title = title
            elif title:
                chart.axis_titles.append(title)
        elif name.endswith("Chart"):
            chart.kinds.append(name.removesuffix("Chart"))
            chart.series += [_series(item, epoch) for item in plot.iterchildren(C + "ser")]
    first = next((series.labels for series in chart.series if series.labels), [])
    for series in chart.series:
        series.labels = series.labels or first
    return chart


def chart_tables(chart: Chart) -> list[Rows]:
    """Tables in the order of the series. Empty where no point is cached."""
    groups: dict[tuple[tuple[tuple[int, str], ...], ...], list[Series]] = {}
    for series in chart.series:
        if any(points for _, points in series.values):
            groups.setdefault(tuple(tuple(sorted(level.items())) for level in series.labels), []).append(series)
    tables: list[Rows] = []
    for group in groups.values():
        columns = [column for series in group for column in series.values]
        points = sum(len(column) for _, column in columns) + sum(len(level) for level in group[0].labels)
        rows = set().union(*(column for _, column in columns), *group[0].labels)
        if len(rows) * len(columns) > _SPARE_CELLS + 4 * points:
            tables += [_table(chart, series.labels, series.values) for series in group]
        else:
            tables.append(_table(chart, group[0].labels, columns))
    return tables


def _table(chart: Chart, labels: list[Points], columns: list[tuple[str, Points]]) -> Rows:
    heads = [chart.label_title if at == len(labels) - 1 else "" for at in range(len(labels))] or [chart.label_title]
    rows: Rows = [[make_cell(text, header=True) for text in (*heads, *(name for name, _ in columns))]]
    shown = [""] * len(labels)
    for at in sorted(set().union(*(column for _, column in columns), *labels)):
        for level, points in enumerate(labels):
            # an outer category stands at the first of its inner ones alone
            shown[level] = points.get(at, shown[level] if level + 1 < len(labels) else "")
        cells = [make_cell(text, header=True) for text in (shown or [str(at + 1)])]
        rows.append(cells + [make_cell(points.get(at, "")) for _, points in columns])
    return rows


def _series(item: Any, epoch: datetime) -> Series:
    series = Series()
    name = _cached_name(item.find(C + "tx"))
    for tag in ("cat", "xVal"):
        source = item.find(C + tag)
        if source is not None and not series.labels:
            series.labels = [_points(level, epoch) for level in reversed(list(_levels(source)))]
    for tag in _VALUES:
        source = item.find(C + tag)
        if source is not None:
            points = next((_points(level, epoch) for level in _levels(source)), {})
            series.values.append((name if tag != "bubbleSize" else f"{name} (size)".strip(), points))
    return series


def _levels(source: Any) -> Iterator[Any]:
    """Elements that hold points: caches and literals, the innermost level of categories first."""
    yield from source.iter(C + "strCache", C + "numCache", C + "strLit", C + "numLit", C + "lvl")


def _points(holder: Any, epoch: datetime) -> Points:
    style = holder.findtext(C + "formatCode") or ""
    points: Points = {}
    for point in holder.iterchildren(C + "pt"):
        at = _index(point.get("idx"))
        value = (point.findtext(C + "v") or "").strip()
        if at is not None and value:
            points[at] = _shown(value, point.get("formatCode") or style, epoch)
    return points


def _shown(value: str, style: str, epoch: datetime) -> str:
    """A number under a date format as the ISO date that it stands for; any other value as cached."""
    bare = _QUOTED.sub("", style)
    if style in ("", "General") or not _DAY.search(bare):
        return value
    try:
        days = float(value)
    except ValueError:
        return value
    if not 0 <= days <= _LAST_DAY - 1_500:
        return value
    moment = epoch + timedelta(seconds=round(days * 86_400))
    return moment.isoformat(" ", "minutes") if _CLOCK.search(bare) else moment.date().isoformat()


def _index(value: str | None) -> int | None:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 10 else None


def _cached_name(holder: Any) -> str:
    if holder is None:
        return ""
    literal = holder.findtext(C + "v")
    return " ".join(node.text or "" for node in holder.iter(C + "v")).strip() if literal is None else literal.strip()


def _title(title: Any) -> str:
    holder = title.find(C + "tx") if title is not None else None
    if holder is None:
        return ""
    return _rich_text(holder) or _cached_name(holder)


def _rich_text(holder: Any) -> str:
    paragraphs = ("".join(node.text or "" for node in paragraph.iter(A + "t")) for paragraph in holder.iter(A + "p"))
    return " ".join(" ".join(paragraphs).split())


def _read_newer(root: Any) -> Chart:
    chart = Chart()
    data: dict[str, tuple[list[Points], list[Points]]] = {}
    for item in root.iterfind(f"{CX}chartData/{CX}data"):
        labels = [_newer_points(level) for level in item.iterfind(f"{CX}strDim/{CX}lvl")]
        data[item.get("id", "")] = labels[::-1], [_newer_points(level) for level in item.iterfind(f"{CX}numDim/{CX}lvl")]
    title = root.find(f"{CX}chart/{CX}title")
    chart.title = _rich_text(title) if title is not None else ""
    for series in root.iter(CX + "series"):
        chart.kinds.append(series.get("layoutId", ""))
        name = (series.findtext(f"{CX}tx/{CX}txData/{CX}v") or "").strip()
        source = series.find(CX + "dataId")
        labels, values = data.get(source.get("val", "") if source is not None else "", ([], []))
        chart.series.append(Series(labels, [(name, points) for points in values]))
    return chart


def _newer_points(level: Any) -> Points:
    points: Points = {}
    for point in level.iterchildren(CX + "pt"):
        at, value = _index(point.get("idx")), (point.text or "").strip()
        if at is not None and value:
            points[at] = value
    return points
