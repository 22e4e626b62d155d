"""The canonical graph (seed 2): nodes, edges and evidence are kept apart; an edge without evidence cannot be made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from raydex.ir.errors import InputError
from raydex.ir.kinds import CONFIDENCES, EDGE_KINDS, NODE_KINDS, VERIFICATIONS


@dataclass(slots=True)
class CanonicalNode:
    node_id: str
    kind: str
    name: str
    source_keys: list[str]
    properties: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in NODE_KINDS:
            raise InputError(f"unknown node kind {self.kind!r}", place=self.node_id)


@dataclass(slots=True)
class Evidence:
    evidence_id: str
    source_record_id: str
    locator: str
    excerpt_hash: str
    revision: str
    cas_uri: str
    verification: str = "candidate"

    def __post_init__(self) -> None:
        if self.verification not in VERIFICATIONS:
            raise InputError(f"unknown verification {self.verification!r}", place=self.evidence_id)


@dataclass(slots=True)
class CanonicalEdge:
    edge_id: str
    source: str
    target: str
    relation: str
    confidence: str
    evidence_ids: list[str]

    def __post_init__(self) -> None:
        if self.relation not in EDGE_KINDS:
            raise InputError(f"unknown relation {self.relation!r}", place=self.edge_id)
        if self.confidence not in CONFIDENCES:
            raise InputError(f"unknown confidence {self.confidence!r}", place=self.edge_id)
        if not self.evidence_ids:
            raise InputError("an edge needs evidence", place=self.edge_id)
