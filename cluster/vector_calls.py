"""Calls to the vector store: bounded, retried where that is safe, and with errors of ours; values → filter literals.

The invariant: every call that is retried is idempotent (upsert and delete by key, reads), so an answer lost after the store applied the
call makes no second row; and no value reaches a filter without being a literal of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from raydex.ir.errors import ConfigError, StoreError

ATTEMPTS = 4
FIRST_PAUSE_S = 0.2
CALL_TIMEOUT_S = 120.0
# these wait for the store's own work on all rows of a collection
LONG_CALLS = ("flush", "load_collection", "create_collection")
LONG_TIMEOUT_S = 3_600.0
RESUME = "Nothing is lost: once the store answers, run the same command again"
RETRYABLE_STATUS = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "RESOURCE_EXHAUSTED", "UNKNOWN")


def call(method: Callable[..., Any], arguments: dict[str, Any], *, place: str, attempts: int = ATTEMPTS, remedy: str = RESUME) -> Any:
    """The method's answer; a transport error is tried again with a growing pause. Raises StoreError with the last error."""
    import grpc
    from pymilvus.exceptions import MilvusException

    name = getattr(method, "__name__", "call")
    if name != "next":
        arguments = {"timeout": LONG_TIMEOUT_S if name in LONG_CALLS else CALL_TIMEOUT_S, **arguments}
    for attempt in range(1, attempts + 1):
        try:
            return method(**arguments)
        except (MilvusException, grpc.RpcError, OSError) as error:
            if attempt == attempts or not is_transport_error(error):
                raise StoreError(
                    f"{name} failed after {attempt} of {attempts} attempts: {_short(error)}",
                    place=place,
                    remedy=remedy,
                ) from error
        time.sleep(FIRST_PAUSE_S * 2 ** (attempt - 1))
    raise AssertionError("not reached")


def is_transport_error(error: BaseException) -> bool:
    """Whether the call may not have reached the store, or its answer was lost."""
    import grpc
    from pymilvus.exceptions import ConnectError, ConnectionNotExistException, MilvusException, MilvusUnavailableException

    if isinstance(error, (ConnectError, ConnectionNotExistException, MilvusUnavailableException, OSError)):
        return True
    code: Any = None
    if isinstance(error, MilvusException):
        code = error.code
    elif isinstance(error, grpc.RpcError) and callable(getattr(error, "code", None)):
        code = error.code()  # type: ignore[attr-defined]
    return isinstance(code, grpc.StatusCode) and code.name in RETRYABLE_STATUS


def literal(value: str) -> str:
    """A filter's string literal. Raises ConfigError for what the filter language has no escape for."""
    if not value.isprintable():
        raise ConfigError("a filter value holds a character that is not printable", remedy="Filter by plain text")
    return orjson.dumps(value).decode()


def literals(values: Iterable[str]) -> str:
    """A filter's list literal."""
    return f"[{', '.join(map(literal, values))}]"


def _short(error: BaseException) -> str:
    text = str(getattr(error, "message", "") or error)
    return text if len(text) <= 300 else text[:297] + "..."
