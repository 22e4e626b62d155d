"""Delta tables, from one door: readers, writers and the check of the log.

`root` is the folder of the tables' folders (`Lake.tables`). Workers write data files, the driver alone publishes them; nothing but
`read_delta` and its kin reads them. Errors are StoreError (CapacityError for a full disk), ConfigError for a root that is not local.
"""

from __future__ import annotations

from raydex.cluster.delta_log import check_log, commit_metadata, lost_files, missing_columns
from raydex.cluster.delta_read import (
    DataFile,
    list_data_files,
    read_data_file,
    read_delta,
    scan_delta,
    table_exists,
    table_folder,
    table_version,
)
from raydex.cluster.delta_write import (
    Rewrite,
    commit_files,
    compact,
    drop_files,
    migrate_table,
    replace_table,
    rewrite_table,
    transaction_version,
    vacuum,
    write_data_file,
)

__all__ = [
    "DataFile",
    "Rewrite",
    "check_log",
    "commit_files",
    "commit_metadata",
    "compact",
    "drop_files",
    "list_data_files",
    "lost_files",
    "migrate_table",
    "missing_columns",
    "read_data_file",
    "read_delta",
    "replace_table",
    "rewrite_table",
    "scan_delta",
    "table_exists",
    "table_folder",
    "table_version",
    "transaction_version",
    "vacuum",
    "write_data_file",
]
