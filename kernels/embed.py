"""Texts → unit vectors, by the packaged MiniLM, a sentence-transformers model or an OpenAI-compatible endpoint.

The invariant: row i of the result is the vector of text i, whatever the batches were; every vector is finite, of the model's dimension and
of unit length, or an error says which text has none. A text that a model or an endpoint refuses costs no other text its vector. A text
longer than the model reads is never cut silently: `truncated` flags it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from blake3 import blake3

from raydex.ir.errors import CapacityError, ConfigError, InputError
from raydex.ir.ids import digest
from raydex.kernels.tokens import DEFAULT_MODEL, NO_MODEL, default_model_folder, hub_file, load_tokenizer, tokenizer_path

BATCH_TOKENS = 16_384
# what a CPU's cache holds of one layer: larger batches are a fifth slower
CPU_BATCH_TOKENS = 2_048
PROBE = "text"  # what every model and endpoint in working order gives a vector


class EmbedConfig(Protocol):
    """What a configuration must offer: `model` is minilm, none, a sentence-transformers name or a folder; a `base_url` takes the text to
    an endpoint, whose key is in the environment variable named by `api_key_env`; `device` is auto, cpu, cuda or another of torch's;
    `threads` 0 leaves torch's choice."""

    @property
    def model(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    @property
    def api_key_env(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def threads(self) -> int: ...


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """The plain form of `EmbedConfig`."""

    model: str = DEFAULT_MODEL
    base_url: str = ""
    api_key_env: str = ""
    device: str = "cpu"
    batch_size: int = 64
    threads: int = 0


class Embedder:
    """Stateful: a loaded model, or a connection to an endpoint.

    `model` is its name, `fingerprint` its identity (name and hash of its files), `max_tokens` what it reads of a text (0: not known),
    `dimension` the length of its vectors (0 until an endpoint has answered once), `device` where it computes (empty: elsewhere).
    """

    def __init__(
        self,
        model: str,
        fingerprint: str,
        encode: Callable[[list[str]], np.ndarray],
        *,
        dimension: int = 0,
        max_tokens: int = 0,
        batch_size: int = 64,
        batch_tokens: int = BATCH_TOKENS,
        tokenizer: str = DEFAULT_MODEL,
        device: str = "",
    ) -> None:
        """`encode` gives one row a text, in order, and raises InputError, or CapacityError when a batch is too large for its memory."""
        self.model = model
        self.fingerprint = fingerprint
        self.dimension = dimension
        self.max_tokens = max_tokens
        self.batch_size = batch_size
        self.batch_tokens = batch_tokens
        self.device = device
        self._encode = encode
        self._tokenizer = load_tokenizer(tokenizer)

    @property
    def tokenizer_path(self) -> str:
        return self._tokenizer.path

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 (len(texts), dimension), unit length. Raises InputError: endpoint, memory, or internal for vectors that are none."""
        order: list[int] = []
        rows: list[np.ndarray] = []
        for batch in self._batches(texts):
            rows.append(self._checked([texts[k] for k in batch]))
            order += batch
        out = np.empty((len(texts), self.dimension), np.float32)
        if rows:
            out[order] = np.concatenate(rows)
        return out

    def embed_each(self, texts: Sequence[str]) -> tuple[dict[int, np.ndarray], dict[int, InputError]]:
        """Place of a text → its float32 (dimension,), and place → error of those that got none: each text is in one of the two.

        A batch that fails is halved until the texts at fault stand alone. A model or endpoint that gives no vector for `PROBE` either is
        out of order: then all texts that are left get the error, since no smaller batch would fare better.
        """
        vectors: dict[int, np.ndarray] = {}
        errors: dict[int, InputError] = {}
        for batch in self._batches(texts):
            waiting = [batch]
            while waiting:
                part = waiting.pop()
                try:
                    vectors.update(zip(part, self._checked([texts[k] for k in part])))
                except InputError as error:
                    if not self._answers():
                        errors.update((k, error) for k in range(len(texts)) if k not in vectors and k not in errors)
                        return vectors, errors
                    if len(part) == 1:
                        errors[part[0]] = error
                    else:
                        middle = len(part) // 2
                        waiting += [part[middle:], part[:middle]]
        return vectors, errors

    def _answers(self) -> bool:
        try:
            self._checked([PROBE])
        except InputError:
            return False
        return True

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Places of all texts, the longest first, in batches within the limits as they are when the batch is asked for."""
        counts = self._tokenizer.count_many(texts)
        if self.max_tokens:
            counts = [min(count + self._tokenizer.special_tokens, self.max_tokens) for count in counts]
        order = sorted(range(len(texts)), key=counts.__getitem__, reverse=True)
        at = 0
        while at < len(order):
            size = max(1, min(self.batch_size, self.batch_tokens // max(1, counts[order[at]])))
            yield order[at : at + size]
            at += size

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """Which texts the model reads only the beginning of. All False where its limit is not known."""
        if not self.max_tokens:
            return [False] * len(texts)
        room = self.max_tokens - self._tokenizer.special_tokens
        if self._tokenizer.is_word_local:
            return [count > room for count in self._tokenizer.count_many(texts)]
        return [count > self.max_tokens for count in self._tokenizer.exact(texts)]

    def _checked(self, batch: list[str]) -> np.ndarray:
        try:
            matrix = self._encode(batch)
        except CapacityError as error:
            if len(batch) == 1:
                raise InputError(error.message, reject_class="memory", remedy="Use a smaller model or chunk.max_tokens") from error
            middle = len(batch) // 2
            self.batch_size = max(1, min(self.batch_size, middle))
            return np.concatenate([self._checked(batch[:middle]), self._checked(batch[middle:])])
        if not self.dimension and matrix.ndim == 2:
            self.dimension = int(matrix.shape[1])
        return unit_vectors(matrix, len(batch), self.dimension, place=self.model)


def unit_vectors(matrix: np.ndarray, count: int, dimension: int, *, place: str = "", reject_class: str = "internal") -> np.ndarray:
    """float32 (count, dimension) of unit length. Raises InputError for another shape, a value that is no number, or a zero vector."""
    if matrix.ndim != 2 or matrix.shape != (count, dimension):
        message = f"the model gave vectors of shape {matrix.shape} for {count} texts of dimension {dimension}"
        raise InputError(message, reject_class=reject_class, place=place)
    matrix = np.asarray(matrix, np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        norms = np.linalg.norm(matrix.astype(np.float64), axis=1)
    bad = np.flatnonzero(~np.isfinite(norms) | (norms < 1e-12))
    if bad.size:
        what = "a zero vector" if np.isfinite(norms[bad[0]]) else "a value that is not a number"
        raise InputError(f"the model gave {what} for text {int(bad[0])} of a batch", reject_class=reject_class, place=place)
    return (matrix / norms[:, None]).astype(np.float32)


def embedding_identity(model: str = DEFAULT_MODEL, base_url: str = "") -> str:
    """What must be equal for two vectors to be comparable: the model's name and its files' hash, or the endpoint. Loads no model."""
    if base_url:
        return f"{model}@{base_url.rstrip('/')}"
    if model == NO_MODEL:
        return NO_MODEL
    folder = _model_folder(model)
    return f"{model}@{_folder_hash(folder)}" if folder is not None else model


def choose_device(wanted: str, gpus: float | None = None) -> str:
    """Torch's name of the device. `wanted` auto is CUDA where `gpus` were given to the caller; a caller that was told of none (None) takes
    what the machine has. Raises ConfigError when CUDA is asked for, or GPUs were given, and torch finds none."""
    if wanted == "auto" and gpus == 0:
        return "cpu"
    if wanted != "auto" and not wanted.startswith("cuda"):
        return wanted
    import torch

    if torch.cuda.is_available():
        return "cuda" if wanted == "auto" else wanted
    if wanted == "auto" and gpus is None:
        return "cpu"
    raise ConfigError(
        "a GPU is to compute the vectors, and torch finds no CUDA device",
        place=f"embed.device: {wanted}" if wanted != "auto" else f"stages.embed.gpus: {gpus:g}",
        remedy="Set stages.embed.gpus: 0 and embed.device: auto, or install the driver and a torch with CUDA",
    )


def load_embedder(config: EmbedConfig | None = None, *, gpus: float | None = None) -> Embedder | None:
    """The embedder of a configuration (the packaged model without one); None for the model `none`. `gpus`: see `choose_device`.

    Raises InputError (model_load) with a remedy when the model cannot be loaded; ConfigError when the endpoint's key or the wanted device
    is missing.
    """
    chosen: EmbedConfig = config if config is not None else EmbedOptions()
    fingerprint = embedding_identity(chosen.model, chosen.base_url)
    if chosen.base_url:
        from raydex.kernels.embed_remote import Endpoint

        endpoint = Endpoint(chosen.base_url, chosen.model, api_key_env=chosen.api_key_env)
        return Embedder(
            chosen.model,
            fingerprint,
            endpoint.encode,
            batch_size=chosen.batch_size,
            batch_tokens=chosen.batch_size * 8192,
            tokenizer=chosen.model,
        )
    if chosen.model == NO_MODEL:
        return None
    import torch

    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    load = _load_packaged if chosen.model == DEFAULT_MODEL else _load_sentence
    return load(chosen, fingerprint, choose_device(chosen.device, gpus))


def _load_packaged(config: EmbedConfig, fingerprint: str, device: str) -> Embedder:
    import tokenizers

    from raydex.kernels.bert import BertEncoder

    folder = default_model_folder()
    encoder = BertEncoder(folder, device, half=device.startswith("cuda"))
    limit = encoder.config.max_tokens
    cutter = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    cutter.no_padding()
    cutter.enable_truncation(limit)

    def encode(batch: list[str]) -> np.ndarray:
        return encoder.encode([encoding.ids for encoding in cutter.encode_batch_fast(batch)])

    return Embedder(
        config.model,
        fingerprint,
        encode,
        dimension=encoder.config.hidden_size,
        max_tokens=limit,
        batch_size=config.batch_size,
        batch_tokens=CPU_BATCH_TOKENS if device == "cpu" else BATCH_TOKENS,
        device=device,
    )


def _load_sentence(config: EmbedConfig, fingerprint: str, device: str) -> Embedder:
    """Any sentence-transformers model, from safetensors only: pickled weights and code that a model brings along are not run."""
    import httpx
    import torch
    from sentence_transformers import SentenceTransformer

    try:
        inner = SentenceTransformer(config.model, device=device, trust_remote_code=False, model_kwargs={"use_safetensors": True})
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, httpx.HTTPError) as error:
        raise InputError(
            f"the embedding model cannot be loaded: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            reject_class="model_load",
            place=config.model,
            remedy="Name a folder that holds a sentence-transformers model with safetensors weights, or use embed.model minilm",
        ) from error

    def encode(batch: list[str]) -> np.ndarray:
        try:
            return np.asarray(inner.encode(batch, batch_size=len(batch), convert_to_numpy=True, show_progress_bar=False))
        except torch.OutOfMemoryError as error:
            raise CapacityError(f"the accelerator's memory does not hold a batch of {len(batch)} texts") from error

    size = inner.get_embedding_dimension() or 0
    tokenizer = str(tokenizer_path(config.model))
    limit = int(inner.max_seq_length or 0)
    return Embedder(
        config.model,
        fingerprint,
        encode,
        dimension=size,
        max_tokens=limit,
        batch_size=config.batch_size,
        tokenizer=tokenizer,
        device=device,
    )


def _model_folder(model: str) -> Path | None:
    if model == DEFAULT_MODEL:
        return default_model_folder()
    place = Path(model).expanduser()
    if place.is_dir():
        return place
    cached = hub_file(model, "config.json")
    return cached.parent if cached is not None else None


@lru_cache(maxsize=16)
def _folder_hash(folder: Path) -> str:
    """12 hex digits over the names and bytes of configuration, tokenizer and weight files."""
    fields: list[str] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".json", ".safetensors", ".txt", ".model") and path.name != "data_config.json" and path.is_file():
            fields += [path.relative_to(folder).as_posix(), blake3().update_mmap(path).hexdigest()]
    return digest(*fields)[:12]
