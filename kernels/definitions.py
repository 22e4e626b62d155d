"""What the modules and classes of one repository and family of languages give by name (contracts 7, 8, 22).

A name of a module means what its symbols, imports and EXPORTS rows say, all of them alike; else what its star imports bring. A member of a
class is looked up along the order of its bases. The invariant: the answer to a name is a function of the rows alone, never of their order
or of what was asked before; a way that leads in a circle gives nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from raydex.kernels.code_scopes import HARMLESS_IMPORTS
from raydex.kernels.importable import Found, Module, PathNames, PythonNames
from raydex.kernels.meanings import distinct_meanings, distinct_paths
from raydex.kernels.once import Answers

# modules and classes on the way to one name: as far as Python's own stack carries
MAX_WAY = 60
MAX_ORDER = 200
TYPE_KINDS = frozenset({"class", "struct", "interface", "trait", "enum"})
# what a module is that is one function or class (`export = f`), and what no star import brings
WHOLE = "export="
NOT_BY_STAR = ("default", WHOLE)


class Names(Protocol):
    """How modules are called in a family of languages."""

    def find(self, name: str, importer: str) -> Found: ...


@dataclass(frozen=True, slots=True)
class Target:
    """A symbol, where it is defined, and how it was found ("": in the module that was asked). `assumed` when an assumption was part of
    the way there."""

    symbol_id: str
    kind: str
    record_id: str
    qualified_name: str
    rule: str = ""
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name leads to. `doubt`: it may be something else as well. `circular`: it leads back to itself and nowhere else."""

    targets: tuple[Target, ...] = ()
    doubt: bool = False
    circular: bool = False


NOTHING = Meaning()
CIRCLE = Meaning(circular=True)
# the classes in which a member is looked up, each with whether an assumption led there; None where a base is unknown
Order = tuple[tuple[str | None, bool], ...]


@dataclass(slots=True)
class Definitions:
    """Fill the fields, in any order, then ask. `bindings`: record → name → candidates; `given`: the same of EXPORTS rows; `bases`: class →
    position → (rule, candidates); `fields`: class → attributes that no symbol stands for."""

    family: str
    modules: dict[str, Module] = field(default_factory=dict)
    symbols: dict[str, dict[str, list[Target]]] = field(default_factory=dict)
    by_id: dict[str, Target] = field(default_factory=dict)
    overloads: set[str] = field(default_factory=set)
    bindings: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    given: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    stars: dict[str, set[str]] = field(default_factory=dict)
    bases: dict[str, dict[int, tuple[str, tuple[str, ...]]]] = field(default_factory=dict)
    fields: dict[str, set[str]] = field(default_factory=dict)
    _names: Names | None = None
    _tails: set[str] = field(default_factory=set)
    _star_records: dict[str, list[tuple[str, bool]]] = field(default_factory=dict)
    _answers: Answers = field(default_factory=lambda: Answers(MAX_WAY))

    @property
    def names(self) -> Names:
        if self._names is None:
            self._settle()
            modules = sorted(self.modules.values(), key=lambda m: (m.symbol_id, m.record_id))
            self._names = PythonNames(modules) if self.family == "python" else PathNames(modules)
        return self._names

    def distinct(self, candidates: Iterable[str]) -> list[str]:
        """One candidate for each thing that may be meant, sorted."""
        return distinct_meanings(candidates) if self.family == "python" else distinct_paths(candidates)

    def refer(self, record_id: str, rule: str, candidates: Iterable[str], *, modules: bool = False) -> tuple[tuple[Target, ...], bool]:
        """(targets, whether there is nothing else that a reference may mean). With `modules`, a module may be meant as such."""
        meanings: list[Meaning] = []
        here = True
        for candidate in self.distinct(candidates):
            meanings.append(self._candidate(record_id, candidate, modules))
            here = here and (":" not in candidate or bool(self.find(candidate, record_id).modules))
        found = _united(meanings)
        if rule == "import_star":
            # a star import of a module that is here and lacks the name brings something else; one that is not here might bring it
            assumed = tuple(replace(t, assumed=t.assumed or not here) for t in found.targets)
            return assumed, len(assumed) == 1 and not any(m.doubt for m in meanings)
        return found.targets, len(found.targets) == 1 and not found.doubt and not rule.startswith("unresolved")

    def find(self, candidate: str, record_id: str) -> Found:
        """The modules that a candidate names, as seen from a file."""
        module = self.modules.get(record_id)
        return self.names.find(candidate.partition(":")[0], module.path if module else "")

    def public(self, record_id: str) -> dict[str, Meaning]:
        """The module's own public names: of Python those without a leading underscore (assumed: no `__all__`), else what is exported."""
        if self.family == "python":
            named = [name for name in self.symbols.get(record_id, {}) if "." not in name and not name.startswith("_")]
            return {name: Meaning(self._at(record_id, name), len(self._table(record_id, name)) > 1) for name in named}
        given = {name: sorted(c for c in found if c[0] == ":") for name, found in self.given.get(record_id, {}).items()}
        return {name: _united([self._of(record_id, c, (), name) for c in own]) for name, own in given.items() if name not in NOT_BY_STAR}

    def member(self, class_id: str, name: str) -> Meaning:
        """Attribute `name` of a class: of the first class in its order of bases that has one."""
        doubt = False
        for at, assumed in self._order_of(class_id):
            if at is None:
                doubt = True
                continue
            owner = self.by_id[at]
            found = self._at(owner.record_id, f"{owner.qualified_name}.{name}")
            hidden = name in self.fields.get(at, ())
            if found or hidden:
                return Meaning(tuple(replace(t, assumed=t.assumed or assumed) for t in found), doubt or hidden)
        return Meaning(doubt=doubt)

    # the way of a name

    def _candidate(self, record_id: str, candidate: str, modules: bool) -> Meaning:
        if ":" not in candidate:
            found = self.by_id.get(candidate)
            return Meaning((replace(found, rule="same_file"),)) if found is not None else NOTHING
        meaning = self._follow(record_id, candidate)
        if modules or all(t.kind != "module" for t in meaning.targets):
            return meaning
        parts = [self._module_value(t) if t.kind == "module" else Meaning((t,)) for t in meaning.targets]
        return replace(_united(parts), doubt=meaning.doubt or any(p.doubt for p in parts))

    def _module_value(self, module: Target) -> Meaning:
        found = self._attribute(module.record_id, (WHOLE,))
        return Meaning(tuple(_by(t, module.rule, module.assumed) for t in found.targets), found.doubt)

    def _follow(self, record_id: str, candidate: str, own: str = "") -> Meaning:
        """The targets of "module:qualified" as seen from a file. An attribute of a package may be a module below it (Python); `own` is the
        name that the file itself gives to the candidate, which cannot be its own meaning."""
        name, _, qualified = candidate.partition(":")
        parts = tuple(qualified.split(".")) if qualified else ()
        circular = False
        for taken in range(len(parts) + 1 if self.family == "python" else 1):
            found = self.find(".".join([*([name] if name else []), *parts[:taken]]), record_id)
            rest = parts[taken:]
            modules = [m for m in found.modules if m.record_id != record_id or not rest or rest[0] != own]
            meanings = [self._attribute(module.record_id, rest) for module in modules]
            targets = _unique(_by(t, t.rule or found.rule, found.assumed) for meaning in meanings for t in meaning.targets)
            if targets:
                return Meaning(targets, any(m.doubt for m in meanings))
            circular = circular or len(modules) < len(found.modules) or any(m.circular for m in meanings)
        return CIRCLE if circular else NOTHING

    def _attribute(self, record_id: str, parts: tuple[str, ...]) -> Meaning:
        """What `parts` mean inside a module."""
        if not parts:
            return Meaning((Target(self.modules[record_id].symbol_id, "module", record_id, ""),))
        found = self._answers.ask((record_id, parts), lambda: self._inside(record_id, parts))
        return CIRCLE if found is None else found  # type: ignore[no-any-return]

    def _inside(self, record_id: str, parts: tuple[str, ...]) -> Meaning:
        name, rest = parts[0], parts[1:]
        candidates = self._table(record_id, name)
        if not candidates and self.family != "python":
            candidates, rest = self._table(record_id, WHOLE), rest if name == "default" else parts
        if candidates:
            return _united([self._of(record_id, candidate, rest, name) for candidate in sorted(candidates)])
        if name.startswith("_") if self.family == "python" else name in NOT_BY_STAR:
            return NOTHING
        return self._by_star(record_id, parts) if record_id in self.stars else NOTHING

    def _by_star(self, record_id: str, parts: tuple[str, ...]) -> Meaning:
        """What star imports bring: of each module that they lead to, the first ones that have the name."""
        seen: dict[str, bool] = {}
        having: list[str] = []
        ahead = [(record_id, False)]
        while ahead:
            at, assumed = ahead.pop()
            if at in seen and seen[at] <= assumed:
                continue
            if at not in seen and at != record_id and self._has(at, parts[0]):
                having.append(at)
            seen[at] = assumed
            if at == record_id or at not in having:
                ahead += [(below, assumed or guess) for below, guess in self._starred(at)]
        meanings = [(self._attribute(at, parts), seen[at]) for at in sorted(having)]
        if not having and self.family == "python" and parts[0] in self._tails:
            # a star import of a package may bring the modules below it
            for at in sorted(seen):
                for star in sorted(self.stars.get(at, ())):
                    found = self.find(f"{star.rstrip(':')}.{parts[0]}", at)
                    meanings += [(self._attribute(m.record_id, parts[1:]), seen[at] or found.assumed) for m in found.modules]
        targets = _unique(_by(t, "import_star", assumed) for meaning, assumed in meanings for t in meaning.targets)
        return Meaning(targets, any(m.doubt for m, _ in meanings), not targets and any(m.circular for m, _ in meanings))

    def _starred(self, record_id: str) -> list[tuple[str, bool]]:
        """The records whose names a module's star imports bring, each with whether that is an assumption: of all, when one of the imported
        modules is not here and may bring any name."""
        known = self._star_records.get(record_id)
        if known is None:
            found = [self.find(star, record_id) for star in sorted(self.stars.get(record_id, ()))]
            elsewhere = not all(f.modules for f in found)
            known = [(m.record_id, f.assumed or elsewhere) for f in found for m in f.modules if m.record_id != record_id]
            self._star_records[record_id] = known
        return known

    def _has(self, record_id: str, name: str) -> bool:
        return bool(self._table(record_id, name)) or (self.family != "python" and bool(self._table(record_id, WHOLE)))

    def _table(self, record_id: str, name: str) -> set[str]:
        given = self.given.get(record_id, {}).get(name, set())
        if self.family != "python":
            return given
        own = {f":{name}"} if name in self.symbols.get(record_id, {}) else set()
        return given | own | self.bindings.get(record_id, {}).get(name, set())

    def _of(self, record_id: str, candidate: str, rest: tuple[str, ...], name: str) -> Meaning:
        """A candidate of a module's table, followed by the names `rest`."""
        module, _, qualified = candidate.partition(":")
        parts = (*([qualified] if qualified else []), *rest)
        if module:
            found = self._follow(record_id, f"{module}:{'.'.join(parts)}", name)
            return replace(found, targets=tuple(replace(t, rule="reexport") for t in found.targets))
        return self._defined(record_id, parts) if qualified else NOTHING

    def _defined(self, record_id: str, parts: tuple[str, ...]) -> Meaning:
        """What the file's own definitions mean by `parts`: members of classes and namespaces, never what lies inside functions."""
        found = Meaning(self._at(record_id, parts[0]))
        for at, name in enumerate(parts[1:], 2):
            # `namespace A.B` is one symbol of that name
            found = self._below(found, name) if found.targets else Meaning(self._at(record_id, ".".join(parts[:at])))
        return found

    def _below(self, holders: Meaning, name: str) -> Meaning:
        meanings: list[Meaning] = []
        for holder in holders.targets:
            if holder.kind in TYPE_KINDS:
                meanings.append(self.member(holder.symbol_id, name))
            elif holder.kind == "namespace":
                meanings.append(Meaning(self._at(holder.record_id, f"{holder.qualified_name}.{name}")))
        doubt = holders.doubt or any(m.doubt for m in meanings) or (self.family == "python" and len(holders.targets) > 1)
        return Meaning(_unique(t for meaning in meanings for t in meaning.targets), doubt)

    # classes

    def _order_of(self, class_id: str) -> Order:
        found = self._answers.ask(class_id, lambda: self._order(class_id))
        return ((None, False),) if found is None else found  # type: ignore[no-any-return]

    def _order(self, class_id: str) -> Order:
        """The class, then its bases depth first, a class that is reached twice at its last place (as in `raydex.kernels.code_calls`)."""
        every: list[tuple[str | None, bool]] = []
        record_id = self.by_id[class_id].record_id
        for _, (rule, candidates) in sorted(self.bases.get(class_id, {}).items()):
            if not HARMLESS_IMPORTS.isdisjoint(candidates):
                continue
            targets, certain = self.refer(record_id, rule, candidates)
            if not certain:
                every.append((None, False))
            for target in targets:
                below = self._order_of(target.symbol_id) if target.kind in TYPE_KINDS else ((None, False),)
                every += [(at, assumed or target.assumed) for at, assumed in below]
        last = {at: n for n, (at, _) in enumerate(every) if at is not None} | {class_id: -1}
        order = [(class_id, False), *(item for n, item in enumerate(every) if item[0] is None or last[item[0]] == n)]
        return tuple(order if len(order) <= MAX_ORDER else [*order[:MAX_ORDER], (None, False)])

    # rows and answers

    def _at(self, record_id: str, qualified_name: str) -> tuple[Target, ...]:
        return tuple(self.symbols.get(record_id, {}).get(qualified_name, ()))

    def _settle(self) -> None:
        """Symbols in the order of their ids; overload signatures only where no implementation stands for them."""
        for module in self.modules.values():
            folder, _, file = module.path.rpartition("/")
            self._tails.update((folder.rpartition("/")[2], file.partition(".")[0]))
        for named in self.symbols.values():
            for name, found in named.items():
                if len(found) > 1:
                    kept = [t for t in found if t.symbol_id not in self.overloads] or found
                    named[name] = sorted(kept, key=lambda t: t.symbol_id)


def _by(target: Target, rule: str, assumed: bool) -> Target:
    return replace(target, rule=rule, assumed=target.assumed or assumed)


def _united(meanings: Sequence[Meaning]) -> Meaning:
    """What several statements say of one name: all of it; one that leads nowhere leaves doubt."""
    targets = _unique(target for meaning in meanings for target in meaning.targets)
    doubt = any(m.doubt or not (m.targets or m.circular) for m in meanings)
    return Meaning(targets, doubt, not targets and any(m.circular for m in meanings))


def _unique(targets: Iterable[Target]) -> tuple[Target, ...]:
    """One target a symbol, in the order of ids; the way that assumes nothing wins, then the first rule by name."""
    best: dict[str, Target] = {}
    for target in targets:
        known = best.get(target.symbol_id)
        if known is None or (target.assumed, target.rule) < (known.assumed, known.rule):
            best[target.symbol_id] = target
    return tuple(best[key] for key in sorted(best))
