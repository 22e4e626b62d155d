"""A large XML file of many elements under one root → the segments that it is read in; each begins where an element below the root does.

One pass of expat over blocks, which builds nothing; a segment knows the root's start tag and how many elements of each name stand before
it, so that its parser makes the paths and places of the whole file. The invariant: a file that cannot be cut so (another encoding than
UTF-8, a document type, text in the root itself, broken XML, one element that is nearly all) is `NotCut`, and read whole like a small one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from blake3 import blake3

from raydex.ir.errors import InputError, LimitError
from raydex.ir.file_range import FileRange
from raydex.kernels.confluence_rules import is_storage_format
from raydex.kernels.decode import declared_encoding, decode, decode_as
from raydex.kernels.segment import Segment, StreamPlan

XML = "application/xml"
NAMES = 1_000  # different ones below the root
_DOCTYPE = re.compile(r"<!DOCTYPE", re.IGNORECASE)

Read = Callable[[int, int], bytes]


class NotCut(Exception):
    """The file has to be read whole; says why."""


def may_be_cut(head: bytes) -> bool:
    """By its first bytes: whether it is XML in UTF-8 without a mark or a document type, and not a page in a format of its own."""
    try:
        decoded = decode(head[: head.rfind(b">") + 1], declared=declared_encoding(head))
    except InputError:
        return False
    plain = decoded.encoding in ("utf-8", "ascii") and not head.startswith(b"\xef\xbb\xbf")
    return plain and not _DOCTYPE.search(decoded.text) and not is_storage_format(decoded.text)


def plan_xml(
    read: Read, size: int, *, records: int, segment_bytes: int, segment_records: int, record_bytes: int, block_bytes: int
) -> StreamPlan:
    """Raises NotCut, LimitError (too_many_records) and InputError (changed_while_read)."""
    scan = _Scan(read, size, records, segment_bytes, segment_records, record_bytes)
    scan.run(block_bytes)
    return scan.plan


class _Scan:
    """`start` is the first byte of the open segment."""

    def __init__(self, read: Read, size: int, records: int, segment_bytes: int, segment_records: int, record_bytes: int) -> None:
        self.read = read
        self.plan = StreamPlan(XML, size, "utf-8")
        self.most_records = records
        self.segment_bytes = segment_bytes
        self.segment_records = segment_records
        self.record_bytes = record_bytes
        self.start = self._record = self._depth = self._in_segment = self._char = self._line = 0
        self._opening = self._root = ""
        self._seen: Counter[str] = Counter()
        self._before: dict[str, int] = {}
        self._hash = blake3()
        self._cuts: list[tuple[int, int, dict[str, int]]] = []

    def run(self, block_bytes: int) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._doctype
        self._parser = parser
        try:
            for at in range(0, self.plan.size, block_bytes):
                block = self._bytes(at, min(block_bytes, self.plan.size - at))
                parser.Parse(block, at + len(block) == self.plan.size)
                self._flush()
        except expat.ExpatError as error:
            raise NotCut(f"line {error.lineno}: {expat.ErrorString(error.code)}") from error
        if len(self.plan.segments) == 0:
            raise NotCut("all of it is one element")
        self._check(self.plan.size)
        self._close(self.plan.size, self._in_segment, {}, closes=True)
        self.plan.content_hash = self._hash.hexdigest()

    def _bytes(self, start: int, size: int) -> bytes:
        data = self.read(start, size)
        if len(data) != size:
            raise InputError("the content changed while it was read", reject_class="changed_while_read")
        return data

    def _begin(self, name: str, flat: list[str]) -> None:
        self._depth += 1
        if self._depth == 2:
            self._element(name, self._parser.CurrentByteIndex)
        elif self._depth == 1:
            self._root = name
            pairs = zip(flat[::2], flat[1::2], strict=True)
            self._opening = f"<{name}{''.join(f' {key}={quoteattr(value)}' for key, value in pairs)}>"
            self._parser.CharacterDataHandler = self._text

    def _element(self, name: str, at: int) -> None:
        self._parser.CharacterDataHandler = None
        self._check(at)
        self._record = at
        if self._in_segment and (at - self.start >= self.segment_bytes or self._in_segment >= self.segment_records):
            self._cuts.append((at, self._in_segment, dict(self._seen)))
            self.start, self._in_segment = at, 0
        self._seen[name] += 1
        self._in_segment += 1
        if len(self._seen) > NAMES:
            raise NotCut(f"more than {NAMES} different names below the root")

    def _check(self, at: int) -> None:
        if self._record and at - self._record > self.record_bytes:
            raise NotCut(f"one element takes more than {self.record_bytes} bytes")

    def _end(self, name: str) -> None:
        self._depth -= 1
        if self._depth == 1:
            self._parser.CharacterDataHandler = self._text

    def _text(self, text: str) -> None:
        if not text.isspace():
            raise NotCut("there is text in the root itself")

    def _doctype(self, *_: object) -> None:
        raise NotCut("a document type")

    def _flush(self) -> None:
        """Closes the segments whose ends have been passed."""
        cuts, self._cuts = self._cuts, []
        for at, records, seen in cuts:
            self._close(at, records, seen)

    def _close(self, end: int, records: int, seen: dict[str, int], *, closes: bool = False) -> None:
        plan = self.plan
        start = plan.segments[-1].place.end if plan.segments else 0
        data = self._bytes(start, end - start)
        text = decode_as(data, plan.encoding)
        self._hash.update(data)
        breaks = text.count("\n") + text.count("\r") - text.count("\r\n")
        place = FileRange(start, end, self._char, self._line)
        plan.segments.append(
            Segment(
                place,
                plan.records,
                records,
                breaks + 1,
                blake3(data).hexdigest(),
                plan.encoding,
                leads=not plan.segments,
                opening=self._opening,
                root=self._root,
                before=self._before,
                closes=closes,
            )
        )
        self._before = seen
        plan.records += records
        if plan.records > self.most_records:
            message = f"more than {self.most_records} records (limits.records)"
            raise LimitError(message, reject_class="too_many_records", remedy="Split the file or raise limits.records")
        self._char += len(text)
        self._line += breaks
