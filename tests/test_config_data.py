"""TOML, INI, properties and logs: sections and entries as written, with their places."""

from __future__ import annotations

import pytest
from document_files import parse_bytes
from hypothesis import given
from hypothesis import strategies as st

from raydex.ir.parsed import ParsedFile

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=120)


def pieces(text: str, media_type: str) -> list[tuple[str | None, str]]:
    parsed = parse_bytes(text, media_type, "data")
    assert all(block.locator.slice_text(text) == block.text for block in parsed.blocks)
    return [(block.locator.pointer, block.text) for block in parsed.blocks]


def test_toml_tables() -> None:
    text = "# top\na = 1\ntext = '''\n[not.a.table]\n'''\n[tool.x]\ny = [\n  [1,2],\n]\n"
    text += '[[prod]]\nn="a"\n[[prod]]\nn="b"\n["quo.ted".z]\nk=1\n'
    assert pieces(text, "application/toml") == [
        ("", "# top\na = 1\ntext = '''\n[not.a.table]\n'''"),
        ("/tool/x", "[tool.x]\ny = [\n  [1,2],\n]"),
        ("/prod/0", '[[prod]]\nn="a"'),
        ("/prod/1", '[[prod]]\nn="b"'),
        ("/quo.ted/z", '["quo.ted".z]\nk=1'),
    ]


def test_toml_that_is_none_keeps_its_text() -> None:
    parsed = parse_bytes("a =\n\n[b]\nc=1\n", "application/toml", "data.toml")
    assert parsed.document is not None and parsed.document.warnings == ["broken_values"]
    assert [block.text for block in parsed.blocks] == ["a =", "[b]\nc=1"]
    assert any("line 1" in event.message for event in parsed.events)


def test_ini_sections() -> None:
    assert pieces("; c\nx=1\n[a]\nk=v\n\n[b c]\nk: v\n", "text/x-ini") == [("", "; c\nx=1"), ("/a", "[a]\nk=v"), ("/b c", "[b c]\nk: v")]
    assert pieces("a.b=1\nc.d=2\n", "text/x-ini") == [("", "a.b=1\nc.d=2")]


def log(text: str) -> list[tuple[str, dict[str, str]]]:
    parsed = parse_bytes(text, "text/x-log", "data.log")
    assert all(block.locator.slice_text(text) == block.text for block in parsed.blocks)
    return [(block.text, block.metadata) for block in parsed.blocks]


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("2024-01-01 10:00:01,123 INFO  app.module: started", ("2024-01-01 10:00:01,123", "INFO", "app.module")),
        ("2024-01-01 10:00:00 [ERROR] serviceA - message", ("2024-01-01 10:00:00", "ERROR", "serviceA")),
        ("Jan  5 10:00:00 host sshd[123]: Accepted", ("Jan  5 10:00:00", None, "sshd")),
        ('127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200', ("10/Oct/2000:13:55:36 -0700", None, None)),
        ('level=warn msg="x"', (None, "WARNING", None)),
        ('{"msg": "x", "time": "2024-01-01T10:00:00Z", "level": "warn", "logger": "a.b"}', ("2024-01-01T10:00:00Z", "WARNING", "a.b")),
        ('{"ts":1700000000.5,"level":30,"msg":"x"}', ("1700000000.5", None, None)),
    ],
)
def test_log_entries(line: str, about: tuple[str | None, ...]) -> None:
    [(text, metadata)] = log(line + "\n")
    assert text == line
    assert tuple(metadata.get(name) for name in ("timestamp", "level", "service")) == about


def test_stack_traces_belong_to_their_entry() -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: x'
    first = f"2024-01-01 10:00:00 [ERROR] serviceA - message\n{trace}"
    assert [text for text, _ in log(f"{first}\n2024-01-01 10:00:01 INFO b - next\n")] == [first, "2024-01-01 10:00:01 INFO b - next"]


def test_records_of_every_form_begin_an_entry() -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nqueue.Empty: x'
    chained = f"{trace}\n\nDuring handling of the above exception, another exception occurred:\n\n{trace}"
    entries = [
        '127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1',
        chained,
        trace,
        '{"level": "error", "msg": "x"}',
        "words of no form",
        "[    0.000000] Linux version 6",
        f"2024-01-01 10:00:00 [ERROR] serviceA - message\n{trace}\nwords below it",
        '{"level": "error",\n  "msg": "x"}',
        "level=info msg=x",
        "ERROR x",
        "I0102 15:04:05.000000  1234 file.go:12] x\nwords",
    ]
    assert [text for text, _ in log("\n".join(entries) + "\n")] == entries


@given(TEXTS, st.sampled_from(["application/toml", "text/x-ini", "text/x-log"]))
def test_no_word_is_lost(text: str, media_type: str) -> None:
    parsed: ParsedFile = parse_bytes(text, media_type, "data")
    assert (parsed.document is None) == bool(parsed.rejects)
    shown = " ".join(block.text for block in parsed.blocks)
    if parsed.document is not None:
        assert sorted(shown.split()) == sorted(text.removeprefix("\ufeff").split())
