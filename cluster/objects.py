"""Bytes ↔ a content-addressed object store on a local folder or, by fsspec, a bucket.

The invariant: an object under `cas/` has the content that its name says, or reading it fails; writing one again changes nothing.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from blake3 import blake3

from raydex.cluster.faults import fault_point
from raydex.cluster.files import Content, write_file
from raydex.ir.errors import CapacityError, ConfigError, InputError, StoreError
from raydex.ir.file_range import split_range
from raydex.ir.ids import content_hash as hash_bytes

SCHEME = "cas:"
RESTORE = "Bring it back from a copy, or copy the file that it came from there, if that has not changed: the name is the hash of the bytes"
_HASH = re.compile(r"[0-9a-f]{64}")


class ObjectStore:
    """`root_uri` is a path, a file:// URI or any fsspec URI; `options` go to fsspec. Raises ConfigError when its driver is missing."""

    def __init__(self, root_uri: str | Path, **options: Any) -> None:
        self.uri = str(root_uri)
        self.options = options
        self.files: _Local | _Remote = _Local(self.uri) if _is_local(self.uri) else _Remote(self.uri, options)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_open_store, (self.uri, self.options))

    def put(self, data: bytes, content_hash: str, *, durable: bool = False) -> str:
        """Keeps the bytes and returns their cas_uri; bytes that are there already are not written again.

        Raises ValueError for something that is no content hash, StoreError, CapacityError when the disk is full.
        """
        key = _key(content_hash)
        if self.files.size(key) != len(data):
            self.files.write(key, data, durable)
            fault_point("object.written", content_hash)
        return SCHEME + content_hash

    def put_blocks(self, blocks: Iterable[bytes], content_hash: str, size: int) -> str:
        """As `put`, of bytes that come one by one and are never all in memory. Raises InputError (changed_while_read) when
        they are not what the name says."""
        key = _key(content_hash)
        if self.files.size(key) != size:
            self.files.write(key, _checked(blocks, content_hash), False)
            fault_point("object.written", content_hash)
        return SCHEME + content_hash

    def get(self, cas_uri: str) -> bytes:
        """The bytes, or those of the range that a fragment names, which are not checked. Raises StoreError when they are absent or are not
        what the name says; ValueError for no cas_uri."""
        whole, part = split_range(cas_uri)
        if part is not None:
            return self.read(whole, part.start, part.end - part.start)
        content_hash = cas_uri.removeprefix(SCHEME)
        data = self.files.read(_key(content_hash))
        if hash_bytes(data) != content_hash:
            raise StoreError(
                f"the object has other content than its name says ({len(data)} bytes)",
                place=self.files.place(_key(content_hash)),
                remedy=RESTORE,
            )
        return data

    def read(self, cas_uri: str, start: int, size: int) -> bytes:
        """Bytes from `start` on, at most `size`; unchecked. Raises as `get` does."""
        return self.files.read_range(_key(cas_uri.removeprefix(SCHEME)), start, start + size)

    def exists(self, cas_uri: str) -> bool:
        """Whether there is an object of that name; its content is not checked."""
        return self.files.size(_key(split_range(cas_uri)[0].removeprefix(SCHEME))) is not None


def _open_store(uri: str, options: dict[str, Any]) -> ObjectStore:
    return ObjectStore(uri, **options)


def _is_local(uri: str) -> bool:
    return urlsplit(uri).scheme in ("", "file")


def _checked(blocks: Iterable[bytes], content_hash: str) -> Iterator[bytes]:
    digest = blake3()
    for block in blocks:
        digest.update(block)
        yield block
    if digest.hexdigest() != content_hash:
        message = "the content changed between listing and copying"
        raise InputError(message, reject_class="changed_while_read", remedy="Index again when it is at rest")


def _key(content_hash: str) -> str:
    if not _HASH.fullmatch(content_hash):
        raise ValueError(f"{content_hash[:100]!r} is no content hash")
    return f"cas/{content_hash[:2]}/{content_hash[2:4]}/{content_hash}"


class _Local:
    """Files under a folder, written whole or not at all."""

    def __init__(self, uri: str) -> None:
        self.root = Path(unquote(urlsplit(uri).path) if urlsplit(uri).scheme else uri).absolute()

    def place(self, key: str) -> str:
        return str(self.root / PurePosixPath(key))

    def size(self, key: str) -> int | None:
        try:
            return (self.root / key).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failed(key, error) from error

    def read(self, key: str) -> bytes:
        try:
            return self._inside(key).read_bytes()
        except OSError as error:
            raise self._failed(key, error) from error

    def read_range(self, key: str, start: int, end: int) -> bytes:
        try:
            with open(self._inside(key), "rb", buffering=0) as file:
                return os.pread(file.fileno(), end - start, start)
        except OSError as error:
            raise self._failed(key, error) from error

    def write(self, key: str, data: Content, durable: bool) -> None:
        try:
            write_file(self._inside(key), data, durable=durable)
        except OSError as error:
            raise self._failed(key, error) from error

    def _inside(self, key: str) -> Path:
        path = self.root / key
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise StoreError("a symbolic link leads out of the object store", place=str(path), remedy="Remove the link")
        return path

    def _failed(self, key: str, error: OSError) -> StoreError | CapacityError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return CapacityError(f"the disk is full: {error.strerror}", place=self.place(key), remedy="Free disk space and run again")
        if isinstance(error, FileNotFoundError):
            return StoreError("there is no such object", place=self.place(key), remedy=RESTORE)
        return StoreError(f"the object store failed: {error.strerror or error}", place=self.place(key))


class _Remote:
    """Objects in a bucket; a put is atomic there."""

    def __init__(self, uri: str, options: dict[str, Any]) -> None:
        import fsspec

        try:
            self.disk, root = fsspec.core.url_to_fs(uri, **options)
        except (ImportError, ValueError) as error:
            scheme = urlsplit(uri).scheme
            remedy = "Install the driver: pip install 'raydex[s3]'" if scheme.startswith("s3") else "Use a local folder or s3://"
            raise ConfigError(f"the object store cannot be opened: {error}", place=uri, remedy=remedy) from error
        self.root = str(root).rstrip("/")
        self.errors = _driver_errors()

    def place(self, key: str) -> str:
        return f"{self.root}/{key}"

    def size(self, key: str) -> int | None:
        try:
            return int(self.disk.info(self.place(key))["size"])
        except FileNotFoundError:
            return None
        except self.errors as error:
            raise self._failed(key, error) from error

    def read(self, key: str) -> bytes:
        try:
            return bytes(self.disk.cat_file(self.place(key)))
        except FileNotFoundError as error:
            raise StoreError("there is no such object", place=self.place(key), remedy=RESTORE) from error
        except self.errors as error:
            raise self._failed(key, error) from error

    def read_range(self, key: str, start: int, end: int) -> bytes:
        try:
            return bytes(self.disk.cat_file(self.place(key), start=start, end=end))
        except FileNotFoundError as error:
            raise StoreError("there is no such object", place=self.place(key), remedy=RESTORE) from error
        except self.errors as error:
            raise self._failed(key, error) from error

    def write(self, key: str, data: Content, durable: bool) -> None:
        del durable  # a bucket keeps what it has taken
        try:
            if isinstance(data, bytes):
                self.disk.pipe_file(self.place(key), data)
                return
            parts = iter((bytes(data),) if isinstance(data, memoryview) else data)
            try:
                with self.disk.open(self.place(key), "wb") as file:
                    for part in parts:
                        file.write(part)
            except InputError:
                self.disk.rm_file(self.place(key))  # it is not what its name says
                raise
        except self.errors as error:
            raise self._failed(key, error) from error

    def _failed(self, key: str, error: Exception) -> StoreError:
        return StoreError(f"the object store failed: {type(error).__name__}: {error}", place=self.place(key))


def _driver_errors() -> tuple[type[Exception], ...]:
    """What the drivers raise when a bucket does not answer as it should; most is OSError already."""
    errors: list[type[Exception]] = [OSError]
    for module, names in (("botocore.exceptions", ("BotoCoreError", "ClientError")), ("aiohttp", ("ClientError",))):
        try:
            found = import_module(module)
        except ImportError:
            continue
        errors += [getattr(found, name) for name in names]
    return tuple(errors)
