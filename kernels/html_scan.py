"""HTML text → tokens with their offsets, as the HTML tokenizer cuts them: tags, text, comments, raw-text elements, character references.

No parsing library at hand reports where in the source an element stands, and every block needs that place; so the cuts are made here,
with possessive expressions and bounded look-ahead. The invariant: each character is looked at a bounded number of times, whatever
the input, and tokens come in order without overlap.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import lru_cache

NOTHING, START, END, EMPTY, RAW = range(5)
# text before the tag, its offset; kind, lower-case name and attributes of the tag, its offset and end
Token = tuple[str, int, int, str, str, int, int]

# after `=` a quote opens a value; a quote that never closes is an ordinary character
_ATTRIBUTES = r"""(?:[^=>]++|=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)?+)*+"""
_TAG = re.compile(rf"([^<]*+)<(/?)([a-zA-Z][^\s/>]*+)({_ATTRIBUTES})>")
_ATTRIBUTE = re.compile(r"""([^\s=/>"'][^\s=/>]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]++)))?+""")
_REFERENCE = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});")
_HUGE_REFERENCE = re.compile(r"&#(?:[0-9]{9,}|[xX][0-9a-fA-F]{8,});?")
# it passes over a `<` but not over the next svg, so that tags which never close are read once
_SVG = re.compile(r"<(/?)svg(?=[\s/>])[^<>]*+(?:<(?!/?svg[\s/>])[^<>]*+)*+>", re.IGNORECASE)
RAW_ELEMENTS = frozenset(("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext"))
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])[^>]*+>?", re.IGNORECASE) for name in RAW_ELEMENTS}


def scan_html(text: str, *, xml: bool = False) -> Iterator[Token]:
    """Tokens of a page, each with the text that stands before its tag.

    The content of a raw-text element comes as one RAW token between its START and END. An svg element comes as one EMPTY token. With
    `xml` a self-closing tag is EMPTY for every element, and CDATA sections are RAW text.
    """
    at = 0
    size = len(text)
    last_gt = text.rfind(">")
    wasted = 0
    match = _TAG.match
    while at < size:
        found = match(text, at) if wasted <= size else None
        if found is None:
            lt = text.find("<", at)
            if lt < 0:
                yield text[at:], at, NOTHING, "", "", size, size
                return
            markup = _markup_end(text, lt, last_gt, xml)
            if markup is not None:
                stop, end = markup
                if stop > lt:
                    yield text[at:stop], at, NOTHING, "", "", stop, stop
                elif end > size:
                    yield text[at:lt], at, RAW, "#cdata", "", lt + 9, end - size
                    end = min(size, end - size + 3)
                else:
                    yield text[at:lt], at, NOTHING, "", "", lt, lt
                at = end
                continue
            # the tag's quotes do not close before the text ends: it ends at the next `>`
            wasted += size - lt
            end = text.find(">", lt) + 1
            closes = "/" if text.startswith("/", lt + 1) else ""
            piece = text[at:lt]
            name, _, attributes = text[lt + 1 + len(closes) : end - 1].replace("\n", " ").partition(" ")
        else:
            piece, closes, name, attributes = found.groups()
            lt = at + len(piece)
            end = found.end()
        name = name.lower()
        if closes:
            yield piece, at, END, name, "", lt, end
            at = end
        elif name == "svg":
            stop, cost = _svg_end(text, end, attributes, wasted <= size)
            wasted += cost
            yield piece, at, EMPTY, name, attributes, lt, stop
            at = stop
        elif name in RAW_ELEMENTS and not (xml and attributes.endswith("/")):
            yield piece, at, START, name, attributes, lt, end
            closing = _RAW_ENDS[name].search(text, end) if name != "plaintext" else None
            stop = closing.start() if closing else size
            yield "", end, RAW, name, "", end, stop
            at = closing.end() if closing else size
            yield "", stop, END, name, "", stop, at
        else:
            yield piece, at, (EMPTY if xml and attributes.endswith("/") else START), name, attributes, lt, end
            at = end


def _markup_end(text: str, lt: int, last_gt: int, xml: bool) -> tuple[int, int] | None:
    """What a `<` that begins no ordinary tag is: (end of what is text, where to go on); None for a tag.

    A CDATA section in XML is told by its end plus the text's size, which no other answer can reach.
    """
    size = len(text)
    if text.startswith("<!--", lt):
        if text.startswith((">", "->"), lt + 4):
            return lt, text.index(">", lt + 4) + 1
        end = text.find("-->", lt + 4)
        return lt, (size if end < 0 else end + 3)
    if xml and text.startswith("<![CDATA[", lt):
        end = text.find("]]>", lt + 9)
        return lt, (size if end < 0 else end) + size
    if text.startswith(("<!", "<?"), lt):
        end = text.find(">", lt)
        return lt, (size if end < 0 else end + 1)
    closes = text.startswith("/", lt + 1)
    letter = text[lt + 1 + closes : lt + 2 + closes]
    if letter.isascii() and letter.isalpha():
        return (size, size) if lt > last_gt else None
    if closes and lt < last_gt:
        return lt, text.index(">", lt) + 1  # a bogus comment
    return lt + 1, lt + 1


def _svg_end(text: str, at: int, attributes: str, may_search: bool) -> tuple[int, int]:
    """Where a drawing ends, nested ones counted, and how many characters were looked at in vain; unclosed ones end at once."""
    if attributes.endswith("/"):
        return at, 0
    depth = 1
    nearest = -1
    for found in _SVG.finditer(text, at) if may_search else ():
        if found.group(1):
            depth -= 1
            nearest = nearest if nearest >= 0 else found.end()
            if depth == 0:
                return found.end(), 0
        elif not found.group().endswith("/>"):
            depth += 1
    return (nearest if nearest >= 0 else at), len(text) - at


def parse_attributes(attributes: str) -> dict[str, str]:
    """Lower-case names to values; the first of equal names counts; references that end in `;` are resolved."""
    values: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(attributes):
        key = name.lower()
        if key not in values:
            value = double or single or bare
            values[key] = _REFERENCE.sub(_resolve, value) if "&" in value else value
    return values


def _resolve(found: re.Match[str]) -> str:
    return html.unescape(found.group())


def unescape(text: str) -> str:
    """Character references of running text; one beyond Unicode becomes U+FFFD."""
    return _unescape_short(text) if len(text) <= 16 else _unescape(text)


def _unescape(text: str) -> str:
    if "&#" in text:
        text = _HUGE_REFERENCE.sub("\ufffd", text)
    return html.unescape(text)


_unescape_short = lru_cache(maxsize=4096)(_unescape)
