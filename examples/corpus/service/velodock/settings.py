"""Numbers that the city may change without a new version."""

from dataclasses import dataclass

HOLD_MINUTES = 12
EXTENSION_MINUTES = 6
SWEEP_SECONDS = 30
LOWEST_CHARGE = 20
EXPIRED_HOLDS_A_DAY = 3


@dataclass(frozen=True)
class Settings:
    """Settings of one running service; the constants above are the defaults."""

    hold_minutes: int = HOLD_MINUTES
    extension_minutes: int = EXTENSION_MINUTES
    sweep_seconds: int = SWEEP_SECONDS
    lowest_charge: int = LOWEST_CHARGE

    def hold_seconds(self) -> int:
        return self.hold_minutes * 60
