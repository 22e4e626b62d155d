"""Shared by all tests: engine tests run one after the other in one worker, and no test sees the developer's own lake or faults."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

for name in [key for key in os.environ if key.startswith("RAYDEX_") and key not in ("RAYDEX_TEST_WORKERS",)]:
    del os.environ[name]
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# a busy machine must not fail a property: no time is asserted
settings.register_profile("raydex", deadline=None)
settings.load_profile("raydex")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Engine tests are one group: they run one after the other in one worker."""
    if item.get_closest_marker("slow"):
        item.add_marker(pytest.mark.xdist_group("engines"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Engine tests first, so that the quick ones fill the other worker meanwhile."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
