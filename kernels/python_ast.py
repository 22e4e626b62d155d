"""Python's `ast` → symbols, CPG nodes with AST edges, and the facts that calls are resolved by, in one iterative pre-order walk.

The invariant: a node belongs to the innermost definition whose range holds it, while a call belongs to the definition that runs it:
decorators, defaults, annotations and bases are run by the scope around the definition. Nodes without a place of their own (`arguments`,
`comprehension`, `withitem`, `match_case`) and the context and operator singletons have no row; their children hang on the node above.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from typing import Any

from raydex.ir.code import Parameter
from raydex.kernels import code_common as common
from raydex.kernels import python_rules as rules
from raydex.kernels.code_common import CodeFile, Definition, Owner, collapsed
from raydex.kernels.code_scopes import Binding, CallSite, Chain, Facts, Scope

_NAME = re.compile(r"(?:(?:async|def|class)\b|\s|\\)+([^\W\d]\w*)")
_UNPLACED = (ast.arguments, ast.comprehension, ast.withitem, ast.match_case)
_SINGLETONS = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.type_ignore)
# fields that never hold nodes
_PLAIN = frozenset(
    {"id", "attr", "name", "arg", "kind", "conversion", "level", "module", "asname", "is_async", "type_comment", "simple", "ctx", "op"}
    | {"ops", "rest", "kwd_attrs", "tag", "type_ignores"}
)
_PLAIN_OF: dict[type[ast.AST], frozenset[str]] = {
    ast.Constant: frozenset({"value"}),
    ast.MatchSingleton: frozenset({"value"}),
    ast.Global: frozenset({"names"}),
    ast.Nonlocal: frozenset({"names"}),
}
# `name` is a node in TypeAlias alone
_NODE_OF: dict[str, frozenset[str]] = {"TypeAlias": frozenset({"name"})}

Entry = tuple[Any, int, Owner, Scope]


def walk_tree(file: CodeFile, tree: ast.Module) -> Facts:
    """All rows of the file but its call edges; returns the facts for `resolve_calls`."""
    walk = _Walk(file)
    walk.run(tree)
    return walk.facts


class _Walk:
    """State of one walk: the stack of (node, parent row, owner of the row, scope of names)."""

    def __init__(self, file: CodeFile) -> None:
        self.file = file
        self.source = file.source
        self.text = file.source.text
        self.facts = rules.new_facts(file)
        self.stack: list[Entry] = []
        self.types: dict[int, Binding] = {}
        self.fstring: ast.AST | None = None
        self.top: set[int] = set()

    def run(self, tree: ast.Module) -> None:
        """The hot loop: about one row a turn; what needs more than a row is in `_SPECIAL`."""
        nodes, source, wide = self.file.nodes, self.source, self.source.wide_lines
        module = self.facts.module
        last = source.line_count
        end = len(self.text) - source.line_starts[last - 1]
        root = nodes.add("Module", -1, module.owner)
        nodes.add_place(1, 0, last, end)
        self.top = {id(statement) for statement in tree.body}
        stack = self.stack
        stack.extend((child, root, module.owner, module) for child in reversed(tree.body))
        pop, push, plans, make_plan, load = stack.pop, stack.append, _PLANS, _plan, ast.Load
        ordinals, count, sized, parents = common.ORDINALS, common.ORDINAL_COUNT, common.sized, nodes.parent
        add_key, add_symbol, add_kind, add_ordinal = nodes.key.append, nodes.symbol_id.append, nodes.kind.append, nodes.ordinal.append
        add_line, add_end_line, add_column = nodes.line.append, nodes.end_line.append, nodes.column.append
        add_end_column, add_parent = nodes.end_column.append, parents.append
        while stack:
            node, parent, owner, scope = pop()
            plan = plans.get(node.__class__)
            if plan is None:
                plan = make_plan(node.__class__)
            kind, fields, special, stores = plan
            if special is not None and not (stores and node.ctx.__class__ is load) and special(self, node, parent, owner, scope):
                continue
            if kind:
                slot = owner.kinds.get(kind)
                if slot is None:
                    slot = owner.kinds[kind] = [owner.head + sized(kind), 0]
                ordinal = slot[1]
                slot[1] = ordinal + 1
                add_key(slot[0] + (ordinals[ordinal] if ordinal < count else sized(str(ordinal))))
                add_symbol(owner.symbol.symbol_id)
                add_kind(kind)
                add_ordinal(ordinal)
                line, end_line = node.lineno, node.end_lineno
                add_line(line)
                add_end_line(end_line)
                if wide:
                    add_column(source.column(line, node.col_offset))
                    add_end_column(source.column(end_line, node.end_col_offset))
                else:
                    add_column(node.col_offset)
                    add_end_column(node.end_col_offset)
                add_parent(parent)
                parent = len(parents) - 1
            for name in fields:
                child = getattr(node, name)
                if child.__class__ is list:
                    for item in reversed(child):
                        if item is not None:
                            push((item, parent, owner, scope))
                elif child is not None:
                    push((child, parent, owner, scope))

    def push_all(self, children: Iterable[ast.AST | None], parent: int, owner: Owner, scope: Scope) -> None:
        """Children in source order onto the stack."""
        self.stack.extend((child, parent, owner, scope) for child in reversed(list(children)) if child is not None)

    def row(self, node: Any, kind: str, parent: int, owner: Owner) -> int:
        source = self.source
        column, end_column = source.column(node.lineno, node.col_offset), source.column(node.end_lineno, node.end_col_offset)
        self.file.nodes.add_place(node.lineno, column, node.end_lineno, end_column)
        return self.file.nodes.add(kind, parent, owner)

    def start(self, node: Any) -> int:
        return self.source.offset(node.lineno, node.col_offset)

    def end(self, node: Any) -> int:
        return self.source.offset(node.end_lineno, node.end_col_offset)

    def segment(self, node: Any) -> str:
        """Source text of a node, "" for none."""
        return self.text[self.start(node) : self.end(node)] if node is not None else ""

    # definitions

    def function(self, node: Any, parent: int, owner: Owner, scope: Scope) -> bool:
        decorators = [self.segment(d) for d in node.decorator_list]
        in_class = scope.kind == "class"
        kind, role = rules.function_kind(node.name, decorators, in_class)
        found = self.definition(node, kind, decorators)
        found.role, found.type = role, collapsed(self.segment(node.returns))
        found.parameters = self.parameters(node.args)
        if role == "overload":
            found.role = rules.overload_role(found)
        if in_class and scope.symbol is not None:
            found.receiver = scope.symbol.qualified_name
        symbol = self.file.add_symbol(found, scope.owner.symbol)
        self.facts.bind(scope, node.name, Binding("def", symbol, overload=role == "overload"))
        mine = Owner(symbol)
        inner = Scope("function", mine, scope, symbol=symbol, self_class=scope if in_class else scope.self_class)
        me = self.row(node, node.__class__.__name__, parent, mine)
        self.push_all(node.body, me, mine, inner)
        self.push_all(getattr(node, "type_params", ()), me, mine, inner)
        self.push_all([node.args, node.returns], me, mine, scope)
        self.push_all(node.decorator_list, me, mine, scope)
        receiver = in_class and "staticmethod" not in decorators
        self.bind_parameters(node.args, inner, scope, scope if receiver else None)
        for name in getattr(node, "type_params", ()):
            inner.bind(name.name, Binding("value"))
        self.apply_decorators(node, scope)
        return True

    def class_(self, node: Any, parent: int, owner: Owner, scope: Scope) -> bool:
        found = self.definition(node, "class", [self.segment(d) for d in node.decorator_list])
        found.bases = [collapsed(self.segment(base)) for base in node.bases]
        symbol = self.file.add_symbol(found, scope.owner.symbol)
        mine = Owner(symbol)
        bases = [_chain(b.value if isinstance(b, ast.Subscript) else b) for b in node.bases]
        inner = Scope("class", mine, scope, symbol=symbol, bases=bases)
        inner.self_class = inner
        self.facts.bind(scope, node.name, Binding("class", symbol, inner))
        places = [("INHERITS", self.start(b), self.end(b), chain) for b, chain in zip(node.bases, bases, strict=True)]
        self.facts.classes.append((inner, places))
        me = self.row(node, "ClassDef", parent, mine)
        self.push_all(node.body, me, mine, inner)
        self.push_all(getattr(node, "type_params", ()), me, mine, inner)
        self.push_all([*node.bases, *node.keywords], me, mine, scope)
        self.push_all(node.decorator_list, me, mine, scope)
        self.apply_decorators(node, scope)
        return True

    def definition(self, node: Any, kind: str, decorators: list[str]) -> Definition:
        """What functions and classes share: ranges, header, docstring."""
        text = self.text
        head = self.start(node)
        start = head
        if node.decorator_list:
            start = max(0, text.rfind("@", 0, self.start(node.decorator_list[0])))
        match = _NAME.match(text, head)
        name_start, name_end = match.span(1) if match else (head, head)
        stop = self.end(node)
        parts = [node.args, *node.args.defaults, *_args(node.args), *node.args.kw_defaults] if hasattr(node, "args") else [*node.bases]
        parts += [getattr(node, "returns", None), *getattr(node, "keywords", ()), *getattr(node, "type_params", ())]
        after = max([name_end, *(self.end(part) for part in parts if hasattr(part, "end_lineno"))])
        colon = rules.header_end(text, after, stop)
        docstring = ast.get_docstring(node, clean=False)
        return Definition(
            node.name,
            kind,
            start,
            stop,
            name_start,
            name_end,
            signature=rules.header(text[head:colon]),
            visibility=rules.visibility(node.name),
            docstring=rules.docstring(docstring) if docstring is not None else rules.comment_above(self.source, start),
            decorators=[collapsed(d) for d in decorators],
        )

    def parameters(self, arguments: ast.arguments) -> list[Parameter]:
        plain = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults)) + [*arguments.defaults]
        out = [self.parameter(a.arg, a, d) for a, d in zip(plain, defaults, strict=True)]
        if arguments.vararg:
            out.append(self.parameter("*" + arguments.vararg.arg, arguments.vararg, None))
        out += [self.parameter(a.arg, a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
        if arguments.kwarg:
            out.append(self.parameter("**" + arguments.kwarg.arg, arguments.kwarg, None))
        return out

    def parameter(self, name: str, argument: ast.arg, default: ast.expr | None) -> Parameter:
        return Parameter(name, collapsed(self.segment(argument.annotation)), collapsed(self.segment(default)))

    def bind_parameters(self, arguments: ast.arguments, inner: Scope, outer: Scope, receiver: Scope | None) -> None:
        """The first parameter of a method is its receiver."""
        for at, argument in enumerate(_args(arguments)):
            first = arguments.posonlyargs[:1] or arguments.args[:1]
            if at == 0 and receiver is not None and first:
                inner.bind(argument.arg, Binding("self", scope=receiver))
            else:
                rules.bind_parameter(inner, argument.arg, self.segment(argument.annotation), outer)

    def apply_decorators(self, node: Any, scope: Scope) -> None:
        """A decorator that is a plain name is called with the definition (those of the language itself are no calls of interest)."""
        for decorator in node.decorator_list:
            chain = _chain(decorator)
            if chain and not rules.is_marker(node.name, chain):
                self.call(decorator, chain, scope)

    # expressions

    def lambda_(self, node: Any, parent: int, owner: Owner, scope: Scope) -> bool:
        inner = Scope("block", scope.owner, scope, self_class=scope.self_class)
        for argument in _args(node.args):
            inner.bind(argument.arg, Binding("value"))
        me = self.row(node, "Lambda", parent, owner)
        self.stack.append((node.body, me, owner, inner))
        self.stack.append((node.args, me, owner, scope))
        return True

    def comprehension(self, node: Any, parent: int, owner: Owner, scope: Scope) -> bool:
        """The first iterable is read in the scope around, the rest inside."""
        inner = Scope("block", scope.owner, scope, self_class=scope.self_class)
        me = self.row(node, node.__class__.__name__, parent, owner)
        for at in range(len(node.generators) - 1, -1, -1):
            part = node.generators[at]
            self.push_all(part.ifs, me, owner, inner)
            self.stack.append((part.iter, me, owner, inner if at else scope))
            self.stack.append((part.target, me, owner, inner))
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self.push_all(values, me, owner, inner)
        return True

    def name(self, node: Any, parent: int, owner: Owner, scope: Scope) -> None:
        self.facts.bind(scope, node.id, self.types.pop(id(node), Binding("value")))

    def named(self, node: Any, parent: int, owner: Owner, scope: Scope) -> None:
        """A walrus binds outside of comprehensions."""
        outer = scope
        while outer.kind == "block" and outer.parent is not None:
            outer = outer.parent
        if outer is not scope:
            self.facts.bind(outer, node.target.id, Binding("value"))

    def assign(self, node: Any, parent: int, owner: Owner, scope: Scope) -> None:
        if len(node.targets) != 1:
            return
        target, value = node.targets[0], node.value
        binding = None
        if isinstance(value, ast.Call):
            chain = _chain(value.func)
            if chain:
                binding = Binding("value", type_chain=chain, type_scope=scope, typed_by="constructor")
        self.target(target, binding, node, scope)

    def annotated(self, node: Any, parent: int, owner: Owner, scope: Scope) -> None:
        annotation = self.segment(node.annotation)
        chain = rules.type_chain(annotation)
        binding = Binding("value" if node.value is not None else "declared")
        if chain:
            binding.type_chain, binding.type_scope, binding.typed_by = chain, scope, "annotation"
        self.target(node.target, binding, node, scope, annotation)

    def target(self, target: Any, binding: Binding | None, node: Any, scope: Scope, annotation: str = "") -> None:
        """A simple target: its type is kept for its binding; a simple one at the top level is a symbol."""
        if isinstance(target, ast.Name) and scope.kind == "module" and id(node) in self.top and target.id not in scope.names:
            constant = target.id.isupper() or "Final" in annotation
            name_start = self.start(target)
            start, end = self.start(node), self.end(node)
            found = Definition(target.id, "constant" if constant else "variable", start, end, name_start, self.end(target))
            found.signature, found.type = collapsed(self.text[start : min(end, start + 300)]), collapsed(annotation)
            found.visibility = rules.visibility(target.id)
            found.docstring = rules.comment_above(self.source, start)
            binding = binding or Binding("value")
            binding.symbol = self.file.add_symbol(found, self.file.module)
        if isinstance(target, (ast.Name, ast.Attribute)) and binding is not None:
            self.types[id(target)] = binding

    def attribute(self, node: Any, parent: int, owner: Owner, scope: Scope) -> None:
        """`self.x = …` makes a field of the class."""
        if not isinstance(node.value, ast.Name):
            return
        found = self.facts.look_up(scope, node.value.id)
        if found and len(found[1]) == 1:
            receiver = found[1][0]
            if receiver.kind in ("self", "class") and receiver.scope is not None:
                receiver.scope.bind_field(node.attr, self.types.pop(id(node), Binding("value")))

    def called(self, node: Any, parent: int, owner: Owner, scope: Scope) -> None:
        self.call(node.func, _chain(node.func), scope)

    def call(self, callee: Any, chain: Chain | None, scope: Scope) -> None:
        start, end = self.start(callee), self.end(callee)
        expression = None
        last = chain[-1] if chain else getattr(callee, "attr", getattr(callee, "id", ""))
        if self.fstring is not None and last and not self.text[start:end].endswith(last):
            expression = ast.unparse(callee)[: common.MAX_EXPRESSION]
            start, end = self.start(self.fstring), self.end(self.fstring)
        self.facts.calls.append(CallSite(scope, chain, start, end, expression))

    def joined(self, node: Any, parent: int, owner: Owner, scope: Scope) -> None:
        """Python 3.11 misplaces what stands inside some f-strings: then the whole string is the evidence."""
        outer = self.fstring
        if outer is None or (outer.end_lineno, outer.end_col_offset) <= (node.lineno, node.col_offset):  # type: ignore[attr-defined]
            self.fstring = node

    # statements that bind

    def import_(self, node: Any, parent: int, owner: Owner, scope: Scope) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self.facts.bind(scope, name, Binding("import", bases=((alias.name if alias.asname else name, ""),)))
            candidates = rules.module_candidates(alias.name, alias.asname or "")
            self.file.add_import(name, candidates, self.start(alias), self.end(alias), rules.import_rule(self.facts, scope, name))

    def import_from(self, node: Any, parent: int, owner: Owner, scope: Scope) -> None:
        module = rules.absolute_module(self.file.request.path, self.file.package, node.level, node.module)
        for alias in node.names:
            if alias.name == "*":
                candidates = [f"{module}:"] if module else []
                self.file.add_import("*", candidates, self.start(node), self.end(node), rules.note_star(self.facts, scope, module))
                continue
            name = alias.asname or alias.name
            self.facts.bind(scope, name, Binding("import", bases=rules.import_bases(module, alias.name)))
            candidates = rules.from_candidates(module, alias.name)
            self.file.add_import(name, candidates, self.start(alias), self.end(alias), rules.import_rule(self.facts, scope, name))

    def global_(self, node: Any, parent: int, owner: Owner, scope: Scope) -> None:
        if scope is not self.facts.module:
            scope.elsewhere.update(dict.fromkeys(node.names, self.facts.module))

    def nonlocal_(self, node: Any, parent: int, owner: Owner, scope: Scope) -> None:
        scope.elsewhere.update(dict.fromkeys(node.names))

    def captured(self, node: Any, parent: int, owner: Owner, scope: Scope) -> None:
        """`except … as name`, `case name`, `case *name`, `case {**name}`."""
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.facts.bind(scope, name, Binding("value"))

    def type_alias(self, node: Any, parent: int, owner: Owner, scope: Scope) -> None:
        start, end = self.start(node), self.end(node)
        found = Definition(node.name.id, "type_alias", start, end, self.start(node.name), self.end(node.name))
        found.signature, found.visibility = collapsed(self.text[start:end]), rules.visibility(node.name.id)
        self.file.add_symbol(found, scope.owner.symbol)


Special = Callable[[_Walk, Any, int, Owner, Scope], Any]

_SPECIAL: dict[str, Special] = {
    "FunctionDef": _Walk.function,
    "AsyncFunctionDef": _Walk.function,
    "ClassDef": _Walk.class_,
    "Lambda": _Walk.lambda_,
    "ListComp": _Walk.comprehension,
    "SetComp": _Walk.comprehension,
    "DictComp": _Walk.comprehension,
    "GeneratorExp": _Walk.comprehension,
    "Name": _Walk.name,
    "NamedExpr": _Walk.named,
    "Assign": _Walk.assign,
    "AnnAssign": _Walk.annotated,
    "Attribute": _Walk.attribute,
    "Call": _Walk.called,
    "JoinedStr": _Walk.joined,
    "Import": _Walk.import_,
    "ImportFrom": _Walk.import_from,
    "Global": _Walk.global_,
    "Nonlocal": _Walk.nonlocal_,
    "ExceptHandler": _Walk.captured,
    "MatchAs": _Walk.captured,
    "MatchStar": _Walk.captured,
    "MatchMapping": _Walk.captured,
    "TypeAlias": _Walk.type_alias,
}

# class → (kind or "" for no row, fields that hold nodes in reverse, special, whether it concerns only stores and deletes)
Plan = tuple[str, tuple[str, ...], Special | None, bool]
_PLANS: dict[type, Plan] = {}


def _plan(cls: type[ast.AST]) -> Plan:
    name = cls.__name__
    plain = (_PLAIN - _NODE_OF.get(name, frozenset())) | _PLAIN_OF.get(cls, frozenset())
    fields = () if issubclass(cls, _SINGLETONS) else tuple(f for f in reversed(cls._fields) if f not in plain)
    kind = "" if issubclass(cls, (*_UNPLACED, *_SINGLETONS)) else name
    _PLANS[cls] = (kind, fields, _SPECIAL.get(name), name in ("Name", "Attribute"))
    return _PLANS[cls]


def _args(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters, the receiver first where there is one."""
    rest = [arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [*arguments.posonlyargs, *arguments.args, *(a for a in rest if a is not None)]


def _chain(node: Any) -> Chain | None:
    """`a.b.c` → ("a", "b", "c"); `super().m` → ("super()", "m"); None for any other expression."""
    names: list[str] = []
    while node.__class__ is ast.Attribute:
        names.append(node.attr)
        node = node.value
    if node.__class__ is ast.Name:
        names.append(node.id)
    elif names and node.__class__ is ast.Call and node.func.__class__ is ast.Name and node.func.id == "super" and not node.args:
        names.append("super()")
    else:
        return None
    names.reverse()
    return tuple(names)
