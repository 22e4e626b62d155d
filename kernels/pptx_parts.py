"""A presentation package → its parts by relation: slides in order, their layouts, notes and pictures, core properties.

The strict dialect is read as the transitional one: only namespace names differ. The invariant: a part that is absent or broken costs its
own content and is named in `losses`, never the deck; a bomb or a locked part rejects the file.
"""

from __future__ import annotations

import re
from typing import Any

from raydex.ir.errors import InputError, LimitError
from raydex.kernels.lossy_package import LossyPackage
from raydex.kernels.package import CORE_PROPERTIES, Relation, parse_part
from raydex.kernels.pptx_layout import Layout, P
from raydex.kernels.pptx_text import Href, Levels, R, read_levels
from raydex.kernels.request import ParseRequest

# a tree costs some hundred bytes a tag: more of them than a deck of `limits.blocks` paragraphs ever has
MAX_TAGS = 8_000_000
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")


class DeckParts(LossyPackage):
    """Raises InputError: those of `Package`, and invalid_input where there is no presentation."""

    def __init__(self, request: ParseRequest) -> None:
        super().__init__(request)
        self._path = request.path
        self._layouts: dict[str, Layout] = {}
        self._masters: dict[str, Any] = {}
        self._of_package = list(self.package.relations("").values())
        listed = next((r.target for r in self._of_package if r.kind == "officeDocument" and not r.external), "")
        self.main_name = listed if listed and self.package.find(listed) else "ppt/presentation.xml"
        if self.package.find(self.main_name) is None:
            raise InputError("the package holds no presentation", place=self._path)
        self.main = self.xml(self.main_name)
        self.main_relations = self.relations(self.main_name)
        self._default: Levels = read_levels(self.main.find(P + "defaultTextStyle"))

    def xml(self, name: str) -> Any:
        """Raises KeyError, InputError, LimitError."""
        data = self.package.read(name)
        place = f"{self._path}: {name}"
        if data.count(b"<") > MAX_TAGS:
            raise LimitError(f"a part has more than {MAX_TAGS} tags", reject_class="too_many_blocks", place=place)
        if b"purl.oclc.org/ooxml" in data:
            data = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/\2", data)
        return parse_part(data, place)

    def relations(self, name: str) -> dict[str, Relation]:
        try:
            return self.package.relations(name)
        except InputError as error:
            if error.reject_class not in ("invalid_input", "too_deep"):
                raise
            self.lose("broken_part", error.message, name)
            return {}

    def slides(self) -> list[str]:
        """Names of the slides' parts in the order of the deck; each once."""
        found: dict[str, None] = {}
        for at, item in enumerate(self.main.iterfind(f"{P}sldIdLst/{P}sldId"), 1):
            relation = self.main_relations.get(item.get(R + "id") or "")
            if relation is None or relation.external:
                self.lose("missing_part", "a slide of the list is absent", f"slide {at} of the list")
            elif relation.target in found:
                self.lose("repeated_slide", "a slide is listed again", f"slide {at} of the list")
            else:
                found[relation.target] = None
        return list(found)

    def layout(self, relations: dict[str, Relation], place: str) -> Layout:
        """The layout that a slide's relations name, over its master; an empty one where there is none."""
        name = related(relations, "slideLayout")
        if name not in self._layouts:
            root = self.optional(name, place) if name else None
            above = related(self.relations(name), "slideMaster") if name else ""
            if above not in self._masters:
                self._masters[above] = self.optional(above, place) if above else None
            self._layouts[name] = Layout(root, self._masters[above], self._default)
        return self._layouts[name]

    def hrefs(self, relations: dict[str, Relation], numbers: dict[str, int]) -> Href:
        """A click → its address: an external one as written, a slide by its number, else nothing."""

        def href(click: Any) -> str:
            relation = relations.get(click.get(R + "id") or "")
            if relation is None:
                return ""
            if relation.external:
                return relation.target
            return f"#slide={numbers[relation.target]}" if relation.target in numbers else ""

        return href

    def properties(self) -> dict[str, str]:
        """Core properties that say something, by their names in the metadata of a document."""
        found: dict[str, str] = {}
        name = next((r.target for r in self._of_package if r.kind == "core-properties" and not r.external), "")
        root = self.optional(name, name) if name else None
        for element in root if root is not None else ():
            key = CORE_PROPERTIES.get(element.tag.rpartition("}")[2]) if isinstance(element.tag, str) else None
            text = " ".join((element.text or "").split())
            if key and text:
                found[key] = text
        return found


def related(relations: dict[str, Relation], kind: str) -> str:
    """The name of the first part of a kind, or an empty string."""
    return next((relation.target for relation in relations.values() if relation.kind == kind and not relation.external), "")
