"""Events of a parse: one for each warning, and it has words."""

from __future__ import annotations

import pytest
from document_files import parse_bytes
from golden_files import samples

from raydex.ir.parsed import ParsedFile
from raydex.kernels.parse import parse
from raydex.kernels.request import ParseRequest


def empty() -> ParsedFile:
    return ParsedFile("rec_1", "hash", "a.txt", "text/plain")


def told(parsed: ParsedFile) -> list[tuple[str, str, str]]:
    return [(event.status, event.name, event.message) for event in parsed.events]


def test_a_warning_that_is_named_and_then_told_is_one_event() -> None:
    parsed = empty()
    parsed.add_event("parse", "warning", "open_quote")
    assert told(parsed) == [("warning", "open_quote", "a quote is never closed; it is read as a character")]
    parsed.add_event("parse", "error", "open_quote", "line 3: a quote is never closed")
    parsed.add_event("parse", "warning", "open_quote")
    assert told(parsed) == [("error", "open_quote", "line 3: a quote is never closed")]
    parsed.add_event("parse", "warning", "open_quote", "line 9: a quote is never closed")
    parsed.add_event("ocr", "warning", "open_quote", "line 3: a quote is never closed")
    assert [event.stage for event in parsed.events] == ["parse", "parse", "ocr"], "what differs stays apart"
    assert len({event.event_id for event in parsed.events}) == 3


def test_a_warning_without_words_of_its_own_is_filled_too() -> None:
    parsed = empty()
    parsed.add_event("parse", "warning", "a_name_of_a_parser_to_come")
    parsed.add_event("parse", "warning", "a_name_of_a_parser_to_come", "3 of them")
    assert told(parsed) == [("warning", "a_name_of_a_parser_to_come", "3 of them")]


FAULTY: dict[str, tuple[str, bytes]] = {
    "nul_replaced": ("text/plain", b"a\x00b\n" + b"plain words\n" * 200),
    "encoding_guessed": ("text/plain", "Grüße aus Köln\n".encode("cp1252") * 4),
    "ragged_rows": ("text/csv", b"name,count\n" + b"pump,2\n" * 20 + b"valve\n" + b"tank,5\n" * 20),
    "open_quote": ("text/csv", b'a,b\n1,"2\n' + b"3,4\n" * 50_000),
    "broken_values": ("application/json", b'{"a": 1, "b": tru'),
    "duplicate_keys": ("application/yaml", b"a: 1\na: 2\n"),
    "unknown_alias": ("application/yaml", b"a: *b\n"),
    "tag_ignored": ("application/yaml", b"a: !mine 1\n"),
    "doctype_ignored": ("application/xml", b"<!DOCTYPE r SYSTEM 'r.dtd'><r><a>text</a></r>"),
    "bidi_controls": ("text/x-python", "a = '\u202ea'\n".encode()),
    "broken_image": ("text/markdown", b"![a](data:image/png;base64,!!!)\n"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_every_warning_of_a_document_is_one_event_with_words(name: str) -> None:
    media_type, data = FAULTY[name]
    parsed = parse_bytes(data, media_type)
    assert parsed.document is not None
    events = [event for event in parsed.events if event.name == name]
    assert len(events) == 1 and events[0].message, told(parsed)


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.name)
def test_no_event_of_any_format_is_without_words(sample) -> None:  # type: ignore[no-untyped-def]
    parsed = parse(ParseRequest("rec_1", "hash", sample.name, sample.media_type, sample.data))
    assert all(event.message for event in parsed.events), told(parsed)
