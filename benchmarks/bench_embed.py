"""Embedding: texts/s of ours beside a bare sentence-transformers loop over length-sorted batches, and what each costs to start.

    python benchmarks/bench_embed.py [FOLDER] [--texts N] [--rounds N] [--threads N] [--device D]

The texts are the embedding texts of chunks of the files below FOLDER (*.md, *.txt), else of generated text. Both run the same packaged
model in one process, taking turns in slices of 64 texts, so that a change of the machine's load meets both; the median over rounds of the
ratio of their times counts. Start-up is measured in new processes. The largest difference between the vectors is printed too.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from bench_chunk import collect, to_source
from verdict import verdict

from raydex.kernels.chunk import ChunkOptions, chunk
from raydex.kernels.embed import EmbedOptions, load_embedder
from raydex.kernels.tokens import default_model_folder, load_tokenizer

STARTS = {
    "ours": "from raydex.kernels.embed import load_embedder; load_embedder()",
    "sentence-transformers": "import sys; from sentence_transformers import SentenceTransformer as S; S(sys.argv[1], device='cpu')",
}


def sample(folder: Path | None, count: int) -> list[str]:
    texts: list[str] = []
    for name, text in collect(folder):
        result = chunk(to_source(name, text, "text/markdown"), ChunkOptions(), load_tokenizer())
        texts.extend(one.embedding_text for one in result.chunks if one.embedding_text)
    random.Random(5).shuffle(texts)
    return texts[:count]


def start_seconds(code: str) -> float:
    clock = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, str(default_model_folder())], check=True, capture_output=True)
    return time.perf_counter() - clock


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("folder", nargs="?", type=Path)
    arguments.add_argument("--texts", type=int, default=256)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--threads", type=int, default=0)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--no-start", action="store_true")
    chosen = arguments.parse_args()
    if not chosen.no_start:
        for label, code in STARTS.items():
            print(f"start of {label:24s} {min(start_seconds(code) for _ in range(2)):6.1f} s")

    from sentence_transformers import SentenceTransformer

    texts = sample(chosen.folder, chosen.texts)
    embedder = load_embedder(EmbedOptions(threads=chosen.threads, device=chosen.device))
    assert embedder is not None
    bare = SentenceTransformer(str(default_model_folder()), device=chosen.device)
    slices = [texts[at : at + 64] for at in range(0, len(texts), 64)]

    def ours(batch: list[str]) -> np.ndarray:
        return embedder.embed(batch)

    def theirs(batch: list[str]) -> np.ndarray:
        order = sorted(range(len(batch)), key=lambda k: len(batch[k]), reverse=True)
        rows = [
            bare.encode([batch[k] for k in order[at : at + 32]], batch_size=32, show_progress_bar=False) for at in range(0, len(order), 32)
        ]
        out = np.empty((len(batch), 384), np.float32)
        out[order] = np.concatenate(rows)
        return out

    ours(slices[0][:8])
    theirs(slices[0][:8])
    ratios: list[float] = []
    difference = 0.0
    best = {"ours": float("inf"), "theirs": float("inf")}
    for turn in range(chosen.rounds):
        spent = {"ours": 0.0, "theirs": 0.0}
        for batch in slices:
            made: dict[str, np.ndarray] = {}
            for label, run in (("ours", ours), ("theirs", theirs)) if turn % 2 == 0 else (("theirs", theirs), ("ours", ours)):
                clock = time.perf_counter()
                made[label] = run(batch)
                spent[label] += time.perf_counter() - clock
            difference = max(difference, float(np.abs(made["ours"] - made["theirs"]).max()))
        ratios.append(spent["theirs"] / spent["ours"])
        best = {label: min(best[label], spent[label]) for label in best}
    tokens = statistics.mean(load_tokenizer().count_many(texts))
    print(f"{len(texts)} texts of {tokens:.0f} tokens on average, {chosen.rounds} rounds, device {chosen.device}")
    print(f"ours                          {len(texts) / best['ours']:8.1f} texts/s")
    print(f"bare sentence-transformers    {len(texts) / best['theirs']:8.1f} texts/s")
    print(f"ratio (median of rounds)      {statistics.median(ratios):8.2f}x")
    print(f"largest difference            {difference:8.1e}")
    verdict("embedding: texts/s ÷ bare sentence-transformers", statistics.median(ratios), 0.95)


if __name__ == "__main__":
    main()
