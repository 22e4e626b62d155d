"""What a parser makes of one file. Field names are those of the tables; `ir/rows.py` makes the rows, `ir/printed.py` what is printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from raydex.ir.code import CODE_EDGE_COLUMNS, CODE_NODE_COLUMNS, Columns, Symbol, new_columns
from raydex.ir.document import Asset, Block, Document, Observation, Page
from raydex.ir.event_words import EVENT_WORDS
from raydex.ir.ids import make_id
from raydex.ir.issue import Issue


@dataclass(slots=True)
class Event:
    """An audit event: what a stage noticed, with a short message that never quotes the document's text."""

    event_id: str
    stage: str
    status: str
    name: str
    message: str = ""
    ms: float = 0.0


@dataclass(slots=True)
class Reject:
    """A dead letter: class is a key of `REJECT_CLASSES`; `error` is truncated."""

    reject_id: str
    stage: str
    reject_class: str
    error: str
    retryable: bool
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Member:
    """A part of a container that becomes a record of its own: an attachment, a file of an archive, a ticket of an export.

    `step` is its place in the container and makes the record's id; `name` is what people see, never a path that is opened. `inside`: the
    member is no file of its own but lies there in `data`, the container's own bytes. One that is not to be read has a `reject_class`.
    """

    step: str
    name: str
    data: bytes
    media_type: str = ""
    inside: str = ""
    reject_class: str = ""
    error: str = ""


@dataclass(slots=True)
class ParsedFile:
    """IR of one file. `document` is None when it was rejected; then `rejects` says why.

    `blobs`: asset_id → bytes of the assets that the file holds itself; `members`: those that nobody has taken yet (`ParseRequest.emit`).
    Neither is printed.
    """

    record_id: str
    content_hash: str
    path: str
    media_type: str
    document: Document | None = None
    pages: list[Page] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    assets: list[Asset] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    issue: Issue | None = None
    symbols: list[Symbol] = field(default_factory=list)
    code_nodes: Columns = field(default_factory=lambda: new_columns(CODE_NODE_COLUMNS))
    code_edges: Columns = field(default_factory=lambda: new_columns(CODE_EDGE_COLUMNS))
    events: list[Event] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict, repr=False)
    members: list[Member] = field(default_factory=list, repr=False)
    _told: dict[tuple[str, str], Event] = field(default_factory=dict, init=False, repr=False, compare=False)

    def add_event(self, stage: str, status: str, name: str, message: str = "", ms: float = 0.0) -> None:
        """`status` is ok, warning or error; `name` a stable snake_case word such as no_semantic_blocks.

        Without a message it says what its name means (`EVENT_WORDS`), and gives way to one of its name that has one: a warning is often
        named where the document is made, and told by whoever knows the figures.
        """
        words = EVENT_WORDS.get(name, "")
        told = self._told.get((stage, name))
        if told is not None and not message:
            return
        if told is not None and told.message == words:
            told.status, told.message, told.ms = status, message[:500], ms
            return
        event_id = make_id("evt", self.record_id, self.content_hash, stage, name, str(len(self.events)))
        event = Event(event_id, stage, status, name, (message or words)[:500], ms)
        self._told.setdefault((stage, name), event)
        self.events.append(event)

    def add_reject(self, stage: str, reject_class: str, error: str, attempts: int = 1, *, where: str = "") -> None:
        """`where` names the part of the file that was lost (pages 1-50) where several parts may be lost for one reason."""
        from raydex.ir.errors import REJECT_CLASSES

        reject_id = make_id("rej", self.record_id, stage, reject_class, self.content_hash, *([where] if where else ()))
        self.rejects.append(Reject(reject_id, stage, reject_class, error[:500], REJECT_CLASSES[reject_class].retryable, attempts))


def to_plain(value: Any) -> Any:
    """Records → plain JSON values, recursively (locators as objects, columns as lists of rows)."""
    from dataclasses import fields, is_dataclass

    from raydex.ir.locator import Locator

    if isinstance(value, Locator):
        return value.to_json()
    if is_dataclass(value) and not isinstance(value, type):
        out: dict[str, Any] = {}
        for f in fields(value):
            if f.name in ("blobs", "members", "_told"):
                continue
            item = getattr(value, f.name)
            name = "class" if f.name == "reject_class" else f.name
            if f.name in ("code_nodes", "code_edges") and isinstance(item, dict):
                names = list(item)
                out[name] = [dict(zip(names, row, strict=True)) for row in zip(*item.values(), strict=True)]
            else:
                out[name] = to_plain(item)
        return out
    if isinstance(value, dict):
        return {k: to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    return value
