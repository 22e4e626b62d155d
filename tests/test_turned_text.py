"""Text that is raised, lowered or struck out: what it becomes in pages, Markdown and Word documents."""

from __future__ import annotations

import time
from unicodedata import normalize

import pytest
from document_files import parse_html_page, parse_markdown_page
from hypothesis import given
from hypothesis import strategies as st

from raydex.kernels.raised_text import lower_text, mark_reference, raise_text

TURNED = [
    ("x<sup>2</sup>", "x²"),
    ("H<sub>2</sub>O", "H₂O"),
    ("10<sup>-3</sup> m", "10⁻³ m"),
    ("2<sup>n</sup>", "2ⁿ"),
    ("x<sub>i</sub>", "xᵢ"),
    ("v<sub>max</sub>", "v_max"),
    ("e<sup>x</sup>", "e^x"),
    ("x<sup>a+b</sup>y", "x^(a+b)y"),
    ("the 4<sup>th</sup>", "the 4th"),
    ("Foo<sup>TM</sup>", "Foo™"),
    ("price<sup>*</sup>", "price*"),
    ("<sup>1</sup> a note", "¹ a note"),
    ("<sup>a</sup> note", "a note"),
    ('fact<sup><a href="#n1">1</a></sup>.', "fact[1]."),
    ('fact<a href="#n1"><sup>1</sup></a>.', "fact[1]."),
    ('fact<sup><a href="#n1">[1]</a></sup>.', "fact[1]."),
    ("x<sup>y<sup>2</sup></sup>", "x^y2"),
    ("price <del>10</del><ins>20</ins>", "price 10 20"),
    ("<s>$50</s>$30", "$50 $30"),
    ("<del>old</del>new", "old new"),
    ("<del>old</del>, new (<s>a</s>)", "old, new (a)"),
    ("colo<ins>u</ins>r", "colour"),
]


@pytest.mark.parametrize(("source", "text"), TURNED)
def test_turned_text_of_pages(source: str, text: str) -> None:
    assert [block.text for block in parse_html_page(f"<p>{source}</p>").blocks] == [text]
    (table,) = parse_html_page(f"<table><tr><td>{source}<td>k</table>").blocks
    assert table.metadata["rows"][0][0]["text"] == text
    (heading,) = parse_html_page(f"<h1>{source}</h1>").blocks
    assert heading.text == text


@pytest.mark.parametrize(("source", "text"), [pair for pair in TURNED if "y<sup>" not in pair[0]])
def test_turned_text_of_markdown(source: str, text: str) -> None:
    assert [block.text for block in parse_markdown_page(f"Say {source}\n").blocks] == [f"Say {text}"]


def test_struck_text_of_markdown() -> None:
    assert [block.text for block in parse_markdown_page("~~10~~20, ~~30~~.\n").blocks] == ["10 20, 30."]


def test_links_have_the_text_that_is_shown() -> None:
    for parsed in (parse_html_page('<a href="u">x<sup>2</sup> <s>1</s>2</a>'), parse_markdown_page("[x<sup>2</sup> ~~1~~2](u)")):
        assert [(link.href, link.text) for link in parsed.blocks[0].links] == [("u", "x² 1 2")]


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("<pre>x<sup>2</sup><del>a</del>b</pre>", ["x2ab"]),
        ("x<sup hidden>1</sup>2", ["x2"]),
        ("x<sup>a<p>b</sup>c", ["xa", "bc"]),
        ("x<sup>2</p>y", ["x2", "y"]),
        ("x<sup>a<br>b</sup>", ["xa\nb"]),
        ("x<sup></sup>2</sup>3</sub>4", ["x234"]),
        ("a<sup>" + "long " * 20 + "</sup>", [("a" + "long " * 20).strip()]),
    ],
)
def test_what_is_not_turned(page: str, texts: list[str]) -> None:
    assert [block.text for block in parse_html_page(page).blocks] == texts


@given(st.text("xn2+() *a[é", max_size=12), st.sampled_from(["", "x", "2", " "]))
def test_letters_and_digits_are_kept(text: str, before: str) -> None:
    for turned in (raise_text(text, before), lower_text(text, before), mark_reference(text)):
        assert _alphanumerics(turned) == _alphanumerics(text)


def _alphanumerics(text: str) -> list[str]:
    return [sign for sign in normalize("NFKC", text) if sign.isalnum()]


@pytest.mark.parametrize(
    "page", ["<sup>x" * 50_000, "x" + "<sup>y</sup>" * 50_000, "<sup>x" * 20_000 + "</sup>" * 20_000, "<del>x" * 50_000]
)
def test_hostile_turned_text_takes_time_by_its_size(page: str) -> None:
    begin = time.process_time()
    assert parse_html_page(page).rejects == []
    assert time.process_time() - begin < 10
