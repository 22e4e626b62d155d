"""Pinned tables → stores: vectors generation by generation, the graph as a fresh file a generation (contracts 14).

Only vectors by the model of the run are loaded, and of these only what the epochs since the last loaded generation wrote; what vanished is
found by comparing the data files of both versions. The invariant: a store that does not show what the last generation says it shows is
loaded anew from the tables, so that a lost or foreign one is never built upon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import DataFile, list_data_files, read_data_file, read_delta, table_folder
from raydex.cluster.lake import Generation, Lake, kept_generations
from raydex.ir.errors import StoreError
from raydex.ir.locator import Locator
from raydex.jobs.chunk_places import ChunkPlaces
from raydex.jobs.context import RunContext
from raydex.jobs.source_types import source_type_of
from raydex.jobs.stopwatch import Stopwatch

if TYPE_CHECKING:
    from raydex.cluster.vectors import VectorStore

VECTORS = "stores/vectors.db"
# a reader holds the embedded store for as long as it lists it: a run waits rather than fail after its work
LOAD_WAIT_S = 600.0
LOAD_ROWS = 4_000
GROUP_ROWS = 50_000
# what a reader needs to embed a query as the generation was embedded
READER_KEYS = ("model", "base_url", "api_key_env")
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


@dataclass(frozen=True, slots=True)
class LoadBase:
    """What a load builds on: the generation that the store shows, the last epoch in it, and the chunks that have no vector since."""

    generation: int = 0
    epoch: int = 0
    removed: tuple[str, ...] = ()


def vector_cursor(lake: Lake, context: RunContext, generation: Generation) -> dict[str, Any]:
    """Where the vectors of a generation are to lie; collection "" when there are none."""
    from raydex.cluster.vectors import collection_name

    settings = context.settings
    dimension = vector_dimension(lake, generation)
    return {
        "uri": settings.stores.vectors or VECTORS,
        "collection": collection_name(lake.lake_id, generation.fingerprints["embed"], dimension) if dimension else "",
        "dimension": dimension,
        "generation": generation.number,
        "rows": 0,
        "embed": reader_settings(context),
    }


def reader_settings(context: RunContext) -> dict[str, Any]:
    """The part of the embedding settings that readers take from the cursor."""
    return context.settings.embed.model_dump(include=set(READER_KEYS))


def load_vectors(
    lake: Lake, context: RunContext, before: Generation | None, generation: Generation
) -> tuple[dict[str, Any], dict[str, float]]:
    """(cursor, figures): the store shows `generation`. Raises StoreError when a row was not taken, or the store is held for too long."""
    from raydex.cluster.vectors import VectorStore
    from raydex.kernels.embed import embedding_identity

    watch = Stopwatch()
    settings = context.settings
    cursor = vector_cursor(lake, context, generation)
    if not cursor["collection"]:
        return cursor, watch.figures()
    uri = lake.place(cursor["uri"])
    model = embedding_identity(settings.embed.model, settings.embed.base_url)
    with VectorStore(uri, cursor["collection"], cursor["dimension"], model=model, wait_s=LOAD_WAIT_S) as store:
        base = load_base(lake, before, generation, cursor, store)
        drop_unkept(lake, store, cursor, base, settings.stores.keep_generations - 1)
        result = store.load(generation.number, vector_rows(lake, generation, base.epoch), base.removed, base.generation)
        if result.failed:
            first = result.failed[0]
            raise StoreError(f"{len(result.failed)} vectors were not taken, first {first.key}: {first.error}", place=uri)
        cursor["rows"] = store.count(generation.number)
    sent = result.inserted + result.unchanged
    return cursor, {"rows_in": sent + result.closed, "rows_out": sent, **watch.figures()}


def load_base(lake: Lake, before: Generation | None, generation: Generation, cursor: dict[str, Any], store: VectorStore) -> LoadBase:
    """The last generation where the store holds all of it in the same collection; else nothing, and everything is loaded."""
    old = before.cursors.get("vectors") if before is not None else None
    if before is None or old is None or not store.has_collection:
        return LoadBase()
    if (old["collection"], old["uri"]) != (cursor["collection"], cursor["uri"]) or store.count(old["generation"]) != old["rows"]:
        return LoadBase()
    removed = removed_chunks(lake, before, generation)
    return LoadBase() if removed is None else LoadBase(old["generation"], before.epoch, tuple(removed))


def drop_unkept(lake: Lake, store: VectorStore, cursor: dict[str, Any], base: LoadBase, keep: int) -> None:
    """Deletes what neither the active generation nor one of the newest `keep` complete ones shows: rows, and collections of other models.

    In a store that other lakes may use, only collections that carry this lake's id are looked at.
    """
    from raydex.cluster.vectors import collection_prefix

    kept = [g.cursors["vectors"] for g in kept_generations(lake, keep) if g.cursors.get("vectors", {}).get("uri") == cursor["uri"]]
    numbers = [item["generation"] for item in kept if item["collection"] == cursor["collection"]]
    if base.generation:
        store.gc(min([base.generation, *numbers]))
    prefix = "raydex_" if cursor["uri"] == VECTORS else collection_prefix(lake.lake_id)
    store.drop_collections(prefix, {item["collection"] for item in kept})


def vector_dimension(lake: Lake, generation: Generation) -> int:
    """Dimension of the stored vectors of the generation's model; 0 when there are none."""
    where = pc.field("fingerprint") == generation.fingerprints["embed"]
    for file in list_data_files(lake.tables, "embeddings", generation.table_versions.get("embeddings")):
        table = read_data_file(lake.tables, "embeddings", file.path, columns=["vector"], where=where)
        if table.num_rows:
            return len(table.column("vector")[0])
    return 0


def removed_chunks(lake: Lake, before: Generation, generation: Generation) -> list[str] | None:
    """Chunks with a vector in the older version and none in the newer: only files that the two do not share are read. None when a file of
    the older version is lost, and nobody can tell."""
    old_version, new_version = before.table_versions.get("embeddings"), generation.table_versions.get("embeddings")
    if old_version is None or old_version == new_version:
        return []
    old = {file.path for file in list_data_files(lake.tables, "embeddings", old_version)}
    new = {file.path for file in list_data_files(lake.tables, "embeddings", new_version)}
    folder = table_folder(lake.tables, "embeddings")
    if not all((folder / path).is_file() for path in old - new):
        return None
    where = pc.field("fingerprint") == generation.fingerprints["embed"]

    def ids(paths: set[str]) -> set[str]:
        found: set[str] = set()
        for path in sorted(paths):
            found.update(read_data_file(lake.tables, "embeddings", path, columns=["chunk_id"], where=where).column("chunk_id").to_pylist())
        return found

    return sorted(ids(old - new) - ids(new - old))


def vector_rows(lake: Lake, generation: Generation, since: int) -> Iterator[pa.Table]:
    """Rows for the vector store of all epochs after `since`; memory is bounded by the columns of GROUP_ROWS vectors and LOAD_ROWS rows.

    Raises StoreError when a vector's chunk is not in table `chunks`.
    """
    versions = generation.table_versions
    files = []
    for file in list_data_files(lake.tables, "embeddings", versions.get("embeddings")):
        bounds = file.bounds("epoch")
        if bounds is None or bounds[1] > since:
            files.append(((bounds or (since, since))[1], file))
    if not files:
        return
    heads = {record: (title, parser) for record, title, parser in _rows(lake, "documents", versions, ["record_id", "title", "parser"])}
    about = {record: (path, media) for record, path, media in _rows(lake, "records", versions, ["record_id", "path", "media_type"])}
    places = ChunkPlaces(lake, versions.get("chunks"))
    where = (pc.field("epoch") > since) & (pc.field("fingerprint") == generation.fingerprints["embed"])
    columns = ["chunk_id", "record_id", "vector"]
    for group in _groups(file for _, file in sorted(files, key=lambda item: (item[0], item[1].path))):
        parts = [read_data_file(lake.tables, "embeddings", file.path, columns=columns, where=where) for file in group]
        vectors = pa.concat_tables(parts)
        ids = vectors.column("chunk_id")
        chunks = places.read(vectors.column("record_id"), ids, CHUNK_COLUMNS)
        at = pc.index_in(ids, value_set=chunks.column("chunk_id"))
        if at.null_count:
            lost = ids.filter(pc.is_null(at))[0].as_py()
            raise StoreError(
                f"{at.null_count} vectors belong to no chunk, first {lost}",
                place=str(lake.tables),
                remedy="Run `raydex verify` to see which tables do not agree",
            )
        for start in range(0, vectors.num_rows, LOAD_ROWS):
            rows = chunks.take(at.slice(start, LOAD_ROWS)).to_pylist()
            items = [
                _vector_row(row, vector.values.to_numpy(), heads, about)
                for row, vector in zip(rows, vectors.column("vector").slice(start, LOAD_ROWS), strict=True)
            ]
            yield pa.Table.from_pylist(items, schema=_row_schema())


def _groups(files: Iterable[DataFile]) -> Iterator[list[DataFile]]:
    """Files in groups of about GROUP_ROWS rows, one file at least."""
    group: list[DataFile] = []
    rows = 0
    for file in files:
        if group and rows + file.rows > GROUP_ROWS:
            yield group
            group, rows = [], 0
        group.append(file)
        rows += file.rows
    if group:
        yield group


def _row_schema() -> pa.Schema:
    from raydex.cluster.vector_rows import ROW_SCHEMA

    return ROW_SCHEMA


def _rows(lake: Lake, name: str, versions: dict[str, int], columns: list[str]) -> Iterator[tuple[Any, ...]]:
    if name in versions:
        table = read_delta(lake.tables, name, version=versions.get(name), columns=columns)
        yield from zip(*[table.column(column).to_pylist() for column in columns], strict=True)


def _vector_row(chunk: dict[str, Any], vector: Any, heads: dict[str, tuple[str, str]], about: dict[str, tuple[str, str]]) -> dict[str, Any]:
    path, media_type = about[chunk["record_id"]]
    title, parser = heads.get(chunk["record_id"], ("", ""))
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
        "doc_name": title or path,
        "content": chunk["content"],
        "section_title": section[-1] if section else chunk["title"],
        "section_path": section,
        "page_number": page,
        "regulation_type": "",
        "version": "",
        "semantic_id": "",
        "block_type": chunk["kind"],
        "source_type": source_type_of(media_type, parser),
        "metadata_json": orjson.dumps({key: value for key, value in metadata.items() if value}).decode(),
        "embedding": vector,
        "created_at": 0,
    }


def load_graph(lake: Lake, generation: Generation) -> tuple[dict[str, Any], dict[str, float]]:
    """(cursor, figures): a fresh graph file for `generation`."""
    from raydex.cluster.graph_store import Marker, build_graph

    watch = Stopwatch()
    versions = generation.table_versions
    tables = {name: read_delta(lake.tables, name, version=versions.get(name)) for name in ("nodes", "edges", "evidence")}
    name = f"stores/graph-{generation.number:06d}.lbug"
    marker = Marker(generation=generation.number, source_manifest=generation.source_manifest, projection_hash=generation.projection_hash)
    path = Path(lake.root) / name
    counts = build_graph(path, tables["nodes"], tables["edges"], tables["evidence"], marker)
    cursor = {"path": name, "generation": generation.number, "nodes": counts.nodes, "edges": counts.edges, "bytes": path.stat().st_size}
    rows = counts.nodes + counts.edges
    return cursor, {"rows_in": rows, "rows_out": rows, **watch.figures()}


def drop_old_graphs(lake: Lake, keep: int) -> None:
    """Graph files that none of the newest `keep` complete generations, nor the active one, names."""
    kept = {generation.cursors.get("graph", {}).get("path") for generation in kept_generations(lake, keep)}
    for file in lake.stores.glob("graph-*.lbug"):
        if f"stores/{file.name}" not in kept:
            file.unlink(missing_ok=True)
