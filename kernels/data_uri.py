"""`data:` URI → what stands for it in the IR and the bytes that it holds (RFC 2397).

The invariant: an address keeps its head alone, so that no payload is stored as text; one that cannot be read is marked as broken.
"""

from __future__ import annotations

import binascii
import re
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

_SPACE = re.compile(r"\s+")


def is_data_uri(href: str) -> bool:
    return href[:5].lower() == "data:"


def read_data_uri(href: str) -> tuple[str, bytes | None, dict[str, Any]]:
    """(href without payload, bytes or None, metadata: media_type, inline_characters, and `broken` where the payload is no base64)."""
    head, _, body = href.partition(",")
    about: dict[str, Any] = {"media_type": head[5:].partition(";")[0].strip().lower(), "inline_characters": len(body)}
    data: bytes | None
    if head.rstrip().lower().endswith(";base64"):
        data = _base64(body)
    else:
        data = unquote_to_bytes(body)
    if not data:
        return f"{head},", None, about | {"broken": True}
    return f"{head},", data, about


def _base64(body: str) -> bytes | None:
    """Browsers forgive missing padding, white space and percent escapes; nothing else."""
    text = _SPACE.sub("", unquote(body) if "%" in body else body).rstrip("=")
    try:
        return binascii.a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
    except ValueError:
        return None
