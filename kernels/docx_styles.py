"""styles.xml → what a style says about a paragraph or a run, with everything that it inherits.

Built-in styles are known by their English names, which files of every language keep, or by their ids. The invariant: each style is
resolved once, whatever chain or circle `basedOn` makes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from raydex.kernels.docx_parts import VAL, W, is_on, to_int

BODY_TEXT = 9  # the outline level of what is no heading
_HEADING = re.compile(r"heading\s?([1-9])")
_TOC = re.compile(r"toc\s?([1-9])")
_LIST = re.compile(r"list\s?(?:bullet|number|continue)?\s?([2-5])")
_CODE = re.compile(
    r"(?:source |plain )?code|sourcecode|code ?(?:block|listing)|html ?preformatted|preformatted text|macro ?text|program ?listing|verbatim"
)
FONTS = re.compile(
    r"(?:courier|consolas|menlo|monaco|inconsolata|lucida console|andale mono|cascadia|source code|fira (?:code|mono)|jetbrains mono"
    r"|(?:dejavu sans|liberation|noto sans|ubuntu|roboto|sf) mono)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Style:
    """`outline` 0-8 is a heading; `number_style` the style in the chain that names the numbering `number`."""

    name: str = ""
    outline: int = BODY_TEXT
    number: str = ""
    number_level: int | None = None
    number_style: str = ""
    depth: int = 0  # of a built-in list style: List Bullet 3 is 2
    title: bool = False
    toc: int = 0
    code: bool = False
    mono: bool = False
    hidden: bool = False
    turned: str = ""  # superscript or subscript
    header_row: bool = False  # a table style that sets the first row apart


class Styles:
    """Styles by id; an id that is not defined is read by what it is called. `language`: of the text, where runs name no other."""

    def __init__(self, root: Any) -> None:
        self._elements: dict[str, Any] = {}
        self._known: dict[str, Style] = {}
        self._default = ""
        language = root.find(f"{W}docDefaults/{W}rPrDefault/{W}rPr/{W}lang") if root is not None else None
        self.language = str(language.get(VAL, "")) if language is not None else ""
        for element in root.iterchildren(W + "style") if root is not None else ():
            name = element.get(W + "styleId", "")
            self._elements.setdefault(name, element)
            if element.get(W + "type") == "paragraph" and element.get(W + "default", "0") not in ("0", "false", "off"):
                self._default = name

    def find(self, name: str | None) -> Style:
        """The style of this id; without one the default of paragraphs."""
        key = self._default if name is None else name
        found = self._known.get(key)
        return found if found is not None else self._resolve(key)

    def _resolve(self, name: str) -> Style:
        chain: list[str] = []
        at: str | None = name
        waiting: set[str] = set()
        while at is not None and at not in self._known and at not in waiting:
            chain.append(at)
            waiting.add(at)
            element = self._elements.get(at)
            above = element.find(W + "basedOn") if element is not None else None
            at = above.get(VAL) if above is not None else None
        style = self._known.get(at, Style()) if at is not None else Style()
        for key in reversed(chain):
            style = self._known[key] = _inherit(key, self._elements.get(key), style)
        return style


def _inherit(key: str, element: Any, above: Style) -> Style:
    """One style upon the one that it is based on."""
    named = element.find(W + "name") if element is not None else None
    name = named.get(VAL, "") if named is not None else key
    folded = name.lower().strip()
    heading, listed, toc = _HEADING.fullmatch(folded), _LIST.fullmatch(folded), _TOC.fullmatch(folded)
    style = replace(
        above,
        name=name,
        title=above.title or folded == "title",
        code=above.code or _CODE.fullmatch(folded) is not None,
        outline=int(heading[1]) - 1 if heading else above.outline,
        depth=int(listed[1]) - 1 if listed else above.depth,
        toc=int(toc[1]) if toc else above.toc,
    )
    if element is None:
        return style
    of_paragraph, of_run = element.find(W + "pPr"), element.find(W + "rPr")
    if of_paragraph is not None:
        style = _with_paragraph(style, key, of_paragraph)
    if of_run is not None:
        hidden, fonts, turned = (of_run.find(W + name) for name in ("vanish", "rFonts", "vertAlign"))
        style = replace(
            style,
            hidden=is_on(hidden) if hidden is not None else style.hidden,
            turned=turned_as(turned) if turned is not None else style.turned,
            mono=is_mono(fonts) if fonts is not None and fonts.get(W + "ascii") else style.mono,
        )
    if any(part.get(W + "type") == "firstRow" for part in element.iterchildren(W + "tblStylePr")):
        style = replace(style, header_row=True)
    return style


def _with_paragraph(style: Style, key: str, properties: Any) -> Style:
    outline, listing = properties.find(W + "outlineLvl"), properties.find(W + "numPr")
    if outline is not None:
        style = replace(style, outline=to_int(outline.get(VAL), BODY_TEXT))
    if listing is None:
        return style
    number, level = listing.find(W + "numId"), listing.find(W + "ilvl")
    if number is not None:
        style = replace(style, number=number.get(VAL, ""), number_style=key, number_level=None)
    if level is not None:
        style = replace(style, number_level=to_int(level.get(VAL)))
    return style


def turned_as(element: Any) -> str:
    """What a `vertAlign` says: superscript, subscript, or nothing where it sets text back on the line."""
    value = str(element.get(VAL, ""))
    return value if value in ("superscript", "subscript") else ""


def is_mono(fonts: Any) -> bool:
    """A `rFonts` element that names a typewriter face."""
    return FONTS.match(fonts.get(W + "ascii", "")) is not None
