"""What a chunker is given: one record's IR, and the options that make part of a chunk's identity.

The invariant: equal options and an equal tokenizer give an equal strategy name, and any other option gives another one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import orjson

from raydex.ir.code import Symbol
from raydex.ir.document import Block
from raydex.ir.errors import ConfigError
from raydex.ir.ids import digest
from raydex.kernels.tokens import Tokenizer


@dataclass(slots=True)
class ChunkSource:
    """The IR of one record. `language` is the programming language, empty for documents."""

    record_id: str
    content_hash: str
    path: str
    title: str
    media_type: str
    language: str = ""
    cas_uri: str = ""
    blocks: list[Block] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)

    @property
    def file_name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """`max_tokens` bounds embedding_text with the model's special tokens; `min_tokens` is what a last small piece is filled up to.

    `overlap` tokens are shown again where a text is cut by length; `prefix` puts title and section path before the text, taking at most
    `prefix_share` of the limit; `max_chars` bounds a leaf's own text and `parent_chars` a parent's content, in code points. Raises
    ConfigError for values that cannot hold together.
    """

    strategy: str = "structure"
    max_tokens: int = 256
    min_tokens: int = 32
    overlap: int = 0
    prefix: bool = True
    prefix_share: float = 0.25
    max_chars: int = 16_000
    parent_chars: int = 16_000
    summary_sentences: int = 2

    def __post_init__(self) -> None:
        if self.max_tokens < 16:
            raise ConfigError(f"chunk.max_tokens is {self.max_tokens}", remedy="Use 16 or more")
        if not 0 <= self.overlap <= self.max_tokens // 4:
            raise ConfigError(f"chunk.overlap is {self.overlap}", remedy=f"Use 0 to {self.max_tokens // 4}, a quarter of chunk.max_tokens")
        if self.min_tokens < 0:
            raise ConfigError(f"chunk.min_tokens is {self.min_tokens}", remedy="Use 0 or more")
        if not 0.0 <= self.prefix_share <= 0.5:
            raise ConfigError(f"chunk.prefix_share is {self.prefix_share}", remedy="Use 0 to 0.5")
        if not 64 <= self.max_chars <= 30_000 or self.parent_chars < 64 or self.summary_sentences < 0:
            raise ConfigError("chunk.max_chars, parent_chars or summary_sentences is out of range", remedy="Use 64 to 30,000 characters")


def strategy_name(options: ChunkOptions, tokenizer: Tokenizer) -> str:
    """Strategy + "@" + 12 hex digits over all options and the tokenizer file: what `Chunk.strategy` holds."""
    plain = orjson.dumps(asdict(options), option=orjson.OPT_SORT_KEYS).decode()
    return f"{options.strategy}@{digest(plain, tokenizer.fingerprint)[:12]}"
