"""An S3 endpoint on this machine, for the tests that need a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

KEY, SECRET = "testing", "testing"


@contextmanager
def s3_server() -> Iterator[str]:
    """The endpoint's URL while the block runs, its credentials in the environment; skips the test without s3fs or moto."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        try:
            yield f"http://{host}:{port}"
        finally:
            server.stop()
