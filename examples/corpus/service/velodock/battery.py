"""Batteries: which bikes the crew should visit, and in which order."""

from __future__ import annotations

from collections.abc import Iterable

from . import events
from .models import Bike, BikeState, Station

URGENT = 10
SOON = 20
MAYBE = 35


def needs_charge(bike: Bike, below: int = SOON) -> bool:
    return bike.charge < below


def plan_swaps(stations: Iterable[Station], batteries: int) -> list[tuple[str, str]]:
    """(station, bike) pairs for one tour: emptiest first, at most as many as there are batteries in the rack."""
    waiting = [
        (bike.charge, station.station_id, bike.bike_id)
        for station in stations
        for bike in station.bikes.values()
        if bike.state is not BikeState.RIDING and needs_charge(bike, MAYBE)
    ]
    return [(station, bike) for _, station, bike in sorted(waiting)[:batteries]]


class BatteryWatch:
    """Takes bikes out of service before they strand a rider."""

    def __init__(self, urgent: int = URGENT) -> None:
        self.urgent = urgent

    def inspect(self, station: Station, at: float) -> list[Bike]:
        found = [bike for bike in station.bikes.values() if needs_charge(bike, self.urgent)]
        for bike in found:
            self._withdraw(bike, at)
        return found

    def _withdraw(self, bike: Bike, at: float) -> None:
        bike.state = BikeState.OUT_OF_SERVICE
        events.record_event("battery.empty", bike.bike_id, at)
