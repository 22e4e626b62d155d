"""Labels of list items that one line alone does not show: "1" or "1.1" without a dot after it, "[1]", a label in a column of its own, one
set close to its text, a letter that might be an initial.

Only a run of such labels is a list: at least two in sequence, at one left edge, with what goes on between them hanging from that edge. The
invariant: what stands before an item has ended, unless three and more count from one, so that a line that goes on with a sentence is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from raydex.kernels.pdf_layout import Line
from raydex.kernels.pdf_raw import MONO

ENDS = (".", "!", "?", ":", ";", "。", "！", "？", "：", "；", "”", '."', ".)")
MAX_NESTED = 6
_COLUMN_GAP = 3.5  # of the type size: between a label and its text
_NEXT = 3.5  # and between two lines of a list
_EDGE = 2.0
_GROUPS = (
    r"(?P<bare>\d{1,3})(?=[\t ]+[^\W\d_])",
    r"(?P<dotted>\d{1,3}(?:\.\d{1,3}){1,4})\.?(?=[\t ]+[^\W\d_])",
    r"\[(?P<cited>\d{1,3})\](?=\s*\S)",
    r"\(?(?P<close>\d{1,3})[.)](?=[^\W\d_])",
    r"\(?(?P<letter>[a-zA-Z])\)(?=[^\W\d_])",
    r"(?P<initial>[a-zA-Z])\.(?=[\t ]+\S)",
    r"(?P<column>[A-Z])(?=\t[^\W\d_])",
    r"(?P<dash>[–—*·-])(?=[^\W\d_])",
)
_LABEL = re.compile("|".join(_GROUPS))
_ANY_START = ("cited", "close", "initial")  # a list may have begun on the page before

_INSIDE = re.compile(r"\w+")
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_ROMAN = tuple(f"{tens}{ones}" for tens in ("", "x", "xx", "xxx", "xl") for ones in _ONES)

Value = tuple[int, ...]


@dataclass(slots=True)
class _Run:
    kind: str
    value: Value
    left: float
    items: list[tuple[Line, str]] = field(default_factory=list)
    apart: bool = False  # whether a label stands in a column of its own
    abrupt: int = 0  # items before which no text has ended


def find_labels(lines: Sequence[Line], mono: bool) -> dict[int, str]:
    """Id of each line that begins an item of such a list → its label. Lines whose label stands apart become one text, in place.

    `mono` says that the body is set in a monospaced type; else such lines are code.
    """
    out: dict[int, str] = {}
    open_runs: list[_Run] = []
    last: Line | None = None
    for line in lines:
        near = last is not None and line.region == last.region and 0 <= line.base - last.base <= _NEXT * line.size
        while open_runs and (not near or line.x0 < open_runs[-1].left - _EDGE):
            _close(open_runs.pop(), out)
        found = None if line.style & MONO and not mono else _label(line)
        if found is not None:
            _enter(line, found, last if near else None, open_runs, out)
        elif open_runs and (line.cells > 1 or line.x0 <= open_runs[-1].left + 0.5 * line.size):
            _close(open_runs.pop(), out)
        last = line
    while open_runs:
        _close(open_runs.pop(), out)
    return out


def _label(line: Line) -> tuple[str, Value, str] | None:
    """(kind, value, label)."""
    match = _LABEL.match(line.text) if line.cells < 3 else None
    if match is None:
        return None
    kind = match.lastgroup or ""
    shown = match[kind]
    apart = line.cells == 2
    if apart and (line.parts is None or line.text[match.end()] != "\t" or line.parts[2] - line.parts[1] > _COLUMN_GAP * line.size):
        return None
    if kind == "dash":
        return kind, (0,), match.group()
    if shown.isalpha():
        return kind, (ord(shown),), match.group()
    return kind, tuple(int(part) for part in shown.split(".")), match.group()


def _enter(line: Line, found: tuple[str, Value, str], above: Line | None, open_runs: list[_Run], out: dict[int, str]) -> None:
    """The line goes on with the innermost run or begins one."""
    kind, value, label = found
    apart = line.cells == 2
    run = open_runs[-1] if open_runs else None
    beside = run is not None and abs(line.x0 - run.left) <= _EDGE
    if run is None or not beside or kind != run.kind or not _follows(run.value, value):
        if beside:
            _close(open_runs.pop(), out)
        begins = apart or kind in _ANY_START or kind == "dash" or value[-1] in (1, ord("a"), ord("A"), ord("i"))
        if not begins or (apart and above is not None and above.cells > 1) or len(open_runs) == MAX_NESTED:
            return
        run = _Run(kind, value, line.x0)
        open_runs.append(run)
    run.value = value
    run.items.append((line, label))
    run.apart |= apart
    run.abrupt += above is not None and not _has_ended(above, line)


def _follows(before: Value, value: Value) -> bool:
    """Whether a label comes next: one more on its level, the first below it, or the next of a level above."""
    if before == (0,):
        return value == (0,)
    if len(value) > len(before):
        return value == (*before, 1)
    level = len(value) - 1
    if value[:level] == before[:level] and value[level] == before[level] + 1:
        return True
    above = level - 1
    return level > 0 and value[level] == 1 and value[:above] == before[:above] and value[above] == before[above] + 1


def is_next_label(before: str, label: str) -> bool:
    """Whether a label of a list comes right behind another in the same brackets: "1." and "2.", "(a)" and "(b)", "iii)" and "iv)"."""
    old, new = _INSIDE.search(before), _INSIDE.search(label)
    if old is None or new is None or before.replace(old.group(), "") != label.replace(new.group(), ""):
        return False
    one, two = old.group(), new.group()
    if one.isdigit() or two.isdigit():
        return one.isdigit() and two.isdigit() and int(two) == int(one) + 1
    if one in _ROMAN and two in _ROMAN and _ROMAN.index(two) == _ROMAN.index(one) + 1:
        return True
    return len(one) == len(two) == 1 and ord(two) == ord(one) + 1


def _has_ended(last: Line, line: Line) -> bool:
    """Whether the line above is the end of a text: by its last sign, the room it leaves, or the gap below it."""
    if last.text.endswith(ENDS) or line.base - last.base > 1.6 * line.size or abs(last.size - line.size) > 0.08 * line.size:
        return True
    return last.right - last.x1 > max(4 * line.size, 0.15 * (last.right - last.x0))


def _close(run: _Run, out: dict[int, str]) -> None:
    counted = len(run.items) > 2 and not run.apart
    if len(run.items) < 2 or (run.abrupt and not counted):
        return
    for line, label in run.items:
        out[id(line)] = label
        if line.cells == 2:
            line.text, line.cells, line.parts = line.text.replace("\t", " ", 1), 1, None
