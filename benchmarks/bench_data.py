"""Data files → records that a chunker takes: MB/s of ours beside a bare reader, and the most memory for large files read in segments.

    python benchmarks/bench_data.py [--mb N] [--rounds N] [--large MB]

Ours is the kernel and the making of its tables' rows, in one process on one core; a peer only reads: orjson, csv, polars, lxml, lines.
The contestants take turns and the median of the rounds counts, as CPU time. Large files are made in a temporary folder; they are
cut and parsed segment by segment in a process of its own, whose peak counts.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from verdict import verdict

from raydex.ir.ids import content_hash
from raydex.ir.rows import Stamp, parse_tables
from raydex.kernels.limits import Limits
from raydex.kernels.parse import parse
from raydex.kernels.request import ParseRequest

STAMP = Stamp("rec_bench", "hash", "", "", 0, datetime.now(UTC))
TYPES = {
    "csv": "text/csv",
    "quoted": "text/csv",
    "jsonl": "application/jsonl",
    "json": "application/json",
    "xml": "application/xml",
    "log": "text/x-log",
}
LONG_NOTE = b'"' + b"a long note, of some words, " * 8 + b'%d"'  # so that 1 GB is less than limits.records
REACH = {"csv": 30.0, "quoted": 30.0, "json": 10.0, "jsonl": 10.0}
WHY = "the reader of the standard library takes half of the time, and the cells are kept as JSON beside the text"


def csv_rows(size: int, note: bytes = b'"a note, with a comma, %d"') -> Iterator[bytes]:
    yield b"id,name,city,amount,note\n"
    made = n = 0
    while made < size:
        rows = b"".join(b"%d,name %d,City %d,%d.50,%b\n" % (k, k, k % 100, k, note % k) for k in range(n, n + 2_000))
        n, made = n + 2_000, made + len(rows)
        yield rows


def json_values(size: int) -> Iterator[bytes]:
    made = n = 0
    note = "a longer note that says a thing or two about a pump, its valves and what was measured on the day. " * 3
    while made < size:
        one = json.dumps({"id": n, "name": f"name {n}", "tags": ["a", "b"], "inner": {"x": n, "on": True}, "note": note}).encode()
        n, made = n + 1, made + len(one) + 1
        yield one


def json_lines(size: int) -> Iterator[bytes]:
    return (one + b"\n" for one in json_values(size))


def make(kind: str, size: int) -> bytes:
    if kind == "csv":
        return b"".join(csv_rows(size, b"a note without a comma %d"))
    if kind == "quoted":
        return b"".join(csv_rows(size))
    if kind == "jsonl":
        return b"".join(json_lines(size))
    if kind == "json":
        return b"[" + b",".join(json_values(size)) + b"]"
    if kind == "xml":
        row = '<row id="{0}"><name>name {0}</name><city>City</city><note>a note of some words</note></row>\n'
        return ("<rows>" + "".join(row.format(n) for n in range(size // 90)) + "</rows>").encode()
    return "".join(
        f"2026-01-01 10:{n // 60 % 60:02}:{n % 60:02} INFO app.part: a thing happened to {n}\n" for n in range(size // 57)
    ).encode()


def bare(kind: str) -> tuple[str, Callable[[bytes], object]]:
    """A peer that reads and keeps what it has read."""
    import orjson
    from lxml import etree

    def read_xml(data: bytes) -> object:
        for _, element in etree.iterparse(io.BytesIO(data), resolve_entities=False):
            element.clear()
        return None

    return {
        "csv": ("csv.reader", lambda data: list(csv.reader(io.StringIO(data.decode(), newline="")))),
        "quoted": ("csv.reader", lambda data: list(csv.reader(io.StringIO(data.decode(), newline="")))),
        "json": ("orjson.loads", orjson.loads),
        "jsonl": ("orjson.loads", lambda data: [orjson.loads(line) for line in data.splitlines()]),
        "xml": ("lxml.iterparse", read_xml),
        "log": ("split", lambda data: data.decode().splitlines()),
    }[kind]


def polars_csv(data: bytes) -> object:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    import polars

    return polars.read_csv(io.BytesIO(data))


def ours(kind: str, data: bytes) -> object:
    request = ParseRequest("rec_bench", content_hash(data), f"data.{kind}", TYPES[kind], data, limits=Limits(blocks=10_000_000))
    parsed = parse(request)
    assert parsed.document is not None
    return parse_tables(parsed, STAMP)


def timed(work: Callable[[bytes], object], data: bytes) -> float:
    start = time.process_time()
    work(data)
    return time.process_time() - start


def compare(kind: str, size: int, rounds: int) -> None:
    data = make(kind, size)
    name, peer = bare(kind)
    contestants: dict[str, Callable[[bytes], object]] = {"raydex": lambda data: ours(kind, data), name: peer}
    if TYPES[kind] == "text/csv":
        contestants["polars.read_csv"] = polars_csv
    seconds: dict[str, list[float]] = {who: [] for who in contestants}
    for work in contestants.values():
        work(make(kind, 100_000))
    for _ in range(rounds):
        for who, work in contestants.items():
            seconds[who].append(timed(work, data))
    rates = {who: len(data) / statistics.median(times) / 1e6 for who, times in seconds.items()}
    shown = "   ".join(f"{who} {rate:8.1f} MB/s" for who, rate in rates.items())
    print(f"{kind:6} {len(data) / 1e6:5.1f} MB   {shown}   ratio {rates['raydex'] / rates[name]:.2f}", flush=True)
    if kind in REACH:
        verdict(
            f"{kind.upper()}: MB/s per core", rates["raydex"], REACH[kind], WHY if TYPES[kind] == "text/csv" else "the cause is not known"
        )


def parse_in_segments(path: str, kind: str, out: multiprocessing.connection.Connection) -> None:
    """In a process of its own: (segments, records, seconds, peak in MB)."""
    from raydex.kernels.stream import plan_stream

    start = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        descriptor = file.fileno()
        plan = plan_stream(lambda at, size: os.pread(descriptor, size, at), os.path.getsize(path), TYPES[kind], records=Limits().records)
        cut = time.perf_counter() - start
        for segment in plan.segments:
            data = os.pread(descriptor, segment.place.end - segment.place.start, segment.place.start)
            request = ParseRequest("rec_bench", segment.content_hash, f"f.{kind}!/part", TYPES[kind], data, segment=segment)
            parse_tables(parse(request), STAMP)
    status = Path("/proc/self/status").read_text()  # getrusage would count what the parent had
    peak = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024
    out.send((len(plan.segments), plan.records, cut, time.perf_counter() - start, peak))


def measure_large(kind: str, size: int, folder: Path) -> None:
    path = folder / f"large.{kind}"
    with path.open("wb") as file:
        for part in csv_rows(size, LONG_NOTE) if kind == "csv" else json_lines(size):
            file.write(part)
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=parse_in_segments, args=(str(path), kind, theirs))
    process.start()
    theirs.close()
    segments, records, cut, seconds, peak = mine.recv()
    process.join()
    large = path.stat().st_size / 1e6
    path.unlink()
    print(f"{kind:6} {large:,.0f} MB, {records:,} records in {segments} segments: cut {cut:.1f} s, all {seconds:.1f} s, peak {peak:.0f} MB")
    verdict(f"{kind.upper()} of {large:,.0f} MB: peak memory in MB", peak, 300, at_most=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", type=float, default=1_000, help="MB of the large files; 0 for none")
    options = parser.parse_args()
    for kind in TYPES:
        compare(kind, int(options.mb * 1e6), options.rounds)
    if options.large:
        with tempfile.TemporaryDirectory() as folder:
            for kind in ("csv", "jsonl"):
                measure_large(kind, int(options.large * 1e6), Path(folder))


if __name__ == "__main__":
    main()
