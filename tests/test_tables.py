"""The text of tables whose cells span rows and columns: each cell once, and everything under its header."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from raydex.kernels.tables import Rows, clamp_spans, make_cell, table_lines, table_text, values_above


def test_places_that_a_cell_spans_are_there_and_empty() -> None:
    rows = [
        [make_cell("Axle", row_span=2), make_cell("Load", col_span=2), make_cell("Note")],
        [make_cell("front"), make_cell("rear"), make_cell("kg")],
        [make_cell("A"), make_cell("7", row_span=2, col_span=2), make_cell("x")],
        [make_cell("B"), make_cell("y")],
        [make_cell("all of them", col_span=4)],
    ]
    assert table_text(rows, "Loads").split("\n") == [
        "Loads",
        "Axle | Load |  | Note",
        " | front | rear | kg",
        "A | 7 |  | x",
        "B |  |  | y",
        "all of them",
    ]
    assert [at for at, _ in table_lines(rows)] == [0, 1, 2, 3, 4]


def test_a_row_that_says_nothing_has_no_line() -> None:
    rows = [[make_cell("a", row_span=3), make_cell("b")], [make_cell("")], [make_cell("c\nd")]]
    assert list(table_lines(rows)) == [(0, "a | b"), (2, " | c; d")]


def test_spans_do_not_make_a_text_huge() -> None:
    """Cells that hang over a hundred thousand rows are side by side, as they come, when there are too many empty places."""
    rows: Rows = [[make_cell(str(k), row_span=100_000, col_span=50) for k in range(4)], *([make_cell("v")] for _ in range(100_000))]
    assert len(table_text(rows)) < 3_000_000


cells = st.builds(make_cell, st.text("ab \n", max_size=4), row_span=st.integers(0, 4), col_span=st.integers(1, 4), header=st.booleans())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(cells, max_size=5), max_size=6))
def test_each_cell_is_said_once_at_its_column(rows: Rows) -> None:
    clamp_spans(rows)
    taken: set[tuple[int, int]] = set()
    wanted: dict[int, list[str]] = {}
    for at, row in enumerate(rows):
        line: dict[int, str] = {}
        column = 0
        for cell in row:
            while (at, column) in taken:
                column += 1
            line[column] = cell["text"].replace("\n", "; ")
            taken |= {(at + down, column + over) for down in range(cell["row_span"]) for over in range(cell["col_span"])}
            column += cell["col_span"]
        if any(line.values()):
            wanted[at] = [line.get(place, "") for place in range(max(line) + 1)]
    assert {at: line.split(" | ") for at, line in table_lines(rows)} == wanted


def test_values_above_a_line_are_those_that_reach_into_it() -> None:
    """A header is no value, nor is a long text; rows without a line have none; one that stands behind the last cell is told too."""
    long = "word " * 40
    rows = [
        [make_cell("Axle", row_span=2, header=True), make_cell("Load", header=True), make_cell("Note", header=True)],
        [make_cell("kg", header=True), make_cell(long, row_span=3)],
        [make_cell("front", row_span=3), make_cell("1")],
        [make_cell("")],
        [make_cell("2"), make_cell("both", row_span=2)],
        [make_cell("rear"), make_cell("3")],
    ]
    assert [line for _, line in table_lines(rows)][-1] == "rear | 3"
    assert values_above(rows, header_rows=2) == ["", "", "", "front", " |  | both"]
