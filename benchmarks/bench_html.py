"""HTML → IR: pages/s and MB/s of ours beside docling's DocumentConverter, in one process on one core.

    python benchmarks/bench_html.py [FOLDER] [--pages N] [--rounds N] [--no-docling]

Measured over generated pages (an article, a reference page with code, a page of tables) and up to N pages below FOLDER. The contestants
take turns page by page and the median of the rounds counts, as CPU time; a page that docling refuses is left out of both sides and counted.
"""

from __future__ import annotations

import argparse
import io
import logging
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from verdict import verdict

from raydex.ir.ids import content_hash
from raydex.kernels.parse import parse
from raydex.kernels.request import ParseRequest

SENTENCE = "The valve releases pressure while engineers note what was measured, where and by which instrument. "


def make_article(sections: int) -> str:
    """Headings, paragraphs with inline markup, nested lists, links."""
    parts = ["<!doctype html><html><head><title>Article</title></head><body><nav><ul><li>menu</li></ul></nav><main><h1>Article</h1>"]
    for at in range(sections):
        parts.append(f'<h2 id="s{at}">Section {at}</h2><p>{SENTENCE * 4}<em>See</em> <a href="#s{at}">here</a>.</p>')
        parts.append(f"<ul><li>{SENTENCE}<ol><li>first {at}</li><li>second {at}</li></ol></li><li><p>{SENTENCE}</p></li></ul>")
    return "".join(parts) + "</main><footer>end</footer></body></html>"


def make_reference(functions: int) -> str:
    """Definition lists with highlighted code, as documentation generators write them."""
    parts = ['<!doctype html><html><head><title>Reference</title></head><body><div class="document" role="main"><h1>Reference</h1>']
    for at in range(functions):
        code = "".join(f'<span class="k">def</span> <span class="nf">f{at}_{n}</span>(x):\n    return x &lt; {n}\n' for n in range(4))
        parts.append(f"<h3>f{at}</h3><dl><dt>f{at}(<em>x</em>)</dt><dd><p>{SENTENCE}</p></dd></dl>")
        parts.append(f'<div class="highlight-python"><div class="highlight"><pre>{code}</pre></div></div>')
    return "".join(parts) + "</div></body></html>"


def make_tables(tables: int) -> str:
    """Tables of twelve rows and six columns, some cells spanning."""
    parts = ["<!doctype html><html><head><title>Tables</title></head><body><h1>Tables</h1>"]
    for at in range(tables):
        head = "".join(f"<th>column {n}</th>" for n in range(6))
        rows = "".join(
            "<tr>" + f'<td colspan="2">row {row}</td>' + "".join(f"<td>{at}.{row}.{n}</td>" for n in range(4)) + "</tr>"
            for row in range(12)
        )
        parts.append(f"<h2>Table {at}</h2><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    return "".join(parts) + "</body></html>"


def collect(folder: Path | None, count: int) -> list[tuple[str, bytes]]:
    pages = [("article", make_article(40).encode()), ("reference", make_reference(40).encode()), ("tables", make_tables(20).encode())]
    if folder is not None:
        found = sorted(path for path in folder.rglob("*.htm*") if path.is_file() and 0 < path.stat().st_size < 2_000_000)
        step = max(1, len(found) // count)
        pages += [(str(path.relative_to(folder)), path.read_bytes()) for path in found[::step][:count]]
    return pages


def parse_ours(name: str, data: bytes) -> bool:
    return parse(ParseRequest("rec_bench", content_hash(data), name, "text/html", data)).document is not None


def make_docling() -> Callable[[str, bytes], bool]:
    """docling's conversion of a page in memory; False where it refuses one."""
    from docling.datamodel.base_models import ConversionStatus, InputFormat
    from docling.document_converter import DocumentConverter
    from docling_core.types.io import DocumentStream

    logging.getLogger("docling").setLevel(logging.CRITICAL)
    converter = DocumentConverter(allowed_formats=[InputFormat.HTML])

    def convert(name: str, data: bytes) -> bool:
        stream = DocumentStream(name=Path(name).stem + ".html", stream=io.BytesIO(data))
        return converter.convert(stream, raises_on_error=False).status == ConversionStatus.SUCCESS

    return convert


def timed(work: Callable[[str, bytes], bool], name: str, data: bytes) -> tuple[float, bool]:
    start = time.process_time()
    done = work(name, data)
    return time.process_time() - start, done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-docling", action="store_true")
    options = parser.parse_args()
    pages = collect(options.folder, options.pages)
    contestants: dict[str, Callable[[str, bytes], bool]] = {"raydex": parse_ours}
    if not options.no_docling:
        contestants["docling"] = make_docling()
    for work in contestants.values():
        work(*pages[0])
    refused = dict.fromkeys(contestants, 0)
    kept: list[tuple[int, dict[str, float]]] = []
    for name, data in pages:
        seconds: dict[str, list[float]] = {who: [] for who in contestants}
        accepted = True
        for _ in range(options.rounds):
            for who, work in contestants.items():
                spent, done = timed(work, name, data)
                seconds[who].append(spent)
                if not done:
                    refused[who] += 1
                    accepted = False
            if not accepted:
                break
        if accepted:
            kept.append((len(data), {who: statistics.median(times) for who, times in seconds.items()}))
    size = sum(length for length, _ in kept)
    print(f"{len(kept)} of {len(pages)} pages, {size / 1e6:.2f} MB, {options.rounds} rounds, Python {sys.version.split()[0]}")
    totals = {who: sum(times[who] for _, times in kept) for who in contestants}
    for who, total in totals.items():
        print(f"{who:8} {len(kept) / total:9.1f} pages/s {size / total / 1e6:8.3f} MB/s   refused {refused[who]}")
    if "docling" in totals:
        ratios = [times["docling"] / times["raydex"] for _, times in kept]
        total = totals["docling"] / totals["raydex"]
        print(f"raydex / docling: {total:.1f}x over all bytes, {statistics.median(ratios):.1f}x median page, {min(ratios):.1f}x worst page")
        why = "tags are cut and walked in Python, since no library at hand tells where in the source an element stands"
        verdict("HTML: bytes/s ÷ docling", total, 10, why)


if __name__ == "__main__":
    main()
