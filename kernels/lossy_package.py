"""A package some of whose parts may be absent or broken: such a part costs its own content and is named among the losses.

The invariant: what does not come out is counted and said, with the first places; a bomb or a locked part rejects the file.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.drafts import say_if_empty
from raydex.kernels.package import Package
from raydex.kernels.request import ParseRequest

_NAMED_PLACES = 10
_NAMED_LOSSES = 100


class LossyPackage:
    """Raises InputError: those of `Package`."""

    def __init__(self, request: ParseRequest) -> None:
        self.package = Package(request)
        self._losses: dict[tuple[str, str], list[str]] = {}
        self._lost: Counter[tuple[str, str]] = Counter()
        self._pictures: dict[str, bytes | None] = {}

    def xml(self, name: str) -> Any:
        """Root of a part. Raises KeyError, InputError, LimitError."""
        return self.package.xml(name)

    def optional(self, name: str, place: str, event: str = "broken_part") -> Any:
        """Root of a part; None, and a loss, where it is absent or cannot be read."""
        try:
            return self.xml(name)
        except KeyError:
            self.lose("missing_part", "a part that is named is absent", place)
        except InputError as error:
            if error.reject_class not in ("invalid_input", "too_deep"):
                raise
            self.lose(event, error.message, place)
        return None

    def picture(self, name: str, place: str) -> bytes | None:
        """Bytes of a picture, read once; None where it is absent or broken."""
        if name not in self._pictures:
            self._pictures[name] = None
            try:
                self._pictures[name] = self.package.read(name)
            except KeyError:
                self.lose("missing_part", "a picture is absent", place)
            except InputError as error:
                if error.reject_class != "invalid_input":
                    raise
                self.lose("broken_part", "a picture does not unpack", place)
        return self._pictures[name]

    def lose(self, name: str, detail: str, place: str) -> None:
        """Notes what does not come out. `name` is the event's, `detail` one of few messages."""
        key = (name, detail)
        if key not in self._losses and len(self._losses) >= _NAMED_LOSSES:
            key = (name, "others of the kind")
        self._lost[key] += 1
        places = self._losses.setdefault(key, [])
        if len(places) < _NAMED_PLACES:
            places.append(place)

    def losses(self) -> list[tuple[str, str]]:
        """(event, message) in the order in which they were first met."""
        out = []
        for (name, detail), places in self._losses.items():
            count = self._lost[name, detail]
            out.append((name, f"{detail} ({count}): {', '.join(places)}{' …' if count > len(places) else ''}"))
        return out


def say_losses(parsed: ParsedFile, losses: list[tuple[str, str]], nothing: str) -> None:
    """An event for each loss; `nothing` is the message where the file has no block at all."""
    for name, message in losses:
        parsed.add_event("parse", "warning", name, message)
    say_if_empty(parsed, True, nothing)
