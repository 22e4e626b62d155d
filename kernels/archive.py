"""Archives (zip, tar, and gz, bz2, xz around a tar or one file) → a record that lists its members, each a child record.

Nothing is written anywhere: members are read one after another and a name is only a name. The invariant: what the directory of a zip
claims is judged before any of it is unpacked; what unpacks is counted while it is read; links and devices are refused; a member that is
broken, encrypted or over a limit costs itself, and what all members break together (their number, their bytes, overlaps) the archive.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

from raydex.ir.errors import InputError, LimitError
from raydex.ir.locator import Locator
from raydex.ir.parsed import ParsedFile
from raydex.kernels.drafts import Draft, finish
from raydex.kernels.members import Members
from raydex.kernels.package import BROKEN_ZIP, check_sum, member_fault, ratio_fault
from raydex.kernels.request import ParseRequest
from raydex.kernels.system_files import is_system_file

PARSER_VERSION = "2"
_BROKEN = (*BROKEN_ZIP, tarfile.TarError, lzma.LZMAError)
_ENCRYPTED = 0x1
_UTF8_NAME = 0x800
_XZ_MEMORY = 256_000_000
_SUFFIXES = (".gz", ".bz2", ".xz", ".gzip", ".z")
_TAR_AT, _TAR = 257, b"ustar"
_PIECE = 1 << 16  # bytes that a decoder takes or gives at once
_AHEAD = 1 << 17  # packed bytes that the standard library's decoders read ahead, at most


def parse_zip(request: ParseRequest) -> ParsedFile:
    """Raises InputError: invalid_input, bomb, too_deep."""
    listing = Listing(request, "zip")
    try:
        archive = zipfile.ZipFile(io.BytesIO(request.data))
    except (*_BROKEN, NotImplementedError) as error:
        raise InputError(f"the archive is no readable zip: {error}", reject_class="invalid_input", place=request.path) from error
    entries = archive.infolist()
    faults = [member_fault(entry, request.limits) for entry in entries]
    check_sum(entries, [entry for entry, fault in zip(entries, faults, strict=True) if not fault], request.limits, request.path)
    check_overlap(entries, request.path)
    for entry, fault in zip(entries, faults, strict=True):
        if fault:
            listing.refuse(zip_name(entry), "bomb", fault)
        elif not entry.filename.endswith("/") or entry.file_size:
            _add_zipped(listing, archive, entry)
    return listing.finish()


def parse_tar(request: ParseRequest) -> ParsedFile:
    """Raises InputError: invalid_input, bomb, too_deep."""
    return _read_tar(request, None)


def parse_compressed(request: ParseRequest) -> ParsedFile:
    """gz, bz2 or xz: a tar inside is read as the archive that it is, any other content is the one member. Raises InputError:
    invalid_input, bomb, too_deep."""
    source = Counted(request)
    head, error = _read(source, _TAR_AT + len(_TAR))
    if head[_TAR_AT:] == _TAR:
        return _read_tar(request, Counted(request))
    listing = Listing(request, "compressed")
    rest = b""
    if not error:
        rest, error = _read(source, listing.members.room + 1 - len(head))
    if error and not head:
        raise InputError(f"the content does not unpack: {error}", reject_class="invalid_input", place=request.path)
    name = request.path.rpartition("/")[2]
    shown = next((name[: -len(end)] for end in _SUFFIXES if name.lower().endswith(end) and len(name) > len(end)), name)
    data = head + rest
    if len(data) > listing.members.room:
        listing.refuse(shown, "bomb", listing.members.size_fault(len(data), more=True))
    else:
        listing.add(shown, data)
    if error:
        listing.lose(f"the content ends after {len(head) + len(rest)} bytes: {error}")
    return listing.finish()


class Listing:
    """An archive while it is read: its members as children, and a list of their names as its blocks."""

    def __init__(self, request: ParseRequest, parser: str) -> None:
        self.request = request
        self.parser = parser
        self.members = Members(request)
        self.members.check_nesting()
        self.drafts: list[Draft] = []
        self.names: Counter[str] = Counter()
        self.places: set[str] = set()
        self.entries = 0
        self.left_out = 0
        self.warnings: list[str] = []
        self.events: list[tuple[str, str]] = []

    def count(self) -> None:
        """Raises LimitError (bomb) above `limits.members` entries, folders included."""
        self.entries += 1
        if self.entries > self.request.limits.members:
            message = f"more entries than limits.members ({self.request.limits.members})"
            raise LimitError(message, reject_class="bomb", place=self.request.path)

    def leaves_out(self, name: str) -> bool:
        """Whether a member is none of the user's files; it is counted."""
        found = is_system_file(name)
        self.left_out += found
        return found

    def add(self, name: str, data: bytes) -> None:
        """A member with its content."""
        step = self._note(name, {"bytes": len(data)})
        member = self.members.add(step, name, data)
        if member.reject_class:
            self.drafts[-1].metadata["refused"] = member.reject_class

    def refuse(self, name: str, reject_class: str, error: str) -> None:
        """A member that is not read."""
        step = self._note(name, {"refused": reject_class})
        self.members.refuse(step, name, reject_class, error)

    def _note(self, name: str, about: dict[str, Any]) -> str:
        """The member's block; its place: its name, and its number among the members of that name."""
        place = name
        while place in self.places:
            self.names[name] += 1
            place = f"{name}#{self.names[name] + 1}"
        self.places.add(place)
        self.drafts.append(Draft("list_item", 0, 0, name, {"level": 0, "ordered": False, **about}, place={"member": place}))
        return str(Locator(member=place))

    def lose(self, message: str) -> None:
        """What of the archive could not be read."""
        self.warnings.append("truncated_archive")
        self.events.append(("truncated_archive", message))

    def finish(self) -> ParsedFile:
        parsed = finish(
            self.request,
            None,
            self.drafts,
            parser=self.parser,
            parser_version=PARSER_VERSION,
            warnings=tuple(self.warnings),
            metadata={"members": self.members.count},
        )
        parsed.members = self.members.kept
        for name, message in self.events:
            parsed.add_event("parse", "error", name, message)
        if self.left_out:
            message = f"{self.left_out} members are files of an operating system (__MACOSX/, ._*, .DS_Store, Thumbs.db, desktop.ini)"
            parsed.add_event("parse", "ok", "system_files_left_out", message)
        return parsed


def check_overlap(entries: list[zipfile.ZipInfo], place: str) -> None:
    """Raises InputError (bomb) where two members share bytes of the file: what a directory may only say to expand one of them often."""
    end = -1
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset < end:
            raise InputError("members overlap in the file", reject_class="bomb", place=place)
        # the local header has at least 30 bytes and a name
        end = entry.header_offset + 30 + entry.compress_size


def _add_zipped(listing: Listing, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    name = zip_name(entry)
    if listing.leaves_out(name):
        return
    if stat.S_ISLNK(entry.external_attr >> 16):
        listing.refuse(name, "refused", "a symbolic link is not followed")
        return
    if entry.flag_bits & _ENCRYPTED:
        listing.refuse(name, "encrypted", "the member is encrypted")
        return
    room = listing.members.room
    try:
        with archive.open(entry) as source:
            data = source.read(room + 1)
    except NotImplementedError as error:
        listing.refuse(name, "unsupported_media_type", f"the member's compression is not supported: {error}")
    except (*_BROKEN, RuntimeError) as error:
        listing.refuse(name, "invalid_input", f"the member does not unpack: {str(error)[:200]}")
    else:
        listing.add(name, data)


def zip_name(entry: zipfile.ZipInfo) -> str:
    """The name as its writer meant it: UTF-8 that is not declared is common. Without lone surrogates, whatever it holds."""
    name = entry.orig_filename
    if not entry.flag_bits & _UTF8_NAME and not name.isascii():
        try:
            return name.encode("cp437").decode("utf-8")
        except UnicodeError:
            pass
    return _whole(name)


def _whole(name: str) -> str:
    try:
        name.encode("utf-8")
        return name
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape").decode("cp1252", "replace")


def _read_tar(request: ParseRequest, packed: Counted | None) -> ParsedFile:
    """A tar as it is, or one that is `packed`."""
    listing = Listing(request, "tar")
    source = packed or io.BytesIO(request.data)
    try:
        with tarfile.open(fileobj=source, mode="r|", errorlevel=0) as archive:  # type: ignore[call-overload]
            for entry in _entries(archive):
                listing.count()
                fault = _add_from_tar(listing, archive, entry, packed)
                if fault and packed is not None and packed.count + entry.size > request.limits.members_bytes:
                    listing.lose(f"members after number {len(listing.drafts)} are not read: they lie behind a member over a limit: {fault}")
                    break
    except InputError:
        raise
    except _BROKEN as error:
        if not listing.drafts:
            raise InputError(f"the archive is no readable tar: {error}", reject_class="invalid_input", place=request.path) from error
        listing.lose(f"members after number {len(listing.drafts)} are lost: {str(error)[:200]}")
    return listing.finish()


def _entries(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Entries up to the mark of the end. The module's own iteration ends at a broken header as if that were the end."""
    opened: Any = archive
    entry = opened.firstmember
    while entry is not None:
        yield entry
        opened.members.clear()
        if opened.offset != opened.fileobj.tell():
            opened.fileobj.seek(opened.offset - 1)
            if not opened.fileobj.read(1):
                raise tarfile.ReadError("unexpected end of data")
        try:
            entry = tarfile.TarInfo.fromtarfile(archive)
        except (tarfile.EOFHeaderError, tarfile.EmptyHeaderError):  # type: ignore[attr-defined]
            return


def _add_from_tar(listing: Listing, archive: tarfile.TarFile, entry: tarfile.TarInfo, packed: Counted | None) -> str:
    """The limit that the member is over; empty for none."""
    name = _whole(entry.name)
    if entry.isdir() or listing.leaves_out(name):
        return ""
    if not entry.isreg():
        kind = "link" if entry.issym() or entry.islnk() else "device"
        listing.refuse(name, "refused", f"a {kind} is not followed")
        return ""
    data = b""
    fault = listing.members.size_fault(entry.size)
    source = archive.extractfile(entry)
    if not fault and source is not None:
        data, fault = _unpack(source, packed)
    if fault:
        listing.refuse(name, "bomb", fault)
        return fault
    if len(data) < entry.size:
        raise tarfile.ReadError("unexpected end of data")
    listing.add(name, data)
    return ""


def _unpack(source: IO[bytes], packed: Counted | None) -> tuple[bytes, str]:
    """The content of a member, and why it is out of proportion to what it was packed into; what is read of such a one is given up."""
    if packed is None:
        return source.read(), ""
    packed.mark()
    out = io.BytesIO()
    while piece := source.read(_PIECE):
        out.write(piece)
        fault = packed.ratio_fault()
        if fault:
            return b"", fault
    return out.getvalue(), ""


class Counted:
    """The content of a compressed file as a stream. Raises LimitError (bomb) when it expands beyond what all members may hold."""

    def __init__(self, request: ParseRequest) -> None:
        self.request = request
        self.raw = io.BytesIO(request.data)
        self.source: Any
        if request.data.startswith(b"\x1f\x8b"):
            self.source = gzip.GzipFile(fileobj=self.raw)
        elif request.data.startswith(b"BZh"):
            self.source = bz2.BZ2File(self.raw)
        else:
            self.source = Xz(self.raw)
        self.count = 0
        self._marked = (0, 0)

    def mark(self) -> None:
        """From here on `ratio_fault` counts."""
        self._marked = (self.count, self.raw.tell())

    def ratio_fault(self) -> str:
        """Why what was read since the mark is out of proportion to the bytes that it was packed into; these are known up to what a decoder
        reads ahead."""
        count, at = self._marked
        packed = min(len(self.request.data), self.raw.tell() - at + _AHEAD)
        return ratio_fault(self.count - count, packed, self.request.limits)

    def read(self, size: int) -> bytes:
        data: bytes = self.source.read(size)
        self.count += len(data)
        limits = self.request.limits
        if self.count > limits.members_bytes:
            message = f"the content is longer than limits.members_bytes ({limits.members_bytes})"
            raise LimitError(message, reject_class="bomb", place=self.request.path)
        return data


class Xz:
    """xz streams, one after another, with a bound on the decoder's memory."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw = raw
        self.rest = b""  # what stands behind the end of a stream
        self.decoder = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)

    def read(self, size: int) -> bytes:
        out: list[bytes] = []
        while size > 0 and not (self.decoder.eof and not self._next_stream()):
            fed = b""
            if self.decoder.needs_input:
                fed, self.rest = self.rest or self.raw.read(_PIECE), b""
                if not fed:
                    raise EOFError("the stream ends too early")
            data = self.decoder.decompress(fed, max_length=size)
            out.append(data)
            size -= len(data)
        return b"".join(out)

    def _next_stream(self) -> bool:
        """Whether another stream follows the one that ended; zeros may stand between."""
        self.rest = self.decoder.unused_data.lstrip(b"\0")
        while not self.rest and (more := self.raw.read(_PIECE)):
            self.rest = more.lstrip(b"\0")
        if not self.rest:
            return False
        self.decoder = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
        return True


def _read(source: Counted, size: int) -> tuple[bytes, str]:
    """`size` bytes or all there are, and what was wrong with the rest. Raises LimitError (bomb) for content out of proportion."""
    out: list[bytes] = []
    try:
        while size > 0 and (piece := source.read(min(size, _PIECE))):
            out.append(piece)
            size -= len(piece)
            fault = source.ratio_fault()
            if fault:
                raise LimitError(fault, reject_class="bomb", place=source.request.path)
    except _BROKEN as error:
        return b"".join(out), str(error)[:200] or type(error).__name__
    return b"".join(out), ""
