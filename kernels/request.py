"""What a parser is asked: one file's bytes and the names that its ids are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from raydex.ir.parsed import Member
from raydex.kernels.limits import Limits
from raydex.kernels.segment import Segment

ARCHIVES = frozenset(("application/zip", "application/x-tar", "application/gzip", "application/x-bzip2", "application/x-xz"))


class Nesting(NamedTuple):
    """The containers around a file: archives, and those that hold what they hold as it is (mails, mailboxes, exports)."""

    archives: int = 0
    others: int = 0

    def inside(self, media_type: str) -> Nesting:
        """That of a member of a container of this type."""
        return Nesting(self.archives + 1, self.others) if media_type in ARCHIVES else Nesting(self.archives, self.others + 1)

    def too_deep(self, limits: Limits) -> str:
        """Why what stands so deep is not read; empty where it may be."""
        if self.archives > limits.nesting:
            return f"archives nested deeper than limits.nesting ({limits.nesting})"
        if self.others > limits.parts_depth:
            return f"mails nested deeper than limits.parts_depth ({limits.parts_depth})"
        return ""


OUTERMOST = Nesting()


@dataclass(frozen=True, slots=True)
class ParseRequest:
    """`path` is POSIX and relative to the source's root; `repository` the source name where there is no repository.

    `pages` (first, last; 1-based inclusive) asks for a page range of a PDF: the fan-out of long files. `wanted` asks for the pixels of
    these pages or frames (`pixels`; None: of the one image that the file is), `side` for a copy whose long side is at most that
    (`caption_image`). `nesting` counts the containers around a member; `inside` says where in the bytes it lies when it is no file of its
    own; `emit` takes the file's members as they come. `measure`: say by an event when too little was found (`too_little`). `segment`: the
    bytes are a part of a streamed file.
    """

    record_id: str
    content_hash: str
    path: str
    media_type: str
    data: bytes
    workspace: str = "default"
    repository: str = ""
    limits: Limits = field(default_factory=Limits)
    pages: tuple[int, int] | None = None
    wanted: tuple[int | None, ...] = ()
    side: int = 0
    nesting: Nesting = OUTERMOST
    inside: str = ""
    segment: Segment | None = None
    emit: Callable[[Member], None] | None = field(default=None, repr=False, compare=False)
    measure: bool = False
