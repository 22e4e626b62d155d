"""Keys of large tables as 64-bit hashes: 8 bytes a key, so that millions of them are compared in a lake's verification.

A repeated hash is looked at again as text before it counts as a repeated key; a missing end could hide behind an equal hash once in 2^64.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from raydex.cluster.delta import scan_delta
from raydex.jobs.reading import Reader


def hashes(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """uint64, one a value that is not null."""
    import polars as pl

    values = pl.Series(column.drop_null())
    return values.hash(seed=0).to_numpy() if len(values) else np.empty(0, np.uint64)


class KeySet:
    """The keys of one table's column, sorted by hash."""

    def __init__(self, batches: Iterable[pa.RecordBatch], column: str) -> None:
        parts: list[np.ndarray] = []
        self.rows = 0
        self.nulls = 0
        for batch in batches:
            keys = batch.column(column)
            self.rows += len(keys)
            self.nulls += keys.null_count
            parts.append(hashes(keys))
        self.sorted = np.sort(np.concatenate(parts)) if parts else np.empty(0, np.uint64)

    def missing(self, column: pa.Array) -> int:
        """How many values, nulls apart, are no keys."""
        wanted = hashes(column)
        if not len(self.sorted):
            return len(wanted)
        at = np.minimum(np.searchsorted(self.sorted, wanted), len(self.sorted) - 1)
        return int((self.sorted[at] != wanted).sum())

    def repeated(self) -> np.ndarray:
        """Hashes that occur more than once."""
        return np.unique(self.sorted[1:][self.sorted[1:] == self.sorted[:-1]])


def table_keys(reader: Reader, name: str, column: str) -> KeySet:
    """Keys of a pinned table; empty when the generation has no such table."""
    version = reader.generation.table_versions.get(name)
    batches = scan_delta(reader.lake.tables, name, version=version, columns=[column]) if version is not None else iter(())
    return KeySet(batches, column)


def are_unique(reader: Reader, name: str, column: str) -> tuple[bool, int]:
    """(whether no key is null or repeated, number of rows)."""
    keys = table_keys(reader, name, column)
    suspects = keys.repeated()
    if not len(suspects):
        return keys.nulls == 0, keys.rows
    texts: list[str] = []
    for batch in scan_delta(reader.lake.tables, name, version=reader.generation.table_versions[name], columns=[column]):
        values = batch.column(column).drop_null()
        texts += values.filter(pa.array(np.isin(hashes(values), suspects))).to_pylist()
    return keys.nulls == 0 and len(set(texts)) == len(texts), keys.rows
