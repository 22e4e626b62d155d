"""What a listing is made of: its rules, its rows, its counts by reason, and how names of files become paths and URIs.

Invariant: a path is valid UTF-8, and a URI gives back the exact bytes of the name.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from dataclasses import dataclass
from urllib.parse import quote_from_bytes, unquote_to_bytes

from raydex.ir.errors import InputError
from raydex.jobs.excludes import DEFAULT_EXCLUDES, PatternList

FILE_SCHEME = "file://"
SPECIAL = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


@dataclass(frozen=True, slots=True)
class ListRules:
    """Lines in the manner of .gitignore. `exclude` wins over everything, `!` in it takes defaults and .gitignore back."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    use_gitignore: bool = True
    follow_symlinks: bool = False


@dataclass(slots=True)
class Listed:
    """A file, or a place that cannot be read (`error`; of a folder, all below it is unknown). `change_key` is empty when it has none."""

    path: str
    uri: str
    size: int
    change_key: str
    error: InputError | None = None


class Filter:
    """Include, exclude and default lines of a listing; `excluded` counts the files and whole folders left out, by reason."""

    def __init__(self, rules: ListRules, excluded: Counter[str], pattern: str = "") -> None:
        self.excludes = PatternList(rules.exclude)
        self.defaults = PatternList(DEFAULT_EXCLUDES)
        self.includes = PatternList(rules.include)
        self.pattern = PatternList([f"/{pattern}"] if pattern else ())
        self.excluded = excluded

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


def change_key(status: os.stat_result) -> str:
    """Size and time of the last change in nanoseconds: what tells a change of a local file without reading it (contracts 4)."""
    return f"{status.st_size}:{status.st_mtime_ns}"


def unreadable(path: str, error: OSError) -> InputError:
    """A reject of a place that the system does not let us read."""
    remedy = (
        "Give this user the right to read it" if error.errno in (errno.EACCES, errno.EPERM) else "Check that it is there and can be read"
    )
    return InputError(error.strerror or type(error).__name__, reject_class="unreadable", place=path, remedy=remedy)


def refused(path: str, uri: str, why: str, remedy: str) -> Listed:
    """A row for a link or a name that a listing does not follow. Each listing looks anew, so that trying it again brings nothing."""
    return Listed(path, uri, 0, "", InputError(why, reject_class="refused", place=path, remedy=remedy))


def special(path: str, uri: str, mode: int) -> Listed:
    """A row for what is no regular file."""
    return Listed(path, uri, 0, "", InputError(special_name(mode), reject_class="unsupported_media_type", place=path))


def special_name(mode: int) -> str:
    """What stands at a place that is no regular file."""
    return f"this is {SPECIAL.get(stat.S_IFMT(mode), 'no file')}"


def printable(name: str) -> str:
    """Valid UTF-8 for a file name: bytes that are not are written \\xNN."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def quote_path(path: str) -> str:
    return quote_from_bytes(os.fsencode(path), safe="/~+=@,!")


def path_of(uri: str) -> bytes:
    """The bytes of a local path."""
    return unquote_to_bytes(uri[len(FILE_SCHEME) :])
