"""Presentations: order of slides and shapes, texts and lists, tables, charts, diagrams, notes, comments, pictures, hostile packages."""

from __future__ import annotations

import io
import zipfile

import pytest
from deck_files import NAMES, Deck, box, frame, group, para, parse_deck, parse_slide, part, picture, rels, shape, slide, xfrm
from document_files import CORPUS, kinds
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_cases import case

from raydex.ir.parsed import ParsedFile
from raydex.kernels.limits import Limits

PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000003000000020806000000") + b"\0" * 20
TITLE = 'type="title"'


def texts(parsed: ParsedFile) -> list[str]:
    return [block.text for block in parsed.blocks]


def events(parsed: ParsedFile) -> list[str]:
    return [event.name for event in parsed.events]


def rejects(parsed: ParsedFile) -> list[str]:
    return [reject.reject_class for reject in parsed.rejects]


def test_case_b10() -> None:
    parsed = parse_deck(case("b10-pptx-groups/cooling.pptx").read_bytes())
    assert kinds(parsed) == [
        ("heading", "Cooling loop"),
        ("paragraph", "pump A"),
        ("paragraph", "radiator B"),
        ("table", "Part | Flow\npump A | 12 l/min"),
        ("paragraph", "first line"),
        ("paragraph", "second line"),
        ("note", "Speaker note: bleed the air first."),
    ]
    assert {block.locator.slide for block in parsed.blocks} == {1}
    assert [block.locator.shape for block in parsed.blocks] == [2, 4, 6, 7, 8, 9, None]
    assert parsed.blocks[-1].locator.note == 1
    assert not any("linesecond" in text.replace("\n", "") for text in texts(parsed))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpora are not beside this checkout")
def test_corpus_sample() -> None:
    parsed = parse_deck((CORPUS / "pptx" / "powerpoint_sample.pptx").read_bytes())
    assert parsed.document is not None
    assert (parsed.document.title, parsed.document.metadata["slides"], parsed.document.page_count) == ("Test Table Slide", 3, 0)
    notes = {block.locator.slide: block.text for block in parsed.blocks if block.kind == "note"}
    assert notes == {2: "Some notes on the second slide.", 3: "Final notes on the third slide.\nSecond line of notes."}
    (table,) = (block for block in parsed.blocks if block.kind == "table")
    rows = table.metadata["rows"]
    assert len(rows) == 9
    assert [(cell["text"], cell["col_span"]) for cell in rows[0]] == [("", 1), ("Class1", 3), ("Class2", 3)]
    assert [(cell["text"], cell["row_span"], cell["col_span"]) for cell in rows[1][:3]] == [
        ("", 1, 1),
        ("A merged with B", 1, 2),
        ("C", 1, 1),
    ]
    assert rows[4][0] == {"text": "R3", "row_span": 2, "col_span": 1, "header": False}
    assert texts(parsed)[3:10] == [
        "Second slide title",
        "A rectangle shape with this text inside.",
        "Let’s introduce a list",
        "With foo",
        "Bar",
        "And baz things",
        "Some notes on the second slide.",
    ]
    third = [block for block in parsed.blocks if block.locator.slide == 3]
    assert {tuple(block.section_path) for block in third} == {("Slide 3",)}
    lists = [(block.text, block.metadata.get("number")) for block in third if block.kind == "list_item"]
    assert lists == [
        *(("List item4", 1), ("List item5", 2), ("List item6", 3), ("I1", None), ("I2", None), ("I3", None), ("I4", None)),
        *(("Item A", None), ("Item B", None), ("List1", 1), ("List2", 2), ("List3", 3), ("l1", None), ("l2", None), ("l3", None)),
    ]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpora are not beside this checkout")
def test_corpus_table_comments_and_charts() -> None:
    parsed = parse_deck((CORPUS / "pptx" / "fake-power-point-table.pptx").read_bytes())
    assert parsed.document is not None and parsed.document.title == "A Slide with a Table"
    assert [[cell["text"] for cell in row] for row in parsed.blocks[1].metadata["rows"]] == [
        ["Column 1", "Column 2", "Column 3"],
        ["Red", "Green", "Blue"],
        ["Purple", "Orange", "Yellow"],
        ["Tangerine", "Pink", "Aqua"],
    ]
    parsed = parse_deck((CORPUS / "pptx" / "powerpoint_comments.pptx").read_bytes())
    comments = [block for block in parsed.blocks if block.kind == "note"]
    assert [(block.metadata["author"], block.locator.slide, str(block.locator.comment)) for block in comments] == [
        ("John Reviewer", 1, "0.1"),
        ("Jane Smith", 1, "1.1"),
        ("Jane Smith", 3, "1.2"),
        ("Jane Smith", 3, "1.3"),
    ]
    assert [block.kind for block in parsed.blocks if block.locator.slide == 3][:4] == ["heading", "list_item", "list_item", "list_item"]
    (linked,) = (block for block in parsed.blocks if block.links)
    assert (linked.links[0].href, linked.links[0].text) == ("https://pypi.org/project/docling", "Python library")
    parsed = parse_deck((CORPUS / "pptx" / "pptx_chart.pptx").read_bytes())
    assert [block.text for block in parsed.blocks if block.kind == "table"] == [
        "Wild Duck Observations by Year\n | Freshwater Ducks | Saltwater Ducks\n2019 | 120 | 80\n2020 | 130 | 95\n2021 | 150 | 110\n"
        "2022 | 175 | 130",
        " | 2026\nQ1 | 10\nQ2 | 20\nQ3 | 30",
    ]


def test_what_a_library_writes() -> None:
    pptx = pytest.importorskip("pptx")
    from pptx.chart.data import CategoryChartData, XyChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    deck = pptx.Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "Plan"
    frame_of_text = first.placeholders[1].text_frame
    frame_of_text.text = "one"
    for text, level in (("one a", 1), ("two", 0)):
        paragraph = frame_of_text.add_paragraph()
        paragraph.text, paragraph.level = text, level
    first.notes_slide.notes_text_frame.text = "say this"
    second = deck.slides.add_slide(deck.slide_layouts[6])
    table = second.shapes.add_table(3, 3, Inches(1), Inches(1), Inches(4), Inches(1)).table
    table.cell(0, 0).merge(table.cell(1, 1))
    for at, text in (((0, 0), "wide"), ((0, 2), "h"), ((1, 2), "x"), ((2, 0), "a"), ((2, 1), "b"), ((2, 2), "c")):
        table.cell(*at).text = text
    data = CategoryChartData()
    data.categories = ["q1", "q2"]
    data.add_series("in", (1.5, None))
    data.add_series("out", (2, 3))
    second.shapes.add_chart(XL_CHART_TYPE.LINE, Inches(1), Inches(3), Inches(4), Inches(2), data)
    points = XyChartData()
    series = points.add_series("path")
    series.add_data_point(1, 10)
    series.add_data_point(2, 20)
    second.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, Inches(6), Inches(3), Inches(3), Inches(2), points)
    second.shapes.add_picture(io.BytesIO(_real_png()), Inches(1), Inches(6))
    buffer = io.BytesIO()
    deck.save(buffer)
    parsed = parse_deck(buffer.getvalue())
    assert kinds(parsed) == [
        ("heading", "Plan"),
        ("list_item", "one"),
        ("list_item", "one a"),
        ("list_item", "two"),
        ("note", "say this"),
        ("table", "wide |  | h\n |  | x\na | b | c"),
        ("table", " | in | out\nq1 | 1.5 | 2\nq2 |  | 3"),
        ("table", " | path\n1 | 10\n2 | 20"),
        ("image", "image.png"),
    ]
    assert [block.metadata["level"] for block in parsed.blocks[1:4]] == [0, 1, 0]
    assert parsed.blocks[5].metadata["rows"][0][0] == {"text": "wide", "row_span": 2, "col_span": 2, "header": True}
    assert parsed.blocks[5].section_path == ["Slide 2"]
    (asset,) = parsed.assets
    assert (asset.media_type, asset.width, asset.height) == ("image/png", 2, 1)
    assert parsed.blobs[asset.asset_id] == _real_png()
    assert parsed.document is not None and parsed.document.title == "Plan"


def _real_png() -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (2, 1)).save(buffer, "PNG")
    return buffer.getvalue()


def test_slides_follow_the_list_and_hidden_ones_say_so() -> None:
    pages = [slide(shape(para(f"T{n}"), ph=TITLE), box(f"b{n}", 0, 0), extra='show="0"' if n == 2 else "") for n in (1, 2, 3)]
    parsed = parse_deck(Deck(pages, order=[3, 1, 2]))
    assert texts(parsed) == ["T3", "b3", "T1", "b1", "T2", "b2"]
    assert [block.locator.slide for block in parsed.blocks] == [1, 1, 2, 2, 3, 3]
    assert [block.section_path for block in parsed.blocks[1::2]] == [["T3"], ["T1"], ["T2"]]
    assert [block.metadata.get("hidden") for block in parsed.blocks] == [None] * 4 + [True] * 2
    assert parsed.document is not None and parsed.document.metadata["hidden_slides"] == [3]


def test_a_slide_without_title_is_named_in_the_path_alone() -> None:
    pages = [slide(shape(para("T"), ph=TITLE)), slide(box("a", 0, 0), shape("<a:p/>", ph=TITLE)), slide()]
    parsed = parse_deck(Deck(pages))
    assert [(block.kind, block.text, block.section_path) for block in parsed.blocks] == [
        ("heading", "T", ["T"]),
        ("paragraph", "a", ["Slide 2"]),
    ]


def test_title_comes_first_and_on_one_line() -> None:
    title = shape("<a:p><a:r><a:t>Two </a:t></a:r><a:br/><a:r><a:t>lines</a:t></a:r></a:p>", ph='type="ctrTitle"', at=xfrm(0, 300))
    parsed = parse_slide(box("above", 0, 10), title, shape(para("again"), ph=TITLE, at=xfrm(0, 400)))
    assert kinds(parsed) == [("heading", "Two lines"), ("paragraph", "above"), ("paragraph", "again")]
    assert all(block.section_path == ["Two lines"] for block in parsed.blocks)


@pytest.mark.parametrize(
    ("title", "expected"),
    [("Annual report", "Annual report"), ("PowerPoint Presentation", "Opening"), ("", "Opening"), (" ", "Opening")],
)
def test_title_of_the_deck(title: str, expected: str) -> None:
    core = f'<c:coreProperties xmlns:c="urn:c" xmlns:d="urn:d"><d:title>{title}</d:title><d:creator>A. B.</d:creator></c:coreProperties>'
    parsed = parse_deck(Deck([slide(shape(para("Opening"), ph=TITLE))], parts={"docProps/core.xml": core}))
    assert parsed.document is not None and parsed.document.title == expected
    assert parsed.document.metadata["properties"]["creator"] == "A. B."
    assert parsed.document.metadata["slide_size"] == [720.0, 540.0]


def test_order_is_that_of_the_eye() -> None:
    shapes = [("f", 300, 300), ("a", 10, 12), ("d", 200, 100), ("b", 150, 10), ("c", 10, 100), ("e", 10, 300)]
    assert texts(parse_slide(*(box(*one) for one in shapes))) == ["a", "b", "c", "d", "e", "f"]


def test_columns_are_read_one_by_one() -> None:
    """Boxes of two columns that no common gap parts."""
    left = [box(f"l{n}", 0, 100 + 60 * n, 200, 50) for n in range(3)]
    right = [box(f"r{n}", 300, 122 + 60 * n, 200, 50) for n in range(3)]
    assert texts(parse_slide(*right, *left)) == ["l0", "l1", "l2", "r0", "r1", "r2"]


def test_a_backdrop_is_read_before_what_stands_on_it() -> None:
    parsed = parse_slide(box("b", 300, 50), box("c", 20, 100), box("back", 0, 0, 700, 500), box("a", 20, 50))
    assert texts(parsed) == ["back", "a", "b", "c"]


def test_groups_move_and_scale_their_shapes() -> None:
    inner = '<a:chOff x="0" y="0"/><a:chExt cx="1270000" cy="1270000"/>'
    moved = group(box("second", 0, 0, 50, 10, name=7) + box("third", 0, 50, 50, 10, name=8), xfrm(100, 300, 200, 200, inner=inner))
    parsed = parse_slide(moved, box("first", 0, 100), box("last", 0, 520))
    assert texts(parsed) == ["first", "second", "third", "last"]
    assert [block.locator.bbox for block in parsed.blocks[1:3]] == [(100, 300, 200, 320), (100, 400, 200, 420)]
    assert [block.locator.shape for block in parsed.blocks[1:3]] == [7, 8]


def test_a_flipped_group_mirrors_its_shapes() -> None:
    inner = '<a:chOff x="0" y="0"/><a:chExt cx="2540000" cy="254000"/>'
    mirrored = group(box("right", 0, 0, 50, 20) + box("left", 150, 0, 50, 20), xfrm(0, 0, 200, 20, inner=inner, extra=' flipH="1"'))
    parsed = parse_slide(mirrored)
    assert texts(parsed) == ["left", "right"]
    assert parsed.blocks[0].locator.bbox == (0, 0, 50, 20)


def test_groups_are_read_as_a_whole_unless_something_stands_inside() -> None:
    def card(name: str, x: float) -> str:
        inner = f'<a:chOff x="{round(x * 12_700)}" y="0"/><a:chExt cx="1270000" cy="1270000"/>'
        return group(box(f"{name} head", x, 0) + box(f"{name} body", x, 80), xfrm(x, 0, 100, 100, inner=inner))

    assert texts(parse_slide(card("B", 200), card("A", 0))) == ["A head", "A body", "B head", "B body"]
    assert texts(parse_slide(card("A", 0), box("between", 5, 40, 80))) == ["A head", "between", "A body"]


def test_groups_however_deep_lose_nothing() -> None:
    nested = box("deep", 5, 5)
    for _ in range(100):
        nested = group(nested + box("x", 0, 0))
    parsed = parse_slide(nested)
    assert sorted(texts(parsed)) == ["deep"] + ["x"] * 100


def layout_parts(layout: str, master: str) -> dict[str, str | bytes]:
    return {
        "ppt/slideLayouts/l.xml": part("p:sldLayout", f"<p:cSld><p:spTree>{layout}</p:spTree></p:cSld>"),
        "ppt/slideLayouts/_rels/l.xml.rels": rels(("m", "slideMaster", "../slideMasters/m.xml")),
        "ppt/slideMasters/m.xml": master,
    }


LAYOUT = ("lay", "slideLayout", "../slideLayouts/l.xml")
MASTER = part(
    "p:sldMaster",
    "<p:cSld><p:spTree>"
    + shape(para("Click to edit title"), ph=TITLE, at=xfrm(0, 0, 700, 50))
    + shape(para("Master text"), ph='type="body" idx="1"', at=xfrm(0, 100, 700, 300))
    + box("Confidential", 0, 500)
    + '</p:spTree></p:cSld><p:txStyles><p:titleStyle/><p:bodyStyle><a:lvl1pPr><a:buChar char="•"/></a:lvl1pPr>'
    '<a:lvl2pPr><a:buAutoNum type="alphaLcPeriod"/></a:lvl2pPr></p:bodyStyle></p:txStyles>',
)


def test_placeholders_inherit_places_and_bullets_but_no_text() -> None:
    layout = shape(para("Prompt"), ph='idx="4"', at=xfrm(400, 60, 300, 30)) + shape(
        para("Sub"), ph='type="subTitle" idx="7"', styles="<a:lvl1pPr><a:buNone/></a:lvl1pPr>"
    )
    one, two = '<a:pPr lvl="1"/>', "<a:pPr><a:buNone/></a:pPr>"
    shapes = [
        shape(para("body") + para("x", one) + para("y", one) + para("plain", two), ph='type="body" idx="1"', name=3),
        shape(para("sub"), ph='type="subTitle" idx="7"', at=xfrm(0, 450), name=4),
        shape(para("early"), ph='idx="4"', name=5),
        shape(para("Title"), ph=TITLE, name=6),
        box("box", 0, 480, name=7),
    ]
    parsed = parse_slide(*shapes, parts=layout_parts(layout, MASTER), links=[LAYOUT])
    assert kinds(parsed) == [
        ("heading", "Title"),
        ("list_item", "early"),
        ("list_item", "body"),
        ("list_item", "x"),
        ("list_item", "y"),
        ("paragraph", "plain"),
        ("paragraph", "sub"),
        ("paragraph", "box"),
    ]
    assert [block.metadata.get("marker") for block in parsed.blocks[3:5]] == ["a.", "b."]
    assert parsed.blocks[0].locator.bbox == (0, 0, 700, 50)
    assert parsed.blocks[1].locator.bbox == (400, 60, 700, 90)


def numbered(text: str, scheme: str = "arabicPeriod", level: int = 0, start: str = "") -> str:
    return para(
        text, f'<a:pPr lvl="{level}"><a:buAutoNum type="{scheme}"{f" startAt={chr(34)}{start}{chr(34)}" if start else ""}/></a:pPr>'
    )


def test_numbers_run_on_over_deeper_levels_and_empty_lines() -> None:
    body = "".join(
        [
            numbered("a"),
            numbered("b", level=1, scheme="romanLcParenBoth"),
            numbered("c", level=1, scheme="romanLcParenBoth"),
            "<a:p/>",
            numbered("d"),
            numbered("e", level=1, scheme="romanLcParenBoth"),
            para("break"),
            numbered("f"),
            numbered("g", start="4"),
            numbered("h", start="4"),
        ]
    )
    parsed = parse_slide(shape(body))
    shown = [(b.text, b.metadata["level"], b.metadata["number"], b.metadata["marker"]) for b in parsed.blocks if b.kind == "list_item"]
    assert shown == [
        ("a", 0, 1, "1."),
        ("b", 1, 1, "(i)"),
        ("c", 1, 2, "(ii)"),
        ("d", 0, 2, "2."),
        ("e", 1, 1, "(i)"),
        ("f", 0, 1, "1."),
        ("g", 0, 4, "4."),
        ("h", 0, 5, "5."),
    ]


@pytest.mark.parametrize(
    ("scheme", "start", "shown"),
    [
        ("alphaUcParenR", "28", "AB)"),
        ("romanUcPlain", "1994", "MCMXCIV"),
        ("arabicPlain", "7", "7"),
        ("circleNumDbPlain", "3", "3."),
        ("arabicPeriod", "999999", "1."),
        ("romanLcPeriod", "32767", "32767."),
        ("arabicPeriod", "-1", "1."),
    ],
)
def test_markers(scheme: str, start: str, shown: str) -> None:
    assert parse_slide(shape(numbered("x", scheme, start=start))).blocks[0].metadata["marker"] == shown


def test_runs_breaks_fields_and_links() -> None:
    def run(text: str, link: str = "") -> str:
        click = f'<a:rPr><a:hlinkClick r:id="{link}"/></a:rPr>' if link else ""
        return f"<a:r>{click}<a:t>{text}</a:t></a:r>"

    field_of_number = '<a:fld type="slidenum"><a:t>‹#›</a:t></a:fld>'
    body = (
        f"<a:p>{run('see ')}{run('the ', 'x')}{run('page', 'x')}<a:br/>{run('or ')}{run('next', 'n')}{run(' of ')}{field_of_number}</a:p>"
    )
    links = [("x", "hyperlink", "https://a.example/b"), ("n", "slide", "slide2.xml")]
    click = '<a:hlinkClick r:id="x"/>'
    pages = [slide(shape(body), shape(para("card"), at=xfrm(0, 50), inside=click)), slide(box("two", 0, 0))]
    parsed = parse_deck(Deck(pages, {1: links}))
    assert texts(parsed) == ["see the page\nor next of 1", "card", "two"]
    assert [(link.href, link.text) for link in parsed.blocks[0].links] == [("https://a.example/b", "the page"), ("#slide=2", "next")]
    assert [link.href for link in parsed.blocks[1].links] == ["https://a.example/b"]


def test_furniture_is_counted_and_left_out() -> None:
    number = '<a:p><a:fld type="slidenum"><a:t>1</a:t></a:fld></a:p>'
    marks = [shape(para("x"), ph=f'type="{kind}" idx="{at}"') for at, kind in enumerate(("dt", "ftr", "sldNum"), 10)]
    parsed = parse_slide(*marks, shape(number), box("text", 0, 0))
    assert texts(parsed) == ["text"]
    assert parsed.document is not None and parsed.document.metadata["furniture_shapes"] == 4


def test_formula_is_text() -> None:
    math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    a14 = "http://schemas.microsoft.com/office/drawing/2010/main"
    formula = f'<m:oMath xmlns:m="{math}"><m:r><m:t>x=1</m:t></m:r></m:oMath>'
    body = (
        "<a:p><a:r><a:t>so </a:t></a:r><mc:AlternateContent>"
        f'<mc:Choice xmlns:a14="{a14}" Requires="a14"><a14:m>{formula}</a14:m></mc:Choice>'
        "<mc:Fallback><a:r><a:t> </a:t></a:r></mc:Fallback></mc:AlternateContent></a:p>"
    )
    assert texts(parse_slide(shape(body))) == ["so x=1"]


def cell(text: str, extra: str = "") -> str:
    return f"<a:tc {extra}><a:txBody><a:bodyPr/>{para(text) if text else '<a:p/>'}</a:txBody></a:tc>"


def test_table_spans_headers_and_lines() -> None:
    rows = [
        cell("A", 'gridSpan="2"') + cell("", 'hMerge="1"') + cell("B"),
        cell("1", 'rowSpan="2"') + f"<a:tc><a:txBody>{para('x')}{para('y')}</a:txBody></a:tc>" + cell("2"),
        cell("", 'vMerge="1"') + cell("3") + cell("4", 'gridSpan="99999" rowSpan="-3"'),
    ]
    table = '<a:tbl><a:tblPr firstRow="1" firstCol="1"/>' + "".join(f"<a:tr>{row}</a:tr>" for row in rows) + "</a:tbl>"
    (block,) = parse_slide(frame(table, "table")).blocks
    assert block.text == "A |  | B\n1 | x; y | 2\n | 3 | 4"
    assert (block.locator.slide, block.locator.shape, block.locator.table, block.metadata["header_rows"]) == (1, 9, 1, 1)
    spans = [[(c["text"], c["row_span"], c["col_span"], c["header"]) for c in row] for row in block.metadata["rows"]]
    assert spans == [
        [("A", 1, 2, True), ("B", 1, 1, True)],
        [("1", 2, 1, True), ("x\ny", 1, 1, False), ("2", 1, 1, False)],
        [("3", 1, 1, False), ("4", 1, 3, False)],
    ]


def chart_part(inner: str, title: str = "") -> str:
    head = f"<c:title><c:tx><c:rich>{para(title)}</c:rich></c:tx></c:title>" if title else ""
    return part("c:chartSpace", f"<c:chart>{head}<c:plotArea>{inner}</c:plotArea></c:chart>")


def cached(tag: str, values: list[str], style: str = "") -> str:
    points = "".join(f'<c:pt idx="{at}"><c:v>{value}</c:v></c:pt>' for at, value in enumerate(values) if value)
    code = f"<c:formatCode>{style}</c:formatCode>" if style else ""
    return f'<c:{tag}><c:numRef><c:numCache>{code}<c:ptCount val="{len(values)}"/>{points}</c:numCache></c:numRef></c:{tag}>'


def series(name: str, *data: str) -> str:
    return (
        f"<c:ser><c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>{name}</c:v></c:pt></c:strCache></c:strRef></c:tx>{''.join(data)}</c:ser>"
    )


def parse_chart(inner: str, title: str = "") -> ParsedFile:
    links = [("c1", "chart", "../charts/c.xml")]
    return parse_slide(frame('<c:chart r:id="c1"/>', "chart"), parts={"ppt/charts/c.xml": chart_part(inner, title)}, links=links)


def test_chart_titles_dates_and_gaps() -> None:
    def axis(name: str, title: str) -> str:
        return f"<c:{name}><c:title><c:tx><c:rich>{para(title)}</c:rich></c:tx></c:title></c:{name}>"

    dates = cached("cat", ["43831", "43832", "43833"], "d/m/yyyy")
    plots = f"<c:barChart>{series('in', dates, cached('val', ['1', '', '3'], '0.0%'))}</c:barChart>"
    plots += f"<c:lineChart>{series('out', cached('val', ['4', '5', '6']))}</c:lineChart>"
    (block,) = parse_chart(plots + axis("dateAx", "day") + axis("valAx", "litres"), "Flow").blocks
    assert block.text == "Flow\nlitres\nday | in | out\n2020-01-01 | 1 | 4\n2020-01-02 |  | 5\n2020-01-03 | 3 | 6"
    assert block.metadata["chart"] == ["bar", "line"]
    assert (block.locator.shape, block.locator.table) == (9, 1)


def test_chart_with_levels_of_categories_and_bubbles() -> None:
    levels = "".join(
        f"<c:lvl>{''.join(f'<c:pt idx={chr(34)}{at}{chr(34)}><c:v>{text}</c:v></c:pt>' for at, text in level)}</c:lvl>"
        for level in ([(0, "Q1"), (1, "Q2"), (2, "Q1")], [(0, "2024"), (2, "2025")])
    )
    cat = f"<c:cat><c:multiLvlStrRef><c:multiLvlStrCache>{levels}</c:multiLvlStrCache></c:multiLvlStrRef></c:cat>"
    (block,) = parse_chart(f"<c:barChart>{series('s', cat, cached('val', ['1', '2', '3']))}</c:barChart>").blocks
    assert block.text == " |  | s\n2024 | Q1 | 1\n2024 | Q2 | 2\n2025 | Q1 | 3"
    bubbles = series("b", cached("xVal", ["1"]), cached("yVal", ["2"]), cached("bubbleSize", ["9"]))
    (block,) = parse_chart(f"<c:bubbleChart>{bubbles}</c:bubbleChart>").blocks
    assert block.text == " | b | b (size)\n1 | 2 | 9"


def test_charts_of_the_newer_format() -> None:
    cx = "http://schemas.microsoft.com/office/drawing/2014/chartex"
    chart = (
        f'<cx:chartSpace xmlns:cx="{cx}" {NAMES}><cx:chartData><cx:data id="0"><cx:strDim type="cat"><cx:lvl><cx:pt idx="0">a</cx:pt>'
        '<cx:pt idx="1">b</cx:pt></cx:lvl></cx:strDim><cx:numDim type="val"><cx:lvl><cx:pt idx="0">5</cx:pt><cx:pt idx="1">-2</cx:pt>'
        f"</cx:lvl></cx:numDim></cx:data></cx:chartData><cx:chart><cx:title><cx:tx><cx:rich>{para('Steps')}</cx:rich></cx:tx></cx:title><cx:plotArea>"
        '<cx:plotAreaRegion><cx:series layoutId="waterfall"><cx:tx><cx:txData><cx:v>net</cx:v></cx:txData></cx:tx><cx:dataId val="0"/>'
        "</cx:series></cx:plotAreaRegion></cx:plotArea></cx:chart></cx:chartSpace>"
    )
    choice = (
        f'<mc:Choice xmlns:cx="{cx}" Requires="cx1">{frame("<cx:chart r:id=" + chr(34) + "c1" + chr(34) + "/>", "chartex")}</mc:Choice>'
    )
    shown = f"<mc:AlternateContent>{choice}<mc:Fallback>{box('not available in your version', 0, 0)}</mc:Fallback></mc:AlternateContent>"
    (block,) = parse_slide(shown, parts={"ppt/charts/c.xml": chart}, links=[("c1", "chartEx", "../charts/c.xml")]).blocks
    assert block.text == "Steps\n | net\na | 5\nb | -2"


def test_sparse_charts_stay_small() -> None:
    many = "".join(series(f"s{n}", f'<c:val><c:numLit><c:pt idx="{n * 1000}"><c:v>{n}</c:v></c:pt></c:numLit></c:val>') for n in range(400))
    parsed = parse_chart(f"<c:barChart>{many}</c:barChart>")
    assert len(parsed.blocks) == 400
    assert parsed.blocks[7].text == " | s7\n7001 | 7"


def test_chart_without_data_keeps_its_title() -> None:
    parsed = parse_chart("<c:barChart/>", "Empty")
    assert kinds(parsed) == [("paragraph", "Empty")]
    assert "chart_without_data" in events(parsed)


def point(name: str, text: str, kind: str = "node") -> str:
    return f'<dgm:pt modelId="{name}" type="{kind}"><dgm:t>{para(text) if text else "<a:p/>"}</dgm:t></dgm:pt>'


def line(source: str, target: str, order: int = 0, kind: str = "parOf") -> str:
    return f'<dgm:cxn type="{kind}" srcId="{source}" destId="{target}" srcOrd="{order}"/>'


@pytest.mark.parametrize("cycle", ["", line("b1", "a") + line("b1", "b1")])
def test_diagram_in_the_order_of_its_tree(cycle: str) -> None:
    points = [("r", "", "doc"), ("b", "B", "node"), ("a", "A", "node"), ("b1", "B1", "node"), ("x", "ghost", "pres"), ("o", "lone", "node")]
    lines = line("r", "b", 1) + line("r", "a", 0) + line("b", "b1") + line("x", "a", 0, "presOf") + cycle
    data = part("dgm:dataModel", f"<dgm:ptLst>{''.join(point(*one) for one in points)}</dgm:ptLst><dgm:cxnLst>{lines}</dgm:cxnLst>")
    links = [("d", "diagramData", "../diagrams/d.xml")]
    parsed = parse_slide(frame('<dgm:relIds r:dm="d"/>', "diagram"), parts={"ppt/diagrams/d.xml": data}, links=links)
    assert [(b.kind, b.text, b.metadata["level"]) for b in parsed.blocks] == [
        ("list_item", "A", 0),
        ("list_item", "B", 0),
        ("list_item", "B1", 1),
        ("list_item", "lone", 0),
    ]


def test_pictures_have_bytes_alt_texts_and_links() -> None:
    links = [("i", "image", "../media/a.png"), ("e", "image", "https://a.example/b.png"), ("h", "hyperlink", "https://c.example")]
    fill = '<a:blipFill><a:blip r:embed="i"/></a:blipFill>'
    parsed = parse_slide(
        picture('r:embed="i"', alt="A pump", inside='<a:hlinkClick r:id="h"/>', name=4),
        picture('r:link="e"', y=50, alt="Far", name=5),
        shape(para("label"), at=xfrm(0, 100), fill=fill, name=6),
        shape("", at=xfrm(0, 150), about='descr="A drawn arrow"', name=7),
        parts={"ppt/media/a.png": PNG},
        links=links,
    )
    assert kinds(parsed) == [("image", "A pump"), ("image", "Far"), ("image", ""), ("paragraph", "label"), ("paragraph", "A drawn arrow")]
    assert [(a.media_type, a.href, a.alt, a.width, a.height, a.asset_id in parsed.blobs) for a in parsed.assets] == [
        ("image/png", "", "A pump", 3, 2, True),
        ("", "https://a.example/b.png", "Far", None, None, False),
        ("image/png", "", "", 3, 2, True),
    ]
    assert (parsed.blocks[0].locator.slide, parsed.blocks[0].locator.shape, parsed.blocks[0].links[0].href) == (1, 4, "https://c.example")


def test_objects_and_media_are_named() -> None:
    ole = f'<p:oleObj progId="Excel.Sheet.12" r:id="o">{picture("r:embed=" + chr(34) + "i" + chr(34))}</p:oleObj>'
    choice = '<mc:Choice Requires="v"><p:oleObj progId="Excel.Sheet.12"/></mc:Choice>'
    wrapped = f"<mc:AlternateContent>{choice}<mc:Fallback>{ole}</mc:Fallback></mc:AlternateContent>"
    film = picture('r:embed="i"', y=90, media='<a:videoFile r:link="v"/>')
    parsed = parse_slide(
        frame(wrapped, "ole"),
        film,
        frame("<a:other/>", "other", y=200),
        parts={"ppt/media/a.png": PNG},
        links=[("i", "image", "../media/a.png"), ("v", "video", "../media/v.mp4")],
    )
    assert [block.kind for block in parsed.blocks] == ["image", "image"]
    messages = {event.name: event.message for event in parsed.events}
    assert messages["embedded_object"] == "an embedded object (Excel.Sheet.12) is not read (1): slide 1 shape 9"
    assert set(messages) == {"embedded_object", "embedded_media", "unknown_graphic"}


def test_notes_without_their_furniture() -> None:
    notes = [
        shape("", ph='type="sldImg"'),
        shape(para("Say this") + para("and that"), ph='type="body" idx="1"'),
        shape(para("7"), ph='type="sldNum"'),
        shape(para("header"), ph='type="hdr"'),
    ]
    prompt = [shape(para("Click to add notes"), ph='type="body" idx="1"')]
    texts_of = [part("p:notes", f"<p:cSld><p:spTree>{''.join(shapes)}</p:spTree></p:cSld>") for shapes in (notes, prompt)]
    deck = Deck(
        [slide(shape(para("T"), ph=TITLE)), slide(box("b", 0, 0))],
        {n: [("n", "notesSlide", f"../notesSlides/n{n}.xml")] for n in (1, 2)},
        {f"ppt/notesSlides/n{n}.xml": text for n, text in enumerate(texts_of, 1)},
    )
    parsed = parse_deck(deck)
    assert kinds(parsed) == [("heading", "T"), ("note", "Say this\nand that"), ("paragraph", "b")]
    note = parsed.blocks[1]
    assert (str(note.locator), note.section_path, note.metadata) == ("slide=1;note=1", ["T"], {"speaker_notes": True})


def test_threaded_comments() -> None:
    p188 = "http://schemas.microsoft.com/office/powerpoint/2018/8/main"
    body = f"<p188:txBody>{para('Why?')}</p188:txBody>"
    answer = f'<p188:reply id="R" authorId="A" created="2026-01-02"><p188:txBody>{para("So.")}</p188:txBody></p188:reply>'
    comments = (
        f'<p188:cmLst xmlns:p188="{p188}" {NAMES}><p188:cm id="C" authorId="A" created="2026-01-01">'
        f"<p188:replyLst>{answer}</p188:replyLst>{body}</p188:cm></p188:cmLst>"
    )
    authors = f'<p188:authorLst xmlns:p188="{p188}"><p188:author id="A" name="Ann"/></p188:authorLst>'
    deck = Deck(
        [slide(box("b", 0, 0))],
        {1: [("c", "comments", "../comments/c.xml")]},
        {"ppt/comments/c.xml": comments, "ppt/authors.xml": authors},
        links=[("au", "authors", "authors.xml")],
    )
    parsed = parse_deck(deck)
    assert [(b.text, b.locator.comment, b.metadata["author"], b.metadata["created"]) for b in parsed.blocks[1:]] == [
        ("Why?", "C", "Ann", "2026-01-01"),
        ("So.", "R", "Ann", "2026-01-02"),
    ]


def test_sections_of_the_deck() -> None:
    p14 = "http://schemas.microsoft.com/office/powerpoint/2010/main"
    section = '<p14:section name="Part 1"><p14:sldIdLst><p14:sldId id="257"/></p14:sldIdLst></p14:section>'
    listed = f'<p14:sectionLst xmlns:p14="{p14}">{section}</p14:sectionLst>'
    parsed = parse_deck(Deck([slide(box("a", 0, 0)), slide(box("b", 0, 0))], more=f"<p:extLst><p:ext>{listed}</p:ext></p:extLst>"))
    assert parsed.document is not None and parsed.document.metadata["sections"] == [{"name": "Part 1", "slides": [2]}]


def test_strict_dialect() -> None:
    source = zipfile.ZipFile(io.BytesIO(Deck([slide(shape(para("T"), ph=TITLE))]).data()))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as package:
        for name in source.namelist():
            text = source.read(name).decode()
            for kind in ("drawingml", "presentationml", "officeDocument"):
                text = text.replace(f"http://schemas.openxmlformats.org/{kind}/2006/", f"http://purl.oclc.org/ooxml/{kind}/")
            package.writestr(name, text)
    assert kinds(parse_deck(buffer.getvalue())) == [("heading", "T")]


def test_a_broken_slide_costs_itself() -> None:
    doctype = '<!DOCTYPE p [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    parsed = parse_deck(Deck([slide(box("a", 0, 0)), "<p:sld", doctype + slide(box("&x;", 0, 0)), slide(box("d", 0, 0))]))
    assert [(block.kind, block.locator.slide) for block in parsed.blocks] == [
        ("paragraph", 1),
        ("error", 2),
        ("error", 3),
        ("paragraph", 4),
    ]
    assert parsed.document is not None and parsed.document.warnings == ["broken_slide"]
    assert "root:" not in str(parsed.blocks)


@pytest.mark.parametrize(
    ("page", "reject_class"),
    [("<p:sld", "invalid_input"), ("<!DOCTYPE p><p/>", "invalid_input"), ("<a>" * 400 + "</a>" * 400, "too_deep")],
    ids=["cut", "doctype", "deep"],
)
def test_a_deck_without_a_readable_slide_is_rejected(page: str, reject_class: str) -> None:
    assert rejects(parse_deck(Deck([page]))) == [reject_class]


def test_missing_parts_are_said() -> None:
    shapes = [picture('r:embed="i"'), frame('<c:chart r:id="none"/>', "chart", y=50), box("text", 0, 100)]
    deck = Deck([slide(*shapes), slide()], {1: [("i", "image", "../media/gone.png"), LAYOUT]})
    deck.order = [1, 2, 9, 1]
    parsed = parse_deck(deck)
    assert [block.kind for block in parsed.blocks] == ["image", "paragraph"]
    assert parsed.document is not None and parsed.document.warnings == ["missing_part"]
    assert "repeated_slide" in events(parsed)
    assert parsed.document.metadata["slides"] == 2


def test_instructions_and_remarks_inside_parts_are_no_text() -> None:
    body = "<?x y?><!-- r --><a:p><?x y?><a:pPr><?x y?><!-- r --></a:pPr><a:r><a:t>te<!-- r --><?x y?>xt</a:t></a:r></a:p>"
    assert texts(parse_slide("<?x y?>", group("<?x y?>" + shape(body)))) == ["text"]


def test_alt_text_and_link_stand_once() -> None:
    about, inside = 'descr="two lines" hidden="1"', '<a:hlinkClick r:id="x"/>'
    shapes = [shape(para("a") + para("b"), about=about, inside=inside), shape("", at=xfrm(0, 50), inside=inside)]
    parsed = parse_slide(*shapes, links=[("x", "hyperlink", "https://a.example")])
    assert [block.metadata for block in parsed.blocks] == [{"alt": "two lines", "hidden": True}, {"hidden": True}]
    assert [len(block.links) for block in parsed.blocks] == [1, 0]
    assert events(parsed) == ["link_without_text"]


def test_empty_deck_says_so() -> None:
    parsed = parse_deck(Deck([]))
    assert parsed.document is not None and parsed.document.warnings == ["no_semantic_blocks"]


def zip_of(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as package:
        for name, text in files.items():
            package.writestr(name, text)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "reject"),
    [
        (zip_of(a="b"), "invalid_input"),
        (Deck([slide()]).data()[:-40], "invalid_input"),
        (b"PK\x03\x04nothing", "invalid_input"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le") + b"\0" * 600, "encrypted"),
    ],
)
def test_no_deck_is_a_reject(data: bytes, reject: str) -> None:
    assert rejects(parse_deck(data)) == [reject]


def test_limits_are_typed_rejects() -> None:
    many = Deck([slide(*(box("x", 0, at) for at in range(50)))])
    assert rejects(parse_deck(many, limits=Limits(blocks=10))) == ["too_many_blocks"]
    assert rejects(parse_deck(many, limits=Limits(members=3))) == ["bomb"]
    assert rejects(parse_deck(many, limits=Limits(member_bytes=500))) == ["bomb"]
    big = Deck([slide(picture('r:embed="i"'))], {1: [("i", "image", "../media/a.png")]}, {"ppt/media/a.png": PNG * 1000})
    assert rejects(parse_deck(big, limits=Limits(members_bytes=20_000))) == ["bomb"]


def test_a_package_that_lies_about_its_sizes() -> None:
    data = Deck([slide(box("x" * 5000, 0, 0)), slide(box("y", 0, 0))]).data()
    (member,) = (one for one in zipfile.ZipFile(io.BytesIO(data)).infolist() if one.filename == "ppt/slides/slide1.xml")
    size = member.file_size.to_bytes(4, "little")
    parsed = parse_deck(data.replace(size, (member.file_size // 2).to_bytes(4, "little")))
    assert kinds(parsed) == [("error", "the slide cannot be read"), ("paragraph", "y")]
    assert rejects(parse_deck(data.replace(size, (1 << 30).to_bytes(4, "little")))) == ["bomb"]


def test_strange_numbers_are_no_harm() -> None:
    huge = "9" * 5000
    at = f'<a:xfrm rot="{huge}"><a:off x="{huge}" y="1in"/><a:ext cx="2cm" cy="-5"/></a:xfrm>'
    most = "999999999999999"
    inner = '<a:chOff x="1" y="1"/><a:chExt cx="1" cy="0"/>'
    far = f'<a:xfrm><a:off x="{most}" y="-{most}"/><a:ext cx="{most}" cy="1"/>{inner}</a:xfrm>'
    nested = box("in", 1, 1)
    for _ in range(30):
        nested = group(nested, far)
    about = f'<p:cNvPr id="{huge}" name=""/>'
    odd = shape(para("odd"), at=at).replace('<p:cNvPr id="2" name="s" ></p:cNvPr>', about)
    parsed = parse_slide(odd, nested, shape(numbered("n", start=huge)), shape(para("lvl", f'<a:pPr lvl="{huge}"/>')))
    assert sorted(texts(parsed)) == ["in", "lvl", "n", "odd"]


def test_shapes_turned_on_their_side() -> None:
    turned = shape(para("t"), at=xfrm(0, 40, 100, 20, extra=' rot="5400000"'))
    assert parse_slide(turned).blocks[0].locator.bbox == (40, 0, 60, 100)


def test_many_shapes_in_every_arrangement_end() -> None:
    stairs = [box("s", at * 3, at * 3, 50, 50) for at in range(1500)]
    same = [box("e", 0, 0) for _ in range(1500)]
    groups = [group(box("g", at, 0) + box("h", at, 90)) for at in range(700)]
    for shapes in (stairs, same, groups):
        assert len(parse_slide(*shapes).blocks) >= 1400


SHAPES = st.lists(
    st.tuples(st.integers(-50, 700), st.integers(-50, 500), st.integers(0, 300), st.integers(0, 300), st.booleans()), max_size=12
)


@settings(max_examples=100)
@given(SHAPES)
def test_every_shape_stands_once_whatever_the_arrangement(places: list[tuple[int, int, int, int, bool]]) -> None:
    shapes = [
        group(box(f"w{n}", x, y, w, h), name=100 + n) if grouped else box(f"w{n}", x, y, w, h)
        for n, (x, y, w, h, grouped) in enumerate(places)
    ]
    parsed = parse_slide(*shapes, *([group("".join(shapes[:3]), name=99)] if len(shapes) > 5 else []))
    expected = [f"w{n}" for n in range(len(places))] + ([f"w{n}" for n in range(3)] if len(places) > 5 else [])
    assert sorted(texts(parsed)) == sorted(expected)


WHOLE = Deck([slide(shape(para("T"), ph=TITLE), box("text", 0, 0))]).data()


@settings(max_examples=150)
@given(st.binary(max_size=300), st.integers(0, len(WHOLE)), st.integers(0, 40))
def test_any_bytes_give_blocks_or_a_reject(noise: bytes, at: int, gone: int) -> None:
    for data in (noise, b"PK\x03\x04" + noise, WHOLE[:at] + noise + WHOLE[at + gone :]):
        if data:
            parsed = parse_deck(data)
            assert (parsed.document is None) == bool(parsed.rejects)
            assert parse_deck(data) == parsed
