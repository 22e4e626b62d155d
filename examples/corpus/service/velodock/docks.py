"""Docks: which bikes stand where, and who may take them."""

from __future__ import annotations

from .events import record_event
from .models import Bike, BikeState, Conflict, NotFound, Station
from .settings import LOWEST_CHARGE
from .store import MemoryStore


def find_station(store: MemoryStore, station_id: str) -> Station:
    """The station of that name; NotFound when there is none."""
    return store.station(station_id)


def count_free(station: Station) -> int:
    """Bikes that a rider could take now."""
    return len(offered_bikes(station))


def offered_bikes(station: Station) -> list[Bike]:
    """Free bikes with enough charge, fullest battery first."""
    bikes = [bike for bike in station.free_bikes() if bike.charge >= LOWEST_CHARGE]
    return sorted(bikes, key=lambda bike: (-bike.charge, bike.bike_id))


def hold_bike(station: Station, at: float) -> Bike:
    """Locks the best bike of a station for one rider; Conflict when none is left."""
    bikes = offered_bikes(station)
    if not bikes:
        raise Conflict(f"no bike is free at {station.name}")
    bike = bikes[0]
    bike.state = BikeState.HELD
    record_event("hold.begun", bike.bike_id, at, station.station_id)
    return bike


def free_bike(station: Station, bike_id: str, at: float, reason: str) -> Bike:
    """Gives a held bike back to everybody."""
    bike = station.bikes.get(bike_id)
    if bike is None:
        raise NotFound(f"bike {bike_id} is not at {station.name}")
    if bike.state is BikeState.HELD:
        bike.state = BikeState.FREE
    record_event(reason, bike.bike_id, at, station.station_id)
    return bike
