"""TypeScript and TSX → CodeIR: symbols, scopes, imports, and calls that are linked only where the file decides them."""

from __future__ import annotations

import pytest
from code_files import edges_of, ids_of, linked, open_calls, parse_code, symbols_of
from hypothesis import given, settings
from hypothesis import strategies as st

from raydex.kernels import treesitter
from raydex.kernels.parse import parse
from raydex.kernels.request import ParseRequest
from raydex.kernels.typescript_rules import imported_modules, module_path

SHOP = """\
import { Base } from "./base";
/**
 * Holds parts.
 * @see Base
 */
@Injectable({ root: true })
export abstract class Shelf<T> extends Base<T> implements Store, io.Closer {
  static #made = 0;
  private items: Map<string, number> = new Map();
  readonly inner: Drawer = new Drawer();
  made = new Drawer();
  constructor(private readonly spare: Drawer, size?: number) { super(spare); }
  @log @dec(1) async *pop(this: Shelf<T>, part: string, ...rest: number[]): Promise<void> {
    this.items.pop(part); this.inner.open(); this.spare.open(); this.made.open(); super.pop(part);
  }
  get size(): number { return 1 }
  set size(v) { this.check(v) }
  // Runs later.
  later = async (e: Event) => { this.pop("a"); [1].forEach((x) => this.check(x)); [1].map(function () { this.check(1); }); };
  protected abstract check(x: number): void;
  over(a: string): void;
  over(a: any) { this.over(a); }
  ["computed"]() {}
  'quoted'() {}
}
class Drawer { open(): void {} }
interface Store extends Closer { pop(part: string): void; name: string }
enum Colour { Red = 1, Green }
export type Pair = [number, number];
namespace Geo.Flat { export function area() { return side(); } function side() { return 1; } }
export const LIMIT = 3, other: number = 4;
export let level = 1;
const hidden = 2;
export const fill = (shelf: Shelf<string>, n = 1): void => { shelf.pop("x"); };
const double = function (x: number) { return x * 2; };
export default function () { return double(1); }
export { hidden, double as twice };
"""


def test_symbols_of_a_module() -> None:
    parsed = parse_code("src/shop.ts", SHOP)
    assert symbols_of(parsed) == [
        ("class", "Shelf"),
        ("method", "Shelf.constructor"),
        ("method", "Shelf.pop"),
        ("property", "Shelf.size{getter}"),
        ("property", "Shelf.size{setter}"),
        ("method", "Shelf.later"),
        ("method", "Shelf.check{(number)}"),
        ("method", "Shelf.over{(string)}"),
        ("method", "Shelf.over"),
        ("method", 'Shelf.["computed"]'),
        ("method", "Shelf.quoted"),
        ("class", "Drawer"),
        ("method", "Drawer.open"),
        ("interface", "Store"),
        ("method", "Store.pop{(string)}"),
        ("enum", "Colour"),
        ("type_alias", "Pair"),
        ("namespace", "Geo.Flat"),
        ("function", "Geo.Flat.area"),
        ("function", "Geo.Flat.side"),
        ("constant", "LIMIT"),
        ("constant", "other"),
        ("variable", "level"),
        ("constant", "hidden"),
        ("function", "fill"),
        ("function", "double"),
        ("function", "default"),
    ]
    by_name = {s.qualified_name: s for s in parsed.symbols}
    module, shelf, pop, fill = parsed.symbols[0], by_name["Shelf"], by_name["Shelf.pop"], by_name["fill"]
    assert (module.kind, module.qualified_name, module.name, module.language) == ("module", "src/shop", "shop", "typescript")
    text = parsed.blocks[0].text
    assert text[shelf.char_start : shelf.char_end].startswith("@Injectable") and text[shelf.char_end - 1] == "}"
    assert shelf.signature == "export abstract class Shelf<T> extends Base<T> implements Store, io.Closer"
    assert shelf.docstring == "Holds parts.\n@see Base" and shelf.bases == ["Base<T>", "Store", "io.Closer"]
    assert shelf.decorators == ["Injectable({ root: true })"] and pop.decorators == ["log", "dec(1)"]
    assert pop.signature == "async *pop(this: Shelf<T>, part: string, ...rest: number[]): Promise<void>"
    assert [(p.name, p.type) for p in pop.parameters] == [("this", "Shelf<T>"), ("part", "string"), ("...rest", "number[]")]
    assert pop.type == "Promise<void>" and pop.receiver == "Shelf" and pop.package == "src/shop"
    assert fill.signature == "export const fill = (shelf: Shelf<string>, n = 1): void"
    assert [(p.name, p.type, p.default) for p in fill.parameters] == [("shelf", "Shelf<string>", ""), ("n", "", "1")]
    assert text[fill.char_start : fill.char_end] == 'export const fill = (shelf: Shelf<string>, n = 1): void => { shelf.pop("x"); };'
    assert by_name["Shelf.later"].docstring == "Runs later."
    assert by_name["Shelf.constructor"].parameters[1].name == "size?"
    shown = {s.qualified_name: s.visibility for s in parsed.symbols}
    assert [shown[n] for n in ("Shelf", "Drawer", "Shelf.check", "Shelf.pop", "double", "default", "Store", "LIMIT")] == [
        "public",
        "internal",
        "protected",
        "public",
        "public",
        "public",
        "internal",
        "public",
    ]


def test_calls_of_a_module() -> None:
    parsed = parse_code("src/shop.ts", SHOP)
    assert linked(parsed) == {
        ("Shelf.pop", "Drawer.open", "receiver_annotation", "this.inner.open"),
        ("Shelf.pop", "Drawer.open", "receiver_annotation", "this.spare.open"),
        ("Shelf.pop", "Drawer.open", "receiver_constructor", "this.made.open"),
        ("Shelf.size{setter}", "Shelf.check{(number)}", "self_method", "this.check"),
        ("Shelf.later", "Shelf.pop", "self_method", "this.pop"),
        ("Shelf.later", "Shelf.check{(number)}", "self_method", "this.check"),
        ("Shelf.over", "Shelf.over", "self_method", "this.over"),
        ("Geo.Flat.area", "Geo.Flat.side", "local_name", "side"),
        ("fill", "Shelf.pop", "receiver_annotation", "shelf.pop"),
        ("default", "double", "local_name", "double"),
    }
    assert len([e for e in edges_of(parsed, "CALLS") if e.excerpt == "this.check" and e.source == "Shelf.later" and e.target]) == 1
    assert linked(parsed, "INSTANTIATES") == {("Shelf", "Drawer", "local_name", "Drawer")}
    assert linked(parsed, "IMPLEMENTS") == {("Shelf", "Store", "base_type", "Store")}
    bases = {e.expression: (e.rule, e.candidates) for e in edges_of(parsed, "INHERITS")}
    assert bases == {"Base": ("import", ["src/base:Base", "src/base/index:Base"]), "Closer": ("unresolved_base", [])}
    calls = {e.expression: (e.source, e.rule, e.candidates) for e in edges_of(parsed, "CALLS") if e.target is None}
    assert calls["super.pop"] == ("Shelf.pop", "import", ["src/base:Base.pop", "src/base/index:Base.pop"])
    assert calls["super"] == ("Shelf.constructor", "import", ["src/base:Base.constructor", "src/base/index:Base.constructor"])
    assert calls["Map"] == ("Shelf", "builtin", []) and calls["log"][0] == "Shelf" and calls["Injectable"][0] == "<module>"


def test_imports() -> None:
    code = """\
import d, { a as b, type T } from './x';
import * as ns from '@scope/pkg/sub';
import x = require('y');
import './side.js';
export { q as r } from '../z.ts';
export * from './w';
export * as k from './dir/';
const { m, n: o } = require('cjs'), whole = require('./whole');
async function f() { const mod = await import('./dyn'); d(); b(); ns.go.deep(); x.y(); m(); o(); whole.z(); new T(); k(); }
"""
    parsed = parse_code("src/app/main.tsx", code)
    found = {e.label: (e.rule, e.expression, e.candidates) for e in edges_of(parsed, "IMPORTS")}
    both = lambda m, n: [f"src/app/{m}:{n}", f"src/app/{m}/index:{n}"]  # noqa: E731
    assert found == {
        "d": ("import", "d", both("x", "default")),
        "b": ("import", "a as b", both("x", "a")),
        "T": ("import", "type T", both("x", "T")),
        "ns": ("import", "* as ns", ["@scope/pkg/sub:"]),
        "x": ("import", "x = require('y')", ["y:"]),
        "": ("import", "import './side.js';", both("side", "")),
        "r": ("import", "q as r", ["src/z:q", "src/z/index:q"]),
        "*": ("import_star", "export * from './w';", both("w", "")),
        "k": ("import", "* as k", ["src/app/dir/index:"]),
        "m": ("import", "m", ["cjs:m"]),
        "o": ("import", "n: o", ["cjs:n"]),
        "whole": ("import", "whole = require('./whole')", both("whole", "")),
        "#2": ("import", "import('./dyn')", both("dyn", "")),
    }
    calls = open_calls(parsed)
    assert calls["d"] == ("import", both("x", "default")) and calls["b"] == ("import", both("x", "a"))
    assert calls["ns.go.deep"] == ("import", ["@scope/pkg/sub:go.deep"]) and calls["x.y"] == ("import", ["y:y"])
    assert calls["m"] == ("import", ["cjs:m"]) and calls["o"] == ("import", ["cjs:n"])
    assert calls["whole.z"] == ("import", both("whole", "z")) and calls["k"][0] == "unresolved_call"
    assert parsed.symbols[0].language == "tsx"


def test_exports() -> None:
    parsed = parse_code("src/shop.ts", SHOP)
    own = {name: [f":{name}"] for name in ("Shelf", "Pair", "LIMIT", "other", "level", "fill", "hidden", "default")}
    found = {e.label: e.candidates for e in edges_of(parsed, "EXPORTS") if e.source == "<module>"}
    assert found == {**own, "twice": [":double"]}
    code = """\
import { q, type R } from './x';
import * as all from './x';
export { q as p, R, all, gone, f as default };
export * from './star'; export * as ns from './x'; export { a as b } from './x';
export function f(): void; export function f(x?: any) {}
export const { g, k: [h] } = make(), i = 1;
export declare namespace N.M { function x(): void; }
export import j = N.M;
export as namespace Whole;
f = other;
"""
    parsed = parse_code("src/app.ts", code)
    both = lambda name: [f"src/x:{name}", f"src/x/index:{name}"]  # noqa: E731
    assert {e.label: e.candidates for e in edges_of(parsed, "EXPORTS")} == {
        "p": both("q"),
        "R": both("R"),
        "all": both(""),
        "gone": [":"],
        "default": [":f", ":"],
        "ns": both(""),
        "b": both("a"),
        "f": [":f", ":"],
        "g": [":"],
        "h": [":"],
        "i": [":i"],
        "N": [":N"],
        "j": [":"],
    }


@pytest.mark.parametrize(
    ("path", "specifier", "modules"),
    [
        ("a/b.ts", "./c", ["a/c", "a/c/index"]),
        ("a/b.ts", "../c.js", ["c", "c/index"]),
        ("a/b.ts", "../../c", []),
        ("a/b.ts", ".", ["a/index"]),
        ("b.ts", "./", ["index"]),
        ("a/b.ts", "..", ["index"]),
        ("a/b.ts", "react", ["react"]),
        ("a/b.ts", "./c.spec", ["a/c.spec", "a/c.spec/index"]),
    ],
)
def test_specifiers(path: str, specifier: str, modules: list[str]) -> None:
    assert imported_modules(path, specifier) == modules
    assert module_path("types/x.d.ts") == "types/x" and module_path("a/b.test.tsx") == "a/b.test"


def test_names_mean_what_their_scope_says() -> None:
    code = """\
function f() {}
function shadowParameter(f: any) { f(); }
function shadowBlock() { { const f = other; f(); } f(); }
function shadowVar() { if (x) { var f = other; } f(); }
function shadowLoop() { for (const f of fs) { f(); } for (const f in fs) f(); f(); }
function shadowCatch() { try { } catch (f) { f(); } }
function shadowPattern({ f }: any, [g = f()]: any) { f(); g(); }
const shadowArrow = f => f();
function switched(x: number) { switch (x) { case 1: const f = 1; f(); } }
class C {
  f() { return f(); }
  static f2 = () => f();
  again = function () { return this.f(); };
  literal() { return { f() { this.f(); }, g: () => this.f() }; }
}
function typed(a: C, b: C | null, c: C[], d?: C) { a.f(); b!.f(); c.f(); d?.f(); (a as any).f(); a["f"](); }
function made() { const a = new C(); a.f(); let b = new C(); b = other(); b.f(); let c: C = other(); c = more(); c.f(); }
function rebound() { g(); } function g() {} g = other;
function nested() { function inner() { return inner2(); } const inner2 = () => inner(); return inner; }
"""
    parsed = parse_code("s.ts", code)
    assert linked(parsed) == {
        ("shadowBlock", "f", "local_name", "f"),
        ("shadowLoop", "f", "local_name", "f"),
        ("C.f", "f", "local_name", "f"),
        ("C.f2", "f", "local_name", "f"),
        ("C.again", "C.f", "self_method", "this.f"),
        ("C.literal", "C.f", "self_method", "this.f"),
        ("typed", "C.f", "receiver_annotation", "a.f"),
        ("typed", "C.f", "receiver_annotation", "b!.f"),
        ("typed", "C.f", "receiver_annotation", "d?.f"),
        ("made", "C.f", "receiver_constructor", "a.f"),
        ("made", "C.f", "receiver_annotation", "c.f"),
        ("nested.inner", "nested.inner2", "local_name", "inner2"),
        ("nested.inner2", "nested.inner", "local_name", "inner"),
    }
    exact = [(e.source, e.line) for e in edges_of(parsed, "CALLS") if e.target == "f"]
    assert exact.count(("shadowBlock", 3)) == 1 and exact.count(("shadowLoop", 5)) == 1
    assert next(e for e in edges_of(parsed, "CALLS") if e.source == "rebound").candidates == ["g"]


def test_declaration_merging() -> None:
    code = """\
interface Box { a(): void }
interface Box { b(): void }
namespace N { export function f() { return g() + h(); } function h() {} }
namespace N { function g() {} export class Part { run() { f(); } } }
class Both { m() { return Both.extra(); } }
namespace Both { export function extra() {} }
declare namespace D.E { function go(): void; }
function use(x: Box, y: N.Part) { x.a(); x.b(); y.run(); N.f(); N.h(); new N.Part(); D.E.go(); }
"""
    parsed = parse_code("m.ts", code)
    assert linked(parsed) == {
        ("N.f", "N.h", "local_name", "h"),
        ("N.Part.run{#2//}", "N.f", "local_name", "f"),
        ("Both.m", "Both.extra", "namespace_member", "Both.extra"),
        ("use", "Box.a{()}", "receiver_annotation", "x.a"),
        ("use", "Box.b{#2/()}", "receiver_annotation", "x.b"),
        ("use", "N.Part.run{#2//}", "receiver_annotation", "y.run"),
        ("use", "N.f", "namespace_member", "N.f"),
        ("use", "D.E.go{()}", "namespace_member", "D.E.go"),
    }
    assert linked(parsed, "INSTANTIATES") == {("use", "N.Part{#2/}", "namespace_member", "N.Part")}
    assert [e.source for e in edges_of(parsed, "CALLS") if e.expression in ("g", "N.h") and e.target is None] == ["N.f", "use"]


def test_bases_and_constructors() -> None:
    code = """\
class A { constructor() {} m() {} }
class B extends A { m() { super.m(); this.n(); } n() {} }
class C extends B { constructor() { super(); } o() { this.n(); } }
const make = () => [new B(), new C(), new Unknown()];
"""
    parsed = parse_code("b.ts", code)
    assert linked(parsed) == {
        ("B.m", "A.m", "super_method", "super.m"),
        ("B.m", "B.n", "self_method", "this.n"),
        ("C.constructor", "A.constructor", "super_method", "super"),
        ("C.o", "B.n", "self_method", "this.n"),
        ("make", "A.constructor", "constructor", "B"),
        ("make", "C.constructor", "constructor", "C"),
    }
    assert linked(parsed, "INSTANTIATES") == {("make", "B", "local_name", "B"), ("make", "C", "local_name", "C")}
    assert linked(parsed, "INHERITS") == {("B", "A", "base_type", "A"), ("C", "B", "base_type", "B")}


def test_tsx_and_anonymous_classes() -> None:
    code = "export const View = ({ x }: Props) => <div onClick={() => go(x)}>{list(x)}</div>;\nfunction go(x) {} function list(x) {}\n"
    parsed = parse_code("v.tsx", code)
    assert {(s, t) for s, t, _, _ in linked(parsed)} == {("View", "go"), ("View", "list")}
    parsed = parse_code(
        "c.ts", "export default class { m() { return this.m(); } }\nconst A = class { n() {} };\nf(class { o() { this.o(); } });\n"
    )
    assert symbols_of(parsed) == [("class", "default"), ("method", "default.m"), ("class", "A"), ("method", "A.n")]
    assert linked(parsed) == {("default.m", "default.m", "self_method", "this.m")}
    assert [e.excerpt for e in edges_of(parsed, "CONTAINS")] == ["default", "m", "A", "n"]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_places_hold_in_every_encoding_and_line_end(encoding: str, ends: str) -> None:
    code = "// größe 🚀\nconst é = 'ü';\nexport function größe(ä: string) {\n\treturn ä;\n}\n"
    code += "class Prüfer { start() { return '数' + größe(é); } }\n"
    data = code.replace("\n", ends).encode(encoding)
    parsed = parse_code("g.ts", data)
    text = parsed.blocks[0].text
    codec = "utf-16-le" if encoding == "utf-16" else "utf-8"
    found = [(s.qualified_name, s.line, s.end_line, s.column) for s in parsed.symbols[1:]]
    assert found == [("größe", 3, 5, 0), ("Prüfer", 6, 6, 0), ("Prüfer.start", 6, 6, 15)]
    for symbol in parsed.symbols[1:]:
        assert data[symbol.byte_start : symbol.byte_end].decode(codec) == text[symbol.char_start : symbol.char_end]
    assert linked(parsed) == {("Prüfer.start", "größe", "local_name", "größe")}
    nodes = parsed.code_nodes
    at = nodes["kind"].index("class_body")
    assert (nodes["line"][at], nodes["column"][at], nodes["end_column"][at]) == (6, 13, 51)


def test_comments_are_no_nodes() -> None:
    plain, noted = "function f() { return 1; }\n", "/* a */ function f(/* b */) { // c\n return 1; }\n"
    assert ids_of(parse_code("c.ts", plain)) == ids_of(parse_code("c.ts", noted))
    assert "comment" not in parse_code("c.ts", noted).code_nodes["kind"]


@pytest.mark.parametrize(
    "broken", ["class Bad { m( { return 1 }\n", "const x = foo(;\n", "let y = [1, 2;\nif (x {\n", "function bad(a: ) => {\n"]
)
def test_an_error_keeps_the_good_symbols(broken: str) -> None:
    code = "function one() { return two(); }\n" + broken + "export function two() { return one(); }\n"
    parsed = parse_code("e.ts", code)
    assert parsed.document is not None and parsed.document.warnings == ["parse_error"]
    assert [(e.name, e.message.partition(":")[0]) for e in parsed.events] == [("parse_error", parsed.events[0].message.partition(":")[0])]
    assert {("function", "one"), ("function", "two")} <= set(symbols_of(parsed))
    assert {("one", "two", "local_name", "two"), ("two", "one", "local_name", "one")} <= linked(parsed)


@pytest.mark.parametrize(
    "code",
    [
        "x = " + "(" * 5000 + "1" + ")" * 5000 + ";",
        "x = a" + ".b()" * 3000 + ";",
        "{" * 3000 + "}" * 3000,
        "x = " + "() => " * 3000 + "1;",
        "let a: " + "A<" * 3000 + "x" + ">" * 3000 + ";",
    ],
    ids=["brackets", "chain", "blocks", "arrows", "types"],
)
def test_deep_nesting_does_not_stop_the_file(code: str) -> None:
    assert ("function", "visible") in symbols_of(parse_code("deep.ts", code + "\nfunction visible() {}\n"))


def test_a_missing_grammar_is_a_typed_reject(monkeypatch: pytest.MonkeyPatch) -> None:
    import tree_sitter_language_pack

    def missing(name: str) -> None:
        raise LookupError(name)

    treesitter.load_parser.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(tree_sitter_language_pack, "get_parser", missing)
        parsed = parse(ParseRequest("rec", "hash", "a.ts", "text/x-typescript", b"let a = 1"))
    treesitter.load_parser.cache_clear()
    assert parsed.document is None and [r.reject_class for r in parsed.rejects] == ["grammar_unavailable"]


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="abf(){}[]<>=;:.,'`$ \nclass function new this é\r", max_size=120))
def test_any_text_gives_rows_with_sound_places(code: str) -> None:
    request = ParseRequest("rec", "hash", "any.ts", "text/x-typescript", code.encode() or b" ")
    parsed = parse(request)
    assert parsed == parse(request)
    if parsed.document is None:
        assert len(parsed.rejects) == 1
        return
    text, nodes = parsed.blocks[0].text, parsed.code_nodes
    for name, ids in ids_of(parsed).items():
        assert len(set(ids)) == len(ids), name
    assert all(1 <= line <= end for line, end in zip(nodes["line"], nodes["end_line"], strict=True))
    assert all(0 <= s.char_start <= s.char_end <= len(text) for s in parsed.symbols)


def test_signs_of_strings_and_comments_inside_a_default_are_read_once() -> None:
    """Quotes that each looked for their end would take minutes."""
    for signs in ('["]' + '\\"' * 300_000, "['/]" + "\\/*" * 300_000):
        parsed = parse_code("a.ts", f"function f(x = /{signs}/, y: number /* no part of it */) {{ return x }}\n")
        assert parsed.symbols[1].signature.startswith("function f(x =")
