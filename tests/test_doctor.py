"""`raydex doctor`: every check ends in a finding under its own name, stores are really opened, -c decides what is asked."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import raydex.jobs.doctor as doctor
from raydex.cluster.netless import network_isolation
from raydex.configs.settings import load_settings
from raydex.ir.errors import StoreError
from raydex.jobs.cli import run

NAMES = ["python", "java", "spark jars", "embedding model", "ocr", "captions", "gpus", "objects", "vector store", "graph store", "registry"]
NAMES += ["parser isolation", "memory", "git"]


def findings(**sections: dict[str, Any]) -> dict[str, dict[str, str]]:
    result = doctor.examine(load_settings(None, sections))
    return {item["name"]: item for item in result["findings"]}


def test_everything_is_tried_and_in_order_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [item["name"] for item in result["findings"]] == NAMES and result["ok"]
    assert all(item["state"] in ("ok", "note") and item["detail"] for item in result["findings"])
    assert run(["doctor"]) == 0
    assert "Everything that is needed is there." in capsys.readouterr().out


def test_a_configuration_that_cannot_work_is_said_with_remedies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "stores: {registry: 'nosuch://host/db', vectors: 'http://127.0.0.1:9'}\n"
        "embed: {model: /nowhere/at/all}\nstages: {embed: {gpus: 1}}\nobjects: {uri: 'nonsense://bucket'}\n"
        "ocr: {engine: nosuch}\ncaption: {base_url: 'http://127.0.0.1:9'}\n"
    )
    assert run(["doctor", "-c", str(path), "--json"]) == 3
    result = json.loads(capsys.readouterr().out)
    found = {item["name"]: item for item in result["findings"]}
    for name in ("registry", "vector store", "embedding model", "ocr", "captions", "gpus", "objects"):
        assert found[name]["state"] == "missing" and found[name]["detail"] and found[name]["remedy"], found[name]
    assert not result["ok"] and [item["name"] for item in result["findings"]] == NAMES


def test_a_check_that_fails_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import raydex.cluster.graph_store
    import raydex.cluster.spark

    def fail(*_: object, **__: object) -> None:
        raise StoreError("broken", place="there", remedy="mend it")

    def odd(*_: object, **__: object) -> None:
        raise RuntimeError("odd")

    monkeypatch.setattr(raydex.cluster.spark, "jars_ready", fail)
    monkeypatch.setattr(raydex.cluster.graph_store, "build_graph", odd)
    found = findings(embed={"model": "none"})
    assert found["spark jars"] == {"name": "spark jars", "state": "missing", "detail": "there: broken", "remedy": "mend it"}
    assert found["graph store"]["state"] == "missing" and "RuntimeError: odd" in found["graph store"]["detail"]
    assert found["embedding model"]["state"] == "note"


@pytest.mark.parametrize("error", [subprocess.TimeoutExpired(["x"], 1), subprocess.CalledProcessError(1, ["x"]), FileNotFoundError("x")])
def test_a_process_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    network_isolation.cache_clear()
    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(StoreError, match="could not be tried"):
        network_isolation()
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/usr/bin/{name}")
    found = findings(embed={"model": "none"}, objects={"keep_originals": False})
    assert found["parser isolation"]["state"] == found["gpus"]["state"] == "missing"


@contextmanager
def server(models: object, status: int = 200) -> Iterator[str]:
    """A server of models: `models` is what GET /v1/models gives, with `status`; only a listed model answers, and `alias`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.say(status, models)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            known = body["model"] in (*(entry["id"] for entry in models["data"]), "alias") if isinstance(models, dict) else True
            if not known:
                self.say(404, {"error": "no such model"})
            elif self.path.endswith("/embeddings"):
                self.say(200, {"data": [{"index": at, "embedding": [1.0, 2.0]} for at in range(len(body["input"]))]})
            else:
                self.say(200, {"choices": [{"message": {"content": "a grey square"}}]})

        def say(self, code: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            return

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/v1"
    finally:
        http.shutdown()
        http.server_close()


OFFERS = {"data": [{"id": "eyes-7b"}, {"id": "words-1"}]}


def finding(check: Any, **sections: dict[str, Any]) -> doctor.Finding:
    return doctor._guarded("it", lambda: check(load_settings(None, sections)))


def test_a_server_of_captions_is_asked_for_its_models() -> None:
    with server(OFFERS) as url:
        found = finding(doctor.check_captions, caption={"model": "eyes-7b", "base_url": url})
        assert found.state == "ok" and url in found.detail and "eyes-7b" in found.detail
        found = finding(doctor.check_captions, caption={"model": "ears-7b", "base_url": url})
        assert found.state == "missing" and "offers eyes-7b, words-1" in found.detail and "caption.model" in found.remedy
        found = finding(doctor.check_captions, caption={"model": "alias", "base_url": url})
        assert found.state == "ok", "a name that answers although no list has it"
    found = finding(doctor.check_captions, caption={"model": "eyes-7b", "base_url": url})
    assert found.state == "missing" and "does not answer" in found.detail and "caption.base_url" in found.remedy


@pytest.mark.parametrize(
    ("status", "models", "state", "said"),
    [
        (404, [], "ok", "describes an image"),
        (401, [], "missing", "refuses the key"),
        (500, [], "missing", "HTTP 500"),
        (200, ["no list"], "missing", "no server of models"),
    ],
)
def test_a_server_that_lists_no_models(status: int, models: object, state: str, said: str) -> None:
    with server(models, status) as url:
        found = finding(doctor.check_captions, caption={"model": "eyes-7b", "base_url": url})
    assert found.state == state and said in found.detail


def test_a_server_of_vectors_is_asked_before_it_embeds() -> None:
    with server(OFFERS) as url:
        assert finding(doctor.check_model, embed={"model": "words-1", "base_url": url}).state == "ok"
        found = finding(doctor.check_model, embed={"model": "words-2", "base_url": url})
        assert found.state == "missing" and "offers eyes-7b, words-1" in found.detail and "embed.model" in found.remedy
    found = finding(doctor.check_model, embed={"model": "words-1", "base_url": url})
    assert found.state == "missing" and "embed.base_url" in found.remedy


def test_a_server_of_ocr_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(OFFERS) as url:
        monkeypatch.setenv("SURYA_INFERENCE_URL", url)
        monkeypatch.setenv("SURYA_MODEL_CHECKPOINT", "words-9")
        found = finding(doctor.check_ocr, ocr={"engine": "surya", "layout": "none"})
        assert found.state == "missing" and "does not offer words-9" in found.detail and "SURYA_MODEL_CHECKPOINT" in found.remedy
    found = finding(doctor.check_ocr, ocr={"engine": "surya", "layout": "none"})
    assert found.state == "missing" and "SURYA_INFERENCE_URL" in found.remedy


def test_the_folder_of_a_model_is_looked_into(tmp_path: Path) -> None:
    for section, check in (("embed", doctor.check_model), ("caption", doctor.check_captions)):
        if section == "caption":
            pytest.importorskip("vllm")
        found = finding(check, **{section: {"model": str(tmp_path / "none")}})
        assert found.state == "missing" and str(tmp_path / "none") in found.detail and found.remedy
        found = finding(check, **{section: {"model": str(tmp_path)}})
        assert found.state == "missing" and "config.json" in found.detail
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").touch()
    found = finding(doctor.check_captions, caption={"model": str(tmp_path)})
    assert found.state == "missing" and "processor" in found.detail


@pytest.mark.parametrize(
    ("section", "values", "said"),
    [
        ("ocr", {"engine": "rapidcr"}, "ocr.engine is 'rapidcr', which it cannot be. Use one of: rapidocr, surya, none"),
        ("ocr", {"layout": "docling"}, "ocr.layout: docling: docling is no layout engine"),
        ("ocr", {"device": "gpu"}, "ocr.device is 'gpu'"),
        ("embed", {"model": "minlm"}, "embed.model is 'minlm'"),
        ("embed", {"model": "served", "base_url": "localhost"}, "embed.base_url"),
        ("embed", {"model": "served", "base_url": "http://localhost/v1", "api_key_env": "NO_SUCH_KEY"}, "NO_SUCH_KEY"),
        ("caption", {"model": "/no/such/model"}, "/no/such/model"),
        ("chunk", {"strategy": "paragraphs"}, "chunk.strategy is 'paragraphs', which it cannot be. Use one of: structure"),
    ],
)
def test_a_run_refuses_its_configuration_before_it_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], section: str, values: dict[str, str], said: str
) -> None:
    import raydex.jobs.index as index_module

    monkeypatch.setattr(index_module, "open_specs", lambda request: pytest.fail("the sources were looked at"))
    (tmp_path / "a.md").write_text("# A")
    (tmp_path / "run.yaml").write_text(json.dumps({section: values}))
    assert run(["index", str(tmp_path / "a.md"), "--lake", str(tmp_path / "lake"), "-c", str(tmp_path / "run.yaml")]) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "lake").exists()
