"""Blocks of a document → its sections, by headings and by the paths that the blocks themselves have, and the tree of them as nodes.

A section begins at a heading, or where a block's section_path leaves that of the section before it though no heading says so: an untitled
slide behind a titled one, a sheet without a heading. The invariant: the sections' own ranges tile the list of blocks in order.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from raydex.ir.document import Block
from raydex.ir.ids import make_id

UNDER_ALL = 99  # the level of a section without a heading: no heading lies under it


@dataclass(slots=True)
class Section:
    """What stands under a heading, as ranges of the list of blocks: `start` to `own_end` its own, `start` to `end` with its subsections.

    The first section of a document has no heading: it holds the preface, and `end` is the document's. `first` is the block that begins any
    other, its heading where it has one. `own_path` is the section_path that
    its blocks have. A section that is a `rest` goes on with its parent behind a subsection, and is no node of its own.
    """

    heading: Block | None
    first: Block | None
    level: int
    path: list[str]
    node_id: str
    parent: int
    start: int
    own_path: list[str]
    own_end: int = 0
    end: int = 0
    rest: bool = False


def find_sections(record: str, blocks: list[Block]) -> list[Section]:
    """Sections in order, the first one without a heading. A heading lies under the section whose blocks' path leads to its own, or, where
    blocks have no paths, under the nearest one before it of a lower level."""
    walk = _Walk(record)
    for at, block in enumerate(blocks):
        if block.kind == "heading" and block.text.strip():
            walk.begin(at, block)
        elif block.section_path != walk.last and not _leads(walk.top.own_path, block.section_path):
            walk.leave(at, block)
        walk.last = block.section_path
    walk.sections[-1].own_end = len(blocks)
    for at in walk.stack:
        walk.sections[at].end = len(blocks)
    return walk.sections


def _leads(outer: list[str], inner: list[str]) -> bool:
    return inner[: len(outer)] == outer


class _Walk:
    def __init__(self, record: str) -> None:
        self.record = record
        self.sections = [Section(None, None, 0, [], record, -1, 0, [])]
        self.stack = [0]
        self.seen: dict[str, int] = {}
        self.last: list[str] | None = None

    @property
    def top(self) -> Section:
        return self.sections[self.stack[-1]]

    def begin(self, at: int, block: Block) -> None:
        """A section at a heading."""
        text = block.text.strip()
        level = block.metadata.get("level") or max(1, len(block.section_path))
        above = block.section_path[:-1]
        placed = bool(block.section_path) and block.section_path[-1].strip() == text
        while len(self.stack) > 1 and (self.top.rest or (not _leads(self.top.own_path, above) if placed else self.top.level >= level)):
            self._close(at)
        between = above[len(self.top.own_path) :] if placed else []
        self._open(at, block, block, level, [*self.top.path, *between, text], block.section_path)

    def leave(self, at: int, block: Block) -> None:
        """A section without a heading, under the one that the block still lies in."""
        while len(self.stack) > 1 and not _leads(self.top.own_path, block.section_path):
            self._close(at)
        below = block.section_path[len(self.top.own_path) :]
        self._open(at, None, block, UNDER_ALL, [*self.top.path, *below], block.section_path, rest=not below)

    def _close(self, at: int) -> None:
        self.sections[self.stack.pop()].end = at

    def _open(
        self, at: int, heading: Block | None, first: Block, level: int, path: list[str], own_path: list[str], rest: bool = False
    ) -> None:
        self.sections[-1].own_end = at
        parent = self.stack[-1]
        node = self.sections[parent].node_id if rest else self._node(path)
        self.sections.append(Section(heading, first, level, path, node, parent, at, own_path, rest=rest))
        self.stack.append(len(self.sections) - 1)

    def _node(self, path: list[str]) -> str:
        key = orjson.dumps(path).decode()
        occurrence = self.seen.get(key, 0)
        self.seen[key] = occurrence + 1
        return make_id("nod", self.record, "section", key, str(occurrence))
