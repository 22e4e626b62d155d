"""The registry of documents (seed 5): status, runs and status history in SQLite by default, PostgreSQL by URL, one SQLAlchemy schema.

The registry is the truth about documents' metadata; whether something is *indexed* only the stores can say, so lists merge both. Several
lakes may share one database: every row of `documents` names its lake, and nothing is read, written or deleted but one lake's rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from raydex.ir.errors import ConfigError, StoreError

BATCH = 1_000
URL_REMEDY = "Write it as sqlite:///FILE or postgresql+DRIVER://USER@HOST/NAME, with the driver installed"

metadata = sa.MetaData()

documents = sa.Table(
    "documents",
    metadata,
    sa.Column("lake_id", sa.String(64), primary_key=True),
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
    sa.Column("lake_id", sa.String(64), nullable=False, server_default=""),
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
def open_registry(url: str, lake_id: str = "", *, read_only: bool = False) -> Iterator[Registry]:
    """The registry of one lake; a writer makes the schema, and gives that of an older release its new columns. `url`: SQLAlchemy URL.
    Without a lake the database is only asked whether it answers.

    Raises StoreError when it cannot be reached, ConfigError for what is no URL or a driver that is not installed.
    """
    if read_only and url.startswith("sqlite:///"):
        url = f"sqlite:///file:{url.removeprefix('sqlite:///')}?mode=ro&immutable=0&uri=true"
    try:
        engine = sa.create_engine(url)
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ImportError) as error:
        raise ConfigError(f"the registry's URL cannot be used: {error}", place="stores.registry", remedy=URL_REMEDY) from error
    try:
        if read_only or not lake_id:
            engine.connect().close()
        else:
            with engine.begin() as connection:
                _migrate(connection, lake_id)
                metadata.create_all(connection)
        yield Registry(engine, lake_id)
    except sa.exc.SQLAlchemyError as error:
        raise StoreError(
            f"the registry failed: {str(getattr(error, 'orig', None) or error).splitlines()[0]}",
            place=engine.url.render_as_string(hide_password=True),
            remedy="Check stores.registry and the database",
        ) from error
    finally:
        engine.dispose()


def without_password(url: str) -> str:
    """The URL as it may be kept; "" stays "". Raises ConfigError for what is no URL."""
    try:
        if not url:
            return ""
        parsed = sa.engine.make_url(url)._replace(password=None)
        return parsed.difference_update_query(["password", "sslpassword"]).render_as_string()
    except sa.exc.ArgumentError as error:
        raise ConfigError(f"the registry's URL cannot be used: {error}", place="stores.registry", remedy=URL_REMEDY) from error


class Registry:
    """The rows of one lake in an open database."""

    def __init__(self, engine: sa.Engine, lake_id: str) -> None:
        self.engine = engine
        self.lake_id = lake_id

    def record_statuses(
        self, run_id: str, started_at: datetime, generation: int, index_name: str, rows: Sequence[DocumentStatus], deleted: Sequence[str]
    ) -> None:
        """Writes what a run did, in one transaction; doing it again for the same run changes nothing."""
        own = documents.c.lake_id == self.lake_id
        with self.engine.begin() as connection:
            connection.execute(sa.delete(runs).where(runs.c.run_id == run_id))
            connection.execute(sa.insert(runs).values(run_id=run_id, started_at=started_at, generation=generation, lake_id=self.lake_id))
            for start in range(0, len(deleted), BATCH):
                connection.execute(sa.delete(documents).where(own, documents.c.doc_id.in_(deleted[start : start + BATCH])))
            for start in range(0, len(rows), BATCH):
                part = rows[start : start + BATCH]
                ids = [row.doc_id for row in part]
                connection.execute(sa.delete(documents).where(own, documents.c.doc_id.in_(ids)))
                values = [{"lake_id": self.lake_id, **_document(row, run_id, started_at, index_name)} for row in part]
                connection.execute(sa.insert(documents), values)
                connection.execute(sa.delete(history).where(history.c.doc_id.in_(ids), history.c.run_id == run_id))
                steps = [
                    {"doc_id": row.doc_id, "run_id": run_id, "status": status, "changed_at": started_at}
                    for row in part
                    for status in row.reached
                ]
                connection.execute(sa.insert(history), steps)

    def load_documents(self) -> list[dict[str, Any]]:
        """All documents of the lake, by source and path."""
        names = [column.name for column in documents.columns if column.name != "lake_id"]
        query = sa.select(*(documents.c[name] for name in names)).order_by(documents.c.source_name, documents.c.path)
        with self.engine.connect() as connection:
            if "lake_id" in _columns(connection, documents):  # a registry that no run of this release has opened is one lake's
                query = query.where(documents.c.lake_id == self.lake_id)
            return [dict(row._mapping) for row in connection.execute(query)]

    def document_ids(self) -> set[str]:
        with self.engine.connect() as connection:
            return set(connection.execute(sa.select(documents.c.doc_id).where(documents.c.lake_id == self.lake_id)).scalars())


def _columns(connection: sa.Connection, table: sa.Table) -> set[str]:
    """Names of the columns that the database's own table has; none where it is not there."""
    inspector = sa.inspect(connection)
    return {column["name"] for column in inspector.get_columns(table.name)} if inspector.has_table(table.name) else set()


def _migrate(connection: sa.Connection, lake_id: str) -> None:
    """Tables of a release without `lake_id`: the rows become this lake's, which then lets go of those that its ledger does not know."""
    held = _columns(connection, documents)
    if held and "lake_id" not in held:
        spare = documents.to_metadata(sa.MetaData(), name="documents_by_lake")
        spare.drop(connection, checkfirst=True)
        spare.create(connection)
        names = [column.name for column in documents.columns if column.name in held]
        rows = sa.select(sa.literal(lake_id), *(documents.c[name] for name in names))
        connection.execute(sa.insert(spare).from_select(["lake_id", *names], rows))
        documents.drop(connection)
        connection.execute(sa.DDL(f"ALTER TABLE {spare.name} RENAME TO {documents.name}"))
    held = _columns(connection, runs)
    if held and "lake_id" not in held:
        connection.execute(sa.DDL(f"ALTER TABLE {runs.name} ADD COLUMN lake_id VARCHAR(64) DEFAULT '' NOT NULL"))


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
