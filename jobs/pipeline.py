"""The stages of the index job as data, sized to the cluster.

A stage's `workers: 0` means: as many as its share of the cluster's CPUs (or GPUs) allows, never more than there are batches. Embedding
starts with one actor and grows into what the stages before it leave free, since each actor of it loads a model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raydex.cluster.stage import Stage
from raydex.configs.settings import StageSettings
from raydex.ir.errors import ConfigError
from raydex.jobs import chunk_stage, embed_stage, parse_stage
from raydex.jobs.context import RunContext
from raydex.jobs.known_vectors import write_known


def build_stages(context: RunContext, resources: dict[str, float], board: Any, batches: int) -> tuple[Stage, ...]:
    """Parse → chunk → embed. Raises ConfigError when a worker of each does not fit into the cluster, or device and GPUs disagree."""
    settings = context.settings.stages
    check_device(context.settings.embed.device, settings.embed.gpus)
    check_room(settings.parse, settings.chunk, settings.embed, resources)
    known = Path(context.lake_root) / "staging" / f"known-{context.run_id}.npz"
    known.parent.mkdir(parents=True, exist_ok=True)
    found = write_known(context.tables, context.fingerprints["embed"], known)
    embed_args = (context, board, str(known) if found else "")
    spare = resources.get("CPU", 1) - settings.chunk.cpus - settings.embed.cpus * max(settings.embed.workers, 1)
    most = (
        _most(settings.parse, {**resources, "CPU": spare}, batches),
        _most(settings.chunk, {"CPU": settings.chunk.cpus}, batches),
        _most(settings.embed, resources, batches),
    )
    return (
        _stage("parse", parse_stage.ParseWorker, (context, board), parse_stage, settings.parse, (most[0], most[0])),
        _stage("chunk", chunk_stage.ChunkWorker, (context, board), chunk_stage, settings.chunk, (most[1], most[1])),
        _stage(
            "embed", embed_stage.EmbedWorker, embed_args, embed_stage, settings.embed, (min(settings.embed.workers or 1, most[2]), most[2])
        ),
    )


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


def check_room(parse: StageSettings, chunk: StageSettings, embed: StageSettings, resources: dict[str, float]) -> None:
    """A pool that can never start would hang the run: say so before the first document."""
    for kind, key in (("cpus", "CPU"), ("gpus", "GPU")):
        need = sum(getattr(stage, kind) * max(stage.workers, 1) for stage in (parse, chunk, embed))
        have = resources.get(key, 0)
        if need > have:
            raise ConfigError(
                f"the stages need {need:g} {kind}, the cluster has {have:g}",
                place=f"stages.*.{kind}",
                remedy=f"Lower stages.<stage>.{kind} or stages.<stage>.workers, or use a larger cluster",
            )


def check_device(device: str, gpus: float) -> None:
    """A GPU is reserved, used and paid for, or none of these. Raises ConfigError when the device and the stage's GPUs say otherwise."""
    if gpus and device == "cpu":
        said = f"stages.embed.gpus reserves {gpus:g} GPUs a worker, and embed.device computes on the CPU"
        raise ConfigError(said, place="embed.device", remedy="Set embed.device: auto, or stages.embed.gpus: 0")
    if not gpus and device.startswith("cuda"):
        said = f"embed.device is {device}, and stages.embed.gpus gives the stage no GPU"
        raise ConfigError(said, place="stages.embed.gpus", remedy="Set stages.embed.gpus: 1 (embed.device: auto then takes it)")


def start_board() -> Any:
    """The progress board as an actor without CPU share."""
    import ray

    from raydex.jobs.progress import Board

    return ray.remote(Board).options(num_cpus=0, max_concurrency=1).remote()
