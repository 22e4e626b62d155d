"""Hostile archives, packages and mails: bombs and names (rows Z1 and Z2)."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib

import sheet_files
import word_files
from container_files import compound_file, message
from hostile_files import add, parsed, refused

ZEROS = 20_000_000
NAMES = {
    "../../../etc/passwd": "etc/passwd",
    "/etc/cron.d/job": "etc/cron.d/job",
    "C:\\Windows\\run.txt": "Windows/run.txt",
    "..\\..\\up.txt": "up.txt",
    "a/../../b.txt": "a/b.txt",
    "CON": "CON",
    "aux.txt": "aux.txt",
    "x" * 4_000 + ".txt": "x" * 251 + ".txt",
    "line\nbreak.txt": "line\ufffdbreak.txt",
    "~/.ssh/authorized_keys": "~/.ssh/authorized_keys",
    "..": "unnamed",
    "$(touch pwned).txt": "$(touch pwned).txt",
}
SHOWN = dict.fromkeys(NAMES.values(), "")


def zipped(*files: tuple[str, bytes], how: int = zipfile.ZIP_DEFLATED, stored: int = 0) -> bytes:
    """The first `stored` files are not packed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as archive:
        for at, (name, data) in enumerate(files):
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_STORED if at < stored else how)
    return out.getvalue()


def tarred(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for entry, data in entries:
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data) if data else None)
    return out.getvalue()


def tar_entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def nested(depth: int, name: str = "deep.txt", data: bytes = b"Deep down.\n") -> bytes:
    for level in range(depth):
        data = zipped((name, data))
        name = f"{level}.zip"
    return data


def overlapping() -> bytes:
    """Two entries of the directory that stand for one and the same content."""
    data = zipped(("a.txt", b"x" * 50), ("b.txt", b"y" * 50), how=zipfile.ZIP_STORED)
    second = data.rindex(b"PK\x01\x02")
    return data[: second + 42] + struct.pack("<I", 0) + data[second + 46 :]


def lying(size: int) -> bytes:
    """A directory that claims ten bytes of what expands to `size`."""
    data = bytearray(zipped(("lie.txt", b"0" * size), ("beside.txt", b"Beside.\n")))
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = data.index(mark)
        data[place + at : place + at + 4] = struct.pack("<I", 10)
    return bytes(data)


def encrypted() -> bytes:
    data = bytearray(zipped(("locked.txt", b"locked"), ("open.txt", b"Open.\n")))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1
    return bytes(data)


def linked_zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        entry = zipfile.ZipInfo("passwd")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
        archive.writestr(zipfile.ZipInfo("beside.txt"), "Beside.\n")
    return out.getvalue()


def nul_name() -> bytes:
    data = zipped(("good.txtQ.exe", b"Fine.\n"))
    return data.replace(b"good.txtQ.exe", b"good.txt\0.exe")


def mail(*parts: tuple[str, str], subject: str = "files") -> str:
    """A mail with attachments: (name as the header writes it, content)."""
    made = "".join(
        f'--b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename="{name}"\r\n\r\n{text}\r\n' for name, text in parts
    )
    return (
        f"From: a@x.example\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
        f"--b\r\nContent-Type: text/plain\r\n\r\nSee the files.\r\n{made}--b--\r\n"
    )


def outlook(*files: tuple[str, bytes]) -> bytes:
    attachments: list[tuple[dict[int, object], dict[int, int]]] = [({0x3707: name, 0x3701: data}, {0x3705: 1}) for name, data in files]
    return compound_file(message({0x0037: "files", 0x1000: "See the files."}, attachments=attachments))


def gzip_named(name: bytes, data: bytes) -> bytes:
    """A gz whose header names the file inside."""
    packed = gzip.compress(data)
    return packed[:3] + b"\x08" + packed[4:10] + name + b"\0" + packed[10:]


def bomb_tar_xz() -> bytes:
    zeros = tarred((tar_entry("zeros.bin"), bytes(2 * ZEROS)))
    return lzma.compress(zeros, preset=0)


def huge_strings() -> bytes:
    """A workbook whose shared strings expand."""
    strings = f'<sst xmlns="{sheet_files.MAIN}">' + "<si><t>x</t></si>" * 1_000_000 + "</sst>"
    return sheet_files.workbook(sheet_files.sheet_xml(sheet_files.text_row(1, "a")), extra={"xl/sharedStrings.xml": strings})


def long_chain() -> bytes:
    """A zip in a zip in … with a file beside it at every step."""
    data = b"Deep down.\n"
    name = "deep.txt"
    for level in range(6):
        data = zipped((name, data), (f"beside-{level}.txt", b"Beside.\n"))
        name = f"{level}.zip"
    return data


add("Z1", "huge-member.zip", parsed(1, members={"zeros.bin": "bomb"}), lambda _: zipped(("zeros.bin", bytes(ZEROS))))
add("Z1", "many-members.zip", refused("bomb"), lambda _: zipped(*((f"{at}.txt", b"") for at in range(10_001))))
add("Z1", "nested.zip", parsed(1, members={"3.zip": "", "3.zip!/2.zip": "too_deep"}), lambda _: nested(5))
add(
    "Z1",
    "nested-with-neighbours.zip",
    parsed(2, members={"4.zip": "", "beside-5.txt": "", "4.zip!/3.zip": "too_deep", "4.zip!/beside-4.txt": ""}),
    lambda _: long_chain(),
)
add("Z1", "overlapping.zip", refused("bomb"), lambda _: overlapping())
add("Z1", "lying-size.zip", parsed(2, members={"lie.txt": "invalid_input", "beside.txt": ""}), lambda _: lying(5_000_000))
add(
    "Z1",
    "duplicate-names.zip",
    parsed(2, members={"same.txt": "", "same.txt#2": ""}),
    lambda _: zipped(("same.txt", b"First.\n"), ("same.txt", b"Second.\n")),
)
add("Z1", "encrypted-member.zip", parsed(2, members={"locked.txt": "encrypted", "open.txt": ""}), lambda _: encrypted())
add("Z1", "bomb.gz", refused("bomb"), lambda _: gzip.compress(bytes(ZEROS)))
add("Z1", "bomb.bz2", refused("bomb"), lambda _: bz2.compress(bytes(ZEROS)))
add("Z1", "bomb.tar.xz", parsed(1, members={"zeros.bin": "bomb"}), lambda _: bomb_tar_xz())
add("Z1", "bomb-part.docx", refused("bomb"), lambda _: word_files.word("<w:p/>" * 3_000_000))
add("Z1", "tiny-paragraphs.docx", parsed(0), lambda _: word_files.word("<w:p/>" * 100_000))
add("Z1", "bomb-strings.xlsx", refused("bomb"), lambda _: huge_strings())
add("Z1", "truncated.zip", refused("invalid_input"), lambda _: zipped(("a.txt", b"text"))[:60])
add(
    "Z1",
    "truncated.gz",
    parsed(1, warnings=("truncated_archive",), members={"truncated": ""}),
    lambda _: gzip.compress(b"".join(b"line %d\n" % at for at in range(4_000)))[:-9_000],
)
add("Z1", "garbage.xz", refused("invalid_input"), lambda _: b"\xfd7zXZ\x00" + zlib.compress(b"no xz") * 3)

add("Z2", "names.zip", parsed(len(NAMES), members=SHOWN), lambda _: zipped(*((name, b"Text.\n") for name in NAMES)))
add("Z2", "names.tar", parsed(len(NAMES), members=SHOWN), lambda _: tarred(*((tar_entry(name), b"Text.\n") for name in NAMES)))
add(
    "Z2",
    "names.eml",
    parsed(3, members={shown: "" for name, shown in NAMES.items() if "\n" not in name and "\\" not in name}),
    lambda _: mail(*((name, "Text.") for name in NAMES if "\n" not in name and "\\" not in name)),
)
add("Z2", "names.msg", parsed(2, members=SHOWN), lambda _: outlook(*((name, b"Text.\n") for name in NAMES)))
add("Z2", "link.zip", parsed(2, members={"passwd": "refused", "beside.txt": ""}), lambda _: linked_zip())
add("Z2", "nul-name.zip", parsed(1, members={"good.txt\ufffd.exe": ""}), lambda _: nul_name())
add(
    "Z2",
    "links.tar",
    parsed(5, members={"passwd": "refused", "hard": "refused", "null": "refused", "pipe": "refused", "beside.txt": ""}),
    lambda _: tarred(
        (tar_entry("passwd", tarfile.SYMTYPE, "/etc/passwd"), b""),
        (tar_entry("hard", tarfile.LNKTYPE, "../../etc/passwd"), b""),
        (tar_entry("null", tarfile.CHRTYPE), b""),
        (tar_entry("pipe", tarfile.FIFOTYPE), b""),
        (tar_entry("beside.txt"), b"Beside.\n"),
    ),
)
add(
    "Z2",
    "named-inside.gz",
    parsed(1, members={"named-inside": ""}, hides=("cron",)),
    lambda _: gzip_named(b"../../etc/cron.d/job", b"Plain text.\n"),
)
add(
    "Z2",
    "part-names.docx",
    parsed(1, "Inside."),
    lambda _: word_files.word(word_files.par("Inside."), more={"../../outside.xml": "<a/>", "/absolute.xml": "<a/>"}),
)
add(
    "Z2",
    "target-outside.docx",
    parsed(2, "Inside.", events=("missing_part",)),
    lambda _: word_files.word(
        word_files.par(word_files.picture('r:embed="out"')) + word_files.par("Inside."), links=(("out", "image", "../../../etc/passwd"),)
    ),
)
