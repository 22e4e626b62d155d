"""CodeIR (seed 1): symbols as records; CPG nodes and edges as columns, since a file has thousands of them.

`code_edges` between symbols (CALLS, IMPORTS, …) carry the call text, the rule that resolved it and its confidence; edges between
nodes (AST, CFG, REACHING_DEF) carry only their ends and a label (contracts 7).
"""

from __future__ import annotations

from dataclasses import dataclass, field

Columns = dict[str, list]  # type: ignore[type-arg]

CODE_NODE_COLUMNS = ("node_id", "symbol_id", "kind", "ordinal", "line", "end_line", "column", "end_column")
CODE_EDGE_COLUMNS = (
    "edge_id",
    "source",
    "target",
    "relation",
    "confidence",
    "rule",
    "label",
    "expression",
    "candidates",
    "line",
    "char_start",
    "char_end",
    "excerpt_hash",
)


@dataclass(slots=True)
class Parameter:
    name: str
    type: str = ""
    default: str = ""


@dataclass(slots=True)
class Symbol:
    """A definition. `char_*` are code points, `byte_*` bytes of the file; lines are 1-based inclusive, columns 0-based code points.

    `qualified_name` is dotted from the file's module symbol on ("Animal.speak"); the module itself is named by its dotted path.
    `bases` are base types as written. `discriminator` is what told equal names apart in the id.
    """

    symbol_id: str
    name: str
    qualified_name: str
    kind: str
    language: str
    path: str
    line: int
    end_line: int
    column: int
    char_start: int
    char_end: int
    byte_start: int
    byte_end: int
    parent_id: str | None = None
    signature: str = ""
    visibility: str = "public"
    receiver: str = ""
    package: str = ""
    docstring: str = ""
    type: str = ""
    discriminator: str = ""
    parameters: list[Parameter] = field(default_factory=list)
    decorators: list[str] = field(default_factory=list)
    bases: list[str] = field(default_factory=list)


def new_columns(names: tuple[str, ...]) -> Columns:
    """Empty columns, to be appended to in step."""
    return {name: [] for name in names}
