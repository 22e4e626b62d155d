"""The engine against what it stands on: the same workers in plain processes, listing and hashing alone, one per cent changed, memory.

    overhead  wall of the Ray stages ÷ wall of the same workers called in a loop by as many processes as there are cores; start-ups apart
    no-op     `raydex index` over unchanged files ÷ listing and hashing them in one process of the same kind; start of Python apart
    one %     stage time with 1 % of the files changed ÷ stage time of the full run; engine start-ups apart; the same with the projection
              and the loads is printed beside it
    memory    peak resident memory of the driver with ten times the files ÷ with one time

Usage: bench_engine.py [--files N] [--source DIR] [overhead] [reruns] [memory]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verdict import verdict

ROOT = Path(__file__).resolve().parents[1]
STAGES = ("parse", "chunk", "embed")
LOADS = ("project", "vectors", "graph")
WORDS = (
    "pump",
    "valve",
    "tank",
    "level",
    "sensor",
    "alarm",
    "meter",
    "filter",
    "drain",
    "inlet",
    "outlet",
    "motor",
    "relay",
    "fuse",
    "cable",
    "panel",
    "switch",
    "gauge",
)


def write_files(folder: Path, count: int, seed: int = 1) -> Path:
    """`count` small files in folders of 500: three in four pages of Markdown, the rest Python modules."""
    draw = random.Random(seed)
    for at in range(count):
        path = folder / f"d{at // 500:03d}" / f"f{at:06d}.{'py' if at % 4 == 3 else 'md'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(draw, at) if path.suffix == ".md" else module(draw, at))
    return folder


def page(draw: random.Random, at: int) -> str:
    body = " ".join(draw.choices(WORDS, k=60))
    return f"# Page {at}\n\n{body}.\n\n## Detail {at}\n\n{' '.join(draw.choices(WORDS, k=40))}.\n"


def module(draw: random.Random, at: int) -> str:
    names = draw.sample(WORDS, 3)
    return "\n\n".join(f"def {name}_{at}(value):\n    return value + {draw.randrange(99)}" for name in names) + "\n"


def run_index(source: Path, lake: Path, **environment: str) -> tuple[dict[str, Any], float, int]:
    """(summary, wall seconds, peak resident bytes of the driver)."""
    command = [sys.executable, "-m", "raydex.jobs.cli", "index", str(source), "--lake", str(lake), "--json", "--quiet"]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ, **environment})
    peak = 0
    over = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.2):
            try:
                text = Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                return
            peak = max(peak, next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmHWM")), 0))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    out = process.communicate()[0]
    over.set()
    if process.returncode not in (0, 1):
        sys.exit(f"raydex index failed with {process.returncode}")
    return json.loads(out.splitlines()[-1]), time.perf_counter() - started, peak


def plan_for(source: Path, lake_root: Path) -> tuple[Any, list[Any]]:
    """A context and the work tables of a first run over `source`."""
    from raydex.cluster.lake import Lake, load_ledger
    from raydex.configs.settings import load_settings
    from raydex.jobs.context import RunContext, stage_fingerprints
    from raydex.jobs.plan import make_plan
    from raydex.jobs.sources import open_source
    from raydex.jobs.work import number_epochs, work_tables

    settings = load_settings()
    lake = Lake(lake_root)
    prints = stage_fingerprints(settings)
    plan = make_plan(lake, [open_source(str(source), name="bench")], load_ledger(lake), settings, prints)
    work, _ = number_epochs(plan.work, 1, 2_000)
    context = RunContext(str(lake.root), "run_bench", "default", settings, prints, datetime.now(UTC), str(lake.root / "objects"))
    return context, work_tables(work, settings.stages.parse.batch_size)


def plain_worker(context: Any, inbox: Any, outbox: Any) -> None:
    """One process: parse, chunk, embed, batch after batch, with one thread for the model."""
    from raydex.jobs.chunk_stage import ChunkWorker
    from raydex.jobs.embed_stage import EmbedWorker
    from raydex.jobs.observe_stage import ObserveWorker
    from raydex.jobs.parse_stage import ParseWorker

    stages = [ParseWorker(context), ObserveWorker(context), ChunkWorker(context), EmbedWorker(context)]
    outbox.put("ready")
    while (table := inbox.get()) is not None:
        for stage in stages:
            table = stage(table)
        outbox.put(table.num_rows)
    outbox.put("done")


def run_plain(context: Any, tables: list[Any], processes: int) -> float:
    """Wall seconds of the loop, start-up apart."""
    spawn = multiprocessing.get_context("spawn")
    inbox, outbox = spawn.Queue(), spawn.Queue()
    context = with_threads(context, 1)
    workers = [spawn.Process(target=plain_worker, args=(context, inbox, outbox)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    for _ in workers:
        assert outbox.get() == "ready"
    started = time.perf_counter()
    for table in [*tables, *[None] * processes]:
        inbox.put(table)
    done = 0
    while done < processes:
        done += outbox.get() == "done"
    seconds = time.perf_counter() - started
    for worker in workers:
        worker.join()
    return seconds


def with_threads(context: Any, threads: int) -> Any:
    from dataclasses import replace

    settings = context.settings.model_copy(update={"embed": context.settings.embed.model_copy(update={"threads": threads})})
    return replace(context, settings=settings)


def run_ray(context: Any, tables: list[Any]) -> float:
    """Wall seconds of the stages, from the first row in to the last receipt out, less the time until the actors were up."""
    from raydex.cluster.ray_session import ray_session
    from raydex.cluster.stage import run_stages
    from raydex.jobs.pipeline import build_stages

    with ray_session() as resources:
        first = run_stages(tables[:1], build_stages(context, resources, None, 1))
        warm = time.perf_counter()
        list(first)
        warm = time.perf_counter() - warm
        started = time.perf_counter()
        rows = sum(batch.num_rows for batch in run_stages(tables, build_stages(context, resources, None, len(tables))))
        seconds = time.perf_counter() - started
    assert rows == sum(table.num_rows for table in tables)
    print(f"  one batch alone, actors' start included: {warm:.1f} s (taken as the start-up)")
    return max(seconds - warm, 0.001)


def bench_overhead(source: Path, folder: Path) -> None:
    context, tables = plan_for(source, folder / "plain")
    plain = run_plain(context, tables, os.cpu_count() or 1)
    shutil.rmtree(folder / "plain")
    context, tables = plan_for(source, folder / "ray")
    ray = run_ray(context, tables)
    rows = sum(table.num_rows for table in tables)
    print(f"overhead: {rows} files: plain loop {plain:.1f} s, Ray {ray:.1f} s", flush=True)
    why = "rows pass through Ray's object store between three actors, and parse and chunk hold cores until they have ended"
    short = "" if plain >= 600 else f", on {plain / 60:.0f} minutes of work instead of 10"
    verdict(f"engine: wall through Ray ÷ plain loop{short}", ray / plain, 1.15, why, at_most=True)


def bench_reruns(source: Path, folder: Path) -> None:
    """A full run, the same again, and again with every hundredth file changed."""
    copy, lake = folder / "rerun-files", folder / "rerun"
    shutil.copytree(source, copy)
    full, wall, _ = run_index(copy, lake)

    best = min((run_index(copy, lake)[0] for _ in range(3)), key=lambda summary: summary["seconds"])
    assert all(figures["rows_in"] == 0 for name, figures in best["stages"].items() if name != "list")
    code = (
        "import sys, time; from raydex.jobs.sources import *; started = time.perf_counter(); "
        "n = sum(1 for _ in hash_files(list_source(open_source(sys.argv[1])), threads=4)); print(n, time.perf_counter() - started)"
    )
    alone = min(float(subprocess.check_output([sys.executable, "-c", code, str(copy)], text=True).split()[1]) for _ in range(3))
    seen, run = best["records"]["seen"], best["seconds"]
    print(f"no-op: {seen} files: run {run:.2f} s, listing and hashing alone {alone:.2f} s", flush=True)
    why = "a run also imports Arrow and the log reader, checks every table's log and files, reads the ledger and records itself"
    verdict("engine: nothing changed ÷ listing and hashing alone", run / alone, 1.2, why, at_most=True)

    files = sorted(path for path in copy.rglob("*") if path.is_file())
    changed = random.Random(2).sample(files, max(1, len(files) // 100))
    for path in changed:
        path.write_text(path.read_text() + ("\n# changed\n" if path.suffix == ".py" else "\nchanged\n"))
    part, wall_part, _ = run_index(copy, lake)
    assert part["stages"]["parse"]["rows_in"] == len(changed)
    ray, more = (stage_seconds(part, names) for names in (STAGES, (*STAGES, *LOADS)))
    of_ray, of_more = (stage_seconds(full, names) for names in (STAGES, (*STAGES, *LOADS)))
    print(f"one per cent: {len(changed)} of {len(files)} files: stages {ray:.1f} of {of_ray:.1f} s; wall {wall_part:.0f} of {wall:.0f} s")
    print(
        f"  with project (Spark's start inside), vectors and graph: {more:.1f} of {of_more:.1f} s, ratio {more / of_more:.3f}", flush=True
    )
    few = "" if len(files) >= 20_000 else f", at {len(files)} files instead of 20,000"
    verdict(f"engine: 1 % changed ÷ full run, seconds of the stages{few}", ray / of_ray, 0.03, at_most=True)


def stage_seconds(summary: dict[str, Any], names: tuple[str, ...]) -> float:
    return sum(summary["stages"][name]["seconds"] for name in names)


def bench_memory(folder: Path, count: int) -> None:
    peaks = []
    for factor in (1, 10):
        source = write_files(folder / f"memory-{factor}", count // 10 * factor)
        peaks.append(run_index(source, folder / f"memory-lake-{factor}", RAYDEX_EMBED__MODEL="none")[2])
    low, high = (peak / 2**20 for peak in peaks)
    print(f"driver memory: {count // 10} files {low:.0f} MiB, {count} files {high:.0f} MiB", flush=True)
    why = "the plan, the receipts of an epoch and some columns of the ledger are in the driver, a row for every record"
    verdict("engine: driver memory, ten times the files ÷ one time", high / low, 1.2, why, at_most=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=["overhead", "reruns", "memory"])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--source", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="raydex-bench-") as name:
        folder = Path(name)
        source = options.source or write_files(folder / "files", options.files)
        for part in options.parts:
            {
                "overhead": lambda: bench_overhead(source, folder),
                "reruns": lambda: bench_reruns(source, folder),
                "memory": lambda: bench_memory(folder, options.files),
            }[part]()


if __name__ == "__main__":
    main()
