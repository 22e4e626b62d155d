"""HTML tokens → drafts of blocks, on a stack of open elements with the implied end tags of HTML; no recursion, no tree.

Text goes to the open sink (heading, code, table cell, caption) or, in the flow, to a run: the first visible text after a block boundary
opens one, the next boundary ends it. The invariant: every visible piece of text goes to exactly one draft, and every look-up on the
stack either costs O(1) or closes what it passed, so that a page costs time in proportion to its size.
"""

from __future__ import annotations

from typing import Any

from raydex.kernels.drafts import Draft, check_count
from raydex.kernels.html_furniture import LeftOut, Masthead, settle_mastheads
from raydex.kernels.html_head import read_language, read_meta
from raydex.kernels.html_links import add_image, end_link, open_link
from raydex.kernels.html_lists import open_item, open_list
from raydex.kernels.html_rules import (
    BLOCKS,
    BOXES,
    CELLS,
    DROPPED,
    HEADINGS,
    HEADINGS_ONLY,
    HIDDEN,
    ITEMS,
    LISTS,
    MAIN,
    PHRASING,
    SHOWN,
    TABLE_PARTS,
    VOID,
    language_of,
    may_tell,
    visibility,
    what_hides,
)
from raydex.kernels.html_scan import EMPTY, END, RAW, START, parse_attributes, scan_html, unescape
from raydex.kernels.html_state import (
    BREAK,
    CAPTION,
    CELL,
    CODE,
    FLOW,
    HEADING,
    OpenElement,
    OpenLink,
    OpenList,
    OpenTable,
    Scope,
    Sink,
    collapse,
    is_empty,
)
from raydex.kernels.html_tables import close_table_part, open_table_part
from raydex.kernels.html_turned import TURNED, OpenTurn, close_turned, open_turned
from raydex.kernels.request import ParseRequest

_SCOPED = frozenset(("table", "td", "th", "caption", "template"))
_RUN_ENDS = HEADINGS | LISTS | ITEMS | TABLE_PARTS
_READS_ATTRIBUTES = frozenset(("a", "ol", "li", "td", "th", "table", "pre", *HEADINGS))


class HtmlWalk:
    """One walk over a page or fragment. After `walk`: `drafts`, `title`, what the page says of itself (`facts`), what was `left_out`, and
    whether there was any `content`, shown or not."""

    def __init__(self, request: ParseRequest) -> None:
        self.request = request
        self.drafts: list[Draft] = []
        self.title = ""
        self.facts: dict[str, str] = {}
        self.left_out = LeftOut()
        self.content = False

    def walk(self, text: str, *, xml: bool = False) -> None:
        """Raises LimitError (too_many_blocks)."""
        self.source = text
        root = OpenElement("body", 0, SHOWN)
        self.stack = [root]
        self.scopes = [Scope()]
        self.tables: list[OpenTable] = []
        self.visible = SHOWN
        self.sink: Sink | None = None
        self.run: Sink | None = None
        self.run_element: OpenElement | None = None
        self.run_start = self.run_end = 0
        self.fresh: OpenElement | None = None
        self.item: OpenElement | None = None
        self.link: OpenLink | None = None
        self.turn: OpenTurn | None = None
        self.hidden_by = ""
        self.mastheads: list[Masthead] = []
        self.regions = self.quotes = 0
        self.layouts = 0
        self.layout_tables: frozenset[int] | None = None
        has_nul = BREAK in text
        for piece, at, kind, name, attributes, start, end in scan_html(text, xml=xml):
            if piece:
                if self.visible != SHOWN:
                    self.add_hidden(piece)
                else:
                    if has_nul:
                        piece = piece.replace(BREAK, "\ufffd")
                    sink = self.sink
                    if sink is not None and sink.kind != CELL:
                        sink.pieces.append(unescape(piece) if "&" in piece else piece)
                    else:
                        self.add_text(piece, at, start, True)
            if name in PHRASING and self.visible == SHOWN:
                # most tags of a page: they matter only if they hide, name a language or close what hides
                if kind == END:
                    if name in self.scopes[-1].counts:
                        self.close_named(name, start, end)
                elif attributes and may_tell(attributes):
                    self.open_inline(name, parse_attributes(attributes), start)
            elif kind == START:
                self.open(name, attributes, start, end)
            elif kind == END:
                self.close(name, start, end)
            elif kind == RAW:
                self.add_raw(name, start, end)
            elif kind == EMPTY:
                self.open_empty(name, attributes, start, end)
        size = len(text)
        while len(self.stack) > 1:
            self.pop(size)
        self.end_run()
        if self.mastheads:
            settle_mastheads(self.drafts, self.mastheads, self.left_out)

    def add_hidden(self, piece: str) -> None:
        if not piece.isspace():
            self.content = True
            self.left_out.add(piece, self.hidden_by if self.visible == HIDDEN else "header")

    def add_text(self, piece: str, start: int, end: int, escaped: bool) -> None:
        if escaped and "&" in piece:
            piece = unescape(piece)
        sink = self.sink
        if sink is not None:
            if sink.kind == CELL and self.stack[-1].name == "pre":
                piece = piece.replace("\n", BREAK)
            sink.pieces.append(piece)
            return
        run = self.run
        if run is None:
            if not piece.strip():
                return
            run = self.start_run(start + len(piece) - len(piece.lstrip()) if "&" not in piece else start)
        run.pieces.append(piece)
        self.run_end = end

    def start_run(self, start: int) -> Sink:
        item, top = self.item, self.stack[-1]
        if item is not None and item.draft is not None:
            draft = item.draft
            self.item = None
        else:
            draft = Draft("paragraph", start, metadata={"tag": top.name})
            self.run_element = top if self.fresh is top and len(self.stack) > 1 else None
        self.add_draft(draft)
        self.fresh = None
        self.run = Sink(FLOW, draft)
        self.run_start = start
        if self.link is not None and self.link.sink is None:
            self.link.sink = self.run
        return self.run

    def add_draft(self, draft: Draft) -> None:
        if self.quotes:
            draft.metadata["quote"] = self.quotes
        self.drafts.append(draft)
        check_count(self.drafts, self.request)

    def add_raw(self, name: str, start: int, end: int) -> None:
        content = self.source[start:end]
        if name == "title":
            if not self.title and self.visible == SHOWN:
                self.title = collapse(unescape(content).replace(BREAK, "\ufffd"))
        elif name in ("xmp", "plaintext", "textarea", "#cdata"):
            if self.visible == SHOWN:
                self.add_text(content.replace(BREAK, "\ufffd"), start, end, name == "textarea")
        elif content.strip():
            self.content = True

    def end_run(self, element_end: int = -1) -> None:
        """The run's draft gets its text and, unless it belongs to a list item, its place: the element it fills, or the text alone."""
        run = self.run
        self.run = None
        if run is None:
            return
        if self.link is not None:
            end_link(self, run)
        draft = run.draft
        draft.text = collapse(run.text())
        element, self.run_element = self.run_element, None
        if draft.kind == "list_item":
            return
        if element is not None and element_end >= 0:
            draft.start, draft.end = element.start, element_end
        else:
            start, end = self.run_start, self.run_end
            draft.start = start
            draft.end = end - (len(self.source[start:end]) - len(self.source[start:end].rstrip()))

    def boundary(self) -> None:
        """A block begins or ends here: in the flow the run ends, in code a line, in a cell an item; in a heading it is a space."""
        sink = self.sink
        if sink is None:
            if self.run is not None:
                self.end_run()
            self.fresh = None
        elif sink.kind == HEADING:
            sink.pieces.append(" ")
        elif sink.kind == CODE:
            sink.end_line()
        else:
            sink.pieces.append(BREAK)

    def add_space(self) -> None:
        target = self.sink or self.run
        if target is not None and target.kind != CODE:
            target.pieces.append(" ")

    def open_empty(self, name: str, attributes: str, start: int, end: int) -> None:
        if name == "svg":
            if self.visible == SHOWN:
                self.add_space()
        elif name in VOID:
            self.open(name, attributes, start, end)
        elif name in BLOCKS or name in TABLE_PARTS or name in HEADINGS or name in LISTS or name in ITEMS:
            self.open(name, attributes, start, end)
            self.close(name, end, end)

    def open(self, name: str, attributes: str, start: int, end: int) -> None:
        if name in VOID:
            self.open_void(name, attributes, start, end)
            return
        values = parse_attributes(attributes) if attributes and (name in _READS_ATTRIBUTES or may_tell(attributes)) else {}
        if name in TABLE_PARTS:
            open_table_part(self, name, values, start)
        elif name in BLOCKS or name in HEADINGS or name in ITEMS or name in LISTS:
            scope = self.scopes[-1]
            if scope.paragraph >= 0:
                self.pop_to(scope.paragraph, start, start)
            if name in ITEMS:
                open_item(self, name, values, start)
            elif name in HEADINGS:
                self.open_heading(name, values, start)
            elif name in LISTS:
                open_list(self, name, values, start)
            else:
                self.open_block(name, values, start)
        elif name == "a":
            open_link(self, values)
        else:
            self.open_inline(name, values, start)

    def open_void(self, name: str, attributes: str, start: int, end: int) -> None:
        if self.visible != SHOWN:
            return
        if name == "br":
            target = self.sink or self.run
            if target is not None:
                target.pieces.append("\n" if target.kind == CODE else " " if target.kind == HEADING else BREAK)
        elif name in ("img", "image"):
            values = parse_attributes(attributes)
            if not may_tell(attributes) or visibility(name, values, False) == SHOWN:
                add_image(self, values, start, end)
        elif name == "meta":
            read_meta(parse_attributes(attributes), self.facts)
        elif name == "hr":
            scope = self.scopes[-1]
            if scope.paragraph >= 0:
                self.pop_to(scope.paragraph, start, start)
            self.boundary()
        elif name in BOXES:
            self.add_space()

    def push(self, name: str, values: dict[str, str], start: int) -> OpenElement:
        visible = self.visible
        if visible == SHOWN and (values or name in DROPPED or name in ("header", "dialog")):
            visible = visibility(name, values, self.regions > 0)
            if visible != SHOWN and self.sink is None and self.run is not None and name in BLOCKS:
                self.end_run()
            if visible == HEADINGS_ONLY:
                self.mastheads.append((len(self.drafts), -1))
        elif visible == HEADINGS_ONLY:
            if name in HEADINGS and (not values or visibility(name, values, True) == SHOWN):
                visible = SHOWN
            elif name in DROPPED or (values and visibility(name, values, True) == HIDDEN):
                visible = HIDDEN
        if visible == HIDDEN != self.visible:
            self.hidden_by = what_hides(name, values)
        entry = OpenElement(name, start, visible)
        counts = self.scopes[-1].counts
        counts[name] = counts.get(name, 0) + 1
        if name in MAIN or values.get("role") in ("main", "article"):
            entry.region = True
            self.regions += 1
        self.stack.append(entry)
        self.visible = visible
        return entry

    def open_block(self, name: str, values: dict[str, str], start: int) -> None:
        if self.visible == SHOWN:
            self.boundary()
        if name in ("body", "html"):
            if name == "html" and values:
                read_language(values, self.facts)
            return
        if name in ("pre", "listing"):
            self.open_code(values, start)
            return
        entry = self.push(name, values, start)
        if name == "template":
            self.scopes.append(Scope())
        elif name == "blockquote":
            self.quotes += 1
        elif name == "p":
            self.scopes[-1].paragraph = len(self.stack) - 1
        elif name == "div" and "class" in values:
            entry.language = language_of(values["class"])
        if entry.visible == SHOWN:
            self.fresh = entry

    def open_code(self, values: dict[str, str], start: int) -> None:
        above = self.stack[-3:]
        entry = self.push("pre", values, start)
        if entry.visible != SHOWN or self.sink is not None:
            return
        language = language_of(values.get("class", "")) or values.get("data-lang", "") or values.get("lang", "")
        language = language or next((e.language for e in reversed(above) if e.language), "")
        draft = Draft("code", start, metadata={"tag": "pre", "language": language})
        self.open_sink(entry, CODE, draft)

    def open_sink(self, entry: OpenElement, kind: int, draft: Draft, listed: bool = True) -> None:
        self.item = self.fresh = None
        entry.sink = self.sink = Sink(kind, draft, self.sink)
        if listed:
            entry.draft = draft
            self.add_draft(draft)
        if self.link is not None and self.link.sink is None:
            self.link.sink = self.sink

    def open_heading(self, name: str, values: dict[str, str], start: int) -> None:
        if self.stack[-1].name in HEADINGS:
            self.pop(start)
        if self.visible == SHOWN:
            self.boundary()
        entry = self.push(name, values, start)
        if entry.visible == SHOWN and self.sink is None:
            metadata: dict[str, Any] = {"tag": name, "level": int(name[1])}
            if values.get("id"):
                metadata["anchor"] = values["id"]
            self.open_sink(entry, HEADING, Draft("heading", start, metadata=metadata))

    def open_inline(self, name: str, values: dict[str, str], start: int) -> None:
        """Elements inside a line matter only where they hide their text, or where the walker is inside hidden text already."""
        if name in BOXES and self.visible == SHOWN:
            self.add_space()
        if self.visible != SHOWN or name in DROPPED or (values and visibility(name, values, False) != SHOWN):
            self.push(name, values, start)
        elif name in TURNED:
            open_turned(self, name, start)
        elif name == "code" and self.sink is not None and self.sink.kind == CODE and not self.sink.draft.metadata["language"]:
            self.sink.draft.metadata["language"] = language_of(values.get("class", ""))

    def close(self, name: str, start: int, end: int) -> None:
        scope = self.scopes[-1]
        if name in TABLE_PARTS:
            close_table_part(self, name, start, end)
        elif name == "p":
            if scope.paragraph >= 0:
                self.pop_to(scope.paragraph, start, end)
            elif self.visible == SHOWN:
                self.boundary()
        elif name in ITEMS:
            if scope.items[-1] >= 0 and self.stack[scope.items[-1]].name == name:
                self.pop_to(scope.items[-1], start, end)
        elif name == "br":
            self.open_void("br", "", start, end)
        elif name == "a":
            if self.visible != SHOWN:
                self.close_named("a", start, end)
            else:
                end_link(self)
        elif name in HEADINGS:
            if any(scope.counts.get(h) for h in HEADINGS):
                index = len(self.stack) - 1
                while self.stack[index].name not in HEADINGS:
                    index -= 1
                self.pop_to(index, start, end)
        elif name == "template":
            self.close_template(start, end)
        elif name in TURNED and not scope.counts.get(name):
            close_turned(self, name)
        else:
            self.close_named("pre" if name == "listing" else name, start, end)
            if name in BOXES and self.visible == SHOWN:
                self.add_space()

    def close_named(self, name: str, start: int, end: int) -> None:
        if self.scopes[-1].counts.get(name):
            index = len(self.stack) - 1
            while self.stack[index].name != name:
                index -= 1
            self.pop_to(index, start, end)
        elif (name in BLOCKS or name in LISTS) and name not in ("body", "html") and self.visible == SHOWN:
            self.boundary()

    def close_template(self, start: int, end: int) -> None:
        if any(scope.counts.get("template") for scope in self.scopes[: min(65, max(1, len(self.scopes) - 1))]):
            index = len(self.stack) - 1
            while index > 0 and self.stack[index].name != "template":
                index -= 1
            if index > 0:
                self.pop_to(index, start, end)

    def pop_to(self, index: int, start: int, end: int) -> None:
        """Closes the element at `index` of the stack, which ends at `end`; those above it end where the tag begins."""
        while len(self.stack) - 1 > index:
            self.pop(start)
        if len(self.stack) - 1 == index:
            self.pop(end)

    def pop(self, end: int) -> None:
        entry = self.stack.pop()
        name = entry.name
        index = len(self.stack)
        if name in _SCOPED:
            self.scopes.pop()
        scope = self.scopes[-1]
        scope.counts[name] -= 1
        if entry.visible == SHOWN:
            if self.run is not None and self.sink is None and (name in BLOCKS or name in _RUN_ENDS):
                self.end_run(end if self.run_element is entry else -1)
            self.fresh = None if self.fresh is entry else self.fresh
        if entry.sink is not None:
            self.end_sink(entry.sink)
        elif self.sink is not None and entry.visible == SHOWN and name not in CELLS and (name in BLOCKS or name in _RUN_ENDS):
            self.boundary()
        if entry.draft is not None:
            entry.draft.end = end
            last = entry.draft.kind in ("heading", "table", "code") and self.drafts and self.drafts[-1] is entry.draft
            if last and is_empty(entry.draft):
                self.drafts.pop()
        if name == "p" and scope.paragraph == index:
            scope.paragraph = -1
        elif name in ITEMS and scope.items[-1] == index:
            scope.items[-1] = -1
            if self.item is entry:
                self.item = None
        if entry.role is not None:
            if isinstance(entry.role, OpenList):
                scope.lists.pop()
                scope.items.pop()
            else:
                self.tables.pop()
                self.layouts -= entry.role.layout
        elif self.tables and name in TABLE_PARTS:
            table = self.tables[-1]
            if table.cell == index:
                table.cell = -1
            elif table.row == index:
                table.row = -1
            elif table.caption == index:
                table.caption = -1
            elif table.section == index:
                table.section = -1
                table.header = False
        if entry.region:
            self.regions -= 1
        elif name == "blockquote":
            self.quotes -= 1
        elif entry.visible == HEADINGS_ONLY and self.mastheads[-1][1] < 0 and (not self.stack or self.stack[-1].visible == SHOWN):
            self.mastheads[-1] = (self.mastheads[-1][0], len(self.drafts))
        self.visible = self.stack[-1].visible if self.stack else SHOWN

    def end_sink(self, sink: Sink) -> None:
        if self.link is not None:
            end_link(self, sink)
        text = sink.text()
        self.sink = sink.previous
        draft = sink.draft
        if sink.kind == CODE:
            text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\n")
            draft.text = text.removesuffix("\n")
        elif sink.kind == HEADING:
            draft.text = collapse(text)
        elif sink.kind == CAPTION:
            caption = collapse(text)
            if caption:
                draft.metadata["caption"] = "\n".join(filter(None, (draft.metadata.get("caption", ""), caption)))
        elif draft.rows:
            draft.rows[-1][-1]["text"] = collapse(text)
