"""Markdown: blocks, exact places, front matter, embedded HTML, footnotes, hostile files."""

from __future__ import annotations

import re

import pytest
from document_files import PAGES, kinds, parse_markdown_page, plain, sources
from golden import assert_golden
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_cases import case

from raydex.kernels.limits import Limits
from raydex.kernels.markdown_inline import image_spans


def test_page_golden() -> None:
    assert_golden("markdown_notes", plain(parse_markdown_page((PAGES / "notes.md").read_bytes(), path="notes.md")))


FENCES = """# Setup

~~~sh
# plain remark
make all
~~~

- step one

    ```py
    # second remark
    run()
    ```

- step two

````md
```
# inner, still code
```
## still code
````

## Usage

Text under usage.
"""


def check_fences(data: bytes | str) -> None:
    parsed = parse_markdown_page(data)
    assert [(b.text, b.metadata["level"]) for b in parsed.blocks if b.kind == "heading"] == [("Setup", 1), ("Usage", 2)]
    code = [block for block in parsed.blocks if block.kind == "code"]
    assert [(block.metadata["language"], block.text) for block in code] == [
        ("sh", "# plain remark\nmake all"),
        ("py", "# second remark\nrun()"),
        ("md", "```\n# inner, still code\n```\n## still code"),
    ]
    assert all(block.section_path == ["Setup"] for block in code)
    assert parsed.blocks[-1].section_path == ["Setup", "Usage"]
    order = [block.text for block in parsed.blocks]
    assert order.index("step one") < order.index(code[1].text) < order.index("step two")


def test_hash_lines_inside_fences_are_code() -> None:
    check_fences(FENCES)
    check_fences(FENCES.replace("\n", "\r\n"))


def test_case_b03() -> None:
    check_fences(case("b03-md-fences/guide.md").read_bytes())


BUILD = (
    "\ufeff# Build\r\n\r\nRun it.\r\n\r\n```make\r\nall:\r\n\tcc -o\u00a0app app.c\r\n```\r\n\r\n## 24/7 Support\r\n\r\nCall us.\r\n\r\n"
    "## Support\r\n\r\n### 24\r\n\r\nOther.\r\n"
)


def check_build(data: bytes | str) -> None:
    parsed = parse_markdown_page(data)
    assert kinds(parsed)[0] == ("heading", "Build")
    assert not any(block.text.startswith("\ufeff") for block in parsed.blocks)
    (code,) = (block for block in parsed.blocks if block.kind == "code")
    assert code.text == "all:\n\tcc -o\u00a0app app.c"
    by_text = {block.text: block for block in parsed.blocks}
    assert by_text["Call us."].section_path == ["Build", "24/7 Support"]
    assert by_text["Other."].section_path == ["Build", "Support", "24"]
    assert by_text["Call us."].locator.line == (12, 12)


def test_mark_crlf_tabs_and_slash() -> None:
    check_build(BUILD)


def test_case_b05() -> None:
    check_build(case("b05-md-bom-tab-slash/build.md").read_bytes())


def test_headings_of_both_kinds_and_links_by_reference() -> None:
    page = "Title\n=====\n\n## Sub *x* ##\n\nSee [the `page`][p] and <http://auto.example>.\n\n[p]: http://ref.example/a_b 'T'\n"
    parsed = parse_markdown_page(page)
    assert [(b.kind, b.text) for b in parsed.blocks] == [
        ("heading", "Title"),
        ("heading", "Sub x"),
        ("paragraph", "See the page and http://auto.example."),
    ]
    assert [(link.href, link.text) for link in parsed.blocks[2].links] == [
        ("http://ref.example/a_b", "the page"),
        ("http://auto.example", "http://auto.example"),
    ]
    assert parsed.document is not None and parsed.document.title == "Title"


@pytest.mark.parametrize(
    ("page", "language", "title"),
    [("---\ntitle: 'A: b'\ntags: [x]\n---\n# H\n", "yaml", "A: b"), ('+++\ntitle = "C"\n+++\n# H\n', "toml", "C")],
)
def test_front_matter_is_kept(page: str, language: str, title: str) -> None:
    parsed = parse_markdown_page(page)
    first = parsed.blocks[0]
    assert (first.kind, first.metadata["language"], first.metadata["front_matter"]) == ("code", language, True)
    assert parsed.document is not None and parsed.document.title == title
    assert parsed.document.metadata["front_matter"] == first.text
    assert kinds(parsed)[1:] == [("heading", "H")]
    assert sources(parsed, page)[1] == "# H"


@pytest.mark.parametrize(
    ("front", "language"), [("lang: de", "de"), ("title: x\nlanguage: 'fr-CA'", "fr-CA"), ("lang: [a]\nx: y", None), ("title: x", None)]
)
def test_the_language_of_the_front_matter(front: str, language: str | None) -> None:
    document = parse_markdown_page(f"---\n{front}\n---\n# H\n").document
    assert document is not None and document.metadata.get("language") == language


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ("title: A b  # a remark", "A b"),
        ("title: C# and #tags", "C# and"),
        ("title: 'it''s' # a remark", "it's"),
        ('title: "a \\"b\\" # c" # a remark', 'a "b" # c'),
        ("title: >-\n  A title\n  in two lines\ntags: x", "A title in two lines"),
        ("title: |  # a remark\n\n  A title\n\nx: y", "A title"),
        ("title: A title\n  that goes on\nx: y", "A title that goes on"),
        ('title: "A title\n  that goes on"\nx: y', "A title that goes on"),
        ("title:\n  'A title below'\n", "A title below"),
        ("title:\n  en: A\nx: y", "H"),
        ("title:\n  - A\n", "H"),
        ("title: # later", "H"),
        ("title: ~", "H"),
        ("title:", "H"),
        ("subtitle: A\nbook:\n  title: B", "H"),
        ('title: "never closed', "never closed"),
    ],
)
def test_titles_of_front_matter(front: str, title: str) -> None:
    parsed = parse_markdown_page(f"---\n{front}\n---\n# H\n")
    assert parsed.document is not None and parsed.document.title == title


@pytest.mark.parametrize("run", [" ", "\t", " #", "\\"])
def test_a_long_title_is_read_once(run: str) -> None:
    parsed = parse_markdown_page(f"---\ntitle: a{run * 300_000}b\n---\n# H\n")
    assert parsed.document is not None and parsed.document.title.startswith("a")
    parsed = parse_markdown_page(f"---\ntitle: '{run * 300_000}b\n---\n# H\n")
    assert parsed.document is not None and parsed.document.title.endswith("b") is (run != " #")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("a ![b](c) d ![e][f] ![g]", ["![b](c)", "![e][f]", "![g]"]),
        ("![a](b(c)d) ![a](b\\)c) ![a](b(\\))c)", ["![a](b(c)d)", "![a](b\\)c)", "![a](b(\\))c)"]),
        ('<img alt="a < b" src=c> <IMG src=d>', ['<img alt="a < b" src=c>', "<IMG src=d>"]),
        ("![a](b ![c](d)", ["![a]", "![c](d)"]),
        ("<img <img src=a>", ["<img src=a>"]),
    ],
)
def test_places_of_images(source: str, shown: list[str]) -> None:
    assert [source[a:b] for a, b in image_spans(source)] == shown


@pytest.mark.parametrize("unit", ["<img ", "![a](", "![a](\\)", "![a](\\)(", "![", "![a][", "![\\["])
def test_open_images_are_read_once(unit: str) -> None:
    assert len(image_spans(unit * 100_000)) <= 100_000


def test_a_rule_is_no_front_matter() -> None:
    assert kinds(parse_markdown_page("---\n\n# H\n\n---\n\ntext\n")) == [("heading", "H"), ("paragraph", "text")]


def test_lists_tables_quotes_and_tasks() -> None:
    page = "1. a\n   - [x] b\n   - [ ] c\n2. d\n\n   more\n\n> q\n>> r\n\n| k | v |\n|---|:-:|\n| 1 | `a\\|b` ![i](p.png) |\n"
    parsed = parse_markdown_page(page)
    assert kinds(parsed) == [
        ("list_item", "a"),
        ("list_item", "b"),
        ("list_item", "c"),
        ("list_item", "d"),
        ("paragraph", "more"),
        ("paragraph", "q"),
        ("paragraph", "r"),
        ("table", "k | v\n1 | a|b"),
        ("image", "i"),
    ]
    assert [(b.metadata["level"], b.metadata["ordered"], b.metadata.get("number")) for b in parsed.blocks[:4]] == [
        (0, True, 1),
        (1, False, None),
        (1, False, None),
        (0, True, 2),
    ]
    assert [block.metadata.get("checked") for block in parsed.blocks[:4]] == [None, True, False, None]
    assert [block.metadata.get("quote") for block in parsed.blocks[5:7]] == [1, 2]
    assert parsed.blocks[7].metadata["header_rows"] == 1
    assert sources(parsed, page)[8] == "![i](p.png)"


def test_footnotes_keep_their_text() -> None:
    page = "Text[^1] and[^n].\n\n[^1]: word\n[^n]: Longer\n    note.\n\n    Second.\n\nAfter.\n"
    parsed = parse_markdown_page(page)
    assert [(block.text, block.metadata.get("footnote")) for block in parsed.blocks] == [
        ("Text[^1] and[^n].", None),
        ("word", "1"),
        ("Longer note.", "n"),
        ("Second.", "n"),
        ("After.", None),
    ]


def test_embedded_html_is_walked_at_its_place() -> None:
    page = 'A\r\n\r\n<div align="center">\r\n<h2>Head</h2><p>x &amp; y</p>\r\n</div>\r\n\r\nB <br> C <img src="i.png" alt="I">\r\n'
    parsed = parse_markdown_page(page)
    assert kinds(parsed) == [("paragraph", "A"), ("heading", "Head"), ("paragraph", "x & y"), ("paragraph", "B\nC"), ("image", "I")]
    assert sources(parsed, page)[1:3] == ["<h2>Head</h2>", "<p>x &amp; y</p>"]
    assert sources(parsed, page)[4] == '<img src="i.png" alt="I">'


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a <span hidden>no <b>no</b></span> b", "a  b"),
        ("a <script>x()</script>b<style>y</style>", "a b"),
        ('a <i aria-hidden="true">no <i>no</i> no</i> b', "a  b"),
        ('a <u style="display:none">no</u> <u>yes</u>', "a  yes"),
        ("a <span hidden>not closed", "a not closed"),
        ("a <input hidden> b", "a  b"),
    ],
)
def test_embedded_html_hides_inside_a_line(source: str, text: str) -> None:
    assert kinds(parse_markdown_page(source)) == [("paragraph", text)]


def test_images_inside_the_page_have_their_bytes() -> None:
    parsed = parse_markdown_page("![d](data:image/png;base64,aGk=)")
    (asset,) = parsed.assets
    assert (asset.href, asset.media_type, asset.alt, parsed.blobs) == ("data:image/png;base64,", "image/png", "d", {asset.asset_id: b"hi"})


def test_hard_and_soft_breaks() -> None:
    assert kinds(parse_markdown_page("a\nb  \nc\\\nd")) == [("paragraph", "a b\nc\nd")]


LINES = st.lists(
    st.sampled_from(
        [
            "# W",
            "W",
            "",
            "",
            "- W",
            "  - W",
            "1. W",
            "> W",
            "```py\nW\n```",
            "    W",
            "| W | W |\n|---|---|\n| W | W |",
            "<p>W</p>",
            "W\n---",
        ]
    ),
    max_size=25,
)


@settings(max_examples=200)
@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]))
def test_every_word_stands_in_one_block_and_in_its_source(lines: list[str], end: str) -> None:
    count = iter(range(10_000))
    page = re.sub("W", lambda _: f"w{next(count)}w", "\n".join(lines)).replace("\n", end)
    parsed = parse_markdown_page(page or "w")
    if not page:
        return
    found = [word for block in parsed.blocks for word in re.findall(r"w\d+w", block.text)]
    assert sorted(found) == sorted(re.findall(r"w\d+w", page))
    for block, source in zip(parsed.blocks, sources(parsed, page), strict=True):
        assert all(word in source for word in re.findall(r"w\d+w", block.text))


@given(st.lists(st.text("ab# \t`~-*\u00a0", max_size=12), max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_code_is_the_text_between_the_fences(lines: list[str], end: str) -> None:
    code = "\n".join(lines)
    page = ("intro\n\n``````py\n" + code + "\n``````\n").replace("\n", end)
    if "``````" in code:
        return
    block = parse_markdown_page(page).blocks[-1]
    if not code.strip():
        assert block.kind == "paragraph"
        return
    assert (block.kind, block.text) == ("code", code)
    assert code in sources(parse_markdown_page(page), page)[-1].replace("\r\n", "\n")


@given(st.binary(max_size=200), st.text("#>-*_`[]()!<&\\|~:^ \t\n\r1a\x00", max_size=150))
def test_any_bytes_give_blocks_or_a_reject(data: bytes, soup: str) -> None:
    for page in (data, soup.encode(), soup.encode() + data):
        if page:
            parsed = parse_markdown_page(page)
            assert (parsed.document is None) == bool(parsed.rejects)
            assert parse_markdown_page(page) == parsed


@pytest.mark.parametrize("page", [">" * 10_000 + "x", "".join("  " * at + "- x\n" for at in range(500)), "[^a]: " * 2_000 + "x"])
def test_too_deep_is_a_reject_not_a_loss(page: str) -> None:
    parsed = parse_markdown_page(page)
    assert [reject.reject_class for reject in parsed.rejects] == ["too_deep"]


@pytest.mark.parametrize(
    "page", ["*a **a " * 5_000, "[" * 2_000 + "x", "`a" * 20_000, "word " * 200_000, "<a " * 20_000, "_" * 20_000 + "a"]
)
def test_hostile_lines_end(page: str) -> None:
    assert parse_markdown_page(page).rejects == []


def test_block_limit_is_a_typed_reject() -> None:
    parsed = parse_markdown_page("- x\n" * 50, limits=Limits(blocks=10))
    assert [reject.reject_class for reject in parsed.rejects] == ["too_many_blocks"]
