"""The registry: statuses of one lake's documents, in a database that lakes may share."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from raydex.cluster.registry import DocumentStatus, open_registry, without_password
from raydex.ir.errors import ConfigError, StoreError

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def status(doc_id: str, *reached: str) -> DocumentStatus:
    return DocumentStatus(doc_id, doc_id.upper(), "plant", f"{doc_id}.md", "text/markdown", "h", 2, "", reached or ("stored", "indexed"))


def record(url: str, lake_id: str, run: str, rows: list[DocumentStatus], deleted: list[str]) -> None:
    with open_registry(url, lake_id) as registry:
        registry.record_statuses(run, WHEN, 1, "c", rows, deleted)


def held(url: str, lake_id: str) -> dict[str, str]:
    with open_registry(url, lake_id, read_only=True) as registry:
        return {row["doc_id"]: row["run_id"] for row in registry.load_documents()}


def test_lakes_that_share_a_database_leave_each_other_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'r.db'}"
    record(url, "a", "run_1", [status("rec_1"), status("rec_2")], [])
    record(url, "b", "run_2", [status("rec_1"), status("rec_3", "stored", "failed")], ["rec_2"])
    assert held(url, "a") == {"rec_1": "run_1", "rec_2": "run_1"}
    assert held(url, "b") == {"rec_1": "run_2", "rec_3": "run_2"}
    record(url, "a", "run_3", [], ["rec_1", "rec_3"])
    assert held(url, "a") == {"rec_2": "run_1"}
    assert held(url, "b") == {"rec_1": "run_2", "rec_3": "run_2"}
    with open_registry(url, "b") as registry:
        assert registry.document_ids() == {"rec_1", "rec_3"}


def test_recording_a_run_twice_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'r.db'}"
    for _ in range(2):
        record(url, "a", "run_1", [status("rec_1", "stored", "parsed", "indexed")], [])
    with sqlite3.connect(tmp_path / "r.db") as database:
        steps = database.execute("select status from document_status_history order by id").fetchall()
        assert [step for (step,) in steps] == ["stored", "parsed", "indexed"]
        assert database.execute("select run_id, lake_id from document_processing_runs").fetchall() == [("run_1", "a")]


OLD_SCHEMA = """
create table documents (doc_id varchar(64) primary key, doc_name text not null, source_name text not null, path text not null,
  media_type varchar(128) not null, status varchar(16) not null, content_hash varchar(64) not null, chunk_count integer not null,
  index_name varchar(255) not null, error text not null, run_id varchar(64) not null, updated_at datetime not null);
create table document_processing_runs (run_id varchar(64) primary key, started_at datetime not null, generation integer not null);
create table document_status_history (id integer primary key, doc_id varchar(64) not null, run_id varchar(64) not null,
  status varchar(16) not null, changed_at datetime not null, unique (doc_id, run_id, status));
insert into documents values ('rec_1', 'One', 's', 'one.md', 't', 'indexed', 'h', 3, 'c', '', 'run_0', '2025-01-01 00:00:00.000000');
insert into document_processing_runs values ('run_0', '2025-01-01 00:00:00.000000', 1);
"""


def test_a_registry_of_an_older_release_is_read_as_it_is_and_gets_its_lake_from_the_next_writer(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'r.db'}"
    with sqlite3.connect(tmp_path / "r.db") as database:
        database.executescript(OLD_SCHEMA)
    assert held(url, "a") == {"rec_1": "run_0"}
    record(url, "a", "run_1", [status("rec_2")], [])
    assert held(url, "a") == {"rec_1": "run_0", "rec_2": "run_1"}
    assert held(url, "b") == {}
    record(url, "a", "run_1", [status("rec_2")], [])
    with sqlite3.connect(tmp_path / "r.db") as database:
        found = database.execute("select run_id, lake_id from document_processing_runs order by 1").fetchall()
    assert found == [("run_0", ""), ("run_1", "a")]


@pytest.mark.parametrize("url", ["nonsense", "nodialect://x/y", "postgresql+nodriver://x/y"])
def test_what_is_no_url_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigError, match="registry's URL"), open_registry(url, "a"):
        pytest.fail("opened")


def test_asking_whether_a_database_answers_changes_nothing(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "r.db") as database:
        database.executescript(OLD_SCHEMA)
    before = (tmp_path / "r.db").read_bytes()
    with open_registry(f"sqlite:///{tmp_path / 'r.db'}"):
        pass
    assert (tmp_path / "r.db").read_bytes() == before
    with pytest.raises(StoreError, match="the registry failed"), open_registry(f"sqlite:///{tmp_path / 'no' / 'r.db'}"):
        pytest.fail("opened")


def test_a_database_that_is_not_there_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the registry failed"), open_registry(f"sqlite:///{tmp_path / 'no' / 'r.db'}", "a"):
        pytest.fail("opened")


def test_passwords_are_not_kept() -> None:
    assert without_password("postgresql://me:secret@host/name") == "postgresql://me@host/name"
    assert without_password("postgresql://me@host/name?password=secret&sslmode=require") == "postgresql://me@host/name?sslmode=require"
    assert without_password("sqlite:////data/r.db") == "sqlite:////data/r.db"
    assert without_password("") == ""
    with pytest.raises(ConfigError):
        without_password("nonsense")
