"""The settings that name servers → whether they answer: asked before the first stage, since a store is loaded hours after it."""

from __future__ import annotations

from raydex.configs.settings import Settings


def check_servers(settings: Settings) -> None:
    """Opens and closes what `stores.*` names; embedded stores need no asking.

    Raises ConfigError for an address that no driver takes, StoreError for a server that does not answer.
    """
    from raydex.jobs.standing import wanted_stores

    if settings.stores.registry:
        check_registry(settings.stores.registry)
    if "://" in settings.stores.vectors and "vectors" in wanted_stores(settings):
        check_vectors(settings.stores.vectors)


def check_registry(url: str) -> None:
    from raydex.cluster.registry import open_registry

    with open_registry(url):
        return


def check_vectors(uri: str) -> None:
    from raydex.cluster.vectors import VectorStore

    with VectorStore(uri, "raydex_check", 1):
        return
