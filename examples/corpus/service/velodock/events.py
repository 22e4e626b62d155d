"""The log of what happened to bikes; the night watch reads it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    name: str
    bike_id: str
    at: float
    detail: str = ""


class EventLog:
    """Keeps the last events in memory, oldest first."""

    def __init__(self, size: int = 10_000) -> None:
        self.size = size
        self.events: list[Event] = []

    def append(self, event: Event) -> None:
        self.events.append(event)
        self._trim()

    def since(self, at: float) -> list[Event]:
        return [event for event in self.events if event.at >= at]

    def _trim(self) -> None:
        if len(self.events) > self.size:
            del self.events[: len(self.events) - self.size]


LOG = EventLog()


def record_event(name: str, bike_id: str, at: float, detail: str = "") -> Event:
    """Writes one event down and gives it back."""
    event = Event(name, bike_id, at, detail)
    LOG.append(event)
    return event
