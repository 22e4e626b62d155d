"""The HTML that Surya's model answers with → blocks with a box and lines of text.

A `div` with `data-bbox` is a block; breaks, paragraphs, items and rows end a line, and cells of a row stand apart by a tab. The invariant:
each character of text is in one line, in order; text outside of all blocks has no box. What the model makes up is never markup here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from raydex.kernels.ocr import Box

_ENDS_LINE = frozenset(("br", "p", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "caption", "pre", "table", "ul", "ol"))
_CELLS = frozenset(("td", "th"))


@dataclass(slots=True)
class SuryaBlock:
    label: str
    box: Box | None
    lines: list[str] = field(default_factory=list)


def read_blocks(text: str) -> list[SuryaBlock]:
    """Blocks that hold text."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    reader.end_line()
    return [block for block in reader.blocks if block.lines]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[SuryaBlock] = []
        self._inner = 0  # divs open inside the block at hand
        self._open: SuryaBlock | None = None
        self._pieces: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "div":
            found = dict(attributes)
            box = read_box(found.get("data-bbox") or "")
            if box is not None or self._open is None:
                self.end_line()
                self._open = SuryaBlock(found.get("data-label") or "", box)
                self.blocks.append(self._open)
                self._inner = 0
            else:
                self._inner += 1
                self.end_line()
        elif tag in _ENDS_LINE:
            self.end_line()
        elif tag in _CELLS and self._pieces:
            self._pieces.append("\t")

    def handle_endtag(self, tag: str) -> None:
        if tag in _ENDS_LINE:
            self.end_line()
        elif tag == "div" and self._open is not None:
            self.end_line()
            if self._inner:
                self._inner -= 1
            else:
                self._open = None

    def handle_data(self, data: str) -> None:
        self._pieces.append(data)

    def end_line(self) -> None:
        cells = [" ".join(cell.split()) for cell in "".join(self._pieces).split("\t")]
        self._pieces.clear()
        if not any(cells):
            return
        if self._open is None:
            self._open = SuryaBlock("", None)
            self.blocks.append(self._open)
        self._open.lines.append("\t".join(cells))


def read_box(text: str) -> Box | None:
    """Four whole numbers of at most four digits; None for anything else."""
    numbers = text.split()
    if len(numbers) != 4 or not all(number.isascii() and number.isdigit() and len(number) < 5 for number in numbers):
        return None
    x0, y0, x1, y1 = (float(number) for number in numbers)
    return x0, y0, x1, y1
