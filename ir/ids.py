"""Stable identifiers: type prefix + first 32 hex digits of BLAKE3 over length-prefixed UTF-8 fields (contracts 1).

The invariant: an id is made of what a thing *is* (where it belongs, what it is called), never of a line, a commit or a run,
so that moving code or indexing again gives the same id (seed 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from blake3 import blake3


def make_id(prefix: str, *fields: str) -> str:
    """`prefix_` + 32 hex digits over the fields; ("a", "bc") and ("ab", "c") differ."""
    return f"{prefix}_{digest(*fields)[:32]}"


def digest(*fields: str) -> str:
    """Full BLAKE3 hex digest over length-prefixed UTF-8 fields."""
    return blake3(b"".join([_prefixed(field) for field in fields])).hexdigest()


def digest_many(fields: Iterable[str]) -> str:
    """The same of fields that come one by one and are not kept."""
    total = blake3()
    for field in fields:
        total.update(_prefixed(field))
    return total.hexdigest()


@lru_cache(maxsize=4096)
def _numbered(ordinal: int) -> bytes:
    return _prefixed(str(ordinal))


def _prefixed(field: str) -> bytes:
    raw = field.encode("utf-8", "surrogatepass")
    return len(raw).to_bytes(8, "little") + raw


def content_hash(data: bytes) -> str:
    """Full BLAKE3 hex digest of bytes: the key of the content in the object store."""
    return blake3(data).hexdigest()


def text_hash(text: str) -> str:
    """BLAKE3 hex digest of a text's UTF-8 bytes, 32 digits: the key of an embedding (contracts 16)."""
    return blake3(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def source_id(workspace: str, name: str) -> str:
    return make_id("src", workspace, name)


def repository_id(workspace: str, repository: str) -> str:
    return make_id("rep", workspace, repository)


def record_id(workspace: str, source: str, key: str) -> str:
    """A record is a place: workspace, source name and path (or external key). Content does not count."""
    return make_id("rec", workspace, source, key)


def person_id(address: str) -> str:
    """A person is an address in lower case; names do not count (contracts 25)."""
    return make_id("nod", "person", address.strip().lower())


def ticket_id(site: str, key: str) -> str:
    """A ticket is its tracker's site and its key, in whichever export it lies (contracts 25)."""
    return make_id("nod", "ticket", site, key)


def page_id(record: str, content: str, number: int) -> str:
    return make_id("pag", record, content, str(number))


def block_id(record: str, content: str, ordinal: int) -> str:
    return make_id("blk", record, content, str(ordinal))


def block_ids(record: str, content: str) -> Callable[[int], str]:
    """`block_id` by ordinal for one document, whose common fields are encoded once."""
    common = _prefixed(record) + _prefixed(content)

    def of(ordinal: int) -> str:
        return f"blk_{blake3(common + _numbered(ordinal)).hexdigest(16)}"

    return of


def asset_id(record: str, content: str, ordinal: int) -> str:
    return make_id("ast", record, content, str(ordinal))


def code_symbol_id(
    workspace: str, repository: str, language: str, path: str, kind: str, qualified_name: str, discriminator: str = ""
) -> str:
    """Seed 2's key. `discriminator` tells equal names apart: parameter types, or an ordinal where a language lets a name recur."""
    return make_id("sym", workspace, repository, language, path, kind, qualified_name, discriminator)


def code_node_id(symbol: str, kind: str, ordinal: int) -> str:
    """A CPG node: its symbol and its position inside, (kind, ordinal among equal kinds in pre-order) (contracts 6)."""
    return make_id("nod", symbol, kind, str(ordinal))


def code_edge_id(relation: str, source: str, target: str, label: str) -> str:
    """`label` is the branch kind, the variable, or the position of the call site inside its symbol (contracts 7)."""
    return make_id("edg", relation, source, target, label)


def edge_id(source: str, target: str, relation: str) -> str:
    """A canonical edge (contracts 7)."""
    return make_id("edg", source, target, relation)


def evidence_id(source_record: str, locator: str, excerpt_hash: str, revision: str) -> str:
    return make_id("evd", source_record, locator, excerpt_hash, revision)


def chunk_id(document: str, strategy: str, title: str, content: str, occurrence: int) -> str:
    """Seed 3's docID:title:content, with the strategy and the occurrence among equals in ordinal order (contracts 30)."""
    return make_id("chk", document, strategy, title, content, str(occurrence))
