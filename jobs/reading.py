"""Read-only access to the active generation of a lake: every command that answers goes through here and writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.lake import Generation, Lake, active_generation, read_pinned
from raydex.cluster.objects import ObjectStore
from raydex.ir.errors import ConfigError, StoreError
from raydex.ir.file_range import split_range
from raydex.ir.ids import content_hash
from raydex.jobs.places import held_objects_uri
from raydex.jobs.sources import read_uri


@dataclass(frozen=True, slots=True)
class Reader:
    """A lake and the generation that it answers from."""

    lake: Lake
    generation: Generation

    def rows(self, name: str, *, columns: list[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
        return read_pinned(self.lake, self.generation, name, columns=columns, where=where)

    def by_ids(self, name: str, column: str, ids: list[str], columns: list[str] | None = None) -> dict[str, dict[str, Any]]:
        """Rows whose `column` is among the ids, by that value."""
        if not ids:
            return {}
        table = self.rows(name, columns=columns, where=pc.field(column).isin(pa.array(ids, pa.string())))
        return {row[column]: row for row in table.to_pylist()}

    def vector_rows(self, columns: list[str]) -> pa.Table:
        """Rows of `embeddings` by the model of this generation: those of another model wait for their record to be indexed again."""
        return self.rows("embeddings", columns=columns, where=pc.field("fingerprint") == self.generation.fingerprints.get("embed", ""))

    def original(self, record: dict[str, Any]) -> bytes | None:
        """The bytes that a row of `records` was made from: from the object store, else from where they were listed; None when neither has
        them, or has other bytes by now."""
        if not record.get("content_hash"):
            return None
        try:
            if record.get("cas_uri"):
                return self.objects().get(record["cas_uri"])
            uri = record.get("uri") or ""
            data = read_uri(uri) if uri and (not record.get("parent_id") or split_range(uri)[1] is not None) else b""
        except (StoreError, OSError):
            return None
        return data if content_hash(data) == record["content_hash"] else None

    def objects(self) -> ObjectStore:
        return ObjectStore(held_objects_uri(self.lake, self.generation.cursors))


def open_reader(root: Path | str) -> Reader:
    """Raises ConfigError when there is no lake, or none of its generations is complete."""
    lake = Lake.open(root)
    generation = active_generation(lake)
    if generation is None:
        raise ConfigError("the lake has no complete generation yet", place=str(lake.root), remedy="Run `raydex index` until it ends")
    return Reader(lake, generation)
