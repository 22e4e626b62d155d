"""Chunking: MB/s per core of ours beside chonkie's and langchain's chunkers and the tokenizer alone, same tokenizer file, one process.

    python benchmarks/bench_chunk.py [FOLDER] [--tokens N] [--rounds N]

Measured over the text files below FOLDER (*.md, *.txt), else over generated text. The contestants take turns file by file, one thread
each; a contestant's time is the sum over the files of its fastest round, as CPU time. No contestant sees a file twice: each round makes
new ones. Ours is stated twice: with a tokenizer that remembers the words of the other files, as a worker's does, and cold. Blocks
(paragraphs) are made before the clock starts: that is the parser's work; what ours does more (ids, summaries, locators, parents, graph)
is inside.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from verdict import verdict

from raydex.kernels.chunk import ChunkOptions, ChunkSource, chunk
from raydex.kernels.parse import parse
from raydex.kernels.request import ParseRequest
from raydex.kernels.tokens import Tokenizer, default_tokenizer_path, windows

Contestant = tuple[str, Callable[[], object]]
WARM = ("ours structure (plain)", "ours recursive", "ours fixed")
COLD = ("ours structure, cold", "ours recursive, cold")


def generate(words: int) -> str:
    """Paragraphs of sentences over a vocabulary with a long tail."""
    chance = random.Random(7)
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    vocabulary = ["".join(chance.choice(letters[:18]) for _ in range(chance.randint(2, 10))) for _ in range(20_000)]
    out: list[str] = []
    for k in range(words):
        out.append(vocabulary[int(len(vocabulary) * chance.random() ** 3)])
        if k % 17 == 16:
            out[-1] += ".\n\n" if k % 136 == 135 else "."
    return " ".join(out)


def collect(folder: Path | None) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if folder is not None:
        for path in sorted([*folder.rglob("*.md"), *folder.rglob("*.txt")]):
            found.append((path.name, path.read_text("utf-8", "replace")))
    return found or [(f"generated-{k}", generate(40_000)) for k in range(3)]


def to_source(name: str, text: str, media_type: str) -> ChunkSource:
    parsed = parse(ParseRequest("rec_b", "h", name, media_type, text.encode()))
    if parsed.document is None:
        raise SystemExit(f"{name}: {parsed.rejects}")
    return ChunkSource("rec_b", "h", name, parsed.document.title, media_type, "", "", parsed.blocks)


def contestants(name: str, text: str, tokens: int, others: list[str]) -> list[Contestant]:
    """New ones; only our warm ones have seen the other texts."""
    import tokenizers
    from chonkie import RecursiveChunker, TokenChunker
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    inner = tokenizers.Tokenizer.from_file(str(default_tokenizer_path()))
    inner.no_padding()
    inner.no_truncation()
    plain = to_source(name, text, "text/plain")
    marked = to_source(name, text, "text/markdown")
    pieces = [piece for piece in windows(text, 2_000) if piece]
    recursive = RecursiveChunker(inner, chunk_size=tokens)
    fixed = TokenChunker(inner, chunk_size=tokens)
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=tokens, chunk_overlap=0, length_function=lambda part: len(inner.encode(part, add_special_tokens=False))
    )

    def ours(source: ChunkSource, strategy: str, warm: bool) -> Callable[[], object]:
        tokenizer = Tokenizer()
        if warm:
            tokenizer.count_many(others)
        return lambda: chunk(source, ChunkOptions(strategy, max_tokens=tokens), tokenizer)

    return [
        ("ours structure (plain)", ours(plain, "structure", True)),
        ("ours structure (markdown)", ours(marked, "structure", True)),
        ("ours recursive", ours(plain, "recursive", True)),
        ("ours fixed", ours(plain, "fixed", True)),
        ("ours structure, cold", ours(plain, "structure", False)),
        ("ours recursive, cold", ours(plain, "recursive", False)),
        ("chonkie recursive", lambda: recursive.chunk(text)),
        ("chonkie token", lambda: fixed.chunk(text)),
        ("langchain recursive", lambda: splitter.split_text(text)),
        ("tokenizer alone, batches", lambda: sum(map(len, inner.encode_batch_fast(pieces)))),
        ("tokenizer alone, whole file", lambda: len(inner.encode(text))),
    ]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("folder", nargs="?", type=Path)
    arguments.add_argument("--tokens", type=int, default=256)
    arguments.add_argument("--rounds", type=int, default=3)
    chosen = arguments.parse_args()
    texts = collect(chosen.folder)
    total: dict[str, float] = {}
    for name, text in texts:
        best: dict[str, float] = {}
        others = [other for _, other in texts if other is not text]
        for _ in range(chosen.rounds):
            for label, run in contestants(name, text, chosen.tokens, others):
                clock = time.process_time()
                run()
                spent = time.process_time() - clock
                best[label] = min(spent, best.get(label, spent))
        for label, spent in best.items():
            total[label] = total.get(label, 0.0) + spent
    size = sum(len(text.encode()) for _, text in texts) / 1e6
    print(f"{len(texts)} files, {size:.2f} MB, {chosen.tokens} tokens a chunk, {chosen.rounds} rounds")
    rate = {label: size / spent for label, spent in total.items()}
    for label, value in rate.items():
        print(f"{label:30s} {value:8.2f} MB/s")
    against = {
        "chonkie recursive": rate["chonkie recursive"],
        "chonkie token": rate["chonkie token"],
        "langchain": rate["langchain recursive"],
        "the tokenizer alone": max(rate["tokenizer alone, batches"], rate["tokenizer alone, whole file"]),
    }
    for ours in (*WARM, *COLD):
        print(f"{ours:30s} " + "  ".join(f"{rate[ours] / value:6.1f}x {label}" for label, value in against.items()))
    for state, strategies, why in (
        ("warm", WARM, "ids, summaries, locators, parents and the graph are made in Python, inside the time"),
        ("cold", COLD, "a tokenizer that has seen no text yet encodes each distinct word by a call of its own"),
    ):
        slowest = min(rate[ours] for ours in strategies)
        for label, reach in zip(against, (1.0, 1.0, 2.0, 0.8), strict=True):
            verdict(f"chunking, our slowest strategy, {state}: MB/s ÷ {label}", slowest / against[label], reach, why)


if __name__ == "__main__":
    main()
