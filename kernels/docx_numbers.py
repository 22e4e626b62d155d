"""numbering.xml → the number that Word shows before a paragraph: lists of nine levels, restarts, overrides, links between styles.

Lists of one definition (`abstractNum`) count on together. The invariant: a label has at most `MAX_LABEL` characters and is made in time
that does not grow with the number in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from raydex.kernels.docx_parts import VAL, W, to_int
from raydex.kernels.number_formats import format_number

LEVELS = 9
MAX_LABEL = 80
_PLACE = re.compile(r"%([1-9])")


@dataclass(frozen=True, slots=True)
class Level:
    """`restart`: None after any higher level, 0 never, else after that level (1-based) or a higher one."""

    start: int = 0
    form: str = "decimal"
    text: str = ""
    restart: int | None = None
    legal: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """What stands before a paragraph: `label` as shown, `number` its count at its own level."""

    label: str
    number: int
    ordered: bool


@dataclass(slots=True)
class _List:
    counter: str  # the definition whose counts it shares
    levels: list[Level]
    styles: dict[str, int]
    started: list[int]  # levels that begin anew when the list is first used


class Numbering:
    """Counts on with every call of `next`. `list_of_style` tells the list that a numbering style stands for."""

    def __init__(self, root: Any, list_of_style: Callable[[str], str]) -> None:
        self._list_of_style = list_of_style
        self._definitions: dict[str, Any] = {}
        self._elements: dict[str, Any] = {}
        self._lists: dict[str, _List | None] = {}
        self._counts: dict[str, list[int | None]] = {}
        self._used: set[str] = set()
        if root is not None:
            for element in root.iterchildren(W + "abstractNum"):
                self._definitions.setdefault(element.get(W + "abstractNumId", ""), element)
            for element in root.iterchildren(W + "num"):
                self._elements.setdefault(element.get(W + "numId", ""), element)

    def level_of_style(self, number: str, style: str) -> int | None:
        """The level that a list keeps for a paragraph style."""
        found = self._find(number)
        return found.styles.get(style) if found is not None else None

    def next(self, number: str, level: int) -> Shown | None:
        """Counts one paragraph; None where there is no such list."""
        found = self._find(number)
        if found is None:
            return None
        level = min(max(level, 0), LEVELS - 1)
        counts = self._counts.setdefault(found.counter, [None] * LEVELS)
        if number not in self._used:
            self._used.add(number)
            for at in found.started:
                counts[at] = None
        for at in range(level):
            if counts[at] is None:
                counts[at] = found.levels[at].start
        before = counts[level]
        count = counts[level] = found.levels[level].start if before is None else before + 1
        for at in range(level + 1, LEVELS):
            restart = found.levels[at].restart
            if restart is None or level < restart:
                counts[at] = None
        own = found.levels[level]
        ordered = own.form != "bullet"
        return Shown(_label(found.levels, counts, own) if ordered else own.text[:MAX_LABEL], count, ordered)

    def _find(self, number: str) -> _List | None:
        if number not in self._lists:
            self._lists[number] = self._read(number)
        return self._lists[number]

    def _read(self, number: str) -> _List | None:
        element = self._elements.get(number)
        if element is None:
            return None
        key, definition = self._definition(element)
        if definition is None:
            return None
        levels = [Level()] * LEVELS
        styles: dict[str, int] = {}
        started: list[int] = []
        for item in definition.iterchildren(W + "lvl"):
            _put_level(item, levels, styles)
        for override in element.iterchildren(W + "lvlOverride"):
            at = to_int(override.get(W + "ilvl"), -1)
            if not 0 <= at < LEVELS:
                continue
            inner, start = override.find(W + "lvl"), override.find(W + "startOverride")
            if inner is not None:
                _put_level(inner, levels, styles, at)
            if start is not None:
                levels[at] = replace(levels[at], start=to_int(start.get(VAL)))
                started.append(at)
        return _List(key, levels, styles, started)

    def _definition(self, element: Any) -> tuple[str, Any]:
        """Through `numStyleLink` to the list of a numbering style; a circle of links has no definition."""
        seen: set[str] = set()
        while element is not None:
            named = element.find(W + "abstractNumId")
            key = named.get(VAL, "") if named is not None else ""
            definition = self._definitions.get(key)
            link = definition.find(W + "numStyleLink") if definition is not None else None
            if link is None or key in seen:
                return key, definition
            seen.add(key)
            element = self._elements.get(self._list_of_style(link.get(VAL, "")))
        return "", None


def _put_level(item: Any, levels: list[Level], styles: dict[str, int], at: int | None = None) -> None:
    at = to_int(item.get(W + "ilvl"), -1) if at is None else at
    if not 0 <= at < LEVELS:
        return
    values = {
        name: child.get(VAL, "") for name in ("start", "lvlText", "lvlRestart", "pStyle") if (child := item.find(W + name)) is not None
    }
    form = next((child.get(VAL, "decimal") for child in item.iter(W + "numFmt") if child.get(VAL) != "custom"), "decimal")
    levels[at] = Level(
        to_int(values.get("start")),
        form,
        values.get("lvlText", ""),
        to_int(values["lvlRestart"]) if "lvlRestart" in values else None,
        item.find(W + "isLgl") is not None and item.find(W + "isLgl").get(VAL, "1") not in ("0", "false", "off"),
    )
    if "pStyle" in values:
        styles.setdefault(values["pStyle"], at)


def _label(levels: list[Level], counts: list[int | None], own: Level) -> str:
    def shown(found: re.Match[str]) -> str:
        at = int(found[1]) - 1
        return format_number(counts[at] or 0, "decimal" if own.legal else levels[at].form)

    return _PLACE.sub(shown, own.text[:MAX_LABEL])[:MAX_LABEL].strip()
