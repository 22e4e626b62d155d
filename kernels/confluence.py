"""Confluence storage format (XHTML with `ac:` and `ri:` elements) → DocumentIR: the walk over HTML, with macros read as they are shown.

Code and noformat are code blocks; panels and expands mark the blocks inside, as in ADF; status, emoticons and times are text; tasks are
list items with a state; links and images name their target in Confluence's notation (`confluence_rules`). The invariant is that of
HTML: each visible word is in one block, located by its element in the source. A macro that is not known keeps its text and is counted;
one that Confluence fills when the page is looked at is counted and left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from raydex.ir.document import Link
from raydex.ir.parsed import ParsedFile
from raydex.kernels.confluence_rules import (
    BODIES,
    BODY_LANGUAGES,
    CODE_MACROS,
    DYNAMIC_MACROS,
    EXPAND_MACROS,
    KNOWN_MACROS,
    LINK_BODIES,
    MACROS,
    NO_LANGUAGE,
    PANEL_MACROS,
    SHOWING_MACROS,
    VALUES,
    emoticon,
    reference,
)
from raydex.kernels.decode import Decoded
from raydex.kernels.drafts import Draft, finish
from raydex.kernels.html_furniture import say_left_out
from raydex.kernels.html_links import end_link
from raydex.kernels.html_rules import HIDDEN, SHOWN
from raydex.kernels.html_scan import parse_attributes
from raydex.kernels.html_state import CELL, CODE, NUMBER, OpenElement, OpenLink, Scope, Sink, collapse
from raydex.kernels.html_walk import HtmlWalk
from raydex.kernels.inner_sections import Span, end_sections
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "3"
_VALUE = 10  # kind of a sink whose text is not shown
_MAX_NAMES = 50  # names of unknown macros that get an event of their own
_STATES = {"complete": "DONE", "incomplete": "TODO"}


@dataclass(slots=True)
class Macro:
    """An open macro. `around` is what the macros around it say about the blocks inside."""

    name: str
    start: int
    around: dict[str, Any]
    shown: bool
    values: dict[str, str] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    code: Draft | None = None

    def marks(self) -> dict[str, Any]:
        if self.name in PANEL_MACROS:
            return {**self.around, "panel": self.values.get("panel-type") or self.name}
        if self.name in EXPAND_MACROS:
            return {**self.around, "expand": True}
        if self.name == "excerpt":
            return {**self.around, "excerpt": True}
        return self.around if self.name in KNOWN_MACROS else {**self.around, "macro": self.name}


@dataclass(slots=True)
class Reference:
    """An open `ac:link` or `ac:image`: what it names, and whether the source gives the text to show."""

    anchor: str = ""
    href: str = ""
    text: str = ""
    has_body: bool = False
    image: Draft | None = None


def parse_storage(request: ParseRequest, decoded: Decoded) -> ParsedFile:
    """Raises LimitError (too_many_blocks)."""
    walk = StorageWalk(request)
    walk.walk(decoded.text, xml=True)
    end_sections(walk.drafts, walk.boxes)
    parsed = finish(request, decoded, walk.drafts, parser="confluence", parser_version=PARSER_VERSION, title=walk.title)
    say_left_out(parsed, walk.left_out, walk.content)
    say_macros(parsed, walk.unknown, walk.dynamic)
    return parsed


def say_macros(parsed: ParsedFile, unknown: Counter[str], dynamic: Counter[str]) -> None:
    """Events for macros that were read without knowing them, and for those that were left out."""
    for name, count in unknown.most_common(_MAX_NAMES):
        parsed.add_event("parse", "warning", "unknown_macro", f"{count} macros of the unknown name {name[:80]!r} were read as text")
    if len(unknown) > _MAX_NAMES:
        parsed.add_event("parse", "warning", "unknown_macro", f"macros of {len(unknown) - _MAX_NAMES} more names were read as text")
    if dynamic:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(dynamic.items()))
        parsed.add_event("parse", "warning", "dynamic_macro", f"macros that hold no content of their own were left out: {counts}")


class StorageWalk(HtmlWalk):
    """After `walk` also: names of macros that are not `unknown` or are filled when looked at (`dynamic`), with their counts; the drafts of
    expands (`boxes`)."""

    def __init__(self, request: ParseRequest) -> None:
        super().__init__(request)
        self.unknown: Counter[str] = Counter()
        self.dynamic: Counter[str] = Counter()
        self.macros: list[Macro] = []
        self.references: list[Reference] = []
        self.bodies: list[int] = []
        self.boxes: list[Span] = []
        self.box_starts: list[int] = []  # of each open body: its first draft where it unfolds, else -1
        self.names: list[str] = []
        self.value = -1
        self.kept = 0
        self.adf_shown = False

    def add_draft(self, draft: Draft) -> None:
        if self.macros:
            draft.metadata |= self.macros[-1].marks()
        super().add_draft(draft)

    def open(self, name: str, attributes: str, start: int, end: int) -> None:
        opener = _OPENERS.get(name)
        if opener is not None:
            opener(self, name, parse_attributes(attributes), start, end)
        elif name.startswith("ri:"):
            self._open_identifier(name, parse_attributes(attributes), start)
        else:
            super().open(name, attributes, start, end)

    def open_empty(self, name: str, attributes: str, start: int, end: int) -> None:
        if name == "time" or name.startswith(("ac:", "ri:")):
            self.open(name, attributes, start, end)
            self.close(name, end, end)
        else:
            super().open_empty(name, attributes, start, end)

    def close(self, name: str, start: int, end: int) -> None:
        if name in BODIES:
            if self.bodies and self.stack[self.bodies[-1]].name == name:
                self.pop_to(self.bodies[-1], start, end)
        else:
            super().close({"ac:task-list": "ul", "ac:task": "li"}.get(name, name), start, end)

    def pop(self, end: int) -> None:
        entry = self.stack[-1]
        name = entry.name
        if not name.startswith(("ac:", "ri:")):
            super().pop(end)
            return
        if name in BODIES:
            self._end_body(entry, end)
        elif name in LINK_BODIES:
            end_link(self)
        elif name == "ac:plain-text-body" and entry.sink is not None:
            self._drop_space_outside(entry.sink)
        super().pop(end)
        if name in VALUES:
            self._end_value(entry, end)
        elif name in MACROS:
            self._end_macro(self.macros.pop(), end)
        elif name in ("ac:link", "ac:image"):
            self._end_reference(name, self.references.pop(), end)
        elif name == "ac:adf-extension":
            self.adf_shown = True

    # text

    def add_raw(self, name: str, start: int, end: int) -> None:
        sink = self.sink
        if name == "#cdata" and sink is not None and sink.kind == CODE:
            self._drop_space_outside(sink)
            super().add_raw(name, start, end)
            self.kept = len(sink.pieces)
        else:
            super().add_raw(name, start, end)

    def _drop_space_outside(self, sink: Sink) -> None:
        """White space between a plain body's tags and its CDATA is no code."""
        if "".join(sink.pieces[self.kept :]).isspace():
            del sink.pieces[self.kept :]

    def add_text(self, piece: str, start: int, end: int, escaped: bool) -> None:
        if self.sink is not None and self.sink.kind == CELL and self.stack[-1].name == "ac:plain-text-body":
            piece = piece.replace("\n", "\x00")
        super().add_text(piece, start, end, escaped)

    def _say(self, text: str, start: int, end: int, href: str = "") -> None:
        """Text that attributes or parameters hold, in the line that is open."""
        if not text.strip():
            return
        linked = bool(href) and self.link is None
        if linked:
            self.link = OpenLink(href, self.sink or self.run)
        self.add_text(text, start, end, False)
        if linked:
            end_link(self)

    def _title(self, text: str, start: int, end: int) -> None:
        """A title that stands on a line of its own."""
        self.boundary()
        if self.sink is not None:
            self.sink.pieces.append(text)
            self.boundary()
        elif text:
            self.item = None
            self.add_draft(Draft("paragraph", start, end, text, {"tag": "ac:parameter", "role": "title"}))

    # macros

    def _open_macro(self, name: str, values: dict[str, str], start: int, end: int) -> None:
        entry = self.push(name, {}, start)
        around = self.macros[-1].marks() if self.macros else {}
        kind = values.get("type" if name == "ac:adf-node" else "ac:name", "").strip().lower()
        self.macros.append(Macro(kind, start, around, entry.visible == SHOWN))

    def _end_macro(self, macro: Macro, end: int) -> None:
        if not macro.shown:
            return
        name, values = macro.name, macro.values
        if macro.code is not None:
            macro.code.end = end
            macro.code.metadata |= _about_code(macro)
        if name in DYNAMIC_MACROS:
            self.content = True
            self.dynamic[name] += 1
        elif name == "status":
            self._say(values.get("title", ""), macro.start, end)
        elif name == "jira":
            self._say(values.get("key") or values.get("jqlquery") or values.get("jql") or "", macro.start, end)
        elif name in SHOWING_MACROS or name not in KNOWN_MACROS:
            self.content = True
            if name not in KNOWN_MACROS:
                self.unknown[name] += 1
            self._say_references(macro, end)

    def _say_references(self, macro: Macro, end: int) -> None:
        """What a macro shows that names its content by parameters: files, pages, addresses, or its nameless parameter."""
        links = macro.links
        if not links and macro.values.get("url"):
            links = [Link(macro.values["url"], macro.values["url"])]
        for link in links:
            self.add_space()
            self._say(link.text, macro.start, end, link.href)
        if not links:
            self._say(macro.values.get("", ""), macro.start, end)

    def _open_value(self, name: str, values: dict[str, str], start: int, end: int) -> None:
        if self.value >= 0:
            self.pop_to(self.value, start, start)  # one inside another has never closed
        entry = self.push(name, {}, start)
        self.names.append((values.get("ac:name") or values.get("key") or "").strip().lower())
        if entry.visible == SHOWN:
            self.value = len(self.stack) - 1
            entry.sink = self.sink = Sink(_VALUE, Draft("paragraph", start), self.sink)

    def _end_value(self, entry: OpenElement, end: int) -> None:
        key = self.names.pop()
        if entry.sink is None:
            return
        self.value = -1
        text = collapse(entry.sink.text())
        if not self.source.endswith((f"{entry.name}>", "/>"), 0, end):
            self._say(text, entry.start, end)  # it never closed: what follows it is no parameter
        elif entry.name == "ac:task-status":
            self._state(text)
        elif self.macros:
            macro = self.macros[-1]
            macro.values.setdefault(key, text)
            macro.links += entry.sink.draft.links
            if key == "title" and macro.name != "status":
                self._title(text, entry.start, end)

    def _state(self, text: str) -> None:
        index = self.scopes[-1].items[-1]
        draft = self.stack[index].draft if index >= 0 else None
        if draft is not None:
            draft.metadata["task"] = _STATES.get(text.lower(), text)

    # bodies

    def _open_body(self, name: str, values: dict[str, str], start: int, end: int) -> None:
        macro = self.macros[-1] if self.macros and name in ("ac:rich-text-body", "ac:adf-content") else None
        if self.visible == SHOWN:
            self.boundary()
        entry = self.push(name, {}, start)
        if macro is not None and macro.values.get("hidden", "").lower() == "true":
            entry.visible = self.visible = HIDDEN
            self.hidden_by = "hidden"
        self.bodies.append(len(self.stack) - 1)
        self.box_starts.append(len(self.drafts) if macro is not None and macro.name in EXPAND_MACROS else -1)
        self.scopes.append(Scope())
        if entry.visible == SHOWN:
            self.adf_shown = self.adf_shown or name == "ac:adf-content"
            self.fresh = entry

    def _end_body(self, entry: OpenElement, end: int) -> None:
        self.bodies.pop()
        self.scopes.pop()
        if entry.visible == SHOWN:
            if self.sink is None and self.run is not None:
                self.end_run(end if self.run_element is entry else -1)
            self.boundary()
        start = self.box_starts.pop()
        if start >= 0:
            self.boxes.append((start, len(self.drafts)))

    def _open_plain(self, name: str, values: dict[str, str], start: int, end: int) -> None:
        entry = self.push(name, {}, start)
        if entry.visible != SHOWN:
            return
        self.boundary()
        if self.sink is not None:
            return
        self.kept = 0
        macro = self.macros[-1] if self.macros else Macro("", start, {}, True)
        macro.code = Draft("code", macro.start, metadata={"tag": "ac:structured-macro", **_about_code(macro)})
        self.open_sink(entry, CODE, macro.code)

    def _open_hidden(self, name: str, values: dict[str, str], start: int, end: int) -> None:
        entry = self.push(name, {}, start)
        if name == "ac:placeholder" or self.adf_shown:
            entry.visible = self.visible = HIDDEN
            self.hidden_by = ""

    def _open_adf(self, name: str, values: dict[str, str], start: int, end: int) -> None:
        self.adf_shown = False
        self.push(name, {}, start)

    # links, images, tasks, words

    def _open_link(self, name: str, values: dict[str, str], start: int, end: int) -> None:
        self.push(name, {}, start)
        anchor = values.get("ac:anchor", "")
        self.references.append(Reference(anchor, f"#{anchor}" if anchor else "", anchor))

    def _open_image(self, name: str, values: dict[str, str], start: int, end: int) -> None:
        entry = self.push(name, {}, start)
        self.references.append(found := Reference())
        if entry.visible != SHOWN:
            return
        metadata: dict[str, Any] = {"tag": "ac:image"}
        for side in ("width", "height"):
            size = NUMBER.match(values.get(f"ac:{side}", ""))
            if size:
                metadata[side] = max(0, int(size[1]))
        alt = collapse(values.get("ac:alt") or values.get("ac:title") or "")
        entry.draft = found.image = Draft("image", start, 0, alt, metadata)
        if self.link is not None:
            found.image.links.append(Link(self.link.href, alt))
            self.link.image = True
        self.add_draft(found.image)
        self.add_space()

    def _open_identifier(self, name: str, values: dict[str, str], start: int) -> None:
        """A resource identifier names the target of what it stands in; one inside another says where that one is."""
        around = self.stack[-1].name
        self.push(name, {}, start)
        href, text = reference(name, values)
        if around in VALUES and self.visible == SHOWN:
            self._say(text, start, start, href)
        elif around.startswith("ri:") and self.references:
            if href and self.references[-1].href:
                self.references[-1].href = f"{href}^{self.references[-1].href}"
        elif around in ("ac:link", "ac:image"):
            found = self.references[-1]
            found.href = f"{href}#{found.anchor}" if found.anchor else href
            found.text = text or found.text

    def _open_link_body(self, name: str, values: dict[str, str], start: int, end: int) -> None:
        found = self.references[-1] if self.references else Reference()
        found.has_body = True
        if self.visible == SHOWN:
            end_link(self)
            if found.href:
                self.link = OpenLink(found.href, self.sink or self.run)
        self.push(name, {}, start)

    def _end_reference(self, name: str, found: Reference, end: int) -> None:
        if found.image is not None:
            found.image.href = found.href
        elif name == "ac:link" and not found.has_body and self.visible == SHOWN:
            self._say(found.text, end, end, found.href)

    def _open_task_list(self, name: str, values: dict[str, str], start: int, end: int) -> None:
        super().open("ul", "", start, end)

    def _open_task(self, name: str, values: dict[str, str], start: int, end: int) -> None:
        super().open("li", "", start, end)
        draft = self.stack[-1].draft
        if draft is not None:
            draft.metadata["tag"] = "ac:task"

    def _open_emoticon(self, name: str, values: dict[str, str], start: int, end: int) -> None:
        if self.visible == SHOWN:
            self._say(emoticon(values), start, end)

    def _open_time(self, name: str, values: dict[str, str], start: int, end: int) -> None:
        """A date is its attribute where the element holds no text."""
        empty = self.source.endswith("/>", 0, end) or self.source.startswith("</time", end)
        if self.visible != SHOWN:
            self.push(name, {}, start)
        elif empty:
            self._say(values.get("datetime", ""), start, end)


def _about_code(macro: Macro) -> dict[str, Any]:
    """Language and title that a macro gives to its plain body."""
    values = macro.values
    default = values.get("", "") if macro.name in CODE_MACROS else BODY_LANGUAGES.get(macro.name, "")
    language = "" if macro.name == "noformat" else (values.get("language") or default).lower()
    title = values.get("title")
    return {"language": "" if language in NO_LANGUAGE else language, **({"title": title} if title else {})}


_OPENERS: dict[str, Callable[[StorageWalk, str, dict[str, str], int, int], None]] = {
    **dict.fromkeys(MACROS, StorageWalk._open_macro),
    **dict.fromkeys(VALUES, StorageWalk._open_value),
    **dict.fromkeys(BODIES, StorageWalk._open_body),
    **dict.fromkeys(LINK_BODIES, StorageWalk._open_link_body),
    "ac:plain-text-body": StorageWalk._open_plain,
    "ac:placeholder": StorageWalk._open_hidden,
    "ac:adf-fallback": StorageWalk._open_hidden,
    "ac:adf-extension": StorageWalk._open_adf,
    "ac:link": StorageWalk._open_link,
    "ac:image": StorageWalk._open_image,
    "ac:task-list": StorageWalk._open_task_list,
    "ac:task": StorageWalk._open_task,
    "ac:emoticon": StorageWalk._open_emoticon,
    "time": StorageWalk._open_time,
}
