"""The mark of a run in flight: made before the first write, removed after the last. A mark found at start means a killed run."""

from __future__ import annotations

from raydex.cluster.files import write_file
from raydex.cluster.lake import Lake

NAME = "UNFINISHED"


def mark_unfinished(lake: Lake, run_id: str) -> None:
    write_file(lake.root / NAME, run_id.encode() + b"\n")


def unfinished_run(lake: Lake) -> str | None:
    """Run id of the run that did not finish, None when the last one did."""
    try:
        return (lake.root / NAME).read_text().strip()
    except FileNotFoundError:
        return None


def clear_unfinished(lake: Lake) -> None:
    (lake.root / NAME).unlink(missing_ok=True)
