"""Configuration: unknown keys name the nearest right one, files in configs/ load, the environment overrides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from raydex.configs.settings import Settings, load_settings
from raydex.ir.errors import ConfigError
from raydex.jobs.context import stage_fingerprints

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_configurations_load(path: Path) -> None:
    assert load_settings(path).chunk.max_tokens == 256


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("chunk:\n  max_token: 100\n", "unknown key chunk.max_token; did you mean chunk.max_tokens?"),
        ("stages:\n  embed:\n    gpu: 1\n", "did you mean stages.embed.gpus?"),
        ("chnk: {}\n", "did you mean chunk?"),
        ("chunk:\n  max_tokens: 1\n", "chunk.max_tokens: Input should be greater than or equal to 16"),
        ("chunk: 3\n", "chunk: Input should be a valid dictionary"),
        ("a: [\n", "not valid YAML"),
        ("chunk:\n  max_tokens: 100\n  overlap: 3\n  max_tokens: 200\n", "key max_tokens is there twice, in lines 2 and 4"),
        ("chunk: {overlap: 3}\nlimits: {}\nchunk: {max_tokens: 100}\n", "key chunk is there twice, in lines 1 and 3"),
        ("list: &a {include: [*a]}\n", "list.include"),
        ("- a\n", "must hold keys and values"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_settings(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)
    assert error.value.exit_code == 2


def test_every_setting_is_read_somewhere() -> None:
    text = "\n".join(path.read_text() for layer in ("jobs", "kernels", "cluster") for path in (ROOT / layer).glob("*.py"))
    sections = {name: field.annotation.model_fields for name, field in Settings.model_fields.items() if name not in ("workspace", "stages")}
    unread = [f"{name}.{key}" for name, keys in sections.items() for key in keys if not re.search(rf"\.{key}\b", text)]
    assert unread == []


def test_a_new_chunk_kernel_chunks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = stage_fingerprints(load_settings())
    monkeypatch.setattr("raydex.jobs.context.CHUNK_VERSION", "next")
    after = stage_fingerprints(load_settings())
    assert {stage for stage in before if before[stage] != after[stage]} == {"chunk"}


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load_settings(tmp_path / "none.yaml")


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("chunk:\n  max_tokens: 100\n  overlap: 3\nlimits:\n  seconds: 7\n")
    monkeypatch.setenv("RAYDEX_CHUNK__MAX_TOKENS", "64")
    settings = load_settings(path)
    assert (settings.chunk.max_tokens, settings.chunk.overlap, settings.limits.seconds) == (64, 3, 7.0)
    assert settings.limits.to_limits().seconds == 7.0
