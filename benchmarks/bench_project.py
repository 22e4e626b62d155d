"""Projection of a made-up repository: seconds a step and edges a second, Spark's start apart.

    python benchmarks/bench_project.py --files 5000 --calls 180 --syntax 200

makes `--files` Python modules in packages of 50, each with 20 functions and `--calls` call sites (two thirds through imports), and
`--syntax` rows a file of relations between CPG nodes that the projection must not read. The second figure repeats the projection in the
warm session.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from verdict import verdict

import raydex.jobs.project as project_module
from raydex.cluster.spark import SparkSettings, open_spark
from raydex.ir.ids import code_symbol_id, content_hash, record_id
from raydex.ir.rows import to_table
from raydex.jobs.project import ProjectStamp, project
from raydex.jobs.project_inputs import ProjectInputs

FUNCTIONS = 20
FILES_A_PACKAGE = 50
WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def make_tables(folder: Path, files: int, calls: int, syntax: int) -> tuple[ProjectInputs, int]:
    """Parquet files of the inputs, 500 records each, and the number of rows of `code_edges` between symbols."""
    chance = random.Random(7)
    paths = [f"src/pkg{at // FILES_A_PACKAGE}/mod{at}.py" for at in range(files)]
    paths += [f"src/pkg{at}/__init__.py" for at in range((files - 1) // FILES_A_PACKAGE + 1)]
    written: dict[str, list[Path]] = {}
    relations = 0
    for start in range(0, len(paths), 500):
        rows: dict[str, list[Mapping[str, Any]]] = {"records": [], "documents": [], "symbols": [], "code_edges": []}
        for at in range(start, min(start + 500, len(paths))):
            relations += add_file(rows, paths, at, calls if at < files else 0, syntax, chance)
        for name, part in rows.items():
            path = folder / f"{name}-{start}.parquet"
            columns = {key: [row.get(key) for row in part] for key in {key: None for row in part for key in row}}
            pq.write_table(to_table(name, columns), path, compression="zstd", write_page_checksum=True)
            written.setdefault(name, []).append(path)
    return ProjectInputs({name: tuple(found) for name, found in written.items()}), relations


def add_file(rows: dict[str, list[Mapping[str, Any]]], paths: list[str], at: int, calls: int, syntax: int, chance: random.Random) -> int:
    """Rows of one file; returns how many relations between symbols it has."""
    path = paths[at]
    record, revision = record_id("w", "bench", path), content_hash(path.encode())
    common = {"record_id": record, "content_hash": revision}
    place = {"source_name": "bench", "workspace": "w", "repository": "bench", "path": path, "media_type": "text/x-python"}
    rows["records"].append({**common, **place, "state": "indexed", "cas_uri": f"cas:{revision}"})
    rows["documents"].append({**common, "title": path, "language": "python"})
    module = symbol(path, "module", "")
    functions = [symbol(path, "function", f"f{n}") for n in range(FUNCTIONS if calls else 0)]
    described = [(module, "module", path[:-3].replace("/", ".")), *[(id, "function", f"f{n}") for n, id in enumerate(functions)]]
    for id, kind, name in described:
        rows["symbols"].append(
            {**common, "symbol_id": id, "kind": kind, "name": name, "qualified_name": name, "language": "python", "path": path}
        )
    edges = [edge(common, module, "CONTAINS", n, target=id) for n, id in enumerate(functions)]
    imported = [chance.choice(paths) for _ in range(10)] if calls else []
    names = [f"{other[4:-3].replace('/', '.').removesuffix('.__init__')}:f{chance.randrange(FUNCTIONS)}" for other in imported]
    edges += [
        edge(common, module, "IMPORTS", n, label=f"g{n}", candidates=[name, f"{name.replace(':', '.')}:"]) for n, name in enumerate(names)
    ]
    for n in range(calls):
        source = functions[n % FUNCTIONS]
        if n % 3:
            edges.append(edge(common, source, "CALLS", n + 100, candidates=[chance.choice(names)]))
        else:
            edges.append(edge(common, source, "CALLS", n + 100, target=chance.choice(functions)))
    rows["code_edges"] += edges
    rows["code_edges"] += [
        {**common, "edge_id": f"x{at}-{n}", "source": f"n{n}", "target": f"n{n + 1}", "relation": "AST"} for n in range(syntax)
    ]
    return len(edges)


def symbol(path: str, kind: str, name: str) -> str:
    return code_symbol_id("w", "bench", "python", path, kind, name)


def edge(
    common: Mapping[str, Any],
    source: str,
    relation: str,
    number: int,
    *,
    target: str | None = None,
    candidates: list[str] | None = None,
    label: str = "",
) -> dict[str, Any]:
    return {
        **common,
        "edge_id": f"{source}{relation}{number}",
        "source": source,
        "target": target,
        "relation": relation,
        "confidence": "EXTRACTED" if target else "AMBIGUOUS",
        "rule": "local_name" if target else "import",
        "label": label or str(number),
        "candidates": candidates or [],
        "line": number + 1,
        "char_start": number * 10,
        "char_end": number * 10 + 5,
        "excerpt_hash": content_hash(f"{source}{number}".encode()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--calls", type=int, default=170)
    parser.add_argument("--syntax", type=int, default=200)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a Spark setting")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inputs, relations = make_tables(folder, given.files, given.calls, given.syntax)
        print(f"{given.files} files, {relations} relations between symbols, {given.files * given.syntax} rows between nodes", flush=True)
        clock = time.perf_counter()
        settings = SparkSettings(settings=dict(item.split("=", 1) for item in given.set))
        with open_spark(folder / "spark", given.cores, given.memory, settings) as spark:
            print(f"Spark's start: {time.perf_counter() - clock:.1f} s")
            time_steps()
            for turn in range(given.rounds):
                clock = time.perf_counter()
                outputs = project(spark, inputs, ProjectStamp("fp", "run", 1, WHEN), folder / "out")
                seconds = time.perf_counter() - clock
                print(f"projection {turn + 1}: {seconds:.1f} s, {relations / seconds:,.0f} relations/s, {outputs.counts}")
    verdict("projection, last round: relations/s", relations / seconds, None)


def time_steps() -> None:
    """Prints the seconds of each step that is stored."""
    plain = project_module.stored

    def timed(frame: Any, folder: Path) -> Any:
        clock = time.perf_counter()
        frame = plain(frame, folder)
        print(f"  {folder.name}: {time.perf_counter() - clock:.1f} s")
        return frame

    project_module.stored = timed


if __name__ == "__main__":
    main()
