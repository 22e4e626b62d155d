"""Who writes to a lake, as the lock file names it, and whether that process is still there: a killed one leaves its name behind.

A process is known by its number and the moment it began, in ticks since the boot, so that another process that got the number later is not
taken for it. Of another host nothing can be told from here but what its last sign of life was.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

Life = Literal["alive", "gone", "elsewhere"]


@dataclass(frozen=True, slots=True)
class Writer:
    """`born` is the start of the process (boot, ticks); empty in a lock file of an older release."""

    run_id: str
    pid: int
    host: str
    started: str
    born: str = ""

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def __str__(self) -> str:
        return f"{self.run_id}, process {self.pid} on {self.host}, since {self.started}"

    @property
    def life(self) -> Life:
        if self.host != socket.gethostname():
            return "elsewhere"
        born = _born(self.pid)
        return "alive" if born and self.born in ("", born) else "gone"


def this_process(run_id: str) -> Writer:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return Writer(run_id, os.getpid(), socket.gethostname(), started, _born(os.getpid()))


def decode(raw: bytes) -> Writer | None:
    """None for an empty file, or one that says nothing that can be read."""
    try:
        about: dict[str, Any] = json.loads(raw)
        return Writer(str(about["run_id"]), int(about["pid"]), str(about["host"]), str(about["started"]), str(about.get("born", "")))
    except (ValueError, KeyError, TypeError):
        return None


def _born(pid: int) -> str:
    """Empty for a process that is not there, or that has ended and waits for its parent to take notice."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in (b"Z", b"X") else f"{boot} {int(fields[19])}"
