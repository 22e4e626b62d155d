"""`raydex show ID`: one thing by its id, with its locators and the source's own text at them.

Things of a record (the record itself, blocks, chunks, symbols, nodes, edges …) are read as the active generation pins them; runs and
generations are logs, and a source is what the generation keeps of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from raydex.cluster.delta import read_delta
from raydex.ir.errors import ConfigError
from raydex.ir.ids import content_hash
from raydex.ir.locator import LineIndex, Locator, split_lines
from raydex.ir.printed import plain_rows
from raydex.jobs.originals import GAP, Originals, range_of
from raydex.jobs.reading import Reader, open_reader
from raydex.kernels.excerpt import has_text

Row = dict[str, Any]

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
    "gen": (("generations", "generation_id"),),
}
LOGS = ("runs", "generations")
SOURCE = "src"
RECORD_COLUMNS = ("record_id", "source_name", "repository", "path", "uri", "media_type", "content_hash")
NODE_COLUMNS = ["node_id", "kind", "name", "qualified_name", "path", "repository"]
TEXT_SHOWN = 200_000


def show(root: Path, identifier: str) -> Row:
    """{id, table, generation, row, locators, source_text, …}; `source_text` is None where the source has no text there.

    Raises ConfigError when the id is not of a known form or not in the active generation.
    """
    prefix = identifier.partition("_")[0]
    if prefix not in PLACES and prefix != SOURCE:
        raise ConfigError(
            f"{identifier!r} is not an id",
            remedy=f"Ids look like chk_…; known prefixes: {', '.join(sorted([*PLACES, SOURCE]))}. `raydex search` gives ids",
        )
    reader = open_reader(root)
    number = reader.generation.number
    if prefix == SOURCE and identifier in reader.generation.sources:
        return {"id": identifier, "table": "generations", "generation": number, "row": reader.generation.sources[identifier]}
    for name, key in PLACES.get(prefix, ()):
        where = pc.field(key) == identifier
        found = (read_delta(reader.lake.tables, name, where=where) if name in LOGS else reader.rows(name, where=where)).slice(0, 1)
        if found.num_rows:
            about = {"id": identifier, "table": name, "generation": number, "row": plain_rows(name, found)[0]}
            return about if name in LOGS else {**about, **_around(reader, name, found.to_pylist()[0])}
    raise ConfigError(f"{identifier} is not in generation {number}", place=str(root), remedy="`raydex search` gives ids")


def _around(reader: Reader, name: str, row: Row) -> Row:
    """What belongs to it: its record, its place and the source's own text there; for edges also their ends and evidence."""
    originals = Originals(reader)
    out: Row = {}
    owner = row.get("source_record_id") or row.get("record_id")
    record = reader.by_ids("records", "record_id", [owner]).get(owner) if owner else None
    if record and name != "records":
        out["record"] = {key: record[key] for key in RECORD_COLUMNS}
    if name == "edges":
        return {**out, **_edge(edge_around(reader, row, originals))}
    if record is None:
        return {**out, "locators": [], "source_text": None}
    places = PLACE_OF.get(name, _own_places)(reader, originals, record, row)
    whole = places is WHOLE
    text = originals.text(record) if whole else originals.excerpt(record, places)
    if whole:
        places = _whole(record, text)
    if text is not None and len(text) > TEXT_SHOWN:
        out["source_text_length"], text = len(text), text[:TEXT_SHOWN]
    return {**out, "locators": [place.to_json() for place in places], "source_text": text}


def _edge(around: Row) -> Row:
    """An edge stands wherever its evidence does."""
    places = [Locator.parse(item["locator"]).to_json() for item in around["evidence"] if not item.get("missing")]
    excerpts = [item["excerpt"] for item in around["evidence"] if item.get("excerpt")]
    return {**around, "locators": places, "source_text": GAP.join(excerpts) or None}


WHOLE = [Locator(member="*")]  # stands for the whole file until its text is known
Finder = Callable[[Reader, Originals, Row, Row], list[Locator]]


def _whole(record: Row, text: str | None) -> list[Locator]:
    """A file as a place: all of its text, else its path."""
    if not text or record["media_type"] == "application/pdf":
        return [Locator(member=record["path"])]
    place = Locator(char=(0, len(text)), line=(1, max(1, len(split_lines(text)))))
    part = range_of(record)
    return [place if part is None else part.outside(place)]


def _own_places(reader: Reader, originals: Originals, record: Row, row: Row) -> list[Locator]:
    """The row says itself where it stands; events and rejects stand nowhere."""
    return [Locator.parse(item) for item in (row.get("locators") or ([row["locator"]] if row.get("locator") else []))]


def _page_place(reader: Reader, originals: Originals, record: Row, row: Row) -> list[Locator]:
    return [Locator(page=row["number"])]


def _symbol_place(reader: Reader, originals: Originals, record: Row, row: Row) -> list[Locator]:
    return [
        Locator(char=(row["char_start"], row["char_end"]), byte=(row["byte_start"], row["byte_end"]), line=(row["line"], row["end_line"]))
    ]


def _node_place(reader: Reader, originals: Originals, record: Row, row: Row) -> list[Locator]:
    """A canonical or chunker node: a file or document is its record, a symbol has its own place, a section that of its edge."""
    identifier = row["node_id"]
    if identifier == record["record_id"] or row.get("kind") == "ticket":
        return WHOLE
    symbol = reader.by_ids("symbols", "symbol_id", [identifier]).get(identifier)
    if symbol:
        return _symbol_place(reader, originals, record, symbol)
    edge = reader.by_ids("chunk_edges", "target", [identifier]).get(identifier)
    return _own_places(reader, originals, record, edge) if edge else []


def _code_node_place(reader: Reader, originals: Originals, record: Row, row: Row) -> list[Locator]:
    """Lines, and columns in code points, as characters of the text where it is there."""
    text = originals.text(record)
    lines = (row["line"], row["end_line"])
    if text is None:
        return [Locator(line=lines)]
    starts = [0]
    for line in split_lines(text):
        starts.append(starts[-1] + len(line))
    ends = [starts[min(line, len(starts)) - 1] for line in lines]
    return [Locator(char=(ends[0] + row["column"], ends[1] + row["end_column"]), line=lines)]


def _code_edge_place(reader: Reader, originals: Originals, record: Row, row: Row) -> list[Locator]:
    """The place that the edge was read from; an edge of the syntax tree stands where its target does."""
    if row["char_start"] is not None:
        text = originals.text(record)
        span = (row["char_start"], row["char_end"])
        if text is None:
            return [Locator(char=span)]
        index = LineIndex(text)
        return [Locator(char=span, line=(index.line_of(span[0]), index.line_of(max(span[0], span[1] - 1))))]
    target = reader.by_ids("code_nodes", "node_id", [row["target"]]).get(row["target"]) if row["target"] else None
    if target:
        return _code_node_place(reader, originals, record, target)
    return [Locator(line=(row["line"], row["line"]))] if row["line"] else []


PLACE_OF: dict[str, Finder] = {
    "records": lambda *_: WHOLE,
    "pages": _page_place,
    "symbols": _symbol_place,
    "nodes": _node_place,
    "chunk_nodes": _node_place,
    "code_nodes": _code_node_place,
    "code_edges": _code_edge_place,
}


def edge_around(reader: Reader, edge: Row, originals: Originals | None = None) -> Row:
    """Both ends and every evidence with its excerpt; `intact` says whether the excerpt still hashes to what the evidence says, and is None
    where there is no text to hash: the evidence is a whole file, or the original is gone."""
    originals = originals or Originals(reader)
    nodes = reader.by_ids("nodes", "node_id", [edge["source"], edge["target"]], NODE_COLUMNS)
    evidence = reader.by_ids("evidence", "evidence_id", list(edge["evidence_ids"]))
    records = reader.by_ids("records", "record_id", sorted({row["source_record_id"] for row in evidence.values()}))
    shown: list[Row] = []
    for identifier, rule in zip(edge["evidence_ids"], edge["rules"], strict=True):
        item = evidence.get(identifier)
        if item is None:
            shown.append({"evidence_id": identifier, "missing": True})
            continue
        record = records.get(item["source_record_id"])
        place = Locator.parse(item["locator"])
        excerpt = originals.excerpt(record, [place]) if record and has_text(place, record["media_type"]) else None
        shown.append(
            {
                "evidence_id": identifier,
                "path": item["path"],
                "line": item["line"],
                "locator": item["locator"],
                "rule": rule,
                "revision": item["revision"],
                "verification": item["verification"],
                "excerpt": excerpt,
                "intact": None if excerpt is None else content_hash(excerpt.encode()) == item["excerpt_hash"],
            }
        )
    return {"source": nodes.get(edge["source"]), "target": nodes.get(edge["target"]), "evidence": shown}
