"""Plain text → DocumentIR: paragraphs between blank lines, exactly as they stand; no headings are guessed.

The invariant: a paragraph's text is the slice of the decoded text at its locator (a NUL shows as U+FFFD), and all paragraphs together
hold every character that is not white space, in order.
"""

from __future__ import annotations

import re

from raydex.ir.parsed import ParsedFile
from raydex.kernels.decode import decode
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "3"
# a line end (possessive: the \n of an \r\n ends no line of its own), then at least one line of nothing but white space
_END = r"[\r\n](?:(?<=\r)\n)?+"
_EMPTY = rf"(?:[^\S\r\n]*+{_END})++"
_BLANK = re.compile(rf"{_END}{_EMPTY}(?:[^\S\r\n]*+\Z)?+|\A{_EMPTY}|{_END}\s*+\Z")


def parse_text(request: ParseRequest) -> ParsedFile:
    """Raises InputError: unsupported_media_type for binary content, too_many_blocks."""
    decoded = decode(request.data)
    text = decoded.text
    drafts: list[Draft] = []
    at = 0
    for gap in _BLANK.finditer(text):
        if gap.start() > at:
            drafts.append(Draft("paragraph", at, gap.start(), text[at : gap.start()]))
            check_count(drafts, request)
        at = gap.end()
    if at < len(text):
        drafts.append(Draft("paragraph", at, len(text), text[at:]))
    return finish(request, decoded, drafts, parser="text", parser_version=PARSER_VERSION)
