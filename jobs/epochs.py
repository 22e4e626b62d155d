"""Receipts → commits. An epoch is published when the receipts of all its records and of their members are in: data tables first, the
ledger last. A run in which a receipt or a written file is left over has lost rows and fails.

Epochs are acknowledged in order, so that after a kill every unacknowledged row has an epoch above the ledger's highest (contracts 10).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from raydex.cluster.delta import DataFile, commit_files, write_data_file
from raydex.cluster.faults import fault_point
from raydex.ir.errors import StoreError
from raydex.ir.rows import to_table
from raydex.ir.tables import LOG_TABLES, RECORD_TABLES
from raydex.jobs.context import PENDING, STAGES, RunContext

FIGURES = ("rows_in", "rows_out", "rejects", "seconds", "cpu_seconds", "gpu_seconds")


@dataclass(slots=True)
class Tally:
    """Figures of a run so far; `rejects` counts records that a stage of this run gave up, wholly or in part, by class."""

    states: Counter[str] = field(default_factory=Counter)
    rejects: Counter[str] = field(default_factory=Counter)
    stages: dict[str, dict[str, float]] = field(default_factory=lambda: {name: dict.fromkeys(FIGURES, 0) for name in STAGES})
    rows: Counter[str] = field(default_factory=Counter)
    epochs: int = 0
    bytes_written: int = 0

    def join(self, other: Tally) -> None:
        """Adds the figures of another pass of the run."""
        self.states.update(other.states)
        self.rejects.update(other.rejects)
        self.rows.update(other.rows)
        self.epochs += other.epochs
        self.bytes_written += other.bytes_written
        for stage, figures in other.stages.items():
            for name in FIGURES:
                self.stages[stage][name] += figures[name]

    def add_metrics(self, metrics: list[dict[str, Any]]) -> None:
        for item in metrics:
            figures = self.stages[item["stage"]]
            for name in FIGURES:
                figures[name] += item[name]


class EpochCommitter:
    """Gathers receipts by epoch and commits complete epochs in order. `expected`: epoch → records in it."""

    def __init__(self, context: RunContext, expected: dict[int, int], kept: dict[str, dict[str, str]]) -> None:
        self.context = context
        self.expected = expected
        self.kept = kept
        self.files: dict[int, dict[str, list[DataFile]]] = defaultdict(lambda: defaultdict(list))
        self.records: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self.rejects: dict[int, Counter[str]] = defaultdict(Counter)
        self.waiting = sorted(expected)
        self.planned: Counter[int] = Counter()  # receipts of planned records
        self.lacking: Counter[int] = Counter()  # members that their containers name and whose receipts are not in
        self.tally = Tally()

    def add(self, batch: pa.Table) -> None:
        """Takes one batch of receipts; commits whatever has become complete."""
        for row in batch.to_pylist():
            for item in row["files"]:
                self.files[item["epoch"]][item["table"]].append(
                    DataFile(table=item["table"], path=item["path"], size=item["size"], rows=item["rows"], stats=item["stats"])
                )
            self.tally.add_metrics(row["metrics"])
            self.records[row["epoch"]].append(self._ledger_row(row))
            self.lacking[row["epoch"]] += row["members"]
            if row["parent_id"] and row["start"] == "parse":
                self.lacking[row["epoch"]] -= 1
            else:
                self.planned[row["epoch"]] += 1
            told = row["failed"] or row["start"] == "parse"  # else it stands from an earlier run
            if row["reject_class"] and told and not (row["failed"] == "embed" and self._comes_again(row)):
                self.rejects[row["epoch"]][row["reject_class"]] += 1
        while self.waiting and self._is_whole(self.waiting[0]):
            self._commit(self.waiting.pop(0))

    def _is_whole(self, epoch: int) -> bool:
        return self.planned[epoch] >= self.expected[epoch] and self.lacking[epoch] == 0

    def finish(self) -> Tally:
        """The figures of the run. Raises StoreError when an epoch lacks rows, or rows or files came that no epoch published."""
        place = str(self.context.lake_root)
        if self.waiting:
            raise StoreError(f"{len(self.waiting)} epochs did not complete: a stage lost rows", place=place)
        if self.files or self.records:
            count = sum(len(files) for tables in self.files.values() for files in tables.values())
            left = sum(map(len, self.records.values()))
            raise StoreError(f"{count} files and {left} records of this run were not published", place=place, remedy="Please report this")
        return self.tally

    def _commit(self, epoch: int) -> None:
        files = self.files.pop(epoch, {})
        records = sorted(self.records.pop(epoch), key=lambda row: row["record_id"])
        metadata = {"raydex.run": self.context.run_id, "raydex.epoch": str(epoch)}
        for name in (*RECORD_TABLES, *LOG_TABLES):
            if files.get(name):
                commit_files(self.context.tables, name, files[name], txn_version=epoch, metadata=metadata)
                self.tally.rows[name] += sum(item.rows for item in files[name])
                self.tally.bytes_written += sum(item.size for item in files[name])
        columns = {name: [row[name] for row in records] for name in records[0]}
        ledger = write_data_file(self.context.tables, "records", to_table("records", columns))
        fault_point("epoch.acknowledge:before", str(epoch))
        commit_files(self.context.tables, "records", [ledger], txn_version=epoch, metadata=metadata)
        fault_point("epoch.acknowledge:after", str(epoch))
        self.tally.epochs += 1
        self.tally.states.update(row["state"] for row in records if not row["parent_id"] and not self._comes_again(row))
        self.tally.rejects.update(self.rejects.pop(epoch, {}))

    def _comes_again(self, row: dict[str, Any]) -> bool:
        """Whether this run goes on with the record in its second pass, for captions: it counts there."""
        mark = row.get("caption_mark") or dict(row.get("fingerprints") or ()).get("caption")
        tried = row.get("failed") == "caption" or "caption_tried" in dict(row.get("fingerprints") or ())
        return bool(self.context.settings.caption.model) and mark == PENDING and not tried

    def _ledger_row(self, row: dict[str, Any]) -> dict[str, Any]:
        context = self.context
        return {
            "record_id": row["record_id"],
            "source_id": row["source_id"],
            "source_name": row["source_name"],
            "workspace": context.workspace,
            "repository": row["repository"],
            "path": row["path"],
            "uri": row["uri"],
            "parent_id": row["parent_id"],
            "media_type": row["media_type"],
            "size": row["size"],
            "change_key": row["change_key"],
            "cas_uri": row["cas_uri"],
            "state": row["state"],
            "missing": row["missing"],
            "fingerprints": sorted(self._marks(row).items()),
            "attempts": row["attempts"],
            "reject_class": row["reject_class"],
            "error": row["error"],
            "content_hash": row["content_hash"],
            "fingerprint": context.fingerprints["parse"],
            "run_id": context.run_id,
            "epoch": row["epoch"],
            "written_at": context.written_at,
        }

    def _marks(self, row: dict[str, Any]) -> dict[str, str]:
        """The stages that stand for this content: up to the failed one, which counts as tried (contracts 19)."""
        prints = self.context.fingerprints
        if row["failed"] == "list":
            return self.kept.get(row["record_id"], {})
        seen = {stage: row[f"{stage}_mark"] for stage in ("observe", "caption") if row[f"{stage}_mark"]}
        marks = {"parse": prints["parse"], **seen}
        if row["failed"] in ("parse", "observe"):
            return marks
        if row["failed"] == "caption":
            return {**marks, "caption_tried": prints["caption"], "chunk": prints["chunk"], "embed": prints["embed"]}
        if row["failed"] == "chunk":
            return {**marks, "chunk": prints["chunk"]}
        if row["failed"] == "embed":
            return {**marks, "chunk": prints["chunk"], "embed_tried": prints["embed"]}
        return {**marks, "chunk": prints["chunk"], "embed": prints["embed"]}
