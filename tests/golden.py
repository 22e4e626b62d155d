"""The one way to compare a result with a golden file: equal, or rewritten on request (`GOLDEN=write`), and then the test fails.

A rewritten file is never a passed test: look at the diff and run again without the variable.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "golden"


def is_writing() -> bool:
    return os.environ.get("GOLDEN") == "write"


def assert_golden(name: str, value: Any) -> None:
    """`value` (plain JSON values) equals tests/golden/NAME.json."""
    path = FOLDER / f"{name}.json"
    text = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    if is_writing():
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path.name} was rewritten: look at the diff and run again without GOLDEN")
    assert path.exists(), f"{path.name} is missing: run once with GOLDEN=write"
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(text)
