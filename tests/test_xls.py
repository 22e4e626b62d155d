"""Binary workbooks: values, dates, sheets and their state, merged cells, errors, hostile files."""

from __future__ import annotations

import struct

import pytest
from biff_files import DATE, HIDDEN, MOMENT, TIME, VERY_HIDDEN, VISIBLE, biff, record, sheet_stream
from container_files import compound_file
from document_files import parse_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from sheet_files import grid, outline, tables

from raydex.ir.parsed import ParsedFile
from raydex.kernels.detect import detect_media_type
from raydex.kernels.limits import Limits

XLS = "application/vnd.ms-excel"
STOCK = {
    (2, 1): "Item",
    (2, 2): "Größe",
    (2, 3): "Since",
    (3, 1): "bolt",
    (3, 2): 1.5,
    (3, 3): (45352.0, DATE),
    (4, 1): "nut",
    (4, 2): 3.0,
    (4, 3): (45352.75, MOMENT),
}


def read(data: bytes, limits: Limits | None = None) -> ParsedFile:
    return parse_bytes(data, XLS, "stock.xls", limits)


def test_values_dates_sheets_and_their_state() -> None:
    data = biff(
        ("Stock", VISIBLE, sheet_stream(STOCK)),
        ("Old", HIDDEN, sheet_stream({(0, 0): "gone"})),
        ("Deep", VERY_HIDDEN, sheet_stream({})),
    )
    assert detect_media_type(data[:8192], "stock.xls") == XLS
    parsed = read(data)
    assert outline(parsed) == [
        ("heading", "B3:D5", "Stock"),
        ("table", "B3:D5", "Item | Größe | Since\nbolt | 1.5 | 2024-03-01\nnut | 3 | 2024-03-01 18:00:00"),
        ("heading", "A1", "Old"),
        ("paragraph", "A1", "gone"),
        ("heading", None, "Deep"),
    ]
    document = parsed.document
    assert document is not None and document.parser == "xls" and document.warnings == []
    assert document.metadata["sheets"] == [
        {"name": "Stock", "state": "visible", "cells": "B3:D5"},
        {"name": "Old", "state": "hidden", "cells": "A1"},
        {"name": "Deep", "state": "veryHidden"},
    ]
    assert [block.metadata["sheet_state"] for block in parsed.blocks if block.kind == "heading"] == ["visible", "hidden", "veryHidden"]
    assert tables(parsed)[0].metadata["header_rows"] == 1


def test_times_truth_values_errors_and_merged_cells() -> None:
    cells = {
        (0, 0): "both",
        (0, 2): "one",
        (1, 0): (0.25, TIME),
        (1, 1): True,
        (2, 0): b"\x07",
        (2, 1): b"\x2a",
        (3, 0): 1e15,
        (3, 1): -0.1,
    }
    parsed = read(biff(("S", VISIBLE, sheet_stream(cells, [(0, 0, 0, 1)]))))
    table = tables(parsed)[0]
    assert grid(table) == [["both", "one"], ["06:00:00", "TRUE", ""], ["#DIV/0!", "#N/A", ""], ["1E+15", "-0.1", ""]]
    assert table.metadata["rows"][0][0]["col_span"] == 2


def formula(row: int, column: int, result: bytes) -> bytes:
    return record(0x06, struct.pack("<HHH", row, column, 0) + result + bytes(6) + struct.pack("<H", 3) + b"\x1e\x01\x00")


def test_formulas_show_their_stored_results() -> None:
    numbers = formula(0, 0, struct.pack("<d", 12.5))
    broken = formula(0, 1, b"\x02\x00\x17\x00\x00\x00\xff\xff")
    stream = sheet_stream({(1, 0): "x"})
    at = len(record(0x809, bytes(16))) + len(record(0x200, bytes(14)))
    parsed = read(biff(("S", VISIBLE, stream[:at] + numbers + broken + stream[at:])))
    assert [block.text for block in parsed.blocks] == ["S", "12.5 | #REF!", "x"]
    assert ("formulas_not_kept", "2 formulas stand as their results alone") in [(event.name, event.message) for event in parsed.events]


def test_days_count_from_1904_where_the_workbook_says_so() -> None:
    parsed = read(biff(("S", VISIBLE, sheet_stream({(0, 0): (43890.0, DATE)})), date1904=True))
    assert parsed.blocks[1].text == "2024-03-01"


def test_cells_of_an_embedded_chart_are_none_of_the_sheet() -> None:
    chart = record(0x809, struct.pack("<HHHHII", 0x600, 0x20, 0, 1997, 0, 0)) + record(0x205, b"\x09\0\0\0\0\0\x07\x01") + record(0x0A)
    stream = sheet_stream({(0, 0): "a"})
    parsed = read(biff(("S", VISIBLE, stream[:-4] + chart + stream[-4:])))
    assert [block.text for block in parsed.blocks] == ["S", "a"]


@pytest.mark.parametrize(
    ("data", "reject"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 2_000, "invalid_input"),
        (compound_file({"WordDocument": b"x" * 100}), "invalid_input"),
        (compound_file({"EncryptedPackage": b"x" * 100}), "encrypted"),
        (compound_file({"Workbook": b"\x01" * 5_000}), "invalid_input"),
        (biff(("S", VISIBLE, sheet_stream({(0, 0): "a"})), extra=record(0x2F, bytes(54))), "encrypted"),
        (biff(("S", VISIBLE, sheet_stream({(0, 0): b"\x99"}))), "invalid_input"),
        (biff(("S", VISIBLE, sheet_stream({(0, 0): "a", (65535, 255): "far"}))), "too_large"),
        (biff(*((f"S{n}", VISIBLE, sheet_stream({(0, 0): "a", (65535, 15): "far"})) for n in range(9))), "too_large"),
    ],
)
def test_hostile_workbooks_are_rejected(data: bytes, reject: str) -> None:
    parsed = read(data)
    assert parsed.document is None and [row.reject_class for row in parsed.rejects] == [reject]


def test_limits_hold() -> None:
    data = biff(("S", VISIBLE, sheet_stream({(row, 0): "text" for row in range(100)})))
    assert read(data, Limits(cells=99)).rejects[0].reject_class == "too_large"
    assert read(data, Limits(text_bytes=399)).rejects[0].reject_class == "text_too_long"
    assert read(data, Limits(cells=100, text_bytes=401)).document is not None


WHOLE = biff(("S", VISIBLE, sheet_stream(STOCK, [(2, 2, 1, 2)])), ("T", HIDDEN, sheet_stream({(0, 0): "a"})))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=12), st.integers(0, len(WHOLE)))
def test_any_damage_ends_in_a_document_or_a_reject(changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(WHOLE)
    for at, value in changes:
        data[at] = value
    parsed = read(bytes(data[: max(cut, 512)]))
    assert (parsed.document is None) == bool(parsed.rejects)
    assert not any(row.reject_class == "internal" for row in parsed.rejects)
