"""DocumentIR (seed 1): a document is an ordered list of blocks, each with a place in its source.

The invariant, enforced by `check_document`: ordinals run 0, 1, 2 … without a gap, kinds are known, and every block has a locator.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from raydex.ir.errors import InputError
from raydex.ir.kinds import BLOCK_KINDS, TEXT_STATES
from raydex.ir.locator import Locator

SCHEMA_NAME = "raydex.document"
SCHEMA_VERSION = "1.0"


@dataclass(slots=True)
class Link:
    """A reference as written: nothing is fetched."""

    href: str
    text: str = ""


@dataclass(slots=True)
class Block:
    """One block. `text` is what a reader sees; tables and images put their structure in `metadata`.

    Table metadata: `rows` (list of rows, each a list of cells {text, row_span, col_span, header}), `header_rows` (count).
    A cell of a sheet may also have `formula`, with `computed` false where its text is the formula for want of a result; blocks that go on
    with a tall table have `continued` and `header` (texts of its header rows).
    Heading metadata: `level` (1-6), `excerpt_hash` (hash of the source's own text at the locator, where it can be sliced).
    Code metadata: `language`. List item metadata: `level` (0-based depth), `ordered`, `number`.
    """

    block_id: str
    kind: str
    ordinal: int
    text: str
    locator: Locator
    section_path: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    asset_ref: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Page:
    """A page: size in points of the upright page, and how its text was had."""

    page_id: str
    number: int
    width: float
    height: float
    rotation: int = 0
    text_state: str = "native"
    char_count: int = 0
    label: str = ""
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Asset:
    """An image or other binary part. `cas_uri` is empty for one that is only referred to."""

    asset_id: str
    ordinal: int
    kind: str
    locator: Locator
    media_type: str = ""
    href: str = ""
    alt: str = ""
    cas_uri: str = ""
    width: int | None = None
    height: int | None = None


@dataclass(slots=True)
class Observation:
    """What a model saw in an asset or page: OCR and caption are kept apart (seed 1)."""

    observation_id: str
    asset_id: str
    kind: str
    status: str
    locator: Locator
    text: str = ""
    confidence: float | None = None
    engine: str = ""
    engine_version: str = ""


@dataclass(slots=True)
class Document:
    """The head of a document; its blocks, pages and assets are rows of their own."""

    record_id: str
    title: str
    media_type: str
    parser: str
    parser_version: str
    encoding: str = ""
    language: str = ""
    page_count: int = 0
    block_count: int = 0
    char_count: int = 0
    text_state: str = "native"
    warnings: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    schema_name: str = SCHEMA_NAME
    schema_version: str = SCHEMA_VERSION


def check_document(document: Document, blocks: list[Block], pages: list[Page]) -> None:
    """Raises InputError (class `internal`) when the contract of DocumentIR does not hold."""
    for at, block in enumerate(blocks):
        if block.ordinal != at:
            raise InputError(f"block {at} has ordinal {block.ordinal}", reject_class="internal", place=document.record_id)
        if block.kind not in BLOCK_KINDS:
            raise InputError(f"block {at} has the unknown kind {block.kind!r}", reject_class="internal", place=document.record_id)
    for page in pages:
        if page.text_state not in TEXT_STATES:
            message = f"page {page.number} has the unknown state {page.text_state!r}"
            raise InputError(message, reject_class="internal", place=document.record_id)
