"""Digest of a lake's tables: what two lakes must share, row for row, to be equal (contracts 2).

Volatile columns are left out, and so are the tables that are logs and PageRank, whose last digits depend on the order of sums. The last
digits of a vector depend on what else was in its batch: digests hold the hash of the embedded text, vectors are compared by tolerance.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
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


TOLERANCE = 1e-4


def differing_tables(left: Path | str, right: Path | str) -> list[str]:
    """Tables whose rows differ between the active generations of two lakes; vectors may differ by `TOLERANCE` (reliability M5)."""
    mine, theirs = lake_digest(left), lake_digest(right)
    bad = [name for name in COMPARED if mine[name] != theirs[name]]
    if "embeddings" not in bad and not _vectors_agree(left, right):
        bad.append("embeddings")
    return bad


def _vectors_agree(left: Path | str, right: Path | str) -> bool:
    flat = []
    for root in (left, right):
        lake = Lake.open(root)
        column = table_rows(lake, "embeddings", active_generation(lake)).column("vector")
        flat.append(np.concatenate([np.zeros(0, np.float32), *(chunk.flatten().to_numpy() for chunk in column.chunks)]))
    return flat[0].shape == flat[1].shape and bool(np.allclose(flat[0], flat[1], rtol=0, atol=TOLERANCE))


def lake_digest(root: Path | str) -> dict[str, str]:
    """Table → `rows:sha256` of the active generation, vectors left out."""
    lake = Lake.open(root)
    generation = active_generation(lake)
    digests: dict[str, str] = {}
    for name in COMPARED:
        rows = table_rows(lake, name, generation)
        rows = rows.drop_columns(["vector"]) if name == "embeddings" else rows
        digests[name] = f"{len(rows)}:{_digest(rows)}"
    return digests


def _digest(table: pa.Table) -> str:
    digest = hashlib.sha256()
    for batch in table.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            digest.update(repr(sorted(row.items())).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]
