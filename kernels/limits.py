"""Limits on one document; each is a configuration key under `limits`, each breach a typed reject (reliability: default limits)."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes, counts and seconds. `nesting`: archives in archives; `ratio`: expansion of a member above 10 MB; `image_pixels`: of one frame;
    `cells`: of one workbook that hold something; `parts_depth`: MIME parts in parts, and mails in mails; `attachments`: of one mail;
    `records`: of one streamed file, to which size, text and block limits do not apply (contracts 21)."""

    input_bytes: int = 200 * MB
    text_bytes: int = 50 * MB
    blocks: int = 100_000
    symbols: int = 20_000
    depth: int = 200
    pages: int = 2_000
    seconds: float = 120.0
    memory_bytes: int = 2_000 * MB
    attempts: int = 5
    nesting: int = 2
    members: int = 10_000
    member_bytes: int = 200 * MB
    members_bytes: int = 1_000 * MB
    ratio: int = 100
    image_pixels: int = 90 * MB
    cells: int = 2 * MB
    parts_depth: int = 20
    attachments: int = 200
    records: int = 5 * MB

    def say(self, found: str, *names: str) -> str:
        """What a breach says: `found`, which gives the figure that was met, and the limits by name and value."""
        return f"{found}, more than {' or '.join(f'limits.{name} ({getattr(self, name)})' for name in names)}"
