"""Strategies `fixed` and `recursive`: a document's text cut by length alone, for comparison and for text without structure.

The invariant: the chunks' own ranges tile the text of all blocks in order, as with `structure`; headings bound nothing here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from raydex.ir.document import Block
from raydex.kernels.chunk_document import add_graph, group_kind, merge_locators, part_metadata, text_blocks
from raydex.kernels.chunk_outline import Draft, Outline, make_prefix, mark_end
from raydex.kernels.chunk_sections import find_sections
from raydex.kernels.chunk_source import ChunkOptions, ChunkSource
from raydex.kernels.pack import Part
from raydex.kernels.split import Level, line_ends, overlaps, paragraph_ends, sentence_ends, split
from raydex.kernels.summary import derive_summary
from raydex.kernels.tokens import Tokenizer

GAP = "\n\n"


def chunk_fixed(source: ChunkSource, options: ChunkOptions, tokenizer: Tokenizer) -> Outline:
    """Windows of as many words as fit, wherever they end."""
    return _chunk_by_length(source, options, tokenizer, ())


def chunk_recursive(source: ChunkSource, options: ChunkOptions, tokenizer: Tokenizer) -> Outline:
    """Windows that end at a paragraph, else a line, else a sentence, else between words."""
    return _chunk_by_length(source, options, tokenizer, (paragraph_ends, line_ends, sentence_ends))


def _chunk_by_length(source: ChunkSource, options: ChunkOptions, tokenizer: Tokenizer, levels: Sequence[Level]) -> Outline:
    blocks = [block for block in text_blocks(source) if block.text]
    text = GAP.join(block.text for block in blocks)
    starts: list[int] = []
    at = 0
    for block in blocks:
        starts.append(at)
        at += len(block.text) + len(GAP)
    prefix = make_prefix(source.title, [], options, tokenizer)
    limit = options.max_tokens - tokenizer.special_tokens - prefix.reserved - options.overlap
    pieces = split(text, limit, tokenizer, levels, max_chars=options.max_chars) if text else []
    shown = overlaps(text, pieces, options.overlap, tokenizer) if options.overlap else [(0, 0)] * len(pieces)
    outline = Outline()
    for piece, (lead, lead_tokens) in zip(pieces, shown, strict=True):
        parts = _parts(blocks, starts, piece.start, piece.end)
        if not parts:
            continue
        metadata: dict[str, Any] = part_metadata(parts)
        if lead:
            metadata["repeated_chars"] = lead
        content = text[piece.start - lead : piece.end]
        outline.roots.append(
            Draft(
                "leaf",
                source.title or source.file_name,
                content,
                group_kind(parts),
                list(parts[0].block.section_path),
                merge_locators(_parts(blocks, starts, piece.start - lead, piece.end) if lead else parts),
                "length",
                source.record_id,
                derive_summary(content[lead:], options.summary_sentences),
                piece.tokens + lead_tokens,
                prefix,
                metadata,
            )
        )
    mark_end(outline.roots)
    add_graph(outline, source, find_sections(source.record_id, text_blocks(source)), None)
    return outline


def _parts(blocks: list[Block], starts: list[int], start: int, end: int) -> list[Part]:
    """The blocks' parts in a range of the joined text."""
    parts: list[Part] = []
    for at in range(bisect_right(starts, start) - 1, len(blocks)):
        if starts[at] >= end:
            break
        low, high = max(0, start - starts[at]), min(len(blocks[at].text), end - starts[at])
        if high > low:
            parts.append(Part(blocks[at], low, high, 0))
    return parts
