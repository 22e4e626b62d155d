"""Reading order of PDF pages: bands of columns between what stands across them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from pdf_files import column, drawn, request

from raydex.kernels.pdf import parse_pdf

BOLD = "Helvetica-Bold"
WIDE = "This remark runs across all of the columns of the page, from the left margin to the right margin of it."
FILLING = "fills the measure of its column"
TWO = (50.0, 310.0)
THREE = (40.0, 220.0, 400.0)


def columns(canvas: Any, top: float, count: int, tag: str, at: tuple[float, ...] = TWO) -> None:
    for position, x in enumerate(at):
        words = FILLING if len(at) == 2 else "fills its column"
        column(canvas, x, top, [f"{tag}{position} line {line} {words}" for line in range(count)])


def centred(canvas: Any, y: float, text: str, size: float = 12) -> None:
    canvas.setFont(BOLD, size)
    canvas.drawCentredString(297.5, y, text)


def order(draw: Callable[[Any], None]) -> list[str]:
    """Tags of columns ("a0": first column of band a) and other texts, in reading order."""
    out: list[str] = []
    for block in parse_pdf(request(drawn(draw))).blocks:
        tags = re.findall(r"\b([a-z]\d) line", block.text)
        out += tags or [block.text or block.kind]
    return [text for at, text in enumerate(out) if not at or text != out[at - 1]]


@pytest.mark.parametrize("lines", [2, 3, 8])
def test_short_headings_across_part_two_columns(lines: int) -> None:
    def draw(canvas: Any) -> None:
        centred(canvas, 800, "A title across the columns", 18)
        columns(canvas, 760, lines, "a")
        centred(canvas, 640, "Results", 12)
        columns(canvas, 600, lines, "b")
        centred(canvas, 480, "A heading that is set over", 14)
        centred(canvas, 463, "two lines", 14)
        columns(canvas, 430, lines, "c")

    assert order(draw) == [
        "A title across the columns", "a0", "a1", "Results", "b0", "b1", "A heading that is set over two lines", "c0", "c1"
    ]  # fmt: skip


def test_a_centred_heading_parts_three_columns() -> None:
    def draw(canvas: Any) -> None:
        centred(canvas, 800, "A title across the columns", 18)
        columns(canvas, 760, 8, "a", THREE)
        centred(canvas, 640, "Results")
        columns(canvas, 610, 8, "b", THREE)

    assert order(draw) == ["A title across the columns", "a0", "a1", "a2", "Results", "b0", "b1", "b2"]


@pytest.mark.parametrize("missing", [0, 1])
def test_a_heading_at_the_left_margin_follows_balanced_columns(missing: int) -> None:
    """The right column may be a line shorter."""

    def draw(canvas: Any) -> None:
        column(canvas, 50, 750, [f"a0 line {line} {FILLING}" for line in range(8)])
        column(canvas, 310, 750, [f"a1 line {line} {FILLING}" for line in range(8 - missing)])
        column(canvas, 50, 630, ["Results"], BOLD, 12)
        columns(canvas, 610, 8, "b")
        column(canvas, 50, 490, ["Conclusion"], BOLD, 12)
        column(canvas, 50, 470, [WIDE])

    assert order(draw) == ["a0", "a1", "Results", "b0", "b1", "Conclusion", WIDE]


def test_a_heading_with_a_short_text_below_balanced_columns_ends_the_page() -> None:
    def draw(canvas: Any) -> None:
        columns(canvas, 750, 8, "a")
        column(canvas, 50, 630, ["Conclusion"], BOLD, 12)
        column(canvas, 50, 610, ["It holds."])

    assert order(draw) == ["a0", "a1", "Conclusion", "It holds."]


def test_headings_inside_columns_part_nothing() -> None:
    def both(canvas: Any) -> None:
        columns(canvas, 750, 8, "a")
        column(canvas, 50, 630, ["Left"], BOLD, 12)
        column(canvas, 310, 630, ["Right"], BOLD, 12)
        columns(canvas, 610, 8, "b")

    def one(canvas: Any) -> None:
        column(canvas, 50, 750, [f"a0 line {line} {FILLING}" for line in range(8)])
        column(canvas, 50, 630, ["Left"], BOLD, 12)
        column(canvas, 50, 610, [f"b0 line {line} {FILLING}" for line in range(8)])
        column(canvas, 310, 750, [f"a1 line {line} {FILLING}" for line in range(20)])

    def longer(canvas: Any) -> None:
        column(canvas, 50, 750, [f"a0 line {line} {FILLING}" for line in range(8)])
        column(canvas, 50, 630, ["Left"], BOLD, 12)
        column(canvas, 50, 610, [f"b0 line {line} {FILLING}" for line in range(8)])
        column(canvas, 310, 750, [f"a1 line {line} {FILLING}" for line in range(5)])

    assert order(both) == ["a0", "Left", "b0", "a1", "Right", "b1"]
    assert order(one) == order(longer) == ["a0", "Left", "b0", "a1"]


@pytest.mark.parametrize("xs", [(60, 190, 320, 450), (60, 270, 450)])
def test_a_table_across_parts_the_columns_and_stays_whole(xs: tuple[int, ...]) -> None:
    def draw(canvas: Any) -> None:
        columns(canvas, 750, 8, "a")
        for row in range(4):
            for at, x in enumerate(xs):
                column(canvas, x, 630 - 14 * row, [f"cell {row}{at}"])
        columns(canvas, 550, 8, "b")

    table = "\n".join(" | ".join(f"cell {row}{at}" for at in range(len(xs))) for row in range(4))
    assert order(draw) == ["a0", "a1", table, "b0", "b1"]


def test_a_table_inside_one_column_stays_in_it() -> None:
    def draw(canvas: Any) -> None:
        column(canvas, 50, 750, [f"a0 line {line} {FILLING}" for line in range(8)])
        for row in range(4):
            for at, x in enumerate((50, 110, 170)):
                column(canvas, x, 640 - 12 * row, [f"k {row}{at}"])
        column(canvas, 310, 750, [f"a1 line {line} {FILLING}" for line in range(16)])

    assert order(draw) == ["a0", "\n".join(" | ".join(f"k {row}{at}" for at in range(3)) for row in range(4)), "a1"]


@pytest.mark.parametrize(("box", "parts"), [((60, 540, 480, 100), True), ((60, 540, 140, 100), False)])
def test_a_picture_across_parts_the_columns(box: tuple[int, ...], parts: bool) -> None:
    from PIL import Image
    from reportlab.lib.utils import ImageReader

    def draw(canvas: Any) -> None:
        columns(canvas, 750, 8, "a")
        canvas.drawImage(ImageReader(Image.new("RGB", (40, 20), (200, 0, 0))), *box)
        columns(canvas, 520, 8, "b")

    assert order(draw) == (["a0", "a1", "image", "b0", "b1"] if parts else ["a0", "image", "b0", "a1", "b1"])
