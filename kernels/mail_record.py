"""What EML and MSG become: one record with normalised headers, a body of blocks, image assets, and attachments as children (seed 3 §3.4).

The invariant: every part that is given is body, another form of the body, asset, child, or named in an event; a part that fails costs
itself; what cannot be read says so and is never an empty body.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from raydex.ir.errors import InputError
from raydex.ir.locator import Locator
from raydex.ir.parsed import Member, ParsedFile
from raydex.kernels.decode import Decoded, declared_encoding, decode
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.html_furniture import EVENT, LeftOut
from raydex.kernels.image_size import image_size
from raydex.kernels.mail_body import html_drafts, plain_drafts
from raydex.kernels.mail_fields import header_text, participants
from raydex.kernels.mail_links import field_texts
from raydex.kernels.mail_quotes import armour_spans
from raydex.kernels.members import Members
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "4"


@dataclass(slots=True)
class Image:
    """An image that the mail holds; `used` once a block shows it."""

    part: str
    data: bytes
    media_type: str
    name: str = ""
    used: bool = False


@dataclass(slots=True)
class MailRecord:
    """A mail while it is read. `images` by content id and by content location; `texts` by the part that they are of."""

    request: ParseRequest
    headers: dict[str, Any]
    drafts: list[Draft] = field(default_factory=list)
    images: dict[str, Image] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    parts: list[dict[str, Any]] = field(default_factory=list)
    attachments: list[dict[str, Any]] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    refused: int = 0
    unreadable: bool = False
    left_out: LeftOut = field(default_factory=LeftOut)
    members: Members = field(init=False)

    def __post_init__(self) -> None:
        self.members = Members(self.request)

    def note(self, part: str, media_type: str, use: str, **more: Any) -> None:
        """What became of a part."""
        self.parts.append({"part": part, "media_type": media_type, "use": use, **more})

    def lose(self, part: str, media_type: str, name: str, message: str, *, unreadable: bool = False) -> None:
        """A part that is not in the record: an event and a warning name it."""
        self.note(part, media_type, "lost")
        self.warnings[name] = None
        self.events.append(("warning", name, f"part {part or '0'} ({media_type}): {message}"))
        self.unreadable = self.unreadable or unreadable

    def read_body(self, part: str, data: bytes, media_type: str, charset: str, name: str = "", **options: bool) -> list[Draft]:
        """Blocks of a text part; one that holds no text becomes a child."""
        if media_type == "text/html":
            charset = charset or declared_encoding(data) or ""
        try:
            decoded = decode_part(data, charset)
        except InputError:
            self.attach(part, name or f"part-{part}", data)
            return []
        return self.read_text(part, decoded, media_type, **options)

    def read_text(self, part: str, decoded: Decoded, media_type: str, **options: bool) -> list[Draft]:
        self.texts[part] = decoded.text
        more = {"warnings": decoded.warnings} if decoded.warnings else {}
        self.note(part, media_type, "body", charset=decoded.encoding, **more)
        if media_type == "text/html":
            drafts = html_drafts(self.request, decoded.text, part, self.left_out)
            for draft in drafts:
                if draft.kind == "image":
                    self._resolve(draft)
            return drafts
        if "MESSAGE" in armour_spans(decoded.text)[1]:
            self.warnings["encrypted_body"] = None
            self.events.append(("warning", "encrypted_body", f"part {part}: text is encrypted by PGP"))
            self.unreadable = True
        return plain_drafts(self.request, decoded.text, part, **options)

    def _resolve(self, draft: Draft) -> None:
        """An image that the page names by content id gets its bytes."""
        href = draft.href
        image = self.images.get(unquote(href[4:]).strip("<>")) if href[:4].lower() == "cid:" else self.images.get(href)
        if image is not None:
            image.used = True
            draft.data = image.data
            draft.metadata = {**draft.metadata, "media_type": image.media_type, **image_size(image.data)}

    def show(self, image: Image) -> list[Draft]:
        """An image with no place of its own in a page."""
        image.used = True
        about = {"media_type": image.media_type, **image_size(image.data)}
        self.note(image.part, image.media_type, "asset", name=image.name, bytes=len(image.data))
        return [Draft("image", 0, 0, image.name, about, place={"part": image.part}, data=image.data)]

    def attach(self, part: str, name: str, data: bytes, media_type: str = "", inside: str = "") -> None:
        """A member, up to `limits.attachments` of them."""
        if self._has_room(part, media_type):
            self._keep(part, self.members.add(str(Locator(part=part)), name, data, media_type, inside))

    def refuse(self, part: str, name: str, reject_class: str, error: str) -> None:
        """A member that cannot be read."""
        if self._has_room(part, ""):
            self._keep(part, self.members.refuse(str(Locator(part=part)), name, reject_class, error))

    def _keep(self, part: str, member: Member) -> None:
        about = {"name": member.name, "bytes": len(member.data)}
        self.note(part, member.media_type, "attachment", **about)
        entry = {"part": part, "media_type": member.media_type, "record_id": self.members.record_id(member), **about}
        if member.reject_class:
            entry["reject"] = member.reject_class
        self.attachments.append(entry)

    def _has_room(self, part: str, media_type: str) -> bool:
        if len(self.attachments) < self.request.limits.attachments and not self.members.is_full:
            return True
        self.refused += 1
        self.note(part, media_type, "lost")
        return False

    def source_texts(self) -> dict[str, str]:
        """What the locators of blocks and of evidence count in, by `part=…` or `field=…`."""
        fields = {f"field={name}": text for name, text in field_texts(self.headers).items()}
        return fields | {f"part={part}": text for part, text in self.texts.items()}

    def finish(self, parser: str) -> ParsedFile:
        """Raises LimitError (too_many_blocks)."""
        head = [
            Draft("heading", 0, 0, self.headers["subject"], {"level": 1}, place={"field": "subject"}),
            Draft("paragraph", 0, 0, header_text(self.headers), {"role": "headers"}, place={"field": "headers"}),
        ]
        if self.refused:
            self.warnings["too_many_attachments"] = None
            figure = f"{self.refused} attachments are left out: {len(self.attachments) + self.refused} are there"
            message = self.request.limits.say(figure, "attachments", "members")
            self.events.append(("error", "too_many_attachments", message))
        bare = not any(draft.kind == "image" or draft.text.strip() or draft.rows for draft in self.drafts)
        if bare and not self.attachments:
            self.warnings["no_body"] = None
        check_count(self.drafts, self.request)
        parsed = finish(
            self.request,
            None,
            [*head, *self.drafts],
            parser=parser,
            parser_version=PARSER_VERSION,
            title=self.headers["subject"],
            warnings=tuple(self.warnings),
            metadata={
                **self.headers,
                "participants": participants(self.headers),
                "parts": self.parts,
                "attachments": self.attachments,
                **({"inside": self.request.inside} if self.request.inside else {}),
            },
        )
        assert parsed.document is not None
        if self.unreadable:
            parsed.document.text_state = "unavailable" if bare else "mixed"
        parsed.members = self.members.kept
        if self.left_out.total:
            self.events.append(("ok", EVENT, self.left_out.message))
        for status, name, message in self.events:
            parsed.add_event("parse", status, name, message)
        return parsed


def decode_part(data: bytes, charset: str) -> Decoded:
    """A part's text. UTF-7 is believed where it is declared: mails are the one place where it was in use. Raises InputError."""
    if charset.lower().replace("_", "-") in ("utf-7", "unicode-1-1-utf-7") and data.isascii():
        try:
            text = data.decode("utf-7")
            text.encode("utf-8")
            return Decoded(text, "utf-7")
        except UnicodeError:
            pass
    return decode(data, declared=charset or None)


def count_words(drafts: list[Draft]) -> int:
    """Words that a reader sees, addresses of links left out: they are only written out in plain text."""
    texts = [draft.text for draft in drafts if draft.kind != "image"]
    texts += [cell["text"] for draft in drafts for row in draft.rows or () for cell in row]
    return sum(1 for text in texts for word in text.split() if "://" not in word)


def is_rich(drafts: list[Draft]) -> bool:
    """Whether the blocks have a structure that plain text cannot have."""
    return any(draft.kind in ("table", "list_item", "heading", "image", "code") or draft.links for draft in drafts)
