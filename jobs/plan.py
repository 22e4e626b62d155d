"""What a run has to do: the listing held against the ledger, record by record.

A record is skipped only when its content hash and the fingerprint of every stage have already succeeded (design §2). Deletions concern
only the sources named in this run; what could not be listed is never taken for deleted (contracts 3).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from raydex.cluster.delta import list_data_files, read_data_file
from raydex.cluster.lake import Lake
from raydex.configs.settings import Settings
from raydex.ir.errors import REJECT_CLASSES, ConfigError
from raydex.ir.ids import record_id
from raydex.jobs.flow import WORK
from raydex.jobs.sources import Listed, ListRules, ListSummary, Source, hash_files, list_source

STORED_TABLES = {"chunk": ("documents", "blocks", "symbols"), "embed": ("chunks",)}
MAX_BLOCKS = 4_096


@dataclass(slots=True)
class Plan:
    """`work` are rows of the WORK schema without epochs; `unchanged_states` counts skipped records by state."""

    counts: Counter[str] = field(default_factory=Counter)
    starts: Counter[str] = field(default_factory=Counter)
    unchanged_states: Counter[str] = field(default_factory=Counter)
    work: list[dict[str, Any]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    deleted_paths: list[str] = field(default_factory=list)
    excluded: Counter[str] = field(default_factory=Counter)
    listed_bytes: int = 0

    @property
    def idle(self) -> bool:
        return not self.work and not self.deleted


def make_plan(
    lake: Lake,
    sources: list[Source],
    ledger: pa.Table,
    settings: Settings,
    fingerprints: dict[str, str],
    *,
    allow_empty: bool = False,
    max_delete_share: float | None = None,
    only: set[str] | None = None,
) -> Plan:
    """Lists and hashes the sources and decides where each record starts. `only`: record ids to re-do (retry), nothing else.

    Raises ConfigError when the deletions go over the share, or a source lists nothing while the lake holds records of it.
    """
    plan = Plan()
    known = _index_ledger(ledger, {source.source_id for source in sources})
    rules = ListRules(
        include=settings.list.include,
        exclude=settings.list.exclude,
        use_gitignore=settings.list.gitignore,
        follow_symlinks=settings.list.follow_symlinks,
    )
    for source in sources:
        _plan_source(plan, source, known.get(source.source_id, {}), rules, settings, fingerprints, allow_empty, only)
    if only is None:
        _guard_deletions(plan, known, settings.list.max_delete_share if max_delete_share is None else max_delete_share)
    _attach_stored(lake, plan.work)
    plan.work.sort(key=lambda row: ((row["stored"][0]["path"] if row["stored"] else ""), row["source_name"], row["path"]))
    return plan


def _index_ledger(ledger: pa.Table, source_ids: set[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """source_id → record_id → ledger row, for the sources of this run."""
    names = [
        "record_id",
        "source_id",
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
        "error",
        "parent_id",
    ]
    known: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for batch in ledger.select(names).to_batches():
        for row in batch.to_pylist():
            if row["source_id"] in source_ids and not row["parent_id"]:
                row["fingerprints"] = dict(row["fingerprints"] or ())
                known[row["source_id"]][row["record_id"]] = row
    return known


def _plan_source(
    plan: Plan,
    source: Source,
    known: dict[str, dict[str, Any]],
    rules: ListRules,
    settings: Settings,
    fingerprints: dict[str, str],
    allow_empty: bool,
    only: set[str] | None,
) -> None:
    summary = ListSummary()
    unseen = dict(known)
    failed: list[str] = []
    seen = 0
    for listed, content, error in _hashed(list_source(source, rules, summary), known, source, settings):
        seen += 1
        identity = record_id(source.workspace, source.name, listed.path)
        before = unseen.pop(identity, None)
        if error:
            failed.append(listed.path)
        if only is not None and identity not in only:
            continue
        plan.counts["seen"] += 1
        plan.listed_bytes += listed.size or 0
        row = _work_row(source, identity, listed, content)
        if error:
            _plan_failed(plan, row, before, error, settings.limits.attempts)
            continue
        start = "parse" if only is not None else start_stage(before, content, fingerprints, settings.limits.attempts)
        if start is None:
            assert before is not None
            plan.counts["unchanged"] += 1
            plan.unchanged_states[before["state"]] += 1
            continue
        plan.counts["new" if before is None else "changed"] += 1
        plan.starts[start] += 1
        row["start"] = start
        if before is not None:
            same = before["content_hash"] == content
            row["attempts"] = before["attempts"] if same and before["state"] != "indexed" else 0
            if start != "parse":
                row.update(media_type=before["media_type"], cas_uri=before["cas_uri"])
                row["missing"] = [item for item in before["missing"] or () if item not in ("embedding", "current_content")]
        plan.work.append(row)
    plan.excluded.update(summary.excluded)
    if only is not None:
        return
    gone = [row for row in unseen.values() if not _under(row["path"], failed)]
    plan.counts["seen"] += len(unseen) - len(gone)
    plan.counts["unchanged"] += len(unseen) - len(gone)
    kept = [row for row in unseen.values() if _under(row["path"], failed)]
    plan.unchanged_states.update(row["state"] for row in kept)
    if not seen and gone and not allow_empty:
        raise ConfigError(
            f"source {source.name} lists no file, and the lake holds {len(gone)} records of it",
            place=source.root,
            remedy="Check the path and the excludes; --allow-empty deletes them",
        )
    plan.deleted.extend(row["record_id"] for row in gone)
    plan.deleted_paths.extend(row["path"] for row in gone)
    plan.counts["deleted"] += len(gone)


def start_stage(before: dict[str, Any] | None, content: str, fingerprints: dict[str, str], attempts: int) -> str | None:
    """First stage that a record has to run again, None for none (contracts 19)."""
    if before is None or before["content_hash"] != content:
        return "parse"
    marks = before["fingerprints"]
    if marks.get("parse") != fingerprints["parse"] or "current_content" in (before["missing"] or ()):
        return "parse"
    tried_out = bool(before["reject_class"]) and not _may_retry(before, attempts)
    if before["state"] == "rejected":
        if "chunk" in marks and marks["chunk"] != fingerprints["chunk"]:
            return "chunk"
        return None if tried_out else "parse"
    if marks.get("chunk") != fingerprints["chunk"]:
        return "chunk"
    if marks.get("embed") != fingerprints["embed"]:
        return None if tried_out and marks.get("embed_tried") == fingerprints["embed"] else "embed"
    return None


def _may_retry(row: dict[str, Any], attempts: int) -> bool:
    return REJECT_CLASSES[row["reject_class"]].retryable and (row["attempts"] or 0) < attempts


def _hashed(
    listing: Iterable[Listed], known: dict[str, dict[str, Any]], source: Source, settings: Settings
) -> Iterable[tuple[Listed, str, tuple[str, str] | None]]:
    """(listed, content hash, (class, message) of a failure or None); by `list.change: mtime` an unchanged key saves the reading."""
    if settings.list.change == "mtime" or source.kind == "object":
        trusted: dict[str, str] = {}
        for row in known.values():
            if row["change_key"] and row["content_hash"]:
                trusted[row["path"] + "\0" + row["change_key"]] = row["content_hash"]
    else:
        trusted = {}
    for listed, outcome in hash_files(listing, threads=settings.list.threads, known=trusted):
        if isinstance(outcome, str):
            yield listed, outcome, None
        else:
            yield listed, "", (outcome.reject_class, str(outcome))


def _work_row(source: Source, identity: str, listed: Listed, content: str) -> dict[str, Any]:
    return {
        "record_id": identity,
        "epoch": 0,
        "start": "parse",
        "source_id": source.source_id,
        "source_name": source.name,
        "repository": source.repository or source.name,
        "path": listed.path,
        "uri": listed.uri,
        "size": listed.size or 0,
        "change_key": listed.change_key or "",
        "content_hash": content,
        "media_type": "",
        "cas_uri": "",
        "attempts": 0,
        "reject_class": "",
        "error": "",
        "missing": [],
        "ranges": [],
        "stored": [],
    }


def _plan_failed(plan: Plan, row: dict[str, Any], before: dict[str, Any] | None, error: tuple[str, str], attempts: int) -> None:
    """A file that could not be read: new ones become rejects; indexed ones keep their last content and are degraded."""
    if before is not None and before["reject_class"] == error[0] and (before["attempts"] or 0) >= attempts:
        plan.counts["unchanged"] += 1
        plan.unchanged_states[before["state"]] += 1
        return
    row.update(
        reject_class=error[0], error=error[1], attempts=before["attempts"] or 0 if before and before["reject_class"] == error[0] else 0
    )
    plan.counts["new" if before is None else "changed"] += 1
    if before is not None and before["state"] != "rejected":
        row.update(
            start="keep",
            content_hash=before["content_hash"],
            media_type=before["media_type"],
            cas_uri=before["cas_uri"],
            size=before["size"],
            missing=sorted({*(before["missing"] or ()), "current_content"}),
            kept=before["fingerprints"],
        )
    plan.starts[row["start"]] += 1
    plan.work.append(row)


def _under(path: str, failed: list[str]) -> bool:
    return any(path == bad or path.startswith(bad.rstrip("/") + "/") or bad in ("", ".") for bad in failed)


def _guard_deletions(plan: Plan, known: dict[str, dict[str, dict[str, Any]]], share: float) -> None:
    held = sum(len(rows) for rows in known.values())
    if plan.deleted and held and len(plan.deleted) / held > share:
        raise ConfigError(
            f"this run would delete {len(plan.deleted)} of {held} records, more than list.max_delete_share ({share:g})",
            remedy="Nothing was changed. Check the sources; --max-delete-share 1 lets it happen",
        )


def _attach_stored(lake: Lake, work: list[dict[str, Any]]) -> None:
    """For records that do not start at parse: the data files that hold the rows which the stage reads."""
    for start, tables in STORED_TABLES.items():
        rows = {row["record_id"]: row for row in work if row["start"] == start}
        if not rows:
            continue
        for name in tables:
            for item in list_data_files(lake.tables, name):
                ids = read_data_file(lake.tables, name, item.path, columns=["record_id"]).column("record_id")
                for identity in ids.unique().to_pylist():
                    if identity in rows:
                        rows[identity]["stored"].append({"table": name, "path": item.path})


def number_epochs(work: list[dict[str, Any]], first: int, size: int) -> dict[int, int]:
    """Gives each row its epoch, `size` rows an epoch. Returns epoch → number of records in it."""
    expected: dict[int, int] = {}
    for at, row in enumerate(work):
        row["epoch"] = first + at // size
        expected[row["epoch"]] = expected.get(row["epoch"], 0) + 1
    return expected


def work_tables(work: list[dict[str, Any]], batch: int) -> list[pa.Table]:
    """Arrow blocks of about one batch each; none holds two epochs."""
    size = max(batch, -(-len(work) // MAX_BLOCKS))
    tables: list[pa.Table] = []
    start = 0
    for at in range(1, len(work) + 1):
        if at == len(work) or at - start == size or work[at]["epoch"] != work[start]["epoch"]:
            rows = work[start:at]
            tables.append(pa.Table.from_pydict({name: [row[name] for row in rows] for name in WORK.names}, schema=WORK))
            start = at
    return tables
