"""What a parser is asked: one file's bytes and the names that its ids are made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from raydex.kernels.limits import Limits


@dataclass(frozen=True, slots=True)
class ParseRequest:
    """`path` is POSIX and relative to the source's root; `repository` the source name where there is no repository.

    `pages` (first, last; 1-based inclusive) asks for a page range of a PDF: the fan-out of long files.
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
