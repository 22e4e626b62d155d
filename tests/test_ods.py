"""OpenDocument spreadsheets: shown texts, repeats, spans, hidden sheets, comments, pictures, hostile files."""

from __future__ import annotations

import pytest
from document_files import parse_bytes
from sheet_files import ODS, grid, outline, tables, zipped

from raydex.ir.parsed import ParsedFile
from raydex.kernels.limits import Limits

SPACES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in (("office", "office"), ("table", "table"), ("text", "text"), ("style", "style"), ("draw", "drawing"), ("fo", "fo"))
)
LINKS = 'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"'


def content(tables_xml: str, styles: str = "", after: str = "") -> str:
    return (
        f"<office:document-content {SPACES} {LINKS}><office:automatic-styles>{styles}</office:automatic-styles><office:body>"
        f"<office:spreadsheet>{tables_xml}{after}</office:spreadsheet></office:body></office:document-content>"
    )


def cell(text: str = "", kind: str = "string", attributes: str = "", inside: str = "") -> str:
    shown = f"<text:p>{text}</text:p>" if text else ""
    return f'<table:table-cell office:value-type="{kind}" {attributes}>{shown}{inside}</table:table-cell>'


def row(*cells: str, attributes: str = "") -> str:
    return f"<table:table-row {attributes}>{''.join(cells)}</table:table-row>"


def table(name: str, *rows: str, style: str = "") -> str:
    return f'<table:table table:name="{name}" table:style-name="{style}">{"".join(rows)}</table:table>'


def parse_ods_file(xml: str, limits: Limits | None = None, **parts: bytes) -> ParsedFile:
    return parse_bytes(zipped({"mimetype": ODS, "content.xml": xml, **parts}), ODS, "book.ods", limits)


def test_texts_kinds_repeats_and_empty_area() -> None:
    empty = '<table:table-cell table:number-columns-repeated="16380"/>'
    xml = content(
        table(
            "One",
            row(cell("item"), cell("price"), empty),
            row(cell("a"), cell("36.5%", "percentage", 'office:value="0.365"'), empty),
            row(cell("b", attributes='table:number-columns-repeated="2"'), attributes='table:number-rows-repeated="2"'),
            row(empty, attributes='table:number-rows-repeated="1048000"'),
            row(cell("last", attributes='table:formula="of:=[.A1]"')),
        )
    )
    parsed = parse_ods_file(xml)
    assert outline(parsed) == [
        ("heading", "A1:B1048005", "One"),
        ("table", "A1:B4", "item | price\na | 36.5%\nb | b\nb | b"),
        ("paragraph", "A1048005", "last"),
    ]
    assert parsed.blocks[2].metadata["formula"] == "=[.A1]"


@pytest.mark.parametrize(
    ("kind", "attributes", "shown", "text"),
    [
        ("float", 'office:value="1234.50"', "", "1234.5"),
        ("float", 'office:value="1234.50"', "1 234,50", "1 234,50"),
        ("float", 'office:value="7"', "###", "7"),
        ("float", 'office:value="NaN"', "", "NaN"),
        ("percentage", 'office:value="0.07"', "", "7%"),
        ("currency", 'office:value="-3.5" office:currency="EUR"', "", "-3.5 EUR"),
        ("currency", 'office:value="2"', "", "2"),
        ("date", 'office:date-value="2024-03-01"', "01.03.24", "01.03.24"),
        ("date", 'office:date-value="2024-03-01T00:00:00"', "", "2024-03-01"),
        ("date", 'office:date-value="2024-03-01T10:30:00"', "###", "2024-03-01 10:30:00"),
        ("date", 'office:date-value="2024-02-31"', "", "2024-02-31"),
        ("date", 'office:date-value="2024-03-01T10:30:00+01:00"', "", "2024-03-01T10:30:00+01:00"),
        ("time", 'office:time-value="PT36H05M07.500S"', "", "36:05:07.5"),
        ("time", 'office:time-value="-P1DT90M"', "", "-25:30:00"),
        ("time", 'office:time-value="noon"', "", "noon"),
        ("boolean", 'office:boolean-value="true"', "WAHR", "TRUE"),
        ("boolean", 'office:boolean-value="false"', "", "FALSE"),
        ("boolean", "", "WAHR", "WAHR"),
        ("string", 'office:string-value="said"', "", "said"),
        ("string", 'office:string-value="said"', "###", "###"),
    ],
)
def test_a_typed_value_is_shown_as_in_excel_workbooks(kind: str, attributes: str, shown: str, text: str) -> None:
    parsed = parse_ods_file(content(table("S", row(cell("k"), cell("v")), row(cell("a"), cell(shown, kind, attributes)))))
    assert grid(tables(parsed)[0])[1] == ["a", text]


def test_results_of_formulas_are_kept_with_them() -> None:
    error = 'table:formula="of:=1/0" xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0" '
    stored = 'table:formula="=IF([.A1];&quot;:=&quot;;1)" office:string-value=":="'
    cells = (cell("#DIV/0!", "string", error + 'calcext:value-type="error" office:string-value=""'), cell("", "string", stored))
    parsed = parse_ods_file(content(table("S", row(cell("k"), cell("v"), cell("w")), row(cell("a"), *cells))))
    line = tables(parsed)[0].metadata["rows"][1]
    assert [(one["text"], one.get("formula"), one.get("computed", True)) for one in line[1:]] == [
        ("#DIV/0!", "=1/0", True),
        (":=", '=IF([.A1];":=";1)', True),
    ]


def test_a_formula_without_result_may_be_merged() -> None:
    wide = '<table:table-cell table:formula="of:=1+1" table:number-columns-spanned="2"/><table:covered-table-cell/>'
    (block,) = tables(parse_ods_file(content(table("S", row(cell("a"), cell("b")), row(wide), row(cell("x"), cell("y"))))))
    assert [(one["text"], one["col_span"]) for one in block.metadata["rows"][1]] == [("=1+1", 2)]


def test_header_by_type_spans_and_formulas_without_result() -> None:
    covered = "<table:covered-table-cell/>"
    xml = content(
        table(
            "S",
            row(cell("k"), cell("v", attributes='table:number-columns-spanned="2"'), covered),
            row(cell("a", attributes='table:number-rows-spanned="2"'), cell("1", "float"), cell("2", "float")),
            row(covered, '<table:table-cell table:formula="of:=1+1"/>', cell("", "float", 'office:value="4"')),
        )
    )
    parsed = parse_ods_file(xml)
    (block,) = tables(parsed)
    assert grid(block) == [["k", "v"], ["a", "1", "2"], ["=1+1", "4"]]
    assert [(c["row_span"], c["col_span"]) for r in block.metadata["rows"] for c in r] == [(1, 1), (1, 2), (2, 1), *[(1, 1)] * 4]
    assert block.metadata["header_rows"] == 1
    assert block.metadata["rows"][2][0]["computed"] is False
    assert parsed.document is not None and parsed.document.warnings == ["formulas_not_computed"]


def test_hidden_sheets_comments_links_and_pictures() -> None:
    styles = '<style:style style:name="h" style:family="table"><style:table-properties table:display="false"/></style:style>'
    note = "<office:annotation><dc:creator>Ann</dc:creator><dc:date>2026-03-01</dc:date><text:p>why</text:p></office:annotation>"
    frame = (
        '<draw:frame><draw:image xlink:href="Pictures/i.gif"/></draw:frame><draw:frame><draw:image xlink:href="http://x/y"/></draw:frame>'
    )
    text = 'see<text:s text:c="2"/><text:a xlink:href="http://a.example">here</text:a>'
    xml = content(
        table("Plain", row(cell(text, inside=note + frame)), row(cell("x"), attributes='table:visibility="collapse"'))
        + table("Off", row(cell("y")), style="h"),
        styles,
    )
    parsed = parse_ods_file(xml, **{"Pictures/i.gif": b"GIF89a\x03\x00\x02\x00"})
    assert outline(parsed) == [
        ("heading", "A1:A2", "Plain"),
        ("paragraph", "A1", "see  here"),
        ("paragraph", "A2", "x"),
        ("note", "A1", "why"),
        ("image", "A1", ""),
        ("image", "A1", ""),
        ("heading", "A1", "Off"),
        ("paragraph", "A1", "y"),
    ]
    assert [link.href for link in parsed.blocks[1].links] == ["http://a.example"]
    assert [(asset.href, asset.width) for asset in parsed.assets] == [("", 3), ("http://x/y", None)]
    assert parsed.blocks[0].metadata["hidden_rows"] == ["2:2"]
    assert parsed.blocks[-1].metadata["sheet_state"] == "hidden"
    assert parsed.document is not None and [sheet["state"] for sheet in parsed.document.metadata["sheets"]] == ["visible", "hidden"]


def test_named_areas_and_filters() -> None:
    after = (
        '<table:named-range table:name="Rate" table:cell-range-address="$S.$A$1"/>'
        '<table:database-range table:target-range-address="S.A1:S.B2" table:display-filter-buttons="true"/>'
    )
    parsed = parse_ods_file(content(table("S", row(cell("k"), cell("v")), row(cell("a"), cell("b"))), after=after))
    assert tables(parsed)[0].metadata["header_rows"] == 1
    assert parsed.document is not None and parsed.document.metadata["defined_names"] == {"Rate": "$S.$A$1"}


@pytest.mark.parametrize(
    ("parts", "reject"),
    [
        ({"content.xml": "<a"}, "invalid_input"),
        ({"other": "x"}, "invalid_input"),
        ({"content.xml": "<!DOCTYPE a []>" + content(table("S", row(cell("x"))))}, "invalid_input"),
        ({"content.xml": "x", "META-INF/manifest.xml": "<m><f xmlns='m'><encryption-data/></f></m>"}, "encrypted"),
        ({"content.xml": content(table("S", row(cell("x"), attributes='table:number-rows-repeated="1000000"')))}, "too_large"),
    ],
)
def test_hostile_files_are_typed_rejects(parts: dict[str, str | bytes], reject: str) -> None:
    parsed = parse_bytes(zipped(parts), ODS, limits=Limits(cells=10_000))
    assert [one.reject_class for one in parsed.rejects] == [reject]


def test_content_that_breaks_off_keeps_what_was_read() -> None:
    parsed = parse_ods_file(content(table("S", row(cell("x")), row(cell("y"))))[:-70])
    assert [block.text for block in parsed.blocks] == ["S", "x", "y"]
    assert parsed.document is not None and parsed.document.warnings == ["sheet_incomplete"]
