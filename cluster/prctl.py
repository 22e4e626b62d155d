"""What a process asks of the Linux kernel about itself and its children (prctl(2))."""

from __future__ import annotations

import ctypes

PR_SET_PDEATHSIG = 1  # the signal that it gets when its parent ends
PR_SET_CHILD_SUBREAPER = 36  # whether orphans below it become its children


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
