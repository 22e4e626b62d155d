"""A part of a sheet's table → the cells of its own rows, so that a chunk does not name the whole block that it was cut from.

The invariant: a row whose line lies in the part is in the range; what cannot be told (text that is not the rows') keeps the block's range.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from raydex.ir.document import Block
from raydex.ir.locator import Locator
from raydex.kernels.pack import Part
from raydex.kernels.sheet import area_name, read_area
from raydex.kernels.tables import table_lines


def narrowed(part: Part) -> Locator:
    """The block's place; of a part of a sheet's table with the range of its own rows. Rows shown again do not count."""
    block, place = part.block, part.block.locator
    if place.cells is None or block.kind != "table" or part.end <= part.start or (part.start == 0 and part.end == len(block.text)):
        return place
    rows = _row_numbers(_Table(block))
    area = read_area(place.cells)
    if area is None or not rows:
        return place
    first = block.text.count("\n", 0, part.start)
    last = first + block.text.count("\n", part.start, part.end - 1)
    if last >= len(rows):
        return place
    return replace(place, cells=area_name((rows[first], area[1], rows[last], area[3])))


class _Table:
    """A block as the key of what is known of its rows: one block is asked for each of its parts in turn."""

    __slots__ = ("block",)

    def __init__(self, block: Block) -> None:
        self.block = block

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Table) and other.block is self.block

    def __hash__(self) -> int:
        return hash(self.block.block_id)


@lru_cache(maxsize=1)
def _row_numbers(table: _Table) -> list[int]:
    """The sheet's row number of each line of the block's text; empty where its text is not that of its rows."""
    block = table.block
    about = block.metadata
    area = read_area(block.locator.cells or "")
    if area is None or not about.get("rows") or about.get("caption"):
        return []
    numbers = about.get("row_numbers") or range(area[0], area[0] + len(about["rows"]))
    lines = [numbers[at] for at, _ in table_lines(about["rows"])]
    return lines if len(lines) == block.text.count("\n") + 1 else []
