"""First bytes and path → media type: content decides first, the extension second.

The invariant: a file whose bytes are binary never gets a text type, whatever its name, and a file whose bytes are text never gets a
binary one, except plain text named as a picture: it stays a picture, which its reader refuses, since nobody means such a file to be read.
Between text types the extension wins, except that a document type or an `<html>` element at the very start is HTML.
"""

from __future__ import annotations

import re
from posixpath import basename

from raydex.kernels.decode import BOMS, decode_as, looks_binary, wide_encoding
from raydex.kernels.media_types import EXTENSIONS, FILE_NAMES, PROGRAMS
from raydex.kernels.picture import FORMATS

SNIFF_BYTES = 8192
UNKNOWN = "application/octet-stream"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# signatures at offset 0
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"II+\x00", "image/tiff"),
    (b"8BPS\x00", "image/vnd.adobe.photoshop"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x00\x00\x00\x0cjP  ", "image/jp2"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\x7fELF", "application/x-executable"),
    (b"MZ\x90\x00", "application/x-executable"),
    (b"\xcf\xfa\xed\xfe", "application/x-executable"),
    (b"\xce\xfa\xed\xfe", "application/x-executable"),
    (b"!<arch>\n", "application/x-executable"),
    (b"\xca\xfe\xba\xbe", "application/java-vm"),
    (b"\x00asm", "application/wasm"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"ARROW1\x00\x00", "application/vnd.apache.arrow.file"),
    (b"Obj\x01", "application/vnd.apache.avro"),
    (b"ORC\x0a", "application/vnd.apache.orc"),
    (b"\x89HDF\r\n\x1a\n", "application/x-hdf5"),
    (b"\x93NUMPY", "application/x-numpy"),
    (b"{\\rtf", "application/rtf"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"\x1aE\xdf\xa3", "video/x-matroska"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO\x00", "font/otf"),
    (b"\x00\x01\x00\x00\x00", "font/ttf"),
    (b"%!PS", "application/postscript"),
)
# signatures made of plain letters, as those at other places are: they count only when the rest looks binary too
_WEAK = frozenset((b"BZh", b"ID3", b"PAR1", b"ORC\x0a", b"fLaC", b"OggS", b"wOFF", b"wOF2", b"Obj\x01", b"GIF87a", b"GIF89a", b"!<arch>\n"))
_BRANDS: tuple[tuple[bytes, str], ...] = (
    (b"heic", "image/heic"),
    (b"heix", "image/heic"),
    (b"mif1", "image/heic"),
    (b"avif", "image/avif"),
    (b"qt  ", "video/quicktime"),
    (b"M4A ", "audio/mp4"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_OLE_EXTENSIONS = frozenset(("doc", "dot", "xls", "xlt", "ppt", "pps", "pot", "msg", "vsd"))
_OOXML = frozenset(EXTENSIONS[name] for name in ("docx", "xlsx", "pptx"))  # a compound file once they are encrypted
_ZIP_TYPES = frozenset(EXTENSIONS[name] for name in ("docx", "xlsx", "pptx", "odt", "ods", "odp", "odg", "epub"))
_PACKAGE_FOLDERS = ((b"word/", "docx"), (b"xl/", "xlsx"), (b"ppt/", "pptx"))
_PICKLE = re.compile(rb"\x80[\x02-\x05](?:\x95.{8}|[cCX}\](qK\x8a\x8c])", re.DOTALL)
# white space, comments and an XML declaration may stand before what decides
_PROLOGUE = re.compile(r"(?:\s++|<!--(?:(?!-->).)*+-->|<\?xml(?:(?!\?>).)*+\?>|<\?[a-zA-Z](?:(?!\?>).)*+\?>)*+", re.DOTALL)
_HTML_ROOT = re.compile(r"<!doctype\s+html\b|<html[\s>/]", re.IGNORECASE)
_HTML_TAG = re.compile(
    r"<(?:head|body|title|meta|link|script|style|table|div|p|h[1-6]|ul|ol|dl|a|br|hr|font|center|iframe|article|section|main|ac:[a-z-]+)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_XML_ROOT = re.compile(r"<(?:!DOCTYPE\s+)?([A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)")
_MAIL_FIELD = re.compile(r"(?:From|To|Subject|Date|Received|Return-Path|Message-ID|MIME-Version|Delivered-To|X-[\w-]+): ?\S", re.IGNORECASE)
_ROTATED = re.compile(r"[^.]\.log[._-](?:\d[\d._t-]{0,30}|old|prev|bak)\Z")
_ARMOUR = "-----BEGIN PGP "
_SHEBANG = re.compile(r"#!\s*(\S+)(?:[ \t]+(?:-\S+[ \t]+)*([^\s=]+))?")
# extensions whose content may well begin with a tag
_MARKUP = frozenset(("text/plain", "text/html", "application/xml", "application/pdf", UNKNOWN, ""))


def detect_media_type(head: bytes, path: str) -> str:
    """Media type of a file from its first bytes (8 KB are enough; more are not read) and its path."""
    by_name = _by_name(path)
    head_bytes = head[:SNIFF_BYTES]
    binary = _by_magic(head_bytes, path, by_name)
    if binary:
        return binary
    text = _sniff_text(head_bytes)
    if text is None:  # its name's reader says better what is wrong with it than that no reader is known
        return UNKNOWN if _is_text_type(by_name) or by_name == "application/x-executable" else by_name or UNKNOWN
    return _by_text(text, by_name)


def _by_name(path: str) -> str:
    """Type by file name, then extension; empty when neither tells."""
    name = basename(path).lower()
    if name in FILE_NAMES:
        return FILE_NAMES[name]
    stem, dot, extension = name.rpartition(".")
    found = EXTENSIONS.get(extension, "") if dot and stem else ""
    return found or (EXTENSIONS["log"] if _ROTATED.search(name) else "")


def _extension(path: str) -> str:
    return basename(path).lower().rpartition(".")[2]


def _by_magic(head: bytes, path: str, by_name: str) -> str:
    """Type by signature; empty when no signature is there."""
    for signature, media_type in _MAGIC:
        if head.startswith(signature) and not (signature in _WEAK and _is_text(head)):
            return media_type
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _zip_type(head, by_name)
    if head.startswith(_OLE):
        return _ole_type(head, path, by_name)
    if head[:4] == b"RIFF" and head[8:12] in _RIFF and not _is_text(head):
        return _RIFF[head[8:12]]
    if head[4:8] == b"ftyp" and (head[:3] == b"\0\0\0" or not _is_text(head)):
        return next((media_type for brand, media_type in _BRANDS if head[8:12] == brand), "video/mp4")
    if head[:2] == b"BM" and len(head) >= 18 and head[6:10] == b"\0\0\0\0" and head[15:18] == b"\0\0\0":
        return "image/bmp"
    if head[:1] == b"\x47" and len(head) > 188 and head[188] == 0x47 and not _is_text(head):
        return "video/mp2t"
    if head[257:262] == b"ustar" and not _is_text(head):
        return "application/x-tar"
    if _PICKLE.match(head):
        return "application/x-python-pickle"
    if head[2:4] == b"\r\n" and by_name == "application/x-python-bytecode" and not _is_text(head):
        return by_name
    return _pdf_type(head, by_name)


def _pdf_type(head: bytes, by_name: str) -> str:
    """%PDF- may stand anywhere in the first 1024 bytes; in a file that is named as text it must stand first or in binary content."""
    at = head[:1024].find(b"%PDF-")
    if at < 0 or not re.match(rb"%PDF-\d", head[at : at + 6]):
        return ""
    if head[:at].strip(b"\xef\xbb\xbf \t\r\n\0") == b"" or (by_name in ("application/pdf", "") and not _is_html(head)):
        return "application/pdf"
    return "application/pdf" if looks_binary(head) else ""


def _zip_type(head: bytes, by_name: str) -> str:
    """OOXML, ODF and EPUB by the names of the first members; else what the extension says, if it is a kind of zip."""
    if head[30:38] == b"mimetype":
        size = int.from_bytes(head[18:22], "little")
        extra = int.from_bytes(head[28:30], "little")
        found = head[38 + extra : 38 + extra + size].decode("ascii", "replace").strip()
        if found in _ZIP_TYPES:
            return found
    for folder, extension in _PACKAGE_FOLDERS:
        if _has_member(head, folder):
            return EXTENSIONS[extension]
    # the telling member lies past the head: part names of an Office package come first, and the extension says the rest
    if by_name in _ZIP_TYPES and (_has_member(head, b"[Content_Types].xml") or _has_member(head, b"_rels/")):
        return by_name
    return "application/zip"


def _has_member(head: bytes, prefix: bytes) -> bool:
    """Whether a local header of the head names a member that begins with `prefix`."""
    at = head.find(b"PK\x03\x04")
    while at >= 0:
        if head.startswith(prefix, at + 30):
            return True
        at = head.find(b"PK\x03\x04", at + 4)
    return False


def _ole_type(head: bytes, path: str, by_name: str) -> str:
    """The directory of a compound file often lies past the head: its stream names where they are seen, else the extension."""
    for name, media_type in (
        ("__substg1.0_", "application/vnd.ms-outlook"),
        ("WordDocument", "application/msword"),
        ("Workbook", "application/vnd.ms-excel"),
        ("PowerPoint Document", "application/vnd.ms-powerpoint"),
    ):
        if name.encode("utf-16-le") in head:
            return media_type
    return by_name if _extension(path) in _OLE_EXTENSIONS or by_name in _OOXML else "application/x-ole-storage"


def _is_text(head: bytes) -> bool:
    return _sniff_text(head) is not None


def _sniff_text(head: bytes) -> str | None:
    """The head as text, None for binary content."""
    for mark, encoding in BOMS:
        if head.startswith(mark):
            if encoding == "utf-8":
                break
            body = head[: len(head) - len(head) % (4 if "32" in encoding else 2)]
            text = decode_as(body, encoding)
            return None if text.count("\ufffd") * 20 > len(text) else text
    wide = wide_encoding(head)
    if wide is not None:
        return decode_as(head[: len(head) - len(head) % 2], wide)
    if looks_binary(head):
        return None
    return decode_as(head, "utf-8")


def _is_html(head: bytes) -> bool:
    text = _sniff_text(head)
    return text is not None and _HTML_ROOT.match(text, _start(text)) is not None


def _start(text: str) -> int:
    found = _PROLOGUE.match(text)
    return found.end() if found else 0


def _by_text(text: str, by_name: str) -> str:
    """Type of text. Names of binary formats are not believed: the content is text. Of pictures they are, where the text has no form."""
    named = by_name
    if by_name and not _is_text_type(by_name):
        by_name = "application/pdf" if by_name == "application/pdf" else ""
    start = _start(text)
    if by_name in _MARKUP or by_name == "text/markdown":
        if _HTML_ROOT.match(text, start):
            return "text/html"
        if by_name == "text/markdown":
            return by_name
        markup = _markup_type(text, start, by_name)
        if markup:
            return markup
    if by_name == "text/asciidoc" and text.startswith(_ARMOUR):  # both have .asc
        return EXTENSIONS["pgp"]
    if by_name and by_name != "application/pdf":
        return by_name
    script = _SHEBANG.match(text)
    if script:
        return _script_type(script)
    if not by_name and len(_MAIL_FIELD.findall(text[:2000])) >= 3 and _MAIL_FIELD.match(text):
        return "message/rfc822"
    return named if named in FORMATS else "text/plain"


def _markup_type(text: str, start: int, by_name: str) -> str:
    """HTML or XML by the first tag, for names that do not settle it; a plain-text name needs a whole document, not a tag."""
    declared = text.lstrip("\ufeff \t\r\n").startswith("<?xml")
    if by_name == "text/html":
        return by_name
    if declared:
        root = _XML_ROOT.match(text, start)
        if root and root.group(2).lower() == "svg":
            return "image/svg+xml"
        return "application/xml"
    if by_name in ("", "application/pdf") and _HTML_TAG.match(text, start):
        return "text/html"
    return ""


def _script_type(script: re.Match[str]) -> str:
    program = basename(script.group(1))
    if program == "env":
        program = basename(script.group(2) or "")
    program = program.rstrip("0123456789.")
    return PROGRAMS.get(program, "text/plain")


_TEXT_APPLICATIONS = frozenset(
    EXTENSIONS[name]
    for name in (
        "json",
        "jsonl",
        "json5",
        "ipynb",
        "yaml",
        "toml",
        "xml",
        "sql",
        "graphql",
        "srt",
        "mbox",
        "pem",
        "ps",
        "rtf",
        "svg",
        "eml",
    )
)


def _is_text_type(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type in _TEXT_APPLICATIONS
