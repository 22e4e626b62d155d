"""One small table for the tests of Delta tables: rows of `chunk_edges` by epoch and key, committed and read back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from raydex.cluster.delta import commit_files, read_delta, write_data_file
from raydex.ir.rows import to_table

NAME = "chunk_edges"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def edges(epoch: int, *keys: str, record: str = "rec_1") -> pa.Table:
    columns = {"edge_id": list(keys), "record_id": [record] * len(keys), "epoch": [epoch] * len(keys), "written_at": [NOW] * len(keys)}
    return to_table(NAME, columns)


def load(root: Path, *tables: pa.Table, txn: int | None = None) -> int:
    """Commits the tables as one version, a data file each, and returns it."""
    return commit_files(root, NAME, [write_data_file(root, NAME, table, fsync=False) for table in tables], txn_version=txn)


def keys_of(root: Path, **how: Any) -> list[str]:
    return sorted(read_delta(root, NAME, **how).column("edge_id").to_pylist())


def log_entry(root: Path, version: int, name: str = NAME) -> Path:
    return root / name / "_delta_log" / f"{version:020}.json"
