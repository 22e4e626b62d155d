"""How the active generation stands to a run that found no work: right as it is, to be written anew from what is there, or to be made again.

What is compared is what a reader would see: the versions of the tables, the fingerprints, which stores are wanted and whether they are
there, and the sources. No engine is started: of an embedded store only its files are looked at, a server is asked for its count.
"""

from __future__ import annotations

from typing import Any, Literal

from raydex.cluster.delta import list_data_files, table_folder, table_version
from raydex.cluster.lake import Generation, Lake
from raydex.configs.settings import Settings
from raydex.ir.tables import PROJECT_TABLES
from raydex.jobs.context import RunContext
from raydex.jobs.places import place_cursors, registry_is_there
from raydex.jobs.project_inputs import COLUMNS as PROJECT_INPUTS
from raydex.jobs.sources import Source
from raydex.kernels.tokens import NO_MODEL

Standing = Literal["current", "renew", "make"]


def standing(lake: Lake, generation: Generation | None, context: RunContext, sources: list[Source]) -> Standing:
    """`make`: tables or stores differ from what the run wants; `renew`: only sources, addresses, the registry or the reader's settings do.

    Raises StoreError when a server of vectors does not answer.
    """
    if generation is None or not generation.complete or generation.fingerprints != context.fingerprints:
        return "make"
    pinned = {name: version for name, version in generation.table_versions.items() if name != "events"}
    if any(table_version(lake.tables, name) != version for name, version in pinned.items()):
        return "make"
    if not stores_stand(lake, generation, context.settings):
        return "make"
    if any(generation.sources.get(source.source_id) != source_row(source) for source in sources):
        return "renew"
    if not registry_is_there(lake, context.settings):
        return "renew"
    return "current" if _said_of_stores(generation, context) else "renew"


def wanted_stores(settings: Settings) -> set[str]:
    """The stores that a generation is to have: vectors, graph."""
    wanted = set()
    if settings.run.load_vectors and settings.embed.model != NO_MODEL:
        wanted.add("vectors")
    if settings.run.load_graph and settings.run.project:
        wanted.add("graph")
    return wanted


def stores_stand(lake: Lake, generation: Generation, settings: Settings) -> bool:
    """Whether the generation has the stores and the projection that the settings ask for, where they ask for them."""
    from raydex.jobs.load import VECTORS

    vectors, graph = generation.cursors.get("vectors"), generation.cursors.get("graph")
    if {name for name in ("vectors", "graph") if generation.cursors.get(name) is not None} != wanted_stores(settings):
        return False
    if settings.run.project and not generation.projection_hash:
        return False
    if vectors is not None and (vectors["uri"] != (settings.stores.vectors or VECTORS) or not _vectors_are_there(lake, vectors)):
        return False
    return graph is None or _graph_is_there(lake, graph)


def held_projection(lake: Lake, before: Generation | None, context: RunContext) -> tuple[dict[str, int], str]:
    """(versions, projection hash) of the last projection where it still is that of the tables; ({}, "") where they have moved on, or it
    lost a file."""
    if before is None or not before.projection_hash or before.fingerprints.get("project") != context.fingerprints["project"]:
        return {}, ""
    for name in PROJECT_INPUTS:
        pinned = before.table_versions.get(name)
        held = {file.path for file in list_data_files(lake.tables, name, pinned)} if pinned is not None else set()
        if held != {file.path for file in list_data_files(lake.tables, name)}:
            return {}, ""
    versions = {name: before.table_versions[name] for name in PROJECT_TABLES if name in before.table_versions}
    for name, version in versions.items():
        folder = table_folder(lake.tables, name)
        if not all((folder / file.path).is_file() for file in list_data_files(lake.tables, name, version)):
            return {}, ""
    return versions, before.projection_hash


def source_row(source: Source) -> dict[str, Any]:
    """What a generation keeps of a source: the commit is held here, once, and never on rows (contracts 5)."""
    return {
        "name": source.name,
        "workspace": source.workspace,
        "root": source.root,
        "kind": source.kind,
        "repository": source.repository or source.name,
        "commit": source.commit or "",
        "dirty": sorted(source.dirty),
    }


def _said_of_stores(generation: Generation, context: RunContext) -> bool:
    """Whether the cursors say what readers need as the configuration has it now; those of older releases lack what has a default."""
    from raydex.jobs.load import READER_KEYS, reader_settings

    defaults = {"objects": {"uri": ""}, "registry": {"url": ""}}
    if {name: generation.cursors.get(name, default) for name, default in defaults.items()} != place_cursors(context.settings):
        return False
    vectors = generation.cursors.get("vectors")
    return vectors is None or {key: vectors["embed"].get(key, "") for key in READER_KEYS} == reader_settings(context)


def _vectors_are_there(lake: Lake, cursor: dict[str, Any]) -> bool:
    from raydex.cluster.vectors import VectorStore, holds_collection

    if not cursor["collection"]:
        return True
    uri = lake.place(cursor["uri"])
    if "://" not in uri:
        return holds_collection(uri, cursor["collection"])
    with VectorStore(uri, cursor["collection"], cursor["dimension"]) as store:
        return store.has_collection and store.count(cursor["generation"]) == cursor["rows"]


def _graph_is_there(lake: Lake, cursor: dict[str, Any]) -> bool:
    """A graph file is never written again: its size tells it from what is left of it."""
    path = lake.root / cursor["path"]
    return path.is_file() and cursor.get("bytes", path.stat().st_size) == path.stat().st_size
