"""Atlassian Document Format → drafts: one walk, every node's text in reading order (seed 1).

Text that a node keeps in its attributes (mention, emoji, date, status, card, media, expand, extension) is read as what a reader sees. The
invariant: every string that is shown is in some draft, once; a node type that is not known keeps the text inside it and is counted in
`unknown`. The walk is bounded by `limits.depth`.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from raydex.ir.document import Link
from raydex.ir.errors import LimitError
from raydex.kernels.drafts import Draft
from raydex.kernels.inner_sections import Span
from raydex.kernels.tables import ITEM_MARK, make_cell

Node = dict[str, Any]
_LISTS = frozenset(("bulletList", "orderedList", "taskList", "decisionList"))
_ITEMS = frozenset(("listItem", "taskItem", "decisionItem", "blockTaskItem"))
# containers whose children are blocks like others; what they are goes to the children's metadata
_MARKED = {"panel": "panel", "blockquote": "quote", "expand": "expand", "nestedExpand": "expand"}
_THROUGH = frozenset(
    [
        "doc",
        "layoutSection",
        "layoutColumn",
        "mediaGroup",
        "mediaSingle",
        "bodiedExtension",
        "multiBodiedExtension",
        "extensionFrame",
        "bodiedSyncBlock",
    ]
)
_EXTENSIONS = frozenset(("extension", "inlineExtension", "bodiedExtension", "multiBodiedExtension"))
_CARDS = frozenset(("inlineCard", "blockCard", "embedCard"))
_ATOMS = frozenset(("mention", "date", "status", "placeholder", "mediaInline", *_CARDS))
_INLINE = frozenset(
    ["text", "hardBreak", "mention", "emoji", "date", "status", "inlineCard", "mediaInline", "inlineExtension", "placeholder"]
)


class AdfWalk:
    """Drafts of one document. `place` is what their locators share, `pointer` where the document stands in its file; headings get
    `level` added, since they stand below the section of the ticket."""

    def __init__(self, drafts: list[Draft], depth: int, level: int = 0) -> None:
        self.drafts = drafts
        self.unknown: Counter[str] = Counter()
        self.boxes: list[Span] = []  # drafts of what unfolds
        self.level = level
        self._depth = depth
        self._place: dict[str, Any] = {}
        self._about: dict[str, Any] = {}

    def walk(self, node: Node, pointer: str, place: dict[str, Any], about: dict[str, Any] | None = None) -> None:
        self._place, self._about = place, about or {}
        self._blocks([node], pointer.rpartition("/")[0], {}, 0, steps=[pointer.rpartition("/")[2]])

    def _add(self, kind: str, text: str, pointer: str, about: dict[str, Any], links: list[Link] | None = None, **more: Any) -> None:
        if text.strip() or kind in ("image", "table"):
            place = {**self._place, "pointer": pointer}
            self.drafts.append(Draft(kind, 0, 0, text, {**self._about, **about, **more}, links or [], place=place))

    def _blocks(self, nodes: Any, pointer: str, about: dict[str, Any], deep: int, steps: list[str] | None = None) -> None:
        if deep > self._depth:
            raise LimitError(f"nested deeper than limits.depth ({self._depth})", reject_class="too_deep")
        run: list[Node] = []
        for at, node in enumerate(nodes if isinstance(nodes, list) else [nodes]):
            if not isinstance(node, dict):
                continue
            if node.get("type") in _INLINE:
                run.append(node)
                continue
            here = f"{pointer}/{steps[at] if steps else at}"
            if run:
                self._loose(run, here, about)
            self._block(node, here, about, deep)
        if run:
            self._loose(run, f"{pointer}/{len(nodes) - 1}" if isinstance(nodes, list) else pointer, about)

    def _loose(self, run: list[Node], pointer: str, about: dict[str, Any]) -> None:
        """Inline nodes where blocks are expected."""
        text, links = self.inline(run)
        self._add("paragraph", text, pointer, about, links)
        run.clear()

    def _block(self, node: Node, here: str, about: dict[str, Any], deep: int) -> None:
        kind = node.get("type")
        content = node.get("content") or []
        if kind == "paragraph":
            text, links = self.inline(content)
            self._add("paragraph", text, here, about, links)
            return
        attrs = _attrs(node)
        inner = f"{here}/content"
        if kind == "caption":
            text, links = self.inline(content)
            self._add("paragraph", text, here, about, links, role="caption")
        elif kind == "heading":
            text, links = self.inline(content)
            level = attrs.get("level")
            level = level if isinstance(level, int) and 1 <= level <= 6 else 1
            if text.strip():
                self._add("heading", text, here, about, links, level=min(level + self.level, 6))
        elif kind in _LISTS:
            self._list(node, here, about, deep)
        elif kind == "codeBlock":
            text = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
            self._add("code", text, here, about, language=str(attrs.get("language") or ""))
        elif kind == "table":
            self._table(content, inner, about, deep)
        elif kind == "media":
            self._media(node, attrs, here, about)
        elif kind in _CARDS:
            link = _card(attrs)
            self._add("paragraph", link.text or link.href, here, about, [link] if link.href else [])
        elif kind == "rule":
            return
        elif kind in _MARKED:
            mark: dict[str, Any] = {_MARKED[kind]: str(attrs.get("panelType") or True) if kind == "panel" else True}
            if attrs.get("title"):
                self._add("paragraph", str(attrs["title"]), here, {**about, **mark}, role="title")
            first = len(self.drafts)
            self._blocks(content, inner, {**about, **mark}, deep + 1)
            if "expand" in mark:
                self.boxes.append((first, len(self.drafts)))
        elif kind in _EXTENSIONS:
            self._extension(node, attrs, here, about, deep)
        else:
            if kind not in _THROUGH:
                self.unknown[str(kind)] += 1
                if attrs.get("text") or node.get("text"):
                    self._add("paragraph", str(attrs.get("text") or node["text"]), here, about)
            self._blocks(content, inner, about, deep + 1)

    def _extension(self, node: Node, attrs: dict[str, Any], here: str, about: dict[str, Any], deep: int) -> None:
        """A macro: its title or plain text, and what is inside it."""
        parameters = attrs.get("parameters") if isinstance(attrs.get("parameters"), dict) else {}
        title = (parameters or {}).get("extensionTitle") or attrs.get("text") or ""
        mark = {"extension": str(attrs.get("extensionKey") or "")}
        if isinstance(title, str):
            self._add("paragraph", title, here, {**about, **mark})
        self._blocks(node.get("content") or [], f"{here}/content", {**about, **mark}, deep + 1)

    def _list(self, node: Node, here: str, about: dict[str, Any], deep: int) -> None:
        """Items as list_item drafts: the first paragraph is the item, what follows in it stands below."""
        if deep > self._depth:
            raise LimitError(f"nested deeper than limits.depth ({self._depth})", reject_class="too_deep")
        kind = str(node.get("type"))
        ordered = kind == "orderedList"
        start = _attrs(node).get("order")
        number = start if isinstance(start, int) else 1
        level = about.get("level", -1) + 1
        for at, item in enumerate(node.get("content") or []):
            if not isinstance(item, dict):
                continue
            spot = f"{here}/content/{at}"
            if item.get("type") in _LISTS:
                self._list(item, spot, {**about, "level": level}, deep + 1)
                continue
            mark: dict[str, Any] = {"level": level, "ordered": ordered}
            if ordered:
                mark["number"] = number
            number += 1
            state = _attrs(item).get("state")
            if kind in ("taskList", "decisionList"):
                mark[kind.removesuffix("List")] = str(state or "")
            if item.get("type") not in _ITEMS:
                self.unknown[str(item.get("type"))] += 1
            self._item(item.get("content") or [], f"{spot}/content", about, mark, deep)

    def _item(self, content: list[Node], pointer: str, about: dict[str, Any], mark: dict[str, Any], deep: int) -> None:
        rest = {key: value for key, value in about.items() if key not in ("ordered", "number", "task", "decision")} if about else {}
        if content and isinstance(content[0], dict) and content[0].get("type") in _INLINE:
            text, links = self.inline(content)
            self._add("list_item", text, pointer.rpartition("/")[0], {**rest, **mark}, links)
            others = [(at, node) for at, node in enumerate(content) if isinstance(node, dict) and node.get("type") not in _INLINE]
        elif content and isinstance(content[0], dict) and content[0].get("type") == "paragraph":
            text, links = self.inline(content[0].get("content") or [])
            self._add("list_item", text, f"{pointer}/0", {**rest, **mark}, links)
            others = list(enumerate(content))[1:]
        else:
            others = list(enumerate(content))
        for at, node in others:
            self._blocks([node], pointer, {**rest, "level": mark["level"]}, deep + 1, steps=[str(at)])

    def _table(self, rows: list[Node], pointer: str, about: dict[str, Any], deep: int) -> None:
        cells: list[list[dict[str, Any]]] = []
        links: list[Link] = []
        for row in rows:
            if not isinstance(row, dict):
                continue
            out = []
            for cell in row.get("content") or []:
                if not isinstance(cell, dict):
                    continue
                text = self._cell(cell.get("content") or [], links, deep + 1)
                attrs = _attrs(cell)
                down, across = (_span(attrs, "rowspan"), _span(attrs, "colspan")) if attrs else (1, 1)
                out.append(make_cell(text, row_span=down, col_span=across, header=cell.get("type") == "tableHeader"))
            cells.append(out)
        if any(cells):
            place = {**self._place, "pointer": pointer.rpartition("/")[0]}
            self.drafts.append(Draft("table", 0, 0, "", {**self._about, **about}, links, rows=cells, place=place))

    def _cell(self, content: list[Node], links: list[Link], deep: int) -> str:
        """A cell's blocks as lines of its text."""
        if len(content) == 1 and deep <= self._depth and isinstance(content[0], dict) and content[0].get("type") == "paragraph":
            text, found = self.inline(content[0].get("content") or [])  # nearly every cell: no drafts are needed
            if not text.strip():
                return ""
            links += found
            return text
        lines: list[str] = []
        walk = AdfWalk([], self._depth - deep)
        walk._blocks(content, "", {}, 0)
        self.unknown.update(walk.unknown)
        for draft in walk.drafts:
            links.extend(draft.links)
            text = draft.text
            if draft.rows is not None:
                text = "\n".join(ITEM_MARK.join(cell["text"] for cell in row) for row in draft.rows)
            if draft.kind == "image":
                text = text or draft.href
            if text.strip():
                lines.append(text)
        return "\n".join(lines)

    def _media(self, node: Node, attrs: dict[str, Any], here: str, about: dict[str, Any]) -> None:
        href = str(attrs.get("url") or attrs.get("id") or "")
        size = {key: attrs[key] for key in ("width", "height") if isinstance(attrs.get(key), int)}
        place = {**self._place, "pointer": here}
        links = [Link(str(href_)) for mark in node.get("marks") or [] if (href_ := _attrs(mark).get("href"))]
        text = str(attrs.get("alt") or "")
        self.drafts.append(Draft("image", 0, 0, text, {**self._about, **about, **size}, links, href=href, place=place))

    def inline(self, nodes: list[Node]) -> tuple[str, list[Link]]:
        """The text of inline nodes as it is read, and their links."""
        if len(nodes) == 1 and isinstance(nodes[0], dict) and nodes[0].get("type") == "text" and "marks" not in nodes[0]:
            return str(nodes[0].get("text", "")), []
        parts: list[str] = []
        links: list[Link] = []
        kind = None
        for node in nodes:
            if not isinstance(node, dict):
                continue
            before, kind = kind, node.get("type")
            if kind == "text":
                text = str(node.get("text", ""))
                parts.append(text)
                if marks := node.get("marks"):
                    for mark in marks:
                        if isinstance(mark, dict) and mark.get("type") == "link" and (href := _attrs(mark).get("href")):
                            links.append(Link(str(href), text))
                continue
            attrs = _attrs(node)
            if before in _ATOMS and kind in _ATOMS:
                parts.append(" ")  # a reader sees two things, and so must a search
            if kind == "hardBreak":
                parts.append("\n")
            elif kind == "mention":
                name = str(attrs.get("text") or attrs.get("id") or "")
                parts.append(name if name.startswith("@") else f"@{name}")
            elif kind == "emoji":
                parts.append(str(attrs.get("text") or attrs.get("shortName") or ""))
            elif kind == "date":
                parts.append(_date(attrs.get("timestamp")))
            elif kind in ("status", "placeholder"):
                parts.append(str(attrs.get("text") or ""))
            elif kind in _CARDS:
                link = _card(attrs)
                links.append(link)
                parts.append(link.text or link.href)
            elif kind in ("mediaInline", "media"):
                parts.append(f"[{attrs.get('alt') or attrs.get('id') or 'file'}]")
            else:
                if kind != "inlineExtension":
                    self.unknown[str(kind)] += 1
                inner, more = self.inline(node.get("content") or [])
                own = attrs.get("text") or attrs.get("title") or node.get("text") or ""
                parts.append(inner or str(own))
                links += more
        return "".join(parts), links


def _attrs(node: Any) -> dict[str, Any]:
    found = node.get("attrs") if isinstance(node, dict) else None
    return found if isinstance(found, dict) else {}


def _card(attrs: dict[str, Any]) -> Link:
    data = attrs.get("data") if isinstance(attrs.get("data"), dict) else {}
    return Link(str(attrs.get("url") or (data or {}).get("url") or ""), str((data or {}).get("name") or ""))


def _span(attrs: dict[str, Any], name: str) -> int:
    value = attrs.get(name)
    return value if isinstance(value, int) and value > 0 else 1


def _date(stamp: Any) -> str:
    """Milliseconds since 1970 → the day in UTC, as Atlassian writes it."""
    try:
        return datetime.fromtimestamp(int(stamp) / 1000, UTC).date().isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        return str(stamp or "")
