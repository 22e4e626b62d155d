"""What a generation holds → sections of the report: formats, documents, families, pages read by OCR, tickets, images and what models saw.

The invariant: every list is cut to a number of rows and says how many there are; what has not been looked at is `unavailable`, never empty.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from html import escape
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from raydex.ir.errors import StoreError
from raydex.ir.locator import Locator
from raydex.jobs.reading import Reader
from raydex.jobs.source_types import SOURCE_TYPES
from raydex.jobs.wording import place_words

ROWS_SHOWN = 100
MEMBERS_SHOWN = 20
TEXT_SHOWN = 300
UNAVAILABLE = "unavailable"
_BASE64 = re.compile(r"[A-Za-z0-9+/=]+\Z")

Row = dict[str, Any]


def content_sections(reader: Reader, ledger: pa.Table) -> str:
    """HTML. A table that a vacuum has taken the old version of is said to be gone; the others are shown."""
    sections: list[tuple[str, Callable[[], str]]] = [
        ("Formats", lambda: formats(reader, ledger)),
        ("Documents", lambda: documents(reader, ledger)),
        ("Attachments and files inside of files", lambda: families(ledger)),
        ("Pages read by OCR", lambda: ocr_pages(reader, ledger)),
        ("Images", lambda: images(reader, ledger)),
        ("Tickets", lambda: tickets(reader, ledger)),
    ]
    out = []
    for title, make in sections:
        try:
            body = make()
        except StoreError as error:
            body = f"<p>Not known: these rows are no longer readable ({escape(error.message)}).</p>"
        if body:
            out.append(f"<h2>{title}</h2>{body}")
    return "".join(out)


def formats(reader: Reader, ledger: pa.Table) -> str:
    """Records of each media type by state, and the blocks that came of them."""
    states: dict[str, Counter[str]] = defaultdict(Counter)
    for row in ledger.group_by(["media_type", "state"]).aggregate([([], "count_all")]).to_pylist():
        states[row["media_type"] or ""][row["state"]] += row["count_all"]
    heads = reader.rows("documents", columns=["media_type", "block_count"]).group_by("media_type").aggregate([("block_count", "sum")])
    blocks = dict(zip(heads.column("media_type").to_pylist(), heads.column("block_count_sum").to_pylist()))
    names = sorted({state for counted in states.values() for state in counted})
    rows = [
        [_text(media_type or "(unknown)"), *(str(counted[name] or "") for name in names), str(blocks.get(media_type) or "")]
        for media_type, counted in sorted(states.items())
    ]
    return _table(["media type", *(f">{name}" for name in names), ">blocks"], rows)


def documents(reader: Reader, ledger: pa.Table) -> str:
    """Whatever is neither code nor an image file, with its pages, slides or sheets."""
    kinds = set(SOURCE_TYPES["document"]) - set(SOURCE_TYPES["image"])
    indexed = pc.is_in(ledger.column("state"), pa.array(["indexed", "degraded"]))
    found = ledger.filter(pc.and_(pc.is_in(ledger.column("media_type"), pa.array(sorted(kinds))), indexed))
    if found.num_rows == 0:
        return ""
    shown = found.sort_by("path").slice(0, ROWS_SHOWN).to_pylist()
    columns = ["record_id", "title", "page_count", "block_count", "text_state", "metadata"]
    heads = reader.by_ids("documents", "record_id", [row["record_id"] for row in shown], columns)
    rows = []
    for row in shown:
        head = heads.get(row["record_id"])
        cells = [_text(head["title"]), _text(_parts(head)), str(head["block_count"]), _text(head["text_state"])] if head else [""] * 4
        rows.append([_code(row["path"]), *cells])
    return _table(["file", "title", "parts", ">blocks", "text"], rows) + _more(found.num_rows, len(shown), "documents")


def _parts(head: Row) -> str:
    """Pages, slides, or the names of sheets."""
    about = orjson.loads(head["metadata"] or "{}")
    sheets, slides = about.get("sheets"), about.get("slides")
    if isinstance(sheets, list):
        names = [f"{one['name']} ({one['state']})" if one["state"] != "visible" else one["name"] for one in sheets]
        return _cut(f"{_count(len(names), 'sheet')}: {', '.join(names)}")
    if isinstance(slides, int):
        return _count(slides, "slide")
    return _count(head["page_count"], "page") if head["page_count"] else ""


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def families(ledger: pa.Table) -> str:
    """Mails with their attachments, archives with their files: each container with its members under it."""
    members = ledger.filter(pc.not_equal(ledger.column("parent_id"), ""))
    if members.num_rows == 0:
        return ""
    holders = ledger.filter(pc.is_in(ledger.column("record_id"), pc.unique(members.column("parent_id"))))
    rows = []
    shown = holders.sort_by("path").slice(0, ROWS_SHOWN).to_pylist()
    for holder in shown:
        rows.append([_code(holder["path"]), _text(holder["media_type"]), _text(holder["state"])])
        found = members.filter(pc.equal(members.column("parent_id"), holder["record_id"])).sort_by("path")
        for member in found.slice(0, MEMBERS_SHOWN).to_pylist():
            name = (member["path"] or "").removeprefix(f"{holder['path']}!/")
            about = member["state"] + (f" ({member['reject_class']})" if member["reject_class"] else "")
            rows.append([f"└ {_code(name)}", _text(member["media_type"]), _text(about)])
        if found.num_rows > MEMBERS_SHOWN:
            rows.append([f"└ … and {found.num_rows - MEMBERS_SHOWN} more", "", ""])
    return _table(["file", "media type", "state"], rows) + _more(holders.num_rows, len(shown), "containers")


def ocr_pages(reader: Reader, ledger: pa.Table) -> str:
    """Pages whose text comes from OCR, or should: what was read, how surely and by what."""
    wanted = pc.field("text_state") != "native"
    pages = reader.rows("pages", columns=["page_id", "record_id", "number", "text_state", "label"], where=wanted)
    if pages.num_rows == 0:
        return ""
    counts = Counter(pages.column("text_state").to_pylist())
    paths, shown = _first(pages, ledger, "number")
    seen = _observations(reader, [row["page_id"] for row in shown])
    rows = []
    for page in shown:
        ocr = seen.get((page["page_id"], "ocr"))
        rows.append([_code(paths.get(page["record_id"])), str(page["number"]), _text(page["text_state"]), *_seen_cells(ocr)])
    head = "<p>" + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) + ".</p>"
    table = _table(["file", ">page", "state", "OCR", ">confidence", "text"], rows)
    return head + table + _more(pages.num_rows, len(shown), "pages")


def images(reader: Reader, ledger: pa.Table) -> str:
    """Image files and images inside of documents: OCR and caption are apart, and say so where nobody looked."""
    columns = ["asset_id", "record_id", "ordinal", "locator", "media_type", "href", "alt", "cas_uri", "width", "height"]
    assets = reader.rows("assets", columns=columns, where=pc.field("kind") == "image")
    if assets.num_rows == 0:
        return ""
    paths, shown = _first(assets, ledger, "ordinal")
    keys = [row["asset_id"] for row in shown]
    seen, pictures = _observations(reader, keys), _thumbnails(reader, keys)
    rows = []
    for asset in shown:
        size = f"{asset['width']}×{asset['height']}" if asset["width"] else ""
        where = place_words(Locator.parse(asset["locator"]).to_json()) if asset["locator"] else ""
        elsewhere = f"{asset['href']} (not fetched)" if asset["href"] and not asset["cas_uri"] else ""
        about = ", ".join(part for part in (asset["media_type"], size, asset["alt"], elsewhere) if part)
        caption = seen.get((asset["asset_id"], "caption"))
        said = _text(caption["text"] if caption and caption["status"] == "ok" else caption["status"] if caption else UNAVAILABLE)
        name = f"{_code(paths.get(asset['record_id']))}<br>{_text(where)}"
        rows.append([pictures.get(asset["asset_id"], ""), name, _text(about), *_seen_cells(seen.get((asset["asset_id"], "ocr"))), said])
    return _table(["", "image", "what", "OCR", ">confidence", "text", "caption"], rows) + _more(assets.num_rows, len(shown), "images")


def _first(rows: pa.Table, ledger: pa.Table, order: str) -> tuple[dict[str, str], list[Row]]:
    """Paths, and the first rows by record: of those that are shown, in the order of their paths."""
    shown = rows.sort_by([("record_id", "ascending"), (order, "ascending")]).slice(0, ROWS_SHOWN).to_pylist()
    paths = _paths(ledger, sorted({row["record_id"] for row in shown}))
    return paths, sorted(shown, key=lambda row: (paths.get(row["record_id"], ""), row[order]))


def _paths(ledger: pa.Table, records: list[str]) -> dict[str, str]:
    found = ledger.filter(pc.is_in(ledger.column("record_id"), pa.array(records, pa.string())))
    return dict(zip(found.column("record_id").to_pylist(), found.column("path").to_pylist()))


def _observations(reader: Reader, subjects: list[str]) -> dict[tuple[str, str], Row]:
    """(asset or page, ocr or caption) → what was seen; of several engines the surest."""
    columns = ["asset_id", "kind", "status", "text", "confidence", "engine", "engine_version"]
    rows = reader.rows("observations", columns=columns, where=pc.field("asset_id").isin(pa.array(subjects, pa.string()))).to_pylist()
    rows.sort(key=lambda row: (row["status"] == "ok", row["confidence"] or 0.0, row["engine"] or ""))
    return {(row["asset_id"], row["kind"]): row for row in rows}


def _seen_cells(row: Row | None) -> list[str]:
    """Status with the engine, confidence, text."""
    if row is None:
        return [UNAVAILABLE, "", ""]
    engine = f"{row['engine'] or ''} {row['engine_version'] or ''}".strip()
    sure = "" if row["confidence"] is None else f"{row['confidence']:.2f}"
    return [_text(f"{row['status']} ({engine})" if engine else row["status"]), sure, _text(_cut(row["text"]))]


def _thumbnails(reader: Reader, assets: list[str]) -> dict[str, str]:
    """Image files carry one in the metadata of their block."""
    where = (pc.field("kind") == "image") & pc.field("asset_ref").isin(pa.array(assets, pa.string()))
    rows = reader.rows("blocks", columns=["asset_ref", "metadata"], where=where).to_pylist()
    out = {}
    for row in rows:
        about = orjson.loads(row["metadata"] or "{}")
        data, kind = about.get("thumbnail"), about.get("thumbnail_media_type")
        if isinstance(data, str) and _BASE64.match(data) and kind in ("image/jpeg", "image/png"):
            out[row["asset_ref"]] = f"<img alt='' src='data:{kind};base64,{data}'>"
    return out


def tickets(reader: Reader, ledger: pa.Table) -> str:
    """Tickets with what their sections hold."""
    found = reader.rows("issues", columns=["record_id", "site", "key"])
    if found.num_rows == 0:
        return ""
    kept = found.sort_by([("site", "ascending"), ("key", "ascending")]).slice(0, ROWS_SHOWN).column("record_id").to_pylist()
    rows, paths = reader.by_ids("issues", "record_id", kept), _paths(ledger, kept)
    shown = [rows[record] for record in kept]
    return "".join(_ticket(row, paths.get(row["record_id"], "")) for row in shown) + _more(found.num_rows, len(shown), "tickets")


def _ticket(row: Row, path: str) -> str:
    fields = orjson.loads(row["metadata"] or "{}")
    about = ", ".join(f"{name}: {', '.join(map(str, v)) if isinstance(v, list) else v}" for name, v in fields.items())
    sections = [
        ("Description", row["description"]),
        ("Fields", about),
        ("Comments", _joined(f"{item['author']}: {item['text']}" for item in row["comments"] or ())),
        (
            "Changelog",
            _joined(
                f"{item['field']}: {item['from_value'] or '(empty)'} → {item['to_value'] or '(empty)'}" for item in row["changelog"] or ()
            ),
        ),
        ("Worklogs", _joined(f"{item['author']}: {item['seconds']} s {item['text']}".strip() for item in row["worklogs"] or ())),
        ("Remote links", _joined(f"{item['relation']} {item['title'] or item['href']}".strip() for item in row["remote_links"] or ())),
    ]
    rows = [[_text(name), _text(_cut(text))] for name, text in sections if text]
    head = f"<h3>{_text(row['key'])} {_text(row['summary'])}</h3><p class=sub>{_code(path)}</p>"
    return head + _table(["section", "text"], rows)


def _joined(parts: Iterable[str]) -> str:
    items = list(parts)
    return f"{len(items)}: " + "; ".join(items) if items else ""


def _table(columns: list[str], rows: list[list[str]]) -> str:
    """Cells are HTML; a column whose name begins with > holds numbers."""
    marks = [" class=n" if name.startswith(">") else "" for name in columns]
    head = "".join(f"<th{mark}>{_text(name.lstrip('>'))}" for name, mark in zip(columns, marks))
    body = "".join("<tr>" + "".join(f"<td{mark}>{cell}" for cell, mark in zip(row, marks)) for row in rows)
    return f"<table><tr>{head}{body}</table>"


def _more(count: int, shown: int, name: str) -> str:
    return f"<p>… and {count - shown} more {name}.</p>" if count > shown else ""


def _cut(text: str | None) -> str:
    text = " ".join((text or "")[: 4 * TEXT_SHOWN].split())
    return text if len(text) <= TEXT_SHOWN else text[:TEXT_SHOWN].rstrip() + "…"


def _text(value: Any) -> str:
    return escape("" if value is None else str(value))


def _code(value: Any) -> str:
    return f"<code>{_text(value)}</code>"
