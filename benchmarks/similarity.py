"""Text of our IR beside docling's and beside the corpus's truths: one table a format, and every difference below 0.95 by name.

    python benchmarks/similarity.py [FOLDER] [--no-docling] [--show FILE]

FOLDER holds documents and `truth/` as ../shared/corpora/docs does. Both texts are cut into runs of letters and digits (NFKC); `order` is
2 × matched ÷ (ours + truth) over the matching runs of an alignment, `words` the same over the bags, whatever the order. A truth that holds
only facts is no whole text: there it is the share of the truth that is matched. docling runs without network: its simple pipelines, and
NativePdfPipeline for PDF; what it cannot read so is 0. `--show` prints where one file differs. docs/similarity.md explains the table.
"""

from __future__ import annotations

import argparse
import io
import logging
import re
import statistics
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any

from truths import Truth, docling_text, read_truths
from verdict import verdict

from raydex.ir.ids import content_hash
from raydex.ir.parsed import ParsedFile
from raydex.kernels.detect import detect_media_type
from raydex.kernels.layout import load_layout_engine
from raydex.kernels.ocr import OcrPage, load_ocr_engine
from raydex.kernels.ocr_blocks import Reading, add_ocr, numbers_to_read
from raydex.kernels.parse import parse
from raydex.kernels.pixels import pixels_of
from raydex.kernels.request import ParseRequest

ENOUGH = 0.95
DOCS = Path(__file__).parents[2] / "shared" / "corpora" / "docs"
_TOKEN = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Score:
    order: float
    words: float


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(unicodedata.normalize("NFKC", text))


def compare(text: str, truth: str, whole: bool = True) -> Score:
    """1.0 for two empty texts; `whole` False counts against the truth alone."""
    left, right = tokens(text), tokens(truth)
    size = len(left) + len(right) if whole else 2 * len(right)
    if not size:
        return Score(1.0, 1.0)
    matched = sum(block.size for block in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks())
    return Score(2 * matched / size, 2 * sum((Counter(left) & Counter(right)).values()) / size)


def score(text: str, truth: Truth) -> Score:
    """Beside the truth, or the form in its place that is nearer."""
    forms = [truth.text, *([truth.other] if truth.other else [])]
    return max((compare(text, form, truth.kind != "facts") for form in forms), key=lambda found: found.order)


def our_text(path: Path) -> str:
    """Title of a mail, blocks, and the same of its members; pages without text are read by OCR."""
    data = path.read_bytes()
    return "\n".join(_texts(path.name, data, detect_media_type(data[:8192], path.name), 0))


def _texts(name: str, data: bytes, media_type: str, nesting: int) -> list[str]:
    request = ParseRequest("rec_bench", content_hash(data), name, media_type, data, nesting=nesting)
    parsed = parse(request)
    _read_images(parsed, data, request)
    mail = media_type in ("message/rfc822", "application/vnd.ms-outlook")
    out = [parsed.document.title] if mail and parsed.document is not None else []
    if parsed.document is not None:
        out += parsed.document.metadata.get("columns", [])  # a CSV file's header is no record
    out += [block.text for block in parsed.blocks]
    for member in parsed.members:
        if not member.reject_class:
            out += _texts(member.name, member.data, member.media_type, nesting + 1)
    return out


def _read_images(parsed: ParsedFile, data: bytes, request: ParseRequest) -> None:
    if parsed.document is None or not (parsed.media_type == "application/pdf" or parsed.media_type.startswith("image/")):
        return
    readings = []
    for place, pixels in pixels_of(data, parsed.media_type, numbers_to_read(parsed), request.limits):
        if pixels is None:
            readings.append(Reading(place, OcrPage(0, 0)))
        else:
            layout, engine = _engines()
            readings.append(Reading(place, engine.read([pixels])[0], layout.find([pixels])[0]))
    if readings:
        add_ocr(parsed, readings, _engines()[1], request.limits)


@lru_cache(maxsize=1)
def _engines() -> tuple[Any, Any]:
    return load_layout_engine(), load_ocr_engine()


def make_docling() -> Callable[[Path], str]:
    from docling.datamodel.base_models import DocumentStream, InputFormat
    from docling.document_converter import DocumentConverter, NativePdfFormatOption

    logging.getLogger("docling").setLevel(logging.CRITICAL)
    kinds = [getattr(InputFormat, name) for name in ("PDF", "DOCX", "PPTX", "XLSX", "HTML", "MD", "CSV", "EMAIL")]
    converter = DocumentConverter(allowed_formats=kinds, format_options={InputFormat.PDF: NativePdfFormatOption()})

    def run(path: Path) -> str:
        result = converter.convert(DocumentStream(name=path.name, stream=io.BytesIO(path.read_bytes())), raises_on_error=False)
        return docling_text(result.document) if result.document is not None else ""

    return run


@dataclass
class Row:
    truth: Truth
    ours: Score
    docling: Score | None


def measure(folder: Path, docling: Callable[[Path], str] | None) -> list[Row]:
    ours: dict[str, str] = {}
    theirs: dict[str, str] = {}
    rows = []
    for truth in read_truths(folder):
        if truth.path not in ours:
            ours[truth.path] = our_text(folder / truth.path)
            if docling is not None:
                theirs[truth.path] = docling(folder / truth.path)
        rival = score(theirs[truth.path], truth) if docling is not None else None
        rows.append(Row(truth, score(ours[truth.path], truth), rival))
    return rows


def report(rows: list[Row]) -> None:
    print("| format | truth | files | ours: order | words | docling here: order | words |\n|---|---|--:|--:|--:|--:|--:|")
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.truth.path.partition("/")[0], row.truth.kind].append(row)
    for (kind, truth), group in sorted(groups.items()):
        rivals = [row.docling for row in group if row.docling is not None]
        theirs = f"{_mean([score.order for score in rivals])} | {_mean([score.words for score in rivals])}" if rivals else "- | -"
        ours = f"{_mean([row.ours.order for row in group])} | {_mean([row.ours.words for row in group])}"
        print(f"| {kind} | {truth} | {len(group)} | {ours} | {theirs} |")
    print("\nbelow what is asked for:")
    for row in rows:
        if lacks(row):
            rival = f"{row.docling.order:.3f}" if row.docling is not None else "-"
            print(
                f"  {row.truth.path:<42} {row.truth.kind:<9} ours {row.ours.order:.3f} (words {row.ours.words:.3f}), docling here {rival}"
            )


def lacks(row: Row) -> bool:
    """Below docling where the truth is independent, below `ENOUGH` beside docling's accepted result."""
    if row.truth.kind == "accepted":
        return row.ours.order < ENOUGH
    return row.docling is not None and row.ours.order < row.docling.order


def _mean(values: list[float]) -> str:
    return f"{statistics.mean(values):.3f}"


def show(folder: Path, name: str) -> None:
    """Where our text of a file differs from its truths, as a person reads a diff."""
    text = tokens(our_text(folder / name))
    for truth in read_truths(folder):
        if truth.path == name:
            wanted = tokens(truth.text)
            print(f"{name} beside {truth.kind}: {score(' '.join(text), truth)}")
            for tag, a, b, c, d in SequenceMatcher(None, text, wanted, autojunk=False).get_opcodes():
                if tag != "equal":
                    print(f"  ours {' '.join(text[a:b])[:400]!r}\n truth {' '.join(wanted[c:d])[:400]!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DOCS)
    parser.add_argument("--no-docling", action="store_true")
    parser.add_argument("--show", action="append", default=[])
    options = parser.parse_args()
    if not (options.folder / "truth" / "facts.json").is_file():
        print(f"no documents with truths at {options.folder}: nothing to compare")
        return
    for name in options.show:
        show(options.folder, name)
    if options.show:
        return
    rows = measure(options.folder, None if options.no_docling else make_docling())
    report(rows)
    accepted = [row for row in rows if row.truth.kind == "accepted"]
    independent = [row for row in rows if row.truth.kind != "accepted" and row.docling is not None]
    near = sum(row.ours.order >= ENOUGH for row in accepted)
    why = "docs/similarity.md explains each of the others"
    verdict(f"similarity: share of files at {ENOUGH} of docling's accepted text", near / max(1, len(accepted)), 1.0, why)
    if independent:
        ahead = sum(not lacks(row) for row in independent)
        verdict("similarity: share of files with own truth at docling's or above", ahead / len(independent), 1.0, why)


if __name__ == "__main__":
    main()
