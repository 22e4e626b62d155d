"""The whole job on real engines: first run, nothing changed, one file touched, a folder removed, another chunk size, readers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raydex.cluster.delta import read_delta, table_version
from raydex.cluster.lake import Lake, active_generation
from raydex.configs.settings import Settings, load_settings
from raydex.ir.errors import ConfigError
from raydex.ir.tables import TABLES
from raydex.jobs.digest import differing_tables
from raydex.jobs.documents import list_documents
from raydex.jobs.edges import list_edges
from raydex.jobs.index import IndexRequest, index
from raydex.jobs.paths import find_path
from raydex.jobs.report import write_report
from raydex.jobs.search import search
from raydex.jobs.show import show
from raydex.jobs.status import lake_status
from raydex.jobs.verify import verify
from tests.corpus import FILES

pytestmark = pytest.mark.slow
RECORDS = len(FILES) + 1


@pytest.fixture(scope="module")
def settings(plant_settings: Settings) -> Settings:
    return plant_settings


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Ray and Spark, started once for all runs of this module."""
    from raydex.cluster.ray_session import ray_session
    from raydex.cluster.spark import keep_spark

    with ray_session(), keep_spark(tmp_path_factory.mktemp("spark")):
        yield


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest, engine: None) -> dict[str, Any]:
    """The lake that all tests share; asked for by name, so that it is indexed by the engines of this module."""
    lake: dict[str, Any] = request.getfixturevalue("plant")
    return lake


@pytest.fixture
def copy(built: dict[str, Any], tmp_path: Path, settings: Settings) -> tuple[Path, Path]:
    """(corpus, lake) of one test's own: the corpus keeps its path, so it is restored afterwards by the copy."""
    shutil.copytree(built["lake"], tmp_path / "lake")
    backup = tmp_path / "backup"
    shutil.copytree(built["corpus"], backup)
    return built["corpus"], tmp_path / "lake"


@pytest.fixture(autouse=True)
def restore(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    yield
    backup = tmp_path / "backup"
    if backup.exists():
        corpus = request.getfixturevalue("built")["corpus"]
        shutil.rmtree(corpus)
        shutil.copytree(backup, corpus)


def run(corpus: Path, lake: Path, settings: Settings, **options: Any) -> dict[str, Any]:
    return index(IndexRequest(specs=(str(corpus),), lake=str(lake), settings=settings, progress=False, **options))


def work(summary: dict[str, Any]) -> dict[str, float]:
    return {name: figures["rows_in"] for name, figures in summary["stages"].items() if name != "list" and figures["rows_in"]}


def paths(lake: Path, table: str, column: str = "path") -> set[str]:
    return set(read_delta(Lake.open(lake).tables, table, columns=[column]).column(column).to_pylist())


def test_the_first_run_accounts_for_every_file(built: dict[str, Any]) -> None:
    records = built["summary"]["records"]
    assert records["seen"] == records["new"] == RECORDS
    assert records["indexed"] + records["degraded"] + records["rejected"] == RECORDS
    assert (records["degraded"], records["rejected"]) == (1, 2)
    assert built["summary"]["rejects"] == {"unsupported_media_type": 2}
    assert built["summary"]["stages"]["parse"]["rows_in"] == RECORDS
    assert built["summary"]["generation"] == 1
    stages = {name: built["summary"]["stages"][name] for name in ("parse", "chunk", "embed")}
    assert stages["parse"]["queue"] == RECORDS
    assert all(figures["queue"] is not None and figures["wall_seconds"] > 0 for figures in stages.values())
    assert json.loads(json.dumps(built["summary"])) == built["summary"]


def test_verify_proves_it(built: dict[str, Any]) -> None:
    result = verify(built["lake"])
    assert result["ok"], [check for check in result["checks"] if not check["ok"]]
    assert len(result["checks"]) >= 14


def test_tables_keep_their_keys_and_ordinals(built: dict[str, Any]) -> None:
    lake = Lake.open(built["lake"])
    for name, spec in TABLES.items():
        keys = read_delta(lake.tables, name, columns=[spec.key]).column(spec.key).to_pylist()
        assert len(keys) == len(set(keys)), name
    blocks = read_delta(lake.tables, "blocks", columns=["record_id", "ordinal", "locator"]).to_pylist()
    for record in {row["record_id"] for row in blocks}:
        assert sorted(row["ordinal"] for row in blocks if row["record_id"] == record) == list(
            range(sum(row["record_id"] == record for row in blocks))
        )
    assert all(row["locator"] for row in blocks)


def test_search_finds_the_page_and_the_function(built: dict[str, Any]) -> None:
    hits = search(built["lake"], "how is the pump restarted", 3)["hits"]
    assert hits[0]["path"] == "pages/index.html"
    assert "green key" in hits[0]["content"]
    code = search(built["lake"], "read the level of the tank in percent", 3, "code")["hits"]
    assert code[0]["path"] == "code/pump/sensor.py"
    assert code[0]["entity_id"].startswith("sym_")
    with pytest.raises(ConfigError, match="unknown source type"):
        search(built["lake"], "x", 3, "podcast")


def test_calls_cross_files_with_evidence(built: dict[str, Any]) -> None:
    calls = {
        (row["source_qualified_name"], row["target_qualified_name"], row["file"], row["line"])
        for row in list_edges(built["lake"], "CALLS", "EXTRACTED")
    }
    assert ("Controller.step", "read_level", "code/pump/control.py", 13) in calls
    assert ("Controller.step", "Controller.stop", "code/pump/control.py", 15) in calls
    assert ("Controller.stop", "ring", "code/pump/control.py", 19) in calls
    assert ("read_level", "_raw", "code/pump/sensor.py", 3) in calls
    assert ("show", "fetchLevel", "code/client/main.ts", 2) in calls
    assert ("fetchLevel", "parse", "code/client/api.ts", 4) in calls
    made = {(row["source_qualified_name"], row["target_qualified_name"]) for row in list_edges(built["lake"], "INSTANTIATES", None)}
    assert ("run", "Controller") in made
    with pytest.raises(ConfigError, match="Did you mean CALLS"):
        list(list_edges(built["lake"], "CALL", None))


def test_a_path_shows_its_evidence(built: dict[str, Any]) -> None:
    found = find_path(built["lake"], "run", "_raw", 8)
    assert found["directed"]
    names = [node["qualified_name"] for node in found["paths"][0]["nodes"]]
    assert names[0] == "run"
    assert names[-2:] == ["read_level", "_raw"]
    for edge in found["paths"][0]["edges"]:
        assert edge["evidence"]
        assert all(item["intact"] for item in edge["evidence"])
    with pytest.raises(ConfigError, match="no node is called"):
        find_path(built["lake"], "run", "nothing_of_that_name", 8)
    assert find_path(built["lake"], "run", "_raw", 8, 1)["paths"] == found["paths"][:1]


def test_show_gives_the_source_at_the_locator(built: dict[str, Any]) -> None:
    hit = search(built["lake"], "how is the pump restarted", 1)["hits"][0]
    chunk = show(built["lake"], hit["chunk_id"])
    assert "Press the green key twice" in chunk["source_text"]
    assert chunk["record"]["path"] == "pages/index.html"
    symbol = next(row for row in read_delta(Lake.open(built["lake"]).tables, "symbols").to_pylist() if row["qualified_name"] == "_raw")
    assert show(built["lake"], symbol["symbol_id"])["source_text"] == "def _raw():\n    return 420"
    edge = next(iter(list_edges(built["lake"], "CALLS", None)))
    shown = show(built["lake"], edge["edge_id"])
    assert shown["evidence"][0]["intact"]
    with pytest.raises(ConfigError, match="is not an id"):
        show(built["lake"], "nonsense")
    with pytest.raises(ConfigError, match="is not in generation"):
        show(built["lake"], "chk_" + "0" * 32)


def test_status_documents_and_report(built: dict[str, Any], tmp_path: Path) -> None:
    status = lake_status(built["lake"])
    assert sum(status["records"].values()) == RECORDS
    assert status["rejects"] == {"unsupported_media_type": 2}
    listed = list_documents(built["lake"])
    assert len(listed["documents"]) == RECORDS
    assert listed["mismatches"] == 0
    page = write_report(built["lake"], None, tmp_path / "report.html").read_text()
    assert "unsupported_media_type" in page
    assert "data/levels.json5" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "<script" not in page


def test_nothing_changed_starts_no_engine(copy: tuple[Path, Path], settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, lake = copy
    import raydex.cluster.ray_session
    import raydex.cluster.spark

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("an engine was started")

    monkeypatch.setattr(raydex.cluster.ray_session, "ray_session", refuse)
    monkeypatch.setattr(raydex.cluster.spark, "open_spark", refuse)
    versions = {name: table_version(Lake.open(lake).tables, name) for name in TABLES if name != "runs"}
    said: list[str] = []
    summary = run(corpus, lake, settings, say=said.append)
    assert work(summary) == {}
    assert summary["records"]["unchanged"] == RECORDS
    assert summary["records"]["indexed"] + summary["records"]["degraded"] + summary["records"]["rejected"] == RECORDS
    assert any("Nothing changed" in text for text in said)
    assert versions == {name: table_version(Lake.open(lake).tables, name) for name in versions}


def test_nothing_changed_loads_no_package_that_only_work_needs(copy: tuple[Path, Path], settings: Settings) -> None:
    """Each of these is a quarter of a second or more, in a run that takes one."""
    corpus, lake = copy
    code = """
import sys
from raydex.configs.settings import Settings
from raydex.jobs.index import IndexRequest, index
index(IndexRequest(specs=(sys.argv[1],), lake=sys.argv[2], settings=Settings.model_validate_json(sys.argv[3]), progress=False))
print(sorted({"ray", "torch", "pyspark", "polars", "pymilvus", "ladybug", "sqlalchemy"} & set(sys.modules)))
"""
    command = [sys.executable, "-c", code, str(corpus), str(lake), settings.model_dump_json()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_touching_one_file_redoes_one_file(copy: tuple[Path, Path], settings: Settings) -> None:
    corpus, lake = copy
    before = {row["symbol_id"] for row in read_delta(Lake.open(lake).tables, "symbols").to_pylist()}
    edges = {row["edge_id"]: row["evidence_ids"] for row in read_delta(Lake.open(lake).tables, "edges").to_pylist()}
    nodes = paths(lake, "code_nodes", "node_id")
    text = (corpus / "code/pump/sensor.py").read_text()
    (corpus / "code/pump/sensor.py").write_text("\n" * 10 + text)
    summary = run(corpus, lake, settings)
    assert (summary["stages"]["parse"]["rows_in"], summary["records"]["changed"]) == (1, 1)
    assert {row["symbol_id"] for row in read_delta(Lake.open(lake).tables, "symbols").to_pylist()} == before
    assert paths(lake, "code_nodes", "node_id") == nodes
    moved = {row["edge_id"]: row["evidence_ids"] for row in read_delta(Lake.open(lake).tables, "edges").to_pylist()}
    assert set(moved) == set(edges)
    assert moved != edges
    assert verify(lake)["ok"]
    assert active_generation(Lake.open(lake)).number == 2  # type: ignore[union-attr]


def test_removing_a_folder_removes_it_everywhere(copy: tuple[Path, Path], settings: Settings) -> None:
    corpus, lake = copy
    shutil.rmtree(corpus / "code" / "client")
    summary = run(corpus, lake, settings)
    assert summary["records"]["deleted"] == 2
    assert not any(path.startswith("code/client") for path in paths(lake, "records") | paths(lake, "symbols") | paths(lake, "nodes"))
    assert not any(row["file"].startswith("code/client") for row in list_edges(lake, None, None))
    assert all(not hit["path"].startswith("code/client") for hit in search(lake, "fetchLevel parse text answer", 50)["hits"])
    result = verify(lake)
    assert result["ok"], [check for check in result["checks"] if not check["ok"]]


def test_another_chunk_size_does_not_parse(copy: tuple[Path, Path], settings: Settings, tmp_path: Path) -> None:
    corpus, lake = copy
    smaller = settings.model_copy(update={"chunk": settings.chunk.model_copy(update={"max_tokens": 64})})
    summary = run(corpus, lake, smaller)
    assert summary["stages"]["parse"]["rows_in"] == 0
    assert summary["stages"]["chunk"]["rows_in"] == RECORDS - 2
    assert verify(lake)["ok"]
    fresh = tmp_path / "fresh"
    run(corpus, fresh, smaller)
    assert differing_tables(lake, fresh) == []


# root writes into read-only folders by this right alone; without it the modes of files bind root too
DROP_RIGHT = """
import ctypes, os, sys
CAP_DAC_OVERRIDE, PR_CAPBSET_DROP = 1, 24
if os.geteuid() == 0 and ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0):
    sys.exit("cannot give up the right")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
READ = """
import json, os, sys
from pathlib import Path
from raydex.jobs.documents import list_documents
from raydex.jobs.edges import list_edges
from raydex.jobs.paths import find_path
from raydex.jobs.search import search
from raydex.jobs.show import show
from raydex.jobs.status import lake_status
from raydex.jobs.verify import verify
lake = Path(sys.argv[1])
for folder in (lake, lake / "stores"):
    assert not os.access(folder, os.W_OK, effective_ids=True)
found = search(lake, "tank", 5)
shown = show(lake, found["hits"][0]["chunk_id"])["id"]
counts = {
    "edges": len(list(list_edges(lake, None, None))),
    "paths": len(find_path(lake, "run", "_raw", 8)["paths"]),
    "documents": len(list_documents(lake)["documents"]),
    "records": sum(lake_status(lake)["records"].values()),
}
print(json.dumps({"search": found, "shown": shown, "counts": counts, "verified": verify(lake)["ok"]}))
"""


def same_hits(left: dict[str, Any], right: dict[str, Any]) -> bool:
    """The same chunks in the same order, scores up to the rounding of two ways to add."""

    def plain(result: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**hit, "score": round(hit["score"], 4)} for hit in result["hits"]]

    return plain(left) == plain(right)


def test_readers_work_on_a_read_only_lake_and_write_nothing(copy: tuple[Path, Path]) -> None:
    _, lake = copy
    wanted = search(lake, "tank", 5)
    assert wanted["engine"] == "milvus"
    assert wanted["hits"]
    files = sorted(lake.rglob("*"))
    for path in (lake, *files):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.stat().st_mtime_ns for path in (lake, *files)}
    try:
        done = subprocess.run([sys.executable, "-c", DROP_RIGHT, "-c", READ, str(lake)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        assert {path: path.stat().st_mtime_ns for path in (lake, *lake.rglob("*"))} == before
    finally:
        for path in (lake, *files):
            path.chmod(0o755 if path.is_dir() else 0o644)
    read = json.loads(done.stdout.splitlines()[-1])
    assert read["search"]["engine"] == "exact"
    assert same_hits(read["search"], wanted)
    assert read["shown"] == wanted["hits"][0]["chunk_id"]
    assert read["counts"]["edges"] == len(list(list_edges(lake, None, None)))
    assert read["counts"]["paths"] == len(find_path(lake, "run", "_raw", 8)["paths"])
    assert read["counts"]["documents"] == read["counts"]["records"] == RECORDS
    assert read["verified"]


def test_search_beside_a_writer_gives_the_same_hits(built: dict[str, Any]) -> None:
    from raydex.cluster.store_lock import StoreLock
    from raydex.jobs.load import VECTORS

    wanted = search(built["lake"], "how is the pump restarted", 5)
    lock = StoreLock(f"{built['lake'] / VECTORS}.lock", 0)
    lock.take()
    try:
        found = search(built["lake"], "how is the pump restarted", 5)
    finally:
        lock.free()
    assert (wanted["engine"], found["engine"]) == ("milvus", "exact")
    assert same_hits(found, wanted)


def test_plain_functions_give_the_same_tables(built: dict[str, Any], tmp_path: Path, settings: Settings) -> None:
    from datetime import UTC, datetime

    from raydex.cluster.lake import load_ledger
    from raydex.ir.tables import RECORD_TABLES
    from raydex.jobs.chunk_stage import ChunkWorker
    from raydex.jobs.context import RunContext, stage_fingerprints
    from raydex.jobs.digest import table_rows
    from raydex.jobs.embed_stage import EmbedWorker
    from raydex.jobs.epochs import EpochCommitter
    from raydex.jobs.observe_stage import ObserveWorker
    from raydex.jobs.parse_stage import ParseWorker
    from raydex.jobs.plan import make_plan
    from raydex.jobs.sources import open_source
    from raydex.jobs.work import number_epochs, work_tables

    lake = Lake(tmp_path / "lake")
    prints = stage_fingerprints(settings)
    plan = make_plan(lake, [open_source(str(built["corpus"]))], load_ledger(lake), settings, prints)
    work, expected = number_epochs(plan.work, 1, 5)
    context = RunContext(str(lake.root), "run_plain", settings.workspace, settings, prints, datetime.now(UTC), str(lake.objects))
    committer = EpochCommitter(context, expected, {})
    workers = [ParseWorker(context), ObserveWorker(context), ChunkWorker(context), EmbedWorker(context)]
    for batch in reversed(work_tables(work, 3)):
        for worker in workers:
            batch = worker(batch)
        committer.add(batch)
    assert committer.finish().epochs == len(expected)
    other = Lake.open(built["lake"])
    for name in ("records", *RECORD_TABLES):
        mine, theirs = table_rows(lake, name), table_rows(other, name)
        if name == "embeddings":
            assert mine.drop_columns(["vector"]).equals(theirs.drop_columns(["vector"]))
        else:
            assert mine.equals(theirs), name


def test_page_ranges_of_a_long_pdf_make_the_same_rows(tmp_path: Path, settings: Settings, engine: None) -> None:
    from raydex.jobs.digest import table_rows
    from tests.corpus import write_pdf

    corpus = tmp_path / "papers"
    corpus.mkdir()
    write_pdf(corpus / "long.pdf", ["A heading of the chapter", "Some text about pumps", "More text about valves"], 7)
    (corpus / "broken.pdf").write_bytes(b"%PDF-1.7\n" + b"no objects at all " * 500)
    plain = settings.model_copy(update={"run": settings.run.model_copy(update={"project": False, "load_graph": False})})
    fanned = settings.model_copy(update={"run": plain.run.model_copy(update={"pdf_fan_out_pages": 3, "pdf_range_pages": 2})})
    said: list[str] = []
    first = run(corpus, tmp_path / "whole", plain)
    second = run(corpus, tmp_path / "fanned", fanned, say=said.append)
    assert any("1 long PDFs were parsed as 4 page ranges" in text for text in said)
    assert first["rejects"] == second["rejects"] == {"invalid_input": 1}
    for name in ("documents", "pages", "blocks", "chunks"):
        assert table_rows(Lake.open(tmp_path / "whole"), name).equals(table_rows(Lake.open(tmp_path / "fanned"), name)), name


def test_the_quickstarts_question_has_its_answer_and_its_paths(tmp_path: Path, engine: None) -> None:
    from raydex.jobs.tour import CORPUS, PATHS, QUESTION, ROOT

    lake = tmp_path / "lake"
    run(CORPUS, lake, load_settings(ROOT / "configs" / "quickstart.yaml"), name="velodock")
    hits = search(lake, QUESTION, 5)["hits"]
    assert "docs/design/reservations.html" in {hit["path"] for hit in hits}
    functions = {show(lake, hit["entity_id"])["row"].get("qualified_name") for hit in hits if (hit["entity_id"] or "").startswith("sym_")}
    assert "release_expired" in functions
    for source, target in PATHS:
        found = find_path(lake, source, target, 8, 1)["paths"]
        assert len(found) == 1, (source, target)
        assert all(item["intact"] is not False for edge in found[0]["edges"] for item in edge["evidence"])
    assert verify(lake)["ok"]
