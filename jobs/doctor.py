"""`raydex doctor`: is everything there that a run with this configuration needs, and if not, what to do about it.

Stores are opened, used and closed: embedded ones in a folder of their own that is removed again, servers under a name that no lake has.
The invariant: every check ends in a finding, whatever it meets.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from raydex.configs.settings import CaptionSettings, Settings
from raydex.ir.errors import ConfigError, InputError
from raydex.jobs.failures import as_failure

SMI_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """`state`: ok, missing (a run fails without it) or note (a run does without it)."""

    name: str
    state: str
    detail: str
    remedy: str = ""


def examine(settings: Settings, *, fetch: bool = False) -> dict[str, Any]:
    """{ok, findings}: ok is False when something is missing that a run needs. `fetch` also fetches Spark's jars."""
    checks: dict[str, Callable[[], Finding]] = {
        "python": check_python,
        "java": check_java,
        "spark jars": lambda: check_jars(settings, fetch),
        "embedding model": lambda: check_model(settings),
        "ocr": lambda: check_ocr(settings),
        "captions": lambda: check_captions(settings),
        "gpus": lambda: check_gpus(settings),
        "objects": lambda: check_objects(settings),
        "vector store": lambda: check_vectors(settings),
        "graph store": check_graph,
        "registry": lambda: check_registry(settings),
        "parser isolation": check_isolation,
        "memory": check_memory,
        "git": check_git,
    }
    findings = [_guarded(name, check) for name, check in checks.items()]
    return {"ok": all(f.state != "missing" for f in findings), "findings": [asdict(f) for f in findings]}


def _guarded(name: str, check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except ImportError as error:
        return Finding(name, "missing", str(error), "Run ./quickstart again to set up the environment")
    except Exception as error:  # noqa: BLE001 - the check failed, and that is what it has to say
        failure = as_failure(error)
        return Finding(name, "missing", f"{failure.place}: {failure.message}" if failure.place else failure.message, failure.remedy)


def check_python() -> Finding:
    here = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", "ok", f"{here}, raydex {version('raydex')}, ray {version('ray')}")


def check_java() -> Finding:
    from raydex.cluster.java import find_java

    java = find_java()
    return Finding("java", "ok", f"{java.version} in {java.home}" + (" (packaged)" if java.packaged else ""))


def check_jars(settings: Settings, fetch: bool) -> Finding:
    from raydex.cluster.spark import PACKAGES, SparkSettings, fetch_jars, jars_ready

    wanted = SparkSettings(packages=settings.spark.packages or PACKAGES)
    if fetch:
        fetch_jars(wanted)
    if jars_ready(wanted):
        return Finding("spark jars", "ok", "GraphFrames and Delta are in the local cache")
    return Finding("spark jars", "note", "not fetched yet: the first projection fetches them", "raydex doctor --fetch")


def check_model(settings: Settings) -> Finding:
    """Asks the server, or looks for the folder; then loads the model, or asks the server for it, and embeds a word."""
    from raydex.jobs.preflight import check_embedding
    from raydex.kernels.embed import load_embedder

    check_embedding(settings.embed)
    fault = _asked("embedding model", settings, "embed")
    if fault is not None and fault.state == "missing":
        return fault
    embedder = load_embedder(settings.embed)
    if embedder is None:
        return Finding("embedding model", "note", "none: nothing is embedded, and there is no search", "Set embed.model")
    try:
        vector = embedder.embed(["text"])[0]
    except InputError:
        if fault is None:
            raise
        return replace(fault, state="missing")
    where = settings.embed.base_url or embedder.device
    return Finding("embedding model", "ok", f"{embedder.fingerprint}, {len(vector)} dimensions, {where}")


def check_ocr(settings: Settings) -> Finding:
    """Loads the engines and reads an empty image; a server of an engine is asked first."""
    import numpy as np

    from raydex.jobs.observe import NONE, Observer
    from raydex.jobs.preflight import check_engines

    check_engines(settings.ocr)
    if settings.ocr.engine == NONE:
        return Finding("ocr", "note", "none: pages and images without text stay unread", "Set ocr.engine")
    fault = _asked("ocr", settings, "ocr")
    if fault is not None and fault.state == "missing":
        return fault
    with Observer(settings, gpus=settings.stages.observe.gpus) as observer:
        blank = np.full((64, 64, 3), 255, np.uint8)
        engine, layout = observer.engine(), observer.layout()
        page = engine.read([blank])[0]
        if page.error:
            remedy = fault.remedy if fault else "Run ./quickstart again to set up the environment"
            return Finding("ocr", "missing", f"{engine.name} failed: {page.error}" + (f"; {fault.detail}" if fault else ""), remedy)
        if layout is not None:
            layout.find([blank])
    names = [f"{one.name} {one.version}" for one in (engine, layout) if one is not None]
    return Finding("ocr", "ok", f"{', '.join(names)}, {observer.device}")


def check_captions(settings: Settings) -> Finding:
    """The server is asked for its models, and for a caption where it does not list ours; of a local model its folder and its processor
    are read. Its weights are loaded by the run alone."""
    from raydex.jobs.caption_engine import check_model, render_prompt
    from raydex.jobs.caption_models import engine_names
    from raydex.jobs.caption_stage import check_captions
    from raydex.jobs.preflight import check_captioner

    check_captions(settings)
    check_captioner(settings)
    wanted = settings.caption
    if not wanted.model:
        return Finding("captions", "note", "unavailable: no model is configured", "Set caption.model, or caption.base_url with it")
    if not wanted.base_url:
        folder = check_model(wanted, settings.stages.caption.gpus)
        render_prompt(wanted, folder)
        engine = engine_names(wanted)[1]
        return Finding("captions", "ok", f"{wanted.model}, {engine}: the folder holds a model, and its chat template takes images")
    fault = _asked("captions", settings, "caption")
    if fault is None:
        return Finding("captions", "ok", f"{wanted.base_url} answers and offers {wanted.model}")
    if fault.state == "note":
        refused = ask_for_caption(wanted)
        if refused is None:
            return Finding("captions", "ok", f"{wanted.base_url} describes an image as {wanted.model}")
        return replace(fault, state="missing", detail=f"{fault.detail}; asked for a caption: {refused}")
    return fault


def ask_for_caption(wanted: CaptionSettings) -> InputError | None:
    """What the server answers to an image of ours: None, or its fault."""
    from raydex.kernels.caption_remote import RemoteCaptioner

    captioner = RemoteCaptioner(
        wanted.base_url, wanted.model, wanted.prompt, max_tokens=wanted.max_tokens, in_flight=1, api_key_env=wanted.api_key_env
    )
    try:
        return captioner.probe(attempts=1)
    finally:
        captioner.close()


def _asked(name: str, settings: Settings, what: str) -> Finding | None:
    """What is to be said of the server that `what` names: None where there is none, or it offers the model. `note`: it answers, and its
    list does not tell whether it has the model."""
    from raydex.jobs.model_servers import ask, model_servers, not_offered

    for server in model_servers(settings):
        if server.what != what:
            continue
        answer = ask(server)
        if answer.fault:
            return Finding(name, "missing", answer.fault, answer.remedy)
        if answer.names is None:
            return Finding(name, "note", f"{server.address} answers and lists no models", f"Check {' and '.join(server.named_by[:2])}")
        if not answer.offers(server.model):
            return Finding(name, "note", *not_offered(server, answer))
    return None


def check_gpus(settings: Settings) -> Finding:
    wanted = {name: stage.gpus for name, stage in settings.stages if stage.gpus}
    state, remedy = ("missing", f"Set stages.{next(iter(wanted))}.gpus: 0") if wanted else ("note", "")
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return Finding("gpus", state, "none found: every stage runs on CPUs", remedy or "Set stages.<stage>.gpus on a machine with one")
    query = [smi, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    out = subprocess.run(query, capture_output=True, text=True, timeout=SMI_SECONDS, check=False)
    if out.returncode != 0:
        return Finding("gpus", state, f"nvidia-smi ended with {out.returncode}: {out.stderr.strip() or out.stdout.strip()}", remedy)
    return Finding("gpus", "ok", out.stdout.strip().replace("\n", "; "))


def check_objects(settings: Settings) -> Finding:
    """Keeps an object and reads it back."""
    from raydex.cluster.objects import ObjectStore
    from raydex.ir.ids import content_hash

    if not settings.objects.keep_originals:
        return Finding(
            "objects", "note", "originals are not kept: `show` and `verify` read them where they lie", "Set objects.keep_originals"
        )
    data = b"raydex doctor"
    with tempfile.TemporaryDirectory() as folder:
        store = ObjectStore(settings.objects.uri or folder)
        store.get(store.put(data, content_hash(data)))
    return Finding("objects", "ok", settings.objects.uri or "in the lake's folder")


def check_vectors(settings: Settings) -> Finding:
    """A server is connected; the embedded store takes a row and finds it."""
    from raydex.jobs import servers

    if "://" in settings.stores.vectors:
        servers.check_vectors(settings.stores.vectors)
        return Finding("vector store", "ok", f"{settings.stores.vectors} answers, pymilvus {version('pymilvus')}")
    from raydex.cluster.vectors import VectorStore

    with tempfile.TemporaryDirectory() as folder, VectorStore(f"{folder}/vectors.db", "raydex_check", 2) as store:
        store.load(1, [[{"id": "chk_1", "doc_id": "rec_1", "embedding": [1.0, 0.0]}]], [])
        if [hit.chunk_id for hit in store.search([1.0, 0.0], 1, 1)] != ["chk_1"]:
            raise ConfigError("the embedded store does not find what was put into it", remedy="Run ./quickstart again")
    return Finding("vector store", "ok", f"milvus-lite {version('milvus-lite')} (embedded), pymilvus {version('pymilvus')}")


def check_graph() -> Finding:
    """The embedded store is built and read."""
    from raydex.cluster.graph_store import Marker, build_graph, open_graph
    from raydex.ir.rows import empty_table

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.lbug"
        build_graph(path, empty_table("nodes"), empty_table("edges"), empty_table("evidence"), Marker(1, "doctor", "doctor"))
        with open_graph(path) as graph:
            graph.counts()
    return Finding("graph store", "ok", f"ladybug {version('ladybug')} (embedded)")


def check_registry(settings: Settings) -> Finding:
    from sqlalchemy.engine import make_url

    from raydex.jobs import servers

    if settings.stores.registry:
        servers.check_registry(settings.stores.registry)
        return Finding("registry", "ok", f"{make_url(settings.stores.registry).render_as_string(hide_password=True)} answers")
    with tempfile.TemporaryDirectory() as folder:
        servers.check_registry(f"sqlite:///{folder}/registry.db")
    return Finding("registry", "ok", "SQLite (embedded)")


def check_isolation() -> Finding:
    from raydex.cluster.netless import network_isolation

    kind = network_isolation()
    remedy = "" if kind == "namespace" else "Unprivileged user namespaces give the stronger kind"
    return Finding("parser isolation", "ok", f"child processes without network ({kind})", remedy)


def check_memory() -> Finding:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    shm = shutil.disk_usage("/dev/shm").total / 1e9 if Path("/dev/shm").is_dir() else 0
    free = shutil.disk_usage(tempfile.gettempdir()).free / 1e9
    state = "ok" if pages >= 4 and free >= 2 else "note"
    return Finding("memory", state, f"{pages:.0f} GB memory, {shm:.0f} GB shared memory, {free:.0f} GB free for temporary files")


def check_git() -> Finding:
    if shutil.which("git"):
        return Finding("git", "ok", "repository names and commits are read")
    return Finding("git", "note", "not found: repositories are indexed as plain folders", "Install git")
