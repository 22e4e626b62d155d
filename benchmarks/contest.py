"""Contestants that take turns over files → CPU seconds of each, the median of the rounds; the first round warms up and does not count.

A contestant returns False where it refuses a file, and the file is then left out for all. The invariant: all contestants are measured in
one process over the same files, in the same rounds, so that whatever else the machine does meets all of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

from raydex.ir.ids import content_hash
from raydex.kernels.detect import detect_media_type
from raydex.kernels.parse import parse
from raydex.kernels.request import ParseRequest

Run = Callable[[str, bytes], bool]


def parse_ours(name: str, data: bytes) -> bool:
    media_type = detect_media_type(data[:8192], name)
    return parse(ParseRequest("rec_bench", content_hash(data), name, media_type, data)).document is not None


def contest(files: dict[str, bytes], rounds: int, contestants: dict[str, tuple[Run, int]]) -> dict[str, dict[str, float]]:
    """File → contestant → seconds. `contestants`: name → (what it runs, rounds it takes part in); refused files are named and left out."""
    kept: dict[str, dict[str, float]] = {}
    for name, data in files.items():
        spent: dict[str, list[float]] = {who: [] for who in contestants}
        refused = ""
        for turn in range(-1, rounds):
            for who, (run, most) in contestants.items():
                if turn >= most or refused:
                    continue
                start = time.process_time()
                done = run(name, data)
                if turn >= 0:
                    spent[who].append(time.process_time() - start)
                if not done:
                    refused = who
        if refused:
            print(f"{name}: {refused} refuses it; left out")
        else:
            kept[name] = {who: statistics.median(times) for who, times in spent.items()}
    return kept


def totals(kept: dict[str, dict[str, float]]) -> dict[str, float]:
    out: dict[str, float] = {}
    for seconds in kept.values():
        for who, value in seconds.items():
            out[who] = out.get(who, 0.0) + value
    return out


def show(kept: dict[str, dict[str, float]], unit: str = "docs") -> None:
    """A line a file and one of all: rate of each contestant, and ours ÷ each other."""
    whole = totals(kept)
    rivals = [who for who in whole if who != "ours"]
    print(f"{'file':<34}" + "".join(f"{f'{who} {unit}/s':>20}" for who in whole) + "".join(f"{f'ours ÷ {who}':>20}" for who in rivals))
    for name, seconds, count in [*((name, seconds, 1) for name, seconds in kept.items()), ("all", whole, len(kept))]:
        rates = "".join(f"{count / value:>20,.1f}" for value in seconds.values())
        print(f"{name[-33:]:<34}{rates}" + "".join(f"{seconds[who] / seconds['ours']:>20.1f}" for who in rivals))


def found(folder: Path | None, *extensions: str) -> dict[str, bytes]:
    """Files below a folder that exists, by relative name."""
    if folder is None or not folder.is_dir():
        return {}
    paths = sorted(path for path in folder.rglob("*") if path.suffix in extensions and "truth" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
