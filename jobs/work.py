"""The work of a run as one Arrow table: a Python object a record would let the driver's memory grow with the corpus."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import list_data_files, read_data_file
from raydex.cluster.lake import Lake
from raydex.jobs.flow import WORK

STORED_TABLES = {
    "caption": ("documents", "blocks", "symbols", "assets", "observations", "rejects"),
    "chunk": ("documents", "blocks", "symbols", "observations", "rejects"),
    "embed": ("chunks", "rejects"),
    "keep": ("rejects",),
}
MAX_BLOCKS = 4_096
BUFFER_ROWS = 2_048


class WorkRows:
    """Collects rows of WORK; a few thousand at a time become Arrow. `parsed`: ids of those that start with parsing."""

    def __init__(self) -> None:
        self.parsed: set[str] = set()
        self._buffer: list[dict[str, Any]] = []
        self._tables: list[pa.Table] = []

    def append(self, row: dict[str, Any]) -> None:
        self._buffer.append(row)
        if row["start"] == "parse":
            self.parsed.add(row["record_id"])
        if len(self._buffer) >= BUFFER_ROWS:
            self._flush()

    def _flush(self) -> None:
        self._tables.append(pa.Table.from_pylist(self._buffer, schema=WORK))
        self._buffer = []

    def table(self, lake: Lake) -> pa.Table:
        """All rows with the data files that their first stage reads, ordered by these files, by source and by path."""
        self._flush()
        return _attach_stored(lake, pa.concat_tables(self._tables))


def _attach_stored(lake: Lake, work: pa.Table) -> pa.Table:
    starts = work.column("start").to_pylist()
    ids = work.column("record_id")
    stored: dict[str, list[dict[str, str]]] = {}
    for start, tables in STORED_TABLES.items():
        wanted = {record for record, at in zip(ids.to_pylist(), starts) if at == start} if start in starts else set()
        for name in tables if wanted else ():
            for item in list_data_files(lake.tables, name):
                found = read_data_file(lake.tables, name, item.path, columns=["record_id"]).column("record_id")
                for record in found.unique().to_pylist():
                    if record in wanted:
                        stored.setdefault(record, []).append({"table": name, "path": item.path})
    first = pa.nulls(work.num_rows, pa.string()).fill_null("")
    if stored:
        files = [stored.get(record, []) for record in ids.to_pylist()]
        first = pa.array([items[0]["path"] if items else "" for items in files], pa.string())
        work = set_column(work, "stored", files)
    order = [("first", "ascending"), ("source_name", "ascending"), ("path", "ascending")]
    return work.append_column("first", first).sort_by(order).drop_columns(["first"])


def set_column(work: pa.Table, name: str, values: list[Any] | np.ndarray) -> pa.Table:
    """`work` with another value of one column of WORK in each row."""
    return work.set_column(WORK.get_field_index(name), WORK.field(name), pa.array(values, WORK.field(name).type))


def number_epochs(work: pa.Table, first: int, size: int) -> tuple[pa.Table, dict[int, int]]:
    """`work` with epochs, `size` records an epoch, and epoch → number of records in it. Segments stand behind their file, in its epoch, and
    are counted with it as members are."""
    segments = pc.and_(pc.not_equal(work.column("parent_id"), ""), pc.equal(work.column("start"), "parse"))
    heads = ~np.asarray(pc.fill_null(segments, False))
    epochs = first + (np.cumsum(heads, dtype=np.int64) - 1) // size
    numbers, counts = np.unique(epochs[heads], return_counts=True)
    return set_column(work, "epoch", epochs), dict(zip(numbers.tolist(), counts.tolist()))


def work_tables(work: pa.Table, batch: int) -> list[pa.Table]:
    """Arrow blocks of about one batch each; none holds two epochs."""
    size = max(batch, -(-work.num_rows // MAX_BLOCKS))
    epochs = work.column("epoch").to_numpy()
    edges = [0, *(np.flatnonzero(np.diff(epochs)) + 1).tolist(), work.num_rows]
    tables = []
    for begin, end in pairwise(edges):
        tables += [work.slice(at, min(size, end - at)).combine_chunks() for at in range(begin, end, size)]
    return tables
