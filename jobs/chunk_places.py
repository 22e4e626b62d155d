"""Which data files of `chunks` hold the rows of a record, so that chunks are read with their vectors and not the whole table each time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import list_data_files, read_data_file
from raydex.cluster.lake import Lake
from raydex.ir.rows import empty_table
from raydex.jobs.verify_keys import hashes


class ChunkPlaces:
    """The data files of one version by hash of record id, 12 bytes a record and file. Two ids of one hash cost a file read in vain."""

    def __init__(self, lake: Lake, version: int | None) -> None:
        self._tables = lake.tables
        self._paths = [file.path for file in list_data_files(lake.tables, "chunks", version)]
        keys: list[np.ndarray] = [np.empty(0, np.uint64)]
        numbers: list[np.ndarray] = [np.empty(0, np.int32)]
        for number, path in enumerate(self._paths):
            found = np.unique(hashes(read_data_file(self._tables, "chunks", path, columns=["record_id"]).column("record_id")))
            keys.append(found)
            numbers.append(np.full(len(found), number, np.int32))
        self._keys, self._numbers = np.concatenate(keys), np.concatenate(numbers)

    def read(self, records: pa.ChunkedArray, chunk_ids: pa.ChunkedArray, columns: list[str]) -> pa.Table:
        """`columns` of the chunks with these ids, which belong to these records."""
        files = np.unique(self._numbers[np.isin(self._keys, hashes(records))])
        where = pc.field("chunk_id").isin(chunk_ids.combine_chunks())
        parts = [read_data_file(self._tables, "chunks", self._paths[at], columns=columns, where=where) for at in files.tolist()]
        return pa.concat_tables(parts) if parts else empty_table("chunks").select(columns)
