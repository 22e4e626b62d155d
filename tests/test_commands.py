"""Each command of `raydex` once, as the command line runs it: exit codes, the fields of `--json`, and the tables for people."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raydex.cluster.delta import read_delta
from raydex.cluster.lake import Lake
from raydex.jobs.cli import app, run
from tests.corpus import FILES

pytestmark = pytest.mark.slow
RECORDS = len(FILES) + 1
COUNTS = {"seen", "new", "changed", "reprocessed", "retried", "unchanged", "deleted", "indexed", "degraded", "rejected"}
FIGURES = {"rows_in", "rows_out", "rejects", "seconds", "cpu_seconds", "gpu_seconds"}
STAGES = ("list", "parse", "chunk", "embed")

Ask = Callable[..., Any]
Say = Callable[..., str]


@pytest.fixture
def said(capfdbinary: pytest.CaptureFixture[bytes]) -> Say:
    """Runs a command and gives its output; the exit code is checked."""

    def go(*arguments: object, code: int = 0) -> str:
        found = run([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        assert found == code, err.decode()
        return out.decode() if code in (0, 1) else err.decode()

    return go


@pytest.fixture
def asked(said: Say) -> Ask:
    """Runs a command with --json and gives the last line as an object."""

    def go(*arguments: object, code: int = 0) -> Any:
        return json.loads(said(*arguments, "--json", code=code).splitlines()[-1])

    return go


@pytest.fixture
def lake(plant: dict[str, Any]) -> Path:
    """The shared lake, for commands that write nothing."""
    folder: Path = plant["lake"]
    return folder


@pytest.fixture
def own(plant: dict[str, Any], tmp_path: Path) -> Path:
    """A copy of the lake, for commands that write."""
    return Path(shutil.copytree(plant["lake"], tmp_path / "lake"))


def test_every_command_is_driven_here() -> None:
    text = Path(__file__).read_text()
    names = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    assert {name for name in names if f'("{name}"' not in text} == set()


def test_index_that_finds_nothing_to_do(plant: dict[str, Any], own: Path, asked: Ask, said: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in {"RUN__EPOCH_RECORDS": "4", "STAGES__PARSE__BATCH_SIZE": "2"}.items():
        monkeypatch.setenv(f"RAYDEX_{key}", value)
    summary = asked("index", plant["corpus"], "--lake", own, "-q")
    assert {"run", "generation", "seconds", "records", "stages"} <= set(summary)
    assert set(summary["records"]) == COUNTS and summary["records"]["unchanged"] == summary["records"]["seen"] == RECORDS
    assert all(set(summary["stages"][name]) >= FIGURES for name in STAGES)
    assert all(summary["stages"][name]["rows_in"] == 0 for name in STAGES[1:])
    assert f"{RECORDS} records" in said("index", plant["corpus"], "--lake", own)


def test_a_run_that_cannot_begin_makes_no_lake(tmp_path: Path, said: Say) -> None:
    assert "no such file or folder" in said("index", tmp_path / "nope", "--lake", tmp_path / "new", code=2)
    assert not (tmp_path / "new").exists()


def test_a_source_whose_folder_is_gone(tmp_path: Path, said: Say, asked: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in {"EMBED__MODEL": "none", "RUN__PROJECT": "false"}.items():
        monkeypatch.setenv(f"RAYDEX_{key}", value)
    for name in ("stays", "goes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "empty.md").touch()
    folders, lake = (tmp_path / "stays", tmp_path / "goes"), tmp_path / "lake"
    said("index", *folders, "--lake", lake, "-q", code=1)
    shutil.rmtree(folders[1])
    text = said("index", *folders, "--lake", lake, code=2)
    assert "no such file or folder" in text and "source goes" in text and "--allow-empty" in text
    summary = asked("index", *folders, "--lake", lake, "--allow-empty", "--max-delete-share", "1", "-q")
    assert (summary["records"]["deleted"], summary["records"]["unchanged"]) == (1, 1)
    assert [row["source"] for row in asked("documents", "--lake", lake)["documents"]] == ["stays"]


def test_rejects_of_a_killed_run_are_reported_by_the_one_that_goes_on(tmp_path: Path, asked: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in {"EMBED__MODEL": "none", "RUN__PROJECT": "false"}.items():
        monkeypatch.setenv(f"RAYDEX_{key}", value)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "empty.md").touch()
    command = [sys.executable, "-m", "raydex.jobs.cli", "index", str(tmp_path / "docs"), "--lake", str(tmp_path / "lake"), "-q"]
    killed = subprocess.run(command, env={**os.environ, "RAYDEX_FAULT": "finalize.verify:before:kill:1"}, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert asked("index", tmp_path / "docs", "--lake", tmp_path / "lake", "-q", code=1)["rejects"] == {"empty": 1}
    assert asked("index", tmp_path / "docs", "--lake", tmp_path / "lake", "-q")["rejects"] == {}


def test_what_is_no_regular_file_is_not_read(tmp_path: Path, said: Say) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    for command in ("parse", "chunk"):
        assert "this is a pipe" in said(command, tmp_path / "pipe.md", code=2)
        assert "this is a device" in said(command, "/dev/zero", code=2)


def test_numbers_beyond_reason_are_refused(tmp_path: Path, said: Say) -> None:
    (tmp_path / "a.md").write_text("# T\n")
    (tmp_path / "c.yaml").write_text("limits: {seconds: .inf}\n")
    assert "limits.seconds" in said("parse", tmp_path / "a.md", "-c", tmp_path / "c.yaml", code=2)
    assert "--max-tokens" in said("chunk", tmp_path / "a.md", "--max-tokens", 10**20, code=2)


def test_names_do_not_steer_the_terminal(tmp_path: Path, said: Say) -> None:
    path = tmp_path / "esc\x1b[31mred.md"
    path.write_text("\x9b\n")
    assert "\x1b" not in said("parse", path) and "\\x1b[31mred.md" in said("parse", path)


def test_a_reader_that_goes_away_is_no_failure(lake: Path) -> None:
    for command in (["search", "pump", "-k", "50"], ["documents"], ["edges"]):
        command = [sys.executable, "-m", "raydex.jobs.cli", *command, "--lake", str(lake)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert (process.wait(timeout=120), process.stderr.read()) == (0, b"")


def test_strict_counts_old_and_unsupported_rejects(plant: dict[str, Any], own: Path, said: Say) -> None:
    said("index", plant["corpus"], "--lake", own, "-q", code=0)
    said("index", plant["corpus"], "--lake", own, "-q", "--strict", code=1)


def test_usage_and_configuration_exit_2(tmp_path: Path, lake: Path, said: Say) -> None:
    said("index", "--lake", tmp_path / "new", code=2)
    said("nonsense", code=2)
    said("search", "x", "--lake", tmp_path / "none", code=2)
    said("index", tmp_path / "not-there", "--lake", tmp_path / "new", "-q", code=2)
    (tmp_path / "wrong.yaml").write_text("chunks: {}\n")
    assert "did you mean chunk" in said("index", tmp_path, "--lake", tmp_path / "new", "-q", "-c", tmp_path / "wrong.yaml", code=2)
    said("show", "nonsense", "--lake", lake, code=2)
    said("edges", "--relation", "CALL", "--lake", lake, code=2)


def test_parse(plant: dict[str, Any], asked: Ask, said: Say, tmp_path: Path) -> None:
    parsed = asked("parse", plant["corpus"] / "pages/index.html")
    fields = {"document", "pages", "blocks", "assets", "observations", "issue", "symbols", "code_nodes", "code_edges", "children", "events"}
    assert fields | {"rejects"} <= set(parsed) and parsed["document"]["title"] == "Pump manual"
    assert "Press the green key" in said("parse", plant["corpus"] / "pages/index.html")
    assert "Controller.step" in said("parse", plant["corpus"] / "code/pump/control.py")
    data = plant["corpus"] / "data/levels.json5"
    assert asked("parse", data)["rejects"][0]["class"] == "unsupported_media_type"
    said("parse", data, "--strict", code=1)
    (tmp_path / "cut.pdf").write_bytes(b"%PDF-1.7\n" + b"no objects " * 500)
    assert "rejected (invalid_input)" in said("parse", tmp_path / "cut.pdf", code=1)
    said("parse", tmp_path, code=2)


def test_chunk(plant: dict[str, Any], asked: Ask, said: Say) -> None:
    result = asked("chunk", plant["corpus"] / "pages/design.md", "--strategy", "recursive", "--max-tokens", "32")
    assert {"chunks", "nodes", "edges"} <= set(result) and all(item["token_count"] <= 32 for item in result["chunks"])
    assert "chunks, " in said("chunk", plant["corpus"] / "pages/design.md")
    assert asked("chunk", plant["corpus"] / "data/levels.sql")["chunks"] == []
    said("chunk", plant["corpus"] / "data/levels.sql", "--strict", code=1)
    said("chunk", plant["corpus"] / "pages/design.md", "--strategy", "nonsense", code=2)


def test_search(lake: Path, asked: Ask, said: Say) -> None:
    found = asked("search", "how is the pump restarted", "--lake", lake, "-k", 3)
    assert found["engine"] == "milvus" and len(found["hits"]) == 3
    assert {"rank", "score", "chunk_id", "record_id", "source", "path", "locators", "content"} <= set(found["hits"][0])
    assert "pages/index.html" in said("search", "how is the pump restarted", "--lake", lake, "-k", 1)
    code = asked("search", "level of the tank", "--lake", lake, "--source-type", "code")["hits"]
    assert {hit["media_type"] for hit in code} <= {"text/x-python", "text/x-typescript"}


def test_a_query_longer_than_the_model_reads_says_so(lake: Path, asked: Ask, said: Say) -> None:
    command = ["search", "which pump fills the tank " * 100, "--lake", lake]
    assert asked(*command)["truncated"]
    assert "only its beginning was looked for" in said(*command)
    assert not asked("search", "pump", "--lake", lake)["truncated"]


def test_search_takes_any_bytes(lake: Path, asked: Ask) -> None:
    assert asked("search", "pump \udcff\udcfe", "--lake", lake)["hits"]


def test_search_answers_exactly_while_a_writer_holds_the_store(lake: Path, asked: Ask, said: Say) -> None:
    from raydex.cluster.store_lock import StoreLock

    wanted = asked("search", "how is the pump restarted", "--lake", lake, "-k", 5)["hits"]
    holder = StoreLock(f"{lake / 'stores' / 'vectors.db'}.lock", 0)
    holder.take()
    try:
        found = asked("search", "how is the pump restarted", "--lake", lake, "-k", 5)
        assert found["engine"] == "exact"
        assert [hit["chunk_id"] for hit in found["hits"]] == [hit["chunk_id"] for hit in wanted]
        assert "(exact)" in said("search", "pump", "--lake", lake)
    finally:
        holder.free()


def test_status(lake: Path, asked: Ask, said: Say) -> None:
    status = asked("status", "--lake", lake)
    assert sum(status["records"].values()) == RECORDS and status["rejects"] == {"unsupported_media_type": 2}
    assert {"runs", "stores", "sources", "tables", "generation"} <= set(status)
    text = said("status", "--lake", lake)
    assert "generation 1" in text and "unsupported_media_type" in text and "complete" in text


def test_documents(lake: Path, asked: Ask, said: Say) -> None:
    listed = asked("documents", "--lake", lake)
    assert len(listed["documents"]) == RECORDS and listed["mismatches"] == 0
    assert {"document_id", "path", "state", "registry_status", "chunks", "vectors"} <= set(listed["documents"][0])
    lines = said("documents", "--lake", lake).splitlines()
    assert len(lines) == RECORDS + 1 and {line.count("\t") for line in lines} == {7}
    refused = asked("documents", "--lake", lake, "--state", "rejected", "--class", "unsupported_media_type")
    assert len(refused["documents"]) == 2 and refused["total"] == RECORDS
    code = asked("documents", "--lake", lake, "--type", "code")["documents"]
    assert code and {row["media_type"] for row in code} <= {"text/x-python", "text/x-typescript"}
    for option in ("--state", "--class", "--type"):
        assert "Known: " in said("documents", "--lake", lake, option, "nonsense", code=2)


def test_documents_by_another_registry(lake: Path, tmp_path: Path, asked: Ask) -> None:
    from raydex.cluster.registry import open_registry

    url = f"sqlite:///{tmp_path}/registry.db"
    with open_registry(url, Lake.open(lake).lake_id):
        (tmp_path / "run.yaml").write_text(f"stores: {{registry: '{url}'}}\n")
    assert asked("documents", "--lake", lake, "-c", tmp_path / "run.yaml")["mismatches"] == RECORDS


SHOWN = {
    "records": ("record_id", "path == 'code/pump/alarm.py'", "def ring(text):\n    print(text)\n"),
    "pages": ("page_id", "number == 2", "Pump data sheet, page 2"),
    "blocks": ("block_id", "text == 'Restart'", "<h2>Restart</h2>"),
    "symbols": ("symbol_id", "qualified_name == '_raw'", "def _raw():\n    return 420"),
    "code_nodes": ("node_id", "kind == 'call' or kind == 'Call'", "("),
    "code_edges": ("edge_id", "relation == 'CALLS' and expression == '_raw'", "_raw"),
    "chunk_edges": ("edge_id", "relation == 'CONTAINS'", ""),
    "chunks": ("chunk_id", "title == 'Restart' and role == 'leaf'", "Press the green key twice"),
    "evidence": ("evidence_id", "path == 'code/pump/sensor.py' and line == 3", "_raw"),
}


@pytest.mark.parametrize("table", SHOWN)
def test_show(lake: Path, asked: Ask, said: Say, table: str) -> None:
    import polars as pl

    key, where, text = SHOWN[table]
    frame = pl.from_arrow(read_delta(Lake.open(lake).tables, table))
    assert isinstance(frame, pl.DataFrame)
    identifier = pl.SQLContext(t=frame, eager=True).execute(f"select {key} from t where {where.replace('==', '=')}")[key][0]
    shown = asked("show", identifier, "--lake", lake)
    assert shown["id"] == identifier and shown["locators"] and text in shown["source_text"]
    assert text.splitlines()[0].strip() in said("show", identifier, "--lake", lake) if text else True


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("function", "("),
        ("module", '"""Controls the pump."""'),
        ("file", '"""Controls the pump."""'),
        ("document", "<h1>Pump manual</h1>"),
        ("section", "Restart"),
    ],
)
def test_show_of_a_node_has_a_place_and_the_text_there(lake: Path, asked: Ask, kind: str, text: str) -> None:
    wanted = {"module": "code/pump/control.py", "file": "code/pump/control.py", "document": "pages/index.html"}
    rows = read_delta(Lake.open(lake).tables, "nodes").to_pylist()
    fitting = [row for row in rows if row["kind"] == kind and wanted.get(kind, row["path"]) == row["path"]]
    shown = [asked("show", row["node_id"], "--lake", lake) for row in fitting if kind != "section" or row["name"] == "Restart"]
    assert shown and all(item["locators"] and text in item["source_text"] for item in shown)


def test_show_of_a_pdf_reads_its_pages_again(lake: Path, asked: Ask) -> None:
    blocks = [row for row in read_delta(Lake.open(lake).tables, "blocks").to_pylist() if "bbox" in row["locator"]]
    for row in blocks[:2]:
        assert asked("show", row["block_id"], "--lake", lake)["source_text"] == row["text"]


def test_show_of_runs_generations_and_sources(lake: Path, plant: dict[str, Any], asked: Ask, said: Say) -> None:
    ran = asked("show", plant["summary"]["run"], "--lake", lake)["row"]
    assert ran["state"] == "complete" and ran["summary"]["records"]["seen"] == RECORDS
    (generation,) = read_delta(Lake.open(lake).tables, "generations").to_pylist()
    made = asked("show", generation["generation_id"], "--lake", lake)["row"]
    assert made["number"] == 1 and made["table_versions"]["records"] >= 0
    (source,) = made["sources"]
    assert asked("show", source, "--lake", lake)["row"]["root"] == str(plant["corpus"])
    said("show", "src_" + "0" * 32, "--lake", lake, code=2)


def test_show_when_originals_are_not_kept(plant: dict[str, Any], own: Path, asked: Ask) -> None:
    shutil.rmtree(own / "objects" / "cas")
    rows = read_delta(Lake.open(own).tables, "symbols").to_pylist()
    symbol = next(row["symbol_id"] for row in rows if row["qualified_name"] == "_raw")
    shown = asked("show", symbol, "--lake", own)
    assert shown["locators"] and shown["source_text"] in (None, "def _raw():\n    return 420")


def test_path(lake: Path, asked: Ask, said: Say) -> None:
    found = asked("path", "run", "_raw", "--lake", lake)
    assert found["directed"] and found["paths"][0]["nodes"][0]["qualified_name"] == "run"
    for edge in found["paths"][0]["edges"]:
        assert {"relation", "confidence", "evidence"} <= set(edge)
        assert all({"path", "line", "excerpt", "rule"} <= set(item) and "," not in item["rule"] for item in edge["evidence"])
    assert "CALLS" in said("path", "run", "_raw", "-k", 1, "--lake", lake)
    none = asked("path", "run", "fetchLevel", "--max-hops", 1, "--lake", lake)
    assert none["paths"] == [], "no path is an answer, not a failure"
    assert "no path of at most 1 steps" in said("path", "run", "fetchLevel", "--max-hops", 1, "--lake", lake)


def test_edges(lake: Path, said: Say) -> None:
    lines = [json.loads(line) for line in said("edges", "--lake", lake, "--relation", "CALLS", "--confidence", "EXTRACTED").splitlines()]
    assert {"source", "target", "relation", "confidence", "rule", "file", "line"} <= set(lines[0])
    assert all("," not in line["rule"] for line in lines)
    assert said("edges", "--lake", lake, "--json").count("\n") > len(lines)


def test_verify(lake: Path, asked: Ask, said: Say) -> None:
    verdict = asked("verify", "--lake", lake)
    assert verdict["ok"] and len(verdict["checks"]) >= 14
    assert "all checks passed" in said("verify", "--lake", lake)


def test_report(own: Path, asked: Ask, said: Say, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    assert asked("report", "--lake", own, "-o", target) == {"report": str(target)}
    assert "data/levels.json5" in target.read_text()
    assert "report: " in said("report", "--lake", own)


def test_doctor(asked: Ask, said: Say) -> None:
    found = asked("doctor")
    assert found["ok"] and {item["name"] for item in found["findings"]} >= {"java", "vector store", "graph store", "registry"}
    assert "Everything that is needed is there." in said("doctor")


def test_version(asked: Ask, said: Say) -> None:
    assert said("version").strip() == asked("version")["version"]


def test_retry_of_nothing(own: Path, asked: Ask, said: Say) -> None:
    summary = asked("retry", "--lake", own, "-q")
    assert set(summary["records"]) == COUNTS and not any(summary["records"].values())
    assert summary["generation"] == 1
    said("retry", "--lake", own, "--class", "nonsense", code=2)


def test_retry_goes_on_as_the_lake_was_configured(own: Path, asked: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    import raydex.jobs.retry as retry_module

    requests: list[Any] = []
    monkeypatch.setattr(retry_module, "index", lambda request: requests.append(request) or {**EMPTY, "records": dict.fromkeys(COUNTS, 0)})
    asked("retry", "--lake", own, "--class", "unsupported_media_type", "-q")
    (request,) = requests
    assert (request.settings.run.epoch_records, request.settings.stages.parse.batch_size) == (4, 2)
    assert len(request.only) == 2 and request.commit is None and request.repository == "plant"


EMPTY: dict[str, Any] = {"run": "run_x", "generation": 1, "seconds": 0.0, "stages": {}, "rejects": {}}
