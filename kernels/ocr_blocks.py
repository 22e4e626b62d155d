"""Images that need OCR of a parsed file, and what was read in them → its blocks, observations and text states.

`numbers_to_read` tells which pages or frames an OCR and a layout engine have to read (`pixels` gives them), in batches over as many files
as one likes; `add_ocr` puts the result into the parsed file, `observe_asset` that of an image inside it. The invariant: ordinals stay
contiguous, blocks of a page stand behind those that it had, the text seen and its confidence are kept as an observation beside them. What
was not read has an observation that says so, `failed` or `unavailable`: nothing looks read that was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from raydex.ir.document import Asset, Block, Observation, Page
from raydex.ir.errors import LimitError
from raydex.ir.ids import asset_id, block_ids, make_id
from raydex.ir.locator import Locator
from raydex.ir.parsed import ParsedFile
from raydex.kernels.decode import clean
from raydex.kernels.layout import Region
from raydex.kernels.limits import Limits
from raydex.kernels.ocr import CONFIDENT, Box, OcrEngine, OcrPage
from raydex.kernels.page_text import TextBlock
from raydex.kernels.picture import FORMATS
from raydex.kernels.reading_order import PageText, order_page, rank_headings
from raydex.kernels.tables import count_header_rows, table_text

# why a page of a PDF has no text that can be used
UNREAD = frozenset(("no_text_layer", "garbled_text", "scan_with_stamp"))


@dataclass(frozen=True, slots=True)
class Place:
    """`page` None: a file of one image. `scale`: units of a locator's box per pixel. `error`: there are no pixels, and why."""

    page: int | None = None
    scale: tuple[float, float] = (1.0, 1.0)
    error: str = ""

    def box(self, box: Box) -> Box:
        x, y = self.scale
        return box[0] * x, box[1] * y, box[2] * x, box[3] * y


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of an image file behind its first, kept as an image of its own at `uri`. Sizes are in pixels."""

    number: int
    width: int
    height: int
    uri: str
    media_type: str


@dataclass(frozen=True, slots=True)
class Reading:
    place: Place
    ocr: OcrPage
    regions: Sequence[Region] = ()


def numbers_to_read(parsed: ParsedFile) -> list[int | None]:
    """Pages of a PDF without usable text, frames of an image file (None: its only one); empty where there is nothing to read."""
    if parsed.media_type == "application/pdf":
        return [page.number for page in parsed.pages if needs_ocr(page)]
    if parsed.media_type not in FORMATS:
        return []
    return [page.number for page in parsed.pages if "image_too_large" not in page.warnings] or ([] if parsed.pages else [None])


def needs_ocr(page: Page) -> bool:
    return page.text_state == "unavailable" and not UNREAD.isdisjoint(page.warnings)


def add_ocr(parsed: ParsedFile, readings: Sequence[Reading], engine: OcrEngine, limits: Limits) -> None:
    """Changes `parsed`. Raises LimitError: too_many_blocks, text_too_long."""
    texts = [order_page(reading.ocr, reading.regions) for reading in readings]
    rank_headings(texts)
    added: list[Block] = []
    pages = {page.number: page for page in parsed.pages}
    whole = next(iter(parsed.assets), None) if parsed.media_type != "application/pdf" else None
    for reading, text in zip(readings, texts, strict=True):
        error = reading.place.error or reading.ocr.error
        blocks = [] if error else _blocks(parsed, reading, text)
        page = pages.get(reading.place.page or 0)
        parsed.observations.append(_observation(parsed, reading, text, engine, whole, page))
        if page is not None:
            _mark_page(page, blocks, error)
        added += blocks
    if len(parsed.blocks) + len(added) > limits.blocks:
        raise LimitError(f"more than {limits.blocks} blocks (limits.blocks)", reject_class="too_many_blocks", place=parsed.path)
    if sum(len(block.text) for block in (*parsed.blocks, *added)) > limits.text_bytes:
        raise LimitError(f"more text than limits.text_bytes ({limits.text_bytes})", reject_class="text_too_long", place=parsed.path)
    _insert(parsed, added)
    _mark_document(parsed, readings, sum(len(text.furniture) for text in texts))
    _say_doubtful(parsed, [(_named(reading.place), reading.ocr) for reading in readings if not reading.place.error], engine)


def add_frames(parsed: ParsedFile, frames: Sequence[Frame]) -> None:
    """An asset and an image block for each, before the text of its page; the first frame is the file itself. Changes `parsed`."""
    added = []
    for frame in frames:
        where = {"page": frame.number, "bbox": (0.0, 0.0, float(frame.width), float(frame.height))}
        asset = _add_image(parsed, where)
        asset.cas_uri, asset.media_type, asset.width, asset.height = frame.uri, frame.media_type, frame.width, frame.height
        added.append(Block("", "image", 0, "", asset.locator, [], [], asset.asset_id, {"frame": frame.number}))
    if added:
        _insert(parsed, added)


def observe_asset(parsed: ParsedFile, asset: Asset, page: OcrPage, engine: OcrEngine) -> None:
    """What was read in an image inside the file: an observation, no block of its own. Changes `parsed`."""
    whole = Asset(asset.asset_id, asset.ordinal, asset.kind, asset.locator)
    text = PageText() if page.error else order_page(page)
    seen = _observation(parsed, Reading(Place(), page), text, engine, whole, None)
    seen.locator = asset.locator
    parsed.observations.append(seen)
    if page.error:
        parsed.add_event("ocr", "warning", "image_not_read", f"{asset.locator}: {page.error}")
    _say_doubtful(parsed, [(str(asset.locator), page)], engine)


def add_unavailable(parsed: ParsedFile, kind: str, subjects: Sequence[Asset | Page]) -> None:
    """Observations that say that no engine (`kind` ocr) or no model (caption) is there for these images. Changes `parsed`."""
    for subject in subjects:
        identity, place = (
            (subject.page_id, Locator(page=subject.number)) if isinstance(subject, Page) else (subject.asset_id, subject.locator)
        )
        parsed.observations.append(
            Observation(make_id("obs", parsed.record_id, parsed.content_hash, kind, identity, "", ""), identity, kind, "unavailable", place)
        )


def _blocks(parsed: ParsedFile, reading: Reading, text: PageText) -> list[Block]:
    """Blocks without an ordinal, less those that the page's own text holds, as a stamp on a scan. Figures of a PDF's page become assets;
    those of an image file are parts of the one it is."""
    out = []
    place = reading.place
    own = {_words(block.text) for block in parsed.blocks if block.locator.page == place.page} if place.page else set()
    tables = sum(block.kind == "table" for block in parsed.blocks)
    for block in text.blocks:
        if block.kind == "image" and parsed.media_type != "application/pdf":
            continue
        metadata = _metadata(block)
        rows = metadata.get("rows")
        content = clean(table_text(rows) if rows is not None else block.text)
        where: dict[str, Any] = {"page": place.page, "bbox": place.box(reading.ocr.original(block.box))}
        reference = None
        if block.kind == "image":
            reference = _add_image(parsed, where).asset_id
        elif not content.strip() or _words(content) in own:
            continue
        if rows is not None:
            tables += 1
            where["table"] = tables
        out.append(Block("", block.kind, 0, content, Locator(**where), [], [], reference, metadata))
    return out


def _words(text: str) -> str:
    return "".join(text.split()).lower()


def _metadata(block: TextBlock) -> dict[str, Any]:
    out: dict[str, Any] = {"source": "ocr"}
    if block.lines:
        out |= {"confidence": block.confidence, "least_confidence": block.least_confidence}
    if block.role:
        out["role"] = block.role
    if block.kind == "heading":
        out["level"] = block.level
    elif block.kind == "list_item":
        out |= {"level": block.level, "ordered": block.ordered, **({"number": block.number} if block.ordered else {})}
    elif block.rows is not None:
        out |= {"rows": block.rows, "header_rows": count_header_rows(block.rows)}
    return out


def _add_image(parsed: ParsedFile, where: dict[str, Any]) -> Asset:
    ordinal = len(parsed.assets)
    where["image"] = ordinal + 1
    asset = Asset(asset_id(parsed.record_id, parsed.content_hash, ordinal), ordinal, "image", Locator(**where))
    parsed.assets.append(asset)
    return asset


def _observation(
    parsed: ParsedFile, reading: Reading, text: PageText, engine: OcrEngine, whole: Asset | None, page: Page | None
) -> Observation:
    """What the engine saw, headers and footers too. Its subject is the asset of an image file, else the page."""
    error = reading.place.error or reading.ocr.error
    lines = () if error else reading.ocr.lines
    subject = page.page_id if page is not None else whole.asset_id if whole is not None else ""
    whole_box = reading.ocr.original((0.0, 0.0, float(reading.ocr.width), float(reading.ocr.height)))
    place = Locator(page=reading.place.page, bbox=reading.place.box(whole_box))
    size = sum(len(line.text) for line in lines)
    seen = [block for block in (*text.blocks, *text.furniture) if block.lines]
    return Observation(
        make_id("obs", parsed.record_id, parsed.content_hash, "ocr", subject, engine.name, engine.version),
        subject,
        "ocr",
        "failed" if error else "ok" if lines else "no_text",
        place,
        "\n".join(clean(table_text(block.rows) if block.rows is not None else block.text) for block in seen) if lines else "",
        round(sum(line.confidence * len(line.text) for line in lines) / size, 4) if size else None,
        engine.name,
        engine.version,
    )


def _mark_page(page: Page, blocks: list[Block], error: str) -> None:
    if error:
        page.warnings.append("ocr_failed")
        return
    page.text_state = "mixed" if page.char_count else "ocr"
    page.char_count += sum(len(block.text) for block in blocks)
    page.warnings = [warning for warning in page.warnings if warning not in UNREAD]


def _insert(parsed: ParsedFile, added: list[Block]) -> None:
    headings = [block for block in parsed.blocks if block.kind == "heading"]
    own = all(block.section_path[-1:] == [block.text] for block in headings)
    parsed.blocks = sorted([*parsed.blocks, *added], key=lambda block: block.locator.page or 0)
    identify = block_ids(parsed.record_id, parsed.content_hash)
    opened: list[tuple[int, str]] = []
    for ordinal, block in enumerate(parsed.blocks):
        block.ordinal, block.block_id = ordinal, identify(ordinal)
        if block.kind == "heading":
            level = block.metadata["level"]
            while opened and opened[-1][0] >= level:
                opened.pop()
        block.section_path = [title for _, title in opened]
        if block.kind == "heading":
            opened.append((level, block.text))
            if own:
                block.section_path.append(block.text)


def _say_doubtful(parsed: ParsedFile, pages: Sequence[tuple[str, OcrPage]], engine: OcrEngine) -> None:
    """Which script it is nobody knows who cannot read it; that it is likely one which the engine's model lacks can be said."""
    found = [(name, page) for name, page in pages if page.doubtful]
    if not found:
        return
    said = [f"{name} ({page.doubtful} of {page.unread + len(page.lines)} lines)" for name, page in found[:20]]
    more = f" and {len(found) - 20} more" if len(found) > 20 else ""
    parsed.add_event(
        "ocr",
        "warning",
        "text_hardly_readable",
        f"text was found that {engine.name} cannot read, or hardly (confidence below {CONFIDENT}): {', '.join(said)}{more}. Its model may "
        "not know the script, or the scan is too poor; set ocr.engine to an engine that knows the script, or scan anew",
    )


def _named(place: Place) -> str:
    return f"page {place.page}" if place.page else "the image"


def _mark_document(parsed: ParsedFile, readings: Sequence[Reading], furniture: int) -> None:
    failed = [reading for reading in readings if reading.place.error or reading.ocr.error]
    for reading in failed:
        where = f"page {reading.place.page}: " if reading.place.page else ""
        parsed.add_event("ocr", "error", "ocr_failed", f"{where}{reading.place.error or reading.ocr.error}")
    silent = [reading for reading in readings if reading not in failed and not (reading.ocr.lines or reading.ocr.doubtful)]
    if silent:
        pages = ", ".join(str(reading.place.page) for reading in silent[:20] if reading.place.page)
        parsed.add_event("ocr", "ok", "no_text", f"pages {pages}" if pages else "")
    turned = [reading for reading in readings if reading not in failed and reading.ocr.turn]
    if turned:
        said = [f"{_named(reading.place)} by {90 * reading.ocr.turn} degrees" for reading in turned[:20]]
        more = f" and {len(turned) - 20} more" if len(turned) > 20 else ""
        parsed.add_event("ocr", "ok", "page_turned", f"turned upright to be read, as they stand turned clockwise: {', '.join(said)}{more}")
    document = parsed.document
    if document is None:
        return
    document.block_count = len(parsed.blocks)
    document.char_count = sum(len(block.text) for block in parsed.blocks)
    if furniture:
        document.metadata["furniture_segments"] = document.metadata.get("furniture_segments", 0) + furniture
    states = {page.text_state for page in parsed.pages}
    if parsed.pages:
        document.text_state = states.pop() if len(states) == 1 else "mixed"
    elif readings and not failed:
        document.text_state = "ocr"
    left = {warning for page in parsed.pages for warning in page.warnings}
    document.warnings = [warning for warning in document.warnings if warning not in UNREAD or warning in left]
    if failed and "ocr_failed" not in document.warnings:
        document.warnings.append("ocr_failed")
