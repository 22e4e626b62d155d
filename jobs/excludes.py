"""Lines in the manner of .gitignore → a fast answer to "is this path left out?".

The rules are git's own: the last line that matches decides, `!` takes back, a slash anchors, a trailing slash means folders, `**` crosses
folders. Lines are compiled into groups of names, endings and one regular expression, since a listing asks for every file.

Invariant: for any lines and any path whose folders are not left out themselves, the answer is that of `git check-ignore --no-index`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from raydex.kernels.system_files import APPLE_DOUBLE, SYSTEM_FOLDERS, SYSTEM_NAMES

# version control, package and build caches, environments: no content that anyone wrote
DEFAULT_EXCLUDES = (
    ".git",
    ".hg/",
    ".svn/",
    ".bzr/",
    "CVS/",
    "node_modules/",
    "bower_components/",
    "__pycache__/",
    "*.py[co]",
    ".venv/",
    ".tox/",
    ".nox/",
    ".eggs/",
    "*.egg-info/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".pytest_cache/",
    ".hypothesis/",
    ".ipynb_checkpoints/",
    ".cache/",
    ".parcel-cache/",
    ".gradle/",
    ".terraform/",
    ".idea/",
    *(f"{name}/" for name in SYSTEM_FOLDERS),
    *SYSTEM_NAMES,
    f"{APPLE_DOUBLE}*",
    "*.sw[op]",
    "*~",
)
_POSIX = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "\\x21-\\x7e",
    "lower": "a-z",
    "print": "\\x20-\\x7e",
    "punct": "!-\\/:-@\\[-`{-~",
    "space": " \\t\\n\\r\\f\\v",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_MAGIC = re.compile(r"[*?\[\\]")


class PatternList:
    """Compiled lines. `match` takes the path below the folder of the lines, its last part, and whether it is a folder."""

    __slots__ = ("_groups",)

    def __init__(self, lines: Iterable[str]) -> None:
        groups: list[_Group] = []
        for line in lines:
            rule = _read_line(line)
            if rule is None:
                continue
            pattern, negated, folders_only, anchored = rule
            if not groups or groups[-1].negated != negated:
                groups.append(_Group(negated))
            groups[-1].add(pattern, folders_only, anchored)
        for group in groups:
            group.compile()
        self._groups = groups[::-1]

    def __bool__(self) -> bool:
        return bool(self._groups)

    def match(self, path: str, name: str, folder: bool) -> bool | None:
        """True: left out. False: taken back by a `!` line. None: no line speaks of it."""
        for group in self._groups:
            if group.match(path, name, folder):
                return not group.negated
        return None

    def match_within(self, path: str) -> bool | None:
        """Like `match` for a file, where a line also speaks of all that lies below a folder it names (includes)."""
        parts = path.split("/")
        for depth in range(len(parts), 0, -1):
            found = self.match("/".join(parts[:depth]), parts[depth - 1], depth < len(parts))
            if found is not None:
                return found
        return None


class _Group:
    """Neighbouring lines of one polarity: their order does not matter."""

    __slots__ = ("_expressions", "_name", "_path", "_suffixes", "endings", "names", "negated")

    def __init__(self, negated: bool) -> None:
        self.negated = negated
        self.names: tuple[set[str], set[str]] = (set(), set())  # of anything, of folders only
        self.endings: tuple[list[str], list[str]] = ([], [])
        self._expressions: tuple[list[str], list[str], list[str], list[str]] = ([], [], [], [])  # name or path × any or folder

    def add(self, pattern: str, folders_only: bool, anchored: bool) -> None:
        which = int(folders_only)
        if not anchored and not _MAGIC.search(pattern):
            self.names[which].add(pattern)
        elif not anchored and pattern[0] == "*" and not _MAGIC.search(pattern[1:]):
            self.endings[which].append(pattern[1:])
        else:
            expression = to_expression(pattern, anchored)
            if expression is not None:
                self._expressions[2 * int(anchored) + which].append(expression)

    def compile(self) -> None:
        union = [re.compile("|".join(f"(?:{e})" for e in each), re.DOTALL) if each else None for each in self._expressions]
        self._name = (union[0], union[1])
        self._path = (union[2], union[3])
        self._suffixes = (tuple(self.endings[0]), tuple(self.endings[1]))

    def match(self, path: str, name: str, folder: bool) -> bool:
        for which in (0, 1) if folder else (0,):
            if name in self.names[which] or (self._suffixes[which] and name.endswith(self._suffixes[which])):
                return True
            expression = self._name[which]
            if expression is not None and expression.fullmatch(name):
                return True
            expression = self._path[which]
            if expression is not None and expression.fullmatch(path):
                return True
        return False


def read_lines(data: bytes) -> list[str]:
    """Lines of a .gitignore file; bytes that are not UTF-8 become what `os.fsdecode` makes of them."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    return [line.removesuffix("\r") for line in text.split("\n")]


def _read_line(line: str) -> tuple[str, bool, bool, bool] | None:
    """(pattern, negated, folders only, anchored), or None for blank lines and comments."""
    while line.endswith(" ") and not _is_escaped(line, len(line) - 1):
        line = line[:-1]
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    line = line[negated:]
    folders_only = line.endswith("/")
    line = line[: len(line) - folders_only]
    anchored = "/" in line
    line = line.removeprefix("/")
    return (line, negated, folders_only, anchored) if line else None


def _is_escaped(text: str, at: int) -> bool:
    count = 0
    while at > 0 and text[at - 1] == "\\":
        count += 1
        at -= 1
    return count % 2 == 1


def to_expression(pattern: str, anchored: bool) -> str | None:
    """A glob as a regular expression for `fullmatch`; None for one that git takes as matching nothing."""
    out: list[str] = []
    at = 0
    end = len(pattern)
    while at < end:
        char = pattern[at]
        at += 1
        if char == "*":
            stars = 1
            while at < end and pattern[at] == "*":
                stars += 1
                at += 1
            before = at - stars == 0 or pattern[at - stars - 1] == "/"
            if anchored and stars == 2 and before and (at == end or pattern[at] == "/"):
                if at == end:
                    out.append(".*" if not out else ".+")
                else:
                    at += 1
                    out.append("(?:.*/)?")
            else:
                out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[":
            found = _read_class(pattern, at)
            if found is None:
                return None
            text, at = found
            out.append(text)
        elif char == "\\":
            if at == end:
                return None
            out.append(re.escape(pattern[at]))
            at += 1
        else:
            out.append(re.escape(char))
    return "".join(out)


def _read_class(pattern: str, at: int) -> tuple[str, int] | None:
    """A bracket expression from after its `[`, as a regular expression that never matches a slash, and where it ends."""
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    first = True
    while True:
        if at >= len(pattern):
            return None
        char = pattern[at]
        if char == "]" and not first:
            break
        first = False
        if char == "[" and pattern[at + 1 : at + 2] == ":":
            stop = pattern.find(":]", at + 2)
            if stop >= 0:
                named = _POSIX.get(pattern[at + 2 : stop])
                if named is None:
                    return None
                items.append(named)
                at = stop + 2
                continue
        if char == "\\":
            at += 1
            if at >= len(pattern):
                return None
            char = pattern[at]
        at += 1
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
            at += 1
            last = pattern[at]
            if last == "\\":
                at += 1
                if at >= len(pattern):
                    return None
                last = pattern[at]
            at += 1
            # git looks at the first character by itself before it sees the range, which may be reversed
            items.append(f"{re.escape(char)}-{re.escape(last)}" if char <= last else re.escape(char))
            continue
        items.append(re.escape(char))
    body = "".join(items)
    if not body:
        return ("[^/]" if negated else "(?!)"), at + 1
    return (f"[^/{body}]" if negated else f"(?!/)[{body}]"), at + 1
