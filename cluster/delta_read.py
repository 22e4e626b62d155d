"""Delta tables → Arrow: the only reader of Delta in the project (contracts 17).

The log comes from delta-rs, the bytes from pyarrow over the local file system: an Arrow dataset over the Rust storage layer aborts Python
at exit. A table that does not exist yet reads as empty; a data file that is missing or damaged is named. `root` is the folder that
holds the tables' folders (`Lake.tables`); the order of rows means nothing.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.files import local_folder
from raydex.cluster.parquet import filter_files, find_broken_file, read_file, read_files, scan_file
from raydex.ir.errors import CapacityError, ConfigError, RaydexError, StoreError
from raydex.ir.tables import TABLES

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

Options = Mapping[str, str]

DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE}
BATCH_ROWS = 16_384
LOST_FILE = "Bring the file back from a copy; or delete it and run `raydex index` on all sources: what it held is indexed again"
_ERROR_NUMBER = re.compile(r"(?:os error |Os \{ code: )(\d+)")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table, published or not. `path` is relative to the table's folder; `size` in bytes.

    `stats` is Delta's statistics as JSON: numRecords, minValues, maxValues, nullCount of ids and integer columns.
    """

    table: str
    path: str
    size: int
    rows: int
    stats: str

    def to_row(self) -> dict[str, Any]:
        return {"table": self.table, "path": self.path, "size": self.size, "rows": self.rows, "stats": self.stats}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> DataFile:
        """Takes the keys of `to_row` from a row that may hold more."""
        return cls(row["table"], row["path"], row["size"], row["rows"], row["stats"])

    def bounds(self, column: str) -> tuple[Any, Any] | None:
        """(least, greatest) of a column; None where the file does not say, or where some rows are null."""
        stats = orjson.loads(self.stats)
        least, greatest = stats["minValues"].get(column), stats["maxValues"].get(column)
        if least is None or greatest is None or stats["nullCount"].get(column) != 0:
            return None
        return least, greatest


def read_delta(
    root: str | Path,
    name: str,
    *,
    version: int | None = None,
    columns: list[str] | None = None,
    where: pc.Expression | None = None,
    storage_options: Options | None = None,
) -> pa.Table:
    """Rows of table `name` at a version (the newest by default). Raises StoreError (it names a broken file), ConfigError."""
    files = _active(root, name, version, storage_options)
    if files is None:
        return _schema(name, columns).empty_table()
    with reading(root, name, version, files):
        if where is None:
            return read_files(_paths(root, name, files), _schema(name, columns))
        return _filter(root, name, files, columns, where).to_table()


def scan_delta(
    root: str | Path,
    name: str,
    *,
    version: int | None = None,
    columns: list[str] | None = None,
    where: pc.Expression | None = None,
    batch_rows: int = BATCH_ROWS,
    storage_options: Options | None = None,
) -> Iterator[pa.RecordBatch]:
    """Like `read_delta`, batch by batch; memory is bounded by a few row groups. Batches without rows are left out."""
    files = _active(root, name, version, storage_options)
    if files is None:
        return
    with reading(root, name, version, files):
        if where is None:
            batches = (batch for path in _paths(root, name, files) for batch in scan_file(path, _schema(name, columns), batch_rows))
        else:
            batches = (part for batch in _filter(root, name, files, columns, where).to_batches() for part in _cut(batch, batch_rows))
        for batch in batches:
            if batch.num_rows:
                yield batch


def read_data_file(
    root: str | Path,
    name: str,
    path: str,
    *,
    columns: list[str] | None = None,
    where: pc.Expression | None = None,
    storage_options: Options | None = None,
) -> pa.Table:
    """Rows of one data file, published or not. Raises StoreError naming it."""
    file = DataFile(name, path, 0, 0, "")
    place = table_folder(root, name, storage_options) / path
    with reading(root, name, None, [file]):
        if where is None:
            return read_file(place, _schema(name, columns))
        return _filter(root, name, [file], columns, where).to_table()


def list_data_files(root: str | Path, name: str, version: int | None = None, *, storage_options: Options | None = None) -> list[DataFile]:
    """The published files of a version; none when the table does not exist. Raises StoreError."""
    return _active(root, name, version, storage_options) or []


def table_version(root: str | Path, name: str, *, storage_options: Options | None = None) -> int | None:
    """The newest version, or None when the table does not exist. Raises StoreError."""
    table = peek_table(root, name, None, storage_options)
    return None if table is None else table.version()


def table_exists(root: str | Path, name: str, *, storage_options: Options | None = None) -> bool:
    """Whether the table has a log: a folder that holds only unpublished files is no table yet."""
    log = table_folder(root, name, storage_options) / "_delta_log"
    return log.is_dir() and any(log.glob("*.json"))


def table_folder(root: str | Path, name: str, storage_options: Options | None = None) -> Path:
    """The folder of a table. Raises ConfigError for a root that is not local, KeyError for an unknown table."""
    folder = local_folder(root) / TABLES[name].name
    if storage_options:
        raise ConfigError("storage options are for object stores; a local lake takes none", place=str(root))
    return folder


def open_table(root: str | Path, name: str, version: int | None = None, storage_options: Options | None = None) -> DeltaTable | None:
    """The log of a table, or None when it does not exist. Raises StoreError for a broken log, an unknown version or a table that
    other software gave features which plain Parquet reading would get wrong."""
    if not table_exists(root, name, storage_options=storage_options):
        if version is not None:
            raise StoreError(f"table {name} has no version {version}: it does not exist", place=str(root))
        return None
    from deltalake import DeltaTable

    folder = table_folder(root, name, storage_options)
    with table_errors(root, name, version, "its log cannot be read"):
        table = DeltaTable(folder.as_uri(), version=version)
        protocol = table.protocol()
        if protocol.min_reader_version > 1 or table.metadata().partition_columns:
            raise StoreError(
                f"table {name} uses reader version {protocol.min_reader_version} or partitions, which raydex does not write",
                place=str(folder),
                remedy="Some other software changed the table: build the lake again",
            )
    return table


def peek_table(root: str | Path, name: str, version: int | None = None, storage_options: Options | None = None) -> DeltaTable | None:
    """Like `open_table`, for callers that only read the log: opened once as long as its entry stays the same file. A run that finds
    nothing to do asks for the same logs eighty times."""
    log = table_folder(root, name, storage_options) / "_delta_log"
    entries = [entry.name for entry in log.iterdir() if entry.suffix == ".json"] if log.is_dir() else []
    if not entries:
        return open_table(root, name, version, storage_options)
    entry = log / (max(entries) if version is None else f"{version:020}.json")
    try:
        seen = entry.stat()
    except FileNotFoundError:
        return open_table(root, name, version, storage_options)
    return _peek(str(root), name, version, str(entry), len(entries), seen.st_size, seen.st_mtime_ns)


@lru_cache(maxsize=64)
def _peek(root: str, name: str, version: int | None, *_: object) -> DeltaTable | None:
    return open_table(root, name, version)


@contextmanager
def table_errors(root: str | Path, name: str, version: int | None, doing: str) -> Iterator[None]:
    """Errors and panics of the engines → StoreError, or CapacityError where the disk is full; both name table and version."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except RaydexError:
        raise
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise _store_error(root, name, version, doing, error) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a panic of the Rust layer is no Exception
            raise
        raise _store_error(root, name, version, doing, error) from error


@contextmanager
def reading(root: str | Path, name: str, version: int | None, files: list[DataFile]) -> Iterator[None]:
    """Like `table_errors`, for data files: an error names the first file that is missing or broken."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, pa.ArrowInvalid) and "FieldRef" in str(error):
            raise ValueError(f"table {name}: {first_line(error)}") from error
        broken = find_broken_file(_paths(root, name, files))
        if broken is None:
            raise _store_error(root, name, version, "it cannot be read", error) from error
        path, reason = broken
        at = "" if version is None else f" at version {version}"
        raise StoreError(
            f"table {name}{at}: a data file is {reason}",
            place=str(path),
            remedy=LOST_FILE,
        ) from error


def first_line(error: BaseException) -> str:
    """The message without the backtrace that the Rust layer adds."""
    lines = str(error).strip().splitlines()
    return lines[0][:500] if lines else type(error).__name__


def _store_error(root: str | Path, name: str, version: int | None, doing: str, error: BaseException) -> RaydexError:
    at = "" if version is None else f" at version {version}"
    message = f"table {name}{at}: {doing}: {first_line(error)}"
    numbers = {int(number) for number in _ERROR_NUMBER.findall(str(error))}
    if isinstance(error, OSError) and error.errno is not None:
        numbers.add(error.errno)
    if numbers & DISK_ERRORS:
        return CapacityError(message, place=str(root), remedy="Free disk space (or raise the limits on files) and run again")
    return StoreError(message, place=str(root))


def _active(root: str | Path, name: str, version: int | None, options: Options | None) -> list[DataFile] | None:
    table = peek_table(root, name, version, options)
    return None if table is None else active_files(root, name, table)


def active_files(root: str | Path, name: str, table: DeltaTable) -> list[DataFile]:
    """The files of an open log."""
    with table_errors(root, name, table.version(), "its log cannot be read"):
        actions = pa.table(table.get_add_actions(flatten=True))
    kept = {"minValues": "min.", "maxValues": "max.", "nullCount": "null_count."}
    groups = {
        key: {
            column[len(prefix) :]: actions.column(column).to_pylist()
            for column in actions.column_names
            if column.startswith(prefix) and actions.column(column).null_count < actions.num_rows
        }
        for key, prefix in kept.items()
    }
    paths, sizes, counts = (_cells(actions, column) for column in ("path", "size_bytes", "num_records"))
    files = []
    for at, rows in enumerate(counts):
        stats: dict[str, Any] = {"numRecords": rows}
        for key, values in groups.items():
            stats[key] = {column: cells[at] for column, cells in values.items() if cells[at] is not None}
        files.append(DataFile(name, unquote(paths[at]), sizes[at], rows, orjson.dumps(stats).decode()))
    return files


def _cells(table: pa.Table, column: str) -> list[Any]:
    return table.column(column).to_pylist()


def _paths(root: str | Path, name: str, files: list[DataFile]) -> list[Path]:
    folder = table_folder(root, name)
    return [folder / file.path for file in files]


def _schema(name: str, columns: list[str] | None) -> pa.Schema:
    schema = TABLES[name].schema
    unknown = set(columns or ()) - set(schema.names)
    if unknown:
        raise ValueError(f"table {name} has no column {sorted(unknown)}")
    return schema if columns is None else pa.schema([schema.field(column) for column in columns])


def _cut(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _filter(root: str | Path, name: str, files: list[DataFile], columns: list[str] | None, where: pc.Expression) -> ds.Scanner:
    """The bounds of `epoch` let a filter on it skip files without opening them."""
    known = []
    for file in files:
        bounds = file.bounds("epoch") if file.stats else None
        known.append(None if bounds is None else (pc.field("epoch") >= bounds[0]) & (pc.field("epoch") <= bounds[1]))
    return filter_files(_paths(root, name, files), known, TABLES[name].schema, columns, where)
