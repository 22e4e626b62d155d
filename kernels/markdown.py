"""Markdown → DocumentIR: CommonMark with tables, strikethrough, footnotes, front matter and embedded HTML.

markdown-it-py cuts blocks and tells their lines; places become code points of the decoded original here, whatever its line ends. The
invariant: text is never dropped in silence: what is nested deeper than `limits.depth` is a reject, front matter is a code block, and
embedded HTML goes through the walker of HTML pages.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from raydex.ir.document import Link
from raydex.ir.errors import LimitError
from raydex.ir.locator import split_lines
from raydex.ir.parsed import ParsedFile
from raydex.kernels.data_uri import is_data_uri, read_data_uri
from raydex.kernels.decode import decode
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.front_matter import front_text
from raydex.kernels.html_furniture import EVENT, LeftOut
from raydex.kernels.html_walk import HtmlWalk
from raydex.kernels.markdown_inline import InlineText, image_spans, read_inline
from raydex.kernels.request import ParseRequest
from raydex.kernels.tables import make_cell

PARSER_VERSION = "3"
_FENCE = {"---": ("yaml", ("---", "...")), "+++": ("toml", ("+++",))}
_FIELD = re.compile(r"[\w\"'.-][^:=\n]*[:=]")
_LANGUAGE = re.compile(r"\{?\s*\.?([A-Za-z0-9_+#.-]+)")
_FOOTNOTE = re.compile(r"\[\^([^\]\s]{1,200})\]:[ \t]*")
_TAG_OF_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8}){0,5}")
_TASK = re.compile(r"\[([ xX])\][ \t]+")
_NOT_LINE_ENDS = re.compile(r"[ \t]*")
_BRACKETS = 20  # brackets in brackets that are tried as links: each is read once a level


def parse_markdown(request: ParseRequest) -> ParsedFile:
    """Raises InputError: unsupported_media_type for binary content, too_many_blocks, too_deep."""
    decoded = decode(request.data)
    walk = _MarkdownWalk(request, decoded.text)
    front = walk.take_front_matter()
    walk.walk()
    parsed = finish(
        request,
        decoded,
        walk.drafts,
        parser="markdown",
        parser_version=PARSER_VERSION,
        title=front_text(front, "title"),
        metadata=_facts(front),
    )
    if walk.left_out.total:
        parsed.add_event("parse", "ok", EVENT, walk.left_out.message)
    return parsed


def _facts(front: str) -> dict[str, Any]:
    language = front_text(front, "lang", "language")
    return {**({"front_matter": front} if front else {}), **({"language": language} if _TAG_OF_LANGUAGE.fullmatch(language) else {})}


@lru_cache(maxsize=4)
def _parser(depth: int) -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": depth}).enable(["table", "strikethrough"])
    parser.block.ruler.before("reference", "footnote", _footnote_rule, {"alt": ["paragraph", "reference"]})
    parser.core.ruler.at("inline", _inline_rule)
    return parser


def _inline_rule(state: Any) -> None:
    """The parser's own rule, with a depth of its own for inline text."""
    from markdown_it.rules_core import inline

    options = state.md.options
    depth, options["maxNesting"] = options["maxNesting"], _BRACKETS
    try:
        inline(state)
    finally:
        options["maxNesting"] = depth


def _footnote_rule(state: Any, first: int, last: int, silent: bool) -> bool:
    """`[^label]: text` and the lines indented below it are one container, as a list item is."""
    if state.is_code_block(first):
        return False
    start = state.bMarks[first] + state.tShift[first]
    found = _FOOTNOTE.match(state.src, start, state.eMarks[first])
    if found is None:
        return False
    if silent:
        return True
    kept = state.bMarks[first], state.tShift[first], state.sCount[first], state.blkIndent, state.parentType
    token = state.push("footnote_open", "", 1)
    token.meta = {"label": found.group(1)}
    token.map = place = [first, 0]
    state.blkIndent += 4
    state.bMarks[first] = found.end()
    state.tShift[first] = 0
    state.sCount[first] = state.blkIndent
    state.parentType = "footnote"
    state.md.block.tokenize(state, first, last)
    state.bMarks[first], state.tShift[first], state.sCount[first], state.blkIndent, state.parentType = kept
    place[1] = state.line
    state.push("footnote_close", "", -1)
    return True


class _MarkdownWalk:
    """Tokens → drafts, with the lists, quotes and footnotes that are open."""

    def __init__(self, request: ParseRequest, text: str) -> None:
        self.request = request
        self.text = text
        self.drafts: list[Draft] = []
        self.lines = split_lines(text)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.skipped = 0  # lines of front matter
        self.lists: list[dict[str, Any]] = []
        self.item: dict[str, Any] | None = None
        self.quotes = 0
        self.footnote = ""
        self.containers = 0
        self.left_out = LeftOut()

    def take_front_matter(self) -> str:
        """The raw text between the fences of a YAML or TOML block that opens the file; it becomes a code block (seed 3)."""
        if not self.lines or self.lines[0].strip() not in _FENCE:
            return ""
        language, closings = _FENCE[self.lines[0].strip()]
        at = next((n for n, line in enumerate(self.lines[1:500], start=1) if line.rstrip() in closings), 0)
        told = (line for line in self.lines[1:at] if line.strip() and not line.lstrip().startswith("#"))
        if not _FIELD.match(next(told, "")):
            return ""
        body = "".join(self.lines[1:at]).replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
        self.skipped = at + 1
        metadata = {"language": language, "front_matter": True}
        self.drafts.append(Draft("code", 0, self.end_of(0, at + 1), body, metadata))
        return body

    def end_of(self, first: int, last: int) -> int:
        """Offset behind the last character that is no line end of the lines [first, last), blank lines at the end left out."""
        while last > first + 1 and not self.lines[last - 1].strip():
            last -= 1
        return self.starts[last - 1] + len(self.lines[last - 1].rstrip("\r\n"))

    def place(self, token: Any) -> tuple[int, int]:
        """Code-point range of a block token: from its first visible character to the end of its last line."""
        first, last = token.map[0] + self.skipped, token.map[1] + self.skipped
        last = min(last, len(self.lines))
        first = min(first, last - 1)
        found = _NOT_LINE_ENDS.match(self.lines[first])
        return self.starts[first] + (found.end() if found else 0), self.end_of(first, last)

    def walk(self) -> None:
        """Raises LimitError: too_deep, too_many_blocks."""
        depth = self.request.limits.depth
        tokens = _parser(depth).parse(self.text[self.starts[self.skipped] :])
        if any(token.level >= depth - 1 and token.nesting == 1 for token in tokens):
            raise LimitError(
                f"nested deeper than {depth} levels (limits.depth)",
                reject_class="too_deep",
                place=self.request.path,
                remedy="Flatten the lists or quotes, or raise limits.depth",
            )
        at = 0
        while at < len(tokens):
            token = tokens[at]
            kind = token.type
            if kind == "heading_open":
                self.add_heading(token, read_inline(tokens[at + 1].children or []))
                at += 2
            elif kind == "paragraph_open":
                self.add_paragraph(token, read_inline(tokens[at + 1].children or []))
                at += 2
            elif kind in ("fence", "code_block"):
                self.add_code(token)
            elif kind == "html_block":
                self.add_html(token)
            elif kind == "table_open":
                at = self.add_table(tokens, at)
            else:
                self.step(token)
            check_count(self.drafts, self.request)
            at += 1

    def step(self, token: Any) -> None:
        kind = token.type
        if kind in ("bullet_list_open", "ordered_list_open"):
            self.lists.append({"ordered": kind[0] == "o", "number": int(token.attrs.get("start", 1))})
            self.item = None
        elif kind in ("bullet_list_close", "ordered_list_close"):
            self.lists.pop()
        elif kind == "list_item_open":
            top = self.lists[-1]
            self.item = {"level": len(self.lists) - 1, "ordered": top["ordered"]}
            if top["ordered"]:
                self.item["number"] = top["number"]
                top["number"] += 1
        elif kind == "list_item_close":
            self.item = None
        elif kind == "blockquote_open":
            self.quotes += 1
        elif kind == "blockquote_close":
            self.quotes -= 1
        elif kind == "footnote_open":
            self.footnote = token.meta["label"]
        elif kind == "footnote_close":
            self.footnote = ""
        self.containers += token.nesting

    def metadata(self) -> dict[str, Any]:
        """What every block says of the containers around it."""
        values: dict[str, Any] = {}
        if self.quotes:
            values["quote"] = self.quotes
        if self.footnote:
            values["footnote"] = self.footnote
        return values

    def add_heading(self, token: Any, inline: InlineText) -> None:
        start, end = self.place(token)
        text = " ".join(inline.text.split("\n"))
        self.item = None
        metadata = self.metadata() | {"level": int(token.tag[1])}
        self.drafts.append(Draft("heading", start, end, text, metadata, inline.links))
        self.add_images(inline, start, end)

    def add_paragraph(self, token: Any, inline: InlineText) -> None:
        start, end = self.place(token)
        kind, metadata, text = "paragraph", self.metadata(), inline.text
        if self.item is not None and text:
            kind, metadata = "list_item", metadata | self.item
            self.item = None
            task = _TASK.match(text)
            if task:
                metadata["checked"] = task.group(1) != " "
                text = text[task.end() :]
        self.drafts.append(Draft(kind, start, end, text, metadata, inline.links))
        if not text:
            self.drafts.pop()
        self.add_images(inline, start, end)

    def add_images(self, inline: InlineText, start: int, end: int) -> None:
        """Inline tokens carry no offsets: an image's place is its own where the block's source shows as many images as tokens."""
        if not inline.images:
            return
        spans = image_spans(self.text[start:end])
        exact = len(spans) == len(inline.images)
        for image in inline.images:
            first, last = (start + spans[image.at][0], start + spans[image.at][1]) if exact else (start, end)
            metadata = self.metadata()
            href = image.href
            data = None
            if is_data_uri(href):
                href, data, about = read_data_uri(href)
                metadata |= about
            links = [Link(image.link, image.alt)] if image.link else []
            self.drafts.append(Draft("image", first, last, image.alt, metadata, links, href=href, data=data))

    def add_code(self, token: Any) -> None:
        start, end = self.place(token)
        found = _LANGUAGE.match(token.info.strip()) if token.info else None
        metadata = self.metadata() | {"language": found.group(1).lower() if found else ""}
        self.item = None
        self.drafts.append(Draft("code", start, end, token.content.removesuffix("\n"), metadata))

    def add_html(self, token: Any) -> None:
        """Outside of containers the source itself is walked, and places are exact; inside, every block has the place of the whole."""
        start, end = self.place(token)
        walk = HtmlWalk(self.request)
        exact = self.containers == 0
        walk.walk(self.text[start:end] if exact else token.content)
        for draft in walk.drafts:
            if exact:
                draft.start += start
                draft.end = min(end, draft.end + start)
            else:
                draft.start, draft.end = start, end
            draft.metadata = self.metadata() | draft.metadata
        self.drafts += walk.drafts
        self.left_out.characters += walk.left_out.characters

    def add_table(self, tokens: list[Any], at: int) -> int:
        """Returns the index of the token that closes the table."""
        table = tokens[at]
        start, end = self.place(table)
        draft = Draft("table", start, end, metadata=self.metadata(), rows=[])
        assert draft.rows is not None
        self.item = None
        self.drafts.append(draft)
        images: list[InlineText] = []
        while tokens[at].type != "table_close":
            token = tokens[at]
            if token.type == "tr_open":
                draft.rows.append([])
            elif token.type in ("th_open", "td_open"):
                inline = read_inline(tokens[at + 1].children or [])
                draft.rows[-1].append(make_cell(inline.text, header=token.type == "th_open"))
                draft.links += inline.links
                images.append(inline)
            at += 1
        merged = InlineText("")
        for inline in images:
            for image in inline.images:
                image.at = len(merged.images)
                merged.images.append(image)
        self.add_images(merged, start, end)
        return at
