"""Captions: the image that a model gets, a server that is asked for them, and a local engine on a model that the test makes."""

from __future__ import annotations

import json
import sys
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw
from shared_cases import case

from raydex.cluster.lake import Lake
from raydex.cluster.objects import ObjectStore
from raydex.configs.settings import CaptionSettings, Settings, load_settings
from raydex.ir.errors import ConfigError, InputError, StoreError
from raydex.ir.ids import content_hash
from raydex.ir.rows import Stamp
from raydex.jobs.caption_engine import check_model, render_prompt, without_start
from raydex.jobs.caption_fit import FitWorker
from raydex.jobs.caption_models import RemoteWorker, caption_all, engine_names, read_answers, results
from raydex.jobs.context import RunContext
from raydex.jobs.isolation import ParseChild
from raydex.kernels.caption import read_caption
from raydex.kernels.caption_image import LEAST, TARGET, caption_image
from raydex.kernels.caption_remote import RemoteCaptioner
from raydex.kernels.limits import Limits
from raydex.kernels.request import ParseRequest
from tests.stage_runs import plain_context

PNG = "image/png"
B45 = ("a_good.png", "b_truncated.png", "c_empty.png", "d_one_pixel.png", "e_text.png", "f_good.png")


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def plain(width: int, height: int, color: Any = (40, 90, 200), mode: str = "RGB") -> bytes:
    return saved(Image.new(mode, (width, height), color))


def noise(seed: int, size: tuple[int, int] = (120, 80)) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (6, 8, 3), dtype=np.uint8)
    return saved(Image.fromarray(pixels).resize(size, Image.Resampling.NEAREST))


def opened(data: bytes) -> Image.Image:
    image = Image.open(BytesIO(data))
    image.load()
    assert (image.format, image.mode) == ("JPEG", "RGB")
    return image


def near(pixel: Any, color: tuple[int, int, int]) -> bool:
    return all(abs(one - other) < 12 for one, other in zip(pixel, color, strict=True))


# -- the image that a model gets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "limit", "expected"),
    [
        ((640, 480), 1024, (640, 480)),
        ((4000, 3000), 1024, (1024, 768)),
        ((300, 3000), 1000, (100, 1000)),
        ((8, 8), 1024, (28, 28)),
        ((14, 20), 1024, (28, 40)),
        ((10, 1000), 1024, (LEAST, 1024)),  # a strip: padded
        ((3000, 9), 300, (300, LEAST)),
        ((9, 100), 16, (16, 16)),
    ],
)
def test_sides_lie_within_the_limits(size: tuple[int, int], limit: int, expected: tuple[int, int]) -> None:
    image = opened(caption_image(plain(*size), PNG, Limits(), limit))
    assert image.size == expected
    assert near(image.getpixel((expected[0] // 2, expected[1] // 2)), (40, 90, 200)) or min(size) < LEAST


def test_padding_is_white_and_the_strip_in_its_middle() -> None:
    image = opened(caption_image(plain(2800, 14, (0, 0, 0)), PNG, Limits(), 700))
    assert image.size == (700, LEAST)
    assert near(image.getpixel((350, 1)), (255, 255, 255)) and near(image.getpixel((350, LEAST - 2)), (255, 255, 255))
    assert max(image.getpixel((350, LEAST // 2))) < 60


def test_what_is_transparent_lies_on_white() -> None:
    image = Image.new("RGBA", (60, 40), (0, 0, 0, 0))
    ImageDraw.Draw(image).rectangle((20, 10, 40, 30), fill=(200, 0, 0, 255))
    out = opened(caption_image(saved(image), PNG, Limits(), 512))
    assert near(out.getpixel((3, 3)), (255, 255, 255)) and near(out.getpixel((30, 20)), (200, 0, 0))


def test_the_camera_s_orientation_is_applied() -> None:
    image = Image.new("RGB", (80, 40), "white")
    ImageDraw.Draw(image).rectangle((0, 0, 39, 39), fill="black")
    exif = Image.Exif()
    exif[0x0112] = 6  # the right side is stored on top
    out = opened(caption_image(saved(image, "JPEG", exif=exif), "image/jpeg", Limits(), 512))
    assert out.size == (40, 80)
    assert max(out.getpixel((20, 10))) < 30 and min(out.getpixel((20, 70))) > 225


def test_a_frame_of_a_tiff() -> None:
    frames = [Image.new("RGB", (40, 40), color) for color in ("red", "lime")]
    data = saved(frames[0], "TIFF", save_all=True, append_images=frames[1:])
    assert near(opened(caption_image(data, "image/tiff", Limits(), 512, 1)).getpixel((9, 9)), (0, 255, 0))


@pytest.mark.parametrize(
    ("data", "media_type", "reject_class", "message"),
    [
        (plain(1, 1), PNG, "invalid_input", "1 x 1 pixels are too small to be described"),
        (plain(7, 500), PNG, "invalid_input", "too small to be described"),
        (noise(1)[:400], PNG, "invalid_input", "cannot be read"),
        (b"", PNG, "invalid_input", "cannot be read"),
        (b"no picture at all", PNG, "invalid_input", "cannot be read"),
        (b"<svg/>", "image/svg+xml", "unsupported_media_type", "no reader"),
    ],
)
def test_what_is_no_image_for_a_model(data: bytes, media_type: str, reject_class: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        caption_image(data, media_type, Limits(), 512)
    assert caught.value.reject_class == reject_class


def test_too_many_pixels_are_not_decoded() -> None:
    with pytest.raises(InputError) as caught:
        caption_image(plain(200, 200), PNG, Limits(image_pixels=10_000), 512)
    assert caught.value.reject_class == "bomb"


@given(st.binary(max_size=300), st.sampled_from([PNG, "image/gif", "image/jpeg", "image/webp", "image/tiff", "image/bmp"]))
def test_any_bytes_give_a_jpeg_or_a_reject(data: bytes, media_type: str) -> None:
    for bytes_ in (data, plain(9, 9) + data, plain(9, 9)[:40] + data):
        try:
            image = opened(caption_image(bytes_, media_type, Limits(), 64))
        except InputError:
            continue
        assert LEAST <= min(image.size) <= max(image.size) <= 64


def test_the_child_gives_the_same_image() -> None:
    kept: list[bytes] = []

    def keep(data: bytes) -> str:
        kept.append(data)
        return "kept"

    stamp = Stamp("r", "h", "f", "run", 0, datetime.now(UTC))
    with ParseChild(target=TARGET, keep=keep) as child:
        request = ParseRequest("r", "h", "p.png", PNG, noise(2), wanted=(None,), side=64)
        reply = child.parse(request, stamp)
        assert kept == [caption_image(noise(2), PNG, Limits(), 64)] and "rejects" not in reply.tables
        bad = child.parse(ParseRequest("r", "h", "p.png", PNG, plain(1, 1), wanted=(None,), side=64), stamp)
        assert bad.parts == [] and bad.tables["rejects"].column("class").to_pylist() == ["invalid_input"]


# -- what counts as a caption ------------------------------------------------------------------------------------------


def test_text_of_a_caption() -> None:
    assert read_caption("  A red valve.\r\nIt is shut.\n", "endpoint") == "A red valve.\nIt is shut."
    assert read_caption("a\x00b\x1b[0m\x85c", "endpoint") == "a\ufffdb [0m c"
    for empty in ("", " \n\t", "\x00", "\x01 \x02"):
        with pytest.raises(InputError, match="the model answered nothing") as caught:
            read_caption(empty, "engine")
        assert caught.value.reject_class == "engine"


# -- a server ----------------------------------------------------------------------------------------------------------

Answer = tuple[int, Any, dict[str, str]]


class Server:
    """A real HTTP server on the loopback; `answer` maps the picture of a request to (status, content or body, headers)."""

    def __init__(self, answer: Callable[[Image.Image], Answer]) -> None:
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append(body | {"path": self.path})
                outer.headers.append(dict(self.headers))
                status, content, headers = outer.answer(picture(body))
                raw = content if isinstance(content, bytes) else json.dumps({"choices": [{"message": {"content": content}}]}).encode()
                self.send_response(status)
                for name, value in {"content-length": str(len(raw)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1/"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def asked_for(self) -> list[tuple[int, int]]:
        """Sizes of the pictures, in the order of the requests."""
        return [picture(request).size for request in self.requests]


def picture(body: dict[str, Any]) -> Image.Image:
    head, _, data = body["messages"][0]["content"][0]["image_url"]["url"].partition(",")
    assert head == "data:image/jpeg;base64"
    return opened(b64decode(data))


def size_answer(image: Image.Image) -> Answer:
    return 200, f"a picture {image.width} wide", {}


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Image.Image], Answer]], Server]]:
    servers: list[Server] = []

    def start(answer: Callable[[Image.Image], Answer] = size_answer) -> Server:
        servers.append(Server(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.server.shutdown()
        server.server.server_close()


def jpegs(*widths: int) -> list[bytes]:
    return [saved(Image.new("RGB", (width, 40)), "JPEG") for width in widths]


def captioner(server: Server, **options: Any) -> RemoteCaptioner:
    settings: dict[str, Any] = {"max_tokens": 24, "in_flight": 3, "wait": lambda seconds: None, **options}
    return RemoteCaptioner(server.url, "served", "What is it?", **settings)


def said(answers: Sequence[str | InputError]) -> list[str]:
    return [answer if isinstance(answer, str) else answer.reject_class for answer in answers]


PROBE = (64, 64)


@pytest.mark.parametrize("in_flight", [1, 3, 16])
def test_every_image_gets_its_own_text(serve: Any, in_flight: int) -> None:
    server = serve(size_answer)
    widths = [30 + at for at in range(12)]
    assert said(captioner(server, in_flight=in_flight).caption(jpegs(*widths))) == [f"a picture {width} wide" for width in widths]
    request = server.requests[0]
    assert request["path"] == "/v1/chat/completions"
    assert (request["model"], request["max_tokens"], request["temperature"]) == ("served", 24, 0)
    assert request["messages"][0]["content"][1] == {"type": "text", "text": "What is it?"}
    assert len(server.requests) == 12


@pytest.mark.parametrize("status", [400, 413, 415, 422])
@pytest.mark.parametrize("first", [True, False])
def test_a_refused_image_costs_itself(serve: Any, status: int, first: bool) -> None:
    """Also as the first of all, when nothing is known of the server yet."""
    server = serve(lambda image: (status, b"no", {}) if image.width == 33 else size_answer(image))
    widths = (33, 31, 32) if first else (31, 32, 33)
    answers = captioner(server, in_flight=1).caption(jpegs(*widths))
    assert said(answers) == ["invalid_input" if width == 33 else f"a picture {width} wide" for width in widths]
    refused = answers[widths.index(33)]
    assert isinstance(refused, InputError) and str(status) in str(refused)
    assert server.asked_for().count(PROBE) == (1 if first else 0)


def test_a_busy_server_is_waited_for(serve: Any) -> None:
    waits: list[float] = []
    busy = iter([(429, b"", {"retry-after": "7"})])
    server = serve(lambda image: next(busy, None) or size_answer(image))
    assert said(captioner(server, wait=waits.append).caption(jpegs(50))) == ["a picture 50 wide"]
    assert waits == [7.0] and len(server.requests) == 2


@pytest.mark.parametrize("content", ["", "  \n ", None, [], [{"type": "text", "text": " "}]])
def test_an_empty_answer_is_a_failure(serve: Any, content: Any) -> None:
    server = serve(lambda image: (200, content, {}) if image.width == 41 else size_answer(image))
    answers = captioner(server).caption(jpegs(40, 41, 42))
    assert said(answers) == ["a picture 40 wide", "endpoint", "a picture 42 wide"]
    assert "the model answered nothing" in str(answers[1])
    assert PROBE not in server.asked_for()


def test_text_in_parts(serve: Any) -> None:
    server = serve(lambda image: (200, [{"type": "text", "text": "a "}, {"type": "text", "text": "pump"}], {}))
    assert said(captioner(server).caption(jpegs(40))) == ["a pump"]


@pytest.mark.parametrize("answer", [(500, b"", {}), (404, b"", {}), (200, b"not json", {}), (200, b'{"choices": []}', {}), (302, b"", {})])
def test_an_image_that_the_server_fails_on_costs_itself(serve: Any, answer: Answer) -> None:
    server = serve(lambda image: answer if image.width == 33 else size_answer(image))
    answers = captioner(server, attempts=2, in_flight=2).caption(jpegs(31, 33, 32, 34))
    assert said(answers) == ["a picture 31 wide", "endpoint", "a picture 32 wide", "a picture 34 wide"]


@pytest.mark.parametrize("answer", [(500, b"", {}), (401, b"", {}), (400, b"no such parameter", {}), (200, b"[]", {})])
def test_a_server_out_of_order_is_not_asked_image_by_image(serve: Any, answer: Answer) -> None:
    """Not even one that refuses everything: that is no fault of the images."""
    server = serve(lambda image: answer)
    asked = captioner(server, attempts=2, in_flight=1)
    assert said(asked.caption(jpegs(*range(30, 60)))) == ["endpoint"] * 30
    before = len(server.requests)
    assert before <= 4
    assert said(asked.caption(jpegs(*range(30, 60)))) == ["endpoint"] * 30
    assert len(server.requests) == before + 1
    server.answer = size_answer
    assert said(asked.caption(jpegs(30))) == ["a picture 30 wide"]


def test_nobody_answers() -> None:
    asked = RemoteCaptioner("http://127.0.0.1:9", "m", "p", max_tokens=8, in_flight=2, attempts=2, wait=lambda seconds: None)
    assert said(asked.caption(jpegs(30, 31, 32))) == ["endpoint"] * 3


def test_the_key_stays_out_of_messages(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(size_answer)
    monkeypatch.delenv("CAPTION_KEY_OF_TEST", raising=False)
    with pytest.raises(ConfigError, match="CAPTION_KEY_OF_TEST"):
        captioner(server, api_key_env="CAPTION_KEY_OF_TEST")
    monkeypatch.setenv("CAPTION_KEY_OF_TEST", "canary\n-81")
    with pytest.raises(ConfigError) as caught:
        captioner(server, api_key_env="CAPTION_KEY_OF_TEST")
    assert "canary" not in str(caught.value)
    monkeypatch.setenv("CAPTION_KEY_OF_TEST", "canary-81\n")  # as a file with a line end gives it
    asked = captioner(server, api_key_env="CAPTION_KEY_OF_TEST")
    assert said(asked.caption(jpegs(30))) == ["a picture 30 wide"]
    assert server.headers[0]["authorization"] == "Bearer canary-81"
    server.answer = lambda image: (401, b"canary-81", {})
    assert "canary" not in str(asked.caption(jpegs(31))[0])


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host/v1", "http://", "http://host:port/v1"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RemoteCaptioner(url, "m", "p", max_tokens=8, in_flight=1)
    assert caught.value.place == "caption.base_url"


# -- the workers -------------------------------------------------------------------------------------------------------


def configured(**caption: Any) -> Settings:
    return load_settings(None, {"embed": {"model": "none"}, "caption": {"model": "served", "long_side": 64, **caption}})


def stored(folder: Path, settings: Settings, files: dict[str, bytes]) -> tuple[RunContext, pa.Table]:
    """A lake's object store that holds the files, and their rows; `gone` has no object."""
    context = plain_context(Lake(folder), settings, "run_1")
    store = ObjectStore(context.objects_uri)
    uris = [f"cas:{content_hash(b'gone')}" if name == "gone" else store.put(data, content_hash(data)) for name, data in files.items()]
    return context, pa.table({"key": list(files), "uri": uris, "media_type": [PNG] * len(files)})


MIXED = {
    "first": noise(1),
    "cut": noise(1)[:300],
    "second": noise(2),
    "dot": plain(1, 1),
    "equal": noise(1),
    "gone": b"",
    "empty": b"",
    "third": noise(3),
}
BAD = {"cut": "invalid_input", "dot": "invalid_input", "gone": "unreadable", "empty": "invalid_input"}


def test_images_are_fitted_or_said_to_be_bad(tmp_path: Path) -> None:
    context, rows = stored(tmp_path, configured(), MIXED)
    worker = FitWorker(context)
    whole = {row["key"]: row for row in worker(rows).to_pylist()}
    assert list(whole) == list(MIXED)
    assert {key: row["reject_class"] for key, row in whole.items() if row["reject_class"]} == BAD
    assert all((row["image"] is None) == bool(row["error"]) == bool(row["reject_class"]) for row in whole.values())
    assert whole["second"]["image"] == caption_image(noise(2), PNG, Limits(), 64)
    alone = [row for at in range(rows.num_rows) for row in worker(rows.slice(at, 1)).to_pylist()]
    worker.close()
    assert alone == list(whole.values())


@pytest.mark.parametrize("size", [1, 2, 6])
@pytest.mark.parametrize("turned", [False, True])
def test_case_b45(tmp_path: Path, serve: Any, size: int, turned: bool) -> None:
    folder = case("b45-caption-batch-poison")
    files = {name: (folder / name).read_bytes() for name in (B45[::-1] if turned else B45)}
    server = serve(lambda image: (200, f"colour {'/'.join(str(value // 32) for value in image.getpixel((20, 20)))}", {}))
    settings = configured(base_url=server.url, batch_size=2)
    context, rows = stored(tmp_path, settings, files)
    fit, ask = FitWorker(context), RemoteWorker(settings.caption, engine_names(settings.caption))
    found = {row["key"]: row for at in range(0, len(files), size) for row in ask(fit(rows.slice(at, size))).to_pylist()}
    fit.close()
    assert set(found) == set(B45)
    for name in ("a_good.png", "f_good.png"):
        sent = opened(caption_image(files[name], PNG, Limits(), 64))
        assert (found[name]["status"], found[name]["reject_class"], found[name]["error"]) == ("ok", "", "")
        assert found[name]["text"] == f"colour {'/'.join(str(value // 32) for value in sent.getpixel((20, 20)))}"
    for name in ("b_truncated.png", "c_empty.png", "d_one_pixel.png", "e_text.png"):
        row = found[name]
        assert (row["status"], row["text"], row["reject_class"]) == ("failed", "", "invalid_input") and row["error"]
    assert "too small" in found["d_one_pixel.png"]["error"]


def test_what_leaves_the_engine() -> None:
    batch = pa.table(
        {
            "key": ["a", "b", "c", "d"],
            "generated_text": [" a pump ", " ", "", None],
            "__inference_error__": ["", "", "ValueError: no place for the image\nmore", "the image cannot be read"],
            "reject_class": [None, None, "", "invalid_input"],
        }
    )
    rows = read_answers(batch, ("m", "vllm 1")).to_pylist()
    assert [(row["key"], row["status"], row["text"], row["reject_class"]) for row in rows] == [
        ("a", "ok", "a pump", ""),
        ("b", "failed", "", "engine"),
        ("c", "failed", "", "engine"),
        ("d", "failed", "", "invalid_input"),
    ]
    assert rows[2]["error"] == "ValueError: no place for the image"
    assert {(row["engine"], row["engine_version"]) for row in rows} == {("m", "vllm 1")}


# -- through Ray -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["/no/such/folder", "no-such/model", "nothing"])
def test_a_model_that_is_not_there(model: str) -> None:
    pytest.importorskip("vllm")
    with pytest.raises(ConfigError, match="neither a folder nor in the hub's cache") as caught:
        check_model(CaptionSettings(model=model), 0)
    assert caught.value.remedy


def test_a_folder_without_a_model_and_parts_without_gpus(tmp_path: Path) -> None:
    pytest.importorskip("vllm")
    with pytest.raises(ConfigError, match=r"config\.json is missing"):
        check_model(CaptionSettings(model=str(tmp_path)), 0)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="no weights"):
        check_model(CaptionSettings(model=str(tmp_path)), 0)
    (tmp_path / "model.safetensors").touch()
    assert check_model(CaptionSettings(model=str(tmp_path)), 0.5) == tmp_path
    split = CaptionSettings(model=str(tmp_path), engine={"tensor_parallel_size": 2})
    assert check_model(split, 2) == tmp_path
    for settings, gpus in ((split, 1), (CaptionSettings(model=str(tmp_path)), 2)):
        with pytest.raises(ConfigError, match="tensor_parallel_size"):
            check_model(settings, gpus)


def test_a_stage_that_does_not_fit_into_the_cluster(tmp_path: Path) -> None:
    settings = configured(base_url="http://127.0.0.1:9").model_copy(update={"stages": load_settings().stages})
    context, rows = stored(tmp_path, settings, {"a": noise(1)})
    with pytest.raises(ConfigError, match=r"captions need 1 cpus, the cluster has 0\.5"):
        list(caption_all(rows, context, {"CPU": 0.5}))


def test_nothing_to_caption_starts_nothing(tmp_path: Path) -> None:
    context, rows = stored(tmp_path, configured(), {})
    assert list(caption_all(rows, context, {})) == []


@pytest.mark.parametrize(("adds", "text"), [(True, "user: hello"), (False, "<s>user: hello")])
def test_a_start_token_stands_once(adds: bool, text: str) -> None:
    class Tokenizer:
        bos_token, bos_token_id = "<s>", 1

        def __call__(self, text: str) -> Any:
            return SimpleNamespace(input_ids=[1] if adds else [])

    assert without_start("<s>user: hello", Tokenizer()) == text
    assert without_start("user: hello", Tokenizer()) == "user: hello"
    assert without_start("<s>hello", None) == "<s>hello"


@pytest.mark.parametrize(
    ("begun", "cause", "raised"),
    [
        (True, "The actor died unexpectedly", False),
        (True, "died because of an error raised in its creation task", False),  # when it was started again
        (False, "The actor died unexpectedly", False),
        (False, "died because of an error raised in its creation task", True),
        (True, "", True),  # a defect, not a death
    ],
)
def test_an_engine_that_ends_fails_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool, cause: str, raised: bool
) -> None:
    from ray.exceptions import RayActorError

    def run(batches: Any, context: Any, resources: Any, names: tuple[str, str]) -> Iterator[pa.Table]:
        if begun:
            yield from [results([("first", "a pump", "")], names)] * 2  # Ray may repeat a batch
        raise StoreError("it ended") from (RayActorError(error_msg=cause) if cause else None)

    monkeypatch.setattr("raydex.jobs.caption_models._run_local", run)
    context, rows = stored(tmp_path, configured(), MIXED)
    if raised:
        with pytest.raises(StoreError, match="it ended"):
            list(caption_all(rows, context, {}))
        return
    found = [row for table in caption_all(rows, context, {}) for row in table.to_pylist()]
    assert sorted(row["key"] for row in found) == sorted(MIXED)
    failed = [row for row in found if row["status"] == "failed"]
    assert {row["reject_class"] for row in failed} == {"engine"} and len(failed) == len(MIXED) - begun


def by_key(tables: Iterator[pa.Table]) -> dict[str, dict[str, Any]]:
    rows = [row for table in tables for row in table.to_pylist()]
    assert len({row["key"] for row in rows}) == len(rows)
    return {row["key"]: row for row in rows}


def check_failures(found: dict[str, dict[str, Any]]) -> None:
    assert {key: row["reject_class"] for key, row in found.items() if row["status"] == "failed"} == BAD
    assert all((row["status"] == "ok") == bool(row["text"]) == (not row["error"]) for row in found.values())


@pytest.mark.slow
def test_a_server_through_ray(tmp_path: Path, serve: Any) -> None:
    from raydex.cluster.ray_session import ray_session

    server = serve(lambda image: (200, f"level {image.getpixel((20, 20))}", {}))
    context, rows = stored(tmp_path, configured(base_url=server.url, batch_size=2), MIXED)
    with ray_session(cpus=2) as resources:
        found = by_key(caption_all([rows.slice(0, 3), rows.slice(3)], context, resources))
    assert set(found) == set(MIXED)
    check_failures(found)
    for key in set(MIXED) - set(BAD):
        sent = opened(caption_image(MIXED[key], PNG, Limits(), 64))
        assert found[key]["text"] == f"level {sent.getpixel((20, 20))}"


def document(*images: bytes) -> bytes:
    import docx

    made, out = docx.Document(), BytesIO()
    made.add_paragraph("Pictures of the pump house.")
    for image in images:
        made.add_picture(BytesIO(image))
    made.save(out)
    return out.getvalue()


@pytest.mark.slow
def test_a_local_engine_through_the_whole_job(tmp_path: Path, plant_settings: Settings) -> None:
    """A bad image costs itself, captions stay with their images in any batch, and an engine that cannot start ends the run."""
    if find_spec("vllm") is None:
        pytest.skip("vllm is not installed")
    from raydex.cluster.ray_session import ray_session
    from raydex.cluster.spark import keep_spark
    from raydex.jobs.index import IndexRequest, index
    from raydex.jobs.reading import open_reader
    from raydex.jobs.status import lake_status
    from tests.tiny_vlm import WORDS, write_tiny_vlm

    carried = "vllm" in sys.modules  # by an earlier test
    folder = write_tiny_vlm(tmp_path / "vlm")
    files = tmp_path / "files"
    files.mkdir()
    marred = noise(1)[:100] + bytes(40) + noise(1)[140:]
    for name, data in {
        "first.png": noise(1),
        "equal.png": noise(1),
        "second.png": noise(2),
        "dot.png": plain(1, 1),
        "plan.docx": document(noise(3), marred, noise(1)),
        "note.txt": b"Nothing to see here.",
    }.items():
        (files / name).write_bytes(data)

    def run(**engine: int) -> dict[str, Any]:
        caption = CaptionSettings(model=str(folder), batch_size=2, max_tokens=6, engine={"max_num_seqs": 4, **engine})
        ocr = plant_settings.ocr.model_copy(update={"engine": "none"})
        settings = plant_settings.model_copy(update={"caption": caption, "ocr": ocr})
        return index(IndexRequest(specs=(str(files),), lake=str(tmp_path / "lake"), settings=settings, progress=False))

    with ray_session(cpus=2), keep_spark(tmp_path / "spark"):
        run(max_model_len=256)
        again = run(max_model_len=256)
        reader = open_reader(tmp_path / "lake")
        with pytest.raises(StoreError, match="max_model_len"):
            run(max_model_len=10**9)
    assert again["records"]["seen"] == again["records"]["unchanged"] == 6
    assert carried or "vllm" not in sys.modules  # a worker carries it
    paths = {row["record_id"]: row["path"] for row in reader.rows("records").to_pylist()}
    rows = [row for row in reader.rows("observations").to_pylist() if row["kind"] == "caption"]
    found = {name: [row for row in rows if paths[row["record_id"]] == name] for name in paths.values()}
    places = {row["asset_id"]: row["ordinal"] for row in reader.rows("assets").to_pylist()}
    third, broken, equal = sorted(found.pop("plan.docx"), key=lambda row: places[row["asset_id"]])
    assert found.pop("note.txt") == []
    (first,), (same,), (second,), (dot,) = (found[name] for name in ("first.png", "equal.png", "second.png", "dot.png"))
    assert [(row["status"], row["text"]) for row in (broken, dot)] == [("failed", "")] * 2
    assert first["text"] == same["text"] == equal["text"] and len({first["text"], second["text"], third["text"]}) == 3
    good = [first, second, third]
    assert all(row["status"] == "ok" and row["text"] and set(row["text"].split()) <= set(WORDS) for row in good)
    assert all(len(row["text"].split()) <= 6 and row["engine"] == "vlm" for row in good)
    chunks = {paths[row["record_id"]]: row["embedding_text"] for row in reader.rows("chunks").to_pylist()}
    assert second["text"] in chunks["second.png"] and third["text"] in chunks["plan.docx"]
    assert lake_status(tmp_path / "lake")["observations"]["caption"] == {"ok": 5, "failed": 2}
    with pytest.raises(ConfigError, match="chat template leaves the prompt out"):
        (folder / "chat_template.jinja").write_text("no place for messages")
        render_prompt(CaptionSettings(model=str(folder)), folder)
