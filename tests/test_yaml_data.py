"""YAML: several documents, text as written, merges shown, tags never obeyed, faults kept."""

from __future__ import annotations

import pytest
from document_files import parse_bytes
from hypothesis import given
from hypothesis import strategies as st
from shared_cases import case

from raydex.ir.parsed import ParsedFile


def read(text: str | bytes) -> ParsedFile:
    return parse_bytes(text, "application/yaml", "data.yaml")


def pieces(parsed: ParsedFile) -> list[tuple[str | None, str]]:
    return [(block.locator.pointer, block.text) for block in parsed.blocks]


def events(parsed: ParsedFile) -> list[str]:
    return [event.message for event in parsed.events if event.message]


def test_lists_and_mappings_have_pointers() -> None:
    text = "- a\n- b: 1\n  c: [1,2]\n-\n- # c\n  x\n"
    parsed = read(text)
    assert pieces(parsed) == [("/0", "a"), ("/1", "b: 1\n  c: [1,2]"), ("/3", "x")]
    assert all(block.locator.slice_text(text) == block.text for block in parsed.blocks)


def test_several_documents_are_numbered() -> None:
    assert pieces(read("a: 1\n---\nb: 2\n")) == [("/0", "a: 1"), ("/1", "b: 2")]


def test_block_scalars_keep_their_lines() -> None:
    text = "a: |\n  x\n  y\n\n\nb: >-\n  folded\n  text\n# end\n"
    assert pieces(read(text)) == [("", "a: |\n  x\n  y\n\n\nb: >-\n  folded\n  text")]


@pytest.mark.parametrize("text", ["a: 1\nb: [1, 2\nc: 3\n", "a: 'x\n", "a: b: c\n"])
def test_a_fault_is_said_and_nothing_is_lost(text: str) -> None:
    parsed = read(text)
    assert parsed.document is not None and "broken_values" in parsed.document.warnings
    assert any(message.startswith("line ") for message in events(parsed))
    assert [block.text for block in parsed.blocks] == [text.rstrip("\n")]


def test_what_stands_before_a_fault_is_kept_apart() -> None:
    parsed = read("a: 1\n---\nb: [1, 2\nc: 3\n")
    assert [(block.text, block.metadata.get("broken", False)) for block in parsed.blocks] == [
        ("a: 1", False),
        ("---\nb: [1, 2\nc: 3", True),
    ]


def test_aliases_are_shown_not_expanded() -> None:
    text = "a: &a [x,x]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)},*{chr(97 + n)}]\n" for n in range(20))
    assert sum(len(block.text) for block in read(text).blocks) <= len(text)


def test_an_alias_of_nothing_is_said() -> None:
    parsed = read("a: &x 1\nb: *x\nc: *nowhere\n")
    assert parsed.document is not None and parsed.document.warnings == ["unknown_alias"]
    assert events(parsed) == ["line 3: nothing is called 'nowhere'"]


def test_depth_is_bounded() -> None:
    assert read("[" * 500).rejects[0].reject_class == "too_deep"


@given(st.binary(max_size=200))
def test_any_bytes_give_rows_or_a_typed_reject(data: bytes) -> None:
    parsed = read(data)
    assert (parsed.document is None) == bool(parsed.rejects)


def test_case_traps() -> None:
    parsed = read(case("b30-yaml-traps/deploy.yaml").read_bytes())
    shown = "\n".join(block.text for block in parsed.blocks)
    assert {(block.locator.pointer or "").split("/")[1] for block in parsed.blocks} == {"0", "1", "2"}
    assert all(
        text in shown for text in ("1.10", "NO", "0755", "12:30:45", "2026-03-01", "app:1.10", "keep\n    indent", "staging", "production")
    )
    service = next(block for block in parsed.blocks if block.locator.pointer == "/0/service")
    assert service.metadata["merged"]["retries"] == "3"
    assert any("'source' stands 2 times" in message for message in events(parsed))
    assert any("os.system is not obeyed" in message for message in events(parsed))
