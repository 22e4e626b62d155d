"""Blocks of a document → sections → leaves and parents, and the tree of sections as nodes (seed 3 §1; contracts 29-31).

The invariant: the leaves' own ranges (`metadata.spans`: block ordinal, start, end) tile the text of all blocks in order; the text of an
image is what is known of it (`with_seen_text`). A parser's own messages (blocks of kind `error`) are no text of the document.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from raydex.ir.chunk import ChunkEdge, ChunkNode
from raydex.ir.document import Block
from raydex.ir.ids import content_hash, edge_id
from raydex.ir.locator import LineIndex, Locator
from raydex.kernels.chunk_cells import narrowed
from raydex.kernels.chunk_outline import Draft, Outline, Prefix, make_prefix, mark_end
from raydex.kernels.chunk_sections import Section, find_sections
from raydex.kernels.chunk_source import ChunkOptions, ChunkSource
from raydex.kernels.pack import Group, Part, pack, voice
from raydex.kernels.summary import derive_summary
from raydex.kernels.tokens import Tokenizer

# parts of a ticket that are no requirement, and what a chunk of one is
_FIELD_KINDS = {"comment": "comment", "changelog": "changelog", "worklog": "worklog", "remotelink": "link"}
_SAID = ("author", "created", "updated")


def chunk_structure(source: ChunkSource, options: ChunkOptions, tokenizer: Tokenizer) -> Outline:
    """Strategy `structure` for documents: a parent for the document and for each section, leaves of packed blocks."""
    blocks = text_blocks(source)
    sections = find_sections(source.record_id, blocks)
    whole = options.max_tokens - tokenizer.special_tokens
    drafts: list[Draft] = []
    for section in sections:
        leaves: list[Draft] = []
        prefix = make_prefix(source.title, section.path, options, tokenizer)
        for group in pack(blocks[section.start : section.own_end], whole - prefix.reserved, whole, options, tokenizer):
            leaf = _leaf(group, section, source, options, prefix)
            if any(part.end > part.start for part in group.parts):
                leaves.append(leaf)
        drafts.append(_parent(section, blocks, source, options))
        drafts[-1].children = leaves
    own = [list(draft.children) for draft in drafts]
    standing = [[draft, *leaves] for draft, leaves in zip(drafts, own, strict=True)]
    for at in range(1, len(sections)):
        above = drafts[sections[at].parent]
        above.children += own[at] if sections[at].rest else [drafts[at]]
        if sections[at].rest:
            standing[sections[at].parent] += own[at]
    outline = Outline([drafts[0]])
    if len(sections) == 1 and len(own[0]) == 1:
        outline.roots = own[0]
    if not any(own):
        outline.roots = []
    mark_end(outline.roots)
    add_graph(outline, source, sections, standing)
    return outline


def text_blocks(source: ChunkSource) -> list[Block]:
    """Blocks with text of the document; an image's text is all that is known of what it shows."""
    return [with_seen_text(block) if block.kind == "image" else block for block in source.blocks if block.kind != "error"]


def with_seen_text(block: Block) -> Block:
    """An image's alternative text, then the text that was read in it, then its caption, each once."""
    known = [block.text, *(str(block.metadata.get(name) or "") for name in ("ocr", "caption"))]
    shown = list(dict.fromkeys(text.strip() for text in known if text.strip()))
    return block if len(shown) < 2 and block.text.strip() else replace(block, text="\n".join(shown))


def add_graph(outline: Outline, source: ChunkSource, sections: list[Section], drafts: list[list[Draft]] | None) -> None:
    """Document and Section nodes and their CONTAINS edges. The document's node is the record itself and stands on no chunk."""
    outline.nodes.append((ChunkNode(source.record_id, source.title or source.file_name, ["Document"], "document"), []))
    for at, section in enumerate(sections):
        first = section.first
        if first is None or section.rest:
            continue
        level = {} if section.heading is None else {"heading_level": section.level}
        node = ChunkNode(section.node_id, section.path[-1], ["Section"], "section", [], level)
        outline.nodes.append((node, drafts[at] if drafts is not None else []))
        parent = sections[section.parent].node_id
        excerpt = _excerpt_hash(first, section.heading is not None)
        outline.edges.append(
            ChunkEdge(edge_id(parent, section.node_id, "CONTAINS"), parent, section.node_id, "CONTAINS", first.locator, excerpt)
        )


def _excerpt_hash(block: Block, is_heading: bool) -> str | None:
    """Of the source's own text at the block's place; None where only the source knows it: a block's text may lack its marks."""
    if is_heading and "excerpt_hash" in block.metadata:
        return str(block.metadata["excerpt_hash"])
    if not is_heading and (block.locator.char is not None or block.locator.line is not None):
        return None
    return content_hash(block.text.encode())


def _leaf(group: Group, section: Section, source: ChunkSource, options: ChunkOptions, prefix: Prefix) -> Draft:
    content = join_parts(group.parts)
    metadata = part_metadata(group.parts)
    if section.heading is not None:
        metadata["heading_level"] = section.level
    body = [part for part in group.parts if part.block.kind != "heading"]
    return Draft(
        "leaf",
        leaf_title(section, source),
        content,
        group_kind(group.parts),
        list(section.path),
        merge_locators(group.parts),
        group.reason,
        section.node_id,
        derive_summary(join_parts(body, with_repeats=False), options.summary_sentences),
        group.tokens,
        prefix,
        metadata,
    )


def _parent(section: Section, blocks: list[Block], source: ChunkSource, options: ChunkOptions) -> Draft:
    """Content is the whole section's text, at most `parent_chars` of it; metadata say where it was cut and how long it is."""
    inside = blocks[section.start : section.end]
    parts: list[Part] = []
    room = options.parent_chars
    for block in inside:
        parts.append(Part(block, 0, len(block.text), 0))
        room -= len(block.text) + 1
        if room <= 0:
            break
    content = join_parts(parts)
    metadata: dict[str, Any] = {} if section.heading is None else {"heading_level": section.level}
    if len(content) > options.parent_chars or len(parts) < len(inside):
        content = content[: options.parent_chars]
        metadata |= {"content_cut_at": len(content), "content_chars": sum(len(block.text) for block in inside)}
    places = [Part(block, 0, len(block.text), 0) for block in (inside[:1] + inside[-1:] if len(inside) > 1 else inside)]
    body = join_parts([part for part in parts if part.block.kind != "heading"][:8])
    return Draft(
        "parent",
        leaf_title(section, source) if section.first is not None else source.title or source.file_name,
        content,
        "document" if section.first is None else "section",
        list(section.path),
        merge_locators(places),
        "parent",
        section.node_id,
        derive_summary(body, options.summary_sentences),
        metadata=metadata,
    )


def leaf_title(section: Section, source: ChunkSource) -> str:
    """The heading; the file's name for a preface (seed 3 §1.1)."""
    return section.path[-1] if section.path else source.file_name


def join_parts(parts: list[Part], with_repeats: bool = True) -> str:
    """The text shown: list items on lines of their own, other blocks apart by a blank line."""
    shown: list[str] = []
    for at, part in enumerate(parts):
        if at:
            shown.append("\n" if part.block.kind == "list_item" == parts[at - 1].block.kind else "\n\n")
        shown.append(part.again + part.own if with_repeats and part.again else part.own)
    return "".join(shown)


def part_metadata(parts: list[Part]) -> dict[str, Any]:
    """`spans` (the leaf's own ranges of block text), `repeated_chars` (leading characters that belong to an earlier leaf), pages."""
    metadata: dict[str, Any] = {"spans": [[part.block.ordinal, part.start, part.end] for part in parts]}
    if parts[0].again:
        metadata["repeated_chars"] = len(parts[0].again)
    spoken = {voice(part.block) for part in parts if part.block.kind != "heading"}
    if len(spoken) == 1 and (comment := spoken.pop()) is not None:
        about = parts[-1].block.metadata
        metadata |= {"comment_id": comment, **{name: about[name] for name in _SAID if about.get(name)}}
    pages = [part.block.locator.page for part in parts if part.block.locator.page is not None]
    if pages:
        metadata |= {"page_start": min(pages), "page_end": max(pages)}
    return metadata


def group_kind(parts: list[Part]) -> str:
    """comment, changelog, worklog or link for what a ticket keeps beside its text; table, code, image or note for a leaf that holds nothing
    else but headings; else section."""
    body = [part.block for part in parts if part.block.kind != "heading"]
    fields = {"comment" if voice(block) is not None else _FIELD_KINDS.get(block.locator.field or "", "") for block in body}
    if len(fields) == 1 and (field := fields.pop()):
        return field
    kinds = {block.kind for block in body}
    return kinds.pop() if len(kinds) == 1 and kinds <= {"table", "code", "image", "note"} else "section"


def merge_locators(parts: list[Part]) -> list[Locator]:
    """Where the parts stand. Neighbours known by character range alone become one range; boxes stay apart, one a block.

    A part of a block whose text is the source's own text (equally long) has its exact range, overlap included.
    """
    places: list[Locator] = []
    run: list[Part] = []
    for part in parts:
        place = narrowed(part)
        if run and (not _is_range(place) or place.part != run[0].block.locator.part or place.member != run[0].block.locator.member):
            places.append(_cover(run))
            run = []
        if _is_range(place):
            run.append(part)
        else:
            places.append(place)
    if run:
        places.append(_cover(run))
    return places if len(places) == 1 else list(dict.fromkeys(places))


def _is_range(place: Locator) -> bool:
    return place.char is not None and place.page is None and place.sheet is None and place.pointer is None and place.slide is None


def _cover(run: list[Part]) -> Locator:
    """One locator over neighbours that stand in one text: the block's own where it is one whole block."""
    first = run[0].block.locator
    if len(run) == 1:
        char, line = _range(run[0])
        return first if char == first.char else replace(first, char=char, line=line, byte=None, row=None if run[0].start else first.row)
    ranges = [_range(part) for part in run]
    chars = [char for char, _ in ranges if char is not None]
    lines = [line for _, line in ranges if line is not None]
    return Locator(
        part=first.part,
        member=first.member,
        char=(min(start for start, _ in chars), max(end for _, end in chars)),
        line=(min(start for start, _ in lines), max(end for _, end in lines)) if len(lines) == len(ranges) else None,
    )


@lru_cache(maxsize=1)
def _line_index(text: str) -> LineIndex:
    """The lines of the block that is being cut: one long block has thousands of parts."""
    return LineIndex(text)


def _range(part: Part) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Character and line range of a part."""
    place, text = part.block.locator, part.block.text
    lead = len(part.again) if part.block.kind != "table" else 0
    start, end = part.start - lead, part.end
    if place.char is None or place.char[1] - place.char[0] != len(text) or (start == 0 and end == len(text)):
        return place.char, place.line
    line = None
    if place.line is not None:
        index = _line_index(text)
        line = (place.line[0] + index.line_of(start) - 1, place.line[0] + index.line_of(max(start, end - 1)) - 1)
    return (place.char[0] + start, place.char[0] + end), line
