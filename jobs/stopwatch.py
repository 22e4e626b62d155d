"""Wall and CPU time of one step of a run."""

from __future__ import annotations

import resource
import time


class Stopwatch:
    """Runs from when it is made. CPU seconds are those of this process with all its threads, and of child processes that have ended since:
    Spark's virtual machine counts once it is off."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = _spent()

    def figures(self) -> dict[str, float]:
        """{seconds, cpu_seconds}, under the names of the summary."""
        return {"seconds": time.perf_counter() - self._wall, "cpu_seconds": _spent() - self._cpu}


def _spent() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime
