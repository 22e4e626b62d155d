"""Footnotes, endnotes and comments of a Word package, and the order in which the text refers to them.

The invariant: a note comes out once, after the first block that refers to it, whatever circle of references the parts make.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from raydex.kernels.docx_parts import VAL, W, WordParts, to_int
from raydex.kernels.number_formats import format_number
from raydex.kernels.package import Relation

FOOTNOTE, ENDNOTE, COMMENT = "footnote", "endnote", "comment"
_PARTS = {FOOTNOTE: "footnotes", ENDNOTE: "endnotes", COMMENT: "comments"}
_FORMS = {FOOTNOTE: "decimal", ENDNOTE: "lowerRoman"}


@dataclass(frozen=True, slots=True)
class Note:
    """`ordinal` is its place among the notes that the text refers to, `label` its mark in the text."""

    kind: str
    ordinal: int
    label: str
    element: Any
    relations: dict[str, Relation]
    paragraph: int


class Notes:
    """Notes that were referred to wait in `waiting` until the block is complete."""

    def __init__(self, parts: WordParts) -> None:
        self._parts = parts
        self._elements: dict[str, dict[str, Any]] = {}
        self._relations: dict[str, dict[str, Relation]] = {}
        self._labels: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._forms = dict(_FORMS)
        self.waiting: deque[Note] = deque()
        self.ordinal = 0
        settings = parts.related("settings")[0]
        for kind in _FORMS if settings is not None else ():
            about = settings.find(f"{W}{kind}Pr")
            form, start = (about.find(W + "numFmt"), about.find(W + "numStart")) if about is not None else (None, None)
            if form is not None:
                self._forms[kind] = form.get(VAL, _FORMS[kind])
            if start is not None:
                self._counts[kind] = to_int(start.get(VAL), 1) - 1

    def refer(self, kind: str, identifier: str, paragraph: int, custom: str | None = None) -> str:
        """The mark of a note, which then waits to be read. A `custom` mark takes no number."""
        known = self._labels.get((kind, identifier))
        if known is not None:
            return known
        if custom is not None:
            label = custom
        elif kind == COMMENT:
            label = identifier
        else:
            count = self._counts[kind] = self._counts.get(kind, 0) + 1
            label = format_number(count, self._forms[kind])
        self._labels[kind, identifier] = label
        element = self._read(kind).get(identifier)
        if element is None:
            self._parts.losses["missing_note"] += 1
        else:
            self.ordinal += 1
            self.waiting.append(Note(kind, self.ordinal, label, element, self._relations[kind], paragraph))
        return label

    def count_unused(self) -> None:
        """Notes that nothing refers to are not shown; they are counted."""
        for kind in _PARTS:
            unused = sum((kind, identifier) not in self._labels for identifier in self._read(kind))
            if unused:
                self._parts.losses["unreferenced_notes"] += unused

    def _read(self, kind: str) -> dict[str, Any]:
        """Elements by id; separators have a type and are none."""
        if kind not in self._elements:
            root, name = self._parts.related(_PARTS[kind])
            found = self._elements[kind] = {}
            for element in root.iterchildren(W + kind) if root is not None else ():
                if element.get(W + "type", "normal") == "normal":
                    found.setdefault(element.get(W + "id", ""), element)
            self._relations[kind] = self._parts.relations(name) if name else {}
        return self._elements[kind]
