"""OpenDocument presentations (ODP, OTP) → DocumentIR as PPTX is: a section a slide, in order, then its notes and comments.

A slide's title is a heading of level 1; a slide without one is named `Slide N` in the section path alone. What stands on master pages is
never repeated. The invariant: every block names its slide; blocks of hidden slides are kept and say so.
"""

from __future__ import annotations

from typing import Any

from raydex.ir.document import Link
from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.lossy_package import LossyPackage, say_losses
from raydex.kernels.odp_shapes import DRAW, PRESENTATION, PageWalk
from raydex.kernels.odp_text import OFFICE, STYLE, TextReader, read_list_styles
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "1"
_DC = "{http://purl.org/dc/elements/1.1/}"
_PROPERTIES = {
    "title": "title",
    "subject": "subject",
    "initial-creator": "creator",
    "creator": "last_modified_by",
    "keyword": "keywords",
    "description": "description",
    "creation-date": "created",
    "date": "modified",
    "language": "language",
}


def parse_odp(request: ParseRequest) -> ParsedFile:
    """Raises InputError: those of `Package`, invalid_input, too_deep, too_many_blocks."""
    deck = OdpDeck(request)
    deck.read()
    properties, losses = deck.properties(), deck.losses()
    parsed = finish(
        request,
        None,
        deck.drafts,
        parser="odp",
        parser_version=PARSER_VERSION,
        title=properties.get("title", ""),
        warnings=tuple(dict.fromkeys(name for name, _ in losses if name in ("missing_part", "broken_part"))),
        metadata={**deck.metadata(), "properties": properties},
    )
    say_losses(parsed, losses, "no slide holds text, a table, a chart or a picture")
    return parsed


class OdpDeck(LossyPackage):
    """The package's parts, and what its pages share."""

    def __init__(self, request: ParseRequest) -> None:
        super().__init__(request)
        self.request = request
        self.drafts: list[Draft] = []
        self._hidden: list[int] = []
        self._furniture = 0
        if self.has("META-INF/manifest.xml") and b"encryption-data" in self.package.read("META-INF/manifest.xml"):
            raise InputError("the presentation is encrypted", reject_class="encrypted", place=request.path)
        if not self.has("content.xml"):
            raise InputError("the package has no content.xml", place=request.path)
        self._content = self.package.xml("content.xml")
        styles = self.optional("styles.xml", "styles.xml") if self.has("styles.xml") else None
        self.list_styles = read_list_styles([root for root in (styles, self._content) if root is not None])
        self._pages = list(self._content.iterfind(f"{OFFICE}body/{OFFICE}presentation/{DRAW}page"))

    def read(self) -> None:
        hidden = {
            style.get(STYLE + "name")
            for style in self._content.iterfind(f"{OFFICE}automatic-styles/{STYLE}style")
            for about in style.iterchildren(STYLE + "drawing-page-properties")
            if about.get(PRESENTATION + "visibility") == "hidden"
        }
        for number, page in enumerate(self._pages, 1):
            first = len(self.drafts)
            walk = PageWalk(self, number)
            walk.walk(page)
            self._furniture += walk.furniture
            self._asides(page, number)
            is_hidden = page.get(DRAW + "style-name") in hidden
            if is_hidden:
                self._hidden.append(number)
            for draft in self.drafts[first:]:
                if is_hidden:
                    draft.metadata["hidden"] = True
                if not walk.title:
                    draft.section = [f"Slide {number}"]

    def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = {"slides": len(self._pages)}
        if self._hidden:
            found["hidden_slides"] = self._hidden
        if self._furniture:
            found["furniture_shapes"] = self._furniture
        return found

    def properties(self) -> dict[str, str]:
        """Metadata of the package that say something; several keywords are one list."""
        found: dict[str, str] = {}
        root = self.optional("meta.xml", "meta.xml") if self.has("meta.xml") else None
        for element in root.iterfind(f"{OFFICE}meta/*") if root is not None else ():
            key = _PROPERTIES.get(element.tag.rpartition("}")[2])
            text = " ".join((element.text or "").split())
            if key and text:
                found[key] = f"{found[key]}, {text}" if key == "keywords" and key in found else text
        return found

    def has(self, name: str) -> bool:
        return self.package.find(name) is not None

    def _asides(self, page: Any, number: int) -> None:
        """Speaker notes and comments."""
        reader = TextReader(self.list_styles)
        at = 0
        for frame in page.iterfind(f"{PRESENTATION}notes/{DRAW}frame"):
            box = frame.find(DRAW + "text-box")
            kind = frame.get(PRESENTATION + "class") or "notes"
            if box is None or kind != "notes" or frame.get(PRESENTATION + "placeholder") == "true":
                continue
            lines = reader.read(box)
            if lines:
                at += 1
                links = [link for line in lines for link in line.links]
                self._note("\n".join(line.text for line in lines), {"slide": number, "note": at}, {"speaker_notes": True}, links)
        for at, comment in enumerate(page.iterchildren(OFFICE + "annotation"), 1):
            text = "\n".join(line.text for line in reader.read(comment))
            author, created = (comment.findtext(_DC + name) or "" for name in ("creator", "date"))
            self._note(text, {"slide": number, "comment": str(at)}, {"comment": str(at), "author": author, "created": created}, [])

    def _note(self, text: str, place: dict[str, Any], about: dict[str, Any], links: list[Link]) -> None:
        if text:
            self.drafts.append(Draft("note", 0, 0, text, about, links, place=place))
            check_count(self.drafts, self.request)
