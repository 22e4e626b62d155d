"""Mail (EML, MHTML) and mailboxes (mbox) → records: MIME parts are sorted into body, assets and children (seeds 1 and 3 §3.4).

Of several forms of one body the best is read once. The invariant: a block's `part` is the MIME number of the part that it is from, its
characters are those of that part's decoded text; one broken part costs itself.
"""

from __future__ import annotations

import re

from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.cms import signed_content
from raydex.kernels.decode import Decoded, clean
from raydex.kernels.drafts import Draft, finish
from raydex.kernels.mail_fields import field_text, mail_headers
from raydex.kernels.mail_record import PARSER_VERSION, Image, MailRecord, count_words, is_rich
from raydex.kernels.media_types import EXTENSIONS
from raydex.kernels.members import Members
from raydex.kernels.mime import MESSAGES, Part, read_head, read_mime
from raydex.kernels.msg_rtf import decompress_rtf, read_rtf
from raydex.kernels.request import ParseRequest
from raydex.kernels.tnef import read_tnef

_HEADERS = 64_000  # bytes of a mail's header fields that a mailbox looks at
_SIGNATURES = frozenset(("application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"))
_CMS = frozenset(("application/pkcs7-mime", "application/x-pkcs7-mime"))
_TNEF = frozenset(("application/ms-tnef", "application/vnd.ms-tnef"))
_REPORTS = frozenset(("message/delivery-status", "message/disposition-notification", "text/rfc822-headers"))
_BODIES = ("text/plain", "text/html")
_KEEPS = frozenset(("text/calendar", "text/vcard", "text/csv"))  # another form of a body, with data that the body lacks
_MBOX_LINE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]{1,300}\r?\n(?=[!-9;-~]{1,100}:)")
_MBOX_QUOTE = re.compile(rb"^>(>*From )", re.MULTILINE)
_UNWRAPPED = 8  # signed envelopes in signed envelopes
_SUFFIXES = {media_type: extension for extension, media_type in reversed(EXTENSIONS.items())}


def parse_mail(request: ParseRequest) -> ParsedFile:
    """Raises InputError: invalid_input for what is no mail, too_many_blocks."""
    return mail_record(request).finish("mail")


def mail_record(request: ParseRequest) -> MailRecord:
    """The mail, read to its end. Raises InputError as `parse_mail`."""
    root = read_mime(request.data, request.limits)
    if not root.fields:
        remedy = "Check whether it is a mail"
        raise InputError("the file has no mail headers", reject_class="invalid_input", place=request.path, remedy=remedy)
    walk = MailWalk(request, root)
    walk.record.drafts = walk.read(root, None)
    return walk.record


class MailWalk:
    def __init__(self, request: ParseRequest, root: Part) -> None:
        self.unwrapped = 0
        self.record = MailRecord(request, mail_headers(root.fields))
        self._collect(root)

    def _collect(self, part: Part) -> None:
        """Images under the names by which a page may call them."""
        for inner in part.parts:
            self._collect(inner)
        if part.media_type.startswith("image/") and not part.parts:
            names = [field_text(part.fields, "content-id").strip("<> "), field_text(part.fields, "content-location")]
            image = Image(part.number, part.content, part.media_type, part.name)
            for name in filter(None, names):
                self.record.images.setdefault(name, image)

    def read(self, part: Part, around: Part | None) -> list[Draft]:
        """Blocks of a part in the order of its text; its attachments become children on the way."""
        if part.defect:
            self.record.warnings["broken_part"] = None
            self.record.events.append(("warning", "broken_part", f"part {part.number or '0'}: {part.defect}"))
            if part.media_type.startswith("multipart/") and not part.parts:
                self.record.note(part.number, part.media_type, "lost")
                return []
        if not part.parts:
            return self._leaf(part, around)
        if part.media_type == "multipart/alternative":
            return self._alternative(part)
        if part.media_type == "multipart/encrypted":
            self.record.lose(part.number, part.media_type, "encrypted_body", "the content is encrypted", unreadable=True)
            return []
        drafts = [draft for inner in part.parts for draft in self.read(inner, part)]
        if part.media_type == "multipart/related":
            for inner in part.parts:
                image = self._image(inner)
                if image is not None:
                    drafts += self._used(image) if image.used else self.record.show(image)
        return drafts

    def _image(self, part: Part) -> Image | None:
        found = (self.record.images.get(field_text(part.fields, name).strip("<> ")) for name in ("content-id", "content-location"))
        return next((image for image in found if image is not None and image.part == part.number), None)

    def _leaf(self, part: Part, around: Part | None) -> list[Draft]:
        record, kind, number = self.record, part.media_type, part.number
        disposition, name = part.disposition, part.name
        if kind in _SIGNATURES:
            record.note(number, kind, "signature")
            return []
        if kind in _CMS:
            return self._cms(part)
        if kind in _TNEF or name.lower() == "winmail.dat":
            return self._tnef(part)
        if kind == "message/external-body":
            record.lose(number, kind, "external_body", "the content lies elsewhere and is not fetched")
            return []
        if kind in MESSAGES:
            content = part.content
            subject = field_text(read_head(content, len(content)), "subject")
            record.attach(number, name or f"{subject or 'mail'}.eml", content, "message/rfc822")
            return []
        first = around is None or around.media_type == "multipart/alternative"
        if kind in _BODIES and disposition != "attachment" and (first or not name):
            flowed = part.parameters.get("format", "").lower() == "flowed"
            options = {"flowed": True, "drop_space": part.parameters.get("delsp", "").lower() == "yes"} if flowed else {}
            return record.read_body(number, part.content, kind, part.parameters.get("charset", ""), name, **options)
        if kind.startswith("image/"):
            return self._image_part(part, around, disposition)
        declared = "text/plain" if kind in _REPORTS else kind
        extension = _SUFFIXES.get(declared, "")
        record.attach(number, name or f"part-{number}{'.' if extension else ''}{extension}", part.content, declared)
        return []

    def _image_part(self, part: Part, around: Part | None, disposition: str) -> list[Draft]:
        """An image between texts is shown there; one that a page may name waits for it; the rest are attachments."""
        image = self._image(part)
        if image is not None and around is not None and around.media_type == "multipart/related":
            return []
        if image is not None and image.used:
            return self._used(image)
        if disposition == "inline" or (not disposition and not part.name):
            return self.record.show(image or Image(part.number, part.content, part.media_type, part.name))
        self.record.attach(part.number, part.name or f"part-{part.number}", part.content, part.media_type)
        return []

    def _used(self, image: Image) -> list[Draft]:
        self.record.note(image.part, image.media_type, "asset", name=image.name, bytes=len(image.data))
        return []

    def _alternative(self, part: Part) -> list[Draft]:
        """The richer form, unless it lacks a good part of the text; what is attached to any form is kept."""
        forms: list[tuple[str, list[Draft]]] = []
        since = len(self.record.parts)
        for inner in part.parts:
            if inner.media_type.startswith("text/") and inner.media_type not in (*_BODIES, *_KEEPS):
                self.record.note(inner.number, inner.media_type, "alternative")
                continue
            drafts = self.read(inner, part)
            if drafts:
                forms.append((inner.number, drafts))
        best: list[Draft] = []
        words = -1
        chosen = ""
        for number, drafts in sorted(forms, key=lambda form: is_rich(form[1])):
            now = count_words(drafts)
            if now > words or (is_rich(drafts) and now * 5 >= words * 4):
                best, words, chosen = drafts, now, number
        for entry in self.record.parts[since:]:
            if entry["use"] == "body" and not f"{entry['part']}.".startswith(f"{chosen}."):
                entry["use"] = "alternative"
        others = (drafts for number, drafts in forms if number != chosen)
        return [*best, *(draft for drafts in others for draft in drafts if draft.data is not None)]

    def _cms(self, part: Part) -> list[Draft]:
        """S/MIME: what is only signed is read, what is encrypted is named."""
        content = part.content
        kind = part.parameters.get("smime-type", "").lower()
        inner = signed_content(content) if kind in ("signed-data", "") else None
        self.unwrapped += inner is not None
        if inner is None or self.unwrapped > _UNWRAPPED:
            unreadable = kind != "certs-only"
            self.record.lose(
                part.number, part.media_type, "encrypted_body", f"S/MIME {kind or 'content'} is not read", unreadable=unreadable
            )
            return []
        self.record.note(part.number, part.media_type, "signature")
        tree = read_mime(inner, self.record.request.limits)
        _renumber(tree, part.number)
        self._collect(tree)
        return self.read(tree, None)

    def _tnef(self, part: Part) -> list[Draft]:
        """Outlook's envelope: its attachments are the mail's, its body is read where the mail has no other."""
        record, number = self.record, part.number
        found = read_tnef(part.content, record.request.limits.attachments)
        if found is None:
            record.attach(number, part.name or f"part-{number}", part.content, part.media_type)
            return []
        record.note(number, part.media_type, "envelope")
        if not found.complete:
            record.warnings["broken_part"] = None
            record.events.append(("warning", "broken_part", f"part {number}: the TNEF envelope ends too early"))
        for at, attachment in enumerate(found.attachments, 1):
            name = clean(attachment.name) or f"part-{number}.{at}"
            nested = read_tnef(attachment.data, 1) is not None
            record.attach(f"{number}.{at}", name, attachment.data, "application/ms-tnef" if nested else attachment.media_type)
        if any(entry["use"] == "body" for entry in record.parts):
            return []
        try:
            rtf = read_rtf(decompress_rtf(found.rtf, record.request.limits.member_bytes)) if found.rtf and not found.html else None
        except InputError as error:
            rtf = None
            record.lose(number, "application/rtf", "broken_part", error.message)
        if found.html:
            return record.read_body(number, found.html, "text/html", "")
        if rtf is not None and (rtf.origin == "html" or not found.plain):
            return record.read_text(number, Decoded(rtf.text, "rtf"), "text/html" if rtf.origin == "html" else "text/plain")
        return record.read_body(number, found.plain, "text/plain", "") if found.plain else []


def _renumber(part: Part, prefix: str) -> None:
    """The parts inside of a part that was unwrapped stand below its number."""
    part.number = f"{prefix}.{part.number}" if part.number else prefix
    for inner in part.parts:
        _renumber(inner, prefix)


def parse_mbox(request: ParseRequest) -> ParsedFile:
    """A mailbox: a child a mail. Raises InputError: invalid_input, too_deep, bomb above limits.members."""
    starts = list(_MBOX_LINE.finditer(request.data))
    if not starts:
        raise InputError("the file has no line that begins a mail", reject_class="invalid_input", place=request.path)
    members = Members(request)
    members.check_nesting()
    drafts: list[Draft] = []
    for at, found in enumerate(starts, 1):
        end = starts[at].start() if at < len(starts) else len(request.data)
        data = _MBOX_QUOTE.sub(rb"\1", request.data[found.end() : end].removesuffix(b"\n").removesuffix(b"\r"))
        members.add(f"member={at}", f"{at}.eml", data, "message/rfc822")
        title = mail_headers(read_head(data, _HEADERS))["subject"] or f"mail {at}"
        drafts.append(Draft("list_item", 0, 0, title, {"level": 0, "ordered": True, "number": at}, place={"member": str(at)}))
    parsed = finish(request, None, drafts, parser="mbox", parser_version=PARSER_VERSION, metadata={"members": members.count})
    parsed.members = members.kept
    return parsed
