"""A Word package → its parts by relation: the main document, styles, notes, pictures, core properties.

The strict dialect is read as the transitional one: only namespace names differ. The invariant: a part that is absent or broken costs its
own content, counted in `losses`, never the document; a bomb or a locked part still rejects the file.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from raydex.ir.errors import InputError, LimitError
from raydex.kernels.package import CORE_PROPERTIES, Package, Relation, parse_part
from raydex.kernels.request import ParseRequest

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
VAL = W + "val"
# a tree costs some hundred bytes a tag: more of them than a document of `limits.blocks` paragraphs ever has
MAX_TAGS = 4_000_000
_STRICT = re.compile(rb"""(xmlns(?::[\w.-]+)?\s*=\s*["'])http://purl\.oclc\.org/ooxml/(\w+)/(\w+)""")
_OFF = frozenset(("0", "false", "off", "none"))


def is_on(element: Any) -> bool:
    """A switch is on where it stands, unless its value says off."""
    return element is not None and element.get(VAL, "1") not in _OFF


def to_int(value: str | None, default: int = 0) -> int:
    """Decimal digits with a sign, of a length that any number of a document has."""
    if value is None or len(value) > 12:
        return default
    try:
        return int(value)
    except ValueError:
        return default


class WordParts:
    """Raises InputError: those of `Package`, and invalid_input where there is no main document."""

    def __init__(self, request: ParseRequest) -> None:
        self._path = request.path
        self.package = Package(request)
        self.losses: Counter[str] = Counter()
        self._pictures: dict[str, bytes | None] = {}
        self._of_package = list(self.package.relations("").values())
        listed = next((r.target for r in self._of_package if r.kind == "officeDocument" and not r.external), "")
        self.main_name = listed if listed and self.package.find(listed) else "word/document.xml"
        if self.package.find(self.main_name) is None:
            raise InputError("the package has no main document", reject_class="invalid_input", place=request.path)
        self.main_relations = self.relations(self.main_name)

    def xml(self, name: str) -> Any:
        """Raises KeyError, InputError, LimitError."""
        data = self.package.read(name)
        place = f"{self._path}: {name}"
        if data.count(b"<") > MAX_TAGS:
            raise LimitError(f"a part has more than {MAX_TAGS} tags", reject_class="too_many_blocks", place=place)
        if b"purl.oclc.org/ooxml" in data:
            data = _STRICT.sub(rb"\1http://schemas.openxmlformats.org/\2/2006/\3", data)
        return parse_part(data, place)

    def main(self) -> Any:
        root = self.xml(self.main_name)
        body = root.find(W + "body")
        if body is None:
            raise InputError("the main part holds no body of a document", reject_class="invalid_input", place=self._path)
        return body

    def relations(self, name: str) -> dict[str, Relation]:
        try:
            return self.package.relations(name)
        except InputError as error:
            self._lose(error)
            return {}

    def related(self, kind: str) -> tuple[Any, str]:
        """Root and name of the part that the main document names so; None and "" where there is none that can be read."""
        for relation in self.main_relations.values():
            if relation.kind == kind and not relation.external:
                return self._optional(relation.target), relation.target
        return None, ""

    def count(self, *kinds: str) -> int:
        """How many relations of these kinds the main document has."""
        return sum(relation.kind in kinds for relation in self.main_relations.values())

    def picture(self, name: str) -> bytes | None:
        """Bytes of a picture, read once; None where it is absent or broken."""
        if name not in self._pictures:
            data: bytes | None = None
            try:
                data = self.package.read(name)
            except KeyError:
                self.losses["missing_part"] += 1
            except InputError as error:
                self._lose(error)
            self._pictures[name] = data
        return self._pictures[name]

    def properties(self) -> dict[str, str]:
        """Core properties that say something, by their names in the metadata of a document."""
        found: dict[str, str] = {}
        name = next((r.target for r in self._of_package if r.kind == "core-properties" and not r.external), "")
        root = self._optional(name) if name else None
        for element in root if root is not None else ():
            key = CORE_PROPERTIES.get(element.tag.rpartition("}")[2]) if isinstance(element.tag, str) else None
            text = (element.text or "").strip()
            if key and text:
                found[key] = text
        return found

    def _optional(self, name: str) -> Any:
        try:
            return self.xml(name)
        except KeyError:
            self.losses["missing_part"] += 1
        except InputError as error:
            self._lose(error)
        return None

    def _lose(self, error: InputError) -> None:
        if error.reject_class not in ("invalid_input", "too_deep"):
            raise error
        self.losses["broken_part"] += 1
