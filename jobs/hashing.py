"""Files of a listing → their BLAKE3 digests, in order, by a few threads.

Invariant: a digest stands for one state of the file: what changes while it is read is read once more, then refused.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from blake3 import blake3

from raydex.ir.errors import InputError
from raydex.jobs.listing import FILE_SCHEME, Listed, change_key, path_of, unreadable

BLOCK_BYTES = 1 << 20
HASH_GROUP = 64


def hash_files(
    listed: Iterable[Listed], threads: int = 4, known: Mapping[str, str] | None = None
) -> Iterator[tuple[Listed, str | InputError]]:
    """Full BLAKE3 hex digest of each file, in order; a failure stands in its place. Memory holds a few groups of names, and one block a
    thread.

    `known` maps path + NUL + change key to a digest that is taken unread. A file that changes while it is read is read once more, then it
    is `changed_while_read`. What comes back carries the size and change key that were read, not those of the listing.
    """
    known = known or {}
    waiting: deque[Future[list[tuple[Listed, str | InputError]]]] = deque()
    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="hash") as pool:
        for group in _groups(listed):
            waiting.append(pool.submit(_hash_group, group, known))
            if len(waiting) > 2 * threads:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def _groups(listed: Iterable[Listed]) -> Iterator[list[Listed]]:
    group: list[Listed] = []
    room = 16 * BLOCK_BYTES
    for one in listed:
        group.append(one)
        room -= one.size
        if len(group) >= HASH_GROUP or room <= 0:
            yield group
            group = []
            room = 16 * BLOCK_BYTES
    if group:
        yield group


def _hash_group(group: list[Listed], known: Mapping[str, str]) -> list[tuple[Listed, str | InputError]]:
    return [_hash_one(one, known) for one in group]


def _hash_one(one: Listed, known: Mapping[str, str]) -> tuple[Listed, str | InputError]:
    if one.error is not None:
        return one, one.error
    held = known.get(f"{one.path}\0{one.change_key}") if known and one.change_key else None
    if held is not None:
        return one, held
    try:
        if not one.uri.startswith(FILE_SCHEME):
            from raydex.jobs.object_sources import hash_object

            return hash_object(one)
        for _ in range(2):
            digest, size, key = _hash_file(path_of(one.uri))
            if digest:
                return (one if key == one.change_key else replace(one, size=size, change_key=key)), digest
    except OSError as error:
        return one, unreadable(one.path, error)
    message = "the file changed while it was read, twice"
    return one, InputError(message, reject_class="changed_while_read", place=one.path, remedy="Index again when it is at rest")


def _hash_file(path: bytes) -> tuple[str, int, str]:
    """(digest, size, change key); the digest is empty when the file changed meanwhile. Read in blocks: a mapped file that is cut kills."""
    with open(path, "rb", buffering=0) as file:
        before = os.fstat(file.fileno())
        digest = blake3()
        count = 0
        while block := file.read(min(BLOCK_BYTES, max(before.st_size - count, 0) + 1)):
            digest.update(block)
            count += len(block)
        after = os.fstat(file.fileno())
    key = change_key(after)
    same = count == after.st_size and key == change_key(before)
    return (digest.hexdigest() if same else ""), after.st_size, key
