"""HTML text → tokens with their offsets, as the HTML tokenizer cuts them: tags, text, comments, raw-text elements, character references.

No parsing library at hand reports where in the source an element stands, and every block needs that place; so the cuts are made here,
with possessive expressions and bounded look-ahead. The invariant: each character is looked at a bounded number of times, whatever
the input, and tokens come in order without overlap.
"""

from __future__ import annotations

import html
import re
from collections.abc import Generator, Iterator

TEXT, START, END, EMPTY, RAW = range(5)
Token = tuple[int, str, str, int, int]

# after `=` a quote opens a value; a quote that never closes is an ordinary character
_TAG = re.compile(
    r"""<(/?)([a-zA-Z][^\s/>]*+)((?:[^=>]++|=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)?+)*+)>""",
)
_ATTRIBUTE = re.compile(r"""([^\s=/>"'][^\s=/>]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]++)))?+""")
_REFERENCE = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});")
_HUGE_REFERENCE = re.compile(r"&#(?:[0-9]{9,}|[xX][0-9a-fA-F]{8,});?")
_SVG = re.compile(r"<(/?)svg(?=[\s/>])[^>]*+>", re.IGNORECASE)
RAW_ELEMENTS = frozenset(("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"))
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])[^>]*+>?", re.IGNORECASE) for name in RAW_ELEMENTS}


def scan_html(text: str, *, xml: bool = False) -> Iterator[Token]:
    """Tokens (kind, lower-case name, attributes as written, start, end) of a page.

    The content of a raw-text element comes as one RAW token between its START and END. An svg element comes as one EMPTY token. With
    `xml` a self-closing tag is EMPTY for every element, and CDATA sections are text.
    """
    at = 0
    size = len(text)
    find = text.find
    match = _TAG.match
    last_gt = text.rfind(">")
    wasted = 0
    while at < size:
        lt = find("<", at)
        if lt < 0:
            yield TEXT, "", "", at, size
            return
        if lt > at:
            yield TEXT, "", "", at, lt
        follower = text[lt + 1 : lt + 2]
        if not (follower.isalpha() or follower == "/"):
            at = yield from _scan_markup(text, lt, xml)
            continue
        if lt > last_gt:
            yield TEXT, "", "", lt, size
            return
        found = match(text, lt) if wasted <= size else None
        if found is not None:
            closes, name, attributes = found.groups()
            end = found.end()
        else:
            gt = find(">", lt)
            closes = "/" if follower == "/" else ""
            letter = text[lt + 2 : lt + 3] if closes else follower
            if not (letter.isascii() and letter.isalpha()):
                if closes:
                    at = gt + 1  # a bogus comment
                else:
                    yield TEXT, "", "", lt, lt + 1
                    at = lt + 1
                continue
            # the tag's quotes do not close before the text ends: it ends at the next `>`
            wasted += size - lt
            name, _, attributes = text[lt + 1 + len(closes) : gt].replace("\n", " ").partition(" ")
            end = gt + 1
        name = name.lower()
        at = end
        if closes:
            yield END, name, "", lt, end
        elif name == "svg":
            at, cost = _svg_end(text, end, attributes, wasted <= size)
            wasted += cost
            yield EMPTY, name, attributes, lt, at
        elif name in RAW_ELEMENTS and not (xml and attributes.endswith("/")):
            yield START, name, attributes, lt, end
            closing = _RAW_ENDS[name].search(text, end)
            stop = closing.start() if closing else size
            yield RAW, name, "", end, stop
            at = closing.end() if closing else size
            yield END, name, "", stop, at
        elif name == "plaintext":
            yield START, name, attributes, lt, end
            yield RAW, name, "", end, size
            yield END, name, "", size, size
            at = size
        else:
            yield (EMPTY if xml and attributes.endswith("/") else START), name, attributes, lt, end


def _scan_markup(text: str, lt: int, xml: bool) -> Generator[Token, None, int]:
    """Comments, declarations and processing instructions at a `<`; what is none of them is text. Returns where to go on."""
    if text.startswith("<!--", lt):
        if text.startswith((">", "->"), lt + 4):
            return text.index(">", lt + 4) + 1
        end = text.find("-->", lt + 4)
        return len(text) if end < 0 else end + 3
    if xml and text.startswith("<![CDATA[", lt):
        end = text.find("]]>", lt + 9)
        stop = len(text) if end < 0 else end
        yield RAW, "#cdata", "", lt + 9, stop
        return min(len(text), stop + 3)
    if text.startswith(("<!", "<?"), lt):
        end = text.find(">", lt)
        return len(text) if end < 0 else end + 1
    yield TEXT, "", "", lt, lt + 1
    return lt + 1


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
    if "&" not in text:
        return text
    if "&#" in text:
        text = _HUGE_REFERENCE.sub("\ufffd", text)
    return html.unescape(text)
