"""Named points in the code → failures on demand, for fault tests (reliability §5: KILL, HANG, RAISE, BLOAT).

Nothing happens unless the environment asks for it:
- `RAYDEX_FAULT`: `point:action[:n][:match]`, several by comma. `point` may hold `*` and colons; `action` is one of `ACTIONS`; `n` is the
  hit (1-based, default 1) that fails, or `*` for every one; only hits whose key contains `match` count.
- `RAYDEX_FAULT_LOG`: a file that gets one line (name, count in this process, process id, key; by tab) for every point passed.
- `RAYDEX_FAULT_STATE`: a folder where a fault leaves a mark before it fires, so that it fires once over all processes.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import threading
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from raydex.ir.errors import ConfigError

ACTIONS = ("kill", "exit", "raise", "hang", "bloat", "segfault")
EXIT_CODE = 41
BLOAT_STEP = 64_000_000
BLOAT_CAP = 8_000_000_000

_hits: dict[tuple[str, str], int] = {}
_passed: dict[str, int] = {}
_lock = threading.Lock()


class InjectedFault(RuntimeError):
    """What the action `raise` raises: of no class that the code expects."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`hit` 0 means every hit. `text` is the specification as given."""

    text: str
    point: str
    action: str
    hit: int
    match: str


def fault_point(name: str, key: str = "") -> None:
    """A place where a test may ask for a failure. `key` says what is at work there (a path, a table), for `match`."""
    if "RAYDEX_FAULT" in os.environ or "RAYDEX_FAULT_LOG" in os.environ:
        _pass(name, key)


def parse_faults(text: str) -> list[Fault]:
    """`RAYDEX_FAULT` → faults. Raises ConfigError."""
    return [_parse(part.strip()) for part in text.split(",") if part.strip()]


def _parse(text: str) -> Fault:
    words = text.split(":")
    at = next((i for i, word in enumerate(words) if word in ACTIONS and i > 0), None)
    if at is None:
        raise ConfigError(
            f"RAYDEX_FAULT has no action in {text!r}", remedy=f"Write point:action[:n][:match] with one of {', '.join(ACTIONS)}"
        )
    point, rest = ":".join(words[:at]), words[at + 1 :]
    hit = 1
    if rest and re.fullmatch(r"\*|[1-9][0-9]*", rest[0]):
        first = rest.pop(0)
        hit = 0 if first == "*" else int(first)
    return Fault(text, point, words[at], hit, ":".join(rest))


def _pass(name: str, key: str) -> None:
    log = os.environ.get("RAYDEX_FAULT_LOG")
    with _lock:
        _passed[name] = _passed.get(name, 0) + 1
        count = _passed[name]
    if log:
        line = f"{name}\t{count}\t{os.getpid()}\t{key}".replace("\n", " ") + "\n"
        with open(log, "a", encoding="utf-8", errors="backslashreplace") as out:
            out.write(line)
    for fault in parse_faults(os.environ.get("RAYDEX_FAULT", "")):
        if fnmatchcase(name, fault.point) and fault.match in key and _is_due(fault):
            _fire(fault, name, key)


def _is_due(fault: Fault) -> bool:
    with _lock:
        spot = (fault.text, str(os.getpid()))  # a forked child starts its own count
        _hits[spot] = _hits.get(spot, 0) + 1
        if fault.hit not in (0, _hits[spot]):
            return False
    state = os.environ.get("RAYDEX_FAULT_STATE")
    return state is None or _mark(Path(state), fault)


def _mark(state: Path, fault: Fault) -> bool:
    """Whether this process is the first to fire the fault."""
    state.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", fault.text)[:200]
    try:
        os.close(os.open(state / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        return False
    return True


def _fire(fault: Fault, name: str, key: str) -> None:
    if fault.action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault.action == "exit":
        os._exit(EXIT_CODE)
    elif fault.action == "raise":
        raise InjectedFault(f"fault at {name} ({key})")
    elif fault.action == "segfault":
        ctypes.string_at(0)
    elif fault.action == "bloat":
        _bloat()
    while True:  # a hang, and what follows a signal that is not delivered yet
        threading.Event().wait(3600)


def _bloat() -> None:
    """Takes memory and touches it, up to `BLOAT_CAP`; ends in MemoryError where no limit struck before."""
    held = [bytearray(BLOAT_STEP)]
    while sum(map(len, held)) < BLOAT_CAP:
        block = bytearray(BLOAT_STEP)
        block[::4096] = b"x" * len(block[::4096])
        held.append(block)
    raise MemoryError(f"{BLOAT_CAP} bytes were taken and no limit struck")
