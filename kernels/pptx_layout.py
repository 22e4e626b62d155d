"""What a slide's placeholders inherit from its layout and master: their place, and the bullets of their levels.

A placeholder finds its model in the layout by `idx`, else by its type, as a title always does; in the master by the family of its type:
title or body. The invariant: layouts and masters lend places and styles, never text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raydex.kernels.pptx_place import A, Box, read_box
from raydex.kernels.pptx_text import Levels, read_levels

P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
TITLES = ("title", "ctrTitle")
FURNITURE = frozenset(("dt", "ftr", "hdr", "sldNum"))
_STYLES = ("titleStyle", "bodyStyle", "otherStyle")


@dataclass(frozen=True, slots=True)
class Placeholder:
    kind: str
    box: Box | None
    levels: Levels


@dataclass(frozen=True, slots=True)
class Inherited:
    box: Box | None = None
    styles: tuple[Levels, ...] = ()


class Layout:
    """Placeholders of one layout over those of its master. `default` are the levels of text that stands in no placeholder."""

    def __init__(self, layout: Any, master: Any, default: Levels) -> None:
        self._by_index: dict[str, Placeholder] = {}
        self._by_kind: dict[str, Placeholder] = {}
        self._master: dict[str, Placeholder] = {}
        for index, found in _placeholders(layout):
            self._by_kind.setdefault("title" if found.kind in TITLES else found.kind, found)
            if found.kind not in TITLES:
                self._by_index.setdefault(index, found)
        for _, found in _placeholders(master):
            self._master.setdefault(_family(found.kind), found)
        styles = master.find(P + "txStyles") if master is not None else None
        self._styles = {name: read_levels(styles.find(P + name)) if styles is not None else {} for name in _STYLES}
        self._default = (default,)

    def inherit(self, placeholder: Any) -> Inherited:
        """For a `p:ph` element, or None where the shape is no placeholder."""
        if placeholder is None:
            return Inherited(None, self._default)
        kind, index = placeholder.get("type") or "", placeholder.get("idx") or "0"
        found = None if kind in TITLES else self._by_index.get(index)
        if found is None and kind:
            found = self._by_kind.get("title" if kind in TITLES else kind)
        family = _family(kind or (found.kind if found is not None else ""))
        above = self._master.get(family)
        models = [model for model in (found, above) if model is not None]
        style = self._styles[{"title": "titleStyle", "body": "bodyStyle"}.get(family, "otherStyle")]
        return Inherited(next((model.box for model in models if model.box is not None), None), (*(model.levels for model in models), style))


def _placeholders(root: Any) -> list[tuple[str, Placeholder]]:
    """(idx, placeholder) in order of drawing."""
    out: list[tuple[str, Placeholder]] = []
    for mark in root.iter(P + "ph") if root is not None else ():
        shape = mark.getparent().getparent().getparent()
        if shape is None or shape.tag != P + "sp":
            continue
        levels = read_levels(shape.find(f"{P}txBody/{A}lstStyle"))
        out.append((mark.get("idx") or "0", Placeholder(mark.get("type") or "obj", read_box(shape.find(f"{P}spPr/{A}xfrm")), levels)))
    return out


def _family(kind: str) -> str:
    if kind in TITLES:
        return "title"
    return kind if kind in FURNITURE or kind == "sldImg" else "body"
