"""One record's IR → its chunks and structural nodes, by a named strategy: the entry of the chunk stage.

The invariant: the result depends on the IR, the options and the tokenizer file alone, and no embedding_text is over
`options.max_tokens` of that tokenizer, special tokens included: checked with the tokenizer itself where word counts are estimates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from raydex.ir.chunk import ChunkResult
from raydex.ir.errors import ConfigError, InputError
from raydex.kernels.chunk_code import chunk_code
from raydex.kernels.chunk_document import chunk_structure
from raydex.kernels.chunk_length import chunk_fixed, chunk_recursive
from raydex.kernels.chunk_outline import Outline, assemble
from raydex.kernels.chunk_source import ChunkOptions, ChunkSource, strategy_name
from raydex.kernels.tokens import Tokenizer

Strategy = Callable[[ChunkSource, ChunkOptions, Tokenizer], Outline]

CHUNK_VERSION = "5"

STRATEGIES: dict[str, Strategy] = {"structure": chunk_structure, "fixed": chunk_fixed, "recursive": chunk_recursive}
CODE_STRATEGIES: dict[str, Strategy] = {**STRATEGIES, "structure": chunk_code}

# Shares of the limit that are planned for, one after the other, until the tokenizer agrees; word-local ones agree at once.
_SHARES = (1.0, 0.85, 0.7, 0.5, 0.35, 0.2)


def chunk(source: ChunkSource, options: ChunkOptions, tokenizer: Tokenizer) -> ChunkResult:
    """Chunks of one record; none when it has no text.

    Raises ConfigError for an unknown strategy and InputError (invalid_input) for text that is not valid Unicode.
    """
    table = CODE_STRATEGIES if is_code(source) else STRATEGIES
    strategy = table.get(options.strategy)
    if strategy is None:
        raise ConfigError(f"unknown chunk strategy {options.strategy!r}", remedy=f"Use one of {', '.join(table)}")
    _check_text(source)
    name = strategy_name(options, tokenizer)
    for share in _SHARES if not tokenizer.is_word_local else _SHARES[:1]:
        limit = max(8, int((options.max_tokens - tokenizer.special_tokens) * share)) + tokenizer.special_tokens
        planned = options if share == 1.0 else replace(options, max_tokens=max(16, limit), min_tokens=0, overlap=0)
        outline = strategy(source, planned, tokenizer)
        chunks = assemble(outline, source, planned, tokenizer, name)
        if tokenizer.is_word_local:
            break
        counts = tokenizer.exact([one.embedding_text for one in chunks if one.embedding_text])
        if all(count <= options.max_tokens for count in counts):
            exact = iter(counts)
            for one in chunks:
                one.token_count = next(exact) if one.embedding_text else 0
            break
    else:
        raise InputError(
            f"no cut keeps embedding_text within {options.max_tokens} tokens",
            reject_class="invalid_input",
            place=source.path,
            remedy="Raise chunk.max_tokens",
        )
    return ChunkResult(chunks, [node for node, _ in outline.nodes], outline.edges)


def is_code(source: ChunkSource) -> bool:
    """Whether the record is a source file: one code block that holds the whole text."""
    return bool(source.language or source.symbols) and len(source.blocks) == 1 and source.blocks[0].kind == "code"


def _check_text(source: ChunkSource) -> None:
    for block in source.blocks:
        if not block.text.isascii():
            try:
                block.text.encode()
            except UnicodeEncodeError as error:
                raise InputError(f"block {block.ordinal} is not valid Unicode text: {error.reason}", place=source.path) from error


__all__ = ["CHUNK_VERSION", "STRATEGIES", "ChunkOptions", "ChunkSource", "Strategy", "chunk", "is_code", "strategy_name"]
