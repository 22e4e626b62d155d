"""Drafts of blocks in source order → the blocks, assets and head of a `ParsedFile`: the last step of every text parser.

The invariant: ordinals are contiguous, every block's locator is a code-point range of the decoded text with its lines, a heading's
section_path ends in itself, and a block below it begins with that path.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from raydex.ir.document import Asset, Block, Document, Link
from raydex.ir.errors import LimitError
from raydex.ir.file_range import FileRange
from raydex.ir.ids import asset_id, block_ids, content_hash
from raydex.ir.locator import LineIndex, Locator, locator_of
from raydex.ir.parsed import ParsedFile
from raydex.kernels.decode import Decoded, clean, has_bidi_controls
from raydex.kernels.request import ParseRequest
from raydex.kernels.tables import Rows, clamp_spans, count_header_rows, table_text


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
    place: dict[str, Any] = field(default_factory=dict)  # further parts of the locator
    section: list[str] | None = None  # None: the headings above
    data: bytes | None = None  # of an image that the file holds itself


def check_count(drafts: list[Draft], request: ParseRequest) -> None:
    """Raises LimitError as soon as there are more drafts than `limits.blocks`, before memory goes into them."""
    if len(drafts) > request.limits.blocks and request.segment is None:
        raise LimitError(
            f"more than {request.limits.blocks} blocks (limits.blocks)",
            reject_class="too_many_blocks",
            place=request.path,
            remedy="Split the file or raise limits.blocks",
        )


def finish(
    request: ParseRequest,
    decoded: Decoded | None,
    drafts: list[Draft],
    *,
    parser: str,
    parser_version: str,
    title: str = "",
    warnings: tuple[str, ...] = (),
    metadata: dict[str, Any] | None = None,
) -> ParsedFile:
    """The parsed file of a document. Without a title the first level-1 heading is it, else the file's name (seed 3). Places in a segment
    count from the beginning of its file.

    Drafts that are neither text nor image are left out. `decoded` is the text that drafts stand in by `start` and `end`; None where a
    block's source has no characters of its own (a node of JSON, a paragraph of a package) and `place` alone says where it is. Raises
    LimitError (too_many_blocks).
    """
    check_count(drafts, request)
    parsed = ParsedFile(request.record_id, request.content_hash, request.path, request.media_type)
    source = decoded.text if decoded is not None else ""
    lines = LineIndex(source)
    size = len(source)
    identify = block_ids(request.record_id, request.content_hash)
    before = request.segment.place if request.segment is not None else FileRange(0, 0)
    sections: list[tuple[int, str]] = []
    path: list[str] = []
    tables = images = characters = broken = 0
    for draft in drafts:
        if draft.rows is not None:
            clamp_spans(draft.rows)
            draft.text = table_text(draft.rows, draft.metadata.get("caption", ""))
            draft.metadata |= {"rows": draft.rows, "header_rows": count_header_rows(draft.rows)}
        text = clean(draft.text)
        image = draft.kind == "image"
        if not image and not text.strip():
            continue
        place = draft.place
        excerpt = text
        if decoded is not None or image or draft.rows is not None:
            place = dict(place)
        if decoded is not None:
            start, end = max(0, draft.start), min(max(draft.start, draft.end), size)
            first = lines.line_of(start)
            last = lines.line_of(end - 1) if end > start else first
            place |= {
                "char": (start + before.char, end + before.char),
                "line": (first + before.line, max(first, last) + before.line),
            }
            excerpt = source[start:end]
        if draft.rows is not None:
            tables += 1
            place["table"] = tables
        if image:
            images += 1
            place["image"] = images
            broken += "broken" in draft.metadata
        locator = locator_of(place)
        if draft.kind == "heading":
            level = draft.metadata["level"]
            while sections and sections[-1][0] >= level:
                sections.pop()
            sections.append((level, text))
            path = [name for _, name in sections]
            draft.metadata.setdefault("excerpt_hash", content_hash(excerpt.encode()))
        ordinal = len(parsed.blocks)
        reference = None
        if image:
            asset = _asset(request, draft, locator, len(parsed.assets))
            parsed.assets.append(asset)
            if draft.data is not None:
                parsed.blobs[asset.asset_id] = draft.data
            reference = asset.asset_id
        parsed.blocks.append(
            Block(
                identify(ordinal),
                draft.kind,
                ordinal,
                text,
                locator,
                list(path if draft.section is None else draft.section),
                draft.links,
                reference,
                draft.metadata,
            )
        )
        characters += len(text)
    notes = [*(decoded.warnings if decoded is not None else ()), *warnings]
    if has_bidi_controls(source) or (decoded is None and any(has_bidi_controls(block.text) for block in parsed.blocks)):
        notes.append("bidi_controls")
    if broken:
        notes.append("broken_image")
    parsed.document = Document(
        record_id=request.record_id,
        title=clean(title) or _first_heading(parsed.blocks) or _file_title(request),
        media_type=request.media_type,
        parser=parser,
        parser_version=parser_version,
        encoding=decoded.encoding if decoded is not None else "",
        block_count=len(parsed.blocks),
        char_count=characters,
        warnings=notes,
        metadata=metadata or {},
    )
    for note in notes:
        parsed.add_event("parse", "warning", note)
    return parsed


def say_if_empty(
    parsed: ParsedFile, has_content: bool, why: str = "the page has content, but none of it is text, a table or an image"
) -> None:
    """A page in which something stands, but nothing that became a block, says so."""
    if has_content and not parsed.blocks and parsed.document is not None:
        parsed.document.warnings.append("no_semantic_blocks")
        parsed.add_event("parse", "warning", "no_semantic_blocks", why)


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


def _file_title(request: ParseRequest) -> str:
    """The file's name; of a segment that of its file, and which one it is."""
    folder, _, name = request.path.rpartition("/")
    return name if request.segment is None else f"{folder.rpartition('/')[2].removesuffix('!')} {name}"


def _first_heading(blocks: list[Block]) -> str:
    return next((block.text for block in blocks if block.kind == "heading" and block.metadata["level"] == 1), "")
