"""Replacing a projected table: rows that came out as they were keep their files, and nothing else is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from raydex.cluster.delta import list_data_files, read_delta, table_version
from raydex.ir.tables import TABLES
from raydex.jobs import replace
from raydex.jobs.replace import replace_rows

SCHEMA = TABLES["edges"].schema


def edges(run: str, *items: tuple[str, list[str]]) -> Callable[[], Iterator[pa.RecordBatch]]:
    """Batches of two rows: an edge a pair of id and evidence ids, written by `run`."""
    rows: list[dict[str, Any]] = []
    for edge_id, evidence_ids in items:
        row = {field.name: f"{field.name} of {edge_id}" if pa.types.is_string(field.type) else None for field in SCHEMA}
        row.update(edge_id=edge_id, evidence_ids=evidence_ids, run_id=run, epoch=len(run), written_at=datetime(2026, 1, 1, tzinfo=UTC))
        rows.append(row)
    return lambda: iter(pa.Table.from_pylist(rows, SCHEMA).to_batches(max_chunksize=2))


def held(root: Path) -> dict[str, tuple[list[str], str]]:
    return {row["edge_id"]: (row["evidence_ids"], row["run_id"]) for row in read_delta(root, "edges").to_pylist()}


def test_first_rows_are_written_and_none_make_no_table(tmp_path: Path) -> None:
    assert replace_rows(tmp_path, "edges", edges("one")) == 0
    assert table_version(tmp_path, "edges") is None
    assert replace_rows(tmp_path, "edges", edges("one", ("a", ["e"]), ("b", []), ("c", ["f", "g"]))) == 3
    assert held(tmp_path) == {"a": (["e"], "one"), "b": ([], "one"), "c": (["f", "g"], "one")}


def test_equal_rows_cost_no_commit(tmp_path: Path) -> None:
    replace_rows(tmp_path, "edges", edges("one", ("a", ["e"]), ("b", []), ("c", ["f"])))
    version = table_version(tmp_path, "edges")
    assert replace_rows(tmp_path, "edges", edges("two", ("c", ["f"]), ("a", ["e"]), ("b", []))) == 0
    assert table_version(tmp_path, "edges") == version


def test_only_what_differs_is_written(tmp_path: Path) -> None:
    replace_rows(tmp_path, "edges", edges("one", ("a", ["e"]), ("b", ["x", "y"]), ("c", ["f"])))
    assert replace_rows(tmp_path, "edges", edges("two", ("a", ["e"]), ("b", ["x\x1fy"]), ("d", []))) == 2
    assert held(tmp_path) == {"a": (["e"], "one"), "b": (["x\x1fy"], "two"), "d": ([], "two")}


def test_nothing_left_empties_the_table(tmp_path: Path) -> None:
    replace_rows(tmp_path, "edges", edges("one", ("a", []), ("b", [])))
    assert replace_rows(tmp_path, "edges", edges("two")) == 0
    assert held(tmp_path) == {}


def test_rows_are_cut_into_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{at:03d}" for at in range(11)]
    rows = edges("one", *((name, []) for name in names))
    written = next(rows()).filter(pa.array([True, True]))
    monkeypatch.setattr(replace, "FILE_BYTES", written.nbytes + 1)  # two batches of two rows
    assert replace_rows(tmp_path, "edges", rows) == 11
    assert sorted(file.rows for file in list_data_files(tmp_path, "edges")) == [3, 4, 4]
    assert sorted(held(tmp_path)) == names


def test_rows_that_share_a_hash_are_written_again_never_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = replace._Marks.of

    def weak(self: replace._Marks, rows: pa.RecordBatch | pa.Table) -> Any:
        marks = whole(self, rows)
        marks[:, 0] %= 2
        return marks

    monkeypatch.setattr(replace._Marks, "of", weak)
    items = [(f"{at}", [f"e{at}"]) for at in range(9)]
    replace_rows(tmp_path, "edges", edges("one", *items))
    replace_rows(tmp_path, "edges", edges("two", *items[3:], ("new", [])))
    assert {key: value[0] for key, value in held(tmp_path).items()} == dict([*items[3:], ("new", [])])
    assert read_delta(tmp_path, "edges").num_rows == 7
