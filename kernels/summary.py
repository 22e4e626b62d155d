"""Text or a comment → its summary: the first sentences, without a model (seed 3 §5.8).

The invariant: a summary is text of the source in its order, white space collapsed; nothing is made up.
"""

from __future__ import annotations

import re
from itertools import islice

from raydex.kernels.split import iterate_sentences

SUMMARY_CHARS = 500

# what opens a line of a comment; matched at line starts only, and possessive, so that a long run of signs is read once
_COMMENT_SIGN = re.compile(r"[ \t]*+(?:/\*++/?|\*++/|\*|//[/!]?|#++!?|--+)?[ \t]?")


def derive_summary(text: str, sentences: int = 2) -> str:
    """The first `sentences` sentences, which end in 。 or a full stop or at a blank line; at most 500 characters, cut between words.

    Abbreviations, decimals, versions and ellipses end no sentence. Empty for empty text.
    """
    head = text[: SUMMARY_CHARS * 4].lstrip()
    ends = islice(iterate_sentences(head, marks=".。"), max(0, sentences - 1), None)
    head = head[: next(ends, len(head))] if sentences > 0 else ""
    plain = " ".join(head.split())
    if len(plain) <= SUMMARY_CHARS:
        return plain
    cut = plain.rfind(" ", SUMMARY_CHARS // 2, SUMMARY_CHARS)
    return plain[: cut if cut > 0 else SUMMARY_CHARS - 1].rstrip() + "…"


def strip_comment(text: str) -> str:
    """A comment's words: its marks (`/* */`, `//`, `#`, `--`, leading stars) are taken off every line."""
    return "\n".join(_bare(line) for line in text.split("\n")).strip()


def _bare(line: str) -> str:
    sign = _COMMENT_SIGN.match(line)
    words = line[sign.end() :] if sign else line
    shown = words.rstrip(" \t\r")
    return shown.removesuffix("*/").rstrip("*").rstrip(" \t") if shown.endswith("*/") else words
