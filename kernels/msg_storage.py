"""Outlook message (MS-OXMSG) → storages with MAPI properties, read from the compound file when they are asked for.

The invariant: all streams that are read of one file, those of inner messages included, hold at most `limits.members_bytes`, however often
its directory names the same sectors.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import olefile

from raydex.ir.errors import InputError
from raydex.kernels.decode import Decoded, clean, decode, decode_as
from raydex.kernels.limits import Limits
from raydex.kernels.msg_rtf import codec_of
from raydex.kernels.request import ParseRequest

_BROKEN = (OSError, ValueError, IndexError, KeyError, AttributeError, TypeError, OverflowError)
_TOP, _INNER, _LEAF = 32, 24, 8  # bytes before the properties of a message, an inner message, a recipient or attachment
_TEXT, _TEXT8, _BINARY = 0x001F, 0x001E, 0x0102
_CODE_PAGES = (0x3FDE, 0x3FFD)  # of bodies, of other strings
ATTACHMENT = "__attach_version1.0_#"
INNER_MESSAGE = "__substg1.0_3701000D"
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Source:
    """The opened file and what may still be read of it."""

    ole: Any
    left: int
    place: str
    limits: Limits


class Storage:
    """One storage of the file: a message, a recipient or an attachment."""

    def __init__(self, source: Source, path: tuple[str, ...], entry: Any, header: int, code_page: str | None = None) -> None:
        self.source = source
        self.path = path
        self.entry = entry
        self.kids: dict[str, Any] = {str(kid.name).lower(): kid for kid in entry.kids}
        fixed = self.stream("__properties_version1.0") or b""
        self.fixed = {
            int.from_bytes(fixed[at + 2 : at + 4], "little"): fixed[at + 8 : at + 16] for at in range(header, len(fixed) - 15, 16)
        }
        own = next((codec_of(number) for pid in _CODE_PAGES if (number := self.integer(pid))), None)
        self.code_page = own or code_page

    def stream(self, name: str) -> bytes | None:
        """A stream's bytes, None where there is none. Raises InputError: bomb, invalid_input."""
        kid = self.kids.get(name.lower())
        if kid is None or kid.entry_type != olefile.STGTY_STREAM:
            return None
        if kid.size > self.source.left:
            held = self.source.limits.members_bytes - self.source.left + kid.size
            message = self.source.limits.say(f"the streams hold {held} bytes", "members_bytes")
            raise InputError(message, reject_class="bomb", place=self.source.place)
        self.source.left -= kid.size
        try:
            return bytes(self.source.ole.openstream([*self.path, kid.name]).read())
        except _BROKEN as error:
            raise InputError(f"a stream is broken: {str(error)[:200]}", place=f"{self.source.place}: {name}") from error

    def binary(self, pid: int) -> bytes | None:
        return self.stream(f"__substg1.0_{pid:04X}{_BINARY:04X}")

    def decoded(self, pid: int) -> Decoded | None:
        """A string property and how it was decoded."""
        wide = self.stream(f"__substg1.0_{pid:04X}{_TEXT:04X}")
        if wide is not None:
            return Decoded(decode_as(wide, "utf-16-le").removesuffix("\0"), "utf-16-le")
        narrow = self.stream(f"__substg1.0_{pid:04X}{_TEXT8:04X}")
        return decode(narrow.rstrip(b"\0"), declared=self.code_page) if narrow is not None else None

    def text(self, pid: int) -> str:
        """A string property; empty where there is none or it is no text."""
        try:
            found = self.decoded(pid)
        except InputError as error:
            if error.reject_class == "bomb":
                raise
            found = None
        return clean(found.text.strip("\0").strip()) if found is not None else ""

    def integer(self, pid: int) -> int | None:
        value = self.fixed.get(pid)
        return int.from_bytes(value[:4], "little") if value is not None else None

    def date(self, pid: int) -> str | None:
        """ISO 8601 in UTC."""
        value = self.fixed.get(pid)
        ticks = int.from_bytes(value, "little") if value is not None else 0
        try:
            return (_EPOCH + timedelta(seconds=ticks // 10_000_000)).isoformat() if ticks else None
        except OverflowError:
            return None

    def inner(self, prefix: str) -> Iterator[Storage]:
        """Storages whose names begin so, in the order of their names."""
        for name in sorted(self.kids):
            kid = self.kids[name]
            if name.startswith(prefix) and kid.entry_type == olefile.STGTY_STORAGE:
                yield Storage(self.source, (*self.path, kid.name), kid, _LEAF, self.code_page)

    def message(self, name: str) -> Storage | None:
        """A message that the storage holds."""
        kid = self.kids.get(name.lower())
        if kid is None or kid.entry_type != olefile.STGTY_STORAGE:
            return None
        return Storage(self.source, (*self.path, kid.name), kid, _INNER, self.code_page)


def open_message(request: ParseRequest) -> Storage:
    """The storage of the message, or of the one that lies inside it at `request.inside`: numbers of attachments, apart by slashes.

    Raises InputError (invalid_input).
    """
    try:
        ole = olefile.OleFileIO(io.BytesIO(request.data))
        root = ole.root
    except _BROKEN as error:
        raise InputError(f"the file is no readable Outlook message: {str(error)[:200]}", place=request.path) from error
    source = Source(ole, request.limits.members_bytes, request.path, request.limits)
    storage = Storage(source, (), root, _TOP)
    if not any(name.startswith("__") for name in storage.kids):
        raise InputError("the file holds no Outlook message", place=request.path)
    for number in request.inside.split("/") if request.inside else ():
        attachment = next(islice(storage.inner(ATTACHMENT), int(number), None), None)
        inner = attachment.message(INNER_MESSAGE) if attachment is not None else None
        if inner is None:
            raise InputError(f"there is no message at {request.inside}", place=request.path)
        storage = inner
    return storage
