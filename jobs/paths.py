"""`raydex path FROM TO`: shortest paths over code relations in the graph store, each step with its evidence re-read.

From or to a person or a mail, those of mails count too: who sent what to whom, and what answers what.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from raydex.ir.errors import ConfigError
from raydex.ir.kinds import EDGE_KINDS
from raydex.jobs.reading import Reader, open_reader
from raydex.jobs.show import edge_around

NODE_COLUMNS = ["node_id", "kind", "name", "qualified_name", "path", "repository"]
SHOWN = 3
RECORD_KINDS = ("file", "document", "email", "ticket")
MAIL_RELATIONS = ("SENT", "RECEIVED", "CC", "REPLY_TO")


def find_path(root: Path, source: str, target: str, max_hops: int, limit: int = SHOWN) -> dict[str, Any]:
    """{from, to, paths: [{nodes, edges}]}: at most `limit` shortest paths. Directed ones; where there is none, paths that may follow edges
    backwards.

    Raises ConfigError when an end is unknown or ambiguous (all candidates are named).
    """
    from raydex.cluster.graph_store import open_graph

    reader = open_reader(root)
    cursor = reader.generation.cursors.get("graph")
    if cursor is None:
        raise ConfigError("this generation has no graph", place=str(root), remedy="Index with run.project and run.load_graph on")
    start, end = resolve(reader, source), resolve(reader, target)
    relations = relations_between(start["kind"], end["kind"])
    directed = True
    with open_graph(reader.lake.root / cursor["path"]) as graph:
        found = graph.paths(start["node_id"], end["node_id"], max_hops, relations, limit=limit)
        if not found:
            directed = False
            found = graph.paths(start["node_id"], end["node_id"], max_hops, relations, undirected=True, limit=limit)
    paths = [_describe(reader, path) for path in found]
    return {"from": start, "to": end, "max_hops": max_hops, "generation": reader.generation.number, "directed": directed, "paths": paths}


def relations_between(*kinds: str) -> list[str]:
    """Relations of code; of mails too where an end is a person or a mail."""
    mails = any(kind in ("person", "email") for kind in kinds)
    return [name for name, kind in EDGE_KINDS.items() if kind.code or (mails and name in MAIL_RELATIONS)]


def resolve(reader: Reader, text: str) -> dict[str, Any]:
    """A node by id, then by qualified name, by name, by path or by the end of a path; exactly one must fit."""
    is_file = pc.field("kind").isin(RECORD_KINDS)
    ways = {column: pc.field(column) == text for column in ("node_id", "qualified_name", "name")}
    if "@" in text:
        # an address is told by its letters, whatever their case
        ways["qualified_name"] |= (pc.field("kind") == "person") & (pc.field("qualified_name") == text.strip().lower())
    ways["path"] = (pc.field("path") == text) & is_file
    ways["end of path"] = pc.ends_with(pc.field("path"), f"/{text}") & is_file
    for column, where in ways.items():
        rows = reader.rows("nodes", columns=NODE_COLUMNS, where=where).to_pylist()
        if len(rows) > 1 and column == "qualified_name":
            rows = [row for row in rows if row["kind"] not in RECORD_KINDS] or rows
        if len(rows) == 1:
            return _node(rows[0])
        if rows:
            names = "; ".join(
                sorted(f"{row['kind']} {row['qualified_name'] or row['name']} in {row['path']} ({row['node_id']})" for row in rows)[:8]
            )
            raise ConfigError(f"{text!r} is {len(rows)} nodes: {names}", remedy="Name one by its id")
    raise ConfigError(
        f"no node is called {text!r}", place=str(reader.lake.root), remedy="`raydex search` and `raydex edges` give names and ids"
    )


def _node(row: dict[str, Any]) -> dict[str, Any]:
    name = row["qualified_name"] or row["name"]
    where = f" in {row['path']}" if row["path"] and row["path"] != name else ""
    return {**row, "label": f"{name}{where}"}


def _describe(reader: Reader, path: Any) -> dict[str, Any]:
    nodes = reader.by_ids("nodes", "node_id", list(path.nodes), NODE_COLUMNS)
    edges = reader.by_ids("edges", "edge_id", list(path.edges))
    steps = []
    for at, key in enumerate(path.edges):
        edge = edges[key]
        steps.append(
            {
                "edge_id": key,
                "relation": edge["relation"],
                "confidence": edge["confidence"],
                "forward": edge["source"] == path.nodes[at],
                "evidence": edge_around(reader, edge)["evidence"],
            }
        )
    return {"nodes": [_node(nodes[key]) for key in path.nodes], "edges": steps}
