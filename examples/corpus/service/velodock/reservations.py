"""Reservations: a bike waits for a rider, for a while."""

from __future__ import annotations

import itertools

from velodock.clock import Clock
from velodock.docks import find_station, free_bike, hold_bike
from velodock.models import Conflict, NotFound, Reservation
from velodock.settings import Settings
from velodock.store import MemoryStore

_numbers = itertools.count(1)


def reserve_bike(store: MemoryStore, station_id: str, rider: str, clock: Clock, settings: Settings) -> Reservation:
    """Holds the best bike of a station for a rider. A rider has one hold at a time."""
    check_rider(store, rider)
    station = find_station(store, station_id)
    now = clock.now()
    bike = hold_bike(station, now)
    reservation = Reservation(f"h-{next(_numbers)}", rider, bike.bike_id, station_id, now + settings.hold_seconds())
    store.add(reservation)
    return reservation


def check_rider(store: MemoryStore, rider: str) -> None:
    """Conflict when the rider already holds a bike."""
    if any(held.rider == rider for held in store.reservations()):
        raise Conflict(f"rider {rider} already holds a bike")


def release_expired(store: MemoryStore, clock: Clock) -> list[Reservation]:
    """Lets every bike go whose hold has run out, twelve minutes after it was reserved unless the rider lengthened it.

    The service calls this every thirty seconds; it gives back the reservations that ended.
    """
    now = clock.now()
    ended = [held for held in store.reservations() if held.has_ended(now)]
    for held in ended:
        store.remove(held.reservation_id)
        free_bike(find_station(store, held.station_id), held.bike_id, now, "hold.expired")
    return ended


def cancel_reservation(store: MemoryStore, reservation_id: str, clock: Clock) -> Reservation:
    """The rider changed plans: the bike is free at once."""
    held = store.remove(reservation_id)
    free_bike(find_station(store, held.station_id), held.bike_id, clock.now(), "hold.cancelled")
    return held


def extend_hold(store: MemoryStore, reservation_id: str, clock: Clock, settings: Settings) -> Reservation:
    """Six more minutes, once, and only while the hold still runs."""
    held = next((one for one in store.reservations() if one.reservation_id == reservation_id), None)
    if held is None or held.has_ended(clock.now()):
        raise NotFound(f"there is no running hold {reservation_id}")
    if held.lengthened:
        raise Conflict("a hold can be lengthened once")
    held.ends_at += settings.extension_minutes * 60
    held.lengthened = True
    return held
