"""CSV and TSV: the dialect is found, records are counted, cells are exact, and a quote that is never closed eats nothing."""

from __future__ import annotations

import csv
import io

import pytest
from document_files import parse_bytes
from hypothesis import example, given
from hypothesis import strategies as st
from shared_cases import case

from raydex.ir.parsed import ParsedFile

CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cc", "Cs"]) | st.just("\n"), max_size=12)


def read(text: str | bytes, media_type: str = "text/csv") -> ParsedFile:
    return parse_bytes(text, media_type, "data.csv")


def about(parsed: ParsedFile) -> tuple[list[str], str, int]:
    assert parsed.document is not None
    metadata = parsed.document.metadata
    return metadata["columns"], metadata["delimiter"], metadata["records"]


def cells(parsed: ParsedFile) -> list[list[str]]:
    return [row for block in parsed.blocks for row in block.metadata["cells"]]


@pytest.mark.parametrize(
    ("text", "wanted", "rows"),
    [
        ("a;b;c\n1,5;2;3\n1,6;3;4\n", (["a", "b", "c"], ";", 2), [["1,5", "2", "3"], ["1,6", "3", "4"]]),
        ("x\ty\n1\t2\n", (["x", "y"], "\t", 1), [["1", "2"]]),
        ("1,2\n3,4\n", ([], ",", 2), [["1", "2"], ["3", "4"]]),
        ("a,b\r1,2\r3,4", (["a", "b"], ",", 2), [["1", "2"], ["3", "4"]]),
        ('name,quote\nx,"he said \\"hi\\", ok"\ny,"z"\n', (["name", "quote"], ",", 2), [["x", 'he said "hi", ok'], ["y", "z"]]),
    ],
)
def test_dialects(text: str, wanted: tuple[list[str], str, int], rows: list[list[str]]) -> None:
    parsed = read(text)
    assert about(parsed) == wanted
    assert cells(parsed) == rows
    assert all(block.locator.slice_text(text) == block.text for block in parsed.blocks)


def test_blocks_count_records_not_lines() -> None:
    text = "id,note\n" + "".join(f'{n},"first\nsecond {n}"\n' for n in range(900))
    parsed = read(text)
    assert len(parsed.blocks) > 1 and len(cells(parsed)) == 900
    assert parsed.blocks[0].locator.row == 1
    assert all(int(block.metadata["cells"][0][0]) + 1 == block.locator.row for block in parsed.blocks)


def test_a_quote_that_is_never_closed_eats_nothing() -> None:
    text = "a,b\n" + "".join(f'{n},"x{n}"\n' for n in range(1000)) + '5,"open\n' + "".join(f"{n},y\n" for n in range(3000))
    parsed = read(text)
    assert parsed.document is not None and "open_quote" in parsed.document.warnings
    assert about(parsed)[2] == 4001


def test_a_header_alone_is_kept() -> None:
    assert [block.text for block in read("name,size\n").blocks] == ["name,size"]


@example([["\\", "0"], ["0", "0"]])  # a backslash that escapes nothing
@given(st.lists(st.lists(CELL, min_size=2, max_size=4), min_size=1, max_size=8))
def test_every_line_is_in_a_block(rows: list[list[str]]) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    parsed = read(out.getvalue())
    assert parsed.document is not None
    shown = "\n".join([*parsed.document.metadata["columns"], *(block.text for block in parsed.blocks)])
    assert all(word in shown for row in rows for cell in row for word in cell.replace('"', " ").split())


@given(st.binary(max_size=200))
def test_any_bytes_give_rows_or_a_typed_reject(data: bytes) -> None:
    parsed = read(data)
    assert (parsed.document is None) == bool(parsed.rejects)


def test_case_dialects() -> None:
    folder = case("b27-csv-dialects")
    runs = read((folder / "runs.csv").read_bytes())
    assert about(runs) == (["run", "pass", "hours", "lots"], ";", 3)
    assert cells(runs)[1][3] == "['L7', 'L8']"
    trade = read((folder / "trade.csv").read_bytes())
    assert (about(trade)[0], len(cells(trade))) == (["Trade"], 3)
    bom = read((folder / "bom.csv").read_bytes())
    assert about(bom)[0] == ["Size, mm", "Note"]
    assert [row[1] for row in cells(bom)] == ["two\r\nlines", 'a "b" c']


@pytest.mark.parametrize(
    "text,titles,wanted,rows",
    [
        ("a,b,c\n1,2,3\n4,5\n6,7,8\n", [], (["a", "b", "c"], ",", 3), [["1", "2", "3"], ["4", "5"], ["6", "7", "8"]]),
        ("Report 2024\n\nName,Qty\na,1\nb,2\n", ["Report 2024"], (["Name", "Qty"], ",", 2), [["a", "1"], ["b", "2"]]),
        ("Report\r\n Made by me \r\nName;Qty\r\na;1\r\n", ["Report", "Made by me"], (["Name", "Qty"], ";", 1), [["a", "1"]]),
        (
            "Plan\nday,who,what\nMon,Ann,oil\nTue,Ben,air\n",
            ["Plan"],
            (["day", "who", "what"], ",", 2),
            [["Mon", "Ann", "oil"], ["Tue", "Ben", "air"]],
        ),
        ("sep=;\r\nName;Qty\r\na;1,5\r\n", [], (["Name", "Qty"], ";", 1), [["a", "1,5"]]),
        ("SEP=|\na|b\nc|d\n", [], (["a", "b"], "|", 1), [["c", "d"]]),
        ("Trade\nButcher, Baker\nSmith, Jones\n", [], (["Trade"], "", 2), [["Butcher, Baker"], ["Smith, Jones"]]),
        ("Trade\nButcher, Baker\nSmith\n", [], (["Trade"], "", 2), [["Butcher, Baker"], ["Smith"]]),
    ],
)
def test_short_tables_and_what_stands_above_them(
    text: str, titles: list[str], wanted: tuple[list[str], str, int], rows: list[list[str]]
) -> None:
    parsed = read(text)
    assert [block.text for block in parsed.blocks if block.kind == "paragraph"] == titles
    assert about(parsed) == wanted
    assert [row for block in parsed.blocks if block.kind == "table" for row in block.metadata["cells"]] == rows
    assert all(block.locator.slice_text(text) == block.text for block in parsed.blocks)


@pytest.mark.parametrize(
    "text,lines,rows",
    [
        ('a,b\n1,"x\n2,y\n3,z\n', [2], [["1", '"x'], ["2", "y"], ["3", "z"]]),
        ('a,b\n1,"x\n2,"y"\n3,z\n', [2], [["1", '"x'], ["2", "y"], ["3", "z"]]),
        ('a,b\n1,"x\n2,y\n3,"z"\n4,w\n', [2], [["1", '"x'], ["2", "y"], ["3", "z"], ["4", "w"]]),
        ('a,b\n1,"x\ny,z"\n3,w\n', [], [["1", "x\ny,z"], ["3", "w"]]),
        ('a,b\n1,"x\n\ny"\n3,w\n', [], [["1", "x\n\ny"], ["3", "w"]]),
        ('a,b\n1,"said ""no""\n2"\n3,w\n', [], [["1", 'said "no"\n2'], ["3", "w"]]),
    ],
)
def test_a_lost_quote_costs_no_record(text: str, lines: list[int], rows: list[list[str]]) -> None:
    parsed = read(text)
    assert cells(parsed) == rows
    told = [event.message for event in parsed.events if event.name == "open_quote" and event.message]
    assert [int(message.split(":")[0].removeprefix("line ")) for message in told] == lines
    assert parsed.document is not None and ("open_quote" in parsed.document.warnings) == bool(lines)
