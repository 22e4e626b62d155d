"""Text that a page sets apart from its line, for the walker over HTML: raised, lowered, struck out.

A browser shows by its look what plain text must say by its characters: `x²`, `H₂O`, `[1]` for the sign of a footnote, and what is struck
out is a word of its own (`10 20`, never `1020`). Code is left as it is. The invariant: pieces of a sink keep their number, so that places
which a link has noted stay true, and each is looked at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raydex.kernels.html_rules import SHOWN
from raydex.kernels.html_state import CODE, Sink
from raydex.kernels.raised_text import turn_pieces

if TYPE_CHECKING:
    from raydex.kernels.html_walk import HtmlWalk

STRUCK = frozenset(("del", "s", "strike"))
TURNED = frozenset(("sup", "sub", *STRUCK))


class OpenTurn:
    """An open superscript or subscript. `sink` is None until the text begins that it opens; `depth` counts others inside."""

    __slots__ = ("at", "depth", "links", "name", "sink", "start")

    def __init__(self, name: str, sink: Sink | None, start: int) -> None:
        self.name = name
        self.sink = sink
        self.start = start
        self.at = len(sink.pieces) if sink else 0
        self.links = len(sink.draft.links) if sink else 0
        self.depth = 0


def open_turned(walk: HtmlWalk, name: str, start: int) -> None:
    sink = walk.sink or walk.run
    if name in STRUCK:
        _part(sink)
    elif walk.turn is not None and walk.turn.sink is sink and sink is not None:
        walk.turn.depth += 1
    elif sink is None or sink.kind != CODE:
        walk.turn = OpenTurn(name, sink, start)


def close_turned(walk: HtmlWalk, name: str) -> None:
    sink = walk.sink or walk.run
    if walk.visible != SHOWN or sink is None:
        return
    if name in STRUCK:
        _part(sink)
        return
    turn = walk.turn
    if turn is None:
        return
    begins = turn.sink is None and sink is walk.run and walk.run_start >= turn.start
    if sink is not turn.sink and not begins:
        walk.turn = None
    elif turn.depth:
        turn.depth -= 1
    else:
        walk.turn = None
        _turn(walk, turn, sink)


def _part(sink: Sink | None) -> None:
    if sink is not None and sink.kind != CODE:
        sink.edges.append(len(sink.pieces))


def _turn(walk: HtmlWalk, turn: OpenTurn, sink: Sink) -> None:
    """Whether it stands in a link to a place of a page, or holds one, tells the sign of a footnote."""
    around = walk.link.href if walk.link is not None else ""
    to_note = "#" in around or any("#" in link.href for link in sink.draft.links[turn.links :])
    turn_pieces(sink.pieces, turn.at, low=turn.name == "sub", to_note=to_note)
