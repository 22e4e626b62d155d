"""Places and blocks in words, and what `parse`, `search` and `show` print of formats that have no lines."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from raydex.configs.settings import load_settings
from raydex.ir.locator import Locator
from raydex.jobs.one_file import parse_one
from raydex.jobs.render import ROWS_SHOWN, print_documents, print_hits, print_parsed, print_shown, print_summary, print_verdict
from raydex.jobs.source_types import SOURCE_TYPES
from raydex.jobs.wording import block_words, place_words, places_words, ticket_part

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


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([Locator(page=3), Locator(page=4, bbox=(0, 0, 1, 1)), Locator(page=5), Locator(page=4)], "pages 3–5"),
        ([Locator(page=3), Locator(page=3, bbox=(0, 0, 1, 1))], "page 3"),
        ([Locator(slide=2), Locator(slide=4), Locator(slide=6), Locator(slide=8), Locator(slide=10)], "slides 2, 4, 6, +2 more"),
        ([Locator(line=(3, 4), char=(0, 9)), Locator(line=(9, 12), char=(20, 40))], "lines 3–12"),
        ([Locator(line=(3, 3), char=(0, 9)), Locator(line=(3, 3), char=(20, 40))], "line 3"),
        ([Locator(row=5, line=(6, 6)), Locator(row=6, line=(7, 7)), Locator(row=9, line=(10, 10))], "rows 5–6, 9"),
        ([Locator(paragraph=3), Locator(paragraph=4, note=1)], "paragraphs 3–4"),
        ([Locator(sheet="S 1", cells="A1:D40"), Locator(sheet="S 1", cells="F1:G9")], "sheet S 1, cells A1:D40, cells F1:G9"),
        (
            [Locator(sheet=name, cells="A1:B2") for name in ("one", "two", "three", "four", "five")],
            "sheet one, cells A1:B2, sheet two, cells A1:B2, sheet three, cells A1:B2, +2 more",
        ),
        ([Locator(part="1.1", char=(0, 9)), Locator(part="1.2", char=(0, 4))], "part 1.1, chars 0–9, part 1.2, chars 0–4"),
        ([Locator(pointer="/a"), Locator(pointer="/b"), Locator(pointer="/a")], "/a, /b"),
        ([Locator(comment="7", field="comment"), Locator(field="changelog")], "comment 7, changelog"),
        ([Locator(slide=2, shape=4)], "slide 2, shape 4"),
    ],
)
def test_all_places_of_a_chunk_in_words(places: list[Locator], words: str) -> None:
    assert places_words([place.to_json() for place in places]) == words


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


@pytest.mark.parametrize(
    ("title", "section_path", "line"),
    [
        ("Restart", ["Manual", "Restart"], "Manual › Restart"),
        ("Restart", [], "Restart"),
        ("pump.html", [], None),
        ("docs/pump.html", ["Manual"], "Manual"),
        ("Table 2", ["Manual"], "Manual › Table 2"),
    ],
)
def test_a_hit_says_its_title_and_its_path_once(
    capsys: pytest.CaptureFixture[str], title: str, section_path: list[str], line: str | None
) -> None:
    hit = {"rank": 1, "score": 0.5, "source": "s", "path": "docs/pump.html", "title": title, "section_path": section_path}
    hit |= {"locators": [{"page": 3}, {"page": 4}], "content": "text", "chunk_id": "chk_1", "entity_id": ""}
    print_hits({"hits": [hit], "truncated": False, "generation": 1, "engine": "exact"})
    lines = [one.strip() for one in capsys.readouterr().out.splitlines()]
    assert lines[:-1] == ["1. 0.500  s/docs/pump.html  pages 3–4", *([line] if line else []), "text", "chk_1"]


class Screen(io.StringIO):
    """A terminal of the width that COLUMNS says."""

    def isatty(self) -> bool:
        return True


def document_row(**changes: Any) -> dict[str, Any]:
    row = {"source": "wiki", "path": "a.md", "title": "A", "media_type": "text/markdown", "state": "indexed", "chunks": 2, "vectors": 2}
    return {**row, "missing": [], "reject_class": "", "error": "", "note": "", **changes}


TOO_LARGE = "9 bytes are more than limits.input_bytes (8)"
DOCUMENTS = {
    "documents": [
        document_row(path="long/" * 40 + "name.md", title="A\tB"),
        document_row(
            state="rejected", reject_class="too_large", error="9 bytes are more than limits.input_bytes (8)\nmore", media_type=None
        ),
        document_row(state="degraded", missing=["embedding"], vectors=0),
    ],
    "total": 4,
    "mismatches": 0,
}


def test_documents_for_another_program_are_a_line_each(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_documents(DOCUMENTS)
    out, err = capsys.readouterr()
    rows = [line.split("\t") for line in out.splitlines()]
    assert rows[0] == ["document", "title", "media type", "state", "chunks", "vectors", "error", "note"] and len(rows) == 4
    assert rows[1] == ["wiki/" + "long/" * 40 + "name.md", "A\\tB", "text/markdown", "indexed", "2", "2", "", ""]
    assert rows[2][6] == "too_large: 9 bytes are more than limits.input_bytes (8)⏎more" and rows[3][7] == "lacks embedding"
    assert err == "3 of 4 documents, 0 mismatches between stores and registry.\n"


def test_documents_for_people_are_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", screen := Screen())
    print_documents(DOCUMENTS)
    assert "too_large: 9 bytes are more than limits.input_bytes (8)⏎more" in screen.getvalue() and "3 of 4 documents" in screen.getvalue()


def test_tables_for_another_program_are_not_wrapped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    detail = "word " * 60
    print_verdict({"checks": [{"name": "evidence", "result": "ok", "detail": detail}], "ok": True, "not_checked": 0, "generation": 1})
    assert detail in capsys.readouterr().out


def test_figures_that_were_not_measured_stay_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout", screen := Screen())
    figures = {"rows_in": 123456, "rows_out": 123456, "rejects": 1000, "seconds": 10.0, "cpu_seconds": 1.0, "gpu_seconds": 0}
    records = dict.fromkeys(
        ("seen", "new", "changed", "reprocessed", "retried", "unchanged", "deleted", "indexed", "degraded", "rejected"), 1
    )
    stages = {name: {**figures, "wall_seconds": None, "queue": None} for name in ("parse", "observe", "caption", "chunk", "embed")}
    print_summary({"stages": stages, "records": records, "children": {}, "rejects": {}, "generation": 1, "seconds": 1.0, "run": "run_1"})
    lines = screen.getvalue().splitlines()
    for name in stages:
        (line,) = (line for line in lines if line.split()[:1] == [name])
        assert line.split()[1:] == ["123456", "123456", "1000", "–", "10.0", "–", "1.0"]
    assert "– was not measured" in screen.getvalue()


def test_every_parsed_type_is_a_document_or_code() -> None:
    assert not set(SOURCE_TYPES["document"]) & set(SOURCE_TYPES["code"])
    assert {"message/rfc822", "text/csv", "image/png", "application/json", "text/html"} <= set(SOURCE_TYPES["document"])
