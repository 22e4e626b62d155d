"""The corpus's truths → the texts that a parse of a file is measured by.

Three kinds: `whole` (all that a reader sees: transcribed scans, tables of a text layer), `facts` (some of it, in order) and `accepted`
(docling's checked-in result). The first two are independent of any parser. The invariant: a truth holds no mark of its own format, so that
a parser that writes none loses nothing.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TAG = re.compile(r"<(style|script|title)\b.*?</\1>|<[^>]*>", re.S)
_NOTED = re.compile(r"^\[(?:author|time): [^\]]*\]:?|^(?:author|time): .*$", re.M)  # who wrote a note, and when: not its text


@dataclass(frozen=True)
class Truth:
    """`path` is relative to the folder of documents; `other` is what may stand in its place: the other form of a mail's body."""

    path: str
    kind: str
    text: str
    other: str = ""


def read_truths(folder: Path) -> list[Truth]:
    """Of the documents below `folder`, independent ones first."""
    truths = folder / "truth"
    facts: dict[str, Any] = json.loads((truths / "facts.json").read_text(encoding="utf-8"))
    out: list[Truth] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and truths not in path.parents):
        name = path.relative_to(folder).as_posix()
        known = facts.get(f"docs/{name}", {})
        whole = _whole(truths, name, known)
        if whole:
            out.append(Truth(name, "whole", whole))
        elif told := "\n".join(_told(name, known)):
            both = known.get("body_plain") and known.get("body_html")
            out.append(Truth(name, "facts", told, "\n".join(_told(name, {**known, "body_plain": None})) if both else ""))
        if not whole and (accepted := _accepted(truths, name)):
            out.append(Truth(name, "accepted", accepted))
    return out


def _whole(truths: Path, name: str, known: dict[str, Any]) -> str:
    stem = Path(name).stem
    scan = truths / "pdf" / "medical_report_scan.txt"
    if name == "pdf/medical_report_scan.pdf":
        return scan.read_text(encoding="utf-8")
    if name == "image/medical_report_p2.jpg":
        return scan.read_text(encoding="utf-8").split("\f")[1]
    if name.startswith("pdf/") and (truths / "pdf" / f"{stem}.md").is_file() and not (truths / "pdf" / f"{stem}.json").is_file():
        return plain_markdown((truths / "pdf" / f"{stem}.md").read_text(encoding="utf-8"))
    if name == "pdf/ocr_test.pdf":
        return str(known["text"])
    if "rows" in known and name.startswith("csv/"):
        return "\n".join(" ".join(row) for row in known["rows"])
    return ""


def _told(name: str, known: dict[str, Any]) -> list[str]:
    """Strings of the facts that stand in the file's text, in reading order."""
    if name.startswith("email/"):
        body = known.get("body_plain") or html.unescape(_TAG.sub(" ", known.get("body_html") or ""))
        inner = [str(part[key]) for part in known.get("attachments", ()) for key in ("subject", "body") if part.get(key)]
        return [known["subject"], body, *inner]
    if name.startswith("pptx/"):
        cells = [text for table in known.get("tables", ()) if isinstance(table, list) for row in table for text in row]
        return [*([known["title"]] if "title" in known else ()), *cells, *(note for note in known.get("notes", {}).values() if note)]
    if "blocks" in known:
        return [text.partition(" ")[2] for text in known["blocks"]]
    if name.startswith("docx/"):
        return [*_cells(known.get("tables", ())), *([known["last_item"]] if "last_item" in known else ())]
    if name.startswith("pdf/"):
        title = [known["title"]] if "title" in known else []
        strings = known.get("text", ()) if isinstance(known.get("text"), list) else ()
        outline = [row[0] for row in known.get("outline", ())]
        return [*title, *known.get("body", ()), *known.get("page_1_order", ()), *strings, *outline, *known.get("figures", ())]
    return []


def _cells(tables: Any) -> list[str]:
    out: list[str] = []
    for table in tables:
        for row in table.get("grid", ()):
            for cell in row:
                out += [text for line in cell["nested"] for text in line] if isinstance(cell, dict) else [cell]
        out += [cell["text"] for cell in sorted(table.get("cells", ()), key=lambda cell: (cell["row"], cell["col"]))]
    return out


def _accepted(truths: Path, name: str) -> str:
    kind, file = name.split("/")
    stem = Path(file).stem if kind == "pdf" else file
    model = truths / kind / f"{stem}.json"
    if model.is_file():
        from docling_core.types.doc import DoclingDocument

        return docling_text(DoclingDocument.model_validate_json(model.read_text(encoding="utf-8")))
    written = truths / kind / f"{stem}.md"
    return plain_markdown(written.read_text(encoding="utf-8")) if written.is_file() else ""


def docling_text(document: Any) -> str:
    """Texts, cells and data of charts of a DoclingDocument in its order, each once; notes and hidden parts are in, page headers are not."""
    from docling_core.types.doc import ContentLayer, DocItemLabel, PictureItem, TableItem, TextItem

    lines: list[str] = []
    inside: set[str] = set()  # items that a table's cells show
    layers = {ContentLayer.BODY, ContentLayer.NOTES, ContentLayer.INVISIBLE}
    for item, _ in document.iterate_items(included_content_layers=layers, with_groups=True):
        parent = item.parent.cref if item.parent is not None else ""
        if parent in inside and getattr(item, "label", None) != DocItemLabel.CAPTION:
            inside.add(item.self_ref)
        elif isinstance(item, TableItem):
            inside.add(item.self_ref)
            lines.append(_cells_of(item.data, document))
        elif isinstance(item, PictureItem) and (chart := getattr(item.meta, "tabular_chart", None)) is not None:
            lines.append(_cells_of(chart.chart_data, document))
        elif isinstance(item, TextItem):
            lines.append(_NOTED.sub("", item.text))
    return "\n".join(lines)


def _cells_of(table: Any, document: Any) -> str:
    """Each cell once, however far it spans, with the tables inside it that its own text does not tell."""
    from docling_core.types.doc import TableItem

    lines = []
    for cell in sorted(table.table_cells, key=lambda cell: (cell.start_row_offset_idx, cell.start_col_offset_idx)):
        lines.append(cell.text)
        if reference := getattr(cell, "ref", None):
            inner = [item.data for item, _ in document.iterate_items(root=reference.resolve(document)) if isinstance(item, TableItem)]
            lines += [_cells_of(table, document) for table in inner if not all(part.text in cell.text for part in table.table_cells)]
    return "\n".join(lines)


def plain_markdown(text: str) -> str:
    """What a reader sees of it: no marks, numbers of items, targets of links, comments."""
    from markdown_it import MarkdownIt

    lines = []
    for token in MarkdownIt().enable("table").parse(text):
        if token.type in ("fence", "code_block"):
            lines.append(token.content)
        elif token.type == "inline":
            shown = ("text", "code_inline")
            lines.append(
                "".join(part.content if part.type in shown else " " if part.type.endswith("break") else "" for part in token.children or ())
            )
    return "\n".join(lines)
