"""The typed value of a cell of an OpenDocument sheet → its text and kind, as a cell of an Excel workbook with that value has them.

What the file shows is the text. Three things are read from the value instead: a boolean, which is TRUE or FALSE in any language; a value
whose column was too narrow to show it (###); and one that the writer of the file stored without a text, whose number is then shown as
`General` shows it. The invariant: a cell with a value has a text; a value that its type does not allow is its own text.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping

from raydex.kernels.number_format import show_general
from raydex.kernels.sheet import BOOLEAN, DATE, ERROR, NUMBER, TEXT

_KINDS = {"float": NUMBER, "percentage": NUMBER, "currency": NUMBER, "date": DATE, "time": DATE, "boolean": BOOLEAN, "error": ERROR}
_STORED = {"date": "date-value", "time": "time-value", "boolean": "boolean-value", "string": "string-value"}
_ANY = ("date-value", "time-value", "boolean-value", "value", "string-value")
_DURATION = re.compile(r"(-?)P(?:([0-9]{1,9})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})(?:[.,]([0-9]{1,9}))?S)?)?")


def show_value(shown: str, about: Mapping[str, str]) -> tuple[str, str]:
    """Text and kind of a cell: `shown` is the text in the file, `about` the attributes by local name. Without any value, no text."""
    kind = about.get("value-type", "")
    blank = not shown or shown.isspace()
    stored = about.get(_STORED.get(kind, "value"), "")
    if not stored and blank and kind != "string":
        stored = next((about[name] for name in _ANY if about.get(name)), "")
    if stored and (blank or kind == "boolean" or (kind in _KINDS and not shown.strip().strip("#"))):
        shown = _show(stored, kind, about.get("currency", ""))
    return ("" if shown.isspace() else shown), _KINDS.get(kind, TEXT)


def _show(stored: str, kind: str, currency: str) -> str:
    if kind == "boolean":
        return {"true": "TRUE", "false": "FALSE"}.get(stored.strip().lower(), stored)
    if kind == "date":
        return _show_date(stored)
    if kind == "time":
        return _show_duration(stored)
    if kind in ("float", "percentage", "currency"):
        return _show_number(stored, kind, currency)
    return stored


def _show_number(stored: str, kind: str, currency: str) -> str:
    try:
        number = float(stored)
    except ValueError:
        return stored
    if not math.isfinite(number):
        return stored
    if kind == "percentage":
        return f"{show_general(number * 100)}%"
    return f"{show_general(number)} {currency}" if kind == "currency" and currency else show_general(number)


def _show_date(stored: str) -> str:
    """The day, with the time of day where there is one; what is no date of the calendar, or names a zone, stays as it is."""
    try:
        moment = datetime.datetime.fromisoformat(stored)
    except ValueError:
        return stored
    if moment.tzinfo is not None:
        return stored
    return moment.date().isoformat() if moment.time() == datetime.time() else moment.isoformat(" ")


def _show_duration(stored: str) -> str:
    """PT36H15M00S is 36:15:00."""
    found = _DURATION.fullmatch(stored)
    if found is None:
        return stored
    sign, *parts, fraction = found.groups(default="")
    days, hours, minutes, seconds = (int(part or "0") for part in parts)
    minutes, seconds = divmod(((days * 24 + hours) * 60 + minutes) * 60 + seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = fraction.rstrip("0")
    return f"{sign}{hours}:{minutes:02d}:{seconds:02d}" + (f".{fraction}" if fraction else "")
