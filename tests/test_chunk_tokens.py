"""Token counts by remembered words are those of the tokenizer itself; long texts need neither time nor memory out of proportion."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from chunk_laws import TEXTS
from hypothesis import given
from hypothesis import strategies as st

from raydex.ir.errors import ConfigError
from raydex.kernels import tokens as module
from raydex.kernels.tokens import Tokenizer, load_tokenizer, tokenizer_identity, tokenizer_path, windows

TOKENIZER = load_tokenizer()
ANY_TEXT = st.one_of(
    TEXTS,
    st.text(st.characters(exclude_categories=("Cs",)), max_size=200),
    st.text(st.sampled_from("ab1.,'()-é中。，？ \n\t\r\x0b\x0c\x85\x1c\xa0\u2028\u200b\u0301ÀßあЖ[]#_\ufffd\0\U00020000"), max_size=80),
)


@given(ANY_TEXT)
def test_count_is_the_tokenizers_own(text: str) -> None:
    exact = TOKENIZER.exact([text])[0] - TOKENIZER.special_tokens
    assert TOKENIZER.count(text) == exact
    assert sum(TOKENIZER.measure(text)[1]) == exact
    assert sum(TOKENIZER.measure(text, inside_words=True)[1]) == exact
    assert len(TOKENIZER.offsets(text)) == exact


@given(ANY_TEXT, st.integers(0, 30))
def test_units_add_up_at_every_cut(text: str, at: int) -> None:
    starts, counts = TOKENIZER.measure(text)
    assert starts == sorted(set(starts))
    if starts:
        k = at % len(starts)
        assert TOKENIZER.count(text[: starts[k]]) == sum(counts[:k])
        assert TOKENIZER.count(text[starts[k] :]) == sum(counts[k:])


def test_offsets_are_code_points() -> None:
    text = "Zürich 电池 😀 ok"
    assert [text[a:b] for a, b in TOKENIZER.offsets(text)] == ["Zürich", "电", "池", "😀", "ok"]


def test_no_limit_of_the_file_is_kept() -> None:
    assert TOKENIZER.exact(["word " * 1000]) == [1000 + TOKENIZER.special_tokens]


def test_long_lines_are_counted_in_pieces() -> None:
    assert TOKENIZER.count("word " * 200_000) == 200_000
    assert TOKENIZER.count("a,b;" * 100_000) == 400_000
    assert TOKENIZER.count("a" * 300_000) < 100
    text = "word " * 100_000
    assert "".join(windows(text, 1000)) == text
    assert all(len(piece) <= 1000 for piece in windows("x" * 9999, 1000))


def test_memory_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CACHED_WORDS", 1000)
    tokenizer = Tokenizer(tokenizer_path())
    for start in range(0, 5000, 400):
        words = [f"{n:x}" for n in range(start, start + 400)] + [f"{start}," * 40, "a", "b"]
        assert tokenizer.count(" ".join(words)) == tokenizer.exact([" ".join(words)])[0] - 2
        assert len(tokenizer._counts) <= 1000


def test_a_model_names_its_tokenizer(tmp_path: Path) -> None:
    assert tokenizer_path("minilm") == tokenizer_path("none") == tokenizer_path("some-served/model")
    assert tokenizer_identity("minilm") == TOKENIZER.fingerprint
    copy = tmp_path / "tokenizer.json"
    copy.write_bytes(tokenizer_path().read_bytes())
    assert tokenizer_path(str(tmp_path)) == copy
    assert load_tokenizer(str(tmp_path)).fingerprint == TOKENIZER.fingerprint


@pytest.mark.parametrize("content", [b"", b"{}", b"\x00\x01 not a tokenizer", None])
def test_a_bad_file_is_a_config_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="tokenizer"):
        Tokenizer(path)


def test_tokenizer_loads_no_torch() -> None:
    script = "import sys; from raydex.kernels.tokens import load_tokenizer; load_tokenizer().count('x'); print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
