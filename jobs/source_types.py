"""Names for kinds of sources → the source types that a search is limited to.

A source type is the media type of a record, except where one media type holds things of different kinds: a ticket and a wiki page are JSON
files as data files are, and the parser that took them tells. The invariant: every media type that has a parser is in one of the names.
"""

from __future__ import annotations

from raydex.ir.errors import ConfigError
from raydex.kernels.parse import IMAGE_TYPES, PLAIN_TYPES

TICKET, PAGE = "application/json; kind=ticket", "application/json; kind=page"
_OF_PARSER = {"jira": TICKET, "confluence": PAGE}

_WORDS = "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "application/vnd.oasis.opendocument.text"
_SHEETS = (
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/vnd.ms-excel",
)
_DECKS = "application/vnd.openxmlformats-officedocument.presentationml.presentation", "application/vnd.oasis.opendocument.presentation"

_CODE = ("text/x-python", "text/x-typescript", "text/x-tsx")
_NAMED: dict[str, tuple[str, ...]] = {
    "page": ("text/html", "text/markdown", *PLAIN_TYPES, "application/pdf", PAGE, *_WORDS),
    "office": (*_WORDS, *_SHEETS, *_DECKS),
    "sheet": _SHEETS,
    "deck": _DECKS,
    "mail": ("message/rfc822", "application/vnd.ms-outlook", "application/mbox"),
    "ticket": (TICKET,),
    "image": (*IMAGE_TYPES, "image/svg+xml"),
    "data": (
        "application/json",
        "application/jsonl",
        "application/yaml",
        "application/toml",
        "application/xml",
        "text/x-ini",
        "text/csv",
        "text/tab-separated-values",
    ),
    "log": ("text/x-log",),
    "archive": ("application/zip", "application/x-tar", "application/gzip", "application/x-bzip2", "application/x-xz"),
}
# `document` is whatever is not code; the other names are parts of it
SOURCE_TYPES = {"code": _CODE, "document": tuple(sorted({one for types in _NAMED.values() for one in types})), **_NAMED}


def source_type_of(media_type: str, parser: str) -> str:
    """The source type of a record with this media type that this parser took."""
    return _OF_PARSER.get(parser, media_type)


def source_types(name: str) -> tuple[str, ...]:
    """What a name stands for, in the singular or the plural; a media type stands for itself. Raises ConfigError for another name."""
    if "/" in name:
        return (name,)
    found = SOURCE_TYPES.get(name) or SOURCE_TYPES.get(name.removesuffix("s"))
    if found is None:
        remedy = f"Known: {', '.join(SOURCE_TYPES)}, or a media type like text/html"
        raise ConfigError(f"unknown source type {name!r}", remedy=remedy)
    return found
