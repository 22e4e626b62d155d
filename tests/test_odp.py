"""OpenDocument presentations: order of shapes, texts and lists, tables, charts, notes, comments, pictures, hostile packages."""

from __future__ import annotations

import io
import zipfile

import pytest
from document_files import kinds, parse_bytes
from hypothesis import given, settings
from hypothesis import strategies as st

from raydex.ir.parsed import ParsedFile
from raydex.kernels.limits import Limits

ODP = "application/vnd.oasis.opendocument.presentation"
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000003000000020806000000") + b"\0" * 20
_URN = "urn:oasis:names:tc:opendocument:xmlns:"
NAMES = " ".join(
    [
        *(f'xmlns:{name}="{_URN}{name}:1.0"' for name in ("office", "text", "style", "table", "presentation", "chart")),
        f'xmlns:draw="{_URN}drawing:1.0" xmlns:svg="{_URN}svg-compatible:1.0"',
        'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"',
        f'xmlns:meta="{_URN}meta:1.0"',
    ]
)


def deck(pages: str, styles: str = "", parts: dict[str, str | bytes] | None = None) -> bytes:
    content = (
        f"<office:document-content {NAMES}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:presentation>{pages}</office:presentation></office:body></office:document-content>"
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as package:
        for name, text in {"mimetype": ODP, "content.xml": content, **(parts or {})}.items():
            package.writestr(name, text)
    return buffer.getvalue()


def page(*shapes: str, style: str = "dp1") -> str:
    return f'<draw:page draw:name="p" draw:style-name="{style}">{"".join(shapes)}</draw:page>'


def at(x: float, y: float, width: float = 5, height: float = 1) -> str:
    return f'svg:x="{x}cm" svg:y="{y}cm" svg:width="{width}cm" svg:height="{height}cm"'


def frame(text: str, place: str = "", kind: str = "") -> str:
    cls = f'presentation:class="{kind}"' if kind else ""
    return f"<draw:frame {place} {cls}><draw:text-box>{text}</draw:text-box></draw:frame>"


def p(text: str) -> str:
    return f"<text:p>{text}</text:p>"


def parse(data: bytes, **options: object) -> ParsedFile:
    return parse_bytes(data, ODP, "talk.odp", **options)  # type: ignore[arg-type]


def parse_page(*shapes: str, styles: str = "", parts: dict[str, str | bytes] | None = None) -> ParsedFile:
    return parse(deck(page(*shapes), styles, parts))


def texts(parsed: ParsedFile) -> list[str]:
    return [block.text for block in parsed.blocks]


def test_slides_sections_order_and_hidden_pages() -> None:
    styles = '<style:style style:name="dp2"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    custom = f"<draw:custom-shape {at(10, 4)}>{p('right')}</draw:custom-shape>"
    group = f"<draw:g>{frame(p('low'), at(0, 9))}<draw:g>{frame(p('lower'), at(0, 11))}</draw:g></draw:g>"
    first = page(custom, frame(p("left"), at(0, 4)), group, frame(p("Title<text:line-break/>two"), at(0, 12), "title"))
    second = page(frame(p("text"), at(0, 0)), frame(p("foot"), kind="footer"), frame(p("x"), kind="page-number"), style="dp2")
    prompt = frame(p("Click"), 'presentation:placeholder="true"', "title")
    about = "<dc:title>Talk</dc:title><meta:keyword>a</meta:keyword><meta:keyword>b</meta:keyword>"
    meta = f"<office:document-meta {NAMES}><office:meta>{about}</office:meta></office:document-meta>"
    parsed = parse(deck(first + second + page(prompt, frame(p("last"))), styles, {"meta.xml": meta}))
    assert [(block.kind, block.text, block.section_path) for block in parsed.blocks] == [
        ("heading", "Title two", ["Title two"]),
        ("paragraph", "left", ["Title two"]),
        ("paragraph", "right", ["Title two"]),
        ("paragraph", "low", ["Title two"]),
        ("paragraph", "lower", ["Title two"]),
        ("paragraph", "text", ["Slide 2"]),
        ("paragraph", "last", ["Slide 3"]),
    ]
    assert [(block.locator.slide, block.locator.shape) for block in parsed.blocks][:6] == [(1, 7), (1, 2), (1, 1), (1, 4), (1, 6), (2, 1)]
    assert parsed.blocks[1].locator.bbox == (0, 113.39, 141.73, 141.73)
    assert [block.metadata.get("hidden") for block in parsed.blocks[4:]] == [None, True, None]
    assert parsed.document is not None and parsed.document.title == "Talk"
    assert parsed.document.metadata == {
        "slides": 3,
        "hidden_slides": [2],
        "furniture_shapes": 2,
        "properties": {"title": "Talk", "keywords": "a, b"},
    }


def test_lists_levels_and_numbers() -> None:
    styles = (
        '<text:list-style style:name="L1"><text:list-level-style-bullet text:level="1" text:bullet-char="●"/>'
        '<text:list-level-style-number text:level="2" style:num-format="a" style:num-suffix=")" text:start-value="3"/></text:list-style>'
        '<text:list-style style:name="L2"><text:list-level-style-number text:level="1" style:num-format=""/></text:list-style>'
    )

    def item(inner: str) -> str:
        return f"<text:list-item>{inner}</text:list-item>"

    nested = f"<text:list>{item(p('one') + p('more'))}{item(p('two'))}</text:list>"
    body = f'<text:list text:style-name="L1">{item(p("a"))}{item(p(""))}{item(nested)}</text:list>'
    body += f'<text:list text:style-name="L2">{item(p("plain"))}</text:list>'
    parsed = parse_page(frame(body), styles=styles)
    assert kinds(parsed) == [
        ("list_item", "a"),
        ("list_item", "one"),
        ("paragraph", "more"),
        ("list_item", "two"),
        ("paragraph", "plain"),
    ]
    assert [parsed.blocks[n].metadata for n in (0, 1, 3)] == [
        {"level": 0, "ordered": False},
        {"level": 1, "ordered": True, "number": 3, "marker": "c)"},
        {"level": 1, "ordered": True, "number": 4, "marker": "d)"},
    ]


def test_spans_spaces_links_and_fields() -> None:
    link = '<text:a xlink:href="https://a.example"><text:span>the page</text:span></text:a>'
    number = "<text:page-number>3</text:page-number>"
    body = p(f"see\n   <text:span>{link}</text:span>,<text:s text:c='2'/>then<text:tab/>go<text:line-break/>on {number}")
    anchor = f'<draw:a xlink:href="https://b.example">{frame(p("card"), at(0, 5))}</draw:a>'
    parsed = parse_page(frame(body, at(0, 0)), anchor, frame(p(number), at(0, 9)))
    assert texts(parsed) == ["see the page,  then\tgo\non 3", "card"]
    assert [(link.href, link.text) for block in parsed.blocks for link in block.links] == [
        ("https://a.example", "the page"),
        ("https://b.example", ""),
    ]
    assert parsed.document is not None and parsed.document.metadata["furniture_shapes"] == 1


def test_tables_charts_pictures_and_objects() -> None:
    def cell(text: str, extra: str = "") -> str:
        return f"<table:table-cell {extra}>{p(text)}</table:table-cell>"

    rows = [
        cell("A", 'table:number-columns-spanned="2"') + "<table:covered-table-cell/>",
        cell("1") + cell("2"),
        cell("x", 'table:number-columns-repeated="2"'),
    ]
    inner = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    table = f'<draw:frame {at(0, 0)}><table:table table:use-first-row-styles="true">{inner}</table:table></draw:frame>'
    local = f"<table:table-header-rows><table:table-row>{cell('')}{cell('in')}</table:table-row></table:table-header-rows>"
    local += f"<table:table-rows><table:table-row>{cell('q1')}{cell('5')}</table:table-row></table:table-rows>"
    chart = (
        f"<office:document-content {NAMES}><office:body><office:chart>"
        f'<chart:chart chart:class="chart:bar"><chart:title>{p("Flow")}</chart:title>'
        f"<table:table>{local}</table:table></chart:chart></office:chart></office:body></office:document-content>"
    )
    parsed = parse_page(
        table,
        f'<draw:frame {at(0, 3)}><draw:object xlink:href="./Object 1"/><draw:image xlink:href="./Other/Object 1"/></draw:frame>',
        f'<draw:frame {at(0, 6)}><draw:image xlink:href="Pictures/a.png"/><svg:desc>A pump</svg:desc></draw:frame>',
        f'<draw:frame {at(0, 9)}><draw:object-ole xlink:href="./Object 2"/></draw:frame>',
        f'<draw:frame {at(0, 12)}><draw:image xlink:href="https://a.example/b.png"/></draw:frame>',
        parts={"Object 1/content.xml": chart, "Pictures/a.png": PNG},
    )
    assert kinds(parsed) == [
        ("table", "A\n1 | 2\nx | x"),
        ("table", "Flow\n | in\nq1 | 5"),
        ("image", "A pump"),
        ("image", ""),
    ]
    assert parsed.blocks[0].metadata["rows"][0] == [{"text": "A", "row_span": 1, "col_span": 2, "header": True}]
    assert parsed.blocks[1].metadata["chart"] == ["bar"]
    assert [(a.media_type, a.href, a.alt, a.width, a.asset_id in parsed.blobs) for a in parsed.assets] == [
        ("image/png", "", "A pump", 3, True),
        ("", "https://a.example/b.png", "", None, False),
    ]
    assert [event.name for event in parsed.events] == ["embedded_object"]


def test_notes_and_comments() -> None:
    frames = frame(p("Say") + p("this"), kind="notes") + frame(p("x"), kind="page-number")
    notes = f"<presentation:notes><draw:page-thumbnail/>{frames}</presentation:notes>"
    comment = f"<office:annotation><dc:creator>Ann</dc:creator><dc:date>2026-01-01</dc:date>{p('Why?')}</office:annotation>"
    parsed = parse_page(comment, frame(p("T"), kind="title"), notes)
    assert [(block.kind, block.text, str(block.locator)) for block in parsed.blocks] == [
        ("heading", "T", "slide=1;shape=1"),
        ("note", "Say\nthis", "slide=1;note=1"),
        ("note", "Why?", "slide=1;comment=1"),
    ]
    assert parsed.blocks[2].metadata == {"comment": "1", "author": "Ann", "created": "2026-01-01"}


@pytest.mark.parametrize(
    ("data", "reject"),
    [
        (deck("")[:-30], "invalid_input"),
        (deck("<x"), "invalid_input"),
        (deck(page("<draw:g>" * 300 + "</draw:g>" * 300)), "too_deep"),
        (deck("", parts={"META-INF/manifest.xml": "<m><manifest:encryption-data/></m>"}), "encrypted"),
        (deck("", parts={"content.xml": "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"}), "invalid_input"),
    ],
)
def test_no_deck_is_a_reject(data: bytes, reject: str) -> None:
    assert [item.reject_class for item in parse(data).rejects] == [reject]


def test_limits_and_missing_parts() -> None:
    many = deck(page(*(frame(p("x")) for _ in range(50))))
    assert [item.reject_class for item in parse(many, limits=Limits(blocks=10)).rejects] == ["too_many_blocks"]
    gone = parse_page('<draw:frame><draw:image xlink:href="Pictures/gone.png"/></draw:frame>')
    assert kinds(gone) == [("image", "")]
    assert gone.document is not None and gone.document.warnings == ["missing_part"]
    cells = '<table:table-row><table:table-cell table:number-columns-repeated="999999999"/></table:table-row>'
    wide = parse_page(f"<draw:frame><table:table>{cells * 2000}</table:table></draw:frame>", frame(p(f'a<text:s text:c="{"9" * 30}"/>b')))
    assert texts(wide) == ["a b"]
    empty = parse(deck(""))
    assert empty.document is not None and empty.document.warnings == ["no_semantic_blocks"]


WHOLE = deck(page(frame(p("text"), at(1, 2))))


@settings(max_examples=100)
@given(st.binary(max_size=200), st.integers(0, len(WHOLE)), st.integers(0, 40))
def test_any_bytes_give_blocks_or_a_reject(noise: bytes, start: int, gone: int) -> None:
    data = WHOLE[:start] + noise + WHOLE[start + gone :]
    parsed = parse(data)
    assert (parsed.document is None) == bool(parsed.rejects)
    assert parse(data) == parsed
