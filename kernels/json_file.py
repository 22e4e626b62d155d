"""JSON files by what they hold: a ticket of Jira's or a page of Confluence's REST interface, an export of many (a search page, a list, a
line each), or data.

The invariant: every ticket or page of an export is a member, so that one that cannot be read fails alone, and an export that the server
has cut to a page says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from raydex.ir.parsed import ParsedFile
from raydex.kernels.confluence_page import is_page, page_of
from raydex.kernels.decode import Decoded, decode
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.jira import is_issue, issue_of
from raydex.kernels.json_data import parse_json, parse_jsonl
from raydex.kernels.members import Members
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "1"
_KEY = re.compile(rb'"key"\s*:\s*"[A-Z][A-Z0-9_]*-\d+"')
_BODIES = (b'"storage"', b'"atlas_doc_format"', b'"view"', b'"export_view"', b'"styled_view"', b'"editor"')


@dataclass(frozen=True, slots=True)
class Kind:
    """What an export may hold: lists that it may stand in, and what one of it is called."""

    parser: str
    plural: str
    lists: tuple[str, ...]
    fits: Callable[[Any], bool]
    name: Callable[[Any], str]
    text: Callable[[Any], str]


_ISSUES = Kind(
    "jira_export",
    "issues",
    ("issues", "values"),
    is_issue,
    lambda issue: str(issue["key"]),
    lambda issue: f"{issue['key']} {issue['fields'].get('summary') or ''}".strip(),
)
_PAGES = Kind(
    "confluence_export",
    "pages",
    ("results",),
    is_page,
    lambda page: str(page.get("id") or page["title"]),
    lambda page: str(page["title"]),
)


def parse_json_file(request: ParseRequest) -> ParsedFile:
    """Raises InputError as `parse_json`, `issue_of` and `page_of` do."""
    kind = _may_hold(request.data)
    if kind is None:
        return parse_json(request)
    decoded = decode(request.data)
    value = _loads(decoded)
    if kind.fits(value):
        return issue_of(value, request) if kind is _ISSUES else page_of(value, request, decoded)
    name, items = _export(value, kind)
    if not items:
        return parse_json(request)
    return _container(request, kind, [(f"{name}/{at}", item) for at, item in enumerate(items)], _missing(value, kind, len(items)))


def parse_json_lines(request: ParseRequest) -> ParsedFile:
    """Lines that are all tickets or all pages make an export; any other line makes the file data."""
    first = next((line for line in request.data.split(b"\n", 1000) if line.strip()), b"")
    kind = _may_hold(first)
    if kind is None or not kind.fits(_loads(decode(first))):
        return parse_jsonl(request)
    lines = (line for line in request.data.splitlines() if line.strip())
    before = request.segment.row if request.segment is not None else 0
    items = [(f"/{at}", _loads(decode(line))) for at, line in enumerate(lines, before)]
    return _container(request, kind, items, "") if all(kind.fits(item) for _, item in items) else parse_jsonl(request)


def _may_hold(data: bytes) -> Kind | None:
    """A cheap test before the file is read as values."""
    if b'"fields"' in data and _KEY.search(data) is not None:
        return _ISSUES
    if b'"body"' in data and b'"title"' in data and any(name in data for name in _BODIES):
        return _PAGES
    return None


def _loads(decoded: Decoded) -> Any:
    try:
        return orjson.loads(decoded.text)
    except orjson.JSONDecodeError:
        return None


def _export(value: Any, kind: Kind) -> tuple[str, list[Any]]:
    """(pointer of the list, its elements) where all of them are of the kind."""
    found: tuple[str, Any] = ("", value)
    if isinstance(value, dict):
        found = next(((f"/{name}", value[name]) for name in kind.lists if isinstance(value.get(name), list)), ("", None))
    items = found[1]
    return (found[0], items) if isinstance(items, list) and items and all(map(kind.fits, items)) else ("", [])


def _missing(value: Any, kind: Kind, count: int) -> str:
    """What to say where the server has more than the export holds; empty where it holds everything, as far as it tells."""
    if not isinstance(value, dict):
        return ""
    total = value.get("total", value.get("totalSize"))
    if isinstance(total, int) and total > count:
        return f"{count} of {total} {kind.plural} are in the export"
    links = value.get("_links")
    if isinstance(links, dict) and links.get("next"):
        return f"{count} {kind.plural} are in the export, and the server has more"
    return ""


def _container(request: ParseRequest, kind: Kind, items: list[tuple[str, Any]], missing: str) -> ParsedFile:
    drafts: list[Draft] = []
    for pointer, item in items:
        drafts.append(Draft("list_item", 0, 0, kind.text(item), {"level": 0, "ordered": False, "number": None}, place={"pointer": pointer}))
        check_count(drafts, request)
    parsed = finish(
        request,
        None,
        drafts,
        parser=kind.parser,
        parser_version=PARSER_VERSION,
        warnings=("incomplete_list",) if missing else (),
        metadata={kind.plural: len(items)},
    )
    if missing:
        parsed.add_event("parse", "warning", "incomplete_list", missing)
    members = Members(request)
    for pointer, item in items:
        members.add(pointer, f"{kind.name(item)}.json", orjson.dumps(item), "application/json")
    parsed.members = members.kept
    return parsed
