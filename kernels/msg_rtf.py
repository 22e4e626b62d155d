"""RTF of Outlook messages → text, or the HTML or plain text that it was made from (MS-OXRTFCP, MS-OXRTFEX).

The invariant: one pass over the tokens, groups are an explicit stack, and the output is at most a small multiple of the input.
"""

from __future__ import annotations

import codecs
import re
import struct
from dataclasses import dataclass, replace

from raydex.ir.errors import InputError

_COMPRESSED, _STORED = 0x75465A4C, 0x414C454D
_WINDOW = 4096
_PRESET = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor MS Sans SerifSymbolArial"
    b"Times New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
_TOKEN = re.compile(rb"\\'([0-9a-fA-F]{2})|\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\(.)|([{}])|[\r\n]+|([^\\{}\r\n]+)", re.DOTALL)
_SIGNS = {
    b"par": "\n",
    b"line": "\n",
    b"row": "\n",
    b"sect": "\n",
    b"page": "\n",
    b"tab": "\t",
    b"cell": "\t",
    b"lquote": "‘",
    b"rquote": "’",
    b"ldblquote": "“",
    b"rdblquote": "”",
    b"bullet": "•",
    b"endash": "–",
    b"emdash": "—",
    b"enspace": " ",
    b"emspace": " ",
    b"zwj": "\u200d",
    b"zwnj": "\u200c",
}
_HIDDEN = frozenset(
    (
        *(b"fonttbl", b"colortbl", b"stylesheet", b"info", b"pict", b"object", b"objdata", b"header", b"footer", b"headerl", b"headerr"),
        *(b"footerl", b"footerr", b"listtable", b"listoverridetable", b"themedata", b"datastore", b"generator", b"mhtmltag", b"fldinst"),
    )
)
_CHARSETS = {
    128: "cp932",
    129: "cp949",
    134: "gb18030",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
}


@dataclass(frozen=True, slots=True)
class Group:
    """State that a group inherits and leaves behind when it closes. `tag`: HTML source as it was; `skip`: RTF that stands for such."""

    hidden: bool = False
    tag: bool = False
    skip: bool = False
    fonts: bool = False
    encoding: str = ""
    fallback: int = 1


@dataclass(frozen=True, slots=True)
class Rtf:
    """`origin` is html, text or rtf: what the RTF was made from."""

    text: str
    origin: str


def decompress_rtf(data: bytes, limit: int) -> bytes:
    """Raises InputError: invalid_input; bomb above `limit` bytes."""
    if len(data) < 16:
        raise InputError("compressed RTF without a header")
    size, raw_size, kind = struct.unpack_from("<III", data)
    if kind == _STORED:
        return data[16 : 16 + raw_size]
    if kind != _COMPRESSED:
        raise InputError("RTF in an unknown compression")
    window = bytearray(_PRESET) + bytearray(_WINDOW - len(_PRESET))
    write = len(_PRESET)
    out = bytearray()
    at, end = 16, min(len(data), size + 4)
    while at < end:
        flags = data[at]
        at += 1
        for bit in range(8):
            if at >= end:
                return bytes(out)
            if not flags >> bit & 1:
                piece = bytearray(data[at : at + 1])
                at += 1
            else:
                token = int.from_bytes(data[at : at + 2], "big")
                at += 2
                offset, length = token >> 4, (token & 15) + 2
                if offset == write:
                    return bytes(out)
                piece = bytearray()
                for step in range(length):
                    byte = window[(offset + step) % _WINDOW]
                    piece.append(byte)
                    window[(write + step) % _WINDOW] = byte  # a reference may run into what it writes
            for step, byte in enumerate(piece):
                window[(write + step) % _WINDOW] = byte
            write = (write + len(piece)) % _WINDOW
            out += piece
            if len(out) > limit:
                message = f"compressed RTF expands to {len(out)} bytes or more, more than limits.member_bytes ({limit})"
                raise InputError(message, reject_class="bomb")
    return bytes(out)


def read_rtf(data: bytes) -> Rtf:
    """Raises InputError (invalid_input) for what is no RTF, too_deep."""
    if not data.lstrip().startswith(b"{\\rtf"):
        raise InputError("the content is no RTF")
    return _Reader(data).read()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.origin = "rtf"
        self.out: list[str] = []
        self.pending = bytearray()  # bytes of one encoding: a character may be two of them
        self.group = Group()
        self.stack: list[Group] = []
        self.default = "cp1252"
        self.fonts: dict[int, str] = {}
        self.font = 0
        self.left_out = 0  # characters that stand for one in Unicode

    def read(self) -> Rtf:
        starred = False
        for found in _TOKEN.finditer(self.data):
            byte, word, number, sign, brace, text = found.groups()
            if brace:
                self._flush()
                self._brace(brace)
            elif word is not None:
                self._word(word, int(number) if number else None, starred)
            elif byte is not None:
                self._bytes(bytes((int(byte, 16),)))
            elif text is not None:
                self._bytes(text)
            elif sign is not None and sign != b"*":
                self._sign(sign)
            starred = sign == b"*"
        self._flush()
        # characters beyond the first plane are written as two halves
        return Rtf("".join(self.out).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), self.origin)

    def _brace(self, brace: bytes) -> None:
        self.left_out = 0
        if brace == b"{":
            if len(self.stack) > 10_000:
                raise InputError("RTF groups nested deeper than 10000", reject_class="too_deep")
            self.stack.append(self.group)
        elif self.stack:
            self.group = self.stack.pop()

    def _word(self, word: bytes, number: int | None, starred: bool) -> None:
        if word == b"u" and number is not None:
            self._flush()
            self._text(chr(number % 65_536))
            self.left_out = self.group.fallback
            return
        if word in _SIGNS:
            self._flush()
            self._text("\n" if self.origin == "rtf" and word == b"par" else _SIGNS[word])
            return
        if word == b"f" and number is not None:
            self._flush()
            self.font = number
            self.group = replace(self.group, encoding=self.fonts.get(number, ""))
        elif word == b"fcharset" and number in _CHARSETS and self.group.fonts:
            self.fonts[self.font] = _CHARSETS[number]
        elif word == b"ansicpg" and number:
            self.default = codec_of(number) or self.default
        elif word == b"uc" and number is not None:
            self.group = replace(self.group, fallback=max(0, min(number, 8)))
        elif word in (b"fromhtml", b"fromtext") and not self.out:
            self.origin = word[4:].decode()
        elif word == b"htmltag":
            self._flush()
            self.group = replace(self.group, tag=True, hidden=False)
        elif word == b"htmlrtf":
            self._flush()
            self.group = replace(self.group, skip=number != 0)
        elif word in _HIDDEN or starred:
            self._flush()
            self.group = replace(self.group, hidden=True, fonts=self.group.fonts or word == b"fonttbl")
        elif word == b"bin" and number:
            self.left_out = min(number, len(self.data))

    def _sign(self, sign: bytes) -> None:
        if sign in b"\\{}":
            self._bytes(sign)
        elif sign == b"~":
            self._flush()
            self._text("&nbsp;" if self.origin == "html" else "\xa0")
        elif sign == b"_":
            self._bytes(b"-")
        elif sign in b"\r\n":
            self._flush()
            self._text("\n")

    def _bytes(self, data: bytes) -> None:
        if self.left_out:
            dropped = min(self.left_out, len(data))
            self.left_out -= dropped
            data = data[dropped:]
        if data and not self.group.hidden and not (self.group.skip and not self.group.tag):
            self.pending += data

    def _text(self, text: str) -> None:
        if not self.group.hidden and not (self.group.skip and not self.group.tag):
            self.out.append(text)

    def _flush(self) -> None:
        if self.pending:
            encoding = self.group.encoding or self.default
            self.out.append(self.pending.decode(encoding, "replace"))
            self.pending.clear()


def codec_of(code_page: int) -> str | None:
    """The codec of a Windows code page."""
    known = {65001: "utf-8", 1200: "utf-16-le", 1201: "utf-16-be", 20127: "ascii", 936: "gb18030", 54936: "gb18030", 10000: "mac-roman"}
    known |= {20866: "koi8-r", 21866: "koi8-u", 50220: "iso2022_jp", 50221: "iso2022_jp", 50222: "iso2022_jp", 51932: "euc_jp"}
    known |= {51949: "euc_kr", 51936: "gb18030", 52936: "hz", 65000: "utf-7"}
    name = known.get(code_page) or (f"iso8859-{code_page - 28590}" if 28590 < code_page <= 28606 else f"cp{code_page}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None
