"""Large files of records → a row of work for the file and one for each of its segments, which all workers then parse side by side.

One scan cuts the file (`kernels/stream.py`); its plan is staged as JSON. A segment is a member of its file and lies in it: its `cas_uri`,
or `uri` where no originals are kept, names a range of the file's bytes. The invariant: segments are in the epoch of their file, and all of
them are there, or the file is rejected and has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.objects import ObjectStore
from raydex.cluster.stage import Stage, run_stages
from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.jobs.context import RunContext
from raydex.jobs.sources import read_range
from raydex.kernels.detect import detect_media_type
from raydex.kernels.limits import Limits
from raydex.kernels.members import member_id, member_path
from raydex.kernels.request import ParseRequest
from raydex.kernels.segment import STREAMED, StreamPlan, dump_segment
from raydex.kernels.stream import SEGMENT_BYTES, dump_plan, load_plan, plan_stream, stream_document
from raydex.kernels.stream_xml import XML, NotCut, may_be_cut

BLOCK_BYTES = 4 << 20
HEAD = 65_536
READS = ("record_id", "path", "uri", "size", "content_hash")
CUT = pa.schema(
    [("record_id", pa.string()), ("plan", pa.string()), ("cas_uri", pa.string()), ("class", pa.string()), ("error", pa.string())]
)

Row = dict[str, Any]


def find_streams(work: pa.Table, stream_bytes: int) -> list[Row]:
    """Rows of files that are larger than `stream_bytes` and of a streamed format, by first bytes and name."""
    large = (pc.field("start") == "parse") & (pc.field("reject_class") == "") & (pc.field("size") > stream_bytes)
    found = []
    for row in work.filter(large).select([*READS]).to_pylist():
        try:
            head = read_range(row["uri"], 0, HEAD)
        except OSError:
            continue  # the parse stage reports it
        if is_streamed(head, row["path"]):
            found.append(row)
    return found


def is_streamed(head: bytes, path: str) -> bool:
    """Whether a large file that begins so is read in segments."""
    media_type = detect_media_type(head, path)
    return media_type in STREAMED and (media_type != XML or may_be_cut(head))


def cut_streams(context: RunContext, rows: list[Row], cpus: float, workers: int) -> dict[str, Row]:
    """record_id → what `CutWorker` made of it."""
    table = pa.Table.from_pydict({name: [row[name] for row in rows] for name in READS})
    blocks = [table.slice(at, 1) for at in range(table.num_rows)]
    stage = Stage("cut", CutWorker, (context,), READS, tuple(CUT.names[1:]), cpus=cpus, batch_size=1, workers=(workers, workers))
    return {row["record_id"]: row for batch in run_stages(blocks, (stage,)) for row in batch.to_pylist()}


class CutWorker:
    """One large file → its original in the object store, where originals are kept, and the plan of its segments."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.limits = context.settings.limits.to_limits()
        self.objects = ObjectStore(context.objects_uri) if context.settings.objects.keep_originals else None
        self.folder = Path(context.lake_root) / "staging" / f"streams-{context.run_id}"
        self.folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, batch: pa.Table) -> pa.Table:
        return pa.Table.from_pylist([self._cut(row) for row in batch.to_pylist()], schema=CUT)

    def _cut(self, row: Row) -> Row:
        out = {"record_id": row["record_id"], "plan": "", "cas_uri": "", "class": "", "error": ""}
        try:
            read = self._keep(row, out)
            plan = plan_file(read, row["size"], row["path"], self.limits)
            if plan.content_hash != row["content_hash"]:
                raise InputError("the content changed between listing and parsing", reject_class="changed_while_read")
        except NotCut:
            return out
        except InputError as error:
            return {**out, "class": error.reject_class, "error": str(error)}
        except OSError as error:
            return {**out, "class": "unreadable", "error": f"cannot be read: {error.strerror or error}"}
        file = self.folder / f"{row['record_id']}.json"
        file.write_bytes(dump_plan(plan))
        return {**out, "plan": str(file)}

    def _keep(self, row: Row, out: Row) -> Callable[[int, int], bytes]:
        """How to read the file: from the store, once it is there."""
        if self.objects is None:
            return lambda start, size: read_range(row["uri"], start, size)
        objects = self.objects
        kept = objects.put_blocks(blocks_of(row["uri"], row["size"]), row["content_hash"], row["size"])
        out["cas_uri"] = kept
        return lambda start, size: objects.read(kept, start, size)


def blocks_of(uri: str, size: int) -> Iterator[bytes]:
    for start in range(0, size, BLOCK_BYTES):
        yield read_range(uri, start, BLOCK_BYTES)


def plan_file(read: Callable[[int, int], bytes], size: int, path: str, limits: Limits) -> StreamPlan:
    """Raises InputError as `plan_stream` does."""
    return plan_stream(read, size, detect_media_type(read(0, HEAD), path), records=limits.records, segment_bytes=SEGMENT_BYTES)


def with_segments(work: pa.Table, cut: dict[str, Row]) -> pa.Table:
    """`work` with the rows of segments behind those of their files."""
    out = []
    at = 0
    ids = work.column("record_id").to_pylist()
    for number, record in enumerate(ids):
        if record not in cut:
            continue
        out.append(work.slice(at, number - at))
        at = number + 1
        out.append(pa.Table.from_pylist(list(_expanded(work.slice(number, 1).to_pylist()[0], cut[record])), schema=work.schema))
    return pa.concat_tables([*out, work.slice(at)]) if out else work


def _expanded(row: Row, made: Row) -> Iterator[Row]:
    if made["class"]:
        yield {**row, "reject_class": made["class"], "error": made["error"], "cas_uri": made["cas_uri"]}
        return
    if not made["plan"]:
        yield row  # it cannot be cut: the parse stage reads it whole, under its limits
        return
    plan = load_plan(Path(made["plan"]).read_bytes())
    file = {**row, "media_type": plan.media_type, "cas_uri": made["cas_uri"]}
    yield {**file, "stream": made["plan"]}
    yield from segment_rows(file, plan)


def segment_rows(file: Row, plan: StreamPlan) -> Iterator[Row]:
    """Rows of work of all segments, from that of their file."""
    for number, segment in enumerate(plan.segments, 1):
        place = segment.place
        yield {
            **file,
            "record_id": member_id(file["record_id"], f"segment={number}"),
            "parent_id": file["record_id"],
            "path": member_path(file["path"], segment.name()),
            "uri": place.of(file["uri"]),
            "size": place.end - place.start,
            "change_key": file["content_hash"],
            "content_hash": segment.content_hash,
            "cas_uri": place.of(file["cas_uri"]) if file["cas_uri"] else "",
            "attempts": 0,
            "stream": dump_segment(segment),
        }


def file_head(request: ParseRequest, plan_path: str) -> tuple[ParsedFile, int]:
    """The document of a streamed file, and the number of its segments."""
    plan = load_plan(Path(plan_path).read_bytes())
    return stream_document(request, plan), len(plan.segments)
