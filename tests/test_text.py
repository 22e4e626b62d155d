"""Plain text: blocks are exact slices, whatever the line ends and however long the lines; underlined lines are headings."""

from __future__ import annotations

import re
from time import perf_counter

import pytest
from document_files import kinds, parse_bytes, parse_plain, sources
from hypothesis import given
from hypothesis import strategies as st

from raydex.kernels.detect import detect_media_type
from raydex.kernels.limits import Limits


def test_paragraphs_between_blank_lines() -> None:
    text = "\n  \n  one\ntwo\n\n\t \nthree  \r\n\r\nfour\n\n\n"
    parsed = parse_plain(text, path="dir/notes.txt")
    assert kinds(parsed) == [("paragraph", "  one\ntwo"), ("paragraph", "three  "), ("paragraph", "four")]
    assert [block.locator.line for block in parsed.blocks] == [(3, 4), (7, 7), (9, 9)]
    assert parsed.document is not None
    assert (parsed.document.title, parsed.document.parser, parsed.document.block_count) == ("notes.txt", "text", 3)
    assert all(block.section_path == [] for block in parsed.blocks)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_kind_of_line_end_makes_no_paragraphs(end: str) -> None:
    text = f"{end}one{end}two{end}{end} {end}three{end}four{end}"
    assert kinds(parse_plain(text)) == [("paragraph", f"one{end}two"), ("paragraph", f"three{end}four")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_underlined_lines_are_headings(end: str) -> None:
    lines = "=====\n Book\n=====\n\nPart one\n========\nWords.\n\nChapter\n-------\n\nMore.\n\n部品\n====\n\nEnd.\n".replace("\n", end)
    parsed = parse_plain(lines)
    found = [(block.kind, block.text, block.metadata.get("level"), block.section_path) for block in parsed.blocks]
    assert found == [
        ("heading", "Book", 1, ["Book"]),
        ("heading", "Part one", 2, ["Book", "Part one"]),
        ("paragraph", "Words.", None, ["Book", "Part one"]),
        ("heading", "Chapter", 3, ["Book", "Part one", "Chapter"]),
        ("paragraph", "More.", None, ["Book", "Part one", "Chapter"]),
        ("heading", "部品", 2, ["Book", "部品"]),
        ("paragraph", "End.", None, ["Book", "部品"]),
    ]
    assert sources(parsed, lines) == [block.text for block in parsed.blocks]
    assert parsed.document is not None and parsed.document.title == "Book"


@pytest.mark.parametrize(
    "text",
    [
        "Name  Qty\n---------\nbolt  4",
        "a | b\n-----\n1 | 2",
        "Short\n------------------------------",
        "1234\n----",
        "words before\nTitle\n=====",
        "-----\n=====",
        "=====\nTitle\n-----",
        "Hi\n--",
        "Title\n==-==",
        "Title\n=====x",
    ],
)
def test_lines_that_divide_are_no_headings(text: str) -> None:
    assert kinds(parse_plain(text)) == [("paragraph", text)]


@given(st.text("ab \t\n\r\f\u2028\u00a0é", max_size=80))
def test_slices_are_exact_and_nothing_is_lost(text: str) -> None:
    if not text:
        return
    parsed = parse_plain(text)
    assert sources(parsed, text) == [block.text for block in parsed.blocks]
    assert re.sub(r"\s", "", "".join(block.text for block in parsed.blocks)) == re.sub(r"\s", "", text)
    ends = [-1]
    for block in parsed.blocks:
        assert block.locator.char is not None and block.locator.char[0] > ends[-1]
        assert not re.search(r"(?>\r\n|\r|\n)[^\S\r\n]*(?:\r\n|\r|\n)", block.text)
        ends.append(block.locator.char[1])


@given(st.binary(min_size=1, max_size=300))
def test_any_bytes_give_blocks_or_a_reject(data: bytes) -> None:
    parsed = parse_plain(data)
    assert (parsed.document is None) == bool(parsed.rejects)
    for block in parsed.blocks:
        block.text.encode("utf-8")
        assert "\x00" not in block.text
    assert parse_plain(data) == parsed


@given(st.lists(st.sampled_from(["=", "---", "====", "ab", "Title", " x", "", "é~"]), max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
def test_headings_cost_no_word(lines: list[str], end: str) -> None:
    text = end.join(lines) + "."
    parsed = parse_plain(text)
    assert sources(parsed, text) == [block.text for block in parsed.blocks]
    assert re.sub(r"[\s=-]", "", "".join(block.text for block in parsed.blocks)) == re.sub(r"[\s=-]", "", text)


def test_lines_of_signs_take_linear_time() -> None:
    for text in ("=" * 5_000_000, "x\n" + "=" * 5_000_000, "ab\n===x\n\n" * 20_000, " " * 5_000_000 + "=\n", "===" + " " * 5_000_000 + "x"):
        started = perf_counter()
        parse_plain(text)
        assert perf_counter() - started < 5


def test_one_long_line_is_one_paragraph() -> None:
    parsed = parse_plain(b"x" * 50_000_000)
    assert [block.locator.char for block in parsed.blocks] == [(0, 50_000_000)]
    assert parsed.rejects == []


def test_more_text_than_allowed_is_a_typed_reject() -> None:
    parsed = parse_plain("x" * 101, limits=Limits(text_bytes=100))
    assert [reject.reject_class for reject in parsed.rejects] == ["text_too_long"]


def test_more_paragraphs_than_allowed_are_a_typed_reject() -> None:
    parsed = parse_plain("x\n\n" * 50, limits=Limits(blocks=10))
    assert [reject.reject_class for reject in parsed.rejects] == ["too_many_blocks"]


def test_binary_named_as_text_is_refused() -> None:
    parsed = parse_plain(bytes(range(256)) * 4)
    assert [reject.reject_class for reject in parsed.rejects] == ["unsupported_media_type"]
    assert "binary" in parsed.rejects[0].error


def test_bidirectional_controls_are_kept_and_said() -> None:
    parsed = parse_plain("user\u202e\u2066 // admin")
    assert parsed.document is not None and parsed.document.warnings == ["bidi_controls"]
    assert parsed.blocks[0].text == "user\u202e\u2066 // admin"


@pytest.mark.parametrize("name", ["guide.rst", "guide.adoc", "guide.org", "plan.ics"])
def test_markup_without_a_parser_of_its_own_is_read_as_text(name: str) -> None:
    data = b"Title\n=====\n\nWords.\n"
    parsed = parse_bytes(data, detect_media_type(data, name), name)
    assert parsed.document is not None and parsed.document.parser == "text"
    assert [block.text for block in parsed.blocks][-1] == "Words."
