"""Modules of one repository → the names under which its files can import them.

Python: a module is importable from every folder above it that is no package itself; the nearest such folder is its root. TypeScript and
JavaScript: the path without extension, `/index` left out. The invariant: a name answers with modules of one tier only, the most certain
one that has any, and says whether that tier rests on an assumption (contracts 22).
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

_EXTENSIONS = (".d.ts", ".d.mts", ".d.cts", ".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_WRITTEN_EXTENSION = re.compile(r"\.(?:d\.)?[mc]?[jt]sx?$")
ALIASES = ("@/", "~/", "#/")


@dataclass(frozen=True, slots=True)
class Module:
    """A module symbol and the record that it stands in; `path` is POSIX and relative to the source's root."""

    symbol_id: str
    record_id: str
    path: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a name answers with: several modules when the tier cannot tell them apart. `assumed` makes the edge INFERRED."""

    modules: tuple[Module, ...]
    rule: str
    assumed: bool


NOTHING = Found((), "", False)


class PythonNames:
    """Dotted names of Python modules, by the folder that has to be on the import path."""

    def __init__(self, modules: list[Module]) -> None:
        self._packages = {folder_of(m.path) for m in modules if m.path.rpartition("/")[2] in ("__init__.py", "__init__.pyi")}
        entries: dict[str, dict[str, list[tuple[int, Module]]]] = {}
        self._siblings: dict[tuple[str, str], list[tuple[int, Module]]] = {}
        self._in_package: set[str] = set()
        for module in modules:
            folder, stem, rank = _python_parts(module.path)
            parts = [*(folder.split("/") if folder else []), *([stem] if stem else [])]
            if not parts:
                entries.setdefault("", {}).setdefault("", []).append((rank, module))
                continue
            if folder in self._packages:
                self._in_package.add(module.symbol_id)
                if stem:
                    self._siblings.setdefault((folder, stem), []).append((rank, module))
            for depth in range(len(parts)):
                root = "/".join(parts[:depth])
                # the source's own root stands for whatever it is called outside, so relative imports always have a name
                if root and root in self._packages:
                    continue
                entries.setdefault(".".join(parts[depth:]), {}).setdefault(root, []).append((rank, module))
        self._entries = {name: {root: _best(found) for root, found in roots.items()} for name, roots in entries.items()}

    def root_of(self, path: str) -> str:
        """The nearest folder at or above a file that is no package: what has to be on the import path to import it by its full name."""
        folder = folder_of(path)
        while folder and folder in self._packages:
            folder = folder_of(folder)
        return folder

    def _is_package_root(self, root: str, module: Module) -> bool:
        return module.symbol_id in self._in_package and self.root_of(module.path) == root

    def find(self, name: str, importer: str) -> Found:
        """Modules called `name` as seen from the file `importer`; tiers: its own root, folders above it, packages, anything else."""
        roots = self._entries.get(name)
        first = name.partition(".")[0]
        # a file below a folder of that name means its own package (every relative import does), not the standard library's
        inside = any(importer.startswith(f"{root}/{first}/" if root else f"{first}/") for root in roots or ())
        builtin = first in sys.stdlib_module_names and not inside
        if roots:
            own = self.root_of(importer)
            if own in roots:
                return Found(roots[own], "import_exact", builtin or len(roots) > 1)
            above = [root for root in roots if not root or importer.startswith(root + "/")]
            if above:
                return Found(_united(roots, above), "import_exact", builtin)
            if not builtin:
                packaged = [root for root, found in roots.items() if any(self._is_package_root(root, module) for module in found)]
                if packaged:
                    return Found(_united(roots, packaged), "import_exact", False)
                return Found(_united(roots, list(roots)), "import_suffix", True)
        sibling = None if builtin else self._siblings.get((folder_of(importer), name))
        # a script inside a package has its own folder on the import path when it is run
        return Found(_best(sibling), "import_sibling", True) if sibling else NOTHING


class PathNames:
    """Paths of TypeScript and JavaScript modules; candidates are paths relative to the source's root, or bare package names."""

    def __init__(self, modules: list[Module]) -> None:
        entries: dict[str, list[tuple[int, Module]]] = {}
        for module in modules:
            stem, rank = _path_parts(module.path)
            entries.setdefault(stem, []).append((rank, module))
            if stem == "index" or stem.endswith("/index"):
                entries.setdefault(stem[: -len("/index")] if "/" in stem else "", []).append((rank + 100, module))
        self._entries = {name: _best(found) for name, found in entries.items()}
        self._by_last: dict[str, list[str]] = {}
        for name in self._entries:
            self._by_last.setdefault(name.rpartition("/")[2], []).append(name)

    def find(self, name: str, importer: str) -> Found:
        """The module at path `name`; for a path alias (`@/…`) the one whose path ends so. `importer` does not matter: paths are whole."""
        found = self._entries.get(name) or self._entries.get(_WRITTEN_EXTENSION.sub("", name))
        if found:
            return Found(found, "import_exact", False)
        for alias in ALIASES:
            if name.startswith(alias):
                rest = _WRITTEN_EXTENSION.sub("", name[len(alias) :])
                ends = [n for n in self._by_last.get(rest.rpartition("/")[2], ()) if n == rest or n.endswith("/" + rest)]
                modules = {m.symbol_id: m for n in ends for m in self._entries[n]}
                return Found(tuple(modules[key] for key in sorted(modules)), "import_suffix", True) if modules else NOTHING
        return NOTHING


def folder_of(path: str) -> str:
    """The folder of a POSIX path, "" for the root."""
    return path.rpartition("/")[0]


def _python_parts(path: str) -> tuple[str, str, int]:
    """(folder, module's own name or "" for a package, rank: a package hides a module, a module hides a stub)."""
    folder, _, file = path.rpartition("/")
    stem, _, extension = file.rpartition(".")
    stub = extension == "pyi"
    if stem == "__init__":
        return folder, "", 2 if stub else 0
    return folder, stem or file, 3 if stub else 1


def _path_parts(path: str) -> tuple[str, int]:
    for rank, extension in enumerate(_EXTENSIONS):
        if path.endswith(extension):
            # a declaration file stands for a source file that is not there
            return path[: -len(extension)], rank + (50 if extension.startswith(".d.") else 0)
    return path, 90


def _best(found: list[tuple[int, Module]]) -> tuple[Module, ...]:
    """The modules of the lowest rank, in the order of their ids."""
    lowest = min(rank for rank, _ in found)
    modules = {module.symbol_id: module for rank, module in found if rank == lowest}
    return tuple(modules[key] for key in sorted(modules))


def _united(roots: dict[str, tuple[Module, ...]], chosen: list[str]) -> tuple[Module, ...]:
    modules = {module.symbol_id: module for root in chosen for module in roots[root]}
    return tuple(modules[key] for key in sorted(modules))
