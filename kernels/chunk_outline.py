"""A chunker's outline (drafts in a tree, structural nodes) → chunks with ids, prefixes and token counts.

The invariant: ordinals run in pre-order, parents before children, and no embedding_text is over `max_tokens` of the embedding model's
tokenizer; where the room is short the prefix gives way first, element by element, down to nothing, and the chunk is flagged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from raydex.ir.chunk import Chunk, ChunkEdge, ChunkNode
from raydex.ir.ids import chunk_id
from raydex.ir.locator import Locator
from raydex.kernels.chunk_source import ChunkOptions, ChunkSource
from raydex.kernels.tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class Prefix:
    """What may stand before a leaf's text, longest first, each with its tokens; `reserved` tokens are kept free when text is packed."""

    choices: tuple[tuple[str, int], ...]
    reserved: int

    def fit(self, room: int) -> tuple[str, int, bool]:
        """(text, tokens, shortened) of the longest choice within `room` tokens."""
        for at, (text, tokens) in enumerate(self.choices):
            if tokens <= room:
                return text, tokens, at > 0
        return "", 0, bool(self.choices)


NO_PREFIX = Prefix((), 0)


@dataclass(slots=True, eq=False)
class Draft:
    """A chunk before it has an id. `tokens` are those of `content` (without special tokens); a parent's content is not counted."""

    role: str
    title: str
    content: str
    kind: str
    section_path: list[str]
    locators: list[Locator]
    reason: str
    entity_id: str | None
    summary: str = ""
    tokens: int = 0
    prefix: Prefix = NO_PREFIX
    metadata: dict[str, Any] = field(default_factory=dict)
    children: list[Draft] = field(default_factory=list)
    chunk_id: str = ""


@dataclass(slots=True)
class Outline:
    """`nodes` name the drafts that they stand on; the chunk ids are filled in when those are known."""

    roots: list[Draft] = field(default_factory=list)
    nodes: list[tuple[ChunkNode, list[Draft]]] = field(default_factory=list)
    edges: list[ChunkEdge] = field(default_factory=list)


def make_prefix(title: str, path: list[str], options: ChunkOptions, tokenizer: Tokenizer) -> Prefix:
    """Title, then the section path on a line of its own (seed 5's form without its labels).

    Choices in order: everything; outer sections left out one by one; the innermost section alone; nothing. A path that begins with the
    title does not say it twice.
    """
    if not options.prefix:
        return NO_PREFIX
    names = [" ".join(name.split()) for name in path]
    head = " ".join(title.split())
    if names and names[0] == head:
        head = ""
    tried: list[str] = []
    for skip in range(max(1, len(names))):
        shown = " > ".join(name for name in names[skip:] if name)
        tried.append("\n".join(part for part in (head, shown) if part))
    if names:
        tried.append(names[-1])
    choices: list[tuple[str, int]] = []
    for text in dict.fromkeys(text for text in tried if text):
        choices.append((text, tokenizer.count(text)))
    share = int(options.max_tokens * options.prefix_share)
    reserved = next((tokens for _, tokens in choices if tokens <= share), 0)
    return Prefix(tuple(choices), reserved)


def walk(roots: list[Draft]) -> Iterator[tuple[Draft, Draft | None]]:
    """(draft, parent) in pre-order."""
    stack: list[tuple[Draft, Draft | None]] = [(root, None) for root in reversed(roots)]
    while stack:
        draft, parent = stack.pop()
        yield draft, parent
        stack.extend((child, draft) for child in reversed(draft.children))


def assemble(outline: Outline, source: ChunkSource, options: ChunkOptions, tokenizer: Tokenizer, strategy: str) -> list[Chunk]:
    """Chunks of all drafts in pre-order, and the chunk ids of the nodes. `options.max_tokens` is the limit that holds."""
    chunks: list[Chunk] = []
    seen: dict[tuple[str, str], int] = {}
    room = options.max_tokens - tokenizer.special_tokens
    for ordinal, (draft, parent) in enumerate(walk(outline.roots)):
        key = (draft.title, draft.content)
        occurrence = seen.get(key, 0)
        seen[key] = occurrence + 1
        draft.chunk_id = chunk_id(source.record_id, strategy, draft.title, draft.content, occurrence)
        text, tokens, shortened = "", 0, False
        if draft.role == "leaf":
            body = draft.content.strip("\r\n").rstrip()
            if body:
                before, before_tokens, shortened = draft.prefix.fit(room - draft.tokens)
                text = f"{before}\n\n{body}" if before else body
                tokens = before_tokens + draft.tokens + tokenizer.special_tokens
        chunks.append(
            Chunk(
                draft.chunk_id,
                parent.chunk_id if parent is not None else None,
                source.record_id,
                ordinal,
                draft.role,
                draft.title,
                draft.summary,
                draft.content,
                text,
                draft.kind,
                draft.section_path,
                draft.locators,
                draft.reason,
                strategy,
                draft.entity_id,
                None,
                source.cas_uri,
                source.content_hash,
                tokens,
                shortened,
                draft.metadata,
            )
        )
    for node, drafts in outline.nodes:
        node.source_chunk_ids = [draft.chunk_id for draft in drafts]
    return chunks


def mark_end(roots: list[Draft]) -> None:
    """The last leaf of a document ends because the document does."""
    last = None
    for draft, _ in walk(roots):
        if draft.role == "leaf":
            last = draft
    if last is not None:
        last.reason = "end"
