"""Recognised lines and regions → blocks in reading order."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from raydex.kernels.layout import REGION_KINDS, Region
from raydex.kernels.ocr import OcrLine, OcrPage
from raydex.kernels.page_text import TextBlock
from raydex.kernels.reading_order import cut, order_page, rank_headings

HEIGHT = 16.0
ADVANCE = 8.0  # pixels a character


def line(text: str, x: float, y: float, height: float = HEIGHT, confidence: float = 0.9) -> OcrLine:
    return OcrLine(text, confidence, (x, y, x + ADVANCE * len(text) * height / HEIGHT, y + height))


def page(*lines: OcrLine) -> OcrPage:
    return OcrPage(1000, 1400, lines)


def shown(blocks: list[TextBlock]) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in blocks]


def column(word: str, x: float, y: float, count: int) -> list[OcrLine]:
    return [line(f"{word}{at} set in a column of running", x, y + 20 * at) for at in range(count)]


def test_two_columns_below_a_title() -> None:
    lines = [
        *column("right", 520, 200, 5),
        line("A title over both columns of the page", 200, 100, 30),
        *column("left", 60, 205, 5),
    ]
    blocks = order_page(page(*lines)).blocks
    assert [block.kind for block in blocks] == ["heading", "paragraph", "paragraph"]
    assert blocks[1].text.startswith("left0 ") and "left4" in blocks[1].text
    assert blocks[2].text.startswith("right0 ") and "right4" in blocks[2].text


NARROW = (
    ("The harbour was quiet", "in the early morning", "when the first boats", "came back. Their crew", "had worked all night."),
    ("Engines of this class", "are inspected after", "every second voyage", "by a mechanic who", "signs each sheet."),
    ("Buyers waited on the", "quay with lamps and", "small notebooks. The", "price of each box was", "called out once."),
)


def narrow(count: int) -> list[OcrLine]:
    title = line("News of the harbours and of their engines", 60, 40, 30)
    return [
        title,
        *(line(text, 60 + 260 * at, 100 + 20 * row) for row in range(5) for at, text in enumerate(one[row] for one in NARROW[:count])),
    ]


def test_narrow_columns_on_the_same_heights_are_no_table() -> None:
    wrong = [Region("text", (90, 95, 560, 205), 0.9), Region("text", (50, 95, 240, 205), 0.8), Region("table", (50, 95, 780, 205), 0.95)]
    for count in (2, 3):
        for regions in ([], wrong[:1], wrong[:2], wrong[2:]):
            assert shown(order_page(page(*narrow(count)), regions).blocks) == [
                ("heading", "News of the harbours and of their engines"),
                *(("paragraph", " ".join(texts)) for texts in NARROW[:count]),
            ], (count, regions)


def test_a_table_of_sentences_is_one_where_the_layout_engine_is_sure() -> None:
    cells = [(f"Pump number {at} was checked last week", f"Valve number {at} has been replaced now") for at in range(5)]
    lines = [line(text, x, 100 + 22 * row) for row, pair in enumerate(cells) for text, x in zip(pair, (60, 520), strict=True)]
    for score, kinds in ((0.9, ["table"]), (0.6, ["paragraph", "paragraph"])):
        blocks = order_page(page(*lines), [Region("table", (50, 95, 900, 220), score)]).blocks
        assert [block.kind for block in blocks] == kinds
    entries = [
        line(text, x, 100 + 22 * row) for row in range(5) for text, x in (("oil filter for pumps", 60), ("made of steel by us", 400))
    ]
    assert [block.kind for block in order_page(page(*entries), [Region("table", (50, 95, 900, 220), 0.6)]).blocks] == ["table"]


def test_bands_of_columns_are_read_one_after_the_other() -> None:
    across = "Here a line runs over the whole width of the page and parts what is above from what is below, wholly."
    lines = [
        *column("a", 60, 100, 4),
        *column("b", 520, 100, 4),
        line(across, 60, 300),
        *column("c", 60, 400, 4),
        *column("d", 520, 400, 4),
    ]
    text = " ".join(block.text for block in order_page(page(*lines)).blocks)
    assert [text.index(key) for key in ("a0", "a3", "b0", "b3", "Here", "c0", "c3", "d0", "d3")] == sorted(
        text.index(key) for key in ("a0", "a3", "b0", "b3", "Here", "c0", "c3", "d0", "d3")
    )


def test_regions_side_by_side_are_columns() -> None:
    lines = [line("one", 60, 100), line("two", 60, 120), line("three", 520, 100), line("four", 520, 120)]
    regions = [Region("text", (510, 90, 900, 140), 0.9), Region("text", (50, 90, 450, 140), 0.8)]
    assert [block.text for block in order_page(page(*lines), regions).blocks] == ["one two", "three four"]


def test_pairs_of_a_form_are_read_by_row() -> None:
    lines = [line("Name: Ada", 60, 100), line("Born: 1815", 500, 101), line("City: London", 60, 124), line("Code: 7", 500, 123)]
    text = " ".join(block.text for block in order_page(page(*lines)).blocks)
    assert text == "Name: Ada Born: 1815 City: London Code: 7"


def test_words_of_one_line_join_and_hyphens_go() -> None:
    lines = [line("The engine found this line in two", 60, 100), line("parts and then exam-", 340, 101), line("ples of it.", 60, 120)]
    (block,) = order_page(page(*lines)).blocks
    assert (block.kind, block.text) == ("paragraph", "The engine found this line in two parts and then examples of it.")
    assert block.box == (60, 100, 500, 136) and (block.confidence, block.least_confidence) == (0.9, 0.9)


def test_confidence_is_weighted_by_characters() -> None:
    (block,) = order_page(page(line("aaaaaaaaa", 60, 100, confidence=1.0), line("b", 140, 100, confidence=0.5))).blocks
    assert (block.confidence, block.least_confidence) == (0.95, 0.5)


def test_lists() -> None:
    lines = [
        line("1. First thing to do is long enough to need another line", 60, 100),
        line("which goes on here", 84, 120),
        line("• inner point", 100, 140),
        line("•second", 100, 160),
        line("2. Last", 60, 180),
        line("3.5 litres are no item", 60, 240),
    ]
    blocks = order_page(page(*lines)).blocks
    assert [(b.kind, b.level, b.ordered, b.number, b.text) for b in blocks] == [
        ("list_item", 0, True, "1", "First thing to do is long enough to need another line which goes on here"),
        ("list_item", 1, False, "", "inner point"),
        ("list_item", 1, False, "", "second"),
        ("list_item", 0, True, "2", "Last"),
        ("paragraph", 0, False, "", "3.5 litres are no item"),
    ]


def test_headings_without_a_layout_engine() -> None:
    lines = [
        line("PATIENT INFORMATION", 60, 100),
        line("The patient is well and so is everybody else.", 60, 124),
        line("Large", 60, 200, 24),
    ]
    blocks = order_page(page(*lines)).blocks
    assert [block.kind for block in blocks] == ["heading", "paragraph", "heading"]
    shouting = [line(f"EVERYTHING IS IN CAPITALS {word}", 60, 100 + 20 * at) for at, word in enumerate(("HERE", "AND", "THERE"))]
    assert {block.kind for block in order_page(page(*shouting)).blocks} == {"paragraph"}


ENTRIES = ("Valve station north", "Pump house two", "Tank farm east")


def test_lines_that_are_no_one_heading() -> None:
    body = [line("Text of the page that is set below, in lines that go on.", 60, 400 + 20 * at) for at in range(4)]

    def headed(*lines: OcrLine) -> list[tuple[str, str]]:
        blocks = order_page(page(*lines, *body), [Region("title", (50, 90, 600, 300), 0.9)]).blocks
        return [item for item in shown(blocks) if not item[1].startswith("Text of")]

    apart = [line(text, 60, 100 + 50 * at) for at, text in enumerate(ENTRIES)]
    assert headed(*apart) == [("paragraph", text) for text in ENTRIES]
    close = [line(text, 60, 100 + 24 * at, 20) for at, text in enumerate(ENTRIES)]
    assert headed(*close) == [("heading", text) for text in ENTRIES]
    assert headed(line("Large", 60, 100, 40), line("Set smaller below it", 60, 145, 24)) == [
        ("heading", "Large"),
        ("heading", "Set smaller below it"),
    ]
    assert headed(line("This is a sentence which is taken", 60, 100), line("for a heading.", 60, 120)) == [
        ("paragraph", "This is a sentence which is taken for a heading.")
    ]
    assert headed(line("A heading that goes on in", 60, 100, 22), line("a second line", 60, 124, 22)) == [
        ("heading", "A heading that goes on in a second line")
    ]
    assert headed(*(line(text, 300 - 4 * len(text), 100 + 24 * at, 20) for at, text in enumerate(ENTRIES))) == [
        ("heading", " ".join(ENTRIES))
    ]


def test_entries_set_apart_stand_alone_and_loose_text_does_not() -> None:
    blocks = order_page(page(*(line(text, 60, 100 + 34 * at) for at, text in enumerate(ENTRIES)))).blocks
    assert shown(blocks) == [("paragraph", text) for text in ENTRIES]
    loose = order_page(page(*(line(text, 60, 100 + 34 * at) for at, text in enumerate(NARROW[0])))).blocks
    assert shown(loose) == [("paragraph", " ".join(NARROW[0]))]


def test_heading_levels_go_by_height_over_all_pages() -> None:
    one = order_page(page(line("Small", 60, 100, 20), line("body of the page", 60, 200)), [Region("title", (50, 95, 400, 125), 0.9)])
    two = order_page(page(line("Large", 60, 100, 40)), [Region("title", (50, 95, 400, 145), 0.9)])
    rank_headings([one, two])
    assert [(one.blocks[0].text, one.blocks[0].level), (two.blocks[0].text, two.blocks[0].level)] == [("Small", 2), ("Large", 1)]


TABLE = [
    ("Test", "Result", "Range", "Flag"),
    ("Glucose", "118", "70-100", "HIGH"),
    ("HDL", "48", ">40", ""),
    ("LDL", "142", "<100", "HIGH"),
]


def table_lines(y: float) -> list[OcrLine]:
    return [line(text, 60 + 200 * at, y + 22 * row) for row, cells in enumerate(TABLE) for at, text in enumerate(cells) if text]


def test_table_with_and_without_a_region() -> None:
    for regions in ([], [Region("table", (50, 95, 900, 190), 0.9)], [Region("figure", (50, 95, 700, 190), 0.9)]):
        blocks = order_page(
            page(line("Before it stands a line.", 60, 60), *table_lines(100), line("After it too.", 60, 240)), regions
        ).blocks
        assert [block.kind for block in blocks] == ["paragraph", "table", "paragraph"]
        rows = blocks[1].rows or []
        assert [tuple(cell["text"] for cell in row) for row in rows] == TABLE
        assert [cell["header"] for row in rows for cell in row] == [True] * 4 + [False] * 12


def test_cell_over_two_columns() -> None:
    lines = [line("a", 60, 100), line("wide cell over two columns", 220, 100)]
    lines += [line(text, x, y) for y in (122, 144) for text, x in (("a", 60), ("bb", 240), ("cc", 400))]
    (block,) = order_page(page(*lines), [Region("table", (50, 95, 900, 170), 0.9)]).blocks
    assert [[(cell["text"], cell["col_span"]) for cell in row] for row in block.rows or []][:2] == [
        [("a", 1), ("wide cell over two columns", 2)],
        [("a", 1), ("bb", 1), ("cc", 1)],
    ]


def test_furniture_is_apart_and_must_stand_at_the_edge() -> None:
    lines = [line("Running head", 60, 20), line("Chapter text goes here.", 60, 200), line("Page 3 of 9", 800, 1370)]
    regions = [Region("header", (55, 15, 300, 40), 0.9), Region("header", (55, 195, 300, 220), 0.9)]
    text = order_page(page(*lines), regions)
    assert shown(text.blocks) == [("paragraph", "Chapter text goes here.")]
    assert [(block.role, block.text) for block in text.furniture] == [("header", "Running head"), ("footer", "Page 3 of 9")]


def test_figures_and_captions() -> None:
    lines = [line("valve", 200, 300), line("Figure 1: A pump", 100, 520), line("Text below.", 60, 700)]
    regions = [Region("figure", (50, 100, 800, 500), 0.9), Region("caption", (90, 515, 400, 540), 0.9)]
    blocks = order_page(page(*lines), regions).blocks
    assert [(block.kind, block.role, block.text) for block in blocks] == [
        ("image", "", ""),
        ("paragraph", "figure_text", "valve"),
        ("paragraph", "figure_caption", "Figure 1: A pump"),
        ("paragraph", "", "Text below."),
    ]


def test_caption_above_a_table() -> None:
    lines = [line("Table 2: values", 60, 70), *table_lines(100)]
    regions = [Region("table", (50, 95, 900, 190), 0.9), Region("caption", (50, 65, 400, 90), 0.9)]
    assert [(block.kind, block.role) for block in order_page(page(*lines), regions).blocks] == [
        ("paragraph", "table_caption"),
        ("table", ""),
    ]


def test_nothing_gives_nothing() -> None:
    assert order_page(page()).blocks == [] and order_page(page(), [Region("text", (0, 0, 10, 10), 0.9)]).blocks == []
    assert cut([], lambda left, right: True, 1.0) == []


boxes = st.tuples(st.integers(0, 900), st.integers(0, 1300), st.integers(1, 400), st.integers(1, 90)).map(
    lambda b: (float(b[0]), float(b[1]), float(b[0] + b[2]), float(b[1] + b[3]))
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(boxes, st.sampled_from(("word", "A B C", "• x", "12.", "TITLE HERE", "-", "Page 4"))), max_size=40),
    st.lists(st.tuples(boxes, st.sampled_from(REGION_KINDS)), max_size=8),
)
def test_every_line_is_in_exactly_one_block(
    lines: list[tuple[tuple[float, ...], str]], regions: list[tuple[tuple[float, ...], str]]
) -> None:
    given_lines = [OcrLine(f"{text}{at}", 0.9, box) for at, (box, text) in enumerate(lines)]  # type: ignore[arg-type]
    found = order_page(page(*given_lines), [Region(kind, box, 0.9) for box, kind in regions])  # type: ignore[arg-type]
    seen = Counter(id(item) for block in (*found.blocks, *found.furniture) for item in block.lines)
    assert seen == Counter(id(item) for item in given_lines)
    assert found == order_page(page(*given_lines), [Region(kind, box, 0.9) for box, kind in regions])  # type: ignore[arg-type]
