"""Rows of tables → what `--json` prints, and the JSON schema of exactly that.

JSON columns and locators become objects; the columns that say who wrote a row, and when, are left out, but for a table's own key. The
schema is made of the same column list, so that it cannot drift from what is printed.
"""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa

from raydex.ir.kinds import BLOCK_KINDS, EDGE_KINDS, NODE_KINDS, SYMBOL_KINDS
from raydex.ir.locator import Locator
from raydex.ir.tables import COMMON, TABLES, VOLATILE

KEPT = ("record_id", "content_hash")
HIDDEN = {name for name, _, _ in COMMON} - set(KEPT) | set(VOLATILE)
LOCATORS = ("locator", "locators")
KINDS = {
    ("blocks", "kind"): list(BLOCK_KINDS),
    ("symbols", "kind"): list(SYMBOL_KINDS),
    ("nodes", "kind"): list(NODE_KINDS),
    ("edges", "relation"): list(EDGE_KINDS),
}
JSON = dict[str, Any]


def printed_columns(name: str) -> list[tuple[str, pa.DataType, bool]]:
    """(column, type, whether it holds JSON) of table `name`, as printed."""
    spec = TABLES[name]
    return [(column, kind, doc.startswith("JSON")) for column, kind, doc in spec.columns if column == spec.key or column not in HIDDEN]


def plain_rows(name: str, table: pa.Table | None) -> list[JSON]:
    """Rows of table `name` as they are printed."""
    if table is None:
        return []
    columns = printed_columns(name)
    rows: list[JSON] = table.select([column for column, _, _ in columns]).to_pylist()
    for column, kind, holds_json in columns:
        for row in rows:
            value = row[column]
            if holds_json:
                row[column] = orjson.loads(value or "{}")
            elif column == "locator" and value:
                row[column] = Locator.parse(value).to_json()
            elif column == "locators" and value:
                row[column] = [Locator.parse(item).to_json() for item in value]
            elif pa.types.is_map(kind) and value is not None:
                row[column] = dict(value)
    return rows


def row_schema(name: str) -> JSON:
    """JSON schema of a printed row of table `name`."""
    columns = printed_columns(name)
    properties = {column: _column_schema(name, column, kind, holds_json) for column, kind, holds_json in columns}
    return {
        "type": "object",
        "description": TABLES[name].doc,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def locator_schema() -> JSON:
    """A locator says at least one thing, and only what it has to say."""
    pair, box = _array({"type": "integer"}, 2), _array({"type": "number"}, 4)
    kinds: dict[str, JSON] = {"char": pair, "byte": pair, "line": pair, "bbox": box}
    whole = ("page", "slide", "shape", "row", "note", "table", "image")
    properties = {name: kinds.get(name, {"type": "integer" if name in whole else "string"}) for name in Locator.__dataclass_fields__}
    return {"type": "object", "properties": properties, "minProperties": 1, "additionalProperties": False}


def _array(items: JSON, count: int) -> JSON:
    return {"type": "array", "items": items, "minItems": count, "maxItems": count}


def _column_schema(name: str, column: str, kind: pa.DataType, holds_json: bool) -> JSON:
    if holds_json:
        return {"type": "object"}
    place = {"$ref": "#/$defs/locator"}
    if column == "locator":
        return {"anyOf": [place, {"type": "null"}]}
    if column == "locators":
        return {"type": "array", "items": place}
    if (name, column) in KINDS:
        return {"enum": KINDS[name, column]}
    schema = _type_schema(kind)
    return schema if column == TABLES[name].key else {**schema, "type": [schema["type"], "null"]}


def _type_schema(kind: pa.DataType) -> JSON:
    if pa.types.is_list(kind):
        return {"type": "array", "items": _type_schema(kind.value_type)}
    if pa.types.is_struct(kind):
        fields = {field.name: {**_type_schema(field.type), "type": [_type_schema(field.type)["type"], "null"]} for field in kind}
        return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    if pa.types.is_map(kind):
        return {"type": "object", "additionalProperties": _type_schema(kind.item_type)}
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_integer(kind):
        return {"type": "integer"}
    return {"type": "number" if pa.types.is_floating(kind) else "string"}
