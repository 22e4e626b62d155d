"""The hostile set in the real parser processes: each file has the outcome that is right, its neighbours are complete, and nothing outside
of the process is reached (reliability Z1 to Z14)."""

from __future__ import annotations

import http.server
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hostile_files import ROWS, Hostile, World, hostile_set, write_hostile_set
from hostile_text import PLAIN

from raydex.ir.ids import content_hash, make_id
from raydex.ir.printed import plain_rows
from raydex.ir.rows import Stamp
from raydex.jobs.isolation import ParseChild
from raydex.jobs.member_rows import Families, Row
from raydex.kernels.detect import detect_media_type
from raydex.kernels.limits import Limits
from raydex.kernels.request import OUTERMOST, ParseRequest
from tests.stage_runs import PlainRun

pytestmark = pytest.mark.xdist_group("hostile")  # the set is parsed once, in one worker
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FILES = {f"{one.row}-{re.sub(r'[^A-Za-z0-9.-]+', '_', one.name)}": one for one in hostile_set()}


@dataclass
class Outcome:
    """What a file or a member became: its reject class, its rows by table."""

    reject: str
    rows: dict[str, list[dict[str, Any]]]

    def names(self) -> tuple[list[str], list[str]]:
        """(warnings of the document, names of the events that are none of them)."""
        warnings = self.rows["documents"][0]["warnings"] if "documents" in self.rows else []
        events = {event["name"] for event in self.rows.get("events", [])} - {*warnings, self.reject}
        return sorted(warnings), sorted(events)


Outcomes = dict[str, Outcome]  # by path below the file, which is the empty one


class SetRun:
    """The set through one child, all files of one depth together."""

    def __init__(self, child: ParseChild, world: World) -> None:
        self.child = child
        self.world = world
        self.kept: dict[str, bytes] = {}
        self.found: dict[str, Outcomes] = {}
        child.keep = self._keep

    def run(self, files: list[Hostile]) -> dict[str, Outcomes]:
        families = Families(Limits(), kept=True)
        rows: list[Row] = [{"record_id": make_id("rec", one.name), "path": one.name, "file": one} for one in files]
        while rows:
            members: list[Row] = []
            read = [row for row in rows if not row.get("reject_class")]
            for row, reply in zip(read, self.child.parse_many(self._request(row) for row in read), strict=True):
                tables = {name: plain_rows(name, table) for name, table in reply.tables.items()}
                self._settle(row, Outcome(tables["rejects"][0]["class"] if "rejects" in tables else "", tables))
                members += families.members_of(row, reply.parts)
            for row in members:
                if row["reject_class"]:
                    self._settle(row, Outcome(row["reject_class"], {"rejects": [row]}))
            rows = members
        return self.found

    def _keep(self, data: bytes) -> str:
        self.kept[uri := content_hash(data)] = data
        return uri

    def _request(self, row: Row) -> tuple[ParseRequest, Stamp]:
        if "held" in row:
            data = self.kept[row["held"]]
        else:
            data = row["file"].data(self.world)
            row |= {"media_type": detect_media_type(data[:65_536], row["path"]), "content_hash": content_hash(data)}
        names = [row[name] for name in ("record_id", "content_hash", "path", "media_type")]
        around = {"nesting": row.get("nesting", OUTERMOST), "inside": row.get("inside", "")}
        return ParseRequest(*names, data, **around), Stamp(row["record_id"], row["content_hash"], "fp", "run", 1, NOW)

    def _settle(self, row: Row, outcome: Outcome) -> None:
        """Members of one path are numbered."""
        outcomes = self.found.setdefault(row["file"].name, {})
        path = shown = row["path"].removeprefix(row["file"].name).removeprefix("!/")
        count = Counter(known.partition("#")[0] for known in outcomes)[path]
        if count:
            shown = f"{path}#{count + 1}"
        outcomes[shown] = outcome


class Listener(http.server.BaseHTTPRequestHandler):
    """Notes who comes, and sends everybody on."""

    hits: list[str] = []

    def do_GET(self) -> None:
        self.hits.append(self.path)
        self.send_response(302)
        self.send_header("Location", f"/again{self.path}")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def world(folder: Path) -> Iterator[World]:
    """A file outside that may not be read, and a server that nobody may ask."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    outside = folder / "outside.txt"
    outside.write_text(World.canary)
    yield World(f"http://127.0.0.1:{server.server_port}", str(outside))
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def outcomes(folder: Path, world: World) -> Iterator[dict[str, Outcomes]]:
    """The whole set, parsed; afterwards nobody has come, no file is left or changed, and the child has printed no secret."""
    temporary = folder / "temporary"
    temporary.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        patch.setattr(tempfile, "tempdir", str(temporary))
        with ParseChild() as child:
            found = SetRun(child, world).run(hostile_set())
            assert child._nursery is not None
            printed = bytes(child._nursery.tail)
    yield found
    assert Listener.hits == []
    assert world.secret.encode() not in printed and world.canary.encode() not in printed
    assert sorted(path.name for path in folder.rglob("*")) == ["outside.txt", "temporary"]
    assert (folder / "outside.txt").read_text() == World.canary


@pytest.mark.parametrize("key", FILES)
def test_outcome(outcomes: dict[str, Outcomes], world: World, key: str) -> None:
    one = FILES[key]
    found, expected = outcomes[one.name], one.expected
    own = found[""]
    text = str([outcome.rows for outcome in found.values()])
    assert (own.reject, len(own.rows.get("blocks", []))) == (expected.reject, expected.blocks)
    assert own.names() == (sorted(expected.warnings), sorted(expected.events))
    assert {path: outcome.reject for path, outcome in found.items() if path} == expected.members
    for part in expected.shows:
        assert part.replace("@URL", world.url) in "\n".join(_texts(own)), part
    for part in (*expected.hides, world.canary):
        assert part not in text, part


def _texts(outcome: Outcome) -> Iterator[str]:
    """All texts of blocks, addresses of links and assets."""
    for block in outcome.rows.get("blocks", []):
        yield block["text"]
        yield from (link["href"] for link in block["links"])
        yield str(block["metadata"])
    yield from (asset["href"] for asset in outcome.rows.get("assets", []))


@pytest.mark.parametrize("row", ROWS)
def test_every_row_has_four_files(row: str) -> None:
    assert sum(one.row == row for one in hostile_set()) >= 4


def test_no_error_quotes_a_document(outcomes: dict[str, Outcomes], world: World) -> None:
    told = [
        row
        for found in outcomes.values()
        for outcome in found.values()
        for name in ("events", "rejects")
        for row in outcome.rows.get(name, [])
    ]
    assert told and world.secret not in str(told)


def test_names_that_speak_to_a_store_are_names(tmp_path: Path) -> None:
    """Delta's predicates take ids and paths as values: each file is found, changed and deleted by itself."""
    named = [one for one in hostile_set() if one.row == "Z13"]
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "beside.txt").write_text("Beside.\n")
    for one in named:
        (tmp_path / "files" / one.name).write_bytes(one.data(World()))
    run = PlainRun(tmp_path / "files", tmp_path / "lake", list={"max_delete_share": 1})
    run.run()
    names = {"beside.txt", *(one.name for one in named)}
    assert {row["path"] for row in run.rows("records")} == names
    for one in named:
        record = run.record(one.name)["record_id"]
        (tmp_path / "files" / one.name).unlink()
        assert run.plan().deleted == [record]
        run.run()
        names.remove(one.name)
        assert {row["path"] for row in run.rows("records")} == names
        assert record not in {row["record_id"] for row in run.rows("chunks")}
    assert not list(tmp_path.rglob("pwned*"))


def test_formulas_stand_in_delta_as_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for one in hostile_set():
        if one.row == "Z10":
            (tmp_path / "files" / one.name).write_bytes(one.data(World()))
    run = PlainRun(tmp_path / "files", tmp_path / "lake")
    run.run()
    texts: dict[str, str] = {}
    paths = {row["record_id"]: row["path"] for row in run.rows("records")}
    for row in run.rows("blocks"):
        texts[paths[row["record_id"]]] = texts.get(paths[row["record_id"]], "") + row["text"] + row["metadata"]
    assert set(texts) == set(paths.values())
    for path, text in texts.items():
        shown = ("\tTAB", "\rCR") if path == "controls.csv" else PLAIN
        assert [part for part in shown if part not in text] == [], path


def test_the_set_as_a_folder(tmp_path: Path) -> None:
    expected = write_hostile_set(tmp_path / "set")
    assert {path.name for path in (tmp_path / "set").iterdir()} == set(expected)
