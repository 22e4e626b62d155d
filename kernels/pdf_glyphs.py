"""Glyphs of one page → glyphs without reprints → segments: the slow way, for pages on which glyphs lie over each other.

Fake bold prints a glyph two or three times, a fraction of a point apart; a shadow does the same. The invariant: only a glyph whose origin
lies within `SAME` times the type size of an equal glyph is a reprint, so that real doubles ("11", "ll"), an advance apart, all stay.
"""

from __future__ import annotations

from typing import NamedTuple

SAME = 0.1
WORD_GAP = 0.15
LINE_SHIFT = 0.3


class Glyph(NamedTuple):
    """A character with text, in page space (y upward): origin, box, extent along its direction, direction (unit vector), size, index."""

    char: str
    x: float
    y: float
    box: tuple[float, float, float, float]
    start: float
    end: float
    dx: float
    dy: float
    size: float
    at: int


def drop_reprints(glyphs: list[Glyph]) -> tuple[list[Glyph], int]:
    """(glyphs that stay, in order; count of visible ones dropped)."""
    cells: dict[tuple[str, int, int], list[Glyph]] = {}
    kept: list[Glyph] = []
    dropped = 0
    for glyph in glyphs:
        near = max(SAME * glyph.size, 0.05)
        # one grid per power of two of the size, so that equal glyphs of nearly equal size meet in it
        cell = 2.0 ** max(-4, min(10, round(near).bit_length()))
        column, row = int(glyph.x // cell), int(glyph.y // cell)
        reprint = False
        for i in (column - 1, column, column + 1):
            for j in (row - 1, row, row + 1):
                for other in cells.get((glyph.char, i, j), ()):
                    if abs(other.x - glyph.x) <= near and abs(other.y - glyph.y) <= near and 0.8 < other.size / (glyph.size or 1) < 1.25:
                        reprint = True
        if not reprint:
            cells.setdefault((glyph.char, column, row), []).append(glyph)
            kept.append(glyph)
        elif not glyph.char.isspace():
            dropped += 1
    return kept, dropped


def set_glyphs(glyphs: list[Glyph], cut: float) -> list[tuple[str, tuple[float, float, float, float], int, int]]:
    """Segments (text, box, first and last character index); a gap of `cut` sizes, a shift of baseline or a step back ends one."""
    out = []
    text: list[str] = []
    run: list[Glyph] = []

    def close() -> None:
        if run:
            box = (min(g.box[0] for g in run), min(g.box[1] for g in run), max(g.box[2] for g in run), max(g.box[3] for g in run))
            out.append(("".join(text), box, run[0].at, run[-1].at))
        text.clear()
        run.clear()

    blank = False
    for glyph in glyphs:
        if glyph.char.isspace():
            blank = True
            continue
        if run:
            last = run[-1]
            size = max(last.size, glyph.size)
            gap = glyph.start - last.end
            shift = abs((glyph.y - last.y) * last.dx - (glyph.x - last.x) * last.dy)
            turned = glyph.dx * last.dx + glyph.dy * last.dy < 0.98
            if turned or shift > LINE_SHIFT * size or gap > cut * size or gap < -0.5 * size:
                close()
            elif blank or gap > WORD_GAP * size:
                text.append(" ")
        text.append(glyph.char)
        run.append(glyph)
        blank = False
    close()
    return out
