"""Word packages (docx, docm, dotx) → DocumentIR: the text as it reads with all changes accepted, in the order of the document.

Headings have their level and shown number, list items theirs, tables their spans; footnotes, endnotes and comments are notes after the
block that refers to them. The invariant: what is left out (hidden text, charts, broken parts …) is counted and said in an event.
"""

from __future__ import annotations

from raydex.ir.parsed import ParsedFile
from raydex.kernels.docx_parts import WordParts
from raydex.kernels.docx_walk import DocxWalk
from raydex.kernels.drafts import finish
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "2"
_LOSSES = {
    "alt_chunk": "embedded documents (altChunk) are not read",
    "broken_part": "parts of the package cannot be read",
    "chart": "charts are not read",
    "diagram": "diagrams are not read",
    "embedded_object": "embedded objects are not read, only their pictures",
    "hidden_text": "hidden runs, rows and covered cells are left out",
    "missing_note": "references lead to no note",
    "missing_part": "parts that the package names are missing",
    "sub_document": "linked sub-documents are not read",
    "unknown_symbol": "characters of symbol fonts have no Unicode character here",
    "unreferenced_notes": "notes that the text does not refer to are left out",
}


def parse_docx(request: ParseRequest) -> ParsedFile:
    """Raises InputError: invalid_input, encrypted, bomb, too_deep, too_many_blocks."""
    parts = WordParts(request)
    walk = DocxWalk(request, parts)
    walk.walk()
    properties = parts.properties()
    if walk.styles.language:
        properties.setdefault("language", walk.styles.language)
    losses = {name: count for name, count in parts.losses.items() if count}
    title = properties.get("title", "")
    parsed = finish(request, None, walk.drafts, parser="docx", parser_version=PARSER_VERSION, title=title, metadata=dict(properties))
    for name, count in sorted(losses.items()):
        parsed.add_event("parse", "warning", name, f"{count}: {_LOSSES[name]}")
    running = parts.count("header", "footer")
    if running:
        parsed.add_event("parse", "ok", "headers_footers_left_out", f"{running} headers and footers are furniture")
    return parsed
