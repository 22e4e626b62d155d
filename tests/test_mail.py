"""Mails: headers, bodies in several forms, quotes, signatures, inline images, attachments, wrong charsets, hostile files."""

from __future__ import annotations

import base64
import json
import struct
from email.message import EmailMessage
from typing import Any

import pytest
from document_files import CORPUS, children, parse_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_cases import case

from raydex.ir.parsed import ParsedFile
from raydex.kernels.cms import signed_content
from raydex.kernels.image_size import image_size
from raydex.kernels.limits import Limits
from raydex.kernels.mail_fields import addresses, decode_base64, decode_words, parameters, written
from raydex.kernels.request import OUTERMOST, Nesting
from raydex.kernels.tnef import read_tnef

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAYAAACddGYaAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def read(data: bytes | str, **options: Any) -> ParsedFile:
    return parse_bytes(data, "message/rfc822", **{"path": "a.eml", **options})


def meta(parsed: ParsedFile) -> dict[str, Any]:
    assert parsed.document is not None, parsed.rejects
    return parsed.document.metadata


def body(parsed: ParsedFile) -> list[tuple[str, dict[str, Any]]]:
    """Text and marks of the blocks of parts."""
    names = ("quote", "quote_level", "signature")
    return [(b.text, {k: b.metadata[k] for k in names if k in b.metadata}) for b in parsed.blocks if b.locator.part is not None]


def texts(parsed: ParsedFile) -> list[str]:
    return [text for text, _ in body(parsed)]


def everything(parsed: ParsedFile, limits: Limits | None = None, around: Nesting = OUTERMOST) -> list[ParsedFile]:
    inside = around.inside(parsed.media_type)
    return [parsed, *(one for child in children(parsed, limits, around) for one in everything(child, limits, inside))]


def simple(text: str, headers: str = "", kind: str = "text/plain; charset=utf-8") -> bytes:
    return f"From: a@x.org\nTo: b@x.org\n{headers}Content-Type: {kind}\n\n{text}".encode()


SIGNED = """From: sender <s@example.org>
Subject: =?utf-8?B?UHLDvGZiZXJpY2h0?= =?utf-8?B?IDQy?=
Content-Type: multipart/signed; boundary="S"; protocol="application/pgp-signature"

--S
Content-Type: multipart/mixed; boundary="M"

--M

See the forwarded mail.
--M
Content-Type: message/rfc822
Content-Disposition: attachment

Subject: Inner report
Message-ID: <inner@example.org>
Content-Type: multipart/mixed; boundary="I"

--I

Pump 3 leaks.
--I
Content-Type: text/plain
Content-Disposition: attachment; filename="../../etc/leak.txt"

pump 3
--I--
--M
Content-Type: multipart/mixed; boundary="N"
Content-Disposition: attachment

--N

Nested multipart note.
--N--
--M--
--S
Content-Type: application/pgp-signature; name="signature.asc"

-----BEGIN PGP SIGNATURE-----
AAAA
-----END PGP SIGNATURE-----
--S--
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_signed_mail_with_a_forwarded_mail(line_end: str) -> None:
    parsed = read(SIGNED.replace("\n", line_end))
    assert meta(parsed)["subject"] == "Prüfbericht 42"
    assert texts(parsed) == ["See the forwarded mail.", "Nested multipart note."]
    assert [str(b.locator) for b in parsed.blocks[2:]] == ["part=1.1;char=0-23", "part=1.3.1;char=0-22"]
    (inner,) = children(parsed)
    assert meta(inner)["message_id"] == "inner@example.org" and meta(inner)["subject"] == "Inner report"
    assert texts(inner) == ["Pump 3 leaks."]
    (leak,) = children(inner)
    assert leak.path == "a.eml!/Inner report.eml!/etc/leak.txt"
    assert meta(inner)["attachments"][0]["name"] == "../../etc/leak.txt"
    assert [b.text for b in leak.blocks] == ["pump 3"]
    assert {part["use"] for part in meta(parsed)["parts"]} == {"body", "attachment", "signature"}
    assert not any("BEGIN PGP" in block.text for one in everything(parsed) for block in one.blocks)


def test_case_b23() -> None:
    parsed = read(case("b23-eml-signed-nested/report.eml").read_bytes())
    assert parsed.document is not None and parsed.document.title == "Prüfbericht 42"
    blocks = [block.text for one in everything(parsed) for block in one.blocks]
    for text in ("See the forwarded mail.", "Pump 3 leaks.", "Nested multipart note."):
        assert blocks.count(text) == 1
    assert meta(children(parsed)[0])["attachments"][0]["name"] == "../../etc/leak.csv"


def test_case_b25() -> None:
    parsed = read(case("b25-eml-wrong-charset/enc.eml").read_bytes())
    assert texts(parsed) == ["Größe 5 µm, Preis 3 €", "Stärke – Prüfung", "Höhe ist stabil."]
    assert [part["charset"] for part in meta(parsed)["parts"]] == ["utf-8", "cp1252", "utf-8"]


@pytest.mark.parametrize(
    ("charset", "encoding", "subject", "name"),
    [
        ("", "latin-1", "Grüße aus Köln", "Jörg Müßig"),
        ("", "utf-8", "Grüße aus Köln", "Jörg Müßig"),
        ("utf-8", "latin-1", "Grüße", "Jörg Müßig"),
        ("us-ascii", "latin-1", "Grüße", "Jörg Müßig"),
        ("iso-8859-1", "latin-1", "ÄÖÜ", "Åå"),
        ("koi8-r", "koi8-r", "План", "Иван"),
        ("gb2312", "gbk", "会议", "李明"),
        ("windows-1250", "cp1250", "Łódź", "Paweł"),
        ("iso-8859-2", "utf-8", "Łódź", "Paweł"),
    ],
)
def test_raw_header_fields_are_in_the_charset_of_the_text(charset: str, encoding: str, subject: str, name: str) -> None:
    head = f"Subject: {subject}\nFrom: {name} <a@x.org>\n".encode(encoding)
    kind = f"text/plain; charset={charset}" if charset else "text/plain"
    parsed = read(head + f"Content-Type: {kind}\n\nbody\n".encode())
    assert (meta(parsed)["subject"], meta(parsed)["from"][0]["name"]) == (subject, name)
    inside = (
        head
        + b"Content-Type: multipart/mixed; boundary=b\n\n--b\n"
        + f"Content-Type: {kind}\n\nbody\n--b\nContent-Type: application/x-a\nContent-Disposition: attachment; ".encode()
        + f'filename="{subject}.bin"\n\n1\n--b--\n'.encode(encoding)
    )
    assert meta(read(inside))["subject"] == subject
    assert meta(read(inside))["attachments"][0]["name"] == f"{subject}.bin"
    box = parse_bytes(b"From a@x.org Mon Jan  1 00:00:00 2024\n" + head + f"Content-Type: {kind}\n\nbody\n".encode(), "application/mbox")
    assert box.blocks[0].text == subject


@pytest.mark.skipif(not CORPUS.is_dir(), reason="shared/corpora is not beside this checkout")
def test_facts_of_the_corpus() -> None:
    facts = json.loads((CORPUS / "truth" / "facts.json").read_text())
    mails = {name: fact for name, fact in facts.items() if name.endswith(".eml")}
    assert mails
    for name, fact in mails.items():
        parsed = read((CORPUS.parent / name).read_bytes(), path=name.rpartition("/")[2])
        found = meta(parsed)
        assert found["subject"] == fact["subject"] and found["date"] == fact["date"]
        for field in ("from", "to", "cc", "bcc"):
            assert [written(person) for person in found.get(field, [])] == fact[field]
        if fact["body_plain"] is not None and fact["body_html"] is None:
            assert "\n\n".join(texts(parsed)) == fact["body_plain"]
        assert len(children(parsed)) == len(fact["attachments"])
        for child, entry, wanted in zip(children(parsed), found["attachments"], fact["attachments"], strict=True):
            assert child.media_type == wanted["type"]
            if "name" in wanted:
                assert (entry["name"], entry["bytes"]) == (wanted["name"], wanted["bytes"])
                assert [block.text for block in child.blocks] == [wanted["text"]]
            else:
                assert meta(child)["subject"] == wanted["subject"] and texts(child) == [wanted["body"]]


def test_headers_are_one_record() -> None:
    mail = (
        b"From: =?iso-8859-1?Q?J=FCrgen_M=FCller?= <j@x.org>\nSender: s@x.org\nReply-To: r@x.org\n"
        b'To: "Doe, Jane" <jane@x.org>, Roe, Rick <rick@x.org>,\n\tteam: one@x.org, two@x.org;, (the boss) boss@x.org\n'
        b"Cc: undisclosed-recipients:;\nBcc: =?utf-8?B?5byg?=\n =?utf-8?B?5LiJ?= <zhang@x.org>\n"
        b"Subject: Gr\xfc\xdfe\n und mehr\nDate: Tue, 5 Mar 2024 08:09:10 +0100 (CET)\nMessage-ID: <m1@x.org>\n"
        b"In-Reply-To: <m0@x.org>\nReferences: <a@x.org>\n <m0@x.org>\n\nHi\n"
    )
    found = meta(read(mail))
    assert found["subject"] == "Grüße und mehr"
    assert found["from"] == [{"name": "Jürgen Müller", "address": "j@x.org"}]
    assert [written(one) for one in found["to"]] == [
        "Doe, Jane <jane@x.org>",
        "Roe, Rick <rick@x.org>",
        "one@x.org",
        "two@x.org",
        "the boss <boss@x.org>",
    ]
    assert found["cc"] == [] and found["bcc"] == [{"name": "张三", "address": "zhang@x.org"}]
    assert found["sender"][0]["address"] == "s@x.org" and found["reply_to"][0]["address"] == "r@x.org"
    assert found["date"] == "2024-03-05T08:09:10+01:00"
    assert (found["message_id"], found["in_reply_to"], found["references"]) == ("m1@x.org", ["m0@x.org"], ["a@x.org", "m0@x.org"])
    assert [one["relation"] for one in found["participants"]] == ["SENT", *["RECEIVED"] * 5, "RECEIVED"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("=?utf-8?Q?a=C3?= =?utf-8?Q?=A4?=", "aä"),  # one character in two words
        ("=?utf-8?q?a_b?= c =?utf-8?q?d?=", "a b c d"),
        ("=?utf-8*en?B?aGk?=", "hi"),
        ("=?gb2312?B?1tDOxA==?=", "中文"),
        ("=?iso-2022-jp?B?GyRCRnxLXBsoQg==?=", "日本"),
        ("=?x-none?B?aGk=?=", "hi"),
        ("=?utf-8?B??= =?broken", " =?broken"),
        ("plain", "plain"),
    ],
)
def test_encoded_words(words: str, text: str) -> None:
    assert decode_words(words) == text


def test_parameters() -> None:
    assert parameters('Attachment; filename="a \\"b\\".txt"; size=3')[1] == {"filename": 'a "b".txt', "size": "3"}
    assert parameters("x; filename*0*=utf-8''Pr%C3%BC; filename*1*=f%20; filename*2=\"1.pdf\"")[1] == {"filename": "Prüf 1.pdf"}
    assert parameters("x; filename*=iso-8859-1'de'%E4.txt")[1] == {"filename": "ä.txt"}
    assert parameters('x; name="=?utf-8?Q?=C3=A4.txt?="')[1] == {"name": "ä.txt"}
    assert parameters("x; filename=my file.txt")[1] == {"filename": "my file.txt"}
    assert decode_base64(b"aGk=\r\n!aGk") == b"hihi"


ALTERNATIVE = """From: a@x.org
Subject: s
Content-Type: multipart/alternative; boundary=b

--b
Content-Type: text/plain

{plain}
--b
Content-Type: text/html

{html}
--b--
"""


@pytest.mark.parametrize(
    ("plain", "html", "chosen"),
    [
        ("one two three", "<p>one two three</p>", "1"),  # HTML says no more
        ("one two three", "<table><tr><td>one</td><td>two three</td></tr></table>", "2"),
        ("one two three four five six", "<ul><li>see online</li></ul>", "1"),  # HTML that lacks the text
        ("one", "<p>one two</p>", "2"),
        ("", "<p>one</p>", "2"),
        ("one", "", "1"),
    ],
)
def test_one_of_several_forms(plain: str, html: str, chosen: str) -> None:
    parsed = read(ALTERNATIVE.format(plain=plain, html=html))
    assert {block.locator.part for block in parsed.blocks if block.locator.part} == {chosen}
    if plain and html:
        assert [part["use"] for part in meta(parsed)["parts"]].count("alternative") == 1


def related() -> bytes:
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "a@x.org", "picture"
    mail.set_content("See the picture below.")
    mail.add_alternative('<p>See the <b>picture</b> below.</p><img src="cid:p1@x" alt="plan"><p>End</p>', subtype="html")
    html = mail.get_payload()[1]  # type: ignore[index]
    html.add_related(PNG, "image", "png", cid="<p1@x>", filename="plan.png")  # type: ignore[union-attr]
    html.add_related(PNG, "image", "png", cid="<p2@x>", filename="other.png")  # type: ignore[union-attr]
    mail.add_attachment(b"a;b\n", maintype="text", subtype="plain", filename="größe.txt")
    return mail.as_bytes()


def test_inline_images_are_assets() -> None:
    parsed = read(related())
    assert [(b.kind, b.text) for b in parsed.blocks if b.locator.part] == [
        ("paragraph", "See the picture below."),
        ("image", "plan"),
        ("paragraph", "End"),
        ("image", "other.png"),
    ]
    assert [(a.media_type, a.width, a.height) for a in parsed.assets] == [("image/png", 3, 2)] * 2
    assert [parsed.blobs[asset.asset_id] for asset in parsed.assets] == [PNG, PNG]
    assert [entry["name"] for entry in meta(parsed)["attachments"]] == ["größe.txt"]
    assert image_size(b"GIF89a\x05\0\x06\0") == {"width": 5, "height": 6}
    assert image_size(bytes.fromhex("ffd8ffe000040000ffc0001108000a0014")) == {"width": 20, "height": 10}


def test_quotes_and_signature() -> None:
    text = "Yes, do it.\n\n-- \nAnna\nPump Ltd\n\nOn Mon, 4 Mar 2024 at 10:00, Bob <b@x.org>\nwrote:\n"
    text += "> Shall I\n> start?\n>> Not yet.\n>\n> Bob\n\nPS: now"
    assert body(read(simple(text))) == [
        ("Yes, do it.", {}),
        ("--\nAnna\nPump Ltd", {"signature": True}),
        ("On Mon, 4 Mar 2024 at 10:00, Bob <b@x.org>\nwrote:", {"quote": True, "quote_level": 1}),
        ("Shall I\nstart?", {"quote": True, "quote_level": 1}),
        ("Not yet.", {"quote": True, "quote_level": 2}),
        ("Bob", {"quote": True, "quote_level": 1}),
        ("PS: now", {}),
    ]


@pytest.mark.parametrize(
    "leave", ["Kind regards,", "Thanks!", "Yours sincerely", "Mit freundlichen Grüßen", "Cordialement,", "Un saludo,", "此致"]
)
def test_a_signature_without_its_mark(leave: str) -> None:
    found = body(read(simple(f"The valve is set.\n\n{leave}\nAnna Ling\nPump Ltd\n\nFrom: Bob\nSent: Monday\n\nSet?\n")))
    marked = [text for text, mark in found if mark.get("signature")]
    assert marked == [f"{leave}\nAnna Ling\nPump Ltd"]
    assert found[0] == ("The valve is set.", {})


@pytest.mark.parametrize("text", ["Thanks,\n" + "the pump runs again since we opened the second valve. " * 3, "Thanks"])
def test_thanks_that_close_nothing(text: str) -> None:
    assert [mark for _, mark in body(read(simple(f"Hello.\n\n{text}\n")))] == [{}, {}]


@pytest.mark.parametrize(
    "divider",
    [
        "-----Original Message-----",
        "-----Ursprüngliche Nachricht-----",
        "---------- Forwarded message ---------",
        "-----原始邮件-----",
        "From: Bob\nSent: Monday\nTo: Anna",
        "Von: Bob\nGesendet: Montag\nAn: Anna",
        "发件人: Bob\n发送时间: 2024",
        "Am 4.3.2024 um 10:00 schrieb Bob:",
        "Le lun. 4 mars 2024 à 10:00, Bob a écrit :",
        "张三 <z@x.org> 于2024年3月4日写道：",
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_all_below_a_divider_is_quoted(divider: str, line_end: str) -> None:
    marks = [mark for _, mark in body(read(simple(f"New.\n\n{divider}\n\nOld.\n".replace("\n", line_end))))]
    assert marks[0] == {} and len(marks) == 3 and all(mark.get("quote") for mark in marks[1:])


def test_flowed_text() -> None:
    text = "A long \nline.\n> quoted \n> text\n-- \nAnna"
    found = body(read(simple(text, kind="text/plain; format=flowed")))
    assert [one for one, _ in found] == ["A long line.", "quoted text", "--\nAnna"]
    assert texts(read(simple("日本 \n語\n", kind="text/plain; format=flowed; delsp=yes"))) == ["日本語"]


@pytest.mark.parametrize(
    ("html", "marks"),
    [
        ('<p>New</p><div class="gmail_quote"><div>On Monday Bob wrote:</div><blockquote><p>Old</p></blockquote></div>', [0, 1, 2]),
        ('<p>New</p><p>On Mon, Bob wrote:</p><blockquote type="cite"><p>Old</p></blockquote><p>More</p>', [0, 1, 1, 0]),
        ('<p>New</p><div id="divRplyFwdMsg"><p>From: Bob</p></div><p>Old</p>', [0, 1, 1]),
        ("<p>New</p><p>From: Bob<br>Sent: Monday<br>To: Anna</p><p>Old</p>", [0, 1, 1]),
        ('<p>New</p><blockquote style="margin:0 0 0 40px;border:none"><p>indented</p></blockquote>', [0, 0]),
    ],
)
def test_quotes_in_html(html: str, marks: list[int]) -> None:
    assert [mark.get("quote_level", 0) for _, mark in body(read(simple(html, kind="text/html")))] == marks


def test_signature_in_html() -> None:
    parsed = read(simple('<p>New</p><div class="gmail_signature"><p>Anna</p></div><p>End</p>', kind="text/html"))
    assert [mark.get("signature", False) for _, mark in body(parsed)] == [False, True, False]


def test_pgp_armour_is_no_text() -> None:
    text = (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nHello.\n-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----\n"
    )
    assert texts(read(simple(text))) == ["Hello."]
    secret = read(simple("-----BEGIN PGP MESSAGE-----\n\nAAAA\n-----END PGP MESSAGE-----\n"))
    assert texts(secret) == [] and secret.document is not None
    assert secret.document.text_state == "unavailable" and "encrypted_body" in secret.document.warnings


def der(tag: int, *content: bytes) -> bytes:
    data = b"".join(content)
    size = len(data).to_bytes(2, "big")
    return bytes((tag, 0x82)) + size + data


def test_smime() -> None:
    inner = simple("Signed text.")
    oid = bytes.fromhex("06092a864886f70d0107")
    content = der(0x30, oid + b"\x01", der(0xA0, der(0x04, inner)))
    signed = der(0x30, oid + b"\x02", der(0xA0, der(0x30, b"\x02\x01\x01", der(0x31), content)))
    assert signed_content(signed) == inner
    parts = b"\x24\x80" + der(0x04, inner[:9]) + der(0x04, inner[9:]) + b"\0\0"
    streamed = b"\x30\x80" + oid + b"\x02\xa0\x80\x30\x80\x02\x01\x01" + der(0x31) + b"\x30\x80" + oid + b"\x01\xa0\x80" + parts
    assert signed_content(streamed + b"\0\0" * 5) == inner
    head = b"From: a@x.org\nSubject: s\nContent-Type: application/pkcs7-mime; smime-type=%b\nContent-Transfer-Encoding: base64\n\n"
    parsed = read(head % b"signed-data" + base64.encodebytes(signed))
    assert texts(parsed) == ["Signed text."] and parsed.blocks[-1].locator.part == "1.1"
    secret = read(head % b"enveloped-data" + base64.encodebytes(signed))
    assert secret.document is not None and secret.document.text_state == "unavailable"
    assert [event.name for event in secret.events] == ["encrypted_body", "no_body"] and all(event.message for event in secret.events)


def tnef(*attributes: tuple[int, bytes]) -> bytes:
    parts = [struct.pack("<BII", 1, kind, len(data)) + data + struct.pack("<H", sum(data) & 0xFFFF) for kind, data in attributes]
    return struct.pack("<IH", 0x223E9F78, 1) + b"".join(parts)


def mapi(*values: tuple[int, int, bytes]) -> bytes:
    out = struct.pack("<I", len(values))
    for pid, kind, data in values:
        out += struct.pack("<HH", kind, pid)
        out += data if kind == 3 else struct.pack("<II", 1, len(data)) + data + bytes(-len(data) % 4)
    return out


def test_tnef() -> None:
    data = tnef(
        (0x0002800C, b"Plain body.\0"),
        (0x00069003, mapi((0x3FDE, 3, struct.pack("<I", 65001)), (0x1013, 0x0102, b"<p>Body</p><ul><li>one</li></ul>"))),
        (0x00069002, b"\0" * 14),
        (0x00018010, b"LONGN~1.TXT\0"),
        (0x0006800F, b"attached text"),
        (0x00069005, mapi((0x3707, 0x1F, "größe lang.txt\0".encode("utf-16-le")))),
    )
    head = "Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n"
    winmail = "--b\nContent-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\n"
    parsed = read(head + winmail + base64.encodebytes(data).decode() + "--b--")
    assert [(b.kind, b.text) for b in parsed.blocks if b.locator.part] == [("paragraph", "Body"), ("list_item", "one")]
    assert [(entry["part"], entry["name"]) for entry in meta(parsed)["attachments"]] == [("1.1", "größe lang.txt")]
    assert [block.text for block in children(parsed)[0].blocks] == ["attached text"]
    with_body = read(head + "--b\n\nMail body\n" + winmail + base64.encodebytes(data[:-20]).decode() + "--b--")
    assert texts(with_body) == ["Mail body"] and len(children(with_body)) == 1
    assert with_body.document is not None and with_body.document.warnings == ["broken_part"]


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.binary(max_size=60))
def test_any_tnef_is_read(data: bytes, values: bytes) -> None:
    assert read_tnef(struct.pack("<IH", 0x223E9F78, 1) + data, 3) is not None
    assert read_tnef(tnef((0x00069003, values), (0x00069002, b""), (0x00069005, values)), 3) is not None


def test_one_broken_part_costs_itself() -> None:
    mail = (
        "From: a@x.org\nSubject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nfirst\n"
        "--b\nContent-Type: multipart/mixed\n\nunmarked\n--b\nContent-Type: application/zip; name=a.zip\n\nPK\x03\x04broken\n"
        "--b\nContent-Type: message/external-body; access-type=URL\n\nContent-Type: text/plain\n\n"
        "--b\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\nU3ViamVjdDogaGkKCnRleHQK\n--b\n\nlast"
    )
    parsed = read(mail)
    assert texts(parsed) == ["first", "unmarked", "last"]
    assert [child.document is not None for child in children(parsed)] == [False, True]
    assert children(parsed)[0].rejects[0].reject_class == "invalid_input"
    assert meta(children(parsed)[1])["subject"] == "hi"
    assert parsed.document is not None and set(parsed.document.warnings) == {"broken_part", "external_body"}


def test_limits() -> None:
    attachment = "--b\nContent-Disposition: attachment; filename=a.txt\n\nx\n"
    head = "From: a@x.org\nSubject: s\nContent-Type: multipart/mixed; boundary=b\n\n"
    many = read(head + attachment * 5 + "--b\n\nbody\n--b--", limits=Limits(attachments=2))
    assert texts(many) == ["body"] and len(children(many)) == 2
    assert many.document is not None and "too_many_attachments" in many.document.warnings
    assert len({child.record_id for child in children(many)}) == 2
    few = read(head + "--b\n\nbody\n" * 5, limits=Limits(members=3))
    assert texts(few) == ["body"] * 3 and few.document is not None and few.document.warnings == ["broken_part"]
    deep = "".join(f"Content-Type: multipart/mixed; boundary=b{at}\n\n--b{at}\n" for at in range(1_000))
    parsed = read("From: a@x.org\n" + deep + "\ntext\n")
    assert parsed.document is not None and "broken_part" in parsed.document.warnings
    nested = simple("innermost")
    for _ in range(4):
        nested = b"Subject: outer\nContent-Type: message/rfc822\n\n" + nested
    chain = everything(read(nested), Limits(parts_depth=2))
    assert [bool(one.document) for one in chain] == [True, True, True, False]
    assert chain[-1].rejects[0].reject_class == "too_deep"
    assert children(read(head + attachment, limits=Limits(members_bytes=0)))[0].rejects[0].reject_class == "bomb"


def test_what_is_no_mail() -> None:
    parsed = read(b"\n\nno fields here\n")
    assert parsed.document is None and parsed.rejects[0].reject_class == "invalid_input"
    empty = read("From: a@x.org\nSubject: only a subject\n\n")
    assert empty.document is not None and empty.document.warnings == ["no_body"]


def test_mailbox() -> None:
    box = "From a@x Mon Mar  4 10:00:00 2024\nSubject: one\n\n>From here on\n\n"
    box += "From b@x Mon Mar  4 10:00:00 2024\nSubject: two\n\nNot a mark:\nFrom c\n"
    parsed = parse_bytes(box, "application/mbox", path="all.mbox")
    assert [block.text for block in parsed.blocks] == ["one", "two"]
    assert [texts(child) for child in children(parsed)] == [["From here on"], ["Not a mark:\nFrom c"]]
    assert parse_bytes("no mails", "application/mbox").rejects[0].reject_class == "invalid_input"


def test_characters_are_those_of_the_decoded_part() -> None:
    text = "  First\r\nline.  \r\n\r\n\r\n> quoted\r\n> more\r\n"
    for block in read(simple(text)).blocks[2:]:
        assert block.locator.char is not None
        low, high = block.locator.char
        assert text[low:high].replace("> ", "").split() == block.text.split()


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(lambda data: SIGNED.encode()[: len(data) * 5] + data)))
def test_any_bytes_give_rows_or_a_typed_reject(data: bytes) -> None:
    parsed = read(data)
    assert (parsed.document is None) == bool(parsed.rejects)
    assert all(reject.reject_class != "internal" for one in everything(parsed) for reject in one.rejects)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='"<>(),;:@\\ =?ab', max_size=60))
def test_any_address_line_is_read(line: str) -> None:
    assert all(person["name"] or person["address"] for person in addresses(line))
