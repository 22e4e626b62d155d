"""A record → its original's own text, whole or at a locator: what `show` and `path` prove their answers with.

The invariant: the text is cut from the bytes that were indexed, or there is none. A PDF has no text to cut from: its pages are read again,
in a child process as in a run, and give what stands in the box.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from raydex.ir.locator import Locator
from raydex.ir.rows import Stamp
from raydex.jobs.reading import Reader
from raydex.kernels.decode import decode_as
from raydex.kernels.limits import Limits
from raydex.kernels.request import ParseRequest

PDF = "application/pdf"
PAGES_READ = 20
GAP = "\n…\n"

Row = dict[str, Any]
Placed = tuple[Locator, str]


class Originals:
    """Reads originals of one generation; the last one is held, since questions come record by record."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._last: tuple[str, bytes | None] = ("", None)

    def data(self, record: Row) -> bytes | None:
        """The bytes that were indexed; None when nobody has them any more."""
        key = record["record_id"]
        if self._last[0] != key:
            self._last = (key, self.reader.original(record))
        return self._last[1]

    def text(self, record: Row) -> str | None:
        """The decoded text; of a PDF the text of its first pages; None for other bytes."""
        data = self.data(record)
        if data is None:
            return None
        if record["media_type"] == PDF:
            return "\n\n".join(text for _, text in self._read_pages(record, data, 1, PAGES_READ)) or None
        heads = self.reader.by_ids("documents", "record_id", [record["record_id"]], ["record_id", "encoding"])
        encoding = heads.get(record["record_id"], {}).get("encoding")
        if encoding:
            return decode_as(data, encoding)
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None

    def excerpt(self, record: Row, places: Sequence[Locator]) -> str | None:
        """The text at the places, in their order; None where there is none."""
        data = self.data(record)
        if data is None:
            return None
        if record["media_type"] == PDF:
            found = self._boxes(record, data, places)
        else:
            text = self.text(record) if any(place.char or place.line for place in places) else None
            found = [] if text is None else [place.slice_text(text) for place in places]
        return GAP.join(part for part in found if part) or None

    def _boxes(self, record: Row, data: bytes, places: Sequence[Locator]) -> list[str | None]:
        pages = sorted({place.page for place in places if place.page is not None})
        blocks = [block for page in pages[:PAGES_READ] for block in self._read_pages(record, data, page, page)]
        return ["\n\n".join(text for at, text in blocks if _stands_in(at, place)) for place in places]

    def _read_pages(self, record: Row, data: bytes, first: int, last: int) -> list[Placed]:
        """(place, text) of each block of a page range."""
        from raydex.jobs.isolation import ParseChild

        request = ParseRequest(
            record["record_id"], record["content_hash"], record["path"], PDF, data, limits=Limits(pages=1_000_000), pages=(first, last)
        )
        stamp = Stamp(record["record_id"], record["content_hash"], "", "", 0, datetime.now(UTC))
        with ParseChild() as child:
            tables = child.parse(request, stamp).tables
        rows = tables["blocks"].select(["locator", "text"]).to_pylist() if "blocks" in tables else []
        return [(Locator.parse(row["locator"]), row["text"]) for row in rows]


def _stands_in(block: Locator, place: Locator) -> bool:
    """Whether the middle of a block lies in the place: a page, or a box of it."""
    if block.page != place.page or place.bbox is None or block.bbox is None:
        return block.page == place.page and place.bbox is None
    x, y = (block.bbox[0] + block.bbox[2]) / 2, (block.bbox[1] + block.bbox[3]) / 2
    return place.bbox[0] <= x <= place.bbox[2] and place.bbox[1] <= y <= place.bbox[3]
