"""Records of the IR → Arrow tables with the schemas of `ir/tables.py`.

The invariant: every table that comes out has exactly its spec's schema, so that a writer never has to cast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from typing import Any

import orjson
import pyarrow as pa

from raydex.ir.chunk import ChunkResult
from raydex.ir.document import Block
from raydex.ir.ids import text_hash
from raydex.ir.locator import Locator
from raydex.ir.parsed import ParsedFile, to_plain
from raydex.ir.tables import TABLES


@dataclass(frozen=True, slots=True)
class Stamp:
    """The common columns of the rows that one stage writes for one record."""

    record_id: str
    content_hash: str
    fingerprint: str
    run_id: str
    epoch: int
    written_at: datetime


@cache
def _schema(name: str) -> pa.Schema:
    return TABLES[name].schema


def _array(values: list[Any] | pa.Array, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def to_table(name: str, columns: Mapping[str, list[Any] | pa.Array]) -> pa.Table:
    """Columns (own and common) → Arrow table of table `name`; a missing column is null, an unknown one an error."""
    schema = _schema(name)
    unknown = set(columns) - set(schema.names)
    if unknown:
        raise ValueError(f"table {name} has no column {sorted(unknown)}")
    count = len(next(iter(columns.values()))) if columns else 0
    arrays = [_array(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def empty_table(name: str) -> pa.Table:
    return TABLES[name].schema.empty_table()


def stamped(name: str, rows: list[dict[str, Any]] | dict[str, list[Any]], stamp: Stamp) -> pa.Table:
    """Rows or columns + the common columns → Arrow table."""
    columns: dict[str, list[Any] | pa.Array]
    if isinstance(rows, dict):
        columns = dict(rows)
        count = len(next(iter(columns.values()))) if columns else 0
    else:
        count = len(rows)
        names = rows[0].keys() if rows else ()
        columns = {key: [row[key] for row in rows] for key in names}
    if count == 0:
        return empty_table(name)
    for field in fields(stamp):
        if field.name not in columns:
            value = getattr(stamp, field.name)
            columns[field.name] = (
                [value] * count if count < 64 else pa.repeat(pa.scalar(value, _schema(name).field(field.name).type), count)
            )
    return to_table(name, columns)


def _json(value: Any) -> str:
    return orjson.dumps(value, to_plain, orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS).decode() if value else "{}"


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _row(record: Any, **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name in _names(record.__class__):
        value = getattr(record, name)
        if name == "metadata" or name == "properties":
            value = _json(value)
        elif isinstance(value, Locator):
            value = str(value)
        elif isinstance(value, list) and value and not isinstance(value[0], str):
            value = [str(item) if isinstance(item, Locator) else to_plain(item) for item in value]
        row[name] = value
    row.update(changes)
    return row


def _block_columns(blocks: list[Block]) -> dict[str, list[Any]]:
    """As `_row` of each, column by column: a data file has many."""
    columns: dict[str, list[Any]] = {name: [getattr(block, name) for block in blocks] for name in _names(Block)}
    columns["locator"] = [str(place) for place in columns["locator"]]
    columns["metadata"] = [_json(value) for value in columns["metadata"]]
    columns["links"] = [[to_plain(link) for link in links] if links else links for links in columns["links"]]
    return columns


def parse_tables(parsed: ParsedFile, stamp: Stamp, ms: float = 0.0) -> dict[str, pa.Table]:
    """All rows of one parsed file (without its children), by table name; only tables with rows."""
    out: dict[str, pa.Table] = {}
    if parsed.document is not None:
        out["documents"] = stamped("documents", [_row(parsed.document, path=parsed.path, ms=ms)], stamp)
    if parsed.blocks:
        out["blocks"] = stamped("blocks", _block_columns(parsed.blocks), stamp)
    for name in ("pages", "assets", "observations", "symbols"):
        records = getattr(parsed, name)
        if records:
            out[name] = stamped(name, [_row(record) for record in records], stamp)
    if parsed.issue is not None:
        out["issues"] = stamped("issues", [_row(parsed.issue)], stamp)
    for name in ("code_nodes", "code_edges"):
        columns = getattr(parsed, name)
        if columns and next(iter(columns.values())):
            out[name] = stamped(name, columns, stamp)
    if parsed.events:
        out["events"] = stamped("events", [_row(event, path=parsed.path) for event in parsed.events], stamp)
    if parsed.rejects:
        rows = []
        for reject in parsed.rejects:
            row = _row(reject, path=parsed.path, media_type=parsed.media_type)
            row["class"] = row.pop("reject_class")
            rows.append(row)
        out["rejects"] = stamped("rejects", rows, stamp)
    return out


def chunk_tables(result: ChunkResult, stamp: Stamp) -> dict[str, pa.Table]:
    """All rows of one chunk result, by table name; only tables with rows."""
    out: dict[str, pa.Table] = {}
    if result.chunks:
        rows = [
            _row(chunk, text_hash=text_hash(chunk.embedding_text) if chunk.embedding_text else None, content_hash=stamp.content_hash)
            for chunk in result.chunks
        ]
        out["chunks"] = stamped("chunks", rows, stamp)
    if result.nodes:
        out["chunk_nodes"] = stamped("chunk_nodes", [_row(node) for node in result.nodes], stamp)
    if result.edges:
        out["chunk_edges"] = stamped("chunk_edges", [_row(edge) for edge in result.edges], stamp)
    return out
