"""TypeScript's tree → symbols, CPG nodes with AST edges, and the facts that calls are resolved by.

The invariant: a name is bound in the scope where the language binds it (blocks, functions, classes, namespaces), so that a call is
linked only to what it can mean; `this` is the class of the innermost method, through arrow functions but not through others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from raydex.ir.code import Parameter
from raydex.kernels import typescript_rules as rules
from raydex.kernels.code_common import CodeFile, Definition, Owner, collapsed
from raydex.kernels.code_scopes import Binding, Scope
from raydex.kernels.treesitter import TreeWalk
from raydex.kernels.typescript_exports import export_table, exported_locals
from raydex.kernels.typescript_imports import IMPORT_HANDLERS, bind_require, note_dynamic_import

if TYPE_CHECKING:
    from tree_sitter import Node

    from raydex.kernels.treesitter import Handler

FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function"})


class TypeScriptWalk(TreeWalk):
    """The walk's state besides the stack: what the statement around a definition says of it, kept until the definition comes up."""

    def __init__(self, file: CodeFile, grammar: str) -> None:
        super().__init__(file, rules.new_facts(file), grammar, rules.OPENINGS)
        self.around: dict[int, Node] = {}
        self.named: dict[int, tuple[Node, Node, str]] = {}
        self.decorators: dict[int, list[Node]] = {}
        self.declared: dict[int, str] = {}
        self.public: set[int] = set()
        self.shared: dict[int, tuple[Scope, Scope]] = {}
        self.facts.exports = export_table(self)
        self.exported = exported_locals(self.facts.exports)

    # definitions

    def define(self, node: Node, name: Node | None, kind: str, scope: Scope, *, whole: Node | None = None, title: str = "") -> Definition:
        """What all definitions share: ranges (with `export`, `declare` and decorators), header, comment, visibility."""
        outer = whole or self.around.get(node.id, node)
        start, end = self.span(outer)
        decorators = self.decorators.pop(node.id, [])
        head = start
        if decorators:
            last = self.span(decorators[-1])[1]
            start = min(start, self.span(decorators[0])[0])
            head = last if last > head else head
        named = name or next((c for c in outer.children if c.type == "default"), None)
        name_start, name_end = self.span(named) if named is not None else (head, head)
        body = node.child_by_field_name("body")
        stop = self.span(body)[0] if body is not None else end
        in_class = scope.kind == "class"
        exported = scope.kind == "module" and (title or self.segment(name)) in self.exported
        label = title or _member_name(self.segment(name))
        return Definition(
            label,
            kind,
            start,
            end,
            name_start,
            name_end,
            signature=rules.signature(self.text[head:stop]),
            visibility="public" if exported else self.visibility(node, outer, label, in_class),
            docstring=rules.comment_above(self.source, start),
            receiver=scope.symbol.qualified_name if in_class and scope.symbol is not None else "",
            decorators=[collapsed(self.segment(d)).removeprefix("@") for d in decorators],
        )

    def visibility(self, node: Node, outer: Node, name: str, in_class: bool) -> str:
        if in_class:
            modifier = next((c for c in node.named_children[:3] if c.type == "accessibility_modifier"), None)
            return self.segment(modifier) or ("private" if name.startswith("#") else "public")
        return "public" if outer.type == "export_statement" or node.id in self.public else "internal"

    def parameters(self, node: Node, inner: Scope, outer: Scope) -> list[Parameter]:
        """The parameters as written; their names are bound in `inner`. Parameter properties are fields of the class."""
        single = node.child_by_field_name("parameter")
        if single is not None:
            inner.bind(self.segment(single), Binding("value"))
            return [Parameter(self.segment(single))]
        listed = node.child_by_field_name("parameters")
        out: list[Parameter] = []
        for item in listed.named_children if listed is not None else ():
            if item.type not in ("required_parameter", "optional_parameter"):
                continue
            pattern, kind = item.child_by_field_name("pattern"), item.child_by_field_name("type")
            if pattern is None:
                continue
            name = collapsed(self.segment(pattern)) + ("?" if item.type == "optional_parameter" else "")
            annotation = collapsed(self.segment(kind)).removeprefix(":").strip()
            out.append(Parameter(name, annotation, collapsed(self.segment(item.child_by_field_name("value")))))
            binding = self.typed(kind, outer)
            for bound in rules.pattern_names(pattern):
                plain = bound.id == pattern.id
                inner.bind(self.segment(bound), binding if plain else Binding("value"))
            if outer.kind == "class" and any(c.type in ("accessibility_modifier", "readonly", "override_modifier") for c in item.children):
                outer.bind_field(self.segment(pattern), binding)
        return out

    def typed(self, annotation: Node | None, scope: Scope, value: Node | None = None, kind: str = "value") -> Binding:
        """A binding whose class is that of its annotation, else that of the `new` expression which is its value."""
        chain = rules.type_chain(annotation)
        if chain is not None:
            return Binding(kind, type_chain=chain, type_scope=scope, typed_by="annotation")
        if annotation is None and value is not None and value.type == "new_expression":
            chain = rules.callee_chain(value.child_by_field_name("constructor"))
            if chain is not None:
                return Binding(kind, type_chain=chain, type_scope=scope, typed_by="constructor")
        return Binding(kind)

    def enter_function(self, node: Node, parent: int, owner: Owner, scope: Scope, inner: Scope, mine: Owner) -> bool:
        """Row of a function and its children: all of them are read inside."""
        me = self.row(node, parent, mine)
        self.push_all(node.named_children, me, mine, inner)
        return True

    def function(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """Function declarations and overload signatures."""
        name = node.child_by_field_name("name")
        return self.add_function(node, name, self.around.get(node.id, node), self.segment(name) or "default", parent, owner, scope)

    def add_function(self, node: Node, name: Node | None, whole: Node, title: str, parent: int, owner: Owner, scope: Scope) -> bool:
        member = scope.kind == "class"
        words = _words(node)
        accessor = "getter" if "get" in words else "setter" if "set" in words else ""
        kind = "property" if accessor else "method" if member else "function"
        found = self.define(node, name, kind, scope, whole=whole, title=title)
        arrow = node.type == "arrow_function"
        inner = Scope("function", scope.owner, scope, self_class=scope.self_class if arrow or member else None)
        found.parameters = self.parameters(node, inner, scope)
        found.type = collapsed(self.segment(node.child_by_field_name("return_type"))).removeprefix(":").strip()
        overload = node.child_by_field_name("body") is None
        found.role = f"{'static' if 'static' in words and member else ''}{accessor}"
        if overload:
            found.role += f"({', '.join(p.type for p in found.parameters)})"
        symbol = self.file.add_symbol(found, scope.owner.symbol)
        self.bind(scope, found.name, Binding("def", symbol, overload=overload), exported=found.visibility == "public")
        mine = inner.owner = Owner(symbol)
        inner.symbol = symbol
        return self.enter_function(node, parent, owner, scope, inner, mine)

    def function_value(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """A function expression: a symbol when a declaration, field or default export names it, else part of the symbol around."""
        named = self.named.pop(node.id, None)
        if named is not None:
            name, whole, title = named
            return self.add_function(node, name if name.id != node.id else None, whole, title, parent, owner, scope)
        inner = Scope("function", scope.owner, scope, self_class=scope.self_class if node.type == "arrow_function" else None)
        own = node.child_by_field_name("name")
        if own is not None:
            inner.bind(self.segment(own), Binding("value"))
        self.parameters(node, inner, Scope("block", scope.owner, scope))
        return self.enter_function(node, parent, owner, scope, inner, owner)

    def method(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """A method of a class or interface; one of an object literal is part of the symbol around."""
        if scope.kind == "class":
            return self.add_function(node, node.child_by_field_name("name"), node, "", parent, owner, scope)
        return self.function_value(node, parent, owner, scope)

    def class_(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        name, whole, title = node.child_by_field_name("name"), self.around.get(node.id, node), ""
        named = self.named.pop(node.id, None)
        if named is not None:
            outer_name, whole, title = named
            name = outer_name if outer_name.id != node.id else name
        elif node.type == "class" and scope.kind != "module":
            title = self.segment(name)
        if name is None and not title:
            return self.anonymous_class(node, parent, owner, scope)
        own = [c for c in node.named_children if c.type == "decorator"]
        if own:
            self.decorators.setdefault(node.id, []).extend(own)
        found = self.define(node, name, "class", scope, whole=whole, title=title)
        bases = self.bases(node)
        found.bases = [text for _, text, _, _, _ in bases]
        symbol = self.file.add_symbol(found, scope.owner.symbol)
        mine = Owner(symbol)
        chains = [chain for relation, _, _, _, chain in bases if relation == "INHERITS"]
        inner = Scope("class", mine, scope, symbol=symbol, bases=chains)
        inner.self_class = inner
        self.bind(scope, found.name, Binding("class", symbol, inner), exported=found.visibility == "public")
        self.facts.classes.append((inner, [(relation, start, end, chain) for relation, _, start, end, chain in bases]))
        me = self.row(node, parent, mine)
        for child in reversed(node.named_children):
            inside = child.type in ("class_body", "interface_body", "object_type")
            self.stack.append((child, me, mine, inner if inside else scope))
        return True

    def anonymous_class(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """A class without a name is no symbol; nothing in it is `this` of a class that has one."""
        self.decorators.pop(node.id, None)
        inner = Scope("block", scope.owner, scope)
        me = self.row(node, parent, owner)
        for child in reversed(node.named_children):
            self.stack.append((child, me, owner, inner if child.type == "class_body" else scope))
        return True

    def bases(self, node: Node) -> list[tuple[str, str, int, int, Any]]:
        """(relation, text as written, start, end, dotted name) of the types after extends and implements."""
        out: list[tuple[str, str, int, int, Any]] = []
        clauses = [c for c in node.named_children if c.type in ("class_heritage", "extends_type_clause")]
        clauses = [c for clause in clauses for c in (clause.named_children if clause.type == "class_heritage" else [clause])]
        for clause in clauses:
            relation = "IMPLEMENTS" if clause.type == "implements_clause" else "INHERITS"
            for base in clause.named_children:
                if base.type in ("comment", "type_arguments"):
                    continue
                start, end = self.span(base)
                whole = base.next_named_sibling if clause.type == "extends_clause" else None
                stop = self.span(whole)[1] if whole is not None and whole.type == "type_arguments" else end
                name = base.child_by_field_name("name") if base.type == "generic_type" else None
                if name is not None:
                    start, end = self.span(name)
                out.append((relation, collapsed(self.text[start:stop]), start, end, rules.type_chain(base)))
        return out

    def interface(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """Interfaces of one name are one type with several symbols (declaration merging)."""
        name = node.child_by_field_name("name")
        found = self.define(node, name, "interface", scope)
        bases = self.bases(node)
        found.bases = [text for _, text, _, _, _ in bases]
        symbol = self.file.add_symbol(found, scope.owner.symbol)
        mine = Owner(symbol)
        exported = found.visibility == "public"
        home = self.shared[id(scope)][1] if exported and id(scope) in self.shared else scope
        merged = next((b.scope for b in home.names.get(found.name, ()) if b.kind == "type" and b.scope is not None), None)
        inner = Scope("class", mine, scope, symbol=symbol, bases=[chain for _, _, _, _, chain in bases])
        if merged is None:
            home.bind(found.name, Binding("type", symbol, inner))
        else:
            inner.names = merged.names
            merged.bases += inner.bases
        self.facts.classes.append((inner, [(relation, start, end, chain) for relation, _, start, end, chain in bases]))
        me = self.row(node, parent, mine)
        self.push_all(node.named_children, me, mine, inner)
        return True

    def plain_type(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """Enums and type aliases."""
        enum = node.type == "enum_declaration"
        found = self.define(node, node.child_by_field_name("name"), "enum" if enum else "type_alias", scope)
        symbol = self.file.add_symbol(found, scope.owner.symbol)
        mine = Owner(symbol)
        inner = Scope("class", mine, scope, symbol=symbol)
        binding = Binding("class", symbol, inner) if enum else Binding("type", symbol)
        self.bind(scope, found.name, binding, exported=found.visibility == "public")
        me = self.row(node, parent, mine)
        self.push_all(node.named_children, me, mine, inner)
        return True

    def namespace(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """`namespace A.B {}` and `declare module "x" {}`. Namespaces of one name share what they export; what they do not is seen in
        its own block only. All of a declared one is exported."""
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            return False
        found = self.define(node, name, "namespace", scope)
        symbol = self.file.add_symbol(found, scope.owner.symbol)
        mine = Owner(symbol)
        shared = scope
        parts = found.name.split(".") if name.type == "nested_identifier" else [found.name]
        for part in parts:
            known = next((b.scope for b in shared.names.get(part, ()) if b.kind == "namespace" and b.scope is not None), None)
            if known is None:
                known = Scope("namespace", mine, scope, symbol=symbol)
                self.bind(shared, part, Binding("namespace", symbol, known), exported=found.visibility == "public")
            shared = known
        inner = shared
        if self.around.get(node.id, node).type != "ambient_declaration":
            inner = Scope("namespace", mine, shared, symbol=symbol)
            self.shared[id(inner)] = (inner, shared)
        me = self.row(node, parent, mine)
        block = self.row(body, me, mine)
        self.push_all(body.named_children, block, mine, inner)
        self.stack.append((name, me, mine, inner))
        return True

    def bind(self, scope: Scope, name: str, binding: Binding, *, exported: bool) -> None:
        """Bind a declaration; what a namespace exports is bound where all namespaces of its name see it."""
        shared = self.shared.get(id(scope)) if exported else None
        (shared[1] if shared is not None else scope).bind(name, binding)

    def field(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """A field of a class: a method when its value is a function, else a typed name."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or scope.kind != "class":
            return False
        if value is not None and value.type in FUNCTION_VALUES:
            self.named[value.id] = (name, node, "")
        else:
            scope.bind(self.segment(name), self.typed(node.child_by_field_name("type"), scope, value))
        return False

    def variable(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """A declarator: a function or class when its value is one, an exported constant or variable at the top, else a name."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return False
        word = self.declared.get(node.id, "")
        target = _function_scope(scope) if word == "var" else scope
        if value is not None and bind_require(self, node, name, value, target):
            return False
        if name.type != "identifier":
            self.bind_pattern(name, target)
            return False
        whole = self.around.get(node.id, node)
        if value is not None and value.type in FUNCTION_VALUES | {"class"}:
            self.named[value.id] = (name, whole, self.segment(name))
            if node.id in self.public:
                self.public.add(value.id)
            return False
        binding, label = self.typed(node.child_by_field_name("type"), scope, value), self.segment(name)
        exported = scope.kind == "module" and label in self.exported and not any(b.symbol for b in scope.names.get(label, ()))
        self.bind(target, label, binding, exported=node.id in self.public)
        if exported or (node.id in self.public and scope.kind in ("module", "namespace")):
            found = self.define(node, name, "constant" if word == "const" else "variable", scope, whole=whole)
            found.type = collapsed(self.segment(node.child_by_field_name("type"))).removeprefix(":").strip()
            binding.symbol = self.file.add_symbol(found, scope.owner.symbol)
        return False

    # statements around definitions

    def declaration(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """`const a = …, b = …`: a single declarator has the range of its statement."""
        declarators = [c for c in node.named_children if c.type == "variable_declarator"]
        outer = self.around.get(node.id, node)
        for declarator in declarators:
            self.declared[declarator.id] = node.children[0].type
            if len(declarators) == 1:
                self.around[declarator.id] = outer
            if outer.type == "export_statement":
                self.public.add(declarator.id)
        return False

    def wrapped(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """`export …`, `declare …` and `namespace` as a statement: the definition inside has the range of the statement."""
        if node.type == "expression_statement" and not (node.named_children and node.named_children[0].type == "internal_module"):
            return False
        outer = self.around.get(node.id, node)
        inner = node.child_by_field_name("declaration")
        value = node.child_by_field_name("value")
        children = node.named_children
        decorators = [c for c in children if c.type == "decorator"]
        target = inner or next((c for c in children if c.type not in ("decorator", "comment")), None)
        if target is not None:
            self.around[target.id] = outer
            if decorators:
                self.decorators[target.id] = decorators
        if value is not None and value.type in FUNCTION_VALUES | {"class"}:
            name = value.child_by_field_name("name")
            self.named[value.id] = (name or value, node, self.segment(name) or "default")
        return False

    def body(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """A class body: decorators belong to the member that follows them."""
        pending: list[Node] = []
        for child in node.named_children:
            if child.type == "decorator":
                pending.append(child)
            elif child.type != "comment" and pending:
                self.decorators[child.id] = pending
                pending = []
        return False

    def decorated(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """A decorator that is a plain name is called with the definition."""
        inner = node.named_children[0] if node.named_children else None
        chain = rules.callee_chain(inner) if inner is not None and inner.type in ("identifier", "member_expression") else None
        if inner is not None and chain:
            self.call(inner, chain, scope)
        return False

    # scopes and names

    def block(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        inner = Scope("block", scope.owner, scope, self_class=scope.self_class)
        if node.type == "catch_clause":
            self.bind_pattern(node.child_by_field_name("parameter"), inner)
        elif node.type == "for_in_statement" and node.child_by_field_name("kind") is not None:
            kind = self.segment(node.child_by_field_name("kind"))
            self.bind_pattern(node.child_by_field_name("left"), _function_scope(scope) if kind == "var" else inner)
        me = self.row(node, parent, owner)
        self.push_all(node.named_children, me, owner, inner)
        return True

    def bind_pattern(self, pattern: Node | None, scope: Scope) -> None:
        for bound in rules.pattern_names(pattern) if pattern is not None else ():
            scope.bind(self.segment(bound), Binding("value"))

    def assigned(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        """Assignments: to names of this or an outer scope, and to `this.field`."""
        left = node.child_by_field_name("left") or node.child_by_field_name("argument")
        value = node.child_by_field_name("right") if node.type == "assignment_expression" else None
        if left is None:
            return False
        if left.type == "member_expression":
            holder, name = left.child_by_field_name("object"), left.child_by_field_name("property")
            if holder is not None and holder.type == "this" and scope.self_class is not None:
                scope.self_class.bind_field(self.segment(name), self.typed(None, scope, value))
            return False
        for bound in rules.pattern_names(left):
            self.facts.assigned.append((scope, self.segment(bound), self.typed(None, scope, value)))
        return False

    def property(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        if scope.kind == "class":
            kind = self.typed(node.child_by_field_name("type"), scope, kind="value")
            scope.bind(self.segment(node.child_by_field_name("name")), kind)
        return False

    # calls

    def called(self, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
        callee = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        if callee is None:
            return False
        if callee.type == "import":
            note_dynamic_import(self, node)
        else:
            self.call(callee, rules.callee_chain(callee), scope)
        return False


def _member_name(text: str) -> str:
    """The name of a member as written; quotes of a string name are dropped."""
    return text[1:-1] if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0] else collapsed(text)


def _words(node: Node) -> set[str]:
    """The keywords before a member's name."""
    words: set[str] = set()
    for at, child in enumerate(node.children):
        if node.field_name_for_child(at) in ("name", "parameters", "parameter"):
            break
        words.add(child.type)
    return words


def _function_scope(scope: Scope) -> Scope:
    while scope.kind == "block" and scope.parent is not None:
        scope = scope.parent
    return scope


_W = TypeScriptWalk
HANDLERS: dict[str, Handler] = {
    **IMPORT_HANDLERS,
    **dict.fromkeys(("function_declaration", "generator_function_declaration", "function_signature"), _W.function),
    **dict.fromkeys(FUNCTION_VALUES, _W.function_value),
    **dict.fromkeys(("method_definition", "method_signature", "abstract_method_signature"), _W.method),
    **dict.fromkeys(("class_declaration", "abstract_class_declaration", "class"), _W.class_),
    **dict.fromkeys(("enum_declaration", "type_alias_declaration"), _W.plain_type),
    **dict.fromkeys(("internal_module", "module"), _W.namespace),
    **dict.fromkeys(("lexical_declaration", "variable_declaration"), _W.declaration),
    **dict.fromkeys(("ambient_declaration", "expression_statement"), _W.wrapped),
    **dict.fromkeys(("statement_block", "for_statement", "for_in_statement", "catch_clause", "switch_body", "object"), _W.block),
    **dict.fromkeys(("assignment_expression", "augmented_assignment_expression", "update_expression"), _W.assigned),
    **dict.fromkeys(("call_expression", "new_expression"), _W.called),
    "interface_declaration": _W.interface,
    "public_field_definition": _W.field,
    "property_signature": _W.property,
    "variable_declarator": _W.variable,
    "class_body": _W.body,
    "decorator": _W.decorated,
}
