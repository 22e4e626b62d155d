"""A stage is data: a name, a worker class, the columns it reads and writes, and what its actors take. One function runs a chain of them.

The invariant: every stage is safe to retry (its only side effects are unpublished files and content-addressed objects), so Ray may
restart an actor or repeat a batch; a batch that fails `RETRIES` times over stops the run instead of losing rows.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from raydex.ir.errors import StoreError

RETRIES = 3
_ERROR = re.compile(r"[\w.]+(?:Error|Exception)\b")


@dataclass(frozen=True, slots=True)
class Stage:
    """`worker(*args)` is built once an actor; calling it maps an Arrow batch to an Arrow batch. `workers` is (fewest, most)."""

    name: str
    worker: type
    args: tuple[Any, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    cpus: float = 1.0
    gpus: float = 0.0
    batch_size: int = 64
    workers: tuple[int, int] = (1, 1)


def run_stages(rows: list[pa.Table], stages: tuple[Stage, ...], then: Callable[[Any], Any] | None = None) -> Iterator[pa.Table]:
    """Streams the rows through the stages and yields what the last one makes, in no particular order; `then` puts more behind them
    (dataset → dataset).

    Raises StoreError when a worker dies again and again, or a stage raises.
    """
    import ray
    from ray.exceptions import RayError
    from ray.util.annotations import RayDeprecationWarning

    check_columns(rows, stages)
    dataset = ray.data.from_arrow(rows)
    with warnings.catch_warnings():
        # the bounds of restarts and retries have no parameter of their own in this release
        warnings.simplefilter("ignore", RayDeprecationWarning)
        for stage in stages:
            dataset = dataset.map_batches(
                stage.worker,
                fn_constructor_args=stage.args,
                batch_format="pyarrow",
                batch_size=stage.batch_size,
                zero_copy_batch=True,
                num_cpus=stage.cpus,
                num_gpus=stage.gpus or None,
                compute=ray.data.ActorPoolStrategy(min_size=stage.workers[0], max_size=stage.workers[1]),
                max_restarts=-1,
                max_task_retries=RETRIES,
            )
        if then is not None:
            dataset = then(dataset)
    try:
        yield from dataset.iter_batches(batch_format="pyarrow", batch_size=None, prefetch_batches=1)
    except RayError as error:
        raise StoreError(
            f"a stage failed: {_reason(error)}",
            remedy="What was committed is kept: run the same command again, or look into the log of the run",
        ) from error


def _reason(error: Exception) -> str:
    """The message of the last error in a trace of Ray's, which may have several lines; else the last line."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    at = max((at for at, line in enumerate(lines) if _ERROR.match(line)), default=len(lines) - 1)
    return " ".join(line.strip() for line in lines[at : at + 2])[:400]


def check_columns(rows: list[pa.Table], stages: tuple[Stage, ...]) -> None:
    """Raises ValueError when a stage reads a column that neither the input nor an earlier stage writes."""
    known = set(rows[0].column_names) if rows else set()
    for stage in stages:
        missing = set(stage.reads) - known
        if missing:
            raise ValueError(f"stage {stage.name} reads {sorted(missing)}, which nothing before it writes")
        known |= set(stage.writes)
