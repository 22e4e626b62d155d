"""Where stations and reservations are kept."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from pathlib import Path

from .models import NotFound, Reservation, Station


class Store(ABC):
    """What the service asks of its memory."""

    @abstractmethod
    def station(self, station_id: str) -> Station: ...

    @abstractmethod
    def reservations(self) -> list[Reservation]: ...


class MemoryStore(Store):
    """Everything in dictionaries; gone when the service stops."""

    def __init__(self) -> None:
        self.stations: dict[str, Station] = {}
        self.held: dict[str, Reservation] = {}

    def station(self, station_id: str) -> Station:
        try:
            return self.stations[station_id]
        except KeyError:
            raise NotFound(f"there is no station {station_id}") from None

    def reservations(self) -> list[Reservation]:
        return list(self.held.values())

    def add(self, reservation: Reservation) -> None:
        self.held[reservation.reservation_id] = reservation

    def remove(self, reservation_id: str) -> Reservation:
        try:
            return self.held.pop(reservation_id)
        except KeyError:
            raise NotFound(f"there is no reservation {reservation_id}") from None


def load_stations(path: Path) -> MemoryStore:
    """Reads `data/stations.csv` into an empty store."""
    store = MemoryStore()
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            station = Station(row["station"], row["name"], int(row["docks"]))
            store.stations[station.station_id] = station
    return store
