"""Tables of a lake → the projection: canonical nodes, edges with evidence, ranks (seed 2; contracts 22-26).

One implementation for the whole lake and for a scope of records: definitions are always read whole, rows are resolved for the scope only.
Each step writes Parquet below the output folder and the next one reads it, so that no plan is computed twice. The invariant: the rows and
the hash depend on the input rows alone, never on their order, on partitions or on adaptive execution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from raydex.ir.tables import PROJECT_TABLES, TABLES
from raydex.jobs.project_code import code_relations
from raydex.jobs.project_graph import check_relations, identify, make_edges, make_evidence, rank_nodes
from raydex.jobs.project_hash import HASHED_TABLES, projection_hash
from raydex.jobs.project_inputs import ProjectInputs, input_bytes, literal_path, parsers_of, read_inputs, repositories_of
from raydex.jobs.project_mail import MAIL_PARSERS, TICKET_PARSER, mail_relations, mail_rows, person_views, ticket_ids
from raydex.jobs.project_nodes import declare_nodes, merge_nodes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAX_PROBLEMS = 10_000
BATCH_ROWS = 4_096
BUFFER_BYTES = 256_000
SMALL_BYTES = 8_000_000
PARTITION_BYTES = 32_000_000
TASK_BYTES = 2_000_000
# groups that one task aggregates by hash; Spark's own 128 would sort every list of evidence
GROUPS_A_TASK = 1_000_000
PROBLEMS = pa.schema(
    [
        ("problem", pa.string()),
        ("message", pa.string()),
        ("record_id", pa.string()),
        ("path", pa.string()),
        ("relation", pa.string()),
        ("source", pa.string()),
        ("target", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class ProjectStamp:
    """The common columns that all rows of one projection share; record_id and content_hash are each row's own."""

    fingerprint: str
    run_id: str
    epoch: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class ProjectOutputs:
    """Where the rows are, and what was found.

    `problems` holds at most 10,000 rows a class (columns PROBLEMS; problem is dangling_edge, illegal_edge or kind_conflict),
    `problem_counts` all of them by class. `counts` is rows by table.
    """

    files: dict[str, tuple[Path, ...]]
    counts: dict[str, int]
    problems: pa.Table
    problem_counts: dict[str, int]
    projection_hash: str
    stamp: ProjectStamp

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """Rows of table `name` (nodes, edges, evidence, ranks) in exactly its schema."""
        yield from read_stamped(name, self.files[name], self.stamp)

    def table(self, name: str) -> pa.Table:
        """All rows of table `name` at once."""
        return pa.Table.from_batches(self.batches(name), TABLES[name].schema)


def project(
    spark: SparkSession, inputs: ProjectInputs, stamp: ProjectStamp, out: Path, scope: Iterable[str] | None = None
) -> ProjectOutputs:
    """Projects the tables of `inputs` into `out` (a folder that it may fill; an older projection there is replaced).

    `scope`: ids of the records whose nodes, edges and evidence are wanted; None for all. Ranks are computed only for all.
    """
    tune(spark, input_bytes(inputs))
    frames = read_inputs(spark, inputs)
    repositories = repositories_of(inputs)
    wanted = None if scope is None else spark.createDataFrame(pa.table({"record_id": pa.array(sorted(set(scope)), pa.string())}))
    parsers = parsers_of(inputs)
    tickets = stored(ticket_ids(frames), out / "tickets") if TICKET_PARSER in parsers else None
    mails = stored(mail_rows(frames["documents"]), out / "mails") if parsers & set(MAIL_PARSERS) else None
    declared = declare_nodes(frames, repositories, tickets, wanted)
    views, relations = declared.views, declared.relations.unionByName(code_relations(frames, wanted))
    if mails is not None:
        said = mails if wanted is None else mails.join(wanted, "record_id", "left_semi")
        views = views.unionByName(person_views(said, frames["records"]))
        relations = relations.unionByName(mail_relations(mails, frames["records"], wanted))
    merged = stored(merge_nodes(views), out / "merged")
    # edges of a scope may end in any node
    ends = merged if wanted is None else merge_nodes(_all_views(frames, repositories, tickets, mails))
    checked = stored(check_relations(identify(relations, frames["records"]), ends), out / "relations")
    edges = stored(make_edges(checked), out / "edges")
    stored(make_evidence(checked), out / "evidence")
    if wanted is None:
        stored(rank_nodes(merged, edges), out / "ranks")
    files = {name: _parts(out / ("merged" if name == "nodes" else name)) for name in PROJECT_TABLES}
    counts = {"ranks": sum(pq.read_metadata(file).num_rows for file in files["ranks"])}
    hashed = projection_hash({name: _counted(name, read_stamped(name, files[name], stamp), counts) for name in HASHED_TABLES})
    problems, problem_counts = find_problems(files["nodes"], _parts(out / "relations"))
    return ProjectOutputs(files, counts, problems, problem_counts, hashed, stamp)


def _all_views(
    frames: Mapping[str, DataFrame], repositories: list[tuple[str, str]], tickets: DataFrame | None, mails: DataFrame | None
) -> DataFrame:
    views = declare_nodes(frames, repositories, tickets).views
    return views if mails is None else views.unionByName(person_views(mails, frames["records"]))


def tune(spark: SparkSession, size: int) -> None:
    """Spark's run-time settings by the bytes of input. Small inputs are bound by planning and by compiling generated code, so neither is
    done for them; large ones by rows."""
    small = size < SMALL_BYTES
    cores = spark.sparkContext.defaultParallelism
    partitions = min(cores, size // TASK_BYTES + 1) if small else max(cores, size // PARTITION_BYTES + 1)
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    spark.conf.set("spark.sql.files.minPartitionNum", str(partitions))
    spark.conf.set("spark.sql.files.openCostInBytes", str(64_000))
    spark.conf.set("spark.sql.objectHashAggregate.sortBased.fallbackThreshold", str(GROUPS_A_TASK))
    spark.conf.set("spark.sql.adaptive.enabled", str(not small).lower())
    spark.conf.set("spark.sql.codegen.wholeStage", str(not small).lower())
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN" if small else "FALLBACK")


def _counted(name: str, batches: Iterator[pa.RecordBatch], counts: dict[str, int]) -> Iterator[pa.RecordBatch]:
    """The batches as they come; when they have ended `counts[name]` is their number of rows."""
    counts[name] = 0
    for batch in batches:
        counts[name] += batch.num_rows
        yield batch


def _parts(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob("*.parquet")))


def stored(frame: DataFrame, folder: Path) -> DataFrame:
    """Writes a frame as Parquet and gives it back as read from there: its plan ends here."""
    frame.write.mode("overwrite").option("compression", "zstd").parquet(str(folder))
    return frame.sparkSession.read.schema(frame.schema).parquet(literal_path(folder))


def read_stamped(name: str, files: Iterable[Path], stamp: ProjectStamp) -> Iterator[pa.RecordBatch]:
    """Rows of our own Parquet files with the stamp's columns, in exactly the schema of table `name`; memory is bounded by a batch."""
    schema = TABLES[name].schema
    shared = {"fingerprint": stamp.fingerprint, "run_id": stamp.run_id, "epoch": stamp.epoch, "written_at": stamp.written_at}
    own = [field.name for field in schema if field.name not in shared]
    for file in files:
        with pq.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER_BYTES) as source:
            for batch in source.iter_batches(BATCH_ROWS, columns=own):
                if name == "nodes":
                    batch = batch.filter(pc.is_valid(batch.column("kind")))
                columns = []
                for field in schema:
                    if field.name in shared:
                        columns.append(pa.repeat(pa.scalar(shared[field.name], field.type), batch.num_rows))
                    else:
                        columns.append(batch.column(field.name).cast(field.type))
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def find_problems(merged: Iterable[Path], relations: Iterable[Path]) -> tuple[pa.Table, dict[str, int]]:
    """What became no node or edge: rows of PROBLEMS, sorted, at most MAX_PROBLEMS a class, and the number of all by class."""
    found: dict[str, list[dict[str, str | None]]] = {}
    counts: dict[str, int] = {}

    def report(problem: str, message: str, **row: str | None) -> None:
        counts[problem] = counts.get(problem, 0) + 1
        kept = found.setdefault(problem, [])
        if len(kept) < MAX_PROBLEMS:
            kept.append({"problem": problem, "message": message, **row})

    for file in merged:
        with pq.ParquetFile(file) as source:
            for batch in source.iter_batches(columns=["node_id", "kind", "views"]):
                several = pc.or_(pc.is_null(batch.column("kind")), pc.greater(pc.list_value_length(batch.column("views")), 1))
                for node in batch.filter(several).to_pylist():
                    kinds = sorted({view["kind"] or "no kind" for view in node["views"]})
                    if len(kinds) > 1 or node["kind"] is None:
                        sides = " and ".join(f"{view['kind'] or 'no kind'} by {view['source_key']}" for view in node["views"])
                        report("kind_conflict", f"node {node['node_id']} is {sides}", source=node["node_id"])
    columns = ["problem", "edge_id", "evidence_id", "record_id", "path", "relation", "source", "target", "source_kind", "target_kind"]
    seen: set[tuple[str, str]] = set()
    for file in relations:
        with pq.ParquetFile(file) as source:
            for batch in source.iter_batches(columns=columns):
                for row in batch.filter(pc.is_valid(batch.column("problem"))).to_pylist():
                    if (row["edge_id"], row["evidence_id"]) in seen:
                        continue
                    seen.add((row["edge_id"], row["evidence_id"]))
                    ends = (f"{row[f'{end}_kind'] or 'missing node'} {row[end]}" for end in ("source", "target"))
                    message = f" {row['relation']} ".join(ends)
                    report(row["problem"], message, **{name: row[name] for name in PROBLEMS.names if name in columns and name != "problem"})
    rows = [row for kept in found.values() for row in kept]
    rows.sort(key=lambda row: [row.get(name) or "" for name in PROBLEMS.names])
    return pa.Table.from_pylist(rows, PROBLEMS), dict(sorted(counts.items()))
