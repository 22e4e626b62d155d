"""Tables of a record that waits for OCR → a staged file, and back: what the parse stage hands to the observe stage.

The file lies under the lake's staging folder until the run ends, so that a batch which Ray repeats finds it again. The invariant: the
record's tables are written by exactly one of the two stages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import orjson
import pyarrow as pa

DEFERRED = ("documents", "pages", "blocks", "assets", "observations", "events")


@dataclass(frozen=True, slots=True)
class Waiting:
    """`tables` are those of DEFERRED that have rows; `places`: asset_id → where its bytes are kept; `held`: where those of the record
    are, empty for a file of a source; `ms`: milliseconds that parsing took."""

    tables: dict[str, pa.Table]
    places: dict[str, str] = field(default_factory=dict)
    held: str = ""
    ms: float = 0.0


def write_waiting(folder: Path, waiting: Waiting) -> str:
    """The path of the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{uuid4().hex}.arrows"
    with pa.OSFile(str(path), "wb") as sink:
        about = {"places": waiting.places, "held": waiting.held, "ms": waiting.ms}
        sink.write(_head(orjson.dumps(about)))
        for name, table in waiting.tables.items():
            with pa.ipc.new_stream(sink, table.schema.with_metadata({"table": name})) as stream:
                stream.write_table(table)
    return str(path)


def read_waiting(path: str) -> Waiting:
    with pa.memory_map(path) as source:
        size = int.from_bytes(source.read(8), "little")
        about = orjson.loads(source.read(size))
        tables: dict[str, pa.Table] = {}
        while source.tell() < source.size():
            with pa.ipc.open_stream(source) as stream:
                table = stream.read_all()
            name = table.schema.metadata[b"table"].decode()
            tables[name] = table.replace_schema_metadata(None)
    return Waiting(tables, about["places"], about["held"], about["ms"])


def _head(text: bytes) -> bytes:
    return len(text).to_bytes(8, "little") + text
