"""Rows of the projection → one hash that a store's complete marker must hold (contracts 15).

The hash is over the set of nodes, edges and evidence without volatile columns; PageRank is no part of it (contracts 25). The invariant:
it does not depend on the order of rows, on files or on batches, and two different sets of rows never share an encoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3

from raydex.ir.tables import TABLES, VOLATILE

HASHED_TABLES = ("nodes", "edges", "evidence")


def projection_hash(tables: Mapping[str, Iterable[pa.RecordBatch]]) -> str:
    """BLAKE3 hex digest over the sorted row digests of nodes, edges and evidence; 16 bytes of memory a row.

    `tables` gives the batches of each of `HASHED_TABLES`; columns may be in any order, none but volatile ones may be missing.
    """
    total = blake3()
    for name in HASHED_TABLES:
        digests = [digest for batch in tables[name] for digest in row_digests(name, batch)]
        digests.sort()
        total.update(f"{name}:{len(digests)}\n".encode())
        total.update(b"".join(digests))
    return total.hexdigest()


def row_digests(name: str, batch: pa.RecordBatch) -> list[bytes]:
    """16 bytes a row over all columns of table `name` that are not volatile."""
    if batch.num_rows == 0:
        return []
    parts: list[Any] = [_encoded(batch.column(field.name), field.type) for field in TABLES[name].schema if field.name not in VOLATILE]
    rows: Any = pc.binary_join_element_wise(*parts, "")
    return [blake3(row).digest(16) for row in rows.cast(pa.binary()).to_pylist()]


def _encoded(column: Any, kind: pa.DataType) -> Any:
    """Each value as text with its length before it, so that neighbours cannot flow into each other; null differs from empty."""
    text: Any
    if pa.types.is_list(kind):
        column = column.cast(pa.list_(pa.string()))
        items = pa.ListArray.from_arrays(column.offsets, _encoded(column.values, pa.string()))
        text = pc.binary_join(items, "")
        if column.null_count:
            text = pc.if_else(column.is_valid(), text, pa.scalar(None, pa.string()))
    else:
        text = column.cast(pa.string())
    length: Any = pc.binary_length(text).cast(pa.string())
    return pc.fill_null(pc.binary_join_element_wise(length, text, ":"), "-")
