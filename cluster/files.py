"""Bytes → local files that are whole or absent, whatever kills the writer.

A new file is written without a name (O_TMPFILE) and linked in when complete, so that a killed writer leaves nothing behind; where the
file system lacks that, a named temporary file stands in. `durable` also survives a power cut.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from raydex.ir.errors import ConfigError

Content: TypeAlias = "bytes | memoryview | Iterable[bytes]"
MODE = 0o644
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL, errno.ENOSYS)


def local_folder(root: str | Path) -> Path:
    """A path or file:// URI → absolute path. Raises ConfigError for other schemes, and for names that Delta's engine would decode."""
    scheme = urlsplit(str(root)).scheme
    if scheme not in ("", "file"):
        raise ConfigError(f"tables cannot live on {scheme}:// yet", place=str(root), remedy="Use a local folder")
    path = os.path.abspath(unquote(urlsplit(str(root)).path) if scheme else root)
    if unquote(path) != path or "\\" in path:
        raise ConfigError(
            "the folder's path holds a backslash or a percent sign with two digits", place=path, remedy="Use a folder of another name"
        )
    return Path(path)


def write_file(path: Path, data: Content, *, durable: bool = True, replace: bool = True) -> None:
    """Writes or replaces `path` (its folder is made). `replace=False` raises FileExistsError when it is there. Raises OSError, and what
    parts of the content raise that come one by one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = _open_unnamed(path.parent)
    if handle is None:
        _write_named(path, data, durable, replace)
        return
    try:
        _write_all(handle, data)
        if durable:
            os.fsync(handle)
        source = f"/proc/self/fd/{handle}"
        try:
            os.link(source, path, src_dir_fd=handle)
        except FileExistsError:
            if not replace:
                raise
            spare = path.parent / f".{uuid.uuid4().hex}.tmp"
            os.link(source, spare, src_dir_fd=handle)
            _rename(spare, path)
    finally:
        os.close(handle)
    if durable:
        sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Waits until the file's bytes are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Waits until the folder's entries are on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _open_unnamed(folder: Path) -> int | None:
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None:
        return None
    try:
        return os.open(folder, flag | os.O_WRONLY, MODE)
    except OSError as error:
        if error.errno in _NO_UNNAMED:
            return None
        raise


def _write_named(path: Path, data: Content, durable: bool, replace: bool) -> None:
    spare = path.parent / f".{uuid.uuid4().hex}.tmp"
    handle = os.open(spare, os.O_CREAT | os.O_EXCL | os.O_WRONLY, MODE)
    try:
        try:
            _write_all(handle, data)
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        if not replace:
            os.link(spare, path)
            os.unlink(spare)
    except BaseException:
        os.unlink(spare)
        raise
    if replace:
        _rename(spare, path)
    if durable:
        sync_folder(path.parent)


def _write_all(handle: int, data: Content) -> None:
    for part in (data,) if isinstance(data, (bytes, memoryview)) else data:
        view = memoryview(part)
        while view:
            view = view[os.write(handle, view) :]


def _rename(spare: Path, path: Path) -> None:
    try:
        os.replace(spare, path)
    except OSError:
        os.unlink(spare)
        raise
