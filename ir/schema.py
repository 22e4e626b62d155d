"""Table specs → the JSON schema of what `parse` and `chunk` print, and the Markdown of docs/tables.md. Both are checked in; a test proves
that they are current, another that the output keeps the schema."""

from __future__ import annotations

from typing import Any

from raydex.ir.document import SCHEMA_NAME, SCHEMA_VERSION
from raydex.ir.kinds import BLOCK_KINDS, EDGE_KINDS, NODE_KINDS, SYMBOL_KINDS
from raydex.ir.printed import locator_schema, row_schema
from raydex.ir.tables import LOG_TABLES, OUTSIDE_EQUALITY, PROJECT_TABLES, RECORD_TABLES, TABLES, VOLATILE


def ir_schema() -> dict[str, Any]:
    """JSON schema of one printed object: `$defs/parse` or `$defs/chunk`. Rows are under `$defs` by table; the canonical graph's, which
    `show` and `edges` print, are there too."""
    rows = {name: row_schema(name) for name in (*RECORD_TABLES, *PROJECT_TABLES, *LOG_TABLES)}
    lists = ("pages", "blocks", "assets", "observations", "symbols", "code_nodes", "code_edges", "events", "rejects")
    text = {"type": "string"}
    parse = {
        **dict.fromkeys(("record_id", "content_hash", "path"), text),
        "document": _or_null(_ref("documents")),
        "issue": _or_null(_ref("issues")),
        **{name: _list(_ref(name)) for name in lists},
        "children": _list(_ref("parse")),
    }
    parts = {"chunks": "chunks", "nodes": "chunk_nodes", "edges": "chunk_edges", "rejects": "rejects"}
    chunk = {key: _list(_ref(name)) for key, name in parts.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{SCHEMA_NAME} {SCHEMA_VERSION}",
        "anyOf": [_ref("parse"), _ref("chunk")],
        "$defs": {"locator": locator_schema(), "parse": _object(parse), "chunk": _object(chunk), **rows},
        "kinds": {"block": list(BLOCK_KINDS), "symbol": list(SYMBOL_KINDS), "node": list(NODE_KINDS), "relation": list(EDGE_KINDS)},
    }


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


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
