"""Pieces tile the text, keep their limits and end where a sentence, line or word does."""

from __future__ import annotations

from itertools import pairwise

import pytest
from chunk_laws import TEXTS
from hypothesis import given
from hypothesis import strategies as st

from raydex.ir.locator import LineIndex
from raydex.kernels import split as module
from raydex.kernels.split import count_line_ends, line_ends, overlaps, paragraph_ends, sentence_ends, split
from raydex.kernels.summary import derive_summary, strip_comment
from raydex.kernels.tokens import load_tokenizer

TOKENIZER = load_tokenizer()
LEVELS = [(), (sentence_ends,), (sentence_ends, line_ends), (paragraph_ends, line_ends, sentence_ends)]


def sentences(text: str) -> list[str]:
    bounds = [0, *sentence_ends(text), len(text)]
    return [text[a:b] for a, b in pairwise(bounds) if b > a]


@given(TEXTS, st.sampled_from([3, 5, 20, 100]), st.sampled_from([24, 60, 400]), st.sampled_from(LEVELS), st.none() | st.integers(-3, 3))
def test_pieces_tile_and_keep_their_limits(text, limit, max_chars, levels, first) -> None:
    pieces = split(text, limit, TOKENIZER, levels, max_chars=max_chars, first=first)
    at = 0
    for k, piece in enumerate(pieces):
        assert piece.start == at
        assert piece.end > piece.start or (k == 0 and first is not None)
        at = piece.end
        shown = text[piece.start : piece.end]
        assert piece.tokens == TOKENIZER.count(shown)
        assert piece.tokens <= (limit if k or first is None else max(0, first))
        assert len(shown) <= max_chars
    assert at == len(text)


@given(TEXTS, st.sampled_from([80, 200, 1000]), st.sampled_from([4, 30]))
def test_windows_change_no_law(text, window, limit) -> None:
    before = module.WINDOW_CHARS
    module.WINDOW_CHARS = window
    try:
        pieces = split(text * 3, limit, TOKENIZER, (sentence_ends,), max_chars=window // 2)
    finally:
        module.WINDOW_CHARS = before
    assert [p.start for p in pieces[1:]] == [p.end for p in pieces[:-1]]
    assert sum(p.end - p.start for p in pieces) == len(text) * 3
    assert all(p.tokens <= limit and p.tokens == TOKENIZER.count((text * 3)[p.start : p.end]) for p in pieces)


@given(TEXTS, st.sampled_from([3, 8]))
def test_overlap_stays_inside_the_piece_before(text, overlap) -> None:
    pieces = split(text, 20, TOKENIZER)
    shown = overlaps(text, pieces, overlap, TOKENIZER)
    starts = [piece.start - chars for piece, (chars, _) in zip(pieces, shown, strict=True)]
    assert starts == sorted(set(starts))
    for piece, (chars, tokens) in zip(pieces, shown, strict=True):
        assert tokens <= overlap
        assert TOKENIZER.count(text[piece.start - chars : piece.end]) == piece.tokens + tokens


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two. Three.", 3),
        ("It is v1.2 or 3.14 here. Next.", 2),
        ("See e.g. Fig. 3 and Dr. Who. Then more.", 2),
        ("He met J. R. Smith of the U.S. Army. Done.", 2),
        ("Wait... what? Yes! Fine.", 3),
        ("Use a.py and www.x.org. Then go.", 2),
        ("No. 5 is on p. 7. Next.", 2),
        ("He said no. Then he left.", 2),
        ("1. First point. Second.\n2. Third.", 3),
        ("In 2023. Then.", 2),
        ("(It works.) Then “that.” Last.", 3),
        ("这是第一句。这是第二句！第三句？", 3),
        ("他说：“好。”然后走了。", 2),
        ("A line\n\nAnother line", 2),
    ],
)
def test_sentences(text: str, count: int) -> None:
    assert len(sentences(text)) == count
    assert "".join(sentences(text)) == text


def test_a_piece_ends_with_a_sentence_where_one_fits() -> None:
    text = "The first sentence is here. The second one follows it. The third is last."
    pieces = split(text, 13, TOKENIZER)
    assert [text[p.start : p.end] for p in pieces] == ["The first sentence is here. The second one follows it. ", "The third is last."]


def test_a_word_is_cut_only_when_it_alone_is_too_long() -> None:
    text = "short words " * 5 + "pneumonoultramicroscopicsilicovolcanoconiosis " + "more words " * 3
    for piece in split(text, 6, TOKENIZER):
        assert piece.end == len(text) or text[piece.end - 1].isspace() or "pneumono" in text[piece.start - 45 : piece.end]
    assert any("pneumono" in text[p.start : p.end] and not text[p.end - 1].isspace() for p in split(text, 6, TOKENIZER))


def test_a_small_last_piece_takes_from_the_one_before() -> None:
    text = "Ten words are in this one sentence of the text. " * 5 + "End."
    plain = split(text, 55, TOKENIZER)
    even = split(text, 55, TOKENIZER, least=16)
    assert plain[-1].tokens < 16 <= even[-1].tokens
    assert len(plain) == len(even)
    assert "".join(text[p.start : p.end] for p in even) == text


@given(st.text(st.sampled_from("a\r\n"), min_size=1, max_size=12), st.integers(0, 12))
def test_lines_before_a_place(text: str, at: int) -> None:
    at = min(at, len(text) - 1)
    assert count_line_ends(text, 0, at) + 1 == LineIndex(text).line_of(at)
    assert count_line_ends(text, 0, at) + count_line_ends(text, at, len(text) - 1) + 1 == LineIndex(text).line_of(len(text) - 1)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_end_of_two_characters_is_no_blank_line(end: str) -> None:
    text = f"one{end}two{end}{end}three{end} \t{end}four"
    assert [text[a:b] for a, b in pairwise([0, *paragraph_ends(text), len(text)])] == [
        f"one{end}two{end}{end}",
        f"three{end} \t{end}",
        "four",
    ]


# A scan that began anew at every sign of a run would take minutes over these.
RUNS = {
    "dots": "." * 300_000 + "x",
    "dots and closers": "." * 150_000 + "\"'" * 75_000 + "x",
    "closers": '."' * 150_000 + "x",
    "stops": "。" * 300_000 + "x",
    "blanks": "a" + " " * 300_000 + "b",
    "open lines": "\n" + " \t" * 150_000 + "x",
    "empty lines": "\r\n \t" * 75_000 + "x",
}


@pytest.mark.parametrize("name", RUNS)
def test_long_runs_of_signs_are_read_once(name: str) -> None:
    text = RUNS[name]
    for level in (sentence_ends, paragraph_ends, line_ends):
        ends = level(text)
        assert ends == sorted(set(ends)) and (not ends or ends[-1] <= len(text))


@pytest.mark.parametrize("name", RUNS)
def test_long_runs_of_signs_are_cut_into_pieces(name: str) -> None:
    pieces = split(RUNS[name], 254, TOKENIZER, (paragraph_ends, line_ends, sentence_ends))
    assert sum(piece.end - piece.start for piece in pieces) == len(RUNS[name])


@pytest.mark.parametrize("text", ["a" * 300_000, "a,b;" * 60_000, "中文" * 60_000, " " * 300_000, "word " * 60_000, "\n" * 100_000])
def test_one_huge_line(text: str) -> None:
    pieces = split(text, 254, TOKENIZER)
    assert sum(p.end - p.start for p in pieces) == len(text)
    assert all(p.tokens <= 254 and p.end - p.start <= 16_000 for p in pieces)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("", ""),
        ("One.", "One."),
        ("One. Two. Three.", "One. Two."),
        ("第一句。第二句。第三句。", "第一句。第二句。"),
        ("Version 1.2 is out. See Fig. 3. More.", "Version 1.2 is out. See Fig. 3."),
        ("Is it? It is. It was. More.", "Is it? It is. It was."),
        ("Wrapped\nover lines. And  spaced. Not this.", "Wrapped over lines. And spaced."),
        ("no stop at all", "no stop at all"),
    ],
)
def test_summary(text: str, summary: str) -> None:
    assert derive_summary(text) == summary


def test_summary_is_bounded() -> None:
    assert len(derive_summary("word " * 5000)) <= 501
    assert derive_summary("word " * 5000).endswith("word…")
    assert len(derive_summary("字" * 5000)) <= 501


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("# one\n# two", "one\ntwo"),
        ("// one\n/// two", "one\ntwo"),
        ("/* one */", "one"),
        ("/**\n * Adds.\n * @param x it\n */", "Adds.\n@param x it"),
        ("    # indented", "indented"),
        ("/** one */", "one"),
        ("/**/", ""),
        ("/** one **/  ", "one"),
        ("/**\r\n * Adds.\r\n */", "Adds."),
        ("-- one", "one"),
        ("*bold* word", "bold* word"),
        ("a * b */ c", "a * b */ c"),
    ],
)
def test_comment_marks_are_taken_off(comment: str, words: str) -> None:
    assert strip_comment(comment) == words


@pytest.mark.parametrize("run", [" ", "*", "* ", "/*", "*/ ", "#", "-"])
def test_long_runs_in_a_comment_are_read_once(run: str) -> None:
    assert strip_comment("// a" + run * 500_000 + "b").endswith("b")
