"""Inline tokens of one Markdown block → its text, links and images.

The invariant: what a reader of the rendered page sees stands in the text once; an image's description stands in its own block only, and
what an element of embedded HTML hides stands nowhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from raydex.ir.document import Link
from raydex.kernels.drafts import Draft
from raydex.kernels.html_rules import SHOWN, VOID, visibility
from raydex.kernels.html_scan import parse_attributes
from raydex.kernels.html_state import FLOW, Sink
from raydex.kernels.html_turned import STRUCK, TURNED
from raydex.kernels.raised_text import turn_pieces

_UNSEEN = frozenset(("script", "style"))
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)([^>]*)>")
# possessive, with one rule for escapes, and stopping where the next image may begin: each that never closes is read once
_IMAGE = re.compile(
    r"!\[(?:[^\[\]\\]|\\.)*+\](?:\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*+\))*+\)|\[[^\]]*+\])?|<img\b[^<>]*+(?:<(?!img\b)[^<>]*+)*+>",
    re.DOTALL | re.IGNORECASE,
)


@dataclass(slots=True)
class InlineImage:
    """`at` counts the images of the block from 0."""

    at: int
    href: str
    alt: str
    link: str = ""


@dataclass(slots=True)
class InlineText:
    text: str
    links: list[Link] = field(default_factory=list)
    images: list[InlineImage] = field(default_factory=list)


def read_inline(children: list[Any]) -> InlineText:
    """Soft breaks are spaces, hard ones and `<br>` line ends; tags of embedded HTML go, links and images in them stay."""
    sink = Sink(FLOW, Draft("paragraph", 0))
    pieces, links = sink.pieces, sink.draft.links
    images: list[InlineImage] = []
    turn: tuple[str, int, int] | None = None  # what is raised or lowered, and where its text and links begin
    opened: list[tuple[str, int]] = []
    unclosed: set[str] = set()
    hidden_to = -1

    def close_link() -> None:
        if opened:
            href, at = opened.pop()
            text = sink.text(at).strip()
            if text:
                links.append(Link(href, text))

    for at, token in enumerate(children):
        kind = token.type
        if at <= hidden_to:
            continue
        if kind in ("text", "code_inline", "text_special"):
            pieces.append(token.content)
        elif kind == "softbreak":
            pieces.append(" ")
        elif kind == "hardbreak":
            pieces.append("\n")
        elif kind == "link_open":
            opened.append((str(token.attrs.get("href", "")), len(pieces)))
        elif kind == "link_close":
            close_link()
        elif kind in ("s_open", "s_close"):
            sink.edges.append(len(pieces))
        elif kind == "image":
            alt = read_inline(token.children or []).text
            images.append(InlineImage(len(images), str(token.attrs.get("src", "")), alt, opened[-1][0] if opened else ""))
        elif kind == "html_inline":
            found = _TAG.fullmatch(token.content)
            if found is None:
                continue
            closes, name, attributes = found.group(1), found.group(2).lower(), found.group(3)
            if not closes and name not in VOID and name not in unclosed and _hides(name, attributes):
                hidden_to = _end_of(children, at, name)
                if hidden_to < 0:
                    unclosed.add(name)
            elif name == "br":
                pieces.append("\n")
            elif name in STRUCK:
                sink.edges.append(len(pieces))
            elif name in TURNED and not closes:
                turn = (name, len(pieces), len(links))
            elif name in TURNED and turn is not None:
                hrefs = [*(href for href, _ in opened[-1:]), *(link.href for link in links[turn[2] :])]
                turn_pieces(pieces, turn[1], low=turn[0] == "sub", to_note=any("#" in href for href in hrefs))
                turn = None
            elif name == "img":
                values = parse_attributes(attributes)
                images.append(InlineImage(len(images), values.get("src", ""), values.get("alt", ""), opened[-1][0] if opened else ""))
            elif name == "a" and closes:
                close_link()
            elif name == "a":
                href = parse_attributes(attributes).get("href", "")
                if href:
                    opened.append((href, len(pieces)))
    while opened:
        close_link()
    text = "\n".join(line.strip(" \t") for line in sink.text().split("\n")).strip()
    return InlineText(text, links, images)


def _hides(name: str, attributes: str) -> bool:
    return name in _UNSEEN or visibility(name, parse_attributes(attributes) if attributes else {}, True) != SHOWN


def _end_of(children: list[Any], start: int, name: str) -> int:
    """Index of the token that closes the element opened at `start`; -1 where none does: then it hides nothing."""
    depth = 0
    for at in range(start, len(children)):
        found = _TAG.fullmatch(children[at].content) if children[at].type == "html_inline" else None
        if found is not None and found.group(2).lower() == name:
            depth += -1 if found.group(1) else 1
            if depth == 0:
                return at
    return -1


def image_spans(source: str) -> list[tuple[int, int]]:
    """Places that look like an image in the source of a block, in order."""
    return [found.span() for found in _IMAGE.finditer(source)]
