"""Limits on one document; each is a configuration key under `limits`, each breach a typed reject (reliability: default limits)."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes, counts and seconds. Size, text and block limits do not apply to streamed formats (contracts 21)."""

    input_bytes: int = 200 * MB
    text_bytes: int = 50 * MB
    blocks: int = 100_000
    symbols: int = 20_000
    depth: int = 200
    pages: int = 2_000
    seconds: float = 120.0
    memory_bytes: int = 2_000 * MB
    attempts: int = 5
