"""Sources and listings: names, commits, excludes as git does them, hostile names, links, changes while reading (S4, D4; contracts 3-5)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st
from s3_server import s3_server

import raydex.jobs.hashing as hashing
from raydex.ir.errors import ConfigError, InputError
from raydex.ir.ids import source_id
from raydex.jobs.excludes import PatternList, read_lines
from raydex.jobs.git_info import is_dirty
from raydex.jobs.sources import Listed, ListRules, Source, hash_files, list_source, open_source, read_uri


def write(root: Path, *paths: str, text: str = "x") -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text} {path}")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def commit_all(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "change", "--allow-empty")
    return git(folder, "rev-parse", "HEAD")


def paths_of(source: Source, rules: ListRules | None = None, excluded: Counter[str] | None = None) -> list[str]:
    return [one.path for one in list_source(source, rules, excluded) if one.error is None]


def errors_of(source: Source, rules: ListRules | None = None) -> dict[str, InputError]:
    return {one.path: one.error for one in list_source(source, rules) if one.error is not None}


# names and kinds


def test_a_folder_is_named_after_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "docs/a.md")
    monkeypatch.chdir(tmp_path / "docs")
    for spec in (".", "../docs", str(tmp_path / "docs"), f"{tmp_path}/docs/", (tmp_path / "docs").as_uri()):
        source = open_source(spec, workspace="w")
        assert (source.name, source.kind, source.root, source.commit, source.dirty) == ("docs", "folder", str(tmp_path / "docs"), "", ())
        assert source.source_id == source_id("w", "docs")
    assert open_source(".", workspace="w", name="manual").name == "manual"


def test_a_linked_folder_keeps_the_name_that_was_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "v17/a.md")
    (tmp_path / "current").symlink_to("v17")
    source = open_source(str(tmp_path / "current"))
    assert (source.name, paths_of(source)) == ("current", ["a.md"])


def test_a_file_is_a_source_of_one(tmp_path: Path) -> None:
    write(tmp_path, "docs/a b.md", "docs/other.md")
    source = open_source(str(tmp_path / "docs" / "a b.md"))
    assert (source.name, source.kind) == ("docs", "file")
    (one,) = list_source(source)
    assert (one.path, read_uri(one.uri), one.size) == ("a b.md", b"x docs/a b.md", 13)


def test_a_glob_names_its_files(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", "docs/deep/er/b.md", "docs/c.txt", "docs/deep/d.md", "src/e.md")
    excluded: Counter[str] = Counter()
    everywhere = open_source(f"{tmp_path}/docs/**/*.md")
    assert (everywhere.name, everywhere.root) == ("docs", str(tmp_path / "docs"))
    assert paths_of(everywhere, excluded=excluded) == ["a.md", "deep/d.md", "deep/er/b.md"]
    assert excluded == {"include": 1}
    assert paths_of(open_source(f"{tmp_path}/docs/*.md")) == ["a.md"]
    assert paths_of(open_source(f"{tmp_path}/*/e.md")) == ["src/e.md"]


def test_a_name_with_magic_characters_that_is_there_is_no_glob(tmp_path: Path) -> None:
    write(tmp_path, "[draft]/a*.md", "[draft]/ab.md", "d/a.md")
    assert paths_of(open_source(f"{tmp_path}/[draft]")) == ["a*.md", "ab.md"]
    assert paths_of(open_source(f"{tmp_path}/[draft]/a*.md")) == ["a*.md"]


@pytest.mark.parametrize("spec", ["nowhere", "nowhere/*.md", "file:///nowhere/at/all", "a.md/b.md", "x" * 300, "loop", ""])
def test_what_is_not_there_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "a.md")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError) as caught:
        open_source(spec)
    assert caught.value.exit_code == 2 and caught.value.remedy


# git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    write(root, "README.md", "docs/a.md", "src/b.py")
    git(root, "init", "-q")
    commit_all(root)
    return root


def test_a_repository_gives_its_name_and_commit(repository: Path) -> None:
    source = open_source(str(repository))
    assert (source.kind, source.name, source.repository, source.dirty) == ("git", "checkout", "checkout", ())
    assert source.commit == git(repository, "rev-parse", "HEAD")
    assert paths_of(source) == ["README.md", "docs/a.md", "src/b.py"]


@pytest.mark.parametrize(
    "url",
    ["https://example.org/team/velo.git", "git@example.org:team/velo.git", "git@example.org:velo", "/srv/git/velo.git/", "ssh://h:22/velo"],
)
def test_the_remote_names_a_repository(repository: Path, url: str) -> None:
    git(repository, "remote", "add", "other", "https://example.org/elsewhere.git")
    git(repository, "remote", "add", "origin", url)
    assert open_source(str(repository)).name == "velo"


def test_a_folder_inside_a_repository(repository: Path) -> None:
    (repository / "docs" / "a.md").write_text("changed")
    (repository / "src" / "new.py").write_text("new")
    source = open_source(str(repository / "docs"))
    assert (source.kind, source.name, source.repository, source.dirty) == ("git", "checkout", "checkout", ("a.md",))
    assert paths_of(source) == ["a.md"]
    assert open_source(str(repository / "docs"), name="manual").repository == "checkout"


def test_dirty_paths_are_what_the_commit_does_not_hold(repository: Path) -> None:
    write(repository, "gone.md", "moved.md")
    commit_all(repository)
    (repository / "docs" / "a.md").write_text("changed")
    (repository / "gone.md").unlink()
    (repository / "moved.md").rename(repository / "there.md")
    write(repository, "new folder/x.md", "new folder/deep/y.md", "staged ä.md")
    git(repository, "add", "staged ä.md")
    source = open_source(str(repository))
    assert source.dirty == ("docs/a.md", "gone.md", "moved.md", "new folder/", "staged ä.md", "there.md")
    assert [p for p in ("README.md", "docs/a.md", "new folder/deep/y.md", "docs") if is_dirty(p, source.dirty)] == [
        "docs/a.md",
        "new folder/deep/y.md",
    ]


def test_a_repository_without_commits_is_dirty_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path, "r/a.md")
    git(tmp_path / "r", "init", "-q")
    source = open_source(str(tmp_path / "r"))
    assert (source.kind, source.commit, is_dirty("a.md", source.dirty)) == ("git", "", True)


def test_an_untracked_folder_is_dirty_as_a_whole(repository: Path) -> None:
    write(repository, "fresh/sub/a.md")
    assert open_source(str(repository / "fresh" / "sub")).dirty == ("./",)


def test_an_ignored_folder_is_a_plain_folder(repository: Path) -> None:
    write(repository, "out/report/a.md")
    (repository / ".gitignore").write_text("/out/\n")
    source = open_source(str(repository / "out" / "report"))
    assert (source.kind, source.name, source.repository, paths_of(source)) == ("folder", "report", "", ["a.md"])


def test_given_names_win_and_git_is_asked_all_the_same(repository: Path) -> None:
    (repository / "README.md").write_text("changed")
    source = open_source(str(repository), name="n", repository="r", commit="c")
    assert (source.name, source.repository, source.commit) == ("n", "r", "c")
    assert (source.kind, source.dirty, source.top) == ("git", ("README.md",), str(repository))


def test_a_submodule_and_a_nested_repository_are_plain_files_and_noted(tmp_path: Path, repository: Path) -> None:
    library = tmp_path / "library"
    write(library, "lib.py")
    git(library, "init", "-q")
    commit_all(library)
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "vendor/lib")
    commit_all(repository)
    write(repository, "nested/n.py")
    git(repository / "nested", "init", "-q")
    source = open_source(str(repository))
    excluded: Counter[str] = Counter()
    assert paths_of(source, excluded=excluded) == [".gitmodules", "README.md", "docs/a.md", "nested/n.py", "src/b.py", "vendor/lib/lib.py"]
    assert source.dirty == ("nested/", "vendor/lib/") and is_dirty("vendor/lib/lib.py", source.dirty)
    assert "vendor/lib/ is a submodule" in source.notes[0]


def test_programs_named_by_a_hostile_repository_do_not_run(tmp_path: Path, repository: Path) -> None:
    mark = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\necho ran >> {mark}\ncat\n")
    script.chmod(0o755)
    (repository / ".gitattributes").write_text("*.md filter=evil\n")
    commit_all(repository)
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "core.pager", "core.sshCommand"):
        git(repository, "config", key, str(script))
    git(repository, "config", "filter.evil.required", "true")
    for hook in ("post-index-change", "fsmonitor-watchman", "post-checkout"):
        (repository / ".git" / "hooks" / hook).write_text(script.read_text())
        (repository / ".git" / "hooks" / hook).chmod(0o755)
    (repository / "README.md").write_text("x README.mD")  # same size: status has to look inside
    source = open_source(str(repository))
    assert source.dirty == ("README.md",)
    assert not mark.exists()


def test_another_users_repository_is_read(repository: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to give files away")
    for path in [repository, *repository.rglob("*")]:
        os.chown(path, 12345, 12345)
    assert len(open_source(str(repository)).commit) == 40


def test_the_environment_of_a_git_hook_does_not_mislead(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "elsewhere/a.md")
    git(tmp_path / "elsewhere", "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "elsewhere"))
    assert open_source(str(repository)).name == "checkout"


def test_git_is_asked_for_when_it_is_missing(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="Install git, or give --repo and --commit"):
        open_source(str(repository))
    source = open_source(str(repository), repository="r", commit="c")
    assert (source.commit, source.kind, source.dirty) == ("c", "folder", ())
    assert "git is not installed" in source.notes[0]


# what is left out


def test_defaults_gitignore_and_lines_of_the_user(tmp_path: Path) -> None:
    write(
        tmp_path, "a.py", "__pycache__/a.pyc", "node_modules/m/i.js", ".venv/lib/x.py", ".git/config", "build/out.txt", "keep.log", "b.log"
    )
    write(tmp_path, "sub/node_modules/m.js", "sub/c.md", "sub/deep/d.md", ".github/workflows/ci.yaml")
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\n/build/\n")
    (tmp_path / "sub" / ".gitignore").write_text("*.md\n!c.md\n")
    source = open_source(str(tmp_path))
    excluded: Counter[str] = Counter()
    assert paths_of(source, ListRules(exclude=("deep/",)), excluded) == [
        ".github/workflows/ci.yaml",
        ".gitignore",
        "a.py",
        "keep.log",
        "sub/.gitignore",
        "sub/c.md",
    ]
    assert excluded == {"default": 5, "gitignore": 2, "exclude": 1}
    assert "b.log" in paths_of(source, ListRules(use_gitignore=False))
    assert "node_modules/m/i.js" in paths_of(source, ListRules(exclude=("!node_modules/", "!/b.log")))
    assert "b.log" in paths_of(source, ListRules(exclude=("!/b.log",)))
    assert paths_of(source, ListRules(include=("*.py", "sub/"))) == ["a.py", "sub/.gitignore", "sub/c.md"]


def test_files_of_an_operating_system_are_left_out(tmp_path: Path) -> None:
    junk = ("__MACOSX/a.md", "sub/.DS_Store", "sub/Thumbs.db", "sub/desktop.ini", "sub/Desktop.ini", "sub/._c.md")
    write(tmp_path, *junk, "sub/c.md", "sub/__MACOSX.md")
    excluded: Counter[str] = Counter()
    assert paths_of(open_source(str(tmp_path)), ListRules(), excluded) == ["sub/__MACOSX.md", "sub/c.md"]
    assert excluded == {"default": len(junk)}
    assert "sub/Thumbs.db" in paths_of(open_source(str(tmp_path)), ListRules(exclude=("!Thumbs.db",)))


def test_caches_environments_and_lakes_are_known_by_what_they_hold(tmp_path: Path) -> None:
    write(tmp_path, "env/pyvenv.cfg", "env/lib/x.py", "warm/CACHEDIR.TAG", "warm/blob", "out/lake.json", "out/tables/blocks/part.parquet")
    write(tmp_path, "conf/lake.json", "CACHEDIR.TAG", "venv/__init__.py")
    source = open_source(str(tmp_path))
    excluded: Counter[str] = Counter()
    assert paths_of(source, excluded=excluded) == ["CACHEDIR.TAG", "conf/lake.json", "venv/__init__.py"]
    assert excluded == {"default": 3}


def test_the_gitignore_files_above_a_folder_hold(repository: Path) -> None:
    write(repository, "docs/x.log", "docs/sub/y.tmp", "docs/sub/y.txt", "docs/keep.log")
    (repository / ".gitignore").write_text("*.log\n/docs/sub/*.tmp\n/sub/\n")
    (repository / "docs" / ".gitignore").write_text("!keep.log\n")
    assert paths_of(open_source(str(repository / "docs"))) == [".gitignore", "a.md", "keep.log", "sub/y.txt"]


USUAL = ("*.a", "b", "/b", "b/", "/a/b", "a/*", "a/**", "**/b", "a/**/b", "!b", "!a/b", "[ab]", "[!a]", "?", "\\!b", "\\#b", "#b", "b  ")
CLASSES = ("[[:alpha:]]", "[]a]", "[a-", "[b-a]", "[b-a]*", "[a/b]", "a[^/]b", "[--a]", "[a-b-c]", "[[:nothing:]]", "[\\]]")
ODD = ("a\\", "a\\ ", "**", "***", "a**b", "/**", "**/", "//", "a//b", "!!b", *CLASSES)
LINES = st.lists(st.one_of(st.sampled_from(USUAL), st.text(alphabet="ab/*?![]-\\# .^", max_size=8), st.sampled_from(ODD)), max_size=5)


@settings(max_examples=120, deadline=None)
@given(lines=LINES, names=st.lists(st.text(alphabet="ab!#[]-^.\\ ", min_size=1, max_size=3), min_size=1, max_size=3))
def test_left_out_is_what_git_leaves_out(tmp_path_factory: pytest.TempPathFactory, lines: list[str], names: list[str]) -> None:
    root = tmp_path_factory.getbasetemp() / "ignore-lab"
    if not root.exists():
        root.mkdir()
        git(root, "init", "-q")
    names = [name for name in names if name not in (".", "..")] or ["a"]
    paths = {"/".join(names[:depth]) for depth in range(1, len(names) + 1)} | {"b", "a/b", "a/c/b", "x.a"}
    (root / ".gitignore").write_text("\n".join(lines))
    (root / ".gitignore").touch()
    patterns = PatternList(read_lines("\n".join(lines).encode()))

    def ours(path: str) -> bool:
        parts = path.split("/")
        return any(patterns.match("/".join(parts[:d]), parts[d - 1], d < len(parts)) for d in range(1, len(parts) + 1))

    text = "\0".join(sorted(paths)) + "\0"
    done = subprocess.run(["git", "check-ignore", "--no-index", "-z", "--stdin"], cwd=root, input=text, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    theirs = set(done.stdout.split("\0")) - {""}
    assert {path for path in paths if ours(path)} == theirs, lines


# hostile trees


def test_every_name_is_listed_and_read_back(tmp_path: Path) -> None:
    names = [
        b"plain.md",
        b"with space & % #?.md",
        b"new\nline.md",
        b"\xff\xfe.md",
        b"q'uo\"te;$.md",
        "ünï-漢.md".encode(),
        b"e" * 255,
        b"-rf",
        b"tab\t",
    ]
    root = os.fsencode(tmp_path) + b"/r\xe9p"
    os.mkdir(root)
    for name in names:
        with open(root + b"/" + name, "wb") as file:
            file.write(name)
    source = open_source(os.fsdecode(root), name="r")
    listed = list(list_source(source))
    assert [one.error for one in listed] == [None] * len(names)
    assert sorted(read_uri(one.uri) for one in listed) == sorted(names)
    assert {one.path.encode() for one in listed} == {name.decode("utf-8", "backslashreplace").encode() for name in names}
    assert [one.path for one in listed] == sorted(one.path for one in listed)
    for one in listed:
        one.uri.encode("ascii")
        assert unquote_to_bytes(one.uri).startswith(b"file://" + root + b"/")
    assert all(isinstance(outcome, str) for _, outcome in hash_files(listed))


def test_two_names_that_are_written_alike_do_not_become_one(tmp_path: Path) -> None:
    (tmp_path / "\\xff.md").write_text("backslash")
    (tmp_path / os.fsdecode(b"\xff.md")).write_text("byte")
    listed = list(list_source(open_source(str(tmp_path))))
    assert len({one.path for one in listed}) == 2
    (error,) = [one.error for one in listed if one.error is not None]
    assert error.reject_class == "refused" and "not UTF-8" in str(error)


def test_links_are_refused_or_followed(tmp_path: Path) -> None:
    write(tmp_path, "in/a.md", "in/sub/b.md", "out/secret.md")
    root = tmp_path / "in"
    (root / "again.md").symlink_to("a.md")
    (root / "again").symlink_to("sub")
    (root / "loop").symlink_to("loop")
    (root / "nothing").symlink_to("gone.md")
    (root / "out.md").symlink_to("../out/secret.md")
    (root / "outside").symlink_to(tmp_path / "out")
    (root / "sub" / "up").symlink_to("..")
    source = open_source(str(root))
    excluded: Counter[str] = Counter()
    assert paths_of(source, excluded=excluded) == ["a.md", "sub/b.md"]
    assert excluded == {"symlink": 3}
    errors = errors_of(source)
    assert {error.reject_class for error in errors.values()} == {"refused"}
    messages = {path: error.message for path, error in errors.items()}
    assert messages == {
        "loop": "a link that leads in a circle",
        "nothing": "a link to nothing",
        "out.md": "a link out of the source's root",
        "outside": "a link out of the source's root",
    }
    follow = ListRules(follow_symlinks=True)
    assert paths_of(source, follow) == ["a.md", "again.md", "again/b.md", "sub/b.md"]
    assert {path: error.message for path, error in errors_of(source, follow).items()} == {
        **messages,
        "again/up": "a link to a folder above itself",
        "sub/up": "a link to a folder above itself",
    }


def test_a_farm_of_links_ends(tmp_path: Path) -> None:
    for level in range(20):
        folder = tmp_path / f"d{level}"
        write(folder, "f.md")
        for number in range(3):
            (folder / f"l{number}").symlink_to(f"../d{level + 1 if level < 19 else 0}")
    assert len(paths_of(open_source(str(tmp_path)), ListRules(follow_symlinks=True))) <= 40


def test_special_files_are_reported(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "sock"))
        errors = errors_of(open_source(str(tmp_path)))
    assert {path: (e.reject_class, e.message) for path, e in errors.items()} == {
        "pipe": ("unsupported_media_type", "this is a pipe"),
        "sock": ("unsupported_media_type", "this is a socket"),
    }
    (only,) = list_source(open_source(str(tmp_path / "pipe")))
    assert only.error is not None and only.error.message == "this is a pipe"


UNREADABLE = """
import os, sys
from raydex.jobs.sources import hash_files, list_source, open_source
if os.getuid() == 0:  # root may read anything: go on as nobody
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for one, outcome in hash_files(list_source(open_source(sys.argv[1], name="s"))):
    print(one.path, outcome if isinstance(outcome, str) else outcome.reject_class)
"""


def test_what_may_not_be_read_is_listed_with_its_error(tmp_path: Path) -> None:
    root = tmp_path / "r"
    write(root, "a.md", "locked.md", "vault/b.md", "z.md")
    (root / "locked.md").chmod(0)
    (root / "vault").chmod(0)
    for folder in (root, *root.parents):
        if folder.owner() == root.owner() and folder.is_relative_to(tmp_path.parents[2]):
            folder.chmod(folder.stat().st_mode | 0o055)
    done = subprocess.run([sys.executable, "-c", UNREADABLE, str(root)], capture_output=True, text=True, check=True)
    (root / "vault").chmod(0o755)
    lines = [line.split() for line in done.stdout.splitlines()]
    digests = {name: blake3((root / name).read_bytes()).hexdigest() for name in ("a.md", "z.md")}
    assert lines == [
        ["a.md", digests["a.md"]],
        ["locked.md", "unreadable"],
        ["vault", "unreadable"],
        ["z.md", digests["z.md"]],
    ]


def test_a_root_that_cannot_be_listed_is_an_error_not_an_empty_source(tmp_path: Path) -> None:
    write(tmp_path, "r/a.md")
    source = open_source(str(tmp_path / "r"))
    (tmp_path / "r" / "a.md").unlink()
    (tmp_path / "r").rmdir()
    with pytest.raises(InputError) as caught:
        list(list_source(source))
    assert caught.value.reject_class == "unreadable"


@settings(max_examples=60, deadline=None)
@given(
    tree=st.dictionaries(
        st.lists(st.text(alphabet="ab.-/ 0é", min_size=1, max_size=4).map(lambda s: s.replace("/", "")), min_size=1, max_size=4).map(
            "/".join
        ),
        st.binary(max_size=40),
        max_size=12,
    )
)
def test_a_listing_is_sorted_complete_and_hashed(tmp_path_factory: pytest.TempPathFactory, tree: dict[str, bytes]) -> None:
    root = tmp_path_factory.mktemp("tree", numbered=True)
    written: dict[str, bytes] = {}
    for path, data in tree.items():
        parts = path.split("/")
        if any(part in ("", ".", "..") for part in parts) or any("/".join(parts[:n]) in written for n in range(1, len(parts))):
            continue
        if (root / path).is_dir():
            continue
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
        written[path] = data
    rules = ListRules(use_gitignore=False)
    listed = list(list_source(open_source(str(root)), rules))
    assert [one.path for one in listed] == sorted(written)
    hashed = list(hash_files(iter(listed), threads=2))
    assert [(one.path, outcome) for one, outcome in hashed] == [(path, blake3(written[path]).hexdigest()) for path in sorted(written)]
    assert all(one.size == len(written[one.path]) for one in listed)


# hashing and changes


def one_file(path: Path) -> Listed:
    (one,) = list_source(open_source(str(path)))
    return one


def test_large_files_are_hashed_in_blocks(tmp_path: Path) -> None:
    data = os.urandom(3 * hashing.BLOCK_BYTES + 17)
    (tmp_path / "big").write_bytes(data)
    ((_, outcome),) = hash_files([one_file(tmp_path / "big")])
    assert outcome == blake3(data).hexdigest()


def test_a_known_change_key_saves_the_reading(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.md")
    listed = list(list_source(open_source(str(tmp_path))))
    known = {f"a.md\0{listed[0].change_key}": "held", "b.md\0older": "stale"}
    outcomes = [outcome for _, outcome in hash_files(listed, known=known)]
    assert outcomes == ["held", blake3(b"x b.md").hexdigest()]


def test_a_change_since_the_listing_is_taken_as_it_is_now(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    listed = one_file(tmp_path / "a.md")
    (tmp_path / "a.md").write_text("longer than before")
    ((now, outcome),) = hash_files([listed])
    assert outcome == blake3(b"longer than before").hexdigest()
    assert (now.size, now.change_key) == (18, one_file(tmp_path / "a.md").change_key) and now.change_key != listed.change_key


@pytest.mark.parametrize("times", [1, 2])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    write(tmp_path, "a.md")
    listed = one_file(tmp_path / "a.md")
    left = [times]

    def digest() -> object:
        if left[0]:
            left[0] -= 1
            with open(tmp_path / "a.md", "a") as file:
                file.write("more")
        return blake3()

    monkeypatch.setattr(hashing, "blake3", digest)
    ((now, outcome),) = hash_files([listed])
    if times == 1:
        assert outcome == blake3(b"x a.mdmore").hexdigest() and now.size == 10
    else:
        assert isinstance(outcome, InputError) and outcome.reject_class == "changed_while_read"


def test_a_file_that_is_gone_and_an_endless_one(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.md")
    listed = list(list_source(open_source(str(tmp_path))))
    (tmp_path / "a.md").unlink()
    first, second = [outcome for _, outcome in hash_files(listed)]
    assert isinstance(first, InputError) and first.reject_class == "unreadable"
    assert second == blake3(b"x b.md").hexdigest()
    with pytest.raises(OSError):
        read_uri(listed[0].uri)


def test_errors_pass_through_hashing_in_their_place(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "c.md")
    (tmp_path / "b.md").symlink_to("gone")
    outcomes = {one.path: outcome for one, outcome in hash_files(list_source(open_source(str(tmp_path))))}
    assert list(outcomes) == ["a.md", "b.md", "c.md"]
    error = outcomes["b.md"]
    assert isinstance(error, InputError) and error.message == "a link to nothing"


# object stores


@pytest.fixture
def memory_store() -> str:
    import fsspec

    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    for key, data in {
        "/bucket/a b%.md": b"one",
        "/bucket/deep/x/b.md": b"two",
        "/bucket/deep.md": b"three",
        "/bucket/node_modules/m.js": b"no",
        "/other/c.md": b"no",
    }.items():
        system.pipe_file(key, data)
    return "memory://bucket"


def test_an_object_store_is_listed_sorted_and_read_back(memory_store: str) -> None:
    source = open_source(memory_store, workspace="w")
    assert (source.kind, source.name, source.root) == ("object", "bucket", "memory://bucket")
    excluded: Counter[str] = Counter()
    listed = list(list_source(source, excluded=excluded))
    assert [(one.path, one.size) for one in listed] == [("a b%.md", 3), ("deep.md", 5), ("deep/x/b.md", 3)]
    assert listed[0].uri == "memory://bucket/a%20b%25.md"
    assert excluded == {"default": 1}
    assert [read_uri(one.uri) for one in listed] == [b"one", b"three", b"two"]
    assert [outcome for _, outcome in hash_files(listed)] == [blake3(data).hexdigest() for data in (b"one", b"three", b"two")]
    assert [one.change_key for one in list_source(source)] == [one.change_key for one in listed] and all(one.change_key for one in listed)


def test_nothing_unchanged_is_downloaded(memory_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem

    source = open_source(memory_store)
    known = {f"{one.path}\0{one.change_key}": str(outcome) for one, outcome in hash_files(list_source(source))}
    opened: list[str] = []
    original = MemoryFileSystem._open
    monkeypatch.setattr(MemoryFileSystem, "_open", lambda self, path, *a, **k: opened.append(path) or original(self, path, *a, **k))
    assert [o for _, o in hash_files(list_source(source), known=known)] == list(known.values())
    assert opened == []
    fsspec.filesystem("memory").pipe_file("/bucket/deep.md", b"new")
    opened.clear()
    assert [o for _, o in hash_files(list_source(source), known=known)][1] == blake3(b"new").hexdigest()
    assert opened == ["/bucket/deep.md"]


@pytest.mark.parametrize(("key", "name"), [("deep/x/b.md", "x"), ("deep.md", "bucket"), ("a b%.md", "bucket")])
def test_an_object_is_a_source_of_one(memory_store: str, key: str, name: str) -> None:
    source = open_source(f"{memory_store}/{key}")
    (one,) = list_source(source, ListRules(include=("*.txt",)))
    assert (source.kind, source.name, one.path) == ("object", name, key.rpartition("/")[2])
    data = {"deep/x/b.md": b"two", "deep.md": b"three", "a b%.md": b"one"}[key]
    assert (one.size, read_uri(one.uri)) == (len(data), data) and one.change_key
    assert [outcome for _, outcome in hash_files([one])] == [blake3(data).hexdigest()]


def test_a_root_with_signs_that_uris_escape_is_read_back() -> None:
    import fsspec

    fsspec.filesystem("memory").pipe_file("/per%20cent/50%25 off/a.md", b"escaped")
    (one,) = list_source(open_source("memory://per%20cent/50%25 off"))
    assert (one.path, read_uri(one.uri)) == ("a.md", b"escaped")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("s3://key:secret@bucket/x", "must not hold credentials"),
        ("https://user:canary@example.org/x", "must not hold credentials"),
        ("nonsense://bucket", "cannot be opened"),
    ],
)
def test_uris_that_are_refused(spec: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_source(spec)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value) and "canary" not in str(caught.value)


def test_a_missing_object_is_unreadable(memory_store: str) -> None:
    listed = list(list_source(open_source(memory_store)))
    import fsspec

    fsspec.filesystem("memory").rm_file("/bucket/deep.md")
    outcomes = [outcome for _, outcome in hash_files(listed)]
    error = outcomes[1]
    assert isinstance(error, InputError) and error.reject_class == "unreadable"
    with pytest.raises(InputError):
        list(list_source(open_source("memory://nowhere")))


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """An S3 endpoint of our own, on this machine."""
    with s3_server() as url, pytest.MonkeyPatch.context() as patch:
        import boto3

        patch.setenv("AWS_ENDPOINT_URL", url)
        client = boto3.client("s3")
        client.create_bucket(Bucket="pages")
        for key, data in {
            "docs/a b%.md": b"one",
            "docs/x/b.md": b"two",
            "docs/.cache/c": b"no",
            "docs/x/": b"",
            "else/d.md": b"no",
        }.items():
            client.put_object(Bucket="pages", Key=key, Body=data)
        yield "s3://pages/docs"


@pytest.mark.slow
def test_s3_is_listed_by_etag_and_read_when_it_changed(bucket: str) -> None:
    import boto3

    source = open_source(bucket)
    assert (source.kind, source.name) == ("object", "docs")
    listed = list(list_source(source))
    assert [(one.path, one.size, one.uri) for one in listed] == [
        ("a b%.md", 3, "s3://pages/docs/a%20b%25.md"),
        ("x/b.md", 3, "s3://pages/docs/x/b.md"),
    ]
    outcomes = [outcome for _, outcome in hash_files(listed)]
    assert outcomes == [blake3(data).hexdigest() for data in (b"one", b"two")]
    boto3.client("s3").put_object(Bucket="pages", Key="docs/x/b.md", Body=b"new")
    known = {f"{one.path}\0{one.change_key}": f"held {one.path}" for one in listed}
    assert [outcome for _, outcome in hash_files(list_source(source), known=known)] == ["held a b%.md", blake3(b"new").hexdigest()]
    assert read_uri(listed[0].uri) == b"one"
    single = open_source("s3://pages/docs/a b%.md")
    assert single.name == "docs"
    assert [(one.path, read_uri(one.uri)) for one in list_source(single)] == [("a b%.md", b"one")]
    with pytest.raises(InputError) as caught:
        list(list_source(open_source("s3://nowhere-at-all/docs")))
    assert caught.value.reject_class == "unreadable"
    with pytest.raises(OSError):
        read_uri("s3://pages/docs/gone.md")
