"""Scopes and call sites of one file → CALLS, INSTANTIATES, INHERITS and IMPLEMENTS edges (contracts 7, 8, 22).

The invariant: an edge has a target only where the file alone decides which definition is meant, by a named rule; a bare method name
decides nothing. What another file may decide is AMBIGUOUS with `candidates` as "module:qualified" (rule import), the rest AMBIGUOUS with
the symbols that it may be (rule unresolved_call).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from raydex.ir.code import Symbol
from raydex.kernels.code_common import CodeFile
from raydex.kernels.code_names import add_names
from raydex.kernels.code_scopes import HARMLESS_IMPORTS, Binding, CallSite, Chain, Facts, Scope, holder

CALLABLE_KINDS = ("function", "method")
TYPE_KINDS = ("class", "namespace", "type")
WHOLE_CALLEE = 2_000
MAX_ORDER = 200
MAX_NESTED_ORDERS = 40
# bases that bring no methods which a class of the file could mean
HARMLESS_BASES = frozenset({("object",), ("Exception",), ("BaseException",)})


@dataclass(slots=True)
class Meaning:
    """What a dotted name means here: one function or variable (`symbol`), one class (`scope`), or no more than `candidates`."""

    rule: str = "unresolved_call"
    confidence: str = "AMBIGUOUS"
    symbol: Symbol | None = None
    scope: Scope | None = None
    candidates: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Outside:
    """The imported names that the class of a value may be, and the rule that says how sure this is."""

    names: tuple[str, ...]
    rule: str


# the class of a value, with the rule and confidence that say so
Receiver = tuple[Scope, str, str] | Outside | None


def resolve_calls(file: CodeFile, facts: Facts) -> None:
    """Append the edges of all base types and call sites, and what the file's names give to others. A site's position inside its symbol is
    its place in pre-order by range, so that it does not hang on the order in which a front end visits."""
    facts.settle()
    resolver = _Resolver(facts)
    for scope, bases in facts.classes:
        _add_bases(file, resolver, scope, bases)
    facts.calls.sort(key=lambda call: (call.start, -call.end))
    for call in facts.calls:
        meaning = resolver.meaning(call.scope, call.chain) if call.chain else Meaning()
        _add_call(file, resolver, call, meaning)
    add_names(file, facts)


def _add_call(file: CodeFile, resolver: _Resolver, call: CallSite, meaning: Meaning) -> None:
    owner = call.scope.owner
    source, label = owner.symbol.symbol_id, str(owner.next_call())
    start, end = call.start, call.end
    expression = call.expression or file.expression(start, end)
    if end - start > WHOLE_CALLEE and call.chain is None:
        start = max(start, end - WHOLE_CALLEE)
        start = end - len(file.source.text[start:end].rpartition(".")[2].lstrip())
    made_of = meaning.scope.symbol if meaning.scope is not None else None
    if made_of is not None and made_of.kind != "class":
        meaning = Meaning()
    elif meaning.scope is not None and made_of is not None:
        file.add_edge(
            "INSTANTIATES",
            source,
            made_of.symbol_id,
            rule=meaning.rule,
            label=label,
            start=start,
            end=end,
            confidence=meaning.confidence,
            expression=expression,
        )
        made = resolver.member(meaning.scope, resolver.facts.constructor)
        if made.symbol is not None:
            confidence = "INFERRED" if "INFERRED" in (made.confidence, meaning.confidence) else made.confidence
            meaning = Meaning("constructor", confidence, made.symbol)
        elif made.candidates:
            meaning = Meaning("unresolved_call" if meaning.confidence == "INFERRED" else made.rule, candidates=made.candidates)
        else:
            return
    file.add_edge(
        "CALLS",
        source,
        meaning.symbol.symbol_id if meaning.symbol else None,
        rule=meaning.rule,
        label=label,
        start=start,
        end=end,
        confidence=meaning.confidence,
        expression=expression,
        candidates=meaning.candidates,
    )


def _add_bases(file: CodeFile, resolver: _Resolver, scope: Scope, bases: list[tuple[str, int, int, Chain | None]]) -> None:
    if scope.symbol is None or scope.parent is None:
        return
    for number, (relation, start, end, chain) in enumerate(bases):
        meaning = resolver.meaning(scope.parent, chain, types=True) if chain is not None else Meaning()
        target = meaning.scope.symbol if meaning.scope is not None else meaning.symbol
        if target is not None and target.kind in CALLABLE_KINDS:
            continue
        # a base that nothing is known of has a row, too: what stands behind it in the order of bases is not exact
        if target is None and not meaning.candidates and (relation != "INHERITS" or is_harmless(meaning, chain)):
            continue
        rule = "unresolved_base" if meaning.rule == "unresolved_call" else meaning.rule
        file.add_edge(
            relation,
            scope.symbol.symbol_id,
            target.symbol_id if target else None,
            rule="base_type" if target else rule,
            label=str(number),
            start=start,
            end=end,
            confidence="EXTRACTED" if target else "AMBIGUOUS",
            expression=file.expression(start, end),
            candidates=meaning.candidates,
        )


class _Resolver:
    """Look-ups over one file's facts; orders of bases are computed once a class."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._orders: dict[int, list[Scope | list[Binding] | None]] = {}
        self._depth = 0

    def meaning(self, scope: Scope, chain: Chain, *, types: bool = False) -> Meaning:
        """What `chain`, called in `scope`, means; with `types`, as the name of a type: then no value stands on the way to it."""
        root, rest = chain[0], chain[1:]
        if root in self.facts.receivers and not types:
            return self._of_receiver(scope, root, rest)
        found = self.facts.look_up(scope, root)
        if found is None:
            return self._of_unbound(root, rest)
        where, every = found
        held = None if rest else holder(every)
        if held is not None:
            return Meaning("local_name", "EXTRACTED", held)
        bindings = _readable(every, types, bool(rest))
        if not bindings:
            return self._any_of([b for b in every if b.kind in (*TYPE_KINDS, "import")] if types else [], rest)
        if all(b.kind == "import" for b in bindings):
            return Meaning("import", candidates=self._imported(bindings, rest))
        if not rest:
            return self._of_binding(bindings[0], "local_name") if len(bindings) == 1 else self._any_of(bindings, rest)
        receiver = self._receiver(scope, where, bindings)
        return self._any_of(bindings, rest) if receiver is None else self._follow(receiver, rest, types=types)

    def member(self, scope: Scope, name: str, *, after: Scope | None = None) -> Meaning:
        """Attribute `name` of a class, by its order of bases (after class `after`, for super); exact only with no unknown base before."""
        outside: list[str] = []
        unknown = doubt = False
        for at in self._order(scope):
            if isinstance(at, list):
                outside += self._imported(at, (name,))
                doubt = unknown
                continue
            if at is None:
                unknown = True
                continue
            if at is after:
                continue
            bindings = [b for b in at.names.get(name, ()) if b.kind != "declared"]
            implemented = [b for b in bindings if not b.overload] or bindings
            fields = at.fields.get(name, [])
            if not implemented and not fields:
                continue
            if len(implemented) == 1 and not fields and not outside and not unknown:
                return self._of_binding(implemented[0], "class_attribute")
            symbols = [b.symbol.symbol_id for b in implemented if b.symbol is not None]
            return Meaning(candidates=[*outside, *symbols])
        return Meaning("import" if outside and not doubt else "unresolved_call", candidates=outside)

    def _of_unbound(self, root: str, rest: Chain) -> Meaning:
        if root in self.facts.root_names:
            return Meaning("builtin")
        if self.facts.stars:
            name = ".".join((root, *rest))
            return Meaning("import_star", candidates=[f"{module}:{name}" for module in self.facts.stars])
        return Meaning()

    def _any_of(self, bindings: list[Binding], rest: Chain) -> Meaning:
        """What a name, followed by the names `rest`, may be where several statements bind it."""
        candidates = [] if rest else [b.symbol.symbol_id for b in bindings if b.symbol is not None]
        return Meaning(candidates=candidates + self._imported([b for b in bindings if b.kind == "import"], rest))

    def _of_binding(self, binding: Binding, rule: str) -> Meaning:
        if binding.kind == "def" and binding.symbol is not None and binding.symbol.kind in CALLABLE_KINDS:
            return Meaning(rule, "EXTRACTED", binding.symbol)
        if binding.kind in TYPE_KINDS and binding.scope is not None:
            return Meaning(rule, "EXTRACTED", scope=binding.scope)
        if binding.kind == "import":
            return Meaning("import", candidates=self._imported([binding], ()))
        return Meaning()

    def _of_receiver(self, scope: Scope, root: str, rest: Chain) -> Meaning:
        own = scope.self_class
        if own is None:
            return Meaning()
        if root == "this":
            return self._follow((own, "self_method", "EXTRACTED"), rest) if rest else Meaning()
        if root == "super" and not rest:
            meaning = self.member(own, self.facts.constructor, after=own)
        elif len(rest) == 1:
            meaning = self.member(own, rest[0], after=own)
        else:
            return Meaning()
        if meaning.symbol is not None:
            meaning.rule = "super_method"
        return meaning

    def _receiver(self, scope: Scope, where: Scope, bindings: list[Binding]) -> Receiver:
        if len(bindings) == 1:
            binding = bindings[0]
            if binding.kind == "self" and binding.scope is not None:
                return binding.scope, "self_method", "EXTRACTED"
            if binding.kind in TYPE_KINDS and binding.scope is not None:
                return binding.scope, "namespace_member" if binding.kind == "namespace" else "class_attribute", "EXTRACTED"
        typed = self.facts.typed_as(bindings, 1)
        if typed is None:
            return None
        near = _function_of(where) is _function_of(scope)
        return self._type_of(typed, "EXTRACTED" if near or typed.typed_by == "annotation" else "INFERRED")

    def _type_of(self, typed: Binding, confidence: str) -> Receiver:
        if typed.type_chain is None or typed.type_scope is None:
            return None
        meaning = self.meaning(typed.type_scope, typed.type_chain, types=True)
        if meaning.scope is not None:
            return meaning.scope, f"receiver_{typed.typed_by}", confidence
        names = tuple(c for c in meaning.candidates if ":" in c)
        return Outside(names, meaning.rule) if names and typed.type_chain[-1].lstrip("_")[:1].isupper() else None

    def _follow(self, receiver: Receiver, rest: Chain, *, types: bool = False) -> Meaning:
        """The meaning of attributes `rest` of a receiver: nested classes and typed fields on the way, a function or class at the end."""
        for at, name in enumerate(rest):
            if receiver is None:
                return Meaning()
            if isinstance(receiver, Outside):
                tail = ".".join(rest[at:])
                return Meaning(receiver.rule, candidates=[f"{known}{'' if known.endswith(':') else '.'}{tail}" for known in receiver.names])
            scope, rule, confidence = receiver
            if at == len(rest) - 1:
                meaning = self.member(scope, name)
                if meaning.symbol is not None or meaning.scope is not None:
                    meaning.rule, meaning.confidence = rule, confidence
                return meaning
            receiver = self._field(scope, name, rule, confidence, types)
        return Meaning()

    def _field(self, scope: Scope, name: str, rule: str, confidence: str, types: bool) -> Receiver:
        inner = self.member(scope, name)
        if inner.scope is not None:
            return inner.scope, rule, confidence
        if types:
            return None
        for at in self._order(scope):
            if not isinstance(at, Scope):
                return None
            bindings = at.names.get(name, []) + at.fields.get(name, [])
            if bindings:
                typed = self.facts.typed_as(bindings, 1)
                return self._type_of(typed, "EXTRACTED" if typed.typed_by == "annotation" else "INFERRED") if typed else None
        return None

    def _imported(self, bindings: list[Binding], rest: Chain) -> list[str]:
        """`module:qualified` of all that an imported name, followed by the names `rest`, may mean; the longest module first."""
        out: list[str] = []
        for binding in bindings:
            for module, qualified in binding.bases:
                if qualified:
                    out.append(f"{module}:{'.'.join((qualified, *rest))}")
                    continue
                # what is called or extended as a whole is no module, unless a module can be a function or class (`export =`)
                cuts = range(len(rest) - 1, -1, -1) if self.facts.dotted_modules else range(1)
                out += [f"{'.'.join((module, *rest[:cut]))}:{'.'.join(rest[cut:])}" for cut in cuts]
        return list(dict.fromkeys(out))

    def _order(self, scope: Scope) -> list[Scope | list[Binding] | None]:
        """The class, then its bases depth first, a class that is reached twice at its last place; import bindings and None where the
        file does not show the base. (On what Python accepts this is its own order but for rare diamonds.)"""
        known = self._orders.get(id(scope))
        if known is not None:
            return known
        out: list[Scope | list[Binding] | None] = [scope]
        self._orders[id(scope)] = [scope]
        self._depth += 1
        for chain in scope.bases if self._depth <= MAX_NESTED_ORDERS else [None]:
            out += self._base(scope, chain)
        self._depth -= 1
        last = {id(at): n for n, at in enumerate(out) if isinstance(at, Scope)}
        order = [at for n, at in enumerate(out) if not isinstance(at, Scope) or at is scope or last[id(at)] == n]
        if len(order) > MAX_ORDER:
            order[MAX_ORDER:] = [None]
        self._orders[id(scope)] = order
        return order

    def _base(self, scope: Scope, chain: Chain | None) -> list[Scope | list[Binding] | None]:
        if chain is None or scope.parent is None:
            return [None]
        meaning = self.meaning(scope.parent, chain, types=True)
        if meaning.scope is not None:
            return self._order(meaning.scope)
        if meaning.rule in ("import", "import_star"):
            pairs = tuple((module, name) for module, _, name in (c.partition(":") for c in meaning.candidates))
            return [] if not HARMLESS_IMPORTS.isdisjoint(meaning.candidates) else [[Binding("import", bases=pairs)]]
        return [] if is_harmless(meaning, chain) else [None]


def is_harmless(meaning: Meaning, chain: Chain | None) -> bool:
    """Whether a base is a built-in class without methods that a class of the file could mean."""
    return meaning.rule == "builtin" and chain in HARMLESS_BASES


def _readable(bindings: list[Binding], types: bool, dotted: bool) -> list[Binding]:
    """The bindings that count: types and values of one name live side by side in TypeScript, a namespace beside its function or class."""
    if types:
        kept = [b for b in bindings if b.kind in (*TYPE_KINDS, "import")]
        if len(kept) < len(bindings) and not any(b.kind in ("type", "namespace") for b in kept):
            return []
        wanted = "namespace" if dotted else "class"
        return [b for b in kept if b.kind == wanted] or kept
    kept = [b for b in bindings if b.kind != "type"]
    if len(kept) > 1 and any(b.kind == "namespace" for b in kept):
        spaces = [b for b in kept if b.kind == "namespace"]
        return spaces if dotted else [b for b in kept if b.kind != "namespace"]
    return kept


def _function_of(scope: Scope) -> Scope:
    at = scope
    while at.kind == "block" and at.parent is not None:
        at = at.parent
    return at
