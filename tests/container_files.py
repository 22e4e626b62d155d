"""Files that tests of mails and archives need and no library writes: compound files, Outlook messages, compressed RTF."""

from __future__ import annotations

import struct
from typing import Any

_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def compound_file(tree: dict[str, Any]) -> bytes:
    """A compound file: a name stands for the bytes of a stream, or for a storage's own tree."""
    entries: list[list[Any]] = [["Root Entry", 5, _FREE, _FREE, 0, 0]]  # name, type, right sibling, child, start, size
    sectors: list[bytes] = []
    fat: list[int] = []
    small = bytearray()
    mini_fat: list[int] = []

    def store(data: bytes) -> int:
        first = len(fat)
        count = max(1, -(-len(data) // 512))
        fat.extend([*range(first + 1, first + count), _END])
        sectors.extend(data[at * 512 : (at + 1) * 512].ljust(512, b"\0") for at in range(count))
        return first

    def add(parent: int, inner: dict[str, Any]) -> None:
        last = None
        for name, value in inner.items():
            at = len(entries)
            entries.append([name, 1 if isinstance(value, dict) else 2, _FREE, _FREE, 0, 0])
            if last is None:
                entries[parent][3] = at
            else:
                entries[last][2] = at
            last = at
            if isinstance(value, dict):
                add(at, value)
            elif len(value) >= 4096:
                entries[at][4:] = [store(value), len(value)]
            elif value:
                first = len(mini_fat)
                count = -(-len(value) // 64)
                mini_fat.extend([*range(first + 1, first + count), _END])
                small.extend(value.ljust(count * 64, b"\0"))
                entries[at][4:] = [first, len(value)]

    add(0, tree)
    entries[0][4:] = [store(bytes(small)), len(small)] if small else [_END, 0]
    mini_start = store(struct.pack(f"<{len(mini_fat)}I", *mini_fat)) if mini_fat else _END
    raw = b""
    for name, kind, right, child, start, size in entries:
        title = name.encode("utf-16-le")
        raw += title.ljust(64, b"\0") + struct.pack("<HBBIII", len(title) + 2, kind, 1, _FREE, right, child)
        raw += bytes(36) + struct.pack("<IQ", start, size)
    directory = store(raw.ljust(-(-len(raw) // 512) * 512, b"\0"))
    count = 1
    while count * 128 < len(fat) + count:
        count += 1
    places = [len(fat) + at for at in range(count)]
    fat.extend([_FAT] * count)
    table = struct.pack(f"<{len(fat)}I", *fat).ljust(count * 512, b"\xff")
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<IIIIIIIII", 0, count, directory, 0, 4096, mini_start, -(-len(mini_fat) // 128), _END, 0)
    head += struct.pack("<109I", *places, *[_FREE] * (109 - count))
    return head + b"".join(sectors) + table


def properties(header: int, numbers: dict[int, int]) -> bytes:
    """A stream of fixed properties: number by property id; dates are given in ticks of 100 ns."""
    out = bytes(header)
    for pid, number in numbers.items():
        out += struct.pack("<HHIQ", 0x0040 if number > 0xFFFFFFFF else 0x0003, pid, 6, number)
    return out


def storage(header: int, values: dict[int, Any], numbers: dict[int, int] | None = None, **inner: Any) -> dict[str, Any]:
    """A storage with properties: text, bytes, or the tree of an inner message."""
    out: dict[str, Any] = {"__properties_version1.0": properties(header, numbers or {})}
    for pid, value in values.items():
        if isinstance(value, str):
            out[f"__substg1.0_{pid:04X}001F"] = value.encode("utf-16-le")
        else:
            out[f"__substg1.0_{pid:04X}{'000D' if isinstance(value, dict) else '0102'}"] = value
    return out | inner


def message(
    values: dict[int, Any],
    *,
    recipients: list[tuple[int, str, str]] | None = None,
    attachments: list[tuple[dict[int, Any], dict[int, int]]] | None = None,
    numbers: dict[int, int] | None = None,
    header: int = 32,
) -> dict[str, Any]:
    """Tree of an Outlook message."""
    out = storage(header, values, numbers)
    for at, (kind, name, address) in enumerate(recipients or []):
        out[f"__recip_version1.0_#{at:08X}"] = storage(8, {0x3001: name, 0x39FE: address}, {0x0C15: kind})
    for at, (inner, fixed) in enumerate(attachments or []):
        out[f"__attach_version1.0_#{at:08X}"] = storage(8, inner, fixed)
    return out


def stored_rtf(rtf: bytes) -> bytes:
    """RTF in the envelope of compressed RTF, stored."""
    return struct.pack("<IIII", len(rtf) + 12, len(rtf), 0x414C454D, 0) + rtf
