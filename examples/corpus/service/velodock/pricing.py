"""Prices of trips, in whole cents."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tariff:
    name: str
    unlock_cents: int
    minute_cents: int
    day_cap_cents: int


def load_tariffs(path: Path) -> dict[str, Tariff]:
    """Reads `data/tariff.json`."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return {row["name"]: Tariff(**row) for row in data["tariffs"]}


def quote_trip(tariff: Tariff, seconds: float, paid_today: int = 0) -> int:
    """Cents for a trip: unlock plus started minutes, never above what is left of the day cap."""
    price = tariff.unlock_cents + started_minutes(seconds) * tariff.minute_cents
    return apply_cap(price, tariff, paid_today)


def started_minutes(seconds: float) -> int:
    return math.ceil(max(seconds, 0.0) / 60)


def apply_cap(price: int, tariff: Tariff, paid_today: int) -> int:
    return max(0, min(price, tariff.day_cap_cents - paid_today))
