"""docling as a second parser: the rule of too little, figures of a difference, fallback and shadow, its documents as our blocks."""

from __future__ import annotations

import importlib.util
import io
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from document_files import parse_bytes
from pdf_files import SENTENCE, column, drawn
from sheet_files import sheet_xml, text_row, workbook
from stage_runs import PlainRun

from raydex.configs.settings import Settings, load_settings
from raydex.ir.errors import ConfigError
from raydex.ir.ids import content_hash
from raydex.ir.parsed import ParsedFile
from raydex.ir.rows import Stamp
from raydex.jobs.context import stage_fingerprints
from raydex.jobs.isolation import ParseChild, ParseReply
from raydex.jobs.nursery import ChildKind
from raydex.jobs.one_file import parse_one
from raydex.jobs.second_parser import Mode, SecondParser
from raydex.kernels import too_little as rule
from raydex.kernels.docling_parse import FORMATS, parse_docling
from raydex.kernels.limits import Limits
from raydex.kernels.parse import parse, rejected
from raydex.kernels.request import ParseRequest
from raydex.kernels.text_difference import compare_texts
from raydex.kernels.too_little import plain_characters, too_little

FIXTURES = Path(__file__).parent / "fixtures"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
BROKEN = b"PK\x03\x04" + bytes(26) + b"word/document.xml cut off"
WORDS = "forty letters of plain text in each line. " * 10


def ask(data: bytes | str, media_type: str, **options: Any) -> ParseRequest:
    raw = data.encode() if isinstance(data, str) else data
    return ParseRequest("rec_test", content_hash(raw), "folder/file", media_type, raw, **options)


def stamp(request: ParseRequest) -> Stamp:
    return Stamp(request.record_id, request.content_hash, "", "", 0, datetime(2026, 1, 1, tzinfo=UTC))


# -- the rule ----------------------------------------------------------------------------------------------------------


def judged(parsed: ParsedFile, data: bytes | str, media_type: str) -> str:
    return too_little(parsed, ask(data, media_type))


def test_what_our_parsers_find_is_enough() -> None:
    book = workbook(sheet_xml(text_row(1, "Item", "Place") + text_row(2, WORDS, "here")))
    for data, media_type in (
        (f"<h1>Title</h1><p>{WORDS}</p><nav>{WORDS * 50}</nav><script>{WORDS * 50}</script>", "text/html"),
        (f"# Title\n\n{WORDS}", "text/markdown"),
        (f"a,b\n{WORDS},2\n", "text/csv"),
        (book, XLSX),
        (drawn(lambda canvas: column(canvas, 72, 700, [SENTENCE] * 9)), "application/pdf"),
    ):
        assert judged(parse_bytes(data, media_type), data, media_type) == ""


def test_too_little_is_no_text_or_less_than_a_share_of_it() -> None:
    page = f"<p>{WORDS}</p>"
    parsed = parse_bytes(page, "text/html")
    parsed.blocks[0].text = "forty"
    assert judged(parsed, page, "text/html") == "the blocks hold 5 of about 330 letters and digits, less than 10%"
    parsed.blocks.clear()
    assert judged(parsed, page, "text/html") == "no block has text, but the file has about 330 letters and digits"
    few = parse_bytes("# short", "text/markdown")
    few.blocks.clear()
    assert judged(few, "# short", "text/markdown").startswith("no block has text")
    few = parse_bytes("one two three", "text/markdown")
    few.blocks[0].text = "o"
    assert judged(few, "one two three", "text/markdown") == ""


def test_a_pdf_is_measured_by_the_text_of_its_own_pages() -> None:
    data = drawn(lambda canvas: column(canvas, 72, 700, [SENTENCE] * 9))
    parsed = parse_bytes(data, "application/pdf")
    del parsed.blocks[:]
    assert judged(parsed, data, "application/pdf").startswith("no block has text")
    scan = drawn(lambda canvas: canvas.rect(50, 50, 300, 300))
    assert judged(parse_bytes(scan, "application/pdf"), scan, "application/pdf") == ""


@pytest.mark.parametrize(
    ("reject", "holds"), [("invalid_input", True), ("no_pages", True), ("encrypted", False), ("bomb", False), ("too_large", False)]
)
def test_only_a_broken_file_is_tried_again(reject: str, holds: bool) -> None:
    request = ask("x", "text/html")
    assert bool(too_little(rejected(request, reject, "why"), request)) == holds


def test_the_event_comes_when_it_is_asked_for() -> None:
    request = ask(b"PK\x03\x04 no package", DOCX, measure=True)
    events = [(event.name, event.message) for event in parse(request).events]
    assert (rule.EVENT, "the file was rejected as invalid_input") in events
    assert rule.EVENT not in [event.name for event in parse(ask(request.data, DOCX)).events]


def test_hostile_bytes_are_counted_in_one_pass() -> None:
    for text in ("<" * 300_000, "<script>" * 100_000, "<a b=" * 100_000, "<!--" * 100_000, "&" * 300_000):
        assert plain_characters(ask(text, "text/html")) < 700_000
    assert plain_characters(ask(b"PK\x03\x04broken", DOCX)) == 0


# -- figures of a difference -------------------------------------------------------------------------------------------


def test_a_difference_is_figures_without_text() -> None:
    found = compare_texts(["One two", "two 電池"], ["two one two", "three"])
    assert found.similarity == round(2 * 3 / 9, 4)
    assert found.message() == "blocks=2 other_blocks=2 characters=13 other_characters=16 similarity=0.6667"
    assert compare_texts([], []).similarity == 1.0 and compare_texts(["a"], []).similarity == 0.0


# -- settings ----------------------------------------------------------------------------------------------------------


def test_the_mode_is_part_of_the_fingerprint_and_docling_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def fingerprint(mode: str) -> str:
        return stage_fingerprints(load_settings(None, {"docling": {"mode": mode}}))["parse"]

    assert fingerprint("off") == stage_fingerprints(Settings())["parse"]
    assert len({fingerprint(mode) for mode in ("off", "fallback", "shadow")}) == 3
    monkeypatch.setattr("raydex.kernels.docling_parse.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="extra `docling`"):
        fingerprint("shadow")
    with pytest.raises(ConfigError):
        SecondParser("fallback", Limits())
    assert fingerprint("off")


# -- fallback and shadow, with another second parser in the child --------------------------------------------------------


@pytest.fixture
def fixtures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FIXTURES), os.environ.get("PYTHONPATH", "")]))
    yield


def reviewed(mode: Mode, data: str | bytes, media_type: str = "text/html", limits: Limits | None = None) -> ParseReply:
    request = ask(data, media_type, measure=mode == "fallback", limits=limits or Limits(seconds=60))
    with ParseChild() as ours, SecondParser(mode, request.limits, target="hostile_parsers:parse_more") as second:
        return second.review(request, stamp(request), ours.parse(request, stamp(request)))


def events(reply: ParseReply) -> dict[str, str]:
    rows = reply.tables["events"].to_pylist() if "events" in reply.tables else []
    assert len({row["event_id"] for row in rows}) == len(rows)
    return {row["name"]: row["message"] for row in rows}


def texts(reply: ParseReply) -> list[str]:
    return reply.tables["blocks"].column("text").to_pylist() if "blocks" in reply.tables else []


def test_fallback_takes_the_other_result_where_ours_is_too_little(fixtures: None) -> None:
    reply = reviewed("fallback", b"PK\x03\x04 no package", DOCX)
    assert texts(reply) == ["word " * 10] and "rejects" not in reply.tables
    found = events(reply)
    assert found["docling_fallback"] == "docling's result is taken: 50 characters, ours 0; ours was rejected as invalid_input"
    assert {"too_little", "invalid_input", "docling_partial"} <= set(found)
    enough = reviewed("fallback", "<p>short and good</p>")
    assert texts(enough) == ["short and good"] and events(enough) == {}


def test_fallback_keeps_ours_where_the_other_finds_no_more_or_fails(fixtures: None) -> None:
    failed = reviewed("fallback", b"PK\x03\x04 refuse", DOCX)
    assert events(failed)["docling_failed"] == "invalid_input" and failed.tables["rejects"].num_rows == 1
    assert events(reviewed("fallback", b"PK\x03\x04 die", DOCX))["docling_failed"] == "crash"


def test_shadow_keeps_ours_and_says_how_they_differ(fixtures: None) -> None:
    reply = reviewed("shadow", "<p>word secret</p>")
    assert texts(reply) == ["word secret"]
    message = events(reply)["docling_difference"]
    assert message == "blocks=1 other_blocks=1 characters=11 other_characters=50 similarity=0.1667" and "secret" not in message
    assert events(reviewed("shadow", "<p>refuse</p>"))["docling_difference"] == "docling has no result: invalid_input"
    broken = events(reviewed("shadow", b"PK\x03\x04 no package", DOCX))["docling_difference"]
    assert broken.endswith("similarity=0.0; ours was rejected as invalid_input")


def test_what_is_encrypted_or_of_another_format_is_left_alone(fixtures: None) -> None:
    encrypted = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    for mode in ("fallback", "shadow"):
        assert not any(name.startswith("docling") for name in events(reviewed(mode, encrypted, DOCX)))
        assert not any(name.startswith("docling") for name in events(reviewed(mode, "plain", "text/plain")))


def other_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raydex.jobs.second_parser.TARGET", "hostile_parsers:parse_more")
    monkeypatch.setattr("raydex.jobs.second_parser.PRELOADED", ())


def test_one_file_is_parsed_as_in_a_run(fixtures: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other_parser(monkeypatch)
    file = tmp_path / "broken.docx"
    file.write_bytes(BROKEN)
    parsed = parse_one(file, load_settings(None, {"docling": {"mode": "fallback"}}))
    assert [block["text"] for block in parsed["blocks"]] == ["word " * 10] and parsed["rejects"] == []
    assert [event["name"] for event in parsed["events"]][-1] == "docling_fallback"
    assert parse_one(file, Settings())["rejects"][0]["class"] == "invalid_input"


def test_a_run_takes_the_other_result_and_counts_the_record_as_indexed(
    fixtures: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other_parser(monkeypatch)
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "broken.docx").write_bytes(BROKEN)
    (folder / "good.html").write_text("<p>short and good</p>")
    run = PlainRun(folder, tmp_path / "lake", docling={"mode": "fallback"})
    run.run()
    assert {row["path"]: (row["state"], row["reject_class"]) for row in run.rows("records")} == {
        "broken.docx": ("indexed", ""),
        "good.html": ("indexed", ""),
    }
    assert {row["text"] for row in run.rows("blocks")} == {"word " * 10, "short and good"}
    assert run.rows("rejects") == []
    run.change(docling={"mode": "shadow"})
    run.run()
    assert {row["path"] for row in run.rows("events") if row["name"] == "docling_difference"} == {"broken.docx", "good.html"}


# -- a child that is watched instead of limited ------------------------------------------------------------------------


def test_a_watched_child_is_ended_by_the_memory_that_it_holds(fixtures: None) -> None:
    kind = ChildKind(resident_bytes=700_000_000, variables=(("RAYDEX_WATCHED", "1"),), kept_out=())
    request = ask("creep", "text/plain", limits=Limits(seconds=60, memory_bytes=1))
    with ParseChild(target="hostile_parsers:parse", kind=kind, tries=1) as child:
        reply = child.parse(request, stamp(request))
        assert reply.reject_class == "memory" and "more than 700000000 bytes" in reply.tables["rejects"].column("error")[0].as_py()
        fine = ask("ok", "text/plain", limits=Limits(seconds=60, memory_bytes=1))
        assert "blocks" in child.parse(fine, stamp(fine)).tables


# -- docling itself ----------------------------------------------------------------------------------------------------

needs_docling = pytest.mark.skipif(importlib.util.find_spec("docling") is None, reason="docling is not installed")


def docx_bytes() -> bytes:
    import docx

    document = docx.Document()
    document.add_heading("Pumps", 1)
    document.add_paragraph("A pump moves oil.")
    document.add_paragraph("first", style="List Bullet")
    table = document.add_table(2, 2)
    for at, text in enumerate(("Part", "Mass", "valve", "3")):
        table.cell(at // 2, at % 2).text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def pptx_bytes() -> bytes:
    import pptx

    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Deck"
    slide.placeholders[1].text = "A point"
    slide.notes_slide.notes_text_frame.text = "Say it"
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def xlsx_bytes() -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "S1"
    for row, texts in ((2, ("Part", "Mass")), (3, ("valve", "3"))):
        for place, text in enumerate(texts, 2):
            book.active.cell(row, place, text)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


@needs_docling
@pytest.mark.slow
def test_documents_of_every_format_become_marked_blocks_with_places() -> None:
    made = {
        "text/html": b"<h1>Pumps</h1><p>A <b>pump</b> moves <a href='https://x.org/'>oil</a>.</p><ul><li>one<ul><li>two</li></ul></li></ul>",
        "text/markdown": b"# Pumps\n\nA pump moves oil.\n\n```python\nprint(1)\n```\n",
        "text/csv": b"Part,Mass\nvalve,3\n",
        "application/pdf": drawn(lambda canvas: column(canvas, 72, 700, [SENTENCE] * 3)),
        DOCX: docx_bytes(),
        PPTX: pptx_bytes(),
        XLSX: xlsx_bytes(),
    }
    assert set(made) == set(FORMATS)
    found: dict[str, ParsedFile] = {}
    for media_type, data in made.items():
        parsed = found[media_type] = parse_docling(ask(data, media_type))
        assert parsed.document is not None, (media_type, parsed.rejects)
        assert (parsed.document.parser, parsed.document.metadata["parser"]) == ("docling", "docling")
        assert parsed.document.parser_version.startswith("2.") and parsed.blocks
        assert all(block.metadata["source"] == "docling" for block in parsed.blocks)
    page = found["text/html"].blocks
    assert [(block.kind, block.text) for block in page] == [
        ("heading", "Pumps"),
        ("paragraph", "A pump moves oil."),
        ("list_item", "one"),
        ("list_item", "two"),
    ]
    assert [block.metadata.get("level") for block in page[2:]] == [0, 1] and page[1].links[0].href == "https://x.org/"
    assert found["text/markdown"].blocks[-1].kind == "code" and found["text/markdown"].blocks[-1].metadata["language"] == "python"
    assert found["text/csv"].blocks[0].text == "Part | Mass\nvalve | 3"
    lines = found["application/pdf"]
    assert (lines.pages[0].text_state, lines.blocks[0].locator.page) == ("native", 1)
    assert lines.blocks[0].locator.bbox is not None and 130 < lines.blocks[0].locator.bbox[1] < 150
    word = [(block.kind, block.text, block.locator.paragraph) for block in found[DOCX].blocks]
    assert [row[:2] for row in word] == [
        ("heading", "Pumps"),
        ("paragraph", "A pump moves oil."),
        ("list_item", "first"),
        ("table", "Part | Mass\nvalve | 3"),
    ]
    deck = {block.kind: block for block in found[PPTX].blocks}
    assert deck["heading"].text == "Deck" and deck["heading"].locator.slide == 1 and deck["heading"].locator.bbox is not None
    assert deck["note"].text == "Say it" and deck["note"].locator.slide == 1
    sheet = found[XLSX].blocks[-1]
    assert (sheet.kind, sheet.locator.sheet, sheet.locator.cells) == ("table", "S1", "B2:C3")


@needs_docling
@pytest.mark.slow
def test_docling_runs_in_its_child_without_network(fixtures: None) -> None:
    request = ask("<p>Hello</p>", "text/html", limits=Limits(seconds=100))
    broken = ask(b"no package at all", DOCX, limits=Limits(seconds=100))
    with SecondParser("shadow", request.limits) as second, ParseChild() as ours:
        reply = second.review(request, stamp(request), ours.parse(request, stamp(request)))
        assert events(reply)["docling_difference"].endswith("similarity=1.0")
        reply = second.review(broken, stamp(broken), ours.parse(broken, stamp(broken)))
        assert events(reply)["docling_difference"] == "docling has no result: invalid_input"
        assert second._child.network in ("namespace", "audit hook")
