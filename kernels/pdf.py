"""PDF with native text → DocumentIR: blocks with page and box, pages with the state of their text.

Reading (`pdf_file`) and structuring are two steps with plain data between them: a range parse keeps its raw pages beside its blocks, and
`merge_ranges` structures the raw pages of all ranges together. The invariant: one whole parse and any fan-out give equal results, since
both structure the same raw pages. A page without usable text is `unavailable` and says why; it never looks like an empty success.
"""

from __future__ import annotations

from itertools import chain, takewhile
from pathlib import PurePosixPath
from typing import Any

from raydex.ir.document import Asset, Block, Document, Link, Page
from raydex.ir.errors import InputError
from raydex.ir.ids import asset_id, block_ids, page_id
from raydex.ir.locator import Locator, page_box
from raydex.ir.parsed import ParsedFile
from raydex.kernels import pdf_raw
from raydex.kernels.limits import Limits
from raydex.kernels.parse import check_limits
from raydex.kernels.pdf_file import open_pdf, read_part
from raydex.kernels.pdf_furniture import find_furniture
from raydex.kernels.pdf_grids import lines_with_tables
from raydex.kernels.pdf_layout import order_lines, read_lines
from raydex.kernels.pdf_objects import pictures_of
from raydex.kernels.pdf_raw import HIDDEN, Part, failed_page
from raydex.kernels.pdf_structure import Paragraph, body_type, nest_items, paragraphs_of, rank_headings, set_text, title_key
from raydex.kernels.pdf_tables import find_tables, table_metadata
from raydex.kernels.pdf_text import Vocabulary, plain
from raydex.kernels.request import ParseRequest

PARSER = "raydex.pdf"
PARSER_VERSION = "6"
PART_KEY = "pdf_part"
MAX_OUTLINE_ROWS = 2_000


def parse_pdf(request: ParseRequest) -> ParsedFile:
    """IR of a PDF, or of the page range `request.pages`; a range also keeps its raw part in `document.metadata["pdf_part"]`.

    Raises InputError: invalid_input, encrypted, no_pages, too_many_pages or text_too_long.
    """
    part = read_part(request)
    parsed = _structure(request, part)
    if request.pages is not None and parsed.document is not None:
        parsed.document.metadata[PART_KEY] = part
    return parsed


def merge_ranges(request: ParseRequest, parts: list[ParsedFile]) -> ParsedFile:
    """Range parses of one file → what a whole parse gives. `request.data` is not read; the parts may come in any order.

    Pages that no part holds (their range was rejected) become failed pages, and the rejects and events of such a range are kept.
    Raises InputError when no part holds a document, two parts disagree about the file, or the whole breaks a limit.
    """
    raw = [part.document.metadata[PART_KEY] for part in parts if part.document is not None and PART_KEY in part.document.metadata]
    if not raw:
        rejects = list(chain.from_iterable(part.rejects for part in parts))
        reason = rejects[0].error if rejects else "no range was parsed"
        raise InputError(reason, reject_class=rejects[0].reject_class if rejects else "invalid_input")
    raw.sort(key=_first_page)
    count = raw[0]["page_count"]
    if any(part["page_count"] != count for part in raw):
        raise InputError("the ranges are of different files", reject_class="changed_while_read")
    found = {page["number"]: page for part in raw for page in part["pages"]}
    pages = [found.get(number) or failed_page(number, "the range of this page was not parsed") for number in range(1, count + 1)]
    merged = _structure(request, {**raw[0], "first": 1, "last": count, "pages": pages})
    for part in parts:
        if part.document is None:
            merged.rejects += part.rejects
            for event in part.events:
                merged.add_event(event.stage, event.status, event.name, event.message, event.ms)
    check_limits(merged, request)
    return merged


def count_pages(data: bytes, limits: Limits) -> int:
    """Pages of a PDF, without reading them. Raises InputError: invalid_input, encrypted, no_pages or too_many_pages."""
    with open_pdf(data, limits) as (_, count):
        return count


def read_head(request: ParseRequest) -> ParsedFile:
    """Only the number of pages (`document.page_count`): what decides whether a file is fanned out. Raises what `count_pages` raises."""
    parsed = ParsedFile(request.record_id, request.content_hash, request.path, request.media_type)
    count = count_pages(request.data, request.limits)
    parsed.document = Document(request.record_id, "", request.media_type, "pdf", PARSER_VERSION, page_count=count)
    return parsed


def _first_page(part: Part) -> int:
    return int(part["first"])


def _structure(request: ParseRequest, part: Part) -> ParsedFile:
    pages = part["pages"]
    outline = _outline_by_page(part)
    skipped = find_furniture(pages, outline)
    pictures, repeated = pictures_of(pages)
    vocabulary = Vocabulary(text for page in pages for text in page["text"])
    lines = [
        order_lines(lines_with_tables(read_lines(page, skip), page["rules"], vocabulary), images, page["width"])
        for page, skip, images in zip(pages, skipped, pictures, strict=True)
    ]
    body = body_type(lines)
    paragraphs: list[list[Paragraph]] = []
    for page_lines, titles in zip(lines, outline, strict=True):
        found = paragraphs_of(page_lines, set(titles), body)
        paragraphs.append(found)
    find_tables(paragraphs)
    for found in paragraphs:
        for paragraph in found:
            set_text(paragraph, vocabulary)
    rank_headings(paragraphs, outline, body)
    parsed = ParsedFile(request.record_id, request.content_hash, request.path, request.media_type)
    builder = _Blocks(request, parsed)
    for page, found, images in zip(pages, paragraphs, pictures, strict=True):
        nest_items(found)
        builder.add_page(page, found, images)
    parsed.document = _document(request, part, parsed, sum(len(skip) for skip in skipped))
    if repeated:
        parsed.document.metadata["furniture_images"] = repeated
    _add_events(part, parsed)
    return parsed


def _outline_by_page(part: Part) -> list[dict[str, tuple[str, int]]]:
    """Per page of the part: title key → (title, level from 1)."""
    out: list[dict[str, tuple[str, int]]] = [{} for _ in part["pages"]]
    for title, page, level in part["outline"]:
        at = page - part["first"]
        key = title_key(title)
        if key and 0 <= at < len(out):
            out[at].setdefault(key, (title, min(level + 1, 6)))
    return out


class _Blocks:
    """Appends blocks in order and keeps the headings that are open."""

    def __init__(self, request: ParseRequest, parsed: ParsedFile) -> None:
        self.request = request
        self.parsed = parsed
        self.identify = block_ids(request.record_id, request.content_hash)
        self.open: list[tuple[int, str]] = []

    def add_page(self, page: pdf_raw.Page, paragraphs: list[Paragraph], images: list[list[float]]) -> None:
        number = page["number"]
        links = _links_by_paragraph(page, paragraphs)
        if page["error"]:
            whole = (0.0, 0.0, page["width"], page["height"])
            locator = Locator(page=number, bbox=whole if page["width"] else None)
            self._add("error", page["error"], locator, [], {"state": "page_failed"})
        places = _places_of(images, paragraphs) if images else {}
        for at, paragraph in enumerate(paragraphs):
            for image in places.get(at, ()):
                self._add_image(number, image)
            if not paragraph.text.strip():
                continue
            metadata = dict(paragraph.metadata)
            if paragraph.raw:
                metadata["raw"] = paragraph.raw
            if all(line.style & HIDDEN for line in paragraph.lines):
                metadata["invisible"] = True
            if paragraph.kind == "heading":
                metadata["level"] = paragraph.level
                if paragraph.outline and paragraph.outline != paragraph.text:
                    metadata["outline_title"] = paragraph.outline
                while self.open and self.open[-1][0] >= paragraph.level:
                    self.open.pop()
            elif paragraph.kind == "list_item":
                metadata.update(level=paragraph.level, ordered=paragraph.ordered)
                if paragraph.ordered:
                    metadata["number"] = paragraph.marker
            elif paragraph.kind == "code":
                metadata["language"] = ""
            locator = page_box(number, *paragraph.box)
            if paragraph.kind == "table":
                metadata |= table_metadata(paragraph.table)
                locator = Locator(page=number, bbox=locator.bbox, table=paragraph.table.table)
            self._add(paragraph.kind, paragraph.text, locator, links.get(at, []), metadata)
            if paragraph.kind == "heading":
                self.open.append((paragraph.level, paragraph.text))
        for image in places.get(len(paragraphs), ()):
            self._add_image(number, image)
        for kind, name, text, *box in page["marks"]:
            field = kind == "field"
            about = {"form_field": name} if field else {"author": name} if name else {}
            shown = f"{name}: {text}" if field and name else text
            self._add("paragraph" if field else "note", shown, page_box(number, *box), [], about)
        self.parsed.pages.append(
            Page(
                page_id(self.request.record_id, self.request.content_hash, number),
                number,
                page["width"],
                page["height"],
                page["rotation"],
                page["state"],
                page["chars"],
                page["label"],
                list(page["warnings"]),
            )
        )

    def _add_image(self, number: int, image: list[float]) -> None:
        """An image of the file, by its place: its bytes stay in the file."""
        assets = self.parsed.assets
        ordinal = len(assets)
        x0, y0, x1, y1, width, height = image
        locator = Locator(page=number, bbox=(x0, y0, x1, y1), image=ordinal + 1)
        identity = asset_id(self.request.record_id, self.request.content_hash, ordinal)
        assets.append(Asset(identity, ordinal, "image", locator, width=int(width) or None, height=int(height) or None))
        self._add("image", "", locator, [], {}, identity)

    def _add(
        self, kind: str, text: str, locator: Locator, links: list[Link], metadata: dict[str, Any], reference: str | None = None
    ) -> None:
        blocks = self.parsed.blocks
        ordinal = len(blocks)
        path = [title for _, title in self.open]
        blocks.append(Block(self.identify(ordinal), kind, ordinal, text, locator, path, links, reference, metadata))


def _places_of(images: list[list[float]], paragraphs: list[Paragraph]) -> dict[int, list[list[float]]]:
    """Position among the paragraphs → the images before it: each behind the last paragraph that ends above it in its own column, else
    before the first below."""
    boxes = [paragraph.box for paragraph in paragraphs]
    out: dict[int, list[list[float]]] = {}
    for image in images:
        beside = [at for at, box in enumerate(boxes) if box[0] < image[2] and box[2] > image[0]]
        above = [at for at in beside if boxes[at][3] <= image[1] + 2.0]
        below = [at for at in beside if boxes[at][1] >= image[3] - 2.0]
        place = above[-1] + 1 if above else below[0] if below else len(boxes)
        out.setdefault(place, []).append(image)
    return out


def _links_by_paragraph(page: pdf_raw.Page, paragraphs: list[Paragraph]) -> dict[int, list[Link]]:
    """Each link goes to the paragraph that its area covers most."""
    out: dict[int, list[Link]] = {}
    if not page["links"] or not paragraphs:
        return out
    boxes = [paragraph.box for paragraph in paragraphs]
    for href, text, left, top, right, bottom in page["links"]:
        covered = [max(0.0, min(right, box[2]) - max(left, box[0])) * max(0.0, min(bottom, box[3]) - max(top, box[1])) for box in boxes]
        best = max(range(len(boxes)), key=covered.__getitem__)
        if covered[best] > 0:
            out.setdefault(best, []).append(Link(href, plain(text)))
    return out


def _document(request: ParseRequest, part: Part, parsed: ParsedFile, furniture: int) -> Document:
    states = {page.text_state for page in parsed.pages}
    warnings = list(dict.fromkeys(warning for page in parsed.pages for warning in page.warnings if warning != "blank_page"))
    if not parsed.blocks and states == {"native"}:
        warnings.append("no_semantic_blocks")
    metadata: dict[str, Any] = {"info": part["info"], "furniture_segments": furniture}
    if part["language"]:
        metadata["language"] = part["language"]
    if part["outline"]:
        metadata["outline"] = [{"title": title, "page": page, "level": level} for title, page, level in part["outline"][:MAX_OUTLINE_ROWS]]
    if part["encrypted"]:
        metadata["encrypted"] = "opened with the empty user password"
    return Document(
        request.record_id,
        _title(request, part, parsed),
        request.media_type,
        PARSER,
        PARSER_VERSION,
        page_count=part["page_count"],
        block_count=len(parsed.blocks),
        char_count=sum(len(block.text) for block in parsed.blocks),
        text_state=states.pop() if len(states) == 1 else "mixed",
        warnings=warnings,
        metadata=metadata,
    )


def _title(request: ParseRequest, part: Part, parsed: ParsedFile) -> str:
    """The title in the document information unless it is a stand-in, else the highest of the headings that open the text (or of all), else
    the file's stem."""
    given = str(part["info"].get("Title", ""))
    stand_in = given.strip("()").lower() in ("", "untitled", "anonymous", "unspecified") or given.lower().startswith("microsoft word - ")
    if not stand_in:
        return given
    opening = list(takewhile(_is_heading, parsed.blocks))
    headings = opening or [block for block in parsed.blocks if _is_heading(block)]
    if headings:
        return min(headings, key=lambda block: (block.metadata["level"], block.ordinal)).text
    return PurePosixPath(request.path).stem


def _is_heading(block: Block) -> bool:
    return block.kind == "heading"


def _add_events(part: Part, parsed: ParsedFile) -> None:
    """One event for each reason why pages lack text, with the numbers of its pages."""
    reasons: dict[str, list[int]] = {}
    for page in parsed.pages:
        for warning in page.warnings:
            reasons.setdefault(warning, []).append(page.number)
    for reason, numbers in reasons.items():
        status = "error" if reason == "page_failed" else "ok" if reason == "blank_page" else "warning"
        shown = ", ".join(str(number) for number in numbers[:20]) + (" …" if len(numbers) > 20 else "")
        about = f"{sum(page['hidden'] for page in part['pages'])} characters on " if reason == "hidden_text" else ""
        parsed.add_event("parse", status, reason, f"{about}pages {shown}")
    if parsed.pages and all(page.text_state == "unavailable" for page in parsed.pages):
        parsed.add_event("parse", "warning", "pdf_unavailable", "no page has usable text")
    if part["attachments"]:
        names = ", ".join(part["attachments"][:10]) + (" …" if len(part["attachments"]) > 10 else "")
        parsed.add_event("parse", "warning", "attachments_left_out", f"{len(part['attachments'])} attached files are not read: {names}")
    if part["encrypted"]:
        parsed.add_event("parse", "ok", "opened_with_empty_password")
