"""The Ray session: a local cluster, or one named by address; quiet, without dashboard, and never shut down behind the caller's back."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from raydex.ir.errors import StoreError


@contextmanager
def ray_session(address: str = "", cpus: int = 0, object_store_bytes: int = 0) -> Iterator[dict[str, float]]:
    """Connects (or starts) Ray and yields the cluster's resources; shuts down only what it started. StoreError when it cannot."""
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray's native part writes to the terminal of the driver; what ends a run comes as an exception
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    import ray

    started = not ray.is_initialized()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if started:
        options: dict[str, object] = {"logging_level": logging.ERROR, "log_to_driver": False}
        if address:
            options["address"] = address
        else:
            options["include_dashboard"] = False
            if cpus:
                options["num_cpus"] = cpus
            if object_store_bytes:
                options["object_store_memory"] = object_store_bytes
        try:
            with _native_stderr_closed():
                ray.init(**options)
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            raise StoreError(
                f"Ray did not start: {error}", remedy="Check ray.address, free memory and /dev/shm; `raydex doctor` tells"
            ) from error
    if started:
        _put_back(handlers)  # Ray puts its own in place, which end the process at once
    quiet_data()
    try:
        yield ray.cluster_resources()
    finally:
        if started:
            ray.shutdown()
            _put_back(handlers)  # and the system's when it leaves


def _put_back(handlers: Mapping[signal.Signals, Any]) -> None:
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def _native_stderr_closed() -> Iterator[None]:
    """File descriptor 2 leads nowhere meanwhile: Ray's native part announces its log level there; what fails comes as an exception."""
    sys.stderr.flush()
    before = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(nowhere)
        os.close(before)


def quiet_data() -> None:
    """Ray Data's own bars and chatter go to its log file; the run shows its own progress."""
    import ray

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.enable_operator_progress_bars = False
    context.execution_options.preserve_order = False
    context.max_errored_blocks = 0
    logging.getLogger("ray.data").setLevel(logging.ERROR)
