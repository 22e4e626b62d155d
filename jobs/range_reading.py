"""OCR of page ranges of long PDFs, over all workers at once, before the main stages: a scanned book must not hold one actor for an hour.

What was read lies beside the staged range (`jobs/pdf_ranges`); the observe stage takes it from there and reads only what is missing. The
invariant: read in ranges or in one go, a page has the same lines.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from raydex.ir.errors import InputError
from raydex.jobs.context import RunContext
from raydex.jobs.observe import Observer, Sight, listed_bytes
from raydex.jobs.pdf_ranges import PDF, read_part
from raydex.kernels.layout import Region
from raydex.kernels.ocr import OcrLine, OcrPage
from raydex.kernels.ocr_blocks import Place, Reading
from raydex.kernels.pdf import merge_ranges
from raydex.kernels.request import ParseRequest

SUFFIX = ".seen"


class ReadWorker:
    """Reads the pages of one staged range that have no usable text; the row passes on as it is."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.observer = Observer(context.settings, gpus=context.settings.stages.observe.gpus)

    def __call__(self, batch: pa.Table) -> pa.Table:
        for row in batch.to_pylist():
            request = ParseRequest(row["record_id"], row["content_hash"], row["path"], PDF, b"", limits=self.observer.limits)
            try:
                parsed = merge_ranges(request, [read_part(request, row["part"])])
            except InputError:
                continue  # the join says why
            sight = Sight(parsed, partial(listed_bytes, row["uri"], row["content_hash"]))
            self.observer.read([sight])
            write_readings(row["part"], [reading for reading in sight.readings if not reading.place.error])
        return batch


def write_readings(part: str, readings: list[Reading]) -> None:
    Path(part + SUFFIX).write_bytes(orjson.dumps([_plain(reading) for reading in readings]))


def read_readings(parts: list[str]) -> list[Reading]:
    """What was read of these ranges; nothing where nobody has."""
    found = [orjson.loads(path.read_bytes()) for path in (Path(part + SUFFIX) for part in parts) if path.exists()]
    return [_reading(item) for items in found for item in items]


def _plain(reading: Reading) -> dict[str, Any]:
    page = reading.ocr
    return {
        "page": reading.place.page,
        "scale": reading.place.scale,
        "size": (page.width, page.height),
        "error": page.error,
        "turn": page.turn,
        "unread": page.unread,
        "lines": [(line.text, line.confidence, line.box) for line in page.lines],
        "regions": [(region.kind, region.box, region.score) for region in reading.regions],
    }


def _reading(item: dict[str, Any]) -> Reading:
    lines = tuple(OcrLine(text, confidence, tuple(box)) for text, confidence, box in item["lines"])
    regions = [Region(kind, tuple(box), score) for kind, box, score in item["regions"]]
    width, height = item["size"]
    return Reading(
        Place(item["page"], tuple(item["scale"])), OcrPage(width, height, lines, item["error"], item["turn"], item["unread"]), regions
    )
