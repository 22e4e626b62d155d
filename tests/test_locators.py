"""For every text format: the locator of each block cuts out of the original the place where the block's text stands, whatever the encoding
and the line ends; pointers, rows and element paths lead there too."""

from __future__ import annotations

import ast
import csv
import html
import io
import json
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from document_files import parse_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from raydex.ir.document import Block
from raydex.ir.locator import split_lines
from raydex.ir.parsed import ParsedFile
from raydex.kernels.decode import clean, decode

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16")
# words with what formats escape, and with characters beyond the first plane
WORD = st.builds("w{}{}".format, st.integers(0, 999), st.sampled_from(["", "ü", "漢字", "😀", "e\u0301"]))
WORDS = st.lists(WORD, min_size=1, max_size=6)
SOUP = st.text(st.sampled_from("ab1 \t\n\r:,-#[]{}\"'=&;<>/\\|ü😀\x00\u2028"), max_size=120)


def text_of(words: list[str]) -> str:
    return " ".join(words)


def words_of(text: str) -> list[str]:
    return re.findall(r"[^\s|]+", text)


def letters(text: str) -> str:
    return "".join(text.split())


# ---- what is written is what stands there


def plain(words: list[list[str]]) -> str:
    return "\n\n".join(text_of(some) for some in words) + "\n"


def as_json(words: list[list[str]]) -> str:
    value = {f"{at}/{some[0]}": {"list": some, "rows": [{word: None} for word in some]} for at, some in enumerate(words)}
    return json.dumps({**value, "tail": [1.5, True]}, ensure_ascii=len(words) % 2 == 0, indent=len(words) % 3 or None)


def as_lines(words: list[list[str]]) -> str:
    return "\n".join(json.dumps({"words": some, "n": {"m": len(some)}}) for some in words) + "\n\n"


def as_yaml(words: list[list[str]]) -> str:
    return "---\n".join(f'{some[0]}:\n  list: [{", ".join(some)}]\n  note: |\n    {text_of(some)}\n  q: "{some[-1]}"\n' for some in words)


def as_csv(words: list[list[str]], delimiter: str = ",") -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["first", "all", "last"])
    writer.writerows([some[0], "\n".join(some), f'"{some[-1]}"{delimiter}'] for some in words)
    return out.getvalue()


def joined(form: str, words: list[list[str]]) -> str:
    """`form` with the number, the first word and all words of each list."""
    return "".join(form.format(at=at, first=some[0], all=text_of(some)) for at, some in enumerate(words))


def as_toml(words: list[list[str]]) -> str:
    return "a = 1\n" + joined('\n[table.t{at}]\nnote = "{all}"\nlist = ["""{first}\n[no.table]"""]\n', words)


def as_ini(words: list[list[str]]) -> str:
    return "; about\na=1\n" + joined("\n[{first}]\nnote = {all}\n", words)


def as_log(words: list[list[str]]) -> str:
    return joined("2026-01-01 10:00:{at:02d} ERROR pump - {all}\n  at {first}()\n", words)


def as_python(words: list[list[str]]) -> str:
    made = joined('class C{at}:\n    """{all}"""\n\n    def m{at}(self) -> str:\n        return "{first}"\n\n\n', words)
    return f"{made}def last() -> None:\n    pass\n"


def as_typescript(words: list[list[str]]) -> str:
    return joined('/** {all} */\nexport class C{at} {{\n  m{at}(): string {{ return "{first}"; }}\n}}\n\n', words)


EXACT: dict[str, tuple[str, Callable[[list[list[str]]], str]]] = {
    "text": ("text/plain", plain),
    "json": ("application/json", as_json),
    "jsonl": ("application/jsonl", as_lines),
    "yaml": ("application/yaml", as_yaml),
    "csv": ("text/csv", as_csv),
    "tsv": ("text/tab-separated-values", lambda words: as_csv(words, "\t")),
    "toml": ("application/toml", as_toml),
    "ini": ("text/x-ini", as_ini),
    "log": ("text/x-log", as_log),
    "python": ("text/x-python", as_python),
    "typescript": ("text/x-typescript", as_typescript),
}


@dataclass(frozen=True)
class Written:
    """A format whose text is decoded: `units` write words as a block each, `read` takes the words out of the source of a block again."""

    media_type: str
    units: tuple[Callable[[list[str]], str], ...]
    read: Callable[[str], str]
    around: tuple[str, str] = ("", "")


def escaped(words: list[str]) -> str:
    """Words with entities and inline tags in them."""
    return " ".join(f"<b>{word[0]}</b>{html.escape(word[1:])}" if at % 2 else word.replace("w", "&#119;") for at, word in enumerate(words))


def macro(name: str, body: str) -> str:
    return f'<ac:structured-macro ac:name="{name}">{body}</ac:structured-macro>'


def without_tags(source: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", " ", re.sub(r"</?(?:b|em|a)\b[^>]*>", "", source)))


def without_marks(source: str) -> str:
    marks = r"^```(?:py)?$|[*>#\[]|^-\s|^[|-]+$|\]\(/x\)"
    return re.sub(marks, " ", html.unescape(source).replace("\r", ""), flags=re.MULTILINE)


def without_names(text: str) -> str:
    """A record of XML without the names of its values."""
    return re.sub(r"^[a-z]: ", "", text, flags=re.MULTILINE)


def cells(words: list[str], form: str, row: str) -> str:
    return row.format("".join(form.format(word) for word in words))


DECODED: dict[str, Written] = {
    "html": Written(
        "text/html",
        (
            lambda words: f"<p>{escaped(words)}</p>",
            lambda words: f"<h2 class='x'>{escaped(words)}</h2>",
            lambda words: f"<ul><li>{escaped(words)}</li></ul>",
            lambda words: f"<pre><code>{html.escape(text_of(words))}</code></pre>",
            lambda words: cells(words, "<td>{}</td>", "<table><tr><th>head</th></tr><tr>{}</tr></table>"),
            lambda words: f"<blockquote><p>{escaped(words)}</p></blockquote>",
        ),
        without_tags,
        ("<!DOCTYPE html><html><body><nav>gone</nav>", "<!-- gone --></body></html>"),
    ),
    "xml": Written(
        "application/xml",
        (
            lambda words: f"<p>{escaped(words)}</p>",
            lambda words: f"<s><t>{escaped(words)}</t></s>",
            lambda words: f"<c><![CDATA[{text_of(words)}]]></c>",
        ),
        lambda source: without_tags(re.sub(r"<!\[CDATA\[(.*?)\]\]>", r"\1", source, flags=re.DOTALL)),
        ('<?xml version="1.0"?>\n<doc>', "<!-- gone --></doc>"),
    ),
    "markdown": Written(
        "text/markdown",
        (
            lambda words: " ".join(f"**{word}**" if at % 2 else word.replace("w", "&#119;") for at, word in enumerate(words)),
            lambda words: f"## {text_of(words)}",
            lambda words: f"- {text_of(words)}",
            lambda words: f"```py\n{text_of(words)}\n```",
            lambda words: f"> {text_of(words)}",
            lambda words: f"[{text_of(words)}](/x)",
            lambda words: cells(words, "| {} ", "{}|") + "\n" + "|---" * len(words) + "|",
        ),
        without_marks,
    ),
    "storage": Written(
        "application/xml",
        (
            lambda words: f"<p>{escaped(words)}</p>",
            lambda words: macro("code", f"<ac:plain-text-body><![CDATA[{text_of(words)}]]></ac:plain-text-body>"),
            lambda words: macro("info", f"<ac:rich-text-body><p>{escaped(words)}</p></ac:rich-text-body>"),
        ),
        lambda source: without_tags(re.sub(r"<!\[CDATA\[(.*?)\]\]>", r"\1", source, flags=re.DOTALL)),
        ("", "<ac:placeholder>gone</ac:placeholder>"),
    ),
}


def read(text: str, media_type: str, encoding: str, end: str) -> tuple[ParsedFile, str]:
    """(result, the decoded original that its locators speak of)."""
    data = text.replace("\n", end).encode(encoding)
    return parse_bytes(data, media_type, "page"), decode(data).text


def check_places(parsed: ParsedFile, original: str) -> None:
    """Blocks in the order of the source; the lines of each hold its characters."""
    last = 0
    lines = split_lines(original)
    for block in parsed.blocks:
        assert block.locator.char is not None and block.locator.line is not None
        start, end = block.locator.char
        first, final = block.locator.line
        assert last <= start < end <= len(original)
        last = start
        before = len("".join(lines[: first - 1]))
        assert before <= start and end <= len("".join(lines[:final])) and start < len("".join(lines[:first]))


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=20)
@given(words=st.lists(WORDS, min_size=1, max_size=5), encoding=st.sampled_from(ENCODINGS), end=st.sampled_from(["\n", "\r\n"]))
def test_what_is_cut_out_is_the_block(name: str, words: list[list[str]], encoding: str, end: str) -> None:
    media_type, write = EXACT[name]
    if name == "python" and encoding == "utf-16":
        encoding = "utf-8"  # the language knows no such source
    parsed, original = read(write(words), media_type, encoding, end)
    assert parsed.document is not None and parsed.document.warnings == [] and parsed.blocks
    check_places(parsed, original)
    assert [block.locator.slice_text(original) for block in parsed.blocks] == [block.text for block in parsed.blocks]
    shown = "".join(block.text for block in parsed.blocks)
    assert all(json.dumps(word)[1:-1] in shown or word in shown for some in words for word in some)


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=30)
@given(soup=SOUP, encoding=st.sampled_from(ENCODINGS))
def test_it_is_so_for_any_text(name: str, soup: str, encoding: str) -> None:
    parsed = parse_bytes(data := soup.encode(encoding), EXACT[name][0], "page")
    if parsed.document is None:
        return
    original = decode(data).text
    if name not in ("python", "typescript"):  # an empty one is a module
        check_places(parsed, original)
    assert [clean(block.locator.slice_text(original) or "") for block in parsed.blocks] == [block.text for block in parsed.blocks]


@pytest.mark.parametrize("name", DECODED)
@settings(max_examples=30)
@given(
    units=st.lists(st.tuples(st.integers(0, 9), WORDS), min_size=1, max_size=6),
    encoding=st.sampled_from(ENCODINGS),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_what_is_cut_out_says_the_same(name: str, units: list[tuple[int, list[str]]], encoding: str, end: str) -> None:
    form = DECODED[name]
    body = "\n\n".join(form.units[at % len(form.units)](words) for at, words in units)
    parsed, original = read(f"{form.around[0]}{body}\n{form.around[1]}", form.media_type, encoding, end)
    assert parsed.document is not None and parsed.document.warnings == []
    check_places(parsed, original)
    for block in parsed.blocks:
        assert words_of(form.read(block.locator.slice_text(original) or "")) == words_of(without_names(block.text))
    said = [word for block in parsed.blocks for word in words_of(without_names(block.text)) if word != "head"]
    assert said == [word for _, words in units for word in words]


def resolve(value: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def is_part_of(block: Block, value: Any) -> bool:
    """Whether a block's text is this value, a member with it, or a run of its members or elements."""
    try:
        members = json.loads(f"{{{block.text}}}")
        return list(members.values()) == [value] or (isinstance(value, dict) and members.items() <= value.items())
    except (ValueError, TypeError):
        pass
    if block.text.startswith('"') and ":" in block.text:
        members = json.loads(f"{{{block.text}}}")
        return all(value[key] == inner for key, inner in members.items())
    found = json.loads(f"[{block.text}]")
    return found == [value] or (isinstance(value, list) and any(value[at : at + len(found)] == found for at in range(len(value))))


KEYS = st.text(st.sampled_from('ab/~ü"\\ 0'), min_size=1, max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORD | KEYS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=80)
@given(value=VALUES, indent=st.sampled_from([None, 0, 2]))
def test_pointers_lead_to_the_value(value: Any, indent: int | None) -> None:
    for media_type, text, whole in (
        ("application/json", json.dumps(value, indent=indent), value),
        ("application/jsonl", f"{json.dumps(value)}\n\n{json.dumps(value)}\n", [value, value]),
    ):
        for block in parse_bytes(text, media_type, "data").blocks:
            assert block.locator.pointer is not None
            assert is_part_of(block, resolve(whole, block.locator.pointer))


@settings(max_examples=40)
@given(rows=st.lists(st.lists(WORD | st.just('a "q", b\nc'), min_size=2, max_size=2), min_size=1, max_size=12))
def test_rows_are_those_of_the_file(rows: list[list[str]]) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([["one", "two"], *rows])
    found: list[list[str]] = []
    for block in parse_bytes(out.getvalue(), "text/csv", "data.csv").blocks:
        assert block.locator.row == len(found) + 1
        found += block.metadata["cells"]
    assert found == rows


@settings(max_examples=30)
@given(units=st.lists(st.tuples(st.integers(0, 9), WORDS), min_size=1, max_size=6))
def test_element_paths_lead_to_the_element(units: list[tuple[int, list[str]]]) -> None:
    form = DECODED["xml"]
    text = form.around[0] + "".join(form.units[at % len(form.units)](words) for at, words in units) + form.around[1]
    root = etree.fromstring(text.encode())
    for block in parse_bytes(text, "application/xml", "page").blocks:
        (element,) = root.xpath(block.locator.xpath)
        assert letters(without_names(block.text)) in letters("".join(element.itertext()))


@pytest.mark.parametrize("name", ["python", "typescript"])
@settings(max_examples=20)
@given(words=st.lists(WORDS, min_size=1, max_size=5), end=st.sampled_from(["\n", "\r\n"]))
def test_symbols_are_where_they_are_defined(name: str, words: list[list[str]], end: str) -> None:
    media_type, write = EXACT[name]
    parsed, original = read(write(words), media_type, "utf-8", end)
    defined = {symbol.name for symbol in parsed.symbols}
    assert {f"C{at}" for at in range(len(words))} | {f"m{at}" for at in range(len(words))} <= defined
    for symbol in parsed.symbols:
        source = original[symbol.char_start : symbol.char_end]
        assert source.encode() == original.encode()[symbol.byte_start : symbol.byte_end]
        if symbol.kind == "module":
            continue
        if name == "python":
            (made,) = ast.parse(textwrap.dedent(source.replace("\r\n", "\n"))).body
            assert isinstance(made, ast.ClassDef | ast.FunctionDef) and made.name == symbol.name
        else:
            assert re.match(rf"(?:export )?(?:class )?{symbol.name}\b", source)
