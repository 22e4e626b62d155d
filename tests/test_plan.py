"""The plan: what is skipped, where a changed record starts, what counts as deleted, and what stops a run."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from raydex.cluster.delta import commit_files, write_data_file
from raydex.cluster.lake import Lake, load_ledger
from raydex.configs.settings import load_settings
from raydex.ir.errors import ConfigError
from raydex.ir.ids import content_hash, record_id
from raydex.ir.rows import to_table
from raydex.jobs.held import Held
from raydex.jobs.plan import make_plan, start_stage
from raydex.jobs.sources import open_source
from raydex.jobs.wording import record_counts
from raydex.jobs.work import number_epochs, work_tables

PRINTS = {"parse": "p1", "observe": "o1", "caption": "i1", "chunk": "c1", "embed": "e1", "project": "j1"}


def ledger_row(folder: Path, name: str, data: bytes, **changes: Any) -> dict[str, Any]:
    source = open_source(str(folder), workspace="w")
    row = {
        "record_id": record_id("w", source.name, name),
        "source_id": source.source_id,
        "source_name": source.name,
        "workspace": "w",
        "repository": source.name,
        "path": name,
        "uri": "",
        "parent_id": "",
        "media_type": "text/plain",
        "size": len(data),
        "change_key": "",
        "cas_uri": "cas:x",
        "state": "indexed",
        "missing": [],
        "fingerprints": [("parse", "p1"), ("chunk", "c1"), ("embed", "e1")],
        "attempts": 0,
        "reject_class": "",
        "error": "",
        "content_hash": content_hash(data),
        "fingerprint": "p1",
        "run_id": "run_x",
        "epoch": 1,
        "written_at": datetime.now(UTC),
    }
    return {**row, **changes}


def plan_of(tmp_path: Path, rows: list[dict[str, Any]], **options: Any):  # type: ignore[no-untyped-def]
    lake = Lake(tmp_path / "lake")
    if rows:
        file = write_data_file(lake.tables, "records", to_table("records", {key: [row[key] for row in rows] for key in rows[0]}))
        commit_files(lake.tables, "records", [file])
    source = open_source(str(tmp_path / "docs"), workspace="w", repository=options.pop("repository", None))
    return make_plan(lake, [source], load_ledger(lake), load_settings(), options.pop("prints", PRINTS), **options)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in "abcd":
        (folder / f"{name}.txt").write_bytes(name.encode())
    return folder


def held(docs: Path) -> list[dict[str, Any]]:
    return [ledger_row(docs, f"{name}.txt", name.encode()) for name in "abcd"]


def test_everything_is_new_in_an_empty_lake(tmp_path: Path, docs: Path) -> None:
    plan = plan_of(tmp_path, [])
    assert +plan.counts == {"seen": 4, "new": 4}
    assert plan.work["path"].to_pylist() == ["a.txt", "b.txt", "c.txt", "d.txt"]


def test_nothing_to_do_when_hash_and_fingerprints_stand(tmp_path: Path, docs: Path) -> None:
    plan = plan_of(tmp_path, held(docs))
    assert plan.idle
    assert plan.counts["unchanged"] == 4
    assert plan.unchanged_states["indexed"] == 4


def test_one_touched_file_is_one_changed_record(tmp_path: Path, docs: Path) -> None:
    rows = held(docs)
    (docs / "b.txt").write_bytes(b"other")
    plan = plan_of(tmp_path, rows)
    assert [(row["path"], row["start"]) for row in plan.work.to_pylist()] == [("b.txt", "parse")]
    assert (plan.counts["changed"], plan.counts["unchanged"]) == (1, 3)


@pytest.mark.parametrize(("stage", "start"), [("parse", "parse"), ("chunk", "chunk"), ("embed", "embed")])
def test_a_changed_fingerprint_starts_at_its_stage(tmp_path: Path, docs: Path, stage: str, start: str) -> None:
    plan = plan_of(tmp_path, held(docs), prints={**PRINTS, stage: "new"})
    assert set(plan.work["start"].to_pylist()) == {start}
    assert plan.work.num_rows == 4


def test_what_is_done_again_is_not_called_changed(tmp_path: Path, docs: Path) -> None:
    """Other content, another version of a stage, a failure that may pass, a terminal one under new limits."""
    rows = held(docs)
    (docs / "a.txt").write_bytes(b"other")
    rows[1] = ledger_row(docs, "b.txt", b"b", fingerprints=[("parse", "p0"), ("chunk", "c1"), ("embed", "e1")])
    rows[2] = ledger_row(docs, "c.txt", b"c", state="rejected", reject_class="unreadable", attempts=1)
    rows[3] = ledger_row(docs, "d.txt", b"d", state="rejected", reject_class="too_large", fingerprints=[("parse", "p0")])
    counts = plan_of(tmp_path, rows).counts
    assert +counts == {"seen": 4, "changed": 4, "reprocessed": 2, "retried": 1}
    assert record_counts(counts) == (
        "0 new, 1 changed, 2 reprocessed for another configuration or version, 1 tried again, 0 unchanged, 0 deleted"
    )


def test_a_retry_changes_nothing_but_tries_again(tmp_path: Path, docs: Path) -> None:
    rows = held(docs)
    plan = plan_of(tmp_path, rows, only={rows[0]["record_id"]})
    assert +plan.counts == {"seen": 1, "changed": 1, "retried": 1}


def test_deleted_files_are_deleted_records_of_this_source_only(tmp_path: Path, docs: Path) -> None:
    other = ledger_row(docs, "x.txt", b"x", source_id="src_other", record_id="rec_other", source_name="other")
    rows = [*held(docs), other]
    (docs / "d.txt").unlink()
    plan = plan_of(tmp_path, rows)
    assert plan.deleted == [rows[3]["record_id"]]
    assert plan.counts["deleted"] == 1


def test_too_many_deletions_stop_the_run(tmp_path: Path, docs: Path) -> None:
    rows = held(docs)
    for name in "cd":
        (docs / f"{name}.txt").unlink()
    with pytest.raises(ConfigError, match="delete 2 of 4"):
        plan_of(tmp_path, rows)
    assert len(plan_of(tmp_path, [], max_delete_share=1.0).deleted) == 2


def test_an_empty_listing_deletes_nothing_unasked(tmp_path: Path, docs: Path) -> None:
    rows = held(docs)
    for path in docs.iterdir():
        path.unlink()
    with pytest.raises(ConfigError, match="lists no file"):
        plan_of(tmp_path, rows)
    assert len(plan_of(tmp_path, [], allow_empty=True, max_delete_share=1.0).deleted) == 4


def test_terminal_rejects_wait_for_a_new_fingerprint_and_retryable_ones_for_attempts() -> None:
    row = Held("a.txt", "docs", 1, "h", "text/plain", "", "rejected", (), {"parse": "p1"}, 2, "encrypted")
    assert start_stage(row, "h", PRINTS, 5) is None
    assert start_stage(row, "h", {**PRINTS, "parse": "p2"}, 5) == "parse"
    assert start_stage(row, "other", PRINTS, 5) == "parse"
    assert start_stage(replace(row, reject_class="unreadable"), "h", PRINTS, 5) == "parse"
    assert start_stage(replace(row, reject_class="unreadable", attempts=5), "h", PRINTS, 5) is None
    tried = {"parse": "p1", "chunk": "c1", "embed_tried": "e1"}
    embedless = replace(row, state="degraded", missing=("embedding",), reject_class="endpoint", fingerprints=tried)
    assert start_stage(embedless, "h", PRINTS, 5) == "embed"
    assert start_stage(replace(embedless, attempts=5), "h", PRINTS, 5) is None
    assert start_stage(replace(embedless, attempts=5), "h", {**PRINTS, "embed": "e2"}, 5) == "embed"


def test_another_repository_name_parses_again(tmp_path: Path, docs: Path) -> None:
    rows = held(docs)
    rows[1].update(state="rejected", reject_class="encrypted", fingerprints=[("parse", "p1")])
    assert plan_of(tmp_path, rows).counts["unchanged"] == 4
    plan = plan_of(tmp_path, [], repository="api")
    assert [(row["start"], row["repository"]) for row in plan.work.to_pylist()] == [("parse", "api")] * 4


def test_a_file_that_keeps_its_content_keeps_its_repository(tmp_path: Path, docs: Path) -> None:
    rows = held(docs)
    (docs / "a.txt").unlink()
    (docs / "a.txt").symlink_to("nowhere")
    (row,) = (row for row in plan_of(tmp_path, rows, repository="api").work.to_pylist() if row["path"] == "a.txt")
    assert (row["start"], row["repository"], row["reject_class"]) == ("keep", "docs", "refused")


def test_what_no_reading_can_mend_is_planned_once(tmp_path: Path, docs: Path) -> None:
    (docs / "a.txt").unlink()
    os.mkfifo(docs / "a.txt")
    (docs / "b.txt").unlink()
    (docs / "b.txt").symlink_to(tmp_path)
    (docs / "c.txt").unlink()
    (docs / "c.txt").symlink_to("c.txt")
    rejected = {"state": "rejected", "fingerprints": [], "attempts": 1, "content_hash": "", "missing": []}
    rows = held(docs)
    rows[0].update(rejected, reject_class="unsupported_media_type")
    rows[1].update(rejected, reject_class="refused")
    rows[2].update(reject_class="refused", state="degraded", missing=["current_content"], attempts=1)
    plan = plan_of(tmp_path, rows)
    assert plan.work.num_rows == 0
    assert (plan.counts["unchanged"], plan.unchanged_states) == (4, {"indexed": 1, "rejected": 2, "degraded": 1})


def test_a_retry_hashes_only_what_it_redoes(tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import raydex.jobs.plan as plan_module

    hashed: list[str] = []
    original = plan_module.hash_files

    def watch(listing: Any, **options: Any) -> Any:
        for one, outcome in original(listing, **options):
            hashed.append(one.path)
            yield one, outcome

    monkeypatch.setattr(plan_module, "hash_files", watch)
    rows = held(docs)
    plan = plan_of(tmp_path, rows, only={rows[2]["record_id"]})
    assert [(row["path"], row["start"]) for row in plan.work.to_pylist()] == [("c.txt", "parse")]
    assert hashed == ["c.txt"] and plan.counts["seen"] == 1


def test_epochs_and_blocks_do_not_mix(tmp_path: Path, docs: Path) -> None:
    plan = plan_of(tmp_path, [])
    work, expected = number_epochs(plan.work, 7, 3)
    assert expected == {7: 3, 8: 1}
    tables = work_tables(work, 2)
    assert [table.column("epoch").to_pylist() for table in tables] == [[7, 7], [7], [8]]
