"""The example corpus parses to what the quickstart promises: every file has its kind, the question its answer, the call path its hops."""

from __future__ import annotations

import importlib.util
import io
import re
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from raydex.configs.settings import load_settings
from raydex.ir.ids import record_id
from raydex.ir.rows import Stamp
from raydex.jobs.isolation import ParseChild, ParseReply
from raydex.jobs.sources import hash_files, list_source, open_source, read_uri
from raydex.jobs.tour import ELSEWHERE, QUESTION, ROOT
from raydex.kernels.detect import detect_media_type
from raydex.kernels.request import ParseRequest

EXAMPLES = Path(__file__).parents[1] / "examples"
CORPUS = EXAMPLES / "corpus"
OFFICE = "application/vnd.openxmlformats-officedocument"
PARSED = {
    ".md": "text/markdown",
    ".html": "text/html",
    ".txt": "text/plain",
    ".pdf": "application/pdf",
    ".docx": f"{OFFICE}.wordprocessingml.document",
    ".pptx": f"{OFFICE}.presentationml.presentation",
    ".xlsx": f"{OFFICE}.spreadsheetml.sheet",
    ".eml": "message/rfc822",
    ".json": "application/json",
    ".yaml": "application/yaml",
    ".csv": "text/csv",
    ".log": "text/x-log",
    ".zip": "application/zip",
    ".png": "image/png",
}
# they have no text before OCR
SCAN, CHART = "docs/reports/workshop-order-47.pdf", "docs/reports/holds-by-hour.png"
CODE = {".py": "text/x-python", ".ts": "text/x-typescript", ".tsx": "text/x-tsx"}
MADE = (
    SCAN,
    CHART,
    "docs/handbook/lost-bikes.docx",
    "docs/slides/season-2031.pptx",
    "data/van-log.xlsx",
    "mail/offer-latches.eml",
    "data/controllers-february.zip",
)
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
    assert len(replies) == len(files) and 45 <= len(files) <= 60
    assert sum(path.stat().st_size for path in files) < 400_000


def test_every_file_ends_in_its_state(replies: dict[str, ParseReply]) -> None:
    assert {Path(path).suffix for path in replies} == {*PARSED, *CODE}
    for path, reply in replies.items():
        suffix = Path(path).suffix
        if path == "broken/cut_off.pdf":
            (reject,) = rows(reply, "rejects")
            assert reject["class"] == "invalid_input"
            assert not rows(reply, "documents")
            continue
        assert not rows(reply, "rejects"), path
        (document,) = rows(reply, "documents")
        assert document["media_type"] == {**PARSED, **CODE}[suffix], path
        expected = {"broken/half_written.py": ["parse_error"], SCAN: ["no_text_layer"]}
        assert document["warnings"] == expected.get(path, []), path
        assert document["text_state"] == ("unavailable" if path in (SCAN, CHART) else "native"), path
        assert len(rows(reply, "blocks")) == document["block_count"] > 0 or path.endswith("__init__.py") or path == SCAN
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


def blocks(replies: dict[str, ParseReply], path: str) -> list[dict[str, Any]]:
    return rows(replies[path], "blocks")


def texts(replies: dict[str, ParseReply], path: str) -> str:
    return "\n".join(block["text"] for block in blocks(replies, path))


def test_the_tour_asks_what_only_one_file_answers(replies: dict[str, ParseReply]) -> None:
    """The scanned page has its answer in its picture alone; the attachment lies in the mail."""
    answers = {
        "docs/slides/season-2031.pptx": "Wet saddles at stations without a roof",
        "data/van-log.xlsx": "Sum |  | 142 | 60",
        "tickets/DOCK-152.json": "the client adds the extension to its own clock",
    }
    assert len(ELSEWHERE) == len(answers) + 2 and QUESTION not in ELSEWHERE
    for path, answer in answers.items():
        assert [name for name in replies if answer in texts(replies, name)] == [path]
    assert not blocks(replies, SCAN)
    assert not any("newton metres" in texts(replies, path) or "74 euros" in texts(replies, path) for path in replies)


def test_the_procedure_is_as_its_last_reviewer_left_it(replies: dict[str, ParseReply]) -> None:
    text = texts(replies, "docs/handbook/lost-bikes.docx")
    assert "thirty hours" in text and "three days" not in text
    kinds = [block["kind"] for block in blocks(replies, "docs/handbook/lost-bikes.docx")]
    assert {"heading", "paragraph", "table", "note", "list_item"} == set(kinds)


def test_the_deck_is_read_in_the_order_of_its_columns(replies: dict[str, ParseReply]) -> None:
    found = blocks(replies, "docs/slides/season-2031.pptx")
    order = [
        "What went well",
        "No night without",
        "What riders",
        "Holds that",
        "Say that the roof",
        "Spring",
        "Summer",
        "Autumn",
        "Work | Budget",
    ]
    text = "\n".join(block["text"] for block in found)
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert [block["kind"] for block in found if block["kind"] in ("note", "table", "image")] == ["note", "table", "image"]
    (asset,) = rows(replies["docs/slides/season-2031.pptx"], "assets")
    assert asset["alt"] == "Sign for the stations" and asset["media_type"] == "image/jpeg"


def test_the_workbook_gives_dates_results_and_its_hidden_sheet(replies: dict[str, ParseReply]) -> None:
    found = blocks(replies, "data/van-log.xlsx")
    text = texts(replies, "data/van-log.xlsx")
    assert "2031-10-06 | van 1 | 31 | 14" in text and "Both | 15" in text and "Tours of the vans, week 41" in text
    hidden = [block["locator"] for block in found if '"sheet_state":"hidden"' in block["metadata"].replace(" ", "")]
    assert hidden and all(place.startswith("sheet=Rota;cells=") for place in hidden)


def test_the_mail_has_an_attachment_and_a_picture(replies: dict[str, ParseReply]) -> None:
    reply = replies["mail/offer-latches.eml"]
    (asset,) = rows(reply, "assets")
    assert asset["href"] == "cid:sign" and asset["media_type"] == "image/jpeg"
    (attachment,) = orjson.loads(rows(reply, "documents")[0]["metadata"])["attachments"]
    assert (attachment["name"], attachment["media_type"]) == ("offer-2031-118.pdf", "application/pdf")
    marks = [block["metadata"] for block in rows(reply, "blocks")]
    assert sum('"quote"' in mark for mark in marks) == 1 and sum('"signature"' in mark for mark in marks) == 1


def test_the_ticket_has_all_its_sections(replies: dict[str, ParseReply]) -> None:
    (issue,) = rows(replies["tickets/DOCK-152.json"], "issues")
    assert issue["site"] == "velodock.example.org" and len(issue["comments"]) == 2 and len(issue["changelog"]) == 3
    assert issue["worklogs"][0]["seconds"] == 7200 and len(issue["remote_links"]) == 1
    assert not [event for event in rows(replies["tickets/DOCK-152.json"], "events") if event["status"] != "ok"]


def test_wiki_settings_log_and_archive(replies: dict[str, ParseReply]) -> None:
    wiki = replies["wiki/storing-batteries.json"]
    assert rows(wiki, "documents")[0]["parser"] == "confluence" and "sand box" in texts(replies, "wiki/storing-batteries.json")
    assert "silent_station_minutes: 20" in texts(replies, "service/deploy.yaml")
    (failure,) = [block["text"] for block in blocks(replies, "logs/velodock.log") if "ERROR" in block["text"]]
    assert failure.endswith("NotFound: there is no station fishmarkt") and failure.count("\n") == 10
    assert texts(replies, "data/controllers-february.zip") == "read-me.txt\nclocks/february.csv"


def load_script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def written(script: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    monkeypatch.setattr(script, "CORPUS", folder)
    (folder / "broken").mkdir(parents=True)
    script.main()
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_pdf_files_come_from_their_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("reportlab")
    made = written(load_script("make_pdf"), tmp_path / "one", monkeypatch)
    assert set(made) == {"docs/reports/winter-batteries.pdf", "broken/cut_off.pdf"}
    for name, data in made.items():
        assert data == (CORPUS / name).read_bytes(), f"run examples/make_pdf.py: {name} differs"


def content(name: str, data: bytes) -> Any:
    """What a file holds, whatever library compressed it: members of archives, pixels of the picture, else the bytes."""
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return [(info.filename, info.date_time, archive.read(info)) for info in archive.infolist()]
    if name.endswith(".png"):
        from PIL import Image

        return Image.open(io.BytesIO(data)).convert("RGB").tobytes()
    return data


def test_the_other_files_come_from_their_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("reportlab", "docx", "pptx", "xlsxwriter"):
        pytest.importorskip(package)
    script = load_script("make_corpus")
    first, second = (written(script, tmp_path / name, monkeypatch) for name in ("one", "two"))
    assert first == second, "the same bytes come out on every run"
    assert set(first) == set(MADE)
    for name, data in first.items():
        assert content(name, data) == content(name, (CORPUS / name).read_bytes()), f"run examples/make_corpus.py: {name} differs"


def test_the_quickstart_fits_on_two_cpus() -> None:
    stages = load_settings(ROOT / "configs" / "quickstart.yaml").stages
    assert sum(getattr(stages, name).cpus for name in type(stages).model_fields if name != "caption") <= 2


def test_no_real_host_is_named() -> None:
    for path in CORPUS.rglob("*"):
        if path.is_file():
            hosts = re.findall(rb"https?://([^/\s\"':)>]+)", path.read_bytes())
            assert {
                host for host in hosts if not host.endswith(b"example.org") and host not in (b"localhost", b"www.reportlab.com")
            } == set(), path
