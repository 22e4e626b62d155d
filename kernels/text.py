"""Plain text → DocumentIR: paragraphs between blank lines, exactly as they stand, and headings that are underlined; none is guessed.

The invariant: a block's text is the slice of the decoded text at its locator (a NUL shows as U+FFFD), and all blocks together hold every
character that is neither white space nor of a heading's lines, in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from raydex.ir.parsed import ParsedFile
from raydex.kernels.decode import decode
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "4"
# a line end (possessive: the \n of an \r\n ends no line of its own), then at least one line of nothing but white space
_END = r"[\r\n](?:(?<=\r)\n)?+"
_EMPTY = rf"(?:[^\S\r\n]*+{_END})++"
_BLANK = re.compile(rf"{_END}{_EMPTY}(?:[^\S\r\n]*+\Z)?+|\A{_EMPTY}|{_END}\s*+\Z")
# the first line of a paragraph and the line under it, or between two
_LINE = r"([=~^-])\{0}{{2,}}+"
_SPACE = r"[ \t]*+"
_HEADING = re.compile(
    rf"(?:(?P<over>{_LINE.format(2)}){_SPACE}{_END}{_SPACE})?(?P<title>\S[^\r\n]{{0,120}}){_END}(?P<under>{_LINE.format(5)}){_SPACE}(?:{_END}|\Z)"
)
_COLUMNS = re.compile(r"\s\s|[\t|]")
_LEVELS = 6


def parse_text(request: ParseRequest) -> ParsedFile:
    """Raises InputError: unsupported_media_type for binary content, too_many_blocks."""
    decoded = decode(request.data)
    text = decoded.text
    drafts: list[Draft] = []
    styles: list[tuple[str, bool]] = []
    for start, end in _pieces(text):
        heading = _heading(text, start, end, styles)
        if heading is not None:
            draft, start = heading
            drafts.append(draft)
        if start < end:
            drafts.append(Draft("paragraph", start, end, text[start:end]))
        check_count(drafts, request)
    return finish(request, decoded, drafts, parser="text", parser_version=PARSER_VERSION)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """What stands between blank lines."""
    at = 0
    for gap in _BLANK.finditer(text):
        if gap.start() > at:
            yield at, gap.start()
        at = gap.end()
    if at < len(text):
        yield at, len(text)


def _heading(text: str, start: int, end: int, styles: list[tuple[str, bool]]) -> tuple[Draft, int] | None:
    """The heading that a piece begins with, and where the rest begins. As in reStructuredText, the first style of lines that a text shows
    is that of level 1, the next one of level 2."""
    found = _HEADING.match(text, start, end)
    if found is None:
        return None
    title, under, over = found["title"].rstrip(), found["under"], found["over"]
    wide = len(title) if title.isascii() else 2 * len(title)  # wide characters take the room of two
    fits = len(title) - 2 <= len(under) <= wide + 2
    if not fits or (over is not None and over != under) or _COLUMNS.search(title) or not any(map(str.isalpha, title)):
        return None
    style = (under[0], over is not None)
    if style not in styles:
        styles.append(style)
    level = min(styles.index(style) + 1, _LEVELS)
    at = found.start("title")
    return Draft("heading", at, at + len(title), title, {"level": level}), found.end()
