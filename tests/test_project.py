"""The projection: tables → nodes, edges, evidence, ranks (jobs/project*.py). One Spark session for all cases with Spark."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shared_cases import case

from raydex.ir.ids import code_edge_id, content_hash, edge_id, evidence_id, repository_id
from raydex.ir.kinds import EDGE_KINDS
from raydex.ir.locator import Locator
from raydex.ir.tables import TABLES
from raydex.jobs.project import ProjectOutputs, project
from raydex.jobs.project_hash import projection_hash
from tests.project_lake import STAMP, WORKSPACE, TestLake

SERVICE = {
    "service/dock/__init__.py": "from .stations import find_station as locate\nfrom .bikes import *\n",
    "service/dock/stations.py": (
        "from .bikes import Bike\n\n\nclass Station:\n    def __init__(self, name):\n        self.name = name\n\n"
        "    def release(self):\n        return Bike(self)\n\n\ndef find_station(name):\n    return Station(name)\n"
    ),
    "service/dock/bikes.py": (
        "class Bike:\n    def __init__(self, station):\n        self.station = station\n\n\ndef _hidden():\n    pass\n"
    ),
    "service/dock/api.py": (
        "import json\nimport dock.stations as st\nfrom dock import locate, Bike\nfrom . import bikes\n\n\n"
        "def rent(name):\n    station = locate(name)\n    other = st.find_station(name)\n    bikes.Bike(station)\n"
        "    Bike(other)\n    return json.dumps(name)\n\n\nclass Fast(Bike):\n    pass\n"
    ),
    "tools/a/helpers.py": "def help():\n    pass\n",
    "tools/b/helpers.py": "def help():\n    pass\n",
    "main.py": "import helpers\nfrom dock.api import rent, Fast\n\nrent('x')\nhelpers.help()\nFast('y')\n",
}
CLIENT = {
    "client/api.ts": (
        "export class Client {\n  constructor(readonly base: string) {}\n}\nexport function get(path: string) { return path; }\n"
    ),
    "client/index.ts": 'export { get as fetchIt } from "./api";\nfunction put() {}\nexport default put;\n',
    "client/put.ts": 'import send from ".";\nexport function twice() { send(); }\n',
    "client/app.ts": (
        'import { get, Client } from "./api";\nimport { fetchIt } from ".";\nimport * as api from "./api";\n'
        'export function run() { get("/a"); fetchIt("/b"); api.get("/c"); return new Client("x"); }\n'
    ),
}


def dock_lake() -> TestLake:
    lake = TestLake()
    for path, text in {**SERVICE, **CLIENT}.items():
        lake.add_file(path, text)
    lake.add_document("docs/guide.md", "The guide", [("nod_start", "Start", None), ("nod_deep", "Deep", "nod_start")])
    lake.add_record("src/broken.rs", b"fn", "shop", "shop", state="rejected", reject_class="syntax")
    lake.add_record("data/rows.csv", b"a,b", "shop", "shop", state="rejected", reject_class="unsupported_media_type")
    return lake


class Seen:
    """A projection as sets of readable names."""

    def __init__(self, outputs: ProjectOutputs) -> None:
        self.outputs = outputs
        self.nodes = {row["node_id"]: row for row in outputs.table("nodes").to_pylist()}
        self.edges = outputs.table("edges").to_pylist()
        self.evidence = {row["evidence_id"]: row for row in outputs.table("evidence").to_pylist()}

    def name(self, node_id: str) -> str:
        node = self.nodes[node_id]
        where = f"{node['path']}:" if node["kind"] not in ("repository", "file", "document", "module", "section") else ""
        return f"{node['kind']} {where}{node['qualified_name']}"

    def of(self, relation: str) -> dict[tuple[str, str], str]:
        return {(self.name(e["source"]), self.name(e["target"])): e["confidence"] for e in self.edges if e["relation"] == relation}

    def rules(self, relation: str, source: str, target: str) -> list[str]:
        found = [
            e for e in self.edges if e["relation"] == relation and (self.name(e["source"]), self.name(e["target"])) == (source, target)
        ]
        return sorted(rule for e in found for rule in e["rules"])


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from raydex.cluster.spark import open_spark

    with open_spark(tmp_path_factory.mktemp("spark"), cores=2, memory="1g") as session:
        yield session


@pytest.fixture(scope="module")
def dock(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("a [lake] {x} *")
    return Seen(project(spark, dock_lake().write(folder / "in"), STAMP, folder / "out"))


def test_the_hash_is_of_rows_and_not_of_their_order() -> None:
    def batches(rows: list[dict[str, Any]], name: str = "edges") -> list[pa.RecordBatch]:
        return pa.Table.from_pylist(rows, TABLES[name].schema).to_batches(max_chunksize=1)

    def hashed(rows: list[dict[str, Any]]) -> str:
        return projection_hash({"nodes": [], "edges": batches(rows), "evidence": []})

    one = {"edge_id": "e1", "source": "a", "target": "b", "relation": "CALLS", "evidence_ids": ["x", "y"], "run_id": "r1", "epoch": 1}
    two = {"edge_id": "e2", "source": "ab", "target": "", "relation": "CALLS", "evidence_ids": ["xy"], "run_id": "r1", "epoch": 1}
    base = hashed([one, two])
    assert hashed([two, one]) == base
    assert hashed([{**one, "run_id": "r2", "epoch": 9}, two]) == base
    for change in (
        {"source": "ab", "target": ""},
        {"evidence_ids": ["xy"]},
        {"evidence_ids": ["x", "y", ""]},
        {"evidence_ids": []},
        {"evidence_ids": None},
        {"target": None},
        {"relation": "IMPORTS"},
    ):
        assert hashed([{**one, **change}, two]) != base, change
    assert hashed([one]) != base
    assert hashed([]) == projection_hash({"nodes": [], "edges": [], "evidence": []})


def test_ids_of_whole_columns_are_those_of_one_row() -> None:
    from raydex.jobs.project_graph import add_ids

    rows = [
        {
            "source": "a",
            "target": "bü",
            "relation": "CALLS",
            "record_id": "r1",
            "locator": "char=0-1;line=3-3",
            "excerpt_hash": "h",
            "line": 3,
        },
        {"source": "ab", "target": "ü", "relation": "CALLS", "record_id": "r1", "locator": None, "excerpt_hash": "h", "line": 4},
        {"source": "a", "target": "", "relation": "IMPORTS", "record_id": "r1", "locator": "char=0-1", "excerpt_hash": None, "line": 5},
    ]
    given = [{**row, "confidence": "EXTRACTED", "rule": "x", "revision": "v", "cas_uri": "cas:v", "path": "p;1.py"} for row in rows]
    made = [row for batch in add_ids([pa.RecordBatch.from_pylist(given)]) for row in batch.to_pylist()]
    for row in made:
        assert row["edge_id"] == edge_id(row["source"], row["target"], row["relation"])
        assert row["evidence_id"] == evidence_id(row["record_id"], row["locator"], row["excerpt_hash"], row["revision"])
    assert [row["line"] for row in made] == [3, None, None]
    assert made[1]["locator"] == made[2]["locator"] == str(Locator(member="p;1.py"))
    assert made[1]["excerpt_hash"] == made[2]["excerpt_hash"] == content_hash(b"p;1.py")


@pytest.mark.slow
def test_calls_across_files(dock: Seen) -> None:
    stations, bikes, api = ("service/dock/stations.py:", "service/dock/bikes.py:", "service/dock/api.py:")
    calls, made = dock.of("CALLS"), dock.of("INSTANTIATES")
    assert calls[f"function {api}rent", f"function {stations}find_station"] == "EXTRACTED"
    assert dock.rules("CALLS", f"function {api}rent", f"function {stations}find_station") == ["import_exact", "reexport"]
    assert made[f"function {api}rent", f"class {bikes}Bike"] == "EXTRACTED"
    assert calls[f"function {api}rent", f"method {bikes}Bike.__init__"] == "EXTRACTED"
    assert made[f"method {stations}Station.release", f"class {bikes}Bike"] == "EXTRACTED"
    assert made[f"function {stations}find_station", f"class {stations}Station"] == "EXTRACTED"
    assert calls["module main", f"function {api}rent"] == "EXTRACTED"
    assert calls["module main", "function tools/a/helpers.py:help"] == "AMBIGUOUS"
    assert calls["module main", "function tools/b/helpers.py:help"] == "AMBIGUOUS"
    assert not any("class" in target.split()[0] for _, target in calls)
    assert dock.of("INHERITS") == {(f"class {api}Fast", f"class {bikes}Bike"): "EXTRACTED"}
    assert calls["module main", f"method {bikes}Bike.__init__"] == "EXTRACTED", "inherited from another file (contracts 8)"


@pytest.mark.slow
def test_a_rule_is_that_of_its_edge(spark: Any) -> None:
    """One call site may show two edges, and one edge may be seen at it by two rules: contracts 22 wants a line for each pair."""
    from raydex.jobs.project_graph import make_edges, make_evidence

    at = {"record_id": "r", "locator": "char=0-1;line=1-1", "excerpt_hash": "h", "revision": "v", "cas_uri": "", "path": "p", "line": 1}
    rows = [
        {**at, "edge_id": "e1", "evidence_id": "x", "target": "t1", "relation": "CALLS", "confidence": "AMBIGUOUS", "rule": "by_name"},
        {**at, "edge_id": "e1", "evidence_id": "x", "target": "t1", "relation": "CALLS", "confidence": "EXTRACTED", "rule": "import_exact"},
        {**at, "edge_id": "e1", "evidence_id": "w", "target": "t1", "relation": "CALLS", "confidence": "EXTRACTED", "rule": "local_name"},
        {**at, "edge_id": "e2", "evidence_id": "x", "target": "t2", "relation": "INSTANTIATES", "confidence": "INFERRED", "rule": "class"},
    ]
    schema = "record_id string, locator string, excerpt_hash string, revision string, cas_uri string, path string, line int, "
    schema += "edge_id string, evidence_id string, target string, relation string, confidence string, rule string"
    checked = spark.createDataFrame([tuple(row.values()) for row in rows], schema).selectExpr(
        "*", "'s' source", "cast(null as string) problem"
    )
    edges = {row["edge_id"]: row for row in make_edges(checked).collect()}
    assert (edges["e1"]["evidence_ids"], edges["e1"]["rules"]) == (["w", "x"], ["local_name", "import_exact"])
    assert (edges["e2"]["evidence_ids"], edges["e2"]["rules"]) == (["x"], ["class"])
    assert (edges["e1"]["confidence"], edges["e2"]["confidence"]) == ("EXTRACTED", "INFERRED")
    assert sorted(row["evidence_id"] for row in make_evidence(checked).collect()) == ["w", "x"]


@pytest.mark.slow
def test_imports_across_files(dock: Seen) -> None:
    imports = dock.of("IMPORTS")
    assert imports["module service.dock.api", "module service.dock.stations"] == "EXTRACTED"
    assert imports["module service.dock.api", "module service.dock.bikes"] == "EXTRACTED"
    assert imports["module service.dock", "class service/dock/bikes.py:Bike"] == "INFERRED"
    assert not any("_hidden" in target for _, target in imports)
    assert not any("json" in dock.name(node) for node in dock.nodes)


@pytest.mark.slow
def test_a_typescript_client(dock: Seen) -> None:
    calls, made = dock.of("CALLS"), dock.of("INSTANTIATES")
    assert calls["function client/app.ts:run", "function client/api.ts:get"] == "EXTRACTED"
    assert dock.rules("CALLS", "function client/app.ts:run", "function client/api.ts:get").count("import_exact") == 2
    assert "reexport" in dock.rules("CALLS", "function client/app.ts:run", "function client/api.ts:get")
    assert made["function client/app.ts:run", "class client/api.ts:Client"] == "EXTRACTED"
    assert calls["function client/put.ts:twice", "function client/index.ts:put"] == "EXTRACTED", "by the table of exports"
    assert calls["function client/app.ts:run", "method client/api.ts:Client.constructor"] == "EXTRACTED"


@pytest.mark.slow
def test_what_lies_inside_what(dock: Seen) -> None:
    inside = dock.of("CONTAINS")
    for pair in (
        ("repository shop", "file main.py"),
        ("repository shop", "document docs/guide.md"),
        ("file service/dock/api.py", "module service.dock.api"),
        ("module service.dock.api", "function service/dock/api.py:rent"),
        ("class service/dock/stations.py:Station", "method service/dock/stations.py:Station.release"),
        ("document docs/guide.md", "section docs/guide.md#Start"),
        ("section docs/guide.md#Start", "section docs/guide.md#Deep"),
        ("repository shop", "file src/broken.rs"),
    ):
        assert inside[pair] == "EXTRACTED", pair
    broken = next(n for n in dock.nodes.values() if n["path"] == "src/broken.rs")
    assert '"reject_class":"syntax"' in broken["properties"]
    assert not [n for n in dock.nodes.values() if n["path"] == "data/rows.csv"]
    repository = dock.nodes[repository_id(WORKSPACE, "shop")]
    assert (repository["kind"], repository["source_keys"], repository["record_id"]) == ("repository", ["shop"], None)
    guide = next(n for n in dock.nodes.values() if n["kind"] == "document")
    assert (guide["name"], guide["source_keys"]) == ("The guide", ["shop:docs/guide.md"])


@pytest.mark.slow
def test_every_edge_is_legal_has_evidence_and_the_ids_of_the_contract(dock: Seen) -> None:
    texts = {**SERVICE, **CLIENT}
    assert dock.edges and not dock.outputs.problem_counts and dock.outputs.problems.num_rows == 0
    for edge in dock.edges:
        assert edge["edge_id"] == edge_id(edge["source"], edge["target"], edge["relation"])
        kinds = (dock.nodes[edge["source"]]["kind"], dock.nodes[edge["target"]]["kind"])
        assert kinds in EDGE_KINDS[edge["relation"]].pairs
        assert edge["evidence_ids"] == sorted(set(edge["evidence_ids"])) and edge["evidence_ids"]
        assert len(edge["rules"]) == len(edge["evidence_ids"]) and all(edge["rules"])
        assert all(dock.evidence[i]["record_id"] == edge["record_id"] for i in edge["evidence_ids"])
    used = {i for edge in dock.edges for i in edge["evidence_ids"]}
    assert used == set(dock.evidence)
    for key, row in dock.evidence.items():
        assert key == evidence_id(row["source_record_id"], row["locator"], row["excerpt_hash"], row["revision"])
        assert row["cas_uri"] == f"cas:{row['revision']}" and row["verification"] == "candidate"
        place = Locator.parse(row["locator"])
        assert str(place) == row["locator"]
        if place.char is None:
            assert place.member == row["path"] and row["excerpt_hash"] == content_hash(row["path"].encode())
        elif row["path"] in texts:
            excerpt = texts[row["path"]][slice(*place.char)]
            assert content_hash(excerpt.encode()) == row["excerpt_hash"] and place.line == (row["line"], row["line"])
    for name in ("nodes", "edges", "evidence", "ranks"):
        table = dock.outputs.table(name)
        assert table.schema == TABLES[name].schema and table.num_rows == dock.outputs.counts[name]
        assert table.column("run_id").to_pylist() == ["run_1"] * table.num_rows
        assert len(set(table.column(TABLES[name].key).to_pylist())) == table.num_rows


@pytest.mark.slow
def test_ranks_are_of_code_nodes_and_follow_use(dock: Seen) -> None:
    ranks = {row["node_id"]: row["pagerank"] for row in dock.outputs.table("ranks").to_pylist()}
    assert {dock.nodes[n]["kind"] for n in ranks} >= {"file", "module", "function", "repository"}
    assert not {dock.nodes[n]["kind"] for n in ranks} & {"document", "section"}
    by_name = {dock.name(n): rank for n, rank in ranks.items()}
    assert by_name["class service/dock/bikes.py:Bike"] > by_name["function service/dock/api.py:rent"]
    assert by_name["file main.py"] == min(ranks.values())


@pytest.mark.slow
def test_partitions_order_and_adaptive_execution_change_nothing(spark: Any, dock: Seen, tmp_path: Path) -> None:
    import raydex.jobs.project as module

    lake = dock_lake()
    expected = {name: dock.outputs.table(name).sort_by(TABLES[name].key) for name in ("nodes", "edges", "evidence")}
    before = module.tune
    for seed, partitions, adaptive in ((1, 1, True), (2, 8, False)):

        def tuned(session: Any, size: int, partitions: int = partitions, adaptive: bool = adaptive) -> None:
            before(session, size)
            session.conf.set("spark.sql.shuffle.partitions", str(partitions))
            session.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())
            session.conf.set("spark.sql.codegen.wholeStage", str(adaptive).lower())

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "tune", tuned)
            again = project(spark, lake.write(tmp_path / f"in{seed}", seed=seed, files=seed), STAMP, tmp_path / f"out{seed}")
        assert again.projection_hash == dock.outputs.projection_hash
        for name, table in expected.items():
            assert again.table(name).sort_by(TABLES[name].key).equals(table), (name, partitions, adaptive)


@pytest.mark.slow
def test_scopes_add_up_to_the_whole(spark: Any, dock: Seen, tmp_path: Path) -> None:
    inputs = dock_lake().write(tmp_path / "in")
    records = sorted({row["record_id"] for row in dock.nodes.values() if row["record_id"]})
    halves = [project(spark, inputs, STAMP, tmp_path / f"out{at}", scope=records[at::2]) for at in (0, 1)]
    for name in ("edges", "evidence", "nodes"):
        key = TABLES[name].key
        rows = {row[key]: row for half in halves for row in half.table(name).to_pylist()}
        assert rows == {row[key]: row for row in dock.outputs.table(name).to_pylist()}, name
    shared = set(halves[0].table("edges")["edge_id"].to_pylist()) & set(halves[1].table("edges")["edge_id"].to_pylist())
    assert not shared


@pytest.mark.slow
def test_one_repository_known_by_two_sources(spark: Any, tmp_path: Path) -> None:
    lake = TestLake()
    for source in ("left", "right"):
        lake.add_file("pkg.py", "def f():\n    pass\n\n\nf()\n", source, "mono")
    seen = Seen(project(spark, lake.write(tmp_path / "in"), STAMP, tmp_path / "out"))
    assert seen.nodes[repository_id(WORKSPACE, "mono")]["source_keys"] == ["left", "right"]
    function = next(n for n in seen.nodes.values() if n["kind"] == "function")
    assert function["source_keys"] == ["left:pkg.py#f", "right:pkg.py#f"]
    assert len([n for n in seen.nodes.values() if n["kind"] == "file"]) == 2
    call = next(e for e in seen.edges if e["relation"] == "CALLS")
    assert (call["confidence"], len(call["evidence_ids"])) == ("EXTRACTED", 2)


def edge_row(source: str, target: str, relation: str, number: int = 0) -> dict[str, Any]:
    return {
        "edge_id": code_edge_id(relation, source, target, str(number)),
        "source": source,
        "target": target,
        "relation": relation,
        "confidence": "EXTRACTED",
        "rule": "local_name",
        "label": str(number),
        "candidates": [],
        "line": number + 1,
        "char_start": number,
        "char_end": number + 1,
        "excerpt_hash": content_hash(f"{source}{number}".encode()),
    }


def symbols_lake(symbols: list[tuple[str, str]], edges: list[tuple[str, str, str]]) -> TestLake:
    lake = TestLake()
    stamp = lake.add_record("a.py", b"x", "s", "r")
    lake.add("documents", [{"title": "a.py", "language": "python"}], stamp)
    rows = [{"symbol_id": i, "name": i, "qualified_name": i, "kind": kind, "language": "python", "path": "a.py"} for i, kind in symbols]
    lake.add("symbols", rows, stamp)
    lake.add("code_edges", [edge_row(*edge, at) for at, edge in enumerate(edges)], stamp)
    return lake


def check_isolated(
    spark: Any, folder: Path, vertices: list[tuple[str, str]], edges: list[tuple[str, str, str]], *settings: tuple[int, str]
) -> None:
    """Case b48: isolated vertices, an edge to a vertex that is not there, a repeated edge, an edge to itself."""
    from raydex.jobs.project_graph import graph_of

    outputs = project(spark, symbols_lake(vertices, edges).write(folder / "in"), STAMP, folder / "out")
    seen = Seen(outputs)
    calls = {(e["source"], e["target"]): e for e in seen.edges if e["relation"] == "CALLS"}
    assert set(calls) == {("a", "b"), ("b", "a"), ("c", "c")}
    assert len(calls["a", "b"]["evidence_ids"]) == 2
    assert {n for n in seen.nodes if n in dict(vertices)} == {"a", "b", "c", "lonely", "A"}
    assert outputs.problem_counts == {"dangling_edge": 1}
    problem = outputs.problems.to_pylist()[0]
    assert (problem["source"], problem["target"], problem["problem"]) == ("b", "ghost", "dangling_edge")
    assert "function b CALLS missing node ghost" in problem["message"]
    nodes = spark.read.parquet(*[str(f) for f in outputs.files["nodes"]]).where("kind = 'function'")
    arcs = spark.read.parquet(*[str(f) for f in outputs.files["edges"]]).where("relation = 'CALLS'")
    for partitions, adaptive in settings:
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        spark.conf.set("spark.sql.adaptive.enabled", adaptive)
        components: dict[int, set[str]] = {}
        for row in graph_of(nodes, arcs).connectedComponents().collect():
            components.setdefault(row["component"], set()).add(row["id"])
        assert sorted(map(sorted, components.values())) == [["A"], ["a", "b"], ["c"], ["lonely"]]


@pytest.mark.slow
def test_isolated_dangling_and_repeated(spark: Any, tmp_path: Path) -> None:
    pairs = [("a", "b"), ("b", "a"), ("a", "b"), ("b", "ghost"), ("c", "c")]
    check_isolated(
        spark, tmp_path, [(i, "function") for i in ("a", "b", "c", "lonely", "A")], [(s, t, "CALLS") for s, t in pairs], (1, "true")
    )


@pytest.mark.slow
def test_case_b48(spark: Any, tmp_path: Path) -> None:
    folder = case("b48-graphframes-isolated")
    with open(folder / "vertices.csv", newline="") as vertices, open(folder / "edges.csv", newline="") as edges:
        nodes = [(row["id"], "function") for row in csv.DictReader(vertices)]
        arcs = [(row["src"], row["dst"], row["kind"].upper()) for row in csv.DictReader(edges)]
    check_isolated(spark, tmp_path, nodes, arcs, (8, "false"))


@pytest.mark.slow
def test_what_is_not_declared_is_reported_with_both_sides(spark: Any, tmp_path: Path) -> None:
    lake = symbols_lake(
        [("f", "function"), ("k", "class"), ("v", "variable"), ("twin", "class")],
        [("f", "k", "CALLS"), ("f", "v", "INHERITS"), ("k", "f", "CONTAINS"), ("f", "f", "CALLS")],
    )
    other = lake.add_record("b.py", b"y", "s", "r")
    lake.add("documents", [{"title": "b.py", "language": "python"}], other)
    lake.add("symbols", [{"symbol_id": "twin", "name": "twin", "qualified_name": "twin", "kind": "enum", "language": "python"}], other)
    lake.add("chunk_nodes", [{"node_id": "odd", "name": "odd", "node_type": "galaxy", "properties": "{}"}], other)
    outputs = project(spark, lake.write(tmp_path / "in"), STAMP, tmp_path / "out")
    seen = Seen(outputs)
    assert outputs.problem_counts == {"illegal_edge": 2, "kind_conflict": 2}
    told = {row["problem"] + " " + row["message"] for row in outputs.problems.to_pylist()}
    assert "illegal_edge function f CALLS class k" in told and "illegal_edge function f INHERITS variable v" in told
    conflict = next(message for message in told if "node twin" in message)
    assert "class by s:a.py#twin" in conflict and "enum by s:b.py#twin" in conflict
    assert any("node odd is galaxy by s:b.py#odd" in message for message in told)
    assert "odd" not in seen.nodes and len(seen.nodes["twin"]["source_keys"]) == 1
    assert {e["relation"] for e in seen.edges if e["source"] in "fk"} == {"CALLS", "CONTAINS"}
    assert set(EDGE_KINDS) >= {e["relation"] for e in seen.edges}


@pytest.mark.slow
def test_nothing_in_nothing_out(spark: Any, tmp_path: Path) -> None:
    outputs = project(spark, TestLake().write(tmp_path / "in"), STAMP, tmp_path / "out")
    assert set(outputs.counts.values()) == {0} and not outputs.problem_counts
    assert outputs.table("edges").num_rows == 0
