"""A small lake for tests of the projection: source files and documents → Parquet files of the tables that it reads."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from raydex.ir.ids import content_hash, record_id
from raydex.ir.rows import Stamp, chunk_tables, parse_tables, stamped
from raydex.ir.tables import TABLES
from raydex.jobs.project import ProjectStamp
from raydex.jobs.project_inputs import COLUMNS, ProjectInputs
from raydex.kernels.chunk import ChunkOptions, ChunkSource, chunk
from raydex.kernels.members import member_id, member_path
from raydex.kernels.parse import parse
from raydex.kernels.request import ParseRequest
from raydex.kernels.tokens import load_tokenizer

WORKSPACE, WHEN = "default", datetime(2026, 1, 2, tzinfo=UTC)
STAMP = ProjectStamp("fp", "run_1", 3, WHEN)
MEDIA_TYPES = {"py": "text/x-python", "ts": "text/x-typescript", "md": "text/markdown", "rs": "text/x-rust", "csv": "text/csv"}
MEDIA_TYPES |= {"eml": "message/rfc822", "json": "application/json", "zip": "application/zip"}


class TestLake:
    """Rows by table, added file by file."""

    __test__ = False

    def __init__(self) -> None:
        self.tables: dict[str, list[pa.Table]] = {name: [] for name in COLUMNS}

    def add(self, name: str, rows: list[dict[str, Any]], stamp: Stamp) -> None:
        self.tables[name].append(stamped(name, rows, stamp))

    def stamp(self, source: str, path: str, data: bytes) -> Stamp:
        return Stamp(record_id(WORKSPACE, source, path), content_hash(data), "fp", "run_1", 1, WHEN)

    def add_record(self, path: str, data: bytes, source: str, repository: str, **changes: Any) -> Stamp:
        stamp = self.stamp(source, path, data)
        row = {
            "source_name": source,
            "workspace": WORKSPACE,
            "repository": repository,
            "path": path,
            "media_type": MEDIA_TYPES[path.rpartition(".")[2]],
            "cas_uri": f"cas:{stamp.content_hash}",
            "state": "indexed",
            **changes,
        }
        self.add("records", [row], stamp)
        return stamp

    def add_file(self, path: str, text: str, source: str = "shop", repository: str = "shop") -> Stamp:
        """A source file, parsed."""
        data = text.encode()
        media_type = MEDIA_TYPES[path.rpartition(".")[2]]
        stamp = self.add_record(path, data, source, repository)
        parsed = parse(ParseRequest(stamp.record_id, stamp.content_hash, path, media_type, data, WORKSPACE, repository))
        assert not parsed.rejects
        for name, table in parse_tables(parsed, stamp).items():
            if name in self.tables:
                self.tables[name].append(table)
        return stamp

    def add_container(self, path: str, data: bytes, source: str = "shop") -> list[Stamp]:
        """A mail, ticket, export or archive, parsed and chunked, and then its members; the stamps of all."""
        media_type = MEDIA_TYPES[path.rpartition(".")[2]]
        stamp = self.stamp(source, path, data)
        return self._add_members(ParseRequest(stamp.record_id, stamp.content_hash, path, media_type, data, WORKSPACE, "shop"), source, "")

    def _add_members(self, request: ParseRequest, source: str, parent: str) -> list[Stamp]:
        stamp = Stamp(request.record_id, request.content_hash, "fp", "run_1", 1, WHEN)
        about = {"source_name": source, "workspace": WORKSPACE, "repository": "shop", "path": request.path, "parent_id": parent}
        about |= {"media_type": request.media_type, "cas_uri": f"cas:{request.content_hash}", "state": "indexed"}
        self.add("records", [about], stamp)
        parsed = parse(request)
        assert parsed.document is not None, parsed.rejects
        tables = parse_tables(parsed, stamp)
        source_of = ChunkSource(request.record_id, request.content_hash, request.path, parsed.document.title, request.media_type)
        source_of.blocks = parsed.blocks
        tables |= chunk_tables(chunk(source_of, ChunkOptions(), load_tokenizer()), stamp)
        for name, table in tables.items():
            if name in self.tables:
                self.tables[name].append(table)
        stamps = [stamp]
        for member in parsed.members:
            inner = ParseRequest(
                member_id(request.record_id, member.step),
                content_hash(member.data),
                member_path(request.path, member.name),
                member.media_type,
                member.data,
                nesting=request.nesting.inside(request.media_type),
            )
            stamps += self._add_members(inner, source, request.record_id)
        return stamps

    def add_document(self, path: str, title: str, sections: list[tuple[str, str, str | None]], source: str = "shop") -> Stamp:
        """A document with sections (id, name, id of the section above or None)."""
        stamp = self.add_record(path, title.encode(), source, "shop")
        self.add("documents", [{"title": title, "path": path, "language": ""}], stamp)
        nodes = [{"node_id": stamp.record_id, "name": title, "node_type": "document", "properties": "{}"}]
        nodes += [{"node_id": node, "name": name, "node_type": "section", "properties": "{}"} for node, name, _ in sections]
        self.add("chunk_nodes", nodes, stamp)
        edges = [
            {
                "edge_id": f"e{at}{node}",
                "source": above or stamp.record_id,
                "target": node,
                "relation": "CONTAINS",
                "locator": f"char={at}-{at + 1};line={at + 2}-{at + 2}",
                "excerpt_hash": content_hash(name.encode()),
            }
            for at, (node, name, above) in enumerate(sections)
        ]
        if edges:
            self.add("chunk_edges", edges, stamp)
        return stamp

    def write(self, folder: Path, seed: int = 0, files: int = 2) -> ProjectInputs:
        """Parquet files with the rows in an order that `seed` decides."""
        folder.mkdir(parents=True, exist_ok=True)
        written: dict[str, tuple[Path, ...]] = {}
        for name, tables in self.tables.items():
            table = pa.concat_tables([TABLES[name].schema.empty_table(), *tables])
            order = list(range(table.num_rows))
            random.Random(seed).shuffle(order)
            table = table.take(pa.array(order, pa.int64()))
            paths = []
            for at in range(files):
                part = table.slice(at * table.num_rows // files, (at + 1) * table.num_rows // files - at * table.num_rows // files)
                if part.num_rows:
                    paths.append(folder / f"{name}-{at}.parquet")
                    pq.write_table(part, paths[-1], write_page_checksum=True)
            written[name] = tuple(paths)
        return ProjectInputs(written)


def keyed(rows: Iterable[Mapping[str, Any]], name: str) -> dict[str, dict[str, Any]]:
    return {row[name]: dict(row) for row in rows}
