"""Confluence's storage format: macros, links, images, tasks, places; pages and exports of the REST interface; hostile input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from document_files import kinds, parse_bytes, parse_html_page, sources
from hypothesis import given, settings
from hypothesis import strategies as st

from raydex.ir.parsed import ParsedFile
from raydex.kernels.confluence_rules import is_storage_format
from raydex.kernels.decode import decode
from raydex.kernels.detect import detect_media_type
from raydex.kernels.limits import Limits


def macro(name: str, body: str = "", /, **parameters: str) -> str:
    given = "".join(f'<ac:parameter ac:name="{key}">{value}</ac:parameter>' for key, value in parameters.items())
    return f'<ac:structured-macro ac:name="{name}" ac:schema-version="1">{given}{body}</ac:structured-macro>'


def rich(inner: str) -> str:
    return f"<ac:rich-text-body>{inner}</ac:rich-text-body>"


def code(text: str) -> str:
    escaped = text.replace("]]>", "]]]]><![CDATA[>")
    return f"<ac:plain-text-body><![CDATA[{escaped}]]></ac:plain-text-body>"


def read(page: str, path: str = "page.xml", **options: Any) -> ParsedFile:
    return parse_bytes(page + "<ac:placeholder>hint</ac:placeholder>", "application/xml", path, **options)


def read_json(value: Any, media_type: str = "application/json") -> ParsedFile:
    return parse_bytes(value if isinstance(value, str) else json.dumps(value), media_type, "page.json")


def page_json(storage: str, **more: Any) -> dict[str, Any]:
    return {"id": "7", "type": "page", "title": "Title", "body": {"storage": {"value": storage, "representation": "storage"}}, **more}


def events(parsed: ParsedFile) -> list[tuple[str, str]]:
    return [(event.name, event.message) for event in parsed.events]


def test_code_macros_are_code_with_language_and_title() -> None:
    text = 'def f():\n\treturn a["b"] < c and "]]>" or "&amp;"\n\n    # end'
    parsed = read(macro("code", code(text), language="Python", title="run.py") + macro("noformat", code("a  b\nc")))
    assert kinds(parsed) == [("paragraph", "run.py"), ("code", text), ("code", "a  b\nc")]
    assert [block.metadata.get("language") for block in parsed.blocks] == [None, "python", ""]
    assert parsed.blocks[0].metadata["role"] == "title" and parsed.blocks[1].metadata["title"] == "run.py"


@pytest.mark.parametrize(
    "page",
    [
        f'<ac:macro ac:name="code"><ac:default-parameter>sql</ac:default-parameter>{code("x")}</ac:macro>',
        macro("code", "<ac:plain-text-body>\n  <![CDATA[x]]>\n</ac:plain-text-body>", language="sql"),
        f"<p>{macro('code', code('x'), language='sql')}</p>",
        '<ac:structured-macro ac:name="code"><ac:plain-text-body><![CDATA[x]]></ac:plain-text-body>'
        '<ac:parameter ac:name="language">sql</ac:parameter></ac:structured-macro>',
    ],
)
def test_forms_of_the_code_macro(page: str) -> None:
    (block,) = read(page).blocks
    assert (block.kind, block.text, block.metadata["language"]) == ("code", "x", "sql")


def test_code_in_a_cell_keeps_its_lines() -> None:
    cell = macro("code", code("x = 1\ny = 2"))
    page = f"<table><tbody><tr><th>A</th><th>B</th></tr><tr><td>{cell}</td><td>2</td></tr></tbody></table>"
    (table,) = read(page).blocks
    assert [[cell["text"] for cell in row] for row in table.metadata["rows"]] == [["A", "B"], ["x = 1\ny = 2", "2"]]


@pytest.mark.parametrize("name", ["info", "note", "warning", "tip", "panel"])
def test_panels_mark_their_blocks(name: str) -> None:
    parsed = read(macro(name, rich("<p>Inside</p><ul><li>item</li></ul>"), title="Head") + "<p>after</p>")
    assert kinds(parsed) == [("paragraph", "Head"), ("paragraph", "Inside"), ("list_item", "item"), ("paragraph", "after")]
    assert [block.metadata.get("panel") for block in parsed.blocks] == [name, name, name, None]
    assert [block.metadata.get("role") for block in parsed.blocks] == ["title", None, None, None]


def test_expands_and_panels_nest() -> None:
    parsed = read(macro("info", rich("<p>a</p>" + macro("expand", rich("bare <b>text</b>"), title="More") + "<p>z</p>")))
    assert kinds(parsed) == [("paragraph", "a"), ("paragraph", "More"), ("paragraph", "bare text"), ("paragraph", "z")]
    assert [block.metadata.get("expand") for block in parsed.blocks] == [None, True, True, None]
    assert all(block.metadata["panel"] == "info" for block in parsed.blocks)


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("form", ["storage", "adf"])
def test_sections_of_an_expand_end_with_it(level: int, form: str) -> None:
    def node(kind: str, *content: Any, **attrs: Any) -> dict[str, Any]:
        return {"type": kind, "attrs": attrs, "content": list(content)}

    def line(kind: str, text: str, **attrs: Any) -> dict[str, Any]:
        return node(kind, {"type": "text", "text": text}, **attrs)

    if form == "storage":
        deep = macro("expand", rich("<h4>Deep</h4><p>c</p>"), title="Deeper")
        box = macro("expand", rich(f"<p>a</p><h{level}>Inner</h{level}><p>b</p>{deep}<p>d</p>"), title="More")
        body = {"storage": {"value": f"<h2>Outer</h2>{box}<p>after</p><h3>Below</h3><p>e</p>"}}
    else:
        deep = node("nestedExpand", line("heading", "Deep", level=4), line("paragraph", "c"), title="Deeper")
        inner = (line("paragraph", "a"), line("heading", "Inner", level=level), line("paragraph", "b"), deep, line("paragraph", "d"))
        rest = (line("paragraph", "after"), line("heading", "Below", level=3), line("paragraph", "e"))
        doc = node("doc", line("heading", "Outer", level=2), node("expand", *inner, title="More"), *rest)
        body = {"atlas_doc_format": {"value": json.dumps(doc)}}
    comment = {"id": "9", "body": {"storage": {"value": macro("expand", rich("<h1>Said</h1><p>f</p>")) + "<p>g</p>"}}}
    page = {"id": "1", "title": "Page", "body": body, "children": {"comment": {"results": [comment]}}}
    parsed = parse_bytes(json.dumps(page), "application/json", "page.json")
    assert {block.text: block.section_path for block in parsed.blocks if block.kind != "heading"} == {
        "More": ["Outer"],
        "a": ["Outer"],
        "b": ["Outer", "Inner"],
        "Deeper": ["Outer", "Inner"],
        "c": ["Outer", "Inner", "Deep"],
        "d": ["Outer", "Inner"],
        "after": ["Outer"],
        "e": ["Outer", "Below"],
        "f": ["Comments", "Said"],
        "g": ["Comments"],
    }


def test_expands_in_expands_are_bounded() -> None:
    depth = 3_000
    page = "".join(f'<ac:structured-macro ac:name="expand"><ac:rich-text-body><h1>{at}</h1>' for at in range(depth))
    page += "</ac:rich-text-body></ac:structured-macro>" * depth + "<p>after</p>"
    parsed = read("<h1>Outer</h1>" + page)
    assert max(len(block.section_path) for block in parsed.blocks) < 12
    assert parsed.blocks[-1].section_path == ["Outer"]


def test_panels_of_the_new_editor_are_shown_once() -> None:
    node = (
        '<ac:adf-node type="panel"><ac:adf-attribute key="panel-type">note</ac:adf-attribute><ac:adf-content><p>said</p></ac:adf-content>'
    )
    page = f"<ac:adf-extension>{node}</ac:adf-node><ac:adf-fallback><div><p>said</p></div></ac:adf-fallback></ac:adf-extension>"
    (block,) = read(page).blocks
    assert (block.text, block.metadata["panel"]) == ("said", "note")
    assert kinds(read("<ac:adf-extension><ac:adf-fallback><p>only</p></ac:adf-fallback></ac:adf-extension>")) == [("paragraph", "only")]


def test_words_that_attributes_hold() -> None:
    page = (
        f"<h2>State {macro('status', colour='Green', title='IN &amp; OUT')}</h2>"
        f'<p>On <time datetime="2024-05-01" /> or <time datetime="2024-05-02"></time> <ac:emoticon ac:name="tick" />'
        '<ac:emoticon ac:name="blue-star" ac:emoji-shortname=":dog:" ac:emoji-fallback="🐶"/>'
        f" see {macro('jira', key='OPS-1')}.</p>"
    )
    assert kinds(read(page)) == [("heading", "State IN & OUT"), ("paragraph", "On 2024-05-01 or 2024-05-02 ✔🐶 see OPS-1.")]


def test_tasks_are_items_with_a_state() -> None:
    def task(state: str, body: str) -> str:
        status = f"<ac:task-status>{state}</ac:task-status>"
        return f"<ac:task>\n<ac:task-id>1</ac:task-id>{status}<ac:task-body>{body}</ac:task-body></ac:task>"

    inner = f"<ac:task-list>{task('incomplete', 'below')}</ac:task-list>"
    page = f"<ac:task-list>{task('complete', '<span>done</span>')}{task('incomplete', 'open' + inner)}</ac:task-list><p>z</p>"
    parsed = read(page)
    assert kinds(parsed) == [("list_item", "done"), ("list_item", "open"), ("list_item", "below"), ("paragraph", "z")]
    assert [block.metadata.get("task") for block in parsed.blocks] == ["DONE", "TODO", "TODO", None]
    assert [block.metadata.get("level") for block in parsed.blocks] == [0, 0, 1, None]
    assert parsed.blocks[0].metadata["tag"] == "ac:task"


@pytest.mark.parametrize(
    ("inner", "href", "text"),
    [
        ('<ri:page ri:content-title="A b" ri:space-key="OPS"/>', "OPS:A b", "A b"),
        ('<ri:page ri:content-title="A"/><ac:plain-text-link-body><![CDATA[x < y]]></ac:plain-text-link-body>', "A", "x < y"),
        ('<ri:page ri:content-title="A"></ri:page><ac:link-body>the <b>page</b></ac:link-body>', "A", "the page"),
        ('<ri:blog-post ri:content-title="News" ri:posting-day="2024/01/30"/>', "/2024/01/30/News", "News"),
        ('<ri:attachment ri:filename="a.pdf"/>', "a.pdf", "a.pdf"),
        ('<ri:attachment ri:filename="a.pdf"><ri:page ri:content-title="P"/></ri:attachment>', "P^a.pdf", "a.pdf"),
        ('<ri:user ri:username="jo"/>', "~jo", "@jo"),
        ('<ri:space ri:space-key="OPS"/>', "OPS:", "OPS"),
        ('<ri:content-entity ri:content-id="123"/>', "$123", "123"),
    ],
)
def test_links_name_their_target(inner: str, href: str, text: str) -> None:
    (block,) = read(f"<p>See <ac:link>{inner}</ac:link> now.</p>").blocks
    assert block.text == f"See {text} now."
    assert [(link.href, link.text) for link in block.links] == [(href, text)]


def test_links_to_anchors() -> None:
    page = (
        '<p><ac:link ac:anchor="a"><ac:link-body>here</ac:link-body></ac:link> '
        '<ac:link ac:anchor="b"><ri:page ri:content-title="P"/></ac:link></p>'
    )
    assert [(link.href, link.text) for link in read(page).blocks[0].links] == [("#a", "here"), ("P#b", "P")]


def test_images_are_assets() -> None:
    page = (
        '<p>a <ac:image ac:alt="Alt &amp; text" ac:width="300"><ri:attachment ri:filename="p.png"/></ac:image> b</p>'
        '<ac:image><ri:url ri:value="http://x/y.png"/><ac:caption><p>Below</p></ac:caption></ac:image>'
        '<p><ac:link><ri:page ri:content-title="P"/><ac:link-body>'
        '<ac:image ac:alt="i"><ri:url ri:value="z.png"/></ac:image></ac:link-body></ac:link></p>'
    )
    parsed = read(page)
    assert kinds(parsed) == [("paragraph", "a b"), ("image", "Alt & text"), ("image", ""), ("paragraph", "Below"), ("image", "i")]
    assert [(asset.href, asset.alt, asset.width) for asset in parsed.assets] == [
        ("p.png", "Alt & text", 300),
        ("http://x/y.png", "", None),
        ("z.png", "i", None),
    ]
    assert [link.href for link in parsed.blocks[4].links] == ["P"]


def test_macros_without_content_are_counted_and_left_out() -> None:
    parsed = read(f"<p>{macro('toc', maxLevel='3')}</p>" + macro("children") * 2 + macro("anchor", **{"": "x"}) + "<p>text</p>")
    assert kinds(parsed) == [("paragraph", "text")]
    assert events(parsed) == [("dynamic_macro", "macros that hold no content of their own were left out: children 2, toc 1")]


def test_unknown_macros_keep_their_text() -> None:
    page = macro("my-box", rich("<p>kept</p>"), title="Top", width="50%") + macro("my-code", code("a\nb")) + macro("my-box")
    parsed = read(page)
    assert kinds(parsed) == [("paragraph", "Top"), ("paragraph", "kept"), ("code", "a\nb")]
    assert [block.metadata["macro"] for block in parsed.blocks] == ["my-box", "my-box", "my-code"]
    assert events(parsed) == [
        ("unknown_macro", "2 macros of the unknown name 'my-box' were read as text"),
        ("unknown_macro", "1 macros of the unknown name 'my-code' were read as text"),
    ]


def test_names_of_unknown_macros_are_bounded() -> None:
    found = events(read("".join(macro(f"m{n}", rich("x")) for n in range(80))))
    assert len(found) == 51 and found[-1] == ("unknown_macro", "macros of 30 more names were read as text")


def test_macros_that_show_other_content_name_it() -> None:
    page = macro("view-file", name='<ri:attachment ri:filename="s.pdf"/>') + macro(
        "include", **{"": '<ac:link><ri:page ri:content-title="Other"/></ac:link>'}
    )
    parsed = read(page)
    assert [(link.href, link.text) for block in parsed.blocks for link in block.links] == [("s.pdf", "s.pdf"), ("Other", "Other")]
    assert parsed.events == []


def test_hidden_excerpts_are_hidden() -> None:
    page = macro("excerpt", rich("<p>no</p>"), hidden="true") + macro("excerpt", rich("<p>yes</p>"), hidden="false")
    assert kinds(read(page)) == [("paragraph", "yes")]


def test_layouts_are_flow_in_order() -> None:
    def cell(text: str) -> str:
        return f"<ac:layout-cell>{text}</ac:layout-cell>"

    page = f"<ac:layout><ac:layout-section>{cell('<h1>T</h1><p>one</p>')}{cell('two')}</ac:layout-section></ac:layout><p>three</p>"
    parsed = read(page)
    assert kinds(parsed) == [("heading", "T"), ("paragraph", "one"), ("paragraph", "two"), ("paragraph", "three")]
    assert all(block.section_path == ["T"] for block in parsed.blocks)


def test_a_macro_inside_a_paragraph_ends_it() -> None:
    parsed = read(f"<p>before {macro('info', rich('<p>in</p>'))} after</p><ol><li>x{macro('code', code('c'))}</li><li>y</li></ol>")
    assert kinds(parsed) == [
        *(("paragraph", "before"), ("paragraph", "in"), ("paragraph", "after")),
        *(("list_item", "x"), ("code", "c"), ("list_item", "y")),
    ]
    assert [block.metadata.get("number") for block in parsed.blocks] == [None, None, None, 1, None, 2]


PLACES = [
    ("<h1>Café &eacute;</h1>", "Café é"),
    ('<p>A "quoted"\ttext</p>', 'A "quoted" text'),
    (macro("code", code('print("\\n")'), language="py"), 'print("\\n")'),
    ("<p>😀 end</p>", "😀 end"),
]


def test_places_are_the_elements_of_the_source() -> None:
    page = "\n".join(source for source, _ in PLACES)
    parsed = read(page)
    assert [block.text for block in parsed.blocks] == [text for _, text in PLACES]
    assert sources(parsed, page) == [source for source, _ in PLACES]
    assert all(block.metadata["tag"] for block in parsed.blocks)


@pytest.mark.parametrize("ascii_only", [True, False])
def test_places_in_json_count_escapes_as_written(ascii_only: bool) -> None:
    text = json.dumps(page_json("\n".join(source for source, _ in PLACES)), ensure_ascii=ascii_only, indent=1)
    parsed = read_json(text)
    assert [block.text for block in parsed.blocks] == [text for _, text in PLACES]
    assert [json.loads(f'"{place}"') for place in sources(parsed, text)] == [source for source, _ in PLACES]
    assert all(block.locator.pointer == "/body/storage/value" for block in parsed.blocks)


def test_a_page_tells_what_it_is() -> None:
    more = {
        "space": {"key": "OPS"},
        "version": {"number": 4, "when": "2024-01-01T00:00:00Z", "by": {"displayName": "Jo"}},
        "ancestors": [{"title": "Home"}, {"title": "Docs"}],
        "metadata": {"labels": {"results": [{"name": "runbook"}]}},
        "_links": {"base": "https://wiki.example", "webui": "/x/7"},
    }
    document = read_json(page_json("<p>x</p>", **more)).document
    assert document is not None and (document.title, document.parser) == ("Title", "confluence")
    assert document.metadata == {
        "id": "7",
        "type": "page",
        "space": "OPS",
        "version": 4,
        "updated": "2024-01-01T00:00:00Z",
        "author": "Jo",
        "url": "https://wiki.example/x/7",
        "labels": ["runbook"],
        "ancestors": ["Home", "Docs"],
    }


def test_comments_and_attachments_stand_below_the_page() -> None:
    comment = {"id": "9", "body": {"storage": {"value": "<p>Why?</p>"}}, "version": {"by": {"displayName": "Al"}, "when": "2024"}}
    file = {"title": "f.pdf", "extensions": {"mediaType": "application/pdf"}, "_links": {"download": "/d/f.pdf"}}
    text = json.dumps(page_json("<h1>H</h1>", children={"comment": {"results": [comment]}, "attachment": {"results": [file]}}))
    parsed = read_json(text)
    assert [(block.text, block.section_path) for block in parsed.blocks] == [
        *(("H", ["H"]), ("Comments", ["Comments"]), ("Why?", ["Comments"])),
        *(("Attachments", ["Attachments"]), ("f.pdf", ["Attachments"])),
    ]
    assert parsed.blocks[2].metadata == {"tag": "p", "comment": "9", "author": "Al", "created": "2024"}
    assert [(link.href, link.text) for link in parsed.blocks[4].links] == [("/d/f.pdf", "f.pdf")]
    assert sources(parsed, text)[2::2] == ["<p>Why?</p>", '"f.pdf"']


def test_other_representations() -> None:
    adf = {"type": "doc", "content": [{"type": "paragraph", "content": [{"type": "text", "text": "in adf"}]}]}
    assert kinds(read_json({"title": "T", "body": {"atlas_doc_format": {"value": json.dumps(adf)}}})) == [("paragraph", "in adf")]
    assert kinds(read_json({"title": "T", "body": {"view": {"value": "<p>as shown</p>"}}})) == [("paragraph", "as shown")]
    assert kinds(read_json({"title": "T", "body": {"atlas_doc_format": {"value": "{"}}})) == [("code", "{")]


@pytest.mark.parametrize("form", ["search", "cut", "lines"])
def test_exports_hold_a_member_a_page(form: str) -> None:
    pages = [{**page_json(f"<p>{n}</p>"), "id": str(n), "title": f"Page {n}"} for n in (1, 2)]
    if form == "lines":
        parsed = read_json("\n".join(map(json.dumps, pages)), "application/jsonl")
    else:
        parsed = read_json({"results": pages, "size": 2, "_links": {"next": "/more"} if form == "cut" else {}})
    assert [block.text for block in parsed.blocks] == ["Page 1", "Page 2"]
    members = list(parsed.members)
    assert [member.name for member in members] == ["1.json", "2.json"]
    assert [kinds(parse_bytes(member.data, member.media_type))[0][1] for member in members] == ["1", "2"]
    assert parsed.document is not None and (parsed.document.warnings == ["incomplete_list"]) == (form == "cut")


@pytest.mark.parametrize(
    "value", [{"title": "t", "body": {"storage": 3}}, {"results": [{"title": "t", "body": "storage"}]}, {"results": []}]
)
def test_json_that_only_looks_like_a_page_is_data(value: Any) -> None:
    parsed = read_json(value)
    assert parsed.document is not None and parsed.document.parser == "json"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>x</p><ac:link/>", True),
        ('<html xmlns:ac="http://atlassian.com/content"><ac:image/></html>', True),
        ("<p>&lt;ac:image/&gt;</p>", False),
        ("<x><![CDATA[<ac:image/>]]></x>", False),
        ("<x><![CDATA[a]]><ac:image/></x>", True),
        ('<x xmlns:ac="urn:accounts"><ac:image/></x>', False),
        ("<x><ac:account/></x>", False),
    ],
)
def test_what_storage_format_is(page: str, expected: bool) -> None:
    assert is_storage_format(page) is expected
    for media_type, other in (("text/html", "html"), ("application/xml", "xml")):
        document = parse_bytes(page, media_type).document
        assert document is not None and document.parser == ("confluence" if expected else other)


@pytest.mark.parametrize(("path", "expected"), [("p.xml", "application/xml"), ("p.html", "text/html"), ("12345", "text/html")])
def test_files_of_storage_format_reach_a_parser(path: str, expected: str) -> None:
    assert detect_media_type(b'<ac:layout><ac:layout-section ac:type="single">', path) == expected


def test_a_page_without_text_says_so() -> None:
    parsed = read(macro("toc"))
    assert parsed.document is not None and parsed.document.warnings == ["no_semantic_blocks"]


HOSTILE = [
    '<ac:structured-macro ac:name="info">',
    "<ac:parameter ac:name='title'>t",
    "<ac:plain-text-body><![CDATA[a",
    "<ac:link><ri:page ri:content-title='a'>",
    "<ac:link><ac:link-body>t",
    "<ac:image ac:alt='i'><ri:url ri:value='x'/>",
    "<ac:task-list><ac:task><ac:task-status>complete",
    "<ac:adf-extension>",
    "</ac:rich-text-body></ac:structured-macro></ac:task></ac:parameter>",
    "<ac:rich-text-body><p>a",
    "<table><tr><td><ac:rich-text-body>",
    "<time>",
    "<![CDATA[",
    "]]>",
    "<ac:parameter/>",
    "</ac:layout>",
    "<ac:adf-fallback>x",
    "<ri:user ri:username='u'/>",
    "text ",
    "<h1>",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_pages_that_never_close_keep_their_text(unit: str) -> None:
    parsed = parse_html_page("<ac:link/>" + unit * 3000 + "last")
    assert parsed.document is not None and not parsed.rejects
    seen = [*(block.text for block in parsed.blocks), *(link.text for block in parsed.blocks for link in block.links)]
    assert unit == "<ac:adf-fallback>x" or "last" in "".join(seen)


@given(st.lists(st.sampled_from([*HOSTILE, macro("code", code("c")), macro("status", title="s"), "<p>w</p>", "<td>"]), max_size=12))
@settings(max_examples=150, deadline=None)
def test_any_soup_gives_blocks_in_their_source(parts: list[str]) -> None:
    page = "<ac:link/>" + "".join(parts)
    parsed = parse_html_page(page)
    assert parsed.document is not None
    size = len(decode(page.encode()).text)
    for block in parsed.blocks:
        assert block.locator.char is not None and 0 <= block.locator.char[0] <= block.locator.char[1] <= size


def test_block_limit_is_a_typed_reject() -> None:
    for parsed in (
        read("<p>x</p>" * 20, limits=Limits(blocks=10)),
        parse_bytes(json.dumps(page_json("<p>x</p>" * 20)), "application/json", limits=Limits(blocks=10)),
    ):
        assert [reject.reject_class for reject in parsed.rejects] == ["too_many_blocks"]
