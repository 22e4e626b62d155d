"""The canonical graph (seed 2): nodes, edges and evidence are kept apart; an edge without evidence cannot be made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from raydex.ir.errors import InputError, RaydexError
from raydex.ir.kinds import CONFIDENCES, EDGE_KINDS, NODE_KINDS, VERIFICATIONS


class KindConflict(RaydexError):
    """Two sources give one node different kinds; both are named and the merge is blocked."""


class EvidenceConflict(RaydexError):
    """Two records under one evidence id differ; both are named and the merge is blocked."""


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


def merge_nodes(left: CanonicalNode, right: CanonicalNode) -> CanonicalNode:
    """One node from two views of it: source keys united, properties merged (left wins). KindConflict names both."""
    if left.kind != right.kind:
        raise KindConflict(
            f"node {left.node_id} is a {left.kind} by {', '.join(left.source_keys)} and a {right.kind} by {', '.join(right.source_keys)}"
        )
    keys = left.source_keys + [k for k in right.source_keys if k not in left.source_keys]
    return CanonicalNode(left.node_id, left.kind, left.name, keys, {**right.properties, **left.properties})


def check_same_evidence(left: Evidence, right: Evidence) -> None:
    """EvidenceConflict when two records under one id differ in locator, excerpt hash, revision or object."""
    for name in ("source_record_id", "locator", "excerpt_hash", "revision", "cas_uri"):
        a, b = getattr(left, name), getattr(right, name)
        if a != b:
            raise EvidenceConflict(f"evidence {left.evidence_id} has {name} {a!r} and {b!r}")
