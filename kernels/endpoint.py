"""One request to an OpenAI-compatible endpoint → the bytes of its answer, after a bounded number of tries.

The invariant: what is worth another try (a broken connection, a busy or failing server) is tried again with growing waits, anything else
is not; what is left is an InputError of class `endpoint`, and the key never enters a message or a log.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

import httpx

from raydex.ir.errors import ConfigError, InputError

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class EndpointError(InputError):
    """`status` is that of the last answer, 0 where none came; `retried` says that tries were used up."""

    def __init__(self, message: str, *, place: str, remedy: str, status: int = 0, retried: bool = False) -> None:
        super().__init__(message, reject_class="endpoint", place=place, remedy=remedy)
        self.status = status
        self.retried = retried


class HttpEndpoint:
    """Stateful: one pool of HTTP connections. Threads may share it."""

    def __init__(
        self,
        url: str,
        section: str,
        *,
        api_key_env: str = "",
        attempts: int = 5,
        seconds: float = 60.0,
        first_wait: float = 0.5,
        longest_wait: float = 20.0,
        connections: int = 100,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """`section` of the configuration names the endpoint in messages. `attempts` tries a request in all, waits doubling from
        `first_wait` seconds with jitter; an answer's Retry-After is kept to.

        Raises ConfigError for an address that is none, and when `api_key_env` names a variable that holds no key.
        """
        headers = {"content-type": "application/json"}
        if api_key_env:
            headers["authorization"] = f"Bearer {read_key(api_key_env, section)}"
        check_url(url, section)
        self.url = url
        self.section = section
        self.attempts = attempts
        self.first_wait = first_wait
        self.longest_wait = longest_wait
        self._wait = wait
        self._jitter = random.Random()
        self._client = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(seconds, connect=10.0),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            follow_redirects=False,
        )

    def post(self, body: bytes, attempts: int = 0) -> bytes:
        """The answer's body. `attempts` 0: as many as the endpoint has. Raises EndpointError."""
        attempts = attempts or self.attempts
        reason = ""
        status = 0
        for attempt in range(attempts):
            hint = 0.0
            try:
                response = self._client.post(self.url, content=body)
            except httpx.RequestError as error:
                status = 0
                reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            else:
                status = response.status_code
                if status == 200:
                    return response.content
                reason = f"HTTP {status}"
                if status not in RETRIED:
                    remedy = f"Check {self.section}.base_url, {self.section}.model and the key"
                    raise self.error(f"the endpoint refused the request: {reason}", remedy, status=status)
                hint = _retry_after(response.headers.get("retry-after", ""))
            if attempt + 1 < attempts:
                back_off = self.first_wait * 2**attempt * (0.5 + self._jitter.random() / 2)
                self._wait(min(self.longest_wait, max(back_off, hint)))
        message = f"the endpoint failed {attempts} times, last: {reason}"
        raise self.error(message, "Run retry when it answers again", status=status, retried=True)

    def error(self, message: str, remedy: str = "", *, status: int = 0, retried: bool = False) -> EndpointError:
        remedy = remedy or f"Check that {self.section}.base_url serves the model {self.section}.model"
        return EndpointError(message, place=self.url, remedy=remedy, status=status, retried=retried)

    def close(self) -> None:
        self._client.close()


def read_key(api_key_env: str, section: str) -> str:
    """The key in a variable of the environment. Raises ConfigError when there is none, or none that a header can hold: the HTTP library
    would quote it."""
    key = os.environ.get(api_key_env, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        what = "is no line of printable ASCII characters" if key else "is not set"
        remedy = f"Set the environment variable {api_key_env}, or clear {section}.api_key_env"
        raise ConfigError(f"the key of the endpoint {what}", place=f"{section}.api_key_env", remedy=remedy)
    return key


def check_url(url: str, section: str) -> None:
    """Raises ConfigError for an address that no request can be sent to."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ConfigError(f"the address is none: {error}", place=f"{section}.base_url", remedy="Write http://HOST:PORT/v1") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ConfigError("the address is no HTTP address", place=f"{section}.base_url", remedy="Write http://HOST:PORT/v1")


def _retry_after(value: str) -> float:
    """Seconds that a Retry-After header asks for; 0 where there is none."""
    if value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time()) if value else 0.0
    except ValueError:
        return 0.0
