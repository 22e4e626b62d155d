"""The content inside of a signed S/MIME envelope (CMS, RFC 5652): BER elements are followed to it; signatures are not verified.

The invariant: reading is linear and bounded; what is no signed data gives None.
"""

from __future__ import annotations

_SIGNED_DATA = bytes.fromhex("2a864886f70d010702")
_SEQUENCE, _OID, _OCTETS, _OCTETS_IN_PARTS, _EXPLICIT = 0x30, 0x06, 0x04, 0x24, 0xA0
_DEEPEST = 20

Element = tuple[int, int, int, int]  # tag, start and end of the content, start of what follows


def signed_content(data: bytes) -> bytes | None:
    """The signed bytes; None for other kinds of content and for broken ones."""
    try:
        outer = _children(data, _element(data, 0, len(data), 0))
        if len(outer) < 2 or outer[0][0] != _OID or data[outer[0][1] : outer[0][2]] != _SIGNED_DATA:
            return None
        signed = _children(data, _children(data, outer[1])[0])
        inside = next(item for item in signed if item[0] == _SEQUENCE)
        wrapped = _children(data, inside)
        if len(wrapped) < 2 or wrapped[1][0] != _EXPLICIT:
            return None
        content = _children(data, wrapped[1])[0]
        if content[0] == _OCTETS:
            return data[content[1] : content[2]]
        if content[0] == _OCTETS_IN_PARTS:
            return b"".join(data[low:high] for tag, low, high, _ in _children(data, content) if tag == _OCTETS)
    except (IndexError, StopIteration, ValueError):
        pass
    return None


def _children(data: bytes, element: Element) -> list[Element]:
    found: list[Element] = []
    at = element[1]
    while at < element[2]:
        item = _element(data, at, element[2], 0)
        found.append(item)
        at = item[3]
    return found


def _element(data: bytes, at: int, end: int, depth: int) -> Element:
    """One element. Raises ValueError, IndexError for what is none."""
    tag = data[at]
    size = data[at + 1]
    start = at + 2
    if tag & 0x1F == 0x1F or depth > _DEEPEST:
        raise ValueError("no element of CMS")
    if size == 0x80:
        inner = start
        while data[inner : inner + 2] != b"\0\0":
            if inner >= end:
                raise ValueError("an element has no end")
            inner = _element(data, inner, end, depth + 1)[3]
        return tag, start, inner, inner + 2
    if size > 0x80:
        count = size & 0x7F
        size = int.from_bytes(data[start : start + count], "big")
        start += count
    if start + size > end:
        raise ValueError("an element is longer than what holds it")
    return tag, start, start + size, start + size
