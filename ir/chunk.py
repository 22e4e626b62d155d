"""Chunks (seeds 1, 3 and 5; contracts 28-32): what is shown (`content`), what is embedded (`embedding_text`), and where it came from.

Leaves tile the document; parents hold a whole section, class or object and are not embedded. `ChunkResult` also carries the nodes and
edges that a chunker sees for free.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from raydex.ir.locator import Locator


@dataclass(slots=True)
class Chunk:
    """`kind` is what the chunk holds (section, code, table, image, record …), `role` leaf or parent."""

    chunk_id: str
    parent_id: str | None
    document_id: str
    ordinal: int
    role: str
    title: str
    summary: str
    content: str
    embedding_text: str
    kind: str
    section_path: list[str]
    locators: list[Locator]
    boundary_reason: str
    strategy: str
    entity_id: str | None = None
    evidence_ref: str | None = None
    cas_uri: str = ""
    content_hash: str = ""
    token_count: int = 0
    prefix_shortened: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ChunkNode:
    """A structural node of a chunker. `source_chunk_ids` may be empty: a pure graph entity (seed 3 §5.7)."""

    node_id: str
    name: str
    labels: list[str]
    node_type: str
    source_chunk_ids: list[str] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ChunkEdge:
    """An edge between chunker nodes; its evidence is the child's locator (contracts 31)."""

    edge_id: str
    source: str
    target: str
    relation: str
    locator: Locator | None = None
    excerpt_hash: str | None = None


@dataclass(slots=True)
class ChunkResult:
    chunks: list[Chunk] = field(default_factory=list)
    nodes: list[ChunkNode] = field(default_factory=list)
    edges: list[ChunkEdge] = field(default_factory=list)
