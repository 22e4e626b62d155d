"""The registry of documents (seed 5): status, runs and status history in SQLite by default, PostgreSQL by URL, one SQLAlchemy schema.

The registry is the truth about documents' metadata; whether something is *indexed* only the stores can say, so lists merge both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from raydex.ir.errors import StoreError

STATUSES = ("stored", "parsed", "indexed", "failed")
BATCH = 1_000

metadata = sa.MetaData()

documents = sa.Table(
    "documents",
    metadata,
    sa.Column("doc_id", sa.String(64), primary_key=True),
    sa.Column("doc_name", sa.Text, nullable=False),
    sa.Column("source_name", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("media_type", sa.String(128), nullable=False, default=""),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("content_hash", sa.String(64), nullable=False, default=""),
    sa.Column("chunk_count", sa.Integer, nullable=False, default=0),
    sa.Column("index_name", sa.String(255), nullable=False, default=""),
    sa.Column("error", sa.Text, nullable=False, default=""),
    sa.Column("run_id", sa.String(64), nullable=False),
    sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
)

runs = sa.Table(
    "document_processing_runs",
    metadata,
    sa.Column("run_id", sa.String(64), primary_key=True),
    sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
)

history = sa.Table(
    "document_status_history",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("doc_id", sa.String(64), nullable=False, index=True),
    sa.Column("run_id", sa.String(64), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
    sa.UniqueConstraint("doc_id", "run_id", "status"),
)


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """One document as a run left it. `reached`: the statuses that it went through in this run, in order."""

    doc_id: str
    doc_name: str
    source_name: str
    path: str
    media_type: str
    content_hash: str
    chunk_count: int
    error: str
    reached: tuple[str, ...]


@contextmanager
def open_registry(url: str, *, read_only: bool = False) -> Iterator[sa.Engine]:
    """Engine of a registry; a writer makes the schema. `url`: SQLAlchemy URL. StoreError when it cannot be reached."""
    if read_only and url.startswith("sqlite:///"):
        url = f"sqlite:///file:{url.removeprefix('sqlite:///')}?mode=ro&immutable=0&uri=true"
    engine = sa.create_engine(url)
    try:
        if not read_only:
            metadata.create_all(engine)
        yield engine
    except sa.exc.SQLAlchemyError as error:
        raise StoreError(
            f"the registry failed: {str(getattr(error, 'orig', None) or error).splitlines()[0]}",
            place=engine.url.render_as_string(hide_password=True),
            remedy="Check stores.registry and the database",
        ) from error
    finally:
        engine.dispose()


def record_statuses(
    engine: sa.Engine,
    run_id: str,
    started_at: datetime,
    generation: int,
    index_name: str,
    rows: Sequence[DocumentStatus],
    deleted: Sequence[str],
) -> None:
    """Writes what a run did, in one transaction; doing it again for the same run changes nothing."""
    with engine.begin() as connection:
        connection.execute(sa.delete(runs).where(runs.c.run_id == run_id))
        connection.execute(sa.insert(runs).values(run_id=run_id, started_at=started_at, generation=generation))
        for start in range(0, len(deleted), BATCH):
            connection.execute(sa.delete(documents).where(documents.c.doc_id.in_(deleted[start : start + BATCH])))
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            ids = [row.doc_id for row in part]
            connection.execute(sa.delete(documents).where(documents.c.doc_id.in_(ids)))
            connection.execute(sa.insert(documents), [_document(row, run_id, started_at, index_name) for row in part])
            connection.execute(sa.delete(history).where(history.c.doc_id.in_(ids), history.c.run_id == run_id))
            steps = [
                {"doc_id": row.doc_id, "run_id": run_id, "status": status, "changed_at": started_at}
                for row in part
                for status in row.reached
            ]
            connection.execute(sa.insert(history), steps)


def _document(row: DocumentStatus, run_id: str, started_at: datetime, index_name: str) -> dict[str, Any]:
    return {
        "doc_id": row.doc_id,
        "doc_name": row.doc_name,
        "source_name": row.source_name,
        "path": row.path,
        "media_type": row.media_type,
        "status": row.reached[-1],
        "content_hash": row.content_hash,
        "chunk_count": row.chunk_count,
        "index_name": index_name,
        "error": row.error,
        "run_id": run_id,
        "updated_at": started_at,
    }


def load_documents(engine: sa.Engine) -> list[dict[str, Any]]:
    """All documents of the registry, by source and path."""
    with engine.connect() as connection:
        query = sa.select(documents).order_by(documents.c.source_name, documents.c.path)
        return [dict(row._mapping) for row in connection.execute(query)]


def document_ids(engine: sa.Engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.execute(sa.select(documents.c.doc_id)).scalars())
