"""Is a generation what it claims to be? Checks over its pinned tables and its stores (reliability §4: C1-C7; contracts 15, 18).

`check_generation` is what every run does before it makes a generation active: counts and gates. `verify` does everything: it re-reads
every excerpt, every key of every store, every vector of the tables and a sample of the store's. The invariant: a check that could not
look says "not checked", and a table or store that fails is a failed check, never the end of the report.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import list_data_files, scan_delta
from raydex.cluster.lake import Generation, Lake, source_manifest
from raydex.ir.errors import StoreError
from raydex.ir.ids import content_hash
from raydex.ir.kinds import CODE_RELATIONS_BETWEEN_NODES, RECORD_STATES
from raydex.ir.locator import Locator
from raydex.ir.tables import RECORD_TABLES, TABLES
from raydex.jobs.one_model import embed_marks, no_model_fingerprint, say_sources
from raydex.jobs.originals import mail_inside, range_of
from raydex.jobs.reading import Reader, open_reader
from raydex.jobs.verify_keys import are_unique, table_keys
from raydex.kernels.excerpt import OUTLOOK, Excerpts, has_text

EXAMPLES = 3
SAMPLE = 256


@dataclass(frozen=True, slots=True)
class Check:
    """One statement about the generation, whether it holds (None: could not be looked at), and the figures or first offenders."""

    name: str
    ok: bool | None
    detail: str

    def to_json(self) -> dict[str, Any]:
        result = {True: "ok", False: "failed", None: "not checked"}[self.ok]
        return {"name": self.name, "ok": self.ok, "result": result, "detail": self.detail}


def verify(root: Path) -> dict[str, Any]:
    """{generation, ok, not_checked, checks}: ok when no check failed, `not_checked` the number of those that could not look."""
    reader = open_reader(root)
    checks = [*check_generation(reader.lake, reader.generation), *run_checks(reader, FULL_CHECKS)]
    return {
        "generation": reader.generation.number,
        "ok": all(check.ok is not False for check in checks),
        "not_checked": sum(check.ok is None for check in checks),
        "checks": [check.to_json() for check in checks],
    }


def check_generation(lake: Lake, generation: Generation) -> list[Check]:
    """The quick part: accounting, key sets by count, gates."""
    return list(run_checks(Reader(lake, generation), QUICK_CHECKS))


def run_checks(reader: Reader, checks: dict[str, Callable[[Reader], Iterable[Check]]]) -> Iterator[Check]:
    """The checks' findings; one that a table or store breaks off is a failed check of the name given."""
    for name, check in checks.items():
        try:
            yield from check(reader)
        except StoreError as error:
            yield Check(name, False, str(error))


def _few(items: Any) -> str:
    shown = sorted(items)[:EXAMPLES]
    return ", ".join(map(str, shown))


def check_accounting(reader: Reader) -> Iterator[Check]:
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
    yield Check("records add up", ok, f"{table.num_rows} records = {said}" + (f"; without a reason: {_few(mute)}" if mute else ""))


def check_documents(reader: Reader) -> Iterator[Check]:
    """C2: each indexed or degraded record has its head, and nothing else has one."""
    records = reader.rows("records", columns=["record_id", "state"])
    alive = set(records.filter(pc.not_equal(records.column("state"), "rejected")).column("record_id").to_pylist())
    every = set(records.column("record_id").to_pylist())
    heads = set(reader.rows("documents", columns=["record_id"]).column("record_id").to_pylist())
    lost, stray = alive - heads, heads - every
    yield Check(
        "documents are there",
        not lost and not stray,
        f"{len(heads)} heads" + (f"; missing {_few(lost)}; stray {_few(stray)}" if lost or stray else ""),
    )


def check_embeddings(reader: Reader) -> Iterator[Check]:
    """C2: each chunk that has text to embed has a vector of the generation's model, unless its record says that it lacks it. Records that
    were embedded by another model wait for their next run; they are named."""
    chunks = reader.rows("chunks", columns=["chunk_id", "record_id", "text_hash"])
    fingerprint = reader.generation.fingerprints.get("embed", "")
    if fingerprint == no_model_fingerprint():
        yield Check("chunks have vectors", True, f"{chunks.num_rows} chunks; embedding is off")
        return
    wanted = chunks.filter(pc.is_valid(chunks.column("text_hash")))
    held = pc.is_in(wanted.column("chunk_id"), reader.vector_rows(["chunk_id"]).column("chunk_id").combine_chunks())
    bare = wanted.filter(pc.invert(held)).select(["chunk_id", "record_id"]).to_pylist()
    records = reader.rows("records", columns=["record_id", "source_name", "missing", "fingerprints"])
    marks = embed_marks(records).to_pylist()
    about = {row["record_id"]: (row, mark) for row, mark in zip(records.select(["record_id", "source_name", "missing"]).to_pylist(), marks)}
    lost: list[str] = []
    waiting: dict[str, str] = {}
    excused = 0
    for row in bare:
        record, mark = about.get(row["record_id"], ({"missing": None, "source_name": ""}, fingerprint))
        if "embedding" in (record["missing"] or ()):
            excused += 1
        elif mark != fingerprint:
            waiting[row["record_id"]] = record["source_name"]
        else:
            lost.append(row["chunk_id"])
    text = f"{wanted.num_rows} chunks with text, {chunks.num_rows - wanted.num_rows} without, {excused} excused"
    if waiting:
        text += f"; {say_sources(Counter(waiting.values()))} wait to be embedded by this model"
    yield Check("chunks have vectors", not lost, text + (f"; missing {len(lost)}: {_few(lost)}" if lost else ""))


def check_vector_count(reader: Reader) -> Iterator[Check]:
    cursor = reader.generation.cursors.get("vectors")
    if cursor is not None:
        rows = reader.vector_rows(["fingerprint"]).num_rows
        yield Check("vector store is loaded", cursor["rows"] == rows, f"{cursor['rows']} visible rows, {rows} embeddings of the model")


def check_graph(reader: Reader) -> Iterator[Check]:
    """Contracts 15: the marker in the store holds this generation's manifest and projection hash, and the counts agree."""
    from raydex.cluster.graph_store import open_graph

    cursor = reader.generation.cursors.get("graph")
    if cursor is None:
        return
    generation = reader.generation
    with open_graph(reader.lake.root / cursor["path"]) as graph:
        marker, counts = graph.marker(), graph.counts()
    nodes, edges = (_row_count(reader, name) for name in ("nodes", "edges"))
    agree = marker.source_manifest == generation.source_manifest and marker.projection_hash == generation.projection_hash
    ok = agree and (counts.nodes, counts.edges) == (nodes, edges)
    yield Check(
        "graph store is loaded",
        ok,
        f"{counts.nodes} nodes and {counts.edges} edges, tables {nodes} and {edges}, marker {'agrees' if agree else 'DIFFERS'}",
    )


def _row_count(reader: Reader, name: str) -> int:
    version = reader.generation.table_versions.get(name)
    return sum(file.rows for file in list_data_files(reader.lake.tables, name, version)) if version is not None else 0


def check_primary_keys(reader: Reader) -> Iterator[Check]:
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
    yield Check("primary keys are unique", not bad, f"{count} keys" + (f"; repeated in {', '.join(bad)}" if bad else ""))


def check_live(reader: Reader) -> Iterator[Check]:
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
    yield Check("no row of older content", not bad, f"{total} rows" + (f"; dead rows {dict(bad)}" if bad else ""))


def check_blocks(reader: Reader) -> Iterator[Check]:
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
    yield Check("blocks are contiguous", not bad and not bare, f"{blocks.num_rows} blocks" + (f"; broken in {_few(bad)}" if bad else ""))


def check_code(reader: Reader) -> Iterator[Check]:
    """Ends of code edges exist: nodes for AST, symbols for the rest (a null target is an unresolved or external one)."""
    symbols, nodes = table_keys(reader, "symbols", "symbol_id"), table_keys(reader, "code_nodes", "node_id")
    dangling = 0
    total = 0
    version = reader.generation.table_versions.get("code_edges")
    if version is not None:
        for batch in scan_delta(reader.lake.tables, "code_edges", version=version, columns=["source", "target", "relation"]):
            total += batch.num_rows
            between_nodes = pc.is_in(batch.column("relation"), pa.array(CODE_RELATIONS_BETWEEN_NODES))
            for mask, ends in ((between_nodes, nodes), (pc.invert(between_nodes), symbols)):
                part = batch.filter(mask)
                dangling += ends.missing(part.column("source")) + ends.missing(part.column("target"))
    yield Check("code edges have ends", dangling == 0, f"{total} code edges" + (f"; {dangling} dangling ends" if dangling else ""))


def check_vectors(reader: Reader) -> Iterator[Check]:
    """C7: finite, one dimension, unit length; one model. Vectors of another model are counted apart: nothing shows them."""
    bad = total = truncated = other = 0
    dimensions: set[int] = set()
    version = reader.generation.table_versions.get("embeddings")
    columns = ["vector", "truncated", "fingerprint"]
    for every in scan_delta(reader.lake.tables, "embeddings", version=version, columns=columns) if version is not None else ():
        batch = every.filter(pc.equal(every.column("fingerprint"), reader.generation.fingerprints.get("embed", "")))
        other += every.num_rows - batch.num_rows
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
    said = f"{total} vectors of dimension {_few(dimensions) or '-'}, {truncated} truncated, {bad} not of unit length"
    said += f"; {other} of another model" if other else ""
    yield Check("vectors are sound", bad == 0 and len(dimensions) <= 1, said)


def check_vector_store(reader: Reader) -> Iterator[Check]:
    """C4: the chunks visible in the store are exactly those with an embedding; and of a sample, the vectors are those of the table."""
    from raydex.cluster.store_lock import Busy
    from raydex.cluster.vectors import VectorStore

    cursor = reader.generation.cursors.get("vectors")
    if cursor is None or not cursor["collection"]:
        return
    try:
        with VectorStore(reader.lake.place(cursor["uri"]), cursor["collection"], cursor["dimension"]) as store:
            held = set(store.keys(cursor["generation"]))
            sample = store.sample(cursor["generation"], SAMPLE)
    except Busy:
        why = "the store is held by a writer, or the folder is read-only"
        yield Check("vector keys agree", None, why)
        yield Check("stored vectors agree", None, why)
        return
    wanted = set(reader.vector_rows(["chunk_id"]).column("chunk_id").to_pylist())
    lost, stray = wanted - held, held - wanted
    detail = f"{len(held)} keys" + (f"; missing {_few(lost)}; stray {_few(stray)}" if lost or stray else "")
    yield Check("vector keys agree", not lost and not stray, detail)
    where = pc.field("chunk_id").isin(pa.array(sorted(sample), pa.string()))
    where &= pc.field("fingerprint") == reader.generation.fingerprints.get("embed", "")
    rows = reader.rows("embeddings", columns=["chunk_id", "vector"], where=where)
    ours = dict(zip(rows.column("chunk_id").to_pylist(), rows.column("vector").to_pylist()))
    differ = [key for key, vector in sample.items() if key in ours and not np.allclose(vector, ours[key], rtol=0, atol=1e-5)]
    detail = f"{len(sample)} of {len(held)} compared" + (f"; {len(differ)} differ: {_few(differ)}" if differ else "")
    yield Check("stored vectors agree", not differ, detail)


def check_edges(reader: Reader) -> Iterator[Check]:
    """No edge without evidence, every end and every evidence exists."""
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


def check_graph_keys(reader: Reader) -> Iterator[Check]:
    """C4: the graph store has the nodes and edges of the tables."""
    from raydex.cluster.graph_store import open_graph

    cursor = reader.generation.cursors.get("graph")
    if cursor:
        nodes, edges = (
            set(reader.rows(name, columns=[key]).column(key).to_pylist()) for name, key in (("nodes", "node_id"), ("edges", "edge_id"))
        )
        with open_graph(reader.lake.root / cursor["path"]) as graph:
            same = set(graph.node_ids()) == nodes and set(graph.edge_ids()) == edges
        yield Check("graph keys agree", same, "node and edge keys of store and tables are the same" if same else "they differ")


def check_evidence(reader: Reader) -> Iterator[Check]:
    """C6: each excerpt, cut anew from the original, hashes to what its evidence says; each source record still exists. An excerpt that no
    range of text stands for, or whose original neither the lake nor its source has, is not checked, and counted as such."""
    columns = ["evidence_id", "source_record_id", "locator", "excerpt_hash", "revision"]
    names = ["record_id", "path", "uri", "cas_uri", "content_hash", "media_type", "parent_id"]
    records = {row["record_id"]: row for row in reader.rows("records", columns=names).to_pylist()}
    encodings = {row["record_id"]: row["encoding"] for row in reader.rows("documents", columns=["record_id", "encoding"]).to_pylist()}
    outlook = reader.rows("documents", columns=["record_id", "metadata"], where=pc.field("media_type") == OUTLOOK).to_pylist()
    inside = {row["record_id"]: mail_inside(row["metadata"]) for row in outlook}
    by_record: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in reader.rows("evidence", columns=columns).to_pylist():
        by_record[row["source_record_id"]].append(row)
    good = blind = gone = 0
    bad: list[str] = []
    for record_id, rows in by_record.items():
        record = records.get(record_id)
        excerpts: Excerpts | None = None
        looked = False
        for row in rows:
            place = Locator.parse(row["locator"])
            excerpt: str | None
            if record is None or row["revision"] != record["content_hash"]:
                bad.append(row["evidence_id"])
                continue
            if place.member is not None and place.char is None:
                excerpt = record["path"]
            elif not has_text(place, record["media_type"]):
                blind += 1
                continue
            else:
                if not looked:
                    looked = True
                    data = reader.original(record)
                    if data is not None:
                        encoding = encodings.get(record_id) or ""
                        excerpts = Excerpts(data, record["media_type"], encoding, inside.get(record_id, ""))
                if excerpts is None and not record["cas_uri"]:
                    gone += 1
                    continue
                part = range_of(record)
                excerpt = None if excerpts is None else excerpts.at(place if part is None else part.inside(place))
            if excerpt is not None and content_hash(excerpt.encode()) == row["excerpt_hash"]:
                good += 1
            else:
                bad.append(row["evidence_id"])
    yield Check("evidence is intact", not bad, f"{good} excerpts re-read" + (f"; {len(bad)} differ: {_few(bad)}" if bad else ""))
    if blind or gone:
        reasons = [f"{blind} have no range of text"] * bool(blind) + [f"{gone} have no original: the lake keeps references only"] * bool(
            gone
        )
        yield Check("every excerpt can be re-read", None, "; ".join(reasons))


def check_manifest(reader: Reader) -> Iterator[Check]:
    ledger = reader.rows("records", columns=["record_id", "content_hash"])
    same = source_manifest(ledger) == reader.generation.source_manifest
    yield Check("source manifest agrees", same, reader.generation.source_manifest[:16])


# the names stand for a check whose table or store failed before it could say anything
QUICK_CHECKS: dict[str, Callable[[Reader], Iterable[Check]]] = {
    "records add up": check_accounting,
    "documents are there": check_documents,
    "chunks have vectors": check_embeddings,
    "vector store is loaded": check_vector_count,
    "graph store is loaded": check_graph,
}
FULL_CHECKS: dict[str, Callable[[Reader], Iterable[Check]]] = {
    "primary keys are unique": check_primary_keys,
    "no row of older content": check_live,
    "blocks are contiguous": check_blocks,
    "code edges have ends": check_code,
    "vectors are sound": check_vectors,
    "vector keys agree": check_vector_store,
    "edges have evidence": check_edges,
    "graph keys agree": check_graph_keys,
    "evidence is intact": check_evidence,
    "source manifest agrees": check_manifest,
}
