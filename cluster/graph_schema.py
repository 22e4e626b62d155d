"""Kinds of the IR → tables of the graph store, and the checks that a graph must pass before a byte of it is written.

The invariant: one node table for entities, one for evidence, one for the marker, and one relation table a kind of edge, named as in
`raydex.ir.kinds`, so that a relation's name in a query is always one of ours. Relations carry no DOUBLE column (it slows loading by orders
of magnitude) and their evidence ids as one text, separated by commas (a list loads a third slower).
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from raydex.ir.errors import ConfigError, StoreError
from raydex.ir.kinds import CONFIDENCES, EDGE_KINDS, NODE_KINDS

S = pa.string()
ENTITY = pa.schema(
    [
        pa.field("node_id", S, nullable=False),
        *((name, S) for name in ("kind", "name", "qualified_name", "path", "repository", "properties")),
    ]
)
EDGE = pa.schema([*((name, S) for name in ("edge_id", "source", "target", "relation", "confidence")), ("evidence_ids", pa.list_(S))])
EVIDENCE = pa.schema(
    [
        pa.field("evidence_id", S, nullable=False),
        *((name, S) for name in ("source_record_id", "locator", "excerpt_hash", "revision", "cas_uri", "verification", "path")),
        ("line", pa.int32()),
    ]
)
MARKER = pa.schema(
    [("marker", S), ("generation", pa.int64()), ("source_manifest", S), ("projection_hash", S)]
    + [(name, pa.int64()) for name in ("nodes", "edges", "evidence")]
)
SEPARATOR = ","
_TYPES = {S: "STRING", pa.int32(): "INT32", pa.int64(): "INT64"}
_SHOWN = 3
_DEFECT = "The graph is built from the tables: run `raydex verify`, then index again"


def ddl() -> list[str]:
    """Statements that make all tables, in order."""
    nodes = [_node_table(name, schema) for name, schema in (("Entity", ENTITY), ("Evidence", EVIDENCE), ("Marker", MARKER))]
    columns = "edge_id STRING, confidence STRING, evidence_ids STRING"
    return nodes + [f"CREATE REL TABLE {relation}(FROM Entity TO Entity, {columns})" for relation in EDGE_KINDS]


def _node_table(name: str, schema: pa.Schema) -> str:
    columns = ", ".join(f"{field.name} {_TYPES[field.type]}" for field in schema)
    return f"CREATE NODE TABLE {name}({columns}, PRIMARY KEY({schema.names[0]}))"


def relation_pattern(relations: list[str] | tuple[str, ...] | None) -> str:
    """`A|B|C` for a query; all kinds when none is named. Raises ConfigError for a name that is not a kind of edge."""
    unknown = sorted(set(relations or ()) - set(EDGE_KINDS))
    if unknown:
        raise ConfigError(f"unknown relation {', '.join(map(repr, unknown))}", remedy=f"Known: {', '.join(EDGE_KINDS)}")
    return "|".join(dict.fromkeys(relations or EDGE_KINDS))


def conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with exactly the schema's columns and types; a column that is not there is null."""
    count = table.num_rows
    arrays = [table.column(f.name).cast(f.type) if f.name in table.schema.names else pa.nulls(count, f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def check_graph(nodes: pa.Table, edges: pa.Table, evidence: pa.Table) -> None:
    """Tables in the schemas above. Raises StoreError that names the first null or repeated ids, unknown kinds, missing ends or evidence."""
    ends = [edges.column("source"), edges.column("target")]
    flat = pc.list_flatten(edges.column("evidence_ids"))
    closed = _is_closed(nodes.column("node_id"), ends)
    founded = _is_closed(evidence.column("evidence_id"), [flat])
    _check_key(nodes, "node_id", "node", unique=closed)
    _check_key(edges, "edge_id", "edge", unique=False)
    _check_key(evidence, "evidence_id", "evidence", unique=founded)
    _check_known(nodes, "kind", NODE_KINDS, "node_id", "node")
    _check_known(edges, "relation", EDGE_KINDS, "edge_id", "edge")
    _check_known(edges, "confidence", CONFIDENCES, "edge_id", "edge")
    for end in () if closed else ("source", "target"):
        found = pc.is_in(edges.column(end), value_set=_values(nodes.column("node_id")))
        _refuse(edges, pc.invert(found), "edge_id", f"an edge's {end} is no node", end)
    _check_evidence(edges, evidence, flat, founded)


def _is_closed(keys: pa.ChunkedArray, uses: list[pa.ChunkedArray]) -> bool:
    """Whether no key is there twice and every use is a key, by one hash table over all of them: codes are given in order of appearance."""
    chunks = [chunk for column in (keys, *uses) for chunk in column.chunks]
    codes = pa.chunked_array([chunk.indices for chunk in pa.chunked_array(chunks, S).dictionary_encode().chunks], pa.int32())
    if len(codes) == 0:
        return True
    if len(keys) == 0 or keys.null_count or codes.null_count:
        return False
    return bool(codes[len(keys) - 1].as_py() == len(keys) - 1 == pc.max(codes).as_py())


def _check_key(table: pa.Table, key: str, what: str, *, unique: bool) -> None:
    column = table.column(key)
    missing = column.null_count + (pc.sum(pc.equal(column, "")).as_py() or 0)
    if missing:
        raise StoreError(f"{missing} {what} rows have no {key}", remedy=_DEFECT)
    if not unique and len(pc.unique(column)) != table.num_rows:
        counts = column.value_counts()
        repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
        raise StoreError(f"{len(repeated)} {what} ids are there more than once: {_few(repeated)}", remedy=_DEFECT)


def _check_known(table: pa.Table, column: str, known: Iterable[str], key: str, what: str) -> None:
    found = pc.is_in(table.column(column), value_set=pa.array(list(known), S))
    _refuse(table, pc.invert(found), key, f"unknown {column} of {what}", column)


def _check_evidence(edges: pa.Table, evidence: pa.Table, flat: pa.ChunkedArray, founded: bool) -> None:
    lists = edges.column("evidence_ids")
    bare = pc.equal(pc.fill_null(pc.list_value_length(lists), 0), 0)
    _refuse(edges, bare, "edge_id", "an edge has no evidence", "relation")
    known = None if founded else pc.is_in(flat, value_set=_values(evidence.column("evidence_id")))
    if known is not None and not pc.all(known).as_py():
        lost = flat.filter(pc.invert(known))
        raise StoreError(f"edges name {len(lost)} evidence ids that are not there: {_few(lost)}", remedy=_DEFECT)
    if pc.any(pc.match_substring(flat, SEPARATOR)).as_py():
        raise StoreError(f"an evidence id holds a {SEPARATOR!r}", remedy=_DEFECT)


def _refuse(table: pa.Table, bad: pa.ChunkedArray, key: str, problem: str, shown: str) -> None:
    if not pc.any(bad).as_py():
        return
    rows = table.filter(bad)
    first = rows.select([key, shown]).slice(0, _SHOWN).to_pylist()
    names = "; ".join(f"{row[key]} ({row[shown]})" for row in first)
    raise StoreError(f"{problem}: {rows.num_rows} rows, first {names}", remedy=_DEFECT)


def _values(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _few(values: pa.Array | pa.ChunkedArray) -> str:
    return ", ".join(str(value) for value in values.slice(0, _SHOWN).to_pylist())
