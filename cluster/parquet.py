"""Rows ↔ one Parquet file, in which no flipped bit goes unnoticed.

Pages carry checksums, which are verified on reading; the footer, which Parquet leaves unprotected (a bit in a column's name turns the
column into nulls), has its checksum in the file's name. Reading needs `pyarrow.dataset`, which drags in pandas, only for a filter.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from blake3 import blake3

if TYPE_CHECKING:
    import pyarrow.dataset as ds

ROW_GROUP_BYTES = 32_000_000
READERS = 4
MAGIC = b"PAR1"
_NAME = re.compile(r"[0-9a-f]{32}-([0-9a-f]{16})\.parquet")


def encode_rows(table: pa.Table, dictionary: list[str]) -> tuple[str, memoryview]:
    """A new unguessable file name and the bytes of the file: zstd, page checksums, row groups of about `ROW_GROUP_BYTES`.

    `dictionary` names the columns that are worth a dictionary.
    """
    buffer = pa.BufferOutputStream()  # twice as fast as a path for small files
    pq.write_table(
        table,
        buffer,
        compression="zstd",
        row_group_size=max(1024, ROW_GROUP_BYTES * table.num_rows // max(1, table.nbytes)),
        write_page_checksum=True,
        use_dictionary=dictionary,  # type: ignore[arg-type]  # the stubs know bool only
    )
    data = memoryview(buffer.getvalue())
    length = int.from_bytes(data[-8:-4], "little")
    return f"{uuid.uuid4().hex}-{_checksum(data[-8 - length :])}.parquet", data


def open_file(path: Path) -> pq.ParquetFile:
    """The file, its footer checked where the name holds a checksum. Raises OSError, ArrowInvalid."""
    source = pa.OSFile(str(path))
    named = _NAME.fullmatch(path.name)
    if named:
        _check_footer(source, named[1])
    return pq.ParquetFile(source, page_checksum_verification=True)


def read_file(path: Path, schema: pa.Schema) -> pa.Table:
    """The columns of `schema`; those that the file lacks (an older release wrote it) are null. Raises OSError, ArrowException."""
    with open_file(path) as file:
        stored = set(file.schema_arrow.names)
        return _conform(file.read(columns=[name for name in schema.names if name in stored]), schema, file.metadata.num_rows)


def read_files(paths: Sequence[Path], schema: pa.Schema) -> pa.Table:
    """All files in order, read side by side."""
    if len(paths) < 2:
        parts = [read_file(path, schema) for path in paths]
    else:
        with ThreadPoolExecutor(READERS) as readers:
            parts = list(readers.map(lambda path: read_file(path, schema), paths))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def scan_file(path: Path, schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Like `read_file` in batches; memory is bounded by a row group."""
    with open_file(path) as file:
        stored = set(file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=batch_rows, columns=[name for name in schema.names if name in stored]):
            yield from _conform(pa.Table.from_batches([batch]), schema, batch.num_rows).to_batches()


def filter_files(
    paths: Sequence[Path], bounds: Sequence[pc.Expression | None], schema: pa.Schema, columns: list[str] | None, where: pc.Expression
) -> ds.Scanner:
    """A scanner of the rows that `where` holds for. Files whose `bounds` exclude it are not opened."""
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    disk = LocalFileSystem()
    options = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    form = ds.ParquetFileFormat(default_fragment_scan_options=options)
    fragments = [form.make_fragment(str(path), disk, partition_expression=known) for path, known in zip(paths, bounds, strict=True)]
    dataset = ds.FileSystemDataset(fragments, schema, form, disk)
    for fragment in dataset.get_fragments(where):
        open_file(Path(fragment.path)).close(force=True)
    return dataset.scanner(columns=columns, filter=where, batch_readahead=2, fragment_readahead=2)


def find_broken_file(paths: Sequence[Path]) -> tuple[Path, str] | None:
    """The first file that is missing or does not read whole, with the reason; every page is read and checked."""
    for path in paths:
        if not path.is_file():
            return path, "missing"
        try:
            with open_file(path) as file:
                for _ in file.iter_batches(batch_size=4096):
                    continue
        except (OSError, pa.ArrowException) as error:
            return path, f"broken ({str(error)[:200]})"
    return None


def _check_footer(source: pa.OSFile, expected: str) -> None:
    size = source.size()
    source.seek(max(0, size - 8))
    tail = source.read(8)
    length = int.from_bytes(tail[:4], "little")
    if size < 12 or tail[4:] != MAGIC or length > size - 12:
        raise pa.ArrowInvalid("the footer is cut off or damaged")
    source.seek(size - 8 - length)
    if _checksum(source.read(length + 8)) != expected:
        raise pa.ArrowInvalid("the footer is not the one that was written")
    source.seek(0)


def _checksum(footer: Any) -> str:
    return blake3(footer).hexdigest()[:16]


def _conform(table: pa.Table, schema: pa.Schema, rows: int) -> pa.Table:
    if table.schema.equals(schema):
        return table.replace_schema_metadata(None)
    columns = [
        table.column(field.name).cast(field.type) if field.name in table.column_names else pa.nulls(rows, field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
