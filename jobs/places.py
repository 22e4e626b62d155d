"""Where a lake keeps what may lie outside its folder: originals (`objects.uri`) and the registry (`stores.registry`).

A generation's cursors say where its own lie, so that readers need no configuration; "" is the place inside the lake, and a path is
absolute. No secret is kept: a password in an address stays in the configuration. The invariant: what the ledger says is kept lies at the
place that the active generation names, so another `objects.uri` is taken only when everything is there already.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.lake import Generation, Lake
from raydex.cluster.objects import ObjectStore
from raydex.configs.settings import Settings
from raydex.ir.errors import ConfigError


def place_cursors(settings: Settings) -> dict[str, dict[str, str]]:
    """What a new generation keeps in its cursors."""
    url = settings.stores.registry
    if url:
        from raydex.cluster.registry import without_password

        url = without_password(url)
    return {"objects": {"uri": _kept(settings.objects.uri)}, "registry": {"url": url}}


def objects_uri(lake: Lake, settings: Settings) -> str:
    """Where a run with these settings writes originals."""
    return _absolute(settings.objects.uri) or str(lake.objects)


def member_store(lake_root: str) -> str:
    """Where bytes from inside files lie during a run that keeps no originals."""
    return f"{lake_root}/staging/members"


def held_objects_uri(lake: Lake, cursors: Mapping[str, Any]) -> str:
    """Where the originals of a generation with these cursors lie."""
    return str(cursors.get("objects", {}).get("uri") or lake.objects)


def registry_url(lake: Lake, configured: str) -> str:
    """The database of `stores.registry`."""
    return configured or f"sqlite:///{lake.stores / 'registry.db'}"


def registry_is_there(lake: Lake, settings: Settings) -> bool:
    """Whether the lake's own registry is where it belongs; a database elsewhere is not asked."""
    return bool(settings.stores.registry) or (lake.stores / "registry.db").exists()


def held_registry(cursors: Mapping[str, Any]) -> str:
    """The `stores.registry` of a generation with these cursors, without a password."""
    return str(cursors.get("registry", {}).get("url", ""))


def check_objects(lake: Lake, generation: Generation | None, ledger: pa.Table, settings: Settings) -> None:
    """Raises ConfigError when `objects.uri` is another place than the generation's and lacks originals that the ledger names."""
    held = held_objects_uri(lake, generation.cursors if generation else {})
    wanted = objects_uri(lake, settings)
    kept = sorted({uri for uri in pc.unique(ledger.column("cas_uri")).to_pylist() if uri})
    if not kept or _kept(wanted) == _kept(held):
        return
    store = ObjectStore(wanted)
    missing = [uri for uri in kept if not store.exists(uri)]
    if missing:
        raise ConfigError(
            f"objects.uri is {wanted}, and {len(missing)} of the {len(kept)} originals that the lake keeps at {held} are not there",
            place=str(lake.root),
            remedy="Copy the folder cas/ from there to the new place and run again, or set objects.uri back",
        )


def _absolute(uri: str) -> str:
    return os.path.abspath(uri) if uri and not urlsplit(uri).scheme else uri


def _kept(uri: str) -> str:
    """An address without its password."""
    uri = _absolute(uri)
    parts = urlsplit(uri)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if parts.password else uri
