"""Running headers, footers and page numbers: which segments of which raw pages repeat over pages and are no part of the text.

A segment near the upper or lower edge is furniture when the same words (digits apart) stand at the same place on at least `LEAST` pages
and on a good share of the pages between the first and the last of them, and when a gap sets it apart from the text. The invariant: a
table's header row, which repeats at a page's top without such a gap or over columns of its own, stays.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from raydex.kernels.pdf_raw import Page

LEAST = 3
ZONE = 0.15
SHARE = 0.4
BUCKET = 5.0

_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"\W*(page|p\.|seite|页|第)?\W*(\d+|[ivxlc]{1,7})(\s*(of|/|von|页)\s*\d*)?\W*", re.I)

Key = tuple[str, int, bool]


def find_furniture(pages: list[Page]) -> list[set[int]]:
    """Per page, the positions of its segments that are furniture. Fewer than `LEAST` pages have none."""
    found: list[set[int]] = [set() for _ in pages]
    if len(pages) < LEAST:
        return found
    edges = [_edge_rows(page) for page in pages]
    seen: dict[Key, list[int]] = defaultdict(list)
    for at, sides in enumerate(edges):
        for key in {key for rows in sides for row in rows for key in row.keys}:
            seen[key].append(at)
    repeated = {key for key, ats in seen.items() if len(ats) >= LEAST and len(ats) >= SHARE * (ats[-1] - ats[0] + 1)}
    apart: Counter[Key] = Counter()
    for page, sides in zip(pages, edges, strict=True):
        for rows in sides:
            apart.update(_set_apart(rows, repeated, page))
    # a page whose text begins close to the edge does not outvote the others
    accepted = {key for key in repeated if key[0] == "#" or 2 * apart[key] >= len(seen[key])}
    for at, sides in enumerate(edges):
        for rows in sides:
            found[at] |= _outer_furniture(rows, accepted)
    return found


class _Row:
    """Segments on one line at a page's edge, outermost row first; `distance` is from that edge."""

    __slots__ = ("distance", "keys", "members")

    def __init__(self, distance: float) -> None:
        self.distance = distance
        self.members: list[int] = []
        self.keys: list[Key] = []


def _edge_rows(page: Page) -> tuple[list[_Row], list[_Row]]:
    """Rows of the upper and of the lower zone, each with the two rows beyond it, which tell the text's own line distance."""
    height = page["height"]
    middles = [(top + bottom) / 2 for top, bottom in zip(page["y0"], page["y1"], strict=True)]
    order = sorted(range(len(middles)), key=middles.__getitem__)
    return _rows_from(page, order, middles, height, False), _rows_from(page, order[::-1], middles, height, True)


def _rows_from(page: Page, order: list[int], middles: list[float], height: float, lower: bool) -> list[_Row]:
    rows: list[_Row] = []
    beyond = 0
    texts, sizes = page["text"], page["size"]
    for at in order:
        distance = height - middles[at] if lower else middles[at]
        if not rows or distance - rows[-1].distance > 0.4 * sizes[at]:
            if distance > ZONE * height:
                beyond += 1
                if beyond > 3:
                    break
            rows.append(_Row(distance))
        row = rows[-1]
        row.members.append(at)
        if distance <= ZONE * height:
            text = texts[at]
            words = "#" if _NUMBER.fullmatch(text) else _DIGITS.sub("#", text)
            row.keys.append((words, round(distance / BUCKET), lower))
    return rows


def _outer_furniture(rows: list[_Row], accepted: set[Key]) -> set[int]:
    """Walks inward from the edge and stops at the first row that holds text."""
    out: set[int] = set()
    for row in rows:
        members = [member for member, key in zip(row.members, row.keys, strict=False) if key in accepted]
        out.update(members)
        if len(members) < len(row.members):
            break
    return out


def _set_apart(rows: list[_Row], repeated: set[Key], page: Page) -> set[Key]:
    """Keys of the outer repeated rows if they stand farther from the text than its lines from each other and head no columns of it."""
    inner = 0
    keys: set[Key] = set()
    while inner < len(rows) and rows[inner].keys and any(key in repeated for key in rows[inner].keys):
        keys.update(rows[inner].keys)
        inner += 1
    if inner == 0 or inner >= len(rows):
        return keys
    edge = rows[inner - 1]
    gap = rows[inner].distance - edge.distance
    if inner + 1 < len(rows):
        far = gap > 1.3 * (rows[inner + 1].distance - rows[inner].distance)
    else:
        far = gap > 1.5 * max(page["size"][member] for member in edge.members)
    lefts = page["x0"]
    heads = sum(1 for one in edge.members if any(abs(lefts[one] - lefts[other]) < 2 for other in rows[inner].members))
    return keys if far and heads < 2 else keys - set(edge.keys)
