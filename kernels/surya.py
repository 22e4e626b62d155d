"""Surya as an `OcrEngine` and a `LayoutEngine`: a client of the OpenAI-compatible server that runs its model (vLLM or llama.cpp).

`SURYA_INFERENCE_URL` names the server (…/v1), `SURYA_API_KEY` its key where it wants one, `SURYA_MODEL_CHECKPOINT` the model; an image goes
out as PNG with one of the prompts that the model was trained on, and blocks with boxes in thousandths of the image come back. The server
tells boxes of blocks, not of lines: a line's box is its share of the block's height. It gives one confidence an image, the mean
probability of the tokens; 0 where it tells none. The invariant: an image that fails costs itself, after `ATTEMPTS` tries.
"""

from __future__ import annotations

import math
import os
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import orjson

from raydex.ir.errors import ConfigError, InputError
from raydex.kernels.endpoint import RETRIED
from raydex.kernels.layout import Region
from raydex.kernels.ocr import Box, OcrLine, OcrPage
from raydex.kernels.surya_html import read_blocks, read_box

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

URL, KEY, MODEL = "SURYA_INFERENCE_URL", "SURYA_API_KEY", "SURYA_MODEL_CHECKPOINT"
DEFAULT_MODEL = "datalab-to/surya-ocr-2"
ATTEMPTS = 4
SECONDS = 300.0
LONGEST_SIDE = 2_048
PAGE_TOKENS, LAYOUT_TOKENS = 12_288, 4_096
ANSWER_CHARS = 2_000_000
SCALE = 1000.0
# the wording is part of the protocol: the model knows its task by it
OCR_PROMPT = "OCR this image to HTML. Each block is a div with data-label and data-bbox (x0 y0 x1 y1, normalized 0-1000)."
LAYOUT_PROMPT = (
    'Output the layout of this image as JSON. Each entry is a dict with "label", "bbox", and "count" fields. '
    "Bbox is x0 y0 x1 y1, normalized 0-1000."
)
KINDS = {
    "Caption": "caption",
    "Equation-Block": "equation",
    "Page-Header": "header",
    "Page-Footer": "footer",
    "Section-Header": "title",
    "Table": "table",
    "Image": "figure",
    "Figure": "figure",
    "Diagram": "figure",
}
_NOTHING = "Blank-Page"


def load_surya_ocr(device: str, threads: int) -> SuryaOcr:
    """`threads` requests at a time; `device` is the server's matter. Raises ConfigError."""
    return SuryaOcr(_from_environment(threads))


def load_surya_layout(device: str, threads: int) -> SuryaLayout:
    """Raises ConfigError."""
    return SuryaLayout(_from_environment(threads))


def _from_environment(threads: int) -> SuryaServer:
    url = os.environ.get(URL, "").rstrip("/")
    if not url.startswith(("http://", "https://")):
        remedy = f"Set the environment variable {URL} to an address such as http://host:8000/v1"
        raise ConfigError("surya is chosen, but no server of it is named", place=URL, remedy=remedy)
    return SuryaServer(url, os.environ.get(MODEL) or DEFAULT_MODEL, key=os.environ.get(KEY, ""), parallel=max(1, threads))


class SuryaServer:
    """Stateful: one pool of connections, and whether the server answered last time. The key never enters a message."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str = "",
        parallel: int = 1,
        attempts: int = ATTEMPTS,
        seconds: float = SECONDS,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = f"{url}/chat/completions"
        self.model = model
        self.parallel = parallel
        self.attempts = attempts
        self._wait = wait
        self._down = threading.Event()
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        self._client = httpx.Client(headers=headers, timeout=httpx.Timeout(seconds, connect=10.0), follow_redirects=False)

    def ask_each(self, images: Sequence[NDArray[np.uint8]], prompt: str, tokens: int) -> list[tuple[str, float] | InputError]:
        """(answer, confidence) of each image in order, or why there is none."""
        if not images:
            return []
        with ThreadPoolExecutor(min(self.parallel, len(images))) as pool:
            return list(pool.map(lambda image: self._ask_safely(image, prompt, tokens), images))

    def _ask_safely(self, image: NDArray[np.uint8], prompt: str, tokens: int) -> tuple[str, float] | InputError:
        try:
            return self._ask(image, prompt, tokens)
        except InputError as error:
            return error

    def _ask(self, image: NDArray[np.uint8], prompt: str, tokens: int) -> tuple[str, float]:
        if image.ndim != 3 or 0 in image.shape:
            raise InputError("the image has no pixels")
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64encode(_png(image)).decode()}"}}
        message = {"role": "user", "content": [picture, {"type": "text", "text": prompt}]}
        body = orjson.dumps({"model": self.model, "messages": [message], "max_tokens": tokens, "temperature": 0.0, "logprobs": True})
        reason = ""
        # a server that was gone a moment ago is asked once an image, until it answers again
        attempts = 1 if self._down.is_set() else self.attempts
        for attempt in range(attempts):
            if attempt:
                self._wait(min(20.0, 0.5 * 2**attempt))
            try:
                response = self._client.post(self.url, content=body)
            except httpx.TransportError as error:
                reason = type(error).__name__
                continue
            self._down.clear()
            if response.status_code == 200:
                return _read(response.content)
            reason = f"HTTP {response.status_code}"
            if response.status_code not in RETRIED:
                raise InputError(f"the server of surya refused the image: {reason}", reject_class="endpoint")
        if not reason.startswith("HTTP"):
            self._down.set()
        raise InputError(f"the server of surya failed {attempts} times, last: {reason}", reject_class="endpoint")


def _png(image: NDArray[np.uint8]) -> bytes:
    import io

    from PIL import Image

    picture = Image.fromarray(image)
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def _read(content: bytes) -> tuple[str, float]:
    """Raises InputError (endpoint) for an answer that is none, or that the server broke off."""
    try:
        choice: dict[str, Any] = orjson.loads(content)["choices"][0]
        text = choice["message"]["content"]
        tokens = (choice.get("logprobs") or {}).get("content") or []
        chances = [math.exp(min(0.0, float(token["logprob"]))) for token in tokens]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise InputError(f"the answer of the server is not understood: {type(error).__name__}", reject_class="endpoint") from error
    if not isinstance(text, str) or len(text) > ANSWER_CHARS:
        raise InputError("the answer of the server is no text, or too long", reject_class="endpoint")
    if choice.get("finish_reason") == "length":
        raise InputError("the answer of the server broke off: the page holds more than the tokens allowed", reject_class="endpoint")
    return text, round(sum(chances) / len(chances), 4) if chances else 0.0


def _in_pixels(box: Box, width: int, height: int) -> Box | None:
    """None for a box without area."""
    x0, x1 = sorted(min(max(value / SCALE, 0.0), 1.0) * width for value in (box[0], box[2]))
    y0, y1 = sorted(min(max(value / SCALE, 0.0), 1.0) * height for value in (box[1], box[3]))
    return (x0, y0, x1, y1) if x1 > x0 and y1 > y0 else None


class SuryaOcr:
    name = "surya"

    def __init__(self, server: SuryaServer) -> None:
        self.version = server.model
        self._server = server

    def read(self, images: Sequence[NDArray[np.uint8]]) -> list[OcrPage]:
        answers = self._server.ask_each(images, OCR_PROMPT, PAGE_TOKENS)
        return [_page(image, answer) for image, answer in zip(images, answers, strict=True)]


def _page(image: NDArray[np.uint8], answer: tuple[str, float] | InputError) -> OcrPage:
    height, width = image.shape[:2]
    if isinstance(answer, InputError):
        return OcrPage(width, height, error=answer.message[:300])
    text, confidence = answer
    return OcrPage(width, height, tuple(_lines(text, confidence, width, height)))


def _lines(text: str, confidence: float, width: int, height: int) -> Iterator[OcrLine]:
    for block in read_blocks(text):
        x0, y0, x1, y1 = _in_pixels(block.box or (0.0, 0.0, SCALE, SCALE), width, height) or (0.0, 0.0, float(width), float(height))
        share = (y1 - y0) / max(1, len(block.lines))
        for at, line in enumerate(block.lines):
            yield OcrLine(line, confidence, (x0, y0 + at * share, x1, y0 + (at + 1) * share))


class SuryaLayout:
    name = "surya"

    def __init__(self, server: SuryaServer) -> None:
        self.version = server.model
        self._server = server

    def find(self, images: Sequence[NDArray[np.uint8]]) -> list[list[Region]]:
        answers = self._server.ask_each(images, LAYOUT_PROMPT, LAYOUT_TOKENS)
        return [[] if isinstance(answer, InputError) else _regions(answer, image) for image, answer in zip(images, answers, strict=True)]


def _regions(answer: tuple[str, float], image: NDArray[np.uint8]) -> list[Region]:
    """Entries that make no sense are left out."""
    text, confidence = answer
    height, width = image.shape[:2]
    try:
        entries = orjson.loads(text)
    except ValueError:
        return []
    out = []
    for entry in entries if isinstance(entries, list) else ():
        label = entry.get("label") if isinstance(entry, dict) else None
        found = read_box(str(entry.get("bbox", ""))) if isinstance(label, str) and label != _NOTHING else None
        box = _in_pixels(found, width, height) if found is not None else None
        if box is not None:
            out.append(Region(KINDS.get(str(label), "text"), box, confidence))
    return out
