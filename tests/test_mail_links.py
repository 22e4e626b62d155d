"""People and answers of a mail, and the source's own text at the locators of mails (kernels/mail_links.py, kernels/excerpt.py)."""

from __future__ import annotations

import pytest
from container_files import compound_file, message
from document_files import CORPUS, children, parse_bytes
from hypothesis import given
from hypothesis import strategies as st
from test_mail import PNG, simple

from raydex.ir.ids import content_hash, person_id
from raydex.ir.locator import Locator
from raydex.ir.parsed import ParsedFile
from raydex.kernels.excerpt import MAIL, OUTLOOK, Excerpts, has_text
from raydex.kernels.mail_links import mail_links

THREAD = (
    'From: =?utf-8?B?SsO8cmdlbg==?= <Boss@X.org>\nTo: ann@x.org, "Berg, Bo" <bo@x.org>,\n nobody\nCc: ann@X.ORG\n'
    "Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\nMessage-ID: <2@x>\nIn-Reply-To: <1@x>\nReferences: <0@x> <1@x>\n"
    "Content-Type: text/html; charset=latin-1\n\n<h1>Stand</h1><p>Die Pumpe l\xe4uft.</p>"
).encode("latin-1")


def links(parsed: ParsedFile) -> list[tuple[str, str, str, str]]:
    assert parsed.document is not None
    return [(link.relation, link.key, str(link.locator), link.excerpt) for link in mail_links(parsed.document.metadata)]


def excerpts(data: bytes, parsed: ParsedFile) -> Excerpts:
    assert parsed.document is not None
    return Excerpts(data, parsed.media_type, parsed.document.encoding, parsed.document.metadata.get("inside", ""))


def check_excerpts(data: bytes, parsed: ParsedFile) -> None:
    """What a link says can be cut again, headings hash to their own place, and a block of a part stands in that part's text."""
    assert parsed.document is not None
    source = excerpts(data, parsed)
    for link in mail_links(parsed.document.metadata):
        assert source.at(link.locator) == link.excerpt
        assert link.key in link.excerpt.lower() or link.key in link.excerpt
        assert Locator.parse(str(link.locator)) == link.locator
    for block in parsed.blocks:
        if not has_text(block.locator, parsed.media_type):
            continue
        excerpt = source.at(block.locator)
        assert excerpt is not None
        if block.kind == "heading":
            assert content_hash(excerpt.encode()) == block.metadata["excerpt_hash"]
        elif block.locator.field is not None:
            assert excerpt == block.text
        elif block.kind == "paragraph" and "tag" not in block.metadata and not block.metadata.get("quote"):
            assert "".join(block.text.split()) == "".join(excerpt.split())


def test_people_and_answers_have_places() -> None:
    parsed = parse_bytes(THREAD, MAIL, path="a.eml")
    assert links(parsed) == [
        ("SENT", "boss@x.org", "field=from;char=0-19", "Jürgen <Boss@X.org>"),
        ("RECEIVED", "ann@x.org", "field=to;char=0-9", "ann@x.org"),
        ("RECEIVED", "bo@x.org", "field=to;char=11-30", "Berg, Bo <bo@x.org>"),
        ("CC", "ann@x.org", "field=cc;char=0-9", "ann@X.ORG"),
        ("MESSAGE_ID", "2@x", "field=message_id;char=0-3", "2@x"),
        ("REPLY_TO", "1@x", "field=in_reply_to;char=0-3", "1@x"),
    ]
    check_excerpts(THREAD, parsed)
    source = excerpts(THREAD, parsed)
    assert source.at(Locator(field="subject")) == "Grüße"
    heading = next(block for block in parsed.blocks if block.text == "Stand")
    assert source.at(heading.locator) == "<h1>Stand</h1>"
    assert source.at(Locator(part="7", char=(0, 3))) is None and source.at(Locator(member="x")) is None


def test_a_person_is_an_address() -> None:
    assert person_id("Ann@X.org ") == person_id("ann@x.org") != person_id("bo@x.org")


def test_without_in_reply_to_the_last_reference_is_answered() -> None:
    parsed = parse_bytes(simple("Hi", "References: <0@x>\n <1@x>\n"), MAIL, path="a.eml")
    assert links(parsed)[-1] == ("REPLY_TO", "1@x", "field=references;char=4-7", "1@x")
    assert parsed.document is not None
    assert [link.certain for link in mail_links(parsed.document.metadata)] == [True, True, False]
    check_excerpts(simple("Hi", "References: <0@x>\n <1@x>\n"), parsed)


def test_a_message_inside_an_outlook_file_is_read_in_its_place() -> None:
    inner = message({0x0037: "Inner", 0x1000: "Inner words"}, header=24)
    data = compound_file(message({0x0037: "Outer", 0x1000: "Outer words"}, attachments=[({0x3701: inner}, {0x3705: 5})]))
    outer = parse_bytes(data, OUTLOOK, path="a.msg")
    (child,) = children(outer)
    assert child.document is not None and child.document.metadata["inside"] == "0"
    for parsed, words in ((outer, "Outer words"), (child, "Inner words")):
        check_excerpts(data, parsed)
        assert [excerpts(data, parsed).at(b.locator) for b in parsed.blocks if b.locator.part] == [words]


def test_bytes_that_are_no_mail_hold_no_text() -> None:
    for media_type in (MAIL, OUTLOOK):
        assert Excerpts(PNG, media_type).at(Locator(field="subject")) is None


@pytest.mark.parametrize("name", sorted(path.name for path in (CORPUS / "email").glob("*.*")) or ["none"])
def test_real_mails(name: str) -> None:
    path = CORPUS / "email" / name
    if not path.is_file():
        pytest.skip("shared/corpora is not beside this checkout")
    data = path.read_bytes()
    check_excerpts(data, parse_bytes(data, OUTLOOK if name.endswith(".msg") else MAIL, path=name))


NAMES = st.text(st.sampled_from('ab ,<>"@ü;:()\\'), max_size=12)


@given(
    st.lists(st.tuples(NAMES, st.sampled_from(["a@x.org", "B@y.org", ""])), max_size=5), st.lists(st.text("a1@<> ", max_size=6), max_size=3)
)
def test_any_header_can_be_cut_again(people: list[tuple[str, str]], answers: list[str]) -> None:
    to = ", ".join(f"{name} <{address}>" if address else name for name, address in people)
    data = f"From: a@x.org\nTo: {to}\nMessage-ID: <1@x>\nIn-Reply-To: {' '.join(answers)}\n\nbody".encode()
    check_excerpts(data, parse_bytes(data, MAIL, path="a.eml"))
