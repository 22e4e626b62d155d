"""Running headers, footers and page numbers: which segments of which raw pages repeat over pages and are no part of the text.

A segment near the upper or lower edge is furniture when the same words stand at the same place on at least `LEAST` pages and on a good
share of the pages between the first and the last of them, and when a gap sets it apart from the text. One number in it may count with
the pages. The invariant: what changes in any other way from page to page, and a table's header row that repeats over its columns, stays.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from raydex.kernels.pdf_raw import Page

LEAST = 3
ZONE = 0.15
REACH = 0.35
SHARE = 0.4
BUCKET = 5.0

_NUMBER = re.compile(r"\d{1,5}")
_ROMAN = re.compile(r"[ivxl]{1,7}|[IVXL]{1,7}")
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50}
_ONLY_NUMBER = re.compile(r"\W*(?:page|seite|pagina|página|p\.|第)?\W*#\W*(?:(?:of|von|de|/|页)?\W*\d*)?\W*", re.I)

# words with the counting number as "#", that number less the page's (0 without one), place, lower edge
Key = tuple[str, int, int, bool]


def find_furniture(pages: list[Page]) -> list[set[int]]:
    """Per page, the positions of its segments that are furniture. Fewer than `LEAST` pages have none."""
    found: list[set[int]] = [set() for _ in pages]
    if len(pages) < LEAST:
        return found
    edges = [_edge_rows(page) for page in pages]
    seen: dict[Key, list[int]] = defaultdict(list)
    for at, sides in enumerate(edges):
        for key in {key for rows in sides for row in rows for keys in row.keys for key in keys}:
            seen[key].append(at)
    repeated = {key for key, ats in seen.items() if len(ats) >= LEAST and len(ats) >= SHARE * (ats[-1] - ats[0] + 1)}
    if not repeated:
        return found
    apart: Counter[Key] = Counter()
    for page, sides in zip(pages, edges, strict=True):
        for rows in sides:
            apart.update(_set_apart(rows, repeated, page))
    # a page whose text begins close to the edge does not outvote the others
    accepted = {key for key in repeated if _ONLY_NUMBER.fullmatch(key[0]) or 2 * apart[key] >= len(seen[key])}
    for at, sides in enumerate(edges):
        for rows in sides:
            found[at] |= _outer_furniture(rows, accepted)
    return found


class _Row:
    """Segments on one line at a page's edge, outermost row first; `distance` is from that edge. Rows beyond the zone have no keys."""

    __slots__ = ("distance", "keys", "members")

    def __init__(self, distance: float) -> None:
        self.distance = distance
        self.members: list[int] = []
        self.keys: list[list[Key]] = []


def _edge_rows(page: Page) -> tuple[list[_Row], list[_Row]]:
    """Rows of the upper and of the lower zone, each with the rows beyond it that tell the text's own line distance."""
    height = page["height"]
    middles = [(top + bottom) / 2 for top, bottom in zip(page["y0"], page["y1"], strict=True)]
    upper = [at for at, middle in enumerate(middles) if middle <= REACH * height]
    lower = [at for at, middle in enumerate(middles) if middle >= (1 - REACH) * height]
    upper.sort(key=middles.__getitem__)
    lower.sort(key=middles.__getitem__, reverse=True)
    return _rows_from(page, upper, middles, False), _rows_from(page, lower, middles, True)


def _rows_from(page: Page, order: list[int], middles: list[float], lower: bool) -> list[_Row]:
    rows: list[_Row] = []
    beyond = 0
    texts, sizes, height, number = page["text"], page["size"], page["height"], page["number"]
    zone = ZONE * height
    for at in order:
        distance = height - middles[at] if lower else middles[at]
        if not rows or distance - rows[-1].distance > 0.4 * sizes[at]:
            if distance > zone:
                beyond += 1
                if beyond > 3:
                    break
            rows.append(_Row(distance))
        row = rows[-1]
        row.members.append(at)
        if distance <= zone:
            row.keys.append(_keys(texts[at], number, round(distance / BUCKET), lower))
    return rows


def _keys(text: str, page: int, place: int, lower: bool) -> list[Key]:
    keys = [(text, 0, place, lower)]
    for match in _NUMBER.finditer(text):
        keys.append((f"{text[: match.start()]}#{text[match.end() :]}", int(match.group()) - page, place, lower))
        if len(keys) > 3:
            break
    if len(text) < 12:
        bare = text.strip(" -–—.()[]")
        if _ROMAN.fullmatch(bare):
            keys.append(("#", _roman(bare) - page, place, lower))
    return keys


def _roman(text: str) -> int:
    values = [_ROMAN_VALUES[char] for char in text.lower()]
    return sum(-value if any(later > value for later in values[at + 1 :]) else value for at, value in enumerate(values))


def _is_in(keys: list[Key], found: set[Key]) -> bool:
    return any(key in found for key in keys)


def _outer_furniture(rows: list[_Row], accepted: set[Key]) -> set[int]:
    """Walks inward from the edge and stops at the first row that holds text."""
    out: set[int] = set()
    for row in rows:
        members = [member for member, keys in zip(row.members, row.keys, strict=False) if _is_in(keys, accepted)]
        out.update(members)
        if len(members) < len(row.members):
            break
    return out


def _set_apart(rows: list[_Row], repeated: set[Key], page: Page) -> set[Key]:
    """Keys of the outer repeated rows, as far as a gap wider than the text's line distance sets them apart from what follows, and they
    head no columns of it and are not set larger. Past the first such gap only rows of the very same words count."""
    keys: set[Key] = set()
    pending: set[Key] = set()
    sizes, lefts = page["size"], page["x0"]
    for at, row in enumerate(rows):
        if not any(_is_in(keys_of, repeated) for keys_of in row.keys) or (keys and not all(of[0] in repeated for of in row.keys)):
            break
        pending.update(key for keys_of in row.keys for key in keys_of)
        if at + 1 >= len(rows):
            return keys | pending
        following = rows[at + 1]
        pitches = [rows[next_at + 1].distance - rows[next_at].distance for next_at in range(at + 1, min(at + 3, len(rows) - 1))]
        largest = max(sizes[member] for member in row.members)
        far = following.distance - row.distance > (1.3 * min(pitches) if pitches else 1.5 * largest)
        heads = sum(1 for one in row.members if any(abs(lefts[one] - lefts[other]) < 2 for other in following.members))
        if far and heads < 2 and largest <= 1.15 * max(sizes[member] for member in following.members):
            keys |= pending
            pending = set()
    return keys
