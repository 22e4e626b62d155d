"""Log files → DocumentIR: a block an event, with time, level and service where light patterns see them (seed 3 §3.3; contracts 31).

A line that has the form of a record begins an event, whatever stands before it; lines that are indented or belong to a stack trace are part
of the event before them. A record that is whole in its line (of an access log, in JSON) takes no stack trace and no plain line. The
invariant: a block's text is the slice at its locator, and all blocks together hold every line that is not blank.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from raydex.ir.locator import split_lines
from raydex.ir.parsed import ParsedFile
from raydex.kernels.decode import decode
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.request import ParseRequest
from raydex.kernels.segment import decode_segment

PARSER_VERSION = "2"
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
_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = ("During handling of", "The above exception")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:: |:?\s*$)")  # the exception below a traceback, whatever its class is called
# a level or a field at the very start begins an event too, and the clock of a kernel or a garbage collector
_START = re.compile(rf"[\[(<]?(?:{_LEVEL.pattern})|[A-Za-z_][\w.]*=|\[ *\d+\.\d+s?\]")
_ACCESS = re.compile(rf"\S+ \S+ [^\[\]]{{1,80}}\[\d{{1,2}}/{_MONTH}/\d{{4}}:{_CLOCK}[^\]]{{0,8}}\]")
# an object is a record by its time or its level
_JSON_HEAD = 1_000
_JSON_TIME = re.compile(r'"(?:@?timestamp|time|ts|@t|datetime|asctime)"\s*:\s*(?:"([^"]{1,60})"|(\d[\d.]{0,30}))', re.IGNORECASE)
_JSON_LEVEL = re.compile(r'"(?:level|levelname|log\.level|severity|lvl|@l)"\s*:\s*(?:"([A-Za-z]{1,20})"|\d)', re.IGNORECASE)
_JSON_SERVICE = re.compile(r'"(?:service|logger|logger_name|component|app)"\s*:\s*"([^"\\]{1,80})"', re.IGNORECASE)
_LEVELS = {"WARN": "WARNING", "ERR": "ERROR", "CRIT": "CRITICAL", "EMERG": "EMERGENCY", "SEVERE": "ERROR"}
HEAD_CHARS = 240


def parse_log(request: ParseRequest) -> ParsedFile:
    """Raises InputError: unsupported_media_type for binary content, too_many_blocks."""
    decoded = decode(request.data) if request.segment is None else decode_segment(request.data, request.segment)
    drafts: list[Draft] = []
    at = 0
    events = Events()
    for line in split_lines(decoded.text):
        end = at + len(line.rstrip("\r\n"))
        if line.strip():
            form, found = line_form(line)
            if events.begins(form, line):
                about = _json_fields(line) if form is Form.JSON else log_fields(line, found)
                drafts.append(Draft("paragraph", at, end, "", about, section=[]))
                check_count(drafts, request)
            else:
                drafts[-1].end = end
        at += len(line)
    for draft in drafts:
        draft.text = decoded.text[draft.start : draft.end]
    return finish(request, decoded, drafts, parser="log", parser_version=PARSER_VERSION)


class Form(Enum):
    """What a line is by itself. The first four are the beginning of an event wherever they stand."""

    JSON = "json"
    ACCESS = "access"
    TIMED = "timed"
    MARKED = "marked"  # a level or a field, no time
    TRACEBACK = "traceback"
    INNER = "inner"  # indented, or of a stack trace
    PLAIN = "plain"


BEGINNINGS = frozenset((Form.JSON, Form.ACCESS, Form.TIMED, Form.MARKED))


def line_form(line: str) -> tuple[Form, re.Match[str] | None]:
    """(form, time) of a line that is not blank."""
    if line[0] == "{" and (_JSON_TIME.search(line, 0, _JSON_HEAD) or _JSON_LEVEL.search(line, 0, _JSON_HEAD)):
        return Form.JSON, None
    found = _find_time(line)
    if found is not None:
        return (Form.ACCESS if "/" in found["time"] and _ACCESS.match(line) else Form.TIMED), found
    if line.startswith(_TRACEBACK):
        return Form.TRACEBACK, None
    if line[0] in " \t" or _TRACE.match(line):
        return Form.INNER, None
    return (Form.MARKED if _START.match(line) else Form.PLAIN), None


class Events:
    """Which lines begin an event, line by line. After one of `BEGINNINGS` nothing before it matters."""

    def __init__(self) -> None:
        self._first: Form | None = None  # form of the line that the event under way began with
        self._traced = False  # a traceback is open: its exception is still to come
        self._chained = False  # the traceback that follows is of the same event

    def begins(self, form: Form, line: str) -> bool:
        """Whether the next line that is not blank begins an event."""
        if form is Form.PLAIN and self._traced and _RAISED.match(line):
            self._traced = False
            return False
        if form is not Form.INNER or line[0] not in " \t":
            self._traced = form is Form.TRACEBACK
        begins = form in BEGINNINGS or self._first is None or self._stands_alone(form)
        self._chained = form is Form.INNER and line.startswith(_CHAINED)
        if begins:
            self._first = form
        return begins

    def _stands_alone(self, form: Form) -> bool:
        if form is Form.TRACEBACK:
            return self._first in (Form.JSON, Form.ACCESS) or (self._first is Form.TRACEBACK and not self._chained)
        return form is Form.PLAIN and self._first is not Form.TIMED


def _find_time(line: str) -> re.Match[str] | None:
    return _TIME.match(line) or (_TIME.search(line[:HEAD_CHARS]) if line[0] not in " \t" else None)


def _json_fields(line: str) -> dict[str, Any]:
    """timestamp, level and service of a record that is an object."""
    out: dict[str, Any] = {}
    for name, pattern in (("timestamp", _JSON_TIME), ("level", _JSON_LEVEL), ("service", _JSON_SERVICE)):
        found = pattern.search(line, 0, _JSON_HEAD)
        value = next(filter(None, found.groups()), "") if found is not None else ""
        if value:
            out[name] = _LEVELS.get(value.upper(), value.upper()) if name == "level" else value
    return out


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
