"""Text → hits of the active generation: dense search in the vector store, rows from the pinned chunks table.

Read-only (contracts 36): where the embedded store is held by a writer or lies in a read-only folder, an exact search over the pinned
embeddings table gives the same hits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raydex.configs.settings import EmbedSettings
from raydex.ir.errors import ConfigError, StoreError
from raydex.ir.locator import Locator
from raydex.jobs.reading import Reader, open_reader
from raydex.jobs.source_types import source_type_of, source_types


def search(root: Path, text: str, k: int, source_type: str | None = None) -> dict[str, Any]:
    """{query, truncated, generation, engine, hits: [{rank, score, chunk_id, title, path, locator …}]}; hits in falling score, ties by id.

    `engine`: milvus, exact, or none where no record of the generation has text to embed; `truncated`: the model reads only the beginning
    of the query.
    """
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")  # arguments may hold any bytes
    if not text.strip():
        raise ConfigError("the query is empty", remedy="Say what to look for")
    reader = open_reader(root)
    cursor = reader.generation.cursors.get("vectors")
    if cursor is None:
        raise ConfigError("this generation has no vectors", place=str(root), remedy="Index with an embedding model (embed.model)")
    types = None if source_type is None else source_types(source_type)
    if not cursor["collection"]:
        return {"query": text, "truncated": False, "generation": reader.generation.number, "engine": "none", "hits": []}
    query, truncated = embed_query(cursor, text)
    found, engine = _find(reader, cursor, query, k, types)
    hits = describe(reader, found)
    return {"query": text, "truncated": truncated, "generation": reader.generation.number, "engine": engine, "hits": hits}


def embed_query(cursor: dict[str, Any], text: str) -> tuple[np.ndarray, bool]:
    """float32 (dim,) by the model that the generation was embedded with, on the device that is here; and whether it read only the
    beginning."""
    from raydex.jobs.load import READER_KEYS
    from raydex.kernels.embed import load_embedder

    embedder = load_embedder(EmbedSettings(**{key: cursor["embed"][key] for key in READER_KEYS if key in cursor["embed"]}))
    assert embedder is not None
    return embedder.embed([text])[0], embedder.truncated([text])[0]


def _find(
    reader: Reader, cursor: dict[str, Any], query: np.ndarray, k: int, types: tuple[str, ...] | None
) -> tuple[list[tuple[str, float]], str]:
    from raydex.cluster.store_lock import Busy
    from raydex.cluster.vectors import VectorStore

    try:
        with VectorStore(reader.lake.place(cursor["uri"]), cursor["collection"], cursor["dimension"]) as store:
            hits = store.search(query.tolist(), k, cursor["generation"], source_types=types)
            return [(hit.chunk_id, hit.score) for hit in hits], "milvus"
    except Busy:
        return exact(reader, query, k, types), "exact"


def exact(reader: Reader, query: np.ndarray, k: int, types: tuple[str, ...] | None) -> list[tuple[str, float]]:
    from raydex.kernels.nearest import exact_search_parts

    table = reader.vector_rows(["chunk_id", "record_id", "vector"])
    if types:
        heads = reader.rows("documents", columns=["record_id", "media_type", "parser"]).to_pylist()
        kept = pa.array([row["record_id"] for row in heads if source_type_of(row["media_type"], row["parser"]) in types], pa.string())
        table = table.filter(pc.is_in(table.column("record_id"), kept))
    parts = (
        (batch.column("vector").flatten().to_numpy().reshape(batch.num_rows, -1), batch.column("chunk_id").to_pylist())
        for batch in table.to_batches()
        if batch.num_rows
    )
    return [(hit.chunk_id, hit.score) for hit in exact_search_parts(parts, query, k)]


def describe(reader: Reader, found: list[tuple[str, float]]) -> list[dict[str, Any]]:
    """Hits with what a reader needs: where it is, what it says, what it belongs to."""
    chunks = reader.by_ids("chunks", "chunk_id", [chunk_id for chunk_id, _ in found])
    records = reader.by_ids("records", "record_id", sorted({row["record_id"] for row in chunks.values()}))
    missing = [chunk_id for chunk_id, _ in found if chunk_id not in chunks]
    if missing:
        raise StoreError(
            f"the vector store holds {len(missing)} chunks that the tables do not, first {missing[0]}",
            place=str(reader.lake.root),
            remedy="Run `raydex verify`, then `raydex index` again",
        )
    hits = []
    for rank, (chunk_id, score) in enumerate(found, 1):
        row = chunks[chunk_id]
        record = records[row["record_id"]]
        hits.append(
            {
                "rank": rank,
                "score": round(float(score), 6),
                "chunk_id": chunk_id,
                "parent_id": row["parent_id"],
                "record_id": row["record_id"],
                "entity_id": row["entity_id"],
                "kind": row["kind"],
                "title": row["title"],
                "section_path": row["section_path"],
                "source": record["source_name"],
                "repository": record["repository"],
                "path": record["path"],
                "media_type": record["media_type"],
                "locators": [Locator.parse(item).to_json() for item in row["locators"]],
                "content": row["content"],
                "summary": row["summary"],
            }
        )
    return hits
