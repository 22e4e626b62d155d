"""A local folder → its files in the order of their paths, without what the rules leave out.

Links are followed only when asked for and never out of the root or in a circle; special files and unreadable places come as rows with their
error. One folder's entries are held at a time.

Invariant: every entry of every folder that is entered gives a row or a count.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from raydex.jobs.excludes import PatternList, read_lines
from raydex.jobs.listing import FILE_SCHEME, Filter, Listed, ListRules, printable, quote_path, refused, special, unreadable

IGNORE_BYTES = 1 << 20
# files that tell what their folder is: a tagged cache, a Python environment, a lake of raydex
MARKS = (frozenset({"CACHEDIR.TAG"}), frozenset({"pyvenv.cfg"}), frozenset({"lake.json", "tables"}))
OUTSIDE = "a link out of the source's root"
_PLAIN = re.compile(r"[A-Za-z0-9_.~+=@,!-]+")


@dataclass(slots=True)
class _Folder:
    """A folder under way. `ignores` are the .gitignore files above it, innermost first, each with the length of its folder's path."""

    entries: Iterator[os.DirEntry[str]]
    path: str
    uri: str
    ignores: list[tuple[int, PatternList]]


def walk(root: str, top: str, rules: ListRules, chosen: Filter) -> Iterator[Listed]:
    """Files below an absolute path. `top` is the work tree that it lies in, or empty: the .gitignore files from there on hold.

    Raises InputError (unreadable) when the root itself cannot be listed.
    """
    followed: set[str] = set()
    above, shift = _ignores_above(root, top) if rules.use_gitignore else ([], "")
    try:
        first = _enter(root, "", FILE_SCHEME + quote_path(root).rstrip("/") + "/", above, rules, shift)
    except OSError as error:
        raise unreadable(root, error) from error
    stack = [first] if first is not None else []
    excluded = chosen.excluded
    while stack:
        folder = stack[-1]
        for entry in folder.entries:
            name = entry.name
            path = folder.path + name
            is_link = entry.is_symlink()
            is_folder = _is_folder(entry, rules.follow_symlinks)
            ignored = _is_ignored(folder.ignores, shift + path, name, is_folder) if folder.ignores else None
            if chosen.drops(path, name, is_folder, ignored):
                continue
            uri = folder.uri + (name if _PLAIN.fullmatch(name) else quote_path(name))
            shown = path if path.isascii() else printable(path)
            if shown is not path and shown != path and os.path.lexists(os.path.join(root, shown)):
                message = "its name is not UTF-8, and another file has the name that it is written as"
                yield refused(shown + "\\", uri, message, "Rename one of them")
                continue
            if is_link:
                refusal = _refuse_link(entry, root, is_folder, rules.follow_symlinks, followed)
                if refusal == "":
                    excluded["symlink"] += 1
                    continue
                if refusal is not None:
                    yield refused(
                        shown, uri, refusal, "Name its target as a source of its own" if refusal == OUTSIDE else "Mend or remove it"
                    )
                    continue
            try:
                if is_folder:
                    inner = _enter(entry.path, path + "/", uri + "/", folder.ignores, rules, shift)
                    if inner is None:
                        excluded["default"] += 1
                        continue
                    stack.append(inner)
                    break
                status = entry.stat(follow_symlinks=is_link)
            except FileNotFoundError:
                continue  # it went away since the folder was read
            except OSError as error:
                yield Listed(shown, uri, 0, "", unreadable(shown, error))
                continue
            if stat.S_ISREG(status.st_mode):
                yield Listed(shown, uri, status.st_size, f"{status.st_size}:{status.st_mtime_ns}")
            else:
                yield special(shown, uri, status.st_mode)
        else:
            stack.pop()


def _enter(place: str, path: str, uri: str, ignores: list[tuple[int, PatternList]], rules: ListRules, shift: str) -> _Folder | None:
    """None for a folder that says of itself that it is a cache, an environment or a lake; the root is always entered."""
    with os.scandir(place) as found:
        entries = list(found)
    names = {entry.name for entry in entries}
    if path and any(mark <= names for mark in MARKS):
        return None
    entries.sort(key=partial(_order, follow=rules.follow_symlinks))
    if rules.use_gitignore and ".gitignore" in names:
        patterns = PatternList(_read_ignore(os.path.join(place, ".gitignore")))
        if patterns:
            ignores = [(len(shift + path), patterns), *ignores]
    return _Folder(iter(entries), path, uri, ignores)


def _is_folder(entry: os.DirEntry[str], follow: bool) -> bool:
    return entry.is_dir(follow_symlinks=False) or (follow and entry.is_symlink() and os.path.isdir(entry.path))


def _order(entry: os.DirEntry[str], follow: bool) -> str:
    """A folder sorts as its name with a slash, so that the order is that of whole paths."""
    name = entry.name if entry.name.isascii() else printable(entry.name)
    return name + "/" if _is_folder(entry, follow) else name


def _read_ignore(path: str) -> list[str]:
    """Lines of a .gitignore; one that cannot be read is listed as such when its turn comes."""
    try:
        if stat.S_ISREG(os.lstat(path).st_mode):
            with open(path, "rb") as file:
                return read_lines(file.read(IGNORE_BYTES))
    except OSError:
        return []
    return []


def _ignores_above(root: str, top: str) -> tuple[list[tuple[int, PatternList]], str]:
    """The .gitignore files between the top of the work tree and the root, and the root's path below that top."""
    if top in ("", root):
        return [], ""
    shift = os.path.relpath(root, top) + "/"
    found: list[tuple[int, PatternList]] = []
    below = ""
    for part in shift.split("/")[:-1]:
        patterns = PatternList(_read_ignore(os.path.join(top, below, ".gitignore")))
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
        if error.errno == errno.ELOOP:
            return "a link that leads in a circle"
        return "a link to nothing" if error.errno in (errno.ENOENT, errno.ENOTDIR) else f"a link: {error.strerror}"
    if target != root and not target.startswith(root.rstrip("/") + "/"):
        return OUTSIDE
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
