"""Blocks of one section → groups of parts, each group the text of one leaf: neighbours together, long blocks cut inside.

The invariant: the parts' own ranges tile every block in order. A block is cut only when it alone is over the limit: tables between rows
(the header rows are shown again, and values that span into the part), code between lines, text between sentences. Two comments never
share a leaf: each has its own author. Nor does a mail's new text with the mails below it; a quotation stays with its answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from raydex.ir.document import Block
from raydex.kernels.chunk_source import ChunkOptions
from raydex.kernels.split import line_ends, overlaps, sentence_ends, split
from raydex.kernels.tables import values_above
from raydex.kernels.tokens import Tokenizer


@dataclass(slots=True)
class Part:
    """A range of a block's text. `again` is text shown before it that belongs to an earlier part: header rows, spanning values, overlap.

    `tokens` counts `again` too. `cut` says that the block goes on behind the part.
    """

    block: Block
    start: int
    end: int
    tokens: int
    again: str = ""
    cut: bool = False

    @property
    def own(self) -> str:
        return self.block.text if self.start == 0 and self.end == len(self.block.text) else self.block.text[self.start : self.end]


@dataclass(slots=True)
class Group:
    """The parts of one leaf."""

    parts: list[Part] = field(default_factory=list)
    tokens: int = 0
    chars: int = 0

    def add(self, part: Part) -> None:
        self.parts.append(part)
        self.tokens += part.tokens
        self.chars += len(part.again) + part.end - part.start + 2

    @property
    def reason(self) -> str:
        return "length" if self.parts[-1].cut else "structure"


def pack(blocks: list[Block], limit: int, whole: int, options: ChunkOptions, tokenizer: Tokenizer) -> list[Group]:
    """Groups of at most `limit` tokens; a block (or a table row) over it but within `whole`, the room without a prefix, stays whole."""
    history = _history(blocks)
    spans = (blocks,) if history == len(blocks) else (blocks[:history], blocks[history:])
    return [group for span in spans for group in _pack(span, limit, whole, options, tokenizer)]


def _history(blocks: list[Block]) -> int:
    """Where the mails begin that a mail quotes below all that it says itself; the number of blocks where there are none, or nothing but
    headings and header fields stands before them."""
    first = at = len(blocks)
    while at and ("quote_level" in (about := blocks[at - 1].metadata) or about.get("signature") or blocks[at - 1].kind == "image"):
        at -= 1
        first = at if "quote_level" in about else first
    says = any(block.kind != "heading" and block.metadata.get("role") != "headers" for block in blocks[:first])
    return first if says else len(blocks)


def _pack(blocks: list[Block], limit: int, whole: int, options: ChunkOptions, tokenizer: Tokenizer) -> list[Group]:
    counts = [tokenizer.count(block.text) for block in blocks]
    groups: list[Group] = []
    current = Group()
    for first, last in _units(blocks, counts, limit):
        header = carried_header(blocks[first], limit, options, tokenizer)
        if current.parts and (header or _speaks_anew(current, blocks[first])):
            groups.append(current)
            current = Group()
        if header:
            room = whole - tokenizer.count(header)
            if counts[first] <= room and len(blocks[first].text) + len(header) + 2 <= options.max_chars:
                current.add(Part(blocks[first], 0, len(blocks[first].text), whole - room + counts[first], header))
                continue
        tokens = sum(counts[first:last])
        chars = sum(len(block.text) + 2 for block in blocks[first:last])
        fits = tokens <= (whole if last - first == 1 else limit) and chars <= options.max_chars
        if current.parts:
            headed = _leads_in(current)
            joins = tokens + current.tokens <= (whole if headed else limit) and chars + current.chars <= options.max_chars
            if not joins and (fits or not headed):
                groups.append(current)
                current = Group()
            fits = fits or joins
        if fits:
            for at in range(first, last):
                current.add(Part(blocks[at], 0, len(blocks[at].text), counts[at]))
            continue
        parts = cut_block(blocks[first], limit, whole, options, tokenizer, limit - current.tokens if current.parts else None)
        if current.parts and parts[0].end == 0:
            groups.append(current)
            current = Group()
        for part in parts:
            if part.end == 0:
                continue
            current.add(part)
            if part.cut:
                groups.append(current)
                current = Group()
    if current.parts:
        groups.append(current)
    _fill_last(groups, limit, options)
    return groups


def _units(blocks: list[Block], counts: list[int], limit: int) -> list[tuple[int, int]]:
    """Ranges of blocks that stay together: a paragraph with the list it leads into, or with its first item where the list is long."""
    units: list[tuple[int, int]] = []
    at = 0
    while at < len(blocks):
        end = at + 1
        leads = blocks[at].kind == "heading" or (
            blocks[at].kind == "paragraph" and end < len(blocks) and voice(blocks[at]) == voice(blocks[end])
        )
        if leads and end < len(blocks) and blocks[end].kind == "list_item":
            end += 1
            while end < len(blocks) and blocks[end].kind == "list_item" and voice(blocks[end]) == voice(blocks[end - 1]):
                end += 1
            if sum(counts[at:end]) > limit:
                end = at + 2 if counts[at] + counts[at + 1] <= limit else at + 1
        units.append((at, end))
        at = end
    return units


def voice(block: Block) -> str | None:
    """The comment that a block is from; None for what is no comment. Notes beside a text belong to it."""
    if block.kind == "note":
        return None
    return block.metadata.get("comment_id") or block.metadata.get("comment")


def _speaks_anew(group: Group, block: Block) -> bool:
    """Whether a comment begins or ends between the group and the block."""
    return not _leads_in(group) and voice(group.parts[-1].block) != voice(block)


def carried_header(block: Block, limit: int, options: ChunkOptions, tokenizer: Tokenizer) -> str:
    """The header rows of a table that began in an earlier block, and the columns of records, as a line to show before its rows; empty
    where there are none or they would take half of the room."""
    if block.kind != "table":
        return ""
    about = block.metadata
    rows = about.get("header") or ([about["columns"]] if about.get("columns") and about.get("cells") else [])
    gap = " | " if about.get("header") else about.get("delimiter") or ","
    lines = [gap.join(str(cell) for cell in row) for row in rows if any(row)]
    header = "".join(f"{line}\n" for line in lines)
    return header if len(header) * 2 <= options.max_chars and tokenizer.count(header) * 2 <= limit else ""


def _leads_in(group: Group) -> bool:
    """Whether the group holds only what should not stand alone: headings."""
    return all(part.block.kind == "heading" for part in group.parts)


def cut_block(block: Block, limit: int, whole: int, options: ChunkOptions, tokenizer: Tokenizer, first: int | None) -> list[Part]:
    """Parts of a block over the limit. With `first`, a smaller room for the first part, that part may be empty (end = 0)."""
    text = block.text
    if block.kind == "table":
        parts = _cut_table(block, limit, whole, options, tokenizer, first)
        if parts:
            return parts
    levels = (line_ends,) if block.kind in ("code", "table") else (sentence_ends, line_ends)
    pieces = split(text, limit - options.overlap, tokenizer, levels, max_chars=options.max_chars, first=first, least=options.min_tokens)
    if options.overlap:
        return [
            Part(block, p.start, p.end, p.tokens + tokens, text[p.start - chars : p.start], p.end < len(text))
            for p, (chars, tokens) in zip(pieces, overlaps(text, pieces, options.overlap, tokenizer), strict=True)
        ]
    return [Part(block, p.start, p.end, p.tokens, "", p.end < len(text)) for p in pieces]


def _cut_table(block: Block, limit: int, whole: int, options: ChunkOptions, tokenizer: Tokenizer, first: int | None) -> list[Part]:
    """Parts between rows; each but the first shows the header rows again, and that one too where an earlier block holds them; behind them
    the values that rows of an earlier part span into its first one. Nothing when the header leaves no room for rows."""
    text = block.text
    bounds = [0, *line_ends(text)]
    if bounds[-1] < len(text):
        bounds.append(len(text))
    carried = carried_header(block, limit, options, tokenizer)
    head_start, head_end = (0, 0) if carried else _header_range(block, bounds)
    header = (carried or text[head_start:head_end]).rstrip("\n")
    header_tokens = tokenizer.count(header)
    if header_tokens * 2 > limit or len(header) * 2 > options.max_chars:
        return []
    again = f"{header}\n" if header else ""
    rows = [(line, start, end, tokenizer.count(text[start:end])) for line, (start, end) in enumerate(pairwise(bounds)) if start >= head_end]
    lead_tokens = header_tokens if carried else tokenizer.count(text[:head_end])
    if lead_tokens * 2 > limit or head_end * 2 > options.max_chars or not rows:
        return []
    above = _values_above(block, bounds)

    def lead(line: int) -> tuple[str, int]:
        """What a part that begins at a line shows again, and its tokens; values only where they leave half of the room."""
        values = above[line] if line < len(above) else ""
        size = tokenizer.count(values) if values else 0
        fits = (header_tokens + size) * 2 <= limit and (len(again) + len(values) + 1) * 2 <= options.max_chars
        return (f"{again}{values}\n", header_tokens + size) if values and fits else (again, header_tokens)

    parts: list[Part] = []
    shown, base = again if carried else "", lead_tokens
    start, end, tokens = 0, head_end, base
    bound = limit
    if first is not None:
        bound = first
        if lead_tokens + rows[0][3] > first:
            parts.append(Part(block, 0, 0, 0))
            bound = limit
    holds_row = False
    for line, row_start, row_end, row_tokens in rows:
        chars = row_end - start + max(len(again), len(shown))
        if holds_row and (tokens + row_tokens > bound or chars > options.max_chars):
            parts.append(Part(block, start, end, tokens, shown, True))
            shown, base = lead(line)
            start, tokens, bound = row_start, base, limit
            chars = row_end - start + len(shown)
            holds_row = False
        if not holds_row and (tokens + row_tokens > whole or chars > options.max_chars):
            following = lead(line)
            room = limit - max(base, following[1])
            pieces = split(text[row_start:row_end], room, tokenizer, (_cell_ends, sentence_ends), max_chars=options.max_chars // 2)
            for piece in pieces:
                parts.append(Part(block, start, row_start + piece.end, piece.tokens + base, shown, True))
                start = row_start + piece.end
                shown, base = following
            shown, base = lead(line + 1)
            end, tokens = row_end, base
            continue
        tokens += row_tokens
        end = row_end
        holds_row = True
    if end > start:
        parts.append(Part(block, start, end, tokens, shown, False))
    parts[-1].cut = False
    return parts


def _values_above(block: Block, bounds: list[int]) -> list[str]:
    """For each line of a table's text the values that rows above span into it; nothing where no cell does or the lines are not its rows."""
    rows = block.metadata.get("rows") or []
    if not any(cell.get("row_span", 1) > 1 for row in rows for cell in row):
        return []
    caption = block.metadata.get("caption") or ""
    values = [*[""] * (caption.count("\n") + 1 if caption else 0), *values_above(rows, block.metadata.get("header_rows", 0))]
    return values if len(values) == len(bounds) - 1 else []


def _cell_ends(text: str) -> list[int]:
    ends: list[int] = []
    at = text.find(" | ")
    while at >= 0:
        ends.append(at + 3)
        at = text.find(" | ", at + 3)
    return ends


def _header_range(block: Block, bounds: list[int]) -> tuple[int, int]:
    """Character range of the header rows in a table's text: behind the caption; empty when the lines are not those of the rows."""
    rows = block.metadata.get("rows") or []
    caption = block.metadata.get("caption") or ""
    shown = [at for at, row in enumerate(rows) if any(cell["text"] for cell in row)]
    above = caption.count("\n") + 1 if caption else 0
    if len(bounds) - 1 != above + len(shown):
        return 0, 0
    headers = sum(1 for at in shown if at < block.metadata.get("header_rows", 0))
    if headers == 0 or headers >= len(shown):
        return 0, 0
    return bounds[above], bounds[above + headers]


def _fill_last(groups: list[Group], limit: int, options: ChunkOptions) -> None:
    """A small last group takes whole parts from the one before, while that one stays the larger and keeps a part besides its heading."""
    if len(groups) < 2:
        return
    before, last = groups[-2], groups[-1]
    if last.parts[0].again or voice(before.parts[-1].block) != voice(last.parts[0].block):
        return
    while last.tokens < options.min_tokens and len(before.parts) > 1 and before.parts[-2].block.kind != "heading":
        part = before.parts[-1]
        if part.block.kind == "list_item" and before.parts[-2].block.kind == "paragraph":
            return
        size = len(part.again) + part.end - part.start + 2
        if part.cut or last.tokens + part.tokens > min(limit, before.tokens - part.tokens) or last.chars + size > options.max_chars:
            return
        before.parts.pop()
        before.tokens -= part.tokens
        before.chars -= size
        last.parts.insert(0, part)
        last.tokens += part.tokens
        last.chars += size
