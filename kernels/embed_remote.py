"""Texts → vectors by an OpenAI-compatible endpoint (`POST {base_url}/embeddings`).

The invariant: a vector is matched to its text by the answer's `index`, never by its position, and an answer that lacks one, doubles one or
holds a value that is no number is an error, not a row. Tries are bounded; what is left after them is an InputError of class `endpoint`.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import numpy as np
import orjson

from raydex.ir.errors import ConfigError, InputError

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class Endpoint:
    """Stateful: one HTTP connection pool. The key never enters a message or a log."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key_env: str = "",
        attempts: int = 5,
        seconds: float = 60.0,
        first_wait: float = 0.5,
        longest_wait: float = 20.0,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """`attempts` tries a batch in all, waits doubling from `first_wait` seconds with jitter; an answer's Retry-After is kept to.

        Raises ConfigError when `api_key_env` names a variable that is not set.
        """
        headers = {"content-type": "application/json"}
        if api_key_env:
            key = os.environ.get(api_key_env, "")
            if not key:
                remedy = f"Set the environment variable {api_key_env}, or clear embed.api_key_env"
                raise ConfigError("the key of the embedding endpoint is not set", remedy=remedy)
            headers["authorization"] = f"Bearer {key}"
        self.url = f"{base_url.rstrip('/')}/embeddings"
        self.model = model
        self.attempts = attempts
        self.first_wait = first_wait
        self.longest_wait = longest_wait
        self._wait = wait
        self._jitter = random.Random()
        self._client = httpx.Client(headers=headers, timeout=httpx.Timeout(seconds, connect=10.0), follow_redirects=False)

    def encode(self, batch: list[str]) -> np.ndarray:
        """float32 (len(batch), dimension), in the order of `batch`. Raises InputError (endpoint)."""
        body = orjson.dumps({"model": self.model, "input": batch, "encoding_format": "float"})
        reason = ""
        for attempt in range(self.attempts):
            hint = 0.0
            try:
                response = self._client.post(self.url, content=body)
            except httpx.TransportError as error:
                reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            else:
                if response.status_code == 200:
                    return self._read(response.content, len(batch))
                reason = f"HTTP {response.status_code}"
                if response.status_code not in RETRIED:
                    raise self._error(f"the endpoint refused the batch: {reason}", "Check embed.base_url, embed.model and the key")
                hint = _retry_after(response.headers.get("retry-after", ""))
            if attempt + 1 < self.attempts:
                back_off = self.first_wait * 2**attempt * (0.5 + self._jitter.random() / 2)
                self._wait(min(self.longest_wait, max(back_off, hint)))
        raise self._error(f"the endpoint failed {self.attempts} times, last: {reason}", "Run retry when it answers again")

    def close(self) -> None:
        self._client.close()

    def _read(self, content: bytes, count: int) -> np.ndarray:
        try:
            items: list[dict[str, Any]] = orjson.loads(content)["data"]
            rows = {int(item["index"]): item["embedding"] for item in items}
            if len(items) != count or sorted(rows) != list(range(count)):
                raise self._error(f"the endpoint gave {len(items)} vectors with {len(rows)} places for {count} texts")
            matrix = np.array([rows[at] for at in range(count)], np.float32)
        except (ValueError, KeyError, TypeError) as error:
            raise self._error(f"the endpoint's answer is not understood: {type(error).__name__}") from error
        if matrix.ndim != 2 or not np.isfinite(matrix).all():
            raise self._error("the endpoint gave a value that is not a number")
        return matrix

    def _error(self, message: str, remedy: str = "Check that embed.base_url serves the model embed.model") -> InputError:
        return InputError(message, reject_class="endpoint", place=self.url, remedy=remedy)


def _retry_after(value: str) -> float:
    """Seconds that a Retry-After header asks for; 0 where there is none."""
    if value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time()) if value else 0.0
    except ValueError:
        return 0.0
