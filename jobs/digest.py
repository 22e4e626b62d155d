"""Digest of a lake's tables: what two lakes must share, row for row, to be equal (contracts 2).

Volatile columns are left out, and so are the tables that are logs and PageRank, whose last digits depend on the order of sums.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa

from raydex.cluster.delta import read_delta
from raydex.cluster.lake import Generation, Lake, active_generation
from raydex.ir.tables import OUTSIDE_EQUALITY, TABLES, VOLATILE

COMPARED = tuple(name for name in TABLES if name not in OUTSIDE_EQUALITY and name != "ranks")


def table_rows(lake: Lake, name: str, generation: Generation | None = None) -> pa.Table:
    """Rows of a table (as a generation pins it, else as it is), non-volatile columns, sorted by primary key."""
    spec = TABLES[name]
    own = [column for column in spec.schema.names if column not in VOLATILE]
    version = generation.table_versions.get(name) if generation else None
    return read_delta(lake.tables, name, version=version, columns=own).sort_by(spec.key)


def lake_digest(root: Path | str) -> dict[str, str]:
    """Table → `rows:sha256` of the active generation."""
    lake = Lake.open(root)
    generation = active_generation(lake)
    return {name: f"{len(rows)}:{_digest(rows)}" for name in COMPARED for rows in [table_rows(lake, name, generation)]}


def _digest(table: pa.Table) -> str:
    digest = hashlib.sha256()
    for batch in table.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            digest.update(repr(sorted(row.items())).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]
