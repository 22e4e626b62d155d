"""The chunk stage: blocks and symbols of a record → chunks, chunk nodes and chunk edges; texts to embed travel on.

A record whose parse still stands (only the chunker changed) comes without blocks: they are read from the data files that the plan names.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import read_data_file
from raydex.cluster.faults import fault_point
from raydex.ir.chunk import ChunkResult
from raydex.ir.document import Block
from raydex.ir.errors import InputError
from raydex.ir.ids import text_hash
from raydex.ir.rows import chunk_tables
from raydex.jobs.context import RunContext
from raydex.jobs.flow import BLOCKS, SEEN, SYMBOLS, TEXTS, StageClock, nest, receipt_columns, replaced, with_columns
from raydex.jobs.live import live_rows
from raydex.jobs.progress import report
from raydex.jobs.rebuild import to_block, to_symbol
from raydex.jobs.rejects import reject_rows
from raydex.jobs.sink import Sink
from raydex.kernels.chunk import ChunkOptions, ChunkSource, chunk
from raydex.kernels.picture import FORMATS
from raydex.kernels.tokens import load_tokenizer

READS = (
    "record_id",
    "epoch",
    "start",
    "path",
    "content_hash",
    "media_type",
    "cas_uri",
    "title",
    "language",
    "state",
    "blocks",
    "symbols",
    "seen",
    "stored",
)
LATER = ("caption", "chunk")  # starts of records whose blocks are read from the tables
WRITES = ("texts", "state", "failed", "reject_class", "error")


class ChunkWorker:
    """Actor of the chunk stage."""

    def __init__(self, context: RunContext, board: Any = None) -> None:
        self.context = context
        self.board = board
        self.tokenizer = load_tokenizer(context.settings.embed.model)
        settings = context.settings.chunk
        self.options = ChunkOptions(strategy=settings.strategy, max_tokens=settings.max_tokens, overlap=settings.overlap)

    def __call__(self, batch: pa.Table) -> pa.Table:
        batch = self._load_stored(batch)
        rows = batch.drop_columns(["blocks", "symbols", "files", "metrics"]).to_pylist()
        blocks, symbols = batch.column("blocks").to_pylist(), batch.column("symbols").to_pylist()
        work = [at for at, row in enumerate(rows) if row["state"] != "rejected" and row["start"] in ("parse", *LATER)]
        clock = StageClock("chunk", len(work))
        sink = Sink(self.context.tables)
        texts: list[list[dict[str, str]]] = [[] for _ in rows]
        rejects = 0
        for at in work:
            row = rows[at]
            fault_point("chunk.record", row["path"])
            stamp = self.context.stamp("chunk", row["record_id"], row["content_hash"], row["epoch"])
            try:
                result = self._chunk(row, blocks[at], symbols[at])
            except InputError as error:
                rejects += 1
                row.update(state="rejected", failed="chunk", reject_class=error.reject_class, error=str(error)[:500])
                sink.add(row["epoch"], reject_rows(row, "chunk", stamp))
                continue
            sink.add(row["epoch"], chunk_tables(result, stamp))
            texts[at] = [
                {"chunk_id": c.chunk_id, "text_hash": text_hash(c.embedding_text), "text": c.embedding_text}
                for c in result.chunks
                if c.embedding_text
            ]
        files = sink.flush()
        metrics = [clock.stop(sum(map(len, texts)), rejects)]
        out = batch.drop_columns(["blocks", "symbols", "seen"])
        for name in ("state", "failed", "reject_class", "error"):
            out = with_columns(out, {name: pa.array([row[name] for row in rows], pa.string())})
        out = with_columns(out, {"texts": pa.array(texts, TEXTS)})
        report(self.board, "chunk", len(work), rejects)
        return receipt_columns(out, files, metrics)

    def _chunk(self, row: dict[str, Any], blocks: list[dict[str, Any]], symbols: list[dict[str, Any]]) -> ChunkResult:
        source = ChunkSource(
            record_id=row["record_id"],
            content_hash=row["content_hash"],
            path=row["path"],
            title=row["title"],
            media_type=row["media_type"],
            language=row["language"],
            cas_uri=row["cas_uri"],
            blocks=with_seen([to_block(item) for item in blocks], row["seen"], row["media_type"]),
            symbols=[to_symbol(item) for item in symbols],
        )
        return chunk(source, self.options, self.tokenizer)

    def _load_stored(self, batch: pa.Table) -> pa.Table:
        """Fills in what records hold that start at this stage (or at captions, just before it), from the files that hold it."""
        rows = batch.select(["record_id", "start", "stored", "content_hash", "title", "language"]).to_pylist()
        wanted = [at for at, row in enumerate(rows) if row["start"] in LATER]
        if not wanted:
            return batch
        ids = [row["record_id"] for row in rows]
        files: dict[str, set[str]] = defaultdict(set)
        for at in wanted:
            for item in rows[at]["stored"] or ():
                files[item["table"]].add(item["path"])
        where = pc.field("record_id").isin(pa.array([ids[at] for at in wanted], pa.string()))
        loaded: dict[str, pa.Table] = {}
        for name in ("blocks", "symbols", "documents", "observations"):
            parts = [read_data_file(self.context.tables, name, path, where=where) for path in sorted(files[name])]
            if parts:
                table = live_rows(
                    pa.concat_tables(parts), {ids[at]: rows[at]["content_hash"] for at in wanted}, self.context.fingerprints["parse"]
                )
                keys = [("record_id", "ascending")] + ([("ordinal", "ascending")] if name == "blocks" else [])
                loaded[name] = table if name == "symbols" else table.sort_by(keys)
        heads = {row["record_id"]: row for row in loaded["documents"].to_pylist()} if "documents" in loaded else {}
        out = batch
        for name, kind in (("blocks", BLOCKS), ("symbols", SYMBOLS)):
            fresh = nest(_grouped(loaded.get(name)), kind, ids)
            out = with_columns(out, {name: replaced(batch.column(name), wanted, fresh.take(pa.array(wanted, pa.int64())))})
        if "observations" in loaded:
            held: dict[str, list[dict[str, str]]] = defaultdict(list)
            for item in loaded["observations"].sort_by("observation_id").to_pylist():
                if item["text"]:
                    held[item["record_id"]].append({name: item[name] for name in ("asset_id", "kind", "text")})
            chunked = [at for at in wanted if rows[at]["start"] == "chunk"]  # captions come with what was seen
            fresh = pa.array([held.get(ids[at], []) for at in chunked], SEEN)
            out = with_columns(out, {"seen": replaced(batch.column("seen"), chunked, fresh)})
        for name in ("title", "language"):
            values = [(heads.get(row["record_id"], {}).get(name) or "") if row["start"] in LATER else row[name] for row in rows]
            out = with_columns(out, {name: pa.array(values, pa.string())})
        return out


def with_seen(blocks: list[Block], seen: list[dict[str, str]] | None, media_type: str) -> list[Block]:
    """The blocks; those of images get what was observed in them, by kind (ocr, caption), as metadata for the chunker. The text in a file
    that is an image has become blocks of its own."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for item in seen or ():
        if item["kind"] == "ocr" and media_type in FORMATS:
            continue
        found[item["asset_id"]].setdefault(item["kind"], item["text"])
    for block in blocks if found else ():
        if block.kind == "image" and block.asset_ref in found:
            block.metadata.update(found[block.asset_ref])
    return blocks


def _grouped(table: pa.Table | None) -> pa.Table | None:
    """Rows of one record side by side, their order kept."""
    if table is None or table.num_rows == 0:
        return table
    at = pa.array(range(table.num_rows), pa.int64())
    order = pc.sort_indices(pa.table({"r": table.column("record_id"), "i": at}), sort_keys=[("r", "ascending"), ("i", "ascending")])
    return table.take(order)
