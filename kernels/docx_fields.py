"""Complex fields of Word: begin, code, separator, result, end, over runs and paragraphs and inside each other.

The invariant: a field without an end hides nothing, so that a broken file keeps its text; no more than `MAX_OPEN` are followed at a time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from raydex.kernels.docx_parts import VAL, W, is_on, to_int

FIELD_CHARACTER = W + "fldChar"
MAX_OPEN = 50
_DELETED = frozenset((W + "del", W + "moveFrom"))
_HYPERLINK = re.compile(r'\s*HYPERLINK\b\s*(?:"([^"]*)"|([^\s"\\][^\s"]*))?', re.IGNORECASE)
_ANCHOR = re.compile(r'\\l\s*(?:"([^"]*)"|(\S+))', re.IGNORECASE)


@dataclass(slots=True)
class Field:
    """`start` is the piece of the paragraph where the result begins."""

    code: list[str] = field(default_factory=list)
    in_code: bool = True
    href: str = ""
    start: int = 0


class Fields:
    """The fields that are open at a place of one story. `covered`: some field is in its code, whose text nobody sees."""

    def __init__(self, root: Any = None) -> None:
        self.open: list[Field] = []
        self.covered = 0
        self._beyond = 0
        self._endless: set[Any] = _endless(root) if root is not None else set()

    def begin(self, element: Any) -> None:
        if element in self._endless:
            return
        if len(self.open) == MAX_OPEN:
            self._beyond += 1
        else:
            self.open.append(Field())
            self.covered += 1

    def separate(self, at: int) -> None:
        """The code is complete: what follows is the result."""
        if self.open and self.open[-1].in_code and not self._beyond:
            top = self.open[-1]
            top.in_code = False
            top.href = link_target("".join(top.code))
            top.code.clear()
            top.start = at
            self.covered -= 1

    def end(self) -> Field | None:
        if self._beyond or not self.open:
            self._beyond = max(0, self._beyond - 1)
            return None
        top = self.open.pop()
        self.covered -= top.in_code
        return top

    def add_code(self, text: str) -> None:
        if self.open and self.open[-1].in_code:
            self.open[-1].code.append(text)


def link_target(code: str) -> str:
    """The address in the code of a HYPERLINK field; of any other field nothing."""
    found = _HYPERLINK.match(code)
    if found is None:
        return ""
    anchor = _ANCHOR.search(code, found.end())
    name = (anchor[1] or anchor[2] or "") if anchor is not None else ""
    return (found[1] or found[2] or "") + (f"#{name}" if name else "")


def form_value(element: Any) -> str:
    """What a form field shows that has no result of its own: a box that is ticked or not, the chosen entry of a list."""
    box = element.find(f"{W}ffData/{W}checkBox")
    if box is not None:
        state = box.find(W + "checked")
        return "☒" if is_on(state if state is not None else box.find(W + "default")) else "☐"
    listed = element.find(f"{W}ffData/{W}ddList")
    if listed is None:
        return ""
    entries = [entry.get(VAL, "") for entry in listed.iterchildren(W + "listEntry")]
    chosen = listed.find(W + "result")
    at = to_int(chosen.get(VAL)) if chosen is not None else 0
    return entries[at] if 0 <= at < len(entries) else ""


def _endless(root: Any) -> set[Any]:
    """Begins that no end belongs to; those in deleted text do not count."""
    waiting: list[Any] = []
    for element in root.iter(FIELD_CHARACTER):
        kind = element.get(W + "fldCharType")
        if kind == "separate" or any(above.tag in _DELETED for above in element.iterancestors()):
            continue
        if kind == "begin":
            waiting.append(element)
        elif kind == "end" and waiting:
            waiting.pop()
    return set(waiting)
