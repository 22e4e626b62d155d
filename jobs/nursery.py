"""The owner's side of the nursery and its child: sockets, clocks, and what an end without an answer means.

A `Nursery` is one process that forks (`isolation_child`); a `Lease` is one forked child with its socket. Questions are
written and replies read as the socket allows, and neither waits for the other, since both may be larger than what it holds.

Invariant: when a lease is closed, its child has been reaped with all of its descendants, or its nursery is dead, which kills the child.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections import deque
from dataclasses import dataclass
from typing import Any

from raydex.ir.errors import StoreError
from raydex.jobs.isolation_child import REPLY

REPLY_BYTES = 2_000_000_000
START_SECONDS = 120.0
END_SECONDS = 30.0
TRANSFER_SECONDS = 30.0
TAIL_BYTES = 4096
WATCH_SECONDS = 0.05
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# what native libraries print before they abort for want of memory
MEMORY_MARKS = (b"bad_alloc", b"memory allocation of", b"out of memory", b"Out of memory", b"Cannot allocate memory", b"MemoryError")
# the environment of a child: no credentials
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "SYSTEMROOT")
KEPT_PREFIXES = ("LC_", "RAYDEX_FAULT")
SET_VARIABLES = {
    # one thread, so that the nursery may fork, and little address space before the first document
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "MALLOC_ARENA_MAX": "2",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True, slots=True)
class ChildKind:
    """What a nursery's children are. `resident_bytes`: the owner watches the memory that a child holds and kills it above that, for
    libraries that cannot even start under a limit of address space; 0 keeps that limit. `variables` are added to the environment,
    `kept_out` names packages that the children cannot import."""

    resident_bytes: int = 0
    variables: tuple[tuple[str, str], ...] = ()
    # pyarrow imports it at the first conversion where it is installed: a second and 100 MB that none of our parsers needs
    kept_out: tuple[str, ...] = ("pandas",)


OWN_PARSERS = ChildKind()


@dataclass(slots=True)
class Failure:
    """How a child ended instead of answering."""

    reject_class: str
    error: str


class Nursery:
    """The process that forks children; the owner's side of its control socket."""

    def __init__(self, kind: ChildKind = OWN_PARSERS) -> None:
        self.kind = kind
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output, their_output = os.pipe()
        os.set_blocking(output, False)
        command = [sys.executable, "-P", "-X", "faulthandler", "-m", "raydex.jobs.isolation_child"]
        command += [str(theirs.fileno()), *kind.kept_out]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=their_output,
            stderr=their_output,
            pass_fds=[theirs.fileno()],
            env={**_environment(), **dict(kind.variables)},
            start_new_session=True,
        )
        theirs.close()
        os.close(their_output)
        self.control = ours
        self.output = output
        self.tail = b""
        self._homes: list[str] = []
        self._finalizer = weakref.finalize(self, _end, self.process, ours, output, self._homes)
        ready = self.hear(START_SECONDS)
        self.network: str = ready["network"]
        self._homes.append(ready["home"])

    def alive(self) -> bool:
        return self.process.poll() is None

    def order(self, message: dict[str, Any], fds: list[int]) -> bool:
        """False when the nursery is gone."""
        try:
            socket.send_fds(self.control, [json.dumps(message).encode()], fds)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def hear(self, seconds: float) -> dict[str, Any]:
        """The next message. Raises StoreError when none comes: the nursery reads no document, so this is a fault of the machine."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        deadline = time.monotonic() + seconds
        while not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            self.drain()
            if time.monotonic() >= deadline:
                break
        message = self.receive() if poll.poll(0) else b""
        if not message:
            self.drain()
            raise StoreError(
                f"the process that forks parsers gave no answer: {self.tail[-500:].decode(errors='replace').strip() or 'it said nothing'}",
                remedy="Check that this Python can start processes and that memory is left",
            )
        heard: dict[str, Any] = json.loads(message)
        return heard

    def receive(self) -> bytes:
        """A message that is there; nothing when the nursery is gone."""
        try:
            return self.control.recv(65536, socket.MSG_DONTWAIT)
        except ConnectionResetError:
            return b""

    def drain(self) -> None:
        """Keeps the end of what the processes print, and never lets the pipe fill up."""
        while True:
            try:
                more = os.read(self.output, 65536)
            except BlockingIOError:
                return
            if not more:
                return
            self.tail = (self.tail + more)[-TAIL_BYTES:]

    def close(self) -> None:
        self._finalizer()


def _end(process: subprocess.Popen[bytes], control: socket.socket, output: int, homes: list[str]) -> None:
    """The nursery ends itself and cleans up when its control socket closes; one that was killed is cleaned up after."""
    control.close()
    os.close(output)
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for home in homes:
        shutil.rmtree(home, ignore_errors=True)


class Lease:
    """The owner's side of one child: questions go out and the reply comes in without either blocking the other."""

    def __init__(self, nursery: Nursery, order: dict[str, Any]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.nursery = nursery
        nursery.tail = b""
        self._most = nursery.kind.resident_bytes
        sent = nursery.order({"do": "spawn", "watched": self._most > 0, **order}, [theirs.fileno()])
        theirs.close()
        self.ended = False
        self.status: int | None = None
        self.channel = ours
        ours.setblocking(False)
        heard = nursery.hear(START_SECONDS) if sent else {}
        self._pid = int(heard.get("spawned", 0))
        if not self._pid:
            ours.close()
            raise StoreError("no parser process could be forked", remedy="Check the limits on processes and memory of this machine")
        self.asked = 0
        self._begun = time.monotonic()
        self._out: deque[memoryview] = deque()
        self._head = bytearray()
        self._body: bytearray | None = None
        self._filled = 0
        self._poll = select.poll()
        self._poll.register(ours, select.POLLIN)
        self._poll.register(nursery.control, select.POLLIN)
        self._poll.register(nursery.output, select.POLLIN)

    def ask(self, frames: list[memoryview]) -> None:
        """Puts a question in line; it is written while answers are awaited."""
        if self.asked == 0:
            self._begun = time.monotonic()
        self.asked += 1
        self._out.extend(frames)

    def answer(self, seconds: float, memory_bytes: int) -> tuple[bytes, memoryview] | Failure:
        """Head and body of the next frame, or how the child ended. A document's clock starts with the frame before."""
        deadline = self._begun + seconds
        receiving = False
        while True:
            self._write()
            try:
                reply = self._read()
            except ValueError:
                return Failure("crash", "the reply of the parser process is not understood")
            if reply is not None:
                self._begun = time.monotonic()
                return reply
            if self.ended:
                return self._cause(seconds, memory_bytes)
            now = time.monotonic()
            if self._head and not receiving:
                receiving = True
                deadline = max(deadline, now + TRANSFER_SECONDS)
            if now >= deadline:
                return Failure("timeout", f"no result within limits.seconds ({seconds:g} s)")
            self._poll.modify(self.channel, select.POLLIN | (select.POLLOUT if self._out else 0))
            if self._most and _resident_bytes(self._pid) > self._most:
                return Failure("memory", f"the parser process held more than {self._most} bytes of memory")
            patience = min(deadline - now, WATCH_SECONDS) if self._most else deadline - now
            ready = {fd for fd, _ in self._poll.poll(patience * 1000 + 1)}
            self.nursery.drain()
            if self.nursery.control.fileno() in ready:
                self._read_control()

    def settle(self) -> None:
        """The oldest question has had its last answer."""
        self.asked -= 1

    def _write(self) -> None:
        while self._out and not self.ended:
            try:
                count = self.channel.send(self._out[0], socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            except (BrokenPipeError, ConnectionResetError):
                self._out.clear()
                return
            if count == len(self._out[0]):
                self._out.popleft()
            else:
                self._out[0] = self._out[0][count:]

    def _read(self) -> tuple[bytes, memoryview] | None:
        """A whole reply, or None. Raises ValueError for one that is too large to be true."""
        if self._body is None:
            more = self._receive(REPLY.size - len(self._head))
            self._head += more
            if len(self._head) < REPLY.size:
                return None
            text, batches = REPLY.unpack(self._head)
            if text + batches > REPLY_BYTES:
                raise ValueError("oversized reply")
            self._body = bytearray(text + batches)
            self._filled = 0
        view = memoryview(self._body)
        while self._filled < len(view):
            try:
                count = self.channel.recv_into(view[self._filled :])
            except BlockingIOError:
                return None
            except ConnectionResetError:
                count = 0
            if count == 0:
                self._finish()
                return None
            self._filled += count
        text, _ = REPLY.unpack(self._head)
        self._head = bytearray()
        self._body = None
        return bytes(view[:text]), view[text:]

    def _receive(self, size: int) -> bytes:
        try:
            more = self.channel.recv(size)
        except BlockingIOError:
            return b""
        except ConnectionResetError:
            more = b""
        if not more:
            self._finish()
        return more

    def _read_control(self) -> None:
        message = self.nursery.receive()
        self.ended = True
        self.status = json.loads(message)["ended"] if message else None

    def _finish(self) -> None:
        """The child is gone, or must be: after this `ended` holds, and the nursery has reaped it with its descendants."""
        if self.ended:
            return
        if self.nursery.order({"do": "kill"}, []):
            try:
                self.status = self.nursery.hear(END_SECONDS)["ended"]
            except StoreError:
                self.nursery.process.kill()
        self.ended = True

    def _cause(self, seconds: float, memory_bytes: int) -> Failure:
        self.nursery.drain()
        if any(mark in self.nursery.tail for mark in MEMORY_MARKS):
            return Failure("memory", f"the parser process met limits.memory_bytes ({memory_bytes})")
        if self.status is None:
            return Failure("crash", "the parser process is gone")
        if os.WIFSIGNALED(self.status):
            number = os.WTERMSIG(self.status)
            if number == signal.SIGXCPU:
                return Failure("timeout", f"the parser process took more processor time than limits.seconds ({seconds:g})")
            return Failure("crash", f"the parser process died by {signal.Signals(number).name}")
        return Failure("crash", f"the parser process ended with code {os.waitstatus_to_exitcode(self.status)}")

    def close(self) -> None:
        self.channel.close()
        self._finish()


def _resident_bytes(pid: int) -> int:
    """0 for a process that is gone."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * PAGE_BYTES
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)}
    return {**kept, **SET_VARIABLES}
