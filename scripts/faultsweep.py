"""Kills an index run (SIGKILL) at every point of the list, runs again, and compares all tables with an unbroken run. Killed is whoever
passes the point: the driver, or the process that projects for it, whose death ends the run with an error.

Points are chosen by stage and commit, never by time. Prints a line a point and a verdict. Arguments: folder to index (default: the
example corpus), then points (default: POINTS).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from raydex.jobs.digest import differing_tables

ROOT = Path(__file__).resolve().parents[1]
POINTS = (
    "delta.commit:documents:before:kill:1",
    "delta.commit:blocks:after:kill:1",
    "delta.commit:observations:after:kill:1",
    "delta.commit:embeddings:after:kill:1",
    "epoch.acknowledge:before:kill:1",
    "epoch.acknowledge:after:kill:1",
    "epoch.acknowledge:before:kill:2",
    "delta.commit:nodes:after:kill:1",
    "delta.commit:evidence:before:kill:1",
    "finalize.vectors:before:kill:1",
    "finalize.graph:before:kill:1",
    "finalize.verify:before:kill:1",
    "generation.complete:before:kill:1",
    "generation.complete:row:kill:1",
    "generation.complete:after:kill:1",
)


def index(corpus: Path, lake: Path, fault: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RAYDEX_RUN__EPOCH_RECORDS": "12"}
    if fault:
        environment["RAYDEX_FAULT"] = fault
    command = [sys.executable, "-m", "raydex.jobs.cli", "index", str(corpus), "--lake", str(lake), "--json", "--quiet"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)


def main() -> int:
    corpus = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "examples" / "corpus"
    points = tuple(sys.argv[2:]) or POINTS
    failures = 0
    with tempfile.TemporaryDirectory(prefix="raydex-sweep-") as folder:
        whole = Path(folder) / "whole"
        first = index(corpus, whole)
        if first.returncode not in (0, 1):
            sys.exit(f"the unbroken run failed: {first.stderr}")
        for number, point in enumerate(points, 1):
            lake = Path(folder) / f"lake{number}"
            broken = index(corpus, lake, point)
            again = index(corpus, lake)
            driver = broken.returncode == -signal.SIGKILL
            killed = driver or (broken.returncode == 3 and "run_projection was killed" in broken.stderr)
            same = again.returncode in (0, 1) and not differing_tables(lake, whole)
            third = index(corpus, lake)
            idle = third.returncode == 0 and all(
                figures["rows_in"] == 0 for name, figures in json.loads(third.stdout.splitlines()[-1])["stages"].items() if name != "list"
            )
            good = killed and same and idle
            failures += not good
            who = "driver" if driver else "projection"
            print(f"{'ok  ' if good else 'FAIL'} {point}: {who} killed {killed}, equal after rerun {same}, then idle {idle}", flush=True)
            if not same:
                print(again.stderr[-2000:])
    print(f"{len(points)} kill points, {failures} failures: {'FAILED' if failures else 'PASSED'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
