"""The rows that flow between stages: one row a record, Arrow columns only, file bytes never among them.

Each stage writes its tables itself, as unpublished data files; what travels on is what the next stage needs, plus a receipt: the files
written and the stage's figures. The driver publishes files by epoch once all rows of it are in, so a file travels on a row of its own
epoch: a batch may hold rows of several, and Ray may slice it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from raydex.ir.tables import TABLES

S = pa.string()
STORED = pa.list_(pa.struct([("table", S), ("path", S)]))
FILES = pa.list_(pa.struct([("table", S), ("path", S), ("size", pa.int64()), ("rows", pa.int64()), ("stats", S), ("epoch", pa.int64())]))
METRICS = pa.list_(
    pa.struct(
        [
            ("stage", S),
            ("rows_in", pa.int64()),
            ("rows_out", pa.int64()),
            ("rejects", pa.int64()),
            ("seconds", pa.float64()),
            ("cpu_seconds", pa.float64()),
            ("gpu_seconds", pa.float64()),
        ]
    )
)

WORK = pa.schema(
    [
        ("record_id", S),
        ("parent_id", S),  # of the record that this one is a member of; "" for a file of a source
        ("epoch", pa.int64()),
        ("start", S),  # first stage to run: parse, chunk or embed
        ("source_id", S),
        ("source_name", S),
        ("repository", S),
        ("path", S),
        ("uri", S),
        ("size", pa.int64()),
        ("change_key", S),
        ("content_hash", S),
        ("media_type", S),
        ("cas_uri", S),
        ("attempts", pa.int32()),
        ("reject_class", S),  # start parse: known from listing (unreadable …); a later start: what the ledger holds
        ("error", S),
        ("missing", pa.list_(S)),
        ("stream", S),  # of a streamed file: where the plan of its segments is staged; of a segment: what it is, as JSON; else null
        ("ranges", pa.list_(S)),  # staged page ranges of a long PDF
        ("observe_mark", S),  # fingerprint of the OCR that its rows hold; "" where there is nothing to read
        ("caption_mark", S),  # fingerprint of the captions that its rows hold, `pending`, or "" where there is no image
        ("stored", STORED),  # data files that hold the record's rows, when an earlier stage is not run again
    ]
)


# images to be described, by content address, and what became of each
IMAGES = pa.schema([(name, S) for name in ("key", "uri", "media_type")])
CAPTIONS = pa.schema([(name, S) for name in ("key", "status", "text", "error", "reject_class", "engine", "engine_version")])
MARKS = ("observe_mark", "caption_mark")


def nested(table: str, drop: tuple[str, ...] = ()) -> pa.DataType:
    """list<struct> of a table's own columns (common ones left out)."""
    common = {"record_id", "content_hash", "fingerprint", "run_id", "epoch", "written_at", *drop}
    return pa.list_(pa.struct([field for field in TABLES[table].schema if field.name not in common]))


BLOCKS = nested("blocks")
SYMBOLS = nested("symbols")
SEEN = pa.list_(pa.struct([("asset_id", S), ("kind", S), ("text", S)]))  # what was observed in images and pages
TEXTS = pa.list_(pa.struct([("chunk_id", S), ("text_hash", S), ("text", S)]))


def nest(table: pa.Table | None, kind: pa.DataType, record_ids: list[str]) -> pa.Array:
    """Rows of a table, grouped by record_id in the order of `record_ids`, as one list<struct> array; no rows → empty list.

    The table's rows must be grouped by record already (any order of groups).
    """
    fields = kind.value_type.fields
    if table is None or table.num_rows == 0:
        return pa.array([[] for _ in record_ids], kind)
    ids = table.column("record_id").combine_chunks().to_pylist()
    spans: dict[str, list[int]] = {}
    for at, record_id in enumerate(ids):
        span = spans.get(record_id)
        if span is None:
            spans[record_id] = [at, at + 1]
        else:
            span[1] = at + 1
    order: list[int] = []
    offsets = [0]
    for record_id in record_ids:
        start, end = spans.get(record_id, (0, 0))
        order.extend(range(start, end))
        offsets.append(len(order))
    taken = table.take(pa.array(order, pa.int64()))
    values = pa.StructArray.from_arrays([_one_chunk(taken.column(field.name), field.type) for field in fields], fields=list(fields))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=kind)


def _one_chunk(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], kind)
    return array


@dataclass(slots=True)
class StageClock:
    """Measures one batch of one stage."""

    stage: str
    rows_in: int
    started: float = 0.0
    cpu_started: float = 0.0
    extra_cpu: float = 0.0
    gpu: bool = False

    def __post_init__(self) -> None:
        self.started = time.perf_counter()
        self.cpu_started = time.process_time()

    def stop(self, rows_out: int, rejects: int) -> dict[str, Any]:
        seconds = time.perf_counter() - self.started
        return {
            "stage": self.stage,
            "rows_in": self.rows_in,
            "rows_out": rows_out,
            "rejects": rejects,
            "seconds": seconds,
            "cpu_seconds": time.process_time() - self.cpu_started + self.extra_cpu,
            "gpu_seconds": seconds if self.gpu else 0.0,
        }


def receipt_columns(batch: pa.Table, files: list[dict[str, Any]], metrics: list[dict[str, Any]]) -> pa.Table:
    """Adds to the receipt: each file on the first row of the file's epoch, the figures on the first row of the batch."""
    count = batch.num_rows
    old_files = batch.column("files").to_pylist() if "files" in batch.column_names else [[] for _ in range(count)]
    old_metrics = batch.column("metrics").to_pylist() if "metrics" in batch.column_names else [[] for _ in range(count)]
    epochs = batch.column("epoch").to_pylist()
    for file in files:
        old_files[epochs.index(file["epoch"])].append(file)
    if count:
        old_metrics[0].extend(metrics)
    return with_columns(batch, {"files": pa.array(old_files, FILES), "metrics": pa.array(old_metrics, METRICS)})


def replaced(column: pa.ChunkedArray, at: list[int], fresh: pa.Array) -> pa.Array:
    """The column with the values of `fresh` in the rows `at`."""
    old = _one_chunk(column, column.type)
    order = list(range(len(old)))
    for number, row in enumerate(at):
        order[row] = len(old) + number
    return pa.concat_arrays([old, fresh]).take(pa.array(order, pa.int64()))


def with_columns(batch: pa.Table, columns: dict[str, pa.Array]) -> pa.Table:
    """The batch with columns set or replaced."""
    for name, array in columns.items():
        at = batch.schema.get_field_index(name)
        batch = batch.append_column(name, array) if at < 0 else batch.set_column(at, name, array)
    return batch
