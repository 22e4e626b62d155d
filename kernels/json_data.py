"""JSON and JSON Lines → DocumentIR: blocks are pieces of the source as written, cut where the structure allows (seed 3 §3).

Every element of the outermost list and every object or list below the outermost object is a block of its own; neighbouring scalars of an
object share one; what is larger than `PIECE` is opened in turn. The invariant: a block's text is the slice of the decoded text at its
locator, its pointer (RFC 6901) names the value, or the container of the run that it holds, and all keys and values are in some block:
numbers keep their digits, equal keys of one object stand side by side and are said. What is not JSON is kept, marked and reported, and
costs nothing else.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import orjson

from raydex.ir.errors import LimitError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.decode import Decoded, decode
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.json_keys import find_repeats, may_repeat
from raydex.kernels.json_scan import CLOSE_LIST, CLOSE_OBJECT, COLON, COMMA, OPEN_LIST, OPEN_OBJECT, CharIndex, Tape, scan
from raydex.kernels.request import ParseRequest
from raydex.kernels.segment import decode_segment

PARSER_VERSION = "2"
PIECE = 4_000  # bytes of one block, where structure allows
# a container with more children shares blocks between them: a block each would be a block a row of a table
MANY = 10_000
MAX_MESSAGES = 20
_TOO_LARGE = "number is infinity"  # what the checker says of digits that no float holds: they are kept as written
_SPACE = b" \t\r\n"
_OPEN = (OPEN_OBJECT, OPEN_LIST)
_STRING = rb'"(?:[^"\\\r\n]|\\.)*+"'
_COMMENT = re.compile(_STRING + rb"|//[^\r\n]*+|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rb"(" + _STRING + rb")|(,)(\s*+[}\]])", re.DOTALL)


def parse_json(request: ParseRequest) -> ParsedFile:
    """Comments and commas before a closing bracket, as configuration files have them, are no faults.

    Raises InputError: unsupported_media_type, too_deep, too_many_blocks.
    """
    decoded = decode(request.data)
    data = decoded.text.encode()
    split = JsonSplit(data, request)
    split.whole(0, len(data), "", [])
    if split.messages and (plain := without_comments(data)) != data:
        again = JsonSplit(plain, request, shown=data)
        again.whole(0, len(data), "", [])
        split = again if len(again.messages) < len(split.messages) or not again.messages else split
    return _finish(request, decoded, split, "json")


def without_comments(data: bytes) -> bytes:
    """The same bytes with spaces for comments and for commas before a closing bracket; nothing moves."""

    def blank(found: re.Match[bytes]) -> bytes:
        source = found.group()
        if source.startswith(b"/"):
            return re.sub(rb"[^\r\n]", b" ", source)
        return source

    return _LAST_COMMA.sub(lambda found: found.group(1) or b" " + found.group(3), _COMMENT.sub(blank, data))


def parse_jsonl(request: ParseRequest) -> ParsedFile:
    """A record a line; pointers begin with its number, from 0, among the lines that are not blank. Of more than `MANY` neighbours share
    blocks, whose `row` is the number of their first record, from 1."""
    segment = request.segment
    decoded = decode(request.data) if segment is None else decode_segment(request.data, segment)
    data = decoded.text.encode()
    split = JsonSplit(data, request)
    at, count = 0, segment.row if segment is not None else 0
    shared = segment is not None or data.count(b"\n") > MANY
    run: list[tuple[int, int]] = []
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        if shared and run and end - run[0][0] > PIECE:
            split.records(run, count - len(run))
            run = []
        if data[at:end].strip():
            if shared:
                run.append((at, end))
            else:
                split.record(at, end, count)
            count += 1
        at = end + 1
    split.records(run, count - len(run))
    return _finish(request, decoded, split, "jsonl")


def _finish(request: ParseRequest, decoded: Decoded, split: JsonSplit, parser: str) -> ParsedFile:
    repeats = split.repeated_keys()
    warnings = (*(("broken_values",) if split.messages else ()), *(("duplicate_keys",) if repeats else ()))
    parsed = finish(request, decoded, split.drafts, parser=parser, parser_version=PARSER_VERSION, warnings=warnings)
    if repeats:
        parsed.add_event("parse", "warning", "duplicate_keys", repeats)
    for message in split.messages:
        parsed.add_event("parse", "error", "parse_error", message)
    return parsed


class JsonSplit:
    """Drafts of one text, in order. `broken` are the places of the blocks that are no JSON."""

    def __init__(self, data: bytes, request: ParseRequest, shown: bytes | None = None) -> None:
        """`shown` is what blocks quote, where `data` is it without comments."""
        self.data = data
        self.shown = data if shown is None else shown
        self.request = request
        self.drafts: list[Draft] = []
        self.broken: list[tuple[int, int]] = []
        self.messages: list[str] = []
        self.may_repeat = False  # keys of one object
        self._chars = CharIndex(data)
        self._tape = Tape(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.int32), 0, False)
        self._base = 0

    def whole(self, start: int, end: int, pointer: str, section: list[str]) -> None:
        """A document of its own; its outermost container is always opened."""
        start, end = self._trim(start, end)
        if end <= start:
            return
        self._base = start
        self._tape = tape = scan(self.data[start:end])
        if tape.level.size and int(tape.level.max()) >= self.request.limits.depth:
            raise LimitError(f"nested deeper than limits.depth ({self.request.limits.depth})", reject_class="too_deep")
        if self.data[start] in _OPEN and not self._closed(0, tape.at.size):
            self._fault(start, "a bracket is never closed" if not tape.in_string else "a string is never closed")
        if self.data[start] in _OPEN:
            self._open(0, tape.at.size, start, end, pointer, section)
        else:
            self._emit(start, end, pointer, section, listed=True)

    def record(self, start: int, end: int, number: int) -> None:
        """One line of JSON Lines."""
        start, end = self._trim(start, end)
        pointer, section = f"/{number}", [f"[{number}]"]
        if end - start <= PIECE:
            self._emit(start, end, pointer, section, listed=True)
        else:
            self.whole(start, end, pointer, section)

    def records(self, lines: list[tuple[int, int]], number: int) -> None:
        """Neighbouring lines as one block; each its own where one of them is no JSON. `number` is that of the first, from 0."""
        if len(lines) > 1 and self._reads(b"[%b]" % b",".join([self.data[start:end] for start, end in lines])) is None:
            self._block(*self._trim(lines[0][0], lines[-1][1]), {"pointer": "", "row": number + 1}, [], {"language": "json"})
            return
        for at, (start, end) in enumerate(lines, number):
            self.record(start, end, at)

    def repeated_keys(self) -> str:
        """What to say of keys that stand twice in one object; empty for none. What is no JSON has no keys, and takes none from what stands
        behind it."""
        if not self.may_repeat:
            return ""
        data = self.data
        if self.broken:
            blank = bytearray(data)
            for start, end in self.broken:
                blank[start:end] = b" " * (end - start)
            data = bytes(blank)
        found = find_repeats(data, scan(data))
        if found is None:
            return ""
        return f"{found.count} keys stand more than once in their object; the first is {found.key[:80]!r} on line {self._line(found.at)}"

    def _line(self, at: int) -> int:
        before = self.request.segment.place.line if self.request.segment is not None else 0
        return self.data.count(b"\n", 0, at) + 1 + before

    def _closed(self, low: int, high: int) -> bool:
        """Whether signs `low` to `high` are one container: its bracket, what is inside, and the bracket that fits."""
        tape = self._tape
        if high - low < 2 or tape.level[low] != tape.level[high - 1]:
            return False
        return (int(tape.sign[low]), int(tape.sign[high - 1])) in ((OPEN_OBJECT, CLOSE_OBJECT), (OPEN_LIST, CLOSE_LIST))

    def _open(self, low: int, high: int, start: int, end: int, pointer: str, section: list[str]) -> None:
        """The children of the container at signs `low` to `high`, bytes `start` to `end`, and what stands behind it. One that is not closed
        reaches to the end."""
        tape = self._tape
        is_list = int(tape.sign[low]) == OPEN_LIST
        inner_high = high - 1 if self._closed(low, high) else high
        inner = slice(low + 1, inner_high)
        direct = (tape.level[inner] == tape.level[low] + 1) & ((tape.sign[inner] == COMMA) | (tape.sign[inner] == COLON))
        marks = low + 1 + np.flatnonzero(direct)
        commas = marks[tape.sign[marks] == COMMA]
        if not is_list:
            colons = marks[tape.sign[marks] == COLON]
            first_colon = np.searchsorted(colons, np.concatenate(([low], commas)))
        close = int(tape.at[high - 1]) + self._base if inner_high < high else end
        behind, end = self._trim(close + 1, end), min(close + 1, end)
        edges = [*(int(tape.at[k]) + self._base for k in commas), close]
        bounds = [*(int(k) for k in commas), inner_high]
        shared = len(edges) > MANY
        run: tuple[int, int] | None = None
        names: set[str] = set()
        sign, at = low, start
        for number, (next_sign, stop) in enumerate(zip(bounds, edges, strict=True)):
            left, right = self._trim(at + 1, stop)
            if left >= right:
                if len(edges) > 1:
                    self._fault(stop, "a value is missing")
            elif is_list:
                first = sign + 1
                value, name, step = left, f"[{number}]", str(number)
            else:
                at_colon = int(first_colon[number])
                colon = int(colons[at_colon]) if at_colon < colons.size else -1
                if sign < colon < next_sign:
                    name = self._key(left, int(tape.at[colon]) + self._base)
                    self.may_repeat = self.may_repeat or name in names
                    names.add(name)
                    value = self._trim(int(tape.at[colon]) + self._base + 1, right)[0]
                    first = colon + 1
                else:
                    value, name, first = left, "", next_sign
                step = name.replace("~", "~0").replace("/", "~1")
            if left < right:
                is_open = value < right and self.data[value] in _OPEN and first < next_sign
                large = is_open and right - value > PIECE
                alone = large or right - left > PIECE or (not shared and (is_list or is_open))
                if run is not None and (alone or right - run[0] > PIECE):
                    self._emit(*run, pointer, section, listed=is_list)
                    run = None
                if large:
                    self._open(first, next_sign, value, right, f"{pointer}/{step}", [*section, name])
                elif alone:
                    self._emit(left, right, f"{pointer}/{step}", [*section, name], listed=is_list)
                else:
                    run = (left if run is None else run[0], right)
            sign, at = next_sign, stop
        if run is not None:
            self._emit(*run, pointer, section, listed=is_list)
        elif len(edges) == 1 and close <= start + 1 + (end - start) and not self.data[start + 1 : close].strip():
            self._emit(start, end, pointer, section, listed=True)  # an empty container is a value too
        if behind[0] < behind[1]:
            self._fault(behind[0], "text behind the end of a value")
            self._emit(*behind, pointer, section, listed=True)

    def _key(self, start: int, end: int) -> str:
        try:
            return str(orjson.loads(self.data[start:end]))
        except orjson.JSONDecodeError:
            return self.data[start:end].decode().strip().strip('"')

    def _emit(self, start: int, end: int, pointer: str, section: list[str], *, listed: bool) -> None:
        """A block of bytes `start` to `end`: values of a list, or members of an object."""
        source = self.data[start:end]
        metadata: dict[str, Any] = {"language": "json"}
        error = self._reads(b"[%b]" % source if listed else b"{%b}" % source)
        if error is not None and _TOO_LARGE not in error.msg:
            metadata["broken"] = True
            self.broken.append((start, end))
            self._fault(start + max(0, error.pos - 1), error.msg)
        self._block(start, end, {"pointer": pointer}, section, metadata)

    def _reads(self, source: bytes) -> orjson.JSONDecodeError | None:
        """Why a piece cannot be read as JSON."""
        try:
            value = orjson.loads(source)
        except orjson.JSONDecodeError as error:
            self.may_repeat = True
            return error
        self.may_repeat = self.may_repeat or may_repeat(source, value)
        return None

    def _block(self, start: int, end: int, place: dict[str, Any], section: list[str], metadata: dict[str, Any]) -> None:
        low, high = self._chars.char(start), self._chars.char(end)
        self.drafts.append(Draft("code", low, high, self.shown[start:end].decode(), metadata, place=place, section=section))
        check_count(self.drafts, self.request)

    def _fault(self, at: int, what: str) -> None:
        if len(self.messages) < MAX_MESSAGES:
            self.messages.append(f"line {self._line(at)}: {what}")

    def _trim(self, start: int, end: int) -> tuple[int, int]:
        data = self.data
        while start < end and data[start] in _SPACE:
            start += 1
        while end > start and data[end - 1] in _SPACE:
            end -= 1
        return start, end
