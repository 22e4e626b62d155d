"""What a file's module and classes give by name beyond their symbols → EXPORTS rows, by which other files are resolved.

Such a row comes from a module or class and has neither target nor place. Its candidates say what `label` stands for: "module:qualified" of
an import, ":name" for what the file itself defines, ":" for a value that no symbol stands for. The invariant: with these rows, the imports
and the symbols, another file knows of a name whatever this file knows of it (contracts 22).

Rules: `export`, a public name where modules say what they export; `rebound`, a name of a module that is also bound to other values (where
all names are public); `fields`, the attributes of a class that no symbol stands for, as candidates of one row.
"""

from __future__ import annotations

from raydex.kernels.code_common import CodeFile
from raydex.kernels.code_scopes import Facts, Scope, effective, has_other_values


def add_names(file: CodeFile, facts: Facts) -> None:
    """Append the rows; to be called when all bindings are known and settled."""
    names = facts.module.names
    module = file.module.symbol_id
    if facts.exports is None:
        for name, bindings in names.items():
            if len(bindings) > 1 and has_other_values(effective(bindings)) and any(b.symbol or b.kind == "import" for b in bindings):
                file.add_names(module, name, "rebound", [":"])
    else:
        for name, given in facts.exports.items():
            found = (item for one in given for item in (_of_local(facts.module, one[1:]) if one[0] == ":" else [one]))
            file.add_names(module, name, "export", list(dict.fromkeys(found)))
    for scope, _ in facts.classes:
        hidden = sorted({name for name, bindings in scope.names.items() if any(_is_field(b.kind) for b in bindings)} | scope.fields.keys())
        if hidden and scope.symbol is not None:
            file.add_names(scope.symbol.symbol_id, "", "fields", hidden)


def _of_local(module: Scope, name: str) -> list[str]:
    bindings = effective(module.names.get(name, []))
    out = [f"{source}:{qualified}" for b in bindings for source, qualified in b.bases]
    if any(b.symbol is not None for b in bindings):
        out.append(f":{name}")
    return [*out, ":"] if has_other_values(bindings) or not out else out


def _is_field(kind: str) -> bool:
    """Members of a class that are neither symbols nor mere annotations."""
    return kind in ("value", "import")
