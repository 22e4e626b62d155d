"""Files of an object store by fsspec URI: listed with version or ETag and size, so that nothing unchanged is downloaded (contracts 4).

Credentials come from the environment, never from the URI, since URIs are stored. A listing asks once a folder, and holds one folder at
a time.

Invariant: two listings between which an object did not change give it the same change key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from blake3 import blake3

from raydex.ir.errors import ConfigError, InputError, StoreError
from raydex.jobs.listing import Filter, Listed

BLOCK_BYTES = 8 << 20
PAGES = ("http", "https")  # here every folder is a page too
# what stores call the thing that changes with every write, best first
VERSION_FIELDS = ("VersionId", "version_id", "generation", "ETag", "etag", "e_tag", "md5Hash", "content_md5")
TIME_FIELDS = ("LastModified", "last_modified", "mtime", "updated", "created")


def open_object_source(spec: str) -> tuple[str, str]:
    """(root URI, name): the last folder of the URI, else its bucket. The URI of one object is a source of one file, named by its folder.

    Raises ConfigError for what fsspec cannot open.
    """
    parts = urlsplit(spec)
    if "@" in parts.netloc and parts.scheme not in ("abfs", "abfss"):
        raise ConfigError(
            "a URI must not hold credentials",
            place=f"{parts.scheme}://",
            remedy="Put them into the environment, as the store's own tools read them",
        )
    root = spec.rstrip("/")
    system, path = _open(root)
    single = not spec.endswith("/") and _is_object(system, path, parts.scheme)
    name = unquote((root.rpartition("/")[0] if single else root).partition("://")[2].rpartition("/")[2]) or parts.netloc
    if not name:
        raise ConfigError("this URI has no name", place=spec, remedy="Give the source one with --name")
    return root, name


def list_objects(root: str, chosen: Filter) -> Iterator[Listed]:
    """Objects below the root in the order of their paths; the root itself when it is an object, whatever the filter says.

    Raises InputError (unreadable) when the root cannot be listed.
    """
    system, base = _open(root)
    base = base.rstrip("/")
    scheme, _, rest = root.partition("://")
    root_uri = f"{scheme}://{_quote(rest)}"
    stack: list[Iterator[tuple[str, str, dict[str, Any]]]] = []
    at: str | None = base
    while at is not None or stack:
        if at is not None:
            try:
                stack.append(_children(system, at, base))
            except _errors(scheme) as error:
                refusal = InputError(_reason(error), reject_class="unreadable", place=root, remedy="Check the URI and the credentials")
                if not stack:
                    raise refusal from error
                path = at[len(base) :].lstrip("/")
                yield Listed(path, f"{root_uri}/{_quote(path)}", 0, "", refusal)
            at = None
        if not stack:
            return
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
            continue
        path, key, info = entry
        folder = info.get("type") == "directory"
        if not path:
            yield Listed(base.rpartition("/")[2], root_uri, int(info.get("size") or 0), change_key(info))
            continue
        if chosen.drops(path, path.rpartition("/")[2], folder):
            continue
        if folder:
            at = key
        else:
            yield Listed(path, f"{root_uri}/{_quote(path)}", int(info.get("size") or 0), change_key(info))


def _children(system: Any, folder: str, base: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(path below the base, key, what the store says) of a folder, sorted as whole paths; the path of the base itself is empty."""
    found = []
    for info in system.ls(folder, detail=True):
        key = info["name"].rstrip("/") if info.get("type") == "directory" else info["name"]
        if key.rstrip("/") == folder and (key != base or info.get("type") == "directory"):
            continue  # the folder itself, or its marker object
        path = key[len(base) :].removeprefix("/")
        found.append((path, key, info))
    found.sort(key=lambda item: item[0] + "/" if item[2].get("type") == "directory" else item[0])
    return iter(found)


def _is_object(system: Any, path: str, scheme: str) -> bool:
    """Whether a path is one object and no folder. A store that does not answer now says so when it is listed."""
    try:
        return (scheme in PAGES or system.isfile(path)) and [info["name"] for info in system.ls(path, detail=True)] == [path]
    except _errors(scheme):
        return False


def change_key(info: dict[str, Any]) -> str:
    """Version or ETag and size; the time of the last change where a store gives neither; empty where it tells nothing."""
    for name in VERSION_FIELDS + TIME_FIELDS:
        value = info.get(name)
        if value not in (None, "", "null"):
            text = value.isoformat() if hasattr(value, "isoformat") else str(value).strip('"')
            return f"{text}:{info.get('size')}"
    return ""


def read_object(uri: str, start: int | None = None, end: int | None = None) -> bytes:
    """The bytes there, or a range of them. Raises OSError."""
    scheme = uri.partition("://")[0]
    system, path = _open(_plain(uri))
    try:
        data: bytes = system.cat_file(path, start=start, end=end)
    except _errors(scheme) as error:
        raise error if isinstance(error, OSError) else OSError(_reason(error)) from error
    return data


def hash_object(one: Listed) -> tuple[Listed, str | InputError]:
    """The digest of an object read in blocks, under the change key that it was opened with. Raises OSError."""
    scheme = one.uri.partition("://")[0]
    system, path = _open(_plain(one.uri))
    digest = blake3()
    count = 0
    try:
        with system.open(path, "rb", block_size=BLOCK_BYTES, cache_type="readahead") as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
                count += len(block)
            info = getattr(file, "details", None) or {}
    except _errors(scheme) as error:
        raise error if isinstance(error, OSError) else OSError(_reason(error)) from error
    key = change_key(info) if isinstance(info, dict) else ""
    if (key and one.change_key and key != one.change_key) or count != one.size:
        return replace(one, size=count, change_key=key or one.change_key), digest.hexdigest()
    return one, digest.hexdigest()


def _open(uri: str) -> tuple[Any, str]:
    """fsspec file system and path, without cached listings."""
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(uri, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        scheme = uri.partition("://")[0]
        extra = "Install raydex[s3]" if scheme in ("s3", "s3a") else f"Install the fsspec package for {scheme}"
        raise ConfigError(f"{scheme}:// cannot be opened: {error}", remedy=extra) from error
    if not hasattr(system, "ls"):
        raise StoreError(f"{type(system).__name__} cannot list")
    return system, path


def _errors(scheme: str) -> tuple[type[Exception], ...]:
    """What the store's client raises."""
    if scheme in ("s3", "s3a"):
        from botocore.exceptions import BotoCoreError, ClientError

        return (OSError, BotoCoreError, ClientError)
    if scheme in PAGES:
        from aiohttp import ClientError as HttpError

        return (OSError, HttpError)
    return (OSError,)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _quote(path: str) -> str:
    return quote(path, safe="/:~+=@,!")


def _plain(uri: str) -> str:
    """The URI as fsspec takes it: keys as they are."""
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{unquote(rest)}"
