"""Archives: members as child records, names as data, limits on depth, count, ratio and size, hostile directories."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import struct
import tarfile
import tracemalloc
import zipfile
from typing import Any

import pytest
from document_files import children, parse_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from test_mail import everything, related

from raydex.ir.parsed import ParsedFile
from raydex.kernels.detect import detect_media_type
from raydex.kernels.limits import Limits

NAMES = (
    "a.txt",
    "folder/a.txt",
    "../../etc/passwd.txt",
    "/root/a.txt",
    "C:\\windows\\a.txt",
    "C:/x/a.txt",
    "nul\x00.txt",
    "con.txt",
    "n" * 4_000 + ".txt",
    "größe.txt",
    "a#2",
    "..",
    "//",
)


def read(data: bytes, path: str = "a.zip", **options: Any) -> ParsedFile:
    return parse_bytes(data, detect_media_type(data, path), path, **options)


def zipped(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return out.getvalue()


def tarred(members: list[tuple[str, bytes]], kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size, entry.type, entry.linkname = len(data), kind, link
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def texts(parsed: ParsedFile) -> list[str]:
    return [block.text for child in children(parsed) for block in child.blocks]


def reasons(parsed: ParsedFile) -> list[str]:
    return [reject.reject_class for one in everything(parsed) for reject in one.rejects]


PAIR = [("one.txt", b"first"), ("two/page.md", b"# second\n")]


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (zipped(PAIR), "a.zip"),
        (zipped(PAIR, zipfile.ZIP_STORED), "a.zip"),
        (zipped(PAIR, zipfile.ZIP_BZIP2), "a.zip"),
        (zipped(PAIR, zipfile.ZIP_LZMA), "a.zip"),
        (tarred(PAIR), "a.tar"),
        (gzip.compress(tarred(PAIR)), "a.tgz"),
        (bz2.compress(tarred(PAIR)), "a.tar.bz2"),
        (lzma.compress(tarred(PAIR)), "a.tar.xz"),
        (gzip.compress(tarred(PAIR)[:600]) + gzip.compress(tarred(PAIR)[600:]), "a.tar.gz"),
        (lzma.compress(tarred(PAIR)[:600]) + lzma.compress(tarred(PAIR)[600:]), "a.tar.xz"),
    ],
    ids=["zip", "stored", "bzip2", "lzma", "tar", "tgz", "tar.bz2", "tar.xz", "two gz", "two xz"],
)
def test_members_are_records(data: bytes, path: str) -> None:
    parsed = read(data, path)
    assert [child.path for child in children(parsed)] == [f"{path}!/one.txt", f"{path}!/two/page.md"]
    assert [child.media_type for child in children(parsed)] == ["text/plain", "text/markdown"]
    assert texts(parsed) == ["first", "second"]
    assert [(block.text, str(block.locator)) for block in parsed.blocks] == [
        ("one.txt", "member=one.txt"),
        ("two/page.md", "member=two/page.md"),
    ]
    assert parsed.document is not None and parsed.document.warnings == [] and parsed.document.metadata == {"members": 2}


@pytest.mark.parametrize(("pack", "path"), [(gzip.compress, "a.txt.gz"), (bz2.compress, "a.txt.bz2"), (lzma.compress, "a.txt.xz")])
def test_one_compressed_file(pack: Any, path: str) -> None:
    parsed = read(pack(b"text " * 100), path)
    assert [child.path for child in children(parsed)] == [f"{path}!/a.txt"]
    broken = read(pack(bytes(range(256)) * 500)[:-20], path)
    assert broken.rejects or (broken.document is not None and broken.document.warnings == ["truncated_archive"])


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_names_are_data(pack: Any) -> None:
    names = [name for name in NAMES if pack is zipped or "\0" not in name]
    parsed = read(pack([(name, f"text {at}".encode()) for at, name in enumerate([*names, "a.txt", "a.txt"])]))
    assert len(children(parsed)) == len(names) + 2
    assert len({child.record_id for child in children(parsed)}) == len(children(parsed))
    assert len({str(block.locator) for block in parsed.blocks}) == len(parsed.blocks)
    for child in children(parsed):
        inside = child.path.removeprefix("a.zip!/")
        assert 0 < len(inside) <= 255 and inside.isprintable() and not inside.startswith("/")
        assert not {"..", "C:", ""} & set(inside.split("/")) and "\\" not in inside


def test_links_and_devices_are_refused() -> None:
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        parsed = read(tarred([("link", b"")], kind, "/etc/passwd"), "a.tar")
        assert reasons(parsed) == ["refused"] and [block.text for block in parsed.blocks] == ["link"]
    entry = zipfile.ZipInfo("link")
    entry.create_system, entry.external_attr = 3, 0o120777 << 16
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(entry, "/etc/passwd")
        archive.writestr("a.txt", "kept")
    parsed = read(out.getvalue())
    assert reasons(parsed) == ["refused"] and texts(parsed) == ["kept"]


def test_files_of_an_operating_system_are_left_out_and_counted() -> None:
    junk = ["__MACOSX/a/._page.md", "__MACOSX\\x.txt", "a/.DS_Store", "Thumbs.db", "b\\desktop.ini", "._a.txt"]
    files = [*((name, b"\0\5\x16\7" * 9) for name in junk), ("a/page.md", b"kept"), ("my__MACOSX/.DS_Store.txt", b"kept too")]
    for data, path in ((zipped(files), "a.zip"), (tarred(files), "a.tar")):
        parsed = read(data, path)
        assert texts(parsed) == ["kept", "kept too"] and reasons(parsed) == []
        assert [(event.status, event.name, event.message[:9]) for event in parsed.events] == [("ok", "system_files_left_out", "6 members")]
    assert [event.name for event in read(zipped(PAIR)).events] == []


def test_rotated_logs_are_logs() -> None:
    line = b"2024-01-01 10:00:00 INFO a - x\n"
    assert [child.media_type for child in children(read(gzip.compress(line), "app.log.1.gz"))] == ["text/x-log"]
    assert [child.media_type for child in children(read(gzip.compress(line), "app.log.gz"))] == ["text/x-log"]


def test_an_undeclared_utf8_name() -> None:
    data = zipped([("größe.txt", b"x")])
    flag = struct.pack("<H", 0x800)
    parsed = read(data.replace(b"\x14\x00" + flag, b"\x14\x00\0\0"))
    assert [block.text for block in parsed.blocks] == ["größe.txt"]


def test_a_bad_member_costs_itself() -> None:
    data = bytearray(zipped([("a.txt", b"first text"), ("b.txt", b"second text"), ("c.txt", b"third")], zipfile.ZIP_STORED))
    data[data.index(b"second")] ^= 1
    parsed = read(bytes(data))
    assert texts(parsed) == ["first text", "third"] and reasons(parsed) == ["invalid_input"]
    locked = bytearray(zipped([("a.txt", b"first"), ("b.txt", b"second")]))
    at = locked.rindex(b"PK\x01\x02")
    locked[at + 8] |= 1
    parsed = read(bytes(locked))
    assert texts(parsed) == ["first"] and reasons(parsed) == ["encrypted"]


def test_lying_sizes() -> None:
    data = zipped([("a.txt", b"x" * 1_000), ("b.txt", b"kept")])
    central = data.index(b"PK\x01\x02")
    small = data[: central + 24] + struct.pack("<I", 10) + data[central + 28 :]
    parsed = read(small)
    assert texts(parsed) == ["kept"] and reasons(parsed) == ["invalid_input"]
    huge = data[: central + 24] + struct.pack("<I", 4_000_000_000) + data[central + 28 :]
    assert reasons(read(huge)) == ["bomb"] and texts(read(huge)) == ["kept"]


def test_bombs() -> None:
    assert reasons(read(zipped([("a", b"\0" * 20_000_000)]))) == ["bomb"]
    assert reasons(read(zipped([(str(at), b"") for at in range(20)]), limits=Limits(members=10))) == ["bomb"]
    assert reasons(read(zipped([("a", b"x" * 600), ("b", b"x" * 600)]), limits=Limits(members_bytes=1_000))) == ["bomb"]
    assert reasons(read(gzip.compress(b"\0" * 20_000_000), "a.gz")) == ["bomb"]
    assert reasons(read(lzma.compress(tarred([("a", b"\0" * 20_000_000)])), "a.tar.xz")) == ["bomb"]
    assert reasons(read(tarred([(str(at), b"") for at in range(20)]), "a.tar", limits=Limits(members=10))) == ["bomb"]
    parsed = read(tarred([("a.txt", b"x" * 600), ("b.txt", b"x" * 600)]), "a.tar", limits=Limits(members_bytes=1_000))
    assert reasons(parsed) == ["bomb"] and len(texts(parsed)) == 1


ZEROS = b"\0" * 20_000_000
AROUND = [("a.txt", b"first"), ("big.bin", ZEROS), ("b.txt", b"second")]
UNEVEN = zipped(AROUND)
TARRED = tarred(AROUND)


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (UNEVEN, "a.zip"),
        (gzip.compress(TARRED), "a.tgz"),
        (bz2.compress(TARRED), "a.tar.bz2"),
        (lzma.compress(TARRED, preset=0), "a.tar.xz"),
    ],
    ids=["zip", "gz", "bz2", "xz"],
)
def test_a_member_out_of_proportion_costs_itself(data: bytes, path: str) -> None:
    parsed = read(data, path)
    assert texts(parsed) == ["first", "second"] and reasons(parsed) == ["bomb"]
    (refused,) = [child for child in children(parsed) if child.rejects]
    assert refused.path == f"{path}!/big.bin"
    assert re.fullmatch(r"\d+ bytes expand to \d+, \d+ times, more than limits\.ratio \(100\)", refused.rejects[0].error)
    assert parsed.document is not None and parsed.document.warnings == []


@pytest.mark.parametrize(
    ("pack", "path"), [(zipped, "a.zip"), (tarred, "a.tar"), (lambda members: gzip.compress(tarred(members)), "a.tgz")]
)
def test_a_member_too_large_costs_itself(pack: Any, path: str) -> None:
    members = [("a.txt", b"first"), ("big.txt", b"x" * 600), ("b.txt", b"second")]
    parsed = read(pack(members), path, limits=Limits(member_bytes=500))
    assert texts(parsed) == ["first", "second"]
    assert [(one.path, reject.error) for one in children(parsed) for reject in one.rejects] == [
        (f"{path}!/big.txt", "600 bytes, more than limits.member_bytes (500)")
    ]


def test_what_a_stream_cannot_skip_ends_it() -> None:
    """Members behind one that is longer than all may be are not unpacked for; the archive tells that they are lost."""
    members = [("a.txt", b"first"), ("big.bin", ZEROS), ("b.txt", b"second")]
    parsed = read(gzip.compress(tarred(members)), "a.tgz", limits=Limits(member_bytes=1_000, members_bytes=100_000))
    assert texts(parsed) == ["first"] and reasons(parsed) == ["bomb"]
    assert parsed.document is not None and parsed.document.warnings == ["truncated_archive"]
    assert any("limits.member_bytes (1000)" in event.message for event in parsed.events)


def test_what_is_refused_is_not_unpacked() -> None:
    tracemalloc.start()
    for data, path in ((UNEVEN, "a.zip"), (gzip.compress(TARRED), "a.tgz"), (lzma.compress(TARRED, preset=0), "a.tar.xz")):
        tracemalloc.reset_peak()
        assert reasons(read(data, path)) == ["bomb"]
        assert tracemalloc.get_traced_memory()[1] < 45_000_000
    tracemalloc.stop()


def test_overlapping_members() -> None:
    data = zipped([("a.txt", b"x" * 50), ("b.txt", b"y" * 50)], zipfile.ZIP_STORED)
    second = data.rindex(b"PK\x01\x02")
    same = data[: second + 42] + struct.pack("<I", 0) + data[second + 46 :]
    assert reasons(read(same)) == ["bomb"]


def test_nested_archives_share_the_limits() -> None:
    inner = zipped([("text.txt", b"deep")])
    for name in ("1.zip", "2.zip", "3.zip"):
        inner = zipped([(name, inner), ("beside.txt", b"beside")])
    parsed = read(inner)
    assert reasons(parsed) == ["too_deep"]
    assert sorted(block.text for one in everything(parsed) for block in one.blocks if one.media_type == "text/plain") == ["beside"] * 2
    parsed = read(zipped([("mail.eml", related())]))
    assert [len(children(child)) for child in children(parsed)] == [1]


def test_truncated_archives() -> None:
    data = tarred([("a.txt", b"first"), ("b.txt", b"second" * 200)])
    parsed = read(data[:1_700], "a.tar")
    assert texts(parsed) == ["first"]
    assert parsed.document is not None and parsed.document.warnings == ["truncated_archive"]
    broken = data[:1024] + b"no header".ljust(512, b"x") + data[1536:]
    parsed = read(broken, "a.tar")
    assert texts(parsed) == ["first"]
    assert parsed.document is not None and parsed.document.warnings == ["truncated_archive"]
    assert reasons(read(zipped(PAIR)[:60])) == ["invalid_input"]
    assert reasons(read(b"\x1f\x8b\x08\0broken", "a.gz")) == ["invalid_input"]
    assert read(zipped([]), "a.zip").blocks == []


WHOLE = zipped(PAIR)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_any_damage_gives_rows_or_a_typed_reject(changes: list[tuple[int, int]]) -> None:
    data = bytearray(WHOLE)
    for at, value in changes:
        data[at] = value
    for kind in ("application/zip", "application/x-tar", "application/gzip", "application/x-xz"):
        parsed = parse_bytes(bytes(data), kind)
        assert (parsed.document is None) == bool(parsed.rejects)
