"""Blocks of a PDF page: where a heading ends and another begins, and which lines are items of a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pdf_files import SENTENCE, column, drawn, request

from raydex.ir.document import Block
from raydex.kernels.pdf import parse_pdf

BOLD = "Helvetica-Bold"


def blocks(draw: Callable[[Any], None]) -> list[Block]:
    return parse_pdf(request(drawn(draw))).blocks


def centred(canvas: Any, y: float, text: str, font: str, size: float) -> None:
    canvas.setFont(font, size)
    canvas.drawCentredString(297.5, y, text)


# -- headings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("font", "size", "gap", "x", "below"),
    [
        (BOLD, 14, 18, 72, 13),  # another size
        (BOLD, 12, 15, 72, 12),  # the same size, at the margin
        ("Helvetica", 14, 20, 72, 14),
        (BOLD, 14, 30, None, 14),  # centred too, a wide gap below the title
    ],
)
def test_a_centred_title_and_the_heading_below_it_are_two(font: str, size: float, gap: float, x: float | None, below: float) -> None:
    def draw(canvas: Any) -> None:
        centred(canvas, 790, "The annual report", font, size)
        if x is None:
            centred(canvas, 790 - gap, "Scope", font, below)
        else:
            column(canvas, x, 790 - gap, ["Scope"], font, below)
        column(canvas, 72, 730, [SENTENCE, SENTENCE])

    assert [block.text for block in blocks(draw) if block.kind == "heading"] == ["The annual report", "Scope"]


def test_a_numbered_heading_follows_its_chapter() -> None:
    def draw(canvas: Any) -> None:
        column(canvas, 72, 790, ["Chapter 1", "1.1 Introduction to the subject"], BOLD, 14, 18)
        column(canvas, 72, 740, [SENTENCE, SENTENCE])

    assert [block.text for block in blocks(draw) if block.kind == "heading"] == ["Chapter 1", "1.1 Introduction to the subject"]


def test_lines_of_one_wrapped_title_stay_together() -> None:
    def draw(canvas: Any) -> None:
        centred(canvas, 800, "The annual report of the company", BOLD, 16)
        centred(canvas, 781, "and its branches", BOLD, 16)
        column(canvas, 72, 740, ["A flush heading that the company and each of its branches set in", "two lines"], BOLD, 12, 15)
        column(canvas, 72, 712, [SENTENCE, SENTENCE])
        column(canvas, 72, 670, ["10.2.3"], BOLD, 12)
        column(canvas, 120, 670, ["A heading that hangs from its number and runs", "into a second line"], BOLD, 12, 15)
        column(canvas, 72, 630, [SENTENCE, SENTENCE])
        column(canvas, 72, 590, ["What was seen in the course of the first long period of", "12 months"], BOLD, 14, 17)
        column(canvas, 72, 550, [SENTENCE, SENTENCE])

    assert [block.text for block in blocks(draw) if block.kind == "heading"] == [
        "The annual report of the company and its branches",
        "A flush heading that the company and each of its branches set in two lines",
        "10.2.3 A heading that hangs from its number and runs into a second line",
        "What was seen in the course of the first long period of 12 months",
    ]


@pytest.mark.parametrize("texts", [("3.2. Duties", "11"), ("2", "CONTENTS")])
def test_a_title_and_a_page_number_apart_are_no_heading(texts: tuple[str, str]) -> None:
    def draw(canvas: Any) -> None:
        column(canvas, 72, 790, [texts[0]], BOLD, 12)
        column(canvas, 400, 790, [texts[1]], BOLD, 12)
        column(canvas, 72, 730, [SENTENCE, SENTENCE])

    assert [block.kind for block in blocks(draw)] == ["paragraph", "paragraph"]


# -- lists -------------------------------------------------------------------------------------------------------------

ITEM = ["The item begins here and is long enough to wrap into a line", "that is the second one"]


def items(draw: Callable[[Any], None]) -> list[tuple[str, bool]]:
    return [(block.metadata.get("number", ""), block.metadata["ordered"]) for block in blocks(draw) if block.kind == "list_item"]


@pytest.mark.parametrize("gap", [16, 24, 34])
@pytest.mark.parametrize(
    "labels",
    [["1", "2", "3"], ["8", "9", "10"], ["1.1", "1.2"], ["1.2.1", "1.2.2"], ["[1]", "[2]"], ["(a)", "(b)"], ["a)", "b)"], ["i.", "ii."]],
)
def test_labels_in_a_column_of_their_own_begin_items(labels: list[str], gap: int) -> None:
    gap += 3 * len(labels[0])

    def draw(canvas: Any) -> None:
        column(canvas, 72, 790, [SENTENCE, "that it can be found:"])
        for at, label in enumerate(labels):
            column(canvas, 72, 750 - 24 * at, [label])
            column(canvas, 72 + gap, 750 - 24 * at, ITEM)
        column(canvas, 72, 740 - 24 * len(labels), [SENTENCE, SENTENCE])

    found = blocks(draw)
    assert [block.kind for block in found] == ["paragraph"] + ["list_item"] * len(labels) + ["paragraph"]
    assert [block.text for block in found[1:-1]] == [f"{label} {' '.join(ITEM)}" for label in labels]
    assert items(draw) == [(label, True) for label in labels]


@pytest.mark.parametrize("labels", [["(a)", "(b)", "(c)"], ["i.", "ii.", "iii.", "iv."], ["A)", "B)"], ["9.", "10.", "11."], ["h.", "i."]])
def test_items_of_one_length_are_apart(labels: list[str]) -> None:
    """Nothing on the page is wider than the items, so that no line looks as if it had ended early."""
    lines = [f"{label} open the valve by hand" for label in labels]
    assert items(lambda canvas: column(canvas, 72, 700, lines)) == [(label, True) for label in labels]


@pytest.mark.parametrize(
    ("lines", "labels"),
    [
        (["1 Open the valve", "2 Close the valve", "3 Go home"], ["1", "2", "3"]),
        (["1.1 Open the valve", "1.2 Close the valve", "1.2.1 Not the other one", "2.1 Go home"], ["1.1", "1.2", "1.2.1", "2.1"]),
        (["1.Open the valve", "2.Close the valve"], ["1.", "2."]),
        (["(a)open the valve", "(b)close the valve"], ["(a)", "(b)"]),
        (["A. Open the valve", "B. Close the valve"], ["A.", "B."]),
        (["J. Open the valve", "K. Close the valve"], ["J.", "K."]),
        (["•Open the valve", "•Close the valve"], ["", ""]),
        (["–open the valve", "–close the valve"], ["", ""]),
    ],
)
def test_labels_close_to_their_text_begin_items(lines: list[str], labels: list[str]) -> None:
    def draw(canvas: Any) -> None:
        column(canvas, 72, 790, [SENTENCE, "that it can be found:", *lines], leading=13)

    assert [number for number, _ in items(draw)] == labels
    texts = [block.text for block in blocks(draw) if block.kind == "list_item"]
    assert texts == [line if label else line[1:] for line, label in zip(lines, labels, strict=True)]


@pytest.mark.parametrize(
    "lines",
    [
        # the sentence goes on with a number
        [SENTENCE, SENTENCE, "3 valves were broken in the course of the week that followed it, and", "4 pumps too."],
        [SENTENCE, "1 valve was broken in the course of the long week that followed, and", "2 pumps too, so that it had to end there."],
        # nothing hangs from the number
        ["1 pump was repaired in the week that followed, and it has been", "running ever since.", "2 valves were broken but not",
         "replaced."],
        ["A. Smith wrote it, and he wrote it in the week that followed upon", "the flood."],
        ["1 valve was broken."],
        ["1990 was dry.", "1991 was wet."],
        ["1.5 million were spent.", "2.5 million were saved."],
    ],
)  # fmt: skip
def test_a_text_that_begins_with_a_number_is_no_list(lines: list[str]) -> None:
    assert items(lambda canvas: column(canvas, 72, 790, lines)) == []


def test_a_numbered_table_with_a_header_is_no_list() -> None:
    def draw(canvas: Any) -> None:
        for at, (number, text) in enumerate([("No", "Part"), ("1", "Pump"), ("2", "Valve"), ("3", "Seal")]):
            column(canvas, 72, 790 - 15 * at, [number])
            column(canvas, 110, 790 - 15 * at, [text])

    assert [block.kind for block in blocks(draw)] == ["table"]
