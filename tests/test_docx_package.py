"""Word packages: notes, text boxes, pictures, properties, parts that are broken, hostile files, laws."""

from __future__ import annotations

import re
import struct

import pytest
from document_files import kinds
from hypothesis import given, settings
from hypothesis import strategies as st
from word_files import (
    BULLETS,
    HEADINGS,
    NAMES,
    cell,
    definition,
    events,
    field,
    in_list,
    level,
    listing,
    pack,
    par,
    parse_word,
    picture,
    relations,
    root,
    row,
    run,
    style,
    table,
    word,
)

from raydex.ir.parsed import ParsedFile
from raydex.kernels.limits import Limits

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", 7, 5) + b"\x08\x02\x00\x00\x00" + bytes(4)

# --- notes, boxes, pictures ---


def test_notes_follow_the_block_that_refers_to_them() -> None:
    def note(kind: str, key: str, text: str, about: str = "") -> str:
        return f'<w:{kind} w:id="{key}" {about}>{text}</w:{kind}>'

    refer = '<w:r><w:{}Reference w:id="{}"/></w:r>'
    custom = '<w:r><w:footnoteReference w:id="4" w:customMarkFollows="1"/><w:t>*</w:t></w:r>'
    body = (
        par(run("a") + refer.format("footnote", 2) + run(" b") + refer.format("endnote", 1) + refer.format("comment", 5))
        + par(run("c") + custom)
        + table(row(cell(par(run("t") + refer.format("footnote", 3))), cell("u")))
    )
    parsed = parse_word(
        body,
        footnotes=note("footnote", "-1", par("line"), 'w:type="separator"')
        + note("footnote", "2", par("first") + par("more"))
        + note("footnote", "3", par("third"))
        + note("footnote", "4", par("starred"))
        + note("footnote", "9", par("nobody asks")),
        endnotes=note("endnote", "1", par("last")),
        comments=note("comment", "5", par(run("why?") + refer.format("comment", 5)), 'w:author="Ann" w:date="2026-01-02T03:04:05Z"'),
    )
    assert [(block.kind, block.text, str(block.locator)) for block in parsed.blocks] == [
        ("paragraph", "a[1] b[i]", "paragraph=1"),
        ("note", "first\nmore", "paragraph=1;note=1"),
        ("note", "last", "paragraph=1;note=2"),
        ("note", "why?", "comment=5;paragraph=1;note=3"),
        ("paragraph", "c*", "paragraph=2"),
        ("note", "starred", "paragraph=2;note=4"),
        ("table", "t[2] | u", "paragraph=3;table=1"),
        ("note", "third", "paragraph=3;note=5"),
    ]
    assert [block.metadata for block in parsed.blocks if block.kind == "note"] == [
        {"footnote": "1"},
        {"endnote": "i"},
        {"comment": "5", "author": "Ann", "created": "2026-01-02T03:04:05Z"},
        {"footnote": "*"},
        {"footnote": "2"},
    ]
    assert events(parsed) == {"unreferenced_notes": "1"}


def test_a_text_box_is_read_once() -> None:
    box = f"<w:txbxContent>{par('in the box')}{par('second', in_list(1))}</w:txbxContent>"
    both = (
        "<mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wp:anchor><a:graphic><a:graphicData><wps:wsp><wps:txbx>"
        f"{box}</wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:anchor></w:drawing></mc:Choice>"
        f"<mc:Fallback><w:pict><v:shape><v:textbox>{box}</v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent>"
    )
    alone = f"<w:pict><v:shape><v:textbox><w:txbxContent>{par('old')}</w:txbxContent></v:textbox></v:shape></w:pict>"
    parsed = parse_word(par(run("around") + f"<w:r>{both}</w:r><w:r>{alone}</w:r>") + par("after"), numbering=BULLETS)
    assert kinds(parsed) == [
        ("paragraph", "around"),
        ("paragraph", "in the box"),
        ("list_item", "second"),
        ("paragraph", "old"),
        ("paragraph", "after"),
    ]


def test_pictures_have_bytes_and_stand_at_their_place() -> None:
    old = '<w:r><w:pict><v:shape alt="old"><v:imagedata r:id="p"/></v:shape></w:pict></w:r>'
    chart = (
        '<w:r><w:drawing><wp:inline><a:graphic><a:graphicData><c:chart r:id="x"/></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>'
    )
    click = '<a:hlinkClick r:id="h"/>'
    body = (
        par(run("a") + picture('r:embed="p"', "a bridge", click)) + par(picture('r:link="far"', "far")) + par(old + picture('r:embed="no"'))
    )
    parsed = parse_word(
        body + par(chart) + par("z"),
        links=(
            ("p", "image", "media/i.png"),
            ("far", "image", "http://c.example/i.jpg"),
            ("h", "hyperlink", "http://d.example/"),
            ("no", "image", "media/none.png"),
        ),
        more={"word/media/i.png": PNG},
    )
    assert kinds(parsed) == [
        ("paragraph", "a"),
        ("image", "a bridge"),
        ("image", "far"),
        ("image", "old"),
        ("image", ""),
        ("paragraph", "z"),
    ]
    assert [(asset.media_type, asset.width, asset.height, asset.alt, asset.href) for asset in parsed.assets] == [
        ("image/png", 7, 5, "a bridge", "word/media/i.png"),
        ("", None, None, "far", "http://c.example/i.jpg"),
        ("image/png", 7, 5, "old", "word/media/i.png"),
        ("", None, None, "", "word/media/none.png"),
    ]
    assert [parsed.blobs.get(asset.asset_id) for asset in parsed.assets] == [PNG, None, PNG, None]
    assert parsed.blocks[1].links[0].href == "http://d.example/"
    assert events(parsed) == {"chart": "1", "missing_part": "1"}


# --- the package ---


def test_properties_and_furniture() -> None:
    core = (
        '<cp:coreProperties xmlns:cp="urn:cp" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
        "<dc:title> Report </dc:title><dc:creator>Ann</dc:creator><dcterms:created>2026-01-01T00:00:00Z</dcterms:created>"
        "<dcterms:modified>2026-01-02T00:00:00Z</dcterms:modified></cp:coreProperties>"
    )
    parsed = parse_word(
        word(
            par("x") + '<w:altChunk r:id="a"/>',
            links=(("f", "footer", "footer1.xml"),),
            more={"docProps/core.xml": core, "word/footer1.xml": root("ftr", par("page"))},
        )
    )
    assert kinds(parsed) == [("paragraph", "x")]
    assert parsed.document is not None and parsed.document.title == "Report"
    assert parsed.document.metadata == {
        "title": "Report",
        "creator": "Ann",
        "created": "2026-01-01T00:00:00Z",
        "modified": "2026-01-02T00:00:00Z",
    }
    assert set(events(parsed)) == {"alt_chunk", "headers_footers_left_out"}


def test_the_language_of_the_styles_stands_where_the_properties_name_none() -> None:
    styles = '<w:docDefaults><w:rPrDefault><w:rPr><w:lang w:val="de-DE"/></w:rPr></w:rPrDefault></w:docDefaults>'
    core = (
        '<cp:coreProperties xmlns:cp="urn:cp" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:language>fr</dc:language></cp:coreProperties>'
    )
    for more, language in (({}, "de-DE"), ({"docProps/core.xml": core}, "fr")):
        document = parse_word(word(par("x"), styles=styles, more=more)).document
        assert document is not None and document.metadata == {"language": language}


def test_the_strict_dialect_and_other_places_of_the_main_part() -> None:
    strict = root("document", f"<w:body>{par('strict')}</w:body>")
    for office, name in (("officeDocument", "officeDocument"), ("wordprocessingml", "wordprocessingml")):
        strict = strict.replace(f"http://schemas.openxmlformats.org/{office}/2006/", f"http://purl.oclc.org/ooxml/{name}/")
    assert "purl" in strict
    data = pack({"_rels/.rels": relations([("d", "officeDocument", "/word/other.xml")]), "word/other.xml": strict})
    assert kinds(parse_word(data)) == [("paragraph", "strict")]
    assert kinds(parse_word(pack({"word/document.xml": strict}))) == [("paragraph", "strict")]


def test_content_controls_and_wrappers_are_read_through() -> None:
    inner = f"<w:sdt><w:sdtContent>{cell('c')}</w:sdtContent></w:sdt>"
    body = (
        f"<w:sdt><w:sdtPr/><w:sdtContent>{par('a')}<w:customXml>{par('b')}</w:customXml></w:sdtContent></w:sdt>"
        f"<w:tbl><w:sdt><w:sdtContent>{row(inner, cell('d'))}</w:sdtContent></w:sdt></w:tbl>"
        + par(f"<w:smartTag>{run('e')}<w:sdt><w:sdtContent>{run('f')}</w:sdtContent></w:sdt></w:smartTag>")
    )
    assert kinds(parse_word(body)) == [("paragraph", "a"), ("paragraph", "b"), ("table", "c | d"), ("paragraph", "ef")]


def reject(parsed: ParsedFile) -> list[str]:
    return [item.reject_class for item in parsed.rejects]


def test_broken_packages_are_typed_rejects() -> None:
    good = word(par("x"))
    assert reject(parse_word(good[: len(good) // 2])) == ["invalid_input"]
    assert reject(parse_word(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le") + bytes(600))) == ["encrypted"]
    assert reject(parse_word(pack({"a.txt": "x"}))) == ["invalid_input"]
    assert reject(parse_word(pack({"word/document.xml": "<a><b></a>"}))) == ["invalid_input"]
    assert reject(parse_word(pack({"word/document.xml": "<a/>"}))) == ["invalid_input"]
    entity = f'<!DOCTYPE w [<!ENTITY e "x">]><w:document {NAMES}><w:body/></w:document>'
    assert reject(parse_word(pack({"word/document.xml": entity}))) == ["invalid_input"]
    deep = table(row("<w:tc>" * 300 + "</w:tc>" * 300))
    assert reject(parse_word(deep)) == ["too_deep"]
    assert reject(parse_word(par("x") * 30, limits=Limits(blocks=10))) == ["too_many_blocks"]
    assert reject(parse_word(par("x" * 5_000), limits=Limits(member_bytes=4_000))) == ["bomb"]
    lying = bytearray(good)
    at = good.index(b"PK\x01\x02")
    at = good.index(b"word/document.xml", at) - 46
    lying[at + 24 : at + 28] = struct.pack("<I", 5)
    assert reject(parse_word(bytes(lying))) == ["invalid_input"] or kinds(parse_word(bytes(lying))) == [("paragraph", "x")]


def test_broken_side_parts_cost_only_themselves() -> None:
    parsed = parse_word(
        word(
            par("x", '<w:pStyle w:val="Heading2"/>' + in_list(1)),
            links=(("s", "styles", "styles.xml"), ("n", "numbering", "none.xml")),
            more={"word/styles.xml": "<a>", "docProps/core.xml": "<"},
        )
    )
    assert [(block.kind, block.metadata["level"]) for block in parsed.blocks] == [("heading", 2)]
    assert events(parsed) == {"broken_part": "2", "missing_part": "1"}


@pytest.mark.parametrize(
    "body",
    [
        "".join(par("x", f'<w:pStyle w:val="s{at}"/>') for at in range(2_000)),
        par(field('HYPERLINK "a"', "") * 3_000 + run("x")),
        par('<w:r><w:fldChar w:fldCharType="begin"/></w:r>' * 20_000 + run("x")),
        table(*(row(cell("a", '<w:gridSpan w:val="999999999"/>'), cell("b", "<w:vMerge/>")) for _ in range(500))),
        "".join(par("x", in_list(1, at % 40)) for at in range(3_000)),
        par(run("a(", '<w:rFonts w:ascii="Courier"/>') * 20_000),
        "<w:p/>" * 50_000 + par("x"),
    ],
)
def test_hostile_bodies_end(body: str) -> None:
    chain = "".join(style(f"s{at}", above=f"s{at + 1}") for at in range(2_000))
    parsed = parse_word(body, styles=chain, numbering=definition(1, level(0, "%1" * 200, "upperRoman", 999_999_999_999)) + listing(1, 1))
    assert parsed.document is not None
    assert sum(len(block.text) for block in parsed.blocks) < 200_000


def test_a_picture_is_named_once_however_often_it_stands() -> None:
    parsed = parse_word(
        par(picture('r:embed="p"') * 50),
        links=(("p", "image", "media/i.png"),),
        more={"word/media/i.png": PNG + bytes(1_000)},
        limits=Limits(members_bytes=20_000),
    )
    assert len(parsed.assets) == 50
    assert len({id(data) for data in parsed.blobs.values()}) == 1


PIECES = st.recursive(
    st.sampled_from(
        [
            par("W"),
            par("W", in_list(1)),
            par("W", '<w:pStyle w:val="H1"/>'),
            par("W", "<w:rPr><w:del/></w:rPr>"),
            par(f"<w:del>{run('D')}</w:del><w:ins>{run('W')}</w:ins>"),
            par(field("REF D", run("W"))),
            par(f"<w:hyperlink w:anchor='a'>{run('W')}</w:hyperlink>{run('D', '<w:vanish/>')}"),
        ]
    ),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        .map("".join)
        .flatmap(
            lambda text: st.sampled_from(
                [
                    text,
                    table(row(cell(text + par("W")), cell("W"))),
                    f"<w:sdt><w:sdtContent>{text}</w:sdtContent></w:sdt>",
                    par(f"<w:r><w:pict><v:textbox><w:txbxContent>{text}</w:txbxContent></v:textbox></w:pict></w:r>{run('W')}"),
                ]
            )
        )
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, max_size=5))
def test_every_visible_word_stands_once_and_no_deleted_one(parts: list[str]) -> None:
    count = iter(range(10_000))
    body = re.sub(">W<", lambda _: f">w{next(count)}w<", "".join(parts)).replace(">D<", ">gone<")
    parsed = parse_word(body, styles=HEADINGS, numbering=BULLETS)
    found = [word for block in parsed.blocks for word in re.findall(r"w\d+w", block.text)]
    assert sorted(found) == sorted(re.findall(r"w\d+w", body))
    assert not any("gone" in block.text for block in parsed.blocks)
    assert parse_word(body, styles=HEADINGS, numbering=BULLETS) == parsed


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.text("<>/w:prtbl &;'\"=", max_size=100), st.integers(0, 3_000), st.integers(0, 255))
def test_any_bytes_give_blocks_or_a_reject(data: bytes, soup: str, at: int, value: int) -> None:
    good = bytearray(word(par("x") + par("y")))
    good[at % len(good)] = value
    for made in (data or b"x", bytes(good), pack({"word/document.xml": soup}), pack({"word/document.xml": root("document", soup)})):
        parsed = parse_word(made)
        assert (parsed.document is None) == bool(parsed.rejects)
