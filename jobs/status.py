"""`raydex status`: records by state, rejects by class, last runs, store counts; read from the active generation and the ledger."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from raydex.cluster.delta import read_delta
from raydex.cluster.lake import Lake, active_generation, load_ledger

RUNS_SHOWN = 5


def lake_status(root: Path) -> dict[str, Any]:
    """Raises ConfigError when there is no lake; a lake whose first run has not ended has generation 0."""
    lake = Lake.open(root)
    generation = active_generation(lake)
    ledger = load_ledger(lake, columns=["state", "reject_class", "missing", "media_type", "source_name"])
    missing: Counter[str] = Counter()
    for items in ledger.column("missing").to_pylist():
        missing.update(items or ())
    rejects = Counter(name for name in ledger.column("reject_class").to_pylist() if name)
    runs = read_delta(lake.tables, "runs", columns=["run_id", "started_at", "ended_at", "state", "generation", "summary"])
    last = runs.sort_by([("started_at", "descending")]).slice(0, RUNS_SHOWN).to_pylist()
    return {
        "lake": str(lake.root),
        "generation": generation.number if generation else 0,
        "unfinished_run": lake.dirty(),
        "sources": list(generation.sources.values()) if generation else [],
        "records": dict(sorted(Counter(ledger.column("state").to_pylist()).items())),
        "media_types": dict(sorted(Counter(ledger.column("media_type").to_pylist()).items())),
        "missing": dict(sorted(missing.items())),
        "captions": "unavailable: no captioning model is configured",
        "rejects": dict(sorted(rejects.items())),
        "tables": table_counts(lake, generation.table_versions if generation else {}),
        "stores": generation.cursors if generation else {},
        "runs": [
            {
                "run": row["run_id"],
                "started_at": row["started_at"].isoformat(),
                "seconds": orjson.loads(row["summary"]).get("seconds"),
                "state": row["state"],
                "generation": row["generation"],
                "records": orjson.loads(row["summary"]).get("records"),
            }
            for row in last
        ],
    }


def table_counts(lake: Lake, versions: dict[str, int]) -> dict[str, int]:
    """Rows of every pinned table, from the log's statistics."""
    from raydex.cluster.delta import list_data_files

    return {name: sum(file.rows for file in list_data_files(lake.tables, name, version)) for name, version in sorted(versions.items())}
