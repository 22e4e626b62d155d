"""Shared by all tests: engine tests run one after the other in one worker, and no test sees the developer's own lake or faults.

The lake of `tests/corpus.py` is indexed once: by test_index while its engines run, and read by test_commands after it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from raydex.configs.settings import Settings

for name in [key for key in os.environ if key.startswith("RAYDEX_") and key not in ("RAYDEX_TEST_WORKERS",)]:
    del os.environ[name]
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# a busy machine must not fail a property: no time is asserted
settings.register_profile("raydex", deadline=None)
settings.load_profile("raydex")


@pytest.fixture(scope="session")
def plant_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Small epochs and batches, so that a small corpus has several."""
    from raydex.configs.settings import load_settings

    path = tmp_path_factory.mktemp("config") / "run.yaml"
    path.write_text("run: {epoch_records: 4}\nstages: {parse: {batch_size: 2}, chunk: {batch_size: 2}, embed: {batch_size: 4}}\n")
    return load_settings(path)


@pytest.fixture(scope="session")
def plant(tmp_path_factory: pytest.TempPathFactory, plant_settings: Settings) -> dict[str, Any]:
    """The corpus and its lake after the first run: {corpus, lake, summary}. Tests that change something copy both folders."""
    from raydex.jobs.index import IndexRequest, index
    from tests.corpus import write_corpus

    folder = tmp_path_factory.mktemp("built")
    corpus = write_corpus(folder / "plant")
    request = IndexRequest(specs=(str(corpus),), lake=str(folder / "lake"), settings=plant_settings, progress=False)
    return {"corpus": corpus, "lake": folder / "lake", "summary": index(request)}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Engine tests are one group: they run one after the other in one worker."""
    if item.get_closest_marker("slow"):
        item.add_marker(pytest.mark.xdist_group("engines"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Engine tests first, so that the quick ones fill the other worker meanwhile; what only reads the indexed lake comes after it."""
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, item.path.name == "test_commands.py"))
