"""Canonical nodes, edges and evidence → one Ladybug file a generation, and reading it (contracts 14, 15).

The invariant: a file under its final name is complete. It is built beside as `NAME.tmp` from tables that were checked first, nodes before
relations, the marker last, and then renamed; it is never written again, so any number of processes may read it, also in a folder that
cannot be written. Values reach a query only as parameters.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.graph_schema import EDGE, ENTITY, EVIDENCE, MARKER, SEPARATOR, check_graph, conformed, ddl, relation_pattern
from raydex.ir.errors import ConfigError, StoreError
from raydex.ir.kinds import CONFIDENCES

BUILD_POOL_BYTES = 4 << 30
READ_POOL_BYTES = 1 << 30
# the engine's threads take one part at a time
COPY_ROWS = 16_384
# the engine's own bound on recursive relations
MAX_HOPS = 30
MAX_PATHS = 100


@dataclass(frozen=True, slots=True)
class Marker:
    """What the file was built from: generation number, source manifest and projection hash (contracts 15)."""

    generation: int
    source_manifest: str
    projection_hash: str


class GraphCounts(NamedTuple):
    nodes: int
    edges: int
    evidence: int


class Path(NamedTuple):
    """Node ids from source to target and the ids of the edges between them, one fewer."""

    nodes: tuple[str, ...]
    edges: tuple[str, ...]


class GraphEdge(NamedTuple):
    edge_id: str
    source: str
    target: str
    relation: str
    confidence: str
    evidence_ids: tuple[str, ...]


def build_graph(path: str | os.PathLike[str], nodes: pa.Table, edges: pa.Table, evidence: pa.Table, marker: Marker) -> GraphCounts:
    """Writes a fresh graph file of tables in the schemas of `ir.tables` (further columns are left out); an older one is replaced.

    Raises StoreError before anything is written when an id is null or repeated, a kind unknown, or an end or evidence of an edge missing
    (`check_graph`), and when the engine fails; the file under the final name is then as it was.
    """
    nodes, edges, evidence = conformed(nodes, ENTITY), conformed(edges, EDGE), conformed(evidence, EVIDENCE)
    check_graph(nodes, edges, evidence)
    final = FilePath(path)
    building = final.with_name(final.name + ".tmp")
    final.parent.mkdir(parents=True, exist_ok=True)
    _remove(building)
    counts = GraphCounts(nodes.num_rows, edges.num_rows, evidence.num_rows)
    try:
        with _opened(building, read_only=False, pool_bytes=BUILD_POOL_BYTES) as connection:
            for statement in ddl():
                _run(connection, statement)
            _copy(connection, "Entity", nodes)
            _copy(connection, "Evidence", evidence)
            for relation, part in _by_relation(edges):
                _copy(connection, relation, part)
            row = ["complete", marker.generation, marker.source_manifest, marker.projection_hash, *counts]
            _copy(connection, "Marker", pa.Table.from_arrays([pa.array([value], f.type) for value, f in zip(row, MARKER)], schema=MARKER))
            _run(connection, "CHECKPOINT")
        _sync(building)
        os.replace(building, final)
        _sync(final.parent)
    except BaseException:
        _remove(building)
        raise
    return counts


def open_graph(path: str | os.PathLike[str]) -> Graph:
    """The graph for reading; close it, or use it in a `with`. Raises StoreError when the file is not there or not complete."""
    graph = Graph(FilePath(path))
    try:
        graph.marker()
    except BaseException:
        graph.close()
        raise
    return graph


class Graph:
    """A complete graph file, read-only."""

    def __init__(self, path: FilePath) -> None:
        if not path.is_file():
            raise StoreError("there is no graph file", place=str(path), remedy="Run `raydex index` to build one")
        self.path = path
        self._context = _opened(path, read_only=True, pool_bytes=READ_POOL_BYTES)
        self._connection = self._context.__enter__()

    def close(self) -> None:
        self._context.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def marker(self) -> Marker:
        row = self._marker_row()
        return Marker(row["generation"], row["source_manifest"], row["projection_hash"])

    def counts(self) -> GraphCounts:
        """Counted in the store, not read from the marker."""
        nodes = self._rows("MATCH (n:Entity) RETURN count(*) AS n")[0]["n"]
        evidence = self._rows("MATCH (n:Evidence) RETURN count(*) AS n")[0]["n"]
        edges = self._rows("MATCH (:Entity)-[r]->(:Entity) RETURN count(*) AS n")[0]["n"]
        return GraphCounts(nodes, edges, evidence)

    def node_ids(self) -> list[str]:
        return sorted(self._column("MATCH (n:Entity) RETURN n.node_id AS id"))

    def edge_ids(self) -> list[str]:
        return sorted(self._column("MATCH (:Entity)-[r]->(:Entity) RETURN r.edge_id AS id"))

    def evidence_ids(self) -> list[str]:
        return sorted(self._column("MATCH (n:Evidence) RETURN n.evidence_id AS id"))

    def node(self, node_id: str) -> dict[str, Any] | None:
        """The columns of `graph_schema.ENTITY`."""
        columns = ", ".join(f"n.{name} AS {name}" for name in ENTITY.names)
        rows = self._rows(f"MATCH (n:Entity {{node_id: $id}}) RETURN {columns}", id=node_id)
        return rows[0] if rows else None

    def evidence(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """The columns of `graph_schema.EVIDENCE`, in the order asked for; ids that are not there are left out."""
        columns = ", ".join(f"n.{name} AS {name}" for name in EVIDENCE.names)
        query = f"UNWIND $ids AS wanted MATCH (n:Evidence) WHERE n.evidence_id = wanted RETURN {columns}"
        found = {row["evidence_id"]: row for row in self._rows(query, ids=list(dict.fromkeys(ids)))} if ids else {}
        return [found[key] for key in ids if key in found]

    def neighbors(self, node_id: str, relations: Sequence[str] | None = None) -> list[GraphEdge]:
        """Edges that begin or end at the node, by rising edge id; a self-loop once."""
        pattern = relation_pattern(tuple(relations) if relations is not None else None)
        columns = "a.node_id AS source, b.node_id AS target, label(r) AS relation"
        columns += ", r.edge_id AS edge_id, r.confidence AS confidence, r.evidence_ids AS evidence_ids"
        edges: dict[str, GraphEdge] = {}
        for bound in ("a", "b"):
            query = f"MATCH (a:Entity)-[r:{pattern}]->(b:Entity) WHERE {bound}.node_id = $id RETURN {columns}"
            for row in self._rows(query, id=node_id):
                evidence_ids = tuple(row.pop("evidence_ids").split(SEPARATOR))
                edges[row["edge_id"]] = GraphEdge(evidence_ids=evidence_ids, **row)
        return [edges[key] for key in sorted(edges)]

    def paths(
        self,
        source_id: str,
        target_id: str,
        max_hops: int,
        relations: Sequence[str],
        undirected: bool = False,
        confidences: Sequence[str] | None = None,
        limit: int = MAX_PATHS,
    ) -> list[Path]:
        """Shortest paths of at most `max_hops` (1 to 30) edges, ordered by their edge ids, at most `limit` of them.

        Empty when an end is unknown or out of reach; from a node to itself one path without edges. With `undirected`, edges may be
        followed backwards; with `confidences`, only edges of these. The number of equal shortest paths may be exponential, hence the
        limit: distances are found by two searches of the engine, and the first paths by walking down them.
        """
        pattern = relation_pattern(tuple(relations))
        if not 1 <= max_hops <= MAX_HOPS:
            raise ConfigError(f"max_hops is {max_hops}, not 1 to {MAX_HOPS}")
        unknown = sorted(set(confidences or ()) - set(CONFIDENCES))
        if unknown:
            raise ConfigError(f"unknown confidence {', '.join(map(repr, unknown))}", remedy=f"Known: {', '.join(CONFIDENCES)}")
        if source_id == target_id:
            return [Path((source_id,), ())] if self.node(source_id) is not None else []
        if not relations or confidences == [] or limit < 1:
            return []
        walk = _Walk(self._rows, pattern, undirected, list(confidences) if confidences is not None else None)
        hops = walk.distance(source_id, target_id, max_hops)
        return list(walk.paths(source_id, target_id, hops, limit)) if hops else []

    def _marker_row(self) -> dict[str, Any]:
        columns = ", ".join(f"n.{name} AS {name}" for name in MARKER.names)
        rows = self._rows(f"MATCH (n:Marker) RETURN {columns}")
        if not rows:
            raise StoreError("the graph file has no complete marker", place=str(self.path), remedy="Run `raydex index` to build it anew")
        return rows[0]

    def _rows(self, query: str, **parameters: Any) -> list[dict[str, Any]]:
        with closing(_run(self._connection, query, parameters)) as result:
            names = result.get_column_names()
            return [dict(zip(names, row)) for row in result.get_all()]

    def _column(self, query: str) -> list[str]:
        with closing(_run(self._connection, query)) as result:
            found: list[str] = result.get_as_arrow().column(0).to_pylist()
            return found


class _Walk:
    """Distances to a target, and the paths that fall by one hop at each step."""

    def __init__(self, rows: Any, pattern: str, undirected: bool, confidences: list[str] | None) -> None:
        self._rows = rows
        self._pattern = pattern
        self._undirected = undirected
        self._filter = " (r, n | WHERE r.confidence IN $confidences)" if confidences is not None else ""
        self._parameters: dict[str, Any] = {} if confidences is None else {"confidences": confidences}
        self._steps: dict[str, list[tuple[str, str]]] = {}

    def distance(self, source: str, target: str, max_hops: int) -> int:
        """Hops of a shortest path; 0 when there is none."""
        arrow = "-" if self._undirected else "->"
        query = (
            f"MATCH (a:Entity {{node_id: $source}})-[r:{self._pattern}* SHORTEST 1..{max_hops:d}{self._filter}]{arrow}"
            "(b:Entity {node_id: $target}) RETURN length(r) AS hops"
        )
        found = self._rows(query, source=source, target=target, **self._parameters)
        return int(found[0]["hops"]) if found else 0

    def paths(self, source: str, target: str, hops: int, limit: int) -> Iterator[Path]:
        left = self._distances_to(target, hops - 1)
        heap: list[tuple[tuple[str, ...], tuple[str, ...]]] = [((), (source,))]
        given = 0
        while heap and given < limit:
            edges, nodes = heapq.heappop(heap)
            remaining = hops - len(edges)
            if remaining == 0:
                given += 1
                yield Path(nodes, edges)
                continue
            for edge_id, node in self._next(nodes[-1]):
                if left.get(node) == remaining - 1:
                    heapq.heappush(heap, ((*edges, edge_id), (*nodes, node)))

    def _distances_to(self, target: str, hops: int) -> dict[str, int]:
        left = {target: 0}
        if hops:
            arrow = "-" if self._undirected else "<-"
            query = (
                f"MATCH (t:Entity {{node_id: $target}}){arrow}[r:{self._pattern}* SHORTEST 1..{hops:d}{self._filter}]-(v:Entity) "
                "RETURN v.node_id AS id, length(r) AS hops"
            )
            for row in self._rows(query, target=target, **self._parameters):
                left.setdefault(row["id"], row["hops"])
        return left

    def _next(self, node: str) -> list[tuple[str, str]]:
        """(edge id, node behind it), sorted."""
        if node not in self._steps:
            arrow = "-" if self._undirected else "->"
            where = " WHERE r.confidence IN $confidences" if self._parameters else ""
            query = (
                f"MATCH (a:Entity {{node_id: $id}})-[r:{self._pattern}]{arrow}(b:Entity){where} RETURN r.edge_id AS edge, b.node_id AS node"
            )
            self._steps[node] = sorted({(row["edge"], row["node"]) for row in self._rows(query, id=node, **self._parameters)})
        return self._steps[node]


@contextmanager
def _opened(path: FilePath, *, read_only: bool, pool_bytes: int) -> Iterator[Any]:
    import ladybug

    try:
        database = ladybug.Database(str(path), read_only=read_only, buffer_pool_size=pool_bytes)
    except RuntimeError as error:
        raise StoreError(f"the graph file did not open: {error}", place=str(path), remedy="Run `raydex index` to build it anew") from error
    with closing(database), closing(ladybug.Connection(database)) as connection:
        yield connection


def _run(connection: Any, query: str, parameters: dict[str, Any] | None = None) -> Any:
    try:
        return connection.execute(query, parameters or {})
    except RuntimeError as error:
        place = str(connection.database.database_path)
        raise StoreError(
            f"the graph store failed: {str(error)[:300]}", place=place, remedy="Run `raydex index` to build it anew"
        ) from error


def _copy(connection: Any, table: str, rows: pa.Table) -> None:
    """Bulk load straight from memory: no file path, so nothing in it can be read as a pattern, and text keeps every character."""
    if rows.num_rows:
        parts = pa.Table.from_batches(rows.to_batches(max_chunksize=COPY_ROWS), schema=rows.schema)
        _run(connection, f"COPY {table} FROM $rows", {"rows": parts}).close()


def _by_relation(edges: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Per kind of edge the columns that COPY wants: both ends first, then the properties."""
    names = ["source", "target", "edge_id", "confidence"]
    for relation in sorted(pc.unique(edges.column("relation")).to_pylist()):
        part = edges.filter(pc.equal(edges.column("relation"), relation))
        evidence = pc.binary_join(part.column("evidence_ids"), SEPARATOR)
        yield relation, part.select(names).append_column("evidence_ids", evidence)


def _remove(path: FilePath) -> None:
    for name in (path.name, f"{path.name}.wal", f"{path.name}.shadow"):
        path.with_name(name).unlink(missing_ok=True)


def _sync(path: FilePath) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
