"""Drafts and the boxes that unfold among them → sections that end with their box: what stands below it belongs to the section above it."""

from __future__ import annotations

from raydex.kernels.decode import clean
from raydex.kernels.drafts import Draft

DEEP = 8  # boxes in boxes that have sections of their own; further ones share those of the last

Span = tuple[int, int]  # numbers of a box's first draft and of the one behind its last


def end_sections(drafts: list[Draft], boxes: list[Span]) -> None:
    """Sets `section` where there are boxes; a heading inside of one closes no section outside."""
    waiting = sorted((start, -end) for start, end in boxes if start < end)[::-1]
    if not waiting:
        return
    headings: list[tuple[int, str]] = []
    inside: list[tuple[int, int]] = []  # of each box: where it ends, and how many headings stand above it
    for at, draft in enumerate(drafts):
        while inside and inside[-1][0] <= at:
            del headings[inside.pop()[1] :]
        while waiting and waiting[-1][0] <= at:
            end = -waiting.pop()[1]
            if len(inside) < DEEP:
                inside.append((end, len(headings)))
        if draft.kind == "heading" and draft.text.strip():
            level, kept = draft.metadata["level"], inside[-1][1] if inside else 0
            while len(headings) > kept and headings[-1][0] >= level:
                headings.pop()
            headings.append((level, clean(draft.text)))
        draft.section = [text for _, text in headings]
