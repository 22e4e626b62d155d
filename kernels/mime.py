"""Bytes of a mail → the tree of its MIME parts; contents are slices of the bytes, decoded when they are asked for (RFC 2045, 2046).

A message inside is a leaf: its bytes are a mail of their own. The invariant: part numbers are those of IMAP, the tree is at most
`limits.parts_depth` deep, and reading it takes time in proportion to the bytes times that depth.
"""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass, field

from raydex.kernels.decode import clean
from raydex.kernels.limits import Limits
from raydex.kernels.mail_fields import Fields, decode_base64, field_text, parameters, raw_text, settle_charset

MESSAGES = frozenset(("message/rfc822", "message/global", "message/news"))
_FIELD = re.compile(rb"([!-9;-~]{1,200})[ \t]*:[ \t]*(.*)", re.DOTALL)
_TYPE = re.compile(r"[\w!#$&^.+-]{1,100}/[\w!#$&^.+-]{1,100}")


@dataclass(slots=True)
class Part:
    """`number` is empty for the mail itself where it has parts. `defect` names what is broken, empty for a sound part."""

    number: str
    fields: Fields
    raw: bytes
    media_type: str
    parameters: dict[str, str]
    parts: list[Part] = field(default_factory=list)
    defect: str = ""

    @property
    def disposition(self) -> str:
        return parameters(field_text(self.fields, "content-disposition"))[0]

    @property
    def name(self) -> str:
        """The file name that the part gives, as data."""
        for key, value in self.fields:
            if key == "content-disposition":
                name = parameters(raw_text(value))[1].get("filename", "")
                if name:
                    return clean(name)
        return clean(self.parameters.get("name", ""))

    @property
    def content(self) -> bytes:
        """The content without its transfer encoding."""
        encoding = field_text(self.fields, "content-transfer-encoding").lower().partition(";")[0].strip()
        if encoding == "base64":
            return decode_base64(self.raw)
        if encoding == "quoted-printable":
            return binascii.a2b_qp(self.raw)
        if encoding in ("x-uuencode", "uuencode", "x-uue"):
            return decode_uu(self.raw)
        return self.raw


def read_mime(data: bytes, limits: Limits) -> Part:
    """The whole mail as a part."""
    root = _read(data, 0, len(data), "", 0, "text/plain", limits)
    charset = _charset(root)
    if charset:
        _settle(root, charset)
    return root


def _charset(part: Part) -> str:
    """What the first text names that names a charset; ASCII says nothing of other bytes."""
    own = part.parameters.get("charset", "").lower() if part.media_type.startswith("text/") else ""
    return own if own not in ("", "us-ascii", "ascii") else next((found for inner in part.parts if (found := _charset(inner))), "")


def _settle(part: Part, charset: str) -> None:
    part.fields = settle_charset(part.fields, charset)
    for inner in part.parts:
        _settle(inner, charset)


def _read(data: bytes, start: int, end: int, number: str, depth: int, default: str, limits: Limits) -> Part:
    fields, body = read_fields(data, start, end)
    declared = next((raw_text(value) for key, value in fields if key == "content-type"), "")
    media_type, settings = parameters(declared)
    if not _TYPE.fullmatch(media_type):
        media_type = default
    part = Part(number, fields, b"", media_type, settings)
    if media_type.startswith("multipart/"):
        spans = split_parts(data, body, end, settings.get("boundary", ""), limits.members + 1)
        if depth >= limits.parts_depth:
            part.defect = f"parts nested deeper than limits.parts_depth ({limits.parts_depth})"
        elif spans:
            inner = "message/rfc822" if media_type == "multipart/digest" else "text/plain"
            if len(spans) > limits.members:
                part.defect = f"parts after number {limits.members} are lost (limits.members)"
            for at, (low, high) in enumerate(spans[: limits.members], 1):
                part.parts.append(_read(data, low, high, f"{number}.{at}" if number else str(at), depth + 1, inner, limits))
            return part
        else:
            part.media_type, part.defect = "text/plain", "the parts of a multipart are not marked"
    part.number = number or "1"
    part.raw = data[body:end]
    return part


def read_head(data: bytes, limit: int) -> Fields:
    """Header fields of a mail whose parts are not read, in the charset that they name themselves."""
    fields, _ = read_fields(data, 0, min(len(data), limit))
    return settle_charset(fields, parameters(field_text(fields, "content-type"))[1].get("charset", ""))


def read_fields(data: bytes, start: int, end: int) -> tuple[Fields, int]:
    """Header fields, their names in lower case and their lines joined, and where the body begins."""
    found: list[tuple[str, list[bytes]]] = []
    at = start
    while at < end:
        stop = data.find(b"\n", at, end)
        after = end if stop < 0 else stop + 1
        line = data[at : end if stop < 0 else stop].rstrip(b"\r")
        if not line:
            at = after
            break
        match = None if line[:1] in b" \t" else _FIELD.fullmatch(line)
        if match is not None:
            found.append((match[1].decode("ascii").lower(), [match[2]]))
        elif line[:1] in b" \t" and found:
            found[-1][1].append(line.strip())
        elif not (at == start and line.startswith((b"From ", b">From "))):
            break
        at = after
    return [(name, b" ".join(pieces)) for name, pieces in found], at


def split_parts(data: bytes, start: int, end: int, boundary: str, most: int) -> list[tuple[int, int]]:
    """Spans between the lines of a boundary, at most `most`; the last part may lack its end."""
    if not boundary.strip():
        return []
    line = re.compile(rb"^--" + re.escape(boundary.encode("utf-8", "surrogateescape")) + rb"(--)?[ \t]*\r?$", re.MULTILINE)
    spans: list[tuple[int, int]] = []
    low = -1
    for found in line.finditer(data, start, end):
        if low >= 0:
            high = found.start()
            high -= data[high - 1 : high] == b"\n"
            high -= data[high - 1 : high] == b"\r"
            spans.append((low, max(low, high)))
        low = min(found.end() + 1, end)
        if found[1] or len(spans) >= most:
            return spans
    if low >= 0:
        spans.append((low, end))
    return spans


def decode_uu(data: bytes) -> bytes:
    """Lines between `begin` and `end`; a broken line is skipped."""
    out = []
    inside = False
    for line in data.splitlines():
        if line.startswith(b"begin ") and not inside:
            inside = True
        elif line.strip() == b"end":
            break
        elif inside:
            try:
                out.append(binascii.a2b_uu(line))
            except binascii.Error:
                continue
    return b"".join(out)
