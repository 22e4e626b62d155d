"""What people put on a PDF page and into a file: comments, values of form fields, attached files.

None of it is part of the page's own text, and a reader of the file sees all of it. The invariant: each page gives at most `MAX_MARKS`, each
of at most `MAX_CHARS` code points, whatever its annotations refer to; what an author has hidden stays out.
"""

from __future__ import annotations

from typing import Any

from raydex.kernels.pdf_raw import Frame, Page, pdfium, upright, utf16_text

MAX_MARKS = 500
MAX_CHARS = 4_000
MAX_ATTACHMENTS = 1_000


def read_marks(handle: Any, page: Page, frame: Frame) -> None:
    """Fills `marks`: `[kind, name, text, x0, y0, x1, y1]`, `kind` comment (`name`: its author) or field (`name`: of the field)."""
    raw = pdfium().raw
    for at in range(min(raw.FPDFPage_GetAnnotCount(handle), MAX_MARKS)):
        annotation = raw.FPDFPage_GetAnnot(handle, at)
        if not annotation:
            continue
        try:
            mark = _read_mark(raw, annotation)
            box = raw.FS_RECTF()
            if mark and raw.FPDFAnnot_GetRect(annotation, box):
                place = upright(frame, box.left, min(box.bottom, box.top), box.right, max(box.bottom, box.top))
                page["marks"].append([*mark, *(round(side, 2) for side in place)])
        finally:
            raw.FPDFPage_CloseAnnot(annotation)


def _read_mark(raw: Any, annotation: Any) -> tuple[str, str, str] | None:
    subtype = raw.FPDFAnnot_GetSubtype(annotation)
    if subtype in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP) or raw.FPDFAnnot_GetFlags(annotation) & raw.FPDF_ANNOT_FLAG_HIDDEN:
        return None
    kind, key = ("field", b"V") if subtype == raw.FPDF_ANNOT_WIDGET else ("comment", b"Contents")
    text = utf16_text(raw.FPDFAnnot_GetStringValue, annotation, key)[:MAX_CHARS]
    return (kind, utf16_text(raw.FPDFAnnot_GetStringValue, annotation, b"T")[:200], text) if text else None


def read_attachments(document: Any) -> list[str]:
    """Names of the files that are attached to the document."""
    raw = pdfium().raw
    count = min(max(raw.FPDFDoc_GetAttachmentCount(document), 0), MAX_ATTACHMENTS)
    names = []
    for at in range(count):
        attachment = raw.FPDFDoc_GetAttachment(document, at)
        names.append((utf16_text(raw.FPDFAttachment_GetName, attachment) if attachment else "")[:200] or "unnamed")
    return names
