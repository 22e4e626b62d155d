"""Rows of chunks and vectors → rows that a vector store takes, or one typed failure each (seed 5 §5, contracts 32).

The invariant: a row that leaves here fits the collection on any server: text lengths are counted in bytes and cut at character borders,
lists and objects lose whole elements, vectors are finite, of the collection's dimension and of unit length; every cut is named in
`metadata_json` under `cut_fields`. The embedded store checks none of this by itself, so nothing here may rely on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3

NORM_TOLERANCE = 1e-3
KEY_BYTES = 96
KEY_PATTERN = re.compile(r"[A-Za-z0-9_.:-]+")
INT64_MAX = 2**63 - 1

# seed 5's lengths in bytes; `source_type` and `row_hash` are ours
TEXT_BYTES: dict[str, int] = {
    "doc_name": 256,
    "content": 65_535,
    "section_title": 512,
    "regulation_type": 128,
    "version": 64,
    "semantic_id": 128,
    "block_type": 64,
    "source_type": 128,
}
DOC_ID_BYTES = 64
SECTION_PATH_BYTES = 4_096
METADATA_BYTES = 65_535
INTEGERS = ("page_number", "created_at")

ROW_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("doc_id", pa.string()),
        *((name, pa.string()) for name in TEXT_BYTES),
        ("section_path", pa.list_(pa.string())),
        *((name, pa.int64()) for name in INTEGERS),
        ("metadata_json", pa.string()),
        ("embedding", pa.list_(pa.float32())),
    ]
)


@dataclass(frozen=True, slots=True)
class RowFailure:
    """A row that was not loaded. `key` is the row's id as given, `reject_class` a key of `REJECT_CLASSES`."""

    key: str
    reject_class: str
    error: str


Rows: TypeAlias = pa.RecordBatch | pa.Table | list[dict[str, Any]]


def checked_rows(batch: Rows, dimension: int) -> tuple[list[dict[str, Any]], list[RowFailure]]:
    """Rows in the columns of `ROW_SCHEMA` → (rows with the store's fields and `row_hash`, failures); order is kept.

    Only `id`, `doc_id` and `embedding` are required: missing text is "", missing numbers are 0, so that the same input always gives the
    same row. A key twice in one batch is a failure of the later one.
    """
    columns, count = _columns(batch)
    errors: dict[int, str] = {}
    vectors = _vectors(columns.pop("embedding"), count, dimension, errors)
    cuts: dict[int, list[str]] = {}
    _check_keys(columns, errors)
    for name, limit in TEXT_BYTES.items():
        _cut_column(columns[name], name, limit, cuts, errors)
    for name in INTEGERS:
        _check_integers(columns[name], name, errors)
    columns["section_path"] = [_section_path(path, at, cuts, errors) for at, path in enumerate(columns["section_path"])]
    columns["metadata_json"] = [_metadata(text, at, cuts, errors) for at, text in enumerate(columns["metadata_json"])]
    names = list(columns)
    good = [at for at in range(count) if at not in errors]
    rows: list[dict[str, Any]] = []
    values = list(columns.values())
    for at in good:
        row = dict(zip(names, [column[at] for column in values]))
        row["row_hash"] = _row_hash(row, vectors[at])
        row["embedding"] = vectors[at]
        rows.append(row)
    failures = [RowFailure(str(columns["id"][at]), "invalid_input", error) for at, error in sorted(errors.items())]
    return rows, failures


def _columns(batch: Rows) -> tuple[dict[str, Any], int]:
    if isinstance(batch, list):
        count = len(batch)
        columns: dict[str, Any] = {name: [row.get(name) for row in batch] for name in ROW_SCHEMA.names}
        return columns, count
    columns = {}
    for name in ROW_SCHEMA.names:
        if name not in batch.schema.names:
            columns[name] = [None] * batch.num_rows
        elif name == "embedding":
            columns[name] = batch.column(name)
        else:
            columns[name] = batch.column(name).to_pylist()
    return columns, batch.num_rows


def _vectors(column: Any, count: int, dimension: int, errors: dict[int, str]) -> np.ndarray:
    """(count, dimension) float32; the row of a failure is zero."""
    found = _dense(column, count, dimension)
    if found is None:
        found = np.zeros((count, dimension), np.float32)
        items: Iterable[Any] = column if isinstance(column, list) else column.to_pylist()
        for at, item in enumerate(items):
            try:
                vector = np.asarray([] if item is None else item, np.float32)
            except (TypeError, ValueError) as error:
                errors[at] = f"the vector is not a list of numbers: {error}"
                continue
            if vector.shape != (dimension,):
                errors[at] = f"the vector has dimension {vector.size}, the collection {dimension}"
                continue
            found[at] = vector
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", found, found, dtype=np.float64))
    for at in np.flatnonzero(~(np.abs(norms - 1.0) <= NORM_TOLERANCE)).tolist():
        finite = bool(np.isfinite(found[at]).all())
        problem = f"has length {norms[at]:.6g}, not 1 within {NORM_TOLERANCE:g}" if finite else "holds a value that is not finite"
        errors.setdefault(at, f"the vector {problem}")
    return found


def _dense(column: Any, count: int, dimension: int) -> np.ndarray | None:
    """The column as one array without a copy a row, when every row is a list of `dimension` values."""
    if isinstance(column, list):
        return None
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count or not (pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type)):
        return None
    if set(pc.unique(pc.list_value_length(column)).to_pylist()) - {dimension}:
        return None
    values = column.flatten()
    if values.null_count or not pa.types.is_floating(values.type):
        return None
    return values.to_numpy().astype(np.float32, copy=False).reshape(count, dimension)


def _check_keys(columns: dict[str, list[Any]], errors: dict[int, str]) -> None:
    seen: set[str] = set()
    for at, key in enumerate(columns["id"]):
        if not isinstance(key, str) or len(key) > KEY_BYTES or KEY_PATTERN.fullmatch(key) is None:
            errors.setdefault(at, f"the key is not 1 to {KEY_BYTES} letters, digits, '_', '.', ':' or '-'")
        elif key in seen:
            errors.setdefault(at, "the key is there twice in one batch")
        else:
            seen.add(key)
    for at, key in enumerate(columns["doc_id"]):
        if not isinstance(key, str) or len(key) > DOC_ID_BYTES or KEY_PATTERN.fullmatch(key) is None:
            errors.setdefault(at, f"doc_id is not 1 to {DOC_ID_BYTES} letters, digits, '_', '.', ':' or '-'")


def _cut_column(column: list[Any], name: str, limit: int, cuts: dict[int, list[str]], errors: dict[int, str]) -> None:
    quarter = limit // 4
    for at, text in enumerate(column):
        if text is None:
            column[at] = ""
        elif not isinstance(text, str):
            errors.setdefault(at, f"{name} is not text")
        elif len(text) > quarter or not text.isascii():
            try:
                raw = text.encode()
            except UnicodeEncodeError:
                errors.setdefault(at, f"{name} holds half of a surrogate pair")
                continue
            if len(raw) > limit:
                column[at] = cut_bytes(raw, limit)
                cuts.setdefault(at, []).append(name)


def cut_bytes(raw: bytes, limit: int) -> str:
    """The longest prefix of UTF-8 bytes that has at most `limit` bytes and ends at a character border."""
    end = min(limit, len(raw))
    while 0 < end < len(raw) and raw[end] & 0xC0 == 0x80:
        end -= 1
    return raw[:end].decode()


def _check_integers(column: list[Any], name: str, errors: dict[int, str]) -> None:
    for at, value in enumerate(column):
        if value is None:
            column[at] = 0
        elif not isinstance(value, int) or not -INT64_MAX <= value <= INT64_MAX:
            errors.setdefault(at, f"{name} is not an integer of 64 bits")


def _section_path(path: Any, at: int, cuts: dict[int, list[str]], errors: dict[int, str]) -> str:
    """JSON array of headings; the innermost ones go first where it is too long: `section_title` keeps the last one."""
    if not path:
        return "[]"
    try:
        raw = orjson.dumps(list(path))
    except (TypeError, orjson.JSONEncodeError):
        errors.setdefault(at, "section_path is not a list of text")
        return "[]"
    if len(raw) > SECTION_PATH_BYTES:
        kept = list(path)
        while len(raw) > SECTION_PATH_BYTES:
            kept.pop()
            raw = orjson.dumps(kept)
        cuts.setdefault(at, []).append("section_path")
    return raw.decode()


def _metadata(text: Any, at: int, cuts: dict[int, list[str]], errors: dict[int, str]) -> str:
    """JSON object; whole elements go, the largest first, where it is too long; `cut_fields` names what was cut in this row."""
    if text is None:
        text = "{}"
    try:
        found = orjson.loads(text) if isinstance(text, str) else text
        if not isinstance(found, dict):
            raise TypeError("not an object")
        raw = text.encode() if isinstance(text, str) else orjson.dumps(found, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):
        errors.setdefault(at, "metadata_json is not a JSON object")
        return "{}"
    cut = cuts.get(at, [])
    if len(raw) <= METADATA_BYTES and not cut:
        return raw.decode()
    flagged = _flag(found, cut)
    if len(flagged) <= METADATA_BYTES:
        return flagged.decode()
    cut = [*cut, "metadata_json"]
    sizes = {key: len(orjson.dumps(value)) + len(orjson.dumps(key)) + 2 for key, value in found.items()}
    kept = dict(found)
    over = len(_flag(kept, cut)) - METADATA_BYTES
    for key in sorted(sizes, key=lambda k: (-sizes[k], k)):
        if over <= 0:
            break
        over -= sizes[key]
        del kept[key]
    return _flag(kept, cut).decode()


def _flag(metadata: dict[str, Any], cut: list[str]) -> bytes:
    return orjson.dumps({**metadata, "cut_fields": cut}, option=orjson.OPT_SORT_KEYS)


def _row_hash(row: dict[str, Any], vector: np.ndarray) -> str:
    fields = orjson.dumps(list(row.values()))
    return blake3(len(fields).to_bytes(8, "little") + fields + vector.tobytes()).hexdigest()[:32]
