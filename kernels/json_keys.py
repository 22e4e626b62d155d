"""JSON → the keys that stand twice in one object, of which most readers see the last alone.

Every piece is read as values anyway: what is lost on the way to them shows by the colons of their text, and only then the signs are walked
through. Keys are compared as written: `"a"` and `"\\u0061"` are two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from raydex.kernels.json_scan import CLOSE_LIST, CLOSE_OBJECT, COLON, OPEN_LIST, OPEN_OBJECT, Tape

_PIECE = 1 << 16
_ESCAPED_COLON = b"\\u003"


@dataclass(frozen=True, slots=True)
class Repeats:
    """`count` keys stand in their object already; the first of them is `key`, whose colon is byte `at`."""

    count: int
    key: str
    at: int


def may_repeat(source: bytes, value: Any) -> bool:
    """Whether keys may be lost between a text and its value: false only where none is."""
    try:
        shown = orjson.dumps(value)
    except orjson.JSONEncodeError:  # deeper than the writer follows
        return True
    return source.count(b":") != shown.count(b":") or _ESCAPED_COLON in source


def find_repeats(data: bytes, tape: Tape) -> Repeats | None:
    """`tape` is the scan of `data`."""
    count, first, place = 0, b"", 0
    inside: list[set[bytes]] = []  # keys of each container that is open
    before = -1
    for low in range(0, tape.at.size, _PIECE):
        for at, sign in zip(tape.at[low : low + _PIECE].tolist(), tape.sign[low : low + _PIECE].tolist(), strict=True):
            if sign in (OPEN_OBJECT, OPEN_LIST):
                inside.append(set())
            elif sign in (CLOSE_OBJECT, CLOSE_LIST):
                del inside[-1:]
            elif sign == COLON and inside:
                key = data[before + 1 : at].strip(b" \t\r\n")
                if key in inside[-1]:
                    first, place = (first, place) if count else (key, at)
                    count += 1
                inside[-1].add(key)
            before = at
    return Repeats(count, first.strip(b'"').decode(errors="replace"), place) if count else None
