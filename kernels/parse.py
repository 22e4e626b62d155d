"""Media type → parser. A parser is a function ParseRequest → ParsedFile that raises InputError when the input is at fault.

The invariant: `parse` returns a ParsedFile that either has a document or a reject, and never lets an InputError or RecursionError out.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from raydex.ir.document import check_document
from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.request import ParseRequest

# media type → (module, function): modules are imported on first use, so that a worker loads only what it parses
PARSERS: dict[str, tuple[str, str]] = {
    "text/html": ("raydex.kernels.html", "parse_html"),
    "text/markdown": ("raydex.kernels.markdown", "parse_markdown"),
    "text/plain": ("raydex.kernels.text", "parse_text"),
    "application/pdf": ("raydex.kernels.pdf", "parse_pdf"),
    "text/x-python": ("raydex.kernels.python_code", "parse_python"),
    "text/x-typescript": ("raydex.kernels.typescript", "parse_typescript"),
    "text/x-tsx": ("raydex.kernels.typescript", "parse_typescript"),
}

PARSER_VERSION = "2"
# an empty file of these is a whole module: the `__init__.py` of a package
EMPTY_MODULES = frozenset({"text/x-python", "text/x-typescript", "text/x-tsx"})


def parse(request: ParseRequest) -> ParsedFile:
    """IR of one file. The caller bounds time and memory (a child process: contracts 21); this bounds size and structure."""
    try:
        parsed = find_parser(request)(request)
        check_limits(parsed, request)
        return parsed
    except InputError as error:
        return rejected(request, error.reject_class, str(error))
    except RecursionError:
        return rejected(request, "too_deep", f"nested deeper than the parser of {request.media_type} can follow")


def find_parser(request: ParseRequest) -> Callable[[ParseRequest], ParsedFile]:
    """Raises InputError: empty, too_large or unsupported_media_type."""
    if not request.data and request.media_type not in EMPTY_MODULES:
        raise InputError("the file has no bytes", reject_class="empty")
    if len(request.data) > request.limits.input_bytes:
        raise InputError(
            f"{len(request.data)} bytes are more than limits.input_bytes ({request.limits.input_bytes})", reject_class="too_large"
        )
    found = PARSERS.get(request.media_type)
    if found is None:
        raise InputError(f"no parser for {request.media_type}", reject_class="unsupported_media_type")
    return getattr(import_module(found[0]), found[1])  # type: ignore[no-any-return]


def check_limits(parsed: ParsedFile, request: ParseRequest) -> None:
    """Raises InputError when the result breaks the IR's contract or a limit."""
    limits = request.limits
    if len(parsed.blocks) > limits.blocks:
        raise InputError(f"{len(parsed.blocks)} blocks are more than limits.blocks ({limits.blocks})", reject_class="too_many_blocks")
    if len(parsed.symbols) > limits.symbols:
        raise InputError(f"{len(parsed.symbols)} symbols are more than limits.symbols ({limits.symbols})", reject_class="too_many_symbols")
    text_bytes = sum(len(block.text) for block in parsed.blocks)
    if text_bytes > limits.text_bytes:
        message = f"{text_bytes} characters of text are more than limits.text_bytes ({limits.text_bytes})"
        raise InputError(message, reject_class="text_too_long")
    if parsed.document is not None:
        check_document(parsed.document, parsed.blocks, parsed.pages)


def rejected(request: ParseRequest, reject_class: str, error: str, attempts: int = 1) -> ParsedFile:
    """A ParsedFile that holds nothing but the reject and its event."""
    parsed = ParsedFile(request.record_id, request.content_hash, request.path, request.media_type)
    parsed.add_reject("parse", reject_class, error, attempts)
    parsed.add_event("parse", "error", reject_class, error)
    return parsed
