"""Page ranges of long PDFs are parsed by many workers at once; the parse stage then joins them as if one had read the whole.

The range step keeps raw lines and fonts a page (`kernels/pdf.py`), as JSON under the lake's staging folder; the structure is made once,
over all pages. The invariant: fanned out or not, a document gives the same rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.stage import Stage, run_stages
from raydex.ir.document import Document
from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.ir.rows import Stamp, parse_tables
from raydex.jobs.context import RunContext
from raydex.jobs.isolation import ParseChild
from raydex.jobs.sources import read_uri
from raydex.kernels.parse import rejected
from raydex.kernels.pdf import merge_ranges
from raydex.kernels.request import ParseRequest

PAGE_BYTES = 500  # no page of a real PDF takes less
HEAD = 1_024
IDENTITY = ("record_id", "path", "uri", "repository", "content_hash")
RANGES = pa.schema([*((name, pa.string()) for name in IDENTITY), ("first", pa.int64()), ("last", pa.int64())])
PARTS = RANGES.append(pa.field("part", pa.string()))
PDF = "application/pdf"


def find_long_pdfs(work: pa.Table, pages: int, most_bytes: int) -> list[dict[str, Any]]:
    """Rows that may be PDFs of at least `pages` pages, by size and first bytes; the workers count them. A file of more than `most_bytes`
    is never read: the parse stage rejects it."""
    found = []
    large = (pc.field("start") == "parse") & (pc.field("reject_class") == "")
    large &= (pc.field("size") >= PAGE_BYTES * pages) & (pc.field("size") <= most_bytes)
    for row in work.filter(large).select([*IDENTITY]).to_pylist():
        if row["uri"].startswith("file:"):
            try:
                if b"%PDF-" not in _head(row["uri"]):
                    continue
            except OSError:
                continue  # the parse stage reports it
        elif not row["path"].lower().endswith(".pdf"):
            continue
        found.append(row)
    return found


def _head(uri: str) -> bytes:
    from raydex.jobs.listing import path_of

    with open(path_of(uri), "rb", buffering=0) as file:
        return file.read(HEAD)


def parse_ranges(context: RunContext, rows: list[dict[str, Any]], cpus: float, workers: int) -> dict[str, list[str]]:
    """record_id → files of its parsed ranges, for every row that has at least `run.pdf_fan_out_pages` pages; beside them what OCR read
    (`jobs/range_reading`), where an engine is configured."""
    from raydex.jobs.range_reading import ReadWorker

    settings = context.settings
    observe = settings.stages.observe
    split = Stage("split", SplitWorker, (context,), IDENTITY, ("first", "last"), cpus=cpus, batch_size=1, workers=(1, 1))
    files = pa.Table.from_pydict({name: [row[name] for row in rows] for name in IDENTITY})
    ranges = pa.concat_tables(run_stages(_singly(files), (split,)))
    if ranges.num_rows == 0:
        return {}
    reads = (*IDENTITY, "first", "last")
    workers = min(workers, ranges.num_rows)
    most = max(1, workers - 1) if not observe.gpus else max(1, observe.workers)
    stages = [Stage("pages", RangeWorker, (context,), reads, ("part",), cpus=cpus, batch_size=1, workers=(workers, workers))]
    if settings.ocr.engine != "none":
        taken = (*IDENTITY, "part")
        stages.append(Stage("read", ReadWorker, (context,), taken, (), cpus=cpus, gpus=observe.gpus, batch_size=1, workers=(1, most)))
    parts: dict[str, dict[int, str]] = {}
    for batch in run_stages(_singly(ranges), tuple(stages)):  # what is one table goes to one worker
        for row in batch.to_pylist():
            parts.setdefault(row["record_id"], {})[row["first"]] = row["part"]
    return {record: [found[first] for first in sorted(found)] for record, found in parts.items()}


def _singly(rows: pa.Table) -> list[pa.Table]:
    return [rows.slice(at, 1) for at in range(rows.num_rows)]


def _request(context: RunContext, row: dict[str, Any], data: bytes, pages: tuple[int, int] | None) -> tuple[ParseRequest, Stamp]:
    request = ParseRequest(
        record_id=row["record_id"],
        content_hash=row["content_hash"],
        path=row["path"],
        media_type=PDF,
        data=data,
        workspace=context.workspace,
        repository=row["repository"],
        limits=context.settings.limits.to_limits(),
        pages=pages,
    )
    return request, context.stamp("parse", row["record_id"], row["content_hash"], 0)


class SplitWorker:
    """One PDF → its page ranges; none when it is short, broken or gone (the parse stage reports that)."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.child = ParseChild(target="raydex.kernels.pdf:read_head")

    def __call__(self, batch: pa.Table) -> pa.Table:
        out: list[dict[str, Any]] = []
        run = self.context.settings.run
        for row in batch.to_pylist():
            try:
                data = read_uri(row["uri"])
            except OSError:
                continue
            tables = self.child.parse(*_request(self.context, row, data, None)).tables
            count = tables["documents"].column("page_count")[0].as_py() if "documents" in tables else 0
            if count >= run.pdf_fan_out_pages:
                for first in range(1, count + 1, run.pdf_range_pages):
                    out.append({**row, "first": first, "last": min(first + run.pdf_range_pages - 1, count)})
        return pa.Table.from_pylist(out, schema=RANGES)


class RangeWorker:
    """One page range → a staged file; a range that fails is a reject of its own, the others go on."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.child = ParseChild()
        self.folder = Path(context.lake_root) / "staging" / f"pages-{context.run_id}"
        self.folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, batch: pa.Table) -> pa.Table:
        out = []
        for row in batch.to_pylist():
            try:
                data = read_uri(row["uri"])
                reply = self.child.parse(*_request(self.context, row, data, (row["first"], row["last"]))).tables
            except OSError as error:
                request, stamp = _request(self.context, row, b"", (row["first"], row["last"]))
                reply = parse_tables(rejected(request, "unreadable", str(error.strerror or error)), stamp)
            file = self.folder / f"{row['record_id']}-{row['first']:06d}.json"
            head = reply["documents"].to_pylist()[0] if "documents" in reply else None
            rejects = reply["rejects"].select(["class", "error", "attempts"]).to_pylist() if "rejects" in reply else []
            part = {"metadata": orjson.loads(head["metadata"]) if head else None, "rejects": rejects, "range": [row["first"], row["last"]]}
            file.write_bytes(orjson.dumps(part))
            out.append({**row, "part": str(file)})
        return pa.Table.from_pylist(out, schema=PARTS)


def join_ranges(request: ParseRequest, files: list[str]) -> ParsedFile:
    """The parsed document, from the staged files of its ranges; a ParsedFile with a reject when no range could be parsed."""
    try:
        return merge_ranges(request, [read_part(request, name) for name in files])
    except InputError as error:
        return rejected(request, error.reject_class, str(error))


def read_part(request: ParseRequest, name: str) -> ParsedFile:
    """One range, from its staged file: raw pages under the document's metadata, or the reject that says why there are none."""
    item = orjson.loads(Path(name).read_bytes())
    part = ParsedFile(request.record_id, request.content_hash, request.path, request.media_type)
    if item["metadata"] is not None:
        part.document = Document(request.record_id, "", request.media_type, "", "", metadata=item["metadata"])
    for reject in item["rejects"]:
        pages = "pages {}-{}".format(*item["range"])
        part.add_reject("parse", reject["class"], f"{pages}: {reject['error']}", reject["attempts"], where=pages)
        part.add_event("parse", "error", reject["class"], f"{pages}: {reject['error']}")
    return part
