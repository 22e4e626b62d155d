"""Word packages: text with all changes accepted, headings and numbers, lists, signs, fields, formulas, tables."""

from __future__ import annotations

import io

import docx
import pytest
from document_files import CORPUS, kinds, parse_bytes
from shared_cases import case
from word_files import (
    BULLETS,
    DOCX,
    HEADINGS,
    cell,
    definition,
    events,
    field,
    in_list,
    level,
    listing,
    numbers,
    par,
    parse_word,
    row,
    run,
    spans,
    style,
    table,
)

# --- changes ---


def test_case_b06() -> None:
    parsed = parse_bytes(case("b06-docx-tracked-changes/limits.docx").read_bytes(), DOCX)
    assert [block.text for block in parsed.blocks] == [
        "Limits",
        "The limit is 55 km/h.",
        "Paragraph added in review.",
        "Lamps stay on.",
        "Wipers stay on.",
    ]
    assert not any("40" in block.text for block in parsed.blocks)


def test_a_paragraph_whose_mark_is_deleted_goes_on_in_the_next() -> None:
    deleted = "<w:rPr><w:del/></w:rPr>"
    parsed = parse_word(
        par("one ", '<w:pStyle w:val="H1"/>' + deleted) + par("two") + par("last", deleted) + table(row(cell("a"), cell("b"))),
        styles=HEADINGS,
    )
    assert kinds(parsed) == [("paragraph", "one two"), ("paragraph", "last"), ("table", "a | b")]
    assert [str(block.locator) for block in parsed.blocks] == ["paragraph=1", "paragraph=3", "paragraph=4;table=1"]


def test_deleted_rows_cells_and_nested_changes() -> None:
    changed = par(f"<w:ins>{run('kept ')}<w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:ins><w:moveTo>{run('moved')}</w:moveTo>")
    rows = row(cell("gone"), about="<w:del/>"), row(cell("gone", "<w:cellDel/>"), cell(changed), cell("new", "<w:cellIns/>"))
    assert kinds(parse_word(table(*rows))) == [("table", "kept moved | new")]


# --- headings and numbers ---


def test_case_b08() -> None:
    parsed = parse_bytes(case("b08-docx-outline-numbers/system.docx").read_bytes(), DOCX)
    heads = [(block.metadata["number"], block.text, block.metadata["level"]) for block in parsed.blocks if block.kind == "heading"]
    assert heads == [("3", "System", 1), ("3.1", "Brakes", 2), ("3.2", "Lights", 2), ("4", "Service", 1), ("4.1", "Plan", 2)]
    paths = {block.text: block.section_path for block in parsed.blocks}
    assert paths["front disc"] == paths["rear drum"] == ["System", "Brakes"]
    assert paths["low beam"] == ["System", "Lights"]
    assert paths["Yearly."] == ["Service", "Plan"]
    assert [block.kind for block in parsed.blocks if block.text in ("front disc", "rear drum", "low beam")] == ["list_item"] * 3


def test_levels_of_headings_come_through_the_chain_of_styles() -> None:
    styles = (
        HEADINGS
        + style("berschrift3", shown="heading 3")
        + style("Mine", above="H2")
        + style("Flat", '<w:pPr><w:outlineLvl w:val="9"/></w:pPr>', above="H1")
        + style("T", shown="Title")
        + style("Round", above="Round2")
        + style("Round2", above="Round")
    )
    named = [("T", "t"), ("H1", "a"), ("Mine", "b"), ("berschrift3", "c"), ("Flat", "d"), ("Round", "e"), ("Heading4", "f")]
    body = "".join(par(text, f'<w:pStyle w:val="{name}"/>') for name, text in named) + par("g", '<w:outlineLvl w:val="8"/>')
    parsed = parse_word(body + par(f"{run('h')}<w:r><w:br/></w:r>{run('i')}", '<w:outlineLvl w:val="1"/>'), styles=styles)
    assert [(block.text, block.metadata.get("level")) for block in parsed.blocks] == [
        ("t", 1),
        ("a", 1),
        ("b", 2),
        ("c", 3),
        ("d", None),
        ("e", None),
        ("f", 4),
        ("g", 6),
        ("h i", 2),
    ]
    assert parsed.document is not None and parsed.document.title == "t"


def test_numbers_of_several_levels_restart_and_go_on() -> None:
    outline = definition(1, level(0, "%1."), level(1, "%1.%2"), level(2, "(%3)", "lowerLetter", more='<w:lvlRestart w:val="0"/>'))
    override = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride>'
    body = [(1, 0), (1, 1), (1, 2), (1, 1), (1, 2), (1, 0), (1, 1), (2, 0), (3, 0), (3, 0), (1, 0), (1, 2), (1, 1), (9, 0)]
    parsed = parse_word(
        "".join(par("x", in_list(key, at)) for key, at in body), numbering=outline + listing(1, 1) + listing(2, 1) + listing(3, 1, override)
    )
    shown = ["1.", "1.1", "(a)", "1.2", "(b)", "2.", "2.1", "3.", "7.", "8.", "9.", "(c)", "9.2", ""]
    assert [label for label, _ in numbers(parsed)] == shown
    assert [block.kind for block in parsed.blocks] == ["list_item"] * 13 + ["paragraph"]
    first = parsed.blocks[1].metadata
    assert (first["level"], first["ordered"], first["number"]) == (1, True, 1)


@pytest.mark.parametrize(
    ("form", "count", "shown"),
    [
        ("upperRoman", 1994, "MCMXCIV"),
        ("lowerRoman", 4000, "4000"),
        ("upperLetter", 28, "BB"),
        ("lowerLetter", 10**9, "1000000000"),
        ("decimalZero", 5, "05"),
        ("ordinal", 112, "112th"),
        ("ordinal", 23, "23rd"),
        ("decimalEnclosedCircle", 3, "③"),
        ("chineseCounting", 110, "一百一十"),
        ("chineseCounting", 12, "十二"),
        ("ideographDigital", 102, "一〇二"),
        ("decimalFullWidth", 10, "１０"),
        ("nobody's", 6, "6"),
        ("upperRoman", 0, "0"),
    ],
)
def test_forms_of_numbers(form: str, count: int, shown: str) -> None:
    parsed = parse_word(par("x", in_list(1)), numbering=definition(1, level(0, "%1", form, count)) + listing(1, 1))
    assert numbers(parsed) == [(shown, "x")]


def test_numbering_by_styles_and_links() -> None:
    numbered = style("Step", '<w:pPr><w:numPr><w:numId w:val="2"/></w:numPr></w:pPr>') + style(
        "List2", '<w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="3"/></w:numPr></w:pPr>', shown="List Bullet 2"
    )
    linked = style("Way", '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>', kind="numbering")
    numbering = (
        definition(1, level(0, "%1)"), level(1, "%2:", more='<w:pStyle w:val="Step"/>'), more='<w:styleLink w:val="Way"/>')
        + definition(2, more='<w:numStyleLink w:val="Way"/>')
        + definition(3, level(0, "•", "bullet"))
        + definition(4, more='<w:numStyleLink w:val="Round"/>')
        + definition(5, level(0, "", "none"))
        + "".join(listing(key, of) for key, of in ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5)))
    )
    round_ = style("Round", '<w:pPr><w:numPr><w:numId w:val="4"/></w:numPr></w:pPr>', kind="numbering")
    body = par("a", '<w:pStyle w:val="Step"/>') + par("b", '<w:pStyle w:val="List2"/>') + par("c", in_list(4)) + par("d", in_list(5))
    parsed = parse_word(body + par("e", '<w:pStyle w:val="Step"/>' + in_list(0)), styles=numbered + linked + round_, numbering=numbering)
    assert [(block.kind, block.metadata.get("level"), block.metadata.get("label")) for block in parsed.blocks] == [
        ("list_item", 1, "1:"),
        ("list_item", 1, None),
        ("paragraph", None, None),
        ("paragraph", None, None),
        ("paragraph", None, None),
    ]


# --- text of a paragraph ---


OFF, DARK = '<w:vanish w:val="0"/>', '<w:rStyle w:val="Dark"/>'


def test_signs_breaks_and_hidden_text() -> None:
    body = (
        f"{run('a')}<w:r><w:tab/><w:t>b</w:t><w:noBreakHyphen/><w:t>c</w:t><w:softHyphen/><w:br/><w:t>d</w:t></w:r>"
        '<w:r><w:sym w:font="Symbol" w:char="F061"/><w:sym w:font="Wingdings" w:char="F0FC"/>'
        '<w:sym w:font="Webdings" w:char="F001"/></w:r>'
        f"{run('secret', '<w:vanish/>')}{run('e', OFF)}{run('dark', DARK)}"
        f"<w:ruby><w:rt>{run('x')}</w:rt></w:ruby>"
        f"<w:r><w:ruby><w:rt>{run('kan')}</w:rt><w:rubyBase>{run('漢')}</w:rubyBase></w:ruby></w:r>"
    )
    parsed = parse_word(par(body), styles=style("Dark", "<w:rPr><w:vanish/></w:rPr>", kind="character"))
    assert kinds(parsed) == [("paragraph", "a\tb-c\ndα✓\ufffde漢(kan)")]
    assert events(parsed) == {"hidden_text": "2", "unknown_symbol": "1"}


UP, DOWN = '<w:vertAlign w:val="superscript"/>', '<w:vertAlign w:val="subscript"/>'


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ((run("x"), run("2", UP)), "x²"),
        ((run("H"), run("2", DOWN), run("O")), "H₂O"),
        ((run("v"), run("max", DOWN)), "v_max"),
        ((run("the 4"), run("th", UP), run(" "), run("a", UP)), "the 4th a"),
        ((run("x"), run("2", '<w:rStyle w:val="Up"/>'), run("3", '<w:rStyle w:val="Up"/><w:vertAlign w:val="baseline"/>')), "x²3"),
    ],
)
def test_raised_and_lowered_text(runs: tuple[str, ...], text: str) -> None:
    parsed = parse_word(par("".join(runs)), styles=style("Up", f"<w:rPr>{UP}</w:rPr>", kind="character"))
    assert kinds(parsed) == [("paragraph", text)]


def test_fields_show_their_results_and_links() -> None:
    link = field('HYPERLINK "http://a.example/x" \\l "top"', run("here"))
    nested = field("IF " + "1", field("PAGE", run("7")))
    body = par(run("see ") + link + run(", page ") + nested) + par(
        f'<w:hyperlink r:id="h" w:anchor="p">{run("rel")}</w:hyperlink>'
        f'<w:fldSimple w:instr=" HYPERLINK \\l &quot;q&quot; ">{run("in")}</w:fldSimple>'
    )
    parsed = parse_word(body, links=(("h", "hyperlink", "http://b.example/"),))
    assert kinds(parsed) == [("paragraph", "see here, page 7"), ("paragraph", "relin")]
    assert [[(link.href, link.text) for link in block.links] for block in parsed.blocks] == [
        [("http://a.example/x#top", "here")],
        [("http://b.example/#p", "rel"), ("#q", "in")],
    ]


def test_a_field_goes_over_paragraphs_and_one_without_an_end_hides_nothing() -> None:
    begin, separate, end = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end"))
    code = "<w:r><w:instrText>TOC</w:instrText></w:r>"
    assert kinds(parse_word(par(begin + code + separate + run("a")) + par(run("b") + end + run("c")))) == [
        ("paragraph", "a"),
        ("paragraph", "bc"),
    ]
    lost = f"<w:del>{end}</w:del>"
    assert kinds(parse_word(par(begin + code + run("a")) + par(run("b") + lost))) == [("paragraph", "a"), ("paragraph", "b")]
    assert [text for _, text in kinds(parse_word(par(begin * 300 + run("a") + end * 300 + run("b"))))] == ["b"]


def test_form_fields_and_tick_boxes() -> None:
    box = '<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData></w:fldChar></w:r>'
    end = '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    state = '<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val="{}"/></w14:checkbox></w:sdtPr><w:sdtContent>{}</w:sdtContent></w:sdt>'
    parsed = parse_word(
        par(box + end + run(" old"))
        + par(state.format(1, run("☒")) + run(" new"))
        + table(row(cell(par(state.format(0, run("☐")) + run("no"))), cell("x")))
    )
    assert [(block.text, block.metadata.get("checked")) for block in parsed.blocks] == [("☒ old", None), ("new", True), ("☐ no | x", None)]


def test_math_is_a_line() -> None:
    def m(name: str, *inner: str) -> str:
        return f"<m:{name}>{''.join(inner)}</m:{name}>"

    def t(text: str) -> str:
        return m("r", f"<m:t>{text}</m:t>")

    fraction = m("f", m("num", t("a+b")), m("den", t("2")))
    power = m("sSup", m("e", t("x")), m("sup", t("n+1")))
    root_ = m("rad", m("deg"), m("e", t("y")))
    total = m("nary", '<m:naryPr><m:chr m:val="∑"/></m:naryPr>', m("sub", t("i=1")), m("sup", t("n")), m("e", t("i")))
    matrix = m("d", '<m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr>', m("e", m("m", m("mr", m("e", t("1")), m("e", t("0"))))))
    formula = m("oMath", fraction, t("+"), power, t("="), root_, "<w:del>" + t("9") + "</w:del>")
    parsed = parse_word(par(run("so ") + formula) + par(m("oMathPara", m("oMath", total), m("oMath", matrix))))
    assert kinds(parsed) == [("paragraph", "so (a+b)/2+x^(n+1)=√(y)"), ("paragraph", "∑_(i=1)^n i\n[[1, 0]]")]


def test_code_by_style_and_by_face() -> None:
    mono = '<w:rFonts w:ascii="Consolas"/>'
    code = '<w:pStyle w:val="SourceCode"/>'
    body = (
        par("  if x:", code)
        + par("    y", code)
        + par("prose")
        + par(run("x = f(1)", mono))
        + par("between")
        + par(run("Only words.", mono))
    )
    parsed = parse_word(body, styles=style("SourceCode", shown="Source Code"))
    assert kinds(parsed) == [
        ("code", "  if x:\n    y"),
        ("paragraph", "prose"),
        ("code", "x = f(1)"),
        ("paragraph", "between"),
        ("paragraph", "Only words."),
    ]
    typed = '<w:style w:type="paragraph" w:default="1" w:styleId="N"><w:name w:val="Normal"/>' + (
        '<w:rPr><w:rFonts w:ascii="Courier"/></w:rPr></w:style>'
    )
    assert kinds(parse_word(par("a = b"), styles=typed)) == [("paragraph", "a = b")]


# --- tables ---


def test_case_b09() -> None:
    parsed = parse_bytes(case("b09-docx-merged-cells/axle.docx").read_bytes(), DOCX)
    assert spans(parsed) == [
        [("Axle load", 1, 2), ("r0c2", 1, 1)],
        [("r1c0", 1, 1), ("r1c1", 1, 1), ("both rows", 2, 1)],
        [("r2c0", 1, 1), ("r2c1", 1, 1)],
    ]
    (block,) = parsed.blocks
    assert block.text.count("Axle load") == block.text.count("both rows") == 1


def test_merged_cells_written_by_python_docx() -> None:
    made = docx.Document()
    grid = made.add_table(3, 3)
    for at, item in enumerate(grid._cells):
        item.text = str(at)
    grid.cell(0, 0).merge(grid.cell(1, 1)).text = "big"
    out = io.BytesIO()
    made.save(out)
    parsed = parse_word(out.getvalue())
    assert spans(parsed) == [[("big", 2, 2), ("2", 1, 1)], [("5", 1, 1)], [("6", 1, 1), ("7", 1, 1), ("8", 1, 1)]]


def test_rows_that_start_late_old_merges_and_headers() -> None:
    rows = (
        row(cell("h1"), cell("h2", '<w:gridSpan w:val="2"/>'), about="<w:tblHeader/>"),
        row(cell("x", '<w:hMerge w:val="restart"/>'), cell("", "<w:hMerge/>"), cell("y", '<w:vMerge w:val="restart"/>')),
        row(cell("z"), cell("", "<w:vMerge/>"), about='<w:gridBefore w:val="1"/>'),
    )
    parsed = parse_word(table(*rows))
    assert spans(parsed) == [[("h1", 1, 1), ("h2", 1, 2)], [("x", 1, 2), ("y", 2, 1)], [("", 1, 1), ("z", 1, 1)]]
    assert parsed.blocks[0].metadata["header_rows"] == 1


@pytest.mark.parametrize(
    ("about", "bold", "count"),
    [
        ('<w:tblStyle w:val="Fine"/><w:tblLook w:val="04A0"/>', "", 1),
        ('<w:tblStyle w:val="Fine"/><w:tblLook w:val="04A0" w:firstRow="0"/>', "", 0),
        ('<w:tblStyle w:val="Plain"/><w:tblLook w:firstRow="1"/>', "", 0),
        ("", "<w:b/>", 1),
    ],
)
def test_a_first_row_is_a_header_where_it_looks_like_one(about: str, bold: str, count: int) -> None:
    styles = style("Fine", '<w:tblStylePr w:type="firstRow"/>', kind="table") + style("Plain", kind="table")
    parsed = parse_word(
        table(row(cell(par(run("h", bold))), cell(par(run("i", bold)))), row(cell("a"), cell("b")), about=about), styles=styles
    )
    assert parsed.blocks[0].metadata["header_rows"] == count


def test_what_stands_in_cells_stays_there() -> None:
    inner = table(row(cell("e"), cell("f")), row(cell("g"), cell("h")))
    lines = par("one", in_list(2)) + par("two", in_list(2)) + par("")
    numbering = BULLETS + definition(2, level(0, "%1.")) + listing(2, 2)
    parsed = parse_word(table(row(cell(par("x") + inner + par("y")), cell(lines))), numbering=numbering)
    assert spans(parsed) == [[("x\ne | f\ng | h\ny", 1, 1), ("1. one\n2. two", 1, 1)]]
    assert kinds(parsed) == [("table", "x; e | f; g | h; y | 1. one; 2. two")]


def test_a_frame_of_one_cell_is_no_table() -> None:
    parsed = parse_word(
        table(row(cell(par("Head", '<w:pStyle w:val="H1"/>') + par("text") + table(row(cell("a"), cell("b")))))), styles=HEADINGS
    )
    assert kinds(parsed) == [("heading", "Head"), ("paragraph", "text"), ("table", "a | b")]


def test_facts_of_the_corpus() -> None:
    folder = CORPUS / "docx"
    if not folder.is_dir():
        pytest.skip("the corpus is not beside this checkout")
    parsed = parse_word((folder / "docx-tables.docx").read_bytes())
    assert spans(parsed, 1) == [
        [("a", 1, 1), (">b<", 1, 1), ("c", 1, 1)],
        [("d", 1, 1), ("e | f\ng&t | h", 1, 1), ("i", 1, 1)],
        [("j", 1, 1), ("k", 1, 1), ("l", 1, 1)],
    ]
    assert spans(parsed, 2) == [[("a", 2, 1), ("b", 1, 2)], [("c", 1, 1), ("d", 2, 1)], [("e", 1, 2)]]
    items = [block for block in parse_word((folder / "example-list-items-multiple.docx").read_bytes()).blocks if block.kind == "list_item"]
    assert len(items) == 10
    assert items[-1].text == "This is simply dummy text of the printing and typesetting industry."
    heads = parse_word((folder / "unit_test_headers_numbered.docx").read_bytes()).blocks
    assert [block.metadata.get("number") for block in heads if block.kind == "heading"][1:8] == [
        "1",
        "1.1",
        "1.2",
        "1.2.1",
        "2",
        "2.1.1",
        "2.2",
    ]
