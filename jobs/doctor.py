"""`raydex doctor`: is everything there that a run needs, and if not, what to do about it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from raydex.ir.errors import RaydexError


@dataclass(frozen=True, slots=True)
class Finding:
    """`state`: ok, missing (a run fails without it) or note (a run does without it)."""

    name: str
    state: str
    detail: str
    remedy: str = ""


def examine(*, fetch: bool = False) -> dict[str, Any]:
    """{ok, findings}: ok is False when something is missing that a run needs."""
    checks: tuple[Callable[[], Finding], ...] = (
        check_python,
        check_java,
        lambda: check_jars(fetch),
        check_model,
        check_gpus,
        check_vectors,
        check_graph,
        check_isolation,
        check_memory,
        check_git,
    )
    findings = [_guarded(check) for check in checks]
    return {"ok": all(f.state != "missing" for f in findings), "findings": [asdict(f) for f in findings]}


def _guarded(check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except (RaydexError, ImportError, OSError) as error:
        remedy = error.remedy if isinstance(error, RaydexError) else "Run ./quickstart again to set up the environment"
        return Finding(getattr(check, "__name__", "check").replace("check_", ""), "missing", str(error), remedy)


def check_python() -> Finding:
    here = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", "ok", f"{here}, raydex {version('raydex')}, ray {version('ray')}")


def check_java() -> Finding:
    from raydex.cluster.java import find_java

    java = find_java()
    return Finding("java", "ok", f"{java.version} in {java.home}" + (" (packaged)" if java.packaged else ""))


def check_jars(fetch: bool) -> Finding:
    from raydex.cluster.spark import fetch_jars, jars_ready

    if fetch:
        fetch_jars()
    if jars_ready():
        return Finding("spark jars", "ok", "GraphFrames and Delta are in the local cache")
    return Finding("spark jars", "note", "not fetched yet: the first projection fetches them", "raydex doctor --fetch")


def check_model() -> Finding:
    from raydex.kernels.embed import embedding_identity

    return Finding("embedding model", "ok", f"packaged, {embedding_identity('minilm')}")


def check_gpus() -> Finding:
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return Finding("gpus", "note", "none found: every stage runs on CPUs", "Set stages.<stage>.gpus on a machine with one")
    import subprocess

    out = subprocess.run(
        [smi, "--query-gpu=name,memory.total", "--format=csv,noheader"], capture_output=True, text=True, timeout=20, check=False
    )
    return Finding("gpus", "ok" if out.returncode == 0 else "note", out.stdout.strip().replace("\n", "; ") or out.stderr.strip())


def check_vectors() -> Finding:
    return Finding("vector store", "ok", f"milvus-lite {version('milvus-lite')} (embedded), pymilvus {version('pymilvus')}")


def check_graph() -> Finding:
    return Finding("graph store", "ok", f"ladybug {version('ladybug')} (embedded)")


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
