"""Lines of a paragraph → one text: hyphenated words joined, ligatures spelled out, soft hyphens gone.

The invariant: `raw` joins the lines as printed by line feeds, so that what normalisation changed can be had back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_LIGATURES = str.maketrans(
    {
        "\ufb00": "ff",
        "\ufb01": "fi",
        "\ufb02": "fl",
        "\ufb03": "ffi",
        "\ufb04": "ffl",
        "\ufb05": "st",
        "\ufb06": "st",
        "\u00ad": None,
        "\u00a0": " ",
        "\u2002": " ",
        "\u2003": " ",
        "\u2009": " ",
        "\u202f": " ",
        "\ufeff": None,
        "\ufffe": None,
        "\x00": None,
    }
)
_SPECIAL = re.compile("[\ufb00-\ufb06\u00ad\u00a0\u2002\u2003\u2009\u202f\ufeff\ufffe\x00]")
_HYPHENS = "-\u2010\u00ad"
# first halves that stay hyphenated when the document itself does not tell
_COMPOUND_STARTS = frozenset(
    {"all", "close", "cross", "double", "end", "five", "four", "full", "half", "hand", "hard", "high", "left", "long", "low", "multi"}
    | {"non", "one", "open", "part", "real", "right", "self", "semi", "short", "single", "soft", "state", "ten", "third", "three"}
    | {"time", "two", "user", "well", "world"}
)
# from the start of a run of letters only, so that a long one is read once
_COMPOUND = re.compile(r"(?<![^\W\d_])[^\W\d_]{2,}+-[^\W\d_]{2,}+")
_WORD = re.compile(r"[^\W\d_]{3,}")


class Vocabulary:
    """Words and hyphenated compounds that a document uses inside its lines; made when the first broken word asks for it."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self._words: set[str] | None = None
        self._compounds: set[str] = set()

    def keeps_hyphen(self, left: str, right: str) -> bool:
        """Whether a word broken after `left-` is a compound rather than one word."""
        if self._words is None:
            self._words = set()
            for line in self._lines:
                lower = line.lower()
                self._words.update(_WORD.findall(lower))
                if "-" in lower:
                    self._compounds.update(_COMPOUND.findall(lower))
        left, right = left.lower(), right.lower()
        if left + right in self._words:
            return False
        return f"{left}-{right}" in self._compounds or left in _COMPOUND_STARTS


def plain(text: str) -> str:
    """One line with ligatures spelled out and invisible characters gone."""
    if (text.isascii() and "\x00" not in text) or not _SPECIAL.search(text):
        return text
    return text.translate(_LIGATURES)


def join_lines(lines: list[str], breaks: list[bool] | None, vocabulary: Vocabulary) -> tuple[str, str]:
    """(text, raw or "" where the text differs from it only in line ends).

    `breaks[i]` keeps the line end before line i (a deliberate one). A line end between two CJK characters becomes nothing.
    """
    if len(lines) == 1:
        text = plain(lines[0])
        return text, lines[0] if text != lines[0] else ""
    out = lines[0]
    changed = False
    for at in range(1, len(lines)):
        line = lines[at]
        if breaks is not None and breaks[at]:
            out += "\n" + line
            continue
        end, start = out[-1:], line[:1]
        if end in _HYPHENS and out[-2:-1].isalnum():
            if end == "\u00ad" or (out[-2].isalpha() and start.islower() and not _stays(out, line, vocabulary)):
                out = out[:-1] + line
                changed = True
            else:
                out += line
                changed |= not start.isalnum()
        elif end >= "\u2e80" and start >= "\u2e80" and not _is_hangul(end):
            out += line
        else:
            out += " " + line
    text = plain(out)
    return text, "\n".join(lines) if changed or text != out else ""


def _stays(left: str, right: str, vocabulary: Vocabulary) -> bool:
    head = re.search(r"[^\W\d_]+(?=.$)", left[-40:])
    tail = re.match(r"[^\W\d_]+", right)
    return head is not None and tail is not None and vocabulary.keeps_hyphen(head.group(), tail.group())


def _is_hangul(char: str) -> bool:
    return "\uac00" <= char <= "\ud7af" or "\u1100" <= char <= "\u11ff"
