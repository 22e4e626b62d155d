"""Tables → projection → stores → checks → generation marked complete.

The invariant: a generation becomes active only after every store holds it and the checks have passed; a run killed before that point is
completed by the next one, which does this part again from the tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from raydex.cluster.delta import table_version
from raydex.cluster.faults import fault_point
from raydex.cluster.lake import (
    Generation,
    Lake,
    acknowledged_epoch,
    active_generation,
    complete_generation,
    load_ledger,
    next_number,
    pin_versions,
)
from raydex.ir.ids import digest
from raydex.jobs.context import RunContext
from raydex.jobs.sources import Source

Say = Callable[[str], None]


def is_current(generation: Generation | None, context: RunContext, sources: list[Source]) -> bool:
    """Whether the active generation already stands for the tables, fingerprints and sources as they are."""
    if generation is None or not generation.complete or generation.fingerprints != context.fingerprints:
        return False
    if any(generation.sources.get(source.source_id) != source_row(source) for source in sources):
        return False
    pinned = {name: version for name, version in generation.table_versions.items() if name not in ("events",)}
    return all(table_version(context.tables, name) == version for name, version in pinned.items())


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


def finalize(lake: Lake, context: RunContext, sources: list[Source], say: Say, seconds: dict[str, float]) -> dict[str, Any]:
    """Projects, loads, checks and completes the next generation. Returns {stages, stores} for the summary."""
    from raydex.jobs.documents import register
    from raydex.jobs.load import drop_old_graphs, load_graph, load_vectors
    from raydex.jobs.projection import run_projection
    from raydex.jobs.verify import check_generation

    stages: dict[str, dict[str, float]] = {}
    before = active_generation(lake)
    settings = context.settings
    held = {**(before.sources if before else {}), **{source.source_id: source_row(source) for source in sources}}
    ledger = load_ledger(lake)
    held = {
        key: row
        for key, row in held.items()
        if key in set(ledger.column("source_id").to_pylist()) or any(s.source_id == key for s in sources)
    }
    projection_hash = before.projection_hash if before else ""
    if settings.run.project:
        fault_point("finalize.project:before")
        clock = time.perf_counter()
        projection_hash, stages["project"] = run_projection(lake, context, say)
        seconds["project"] = time.perf_counter() - clock
    generation = Generation(
        number=next_number(lake),
        table_versions=pin_versions(lake),
        run_id=context.run_id,
        epoch=acknowledged_epoch(lake),
        sources=held,
        source_manifest=source_manifest(ledger),
        projection_hash=projection_hash,
        fingerprints=context.fingerprints,
        written_at=context.written_at,
    )
    cursors: dict[str, Any] = {}
    stores: dict[str, Any] = {}
    if settings.run.load_vectors and settings.embed.model != "none":
        fault_point("finalize.vectors:before")
        cursors["vectors"], stages["vectors"] = load_vectors(lake, context, before, generation)
        stores["vectors"] = {"rows": cursors["vectors"]["rows"], "uri": cursors["vectors"]["uri"]}
        say(f"Vectors: {cursors['vectors']['rows']} rows in generation {generation.number}.")
    if settings.run.load_graph and settings.run.project:
        fault_point("finalize.graph:before")
        cursors["graph"], stages["graph"] = load_graph(lake, generation)
        stores["graph"] = {key: cursors["graph"][key] for key in ("nodes", "edges", "path")}
        say(f"Graph: {cursors['graph']['nodes']} nodes and {cursors['graph']['edges']} edges in generation {generation.number}.")
    generation = replace(generation, cursors=cursors)
    fault_point("finalize.verify:before")
    clock = time.perf_counter()
    checks = check_generation(lake, generation)
    stages["verify"] = {"rows_in": len(checks), "rows_out": sum(c.ok for c in checks), "seconds": time.perf_counter() - clock}
    bad = [check for check in checks if not check.ok]
    if bad:
        from raydex.ir.errors import StoreError

        raise StoreError(
            "the new generation does not hold: " + "; ".join(f"{check.name}: {check.detail}" for check in bad),
            place=str(Path(lake.root)),
            remedy="The old generation stays active; run the same command again, and report this if it comes back",
        )
    fault_point("finalize.register:before")
    register(lake, context, generation, before.epoch if before else 0)
    complete_generation(lake, generation)
    drop_old_graphs(lake, settings.stores.keep_generations)
    say(f"Generation {generation.number} is complete: {len(checks)} checks passed.")
    return {"stages": stages, "stores": stores}


def source_manifest(ledger: Any) -> str:
    """Hash of sorted (record_id, content_hash) (contracts 15)."""
    pairs = sorted(zip(ledger.column("record_id").to_pylist(), ledger.column("content_hash").to_pylist()))
    return digest(*(part for pair in pairs for part in (pair[0], pair[1] or "")))
