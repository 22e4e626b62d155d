"""A small lake of known rows, made by the writers alone: records with a document, chunks and vectors, epoch by epoch. No engine starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from raydex.cluster.delta import commit_files, write_data_file
from raydex.cluster.lake import Lake
from raydex.configs.settings import Settings, load_settings
from raydex.ir.ids import content_hash, record_id, text_hash
from raydex.ir.rows import to_table
from raydex.jobs.context import RunContext, stage_fingerprints
from raydex.jobs.sources import Source, open_source

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
DIMENSION = 8
NO_ENGINES: dict[str, Any] = {"run": {"project": False, "load_graph": False}}


def settings_with(**sections: Mapping[str, Any]) -> Settings:
    """Settings without projection and graph, and with the sections given."""
    return load_settings(None, {**NO_ENGINES, **sections})


def context_of(lake: Lake, settings: Settings, run: str = "run_1") -> RunContext:
    return RunContext(str(lake.root), run, settings.workspace, settings, stage_fingerprints(settings), WHEN, str(lake.objects))


def unit(text: str, dimension: int = DIMENSION) -> np.ndarray:
    """A vector that is the text's own."""
    vector = np.random.default_rng(list(text.encode())).standard_normal(dimension).astype(np.float32)
    return vector / np.linalg.norm(vector)


def write_source(folder: Path, files: Mapping[str, str]) -> Source:
    """A folder of text files, opened as a source."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return open_source(str(folder))


def add_epoch(
    lake: Lake,
    epoch: int,
    source: Source,
    paths: Sequence[str],
    prints: Mapping[str, str],
    *,
    dimension: int = DIMENSION,
    chunks: int = 2,
    vectors: bool = True,
    only: Sequence[str] = ("documents", "chunks", "embeddings", "records"),
    **changes: Any,
) -> list[str]:
    """Commits one epoch of records that read as the listing gives them; returns their ids. `changes` are columns of `records`."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in only}
    ids = []
    for path in paths:
        file = Path(source.root) / path
        data = file.read_bytes()
        common = {"content_hash": content_hash(data), "run_id": "run_0", "epoch": epoch, "written_at": WHEN}
        identity = record_id(source.workspace, source.name, path)
        ids.append(identity)
        common["record_id"] = identity
        record = {
            "source_id": source.source_id,
            "source_name": source.name,
            "workspace": source.workspace,
            "repository": source.repository or source.name,
            "path": path,
            "uri": file.as_uri(),
            "parent_id": "",
            "media_type": "text/plain",
            "size": len(data),
            "change_key": "",
            "cas_uri": "",
            "state": "indexed",
            "missing": [],
            "fingerprints": sorted((name, prints[name]) for name in ("parse", "chunk", "embed")),
            "attempts": 0,
            "reject_class": "",
            "error": "",
            "fingerprint": prints["parse"],
        }
        texts = [f"{path} part {at}" for at in range(chunks)]
        keys = [f"chk_{content_hash(f'{identity}{text}'.encode())[:32]}" for text in texts]
        made: dict[str, list[dict[str, Any]]] = {
            "records": [{**record, **changes}],
            "documents": [{"title": path, "path": path, "block_count": 0, "encoding": "utf-8", "fingerprint": prints["parse"]}],
            "chunks": [
                {
                    "chunk_id": key,
                    "ordinal": at,
                    "title": path,
                    "content": text,
                    "text_hash": text_hash(text),
                    "kind": "text",
                    "section_path": [],
                    "locators": [],
                    "fingerprint": prints["chunk"],
                }
                for at, (key, text) in enumerate(zip(keys, texts))
            ],
            "embeddings": [
                {"chunk_id": key, "vector": unit(text, dimension), "truncated": False, "fingerprint": prints["embed"]}
                for key, text in zip(keys, texts)
                if vectors
            ],
        }
        for name in rows:
            rows[name] += [{**common, **row} for row in made[name]]
    for name, items in rows.items():
        if items:
            columns = {key: [item[key] for item in items] for key in items[0]}
            commit_files(lake.tables, name, [write_data_file(lake.tables, name, to_table(name, columns), fsync=False)], txn_version=epoch)
    return ids
