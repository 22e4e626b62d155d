"""A record's bytes → the source's own text at a locator: what an excerpt's hash is of.

Locators count in the decoded file; in a mail they count in the decoded text of a MIME part, or in a header field. The invariant: a place
that no range of text stands for has no excerpt, and a mail's texts are those that its parser read.
"""

from __future__ import annotations

from raydex.ir.errors import InputError
from raydex.ir.locator import Locator
from raydex.kernels.decode import decode_as
from raydex.kernels.limits import Limits
from raydex.kernels.request import ParseRequest

# what was indexed under the limits of its run is read again under none of them
ANY_COUNT = 1_000_000_000
MAIL, OUTLOOK = "message/rfc822", "application/vnd.ms-outlook"


def has_text(place: Locator, media_type: str) -> bool:
    """Whether a range of the source's text stands for the place."""
    if media_type in (MAIL, OUTLOOK):
        return place.field is not None or (place.part is not None and place.char is not None)
    return place.char is not None or place.line is not None


class Excerpts:
    """Texts of one record, read when they are asked for. `inside` names the message in an Outlook file that holds others."""

    def __init__(self, data: bytes, media_type: str, encoding: str = "", inside: str = "") -> None:
        self.data = data
        self.media_type = media_type
        self.encoding = encoding
        self.inside = inside
        self._texts: dict[str, str] | None = None

    def at(self, place: Locator) -> str | None:
        """The text at the place; None where there is none."""
        if not has_text(place, self.media_type):
            return None
        if self._texts is None:
            self._texts = self._read()
        mail = self.media_type in (MAIL, OUTLOOK)
        text = self._texts.get((f"field={place.field}" if place.field is not None else f"part={place.part}") if mail else "")
        if text is None or (place.char is None and place.line is None):
            return text
        return place.slice_text(text)

    def _read(self) -> dict[str, str]:
        if self.media_type not in (MAIL, OUTLOOK):
            return {"": decode_as(self.data, self.encoding or "utf-8")}
        limits = Limits(blocks=ANY_COUNT, attachments=ANY_COUNT, members=ANY_COUNT)
        request = ParseRequest("", "", "", self.media_type, self.data, limits=limits, inside=self.inside, emit=lambda member: None)
        try:
            return _mail_texts(request)
        except InputError:
            # bytes that are no mail (any more) hold no text of one
            return {}


def _mail_texts(request: ParseRequest) -> dict[str, str]:
    if request.media_type == OUTLOOK:
        from raydex.kernels.msg import message_record
        from raydex.kernels.msg_storage import open_message

        return message_record(request, open_message(request)).source_texts()
    from raydex.kernels.mail import mail_record

    return mail_record(request).source_texts()
