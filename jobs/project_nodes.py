"""Records, symbols and chunker nodes → canonical nodes, and the relations that say what lies inside what.

A node id is the id of the entity itself (contracts 25); `source_keys` name the places that know it: `source:path`, with `#symbol` behind it
for a symbol. The invariant: one row an id. Views of one id that agree on the kind are merged; one that does not is blocked and reported
with both kinds named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from raydex.ir.ids import repository_id
from raydex.ir.kinds import NODE_KINDS
from raydex.jobs.project_code import RELATION_COLUMNS
from raydex.jobs.project_mail import MAIL_PARSERS, TICKET_PARSER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NODE_COLUMNS = ("node_id", "kind", "name", "qualified_name", "path", "repository", "source_keys", "properties", "record_id", "content_hash")
# chunkers name data nodes after what they hold (seed 3)
_CHUNK_KINDS = {"collection": "data", "data": "data", "array": "data", "object": "data"}
# media types of text/x-… that are no programming language: such a file that cannot be parsed is no code error
_PLAIN_TEXT = ("text/x-rst", "text/x-org", "text/x-tex", "text/x-bibtex", "text/x-diff", "text/x-ini", "text/x-log")


@dataclass(frozen=True, slots=True)
class Declared:
    """`views`: rows that declare a node, one a source that knows it. `relations`: columns of RELATION_COLUMNS."""

    views: DataFrame
    relations: DataFrame


def declare_nodes(
    frames: Mapping[str, DataFrame],
    repositories: Iterable[tuple[str, str]],
    tickets: DataFrame | None = None,
    scope: DataFrame | None = None,
) -> Declared:
    """All views of nodes with the CONTAINS relations from repository to file, container to member, file to module, document to section.

    `repositories`: the (workspace, repository) pairs of the records. `tickets` (record_id, ticket_id): the records whose node is not their
    own. `scope` (record_id) limits views and relations to these records and the repositories that they lie in.
    """
    from pyspark.sql import functions as F

    def limited(frame: DataFrame) -> DataFrame:
        return frame if scope is None else frame.join(F.broadcast(scope), "record_id", "left_semi")

    every = frames["records"].withColumn("repository_id", _repository_id(repositories))
    records = limited(every)
    heads = _heads(records, frames["documents"], tickets)
    holders = heads if scope is None else _heads(every, frames["documents"], tickets)
    place = records.select("record_id", "repository", "content_hash", "source_name", F.col("path").alias("record_path"))
    key = F.concat_ws(":", "source_name", "record_path")
    symbols = limited(frames["symbols"]).join(place, "record_id")
    sections = limited(frames["chunk_nodes"]).join(place, "record_id")
    whole = F.lower("node_type").isin("document", "file") & (F.col("node_id") == F.col("record_id"))
    of_symbols = _view(
        id=F.col("symbol_id"),
        key=F.when(F.col("kind") == "module", key).otherwise(F.concat_ws("#", key, "qualified_name")),
        path=F.col("record_path"),
        properties=F.to_json(F.struct("language", "package", "signature", "visibility")),
    )
    of_sections = _view(
        id=F.col("node_id"),
        key=F.concat_ws("#", key, "node_id"),
        path=F.col("record_path"),
        kind=_mapped(F.lower("node_type"), _CHUNK_KINDS),
        qualified_name=F.concat_ws("#", "record_path", "name"),
    )
    views = (
        records.select(*_repository_view())
        .unionByName(heads.select(*_view(id=F.col("node_id"), key=F.concat_ws(":", "source_name", "path"), path=F.col("path"))))
        .unionByName(symbols.select(*of_symbols))
        .unionByName(sections.where(~whole).select(*of_sections))
    )
    inside = _containment(heads, holders)
    modules = limited(frames["symbols"]).where(F.col("kind") == "module").select(*_inside(F.col("record_id"), F.col("symbol_id")))
    parts = _by_node(limited(frames["chunk_edges"]), tickets).select(
        *("source", "target", "relation"),
        F.lit("EXTRACTED").alias("confidence"),
        F.lit("structure").alias("rule"),
        "record_id",
        F.when(F.col("excerpt_hash").isNotNull(), F.col("locator")).alias("locator"),
        F.when(F.col("locator").isNotNull(), F.col("excerpt_hash")).alias("excerpt_hash"),
        F.nullif(F.regexp_extract("locator", r"(?:^|;)line=(\d+)", 1), F.lit("")).cast("int").alias("line"),
    )
    return Declared(views, inside.unionByName(modules).unionByName(parts))


def merge_nodes(views: DataFrame) -> DataFrame:
    """Views → one row an id: NODE_COLUMNS and `views`, the distinct (kind, source_key) that declared it.

    The view of the first record by id holds where they agree on no more than the kind. Source keys of views with another kind are left out,
    and so are views of an undeclared kind; a node that has no other is given without kind.
    """
    from pyspark.sql import functions as F

    rest = ("kind", "name", "qualified_name", "path", "repository", "properties", "record_id", "content_hash")
    declared = F.col("kind").isin(*NODE_KINDS)
    first = F.min(F.when(declared, F.struct(F.coalesce("record_id", F.lit("")).alias("by"), "source_key", *rest)))
    seen = F.sort_array(F.collect_set(F.struct("kind", "source_key")))
    merged = views.groupBy("node_id").agg(first.alias("first"), seen.alias("views"))
    agreeing = F.transform(F.filter("views", lambda view: view["kind"] == F.col("first.kind")), lambda view: view["source_key"])
    columns = {name: F.col(f"first.{name}") for name in rest} | {"node_id": F.col("node_id"), "source_keys": agreeing}
    return merged.select(*[columns[name].alias(name) for name in NODE_COLUMNS], "views")


def _repository_id(pairs: Iterable[tuple[str, str]]) -> Column:
    """The id of a record's repository: there are few, so the ids are made here and go into the plan."""
    from pyspark.sql import functions as F

    known = [(F.array(F.lit(workspace), F.lit(name)), F.lit(repository_id(workspace, name))) for workspace, name in pairs]
    if not known:
        return F.lit(None).cast("string")
    return F.create_map(*[column for pair in known for column in pair])[F.array("workspace", "repository")]


def _containment(heads: DataFrame, holders: DataFrame) -> DataFrame:
    """What holds each record: its container (a mail, an archive, an export), else its repository."""
    from pyspark.sql import functions as F

    containers = holders.select(F.col("record_id").alias("parent_id"), F.col("node_id").alias("container_id"))
    members = heads.where(F.coalesce("parent_id", F.lit("")) != "").join(containers, "parent_id", "left")
    files = heads.where(F.coalesce("parent_id", F.lit("")) == "")
    # a container that was given up on after it had given members is no node
    held = members.select(*_inside(F.coalesce("container_id", "repository_id"), F.col("node_id")))
    return files.select(*_inside(F.col("repository_id"), F.col("node_id"))).unionByName(held)


def _by_node(edges: DataFrame, tickets: DataFrame | None) -> DataFrame:
    """Edges of chunkers, who know a record by its own id, between nodes."""
    from pyspark.sql import functions as F

    if tickets is None:
        return edges
    nodes = tickets.select(F.col("record_id").alias("source"), "ticket_id")
    return edges.join(nodes, "source", "left").withColumn("source", F.coalesce("ticket_id", "source")).drop("ticket_id")


def _heads(records: DataFrame, documents: DataFrame, tickets: DataFrame | None) -> DataFrame:
    """One row a record that is a file of code or a document, mail or ticket. A rejected record is a file when it should have been code: the
    code error graph of seed 1; a rejected document is a row of `rejects` and no node."""
    from pyspark.sql import functions as F

    joined = records.join(documents.select("record_id", "title", "language", "parser"), "record_id", "left")
    if tickets is not None:
        joined = joined.join(tickets, "record_id", "left")
    node = F.col("record_id") if tickets is None else F.coalesce("ticket_id", "record_id")
    kind = F.when(F.col("parser").isin(*MAIL_PARSERS), "email").when(F.col("parser") == TICKET_PARSER, "ticket").otherwise("document")
    rejected = F.col("state") == "rejected"
    source_code = F.col("media_type").startswith("text/x-") & ~F.col("media_type").isin(*_PLAIN_TEXT)
    is_file = F.when(rejected, source_code).otherwise(F.coalesce("language", F.lit("")) != "")
    name = F.element_at(F.split("path", "/"), -1)
    problem = F.when(rejected, F.col("reject_class"))
    return joined.where(~rejected | source_code).select(
        "record_id",
        node.alias("node_id"),
        "parent_id",
        "repository_id",
        "repository",
        "source_name",
        "path",
        "content_hash",
        F.when(is_file, "file").otherwise(kind).alias("kind"),
        F.when(is_file | (F.coalesce("title", F.lit("")) == ""), name).otherwise(F.col("title")).alias("name"),
        F.col("path").alias("qualified_name"),
        F.to_json(F.struct("media_type", problem.alias("reject_class"))).alias("properties"),
    )


def _repository_view() -> list[Column]:
    from pyspark.sql import functions as F

    # a repository belongs to no record: it stays as long as any of its records does
    nothing = F.lit(None).cast("string")
    values = {
        "node_id": F.col("repository_id"),
        "kind": F.lit("repository"),
        "name": F.col("repository"),
        "qualified_name": F.col("repository"),
        "path": F.lit(""),
        "repository": F.col("repository"),
        "source_key": F.col("source_name"),
        "properties": F.lit("{}"),
        "record_id": nothing,
        "content_hash": nothing,
    }
    return [column.alias(name) for name, column in values.items()]


def _view(
    *,
    id: Column,
    key: Column,
    path: Column,
    kind: Column | None = None,
    qualified_name: Column | None = None,
    properties: Column | None = None,
) -> list[Column]:
    from pyspark.sql import functions as F

    chosen = {
        "node_id": id,
        "kind": F.col("kind") if kind is None else kind,
        "name": F.col("name"),
        "qualified_name": F.col("qualified_name") if qualified_name is None else qualified_name,
        "path": path,
        "repository": F.col("repository"),
        "source_key": key,
        "properties": F.coalesce(F.col("properties") if properties is None else properties, F.lit("{}")),
        "record_id": F.col("record_id"),
        "content_hash": F.col("content_hash"),
    }
    return [column.alias(name) for name, column in chosen.items()]


def _mapped(value: Column, names: Mapping[str, str]) -> Column:
    from pyspark.sql import functions as F

    pairs = F.create_map(*[F.lit(part) for pair in names.items() for part in pair])
    return F.coalesce(pairs[value], value)


def _inside(source: Column, target: Column) -> list[Column]:
    """CONTAINS whose evidence is the record itself: its locator and hash are made of the path where ids are made."""
    from pyspark.sql import functions as F

    values = {
        "source": source,
        "target": target,
        "relation": F.lit("CONTAINS"),
        "confidence": F.lit("EXTRACTED"),
        "rule": F.lit("containment"),
        "record_id": F.col("record_id"),
        "locator": F.lit(None).cast("string"),
        "excerpt_hash": F.lit(None).cast("string"),
        "line": F.lit(None).cast("int"),
    }
    return [values[name].alias(name) for name in RELATION_COLUMNS]
