"""OOXML and ODF packages: a zip whose directory is judged before anything is read; parts as bytes or XML, relations by part.

Nothing is fetched and no entity is expanded; an external target is text. The invariant: what is read of one package never exceeds
`limits.members_bytes`, nor one part `limits.member_bytes`, whatever the directory claims, and a name from inside is never a path.
"""

from __future__ import annotations

import io
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from lxml import etree

from raydex.ir.errors import InputError
from raydex.kernels.limits import Limits
from raydex.kernels.request import ParseRequest

# what the standard library lets out of a damaged file
BROKEN_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    EOFError,
    OSError,
    ValueError,
    IndexError,
    KeyError,
    OverflowError,
)
TOO_DEEP = "nested too deep"
RATIO_FROM = 10_000_000  # small members may shrink as they like
_ENCRYPTED = 0x1
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LOCKED = "EncryptedPackage".encode("utf-16-le")
_RELATIONS = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"


# core properties of an OOXML package → names in the metadata of a document
CORE_PROPERTIES = {
    "title": "title",
    "subject": "subject",
    "creator": "creator",
    "keywords": "keywords",
    "description": "description",
    "lastModifiedBy": "last_modified_by",
    "created": "created",
    "modified": "modified",
    "language": "language",
    "category": "category",
}


@dataclass(frozen=True, slots=True)
class Relation:
    """`target` is the name of a part, or for an external one its address as written; `kind` the last step of the type's URI."""

    kind: str
    target: str
    external: bool


class Package:
    """One opened package. Raises InputError: invalid_input, encrypted, unsupported_media_type, bomb."""

    def __init__(self, request: ParseRequest) -> None:
        if request.data.startswith(_OLE):
            if _LOCKED in request.data:
                raise InputError("the package is encrypted", reject_class="encrypted", place=request.path)
            remedy = "Save it in the newer format"
            raise InputError("the older binary format", reject_class="unsupported_media_type", place=request.path, remedy=remedy)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(request.data))
        except BROKEN_ZIP as error:
            raise InputError(f"the package is no readable zip: {error}", reject_class="invalid_input", place=request.path) from error
        self._limits = request.limits
        self._path = request.path
        self._left = request.limits.members_bytes
        members = self._zip.infolist()
        check_members(members, request.limits, request.path)
        named = ((member.filename.replace("\\", "/").lstrip("/"), member) for member in members)
        self._members = {name: member for name, member in named if name and not name.endswith("/")}
        self._folded = {name.lower(): name for name in self._members}

    @property
    def names(self) -> list[str]:
        """Part names in the order of the directory."""
        return list(self._members)

    def find(self, name: str) -> str | None:
        """The name as the directory spells it, whatever its case."""
        return name if name in self._members else self._folded.get(name.lower())

    def read(self, name: str) -> bytes:
        """Raises KeyError for a part that is not there; InputError (bomb, encrypted, invalid_input) naming it."""
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        place = f"{self._path}: {name}"
        limit = min(self._limits.member_bytes, self._left)
        try:
            with self._zip.open(self._members[found]) as source:
                data = source.read(limit + 1)
        except RuntimeError as error:
            raise InputError("a part is encrypted", reject_class="encrypted", place=place) from error
        except BROKEN_ZIP as error:
            raise InputError(f"a part does not unpack: {error}", reject_class="invalid_input", place=place) from error
        if len(data) > limit:
            message = self._too_large(len(data))
            raise InputError(message, reject_class="bomb", place=place)
        self._left -= len(data)
        return data

    def _too_large(self, size: int) -> str:
        """`size` is where the unpacking of a part was stopped."""
        limits = self._limits
        if size > limits.member_bytes:
            return limits.say(f"a part unpacks to {size} bytes or more", "member_bytes")
        return limits.say(f"the parts unpack to {limits.members_bytes - self._left + size} bytes or more", "members_bytes")

    def xml(self, name: str) -> Any:
        """Root element of a part. Raises KeyError, InputError."""
        return parse_part(self.read(name), f"{self._path}: {name}")

    def stream(self, name: str, *tags: str) -> Iterator[Any]:
        """Elements of a part as they close, in order, each emptied when the next is asked for: a part of any size in little memory.
        `tags` are local names. Raises KeyError, InputError; what was yielded before an error stands."""
        yield from stream_part(self.read(name), f"{self._path}: {name}", tags)

    def relations(self, name: str) -> dict[str, Relation]:
        """Relation id → relation of one part; none where it has no relations."""
        folder, _, file = name.rpartition("/")
        listing = self.find(f"{folder}/_rels/{file}.rels" if folder else f"_rels/{file}.rels")
        found: dict[str, Relation] = {}
        for item in self.xml(listing).iter(_RELATIONS) if listing is not None else ():
            target, kind = item.get("Target", ""), item.get("Type", "").rpartition("/")[2]
            external = item.get("TargetMode", "").lower() == "external"
            found[item.get("Id", "")] = Relation(kind, target if external else part_name(folder, target), external)
        return found


def part_name(folder: str, target: str) -> str:
    """A target as seen from a folder of the package → the part's name; what points above the root stays inside."""
    joined = posixpath.normpath(posixpath.join("/", folder, unquote(target.partition("#")[0]).replace("\\", "/")))
    return joined.lstrip("/")


def check_members(members: list[zipfile.ZipInfo], limits: Limits, place: str) -> None:
    """What the directory of a zip claims, before any of it is unpacked: no member may be over a limit. Raises InputError (bomb)."""
    for member in members:
        fault = member_fault(member, limits)
        if fault:
            raise InputError(f"member {member.filename[:100]!r}: {fault}", reject_class="bomb", place=place)
    check_sum(members, members, limits, place)


def check_sum(members: list[zipfile.ZipInfo], read: list[zipfile.ZipInfo], limits: Limits, place: str) -> None:
    """How many members there are, and what those claim together that are `read`. Raises InputError (bomb)."""
    if len(members) > limits.members:
        raise InputError(limits.say(f"{len(members)} members", "members"), reject_class="bomb", place=place)
    total = sum(member.file_size for member in read)
    if total > limits.members_bytes:
        raise InputError(limits.say(f"the members claim {total} bytes", "members_bytes"), reject_class="bomb", place=place)


def member_fault(member: zipfile.ZipInfo, limits: Limits) -> str:
    """The limit of one member that the directory claims it to be over, with both values; empty for none."""
    size, packed = member.file_size, member.compress_size
    if size > limits.member_bytes:
        return limits.say(f"{size} bytes", "member_bytes")
    return ratio_fault(size, packed, limits)


def ratio_fault(size: int, packed: int, limits: Limits) -> str:
    """Why `size` bytes out of `packed` are out of proportion; empty where they are not."""
    if size <= RATIO_FROM or size <= limits.ratio * max(1, packed):
        return ""
    return limits.say(f"{packed} bytes expand to {size}, {size // max(1, packed)} times", "ratio")


def parse_part(data: bytes, place: str) -> Any:
    """Root element; entities stay unexpanded, no network, a document type is refused. The engine itself refuses more than 256 levels.
    Raises InputError (invalid_input, too_deep)."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise _xml_error(error, place) from error
    _refuse_doctype(root, place)
    return root


def stream_part(data: bytes, place: str, tags: tuple[str, ...]) -> Iterator[Any]:
    """`Package.stream` on bytes, under the rules of `parse_part`."""
    events = etree.iterparse(
        io.BytesIO(data),
        events=("end",),
        tag=[f"{{*}}{tag}" for tag in tags],
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        for _, element in events:
            yield element
            element.clear(keep_tail=False)
            parent = element.getparent()
            if parent is not None:
                while element.getprevious() is not None:
                    del parent[0]
    except etree.XMLSyntaxError as error:
        raise _xml_error(error, place) from error
    _refuse_doctype(events.root, place)


def _xml_error(error: etree.XMLSyntaxError, place: str) -> InputError:
    if "depth" in str(error).lower():
        return InputError(TOO_DEEP, reject_class="too_deep", place=place)
    return InputError(f"a part is not XML: {str(error)[:200]}", reject_class="invalid_input", place=place)


def _refuse_doctype(root: Any, place: str) -> None:
    if root is not None and root.getroottree().docinfo.doctype:
        raise InputError("a part has a document type, which no package has", reject_class="invalid_input", place=place)
