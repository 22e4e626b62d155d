"""Images in the object store → what a captioning model gets of them, decoded in a child process.

The invariant: every row comes out with either an image or an error and its class; an image that cannot be had costs no other anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from raydex.cluster.objects import ObjectStore
from raydex.ir.errors import RaydexError
from raydex.ir.rows import Stamp
from raydex.jobs.context import RunContext
from raydex.jobs.isolation import ParseChild, ParseReply
from raydex.jobs.places import member_store
from raydex.kernels.caption_image import TARGET
from raydex.kernels.limits import Limits
from raydex.kernels.request import ParseRequest

READS = ("key", "uri", "media_type")
WRITES = ("image", "reject_class", "error")
ERROR_CHARS = 300
SCHEMA = pa.schema([("key", pa.string()), ("image", pa.binary()), ("reject_class", pa.string()), ("error", pa.string())])


class FitWorker:
    """Actor that reads and decodes. The child is started with the first image."""

    def __init__(self, context: RunContext) -> None:
        settings = context.settings
        self.context = context
        self.limits = settings.limits.to_limits()
        self.side = settings.caption.long_side
        self.objects = ObjectStore(context.objects_uri if settings.objects.keep_originals else member_store(context.lake_root))
        self._held: dict[str, bytes] = {}
        self._child = ParseChild(_room(self.limits, self.side), target=TARGET, keep=self._hold)

    def __call__(self, batch: pa.Table) -> pa.Table:
        rows = batch.select(READS).to_pylist()
        lost: dict[str, str] = {}
        sent: deque[str] = deque()
        out = {row["key"]: {"key": row["key"], "image": None, "reject_class": "", "error": ""} for row in rows}
        for reply in self._child.parse_many(self._requests(rows, lost, sent)):
            out[sent.popleft()].update(self._read(reply))
        for key, error in lost.items():
            out[key].update(reject_class="unreadable", error=error[:ERROR_CHARS])
        return pa.Table.from_pylist([out[row["key"]] for row in rows], SCHEMA)

    def close(self) -> None:
        self._child.close()

    def _requests(self, rows: list[dict[str, str]], lost: dict[str, str], sent: deque[str]) -> Iterator[tuple[ParseRequest, Stamp]]:
        """What the child is asked; `sent` has the keys in the order of its replies, `lost` why there are no bytes to ask about."""
        for row in rows:
            key = row["key"]
            try:
                data = self.objects.get(row["uri"])
            except (OSError, ValueError, RaydexError) as error:
                lost[key] = str(error)
                continue
            sent.append(key)
            request = ParseRequest(key, key, key, row["media_type"], data, limits=self.limits, wanted=(None,), side=self.side)
            yield request, self.context.stamp("caption", key, key, 0)

    def _read(self, reply: ParseReply) -> dict[str, object]:
        images = [self._held.pop(part.uri) for part in reply.parts]
        self._held.clear()
        if "rejects" in reply.tables:
            (row, *_) = reply.tables["rejects"].select(["class", "error"]).to_pylist()
            return {"reject_class": row["class"], "error": row["error"][:ERROR_CHARS]}
        if len(images) != 1:
            return {"reject_class": "internal", "error": "the decoder gave no image"}
        return {"image": images[0]}

    def _hold(self, data: bytes) -> str:
        key = str(len(self._held))
        self._held[key] = data
        return key


def _room(limits: Limits, side: int) -> Limits:
    """The copy may take more bytes than the members of a container are allowed."""
    return replace(limits, members_bytes=max(limits.members_bytes, 3 * side * side))
