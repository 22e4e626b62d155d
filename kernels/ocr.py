"""Text in images: what an OCR engine takes and gives, and how one is had by name.

Images are upright RGB arrays (`picture.read_pixels`, `pdf_render`); boxes are in their pixels, from the upper left corner. An engine may
find that the text of an image lies on its side or upside down: then it says how it had to be turned (`OcrPage.turn`). The invariant of an
engine: one `OcrPage` for each image, in order. An image without text has no lines; one that failed has no lines and an `error`, and costs
no other image anything. Only a lack of memory is raised (CapacityError): fewer images at a time may succeed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Protocol

from raydex.ir.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Box = tuple[float, float, float, float]
CONFIDENT = 0.8  # of a line: text of a script that the model knows is read with more, but for very poor scans
SEVERAL = 3  # lines that tell something about a page


@dataclass(frozen=True, slots=True)
class OcrLine:
    """One line of text, or the part of it that stands apart; `box` is upright around it, however the line runs."""

    text: str
    confidence: float
    box: Box


@dataclass(frozen=True, slots=True)
class OcrPage:
    """`turn`: quarters that the image had to be turned by against the clock to be read; the sizes and boxes are those of the turned one.
    `unread`: lines that were found and gave no text, or none that the engine vouches for."""

    width: int
    height: int
    lines: tuple[OcrLine, ...] = ()
    error: str = ""
    turn: int = 0
    unread: int = 0

    @property
    def doubtful(self) -> int:
        """Lines that are unread or read with little confidence, where they are most of several; else 0."""
        weak = self.unread + sum(0 < line.confidence < CONFIDENT for line in self.lines)  # 0: the engine tells none
        found = self.unread + len(self.lines)
        return weak if found >= SEVERAL and 2 * weak > found else 0

    def original(self, box: Box) -> Box:
        """A box of the turned image in the pixels of the one that was given."""
        x0, y0, x1, y1 = box
        if self.turn == 1:
            return self.height - y1, x0, self.height - y0, x1
        if self.turn == 2:
            return self.width - x1, self.height - y1, self.width - x0, self.height - y0
        return (y0, self.width - x1, y1, self.width - x0) if self.turn == 3 else box


class OcrEngine(Protocol):
    """`name` and `version` go into every observation."""

    name: str
    version: str

    def read(self, images: Sequence[NDArray[np.uint8]]) -> list[OcrPage]:
        """Raises CapacityError."""
        ...


# name → (module, function(device, threads)): imported when asked for
OCR_ENGINES: dict[str, tuple[str, str]] = {
    "rapidocr": ("raydex.kernels.ocr_rapid", "load_rapidocr"),
    "surya": ("raydex.kernels.surya", "load_surya_ocr"),
    "docling": ("raydex.kernels.docling_engines", "refuse_docling_ocr"),
}


def engine_versions(*names: str) -> list[str]:
    """Versions of the packages that engines of these names come from; "" where none does."""
    found = []
    for name in names:
        try:
            found.append(version(name))
        except PackageNotFoundError:
            found.append("")
    return found


def load_ocr_engine(name: str = "rapidocr", device: str = "cpu", threads: int = 1) -> OcrEngine:
    """`device` is cpu, cuda or cuda:N. Raises ConfigError where the engine, its models or the device are not there."""
    found = OCR_ENGINES.get(name)
    if found is None:
        raise ConfigError(f"there is no OCR engine {name!r}", remedy=f"Use one of: {', '.join(sorted(OCR_ENGINES))}")
    load: Callable[[str, int], OcrEngine] = getattr(import_module(found[0]), found[1])
    return load(device, threads)
