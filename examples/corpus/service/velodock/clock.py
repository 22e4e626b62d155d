"""Time, so that tests do not wait."""

import time


class Clock:
    """Seconds that never run backwards."""

    def now(self) -> float:
        return time.monotonic()


class FixedClock(Clock):
    """A clock that a test moves by hand."""

    def __init__(self, start: float = 0.0) -> None:
        self.current = start

    def now(self) -> float:
        return self.current

    def move(self, seconds: float) -> None:
        self.current += seconds
