"""`raydex parse FILE` and `raydex chunk FILE`: the kernels on one file, under the same limits and in the same child process as a run.

What comes out has the field names of the tables; locators and metadata are objects.
"""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from raydex.configs.settings import Settings
from raydex.ir.errors import ConfigError
from raydex.ir.ids import content_hash, record_id
from raydex.ir.printed import plain_rows
from raydex.ir.rows import Stamp, chunk_tables
from raydex.jobs.listing import special_name
from raydex.jobs.sources import open_source, read_uri
from raydex.kernels.request import ParseRequest

LISTS = ("pages", "blocks", "assets", "observations", "symbols", "code_nodes", "code_edges", "events", "rejects")
CHUNK_LISTS = {"chunks": "chunks", "nodes": "chunk_nodes", "edges": "chunk_edges"}


def parse_one(file: Path, settings: Settings) -> dict[str, Any]:
    """The object that `parse --json` prints. Raises ConfigError when there is no such file."""
    tables, stamp = _parse(file, settings)
    out: dict[str, Any] = {"record_id": stamp.record_id, "content_hash": stamp.content_hash, "path": file.name}
    out["document"] = next(iter(plain_rows("documents", tables.get("documents"))), None)
    for name in LISTS:
        out[name] = plain_rows(name, tables.get(name))
    out["issue"] = next(iter(plain_rows("issues", tables.get("issues"))), None)
    out["children"] = []
    return out


def chunk_one(file: Path, settings: Settings, strategy: str | None, max_tokens: int | None) -> dict[str, Any]:
    """The object that `chunk --json` prints: chunks, nodes, edges, rejects."""
    from raydex.jobs.chunk_stage import to_block, to_symbol
    from raydex.kernels.chunk import ChunkOptions, ChunkSource, chunk
    from raydex.kernels.tokens import load_tokenizer

    tables, stamp = _parse(file, settings)
    rejects = plain_rows("rejects", tables.get("rejects"))
    if "documents" not in tables:
        return {"chunks": [], "nodes": [], "edges": [], "rejects": rejects}
    document = tables["documents"].to_pylist()[0]
    source = ChunkSource(
        record_id=stamp.record_id,
        content_hash=stamp.content_hash,
        path=file.name,
        title=document["title"],
        media_type=document["media_type"],
        language=document["language"],
        cas_uri="",
        blocks=[to_block(row) for row in tables["blocks"].to_pylist()] if "blocks" in tables else [],
        symbols=[to_symbol(row) for row in tables["symbols"].to_pylist()] if "symbols" in tables else [],
    )
    options = ChunkOptions(
        strategy=strategy or settings.chunk.strategy,
        max_tokens=max_tokens or settings.chunk.max_tokens,
        overlap=settings.chunk.overlap,
    )
    made = chunk_tables(chunk(source, options, load_tokenizer(settings.embed.model)), stamp)
    return {**{key: plain_rows(name, made.get(name)) for key, name in CHUNK_LISTS.items()}, "rejects": rejects}


def _parse(file: Path, settings: Settings) -> tuple[dict[str, pa.Table], Stamp]:
    from raydex.jobs.isolation import ParseChild
    from raydex.kernels.detect import detect_media_type

    if file.is_dir():
        raise ConfigError("this is a folder", place=str(file), remedy="Name one file; `raydex index` takes folders")
    if not file.exists():
        raise ConfigError("there is no such file", place=str(file), remedy="Check the path")
    mode = file.stat().st_mode
    if not stat.S_ISREG(mode):
        raise ConfigError(special_name(mode), place=str(file), remedy="Name a regular file")
    source = open_source(str(file), workspace=settings.workspace)
    try:
        data = read_uri(file.resolve().as_uri())
    except OSError as error:
        raise ConfigError(f"the file cannot be read: {error.strerror or error}", place=str(file), remedy="Check its permissions") from error
    content = content_hash(data)
    record = record_id(source.workspace, source.name, file.name)
    request = ParseRequest(
        record_id=record,
        content_hash=content,
        path=file.name,
        media_type=detect_media_type(data[:65536], file.name),
        data=data,
        workspace=source.workspace,
        repository=source.repository or source.name,
        limits=settings.limits.to_limits(),
    )
    stamp = Stamp(record, content, "", "", 0, datetime.now(UTC))
    with ParseChild(request.limits) as child:
        return child.parse(request, stamp).tables, stamp
