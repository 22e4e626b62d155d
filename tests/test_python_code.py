"""Python → CodeIR: symbols, places, and calls that are linked only where the file decides them."""

from __future__ import annotations

import pytest
from code_files import edges_of, linked, open_calls, parse_code, symbols_of
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_cases import case

from raydex.ir.ids import content_hash
from raydex.kernels.parse import parse
from raydex.kernels.python_rules import absolute_module, module_path, type_chain
from raydex.kernels.request import ParseRequest

DESK = '''\
"""A desk.

Second line.
"""
import os, shop.orders as o
from shop.orders import create as mk, Cart
from . import stock
from ..base import *

LIMIT = 3
name: str = "desk"
a = b = 1

# Opens the desk.
@decorate(1)
@os.fspath
def opened(x: int, /, y: "list[int]" = [1, 2], *rest: str, key=None, **more) -> dict[str, int]:  # a (comment: here)
    return helper(x)

async def helper(
    x,  # the first: one
):
    """Helps."""
    def inner():
        return x
    return inner()

class Desk(Base, o.Thing, metaclass=Meta):
    """Holds."""
    class Drawer:
        def pull(self): return self.lock()
        def lock(self): ...
    @property
    def size(self): return 1
    @size.setter
    def size(self, value): self._size = value
    @staticmethod
    def make(): return Desk()
    def __init__(self): self.drawer = Desk.Drawer()
    def _hidden(self): return self.drawer.pull()
    def __secret(self): return [self._hidden() for _ in range(3)]
'''


def test_symbols_of_a_module() -> None:
    parsed = parse_code("office/desk.py", DESK)
    assert symbols_of(parsed) == [
        ("constant", "LIMIT"),
        ("variable", "name"),
        ("function", "opened"),
        ("function", "helper"),
        ("function", "helper.inner"),
        ("class", "Desk"),
        ("class", "Desk.Drawer"),
        ("method", "Desk.Drawer.pull"),
        ("method", "Desk.Drawer.lock"),
        ("property", "Desk.size{getter}"),
        ("property", "Desk.size{setter}"),
        ("method", "Desk.make"),
        ("method", "Desk.__init__"),
        ("method", "Desk._hidden"),
        ("method", "Desk.__secret"),
    ]
    module = parsed.symbols[0]
    assert (module.kind, module.qualified_name, module.name, module.docstring) == (
        "module",
        "office.desk",
        "desk",
        "A desk.\n\nSecond line.",
    )
    by_name = {s.qualified_name: s for s in parsed.symbols}
    opened = by_name["opened"]
    text = parsed.blocks[0].text
    assert text[opened.char_start : opened.char_end].startswith("@decorate(1)\n@os.fspath\ndef opened(")
    assert opened.signature == 'def opened(x: int, /, y: "list[int]" = [1, 2], *rest: str, key=None, **more) -> dict[str, int]'
    assert opened.type == "dict[str, int]" and opened.docstring == "Opens the desk." and opened.package == "office.desk"
    assert [(p.name, p.type, p.default) for p in opened.parameters] == [
        ("x", "int", ""),
        ("y", '"list[int]"', "[1, 2]"),
        ("*rest", "str", ""),
        ("key", "", "None"),
        ("**more", "", ""),
    ]
    assert opened.decorators == ["decorate(1)", "os.fspath"]
    assert by_name["helper"].signature == "async def helper( x, )" and by_name["helper"].docstring == "Helps."
    assert by_name["Desk"].bases == ["Base", "o.Thing"] and by_name["Desk"].signature == "class Desk(Base, o.Thing, metaclass=Meta)"
    assert by_name["Desk._hidden"].receiver == "Desk"
    assert [by_name[n].visibility for n in ("Desk", "Desk._hidden", "Desk.__secret", "Desk.__init__")] == [
        "public",
        "protected",
        "private",
        "public",
    ]
    assert by_name["helper.inner"].parent_id == by_name["helper"].symbol_id
    block = parsed.blocks[0]
    assert (block.kind, block.metadata, str(block.locator)) == ("code", {"language": "python"}, f"char=0-{len(DESK)};line=1-41")


def test_calls_of_a_module() -> None:
    parsed = parse_code("office/desk.py", DESK)
    assert linked(parsed) == {
        ("opened", "helper", "local_name", "helper"),
        ("helper", "helper.inner", "local_name", "inner"),
        ("Desk.Drawer.pull", "Desk.Drawer.lock", "self_method", "self.lock"),
        ("Desk.make", "Desk.__init__", "constructor", "Desk"),
        ("Desk._hidden", "Desk.Drawer.pull", "receiver_constructor", "self.drawer.pull"),
        ("Desk.__secret", "Desk._hidden", "self_method", "self._hidden"),
    }
    assert linked(parsed, "INSTANTIATES") == {
        ("Desk.make", "Desk", "local_name", "Desk"),
        ("Desk.__init__", "Desk.Drawer", "class_attribute", "Desk.Drawer"),
    }
    calls = {e.expression: (e.source, e.rule, e.candidates) for e in edges_of(parsed, "CALLS")}
    assert calls["decorate"] == ("<module>", "import_star", ["base:decorate"]), "a decorator is run by the scope around"
    assert calls["os.fspath"] == ("<module>", "import", ["os:fspath"])
    assert calls["range"] == ("Desk.__secret", "builtin", [])
    bases = {e.expression: (e.rule, e.confidence, e.candidates) for e in edges_of(parsed, "INHERITS")}
    assert bases["o.Thing"] == ("import", "AMBIGUOUS", ["shop.orders:Thing"])
    assert {e.confidence for e in edges_of(parsed, "CALLS") if e.rule == "receiver_constructor"} == {"INFERRED"}


def test_imports() -> None:
    code = (
        "import shop.orders as o\nimport shop.orders\nfrom shop.orders import create as mk\nfrom shop import orders\n"
        "from . import near\nfrom .sub import deep\nfrom .... import far\nfrom shop.orders import *\n"
        "def f():\n    import json\n    mk(); o.create(); orders.create(); shop.orders.create(); near.go()\n"
        "    deep(); json.x.dumps(); wild()\n"
    )
    parsed = parse_code("pkg/mod.py", code)
    imports = {e.label: (e.expression, e.candidates, e.source) for e in edges_of(parsed, "IMPORTS")}
    assert imports == {
        "o": ("shop.orders as o", ["shop.orders:"], "<module>"),
        "shop": ("shop.orders", ["shop.orders:"], "<module>"),
        "mk": ("create as mk", ["shop.orders:create", "shop.orders.create:"], "<module>"),
        "orders": ("orders", ["shop:orders", "shop.orders:"], "<module>"),
        "near": ("near", ["pkg:near", "pkg.near:"], "<module>"),
        "deep": ("deep", ["pkg.sub:deep", "pkg.sub.deep:"], "<module>"),
        "far": ("far", [], "<module>"),
        "*": ("from shop.orders import *", ["shop.orders:"], "<module>"),
        "json": ("json", ["json:"], "<module>"),
    }
    assert open_calls(parsed) == {
        "mk": ("import", ["shop.orders:create"]),
        "o.create": ("import", ["shop.orders:create"]),
        "orders.create": ("import", ["shop.orders:create", "shop:orders.create"]),
        "shop.orders.create": ("import", ["shop.orders:create", "shop:orders.create"]),
        "near.go": ("import", ["pkg.near:go", "pkg:near.go"]),
        "deep": ("import", ["pkg.sub:deep"]),
        "json.x.dumps": ("import", ["json.x:dumps", "json:x.dumps"]),
        "wild": ("import_star", ["shop.orders:wild"]),
    }


@pytest.mark.parametrize(
    ("path", "level", "module", "absolute"),
    [
        ("pkg/mod.py", 0, "a.b", "a.b"),
        ("pkg/mod.py", 1, "a", "pkg.a"),
        ("pkg/mod.py", 1, None, "pkg"),
        ("pkg/sub/mod.py", 2, "a", "pkg.a"),
        ("pkg/__init__.py", 1, "a", "pkg.a"),
        ("pkg/sub/__init__.py", 2, None, "pkg"),
        ("mod.py", 1, "a", "a"),
        ("mod.py", 1, None, None),
        ("mod.py", 2, "a", None),
        ("__init__.py", 1, "a", "a"),
    ],
)
def test_relative_imports(path: str, level: int, module: str | None, absolute: str | None) -> None:
    assert absolute_module(path, module_path(path), level, module) == absolute


SCOPES = """\
def f(): pass
def g(f): return f()
def h():
    f = other()
    return f()
def i():
    return f()
class C:
    def f(self): return f()
    def call(self): return f(), self.f(), C.f(self)
    x = f
def shadow():
    for f in []: f()
def twice():
    def one(): pass
    def one(): pass
    return one()
def made():
    s = C(); s.f()
    t = C(); t = None; t.f()
def given(s: C, t: "C | None", u: list[C], v: Opt[C]):
    s.f(); t.f(); u.f()
    lambda s: s.f()
    [s.f() for s in u]
def rebound(self):
    self.f()
class D(C):
    def call(self):
        super().f(); self.f(); self.g(); self.call()
        def later(): return self.f()
    def reset(self): self.g = None
    def g(self): pass
    @classmethod
    def build(cls): return cls.f()
    @staticmethod
    def loose(self): return self.f()
class E(Unknown, C):
    def call(self): self.f()
def use():
    global f
    f = None
"""


def test_names_mean_what_their_scope_says() -> None:
    parsed = parse_code("s.py", SCOPES.replace("def use():\n    global f\n    f = None\n", ""))
    assert linked(parsed) == {
        ("i", "f", "local_name", "f"),
        ("C.f", "f", "local_name", "f"),
        ("C.call", "f", "local_name", "f"),
        ("C.call", "C.f", "self_method", "self.f"),
        ("C.call", "C.f", "class_attribute", "C.f"),
        ("made", "C.f", "receiver_constructor", "s.f"),
        ("given", "C.f", "receiver_annotation", "s.f"),
        ("given", "C.f", "receiver_annotation", "t.f"),
        ("D.call", "C.f", "super_method", "super().f"),
        ("D.call", "C.f", "self_method", "self.f"),
        ("D.call", "D.call", "self_method", "self.call"),
        ("D.call.later", "C.f", "self_method", "self.f"),
        ("D.build", "C.f", "self_method", "cls.f"),
    }
    by_source = {(e.source, e.expression): e for e in edges_of(parsed, "CALLS") if e.target is None}
    assert by_source["twice", "one"].candidates == ["twice.one", "twice.one{#2}"] and by_source["twice", "one"].confidence == "AMBIGUOUS"
    assert by_source["D.call", "self.g"].candidates == ["D.g"], "an instance attribute may hide the method"
    assert by_source["E.call", "self.f"].candidates == ["C.f"], "a base that the file does not show comes first"
    assert [e.line for e in edges_of(parsed, "CALLS") if e.source == "given" and e.target] == [22, 22]


def test_a_name_that_is_rebound_is_not_exact() -> None:
    parsed = parse_code("s.py", SCOPES)
    assert ("i", "f", "local_name", "f") not in linked(parsed)
    assert next(e for e in edges_of(parsed, "CALLS") if e.source == "i").candidates == ["f"]


def test_nonlocal_comprehension_walrus_match_and_handlers_bind() -> None:
    code = (
        "def f(): pass\n"
        "def a():\n    def inner():\n        nonlocal f\n        f = 1\n    f = 2\n    f()\n"
        "def b():\n    if (f := get()): f()\n"
        "def c(x):\n    match x:\n        case {'k': f}: f()\n"
        "def d():\n    try: pass\n    except Exception as f: f()\n"
        "def e():\n    with open('x') as f: f()\n"
        "def g():\n    [z := 1 for q in f()]\n    return {f: f() for f in f()}\n"
        "def h(*f, **k): f()\n"
        "async def i():\n    async for f in x: await f()\n"
    )
    parsed = parse_code("b.py", code)
    assert [(e.source, e.line) for e in edges_of(parsed, "CALLS") if e.target == "f"] == [("g", 19), ("g", 20)]


def test_overloads_point_at_the_implementation() -> None:
    code = (
        "from typing import overload\n@overload\ndef f(x: int) -> int: ...\n@overload\ndef f(x: str) -> str: ...\n"
        "def f(x): return x\nf(1)\n"
    )
    parsed = parse_code("o.py", code)
    assert symbols_of(parsed) == [("function", "f{overload(int)}"), ("function", "f{overload(str)}"), ("function", "f")]
    assert linked(parsed) == {("<module>", "f", "local_name", "f")}


def test_super_is_a_receiver_and_this_a_name() -> None:
    code = (
        "class A:\n    def __init__(self): pass\n    def go(self): pass\n"
        "class B(A):\n    def __init__(self): super().__init__()\n    def go(self, this): super().go(); this.go(); super(B, self).go()\n"
    )
    parsed = parse_code("s.py", code)
    assert linked(parsed) == {
        ("B.__init__", "A.__init__", "super_method", "super().__init__"),
        ("B.go", "A.go", "super_method", "super().go"),
    }
    assert {rule for expression, (rule, _) in open_calls(parsed).items() if expression == "super"} == {"builtin"}
    assert open_calls(parsed)["this.go"] == ("unresolved_call", [])


GIVEN = """\
import a.b, a.b as c, a.b as a
from x import f
def f(): pass
def g():
    from x import h
    global i
    from x import i
class C(f, h.I, make(), Exception, dict):
    from x import *
    count: int = 0
    name: str
    def m(self): self.size = 1
    def count(self): pass
h = partial(f)
h = other(h)
def k(): pass
for k in h(): pass
"""


def test_what_a_module_and_its_classes_give_by_name() -> None:
    parsed = parse_code("g.py", GIVEN)
    given = {(e.source, e.label): (e.rule, e.candidates) for e in edges_of(parsed, "EXPORTS")}
    assert given == {("<module>", "k"): ("rebound", [":"]), ("C", ""): ("fields", ["count", "size"])}
    imports = {e.label: (e.rule, e.candidates) for e in edges_of(parsed, "IMPORTS")}
    assert imports["a"] == ("import", ["a.b:"]) and imports["a#2"] == ("import", ["a:b", "a.b:"]) and imports["c"] == ("import", ["a.b:"])
    assert [imports[name][0] for name in ("h", "i", "*")] == ["import_local", "import", "import_local"]
    bases = [(e.expression, e.label, e.rule, e.candidates) for e in edges_of(parsed, "INHERITS")]
    assert bases == [
        ("f", "0", "unresolved_base", ["x:f"]),
        ("h.I", "1", "unresolved_base", []),
        ("make()", "2", "unresolved_base", []),
        ("dict", "4", "builtin", []),
    ]
    assert ("<module>", "h", "local_name", "h") in linked(parsed)


def test_expression_callees_are_unresolved() -> None:
    code = "class A:\n    def pop(self): pass\ndef pop(): pass\nx[0].pop()\nf().pop()\n''.pop()\n(lambda: 1)()\nself.pop()\n"
    parsed = parse_code("e.py", code)
    assert linked(parsed) == set()
    assert {e.rule for e in edges_of(parsed, "CALLS")} == {"unresolved_call"}


def test_calls_inside_fstrings_have_evidence() -> None:
    code = 'def name(): pass\nx = f"""a\n  {name()} b\n {name ( )!r:>{len("é")}}"""\n'
    parsed = parse_code("f.py", code)
    found = [e for e in edges_of(parsed, "CALLS") if e.target == "name"]
    assert len(found) == 2 and all("name" in e.excerpt for e in found)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_places_hold_in_every_encoding_and_line_end(encoding: str, ends: str) -> None:
    cookie = encoding.removesuffix("-sig")
    code = f"# -*- coding: {cookie} -*-\n\x0cdef größe(ä):\n\t'Länge µ'; return ä\n\n"
    code += "class Prüfer:\n    def start(self): return größe(1), 'ß'\n"
    data = code.replace("\n", ends).encode(encoding)
    parsed = parse_code("g.py", data)
    assert parsed.document is not None and parsed.document.encoding.replace("_", "-") in (cookie, "iso-8859-1", "cp1252")
    text = parsed.blocks[0].text
    assert [(s.qualified_name, s.line, s.end_line) for s in parsed.symbols[1:]] == [
        ("größe", 2, 3),
        ("Prüfer", 5, 6),
        ("Prüfer.start", 6, 6),
    ]
    for symbol in parsed.symbols[1:]:
        assert data[symbol.byte_start : symbol.byte_end].decode(cookie) == text[symbol.char_start : symbol.char_end]
        assert text[symbol.char_start : symbol.char_end].startswith(("def", "class"))
    assert linked(parsed) == {("Prüfer.start", "größe", "local_name", "größe")}
    nodes = parsed.code_nodes
    last = max(at for at, kind in enumerate(nodes["kind"]) if kind == "Constant")
    assert (nodes["line"][last], nodes["column"][last], nodes["end_column"][last]) == (6, 38, 41)


def test_excerpt_hashes_are_of_the_slice() -> None:
    parsed = parse_code("d.py", DESK)
    columns, text = parsed.code_edges, parsed.blocks[0].text
    checked = 0
    for at, relation in enumerate(columns["relation"]):
        if relation in ("AST", "EXPORTS"):
            assert columns["excerpt_hash"][at] is None and columns["line"][at] is None
            continue
        excerpt = text[columns["char_start"][at] : columns["char_end"][at]]
        assert columns["excerpt_hash"][at] == content_hash(excerpt.encode())
        checked += 1
    assert checked > 30


def test_a_syntax_error_keeps_the_good_symbols_and_their_ids() -> None:
    good = 'import a\nclass A:\n    """Doc."""\n    @property\n    def p(self): return self.q()\n    def q(self): return a.go()\n\n'
    good += "def last(): return A()\n"
    broken = good + "\ndef bad(:\n    return 1 +\n"
    whole, partial = parse_code("m.py", good), parse_code("m.py", broken)
    assert whole.document is not None and partial.document is not None
    assert whole.document.parser == "python-ast" and partial.document.parser == "tree-sitter-python"
    assert partial.document.warnings == ["parse_error"]
    assert [(e.name, e.status, e.message.partition(":")[0]) for e in partial.events] == [("parse_error", "warning", "line 10")]
    facts = lambda p: {(s.symbol_id, s.qualified_name, s.signature, s.docstring, s.char_start, s.char_end) for s in p.symbols[1:]}  # noqa: E731
    assert facts(whole) <= facts(partial)
    pick = lambda p: {e for e in zip(p.code_edges["edge_id"], p.code_edges["relation"], strict=True) if e[1] != "AST"}  # noqa: E731
    assert pick(whole) <= pick(partial)
    assert len(partial.code_nodes["node_id"]) > 20


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_an_unclosed_bracket_spoils_its_own_definition_only(ends: str) -> None:
    code = """\
import x
def one(): return two(
def two(): return 'é'

@dec(
    1,
)
class A(B):  # a (comment
    k: int = 1

    def m(self): return self.n()

    @property
    def bad(self): return (1,

    def n(self): return self.m()

    async def o(self):
        return [two()]

TEXT = '''
def not_code(): pass
'''

class Bad(:
    def inside(self): pass

def last(): return A()
"""
    parsed = parse_code("m.py", code.replace("\n", ends))
    names = [name for _, name in symbols_of(parsed)]
    assert [n for n in names if n in ("two", "A", "A.m", "A.n", "A.o", "last")] == ["two", "A", "A.m", "A.n", "A.o", "last"]
    assert not {"not_code", "m", "n", "o"} & set(names)
    assert {("A.m", "A.n", "self_method", "self.n"), ("A.o", "two", "local_name", "two")} <= linked(parsed)
    assert ("last", "A", "local_name", "A") in linked(parsed, "INSTANTIATES")


def test_both_front_ends_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    from raydex.kernels import python_code

    def refuse(text: str) -> None:
        raise SyntaxError("refused")

    for code in (DESK, SCOPES, GIVEN):
        one = parse_code("office/desk.py", code)
        with monkeypatch.context() as patched:
            patched.setattr(python_code, "_parse", refuse)
            other = parse_code("office/desk.py", code)
        assert other.document is not None and other.document.parser == "tree-sitter-python"
        assert one.symbols == other.symbols
        relations = ("CALLS", "IMPORTS", "INSTANTIATES", "INHERITS", "CONTAINS", "EXPORTS")
        assert sorted(map(repr, edges_of(one, *relations))) == sorted(map(repr, edges_of(other, *relations)))


@pytest.mark.parametrize(
    "code",
    [
        "x = " + "(" * 3000 + "1" + ")" * 3000,
        "x = " + "+".join(["1"] * 5000),
        "x = a" + ".b" * 5000 + "()",
        "x = a" + ".b()" * 2000,
        "x = " + "not " * 5000 + "1",
        "".join(" " * n + "if x:\n" for n in range(150)) + " " * 150 + "pass",
    ],
    ids=["brackets", "sum", "attributes", "chain", "unary", "blocks"],
)
def test_deep_nesting_does_not_stop_the_file(code: str) -> None:
    parsed = parse_code("deep.py", code + "\ndef visible():\n    return 1\n")
    assert ("function", "visible") in symbols_of(parsed)


def test_definitions_nested_without_end_are_a_typed_reject() -> None:
    code = "".join(" " * n + "def f():\n" for n in range(300)) + " " * 300 + "pass\n"
    parsed = parse(ParseRequest("rec", "hash", "n.py", "text/x-python", code.encode()))
    assert parsed.document is None and parsed.rejects[0].reject_class == "too_deep"


def test_null_bytes_and_foreign_bytes() -> None:
    parsed = parse(ParseRequest("rec", "hash", "n.py", "text/x-python", b"x = 1\0\n"))
    assert parsed.document is None and parsed.rejects[0].reject_class in ("syntax", "unsupported_media_type")
    wrong = parse_code("w.py", "# -*- coding: utf-8 -*-\nx = 'größe'\ndef f(): pass\n".encode("latin-1"))
    assert wrong.document is not None and wrong.document.warnings and ("function", "f") in symbols_of(wrong)


DOCSTRINGS = '''\
"\\0 \\ud800 module"
class A:
    "\\ud83d\\ude00 \\udc00"
    def m(self):
        """ One\\0.

            Two\\udfff.
        """
'''


@pytest.mark.parametrize("rest", ["", "def broken(:\n"], ids=["ast", "tree-sitter"])
def test_docstrings_are_text_that_can_be_stored(rest: str) -> None:
    parsed = parse_code("doc.py", DOCSTRINGS + rest)
    found = {symbol.name: symbol.docstring for symbol in parsed.symbols if symbol.name != "broken"}
    assert found == {"doc": "\ufffd \ufffd module", "A": "\U0001f600 \ufffd", "m": "One\ufffd.\n\nTwo\ufffd."}


def test_a_docstring_of_blank_lines_is_read_once() -> None:
    """Lines dropped one by one from the head of a list would take minutes."""
    blank = "\n" * 600_000 + " \n" * 600_000
    parsed = parse_code("doc.py", f"'''{blank}    One.\n      Two.\n'''\n")
    assert parsed.symbols[0].docstring == "One.\n  Two."


def test_signs_of_strings_inside_a_default_are_read_once() -> None:
    """Quotes that each looked for their end would take minutes."""
    parsed = parse_code("a.py", "def f(x='''a'\"" + '\\"' * 300_000 + "'''):  # no part of it\n    return x\n")
    assert parsed.symbols[1].signature.startswith("def f(x=")


def test_decorators_that_decorate_nothing_are_read_once() -> None:
    """Every line of them that read on to the last would take minutes."""
    parsed = parse_code("a.py", "def broken(:\n" + "@a\n" * 100_000 + "x\n@b\n@c(\n)\ndef f():\n    return 1\n")
    symbol = next(symbol for symbol in parsed.symbols if symbol.name == "f")
    assert parsed.blocks[0].text[symbol.char_start : symbol.char_end] == "@b\n@c(\n)\ndef f():\n    return 1"


NO_SOURCE_CODECS = ("undefined", "punycode", "idna", "utf_7", "unicode_escape", "raw_unicode_escape", "hex", "rot13", "zlib", "utf-16")
NO_SOURCE_CODECS += ("cp037", "hz", "utf-8.x", "no_such")


@pytest.mark.parametrize("name", NO_SOURCE_CODECS)
@pytest.mark.parametrize("word", ["plain", "\\ud800\\u00e9 +AGE- ~{VP~}", "größe"])
def test_a_declared_codec_that_is_no_source_encoding_is_not_used(name: str, word: str) -> None:
    data = f"# coding: {name}\n# {word}\ndef f():\n    return '{word}'\n".encode()
    parsed = parse_code("a.py", data)
    assert parsed.document is not None and parsed.document.encoding == "utf-8"
    symbol = parsed.symbols[1]
    assert data[symbol.byte_start : symbol.byte_end].decode() == f"def f():\n    return '{word}'"


@pytest.mark.parametrize(
    ("name", "word"), [("latin-1", "größe"), ("cp1251", "слово"), ("big5", "文件"), ("shift_jis", "文書"), ("gbk", "文档")]
)
def test_a_declared_source_encoding_is_used(name: str, word: str) -> None:
    data = f"# coding: {name}\n# {word}\ndef f():\n    return '{word}'\n".encode(name)
    parsed = parse_code("a.py", data)
    assert parsed.document is not None and not parsed.document.warnings
    symbol = parsed.symbols[1]
    assert data[symbol.byte_start : symbol.byte_end].decode(name) == f"def f():\n    return '{word}'"


def test_empty_text_is_a_module() -> None:
    parsed = parse_code("pkg/__init__.py", b"\xef\xbb\xbf")
    assert [(s.kind, s.qualified_name, s.name) for s in parsed.symbols] == [("module", "pkg", "pkg")]
    assert str(parsed.blocks[0].locator) == "char=0-0;line=1-1"


@pytest.mark.parametrize(
    ("written", "chain"),
    [
        ("Shelf", ("Shelf",)),
        ("'shop.Shelf'", ("shop", "Shelf")),
        ("Optional[Shelf]", ("Shelf",)),
        ("typing.Optional['Shelf']", ("Shelf",)),
        ("Annotated[Shelf, 1]", ("Shelf",)),
        ("Shelf | None", ("Shelf",)),
        ("None | 'Shelf'", ("Shelf",)),
        ("Box[int]", ("Box",)),
        ("A | B", None),
        ("Union[A, B]", None),
        ("Callable[[int], str]", None),
        ("type[A]", None),
        ("f(x)", None),
        ("", None),
    ],
)
def test_annotations_name_a_class_or_nothing(written: str, chain: tuple[str, ...] | None) -> None:
    assert type_chain(written) == chain


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=200) | st.text(min_size=1, max_size=200).map(lambda t: t.encode()))
def test_any_bytes_give_rows_or_one_typed_reject(data: bytes) -> None:
    request = ParseRequest("rec", "hash", "any.py", "text/x-python", data)
    parsed = parse(request)
    assert parsed == parse(request)
    if parsed.document is None:
        assert len(parsed.rejects) == 1
        return
    text = parsed.blocks[0].text
    assert parsed.symbols[0].char_end == len(text)
    for symbol in parsed.symbols:
        assert 0 <= symbol.char_start <= symbol.char_end <= len(text) and 1 <= symbol.line <= symbol.end_line


def test_case_bare_method_names_link_nothing() -> None:
    parsed = parse_code("stock.py", case("b35-py-bare-name-calls/stock.py").read_bytes())
    assert linked(parsed) == {("plain", "pop", "local_name", "pop"), ("typed", "Shelf.pop", "receiver_annotation", "s.pop")}
    assert {(e.source, e.line) for e in edges_of(parsed, "CALLS") if e.target} == {("plain", 17), ("typed", 20)}


def test_case_non_ascii_names() -> None:
    data = case("b32-code-nonascii/größe.py").read_bytes()
    parsed = parse_code("größe.py", data)
    found = [(s.qualified_name, s.kind, s.line, s.end_line) for s in parsed.symbols if s.kind in ("function", "class", "method")]
    assert found == [("länge", "function", 4, 6), ("Prüfer", "class", 8, 9), ("Prüfer.start", "method", 9, 9)]
    text = parsed.blocks[0].text
    assert all(data[s.byte_start : s.byte_end].decode() == text[s.char_start : s.char_end] for s in parsed.symbols)
    assert linked(parsed) == {("Prüfer.start", "länge", "local_name", "länge")}


def test_case_deep_nesting() -> None:
    for name, symbol in (("deep.py", "visible"), ("deep.ts", "seen"), ("ok.py", "neighbour")):
        parsed = parse_code(name, case(f"b40-code-deep-nesting/{name}").read_bytes())
        assert ("function", symbol) in symbols_of(parsed)


@pytest.mark.parametrize(("path", "modules"), [("shop/__init__.py", ["shop"]), ("index.ts", ["index"]), ("a.md", []), ("a.txt", [])])
def test_an_empty_file_of_code_is_a_module_and_any_other_a_reject(path: str, modules: list[str]) -> None:
    data = b""
    media = {"py": "text/x-python", "ts": "text/x-typescript", "md": "text/markdown", "txt": "text/plain"}[path.rpartition(".")[2]]
    parsed = parse(ParseRequest(record_id="rec_1", content_hash=content_hash(data), path=path, media_type=media, data=data))
    assert [symbol.qualified_name for symbol in parsed.symbols] == modules
    assert [reject.reject_class for reject in parsed.rejects] == ([] if modules else ["empty"])
