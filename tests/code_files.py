"""For the tests of source code: parse a text, and read the edges by names instead of ids."""

from __future__ import annotations

from typing import NamedTuple

from raydex.ir.parsed import ParsedFile
from raydex.kernels.parse import parse
from raydex.kernels.request import ParseRequest

MEDIA_TYPES = {"py": "text/x-python", "ts": "text/x-typescript", "tsx": "text/x-tsx"}


class Edge(NamedTuple):
    relation: str
    source: str
    target: str | None
    confidence: str
    rule: str
    label: str
    expression: str | None
    candidates: list[str]
    line: int
    excerpt: str


def parse_code(path: str, code: str | bytes) -> ParsedFile:
    data = code if isinstance(code, bytes) else code.encode()
    parsed = parse(ParseRequest("rec_test", "hash", path, MEDIA_TYPES[path.rpartition(".")[2]], data, repository="shop"))
    assert parsed.document is not None, parsed.rejects
    return parsed


def names_of(parsed: ParsedFile) -> dict[str, str]:
    """Symbol id → qualified name, with the discriminator in braces; the module is "<module>"."""
    names = {s.symbol_id: s.qualified_name + (f"{{{s.discriminator}}}" if s.discriminator else "") for s in parsed.symbols}
    names[parsed.symbols[0].symbol_id] = "<module>"
    return names


def edges_of(parsed: ParsedFile, *relations: str) -> list[Edge]:
    names, columns, text = names_of(parsed), parsed.code_edges, parsed.blocks[0].text
    out = []
    for at, relation in enumerate(columns["relation"]):
        if relation in relations:
            row = {name: values[at] for name, values in columns.items()}
            target = names[row["target"]] if row["target"] else None
            candidates = [names.get(c, c) for c in row["candidates"]]
            excerpt = text[row["char_start"] : row["char_end"]]
            fields = (row["confidence"], row["rule"], row["label"], row["expression"], candidates, row["line"], excerpt)
            out.append(Edge(relation, names[row["source"]], target, *fields))
    return out


def linked(parsed: ParsedFile, *relations: str) -> set[tuple[str, str, str, str]]:
    """(source, target, rule, excerpt) of the edges that have a target; CALLS by default."""
    return {(e.source, e.target, e.rule, e.excerpt) for e in edges_of(parsed, *(relations or ("CALLS",))) if e.target}


def open_calls(parsed: ParsedFile) -> dict[str, tuple[str, list[str]]]:
    """Expression → (rule, candidates) of the calls without a target."""
    return {e.expression or "": (e.rule, e.candidates) for e in edges_of(parsed, "CALLS") if e.target is None}


def symbols_of(parsed: ParsedFile) -> list[tuple[str, str]]:
    """(kind, name) of all symbols but the module."""
    names = names_of(parsed)
    return [(s.kind, names[s.symbol_id]) for s in parsed.symbols[1:]]


def ids_of(parsed: ParsedFile) -> dict[str, list[str]]:
    return {
        "symbols": sorted(s.symbol_id for s in parsed.symbols),
        "nodes": sorted(parsed.code_nodes["node_id"]),
        "edges": sorted(parsed.code_edges["edge_id"]),
    }
