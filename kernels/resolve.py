"""Imports, symbols and open references of one repository → the symbols that the references mean (contracts 7, 8, 22).

A reference is a list of candidates "module:qualified" as one file alone could tell; here they meet the modules of the whole repository.
The invariant: one target is EXTRACTED, or INFERRED where an assumption decided; several are AMBIGUOUS each; none means external and
gives no row. Nothing depends on the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from raydex.kernels.importable import ALIASES, Found, Module, PathNames, PythonNames

MAX_ROUNDS = 4
TYPE_KINDS = frozenset({"class", "struct", "interface", "trait", "enum"})
CONSTRUCTORS = {"python": ("__init__",), "script": ("constructor",)}
FAMILIES = {"python": "python", "typescript": "script", "tsx": "script", "javascript": "script", "jsx": "script"}


class Names(Protocol):
    """How modules are called in a family of languages."""

    def find(self, name: str, importer: str) -> Found: ...


@dataclass(frozen=True, slots=True)
class Target:
    """A symbol, where it is defined, and how it was found. `assumed` when an assumption was part of the way there."""

    symbol_id: str
    kind: str
    record_id: str
    qualified_name: str
    rule: str
    assumed: bool


@dataclass(frozen=True, slots=True)
class Resolution:
    """An edge that a reference turned into."""

    target: str
    relation: str
    rule: str
    confidence: str


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What one candidate leads to; `here` when its module is in the repository."""

    targets: tuple[Target, ...]
    here: bool


@dataclass(slots=True)
class Repository:
    """Definitions of one repository and family of languages. Fill it with the `add_…` functions, in any order, then `resolve`."""

    family: str
    modules: dict[str, Module] = field(default_factory=dict)
    symbols: dict[str, dict[str, list[tuple[str, str]]]] = field(default_factory=dict)
    bindings: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    stars: dict[str, set[str]] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    _names: Names | None = None
    _by_id: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    _answers: dict[tuple[str, ...], list[Resolution]] = field(default_factory=dict)
    _known: dict[tuple[str, str, int], tuple[Target, ...]] = field(default_factory=dict)

    def add_module(self, symbol_id: str, record_id: str, path: str) -> None:
        self.modules[record_id] = Module(symbol_id, record_id, path)

    def add_symbol(self, symbol_id: str, record_id: str, qualified_name: str, kind: str) -> None:
        self.symbols.setdefault(record_id, {}).setdefault(qualified_name, []).append((symbol_id, kind))
        self._by_id[symbol_id] = (kind, record_id, qualified_name)

    def add_default(self, record_id: str, qualified_name: str) -> None:
        """What a module exports as `default` (TypeScript, JavaScript)."""
        self.defaults[record_id] = qualified_name

    def add_binding(self, record_id: str, name: str, candidates: Iterable[str], star: bool = False) -> None:
        """An import: `name` is what it binds; a star import binds every public name of its modules."""
        if star:
            self.stars.setdefault(record_id, set()).update(self._meanings(candidates))
        elif name:
            self.bindings.setdefault(record_id, {}).setdefault(name, set()).update(self._meanings(candidates))

    def resolve(self, record_id: str, relation: str, rule: str, candidates: list[str]) -> list[Resolution]:
        """The edges that a row of `code_edges` without a target turns into, sorted; none when its target is not in the repository.

        A candidate is "module:qualified" or, where the file itself holds several definitions of a name, a symbol id.
        """
        key = (record_id, relation, rule, *candidates)
        known = self._answers.get(key)
        if known is None:
            known = self._answers[key] = self._resolve(record_id, relation, rule, candidates)
        return known

    def _resolve(self, record_id: str, relation: str, rule: str, candidates: Iterable[str]) -> list[Resolution]:
        if relation == "IMPORTS" and rule == "import_star":
            return self._expand_star(record_id, self._meanings(candidates))
        meanings = [self._meaning(record_id, candidate) for candidate in self._meanings(candidates)]
        targets = _unique(target for meaning in meanings for target in meaning.targets)
        known = all(meaning.targets for meaning in meanings)
        if rule == "import_star":
            # a star import of a module that is here and lacks the name brings something else; one that is not here might bring it
            known, assumed = True, not all(meaning.here for meaning in meanings)
        else:
            assumed = False
        certain = len(targets) == 1 and known and rule != "unresolved_call"
        made: list[Resolution] = []
        for target in targets:
            confidence = "AMBIGUOUS" if not certain else "INFERRED" if target.assumed or assumed else "EXTRACTED"
            if relation in ("CALLS", "INSTANTIATES") and target.kind in TYPE_KINDS:
                made.append(Resolution(target.symbol_id, "INSTANTIATES", target.rule, confidence))
                makers = self._constructors(target)
                maker_confidence = confidence if len(makers) == 1 else "AMBIGUOUS"
                made += [Resolution(maker, "CALLS", target.rule, maker_confidence) for maker in makers]
            else:
                made.append(Resolution(target.symbol_id, relation, target.rule, confidence))
        return sorted(made, key=lambda r: (r.relation, r.target))

    def _meanings(self, candidates: Iterable[str]) -> list[str]:
        return distinct_meanings(candidates) if self.family == "python" else distinct_paths(candidates)

    def _meaning(self, record_id: str, candidate: str) -> _Meaning:
        if ":" not in candidate:
            found = self._by_id.get(candidate)
            if found is None:
                return _Meaning((), False)
            kind, record, qualified = found
            return _Meaning((Target(candidate, kind, record, qualified, "same_file", False),), True)
        here = bool(self.names.find(candidate.partition(":")[0], self._path(record_id)).modules)
        return _Meaning(self._follow(record_id, candidate, MAX_ROUNDS), here)

    @property
    def names(self) -> Names:
        if self._names is None:
            modules = sorted(self.modules.values(), key=lambda m: (m.symbol_id, m.record_id))
            self._names = PythonNames(modules) if self.family == "python" else PathNames(modules)
            for named in self.symbols.values():
                for found in named.values():
                    found.sort()
        return self._names

    def _constructors(self, target: Target) -> list[str]:
        named = self.symbols.get(target.record_id, {})
        return [s for name in CONSTRUCTORS[self.family] for s, _ in named.get(f"{target.qualified_name}.{name}", ())]

    def _expand_star(self, record_id: str, candidates: list[str]) -> list[Resolution]:
        """`from m import *`: the module itself, and its public names: those without a leading underscore (assumed: no `__all__`)."""
        made: dict[str, Resolution] = {}
        for candidate in candidates:
            found = self.names.find(candidate.partition(":")[0], self._path(record_id))
            confidence = "AMBIGUOUS" if len(found.modules) > 1 else "INFERRED" if found.assumed else "EXTRACTED"
            for module in found.modules:
                made[module.symbol_id] = Resolution(module.symbol_id, "IMPORTS", "import_star", confidence)
                for name, symbols in self.symbols.get(module.record_id, {}).items():
                    if "." in name or name.startswith("_"):
                        continue
                    for symbol, _ in symbols:
                        certain = "AMBIGUOUS" if len(symbols) > 1 or len(found.modules) > 1 else "INFERRED"
                        made[symbol] = Resolution(symbol, "IMPORTS", "import_star", certain)
        return [made[key] for key in sorted(made)]

    def _path(self, record_id: str) -> str:
        module = self.modules.get(record_id)
        return module.path if module else ""

    def _follow(self, record_id: str, candidate: str, rounds: int) -> tuple[Target, ...]:
        """Targets of one candidate as seen from a file. An attribute of a package may be a module below it (Python)."""
        key = (record_id, candidate, rounds)
        known = self._known.get(key)
        if known is not None:
            return known
        name, _, qualified = candidate.partition(":")
        parts = qualified.split(".") if qualified else []
        targets: tuple[Target, ...] = ()
        for taken in range(len(parts) + 1 if self.family == "python" else 1):
            found = self.names.find(".".join([*([name] if name else []), *parts[:taken]]) if taken else name, self._path(record_id))
            targets = _unique(t for module in found.modules for t in self._inside(module, parts[taken:], found, rounds))
            if targets:
                break
        self._known[key] = targets
        return targets

    def _inside(self, module: Module, parts: list[str], found: Found, rounds: int) -> Iterator[Target]:
        """What `parts` mean inside a module: a definition, else what its imports bind, else what its star imports bring."""
        if not parts:
            yield Target(module.symbol_id, "module", module.record_id, "", found.rule, found.assumed)
            return
        default = self.defaults.get(module.record_id)
        if parts[0] == "default" and default:
            parts = [default, *parts[1:]]
        defined = self.symbols.get(module.record_id, {}).get(".".join(parts))
        if defined:
            for symbol, kind in defined:
                yield Target(symbol, kind, module.record_id, ".".join(parts), found.rule, found.assumed)
            return
        if rounds == 0:
            return
        passed = self._through(module, parts, self.bindings.get(module.record_id, {}).get(parts[0], ()), rounds, found, whole=False)
        if not passed and not parts[0].startswith("_"):
            passed = self._through(module, parts, self.stars.get(module.record_id, ()), rounds, found, whole=True)
        yield from passed

    def _through(self, module: Module, parts: list[str], candidates: Iterable[str], rounds: int, found: Found, whole: bool) -> list[Target]:
        rule = "import_star" if whole else "reexport"
        targets: list[Target] = []
        for candidate in sorted(candidates):
            name, _, qualified = candidate.partition(":")
            rest = parts if whole else [*([qualified] if qualified else []), *parts[1:]]
            for target in self._follow(module.record_id, f"{name}:{'.'.join(rest)}", rounds - 1):
                targets.append(
                    Target(target.symbol_id, target.kind, target.record_id, target.qualified_name, rule, target.assumed or found.assumed)
                )
        return targets


def distinct_meanings(candidates: Iterable[str]) -> list[str]:
    """One candidate for each thing that may be meant, sorted. "a.b:", "a:b" and so on are one thing cut at several places: the cut with the
    shortest module is kept, since what it names may also be a module further down."""
    shortest: dict[str, str] = {}
    for candidate in candidates:
        whole = candidate.replace(":", ".").rstrip(".")
        known = shortest.get(whole)
        if known is None or candidate.find(":") < known.find(":"):
            shortest[whole] = candidate
    return sorted(shortest.values())


def distinct_paths(candidates: Iterable[str]) -> list[str]:
    """Like `distinct_meanings` for paths. A relative import is given as "a/b:x" and "a/b/index:x", one thing.

    A name without such a twin is a package from elsewhere and must not meet a file of the repository that happens to be called so: it
    gets a name that no file has.
    """
    given = sorted(set(candidates))
    shorter = {candidate: candidate.replace("/index:", ":", 1) for candidate in given if "/index:" in candidate}
    twins = set(shorter.values())
    kept: list[str] = []
    for candidate in given:
        name = candidate.partition(":")[0]
        if shorter.get(candidate) in given:
            continue
        relative = ":" not in candidate or candidate in twins or candidate in shorter or name == "index"
        kept.append(candidate if relative or name.startswith(ALIASES) else f"//{candidate}")
    return kept


def _unique(targets: Iterable[Target]) -> tuple[Target, ...]:
    """One target a symbol, in the order of ids; the way that assumes nothing wins, then the first rule by name."""
    best: dict[str, Target] = {}
    for target in targets:
        known = best.get(target.symbol_id)
        if known is None or (target.assumed, target.rule) < (known.assumed, known.rule):
            best[target.symbol_id] = target
    return tuple(best[key] for key in sorted(best))
