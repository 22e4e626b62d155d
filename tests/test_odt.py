"""OpenDocument text: headings with numbers, lists, tables, notes, changes, pictures, hostile files."""

from __future__ import annotations

import re
import struct

import pytest
from document_files import kinds, parse_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from word_files import events, pack

from raydex.ir.parsed import ParsedFile
from raydex.kernels.limits import Limits

ODT = "application/vnd.oasis.opendocument.text"
OASIS = "urn:oasis:names:tc:opendocument:xmlns:"
NAMES = " ".join(f'xmlns:{name}="{OASIS}{name}:1.0"' for name in ("office", "text", "table", "style", "meta", "manifest")) + (
    f' xmlns:draw="{OASIS}drawing:1.0" xmlns:svg="{OASIS}svg-compatible:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
)
STYLES = (
    '<text:outline-style><text:outline-level-style text:level="1" style:num-format="1"/>'
    '<text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2" style:num-suffix="."/></text:outline-style>'
    '<text:list-style style:name="N"><text:list-level-style-number text:level="1" style:num-format="a" style:num-suffix=")"/>'
    '<text:list-level-style-bullet text:level="2" text:bullet-char="•"/></text:list-style>'
    '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>'
    '<style:style style:name="Dark" style:family="text"><style:text-properties text:display="none"/></style:style>'
)
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", 7, 5) + b"\x08\x02\x00\x00\x00" + bytes(4)


def root(name: str, inner: str) -> str:
    return f"<office:{name} {NAMES}>{inner}</office:{name}>"


def odt(body: str, more: dict[str, str | bytes] | None = None) -> bytes:
    content = root("document-content", f"<office:body><office:text>{body}</office:text></office:body>")
    styles = root("document-styles", f"<office:styles>{STYLES}</office:styles>")
    return pack({"mimetype": ODT, "content.xml": content, "styles.xml": styles} | (more or {}))


def parse_odt(data: bytes | str, limits: Limits | None = None) -> ParsedFile:
    return parse_bytes(odt(data) if isinstance(data, str) else data, ODT, path="file.odt", limits=limits)


def par(inner: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{inner}</text:p>'


def item(*inner: str, about: str = "") -> str:
    return f"<text:list-item {about}>{''.join(inner)}</text:list-item>"


def listed(*items: str, about: str = 'text:style-name="N"') -> str:
    return f"<text:list {about}>{''.join(items)}</text:list>"


def cell(inner: str, about: str = "") -> str:
    return f"<table:table-cell {about}>{inner if inner.startswith('<') else par(inner)}</table:table-cell>"


def row(*cells: str, about: str = "") -> str:
    return f"<table:table-row {about}>{''.join(cells)}</table:table-row>"


def test_headings_have_levels_and_numbers() -> None:
    def head(level: int, text: str, about: str = "") -> str:
        return f'<text:h text:outline-level="{level}" {about}>{text}</text:h>'

    body = (
        par("Big", "P1")
        + head(1, "A")
        + head(2, "B")
        + head(2, "C")
        + head(1, "D", 'text:is-list-header="true"')
        + head(1, "E")
        + head(9, "F")
    )
    parsed = parse_odt(body)
    assert [(b.text, b.metadata["level"], b.metadata.get("number")) for b in parsed.blocks] == [
        ("Big", 1, None),
        ("A", 1, "1"),
        ("B", 2, "1.1"),
        ("C", 2, "1.2"),
        ("D", 1, None),
        ("E", 1, "2"),
        ("F", 6, None),
    ]
    assert parsed.document is not None and parsed.document.title == "Big"


def test_lists_count_and_go_on() -> None:
    body = (
        listed(item(par("a"), par("more"), listed(item(par("b")), about="")), item(par("c")), about='text:style-name="N" xml:id="l1"')
        + listed(item(par("d")))
        + listed(item(par("e")), about='text:style-name="N" text:continue-list="l1"')
        + listed(item(par("f"), about='text:start-value="9"'), "<text:list-header>" + par("g") + "</text:list-header>")
    )
    assert [(b.kind, b.text, b.metadata.get("level"), b.metadata.get("label")) for b in parse_odt(body).blocks] == [
        ("list_item", "a", 0, "a)"),
        ("paragraph", "more", None, None),
        ("list_item", "b", 1, None),
        ("list_item", "c", 0, "b)"),
        ("list_item", "d", 0, "a)"),
        ("list_item", "e", 0, "c)"),
        ("list_item", "f", 0, "i)"),
        ("paragraph", "g", None, None),
    ]


def test_text_of_a_paragraph() -> None:
    body = (
        "<text:tracked-changes><text:deletion>" + par("gone") + "</text:deletion></text:tracked-changes>"
        + par(
            "\n  a  <text:span> b</text:span><text:s text:c='2'/>c<text:tab/>d<text:line-break/>e"
            "<text:change-start/>new<text:change-end/><text:span text:style-name='Dark'>dark</text:span>"
            "<text:a xlink:href='http://a.example/'>link</text:a><text:page-number>7</text:page-number>"
        )
        + "<text:section>" + par("in") + "</text:section><text:section text:display='none'>" + par("out") + "</text:section>"
        + "<text:table-of-content><text:table-of-content-source>" + par("x") + "</text:table-of-content-source><text:index-body>"
        + par("entry") + "</text:index-body></text:table-of-content>"
        + par("one", "Preformatted_20_Text") + par("<text:s text:c='2'/>two", "Preformatted_20_Text")
    )  # fmt: skip
    parsed = parse_odt(body)
    assert kinds(parsed) == [("paragraph", "a b  c\td\nenewlink7"), ("paragraph", "in"), ("paragraph", "entry"), ("code", "one\n  two")]
    assert [(link.href, link.text) for link in parsed.blocks[0].links] == [("http://a.example/", "link")]
    assert events(parsed) == {"hidden_text": "2"}


def test_tables() -> None:
    inner = "<table:table>" + row(cell("x"), cell("y")) + "</table:table>"
    body = (
        "<table:table><table:table-column/><table:table-header-rows>"
        + row(cell("h", 'table:number-columns-spanned="2"'), "<table:covered-table-cell/>")
        + "</table:table-header-rows>"
        + row(cell("a", 'table:number-rows-spanned="2"'), cell(par("b") + inner + listed(item(par("one")))))
        + row("<table:covered-table-cell/>", cell("c"), about='table:number-rows-repeated="2"')
        + "</table:table>"
    )
    (block,) = parse_odt(body).blocks
    assert block.text == "h\na | b; x | y; a) one\n | c\nc"
    assert [[(c["text"], c["row_span"], c["col_span"]) for c in line] for line in block.metadata["rows"]] == [
        [("h", 1, 2)],
        [("a", 2, 1), ("b\nx | y\na) one", 1, 1)],
        [("c", 1, 1)],
        [("c", 1, 1)],
    ]
    assert block.metadata["header_rows"] == 1


def test_notes_boxes_and_pictures_follow_their_block() -> None:
    def note(kind: str, mark: str, text: str) -> str:
        cited = f"<text:note-citation>{mark}</text:note-citation>"
        return f'<text:note text:note-class="{kind}">{cited}<text:note-body>{par(text)}</text:note-body></text:note>'

    said = f'<office:annotation office:name="k1"><dc:creator>Ann</dc:creator><dc:date>2026-01-02</dc:date>{par("why?")}</office:annotation>'
    images = '<draw:image xlink:href="Pictures/i.png"/><draw:image xlink:href="Pictures/j.svg"/>'
    frame = f"<draw:frame>{images}<svg:desc>a bridge</svg:desc></draw:frame>"
    box = f"<draw:frame><draw:text-box>{par('boxed')}</draw:text-box></draw:frame>"
    far = '<draw:frame><draw:image xlink:href="http://b.example/i.png"/></draw:frame>'
    body = par(f"a{note('footnote', '1', 'low')} b{said}{frame}{box}") + par(far) + par(f"c{note('endnote', 'i', 'last')}")
    parsed = parse_odt(odt(body, {"Pictures/i.png": PNG}))
    assert [(b.kind, b.text, str(b.locator)) for b in parsed.blocks] == [
        ("paragraph", "a[1] b", "paragraph=1"),
        ("image", "a bridge", "paragraph=1;image=1"),
        ("paragraph", "boxed", "paragraph=2"),
        ("note", "low", "paragraph=1;note=1"),
        ("note", "why?", "paragraph=1;note=2"),
        ("image", "", "paragraph=3;image=2"),
        ("paragraph", "c[i]", "paragraph=4"),
        ("note", "last", "paragraph=4;note=3"),
    ]
    assert [b.metadata for b in parsed.blocks if b.kind == "note"] == [
        {"footnote": "1"},
        {"comment": "k1", "author": "Ann", "created": "2026-01-02"},
        {"endnote": "i"},
    ]
    assert [(a.media_type, a.width, a.href, parsed.blobs.get(a.asset_id)) for a in parsed.assets] == [
        ("image/png", 7, "Pictures/i.png", PNG),
        ("", None, "http://b.example/i.png", None),
    ]


def test_properties_and_locked_documents() -> None:
    meta = root("document-meta", "<office:meta><dc:title>Report</dc:title><meta:initial-creator>Ann</meta:initial-creator></office:meta>")
    parsed = parse_odt(odt(par("x"), {"meta.xml": meta}))
    assert parsed.document is not None and parsed.document.title == "Report"
    assert parsed.document.metadata == {"title": "Report", "creator": "Ann"}
    locked = f"<manifest:manifest {NAMES}><manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>"
    assert [r.reject_class for r in parse_odt(odt(par("x"), {"META-INF/manifest.xml": locked})).rejects] == ["encrypted"]


@pytest.mark.parametrize(
    ("data", "reject"),
    [
        (pack({"a": "b"}), "invalid_input"),
        (pack({"content.xml": "<a/>"}), "invalid_input"),
        (odt(par("x"))[:300], "invalid_input"),
        (odt("<text:section>" * 300 + "</text:section>" * 300), "too_deep"),
        (odt("<table:table>" + row(cell("x", 'table:number-columns-repeated="999999999"')) + "</table:table>"), "too_many_blocks"),
        (odt("<table:table>" + row(cell("x"), about='table:number-rows-repeated="999999999"') + "</table:table>"), "too_many_blocks"),
    ],
)
def test_hostile_files_are_typed_rejects(data: bytes, reject: str) -> None:
    assert [r.reject_class for r in parse_odt(data, Limits(blocks=1_000)).rejects] == [reject]


PIECES = st.recursive(
    st.sampled_from([par("W"), par("W", "P1"), par("a<text:span>W</text:span>"), par("W", "Preformatted_20_Text")]),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        .map("".join)
        .flatmap(
            lambda text: st.sampled_from(
                [
                    listed(item(text)),
                    "<table:table>" + row(cell(text), cell("W")) + "</table:table>",
                    par(f"W<draw:frame><draw:text-box>{text}</draw:text-box></draw:frame>"),
                    par(f"W<text:note><text:note-body>{text}</text:note-body></text:note>"),
                    f"<text:section>{text}</text:section>",
                ]
            )
        )
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, max_size=5))
def test_every_word_stands_once(parts: list[str]) -> None:
    count = iter(range(10_000))
    body = re.sub("W", lambda _: f"w{next(count)}w", "".join(parts))
    data = odt(body)  # once: a package tells when it was written
    parsed = parse_odt(data)
    found = [word for block in parsed.blocks for word in re.findall(r"w\d+w", block.text)]
    assert sorted(found) == sorted(re.findall(r"w\d+w", body))
    assert parse_odt(data) == parsed


@settings(max_examples=60, deadline=None)
@given(st.text("<>/text:phdraw &;'\"=", max_size=100), st.integers(0, 3_000), st.integers(0, 255))
def test_any_bytes_give_blocks_or_a_reject(soup: str, at: int, value: int) -> None:
    good = bytearray(odt(par("x")))
    good[at % len(good)] = value
    for made in (bytes(good), pack({"content.xml": soup}), odt(soup)):
        parsed = parse_odt(made)
        assert (parsed.document is None) == bool(parsed.rejects)
