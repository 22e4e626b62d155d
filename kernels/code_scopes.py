"""What a file's names mean: lexical scopes, their bindings, classes and their order of bases; the facts that calls are resolved by.

A front end (Python's `ast`, tree-sitter) only notes bindings, imports and call sites here; no syntax tree is known to this module. The
invariant: a look-up gives every binding of the name in the innermost scope that has one, so that a name bound twice is never exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from raydex.ir.code import Symbol
from raydex.kernels.code_common import Owner

Chain = tuple[str, ...]
# base classes from elsewhere that bring no methods which a class could mean
HARMLESS_IMPORTS = frozenset({"abc:ABC", "typing:Generic", "typing:Protocol", "typing_extensions:Protocol"})


@dataclass(slots=True)
class Binding:
    """One way in which a name gets its value.

    `kind`: def, class, namespace, type (an interface or alias: no value), import, self (the receiver parameter of a method), value
    (parameter, assignment, loop …), declared (an annotation without a value). `symbol` of a value: the variable that the name is, where
    it has a row. `bases` of an import: (module, qualified part) pairs that the name may stand for. `type_chain` is the dotted name of
    the value's class, read in `type_scope`; `typed_by` says from what: annotation or constructor.
    """

    kind: str
    symbol: Symbol | None = None
    scope: Scope | None = None
    bases: tuple[tuple[str, str], ...] = ()
    type_chain: Chain | None = None
    type_scope: Scope | None = None
    typed_by: str = ""
    overload: bool = False


@dataclass(slots=True)
class Scope:
    """A lexical scope. `kind`: module, namespace, class, function, block (comprehension, braces). `owner` holds the calls made in it.

    `elsewhere`: names that `global` (a scope) or `nonlocal` (None) send away. Of a class: `bases` are the dotted names of its base types
    (None: an expression), read in `parent`; `fields` are the attributes set on its instances.
    """

    kind: str
    owner: Owner
    parent: Scope | None = None
    names: dict[str, list[Binding]] = field(default_factory=dict)
    elsewhere: dict[str, Scope | None] = field(default_factory=dict)
    symbol: Symbol | None = None
    self_class: Scope | None = None
    bases: list[Chain | None] = field(default_factory=list)
    fields: dict[str, list[Binding]] = field(default_factory=dict)

    def bind(self, name: str, binding: Binding) -> None:
        """Note a binding made in this scope."""
        found = self.names.get(name)
        if found is None:
            self.names[name] = [binding]
        else:
            found.append(binding)

    def bind_field(self, name: str, binding: Binding) -> None:
        self.fields.setdefault(name, []).append(binding)


@dataclass(slots=True)
class CallSite:
    """A call: the callee's place (code points), and its dotted name (None: an expression)."""

    scope: Scope
    chain: Chain | None
    start: int
    end: int
    expression: str | None = None


@dataclass(slots=True)
class Facts:
    """What one file says about its names. `stars` are the modules of `import *`; `root_names` the built-in names.

    The language's rules: `receivers` are the roots of a chain that mean the class around or its bases, `constructor` is the name of a
    class's constructor, `class_scope_visible` whether a class body sees its own names, `annotations_hold` whether an annotated name can
    only hold its type, `dotted_modules` whether `a.b` may be module b of package a.

    `exports`: public name → what it stands for (":local", "module:qualified", ":" for an expression), in a language where a module says so;
    None where importers see all names of a module.
    """

    module: Scope
    root_names: frozenset[str]
    receivers: frozenset[str]
    constructor: str
    class_scope_visible: bool
    annotations_hold: bool
    dotted_modules: bool
    classes: list[tuple[Scope, list[tuple[str, int, int, Chain | None]]]] = field(default_factory=list)
    calls: list[CallSite] = field(default_factory=list)
    stars: list[str] = field(default_factory=list)
    exports: dict[str, list[str]] | None = None
    assigned: list[tuple[Scope | None, str, Binding]] = field(default_factory=list)

    def bind(self, scope: Scope, name: str, binding: Binding) -> None:
        """Note a binding, in its scope or where `global` and `nonlocal` send it."""
        if scope.elsewhere and name in scope.elsewhere:
            target = scope.elsewhere[name]
            if target is None:
                self.assigned.append((scope.parent, name, binding))
            else:
                target.bind(name, binding)
        else:
            scope.bind(name, binding)

    def is_global(self, scope: Scope, name: str) -> bool:
        """Whether binding `name` in `scope` binds a name of the module."""
        return scope.elsewhere.get(name, scope) is self.module

    def settle(self) -> None:
        """Assignments to names of outer scopes go to the innermost one that has the name; to be called when all bindings are known."""
        for scope, name, binding in self.assigned:
            while scope is not None and (scope.kind == "class" or name not in scope.names):
                scope = scope.parent
            if scope is not None:
                scope.names[name].append(binding)
        self.assigned.clear()

    def look_up(self, scope: Scope, name: str) -> tuple[Scope, list[Binding]] | None:
        """The innermost scope that binds `name`, and all of its bindings there. Class scopes are seen from inside only (Python)."""
        at: Scope | None = scope
        while at is not None:
            if at.elsewhere and name in at.elsewhere:
                target = at.elsewhere[name]
                if target is not None:
                    found = target.names.get(name)
                    return (target, effective(found)) if found else None
            elif at.kind != "class" or (self.class_scope_visible and at is scope):
                found = at.names.get(name)
                if found:
                    return at, effective(found)
            at = at.parent
        return None

    def typed_as(self, bindings: list[Binding], only: int = 1) -> Binding | None:
        """The binding that says of what class a name's value is: its annotation, or the constructor call of its single assignment."""
        declared = [b for b in bindings if b.typed_by == "annotation"]
        values = [b for b in bindings if b.kind != "declared"]
        if len(declared) == 1 and (self.annotations_hold or len(values) <= only):
            return declared[0]
        if not declared and len(values) == 1 and values[0].typed_by == "constructor":
            return values[0]
        return None


def effective(bindings: list[Binding]) -> list[Binding]:
    """Without the overload signatures that an implementation stands for."""
    if len(bindings) < 2 or not any(b.overload for b in bindings):
        return bindings
    return [b for b in bindings if not b.overload] or bindings


def holder(bindings: list[Binding]) -> Symbol | None:
    """The variable that a name is, when nothing but values is bound to it and one symbol stands for it: however often it is set, what is
    called or extended by the name is what the variable holds."""
    symbols: dict[str, Symbol] = {}
    for binding in bindings:
        if binding.kind not in ("value", "declared"):
            return None
        if binding.symbol is not None:
            symbols[binding.symbol.symbol_id] = binding.symbol
    return next(iter(symbols.values())) if len(symbols) == 1 else None


def has_other_values(bindings: list[Binding]) -> bool:
    """Whether a name may stand for a value that no symbol and no import stands for."""
    return any(b.kind == "value" and b.symbol is None for b in bindings) and holder(bindings) is None
