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
from raydex.ir.locator import Locator
from raydex.kernels.decode import decode_as


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

    def source_text(self, record: dict[str, Any]) -> str | None:
        """The decoded original of a record, from the object store; None when the lake keeps references only."""
        if not record.get("cas_uri"):
            return None
        try:
            data = self.objects().get(record["cas_uri"])
        except StoreError:
            return None
        heads = self.by_ids("documents", "record_id", [record["record_id"]], ["record_id", "encoding"])
        encoding = heads.get(record["record_id"], {}).get("encoding") or "utf-8"
        return decode_as(data, encoding)

    def excerpt(self, record: dict[str, Any], locator: str) -> str | None:
        """The source's own text at a locator, where the format has character or line ranges."""
        place = Locator.parse(locator)
        if place.char is None and place.line is None:
            return None
        text = self.source_text(record)
        return None if text is None else place.slice_text(text)

    def objects(self) -> ObjectStore:
        return ObjectStore(str(self.lake.objects))


def open_reader(root: Path | str) -> Reader:
    """Raises ConfigError when there is no lake, or none of its generations is complete."""
    lake = Lake.open(root)
    generation = active_generation(lake)
    if generation is None:
        raise ConfigError("the lake has no complete generation yet", place=str(lake.root), remedy="Run `raydex index` until it ends")
    return Reader(lake, generation)
