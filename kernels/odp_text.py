"""Paragraphs and lists of an OpenDocument shape → paragraphs with text, links, level and number.

Numbers are counted as the list styles say. The invariant: every character of a paragraph stands once, in order, whatever spans it lies in;
annotations and drawings anchored in it are left to others. Recursion is as deep as the parsed part is, at most 256 levels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from raydex.ir.document import Link
from raydex.kernels.pptx_text import Bullet, marker

TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
XLINK = "{http://www.w3.org/1999/xlink}"
_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_PARAGRAPHS = frozenset((TEXT + "p", TEXT + "h"))
_ITEMS = frozenset((TEXT + "list-item", TEXT + "list-header"))
_FORMS = {"1": "arabicPlain", "a": "alphaLcPlain", "A": "alphaUcPlain", "i": "romanLcPlain", "I": "romanUcPlain"}
_SPACES = 1_000
LEVELS = 10


@dataclass(frozen=True, slots=True)
class ListLevel:
    """`form` is the numbering's sign, empty for a bullet; a level that shows nothing is not `visible`."""

    visible: bool = True
    form: str = ""
    before: str = ""
    after: str = ""
    start: int = 1


@dataclass(slots=True)
class TextLine:
    """A paragraph; `level` is None outside of lists and where the list shows no bullet."""

    text: str
    level: int | None = None
    number: int | None = None
    marker: str = ""
    links: list[Link] = field(default_factory=list)
    is_field: bool = False


ListStyles = dict[str, dict[int, ListLevel]]


def read_list_styles(roots: list[Any]) -> ListStyles:
    """List styles by name, of several parts; levels are 0-based."""
    styles: ListStyles = {}
    for root in roots:
        for style in root.iter(TEXT + "list-style"):
            levels: dict[int, ListLevel] = {}
            for item in style:
                form, sign = item.get(STYLE + "num-format") or "", item.get(TEXT + "bullet-char")
                numbered = item.tag == TEXT + "list-level-style-number"
                visible = bool(form) if numbered else sign is None or bool(sign.strip())
                levels[_whole(item.get(TEXT + "level"), 1) - 1] = ListLevel(
                    visible,
                    form if numbered else "",
                    item.get(STYLE + "num-prefix") or "",
                    item.get(STYLE + "num-suffix") or "",
                    _whole(item.get(TEXT + "start-value"), 1),
                )
            styles[style.get(STYLE + "name") or ""] = levels
    return styles


class TextReader:
    """Reads the text of one shape after another; numbers that go on by `continue-numbering` do so within one shape."""

    def __init__(self, styles: ListStyles) -> None:
        self._styles = styles
        self._lines: list[TextLine] = []
        self._counts: dict[int, int] = {}

    def read(self, holder: Any) -> list[TextLine]:
        """Paragraphs with text below a text box or shape."""
        self._lines, self._counts = [], {}
        for child in holder:
            if child.tag in _PARAGRAPHS:
                self._paragraph(child, None, False)
            elif child.tag == TEXT + "list":
                self._list(child, 0, "")
        return self._lines

    def _list(self, element: Any, level: int, inherited: str) -> None:
        name = element.get(TEXT + "style-name") or inherited
        style = self._styles.get(name, {}).get(level, ListLevel())
        if element.get(TEXT + "continue-numbering") != "true":
            self._counts.pop(level, None)
        for item in element:
            if item.tag not in _ITEMS:
                continue
            start = item.get(TEXT + "start-value")
            if start is not None:
                self._counts[level] = _whole(start, 1) - 1
            first = item.tag == TEXT + "list-item"
            for child in item:
                if child.tag in _PARAGRAPHS:
                    first = not self._paragraph(child, style if style.visible else None, first, level) and first
                elif child.tag == TEXT + "list":
                    self._list(child, level + 1, name)

    def _paragraph(self, element: Any, style: ListLevel | None, opens: bool, level: int = 0) -> bool:
        """Whether the paragraph has text. One that does not open its item has no bullet of its own."""
        parts: list[str] = []
        links: list[Link] = []
        fields = _collect(element, parts, links)
        text = "\n".join(line.strip(" ") for line in "".join(parts).split("\n")).strip()
        if not text:
            return False
        line = TextLine(text, links=links, is_field=fields)
        if style is not None and opens:
            line.level = min(level, LEVELS)
            if style.form:
                line.number = self._counts[level] = self._counts.get(level, style.start - 1) + 1
                shown = marker(Bullet("auto", _FORMS.get(style.form, "arabicPlain")), line.number)
                line.marker = f"{style.before}{shown}{style.after}"
        self._lines.append(line)
        return True


def _collect(element: Any, parts: list[str], links: list[Link]) -> bool:
    """Appends the text of an element; whether it holds a field and nothing else."""
    fields, others = False, bool((element.text or "").strip())
    parts.append(_squeeze(element.text))
    for child in element:
        name = child.tag
        if name == TEXT + "s":
            parts.append(" " * min(_whole(child.get(TEXT + "c"), 1), _SPACES))
        elif name == TEXT + "tab":
            parts.append("\t")
        elif name == TEXT + "line-break":
            parts.append("\n")
        elif name in (TEXT + "page-number", TEXT + "date", TEXT + "time"):
            fields = True
            parts.append(_squeeze("".join(child.itertext())))
        elif name != OFFICE + "annotation" and not name.startswith(_DRAW):
            at = len(parts)
            only = _collect(child, parts, links)
            fields = fields or only
            inside = "".join(parts[at:]).strip()
            others = others or (bool(inside) and not only)
            if name == TEXT + "a" and child.get(XLINK + "href") and inside:
                links.append(Link(child.get(XLINK + "href"), " ".join(inside.split())))
        parts.append(_squeeze(child.tail))
        others = others or bool((child.tail or "").strip())
    return fields and not others


def _squeeze(text: str | None) -> str:
    """White space as written counts as one space: what counts as more is written as elements."""
    if not text:
        return ""
    shown = " ".join(text.split())
    return f"{' ' if text[0].isspace() else ''}{shown}{' ' if shown and text[-1].isspace() else ''}"


def _whole(value: str | None, default: int) -> int:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 7 else default
