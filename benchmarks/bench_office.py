"""DOCX, PPTX, XLSX → IR: docs/s of ours beside docling's DocumentConverter, in one process on one core; ODT, ODP, ODS beside a bare reader.

    python benchmarks/bench_office.py [FOLDER] [--rounds N] [--no-docling]

Measured over generated files and those below FOLDER (../shared/corpora/docs where it is there). The contestants take turns file by file and
the median of the rounds counts, as CPU time; docling's converter is warm and runs in fewer rounds since it is slow. For OpenDocument
docling wants a package that is not among its own requirements, so that the peer there is unzipping and lxml's parse of content.xml alone.
"""

from __future__ import annotations

import argparse
import io
import logging
import zipfile
from pathlib import Path

from contest import Run, contest, found, parse_ours, show, totals
from office_files import make_docx, make_odp, make_ods, make_odt, make_pptx, make_xlsx
from verdict import verdict

DOCS = Path(__file__).parents[2] / "shared" / "corpora" / "docs"
REACH = 3


def make_docling() -> Run:
    from docling.datamodel.base_models import ConversionStatus, DocumentStream, InputFormat
    from docling.document_converter import DocumentConverter

    logging.getLogger("docling").setLevel(logging.CRITICAL)
    converter = DocumentConverter(allowed_formats=[InputFormat.DOCX, InputFormat.PPTX, InputFormat.XLSX])

    def run(name: str, data: bytes) -> bool:
        stream = DocumentStream(name=Path(name).name, stream=io.BytesIO(data))
        return converter.convert(stream, raises_on_error=False).status == ConversionStatus.SUCCESS

    return run


def read_bare(name: str, data: bytes) -> bool:
    from lxml import etree

    with zipfile.ZipFile(io.BytesIO(data)) as package:
        etree.fromstring(package.read("content.xml"), etree.XMLParser(resolve_entities=False, no_network=True))
    return True


def files_of(kind: str, folder: Path | None, size: int) -> dict[str, bytes]:
    made = {
        "docx": lambda: make_docx(size),
        "pptx": lambda: make_pptx(max(1, size // 2)),
        "xlsx": lambda: make_xlsx(2, size * 5),
        "odt": lambda: make_odt(size),
        "odp": lambda: make_odp(size),
        "ods": lambda: make_ods(2, size * 5),
    }
    return {f"generated.{kind}": made[kind](), **found(folder, f".{kind}")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DOCS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--size", type=int, default=40, help="sections, slides, tens of rows of a generated file")
    parser.add_argument("--no-docling", action="store_true")
    options = parser.parse_args()
    docling = None if options.no_docling else make_docling()
    for kind in ("docx", "pptx", "xlsx"):
        contestants = {"ours": (parse_ours, options.rounds), **({"docling": (docling, 3)} if docling is not None else {})}
        kept = contest(files_of(kind, options.folder, options.size), options.rounds, contestants)
        show(kept)
        whole = totals(kept)
        if "docling" in whole:
            verdict(f"{kind.upper()}: docs/s ÷ docling", whole["docling"] / whole["ours"], REACH)
    for kind in ("odt", "odp", "ods"):
        kept = contest(
            files_of(kind, options.folder, options.size),
            options.rounds,
            {"ours": (parse_ours, options.rounds), "bare XML": (read_bare, options.rounds)},
        )
        show(kept)
        verdict(f"{kind.upper()}: docs/s of generated files", len(kept) / totals(kept)["ours"], None)


if __name__ == "__main__":
    main()
