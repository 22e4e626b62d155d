"""Pinned tables → stores: vectors generation by generation, the graph as a fresh file a generation (contracts 14).

Only what the epochs since the last loaded generation wrote is sent to the vector store; what vanished is found by comparing the data
files of both versions, never by listing everything.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import list_data_files, read_data_file, read_delta
from raydex.cluster.lake import Generation, Lake, kept_generations
from raydex.ir.errors import StoreError
from raydex.ir.locator import Locator
from raydex.jobs.context import RunContext

VECTORS = "stores/vectors.db"
LOAD_ROWS = 4_000
CHUNK_COLUMNS = [
    "chunk_id",
    "record_id",
    "parent_id",
    "title",
    "content",
    "kind",
    "section_path",
    "locators",
    "entity_id",
    "strategy",
    "content_hash",
]


def load_vectors(
    lake: Lake, context: RunContext, before: Generation | None, generation: Generation
) -> tuple[dict[str, Any], dict[str, float]]:
    """(cursor, figures): the store shows `generation`. Raises StoreError when a row was not taken."""
    from raydex.cluster.vectors import VectorStore, collection_name
    from raydex.kernels.embed import embedding_identity

    clock = time.perf_counter()
    settings = context.settings
    dimension = vector_dimension(lake, generation)
    cursor: dict[str, Any] = {
        "uri": settings.stores.vectors or VECTORS,
        "collection": "",
        "dimension": dimension,
        "generation": generation.number,
        "rows": 0,
        "embed": settings.embed.model_dump(),
    }
    if dimension == 0:
        return cursor, {"seconds": time.perf_counter() - clock}
    model = embedding_identity(settings.embed.model, settings.embed.base_url)
    cursor["collection"] = collection_name(model, dimension)
    old = before.cursors.get("vectors") if before else None
    same = old is not None and old["collection"] == cursor["collection"] and old["uri"] == cursor["uri"]
    base = old["generation"] if old is not None and same else 0
    since = before.epoch if before is not None and same else 0
    removed = removed_chunks(lake, before, generation) if same and before is not None else []
    uri = cursor["uri"] if "://" in cursor["uri"] else str(lake.root / cursor["uri"])
    with VectorStore(uri, cursor["collection"], dimension, model=model) as store:
        result = store.load(generation.number, vector_rows(lake, generation, since), removed, base)
        if result.failed:
            first = result.failed[0]
            raise StoreError(f"{len(result.failed)} vectors were not taken, first {first.key}: {first.error}", place=uri)
        cursor["rows"] = store.count(generation.number)
    sent = result.inserted + result.unchanged
    figures = {"rows_in": sent + result.closed, "rows_out": sent, "seconds": time.perf_counter() - clock}
    return cursor, figures


def vector_dimension(lake: Lake, generation: Generation) -> int:
    """Dimension of the stored vectors; 0 when there are none."""
    for file in list_data_files(lake.tables, "embeddings", generation.table_versions.get("embeddings")):
        table = read_data_file(lake.tables, "embeddings", file.path, columns=["vector"])
        if table.num_rows:
            return len(table.column("vector")[0])
    return 0


def removed_chunks(lake: Lake, before: Generation, generation: Generation) -> list[str]:
    """Chunks with a vector in the older version and none in the newer: only files that the two do not share are read."""
    old_version, new_version = before.table_versions.get("embeddings"), generation.table_versions.get("embeddings")
    if old_version is None or old_version == new_version:
        return []
    old = {file.path for file in list_data_files(lake.tables, "embeddings", old_version)}
    new = {file.path for file in list_data_files(lake.tables, "embeddings", new_version)}

    def ids(paths: set[str]) -> set[str]:
        found: set[str] = set()
        for path in sorted(paths):
            found.update(read_data_file(lake.tables, "embeddings", path, columns=["chunk_id"]).column("chunk_id").to_pylist())
        return found

    return sorted(ids(old - new) - ids(new - old))


def vector_rows(lake: Lake, generation: Generation, since: int) -> Iterator[pa.Table]:
    """Rows for the vector store of all epochs after `since`; memory is bounded by the columns of one epoch and LOAD_ROWS rows."""
    versions = generation.table_versions
    heads = dict(_rows(lake, "documents", versions, ["record_id", "title"]))
    about = {record: (path, media) for record, path, media in _rows(lake, "records", versions, ["record_id", "path", "media_type"])}
    epochs: dict[int, list[str]] = {}
    for file in list_data_files(lake.tables, "embeddings", versions.get("embeddings")):
        bounds = file.bounds("epoch")
        if bounds is None or bounds[1] > since:
            epochs.setdefault(bounds[1] if bounds else since + 1, []).append(file.path)
    for _, paths in sorted(epochs.items()):
        columns = ["chunk_id", "vector", "epoch", "truncated"]
        parts = [read_data_file(lake.tables, "embeddings", path, columns=columns, where=pc.field("epoch") > since) for path in paths]
        vectors = pa.concat_tables(parts)
        if vectors.num_rows == 0:
            continue
        wanted = pc.field("chunk_id").isin(vectors.column("chunk_id").combine_chunks())
        chunks = read_delta(lake.tables, "chunks", version=versions["chunks"], columns=CHUNK_COLUMNS, where=wanted)
        at = pc.index_in(vectors.column("chunk_id"), value_set=chunks.column("chunk_id"))
        for start in range(0, vectors.num_rows, LOAD_ROWS):
            rows = chunks.take(at.slice(start, LOAD_ROWS)).to_pylist()
            items = [
                _vector_row(row, vector.values.to_numpy(), heads, about)
                for row, vector in zip(rows, vectors.column("vector").slice(start, LOAD_ROWS), strict=True)
            ]
            yield pa.Table.from_pylist(items, schema=_row_schema())


def _row_schema() -> pa.Schema:
    from raydex.cluster.vector_rows import ROW_SCHEMA

    return ROW_SCHEMA


def _rows(lake: Lake, name: str, versions: dict[str, int], columns: list[str]) -> Iterator[tuple[Any, ...]]:
    if name in versions:
        table = read_delta(lake.tables, name, version=versions.get(name), columns=columns)
        yield from zip(*[table.column(column).to_pylist() for column in columns], strict=True)


def _vector_row(chunk: dict[str, Any], vector: Any, heads: dict[str, str], about: dict[str, tuple[str, str]]) -> dict[str, Any]:
    path, media_type = about[chunk["record_id"]]
    places = [Locator.parse(item) for item in chunk["locators"] or ()]
    page = next((place.page for place in places if place.page is not None), 0)
    section = chunk["section_path"] or []
    metadata = {
        "path": path,
        "parent_id": chunk["parent_id"],
        "entity_id": chunk["entity_id"],
        "locators": chunk["locators"],
        "content_hash": chunk["content_hash"],
        "strategy": chunk["strategy"],
    }
    return {
        "id": chunk["chunk_id"],
        "doc_id": chunk["record_id"],
        "doc_name": heads.get(chunk["record_id"]) or path,
        "content": chunk["content"],
        "section_title": section[-1] if section else chunk["title"],
        "section_path": section,
        "page_number": page,
        "regulation_type": "",
        "version": "",
        "semantic_id": "",
        "block_type": chunk["kind"],
        "source_type": media_type,
        "metadata_json": orjson.dumps({key: value for key, value in metadata.items() if value}).decode(),
        "embedding": vector,
        "created_at": 0,
    }


def load_graph(lake: Lake, generation: Generation) -> tuple[dict[str, Any], dict[str, float]]:
    """(cursor, figures): a fresh graph file for `generation`."""
    from raydex.cluster.graph_store import Marker, build_graph

    clock = time.perf_counter()
    versions = generation.table_versions
    tables = {name: read_delta(lake.tables, name, version=versions[name]) for name in ("nodes", "edges", "evidence")}
    name = f"stores/graph-{generation.number:06d}.lbug"
    marker = Marker(generation=generation.number, source_manifest=generation.source_manifest, projection_hash=generation.projection_hash)
    path = Path(lake.root) / name
    counts = build_graph(path, tables["nodes"], tables["edges"], tables["evidence"], marker)
    cursor = {"path": name, "generation": generation.number, "nodes": counts.nodes, "edges": counts.edges}
    rows = counts.nodes + counts.edges
    return cursor, {"rows_in": rows, "rows_out": rows, "seconds": time.perf_counter() - clock}


def drop_old_graphs(lake: Lake, keep: int) -> None:
    """Graph files that none of the newest `keep` complete generations, nor the active one, names."""
    kept = {generation.cursors.get("graph", {}).get("path") for generation in kept_generations(lake, keep)}
    for file in lake.stores.glob("graph-*.lbug"):
        if f"stores/{file.name}" not in kept:
            file.unlink(missing_ok=True)
