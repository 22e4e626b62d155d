"""OpenDocument text (odt, ott) → DocumentIR, with all changes accepted, in the order of the document.

Headings have their level and shown number, list items theirs, tables their spans; notes and comments come after the block that holds them.
The invariant: what is left out is counted and said in an event; a locked document is a typed reject.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from raydex.ir.errors import InputError, LimitError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.docx_parts import MAX_TAGS
from raydex.kernels.drafts import finish
from raydex.kernels.image_size import describe_image
from raydex.kernels.odt_styles import OdtStyles
from raydex.kernels.odt_walk import OFFICE, OdtWalk
from raydex.kernels.package import Package, parse_part, part_name
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "1"
_LOSSES = {
    "broken_part": "parts of the package cannot be read",
    "embedded_object": "embedded objects are not read, only their pictures",
    "hidden_text": "hidden paragraphs, runs and sections are left out",
    "missing_part": "parts that the text names are missing",
}
_PROPERTIES = {
    "title": "title",
    "subject": "subject",
    "description": "description",
    "initial-creator": "creator",
    "creator": "last_modified_by",
    "creation-date": "created",
    "date": "modified",
    "language": "language",
}


def parse_odt(request: ParseRequest) -> ParsedFile:
    """Raises InputError: invalid_input, encrypted, bomb, too_deep, too_many_blocks."""
    parts = _Parts(request)
    content = parts.required("content.xml")
    body = content.find(f"{OFFICE}body/{OFFICE}text")
    if body is None:
        raise InputError("the package holds no text document", reject_class="invalid_input", place=request.path)
    styles = parts.optional("styles.xml")
    walk = OdtWalk(request, OdtStyles([content] if styles is None else [content, styles]), parts.picture, parts.losses)
    walk.flow(body)
    properties = parts.properties()
    title = properties.get("title", "")
    parsed = finish(request, None, walk.drafts, parser="odt", parser_version=PARSER_VERSION, title=title, metadata=dict(properties))
    for name, count in sorted(parts.losses.items()):
        parsed.add_event("parse", "warning", name, f"{count}: {_LOSSES[name]}")
    return parsed


class _Parts:
    """Parts of one package by name."""

    def __init__(self, request: ParseRequest) -> None:
        self._path = request.path
        self._package = Package(request)
        self._pictures: dict[str, tuple[bytes | None, dict[str, Any]]] = {}
        self.losses: Counter[str] = Counter()
        manifest = self.optional("META-INF/manifest.xml")
        if manifest is not None and any(True for _ in manifest.iter("{*}encryption-data")):
            raise InputError("the document is encrypted", reject_class="encrypted", place=request.path)

    def required(self, name: str) -> Any:
        if self._package.find(name) is None:
            raise InputError(f"the package has no {name}", reject_class="invalid_input", place=self._path)
        data = self._package.read(name)
        if data.count(b"<") > MAX_TAGS:
            raise LimitError(f"a part has more than {MAX_TAGS} tags", reject_class="too_many_blocks", place=self._path)
        return parse_part(data, f"{self._path}: {name}")

    def optional(self, name: str) -> Any:
        if self._package.find(name) is None:
            return None
        try:
            return self.required(name)
        except InputError as error:
            if error.reject_class not in ("invalid_input", "too_deep"):
                raise
            self.losses["broken_part"] += 1
            return None

    def picture(self, href: str) -> tuple[bytes | None, dict[str, Any]]:
        """Bytes of a picture that the package holds, and what is known of it; an outer address is only named."""
        if not href or "://" in href or href.startswith(("data:", "../")):
            return None, {}
        if href not in self._pictures:
            data = None
            try:
                data = self._package.read(part_name("", href))
            except KeyError:
                self.losses["missing_part"] += 1
            except InputError as error:
                if error.reject_class != "invalid_input":
                    raise
                self.losses["broken_part"] += 1
            self._pictures[href] = (data, describe_image(data, href) if data is not None else {})
        data, about = self._pictures[href]
        return data, dict(about)

    def properties(self) -> dict[str, str]:
        root = self.optional("meta.xml")
        meta = root.find(OFFICE + "meta") if root is not None else None
        found: dict[str, str] = {}
        for element in meta if meta is not None else ():
            key = _PROPERTIES.get(element.tag.rpartition("}")[2]) if isinstance(element.tag, str) else None
            text = (element.text or "").strip()
            if key and text:
                found[key] = text
        return found
