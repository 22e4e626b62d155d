"""Calls in a process of their own: the memory that embedded engines take is theirs, and what ends them does not end the caller.

Invariant: the process ends with its owner, however that ends; descriptors that it is given to hold (the lock of a lake) stay open until
then, so that nobody takes for free what is still written to.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self, TypeVar

from raydex.cluster.memory import give_memory_back
from raydex.cluster.prctl import PR_SET_PDEATHSIG, prctl
from raydex.ir.errors import AGAIN, CapacityError, StoreError

Result = TypeVar("Result")
END_SECONDS = 30.0


class Apart:
    """One process that calls functions for this one, one after the other; use it in a `with`.

    `preload` names modules that it imports at once, while its owner does something else; `hold` are descriptors to keep open. The thread
    that makes it has to outlive it: by that thread the kernel tells that the owner is gone.
    """

    def __init__(self, *, preload: Sequence[str] = (), hold: Sequence[int] = ()) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-P", "-m", "raydex.cluster.apart", str(theirs.fileno()), str(os.getpid()), *preload]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno(), *hold])
        theirs.close()
        self._connection = Connection(ours.detach())

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """`function(*arguments)`: a function of a module, arguments and result that can be pickled.

        Raises what it raises, with the other side's traceback as a note; CapacityError when the process was killed, as a machine does
        whose memory has run out; StoreError when it died otherwise.
        """
        try:
            self._connection.send((function, arguments))
            done, value = self._connection.recv()
        except (EOFError, ConnectionError) as error:
            raise self._death(function.__name__) from error
        if not done:
            raise value
        result: Result = value
        return result

    def _death(self, doing: str) -> CapacityError | StoreError:
        code = self._process.wait()
        if code == -signal.SIGKILL:
            return CapacityError(
                f"the process that did {doing} was killed, most likely because memory ran out",
                remedy=f"Give the machine more memory. {AGAIN}",
            )
        how = f"died by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return StoreError(f"the process that did {doing} {how}", remedy=AGAIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._connection.close()  # an idle process takes this for its end
        try:
            self._process.wait(0 if kind is not None else END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main(descriptor: int, owner: int, preload: Sequence[str]) -> None:
    """The process: answers until its owner is gone. Signals of the terminal are the owner's affair."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != owner:
        return  # it was gone before we asked to be told
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    give_memory_back()
    for name in preload:
        importlib.import_module(name)
    with Connection(descriptor) as connection:
        while True:
            try:
                function, arguments = connection.recv()
            except EOFError:
                return
            try:
                connection.send((True, function(*arguments)))
            except Exception as error:  # noqa: BLE001 - it is raised where the call came from
                connection.send((False, _portable(error)))


def _portable(error: Exception) -> Exception:
    """The error as it is where it survives the journey, else what it says; with the traceback of this side as a note."""
    note = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever an error of a library does when it is pickled
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"Where it was raised:\n{note}")
    return error


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
