"""What a run has to do: the listing held against the ledger, record by record.

A record is skipped only when its content hash and the fingerprint of every stage have already succeeded (design §2). Deletions concern
only the sources named in this run; what could not be listed is never taken for deleted (contracts 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from raydex.cluster.lake import Lake
from raydex.configs.settings import Settings
from raydex.ir.errors import REJECT_CLASSES, ConfigError
from raydex.ir.ids import record_id
from raydex.jobs.context import PENDING
from raydex.jobs.flow import WORK
from raydex.jobs.held import Held, Known, index_ledger
from raydex.jobs.member_plan import held_members
from raydex.jobs.sources import Listed, ListRules, Source, hash_files, list_source
from raydex.jobs.work import WorkRows


@dataclass(slots=True)
class Plan:
    """`counts`: seen = new + changed + unchanged; among the changed are those whose content is the same: `reprocessed` for another
    configuration or version, and `retried`. `work` are rows of the WORK schema without epochs; `unchanged_states` counts skipped records by
    state; `kept` are the fingerprints of records that keep their last content."""

    counts: Counter[str] = field(default_factory=Counter)
    starts: Counter[str] = field(default_factory=Counter)
    unchanged_states: Counter[str] = field(default_factory=Counter)
    work: pa.Table = field(default_factory=WORK.empty_table)
    kept: dict[str, dict[str, str]] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    excluded: Counter[str] = field(default_factory=Counter)
    listed_bytes: int = 0

    @property
    def idle(self) -> bool:
        return not self.work.num_rows and not self.deleted


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
    known = index_ledger(ledger, {source.source_id: source.repository or source.name for source in sources}, fingerprints)
    rules = ListRules(
        include=settings.list.include,
        exclude=settings.list.exclude,
        use_gitignore=settings.list.gitignore,
        follow_symlinks=settings.list.follow_symlinks,
    )
    rows = WorkRows()
    members = held_members(ledger, set(known))

    def start_of(held: Held) -> str | None:
        return start_stage(held, held.content_hash, fingerprints, settings.limits.attempts)

    forced = members.wanted_roots(start_of, only)
    for source in sources:
        _plan_source(plan, rows, source, known[source.source_id], rules, settings, fingerprints, allow_empty, only, forced)
    if only is None:
        _guard_deletions(plan, known, settings.list.max_delete_share if max_delete_share is None else max_delete_share)
        gone, starts = members.follow(rows, start_of, set(plan.deleted), rows.parsed)
        plan.deleted += gone
        plan.starts.update(starts)
    plan.work = rows.table(lake)
    return plan


def _plan_source(
    plan: Plan,
    rows: WorkRows,
    source: Source,
    known: Known,
    rules: ListRules,
    settings: Settings,
    fingerprints: dict[str, str],
    allow_empty: bool,
    only: set[str] | None,
    forced: set[str],
) -> None:
    repository = source.repository or source.name
    listing = list_source(source, rules, plan.excluded)
    if only is not None:
        listing = (one for one in listing if record_id(source.workspace, source.name, one.path) in only | forced)
    known_forced = forced_paths(source, known, forced)
    unseen = {*known.settled, *known.others}
    failed: list[str] = []
    seen = 0
    for listed, content, error in _hashed(listing, known, source, settings):
        seen += 1
        path = listed.path
        unseen.discard(path)
        plan.counts["seen"] += 1
        plan.listed_bytes += listed.size or 0
        if error:
            failed.append(path)
            _plan_failed(plan, rows, _work_row(source, listed, content), known.held(path), error, settings.limits.attempts)
            continue
        settled = known.settled.get(path)
        if settled == content and only is None and path not in known_forced:
            plan.counts["unchanged"] += 1
            plan.unchanged_states["indexed"] += 1
            continue
        before = known.others.get(path)
        if only is not None or path in known_forced or settled is not None or (before is not None and before.repository != repository):
            start: str | None = "parse"
        else:
            start = start_stage(before, content, fingerprints, settings.limits.attempts)
        if start is None:
            assert before is not None
            plan.counts["unchanged"] += 1
            plan.unchanged_states[before.state] += 1
            continue
        plan.counts["new" if before is None and settled is None else "changed"] += 1
        if content == (before.content_hash if before is not None else settled):
            again = path in known_forced or only is not None or (before is not None and _was_left(before, settings.limits.attempts))
            plan.counts["retried" if again else "reprocessed"] += 1
        plan.starts[start] += 1
        row = _work_row(source, listed, content)
        row["start"] = start
        if before is not None:
            same = before.content_hash == content
            row["attempts"] = before.attempts if same and before.state != "indexed" else 0
            if start != "parse":
                row.update(media_type=before.media_type, cas_uri=before.cas_uri, reject_class=before.reject_class)
                row.update(observe_mark=before.fingerprints.get("observe", ""), caption_mark=before.fingerprints.get("caption", ""))
                row["missing"] = [item for item in before.missing if item not in ("embedding", "current_content")]
        rows.append(row)
    if only is not None:
        return
    gone = {path for path in unseen if not _under(path, failed)}
    kept = unseen - gone
    plan.counts["seen"] += len(kept)
    plan.counts["unchanged"] += len(kept)
    plan.unchanged_states.update(known.others[path].state if path in known.others else "indexed" for path in kept)
    if not seen and gone and not allow_empty:
        raise ConfigError(
            f"source {source.name} lists no file, and the lake holds {len(gone)} records of it",
            place=source.root,
            remedy="Check the path and the excludes; --allow-empty deletes them",
        )
    plan.deleted.extend(sorted(record_id(source.workspace, source.name, path) for path in gone))
    plan.counts["deleted"] += len(gone)


def forced_paths(source: Source, known: Known, forced: set[str]) -> set[str]:
    """Paths of the records in `forced`: files with a member that has to be parsed again."""
    if not forced:
        return set()
    return {path for path in (*known.settled, *known.others) if record_id(source.workspace, source.name, path) in forced}


def start_stage(before: Held | None, content: str, fingerprints: dict[str, str], attempts: int) -> str | None:
    """First stage that a record has to run again, None for none (contracts 19)."""
    if before is None or before.content_hash != content:
        return "parse"
    marks = before.fingerprints
    if marks.get("parse") != fingerprints["parse"] or "current_content" in before.missing:
        return "parse"
    tried_out = bool(before.reject_class) and not _may_retry(before, attempts)
    if marks.get("observe", fingerprints["observe"]) != fingerprints["observe"]:
        return "parse"
    if before.state == "rejected":
        if "chunk" in marks and marks["chunk"] != fingerprints["chunk"]:
            return "chunk"
        return None if tried_out else "parse"
    if _may_retry(before, attempts) and "embed_tried" not in marks and "caption_tried" not in marks:
        return "parse"  # pages could not be read
    pending = marks.get("caption", fingerprints["caption"]) != fingerprints["caption"]
    if pending and not (tried_out and marks.get("caption_tried") == fingerprints["caption"]):
        return "caption"
    if marks.get("chunk") != fingerprints["chunk"]:
        return "chunk"
    if marks.get("embed") != fingerprints["embed"]:
        return None if tried_out and marks.get("embed_tried") == fingerprints["embed"] else "embed"
    return None


def _may_retry(row: Held, attempts: int) -> bool:
    return bool(row.reject_class) and REJECT_CLASSES[row.reject_class].retryable and row.attempts < attempts


def _was_left(row: Held, attempts: int) -> bool:
    """Whether an earlier run did not come to the end of the record: it failed for a reason that may pass, or waits for its captions."""
    return _may_retry(row, attempts) or "current_content" in row.missing or PENDING in row.fingerprints.values()


def _hashed(
    listing: Iterable[Listed], known: Known, source: Source, settings: Settings
) -> Iterable[tuple[Listed, str, tuple[str, str] | None]]:
    """(listed, content hash, (class, message) of a failure or None); by `list.change: mtime` an unchanged key saves the reading."""
    if settings.list.change == "mtime" or source.kind == "object":
        trusted = known.trusted()
    else:
        trusted = {}
    for listed, outcome in hash_files(listing, threads=settings.list.threads, known=trusted):
        if isinstance(outcome, str):
            yield listed, outcome, None
        else:
            yield listed, "", (outcome.reject_class, str(outcome))


def _work_row(source: Source, listed: Listed, content: str) -> dict[str, Any]:
    return {
        "record_id": record_id(source.workspace, source.name, listed.path),
        "parent_id": "",
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
        "observe_mark": "",
        "caption_mark": "",
        "stored": [],
    }


def _plan_failed(plan: Plan, rows: WorkRows, row: dict[str, Any], before: Held | None, error: tuple[str, str], attempts: int) -> None:
    """A file that could not be read: new ones become rejects; indexed ones keep their last content and are degraded."""
    if before is not None and before.reject_class == error[0] and not _may_retry(before, attempts):
        plan.counts["unchanged"] += 1
        plan.unchanged_states[before.state] += 1
        return
    row.update(reject_class=error[0], error=error[1], attempts=before.attempts if before and before.reject_class == error[0] else 0)
    plan.counts["new" if before is None else "changed"] += 1
    if before is not None and before.state != "rejected":
        row.update(
            start="keep",
            content_hash=before.content_hash,
            media_type=before.media_type,
            repository=before.repository,
            cas_uri=before.cas_uri,
            size=before.size,
            missing=sorted({*before.missing, "current_content"}),
        )
        plan.kept[row["record_id"]] = before.fingerprints
    plan.starts[row["start"]] += 1
    rows.append(row)


def _under(path: str, failed: list[str]) -> bool:
    return any(path == bad or path.startswith(bad.rstrip("/") + "/") or bad in ("", ".") for bad in failed)


def _guard_deletions(plan: Plan, known: dict[str, Known], share: float) -> None:
    held = sum(len(rows) for rows in known.values())
    if plan.deleted and held and len(plan.deleted) / held > share:
        raise ConfigError(
            f"this run would delete {len(plan.deleted)} of {held} records, more than list.max_delete_share ({share:g})",
            remedy="Nothing was changed. Check the sources; --max-delete-share 1 lets it happen",
        )
