"""The rule by which our parser found too little of a file, so that docling's result is worth a look (`docling.mode: fallback`).

It holds when the file was rejected as broken (`REJECTS`; an encrypted or too large one is never tried again, nor a bomb), when no block has
text although the file has some, and when the blocks hold less than a share (`SHARE`) of the letters and digits that a plain reading of the
bytes counts, in a file of at least `LEAST` of them. A page of HTML rightly loses menus and hidden parts, so its share is lower. A PDF is
measured by the text of its own pages; pages without any are for OCR. The invariant: counting is linear in the bytes, and the reason quotes
nothing of the document.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.decode import declared_encoding, decode
from raydex.kernels.package import Package
from raydex.kernels.request import ParseRequest

EVENT = "too_little"
REJECTS = frozenset(("invalid_input", "no_pages"))
LEAST = 200
SHARE = 0.3
HTML_SHARE = 0.1
_NO_CHARACTER = re.compile(r"[\W_]+")
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s<>/]*)[^<>]*>?")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_DROPPED = frozenset(("script", "style", "template", "noscript", "nav", "header", "footer", "aside", "head", "svg", "select"))
_RUN = re.compile(rb"<(?:[A-Za-z0-9]+:)?t(?:\s[^<>]*)?>([^<]*)<")
_OFFICE = "application/vnd.openxmlformats-officedocument."
_PARTS = {
    f"{_OFFICE}wordprocessingml.document": re.compile(r"word/(?:document|footnotes|endnotes)\d*\.xml"),
    f"{_OFFICE}presentationml.presentation": re.compile(r"ppt/slides/slide\d+\.xml"),
    f"{_OFFICE}spreadsheetml.sheet": re.compile(r"xl/(?:sharedStrings|worksheets/[^/]+)\.xml"),
}


def note_if_too_little(parsed: ParsedFile, request: ParseRequest) -> None:
    """Adds the event `too_little` where the rule holds."""
    reason = too_little(parsed, request)
    if reason:
        parsed.add_event("parse", "warning", EVENT, reason)


def too_little(parsed: ParsedFile, request: ParseRequest) -> str:
    """Why the rule holds; empty where it does not."""
    if parsed.document is None:
        found = next((reject.reject_class for reject in parsed.rejects), "")
        return f"the file was rejected as {found}" if found in REJECTS else ""
    ours = sum(_count(block.text) for block in parsed.blocks if block.kind not in ("image", "error"))
    plain = sum(page.char_count for page in parsed.pages) if parsed.media_type == "application/pdf" else plain_characters(request)
    if plain and not ours:
        return f"no block has text, but the file has about {plain} letters and digits"
    share = HTML_SHARE if parsed.media_type == "text/html" else SHARE
    if plain >= LEAST and ours < share * plain:
        return f"the blocks hold {ours} of about {plain} letters and digits, less than {share:.0%}"
    return ""


def plain_characters(request: ParseRequest) -> int:
    """Letters and digits that a plain reading of the file counts; 0 where it cannot be read so."""
    if request.media_type in _PARTS:
        return sum(_count(text) for text in _runs(request))
    text = decode(request.data, declared=declared_encoding(request.data)).text
    if request.media_type == "text/html":
        return sum(_count(part) for part in _shown(text))
    return _count(text)


def _count(text: str) -> int:
    return len(_NO_CHARACTER.sub("", text))


def _runs(request: ParseRequest) -> Iterator[str]:
    """Texts of the parts that hold what a reader sees."""
    try:
        package = Package(request)
        for name in package.names:
            if _PARTS[request.media_type].fullmatch(name):
                for run in _RUN.finditer(package.read(name)):
                    yield html.unescape(run[1].decode("utf-8", "ignore"))
    except InputError:  # the parser has said it already, or did without the part
        return


def _shown(text: str) -> Iterator[str]:
    """Text between tags, without the elements that are dropped anyway; one that is never closed takes all that follows."""
    text = _COMMENT.sub(" ", text)
    at = depth = 0
    inside = ""
    for tag in _TAG.finditer(text):
        if not inside:
            yield html.unescape(text[at : tag.start()])
        at = tag.end()
        name = tag[2].lower()
        if inside:
            depth += (-1 if tag[1] else 1) if name == inside else 0
            inside = inside if depth else ""
        elif name in _DROPPED and not tag[1]:
            inside, depth = name, 1
    if not inside:
        yield html.unescape(text[at:])
