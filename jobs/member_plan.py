"""What a run has to do about members (attachments, files of archives) that the ledger holds; none of them is listed anywhere.

A member follows its container: gone with it, made anew with it. Where the container stands, only its own stages count. The invariant: the
members of one content and one parse fingerprint are always the same, so a container that is parsed again tells all that there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.jobs.held import Held, held_of
from raydex.jobs.work import WorkRows

Row = dict[str, Any]
StartOf = Callable[[Held], str | None]


@dataclass(slots=True)
class Members:
    """Ledger rows of the members in the sources of a run, by id; `roots`: member → id of the file of a source that it is in."""

    rows: dict[str, Row] = field(default_factory=dict)
    roots: dict[str, str] = field(default_factory=dict)

    def wanted_roots(self, start_of: StartOf, only: set[str] | None) -> set[str]:
        """Files that have to be parsed, because a member has to be, or is asked for."""
        if only is not None:
            return {root for member, root in self.roots.items() if member in only}
        return {self.roots[member] for member, row in self.rows.items() if start_of(held_of(row)) == "parse"}

    def follow(self, rows: WorkRows, start_of: StartOf, deleted: set[str], parsed: set[str]) -> tuple[list[str], Counter[str]]:
        """(members that go with their file, starts of those that run again); the latter are appended to the work. `deleted`, `parsed`: ids
        of files."""
        gone: list[str] = []
        starts: Counter[str] = Counter()
        for member, row in self.rows.items():
            root = self.roots[member]
            if root in deleted:
                gone.append(member)
            elif root not in parsed and (start := start_of(held_of(row))) is not None:
                starts[start] += 1
                rows.append(work_row(start, row))
        return gone, starts


def held_members(ledger: pa.Table, source_ids: set[str]) -> Members:
    """The members that the ledger holds of these sources."""
    found = ledger.filter((pc.field("parent_id") != "") & pc.field("source_id").isin(sorted(source_ids)))
    rows = {row["record_id"]: row for row in found.to_pylist()}
    return Members(rows, {member: _root(rows, member) for member in rows})


def _root(rows: dict[str, Row], record: str) -> str:
    while record in rows:
        record = rows[record]["parent_id"]
    return record


def work_row(start: str, row: Row) -> Row:
    """A row of the ledger whose parse stands → the row of work that runs it again from a later stage on."""
    marks = dict(row["fingerprints"] or ())
    kept = ("record_id", "parent_id", "source_id", "source_name", "repository", "path", "uri", "size", "change_key", "content_hash")
    return {
        **{name: row[name] for name in (*kept, "media_type", "cas_uri", "reject_class")},
        "epoch": 0,
        "start": start,
        "attempts": row["attempts"] if row["state"] != "indexed" else 0,
        "error": "",
        "missing": [item for item in row["missing"] or () if item not in ("embedding", "current_content")],
        "ranges": [],
        "observe_mark": marks.get("observe", ""),
        "caption_mark": marks.get("caption", ""),
        "stored": [],
    }
