"""The rules of the repository that a test can keep: layers, module size, generated files, host-free locks, start time of the CLI."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from raydex.ir.schema import ir_schema, tables_markdown

ROOT = Path(__file__).parents[1]
LAYERS = {
    "ir": {"ir"},
    "kernels": {"ir", "kernels"},
    "cluster": {"ir", "cluster"},
    "configs": {"ir", "kernels", "configs"},
    "jobs": {"ir", "kernels", "cluster", "configs", "jobs"},
}
ENGINES = {"ray", "pyspark", "graphframes", "pymilvus", "ladybug", "deltalake", "sqlalchemy"}
MODULES = sorted(path for layer in LAYERS for path in (ROOT / layer).glob("**/*.py"))


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names if node.module == "raydex")
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module_keeps_the_layers_and_the_size(path: Path) -> None:
    layer = path.relative_to(ROOT).parts[0]
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "raydex" and len(parts) > 1:
            assert parts[1] in LAYERS[layer], f"{layer} must not import {name}"
        if layer in ("ir", "kernels"):
            assert parts[0] not in ENGINES, f"{layer} must not import {name}"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500
    assert not (path.parent / "__init__.py").exists()


def test_generated_files_are_current() -> None:
    assert json.loads((ROOT / "ir" / "schema.json").read_text()) == json.loads(json.dumps(ir_schema())), "run scripts/generate"
    assert (ROOT / "docs" / "tables.md").read_text() == tables_markdown(), "run scripts/generate"


def test_locks_are_hashed_and_name_no_host() -> None:
    locks = sorted((ROOT / "locks").glob("*.txt"))
    assert {path.stem for path in locks} == {"base", "vllm", "vllm-cpu", "surya"}
    for path in locks:
        text = path.read_text()
        assert not re.search(r"https?://|--index-url|--extra-index-url|--find-links", text)
        pins = re.findall(r"^[a-z0-9][^\s=]*==[^\s;\\]+(?: ; [^\\\n]*)? \\\n    --hash=sha256:", text, re.M)
        assert len(pins) == len(re.findall(r"^[a-z0-9][^\s=]*==", text, re.M)) > 50


def test_the_command_line_loads_no_engine() -> None:
    heavy = sorted(ENGINES | {"torch", "transformers", "pyarrow", "polars", "numpy", "docling"})
    code = f"import sys, raydex.jobs.cli; print(sorted({{m.split('.')[0] for m in sys.modules}} & set({heavy})))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_ci_runs_the_tests_and_nothing_else() -> None:
    lines = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line and not line.startswith("#")]
    assert lines == ["exec ./test"]
