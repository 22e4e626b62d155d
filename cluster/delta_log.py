"""The log of a Delta table → what is wrong with it, before a run trusts it (reliability §2 fact 5, S2, S3).

delta-rs reads a zero-length newest entry as an empty commit and an entry cut at the end of a line as a smaller one: rows vanish without
an error. Every commit of ours therefore says in its first line how many actions follow (`ACTIONS`), and `check_log` counts them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import orjson
import pyarrow as pa

from raydex.cluster.delta_read import (
    LOST_FILE,
    DataFile,
    Options,
    active_files,
    first_line,
    open_table,
    peek_table,
    table_exists,
    table_folder,
)
from raydex.ir.errors import StoreError
from raydex.ir.tables import TABLES

if TYPE_CHECKING:
    from deltalake import DeltaTable

ACTIONS = "raydex.actions"
CHECKED_ENTRIES = 20
_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint.*\.parquet")


def check_log(root: str | Path, name: str, *, entries: int = CHECKED_ENTRIES, storage_options: Options | None = None) -> None:
    """Raises StoreError, naming the file and the repair, when one of the newest `entries` entries is empty, torn, doubled or missing,
    or when a data file of the newest version is missing or has another size. A table that does not exist passes."""
    if not table_exists(root, name, storage_options=storage_options):
        return
    log = table_folder(root, name) / "_delta_log"
    versions = sorted(int(match[1]) for path in log.iterdir() if (match := _ENTRY.fullmatch(path.name)))
    checkpoint = max((int(match[1]) for path in log.iterdir() if (match := _CHECKPOINT.fullmatch(path.name))), default=-1)
    _check_gaps(name, log, versions, checkpoint)
    before: list[dict[str, Any]] = []
    for version in versions[-entries:]:
        actions = read_entry(log / f"{version:020}.json", name)
        _check_double(name, log, version, before, actions)
        before = actions
    _check_data_files(root, name, storage_options)


def commit_metadata(root: str | Path, name: str, version: int | None = None) -> dict[str, Any]:
    """What the commit of a version (the newest by default) says of itself. Raises StoreError."""
    table = open_table(root, name)
    if table is None:
        raise StoreError(f"table {name} does not exist", place=str(root))
    at = table.version() if version is None else version
    path = table_folder(root, name) / "_delta_log" / f"{at:020}.json"
    if not path.exists():
        raise StoreError(f"table {name} has no log entry {at}", place=str(path))
    for action in read_entry(path, name):
        if "commitInfo" in action:
            return dict(action["commitInfo"])
    return {}


def read_entry(path: Path, name: str) -> list[dict[str, Any]]:
    """The actions of one log entry. Raises StoreError when it is empty or torn."""
    version = int(path.name[:20])
    raw = path.read_bytes()
    if not raw.strip():
        raise _broken(path, name, version, "is empty")
    try:
        actions = [orjson.loads(line) for line in raw.splitlines() if line.strip()]
    except orjson.JSONDecodeError as error:
        raise _broken(path, name, version, f"is torn ({first_line(error)})") from error
    if not all(isinstance(action, dict) for action in actions):
        raise _broken(path, name, version, "holds something else than actions")
    info: Mapping[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    expected = info.get(ACTIONS)
    if expected is not None and int(expected) != len(actions) - 1:
        raise _broken(path, name, version, f"is torn ({len(actions) - 1} of {expected} actions)")
    return actions


def missing_columns(root: str | Path, name: str, *, storage_options: Options | None = None) -> list[str]:
    """Like `compare_schema`, for a table that need not exist."""
    table = peek_table(root, name, None, storage_options)
    return [] if table is None else compare_schema(root, name, table)


def compare_schema(root: str | Path, name: str, table: DeltaTable) -> list[str]:
    """The columns that an open table lacks ([] when it is current). Raises StoreError when it has columns that this release does not
    know, or one of another type: a newer or foreign table (S5)."""
    stored: pa.Schema = pa.schema(cast(Any, table.schema().to_arrow()))
    wanted = TABLES[name].schema
    odd = [f"{each.name} {each.type}" for each in stored if each.name not in wanted.names or wanted.field(each.name).type != each.type]
    if odd:
        raise StoreError(
            f"table {name} was written by another release: it has {', '.join(odd)}",
            place=str(table_folder(root, name)),
            remedy="Use the release that wrote the lake, or build a new lake",
        )
    return [each.name for each in wanted if each.name not in stored.names]


def _broken(path: Path, name: str, version: int, what: str) -> StoreError:
    return StoreError(
        f"the entry of version {version} of table {name} {what}",
        place=str(path),
        remedy=f"Bring the file back from a copy. Without one, delete it: the table goes back to version {version - 1}, "
        "and the next run goes on from there, unless a generation was already made of this version",
    )


def _check_gaps(name: str, log: Path, versions: list[int], checkpoint: int) -> None:
    needed = range(checkpoint + 1, versions[-1] + 1) if versions and versions[-1] > checkpoint else range(0)
    present = set(versions)
    for version in needed:
        if version not in present:
            raise StoreError(
                f"the entry of version {version} of table {name} is missing, while later ones are there",
                place=str(log / f"{version:020}.json"),
                remedy="Bring the file back from a copy, or build the lake again",
            )


def _check_double(name: str, log: Path, version: int, before: list[dict[str, Any]], actions: list[dict[str, Any]]) -> None:
    added = {action["add"]["path"] for action in before if "add" in action}
    if any("add" in action and action["add"]["path"] in added for action in actions):
        raise _broken(log / f"{version:020}.json", name, version, f"repeats the one of version {version - 1}")


def lost_files(root: str | Path, name: str, options: Options | None = None) -> list[DataFile]:
    """Data files of the newest version that are missing or have another size than the log says. Raises StoreError for a broken log."""
    table = peek_table(root, name, None, options)
    if table is None:
        return []
    folder = table_folder(root, name)
    return [file for file in active_files(root, name, table) if _size(folder / file.path) != file.size]


def _check_data_files(root: str | Path, name: str, options: Options | None) -> None:
    for file in lost_files(root, name, options):
        path = table_folder(root, name) / file.path
        size = _size(path)
        what = "is missing" if size is None else f"has {size} bytes instead of {file.size}"
        raise StoreError(f"a data file of table {name} {what}", place=str(path), remedy=LOST_FILE)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
