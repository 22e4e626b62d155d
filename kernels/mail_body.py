"""A mail's body, plain or HTML → drafts: quoted text and signatures are blocks that say so (metadata `quote`, `quote_level`, `signature`).

The invariant: a draft's place is the number of the part and the characters of the part's decoded text; quote marks are left out of the
text, every other visible word is in exactly one draft.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any

from raydex.ir.ids import content_hash
from raydex.kernels.drafts import Draft, check_count
from raydex.kernels.html_furniture import LeftOut
from raydex.kernels.html_rules import VOID
from raydex.kernels.html_scan import END, START, parse_attributes, scan_html
from raydex.kernels.html_walk import HtmlWalk
from raydex.kernels.mail_quotes import ATTRIBUTION, DIVIDER, MARKS, Span, armour_spans, quoted_spans, signature_spans
from raydex.kernels.request import ParseRequest

_LINE = re.compile(r"[^\r\n]+")
_BREAK = re.compile(r"\r\n|\r|\n")
_MAY_MARK = re.compile(r"blockquote|quot|signature|cite-prefix|RplyFwd|forward|reference-message|MessageHeader|border-top", re.IGNORECASE)
_QUOTES = re.compile(
    r"gmail_quote|yahoo_quoted|protonmail_quote|tutanota_quote|moz-cite-prefix|mail-editor-reference-message|ms-outlook-mobile-reference-message"
    r"|isForwardContent|replyForwardMsg|zmail_extra"
)
# the mark stands at the head of what it quotes, which is not inside it
_QUOTES_REST = re.compile(r"divRplyFwdMsg|OutlookMessageHeader|appendonsend")
_WORD_RULE = re.compile(r"border-top\s*:\s*solid\s+#(?:E1E1E1|B5C4DF)", re.IGNORECASE)
_SIGNED = re.compile(
    r"gmail_signature|moz-signature|AppleMailSignature|ms-outlook-mobile-signature|protonmail_signature|^Signature$|tutanota_sig"
)
_INDENT = re.compile(r"border\s*:\s*none", re.IGNORECASE)


class Spans:
    """Ranges of a text, asked by offset in growing order of their starts; they may nest."""

    def __init__(self, spans: list[Span]) -> None:
        edges = sorted([(low, 1) for low, high in spans if high > low] + [(high, -1) for low, high in spans if high > low])
        self.at = [at for at, _ in edges]
        self.depth: list[int] = []
        depth = 0
        for _, step in edges:
            depth += step
            self.depth.append(depth)

    def level(self, at: int) -> int:
        index = bisect_right(self.at, at) - 1
        return self.depth[index] if index >= 0 else 0


def plain_drafts(request: ParseRequest, text: str, part: str, *, flowed: bool = False, drop_space: bool = False) -> list[Draft]:
    """Paragraphs between empty lines, changes of the quote level and the edges of a signature."""
    armour, _ = armour_spans(text)
    quoted = quoted_spans(text)
    hidden, quotes, signed = Spans(armour), Spans(quoted), Spans(signature_spans(text, quoted))
    out: list[Draft] = []
    lines: list[str] = []
    start = end = 0
    key: tuple[int, bool, bool] | None = None
    joins = False

    def flush() -> None:
        shown = "\n".join(lines).strip("\n")
        if shown.strip() and key is not None:
            out.append(Draft("paragraph", 0, 0, shown.strip(), marks(key[0], key[1]), place={"part": part, "char": (start, end)}))
            check_count(out, request)
        lines.clear()

    for found in _LINE.finditer(text):
        line = found[0].rstrip(" \t") if not flowed else found[0]
        marked = MARKS.match(line)
        level = marked[0].count(">") if marked is not None else 0
        shown = line[marked.end() :] if marked is not None else line
        if flowed or marked is not None:
            shown = shown.removeprefix(" ")
        around = quotes.level(found.start())
        now = (level + around, signed.level(found.start()) > 0 and level == 0, around > 0)
        if not shown.strip() or hidden.level(found.start()):
            flush()
            key = None
            continue
        if now != key or _has_gap(text, end, found.start()):
            flush()
            key, joins = now, False
            start = found.start() + len(found[0]) - len(found[0].lstrip())
        end = found.start() + len(found[0].rstrip())
        if joins:
            lines[-1] += shown.rstrip() if drop_space else f" {shown.rstrip()}"
        else:
            lines.append(shown.rstrip())
        joins = flowed and shown.endswith(" ") and shown != "-- "
    flush()
    return out


def _has_gap(text: str, low: int, high: int) -> bool:
    """Whether an empty line stands between two lines with text."""
    return high - low > 1 and len(_BREAK.findall(text, low, high)) > 1


def marks(level: int, signed: bool) -> dict[str, Any]:
    about: dict[str, Any] = {"quote": True, "quote_level": level} if level else {}
    return about | {"signature": True} if signed else about


def html_drafts(request: ParseRequest, text: str, part: str, left_out: LeftOut) -> list[Draft]:
    """The walk over an HTML page; headings stand below the subject, and what is not shown adds to `left_out`. Raises LimitError
    (too_many_blocks)."""
    walk = HtmlWalk(request)
    walk.walk(text)
    left_out.characters += walk.left_out.characters
    quoted, signed = _html_spans(text) if _MAY_MARK.search(text) else ([], [])
    rest = _rest_quoted(walk.drafts, text)
    quotes, signatures = Spans([*quoted, *rest]), Spans(signed)
    signing = False
    for at, draft in enumerate(walk.drafts):
        level = quotes.level(draft.start)
        following = walk.drafts[at + 1] if at + 1 < len(walk.drafts) else None
        if not level and following is not None and quotes.level(following.start) and ATTRIBUTION.fullmatch(draft.text):
            level = 1
        signing = not level and (signing or draft.text.strip() == "--" or draft.text.startswith("-- \n"))
        draft.metadata.pop("quote", None)  # many programs indent by it
        draft.metadata |= marks(level, signing or (signatures.level(draft.start) > 0 and not level))
        end = max(draft.start, draft.end)
        if draft.kind == "heading":
            draft.metadata["level"] = min(draft.metadata["level"] + 1, 6)
            draft.metadata["excerpt_hash"] = content_hash(text[draft.start : end].encode())
        draft.place = {"part": part, "char": (draft.start, end), **draft.place}
    return walk.drafts


def _rest_quoted(drafts: list[Draft], text: str) -> list[Span]:
    """From the first block that reads like the head of another mail to the end."""
    for at, draft in enumerate(drafts):
        lines = draft.text if draft.kind in ("paragraph", "heading") else ""
        if lines.count("\n") < 2:
            # programs write a paragraph a line
            lines = "\n".join([lines, *(d.text for d in drafts[at + 1 : at + 3])])
        if DIVIDER.match(lines[:2000]):
            return [(draft.start, len(text) + 1)]
    return []


def _html_spans(text: str) -> tuple[list[Span], list[Span]]:
    """Quoted and signature elements: their ranges in the source."""
    quoted: list[Span] = []
    signed: list[Span] = []
    open_marks: list[tuple[str, int, list[Span], list[int]]] = []
    end_of_text = len(text) + 1
    for _, _, kind, name, attributes, start, end in scan_html(text):
        if kind == START and name not in VOID:
            target = _mark(name, attributes, quoted, signed)
            if target is not None and attributes and _rests(attributes):
                quoted.append((start, end_of_text))
            elif target is not None:
                open_marks.append((name, start, target, [0]))
            elif open_marks and open_marks[-1][0] == name:
                open_marks[-1][3][0] += 1
        elif kind == END and open_marks and open_marks[-1][0] == name:
            _, since, target, count = open_marks[-1]
            count[0] -= 1
            if count[0] < 0:
                open_marks.pop()
                target.append((since, end))
    for _, since, target, _ in open_marks:
        target.append((since, end_of_text))
    return quoted, signed


def _mark(name: str, attributes: str, quoted: list[Span], signed: list[Span]) -> list[Span] | None:
    if name == "blockquote":
        return None if _INDENT.search(attributes) else quoted
    if not attributes or _MAY_MARK.search(attributes) is None:
        return None
    values = parse_attributes(attributes)
    names = f"{values.get('class', '')} {values.get('id', '')}".strip()
    if _QUOTES.search(names) or _rests(attributes):
        return quoted
    return signed if _SIGNED.search(names) or "data-smartmail" in values else None


def _rests(attributes: str) -> bool:
    return _QUOTES_REST.search(attributes) is not None or _WORD_RULE.search(attributes) is not None
