"""HTML pages: what is furniture and what is content, what is said of it, and what a page says of itself."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from document_files import kinds, parse_html_page, parse_markdown_page

from raydex.ir.parsed import ParsedFile
from raydex.ir.rows import Stamp, parse_tables
from raydex.jobs.settle import settle


def events(parsed: ParsedFile) -> dict[str, str]:
    return {event.name: event.message for event in parsed.events}


@pytest.mark.parametrize(
    ("page", "headings"),
    [
        ("<header><p>Site</p><h1>Title</h1></header><p>x", ["Title"]),
        ("<div role=banner><h1>Title</h1></div><h2>Part</h2>", ["Title", "Part"]),
        ("<header><hgroup><h1>Title</h1><h2>Subtitle</h2></hgroup></header><h3>Part</h3>", ["Title", "Subtitle", "Part"]),
        ("<header><h1>Site</h1></header><h1>Title</h1>", ["Title"]),
        ("<header><h2>Site</h2></header><h2>Part</h2><h3>Sub</h3>", ["Part", "Sub"]),
        ("<header><h3>Menu</h3></header><h2>Part</h2>", ["Part"]),
        ("<h1>Title</h1><header><h1>Site <header>x</header></h1></header>", ["Title", "Site"]),
        ("<header><h1 hidden>Site</h1></header>x", []),
        ("<header><h1>Title", ["Title"]),
    ],
)
def test_a_pages_own_header_keeps_its_headings_where_none_outside_stands_as_high(page: str, headings: list[str]) -> None:
    assert [text for kind, text in kinds(parse_html_page(page)) if kind == "heading"] == headings


def test_a_logo_goes_with_the_heading_that_holds_it() -> None:
    logo = "<header><h1><img src=l.png alt=Logo>Site</h1></header>"
    assert kinds(parse_html_page(f"{logo}<h1>Title</h1>")) == [("heading", "Title")]
    assert kinds(parse_html_page(f"{logo}x")) == [("heading", "Site"), ("image", "Logo"), ("paragraph", "x")]


@pytest.mark.parametrize("around", ["article", "section", "main", "div role=main"])
def test_headers_and_footers_inside_content_are_content(around: str) -> None:
    page = f"<{around}><header><h2>Part</h2><p>by A</p></header>x<nav>n</nav><footer>filed under B</footer></{around.split()[0]}><footer>f"
    assert [text for _, text in kinds(parse_html_page(page))] == ["Part", "by A", "x", "filed under B"]
    assert events(parse_html_page(page)) == {"furniture_left_out": "2 characters outside of the content are left out: nav 1, footer 1"}


def test_what_is_left_out_is_counted_in_one_event() -> None:
    page = (
        "<header>Site &amp; co<h1>S</h1></header><nav>one  two</nav><div role=navigation>three</div><aside>a<p hidden>b</p></aside>"
        "<h1>T</h1><p hidden>h</p><table><tr><td class=lineno>12<td>code</table><noscript>n</noscript><ruby>x<rp>(</rp><rt>y</ruby>"
    )
    assert events(parse_html_page(page)) == {
        "furniture_left_out": (
            "28 characters outside of the content are left out: nav 12, header 10, aside 2, line numbers 2, hidden 1, noscript 1"
        )
    }
    assert events(parse_html_page("<p>x</p><script>y</script>")) == {}
    assert events(parse_markdown_page("# T\n\n<nav>one</nav>\n")) == {
        "furniture_left_out": "3 characters outside of the content are left out: nav 3"
    }


def test_a_page_of_navigation_says_so() -> None:
    parsed = parse_html_page("<nav>one</nav><footer>two</footer>")
    assert parsed.document is not None and parsed.document.warnings == ["no_semantic_blocks"]
    assert events(parsed) == {
        "no_semantic_blocks": (
            "all text of the page (6 characters) is navigation, furniture or hidden: nav 3, footer 3; "
            "put what is content into main or article, or leave the page out"
        )
    }


def test_a_record_of_navigation_says_why_it_has_no_block() -> None:
    stamp = Stamp("rec_test", "hash", "print", "run", 1, datetime(2026, 1, 1, tzinfo=UTC))
    row: dict[str, Any] = {"attempts": 0}
    settle(row, parse_tables(parse_html_page("<nav>one</nav>"), stamp))
    assert (row["state"], row["missing"]) == ("degraded", ["blocks"]) and "nav 3" in row["error"]
    settle(row, parse_tables(parse_html_page("<nav>one</nav>two"), stamp))
    assert (row["state"], row["error"]) == ("indexed", "")


def test_quotes_are_marked_as_in_markdown() -> None:
    page = "<blockquote>a<p>b</p><blockquote><ul><li>c</li></ul></blockquote></blockquote><p>d</p><blockquote>e"
    assert [(block.text, block.metadata.get("quote")) for block in parse_html_page(page).blocks] == [
        ("a", 1),
        ("b", 1),
        ("c", 2),
        ("d", None),
        ("e", 1),
    ]
    assert [b.metadata.get("quote") for b in parse_markdown_page("> a\n\n<blockquote>b</blockquote>\n").blocks] == [1, 1]


@pytest.mark.parametrize(
    ("head", "facts"),
    [
        ("<html lang=de-AT><meta http-equiv=content-language content=en>", {"language": "de-AT"}),
        ("<html><meta http-equiv=Content-Language content=en>", {"language": "en"}),
        ("<html xml:lang='fr' lang=''>", {"language": "fr"}),
        ("<meta name=Author content=' A &amp; B '><meta name=author content=C>", {"creator": "A & B"}),
        ("<meta property='article:published_time' content='2024-05-01T10:00Z'>", {"created": "2024-05-01T10:00Z"}),
        ("<meta name='dcterms.modified' content='2024-06'>", {"modified": "2024-06"}),
        ("<meta name=viewport content=x><meta name=author>", {}),
    ],
)
def test_a_page_says_its_language_author_and_dates(head: str, facts: dict[str, str]) -> None:
    document = parse_html_page(f"{head}<p>x").document
    assert document is not None and document.metadata == facts
    assert document.language == ""  # that is the one of a program


@pytest.mark.parametrize(
    "page",
    [
        "<header><h1>x</h1>" * 20_000 + "y",
        "<blockquote>x" * 20_000,
        "<nav>x</nav>" * 50_000 + "y",
        "<meta name=author content=x>" * 50_000 + "y",
    ],
)
def test_hostile_furniture_takes_time_by_its_size(page: str) -> None:
    begin = time.process_time()
    assert parse_html_page(page).rejects == []
    assert time.process_time() - begin < 10
