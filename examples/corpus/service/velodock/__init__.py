"""The dock service: bikes, stations, holds and prices."""

from .docks import count_free, find_station
from .models import Bike, BikeState, Reservation, Station
from .pricing import quote_trip
from .reservations import cancel_reservation, extend_hold, release_expired, reserve_bike

__all__ = [
    "Bike",
    "BikeState",
    "Reservation",
    "Station",
    "cancel_reservation",
    "count_free",
    "extend_hold",
    "find_station",
    "quote_trip",
    "release_expired",
    "reserve_bike",
]
