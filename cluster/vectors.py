"""Chunk vectors → a Milvus collection, generation by generation (contracts 14, 31, 32, 36; seed 5 §5).

A row is visible at generation g when gen_from <= g < gen_to. The invariant: a load of generation g leaves what every generation up to its
base shows untouched, and ends in the same visible key set however often it was cut off before. The live version of a chunk has the chunk's
id as its key; an older version that a kept generation still shows has the key `id#gen_from`, until gc.

One process may own an embedded file (a path that ends in `.db`); a server is reached by the same code through its URI (Milvus 2.6 or
later: partial upsert). The index is FLAT by default: exact, and what an embedded file of up to a million rows needs.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from raydex.cluster.store_lock import Busy, StoreLock
from raydex.cluster.vector_calls import RESUME, call, literals
from raydex.cluster.vector_rows import DOC_ID_BYTES, METADATA_BYTES, SECTION_PATH_BYTES, TEXT_BYTES, RowFailure, Rows, checked_rows
from raydex.ir.errors import ConfigError, StoreError
from raydex.ir.ids import digest

__all__ = ["Busy", "Hit", "LoadResult", "VectorStore", "collection_name", "collection_prefix", "holds_collection"]

SCHEMA_VERSION = "1"
METRIC = "COSINE"
OPEN_END = 2**62
BATCH_ROWS = 1_000
BATCH_BYTES = 16_000_000
KEYS_A_FILTER = 2_000
PAGE_ROWS = 16_384
LOCK_WAIT_S = 2.0
VERSION_MARK = "#"
MODEL_PROPERTY = "raydex.model"
REBUILD = "Run the same command again; if this comes back, delete the store: `raydex index` then loads it anew from the tables"


@dataclass(frozen=True, slots=True)
class Hit:
    """`score` is the cosine, 1.0 for the same direction."""

    chunk_id: str
    score: float


@dataclass(slots=True)
class LoadResult:
    """`inserted` rows written, `unchanged` already there as they are, `closed` no longer shown; `failed` cost only themselves."""

    inserted: int = 0
    unchanged: int = 0
    closed: int = 0
    failed: list[RowFailure] = field(default_factory=list)


@dataclass(slots=True)
class Leftovers:
    """What loads above the base wrote: live rows, closed rows, and by chunk the older version that the base shows.

    What the load in progress writes or closes itself is `settled`; the rest is undone at its end.
    """

    live: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    versions: dict[str, str] = field(default_factory=dict)
    doomed: list[str] = field(default_factory=list)

    def settle(self, chunk_id: str) -> str | None:
        """Its older version's key, where there is one."""
        self.live.discard(chunk_id)
        self.closed.discard(chunk_id)
        return self.versions.pop(chunk_id, None)


def collection_prefix(lake_id: str) -> str:
    """How the names of all collections of one lake begin, and of no other's."""
    return f"raydex_{lake_id}_"


def collection_name(lake_id: str, model_fingerprint: str, dimension: int) -> str:
    """One collection a lake and (model, schema) fingerprint (contracts 14): lakes that share a server never touch each other's rows."""
    return f"{collection_prefix(lake_id)}{digest(model_fingerprint, SCHEMA_VERSION)[:16]}_{dimension}"


def holds_collection(path: str, collection: str) -> bool:
    """Whether an embedded store holds the collection, by what lies on the disk: its engine would first read every row into memory."""
    place = Path(path)
    return place.is_file() or (place / "collections" / collection).is_dir()


class VectorStore:
    """A collection of `dimension`-d unit vectors. `uri` is a file path that ends in `.db`, or the URI of a server.

    Raises Busy where another process holds the file for longer than `wait_s` or the folder cannot be written, StoreError where the
    collection is not there or has another dimension, metric or (where one is given) model, or the store fails.
    """

    def __init__(
        self,
        uri: str,
        collection: str,
        dimension: int,
        *,
        model: str | None = None,
        token: str = "",
        wait_s: float = LOCK_WAIT_S,
        index: str = "FLAT",
    ) -> None:
        self.uri = os.fspath(uri)
        self.collection = collection
        self.dimension = dimension
        self.model = model
        self._ready = False
        self.embedded = "://" not in self.uri
        if self.embedded and not self.uri.endswith(".db"):
            raise ConfigError(f"the path of a vector store ends in .db, not {self.uri!r}", remedy="Rename it or give a server's URI")
        self._remedy = REBUILD if self.embedded else RESUME
        self._token = token
        self._index = index
        self._lock = StoreLock(f"{self.uri}.lock", wait_s) if self.embedded else None
        self._client: Any = None

    def open(self) -> Self:
        """Takes the lock, connects, and checks the collection; makes nothing: the first load does."""
        if self._lock is not None:
            self._lock.take()
        try:
            if not self.embedded or Path(self.uri).exists():
                self._connect()
                if self._call("has_collection"):
                    self._check_collection()
                    self._ready = True
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Ends the embedded engine too, so that another process can open the file at once."""
        client, self._client, self._ready = self._client, None, False
        try:
            if client is not None:
                client.close()
            if self.embedded:
                from milvus_lite.server_manager import server_manager_instance

                server_manager_instance.release_server(self.uri)
        finally:
            if self._lock is not None:
                self._lock.free()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def has_collection(self) -> bool:
        return self._ready

    def load(self, generation: int, added: Iterable[Rows], removed_ids: Iterable[str], base: int | None = None) -> LoadResult:
        """Shows at `generation` what `base` (last loaded generation, by default the one before) shows, less `removed_ids`, plus `added`.

        `added` are rows in the columns of `vector_rows.ROW_SCHEMA`; one that is there as it is stays untouched, and an id that is also in
        `removed_ids` stays visible. Loading again after a kill takes back what the earlier try wrote and this one does not; so does a load
        on an older base for the generations above it. Ends with a flush.
        """
        base = generation - 1 if base is None else base
        if not 0 <= base < generation < OPEN_END:
            raise ConfigError(f"generation {generation} does not follow its base {base}")
        self._ensure_collection()
        result = LoadResult()
        fresh = self._is_empty()
        leftovers = Leftovers() if fresh else self._leftovers(base)
        if not fresh:
            for keys in _groups(removed_ids, KEYS_A_FILTER):
                self._remove(keys, generation, base, leftovers, result)
        for rows in self._batches(added, result):
            self._add(rows, generation, base, fresh, leftovers, result)
        self._undo(leftovers)
        self._call("flush")
        return result

    def keys(self, generation: int) -> Iterator[str]:
        """Ids of the chunks visible at `generation`, each once."""
        last = ""
        for row in self._listed(_visible(generation), ["id"]):
            key = _chunk_id(row["id"])
            if key != last:
                yield key
            last = key

    def count(self, generation: int) -> int:
        """Rows visible at `generation`. Compare key sets, not counts, to verify a load."""
        found = self._call("query", filter=_visible(generation), output_fields=["count(*)"])
        return int(found[0]["count(*)"])

    def search(
        self,
        vector: Sequence[float],
        k: int,
        generation: int,
        source_types: Sequence[str] | None = None,
        doc_ids: Sequence[str] | None = None,
    ) -> list[Hit]:
        """The k nearest chunks visible at `generation`, best first, equal scores by id. `source_types` are media types."""
        terms = [_visible(generation)]
        for name, values in (("source_type", source_types), ("doc_id", doc_ids)):
            if values is not None:
                terms.append(f"{name} in {literals(values)}")
        if k <= 0 or (source_types is not None and not source_types) or (doc_ids is not None and not doc_ids):
            return []
        limit = k
        while True:
            found = self._call("search", data=[list(map(float, vector))], anns_field="embedding", limit=limit, filter=" and ".join(terms))[
                0
            ]
            best: dict[str, float] = {}
            for row in found:
                key = _chunk_id(row["id"])
                best[key] = max(best.get(key, -2.0), float(row["distance"]))
            if len(best) >= k or len(found) < limit:
                break
            limit += len(found) - len(best)
        return [Hit(key, score) for key, score in sorted(best.items(), key=lambda item: (-item[1], item[0]))][:k]

    def sample(self, generation: int, count: int) -> dict[str, list[float]]:
        """Chunk id → vector of `count` rows that are visible at `generation`, or of all where there are fewer; whichever come first."""
        found = self._call("query", filter=_visible(generation), output_fields=["id", "embedding"], limit=count)
        return {_chunk_id(row["id"]): list(map(float, row["embedding"])) for row in found}

    def drop_collections(self, prefix: str, kept: Collection[str]) -> list[str]:
        """Drops the collections whose name begins with `prefix` and is not in `kept`; returns their names."""
        if self._client is None:
            return []
        found = sorted(call(self._client.list_collections, {}, place=self.uri))
        stale = [name for name in found if name.startswith(prefix) and name not in kept and name != self.collection]
        for name in stale:
            call(self._client.drop_collection, {"collection_name": name}, place=self.uri)
        return stale

    def gc(self, below_generation: int) -> int:
        """Deletes the rows that no generation from `below_generation` on shows; returns their number."""
        keys = [row["id"] for row in self._listed(f"gen_to <= {below_generation:d}", ["id"])]
        self._delete(keys)
        self._call("flush")
        return len(keys)

    def _connect(self) -> None:
        from pymilvus import MilvusClient
        from pymilvus.exceptions import MilvusException

        # the client logs whole requests, and with them document text, on every error: StoreError says what is needed
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
        logging.getLogger("milvus_lite").setLevel(logging.CRITICAL)
        try:
            self._client = MilvusClient(self.uri, token=self._token)
        except (MilvusException, OSError) as error:
            raise StoreError(f"the vector store did not open: {error}", place=self.uri, remedy=self._remedy) from error

    def _ensure_collection(self) -> None:
        if self._lock is not None and not self._lock.held:
            raise StoreError("the vector store is not open", place=self.uri)
        if self._client is None:
            self._connect()
        if not self._ready:
            self._create()
            self._call("load_collection")
            self._ready = True

    def _create(self) -> None:
        from pymilvus import DataType, MilvusClient

        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False, description=self.model or "")
        schema.add_field("id", DataType.VARCHAR, max_length=128, is_primary=True)
        schema.add_field("doc_id", DataType.VARCHAR, max_length=DOC_ID_BYTES)
        for name, length in TEXT_BYTES.items():
            schema.add_field(name, DataType.VARCHAR, max_length=length)
        schema.add_field("section_path", DataType.VARCHAR, max_length=SECTION_PATH_BYTES)
        schema.add_field("metadata_json", DataType.VARCHAR, max_length=METADATA_BYTES)
        schema.add_field("row_hash", DataType.VARCHAR, max_length=64)
        for name in ("page_number", "created_at", "gen_from", "gen_to"):
            schema.add_field(name, DataType.INT64)
        schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=self.dimension)
        index = MilvusClient.prepare_index_params()
        index.add_index("embedding", index_type=self._index, metric_type=METRIC)
        self._call(
            "create_collection",
            schema=schema,
            index_params=index,
            consistency_level="Strong",
            properties={MODEL_PROPERTY: self.model or ""},
        )

    def _check_collection(self) -> None:
        found = self._call("describe_collection")
        fields = {f["name"]: f for f in found["fields"]}
        dimension = fields.get("embedding", {}).get("params", {}).get("dim")
        indexed = self._call("list_indexes", field_name="embedding")
        metric = self._call("describe_index", index_name=indexed[0])["metric_type"] if indexed else METRIC
        model = found.get("properties", {}).get(MODEL_PROPERTY, found.get("description", ""))
        wanted: tuple[tuple[str, Any, Any], ...] = (
            ("dimension", int(dimension or 0), self.dimension),
            ("metric", metric, METRIC),
            ("model", model, model if self.model is None else self.model),
            ("field gen_to", "gen_to" in fields, True),
        )
        for name, there, ours in wanted:
            if there != ours:
                raise StoreError(
                    f"collection {self.collection} has the {name} {there!r}, this run needs {ours!r}",
                    place=self.uri,
                    remedy="Load into the collection of this model's fingerprint, or drop the old one",
                )
        self._call("load_collection")

    def _call(self, name: str, **arguments: Any) -> Any:
        if self._client is None:
            raise StoreError("no vector store is open there", place=self.uri, remedy="Run `raydex index` to load one")
        return call(getattr(self._client, name), {"collection_name": self.collection, **arguments}, place=self.uri, remedy=self._remedy)

    def _is_empty(self) -> bool:
        return not self._call("query", filter="gen_from >= 0", output_fields=["id"], limit=1)

    def _listed(self, filter_text: str, fields: list[str]) -> Iterator[dict[str, Any]]:
        """All rows that pass, by rising id. A server pages by a cursor; the embedded engine would scan every row again for each page."""
        if self.embedded:
            yield from sorted(self._call("query", filter=filter_text, output_fields=fields), key=lambda row: row["id"])
            return
        pages = self._call("query_iterator", batch_size=PAGE_ROWS, filter=filter_text, output_fields=fields)
        try:
            while page := call(pages.next, {}, place=self.uri):
                yield from page
        finally:
            pages.close()

    def _batches(self, added: Iterable[Rows], result: LoadResult) -> Iterator[list[dict[str, Any]]]:
        for part in added:
            total = len(part) if isinstance(part, list) else part.num_rows
            for start in range(0, total, BATCH_ROWS):
                piece = part[start : start + BATCH_ROWS] if isinstance(part, list) else part.slice(start, BATCH_ROWS)
                rows, failures = checked_rows(piece, self.dimension)
                result.failed.extend(failures)
                if rows:
                    yield rows

    def _add(self, rows: list[dict[str, Any]], generation: int, base: int, fresh: bool, left: Leftovers, result: LoadResult) -> None:
        there = {} if fresh else self._rows([row["id"] for row in rows], ["gen_from", "gen_to", "row_hash"])
        written: list[dict[str, Any]] = []
        aside: dict[str, int] = {}
        spare: list[str] = []
        for row in rows:
            key = row["id"]
            old = there.get(key)
            version = left.settle(key)
            row["gen_from"], row["gen_to"] = generation, OPEN_END
            if old is not None:
                shown = old["gen_to"] > base
                if version is not None and old["gen_from"] <= base:
                    spare.append(version)
                if shown and old["row_hash"] == row["row_hash"]:
                    if old["gen_to"] == OPEN_END:
                        result.unchanged += 1
                        continue
                    row["gen_from"] = old["gen_from"]
                elif old["gen_from"] <= base:
                    aside[key] = generation if shown else old["gen_to"]
            written.append(row)
        self._delete(spare)
        self._put_aside(aside)
        if written:
            self._write(written)
            result.inserted += len(written)

    def _put_aside(self, closing: dict[str, int]) -> None:
        """Copies live rows to `id#gen_from`, closed at the generation given, before their keys are written again."""
        copies = [
            {**row, "id": f"{key}{VERSION_MARK}{row['gen_from']}", "gen_to": closing[key]}
            for key, row in self._rows(list(closing), ["*"]).items()
        ]
        self._write(copies)

    def _remove(self, keys: list[str], generation: int, base: int, left: Leftovers, result: LoadResult) -> None:
        closing: list[dict[str, Any]] = []
        deleting: list[str] = []
        for key, row in self._rows(keys, ["gen_from", "gen_to"]).items():
            version = left.settle(key)
            if row["gen_from"] > base:
                deleting.append(key)
                result.closed += version is not None
            elif row["gen_to"] > base:
                result.closed += 1
                if version is not None:
                    deleting.append(version)
                if row["gen_to"] != generation:
                    closing.append({"id": key, "gen_to": generation})
        for key in keys:
            left.settle(key)
        self._update(closing)
        self._delete(deleting)

    def _leftovers(self, base: int) -> Leftovers:
        found = Leftovers()
        for row in self._listed(f"gen_from > {base:d} or (gen_to > {base:d} and gen_to < {OPEN_END:d})", ["id", "gen_from"]):
            key, old = row["id"], row["gen_from"] <= base
            if VERSION_MARK in key:
                if old:
                    found.versions[_chunk_id(key)] = key
                else:
                    found.doomed.append(key)
            elif old:
                found.closed.add(key)
            else:
                found.live.add(key)
        return found

    def _undo(self, left: Leftovers) -> None:
        """Takes back what earlier loads above the base wrote and this one did not: older versions and closed rows are live again."""
        restored = {version: key for key, version in left.versions.items()}
        for versions in _groups(restored, BATCH_ROWS):
            copies = [{**row, "id": restored[version], "gen_to": OPEN_END} for version, row in self._rows(versions, ["*"]).items()]
            self._write(copies)
        self._delete([*restored, *left.doomed, *(key for key in left.live if key not in left.versions)])
        self._update([{"id": key, "gen_to": OPEN_END} for key in left.closed if key not in left.versions])

    def _rows(self, keys: list[str], fields: list[str]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for part in _groups(keys, KEYS_A_FILTER):
            names = ["id", *fields] if fields != ["*"] else fields
            for row in self._call("query", filter=f"id in {literals(part)}", output_fields=names):
                found[row["id"]] = dict(row)
        return found

    def _write(self, rows: list[dict[str, Any]]) -> None:
        """Whole rows by key. The embedded engine's insert replaces by key too, without reading every row first; a server's does not."""
        for part in _by_bytes(rows, self.dimension):
            self._call("insert" if self.embedded else "upsert", data=part)

    def _update(self, rows: list[dict[str, Any]]) -> None:
        for part in _groups(rows, BATCH_ROWS):
            self._call("upsert", data=part, partial_update=True)

    def _delete(self, keys: list[str]) -> None:
        for part in _groups(keys, KEYS_A_FILTER):
            self._call("delete", filter=f"id in {literals(part)}")


def _visible(generation: int) -> str:
    return f"gen_from <= {generation:d} and gen_to > {generation:d}"


def _chunk_id(key: str) -> str:
    return key.partition(VERSION_MARK)[0]


def _groups(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    group: list[Any] = []
    for item in items:
        group.append(item)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def _by_bytes(rows: list[dict[str, Any]], dimension: int) -> Iterator[list[dict[str, Any]]]:
    """Parts of at most BATCH_BYTES (one row at least), counted as four bytes a character: the most that UTF-8 takes."""
    part: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        weight = 4 * (len(row["content"]) + len(row["metadata_json"]) + dimension) + 1_000
        if part and size + weight > BATCH_BYTES:
            yield part
            part, size = [], 0
        part.append(row)
        size += weight
    if part:
        yield part
