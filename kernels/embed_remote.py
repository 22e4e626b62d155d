"""Texts → vectors by an OpenAI-compatible endpoint (`POST {base_url}/embeddings`).

The invariant: a vector is matched to its text by the answer's `index`, never by its position, and an answer that lacks one, doubles one or
holds a value that is no number is an error, not a row. Tries are bounded (`kernels/endpoint`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson

from raydex.kernels.endpoint import HttpEndpoint


class Endpoint:
    """Stateful: one pool of HTTP connections."""

    def __init__(self, base_url: str, model: str, **options: Any) -> None:
        """`options` are those of HttpEndpoint. Raises ConfigError when the key's variable is not set."""
        self.model = model
        self.http = HttpEndpoint(f"{base_url.rstrip('/')}/embeddings", "embed", **options)

    def encode(self, batch: list[str]) -> np.ndarray:
        """float32 (len(batch), dimension), in the order of `batch`. Raises InputError (endpoint)."""
        body = orjson.dumps({"model": self.model, "input": batch, "encoding_format": "float"})
        return self._read(self.http.post(body), len(batch))

    def close(self) -> None:
        self.http.close()

    def _read(self, content: bytes, count: int) -> np.ndarray:
        try:
            items: list[dict[str, Any]] = orjson.loads(content)["data"]
            rows = {int(item["index"]): item["embedding"] for item in items}
            if len(items) != count or sorted(rows) != list(range(count)):
                raise self.http.error(f"the endpoint gave {len(items)} vectors with {len(rows)} places for {count} texts")
            matrix = np.array([rows[at] for at in range(count)], np.float32)
        except (ValueError, KeyError, TypeError) as error:
            raise self.http.error(f"the endpoint's answer is not understood: {type(error).__name__}") from error
        if matrix.ndim != 2 or not np.isfinite(matrix).all():
            raise self.http.error("the endpoint gave a value that is not a number")
        return matrix
