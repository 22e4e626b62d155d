"""Excel workbooks: values as shown, tables as seen, headers, merged cells, comments, pictures, charts, hostile files."""

from __future__ import annotations

import datetime
import io
import json
from typing import Any

import pytest
from document_files import CORPUS
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_cases import case
from sheet_files import MAIN, REL, grid, outline, parse_xlsx_file, relations, sheet_xml, tables, text_row, workbook, zipped

from raydex.ir.parsed import ParsedFile
from raydex.kernels.limits import Limits

openpyxl = pytest.importorskip("openpyxl")


def saved(book: Any) -> bytes:
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def written(*rows: list[Any]) -> Any:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    return book


def rejects(parsed: ParsedFile) -> list[str]:
    return [reject.reject_class for reject in parsed.rejects]


def warnings(parsed: ParsedFile) -> list[str]:
    assert parsed.document is not None
    return parsed.document.warnings


def corpus(name: str) -> ParsedFile:
    path = CORPUS / "xlsx" / name
    if not path.is_file():
        pytest.skip("shared/corpora is not beside this checkout")
    return parse_xlsx_file(path.read_bytes(), path=name)


def test_case_b12_values_as_shown() -> None:
    parsed = parse_xlsx_file(case("b12-xlsx-values/cost.xlsx").read_bytes(), path="cost.xlsx")
    (table,) = tables(parsed)
    assert grid(table) == [
        ["Item", "EUR"],
        ["steel", "120"],
        ["labour", "180"],
        ["total", "300"],
        ["check", "=B4*2"],
        ["margin", "36.5%"],
        ["due", "2026-03-01"],
    ]
    cells = [row[1] for row in table.metadata["rows"]]
    assert cells[3] == {"text": "300", "row_span": 1, "col_span": 1, "header": False, "formula": "=SUM(B2:B3)"}
    assert (cells[4]["formula"], cells[4]["computed"]) == ("=B4*2", False)
    assert (table.locator.sheet, table.locator.cells, str(table.locator)) == ("Cost", "A1:B7", "sheet=Cost;cells=A1:B7;table=1")
    assert table.section_path == ["Cost"]
    assert warnings(parsed) == ["formulas_not_computed"]
    assert [event.message for event in parsed.events] == ["1 formulas have no stored result: their cells show the formula"]


def test_case_b13_far_cell() -> None:
    parsed = parse_xlsx_file(case("b13-xlsx-far-cell/far.xlsx").read_bytes())
    assert outline(parsed) == [("heading", "A1:B3", "Data"), ("table", "A1:B3", "id | name\n1 | gear\n2 | shaft")]
    assert tables(parsed)[0].metadata["header_rows"] == 1


def test_cells_far_apart_cost_nothing() -> None:
    rows = text_row(1, "a", "b") + '<row r="1048576"><c r="XFD1048576"><v>5</v></c></row>'
    merges = '<mergeCells><mergeCell ref="A1:A1048576"/><mergeCell ref="C1:XFD900000"/></mergeCells>'
    for after in ("", merges):
        parsed = parse_xlsx_file(workbook(sheet_xml(rows, after)))
        assert [block.text for block in parsed.blocks[1:]] in (["a | b", "5"], ["a | b\n5"])
        assert sum(len(row) for block in tables(parsed) for row in block.metadata["rows"]) < 10


def test_corpus_tables_and_lines() -> None:
    parsed = corpus("xlsx-subtable-cases.xlsx")
    kinds = {"table": "T", "list_item": "L", "paragraph": "t"}
    found = [f"{kinds[block.kind]} {' '.join(block.text.replace('|', ' ').split())}" for block in parsed.blocks[1:]]
    assert found == json.loads((CORPUS / "truth" / "facts.json").read_text())["docs/xlsx/xlsx-subtable-cases.xlsx"]["blocks"]


def test_corpus_sheets_merges_charts_and_picture() -> None:
    parsed = corpus("xlsx_01.xlsx")
    facts = json.loads((CORPUS / "truth" / "facts.json").read_text())["docs/xlsx/xlsx_01.xlsx"]
    assert parsed.document is not None
    assert [[sheet["name"], sheet["state"]] for sheet in parsed.document.metadata["sheets"]] == facts["sheets"]
    assert sum("chart" in block.metadata for block in parsed.blocks) == facts["charts"]
    assert [(block.locator.cells, block.kind) for block in parsed.blocks if block.kind == "image"] == [("I19:M36", "image")]
    assert len(parsed.blobs) == facts["pictures"]
    (picture,) = parsed.assets
    assert (picture.media_type, parsed.blobs[picture.asset_id][:4]) == ("image/png", b"\x89PNG")
    merged = [block for block in tables(parsed) if block.locator.sheet == "Sheet3"]
    assert [block.locator.cells for block in merged] == ["A1:C7", "E7:G13"]
    for block in merged:
        assert block.metadata["header_rows"] == 2
        spans = [[(cell["row_span"], cell["col_span"]) for cell in row] for row in block.metadata["rows"]]
        assert spans == [[(2, 1), (1, 2)], [(1, 1)] * 2, [(1, 1)] * 3, [(2, 1), (1, 1), (1, 1)], [(1, 1)] * 2, [(1, 1), (2, 2)], [(1, 1)]]
    hidden = [block for block in parsed.blocks if block.locator.sheet == "Sheet4"]
    assert [block.metadata["sheet_state"] for block in hidden] == ["hidden", "hidden"]


def test_corpus_titles_and_comments() -> None:
    assert outline(corpus("xlsx_09_section_label_header.xlsx"))[:2] == [
        ("heading", "A1:G4", "Library Catalog"),
        ("heading", "A1:G1", "Reading List"),
    ]
    parsed = corpus("xlsx_05_table_with_title.xlsx")
    assert parsed.blocks[-1].section_path == ["Duck Observations", "Number of freshwater ducks per year"]
    parsed = corpus("xlsx_comments.xlsx")
    notes = [(b.locator.cells, b.metadata["author"], b.text) for b in parsed.blocks if b.kind == "note"]
    assert notes == [
        ("A1", "John Reviewer", "Why Python specifically?"),
        ("B2", "Jane Editor", "Which libraries are you referring to?"),
        ("F7", "Jane Smith (JS)", "Minimum number of saltwater ducks"),
        ("F7", "Marcus Sterling (MS)", "I never thought it would be so low"),
        ("G12", "Jane Smith (JS)", "Maximum number of ducks"),
    ]
    answer = parsed.blocks[-2]
    assert answer.metadata["reply_to"] == parsed.blocks[-3].locator.comment


def test_values_of_every_type() -> None:
    book = written(["what", "value"])
    values: list[tuple[Any, str | None, str]] = [
        (True, None, "TRUE"),
        (1234.5, "#,##0.00", "1,234.50"),
        (datetime.datetime(2026, 3, 1, 14, 5), "yyyy-mm-dd hh:mm", "2026-03-01 14:05"),
        (datetime.time(9, 30), "h:mm", "9:30"),
        (datetime.timedelta(hours=30), "[h]:mm", "30:00"),
        (0.5, "# ?/?", "1/2"),
        ("#N/A", None, "#N/A"),
        ("=cmd()", None, "=cmd()"),
        ("  two  spaces ", None, "  two  spaces "),
        ("line\none", None, "line\none"),
    ]
    for at, (value, code, _) in enumerate(values, start=2):
        cell = book.active.cell(at, 2, value)
        book.active.cell(at, 1, f"v{at}")
        if code:
            cell.number_format = code
    (table,) = tables(parse_xlsx_file(saved(book)))
    assert [row[1] for row in grid(table)[1:]] == [shown for _, _, shown in values]
    assert table.text.splitlines()[-1] == "v11 | line; one"


def test_strings_errors_and_formulas_as_stored() -> None:
    strings = (
        f'<sst xmlns="{MAIN}"><si><r><t>bold</t></r><r><rPr><b/></rPr><t xml:space="preserve"> plain</t></r>'
        "<rPh><t>guide</t></rPh></si><si><t>a_x000D_\nb_x005F_x0041_</t></si></sst>"
    )
    rows = (
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="s"><v>7</v></c></row>'
        '<row r="2"><c r="A2" t="e"><v>#DIV/0!</v></c><c r="B2" t="b"><v>0</v></c><c r="C2" t="d"><v>2026-03-01T00:00:00</v></c></row>'
        '<row r="3"><c r="A3"><f t="shared" ref="A3:A4" si="0">B$1+C3+"B1"</f></c>'
        '<c r="B3" t="str"><f>""</f><v></v></c><c r="C3"><v>1E999</v></c></row>'
        '<row><c><f t="shared" si="0"/></c><c><v>0.1</v></c><c t="str"><f>A1&amp;"!"</f><v>x!</v></c></row>'
    )
    parsed = parse_xlsx_file(workbook(sheet_xml(rows), extra={"xl/sharedStrings.xml": strings}))
    (table,) = tables(parsed)
    assert grid(table) == [
        ["bold plain", "a\nb_x0041_", ""],
        ["#DIV/0!", "FALSE", "2026-03-01T00:00:00"],
        ['=B$1+C3+"B1"', "", "1E999"],
        ['=B$1+C4+"B1"', "0.1", "x!"],
    ]
    assert table.metadata["rows"][3][2]["formula"] == '=A1&"!"'
    assert warnings(parsed) == ["formulas_not_computed", "strings_lost"]


def test_escapes_that_are_no_text_become_replacement_characters() -> None:
    rows = text_row(1, "a_x0000_b_xD800_c_x0041_")
    assert parse_xlsx_file(workbook(sheet_xml(rows))).blocks[1].text == "a\ufffdb\ufffdcA"


def test_1904_dates() -> None:
    styles = f'<styleSheet xmlns="{MAIN}"><cellXfs><xf/><xf numFmtId="14"/></cellXfs></styleSheet>'
    sheet = sheet_xml(text_row(1, "day") + '<row r="2"><c r="A2" s="1"><v>44620</v></c></row>')
    parsed = parse_xlsx_file(workbook(sheet, extra={"xl/styles.xml": styles}, pr='date1904="1"'))
    assert parsed.blocks[1].text == "day\n2026-03-01"


def test_sheets_in_order_with_states_names_and_properties() -> None:
    book = written(["a", 1], ["b", 2])
    book.active.title = "First; 1"
    book.create_sheet("Empty")
    secret = book.create_sheet("Secret", 0)
    secret.sheet_state = "veryHidden"
    secret.append(["only text"])
    book.defined_names["Rate"] = openpyxl.workbook.defined_name.DefinedName("Rate", attr_text="'First; 1'!$B$1")
    book.properties.title = "Prices"
    book.properties.creator = "Ann"
    parsed = parse_xlsx_file(saved(book))
    assert parsed.document is not None and parsed.document.title == "Prices"
    metadata = parsed.document.metadata
    assert metadata["sheets"] == [
        {"name": "Secret", "state": "veryHidden", "cells": "A1"},
        {"name": "First; 1", "state": "visible", "cells": "A1:B2"},
        {"name": "Empty", "state": "visible"},
    ]
    assert metadata["defined_names"] == {"Rate": "'First; 1'!$B$1"}
    assert metadata["properties"]["creator"] == "Ann"
    assert [(block.kind, block.text, str(block.locator)) for block in parsed.blocks] == [
        ("heading", "Secret", "sheet=Secret;cells=A1"),
        ("paragraph", "only text", "sheet=Secret;cells=A1"),
        ("heading", "First; 1", "sheet=First%3B 1;cells=A1:B2"),
        ("table", "a | 1\nb | 2", "sheet=First%3B 1;cells=A1:B2;table=1"),
        ("heading", "Empty", "sheet=Empty"),
    ]
    assert [block.metadata.get("sheet_state") for block in parsed.blocks[:2]] == ["veryHidden", "veryHidden"]


@pytest.mark.parametrize(
    ("rows", "headers"),
    [
        ([["id", "name"], [1, "a"], [2, "b"]], 1),
        ([["k", "v"], ["a", "b"], ["c", "d"]], 0),
        ([["a", 1], ["b", 2]], 0),
        ([["region", 2024, 2025], ["north", 1, 2]], 0),
        ([["name", "note"], ["a", None], ["b", datetime.date(2026, 1, 1)]], 1),
    ],
)
def test_headers_by_type(rows: list[list[Any]], headers: int) -> None:
    (table,) = tables(parse_xlsx_file(saved(written(*rows))))
    assert table.metadata["header_rows"] == headers


def test_headers_by_look_filter_and_frozen_rows() -> None:
    book = written(["region", 2024, 2025], ["north", 1, 2], ["south", 3, 4])
    for cell in book.active[1]:
        cell.font = openpyxl.styles.Font(bold=True)
    assert tables(parse_xlsx_file(saved(book)))[0].metadata["header_rows"] == 1
    book = written(["k", "v"], ["a", "b"], ["c", "d"], ["e", None])
    book.active.auto_filter.ref = "A1:B4"
    (table,) = tables(parse_xlsx_file(saved(book)))
    assert (table.metadata["header_rows"], table.locator.cells) == (1, "A1:B4")
    book = written(["All of them"], ["k", "v"], ["a", "b"], ["c"], ["the end"])
    book.active.auto_filter.ref = "A2:B4"
    parsed = parse_xlsx_file(saved(book))
    assert outline(parsed)[1:] == [
        ("paragraph", "A1", "All of them"),
        ("table", "A2:B4", "k | v\na | b\nc | "),
        ("paragraph", "A5", "the end"),
    ]
    assert tables(parsed)[0].metadata["header_rows"] == 1
    book = written(["k", "v"], ["x", "y"], ["a", "b"])
    book.active.freeze_panes = "B3"
    assert tables(parse_xlsx_file(saved(book)))[0].metadata["header_rows"] == 2


def test_tables_of_the_workbook_keep_their_names_and_areas() -> None:
    book = written(["k", "v", "x", "y"], ["a", "b", "c", "d"], ["e", None, "g", "h"], ["below"])
    for name, area in (("Left", "A1:B3"), ("Right", "C1:D3")):
        book.active.add_table(openpyxl.worksheet.table.Table(displayName=name, ref=area))
    parsed = parse_xlsx_file(saved(book))
    assert [(b.metadata["table_name"], b.locator.cells, b.text, b.metadata["header_rows"]) for b in tables(parsed)] == [
        ("Left", "A1:B3", "k | v\na | b\ne | ", 1),
        ("Right", "C1:D3", "x | y\nc | d\ng | h", 1),
    ]
    assert outline(parsed)[-1] == ("paragraph", "A4", "below")


def test_titles_remarks_and_tables_beside_each_other() -> None:
    book = written(
        ["Sales 2026"], ["k", "v", None, None, "p", "q"], ["a", 1, None, None, "b", 2], ["Source: us"], [], ["1. first"], ["- second"]
    )
    book.active["A1"].font = openpyxl.styles.Font(bold=True)
    parsed = parse_xlsx_file(saved(book))
    assert outline(parsed)[1:] == [
        ("heading", "A1", "Sales 2026"),
        ("table", "A2:B3", "k | v\na | 1"),
        ("paragraph", "A4", "Source: us"),
        ("table", "E2:F3", "p | q\nb | 2"),
        ("list_item", "A6", "1. first"),
        ("list_item", "A7", "second"),
    ]


def test_group_headers_are_no_titles() -> None:
    book = written([None, "year", None], ["region", "a", "b"], ["north", 1, 2])
    book.active.merge_cells("B1:C1")
    (table,) = tables(parse_xlsx_file(saved(book)))
    assert [[(cell["text"], cell["col_span"]) for cell in row] for row in table.metadata["rows"]] == [
        [("", 1), ("year", 2)],
        [("region", 1), ("a", 1), ("b", 1)],
        [("north", 1), ("1", 1), ("2", 1)],
    ]
    assert table.metadata["header_rows"] == 2


def test_tall_tables_are_cut_and_tell_their_header() -> None:
    book = written(["id", "name"], *([at, f"n{at}"] for at in range(1, 451)))
    book.active.merge_cells("B190:B210")
    parsed = parse_xlsx_file(saved(book))
    blocks = tables(parsed)
    assert [block.locator.cells for block in blocks] == ["A1:B200", "A201:B400", "A401:B451"]
    assert [block.metadata.get("header") for block in blocks] == [None, [["id", "name"]], [["id", "name"]]]
    assert [block.metadata["header_rows"] for block in blocks] == [1, 0, 0]
    assert blocks[0].metadata["rows"][189][1]["row_span"] == 11
    assert blocks[1].metadata["rows"][0][1] == {"text": "n189", "row_span": 10, "col_span": 1, "header": False}


def test_hidden_rows_and_columns_are_kept_and_said() -> None:
    book = written(["a", "b", "c"], ["d", 1, 2], ["e", 3, 4])
    book.active.row_dimensions[2].hidden = True
    book.active.column_dimensions["C"].hidden = True
    parsed = parse_xlsx_file(saved(book))
    assert tables(parsed)[0].text == "a | b | c\nd | 1 | 2\ne | 3 | 4"
    for block in parsed.blocks:
        assert (block.metadata["hidden_rows"], block.metadata["hidden_columns"]) == (["2:2"], ["C:C"])


def test_links_of_cells() -> None:
    book = written(["site", "n"], ["here", 1], ["there", 2])
    book.active["A2"].hyperlink = "https://a.example/x"
    book.active["A3"].hyperlink = openpyxl.worksheet.hyperlink.Hyperlink(ref="A3", location="Other!A1")
    rows = '<row r="1"><c r="A1" t="str"><f>HYPERLINK("http://b.example","b")</f><v>b</v></c></row>'
    (table,) = tables(parse_xlsx_file(saved(book)))
    assert [(link.href, link.text) for link in table.links] == [("https://a.example/x", "here"), ("#Other!A1", "there")]
    paragraph = parse_xlsx_file(workbook(sheet_xml(rows))).blocks[1]
    assert [(link.href, link.text) for link in paragraph.links] == [("http://b.example", "b")]


def test_pictures_text_boxes_and_external_pictures() -> None:
    shape = 'xmlns:xdr="d" xmlns:a="a" xmlns:r="' + REL + '"'
    start = "<xdr:from><xdr:col>1</xdr:col><xdr:row>2</xdr:row></xdr:from>"
    pictures = "".join(
        f'<xdr:oneCellAnchor>{start}<xdr:pic><xdr:nvPicPr><xdr:cNvPr descr="{key}"/></xdr:nvPicPr><xdr:blipFill>'
        f'<a:blip r:{how}="{key}"/></xdr:blipFill></xdr:pic></xdr:oneCellAnchor>'
        for key, how in (("p1", "embed"), ("p1", "embed"), ("p2", "link"), ("p3", "embed"))
    )
    box = "<xdr:absoluteAnchor><xdr:sp><xdr:txBody><a:p><a:r><a:t>in a box</a:t></a:r></a:p></xdr:txBody></xdr:sp></xdr:absoluteAnchor>"
    gif = b"GIF89a\x03\x00\x02\x00"
    parsed = parse_xlsx_file(
        workbook(
            sheet_xml("", '<drawing r:id="d1"/>'),
            extra={
                "xl/worksheets/_rels/sheet1.xml.rels": relations(("d1", "drawing", "../drawings/drawing1.xml")),
                "xl/drawings/drawing1.xml": f"<xdr:wsDr {shape}>{pictures}{box}</xdr:wsDr>",
                "xl/drawings/_rels/drawing1.xml.rels": relations(
                    ("p1", "image", "../media/i.gif"), ("p2", "image", "http://x.example/i.png"), ("p3", "image", "../media/none.png")
                ),
                "xl/media/i.gif": gif,
            },
        )
    )
    assert [(asset.alt, asset.href, asset.media_type, asset.width, asset.height) for asset in parsed.assets] == [
        ("p1", "", "image/gif", 3, 2),
        ("p1", "", "image/gif", 3, 2),
        ("p2", "http://x.example/i.png", "", None, None),
    ]
    assert list(parsed.blobs.values()) == [gif, gif]
    assert outline(parsed)[1] == ("image", "B3", "p1")
    assert outline(parsed)[-1] == ("paragraph", None, "in a box")
    assert warnings(parsed) == ["drawing_lost"]


def test_charts_are_tables_of_their_data() -> None:
    book = written(["m", "n"], ["x", 1], ["y", 2])
    chart = openpyxl.chart.BarChart()
    chart.title = "Parts"
    chart.add_data(openpyxl.chart.Reference(book.active, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    book.active.add_chart(chart, "D2")
    (block,) = (block for block in parse_xlsx_file(saved(book)).blocks if "chart" in block.metadata)
    assert (block.kind, block.text, block.metadata["chart"]) == ("paragraph", "Parts", "barChart")
    cache = "<c:strCache><c:pt idx='0'><c:v>{}</c:v></c:pt><c:pt idx='2'><c:v>{}</c:v></c:pt></c:strCache>"
    numbers = (
        "<c:numCache><c:formatCode>0%</c:formatCode><c:pt idx='0'><c:v>0.5</c:v></c:pt><c:pt idx='9999999'><c:v>1</c:v></c:pt></c:numCache>"
    )
    from lxml import etree

    from raydex.kernels.xlsx_drawings import read_chart

    root = etree.fromstring(
        f"<c:chartSpace xmlns:c='c'><c:chart><c:plotArea><c:pieChart><c:ser><c:tx><c:v>share</c:v></c:tx><c:cat>{cache.format('a', 'b')}"
        f"</c:cat><c:val>{numbers}</c:val></c:ser></c:pieChart></c:plotArea></c:chart></c:chartSpace>"
    )
    draft = read_chart(root)
    assert draft is not None and draft.rows is not None
    assert [[cell["text"] for cell in row] for row in draft.rows] == [["", "share"], ["a", "50%"], ["b", ""], ["", "100%"]]


def test_legacy_comments() -> None:
    book = written(["a"])
    book.active["C5"].comment = openpyxl.comments.Comment("look\nhere", "Ann")
    note = parse_xlsx_file(saved(book)).blocks[-1]
    assert (note.kind, note.text, note.locator.cells, note.metadata["author"]) == ("note", "look\nhere", "C5", "Ann")


def test_a_lost_part_costs_only_itself() -> None:
    good = sheet_xml(text_row(1, "kept"))
    broken = sheet_xml(text_row(1, "start") + "<row><c>")[:-26]
    for bad, texts in ((broken, ["S1", "start", "S2", "kept"]), ("no xml", ["S1", "S2", "kept"])):
        parsed = parse_xlsx_file(workbook(bad, good))
        assert [block.text for block in parsed.blocks] == texts
        assert warnings(parsed) == ["sheet_incomplete"]
        assert parsed.document is not None and parsed.document.metadata["sheets"][0]["incomplete"] is True
    parsed = parse_xlsx_file(workbook(good, extra={"xl/styles.xml": "<", "xl/sharedStrings.xml": "<"}))
    assert warnings(parsed) == ["styles_lost", "strings_lost"]
    assert parsed.blocks[1].text == "kept"
    assert rejects(parse_xlsx_file(workbook("no xml"))) == ["invalid_input"]


def test_places_that_do_not_ascend() -> None:
    rows = (
        text_row(3, "c3") + text_row(1, "a1", "b1") + '<row r="1"><c r="B1"><v>2</v></c></row><row r="9999999"><c r="A1"><v>1</v></c></row>'
    )
    parsed = parse_xlsx_file(workbook(sheet_xml(rows + '<row r="1"><c r="ZZZ1"><v>1</v></c><c r="??"><v>1</v></c></row>')))
    assert outline(parsed)[1:] == [("table", "A1:B1", "a1 | 2"), ("paragraph", "A3", "c3")]
    assert warnings(parsed) == ["bad_cell_places"]


def bomb(name: str) -> bytes:
    return workbook(sheet_xml(text_row(1, "a")), extra={name: b"<a>" + b" " * 30_000_000 + b"</a>"})


@pytest.mark.parametrize(
    ("data", "reject"),
    [
        (b"PK\x03\x04", "invalid_input"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le") + b"\x00" * 600, "encrypted"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600, "unsupported_media_type"),
        (zipped({"a": "b"}), "invalid_input"),
        (zipped({"_rels/.rels": relations(("r", "officeDocument", "xl/workbook.bin")), "xl/workbook.bin": "x"}), "unsupported_media_type"),
        (workbook(), "invalid_input"),
        (workbook('<!DOCTYPE a [<!ENTITY e "x">]>' + sheet_xml(text_row(1, "&e;"))), "invalid_input"),
        (bomb("xl/worksheets/sheet1.xml"), "bomb"),
        (workbook(sheet_xml("<row>" + "<c>" * 300 + "</c>" * 300 + "</row>")), "invalid_input"),
    ],
)
def test_hostile_packages_are_typed_rejects(data: bytes, reject: str) -> None:
    assert rejects(parse_xlsx_file(data)) in ([reject], ["too_deep"])


def test_limits_are_typed_rejects() -> None:
    data = workbook(sheet_xml("".join(text_row(at, "word", "word") for at in range(1, 200, 2))))
    assert rejects(parse_xlsx_file(data, limits=Limits(cells=50))) == ["too_large"]
    assert rejects(parse_xlsx_file(data, limits=Limits(text_bytes=300))) == ["text_too_long"]
    assert rejects(parse_xlsx_file(data, limits=Limits(blocks=20))) == ["too_many_blocks"]
    assert rejects(parse_xlsx_file(data)) == []


def test_one_string_named_often_is_counted_each_time() -> None:
    strings = f'<sst xmlns="{MAIN}"><si><t>{"x" * 30_000}</t></si></sst>'
    rows = "".join('<row><c t="s"><v>0</v></c></row>' for _ in range(2_000))
    assert rejects(parse_xlsx_file(workbook(sheet_xml(rows), extra={"xl/sharedStrings.xml": strings}))) == ["text_too_long"]


def test_truncated_files_give_rows_or_a_reject() -> None:
    data = saved(written(["a", 1], ["b", 2]))
    for size in range(1, len(data), 97):
        parsed = parse_xlsx_file(data[:size])
        assert (parsed.document is None) == bool(parsed.rejects)


CELLS = st.dictionaries(st.tuples(st.integers(1, 12), st.integers(1, 9)), st.sampled_from(["w", "7"]), min_size=1, max_size=40)
MERGES = st.lists(st.tuples(*[st.integers(1, 12)] * 2, *[st.integers(0, 4)] * 2), max_size=6)


@settings(max_examples=150, deadline=None)
@given(CELLS, MERGES)
def test_every_cell_stands_in_one_block(cells: dict[tuple[int, int], str], merges: list[tuple[int, int, int, int]]) -> None:
    rows: dict[int, str] = {}
    for at, ((row, column), kind) in enumerate(sorted(cells.items())):
        place = f"{chr(64 + column)}{row}"
        value = f'<c r="{place}" t="str"><v>w{at}w</v></c>' if kind == "w" else f'<c r="{place}"><v>{7_000_000 + at}</v></c>'
        rows[row] = rows.get(row, "") + value
    xml = "".join(f'<row r="{number}">{row}</row>' for number, row in sorted(rows.items()))
    areas = "".join(f'<mergeCell ref="{chr(64 + c)}{r}:{chr(64 + c + w)}{r + h}"/>' for r, c, h, w in merges)
    parsed = parse_xlsx_file(workbook(sheet_xml(xml, f"<mergeCells>{areas}</mergeCells>")))
    words = [word for block in parsed.blocks[1:] for word in block.text.replace("|", " ").split()]
    assert sorted(words) == sorted(f"w{at}w" if kind == "w" else str(7_000_000 + at) for at, (_, kind) in enumerate(sorted(cells.items())))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.text('<>/="rcvf row A1:&;', max_size=80))
def test_any_bytes_give_rows_or_a_reject(data: bytes, soup: str) -> None:
    for file in (data, workbook(soup), workbook(sheet_xml(soup)), workbook(sheet_xml(""), extra={"xl/styles.xml": soup})):
        if file:
            parsed = parse_xlsx_file(file)
            assert (parsed.document is None) == bool(parsed.rejects)
            assert parse_xlsx_file(file) == parsed


def test_strict_names_and_prefixes() -> None:
    strict = "http://purl.oclc.org/ooxml/spreadsheetml/main"
    cells = '<x:c r="A1"><x:v>5</x:v></x:c><x:c r="B1"><x:v>6</x:v></x:c>'
    sheet = f'<x:worksheet xmlns:x="{strict}"><x:sheetData><x:row r="1">{cells}</x:row></x:sheetData></x:worksheet>'
    assert outline(parse_xlsx_file(workbook(sheet)))[1] == ("table", "A1:B1", "5 | 6")


def test_a_long_row_over_a_long_column_stays_small() -> None:
    row = '<row r="1">' + "<c><v>1</v></c>" * 2_000 + "</row>"
    column = "".join(f'<row r="{at}"><c r="A{at}"><v>2</v></c></row>' for at in range(2, 2_001))
    parsed = parse_xlsx_file(workbook(sheet_xml(row + column)))
    assert len(tables(parsed)) == 10
    assert sum(len(line) for block in tables(parsed) for line in block.metadata["rows"]) == 3_999


def test_wide_tables_are_cut_into_fewer_rows() -> None:
    row = "<row>" + "<c><v>1</v></c>" * 5_000 + "</row>"
    parsed = parse_xlsx_file(workbook(sheet_xml(row * 9)))
    assert [len(block.metadata["rows"]) for block in tables(parsed)] == [4, 4, 1]


def test_a_merge_at_the_edge_of_a_table_is_part_of_it() -> None:
    """The place reaches as far as its cells are merged; one merged over the empty rest of a sheet does not pull the table there."""
    rows = text_row(1, "Name", "Qty", "Note") + text_row(2, "a", "1", "x") + text_row(3, "Sum", "", "all")
    merges = '<mergeCells><mergeCell ref="A3:B4"/><mergeCell ref="C3:D3"/></mergeCells>'
    (block,) = tables(parse_xlsx_file(workbook(sheet_xml(rows, merges))))
    assert (block.locator.cells, block.text.split("\n")[-1]) == ("A1:D4", "Sum |  | all")
    parsed = parse_xlsx_file(workbook(sheet_xml(rows, merges)))
    assert parsed.blocks[0].locator.cells == "A1:D4"
    assert parsed.document is not None and parsed.document.metadata["sheets"][0]["cells"] == "A1:D4"
    (block,) = tables(parse_xlsx_file(workbook(sheet_xml(rows, '<mergeCells><mergeCell ref="A3:B1048576"/></mergeCells>'))))
    assert block.locator.cells == "A1:C3"


def test_a_header_that_is_carried_on_keeps_its_columns() -> None:
    """A title over two columns of a long table has its empty place in the blocks behind the first one too."""
    head = (
        '<row r="1">'
        + "".join(f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>' for place, text in (("A1", "Load"), ("C1", "Note")))
        + "</row>"
    )
    rows = "".join(
        f'<row r="{k}"><c r="A{k}"><v>{k}</v></c><c r="B{k}"><v>{k}</v></c><c r="C{k}"><v>7</v></c></row>' for k in range(2, 300)
    )
    merge = '<mergeCells><mergeCell ref="A1:B1"/></mergeCells><autoFilter ref="A1:C299"/>'
    blocks = tables(parse_xlsx_file(workbook(sheet_xml(head + rows, merge))))
    assert [block.metadata.get("header") for block in blocks] == [None, [["Load", "", "Note"]]]
