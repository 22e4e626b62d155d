"""What of a page is not its content: how much of it is left out, and which headings of the page's own header are the page's.

The invariant: what is left out is counted where it stands, once, and said in one event.
"""

from __future__ import annotations

from collections import Counter

from raydex.ir.parsed import ParsedFile
from raydex.kernels.drafts import Draft, say_if_empty
from raydex.kernels.html_rules import STAND_INS
from raydex.kernels.html_scan import unescape
from raydex.kernels.html_state import collapse

EVENT = "furniture_left_out"
# index of the first draft that stands in a header, and behind the last
Masthead = tuple[int, int]
_REMEDY = "put what is content into main or article, or leave the page out"


class LeftOut:
    """Characters that stand in elements which are not shown, by what hides them; an empty name is a stand-in too."""

    def __init__(self) -> None:
        self.characters: Counter[str] = Counter()

    def add(self, piece: str, what: str) -> None:
        if what and what not in STAND_INS:
            self.characters[what] += len(collapse(unescape(piece) if "&" in piece else piece))

    @property
    def total(self) -> int:
        return self.characters.total()

    @property
    def words(self) -> str:
        return ", ".join(f"{what} {count}" for what, count in self.characters.most_common() if count)

    @property
    def message(self) -> str:
        """What the event says."""
        return f"{self.total} characters outside of the content are left out: {self.words}"


def settle_mastheads(drafts: list[Draft], mastheads: list[Masthead], left_out: LeftOut) -> None:
    """Headings of the page's own headers stay where no heading outside stands as high; else they name the site, not the page."""
    inside = {at for first, last in mastheads for at in range(first, last)}
    highest = min((_level(draft) for at, draft in enumerate(drafts) if at not in inside), default=7)
    if min((_level(drafts[at]) for at in inside), default=7) < highest:
        return
    for at in inside:
        if drafts[at].kind == "heading":
            left_out.characters["header"] += len(drafts[at].text)
    drafts[:] = [draft for at, draft in enumerate(drafts) if at not in inside]


def _level(draft: Draft) -> int:
    return int(draft.metadata["level"]) if draft.kind == "heading" else 7


def say_left_out(parsed: ParsedFile, left_out: LeftOut, has_content: bool) -> None:
    """One event: what was left out or, where nothing else stands in the page, that nothing else does."""
    if not left_out.total:
        say_if_empty(parsed, has_content)
    elif parsed.blocks:
        parsed.add_event("parse", "ok", EVENT, left_out.message)
    else:
        say_if_empty(
            parsed,
            True,
            f"all text of the page ({left_out.total} characters) is navigation, furniture or hidden: {left_out.words}; {_REMEDY}",
        )
