"""Comments of a sheet, those of both kinds, as notes in the order of their cells.

A threaded comment is also stored as a legacy one, with a text for programs that do not know threads. The invariant: each comment is one
note, and of a thread only the threaded form is read.
"""

from __future__ import annotations

from raydex.kernels.package import Package, Relation
from raydex.kernels.sheet import Note, read_cell
from raydex.kernels.xlsx_sheet import rich_text

_THREAD = "tc="


def read_comments(package: Package, relations: dict[str, Relation], persons: dict[str, str]) -> list[Note]:
    """Raises KeyError, InputError."""
    threaded: list[Note] = []
    legacy: list[Note] = []
    for relation in relations.values():
        if relation.external:
            continue
        if relation.kind == "threadedComment":
            threaded += _read_threaded(package, relation.target, persons)
        elif relation.kind == "comments":
            legacy += _read_legacy(package, relation.target)
    places = {(note.row, note.column) for note in threaded}
    notes = [note for note in legacy if not (note.author.startswith(_THREAD) and (note.row, note.column) in places)]
    return sorted(notes + threaded, key=lambda note: (note.row, note.column))


def read_persons(package: Package, relations: dict[str, Relation]) -> dict[str, str]:
    """Names by id. Raises KeyError, InputError."""
    names: dict[str, str] = {}
    for relation in relations.values():
        if relation.kind == "person" and not relation.external:
            names |= {item.get("id", ""): item.get("displayName", "") for item in package.stream(relation.target, "person")}
    return names


def _read_legacy(package: Package, name: str) -> list[Note]:
    authors: list[str] = []
    notes: list[Note] = []
    for item in package.stream(name, "author", "comment"):
        if item.tag.endswith("}author"):
            authors.append(item.text or "")
            continue
        cell = read_cell(item.get("ref", ""))
        text = "".join(rich_text(part) for part in item if part.tag.endswith("}text"))
        if cell is None or not text.strip():
            continue
        author = item.get("authorId", "")
        named = author.isascii() and author.isdigit() and len(author) < 10 and int(author) < len(authors)
        notes.append(Note(*cell, text.strip(), authors[int(author)] if named else ""))
    return notes


def _read_threaded(package: Package, name: str, persons: dict[str, str]) -> list[Note]:
    notes: list[Note] = []
    for item in package.stream(name, "threadedComment"):
        cell = read_cell(item.get("ref", ""))
        text = "".join(part.text or "" for part in item if part.tag.endswith("}text"))
        if cell is not None and text.strip():
            author = persons.get(item.get("personId", ""), "")
            parent = item.get("parentId", "").strip("{}")
            notes.append(Note(*cell, text.strip(), author, item.get("dT", ""), item.get("id", "").strip("{}"), parent))
    return notes
