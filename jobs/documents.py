"""Documents: the registry's records merged with what the stores really hold; the index is the truth about "indexed" (seed 5 §5.2)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from raydex.cluster.lake import Generation, Lake, load_ledger
from raydex.cluster.registry import DocumentStatus, document_ids, load_documents, open_registry, record_statuses
from raydex.jobs.context import RunContext
from raydex.jobs.reading import Reader, open_reader


def registry_url(lake: Lake, configured: str) -> str:
    return configured or f"sqlite:///{lake.stores / 'registry.db'}"


def register(lake: Lake, context: RunContext, generation: Generation, since_epoch: int) -> None:
    """Brings the registry up to a new generation: documents of epochs after `since_epoch`, and all that are gone."""
    ledger = load_ledger(lake)
    counts = _rows_by_record(Reader(lake, generation), "chunks")
    titles = {
        row["record_id"]: row["title"] for row in Reader(lake, generation).rows("documents", columns=["record_id", "title"]).to_pylist()
    }
    fresh = ledger.filter(pc.greater(ledger.column("epoch"), since_epoch))
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
    cursor = generation.cursors.get("vectors", {})
    with open_registry(registry_url(lake, context.settings.stores.registry)) as engine:
        gone = sorted(document_ids(engine) - set(ledger.column("record_id").to_pylist()))
        record_statuses(engine, context.run_id, context.written_at, generation.number, cursor.get("collection", ""), rows, gone)


def _rows_by_record(reader: Reader, name: str) -> Counter[str]:
    table = reader.rows(name, columns=["record_id"])
    counts = table.group_by("record_id").aggregate([([], "count_all")])
    return Counter(dict(zip(counts.column("record_id").to_pylist(), counts.column("count_all").to_pylist())))


def list_documents(root: Path, registry: str = "") -> dict[str, Any]:
    """{documents, mismatches}: every record of the lake with chunks, vectors and state; `note` names a mismatch with the registry."""
    reader = open_reader(root)
    held = vector_counts(reader)
    chunks = _rows_by_record(reader, "chunks")
    wanted = _rows_by_record(reader, "embeddings")
    ledger = {row["record_id"]: row for row in reader.rows("records").to_pylist()}
    titles = {row["record_id"]: row["title"] for row in reader.rows("documents", columns=["record_id", "title"]).to_pylist()}
    url = registry_url(reader.lake, registry)
    known: dict[str, dict[str, Any]] = {}
    if registry or Path(reader.lake.stores / "registry.db").exists():
        with open_registry(url, read_only=True) as engine:
            known = {row["doc_id"]: row for row in load_documents(engine)}
    rows = []
    for doc_id in sorted({*ledger, *known}, key=lambda i: _sort_key(ledger.get(i) or known[i])):
        record, entry = ledger.get(doc_id), known.get(doc_id)
        vectors, expected = held[doc_id], wanted[doc_id]
        state = record["state"] if record else "unknown"
        note = ""
        if record is None:
            note = "the registry knows it, the lake does not"
        elif entry is None:
            note = "not in the registry"
        elif vectors != expected:
            note = f"{vectors} vectors in the store, {expected} expected"
            state = "degraded" if vectors else ("rejected" if record["state"] == "rejected" else "unindexed")
        rows.append(
            {
                "document_id": doc_id,
                "source": (record or entry or {}).get("source_name"),
                "path": (record or entry or {}).get("path"),
                "title": titles.get(doc_id) or (entry or {}).get("doc_name") or "",
                "media_type": (record or entry or {}).get("media_type"),
                "state": state,
                "registry_status": entry["status"] if entry else None,
                "chunks": chunks[doc_id],
                "vectors": vectors,
                "error": (record or entry or {}).get("error") or "",
                "note": note,
            }
        )
    return {"generation": reader.generation.number, "documents": rows, "mismatches": sum(bool(row["note"]) for row in rows)}


def _sort_key(row: dict[str, Any]) -> tuple[str, str]:
    return (row["source_name"] or "", row["path"] or "")


def vector_counts(reader: Reader) -> Counter[str]:
    """record_id → vectors visible in the store; from the pinned table when the store is held by a writer."""
    from raydex.cluster.store_lock import Busy
    from raydex.cluster.vectors import VectorStore
    from raydex.jobs.search import vector_uri

    cursor = reader.generation.cursors.get("vectors")
    if cursor is None:
        return Counter()
    owners = {row["chunk_id"]: row["record_id"] for row in reader.rows("chunks", columns=["chunk_id", "record_id"]).to_pylist()}
    try:
        with VectorStore(vector_uri(reader, cursor), cursor["collection"], cursor["dimension"]) as store:
            return Counter(owners.get(key, "") for key in store.keys(reader.generation.number))
    except Busy:
        return _rows_by_record(reader, "embeddings")
