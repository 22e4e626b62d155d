"""Drawings of a Word document (DrawingML and the older VML) → pictures with their bytes, and text boxes, in the order in which they stand.

Charts, diagrams and embedded objects are counted in `losses`. The invariant: of an alternative one side is read, and a picture's bytes are
kept once however often it stands in the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from raydex.ir.document import Link
from raydex.kernels.docx_parts import R, W, WordParts
from raydex.kernels.drafts import Draft
from raydex.kernels.image_size import describe_image
from raydex.kernels.package import Relation

MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
TEXT_BOX = W + "txbxContent"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_PIC = "{http://schemas.openxmlformats.org/drawingml/2006/picture}"
_V = "{urn:schemas-microsoft-com:vml}"
_O = "{urn:schemas-microsoft-com:office:office}"
_BLIP, _IMAGE_DATA = _A + "blip", _V + "imagedata"
_NAMED = frozenset((_WP + "docPr", _PIC + "cNvPr"))
_LOST = {
    "{http://schemas.openxmlformats.org/drawingml/2006/chart}chart": "chart",
    "{http://schemas.microsoft.com/office/drawing/2014/chartex}chart": "chart",
    "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds": "diagram",
    _O + "OLEObject": "embedded_object",
}
_SEEN = (TEXT_BOX, _BLIP, _IMAGE_DATA, W + "t", W + "p", W + "fldChar", *_LOST)


def choose(alternatives: Any) -> Any:
    """Of `AlternateContent` the first choice that holds something that is understood, else the fallback."""
    fallback = None
    for side in alternatives:
        if side.tag == MC + "Fallback":
            fallback = side
        elif side.tag == MC + "Choice" and next(side.iter(*_SEEN), None) is not None:
            return side
    return fallback


class Pictures:
    """Reads the drawings of one package."""

    def __init__(self, parts: WordParts) -> None:
        self.parts = parts
        self._about: dict[str, dict[str, Any]] = {}

    def read(self, root: Any, relations: dict[str, Relation]) -> Iterator[Any]:
        """Drafts of pictures and elements of text boxes. Depth costs no recursion."""
        alt, links = "", list[Link]()
        waiting = [root]
        while waiting:
            element = waiting.pop()
            tag = element.tag
            if tag == TEXT_BOX:
                yield element
                continue
            if tag == MC + "AlternateContent":
                chosen = choose(element)
                waiting += [chosen] if chosen is not None else []
                continue
            if tag in _NAMED:
                alt = element.get("descr") or element.get("title") or alt
                links = _links(element, relations) or links
            elif tag == _BLIP:
                yield from self._picture(element.get(R + "embed"), element.get(R + "link"), alt, links, relations)
            elif tag == _V + "shape":
                alt = element.get("alt") or alt
            elif tag == _IMAGE_DATA:
                name = element.get(_O + "title") or alt
                yield from self._picture(element.get(R + "id"), element.get(R + "href"), name, links, relations)
            elif tag in _LOST:
                self.parts.losses[_LOST[tag]] += 1
            waiting.extend(reversed(element))

    def _picture(
        self, embedded: str | None, linked: str | None, alt: str, links: list[Link], relations: dict[str, Relation]
    ) -> Iterator[Draft]:
        relation = relations.get(embedded or "") or relations.get(linked or "")
        if relation is None:
            self.parts.losses["missing_part"] += bool(embedded or linked)
            return
        about: dict[str, Any] = {}
        data = None
        if not relation.external:
            data = self.parts.picture(relation.target)
            if data is not None:
                if relation.target not in self._about:
                    self._about[relation.target] = describe_image(data, relation.target)
                about = dict(self._about[relation.target])
        yield Draft("image", 0, 0, alt, about, list(links), href=relation.target, data=data)


def _links(element: Any, relations: dict[str, Relation]) -> list[Link]:
    found = element.find(_A + "hlinkClick")
    relation = relations.get(found.get(R + "id", "")) if found is not None else None
    return [Link(relation.target)] if relation is not None else []
