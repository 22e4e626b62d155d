"""What names mean across the files of one repository, from source text to relations: the parsers and kernels/resolve.py together."""

from __future__ import annotations

import pytest
from code_files import parse_code

from raydex.ir.parsed import ParsedFile
from raydex.kernels.resolve import FAMILIES, Repository

Relation = tuple[str, str, str, str]


def across(files: dict[str, str]) -> set[Relation]:
    """(relation, source, target, confidence) between all files, symbols as "path:qualified name"; CONTAINS is left out."""
    parsed = {path: parse_code(path, text) for path, text in files.items()}
    names = {s.symbol_id: f"{path}:{s.qualified_name if s.kind != 'module' else ''}" for path, p in parsed.items() for s in p.symbols}
    family = FAMILIES[next(iter(parsed.values())).symbols[0].language]
    found = Repository(family)
    for path, file in parsed.items():
        add_file(found, path, file)
    out: set[Relation] = set()
    for path, file in parsed.items():
        edges = file.code_edges
        for at, relation in enumerate(edges["relation"]):
            source, target = edges["source"][at], edges["target"][at]
            if relation in ("AST", "CONTAINS", "EXPORTS"):
                continue
            if target is not None:
                out.add((relation, names[source], names[target], edges["confidence"][at]))
            elif edges["candidates"][at]:
                made = found.resolve(path, relation, edges["rule"][at], edges["candidates"][at])
                out |= {(r.relation, names[source], names[r.target], r.confidence) for r in made}
    return out


def add_file(found: Repository, path: str, file: ParsedFile) -> None:
    module, *symbols = file.symbols
    found.add_module(module.symbol_id, path, path)
    for symbol in symbols:
        found.add_symbol(symbol.symbol_id, path, symbol.qualified_name, symbol.kind, symbol.discriminator)
    edges = file.code_edges
    for at, relation in enumerate(edges["relation"]):
        candidates = [edges["target"][at]] if edges["target"][at] else edges["candidates"][at]
        found.add_reference(path, edges["source"][at], relation, edges["label"][at], edges["rule"][at], candidates)


def calls(found: set[Relation], source: str) -> set[tuple[str, str]]:
    """(target, confidence) of the calls that one symbol or module makes."""
    return {(target, confidence) for relation, at, target, confidence in found if relation == "CALLS" and at == source}


def of(found: set[Relation], relation: str, source: str) -> set[tuple[str, str]]:
    return {(target, confidence) for kind, at, target, confidence in found if kind == relation and at == source}


# what a Python super call means (contracts 23)


def test_a_super_call_is_no_call_of_the_imported_bases_constructor() -> None:
    found = across(
        {
            "a.py": "class A:\n    def __init__(self): pass\n    def go(self): pass\n",
            "b.py": "from a import A\nclass B(A):\n    def go(self): super().go()\n",
        }
    )
    assert calls(found, "b.py:B.go") == {("a.py:A.go", "EXTRACTED")}


# the table of exports of TypeScript


def test_exports_rename() -> None:
    found = across(
        {
            "w.ts": "function a() {}\nfunction b() {}\nexport { b as a };\n",
            "m.ts": "import { a } from './w';\na();\n",
            "n.ts": "import { b } from './w';\nb();\n",
        }
    )
    assert calls(found, "m.ts:") == {("w.ts:b", "EXTRACTED")}
    assert calls(found, "n.ts:") == set(), "b is not exported under its own name"
    assert of(found, "IMPORTS", "m.ts:") == {("w.ts:b", "EXTRACTED")}


def test_a_star_brings_neither_the_default_nor_what_is_not_exported() -> None:
    files = {
        "w.ts": "export default function g() {}\nfunction inner() {}\nexport function _x() {}\nconst c = 1;\nexport { c as d };\n",
        "b.ts": "function own() {}\nexport default own;\nexport * from './w';\n",
        "m.ts": "import d, { _x, inner } from './b';\nd(); _x(); inner();\n",
    }
    found = across(files)
    assert calls(found, "m.ts:") == {("b.ts:own", "EXTRACTED"), ("w.ts:_x", "EXTRACTED")}
    assert of(found, "IMPORTS", "b.ts:") == {("w.ts:", "EXTRACTED"), ("w.ts:_x", "EXTRACTED"), ("w.ts:c", "EXTRACTED")}


def test_an_internal_name_does_not_make_a_barrel_ambiguous() -> None:
    found = across(
        {
            "index.ts": "export * from './one';\nexport * from './two';\n",
            "one.ts": "export function format() {}\nexport function helper() {}\n",
            "two.ts": "import { helper } from './one';\nfunction format() {}\nexport function other() { helper(); format(); }\n",
            "m.ts": "import { format, helper } from './index';\nformat(); helper();\n",
        }
    )
    assert calls(found, "m.ts:") == {("one.ts:format", "EXTRACTED"), ("one.ts:helper", "EXTRACTED")}


@pytest.mark.parametrize(
    ("module", "importer", "target"),
    [
        ("function f() {}\nexport default f;\n", "import g from './w';\ng();\n", "f"),
        ("const f = () => 1;\nexport default f as Maker;\n", "import g from './w';\ng();\n", "f"),
        ("export default function () {}\n", "import g from './w';\ng();\n", "default"),
        ("export default () => 1;\n", "import g from './w';\ng();\n", "default"),
        ("function f() {}\nexport { f as g, f as default };\n", "import h, { g } from './w';\nh(); g();\n", "f"),
        ("function f() {}\nexport = f;\n", "import f = require('./w');\nf();\n", "f"),
        ("function f() {}\nexport = f;\n", "import f from './w';\nf();\n", "f"),
        ("function f() {}\nexport = f;\n", "import * as f from './w';\nf();\n", "f"),
        ("namespace N { export function f() {} }\nexport = N;\n", "import { f } from './w';\nf();\n", "N.f"),
        ("function f() {}\nmodule.exports = f;\n", "const f = require('./w');\nf();\n", "f"),
        ("function f() {}\nmodule.exports = { f, g: f };\n", "const { g } = require('./w');\ng();\n", "f"),
        ("function f() {}\nexports.g = f;\n", "const w = require('./w');\nw.g();\n", "f"),
        ("const f = wrap(() => 1);\nexport { f };\n", "import { f } from './w';\nf();\n", "f"),
        ("const f = wrap(() => 1);\nexport default f;\n", "import f from './w';\nf();\n", "f"),
        ("export namespace Geo.Flat { export function f() {} }\n", "import { Geo } from './w';\nGeo.Flat.f();\n", "Geo.Flat.f"),
        ("export class C { static f() {} }\n", "import * as w from './w';\nw.C.f();\n", "C.f"),
        ("function f() {}\nexport { f as 'odd name' };\n", "import { 'odd name' as g } from './w';\ng();\n", "f"),
    ],
)
def test_what_an_export_stands_for(module: str, importer: str, target: str) -> None:
    found = across({"w.ts": module, "m.ts": importer})
    assert calls(found, "m.ts:") == {(f"w.ts:{target}", "EXTRACTED")}


def test_an_import_that_is_exported_again() -> None:
    found = across(
        {
            "a.ts": "export function a() {}\nexport default a;\n",
            "b.ts": "import { a } from './a';\nimport * as all from './a';\nexport { a as b, all };\nexport { default } from './a';\n",
            "m.ts": "import d, { b, all, a } from './b';\nb();\n",
            "n.ts": "import { all } from './b';\nall.a();\nall();\n",
            "o.ts": "import d from './b';\nd();\n",
            "p.ts": "import { a } from './b';\na();\n",
        }
    )
    assert [calls(found, f"{name}.ts:") for name in "mno"] == [{("a.ts:a", "EXTRACTED")}] * 3
    assert calls(found, "p.ts:") == set()


def test_extends_what_a_module_is() -> None:
    found = across(
        {
            "base.ts": "class Base { constructor() {} m() {} }\nexport = Base;\n",
            "m.ts": (
                "import Base = require('./base');\nclass X extends Base { go() { this.m(); } }\nfunction f(b: Base) { b.m(); }\nnew X();\n"
            ),
        }
    )
    assert of(found, "INHERITS", "m.ts:X") == {("base.ts:Base", "EXTRACTED")}
    assert calls(found, "m.ts:X.go") == calls(found, "m.ts:f") == {("base.ts:Base.m", "EXTRACTED")}
    assert calls(found, "m.ts:") == {("base.ts:Base.constructor", "EXTRACTED")}


def test_all_of_a_declaration_file_is_exported_unless_it_says_what() -> None:
    importer = "import { f } from './w';\nf();\n"
    for module, found in (
        ("declare function f(): void;\nexport interface I {}\n", {("w.d.ts:f", "EXTRACTED")}),
        ("declare function f(): void;\nexport {};\n", set()),
    ):
        assert calls(across({"w.d.ts": module, "m.ts": importer}), "m.ts:") == found


def test_an_exported_name_with_a_value_that_no_symbol_stands_for() -> None:
    found = across(
        {
            "w.ts": "export function f() {}\nf = other;\nexport const { a, b } = make();\nexport default wrap(1);\nexport * from './v';\n",
            "v.ts": "export function a() {}\n",
            "m.ts": "import d, { f, a } from './w';\nf(); a(); d();\n",
        }
    )
    assert calls(found, "m.ts:") == {("w.ts:f", "AMBIGUOUS")}


# members that a class inherits from another file (contracts 8)


def test_inherited_members_across_files() -> None:
    found = across(
        {
            "a.py": "class A:\n    def __init__(self): pass\n    def m(self): pass\n    def n(self): pass\n",
            "b.py": "from a import A\nclass B(A):\n    def n(self): self.m()\ndef make(): return B()\n",
            "c.py": (
                "from b import B\nb = B()\nb.m()\nB.n(b)\nclass D(B):\n    def go(self):\n        self.m(); super().n(); self.missing()\n"
            ),
        }
    )
    assert calls(found, "c.py:") == {("a.py:A.__init__", "EXTRACTED"), ("a.py:A.m", "EXTRACTED"), ("b.py:B.n", "EXTRACTED")}
    assert calls(found, "c.py:D.go") == {("a.py:A.m", "EXTRACTED"), ("b.py:B.n", "EXTRACTED")}
    assert calls(found, "b.py:B.n") == {("a.py:A.m", "EXTRACTED")}
    assert calls(found, "b.py:make") == {("a.py:A.__init__", "EXTRACTED")}, "contracts 8: the constructor is called where it is inherited"


def test_inherited_members_in_typescript() -> None:
    found = across(
        {
            "a.ts": "export class A { constructor() {} m() {} }\nexport interface I { i(): void }\n",
            "b.ts": "import { A, I } from './a';\nexport class B extends A {}\nexport interface J extends I {}\n",
            "c.ts": "import { B, J } from './b';\nconst b = new B();\nb.m();\nfunction f(j: J) { j.i(); }\n",
        }
    )
    assert calls(found, "c.ts:") == {("a.ts:A.constructor", "EXTRACTED"), ("a.ts:A.m", "EXTRACTED")}
    assert calls(found, "c.ts:f") == {("a.ts:I.i", "EXTRACTED")}


@pytest.mark.parametrize(
    ("module", "confidence"),
    [
        ("class B(A): pass", "EXTRACTED"),
        ("class B(object, A): pass", "EXTRACTED"),
        ("from abc import ABC\nclass B(ABC, A): pass", "EXTRACTED"),
        ("class B(dict, A): pass", "AMBIGUOUS"),
        ("class B(make(), A): pass", "AMBIGUOUS"),
        ("from elsewhere import E\nclass B(E, A): pass", "AMBIGUOUS"),
        ("class B(A, dict): pass", "EXTRACTED"),
        ("class B(A):\n    m = 1", ""),
        ("class B(A):\n    def __init__(self): self.m = 1", ""),
        ("class B(A):\n    m: int", "EXTRACTED"),
    ],
)
def test_a_member_is_exact_only_if_no_base_before_it_is_unknown(module: str, confidence: str) -> None:
    found = across(
        {"a.py": "class A:\n    def m(self): pass\n", "b.py": f"from a import A\n{module}\n", "c.py": "from b import B\nB.m()\n"}
    )
    assert calls(found, "c.py:") == ({("a.py:A.m", confidence)} if confidence else set())


def test_the_order_of_bases() -> None:
    found = across(
        {
            "a.py": "class A:\n    def m(self): pass\n",
            "b.py": "from a import A\nclass Left(A): pass\nclass Right(A):\n    def m(self): pass\nclass Both(Left, Right): pass\n",
            "c.py": "from b import Both\nBoth.m()\n",
        }
    )
    assert calls(found, "c.py:") == {("b.py:Right.m", "EXTRACTED")}


def test_classes_in_a_circle_end() -> None:
    found = across({"a.py": "from b import B\nclass A(B): pass\nA.m()\n", "b.py": "from a import A\nclass B(A): pass\nB.m()\n"})
    assert not calls(found, "a.py:") | calls(found, "b.py:")


def test_bases_through_a_star_import() -> None:
    found = across(
        {
            "a.py": "class A:\n    def __init__(self): pass\n    def m(self): pass\n",
            "b.py": "from a import *\nclass B(A):\n    def go(self): self.m()\ndef f(x: A): x.m()\n",
            "c.py": "from b import B\nB()\n",
        }
    )
    assert of(found, "INHERITS", "b.py:B") == {("a.py:A", "EXTRACTED")}
    assert calls(found, "b.py:B.go") == calls(found, "b.py:f") == {("a.py:A.m", "EXTRACTED")}
    assert calls(found, "c.py:") == {("a.py:A.__init__", "EXTRACTED")}


def test_a_function_inside_a_function_is_no_attribute_of_it() -> None:
    found = across({"a.py": "def f():\n    def inner(): pass\n", "b.py": "from a import f\nf.inner()\n"})
    assert calls(found, "b.py:") == set()


# overloads


@pytest.mark.parametrize(
    ("module", "importer", "targets"),
    [
        (
            "from typing import overload\n@overload\ndef f(x: int): ...\n@overload\ndef f(x: str): ...\ndef f(x): pass\n",
            "from m import f\nf(1)\n",
            {"f"},
        ),
        (
            "from typing import overload\nclass C:\n    @overload\n    def __init__(self, x: int): ...\n    @overload\n"
            "    def __init__(self): ...\n    def __init__(self, x=1): pass\n",
            "from m import C\nC(1)\n",
            {"C.__init__"},
        ),
    ],
)
def test_overloads_from_another_file(module: str, importer: str, targets: set[str]) -> None:
    found = across({"m.py": module, "c.py": importer})
    assert calls(found, "c.py:") == {(f"m.py:{target}", "EXTRACTED") for target in targets}
    assert all(confidence == "EXTRACTED" for _, confidence in of(found, "IMPORTS", "c.py:"))
    assert len(of(found, "IMPORTS", "c.py:")) == 1


def test_overloads_of_typescript() -> None:
    found = across(
        {
            "m.ts": (
                "export function f(x: number): void;\nexport function f(x: string): void;\nexport function f(x: any) {}\n"
                "export class C { constructor(x: number); constructor(x: string); constructor(x: any) {}\n"
                "static s(): void; static s(x?: any) {} }\n"
            ),
            "c.ts": "import { f, C } from './m';\nf(1); new C(1); C.s();\n",
        }
    )
    assert calls(found, "c.ts:") == {("m.ts:f", "EXTRACTED"), ("m.ts:C.constructor", "EXTRACTED"), ("m.ts:C.s", "EXTRACTED")}


def test_overloads_without_an_implementation_stay_ambiguous() -> None:
    found = across(
        {
            "m.d.ts": "export function f(x: number): void;\nexport function f(x: string): void;\n",
            "c.ts": "import { f } from './m';\nf(1);\n",
        }
    )
    assert calls(found, "c.ts:") == {("m.d.ts:f", "AMBIGUOUS")}


# fallbacks, and imports that importers do not see

X = "def f(): pass\ndef g(): pass\nclass C:\n    def m(self): pass\n"
LIBRARY = {"x.py": X, "y.py": X}


@pytest.mark.parametrize(
    ("module", "call", "made"),
    [
        ("from y import *\ndef h():\n    from x import g\n", "g", {("y.py:g", "EXTRACTED")}),
        ("from y import g\ndef h():\n    from x import g\n", "g", {("y.py:g", "EXTRACTED")}),
        ("from y import g\nclass K:\n    from x import g\n", "g", {("y.py:g", "EXTRACTED")}),
        ("def h():\n    global g\n    from x import g\n", "g", {("x.py:g", "EXTRACTED")}),
        ("from y import *\nclass K:\n    from x import *\n", "g", {("y.py:g", "EXTRACTED")}),
        ("try:\n    from x import f\nexcept ImportError:\n    def f(): pass\n", "f", {("x.py:f", "AMBIGUOUS"), ("m.py:f", "AMBIGUOUS")}),
        ("try:\n    from x import f\nexcept ImportError:\n    from y import f\n", "f", {("x.py:f", "AMBIGUOUS"), ("y.py:f", "AMBIGUOUS")}),
        ("try:\n    from fast import f\nexcept ImportError:\n    from y import f\n", "f", {("y.py:f", "AMBIGUOUS")}),
        ("try:\n    from x import f\nexcept ImportError:\n    f = None\n", "f", {("x.py:f", "AMBIGUOUS")}),
        ("from x import f\nf = trace(f)\n", "f", {("x.py:f", "AMBIGUOUS")}),
        ("def f(): pass\nf = trace(f)\n", "f", {("m.py:f", "AMBIGUOUS")}),
        ("if flag:\n    def f(): pass\nelse:\n    f = None\n", "f", {("m.py:f", "AMBIGUOUS")}),
    ],
)
@pytest.mark.parametrize("broken", [False, True])
def test_what_a_module_gives_to_its_importers(module: str, call: str, made: set[tuple[str, str]], broken: bool) -> None:
    module += "def broken(:\n" if broken else ""
    found = across({**LIBRARY, "m.py": module, "c.py": f"from m import {call}\n{call}()\n"})
    assert calls(found, "c.py:") == made
    if "def f" not in module and "f = " not in module and "global" not in module:
        inside = across({**LIBRARY, "m.py": module.replace("def broken(:\n", "") + f"{call}()\n"})
        assert calls(inside, "m.py:") == made, "the file itself and its importers agree"


def test_a_fallback_with_attributes_keeps_its_candidates() -> None:
    for other in ("x = None", "class x:\n        pass"):
        module = f"try:\n    import x\nexcept ImportError:\n    {other}\nx.f()\nr = x.C()\nr.m()\nclass D(x.C): pass\n"
        found = across({**LIBRARY, "m.py": module})
        assert calls(found, "m.py:") >= {("x.py:f", "AMBIGUOUS"), ("x.py:C.m", "AMBIGUOUS")}
        assert of(found, "INHERITS", "m.py:D") == {("x.py:C", "AMBIGUOUS")}
    found = across({**LIBRARY, "m.py": "try:\n    from x import C\nexcept ImportError:\n    C = object\nclass D(C): pass\n"})
    assert of(found, "INHERITS", "m.py:D") == {("x.py:C", "AMBIGUOUS")}


def test_importing_a_submodule_binds_its_package() -> None:
    files = {"a/__init__.py": "def top(): pass\n", "a/b.py": "def f(): pass\n"}
    found = across({**files, "m.py": "import a.b\n", "c.py": "from m import a\na.top()\na.b.f()\n"})
    assert of(found, "IMPORTS", "m.py:") == {("a/b.py:", "EXTRACTED")}
    assert of(found, "IMPORTS", "c.py:") == {("a/__init__.py:", "EXTRACTED")}
    assert calls(found, "c.py:") == {("a/__init__.py:top", "EXTRACTED"), ("a/b.py:f", "EXTRACTED")}
    found = across({**files, "m.py": "import a.b as a\n", "c.py": "from m import a\na.f()\na.top()\n"})
    assert of(found, "IMPORTS", "m.py:") == of(found, "IMPORTS", "c.py:") == {("a/b.py:", "EXTRACTED")}
    assert calls(found, "c.py:") == {("a/b.py:f", "EXTRACTED")}


# names that hold what can be called, and long ways


def test_holders_mean_the_same_in_their_file_and_from_another() -> None:
    module = "from functools import partial\ndef plus(): pass\nadd = partial(plus, 1)\nclass A: pass\nB = A\nclass C(B): pass\nadd()\nB()\n"
    found = across({"m.py": module, "c.py": "from m import add, B\nclass C(B): pass\nadd()\nB()\n"})
    expected = {("m.py:add", "EXTRACTED"), ("m.py:B", "EXTRACTED")}
    assert calls(found, "m.py:") == expected and calls(found, "c.py:") == expected
    assert of(found, "INHERITS", "m.py:C") == of(found, "INHERITS", "c.py:C") == {("m.py:B", "EXTRACTED")}
    module = "export const add = wrap(1);\nexport const Base = mixin();\nadd();\nexport class C extends Base {}\n"
    found = across({"m.ts": module, "c.ts": "import { add, Base } from './m';\nadd();\nclass D extends Base {}\n"})
    assert calls(found, "m.ts:") == calls(found, "c.ts:") == {("m.ts:add", "EXTRACTED")}
    assert of(found, "INHERITS", "m.ts:C") == of(found, "INHERITS", "c.ts:D") == {("m.ts:Base", "EXTRACTED")}


def test_a_variable_that_is_set_again_is_the_same_variable() -> None:
    found = across({"m.py": "f = None\nif x:\n    f = one\ndef g():\n    global f\n    f = two\nf()\n", "c.py": "from m import f\nf()\n"})
    assert calls(found, "m.py:") == calls(found, "c.py:") == {("m.py:f", "EXTRACTED")}


@pytest.mark.parametrize("length", [6, 40])
@pytest.mark.parametrize("star", [False, True])
def test_chains_of_reexports(length: int, star: bool) -> None:
    files = {f"p{n}.py": f"from p{n + 1} import {'*' if star else 'f'}\n" for n in range(length)}
    found = across({**files, f"p{length}.py": "def f(): pass\n", "c.py": "from p0 import f\nf()\n"})
    assert calls(found, "c.py:") == {(f"p{length}.py:f", "EXTRACTED")}
    if not star:
        assert of(found, "IMPORTS", "p0.py:") == {(f"p{length}.py:f", "EXTRACTED")}


def test_packages_that_import_each_other_by_star_are_quick() -> None:
    count = 30
    stars = "".join(f"from p{n} import *\n" for n in range(count))
    files = {f"p{n}.py": stars + f"def f{n}(): missing{n}(); f{(n + 1) % count}()\n" for n in range(count)}
    found = across(files)
    assert calls(found, "p3.py:f3") == {("p4.py:f4", "EXTRACTED")}


def test_a_module_that_imports_itself_leaves_no_doubt() -> None:
    found = across({"a.py": "def f(): pass\nfrom a import f\n", "c.py": "from a import f\nf()\n"})
    assert calls(found, "c.py:") == {("a.py:f", "EXTRACTED")}
