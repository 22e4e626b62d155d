"""Every format through the whole job, some files of it broken: indexed on Ray, read, projected, loaded, proved, and found again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_files import compound_file, message
from golden_files import samples
from test_observe import scan
from test_project_mail import FILES

from raydex.ir.errors import ConfigError
from raydex.ir.ids import person_id, ticket_id
from raydex.ir.locator import Locator
from raydex.jobs.edges import list_edges
from raydex.jobs.paths import find_path
from raydex.jobs.reading import open_reader
from raydex.jobs.search import exact, search
from raydex.jobs.show import show
from raydex.jobs.source_types import SOURCE_TYPES, source_types
from raydex.jobs.status import lake_status
from raydex.jobs.verify import verify
from raydex.kernels.parse import IMAGE_TYPES, PARSERS, PLAIN_TYPES

PAGE = (
    "From: Ann <ann@x.org>\nTo: boss@x.org\nSubject: Weekly\nContent-Type: text/html; charset=utf-8\n"
    "Content-Transfer-Encoding: quoted-printable\n\n<h1>Stand =C3=BC</h1><p>The pump runs.</p>"
)


def outlook() -> bytes:
    inner = message({0x0037: "Inner", 0x1000: "Inner words", 0x0C1F: "bo@x.org"}, header=24)
    return compound_file(message({0x0037: "Outer", 0x1013: "<h1>Outer</h1>"}, attachments=[({0x3701: inner}, {0x3705: 5})]))


BROKEN = {
    "broken/cut.pdf": b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog",
    "broken/locked.docx": bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600),
    "broken/cut.png": b"\x89PNG\r\n\x1a\n" + bytes(20),
    "broken/noise.bin": bytes(range(256)) * 4,
}


# a neighbour of each is there
UNSEEN = {
    "application/x-tar",
    "application/x-bzip2",
    "application/x-xz",
    "application/vnd.ms-excel",
    "text/x-tsx",
    *IMAGE_TYPES,
    *PLAIN_TYPES[1:],
    "image/svg+xml",
}


def large_table() -> bytes:
    """A table of more records than one segment takes, with line breaks inside of them."""
    lines = [f'{number % 7},"a\nb"' for number in range(1, 26_000)]
    return "\n".join(["n,note", *lines, '9,"last\nreading"', ""]).encode()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, plant_settings: Any) -> Iterator[Path]:
    from raydex.cluster.ray_session import ray_session
    from raydex.cluster.spark import keep_spark
    from raydex.jobs.index import IndexRequest, index

    folder = tmp_path_factory.mktemp("post")
    for name, data in {
        **FILES,
        **{f"all/{one.name}": one.data for one in samples()},
        **BROKEN,
        "scans/mixed.pdf": scan("Native text of page one.", "*Pump house open"),
        "rows.csv": large_table(),
        "page.html": b"<h1>Valves</h1><p>They are oiled in spring.</p>",
        "mail/page.eml": PAGE.encode(),
        "mail/outer.msg": outlook(),
        "deck.log": b"2024-01-01 10:00:00 ok\n",
    }.items():
        path = folder / "post" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    settings = plant_settings.model_copy(
        update={"run": plant_settings.run.model_copy(update={"stream_bytes": 100_000, "epoch_records": 40})}
    )
    with ray_session(), keep_spark(tmp_path_factory.mktemp("spark")):
        index(IndexRequest(specs=(str(folder / "post"),), lake=str(folder / "lake"), settings=settings, progress=False))
    yield folder / "lake"


def test_every_parser_has_a_source_type() -> None:
    named = {media_type for types in SOURCE_TYPES.values() for media_type in types}
    assert set(PARSERS) <= named
    assert source_types("tickets") == source_types("ticket") and source_types("text/html") == ("text/html",)
    with pytest.raises(ConfigError, match="podcast"):
        source_types("podcast")


@pytest.mark.slow
def test_every_file_is_accounted_for(lake: Path) -> None:
    reader = open_reader(lake)
    rows = reader.rows("records", columns=["path", "state", "reject_class", "parent_id", "media_type", "missing"]).to_pylist()
    files = {row["path"]: row for row in rows if not row["parent_id"]}
    folder = lake.parent / "post"
    assert set(files) == {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {path: files[path]["reject_class"] for path in files if files[path]["state"] == "rejected"} == {
        "broken/cut.pdf": "invalid_input",
        "broken/locked.docx": "unsupported_media_type",
        "broken/cut.png": "invalid_input",
        "broken/noise.bin": "unsupported_media_type",
    }
    assert {path: row["missing"] for path, row in files.items() if row["state"] == "degraded"} == {}
    for one in samples():
        row = files[f"all/{one.name}"]
        assert (row["state"], row["media_type"]) == ("indexed", one.media_type), one.name
    assert set(PARSERS) - {row["media_type"] for row in rows} <= UNSEEN


@pytest.mark.slow
def test_only_pages_without_text_are_read(lake: Path) -> None:
    reader = open_reader(lake)
    paths = dict(zip(*(reader.rows("records", columns=["record_id", "path"]).column(name).to_pylist() for name in ("record_id", "path"))))
    pages = [
        row for row in reader.rows("pages", columns=["record_id", "number", "text_state"]).to_pylist() if row["text_state"] != "native"
    ]
    assert [(paths[row["record_id"]], row["number"], row["text_state"]) for row in pages] == [("scans/mixed.pdf", 2, "ocr")]
    seen = reader.rows("observations", columns=["record_id", "kind", "status", "locator"]).to_pylist()
    assert {(row["locator"][:6], row["status"]) for row in seen if paths[row["record_id"]] == "scans/mixed.pdf"} == {("page=2", "ok")}
    assert {row["status"] for row in seen if row["kind"] == "caption"} == {"unavailable"}
    status = lake_status(lake)
    assert status["backlog"]["caption"] == status["observations"]["caption"]["unavailable"] > 0
    assert {stage: count for stage, count in status["backlog"].items() if stage != "caption"} == {"parse": 0, "observe": 0, "embed": 0}
    assert "scans/mixed.pdf" in {hit["path"] for hit in search(lake, "pump house open", 3, "pages")["hits"]}


@pytest.mark.slow
def test_a_large_table_is_read_in_segments(lake: Path) -> None:
    reader = open_reader(lake)
    rows = reader.rows("records", columns=["record_id", "path", "parent_id", "state", "cas_uri"]).to_pylist()
    whole = next(row for row in rows if row["path"] == "rows.csv")
    segments = [row for row in rows if row["parent_id"] == whole["record_id"]]
    assert len(segments) > 1 and {row["state"] for row in segments} == {"indexed"}
    assert all(row["cas_uri"].startswith(whole["cas_uri"]) for row in segments)
    last = [
        block for block in reader.rows("blocks", columns=["record_id", "text", "locator"]).to_pylist() if "last\nreading" in block["text"]
    ]
    assert len(last) == 1 and last[0]["record_id"] in {row["record_id"] for row in segments}
    place = Locator.parse(last[0]["locator"])
    assert place.line is not None and place.line[1] == 52_001  # of the whole file
    shown = show(lake, next(row["record_id"] for row in segments if row["record_id"] == last[0]["record_id"]))
    assert "last\\nreading" in json.dumps(shown, default=str)


@pytest.mark.slow
def test_the_lake_is_what_it_claims(lake: Path) -> None:
    result = verify(lake)
    assert result["ok"], [check for check in result["checks"] if not check["ok"]]


@pytest.mark.slow
def test_excerpts_of_mails_are_looked_at(lake: Path) -> None:
    reader = open_reader(lake)
    places = {(row["path"], row["locator"]) for row in reader.rows("evidence", columns=["path", "locator"]).to_pylist()}
    assert ("mail/page.eml", "part=1;char=0-16") in places
    assert ("mail/outer.msg!/Inner.msg", "field=from;char=0-8") in places
    shown = show(lake, person_id("bo@x.org"))
    assert (shown["row"]["kind"], shown["row"]["name"]) == ("person", "bo@x.org")


@pytest.mark.slow
def test_a_path_joins_people_by_their_mails(lake: Path) -> None:
    found = find_path(lake, "Boss@X.org", "ann@x.org", 3)
    assert found["paths"] and not found["directed"]
    assert {step["relation"] for path in found["paths"] for step in path["edges"]} <= {"SENT", "RECEIVED", "CC"}
    for path in found["paths"]:
        for step in path["edges"]:
            assert all(item["intact"] and "@" in item["excerpt"] for item in step["evidence"])
    answer = find_path(lake, "mail/2.eml", "mail/1.eml", 2)
    assert answer["paths"][0]["edges"][0]["relation"] == "REPLY_TO"
    edge = next(row for row in list_edges(lake, "SENT", None) if row["target_path"] == "mail/2.eml")
    seen = show(lake, edge["edge_id"])
    assert (seen["source"]["qualified_name"], seen["evidence"][0]["excerpt"]) == ("ann@x.org", "ann@X.org")
    assert find_path(lake, "mail/4.eml", "mail/4.eml!/plan.md", 2)["paths"][0]["edges"][0]["relation"] == "CONTAINS"
    ticket = show(lake, ticket_id("jira.example.org", "OPS-1"))
    assert (ticket["row"]["kind"], json.loads(ticket["source_text"])["key"]) == ("ticket", "OPS-1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "query", "path"),
    [
        ("tickets", "the pump stops", "OPS-1.json"),
        ("mail", "the pump runs", "mail/page.eml"),
        ("pages", "plan", "mail/4.eml!/plan.md"),
        ("logs", "ok", "deck.log"),
        ("archives", "readme", "pack.zip"),
    ],
)
def test_search_by_kind_of_source(lake: Path, name: str, query: str, path: str) -> None:
    import numpy as np

    hits = search(lake, query, 200, name)["hits"]
    assert path in {hit["path"] for hit in hits}
    reader = open_reader(lake)
    vector = np.ones(reader.generation.cursors["vectors"]["dimension"], np.float32)
    assert {key for key, _ in exact(reader, vector, 200, source_types(name))} == {hit["chunk_id"] for hit in hits}
