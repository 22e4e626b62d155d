"""Loading the stores beside their bare clients on the same rows: our load ÷ bare client insert, our build ÷ bare COPY (reach: ≥ 0.9 each).

    python benchmarks/bench_stores.py [--vectors 20000] [--nodes 200000] [--edges 1000000] [--rounds 3] [--json FILE]

Both sides take turns in processes of their own, and the best round of each counts, as wall time and as CPU time (both engines run in the
process, so CPU time is fair on a busy machine). The bare insert gets finished rows and checks nothing; the bare COPY reads Parquet files
that were written before the clock starts, with the columns that ours writes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from verdict import verdict

DIMENSION = 384
WORDS = (
    "the",
    "pump",
    "of",
    "cooling",
    "circuit",
    "keeps",
    "flow",
    "within",
    "limits",
    "when",
    "valve",
    "sensor",
    "pressure",
    "temperature",
)


class Seconds(NamedTuple):
    wall: float
    cpu: float


class Clock:
    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Seconds:
        return Seconds(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def chunk_rows(count: int) -> pa.Table:
    """Chunks of about 600 characters with unit vectors, in the columns that the vector store takes."""
    from raydex.cluster.vector_rows import ROW_SCHEMA

    rng = np.random.default_rng(7)
    vectors = rng.standard_normal((count, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = [" ".join(WORDS[word] for word in row) for row in rng.integers(0, len(WORDS), (count, 100))]
    columns: dict[str, Any] = {
        "id": [f"chk_{at:032x}" for at in range(count)],
        "doc_id": [f"rec_{at // 20:032x}" for at in range(count)],
        "doc_name": [f"Manual {at // 20}" for at in range(count)],
        "content": texts,
        "section_title": ["Cooling"] * count,
        "section_path": [["Manual", "Circuit", "Cooling"]] * count,
        "page_number": [at % 90 for at in range(count)],
        "block_type": ["section"] * count,
        "source_type": ["text/html"] * count,
        "metadata_json": [f'{{"path":"docs/{at // 20}.html","locators":["char:{at}-{at + 600}"]}}' for at in range(count)],
        "embedding": pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * DIMENSION), pa.array(vectors.reshape(-1))),
    }
    arrays = [pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(count, f.type) for f in ROW_SCHEMA]
    return pa.Table.from_arrays(arrays, schema=ROW_SCHEMA)


def load_ours(folder: str, count: int) -> Seconds:
    from raydex.cluster.vectors import VectorStore

    rows = chunk_rows(count)
    with VectorStore(f"{folder}/ours.db", "c", DIMENSION) as store:
        store._ensure_collection()
        clock = Clock()
        result = store.load(1, (rows.slice(at, 10_000) for at in range(0, count, 10_000)), [])
        seconds = clock.read()
        assert (result.inserted, result.failed) == (count, [])
    return seconds


def insert_bare(folder: str, count: int) -> Seconds:
    """The same collection and rows, as the client's documentation does it: `insert` in batches, then `flush`."""
    from raydex.cluster.vector_rows import checked_rows
    from raydex.cluster.vectors import BATCH_ROWS, OPEN_END, VectorStore

    rows = [{**row, "gen_from": 1, "gen_to": OPEN_END} for row in checked_rows(chunk_rows(count), DIMENSION)[0]]
    with VectorStore(f"{folder}/bare.db", "c", DIMENSION) as store:
        store._ensure_collection()
        clock = Clock()
        for at in range(0, count, BATCH_ROWS):
            store._client.insert("c", rows[at : at + BATCH_ROWS])
        store._client.flush("c")
        return clock.read()


def graph_tables(nodes: int, edges: int) -> tuple[pa.Table, pa.Table, pa.Table]:
    """A random code graph: three of four nodes have a few edges, ends spread at random; one evidence an edge."""
    rng = np.random.default_rng(11)
    ids = pa.array([f"nod_{at:032x}" for at in range(nodes)])
    names = [f"function_{at}" for at in range(nodes)]
    node_table = pa.table(
        {
            "node_id": ids,
            "kind": ["function"] * nodes,
            "name": names,
            "qualified_name": [f"package.module_{at // 50}.{name}" for at, name in enumerate(names)],
            "path": [f"package/module_{at // 50}.py" for at in range(nodes)],
            "repository": ["repository"] * nodes,
            "properties": ['{"language":"python"}'] * nodes,
        }
    )
    evidence_ids = [f"evd_{at:032x}" for at in range(edges)]
    edge_table = pa.table(
        {
            "edge_id": [f"edg_{at:032x}" for at in range(edges)],
            "source": ids.take(pa.array(rng.integers(0, nodes, edges))),
            "target": ids.take(pa.array(rng.integers(0, nodes, edges))),
            "relation": pa.array(["CALLS", "IMPORTS", "CONTAINS", "READS"]).take(pa.array(rng.integers(0, 4, edges))),
            "confidence": ["EXTRACTED"] * edges,
            "evidence_ids": pa.ListArray.from_arrays(pa.array(np.arange(edges + 1, dtype=np.int32)), pa.array(evidence_ids)),
        }
    )
    evidence = {"evidence_id": evidence_ids, "source_record_id": [f"rec_{at // 100:032x}" for at in range(edges)]}
    evidence["locator"] = [f"char:{at}-{at + 40}" for at in range(edges)]
    evidence["excerpt_hash"] = [f"{at:064x}" for at in range(edges)]
    return node_table, edge_table, pa.table(evidence)


def build_ours(folder: str, nodes: int, edges: int) -> Seconds:
    from raydex.cluster.graph_store import Marker, build_graph

    tables = graph_tables(nodes, edges)
    clock = Clock()
    counts = build_graph(f"{folder}/ours.lbug", *tables, Marker(1, "m", "p"))
    seconds = clock.read()
    assert counts[:2] == (nodes, edges)
    return seconds


def copy_bare(folder: str, nodes: int, edges: int) -> Seconds:
    """The same rows and tables by COPY from Parquet."""
    import ladybug

    from raydex.cluster.graph_schema import ENTITY, EVIDENCE, conformed, ddl

    node_table, edge_table, evidence = graph_tables(nodes, edges)
    files = {"Entity": conformed(node_table, ENTITY), "Evidence": conformed(evidence, EVIDENCE)}
    columns = ["source", "target", "edge_id", "confidence"]
    for relation in ("CALLS", "IMPORTS", "CONTAINS", "READS"):
        part = edge_table.filter(pc.equal(edge_table.column("relation"), relation))
        files[relation] = part.select(columns).append_column("evidence_ids", pc.binary_join(part.column("evidence_ids"), ","))
    for name, table in files.items():
        pq.write_table(table, f"{folder}/{name}.parquet", row_group_size=65_536)
    clock = Clock()
    database = ladybug.Database(f"{folder}/bare.lbug")
    connection = ladybug.Connection(database)
    for statement in ddl():
        connection.execute(statement)
    for name in files:
        connection.execute(f"COPY {name} FROM '{folder}/{name}.parquet'")
    connection.close()
    database.close()
    return clock.read()


def _timed(task: Callable[..., Seconds], arguments: tuple[int, ...], answer: Any) -> None:
    folder = tempfile.mkdtemp(prefix="bench-stores-")
    try:
        answer.send(task(folder, *arguments))
    finally:
        shutil.rmtree(folder)


def in_a_process(task: Callable[..., Seconds], *arguments: int) -> Seconds:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_timed, args=(task, arguments, theirs))
    process.start()
    theirs.close()
    seconds: Seconds = ours.recv()
    process.join()
    return seconds


def compare(
    name: str, rows: int, ours: Callable[..., Seconds], bare: Callable[..., Seconds], rounds: int, *arguments: int
) -> dict[str, float]:
    """They take turns, so that a busy machine is unfair to both."""
    pairs = [(in_a_process(ours, *arguments), in_a_process(bare, *arguments)) for _ in range(rounds)]
    best = [Seconds(min(pair[side].wall for pair in pairs), min(pair[side].cpu for pair in pairs)) for side in (0, 1)]
    figures = {"rows_per_s": rows / best[0].wall, "bare_rows_per_s": rows / best[1].wall}
    figures |= {"ratio": best[1].wall / best[0].wall, "cpu_ratio": best[1].cpu / best[0].cpu}
    print(f"{name}: ours {figures['rows_per_s']:,.0f} rows/s, bare {figures['bare_rows_per_s']:,.0f} rows/s,", end=" ")
    print(f"ratio {figures['ratio']:.2f}, by CPU time {figures['cpu_ratio']:.2f}")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    if chosen.vectors:
        figures["vectors"] = compare("vectors", chosen.vectors, load_ours, insert_bare, chosen.rounds, chosen.vectors)
        why = "ours checks every row and its byte lengths inside the time, while the bare insert gets finished rows"
        verdict("vector load: rows/s ÷ bare client insert", figures["vectors"]["ratio"], 0.9, why)
    if chosen.edges:
        rows = chosen.nodes + chosen.edges * 2
        figures["graph"] = compare("graph", rows, build_ours, copy_bare, chosen.rounds, chosen.nodes, chosen.edges)
        why = "ours checks keys and ends and writes its Parquet files inside the time; those of the bare COPY are there before"
        verdict("graph load: rows/s ÷ bare COPY", figures["graph"]["ratio"], 0.9, why)
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
