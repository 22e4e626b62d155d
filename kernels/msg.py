"""Outlook messages (MSG) → the same record as other mails: MAPI properties give headers, body, recipients and attachments.

The library for this format (python-oxmsg) reads all streams at once and decodes strictly, so the compound file is read directly. Of the
forms of the body (HTML, RTF, plain) the best is read once. The invariant: a block's `part` names the property that it is from, and its
characters are those of that property's text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.cms import signed_content
from raydex.kernels.decode import Decoded, declared_encoding, decode
from raydex.kernels.drafts import Draft
from raydex.kernels.mail_fields import addresses, mail_headers
from raydex.kernels.mail_record import Image, MailRecord, count_words, is_rich
from raydex.kernels.members import member_type
from raydex.kernels.mime import read_fields
from raydex.kernels.msg_rtf import decompress_rtf, read_rtf
from raydex.kernels.msg_storage import ATTACHMENT, INNER_MESSAGE, Storage, open_message
from raydex.kernels.request import ParseRequest

_MEDIA_TYPE = "application/vnd.ms-outlook"
_RECIPIENTS = {1: "to", 2: "cc", 3: "bcc"}
_SHOWN_TO = {"to": 0x0E04, "cc": 0x0E03, "bcc": 0x0E02}
_OLE = 6  # how an object of another program is attached


def parse_msg(request: ParseRequest) -> ParsedFile:
    """Raises InputError: invalid_input, bomb, too_many_blocks."""
    return message_record(request, open_message(request)).finish("msg")


def message_record(request: ParseRequest, message: Storage) -> MailRecord:
    """The message, read to its end. Raises InputError as `parse_msg`."""
    record = MailRecord(request, message_headers(message))
    attachments = list(message.inner(ATTACHMENT))
    waiting = []
    for at, attachment in enumerate(attachments):
        part = f"attach.{at}"
        try:
            image = _image(attachment, part)
        except InputError as error:
            record.refuse(part, part, error.reject_class, error.message)
            continue
        waiting.append((part, attachment, image))
        if image is not None:
            for pid in (0x3712, 0x3713):
                name = attachment.text(pid).strip("<> ")
                if name:
                    record.images.setdefault(name, image)
    record.drafts = _body(record, message)
    signed = message.text(0x001A).upper().startswith("IPM.NOTE.SMIME")
    for part, attachment, image in waiting:
        try:
            _attach(record, part, attachment, image, signed)
        except InputError as error:
            record.refuse(part, attachment.text(0x3707) or part, error.reject_class, error.message)
    return record


def message_headers(message: Storage) -> dict[str, Any]:
    """The normalised record: the transport's header fields where the message keeps them, MAPI properties before them."""
    raw = message.text(0x007D).encode("utf-8", "replace")
    headers = mail_headers(read_fields(raw, 0, len(raw))[0])
    headers["subject"] = message.text(0x0037) or headers["subject"]
    sender = {"name": message.text(0x0C1A) or message.text(0x0042), "address": ""}
    sender["address"] = next((value for pid in (0x5D01, 0x5D02, 0x0C1F, 0x0065) if "@" in (value := message.text(pid))), "")
    if sender["address"] or (sender["name"] and not headers["from"]):
        headers["from"] = [sender]
    people: dict[str, list[dict[str, str]]] = {}
    for recipient in message.inner("__recip_version1.0_#"):
        field = _RECIPIENTS.get((recipient.integer(0x0C15) or 1) & 0xF, "to")
        mailbox = next((value for pid in (0x39FE, 0x3003) if "@" in (value := recipient.text(pid))), "")
        name = recipient.text(0x3001) or recipient.text(0x3003)
        people.setdefault(field, []).append({"name": "" if name == mailbox else name, "address": mailbox})
    for field, pid in _SHOWN_TO.items():
        found = people.get(field) or headers.get(field) or addresses(message.text(pid))
        if found or field != "bcc":
            headers[field] = found
    headers["date"] = message.date(0x0039) or headers["date"] or message.date(0x0E06)
    headers["message_id"] = message.text(0x1035).strip("<> ") or headers["message_id"]
    headers["in_reply_to"] = headers["in_reply_to"] or [one.strip("<>") for one in message.text(0x1042).split()]
    headers["references"] = headers["references"] or [one.strip("<>") for one in message.text(0x1039).split()]
    return headers


def _body(record: MailRecord, message: Storage) -> list[Draft]:
    """The richer of HTML and plain text, unless it lacks a good part of the text; RTF where it is the only rich form."""
    forms: list[tuple[str, list[Draft]]] = []
    plain = _plain(record, message)
    if plain:
        forms.append(("body", plain))
    rich = _html(record, message) or _rtf(record, message, bool(plain))
    if rich:
        forms.append(("rich", rich))
    best = forms[0] if forms else ("", [])
    for form in forms[1:]:
        words, most = count_words(form[1]), count_words(best[1])
        if words > most or (is_rich(form[1]) and words * 5 >= most * 4):
            best = form
    for entry in record.parts:
        if entry["use"] == "body" and (entry["part"] == "body") != (best[0] == "body"):
            entry["use"] = "alternative"
    return best[1]


def _plain(record: MailRecord, message: Storage) -> list[Draft]:
    return _form(record, "body", lambda: message.decoded(0x1000), lambda: "text/plain")


def _html(record: MailRecord, message: Storage) -> list[Draft]:
    def read() -> Decoded | None:
        data = message.binary(0x1013)
        if data is None:
            return message.decoded(0x1013)
        return decode(data.rstrip(b"\0"), declared=message.code_page or declared_encoding(data))

    return _form(record, "html", read, lambda: "text/html")


def _rtf(record: MailRecord, message: Storage, has_plain: bool) -> list[Draft]:
    """Compressed RTF: the HTML that it was made from, else its text where the message has no other."""
    media_type = "text/plain"

    def read() -> Decoded | None:
        nonlocal media_type
        data = message.binary(0x1009)
        if data is None:
            return None
        found = read_rtf(decompress_rtf(data, record.request.limits.member_bytes))
        if found.origin == "html":
            media_type = "text/html"
        return Decoded(found.text, "rtf") if found.origin == "html" or not has_plain else None

    return _form(record, "rtf", read, lambda: media_type)


def _form(record: MailRecord, part: str, read: Callable[[], Decoded | None], media_type: Callable[[], str]) -> list[Draft]:
    """Blocks of one form of the body; a broken form costs itself."""
    try:
        decoded = read()
        return record.read_text(part, decoded, media_type()) if decoded is not None else []
    except InputError as error:
        if error.reject_class in ("bomb", "too_many_blocks"):
            raise
        record.lose(part, media_type(), "broken_part", error.message)
        return []


def _image(attachment: Storage, part: str) -> Image | None:
    """An attachment that is an image with an id by which a page may call it."""
    kind = attachment.text(0x370E).lower()
    if not (attachment.text(0x3712) or attachment.text(0x3713)):
        return None
    data = attachment.binary(0x3701)

    found = member_type(data[:4096], attachment.text(0x3707), kind) if data else ""
    return Image(part, data, found, attachment.text(0x3707)) if data and found.startswith("image/") else None


def _attach(record: MailRecord, part: str, attachment: Storage, image: Image | None, signed: bool) -> None:
    name = attachment.text(0x3707) or attachment.text(0x3704) or attachment.text(0x3001) or part
    kind = attachment.text(0x370E).lower()
    if image is not None and image.used:
        record.note(part, image.media_type, "asset", name=name, bytes=len(image.data))
        return
    if image is not None and attachment.fixed.get(0x7FFE, b"\0")[:1] == b"\1":
        record.drafts += record.show(image)
        return
    inner = attachment.message(INNER_MESSAGE)
    method = attachment.integer(0x3705)
    data = image.data if image is not None else attachment.binary(0x3701)
    if inner is not None and method != _OLE:
        # an inner message is no file of its own
        shown = inner.text(0x0037) or name
        number = part.rpartition(".")[2]
        inside = f"{record.request.inside}/{number}" if record.request.inside else number
        record.attach(part, f"{shown}.msg", record.request.data, _MEDIA_TYPE, inside)
    elif data is None:
        where = "an object of another program" if inner is not None else "kept elsewhere"
        record.refuse(part, name, "unsupported_media_type", f"the attachment is {where}")
    elif signed and (kind == "multipart/signed" or name.lower().endswith(".p7m")):
        _attach_signed(record, part, data, kind)
    else:
        record.attach(part, name, data, kind)


def _attach_signed(record: MailRecord, part: str, data: bytes, kind: str) -> None:
    """S/MIME: the whole message is in one attachment, as MIME."""
    content = data if read_fields(data, 0, len(data))[0] else signed_content(data)
    if content is None:
        record.lose(part, kind or "application/pkcs7-mime", "encrypted_body", "the message is encrypted", unreadable=True)
    else:
        record.attach(part, f"{record.headers['subject'] or 'mail'}.eml", content, "message/rfc822")
