"""Images with text for benchmarks: whole pages, small pictures, and the pages of PDFs without a text layer; upright RGB arrays."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from office_files import SENTENCE
from PIL import Image, ImageDraw, ImageFont


def make_page(seed: int, lines: int = 24, width: int = 1240, height: int = 1754) -> np.ndarray:
    """A title, paragraphs and a table of figures, as a scan of an A4 page at 150 dpi."""
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    title, body = ImageFont.load_default(40), ImageFont.load_default(22)
    draw.text((90, 90), f"Report {seed} on measured evidence", fill="black", font=title)
    words = (SENTENCE * 12).split()
    at = 180
    for line in range(lines):
        draw.text((90, at), " ".join(words[(seed + line * 11) % 40 :][:11]), fill="black", font=body)
        at += 34 if line % 8 else 60
    for row in range(lines // 4):
        for column in range(4):
            draw.text((90 + 270 * column, at + 20 + 36 * row), f"{'ABCD'[column]}-{seed * 10 + row}", fill="black", font=body)
    return np.asarray(image)


def make_small(seed: int) -> np.ndarray:
    """A label or a button: one to three short lines."""
    image = Image.new("RGB", (260 + 20 * (seed % 7), 60 + 40 * (seed % 3)), "white")
    draw = ImageDraw.Draw(image)
    for line in range(1 + seed % 3):
        draw.text((12, 10 + 38 * line), f"Valve {seed} at {line + seed % 9} bar", fill="black", font=ImageFont.load_default(24))
    return np.asarray(image)


def make_scan(pages: int, lines: int = 24) -> bytes:
    """A PDF of page images of two sizes, without a text layer."""
    first, *others = (Image.fromarray(make_page(seed, lines, *((1240, 1754) if seed % 4 else (1275, 1650)))) for seed in range(pages))
    out = BytesIO()
    first.save(out, "PDF", save_all=True, append_images=others, resolution=150)
    return out.getvalue()


def as_png(pixels: np.ndarray) -> bytes:
    out = BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def by_size(images: list[Any], size: int) -> list[list[Any]]:
    """Batches of at most `size` images, those of like size together."""
    ordered = sorted(images, key=lambda image: image.shape[0] * image.shape[1])
    return [ordered[at : at + size] for at in range(0, len(ordered), size)]
