"""`raydex show ID`: a record, document, page, block, symbol, CPG node, chunk, canonical node or edge, with the source's own text at it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from raydex.ir.errors import ConfigError
from raydex.ir.ids import content_hash
from raydex.jobs.one_file import plain_rows
from raydex.jobs.reading import Reader, open_reader

# id prefix → tables to look in, with their key
PLACES: dict[str, tuple[tuple[str, str], ...]] = {
    "rec": (("records", "record_id"),),
    "pag": (("pages", "page_id"),),
    "blk": (("blocks", "block_id"),),
    "ast": (("assets", "asset_id"),),
    "obs": (("observations", "observation_id"),),
    "sym": (("symbols", "symbol_id"),),
    "nod": (("nodes", "node_id"), ("chunk_nodes", "node_id"), ("code_nodes", "node_id")),
    "rep": (("nodes", "node_id"),),
    "edg": (("edges", "edge_id"), ("code_edges", "edge_id"), ("chunk_edges", "edge_id")),
    "evd": (("evidence", "evidence_id"),),
    "chk": (("chunks", "chunk_id"),),
    "rej": (("rejects", "reject_id"),),
    "evt": (("events", "event_id"),),
    "run": (("runs", "run_id"),),
}


def show(root: Path, identifier: str) -> dict[str, Any]:
    """{id, table, row, source_text, …}. Raises ConfigError when the id is not of a known form or not in the active generation."""
    tables = PLACES.get(identifier.partition("_")[0])
    if tables is None:
        raise ConfigError(
            f"{identifier!r} is not an id",
            remedy=f"Ids look like chk_…; known prefixes: {', '.join(sorted(PLACES))}. `raydex search` gives ids",
        )
    reader = open_reader(root)
    for name, key in tables:
        found = reader.rows(name, where=pc.field(key) == identifier)
        if found.num_rows:
            row = plain_rows(found.slice(0, 1))[0]
            raw = found.slice(0, 1).to_pylist()[0]
            return {"id": identifier, "table": name, "generation": reader.generation.number, "row": row, **_around(reader, name, raw)}
    raise ConfigError(f"{identifier} is not in generation {reader.generation.number}", place=str(root), remedy="`raydex search` gives ids")


def _around(reader: Reader, name: str, row: dict[str, Any]) -> dict[str, Any]:
    """What belongs to it: the record, the source's own text, for edges their ends and evidence."""
    out: dict[str, Any] = {}
    owner = row.get("source_record_id") or row.get("record_id")
    records = reader.by_ids("records", "record_id", [owner]) if owner else {}
    record = records.get(owner or "")
    if record and name != "records":
        names = ("record_id", "source_name", "repository", "path", "uri", "media_type", "content_hash")
        out["record"] = {key: record[key] for key in names}
    if name == "edges":
        out.update(edge_around(reader, row))
    elif name == "nodes":
        sym = reader.by_ids("symbols", "symbol_id", [row["node_id"]]).get(row["node_id"])
        if sym and record:
            out["source_text"] = _symbol_text(reader, record, sym)
            out["lines"] = [sym["line"], sym["end_line"]]
    elif name == "symbols" and record:
        out["source_text"] = _symbol_text(reader, record, row)
        out["lines"] = [row["line"], row["end_line"]]
    elif name == "code_nodes" and record:
        text = reader.source_text(record)
        from raydex.ir.locator import split_lines

        out["source_text"] = None if text is None else "".join(split_lines(text)[row["line"] - 1 : row["end_line"]])
    elif record:
        locators = row.get("locators") or ([row["locator"]] if row.get("locator") else [])
        texts = [reader.excerpt(record, item) for item in locators]
        out["source_text"] = "\n…\n".join(text for text in texts if text) or None
    return out


def _symbol_text(reader: Reader, record: dict[str, Any], symbol: dict[str, Any]) -> str | None:
    text = reader.source_text(record)
    return None if text is None else text[symbol["char_start"] : symbol["char_end"]]


def edge_around(reader: Reader, edge: dict[str, Any]) -> dict[str, Any]:
    """Both ends and every evidence with its excerpt; `intact` says whether the excerpt still hashes to what the evidence says."""
    names = ["node_id", "kind", "name", "qualified_name", "path", "repository"]
    nodes = reader.by_ids("nodes", "node_id", [edge["source"], edge["target"]], names)
    evidence = reader.by_ids("evidence", "evidence_id", list(edge["evidence_ids"]))
    records = reader.by_ids("records", "record_id", sorted({row["source_record_id"] for row in evidence.values()}))
    shown = []
    for identifier in edge["evidence_ids"]:
        item = evidence.get(identifier)
        if item is None:
            shown.append({"evidence_id": identifier, "missing": True})
            continue
        record = records.get(item["source_record_id"])
        excerpt = reader.excerpt(record, item["locator"]) if record else None
        shown.append(
            {
                "evidence_id": identifier,
                "path": item["path"],
                "line": item["line"],
                "locator": item["locator"],
                "rule": item["rule"],
                "revision": item["revision"],
                "verification": item["verification"],
                "excerpt": excerpt,
                "intact": None if excerpt is None else content_hash(excerpt.encode()) == item["excerpt_hash"],
            }
        )
    return {"source": nodes.get(edge["source"]), "target": nodes.get(edge["target"]), "evidence": shown}
