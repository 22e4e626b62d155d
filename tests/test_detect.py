"""Media types by content first and extension second; decoding that can be repeated from the recorded encoding."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raydex.ir.errors import InputError
from raydex.kernels.decode import declared_encoding, decode, decode_as
from raydex.kernels.detect import detect_media_type
from raydex.kernels.media_types import EXTENSIONS

OFFICE = "application/vnd.openxmlformats-officedocument."


def zip_of(*names: str, mimetype: str = "") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        if mimetype:
            archive.writestr("mimetype", mimetype)
        for name in names:
            archive.writestr(name, "content")
    return out.getvalue()


TRANSPORT_STREAM = (b"\x47\x40\x00\x10" + b"\x00\xff\x01" * 62)[:188] * 3

CASES = [
    # content beats the name
    (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "report.html", "application/pdf"),
    (b"\n\r\n%PDF-1.4\n", "report.txt", "application/pdf"),
    (b"MIME garbage line\n%PDF-1.4\n%\xe2\xe3", "report.pdf", "application/pdf"),
    (b"<!DOCTYPE html><p>Not found</p>", "report.pdf", "text/html"),
    (b"just words", "report.pdf", "text/plain"),
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "photo.txt", "image/png"),
    (b"\xff\xd8\xff\xe0\0\x10JFIF", "photo.md", "image/jpeg"),
    (b"GIF89a\1\0\1\0", "x", "image/gif"),
    (b"II*\0\x08\0\0\0", "x", "image/tiff"),
    (b"RIFF\x10\0\0\0WEBPVP8 ", "x", "image/webp"),
    (b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", "x", "image/bmp"),
    (b"\x1f\x8b\x08\0", "x.txt", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c\0\4", "x", "application/x-7z-compressed"),
    (b"\x7fELF\2\1\1\0", "tool.py", "application/x-executable"),
    (b"\xca\xfe\xba\xbe\0\0\0\x34", "A.java", "application/java-vm"),
    (b"SQLite format 3\0\x10\0", "x.txt", "application/vnd.sqlite3"),
    (b"PAR1\x15\x04\x15\0\0\1\2\3\0\0\0\0", "x", "application/vnd.apache.parquet"),
    (b"\x80\x04\x95\x0c\0\0\0\0\0\0\0}", "model.py", "application/x-python-pickle"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 60, "x.msg", "application/vnd.ms-outlook"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "WordDocument".encode("utf-16-le"), "x.bin", "application/msword"),
    (b"{\\rtf1\\ansi hello}", "x.doc", "application/rtf"),
    (b"\0\0\0\x20ftypisom\0\0\2\0", "x", "video/mp4"),
    (b"\0\0\0\x18ftypheic" + b"words of some length " * 20, "x.txt", "image/heic"),
    (b"\0\0\1\x20ftypavif\0\0\2\0", "x", "image/avif"),
    (b"RIFF\x24\x08\0\0WAVEfmt \x10\0\0\0", "x.txt", "audio/wav"),
    (b"!<arch>\n/               0           0     0     0       4         `\n\0\0\0\0\0\0\0\0", "x.txt", "application/x-executable"),
    (b"notes.txt" + b"\0" * 248 + b"ustar\x0000" + b"\0" * 248 + b"some text\n" * 50, "x.txt", "application/x-tar"),
    (TRANSPORT_STREAM, "film.ts", "video/mp2t"),
    (zip_of("[Content_Types].xml", "word/document.xml"), "x.zip", OFFICE + "wordprocessingml.document"),
    (zip_of("[Content_Types].xml", "xl/workbook.xml"), "x", OFFICE + "spreadsheetml.sheet"),
    (zip_of("[Content_Types].xml", "ppt/presentation.xml"), "x", OFFICE + "presentationml.presentation"),
    (zip_of("a.txt"), "fake.docx", "application/zip"),
    (zip_of("content.xml", mimetype="application/vnd.oasis.opendocument.text"), "x", "application/vnd.oasis.opendocument.text"),
    (bytes(range(256)) * 8, "tool.py", "application/octet-stream"),
    (b"\0" * 64, "notes.md", "application/octet-stream"),
    # text: the name decides
    (b"Get: export const a = 1\n", "film.ts", "text/x-typescript"),
    (b"export {}", "a.mts", "text/x-typescript"),
    (b"export {}", "a.tsx", "text/x-tsx"),
    (b'"""<!DOCTYPE html><html><body>"""\n', "page.py", "text/x-python"),
    (b"<!DOCTYPE html> is how a page begins", "notes.md", "text/html"),
    (b"<div align=center>\n\n# Title", "readme.md", "text/markdown"),
    (b"<p>one</p>", "readme.txt", "text/plain"),
    (b"the <html> element", "notes.txt", "text/plain"),
    (b"<!-- saved -->\n<html><body>", "notes.txt", "text/html"),
    (b"<table><tr><td>x", "fragment", "text/html"),
    (b"<?xml version='1.0'?>\n<root/>", "data", "application/xml"),
    (b"<?xml version='1.0'?><html xmlns='x'>", "page.xml", "text/html"),
    (b"#!/usr/bin/env python3\nprint(1)", "tool", "text/x-python"),
    (b"#!/bin/sh -e\n", "tool", "text/x-shellscript"),
    (b"From: a@b\nTo: c@d\nSubject: x\n\nhi", "mail", "message/rfc822"),
    (b"hello", "README", "text/plain"),
    (b"all:\n\tcc", "Makefile", "text/x-makefile"),
    ("wörter".encode("utf-16"), "notes.txt", "text/plain"),
    ("plain words".encode("utf-16-le"), "notes.md", "text/markdown"),
    (b"BZh ID3 PAR1 are words here", "notes.txt", "text/plain"),
    (b"text that mentions %PDF-1.4 inside", "notes.txt", "text/plain"),
    (b"log line\0 with a hole " + b"x" * 200, "notes.txt", "text/plain"),
    (b"not a picture at all", "photo.png", "image/png"),
    (b"<html><body>404</body></html>", "photo.png", "text/html"),
    (b"a\tb\n1\t2\n", "export.xls", "text/plain"),
    (b"\x07\x93\x00\x01" * 90, "photo.png", "image/png"),
    (b"\x07\x93\x00\x01" * 90, "plan.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    (b"\x07\x93\x00\x01" * 90, "notes.txt", "application/octet-stream"),
    (b"\x07\x93\x00\x01" * 90, "thing", "application/octet-stream"),
    # signatures of plain letters at their places, in text
    (b"def ftype(path):\n    return 1\n", "a.py", "text/x-python"),
    (b"let ftype = 1\n", "a.ts", "text/x-typescript"),
    ("let ftype = 'ü'\n".encode(), "a.ts", "text/x-typescript"),
    (b"RIFF to WAVE, a converter\n", "notes.txt", "text/plain"),
    (b"GIF89a is a format\n", "notes.md", "text/markdown"),
    (b"!<arch>\nis how an archive begins\n", "notes.txt", "text/plain"),
    (b"x" * 257 + b"ustar is a format\n", "notes.txt", "text/plain"),
    (b"a,\r\nb", "a.pyc", "text/plain"),
    (b"ID3 and OggS", "notes.txt", "text/plain"),
    *(
        (b"2024-01-01 10:00:00 x\n", f"app.log{end}", "text/x-log")
        for end in (".1", ".12", ".2024-01-01", "-20240101", ".old", "_2024.01.01")
    ),
    (b"2024-01-01 10:00:00 x\n", "APP.LOG.1", "text/x-log"),
    (b"words", "dialog.1", "text/plain"),
    (b"words", "app.log.words", "text/plain"),
    (bytes(range(256)) * 8, "app.log.1", "application/octet-stream"),
    (b"Title\n=====\n", "guide.rst", "text/x-rst"),
    (b"= Title\n", "guide.adoc", "text/asciidoc"),
    (b"= Title\n", "guide.asc", "text/asciidoc"),
    (b"-----BEGIN PGP SIGNATURE-----\n", "guide.asc", "application/pgp-keys"),
    (b"BEGIN:VCALENDAR\r\n", "plan.ics", "text/calendar"),
    (b"", "empty.md", "text/markdown"),
    (b"", "empty", "text/plain"),
]


@pytest.mark.parametrize(("head", "path", "expected"), CASES, ids=[f"{at}-{case[1]}" for at, case in enumerate(CASES)])
def test_media_type(head: bytes, path: str, expected: str) -> None:
    assert detect_media_type(head, "folder/" + path) == expected


@pytest.mark.parametrize("name", ["json", "csv", "yaml", "xml", "toml", "ini", "log", "js", "jsx", "java", "c", "go", "rs"])
def test_data_and_code_have_types_of_their_own(name: str) -> None:
    found = detect_media_type(b"some text", f"a.{name}")
    assert found == EXTENSIONS[name]
    assert found not in ("text/plain", "text/html", "text/markdown")


@given(st.binary(max_size=600), st.sampled_from(["a.py", "a.md", "a.ts", "a.txt", "a.html", "a.pdf", "a"]))
def test_any_bytes_have_a_type_and_what_is_called_text_decodes(head: bytes, path: str) -> None:
    found = detect_media_type(head, path)
    assert "/" in found
    if found in ("text/x-python", "text/markdown", "text/x-typescript", "text/plain"):
        text = decode(head).text
        assert text.encode("utf-8").decode("utf-8") == text


@given(st.binary(max_size=400), st.sampled_from([None, "utf-8", "iso-8859-1", "gbk", "utf-16", "utf-7", "no-such-name", "iso-2022-jp"]))
def test_decoding_can_be_repeated_from_the_encoding(data: bytes, declared: str | None) -> None:
    try:
        decoded = decode(data, declared=declared)
    except InputError as error:
        assert error.reject_class == "unsupported_media_type"
        return
    assert decode_as(data, decoded.encoding) == decoded.text
    decoded.text.encode("utf-8")


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=80))
def test_utf8_is_read_as_it_stands(text: str) -> None:
    text = text.removeprefix("\ufeff")
    assert decode(text.encode()).text == text
    assert decode(b"\xef\xbb\xbf" + text.encode()).text == text
    assert decode(b"\xff\xfe" + text.encode("utf-16-le")).text == text or text.encode("utf-16-le").isascii()


PROSE = {
    "cp1252": "Le café était fermé à l'été, déjà très tôt près de la forêt",
    "cp1250": "Książka leży na stole, a dziewczyna pisze długi list do swojej siostry w górach. Później pójdzie po świeże jabłka.",
    "gb18030": "这是一个关于文档解析的测试文件，里面有很多汉字。" * 3,
    "cp932": "これは日本語の文書です。文字コードを判定します。" * 3,
    "cp1251": "Это русский текст для проверки кодировки, в нём много слов." * 2,
    "koi8_r": "Это русский текст для проверки кодировки, в нём много слов." * 2,
    "big5hkscs": "這是一個關於文件解析的測試" * 4,
    "cp949": "이것은 한국어 문서입니다. 문자 인코딩을 확인합니다." * 3,
}


@pytest.mark.parametrize("encoding", PROSE)
def test_undeclared_encodings_are_guessed_and_say_so(encoding: str) -> None:
    decoded = decode(PROSE[encoding].encode(encoding))
    assert decoded.text == PROSE[encoding]
    assert decoded.warnings == ["encoding_guessed"]


@pytest.mark.parametrize(
    "text",
    [
        *("Grüße aus Köln", "Füße", "Größe: 5 m²", "GRÖßE", "ääni öö", "Größenänderung", "für Müßiggänger", "Ça été créée", "šéf"),
        *("L’été", "“Größe”", "10 °C ±2", "5 €", "Où ça?", "ÄÖÜ", "é", "naïveté déjà"),
    ],
)
def test_short_western_text_is_windows_1252(text: str) -> None:
    decoded = decode(text.encode("cp1252"))
    assert (decoded.text, decoded.encoding, decoded.warnings) == (text, "cp1252", ["encoding_guessed"])


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Zażółć gęślą jaźń", "cp1250"),
        ("Łódź", "cp1250"),
        ("Привет мир", "cp1251"),
        ("Καλημέρα κόσμε", "cp1253"),
        ("日本語の件名", "cp932"),
        ("안녕하세요", "cp949"),
        ("关于下周会议安排的通知", "gb18030"),
    ],
)
def test_short_text_of_other_alphabets_is_not_taken_for_western(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)).text == text


@pytest.mark.parametrize("encoding", PROSE)
def test_declared_encodings_are_believed(encoding: str) -> None:
    decoded = decode(PROSE[encoding].encode(encoding), declared=encoding)
    assert decoded.text == PROSE[encoding]
    assert decoded.warnings == []


def test_a_wrong_declaration_gives_way_to_utf8() -> None:
    decoded = decode("größer".encode(), declared="iso-8859-1")
    assert (decoded.text, decoded.encoding, decoded.warnings) == ("größer", "utf-8", ["wrong_declared_encoding"])


def test_a_few_broken_bytes_stay_utf8() -> None:
    decoded = decode("é è ç à".encode() + b" \xff end")
    assert (decoded.text, decoded.encoding, decoded.warnings) == ("é è ç à \ufffd end", "utf-8", ["invalid_utf8"])


def test_a_wrong_mark_is_dropped() -> None:
    decoded = decode(b"\xff\xfehello, plain text")
    assert (decoded.text, decoded.encoding, decoded.warnings) == ("hello, plain text", "utf-8", ["wrong_bom"])


def test_binary_is_no_text() -> None:
    with pytest.raises(InputError) as caught:
        decode(bytes(range(256)))
    assert caught.value.reject_class == "unsupported_media_type"


def test_declarations_are_found() -> None:
    assert declared_encoding(b'<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">') == "Shift_JIS"
    assert declared_encoding(b"<META CHARSET=utf-8>") == "utf-8"
    assert declared_encoding(b'<?xml version="1.0" encoding="GBK"?>') == "GBK"
    assert declared_encoding(b"nothing") is None
