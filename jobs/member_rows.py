"""Parts of a container (attachments, files of an archive, tickets of an export) → rows of work of their own, behind their container's.

A member's id is made of its container's and its place in it, its `change_key` is the container's content hash: by these the ledger tells
whose member it is, and of which content. The invariant: archives go at most `limits.nesting` deep and mails `limits.parts_depth`, and all
that one file of a source unpacks into stays below `limits.members_bytes` and `limits.members`, whatever is nested in what.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from raydex.jobs.isolation import Part
from raydex.kernels.limits import Limits
from raydex.kernels.members import member_id, member_path
from raydex.kernels.request import OUTERMOST, Nesting

Row = dict[str, Any]


class Families:
    """Makes the rows of members; `held`, `inside`, `nesting` and `root` of a row are for the worker alone, no columns."""

    def __init__(self, limits: Limits, *, kept: bool) -> None:
        self.limits = limits
        self.kept = kept
        self._bytes: Counter[str] = Counter()
        self._count: Counter[str] = Counter()

    def members_of(self, row: Row, parts: list[Part]) -> list[Row]:
        """Rows in the container's order; `row` gets their number."""
        members = [self._member(row, part) for part in parts if part.kind == "member"]
        row["members"] = len(members)
        return members

    def _member(self, row: Row, part: Part) -> Row:
        root = row.get("root") or row["record_id"]
        nesting: Nesting = row.get("nesting", OUTERMOST).inside(row["media_type"])
        self._bytes[root] += part.size
        self._count[root] += 1
        refused, error = part.reject_class, part.error
        if not refused and (deep := nesting.too_deep(self.limits)):
            refused, error = "too_deep", deep
        elif not refused and (over := self._over(root)):
            refused, error = "bomb", over
        return {
            **row,
            "record_id": member_id(row["record_id"], part.step),
            "parent_id": row["record_id"],
            "path": member_path(row["path"], part.name),
            "size": part.size,
            "change_key": row["content_hash"],
            "content_hash": part.content_hash,
            "media_type": part.media_type,
            "cas_uri": part.uri if self.kept else "",
            "attempts": 0,
            "reject_class": refused,
            "error": error,
            "missing": [],
            "ranges": [],
            "observe_mark": "",
            "caption_mark": "",
            "stored": [],
            "stream": None,
            "members": 0,
            "held": part.uri,
            "inside": part.inside,
            "nesting": nesting,
            "root": root,
        }

    def _over(self, root: str) -> str:
        """The limit that all that a file unpacks into is over, with both values; empty for none."""
        size, count = self._bytes[root], self._count[root]
        if size > self.limits.members_bytes:
            return self.limits.say(f"the file unpacks into {size} bytes up to this one", "members_bytes")
        if count > self.limits.members:
            return self.limits.say(f"the file unpacks into {count} members up to this one", "members")
        return ""
