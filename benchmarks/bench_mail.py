"""Mails → IR: mails/s of ours beside docling and the bare readers of the formats, in one process on one core.

    python benchmarks/bench_mail.py [FOLDER] [--mails N] [--rounds N] [--no-docling]

EML: generated mails (plain, plain with HTML and an attachment, a long thread with quotes) and those below FOLDER (../shared/corpora/docs),
beside the standard library's parser with all bodies and attachments decoded (`email`, policy default), and docling's e-mail reader. MSG:
those below FOLDER, beside olefile with every stream read, and docling. The bare readers make no blocks, no addresses, no quotes.
"""

from __future__ import annotations

import argparse
import io
import logging
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path

from contest import Run, contest, found, parse_ours, show, totals
from office_files import SENTENCE
from verdict import verdict

DOCS = Path(__file__).parents[2] / "shared" / "corpora" / "docs"


def make_mail(seed: int) -> bytes:
    mail = EmailMessage()
    mail["From"] = f"Ada Example <ada{seed}@example.com>"
    mail["To"] = ", ".join(f"Person {at} <p{at}@example.com>" for at in range(1 + seed % 5))
    mail["Subject"] = f"Pump {seed} stalls – again"
    mail["Date"] = "Mon, 02 Mar 2026 10:00:00 +0000"
    mail["Message-ID"] = f"<{seed}@example.com>"
    mail["References"] = " ".join(f"<{seed}.{at}@example.com>" for at in range(seed % 4))
    quoted = "".join(f"> {SENTENCE}\n" for _ in range(8)) if seed % 3 == 2 else ""
    text = "\n\n".join([SENTENCE * 3] * 4) + f"\n\nOn Monday Bo wrote:\n{quoted}\n-- \nAda Example\nEngineer\n"
    mail.set_content(text)
    if seed % 3 == 1:
        rows = "".join(f"<tr><td>{row}</td><td>{SENTENCE}</td></tr>" for row in range(6))
        mail.add_alternative(f"<html><body><p>{SENTENCE * 3}</p><table>{rows}</table></body></html>", subtype="html")
        mail.add_attachment(SENTENCE.encode() * 200, maintype="application", subtype="octet-stream", filename="log.bin")
    return mail.as_bytes()


def read_email(name: str, data: bytes) -> bool:
    message = BytesParser(policy=policy.default).parsebytes(data)
    for header in ("from", "to", "cc", "subject", "date", "message-id"):
        str(message.get(header))
    for part in message.walk():
        if not part.is_multipart():
            part.get_content() if part.get_content_maintype() == "text" else part.get_payload(decode=True)
    return True


def read_ole(name: str, data: bytes) -> bool:
    import olefile

    with olefile.OleFileIO(io.BytesIO(data)) as file:
        for path in file.listdir():
            file.openstream(path).read()
    return True


def make_docling() -> Run:
    from docling.datamodel.base_models import ConversionStatus, DocumentStream, InputFormat
    from docling.document_converter import DocumentConverter

    logging.getLogger("docling").setLevel(logging.CRITICAL)
    converter = DocumentConverter(allowed_formats=[InputFormat.EMAIL])

    def run(name: str, data: bytes) -> bool:
        stream = DocumentStream(name=Path(name).name, stream=io.BytesIO(data))
        return converter.convert(stream, raises_on_error=False).status == ConversionStatus.SUCCESS

    return run


def measure(label: str, files: dict[str, bytes], rounds: int, bare: tuple[str, Run], docling: Run | None) -> None:
    contestants = {"ours": (parse_ours, rounds), bare[0]: (bare[1], rounds)}
    if docling is not None:
        contestants["docling"] = (docling, 2)
    kept = contest(files, rounds, contestants)
    if not kept:
        print(f"{label}: there are no files to measure")
        return
    whole = totals(kept)
    if len(kept) <= 20:
        show(kept, "mails")
    else:
        print(f"{label}: {len(kept)} mails, " + ", ".join(f"{who} {len(kept) / value:,.0f}/s" for who, value in whole.items()))
    verdict(f"{label}: mails/s ÷ {bare[0]}", whole[bare[0]] / whole["ours"], 0.5, "blocks, quotes, signatures and addresses are made too")
    if "docling" in whole:
        verdict(f"{label}: mails/s ÷ docling", whole["docling"] / whole["ours"], 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DOCS)
    parser.add_argument("--mails", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-docling", action="store_true")
    options = parser.parse_args()
    docling = None if options.no_docling else make_docling()
    bare = ("email module", read_email)
    measure("EML, generated", {f"{seed}.eml": make_mail(seed) for seed in range(options.mails)}, options.rounds, bare, docling)
    measure("EML, of the folder", found(options.folder, ".eml"), options.rounds, bare, docling)
    measure("MSG, of the folder", found(options.folder, ".msg"), options.rounds, ("olefile", read_ole), docling)


if __name__ == "__main__":
    main()
