"""XML: text in document order, element paths, records; nothing is expanded, fetched or lost."""

from __future__ import annotations

import pytest
from document_files import parse_bytes
from hypothesis import given
from hypothesis import strategies as st
from shared_cases import case

from raydex.ir.parsed import ParsedFile


def read(data: bytes | str) -> ParsedFile:
    return parse_bytes(data, "application/xml", "data.xml")


def pieces(parsed: ParsedFile) -> list[tuple[str | None, str]]:
    return [(block.locator.xpath, block.text) for block in parsed.blocks]


def test_elements_that_hold_named_values_are_records() -> None:
    parsed = read("<r><row id='1'><a>x</a><b>y</b></row><row id='2'><a>x2</a><b><c>1</c></b></row><e k='v'/></r>")
    assert pieces(parsed) == [
        ("/r/row[1]", "id=1\na: x\nb: y"),
        ("/r/row[2]", "id=2\na: x2"),
        ("/r/row[2]/b[1]/c[1]", "1"),
        ("/r", "e k=v"),
    ]
    assert parsed.blocks[0].metadata == {"element": "row", "attributes": {"id": "1"}}


def test_mixed_content_stays_in_order() -> None:
    parsed = read("<d><p>one <b>two</b> three<!-- not this --> four</p>tail</d>")
    assert [block.text for block in parsed.blocks] == ["one two three four", "tail"]


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE r [<!ENTITY a 'b'><!ENTITY c '&a;&a;'>]><r>&c;</r>",
        "<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/hostname'>]><r>&x;</r>",
        "<!DOCTYPE r [<!ENTITY % p SYSTEM 'http://127.0.0.1:9/x'>%p;]><r>x</r>",
    ],
)
def test_entities_are_not_expanded(text: str) -> None:
    parsed = read(text)
    assert parsed.document is not None and "doctype_ignored" in parsed.document.warnings
    assert "".join(block.text for block in parsed.blocks) in (text, "x")


def test_a_document_type_elsewhere_is_not_fetched() -> None:
    parsed = read("<!DOCTYPE r SYSTEM 'http://127.0.0.1:9/x.dtd'><r>&nbsp;x</r>")
    assert pieces(parsed) == [("/r", "&nbsp;x")]
    assert parsed.document is not None and parsed.document.warnings == ["doctype_ignored", "entity_ignored"]


def test_a_fault_keeps_the_text_and_says_where() -> None:
    text = "<r><p>ok</p><p>broken</r>"
    parsed = read(text)
    assert [event.message for event in parsed.events if event.name == "parse_error"] == ["line 1: mismatched tag"]
    assert all(word in "".join(block.text for block in parsed.blocks) for word in ("ok", "broken"))


def test_values_of_one_name_are_all_kept() -> None:
    text = "<r>" + "".join(f"<p>w{at}</p>" for at in range(5)) + "<i><a>1</a><b>2</b><a>3</a><b>4</b></i></r>"
    assert pieces(read(text)) == [*((f"/r/p[{at + 1}]", f"w{at}") for at in range(5)), ("/r/i[1]", "a: 1\nb: 2"), ("/r/i[1]", "a: 3\nb: 4")]
    long = "<r>" + "".join(f"<n{at}>value {at}</n{at}>" for at in range(1_000)) + "</r>"
    shown = "\n".join(block.text for block in read(long).blocks)
    assert shown.split("\n") == [f"n{at}: value {at}" for at in range(1_000)]


def test_depth_is_bounded() -> None:
    assert read("<a>" * 5000 + "</a>" * 5000).rejects[0].reject_class == "too_deep"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_the_declared_encoding_is_read(encoding: str) -> None:
    parsed = read(f"<?xml version='1.0' encoding='{encoding}'?><r>Größe</r>".encode(encoding))
    assert [block.text for block in parsed.blocks] == ["Größe"]


@given(st.binary(max_size=200))
def test_any_bytes_give_rows_or_a_typed_reject(data: bytes) -> None:
    parsed = read(data)
    assert (parsed.document is None) == bool(parsed.rejects)


def test_case_mixed() -> None:
    parsed = read(case("b31-xml-mixed/notice.xml").read_bytes())
    assert [block.text for block in parsed.blocks] == ["Turn valve V2 left slowly.", "Größe a < b & c gilt.", "one\ntwo"]
    assert [block.locator.xpath for block in parsed.blocks] == ["/doc/p[1]", "/doc/s:p[1]", "/doc/p[2]"]
