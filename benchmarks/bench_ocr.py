"""OCR: images/s of our engine's path and of the stage on Ray beside the bare engine, same models and threads; what batching gives.

    python benchmarks/bench_ocr.py [--pages N] [--small N] [--rounds N] [--threads N] [--device D]

The bare engine is rapidocr's own call, image by image, with its own settings but for threads and device. Ours is `OcrEngine.read`. They
take turns image by image over drawn pages and small pictures, and the median of the rounds counts, as CPU time on one core (wall time on a
GPU). The stage is the one of `raydex index`, with one worker: image files are parsed and read through Ray, and the time of its worker
counts, without the batch in which the models are loaded, beside that of the bare engine over the same images. Then many small images are
read one by one and together, as the OCR stage does across documents. Characters read by each are printed: a faster reader of less would be
no gain.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from page_images import as_png, make_page, make_small
from verdict import verdict

from raydex.cluster.lake import Lake, load_ledger
from raydex.configs.settings import load_settings
from raydex.jobs.context import RunContext, stage_fingerprints
from raydex.jobs.index import batches_of
from raydex.jobs.pipeline import build_stages
from raydex.jobs.plan import make_plan
from raydex.jobs.sources import open_source
from raydex.jobs.work import number_epochs
from raydex.kernels.ocr import load_ocr_engine
from raydex.kernels.onnx_device import session_options

Read = Callable[[Sequence[np.ndarray]], int]


def make_bare(device: str, threads: int) -> Read:
    from rapidocr import RapidOCR

    options = session_options(device, threads)
    params: dict[str, Any] = {"Global.log_level": "critical"}
    params |= {f"EngineConfig.onnxruntime.{name}": value for name, value in options.items()}
    engine = RapidOCR(params=params)

    def read(images: Sequence[np.ndarray]) -> int:
        """Characters read."""
        found = [engine(np.ascontiguousarray(image[:, :, ::-1])) for image in images]
        return sum(len(text) for result in found for text in result.txts or ())

    return read


def make_ours(device: str, threads: int) -> Read:
    engine = load_ocr_engine("rapidocr", device, threads)

    def read(images: Sequence[np.ndarray]) -> int:
        pages = engine.read(images)
        assert not any(page.error for page in pages)
        return sum(len(line.text) for page in pages for line in page.lines)

    return read


def take_turns(images: list[np.ndarray], readers: dict[str, Read], rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """Images/s of each reader, image by image; which of them begins changes from round to round."""
    times: dict[str, list[float]] = {name: [] for name in readers}
    seen = dict.fromkeys(readers, 0)
    for turn in range(rounds):
        spent = dict.fromkeys(readers, 0.0)
        for image in images:
            for name in list(readers) if turn % 2 else list(readers)[::-1]:
                start = clock()
                seen[name] += readers[name]([image])
                spent[name] += clock() - start
        for name, value in spent.items():
            times[name].append(value)
    rates = {name: len(images) / statistics.median(values) for name, values in times.items()}
    print("  " + ", ".join(f"{name} {rate:.2f} images/s ({seen[name] // rounds} characters)" for name, rate in rates.items()))
    return rates


def batching(images: list[np.ndarray], read: Read, rounds: int, clock: Callable[[], float]) -> float:
    """Rate of all together ÷ rate of one by one."""
    times: dict[str, list[float]] = {"one by one": [], "together": []}
    for _ in range(rounds):
        for name, batches in (("one by one", [[image] for image in images]), ("together", [images])):
            start = clock()
            for batch in batches:
                read(batch)
            times[name].append(clock() - start)
    rates = {name: len(images) / statistics.median(values) for name, values in times.items()}
    print("  " + ", ".join(f"{name} {rate:.2f} images/s" for name, rate in rates.items()))
    return rates["together"] / rates["one by one"]


def ray_stage(images: list[np.ndarray], batch: int, options: dict[str, Any]) -> tuple[float, int]:
    """Images/s of the observe stage on Ray, over image files, and the characters it read; the first batch warms up."""
    from raydex.cluster.ray_session import ray_session
    from raydex.cluster.stage import run_stages

    with tempfile.TemporaryDirectory() as place:
        files = Path(place) / "files"
        files.mkdir()
        for number, image in enumerate([*images[:batch], *images]):
            (files / f"{number:05}.png").write_bytes(as_png(image) + b"%d" % number)  # equal ones would be read once
        ocr = {"layout": "none", "batch_images": batch, **options}
        stages = {name: {"batch_size": batch, "workers": 1} for name in ("parse", "observe")}
        settings = load_settings(None, {"embed": {"model": "none"}, "ocr": ocr, "stages": stages})
        lake, prints = Lake(Path(place) / "lake"), stage_fingerprints(settings)
        context = RunContext(str(lake.root), "run_bench", settings.workspace, settings, prints, datetime.now(UTC), str(lake.objects))
        work = make_plan(lake, [open_source(str(files))], load_ledger(lake), settings, prints).work
        batches = batches_of(number_epochs(work, 1, len(images) + batch)[0], settings)
        with ray_session() as resources:
            chain = build_stages(context, resources, None, len(batches))[:2]
            made = [row for table in run_stages(batches, chain) for row in table.to_pylist()][batch:]
    clock = "cpu_seconds" if options["device"] == "cpu" else "seconds"
    seconds = sum(one[clock] for row in made for one in row["metrics"] if one["stage"] == "observe")
    return len(made) / seconds, sum(len(seen["text"]) for row in made for seen in row["seen"])


def bare_rate(images: list[np.ndarray], read: Read, clock: Callable[[], float]) -> tuple[float, int]:
    start = clock()
    count = sum(read([image]) for image in images)
    return len(images) / (clock() - start), count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2)
    parser.add_argument("--small", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    clock = time.process_time if options.device == "cpu" else time.perf_counter
    readers = {"ours": make_ours(options.device, options.threads), "bare": make_bare(options.device, options.threads)}
    sets = {
        "pages": [make_page(seed) for seed in range(options.pages)],
        "small pictures": [make_small(seed) for seed in range(options.small)],
    }
    for read in readers.values():
        read([images[0] for images in sets.values()])
    for name, images in sets.items():
        print(f"{len(images)} {name}, {options.threads} threads, {options.device}")
        rates = take_turns(images, readers, options.rounds, clock)
        verdict(f"OCR of {name}: images/s ÷ bare engine", rates["ours"] / rates["bare"], 0.95)
    for name, images in sets.items():
        images = images * max(1, 6 // len(images))
        print(f"{len(images)} {name} as files through Ray")
        shown: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            for who, (rate, count) in (
                ("bare", bare_rate(images, readers["bare"], clock)),
                ("stage", ray_stage(images, max(1, len(images) // 3), {"device": options.device, "threads": options.threads})),
            ):
                shown.setdefault(who, []).append(rate)
                print(f"  {who} {rate:.2f} images/s ({count} characters)")
        medians = {who: statistics.median(rates) for who, rates in shown.items()}
        verdict(f"OCR stage on Ray, {name}: images/s ÷ bare engine", medians["stage"] / medians["bare"], 0.95)
    print(f"{options.small} small pictures of as many documents")
    gain = batching(sets["small pictures"], readers["ours"], options.rounds, clock)
    verdict("OCR: together ÷ one by one", gain, None if options.device == "cpu" else 1.0, "lines are recognised one by one on a CPU")


if __name__ == "__main__":
    main()
