"""`shared/cases`: small inputs that broke other tools. They lie beside the checkout, not in it, so that a test may have to do without."""

from __future__ import annotations

from pathlib import Path

import pytest

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="shared/cases is not beside this checkout")


def case(name: str) -> Path:
    """The file or folder of a case; skips the test where there are no cases at all, and fails it where only this one is missing."""
    if not CASES.is_dir():
        pytest.skip("shared/cases is not beside this checkout")
    path = CASES / name
    assert path.exists(), f"shared/cases holds no {name}"
    return path
