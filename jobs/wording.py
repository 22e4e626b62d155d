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


def ticket_part(locators: Iterable[Row]) -> str:
    """What the places of a ticket are when they all lie in one section that is no text of its own, else nothing."""
    parts = {TICKET_PARTS.get(place.get("field", ""), "") for place in locators}
    return parts.pop() if len(parts) == 1 else ""


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
