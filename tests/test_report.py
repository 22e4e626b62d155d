"""Progress and report: queues as they were, a run's own generation, failed runs, what was not measured."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from raydex.cluster.delta import commit_files, rewrite_table, vacuum, write_data_file
from raydex.cluster.lake import Generation, Lake, complete_generation, next_number, pin_versions
from raydex.configs.settings import load_settings
from raydex.ir.errors import ConfigError
from raydex.ir.rows import to_table
from raydex.jobs.context import RunContext
from raydex.jobs.progress import Board, ProgressView, Reading, queued
from raydex.jobs.report import write_report
from raydex.jobs.summary import join_stages, record_run

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
FIGURES = {"rows_in": 6, "rows_out": 5, "rejects": 1, "seconds": 4.0, "cpu_seconds": 3.0, "gpu_seconds": 0.0}
COUNTS = dict.fromkeys(("seen", "new", "changed", "unchanged", "deleted", "indexed", "degraded", "rejected"), 1)


# -- queues ------------------------------------------------------------------------------------------------------------


def test_the_board_keeps_the_highest_queue_of_every_stage() -> None:
    board = Board()
    board.expect({"parse": 10, "chunk": 12, "embed": 15})
    board.add("parse", 6, 1, 0)
    board.add("chunk", 3, 0, 0)
    board.add("parse", 4, 0, 0)
    board.add("chunk", 8, 0, 0)
    board.add("embed", 15, 0, 0)
    reading = board.read()
    # 2 records start at chunking, 3 at embedding; the one that parsing rejects passes chunking by
    assert reading.queues == {"parse": 10, "chunk": 8, "embed": 15}
    assert queued(board.totals, reading.counts) == {"parse": 0, "chunk": 0, "embed": 0}
    assert set(reading.ages) == {"parse", "chunk", "embed"}


def test_reports_that_overtake_one_another_make_no_negative_queue() -> None:
    assert queued({"parse": 4, "chunk": 4, "embed": 4}, {"chunk": [2, 0, 0]}) == {"parse": 4, "chunk": 0, "embed": 2}


@pytest.mark.parametrize("enabled", [True, False])
def test_the_view_measures_whether_it_draws_or_not(enabled: bool) -> None:
    out = io.StringIO()
    view = ProgressView({"parse": 4, "chunk": 4, "embed": 4}, out, enabled)
    view.started -= 100
    view.draw(Reading({"parse": [4, 1, 9], "chunk": [1, 0, 0]}))
    view.measure(Reading({}, {"parse": 4, "chunk": 3, "embed": 0}, {"parse": 60.0, "chunk": 5.0}))
    assert {stage: figures["queue"] for stage, figures in view.measured.items()} == {"parse": 4, "chunk": 3, "embed": 0}
    assert view.measured["parse"]["wall_seconds"] == pytest.approx(40, abs=1)
    assert view.measured["chunk"]["wall_seconds"] == pytest.approx(95, abs=1)
    assert "wall_seconds" not in view.measured["embed"]
    assert ("1/3 done       2 queued" in out.getvalue()) is enabled


def test_two_summaries_join_into_one() -> None:
    left = {"embed": {"rows_in": 3, "queue": 9, "wall_seconds": 1.5}, "parse": {"rows_in": 1, "queue": None}}
    right = {"embed": {"rows_in": 4, "queue": 2, "wall_seconds": None}, "parse": {"rows_in": 1, "queue": 5}}
    assert join_stages(left, right) == {
        "embed": {"rows_in": 7, "queue": 9, "wall_seconds": None},
        "parse": {"rows_in": 2, "queue": None},
    }


# -- reports -----------------------------------------------------------------------------------------------------------


class Runs:
    """A lake with runs written by hand, without engines."""

    def __init__(self, root: Path) -> None:
        self.lake = Lake(root)
        self.count = 0

    def add_record(self, path: str, media_type: str, reject_class: str = "") -> None:
        columns = {"record_id": path, "path": path, "uri": f"file:///x/{path}", "media_type": media_type, "reject_class": reject_class}
        columns |= {"state": "rejected" if reject_class else "indexed", "error": "broken" if reject_class else ""}
        rows = to_table("records", {key: [value] for key, value in columns.items()} | {"epoch": [self.count + 1], "attempts": [1]})
        commit_files(self.lake.tables, "records", [write_data_file(self.lake.tables, "records", rows)])

    def add_rows(self, name: str, *rows: dict[str, Any]) -> None:
        table = to_table(name, {key: [row.get(key) for row in rows] for key in rows[0]})
        commit_files(self.lake.tables, name, [write_data_file(self.lake.tables, name, table)])

    def finish(self, stages: dict[str, dict[str, Any]], error: str = "") -> str:
        """Ends a run, with a new generation unless it failed; returns its id."""
        self.count += 1
        run_id = f"run_{self.count:032x}"
        began = BEGAN + timedelta(hours=self.count)
        generation = Generation(next_number(self.lake), pin_versions(self.lake), run_id, self.count)
        if error:
            summary: dict[str, Any] = {"run": run_id, "error": error, "seconds": 2.0}
        else:
            complete_generation(self.lake, generation)
            summary = {"run": run_id, "generation": generation.number, "seconds": 9.0, "records": COUNTS, "stages": stages}
        settings = load_settings()
        context = RunContext(str(self.lake.root), run_id, settings.workspace, settings, {}, began, "")
        record_run(self.lake, context, summary, began, None if error else generation, state="failed" if error else "complete")
        return run_id

    def page(self, run: str | None = None) -> str:
        return write_report(Path(self.lake.root), run, Path(self.lake.root) / "report.html").read_text()


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "lake")


def cells(page: str, stage: str) -> list[str]:
    (line,) = [part for part in page.split("<tr>") if part.startswith(f"<td>{stage}<")]
    return [cell.split("<")[0] for cell in line.split("<td class=n>")[1:]]


def test_the_report_shows_queues_and_tells_actor_seconds_from_wall_seconds(runs: Runs) -> None:
    runs.finish({"list": {**FIGURES, "wall_seconds": 4.0}, "parse": {**FIGURES, "wall_seconds": 2.0, "queue": 6}})
    page = runs.page()
    assert "highest queue" in page and "actor-seconds" in page
    assert cells(page, "parse") == ["6", "5", "1", "6", "4.0", "2.0", "3.0", "3.0", "0.0"]
    assert cells(page, "list") == ["6", "5", "1", "", "", "4.0", "1.5", "3.0", "0.0"]


@pytest.mark.parametrize("missing", [{}, {"queue": None, "wall_seconds": None}])
def test_what_was_not_measured_is_not_shown_as_zero(runs: Runs, missing: dict[str, None]) -> None:
    runs.finish({"list": FIGURES, "parse": {**FIGURES, **missing}})
    assert cells(runs.page(), "parse") == ["6", "5", "1", "–", "4.0", "–", "", "3.0", "0.0"]
    assert cells(runs.page(), "list") == ["6", "5", "1", "", "", "4.0", "1.5", "3.0", "0.0"]


def test_an_old_run_shows_its_own_generation(runs: Runs) -> None:
    runs.add_record("old.html", "text/html", "syntax")
    first = runs.finish({})
    rewrite_table(runs.lake.tables, "records", ["path"], lambda part: pc.not_equal(part.column("path"), "old.html"))
    runs.add_record("new.md", "text/markdown")
    second = runs.finish({})
    old, new = runs.page(first), runs.page(second)
    assert "text/html" in old and "old.html" in old and "text/markdown" not in old
    assert "text/markdown" in new and "text/html" not in new and "<p>None.</p>" in new
    vacuum(runs.lake.tables, "records", [3], timedelta(0))
    gone = runs.page(first)
    assert "the records of generation 1 are no longer readable" in gone
    assert "text/markdown" not in gone and "<p>None.</p>" not in gone
    assert "text/markdown" in runs.page(second)


def test_the_last_run_is_shown_when_it_failed(runs: Runs) -> None:
    good = runs.finish({"parse": FIGURES})
    bad = runs.finish({}, error="the disk <is> full")
    page = runs.page()
    assert f"Run {bad} failed" in page and "the disk &lt;is&gt; full" in page
    assert f"Run {good}</h1>" in runs.page(good)
    with pytest.raises(ConfigError, match="no run run_nothing"):
        runs.page("run_nothing")


def test_a_lake_without_runs_says_so(tmp_path: Path) -> None:
    Lake(tmp_path / "lake")
    with pytest.raises(ConfigError, match="no finished run"):
        write_report(tmp_path / "lake", None, None)


# -- what the generation holds -----------------------------------------------------------------------------------------


OFFICE = "application/vnd.openxmlformats-officedocument"


def record(path: str, media_type: str, parent: str = "", state: str = "indexed", reject_class: str = "") -> dict[str, Any]:
    about = {"record_id": path, "parent_id": parent, "path": path, "uri": "file:///x", "media_type": media_type, "state": state}
    return about | {"reject_class": reject_class, "error": "", "epoch": 1, "attempts": 0}


def section(page: str, title: str) -> str:
    """The HTML below one heading."""
    return page.split(f"<h2>{title}</h2>")[1].split("<h2>")[0]


def lines(html: str) -> list[list[str]]:
    """Cells of the rows, without tags."""
    return [[re.sub("<[^>]*>", "", cell) for cell in re.split(r"<t[dh][^>]*>", row)[1:]] for row in html.split("<tr>")[1:]]


def test_formats_count_records_by_state_and_blocks(runs: Runs) -> None:
    runs.add_rows("records", record("a.pdf", "application/pdf"), record("b.pdf", "application/pdf", state="rejected"), record("c", ""))
    runs.add_rows("documents", {"record_id": "a.pdf", "media_type": "application/pdf", "block_count": 7})
    runs.finish({})
    assert lines(section(runs.page(), "Formats")) == [
        ["media type", "indexed", "rejected", "blocks"],
        ["(unknown)", "1", "", ""],
        ["application/pdf", "1", "1", "7"],
    ]


def test_documents_are_named_with_their_parts(runs: Runs) -> None:
    sheet, deck = f"{OFFICE}.spreadsheetml.sheet", f"{OFFICE}.presentationml.presentation"
    runs.add_rows(
        "records",
        *(record("b.xlsx", sheet), record("a.pptx", deck), record("c.pdf", "application/pdf", state="degraded")),
        *(record("d.pdf", "application/pdf", state="rejected"), record("e.py", "text/x-python"), record("f.png", "image/png")),
    )
    sheets = '{"sheets": [{"name": "Tours", "state": "visible", "cells": "A1"}, {"name": "R<ota", "state": "hidden", "cells": ""}]}'
    about = {"text_state": "native", "page_count": 0, "metadata": "{}"}
    runs.add_rows(
        "documents",
        about | {"record_id": "b.xlsx", "title": "Log", "block_count": 3, "metadata": sheets},
        about | {"record_id": "a.pptx", "title": "Season", "block_count": 2, "metadata": '{"slides": 1}'},
        about | {"record_id": "c.pdf", "title": "", "block_count": 0, "page_count": 4, "text_state": "unavailable"},
        about | {"record_id": "f.png", "title": "f", "block_count": 1},
    )
    runs.finish({})
    assert lines(section(runs.page(), "Documents"))[1:] == [
        ["a.pptx", "Season", "1 slide", "2", "native"],
        ["b.xlsx", "Log", "2 sheets: Tours, R&lt;ota (hidden)", "3", "native"],
        ["c.pdf", "", "4 pages", "0", "unavailable"],
    ]


def test_an_attachment_stands_below_its_mail_and_fails_alone(runs: Runs) -> None:
    mail, good, bad = "m/offer.eml", "m/offer.eml!/offer.pdf", "m/offer.eml!/<broken>.pdf"
    runs.add_rows(
        "records",
        record("z.zip", "application/zip"),
        record("z.zip!/inner/one.csv", "text/csv", "z.zip"),
        record(mail, "message/rfc822"),
        record(good, "application/pdf", mail),
        record(bad, "application/pdf", mail, "rejected", "invalid_input"),
    )
    runs.finish({})
    assert lines(section(runs.page(), "Attachments and files inside of files"))[1:] == [
        ["m/offer.eml", "message/rfc822", "indexed"],
        ["└ &lt;broken&gt;.pdf", "application/pdf", "rejected (invalid_input)"],
        ["└ offer.pdf", "application/pdf", "indexed"],
        ["z.zip", "application/zip", "indexed"],
        ["└ inner/one.csv", "text/csv", "indexed"],
    ]


def test_long_families_are_cut_and_say_so(runs: Runs) -> None:
    runs.add_rows("records", record("z.zip", "application/zip"), *(record(f"z.zip!/{n:03}", "text/csv", "z.zip") for n in range(45)))
    runs.finish({})
    found = lines(section(runs.page(), "Attachments and files inside of files"))
    assert len(found) == 1 + 1 + 20 + 1 and found[-1][0] == "└ … and 25 more"


def test_pages_tell_what_ocr_read_and_what_it_did_not(runs: Runs) -> None:
    runs.add_rows("records", record("scan.pdf", "application/pdf"))
    states = ("native", "ocr", "mixed", "unavailable", "unavailable")
    runs.add_rows(
        "pages",
        *({"page_id": f"pag_{n}", "record_id": "scan.pdf", "number": n, "text_state": state} for n, state in enumerate(states, 1)),
    )
    seen = {"kind": "ocr", "engine": "rapidocr", "engine_version": "3", "record_id": "scan.pdf"}
    runs.add_rows(
        "observations",
        {"observation_id": "o1", "asset_id": "pag_2", "status": "ok", "text": "Tighten <two> screws", "confidence": 0.987, **seen},
        {"observation_id": "o2", "asset_id": "pag_3", "status": "no_text", "text": "", "confidence": None, **seen},
        {"observation_id": "o3", "asset_id": "pag_4", "status": "failed", "text": "", "confidence": None, **seen},
    )
    runs.finish({})
    body = section(runs.page(), "Pages read by OCR")
    assert "1 mixed, 1 ocr, 2 unavailable." in body
    assert [row[1:] for row in lines(body)[1:]] == [
        ["2", "ocr", "ok (rapidocr 3)", "0.99", "Tighten &lt;two&gt; screws"],
        ["3", "mixed", "no_text (rapidocr 3)", "", ""],
        ["4", "unavailable", "failed (rapidocr 3)", "", ""],
        ["5", "unavailable", "unavailable", "", ""],
    ]


def test_images_keep_ocr_and_caption_apart(runs: Runs) -> None:
    runs.add_rows("records", record("chart.png", "image/png"), record("deck.pptx", "application/x"), record("page.html", "text/html"))
    runs.add_rows(
        "assets",
        {"asset_id": "ast_1", "record_id": "chart.png", "ordinal": 0, "kind": "image", "locator": "bbox=0.00,0.00,640.00,360.00"}
        | {"media_type": "image/png", "width": 640, "height": 360, "alt": "", "href": "", "cas_uri": "cas:2"},
        {"asset_id": "ast_2", "record_id": "deck.pptx", "ordinal": 0, "kind": "image", "locator": "slide=2;shape=8"}
        | {"media_type": "image/jpeg", "width": 420, "height": 120, "alt": "Sign", "cas_uri": "cas:1"},
        {"asset_id": "ast_3", "record_id": "page.html", "ordinal": 0, "kind": "image", "locator": "char=4-9;line=1-1"}
        | {"alt": "Plan", "href": "plan.svg", "cas_uri": ""},
    )
    runs.add_rows(
        "blocks",
        {"block_id": "b1", "record_id": "chart.png", "kind": "image", "asset_ref": "ast_1"}
        | {"metadata": '{"thumbnail": "aGVsbG8=", "thumbnail_media_type": "image/jpeg"}'},
        {"block_id": "b2", "record_id": "deck.pptx", "kind": "image", "asset_ref": "ast_2"}
        | {"metadata": '{"thumbnail": "\'><script>", "thumbnail_media_type": "image/jpeg"}'},
    )
    seen = {"record_id": "chart.png", "asset_id": "ast_1", "engine_version": "1"}
    runs.add_rows(
        "observations",
        {"observation_id": "o1", "kind": "ocr", "status": "ok", "text": "by hour", "confidence": 0.9, "engine": "rapidocr", **seen},
        {"observation_id": "o2", "kind": "caption", "status": "ok", "text": "seven bars", "confidence": None, "engine": "vlm", **seen},
    )
    runs.finish({})
    page = runs.page()
    rows = lines(section(page, "Images"))[1:]
    assert [row[2:] for row in rows] == [
        ["image/png, 640×360", "ok (rapidocr 1)", "0.90", "by hour", "seven bars"],
        ["image/jpeg, 420×120, Sign", "unavailable", "", "", "unavailable"],
        ["Plan, plan.svg (not fetched)", "unavailable", "", "", "unavailable"],
    ]
    assert rows[1][1] == "deck.pptxslide 2, shape 8"
    assert "src='data:image/jpeg;base64,aGVsbG8='" in page and "<script" not in page


def test_a_ticket_is_shown_by_its_sections(runs: Runs) -> None:
    runs.add_rows("records", record("DOCK-1.json", "application/json"))
    about: dict[str, Any] = {
        "record_id": "DOCK-1.json",
        "site": "x",
        "key": "DOCK-1",
        "summary": "It <jumps>",
        "description": "Shall stay.",
    }
    about["metadata"] = '{"status": "Open", "labels": ["a", "b"]}'
    about["comments"] = [{"comment_id": "1", "author": "Ann", "created": "", "updated": "", "text": "Seen."}]
    change = {"change_id": "9", "author": "Bo", "changed_at": "", "field": "status", "from_value": "", "to_value": "Open"}
    about |= {"changelog": [change], "worklogs": [], "remote_links": None}
    runs.add_rows("issues", about)
    runs.finish({})
    body = section(runs.page(), "Tickets")
    assert "DOCK-1 It &lt;jumps&gt;" in body
    assert lines(body)[1:] == [
        ["Description", "Shall stay."],
        ["Fields", "status: Open, labels: a, b"],
        ["Comments", "1: Ann: Seen."],
        ["Changelog", "1: status: (empty) → Open"],
    ]


def test_a_section_whose_rows_are_gone_costs_no_other(runs: Runs) -> None:
    runs.add_rows("records", record("DOCK-1.json", "application/json"))
    runs.add_rows("issues", {"record_id": "DOCK-1.json", "site": "", "key": "DOCK-1", "summary": "", "metadata": "{}"})
    first = runs.finish({})
    rewrite_table(runs.lake.tables, "issues", ["key"], lambda part: pc.not_equal(part.column("key"), "DOCK-1"))
    vacuum(runs.lake.tables, "issues", [2], timedelta(0))
    page = runs.page(first)
    assert "these rows are no longer readable" in section(page, "Tickets")
    assert "application/json" in section(page, "Formats")
