"""tree-sitter trees → CPG nodes with AST edges, in one iterative pre-order walk; what a language means by its nodes is in its handlers.

The invariant: every named node but comments has a row (contracts 6), whatever the depth; a grammar that is not installed is an error,
never a reason to guess (seed 1). Offsets of the tree are UTF-8 bytes and are converted to code points here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from raydex.ir.errors import InputError
from raydex.kernels import code_common as common
from raydex.kernels.code_common import CodeFile, Owner
from raydex.kernels.code_scopes import CallSite, Chain, Facts, Scope

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

EXTRAS = frozenset({"comment", "html_comment", "hash_bang_line", "line_continuation"})


@lru_cache(maxsize=8)
def load_parser(grammar: str) -> Parser:
    """The parser of a grammar. Raises InputError (grammar_unavailable)."""
    try:
        from tree_sitter_language_pack import get_parser

        return get_parser(grammar)  # type: ignore[arg-type]
    except (ImportError, LookupError, OSError) as error:
        message = f"the tree-sitter grammar {grammar!r} cannot be loaded: {error}"
        remedy = "Install tree-sitter-language-pack 0.13"
        raise InputError(message, reject_class="grammar_unavailable", remedy=remedy) from error


class TreeWalk:
    """State of one walk: the stack of (node, parent row, owner of the row, scope of names).

    `openings` matches the lines that open a definition at the top level; `statements` are the tree's top nodes. `columns_count`: whether
    what stands in the first column is at the top level by the language's own rules.
    """

    columns_count = False

    def __init__(self, file: CodeFile, facts: Facts, grammar: str, openings: re.Pattern[bytes]) -> None:
        self.file = file
        self.source = file.source
        self.text = file.source.text
        self.facts = facts
        self.stack: list[tuple[Node, int, Owner, Scope]] = []
        self.utf8 = self.text.encode()
        self.tree = load_parser(grammar).parse(self.utf8)
        self.statements = self._recovered(grammar, openings) if self.tree.root_node.has_error else self.tree.root_node.named_children
        self.starts: list[int] = []
        self.ends: list[int] = []

    def run(self, handlers: Mapping[str, Handler]) -> None:
        """All rows. A handler returns true when it has made the rows and pushed the children of its node itself."""
        module = self.facts.module
        stack = self.stack
        root = self.row(self.tree.root_node, -1, module.owner)
        self.push_all(self.statements, root, module.owner, module)
        pop, push, sized = stack.pop, stack.append, common.sized
        plans: dict[int, tuple[str, Handler | None]] = {}
        rows = self.file.nodes
        ordinals, count, parents = common.ORDINALS, common.ORDINAL_COUNT, rows.parent
        add_key, add_symbol, add_kind, add_ordinal = rows.key.append, rows.symbol_id.append, rows.kind.append, rows.ordinal.append
        add_start, add_end, add_parent = self.starts.append, self.ends.append, parents.append
        while stack:
            node, parent, owner, scope = pop()
            plan = plans.get(node.kind_id)
            if plan is None:
                plan = plans[node.kind_id] = (node.type, _skip if node.type in EXTRAS else handlers.get(node.type))
            kind, handler = plan
            if handler is not None and handler(self, node, parent, owner, scope):
                continue
            slot = owner.kinds.get(kind)
            if slot is None:
                slot = owner.kinds[kind] = [owner.head + sized(kind), 0]
            ordinal = slot[1]
            slot[1] = ordinal + 1
            add_key(slot[0] + (ordinals[ordinal] if ordinal < count else sized(str(ordinal))))
            add_symbol(owner.symbol.symbol_id)
            add_kind(kind)
            add_ordinal(ordinal)
            add_start(node.start_byte)
            add_end(node.end_byte)
            add_parent(parent)
            if node.named_child_count:
                parent = len(parents) - 1
                for child in reversed(node.named_children):
                    push((child, parent, owner, scope))
        rows.line, rows.column = self.source.places(self.starts, self.utf8)
        rows.end_line, rows.end_column = self.source.places(self.ends, self.utf8)

    def _recovered(self, grammar: str, openings: re.Pattern[bytes]) -> list[Node]:
        """Top nodes of a file with errors. An unclosed bracket swallows all that follows; so the file is cut at its top-level definitions
        and each piece is parsed by itself, and an error spoils its own piece only. (Where a column does not prove the top level, only
        when a definition was swallowed.)"""
        from tree_sitter import Parser

        root = self.tree.root_node
        cuts = [self.first_line(match.start()) for match in openings.finditer(self.utf8)]
        known = {node.start_byte for node in root.named_children if not node.is_error}
        if not self.columns_count and all(cut in known for cut in cuts):
            return root.named_children
        cuts = [cut for cut in cuts if not _in_string(root, cut)]
        parser = Parser(load_parser(grammar).language)
        bounds = [0, *(cut for cut in cuts if cut), len(self.utf8)]
        return [node for start, end in pairwise(bounds) for node in self.piece(parser, start, end)]

    def first_line(self, opening: int) -> int:
        """Where a definition begins whose opening line begins there."""
        return opening

    def piece(self, parser: Parser, start: int, end: int) -> list[Node]:
        """Top nodes of one piece of a file with errors."""
        return self.parse_ranges(parser, [(start, end)]).named_children

    def parse_ranges(self, parser: Parser, ranges: list[tuple[int, int]]) -> Node:
        """Root of a tree over some ranges of whole lines, its bytes those of the file (its rows are not)."""
        from tree_sitter import Point, Range

        parser.included_ranges = [Range(Point(0, 0), Point(0, 0), start, end) for start, end in ranges]
        return parser.parse(self.utf8).root_node

    def row(self, node: Node, parent: int, owner: Owner) -> int:
        """The row of one node; returns its number."""
        self.starts.append(node.start_byte)
        self.ends.append(node.end_byte)
        return self.file.nodes.add(node.type, parent, owner)

    def push_all(self, children: Iterable[Node | None], parent: int, owner: Owner, scope: Scope) -> None:
        """Children in source order onto the stack."""
        self.stack.extend((child, parent, owner, scope) for child in reversed(list(children)) if child is not None)

    def span(self, node: Node) -> tuple[int, int]:
        """Code point range of a node."""
        return self.source.char_of(node.start_byte), self.source.char_of(node.end_byte)

    def segment(self, node: Node | None) -> str:
        """Source text of a node, "" for none."""
        return self.utf8[node.start_byte : node.end_byte].decode("utf-8", "replace") if node is not None else ""

    def call(self, callee: Node, chain: Chain | None, scope: Scope) -> None:
        """Note a call site."""
        start, end = self.span(callee)
        self.facts.calls.append(CallSite(scope, chain, start, end))

    def first_error(self) -> int:
        """1-based line of the first error or missing node; 0 for a clean tree."""
        root = self.tree.root_node
        if not root.has_error:
            return 0
        stack = [root]
        while stack:
            node = stack.pop()
            if node.is_error or node.is_missing:
                return self.source.line_of(self.source.char_of(node.start_byte))
            stack.extend(child for child in reversed(node.children) if child.has_error)
        return 1


def _skip(walk: TreeWalk, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
    return True


def _in_string(root: Node, byte: int) -> bool:
    found = root.descendant_for_byte_range(byte, byte + 1)
    return found is not None and ("string" in found.type or found.type == "comment")


Handler = Callable[[Any, "Node", int, Owner, Scope], Any]
