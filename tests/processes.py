"""Python code run in a process of its own, for tests of kills, limits and exit codes."""

from __future__ import annotations

import os
import subprocess
import sys

NO_PANDAS = """
import sys
class NoPandas:  # pyarrow imports pandas, for seconds and nothing, wherever it is there
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ImportError(name)
sys.meta_path.insert(0, NoPandas())
"""


def run_python(code: str, *arguments: object, pandas: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the code with `arguments` as sys.argv[1:] and `environment` added; without pandas unless a test is about that."""
    command = [sys.executable, "-c", code if pandas else NO_PANDAS + code, *map(str, arguments)]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)
