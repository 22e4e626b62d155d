"""Bytes of an image → the JPEG that a captioning model gets: upright RGB, its long side within a limit.

What is small is enlarged until a patch of a vision model fits in; a strip too long for that is padded with white instead. The invariant:
both sides of the result lie between `LEAST` (or the limit, where that is less) and the limit, and an image that says nothing because it
has hardly any pixels is an InputError. `caption_image_of` is for a parser's child process: strangers' bytes are decoded there alone.
"""

from __future__ import annotations

from io import BytesIO

from raydex.ir.errors import InputError
from raydex.ir.parsed import Member, ParsedFile
from raydex.kernels.limits import Limits
from raydex.kernels.parse import rejected
from raydex.kernels.picture import read_pixels
from raydex.kernels.request import ParseRequest

TARGET = "raydex.kernels.caption_image:caption_image_of"
MEDIA_TYPE = "image/jpeg"
QUALITY = 90
LEAST = 28
SMALLEST = 8


def caption_image(data: bytes, media_type: str, limits: Limits, long_side: int, frame: int = 0) -> bytes:
    """The JPEG. Raises InputError (invalid_input) for fewer than `SMALLEST` pixels on a side, and what `read_pixels` raises."""
    from PIL import Image

    pixels = read_pixels(data, media_type, limits, frame)
    height, width = pixels.shape[:2]
    if min(width, height) < SMALLEST:
        raise InputError(f"{width} x {height} pixels are too small to be described", remedy=f"Images from {SMALLEST} pixels a side are")
    image = Image.fromarray(pixels)
    size = _fitted((width, height), long_side)
    if size != image.size:
        image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
    room = (max(size[0], min(LEAST, long_side)), max(size[1], min(LEAST, long_side)))
    if room != size:
        ground = Image.new("RGB", room, "white")
        ground.paste(image, ((room[0] - size[0]) // 2, (room[1] - size[1]) // 2))
        image = ground
    out = BytesIO()
    image.save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


def caption_image_of(request: ParseRequest) -> ParsedFile:
    """One member, whose data are the JPEG of the image (or frame) that `request.wanted` names, or a reject."""
    frame = (request.wanted[0] if request.wanted else None) or 1
    try:
        data = caption_image(request.data, request.media_type, request.limits, request.side, frame - 1)
    except InputError as error:
        return rejected(request, error.reject_class, str(error))
    parsed = ParsedFile(request.record_id, request.content_hash, request.path, request.media_type)
    parsed.members.append(Member(str(frame), "image", data, MEDIA_TYPE))
    return parsed


def _fitted(size: tuple[int, int], long_side: int) -> tuple[int, int]:
    """Smaller where the long side passes the limit, larger where the short one lacks pixels and the long one has room for it."""
    scale = min(long_side / max(size), max(1.0, LEAST / min(size)))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
