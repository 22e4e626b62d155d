"""What the ledger holds of the sources of a run, by columns: an unchanged record costs no Python object of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.jobs.context import STAGES

# stages that leave a mark only on records that hold something for them: pages or images to read, images to caption
WHERE_SEEN = ("observe", "caption")
HELD = (
    "source_id",
    "repository",
    "path",
    "size",
    "change_key",
    "content_hash",
    "media_type",
    "cas_uri",
    "state",
    "missing",
    "fingerprints",
    "attempts",
    "reject_class",
)


@dataclass(slots=True)
class Held:
    """What the ledger holds of one record. Values that recur are shared: there is one of these a record."""

    path: str
    repository: str
    size: int
    content_hash: str
    media_type: str
    cas_uri: str
    state: str
    missing: tuple[str, ...]
    fingerprints: dict[str, str]
    attempts: int
    reject_class: str


@dataclass(slots=True)
class Known:
    """The ledger of one source, by path: in one source that is the record. `settled`: content hash of those that nothing but other content
    would start again; `others`: all that is held of the rest; `rows`: columns HELD of all. Symbols are named by their repository: under
    another one none is settled."""

    rows: pa.Table
    settled: dict[str, str]
    others: dict[str, Held]
    index: dict[str, int] = field(default_factory=dict)

    def held(self, path: str) -> Held | None:
        """All that is held of one record."""
        if path in self.others or path not in self.settled:
            return self.others.get(path)
        if not self.index:
            self.index = {held: at for at, held in enumerate(self.rows.column("path").to_pylist())}
        return _held_rows(self.rows.slice(self.index[path], 1))[path]

    def __len__(self) -> int:
        return len(self.settled) + len(self.others)

    def trusted(self) -> dict[str, str]:
        """path, NUL, change key → content hash."""
        rows = self.rows.filter((pc.field("change_key") != "") & (pc.field("content_hash") != ""))
        keys: Any = pc.binary_join_element_wise(rows.column("path"), rows.column("change_key"), "\0")
        return dict(zip(keys.to_pylist(), rows.column("content_hash").to_pylist(), strict=True))


def index_ledger(ledger: pa.Table, repositories: dict[str, str], fingerprints: dict[str, str]) -> dict[str, Known]:
    """source_id → what the ledger holds, for the sources of this run. `repositories`: source_id → its present repository; `fingerprints`:
    those that the stages have now."""
    own = (pc.field("parent_id").is_null() | (pc.field("parent_id") == "")) & pc.field("source_id").isin(sorted(repositories))
    held = ledger.select([*HELD, "parent_id"]).filter(own)
    done = (pc.field("state") == "indexed") & (pc.field("reject_class").is_null() | (pc.field("reject_class") == ""))
    for stage in STAGES:
        mark = pc.map_lookup(held.column("fingerprints"), pa.scalar(stage), "first")
        if stage in WHERE_SEEN:
            mark = pc.fill_null(mark, fingerprints[stage])
        held = held.append_column(f"mark_{stage}", mark)
        done &= pc.field(f"mark_{stage}") == fingerprints[stage]
    held = held.append_column("missing_count", pc.fill_null(pc.list_value_length(held.column("missing")), 0))
    done &= pc.field("missing_count") == 0
    known: dict[str, Known] = {}
    for source_id, repository in sorted(repositories.items()):
        rows = held.filter(pc.field("source_id") == source_id)
        settles = done & (pc.field("repository") == repository)
        settled = rows.filter(settles)
        others = rows.filter(~settles | settles.is_null()).select(HELD)
        known[source_id] = Known(
            rows.select(HELD),
            dict(zip(settled.column("path").to_pylist(), settled.column("content_hash").to_pylist(), strict=True)),
            _held_rows(others),
        )
    return known


def _held_rows(rows: pa.Table) -> dict[str, Held]:
    found: dict[str, Held] = {}
    shared: dict[Any, Any] = {}
    for batch in rows.to_batches(max_chunksize=4_096):
        for row in batch.to_pylist():
            found[row["path"]] = held_of(row, shared)
    return found


def held_of(row: dict[str, Any], shared: dict[Any, Any] | None = None) -> Held:
    """A row of the ledger; `shared` holds the values that recur."""
    shared = {} if shared is None else shared
    marks = tuple(sorted(dict(row["fingerprints"] or ()).items()))
    missing = tuple(row["missing"] or ())
    return Held(
        path=row["path"],
        repository=shared.setdefault(row["repository"], row["repository"]),
        size=row["size"],
        content_hash=row["content_hash"],
        media_type=shared.setdefault(row["media_type"], row["media_type"]),
        cas_uri=row["cas_uri"],
        state=shared.setdefault(row["state"], row["state"]),
        missing=shared.setdefault(("missing", missing), missing),
        fingerprints=shared.setdefault(marks, dict(marks)),
        attempts=row["attempts"] or 0,
        reject_class=shared.setdefault(row["reject_class"], row["reject_class"]),
    )
