"""A folder → the git repository that it lies in: name, commit, and the paths that differ from that commit (contracts 5).

Git is asked by subprocess, without prompts, network, hooks or filters: a repository may be hostile, and its configuration names programs.

Invariant: a file that `dirty` does not cover has the content that the commit gives it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from raydex.ir.errors import ConfigError, StoreError

SECONDS = 300
WHOLE = "./"
# settings by which a repository could make git run a program or open a connection
SAFE = (
    "safe.directory=*",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "protocol.allow=never",
    "status.relativePaths=false",
    "status.submoduleSummary=false",
)


@dataclass(frozen=True, slots=True)
class GitInfo:
    """`top` is the work tree's folder; `dirty` holds paths relative to the asked folder, folders with a trailing slash, `./` for all."""

    top: str
    name: str
    commit: str
    dirty: tuple[str, ...]
    submodules: tuple[str, ...] = ()


def find_git(folder: Path) -> GitInfo | None:
    """None outside of a work tree, and for a folder that its repository ignores. ConfigError without git, StoreError when git fails."""
    if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        return None
    if shutil.which("git") is None:
        raise ConfigError(
            "this is a git repository, and git is not installed",
            place=str(folder),
            remedy="Install git, or give --repo and --commit",
        )
    top = _ask(folder, ["rev-parse", "--show-toplevel"])
    if not top:
        return None
    root = Path(os.path.realpath(top.rstrip("\n")))
    if not folder.is_relative_to(root):
        return None
    if folder != root and _ask(folder, ["check-ignore", "-q", "--no-index", "."], wanted=(0, 1, 128)) is not None:
        return None
    commit = (_ask(folder, ["rev-parse", "--verify", "-q", "HEAD"]) or "").strip()
    submodules = _submodules(folder) if (root / ".gitmodules").exists() else ()
    dirty = _dirty(folder, root) if commit else (WHOLE,)
    return GitInfo(str(root), _name(folder, root), commit, tuple(sorted({*dirty, *submodules})), submodules)


def is_dirty(path: str, dirty: tuple[str, ...]) -> bool:
    """Whether an entry names the path or a folder above it."""
    return any(entry == WHOLE or path == entry.rstrip("/") or path.startswith(entry.rstrip("/") + "/") for entry in dirty)


def _name(folder: Path, root: Path) -> str:
    """Last part of the remote's URL (origin first), else the work tree's folder."""
    listed = _ask(folder, ["config", "-z", "--get-regexp", r"^remote\..*\.url$"]) or ""
    remotes = dict(entry.split("\n", 1) for entry in listed.split("\0") if "\n" in entry)
    url = remotes.get("remote.origin.url") or next(iter(remotes.values()), "")
    last = url.replace("\\", "/").rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git")
    return last or root.name


def _dirty(folder: Path, root: Path) -> tuple[str, ...]:
    """What status reports below the folder. Untracked folders come as one entry; ignored files are in no commit and are no matter of it."""
    text = _ask(
        folder, ["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty", "--untracked-files=normal", "--", "."]
    )
    if text is None:
        raise StoreError("git status failed", place=str(folder), remedy="Run `git status` there, or give --repo and --commit")
    prefix = "" if folder == root else os.fspath(folder.relative_to(root)) + "/"
    found = []
    for entry in text.split("\0"):
        path = entry[3:]
        if not path:
            continue
        if prefix.startswith(path.rstrip("/") + "/"):
            found.append(WHOLE)
        elif path.startswith(prefix):
            found.append(_printable(path[len(prefix) :]))
    return tuple(found)


def _submodules(folder: Path) -> tuple[str, ...]:
    """Folders with a commit of their own, which the repository's commit does not vouch for here: they count as dirty."""
    text = _ask(folder, ["ls-files", "-z", "--stage", "--", "."]) or ""
    return tuple(_printable(entry.partition("\t")[2]) + "/" for entry in text.split("\0") if entry.startswith("160000 "))


def _printable(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _ask(folder: Path, arguments: list[str], wanted: tuple[int, ...] = (0, 1, 128)) -> str | None:
    """Output of a git command, None when it exits with another code than 0. StoreError for a hang or an unexpected code."""
    options = [word for setting in (*SAFE, *_no_filters(folder, arguments[0])) for word in ("-c", setting)]
    command = ["git", "--no-optional-locks", *options, "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, env=_environment(), timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise StoreError(
            f"git {arguments[0]} gave no answer in {SECONDS} s", place=str(folder), remedy="Give --repo and --commit"
        ) from error
    if done.returncode not in wanted:
        raise StoreError(f"git {arguments[0]} ended with code {done.returncode}", place=str(folder), remedy="Run `git status` there")
    return os.fsdecode(done.stdout) if done.returncode == 0 else None


def _no_filters(folder: Path, command: str) -> list[str]:
    """Status runs clean filters; those that the repository itself configures are switched off, the user's own are kept."""
    if command != "status":
        return []
    text = _ask(
        folder, ["config", "-z", "--includes", "--show-scope", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process)$"]
    )
    words = (text or "").split("\0")
    names = {name.rpartition(".")[0] for scope, name in zip(words[::2], words[1::2]) if scope in ("local", "worktree")}
    return [f"{name}.{key}=" for name in sorted(names) for key in ("clean", "smudge", "process")] + [
        f"{name}.required=false" for name in sorted(names)
    ]


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
