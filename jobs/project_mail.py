"""Mails → person nodes and the relations SENT, RECEIVED, CC and REPLY_TO; tickets → the ids of their nodes (contracts 25).

A person is an address in lower case: views of one address are one node, whatever names it is called by. A mail answers the mail with the
id that it names: the copy in its own source, else the first by record id. The invariant: an edge's evidence is the answering or named
header field of the mail that says so, and nothing depends on the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa

from raydex.ir.ids import content_hash, person_id, ticket_id
from raydex.jobs.project_code import RELATION_COLUMNS
from raydex.kernels.mail_links import ANSWERS, OWN_ID, mail_links

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MAIL_PARSERS = ("mail", "msg")
TICKET_PARSER = "jira"
NAMES_KEPT = 16
_READ_ROWS = 1_000
_LINKS = pa.schema(
    [pa.field(name, pa.string()) for name in ("record_id", "relation", "key", "node_id", "name", "confidence", "locator", "excerpt_hash")]
)
_TICKETS = pa.schema([pa.field("record_id", pa.string()), pa.field("ticket_id", pa.string())])


def mail_rows(documents: DataFrame) -> DataFrame:
    """A row for each person and id in the header fields of a mail (columns of `_LINKS`)."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    mails = documents.where(F.col("parser").isin(*MAIL_PARSERS)).select("record_id", "metadata")
    return mails.mapInArrow(read_links, from_arrow_schema(_LINKS))


def read_links(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `documents` (record_id, metadata) → rows of `_LINKS`."""
    for batch in batches:
        rows: list[dict[str, str]] = []
        for record, metadata in zip(batch.column("record_id").to_pylist(), batch.column("metadata").to_pylist(), strict=True):
            for link in mail_links(orjson.loads(metadata)):
                is_person = link.relation not in (OWN_ID, ANSWERS)
                rows.append(
                    {
                        "record_id": record,
                        "relation": link.relation,
                        "key": link.key,
                        "node_id": person_id(link.key) if is_person else "",
                        "name": link.name,
                        "confidence": "EXTRACTED" if link.certain else "INFERRED",
                        "locator": str(link.locator),
                        "excerpt_hash": content_hash(link.excerpt.encode()),
                    }
                )
                if len(rows) == _READ_ROWS:
                    yield pa.RecordBatch.from_pylist(rows, _LINKS)
                    rows = []
        yield pa.RecordBatch.from_pylist(rows, _LINKS)


def person_views(rows: DataFrame, records: DataFrame) -> DataFrame:
    """One view a person and source: called by the first of its names, else by its address; `names` are those that mails give it."""
    from pyspark.sql import functions as F

    nothing = F.lit(None).cast("string")
    named = F.nullif("name", F.lit(""))
    people = (
        rows.where(F.col("node_id") != "")
        .join(records.select("record_id", "source_name"), "record_id")
        .groupBy("node_id", F.col("key").alias("address"))
        .agg(
            F.slice(F.sort_array(F.collect_set(named)), 1, NAMES_KEPT).alias("names"),
            F.collect_set("source_name").alias("sources"),
        )
        .withColumn("source_key", F.explode("sources"))
    )
    values: dict[str, Column] = {
        "node_id": F.col("node_id"),
        "kind": F.lit("person"),
        "name": F.coalesce(F.get("names", F.lit(0)), "address"),
        "qualified_name": F.col("address"),
        "path": F.lit(""),
        "repository": F.lit(""),
        "source_key": F.col("source_key"),
        "properties": F.to_json(F.struct("names")),
        # a person belongs to no record: it stays as long as any mail names it
        "record_id": nothing,
        "content_hash": nothing,
    }
    return people.select(*[column.alias(name) for name, column in values.items()])


def mail_relations(rows: DataFrame, records: DataFrame, scope: DataFrame | None = None) -> DataFrame:
    """Columns of RELATION_COLUMNS: persons to mails, and mails to those that they answer. `scope` (record_id) limits the mails that say so,
    never the mails that are answered."""
    from pyspark.sql import functions as F

    said = rows if scope is None else rows.join(F.broadcast(scope), "record_id", "left_semi")
    people = said.where(F.col("node_id") != "").select(*_relation(F.col("node_id"), F.col("record_id"), F.lit("header_field")))
    sources = records.select("record_id", "source_name")
    owners = rows.where(F.col("relation") == OWN_ID).join(sources, "record_id")
    near = owners.groupBy("key", "source_name").agg(F.min("record_id").alias("near"))
    first = owners.groupBy("key").agg(F.min("record_id").alias("first"))
    answers = said.where(F.col("relation") == ANSWERS).join(sources, "record_id").join(first, "key")
    answers = answers.join(near, ["key", "source_name"], "left").withColumn("answered", F.coalesce("near", "first"))
    rule = F.when(F.col("confidence") == "EXTRACTED", "in_reply_to").otherwise("last_reference")
    return people.unionByName(answers.select(*_relation(F.col("record_id"), F.col("answered"), rule)))


def _relation(source: Column, target: Column, rule: Column) -> list[Column]:
    from pyspark.sql import functions as F

    values = {"source": source, "target": target, "rule": rule, "line": F.lit(None).cast("int")}
    return [values[name].alias(name) if name in values else F.col(name) for name in RELATION_COLUMNS]


def ticket_ids(frames: Mapping[str, DataFrame]) -> DataFrame:
    """(record_id, ticket_id) of the tickets whose site is known; others are told apart by their records alone."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    known = frames["issues"].where((F.coalesce("site", F.lit("")) != "") & (F.coalesce("key", F.lit("")) != ""))
    return known.select("record_id", "site", "key").mapInArrow(make_ticket_ids, from_arrow_schema(_TICKETS))


def make_ticket_ids(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        pairs = zip(batch.column("site").to_pylist(), batch.column("key").to_pylist(), strict=True)
        made = pa.array([ticket_id(site, key) for site, key in pairs], pa.string())
        yield pa.RecordBatch.from_arrays([batch.column("record_id").cast(pa.string()), made], schema=_TICKETS)
