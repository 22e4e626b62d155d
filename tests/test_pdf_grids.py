"""Tables in rules: where one ends, which rows and columns a cell spans, headers that repeat; and what is no table."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pdf_files import SENTENCE, column, drawn, request

from raydex.ir.document import Block
from raydex.kernels.pdf import parse_pdf
from raydex.kernels.pdf_grids import find_grids

BOLD = "Helvetica-Bold"
WIDTH, HEIGHT = 90.0, 24.0


def built(*story: Any) -> list[Block]:
    from reportlab.platypus import SimpleDocTemplate

    out = io.BytesIO()
    SimpleDocTemplate(out, pagesize=(595, 842), invariant=1).build(list(story))
    return parse_pdf(request(out.getvalue())).blocks


def text(words: str) -> Any:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph

    return Paragraph(words, getSampleStyleSheet()["BodyText"])


def table(rows: list[list[Any]], *style: tuple[Any, ...], **options: Any) -> Any:
    from reportlab.lib import colors
    from reportlab.platypus import Table, TableStyle

    return Table(rows, style=TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black), *style]), **options)


def cells(block: Block) -> list[list[tuple[str, int, int]]]:
    return [[(cell["text"], cell["row_span"], cell["col_span"]) for cell in row] for row in block.metadata["rows"]]


def texts(block: Block) -> list[list[str]]:
    return [[cell["text"] for cell in row] for row in block.metadata["rows"]]


@pytest.mark.parametrize("gap", [6, 20])
def test_rules_that_do_not_touch_are_two_tables(gap: int) -> None:
    from reportlab.platypus import Spacer

    one = [["a", "b", "c"], ["1", "2", "3"], ["4", "5", "6"]]
    other = [["d", "e", "f"], ["7", "8", "9"], ["10", "11", "12"]]
    widths = {"colWidths": [100] * 3}
    found = built(text(SENTENCE), table(one, **widths), Spacer(1, gap), table(other, **widths), text(SENTENCE))
    assert [block.kind for block in found] == ["paragraph", "table", "table", "paragraph"]
    assert [texts(block) for block in found[1:3]] == [one, other]
    assert [block.locator.table for block in found[1:3]] == [1, 2]
    assert [block.metadata["header_rows"] for block in found[1:3]] == [1, 1]


def test_missing_inner_rules_are_spans() -> None:
    rows = [["Part", "Size", ""], ["", "wide", "high"], ["Pump", "2", text("a text that wraps inside of its cell")], ["Seal", "none", ""]]
    spans = [("SPAN", (0, 0), (0, 1)), ("SPAN", (1, 0), (2, 0)), ("SPAN", (1, 3), (2, 3))]
    block = built(table(rows, *spans, ("FONT", (0, 0), (-1, 1), BOLD), ("VALIGN", (0, 0), (-1, -1), "MIDDLE"), colWidths=[100] * 3))[0]
    assert cells(block) == [
        [("Part", 2, 1), ("Size", 1, 2)],
        [("wide", 1, 1), ("high", 1, 1)],
        [("Pump", 1, 1), ("2", 1, 1), ("a text that wraps inside of its cell", 1, 1)],
        [("Seal", 1, 1), ("none", 1, 2)],
    ]
    assert block.metadata["header_rows"] == 2
    assert [[cell["header"] for cell in row] for row in block.metadata["rows"]] == [[True] * 2, [True] * 2, [False] * 3, [False] * 2]


def test_a_cell_in_the_middle_of_the_rows_that_it_spans() -> None:
    rows = [["Group", "Item", "Value"], ["Pumps", "P1", "3"], ["", "P2", "4"], ["", "P3", "5"], ["Valves", "V1", "6"], ["", "V2", "7"]]
    block = built(table(rows, ("SPAN", (0, 1), (0, 3)), ("SPAN", (0, 4), (0, 5)), ("VALIGN", (0, 0), (-1, -1), "MIDDLE")))[0]
    assert [row[0][:2] for row in cells(block)] == [("Group", 1), ("Pumps", 3), ("P2", 1), ("P3", 1), ("Valves", 2), ("V2", 1)]
    assert [len(row) for row in cells(block)] == [3, 3, 2, 2, 3, 2]


@pytest.mark.parametrize("repeat", [0, 1])
def test_a_table_over_pages_has_headers_where_they_are_repeated(repeat: int) -> None:
    rows = [["No", "Part", "Mass"], *([str(at), f"Part {at}", str(3 * at)] for at in range(90))]
    found = built(table(rows, repeatRows=repeat))
    assert [block.locator.page for block in found] == [1, 2, 3] and {block.locator.table for block in found} == {1}
    assert [block.metadata["header_rows"] for block in found] == [1, repeat, repeat]
    assert [block.metadata.get("header") for block in found] == [None, [["No", "Part", "Mass"]], [["No", "Part", "Mass"]]]
    assert [row for block in found for row in texts(block)[block.metadata["header_rows"] :]] == rows[1:]


@pytest.mark.parametrize("repeat", [0, 1])
@pytest.mark.parametrize("align", ["RIGHT", "CENTER"])
def test_columns_set_flush_right_or_centred_run_on_over_pages(repeat: int, align: str) -> None:
    from reportlab.platypus import Table, TableStyle

    rows = [["No", "Part", "Mass in kg"], *([str(at), f"Part {at}" + " of many" * (at > 60), str(3 ** (at // 12))] for at in range(90))]
    found = built(Table(rows, repeatRows=repeat, colWidths=[60, 200, 120], style=TableStyle([("ALIGN", (0, 0), (-1, -1), align)])))
    assert {block.locator.table for block in found} == {1} and len(found) == 3
    assert [block.metadata["header_rows"] for block in found] == [1, repeat, repeat]


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 5), st.integers(2, 5), st.data())
def test_spans_are_read_as_drawn(height: int, width: int, data: st.DataObject) -> None:
    taken: set[tuple[int, int]] = set()
    wanted: list[tuple[int, int, int, int]] = []
    for row in range(height):
        for at in range(width):
            if (row, at) in taken:
                continue
            free = next((end for end in range(at, width) if (row, end) in taken), width) - at
            wide, high = data.draw(st.integers(1, min(2, free))), data.draw(st.integers(1, min(2, height - row)))
            taken |= {(r, c) for r in range(row, row + high) for c in range(at, at + wide)}
            wanted.append((row, at, high, wide))
    xs = {at for _, at, _, wide in wanted for at in (at, at + wide)}
    ys = {row for row, _, high, _ in wanted for row in (row, row + high)}

    # a column or row without an edge of its own cannot be seen
    assume(len(xs) > width and len(ys) > height and len(wanted) > 2 and min(len({one[side] for one in wanted}) for side in (0, 1)) > 1)

    def draw(canvas: Any) -> None:
        column(canvas, 50, 800, [SENTENCE])
        for row, at, high, wide in wanted:
            x, y = 60 + WIDTH * at, 700 - HEIGHT * row
            canvas.rect(x, y - HEIGHT * high, WIDTH * wide, HEIGHT * high)
            column(canvas, x + 5, y - 15, [f"r{row}c{at}"])

    block = parse_pdf(request(drawn(draw))).blocks[-1]
    found = [(cell["text"], cell["row_span"], cell["col_span"]) for row in block.metadata["rows"] for cell in row]
    assert found == [(f"r{row}c{at}", high, wide) for row, at, high, wide in wanted]


def test_a_frame_around_columns_of_text_is_no_table() -> None:
    def draw(canvas: Any) -> None:
        canvas.rect(40, 300, 500, 480)
        canvas.line(290, 300, 290, 780)
        canvas.line(40, 540, 540, 540)
        for x in (50, 300):
            column(canvas, x, 760, [f"line {at} of a column in a frame of rules" for at in range(16)])
            column(canvas, x, 520, [f"line {at} of a column in a frame of rules" for at in range(16)])

    assert {block.kind for block in parse_pdf(request(drawn(draw))).blocks} == {"paragraph"}


def test_rules_between_columns_alone_leave_rows_to_the_text() -> None:
    def draw(canvas: Any) -> None:
        canvas.rect(40, 500, 300, 200)
        canvas.line(40, 680, 340, 680)
        for x in (140, 240):
            canvas.line(x, 500, x, 700)
        for at in range(8):
            for x, name in ((50, "k"), (150, "v"), (250, "w")):
                column(canvas, x, 685 - 20 * at, [f"{name} {at}"])

    block = parse_pdf(request(drawn(draw))).blocks[0]
    assert texts(block) == [[f"k {at}", f"v {at}", f"w {at}"] for at in range(8)]


def test_a_text_over_a_rule_leaves_the_table_to_the_text() -> None:
    def draw(canvas: Any) -> None:
        for y in (700, 680, 660, 640):
            canvas.line(40, y, 340, y)
        for x in (40, 140, 240, 340):
            canvas.line(x, 640, x, 700)
        for at in range(3):
            column(canvas, 50, 685 - 20 * at, [f"a text that runs over {at}"])
            column(canvas, 250, 685 - 20 * at, [f"w {at}"])

    assert "\n".join(block.text for block in parse_pdf(request(drawn(draw))).blocks).count("a text that runs over") == 3


_rule = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.booleans())


@given(st.lists(_rule, max_size=60))
def test_any_rules_give_grids_that_cover_each_slot_once(rules: list[tuple[int, int, int, bool]]) -> None:
    boxes = [
        (40.0 * b, 20.0 * a, 40.0 * c, 20.0 * a) if flat else (40.0 * a, 20.0 * b, 40.0 * a, 20.0 * c) for a, b, c, flat in rules if b < c
    ]
    for grid in find_grids(boxes):
        assert sum(cell.row_span * cell.col_span for cell in grid.cells) == (len(grid.xs) - 1) * (len(grid.ys) - 1)
        assert [len(row) for row in grid.slots] == [len(grid.xs) - 1] * (len(grid.ys) - 1)
        assert grid.xs == sorted(grid.xs) and grid.ys == sorted(grid.ys)
