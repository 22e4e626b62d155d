"""Is a generation what it claims to be? Checks over its pinned tables and its stores (reliability §4: C1-C7; contracts 15, 18).

`check_generation` is what every run does before it makes a generation active: counts and gates. `verify` does everything: it re-reads
every excerpt from the object store, every key from every store, every vector.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import list_data_files, scan_delta
from raydex.cluster.lake import Generation, Lake
from raydex.ir.errors import StoreError
from raydex.ir.ids import content_hash
from raydex.ir.kinds import RECORD_STATES
from raydex.ir.locator import Locator
from raydex.ir.tables import RECORD_TABLES, TABLES
from raydex.jobs.finalize import source_manifest
from raydex.jobs.reading import Reader, open_reader
from raydex.jobs.verify_keys import are_unique, table_keys
from raydex.kernels.decode import decode_as

EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Check:
    """One statement about the generation, whether it holds, and the figures or first offenders."""

    name: str
    ok: bool
    detail: str


def verify(root: Path) -> dict[str, Any]:
    """{generation, ok, checks}."""
    reader = open_reader(root)
    checks = [*check_generation(reader.lake, reader.generation), *full_checks(reader)]
    return {"generation": reader.generation.number, "ok": all(c.ok for c in checks), "checks": [asdict(c) for c in checks]}


def check_generation(lake: Lake, generation: Generation) -> list[Check]:
    """The quick part: accounting, key sets by count, gates."""
    reader = Reader(lake, generation)
    return [check_accounting(reader), check_documents(reader), check_embeddings(reader), *check_vector_count(reader), *check_graph(reader)]


def full_checks(reader: Reader) -> Iterator[Check]:
    """The thorough part."""
    yield check_primary_keys(reader)
    yield check_live(reader)
    yield check_blocks(reader)
    yield from check_code(reader)
    yield check_vectors(reader)
    yield from check_vector_keys(reader)
    yield from check_edges(reader)
    yield check_evidence(reader)
    yield check_manifest(reader)


def _few(items: Any) -> str:
    shown = sorted(items)[:EXAMPLES]
    return ", ".join(map(str, shown))


def check_accounting(reader: Reader) -> Check:
    """C1: every record is in exactly one state, and the sum is the number of records."""
    table = reader.rows("records", columns=["record_id", "state", "reject_class", "missing"])
    states = Counter(table.column("state").to_pylist())
    odd = [name for name in states if name not in RECORD_STATES]
    mute = [
        row["record_id"]
        for row in table.to_pylist()
        if (row["state"] == "rejected" and not row["reject_class"]) or (row["state"] == "degraded" and not row["missing"])
    ]
    unique = len(set(table.column("record_id").to_pylist()))
    ok = not odd and not mute and unique == table.num_rows
    said = ", ".join(f"{states[name]} {name}" for name in RECORD_STATES)
    return Check("records add up", ok, f"{table.num_rows} records = {said}" + (f"; without a reason: {_few(mute)}" if mute else ""))


def check_documents(reader: Reader) -> Check:
    """C2: each indexed or degraded record has its head, and nothing else has one."""
    records = reader.rows("records", columns=["record_id", "state"])
    alive = set(records.filter(pc.not_equal(records.column("state"), "rejected")).column("record_id").to_pylist())
    every = set(records.column("record_id").to_pylist())
    heads = set(reader.rows("documents", columns=["record_id"]).column("record_id").to_pylist())
    lost, stray = alive - heads, heads - every
    return Check(
        "documents are there",
        not lost and not stray,
        f"{len(heads)} heads" + (f"; missing {_few(lost)}; stray {_few(stray)}" if lost or stray else ""),
    )


def check_embeddings(reader: Reader) -> Check:
    """C2: each chunk that has text to embed has a vector, unless its record says that it lacks it."""
    chunks = reader.rows("chunks", columns=["chunk_id", "record_id", "text_hash"])
    wanted = chunks.filter(pc.is_valid(chunks.column("text_hash")))
    records = reader.rows("records", columns=["record_id", "missing"])
    excused = {row["record_id"] for row in records.to_pylist() if "embedding" in (row["missing"] or ())}
    if "embeddings" not in reader.generation.table_versions and "vectors" not in reader.generation.cursors:
        return Check("chunks have vectors", True, f"{chunks.num_rows} chunks; embedding is off")
    held = pc.is_in(wanted.column("chunk_id"), reader.rows("embeddings", columns=["chunk_id"]).column("chunk_id").combine_chunks())
    bare = wanted.filter(pc.invert(held))
    lost = [row["chunk_id"] for row in bare.select(["chunk_id", "record_id"]).to_pylist() if row["record_id"] not in excused]
    text = f"{wanted.num_rows} chunks with text, {chunks.num_rows - wanted.num_rows} without, {bare.num_rows - len(lost)} excused"
    return Check("chunks have vectors", not lost, text + (f"; missing {len(lost)}: {_few(lost)}" if lost else ""))


def check_vector_count(reader: Reader) -> list[Check]:
    cursor = reader.generation.cursors.get("vectors")
    if cursor is None:
        return []
    version = reader.generation.table_versions.get("embeddings")
    rows = sum(file.rows for file in list_data_files(reader.lake.tables, "embeddings", version)) if version is not None else 0
    return [Check("vector store is loaded", cursor["rows"] == rows, f"{cursor['rows']} visible rows, {rows} embeddings")]


def check_graph(reader: Reader) -> list[Check]:
    """Contracts 15: the marker in the store holds this generation's manifest and projection hash, and the counts agree."""
    from raydex.cluster.graph_store import open_graph

    cursor = reader.generation.cursors.get("graph")
    if cursor is None:
        return []
    generation = reader.generation
    with open_graph(reader.lake.root / cursor["path"]) as graph:
        marker, counts = graph.marker(), graph.counts()
    nodes, edges = (_row_count(reader, name) for name in ("nodes", "edges"))
    agree = marker.source_manifest == generation.source_manifest and marker.projection_hash == generation.projection_hash
    ok = agree and (counts.nodes, counts.edges) == (nodes, edges)
    return [
        Check(
            "graph store is loaded",
            ok,
            f"{counts.nodes} nodes and {counts.edges} edges, tables {nodes} and {edges}, marker {'agrees' if agree else 'DIFFERS'}",
        )
    ]


def _row_count(reader: Reader, name: str) -> int:
    version = reader.generation.table_versions.get(name)
    return sum(file.rows for file in list_data_files(reader.lake.tables, name, version)) if version is not None else 0


def check_primary_keys(reader: Reader) -> Check:
    """C3."""
    bad: list[str] = []
    count = 0
    for name, spec in TABLES.items():
        if name not in reader.generation.table_versions or name in ("events", "runs", "generations"):
            continue
        unique, rows = are_unique(reader, name, spec.key)
        count += rows
        if not unique:
            bad.append(name)
    return Check("primary keys are unique", not bad, f"{count} keys" + (f"; repeated in {', '.join(bad)}" if bad else ""))


def check_live(reader: Reader) -> Check:
    """Every row of a record's table belongs to a record's present content and the stage that stands for it."""
    records = {
        row["record_id"]: (row["content_hash"], dict(row["fingerprints"] or ()))
        for row in reader.rows("records", columns=["record_id", "content_hash", "fingerprints"]).to_pylist()
    }
    bad: Counter[str] = Counter()
    total = 0
    for name in RECORD_TABLES:
        version = reader.generation.table_versions.get(name)
        if version is None:
            continue
        stage = "parse" if TABLES[name].stage == "observe" else TABLES[name].stage
        keys = ["record_id", "content_hash", "fingerprint"]
        for batch in scan_delta(reader.lake.tables, name, version=version, columns=keys):
            groups = pa.Table.from_batches([batch]).group_by(keys).aggregate([([], "count_all")])
            for row in groups.to_pylist():
                total += row["count_all"]
                content, marks = records.get(row["record_id"], ("", {}))
                if (content, marks.get(stage)) != (row["content_hash"], row["fingerprint"]):
                    bad[name] += row["count_all"]
    return Check("no row of older content", not bad, f"{total} rows" + (f"; dead rows {dict(bad)}" if bad else ""))


def check_blocks(reader: Reader) -> Check:
    """Ordinals run from 0 without a gap, as many as the head says; no locator is empty."""
    heads = {row["record_id"]: row["block_count"] for row in reader.rows("documents", columns=["record_id", "block_count"]).to_pylist()}
    blocks = reader.rows("blocks", columns=["record_id", "ordinal", "locator"])
    groups = blocks.group_by("record_id").aggregate([("ordinal", "count"), ("ordinal", "max"), ("ordinal", "count_distinct")])
    bad = [
        row["record_id"]
        for row in groups.to_pylist()
        if not row["ordinal_count"] == row["ordinal_max"] + 1 == row["ordinal_count_distinct"] == heads.get(row["record_id"])
    ]
    bare = pc.sum(pc.equal(pc.fill_null(blocks.column("locator"), ""), "")).as_py() or 0
    return Check("blocks are contiguous", not bad and not bare, f"{blocks.num_rows} blocks" + (f"; broken in {_few(bad)}" if bad else ""))


def check_code(reader: Reader) -> Iterator[Check]:
    """Ends of code edges exist: nodes for AST, symbols for the rest (a null target is an unresolved or external one)."""
    symbols, nodes = table_keys(reader, "symbols", "symbol_id"), table_keys(reader, "code_nodes", "node_id")
    dangling = 0
    total = 0
    version = reader.generation.table_versions.get("code_edges")
    if version is not None:
        for batch in scan_delta(reader.lake.tables, "code_edges", version=version, columns=["source", "target", "relation"]):
            total += batch.num_rows
            between_nodes = pc.is_in(batch.column("relation"), pa.array(["AST", "CFG", "REACHING_DEF"]))
            for mask, ends in ((between_nodes, nodes), (pc.invert(between_nodes), symbols)):
                part = batch.filter(mask)
                dangling += ends.missing(part.column("source")) + ends.missing(part.column("target"))
    yield Check("code edges have ends", dangling == 0, f"{total} code edges" + (f"; {dangling} dangling ends" if dangling else ""))


def check_vectors(reader: Reader) -> Check:
    """C7: finite, one dimension, unit length."""
    bad = 0
    total = 0
    truncated = 0
    dimensions: set[int] = set()
    version = reader.generation.table_versions.get("embeddings")
    if version is not None:
        for batch in scan_delta(reader.lake.tables, "embeddings", version=version, columns=["vector", "truncated"]):
            if not batch.num_rows:
                continue
            lengths = set(pc.list_value_length(batch.column("vector")).to_pylist())
            dimensions |= lengths
            total += batch.num_rows
            truncated += pc.sum(batch.column("truncated")).as_py() or 0
            if len(lengths) == 1:
                matrix = batch.column("vector").flatten().to_numpy(zero_copy_only=False).reshape(batch.num_rows, -1)
                norms = np.linalg.norm(matrix, axis=1)
                bad += int((~np.isfinite(matrix).all(axis=1) | (np.abs(norms - 1) > 1e-3)).sum())
    ok = bad == 0 and len(dimensions) <= 1
    return Check(
        "vectors are sound", ok, f"{total} vectors of dimension {_few(dimensions) or '-'}, {truncated} truncated, {bad} not of unit length"
    )


def check_vector_keys(reader: Reader) -> Iterator[Check]:
    """C4: the chunks visible in the store are exactly those with an embedding."""
    from raydex.cluster.store_lock import Busy
    from raydex.cluster.vectors import VectorStore
    from raydex.jobs.search import vector_uri

    cursor = reader.generation.cursors.get("vectors")
    if cursor is None or not cursor["collection"]:
        return
    wanted = set(reader.rows("embeddings", columns=["chunk_id"]).column("chunk_id").to_pylist())
    try:
        with VectorStore(vector_uri(reader, cursor), cursor["collection"], cursor["dimension"]) as store:
            held = set(store.keys(reader.generation.number))
    except Busy:
        yield Check("vector keys agree", True, "not checked: the store is held by a writer, or the folder is read-only")
        return
    lost, stray = wanted - held, held - wanted
    detail = f"{len(held)} keys" + (f"; missing {_few(lost)}; stray {_few(stray)}" if lost or stray else "")
    yield Check("vector keys agree", not lost and not stray, detail)


def check_edges(reader: Reader) -> Iterator[Check]:
    """No edge without evidence, every end and every evidence exists; the graph store has the same keys."""
    from raydex.cluster.graph_store import open_graph

    edges = reader.rows("edges", columns=["edge_id", "source", "target", "evidence_ids"])
    nodes = set(reader.rows("nodes", columns=["node_id"]).column("node_id").to_pylist())
    evidence = set(reader.rows("evidence", columns=["evidence_id"]).column("evidence_id").to_pylist())
    bare, dangling, unfounded = [], [], []
    for row in edges.to_pylist():
        if not row["evidence_ids"]:
            bare.append(row["edge_id"])
        if row["source"] not in nodes or row["target"] not in nodes:
            dangling.append(row["edge_id"])
        if any(key not in evidence for key in row["evidence_ids"] or ()):
            unfounded.append(row["edge_id"])
    yield Check(
        "edges have evidence",
        not bare and not unfounded,
        f"{edges.num_rows} edges, {len(evidence)} evidence" + (f"; bad {_few(bare + unfounded)}" if bare or unfounded else ""),
    )
    yield Check("edges have ends", not dangling, f"{len(nodes)} nodes" + (f"; dangling {_few(dangling)}" if dangling else ""))
    cursor = reader.generation.cursors.get("graph")
    if cursor:
        with open_graph(reader.lake.root / cursor["path"]) as graph:
            same = set(graph.node_ids()) == nodes and set(graph.edge_ids()) == set(edges.column("edge_id").to_pylist())
        yield Check("graph keys agree", same, "node and edge keys of store and tables are the same" if same else "they differ")


def check_evidence(reader: Reader) -> Check:
    """C6: each excerpt, cut anew from the original, hashes to what its evidence says; each source record still exists."""
    columns = ["evidence_id", "source_record_id", "locator", "excerpt_hash", "revision"]
    records = {
        row["record_id"]: row for row in reader.rows("records", columns=["record_id", "path", "cas_uri", "content_hash"]).to_pylist()
    }
    encodings = {row["record_id"]: row["encoding"] for row in reader.rows("documents", columns=["record_id", "encoding"]).to_pylist()}
    by_record: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in reader.rows("evidence", columns=columns).to_pylist():
        by_record[row["source_record_id"]].append(row)
    objects = reader.objects()
    good = skipped = 0
    bad: list[str] = []
    for record_id, rows in by_record.items():
        record = records.get(record_id)
        text: str | None = None
        for row in rows:
            place = Locator.parse(row["locator"])
            if record is None or row["revision"] != record["content_hash"]:
                bad.append(row["evidence_id"])
            elif place.member is not None and place.char is None:
                good += content_hash(record["path"].encode()) == row["excerpt_hash"]
                bad.extend([row["evidence_id"]] if content_hash(record["path"].encode()) != row["excerpt_hash"] else [])
            elif not record["cas_uri"] or (place.char is None and place.line is None):
                skipped += 1
            else:
                if text is None:
                    try:
                        text = decode_as(objects.get(record["cas_uri"]), encodings.get(record_id) or "utf-8")
                    except StoreError:
                        bad.append(row["evidence_id"])
                        continue
                excerpt = place.slice_text(text)
                if excerpt is not None and content_hash(excerpt.encode()) == row["excerpt_hash"]:
                    good += 1
                else:
                    bad.append(row["evidence_id"])
    detail = f"{good} excerpts re-read, {skipped} not sliceable" + (f"; {len(bad)} differ: {_few(bad)}" if bad else "")
    return Check("evidence is intact", not bad, detail)


def check_manifest(reader: Reader) -> Check:
    ledger = reader.rows("records", columns=["record_id", "content_hash"])
    same = source_manifest(ledger) == reader.generation.source_manifest
    return Check("source manifest agrees", same, reader.generation.source_manifest[:16])
