"""Visual lines → paragraphs with their kind: heading, list item, code or plain paragraph; headings ranked over the whole document.

Lines belong together while column, type size, weight and line distance stay the same; a line that ends although the next word would have
fitted was ended on purpose. Headings stand out from the body's type size or weight, or are named by the outline, which then decides
their level. The invariant: every line lands in exactly one paragraph, in order.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from raydex.kernels.pdf_layout import Line
from raydex.kernels.pdf_lists import ENDS, find_labels, is_next_label
from raydex.kernels.pdf_raw import BOLD, HIDDEN, ITALIC, MONO, Box
from raydex.kernels.pdf_text import Vocabulary, join_lines, plain

MAX_LEVEL = 6
LARGER = 1.1
SOLID = 1.22
WIDEST_NUMBER = 5.0  # of the type size: the gap between a heading and its number
WIDEST_TITLE = 1.7  # of the type size: the distance of two lines of one title

_BULLET = re.compile(r"([•●○▪■□◦‣⁃–—*·∙\uf0b7\uf0a7])(?:\s+|$)|(-)\s+|([•●▪■◦‣⁃\uf0b7\uf0a7])(?=\S)")
_INITIAL = re.compile(r"[A-HJ-UWYZ]\.\s")
_NUMBERED = re.compile(r"(\(?(?:\d{1,3}|[a-zA-Z]|[ivxl]{1,6})[.)])\s+\S")
_NUMBER_CELL = re.compile(r"(?:\d{1,3}(?:\.\d{1,3})*\.?|[A-Z]\.)\t[^\W\d_]")
_SECTION = re.compile(r"(?:\d{1,3}(?:\.\d{1,3})+\.?|\d{1,2}\.?|[A-Z]\.|[IVXL]{1,6}\.)\s+[^\W\d_]")


@dataclass(slots=True)
class Paragraph:
    """Lines that belong together. `breaks[i]`: the line end before line i is kept; `level` of a heading is 1-6, of a list item 0-based."""

    lines: list[Line]
    breaks: list[bool]
    kind: str = "paragraph"
    text: str = ""
    raw: str = ""
    level: int = 0
    marker: str = ""
    ordered: bool = False
    gap: float = 0.0
    outline: str = ""
    table: Any = None  # of a table: `pdf_tables.Table`
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def box(self) -> Box:
        """The box around all lines, on the upright page."""
        left, top, right, bottom = self.lines[0].box
        for line in self.lines:
            x0, y0, x1, y1 = line.box
            left = x0 if x0 < left else left
            top = y0 if y0 < top else top
            right = x1 if x1 > right else right
            bottom = y1 if y1 > bottom else bottom
        return left, top, right, bottom


@dataclass(frozen=True, slots=True)
class Body:
    """The type in which most of a document is set."""

    size: float
    bold: bool
    italic: bool
    mono: bool


def body_type(pages: list[list[Line]]) -> Body:
    exact: dict[float, int] = {}
    styles: dict[int, int] = {}
    for lines in pages:
        for line in lines:
            count, size, style = len(line.text), line.size, line.style
            exact[size] = exact.get(size, 0) + count
            styles[style] = styles.get(style, 0) + count
    sizes: Counter[float] = Counter()
    for size, count in exact.items():
        sizes[round(size * 2) / 2] += count
    if not sizes:
        return Body(10.0, False, False, False)
    total = sum(styles.values())

    def most(bit: int) -> bool:
        return 2 * sum(count for style, count in styles.items() if style & bit) > total

    size = max(sizes, key=lambda size: (sizes[size], -size))
    return Body(size, most(BOLD), most(ITALIC), most(MONO))


def title_key(text: str) -> str:
    """What two spellings of a title have in common: letters and digits, lower case."""
    return "".join(char for char in plain(text).casefold() if char.isalnum())


def paragraphs_of(lines: list[Line], titles: set[str], body: Body) -> list[Paragraph]:
    """Paragraphs of one page. `titles` are `title_key`s of the outline's entries for this page."""
    _join_numbers(lines, body)
    labels = find_labels(lines, body.mono)
    pitches = _pitches(lines)
    _set_measures(lines, pitches)
    out: list[Paragraph] = []
    current: Paragraph | None = None
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.grid is not None:
            out.append(Paragraph([line], [False], kind="table", table=line.grid))
            current = None
            at += 1
            continue
        if titles:
            count = _title_lines(lines, at, titles)
            if count:
                current = Paragraph(lines[at : at + count], [False] * count, kind="heading", outline="title")
                out.append(current)
                current = None
                at += count
                continue
        if current is not None and id(line) not in labels:
            last = current.lines[-1]
            join = _joins(current, last, line, pitches, body)
            if join:
                current.lines.append(line)
                current.breaks.append(join == 2)
                at += 1
                continue
        current = Paragraph([line], [False])
        current.gap = line.base - lines[at - 1].base if at and lines[at - 1].region == line.region else 0.0
        _mark(current, line, body, labels.get(id(line), ""))
        out.append(current)
        at += 1
    return out


def _join_numbers(lines: list[Line], body: Body) -> None:
    """A heading whose number stands apart becomes one text, in place; a row of a table has others near it."""
    for at, line in enumerate(lines):
        if line.cells != 2 or not line.parts or not _is_large(line, body) or not _NUMBER_CELL.match(line.text):
            continue
        if line.parts[2] - line.parts[1] > WIDEST_NUMBER * line.size:
            continue
        if not any(other.cells > 1 for other in (*lines[max(at - 1, 0) : at], *lines[at + 1 : at + 2])):
            line.text, line.cells, line.parts = line.text.replace("\t", " "), 1, None


def _is_large(line: Line, body: Body) -> bool:
    """Whether it is set in a type for headings."""
    return line.size >= LARGER * body.size or bool(line.style & BOLD and not body.bold)


def _pitches(lines: list[Line]) -> dict[int, float]:
    """Type size → the commonest distance of two baselines in it."""
    counts: dict[tuple[int, int], int] = {}
    for at in range(1, len(lines)):
        last, line = lines[at - 1], lines[at]
        distance = line.base - last.base
        if last.region == line.region and -0.3 < last.size - line.size < 0.3 and 0 < distance < 2.4 * line.size:
            key = (round(line.size), round(distance * 2))
            counts[key] = counts.get(key, 0) + 1
    best: dict[int, tuple[int, int]] = {}
    for (size, halves), count in counts.items():
        best[size] = max(best.get(size, (0, 0)), (count, -halves))
    return {size: -halves / 2 for size, (_, halves) in best.items()}


def _set_measures(lines: list[Line], pitches: dict[int, float]) -> None:
    """Gives lines that are set solid in one size the right edge of the widest of them."""
    start = 0
    for at in range(1, len(lines) + 1):
        if at < len(lines):
            last, line = lines[at - 1], lines[at]
            size = line.size
            if (
                line.region == last.region
                and line.cells == 1
                and last.cells == 1
                and abs(size - last.size) <= 0.08 * size
                and line.base - last.base <= SOLID * pitches.get(round(size), 1.2 * size) + 0.5
            ):
                continue
        measure = max(lines[position].x1 for position in range(start, at))
        for position in range(start, at):
            lines[position].measure = measure
        start = at


def _title_lines(lines: list[Line], at: int, titles: set[str]) -> int:
    """How many lines from `at` on spell a title of the outline; 0 when none do."""
    key = ""
    for count in range(1, 5):
        if at + count > len(lines) or (count > 1 and lines[at + count - 1].region != lines[at].region):
            return 0
        key += title_key(lines[at + count - 1].text)
        if key in titles:
            return count
        if not any(title.startswith(key) for title in titles):
            return 0
    return 0


def _joins(paragraph: Paragraph, last: Line, line: Line, pitches: dict[int, float], body: Body) -> int:
    """0: the line starts a paragraph; 1: it goes on; 2: it goes on after a line end that is kept."""
    if line.region != last.region or line.turn != last.turn:
        return 0
    size = line.size
    distance = line.base - last.base
    pitch = pitches.get(round(size), 1.2 * size)
    if line.cells > 1 and last.cells > 1:
        return 2 if distance <= 2.4 * max(pitch, size) and abs(size - last.size) < 0.25 * size else 0
    if abs(size - last.size) > 0.08 * size or (line.style ^ last.style) & (BOLD | MONO | HIDDEN):
        return 0
    if paragraph.kind == "code":
        return 2 if distance <= 2.1 * max(pitch, size) else 0
    if line.cells > 1 or last.cells > 1:
        return 0
    if distance > SOLID * pitch + 0.5 or distance < 0:
        return 0
    if _BULLET.match(line.text):
        return 0
    if _is_large(line, body) and not _is_one_title(last, line, distance):
        return 0
    if paragraph.kind == "paragraph" and paragraph.lines[0].style & BOLD and len(paragraph.lines) < 4:
        return 1
    room = last.measure - last.x1
    word = line.text.find(" ")
    needed = (line.x1 - line.x0) * ((word if word > 0 else len(line.text)) + 1) / max(len(line.text), 1)
    fitted = room > needed + 0.3 * size
    if last.text[-1] in "-\u2010\u00ad" and last.text[-2:-1].isalpha() and line.text[0].islower():
        return 1
    ended = last.text.endswith(ENDS)
    numbered = _NUMBERED.match(line.text)
    if numbered and (fitted or ended or abs(line.x0 - last.x0) > 0.8 * size):
        return 0
    beside = paragraph.kind == "list_item" and abs(line.x0 - paragraph.lines[0].x0) <= 0.2 * size
    if numbered and beside and is_next_label(paragraph.marker, numbered.group(1)):
        return 0
    if line.x0 > last.x0 + 0.8 * size and (fitted or ended) and len(paragraph.lines) + (paragraph.kind != "list_item") > 1:
        return 0
    if paragraph.kind == "list_item" and line.x0 < paragraph.lines[0].x0 - 0.5 * size and (fitted or ended):
        return 0
    if fitted:
        return 0 if ended or (line.style ^ last.style) & ITALIC else 2
    return 1


def _is_one_title(last: Line, line: Line, distance: float) -> bool:
    """Whether two lines in a type for headings may be one title: of one size, set solid, flush, centred on each other or hanging from a
    number, and the second not numbered where it need not have begun a line."""
    size = line.size
    if abs(size - last.size) > 0.03 * size or distance > WIDEST_TITLE * size:
        return False
    if _SECTION.match(line.text) and last.measure - last.x1 > 2 * size:
        return False
    if _SECTION.match(last.text) and 0 < line.x0 - last.x0 <= 5 * size:
        return True
    return min(abs(line.x0 - last.x0), abs(line.x1 - last.x1), abs(line.x0 + line.x1 - last.x0 - last.x1) / 2) <= 2 * size


def _mark(paragraph: Paragraph, line: Line, body: Body, label: str) -> None:
    """Kind of a paragraph by its first line and its label in a list, if any: code, list item or (for now) paragraph."""
    if line.style & MONO and not body.mono:
        paragraph.kind = "code"
        return
    if line.cells > 2:
        return
    if label:
        paragraph.kind, paragraph.marker, paragraph.ordered = "list_item", label, any(char.isalnum() for char in label)
        return
    bullet = _BULLET.match(line.text)
    if bullet:
        paragraph.kind, paragraph.marker = "list_item", next(filter(None, bullet.groups()))
        return
    numbered = _NUMBERED.match(line.text) if line.cells == 1 else None
    if numbered and not _INITIAL.match(line.text):  # an initial, unless others follow it
        paragraph.kind, paragraph.marker, paragraph.ordered = "list_item", numbered.group(1), True


def set_text(paragraph: Paragraph, vocabulary: Vocabulary) -> None:
    """Fills text and raw. A bullet is taken off, a number stays: readers cite it."""
    if paragraph.kind == "table":
        return
    lines = [line.text for line in paragraph.lines]
    if paragraph.kind == "code":
        left = min(line.x0 for line in paragraph.lines)
        size = max(paragraph.lines[0].size, 1.0)
        indented = [" " * round((line.x0 - left) / (0.6 * size)) + line.text for line in paragraph.lines]
        paragraph.text = plain("\n".join(indented)).replace("\t", "    ")
        return
    if paragraph.kind == "list_item" and not paragraph.ordered:
        lines[0] = lines[0][len(paragraph.marker) :].lstrip()
        if not lines[0] and len(lines) > 1:
            lines = lines[1:]
    breaks = paragraph.breaks if any(paragraph.breaks) else None
    paragraph.text, paragraph.raw = join_lines(lines, breaks, vocabulary)
    if paragraph.lines[0].cells > 1 and paragraph.kind == "paragraph":
        paragraph.metadata["tabular"] = True


def rank_headings(pages: list[list[Paragraph]], outline: list[dict[str, tuple[str, int]]], body: Body) -> None:
    """Turns paragraphs into headings and sets their levels: by the outline where it names them, else by the rank of size and weight.

    `outline[i]` maps title keys of page i to (title, level from 1).
    """
    candidates: list[tuple[Paragraph, tuple[float, bool, bool]]] = []
    told: dict[tuple[float, bool, bool], int] = {}
    for paragraphs, titles in zip(pages, outline, strict=True):
        for paragraph in paragraphs:
            named = titles.get(title_key(paragraph.text)) if titles and len(paragraph.text) < 500 else None
            if named is None and not _stands_out(paragraph, body):
                if paragraph.kind == "heading":
                    paragraph.kind = "paragraph"
                continue
            line = paragraph.lines[0]
            style = (round(line.size * 2) / 2, bool(line.style & BOLD), bool(line.style & ITALIC))
            paragraph.kind = "heading"
            candidates.append((paragraph, style))
            if named is not None:
                paragraph.outline, paragraph.level = named
                told[style] = min(told.get(style, MAX_LEVEL), named[1])
            else:
                paragraph.outline = ""
    ranks = {style: min(rank, MAX_LEVEL) for rank, style in enumerate(sorted({style for _, style in candidates}, key=_weight), 1)}
    if told:
        ranks = _between(ranks, told)
    for paragraph, style in candidates:
        if not paragraph.outline:
            paragraph.level = ranks[style]


def _weight(style: tuple[float, bool, bool]) -> tuple[float, bool, bool]:
    size, bold, italic = style
    return -size, not bold, italic


def _between(ranks: dict[tuple[float, bool, bool], int], told: dict[tuple[float, bool, bool], int]) -> dict[tuple[float, bool, bool], int]:
    """Levels of styles that the outline does not name: one below the nearest heavier style that it names."""
    out: dict[tuple[float, bool, bool], int] = {}
    above = 0
    for style in sorted(ranks, key=_weight):
        if style in told:
            above = out[style] = told[style]
        else:
            out[style] = max(1, min(MAX_LEVEL, above + 1))
    return out


def _stands_out(paragraph: Paragraph, body: Body) -> bool:
    lines, text = paragraph.lines, paragraph.text
    if paragraph.kind in ("code", "table") or len(lines) > 4 or len(text) > 250 or any(line.cells > 1 for line in lines):
        return False
    if paragraph.kind == "list_item" and not paragraph.ordered:
        return False
    if not any(char.isalpha() for char in text):
        return False
    line = lines[0]
    if line.turn != 0 or line.style & HIDDEN:
        return False
    if line.size >= LARGER * body.size and line.size >= body.size + 0.9:
        return not (len(text) > 120 and text.endswith("."))
    if line.size < 0.85 * body.size or text.endswith((",", ";")):
        return False
    if line.style & BOLD and not body.bold:
        return len(lines) <= 2 and len(text) <= 120
    if line.style & ITALIC and not body.italic:
        short = len(lines) == 1 and len(text) <= 60 and not text.endswith((".", ":", "?", "!")) and text[0].isupper()
        return short and line.right - line.x1 > 0.2 * (line.right - line.x0) and paragraph.gap > 1.3 * line.size
    return False


def nest_items(paragraphs: list[Paragraph]) -> None:
    """Levels of list items by their indentation; a heading, another column or another page starts anew."""
    stack: list[float] = []
    region = -1
    for paragraph in paragraphs:
        line = paragraph.lines[0]
        if paragraph.kind == "heading" or line.region != region:
            stack, region = [], line.region
        if paragraph.kind != "list_item":
            continue
        near = 0.5 * line.size
        while stack and stack[-1] > line.x0 + near:
            stack.pop()
        if not stack or line.x0 > stack[-1] + near:
            stack.append(line.x0)
        paragraph.level = len(stack) - 1
