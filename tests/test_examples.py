"""The example corpus parses to what the quickstart promises: every file has its kind, the question its answer, the call path its hops."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from raydex.ir.ids import record_id
from raydex.ir.rows import Stamp
from raydex.jobs.isolation import ParseChild, ParseReply
from raydex.jobs.sources import hash_files, list_source, open_source, read_uri
from raydex.kernels.detect import detect_media_type
from raydex.kernels.request import ParseRequest

EXAMPLES = Path(__file__).parents[1] / "examples"
CORPUS = EXAMPLES / "corpus"
PARSED = {".md": "text/markdown", ".html": "text/html", ".txt": "text/plain", ".pdf": "application/pdf"}
CODE = {".py": "text/x-python", ".ts": "text/x-typescript", ".tsx": "text/x-tsx"}
PATH_OF_CALLS = (
    ("service/velodock/http/routes.py", "post_reservation", "reserve_bike", "velodock.reservations"),
    ("service/velodock/reservations.py", "reserve_bike", "hold_bike", "velodock.docks"),
    ("service/velodock/docks.py", "hold_bike", "record_event", "velodock.events"),
)


@pytest.fixture(scope="module")
def replies() -> Iterator[dict[str, ParseReply]]:
    source = open_source(str(CORPUS), name="velodock")
    items = []
    for listed, digest in hash_files(list_source(source)):
        assert isinstance(digest, str), digest
        data = read_uri(listed.uri)
        identity = record_id(source.workspace, source.name, listed.path)
        media_type = detect_media_type(data[:65536], listed.path)
        request = ParseRequest(identity, digest, listed.path, media_type, data, source.workspace, source.name)
        items.append((request, Stamp(identity, digest, "fp", "run", 1, datetime(2026, 1, 1, tzinfo=UTC))))
    with ParseChild() as child:
        yield {request.path: reply for (request, _), reply in zip(items, child.parse_many(items), strict=True)}


def rows(reply: ParseReply, table: str) -> list[dict[str, Any]]:
    return reply.tables[table].to_pylist() if table in reply.tables else []


def test_the_corpus_is_small_and_whole(replies: dict[str, ParseReply]) -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert len(replies) == len(files) and 25 <= len(files) <= 45
    assert sum(path.stat().st_size for path in files) < 400_000


def test_every_file_ends_in_its_state(replies: dict[str, ParseReply]) -> None:
    for path, reply in replies.items():
        suffix = Path(path).suffix
        if path == "broken/cut_off.pdf" or suffix in (".json", ".csv"):
            (reject,) = rows(reply, "rejects")
            assert reject["class"] == ("invalid_input" if suffix == ".pdf" else "unsupported_media_type"), path
            assert not rows(reply, "documents")
            continue
        assert not rows(reply, "rejects"), path
        (document,) = rows(reply, "documents")
        assert document["media_type"] == {**PARSED, **CODE}[suffix], path
        assert document["warnings"] == (["parse_error"] if path == "broken/half_written.py" else []), path
        assert len(rows(reply, "blocks")) == document["block_count"] > 0 or path.endswith("__init__.py")
        assert bool(rows(reply, "symbols")) == (suffix in CODE), path


def test_titles_and_pages(replies: dict[str, ParseReply]) -> None:
    titles = {path: rows(reply, "documents")[0]["title"] for path, reply in replies.items() if rows(reply, "documents")}
    assert "Reservations" in titles["docs/design/reservations.html"]
    assert titles["docs/handbook/field-guide.md"] == "Field guide for the crew"
    assert titles["docs/reports/winter-batteries.pdf"] == "Batteries in winter"
    report = replies["docs/reports/winter-batteries.pdf"]
    assert [page["text_state"] for page in rows(report, "pages")] == ["native"] * 3
    headings = [block["text"] for block in rows(report, "blocks") if block["kind"] == "heading"]
    assert {"Summary", "How it was measured", "Results", "Range", "Failed rides", "What the crew does"} <= set(headings)
    assert not any("page 2 of 3" in block["text"] for block in rows(report, "blocks")), "the running foot is no content"


def test_the_navigation_of_the_pages_is_left_out(replies: dict[str, ParseReply]) -> None:
    text = "\n".join(block["text"] for block in rows(replies["docs/design/reservations.html"], "blocks"))
    assert "When a hold ends" in text and "POST /stations/harbour/reservations" in text
    assert "analytics" not in text and "all pages" not in text


def test_the_question_has_its_answer_in_one_page_and_one_function(replies: dict[str, ParseReply]) -> None:
    assert "How long is a reserved bike kept" in (EXAMPLES / "README.md").read_text()
    answers = [
        (path, block["section_path"][-1])
        for path, reply in replies.items()
        for block in rows(reply, "blocks")
        if "kept for twelve minutes" in block["text"] and "release_expired" in block["text"]
    ]
    assert answers == [("docs/design/reservations.html", "When a hold ends")]
    symbols = [
        (path, row) for path, reply in replies.items() for row in rows(reply, "symbols") if row["qualified_name"] == "release_expired"
    ]
    ((path, symbol),) = symbols
    assert path == "service/velodock/reservations.py" and symbol["kind"] == "function"
    assert "twelve minutes after it was reserved" in symbol["docstring"]


def test_the_call_path_has_its_hops(replies: dict[str, ParseReply]) -> None:
    for path, caller, callee, module in PATH_OF_CALLS:
        reply = replies[path]
        source = next(row["symbol_id"] for row in rows(reply, "symbols") if row["qualified_name"] == caller)
        calls = [row for row in rows(reply, "code_edges") if row["relation"] == "CALLS" and row["source"] == source]
        candidates = {name for row in calls if row["expression"] == callee for name in row["candidates"]}
        assert any(name.endswith(f"{module}:{callee}") for name in candidates), (caller, callee, candidates)


def test_the_good_function_of_the_broken_file_is_kept(replies: dict[str, ParseReply]) -> None:
    names = [row["qualified_name"] for row in rows(replies["broken/half_written.py"], "symbols")]
    assert "count_silent" in names


def test_the_pdf_files_come_from_their_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("reportlab")
    spec = importlib.util.spec_from_file_location("make_pdf", EXAMPLES / "make_pdf.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "CORPUS", tmp_path)
    (tmp_path / "broken").mkdir()
    script.main()
    for name in ("docs/reports/winter-batteries.pdf", "broken/cut_off.pdf"):
        assert (tmp_path / name).read_bytes() == (CORPUS / name).read_bytes(), f"run examples/make_pdf.py: {name} differs"


def test_no_real_host_is_named() -> None:
    for path in CORPUS.rglob("*"):
        if path.is_file():
            hosts = re.findall(rb"https?://([^/\s\"':)>]+)", path.read_bytes())
            assert {
                host for host in hosts if not host.endswith(b"example.org") and host not in (b"localhost", b"www.reportlab.com")
            } == set(), path
