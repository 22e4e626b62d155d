"""Outlook messages: properties, bodies as HTML, RTF or text, recipients, attachments, inner messages, hostile files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from container_files import compound_file, message, stored_rtf
from document_files import CORPUS, children, parse_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_cases import case
from test_mail import PNG, body, everything, meta, simple, texts

from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.limits import Limits
from raydex.kernels.mail_fields import written
from raydex.kernels.msg_rtf import codec_of, decompress_rtf, read_rtf

TICKS = 133_537_104_000_000_000  # 2024-02-29T20:00:00 UTC


def read(tree: dict[str, Any] | bytes, **options: Any) -> ParsedFile:
    data = tree if isinstance(tree, bytes) else compound_file(tree)
    return parse_bytes(data, "application/vnd.ms-outlook", **{"path": "a.msg", **options})


def test_case_b26() -> None:
    parsed = read(case("b26-msg-html-only/weekly.msg").read_bytes())
    assert meta(parsed)["subject"] == "Weekly report"
    assert [(b.kind, b.text) for b in parsed.blocks] == [
        ("heading", "Weekly report"),
        ("paragraph", "Wöchentlicher Bericht"),
        ("table", "Line 4 | stopped"),
    ]
    assert parsed.document is not None and parsed.document.warnings == []


@pytest.mark.skipif(not CORPUS.is_dir(), reason="shared/corpora is not beside this checkout")
def test_facts_of_the_corpus() -> None:
    facts = json.loads((CORPUS / "truth" / "facts.json").read_text())
    fact = facts["docs/email/msg_with_attachment.msg"]
    parsed = read((CORPUS / "email" / "msg_with_attachment.msg").read_bytes())
    found = meta(parsed)
    assert found["subject"] == fact["subject"] and found["date"] == fact["date"]
    assert [person["name"] for person in found["from"]] == fact["from"]
    assert [written(person) for person in found["to"]] == fact["to"]
    assert [entry["name"] for entry in found["attachments"]] == [entry["name"] for entry in fact["attachments"]]
    assert texts(parsed) == ["This email contains an attachment."]


def test_the_whole_message() -> None:
    headers = "From: Anna <anna@x.org>\r\nMessage-ID: <m1@x.org>\r\nReferences: <a@x.org> <b@x.org>\r\nIn-Reply-To: <b@x.org>\r\n\r\n"
    html = '<p>Größe</p><ul><li>one</li></ul><img src="cid:i1"><div id="divRplyFwdMsg">From: Bob</div><p>Old</p>'
    parsed = read(
        message(
            {0x0037: "Plan", 0x007D: headers, 0x0C1A: "Anna", 0x0C1F: "/o=Exchange/cn=anna", 0x5D01: "anna@x.org", 0x1013: html.encode()},
            recipients=[(1, "Bob", "bob@x.org"), (2, "carol@x.org", "carol@x.org"), (3, "Dan", "dan@x.org")],
            attachments=[
                ({0x3707: "p.png", 0x370E: "image/png", 0x3712: "i1", 0x3701: PNG}, {0x3705: 1}),
                ({0x3704: "A~1.TXT", 0x3707: "..\\..\\größe.txt", 0x3701: b"Text"}, {0x3705: 1}),
                ({0x3707: "far.txt"}, {0x3705: 4}),
                ({0x3001: "Inner", 0x3701: message({0x0037: "Inner plan", 0x1000: "Inner text"}, header=24)}, {0x3705: 5}),
            ],
            numbers={0x0039: TICKS, 0x3FDE: 65001},
        )
    )
    found = meta(parsed)
    assert (found["date"], found["message_id"], found["references"]) == ("2024-02-29T20:00:00+00:00", "m1@x.org", ["a@x.org", "b@x.org"])
    assert [(one["relation"], written({k: one[k] for k in ("name", "address")})) for one in found["participants"]] == [
        ("SENT", "Anna <anna@x.org>"),
        ("RECEIVED", "Bob <bob@x.org>"),
        ("CC", "carol@x.org"),
        ("RECEIVED", "Dan <dan@x.org>"),
    ]
    assert [(b.kind, b.text, b.metadata.get("quote", False)) for b in parsed.blocks[2:]] == [
        ("paragraph", "Größe", False),
        ("list_item", "one", False),
        ("image", "", False),
        ("paragraph", "From: Bob", True),
        ("paragraph", "Old", True),
    ]
    assert list(parsed.blobs.values()) == [PNG]
    assert [str(child.path) for child in children(parsed)] == ["a.msg!/größe.txt", "a.msg!/far.txt", "a.msg!/Inner plan.msg"]
    text, far, inner = children(parsed)
    assert [block.text for block in text.blocks] == ["Text"]
    assert far.rejects[0].reject_class == "unsupported_media_type"
    assert texts(inner) == ["Inner text"]


def test_text_in_a_code_page() -> None:
    tree = message({0x0037: "s"}, numbers={0x3FFD: 1251})
    tree["__substg1.0_1000001E"] = "Насос остановлен".encode("cp1251") + b"\0"
    assert texts(read(tree)) == ["Насос остановлен"]
    assert [codec_of(number) for number in (65001, 1252, 936, 28591, 99999)] == ["utf-8", "cp1252", "gb18030", "iso8859-1", None]


def test_the_richer_form_once() -> None:
    table = b"<table><tr><td>Line 4</td><td>stopped</td></tr></table>"
    assert texts(read(message({0x1000: "Line 4 stopped", 0x1013: table}))) == ["Line 4 | stopped"]
    parsed = read(message({0x1000: "Line 4 stopped", 0x1013: b"<p>Line 4 stopped</p>"}))
    assert [str(block.locator.part) for block in parsed.blocks] == ["body"]


PUBLISHED = bytes.fromhex(
    "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c09002062770 5b06c647d0a800fa0".replace(" ", "")
)


def test_compressed_rtf() -> None:
    """The example of the format's specification (MS-OXRTFCP 4.1.1)."""
    assert decompress_rtf(PUBLISHED, 100) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    assert texts(read(message({0x1009: PUBLISHED}))) == ["hello world"]
    for data in (b"", PUBLISHED[:20], b"\0" * 20):
        if data == PUBLISHED[:20]:
            assert decompress_rtf(data, 100).startswith(b"{\\rtf1")
        else:
            with pytest.raises(InputError):
                decompress_rtf(data, 100)
    with pytest.raises(InputError, match="expands"):
        decompress_rtf(PUBLISHED, 10)


def test_html_inside_of_rtf() -> None:
    rtf = (
        rb"{\rtf1\ansi\ansicpg1252\fromhtml1 \deff0{\fonttbl{\f0\fswiss Arial;}{\f1\fcharset204 Arial;}}"
        rb"{\*\htmltag64 <p>}\htmlrtf {\htmlrtf0 W\'f6chentlich "
        rb"\htmlrtf\f1\htmlrtf0 \'cd\'e0\'f1\'ee\'f1\htmlrtf\f0}\htmlrtf0 {\*\htmltag72 </p>}"
        rb"{\*\mhtmltag84 <img>}{\*\htmltag148 <table><tr><td>}Line 4{\*\htmltag <td>}\u8364?\u-10179?\u-8704?{\*\htmltag </table>}}"
    )
    parsed = read(message({0x1009: stored_rtf(rtf), 0x1000: "Wöchentlich Line 4"}))
    assert [(b.kind, b.text) for b in parsed.blocks] == [("paragraph", "Wöchentlich Насос"), ("table", "Line 4 | €😀")]
    assert {block.locator.part for block in parsed.blocks} == {"rtf"}


def test_rtf_text() -> None:
    rtf = (
        rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}}{\*\generator x;}{\pict 0102}One\par Two \{x\}\par\par {\b Three}\line\lquote four\rquote\~end}"
    )
    assert texts(read(message({0x1009: stored_rtf(rtf)}))) == ["One\nTwo {x}", "Three\n‘four’\xa0end"]
    assert read_rtf(b"{\\rtf1" + b"{" * 5_000 + b"x").text == "x"
    for broken in (b"text", b"{\\rtf1" + b"{" * 20_000):
        with pytest.raises(InputError):
            read_rtf(broken)


def test_a_broken_body_costs_itself() -> None:
    parsed = read(message({0x0037: "s", 0x1009: b"broken", 0x1000: "Text"}))
    assert texts(parsed) == ["Text"]
    assert parsed.document is not None and parsed.document.warnings == ["broken_part"]


def test_signed_and_encrypted_messages() -> None:
    inner = ({0x3707: "smime.p7m", 0x370E: "multipart/signed", 0x3701: simple("Signed text.")}, {0x3705: 1})
    parsed = read(message({0x001A: "IPM.Note.SMIME.MultipartSigned", 0x0037: "s"}, attachments=[inner]))
    assert [texts(child) for child in children(parsed)] == [["Signed text."]]
    inner = ({0x3707: "smime.p7m", 0x3701: b"\x30\x03\x02\x01\x01"}, {0x3705: 1})
    parsed = read(message({0x001A: "IPM.Note.SMIME", 0x0037: "s"}, attachments=[inner]))
    assert parsed.document is not None and parsed.document.text_state == "unavailable" and not children(parsed)


def test_limits() -> None:
    attachment = ({0x3707: "a.txt", 0x3701: b"x" * 5_000}, {0x3705: 1})
    parsed = read(message({0x0037: "s", 0x1000: "body"}, attachments=[attachment] * 4), limits=Limits(attachments=2))
    assert len(children(parsed)) == 2 and texts(parsed) == ["body"]
    assert parsed.document is not None and "too_many_attachments" in parsed.document.warnings
    parsed = read(message({0x0037: "s", 0x1000: "body"}, attachments=[attachment] * 4), limits=Limits(members_bytes=12_000))
    assert [child.document is not None for child in children(parsed)] == [True, True, False, False]
    assert {child.rejects[0].reject_class for child in children(parsed)[2:]} == {"bomb"}
    inner = message({0x0037: "s", 0x1000: "innermost"}, header=24)
    for _ in range(4):
        inner = message({0x0037: "s"}, attachments=[({0x3701: inner}, {0x3705: 5})], header=24)
    chain = everything(read(message({0x0037: "s"}, attachments=[({0x3701: inner}, {0x3705: 5})])), Limits(parts_depth=2))
    assert [one.document is not None for one in chain] == [True, True, True, False]


def test_what_is_no_message() -> None:
    for data in (b"", b"text", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 2_000, compound_file({"WordDocument": b"x" * 100})):
        parsed = read(data)
        assert parsed.document is None and parsed.rejects[0].reject_class in ("invalid_input", "empty")


WHOLE = compound_file(message({0x0037: "s", 0x1000: "body"}, attachments=[({0x3707: "a.txt", 0x3701: b"text"}, {0x3705: 1})]))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=8), st.integers(0, len(WHOLE)))
def test_any_damage_gives_rows_or_a_typed_reject(changes: list[tuple[int, int]], size: int) -> None:
    data = bytearray(WHOLE)
    for at, value in changes:
        data[at] = value
    for one in (bytes(data), WHOLE[:size]):
        parsed = read(one)
        assert (parsed.document is None) == bool(parsed.rejects)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_rtf_is_read(data: bytes) -> None:
    assert isinstance(read_rtf(b"{\\rtf1 " + data).text, str)


def test_marks() -> None:
    assert body(read(message({0x1000: "New\r\n\r\n> Old\r\n"})))[1] == ("Old", {"quote": True, "quote_level": 1})
