"""What the service knows about: bikes, stations, reservations."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class BikeState(Enum):
    FREE = "free"
    HELD = "held"
    RIDING = "riding"
    OUT_OF_SERVICE = "out of service"


@dataclass
class Bike:
    """`charge` is per cent of a full battery; `station` is empty while somebody rides."""

    bike_id: str
    charge: int
    station: str = ""
    state: BikeState = BikeState.FREE

    @property
    def may_be_offered(self) -> bool:
        return self.state is BikeState.FREE and bool(self.station)


@dataclass
class Station:
    station_id: str
    name: str
    docks: int
    bikes: dict[str, Bike] = field(default_factory=dict)

    def free_bikes(self) -> list[Bike]:
        return [bike for bike in self.bikes.values() if bike.may_be_offered]


@dataclass
class Reservation:
    """`ends_at` is seconds of the service's clock; a hold is lengthened at most once."""

    reservation_id: str
    rider: str
    bike_id: str
    station_id: str
    ends_at: float
    lengthened: bool = False

    def has_ended(self, now: float) -> bool:
        return now >= self.ends_at


class ServiceError(Exception):
    """Something that the rider has to be told; `status` is the HTTP status."""

    status = 400


class NotFound(ServiceError):
    status = 404


class Conflict(ServiceError):
    status = 409
