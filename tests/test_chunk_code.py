"""Source files: leaves tile the file, one leaf a function or method, a parent a class."""

from __future__ import annotations

import textwrap
from itertools import count

import pytest
from chunk_laws import check_laws, code, leaves
from hypothesis import given, settings
from hypothesis import strategies as st

from raydex.kernels.chunk import ChunkOptions, ChunkSource, chunk
from raydex.kernels.tokens import load_tokenizer

TOKENIZER = load_tokenizer()
KINDS = st.sampled_from(["function", "method", "class", "interface", "enum", "property", "constant", "type_alias"])
PIECES = st.lists(
    st.sampled_from(
        [
            "def f(x):\n",
            "    return x + 1\n",
            "\n",
            "# note\n",
            "class A:\n",
            "/* a\n   b */\n",
            "x = 1; y = 2\n",
            "é = '中文'\r\n",
            "export ",
        ]
    ),
    min_size=1,
    max_size=60,
)


def find(text: str, kind: str, name: str, first: str, last: str) -> tuple[str, str, int, int]:
    start = text.index(first)
    return kind, name, start, text.index(last, start) + len(last)


@given(PIECES.map("".join), st.data(), st.sampled_from([16, 40, 256]), st.sampled_from(["pkg/mod.py", "src/mod.ts"]))
@settings(max_examples=150)
def test_leaves_tile_the_file(text, data, max_tokens, path) -> None:
    spot = st.integers(0, len(text))
    spans = data.draw(st.lists(st.tuples(KINDS, spot, spot), max_size=8))
    source = code(text, [(kind, f"n{k}", min(a, b), max(a, b)) for k, (kind, a, b) in enumerate(spans)], path)
    options = ChunkOptions(max_tokens=max_tokens)
    result = chunk(source, options, TOKENIZER)
    check_laws(result, source, options, TOKENIZER)
    at = 0
    for one in leaves(result):
        (place,) = one.locators
        assert place.char[0] == at
        assert place.slice_text(text) == one.content
        at = place.char[1]
    assert at == len(text)
    assert "".join(one.content for one in leaves(result)) == text
    assert not result.nodes
    assert not result.edges


SHELF = textwrap.dedent(
    '''\
    """Shelves. They hold things. Nothing else."""
    import os
    import sys

    LIMIT = 10


    # A shelf holds items.
    # It never drops one.
    class Shelf(Base):
        """The docstring."""

        size = 3

        def push(self, item):
            """Adds an item. It goes last. Always."""
            def inner():
                return 1
            self.items.append(inner)

        @property
        def top(self):
            return self.items[-1]


    def run(n):
        return n + 1

    if __name__ == "__main__":
        run(1)
        print("the end of a long main part", os.name, sys.argv, "with some more words so that it is long enough to stand alone")
    '''
)
SHELF_SYMBOLS = [
    find(SHELF, "class", "Shelf", "class Shelf", "return self.items[-1]"),
    find(SHELF, "method", "Shelf.push", "def push", "append(inner)"),
    find(SHELF, "function", "Shelf.push.inner", "def inner", "return 1"),
    find(SHELF, "property", "Shelf.top", "@property", "return self.items[-1]"),
    find(SHELF, "function", "run", "def run", "return n + 1"),
    find(SHELF, "constant", "LIMIT", "LIMIT", "10"),
]


def test_classes_and_functions() -> None:
    source = code(SHELF, SHELF_SYMBOLS)
    ids = {symbol.qualified_name: symbol.symbol_id for symbol in source.symbols}
    source.symbols[0].docstring = "Shelves. They hold things. Nothing else."
    push = next(symbol for symbol in source.symbols if symbol.qualified_name == "Shelf.push")
    push.docstring, push.signature, push.receiver = "Adds an item. It goes last. Always.", "def push(self, item)", "Shelf"
    result = chunk(source, ChunkOptions(), TOKENIZER)
    shown = [(c.role, c.title, c.metadata["start_line"], c.metadata["end_line"]) for c in result.chunks]
    assert shown == [
        ("parent", "mod.py", 1, 31),
        ("leaf", "mod.py", 1, 7),
        ("parent", "Shelf", 8, 25),
        ("leaf", "Shelf", 8, 14),
        ("leaf", "Shelf.push", 15, 20),
        ("leaf", "Shelf.top", 21, 25),
        ("leaf", "run", 26, 28),
        ("leaf", "mod.py", 29, 31),
    ]
    by_title = {(c.role, c.title): c for c in result.chunks}
    assert by_title["leaf", "Shelf.push"].parent_id == by_title["parent", "Shelf"].chunk_id
    assert by_title["parent", "Shelf"].parent_id == by_title["leaf", "run"].parent_id == by_title["parent", "mod.py"].chunk_id
    method = by_title["leaf", "Shelf.push"]
    assert method.entity_id == ids["Shelf.push"]
    assert method.summary == "Adds an item. It goes last."
    assert method.metadata["symbol_type"] == "method"
    assert (method.metadata["signature"], method.metadata["receiver"]) == ("def push(self, item)", "Shelf")
    assert method.embedding_text.startswith("pkg/mod.py\nShelf.push\n\n    def push(self, item):")
    assert (method.kind, method.section_path) == ("code", ["Shelf", "push"])
    assert by_title["leaf", "Shelf"].summary == "A shelf holds items. It never drops one."
    assert by_title["leaf", "Shelf"].content.startswith("# A shelf")
    assert by_title["leaf", "Shelf.top"].content.startswith("    @property\n")
    header = result.chunks[1]
    assert (header.metadata["symbol_type"], header.entity_id) == ("module", ids["pkg.mod"])
    assert header.summary == "Shelves. They hold things."


def test_a_long_function_is_cut_between_lines() -> None:
    body = "".join(f"    value_{k} = compute({k}, 'some words')\n" for k in range(60))
    text = f"import os\n\n\ndef long(x):\n{body}    return x\n"
    result = chunk(code(text, [("function", "long", text.index("def"), len(text) - 1)]), ChunkOptions(max_tokens=128), TOKENIZER)
    parts = [c for c in leaves(result) if c.title == "long"]
    assert len(parts) > 3
    assert all(c.content.endswith("\n") for c in parts)
    assert {c.boundary_reason for c in parts[:-1]} == {"length"}
    parent = next(c for c in result.chunks if c.title == "long" and c.role == "parent")
    assert {c.parent_id for c in parts} == {parent.chunk_id}
    assert parent.content == text[text.index("def") :]


def test_a_long_function_is_cut_at_the_functions_inside() -> None:
    body = "".join(f"        value_{k} = compute({k}, 'some words')\n" for k in range(12))
    text = f"def outer():\n    first = 1\n\n    def inner():\n{body}        return 0\n\n    def other():\n{body}        return 0\n"
    second = text.index("def other")
    ranges = [
        ("function", "outer", 0, len(text) - 1),
        ("function", "outer.inner", text.index("def inner"), text.index("\n\n    def other")),
        ("function", "outer.other", second, len(text) - 1),
    ]
    result = chunk(code(text, ranges), ChunkOptions(max_tokens=200), TOKENIZER)
    assert [(c.role, c.title) for c in result.chunks] == [
        ("parent", "outer"),
        ("leaf", "outer"),
        ("leaf", "outer.inner"),
        ("leaf", "outer.other"),
    ]


def test_comment_blocks_belong_to_what_follows() -> None:
    text = "const a = 1;\n\n/**\n * Adds two numbers. Slowly. Surely.\n */\nexport function add(x) {\n  return x;\n}\n// tail\n"
    source = code(text, [("function", "add", text.index("function"), text.index("}\n") + 1)], path="src/add.ts")
    header, add = leaves(chunk(source, ChunkOptions(), TOKENIZER))
    assert header.content == "const a = 1;\n\n"
    assert add.content == text[len(header.content) :]
    assert add.summary == "Adds two numbers. Slowly."


WORDS = " ".join(f"word{k}" for k in range(40))


def lead_of(path: str, above: str, definition: str) -> str:
    """What of `above` the leaf of the definition below it begins with, besides blank lines."""
    text = f"{above}{definition} {{\n  {WORDS}\n}}\n"
    name = "f" if path.endswith(".py") else "src.f"
    found = leaves(chunk(code(text, [("function", name, len(above), len(text) - 1)], path), ChunkOptions(), TOKENIZER))
    content = "".join(one.content for one in found if one.title == name)
    return content[: content.index(definition)].lstrip("\n")


@pytest.mark.parametrize(
    ("path", "above", "lead"),
    [
        # what looks like a comment of some other language, or like the middle of a block, is code
        ("a.ts", f"{WORDS};\n#count = 0;\n", ""),
        ("a.ts", f"{WORDS};\n--i;\n", ""),
        ("a.ts", f"const x = {WORDS}\n  * 3\n", ""),
        ("a.ts", f"*{WORDS}/\n", ""),
        ("a.py", f"x = call(\n  {WORDS},\n    *args)\n", ""),
        ("a.py", f"{WORDS}\n// 2\n", ""),
        ("a.py", f"{WORDS}\n--x\n", ""),
        ("a.py", f"{WORDS}\n/* no comment */\n", ""),
        # a block with code before it, or behind it, on a line of its own or of its first line
        ("a.ts", f"/* header */\nimport a;\nconst x = {WORDS}; /* trailing */\n", ""),
        ("a.ts", f"const x = {WORDS}; /* trailing\n goes on */\n", ""),
        ("a.ts", f"/* a */ {WORDS}; /* b */\n", ""),
        ("a.ts", f"/* a */ {WORDS};\n", ""),
        ("a.ts", f"{WORDS} */\n", ""),
        ("a.ts", f"/* a\n*/ {WORDS}\n b */\n", ""),
        # comments
        ("a.ts", f"{WORDS};\n// one\n  /* two */\n/**\n three\n\n * four */\n", "// one\n  /* two */\n/**\n three\n\n * four */\n"),
        ("a.ts", f"{WORDS};\r\n/* one\r\n   two */\r\n", "/* one\r\n   two */\r\n"),
        ("a.ts", f"{WORDS};\n/* an opening /* inside */\n", "/* an opening /* inside */\n"),
        ("a.py", f"{WORDS}\n# one\n  # two\n", "# one\n  # two\n"),
        ("a.py", f"{WORDS}\n# far\n\n# near\n", "# near\n"),
    ],
    ids=count(),
)
def test_only_the_languages_own_comments_belong_to_what_follows(path: str, above: str, lead: str) -> None:
    assert lead_of(path, above, "def f():" if path.endswith(".py") else "function f()") == lead


def test_a_comment_sign_inside_a_value_is_no_comment() -> None:
    text = f'NOTE = """{WORDS}\n# of the text"""\ndef f():\n    return 1\n'
    value, start = text.index("\ndef"), text.index("def")
    source = code(text, [("constant", "NOTE", 0, value), ("function", "f", start, len(text) - 1)])
    assert [one.content for one in leaves(chunk(source, ChunkOptions(), TOKENIZER))] == [text[:start], text[start:]]


def test_a_docstring_is_no_comment() -> None:
    text = "def f():\n    return 1\n"
    source = code(text, [("function", "f", 0, len(text) - 1)])
    source.symbols[1].docstring = "--force skips the question. *args are kept. More."
    (leaf,) = leaves(chunk(source, ChunkOptions(), TOKENIZER))
    assert leaf.summary == "--force skips the question. *args are kept."


# Each would take minutes if a comment line, a sign in it or a piece of a long definition looked at the whole comment again.
COUNT = 20_000
LONG = {
    "comment lines": ("//\n" * (40 * COUNT) + "f(){}", [("function", "f", 120 * COUNT, 120 * COUNT + 5)]),
    "a wide comment": (f"// a{' ' * 40 * COUNT}b\nf(){{}}", [("function", "f", 40 * COUNT + 6, 40 * COUNT + 11)]),
    "an open block": ("/* a\n" * COUNT + "*/ x */\nf(){}", [("function", "f", 5 * COUNT + 8, 5 * COUNT + 13)]),
    "a cut comment": ("// some words\n" * (4 * COUNT) + "f(){}", [("function", "f", 56 * COUNT, 56 * COUNT + 5)]),
    "a wide modifier": ("a " * (20 * COUNT) + "= f(){}", [("function", "f", 40 * COUNT + 2, 40 * COUNT + 7)]),
}


@pytest.mark.parametrize("name", LONG)
def test_long_files_are_read_once(name: str) -> None:
    text, ranges = LONG[name]
    found = leaves(chunk(code(text, ranges, "src/mod.ts"), ChunkOptions(), TOKENIZER))
    assert "".join(one.content for one in found) == text


def test_a_file_without_definitions() -> None:
    (one,) = chunk(code("x = 1\n", []), ChunkOptions(), TOKENIZER).chunks
    assert (one.role, one.title, one.content, one.parent_id) == ("leaf", "mod.py", "x = 1\n", None)
    assert chunk(code("", []), ChunkOptions(), TOKENIZER).chunks == []


def test_two_definitions_on_one_line() -> None:
    text = "def a(): pass; x = 1\nclass B: y = 2\n"
    found = leaves(
        chunk(code(text, [("function", "a", 0, 13), ("class", "B", text.index("class"), len(text) - 1)]), ChunkOptions(), TOKENIZER)
    )
    assert [c.title for c in found] == ["a", "B"]
    assert "".join(c.content for c in found) == text


def test_functions_nested_without_end() -> None:
    text = "".join(f"{' ' * k}def f{k}():\n" for k in range(300)) + " " * 300 + "pass\n"
    ranges = [("function", f"f{k}", text.index(f"def f{k}()"), len(text) - 1) for k in range(300)]
    source = code(text, ranges)
    options = ChunkOptions(max_tokens=64)
    result = chunk(source, options, TOKENIZER)
    check_laws(result, source, options, TOKENIZER)
    assert "".join(c.content for c in leaves(result)) == text


def test_moving_a_function_keeps_its_chunk() -> None:
    text = "def a():\n    return 1\n\n\ndef b():\n    return 2\n"
    moved = "import os\n\n\n" + text
    ids = []
    for one in (text, moved):
        ranges = [find(one, "function", "a", "def a", "return 1"), find(one, "function", "b", "def b", "return 2")]
        ids.append({c.title: c.chunk_id for c in leaves(chunk(code(one, ranges), ChunkOptions(), TOKENIZER))})
    assert ids[0]["a"] == ids[1]["a"]
    assert ids[0]["b"] == ids[1]["b"]


def test_other_strategies_take_code_too() -> None:
    for strategy in ("fixed", "recursive"):
        source: ChunkSource = code(SHELF, SHELF_SYMBOLS)
        options = ChunkOptions(strategy, max_tokens=40)
        result = chunk(source, options, TOKENIZER)
        check_laws(result, source, options, TOKENIZER)
        assert "".join(c.content for c in leaves(result)) == SHELF
