"""Bytes → IR by docling's own parsers, for files of which ours made too little (`too_little`), or beside ours for comparison.

PDFs go through its native pipeline: the standard one needs models from a hub. Nothing is fetched, by name or from disk. The invariant:
what comes out says that it is docling's, in the document, in every block and in an event; all its events have the stage `docling`.
"""

from __future__ import annotations

import io
from functools import cache
from importlib.util import find_spec
from typing import Any

from raydex.ir.errors import ConfigError, InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.docling_blocks import SOURCE, draft_items, page_rows
from raydex.kernels.drafts import finish
from raydex.kernels.parse import check_limits, rejected
from raydex.kernels.request import ParseRequest

STAGE = "docling"
VERSION = "1"  # of this adapter
# media type → docling's name of the format, its extension, what its pages are
FORMATS: dict[str, tuple[str, str, str]] = {
    "application/pdf": ("PDF", "pdf", "page"),
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ("DOCX", "docx", ""),
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ("PPTX", "pptx", "slide"),
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ("XLSX", "xlsx", "sheet"),
    "text/html": ("HTML", "html", ""),
    "text/markdown": ("MD", "md", ""),
    "text/csv": ("CSV", "csv", ""),
}
# what a process may load before it is asked the first file
PRELOADED = ("docling.document_converter", "docling.pipeline.native_pdf_pipeline", "docling.pipeline.simple_pipeline")
# docling's libraries ask a hub for models, and start threads, unless they are told not to
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TQDM_DISABLE": "1", "MKL_NUM_THREADS": "1"}


def docling_identity() -> str:
    """What the result of a parse depends on: the versions of docling and of this adapter. Raises ConfigError where docling is missing."""
    if find_spec("docling") is None:
        remedy = "Install raydex with the extra `docling`, or set docling.mode to off"
        raise ConfigError("docling.mode is on, but docling is not installed", place="docling.mode", remedy=remedy)
    return f"{docling_version()}+{VERSION}"


@cache
def docling_version() -> str:
    from importlib.metadata import version

    return version("docling")


def parse_docling(request: ParseRequest) -> ParsedFile:
    """A document or a reject, as of `kernels.parse.parse`."""
    try:
        parsed = _parse(request)
        check_limits(parsed, request)
    except InputError as error:
        parsed = rejected(request, error.reject_class, str(error))
    except RecursionError:
        parsed = rejected(request, "too_deep", "nested deeper than docling can follow")
    return _as_stage(parsed)


def _parse(request: ParseRequest) -> ParsedFile:
    name, extension, family = FORMATS[request.media_type]
    result = _convert(request, name, extension)
    drafts = draft_items(result.document, request, family)
    parsed = finish(request, None, drafts, parser=SOURCE, parser_version=docling_version(), metadata={"parser": SOURCE})
    if parsed.document is not None:
        if family == "page":
            parsed.pages = page_rows(result.document, request)
            parsed.document.page_count = len(parsed.pages)
            states = {page.text_state for page in parsed.pages}
            parsed.document.text_state = states.pop() if len(states) == 1 else "mixed"
        parsed.document.metadata["docling_status"] = str(result.status.value)
    if result.errors:
        parsed.add_event("parse", "warning", "docling_partial", f"docling reports {len(result.errors)} errors")
    return parsed


def _convert(request: ParseRequest, name: str, extension: str) -> Any:
    """docling's result. Raises InputError (invalid_input); docling's own messages are left out, since they may quote the file."""
    from docling.datamodel.base_models import ConversionStatus, DocumentStream

    stream = DocumentStream(name=f"file.{extension}", stream=io.BytesIO(request.data))
    try:
        result = _converter(name).convert(
            stream, raises_on_error=False, max_num_pages=request.limits.pages, max_file_size=request.limits.input_bytes
        )
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        raise InputError(f"docling cannot read this file: {type(error).__name__}", place=request.path) from error
    if result.status not in (ConversionStatus.SUCCESS, ConversionStatus.PARTIAL_SUCCESS):
        raise InputError(f"docling cannot read this file: {result.status.value}", place=request.path)
    return result


@cache
def _converter(name: str) -> Any:
    """docling's converter of one format, made once a process."""
    from docling.datamodel.base_models import InputFormat
    from docling.datamodel.pipeline_options import NativePdfPipelineOptions
    from docling.document_converter import DocumentConverter, NativePdfFormatOption

    kind = InputFormat[name]
    if kind is not InputFormat.PDF:
        return DocumentConverter(allowed_formats=[kind])
    options = NativePdfFormatOption(pipeline_options=NativePdfPipelineOptions(parser_threads=1))
    return DocumentConverter(allowed_formats=[kind], format_options={kind: options})


def _as_stage(parsed: ParsedFile) -> ParsedFile:
    events, parsed.events = parsed.events, []
    for event in events:
        parsed.add_event(STAGE, event.status, event.name, event.message, event.ms)
    return parsed
