"""The embed stage: texts of many records → one vector a leaf chunk. The last stage: what leaves it is the receipt.

Texts are pooled over the batch, known ones looked up, equal ones computed once. A text that the model or endpoint gives no vector for
costs the records that hold it their vectors (degraded, `embedding` missing, retryable), never their text, and no other record anything.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import read_data_file
from raydex.cluster.faults import fault_point
from raydex.ir.rows import to_table
from raydex.jobs.context import RunContext
from raydex.jobs.flow import StageClock, receipt_columns, with_columns
from raydex.jobs.known_vectors import KnownVectors
from raydex.jobs.live import live_rows
from raydex.jobs.progress import report
from raydex.jobs.rejects import reject_rows
from raydex.jobs.sink import Sink
from raydex.kernels.embed import load_embedder

READS = ("record_id", "epoch", "start", "content_hash", "state", "missing", "texts", "stored")
WRITES = ("state", "failed", "missing", "attempts", "reject_class", "error", "chunks")
CACHE_ROWS = 50_000


class EmbedWorker:
    """Actor of the embed stage. `known` is the path of the index of stored vectors, or empty."""

    def __init__(self, context: RunContext, board: Any = None, known: str = "") -> None:
        self.context = context
        self.board = board
        self.known = KnownVectors(context.tables, Path(known)) if known else None
        self.cache: dict[str, np.ndarray] = {}
        self.embedder = load_embedder(context.settings.embed, gpus=context.settings.stages.embed.gpus)
        self.gpu = self.embedder is not None and self.embedder.device not in ("", "cpu")

    def __call__(self, batch: pa.Table) -> pa.Table:
        rows = batch.drop_columns([c for c in ("texts", "files", "metrics") if c in batch.column_names]).to_pylist()
        texts = self._load_stored(rows, batch.column("texts").to_pylist())
        clock = StageClock("embed", sum(map(len, texts)), gpu=self.gpu)
        fault_point("embed.batch", rows[0]["path"] if rows else "")
        sink = Sink(self.context.tables)
        rejects = 0
        if self.embedder is not None:
            rejects = self._embed(rows, texts, sink)
        files = sink.flush()
        metrics = [clock.stop(clock.rows_in - rejects, rejects)]
        out = batch.drop_columns(["texts", "stored"])
        for name in ("state", "failed", "reject_class", "error"):
            out = with_columns(out, {name: pa.array([row[name] for row in rows], pa.string())})
        out = with_columns(
            out,
            {
                "attempts": pa.array([row["attempts"] for row in rows], pa.int32()),
                "missing": pa.array([row["missing"] for row in rows], pa.list_(pa.string())),
                "chunks": pa.array([len(items) for items in texts], pa.int64()),
            },
        )
        report(self.board, "embed", len(rows), rejects)
        return receipt_columns(out, files, metrics)

    def _embed(self, rows: list[dict[str, Any]], texts: list[list[dict[str, str]]], sink: Sink) -> int:
        assert self.embedder is not None
        wanted: dict[str, str] = {item["text_hash"]: item["text"] for items in texts for item in items}
        vectors: dict[str, np.ndarray] = {}
        fresh: list[str] = []
        for key in wanted:
            found = self.cache.get(key)
            if found is None and self.known is not None:
                found = self.known.find(key)
            if found is None:
                fresh.append(key)
            else:
                vectors[key] = found
        truncated = {key for key, cut in zip(wanted, self.embedder.truncated(list(wanted.values()))) if cut}
        made, errors = self.embedder.embed_each([wanted[key] for key in fresh])
        failures = {fresh[at]: error for at, error in errors.items()}
        new = {fresh[at]: vector for at, vector in made.items()}
        self._remember(new)
        vectors.update(new)
        rejects = 0
        columns: dict[int, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        for row, items in zip(rows, texts):
            row["missing"] = list(row["missing"] or ())
            failure = next((failures[item["text_hash"]] for item in items if item["text_hash"] in failures), None)
            if failure is not None:
                rejects += 1
                row.update(state="degraded", failed="embed", reject_class=failure.reject_class, error=str(failure)[:500])
                row["missing"] = sorted({*row["missing"], "embedding"})
                stamp = self.context.stamp("embed", row["record_id"], row["content_hash"], row["epoch"])
                sink.add(row["epoch"], reject_rows(row, "embed", stamp))
                row["attempts"] = (row["attempts"] or 0) + 1
                continue
            out = columns[row["epoch"]]
            for item in items:
                out["chunk_id"].append(item["chunk_id"])
                out["text_hash"].append(item["text_hash"])
                out["vector"].append(vectors[item["text_hash"]])
                out["truncated"].append(item["text_hash"] in truncated)
                out["record_id"].append(row["record_id"])
                out["content_hash"].append(row["content_hash"])
        for epoch, out in columns.items():
            count = len(out["chunk_id"])
            if count:
                stamp = self.context.stamp("embed", "", "", epoch)
                out["model"] = [self.embedder.model] * count
                out["fingerprint"] = [stamp.fingerprint] * count
                out["run_id"] = [stamp.run_id] * count
                out["epoch"] = [epoch] * count
                out["written_at"] = [stamp.written_at] * count
                sink.add(epoch, {"embeddings": to_table("embeddings", dict(out))})
        return rejects

    def _remember(self, fresh: dict[str, np.ndarray]) -> None:
        for key, vector in fresh.items():
            if len(self.cache) >= CACHE_ROWS:
                self.cache.pop(next(iter(self.cache)))
            self.cache[key] = vector

    def _load_stored(self, rows: list[dict[str, Any]], texts: list[list[dict[str, str]]]) -> list[list[dict[str, str]]]:
        """Texts of records that start at this stage, from the chunk files that hold them."""
        wanted = {row["record_id"]: row["content_hash"] for row in rows if row["start"] == "embed"}
        if not wanted:
            return texts
        paths = sorted({item["path"] for row in rows for item in row["stored"] or () if item["table"] == "chunks"})
        where = pc.field("record_id").isin(pa.array(list(wanted), pa.string()))
        parts = [read_data_file(self.context.tables, "chunks", path, where=where) for path in paths]
        found: dict[str, list[dict[str, str]]] = defaultdict(list)
        if parts:
            live = live_rows(pa.concat_tables(parts), wanted, self.context.fingerprints["chunk"]).sort_by("ordinal")
            for item in live.select(["record_id", "chunk_id", "text_hash", "embedding_text"]).to_pylist():
                if item["embedding_text"]:
                    entry = {"chunk_id": item["chunk_id"], "text_hash": item["text_hash"], "text": item["embedding_text"]}
                    found[item["record_id"]].append(entry)
        return [found[row["record_id"]] if row["start"] == "embed" else items for row, items in zip(rows, texts)]
