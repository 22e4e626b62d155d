"""Ids hold no line and do not collide by concatenation; locators have one canonical string and slice their source."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raydex.ir import ids
from raydex.ir.errors import InputError
from raydex.ir.locator import LineIndex, Locator, locator_of, split_lines

texts = st.text(max_size=12)


@given(st.lists(texts, max_size=4), st.lists(texts, max_size=4))
def test_different_fields_give_different_ids(left: list[str], right: list[str]) -> None:
    assert (ids.make_id("x", *left) == ids.make_id("x", *right)) == (left == right)


def test_an_id_is_a_prefix_and_32_hex_digits() -> None:
    made = ids.record_id("default", "docs", "a/b.md")
    assert re.fullmatch(r"rec_[0-9a-f]{32}", made)
    assert made == "rec_" + ids.digest("default", "docs", "a/b.md")[:32]


def test_fields_that_come_one_by_one_give_the_same_digest() -> None:
    fields = ["a", "", "bc", "\udc80"]
    assert ids.digest_many(iter(fields)) == ids.digest(*fields) != ids.digest(*fields, "")


spans = st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)).map(lambda pair: (min(pair), max(pair)))
numbers = st.none() | st.integers(1, 10**6)
names = st.none() | st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=10)
boxes = st.none() | st.tuples(*[st.floats(-1e4, 1e4, allow_nan=False) for _ in range(4)])


@given(
    st.fixed_dictionaries(
        {
            "page": numbers,
            "bbox": boxes,
            "sheet": names,
            "cells": names,
            "pointer": names,
            "paragraph": numbers,
            "note": numbers,
            "member": names,
            "char": st.none() | spans,
            "byte": st.none() | spans,
            "line": st.none() | spans.map(lambda pair: (pair[0] + 1, pair[1] + 1)),
        }
    )
)
def test_a_locator_is_its_string(values: dict) -> None:
    if all(value is None for value in values.values()):
        for make in (lambda: Locator(**values), lambda: locator_of(values)):
            with pytest.raises(InputError):
                make()
        return
    locator = Locator(**values)
    assert locator_of(values) == locator == locator_of({name: value for name, value in values.items() if value is not None})
    assert Locator.parse(str(locator)) == locator
    assert str(Locator.parse(str(locator))) == str(locator)


@pytest.mark.parametrize("text", ["", "page", "page=x", "nowhere=1", "char=5", "page=1;page=2", "char=9-3"])
def test_a_broken_locator_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Locator.parse(text)


@given(st.text(st.sampled_from("ab\n\r\f\v\u2028\x85é"), max_size=30))
def test_lines_split_only_where_the_contract_says(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert lines == re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
    index = LineIndex(text)
    at = 0
    for number, line in enumerate(lines, 1):
        for offset in range(at, at + len(line)):
            assert index.line_of(offset) == number
        assert Locator(line=(number, number)).slice_text(text) == line
        at += len(line)


@pytest.mark.parametrize("place", [{"char": (9, 3)}, {"line": (0, 1)}, {"byte": (-1, 2)}])
def test_a_range_that_is_none_is_refused(place: dict) -> None:
    for make in (lambda: Locator(**place), lambda: locator_of(place)):
        with pytest.raises(InputError, match="is not a range"):
            make()
