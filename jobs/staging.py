"""The lake's staging folder: what one run leaves for its own workers (page ranges, the index of known vectors) and nobody reads after it.

The invariant: under the lake's lock nothing in it belongs to another run that is alive, so a run empties it when it starts, of what a
killed one left, and when it ends.
"""

from __future__ import annotations

import shutil

from raydex.cluster.lake import Lake


def empty_staging(lake: Lake) -> None:
    """Removes all that lies in the folder; the caller holds the lake's lock. A folder into which a worker that has not ended yet still
    writes is left to the next run."""
    for path in lake.staging.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
