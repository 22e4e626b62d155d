"""styles.xml of a workbook → the look and number format of each cell style, by its index.

The invariant: an index that the part does not define has the plain look and the format `General`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from raydex.kernels.number_format import BUILT_IN, NumberFormat, compile_format
from raydex.kernels.package import Package
from raydex.kernels.sheet import CellStyle

T = TypeVar("T")
_LARGE = 1.2
_WHITE = ("FFFFFFFF", "00FFFFFF")
_SIDES = ("left", "right", "top", "bottom")


class CellLook(NamedTuple):
    style: CellStyle
    format: NumberFormat


PLAIN = CellLook(CellStyle(), compile_format("General"))


def read_styles(package: Package, name: str) -> dict[str, CellLook]:
    """Looks by index as cells write it. Raises KeyError, InputError."""
    codes = dict(BUILT_IN)
    fonts: list[tuple[bool, float]] = []
    fills: list[bool] = []
    borders: list[bool] = []
    looks: dict[str, CellLook] = {}
    for part in package.xml(name):
        group = _local(part)
        if group == "numFmts":
            codes |= {_number(item.get("numFmtId")): item.get("formatCode", "") for item in part}
        elif group == "fonts":
            fonts = [_read_font(item) for item in part]
        elif group == "fills":
            fills = [_is_filled(item) for item in part]
        elif group == "borders":
            borders = [any(_local(side) in _SIDES and side.get("style", "none") != "none" for side in item) for item in part]
        elif group == "cellXfs":
            looks = {str(at): _read_look(item, codes, fonts, fills, borders) for at, item in enumerate(part)}
    return looks


def _read_look(item: Any, codes: dict[int, str], fonts: list[tuple[bool, float]], fills: list[bool], borders: list[bool]) -> CellLook:
    bold, size = _pick(fonts, item.get("fontId"), (False, 0.0))
    usual = fonts[0][1] if fonts else 0.0
    style = CellStyle(
        strong=bold or _pick(fills, item.get("fillId"), False),
        large=size > usual * _LARGE > 0,
        bordered=_pick(borders, item.get("borderId"), False),
    )
    return CellLook(style, compile_format(codes.get(_number(item.get("numFmtId")), "General")))


def _pick(items: list[T], index: str | None, default: T) -> T:
    at = _number(index)
    return items[at] if 0 <= at < len(items) else default


def _read_font(item: Any) -> tuple[bool, float]:
    bold, size = False, 0.0
    for part in item:
        name = _local(part)
        if name == "b":
            bold = part.get("val", "1") not in ("0", "false")
        elif name == "sz":
            try:
                size = float(part.get("val", "0"))
            except ValueError:
                size = 0.0
    return bold, size


def _is_filled(item: Any) -> bool:
    """A solid fill in a colour that can be seen on white."""
    for pattern in item:
        if _local(pattern) == "gradientFill":
            return True
        if pattern.get("patternType", "none") in ("none", "gray125"):
            continue
        for colour in pattern:
            if _local(colour) == "fgColor":
                white = colour.get("rgb", "").upper() in _WHITE or colour.get("indexed") in ("1", "9", "64", "65")
                return not white and not (colour.get("theme") == "0" and "tint" not in colour.attrib)
    return False


def _number(value: str | None) -> int:
    return int(value) if value is not None and value.isascii() and value.isdigit() and len(value) < 10 else 0


def _local(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
