"""JSON and JSON Lines: every value once, as written, at its pointer; what is no JSON is kept and said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from document_files import parse_bytes
from hypothesis import given
from hypothesis import strategies as st
from shared_cases import case

from raydex.ir.parsed import ParsedFile
from raydex.kernels.limits import Limits

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=40,
)


def read(data: bytes | str, lines: bool = False, limits: Limits | None = None) -> ParsedFile:
    return parse_bytes(data, "application/jsonl" if lines else "application/json", "data.json", limits)


def pieces(parsed: ParsedFile) -> list[tuple[str | None, str]]:
    return [(block.locator.pointer, block.text) for block in parsed.blocks]


def messages(parsed: ParsedFile) -> list[str]:
    return [event.message for event in parsed.events if event.name == "parse_error"]


def assert_slices(parsed: ParsedFile, text: str) -> None:
    assert all(block.locator.slice_text(text) == block.text for block in parsed.blocks)


def test_containers_stand_alone_and_scalars_share() -> None:
    parsed = read('{"a":1,"b":{"c":[1,2]},"d":2,"e":"x"}')
    assert pieces(parsed) == [("", '"a":1'), ("/b", '"b":{"c":[1,2]}'), ("", '"d":2,"e":"x"')]
    assert [block.section_path for block in parsed.blocks] == [[], ["b"], []]
    assert all(block.kind == "code" and block.metadata == {"language": "json"} for block in parsed.blocks)


def test_elements_of_the_outermost_list_are_records() -> None:
    assert pieces(read('[{"id": 1.10}, "loose", 12345678901234567890]')) == [
        ("/0", '{"id": 1.10}'),
        ("/1", '"loose"'),
        ("/2", "12345678901234567890"),
    ]


@pytest.mark.parametrize("text", ["[]", "{}", " 12 ", '"x"', "null"])
def test_a_value_alone_is_a_block(text: str) -> None:
    assert pieces(read(text)) == [("", text.strip())]


def test_large_values_are_opened_with_escaped_pointers() -> None:
    value = {"big/one": {f"k~{n}": "v" * 900 for n in range(8)}, "small": 1}
    text = json.dumps(value)
    parsed = read(text)
    assert {block.locator.pointer for block in parsed.blocks} == {"/big~1one", ""}
    assert all(len(block.text) <= 4_000 for block in parsed.blocks)
    assert_slices(parsed, text)


def test_comments_and_last_commas_are_no_faults() -> None:
    text = '{ // first\n "compilerOptions": {"strict": true, /* y */ "t": [1,2,],},\n}'
    parsed = read(text)
    assert pieces(parsed) == [("/compilerOptions", '"compilerOptions": {"strict": true, /* y */ "t": [1,2,],}')]
    assert messages(parsed) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a":1,,"b":2}', "a value is missing"),
        ('{"a" 1}', "expected ':'"),
        ("hello", "expected a JSON value"),
        ('{"a":"x', "a string is never closed"),
        ('{"a":[}', "a bracket is never closed"),
        ("[1]]", "unexpected content"),
    ],
)
def test_what_is_no_json_is_kept_and_said(text: str, said: str) -> None:
    parsed = read(text)
    assert parsed.document is not None and parsed.document.warnings == ["broken_values"]
    assert any(said in message and message.startswith("line 1:") for message in messages(parsed))
    assert [block.metadata["broken"] for block in parsed.blocks] == [True]
    assert set(text) - set("".join(block.text for block in parsed.blocks)) <= set("{[]}")


def test_a_broken_element_costs_itself() -> None:
    parsed = read('[{"a": 1}, {"b": tru}, {"c": 3}]')
    assert [block.metadata.get("broken", False) for block in parsed.blocks] == [False, True, False]


def test_lines_are_records_and_blank_ones_are_none() -> None:
    text = '{"n": 1}\r\n\n{"n": 2}\n{"n": 3\n'
    parsed = read(text, lines=True)
    assert pieces(parsed) == [("/0", '{"n": 1}'), ("/1", '{"n": 2}'), ("/2", '{"n": 3')]
    assert messages(parsed) == ["line 4: unexpected character, expected ',' or '}'"]
    assert_slices(parsed, text)


def test_many_lines_share_blocks_and_a_broken_one_costs_itself() -> None:
    text = "".join(f'{{"n": {n}}}\n' for n in range(12_000)).replace('"n": 7000', '"n": tru')
    parsed = read(text, lines=True)
    assert len(parsed.blocks) < 1_000 and [b.locator.pointer for b in parsed.blocks if b.metadata.get("broken")] == ["/7000"]
    assert "\n".join(block.text for block in parsed.blocks) == text.rstrip()
    rows = [(b.locator.row, b.text) for b in parsed.blocks if b.locator.row]
    assert all(block_text.startswith(f'{{"n": {row - 1}}}') for row, block_text in rows)
    assert_slices(parsed, text)


def repeats(parsed: ParsedFile) -> list[str]:
    found = [event.message for event in parsed.events if event.name == "duplicate_keys" and event.message]
    assert parsed.document is not None and ("duplicate_keys" in parsed.document.warnings) == bool(found)
    return found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1,\n"b": 2,\n"a": 3}', (1, "a", 3)),
        ('[{"a": {"x": 1, "y": ":", "x": 2}}]', (1, "x", 1)),
        ('{"a": {"b": 1},\n"c": 1,\n"a": {"b": 2}, "c": 2}', (2, "a", 3)),
        (f'{{"a": "{"x" * 5000}", "b": "{"y" * 5000}",\n"a" : 1}}', (1, "a", 2)),
        ('{"k": "\\u003a", "in": {"a:": 1, "a:": "\\u003A"}}', (1, "a:", 1)),
        (json.dumps([{"n": 1}] * 20_000)[:-1] + ', {"n": 1, "n": 1}]', (1, "n", 1)),
        (json.dumps({str(at): at for at in range(20_000)})[:-1] + ', "0": 1}', (1, "0", 1)),
        ('{"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 1}], "d": "\\"a\\": 1", "A": 1, "": 1}', None),
        ('[{"a": 1}, {"a": nope}, {"b": 1, "b": 2}]', (1, "b", 1)),
        ('{"a": {"a": {', None),
    ],
    ids=["lines", "inner", "both", "long", "escapes", "many elements", "many keys", "none", "broken", "open"],
)
def test_keys_that_stand_twice_are_said(text: str, said: tuple[int, str, int] | None) -> None:
    wanted = []
    if said is not None:
        count, key, line = said
        wanted = [f"{count} keys stand more than once in their object; the first is {key!r} on line {line}"]
    assert repeats(read(text)) == wanted


@pytest.mark.parametrize("count", [3, 12_000])
def test_keys_of_lines_that_stand_twice_are_said(count: int) -> None:
    lines = ['{"a": 1, "b": {"a": 1}}'] * count + ['{"a": 1, "a": 2}', '{"a" 1', '{"a": [{"b": 1, "b": 1}]}']
    assert repeats(read("\n".join(lines), lines=True)) == [
        f"2 keys stand more than once in their object; the first is 'a' on line {count + 1}"
    ]
    assert repeats(read("\n".join(lines[:count]), lines=True)) == []


def test_depth_is_bounded() -> None:
    parsed = read("[" * 300 + "]" * 300)
    assert [reject.reject_class for reject in parsed.rejects] == ["too_deep"]
    assert read("[" * 100 + "]" * 100).rejects == []
    assert read("[" * 100_000).rejects[0].reject_class == "too_deep"


def test_blocks_are_bounded_and_a_flat_list_shares_them() -> None:
    many = json.dumps(list(range(30_000)))
    assert len(read(many).blocks) < 100
    few = Limits(blocks=10)
    assert read(json.dumps(list(range(500))), limits=few).rejects[0].reject_class == "too_many_blocks"


def test_brackets_and_quotes_inside_strings_are_text() -> None:
    text = json.dumps({"a": 'x{[",:\\"]}', "b": ["\\", '"']}, ensure_ascii=False)
    parsed = read(text)
    assert messages(parsed) == [] and len(parsed.blocks) == 2


@given(VALUES, st.sampled_from([None, 1]))
def test_every_value_is_in_a_block(value: Any, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    parsed = read(text.encode("utf-8", "surrogatepass"))
    if parsed.rejects:  # lone surrogates are no UTF-8
        return
    assert messages(parsed) == []
    assert_slices(parsed, text)
    shown = "".join(block.text for block in parsed.blocks)
    for scalar in scalars(value):
        assert json.dumps(scalar, ensure_ascii=False) in shown


def scalars(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [item for key, inner in value.items() for item in (key, *scalars(inner))]
    if isinstance(value, list):
        return [item for inner in value for item in scalars(inner)]
    return [value]


@given(st.binary(max_size=200))
def test_any_bytes_give_rows_or_a_typed_reject(data: bytes) -> None:
    for lines in (False, True):
        parsed = read(data, lines)
        assert (parsed.document is None) == bool(parsed.rejects)


def test_case_empty_values_and_lists() -> None:
    folder = case("b29-json-empty-and-list")
    depot = read((folder / "depot.json").read_bytes())
    shown = "".join(block.text for block in depot.blocks)
    assert all(f'"bay-{n}"' in shown for n in range(1, 23)) and all(f'"gate-{n}"' in shown for n in range(1, 5))
    listed = read((folder / "list.json").read_bytes())
    assert [block.locator.pointer for block in listed.blocks] == ["/0", "/1", "/2", "/3", "/4"]
    assert listed.blocks[3].text == "12345678901234567890" and "1.1" in listed.blocks[4].text
    twice = read((folder / "dup.json").read_bytes())
    assert [block.text for block in twice.blocks] == ['"limit": 5, "limit": 7, "name": "x"']
    lines = read((folder / "lines.jsonl").read_bytes(), lines=True)
    assert len([block for block in lines.blocks if not block.metadata.get("broken")]) == 2
    assert messages(lines) == ["line 4: unexpected character, expected ',' or '}'"]


@pytest.mark.parametrize("rest", ["ü", " 5", " x y", "]", " [2]", "\n\n{}", ",", '"ü'], ids=str.encode)
def test_what_stands_behind_the_end_is_kept_and_said(rest: str) -> None:
    for inner in ("", "1", "1, " * 3_000 + "2"):
        for text in (f"[{inner}]{rest}", f'{{"a": [{inner}]{rest}, "b": 1}}', f'{{"a": [{inner}], "b": 1}}{rest}'):
            parsed = read(text)
            shown = "".join(block.text for block in parsed.blocks)
            assert [shown.count(sign) for sign in "125xyü"] == [text.count(sign) for sign in "125xyü"], text[-60:]
            assert parsed.document is not None and parsed.document.warnings == ["broken_values"], text[-60:]
