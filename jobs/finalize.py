"""Tables → projection → stores → checks → generation marked complete.

The invariant: a generation becomes active only after every store holds it and the checks have passed; a run killed before that point is
completed by the next one, which does this part again from the tables. The steps run in a process of their own, since embedded stores take
memory by the gigabyte; it holds the lake's lock as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.apart import Apart
from raydex.cluster.faults import fault_point
from raydex.cluster.lake import (
    Generation,
    Lake,
    acknowledged_epoch,
    active_generation,
    complete_generation,
    held_locks,
    load_ledger,
    next_number,
    pin_versions,
    source_manifest,
)
from raydex.ir.errors import StoreError
from raydex.ir.tables import PROJECT_TABLES
from raydex.jobs.context import RunContext
from raydex.jobs.one_model import say_sources, waiting_sources
from raydex.jobs.places import place_cursors, registry_is_there
from raydex.jobs.sources import Source
from raydex.jobs.standing import held_projection, source_row, wanted_stores
from raydex.jobs.stopwatch import Stopwatch
from raydex.jobs.trim import trim_tables

Say = Callable[[str], None]
LEDGER = ["record_id", "content_hash", "source_id", "source_name", "fingerprints"]
STEPS = ("raydex.jobs.projection", "raydex.jobs.load", "raydex.jobs.verify", "raydex.jobs.documents")


def finalize(lake: Lake, context: RunContext, sources: list[Source], say: Say, seconds: dict[str, float]) -> dict[str, Any]:
    """Projects, loads, checks and completes the next generation. Returns {stages, stores} for the summary."""
    with Apart(preload=STEPS, hold=held_locks()) as apart:
        return _finalize(lake, context, sources, say, seconds, apart)


def _finalize(lake: Lake, context: RunContext, sources: list[Source], say: Say, seconds: dict[str, float], apart: Apart) -> dict[str, Any]:
    from raydex.cluster.spark import keeps_spark
    from raydex.jobs.documents import register
    from raydex.jobs.load import drop_old_graphs, load_graph, load_vectors
    from raydex.jobs.projection import run_projection

    stages: dict[str, dict[str, float]] = {}
    before = active_generation(lake)
    settings = context.settings
    held, manifest, waiting = ledger_facts(lake, context, sources, before)
    wanted = wanted_stores(settings)
    kept_versions, projection_hash = held_projection(lake, before, context)
    if settings.run.project:
        fault_point("finalize.project:before")
        projected = run_projection(lake, context) if keeps_spark() else apart.call(run_projection, lake, context)
        projection_hash, stages["project"], notes = projected
        for note in notes:
            say(note)
        seconds["project"] = stages["project"]["seconds"]
    trim_tables(lake, settings.stores.keep_generations - 1, say)
    versions = pin_versions(lake)
    if not settings.run.project:
        versions = {name: version for name, version in versions.items() if name not in PROJECT_TABLES} | kept_versions
    generation = Generation(
        number=next_number(lake),
        table_versions=versions,
        run_id=context.run_id,
        epoch=acknowledged_epoch(lake),
        sources=held,
        source_manifest=manifest,
        projection_hash=projection_hash,
        fingerprints=context.fingerprints,
        written_at=context.written_at,
    )
    cursors: dict[str, Any] = place_cursors(settings)
    stores: dict[str, Any] = {}
    if "vectors" in wanted:
        fault_point("finalize.vectors:before")
        cursors["vectors"], stages["vectors"] = apart.call(load_vectors, lake, context, before, generation)
        stores["vectors"] = {"rows": cursors["vectors"]["rows"], "uri": cursors["vectors"]["uri"]}
        say(f"Vectors: {cursors['vectors']['rows']} rows in generation {generation.number}.")
    if "graph" in wanted:
        fault_point("finalize.graph:before")
        cursors["graph"], stages["graph"] = apart.call(load_graph, lake, generation)
        stores["graph"] = {key: cursors["graph"][key] for key in ("nodes", "edges", "path")}
        say(f"Graph: {cursors['graph']['nodes']} nodes and {cursors['graph']['edges']} edges in generation {generation.number}.")
    generation = replace(generation, cursors=cursors)
    fault_point("finalize.verify:before")
    passed, stages["verify"] = apart.call(hold_to_checks, lake, generation)
    fault_point("finalize.register:before")
    apart.call(register, lake, context, generation, before.epoch if before else 0)
    complete_generation(lake, generation)
    drop_old_graphs(lake, settings.stores.keep_generations)
    say(f"Generation {generation.number} is complete: {passed} checks passed.")
    if waiting:
        say(f"Search does not find {waiting}: their vectors are another model's. Index these sources to embed them anew.")
    return {"stages": stages, "stores": stores}


def ledger_facts(lake: Lake, context: RunContext, sources: list[Source], before: Generation | None) -> tuple[dict[str, Any], str, str]:
    """(sources that the generation holds, source manifest, whose vectors are another model's: search does not find them, which is never
    left unsaid). The ledger itself is let go of."""
    ledger = load_ledger(lake, LEDGER)
    waiting = waiting_sources(ledger, context.fingerprints["embed"], pa.array([False] * ledger.num_rows, pa.bool_()))
    return held_sources(before, sources, ledger), source_manifest(ledger), say_sources(waiting)


def hold_to_checks(lake: Lake, generation: Generation) -> tuple[int, dict[str, float]]:
    """(number of checks, figures). Raises StoreError when one fails."""
    from raydex.jobs.verify import check_generation

    watch = Stopwatch()
    checks = check_generation(lake, generation)
    bad = [check for check in checks if check.ok is False]
    if bad:
        raise StoreError(
            "the new generation does not hold: " + "; ".join(f"{check.name}: {check.detail}" for check in bad),
            place=str(Path(lake.root)),
            remedy="The old generation stays active; run the same command again, and report this if it comes back",
        )
    return len(checks), {"rows_in": len(checks), "rows_out": len(checks), **watch.figures()}


def renew(lake: Lake, context: RunContext, sources: list[Source], say: Say) -> dict[str, Any]:
    """The next generation where tables and stores stand as they are, and only what is said about them has changed: commits, dirty paths,
    addresses. Nothing is computed or loaded. Returns {stages, stores} for the summary."""
    from raydex.jobs.documents import register
    from raydex.jobs.load import reader_settings

    before = active_generation(lake)
    assert before is not None
    cursors = {**before.cursors, **place_cursors(context.settings)}
    if "vectors" in cursors:
        cursors["vectors"] = {**cursors["vectors"], "embed": reader_settings(context)}
    generation = replace(
        before,
        number=next_number(lake),
        run_id=context.run_id,
        sources=held_sources(before, sources, load_ledger(lake)),
        cursors=cursors,
        written_at=context.written_at,
    )
    moved = before.cursors.get("registry", {"url": ""}) != cursors["registry"]
    if moved or not registry_is_there(lake, context.settings):
        register(lake, context, generation, before.epoch)
    complete_generation(lake, generation)
    say(f"No record changed: generation {generation.number} shows what {before.number} showed, with the sources as they are now.")
    return {"stages": {}, "stores": {}}


def held_sources(before: Generation | None, sources: list[Source], ledger: pa.Table) -> dict[str, Any]:
    """Source id → what a generation keeps of it: the sources of this run, and those of earlier runs that still have records."""
    known = set(pc.unique(ledger.column("source_id")).to_pylist())
    held = {key: row for key, row in (before.sources if before else {}).items() if key in known}
    return {**held, **{source.source_id: source_row(source) for source in sources}}
