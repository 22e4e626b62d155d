"""What the walker over HTML keeps while it walks: open elements, scopes, lists, tables, links, and the sinks that text goes to.

Plain records, hardly any behaviour. `BREAK` is the one invariant: inside pieces of text a NUL is a line break, because NULs of the source
have been replaced before.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from raydex.kernels.drafts import Draft

BREAK = "\x00"  # a line break inside a draft; NULs of the source are replaced before
NUMBER = re.compile(r"\s*(-?\d{1,9})")
_SPACES = re.compile(r"[ \t\n\r\f]+")
_AMOUNTS = "$€£¥₹%°"
FLOW, HEADING, CODE, CELL, CAPTION = range(5)


def collapse(text: str) -> str:
    """White space as a browser shows it: runs of ASCII white space are one space, `BREAK` a line end; empty lines go."""
    if BREAK in text:
        lines = (collapse(part) for part in text.split(BREAK))
        return "\n".join(line for line in lines if line)
    if text.isascii():
        return " ".join(text.split())
    return _SPACES.sub(" ", text).strip()


def is_empty(draft: Draft) -> bool:
    """Whether a block that was opened has got neither text nor, as a table, a cell or caption with text."""
    if draft.rows is not None:
        return not draft.metadata.get("caption") and not any(cell["text"] for row in draft.rows for cell in row)
    return not draft.text.strip()


def _touch(left: str, right: str) -> bool:
    """Whether two characters side by side would be read as one word or amount."""
    return bool(left) and (left.isalnum() or left in _AMOUNTS) and (right.isalnum() or right in _AMOUNTS)


class Sink:
    """Where text goes while an element is open: `kind` heading, code, cell or caption, or a run of the flow. `edges` are the numbers of the
    pieces before which a word ends, whatever stands there."""

    __slots__ = ("draft", "edges", "kind", "pieces", "previous")

    def __init__(self, kind: int, draft: Draft, previous: Sink | None = None) -> None:
        self.kind = kind
        self.draft = draft
        self.pieces: list[str] = []
        self.edges: list[int] = []
        self.previous = previous

    def text(self, start: int = 0) -> str:
        """The pieces from `start` on, with a space at each edge where letters, digits or amounts would run together."""
        edges = self.edges[bisect_left(self.edges, start) :] if self.edges else None
        if not edges:
            return "".join(self.pieces[start:])
        out: list[str] = []
        low, last = start, ""
        for edge in [*edges, len(self.pieces)]:
            piece = "".join(self.pieces[low:edge])
            low = max(low, edge)
            if piece:
                out.append(f" {piece}" if _touch(last, piece[0]) else piece)
                last = piece[-1]
        return "".join(out)

    def end_line(self) -> None:
        """In code: what follows stands on a line of its own."""
        if self.pieces and not self.pieces[-1].endswith("\n"):
            self.pieces.append("\n")


class OpenList:
    __slots__ = ("level", "next", "ordered", "step")

    def __init__(self, level: int, ordered: bool, start: int) -> None:
        self.level = level
        self.ordered = ordered
        self.next = start
        self.step = 1


class OpenTable:
    """An open table. `draft` is None for one whose parts are ordinary boxes: layout, hidden, or inside a cell."""

    __slots__ = ("caption", "cell", "cells", "draft", "header", "index", "layout", "row", "section")

    def __init__(self, index: int, draft: Draft | None, layout: bool) -> None:
        self.index = index
        self.draft = draft
        self.layout = layout
        self.caption = self.section = self.row = self.cell = -1
        self.cells = 0
        self.header = False


class OpenElement:
    """An open element: `visible` is what it shows of its content, `draft` the block whose end is this element's end."""

    __slots__ = ("draft", "language", "name", "region", "role", "sink", "start", "visible")

    def __init__(self, name: str, start: int, visible: int) -> None:
        self.name = name
        self.start = start
        self.visible = visible
        self.draft: Draft | None = None
        self.sink: Sink | None = None
        self.role: OpenList | OpenTable | None = None
        self.region = False
        self.language = ""


class Scope:
    """What is open since the last table, cell or template: end tags do not reach beyond."""

    __slots__ = ("counts", "items", "lists", "paragraph")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.paragraph = -1
        self.lists: list[OpenList] = []
        self.items: list[int] = [-1]


class OpenLink:
    __slots__ = ("at", "href", "image", "sink")

    def __init__(self, href: str, sink: Sink | None) -> None:
        self.href = href
        self.sink = sink
        self.at = len(sink.pieces) if sink else 0
        self.image = False
