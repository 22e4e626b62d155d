"""Code edges → relations between symbols of the whole repository (contracts 7, 8, 22, 26).

What a file alone decided is taken over; what it left open meets all modules of its repository. Repositories are resolved side by side, each
by one Python worker (`raydex.kernels.resolve`). The invariant: a row of `code_edges` without candidates gives no edge, and nothing depends
on how rows are spread over partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.ir.kinds import CODE_NAMES
from raydex.kernels.resolve import FAMILIES, Repository

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RELATION_COLUMNS = ("source", "target", "relation", "confidence", "rule", "record_id", "locator", "excerpt_hash", "line")
# relations of the rows by which names are resolved
TELLING = ("IMPORTS", "INHERITS", CODE_NAMES)
# what a Python worker is given of a repository: `text` is a module's path, a symbol's qualified name or the label of a row of `code_edges`;
# `rule` is a symbol's discriminator or the row's rule; `asked`: whether the row is to be resolved, and not only to resolve others by
_ROWS = pa.schema(
    [
        pa.field("tag", pa.string()),
        pa.field("symbol_id", pa.string()),
        pa.field("text", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("relation", pa.string()),
        pa.field("rule", pa.string()),
        pa.field("candidates", pa.list_(pa.string())),
        pa.field("asked", pa.bool_()),
        pa.field("line", pa.int32()),
        pa.field("char_start", pa.int64()),
        pa.field("char_end", pa.int64()),
        pa.field("excerpt_hash", pa.string()),
    ]
)
_RESOLVED = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("target", pa.string()),
        pa.field("relation", pa.string()),
        pa.field("confidence", pa.string()),
        pa.field("rule", pa.string()),
        pa.field("record_id", pa.string()),
        pa.field("line", pa.int32()),
        pa.field("char_start", pa.int64()),
        pa.field("char_end", pa.int64()),
        pa.field("excerpt_hash", pa.string()),
    ]
)


def code_relations(frames: Mapping[str, DataFrame], scope: DataFrame | None = None) -> DataFrame:
    """Relations between symbols: `RELATION_COLUMNS`, one row a site. `scope` (record_id) limits the rows that are resolved, never the
    definitions that they are resolved against (contracts 26)."""
    from pyspark.sql import functions as F

    edges = frames["code_edges"]
    decided = edges.where(F.col("target").isNotNull()).select("record_id", *[name for name in _RESOLVED.names if name != "record_id"])
    if scope is not None:
        decided = decided.join(F.broadcast(scope), "record_id", "left_semi")
    relations = decided.unionByName(resolved_references(frames, edges, scope))
    return relations.select(*RELATION_COLUMNS[:6], _locator(), *RELATION_COLUMNS[7:])


def resolved_references(frames: Mapping[str, DataFrame], edges: DataFrame, scope: DataFrame | None = None) -> DataFrame:
    """The open rows of `edges` that have candidates → rows with targets; columns of `_RESOLVED`."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    symbols = frames["symbols"]
    family = F.create_map(*[F.lit(part) for pair in FAMILIES.items() for part in pair])[F.col("language")]
    is_module = F.col("kind") == "module"
    is_open = F.col("target").isNull() & (F.size("candidates") > 0) & (F.col("relation") != CODE_NAMES)
    if scope is None:
        marked = edges.withColumn("asked", is_open)
    else:
        inside = F.broadcast(scope.withColumn("inside", F.lit(True)))
        marked = edges.join(inside, "record_id", "left").withColumn("asked", is_open & F.coalesce("inside", F.lit(False)))
    # bases say what classes inherit, decided or not
    telling = F.col("relation").isin(*TELLING)
    decided = F.when(F.col("target").isNotNull(), F.array("target")).otherwise(F.col("candidates"))
    told = marked.where(telling | F.col("asked")).withColumn("candidates", decided)

    def rows(frame: DataFrame, **given: Column) -> DataFrame:
        columns = [given[f.name] if f.name in given else F.lit(None).cast(f.dataType) for f in layout]
        return frame.select("record_id", *[column.alias(f.name) for column, f in zip(columns, layout, strict=True)])

    layout = from_arrow_schema(_ROWS)
    modules = rows(symbols.where(is_module), tag=F.lit("module"), symbol_id=F.col("symbol_id"), text=F.col("path"))
    symbol = {"symbol_id": F.col("symbol_id"), "text": F.col("qualified_name"), "kind": F.col("kind"), "rule": F.col("discriminator")}
    defined = rows(symbols.where(~is_module), tag=F.lit("symbol"), **symbol)
    same = ("relation", "rule", "candidates", "asked", "line", "char_start", "char_end", "excerpt_hash")
    referred = rows(
        told,
        tag=F.lit("reference"),
        symbol_id=F.col("source"),
        text=F.col("label"),
        **{name: F.col(name) for name in same},
    )
    # the module of a record tells its language, the ledger its repository
    groups = (
        symbols.where(is_module & family.isNotNull())
        .select("record_id", family.alias("family"))
        .join(frames["records"].select("record_id", "workspace", "repository"), "record_id")
    )
    every = modules.unionByName(defined).unionByName(referred).join(groups, "record_id")
    return every.groupBy("workspace", "repository", "family").applyInArrow(resolve_repository, from_arrow_schema(_RESOLVED))


def resolve_repository(rows: pa.Table) -> pa.Table:
    """One repository and family of languages: its definitions and open references (columns of `_ROWS`) → rows with targets."""
    known = Repository(rows["family"][0].as_py())
    references = rows.filter(pc.equal(rows["tag"], "reference"))
    definitions = rows.filter(pc.not_equal(rows["tag"], "reference"))
    for tag, record, symbol, text, kind, discriminator in _zipped(definitions, "tag", "record_id", "symbol_id", "text", "kind", "rule"):
        if tag == "symbol":
            known.add_symbol(symbol, record, text, kind, discriminator or "")
        else:
            known.add_module(symbol, record, text)
    telling = references.filter(pc.is_in(references["relation"], pa.array(TELLING)))
    for row in _zipped(telling, "record_id", "symbol_id", "relation", "text", "rule", "candidates"):
        known.add_reference(*row)
    asked = references.filter(pc.fill_null(references["asked"], False))
    made: dict[str, list[Any]] = {"row": [], "target": [], "relation": [], "confidence": [], "rule": []}
    for at, (record, relation, rule, candidates) in enumerate(_zipped(asked, "record_id", "relation", "rule", "candidates")):
        for resolution in known.resolve(record, relation, rule, candidates):
            made["row"].append(at)
            made["target"].append(resolution.target)
            made["relation"].append(resolution.relation)
            made["confidence"].append(resolution.confidence)
            made["rule"].append(resolution.rule)
    taken = asked.take(pa.array(made["row"], pa.int64())).rename_columns(["source" if n == "symbol_id" else n for n in asked.column_names])
    columns = [pa.array(made[f.name], f.type) if f.name in made else taken[f.name].cast(f.type) for f in _RESOLVED]
    return pa.Table.from_arrays(columns, schema=_RESOLVED)


def _zipped(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*[table[name].to_pylist() for name in names], strict=True)


def _locator() -> Column:
    """Canonical string of Locator(char=…, line=…); null where the row has no range."""
    from pyspark.sql import functions as F

    char = F.concat(F.lit("char="), F.col("char_start"), F.lit("-"), F.col("char_end"))
    line = F.concat(F.lit(";line="), F.col("line"), F.lit("-"), F.col("line"))
    return F.when(F.col("excerpt_hash").isNotNull(), F.concat(char, F.coalesce(line, F.lit("")))).alias("locator")
