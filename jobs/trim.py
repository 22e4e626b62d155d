"""Data files that no kept generation needs → deleted, in a run that has something to write.

The invariant: the newest version of a table and every version that a kept generation pins stay readable, and so does what was shown until
`GRACE` ago: a reader may have begun under it. The caller holds the lake's lock and no stage is at work, so that a file which no commit
names is the orphan of a batch that was repeated or killed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from raydex.cluster.delta import vacuum
from raydex.cluster.lake import Generation, Lake, kept_generations, load_generations
from raydex.ir.tables import TABLES

GRACE = timedelta(hours=1)


def trim_tables(lake: Lake, keep: int, say: Callable[[str], None], grace: timedelta = GRACE) -> int:
    """Keeps the active generation and the newest `keep` complete ones; returns the number of files deleted."""
    kept = {generation.number: generation for generation in (*kept_generations(lake, keep), *_recent(lake, datetime.now(UTC) - grace))}
    count = 0
    for name in TABLES:
        versions = sorted({generation.table_versions[name] for generation in kept.values() if name in generation.table_versions})
        count += len(vacuum(lake.tables, name, versions, timedelta(0)))
    if count:
        say(f"{count} data files that no kept generation needs were deleted.")
    return count


def _recent(lake: Lake, since: datetime) -> list[Generation]:
    """Generations that were active at some moment after `since`: those whose successor is younger."""
    generations = [generation for generation in load_generations(lake) if generation.complete]
    return [older for older, newer in pairwise(generations) if newer.written_at is not None and newer.written_at >= since]
