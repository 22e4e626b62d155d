"""Holds begin, end and are lengthened once."""

from velodock import BikeState, release_expired, reserve_bike
from velodock.clock import FixedClock
from velodock.models import Bike, Station
from velodock.settings import Settings
from velodock.store import MemoryStore


def make_store() -> MemoryStore:
    store = MemoryStore()
    station = Station("harbour", "Harbour", 4)
    for number, charge in enumerate((15, 80, 60)):
        station.bikes[f"b-{number}"] = Bike(f"b-{number}", charge, "harbour")
    store.stations["harbour"] = station
    return store


def test_the_fullest_bike_is_held_for_twelve_minutes() -> None:
    store, clock = make_store(), FixedClock()
    held = reserve_bike(store, "harbour", "r-1", clock, Settings())
    assert held.bike_id == "b-1"
    clock.move(12 * 60 - 1)
    assert release_expired(store, clock) == []
    clock.move(1)
    assert release_expired(store, clock) == [held]
    assert store.stations["harbour"].bikes["b-1"].state is BikeState.FREE
