"""Presentations (PPTX, PPTM, PPSX, POTX) → DocumentIR: a section a slide, in the order of the deck, then its notes and comments.

A slide's title is a heading of level 1; a slide without one is named `Slide N` in the section path alone. What stands on masters and
layouts is never repeated. The invariant: every block names its slide; blocks of hidden slides are kept and say so.
"""

from __future__ import annotations

from typing import Any

from raydex.ir.document import Link
from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.lossy_package import say_losses
from raydex.kernels.package import TOO_DEEP, Relation
from raydex.kernels.pptx_layout import FURNITURE, P
from raydex.kernels.pptx_parts import DeckParts, related
from raydex.kernels.pptx_place import POINT, read_length
from raydex.kernels.pptx_shapes import SlideWalk
from raydex.kernels.pptx_text import R, plain_text, read_paragraphs
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "1"
_NAME_CHARS = 100
_SECTIONS = "{http://schemas.microsoft.com/office/powerpoint/2010/main}"
# what programs write where nobody wrote anything
_NO_TITLES = frozenset(
    ("powerpoint presentation", "powerpoint-präsentation", "présentation powerpoint", "presentación de powerpoint", "presentation")
)
_PROMPTS = frozenset(("click to add notes", "click to add text", "click to edit master text styles"))


def parse_pptx(request: ParseRequest) -> ParsedFile:
    """Raises InputError: those of `Package`, invalid_input, too_deep, too_many_blocks."""
    deck = DeckWalk(request)
    deck.read()
    properties = deck.parts.properties()
    title = properties.get("title", "")
    losses = deck.parts.losses()
    parsed = finish(
        request,
        None,
        deck.drafts,
        parser="pptx",
        parser_version=PARSER_VERSION,
        title="" if title.casefold() in _NO_TITLES else title,
        warnings=tuple(dict.fromkeys(name for name, _ in losses if name in ("missing_part", "broken_part", "broken_slide"))),
        metadata={**deck.metadata(), "properties": properties},
    )
    say_losses(parsed, losses, "no slide holds text, a table, a chart or a picture")
    return parsed


class DeckWalk:
    def __init__(self, request: ParseRequest) -> None:
        self.parts = DeckParts(request)
        self.drafts: list[Draft] = []
        self._request = request
        self._names = self.parts.slides()
        self._numbers = {name: at for at, name in enumerate(self._names, 1)}
        self._hidden: list[int] = []
        self._furniture = 0
        self._authors = self._read_authors()

    def read(self) -> None:
        broken = 0
        for name, number in self._numbers.items():
            root = self.parts.optional(name, f"slide {number}", "broken_slide")
            if root is None:
                broken += 1
                self._add("error", "the slide cannot be read", {"slide": number}, {})
                self.drafts[-1].section = [f"Slide {number}"]
            else:
                self._slide(name, number, root)
        if broken and broken == len(self._names):
            why = self.parts.losses()[0][1]
            reject_class = "too_deep" if why.startswith(TOO_DEEP) else "invalid_input"
            raise InputError(f"no slide of the deck can be read: {why}", reject_class=reject_class, place=self._request.path)

    def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = {"slides": len(self._names)}
        size = self.parts.main.find(P + "sldSz")
        sides = [read_length(size.get(name)) for name in ("cx", "cy")] if size is not None else []
        if sides and None not in sides:
            found["slide_size"] = [round((side or 0.0) / POINT, 2) for side in sides]
        if self._hidden:
            found["hidden_slides"] = self._hidden
        sections = self._sections()
        if sections:
            found["sections"] = sections
        if self._furniture:
            found["furniture_shapes"] = self._furniture
        return found

    def _slide(self, name: str, number: int, root: Any) -> None:
        first = len(self.drafts)
        relations = self.parts.relations(name)
        layout = self.parts.layout(relations, f"slide {number}")
        walk = SlideWalk(self.parts, self._request, self.drafts, self._numbers, number, relations, layout)
        walk.walk(root)
        self._furniture += walk.furniture
        self._notes(relations, number)
        self._comments(relations, number)
        hidden = root.get("show") in ("0", "false")
        if hidden:
            self._hidden.append(number)
        for draft in self.drafts[first:]:
            if hidden:
                draft.metadata["hidden"] = True
            if not walk.title:
                draft.section = [f"Slide {number}"]

    def _add(self, kind: str, text: str, place: dict[str, Any], about: dict[str, Any], links: list[Link] | None = None) -> None:
        if text.strip():
            self.drafts.append(Draft(kind, 0, 0, text, about, links or [], place=place))
            check_count(self.drafts, self._request)

    def _notes(self, relations: dict[str, Relation], number: int) -> None:
        """Texts of the notes page; its picture of the slide, header, footer and number are furniture."""
        name = related(relations, "notesSlide")
        root = self.parts.optional(name, f"notes of slide {number}") if name else None
        if root is None:
            return
        href = self.parts.hrefs(self.parts.relations(name), self._numbers)
        at = 0
        for shape in root.iter(P + "sp"):
            mark, body = shape.find(f"./*/{P}nvPr/{P}ph"), shape.find(P + "txBody")
            if body is None or (mark is not None and (mark.get("type") in FURNITURE or mark.get("type") == "sldImg")):
                continue
            paragraphs = [one for one in read_paragraphs(body, (), href, number) if not one.is_field]
            text = "\n".join(paragraph.text for paragraph in paragraphs)
            if not text or text.partition("\n")[0].casefold() in _PROMPTS:
                continue
            at += 1
            links = [link for paragraph in paragraphs for link in paragraph.links]
            self._add("note", text, {"slide": number, "note": at}, {"speaker_notes": True}, links)

    def _comments(self, relations: dict[str, Relation], number: int) -> None:
        """Comments with their answers behind them, of the older and of the newer format."""
        for relation in relations.values():
            root = None
            if relation.kind == "comments" and not relation.external:
                root = self.parts.optional(relation.target, f"comments of slide {number}")
            for comment in root.iter("{*}cm", "{*}reply") if root is not None else ():
                body = comment.find("{*}txBody")
                text = plain_text(body) if body is not None else (comment.findtext("{*}text") or "").strip()
                author = comment.get("authorId") or ""
                identity = (comment.get("id") or f"{author}.{comment.get('idx') or ''}")[:_NAME_CHARS]
                created = comment.get("created") or comment.get("dt") or ""
                about = {"comment": identity, "author": self._authors.get(author, ""), "created": created}
                self._add("note", text, {"slide": number, "comment": identity}, about)

    def _read_authors(self) -> dict[str, str]:
        """Names of the comments' authors by id."""
        found: dict[str, str] = {}
        for kind in ("commentAuthors", "authors"):
            name = related(self.parts.main_relations, kind)
            root = self.parts.optional(name, name) if name else None
            for author in root.iter("{*}cmAuthor", "{*}author") if root is not None else ():
                found[author.get("id") or ""] = author.get("name") or ""
        return found

    def _sections(self) -> list[dict[str, Any]]:
        """The deck's own sections: their names and slides."""
        numbers = {}
        for item in self.parts.main.iterfind(f"{P}sldIdLst/{P}sldId"):
            relation = self.parts.main_relations.get(item.get(R + "id") or "")
            if relation is not None and relation.target in self._numbers:
                numbers[item.get("id")] = self._numbers[relation.target]
        return [
            {
                "name": section.get("name") or "",
                "slides": [numbers[item.get("id")] for item in section.iter(_SECTIONS + "sldId") if item.get("id") in numbers],
            }
            for section in self.parts.main.iter(_SECTIONS + "section")
        ]
