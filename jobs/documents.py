"""Documents: the registry's records merged with what the stores really hold; the index is the truth about "indexed" (seed 5 §5.2)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.lake import Generation, Lake, load_ledger
from raydex.cluster.registry import DocumentStatus, open_registry
from raydex.ir.errors import REJECT_CLASSES, ConfigError
from raydex.ir.kinds import RECORD_STATES
from raydex.jobs.context import RunContext
from raydex.jobs.places import held_registry, registry_url
from raydex.jobs.reading import Reader, open_reader
from raydex.jobs.source_types import source_type_of, source_types

# of the ledger; `unindexed`: its vectors are gone from the store; `unknown`: the registry alone knows it
STATES = (*RECORD_STATES, "unindexed", "unknown")


def register(lake: Lake, context: RunContext, generation: Generation, since_epoch: int) -> None:
    """Brings the registry up to a new generation: documents of epochs after `since_epoch`, those that it lacks, and all that are gone."""
    with open_registry(registry_url(lake, context.settings.stores.registry), lake.lake_id) as registry:
        ledger = load_ledger(lake)
        known = registry.document_ids()
        rows = _statuses(Reader(lake, generation), ledger, since_epoch, known)
        gone = sorted(known - set(ledger.column("record_id").to_pylist()))
        index_name = generation.cursors.get("vectors", {}).get("collection", "")
        registry.record_statuses(context.run_id, context.written_at, generation.number, index_name, rows, gone)


def _statuses(reader: Reader, ledger: pa.Table, since_epoch: int, known: set[str]) -> list[DocumentStatus]:
    """What the ledger says of the records of epochs after `since_epoch` and of those that are not `known`."""
    lacking = pc.invert(pc.is_in(ledger.column("record_id"), pa.array(sorted(known), pa.string())))
    fresh = ledger.filter(pc.or_(pc.greater(ledger.column("epoch"), since_epoch), lacking))
    if fresh.num_rows == 0:
        return []
    counts = _rows_by_record(reader, "chunks")
    titles = {row["record_id"]: row["title"] for row in reader.rows("documents", columns=["record_id", "title"]).to_pylist()}
    rows = []
    for row in fresh.to_pylist():
        reached = ("stored", "failed") if row["state"] == "rejected" else ("stored", "parsed", "indexed")
        rows.append(
            DocumentStatus(
                doc_id=row["record_id"],
                doc_name=titles.get(row["record_id"]) or row["path"],
                source_name=row["source_name"],
                path=row["path"],
                media_type=row["media_type"] or "",
                content_hash=row["content_hash"] or "",
                chunk_count=counts[row["record_id"]],
                error=row["error"] or "",
                reached=reached,
            )
        )
    return rows


def _rows_by_record(reader: Reader, name: str) -> Counter[str]:
    return _by_record(reader.rows(name, columns=["record_id"]))


def _by_record(table: pa.Table) -> Counter[str]:
    counts = table.group_by("record_id").aggregate([([], "count_all")])
    return Counter(dict(zip(counts.column("record_id").to_pylist(), counts.column("count_all").to_pylist())))


def list_documents(
    root: Path, registry: str = "", *, state: str | None = None, reject_class: str | None = None, source_type: str | None = None
) -> dict[str, Any]:
    """{documents, total, mismatches}: every record of the lake with chunks, vectors and state; `note` names a mismatch with the registry.

    `registry` is its URL; without one it is where the generation was registered. Of `documents` and `mismatches` only those that are in
    this state, of this class of rejects and of this source type (or media type). Raises ConfigError for names of these that there are not.
    """
    check_state(state)
    check_class(reject_class)
    types = None if source_type is None else source_types(source_type)
    reader = open_reader(root)
    held = vector_counts(reader)
    chunks = _rows_by_record(reader, "chunks")
    wanted = _by_record(reader.vector_rows(["record_id"])) if "vectors" in reader.generation.cursors else Counter()
    ledger = {row["record_id"]: row for row in reader.rows("records").to_pylist()}
    heads = {row["record_id"]: row for row in reader.rows("documents", columns=["record_id", "title", "parser"]).to_pylist()}
    configured = registry or held_registry(reader.generation.cursors)
    known: dict[str, dict[str, Any]] = {}
    if configured or (reader.lake.stores / "registry.db").exists():
        with open_registry(registry_url(reader.lake, configured), reader.lake.lake_id, read_only=True) as entries:
            known = {row["doc_id"]: row for row in entries.load_documents()}
    rows = []
    for doc_id in sorted({*ledger, *known}, key=lambda i: _sort_key(ledger.get(i) or known[i])):
        record, entry = ledger.get(doc_id), known.get(doc_id)
        vectors, expected = held[doc_id], wanted[doc_id]
        stands = record["state"] if record else "unknown"
        note = ""
        if record is None:
            note = "the registry knows it, the lake does not"
        elif entry is None:
            note = "not in the registry"
        elif vectors != expected:
            note = f"{vectors} vectors in the store, {expected} expected"
            stands = "degraded" if vectors else ("rejected" if record["state"] == "rejected" else "unindexed")
        rows.append(
            {
                "document_id": doc_id,
                "source": (record or entry or {}).get("source_name"),
                "path": (record or entry or {}).get("path"),
                "title": heads.get(doc_id, {}).get("title") or (entry or {}).get("doc_name") or "",
                "media_type": (record or entry or {}).get("media_type"),
                "state": stands,
                "registry_status": entry["status"] if entry else None,
                "chunks": chunks[doc_id],
                "vectors": vectors,
                "missing": (record or {}).get("missing") or [],
                "reject_class": (record or {}).get("reject_class") or "",
                "error": (record or entry or {}).get("error") or "",
                "note": note,
            }
        )
    shown = [
        row
        for row in rows
        if state in (None, row["state"])
        and reject_class in (None, row["reject_class"])
        and (types is None or source_type_of(row["media_type"] or "", heads.get(row["document_id"], {}).get("parser", "")) in types)
    ]
    mismatches = sum(bool(row["note"]) for row in shown)
    return {"generation": reader.generation.number, "documents": shown, "total": len(rows), "mismatches": mismatches}


def check_state(state: str | None) -> None:
    if state is not None and state not in STATES:
        raise ConfigError(f"unknown state {state!r}", place="--state", remedy=f"Known: {', '.join(STATES)}")


def check_class(reject_class: str | None) -> None:
    """Raises ConfigError."""
    if reject_class is not None and reject_class not in REJECT_CLASSES:
        raise ConfigError(f"unknown reject class {reject_class!r}", place="--class", remedy=f"Known: {', '.join(sorted(REJECT_CLASSES))}")


def _sort_key(row: dict[str, Any]) -> tuple[str, str]:
    return (row["source_name"] or "", row["path"] or "")


def vector_counts(reader: Reader) -> Counter[str]:
    """record_id → vectors visible in the store; from the pinned table when the store is held by a writer."""
    from raydex.cluster.store_lock import Busy
    from raydex.cluster.vectors import VectorStore

    cursor = reader.generation.cursors.get("vectors")
    if cursor is None or not cursor["collection"]:
        return Counter()
    owners = {row["chunk_id"]: row["record_id"] for row in reader.rows("chunks", columns=["chunk_id", "record_id"]).to_pylist()}
    try:
        with VectorStore(reader.lake.place(cursor["uri"]), cursor["collection"], cursor["dimension"]) as store:
            return Counter(owners.get(key, "") for key in store.keys(cursor["generation"]))
    except Busy:
        return _by_record(reader.vector_rows(["record_id"]))
