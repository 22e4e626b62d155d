"""Log files → DocumentIR: a block an event, with time, level and service where light patterns see them (seed 3 §3.3; contracts 31).

Lines that carry no time of their own and are indented, or belong to a stack trace, are part of the event before them. The invariant: a
block's text is the slice at its locator, and all blocks together hold every line that is not blank.
"""

from __future__ import annotations

import re
from typing import Any

from raydex.ir.locator import split_lines
from raydex.ir.parsed import ParsedFile
from raydex.kernels.decode import decode
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.request import ParseRequest
from raydex.kernels.segment import decode_segment

PARSER_VERSION = "1"
_DATE = r"\d{4}[-/.]\d{2}[-/.]\d{2}"
_CLOCK = r"\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME = re.compile(
    rf"(?<![\w.])[\[(<]?(?P<time>{_DATE}[T ]{_CLOCK}(?:\s?(?:Z|UTC|[+-]\d{{2}}:?\d{{2}}))?|{_MONTH} +\d{{1,2}} {_CLOCK}"
    rf"|\d{{1,2}}/{_MONTH}/\d{{4}}:{_CLOCK}(?: [+-]\d{{4}})?|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} +\d{{1,2}} {_CLOCK}(?: \d{{4}})?"
    rf"|\d{{2}}[-/.]\d{{2}}[-/.]\d{{4}} {_CLOCK}|{_CLOCK}|1\d{{9}}(?:\.\d+)?)(?=[\])>\s|,]|$)"
)
_LEVEL = re.compile(
    r"(?<![A-Za-z])(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERR(?:OR)?|CRIT(?:ICAL)?|FATAL|ALERT|EMERG(?:ENCY)?|SEVERE)(?![A-Za-z])"
    r"|(?:(?<=level=)|(?<=\[))(trace|debug|info|notice|warn(?:ing)?|error|critical|fatal|alert|emerg)(?![A-Za-z])"
)
_SERVICE = re.compile(r"[\s\]|:-]*\[?([A-Za-z_][\w.$/@-]{1,80}?)(?:\[\d+\])?\]?(?:\s+-\s|:\s|\s*\|)")
_SYSLOG = re.compile(r"\s+\S+\s+([A-Za-z_][\w./-]*)(?:\[\d+\])?:")
_TRACE = re.compile(r"Traceback |Caused by: |\S*(?:Error|Exception)(?::|$)|During handling of|The above exception|\.\.\. \d+ more|at \S+\(")
# a level or a field at the very start begins an event too
_START = re.compile(rf"[\[(<]?(?:{_LEVEL.pattern})|[A-Za-z_][\w.]*=")
_LEVELS = {"WARN": "WARNING", "ERR": "ERROR", "CRIT": "CRITICAL", "EMERG": "EMERGENCY", "SEVERE": "ERROR"}
HEAD_CHARS = 240


def parse_log(request: ParseRequest) -> ParsedFile:
    """Raises InputError: unsupported_media_type for binary content, too_many_blocks."""
    decoded = decode(request.data) if request.segment is None else decode_segment(request.data, request.segment)
    drafts: list[Draft] = []
    at = 0
    timed = False
    for line in split_lines(decoded.text):
        end = at + len(line.rstrip("\r\n"))
        if line.strip():
            found = _find_time(line)
            if drafts and found is None and _goes_on(line, timed):
                drafts[-1].end = end
            else:
                drafts.append(Draft("paragraph", at, end, "", log_fields(line, found), section=[]))
                timed = found is not None
                check_count(drafts, request)
        at += len(line)
    for draft in drafts:
        draft.text = decoded.text[draft.start : draft.end]
    return finish(request, decoded, drafts, parser="log", parser_version=PARSER_VERSION)


def _find_time(line: str) -> re.Match[str] | None:
    return _TIME.match(line) or (_TIME.search(line[:HEAD_CHARS]) if line[0] not in " \t" else None)


def begins_event(line: str, timed: bool) -> tuple[bool, bool | None]:
    """(whether a line begins an event behind one that carries a time or not, whether it carries one itself where the line alone tells that
    it begins one)."""
    if not line.strip():
        return False, None
    if _find_time(line) is not None:
        return True, True
    if line[0] in " \t" or _TRACE.match(line):
        return False, None
    if _START.match(line):
        return True, False
    return not timed, None


def _goes_on(line: str, timed: bool) -> bool:
    """Whether a line without a time belongs to the event before it; among events without times only a trace or an indented line does."""
    if line[0] in " \t" or _TRACE.match(line):
        return True
    return timed and not _START.match(line)


def log_fields(line: str, time: re.Match[str] | None) -> dict[str, Any]:
    """timestamp, level and service of an event's first line, as far as they are seen; a level is one of the usual words in capitals."""
    out: dict[str, Any] = {}
    head = line[:HEAD_CHARS]
    after = 0
    if time is not None:
        out["timestamp"] = time["time"]
        after = time.end()
    level = _LEVEL.search(head)
    if level is not None:
        word = (level[1] or level[2]).upper()
        out["level"] = _LEVELS.get(word, word)
        service = _SERVICE.match(head, level.end())
    else:
        service = _SYSLOG.match(head, after) if time is not None else None
    if service is not None:
        out["service"] = service[1]
    return out
