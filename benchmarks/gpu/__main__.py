"""The model stages on a CPU and, beside it, on a GPU: pages/s, images/s, rows/s, and the share of the time that each stage is busy.

    python benchmarks/gpu [--device cpu|cuda] [--items N] [--seconds S] [--only pages,ocr,embed,caption] [--caption-model FOLDER]

Needs no network: documents are drawn here, and the models are those of the installed packages. Each device is warmed up before its clock
runs, and the warm-up is printed apart. Pages of one size, images of like size and texts of like length go together; on CUDA the embedding
and captions compute in half precision. A section ends when its share of `--seconds` is over, and counts what it did by then. What the
machine cannot do (an onnxruntime without CUDA, no caption model) is said, never left out. What to carry to a GPU machine: README.md beside.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from flow import Flow, gather, run_flow
from office_files import SENTENCE
from page_images import by_size, make_page, make_scan, make_small

from raydex.ir.errors import ConfigError, InputError
from raydex.kernels.embed import EmbedOptions, load_embedder
from raydex.kernels.layout import load_layout_engine
from raydex.kernels.limits import Limits
from raydex.kernels.ocr import load_ocr_engine
from raydex.kernels.pdf_render import PageImage, render_pages

SECTIONS = ("pages", "ocr", "embed", "caption")
BATCH = {"cpu": 4, "cuda": 16}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--items", type=int, default=200, help="pages, images; texts are ten times as many")
    parser.add_argument("--seconds", type=float, default=400.0, help="for all sections and devices together, warm-up and loading apart")
    parser.add_argument("--lines", type=int, default=24, help="lines of text on a page, and a fourth as many rows of a table")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default=",".join(SECTIONS))
    parser.add_argument("--caption-model", default="", help="folder of an image-text-to-text model of transformers")
    parser.add_argument("--caption-prompt", default="<image>\nDescribe the image.")
    parser.add_argument("--caption-tokens", type=int, default=32)
    options = parser.parse_args()
    wanted = [name for name in SECTIONS if name in options.only.split(",")]
    devices = ["cpu"] if options.device == "cpu" else ["cpu", options.device]
    say_machine(devices)
    limit = options.seconds / max(1, len(wanted) * len(devices))
    sections: dict[str, Callable[[str, argparse.Namespace, float], None]] = {
        "pages": pages,
        "ocr": images,
        "embed": rows,
        "caption": captions,
    }
    for name in wanted:
        for device in devices:
            try:
                sections[name](device, options, limit)
            except (ConfigError, InputError) as error:
                print(f"{name:<8}{device:<8}not measured: {error}", flush=True)


def say_machine(devices: list[str]) -> None:
    from onnxruntime import get_available_providers

    print(f"Python {sys.version.split()[0]}, onnxruntime with {', '.join(get_available_providers())}")
    if devices[-1] != "cpu":
        import torch

        found = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
        print(f"torch {torch.__version__}, CUDA device: {found}")


def warmed(load: Callable[[], Any], use: Callable[[Any], object]) -> tuple[Any, str]:
    """What was loaded and used once, and how long that took."""
    start = time.perf_counter()
    made = load()
    loaded = time.perf_counter()
    use(made)
    return made, f"load {loaded - start:.1f} s, warm-up {time.perf_counter() - loaded:.1f} s"


def report(name: str, device: str, unit: str, flow: Flow, started: str) -> None:
    shares = ", ".join(f"{stage} {100 * busy / flow.wall:.0f} %" for stage, busy in flow.busy.items())
    cut = "" if flow.ended else ", cut off by the time limit"
    print(f"{name:<8}{device:<8}{flow.done / flow.wall:>10.2f} {unit}/s over {flow.done}{cut}; busy: {shares}; {started}", flush=True)


def until(items: Iterable[Any], limit: float) -> Iterator[Any]:
    """Items, until the time is over: counted from the first that is asked for."""
    end = time.perf_counter() + limit
    for item in items:
        yield item
        if time.perf_counter() > end:
            return


def pages(device: str, options: argparse.Namespace, limit: float) -> None:
    """Render, layout and OCR of scanned pages, the three stages at work at once."""
    first = make_page(0, options.lines)
    start_layout, layout_times = warmed(
        lambda: load_layout_engine("rapid-layout", device, options.threads), lambda made: made.find([first])
    )
    engine, times = warmed(lambda: load_ocr_engine("rapidocr", device, options.threads), lambda made: made.read([first]))
    scan = make_scan(min(options.items, 24), options.lines)
    numbers = [1 + at % 24 for at in range(options.items)]

    def render() -> Iterator[PageImage]:
        for at in range(0, len(numbers), 24):
            yield from render_pages(scan, numbers[at : at + 24], Limits())

    def find(batch: list[PageImage]) -> list[Any]:
        pixels = [page.pixels for page in batch]
        start_layout.find(pixels)
        return pixels

    size = lambda page: page.pixels.shape  # noqa: E731
    batches = gather(render(), BATCH["cpu" if device == "cpu" else "cuda"], size)
    flow = run_flow("render", until(batches, limit), [("layout", find), ("OCR", engine.read)], len)
    flow.ended = flow.done == options.items
    report("pages", device, "pages", flow, f"layout {layout_times}; OCR {times}")


def images(device: str, options: argparse.Namespace, limit: float) -> None:
    """OCR of small pictures of as many documents, those of like size together."""
    drawn = [make_small(seed) for seed in range(options.items)]
    batches = by_size(drawn, 4 * BATCH["cpu" if device == "cpu" else "cuda"])
    engine, times = warmed(lambda: load_ocr_engine("rapidocr", device, options.threads), lambda made: made.read(batches[-1][:1]))
    flow = run_flow("batches", until(batches, limit), [("OCR", engine.read)], len)
    flow.ended = flow.done == options.items
    report("ocr", device, "images", flow, times)


def rows(device: str, options: argparse.Namespace, limit: float) -> None:
    """Vectors of texts of many lengths; the embedder orders each slice by length."""
    texts = [f"{seed} {SENTENCE * (1 + seed * 7 % 12)}" for seed in range(10 * options.items)]
    slices = [texts[at : at + 512] for at in range(0, len(texts), 512)]
    load = lambda: load_embedder(EmbedOptions(device=device, threads=options.threads, batch_size=512))  # noqa: E731
    embedder, times = warmed(load, lambda made: made.embed(texts[:64]))
    flow = run_flow("slices", until(slices, limit), [("embed", embedder.embed)], len)
    flow.ended = flow.done == len(texts)
    report("embed", device, "rows", flow, times)


def captions(device: str, options: argparse.Namespace, limit: float) -> None:
    """Captions by a local model, at most `--caption-tokens` each. A model with random weights measures the plumbing only."""
    if not options.caption_model:
        print(f"caption {device:<8}not measured: no --caption-model was given, and no package ships one", flush=True)
        return
    write, times = warmed(lambda: load_captioner(options, device), lambda made: made([make_small(0)]))
    batches = by_size([make_small(seed) for seed in range(options.items)], BATCH["cpu" if device == "cpu" else "cuda"])
    flow = run_flow("batches", until(batches, limit), [("caption", write)], len)
    flow.ended = flow.done == options.items
    report("caption", device, "images", flow, times)


def load_captioner(options: argparse.Namespace, device: str) -> Callable[[list[np.ndarray]], list[str]]:
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    processor = AutoProcessor.from_pretrained(options.caption_model, local_files_only=True)
    kind = torch.float32 if device == "cpu" else torch.float16
    model = AutoModelForImageTextToText.from_pretrained(options.caption_model, local_files_only=True, dtype=kind).to(device).eval()

    def write(batch: list[np.ndarray]) -> list[str]:
        inputs = processor(images=list(batch), text=[options.caption_prompt] * len(batch), return_tensors="pt", padding=True)
        with torch.inference_mode():
            made = model.generate(**inputs.to(device, kind), max_new_tokens=options.caption_tokens, do_sample=False)
        return [str(text) for text in processor.batch_decode(made[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)]

    return write


if __name__ == "__main__":
    main()
