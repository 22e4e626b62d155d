"""A record → its original's own text, whole or at a locator: what `show` and `path` prove their answers with.

The invariant: the text is cut from the bytes that were indexed, or there is none. A PDF has no text to cut from: its pages are read again,
in a child process as in a run, and give what stands in the box.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from raydex.ir.file_range import FileRange, split_range
from raydex.ir.locator import Locator
from raydex.ir.rows import Stamp
from raydex.jobs.reading import Reader
from raydex.kernels.decode import decode_as
from raydex.kernels.excerpt import MAIL, OUTLOOK, Excerpts, has_text
from raydex.kernels.limits import Limits
from raydex.kernels.request import ParseRequest

PDF = "application/pdf"
PAGES_READ = 20
NEIGHBOURS = 2  # pages before and after one, which tell its running head from its blocks
GAP = "\n…\n"

Row = dict[str, Any]
Placed = tuple[Locator, str]


class Originals:
    """Reads originals of one generation; the last one is held, since questions come record by record."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._last: tuple[str, bytes | None] = ("", None)
        self._excerpts: tuple[str, Excerpts | None] = ("", None)

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
        elif not any(has_text(place, record["media_type"]) for place in places):
            return None
        elif record["media_type"] in (MAIL, OUTLOOK):
            excerpts = self._mail(record, data)
            found = [excerpts.at(place) for place in places]
        else:
            text = self.text(record)
            part = range_of(record)
            inner = [part.inside(place) for place in places] if part is not None else places
            found = [] if text is None else [place.slice_text(text) for place in inner]
        return GAP.join(part for part in found if part) or None

    def _mail(self, record: Row, data: bytes) -> Excerpts:
        key, excerpts = self._excerpts
        if key != record["record_id"] or excerpts is None:
            heads = self.reader.by_ids("documents", "record_id", [record["record_id"]], ["record_id", "metadata"])
            excerpts = Excerpts(data, record["media_type"], inside=mail_inside(heads.get(record["record_id"], {}).get("metadata")))
            self._excerpts = (record["record_id"], excerpts)
        return excerpts

    def _boxes(self, record: Row, data: bytes, places: Sequence[Locator]) -> list[str | None]:
        pages = sorted({place.page for place in places if place.page is not None})
        blocks = []
        for page in pages[:PAGES_READ]:
            beside = NEIGHBOURS if any(place.bbox for place in places if place.page == page) else 0
            near = self._read_pages(record, data, max(1, page - beside), page + beside)
            blocks += [(at, text) for at, text in near if at.page == page]
        return ["\n\n".join(text for at, text in blocks if _stands_in(at, place)) for place in places]

    def _read_pages(self, record: Row, data: bytes, first: int, last: int) -> list[Placed]:
        """(place, text) of each block of a page range that has text: an image has none."""
        from raydex.jobs.isolation import ParseChild

        request = ParseRequest(
            record["record_id"], record["content_hash"], record["path"], PDF, data, limits=Limits(pages=1_000_000), pages=(first, last)
        )
        stamp = Stamp(record["record_id"], record["content_hash"], "", "", 0, datetime.now(UTC))
        with ParseChild() as child:
            tables = child.parse(request, stamp).tables
        rows = tables["blocks"].select(["locator", "text"]).to_pylist() if "blocks" in tables else []
        return [(Locator.parse(row["locator"]), row["text"]) for row in rows if row["text"]]


def mail_inside(metadata: str | None) -> str:
    """Where in an Outlook file the message lies that a row of `documents` with this metadata is of."""
    return str(orjson.loads(metadata).get("inside", "")) if metadata else ""


def range_of(record: Row) -> FileRange | None:
    """The range of its file that a segment is; None for a record that is a file or has bytes of its own."""
    return split_range(record.get("cas_uri") or "")[1] or (None if record.get("cas_uri") else split_range(record.get("uri") or "")[1])


def _stands_in(block: Locator, place: Locator) -> bool:
    """Whether the middle of a block lies in the place: a page, or a box of it."""
    if block.page != place.page or place.bbox is None or block.bbox is None:
        return block.page == place.page and place.bbox is None
    x, y = (block.bbox[0] + block.bbox[2]) / 2, (block.bbox[1] + block.bbox[3]) / 2
    return place.bbox[0] <= x <= place.bbox[2] and place.bbox[1] <= y <= place.bbox[3]
