"""Strategies `fixed` and `recursive`: a document's text cut by length alone, for comparison and for text without structure.

The invariant: the chunks' own ranges tile the text of all blocks in order, as with `structure`; headings bound nothing here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from raydex.kernels.chunk_document import add_graph, find_sections, group_kind, merge_locators, part_metadata, text_blocks
from raydex.kernels.chunk_outline import Draft, Outline, make_prefix, mark_end
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
        first = bisect_right(starts, piece.start) - 1
        parts: list[Part] = []
        for k in range(first, len(blocks)):
            if starts[k] >= piece.end:
                break
            own_start = max(0, piece.start - starts[k])
            own_end = min(len(blocks[k].text), piece.end - starts[k])
            if own_end > own_start:
                parts.append(Part(blocks[k], own_start, own_end, 0))
        if not parts:
            continue
        seen_again = min(lead, parts[0].start)
        parts[0].again = text[piece.start - seen_again : piece.start] if seen_again else ""
        content = text[piece.start - lead : piece.end]
        metadata: dict[str, Any] = part_metadata(parts)
        metadata.pop("repeated_chars", None)
        if lead:
            metadata["repeated_chars"] = lead
        outline.roots.append(
            Draft(
                "leaf",
                source.title or source.file_name,
                content,
                group_kind(parts),
                list(parts[0].block.section_path),
                merge_locators(parts),
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
