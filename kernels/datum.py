"""A tree of spans (objects, lists, scalars with their places in the source) → drafts, cut where the structure allows (seed 3 §3).

The rule is the one of `json_data`: every element of the outermost list and every object or list below the outermost object is a block of
its own, neighbouring scalars of an object share one, and what is larger than `PIECE` is opened in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from raydex.kernels.drafts import Draft

PIECE = 4_000  # characters of one block, where structure allows
MANY = 10_000  # a container with more children shares blocks between them


@dataclass(slots=True)
class Span:
    """A value. `start`, `end` are code points; `children` are (name, start of the member, value), None for a scalar.

    `name` is the key as its parser reads it, or the index of a list. `metadata` goes to the block that holds the value alone.
    """

    start: int
    end: int
    children: list[tuple[str, int, Span]] | None = None
    is_list: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)


def escape(name: str) -> str:
    """A name as a step of an RFC 6901 pointer."""
    return name.replace("~", "~0").replace("/", "~1")


class DatumDrafts:
    """Drafts of the spans of one text, in order."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.language = language
        self.drafts: list[Draft] = []

    def add(self, span: Span, pointer: str = "", section: list[str] | None = None) -> None:
        """A whole document: its outermost container is always opened."""
        section = section or []
        if span.children:
            self._open(span, pointer, section)
        else:
            self._emit(span.start, span.end, pointer, section, span.metadata)

    def _open(self, span: Span, pointer: str, section: list[str]) -> None:
        assert span.children is not None
        shared = len(span.children) > MANY
        run: tuple[int, int] | None = None
        for name, start, value in span.children:
            size = value.end - start
            large = bool(value.children) and size > PIECE
            alone = large or size > PIECE or (not shared and (span.is_list or value.children is not None))
            if run is not None and (alone or value.end - run[0] > PIECE):
                self._emit(*run, pointer, section, span.metadata)
                run = None
            step = f"[{name}]" if span.is_list else name
            below, inside = f"{pointer}/{escape(name)}", [*section, step]
            if large:
                self._open(value, below, inside)
            elif alone:
                self._emit(start, value.end, below, inside, value.metadata)
            else:
                run = (start if run is None else run[0], value.end)
        if run is not None:
            self._emit(*run, pointer, section, span.metadata)

    def _emit(self, start: int, end: int, pointer: str, section: list[str], metadata: dict[str, Any]) -> None:
        text = self.text[start:end].rstrip()
        if text:
            about = {"language": self.language, **metadata}
            self.drafts.append(Draft("code", start, start + len(text), text, about, place={"pointer": pointer}, section=section))
