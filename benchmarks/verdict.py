"""Measured ratio and number to reach (design §7) → one line: reached, or missed and what stands in the way.

A reason names a cause that is known; where none is known, the line says so. With BENCH_VERDICTS each line is also kept in that file, and
`python benchmarks/verdict.py` prints the table of a whole `scripts/bench`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

UNKNOWN = "the cause is not known"


def verdict(name: str, ratio: float, reach: float | None, why: str = UNKNOWN, *, at_most: bool = False) -> None:
    """`ratio` has to be at least `reach`, or at most where that is said; the design names no number for None. `why` is for a miss."""
    row = {"name": name, "ratio": ratio, "reach": reach, "why": why, "at_most": at_most}
    print(f"verdict: {name}: {said(row)}", flush=True)
    if kept := os.environ.get("BENCH_VERDICTS"):
        with open(kept, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def said(row: dict) -> str:
    ratio, reach = row["ratio"], row["reach"]
    if reach is None:
        return f"{ratio:,.{2 if ratio < 10 else 0}f}, no number to reach"
    missed = ratio > reach if row["at_most"] else ratio < reach
    wanted = f"{ratio:,.3g} (reach {'at most' if row['at_most'] else 'at least'} {reach:g})"
    return f"{wanted} missed: {row['why']}" if missed else f"{wanted} reached"


def main() -> None:
    rows = [json.loads(line) for line in Path(os.environ["BENCH_VERDICTS"]).read_text(encoding="utf-8").splitlines()]
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        print(f"{row['name']:<{width}}  {said(row)}")


if __name__ == "__main__":
    main()
