"""References across files: what a name means in the whole repository (kernels/importable.py, kernels/resolve.py)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raydex.kernels.importable import Module, PathNames, PythonNames
from raydex.kernels.meanings import distinct_meanings, distinct_paths
from raydex.kernels.resolve import Repository


def repository(files: dict[str, dict[str, str]], family: str = "python", seed: int = 0) -> Repository:
    """`files`: path → qualified name → kind. Record and symbol ids are spelled out of path and name."""
    made = Repository(family)
    order = list(files.items())
    random.Random(seed).shuffle(order)
    for path, symbols in order:
        made.add_module(f"m:{path}".replace(":", "="), path, path)
        for name, kind in symbols.items():
            made.add_symbol(f"{path}={name}", path, name, kind)
    return made


def edges(
    found: Repository, path: str, candidates: list[str], relation: str = "CALLS", rule: str = "import"
) -> list[tuple[str, str, str, str]]:
    return [(r.relation, r.target, r.confidence, r.rule) for r in found.resolve(path, relation, rule, candidates)]


SHOP = {
    "src/shop/__init__.py": {},
    "src/shop/orders.py": {
        "create": "function",
        "Order": "class",
        "Order.__init__": "method",
        "Order.total": "method",
        "_hidden": "function",
    },
    "src/shop/api.py": {"handle": "function"},
    "tests/test_orders.py": {},
    "main.py": {"run": "function"},
}


def test_a_function_of_a_package_is_found_from_anywhere() -> None:
    shop = repository(SHOP)
    for importer in ("src/shop/api.py", "tests/test_orders.py", "main.py"):
        assert edges(shop, importer, ["shop.orders:create"]) == [("CALLS", "src/shop/orders.py=create", "EXTRACTED", "import_exact")]


def test_a_relative_import_is_the_whole_path() -> None:
    found = edges(repository(SHOP), "src/shop/api.py", ["src.shop.orders:create"])
    assert found == [("CALLS", "src/shop/orders.py=create", "EXTRACTED", "import_exact")]


def test_calling_a_class_instantiates_it_and_calls_its_constructor() -> None:
    assert edges(repository(SHOP), "main.py", ["shop.orders:Order"]) == [
        ("CALLS", "src/shop/orders.py=Order.__init__", "EXTRACTED", "import_exact"),
        ("INSTANTIATES", "src/shop/orders.py=Order", "EXTRACTED", "import_exact"),
    ]


def test_a_class_without_constructor_is_only_instantiated() -> None:
    found = repository({"a.py": {"Bare": "class"}, "b.py": {}})
    assert edges(found, "b.py", ["a:Bare"]) == [("INSTANTIATES", "a.py=Bare", "EXTRACTED", "import_exact")]


def test_a_method_through_its_class() -> None:
    assert edges(repository(SHOP), "main.py", ["shop.orders:Order.total"])[0][1] == "src/shop/orders.py=Order.total"


def test_an_attribute_of_a_package_may_be_a_module() -> None:
    shop = repository(SHOP)
    for candidates in (["shop:orders.create"], ["shop.orders:create", "shop:orders.create"]):
        assert edges(shop, "main.py", candidates) == [("CALLS", "src/shop/orders.py=create", "EXTRACTED", "import_exact")]
    imported = edges(shop, "main.py", ["shop:orders", "shop.orders:"], relation="IMPORTS")
    assert imported == [("IMPORTS", "m=src/shop/orders.py", "EXTRACTED", "import_exact")]


def test_reexports_are_followed_and_named() -> None:
    shop = repository(SHOP)
    shop.add_binding("src/shop/__init__.py", "make", ["src.shop.orders:create"])
    assert edges(shop, "main.py", ["shop:make"]) == [("CALLS", "src/shop/orders.py=create", "EXTRACTED", "reexport")]


def test_reexports_through_a_star_import_and_its_hidden_names() -> None:
    shop = repository(SHOP)
    shop.add_binding("src/shop/__init__.py", "*", ["src.shop.orders:"], star=True)
    assert edges(shop, "main.py", ["shop:create"]) == [("CALLS", "src/shop/orders.py=create", "EXTRACTED", "import_star")]
    assert edges(shop, "main.py", ["shop:_hidden"]) == []


def test_reexports_in_a_circle_end() -> None:
    found = repository({"a/__init__.py": {}, "b/__init__.py": {}, "c.py": {}})
    found.add_binding("a/__init__.py", "x", ["b:x"])
    found.add_binding("b/__init__.py", "x", ["a:x"])
    assert edges(found, "c.py", ["a:x"]) == []


def test_the_importers_own_root_wins_but_is_an_assumption() -> None:
    found = repository(
        {p: {"run": "function"} for p in ("a/svc/__init__.py", "a/svc/job.py", "b/svc/__init__.py", "b/svc/job.py", "b/go.py")}
    )
    assert edges(found, "b/go.py", ["svc.job:run"]) == [("CALLS", "b/svc/job.py=run", "INFERRED", "import_exact")]


def test_two_modules_with_one_suffix_are_ambiguous() -> None:
    found = repository({"a/utils.py": {"f": "function"}, "b/utils.py": {"f": "function"}, "main.py": {}})
    assert edges(found, "main.py", ["utils:f"]) == [
        ("CALLS", "a/utils.py=f", "AMBIGUOUS", "import_suffix"),
        ("CALLS", "b/utils.py=f", "AMBIGUOUS", "import_suffix"),
    ]


def test_one_suffix_in_another_folder_is_inferred() -> None:
    found = repository({"lib/utils.py": {"f": "function"}, "app/main.py": {}})
    assert edges(found, "app/main.py", ["utils:f"]) == [("CALLS", "lib/utils.py=f", "INFERRED", "import_suffix")]


@pytest.mark.parametrize("name", ["requests.adapters", "logging", "json", "numpy"])
def test_what_lies_inside_a_package_is_not_what_others_import_by_its_short_name(name: str) -> None:
    found = repository(
        {
            "pip/__init__.py": {},
            "pip/_vendor/__init__.py": {},
            "pip/_vendor/requests/__init__.py": {},
            "pip/_vendor/requests/adapters.py": {"send": "function"},
            "pip/_vendor/logging.py": {"send": "function"},
            "tools/json.py": {"send": "function"},
            "main.py": {},
        }
    )
    assert edges(found, "main.py", [f"{name}:send"]) == []


def test_a_script_inside_a_package_sees_its_neighbours() -> None:
    found = repository({"lib/__init__.py": {}, "lib/main.py": {}, "lib/util.py": {"f": "function"}})
    assert edges(found, "lib/main.py", ["util:f"]) == [("CALLS", "lib/util.py=f", "INFERRED", "import_sibling")]


def test_two_definitions_are_both_candidates() -> None:
    found = repository({"a.py": {"f": "function"}, "b.py": {}})
    found.add_symbol("a.py=f2", "a.py", "f", "function")
    assert [e[1:3] for e in edges(found, "b.py", ["a:f"])] == [("a.py=f", "AMBIGUOUS"), ("a.py=f2", "AMBIGUOUS")]


def test_an_alternative_that_is_not_here_leaves_doubt() -> None:
    found = repository({"slow.py": {"f": "function"}, "b.py": {}})
    assert edges(found, "b.py", ["fast:f", "slow:f"]) == [("CALLS", "slow.py=f", "AMBIGUOUS", "import_exact")]


def test_symbols_of_the_same_file_stay_candidates() -> None:
    found = repository({"a.py": {"f": "function"}, "b.py": {"f": "function", "C": "class", "C.__init__": "method"}})
    assert edges(found, "b.py", ["b.py=f", "a:f"], rule="unresolved_call") == [
        ("CALLS", "a.py=f", "AMBIGUOUS", "import_exact"),
        ("CALLS", "b.py=f", "AMBIGUOUS", "same_file"),
    ]
    assert [e[:3] for e in edges(found, "b.py", ["b.py=C"], rule="unresolved_call")] == [
        ("CALLS", "b.py=C.__init__", "AMBIGUOUS"),
        ("INSTANTIATES", "b.py=C", "AMBIGUOUS"),
    ]


def test_a_star_import_brings_public_names() -> None:
    shop = repository(SHOP)
    assert edges(shop, "main.py", ["shop.orders:"], relation="IMPORTS", rule="import_star") == [
        ("IMPORTS", "m=src/shop/orders.py", "EXTRACTED", "import_star"),
        ("IMPORTS", "src/shop/orders.py=Order", "INFERRED", "import_star"),
        ("IMPORTS", "src/shop/orders.py=create", "INFERRED", "import_star"),
    ]


def test_a_call_through_star_imports() -> None:
    shop = repository(SHOP)
    assert edges(shop, "main.py", ["shop.api:create", "shop.orders:create"], rule="import_star")[0][2] == "EXTRACTED"
    assert edges(shop, "main.py", ["elsewhere:create", "shop.orders:create"], rule="import_star")[0][2] == "INFERRED"


def test_a_package_hides_a_module_and_a_module_its_stub() -> None:
    names = PythonNames([Module(p, p, p) for p in ("m.py", "m.pyi", "p.py", "p/__init__.py", "q.pyi")])
    assert [names.find(n, "x.py").modules[0].path for n in ("m", "p", "q")] == ["m.py", "p/__init__.py", "q.pyi"]


def test_paths_of_typescript_modules() -> None:
    names = PathNames(
        [Module(p, p, p) for p in ("c/api.ts", "c/api/index.ts", "c/api.d.ts", "c/ui/index.tsx", "c/foo.service.ts", "index.ts")]
    )
    for written, path in {
        "c/api": "c/api.ts",
        "c/api.js": "c/api.ts",
        "c/api/index": "c/api/index.ts",
        "c/ui": "c/ui/index.tsx",
        "c/foo.service": "c/foo.service.ts",
        "": "index.ts",
        "@/foo.service": "c/foo.service.ts",
    }.items():
        assert [m.path for m in names.find(written, "c/main.ts").modules] == [path], written
    assert names.find("@/foo.service", "x").assumed
    assert not names.find("react", "c/main.ts").modules


def test_a_typescript_client() -> None:
    found = repository(
        {"c/api.ts": {"get": "function", "Client": "class", "Client.constructor": "method"}, "c/index.ts": {}, "m.ts": {}}, "script"
    )
    for name in ("get", "Client"):
        found.add_given("c/api.ts", name, [f":{name}"])
    found.add_binding("c/index.ts", "*", both("c/api"), star=True)
    found.add_given("c/index.ts", "fetchIt", both("c/api", "get"))
    assert edges(found, "c/main.ts", both("c/api", "get")) == [("CALLS", "c/api.ts=get", "EXTRACTED", "import_exact")]
    assert edges(found, "m.ts", both("c", "fetchIt")) == [("CALLS", "c/api.ts=get", "EXTRACTED", "reexport")]
    assert [e[:2] for e in edges(found, "m.ts", both("c", "Client"))] == [
        ("CALLS", "c/api.ts=Client.constructor"),
        ("INSTANTIATES", "c/api.ts=Client"),
    ]


def both(module: str, name: str = "") -> list[str]:
    """How a relative import of TypeScript is written down."""
    return [f"{module}:{name}", f"{module}/index:{name}"]


def test_a_bare_package_is_no_file_of_the_repository() -> None:
    found = repository({"react.ts": {"use": "function"}, "m.ts": {}}, "script")
    found.add_given("react.ts", "use", [":use"])
    assert edges(found, "m.ts", ["react:use"]) == []
    assert edges(found, "m.ts", both("react", "use"))[0][1:3] == ("react.ts=use", "EXTRACTED")


def test_default_exports() -> None:
    found = repository(
        {"c/def.ts": {"Foo": "class", "Foo.constructor": "method", "Foo.go": "method"}, "c/index.ts": {}, "m.ts": {}}, "script"
    )
    found.add_given("c/def.ts", "default", [":Foo"])
    found.add_given("c/index.ts", "Thing", both("c/def", "default"))
    for asked in (both("c/def", "default"), both("c", "Thing")):
        assert [e[:3] for e in edges(found, "m.ts", asked)] == [
            ("CALLS", "c/def.ts=Foo.constructor", "EXTRACTED"),
            ("INSTANTIATES", "c/def.ts=Foo", "EXTRACTED"),
        ]
    assert edges(found, "m.ts", both("c/def", "default.go"))[0][1] == "c/def.ts=Foo.go"


def test_distinct_paths() -> None:
    assert distinct_paths(both("c/api", "x")) == ["c/api:x"]
    assert distinct_paths(both("c/api/index", "x")) == ["c/api/index:x"]
    assert distinct_paths(["c/index:x"]) == ["c/index:x"]
    assert distinct_paths(["index:x"]) == ["index:x"]
    assert distinct_paths(["@/lib/a:x"]) == ["@/lib/a:x"]
    assert distinct_paths(["@scope/pkg:x", "sym_1"]) == ["//@scope/pkg:x", "sym_1"]
    assert distinct_paths([*both("a", "x"), *both("b", "x")]) == ["a:x", "b:x"]


def test_distinct_meanings() -> None:
    assert distinct_meanings(["a.b:c", "a:b.c", "a.b.c:"]) == ["a:b.c"]
    assert distinct_meanings(["b:x", "a:x", "sym_1"]) == ["a:x", "b:x", "sym_1"]


SEGMENT = st.sampled_from(["a", "b", "c", "json"])
PATHS = st.lists(SEGMENT, min_size=1, max_size=4).map("/".join)


@given(
    files=st.sets(st.tuples(PATHS, st.sampled_from([".py", "/__init__.py", ".pyi"])).map("".join), max_size=12),
    bindings=st.lists(
        st.tuples(st.integers(0, 11), SEGMENT, st.lists(SEGMENT, min_size=1, max_size=3), SEGMENT, st.booleans()), max_size=8
    ),
    asked=st.lists(st.tuples(st.integers(0, 11), st.lists(SEGMENT, min_size=1, max_size=3), st.lists(SEGMENT, max_size=2)), max_size=8),
)
def test_order_of_rows_means_nothing_and_confidence_follows_the_count(files, bindings, asked) -> None:  # type: ignore[no-untyped-def]
    paths = sorted(files)
    answers = []
    for seed in range(3):
        found = repository({p: {"a": "function", "b": "class", "b.__init__": "method"} for p in paths}, seed=seed)
        shuffled = list(bindings)
        random.Random(seed).shuffle(shuffled)
        for at, name, module, qualified, star in shuffled:
            if at < len(paths):
                found.add_binding(paths[at], name, [f"{'.'.join(module)}:{'' if star else qualified}"], star)
        answers.append(
            [edges(found, paths[at], [f"{'.'.join(module)}:{'.'.join(parts)}"]) for at, module, parts in asked if at < len(paths)]
        )
    assert answers[0] == answers[1] == answers[2]
    for answer in answers[0]:
        targets = {target for relation, target, _, _ in answer if relation == "INSTANTIATES" or not target.endswith("__init__")}
        for relation, target, confidence, _ in answer:
            if relation == "CALLS" and not target.endswith("__init__"):
                # one target may be in doubt, too: where a module binds its name in several ways
                assert confidence == "AMBIGUOUS" or len(targets) == 1


MODULES = ("a.py", "b.py", "c/__init__.py", "c/d.py")
MODULE = st.sampled_from(["a", "b", "c", "c.d"])
NAME = st.sampled_from(["x", "y", "K", "d"])
SYMBOL = st.sampled_from([("x", "function"), ("K", "class"), ("K.m", "method")])


@given(
    symbols=st.lists(st.tuples(st.sampled_from(MODULES), SYMBOL), max_size=6),
    bindings=st.lists(st.tuples(st.sampled_from(MODULES), NAME, MODULE, NAME, st.booleans()), max_size=10),
    bases=st.lists(st.tuples(st.sampled_from(MODULES), st.integers(0, 1), MODULE, st.sampled_from(["K", "x"])), max_size=6),
    asked=st.lists(st.tuples(st.sampled_from(MODULES), MODULE, st.sampled_from(["x", "y", "K", "K.m", "d.x", "d.K.m"])), max_size=8),
)
def test_what_was_asked_before_means_nothing_even_in_circles(symbols, bindings, bases, asked) -> None:  # type: ignore[no-untyped-def]
    answers = []
    for seed in range(4):
        found = repository({path: {} for path in MODULES}, seed=seed)
        rows = [
            *(("symbol", row) for row in sorted(set(symbols))),
            *(("binding", row) for row in bindings),
            *(("base", row) for row in {(r[0], r[1]): r for r in bases}.values()),
        ]
        random.Random(seed).shuffle(rows)
        for kind, row in rows:
            if kind == "symbol":
                path, (name, what) = row
                found.add_symbol(f"{path}={name}", path, name, what)
            elif kind == "binding":
                path, name, module, qualified, star = row
                found.add_binding(path, name, [f"{module}:{'' if star else qualified}"], star)
            else:
                path, number, module, name = row
                found.add_reference(path, f"{path}=K", "INHERITS", str(number), "import", [f"{module}:{name}"])
        order = list(enumerate(asked))
        random.Random(seed).shuffle(order)
        given_answers = {at: edges(found, path, [f"{module}:{name}"]) for at, (path, module, name) in order}
        answers.append([given_answers[at] for at in range(len(asked))])
    assert all(answer == answers[0] for answer in answers)
