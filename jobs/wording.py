"""Blocks and places in words: what a reader of a terminal or of a report is told, beside the kind and the text.

The invariant: a change of a ticket's field, a comment, quoted mail, notes and what OCR read never look like text of the document's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]

# the fields of a locator that are shown, most telling first, and how they are called
_PLACES = {
    "part": "part",
    "member": "",
    "page": "page",
    "slide": "slide",
    "shape": "shape",
    "sheet": "sheet",
    "cells": "cells",
    "paragraph": "paragraph",
    "field": "",
    "comment": "comment",
    "row": "row",
    "note": "note",
    "table": "table",
    "line": "line",
    "char": "char",
    "xpath": "",
    "pointer": "",
    "bbox": "box",
}
PLACES_SHOWN = 2
PLACES_LISTED = 3
# of a chunk's places: what they are told apart by, and what is counted through inside of it
_HEADS = ("part", "member", "sheet")
_UNITS = ("page", "slide", "row", "paragraph", "line", "char")
_WHOLE = ("line", "char")
# sections of a ticket that are no text of the ticket's own, by the field of their locators
TICKET_PARTS = {
    "changelog": "changes of fields, no requirement",
    "comment": "comment",
    "worklog": "work logged",
    "remotelink": "link to elsewhere",
    "metadata": "fields",
}


def place_words(locator: Row) -> str:
    """`sheet Tours, cells A2:D7`; `slide 2, shape 4`; the two most telling fields, pointers and boxes only where there is nothing else."""
    names = [name for name in _PLACES if name in locator and not (name == "field" and "comment" in locator)]
    if len(names) > 1:
        names = [name for name in names if name not in ("pointer", "bbox")]
    return ", ".join(f"{_PLACES[name]} {_value(locator[name])}".strip() for name in names[:PLACES_SHOWN])


def _value(value: Any) -> str:
    """Ranges as `4-9`, or `4` where they are one; boxes as `0,0,640,360`."""
    if not isinstance(value, list):
        return str(value)
    if len(value) > 2:
        return ",".join(f"{number:g}" for number in value)
    return "-".join(dict.fromkeys(map(str, value)))


def places_words(locators: list[Row]) -> str:
    """All places of a chunk: `pages 3–5`; `lines 12–40`; `sheet Tours, cells A1:D40, cells F1:G9, +2 more`. Lines and characters between
    two blocks are the chunk's too."""
    if len(locators) == 1:
        return place_words(locators[0])
    pieces: dict[tuple[str, str], list[Row]] = {}
    for place in locators:
        head = ", ".join(f"{_PLACES[name]} {place[name]}".strip() for name in _HEADS if name in place)
        unit = next((name for name in _UNITS if name in place), "")
        pieces.setdefault((head, unit), []).append(place)
    said: list[str] = []
    for (head, unit), places in pieces.items():
        inner = [_spans(unit, places)] if unit else list(dict.fromkeys(place_words(_without(place, _HEADS)) for place in places))
        inner = [one for one in inner if one]
        said += [", ".join(part for part in (head, inner[0] if inner else "") if part), *inner[1:]]
    more = f"+{len(said) - PLACES_LISTED} more" if len(said) > PLACES_LISTED else ""
    return ", ".join(part for part in (*said[:PLACES_LISTED], more) if part)


def _without(place: Row, names: Iterable[str]) -> Row:
    return {name: value for name, value in place.items() if name not in names}


def _spans(unit: str, places: list[Row]) -> str:
    """`pages 3–5, 9`; `page 3` where it is one."""
    spans: list[list[int]] = []
    for first, last in sorted(_range(place[unit]) for place in places):
        if spans and (unit in _WHOLE or first <= spans[-1][1] + 1):
            spans[-1][1] = max(spans[-1][1], last)
        else:
            spans.append([first, last])
    shown = ", ".join("–".join(dict.fromkeys(map(str, span))) for span in spans[:PLACES_LISTED])
    more = f", +{len(spans) - PLACES_LISTED} more" if len(spans) > PLACES_LISTED else ""
    several = len(spans) > 1 or spans[0][0] != spans[0][1]
    return f"{_PLACES[unit]}{'s' if several else ''} {shown}{more}"


def _range(value: Any) -> tuple[int, int]:
    return (value[0], value[-1]) if isinstance(value, list) else (value, value)


def ticket_part(locators: Iterable[Row]) -> str:
    """What the places of a ticket are when they all lie in one section that is no text of its own, else nothing."""
    parts = {TICKET_PARTS.get(place.get("field", ""), "") for place in locators}
    return parts.pop() if len(parts) == 1 else ""


def record_counts(records: Row) -> str:
    """What a run found, by what it had to do: `1 new, 2 changed, 3 reprocessed for another configuration or version, 9 unchanged`."""
    again, retried = records.get("reprocessed", 0), records.get("retried", 0)
    return ", ".join(
        [
            f"{records['new']} new",
            f"{records['changed'] - again - retried} changed",
            *([f"{again} reprocessed for another configuration or version"] if again else []),
            *([f"{retried} tried again"] if retried else []),
            f"{records['unchanged']} unchanged",
            f"{records['deleted']} deleted",
        ]
    )


def block_words(block: Row) -> str:
    """The kind, and what sets the block apart: `note, by M. Okafor`; `paragraph, change of status`; `table, hidden sheet`."""
    about, place = block["metadata"], block["locator"]
    words = [block["kind"]]
    if about.get("source") == "ocr":
        confidence = about.get("confidence")
        words.append("OCR" if confidence is None else f"OCR {confidence:.2f}")
    if "change_id" in about:
        words.append(f"change of {about['field']}")
    elif "comment_id" in about:
        words.append(f"comment by {about.get('author') or 'nobody'}")
    elif block["kind"] != "heading" and place.get("field") in TICKET_PARTS:
        words.append(TICKET_PARTS[place["field"]])
    elif about.get("author"):
        words.append(f"by {about['author']}")
    if about.get("sheet_state", "visible") != "visible":
        words.append("hidden sheet")
    if about.get("speaker_notes"):
        words.append("speaker's")
    for name in ("quote", "signature", "hidden"):
        if about.get(name):
            words.append({"quote": "quoted"}.get(name, name))
    for name in ("task", "panel"):
        if about.get(name):
            words.append(f"{name} {about[name]}".lower())
    if about.get("timestamp") and about.get("level"):
        words.append(str(about["level"]))
    return ", ".join(words)
