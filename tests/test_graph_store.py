"""The graph file: built whole or not at all, read by many, paths and neighbours as the edges say."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections import deque
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydex.cluster import graph_store
from raydex.cluster.graph_schema import _is_closed, ddl
from raydex.cluster.graph_store import Graph, Marker, build_graph, open_graph
from raydex.ir.errors import ConfigError, StoreError
from raydex.ir.ids import edge_id
from raydex.ir.kinds import EDGE_KINDS
from raydex.ir.rows import to_table

MARK = Marker(7, "manifest", "projection")
NASTY = 'it\'s "q" \\ back\\n \nnew\tline\r\n 电池 🎉 {a:1} $x; \x00 // MATCH (n) DETACH DELETE n'
CODE = [name for name, kind in EDGE_KINDS.items() if kind.code]
Edge = tuple[str, str, str, str]


def nodes_of(names: Any, **changes: Any) -> pa.Table:
    names = list(names)
    columns: dict[str, Any] = {"node_id": names, "kind": ["function"] * len(names), "name": [f"name of {n}" for n in names]}
    columns["source_keys"] = [[n] for n in names]
    columns["record_id"] = ["rec_1"] * len(names)
    return to_table("nodes", {**columns, **changes})


def edges_of(edges: list[Edge], **changes: Any) -> pa.Table:
    """(source, relation, target, confidence); the edge's id is readable, its evidence `e:` + id."""
    ids = [f"{source}-{relation}-{target}" for source, relation, target, _ in edges]
    columns = {"edge_id": ids, "source": [e[0] for e in edges], "relation": [e[1] for e in edges], "target": [e[2] for e in edges]}
    columns["confidence"] = [e[3] for e in edges]
    return to_table("edges", {**columns, "evidence_ids": [[f"e:{key}", "e:common"] for key in ids], **changes})


def evidence_of(edges: pa.Table) -> pa.Table:
    ids = sorted({key for keys in edges.column("evidence_ids").to_pylist() for key in keys or ()})
    return to_table("evidence", {"evidence_id": ids, "locator": [f"line:{at}" for at in range(len(ids))], "line": list(range(len(ids)))})


def built(path: Path, names: Any, edges: list[Edge]) -> Path:
    table = edges_of(edges)
    build_graph(path, nodes_of(names), table, evidence_of(table), MARK)
    return path


SMALL: list[Edge] = [
    ("a", "CALLS", "b", "EXTRACTED"),
    ("b", "CALLS", "c", "INFERRED"),
    ("a", "IMPORTS", "b", "VERIFIED"),
    ("c", "CALLS", "c", "EXTRACTED"),
    ("d", "DESCRIBES", "c", "EXTRACTED"),
    ("a", "READS", "d", "AMBIGUOUS"),
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = built(tmp_path_factory.mktemp("graph") / "graph-1.lbug", "abcd", SMALL)
    with open_graph(path) as graph:
        yield graph


def test_what_went_in_comes_out(small: Graph) -> None:
    assert small.marker() == MARK
    assert small.counts() == (4, 6, 7)
    assert small.node_ids() == list("abcd")
    assert small.edge_ids() == sorted(f"{s}-{r}-{t}" for s, r, t, _ in SMALL)
    assert len(small.evidence_ids()) == 7
    assert small.node("a") == {
        "node_id": "a",
        "kind": "function",
        "name": "name of a",
        "qualified_name": None,
        "path": None,
        "repository": None,
        "properties": None,
    }
    assert small.node("x") is None
    rows = small.evidence(["e:common", "no such", "e:a-CALLS-b"])
    assert [row["evidence_id"] for row in rows] == ["e:common", "e:a-CALLS-b"]
    assert rows[0]["locator"] == f"line:{rows[0]['line']}"
    assert small.evidence([]) == []


def test_neighbours_are_edges_in_both_directions(small: Graph) -> None:
    found = small.neighbors("c")
    assert [(e.edge_id, e.source, e.target, e.relation, e.confidence) for e in found] == [
        ("b-CALLS-c", "b", "c", "CALLS", "INFERRED"),
        ("c-CALLS-c", "c", "c", "CALLS", "EXTRACTED"),
        ("d-DESCRIBES-c", "d", "c", "DESCRIBES", "EXTRACTED"),
    ]
    assert found[0].evidence_ids == ("e:b-CALLS-c", "e:common")
    assert [e.edge_id for e in small.neighbors("c", ["DESCRIBES"])] == ["d-DESCRIBES-c"]
    assert small.neighbors("nobody") == []


def test_paths_are_shortest_and_in_a_stable_order(small: Graph) -> None:
    assert small.paths("a", "c", 5, CODE) == [
        (("a", "b", "c"), ("a-CALLS-b", "b-CALLS-c")),
        (("a", "b", "c"), ("a-IMPORTS-b", "b-CALLS-c")),
    ]
    assert small.paths("a", "c", 5, CODE, limit=1) == [(("a", "b", "c"), ("a-CALLS-b", "b-CALLS-c"))]
    assert small.paths("a", "c", 1, CODE) == []
    assert small.paths("a", "c", 5, ["IMPORTS"]) == []
    assert small.paths("c", "a", 5, CODE) == []
    assert small.paths("c", "a", 5, ["CALLS"], undirected=True) == [(("c", "b", "a"), ("b-CALLS-c", "a-CALLS-b"))]
    assert small.paths("a", "c", 5, CODE, confidences=["EXTRACTED", "VERIFIED"]) == []
    assert small.paths("a", "c", 5, CODE, confidences=["VERIFIED", "INFERRED"]) == [(("a", "b", "c"), ("a-IMPORTS-b", "b-CALLS-c"))]
    context = (("a", "d", "c"), ("a-READS-d", "d-DESCRIBES-c"))
    assert small.paths("a", "c", 5, list(EDGE_KINDS)) == [*small.paths("a", "c", 5, CODE), context]
    assert small.paths("a", "a", 5, CODE) == [(("a",), ())]
    assert small.paths("nobody", "a", 5, CODE) == small.paths("a", "nobody", 5, CODE) == small.paths("x", "x", 5, CODE) == []
    assert small.paths("a", "b", 5, []) == small.paths("a", "b", 5, CODE, confidences=[]) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_hops": 0}, "max_hops is 0"),
        ({"max_hops": 31}, "max_hops is 31"),
        ({"relations": ["CALLS]->() DELETE"]}, "unknown relation"),
        ({"confidences": ["SURE"]}, "unknown confidence 'SURE'"),
    ],
)
def test_a_wrong_question_is_named(small: Graph, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        small.paths("a", "c", **{"max_hops": 5, "relations": CODE, **arguments})


def shortest_paths(edges: list[Edge], source: str, target: str, max_hops: int, undirected: bool) -> list[tuple[str, ...]]:
    """All shortest edge sequences, by breadth-first search over partial paths."""
    steps: dict[str, set[tuple[str, str]]] = {}
    for start, relation, end, _ in edges:
        key = f"{start}-{relation}-{end}"
        steps.setdefault(start, set()).add((key, end))
        if undirected:
            steps.setdefault(end, set()).add((key, start))
    layer, seen = deque([((), source)]), {source}
    for _ in range(max_hops):
        following = [((*path, key), end) for path, node in layer for key, end in steps.get(node, ())]
        found = sorted(path for path, node in following if node == target)
        if found:
            return found
        layer = deque(item for item in following if item[1] not in seen)
        seen.update(node for _, node in layer)
    return []


@settings(max_examples=15, deadline=None)
@given(
    st.sets(st.tuples(st.sampled_from("abcdefg"), st.sampled_from(["CALLS", "IMPORTS", "READS"]), st.sampled_from("abcdefg")), max_size=30),
    st.integers(1, 6),
    st.booleans(),
)
def test_paths_agree_with_a_plain_search(found: set[tuple[str, str, str]], hops: int, undirected: bool) -> None:
    edges: list[Edge] = [(*edge, "EXTRACTED") for edge in sorted(found)]
    with tempfile.TemporaryDirectory() as folder, open_graph(built(Path(folder) / "g.lbug", "abcdefg", edges)) as graph:
        for source, target in itertools.islice(itertools.permutations("abcdefg", 2), 0, None, 5):
            paths = graph.paths(source, target, hops, CODE, undirected, limit=10_000)
            assert [path.edges for path in paths] == shortest_paths(edges, source, target, hops, undirected)
            assert all(path.nodes[0] == source and path.nodes[-1] == target and len(path.nodes) == len(path.edges) + 1 for path in paths)


def test_the_first_of_exponentially_many_paths_come_at_once(tmp_path: Path) -> None:
    """9 full layers of 12 nodes: 12^8 shortest paths."""
    layers = [[f"n{depth:02}{at:02}" for at in range(12)] for depth in range(9)]
    edges: list[Edge] = [(a, "CALLS", b, "EXTRACTED") for left, right in itertools.pairwise(layers) for a in left for b in right]
    names = ["s", *itertools.chain(*layers), "t"]
    edges += [("s", "CALLS", a, "EXTRACTED") for a in layers[0]] + [(a, "CALLS", "t", "EXTRACTED") for a in layers[-1]]
    with open_graph(built(tmp_path / "g.lbug", names, edges)) as graph:
        paths = graph.paths("s", "t", 20, CODE, limit=5)
    assert [len(path.edges) for path in paths] == [10] * 5
    assert paths[0].nodes == ("s", *(f"n{depth:02}00" for depth in range(9)), "t")
    assert paths == sorted(paths, key=lambda path: path.edges)


def test_text_survives_exactly(tmp_path: Path) -> None:
    names = ["a", 'it\'s "b" \\ \n; c']
    edges = edges_of([("a", "CALLS", names[1], "EXTRACTED")])
    evidence = to_table("evidence", {"evidence_id": ["e:common", edges.column("evidence_ids")[0][0].as_py()], "locator": [NASTY, ""]})
    folder = tmp_path / "we[i]r'd *{x} \\n"
    build_graph(folder / "g.lbug", nodes_of(names, name=[NASTY, None], properties=['{"a": "\\"q\\""}', NASTY]), edges, evidence, MARK)
    with open_graph(folder / "g.lbug") as graph:
        node = graph.node("a")
        assert node is not None
        assert (node["name"], node["properties"]) == (NASTY, '{"a": "\\"q\\""}')
        other = graph.node(names[1])
        assert other is not None
        assert (other["name"], other["properties"]) == (None, NASTY)
        assert graph.evidence(["e:common"])[0]["locator"] == NASTY
        assert graph.node_ids() == sorted(names)
        assert graph.paths("a", names[1], 3, CODE)[0].nodes == ("a", names[1])
        assert [e.target for e in graph.neighbors(names[1])] == [names[1]]
        assert graph.node("a'}) DETACH DELETE a; //") is None
        assert graph.counts().nodes == 2
    assert [path.name for path in folder.iterdir()] == ["g.lbug"]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_other_text_types_of_arrow_are_taken(tmp_path: Path, kind: pa.DataType) -> None:
    def cast(table: pa.Table) -> pa.Table:
        return pa.table({n: c.cast(kind) if pa.types.is_string(c.type) else c for n, c in zip(table.schema.names, table.columns)})

    edges = edges_of(SMALL)
    build_graph(tmp_path / "g.lbug", cast(nodes_of("abcd")), cast(edges), cast(evidence_of(edges)), MARK)
    with open_graph(tmp_path / "g.lbug") as graph:
        assert graph.counts() == (4, 6, 7)


def test_an_empty_graph_is_complete(tmp_path: Path) -> None:
    with open_graph(built(tmp_path / "g.lbug", [], [])) as graph:
        assert (graph.counts(), graph.marker(), graph.node_ids(), graph.edge_ids()) == ((0, 0, 0), MARK, [], [])


def test_every_kind_of_edge_has_its_table(tmp_path: Path) -> None:
    with open_graph(built(tmp_path / "g.lbug", "ab", [("a", name, "b", "EXTRACTED") for name in EDGE_KINDS])) as graph:
        assert {e.relation for e in graph.neighbors("a")} == set(EDGE_KINDS)
    assert not any("DOUBLE" in statement for statement in ddl())


ONE: list[Edge] = [("a", "CALLS", "b", "EXTRACTED")]
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], list[Edge], str]] = {
    "an edge to an unknown node": ({}, {}, [*ONE, ("b", "CALLS", "ghost", "EXTRACTED")], "target is no node: 1 rows, first b-CALLS-ghost"),
    "an edge from an unknown node": ({}, {}, [("ghost", "CALLS", "b", "EXTRACTED")], "source is no node"),
    "an edge without an end": ({}, {"target": [None]}, ONE, "target is no node"),
    "an edge twice": ({}, {}, [*ONE, *ONE], "1 edge ids are there more than once: a-CALLS-b"),
    "a node twice": ({"node_id": ["a", "a"]}, {}, [], "1 node ids are there more than once: a"),
    "an edge without an id": ({}, {"edge_id": [None]}, ONE, "1 edge rows have no edge_id"),
    "a node with an empty id": ({"node_id": ["a", ""]}, {}, [], "1 node rows have no node_id"),
    "an edge without evidence": ({}, {"evidence_ids": [[]]}, ONE, "an edge has no evidence"),
    "an edge with null evidence": ({}, {"evidence_ids": [None]}, ONE, "an edge has no evidence"),
    "an unknown relation": ({}, {}, [("a", "LIKES", "b", "EXTRACTED")], "unknown relation of edge"),
    "an unknown confidence": ({}, {}, [("a", "CALLS", "b", "SURE")], "unknown confidence of edge"),
    "an unknown kind": ({"kind": ["function", "thing"]}, {}, [], r"unknown kind of node: 1 rows, first b \(thing\)"),
    "an evidence id with a comma": ({}, {"evidence_ids": [["x,y"]]}, ONE, "an evidence id holds a ','"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_graph_that_does_not_hold_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    node_changes, edge_changes, edges, message = REFUSED[name]
    table = edges_of(edges, **edge_changes)
    with pytest.raises(StoreError, match=message):
        build_graph(tmp_path / "new" / "g.lbug", nodes_of("ab", **node_changes), table, evidence_of(table), MARK)
    assert list(tmp_path.iterdir()) == []


def test_evidence_that_is_not_there_is_refused(tmp_path: Path) -> None:
    edges = edges_of(ONE)
    with pytest.raises(StoreError, match="edges name 1 evidence ids that are not there: e:common"):
        build_graph(tmp_path / "g.lbug", nodes_of("ab"), edges, evidence_of(edges).filter(pa.array([True, False])), MARK)


def test_self_loops_isolated_nodes_and_repeated_evidence_are_kept(tmp_path: Path) -> None:
    names = ["a", "A", "b", "c", "lonely"]
    edges: list[Edge] = [("a", "CALLS", "b", "EXTRACTED"), ("c", "CALLS", "c", "EXTRACTED")]
    with open_graph(built(tmp_path / "g.lbug", names, edges)) as graph:
        assert graph.node_ids() == sorted(names)
        assert [e.edge_id for e in graph.neighbors("c")] == ["c-CALLS-c"]
        assert graph.neighbors("a")[0].evidence_ids == ("e:a-CALLS-b", "e:common")
        assert graph.neighbors("A") == graph.neighbors("lonely") == []


# whole or not at all


def test_a_build_that_fails_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = built(tmp_path / "g.lbug", "ab", ONE)
    real = graph_store._copy

    def copy(connection: Any, table: str, rows: pa.Table) -> None:
        if table == "Marker":
            raise RuntimeError("the disk is full")
        real(connection, table, rows)

    monkeypatch.setattr(graph_store, "_copy", copy)
    with pytest.raises(RuntimeError, match="disk is full"):
        built(path, "abcd", SMALL)
    assert [p.name for p in tmp_path.iterdir()] == ["g.lbug"]
    with open_graph(path) as graph:
        assert graph.counts().nodes == 2


HEAD = """
    import os, sys, pyarrow as pa
    from raydex.cluster import graph_store
    from raydex.cluster.graph_store import Marker, build_graph, open_graph
    from raydex.ir.rows import to_table
"""


def run(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    script = textwrap.dedent(HEAD) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize("table", ["Entity", "CALLS", "Marker"])
def test_a_builder_killed_in_mid_build_is_simply_run_again(tmp_path: Path, table: str) -> None:
    path = built(tmp_path / "g.lbug", "ab", ONE)
    died = run(f"""
        real = graph_store._copy
        def copy(connection, table, rows):
            real(connection, table, rows)
            if table == {table!r}:
                os.kill(os.getpid(), 9)
        graph_store._copy = copy
        nodes = to_table("nodes", {{"node_id": ["a", "b", "c"], "kind": ["function"] * 3}})
        edges = {{"edge_id": ["e"], "source": ["a"], "target": ["c"], "relation": ["CALLS"]}}
        edges = to_table("edges", {{**edges, "confidence": ["EXTRACTED"], "evidence_ids": [["x"]]}})
        build_graph({str(path)!r}, nodes, edges, to_table("evidence", {{"evidence_id": ["x"]}}), Marker(2, "", ""))
    """)
    assert died.returncode == -9
    assert (tmp_path / "g.lbug.tmp").exists()
    with open_graph(path) as graph:
        assert (graph.marker(), graph.counts().nodes) == (MARK, 2)
    built(path, "abcd", SMALL)
    assert [p.name for p in tmp_path.iterdir()] == ["g.lbug"]
    with open_graph(path) as graph:
        assert graph.counts().nodes == 4


@pytest.mark.parametrize("content", [None, b"", b"not a graph" * 1000])
def test_a_file_that_is_no_complete_graph_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "g.lbug"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StoreError, match=r"g\.lbug"):
        open_graph(path)


def test_a_file_without_its_marker_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = graph_store._copy
    monkeypatch.setattr(graph_store, "_copy", lambda c, table, rows: None if table == "Marker" else real(c, table, rows))
    path = built(tmp_path / "g.lbug", "ab", ONE)
    with pytest.raises(StoreError, match="no complete marker"):
        open_graph(path)


def test_several_processes_read_one_file_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """As another user, since file modes do not bind the super-user."""
    folder = Path(tempfile.mkdtemp(prefix="graph-"))
    try:
        built(folder / "g.lbug", "abcd", SMALL)
        os.chmod(folder / "g.lbug", 0o444)
        os.chmod(folder, 0o555)
        code = f"""
            import ladybug  # the other user may not be able to read the interpreter's libraries
            if os.geteuid() == 0:
                os.setuid(65534)
            try:
                open({str(folder / "probe")!r}, "w")
            except PermissionError:
                pass
            else:
                sys.exit("the folder can be written")
            with open_graph({str(folder / "g.lbug")!r}) as graph:
                print(graph.counts().edges, len(graph.paths("a", "c", 5, ["CALLS"])), flush=True)
                sys.stdin.read()
        """
        script = textwrap.dedent(HEAD) + textwrap.dedent(code)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        readers = [subprocess.Popen([sys.executable, "-c", script], **pipes) for _ in range(3)]
        lines = [reader.stdout.readline() for reader in readers if reader.stdout]
        results = [reader.communicate("") for reader in readers]
        assert (lines, [reader.returncode for reader in readers]) == (["6 1\n"] * 3, [0] * 3), results
        assert sorted(p.name for p in folder.iterdir()) == ["g.lbug"]
    finally:
        os.chmod(folder, 0o755)
        shutil.rmtree(folder)


@pytest.mark.slow
def test_a_process_that_used_both_stores_exits_with_0_ten_times(tmp_path: Path) -> None:
    built(tmp_path / "g.lbug", "abcd", SMALL)
    for at in range(10):
        done = run(f"""
            import numpy as np
            from raydex.cluster.vectors import VectorStore
            store = VectorStore({str(tmp_path / f"v{at % 3}.db")!r}, "c", 8).open()
            rows = [{{"id": f"chk_{{n}}", "doc_id": "rec_1", "embedding": np.eye(8)[n % 8]}} for n in range(100)]
            store.load({at // 3 + 1}, [rows], [])
            graph = open_graph({str(tmp_path / "g.lbug")!r})
            assert graph.paths("a", "c", 5, ["CALLS"]) and len(store.search(np.eye(8)[0], 3, {at // 3 + 1})) == 3
            if {at % 2}:
                store.close()
                graph.close()
        """)
        assert (done.returncode, done.stderr) == (0, "")


KEYS = st.lists(st.sampled_from(["a", "b", "c", "d", None]), max_size=4)


@given(st.lists(KEYS, min_size=1, max_size=4), st.lists(KEYS, min_size=1, max_size=3))
def test_one_hash_table_tells_whether_keys_are_unique_and_all_uses_known(keys: list[list[str]], uses: list[list[str]]) -> None:
    columns = [pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks]) for chunks in (keys, uses)]
    flat_keys, flat_uses = (list(itertools.chain(*chunks)) for chunks in (keys, uses))
    expected = None not in flat_keys and len(set(flat_keys)) == len(flat_keys) and set(flat_uses) <= set(flat_keys)
    assert _is_closed(columns[0], [columns[1]]) == expected


def test_canonical_edge_ids_are_unique_over_relations() -> None:
    assert len({edge_id("a", "b", relation) for relation in EDGE_KINDS}) == len(EDGE_KINDS)
