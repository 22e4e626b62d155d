"""Bytes of a raster image → its header, an upright RGB array for models, a thumbnail.

The size is checked in the header, before any pixel is decoded. Upright means that the camera's orientation has been applied; what is
transparent lies on white, or on black where the visible part is so bright that white would swallow it. The invariant: the same bytes give
the same pixels, and whatever the bytes are, the outcome is an image within `limits.image_pixels` or an InputError.
"""

from __future__ import annotations

import math
import re
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from raydex.ir.errors import InputError, LimitError
from raydex.kernels.limits import Limits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

# media type → name of Pillow's reader
FORMATS: dict[str, str] = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
    "image/avif": "AVIF",
}
THUMBNAIL = 224
THUMBNAIL_TYPE = "image/jpeg"
LONGEST_THUMBNAIL = 2048
MAX_FRAMES = 10_000
_BRIGHT = 160
_DEPTHS = (8, 10, 12, 14, 16, 24, 31)
_ORIENTATION, _EXIF, _CHANGED, _TAKEN, _OFFSET = 0x0112, 0x8769, 0x0132, 0x9003, 0x9011
_TIME = re.compile(r"(\d{4}):(\d\d):(\d\d)[ T](\d\d:\d\d:\d\d)")
_ZONE = re.compile(r"[+-]\d\d:\d\d")
# what Pillow's readers raise on bytes that are no image of theirs
_FAULTS = (OSError, SyntaxError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, EOFError, struct.error)
_BROKEN = (*_FAULTS, zlib.error, AssertionError)


@dataclass(frozen=True, slots=True)
class Header:
    """What an image says of itself. Sizes are of the upright image; `orientation` is EXIF's (1: as stored); `dpi` 0 where unknown."""

    width: int
    height: int
    frames: int = 1
    mode: str = ""
    orientation: int = 1
    dpi: tuple[float, float] = (0.0, 0.0)
    taken: str = ""


def read_header(data: bytes, media_type: str, limits: Limits) -> Header:
    """Raises InputError: invalid_input, bomb, unsupported_media_type. Decodes no pixel."""
    with _opened(data, media_type, limits) as image:
        frames = _count_frames(image)
        image.seek(0)
        orientation = _orientation(image)
        width, height = _upright_size(image, orientation)
        return Header(width, height, frames, image.mode, orientation, _dpi(image), _taken(image))


def frame_sizes(data: bytes, media_type: str, limits: Limits, most: int) -> list[tuple[int, int]]:
    """Upright sizes of the first `most` frames, from their headers. Raises what `read_header` raises."""
    with _opened(data, media_type, limits) as image:
        sizes = []
        for frame in range(min(_count_frames(image), most)):
            image.seek(frame)
            sizes.append(_upright_size(image, _orientation(image)))
        return sizes


def read_pixels(data: bytes, media_type: str, limits: Limits, frame: int = 0) -> NDArray[np.uint8]:
    """Height x width x RGB of one upright frame. Raises what `read_header` raises."""
    import numpy as np

    with _opened(data, media_type, limits, frame) as image:
        return np.array(_flat(_upright(image)), dtype=np.uint8)


def thumbnail(data: bytes, media_type: str, limits: Limits, short_side: int = THUMBNAIL) -> bytes:
    """JPEG of the first frame with this short side; a strip so long that it would pass `LONGEST_THUMBNAIL` is made smaller.

    Every pixel is read, so that a cut-off file raises here: InputError (invalid_input) and what `read_header` raises.
    """
    from PIL import Image

    with _opened(data, media_type, limits) as image:
        size = _fitted(image.size, short_side)
        image.draft("RGB", size)  # a JPEG is read at the nearest eighth
        image = _eight_bits(image)
        small = _flat(_turned(image.resize(size, Image.Resampling.LANCZOS), _orientation(image)))
        out = BytesIO()
        small.save(out, "JPEG", quality=85)
        return out.getvalue()


def to_png(pixels: NDArray[np.uint8]) -> bytes:
    """An RGB array as a PNG."""
    from PIL import Image

    out = BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


@contextmanager
def _opened(data: bytes, media_type: str, limits: Limits, frame: int = 0) -> Iterator[Image]:
    """The image at a frame whose size is allowed; every fault of its reader inside the block is an InputError."""
    from PIL import Image

    reader = FORMATS.get(media_type)
    if reader is None:
        raise InputError(f"no reader for {media_type}", reject_class="unsupported_media_type")
    if reader == "WEBP":
        _check_size(_webp_size(data), limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(BytesIO(data), formats=[reader]) as image:
                if frame:
                    image.seek(frame)
                _check_size(image.size, limits)
                yield image
        except InputError:
            raise
        except Image.DecompressionBombError as error:
            raise LimitError(_bomb_message(error), reject_class="bomb", remedy="Scale the image down") from error
        except _BROKEN as error:
            reject_class = "bomb" if "Decompressed data too large" in str(error) else "invalid_input"
            raise InputError(f"the image cannot be read: {_reason(error)}", reject_class=reject_class) from error


def _reason(error: BaseException) -> str:
    """A message without what Pillow quotes of the file object."""
    if "cannot identify" in str(error):
        return "it is none, or its header is broken"
    return str(error)[:200] or type(error).__name__


def _bomb_message(error: Exception) -> str:
    """Pillow's own limit holds while it opens a file, and its numbers are in its message."""
    numbers = [int(number) for number in re.findall(r"\d+", str(error))]
    if len(numbers) < 2:
        return "the picture has more pixels than the image library opens"
    return f"the picture has {numbers[0]:,} pixels; the image library opens {numbers[1]:,} at most"


def _check_size(size: tuple[int, int], limits: Limits) -> None:
    width, height = size
    if width * height > limits.image_pixels:
        raise LimitError(
            f"the picture has {width * height:,} pixels ({width} x {height}); limits.image_pixels allows {limits.image_pixels:,}",
            reject_class="bomb",
            remedy="Scale the image down or raise limits.image_pixels",
        )


def _webp_size(data: bytes) -> tuple[int, int]:
    """Canvas in the header: the reader takes memory for it as soon as it opens the file."""
    kind, head = data[12:16], data[20:30].ljust(10, b"\0")
    if kind == b"VP8X":
        return int.from_bytes(head[4:7], "little") + 1, int.from_bytes(head[7:10], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(head[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return int.from_bytes(head[6:8], "little") & 0x3FFF, int.from_bytes(head[8:10], "little") & 0x3FFF


def _count_frames(image: Image) -> int:
    """Frames, at most `MAX_FRAMES`: a chain of directories in a TIFF may be long, and run in circles."""
    if image.format != "TIFF":
        return int(getattr(image, "n_frames", 1))
    count = 1
    try:
        while count < MAX_FRAMES:
            image.seek(count)
            count += 1
    except EOFError:
        pass
    except _BROKEN:  # the directory behind the last good frame is broken
        pass
    return count


def _orientation(image: Image) -> int:
    """1 to 8. TIFF's reader turns the image itself."""
    if image.format == "TIFF":
        return 1
    try:
        value = image.getexif().get(_ORIENTATION, 1)
    except _BROKEN:
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _upright_size(image: Image, orientation: int) -> tuple[int, int]:
    width, height = image.size
    return (height, width) if orientation >= 5 else (width, height)


def _dpi(image: Image) -> tuple[float, float]:
    try:
        x, y = (float(value) for value in image.info.get("dpi", (0.0, 0.0)))
    except _BROKEN:
        return 0.0, 0.0
    known = all(math.isfinite(value) and 1 < value < 100_000 for value in (x, y))
    return (round(x, 2), round(y, 2)) if known else (0.0, 0.0)


def _taken(image: Image) -> str:
    """When the picture was taken, else changed, as ISO 8601; empty where EXIF does not tell or tells nonsense."""
    try:
        exif = image.getexif()
        inner = exif.get_ifd(_EXIF)
        found = _TIME.match(str(inner.get(_TAKEN) or exif.get(_CHANGED) or ""))
        zone = _ZONE.fullmatch(str(inner.get(_OFFSET, "")).strip("\0 "))
    except _BROKEN:
        return ""
    if found is None or found[1] == "0000":
        return ""
    return f"{found[1]}-{found[2]}-{found[3]}T{found[4]}" + (zone.group() if zone else "")


def _upright(image: Image) -> Image:
    return _turned(_eight_bits(image), _orientation(image))


def _turned(image: Image, orientation: int) -> Image:
    from PIL.Image import Transpose

    steps = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return image.transpose(steps[orientation]) if orientation in steps else image


def _eight_bits(image: Image) -> Image:
    """RGB, or RGBA where something is transparent. Deeper grey is scaled by the depth that its brightest value needs."""
    image.load()
    if image.mode == "F" or image.mode.startswith("I"):
        return _grey(image)
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        return image.convert("RGBA")
    return image if image.mode == "RGB" else image.convert("RGB")


def _grey(image: Image) -> Image:
    import numpy as np
    from PIL import Image as module

    values = np.nan_to_num(np.asarray(image, dtype=np.float32))
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    if low >= 0 and image.mode != "F":
        low, high = 0.0, float(next(2**depth - 1 for depth in _DEPTHS if high <= 2**depth))
    scaled = (values - low) * (255.0 / (high - low or 1.0))
    return module.fromarray(np.clip(scaled, 0, 255).astype(np.uint8)).convert("RGB")


def _flat(image: Image) -> Image:
    """Transparent parts on white, or on black where what is visible is bright: white letters must not vanish."""
    from PIL import Image as module
    from PIL import ImageStat

    if image.mode != "RGBA":
        return image
    alpha = image.getchannel("A")
    shown = ImageStat.Stat(image.convert("L"), alpha.point(lambda value: 255 if value >= 64 else 0))
    bright = shown.count[0] > 0 and shown.mean[0] > _BRIGHT
    ground = module.new("RGB", image.size, (0, 0, 0) if bright else (255, 255, 255))
    ground.paste(image.convert("RGB"), mask=alpha)
    return ground


def _fitted(size: tuple[int, int], short_side: int) -> tuple[int, int]:
    scale = min(short_side / min(size), max(LONGEST_THUMBNAIL, short_side) / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def describe(header: Header) -> dict[str, Any]:
    """The header as metadata: what is unknown is left out."""
    out: dict[str, Any] = {"width": header.width, "height": header.height, "frames": header.frames, "mode": header.mode}
    if header.orientation != 1:
        out["orientation"] = header.orientation
    if any(header.dpi):
        out["dpi"] = list(header.dpi)
    if header.taken:
        out["taken"] = header.taken
    return out
