"""One source file's rows as they are found: symbols, CPG nodes with their AST edges, and edges between symbols.

The invariant: every id equals the one that `raydex.ir.ids` makes, and none depends on a line: a symbol is told apart by kind, name and
discriminator, a node by (kind, ordinal in pre-order) inside its symbol, a call by its position inside its symbol (contracts 5-7, 26).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from blake3 import blake3

from raydex.ir.code import CODE_EDGE_COLUMNS, CODE_NODE_COLUMNS, Columns, Parameter, Symbol, new_columns
from raydex.ir.document import Block, Document
from raydex.ir.errors import LimitError
from raydex.ir.ids import block_id, code_edge_id, code_symbol_id
from raydex.ir.locator import Locator
from raydex.ir.parsed import ParsedFile
from raydex.kernels.code_text import SourceText
from raydex.kernels.decode import has_bidi_controls
from raydex.kernels.request import ParseRequest

MAX_EXPRESSION = 200
MAX_SIGNATURE = 500
MAX_COMMENT_LINES = 200


def sized(text: str) -> str:
    """A field as `ids.digest` frames it: 8 bytes of length, then the text. For ASCII fields shorter than 128 only."""
    return f"{chr(len(text))}\0\0\0\0\0\0\0{text}"


_ID_SIZE = "\x24\0\0\0\0\0\0\0"
ORDINAL_COUNT = 1024
ORDINALS = [sized(str(n)) for n in range(ORDINAL_COUNT)]


class Owner:
    """A symbol that holds CPG nodes: per kind the head of the id and the number of nodes so far, and the call sites so far."""

    __slots__ = ("calls", "head", "kinds", "symbol")

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol
        self.head = sized(symbol.symbol_id)
        self.kinds: dict[str, list[Any]] = {}
        self.calls = 0

    def next_call(self) -> int:
        """Position of the next call site inside the symbol (contracts 7)."""
        self.calls += 1
        return self.calls - 1


class NodeRows:
    """Columns of `code_nodes` and their AST edges. While rows are found they point to their parent by row number (-1: none), and `key`
    holds what their id is made of; ids are hashed at the end, all at once, which is what makes a row cheap."""

    __slots__ = ("column", "end_column", "end_line", "key", "kind", "line", "ordinal", "parent", "symbol_id")

    def __init__(self) -> None:
        self.key: list[str] = []
        self.symbol_id: list[str] = []
        self.kind: list[str] = []
        self.ordinal: list[int] = []
        self.line: list[int] = []
        self.end_line: list[int] = []
        self.column: list[int] = []
        self.end_column: list[int] = []
        self.parent: list[int] = []

    def add(self, kind: str, parent: int, owner: Owner) -> int:
        """One node under row `parent`, without its place. Returns the number of its row."""
        slot = owner.kinds.get(kind)
        if slot is None:
            slot = owner.kinds[kind] = [owner.head + sized(kind), 0]
        ordinal = slot[1]
        slot[1] = ordinal + 1
        self.key.append(slot[0] + (ORDINALS[ordinal] if ordinal < ORDINAL_COUNT else sized(str(ordinal))))
        self.symbol_id.append(owner.symbol.symbol_id)
        self.kind.append(kind)
        self.ordinal.append(ordinal)
        self.parent.append(parent)
        return len(self.parent) - 1

    def add_place(self, line: int, column: int, end_line: int, end_column: int) -> None:
        """Lines 1-based, columns in code points."""
        self.line.append(line)
        self.end_line.append(end_line)
        self.column.append(column)
        self.end_column.append(end_column)

    def columns(self) -> tuple[Columns, Columns]:
        """(code_nodes, AST edges): ids equal `ids.code_node_id` and `ids.code_edge_id`. Only the first row may be without a parent."""
        node_id = ["nod_" + blake3(key.encode()).digest(16).hex() for key in self.key]
        nodes = {name: node_id if name == "node_id" else getattr(self, name) for name in CODE_NODE_COLUMNS}
        source = [node_id[at] for at in self.parent[1:]]
        target = node_id[1:]
        head, middle, tail = sized("AST") + _ID_SIZE, _ID_SIZE, sized("")
        edge_id = [
            "edg_" + blake3(f"{head}{parent}{middle}{child}{tail}".encode()).digest(16).hex()
            for parent, child in zip(source, target, strict=True)
        ]
        count = len(edge_id)
        nothing: list[Any] = [None] * count
        edges: Columns = dict.fromkeys(CODE_EDGE_COLUMNS, nothing)
        constant = {"relation": "AST", "confidence": "EXTRACTED", "rule": "ast", "label": ""}
        edges |= {"edge_id": edge_id, "source": source, "target": target} | {name: [value] * count for name, value in constant.items()}
        return nodes, edges


@dataclass(slots=True)
class Definition:
    """What a front end knows of a definition; offsets are code points. `role` tells legal equals apart (setter, overload types)."""

    name: str
    kind: str
    start: int
    end: int
    name_start: int
    name_end: int
    role: str = ""
    signature: str = ""
    visibility: str = "public"
    receiver: str = ""
    docstring: str = ""
    type: str = ""
    parameters: list[Parameter] = field(default_factory=list)
    decorators: list[str] = field(default_factory=list)
    bases: list[str] = field(default_factory=list)


class CodeFile:
    """The rows of one file while they are found. `package` is the module's qualified name."""

    def __init__(self, request: ParseRequest, source: SourceText, language: str, package: str, name: str) -> None:
        self.request = request
        self.source = source
        self.language = language
        self.package = package
        self.symbols: list[Symbol] = []
        self.nodes = NodeRows()
        self.edges = new_columns(CODE_EDGE_COLUMNS)
        self._equals: dict[tuple[str, str, str], int] = {}
        self._imports: dict[str, int] = {}
        self.module = self._append(Definition(name, "module", 0, len(source.text), 0, 0), package, "", None)
        self._depths = {self.module.symbol_id: 0}

    def add_symbol(self, found: Definition, parent: Symbol) -> Symbol:
        """A symbol under `parent`, with its CONTAINS edge. Raises LimitError: more than limits.symbols, or deeper than limits.depth."""
        limits = self.request.limits
        if len(self.symbols) > limits.symbols:
            raise LimitError(f"more symbols than limits.symbols ({limits.symbols})", reject_class="too_many_symbols")
        depth = self._depths[parent.symbol_id] + 1
        if depth > limits.depth:
            raise LimitError(f"definitions nested deeper than limits.depth ({limits.depth})", reject_class="too_deep")
        top = parent is self.module
        qualified = found.name if top else f"{parent.qualified_name}.{found.name}"
        role = found.role if top or not parent.discriminator else f"{parent.discriminator}/{found.role}"
        symbol = self._append(found, qualified, role, parent.symbol_id)
        self._depths[symbol.symbol_id] = depth
        self.add_edge(
            "CONTAINS", parent.symbol_id, symbol.symbol_id, rule="containment", label="", start=found.name_start, end=found.name_end
        )
        return symbol

    def _append(self, found: Definition, qualified: str, role: str, parent_id: str | None) -> Symbol:
        key = (found.kind, qualified, role)
        number = self._equals.get(key, 0)
        discriminator = f"{role}#{number + 1}" if number else role
        while number and (found.kind, qualified, discriminator) in self._equals:
            number += 1
            discriminator = f"{role}#{number + 1}"
        self._equals[key] = number + 1
        self._equals.setdefault((found.kind, qualified, discriminator), 1)
        request, source = self.request, self.source
        line = source.line_of(found.start)
        symbol = Symbol(
            symbol_id=code_symbol_id(
                request.workspace, request.repository, self.language, request.path, found.kind, qualified, discriminator
            ),
            name=found.name,
            qualified_name=qualified,
            kind=found.kind,
            language=self.language,
            path=request.path,
            line=line,
            end_line=source.line_of(max(found.start, found.end - 1)),
            column=found.start - source.line_starts[line - 1],
            char_start=found.start,
            char_end=found.end,
            byte_start=source.byte_of(found.start),
            byte_end=source.byte_of(found.end),
            parent_id=parent_id,
            signature=found.signature[:MAX_SIGNATURE],
            visibility=found.visibility,
            receiver=found.receiver,
            package=self.package,
            docstring=found.docstring,
            type=found.type,
            discriminator=discriminator,
            parameters=found.parameters,
            decorators=found.decorators,
            bases=found.bases,
        )
        self.symbols.append(symbol)
        return symbol

    def add_edge(
        self,
        relation: str,
        source: str,
        target: str | None,
        *,
        rule: str,
        label: str,
        start: int,
        end: int,
        confidence: str = "EXTRACTED",
        expression: str | None = None,
        candidates: list[str] | None = None,
    ) -> None:
        """An edge between symbols with the range that proves it; without a target its expression stands in the id."""
        edges = self.edges
        edges["edge_id"].append(_edge_id(relation, source, target or expression or "", label))
        edges["source"].append(source)
        edges["target"].append(target)
        edges["relation"].append(relation)
        edges["confidence"].append(confidence)
        edges["rule"].append(rule)
        edges["label"].append(label)
        edges["expression"].append(expression)
        edges["candidates"].append(candidates or [])
        edges["line"].append(self.source.line_of(start))
        edges["char_start"].append(start)
        edges["char_end"].append(end)
        edges["excerpt_hash"].append(self.source.excerpt_hash(start, end))

    def add_names(self, source: str, name: str, rule: str, candidates: list[str]) -> None:
        """EXPORTS: what a module or class gives under a name (`raydex.kernels.code_names`). Like an AST edge it has no place."""
        known = (_edge_id("EXPORTS", source, "", name), source, None, "EXPORTS", "EXTRACTED", rule, name, "", candidates)
        for column, value in zip_longest(CODE_EDGE_COLUMNS, known):
            self.edges[column].append(value)

    def add_import(self, name: str, candidates: list[str], start: int, end: int, rule: str = "import") -> None:
        """IMPORTS from the module; `name` is what is bound here ("*" or "" where nothing is). Rules: import_star; import_local, where no
        importer of this file sees what is bound; else import."""
        number = self._imports.get(name, 0)
        self._imports[name] = number + 1
        self.add_edge(
            "IMPORTS",
            self.module.symbol_id,
            None,
            rule=rule,
            label=f"{name}#{number + 1}" if number else name,
            start=start,
            end=end,
            confidence="AMBIGUOUS",
            expression=self.expression(start, end),
            candidates=candidates,
        )

    def expression(self, start: int, end: int) -> str:
        """Source text of a range, at most 200 characters."""
        return self.source.text[start : min(end, start + MAX_EXPRESSION)]

    def finish(self, parser: str, parser_version: str, warnings: list[str]) -> ParsedFile:
        """The ParsedFile: one code block that holds the whole text, and all rows."""
        request, text = self.request, self.source.text
        parsed = ParsedFile(request.record_id, request.content_hash, request.path, request.media_type)
        locator = Locator(char=(0, len(text)), line=(1, self.source.line_count))
        block = Block(block_id(request.record_id, request.content_hash, 0), "code", 0, text, locator, metadata={"language": self.language})
        parsed.blocks.append(block)
        parsed.document = Document(
            record_id=request.record_id,
            title=request.path.rpartition("/")[2],
            media_type=request.media_type,
            parser=parser,
            parser_version=parser_version,
            encoding=self.source.encoding,
            language=self.language,
            block_count=1,
            char_count=len(text),
            warnings=warnings,
        )
        if has_bidi_controls(text):
            parsed.document.warnings.append("bidi_controls")
            parsed.add_event("parse", "warning", "bidi_controls")
        parsed.symbols = self.symbols
        parsed.code_nodes, tree = self.nodes.columns()
        parsed.code_edges = {name: self.edges[name] + tree[name] for name in CODE_EDGE_COLUMNS}
        return parsed


def _edge_id(relation: str, source: str, target: str, label: str) -> str:
    """`ids.code_edge_id`, faster for fields that are short and ASCII."""
    if len(target) > 127 or len(label) > 127 or not target.isascii() or not label.isascii():
        return code_edge_id(relation, source, target, label)
    return "edg_" + blake3(f"{sized(relation)}{sized(source)}{sized(target)}{sized(label)}".encode()).digest(16).hex()


@contextmanager
def collector_paused() -> Iterator[None]:
    """No cyclic garbage collection meanwhile: a syntax tree is many objects that all live until the end, and the collector would visit
    them again and again (half of the time on large files)."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def collapsed(text: str) -> str:
    """Whitespace runs → one space."""
    return " ".join(text.split())


def lines_above(source: SourceText, start: int, sign: str) -> list[str]:
    """The lines that begin with a comment sign and stand right above the line of `start`, top down, at most 200."""
    text, starts = source.text, source.line_starts
    at = source.line_of(start) - 1
    if text[starts[at] : start].strip():
        return []
    first = at
    while first > max(0, at - MAX_COMMENT_LINES) and text[starts[first - 1] : starts[first]].lstrip().startswith(sign):
        first -= 1
    return [text[starts[line] : starts[line + 1]].strip() for line in range(first, at)]
