"""Styles of an OpenDocument text → what they say about paragraphs, runs and lists, with what they inherit; numbers of lists and headings.

Automatic styles of the content come before the common ones. The invariant: each style is resolved once, whatever circle of parents a file
makes, and a label is short whatever number is in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from raydex.kernels.docx_parts import to_int
from raydex.kernels.number_formats import format_number

STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
LEVELS = 10
MAX_LABEL = 80
_ESCAPE = re.compile(r"_([0-9a-f]{2})_")
_FORMS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman", "": "none"}
_CODE = ("preformatted text", "source code", "source text")


@dataclass(frozen=True, slots=True)
class TextStyle:
    name: str = ""
    title: bool = False
    code: bool = False
    quote: bool = False
    hidden: bool = False
    list_style: str = ""


@dataclass(frozen=True, slots=True)
class ListLevel:
    form: str = "none"
    start: int = 1
    prefix: str = ""
    suffix: str = ""
    display: int = 1
    bullet: bool = False


class OdtStyles:
    """Of the roots of content.xml and styles.xml, in this order."""

    def __init__(self, roots: list[Any]) -> None:
        self._elements: dict[str, Any] = {}
        self._known: dict[str, TextStyle] = {}
        self.lists: dict[str, list[ListLevel]] = {}
        self.outline = [ListLevel()] * LEVELS
        for root in roots:
            for element in root.iter(STYLE + "style"):
                if element.get(STYLE + "family") in ("paragraph", "text", "section"):
                    self._elements.setdefault(element.get(STYLE + "name", ""), element)
            for element in root.iter(TEXT + "list-style"):
                self.lists.setdefault(element.get(STYLE + "name", ""), _levels(element))
            for element in root.iter(TEXT + "outline-style"):
                self.outline = _levels(element)

    def find(self, name: str | None) -> TextStyle:
        key = name or ""
        found = self._known.get(key)
        return found if found is not None else self._resolve(key)

    def _resolve(self, name: str) -> TextStyle:
        chain: list[str] = []
        waiting: set[str] = set()
        at = name
        while at and at not in self._known and at not in waiting:
            chain.append(at)
            waiting.add(at)
            element = self._elements.get(at)
            at = element.get(STYLE + "parent-style-name", "") if element is not None else ""
        style = self._known.get(at, TextStyle())
        for key in reversed(chain):
            style = self._known[key] = _inherit(key, self._elements.get(key), style)
        return style


def _inherit(key: str, element: Any, above: TextStyle) -> TextStyle:
    name = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), key)
    folded = name.lower()
    style = replace(
        above,
        name=name,
        title=above.title or folded == "title",
        code=above.code or folded in _CODE,
        quote=above.quote or folded in ("quotations", "quote"),
    )
    if element is None:
        return style
    listed = element.get(STYLE + "list-style-name")
    look = element.find(STYLE + "text-properties")
    shown = look.get(TEXT + "display") if look is not None else None
    return replace(
        style,
        list_style=style.list_style if listed is None else listed,
        hidden=style.hidden if shown is None else shown == "none",
    )


def _levels(element: Any) -> list[ListLevel]:
    levels = [ListLevel()] * LEVELS
    for item in element:
        at = to_int(item.get(TEXT + "level"), 0) - 1 if isinstance(item.tag, str) else -1
        if not 0 <= at < LEVELS:
            continue
        levels[at] = ListLevel(
            _FORMS.get(item.get(STYLE + "num-format", ""), "decimal"),
            to_int(item.get(TEXT + "start-value"), 1),
            item.get(STYLE + "num-prefix", "")[:MAX_LABEL],
            item.get(STYLE + "num-suffix", "")[:MAX_LABEL],
            max(1, to_int(item.get(TEXT + "display-levels"), 1)),
            item.tag in (TEXT + "list-level-style-bullet", TEXT + "list-level-style-image"),
        )
    return levels


class Counter:
    """Counts of the levels of one list, or of all headings."""

    def __init__(self, levels: list[ListLevel]) -> None:
        self.levels = levels
        self.counts: list[int | None] = [None] * LEVELS

    def next(self, level: int, start: str | None = None) -> tuple[str, int]:
        """The label and the count of the next item of a level (0-based)."""
        level = min(max(level, 0), LEVELS - 1)
        before = self.counts[level]
        count = self.levels[level].start if before is None else before + 1
        if start is not None:
            count = to_int(start, count)
        self.counts[level] = count
        self.counts[level + 1 :] = [None] * (LEVELS - level - 1)
        own = self.levels[level]
        if own.bullet or own.form == "none":
            return "", count
        shown = []
        for at in range(max(0, level + 1 - own.display), level + 1):
            at_level, now = self.levels[at], self.counts[at]
            if at_level.form != "none" and not at_level.bullet:
                shown.append(format_number(at_level.start if now is None else now, at_level.form))
        return f"{own.prefix}{'.'.join(shown)}{own.suffix}"[:MAX_LABEL].strip(), count
