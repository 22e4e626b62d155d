"""Decoded source text → its three measures: code points, lines and bytes of the file (contracts 9).

The invariant: offsets are code points of the text without its byte order mark and with its line ends untouched; parsers that count in
UTF-8 bytes (Python's `ast`, tree-sitter) and files in other encodings are converted here and nowhere else.
"""

from __future__ import annotations

import codecs
from bisect import bisect_right

from blake3 import blake3

from raydex.ir.errors import InputError
from raydex.ir.locator import split_lines
from raydex.kernels.decode import BOMS

_STEP = 256


class ByteOffsets:
    """Code points ↔ bytes of one text in one encoding: checkpoints every 256 characters bound the work of a question."""

    __slots__ = ("_at", "_encoding", "_text")

    def __init__(self, text: str, encoding: str) -> None:
        self._text = text
        self._encoding = encoding
        at = [0]
        total = 0
        for start in range(0, len(text), _STEP):
            total += len(text[start : start + _STEP].encode(encoding, "replace"))
            at.append(total)
        self._at = at

    def byte_of(self, char: int) -> int:
        """Byte offset of a code point offset."""
        mark = char // _STEP
        return self._at[mark] + len(self._text[mark * _STEP : char].encode(self._encoding, "replace"))

    def char_of(self, byte: int) -> int:
        """Code point offset of a UTF-8 byte offset; one inside a character counts as its start. Only for UTF-8."""
        mark = bisect_right(self._at, byte) - 1
        piece = self._text[mark * _STEP : (mark + 1) * _STEP].encode()[: byte - self._at[mark]]
        return min(mark * _STEP + len(piece.decode("utf-8", "ignore")), len(self._text))


class SourceText:
    """One decoded file. `encoding` is the codec that decoded `data`; raises InputError (invalid_input) for text that no codec can hold."""

    __slots__ = ("_file", "_utf8", "ascii", "encoding", "line_bytes", "line_starts", "mark_bytes", "text", "wide_lines")

    def __init__(self, text: str, data: bytes, encoding: str) -> None:
        self.text = text
        self.encoding = encoding
        self.mark_bytes = _mark_bytes(data, encoding)
        self.ascii = text.isascii()
        self.line_starts = [0]
        self.line_bytes = self.line_starts
        self.wide_lines: frozenset[int] = frozenset()
        self._utf8: ByteOffsets | None = None
        self._file: ByteOffsets | None = None
        lines = split_lines(text)
        at = 0
        for line in lines:
            at += len(line)
            self.line_starts.append(at)
        if not self.ascii:
            try:
                lengths = [len(line.encode()) for line in lines]
            except UnicodeEncodeError as error:
                message = f"character {error.start} of a line is half of a surrogate pair"
                raise InputError(message, reject_class="invalid_input") from error
            self.line_bytes = [0]
            at = 0
            for length in lengths:
                at += length
                self.line_bytes.append(at)
            self.wide_lines = frozenset(n for n, line in enumerate(lines, 1) if not line.isascii())
            self._utf8 = ByteOffsets(text, "utf-8")
        codec = _file_codec(encoding)
        if codec != "utf-8":
            self._file = ByteOffsets(text, codec)

    @property
    def line_count(self) -> int:
        """Lines as contracts 9 counts them: the empty rest after a last line end is none; never 0."""
        return max(1, len(self.line_starts) - 1)

    def line_of(self, char: int) -> int:
        """1-based line of a code point offset; the end of the text belongs to its last line."""
        return min(bisect_right(self.line_starts, char), self.line_count)

    def offset(self, line: int, byte_column: int) -> int:
        """Code point offset of a 1-based line and a column in UTF-8 bytes; a place past the text is its end."""
        if line >= len(self.line_bytes):
            start = self.line_bytes[-1]
        else:
            start = self.line_bytes[line - 1]
        return min(self.char_of(start + byte_column), len(self.text))

    def char_of(self, byte: int) -> int:
        """Code point offset of an offset in the text's UTF-8."""
        return byte if self._utf8 is None else self._utf8.char_of(byte)

    def column(self, line: int, byte_column: int) -> int:
        """0-based code point column of a column in UTF-8 bytes."""
        if line not in self.wide_lines:
            return byte_column
        return self.offset(line, byte_column) - self.line_starts[line - 1]

    def places(self, offsets: list[int], utf8: bytes) -> tuple[list[int], list[int]]:
        """(1-based lines, 0-based code point columns) of many offsets in the text's UTF-8 at once."""
        import numpy as np

        chars = np.asarray(offsets, dtype=np.int64)
        if not self.ascii:
            inner = np.flatnonzero((np.frombuffer(utf8, dtype=np.uint8) & 0xC0) == 0x80)
            chars = chars - np.searchsorted(inner, chars)
        starts = np.asarray(self.line_starts[: self.line_count], dtype=np.int64)
        lines = np.searchsorted(starts, chars, side="right")
        return lines.tolist(), (chars - starts[lines - 1]).tolist()

    def byte_of(self, char: int) -> int:
        """Byte offset in the file, its byte order mark counted."""
        offsets = self._file or self._utf8
        return self.mark_bytes + (char if offsets is None else offsets.byte_of(char))

    def excerpt_hash(self, start: int, end: int) -> str:
        """BLAKE3 hex digest of the UTF-8 of a slice (the evidence hash of contracts 23)."""
        return blake3(self.text[start:end].encode()).hexdigest()


def _mark_bytes(data: bytes, encoding: str) -> int:
    """Bytes of the mark that decoding dropped (the rule of `decode.decode_as`)."""
    wide = encoding.startswith(("utf-16", "utf-32"))
    return next((len(mark) for mark, name in BOMS if data.startswith(mark) and (name == encoding or not wide)), 0)


def _file_codec(encoding: str) -> str:
    name = codecs.lookup(encoding).name
    return "utf-8" if name in ("utf-8", "utf-8-sig", "ascii") else name
