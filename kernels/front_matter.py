"""Front matter of a Markdown file → its title and language, by the few forms that such text is written in: no YAML library sees a
stranger's file.

The invariant: a value is text of the front matter on one line; a key that holds something else (a mapping, a list, null) gives none.
"""

from __future__ import annotations

import re
from itertools import takewhile

_KEYS = {name: re.compile(rf"^{name}[ \t]*+([:=])(.*)", re.MULTILINE) for name in ("title", "lang", "language")}
# `>-` or `|`: the indented lines below are the text
_BLOCK = re.compile(r"[>|][-+0-9]{0,2}(?:[ \t]++#.*)?")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*+)"')
_SINGLE = re.compile(r"'((?:[^']|'')*+)'")
_ESCAPE = re.compile(r'\\(["\\])')
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_NESTED = re.compile(r"-[ \t]|[\w.-]++[ \t]*+:(?:[ \t]|$)")


def front_text(front: str, *names: str) -> str:
    """The value of the first of these keys that the top level has; empty where there is none. Line ends are \\n."""
    return next((text for name in names if (text := _text(front, name))), "")


def _text(front: str, name: str) -> str:
    found = _KEYS[name].search(front)
    if found is None:
        return ""
    sign, value = found.group(1), found.group(2).strip()
    more: list[str] = []
    if sign == ":":
        below = front[found.end() + 1 :].split("\n")
        more = [line.strip() for line in takewhile(lambda line: not line.strip() or line[0] in " \t", below) if line.strip()]
    if _BLOCK.fullmatch(value):
        return " ".join(more)
    if _COMMENT.match(value):
        value = ""
    if not value and more and _NESTED.match(more[0]):
        return ""
    return _scalar([value, *more] if value else more)


def _scalar(lines: list[str]) -> str:
    """A quoted or plain text that may go on over lines."""
    whole = " ".join(lines)
    quoted = _DOUBLE.match(whole)
    if quoted:
        return _ESCAPE.sub(r"\1", quoted.group(1)).strip()
    quoted = _SINGLE.match(whole)
    if quoted:
        return quoted.group(1).replace("''", "'").strip()
    plain = " ".join(filter(None, (_COMMENT.sub("", line).strip() for line in lines)))
    return "" if plain in ("~", "null") else plain.strip("\"'")
