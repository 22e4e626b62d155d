"""Imports, symbols and open references of one repository → the symbols that the references mean (contracts 7, 8, 22).

A reference is a list of candidates "module:qualified" as one file alone could tell; here they meet the modules of the whole repository
(`raydex.kernels.definitions`). The invariant: one target is EXTRACTED, or INFERRED where an assumption decided; several, or one that may
be something else as well, are AMBIGUOUS each; none means external and gives no row. Nothing depends on the order of rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from raydex.kernels.definitions import TYPE_KINDS, Definitions, Target
from raydex.kernels.importable import Module

CONSTRUCTORS = {"python": "__init__", "script": "constructor"}
FAMILIES = {"python": "python", "typescript": "script", "tsx": "script", "javascript": "script", "jsx": "script"}
# only overload signatures are told apart by types, in brackets (`raydex.kernels.code_common.Definition.role`)
_OVERLOAD = re.compile(r"\)(?:#\d+)?$")


@dataclass(frozen=True, slots=True)
class Resolution:
    """An edge that a reference turned into."""

    target: str
    relation: str
    rule: str
    confidence: str


@dataclass(slots=True)
class Repository:
    """Definitions of one repository and family of languages. Fill it with the `add_…` functions, in any order, then `resolve`."""

    family: str
    definitions: Definitions = field(init=False)
    _answers: dict[tuple[str, ...], list[Resolution]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.definitions = Definitions(self.family)

    def add_module(self, symbol_id: str, record_id: str, path: str) -> None:
        self.definitions.modules[record_id] = Module(symbol_id, record_id, path)

    def add_symbol(self, symbol_id: str, record_id: str, qualified_name: str, kind: str, discriminator: str = "") -> None:
        found = self.definitions
        target = Target(symbol_id, kind, record_id, qualified_name)
        # two sources may hold the same file of the repository
        if symbol_id not in found.by_id or record_id < found.by_id[symbol_id].record_id:
            found.by_id[symbol_id] = target
        found.symbols.setdefault(record_id, {}).setdefault(qualified_name, []).append(target)
        if _OVERLOAD.search(discriminator):
            found.overloads.add(symbol_id)

    def add_reference(self, record_id: str, source: str, relation: str, label: str, rule: str, candidates: list[str]) -> None:
        """What a row of `code_edges` says of the names of its file: imports bind names, EXPORTS give them, INHERITS are bases (a decided
        one with its target as the only candidate). Rows of other relations say nothing."""
        if relation == "IMPORTS" and rule != "import_local":
            self.add_binding(record_id, label.partition("#")[0], candidates, star=rule == "import_star")
        elif relation == "EXPORTS" and rule == "fields":
            self.definitions.fields.setdefault(source, set()).update(candidates)
        elif relation == "EXPORTS":
            self.add_given(record_id, label, candidates)
        elif relation == "INHERITS":
            places = self.definitions.bases.setdefault(source, {})
            base = (rule, tuple(candidates))
            places[int(label)] = min(places.get(int(label), base), base)

    def add_binding(self, record_id: str, name: str, candidates: list[str], star: bool = False) -> None:
        """An import: `name` is what it binds; a star import binds every public name of its modules."""
        found = self.definitions
        if star:
            found.stars.setdefault(record_id, set()).update(found.distinct(candidates))
        elif name:
            # `import a.b` binds a
            package = len(candidates) == 1 and candidates[0].startswith(f"{name}.") and candidates[0].endswith(":")
            found.bindings.setdefault(record_id, {}).setdefault(name, set()).update([f"{name}:"] if package else found.distinct(candidates))

    def add_given(self, record_id: str, name: str, candidates: list[str]) -> None:
        """What a module gives under a public name, besides its symbols and imports (Python) or at all (TypeScript, JavaScript)."""
        own = [c for c in candidates if c.startswith(":")]
        other = self.definitions.distinct(c for c in candidates if not c.startswith(":"))
        self.definitions.given.setdefault(record_id, {}).setdefault(name, set()).update(own, other)

    def resolve(self, record_id: str, relation: str, rule: str, candidates: list[str]) -> list[Resolution]:
        """The edges that a row of `code_edges` without a target turns into, sorted; none when its target is not in the repository.

        A candidate is "module:qualified" or, where the file itself holds several definitions of a name, a symbol id.
        """
        key = (record_id, relation, rule, *candidates)
        known = self._answers.get(key)
        if known is None:
            star = relation == "IMPORTS" and rule == "import_star"
            made = self._expand_star(record_id, candidates) if star else self._resolve(record_id, relation, rule, candidates)
            known = self._answers[key] = sorted(made, key=lambda r: (r.relation, r.target))
        return known

    def _resolve(self, record_id: str, relation: str, rule: str, candidates: Iterable[str]) -> list[Resolution]:
        targets, certain = self.definitions.refer(record_id, rule, candidates, modules=relation == "IMPORTS")
        made: list[Resolution] = []
        for target in targets:
            confidence = _confidence(target, certain)
            if relation in ("CALLS", "INSTANTIATES") and target.kind in TYPE_KINDS:
                made.append(Resolution(target.symbol_id, "INSTANTIATES", target.rule, confidence))
                makers = self.definitions.member(target.symbol_id, CONSTRUCTORS[self.family])
                sure = certain and len(makers.targets) == 1 and not makers.doubt
                for maker in makers.targets:
                    assumed = _confidence(maker, sure) == "INFERRED"
                    made.append(Resolution(maker.symbol_id, "CALLS", target.rule, "INFERRED" if assumed else _confidence(target, sure)))
            else:
                made.append(Resolution(target.symbol_id, relation, target.rule, confidence))
        return made

    def _expand_star(self, record_id: str, candidates: list[str]) -> list[Resolution]:
        """`from m import *`, `export * from m`: the module itself and the public names of its own."""
        made: dict[str, Resolution] = {}
        found = self.definitions
        for candidate in found.distinct(candidates):
            named = found.find(candidate, record_id)
            single = len(named.modules) == 1
            for module in named.modules:
                itself = Target(module.symbol_id, "module", module.record_id, "", assumed=named.assumed)
                made[module.symbol_id] = Resolution(module.symbol_id, "IMPORTS", "import_star", _confidence(itself, single))
                for meaning in found.public(module.record_id).values():
                    certain = single and len(meaning.targets) == 1 and not meaning.doubt
                    for target in meaning.targets:
                        assumed = named.assumed or target.assumed or self.family == "python"
                        confidence = "AMBIGUOUS" if not certain else "INFERRED" if assumed else "EXTRACTED"
                        made[target.symbol_id] = Resolution(target.symbol_id, "IMPORTS", "import_star", confidence)
        return list(made.values())


def _confidence(target: Target, certain: bool) -> str:
    return "AMBIGUOUS" if not certain else "INFERRED" if target.assumed else "EXTRACTED"
