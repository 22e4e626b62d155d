"""A path → an exclusive lock between processes, held by the kernel: it is free at once when its holder dies (contracts 12, 36).

The invariant: whoever does not get the lock is told who holds it, after a bounded wait, and has changed nothing.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from raydex.ir.errors import LockError

POLL_S = 0.02


class Busy(LockError):
    """The store cannot be owned now: another process holds it, or its folder cannot be written."""


class StoreLock:
    """`take` waits up to `wait_s` seconds and raises Busy; `free` may be called twice."""

    def __init__(self, path: str | os.PathLike[str], wait_s: float) -> None:
        self.path = os.fspath(path)
        self.wait_s = wait_s
        self._file: int | None = None

    @property
    def held(self) -> bool:
        return self._file is not None

    def take(self) -> None:
        if self._file is not None:
            return
        try:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            message = f"the store's folder cannot be written: {error.strerror}"
            raise Busy(message, place=self.path, remedy="Search the pinned vectors instead, or make the folder writable") from error
        deadline = time.monotonic() + self.wait_s
        while not _locked(handle):
            if time.monotonic() >= deadline:
                holder = os.pread(handle, 200, 0).decode("utf-8", "replace").strip() or "another process"
                os.close(handle)
                raise Busy(f"{holder} holds the store", place=self.path, remedy="Wait for it to end, or search the pinned vectors instead")
            time.sleep(POLL_S)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()}\n".encode(), 0)
        self._file = handle

    def free(self) -> None:
        """The file stays: removing it would let two holders lock two files of one name."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
