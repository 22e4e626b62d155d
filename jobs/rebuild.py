"""Rows of tables → the records of the IR that they were made from: the way back from `ir/rows.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import orjson
import pyarrow as pa

from raydex.ir.code import Parameter, Symbol
from raydex.ir.document import Asset, Block, Document, Link, Observation, Page
from raydex.ir.locator import Locator
from raydex.ir.parsed import Event, ParsedFile

Row = dict[str, Any]
T = TypeVar("T")


def to_block(row: Row) -> Block:
    """A row of `blocks` (or its nested form) → Block."""
    return Block(
        row["block_id"],
        row["kind"],
        row["ordinal"],
        row["text"],
        Locator.parse(row["locator"]),
        row["section_path"] or [],
        [Link(link["href"], link["text"]) for link in row["links"] or ()],
        row["asset_ref"],
        orjson.loads(row["metadata"]) if row["metadata"] else {},
    )


def to_symbol(row: Row) -> Symbol:
    """A row of `symbols` (or its nested form) → Symbol."""
    values = {name: row[name] for name in Symbol.__dataclass_fields__ if name != "parameters"}
    return Symbol(**values, parameters=[Parameter(**item) for item in row["parameters"] or ()])


def to_parsed(tables: dict[str, pa.Table], path: str) -> ParsedFile:
    """The document with its pages, blocks, assets, observations and events. `tables` hold one record that has a document."""
    head = tables["documents"].to_pylist()[0]
    values = _own(Document, head)
    values.update(metadata=orjson.loads(head["metadata"] or "{}"), warnings=head["warnings"] or [])
    parsed = ParsedFile(head["record_id"], head["content_hash"], path, head["media_type"], Document(**values))
    parsed.pages = to_rows(tables, "pages", _to_page)
    parsed.blocks = to_rows(tables, "blocks", to_block)
    parsed.assets = to_rows(tables, "assets", to_asset)
    parsed.observations = to_rows(tables, "observations", to_observation)
    parsed.events = to_rows(tables, "events", lambda row: Event(**_own(Event, row)))
    return parsed


def _to_page(row: Row) -> Page:
    return Page(**{**_own(Page, row), "warnings": row["warnings"] or []})


def to_asset(row: Row) -> Asset:
    return Asset(**{**_own(Asset, row), "locator": Locator.parse(row["locator"])})


def to_observation(row: Row) -> Observation:
    return Observation(**{**_own(Observation, row), "locator": Locator.parse(row["locator"])})


def to_rows(tables: dict[str, pa.Table], name: str, make: Callable[[Row], T]) -> list[T]:
    """The rows of one table, each made into a record."""
    return [make(row) for row in tables[name].to_pylist()] if name in tables else []


def _own(kind: type, row: Row) -> Row:
    return {name: row[name] for name in kind.__dataclass_fields__ if name in row}  # type: ignore[attr-defined]
