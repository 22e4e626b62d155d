"""PDF bytes → a part: raw pages of the file or of a page range, with outline, information, labels and links.

A broken page costs itself: it becomes a failed page and the others go on. The invariants: every handle that is opened is closed, outline
and object walks are bounded whatever their references do, and nothing that a PDF points to is fetched.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from raydex.ir.errors import InputError
from raydex.kernels.limits import Limits
from raydex.kernels.pdf_hidden import note_hidden
from raydex.kernels.pdf_marks import read_attachments, read_marks
from raydex.kernels.pdf_objects import has_images, read_objects
from raydex.kernels.pdf_raw import CONTROL, SEGMENT_COLUMNS, Frame, Page, Part, failed_page, new_page, pdfium, upright, utf16_text
from raydex.kernels.pdf_segments import read_text
from raydex.kernels.request import ParseRequest

MAX_OUTLINE = 10_000
MAX_OUTLINE_DEPTH = 32
MAX_LINKS = 2_000

_INFO_KEYS = ("Title", "Author", "Subject", "Keywords", "Creator", "Producer", "CreationDate", "ModDate")
_OPEN_ERRORS = {2: "file error", 3: "it is no PDF, or its structure is broken", 6: "page error"}


@contextmanager
def open_pdf(data: bytes, limits: Limits) -> Iterator[tuple[Any, int]]:
    """(document handle, page count). Raises InputError: invalid_input, encrypted, no_pages or too_many_pages."""
    raw = pdfium().raw
    document = raw.FPDF_LoadMemDocument64(data, len(data), None)
    if not document:
        code = raw.FPDF_GetLastError()
        if code == raw.FPDF_ERR_PASSWORD:
            raise InputError("a password is needed to open this PDF", reject_class="encrypted", remedy="Remove its password")
        if code == raw.FPDF_ERR_SECURITY:
            raise InputError("this PDF uses an unknown security scheme", reject_class="encrypted", remedy="Save it without protection")
        reason = _OPEN_ERRORS.get(code, f"error {code}")
        raise InputError(f"PDFium cannot open this file: {reason}", remedy="Check whether the file is complete")
    try:
        count = raw.FPDF_GetPageCount(document)
        if count <= 0:
            raise InputError("this PDF has no pages", reject_class="no_pages")
        if count > limits.pages:
            raise InputError(f"{count} pages are more than limits.pages ({limits.pages})", reject_class="too_many_pages")
        yield document, count
    finally:
        raw.FPDF_CloseDocument(document)


def read_part(request: ParseRequest) -> Part:
    """Raw pages of the file, or of `request.pages`. Raises the InputErrors of `open_pdf`, text_too_long, or a range outside the file."""
    with open_pdf(request.data, request.limits) as (document, count):
        first, last = request.pages or (1, count)
        if not 1 <= first <= last or first > count:
            raise InputError(f"the page range {first}-{last} does not lie in 1-{count}")
        last = min(last, count)
        encrypted = pdfium().raw.FPDF_GetSecurityHandlerRevision(document) >= 0
        part: Part = {"page_count": count, "first": first, "last": last, "encrypted": encrypted}
        part["info"] = _read_info(document)
        part["language"] = utf16_text(pdfium().raw.FPDFCatalog_GetLanguage, document)[:100]
        part["outline"] = _read_outline(document)
        part["attachments"] = read_attachments(document)
        images = has_images(request.data)
        pages: list[Page] = []
        room = request.limits.text_bytes
        for number in range(first, last + 1):
            page = _read_page(document, number, images)
            room -= page["chars"] + sum(len(text) for _, _, text, *_ in page["marks"])
            if room < 0:
                message = f"the text up to page {number} is longer than limits.text_bytes ({request.limits.text_bytes})"
                raise InputError(message, reject_class="text_too_long")
            pages.append(page)
        part["pages"] = pages
    return part


def _bytes(call: Any, *arguments: Any) -> str:
    """Text of a PDFium call that fills a byte buffer, as UTF-8 where it is, else Latin-1."""
    size = call(*arguments, None, 0)
    if size <= 1:
        return ""
    buffer = ctypes.create_string_buffer(size)
    call(*arguments, buffer, size)
    value = buffer.raw[: size - 1]
    try:
        return CONTROL.sub("", value.decode("utf-8"))
    except UnicodeDecodeError:
        return CONTROL.sub("", value.decode("latin-1"))


def _read_info(document: Any) -> dict[str, str]:
    raw = pdfium().raw
    values = ((key, utf16_text(raw.FPDF_GetMetaText, document, key.encode())[:1000]) for key in _INFO_KEYS)
    return {key: value for key, value in values if value}


def _read_outline(document: Any) -> list[list[Any]]:
    """Rows [title, page, level] in reading order; each bookmark once, however its references run in circles."""
    raw = pdfium().raw
    rows: list[list[Any]] = []
    seen: set[int] = set()
    stack = [(raw.FPDFBookmark_GetFirstChild(document, None), 0)]
    while stack and len(rows) < MAX_OUTLINE:
        bookmark, level = stack.pop()
        address = ctypes.cast(bookmark, ctypes.c_void_p).value
        if address is None or address in seen:
            continue
        seen.add(address)
        target = raw.FPDFBookmark_GetDest(document, bookmark)
        page = raw.FPDFDest_GetDestPageIndex(document, target) + 1 if target else 0
        rows.append([utf16_text(raw.FPDFBookmark_GetTitle, bookmark)[:1000], max(page, 0), level])
        stack.append((raw.FPDFBookmark_GetNextSibling(document, bookmark), level))
        if level + 1 < MAX_OUTLINE_DEPTH:
            stack.append((raw.FPDFBookmark_GetFirstChild(document, bookmark), level + 1))
    return rows


def _read_page(document: Any, number: int, images: bool) -> Page:
    raw = pdfium().raw
    handle = raw.FPDF_LoadPage(document, number - 1)
    if not handle:
        return failed_page(number, "PDFium cannot load this page")
    try:
        page = new_page(number)
        frame = _frame(handle, page)
        page["label"] = utf16_text(raw.FPDF_GetPageLabel, document, number - 1)
        text_page = raw.FPDFText_LoadPage(handle)
        if not text_page:
            return failed_page(number, "PDFium cannot read the text of this page")
        try:
            white = read_text(text_page, page, frame)
            if white is None:
                page.update({name: [] for name in SEGMENT_COLUMNS})
                page.update(chars=0, state="unavailable", warnings=["garbled_text"])
            read_objects(handle, page, frame, images)
            note_hidden(handle, page, frame, white or set())
            _read_links(document, handle, text_page, page, frame)
            read_marks(handle, page, frame)
        finally:
            raw.FPDFText_ClosePage(text_page)
        return page
    finally:
        raw.FPDF_ClosePage(handle)


def _frame(handle: Any, page: Page) -> Frame:
    """Fills size and rotation of the page; returns its frame (`pdf_raw.upright`)."""
    raw = pdfium().raw
    box = raw.FS_RECTF()
    quarter = max(raw.FPDFPage_GetRotation(handle), 0) % 4
    width, height = raw.FPDF_GetPageWidthF(handle), raw.FPDF_GetPageHeightF(handle)
    page.update(width=round(width, 2), height=round(height, 2), rotation=quarter * 90)
    if raw.FPDF_GetPageBoundingBox(handle, box):
        return quarter, box.left, box.bottom, box.right, box.top
    return (quarter, 0.0, 0.0, height, width) if quarter % 2 else (quarter, 0.0, 0.0, width, height)


def _read_links(document: Any, handle: Any, text_page: Any, page: Page, frame: Frame) -> None:
    """Fills `links` from annotations that leave the document: URI, remote PDF or file to launch, as written."""
    raw = pdfium().raw
    position = ctypes.c_int(0)
    link = raw.FPDF_LINK()
    box = raw.FS_RECTF()
    while len(page["links"]) < MAX_LINKS and raw.FPDFLink_Enumerate(handle, position, link):
        action = raw.FPDFLink_GetAction(link)
        kind = raw.FPDFAction_GetType(action) if action else 0
        if kind == raw.PDFACTION_URI:
            href = _bytes(raw.FPDFAction_GetURIPath, document, action)
        elif kind in (raw.PDFACTION_REMOTEGOTO, raw.PDFACTION_LAUNCH):
            href = _bytes(raw.FPDFAction_GetFilePath, action)
        else:
            continue
        if not href or not raw.FPDFLink_GetAnnotRect(link, box):
            continue
        bounds = (box.left, box.top, box.right, box.bottom)
        units = raw.FPDFText_GetBoundedText(text_page, *bounds, None, 0)
        buffer = (ctypes.c_ushort * max(units, 1))()
        raw.FPDFText_GetBoundedText(text_page, *bounds, buffer, units)
        text = ctypes.string_at(buffer, 2 * units).decode("utf-16-le", "replace").replace("\ufffe", "-")
        text = " ".join(CONTROL.sub("", text).split())
        page["links"].append([href[:4000], text[:1000], *upright(frame, box.left, box.bottom, box.right, box.top)])
