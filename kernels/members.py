"""Parts of a container (attachments, archive members) → members, each parsed as a record of its own (`ir.parsed.Member`).

A member's name is data: it makes up the record's path for people, never a path that is opened. The invariant: a member fails alone, a
archives go at most `limits.nesting` deep and mails `limits.parts_depth`, and the members of one container are at most `limits.members`
and hold at most `limits.members_bytes`.
"""

from __future__ import annotations

import re

from raydex.ir.errors import LimitError
from raydex.ir.ids import make_id
from raydex.ir.parsed import Member
from raydex.kernels.detect import UNKNOWN, detect_media_type
from raydex.kernels.media_types import EXTENSIONS
from raydex.kernels.request import ParseRequest

SEPARATOR = "!/"
NAME_CHARS = 255
_HEAD = 65_536
_DRIVE = re.compile(r"^[A-Za-z]:")
_KNOWN = frozenset(EXTENSIONS.values())


class Members:
    """The members of one container, in its order; each goes to whoever takes them (`request.emit`) at once, else to `kept`."""

    def __init__(self, request: ParseRequest) -> None:
        self.request = request
        self.kept: list[Member] = []
        self.count = 0
        self.size = 0

    @property
    def room(self) -> int:
        """Bytes that the next member may have."""
        limits = self.request.limits
        return max(0, min(limits.member_bytes, limits.members_bytes - self.size))

    def size_fault(self, size: int, more: bool = False) -> str:
        """The limit that the next member of so many bytes would break, with both values; empty for none. `more`: it has at least these."""
        limits = self.request.limits
        shown = f"{size} bytes or more" if more else f"{size} bytes"
        if size > limits.member_bytes:
            return limits.say(shown, "member_bytes")
        if self.size + size > limits.members_bytes:
            return limits.say(f"{shown}, with {self.size} of the members before", "members_bytes")
        return ""

    @property
    def is_full(self) -> bool:
        return self.count >= self.request.limits.members

    def check_nesting(self) -> None:
        """Raises LimitError (too_deep) where no member could be parsed."""
        message = self.request.nesting.inside(self.request.media_type).too_deep(self.request.limits)
        if message:
            raise LimitError(message, reject_class="too_deep", place=self.request.path)

    def add(self, step: str, name: str, data: bytes, media_type: str = "", inside: str = "") -> Member:
        """`step` is the member's place in the container, as a locator; it makes its id. Content and name tell the type, and where they do
        not, `media_type`; `inside`: the member is no file of its own, but a part of these bytes. Raises LimitError (bomb) above
        `limits.members`."""
        fault = self.size_fault(len(data))
        if fault:
            return self.refuse(step, name, "bomb", fault)
        self.size += len(data)
        return self._take(Member(step, name, data, member_type(data, name, media_type), inside))

    def refuse(self, step: str, name: str, reject_class: str, error: str) -> Member:
        """A member that is not read: its reject says why."""
        return self._take(Member(step, name, b"", reject_class=reject_class, error=error))

    def record_id(self, member: Member) -> str:
        return member_id(self.request.record_id, member.step)

    def _take(self, member: Member) -> Member:
        if self.is_full:
            message = f"more members than limits.members ({self.request.limits.members})"
            raise LimitError(message, reject_class="bomb", place=self.request.path)
        self.count += 1
        if self.request.emit is not None:
            self.request.emit(member)
        else:
            self.kept.append(member)
        return member


def member_id(parent: str, step: str) -> str:
    """Id of a member's record."""
    return make_id("rec", parent, step)


def member_path(parent: str, name: str) -> str:
    """The path that people see. Separators, drives and control characters of a foreign name say nothing about folders of ours."""
    clean = "".join(char if char.isprintable() else "\ufffd" for char in _DRIVE.sub("", name[-4096:]).replace("\\", "/"))
    steps = [step for step in clean.split("/") if step.strip() not in ("", ".", "..")]
    return f"{parent}{SEPARATOR}{'/'.join(steps)[-NAME_CHARS:] or 'unnamed'}"


def member_type(data: bytes, name: str, declared: str = "") -> str:
    """By content and name; what neither settles is what the container declares, if we know that type."""
    found = detect_media_type(data[:_HEAD], name)
    if declared not in _KNOWN or found == declared:
        return found
    has_extension = name.rpartition("/")[2].lower().rpartition(".")[2] in EXTENSIONS
    if found == "text/plain" and not has_extension and declared.startswith(("text/", "message/", "application/json", "application/xml")):
        return declared
    return declared if found == UNKNOWN and not declared.startswith("text/") else found
