"""TNEF (winmail.dat, MS-OXTNEF) → the attachments and the body that it wraps.

The invariant: reading is one pass, nothing is read beyond its attribute, and what is broken ends the pass without losing what came before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

_SIGNATURE = 0x223E9F78
_BODY, _MESSAGE_PROPERTIES = 0x0002800C, 0x00069003
_ATTACH_START, _ATTACH_NAME, _ATTACH_DATA, _ATTACH_PROPERTIES = 0x00069002, 0x00018010, 0x0006800F, 0x00069005
_FIXED = {2: 4, 3: 4, 4: 4, 5: 8, 6: 8, 7: 8, 10: 4, 11: 4, 20: 8, 64: 8, 72: 16}
_TEXT8, _TEXT, _OBJECT, _BINARY = 0x1E, 0x1F, 0x0D, 0x0102
_LONG_NAME, _DATA, _MIME, _RTF, _HTML, _PLAIN = 0x3707, 0x3701, 0x370E, 0x1009, 0x1013, 0x1000


@dataclass(slots=True)
class Attachment:
    name: str = ""
    data: bytes = b""
    media_type: str = ""


@dataclass(slots=True)
class Tnef:
    """`rtf` is compressed; `complete` is false where the file ends too early."""

    plain: bytes = b""
    html: bytes = b""
    rtf: bytes = b""
    attachments: list[Attachment] = field(default_factory=list)
    complete: bool = True


def read_tnef(data: bytes, most: int) -> Tnef | None:
    """None for what is no TNEF. At most `most` attachments are kept."""
    if len(data) < 6 or int.from_bytes(data[:4], "little") != _SIGNATURE:
        return None
    found = Tnef()
    at = 6
    while at + 9 <= len(data):
        kind, size = struct.unpack_from("<II", data, at + 1)
        value = data[at + 9 : at + 9 + size]
        found.complete = len(value) == size
        at += 9 + size + 2
        if kind == _ATTACH_START:
            if len(found.attachments) >= most:
                found.complete = False
                break
            found.attachments.append(Attachment())
        elif kind == _BODY:
            found.plain = value.rstrip(b"\0")
        elif kind == _MESSAGE_PROPERTIES:
            _message(found, value)
        elif found.attachments:
            _attachment(found.attachments[-1], kind, value)
    return found


def _message(found: Tnef, value: bytes) -> None:
    for pid, kind, content in _properties(value):
        if pid == _RTF:
            found.rtf = content
        elif pid == _HTML:
            found.html = content
        elif pid == _PLAIN and not found.plain:
            found.plain = _text(kind, content).encode()


def _attachment(attachment: Attachment, kind: int, value: bytes) -> None:
    if kind == _ATTACH_NAME:
        attachment.name = attachment.name or _text(_TEXT8, value)
    elif kind == _ATTACH_DATA:
        attachment.data = value
    elif kind == _ATTACH_PROPERTIES:
        for pid, sort, content in _properties(value):
            if pid == _LONG_NAME:
                attachment.name = _text(sort, content) or attachment.name
            elif pid == _MIME:
                attachment.media_type = _text(sort, content)
            elif pid == _DATA and not attachment.data:
                # an inner message is TNEF behind the id of its interface
                attachment.data = content[16:] if sort == _OBJECT else content


def _text(kind: int, content: bytes) -> str:
    if kind == _TEXT:
        return content.decode("utf-16-le", "replace").rstrip("\0")
    text = content.rstrip(b"\0")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("cp1252", "replace")


def _properties(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(id, type, content) of the properties whose length can be told; a type that is not known ends them."""
    at = 4
    for _ in range(int.from_bytes(data[:4], "little")):
        if at + 4 > len(data):
            return
        kind, pid = struct.unpack_from("<HH", data, at)
        at += 4
        if pid >= 0x8000:
            named = int.from_bytes(data[at + 16 : at + 20], "little")
            at += 24
            if named:
                at += _padded(int.from_bytes(data[at - 4 : at], "little"))
        several, kind = kind & 0x1000, kind & ~0x1000
        variable = kind in (_TEXT8, _TEXT, _OBJECT, _BINARY)
        if not variable and kind not in _FIXED:
            return
        count = 1
        if several or variable:
            count = int.from_bytes(data[at : at + 4], "little")
            at += 4
        for _ in range(count):
            if at >= len(data):
                return
            size = _FIXED.get(kind, 0)
            if variable:
                size = int.from_bytes(data[at : at + 4], "little")
                at += 4
            yield pid, kind, data[at : at + size]
            at += _padded(size)


def _padded(size: int) -> int:
    return size + -size % 4
