"""A folder, file, glob, git repository or object-store URI → a source and the sorted list of its files (contracts 3-5).

Whatever the user named is looked at, and nothing else: links out of the root are refused, left-out files are counted by reason, and what
cannot be read is listed with its error.

Invariant: a listing comes in the order of its paths, and no file is lost without a row or a count; paths are valid UTF-8, URIs give back
the exact bytes of the name.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from raydex.ir.errors import ConfigError, StoreError
from raydex.ir.file_range import split_range
from raydex.ir.ids import source_id
from raydex.jobs.folder_walk import walk
from raydex.jobs.git_info import GitInfo, find_git
from raydex.jobs.hashing import hash_files
from raydex.jobs.listing import (
    FILE_SCHEME,
    Filter,
    Listed,
    ListRules,
    change_key,
    path_of,
    printable,
    quote_path,
    special,
    unreadable,
)

__all__ = ["ListRules", "Listed", "Source", "hash_files", "list_source", "open_source", "read_range", "read_uri"]

GONE = "gone"  # kind of a source whose place is no more
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Source:
    """`root` is an absolute path or an object-store URI; `repository` is empty where there is none; `pattern` a glob below the root.

    `dirty` names what differs from the checked-out commit, relative to the root (see `git_info`); `top` is the work tree that holds the
    root; `notes` are sentences for the user.
    """

    source_id: str
    workspace: str
    name: str
    root: str
    kind: str
    repository: str = ""
    commit: str = ""
    dirty: tuple[str, ...] = ()
    pattern: str = ""
    top: str = ""
    notes: tuple[str, ...] = ()


def open_source(
    spec: str, *, workspace: str = "default", name: str | None = None, repository: str | None = None, commit: str | None = None
) -> Source:
    """What the user named; `name`, `repository` and `commit` override what git says, and nothing else of it.

    Raises ConfigError for a path that is not there, a URI with a password, or a root without a name.
    """
    if spec.startswith(FILE_SCHEME):
        spec = os.fsdecode(path_of(spec))
    elif _SCHEME.match(spec):
        from raydex.jobs.object_sources import open_object_source

        root, own = open_object_source(spec)
        named = name or own
        return Source(source_id(workspace, named), workspace, named, root, "object", repository or "", commit or "")
    fixed, pattern = _split_glob(spec)
    path = Path(os.path.realpath(fixed))
    try:
        single = not stat.S_ISDIR(os.stat(path).st_mode)
    except OSError as error:
        what = error.strerror if error.errno not in (errno.ENOENT, errno.ENOTDIR) else "there is no such file or folder"
        raise ConfigError(str(what), place=spec, remedy="Check the path; it is taken from the current folder") from error
    folder = path.parent if single else path
    git, notes = _ask_git(folder, told=bool(repository and commit))
    asked = Path(os.path.abspath(fixed))
    named = name or (git.name if git else "") or (asked.parent if single else asked).name or folder.name
    if not named:
        raise ConfigError("this folder has no name", place=spec, remedy="Give the source one with --name")
    return Source(
        source_id(workspace, named),
        workspace,
        named,
        str(path),
        "file" if single else "git" if git else "folder",
        repository or (git.name if git else ""),
        commit or (git.commit if git else ""),
        git.dirty if git else (),
        pattern,
        git.top if git else "",
        notes,
    )


def _ask_git(folder: Path, told: bool) -> tuple[GitInfo | None, tuple[str, ...]]:
    """What git says of a folder, and notes. Who gives repository and commit by hand needs no git: then its failure is only noted."""
    try:
        git = find_git(folder)
    except (ConfigError, StoreError) as error:
        if not told:
            raise
        return None, (f"{error.message}: repository and commit are taken as given",)
    places = git.submodules if git else ()
    return git, tuple(f"{place} is a submodule: its files are listed, the commit does not vouch for them" for place in places)


def list_source(source: Source, rules: ListRules | None = None, excluded: Counter[str] | None = None) -> Iterable[Listed]:
    """Files in the order of their paths; `excluded` counts what is left out, by reason.

    Raises InputError (unreadable) when the root itself cannot be listed.
    """
    rules = rules or ListRules()
    chosen = Filter(rules, Counter() if excluded is None else excluded, source.pattern)
    if source.kind == "object":
        from raydex.jobs.object_sources import list_objects

        return list_objects(source.root, chosen)
    if source.kind == GONE:
        return []
    if source.kind == "file":
        return [_list_one(source.root)]
    return walk(source.root, source.top, rules, chosen)


def read_uri(uri: str) -> bytes:
    """The bytes there, or those of the range that a fragment names. Raises OSError as the system gives it."""
    whole, part = split_range(uri)
    if part is not None:
        return read_range(whole, part.start, part.end - part.start)
    if uri.startswith(FILE_SCHEME):
        with open(path_of(uri), "rb", buffering=0) as file:
            return file.readall()
    from raydex.jobs.object_sources import read_object

    return read_object(uri)


def read_range(uri: str, start: int, size: int) -> bytes:
    """Bytes from `start` on, at most `size`. Raises OSError."""
    if uri.startswith(FILE_SCHEME):
        with open(path_of(uri), "rb", buffering=0) as file:
            return os.pread(file.fileno(), size, start)
    from raydex.jobs.object_sources import read_object

    return read_object(uri, start, start + size)


def _list_one(path: str) -> Listed:
    name = os.path.basename(path)
    uri = FILE_SCHEME + quote_path(path)
    shown = printable(name)
    try:
        status = os.stat(path)
    except OSError as error:
        return Listed(shown, uri, 0, "", unreadable(shown, error))
    if not stat.S_ISREG(status.st_mode):
        return special(shown, uri, status.st_mode)
    return Listed(shown, uri, status.st_size, change_key(status))


def _split_glob(spec: str) -> tuple[str, str]:
    """(the part before the first magic character's folder, the glob below it); a path that is there is never taken as a glob."""
    if not spec:
        raise ConfigError("a source has no name", remedy="Name a file, a folder, a glob or a URI")
    if not _GLOB.search(spec) or os.path.lexists(spec):
        return spec, ""
    parts = spec.split("/")
    at = next(i for i, part in enumerate(parts) if _GLOB.search(part))
    return "/".join(parts[:at]) or ("/" if spec.startswith("/") else "."), "/".join(parts[at:])
