"""Memory of the processes that do not compute all the time: what they no longer use goes back to the machine."""

from __future__ import annotations

import pyarrow as pa


def give_memory_back() -> None:
    """Arrow's own allocator keeps what it once had, for speed; a driver and what it runs apart hold a few large tables, one at a time."""
    pa.set_memory_pool(pa.system_memory_pool())
