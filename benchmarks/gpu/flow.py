"""A source and stages that work at once, each in a thread of its own → how long all took, and for how long each was busy.

Between two stages waits a short queue, so that the slowest stage sets the pace and its share of the time is near one. The invariant: an
error of any stage is raised by `run_flow`, after all threads have ended.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Queue
from typing import Any

AHEAD = 2  # batches that wait between two stages
_END = object()


@dataclass
class Flow:
    """`done` items, in `wall` seconds; `ended` False where the source was cut off."""

    done: int = 0
    wall: float = 0.0
    ended: bool = True
    busy: dict[str, float] = field(default_factory=dict)


def run_flow(source: str, items: Iterable[Any], stages: list[tuple[str, Callable[[Any], Any]]], count: Callable[[Any], int]) -> Flow:
    """`count` says how many items the last stage's result holds. Raises what a stage raises."""
    flow = Flow(busy=dict.fromkeys((source, *(name for name, _ in stages)), 0.0))
    queues: list[Queue[Any]] = [Queue(AHEAD) for _ in range(len(stages) + 1)]
    start = time.perf_counter()
    with ThreadPoolExecutor(len(stages) + 1) as pool:
        works = [pool.submit(_feed, flow, source, items, queues[0])]
        works += [pool.submit(_work, flow, name, run, queues[at], queues[at + 1]) for at, (name, run) in enumerate(stages)]
        for made in _items(queues[-1]):
            flow.done += count(made)
    flow.wall = time.perf_counter() - start
    for work in works:
        work.result()
    return flow


def _items(queue: Queue[Any]) -> Iterator[Any]:
    while (item := queue.get()) is not _END:
        yield item


def _feed(flow: Flow, name: str, items: Iterable[Any], give: Queue[Any]) -> None:
    try:
        start = time.perf_counter()
        for item in items:
            flow.busy[name] += time.perf_counter() - start
            give.put(item)
            start = time.perf_counter()
    finally:
        give.put(_END)


def _work(flow: Flow, name: str, run: Callable[[Any], Any], take: Queue[Any], give: Queue[Any]) -> None:
    ended = False
    try:
        for item in _items(take):
            start = time.perf_counter()
            made = run(item)
            flow.busy[name] += time.perf_counter() - start
            give.put(made)
        ended = True
    finally:
        give.put(_END)
        if not ended:  # whoever feeds this stage must not wait for it forever
            for _ in _items(take):
                continue


def gather(items: Iterable[Any], size: int, key: Callable[[Any], Hashable]) -> Iterator[list[Any]]:
    """Batches of at most `size` items of one key, each as soon as it is full; what is left comes at the end."""
    waiting: dict[Hashable, list[Any]] = defaultdict(list)
    for item in items:
        batch = waiting[key(item)]
        batch.append(item)
        if len(batch) == size:
            yield waiting.pop(key(item))
    yield from waiting.values()
