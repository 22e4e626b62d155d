"""The process behind `ParseChild`: a nursery that forks warm children, and the child that parses documents in turn (contracts 21).

The nursery is started clean, without network, imports what all children need, and then only forks, kills and reaps: it never reads a
document. A child serves one socket: request in, IR tables out as Arrow record batches. It ends itself when its memory may be in disorder
or when a parser left something behind, and its end comes after the reply.

Invariant: nothing outlives the owner. The nursery sees the end of its control socket, kills the child with all of its descendants, removes
their files and exits; a child dies with its nursery.
"""

from __future__ import annotations

import gc
import io
import json
import locale
import os
import pickle
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from raydex.cluster.netless import leave_network
from raydex.cluster.prctl import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, prctl

REQUEST = struct.Struct("<QQ")  # bytes of the pickled question, bytes of the document
REPLY = struct.Struct("<QQ")  # bytes of the JSON head, bytes of the record batches
OWNER_CHECK_MS = 2_000
OPEN_FILES = 256
TEMPORARY_BYTES = 2_000_000_000
CPU_GRACE = 10


def main() -> None:
    """`isolation_child CONTROL_FD [PACKAGE…]`: the nursery's loop, until its owner is gone; packages named cannot be imported."""
    control = socket.socket(fileno=int(sys.argv[1]))
    owner = os.getppid()
    network = leave_network()
    sys.meta_path.insert(0, _KeepOut(frozenset(sys.argv[2:])))
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    home = tempfile.mkdtemp(prefix="raydex-parse-")
    try:
        _tell(control, {"network": network, "home": home})
        _nurse(control, owner, home)
    finally:
        _end_descendants()
        shutil.rmtree(home, ignore_errors=True)


class _KeepOut:
    """An import hook that hides packages."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in self.names:
            raise ModuleNotFoundError(f"{name} is kept out of parser processes", name=name)


def _nurse(control: socket.socket, owner: int, home: str) -> None:
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner decides what Ctrl-C means
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wake_read, select.POLLIN)
    pid = 0
    folder = ""
    while os.getppid() == owner:
        ready = {fd for fd, _ in poll.poll(OWNER_CHECK_MS)}
        if wake_read in ready:
            os.read(wake_read, 4096)
        if pid:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                pid = 0
                _end_descendants()
                shutil.rmtree(folder, ignore_errors=True)
                _tell(control, {"ended": status})
        else:
            _reap()
        if control.fileno() not in ready:
            continue
        message, fds, _, _ = socket.recv_fds(control, 65536, 1)
        if not message:
            return
        order = json.loads(message)
        if order["do"] == "kill" and pid:
            os.kill(pid, signal.SIGKILL)
        elif order["do"] == "spawn":
            folder = tempfile.mkdtemp(dir=home)
            _load(order["modules"])
            pid = os.fork()
            if pid == 0:
                poll.unregister(control)
                control.close()
                os.close(wake_read)
                signal.set_wakeup_fd(-1)
                os.close(wake_write)
                _be_child(socket.socket(fileno=fds[0]), order, folder)
            for fd in fds:
                os.close(fd)
            _tell(control, {"spawned": pid})


def _load(modules: list[str]) -> None:
    """Imports once what every child will need; frozen, so that collecting garbage does not copy the shared pages."""
    for name in modules:
        if name in sys.modules:
            continue
        try:
            import_module(name)
        except (ImportError, SyntaxError, OSError):  # the child meets it again, and says so for its document
            continue
    gc.freeze()


def _tell(control: socket.socket, message: dict[str, Any]) -> None:
    try:
        control.send(json.dumps(message).encode())
    except BrokenPipeError:
        raise SystemExit(0) from None  # the owner is gone


def _end_descendants() -> None:
    """Kills whatever the last child left running: as the subreaper, this process is the parent of every orphan."""
    for _ in range(100):
        _reap()
        children = _children()
        if not children:
            return
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)  # orphans of the killed arrive one generation a round


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return []


def _reap() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def _be_child(channel: socket.socket, order: dict[str, Any], folder: str) -> NoReturn:
    """The forked child: serves until told otherwise. An error that a parser lets out is its last reply, and its end."""
    code = 1
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.chdir(folder)
        os.environ.update(TMPDIR=folder, TEMP=folder, TMP=folder)
        tempfile.tempdir = folder
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (TEMPORARY_BYTES, TEMPORARY_BYTES))
        serve(channel, order["target"], order["documents"], folder, watched=order["watched"])
        code = 0
    finally:
        try:
            error = sys.exc_info()[1]
            if isinstance(error, Exception) and not isinstance(error, (BrokenPipeError, ConnectionResetError)):
                _send_failure(channel, "internal", _where(error), "an error that no parser should let out")
        finally:
            os._exit(code)


def _where(error: BaseException) -> str:
    """Type and place of an error; never its message, which may quote the document (no document text in logs)."""
    trace = error.__traceback__
    place = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        place = f"{os.path.basename(code.co_filename)}:{trace.tb_lineno} in {code.co_name}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}"


def serve(channel: socket.socket, target: str, documents: int, folder: str, *, watched: bool = False) -> None:
    """Parses what the socket asks for, one document after the other, at most `documents`. `watched`: the owner bounds the memory."""
    from dataclasses import replace

    from raydex.cluster.faults import fault_point

    module, _, function = target.partition(":")
    parse: Callable[[Any], Any] = getattr(import_module(module), function)
    state = _state()
    for served, (request, stamp) in enumerate(_requests(channel), 1):
        _limit(request.limits, watched)
        started = time.perf_counter()
        try:
            fault_point("parse", request.path)
            parsed = parse(replace(request, emit=partial(_send_member, channel)))
            for member in parsed.members:
                _send_member(channel, member)
            for asset_id, data in parsed.blobs.items():
                _send_reply(channel, {"part": "asset", "asset_id": asset_id}, [memoryview(data)])
            head, batches = encode_reply(parsed, stamp, started)
        except MemoryError:
            _send_failure(channel, "memory", "", f"the address space is full: limits.memory_bytes ({request.limits.memory_bytes})")
            return
        left = _left_behind(state, folder)
        head["last"] = left or ("documents" if served >= documents else "")
        _send_reply(channel, head, batches)
        if head["last"]:
            return


def _requests(channel: socket.socket) -> Iterator[tuple[Any, Any]]:
    """Questions of the owner, which is trusted: they are pickled."""
    from dataclasses import replace

    while True:
        head = _receive(channel, REQUEST.size)
        if head is None:
            return
        asked, size = REQUEST.unpack(head)
        question = _receive(channel, asked)
        if question is None:
            return
        request, stamp = pickle.loads(question)
        data = _receive(channel, size)
        if data is None:
            return
        yield replace(request, data=data), stamp


def _receive(channel: socket.socket, size: int) -> bytes | None:
    """Exactly `size` bytes, or None when the owner has closed the socket."""
    data = channel.recv(size, socket.MSG_WAITALL) if size else b""
    while len(data) < size:
        more = channel.recv(size - len(data), socket.MSG_WAITALL)
        if not more:
            return None
        data += more
    return data


def encode_reply(parsed: Any, stamp: Any, started: float) -> tuple[dict[str, Any], list[Any]]:
    """ParsedFile → JSON head and one serialised record batch a table."""
    from raydex.ir.rows import parse_tables

    ms = (time.perf_counter() - started) * 1000
    listed = []
    buffers = []
    for name, table in parse_tables(parsed, stamp, ms).items():
        for batch in table.to_batches():
            buffer = batch.serialize()
            listed.append([name, buffer.size])
            buffers.append(buffer)
    return {"ms": ms, "tables": listed}, buffers


def _send_member(channel: socket.socket, member: Any) -> None:
    """A frame of its own, before the reply and as soon as there is one: neither side has all members at once."""
    about = {name: getattr(member, name) for name in ("step", "name", "media_type", "inside", "reject_class", "error")}
    _send_reply(channel, {"part": "member", **about}, [memoryview(member.data)])


def _send_reply(channel: socket.socket, head: dict[str, Any], buffers: list[Any]) -> None:
    text = json.dumps(head).encode()
    parts = [REPLY.pack(len(text), sum(memoryview(buffer).nbytes for buffer in buffers)) + text, *buffers]
    for at in range(0, len(parts), 512):  # the kernel takes at most 1,024 parts a call
        _send_all(channel, parts[at : at + 512])


def _send_all(channel: socket.socket, parts: list[Any]) -> None:
    views = [memoryview(part).cast("B") for part in parts]
    if sum(len(view) for view in views) < 65536:
        channel.sendall(b"".join(views))
        return
    for view in views:
        channel.sendall(view)


def _send_failure(channel: socket.socket, reject_class: str, where: str, message: str) -> None:
    error = f"{message}: {where}" if where else message
    _send_reply(channel, {"failed": reject_class, "error": error, "last": reject_class, "ms": 0.0, "tables": []}, [])


def _limit(limits: Any, watched: bool) -> None:
    """Address space as asked, unless the owner watches; processor time as a second net below the owner's clock."""
    if not watched:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        room = limits.memory_bytes if hard == resource.RLIM_INFINITY else min(limits.memory_bytes, hard)
        resource.setrlimit(resource.RLIMIT_AS, (room, hard))
    spent = time.process_time()
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(spent + limits.seconds) + CPU_GRACE, hard))


def _state() -> tuple[Any, ...]:
    """What a parser must not change: folder, environment, locale, threads, signals, streams, recursion limit."""
    return (
        os.getcwd(),
        dict(os.environ),
        locale.setlocale(locale.LC_ALL),
        threading.active_count(),
        signal.getsignal(signal.SIGTERM),
        signal.getitimer(signal.ITIMER_REAL)[0] > 0,
        sys.getrecursionlimit(),
        _umask(),
        len(sys.path),
        id(sys.stdout),
        id(io.open),
    )


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


STATE_NAMES = (
    "working folder",
    "environment",
    "locale",
    "threads",
    "signal handler",
    "timer",
    "recursion limit",
    "umask",
    "module path",
    "standard output",
    "open",
)


def _left_behind(before: tuple[Any, ...], folder: str) -> str:
    """What the parser left behind: a word, or nothing. Temporary files go at once."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)
    try:
        os.waitpid(-1, os.WNOHANG)
        return "child processes"
    except ChildProcessError:
        pass
    try:
        after = _state()
    except FileNotFoundError:
        return "working folder"
    if after == before:
        return ""
    return next(name for name, was, now in zip(STATE_NAMES, before, after, strict=True) if was != now)


if __name__ == "__main__":
    main()
