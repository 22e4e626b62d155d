"""Progress of a run: stages report to one small actor, the driver shows per stage rows done and queued, rate, rejects and ETA.

In a terminal the table is redrawn in place; elsewhere one line is written every ten seconds. Reports are fire-and-forget: losing one
changes the display, never a figure of the run (those come with the receipts).
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

INTERVAL_TERMINAL = 0.5
INTERVAL_LOG = 10.0


class Board:
    """Counts per stage; lives as an actor without CPU share."""

    def __init__(self) -> None:
        self.counts: dict[str, list[int]] = {}

    def add(self, stage: str, rows: int, rejects: int, size: int) -> None:
        counts = self.counts.setdefault(stage, [0, 0, 0])
        counts[0] += rows
        counts[1] += rejects
        counts[2] += size

    def read(self) -> dict[str, list[int]]:
        return self.counts


def report(board: Any, stage: str, rows: int, rejects: int, size: int = 0) -> None:
    if board is not None and rows:
        board.add.remote(stage, rows, rejects, size)


class ProgressView:
    """Draws the board. `totals` maps stage → rows that it will get."""

    def __init__(self, totals: dict[str, int], stream: TextIO = sys.stderr, enabled: bool = True) -> None:
        self.totals = totals
        self.stream = stream
        self.enabled = enabled
        self.started = time.monotonic()
        self.finished: dict[str, float] = {}
        self.lines = 0
        self.shown: dict[str, list[int]] | None = None
        self.terminal = stream.isatty()

    @contextmanager
    def watching(self, board: Any) -> Iterator[None]:
        """Redraws from the board in a thread of its own until the block ends, and once more then."""
        if not self.enabled or board is None:
            yield
            return
        import ray

        over = threading.Event()

        def watch() -> None:
            while not over.wait(INTERVAL_TERMINAL if self.terminal else INTERVAL_LOG):
                try:
                    self.draw(ray.get(board.read.remote(), timeout=5))
                except (ray.exceptions.RayError, TimeoutError):
                    continue

        thread = threading.Thread(target=watch, name="progress", daemon=True)
        thread.start()
        try:
            yield
            over.set()
            thread.join()
            self.draw(ray.get(board.read.remote(), timeout=5))
        finally:
            over.set()

    def draw(self, counts: dict[str, list[int]]) -> None:
        if not self.enabled:
            return
        elapsed = max(time.monotonic() - self.started, 1e-6)
        lines = []
        lost = 0  # rows that an earlier stage rejected never reach chunking
        for stage, total in self.totals.items():
            done = counts.get(stage, [0, 0, 0])
            expected = max(done[0], total - lost) if stage == "chunk" else total
            if done[0] >= expected:
                self.finished.setdefault(stage, elapsed)
            lines.append(stage_line(stage, expected, done, self.finished.get(stage, elapsed)))
            lost += done[1]
        if self.terminal:
            if self.lines:
                self.stream.write(f"\x1b[{self.lines}F\x1b[J")
            self.stream.write("\n".join(lines) + "\n")
            self.lines = len(lines)
        elif counts != self.shown:
            self.stream.write(" | ".join(line.strip() for line in lines) + "\n")
        self.shown = {stage: list(values) for stage, values in counts.items()}
        self.stream.flush()


def stage_line(stage: str, total: int, counts: list[int], elapsed: float) -> str:
    """`parse   120/400 done  280 queued  35.2/s  2 rejects  ETA 8 s`."""
    done, rejects, _ = counts
    rate = done / elapsed
    queued = max(total - done, 0)
    eta = f"ETA {queued / rate:.0f} s" if rate > 0 and queued else ("done" if not queued else "ETA -")
    return f"  {stage:<6} {done:>7}/{total} done  {queued:>6} queued  {rate:>7.1f}/s  {rejects:>3} rejects  {eta}"
