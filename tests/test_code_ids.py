"""Ids of code: they are those of `raydex.ir.ids`, distinct, and do not change when code moves."""

from __future__ import annotations

import pytest
from code_files import edges_of, ids_of, linked, names_of, parse_code, symbols_of
from shared_cases import case

from raydex.ir.code import CODE_EDGE_COLUMNS, CODE_NODE_COLUMNS
from raydex.ir.ids import code_edge_id, code_node_id, code_symbol_id
from raydex.ir.kinds import EDGE_KINDS, SYMBOL_KINDS

PYTHON = """\
import sys
from shop import cart, cart
if sys.platform == "win32":
    def home(): return "w"
else:
    def home():
        def step(): return 1
        return step()

class T:
    @property
    def size(self): return 1
    @size.setter
    def size(self, v): self._s = v
    @size.deleter
    def size(self): del self._s

def run():
    def step(): return 1
    return step() + step() + (lambda: step())()

def run2():
    def step(): return 2
    return [step() for _ in cart.items() if home()]
"""

TYPESCRIPT = """\
import { a, a as b } from "./a";
export function f(n: number): string;
export function f(s: string): string;
export function f(x: any) { return String(x); }
class Box<T> { private items: T[] = []; get size() { return 1; } set size(v) {} static of() { return new Box(); } of() { return f(1); } }
interface Box2 { pop(): void }
interface Box2 { push(x: number): void }
namespace N { export function f() { return g(); } }
namespace N { function g() {} }
const run = () => { const step = () => 1; return step(); };
const run2 = () => { const step = () => 2; return step() + a(step()); };
"""

FILES = {"m.py": PYTHON, "m.ts": TYPESCRIPT}


@pytest.mark.parametrize("path", FILES)
def test_ids_are_those_of_the_id_functions(path: str) -> None:
    parsed = parse_code(path, FILES[path])
    for s in parsed.symbols:
        assert s.symbol_id == code_symbol_id("default", "shop", s.language, path, s.kind, s.qualified_name, s.discriminator)
        assert s.kind in SYMBOL_KINDS
    nodes = parsed.code_nodes
    assert set(nodes) == set(CODE_NODE_COLUMNS) and set(parsed.code_edges) == set(CODE_EDGE_COLUMNS)
    for node_id, symbol, kind, ordinal in zip(nodes["node_id"], nodes["symbol_id"], nodes["kind"], nodes["ordinal"], strict=True):
        assert node_id == code_node_id(symbol, kind, ordinal)
    edges = parsed.code_edges
    for at, edge_id in enumerate(edges["edge_id"]):
        target = edges["target"][at] or edges["expression"][at]
        assert edge_id == code_edge_id(edges["relation"][at], edges["source"][at], target, edges["label"][at])


def test_edge_ids_of_long_and_wide_fields() -> None:
    code = f"from a import größe as é\ngröße()\né.{'x' * 126}()\né.{'x' * 124}()\nx['{'y' * 150}'].go()\n"
    edges = parse_code("w.py", code).code_edges
    seen = 0
    for at, edge_id in enumerate(edges["edge_id"]):
        if edges["relation"][at] in ("CALLS", "IMPORTS"):
            assert edge_id == code_edge_id(edges["relation"][at], edges["source"][at], edges["expression"][at], edges["label"][at])
            seen += 1
    assert seen == 5


def test_ordinals_go_on_past_the_prepared_ones() -> None:
    parsed = parse_code("many.py", "x = 1\n" * 1500)
    nodes = parsed.code_nodes
    at = nodes["ordinal"].index(1400)
    assert nodes["node_id"][at] == code_node_id(nodes["symbol_id"][at], nodes["kind"][at], 1400)
    assert len(set(nodes["node_id"])) == len(nodes["node_id"])


@pytest.mark.parametrize("path", FILES)
def test_ids_are_distinct(path: str) -> None:
    for name, ids in ids_of(parse_code(path, FILES[path])).items():
        assert len(set(ids)) == len(ids), name


@pytest.mark.parametrize("path", FILES)
def test_the_tree_reaches_every_node(path: str) -> None:
    parsed = parse_code(path, FILES[path])
    nodes = set(parsed.code_nodes["node_id"])
    symbols = {s.symbol_id for s in parsed.symbols}
    edges = parsed.code_edges
    tree = [(s, t) for s, t, r in zip(edges["source"], edges["target"], edges["relation"], strict=True) if r == "AST"]
    assert len(tree) == len(nodes) - 1 and {t for _, t in tree} == nodes - {parsed.code_nodes["node_id"][0]}
    below: dict[str, list[str]] = {}
    for source, target in tree:
        below.setdefault(source, []).append(target)
    seen, stack = set(), [parsed.code_nodes["node_id"][0]]
    while stack:
        at = stack.pop()
        seen.add(at)
        stack += below.get(at, [])
    assert seen == nodes and set(parsed.code_nodes["symbol_id"]) <= symbols


@pytest.mark.parametrize("path", FILES)
def test_every_symbol_has_one_parent_and_edges_are_legal(path: str) -> None:
    parsed = parse_code(path, FILES[path])
    kinds = {s.symbol_id: s.kind for s in parsed.symbols}
    edges = parsed.code_edges
    contained = [t for t, r in zip(edges["target"], edges["relation"], strict=True) if r == "CONTAINS"]
    assert sorted(contained) == sorted(s.symbol_id for s in parsed.symbols[1:])
    for source, target, relation in zip(edges["source"], edges["target"], edges["relation"], strict=True):
        if relation != "AST" and target is not None:
            assert (kinds[source], kinds[target]) in EDGE_KINDS[relation].pairs, (kinds[source], relation, kinds[target])
    text = parsed.blocks[0].text
    for at, relation in enumerate(edges["relation"]):
        if relation == "CONTAINS":
            name = next(s.name for s in parsed.symbols if s.symbol_id == edges["target"][at])
            assert text[edges["char_start"][at] : edges["char_end"][at]] == name


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("change", ["blank lines", "comment", "crlf", "blank lines inside"])
def test_moving_code_changes_no_id(path: str, change: str) -> None:
    code = FILES[path]
    sign = "#" if path.endswith("py") else "//"
    moved = {
        "blank lines": "\n" * 10 + code,
        "comment": f"{sign} a comment\n" + code.replace("\nclass", f"\n{sign} another é\nclass"),
        "crlf": code.replace("\n", "\r\n"),
        "blank lines inside": code.replace("\nclass", "\n" * 12 + "class").replace("\nnamespace", "\n\n\nnamespace"),
    }[change]
    before, after = parse_code(path, code), parse_code(path, moved)
    assert ids_of(before) == ids_of(after)
    if change != "crlf":
        assert [s.line for s in before.symbols[1:]] != [s.line for s in after.symbols[1:]]


@pytest.mark.parametrize("path", FILES)
def test_swapping_definitions_changes_no_symbol(path: str) -> None:
    code = FILES[path]
    first = code.index("def run():" if path == "m.py" else "const run =")
    second = code.index("def run2():" if path == "m.py" else "const run2 =")
    swapped = code[:first] + code[second:] + "\n" + code[first:second]
    before, after = parse_code(path, code), parse_code(path, swapped)
    assert ids_of(before)["symbols"] == ids_of(after)["symbols"]
    inside = lambda p: {i for i, s in zip(p.code_nodes["node_id"], p.code_nodes["symbol_id"], strict=True) if "run" in names_of(p)[s]}  # noqa: E731
    assert inside(before) == inside(after) and len(inside(before)) > 20


def test_unrelated_code_changes_no_other_symbol() -> None:
    before = set(ids_of(parse_code("m.py", PYTHON))["symbols"])
    after = set(ids_of(parse_code("m.py", "def new():\n    def step(): pass\n" + PYTHON))["symbols"])
    assert before < after and len(after - before) == 2


def test_equal_names_are_told_apart() -> None:
    assert symbols_of(parse_code("m.py", PYTHON)) == [
        ("function", "home"),
        ("function", "home{#2}"),
        ("function", "home.step{#2/}"),
        ("class", "T"),
        ("property", "T.size{getter}"),
        ("property", "T.size{setter}"),
        ("property", "T.size{deleter}"),
        ("function", "run"),
        ("function", "run.step"),
        ("function", "run2"),
        ("function", "run2.step"),
    ]
    found = symbols_of(parse_code("m.ts", TYPESCRIPT))
    assert [name for _, name in found if name.startswith("f")] == ["f{(number)}", "f{(string)}", "f"]
    assert {"Box.size{getter}", "Box.size{setter}", "Box.of{static}", "Box.of", "N", "N{#2}", "Box2", "Box2{#2}"} <= {n for _, n in found}


def test_inner_functions_of_one_name_are_not_mixed_up() -> None:
    for path in FILES:
        calls = linked(parse_code(path, FILES[path]))
        assert {(s, t) for s, t, _, e in calls if e == "step" and s.startswith("run")} == {("run", "run.step"), ("run2", "run2.step")}


def test_case_same_names() -> None:
    folder = case("b37-py-same-name-ids")
    code = (folder / "dup.py").read_text()
    parsed = parse_code("dup.py", code)
    names = [s.qualified_name for s in parsed.symbols[1:]]
    assert names == ["home", "home", "T", "T.size", "T.size", "run", "run.step", "run2", "run2.step"]
    ids = [s.symbol_id for s in parsed.symbols]
    assert len(set(ids)) == 10
    assert sorted(ids) == ids_of(parse_code("dup.py", "# a comment\n" + code))["symbols"]
    first, second = code.index("def run()"), code.index("def run2()")
    swapped = code[:first] + code[second:].rstrip() + "\n\n" + code[first:second]
    assert sorted(ids) == ids_of(parse_code("dup.py", swapped))["symbols"]
    assert {(e.source, e.target) for e in edges_of(parsed, "CALLS") if e.target} == {("run", "run.step"), ("run2", "run2.step")}
    overloads = parse_code("dup2.ts", (folder / "dup2.ts").read_bytes())
    assert symbols_of(overloads) == [("function", "f{(number)}"), ("function", "f{(string)}"), ("function", "f")]
