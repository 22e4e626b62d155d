"""A projected table takes the place of the held one; rows that came out as they were stay where they are.

Rows are compared by two 64-bit hashes over all their columns but the volatile ones, 16 bytes a row, so that memory does not grow with what
the rows hold. Were two different rows to share one of the hashes, the row would be written again: costly, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from raydex.cluster.delta import DataFile, commit_files, rewrite_table, scan_delta, write_data_file
from raydex.ir.tables import TABLES, VOLATILE

# of Arrow memory a file: what a rewrite holds of each
FILE_BYTES = 32_000_000


def replace_rows(root: Path, name: str, fresh: Callable[[], Iterable[pa.RecordBatch]]) -> int:
    """Makes table `name` below `root` hold the rows of `fresh()`; returns rows written. `fresh` is called twice and gives the same rows."""
    own = [column for column in TABLES[name].schema.names if column not in VOLATILE]
    held = _Marks(scan_delta(root, name, columns=own), own)
    same = held.shared_with(_Marks(fresh(), own)) if held.rows else held
    files: list[DataFile] = []
    for table in _tables((batch.filter(pa.array(~same.has(batch))) for batch in fresh()), TABLES[name].schema):
        files.append(write_data_file(root, name, table))
    if held.rows == 0:
        if files:
            commit_files(root, name, files, metadata={"raydex.projection": name})
    elif files or same.rows < held.rows:
        rewrite_table(root, name, own, same.has, add=files, metadata={"raydex.projection": name})
    return sum(file.rows for file in files)


class _Marks:
    """Hashes of rows, sorted by the first: uint64 of shape (rows, 2)."""

    def __init__(self, batches: Iterable[pa.RecordBatch], columns: list[str]) -> None:
        self.columns = columns
        parts = [self.of(batch) for batch in batches]
        self.pairs = np.concatenate(parts) if parts else np.empty((0, 2), np.uint64)
        self.pairs = self.pairs[np.argsort(self.pairs[:, 0], kind="stable")]

    @property
    def rows(self) -> int:
        return len(self.pairs)

    def of(self, rows: pa.RecordBatch | pa.Table) -> np.ndarray:
        frame = pl.from_arrow(rows.select(self.columns))
        assert isinstance(frame, pl.DataFrame)
        whole = pl.struct(pl.all())
        return frame.select(whole.hash(seed=0).alias("first"), whole.hash(seed=1).alias("second")).to_numpy()

    def shared_with(self, other: _Marks) -> _Marks:
        """The rows that are in both."""
        both = _Marks((), self.columns)
        both.pairs = self.pairs[other._find(self.pairs)]
        return both

    def has(self, rows: pa.RecordBatch | pa.Table) -> np.ndarray:
        """Which rows are among these: booleans."""
        return self._find(self.of(rows))

    def _find(self, pairs: np.ndarray) -> np.ndarray:
        if not self.rows:
            return np.zeros(len(pairs), np.bool_)
        at = np.minimum(np.searchsorted(self.pairs[:, 0], pairs[:, 0]), self.rows - 1)
        return (self.pairs[at] == pairs).all(axis=1)


def _tables(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Tables of FILE_BYTES or a little more, none without rows."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            size += batch.nbytes
        if size >= FILE_BYTES:
            yield pa.Table.from_batches(waiting, schema)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting, schema)
