"""Names and repositories of sources: what is refused, what is kept apart, what a retry leaves as it was (contracts 3, 5)."""

from __future__ import annotations

import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from raydex.cluster.delta import commit_files, write_data_file
from raydex.cluster.lake import Generation, Lake, complete_generation, load_generations, pin_versions
from raydex.configs.settings import load_settings
from raydex.ir.errors import ConfigError
from raydex.ir.ids import record_id
from raydex.ir.rows import to_table
from raydex.jobs.finalize import source_row
from raydex.jobs.index import IndexRequest, IndexRun, open_specs
from raydex.jobs.sources import Source, open_source
from tests.test_plan import ledger_row


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def mono(tmp_path: Path) -> Path:
    """A repository with two folders that hold a file of one name."""
    root = tmp_path / "mono"
    for folder in ("a", "b"):
        (root / folder).mkdir(parents=True)
        (root / folder / "util.py").write_text("def help(): ...\n")
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", "https://example.org/team/mono.git")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


class Held:
    """A lake that holds sources: their records and a generation that names them."""

    def __init__(self, root: Path) -> None:
        self.lake = Lake(root)
        self.said: list[str] = []

    def open(self, *specs: Path, only: set[str] | None = None, **options: Any) -> list[Source]:
        """The sources of a run over these specs."""
        request = IndexRequest(
            specs=tuple(map(str, specs)),
            lake=str(self.lake.root),
            settings=load_settings(),
            only=None if only is None else frozenset(only),
            say=self.said.append,
            **options,
        )
        return IndexRun(request, self.lake, open_specs(request), "run_x", datetime.now(UTC), time.perf_counter())._open_sources()

    def keep(self, *sources: Source, paths: tuple[str, ...] = ("util.py",), generation: bool = True) -> None:
        """What a run over the sources leaves behind; without `generation`, one that was killed."""
        for source in sources:
            for path in paths:
                row = ledger_row(Path(source.root), path, path.encode())
                row.update(
                    record_id=record_id(source.workspace, source.name, path),
                    source_id=source.source_id,
                    workspace=source.workspace,
                    source_name=source.name,
                    repository=source.repository or source.name,
                )
                file = write_data_file(self.lake.tables, "records", to_table("records", {key: [row[key]] for key in row}))
                commit_files(self.lake.tables, "records", [file])
        if generation:
            before = load_generations(self.lake)
            held = {**(before[-1].sources if before else {}), **{source.source_id: source_row(source) for source in sources}}
            number = len(before) + 1
            complete_generation(self.lake, Generation(number, pin_versions(self.lake), sources=held, written_at=datetime.now(UTC)))


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path / "lake")


def test_two_folders_of_one_repository_do_not_share_symbols(mono: Path, held: Held) -> None:
    (first,) = held.open(mono / "a")
    assert (first.name, first.repository) == ("mono", "mono")
    held.keep(first)
    with pytest.raises(ConfigError, match="another --name"):
        held.open(mono / "b")
    (second,) = held.open(mono / "b", name="b")
    assert (second.repository, second.commit) == ("mono/b", first.commit)
    assert "kept apart as those of mono/b" in held.said[-1]
    held.keep(second)
    assert [source.repository for source in (*held.open(mono / "a"), *held.open(mono / "b", name="b"))] == ["mono", "mono/b"]


def test_a_second_checkout_is_kept_apart_also_after_a_killed_run(mono: Path, held: Held, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(mono), "other")
    git(tmp_path / "other", "remote", "set-url", "origin", "https://example.org/team/mono.git")
    held.keep(*held.open(mono), generation=False)
    (second,) = held.open(tmp_path / "other", name="release")
    assert second.repository == "mono/release"
    held.keep(second, generation=False)
    assert [source.repository for source in held.open(mono)] == ["mono"]


def test_what_was_chosen_stays_when_the_other_source_is_gone(mono: Path, held: Held) -> None:
    (source,) = held.open(mono / "b", name="b")
    assert source.repository == "mono"
    held = Held(held.lake.root.parent / "second")
    held.keep(Source(source.source_id, "default", "b", source.root, "git", "mono/b", source.commit))
    assert held.open(mono / "b", name="b")[0].repository == "mono/b"


def test_a_repository_name_that_is_taken_by_hand_is_refused_with_a_remedy_that_works(mono: Path, held: Held) -> None:
    held.keep(*held.open(mono / "a", name="a", repository="api"))
    with pytest.raises(ConfigError, match="another --repo"):
        held.open(mono / "b", name="b", repository="api")
    assert held.open(mono / "b", name="b", repository="api-b")[0].repository == "api-b"
    assert held.open(mono / "a", name="a", repository="api")[0].repository == "api"


def test_a_root_under_a_new_name_is_not_indexed_twice_unasked(mono: Path, held: Held) -> None:
    held.keep(*held.open(mono))
    git(mono, "remote", "set-url", "origin", "https://example.org/team/renamed.git")
    with pytest.raises(ConfigError, match="--name mono goes on with it"):
        held.open(mono)
    (same,) = held.open(mono, name="mono")
    assert (same.name, same.repository) == ("mono", "renamed")
    held.said.clear()
    (twice,) = held.open(mono, name="again")
    assert twice.name == "again" and held.said[0] == f"{mono} is indexed a second time: it is also source mono."


def test_a_folder_that_became_a_repository_keeps_its_name(held: Held, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    held.keep(*held.open(tmp_path / "notes"))
    git(tmp_path / "notes", "init", "-q")
    assert held.open(tmp_path / "notes")[0].kind == "git"
    git(tmp_path / "notes", "remote", "add", "origin", "https://example.org/all.git")
    with pytest.raises(ConfigError, match="--name notes"):
        held.open(tmp_path / "notes")


def test_names_that_clash_in_one_run(mono: Path, held: Held, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="two sources of this run are named mono"):
        held.open(mono / "a", mono / "b")
    with pytest.raises(ConfigError, match="different patterns"):
        held.open(mono / "*.py", mono / "*.md")
    assert len(held.open(mono, mono)) == 1


def test_notes_of_a_source_are_said(mono: Path, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    held.open(mono, repository="r", commit="c")
    assert held.said == ["this is a git repository, and git is not installed: repository and commit are taken as given"]


def test_a_retry_leaves_the_manifest_as_it_was(mono: Path, held: Held) -> None:
    (source,) = held.open(mono)
    held.keep(source, paths=("a/util.py", "b/util.py"))
    record = record_id("default", "mono", "a/util.py")
    options: dict[str, Any] = {"name": "mono", "repository": "mono", "only": {record}}
    (again,) = held.open(mono, **options)
    assert source_row(again) == source_row(source)
    (mono / "a" / "util.py").write_text("changed")
    (mono / "b" / "util.py").write_text("changed")
    (changed,) = held.open(mono, **options)
    assert (changed.commit, changed.dirty) == (source.commit, ("a/util.py",)), "b/util.py was not read again"
    git(mono, "commit", "-qam", "second")
    (moved,) = held.open(mono, **options)
    assert (moved.commit, moved.dirty) == (source.commit, ("a/util.py",))
    assert open_source(str(mono)).commit != source.commit


def test_a_retry_keeps_a_commit_that_was_given_by_hand(held: Held, tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    (source,) = held.open(tmp_path / "export", commit="c0ffee")
    held.keep(source)
    (again,) = held.open(tmp_path / "export", name="export", repository="export", only={record_id("default", "export", "util.py")})
    assert source_row(again) == source_row(source)
