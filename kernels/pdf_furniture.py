"""Running headers, footers and page numbers: which segments of which raw pages repeat over pages and are no part of the text.

A segment near the upper or lower edge is furniture when the same words stand at the same place on at least `LEAST` pages and on a good
share of the pages between the first and the last of them, and when a gap sets it apart from the text; where there are two pages in all,
only beside a number that says that it numbers them. One number in it may count with
the pages, if something tells the line from a numbered heading that begins each page (`_numbers_pages`). The invariant: what changes in
any other way from page to page, a title that the outline names, and a table's header row that repeats over its columns, stays; and
furniture never is all of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from raydex.kernels.pdf_raw import BOLD, Page
from raydex.kernels.pdf_structure import title_key

LEAST = 3
ZONE = 0.15
REACH = 0.35
SHARE = 0.4
BUCKET = 5.0
TITLE_SEGMENTS = 8
LONGEST = 200
STRETCHED = 1.4
COUNT = "\0"  # stands for the counting number in a key; no segment holds one

_NUMBER = re.compile(r"\d{1,5}")
_EDGE_SIGNS = " -–—.()[]"
_ROMAN = re.compile(r"[ivxl]{1,7}|[IVXL]{1,7}")
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50}
# possessive, and no sign is the placeholder: a run of signs is read once
_SIGNS = r"[^\w\0]*+"
_PAGE = r"(?:page|seite|pagina|página|p\.|第)"
_ONLY_NUMBER = re.compile(rf"{_SIGNS}(?:{_PAGE}{_SIGNS})?+\0{_SIGNS}(?:(?:of|von|de|页){_SIGNS})?+\d*+{_SIGNS}", re.I)
# "page 7", "7 of 9", "Handbook | 7", "7 – Handbook"
_OF_PAGES = re.compile(
    rf"(?<!\w){_PAGE}{_SIGNS}\0|\0{_SIGNS}(?:of|von|de){_SIGNS}\d|\0\s*+/\s*+\d|(?:\||\s[-–—·•/])\s*+\0{_SIGNS}\Z|\A{_SIGNS}\0\s*+(?:\||[-–—·•/]\s)",
    re.I,
)

# words with the counting number as `COUNT`, that number less the page's (0 without one), place, lower edge
Key = tuple[str, int, int, bool]


def find_furniture(pages: list[Page], titles: Sequence[Collection[str]]) -> list[set[int]]:
    """Per page, the positions of its segments that are furniture. A single page has none.

    `titles` are, per page, the `title_key`s of the outline's entries.
    """
    found: list[set[int]] = [set() for _ in pages]
    least = min(LEAST, len(pages))
    if least < 2:
        return found
    edges = [_edge_rows(page) for page in pages]
    seen: dict[Key, list[int]] = defaultdict(list)
    for at, sides in enumerate(edges):
        for key in {key for rows in sides for row in rows for keys in row.keys for key in keys}:
            seen[key].append(at)
    repeated = {key for key, ats in seen.items() if len(ats) >= least and len(ats) >= SHARE * (ats[-1] - ats[0] + 1)}
    if not repeated:
        return found
    body = _body_type(pages)
    numbers = {key for key in repeated if COUNT not in key[0]} | _numbers_alone_elsewhere(repeated, seen)
    apart: Counter[Key] = Counter()
    for page, sides in zip(pages, edges, strict=True):
        for rows in sides:
            apart.update(_set_apart(rows, repeated, page, body, numbers))
    # a page whose text begins close to the edge does not outvote the others
    accepted = {key for key in repeated if _ONLY_NUMBER.fullmatch(key[0]) or 2 * apart[key] >= len(seen[key])}
    if least < LEAST:
        accepted &= _beside_numbers(edges, accepted)
    for at, sides in enumerate(edges):
        for rows in sides:
            found[at] |= _outer_furniture(rows, accepted)
        if titles[at] and found[at]:
            found[at] -= _titles_among(found[at], pages[at]["text"], titles[at])
    if all(len(dropped) == len(page["text"]) for dropped, page in zip(found, pages, strict=True)):
        return [set() for _ in pages]  # what repeats is all that there is
    return found


def _beside_numbers(edges: list[tuple[list[_Row], list[_Row]]], accepted: set[Key]) -> set[Key]:
    """Keys of rows that hold an accepted number of the page."""
    out: set[Key] = set()
    for row in (row for sides in edges for rows in sides for row in rows):
        keys = {key for keys in row.keys for key in keys}
        if any(COUNT in key[0] and (_ONLY_NUMBER.fullmatch(key[0]) or _OF_PAGES.search(key[0])) for key in keys & accepted):
            out |= keys
    return out


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
        keys.append((f"{text[: match.start()]}{COUNT}{text[match.end() :]}", int(match.group()) - page, place, lower))
        if len(keys) > 3:
            break
    if len(text) < 12:
        bare = text.strip(_EDGE_SIGNS)
        if _ROMAN.fullmatch(bare):
            keys.append((COUNT, _roman(bare) - page, place, lower))
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


def _titles_among(dropped: set[int], texts: list[str], titles: Collection[str]) -> set[int]:
    """Of the dropped segments those that spell a title of the outline which stands nowhere else on the page. A page's mere number is no
    title, even where the outline lists the pages."""
    order = sorted(dropped)
    spelled = _spelled([title_key(texts[at]) for at in order], titles)
    names = {title: run for title, run in spelled.items() if not _ONLY_NUMBER.fullmatch(_NUMBER.sub(COUNT, title, count=1))}
    if not names:
        return set()
    elsewhere = _spelled([title_key(text) for at, text in enumerate(texts) if at not in dropped], names)
    return {order[at] for title, run in names.items() if title not in elsewhere for at in run}


def _spelled(keys: list[str], titles: Collection[str]) -> dict[str, range]:
    """Title → where segments in succession first spell it."""
    found: dict[str, range] = {}
    for first in range(len(keys)):
        if not keys[first]:
            continue
        key = ""
        for at in range(first, min(first + TITLE_SEGMENTS, len(keys))):
            key += keys[at]
            if key in titles:
                found.setdefault(key, range(first, at + 1))
    return found


def _body_type(pages: list[Page]) -> tuple[float, bool]:
    """(size, whether bold) of most of the text."""
    exact: dict[float, int] = {}
    bold = 0
    for page in pages:
        for text, size, style in zip(page["text"], page["size"], page["style"], strict=True):
            count = len(text)
            exact[size] = exact.get(size, 0) + count
            if style & BOLD:
                bold += count
    sizes: Counter[float] = Counter()
    for size, count in exact.items():
        sizes[round(size * 2) / 2] += count
    return max(sizes, key=lambda size: (sizes[size], -size)), 2 * bold > sizes.total()


def _numbers_alone_elsewhere(repeated: set[Key], seen: dict[Key, list[int]]) -> set[Key]:
    """Keys that begin or end with a number which other pages bear alone, at the same distance from their own: the pages' number, with
    the title of a chapter on some. Pages that bear both tell nothing."""
    alone: dict[int, set[int]] = defaultdict(set)
    for key, ats in seen.items():
        if COUNT in key[0] and _ONLY_NUMBER.fullmatch(key[0]):
            alone[key[1]].update(ats)
    out: set[Key] = set()
    for key in repeated:
        if _counts_at_end(key):
            pages = set(seen[key])
            if len(alone[key[1]] - pages) >= 2 and 2 * len(alone[key[1]] & pages) < len(pages):
                out.add(key)
    return out


def _counts_at_end(key: Key) -> bool:
    bare = key[0].strip(_EDGE_SIGNS)
    return bare.startswith(COUNT) or bare.endswith(COUNT)


def _numbers_pages(key: Key, page: Page, at: int, body: tuple[float, bool]) -> bool:
    """Whether a line with a number that counts with the pages is no numbered heading: it says so, parts its words from the number at the
    other margin, or is set smaller than the text. At the foot, where no heading stands, the type of the text will do."""
    text, size, bold = page["text"][at], page["size"][at], bool(page["style"][at] & BOLD)
    if _ONLY_NUMBER.fullmatch(key[0]) or _OF_PAGES.search(key[0]):
        return True
    if len(text) <= LONGEST and _counts_at_end(key):
        em = sum(1.0 if char >= "\u2e80" else 0.6 for char in text)
        if page["x1"][at] - page["x0"][at] > STRETCHED * em * size:
            return True
    return size < 0.95 * body[0] or (key[3] and size <= 1.05 * body[0] and (body[1] or not bold))


def _set_apart(rows: list[_Row], repeated: set[Key], page: Page, body: tuple[float, bool], numbers: set[Key]) -> set[Key]:
    """Keys of the outer repeated rows, as far as a gap wider than the text's line distance sets them apart from what follows, and they
    head no columns of it, are not set larger and number pages, if anything. Past the first such gap only rows of the very same words
    count."""
    keys: set[Key] = set()
    pending: set[Key] = set()
    sizes, lefts = page["size"], page["x0"]
    for at, row in enumerate(rows):
        fixed = [keys_of[0] in repeated for keys_of in row.keys]
        fixed_count = sum(fixed)
        found: set[Key] = set()
        for member, keys_of, is_fixed in zip(row.members, row.keys, fixed, strict=False):
            beside_fixed = fixed_count > is_fixed
            counted = (key for key in keys_of if key in repeated)
            found.update(key for key in counted if beside_fixed or key in numbers or _numbers_pages(key, page, member, body))
        if not found or (keys and not all(fixed)):
            break
        pending |= found
        if at + 1 >= len(rows):
            return keys | pending
        following = rows[at + 1]
        pitches = [rows[next_at + 1].distance - rows[next_at].distance for next_at in range(at + 1, min(at + 3, len(rows) - 1))]
        largest = max(sizes[member] for member in row.members)
        far = following.distance - row.distance > (1.3 * min(pitches) if pitches else 1.5 * largest)
        if far and largest <= 1.15 * max(sizes[member] for member in following.members) and not _heads_columns(row, following, lefts):
            keys |= pending
            pending = set()
    return keys


def _heads_columns(row: _Row, following: _Row, lefts: list[float]) -> bool:
    """Whether two or more of the row's segments begin where segments of the next row begin."""
    places = sorted([lefts[member] for member in following.members])
    heads = 0
    for member in row.members:
        near = bisect_right(places, lefts[member] - 2)
        heads += near < len(places) and places[near] < lefts[member] + 2
    return heads > 1
