"""DrawingML text bodies → paragraphs: text, links, and the bullet or number that a reader sees before each.

A bullet is the paragraph's own, else that of the list styles its placeholder inherits, nearest first; automatic numbers are counted here.
The invariant: every run's characters stand once, in order; a line break is a line end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from raydex.ir.document import Link
from raydex.kernels.office_math import OMATH, OMATH_PARAGRAPH, math_text

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_A14_MATH = "{http://schemas.microsoft.com/office/drawing/2010/main}m"
_PARAGRAPH, _RUN, _BREAK, _FIELD, _TEXT = (A + name for name in ("p", "r", "br", "fld", "t"))
_PROPERTIES, _RUN_PROPERTIES, _CLICK = (A + name for name in ("pPr", "rPr", "hlinkClick"))
_LEVEL = re.compile(r"lvl([1-9])pPr\Z")
_SCHEME = re.compile(r"(alpha|arabic|roman)(Lc|Uc)?(ParenBoth|ParenR|Period|Plain)\Z")
_AROUND = {"ParenBoth": "({})", "ParenR": "{})", "Period": "{}.", "Plain": "{}"}
_ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    )
)
LAST_START = 32_767


@dataclass(frozen=True, slots=True)
class Bullet:
    """`kind` is none, char or auto; `scheme` the numbering's name as the format spells it."""

    kind: str
    scheme: str = ""
    start: int = 1


@dataclass(slots=True)
class Paragraph:
    """`number` is there where the paragraph is numbered. `is_field`: all of its text is a slide number or a date."""

    text: str
    level: int = 0
    bullet: Bullet | None = None
    number: int | None = None
    links: list[Link] = field(default_factory=list)
    is_field: bool = False


Levels = dict[int, Bullet]
Href = Callable[[Any], str]  # a:hlinkClick → address, empty where it leads nowhere


def read_levels(style: Any) -> Levels:
    """Bullets by level of a list style (`lstStyle`, `bodyStyle` …); levels that say nothing are left out."""
    levels: Levels = {}
    for child in style if style is not None else ():
        found = _LEVEL.match(child.tag.rpartition("}")[2])
        bullet = _own_bullet(child) if found else None
        if found and bullet is not None:
            levels[int(found[1]) - 1] = bullet
    return levels


def read_paragraphs(body: Any, styles: Sequence[Levels], href: Href, slide: int = 0) -> list[Paragraph]:
    """Paragraphs with text. `slide` stands in for a slide-number field."""
    out: list[Paragraph] = []
    numbers: dict[int, tuple[Bullet, int]] = {}
    for element in body.iterchildren(_PARAGRAPH):
        paragraph = _read(element, href, slide)
        if not paragraph.text:
            continue
        properties = element.find(_PROPERTIES)
        paragraph.level = _level(properties)
        paragraph.bullet = _bullet(properties, paragraph.level, styles)
        _count(paragraph, numbers)
        out.append(paragraph)
    return out


def plain_text(body: Any) -> str:
    """The text of a body on as many lines as it has paragraphs and breaks."""
    return "\n".join(paragraph.text for paragraph in read_paragraphs(body, (), lambda _: ""))


def marker(bullet: Bullet, number: int) -> str:
    """A number as shown, such as `iv.` or `(b)`; digits with a full stop for the numberings of other scripts."""
    found = _SCHEME.match(bullet.scheme)
    if found is None:
        return f"{number}."
    digits = str(number)
    if found[1] == "alpha":
        digits = _letters(number)
    elif found[1] == "roman":
        digits = _roman(number)
    return _AROUND[found[3]].format(digits.upper() if found[2] == "Uc" else digits)


def _read(element: Any, href: Href, slide: int) -> Paragraph:
    parts: list[str] = []
    links: list[tuple[str, list[str]]] = []
    before = ""  # address of the run just before
    fields = runs = 0
    for child in element:
        tag = child.tag
        address = ""
        if tag in (_RUN, _FIELD):
            text = child.findtext(_TEXT) or ""
            if tag == _FIELD:
                kind = child.get("type") or ""
                fields += kind == "slidenum" or kind.startswith("datetime")
                text = str(slide) if kind == "slidenum" and slide else text
            elif text.strip():
                runs += 1
            address = _address(child, href)
        elif tag == _BREAK:
            text = "\n"
            address = before
        elif tag in (_A14_MATH, MC + "AlternateContent"):
            text = _math(child)
            runs += 1
        else:
            continue
        if address and text.strip():
            if address == before and links:
                links[-1][1].append(text)
            else:
                links.append((address, [text]))
        before = address
        parts.append(text)
    found = [Link(address, " ".join("".join(shown).split())) for address, shown in links]
    return Paragraph("".join(parts).replace("\v", "\n").strip(), links=found, is_field=fields > 0 and runs == 0)


def _address(run: Any, href: Href) -> str:
    properties = run.find(_RUN_PROPERTIES)
    click = properties.find(_CLICK) if properties is not None else None
    return href(click) if click is not None else ""


def _math(element: Any) -> str:
    """Of an `a14:m`, or of the alternatives of one: the fallback is a picture of it, or its characters."""
    for formula in element.iter(OMATH_PARAGRAPH, OMATH):
        return math_text(formula)
    return "".join(node.text or "" for node in element.iter(_TEXT))


def _level(properties: Any) -> int:
    level = properties.get("lvl", "") if properties is not None else ""
    return int(level) if len(level) == 1 and level in "012345678" else 0


def _bullet(properties: Any, level: int, styles: Sequence[Levels]) -> Bullet | None:
    own = _own_bullet(properties) if properties is not None else None
    return own or next((style[level] for style in styles if level in style), None)


def _own_bullet(properties: Any) -> Bullet | None:
    for child in properties:
        name = child.tag.rpartition("}")[2]
        if name == "buNone" or (name == "buChar" and not (child.get("char") or "").strip()):
            return Bullet("none")
        if name in ("buChar", "buBlip"):
            return Bullet("char")
        if name == "buAutoNum":
            start = child.get("startAt") or "1"
            known = start.isascii() and start.isdigit() and len(start) < 6
            return Bullet("auto", child.get("type") or "", min(int(start), LAST_START) if known else 1)
    return None


def _count(paragraph: Paragraph, numbers: dict[int, tuple[Bullet, int]]) -> None:
    """A run of one numbering goes on over deeper levels and ends at anything else of its level or above."""
    for deeper in [level for level in numbers if level > paragraph.level]:
        del numbers[deeper]
    bullet = paragraph.bullet
    if bullet is None or bullet.kind != "auto":
        numbers.pop(paragraph.level, None)
        return
    running = numbers.get(paragraph.level)
    paragraph.number = running[1] + 1 if running is not None and running[0] == bullet else bullet.start
    numbers[paragraph.level] = (bullet, paragraph.number)


def _letters(number: int) -> str:
    out = ""
    while number > 0:
        number, digit = divmod(number - 1, 26)
        out = chr(ord("a") + digit) + out
    return out


def _roman(number: int) -> str:
    if number > 4999:
        return str(number)
    out = ""
    for value, sign in _ROMAN:
        count, number = divmod(number, value)
        out += sign * count
    return out
