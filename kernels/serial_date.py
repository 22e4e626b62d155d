"""Serial numbers of spreadsheets → moments, and moments → text by the tokens of a number format.

The invariant: day 60 of the 1900 system is the 29th of February 1900, as every such program counts; a moment is rounded to the smallest
unit that is shown, never past it; a number that is no date of its system gives None.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

MAX_SERIAL = 2_958_466  # the day behind 9999-12-31
_DAYS_1904 = 1_462
_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_DAYS_ZH = "一二三四五六日"
_EPOCH = datetime.date(1899, 12, 30)

Token = tuple[str, str]


class Moment(NamedTuple):
    """`serial` counts in the 1900 system; for elapsed time it is the number of days as stored."""

    serial: float
    elapsed: float


def read_serial(value: float, date1904: bool) -> Moment | None:
    serial = value + _DAYS_1904 if date1904 else value
    return Moment(serial, value) if value >= 0 and serial < MAX_SERIAL else None


def to_serial(moment: datetime.datetime) -> float:
    """The serial number of a date and time in the 1900 system."""
    days = (moment.date() - _EPOCH).days
    if days <= 60:
        days -= 1
    return days + (moment.hour * 3600 + moment.minute * 60 + moment.second + moment.microsecond / 1e6) / 86_400


def show_date(moment: Moment, tokens: list[Token]) -> str:
    digits = max((len(text) - text.find(".") - 1 for kind, text in tokens if kind == "date" and "." in text), default=0)
    unit = 10 ** min(digits, 6)
    ticks = int(moment.serial * 86_400 * unit + 0.5)
    elapsed = int(moment.elapsed * 86_400 * unit + 0.5) // unit
    days, clock = divmod(ticks, 86_400 * unit)
    seconds, fraction = divmod(clock, unit)
    half = next((text for kind, text in tokens if kind == "half"), "")
    year, month, day, weekday = _calendar(days)
    shown: list[str] = []
    for at, (kind, text) in enumerate(tokens):
        if kind == "elapsed":
            shown.append(f"{elapsed // {'h': 3600, 'm': 60, 's': 1}[text[0]]:0{len(text)}d}")
        elif kind == "half":
            names = half.split("/")
            shown.append(names[seconds >= 43_200])
        elif kind == "stop":
            break
        elif kind != "date":
            shown.append(text)
        elif text[0] == "s":
            whole = len(text.partition(".")[0])
            shown.append(f"{seconds % 60:0{min(whole, 2)}d}" + (f".{fraction:0{min(digits, 6)}d}" if "." in text else ""))
        elif text[0] == "h":
            hour = seconds // 3600
            shown.append(f"{(hour % 12 or 12) if half else hour:0{min(len(text), 2)}d}")
        elif text[0] == "m" and len(text) <= 2 and _is_minute(tokens, at):
            shown.append(f"{seconds // 60 % 60:0{len(text)}d}")
        else:
            shown.append(_show_day(text, year, month, day, weekday))
    return "".join(shown)


def _is_minute(tokens: list[Token], at: int) -> bool:
    """`m` is a minute behind an hour or before a second."""
    before = next((text for kind, text in reversed(tokens[:at]) if kind in ("date", "elapsed")), "")
    after = next((text for kind, text in tokens[at + 1 :] if kind in ("date", "elapsed")), "")
    return before[:1] == "h" or after[:1] == "s"


def _calendar(days: int) -> tuple[int, int, int, int]:
    """Year, month, day and weekday (Monday is 0) of a day of the 1900 system; day 0 is the "0th" of January."""
    weekday = (days + 5) % 7
    if days == 60:
        return 1900, 2, 29, weekday
    if days == 0:
        return 1900, 1, 0, weekday
    date = _EPOCH + datetime.timedelta(days=days + (days < 60))
    return date.year, date.month, date.day, weekday


def _show_day(text: str, year: int, month: int, day: int, weekday: int) -> str:
    letter, count = text[0], len(text)
    if letter in "ye":
        return f"{year % 100:02d}" if letter == "y" and count <= 2 else f"{year:04d}"
    if letter == "b":
        return f"{(year + 543) % 100:02d}" if count <= 2 else str(year + 543)
    if letter == "m":
        name = _MONTHS[month - 1]
        return (f"{month}", f"{month:02d}", name[:3], name, name[0])[min(count, 5) - 1]
    if letter == "d":
        return (f"{day}", f"{day:02d}", _DAYS[weekday][:3], _DAYS[weekday])[min(count, 4) - 1]
    if letter == "a":
        return ("周" if count == 3 else "星期") + _DAYS_ZH[weekday]
    return ""
