"""A folder → a lake: its layout, its one writer, its ledger and its generations (contracts 10, 12, 13).

    lake.json   format and id of the lake   tables/    Delta tables, one folder each       objects/   content-addressed bytes
    ACTIVE      the active generation       stores/    vector and graph stores             staging/   work in flight
    writer.lock kernel lock of the writer   DIRTY      the run that has not finished

The invariant: readers see only what the active generation pins, and the switch of ACTIVE is one atomic rename after its row is there.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import (
    check_log,
    commit_files,
    list_data_files,
    migrate_table,
    missing_columns,
    read_delta,
    table_exists,
    table_version,
    transaction_version,
    write_data_file,
)
from raydex.cluster.faults import fault_point
from raydex.cluster.files import local_folder, write_file
from raydex.cluster.writer import Writer, decode, this_process
from raydex.ir.errors import ConfigError, LockError, StoreError
from raydex.ir.ids import digest_many, make_id
from raydex.ir.rows import empty_table, to_table
from raydex.ir.tables import TABLES

FORMAT = 1
FOLDERS = ("tables", "objects", "stores", "staging")
NOT_PINNED = ("generations", "runs")
KEPT = 3
PROGRESS_SECONDS = 60
REPOINT = "Run `raydex index` again: it points to the newest complete generation"


@dataclass(frozen=True, slots=True)
class Generation:
    """A complete state of the lake; fields as the columns of table `generations`, JSON columns as plain values.

    `sources`: source id → {name, repository, commit, dirty}; `cursors`: store → {generation, …}.
    """

    number: int
    table_versions: dict[str, int]
    run_id: str = ""
    epoch: int = 0
    sources: dict[str, Any] = field(default_factory=dict)
    source_manifest: str = ""
    projection_hash: str = ""
    cursors: dict[str, Any] = field(default_factory=dict)
    fingerprints: dict[str, str] = field(default_factory=dict)
    complete: bool = True
    written_at: datetime | None = None

    @property
    def generation_id(self) -> str:
        return make_id("gen", str(self.number), self.run_id)


class Lake:
    """`Lake(root)` makes a lake or opens one for writing; `Lake.open(root)` opens one for reading and writes nothing.

    Raises ConfigError for a root that is not local, a folder that is no lake, or a lake of a newer format (S5).
    """

    def __init__(self, root: str | Path) -> None:
        self.root = local_folder(root)
        if not (self.root / "lake.json").exists():
            _make(self.root)
        _check_format(self.root)
        for name in FOLDERS:
            (self.root / name).mkdir(exist_ok=True)

    @classmethod
    def open(cls, root: str | Path) -> Lake:
        lake = cls.__new__(cls)
        lake.root = local_folder(root)
        if not (lake.root / "lake.json").is_file():
            raise ConfigError("there is no lake", place=str(lake.root), remedy="Name one by --lake, or make one with `raydex index`")
        _check_format(lake.root)
        return lake

    def __repr__(self) -> str:
        return f"Lake({str(self.root)!r})"

    @property
    def tables(self) -> Path:
        return self.root / "tables"

    @property
    def objects(self) -> Path:
        return self.root / "objects"

    @property
    def stores(self) -> Path:
        return self.root / "stores"

    @property
    def staging(self) -> Path:
        return self.root / "staging"

    @property
    def lake_id(self) -> str:
        """What tells this lake from others in a store or database that they share; empty until the first writer of a lake that an
        older release made."""
        return str(_about(self.root).get("lake_id", ""))

    def place(self, uri: str) -> str:
        """A URI as it is, a path as seen from the lake's folder: a lake may be moved with what lies in it."""
        return uri if "://" in uri else str(self.root / uri)

    def mark_dirty(self, run_id: str) -> None:
        """Notes that a run has begun to write; the note outlives the run when it is killed, and a power cut."""
        write_file(self.root / "DIRTY", run_id.encode())

    def dirty(self) -> str | None:
        """The run that began to write and did not finish, if any."""
        try:
            return (self.root / "DIRTY").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def writer(self) -> Writer | None:
        """Who holds the lake for writing, or held it when its process was killed; None where the last one let it go."""
        try:
            return decode((self.root / "writer.lock").read_bytes())
        except FileNotFoundError:
            return None

    def write_progress(self, stages: dict[str, Any]) -> None:
        """What the run at work has done and has before it, by stage; gone with the staging folder."""
        said = {"at": datetime.now(UTC).isoformat(), "stages": stages}
        write_file(self.staging / "progress.json", json.dumps(said).encode(), durable=False)

    def progress(self) -> dict[str, Any]:
        """What `write_progress` said last, by stage; empty where it has said nothing for a minute. A run that was killed a moment ago has
        left it behind: `writer` tells whether there is one."""
        try:
            said = json.loads((self.staging / "progress.json").read_bytes())
        except FileNotFoundError:
            return {}
        age = datetime.now(UTC) - datetime.fromisoformat(said["at"])
        return said["stages"] if age.total_seconds() < PROGRESS_SECONDS else {}

    def clear_dirty(self) -> None:
        """The run has finished: nothing of it is left to clean up."""
        (self.root / "DIRTY").unlink(missing_ok=True)

    @contextmanager
    def lock(self, run_id: str) -> Iterator[None]:
        """Holds the lake for writing. Raises LockError at once, naming the holder, when another run has it (contracts 12).

        The kernel frees the lock when the process ends, however it ends; a forked child does not keep it.
        """
        handle = _take_lock(self.root / "writer.lock")
        _held.add(handle)
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, this_process(run_id).encode(), 0)
            _name(self.root)
            yield
        finally:
            os.ftruncate(handle, 0)
            _held.discard(handle)
            os.close(handle)


_held: set[int] = set()


def held_locks() -> list[int]:
    """Descriptors of the locks that this process holds: for a child that writes on its behalf."""
    return sorted(_held)


def _drop_locks() -> None:
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_drop_locks)  # else a child that outlives a killed writer would go on holding the lake


def check_tables(lake: Lake) -> dict[str, list[str]]:
    """What a run does before its first write: the log of every table is whole, no table is behind the version that the active
    generation pins, and tables of an older release get their new columns. Returns table → columns added.

    Raises StoreError naming the file or table and the repair (S2, S5); then nothing was written.
    """
    generation = active_generation(lake)
    for name in TABLES:
        check_log(lake.tables, name)
        pinned = None if generation is None else generation.table_versions.get(name)
        version = table_version(lake.tables, name)
        if pinned is not None and (version is None or version < pinned):
            raise StoreError(
                f"table {name} ends at version {version}, but the active generation was made of version {pinned}: entries are gone",
                place=str(lake.tables / name / "_delta_log"),
                remedy="Bring the files back from a copy, or build the lake again",
            )
    older = [name for name in TABLES if missing_columns(lake.tables, name)]  # all are looked at before one is changed
    return {name: migrate_table(lake.tables, name) for name in older}


def pin_versions(lake: Lake) -> dict[str, int]:
    """Table → newest version, of every table that exists, but for `NOT_PINNED`."""
    versions = {name: table_version(lake.tables, name) for name in TABLES if name not in NOT_PINNED}
    return {name: version for name, version in versions.items() if version is not None}


def active_generation(lake: Lake, generations: list[Generation] | None = None) -> Generation | None:
    """What ACTIVE points to among `generations` (default: the lake's); None in a lake without a complete generation.

    Raises StoreError when the pointer leads nowhere.
    """
    path = lake.root / "ACTIVE"
    try:
        pointer = json.loads(path.read_bytes())
        number = int(pointer["number"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError("the pointer to the active generation is damaged", place=str(path), remedy=REPOINT) from error
    known = load_generations(lake) if generations is None else generations
    found = [generation for generation in known if generation.number == number]
    if not found:
        raise StoreError(f"generation {number} is active but table generations does not hold it", place=str(path), remedy=REPOINT)
    return found[-1]


def restore_active(lake: Lake) -> int | None:
    """Where ACTIVE is missing, damaged or leads nowhere, points it to the newest complete generation, whose row was written only after its
    stores and checks; returns that number. None where the pointer is right, or there is no generation. The caller holds the lock."""
    generations = load_generations(lake)
    complete = [generation.number for generation in generations if generation.complete]
    try:
        if active_generation(lake, generations) is not None or not complete:
            return None
    except StoreError:
        if not complete:
            (lake.root / "ACTIVE").unlink(missing_ok=True)
            return None
    activate_generation(lake, complete[-1])
    return complete[-1]


def load_generations(lake: Lake) -> list[Generation]:
    """All generations, by number."""
    rows = read_delta(lake.tables, "generations").to_pylist()
    return sorted((_from_row(row) for row in rows), key=lambda generation: generation.number)


def next_number(lake: Lake) -> int:
    """The number of the generation that comes next; numbers are never used twice."""
    return 1 + max((generation.number for generation in load_generations(lake)), default=0)


def complete_generation(lake: Lake, generation: Generation) -> None:
    """Writes the generation's row, then switches ACTIVE to it. Raises StoreError when its number is not the next one."""
    expected = next_number(lake)
    if generation.number != expected:
        raise StoreError(f"generation {generation.number} cannot follow: number {expected} is next", place=str(lake.root))
    fault_point("generation.complete:before", str(generation.number))
    file = write_data_file(lake.tables, "generations", to_table("generations", _to_columns(generation)))
    commit_files(lake.tables, "generations", [file], metadata={"raydex.generation": generation.number})
    fault_point("generation.complete:row", str(generation.number))
    activate_generation(lake, generation.number)
    fault_point("generation.complete:after", str(generation.number))


def activate_generation(lake: Lake, number: int) -> None:
    """Switches readers to a generation that is there: the end of a load, or a rollback. Raises StoreError for an unknown number."""
    if all(generation.number != number for generation in load_generations(lake)):
        raise StoreError(f"there is no generation {number}", place=str(lake.root))
    write_file(lake.root / "ACTIVE", json.dumps({"number": number}).encode() + b"\n")


def kept_generations(lake: Lake, keep: int = KEPT) -> list[Generation]:
    """The newest `keep` complete generations and the active one, by number: their versions outlive a vacuum."""
    generations = load_generations(lake)
    active = active_generation(lake)
    newest = [generation for generation in generations if generation.complete][-keep:] if keep > 0 else []
    kept = {generation.number: generation for generation in newest}
    if active is not None:
        kept[active.number] = active
    return [kept[number] for number in sorted(kept)]


def read_pinned(
    lake: Lake, generation: Generation | None, name: str, *, columns: list[str] | None = None, where: pc.Expression | None = None
) -> pa.Table:
    """Rows of a table as a generation pins it; a table that it does not pin, or no generation, reads as empty."""
    version = None if generation is None else generation.table_versions.get(name)
    if version is None:
        table = empty_table(name)
        return table if columns is None else table.select(columns)
    return read_delta(lake.tables, name, version=version, columns=columns, where=where)


def load_ledger(lake: Lake, columns: list[str] | None = None) -> pa.Table:
    """The newest row of every record (by epoch), sorted by record_id: a run that was killed leaves older rows beside it."""
    wanted = None if columns is None else list(dict.fromkeys([*columns, "record_id", "epoch"]))
    table = read_delta(lake.tables, "records", columns=wanted)
    order = pc.sort_indices(table, sort_keys=[("record_id", "ascending"), ("epoch", "ascending")])
    ids = pc.take(table.column("record_id"), order)
    last = np.ones(len(ids), dtype=bool)
    if len(ids) > 1:
        last[:-1] = np.asarray(pc.not_equal(ids[:-1], ids[1:]))
    newest = table.take(order.filter(pa.array(last)))
    return newest if columns is None else newest.select(columns)


def source_manifest(ledger: pa.Table) -> str:
    """Hash of sorted (record_id, content_hash) (contracts 15); of the rows a few thousand at a time are Python objects."""
    pairs = ledger.select(["record_id", "content_hash"]).sort_by([("record_id", "ascending"), ("content_hash", "ascending")])
    batches = pairs.to_batches(max_chunksize=4_096)
    return digest_many(part or "" for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns)) for part in row)


def next_epoch(lake: Lake) -> int:
    """One more than every epoch that any table ever saw: in rows that are there (by the statistics of the data files) and in the
    transactions of the commits, which outlive the rows. An epoch number is therefore never used twice, even when its run was killed
    between its data and its ledger row (contracts 10)."""
    return 1 + max((_newest_epoch(lake, name) for name in TABLES), default=0)


def acknowledged_epoch(lake: Lake) -> int:
    """The newest epoch that the ledger knows; 0 for none. Rows of a higher epoch belong to a run that did not finish it."""
    return _newest_epoch(lake, "records")


def _newest_epoch(lake: Lake, name: str) -> int:
    if not table_exists(lake.tables, name):
        return 0
    newest = transaction_version(lake.tables, name) or 0
    for file in list_data_files(lake.tables, name):
        bounds = file.bounds("epoch")
        if bounds is not None:
            newest = max(newest, int(bounds[1]))
        else:
            newest = max(newest, _read_epoch(lake, name, file.path))
    return newest


def _read_epoch(lake: Lake, name: str, path: str) -> int:
    from raydex.cluster.delta import read_data_file

    return pc.max(read_data_file(lake.tables, name, path, columns=["epoch"]).column("epoch")).as_py() or 0


def _make(root: Path) -> None:
    if root.exists() and not root.is_dir():
        raise ConfigError("a lake is a folder, and this is a file", place=str(root), remedy="Name another folder by --lake")
    if root.is_dir() and any(root.iterdir()):
        raise ConfigError(
            "the folder is not empty and holds no lake.json, so it is no lake",
            place=str(root),
            remedy="Name a new or empty folder by --lake",
        )
    about = {"format": FORMAT, "made_at": datetime.now(UTC).isoformat(timespec="seconds"), "lake_id": uuid.uuid4().hex}
    try:
        write_file(root / "lake.json", json.dumps(about).encode() + b"\n", replace=False)
    except FileExistsError:
        return  # another process made the same lake meanwhile
    except OSError as error:
        raise StoreError(f"the lake cannot be made: {error.strerror}", place=str(root)) from error


def _name(root: Path) -> None:
    """Gives the lake of an older release its id; the caller holds the lock."""
    about = _about(root)
    if not about.get("lake_id"):
        write_file(root / "lake.json", json.dumps({**about, "lake_id": uuid.uuid4().hex}).encode() + b"\n")


def _about(root: Path) -> dict[str, Any]:
    path = root / "lake.json"
    try:
        about = json.loads(path.read_bytes())
    except ValueError as error:
        raise _damaged(path) from error
    except OSError as error:
        raise ConfigError(f"lake.json cannot be read: {error.strerror}", place=str(path)) from error
    if not isinstance(about, dict) or "format" not in about:
        raise _damaged(path)
    return about


def _damaged(path: Path) -> ConfigError:
    return ConfigError("lake.json is damaged", place=str(path), remedy='Write {"format": 1} into it, or name another lake')


def _check_format(root: Path) -> None:
    path = root / "lake.json"
    found = _about(root)["format"]
    if not isinstance(found, int) or found > FORMAT:
        raise ConfigError(
            f"the lake has format {found}, and this release reads up to {FORMAT}", place=str(path), remedy="Use a newer release of raydex"
        )


def _take_lock(path: Path) -> int:
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    except OSError as error:
        raise StoreError(f"the lake cannot be locked for writing: {error.strerror}", place=str(path)) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = decode(os.pread(handle, 4096, 0))
        os.close(handle)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise StoreError(f"the lake cannot be locked: {error.strerror}", place=str(path)) from error
        raise LockError(
            f"another run writes to the lake: {holder or 'it has just begun and has not said its name yet'}",
            place=str(path.parent),
            remedy="Wait until it has ended, or end it; the lock is freed by itself",
        ) from error
    return handle


def _to_columns(generation: Generation) -> dict[str, list[Any]]:
    def dump(value: Mapping[str, Any]) -> str:
        return json.dumps(value, sort_keys=True, ensure_ascii=False)

    row = {
        "generation_id": generation.generation_id,
        "number": generation.number,
        "table_versions": sorted(generation.table_versions.items()),
        "sources": dump(generation.sources),
        "source_manifest": generation.source_manifest,
        "projection_hash": generation.projection_hash,
        "cursors": dump(generation.cursors),
        "fingerprints": sorted(generation.fingerprints.items()),
        "complete": generation.complete,
        "run_id": generation.run_id,
        "epoch": generation.epoch,
        "written_at": generation.written_at or datetime.now(UTC),
    }
    return {key: [value] for key, value in row.items()}


def _from_row(row: Mapping[str, Any]) -> Generation:
    return Generation(
        number=row["number"],
        table_versions=dict(row["table_versions"]),
        run_id=row["run_id"] or "",
        epoch=row["epoch"] or 0,
        sources=json.loads(row["sources"]),
        source_manifest=row["source_manifest"] or "",
        projection_hash=row["projection_hash"] or "",
        cursors=json.loads(row["cursors"]),
        fingerprints=dict(row["fingerprints"]),
        complete=bool(row["complete"]),
        written_at=row["written_at"],
    )
