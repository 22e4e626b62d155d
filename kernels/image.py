"""Raster images → DocumentIR: a document with one image block, whose asset is the file itself; the frames of a TIFF are its pages.

Nothing but the thumbnail is decoded here: the text of an image comes from OCR later (`ocr_blocks`), and until then its state is
`unavailable`. The invariant: an image whose header claims too much is refused before it is decoded, and one that is cut off is no success.
"""

from __future__ import annotations

from base64 import b64encode
from pathlib import PurePosixPath

from raydex.ir.document import Page
from raydex.ir.ids import page_id
from raydex.ir.parsed import ParsedFile
from raydex.kernels.drafts import Draft, finish
from raydex.kernels.picture import THUMBNAIL, THUMBNAIL_TYPE, describe, frame_sizes, read_header, thumbnail
from raydex.kernels.request import ParseRequest

PARSER = "image"
PARSER_VERSION = "2"


def parse_image(request: ParseRequest) -> ParsedFile:
    """Raises InputError: invalid_input, bomb, unsupported_media_type."""
    header = read_header(request.data, request.media_type, request.limits)
    about = describe(header)
    draft = Draft(
        "image",
        0,
        metadata={
            **about,
            "media_type": request.media_type,
            "thumbnail": b64encode(thumbnail(request.data, request.media_type, request.limits)).decode(),
            "thumbnail_media_type": THUMBNAIL_TYPE,
            "thumbnail_size": THUMBNAIL,
        },
        place={"bbox": (0.0, 0.0, float(header.width), float(header.height))},
        data=request.data,
    )
    title = PurePosixPath(request.path).stem
    parsed = finish(request, None, [draft], parser=PARSER, parser_version=PARSER_VERSION, title=title, metadata=about)
    if parsed.document is not None:
        parsed.document.text_state = "unavailable"
    if request.media_type == "image/tiff" and header.frames > 1:
        _add_pages(request, parsed, header.frames)
    elif header.frames > 1:
        said = f"of an animation of {header.frames:,} frames the first is read and shown to captions, {header.frames - 1:,} are not"
        parsed.add_event("parse", "ok", "frames_left_out", said)
    parsed.add_event("parse", "ok", "image_without_text", "its text comes from OCR alone")
    return parsed


def _add_pages(request: ParseRequest, parsed: ParsedFile, frames: int) -> None:
    """A page a frame, sizes in pixels. Frames beyond limits.pages and those that are too large have no text, and say so."""
    limits = request.limits
    if parsed.document is not None:
        parsed.document.page_count = frames
    for number, (width, height) in enumerate(frame_sizes(request.data, request.media_type, limits, limits.pages), 1):
        warnings = ["image_too_large"] if width * height > limits.image_pixels else []
        identity = page_id(request.record_id, request.content_hash, number)
        parsed.pages.append(Page(identity, number, width, height, 0, "unavailable", warnings=warnings))
    large = [page for page in parsed.pages if page.warnings]
    if large:
        named = ", ".join(f"{page.number} ({int(page.width * page.height):,} pixels)" for page in large[:20])
        more = f" and {len(large) - 20} more" if len(large) > 20 else ""
        said = f"frames {named}{more} are not read; limits.image_pixels allows {limits.image_pixels:,}"
        parsed.add_event("parse", "warning", "image_too_large", said)
    if frames > limits.pages:
        said = f"the picture has {frames:,} frames; limits.pages allows {limits.pages:,}, the last {frames - limits.pages:,} are not read"
        parsed.add_event("parse", "warning", "too_many_frames", said)
