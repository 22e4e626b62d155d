"""A process for calls: results and errors come back, its death is named, and it dies with its owner."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from raydex.cluster.apart import Apart
from raydex.ir.errors import CapacityError, StoreError

OWNER = """
import fcntl, os, sys, time
from raydex.cluster.apart import Apart
lock = os.open(sys.argv[1], os.O_RDWR)
fcntl.flock(lock, fcntl.LOCK_EX)
with Apart(hold=[lock]) as apart:
    print(apart.call(os.getpid), flush=True)
    if sys.argv[2] == "free":
        os.close(lock)
        sys.stdin.readline()
    apart.call(time.sleep, 600)
"""


@pytest.fixture
def apart():
    with Apart() as apart:
        yield apart


def test_calls_are_made_elsewhere_one_after_the_other(apart: Apart) -> None:
    assert apart.call(os.getpid) == apart.call(os.getpid) != os.getpid()
    assert apart.call(divmod, 7, 2) == (3, 1)


def test_an_error_comes_back_as_it_was_with_its_traceback(apart: Apart) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        apart.call(os.stat, "/nowhere/at/all")
    assert caught.value.filename == "/nowhere/at/all"
    assert "raydex.cluster.apart" in caught.value.__notes__[0] or "apart.py" in caught.value.__notes__[0]
    assert apart.call(abs, -1) == 1  # it goes on


def test_what_cannot_be_pickled_is_an_error_of_the_call_alone(apart: Apart) -> None:
    with pytest.raises(TypeError, match="pickle"):
        apart.call(memoryview, b"abc")
    assert apart.call(abs, -1) == 1


@pytest.mark.parametrize(("number", "wanted", "said"), [(signal.SIGKILL, CapacityError, "memory"), (signal.SIGSEGV, StoreError, "SIGSEGV")])
def test_its_death_is_named(number: int, wanted: type[Exception], said: str) -> None:
    with Apart() as apart:
        pid = apart.call(os.getpid)
        with pytest.raises(wanted, match=said):
            apart.call(os.kill, pid, number)
        with pytest.raises(wanted, match=said):  # and stays so
            apart.call(os.getpid)


def test_signals_of_the_terminal_are_the_owners_affair(apart: Apart) -> None:
    pid = apart.call(os.getpid)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(pid, number)
    assert apart.call(os.getpid) == pid


def test_an_owner_that_gives_up_does_not_wait_for_it() -> None:
    pid = 0
    with pytest.raises(KeyError), Apart() as apart:
        pid = apart.call(os.getpid)
        apart._connection.send((time.sleep, (600,)))
        raise KeyError
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("waiting", ["busy", "free"])
def test_it_dies_with_its_owner_and_holds_the_lock_until_then(tmp_path: Path, waiting: str) -> None:
    path = tmp_path / "lock"
    path.touch()
    with open(path) as lock:
        owner = subprocess.Popen(
            [sys.executable, "-c", OWNER, str(path), waiting], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, close_fds=True
        )
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of the process, where the owner has let go of it
        owner.kill()
        owner.communicate()
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits for the kernel to end it, not for the 600 s
        assert not Path(f"/proc/{pid}/fd").exists() or not os.listdir(f"/proc/{pid}/fd")
