"""Drafts of blocks in source order → the blocks, assets and head of a `ParsedFile`: the last step of every text parser.

The invariant: ordinals are contiguous, every block's locator is a code-point range of the decoded text with its lines, a heading's
section_path ends in itself, and a block below it begins with that path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from raydex.ir.document import Asset, Block, Document, Link
from raydex.ir.errors import LimitError
from raydex.ir.ids import asset_id, block_id, content_hash
from raydex.ir.locator import LineIndex, Locator
from raydex.ir.parsed import ParsedFile
from raydex.kernels.decode import Decoded, clean
from raydex.kernels.request import ParseRequest
from raydex.kernels.tables import Rows, clamp_spans, count_header_rows, table_text

# they can make text read otherwise than it stands: kept, but said
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")


@dataclass(slots=True)
class Draft:
    """A block before it has an ordinal. `start`, `end` are code points of the decoded text."""

    kind: str
    start: int
    end: int = 0
    text: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    rows: Rows | None = None
    href: str = ""


def check_count(drafts: list[Draft], request: ParseRequest) -> None:
    """Raises LimitError as soon as there are more drafts than `limits.blocks`, before memory goes into them."""
    if len(drafts) > request.limits.blocks:
        raise LimitError(
            f"more than {request.limits.blocks} blocks (limits.blocks)",
            reject_class="too_many_blocks",
            place=request.path,
            remedy="Split the file or raise limits.blocks",
        )


def finish(
    request: ParseRequest,
    decoded: Decoded,
    drafts: list[Draft],
    *,
    parser: str,
    parser_version: str,
    title: str = "",
    warnings: tuple[str, ...] = (),
    metadata: dict[str, Any] | None = None,
) -> ParsedFile:
    """The parsed file of a text document. Without a title the first level-1 heading is it, else the file's name (seed 3).

    Drafts that are neither text nor image are left out. Raises LimitError (too_many_blocks).
    """
    check_count(drafts, request)
    parsed = ParsedFile(request.record_id, request.content_hash, request.path, request.media_type)
    lines = LineIndex(decoded.text)
    size = len(decoded.text)
    sections: list[tuple[int, str]] = []
    path: list[str] = []
    tables = images = characters = 0
    for draft in drafts:
        if draft.rows is not None:
            clamp_spans(draft.rows)
            draft.text = table_text(draft.rows, draft.metadata.get("caption", ""))
            draft.metadata |= {"rows": draft.rows, "header_rows": count_header_rows(draft.rows)}
        text = clean(draft.text)
        image = draft.kind == "image"
        if not image and not text.strip():
            continue
        start, end = max(0, draft.start), min(max(draft.start, draft.end), size)
        first = lines.line_of(start)
        last = lines.line_of(end - 1) if end > start else first
        place: dict[str, Any] = {"char": (start, end), "line": (first, max(first, last))}
        if draft.rows is not None:
            tables += 1
            place["table"] = tables
        if image:
            images += 1
            place["image"] = images
        locator = Locator(**place)
        if draft.kind == "heading":
            level = draft.metadata["level"]
            while sections and sections[-1][0] >= level:
                sections.pop()
            sections.append((level, text))
            path = [name for _, name in sections]
            draft.metadata["excerpt_hash"] = content_hash(decoded.text[start:end].encode())
        ordinal = len(parsed.blocks)
        reference = None
        if image:
            asset = _asset(request, draft, locator, len(parsed.assets))
            parsed.assets.append(asset)
            reference = asset.asset_id
        parsed.blocks.append(
            Block(
                block_id(request.record_id, request.content_hash, ordinal),
                draft.kind,
                ordinal,
                text,
                locator,
                list(path),
                draft.links,
                reference,
                draft.metadata,
            )
        )
        characters += len(text)
    notes = [*decoded.warnings, *warnings]
    if not decoded.text.isascii() and _BIDI.search(decoded.text):
        notes.append("bidi_controls")
    parsed.document = Document(
        record_id=request.record_id,
        title=clean(title) or _first_heading(parsed.blocks) or request.path.rpartition("/")[2],
        media_type=request.media_type,
        parser=parser,
        parser_version=parser_version,
        encoding=decoded.encoding,
        block_count=len(parsed.blocks),
        char_count=characters,
        warnings=notes,
        metadata=metadata or {},
    )
    for note in notes:
        parsed.add_event("parse", "warning", note)
    return parsed


def _asset(request: ParseRequest, draft: Draft, locator: Locator, ordinal: int) -> Asset:
    return Asset(
        asset_id(request.record_id, request.content_hash, ordinal),
        ordinal,
        "image",
        locator,
        media_type=draft.metadata.pop("media_type", ""),
        href=draft.href,
        alt=clean(draft.text),
        width=draft.metadata.pop("width", None),
        height=draft.metadata.pop("height", None),
    )


def _first_heading(blocks: list[Block]) -> str:
    return next((block.text for block in blocks if block.kind == "heading" and block.metadata["level"] == 1), "")
