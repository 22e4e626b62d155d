"""HTML page → DocumentIR without the page's chrome (seed 1): headings, paragraphs, lists, code, tables, images and links in source order.

The library parsers at hand (lexbor, libxml2) tell no source offsets, and every block's locator is the range of its element in the
source; so tokens and implied end tags are raydex's own (`html_scan`, `html_walk`). The invariant: each visible word of the page stands
in exactly one block, or is counted in the event `furniture_left_out`; a page with content but no block says `no_semantic_blocks`. A page in
Confluence's storage format is handed on.
"""

from __future__ import annotations

from raydex.ir.parsed import ParsedFile
from raydex.kernels.confluence import parse_storage
from raydex.kernels.confluence_rules import is_storage_format
from raydex.kernels.decode import declared_encoding, decode
from raydex.kernels.drafts import finish
from raydex.kernels.html_furniture import say_left_out
from raydex.kernels.html_walk import HtmlWalk
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "3"
XML_NAMES = (".xhtml", ".xht")


def parse_html(request: ParseRequest) -> ParsedFile:
    """Raises InputError: unsupported_media_type for binary content, too_many_blocks."""
    decoded = decode(request.data, declared=declared_encoding(request.data))
    if is_storage_format(decoded.text):
        return parse_storage(request, decoded)
    walk = HtmlWalk(request)
    walk.walk(decoded.text, xml=_is_xml(request.path, decoded.text))
    parsed = finish(
        request,
        decoded,
        walk.drafts,
        parser="html",
        parser_version=PARSER_VERSION,
        title=walk.title,
        metadata=dict(walk.facts),
    )
    say_left_out(parsed, walk.left_out, walk.content)
    return parsed


def _is_xml(path: str, text: str) -> bool:
    """Whether the page is XHTML, where any tag may close itself: by its declaration, else by the file's name."""
    return text[:200].lstrip().startswith("<?xml") or path.lower().endswith(XML_NAMES)
