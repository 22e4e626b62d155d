"""Text → cut points under a token limit: sentences, lines, paragraphs first, words where those are too long, tokens inside a word last.

The invariant: the pieces tile the text (nothing lost, nothing doubled), each holds at most the limit of tokens and of characters, and
no cut falls inside a code point. Long texts are worked through in windows, so memory does not grow with the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from raydex.kernels.tokens import Tokenizer

WINDOW_CHARS = 65_536

Level = Callable[[str], list[int]]


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of code points of one text and its tokens (without special tokens)."""

    start: int
    end: int
    tokens: int


# The leading set lets the search skip; what ends a sentence behind each mark follows. Possessive, and only from the head of a run of
# marks: what begins inside one would read the rest of it again from every mark.
_STOP = re.compile(
    r"""[.!?。！？\n](?:(?<=[.!?])(?<![.!?]{2})[.!?]*+["'”’)\]]*+(?=\s|$)|(?<=[。！？])[。！？]*+["'”’」』）)]*+|(?<=\n)[ \t\r]*+\n\s*+)"""
)
_LINE = re.compile(r"\r\n|\n|\r")
# possessive: the \n of an \r\n is no line of its own; it begins with a set, as above
_PARAGRAPH = re.compile(r"[\r\n](?:(?<=\r)\n)?+(?:[ \t]*+[\r\n](?:(?<=\r)\n)?+)++")
_GAP = re.compile(r"\s*")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+\Z")
_NUMBER = re.compile(r"[0-9]{1,3}\.\Z")
# A name or a clause follows these; a number follows those of the second set.
_ABBREVIATION = re.compile("al|approx|capt|cf|dr|excl|gen|gov|incl|jr|mr|mrs|ms|prof|rep|resp|rev|sen|sgt|sr|st|viz|vs")
_NUMBERED = re.compile(
    "apr|arts?|ca|chap|ch|cl|dec|eqs?|est|feb|figs?|jan|jul|jun|mar|nos?|nov|oct|para?|pp?|refs?|rel|secs?|sept?|tab|ver|vol"
)


def sentence_ends(text: str, marks: str = ".!?。！？") -> list[int]:
    """Offsets at which a sentence has ended, white space behind it included. A blank line ends one too.

    A full stop ends none after an abbreviation or initial, inside a number, version or name (`3.14`, `v1.2`, `a.py`), in an ellipsis,
    after a list number at the start of a line, or before a small letter.
    """
    return list(iterate_sentences(text, marks))


def iterate_sentences(text: str, marks: str = ".!?。！？") -> Iterator[int]:
    """The offsets of `sentence_ends`, one after the other."""
    for match in _STOP.finditer(text):
        mark = text[match.start()]
        end = match.end()
        if mark == "\n":
            if end < len(text):
                yield end
        elif mark in marks and (mark != "." or _full_stop_ends(text, match)):
            gap = _GAP.match(text, end)
            yield gap.end() if gap else end


def _full_stop_ends(text: str, match: re.Match[str]) -> bool:
    mark = match.group()
    after = match.end()
    if mark.startswith(".."):
        return False
    if mark.startswith((".!", ".?")):
        return True
    gap = _GAP.match(text, after)
    following = text[gap.end() : gap.end() + 1] if gap else ""
    if following.islower():
        return False
    if not following:
        return True
    start = match.start()
    words = text[max(0, start - 24) : start].split()
    word = (words[-1].lstrip("([\"'“‘") if words else "") + "."
    plain = word[:-1].lower()
    if _ABBREVIATION.fullmatch(plain) or _DOTTED.match(word) or (following.isdigit() and _NUMBERED.fullmatch(plain)):
        return False
    if _NUMBER.match(word):
        before = text[max(0, start - 24) : start + 1 - len(word)]
        return bool(before.strip(" \t")) and before.rstrip(" \t")[-1] not in "\n\r"
    return True


def line_ends(text: str) -> list[int]:
    return [match.end() for match in _LINE.finditer(text)]


def count_line_ends(text: str, start: int, end: int) -> int:
    r"""Line ends in a range: \n, \r\n (whose \r alone at the range's end does not count) or \r."""
    count = text.count("\n", start, end)
    if "\r" in text:
        count += text.count("\r", start, end) - text.count("\r\n", start, end) - (text[end - 1 : end + 1] == "\r\n" and end > start)
    return count


def paragraph_ends(text: str) -> list[int]:
    """Behind blank lines: at the start of the next line, its indentation included."""
    return [match.end() for match in _PARAGRAPH.finditer(text)]


def split(
    text: str,
    limit: int,
    tokenizer: Tokenizer,
    levels: Sequence[Level] = (sentence_ends,),
    *,
    max_chars: int = 16_000,
    first: int | None = None,
    least: int = 0,
) -> list[Piece]:
    """Pieces of at most `limit` tokens (and `max_chars` characters) that tile `text`.

    A piece ends at the last bound of the first level that fills at least half of it, else at the last bound of any level, else
    between words; only a word over the limit is cut inside. `first` is a smaller limit for the first piece, taken when a bound of a
    level lies in it: else the first piece is empty (start = end = 0). A last piece below `least` tokens takes from the one before.
    """
    pieces: list[Piece] = []
    at = 0
    if first is not None:
        head = _first_piece(text[:WINDOW_CHARS], first, tokenizer, levels, max_chars)
        pieces.append(head)
        at = head.end
    while at < len(text):
        window = text[at : at + WINDOW_CHARS]
        cuts = _split_window(window, at + WINDOW_CHARS >= len(text), limit, tokenizer, levels, max_chars)
        pieces.extend(Piece(at + cut.start, at + cut.end, cut.tokens) for cut in cuts)
        at += cuts[-1].end
    if len(pieces) > 1 and pieces[-1].tokens < least and pieces[-2].end > pieces[-2].start:
        _even_out(text, pieces, tokenizer, levels, max_chars, least)
    return pieces


def overlaps(text: str, pieces: Sequence[Piece], overlap: int, tokenizer: Tokenizer) -> list[tuple[int, int]]:
    """For each piece the characters and tokens before its start that it shows again: whole units, at most `overlap` tokens.

    Never the whole piece before, so that shown ranges begin one behind the other.
    """
    found = [(0, 0)] if pieces else []
    for before, piece in pairwise(pieces):
        low = max(before.start, piece.start - 16 * overlap)
        starts, counts = tokenizer.measure(text[low : piece.start])
        chars = tokens = 0
        for start, count in zip(reversed(starts), reversed(counts)):
            if tokens + count > overlap or start == 0:
                break
            tokens += count
            chars = piece.start - low - start
        more = tokenizer.count(text[piece.start - chars : piece.end]) - piece.tokens if chars else 0
        found.append((chars, more) if more <= overlap else (0, 0))
    return found


def _even_out(text: str, pieces: list[Piece], tokenizer: Tokenizer, levels: Sequence[Level], max_chars: int, least: int) -> None:
    start = pieces[-2].start
    half = (pieces[-2].tokens + pieces[-1].tokens) // 2 + 1
    if half < least:
        return
    again = split(text[start:], half + half // 4, tokenizer, levels, max_chars=max_chars)
    if len(again) == 2 and again[1].tokens >= least:
        pieces[-2:] = [Piece(start + piece.start, start + piece.end, piece.tokens) for piece in again]


def _first_piece(window: str, limit: int, tokenizer: Tokenizer, levels: Sequence[Level], max_chars: int) -> Piece:
    if limit > 0:
        starts, counts = tokenizer.measure(window[:max_chars])
        sums = list(accumulate(counts, initial=0))
        reach = bisect_right(sums, limit) - 1
        stop = starts[reach] if reach < len(starts) else min(len(window), max_chars)
        for level in levels:
            bounds = _between_units(level(window[:max_chars]), window, starts)
            k = bisect_right(bounds, stop) - 1
            if k >= 0 and bounds[k] > 0:
                return Piece(0, bounds[k], sums[bisect_left(starts, bounds[k])])
    return Piece(0, 0, 0)


def _split_window(window: str, final: bool, limit: int, tokenizer: Tokenizer, levels: Sequence[Level], max_chars: int) -> list[Piece]:
    """Pieces from the window's start on; all of it when `final`, else as far as a piece is sure to be full."""
    starts, counts = tokenizer.measure(window)
    sums = list(accumulate(counts, initial=0))
    bounds = [_between_units(level(window), window, starts) for level in levels]
    size, units = len(window), len(starts)
    pieces: list[Piece] = []
    at, unit = 0, 0  # character offset, and index of the first unit at or behind it
    while at < size:
        hard_stop = at + max_chars
        begin = starts[unit] if unit < units else size
        reach = bisect_right(sums, sums[unit] + limit, lo=unit) - 1
        if reach == units and size <= hard_stop:
            if final or not pieces:
                pieces.append(Piece(at, size, sums[units] - sums[unit]))
            break
        if begin >= hard_stop:
            pieces.append(Piece(at, hard_stop, 0))
            at = hard_stop
            continue
        stop = min(starts[reach] if reach < units else size, hard_stop)
        end = _best_bound(bounds, begin, stop) if reach > unit else 0
        if end <= begin and reach > unit:
            end = starts[bisect_right(starts, stop) - 1]
        if end <= begin:
            unit_end = starts[unit + 1] if unit + 1 < units else size
            inner = _split_unit(window[at:unit_end], limit, tokenizer, max_chars)
            cut_short = unit_end == size and not final and len(inner) > 1
            pieces.extend(Piece(at + p.start, at + p.end, p.tokens) for p in (inner[:-1] if cut_short else inner))
            if cut_short:
                break
            at, unit = unit_end, unit + 1
            continue
        behind = bisect_left(starts, end, lo=unit)
        pieces.append(Piece(at, end, sums[behind] - sums[unit]))
        at, unit = end, behind
    return pieces


def _between_units(offsets: list[int], window: str, starts: list[int]) -> list[int]:
    known: set[int] | None = None
    kept: list[int] = []
    for offset in offsets:
        if window[offset - 1] not in " \t\r\n" and offset < len(window):
            known = known or set(starts)
            if offset not in known:
                continue
        kept.append(offset)
    return kept


def _best_bound(bounds: list[list[int]], begin: int, stop: int) -> int:
    for least in (0.5, 0.0):
        for offsets in bounds:
            k = bisect_right(offsets, stop) - 1
            if k >= 0 and offsets[k] > begin and offsets[k] - begin >= least * (stop - begin):
                return offsets[k]
    return begin


def _split_unit(text: str, limit: int, tokenizer: Tokenizer, max_chars: int) -> list[Piece]:
    """One word over a limit: cut beside the marks inside it, where the tokenizer keeps those apart; a part over the limit at tokens."""
    starts, counts = tokenizer.measure(text, inside_words=True)
    starts[0] = 0
    starts.append(len(text))
    sums = list(accumulate(counts, initial=0))
    pieces: list[Piece] = []
    part, parts = 0, len(counts)
    while part < parts:
        at = starts[part]
        reach = min(bisect_right(sums, sums[part] + limit, lo=part), bisect_right(starts, at + max_chars)) - 1
        if reach > part:
            pieces.append(Piece(at, starts[reach], sums[reach] - sums[part]))
            part = reach
            continue
        inner = _split_part(text[at : starts[part + 1]], limit, tokenizer, max_chars)
        pieces.extend(Piece(at + piece.start, at + piece.end, piece.tokens) for piece in inner)
        part += 1
    return pieces


def _split_part(text: str, limit: int, tokenizer: Tokenizer, max_chars: int) -> list[Piece]:
    """Cut at token ends; at characters where even a token is too long (a run that the tokenizer does not know is one token)."""
    ends = sorted({end for _, end in tokenizer.offsets(text) if end > 0})
    core = len(text.rstrip())
    pieces: list[Piece] = []
    at = 0
    while at < len(text):
        low = bisect_right(ends, at)
        high = min(bisect_right(ends, at + max_chars), low + limit)
        reach = max_chars
        while True:
            end = ends[high - 1] if high > low else min(len(text), at + reach)
            tokens = tokenizer.count(text[at:end])
            if tokens <= limit or end - at <= 1:
                break
            if high > low:
                high = low + (high - low) // 2 if high - low > 8 else high - 1
            else:
                reach = (end - at) // 2
        if end >= core and len(text) - at <= max_chars:
            end = len(text)
        pieces.append(Piece(at, end, tokens))
        at = end
    return pieces
