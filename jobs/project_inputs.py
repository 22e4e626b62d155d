"""Tables of the lake → DataFrames that hold only what the projection reads.

Spark reads the Parquet files that the pinned Delta versions list: one log reader for the whole project, and no second one at 1 s a table.
The invariant: relations between CPG nodes (AST, CFG, REACHING_DEF: nine rows in ten) are filtered by the file reader and never leave it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from raydex.cluster.delta import list_data_files, table_folder
from raydex.ir.kinds import CODE_NAMES, CODE_RELATIONS_BETWEEN_SYMBOLS
from raydex.ir.tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS: dict[str, tuple[str, ...]] = {
    "records": (
        "record_id",
        "parent_id",
        "workspace",
        "source_name",
        "repository",
        "path",
        "media_type",
        "cas_uri",
        "content_hash",
        "state",
        "reject_class",
    ),
    "documents": ("record_id", "title", "language", "parser", "metadata"),
    "issues": ("record_id", "site", "key"),
    "symbols": (
        "symbol_id",
        "record_id",
        "name",
        "qualified_name",
        "kind",
        "language",
        "path",
        "line",
        "signature",
        "visibility",
        "package",
        "discriminator",
    ),
    "code_edges": (
        "record_id",
        "source",
        "target",
        "relation",
        "confidence",
        "rule",
        "label",
        "candidates",
        "line",
        "char_start",
        "char_end",
        "excerpt_hash",
    ),
    "chunk_nodes": ("node_id", "record_id", "name", "node_type", "properties"),
    "chunk_edges": ("source", "target", "relation", "locator", "excerpt_hash", "record_id"),
}


@dataclass(frozen=True, slots=True)
class ProjectInputs:
    """Parquet files of each table in `COLUMNS`; a table without files is empty."""

    files: Mapping[str, tuple[Path, ...]]


def inputs_of_lake(root: Path, versions: Mapping[str, int]) -> ProjectInputs:
    """The files that the tables below `root` (`Lake.tables`) have at `versions`; a table without a version is empty."""
    files: dict[str, tuple[Path, ...]] = {}
    for name in COLUMNS:
        if name in versions:
            folder = table_folder(root, name)
            files[name] = tuple(folder / file.path for file in list_data_files(root, name, versions[name]))
    return ProjectInputs(files)


def read_inputs(spark: SparkSession, inputs: ProjectInputs) -> dict[str, DataFrame]:
    """A DataFrame for each table of `COLUMNS`, with these columns; `code_edges` only between symbols, and of the names that these give."""
    from pyspark.sql import functions as F

    frames = {name: read_files(spark, name, COLUMNS[name], inputs.files.get(name, ())) for name in COLUMNS}
    frames["code_edges"] = frames["code_edges"].where(F.col("relation").isin(*CODE_RELATIONS_BETWEEN_SYMBOLS, CODE_NAMES))
    return frames


def read_files(spark: SparkSession, name: str, columns: Iterable[str], files: Iterable[Path]) -> DataFrame:
    """Columns of table `name` from Parquet files."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(pa.schema([TABLES[name].schema.field(column) for column in columns]))
    paths = [literal_path(file) for file in files]
    if not paths:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*paths)


def literal_path(path: Path) -> str:
    """A path that Spark takes as it is and not as a pattern. (Its switch against patterns reads a list of such paths twice.)"""
    return re.sub(r"([\\{}\[\]*?,^])", r"\\\1", str(path))


def repositories_of(inputs: ProjectInputs) -> list[tuple[str, str]]:
    """The (workspace, repository) pairs of all records, sorted. Read beside Spark: a query for a handful of names would cost a second."""
    pairs: set[tuple[str, str]] = set()
    for file in inputs.files.get("records", ()):
        with pq.ParquetFile(file, page_checksum_verification=True) as source:
            for batch in source.iter_batches(columns=["workspace", "repository"]):
                unique = pa.Table.from_batches([batch]).group_by(["workspace", "repository"]).aggregate([])
                pairs.update(zip(unique["workspace"].to_pylist(), unique["repository"].to_pylist(), strict=True))
    return sorted(pairs)


def parsers_of(inputs: ProjectInputs) -> set[str]:
    """The parsers of all documents, read beside Spark: what no document needs is not planned."""
    found: set[str] = set()
    for file in inputs.files.get("documents", ()):
        with pq.ParquetFile(file, page_checksum_verification=True) as source:
            for batch in source.iter_batches(columns=["parser"]):
                found.update(pc.unique(batch.column("parser")).to_pylist())
    return found - {None}


def input_bytes(inputs: ProjectInputs) -> int:
    """Bytes of all input files."""
    return sum(file.stat().st_size for files in inputs.files.values() for file in files)
