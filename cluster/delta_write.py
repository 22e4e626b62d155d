"""Rows → unpublished data files (workers) → one atomic commit a table (driver).

The invariant: a data file counts only once a commit names it, so a worker may die or repeat itself at any moment; and a commit lands on
exactly the version that it looked at, or fails: a second writer is noticed, never merged (contracts 10-12, reliability §2 facts 1-3).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta_log import ACTIONS, compare_schema
from raydex.cluster.delta_read import DataFile, Options, active_files, open_table, read_data_file, table_errors, table_exists, table_folder
from raydex.cluster.faults import fault_point
from raydex.cluster.files import sync_file, sync_folder, write_file
from raydex.cluster.parquet import encode_rows
from raydex.ir.errors import StoreError
from raydex.ir.tables import TABLES

if TYPE_CHECKING:
    from deltalake import DeltaTable

Mask: TypeAlias = "pa.ChunkedArray | pa.Array | np.ndarray"
Keep: TypeAlias = "Callable[[pa.Table], Mask]"

APP_ID = "raydex"
CHECKPOINT_EVERY = 50
WRITERS = min(4, os.cpu_count() or 1)
STAT_CHARACTERS = 64
# entries older than Delta's 30 days stay: a kept generation may pin an old version
CONFIGURATION = {"delta.enableExpiredLogCleanup": "false"}


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What a rewrite did. `version` is the table's version afterwards, None when there is no table; bytes are those of new files."""

    version: int | None
    files_removed: int = 0
    files_rewritten: int = 0
    rows_deleted: int = 0
    bytes_written: int = 0


def write_data_file(
    root: str | Path, name: str, table: pa.Table, *, fsync: bool = True, storage_options: Options | None = None
) -> DataFile:
    """Writes an unpublished data file under a name that nobody can guess. `fsync` waits until it would survive a power cut.

    Raises ValueError for another schema than the table's, a null key or no rows; StoreError; CapacityError when the disk is full.
    """
    _check_rows(name, table)
    folder = table_folder(root, name, storage_options)
    with table_errors(root, name, None, "a data file cannot be written"):
        path, data = encode_rows(table, _dictionary_columns(name))
        write_file(folder / path, data, durable=False)
        if fsync:
            sync_file(folder / path)
    fault_point("data_file.written", name)
    return DataFile(name, path, len(data), table.num_rows, _statistics(name, table))


def commit_files(
    root: str | Path,
    name: str,
    files: Sequence[DataFile],
    *,
    app_id: str = APP_ID,
    txn_version: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    storage_options: Options | None = None,
) -> int:
    """Publishes files in one commit and returns its version; the table is made on first use.

    `txn_version` must be higher than the one that `app_id` recorded last. Raises StoreError when it is not, when another writer
    committed meanwhile, or when a file is missing; ValueError for files of another table or none.
    """
    if not files:
        raise ValueError(f"table {name}: a commit needs files")
    table = _open_or_create(root, name, storage_options)
    return _commit(root, name, table, files, [], app_id, txn_version, metadata)


def rewrite_table(
    root: str | Path,
    name: str,
    columns: list[str],
    keep: Keep,
    *,
    add: Sequence[DataFile] = (),
    only: Callable[[DataFile], bool] | None = None,
    app_id: str = APP_ID,
    txn_version: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    storage_options: Options | None = None,
) -> Rewrite:
    """Deletes the rows that `keep` does not want, and publishes the files of `add`, in one commit; none when nothing changes.

    `keep` gets `columns` of one file at a time and answers with a boolean mask without nulls; it is called from `WRITERS` threads, and
    memory is bounded by that many files. Files for which `only` is false are neither read nor touched. Raises as `commit_files`, and
    ValueError for a bad mask.
    """
    if not table_exists(root, name, storage_options=storage_options) and not add:
        return Rewrite(None)
    table = _open_or_create(root, name, storage_options)
    files = [file for file in active_files(root, name, table) if only is None or only(file)]
    with ThreadPoolExecutor(WRITERS) as writers:
        jobs = [writers.submit(_rewrite_file, root, name, file, columns, keep) for file in files]
        try:
            results = [job.result() for job in jobs]
        except BaseException:
            writers.shutdown(cancel_futures=True)
            _discard(root, name, [job.result()[1] for job in jobs if job.done() and not job.cancelled() and job.exception() is None])
            raise
    removed = [file for file, (deleted, _) in zip(files, results) if deleted]
    written = [new for _, new in results if new is not None]
    version = table.version()
    if removed or add:
        version = _commit(root, name, table, [*written, *add], removed, app_id, txn_version, metadata)
    rows = sum(deleted for deleted, _ in results)
    return Rewrite(version, len(removed) - len(written), len(written), rows, sum(file.size for file in written))


def _rewrite_file(root: str | Path, name: str, file: DataFile, columns: list[str], keep: Keep) -> tuple[int, DataFile | None]:
    """Rows that go, and the unpublished file of those that stay where both are."""
    mask = _mask(name, file, columns, keep, root)
    kept = int(np.count_nonzero(mask))
    if kept in (0, len(mask)):
        return len(mask) - kept, None
    rows = read_data_file(root, name, file.path).filter(pa.array(mask))
    return len(mask) - kept, write_data_file(root, name, rows)


def replace_table(
    root: str | Path,
    name: str,
    files: Sequence[DataFile],
    *,
    app_id: str = APP_ID,
    txn_version: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    storage_options: Options | None = None,
) -> int:
    """The table holds exactly `files` afterwards (which may be none), by one commit. Raises as `commit_files`."""
    table = _open_or_create(root, name, storage_options)
    return _commit(root, name, table, files, active_files(root, name, table), app_id, txn_version, metadata)


def drop_files(root: str | Path, name: str, files: Sequence[DataFile], *, metadata: Mapping[str, Any] | None = None) -> int:
    """Takes files off the table by one commit, unread: those that are lost. Raises as `commit_files`."""
    return _commit(root, name, _open_or_create(root, name, None), [], files, APP_ID, None, metadata)


def compact(
    root: str | Path,
    name: str,
    *,
    target_bytes: int = 128_000_000,
    metadata: Mapping[str, Any] | None = None,
    storage_options: Options | None = None,
) -> Rewrite:
    """Joins files smaller than half of `target_bytes` into files of about that size; rows stay as they are, readers see no change."""
    table = open_table(root, name, None, storage_options)
    if table is None:
        return Rewrite(None)
    groups: list[list[DataFile]] = [[]]
    for file in sorted(active_files(root, name, table), key=lambda file: (file.size, file.path)):
        if file.size * 2 >= target_bytes:
            continue
        if sum(member.size for member in groups[-1]) + file.size > target_bytes:
            groups.append([])
        groups[-1].append(file)
    groups = [group for group in groups if len(group) > 1]
    removed = [file for group in groups for file in group]
    if not removed:
        return Rewrite(table.version())
    written: list[DataFile] = []
    try:
        for group in groups:
            written.append(write_data_file(root, name, pa.concat_tables([read_data_file(root, name, file.path) for file in group])))
    except BaseException:
        _discard(root, name, written)
        raise
    version = _commit(root, name, table, written, removed, APP_ID, None, metadata, data_change=False)
    return Rewrite(version, len(removed), len(written), 0, sum(file.size for file in written))


def vacuum(
    root: str | Path, name: str, keep_versions: Sequence[int], retention: timedelta, *, storage_options: Options | None = None
) -> list[str]:
    """Deletes data files older than `retention` that neither the newest version nor one of `keep_versions` needs; returns their paths.

    It makes no commit: what no kept version names is not there for any reader, and a version that a generation has pinned stays the newest
    one. `retention` must be longer than the longest run that may be at work: its files are not committed yet.
    """
    table = open_table(root, name, None, storage_options)
    if table is None:
        return []
    newest = table.version()
    needed = {file.path for file in active_files(root, name, table)}
    for version in {version for version in keep_versions if version < newest}:
        older = open_table(root, name, version, storage_options)
        needed |= {file.path for file in active_files(root, name, older)} if older is not None else set()
    folder = table_folder(root, name, storage_options)
    oldest = time.time() - retention.total_seconds()
    with table_errors(root, name, newest, "vacuum failed"):
        unneeded = sorted(path for path in folder.glob("*.parquet") if path.name not in needed and path.stat().st_mtime <= oldest)
        for path in unneeded:
            path.unlink()
    return [path.name for path in unneeded]


def migrate_table(root: str | Path, name: str, *, storage_options: Options | None = None) -> list[str]:
    """Adds the columns that an older release did not have, null in all rows, and returns their names. A table that does not exist or is
    current stays as it is. Raises StoreError for a newer or foreign table (S5)."""
    table = open_table(root, name, None, storage_options)
    missing = [] if table is None else compare_schema(root, name, table)
    if table is not None and missing:
        from deltalake import Schema

        added = Schema.from_arrow(pa.schema([TABLES[name].schema.field(column) for column in missing])).fields
        with table_errors(root, name, table.version(), "it cannot be migrated"):
            table.alter.add_columns(added)
    return missing


def transaction_version(root: str | Path, name: str, app_id: str = APP_ID, *, storage_options: Options | None = None) -> int | None:
    """The highest `txn_version` that `app_id` committed; None when there is none."""
    table = open_table(root, name, None, storage_options)
    return None if table is None else table.transaction_version(app_id)


def _open_or_create(root: str | Path, name: str, options: Options | None) -> DeltaTable:
    table = open_table(root, name, None, options)
    if table is not None:
        missing = compare_schema(root, name, table)
        if missing:
            raise StoreError(
                f"table {name} lacks the columns {', '.join(missing)} of this release",
                place=str(table_folder(root, name)),
                remedy="Migrate the lake first: `migrate_table`",
            )
        return table
    from deltalake import DeltaTable

    spec = TABLES[name]
    with table_errors(root, name, None, "it cannot be made"):
        return DeltaTable.create(
            table_folder(root, name, options).as_uri(), schema=spec.schema, mode="error", description=spec.doc, configuration=CONFIGURATION
        )


def _commit(
    root: str | Path,
    name: str,
    table: DeltaTable,
    add: Sequence[DataFile],
    remove: Sequence[DataFile],
    app_id: str,
    txn_version: int | None,
    metadata: Mapping[str, Any] | None,
    *,
    data_change: bool = True,
) -> int:
    from deltalake import CommitProperties, PostCommitHookProperties, Transaction
    from deltalake.transaction import AddAction, RemoveAction

    folder, base = table_folder(root, name), table.version()
    _check_files(name, folder, add)
    recorded = table.transaction_version(app_id)
    if txn_version is not None and recorded is not None and recorded >= txn_version:
        raise StoreError(
            f"table {name} already holds transaction {recorded} of {app_id}, and {txn_version} was to follow: another writer was here",
            place=str(folder),
            remedy="Make sure that one run writes to the lake, then run again",
        )
    now = time.time_ns() // 1_000_000
    actions: list[Any] = [RemoveAction(file.path, data_change, now, file.size, {}) for file in remove]
    actions += [AddAction(file.path, file.size, {}, now, data_change, file.stats) for file in add]
    said = {**(metadata or {}), ACTIONS: len(actions) + (txn_version is not None)}
    fault_point(f"delta.commit:{name}:before", str(txn_version))
    with table_errors(root, name, base + 1, "the commit failed (another writer, or the disk)"):
        sync_folder(folder)  # the entry must not outlive a power cut that its data files do not
        table.create_write_transaction(
            actions,
            "append",
            TABLES[name].schema,
            commit_properties=CommitProperties(
                custom_metadata=said,
                max_commit_retries=0,
                app_transactions=None if txn_version is None else [Transaction(app_id, txn_version)],
            ),
            # a failing hook would make a landed commit look like a failed one
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
        )
        sync_file(folder / "_delta_log" / f"{base + 1:020}.json")
        sync_folder(folder / "_delta_log")
    fault_point(f"delta.commit:{name}:after", str(txn_version))
    if (base + 1) % CHECKPOINT_EVERY == 0:
        with table_errors(root, name, base + 1, "the commit landed, its checkpoint failed"):
            table.update_incremental()
            table.create_checkpoint()
    return base + 1


def _check_files(name: str, folder: Path, files: Sequence[DataFile]) -> None:
    for file in files:
        if file.table != name or "/" in file.path:
            raise ValueError(f"{file.path} is no file of table {name} but of {file.table}")
        if not (folder / file.path).is_file():
            raise StoreError(f"a data file of table {name} is missing before its commit", place=str(folder / file.path))


def _check_rows(name: str, table: pa.Table) -> None:
    spec = TABLES[name]
    if not table.schema.equals(spec.schema):
        odd = sorted(set(map(str, spec.schema)) ^ set(map(str, table.schema)))
        raise ValueError(f"rows have another schema than table {name}: {', '.join(odd) or 'columns in another order'}")
    if table.num_rows == 0:
        raise ValueError(f"table {name}: a data file needs rows")
    if table.column(spec.key).null_count:
        raise ValueError(f"table {name}: {spec.key} is null in {table.column(spec.key).null_count} rows")


def _mask(name: str, file: DataFile, columns: list[str], keep: Keep, root: str | Path) -> np.ndarray:
    rows = read_data_file(root, name, file.path, columns=columns)
    answer = keep(rows)
    mask = answer if isinstance(answer, np.ndarray) else np.asarray(answer)
    if mask.dtype != np.bool_ or len(mask) != rows.num_rows:
        raise ValueError(f"table {name}: the mask has {len(mask)} {mask.dtype} for {rows.num_rows} rows, or nulls")
    return mask


def _discard(root: str | Path, name: str, files: Sequence[DataFile | None]) -> None:
    """Only before a commit: afterwards nobody can tell whether it landed, and vacuum takes what is left over."""
    for file in files:
        if file is not None:
            (table_folder(root, name) / file.path).unlink(missing_ok=True)


def _dictionary_columns(name: str) -> list[str]:
    """Text columns but the key: dictionaries do nothing for keys and numbers, and cost time."""
    spec = TABLES[name]
    return [field.name for field in spec.schema if pa.types.is_string(field.type) and field.name != spec.key]


def _statistics(name: str, table: pa.Table) -> str:
    spec = TABLES[name]
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for field in spec.schema:
        is_id = pa.types.is_string(field.type) and (field.name == spec.key or field.name.endswith("_id"))
        if not (is_id or pa.types.is_integer(field.type)):
            continue
        column = table.column(field.name)
        nulls[field.name] = column.null_count
        bounds = pc.min_max(column)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if low is not None and not (is_id and max(len(low), len(high)) > STAT_CHARACTERS):
            least[field.name], greatest[field.name] = low, high
    return orjson.dumps({"numRecords": table.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}).decode()
