"""List elements for the walker over HTML: levels, numbers, terms and definitions.

The invariant: an item's block begins with its first text, so that one which only holds another list makes no block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from raydex.kernels.drafts import Draft
from raydex.kernels.html_rules import SHOWN
from raydex.kernels.html_state import NUMBER, OpenList

if TYPE_CHECKING:
    from raydex.kernels.html_walk import HtmlWalk


def open_list(walk: HtmlWalk, name: str, values: dict[str, str], start: int) -> None:
    if walk.visible == SHOWN:
        walk.boundary()
    entry = walk.push(name, values, start)
    if walk.sink is None and entry.visible == SHOWN:
        walk.item = None
    scope = walk.scopes[-1]
    found = NUMBER.match(values.get("start", ""))
    above = sum(len(s.lists) for s in walk.scopes[-2:-1]) if not scope.lists else scope.lists[-1].level + 1
    entry.role = OpenList(above, name == "ol", int(found.group(1)) if found else 1)
    scope.lists.append(entry.role)
    scope.items.append(-1)


def open_item(walk: HtmlWalk, name: str, values: dict[str, str], start: int) -> None:
    scope = walk.scopes[-1]
    if scope.items[-1] >= 0:
        walk.pop_to(scope.items[-1], start, start)
    if walk.visible == SHOWN:
        walk.boundary()
    around = scope.lists[-1] if scope.lists else None
    entry = walk.push(name, values, start)
    scope.items[-1] = len(walk.stack) - 1
    metadata: dict[str, Any] = {"tag": name, "level": around.level if around else 0, "ordered": bool(around and around.ordered)}
    if name == "dt":
        metadata["role"] = "term"
    elif name == "dd":
        metadata |= {"role": "definition", "level": metadata["level"] + 1}
    elif around is not None and around.ordered:
        found = NUMBER.match(values.get("value", ""))
        around.next = int(found.group(1)) if found else around.next
        metadata["number"] = around.next
        around.next += 1
    if entry.visible == SHOWN and walk.sink is None:
        entry.draft = Draft("list_item", start, metadata=metadata)
        walk.item = entry
