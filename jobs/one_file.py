"""`raydex parse FILE` and `raydex chunk FILE`: the kernels on one file, under the same limits and in the same child process as a run.

What comes out has the field names of the tables; locators and metadata are objects.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from raydex.cluster.objects import SCHEME
from raydex.configs.settings import Settings
from raydex.ir.errors import ConfigError, InputError
from raydex.ir.ids import content_hash, record_id
from raydex.ir.printed import plain_rows
from raydex.ir.rows import Stamp, chunk_tables, parse_tables
from raydex.jobs.isolation import ParseChild, ParseReply
from raydex.jobs.listing import special_name
from raydex.jobs.member_rows import Families
from raydex.jobs.observe import Bytes, Observer, Sight
from raydex.jobs.parse_stage import waits
from raydex.jobs.rebuild import to_block, to_parsed, to_rows, to_symbol
from raydex.jobs.second_parser import SecondParser
from raydex.jobs.sources import open_source, read_range, read_uri
from raydex.jobs.streams import HEAD, is_streamed, plan_file, segment_rows
from raydex.jobs.waiting import DEFERRED
from raydex.kernels.detect import detect_media_type
from raydex.kernels.parse import rejected
from raydex.kernels.request import ParseRequest
from raydex.kernels.segment import load_segment
from raydex.kernels.stream import stream_document
from raydex.kernels.stream_xml import NotCut

LISTS = ("pages", "blocks", "assets", "observations", "symbols", "code_nodes", "code_edges", "events", "rejects")
CHUNK_LISTS = {"chunks": "chunks", "nodes": "chunk_nodes", "edges": "chunk_edges"}


class _Kept(dict[str, bytes]):
    """Bytes from inside the file, by their address."""

    def keep(self, data: bytes) -> str:
        self[uri := SCHEME + content_hash(data)] = data
        return uri


def parse_one(file: Path, settings: Settings) -> dict[str, Any]:
    """The object that `parse --json` prints. Raises ConfigError when there is no such file."""
    request = request_of(file, settings)
    kept = _Kept()
    with _parsers(settings, request, kept) as parsers:
        return _printed(parsers, request, kept, Families(request.limits, kept=True), request.record_id)


@dataclass(frozen=True, slots=True)
class Parsers:
    """What reads a file as a run does."""

    child: ParseChild
    second: SecondParser
    observer: Observer


@contextmanager
def _parsers(settings: Settings, request: ParseRequest, kept: _Kept) -> Iterator[Parsers]:
    limits = request.limits
    with (
        ParseChild(limits, keep=kept.keep) as child,
        SecondParser(settings.docling.mode, limits, keep=kept.keep) as second,
        Observer(settings) as observer,
    ):
        yield Parsers(child, second, observer)


def parse_large(file: Path, settings: Settings) -> Iterator[dict[str, Any]] | None:
    """Of a file that is read in segments: the object that `parse --json` prints without its children, then these one by one. None for any
    other file. Raises ConfigError as `parse_one`."""
    check_file(file)
    if file.stat().st_size <= settings.run.stream_bytes:
        return None
    uri = file.resolve().as_uri()
    if not is_streamed(_readable(file, lambda: read_range(uri, 0, HEAD)), file.name):
        return None
    return _large_objects(file, uri, settings)


def _large_objects(file: Path, uri: str, settings: Settings) -> Iterator[dict[str, Any]]:
    request = _request(file, settings, b"")
    limits = request.limits
    size = file.stat().st_size
    try:
        plan = _readable(file, lambda: plan_file(lambda start, count: read_range(uri, start, count), size, file.name, limits))
    except NotCut:
        yield parse_one(file, settings)
        return
    except InputError as error:
        yield _object(parse_tables(rejected(request, error.reject_class, str(error)), _stamp(request)), request)
        return
    request = replace(request, content_hash=plan.content_hash, media_type=plan.media_type)
    yield _object(parse_tables(stream_document(request, plan), _stamp(request)), request)
    whole = {"record_id": request.record_id, "content_hash": request.content_hash, "path": request.path, "uri": uri, "cas_uri": ""}
    kept = _Kept()
    with _parsers(settings, request, kept) as parsers:
        for row in segment_rows(whole, plan):
            data = _readable(file, lambda uri=row["uri"]: read_uri(uri))  # type: ignore[misc]
            inner = replace(
                request,
                record_id=row["record_id"],
                content_hash=row["content_hash"],
                path=row["path"],
                data=data,
                segment=load_segment(row["stream"]),
            )
            kept.clear()
            yield _printed(parsers, inner, kept, Families(limits, kept=True), row["record_id"])


def _printed(parsers: Parsers, request: ParseRequest, kept: dict[str, bytes], families: Families, root: str) -> dict[str, Any]:
    """The file with its members, and theirs."""
    reply = _reply(parsers, request)
    out = _object(_observed(parsers.observer, request, reply, kept), request)
    about = {name: getattr(request, name) for name in ("record_id", "content_hash", "path", "media_type", "nesting")}
    for member in families.members_of({**about, "root": root}, reply.parts):
        data = kept[member["held"]]
        inner = replace(
            request,
            record_id=member["record_id"],
            content_hash=member["content_hash"],
            path=member["path"],
            media_type=member["media_type"],
            data=data,
            inside=member["inside"],
            nesting=member["nesting"],
        )
        if member["reject_class"]:
            tables = parse_tables(rejected(inner, member["reject_class"], member["error"]), _stamp(inner))
            out["children"].append(_object(tables, inner))
        else:
            out["children"].append(_printed(parsers, inner, kept, families, root))
    return out


def _reply(parsers: Parsers, request: ParseRequest) -> ParseReply:
    stamp = _stamp(request)
    return parsers.second.review(request, stamp, parsers.child.parse(request, stamp))


def _observed(observer: Observer, request: ParseRequest, reply: ParseReply, kept: dict[str, bytes]) -> dict[str, pa.Table]:
    """The tables with what was read in pages and images that have no text."""
    tables = reply.tables
    places = {part.asset_id: part.uri for part in reply.parts if part.kind == "asset"}
    if not waits(tables, places):
        return tables
    assets: dict[str, tuple[str, Bytes]] = {identity: (uri, partial(kept.__getitem__, uri)) for identity, uri in places.items()}
    sight = Sight(to_parsed(tables, request.path), lambda: request.data, assets)
    observer.observe([sight])
    if sight.refused is not None:
        return parse_tables(rejected(request, sight.refused.reject_class, str(sight.refused)), _stamp(request))
    return {
        **{name: table for name, table in tables.items() if name not in DEFERRED},
        **parse_tables(sight.parsed, _stamp(request), reply.ms),
    }


def _object(tables: dict[str, pa.Table], request: ParseRequest) -> dict[str, Any]:
    out: dict[str, Any] = {"record_id": request.record_id, "content_hash": request.content_hash, "path": request.path}
    out["document"] = next(iter(plain_rows("documents", tables.get("documents"))), None)
    for name in LISTS:
        out[name] = plain_rows(name, tables.get(name))
    out["issue"] = next(iter(plain_rows("issues", tables.get("issues"))), None)
    out["children"] = []
    return out


def chunk_one(file: Path, settings: Settings, strategy: str | None, max_tokens: int | None) -> dict[str, Any]:
    """The object that `chunk --json` prints: chunks, nodes, edges, rejects."""
    from raydex.jobs.chunk_stage import with_seen
    from raydex.kernels.chunk import ChunkOptions, ChunkSource, chunk
    from raydex.kernels.tokens import load_tokenizer

    request = request_of(file, settings)
    stamp = _stamp(request)
    kept = _Kept()
    with _parsers(settings, request, kept) as parsers:
        tables = _observed(parsers.observer, request, _reply(parsers, request), kept)
    rejects = plain_rows("rejects", tables.get("rejects"))
    if "documents" not in tables:
        return {"chunks": [], "nodes": [], "edges": [], "rejects": rejects}
    document = tables["documents"].to_pylist()[0]
    source = ChunkSource(
        record_id=stamp.record_id,
        content_hash=stamp.content_hash,
        path=file.name,
        title=document["title"],
        media_type=document["media_type"],
        language=document["language"],
        cas_uri="",
        blocks=with_seen(to_rows(tables, "blocks", to_block), to_rows(tables, "observations", dict), document["media_type"]),
        symbols=to_rows(tables, "symbols", to_symbol),
    )
    options = ChunkOptions(
        strategy=strategy or settings.chunk.strategy,
        max_tokens=max_tokens or settings.chunk.max_tokens,
        overlap=settings.chunk.overlap,
    )
    made = chunk_tables(chunk(source, options, load_tokenizer(settings.embed.model)), stamp)
    return {**{key: plain_rows(name, made.get(name)) for key, name in CHUNK_LISTS.items()}, "rejects": rejects}


def check_file(file: Path) -> None:
    """Raises ConfigError when there is no such file."""
    if file.is_dir():
        raise ConfigError("this is a folder", place=str(file), remedy="Name one file; `raydex index` takes folders")
    if not file.exists():
        raise ConfigError("there is no such file", place=str(file), remedy="Check the path")
    mode = file.stat().st_mode
    if not stat.S_ISREG(mode):
        raise ConfigError(special_name(mode), place=str(file), remedy="Name a regular file")


def _readable(file: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except OSError as error:
        raise ConfigError(f"the file cannot be read: {error.strerror or error}", place=str(file), remedy="Check its permissions") from error


def request_of(file: Path, settings: Settings) -> ParseRequest:
    """Raises ConfigError when there is no such file, or it cannot be read."""
    check_file(file)
    return _request(file, settings, _readable(file, lambda: read_uri(file.resolve().as_uri())))


def _request(file: Path, settings: Settings, data: bytes) -> ParseRequest:
    source = open_source(str(file), workspace=settings.workspace)
    return ParseRequest(
        record_id=record_id(source.workspace, source.name, file.name),
        content_hash=content_hash(data),
        path=file.name,
        media_type=detect_media_type(data[:65536], file.name),
        data=data,
        workspace=source.workspace,
        repository=source.repository or source.name,
        limits=settings.limits.to_limits(),
        measure=settings.docling.mode == "fallback",
    )


def _stamp(request: ParseRequest) -> Stamp:
    return Stamp(request.record_id, request.content_hash, "", "", 0, datetime.now(UTC))
