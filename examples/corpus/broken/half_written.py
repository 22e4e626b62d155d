"""A file that somebody saved in the middle of a thought: the first function is whole."""


def count_silent(reports: dict[str, float], now: float) -> int:
    """Stations whose last report is older than twenty minutes."""
    return sum(1 for at in reports.values() if now - at > 20 * 60)


def wake_station(station_id: str, attempts: int = 3:
    for attempt in range(attempts)
        ask(station_id
