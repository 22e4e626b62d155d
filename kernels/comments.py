"""Lines above a definition → where the comment that belongs to it begins, by the comment signs of its language.

The invariant: code never counts as a comment. A line counts when nothing but a comment stands on it, a block when nothing stands before
its opening or behind its end; a language without an entry in `SIGNS` has no comments.
"""

from __future__ import annotations

from dataclasses import dataclass

from raydex.ir.locator import LineIndex


@dataclass(frozen=True, slots=True)
class CommentSigns:
    """What opens a comment that ends with its line, and what opens and closes a block (empty: the language has none)."""

    line: str
    opening: str = ""
    closing: str = ""


_C = CommentSigns("//", "/*", "*/")
SIGNS = {"python": CommentSigns("#"), "typescript": _C, "tsx": _C}


def comment_start(text: str, lines: LineIndex, line: int, floor: int, language: str) -> int:
    """Start of the comment right above a line (1-based), never before `floor`; the line's own start where there is none."""
    signs = SIGNS.get(language)
    first = line
    while signs is not None and first > 1 and lines.start_of(first - 1) >= floor:
        if _shown(text, lines, first - 1).startswith(signs.line):
            first -= 1
            continue
        opened = _block_start(text, lines, first - 1, floor, signs) if signs.opening else 0
        if opened == 0:
            break
        first = opened
    return lines.start_of(first)


def _block_start(text: str, lines: LineIndex, line: int, floor: int, signs: CommentSigns) -> int:
    """The line that opens the block which `line` closes; 0 where it closes none, or code stands beside it."""
    shown = _shown(text, lines, line)
    if not shown.endswith(signs.closing):
        return 0
    shown = shown[: -len(signs.closing)]
    while signs.closing not in shown:
        if signs.opening in shown:
            return line if shown.startswith(signs.opening) else 0
        line -= 1
        if line < 1 or lines.start_of(line) < floor:
            break
        shown = _shown(text, lines, line)
    return 0


def _shown(text: str, lines: LineIndex, line: int) -> str:
    end = lines.start_of(line + 1) if line < len(lines) else len(text)
    return text[lines.start_of(line) : end].strip()
