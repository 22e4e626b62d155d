"""Python source that does not parse → its good symbols by tree-sitter (contracts 27), under the same rules as the `ast` walk.

The invariant: what stands outside the faults keeps the kind, qualified name, discriminator and call positions that the `ast` walk gives;
CPG nodes differ, since the grammars do.
"""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from raydex.ir.code import Parameter, Symbol
from raydex.kernels import python_rules as rules
from raydex.kernels.code_common import CodeFile, Definition, Owner, collapsed
from raydex.kernels.code_scopes import Binding, Chain, Facts, Scope
from raydex.kernels.treesitter import TreeWalk

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

    from raydex.kernels.treesitter import Handler

# a definition at the top level; its decorators are looked for from there upward, since from the first of them downward every line of
# a long run that decorates nothing would read the rest of the run
_DEFINES = rb"(?:(?:async[ \t]++)?def|class)\b"
_OPENINGS = re.compile(rb"^" + _DEFINES, re.MULTILINE)
_CLASS_HEAD = re.compile(rb"(?:@[^\n]*\n(?:[ \t)@#][^\n]*\n)*+)?+class\b[^\n]*:[ \t]*(?:#[^\n]*)?\r?\n")
_INDENT = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*([ \t]+)")
_SPLATS = {"list_splat_pattern": "*", "dictionary_splat_pattern": "**"}
_PATTERNS = frozenset(
    {"pattern_list", "tuple_pattern", "list_pattern", "tuple", "list", "list_splat_pattern", "as_pattern_target", "expression_list"}
    | {"parenthesized_expression", "splat_pattern", "list_splat"}
)
_COMPOUND = frozenset(
    {"block", "function_definition", "class_definition", "decorated_definition", "if_statement", "elif_clause", "else_clause"}
    | {"for_statement", "while_statement", "try_statement", "except_clause", "except_group_clause", "finally_clause", "with_statement"}
    | {"match_statement", "case_clause"}
)


def walk_python(file: CodeFile) -> Facts:
    """All rows of the file but its call edges; returns the facts for `resolve_calls`."""
    walk = PythonWalk(file, rules.new_facts(file), "python")
    walk.run(HANDLERS)
    file.module.docstring = walk.docstring(walk.statements)
    return walk.facts


class PythonWalk(TreeWalk):
    """The walk's state besides the stack: the decorated definition around a definition that comes up."""

    columns_count = True

    def __init__(self, file: CodeFile, facts: Facts, grammar: str) -> None:
        super().__init__(file, facts, grammar, _OPENINGS)
        self.around: dict[int, Node] = {}
        self.top = {child.id for child in self.statements}

    def first_line(self, opening: int) -> int:
        return _with_decorators(self.utf8, opening)

    def piece(self, parser: Parser, start: int, end: int) -> list[Node]:
        """A class with an error that swallowed members is parsed again with its good members alone."""
        root = self.parse_ranges(parser, [(start, end)])
        nodes = root.named_children
        head = _CLASS_HEAD.match(self.utf8, start, end)
        indent = _INDENT.match(self.utf8, head.end(), end) if head is not None else None
        if head is None or indent is None or not root.has_error:
            return nodes
        margin = indent.group(1)
        opening = re.compile(rb"^" + re.escape(margin) + _DEFINES, re.MULTILINE)
        cuts = [_with_decorators(self.utf8, match.start(), margin) for match in opening.finditer(self.utf8, head.end(), end)]
        known = _member_starts(nodes)
        if all(cut + len(margin) in known for cut in cuts):
            return nodes
        parts = [(a, b) for a, b in pairwise([head.end(), *cuts, end]) if self.utf8[a:b].strip()]
        first = (start, head.end())
        good = [part for part in parts if not self.parse_ranges(parser, [first, part]).has_error]
        return self.parse_ranges(parser, [first, *good]).named_children if good else nodes

    def define(self, node: Node, kind: str, name: str, decorators: list[str]) -> Definition:
        outer = self.around.get(node.id, node)
        start, end = self.span(outer)[0], self.source.char_of(_last_statement(outer).end_byte)
        head = self.span(node)[0]
        named = node.child_by_field_name("name")
        name_start, name_end = self.span(named) if named is not None else (head, head)
        body = node.child_by_field_name("body")
        stop = self.span(body)[0] if body is not None else end
        docstring = self.docstring(body.named_children if body is not None else [])
        return Definition(
            name,
            kind,
            start,
            end,
            name_start,
            name_end,
            signature=rules.header(self.text[head:stop]),
            visibility=rules.visibility(name),
            docstring=docstring or rules.comment_above(self.source, start),
            decorators=[collapsed(d) for d in decorators],
        )

    def decorators(self, node: Node) -> list[str]:
        outer = self.around.get(node.id)
        listed = [c for c in outer.named_children if c.type == "decorator"] if outer is not None else []
        return [self.segment(d.named_children[0]) for d in listed if d.named_children]

    def docstring(self, statements: list[Node]) -> str:
        """The string that opens a body."""
        first = next((c for c in statements if c.type != "comment"), None)
        if first is None or first.type not in ("string", "concatenated_string"):
            return ""
        try:
            value = ast.literal_eval(self.segment(first))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return ""
        return rules.docstring(value) if isinstance(value, str) else ""

    def function(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        name = self.segment(node.child_by_field_name("name"))
        if not name:
            return False
        decorators = self.decorators(node)
        in_class = scope.kind == "class"
        kind, role = rules.function_kind(name, decorators, in_class)
        found = self.define(node, kind, name, decorators)
        found.role, found.type = role, collapsed(self.segment(node.child_by_field_name("return_type")))
        parts = self.parameters(node)
        found.parameters = [part for part, _ in parts]
        if role == "overload":
            found.role = rules.overload_role(found)
        if in_class and scope.symbol is not None:
            found.receiver = scope.symbol.qualified_name
        symbol = self.file.add_symbol(found, scope.owner.symbol)
        self.facts.bind(scope, name, Binding("def", symbol, overload=role == "overload"))
        mine = Owner(symbol)
        inner = Scope("function", mine, scope, symbol=symbol, self_class=scope if in_class else scope.self_class)
        receiver = scope if in_class and "staticmethod" not in decorators else None
        for at, (part, annotation) in enumerate(parts):
            if at == 0 and receiver is not None and not part.name.startswith("*"):
                inner.bind(part.name, Binding("self", scope=receiver))
            else:
                rules.bind_parameter(inner, part.name.lstrip("*"), annotation, scope)
        me = self.row(node, parent, mine)
        for child in reversed(node.named_children):
            self.stack.append((child, me, mine, inner if child.type == "block" else scope))
        return True

    def class_(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        name = self.segment(node.child_by_field_name("name"))
        if not name:
            return False
        found = self.define(node, "class", name, self.decorators(node))
        listed = node.child_by_field_name("superclasses")
        bases = [c for c in listed.named_children if c.type not in ("keyword_argument", "comment")] if listed is not None else []
        found.bases = [collapsed(self.segment(base)) for base in bases]
        chains = [self.chain(base.child_by_field_name("value") if base.type == "subscript" else base) for base in bases]
        symbol = self.file.add_symbol(found, scope.owner.symbol)
        mine = Owner(symbol)
        inner = Scope("class", mine, scope, symbol=symbol, bases=chains)
        inner.self_class = inner
        self.facts.bind(scope, name, Binding("class", symbol, inner))
        self.facts.classes.append((inner, [("INHERITS", *self.span(base), chain) for base, chain in zip(bases, chains, strict=True)]))
        me = self.row(node, parent, mine)
        for child in reversed(node.named_children):
            self.stack.append((child, me, mine, inner if child.type == "block" else scope))
        return True

    def decorated(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        inner = node.child_by_field_name("definition")
        if inner is None:
            return False
        self.around[inner.id] = node
        name = self.segment(inner.child_by_field_name("name"))
        for decorator in node.named_children:
            if decorator.type == "decorator" and decorator.named_children:
                callee = decorator.named_children[0]
                chain = self.chain(callee)
                if chain and not rules.is_marker(name, chain):
                    self.call(callee, chain, scope)
        return False

    def parameters(self, node: Node) -> list[tuple[Parameter, str]]:
        """The parameters as written, each with its annotation."""
        listed = node.child_by_field_name("parameters")
        out: list[tuple[Parameter, str]] = []
        for item in listed.named_children if listed is not None else ():
            annotation = collapsed(self.segment(item.child_by_field_name("type")))
            value = collapsed(self.segment(item.child_by_field_name("value")))
            named = item.child_by_field_name("name")
            if named is None and item.type == "typed_parameter" and item.named_children:
                named = item.named_children[0]
            named = named or item
            stars = _SPLATS.get(named.type, "")
            if stars and named.named_children:
                named = named.named_children[0]
            if named.type == "identifier":
                out.append((Parameter(stars + self.segment(named), annotation, value), annotation))
        return out

    def lambda_(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        inner = Scope("block", scope.owner, scope, self_class=scope.self_class)
        for part, _ in self.parameters(node):
            inner.bind(part.name.lstrip("*"), Binding("value"))
        me = self.row(node, parent, owner)
        for child in reversed(node.named_children):
            self.stack.append((child, me, owner, scope if child.type == "lambda_parameters" else inner))
        return True

    def comprehension(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        inner = Scope("block", scope.owner, scope, self_class=scope.self_class)
        me = self.row(node, parent, owner)
        children = node.named_children
        first = next((n for n, c in enumerate(children) if c.type == "for_in_clause"), len(children))
        for at in range(len(children) - 1, -1, -1):
            child = children[at]
            if at == first:
                self.bind_pattern(child.child_by_field_name("left"), inner)
            self.stack.append((child, me, owner, scope if at == first else inner))
        return True

    def loop(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        self.bind_pattern(node.child_by_field_name("left"), scope)
        return False

    def clause(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """Of a comprehension; the first one's names were bound with it."""
        if scope.kind == "block":
            self.bind_pattern(node.child_by_field_name("left"), scope)
        return False

    def bind_pattern(self, pattern: Node | None, scope: Scope) -> None:
        """The names that a target binds; attributes and items bind none."""
        stack = [pattern] if pattern is not None else []
        while stack:
            at = stack.pop()
            if at.type == "identifier":
                self.facts.bind(scope, self.segment(at), Binding("value"))
            elif at.type in _PATTERNS:
                stack.extend(reversed(at.named_children))

    def assigned(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None:
            return False
        annotation = self.segment(node.child_by_field_name("type"))
        chain = rules.type_chain(annotation) if annotation else None
        binding = Binding("declared" if annotation and right is None else "value")
        if chain:
            binding.type_chain, binding.type_scope, binding.typed_by = chain, scope, "annotation"
        elif not annotation and right is not None and right.type == "call":
            chain = self.chain(right.child_by_field_name("function"))
            if chain:
                binding.type_chain, binding.type_scope, binding.typed_by = chain, scope, "constructor"
        if left.type == "attribute":
            self.bind_field(left, binding, scope)
        elif left.type != "identifier":
            self.bind_pattern(left, scope)
        else:
            name = self.segment(left)
            single = node.type == "assignment" and (right is None or right.type != "assignment")
            if single and scope.kind == "module" and node.id in self.top and name not in scope.names:
                binding.symbol = self.add_variable(node, left, name, annotation)
            self.facts.bind(scope, name, binding)
        return False

    def add_variable(self, node: Node, left: Node, name: str, annotation: str) -> Symbol:
        start, end = self.span(node)
        kind = "constant" if name.isupper() or "Final" in annotation else "variable"
        found = Definition(name, kind, start, end, *self.span(left))
        found.signature, found.type = collapsed(self.text[start : min(end, start + 300)]), collapsed(annotation)
        found.visibility, found.docstring = rules.visibility(name), rules.comment_above(self.source, start)
        return self.file.add_symbol(found, self.file.module)

    def bind_field(self, left: Node, binding: Binding, scope: Scope) -> None:
        chain = self.chain(left)
        found = self.facts.look_up(scope, chain[0]) if chain and len(chain) == 2 else None
        if chain and found and len(found[1]) == 1:
            receiver = found[1][0]
            if receiver.kind in ("self", "class") and receiver.scope is not None:
                receiver.scope.bind_field(chain[1], binding)

    def walrus(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        outer = scope
        while outer.kind == "block" and outer.parent is not None:
            outer = outer.parent
        self.bind_pattern(node.child_by_field_name("name"), outer)
        return False

    def alias(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """`… as name` of with, except and case."""
        children = node.named_children
        target = node.child_by_field_name("alias") or (children[-1] if children and children[-1].type == "identifier" else None)
        self.bind_pattern(target, scope)
        return False

    def capture(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        for child in node.named_children:
            if child.type in ("dotted_name", "splat_pattern") and len(child.named_children) == 1:
                self.bind_pattern(child.named_children[0], scope)
        return False

    def called(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        callee = node.child_by_field_name("function")
        while callee is not None and callee.type == "parenthesized_expression" and callee.named_children:
            callee = callee.named_children[0]
        if callee is not None:
            self.call(callee, self.chain(callee), scope)
        return False

    def chain(self, node: Node | None) -> Chain | None:
        """As in the `ast` walk."""
        names: list[str] = []
        while node is not None and node.type == "attribute":
            names.append(self.segment(node.child_by_field_name("attribute")))
            node = node.child_by_field_name("object")
        if node is None:
            return None
        if node.type == "identifier":
            names.append(self.segment(node))
        elif names and node.type == "call" and "".join(self.segment(node).split()) == "super()":
            names.append("super()")
        else:
            return None
        names.reverse()
        return tuple(names)

    def import_(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        for item in node.named_children:
            module = collapsed(self.segment(item.child_by_field_name("name") or item)).replace(" ", "")
            alias = self.segment(item.child_by_field_name("alias"))
            if item.type in ("dotted_name", "aliased_import"):
                name = alias or module.partition(".")[0]
                self.facts.bind(scope, name, Binding("import", bases=((module if alias else name, ""),)))
                candidates = rules.module_candidates(module, alias)
                self.file.add_import(name, candidates, *self.span(item), rules.import_rule(self.facts, scope, name))
        return False

    def import_from(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        named = node.child_by_field_name("module_name")
        written = "".join(self.segment(named).split()) if named is not None else "__future__"
        stem = written.lstrip(".")
        module = rules.absolute_module(self.file.request.path, self.file.package, len(written) - len(stem), stem or None)
        for item in node.named_children:
            if item.type == "wildcard_import":
                candidates = [f"{module}:"] if module else []
                self.file.add_import("*", candidates, *self.span(node), rules.note_star(self.facts, scope, module))
            elif (named is None or item.id != named.id) and item.type in ("dotted_name", "aliased_import"):
                original = self.segment(item.child_by_field_name("name") or item)
                name = self.segment(item.child_by_field_name("alias")) or original
                self.facts.bind(scope, name, Binding("import", bases=rules.import_bases(module, original)))
                candidates = rules.from_candidates(module, original)
                self.file.add_import(name, candidates, *self.span(item), rules.import_rule(self.facts, scope, name))
        return False

    def elsewhere(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        names = [self.segment(c) for c in node.named_children if c.type == "identifier"]
        if node.type == "nonlocal_statement":
            scope.elsewhere.update(dict.fromkeys(names))
        elif scope is not self.facts.module:
            scope.elsewhere.update(dict.fromkeys(names, self.facts.module))
        return False

    def deleted(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        for child in node.named_children:
            self.bind_pattern(child, scope)
        return False

    def type_alias(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        left = node.child_by_field_name("left")
        if left is None:
            return False
        start, end = self.span(node)
        name = self.segment(left).partition("[")[0].strip()
        name_start = self.span(left)[0]
        found = Definition(name, "type_alias", start, end, name_start, name_start + len(name))
        found.signature, found.visibility = collapsed(self.text[start:end]), rules.visibility(name)
        self.facts.bind(scope, name, Binding("value"))
        self.file.add_symbol(found, scope.owner.symbol)
        return False


def _with_decorators(utf8: bytes, line: int, margin: bytes = b"") -> int:
    """Start of the first decorator of a definition whose line begins at `line`: over lines that a decorator may begin or go on with."""
    first = line
    while line > 0:
        line = utf8.rfind(b"\n", 0, line - 1) + 1
        sign = utf8[line + len(margin) : line + len(margin) + 1]
        if not utf8.startswith(margin, line) or sign not in (b" ", b"\t", b")", b"@", b"#"):
            break
        if sign == b"@":
            first = line
    return first


def _member_starts(nodes: list[Node]) -> set[int]:
    """Where the members of a class begin that the tree shows as its members."""
    out: set[int] = set()
    for node in nodes:
        inner = node.child_by_field_name("definition") if node.type == "decorated_definition" else node
        body = inner.child_by_field_name("body") if inner is not None and inner.type == "class_definition" else None
        out.update(child.start_byte for child in (body.named_children if body is not None else ()) if not child.is_error)
    return out


def _last_statement(node: Node) -> Node:
    """The innermost last statement: a block's range in the grammar also takes in comments that follow it."""
    while node.type in _COMPOUND:
        children = [c for c in node.named_children if c.type != "comment"]
        if not children:
            return node
        node = children[-1]
    return node


_W = PythonWalk
HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression"), _W.comprehension),
    **dict.fromkeys(("assignment", "augmented_assignment"), _W.assigned),
    **dict.fromkeys(("import_from_statement", "future_import_statement"), _W.import_from),
    **dict.fromkeys(("global_statement", "nonlocal_statement"), _W.elsewhere),
    **dict.fromkeys(("case_pattern", "dict_pattern", "list_pattern", "tuple_pattern", "keyword_pattern"), _W.capture),
    "function_definition": _W.function,
    "class_definition": _W.class_,
    "decorated_definition": _W.decorated,
    "lambda": _W.lambda_,
    "for_statement": _W.loop,
    "for_in_clause": _W.clause,
    "named_expression": _W.walrus,
    "as_pattern": _W.alias,
    "call": _W.called,
    "import_statement": _W.import_,
    "delete_statement": _W.deleted,
    "type_alias_statement": _W.type_alias,
}
