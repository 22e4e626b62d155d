"""Tables of one batch → unpublished data files, one a table and epoch.

The invariant: a file is invisible until the driver commits it, so a batch that Ray repeats leaves at worst an orphan for vacuum.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa

from raydex.cluster.delta import write_data_file


class Sink:
    """Collects tables by (epoch, name) over one batch; `flush` writes them and returns rows for the receipt."""

    def __init__(self, tables_root: str) -> None:
        self.tables_root = tables_root
        self.parts: dict[tuple[int, str], list[pa.Table]] = defaultdict(list)

    def add(self, epoch: int, tables: dict[str, pa.Table]) -> None:
        for name, table in tables.items():
            if table.num_rows:
                self.parts[epoch, name].append(table)

    def flush(self) -> list[dict[str, Any]]:
        files: list[dict[str, Any]] = []
        for (epoch, name), tables in self.parts.items():
            table = pa.concat_tables(tables) if len(tables) > 1 else tables[0]
            written = write_data_file(self.tables_root, name, table)
            files.append(
                {"table": name, "path": written.path, "size": written.size, "rows": written.rows, "stats": written.stats, "epoch": epoch}
            )
        self.parts.clear()
        return files
