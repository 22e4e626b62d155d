"""Whether lines that stand side by side are columns of running text, each to be read to its end, or rows of a table or form.

Rows of cells and lines of columns may stand on the same heights and are told apart by what is written: text runs on from line to line and
fills its column, cells are short and each begins anew. The invariant: the answer does not depend on the order of the lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from raydex.kernels.ocr import OcrLine
from raydex.kernels.page_text import Row, row_text, rows_of

LEAST_ROWS = 3
LEAST_FILL = 0.45  # of the column's width, by its mean row
RUNNING_FILL = 0.7
RUNNING_ROWS = 0.4  # share of the rows that go on with a small letter
LEAST_CHARS = 15  # a row; more where the rows of both sides stand on the same heights, fewer where the text is seen to run on
ALIGNED_CHARS, RUNNING_CHARS = 25, 8
_WIDE = "\u2e80"  # from here on a character is about as wide as two letters


def are_columns(left: Sequence[OcrLine], right: Sequence[OcrLine]) -> bool:
    """Each side may itself be several columns. What stands above or below all of the other side says nothing."""
    sides = _beside(left, right), _beside(right, left)
    bands = [rows_of(band) for side in sides for band in _bands(side)]
    apart = sum(len(rows) for rows in bands)
    aligned = apart - len(rows_of([*sides[0], *sides[1]]))
    if all(_runs_on(rows) for rows in bands):
        least = RUNNING_CHARS
    else:
        least = ALIGNED_CHARS if 3 * aligned > apart else LEAST_CHARS
    return bool(sides[0] and sides[1]) and all(_is_column(rows, least) for rows in bands)


def runs_on(lines: Sequence[OcrLine]) -> bool:
    """Whether the lines of one column are certainly running text."""
    return _runs_on(rows_of(lines))


def _beside(lines: Sequence[OcrLine], others: Sequence[OcrLine]) -> list[OcrLine]:
    top, bottom = min(line.box[1] for line in others), max(line.box[3] for line in others)
    return [line for line in lines if line.box[3] > top and line.box[1] < bottom]


def _bands(lines: Sequence[OcrLine]) -> list[list[OcrLine]]:
    """Lines parted where nothing stands from the topmost to the lowest of them."""
    out: list[list[OcrLine]] = []
    right = 0.0
    for line in sorted(lines, key=lambda line: (line.box[0], line.box[1])):
        if out and line.box[0] < right:
            out[-1].append(line)
        else:
            out.append([line])
        right = max(right, line.box[2]) if len(out[-1]) > 1 else line.box[2]
    return out


def _is_column(rows: list[Row], least: int) -> bool:
    lines = [line for row in rows for line in row]
    size = sum(2 if char >= _WIDE else 1 for line in lines for char in line.text)
    return len(rows) >= LEAST_ROWS and len(lines) <= 1.4 * len(rows) and size >= least * len(rows) and _fill(lines, len(rows)) >= LEAST_FILL


def _runs_on(rows: list[Row]) -> bool:
    """The rows fill their column, the last one aside, and words go on with small letters; but not all of them, as entries of a list may."""
    texts = [row_text(row) for row in rows]
    small = sum(text[:1].islower() for text in texts[1:])
    if len(rows) < LEAST_ROWS or small < RUNNING_ROWS * (len(rows) - 1) or (texts[0][:1].islower() and small == len(rows) - 1):
        return False
    return _fill([line for row in rows[:-1] for line in row], len(rows) - 1) >= RUNNING_FILL


def _fill(lines: list[OcrLine], rows: int) -> float:
    extent = max(line.box[2] for line in lines) - min(line.box[0] for line in lines)
    return sum(line.box[2] - line.box[0] for line in lines) / (rows * max(extent, 1.0))
