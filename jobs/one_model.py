"""One generation shows the vectors of one embedding model: two models' vectors cannot be compared, whatever their dimensions.

The ledger says by which fingerprint a record was embedded. A run that leaves records of another model as they are would take them out of
the search, so it is refused before any work, unless `embed.partial` allows it; then these records wait, and every check names them.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from raydex.configs.settings import EmbedSettings, Settings
from raydex.ir.errors import ConfigError
from raydex.jobs.context import stage_fingerprints
from raydex.kernels.tokens import NO_MODEL


def no_model_fingerprint() -> str:
    """What the ledger says of records that were indexed without an embedding model."""
    return stage_fingerprints(Settings.model_construct(embed=EmbedSettings(model=NO_MODEL)))["embed"]


def embed_marks(records: pa.Table) -> pa.ChunkedArray:
    """The fingerprint by which each record was embedded; null where it was not. `records` has the column `fingerprints`."""
    return pc.map_lookup(records.column("fingerprints"), pa.scalar("embed"), "first")


def waiting_sources(ledger: pa.Table, fingerprint: str, touched: pa.ChunkedArray | pa.Array) -> Counter[str]:
    """Source name → records that have vectors of another model than `fingerprint`'s, among those that are not `touched` (booleans)."""
    marks = embed_marks(ledger)
    other = pc.invert(pc.is_in(marks, pa.array([fingerprint, no_model_fingerprint()])))
    mask = pc.and_(pc.and_(pc.is_valid(marks), other), pc.invert(touched))
    return Counter(ledger.filter(mask).column("source_name").to_pylist())


def check_one_model(ledger: pa.Table, source_ids: set[str], only: set[str] | None, settings: Settings, fingerprint: str) -> None:
    """Raises ConfigError when this run would embed by one model and leave records of another; `only`: record ids that a retry is about."""
    touched = pc.is_in(ledger.column("source_id"), pa.array(sorted(source_ids), pa.string()))
    if only is not None:
        touched = pc.and_(touched, pc.is_in(ledger.column("record_id"), pa.array(sorted(only), pa.string())))
    waiting = waiting_sources(ledger, fingerprint, touched)
    if waiting and not settings.embed.partial:
        raise ConfigError(
            f"embed.model is {settings.embed.model}, and the vectors of {say_sources(waiting)} are another model's",
            place="embed.model",
            remedy="Index these sources in the same run, or set embed.model back; with embed.partial: true they cannot be found by search "
            "until they are indexed",
        )


def say_sources(waiting: Counter[str]) -> str:
    """`12 records of plant, 3 of wiki`."""
    items = sorted(waiting.items())
    said = [f"{count} of {name}" for name, count in items[1:]]
    return ", ".join([f"{items[0][1]} records of {items[0][0]}", *said]) if items else ""
