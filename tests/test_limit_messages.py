"""What goes over a limit says the limit's name, its value, and what was met."""

from __future__ import annotations

import zipfile
from email.message import EmailMessage

import pytest
from document_files import parse_bytes

from raydex.ir.errors import InputError
from raydex.jobs.isolation import Part
from raydex.jobs.member_rows import Families
from raydex.kernels.limits import Limits
from raydex.kernels.members import Members
from raydex.kernels.msg_rtf import decompress_rtf
from raydex.kernels.package import check_members
from raydex.kernels.request import ParseRequest


def test_a_breach_says_name_value_and_figure() -> None:
    limits = Limits(member_bytes=8, members=3)
    assert limits.say("9 bytes", "member_bytes") == "9 bytes, more than limits.member_bytes (8)"
    assert limits.say("5", "member_bytes", "members") == "5, more than limits.member_bytes (8) or limits.members (3)"


def request(limits: Limits) -> ParseRequest:
    return ParseRequest("rec_1", "hash", "a.zip", "application/zip", b"", limits=limits)


def test_members_tell_which_of_their_limits_was_met() -> None:
    one = Members(request(Limits(member_bytes=8))).add("1", "a.txt", b"x" * 9)
    assert one.error == "9 bytes, more than limits.member_bytes (8)"
    members = Members(request(Limits(members_bytes=10)))
    members.add("1", "a.txt", b"x" * 6)
    assert members.add("2", "b.txt", b"x" * 6).error == "6 bytes, with 6 of the members before, more than limits.members_bytes (10)"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(member_bytes=99), "'a.txt': 2000 bytes, more than limits.member_bytes (99)"),
        (Limits(members_bytes=999), "the members claim 2000 bytes, more than limits.members_bytes (999)"),
    ],
)
def test_a_package_that_claims_too_much(limits: Limits, said: str) -> None:
    info = zipfile.ZipInfo("a.txt")
    info.file_size, info.compress_size = 2_000, 1_900
    with pytest.raises(InputError) as error:
        check_members([info], limits, "a.docx")
    assert said in str(error.value)


def test_a_member_that_expands_too_much() -> None:
    info = zipfile.ZipInfo("a.txt")
    info.file_size, info.compress_size = 50_000_000, 100_000
    with pytest.raises(InputError, match=r"100000 bytes expand to 50000000, 500 times, more than limits\.ratio \(100\)"):
        check_members([info], Limits(), "a.docx")


def test_a_file_that_unpacks_into_too_much_in_all() -> None:
    row = {"record_id": "rec_1", "content_hash": "h", "media_type": "application/zip", "path": "a.zip"}
    parts = [Part("member", f"cas:{at}", f"hash{at}", 7, step=str(at), name=f"{at}.txt", media_type="text/plain") for at in range(3)]
    for limits, said in (
        (Limits(members=2), "the file unpacks into 3 members up to this one, more than limits.members (2)"),
        (Limits(members_bytes=20), "the file unpacks into 21 bytes up to this one, more than limits.members_bytes (20)"),
    ):
        errors = [member["error"] for member in Families(limits, kept=True).members_of(dict(row), parts)]
        assert errors == ["", "", said]


def test_compressed_rtf_that_expands_too_much() -> None:
    # sixteen bytes of header, then tokens: one literal and references to it
    body = b"\xfe" + b"A" + b"\x0c\xff" * 7
    data = (len(body) + 12).to_bytes(4, "little") + (1 << 20).to_bytes(4, "little") + b"LZFu" + bytes(4) + body
    with pytest.raises(InputError, match=r"expands to \d+ bytes or more, more than limits\.member_bytes \(8\)"):
        decompress_rtf(data, 8)


def test_attachments_beyond_the_limit_are_counted() -> None:
    mail = EmailMessage()
    mail["Subject"] = "s"
    mail.set_content("body")
    for at in range(5):
        mail.add_attachment(b"x", maintype="application", subtype="octet-stream", filename=f"{at}.bin")
    parsed = parse_bytes(mail.as_bytes(), "message/rfc822", path="a.eml", limits=Limits(attachments=2))
    (event,) = (event for event in parsed.events if event.name == "too_many_attachments")
    assert "3 attachments are left out: 5 are there" in event.message and "limits.attachments (2)" in event.message
