"""docling is no engine for layout or OCR here, and says why: it has none that runs without weights from a hub."""

from __future__ import annotations

from typing import NoReturn

from raydex.ir.errors import ConfigError


def refuse_docling_ocr(device: str, threads: int) -> NoReturn:
    """Raises ConfigError."""
    reason = "docling reads images with other OCR engines, and fetches their models from a hub"
    raise ConfigError(f"docling is no OCR engine here: {reason}", remedy="Use rapidocr, which docling would run too, or surya")


def refuse_docling_layout(device: str, threads: int) -> NoReturn:
    """Raises ConfigError."""
    reason = "the weights of its layout model come from a hub, and its package holds none"
    raise ConfigError(f"docling is no layout engine here: {reason}", remedy="Use rapid-layout or surya")
