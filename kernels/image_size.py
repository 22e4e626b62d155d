"""The first bytes of a picture → width and height in pixels, and its media type, without decoding it.

PNG, GIF, BMP, JPEG and WebP say their size near the start; for any other the size is unknown. The invariant: reads no further than the
headers, in one pass.
"""

from __future__ import annotations

import struct
from typing import Any

from raydex.kernels.detect import detect_media_type

_START_OF_FRAME = frozenset((*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)))
_ALONE = frozenset((0x01, *range(0xD0, 0xD9)))


def describe_image(data: bytes, name: str) -> dict[str, Any]:
    """Media type, and the size where it is known: metadata of an image block."""
    return {"media_type": detect_media_type(data[:8192], name), **image_size(data)}


def image_size(data: bytes) -> dict[str, int]:
    """{width, height}; empty where the format or the header is unknown."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return _known(*struct.unpack_from(">II", data, 16))
        if data.startswith((b"GIF87a", b"GIF89a")):
            return _known(*struct.unpack_from("<HH", data, 6))
        if data.startswith(b"BM"):
            width, height = struct.unpack_from("<ii", data, 18)
            return _known(width, abs(height))
        if data.startswith(b"\xff\xd8"):
            return _jpeg_size(data)
        if data[:4] == b"RIFF" and data[8:16] == b"WEBPVP8X":
            low = int.from_bytes(data[24:27], "little"), int.from_bytes(data[27:30], "little")
            return _known(low[0] + 1, low[1] + 1)
    except struct.error:
        return {}
    return {}


def _jpeg_size(data: bytes) -> dict[str, int]:
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return {}
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _ALONE:
            at += 2
        elif marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return _known(width, height)
        else:
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return {}


def _known(width: int, height: int) -> dict[str, int]:
    return {"width": width, "height": height} if width > 0 and height > 0 else {}
