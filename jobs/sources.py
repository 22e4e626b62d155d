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
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

from blake3 import blake3

from raydex.ir.errors import ConfigError, InputError
from raydex.ir.ids import source_id
from raydex.jobs.excludes import DEFAULT_EXCLUDES, PatternList, read_lines
from raydex.jobs.git_info import find_git, is_dirty

FILE_SCHEME = "file://"
BLOCK_BYTES = 1 << 20
HASH_GROUP = 64
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_GLOB = re.compile(r"[*?\[]")
_PLAIN = re.compile(r"[A-Za-z0-9_.~+=@,!-]+")
_SPECIAL = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


@dataclass(frozen=True, slots=True)
class Source:
    """`root` is an absolute path or an object-store URI; `repository` is empty where there is none; `pattern` a glob below the root.

    `dirty` names what differs from `commit`, relative to the root (see `git_info`); `top` is the work tree that holds the root.
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

    def is_dirty(self, path: str) -> bool:
        """Whether the commit does not vouch for this path."""
        return is_dirty(path, self.dirty)


@dataclass(frozen=True, slots=True)
class ListRules:
    """Lines in the manner of .gitignore. `exclude` wins over everything, `!` in it takes defaults and .gitignore back."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    use_gitignore: bool = True
    follow_symlinks: bool = False
    default_excludes: bool = True


@dataclass(slots=True)
class Listed:
    """A file, or a place that cannot be read (`error`; with `folder`, all below it is unknown). `change_key` is empty when it has none."""

    path: str
    uri: str
    size: int
    change_key: str
    error: InputError | None = None
    folder: bool = False


@dataclass(slots=True)
class ListSummary:
    """`excluded` counts files and whole folders left out, by reason; `nested` names repositories inside the source."""

    files: int = 0
    bytes: int = 0
    errors: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    nested: list[str] = field(default_factory=list)


def open_source(
    spec: str, *, workspace: str = "default", name: str | None = None, repository: str | None = None, commit: str | None = None
) -> Source:
    """What the user named. Raises ConfigError for a path that is not there, a URI with a password, or a root without a name."""
    if spec.startswith(FILE_SCHEME):
        spec = os.fsdecode(_path_of(spec))
    elif _SCHEME.match(spec):
        from raydex.jobs.object_sources import open_object_source

        root, own = open_object_source(spec)
        named = name or own
        return Source(source_id(workspace, named), workspace, named, root, "object", repository or "", commit or "")
    fixed, pattern = _split_glob(spec)
    path = Path(os.path.realpath(fixed))
    if not path.exists():
        raise ConfigError("there is no such file or folder", place=spec, remedy="Check the path; it is taken from the current folder")
    single = not path.is_dir()
    folder = path.parent if single else path
    git = None if repository and commit else find_git(folder)
    asked = Path(os.path.abspath(fixed))
    named = name or (git.name if git else "") or (asked.parent if single else asked).name or folder.name
    if not named:
        raise ConfigError("this folder has no name", place=spec, remedy="Give the source one with --name")
    notes = (
        tuple(f"{place} is a submodule: its files are listed, the commit does not vouch for them" for place in git.submodules)
        if git
        else ()
    )
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


def list_source(source: Source, rules: ListRules | None = None, summary: ListSummary | None = None) -> Iterator[Listed]:
    """Files in the order of their paths. Raises InputError (unreadable) when the root itself cannot be listed."""
    rules = rules or ListRules()
    summary = summary if summary is not None else ListSummary()
    if source.kind == "object":
        from raydex.jobs.object_sources import list_objects

        listing: Iterable[Listed] = list_objects(source.root, Filter(source, rules, summary))
    elif source.kind == "file":
        listing = [_list_one(source.root)]
    else:
        listing = _walk(source, rules, summary)
    for listed in listing:
        if listed.error is None:
            summary.files += 1
            summary.bytes += listed.size
        else:
            summary.errors += 1
        yield listed


def read_uri(uri: str) -> bytes:
    """The bytes there. Raises OSError as the system gives it."""
    if uri.startswith(FILE_SCHEME):
        with open(_path_of(uri), "rb", buffering=0) as file:
            return file.readall()
    from raydex.jobs.object_sources import read_object

    return read_object(uri)


def hash_files(
    listed: Iterable[Listed], threads: int = 4, known: Mapping[str, str] | None = None
) -> Iterator[tuple[Listed, str | InputError]]:
    """Full BLAKE3 hex digest of each file, in order; a failure stands in its place. Memory holds a few groups of names, and one block a
    thread.

    `known` maps path + NUL + change key to a digest that is taken unread. A file that changes while it is read is read once more, then it
    is `changed_while_read`. What comes back carries the size and change key that were read, not those of the listing.
    """
    known = known or {}
    waiting: deque[Future[list[tuple[Listed, str | InputError]]]] = deque()
    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="hash") as pool:
        for group in _groups(listed):
            waiting.append(pool.submit(_hash_group, group, known))
            if len(waiting) > 2 * threads:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def _groups(listed: Iterable[Listed]) -> Iterator[list[Listed]]:
    group: list[Listed] = []
    room = 16 * BLOCK_BYTES
    for one in listed:
        group.append(one)
        room -= one.size
        if len(group) >= HASH_GROUP or room <= 0:
            yield group
            group = []
            room = 16 * BLOCK_BYTES
    if group:
        yield group


def _hash_group(group: list[Listed], known: Mapping[str, str]) -> list[tuple[Listed, str | InputError]]:
    return [_hash_one(one, known) for one in group]


def _hash_one(one: Listed, known: Mapping[str, str]) -> tuple[Listed, str | InputError]:
    if one.error is not None:
        return one, one.error
    held = known.get(f"{one.path}\0{one.change_key}") if known and one.change_key else None
    if held is not None:
        return one, held
    try:
        if not one.uri.startswith(FILE_SCHEME):
            from raydex.jobs.object_sources import hash_object

            return hash_object(one)
        for _ in range(2):
            digest, size, key = _hash_file(_path_of(one.uri))
            if digest:
                return (one if key == one.change_key else replace(one, size=size, change_key=key)), digest
    except OSError as error:
        return one, unreadable(one.path, error)
    message = "the file changed while it was read, twice"
    return one, InputError(message, reject_class="changed_while_read", place=one.path, remedy="Index again when it is at rest")


def _hash_file(path: bytes) -> tuple[str, int, str]:
    """(digest, size, change key); the digest is empty when the file changed meanwhile. Read in blocks: a mapped file that is cut kills."""
    with open(path, "rb", buffering=0) as file:
        before = os.fstat(file.fileno())
        digest = blake3()
        count = 0
        while block := file.read(min(BLOCK_BYTES, max(before.st_size - count, 0) + 1)):
            digest.update(block)
            count += len(block)
        after = os.fstat(file.fileno())
    key = change_key(after)
    same = count == after.st_size and key == change_key(before)
    return (digest.hexdigest() if same else ""), after.st_size, key


def change_key(status: os.stat_result) -> str:
    """Size and time of the last change in nanoseconds: what tells a change of a local file without reading it (contracts 4)."""
    return f"{status.st_size}:{status.st_mtime_ns}"


def unreadable(path: str, error: OSError) -> InputError:
    """A reject of a place that the system does not let us read."""
    remedy = (
        "Give this user the right to read it" if error.errno in (errno.EACCES, errno.EPERM) else "Check that it is there and can be read"
    )
    return InputError(error.strerror or type(error).__name__, reject_class="unreadable", place=path, remedy=remedy)


class Filter:
    """Include, exclude and default lines of a listing, with their counts."""

    def __init__(self, source: Source, rules: ListRules, summary: ListSummary) -> None:
        self.excludes = PatternList(rules.exclude)
        self.defaults = PatternList(DEFAULT_EXCLUDES if rules.default_excludes else ())
        self.includes = PatternList(rules.include)
        self.pattern = PatternList([f"/{source.pattern}"] if source.pattern else ())
        self.excluded = summary.excluded

    def drops(self, path: str, name: str, folder: bool, ignored: bool | None = None) -> bool:
        """Whether it is left out, and counted. `ignored` is what the .gitignore files say."""
        asked = self.excludes.match(path, name, folder) if self.excludes else None
        if asked:
            self.excluded["exclude"] += 1
            return True
        if asked is None:
            if self.defaults.match(path, name, folder):
                self.excluded["default"] += 1
                return True
            if ignored:
                self.excluded["gitignore"] += 1
                return True
        if not folder and (
            (self.includes and not self.includes.match_within(path)) or (self.pattern and not self.pattern.match(path, name, False))
        ):
            self.excluded["include"] += 1
            return True
        return False


@dataclass(slots=True)
class _Folder:
    """A folder under way. `ignores` are the .gitignore files above it, innermost first, each with the length of its folder's path."""

    entries: Iterator[os.DirEntry[str]]
    path: str
    uri: str
    ignores: list[tuple[int, PatternList]]


def _walk(source: Source, rules: ListRules, summary: ListSummary) -> Iterator[Listed]:
    chosen = Filter(source, rules, summary)
    root = source.root
    followed: set[str] = set()
    above, shift = _ignores_above(source) if rules.use_gitignore else ([], "")
    try:
        stack = [_enter(root, "", FILE_SCHEME + _quote(root).rstrip("/") + "/", above, rules, shift)]
    except OSError as error:
        raise unreadable(root, error) from error
    excluded = summary.excluded
    while stack:
        folder = stack[-1]
        for entry in folder.entries:
            name = entry.name
            path = folder.path + name
            is_link = entry.is_symlink()
            is_folder = _is_folder(entry, rules.follow_symlinks)
            ignored = _is_ignored(folder.ignores, shift + path, name, is_folder) if folder.ignores else None
            if chosen.drops(path, name, is_folder, ignored):
                if name == ".git" and folder.path:
                    summary.nested.append(_printable(folder.path[:-1]))
                continue
            uri = folder.uri + (name if _PLAIN.fullmatch(name) else _quote(name))
            shown = path if path.isascii() else _printable(path)
            if shown is not path and shown != path and os.path.lexists(os.path.join(root, shown)):
                message = "its name is not UTF-8, and another file has the name that it is written as"
                yield Listed(
                    shown + "\\", uri, 0, "", InputError(message, reject_class="unreadable", place=shown, remedy="Rename one of them")
                )
                continue
            if is_link:
                refusal = _refuse_link(entry, root, is_folder, rules.follow_symlinks, followed)
                if refusal == "":
                    excluded["symlink"] += 1
                    continue
                if refusal is not None:
                    remedy = "Name its target as a source of its own"
                    yield Listed(shown, uri, 0, "", InputError(refusal, reject_class="unreadable", place=shown, remedy=remedy))
                    continue
            try:
                if is_folder:
                    stack.append(_enter(entry.path, path + "/", uri + "/", folder.ignores, rules, shift))
                    break
                status = entry.stat(follow_symlinks=is_link)
            except FileNotFoundError:
                continue  # it went away since the folder was read
            except OSError as error:
                yield Listed(shown, uri, 0, "", unreadable(shown, error), folder=is_folder)
                continue
            if stat.S_ISREG(status.st_mode):
                yield Listed(shown, uri, status.st_size, f"{status.st_size}:{status.st_mtime_ns}")
            else:
                what = _SPECIAL.get(stat.S_IFMT(status.st_mode), "no file")
                yield Listed(shown, uri, 0, "", InputError(f"this is {what}", reject_class="unsupported_media_type", place=shown))
        else:
            stack.pop()


def _enter(place: str, path: str, uri: str, ignores: list[tuple[int, PatternList]], rules: ListRules, shift: str) -> _Folder:
    with os.scandir(place) as found:
        entries = list(found)
    entries.sort(key=partial(_order, follow=rules.follow_symlinks))
    if rules.use_gitignore:
        lines = next((_read_ignore(e.path) for e in entries if e.name == ".gitignore"), [])
        patterns = PatternList(lines)
        if patterns:
            ignores = [(len(shift + path), patterns), *ignores]
    return _Folder(iter(entries), path, uri, ignores)


def _is_folder(entry: os.DirEntry[str], follow: bool) -> bool:
    return entry.is_dir(follow_symlinks=False) or (follow and entry.is_symlink() and os.path.isdir(entry.path))


def _order(entry: os.DirEntry[str], follow: bool) -> str:
    """A folder sorts as its name with a slash, so that the order is that of whole paths."""
    name = entry.name if entry.name.isascii() else _printable(entry.name)
    return name + "/" if _is_folder(entry, follow) else name


def _read_ignore(path: str) -> list[str]:
    """Lines of a .gitignore; one that cannot be read is listed as such when its turn comes."""
    try:
        if stat.S_ISREG(os.lstat(path).st_mode):
            with open(path, "rb") as file:
                return read_lines(file.read(BLOCK_BYTES))
    except OSError:
        return []
    return []


def _ignores_above(source: Source) -> tuple[list[tuple[int, PatternList]], str]:
    """The .gitignore files between the top of the work tree and the root, and the root's path below that top."""
    if not source.top or source.top == source.root:
        return [], ""
    shift = os.path.relpath(source.root, source.top) + "/"
    found: list[tuple[int, PatternList]] = []
    below = ""
    for part in shift.split("/")[:-1]:
        patterns = PatternList(_read_ignore(os.path.join(source.top, below, ".gitignore")))
        if patterns:
            found.insert(0, (len(below), patterns))
        below += part + "/"
    return found, shift


def _is_ignored(ignores: list[tuple[int, PatternList]], path: str, name: str, folder: bool) -> bool | None:
    for length, patterns in ignores:
        found = patterns.match(path[length:], name, folder)
        if found is not None:
            return found
    return None


def _refuse_link(entry: os.DirEntry[str], root: str, is_folder: bool, follow: bool, followed: set[str]) -> str | None:
    """None: to be followed. An empty text: left out, since its target is listed by itself. Else why it is refused."""
    try:
        target = os.path.realpath(entry.path, strict=True)
    except OSError as error:
        return "a link that leads in a circle" if error.errno == errno.ELOOP else "a link to nothing"
    if target != root and not target.startswith(root.rstrip("/") + "/"):
        return "a link out of the source's root"
    if not follow:
        return ""
    if is_folder:
        here = os.path.realpath(os.path.dirname(entry.path))
        if here == target or here.startswith(target.rstrip("/") + "/"):
            return "a link to a folder above itself"
        if target in followed:
            return ""
        followed.add(target)
    return None


def _list_one(path: str) -> Listed:
    name = os.path.basename(path)
    uri = FILE_SCHEME + _quote(path)
    shown = _printable(name)
    try:
        status = os.stat(path)
    except OSError as error:
        return Listed(shown, uri, 0, "", unreadable(shown, error))
    if not stat.S_ISREG(status.st_mode):
        what = _SPECIAL.get(stat.S_IFMT(status.st_mode), "no file")
        return Listed(shown, uri, 0, "", InputError(f"this is {what}", reject_class="unsupported_media_type", place=shown))
    return Listed(shown, uri, status.st_size, change_key(status))


def _split_glob(spec: str) -> tuple[str, str]:
    """(the part before the first magic character's folder, the glob below it); a path that is there is never taken as a glob."""
    if not _GLOB.search(spec) or os.path.lexists(spec):
        return spec, ""
    parts = spec.split("/")
    at = next(i for i, part in enumerate(parts) if _GLOB.search(part))
    return "/".join(parts[:at]) or ("/" if spec.startswith("/") else "."), "/".join(parts[at:])


def _printable(name: str) -> str:
    """Valid UTF-8 for a file name: bytes that are not are written \\xNN."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _quote(path: str) -> str:
    return quote_from_bytes(os.fsencode(path), safe="/~+=@,!")


def _path_of(uri: str) -> bytes:
    """The bytes of a local path."""
    return unquote_to_bytes(uri[len(FILE_SCHEME) :])
