"""The configuration that a lake was last indexed with, from table `runs`: what a command takes that was given none of its own.

The newest run that completed decides: one that failed may have failed by its configuration. Keys that this release no longer has are left
out, keys that it has gained have their defaults; neither the environment nor a file is read.
"""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa
from pydantic import BaseModel, ValidationError

from raydex.cluster.delta import read_delta
from raydex.cluster.lake import Lake
from raydex.configs.settings import Settings
from raydex.ir.errors import ConfigError


def settings_of_last_run(lake: Lake) -> Settings:
    """Raises ConfigError when the lake has no run, or when this release refuses a value of its configuration."""
    runs = read_delta(lake.tables, "runs", columns=["run_id", "started_at", "state", "config"])
    done = runs.filter(pa.array([state == "complete" for state in runs.column("state").to_pylist()], pa.bool_()))
    last = (done if done.num_rows else runs).sort_by([("started_at", "descending")]).slice(0, 1).to_pylist()
    if not last:
        raise ConfigError("no run of this lake has ended yet", place=str(lake.root), remedy="Run `raydex index` on its sources")
    try:
        stored = orjson.loads(last[0]["config"])
        values = {name: _section(Settings.model_fields[name].annotation, value) for name, value in stored.items() if _known(name)}
    except (orjson.JSONDecodeError, ValidationError, AttributeError) as error:
        raise ConfigError(
            f"the configuration of run {last[0]['run_id']} is not one of this release: {str(error).splitlines()[0]}",
            place=str(lake.root),
            remedy="Name a configuration file with -c",
        ) from error
    return Settings.model_construct(**values)


def _known(name: str) -> bool:
    return name in Settings.model_fields


def _section(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind.model_validate(_pruned(kind, value))
    return value


def _pruned(kind: type[BaseModel], values: dict[str, Any]) -> dict[str, Any]:
    """`values` without the keys that the model does not have, at any depth."""
    kept: dict[str, Any] = {}
    for name, value in values.items():
        field = kind.model_fields.get(name)
        if field is None:
            continue
        inner = field.annotation
        nested = isinstance(inner, type) and issubclass(inner, BaseModel) and isinstance(value, dict)
        kept[name] = _pruned(inner, value) if nested else value  # type: ignore[arg-type]
    return kept
