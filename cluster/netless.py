"""No network for the processes that read hostile files (contracts 21).

A process that calls `leave_network` loses every route: it moves into a network namespace of its own, which holds nothing but a loopback
device that is down. An audit hook also refuses to connect, bind or look up names, which covers sockets of the file system, and stands alone
where the kernel grants no namespace.

Invariant: after `leave_network` returns, no Python code of the process reaches a socket that was not open before.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from functools import lru_cache
from typing import Literal

from raydex.ir.errors import StoreError

Isolation = Literal["namespace", "audit hook"]

SECONDS = 60
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
REFUSED = frozenset(
    {
        "socket.connect",
        "socket.bind",
        "socket.sendto",
        "socket.sendmsg",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
        "socket.getnameinfo",
    }
)


def leave_network(*, namespace: bool = True) -> Isolation:
    """Takes the network from this process for good and says how. Call it while there is one thread: the kernel asks for that.

    `namespace=False` is for tests: the audit hook alone.
    """
    held = namespace and _enter_namespace()
    sys.addaudithook(_refuse)
    return "namespace" if held else "audit hook"


@lru_cache(maxsize=1)
def network_isolation() -> Isolation:
    """What `leave_network` gives on this machine; found out in a process of its own, this one keeps its network.

    Raises StoreError when that process fails or does not end.
    """
    command = [sys.executable, "-P", "-m", "raydex.cluster.netless"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise StoreError(f"a process without network could not be tried: {error}", remedy=f"Run {' '.join(command)}") from error
    return "namespace" if done.stdout.strip() == "namespace" else "audit hook"


def _refuse(event: str, _: tuple[object, ...]) -> None:
    if event in REFUSED:
        raise PermissionError(f"no network here: {event} is refused")


def _enter_namespace() -> bool:
    """A user namespace is tried first, since it takes no privilege; root without that right may still make a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare"):
        return False
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0:
        _keep_identity(uid, gid)
        return True
    return libc.unshare(CLONE_NEWNET) == 0


def _keep_identity(uid: int, gid: int) -> None:
    """Maps the user to itself, so that files keep their owner; a kernel that refuses leaves the overflow user, which reads as well."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        try:
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        except OSError:
            return


if __name__ == "__main__":
    sys.stdout.write(leave_network())
