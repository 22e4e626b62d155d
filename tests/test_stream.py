"""Large files of records: cut where records begin, parsed segment by segment, with the cells and places of the whole file."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pytest
from document_files import parse_bytes
from hypothesis import example, given, settings
from hypothesis import strategies as st

from raydex.cluster.lake import Generation
from raydex.cluster.objects import ObjectStore
from raydex.configs.settings import ObjectSettings
from raydex.ir.errors import InputError
from raydex.ir.ids import content_hash
from raydex.ir.locator import Locator
from raydex.ir.parsed import ParsedFile
from raydex.jobs.one_file import parse_large
from raydex.jobs.originals import Originals
from raydex.jobs.reading import Reader
from raydex.jobs.render import print_large
from raydex.jobs.streams import CutWorker, find_streams
from raydex.kernels.decode import decode, decode_as
from raydex.kernels.parse import parse
from raydex.kernels.request import ParseRequest
from raydex.kernels.segment import StreamPlan, dump_segment, load_segment
from raydex.kernels.stream import dump_plan, load_plan, plan_stream
from raydex.kernels.stream_xml import NotCut, may_be_cut
from tests.stage_runs import PlainRun

CSV, LINES, LOG = "text/csv", "application/jsonl", "text/x-log"
CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]) | st.sampled_from('"\n\r,;é'), max_size=9)


def cut(data: bytes, media_type: str, **sizes: int) -> StreamPlan:
    given = {"records": 1_000_000, "segment_bytes": 64, **sizes}
    plan = plan_stream(lambda start, size: data[start : start + size], len(data), media_type, **given)  # type: ignore[arg-type]
    assert load_plan(dump_plan(plan)) == plan
    places = [segment.place for segment in plan.segments]
    assert [place.start for place in places] == [0, *(place.end for place in places[:-1])] and places[-1].end == len(data)
    assert plan.content_hash == content_hash(data)
    return plan


def segments(data: bytes, media_type: str, **sizes: int) -> list[ParsedFile]:
    """Each segment parsed on its own."""
    found = []
    for segment in cut(data, media_type, **sizes).segments:
        own = data[segment.place.start : segment.place.end]
        assert content_hash(own) == segment.content_hash and load_segment(dump_segment(segment)) == segment
        found.append(parse(ParseRequest("rec", "hash", "f.x!/part", media_type, own, segment=segment)))
    assert all(parsed.document is not None for parsed in found)
    return found


def cells(parsed: list[ParsedFile]) -> list[list[str]]:
    return [row for one in parsed for block in one.blocks for row in block.metadata.get("cells", ())]


def assert_places(parsed: list[ParsedFile], text: str) -> None:
    """Every block's characters, lines and first row are those of the whole text."""
    row = 1
    for block in (block for one in parsed for block in one.blocks):
        assert block.locator.char is not None and block.locator.line is not None
        assert text[slice(*block.locator.char)].replace("\0", "\ufffd") == block.text
        before = text[: block.locator.char[0]]
        assert block.locator.line[0] == before.count("\n") + before.count("\r") - before.count("\r\n") + 1
        if block.metadata.get("cells"):
            assert block.locator.row == row
            row += len(block.metadata["cells"])


@settings(max_examples=150, deadline=None)
@example([["", '"'], ["", "\n"]], "\r", csv.QUOTE_MINIMAL, "utf-8")  # the last record is a blank line, behind a quote inside of a field
@given(
    st.lists(st.lists(CELL, min_size=2, max_size=3), min_size=1, max_size=25),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.sampled_from(["utf-8", "utf-16", "utf-8-sig", "utf-32"]),
)
def test_segments_joined_are_the_file(rows: list[list[str]], end: str, quoting: Any, encoding: str) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=end, quoting=quoting).writerows([["name", "value", "more"], *rows])
    data = out.getvalue().encode(encoding)
    whole = parse_bytes(data, CSV)
    if whole.document is None:
        return
    parts = segments(data, CSV)
    assert cells(parts) == cells([whole])
    assert_places(parts, decode(data).text)
    plan = cut(data, CSV)
    assert (plan.columns, plan.records, plan.encoding) == (
        whole.document.metadata["columns"],
        whole.document.metadata["records"],
        whole.document.encoding,
    )


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from('a",\n\r; é'), max_size=300))
def test_any_text_has_the_cells_of_the_whole(text: str) -> None:
    data = text.encode()
    whole = parse_bytes(data, CSV)
    if whole.document is not None and data and "open_quote" not in whole.document.warnings:
        assert cells(segments(data, CSV)) == cells([whole])


def test_no_segment_begins_inside_a_quoted_record() -> None:
    data = b"id,note\n" + b"".join(b'%d,"first ""x"", \nsecond %d"\n' % (n, n) for n in range(500))
    plan = cut(data, CSV, segment_bytes=100)
    assert len(plan.segments) > 100
    assert all(data[segment.place.start :].split(b",")[0].isdigit() for segment in plan.segments[1:])
    assert [segment.row for segment in plan.segments[1:]] == [int(data[s.place.start :].split(b",")[0]) for s in plan.segments[1:]]


def test_segments_hold_a_bounded_number_of_records() -> None:
    plan = cut(b'{"n": 1}\n' * 1000, LINES, segment_bytes=1 << 20, segment_records=100)
    assert [segment.records for segment in plan.segments] == [100] * 10


def test_a_quote_that_is_never_closed_costs_its_line() -> None:
    text = "a,b\n" + "".join(f'{n},"x{n}"\n' for n in range(50)) + '50,"open\n' + "".join(f"{n},y\n" for n in range(51, 5000))
    for size in (1_000, 1 << 24):  # found by the length of the record, and at the end of the file
        plan = cut(text.encode(), CSV, segment_bytes=500, record_bytes=size)
        assert plan.open_quotes == [52]
        found = cells(segments(text.encode(), CSV, segment_bytes=500, record_bytes=size))
        assert [int(row[0]) for row in found] == list(range(5000))


def test_what_never_ends_is_refused() -> None:
    open_quotes = "a,b\n" + "".join('1,"x\n' + "2,y\n" * 300 for _ in range(21))
    for data, media_type in (("a,b\n" + "x" * 5000, CSV), ('{"a":"' + "x" * 5000, LINES), ("x" * 5000, LOG), (open_quotes, CSV)):
        with pytest.raises(InputError) as refused:
            cut(data.encode(), media_type, record_bytes=1000)
        assert refused.value.reject_class == "invalid_input"


@pytest.mark.parametrize(
    ("data", "media_type", "reject_class"),
    [
        (b"a,b\n" * 100 + bytes(range(32)) * 10_000, CSV, "unsupported_media_type"),
        (b"a,b\n" * 101, CSV, "too_many_records"),
        (b"{}\n" * 101, LINES, "too_many_records"),
        (("a,b\n" + "日本,1\n" * 50).encode("iso2022_jp"), CSV, "unsupported_media_type"),
    ],
    ids=["binary", "rows", "lines", "states"],
)
def test_refused_files_have_a_class(data: bytes, media_type: str, reject_class: str) -> None:
    with pytest.raises(InputError) as refused:
        cut(data, media_type, records=99)
    assert refused.value.reject_class == reject_class


def test_a_file_that_becomes_shorter_has_changed() -> None:
    with pytest.raises(InputError) as refused:
        plan_stream(lambda start, size: b"a,b\n1,2\n"[start : start + size], 100, CSV, records=9)
    assert refused.value.reject_class == "changed_while_read"


@pytest.mark.parametrize(("encoding", "found"), [("cp1252", "cp1252"), ("utf-16", "utf-16-le"), ("utf-8", "utf-8")])
def test_encodings(encoding: str, found: str) -> None:
    text = "name;größe\n" + "".join(f"Straße {n};{n},5 €\n" for n in range(200))
    data = text.encode(encoding)
    plan = cut(data, CSV)
    assert (plan.encoding, plan.columns) == (found, ["name", "größe"])
    assert_places(segments(data, CSV), decode_as(data, plan.encoding))


def test_bytes_that_are_no_utf8_cost_their_segment() -> None:
    data = "name,größe\n".encode() + b"".join(b"x%d,1\n" % n for n in range(100)) + b"\xff,2\n"
    parts = segments(data, CSV)
    assert [one.document.warnings for one in parts if one.document and one.document.warnings] == [["invalid_utf8"]]
    assert_places(parts, decode_as(data, "utf-8"))


def test_lines_of_json_keep_their_number() -> None:
    text = "".join(json.dumps({"n": n, "t": "é" * (n % 7)}, ensure_ascii=False) + "\n" * (1 + n % 2) for n in range(100)) + '{"n": tru'
    whole = parse_bytes(text, LINES)
    parts = segments(text.encode(), LINES)
    assert_places(parts, text)
    lines = [line for one in parts for block in one.blocks for line in block.text.split("\n") if line]
    assert lines == [block.text for block in whole.blocks]
    for block in (block for one in parts for block in one.blocks):
        number = json.loads(block.text.split("\n")[0])["n"] if not block.metadata.get("broken") else 100
        assert (block.locator.row or 0) == number + 1 or block.locator.pointer == f"/{number}"
    messages = [event.message for one in [*parts, whole] for event in one.events if event.name == "parse_error"]
    assert len(messages) == 2 and len(set(messages)) == 1


LOG_LINE = st.sampled_from(
    [
        "2026-01-01 10:00:00 INFO app: started",
        "  at com.example.Main(Main.java:1)",
        "Traceback (most recent call last):",
        "During handling of the above exception, another exception occurred:",
        "queue.Empty: é",
        '{"level": "info", "msg": "é"}',
        '127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /" 200 1',
        "ERROR something broke",
        "plain words",
        "",
        "key=value x",
        "Jan  2 03:04:05 host sshd[1]: é",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(LOG_LINE, min_size=1, max_size=60), st.sampled_from(["\n", "\r\n"]))
def test_events_of_a_log_are_those_of_the_whole(lines: list[str], end: str) -> None:
    text = end.join(lines)
    if not text:
        return
    whole = parse_bytes(text, LOG)
    parts = segments(text.encode(), LOG)
    assert [(b.locator, b.text, b.metadata) for one in parts for b in one.blocks] == [(b.locator, b.text, b.metadata) for b in whole.blocks]


def test_blocks_of_a_segment_are_named_by_their_file() -> None:
    plan = cut(b"a,b\n" + b"1,2\n" * 40, CSV)
    second = plan.segments[1]
    assert second.name() == f"rows {second.row + 1}-{second.row + second.records}"
    request = ParseRequest("rec", "h", f"x/data.csv!/{second.name()}", CSV, b"1,2\n", segment=replace(second))
    parsed = parse(request)
    assert parsed.document is not None and parsed.document.title == f"data.csv {second.name()}"
    assert parsed.blocks[0].metadata["columns"] == ["a", "b"]


# in the engine


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlainRun:
    monkeypatch.setattr("raydex.jobs.streams.SEGMENT_BYTES", 10_000)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "small.csv").write_text("a,b\n1,2\n")
    made = PlainRun(tmp_path / "files", tmp_path / "lake", list={"max_delete_share": 1}, run={"stream_bytes": 20_000})
    write(made, 1_000)
    return made


def write(run: PlainRun, rows: int, name: str = "data.csv", first: int = 0) -> bytes:
    data = b"id,note,more\n" + b"".join(b'%d,"note, of ""%d""\nsecond",abcdefgh\n' % (n, n) for n in range(first, rows))
    (run.folder / name).write_bytes(data)
    return data


def parts(run: PlainRun) -> list[dict[str, Any]]:
    return sorted((row for row in run.rows("records") if row["path"].startswith("data.csv!/")), key=lambda row: row["uri"])


def test_segments_are_members_that_lie_in_their_file(run: PlainRun) -> None:
    tally = run.run()
    assert tally.states == {"indexed": 2} and not tally.rejects
    head, found = run.record("data.csv"), parts(run)
    assert len(found) > 3 and {row["parent_id"] for row in found} == {head["record_id"]}
    (document,) = (row for row in run.rows("documents") if row["record_id"] == head["record_id"])
    assert json.loads(document["metadata"])["records"] == 1_000
    data = (run.folder / "data.csv").read_bytes()
    reader = Reader(run.lake, Generation(1, {}))
    store = ObjectStore(str(run.lake.objects))
    assert sum(len(store.get(row["cas_uri"])) for row in found) == len(data)
    assert {row["cas_uri"].partition("#")[0] for row in found} == {head["cas_uri"]}
    owners = {row["record_id"]: row for row in found}
    blocks = [row for row in run.rows("blocks") if row["record_id"] in owners]
    assert sum(len(json.loads(row["metadata"])["cells"]) for row in blocks) == 1_000
    text = data.decode()
    originals = Originals(reader)
    for row in blocks[:: len(blocks) // 9]:
        place = Locator.parse(row["locator"])
        assert place.slice_text(text) == row["text"] and originals.excerpt(owners[row["record_id"]], [place]) == row["text"]
        assert text[: place.char[0]].count("\n") + 1 == place.line[0] if place.char and place.line else False


def test_nothing_changed_is_nothing_to_do(run: PlainRun) -> None:
    run.run()
    assert run.plan().idle


def test_segments_follow_their_file(run: PlainRun) -> None:
    run.run()
    before = {row["record_id"] for row in parts(run)}
    write(run, 600)
    tally = run.run()
    after = parts(run)
    assert tally.states["indexed"] == 1 and {row["record_id"] for row in after} < before
    owners = {row["record_id"] for row in after}
    rows = [row for row in run.rows("blocks") if row["record_id"] in owners]
    assert sum(len(json.loads(row["metadata"])["cells"]) for row in rows) == 600
    assert {row["record_id"] for row in run.rows("chunks")} <= {row["record_id"] for row in run.rows("records")}
    (run.folder / "data.csv").unlink()
    run.run()
    assert [row["path"] for row in run.rows("records")] == ["small.csv"]


def test_equal_files_give_equal_rows(run: PlainRun, tmp_path: Path) -> None:
    run.run()
    again = PlainRun(run.folder, tmp_path / "other", run={"stream_bytes": 20_000})
    again.run()
    for table, key in (("records", "record_id"), ("blocks", "block_id"), ("chunks", "chunk_id")):
        ours, theirs = ({row[key]: row["content_hash"] for row in one.rows(table)} for one in (run, again))
        assert ours == theirs


def test_a_file_that_small_is_one_record(run: PlainRun) -> None:
    run.change(run={"stream_bytes": 100_000_000})
    run.run()
    assert not parts(run) and len(run.rows("records")) == 2


def test_another_chunk_size_parses_nothing(run: PlainRun) -> None:
    run.run()
    run.change(chunk={"max_tokens": 128})
    tally = run.run()
    assert tally.stages["parse"]["rows_in"] == 0 and tally.stages["chunk"]["rows_in"] == len(parts(run)) + 2


def test_without_originals_segments_are_read_from_the_source(run: PlainRun) -> None:
    run.change(objects={"keep_originals": False})
    run.run()
    found = parts(run)
    assert {row["state"] for row in found} == {"indexed"} and not any(row["cas_uri"] for row in found)
    assert not list(run.lake.objects.glob("cas/**/*.*")) and Reader(run.lake, Generation(1, {})).original(found[1]) is not None


def test_too_many_records_are_one_reject(run: PlainRun) -> None:
    run.change(limits={"records": 999})
    tally = run.run()
    assert tally.rejects == {"too_many_records": 1} and not parts(run)
    assert run.record("data.csv")["state"] == "rejected" and run.plan().idle


def test_size_limits_do_not_apply(run: PlainRun) -> None:
    run.change(limits={"input_bytes": 9_000, "blocks": 1, "text_bytes": 100})
    assert run.run().states == {"indexed": 2}


def test_a_file_that_changes_under_the_run_is_rejected(run: PlainRun) -> None:
    context, plan = run.context(), run.plan()
    rows = find_streams(plan.work, 20_000)
    write(run, 1_001, first=1)
    for keep in (True, False):
        context = replace(context, settings=context.settings.model_copy(update={"objects": ObjectSettings(keep_originals=keep)}))
        (made,) = CutWorker(context)(pa.Table.from_pylist(rows)).to_pylist()
        assert made["class"] == "changed_while_read"


def test_tickets_of_a_large_export_are_members(run: PlainRun) -> None:
    tickets = [{"key": f"OPS-{n}", "self": "x", "fields": {"summary": f"Pump {n}", "description": "d" * 300}} for n in range(60)]
    (run.folder / "export.jsonl").write_text("".join(json.dumps(ticket) + "\n" for ticket in tickets))
    run.run()
    found = [row for row in run.rows("records") if row["path"].endswith(".json")]
    assert len(found) == 60 and {row["state"] for row in found} == {"indexed"}
    assert len({row["parent_id"] for row in found}) > 1
    (run.folder / "export.jsonl").unlink()
    run.run()
    assert not [row for row in run.rows("records") if "export" in row["path"]]


def test_one_large_file_is_printed_piece_by_piece(run: PlainRun, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    large = parse_large(run.folder / "data.csv", run.settings)
    assert large is not None and not print_large(large, json=True)
    parsed = json.loads(capfdbinary.readouterr().out)
    rows = [row for child in parsed["children"] for block in child["blocks"] for row in block["metadata"]["cells"]]
    assert parsed["document"]["metadata"]["records"] == len(rows) == 1_000
    assert [row[0] for row in rows] == [str(n) for n in range(1_000)]
    assert parse_large(run.folder / "small.csv", run.settings) is None


# -- XML ---------------------------------------------------------------------------------------------------------------

XML = "application/xml"
WORDS = st.text(st.sampled_from("aé \n<&>x"), max_size=12)


def element(name: str, words: list[str], attribute: str) -> str:
    inner = "".join(f"<v n={quoteattr(attribute)}>{escape(word)}</v>\n" if word.strip() else "<w/>" for word in words)
    return f"<{name}>{inner}<!-- > --></{name}>"


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["book", "map", "x:k"]), st.lists(WORDS, max_size=3), WORDS), min_size=4, max_size=12))
def test_elements_below_the_root_are_those_of_the_whole_file(items: list[tuple[str, list[str], str]]) -> None:
    head = '<?xml version="1.0"?>\n<!-- é -->\n<cat xmlns:x="urn:x" a="1 &lt; 2">\r\n'
    data = (head + "\r\n".join(element(*item) for item in items) + "\n</cat>\n<!-- end -->").encode()
    whole = parse(ParseRequest("rec", "hash", "f.xml", XML, data))
    found = segments(data, XML, record_bytes=100_000)
    assert not any(event.name == "parse_error" for one in (whole, *found) for event in one.events)

    def shown(parsed: list[ParsedFile]) -> list[tuple[str, str, str]]:
        return [(block.text, str(replace(block.locator, table=None)), block.kind) for one in parsed for block in one.blocks]

    assert shown(found) == shown([whole])
    assert sum(segment.records for segment in cut(data, XML, record_bytes=100_000).segments) == len(items)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"<a>" + b"<b/>" * 40 + b"text<b/></a>", "text in the root"),
        (b"<a>" + b"<b/>" * 40 + b"</c></a>", "mismatched"),
        (b"<a><b>" + b"<c/>" * 100 + b"</b></a>", "one element"),
        (b"<a>" + b"<b/>" * 40 + b"<b>" + b"x" * 900 + b"</b></a>", "one element takes more than 500"),
        (b"<a>" + b"".join(b"<b%d/>" % n for n in range(1_100)) + b"</a>", "different names"),
        (b'<!DOCTYPE a [<!ENTITY x "y">]><a>' + b"<b/>" * 40 + b"</a>", "document type"),
    ],
    ids=["mixed", "broken", "single", "long", "names", "doctype"],
)
def test_xml_that_cannot_be_cut_is_read_whole(data: bytes, why: str) -> None:
    with pytest.raises(NotCut, match=why):
        cut(data, XML, record_bytes=500)


def test_which_xml_may_be_cut() -> None:
    assert may_be_cut(b'<?xml version="1.0" encoding="utf-8"?><a><b>')
    for head in (
        b"\xef\xbb\xbf<a>",
        "<a>é</a>".encode("utf-16"),
        b'<?xml version="1.0" encoding="latin-1"?><a>\xe9</a>',
        b"<!DOCTYPE a><a>",
    ):
        assert not may_be_cut(head)


def test_large_xml_in_a_run(tmp_path: Path) -> None:
    run = PlainRun(tmp_path / "files", tmp_path / "lake", run={"stream_bytes": 20_000})
    run.folder.mkdir()
    books = "".join(f"<book><title>Title {n}</title><text>{'word ' * 12}</text></book>" for n in range(30_000))
    (run.folder / "books.xml").write_text(f"<catalog>{books}</catalog>")
    (run.folder / "mixed.xml").write_text(f"<a>text {'<b>word</b> ' * 3_000}</a>")
    assert run.run().states == {"indexed": 2}
    paths = [row["path"] for row in run.rows("records")]
    assert sum(path.startswith("books.xml!/elements ") for path in paths) > 1 and not any(path.startswith("mixed.xml!") for path in paths)
    (last,) = [row for row in run.rows("blocks") if "Title 29999" in row["text"]]
    assert last["locator"].startswith("xpath=/catalog/book[30000]") or "book%5B30000%5D" in last["locator"]
    assert run.plan().idle
