"""Sources of a run → sources whose names and repositories belong to them alone in the lake.

Ids are made of a source's name (records) and of its repository (symbols), so that no two roots may share either. A name that is taken is
an error (contracts 3). A repository that is taken, as by a second checkout or another folder of the same one, is kept apart as
`REPOSITORY/NAME`; what was chosen once stays, in whatever order sources are indexed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from raydex.cluster.delta import scan_delta
from raydex.cluster.lake import Lake, active_generation
from raydex.ir.errors import ConfigError, StoreError
from raydex.jobs.git_info import is_dirty
from raydex.jobs.sources import GONE, Source

Held = Mapping[str, Mapping[str, Any]]  # source_id → what the active generation keeps of a source
Claims = dict[tuple[str, str], set[str]]  # (workspace, repository) → ids of the sources whose records say so


def check_run(sources: list[Source]) -> list[Source]:
    """The sources without repetitions. Raises ConfigError when one name stands for two roots or two patterns."""
    names: dict[str, Source] = {}
    for source in sources:
        twin = names.setdefault(source.name, source)
        if twin.root != source.root:
            raise ConfigError(
                f"two sources of this run are named {source.name}", place=source.root, remedy="Index them apart, one with --name"
            )
        if twin.pattern != source.pattern:
            raise ConfigError(
                f"{source.name} is named twice with different patterns",
                place=source.root,
                remedy="Index the folder once, with the patterns under list.include",
            )
    return list(names.values())


def check_names(sources: list[Source], held: Held, named: bool) -> list[str]:
    """Sentences for the user. `named`: the name was given by hand.

    Raises ConfigError for a name that another root has in this workspace, unless that root is gone: then it moved; and for a root that
    the lake holds under another name, as after a new remote or `git init`: it would be indexed a second time unasked.
    """
    notes: list[str] = []
    for source in sources:
        mine = held.get(source.source_id)
        if mine is not None and mine["root"] != source.root and "://" not in mine["root"] and Path(mine["root"]).exists():
            raise ConfigError(
                f"the name {source.name} belongs to {mine['root']} in workspace {source.workspace}",
                place=source.root,
                remedy="Give this source another --name, or another --workspace",
            )
        if mine is not None:
            continue
        others = sorted(row["name"] for row in held.values() if (row["workspace"], row["root"]) == (source.workspace, source.root))
        if others and not named:
            raise ConfigError(
                f"the lake holds this as source {others[0]}, and its name is {source.name} now",
                place=source.root,
                remedy=f"--name {others[0]} goes on with it; any other --name indexes it a second time",
            )
        notes += [f"{source.root} is indexed a second time: it is also source {other}." for other in others]
    return notes


def gone_source(lake: str, spec: str, workspace: str) -> Source | None:
    """The source whose root `spec` was, when nothing is there any more; None when the lake, if there is one, holds none."""
    root = os.path.realpath(spec)
    if os.path.lexists(root):
        return None
    try:
        generation = active_generation(Lake.open(lake))
    except (ConfigError, StoreError):
        return None
    for identifier, held in (generation.sources if generation else {}).items():
        if held["root"] == root and held["workspace"] == workspace:
            repository = "" if held["repository"] == held["name"] else held["repository"]
            return Source(identifier, workspace, held["name"], root, GONE, repository, held["commit"])
    return None


def held_repositories(lake: Lake) -> Claims:
    """Which sources the ledger holds records of, by workspace and repository."""
    columns = ["workspace", "repository", "source_id"]
    claims: Claims = {}
    for batch in scan_delta(lake.tables, "records", columns=columns):
        for row in pa.Table.from_batches([batch]).group_by(columns).aggregate([]).to_pylist():
            claims.setdefault((row["workspace"], row["repository"]), set()).add(row["source_id"])
    return claims


def part_repositories(sources: list[Source], claims: Claims, told: bool) -> list[Source]:
    """The sources, each with a repository of its own. `told`: it was given by hand, and then one that is taken raises ConfigError."""
    parted = []
    for source in sources:
        name = source.repository or source.name
        apart = f"{name}/{source.name}"
        if told and claims.get((source.workspace, name), set()) - {source.source_id}:
            raise ConfigError(
                f"the repository name {name} belongs to another source of this lake, and symbols are named by it",
                place=source.root,
                remedy="Give this source another --repo",
            )
        if not told and (
            claims.get((source.workspace, name), set()) - {source.source_id}
            or (source.source_id in claims.get((source.workspace, apart), set()))
        ):
            note = f"repository {name} has another source in this lake: the symbols of {source.name} are kept apart as those of {apart}"
            source = replace(source, repository=apart, notes=(*source.notes, note))
        claims.setdefault((source.workspace, source.repository or source.name), set()).add(source.source_id)
        parted.append(source)
    return parted


def keep_commit(source: Source, held: Mapping[str, Any] | None, paths: set[str]) -> Source:
    """The source of a retry: it stays at the commit that its other files were read at, and a retried file that may differ is dirty.

    Outside of a work tree nothing tells what differs: there the commit was given by hand, and whoever gave it vouches for it.
    """
    if held is None:
        return source
    moved = source.commit != held["commit"]
    other = {path for path in paths if moved or is_dirty(path, source.dirty)} if source.top else set()
    return replace(source, commit=held["commit"], dirty=tuple(sorted({*held["dirty"], *other})))
