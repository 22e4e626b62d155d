"""A mail's normalised headers → the people that it joins and the mails that it answers, each with its place in a header field.

A field counts as a reader sees it: people as `name <address>` with commas between them, ids with spaces, since the bytes of one may be
spread over lines, encoded words or, in an Outlook message, properties. The invariant: the slice of `field_texts` at a link's locator is
the link's excerpt, and it holds the address or the id itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from raydex.ir.locator import Locator
from raydex.kernels.decode import clean
from raydex.kernels.mail_fields import PEOPLE, RELATIONS, header_text, written

OWN_ID, ANSWERS = "MESSAGE_ID", "REPLY_TO"


@dataclass(frozen=True, slots=True)
class MailLink:
    """`key` is an address in lower case, or a message's id; `name` what the field calls the person. A mail's own id (OWN_ID) is no
    relation, but what others answer by. `certain`: the mail itself says so, and no rule had to."""

    relation: str
    key: str
    name: str
    locator: Locator
    excerpt: str
    certain: bool = True


def field_texts(headers: dict[str, Any]) -> dict[str, str]:
    """Name of a field, as locators have it → its text."""
    texts = {"subject": clean(headers["subject"]), "headers": clean(header_text(headers)), "message_id": headers["message_id"]}
    for name in (field.replace("-", "_") for field in PEOPLE):
        texts[name] = ", ".join(written(person) for person in headers.get(name, ()))
    for name in ("in_reply_to", "references"):
        texts[name] = " ".join(headers[name])
    return texts


def mail_links(headers: dict[str, Any]) -> Iterator[MailLink]:
    """Links in the order of the fields. A person without an address is none: names do not tell people apart."""
    for field, relation in RELATIONS.items():
        people = headers.get(field, ())
        for person, (start, end) in zip(people, _spans(map(written, people), ", "), strict=True):
            if person["address"].strip():
                place = Locator(field=field, char=(start, end))
                yield MailLink(relation, person["address"].strip().lower(), person["name"], place, written(person))
    if headers["message_id"]:
        whole = Locator(field="message_id", char=(0, len(headers["message_id"])))
        yield MailLink(OWN_ID, headers["message_id"], "", whole, headers["message_id"])
    for identifier, (start, end) in zip(headers["in_reply_to"], _spans(headers["in_reply_to"], " "), strict=True):
        yield MailLink(ANSWERS, identifier, "", Locator(field="in_reply_to", char=(start, end)), identifier)
    if not headers["in_reply_to"] and headers["references"]:
        # the last of them is what is answered (RFC 5322 §3.6.4)
        *_, (start, end) = _spans(headers["references"], " ")
        last = headers["references"][-1]
        yield MailLink(ANSWERS, last, "", Locator(field="references", char=(start, end)), last, certain=False)


def _spans(texts: Any, gap: str) -> Iterator[tuple[int, int]]:
    """The range of each text where all of them are joined."""
    at = 0
    for text in texts:
        yield at, at + len(text)
        at += len(text) + len(gap)
