"""Pages of a PDF, frames of an image file → upright RGB arrays for models, with the scale back to the places of locators.

`read_pixels_of` is for a parser's child process: bytes of strangers are decoded there and nowhere else; the pixels come out as members.
The invariant: one answer for each number that is asked for, in order; a page that gives no pixels costs itself and says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import orjson

from raydex.ir.errors import InputError
from raydex.ir.parsed import Member, ParsedFile
from raydex.kernels.limits import Limits
from raydex.kernels.ocr_blocks import Place
from raydex.kernels.pdf_render import render_pages
from raydex.kernels.picture import read_pixels
from raydex.kernels.request import ParseRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PDF = "application/pdf"
TARGET = "raydex.kernels.pixels:read_pixels_of"


def pixels_of(
    data: bytes, media_type: str, numbers: Sequence[int | None], limits: Limits
) -> Iterator[tuple[Place, NDArray[np.uint8] | None]]:
    """`numbers` are pages or frames, 1-based; None is the only image of a file. Raises InputError: the file cannot be opened at all."""
    if media_type == PDF:
        for image in render_pages(data, [number for number in numbers if number is not None], limits):
            if image.pixels is None:
                yield Place(image.number, error=image.error), None
                continue
            rows, columns = image.pixels.shape[:2]
            yield Place(image.number, (image.width / columns, image.height / rows)), image.pixels
        return
    for number in numbers:
        try:
            yield Place(number), read_pixels(data, media_type, limits, (number or 1) - 1)
        except InputError as error:
            yield Place(number, error=error.message), None


def read_pixels_of(request: ParseRequest) -> ParsedFile:
    """A member for each number of `request.wanted`: its step is the place as `to_step` writes it, its data are rows of RGB. Raises
    InputError."""
    parsed = ParsedFile(request.record_id, request.content_hash, request.path, request.media_type)
    for place, pixels in pixels_of(request.data, request.media_type, request.wanted, request.limits):
        member = Member(to_step(place, pixels), "pixels", b"" if pixels is None else pixels.tobytes())
        if request.emit is None:
            parsed.members.append(member)
        else:
            request.emit(member)
    return parsed


def to_step(place: Place, pixels: NDArray[np.uint8] | None) -> str:
    shape = [] if pixels is None else list(pixels.shape[:2])
    return orjson.dumps([place.page, list(place.scale), place.error, shape]).decode()


def from_step(step: str, data: bytes) -> tuple[Place, NDArray[np.uint8] | None]:
    """Raises ValueError when the bytes are not those of the step."""
    import numpy as np

    page, scale, error, shape = orjson.loads(step)
    place = Place(page, (float(scale[0]), float(scale[1])), error)
    return place, np.frombuffer(data, np.uint8).reshape(int(shape[0]), int(shape[1]), 3) if shape else None
