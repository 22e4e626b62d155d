"""Requests in, service calls out."""

from __future__ import annotations

from typing import Any

from velodock import pricing
from velodock.clock import Clock
from velodock.docks import count_free, find_station
from velodock.http.routing import app
from velodock.reservations import cancel_reservation, extend_hold, reserve_bike
from velodock.settings import Settings
from velodock.store import MemoryStore

STORE = MemoryStore()
CLOCK = Clock()
SETTINGS = Settings()
TARIFFS: dict[str, pricing.Tariff] = {}


@app.route("/stations")
def list_stations() -> list[dict[str, Any]]:
    return [show_station(station_id) for station_id in sorted(STORE.stations)]


@app.route("/stations/<station>")
def show_station(station: str) -> dict[str, Any]:
    found = find_station(STORE, station)
    return {"station": found.station_id, "name": found.name, "docks": found.docks, "free": count_free(found)}


@app.route("/stations/<station>/reservations", methods=("POST",))
def post_reservation(station: str, body: dict[str, Any]) -> dict[str, Any]:
    """A rider asks for a bike."""
    held = reserve_bike(STORE, station, body["rider"], CLOCK, SETTINGS)
    return {"reservation": held.reservation_id, "bike": held.bike_id, "ends_at": held.ends_at}


@app.route("/reservations/<reservation>/extension", methods=("POST",))
def post_extension(reservation: str) -> dict[str, Any]:
    held = extend_hold(STORE, reservation, CLOCK, SETTINGS)
    return {"reservation": held.reservation_id, "ends_at": held.ends_at}


@app.route("/reservations/<reservation>", methods=("DELETE",))
def delete_reservation(reservation: str) -> dict[str, Any]:
    held = cancel_reservation(STORE, reservation, CLOCK)
    return {"bike": held.bike_id}


@app.route("/quotes/<tariff>/<seconds>")
def show_quote(tariff: str, seconds: str) -> dict[str, int]:
    return {"cents": pricing.quote_trip(TARIFFS[tariff], float(seconds))}
