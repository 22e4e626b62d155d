"""Any exception → the error that the user is told, and by its class the exit code (contracts 20).

A full disk and spent memory are no defects, an unforeseen exception is one: it ends with exit code 3 like a store's failure, never with
the 1 that stands for new rejects.
"""

from __future__ import annotations

import errno

from raydex.ir.errors import AGAIN, CapacityError, RaydexError, StoreError

SPENT = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


class UnforeseenError(StoreError):
    """An exception that no code of ours expects; the command line shows where it came from."""


def as_failure(error: Exception) -> RaydexError:
    """The error itself when it is one of ours, else what stands for it."""
    if isinstance(error, RaydexError):
        return error
    if isinstance(error, MemoryError):
        return CapacityError("memory ran out", remedy=f"Give the process more memory. {AGAIN}")
    if isinstance(error, OSError):
        place = str(error.filename or "")
        text = error.strerror or str(error) or type(error).__name__
        if error.errno in SPENT:
            return CapacityError(text, place=place, remedy=f"Free some, or raise the limit. {AGAIN}")
        return StoreError(text, place=place, remedy=f"See that it is there and may be used. {AGAIN}")
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
    return UnforeseenError(text, remedy=f"Please report this as a defect. {AGAIN}")
