"""Vectors: the same as sentence-transformers', in any batch; bad answers of a model or endpoint never become rows."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raydex.ir.errors import CapacityError, ConfigError, InputError
from raydex.kernels.embed import Embedder, EmbedOptions, choose_device, embedding_identity, load_embedder, unit_vectors
from raydex.kernels.embed_remote import Endpoint
from raydex.kernels.tokens import default_model_folder

TEXTS = [
    "The pump is closed.",
    "",
    "Straße",
    "电池安全",
    "a " * 400,
    "def run(n):\n    return n + 1\n",
    *(f"word {k} " * k for k in range(1, 40, 6)),
]


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    found = load_embedder(EmbedOptions(threads=1))
    assert found is not None
    return found


def test_half_precision_stays_near() -> None:
    from raydex.kernels.bert import BertEncoder

    ids = [[101, 2054, 102], [101, *range(2000, 2080), 102]]
    whole, half = (BertEncoder(default_model_folder(), half=half).encode(ids) for half in (False, True))
    assert half.dtype == np.float32 and float(np.abs(whole - half).max()) < 1e-3


def test_vectors_are_units_of_the_models_dimension(minilm: Embedder) -> None:
    vectors = minilm.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert (minilm.dimension, minilm.max_tokens, minilm.model) == (384, 256, "minilm")
    assert minilm.embed([]).shape == (0, 384)


@pytest.mark.parametrize(("size", "tokens"), [(1, 16_384), (2, 16_384), (7, 600), (64, 16_384)])
def test_a_vector_is_the_same_in_any_batch(minilm: Embedder, size: int, tokens: int) -> None:
    alone = np.concatenate([minilm.embed([text]) for text in TEXTS])
    minilm.batch_size, minilm.batch_tokens = size, tokens
    order = np.random.default_rng(1).permutation(len(TEXTS))
    shuffled = minilm.embed([TEXTS[k] for k in order])
    assert np.abs(shuffled - alone[order]).max() < 1e-4


def test_longer_texts_are_flagged(minilm: Embedder) -> None:
    texts = ["word " * 254, "word " * 255, "short"]
    assert minilm.truncated(texts) == [False, True, False]
    vectors = minilm.embed([texts[1], texts[1] + " and a tail that is not read"])
    assert np.allclose(vectors[0], vectors[1], atol=1e-6)


def test_the_chunk_with_the_answer_ranks_first(minilm: Embedder) -> None:
    texts = ["filler word " * 100, "The spare key is in locker nineteen. " + "filler word " * 90, "other filler " * 60]
    scores = minilm.embed(texts) @ minilm.embed(["spare key locker nineteen"])[0]
    assert scores.argmax() == 1


@pytest.mark.slow
def test_equal_to_sentence_transformers(minilm: Embedder) -> None:
    folder = str(default_model_folder())
    other = load_embedder(EmbedOptions(folder, threads=1))
    assert other is not None
    assert (other.dimension, other.max_tokens) == (384, 256)
    assert np.abs(other.embed(TEXTS) - minilm.embed(TEXTS)).max() < 1e-5
    assert other.truncated(TEXTS) == minilm.truncated(TEXTS)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["no-such/model", "/no/such/folder"])
def test_a_model_that_is_not_there_names_the_remedy(model: str) -> None:
    with pytest.raises(InputError, match="minilm") as caught:
        load_embedder(EmbedOptions(model))
    assert caught.value.reject_class == "model_load"


@pytest.mark.parametrize("damage", ["missing", "cut", "other shape", "bad config"])
def test_damaged_weights_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    from raydex.kernels.bert import BertEncoder

    folder = default_model_folder()
    for path in folder.rglob("*.json"):
        copy = tmp_path / path.relative_to(folder)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    weights = tmp_path / "model.safetensors"
    if damage == "cut":
        weights.write_bytes((folder / "model.safetensors").read_bytes()[:100_000])
    elif damage != "missing":
        weights.symlink_to(folder / "model.safetensors")
    if damage == "other shape":
        config = json.loads((tmp_path / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 7}))
    if damage == "bad config":
        (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read") as caught:
        BertEncoder(tmp_path)
    assert caught.value.reject_class == "model_load"


def test_identity_needs_no_model(tmp_path: Path) -> None:
    assert embedding_identity("none") == "none"
    assert embedding_identity() == embedding_identity("minilm") != embedding_identity(str(tmp_path))
    assert embedding_identity("m", "http://one/v1/") == "m@http://one/v1"
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"1")
    before = embedding_identity(str(tmp_path))
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text("{}")
    (other / "model.safetensors").write_bytes(b"2")
    assert before.rpartition("@")[2] != embedding_identity(str(other)).rpartition("@")[2]
    assert load_embedder(EmbedOptions("none")) is None


def stub(encode: Any, **options: Any) -> Embedder:
    return Embedder("stub", "stub@1", encode, dimension=3, **options)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.ones((1, 3)), "shape"),
        (np.ones((2, 4)), "shape"),
        (np.ones(3), "shape"),
        (np.array([[1, 0, 0], [np.nan, 0, 0]]), "not a number"),
        (np.array([[1, 0, 0], [np.inf, 0, 0]]), "not a number"),
        (np.array([[1, 0, 0], [0, 0, 0]]), "zero vector"),
    ],
)
def test_bad_vectors_are_refused(answer: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        stub(lambda batch: answer).embed(["a", "b"])


def test_vectors_of_any_length_become_units() -> None:
    assert np.allclose(unit_vectors(np.array([[3.0, 4.0], [1e-6, 0.0]]), 2, 2), [[0.6, 0.8], [1.0, 0.0]])


def test_a_batch_too_large_for_memory_is_halved() -> None:
    sizes: list[int] = []

    def encode(batch: list[str]) -> np.ndarray:
        sizes.append(len(batch))
        if len(batch) > 3:
            raise CapacityError("out of memory")
        return np.array([[len(text), 1.0, 0.0] for text in batch])

    texts = ["x" * (k + 1) for k in range(16)]
    embedder = stub(encode, batch_size=16)
    vectors = embedder.embed(texts)
    assert np.allclose(vectors[:, 0] / vectors[:, 1], range(1, 17), rtol=1e-5)
    assert max(sizes) == 16
    assert embedder.batch_size <= 4
    with pytest.raises(InputError) as caught:
        stub(lambda batch: encode(["x"] * 9)).embed(["a"])
    assert caught.value.reject_class == "memory"


class Answers:
    """A real HTTP server on the loopback whose answers are scripted: (status, body) or a function of the request."""

    def __init__(self) -> None:
        self.script: list[Any] = []
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        answers = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                answers.requests.append(body | {"path": self.path})
                answers.headers.append(dict(self.headers))
                step = answers.script.pop(0) if answers.script else good
                status, data = step(body) if callable(step) else step
                raw = json.dumps(data).encode() if not isinstance(data, bytes) else data
                self.send_response(status)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.0, 2.0]


def items(body: dict) -> list[dict]:
    return [{"index": k, "embedding": vector(text), "object": "embedding"} for k, text in enumerate(body["input"])]


def good(body: dict) -> tuple[int, dict]:
    return 200, {"data": items(body), "model": body["model"]}


@pytest.fixture
def answers() -> Iterator[Answers]:
    found = Answers()
    yield found
    found.server.shutdown()
    found.server.server_close()


def test_endpoint_matches_by_index(answers: Answers) -> None:
    answers.script = [lambda body: (200, {"data": items(body)[::-1]})]
    embedder = load_embedder(EmbedOptions("served", answers.url, batch_size=8))
    assert embedder is not None
    texts = ["a", "bbb", "cc", "dddd"]
    vectors = embedder.embed(texts)
    assert np.allclose(vectors[:, 0] / vectors[:, 1], [1, 3, 2, 4])
    assert embedder.dimension == 3
    assert embedder.truncated(texts) == [False] * 4
    assert answers.requests[0]["path"] == "/v1/embeddings"
    assert answers.requests[0]["model"] == "served"


def test_endpoint_takes_batches(answers: Answers) -> None:
    embedder = load_embedder(EmbedOptions("served", answers.url, batch_size=3))
    assert embedder is not None
    texts = ["x" * (k % 7 + 1) for k in range(10)]
    vectors = embedder.embed(texts)
    assert [len(request["input"]) for request in answers.requests] == [3, 3, 3, 1]
    assert np.allclose(vectors[:, 0] / vectors[:, 1], [len(text) for text in texts])


@pytest.mark.parametrize(
    "answer",
    [
        lambda body: (200, {"data": items(body)[:-1]}),
        lambda body: (200, {"data": [*items(body), {"index": 9, "embedding": [1, 2, 3]}]}),
        lambda body: (200, {"data": [item | {"index": 0} for item in items(body)]}),
        lambda body: (200, {"data": [item | {"embedding": [1.0, float("nan"), 2.0]} for item in items(body)]}),
        lambda body: (200, {"data": [item | {"embedding": [1.0] * (2 + item["index"])} for item in items(body)]}),
        lambda body: (200, {"data": [{"embedding": [1.0]} for _ in items(body)]}),
        (200, b"not json"),
        (200, {"error": "no"}),
        (400, {"error": "too long"}),
        (401, b""),
        (302, b""),
    ],
)
def test_bad_answers_are_no_rows(answers: Answers, answer: Any) -> None:
    answers.script = [answer]
    with pytest.raises(InputError) as caught:
        Endpoint(answers.url, "served").encode(["a", "b"])
    assert caught.value.reject_class == "endpoint"
    assert len(answers.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failing_endpoint_is_tried_again(answers: Answers, status: int) -> None:
    waits: list[float] = []
    answers.script = [(status, b""), (status, b""), good]
    assert Endpoint(answers.url, "served", wait=waits.append).encode(["a"]).shape == (1, 3)
    assert len(waits) == 2
    assert waits[0] <= 0.5 < 1.0 + waits[1]


def test_tries_are_bounded(answers: Answers) -> None:
    waits: list[float] = []
    answers.script = [(500, b"")] * 9
    with pytest.raises(InputError, match="failed 4 times, last: HTTP 500") as caught:
        Endpoint(answers.url, "served", attempts=4, wait=waits.append).encode(["a"])
    assert caught.value.reject_class == "endpoint"
    assert (len(waits), len(answers.requests)) == (3, 4)


def test_nobody_answers() -> None:
    with pytest.raises(InputError, match="failed 2 times"):
        Endpoint("http://127.0.0.1:9", "served", attempts=2, wait=lambda seconds: None).encode(["a"])


def test_the_key_comes_from_the_environment_and_stays_out_of_messages(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EMBED_KEY_OF_TEST", raising=False)
    with pytest.raises(ConfigError, match="EMBED_KEY_OF_TEST"):
        Endpoint(answers.url, "served", api_key_env="EMBED_KEY_OF_TEST")
    monkeypatch.setenv("EMBED_KEY_OF_TEST", "canary-81")
    endpoint = Endpoint(answers.url, "served", api_key_env="EMBED_KEY_OF_TEST")
    endpoint.encode(["a"])
    assert answers.headers[0]["authorization"] == "Bearer canary-81"
    answers.script = [(401, b"canary-81")]
    with pytest.raises(InputError) as caught:
        endpoint.encode(["a"])
    assert "canary" not in str(caught.value)


def test_a_refused_text_costs_no_other_its_vector(answers: Answers) -> None:
    """Whatever way the endpoint refuses: by a status that is not tried again, by one that is, or by a senseless answer."""
    texts = [f"{'bad' if k in (3, 4, 17) else 'good'} {'x' * k}" for k in range(20)]
    for status, data in ((400, {"error": "too long"}), (500, b""), (200, {"data": []})):
        endpoint = Endpoint(answers.url, "served", attempts=2, wait=lambda seconds: None)
        embedder = Embedder("served", "served@1", endpoint.encode, batch_size=8)
        refuse = lambda body, s=status, d=data: (s, d) if any("bad" in text for text in body["input"]) else good(body)  # noqa: E731
        answers.script = [refuse] * 200
        vectors, errors = embedder.embed_each(texts)
        assert set(errors) == {3, 4, 17}
        assert set(vectors) == set(range(20)) - {3, 4, 17}
        assert all(np.isclose(row[0] / row[1], len(texts[k]), rtol=1e-5) for k, row in vectors.items())
        assert {error.reject_class for error in errors.values()} == {"endpoint"}


def test_an_endpoint_out_of_order_is_not_asked_text_by_text(answers: Answers) -> None:
    answers.script = [good] + [(401, b"")] * 99
    embedder = load_embedder(EmbedOptions("served", answers.url, batch_size=4))
    assert embedder is not None
    vectors, errors = embedder.embed_each(["x" * (k + 1) for k in range(16)])
    assert set(vectors) == {12, 13, 14, 15}  # the longest come first
    assert set(errors) == set(range(12))
    assert len(answers.requests) == 3


def test_one_vector_that_is_none_costs_one_text() -> None:
    def encode(batch: list[str]) -> np.ndarray:
        return np.array([[np.nan if text == "bad" else len(text), 1.0, 0.0] for text in batch])

    vectors, errors = stub(encode).embed_each(["a", "bad", "ccc"])
    assert (set(vectors), set(errors)) == ({0, 2}, {1})
    assert stub(encode).embed_each([]) == ({}, {})
    vectors, errors = stub(lambda batch: np.zeros((len(batch), 3))).embed_each(["a", "b"])
    assert (set(vectors), set(errors)) == (set(), {0, 1})


def test_each_and_all_give_the_same_vectors(minilm: Embedder) -> None:
    vectors, errors = minilm.embed_each(TEXTS)
    assert errors == {}
    assert np.abs(np.stack([vectors[k] for k in range(len(TEXTS))]) - minilm.embed(TEXTS)).max() < 1e-6


@pytest.mark.parametrize(
    ("wanted", "gpus", "there", "device"),
    [
        ("auto", 0, True, "cpu"),
        ("auto", 0, False, "cpu"),
        ("auto", 1, True, "cuda"),
        ("auto", 0.25, True, "cuda"),
        ("auto", None, True, "cuda"),
        ("auto", None, False, "cpu"),
        ("cuda:1", 1, True, "cuda:1"),
        ("cuda", None, True, "cuda"),
        ("cpu", 1, True, "cpu"),
        ("mps", 0, False, "mps"),
        ("auto", 1, False, ""),
        ("cuda", 1, False, ""),
        ("cuda", None, False, ""),
    ],
)
def test_the_device_follows_the_stages_gpus(
    monkeypatch: pytest.MonkeyPatch, wanted: str, gpus: float | None, there: bool, device: str
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    if device:
        assert choose_device(wanted, gpus) == device
    else:
        with pytest.raises(ConfigError, match=r"stages.embed.gpus: 0 and embed.device: auto"):
            choose_device(wanted, gpus)


def test_a_reader_takes_the_device_that_is_there() -> None:
    from raydex.configs.settings import load_settings

    assert load_settings().embed.device == "auto"
    embedder = load_embedder(load_settings().embed)
    assert embedder is not None
    assert embedder.device in ("cpu", "cuda")
    assert embedder.embed(["a"]).shape == (1, 384)
