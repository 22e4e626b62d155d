"""The stages of the index job as data, sized to the cluster.

A stage's `workers: 0` means: as many as its share of the cluster's CPUs (or GPUs) allows, never more than there are batches. Embedding
starts with one actor and grows into what the stages before it leave free, since each actor of it loads a model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from raydex.cluster.stage import Stage
from raydex.configs.settings import StageSettings
from raydex.ir.errors import ConfigError
from raydex.jobs import caption_stage, chunk_stage, embed_stage, observe_stage, parse_stage
from raydex.jobs.context import RunContext
from raydex.jobs.known_vectors import write_known
from raydex.kernels.media_types import EXTENSIONS

# types that never wait for OCR; all others may
TEXT_ONLY = frozenset(media for media in EXTENSIONS.values() if media.startswith("text/")) - {"text/html", "text/markdown"}


def build_stages(context: RunContext, resources: dict[str, float], board: Any, batches: int, *, images: bool = True) -> tuple[Stage, ...]:
    """Parse → observe → chunk → embed. `images`: some files may hold pages or pictures to be read, so that parsing leaves half of the CPUs
    to OCR. Raises ConfigError when a worker of each does not fit into the cluster."""
    settings = context.settings.stages
    check_room({name: getattr(settings, name) for name in ("parse", "observe", "chunk", "embed")}, resources)
    known = Path(context.lake_root) / "staging" / f"known-{context.run_id}.npz"
    known.parent.mkdir(parents=True, exist_ok=True)
    found = write_known(context.tables, context.fingerprints["embed"], known)
    embed_args = (context, board, str(known) if found else "")
    held = sum(getattr(settings, name).cpus * max(getattr(settings, name).workers, 1) for name in ("observe", "chunk", "embed"))
    spare = resources.get("CPU", 1) - held
    parse = _most(settings.parse, {**resources, "CPU": max(spare / 2, settings.parse.cpus) if images else spare}, batches)
    chunk = _most(settings.chunk, {"CPU": settings.chunk.cpus}, batches)
    observe = _growing(settings.observe, resources, batches)
    embed = _growing(settings.embed, resources, batches)
    return (
        _stage("parse", parse_stage.ParseWorker, (context, board), parse_stage, settings.parse, (parse, parse)),
        _stage("observe", observe_stage.ObserveWorker, (context, board), observe_stage, settings.observe, observe),
        _stage("chunk", chunk_stage.ChunkWorker, (context, board), chunk_stage, settings.chunk, (chunk, chunk)),
        _stage("embed", embed_stage.EmbedWorker, embed_args, embed_stage, settings.embed, embed),
    )


def caption_stages(context: RunContext, resources: dict[str, float], board: Any, batches: int, captions: Any) -> tuple[Stage, ...]:
    """Caption → chunk → embed, for records whose parse stands; `captions` as `CaptionWorker` takes them. The parse stage lets them pass and
    carries their rejects over."""
    first = build_stages(context, resources, board, batches, images=False)
    own = StageSettings(cpus=context.settings.stages.chunk.cpus)
    caption = _stage("caption", caption_stage.CaptionWorker, (context, board, captions), caption_stage, own, (1, 1))
    return (replace(first[0], workers=(1, 1)), caption, *first[2:])


def _growing(settings: StageSettings, resources: dict[str, float], batches: int) -> tuple[int, int]:
    """A pool that starts small, since each of its actors may load a model, and grows into what the others leave free."""
    most = _most(settings, resources, batches)
    return min(settings.workers or 1, most), most


def _most(settings: StageSettings, resources: dict[str, float], batches: int) -> int:
    """The most actors of a stage: the number that is set, else what the resources hold; at least 1 and no more than batches."""
    rooms = [int(resources.get(key, 0) / each) for key, each in (("CPU", settings.cpus), ("GPU", settings.gpus)) if each]
    return max(1, min(settings.workers or min(rooms, default=1), batches))


def _stage(name: str, worker: type, args: tuple[Any, ...], module: Any, settings: StageSettings, workers: tuple[int, int]) -> Stage:
    return Stage(
        name=name,
        worker=worker,
        args=args,
        reads=module.READS,
        writes=module.WRITES,
        cpus=settings.cpus,
        gpus=settings.gpus,
        batch_size=settings.batch_size,
        workers=workers,
    )


def may_hold_images(paths: Iterable[str]) -> bool:
    """Whether any of the files may hold pages or pictures to be read, by their names; one without a known name may hold anything."""
    return any(EXTENSIONS.get(path.rpartition("/")[2].lower().rpartition(".")[2], "") not in TEXT_ONLY for path in paths)


def check_room(stages: dict[str, StageSettings], resources: dict[str, float]) -> None:
    """A pool that can never start would hang the run: say so before the first document."""
    for kind, key in (("cpus", "CPU"), ("gpus", "GPU")):
        need = sum(getattr(stage, kind) * max(stage.workers, 1) for stage in stages.values())
        have = resources.get(key, 0)
        if need > have:
            raise ConfigError(
                f"the stages need {need:g} {kind}, the cluster has {have:g}",
                place=f"stages.*.{kind}",
                remedy=f"Lower stages.<stage>.{kind} or stages.<stage>.workers, or use a larger cluster",
            )


def start_board() -> Any:
    """The progress board as an actor without CPU share."""
    import ray

    from raydex.jobs.progress import Board

    return ray.remote(Board).options(num_cpus=0, max_concurrency=1).remote()
