"""A page of Confluence's REST interface (JSON: title, body in storage format or ADF, comments, attachments) → DocumentIR.

The invariant: a block's locator is the pointer (RFC 6901) of the text that it stands in and, for storage format, its range in the decoded
JSON file: escapes are counted as they are written. The page's comments and attachments stand in sections of their own below it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import orjson

from raydex.ir.document import Link
from raydex.ir.parsed import ParsedFile
from raydex.kernels.adf import AdfWalk
from raydex.kernels.confluence import StorageWalk, say_macros
from raydex.kernels.decode import Decoded
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.html_furniture import LeftOut, say_left_out
from raydex.kernels.inner_sections import Span, end_sections
from raydex.kernels.json_scan import COLON, COMMA, OPEN_LIST, OPEN_OBJECT, CharIndex, scan
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "3"
Json = dict[str, Any]
# representations of a body, best first: storage format and editor's say what macros there are, views only what they showed
_MARKUP = ("storage", "editor", "export_view", "styled_view", "view")
_ADF = "atlas_doc_format"
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|u[0-9a-fA-F]{4}|.)")


def is_page(value: Any) -> bool:
    """Whether a JSON value is a page, blog post or comment with its body."""
    return isinstance(value, dict) and isinstance(value.get("title"), str) and _body(value) is not None


def page_of(value: Json, request: ParseRequest, decoded: Decoded) -> ParsedFile:
    """Raises LimitError: too_many_blocks, too_deep."""
    reader = PageReader(request, decoded)
    reader.body(value, "")
    reader.comments(_at(value, "children", "comment", "results"), "/children/comment/results")
    reader.attachments(_at(value, "children", "attachment", "results"), "/children/attachment/results")
    end_sections(reader.drafts, reader.boxes)
    parsed = finish(
        request,
        decoded,
        reader.drafts,
        parser="confluence",
        parser_version=PARSER_VERSION,
        title=value["title"],
        metadata=_about(value),
    )
    say_left_out(parsed, reader.left_out, reader.content)
    say_macros(parsed, reader.unknown, reader.dynamic)
    for name, count in reader.nodes.items():
        parsed.add_event("parse", "warning", "unknown_node", f"{count} nodes of the unknown type {name[:80]!r} were read as text")
    return parsed


class PageReader:
    """Drafts of one page, placed in its file."""

    def __init__(self, request: ParseRequest, decoded: Decoded) -> None:
        self.request = request
        self.drafts: list[Draft] = []
        self.unknown: Counter[str] = Counter()
        self.dynamic: Counter[str] = Counter()
        self.nodes: Counter[str] = Counter()
        self.content = False
        self.left_out = LeftOut()
        self.boxes: list[Span] = []
        self._text = decoded.text
        self._data = decoded.text.encode()
        self._tape = scan(self._data)
        self._chars = CharIndex(self._data)
        self._known: dict[int, dict[str, tuple[int, int]]] = {}

    def body(self, value: Json, pointer: str, *, level: int = 0, about: Json | None = None) -> None:
        found = _body(value)
        if found is None:
            return
        kind, text = found
        below = f"{pointer}/body/{kind}/value"
        start, end = self._span(below)
        if kind == _ADF:
            self._adf(text, below, level, start, end, about or {})
            return
        walk = StorageWalk(self.request)
        walk.walk(text, xml=True)
        to_source = _Escapes(self._text, start, end)
        for draft in walk.drafts:
            draft.start, draft.end = to_source(draft.start), to_source(draft.end)
            draft.place = {"pointer": below}
            draft.metadata |= about or {}
            if draft.kind == "heading":
                draft.metadata["level"] = min(draft.metadata["level"] + level, 6)
        self._take(walk.drafts, walk.boxes)
        check_count(self.drafts, self.request)
        self.unknown += walk.unknown
        self.dynamic += walk.dynamic
        self.content = self.content or walk.content
        self.left_out.characters += walk.left_out.characters

    def _take(self, drafts: list[Draft], boxes: list[Span]) -> None:
        before = len(self.drafts)
        self.boxes += [(start + before, end + before) for start, end in boxes]
        self.drafts += drafts

    def _adf(self, text: str, pointer: str, level: int, start: int, end: int, about: Json) -> None:
        """ADF is JSON in a string: its blocks have the string's place."""
        try:
            node = orjson.loads(text)
        except orjson.JSONDecodeError:
            self.drafts.append(Draft("code", start, end, text, {"language": "json", "broken": True, **about}, place={"pointer": pointer}))
            return
        drafts: list[Draft] = []
        walk = AdfWalk(drafts, self.request.limits.depth, level)
        if isinstance(node, dict):
            walk.walk(node, "", {}, about)
        for draft in drafts:
            draft.start, draft.end, draft.place = start, end, {"pointer": pointer}
        self.nodes += walk.unknown
        self._take(drafts, walk.boxes)
        check_count(self.drafts, self.request)

    def comments(self, comments: Any, pointer: str) -> None:
        told = [(at, comment) for at, comment in _dicts(comments) if _body(comment) is not None]
        if told:
            self._heading("Comments", pointer)
        for at, comment in told:
            author = _at(comment, "version", "by", "displayName") or _at(comment, "history", "createdBy", "displayName")
            when = _at(comment, "version", "when") or _at(comment, "history", "createdDate")
            facts = {"comment": comment.get("id"), "author": author, "created": when}
            self.body(comment, f"{pointer}/{at}", level=1, about={name: fact for name, fact in facts.items() if isinstance(fact, str)})

    def attachments(self, files: Any, pointer: str) -> None:
        told = [(at, file) for at, file in _dicts(files) if isinstance(file.get("title"), str)]
        if told:
            self._heading("Attachments", pointer)
        for at, file in told:
            metadata: Json = {"level": 0, "ordered": False}
            media_type = _at(file, "extensions", "mediaType") or file.get("mediaType") or _at(file, "metadata", "mediaType")
            if isinstance(media_type, str):
                metadata["media_type"] = media_type
            href = _at(file, "_links", "download")
            links = [Link(href, file["title"])] if isinstance(href, str) else []
            below = f"{pointer}/{at}/title"
            start, end = self._span(below)
            self.drafts.append(Draft("list_item", start, end, file["title"], metadata, links, place={"pointer": below}))
            check_count(self.drafts, self.request)

    def _heading(self, text: str, pointer: str) -> None:
        start, end = self._span(pointer)
        self.drafts.append(Draft("heading", start, min(end, start + 1), text, {"level": 1}, place={"pointer": pointer}))

    def _span(self, pointer: str) -> tuple[int, int]:
        """Code points of the value at `pointer`; of the whole file where it cannot be found."""
        data, at = self._data, self._tape.at
        low, high, start, end = 0, int(at.size), 0, len(data)
        for step in pointer.split("/")[1:]:
            found = self._inside(low, high).get(step)
            if found is None:
                return 0, len(self._text)
            first, stop = found
            start, end, low, high = int(at[first]) + 1, int(at[stop]), first + 1, stop
        value = data[start:end]
        return self._chars.char(start + len(value) - len(value.lstrip())), self._chars.char(start + len(value.rstrip()))

    def _inside(self, low: int, high: int) -> dict[str, tuple[int, int]]:
        """Members of the container at signs `low` to `high`: key or index → the signs before and after the value."""
        known = self._known.get(low)
        if known is None:
            known = self._known[low] = self._members(low, high)
        return known

    def _members(self, low: int, high: int) -> dict[str, tuple[int, int]]:
        tape = self._tape
        if low >= high or tape.sign[low] not in (OPEN_OBJECT, OPEN_LIST):
            return {}
        signs = low + 1 + np.flatnonzero(tape.level[low + 1 : high - 1] == tape.level[low] + 1)
        edges = [low, *signs[tape.sign[signs] == COMMA].tolist(), high - 1]
        if tape.sign[low] == OPEN_LIST:
            return {str(at): pair for at, pair in enumerate(pairwise(edges))}
        colons = signs[tape.sign[signs] == COLON].tolist()
        keys = (_key(self._data, int(tape.at[edge]), int(tape.at[colon])) for edge, colon in zip(edges, colons, strict=False))
        return {key: (colon, stop) for key, colon, stop in zip(keys, colons, edges[1:], strict=False)}


class _Escapes:
    """Offset in a JSON string's value → offset in the text that the string (with its quotes, from `start` to `end`) is written in."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._start = start + 1
        self._at: list[int] = []  # places of escapes in the value
        self._longer: list[int] = [0]  # by how much the escapes up to there are longer than what they stand for
        total = 0
        for found in _ESCAPE.finditer(text, start + 1, end - 1):
            self._at.append(found.start() - self._start - total)
            total += found.end() - found.start() - 1
            self._longer.append(total)

    def __call__(self, offset: int) -> int:
        return self._start + offset + self._longer[bisect_left(self._at, offset)]


def _key(data: bytes, start: int, end: int) -> str:
    try:
        return str(orjson.loads(data[start + 1 : end]))
    except orjson.JSONDecodeError:
        return ""


def _body(value: Json) -> tuple[str, str] | None:
    """(representation, text) of the best body that is there."""
    body = value.get("body")
    if isinstance(body, dict):
        for name in (*_MARKUP[:2], _ADF, *_MARKUP[2:]):
            text = _at(body, name, "value")
            if isinstance(text, str) and (text or name == "storage"):
                return name, text
    return None


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _dicts(values: Any) -> list[tuple[int, Json]]:
    return [(at, value) for at, value in enumerate(values) if isinstance(value, dict)] if isinstance(values, list) else []


def _about(value: Json) -> Json:
    """What the export says of the page: texts and numbers only."""
    links = value.get("_links")
    web = _at(links, "webui")
    facts = {
        "id": value.get("id"),
        "type": value.get("type"),
        "status": value.get("status"),
        "space": _at(value, "space", "key") or value.get("spaceId"),
        "version": _at(value, "version", "number"),
        "updated": _at(value, "version", "when") or _at(value, "version", "createdAt"),
        "author": _at(value, "version", "by", "displayName") or value.get("authorId"),
        "created": _at(value, "history", "createdDate") or value.get("createdAt"),
        "parent": value.get("parentId"),
        "url": f"{_at(links, 'base') or ''}{web}" if isinstance(web, str) else None,
    }
    told: Json = {name: fact for name, fact in facts.items() if isinstance(fact, (str, int)) and fact != ""}
    labels = [label["name"] for _, label in _dicts(_at(value, "metadata", "labels", "results")) if isinstance(label.get("name"), str)]
    above = [page["title"] for _, page in _dicts(value.get("ancestors")) if isinstance(page.get("title"), str)]
    return told | ({"labels": labels} if labels else {}) | ({"ancestors": above} if above else {})
