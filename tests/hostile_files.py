"""Files made to hurt whoever reads them, by the rows of a matrix of hostile input (Z1 … Z14), each with the outcome that is right.

`HOSTILE` lists them; nothing is made before it is asked for. The invariant: making a file is cheap, opens no socket and reads nothing;
`World` names what a file may try to reach (an address, a file outside, a secret), and the one who runs the set sees that it did not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROWS = {
    "Z1": "archives and packages that expand",
    "Z2": "names that lead out of a folder",
    "Z3": "entities and document types of XML",
    "Z4": "addresses to be fetched",
    "Z5": "images that are not what they claim",
    "Z6": "PDF files that run in circles",
    "Z7": "depth",
    "Z8": "length and width",
    "Z9": "values that are programs",
    "Z10": "cells that are formulas",
    "Z11": "text that nobody sees, or that speaks to a model",
    "Z12": "files that are not what their name says",
    "Z13": "names that speak to a store",
    "Z14": "secrets",
}


@dataclass(frozen=True)
class World:
    """What the files try to reach: `url` on the loopback device, `outside` a file with the text `canary`; `secret` must not be logged."""

    url: str = "http://127.0.0.1:9"
    outside: str = "/etc/hostname"
    canary: str = "canary-of-a-file-outside"
    secret: str = "sk-canary-5b1f0c77"


@dataclass(frozen=True)
class Expected:
    """What a file becomes. `reject`: its own class, empty where it is parsed; `warnings` of its document; `events`: names of all other
    events; `blocks`: their number; `shows` stands in its rows, `hides` does not; `members`: name → reject class, empty where parsed.
    `@URL` in a text is the world's address."""

    reject: str = ""
    warnings: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    blocks: int = 0
    shows: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    members: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hostile:
    row: str
    name: str
    expected: Expected
    make: Callable[[World], bytes | str] = field(repr=False)

    def data(self, world: World) -> bytes:
        made = self.make(world)
        return made.encode() if isinstance(made, str) else made


HOSTILE: list[Hostile] = []


def add(row: str, name: str, expected: Expected, make: Callable[[World], bytes | str] | bytes | str) -> None:
    """A file of the set; content that speaks of no world is given as it is."""
    fixed = make
    HOSTILE.append(Hostile(row, name, expected, make if callable(make) else lambda _: fixed))  # type: ignore[arg-type, return-value]


def refused(reject: str, **more: object) -> Expected:
    return Expected(reject, **more)  # type: ignore[arg-type]


def parsed(blocks: int, *shows: str, **more: object) -> Expected:
    return Expected(blocks=blocks, shows=shows, **more)  # type: ignore[arg-type]


def hostile_set() -> list[Hostile]:
    """All of them. The modules that make them fill the list as they are imported."""
    import hostile_binary
    import hostile_containers
    import hostile_markup
    import hostile_text  # noqa: F401

    assert hostile_binary and hostile_containers and hostile_markup
    return HOSTILE


def write_hostile_set(folder: Path, world: World | None = None) -> dict[str, Expected]:
    """The whole set as files of one folder; file name → what becomes of it."""
    folder.mkdir(parents=True, exist_ok=True)
    world = world or World()
    for one in hostile_set():
        (folder / one.name).write_bytes(one.data(world))
    return {one.name: one.expected for one in hostile_set()}
