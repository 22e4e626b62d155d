"""Jira wiki markup (REST v2) → drafts: headings, lists, tables, code, quotes and panels by line; marks inside a line are taken off.

The invariant: every word that a reader sees is in some draft, once and in order; what looks like markup but is not closed stays text.
"""

from __future__ import annotations

import re
from typing import Any

from raydex.ir.document import Link
from raydex.kernels.drafts import Draft
from raydex.kernels.tables import make_cell

_MACRO = re.compile(r"(?<![{\\])\{(code|noformat|quote|panel|color|expand|info|note|warning|tip)(?::([^}\n]*))?\}(?!\})", re.IGNORECASE)
_HEADING = re.compile(r"h([1-6])\.\s+(.*)", re.IGNORECASE)
_ITEM = re.compile(r"\s*([*#-]+)\s+(.*)")
_QUOTE = re.compile(r"bq\.\s+(.*)", re.IGNORECASE)
_RULE = re.compile(r"\s*-{4,5}\s*\Z")
_LINK = re.compile(r"\[(?:([^\]\[|\n]+)\|)?([^\]\[|\s][^\]\[|\n]*?)(?:\|[^\]\[\n]*)?\]")
_IMAGE = re.compile(r"!([^!\s|][^!\n|]*)(?:\|[^!\n]*)?!")
_URL = re.compile(r"(?:https?|ftp|mailto|file):", re.IGNORECASE)
_BARE = re.compile(r"(?<![\w\"'=/])https?://[^\s<>|\]\)}\"']+", re.IGNORECASE)
_MARKS = re.compile(r"(?<![\w\\])(\*|_|\?\?|-|\+|\^|~)(?=\S)(.+?)(?<=\S)(?<!\\)\1(?!\w)")
_MONO = re.compile(r"\{\{(.+?)\}\}")
_COLOR = re.compile(r"\{color(?::[^}\n]*)?\}|\{anchor:[^}\n]*\}", re.IGNORECASE)
_ESCAPE = re.compile(r"\\([\[\]{}*_\-+^~!|#?\\])")
_BLOCKS = frozenset(("quote", "panel", "expand", "info", "note", "warning", "tip"))


class WikiWalk:
    """Drafts of one text. `place` is what their locators share; lines are 1-based in the text."""

    def __init__(self, drafts: list[Draft], level: int = 0) -> None:
        self.drafts = drafts
        self.level = level

    def walk(self, text: str, place: dict[str, Any], about: dict[str, Any] | None = None) -> None:
        self._text(text.replace("\r\n", "\n").replace("\r", "\n"), place, about or {})

    def _text(self, text: str, place: dict[str, Any], about: dict[str, Any]) -> None:
        at = 0
        while True:
            found = _MACRO.search(text, at)
            while found is not None and found[1].lower() == "color":
                found = _MACRO.search(text, found.end())
            if found is None:
                break
            name = found[1].lower()
            close = re.compile(r"\{" + name + r"\}", re.IGNORECASE).search(text, found.end())
            if close is None:
                break
            self._lines(text[at : found.start()], place, about)
            inner = text[found.end() : close.start()]
            options = found[2] or ""
            if name in _BLOCKS:
                title = re.search(r"title=([^|]*)", options)
                mark = {
                    "quote" if name == "quote" else "expand" if name == "expand" else "panel": True if name in ("quote", "expand") else name
                }
                if title:
                    self._add("paragraph", title[1].strip(), place, {**about, **mark, "role": "title"})
                self._lines(inner, place, {**about, **mark}) if name == "quote" else self._text(inner, place, {**about, **mark})
            else:
                language = "" if name == "noformat" else _language(options)
                body = inner.removeprefix("\n").removesuffix("\n")
                self._add("code", body, place, {**about, "language": language}, plain=True)
            at = close.end()
        self._lines(text[at:], place, about)

    def _add(self, kind: str, text: str, place: dict[str, Any], about: dict[str, Any], *, plain: bool = False) -> None:
        links: list[Link] = []
        shown = text if plain else self._inline(text, links, place, about)
        if shown.strip():
            self.drafts.append(Draft(kind, 0, 0, shown if plain else shown.strip(), dict(about), links, place=dict(place)))

    def _lines(self, text: str, place: dict[str, Any], about: dict[str, Any]) -> None:
        run: list[str] = []
        rows: list[list[dict[str, Any]]] = []
        row_links: list[Link] = []

        def flush() -> None:
            if run:
                self._add("paragraph", "\n".join(run), place, about)
                run.clear()
            if rows:
                self.drafts.append(Draft("table", 0, 0, "", dict(about), list(row_links), rows=list(rows), place=dict(place)))
                rows.clear()
                row_links.clear()

        item: Draft | None = None
        for line in text.split("\n"):
            heading, listed = _HEADING.match(line), _ITEM.match(line)
            if line.lstrip().startswith("|") and line.strip("| \t"):
                if run:
                    flush()
                rows.append(self._row(line.strip(), row_links, place, about))
                item = None
                continue
            if rows:
                flush()
            if not line.strip() or _RULE.match(line):
                flush()
                item = None
            elif heading:
                flush()
                self._add("heading", heading[2], place, {**about, "level": min(int(heading[1]) + self.level, 6)})
                item = None
            elif listed and not (listed[1].startswith("-") and len(listed[1]) > 1):
                flush()
                signs = listed[1]
                before = len(self.drafts)
                mark = {"level": len(signs) - 1, "ordered": signs[-1] == "#"}
                self._add("list_item", listed[2], place, {**about, **mark})
                item = self.drafts[-1] if len(self.drafts) > before and self.drafts[-1].kind == "list_item" else None
            elif quoted := _QUOTE.match(line):
                flush()
                self._add("paragraph", quoted[1], place, {**about, "quote": True})
            elif item is not None and not run:
                links: list[Link] = []
                item.text += "\n" + self._inline(line, links, place, about).strip()
                item.links += links
            else:
                run.append(line)
        flush()

    def _row(self, line: str, links: list[Link], place: dict[str, Any], about: dict[str, Any]) -> list[dict[str, Any]]:
        """`||head||` and `|cell|`; a bar inside a link or image is none."""
        kept: list[str] = []

        def keep(found: re.Match[str]) -> str:
            kept.append(found[0])
            return f"\0{len(kept) - 1}\0"

        plain = _IMAGE.sub(keep, _LINK.sub(keep, line))
        cells = []
        for found in re.finditer(r"(\|\|?)([^|]*)", plain):
            if found.end() == len(plain) and not found[2].strip():
                continue
            text = re.sub(r"\0(\d+)\0", lambda mark: kept[int(mark[1])], found[2])
            cells.append(make_cell(self._inline(text, links, place, about).strip(), header=found[1] == "||"))
        return cells

    def _inline(self, text: str, links: list[Link], place: dict[str, Any], about: dict[str, Any]) -> str:
        text = _COLOR.sub("", text)

        def image(found: re.Match[str]) -> str:
            href = found[1].strip()
            if "." not in href and not _URL.match(href):
                return found[0]
            self.drafts.append(Draft("image", 0, 0, "", dict(about), href=href, place=dict(place)))
            return f"[{href.rpartition('/')[2]}]"

        def link(found: re.Match[str]) -> str:
            shown, target = (found[1] or "").strip(), found[2].strip()
            if target.startswith("~"):
                return f"@{shown or target[1:].removeprefix('accountid:')}"
            if target.startswith("^"):
                links.append(Link(target[1:], shown))
                return shown or target[1:]
            if not shown and not _URL.match(target) and not target.startswith("#"):
                return found[0]
            links.append(Link(target, shown))
            return shown or target

        text = _IMAGE.sub(image, text)
        seen = len(links)
        text = _LINK.sub(link, text)
        known = {item.href for item in links[seen:]}
        links.extend(Link(found[0].rstrip(".,;:"), "") for found in _BARE.finditer(text) if found[0].rstrip(".,;:") not in known)
        text = _MONO.sub(r"\1", text)
        for _ in range(3):
            text, count = _MARKS.subn(r"\2", text)
            if not count:
                break
        return _ESCAPE.sub(r"\1", text)


def _language(options: str) -> str:
    for part in options.split("|"):
        name, eq, value = part.partition("=")
        if not eq and name:
            return name.strip().lower()
        if name.strip().lower() == "language":
            return value.strip().lower()
    return ""
