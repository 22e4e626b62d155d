"""Bytes `start` to `end` of a file, with what stands before them: a segment of a streamed file as the fragment of a URI.

`file:///data.csv#bytes=0-1048576;char=0;line=0` names the bytes where the file lies, `cas:HASH#…` those of the kept original. The
invariant: a locator inside a segment counts from the beginning of the whole file, and `inside` turns it into one of the segment's own text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from raydex.ir.locator import Locator

_FRAGMENT = re.compile(r"(?P<uri>[^#]*)#bytes=(?P<start>\d{1,18})-(?P<end>\d{1,18});char=(?P<char>\d{1,18});line=(?P<line>\d{1,18})")


@dataclass(frozen=True, slots=True)
class FileRange:
    """`char` code points and `line` lines stand before byte `start`; `end` is exclusive."""

    start: int
    end: int
    char: int = 0
    line: int = 0

    def of(self, uri: str) -> str:
        """The URI of these bytes of the file at `uri`."""
        return f"{uri}#bytes={self.start}-{self.end};char={self.char};line={self.line}"

    def inside(self, place: Locator) -> Locator:
        """A place in the file as one in the text of these bytes."""
        char = (place.char[0] - self.char, place.char[1] - self.char) if place.char else None
        line = (place.line[0] - self.line, place.line[1] - self.line) if place.line else None
        return replace(place, char=char, line=line)

    def outside(self, place: Locator) -> Locator:
        """A place in the text of these bytes as one in the file."""
        char = (place.char[0] + self.char, place.char[1] + self.char) if place.char else None
        line = (place.line[0] + self.line, place.line[1] + self.line) if place.line else None
        return replace(place, char=char, line=line)


def split_range(uri: str) -> tuple[str, FileRange | None]:
    """(URI of the whole file, the range that the fragment names or None)."""
    found = _FRAGMENT.fullmatch(uri)
    if found is None:
        return uri, None
    start, end, char, line = (int(found[name]) for name in ("start", "end", "char", "line"))
    return found["uri"], FileRange(start, end, char, line)
