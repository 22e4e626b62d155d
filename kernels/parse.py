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

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/tiff", "image/avif")
# markup that reads well as it stands is read as plain text
PLAIN_TYPES = ("text/plain", "text/x-rst", "text/asciidoc", "text/x-org", "text/calendar")
# media type → (module, function): modules are imported on first use, so that a worker loads only what it parses
PARSERS: dict[str, tuple[str, str]] = {
    "text/html": ("raydex.kernels.html", "parse_html"),
    "text/markdown": ("raydex.kernels.markdown", "parse_markdown"),
    **dict.fromkeys(PLAIN_TYPES, ("raydex.kernels.text", "parse_text")),
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ("raydex.kernels.docx", "parse_docx"),
    "application/vnd.oasis.opendocument.text": ("raydex.kernels.odt", "parse_odt"),
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ("raydex.kernels.xlsx", "parse_xlsx"),
    "application/vnd.oasis.opendocument.spreadsheet": ("raydex.kernels.ods", "parse_ods"),
    "application/vnd.ms-excel": ("raydex.kernels.xls", "parse_xls"),
    "image/svg+xml": ("raydex.kernels.svg", "parse_svg"),
    "application/pdf": ("raydex.kernels.pdf", "parse_pdf"),
    "application/json": ("raydex.kernels.json_file", "parse_json_file"),
    "application/jsonl": ("raydex.kernels.json_file", "parse_json_lines"),
    "application/yaml": ("raydex.kernels.yaml_data", "parse_yaml"),
    "application/toml": ("raydex.kernels.config_data", "parse_toml"),
    "text/x-ini": ("raydex.kernels.config_data", "parse_ini"),
    "text/csv": ("raydex.kernels.csv_data", "parse_csv"),
    "text/tab-separated-values": ("raydex.kernels.csv_data", "parse_csv"),
    "application/xml": ("raydex.kernels.xml_data", "parse_xml"),
    "text/x-log": ("raydex.kernels.log_data", "parse_log"),
    "message/rfc822": ("raydex.kernels.mail", "parse_mail"),
    "application/mbox": ("raydex.kernels.mail", "parse_mbox"),
    "application/vnd.ms-outlook": ("raydex.kernels.msg", "parse_msg"),
    "application/zip": ("raydex.kernels.archive", "parse_zip"),
    "application/x-tar": ("raydex.kernels.archive", "parse_tar"),
    "application/gzip": ("raydex.kernels.archive", "parse_compressed"),
    "application/x-bzip2": ("raydex.kernels.archive", "parse_compressed"),
    "application/x-xz": ("raydex.kernels.archive", "parse_compressed"),
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ("raydex.kernels.pptx", "parse_pptx"),
    "application/vnd.oasis.opendocument.presentation": ("raydex.kernels.odp", "parse_odp"),
    **dict.fromkeys(IMAGE_TYPES, ("raydex.kernels.image", "parse_image")),
    "text/x-python": ("raydex.kernels.python_code", "parse_python"),
    "text/x-typescript": ("raydex.kernels.typescript", "parse_typescript"),
    "text/x-tsx": ("raydex.kernels.typescript", "parse_typescript"),
}

PARSER_VERSION = "7"
# an empty file of these is a whole module: the `__init__.py` of a package
EMPTY_MODULES = frozenset({"text/x-python", "text/x-typescript", "text/x-tsx"})


def parse(request: ParseRequest) -> ParsedFile:
    """IR of one file. The caller bounds time and memory (a child process: contracts 21); this bounds size and structure."""
    parsed = _parse(request)
    if request.measure and request.pages is None:
        from raydex.kernels.too_little import note_if_too_little

        note_if_too_little(parsed, request)
    return parsed


def _parse(request: ParseRequest) -> ParsedFile:
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
    if len(request.data) > request.limits.input_bytes and request.segment is None:
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
    bounded = request.segment is None
    if bounded and len(parsed.blocks) > limits.blocks:
        raise InputError(f"{len(parsed.blocks)} blocks are more than limits.blocks ({limits.blocks})", reject_class="too_many_blocks")
    if len(parsed.symbols) > limits.symbols:
        raise InputError(f"{len(parsed.symbols)} symbols are more than limits.symbols ({limits.symbols})", reject_class="too_many_symbols")
    text_bytes = sum(len(block.text) for block in parsed.blocks)
    if bounded and text_bytes > limits.text_bytes:
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
