"""PDF with native text → IR: pages/s of ours beside bare pypdfium2 text and docling's native pipeline, in one process on one core.

    python benchmarks/bench_pdf.py [FOLDER] [--rounds N] [--no-docling]

Measured over generated PDFs (a report, a two-column paper, a table of figures) and the PDFs below FOLDER. The contestants take turns, and
the median of the rounds counts, as CPU time; docling runs in fewer rounds since it is slow. docling's standard pipeline needs model
weights from a hub and is NOT run: the ratio is against its native-text pipeline, which has no layout model.
"""

from __future__ import annotations

import argparse
import io
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from verdict import verdict

from raydex.ir.ids import content_hash
from raydex.kernels.parse import parse
from raydex.kernels.request import ParseRequest

WORDS = re.findall(
    r"\w+",
    "the index keeps evidence for every block and the reader follows it back to a page with its box so that a claim can be checked by "
    "hand while pressure valves release heat under load and engineers note what was measured where and when and by which instrument",
)


def prose(seed: int, count: int) -> str:
    """Deterministic running text of `count` words in sentences."""
    state = seed * 2654435761 % 2**32
    words = []
    for at in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        word = WORDS[state >> 16 & 63 if (state >> 16 & 63) < len(WORDS) else (state >> 8) % len(WORDS)]
        words.append(word.capitalize() if at % 14 == 0 else word + ("." if at % 14 == 13 else ""))
    return " ".join(words)


def make_report(pages: int) -> bytes:
    """Headings, paragraphs, lists, running header and footer."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import ListFlowable, Paragraph, SimpleDocTemplate

    styles = getSampleStyleSheet()
    story = []
    for section in range(pages * 2):
        story.append(Paragraph(f"{section + 1}. Section about item {section + 1}", styles["Heading2" if section % 4 else "Heading1"]))
        story += [Paragraph(prose(section * 7 + part, 90), styles["BodyText"]) for part in range(2)]
        story.append(
            ListFlowable([Paragraph(prose(section * 11 + item, 12), styles["BodyText"]) for item in range(3)], bulletType="bullet")
        )
    out = io.BytesIO()

    def decorate(canvas, document) -> None:  # type: ignore[no-untyped-def]
        canvas.setFont("Helvetica", 8)
        canvas.drawString(72, 800, "Report on generated evidence")
        canvas.drawString(72, 30, f"Page {document.page}")

    SimpleDocTemplate(out, title="Generated report").build(story, onFirstPage=decorate, onLaterPages=decorate)
    return out.getvalue()


def make_columns(pages: int) -> bytes:
    """Two columns of 9-point text, a title across."""
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.utils import simpleSplit
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    for page in range(pages):
        canvas.setFont("Helvetica-Bold", 16)
        canvas.drawString(50, 790, f"A paper in two columns, part {page + 1}")
        canvas.setFont("Times-Roman", 9)
        for column in range(2):
            for row, line in enumerate(simpleSplit(prose(page * 2 + column, 560), "Times-Roman", 9, 240)[:64]):
                canvas.drawString(50 + 258 * column, 760 - 11 * row, line)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def make_table(pages: int) -> bytes:
    """Forty rows of five cells a page."""
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    for page in range(pages):
        canvas.setFont("Helvetica-Bold", 9)
        for column, head in enumerate(("Item", "Place", "Measured", "Limit", "State")):
            canvas.drawString(50 + 100 * column, 780, head)
        canvas.setFont("Helvetica", 9)
        for row in range(40):
            for column in range(5):
                canvas.drawString(50 + 100 * column, 760 - 17 * row, f"{'ABCDE'[column]}-{page * 40 + row}")
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def run_ours(name: str, data: bytes) -> int:
    parsed = parse(ParseRequest("rec_bench", content_hash(data), name, "application/pdf", data))
    if parsed.document is None:
        return 0
    return parsed.document.page_count


def run_bare(name: str, data: bytes) -> int:
    import pypdfium2

    document = pypdfium2.PdfDocument(data)
    try:
        for page in document:
            text = page.get_textpage()
            text.get_text_range()
            text.close()
            page.close()
        return len(document)
    finally:
        document.close()


def make_docling() -> Callable[[str, bytes], int]:
    from docling.datamodel.base_models import DocumentStream, InputFormat
    from docling.document_converter import DocumentConverter, NativePdfFormatOption

    converter = DocumentConverter(allowed_formats=[InputFormat.PDF], format_options={InputFormat.PDF: NativePdfFormatOption()})

    def run(name: str, data: bytes) -> int:
        return len(converter.convert(DocumentStream(name=name, stream=io.BytesIO(data)), raises_on_error=False).document.pages)

    return run


def measure(files: dict[str, bytes], rounds: int, rivals: dict[str, tuple[Callable[[str, bytes], int], int]]) -> None:
    """`rivals` maps a name to (function, rounds it takes part in)."""
    totals = dict.fromkeys(rivals, 0.0)
    pages_in_all = 0
    print(f"{'file':<36}{'pages':>6}" + "".join(f"{name + ' p/s':>15}" for name in rivals) + f"{'ours/bare':>11}{'ours/docling':>14}")
    for name, data in files.items():
        times: dict[str, list[float]] = {rival: [] for rival in rivals}
        pages = 0
        for turn in range(-1, rounds):
            for rival, (run, most) in rivals.items():
                if turn >= most:
                    continue
                start = time.process_time()
                count = run(name, data)
                if turn >= 0:
                    times[rival].append(time.process_time() - start)
                if rival == "ours":
                    pages = count
        if not pages:
            print(f"{name[-35:]:<36}     - rejected")
            continue
        middle = {rival: statistics.median(values) for rival, values in times.items()}
        pages_in_all += pages
        for rival, value in middle.items():
            totals[rival] += value
        print(line(name[-35:], pages, middle))
    print(line("all", pages_in_all, totals))
    why = "ours also reads a box for every text object and a font for every line, and structures all pages in Python"
    verdict("PDF: pages/s ÷ bare pypdfium2", totals["bare"] / totals["ours"], 0.5, why)
    if "docling" in rivals:
        verdict("PDF: pages/s ÷ docling's NativePdfPipeline", totals["docling"] / totals["ours"], 3)


def line(name: str, pages: int, seconds: dict[str, float]) -> str:
    rates = "".join(f"{pages / value:>15.1f}" for value in seconds.values())
    docling = f"{seconds['docling'] / seconds['ours']:>14.1f}" if "docling" in seconds else f"{'-':>14}"
    return f"{name:<36}{pages:>6}{rates}{seconds['bare'] / seconds['ours']:>11.2f}{docling}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--pages", type=int, default=30)
    parser.add_argument("--no-docling", action="store_true")
    options = parser.parse_args()
    files = {
        "generated report": make_report(options.pages),
        "generated columns": make_columns(options.pages),
        "generated table": make_table(options.pages),
    }
    if options.folder:
        files.update({str(path.relative_to(options.folder)): path.read_bytes() for path in sorted(options.folder.rglob("*.pdf"))})
    rivals: dict[str, tuple[Callable[[str, bytes], int], int]] = {"ours": (run_ours, options.rounds), "bare": (run_bare, options.rounds)}
    if not options.no_docling:
        rivals["docling"] = (make_docling(), 2)
    measure(files, options.rounds, rivals)
    print("CPU seconds, median of the rounds. docling = its NativePdfPipeline; its standard pipeline wants weights from a hub: not run.")


if __name__ == "__main__":
    main()
