"""HTML pages: structure, chrome, places in the source, tag soup, hostile pages."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from document_files import PAGES, kinds, parse_html_page, plain, sources
from golden import assert_golden, is_writing
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_cases import case

from raydex.ir.ids import content_hash
from raydex.kernels.limits import Limits

WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    return WORD.findall(text)


def test_golden_files_are_not_being_rewritten() -> None:
    assert not is_writing()


@pytest.mark.parametrize("name", ["soup", "manual"])
def test_page_golden(name: str) -> None:
    assert_golden(f"html_{name}", plain(parse_html_page((PAGES / f"{name}.html").read_bytes(), path=f"{name}.html")))


PUMP = """<!doctype html><title>Pump start</title><h1>Pump start</h1>
<ol><li>Open valve V3.</li><li>Check the settings:
<table><tr><th>Mode</th><th>Meaning</th></tr><tr><td>slow</td><td><ul><li>low flow</li><li>no alarm</li></ul></td></tr></table></li>
<li>Press START.</li></ol><p>Done.</p>"""


def check_pump(data: bytes | str) -> None:
    parsed = parse_html_page(data)
    assert [block.kind for block in parsed.blocks] == ["heading", "list_item", "list_item", "table", "list_item", "paragraph"]
    assert all(block.section_path == ["Pump start"] for block in parsed.blocks)
    items = [block for block in parsed.blocks if block.kind == "list_item"]
    assert [item.text for item in items] == ["Open valve V3.", "Check the settings:", "Press START."]
    assert [item.metadata["number"] for item in items] == [1, 2, 3]
    table = parsed.blocks[3]
    assert [[cell["text"] for cell in row] for row in table.metadata["rows"]] == [["Mode", "Meaning"], ["slow", "low flow\nno alarm"]]
    assert table.metadata["header_rows"] == 1
    counted = Counter(word for block in parsed.blocks for word in words(block.text))
    assert counted["low"] == counted["Mode"] == counted["settings"] == counted["Done"] == 1


def test_table_inside_a_list_item() -> None:
    check_pump(PUMP)


def test_case_b01() -> None:
    check_pump(case("b01-html-table-in-list/pump.html").read_bytes())


def test_chrome_and_hidden_regions_are_dropped() -> None:
    page = """<body><script>S1</script><style>S2</style><nav>N</nav><header><h2>H</h2></header><h1>K</h1><aside>A</aside>
    <template>T</template>
    <noscript>NS</noscript><div hidden>D1</div><div aria-hidden="true">D2</div><p style="color:red; display : none">D3</p>
    <p style="visibility:hidden">D4</p><div role="navigation">R</div><p>kept <span hidden>no</span>text</p>
    <dialog>X</dialog><footer>F</footer></body>"""
    assert kinds(parse_html_page(page)) == [("heading", "K"), ("paragraph", "kept text")]


@pytest.mark.parametrize(
    ("style", "shown"),
    [
        ("-webkit-backface-visibility:hidden", True),
        ("backface-visibility: hidden; color: red", True),
        ("--display:none", True),
        ("color:red;VISIBILITY : collapse", False),
        ("a:b;display:none!important", False),
        ("/* off */display:none", False),
        ("content-visibility:hidden", False),
    ],
)
def test_only_the_property_itself_hides(style: str, shown: bool) -> None:
    assert bool(parse_html_page(f'<div style="{style}"><p>text</p></div>').blocks) is shown


def test_a_header_inside_main_content_is_content() -> None:
    page = "<main><header><p>by line</p><h1>Title</h1></header><p>Body</p></main><header><h1>Site</h1></header>"
    assert kinds(parse_html_page(page)) == [("paragraph", "by line"), ("heading", "Title"), ("paragraph", "Body")]


def test_sections_follow_levels_that_jump() -> None:
    page = "<p>0</p><h2>A</h2><p>1</p><h4>B</h4><p>2</p><h3>C</h3><p>3</p><h1>D</h1><p>4</p>"
    paths = {block.text: block.section_path for block in parse_html_page(page).blocks if block.kind == "paragraph"}
    assert paths == {"0": [], "1": ["A"], "2": ["A", "B"], "3": ["A", "C"], "4": ["D"]}


def test_heading_evidence_is_the_source_slice() -> None:
    page = "<h1>A <b>title</b></h1><p>x</p>"
    block = parse_html_page(page).blocks[0]
    assert block.metadata["excerpt_hash"] == content_hash(b"<h1>A <b>title</b></h1>")


def test_code_is_kept_exactly() -> None:
    page = '<div class="highlight-python"><pre>\n  a\t= "&lt;\u00a0&gt;"\r\n\n<span>b</span>\n</pre></div><pre class="lang-js">x</pre>'
    blocks = parse_html_page(page).blocks
    assert [(block.text, block.metadata["language"]) for block in blocks] == [('  a\t= "<\u00a0>"\n\nb', "python"), ("x", "js")]


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        ("<div class=line>foo</div><div class=line>bar</div>", "foo\nbar"),
        ("<p>bar<p>baz", "bar\nbaz"),
        ("a<div>b</div>c", "a\nb\nc"),
        ("a\n<div>b\n</div>\nc", "a\nb\n\nc"),
        ("<div><div>a</div></div><div>b<span></span></div>", "a\nb"),
        ("<ol><li>a<li>b</ol>c", "a\nb\nc"),
        ("a<hr>b", "a\nb"),
        ("<table><tr><td>1<td>a()<tr><td>2<td>b()</table>", "1 a()\n2 b()"),
        ("<span>a</span><span>b</span>", "ab"),
        ("  <div>a</div>", "  \na"),
    ],
)
def test_boxes_inside_code_stand_on_lines_of_their_own(inner: str, text: str) -> None:
    assert kinds(parse_html_page(f"<pre>{inner}</pre>")) == [("code", text)]


def test_links_stay_as_written() -> None:
    page = '<p>See <a href="a.html?x=1&copy=2&amp;y">this <i>page</i></a> and <a name="n">anchor</a>.</p>'
    assert [(link.href, link.text) for link in parse_html_page(page).blocks[0].links] == [("a.html?x=1&copy=2&y", "this page")]


def test_images_are_assets() -> None:
    page = (
        '<p>a <img src="p.png" alt="Alt &amp; text" width=20> b</p><img src="data:image/gif;base64,R0lGOD"><img src=t.gif width=1 height=1>'
    )
    parsed = parse_html_page(page)
    assert kinds(parsed) == [("paragraph", "a b"), ("image", "Alt & text"), ("image", "")]
    assert [(asset.href, asset.media_type, asset.width) for asset in parsed.assets] == [
        ("p.png", "", 20),
        ("data:image/gif;base64,", "image/gif", None),
    ]
    assert [block.asset_ref for block in parsed.blocks[1:]] == [asset.asset_id for asset in parsed.assets]
    assert [block.locator.image for block in parsed.blocks[1:]] == [1, 2]


@pytest.mark.parametrize(
    ("uri", "href", "media_type", "data"),
    [
        ("data:image/png;base64,iVBORw0=", "data:image/png;base64,", "image/png", b"\x89PNG\r"),
        ("DATA:image/gif;Base64, R0lG\n ODk", "DATA:image/gif;Base64,", "image/gif", b"GIF89"),
        ("data:image/svg+xml;base64,PHN2Zy8%2B", "data:image/svg+xml;base64,", "image/svg+xml", b"<svg/>"),
        ("data:image/svg+xml;utf8,%3Csvg/>", "data:image/svg+xml;utf8,", "image/svg+xml", b"<svg/>"),
        ("data:image/png;base64,%%%", "data:image/png;base64,", "image/png", None),
        ("data:image/png", "data:image/png,", "image/png", None),
    ],
)
def test_images_inside_the_page_have_their_bytes(uri: str, href: str, media_type: str, data: bytes | None) -> None:
    parsed = parse_html_page(f"<p>x</p><img alt=a src='{uri}'>")
    (asset,) = parsed.assets
    assert (asset.href, asset.media_type, parsed.blobs.get(asset.asset_id)) == (href, media_type, data)
    assert parsed.document is not None and (parsed.document.warnings == ["broken_image"]) == (data is None)


def test_a_time_is_its_text() -> None:
    assert kinds(parse_html_page('<p>on <time datetime="2024-05-01">May 1</time>, <time hidden>no</time>ok</p>')) == [
        ("paragraph", "on May 1, ok")
    ]


def test_spans_are_clamped() -> None:
    page = "<table><tr><th rowspan=9 colspan=1000000000>h<th>i<tr><td rowspan=0>a<td colspan=-4>b<td colspan=x>c</table>"
    (table,) = parse_html_page(page).blocks
    spans = [[(cell["row_span"], cell["col_span"]) for cell in row] for row in table.metadata["rows"]]
    assert spans == [[(2, 3), (1, 1)], [(1, 1), (1, 1), (1, 1)]]


def test_layout_tables_are_flow() -> None:
    page = "<table><tr><td>menu</td><td><h1>T</h1><p>p</p><table><tr><th>k</th><td>v</td></tr></table></td></tr></table>"
    assert kinds(parse_html_page(page)) == [("paragraph", "menu"), ("heading", "T"), ("paragraph", "p"), ("table", "k | v")]


def test_lists_keep_level_and_numbers() -> None:
    page = "<ol start=3><li>a<ul><li>b<li>c</ul><li value=9>d<li>e</ol>"
    items = [(b.text, b.metadata["level"], b.metadata["ordered"], b.metadata.get("number")) for b in parse_html_page(page).blocks]
    assert items == [("a", 0, True, 3), ("b", 1, False, None), ("c", 1, False, None), ("d", 0, True, 9), ("e", 0, True, 10)]


def test_title_falls_back_to_heading_then_file_name() -> None:
    pages = ["<title> A\n b </title><h1>c</h1>", "<h1>c</h1>", "<p>d</p>"]
    found = [parse_html_page(page, path="dir/x.html").document for page in pages]
    assert [document.title for document in found if document] == ["A b", "c", "x.html"]


def test_content_without_blocks_is_said() -> None:
    for page, warned in [("<nav>only</nav>", True), ("<script>x()</script>", True), ("<html><body></body></html>", False)]:
        parsed = parse_html_page(page)
        assert parsed.document is not None and parsed.rejects == []
        assert ("no_semantic_blocks" in parsed.document.warnings) is warned
        assert ([event.name for event in parsed.events] == ["no_semantic_blocks"]) is warned


def test_declared_encoding_is_used() -> None:
    parsed = parse_html_page("<meta charset=windows-1251><p>Привет".encode("cp1251"))
    assert parsed.document is not None and parsed.document.encoding == "cp1251"
    assert parsed.blocks[0].text == "Привет"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>a<p>b", ["a", "b"]),
        ("<p>a<div>b</div>c</p>d", ["a", "b", "c", "d"]),
        ("a<b>b</i>c</b>d", ["abcd"]),
        ("5 < 6 <7 & x &amp; &lt;b&gt; &#65; &#xD800; &#99999999999;", ["5 < 6 <7 & x & <b> A \ufffd \ufffd"]),
        ("<!-- <p>no</p> --><!doctype x><?pi?></ bogus>yes", ["yes"]),
        ("<a title='>'>x</a><p class=a'b>y", ["x", "y"]),
        ('<p title="never closed>x</p><p>y</p>', ["x", "y"]),
        ("x <unknown-tag>y</unknown-tag> z<wbr>w", ["x y zw"]),
        ("<h1>a<h2>b", ["a", "b"]),
        ("<td>stray</td> cell", ["stray", "cell"]),
        ("<table>foster<tr><td>c</table>", ["c", "foster"]),
        ("<ul><li>a</div></p>b</ul>c", ["a", "b", "c"]),
        ("<button>A</button><button>B</button>", ["A B"]),
        ("a\x00b" + "c" * 60, ["a\ufffdb" + "c" * 60]),
        ("x<svg><text>no</text></svg>y", ["x y"]),
        ("<textarea><b>t</textarea>", ["<b>t"]),
        ("cut off <a hre", ["cut off <a hre"]),
    ],
)
def test_tag_soup(page: str, expected: list[str]) -> None:
    assert sorted(block.text for block in parse_html_page(page).blocks) == sorted(expected)


TAGS = (
    *("p", "div", "section", "main", "article", "blockquote", "form", "figure", "figcaption", "details", "summary", "center"),
    *("ul", "ol", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "td", "th", "h1", "h3", "pre"),
    *("b", "i", "a", "span", "em", "code", "font", "label", "select", "option", "button", "br", "hr"),
)
PARTS = st.lists(
    st.one_of(
        st.sampled_from(TAGS).map(lambda tag: f"<{tag}>"),
        st.sampled_from(TAGS).map(lambda tag: f"</{tag}>"),
        st.sampled_from(['<a href="x">', "<p class=y>", "<!-- c -->", " ", "&amp;", "<td colspan=3>", "<3", "\n"]),
        st.just("W"),
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=400)
@given(PARTS)
def test_every_word_stands_in_one_block_and_in_its_source(parts: list[str]) -> None:
    page = "".join(f" w{at} " if part == "W" else part for at, part in enumerate(parts))
    parsed = parse_html_page(page)
    assert parsed.rejects == []
    found = [word for block in parsed.blocks for word in re.findall(r"w\d+", block.text)]
    assert sorted(found) == sorted(f"w{at}" for at, part in enumerate(parts) if part == "W")
    for block, source in zip(parsed.blocks, sources(parsed, page), strict=True):
        assert set(re.findall(r"w\d+", block.text)) <= set(re.findall(r"w\d+", source))
    assert [block.ordinal for block in parsed.blocks] == list(range(len(parsed.blocks)))


@settings(max_examples=200)
@given(st.binary(max_size=300), st.text("<>/=\"'!-&;# aptdrlihu\x00\n", max_size=120))
def test_any_bytes_give_blocks_or_a_reject(data: bytes, soup: str) -> None:
    for page in (data, soup.encode(), b"<p>" + data, soup.encode() + data):
        if page:
            parsed = parse_html_page(page)
            assert (parsed.document is None) == bool(parsed.rejects)
            assert parsed.rejects == [] or parsed.rejects[0].reject_class == "unsupported_media_type"
            assert parse_html_page(page) == parsed


def test_blocks_are_the_elements_of_the_source() -> None:
    data = (PAGES / "manual.html").read_bytes()
    parsed = parse_html_page(data)
    for block, source in zip(parsed.blocks, sources(parsed, data), strict=True):
        tag = block.metadata["tag"]
        assert source.startswith(f"<{tag}") and source.endswith((f"</{tag}>", "/>"))


HOSTILE = {
    "nested boxes": "<div>" * 20_000 + "x",
    "unclosed tags": "<b>x" * 100_000,
    "nested lists": "<ul><li>x" * 5_000,
    "nested tables": "<table><tr><td>x" * 10_000,
    "nested layout": "<table><tr><td>" * 5_000 + "<h1>x",
    "open quotes": '<a ="><" ' * 50_000 + "x",
    "unfinished tags": "x" + "<a " * 100_000,
    "nested drawings": "<svg><svg></svg>x" * 20_000,
    "stray ends": "x" + "<div>" * 5_000 + "</b></p></li></td></template></h1>" * 5_000,
    "blocked ends": "x<span hidden><table><td>" + "<i>" * 20_000 + "</span>" * 20_000,
    "wide cell": "<table><tr><td colspan=1000000000 rowspan=1000000000>x",
    "long spaces": "<p>x" + " " * 1_000_000 + "y",
    "long number": "x&#" + "9" * 200_000 + ";",
    "open tables": "x" + "<table>" * 100_000,
    "open tables with cells": "x" + "<table><tr><td>" * 50_000 + "</table>",
    "open drawings": "x<svg>" + "<svg " * 300_000,
    "tall headers": "x<table>" + "<tr><th rowspan=99999>h" * 50_000,
    "blocked templates": "x" + "<table><tr><td>" * 50_000 + "</template>" * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_keep_their_text(name: str) -> None:
    parsed = parse_html_page(HOSTILE[name])
    assert parsed.rejects == []
    assert "x" in "".join(block.text for block in parsed.blocks)


def test_block_limit_is_a_typed_reject() -> None:
    parsed = parse_html_page("<p>x" * 50, limits=Limits(blocks=10))
    assert [reject.reject_class for reject in parsed.rejects] == ["too_many_blocks"]
    assert "limits.blocks" in parsed.rejects[0].error


def test_xhtml_closes_its_own_tags_and_shows_cdata() -> None:
    page = (
        '<?xml version="1.0"?><html><head><script src="a.js"/></head><body><p/><a id="x"/><p>a <![CDATA[<b> & c]]></p><div/>d</body></html>'
    )
    assert kinds(parse_html_page(page)) == [("paragraph", "a <b> & c"), ("paragraph", "d")]
    assert kinds(parse_html_page("<p>a <![CDATA[gone]]> b</p>")) == [("paragraph", "a b")]


def test_the_name_tells_xhtml_where_no_declaration_does() -> None:
    page = (
        '<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><script src="a.js"/><title>T</title></head><body><p>all of it</p>'
    )
    for name in ("a.xhtml", "folder/A.XHT"):
        parsed = parse_html_page(page, path=name)
        assert parsed.document is not None and parsed.document.title == "T"
        assert kinds(parsed) == [("paragraph", "all of it")]
    assert kinds(parse_html_page(page, path="a.html")) == []


def test_layout_is_told_apart_in_nested_and_open_tables() -> None:
    cell = "<td><p>a</p><p>b</p>"
    for page, layout in [
        (f"<table><tr>{cell}</table>", True),
        (f"<table><tr>{cell}{cell}</table>", False),
        (f"<table><tr>{cell}", False),
        (f"<table><tr>{cell}<td><h2>T</h2>", True),
        (f"<table><tr><td><table><tr>{cell}{cell}</table></table>", False),
        (f"</table><table><tr>{cell}</table><h1>T</h1>", True),
    ]:
        assert ("table" not in [block.kind for block in parse_html_page(page).blocks]) is layout, page
