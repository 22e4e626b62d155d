"""Imports, `export … from`, `require` and `import()` of TypeScript → IMPORTS edges and the names that they bind.

The invariant: candidates are what the file alone can tell: "module:name" for a name, "module:" for a module, with a relative module both
as a file and as the index of a folder. What importers of the file get is in `raydex.kernels.typescript_exports`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from raydex.kernels import typescript_rules as rules
from raydex.kernels.code_common import Owner
from raydex.kernels.code_scopes import Binding, Scope
from raydex.kernels.typescript_exports import plain

if TYPE_CHECKING:
    from tree_sitter import Node

    from raydex.kernels.treesitter import Handler
    from raydex.kernels.typescript_walk import TypeScriptWalk


def note_import(
    walk: TypeScriptWalk, place: Node, local: str, modules: list[str], name: str, scope: Scope | None, rule: str = "import"
) -> None:
    """One IMPORTS edge; `name` is "" for the module itself, and `local` is bound in `scope` where there is one."""
    if scope is not None:
        scope.bind(local, Binding("import", bases=tuple((module, name) for module in modules)))
    start, end = walk.span(place)
    walk.file.add_import(local, [f"{module}:{name}" for module in modules], start, end, rule)


def import_statement(walk: Any, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
    modules = _modules(walk, node)
    clause = next((c for c in node.named_children if c.type in ("import_clause", "import_require_clause")), None)
    if clause is None:
        note_import(walk, node, "", modules, "", None)
        return False
    if clause.type == "import_require_clause":
        name = next((c for c in clause.named_children if c.type == "identifier"), None)
        if name is not None:
            note_import(walk, clause, walk.segment(name), _modules(walk, clause), "", scope)
        return False
    for part in clause.named_children:
        if part.type == "identifier":
            note_import(walk, part, walk.segment(part), modules, "default", scope)
        elif part.type == "namespace_import":
            name = next((c for c in part.named_children if c.type == "identifier"), None)
            note_import(walk, part, walk.segment(name), modules, "", scope)
        elif part.type == "named_imports":
            for item in part.named_children:
                if item.type == "import_specifier":
                    name = item.child_by_field_name("name")
                    alias = item.child_by_field_name("alias") or name
                    note_import(walk, item, walk.segment(alias), modules, plain(walk.segment(name)), scope)
    return False


def export_statement(walk: Any, node: Node, parent: int, owner: Owner, scope: Scope) -> bool:
    """`export … from` is an import that binds nothing here; other exports are statements around a definition."""
    source = node.child_by_field_name("source")
    clause = next((c for c in node.named_children if c.type in ("export_clause", "namespace_export")), None)
    if source is None:
        return bool(walk.wrapped(node, parent, owner, scope))
    modules = _modules(walk, node)
    if clause is None:
        note_import(walk, node, "*", modules, "", None, "import_star")
    elif clause.type == "namespace_export":
        note_import(walk, clause, walk.segment(clause.named_children[0] if clause.named_children else None), modules, "", None)
    else:
        for item in clause.named_children:
            if item.type == "export_specifier":
                name = item.child_by_field_name("name")
                alias = item.child_by_field_name("alias") or name
                note_import(walk, item, walk.segment(alias), modules, plain(walk.segment(name)), None)
    return False


def bind_require(walk: TypeScriptWalk, declarator: Node, name: Node, value: Node, scope: Scope) -> bool:
    """`const x = require("y")` and `const {a, b: c} = require("y")`; false for any other declarator."""
    callee = value.child_by_field_name("function") if value.type == "call_expression" else None
    if callee is None or callee.type != "identifier" or walk.segment(callee) != "require":
        return False
    specifier = _literal(walk, value)
    if specifier is None:
        return False
    modules = rules.imported_modules(walk.file.request.path, specifier)
    if name.type == "identifier":
        note_import(walk, declarator, walk.segment(name), modules, "", scope)
        return True
    if name.type != "object_pattern":
        return False
    for item in name.named_children:
        key = item.child_by_field_name("key") if item.type == "pair_pattern" else item
        for bound in rules.pattern_names(item):
            note_import(walk, item, walk.segment(bound), modules, plain(walk.segment(key)), scope)
    return True


def note_dynamic_import(walk: TypeScriptWalk, call: Node) -> None:
    """`import("./x")` with a literal."""
    specifier = _literal(walk, call)
    if specifier is not None:
        note_import(walk, call, "", rules.imported_modules(walk.file.request.path, specifier), "", None)


def _literal(walk: TypeScriptWalk, call: Node) -> str | None:
    arguments = call.child_by_field_name("arguments")
    first = arguments.named_children[0] if arguments is not None and arguments.named_children else None
    return plain(walk.segment(first)) if first is not None and first.type == "string" else None


def _modules(walk: TypeScriptWalk, node: Node) -> list[str]:
    specifier = plain(walk.segment(node.child_by_field_name("source")))
    return rules.imported_modules(walk.file.request.path, specifier)


IMPORT_HANDLERS: dict[str, Handler] = {"import_statement": import_statement, "export_statement": export_statement}
