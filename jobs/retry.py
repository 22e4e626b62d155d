"""`raydex retry`: the dead letters of a lake run again, alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.lake import Lake, active_generation, load_ledger
from raydex.configs.settings import Settings
from raydex.ir.errors import ConfigError
from raydex.jobs.documents import check_class
from raydex.jobs.index import IndexRequest, index
from raydex.jobs.summary import join_stages

# nothing but another file would end otherwise
LEFT = ("unsupported_media_type", "refused")


def retry(root: Path, settings: Settings, reject_class: str | None, *, progress: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Re-runs every rejected or degraded record whose last reject is of the class (default: all but `LEFT`).

    A retry is asked for by hand, so that terminal classes and spent attempts run again too.
    """
    lake = Lake.open(root)
    check_class(reject_class)
    generation = active_generation(lake)
    ledger = load_ledger(lake)
    mask = pc.not_equal(ledger.column("reject_class"), "")
    if reject_class is not None:
        mask = pc.and_(mask, pc.equal(ledger.column("reject_class"), reject_class))
    else:
        mask = pc.and_(mask, pc.invert(pc.is_in(ledger.column("reject_class"), pa.array(LEFT))))
    chosen = ledger.filter(mask)
    roots: dict[str, dict[str, Any]] = {}
    for key in chosen.column("source_id").unique().to_pylist():
        source = (generation.sources if generation else {}).get(key)
        if source is None:
            raise ConfigError("the lake does not know where these records came from", remedy="Run `raydex index` on their source")
        roots[key] = source
    summary: dict[str, Any] | None = None
    for key, source in sorted(roots.items(), key=lambda item: str(item[1]["name"])):
        ids = chosen.filter(pc.equal(chosen.column("source_id"), key)).column("record_id").to_pylist()
        say(f"Retrying {len(ids)} records of {source['name']}.")
        request = IndexRequest(
            specs=(source["root"],),
            lake=str(root),
            settings=settings.model_copy(update={"workspace": source["workspace"]}),
            name=source["name"],
            repository=source["repository"],
            only=frozenset(ids),
            progress=progress,
            say=say,
        )
        summary = _merge(summary, index(request))
    if summary is None:
        say("There is nothing to retry.")
        return {
            "run": "",
            "generation": generation.number if generation else 0,
            "seconds": 0.0,
            "records": _no_records(),
            "children": {},
            "stages": {},
            "rejects": {},
        }
    return summary


def _no_records() -> dict[str, int]:
    return dict.fromkeys(("seen", "new", "changed", "reprocessed", "retried", "unchanged", "deleted", "indexed", "degraded", "rejected"), 0)


def _merge(left: dict[str, Any] | None, right: dict[str, Any]) -> dict[str, Any]:
    if left is None:
        return right
    merged = dict(right)
    merged["seconds"] = left["seconds"] + right["seconds"]
    merged["records"] = {key: left["records"][key] + value for key, value in right["records"].items()}
    merged["children"] = {state: left["children"].get(state, 0) + count for state, count in right["children"].items()}
    merged["rejects"] = {key: left["rejects"].get(key, 0) + right["rejects"].get(key, 0) for key in {*left["rejects"], *right["rejects"]}}
    merged["stages"] = join_stages(left["stages"], right["stages"])
    return merged
