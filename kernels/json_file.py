"""JSON files by what they hold: a ticket of Jira's or a page of Confluence's REST interface, an export of many (a search page, a list, a
line each), or data.

The invariant: every ticket or page of an export is a member, so that one that cannot be read fails alone and costs the others nothing; an
export that the server has cut to a page says so.
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
from raydex.kernels.jira import is_issue, issue_of, list_missing
from raydex.kernels.json_data import parse_json, parse_jsonl
from raydex.kernels.members import Members
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "3"
_HEAD = 65_536
_TEXT = 200
_SAMPLE = 8
_BROKEN = object()  # what is no JSON
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
    missing = list_missing(value, kind.plural, len(items)) if isinstance(value, dict) else ""
    return _container(request, kind, [(f"{name}/{at}", item) for at, item in enumerate(items)], missing)


def parse_json_lines(request: ParseRequest) -> ParsedFile:
    """Lines most of which are tickets, or pages, make an export; else the file is data."""
    kind = _may_hold(request.data[:_HEAD])
    if kind is None:
        return parse_jsonl(request)
    lines = [line for line in request.data.splitlines() if line.strip()]
    if not any(kind.fits(_loads(decode(line))) for line in lines[:_SAMPLE]):
        return parse_jsonl(request)
    before = request.segment.row if request.segment is not None else 0
    items = [(f"/{at}", _loads(decode(line))) for at, line in enumerate(lines, before)]
    return _container(request, kind, items, "") if _mostly(kind, [item for _, item in items]) else parse_jsonl(request)


def _mostly(kind: Kind, items: list[Any]) -> bool:
    return 2 * sum(map(kind.fits, items)) > len(items)


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
        return _BROKEN


def _export(value: Any, kind: Kind) -> tuple[str, list[Any]]:
    """(pointer of the list, its elements) where most of them are of the kind."""
    found: tuple[str, Any] = ("", value)
    if isinstance(value, dict):
        found = next(((f"/{name}", value[name]) for name in kind.lists if isinstance(value.get(name), list)), ("", None))
    items = found[1]
    return (found[0], items) if isinstance(items, list) and _mostly(kind, items) else ("", [])


def _container(request: ParseRequest, kind: Kind, items: list[tuple[str, Any]], missing: str) -> ParsedFile:
    drafts: list[Draft] = []
    members = Members(request)
    odd = []
    for pointer, item in items:
        name = f"{pointer.rpartition('/')[2]}.json"
        if item is _BROKEN:
            odd.append(pointer)
            members.refuse(pointer, name, "syntax", f"{pointer} of the export is no JSON")
            continue
        if kind.fits(item):
            name, text = f"{kind.name(item)}.json", kind.text(item)
        else:
            odd.append(pointer)
            text = orjson.dumps(item).decode()[:_TEXT]
        members.add(pointer, name, orjson.dumps(item), "application/json")
        drafts.append(Draft("list_item", 0, 0, text, {"level": 0, "ordered": False, "number": None}, place={"pointer": pointer}))
        check_count(drafts, request)
    noted = {"incomplete_list": missing, "odd_items": _odd(odd, len(items), kind)}
    parsed = finish(
        request,
        None,
        drafts,
        parser=kind.parser,
        parser_version=PARSER_VERSION,
        warnings=tuple(name for name, message in noted.items() if message),
        metadata={kind.plural: len(items) - len(odd)},
    )
    for name, message in noted.items():
        if message:
            parsed.add_event("parse", "warning", name, message)
    parsed.members = members.kept
    return parsed


def _odd(pointers: list[str], count: int, kind: Kind) -> str:
    shown = ", ".join(pointers[:10]) + (" …" if len(pointers) > 10 else "")
    return f"{len(pointers)} of {count} elements are no {kind.plural}: {shown}" if pointers else ""
