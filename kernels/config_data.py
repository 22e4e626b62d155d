"""TOML, INI, properties and .env files → DocumentIR: a block a section, as written; what stands before the first section has its own.

Sections are found by their header lines; strings of several lines are stepped over. The invariant: the blocks hold every line that says
something, a block's text is the slice at its locator, and its pointer is the section's dotted name as steps.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator

from raydex.ir.parsed import ParsedFile
from raydex.kernels.datum import PIECE, escape
from raydex.kernels.decode import decode
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "1"
_TOML_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_TOML = re.compile(
    rf"""(?P<text>\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*)"""
    rf"""|^[ \t]*(?P<head>\[\[?)[ \t]*(?P<name>{_TOML_PART}(?:[ \t]*\.[ \t]*{_TOML_PART})*)[ \t]*\]\]?[ \t]*(?=\#|\r?$)""",
    re.DOTALL | re.MULTILINE,
)
_PART = re.compile(_TOML_PART)
_INI = re.compile(r"^[ \t]*\[(?P<name>[^\]\r\n]+)\][ \t]*(?=[;#\r\n]|\Z)", re.MULTILINE)
_BLANK = re.compile(r"(?:\r\n|\r|\n)(?:[ \t]*(?:\r\n|\r|\n))+")

Section = tuple[int, list[str]]  # start, steps of its name


def parse_toml(request: ParseRequest) -> ParsedFile:
    """Raises InputError: unsupported_media_type, too_many_blocks. A file that is no TOML keeps its text and says where it fails."""
    decoded = decode(request.data)
    message = ""
    try:
        tomllib.loads(decoded.text.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        message = "nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
    parsed = _parse(request, "toml", toml_sections(decoded.text), ("broken_values",) if message else ())
    if message:
        parsed.add_event("parse", "error", "parse_error", message)
    return parsed


def parse_ini(request: ParseRequest) -> ParsedFile:
    """Raises InputError: unsupported_media_type, too_many_blocks."""
    text = decode(request.data).text
    return _parse(request, "ini", [(found.start(), [found["name"].strip()]) for found in _INI.finditer(text)], ())


def toml_sections(text: str) -> list[Section]:
    """Tables in order; the elements of an array of tables are numbered."""
    counts: Counter[str] = Counter()
    out: list[Section] = []
    for found in _TOML.finditer(text):
        if found["head"] is None:
            continue
        steps = [part.strip("\"'") for part in _PART.findall(found["name"])]
        if found["head"] == "[[":
            key = found["name"]
            steps.append(str(counts[key]))
            counts[key] += 1
        out.append((found.start(), steps))
    return out


def _parse(request: ParseRequest, language: str, sections: list[Section], warnings: tuple[str, ...]) -> ParsedFile:
    decoded = decode(request.data)
    text = decoded.text
    drafts: list[Draft] = []
    bounds: list[Section] = [(0, []), *sections]
    for at, (start, steps) in enumerate(bounds):
        end = bounds[at + 1][0] if at + 1 < len(bounds) else len(text)
        for low, high in pieces(text, start, end):
            pointer = "".join(f"/{escape(step)}" for step in steps)
            about = {"language": language}
            drafts.append(Draft("code", low, high, text[low:high], about, place={"pointer": pointer}, section=list(steps)))
            check_count(drafts, request)
    return finish(request, decoded, drafts, parser=language, parser_version=PARSER_VERSION, warnings=warnings)


def pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A section without the white space around it; one above `PIECE` in runs of its paragraphs."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if end - start > PIECE:
        cut = start
        for gap in _BLANK.finditer(text, start, end):
            if gap.start() - start > PIECE and cut > start:
                yield from pieces(text, start, cut)
                start = cut
            cut = gap.end()
        if cut > start and end - start > PIECE:
            yield from _whole(text, start, cut)
            start = cut
    yield from _whole(text, start, end)


def _whole(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    kept = text[start:end].rstrip()
    if kept:
        yield start, start + len(kept)
