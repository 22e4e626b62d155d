"""Relations and nodes → edges with evidence, problems, and PageRank by GraphFrames.

Relations of one (source, target, relation) become one edge with all of its evidence. The invariant: an edge has two nodes, a declared
triple of kinds and at least one evidence; a relation that lacks one of them is a problem with both sides named, never an edge and never
silent. Isolated nodes and edges from a node to itself are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from blake3 import blake3

from raydex.ir.ids import content_hash
from raydex.ir.kinds import EDGE_KINDS, NODE_KINDS
from raydex.ir.locator import Locator

if TYPE_CHECKING:
    from graphframes import GraphFrame
    from pyspark.sql import Column, DataFrame

# most certain first: several sites of one edge give it the confidence of the best one (contracts 22)
CONFIDENCE_ORDER = ("VERIFIED", "EXTRACTED", "INFERRED", "AMBIGUOUS")
RANKED_RELATIONS = tuple(kind.name for kind in EDGE_KINDS.values() if kind.code and kind.name != "CONTAINS")
RANK_ITERATIONS = 10
_MEMO = 200_000

_IDENTIFIED = pa.schema(
    [
        pa.field("edge_id", pa.string()),
        pa.field("evidence_id", pa.string()),
        pa.field("source", pa.string()),
        pa.field("target", pa.string()),
        pa.field("relation", pa.string()),
        pa.field("confidence", pa.string()),
        pa.field("rule", pa.string()),
        pa.field("record_id", pa.string()),
        pa.field("locator", pa.string()),
        pa.field("excerpt_hash", pa.string()),
        pa.field("revision", pa.string()),
        pa.field("cas_uri", pa.string()),
        pa.field("path", pa.string()),
        pa.field("line", pa.int32()),
    ]
)


def identify(relations: DataFrame, records: DataFrame) -> DataFrame:
    """Relations + their record's path, revision and object → rows with `edge_id` and `evidence_id` (columns of `_IDENTIFIED`)."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    place = records.select("record_id", "path", "cas_uri", F.col("content_hash").alias("revision"))
    joined = relations.join(place, "record_id").select(*_IDENTIFIED.names[2:])
    return joined.mapInArrow(add_ids, from_arrow_schema(_IDENTIFIED))


def add_ids(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fills edge_id and evidence_id, equal to those of `raydex.ir.ids`. Evidence without a place in the text is the record's path."""
    fields = _Fields()
    paths: dict[str, tuple[str, str]] = {}
    for batch in batches:
        source, target, relation, record, locator, excerpt, revision, path, line = (
            batch.column(name).to_pylist()
            for name in ("source", "target", "relation", "record_id", "locator", "excerpt_hash", "revision", "path", "line")
        )
        for at, (place, hashed) in enumerate(zip(locator, excerpt, strict=True)):
            if place is None or hashed is None:
                known = paths.get(path[at])
                if known is None:
                    known = paths[path[at]] = (str(Locator(member=path[at])), content_hash(path[at].encode("utf-8", "surrogatepass")))
                locator[at], excerpt[at] = known
                line[at] = None
        made = {
            "edge_id": fields.ids("edg", source, target, relation),
            "evidence_id": fields.ids("evd", record, locator, excerpt, revision),
            "locator": locator,
            "excerpt_hash": excerpt,
            "line": line,
        }
        columns = [pa.array(made[f.name], f.type) if f.name in made else batch.column(f.name).cast(f.type) for f in _IDENTIFIED]
        yield pa.RecordBatch.from_arrays(columns, schema=_IDENTIFIED)


class _Fields:
    """`ids.make_id` for whole columns: the framed bytes of values that recur (nodes, records, relations) are made once."""

    def __init__(self) -> None:
        self._framed: dict[str, bytes] = {}

    def ids(self, prefix: str, *columns: list[str]) -> list[str]:
        if len(self._framed) > _MEMO:
            self._framed.clear()
        framed = [[self._frame(value) for value in column] for column in columns]
        return [f"{prefix}_{blake3(b''.join(parts)).digest(16).hex()}" for parts in zip(*framed, strict=True)]

    def _frame(self, value: str) -> bytes:
        known = self._framed.get(value)
        if known is None:
            raw = value.encode("utf-8", "surrogatepass")
            known = self._framed[value] = len(raw).to_bytes(8, "little") + raw
        return known


def check_relations(identified: DataFrame, nodes: DataFrame) -> DataFrame:
    """`identified` with `source_kind`, `target_kind` and `problem`: dangling_edge, illegal_edge or null (both ends there, legal triple)."""
    from pyspark.sql import functions as F

    kinds = nodes.where(F.col("kind").isNotNull()).select("node_id", "kind")
    sources = kinds.select(F.col("node_id").alias("source"), F.col("kind").alias("source_kind"))
    targets = kinds.select(F.col("node_id").alias("target"), F.col("kind").alias("target_kind"))
    legal = [f"{source} {kind.name} {target}" for kind in EDGE_KINDS.values() for source, target in kind.pairs]
    triple = F.concat_ws(" ", "source_kind", "relation", "target_kind")
    missing = F.col("source_kind").isNull() | F.col("target_kind").isNull()
    problem = F.when(missing, "dangling_edge").when(~triple.isin(*legal), "illegal_edge")
    return identified.join(sources, "source", "left").join(targets, "target", "left").withColumn("problem", problem)


def make_edges(checked: DataFrame) -> DataFrame:
    """Relations without a problem → edges: the best confidence, evidence ids sorted, and by each the rule that saw this edge there (the
    most certain one, then the first by name). The record is the first one by id.

    Lists are made distinct after they are collected: nearly all have one item, for which a set costs more than twice as much.
    """
    from pyspark.sql import functions as F

    order = F.create_map(*[F.lit(part) for at, name in enumerate(CONFIDENCE_ORDER) for part in (name, at)])
    names = F.array(*[F.lit(name) for name in CONFIDENCE_ORDER])
    seen = F.sort_array(F.collect_list(F.struct("evidence_id", F.col("rank"), "rule"))).alias("seen")

    def is_first(item: Column, at: Column) -> Column:
        """Items are sorted: the first of an evidence differs from the item before it."""
        return (at == 0) | (item["evidence_id"] != F.element_at("seen", F.when(at == 0, F.lit(1)).otherwise(at))["evidence_id"])

    return (
        checked.where(F.col("problem").isNull())
        .withColumn("rank", order[F.col("confidence")])
        .groupBy("edge_id", "source", "target", "relation")
        .agg(names[F.min("rank")].alias("confidence"), seen, F.min(F.struct("record_id", "revision")).alias("first"))
        .withColumn("seen", F.filter("seen", is_first))
        .select(
            *("edge_id", "source", "target", "relation", "confidence"),
            F.transform("seen", lambda item: item["evidence_id"]).alias("evidence_ids"),
            F.transform("seen", lambda item: item["rule"]).alias("rules"),
            F.col("first.record_id").alias("record_id"),
            F.col("first.revision").alias("content_hash"),
        )
    )


def make_evidence(checked: DataFrame) -> DataFrame:
    """Relations without a problem → evidence, one row an id."""
    from pyspark.sql import functions as F

    # what an id is made of is equal wherever the id is: as keys these columns cost least
    same = ("record_id", "locator", "excerpt_hash", "revision", "cas_uri", "path", "line")
    return (
        checked.where(F.col("problem").isNull())
        .select("evidence_id", *same)
        .distinct()
        .select(
            "evidence_id",
            F.col("record_id").alias("source_record_id"),
            *("locator", "excerpt_hash", "revision", "cas_uri"),
            F.lit("candidate").alias("verification"),
            *("path", "line", "record_id"),
            F.col("revision").alias("content_hash"),
        )
    )


def graph_of(nodes: DataFrame, edges: DataFrame) -> GraphFrame:
    """The projection as a GraphFrame: every node is a vertex, with or without edges."""
    from graphframes import GraphFrame
    from pyspark.sql import functions as F

    vertices = nodes.select(F.col("node_id").alias("id"), "kind", "record_id", "content_hash")
    arcs = edges.select(F.col("source").alias("src"), F.col("target").alias("dst"), "relation", "confidence")
    return GraphFrame(vertices, arcs)


def rank_nodes(nodes: DataFrame, edges: DataFrame, iterations: int = RANK_ITERATIONS) -> DataFrame:
    """PageRank of code nodes over code relations but CONTAINS (where a thing stands says nothing of its use); 1.0 is the average.

    Rounded to 9 digits; ranks take no part in digests, since sums of floats follow the partitions.
    """
    from pyspark.sql import functions as F

    code_nodes = nodes.where(F.col("kind").isin(*[kind.name for kind in NODE_KINDS.values() if kind.code]))
    code_edges = edges.where(F.col("relation").isin(*RANKED_RELATIONS))
    ranked = graph_of(code_nodes, code_edges).pageRank(resetProbability=0.15, maxIter=iterations).vertices
    return ranked.select(F.col("id").alias("node_id"), F.round("pagerank", 9).alias("pagerank"), "record_id", "content_hash")
