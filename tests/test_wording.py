"""Places and blocks in words, and what `parse`, `search` and `show` print of formats that have no lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raydex.configs.settings import load_settings
from raydex.ir.locator import Locator
from raydex.jobs.one_file import parse_one
from raydex.jobs.render import ROWS_SHOWN, print_hits, print_parsed, print_shown
from raydex.jobs.source_types import SOURCE_TYPES
from raydex.jobs.wording import block_words, place_words, ticket_part

CORPUS = Path(__file__).parents[1] / "examples" / "corpus"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def printed(file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    print_parsed(parse_one(file, load_settings()))
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (Locator(sheet="Tours 1", cells="A2:D7", table=1), "sheet Tours 1, cells A2:D7"),
        (Locator(slide=2, shape=4, bbox=(1, 2, 3, 4)), "slide 2, shape 4"),
        (Locator(paragraph=3, note=1), "paragraph 3, note 1"),
        (Locator(part="1.2", char=(4, 9)), "part 1.2, char 4-9"),
        (Locator(member="a/b.csv"), "a/b.csv"),
        (Locator(page=3, bbox=(0, 0, 9, 9)), "page 3"),
        (Locator(bbox=(0, 0, 640, 360), image=1), "box 0,0,640,360"),
        (Locator(comment="0", paragraph=3, note=1), "paragraph 3, comment 0"),
        (Locator(row=5, line=(6, 6), char=(9, 20)), "row 5, line 6"),
        (Locator(pointer="/a/0", line=(2, 4), char=(1, 9)), "line 2-4, char 1-9"),
        (Locator(pointer="/a/0"), "/a/0"),
        (Locator(xpath="/a/b[2]", line=(4, 4)), "line 4, /a/b[2]"),
        (Locator(field="changelog", pointer="/changelog/histories/0/items/0"), "changelog"),
        (Locator(field="comment", comment="20311", pointer="/fields/comment"), "comment 20311"),
    ],
)
def test_places_in_words(place: Locator, words: str) -> None:
    assert place_words(place.to_json()) == words


def block(kind: str = "paragraph", place: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"kind": kind, "locator": place or {"char": [0, 1]}, "metadata": metadata}


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (block(), "paragraph"),
        (block(source="ocr", confidence=0.987), "paragraph, OCR 0.99"),
        (block("image", source="ocr"), "image, OCR"),
        (block(place={"field": "changelog"}, change_id="1", field="status", author="A"), "paragraph, change of status"),
        (block(place={"field": "comment"}, comment_id="1", author="Ann"), "paragraph, comment by Ann"),
        (block(place={"field": "comment"}, comment_id="1", author=""), "paragraph, comment by nobody"),
        (block(place={"field": "worklog"}, author="Ann"), "paragraph, work logged"),
        (block("heading", {"field": "changelog"}), "heading"),
        (block("note", author="M. Okafor"), "note, by M. Okafor"),
        (block("note", speaker_notes=True), "note, speaker's"),
        (block("table", sheet_state="hidden"), "table, hidden sheet"),
        (block("heading", sheet_state="visible"), "heading"),
        (block(quote=True, quote_level=1), "paragraph, quoted"),
        (block(signature=True), "paragraph, signature"),
        (block("list_item", task="DONE"), "list_item, task done"),
        (block(timestamp="2031", level="ERROR"), "paragraph, ERROR"),
    ],
)
def test_blocks_in_words(item: dict[str, Any], words: str) -> None:
    assert block_words(item) == words


def test_a_change_is_told_from_a_requirement_only_where_all_of_it_is_one() -> None:
    change, description = {"field": "changelog"}, {"field": "description", "pointer": "/fields/description"}
    assert ticket_part([change, {**change, "pointer": "/x"}]) == "changes of fields, no requirement"
    assert ticket_part([change, description]) == ticket_part([description]) == ticket_part([]) == ""


def test_parse_prints_members_and_what_became_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(CORPUS / "mail" / "offer-latches.eml", capsys)
    assert "offer-latches.eml!/offer-2031-118.pdf" in out and "74 euros each" in out
    assert "paragraph, quoted" in out and "paragraph, signature" in out and "part 1.1, char 0-6" in out
    assert "7 blocks, 1 image, 2 observations, 1 file inside." in out


def test_parse_prints_members_of_members_and_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import io
    import zipfile

    inner, outer = io.BytesIO(), tmp_path / "outer.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("deep.txt", "from far below")
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("inner.zip", inner.getvalue())
        archive.writestr("cut.pdf", b"%PDF-1.4 nothing more")
    out = printed(outer, capsys)
    assert "outer.zip!/inner.zip!/deep.txt" in out and "from far below" in out
    assert "rejected (invalid_input)" in out and "3 files inside" in out


def test_parse_tells_the_changes_of_a_ticket_from_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(CORPUS / "tickets" / "DOCK-152.json", capsys)
    assert "paragraph, change of status" in out and "paragraph, comment by Tomas Brandt" in out
    assert "2 comments, 3 changes, 1 worklog, 1 remote link" in out
    assert any("description" in line and "paragraph, panel warning" in line for line in out.splitlines())


def test_parse_prints_sheets_slides_and_pages_without_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert "table, hidden sheet" in (out := printed(CORPUS / "data" / "van-log.xlsx", capsys)) and "sheet Tours, cells A2:D7" in out
    assert "note, speaker's" in (out := printed(CORPUS / "docs" / "slides" / "season-2031.pptx", capsys)) and "slide 1, shape 3" in out
    assert "1 page (1 ocr)" in printed(CORPUS / "docs" / "reports" / "workshop-order-47.pdf", capsys)


def test_parse_says_what_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "long.txt"
    file.write_bytes(b"\r\n\r\n".join(b"word %d" % n for n in range(ROWS_SHOWN + 1)) + b"\r\nsecond line " + b"x" * 200)
    out = printed(file, capsys)
    assert f"{ROWS_SHOWN} of {ROWS_SHOWN + 1} blocks are shown; --json gives all." in out
    file.write_bytes(b"first\r\nsecond " + b"x" * 200)
    out = printed(file, capsys)
    assert "\\x0d" not in out and "…" in out and "are shown" not in out


def test_parse_prints_what_was_seen_in_images(capsys: pytest.CaptureFixture[str]) -> None:
    parsed = parse_one(CORPUS / "docs" / "reports" / "holds-by-hour.png", load_settings())
    seen = {"locator": {"bbox": [0.0, 0.0, 640.0, 360.0]}, "confidence": 0.981, "engine": "rapidocr", "engine_version": "3"}
    parsed["observations"] = [
        {**seen, "kind": "ocr", "status": "ok", "text": "Holds that ran out"},
        {**seen, "kind": "caption", "status": "unavailable", "text": "", "confidence": None, "engine": "", "engine_version": ""},
    ]
    print_parsed(parsed)
    out = capsys.readouterr().out
    assert "ocr: rapidocr 3" in out and "0.98" in out and "Holds that ran out" in out and "unavailable" in out


def test_hits_and_shown_things_say_what_part_of_a_ticket_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    places = [{"field": "changelog"}, {"field": "changelog", "pointer": "/changelog/histories/0/items/0"}]
    hit = {
        "rank": 1,
        "score": 0.5,
        "source": "s",
        "path": "t.json",
        "locators": places,
        "section_path": ["Changelog"],
        "title": "Changelog",
    }
    hit |= {"content": "status changed", "chunk_id": "chk_1", "entity_id": ""}
    print_hits({"hits": [hit], "truncated": False, "generation": 1, "engine": "exact"})
    assert "changelog (changes of fields, no requirement)" in capsys.readouterr().out
    print_shown({"id": "chk_1", "table": "chunks", "generation": 1, "row": {"content": "x"}, "locators": places, "source_text": None})
    out = capsys.readouterr().out
    assert "part of the ticket: changes of fields, no requirement" in out and "source text: none" in out


def test_every_parsed_type_is_a_document_or_code() -> None:
    assert not set(SOURCE_TYPES["document"]) & set(SOURCE_TYPES["code"])
    assert {"message/rfc822", "text/csv", "image/png", "application/json", "text/html"} <= set(SOURCE_TYPES["document"])
