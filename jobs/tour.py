"""The quickstart: index the example corpus, ask it a question, follow the path from the answer, prove the lake, write the report."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Any

from raydex.ir.errors import RaydexError

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "examples" / "corpus"
QUESTION = "How long is a reserved bike kept, and what lets it go?"
# what stands in a scanned page, a deck, a sheet, an attachment of a mail and a ticket
ELSEWHERE = (
    "How many newton metres do the two latch screws take?",
    "What went well in the season of 2031, and what did riders complain about?",
    "How many kilometres did the vans drive in week 41?",
    "What does a latch assembly of type NL-4 cost?",
    "Why does the countdown jump back after a hold was lengthened?",
)
# the page and the function that answer it, then what a request does on its way to the event log
PATHS = (("docs/design/reservations.html#When a hold ends", "release_expired"), ("post_reservation", "record_event"))


def main() -> None:
    lake = Path(sys.argv[1] if len(sys.argv) > 1 else "lake")
    try:
        sys.exit(tour(lake))
    except RaydexError as error:
        sys.stderr.write(f"raydex: {error}\n")
        sys.exit(error.exit_code)


def tour(lake: Path) -> int:
    """Exit code 0 when the lake proves itself."""
    from raydex.configs.settings import load_settings
    from raydex.jobs.index import IndexRequest, index
    from raydex.jobs.paths import find_path
    from raydex.jobs.render import print_hits, print_path, print_summary, print_verdict
    from raydex.jobs.report import write_report
    from raydex.jobs.search import search
    from raydex.jobs.verify import verify

    started = time.perf_counter()
    settings = load_settings(ROOT / "configs" / "quickstart.yaml")
    _step(f"raydex index {_short(CORPUS)} --name velodock --lake {_short(lake)} -c configs/quickstart.yaml")
    print_summary(index(IndexRequest(specs=(str(CORPUS),), lake=str(lake), settings=settings, name="velodock", say=_say)))
    _step(f'raydex search "{QUESTION}" --lake {_short(lake)} -k 5')
    print_hits(search(lake, QUESTION, 5))
    for question in ELSEWHERE:
        _step(f'raydex search "{question}" --lake {_short(lake)} -k 1')
        print_hits(search(lake, question, 1))
    for source, target in PATHS:
        _step(f"raydex path {shlex.quote(source)} {target} -k 1 --lake {_short(lake)}")
        print_path(find_path(lake, source, target, 8, 1))
    _step(f"raydex verify --lake {_short(lake)}")
    verdict: dict[str, Any] = verify(lake)
    print_verdict(verdict)
    _step(f"raydex report --lake {_short(lake)}")
    _say(f"report: {write_report(lake, None, None)}")
    _say(f"\nDone in {time.perf_counter() - started:.0f} s. Next: .venv/bin/raydex --help, or index a folder of yours.")
    return 0 if verdict["ok"] else 3


def _step(command: str) -> None:
    sys.stdout.flush()
    _say(f"\n$ {command}")


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _short(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


if __name__ == "__main__":
    main()
