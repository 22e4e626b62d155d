"""Documents → IR tables in a child process that a hostile document cannot outlive (contracts 19 and 21; reliability P1-P4).

`ParseChild` owns one warm child, which parses documents in turn; a crash, a hang or a burst of memory costs that document alone. The child
is replaced after each of these, after 200 documents, and when a parser left something behind. Replacing is cheap (a fork of the nursery in
`isolation_child`, not a new interpreter), so a run with many bad documents stays fast.

Invariant: every request gets exactly one reply, in order; a document that fails twice gets a reject row, and nothing that a child sends is
ever unpickled.
"""

from __future__ import annotations

import json
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias

import pyarrow as pa

from raydex.ir.errors import REJECT_CLASSES, StoreError
from raydex.ir.ids import content_hash
from raydex.ir.rows import Stamp, parse_tables
from raydex.ir.tables import TABLES
from raydex.jobs.isolation_child import REQUEST
from raydex.jobs.nursery import OWN_PARSERS, ChildKind, Failure, Lease, Nursery
from raydex.kernels.limits import Limits
from raydex.kernels.parse import PARSERS, rejected
from raydex.kernels.request import ParseRequest

TARGET = "raydex.kernels.parse:parse"
ALWAYS_LOADED = ("raydex.ir.rows", "raydex.cluster.faults", "raydex.kernels.parse")
DOCUMENTS = 200
TRIES = 2
AHEAD_DOCUMENTS = 16
AHEAD_BYTES = 4_000_000
GARBLED = Failure("crash", "the reply of the parser process is not understood")
PART_KEYS = {"member": ("step", "name", "media_type", "inside", "reject_class", "error"), "asset": ("asset_id",)}


Keep: TypeAlias = "Callable[[bytes], str]"


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes from inside a file: a member (fields as those of `ir.parsed.Member`) or an asset (`asset_id`); `uri` is where the owner keeps
    them."""

    kind: str
    uri: str
    content_hash: str
    size: int
    step: str = ""
    name: str = ""
    media_type: str = ""
    inside: str = ""
    reject_class: str = ""
    error: str = ""
    asset_id: str = ""


@dataclass(slots=True)
class ParseReply:
    """Rows of one document by table name, and what it holds of other files. `reject_class` is set when the process failed, not when the
    parser rejected."""

    tables: dict[str, pa.Table]
    ms: float
    attempts: int = 1
    reject_class: str = ""
    parts: list[Part] = field(default_factory=list)


@dataclass(slots=True)
class _Job:
    request: ParseRequest
    stamp: Stamp
    tries: int = 0
    parts: list[Part] = field(default_factory=list)

    def frames(self) -> list[memoryview]:
        question = pickle.dumps((replace(self.request, data=b""), self.stamp), 5)
        head = REQUEST.pack(len(question), len(self.request.data)) + question
        if len(self.request.data) < 65536:
            return [memoryview(head + self.request.data)]
        return [memoryview(head), memoryview(self.request.data)]


class ParseChild:
    """One child process that parses; use it from one thread at a time, and close it (or use it as a context manager).

    `limits` holds for every request when it is given, else each request's own do. `target` names the function ParseRequest → ParsedFile;
    tests name their own. `keep` stores bytes from inside a file and returns where; without it they are dropped. `network` says how the
    child is kept off the network, once it runs. `kind` is for parsers with needs of their own; `modules` are loaded before it forks.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        target: str = TARGET,
        tries: int = TRIES,
        documents: int = DOCUMENTS,
        keep: Keep | None = None,
        kind: ChildKind = OWN_PARSERS,
        modules: Iterable[str] = (),
    ) -> None:
        self.limits = limits
        self.keep = keep
        self.target = target
        self.tries = tries
        self.documents = documents
        self.kind = kind
        self.network = ""
        self._modules: list[str] = [*ALWAYS_LOADED, target.partition(":")[0], *modules]
        self._nursery: Nursery | None = None
        self._lease: Lease | None = None

    def __enter__(self) -> ParseChild:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the child and its nursery, and waits for both."""
        self._drop()
        if self._nursery is not None:
            self._nursery.close()
            self._nursery = None

    def parse(self, request: ParseRequest, stamp: Stamp) -> ParseReply:
        """Rows of one document."""
        return next(self.parse_many([(request, stamp)]))

    def parse_many(self, items: Iterable[tuple[ParseRequest, Stamp]]) -> Iterator[ParseReply]:
        """One reply an item, in order. Documents travel ahead while the child works, each under its own limits.

        Raises StoreError when no child can be started.
        """
        source = iter(items)
        jobs: deque[_Job] = deque()
        room = True
        try:
            while True:
                while room and len(jobs) < AHEAD_DOCUMENTS and (not jobs or sum(len(j.request.data) for j in jobs) < AHEAD_BYTES):
                    item = next(source, None)
                    if item is None:
                        room = False
                    else:
                        jobs.append(self._job(*item))
                if not jobs:
                    return
                reply = self._answer(jobs)
                jobs.popleft()
                yield reply
        finally:
            if jobs:
                self._drop()

    def _job(self, request: ParseRequest, stamp: Stamp) -> _Job:
        return _Job(request if self.limits in (None, request.limits) else replace(request, limits=self.limits), stamp)

    def _answer(self, jobs: deque[_Job]) -> ParseReply:
        """The reply to the first job; the others may be under way already."""
        job = jobs[0]
        while True:
            lease = self._lease or self._spawn(jobs)
            while lease.asked < len(jobs):
                lease.ask(jobs[lease.asked].frames())
            answer = lease.answer(job.request.limits.seconds, job.request.limits.memory_bytes)
            if isinstance(answer, Failure):
                self._drop()
            else:
                head, body = answer
                said = _said(head)
                if said is not None and "part" in said:
                    if self._take(job, said, body):
                        continue
                    said = None
                lease.settle()
                reply, failure, last = _decode(said, body)
                if last or failure is not None:
                    self._drop()
                if reply is not None:
                    reply.attempts = job.tries + 1
                    reply.parts = job.parts
                    return reply
                answer = failure or GARBLED
            job.tries += 1
            job.parts = []
            if job.tries >= self.tries or answer.reject_class == "internal":
                return _reject(job, answer)

    def _take(self, job: _Job, said: dict[str, Any], body: memoryview) -> bool:
        """Keeps a part; whether it is one that can be."""
        try:
            names = {key: str(said[key]) for key in PART_KEYS[said["part"]]}
        except (KeyError, TypeError):
            return False
        if names.get("reject_class", "") not in ("", *REJECT_CLASSES):
            return False
        limits = job.request.limits
        if sum(part.size for part in job.parts) + len(body) > limits.members_bytes or len(job.parts) >= limits.members + limits.blocks:
            return False
        if self.keep is not None:
            data = bytes(body)
            job.parts.append(Part(said["part"], self.keep(data), content_hash(data), len(data), **names))
        return True

    def _spawn(self, jobs: Iterable[_Job]) -> Lease:
        if self._nursery is not None and not self._nursery.alive():
            self._nursery.close()
            self._nursery = None
        if self._nursery is None:
            self._nursery = Nursery(self.kind)
            self.network = self._nursery.network
        if self.target == TARGET:
            for job in jobs:
                module = PARSERS.get(job.request.media_type, ("",))[0]
                if module and module not in self._modules:
                    self._modules.append(module)
        try:
            self._lease = Lease(self._nursery, {"target": self.target, "documents": self.documents, "modules": self._modules})
        except StoreError:
            self._nursery.close()
            self._nursery = None
            raise
        return self._lease

    def _drop(self) -> None:
        if self._lease is not None:
            self._lease.close()
            self._lease = None


@cache
def _schema(name: str) -> pa.Schema:
    return TABLES[name].schema


def _said(head: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(head)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def _decode(said: dict[str, Any] | None, body: memoryview) -> tuple[ParseReply | None, Failure | None, bool]:
    """Reply or failure, and whether the child ends after it. Whatever is not understood is a crash: the child is not trusted."""
    if said is None:
        return None, GARBLED, True
    try:
        last = bool(said["last"])
        if said.get("failed") in ("memory", "internal"):
            return None, Failure(said["failed"], str(said["error"])[:400]), True
        tables: dict[str, list[pa.RecordBatch]] = {}
        at = 0
        for name, size in said["tables"]:
            batch = pa.ipc.read_record_batch(pa.py_buffer(body[at : at + size]), _schema(name))
            batch.validate(full=True)
            tables.setdefault(name, []).append(batch)
            at += size
        ms = float(said["ms"])
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, pa.ArrowException, OSError):
        return None, GARBLED, True
    return ParseReply({name: pa.Table.from_batches(batches) for name, batches in tables.items()}, ms), None, last


def _reject(job: _Job, failure: Failure) -> ParseReply:
    message = failure.error if job.tries == 1 else f"{failure.error}; tried {job.tries} times"
    parsed = rejected(job.request, failure.reject_class, message, job.tries)
    return ParseReply(parse_tables(parsed, job.stamp), 0.0, job.tries, failure.reject_class)
