"""IR records → JSON schema, and table specs → the Markdown of docs/tables.md. Both are checked in; a test proves that they are current."""

from __future__ import annotations

from typing import Any

from raydex.ir.document import SCHEMA_NAME, SCHEMA_VERSION
from raydex.ir.kinds import BLOCK_KINDS, EDGE_KINDS, NODE_KINDS, SYMBOL_KINDS
from raydex.ir.tables import OUTSIDE_EQUALITY, TABLES, VOLATILE


def ir_schema() -> dict[str, Any]:
    """JSON schema of ParsedFile, Chunk results and the canonical graph, by record name under `$defs`."""
    from pydantic import TypeAdapter

    from raydex.ir.chunk import ChunkResult
    from raydex.ir.graph import CanonicalEdge, CanonicalNode, Evidence
    from raydex.ir.parsed import ParsedFile

    _, schema = TypeAdapter.json_schemas(
        [(kind, "serialization", TypeAdapter(kind)) for kind in (ParsedFile, ChunkResult, CanonicalNode, CanonicalEdge, Evidence)],
        title=f"{SCHEMA_NAME} {SCHEMA_VERSION}",
    )
    schema["kinds"] = {"block": list(BLOCK_KINDS), "symbol": list(SYMBOL_KINDS), "node": list(NODE_KINDS), "relation": list(EDGE_KINDS)}
    return dict(schema)


def tables_markdown() -> str:
    """The reference of all tables and kinds."""
    lines = [
        "# Tables",
        "",
        "Generated from `ir/tables.py` and `ir/kinds.py` by `scripts/generate`; a test proves that it is current.",
        "",
        f"Volatile columns: {', '.join(f'`{name}`' for name in VOLATILE)}. Tables that are logs and take no part in row equality: "
        f"{', '.join(f'`{name}`' for name in OUTSIDE_EQUALITY)}.",
    ]
    for spec in TABLES.values():
        lines += [
            "",
            f"## `{spec.name}`",
            "",
            f"{spec.doc} Primary key `{spec.key}`; stage {spec.stage}.",
            "",
            "| column | type | meaning |",
        ]
        lines += ["|---|---|---|"]
        lines += [f"| `{name}` | `{kind}` | {doc} |" for name, kind, doc in spec.columns]
    lines += ["", "# Node kinds", "", "| kind | meaning | code |", "|---|---|---|"]
    lines += [f"| `{kind.name}` | {kind.comment} | {'yes' if kind.code else 'no'} |" for kind in NODE_KINDS.values()]
    lines += ["", "# Relations", "", "| relation | meaning | code | legal source kinds | legal target kinds |", "|---|---|---|---|---|"]
    for edge in EDGE_KINDS.values():
        sources = ", ".join(dict.fromkeys(source for source, _ in edge.pairs))
        targets = ", ".join(dict.fromkeys(target for _, target in edge.pairs))
        lines.append(f"| `{edge.name}` | {edge.comment} | {'yes' if edge.code else 'no'} | {sources} | {targets} |")
    return "\n".join(lines) + "\n"
