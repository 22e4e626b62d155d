"""Arrow schemas and Delta specs of every table; `docs/tables.md` is generated from here.

Every row carries the run that wrote it, the content it came from and the fingerprint of the stage that made it (`COMMON`). Volatile
columns are exactly `VOLATILE`; the tables in `OUTSIDE_EQUALITY` are logs and take no part in row equality (contracts 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

VOLATILE = ("run_id", "epoch", "written_at", "ms")
OUTSIDE_EQUALITY = ("runs", "events", "generations", "rejects")

S = pa.string()
I32 = pa.int32()
I64 = pa.int64()
F64 = pa.float64()
BOOL = pa.bool_()
STRINGS = pa.list_(pa.string())
TS = pa.timestamp("us", tz="UTC")

COMMON: tuple[tuple[str, pa.DataType, str], ...] = (
    ("record_id", S, "the record that the row belongs to"),
    ("content_hash", S, "BLAKE3 of the bytes that the row was made from"),
    ("fingerprint", S, "fingerprint of the stage that made the row"),
    ("run_id", S, "run that wrote the row (volatile)"),
    ("epoch", I64, "epoch that wrote the row (volatile)"),
    ("written_at", TS, "time of writing (volatile)"),
)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A Delta table: `key` is the primary key, `stage` the stage whose fingerprint its rows carry, `doc` one sentence."""

    name: str
    key: str
    stage: str
    doc: str
    columns: tuple[tuple[str, pa.DataType, str], ...]

    @property
    def schema(self) -> pa.Schema:
        """Own columns first, then the common ones; only the key is not null (Delta writers differ on nested nullability)."""
        return pa.schema([pa.field(name, kind, nullable=name != self.key) for name, kind, _ in self.columns])


def _spec(name: str, key: str, stage: str, doc: str, *own: tuple[str, pa.DataType, str]) -> TableSpec:
    names = {column[0] for column in own}
    return TableSpec(name, key, stage, doc, own + tuple(column for column in COMMON if column[0] not in names))


LINK = pa.struct([("href", S), ("text", S)])
PARAMETER = pa.struct([("name", S), ("type", S), ("default", S)])
_JSON = "JSON object"

TABLES: dict[str, TableSpec] = {
    spec.name: spec
    for spec in (
        _spec(
            "records",
            "record_id",
            "list",
            "The ledger: one row a record, committed last in an epoch; that commit is the acknowledgement.",
            ("record_id", S, "hash of workspace, source name, path or external key"),
            ("source_id", S, "hash of workspace and source name"),
            ("source_name", S, "name of the source"),
            ("workspace", S, "workspace"),
            ("repository", S, "repository name, or the source name where there is no repository"),
            ("path", S, "POSIX path relative to the source's root"),
            ("uri", S, "where the bytes are (percent-encoded)"),
            ("parent_id", S, "record that contains this one (attachment, archive member)"),
            ("media_type", S, "by content first, extension second"),
            ("size", I64, "bytes"),
            ("change_key", S, "what tells a change without reading: size and mtime, or version and ETag"),
            ("cas_uri", S, "original in the object store; empty where only the reference is kept"),
            ("state", S, "indexed, degraded or rejected"),
            ("missing", STRINGS, "what a degraded record lacks"),
            ("fingerprints", pa.map_(S, S), "stage name to the fingerprint that succeeded"),
            ("attempts", I32, "failed attempts over all runs"),
            ("reject_class", S, "class of the last reject, empty when there is none"),
            ("error", S, "truncated error of the last reject; why a document without a block has none"),
        ),
        _spec(
            "documents",
            "record_id",
            "parse",
            "Heads of documents and source files.",
            ("record_id", S, "record"),
            ("title", S, "title"),
            ("path", S, "path of the record"),
            ("media_type", S, "media type"),
            ("parser", S, "parser that made it"),
            ("parser_version", S, "its version"),
            ("encoding", S, "text encoding used"),
            ("language", S, "programming language, for code; that of a text stands in metadata"),
            ("page_count", I32, "pages"),
            ("block_count", I32, "blocks"),
            ("char_count", I64, "code points of text in blocks"),
            ("text_state", S, "native, ocr, mixed or unavailable"),
            ("warnings", STRINGS, "warning names such as no_semantic_blocks"),
            ("metadata", S, _JSON),
            ("schema_name", S, "IR schema"),
            ("schema_version", S, "IR schema version"),
            ("ms", F64, "milliseconds spent parsing (volatile)"),
        ),
        _spec(
            "pages",
            "page_id",
            "parse",
            "Pages of paged documents.",
            ("page_id", S, "page"),
            ("number", I32, "1-based page number"),
            ("width", F64, "points, upright"),
            ("height", F64, "points, upright"),
            ("rotation", I32, "degrees"),
            ("text_state", S, "native, ocr, mixed or unavailable"),
            ("char_count", I32, "code points of native text"),
            ("label", S, "page label"),
            ("warnings", STRINGS, "warning names"),
        ),
        _spec(
            "blocks",
            "block_id",
            "parse",
            "Ordered blocks of DocumentIR.",
            ("block_id", S, "hash of record, content hash and ordinal"),
            ("kind", S, "heading, paragraph, list_item, table, code, image, page, sheet, slide, note or error"),
            ("ordinal", I32, "contiguous from 0"),
            ("text", S, "text"),
            ("locator", S, "canonical locator string"),
            ("section_path", STRINGS, "headings above"),
            ("links", pa.list_(LINK), "links as written"),
            ("asset_ref", S, "asset id"),
            ("metadata", S, _JSON),
        ),
        _spec(
            "assets",
            "asset_id",
            "parse",
            "Images and other binary parts.",
            ("asset_id", S, "asset"),
            ("ordinal", I32, "order in the document"),
            ("kind", S, "image …"),
            ("locator", S, "canonical locator string"),
            ("media_type", S, "media type"),
            ("href", S, "reference as written"),
            ("alt", S, "alternative text"),
            ("cas_uri", S, "bytes in the object store"),
            ("width", I32, "pixels"),
            ("height", I32, "pixels"),
        ),
        _spec(
            "observations",
            "observation_id",
            "observe",
            "What models saw: OCR and captions, apart.",
            ("observation_id", S, "observation"),
            ("asset_id", S, "asset or page"),
            ("kind", S, "ocr or caption"),
            ("status", S, "ok, no_text, unavailable or failed"),
            ("locator", S, "canonical locator string"),
            ("text", S, "text seen"),
            ("confidence", F64, "0 to 1"),
            ("engine", S, "engine or model"),
            ("engine_version", S, "its version"),
        ),
        _spec(
            "issues",
            "record_id",
            "parse",
            "Tickets (IssueIR).",
            ("record_id", S, "record"),
            ("site", S, "tracker site"),
            ("key", S, "issue key"),
            ("summary", S, "summary"),
            ("description", S, "description"),
            ("metadata", S, _JSON),
            (
                "comments",
                pa.list_(pa.struct([("comment_id", S), ("author", S), ("created", S), ("updated", S), ("text", S)])),
                "comments",
            ),
            (
                "changelog",
                pa.list_(pa.struct([("change_id", S), ("author", S), ("changed_at", S), ("field", S), ("from_value", S), ("to_value", S)])),
                "field changes",
            ),
            (
                "worklogs",
                pa.list_(pa.struct([("worklog_id", S), ("author", S), ("started", S), ("seconds", I64), ("text", S)])),
                "work logged",
            ),
            ("remote_links", pa.list_(pa.struct([("link_id", S), ("relation", S), ("title", S), ("href", S)])), "remote links"),
        ),
        _spec(
            "symbols",
            "symbol_id",
            "parse",
            "Definitions in source code.",
            ("symbol_id", S, "hash of workspace, repository, language, path, kind, qualified name (+ discriminator)"),
            ("name", S, "name"),
            ("qualified_name", S, "dotted name inside the file's module"),
            ("kind", S, "symbol kind"),
            ("language", S, "language"),
            ("path", S, "path of the record"),
            ("signature", S, "signature as written"),
            ("visibility", S, "visibility"),
            ("line", I32, "first line"),
            ("end_line", I32, "last line"),
            ("column", I32, "0-based column in code points"),
            ("char_start", I64, "code points"),
            ("char_end", I64, "code points, exclusive"),
            ("byte_start", I64, "bytes"),
            ("byte_end", I64, "bytes, exclusive"),
            ("parent_id", S, "enclosing symbol"),
            ("receiver", S, "receiver type"),
            ("package", S, "package or module"),
            ("docstring", S, "docstring or leading comment"),
            ("type", S, "declared type or return type as written"),
            ("discriminator", S, "what tells equal names apart"),
            ("parameters", pa.list_(PARAMETER), "parameters as written"),
            ("decorators", STRINGS, "decorators or annotations as written"),
            ("bases", STRINGS, "base types as written"),
        ),
        _spec(
            "code_nodes",
            "node_id",
            "parse",
            "Nodes of the code property graph.",
            ("node_id", S, "hash of symbol and structural position; no line"),
            ("symbol_id", S, "innermost symbol"),
            ("kind", S, "AST node kind"),
            ("ordinal", I32, "ordinal among equal kinds in pre-order inside the symbol"),
            ("line", I32, "first line"),
            ("end_line", I32, "last line"),
            ("column", I32, "0-based column in code points"),
            ("end_column", I32, "0-based end column in code points"),
        ),
        _spec(
            "code_edges",
            "edge_id",
            "parse",
            "Edges of the code property graph as one file alone shows them.",
            ("edge_id", S, "hash of relation, source, target and label"),
            ("source", S, "symbol or node"),
            ("target", S, "symbol or node; null when unresolved or external"),
            ("relation", S, "AST, CFG, REACHING_DEF, CONTAINS, CALLS, IMPORTS …; EXPORTS: what a module or class gives by name"),
            ("confidence", S, "EXTRACTED, INFERRED or AMBIGUOUS"),
            ("rule", S, "rule that decided"),
            ("label", S, "branch kind, variable, name that is bound or given, or position of the call site or base inside its symbol"),
            ("expression", S, "raw text of the call or import"),
            ("candidates", STRINGS, "what it may be: symbols, or names as module:qualified"),
            ("line", I32, "line"),
            ("char_start", I64, "code points"),
            ("char_end", I64, "code points, exclusive"),
            ("excerpt_hash", S, "BLAKE3 of the source text in that range"),
        ),
        _spec(
            "chunks",
            "chunk_id",
            "chunk",
            "Chunks: what is shown, what is embedded, where it came from.",
            ("chunk_id", S, "hash of document, strategy, title, content and occurrence"),
            ("parent_id", S, "innermost parent chunk"),
            ("document_id", S, "record"),
            ("ordinal", I32, "order in the document, parents before children"),
            ("role", S, "leaf or parent"),
            ("title", S, "title"),
            ("summary", S, "first sentences, or docstring"),
            ("content", S, "text shown"),
            ("embedding_text", S, "text embedded; empty for parents"),
            ("text_hash", S, "hash of embedding_text"),
            ("kind", S, "what it holds"),
            ("section_path", STRINGS, "headings above"),
            ("locators", STRINGS, "canonical locator strings"),
            ("boundary_reason", S, "why it ends where it ends"),
            ("strategy", S, "strategy and the fingerprint of its parameters"),
            ("entity_id", S, "symbol or section that it is about"),
            ("evidence_ref", S, "evidence id"),
            ("cas_uri", S, "original"),
            ("token_count", I32, "tokens of embedding_text"),
            ("prefix_shortened", BOOL, "the context prefix was shortened to keep the limit"),
            ("metadata", S, _JSON),
        ),
        _spec(
            "chunk_nodes",
            "node_id",
            "chunk",
            "Structural nodes that chunkers see.",
            ("node_id", S, "node"),
            ("name", S, "name"),
            ("labels", STRINGS, "labels"),
            ("node_type", S, "normalised type"),
            ("source_chunk_ids", STRINGS, "chunks it stands on; may be empty"),
            ("properties", S, _JSON),
        ),
        _spec(
            "chunk_edges",
            "edge_id",
            "chunk",
            "Edges between structural nodes.",
            ("edge_id", S, "edge"),
            ("source", S, "chunk node"),
            ("target", S, "chunk node"),
            ("relation", S, "CONTAINS …"),
            ("locator", S, "evidence: the child's locator"),
            ("excerpt_hash", S, "BLAKE3 of the source's own text there"),
        ),
        _spec(
            "embeddings",
            "chunk_id",
            "embed",
            "One vector a leaf chunk; equal text is computed once (text_hash).",
            ("chunk_id", S, "chunk"),
            ("text_hash", S, "hash of embedding_text"),
            ("model", S, "model name"),
            ("vector", pa.list_(pa.float32()), "unit length"),
            ("truncated", BOOL, "the model cut the text"),
        ),
        _spec(
            "nodes",
            "node_id",
            "project",
            "Canonical nodes.",
            ("node_id", S, "entity id"),
            ("kind", S, "node kind"),
            ("name", S, "name"),
            ("qualified_name", S, "qualified name, or path"),
            ("path", S, "path of the record"),
            ("repository", S, "repository"),
            ("source_keys", STRINGS, "keys under which sources know it"),
            ("properties", S, _JSON),
        ),
        _spec(
            "edges",
            "edge_id",
            "project",
            "Canonical edges: each has evidence.",
            ("edge_id", S, "hash of source, target and relation"),
            ("source", S, "node"),
            ("target", S, "node"),
            ("relation", S, "edge kind"),
            ("confidence", S, "EXTRACTED, INFERRED, AMBIGUOUS or VERIFIED"),
            ("evidence_ids", STRINGS, "at least one"),
            ("rules", STRINGS, "rule by which each evidence shows this edge, in the order of evidence_ids"),
        ),
        _spec(
            "evidence",
            "evidence_id",
            "project",
            "Where an edge was seen.",
            ("evidence_id", S, "hash of source record, locator, excerpt hash and revision"),
            ("source_record_id", S, "record"),
            ("locator", S, "canonical locator string"),
            ("excerpt_hash", S, "BLAKE3 of the excerpt"),
            ("revision", S, "content hash of the source"),
            ("cas_uri", S, "original"),
            ("verification", S, "candidate, verified or failed"),
            ("path", S, "path of the record"),
            ("line", I32, "first line"),
        ),
        _spec(
            "ranks",
            "node_id",
            "project",
            "PageRank over code relations; outside digests and the projection hash.",
            ("node_id", S, "node"),
            ("pagerank", F64, "PageRank"),
        ),
        _spec(
            "events",
            "event_id",
            "any",
            "Audit events of every stage.",
            ("event_id", S, "event"),
            ("stage", S, "stage"),
            ("status", S, "ok, warning or error"),
            ("name", S, "stable name"),
            ("message", S, "short message, never document text"),
            ("path", S, "path of the record"),
            ("ms", F64, "milliseconds (volatile)"),
        ),
        _spec(
            "rejects",
            "reject_id",
            "any",
            "Dead letters.",
            ("reject_id", S, "reject"),
            ("stage", S, "stage"),
            ("class", S, "reject class"),
            ("attempts", I32, "attempts in all"),
            ("error", S, "truncated error"),
            ("retryable", BOOL, "runs again by itself"),
            ("path", S, "path of the record"),
            ("media_type", S, "media type"),
        ),
        _spec(
            "runs",
            "run_id",
            "any",
            "One row a finished run.",
            ("started_at", TS, "start"),
            ("ended_at", TS, "end"),
            ("state", S, "complete, failed or interrupted"),
            ("version", S, "raydex version"),
            ("generation", I64, "generation that it completed"),
            ("summary", S, "JSON: what `index --json` prints"),
            ("config", S, "JSON: the configuration"),
        ),
        _spec(
            "generations",
            "generation_id",
            "any",
            "A complete state of the lake: the versions of all tables that readers may read.",
            ("generation_id", S, "generation"),
            ("number", I64, "grows by one"),
            ("table_versions", pa.map_(S, I64), "pinned Delta version of every table"),
            ("sources", S, "JSON: per source: id, name, repository, commit, dirty paths"),
            ("source_manifest", S, "hash of sorted (record_id, content_hash)"),
            ("projection_hash", S, "hash of sorted nodes, edges and evidence"),
            ("cursors", S, "JSON: store to the generation last loaded and its names"),
            ("fingerprints", pa.map_(S, S), "stage name to fingerprint"),
            ("complete", BOOL, "all stores were loaded and verified"),
        ),
    )
}

PARSE_TABLES = ("documents", "pages", "blocks", "assets", "observations", "issues", "symbols", "code_nodes", "code_edges")
CHUNK_TABLES = ("chunks", "chunk_nodes", "chunk_edges")
EMBED_TABLES = ("embeddings",)
PROJECT_TABLES = ("nodes", "edges", "evidence", "ranks")
RECORD_TABLES = PARSE_TABLES + CHUNK_TABLES + EMBED_TABLES
LOG_TABLES = ("events", "rejects")
