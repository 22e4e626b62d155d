"""The client of a Surya server, against a small server that speaks its protocol; docling refused as an engine, with its reason."""

from __future__ import annotations

import io
import json
import math
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from raydex.ir.errors import ConfigError
from raydex.kernels.layout import Region, load_layout_engine
from raydex.kernels.ocr import OcrLine, load_ocr_engine
from raydex.kernels.surya import DEFAULT_MODEL, LAYOUT_PROMPT, LONGEST_SIDE, OCR_PROMPT, SuryaLayout, SuryaOcr, SuryaServer
from raydex.kernels.surya_html import read_blocks

Answer = tuple[int, dict[str, Any] | str]
PAGE = (
    '<div data-label="Section-Header" data-bbox="100 0 500 100"><h2>Pumps &amp; valves</h2></div>'
    '<div data-label="Table" data-bbox="0 500 1000 1000"><table><tr><th>Part</th><th>Mass</th></tr>'
    "<tr><td>bolt</td><td>3</td></tr></table></div>"
)


def said(text: str, chances: tuple[float, ...] = (0.5, 1.0), finish: str = "stop") -> Answer:
    tokens = [{"token": "x", "logprob": math.log(chance)} for chance in chances]
    return 200, {"choices": [{"message": {"content": text}, "logprobs": {"content": tokens} if chances else None, "finish_reason": finish}]}


def shade(level: int, width: int = 200, height: int = 100) -> np.ndarray:
    return np.full((height, width, 3), level, dtype=np.uint8)


class Server:
    """Records what it is asked; `answer` takes the image's first value and the prompt."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.answer: Callable[[int, str], Answer] = lambda level, prompt: said(PAGE)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.asked.append({"path": self.path, **body})
                outer.keys.append(self.headers.get("authorization"))
                picture, prompt = body["messages"][0]["content"]
                image = Image.open(io.BytesIO(b64decode(picture["image_url"]["url"].partition(",")[2])))
                outer.asked[-1]["size"] = image.size
                status, said = outer.answer(np.asarray(image)[0, 0, 0], prompt["text"])
                data = (said if isinstance(said, str) else json.dumps(said)).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: Any) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def client(server: Server, waits: list[float] | None = None, **options: Any) -> SuryaServer:
    return SuryaServer(server.url, "model", wait=(waits if waits is not None else []).append, **options)


def test_lines_with_boxes_and_confidence(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SURYA_INFERENCE_URL", server.url + "/")
    monkeypatch.setenv("SURYA_API_KEY", "secret")
    engine = load_ocr_engine("surya", "cpu", 2)
    (page,) = engine.read([shade(7)])
    assert (engine.name, engine.version, page.width, page.height, page.error) == ("surya", DEFAULT_MODEL, 200, 100, "")
    assert page.lines == (
        OcrLine("Pumps & valves", 0.75, (20.0, 0.0, 100.0, 10.0)),
        OcrLine("Part\tMass", 0.75, (0.0, 50.0, 200.0, 75.0)),
        OcrLine("bolt\t3", 0.75, (0.0, 75.0, 200.0, 100.0)),
    )
    (asked,) = server.asked
    assert (asked["path"], asked["model"], asked["temperature"], asked["logprobs"]) == ("/v1/chat/completions", DEFAULT_MODEL, 0.0, True)
    assert asked["messages"][0]["content"][1]["text"] == OCR_PROMPT and asked["size"] == (200, 100)
    assert server.keys == ["Bearer secret"]


def test_regions_of_a_page(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [
        {"label": "Section-Header", "bbox": "0 0 500 100", "count": 3},
        {"label": "List-Group", "bbox": "0 1000 1000 200", "count": 3},
        {"label": "Diagram", "bbox": "900 900 2000 2000", "count": 0},
        {"label": "Blank-Page", "bbox": "0 0 1000 1000", "count": 0},
        {"label": "Text", "bbox": "5 5 5 5", "count": 1},
        {"label": "Text", "bbox": "a b c d", "count": 1},
        {"label": 3},
        "none",
    ]
    server.answer = lambda level, prompt: said(json.dumps(entries)) if level else said("no JSON")
    monkeypatch.setenv("SURYA_INFERENCE_URL", server.url)
    monkeypatch.setenv("SURYA_MODEL_CHECKPOINT", "own/model")
    engine = load_layout_engine("surya", "cuda", 1)
    assert engine.version == "own/model"
    found, broken = engine.find([shade(7), shade(0)])
    assert found == [
        Region("title", (0.0, 0.0, 100.0, 10.0), 0.75),
        Region("text", (0.0, 20.0, 200.0, 100.0), 0.75),
        Region("figure", (180.0, 90.0, 200.0, 100.0), 0.75),
    ]
    assert broken == [] and server.asked[0]["messages"][0]["content"][1]["text"] == LAYOUT_PROMPT


def test_one_bad_image_costs_itself_and_order_is_kept(server: Server) -> None:
    def answer(level: int, prompt: str) -> Answer:
        if level == 3:
            return 400, "the image says: secret"
        return said(f"<div data-bbox='0 0 1000 1000'>page {level}</div>")

    server.answer = answer
    engine = SuryaOcr(client(server, parallel=4))
    pages = engine.read([shade(level) for level in range(6)] + [np.zeros((0, 5, 3), np.uint8)])
    assert [[line.text for line in page.lines] for page in pages] == [["page 0"], ["page 1"], ["page 2"], [], ["page 4"], ["page 5"], []]
    assert pages[3].error == "the server of surya refused the image: HTTP 400" and pages[6].error == "the image has no pixels"
    assert len(server.asked) == 6 and engine.read([]) == []


def test_a_busy_server_is_asked_again(server: Server) -> None:
    answers = [(503, ""), (429, ""), said(PAGE)]
    server.answer = lambda level, prompt: answers.pop(0)
    waits: list[float] = []
    (page,) = SuryaOcr(client(server, waits)).read([shade(1)])
    assert len(page.lines) == 3 and waits == [1.0, 2.0]
    server.answer = lambda level, prompt: (500, "")
    (page,) = SuryaOcr(client(server, waits, attempts=2)).read([shade(1)])
    assert page.error == "the server of surya failed 2 times, last: HTTP 500"


def test_a_server_that_is_gone_is_not_waited_for_with_every_image() -> None:
    server = Server()
    waits: list[float] = []
    asked = client(server, waits, attempts=3)
    server.close()
    pages = SuryaOcr(asked).read([shade(1)] * 5)
    assert len(waits) == 2 and pages[0].error.startswith("the server of surya failed 3 times, last: Connect")
    assert pages[4].error.startswith("the server of surya failed 1 times")
    assert SuryaLayout(asked).find([shade(1)]) == [[]]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((200, "not JSON"), "not understood: JSONDecodeError"),
        ((200, {"choices": []}), "not understood: IndexError"),
        ((200, {"choices": [{"message": {"content": None}}]}), "no text, or too long"),
        (said(PAGE, finish="length"), "broke off"),
    ],
)
def test_an_answer_that_is_none_is_an_error(server: Server, answer: Answer, error: str) -> None:
    server.answer = lambda level, prompt: answer
    (page,) = SuryaOcr(client(server)).read([shade(1)])
    assert page.lines == () and error in page.error


def test_a_blank_page_has_no_lines_and_a_large_one_is_sent_smaller(server: Server) -> None:
    server.answer = lambda level, prompt: said('<div data-label="Blank-Page" data-bbox="0 0 1000 1000"></div>', chances=())
    (page,) = SuryaOcr(client(server)).read([shade(255, 4_096, 1_024)])
    assert page == type(page)(4_096, 1_024) and server.asked[0]["size"] == (LONGEST_SIDE, 512)


def test_text_without_boxes_has_the_whole_image_and_no_known_confidence(server: Server) -> None:
    server.answer = lambda level, prompt: said("plain <b>text</b> &lt;p&gt;<br>more", chances=())
    (page,) = SuryaOcr(client(server)).read([shade(1)])
    assert page.lines == (OcrLine("plain text <p>", 0.0, (0.0, 0.0, 200.0, 50.0)), OcrLine("more", 0.0, (0.0, 50.0, 200.0, 100.0)))


def test_inner_divisions_end_lines_and_stay_in_their_block() -> None:
    blocks = read_blocks('<div data-bbox="0 0 9 9">a<div>b</div>c<p>d</p></div>e<div data-bbox="1 1 2 2" data-label="Text">f')
    assert [(block.label, block.box, block.lines) for block in blocks] == [
        ("", (0.0, 0.0, 9.0, 9.0), ["a", "b", "c", "d"]),
        ("", None, ["e"]),
        ("Text", (1.0, 1.0, 2.0, 2.0), ["f"]),
    ]


@given(st.text(alphabet="<>/divbr p=\"'&;123 "))
def test_any_answer_is_read(text: str) -> None:
    assert all(block.lines for block in read_blocks(text))


def test_what_is_missing_is_said_when_the_engine_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SURYA_INFERENCE_URL", raising=False)
    for load in (load_ocr_engine, load_layout_engine):
        with pytest.raises(ConfigError, match="SURYA_INFERENCE_URL"):
            load("surya", "cpu", 1)
        with pytest.raises(ConfigError, match="from a hub"):
            load("docling", "cpu", 1)
