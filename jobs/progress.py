"""Progress of a run: stages report to one small actor, the driver shows per stage rows done and queued, rate, rejects and ETA.

In a terminal the table is redrawn in place; elsewhere one line is written every ten seconds. Reports are fire-and-forget: rows and costs of
a run come with the receipts, and only what no receipt can tell, the highest queue and the wall time of a stage, is the board's.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO, TypeAlias

INTERVAL_TERMINAL = 0.5
INTERVAL_LOG = 10.0
ANSWER_SECONDS = 5.0
ORDER = ("parse", "observe", "caption", "chunk", "embed")

Backlog: TypeAlias = dict[str, dict[str, int]]


@dataclass(slots=True)
class Reading:
    """What the board knows, by stage: [rows done, rejects, bytes or images], the highest queue so far, seconds since the last report, rows
    that it will get at most."""

    counts: dict[str, list[int]] = field(default_factory=dict)
    queues: dict[str, int] = field(default_factory=dict)
    ages: dict[str, float] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)


class Board:
    """Counts per stage; lives as an actor without CPU share."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}
        self.counts: dict[str, list[int]] = {}
        self.queues: dict[str, int] = {}
        self.reported: dict[str, float] = {}

    def expect(self, totals: dict[str, int]) -> None:
        """`totals` maps stage → rows that it will get at most; queues are kept from here on."""
        self.totals = totals
        self._keep_queues()

    def add(self, stage: str, rows: int, rejects: int, size: int) -> None:
        counts = self.counts.setdefault(stage, [0, 0, 0])
        counts[0] += rows
        counts[1] += rejects
        counts[2] += size
        self.reported[stage] = time.monotonic()
        self._keep_queues()

    def expect_more(self, stage: str, rows: int) -> None:
        """A stage whose rows nobody could count before: those that wait for OCR."""
        self.totals[stage] = self.totals.get(stage, 0) + rows
        self._keep_queues()

    def read(self) -> Reading:
        now = time.monotonic()
        ages = {stage: now - when for stage, when in self.reported.items()}
        return Reading(self.counts, self.queues, ages, self.totals)

    def _keep_queues(self) -> None:
        if self.totals:
            for stage, count in queued(self.totals, self.counts).items():
                self.queues[stage] = max(self.queues.get(stage, 0), count)


def report(board: Any, stage: str, rows: int, rejects: int, size: int = 0) -> None:
    if board is not None and rows:
        board.add.remote(stage, rows, rejects, size)


def expect(board: Any, stage: str, rows: int) -> None:
    if board is not None and rows:
        board.expect_more.remote(stage, rows)


def queued(totals: dict[str, int], counts: dict[str, list[int]]) -> dict[str, int]:
    """Records that wait before each stage: those that start there or have left the stage before, less those that it is done with.

    Every record reaches embedding; one that parsing rejects passes chunking by. Only those that hold pages or images without text stop at
    `observe`, and those that start at `caption` have not been parsed.
    """
    parse, observe, caption, chunk, embed = (counts.get(stage, [0, 0, 0]) for stage in ORDER)
    unread = max(totals.get("observe", 0) - observe[0], 0)
    uncaptioned = max(totals.get("caption", 0) - caption[0], 0)
    lost = parse[1] + observe[1]
    waiting = {
        "parse": totals["parse"] - parse[0],
        "observe": unread,
        "caption": uncaptioned,
        "chunk": totals["chunk"] - totals["parse"] + parse[0] - lost - unread - uncaptioned - chunk[0],
        "embed": totals["embed"] - totals["chunk"] + lost + chunk[0] - embed[0],
    }
    waiting = {stage: count for stage, count in waiting.items() if stage in totals}
    return {stage: max(count, 0) for stage, count in waiting.items()}  # a later stage's report may overtake an earlier one's


def backlog(totals: dict[str, int], counts: dict[str, list[int]]) -> Backlog:
    """Stage → rows it is done with, rows that it will get at most, rows that wait before it now, rejects."""
    waiting = queued(totals, counts)
    found: Backlog = {}
    for stage in ORDER:
        if totals.get(stage):
            done, rejects, _ = counts.get(stage, [0, 0, 0])
            found[stage] = {"done": done, "total": totals[stage], "queued": waiting[stage], "rejects": rejects}
    return found


class ProgressView:
    """Draws the board. `totals` maps parse, chunk and embed → records that they will get at most; `tell` is told of each reading.

    `measured` is filled when the stages have ended: stage → `queue`, the most records that ever waited before it, and `wall_seconds`, from
    the start of the view to the stage's last batch. A board that does not answer leaves it empty.
    """

    def __init__(
        self, totals: dict[str, int], stream: TextIO = sys.stderr, enabled: bool = True, tell: Callable[[Backlog], None] | None = None
    ) -> None:
        self.tell = tell
        self.totals = totals
        self.stream = stream
        self.enabled = enabled
        self.started = time.monotonic()
        self.measured: dict[str, dict[str, float]] = {}
        self.finished: dict[str, float] = {}
        self.lines = 0
        self.shown: dict[str, list[int]] | None = None
        self.terminal = stream.isatty()

    @contextmanager
    def watching(self, board: Any) -> Iterator[None]:
        """Redraws from the board in a thread of its own until the block ends, and once more then, when `measured` is filled too."""
        import ray

        board.expect.remote(self.totals)
        over = threading.Event()

        def watch() -> None:
            while not over.wait(INTERVAL_TERMINAL if self.terminal else INTERVAL_LOG):
                try:
                    self.draw(ray.get(board.read.remote(), timeout=ANSWER_SECONDS))
                except (ray.exceptions.RayError, TimeoutError):
                    continue

        thread = threading.Thread(target=watch, name="progress", daemon=True)
        thread.start()
        try:
            yield
            over.set()
            thread.join()
            try:
                reading = ray.get(board.read.remote(), timeout=ANSWER_SECONDS)
            except (ray.exceptions.RayError, TimeoutError):
                return  # the run has what it needs without the board
            self.draw(reading)
            self.measure(reading)
        finally:
            over.set()

    def measure(self, reading: Reading) -> None:
        elapsed = time.monotonic() - self.started
        for stage, queue in reading.queues.items():
            self.measured[stage] = {"queue": queue}
            if stage in reading.ages:
                self.measured[stage]["wall_seconds"] = max(elapsed - reading.ages[stage], 0.0)

    def draw(self, reading: Reading) -> None:
        counts = reading.counts
        totals = {**self.totals, **reading.totals}
        if self.tell is not None:
            self.tell(backlog(totals, counts))
        if not self.enabled:
            return
        elapsed = max(time.monotonic() - self.started, 1e-6)
        lines = []
        waiting = queued(totals, counts)
        lost = 0  # rows that an earlier stage rejected never reach chunking
        for stage in ORDER:
            total = totals.get(stage, 0)
            if not total and stage not in self.totals:
                continue
            done = counts.get(stage, [0, 0, 0])
            expected = max(done[0], total - lost) if stage == "chunk" else total
            if done[0] >= expected:
                self.finished.setdefault(stage, elapsed)
            lines.append(stage_line(stage, expected, waiting[stage], done, self.finished.get(stage, elapsed)))
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


def stage_line(stage: str, total: int, queue: int, counts: list[int], elapsed: float) -> str:
    """`chunk   120/400 done  80 queued  35.2/s  2 rejects  ETA 8 s`: queued is what waits before the stage now, not all that is to come."""
    done, rejects, _ = counts
    rate = done / elapsed
    left = max(total - done, 0)
    eta = f"ETA {left / rate:.0f} s" if rate > 0 and left else ("done" if not left else "ETA -")
    return f"  {stage:<6} {done:>7}/{total} done  {queue:>6} queued  {rate:>7.1f}/s  {rejects:>3} rejects  {eta}"
