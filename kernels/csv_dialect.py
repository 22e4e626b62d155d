"""A sample of delimited text → its delimiter, quoting, the lines above its table, and whether the first record names the columns.

A delimiter is believed when the records agree on how many fields it makes of them: a comma inside a cell, or a list in brackets, makes
another number in every record. Text that no delimiter divides evenly has one column; that is no failure. A title above the table is none of
its records, and neither is the line `sep=;` by which spreadsheet programs name the delimiter.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass, replace

from raydex.ir.locator import split_lines

DELIMITERS = (",", "\t", ";", "|")
SAMPLE_CHARS = 65_536
SAMPLE_RECORDS = 500
AGREE = 0.8  # share of records that must have the commonest number of fields
_DIVIDING = DELIMITERS[1:]  # what no title holds: a comma may be part of one
TITLE_LINES = 10  # above a table, at most
_NAMED = re.compile(r"sep=([^\s\w\"'])\s*\Z", re.IGNORECASE)
_NUMBER = re.compile(r"\s*[-+]?[$€£]?\s*(?:\d+(?:[.,' ]\d+)*|\d*\.\d+)(?:[eE][-+]?\d+)?\s*%?\s*\Z")
_DATE = re.compile(r"\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ]\d{1,2}:\d{2}.*)?\s*\Z")
_ESCAPED_QUOTE = re.compile(r'\\"')


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """`delimiter` is empty for a single column. `escaped`: a quote inside a field has a backslash before it instead of a second quote.
    `plain`: quotes are characters like others. `above`: lines before the table; the first one is no text where `named` is set."""

    delimiter: str
    escaped: bool = False
    has_header: bool = True
    plain: bool = False
    above: int = 0
    named: bool = False

    def reader_options(self) -> dict[str, object]:
        """Arguments of `csv.reader`. A single column is read with a delimiter that no text holds."""
        options: dict[str, object] = {"delimiter": self.delimiter or "\x1f", "quotechar": '"', "doublequote": not self.escaped}
        if self.plain:
            options["quoting"] = csv.QUOTE_NONE
        return {**options, "escapechar": "\\"} if self.escaped else options


def is_open(dialect: CsvDialect, text: str, start: int = 0, stop: int | None = None) -> bool:
    """Whether a range of a text has a quote too many, so that a record in it goes on."""
    quotes = text.count('"', start, stop) - (text.count('\\"', start, stop) if dialect.escaped else 0)
    return bool(quotes & 1)


def read_plainly(dialect: CsvDialect) -> CsvDialect:
    """The same dialect, in which quotes are characters like others."""
    return replace(dialect, plain=True)


def find_dialect(text: str, media_type: str = "text/csv") -> CsvDialect:
    """The dialect of the beginning of a text. A type that names its delimiter (TSV) is believed where it divides anything."""
    lines = split_lines(text[:SAMPLE_CHARS])
    if len(text) > SAMPLE_CHARS and len(lines) > 1:
        lines.pop()  # the sample's end cuts it
    named = "\t" if media_type == "text/tab-separated-values" else ""
    said = _NAMED.match(lines[0]) if lines else None
    if said is not None:
        dialect = CsvDialect(said[1], _is_escaped(lines[1:]))
        return replace(dialect, has_header=_has_header(_records(lines[1:], dialect)), above=1, named=True)
    score, best, escaped = _best(lines, named)
    above = 0
    if not score:
        above, best, escaped = _below_title(lines, named)
    dialect = CsvDialect(best, escaped)
    return replace(dialect, has_header=_has_header(_records(lines[above:], dialect)), above=above)


def _best(lines: list[str], named: str) -> tuple[float, str, bool]:
    """(score, delimiter, whether quotes are escaped) of the delimiter that divides the lines best."""
    score, best, escaped = _divide(lines, _is_escaped(lines), named)
    if escaped:  # a backslash may also be all that a cell holds, or its end
        plain = _divide(lines, False, named)
        if plain[0] > score:
            return plain
    return score, best, escaped


def _below_title(lines: list[str], named: str) -> tuple[int, str, bool]:
    """(lines above, delimiter, whether quotes are escaped) of a table that begins below a title: behind an empty line, or where several
    columns begin that all records have; (0, "", …) where there is none."""
    for above in range(1, min(TITLE_LINES, len(lines) - 2) + 1):
        if not lines[above].strip():
            continue
        score, best, escaped = _best(lines[above:], named)
        if not score:
            continue
        records = _records(lines[above:], CsvDialect(best, escaped))
        width = len(records[0])
        apart = not lines[above - 1].strip()
        marks = _DIVIDING if apart else DELIMITERS
        if any(mark in line for mark in (best, '"', *marks) for line in lines[:above]):
            continue
        sure = len(records) > 2 and width > 2 and all(len(record) == width for record in records)
        if len(records) > 1 and (apart or sure or best != ","):
            return above, best, escaped
    return 0, "", _is_escaped(lines)


def _divide(lines: list[str], escaped: bool, named: str) -> tuple[float, str, bool]:
    """(score, delimiter, `escaped`) of the delimiter that divides the lines best; empty where none does. `named` wins where it does."""
    best, best_score = "", 0.0
    for delimiter in DELIMITERS:
        score = _score(_records(lines, CsvDialect(delimiter, escaped)))
        if delimiter == named and score:
            score += 1000
        if score > best_score:
            best, best_score = delimiter, score
    return best_score, best, escaped


def _is_escaped(lines: list[str]) -> bool:
    """Whether quotes inside quoted fields are written as backslash and quote."""
    text = "".join(lines)
    return len(_ESCAPED_QUOTE.findall(text)) > text.replace('\\"', "").count('""')


def _records(lines: list[str], dialect: CsvDialect) -> list[list[str]]:
    out: list[list[str]] = []
    try:
        for record in csv.reader(lines, **dialect.reader_options()):  # type: ignore[arg-type]
            if record:
                out.append(record)
            if len(out) >= SAMPLE_RECORDS:
                break
    except csv.Error:
        return out
    return out


def _score(records: list[list[str]]) -> float:
    """0 for a delimiter that does not divide evenly; more agreement counts first, then more columns."""
    if not records:
        return 0.0
    counts = Counter(map(len, records))
    width, agreeing = counts.most_common(1)[0]
    share = agreeing / len(records)
    # in a short table a single record is a large share
    even = share >= AGREE or (len(records) - agreeing == 1 and agreeing > 1 and len(records[0]) == width > 2)
    if width < 2 or not even or (len(records) > 1 and len(records[0]) < 2):
        return 0.0
    return share * 100 + min(width, 50)


def _has_header(records: list[list[str]]) -> bool:
    """Names are no numbers and no dates, not empty, and not all the same; a lone record is data."""
    if len(records) < 2:
        return False
    names = [name.strip() for name in records[0]]
    filled = [name for name in names if name]
    if len(filled) * 2 < len(names) or any(_NUMBER.match(name) or _DATE.match(name) for name in filled):
        return False
    return len(set(filled)) == len(filled)
