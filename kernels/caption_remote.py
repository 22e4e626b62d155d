"""JPEGs → captions by an OpenAI-compatible server (`POST {base_url}/chat/completions`), several requests in flight.

The invariant: every image gets its own text or its own error. Where it is not plain whether an image or the server is at fault, a plain
image of ours is asked for: a server that does not answer for that either is out of order, and then the images that are left get its error
without being sent.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from io import BytesIO
from threading import Lock
from typing import Any

import orjson

from raydex.ir.errors import InputError
from raydex.kernels.caption import read_caption
from raydex.kernels.endpoint import EndpointError, HttpEndpoint

# a server that takes others says by these that it does not take this image
REFUSED = frozenset({400, 413, 415, 422})


class RemoteCaptioner:
    """Stateful: connections and threads. Use it from one thread; close it."""

    def __init__(self, base_url: str, model: str, prompt: str, *, max_tokens: int, in_flight: int, **options: Any) -> None:
        """`options` are those of HttpEndpoint. Raises ConfigError when the key's variable is not set."""
        self.model = model
        self.prompt = prompt
        self.max_tokens = max_tokens
        self.http = HttpEndpoint(
            f"{base_url.rstrip('/')}/chat/completions", "caption", **{"seconds": 120.0, "connections": in_flight, **options}
        )
        self._pool = ThreadPoolExecutor(in_flight, thread_name_prefix="caption")
        self._lock = Lock()
        self._answered = False
        self._fault: EndpointError | None = None

    def close(self) -> None:
        self._pool.shutdown()
        self.http.close()

    def caption(self, images: Sequence[bytes]) -> list[str | InputError]:
        """One text or error an image, in order. Errors: `endpoint` for what may go well another time, `invalid_input` for an image that
        the server refuses."""
        if self._fault is not None:
            self._fault = self.probe(attempts=1)
        return list(self._pool.map(self._one, images))

    def _one(self, image: bytes) -> str | InputError:
        if self._fault is not None:
            return self._fault
        try:
            text = self._ask(image)
            self._answered = True
            return read_caption(text, "endpoint")
        except EndpointError as error:
            return self._blame(error)
        except InputError as error:
            return error

    def _blame(self, error: EndpointError) -> InputError:
        refused = error.status in REFUSED
        with self._lock:
            if not (refused and self._answered) and self._fault is None:
                self._fault = self.probe()
            if self._fault is not None:
                return self._fault
        return InputError(f"the server refused the image: HTTP {error.status}") if refused else error

    def probe(self, attempts: int = 0) -> EndpointError | None:
        """What the server answers to an image that is in order: None, or its fault."""
        try:
            self._ask(_plain_image(), attempts)
        except EndpointError as error:
            return error
        self._answered = True
        return None

    def _ask(self, image: bytes, attempts: int = 0) -> str:
        content = [
            {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{b64encode(image).decode()}"}},
            {"type": "text", "text": self.prompt},
        ]
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": self.max_tokens,
            "temperature": 0,
        }
        return self._read(self.http.post(orjson.dumps(body), attempts))

    def _read(self, answer: bytes) -> str:
        try:
            content = orjson.loads(answer)["choices"][0]["message"]["content"]
            parts = content if isinstance(content, list) else [{"text": content}]
            return "".join(part.get("text") or "" for part in parts)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise self.http.error(f"the endpoint's answer is not understood: {type(error).__name__}") from error


@cache
def _plain_image() -> bytes:
    from PIL import Image

    out = BytesIO()
    Image.new("RGB", (64, 64), (120, 160, 200)).save(out, "JPEG")
    return out.getvalue()
