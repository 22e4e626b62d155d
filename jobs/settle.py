"""The rows of a record → its state: indexed, degraded (and what it lacks) or rejected."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from raydex.ir.errors import REJECT_CLASSES

# document warnings that mean that something is missing, and what
DEGRADING = {
    "parse_error": "symbols",
    "no_text_layer": "text",
    "garbled_text": "text",
    "ocr_failed": "text",
    "page_error": "pages",
    "no_semantic_blocks": "blocks",
    "invalid_utf8": "characters",
}


def settle(row: dict[str, Any], tables: dict[str, pa.Table]) -> None:
    """Sets state, failed, missing, reject_class, error and attempts of a row of work, and title and language where there is a document."""
    reject = tables["rejects"].slice(0, 1).to_pylist()[0] if "rejects" in tables else None
    if "documents" not in tables:
        assert reject is not None
        retryable = REJECT_CLASSES[reject["class"]].retryable
        row.update(
            state="rejected",
            failed="parse",
            missing=[],
            reject_class=reject["class"],
            error=reject["error"],
            attempts=(row["attempts"] or 0) + 1 if retryable else max(reject["attempts"] or 1, 1),
        )
        return
    document = tables["documents"].slice(0, 1).to_pylist()[0]
    missing = missing_of(document)
    if reject is not None:
        missing.add("pages")
    row.update(
        state="degraded" if missing else "indexed",
        title=document["title"] or "",
        language=document["language"] or "",
        missing=sorted(missing),
        reject_class=reject["class"] if reject else "",
        error=reject["error"] if reject else _why_empty(tables),
        attempts=(row["attempts"] or 0) + 1 if reject and REJECT_CLASSES[reject["class"]].retryable else 0,
    )


def _why_empty(tables: dict[str, pa.Table]) -> str:
    """What the parser says of a document that has no block at all; empty for any other."""
    events = tables["events"].select(["name", "message"]).to_pylist() if "events" in tables and "blocks" not in tables else []
    return next((event["message"] for event in events if event["name"] == "no_semantic_blocks"), "")


def missing_of(document: dict[str, Any]) -> set[str]:
    """What a row of `documents` says that it lacks."""
    missing = {DEGRADING[warning] for warning in document["warnings"] or () if warning in DEGRADING}
    if document["text_state"] == "unavailable":
        missing.add("text")
    return missing
