"""Canonical edges as rows for people and tests: one a (edge, evidence) pair (contracts 22)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raydex.ir.errors import ConfigError
from raydex.ir.kinds import CONFIDENCES, EDGE_KINDS
from raydex.jobs.reading import open_reader

EDGE_COLUMNS = ["edge_id", "source", "target", "relation", "confidence", "evidence_ids", "rules"]


def list_edges(root: Path, relation: str | None, confidence: str | None) -> Iterator[dict[str, Any]]:
    """Sorted by source, relation, target, then place. EXTRACTED includes VERIFIED.

    Raises ConfigError for unknown words, and in a generation without a projection.
    """
    _check("relation", relation, tuple(EDGE_KINDS))
    _check("confidence", confidence, CONFIDENCES)
    reader = open_reader(root)
    if not reader.generation.projection_hash:
        raise ConfigError("this generation has no projected edges", place=str(root), remedy="Index with run.project on")
    names = ["node_id", "kind", "name", "qualified_name", "path"]
    nodes = {row["node_id"]: row for row in reader.rows("nodes", columns=names).to_pylist()}
    evidence = {row["evidence_id"]: row for row in reader.rows("evidence").to_pylist()}
    wanted = {"EXTRACTED": ("EXTRACTED", "VERIFIED")}.get(confidence or "", (confidence,))
    rows = reader.rows("edges", columns=EDGE_COLUMNS).to_pylist()
    rows = [row for row in rows if (not relation or row["relation"] == relation) and (not confidence or row["confidence"] in wanted)]

    def label(node_id: str) -> str:
        node = nodes.get(node_id) or {}
        return str(node.get("qualified_name") or node.get("name") or "")

    rows.sort(key=lambda row: (label(row["source"]), row["relation"], label(row["target"]), row["edge_id"]))
    for row in rows:
        source, target = nodes.get(row["source"]) or {}, nodes.get(row["target"]) or {}
        pairs = zip(row["evidence_ids"], row["rules"], strict=True)
        seen = [(evidence[identifier], rule) for identifier, rule in pairs]
        seen.sort(key=lambda pair: (pair[0]["path"] or "", pair[0]["line"] or 0, pair[0]["evidence_id"]))
        for item, rule in seen:
            yield {
                "edge_id": row["edge_id"],
                "source": row["source"],
                "source_kind": source.get("kind"),
                "source_qualified_name": source.get("qualified_name"),
                "source_path": source.get("path"),
                "target": row["target"],
                "target_kind": target.get("kind"),
                "target_qualified_name": target.get("qualified_name"),
                "target_path": target.get("path"),
                "relation": row["relation"],
                "confidence": row["confidence"],
                "rule": rule,
                "file": item["path"],
                "line": item["line"],
                "locator": item["locator"],
                "evidence_id": item["evidence_id"],
            }


def _check(what: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        import difflib

        near = difflib.get_close_matches(value.upper(), known, n=1)
        raise ConfigError(f"unknown {what} {value!r}", remedy=f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}")
