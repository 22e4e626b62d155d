"""Export statements of a module → its table of exports: public name → what importers of the name get.

An entry is ":local" for a name that the file binds, "module:name" for what comes from elsewhere, ":" for an expression; `default` and
`export=` are names. The invariant: importers see nothing of a module but its table and what its `export *` bring (no `default`); a
declaration file that does not say what it exports exports all of its top level.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from raydex.kernels import typescript_rules as rules

if TYPE_CHECKING:
    from tree_sitter import Node

    from raydex.kernels.typescript_walk import TypeScriptWalk

_DECLARATION_FILE = re.compile(r"\.d\.[cm]?ts$")
_WRAPPERS = frozenset({"as_expression", "satisfies_expression", "non_null_expression", "parenthesized_expression"})
_NAMED = frozenset({"function_expression", "arrow_function", "generator_function", "class"})
_COMMONJS = re.compile(r"(?:module\.)?exports(?:\.([^\W\d][\w$]*))?")

Export = tuple[str, str]


def export_table(walk: TypeScriptWalk) -> dict[str, list[str]]:
    """The table of the file, from its top statements."""
    table: dict[str, list[str]] = {}
    found: list[Export] = []
    says = False
    for statement in walk.statements:
        kind = statement.type
        if kind == "export_statement":
            found += _exports(walk, statement)
            whole = statement.child_by_field_name("declaration") or statement.child_by_field_name("source")
            says |= whole is None and statement.children[1].type != "as"
        elif kind == "expression_statement":
            found += _commonjs(walk, statement)
    if not says and _DECLARATION_FILE.search(walk.file.request.path):
        found += [(name, f":{name}") for statement in walk.statements for name in _declared(walk, statement)]
    for name, candidate in found:
        given = table.setdefault(name, [])
        if candidate not in given:
            given.append(candidate)
    return table


def exported_locals(table: dict[str, list[str]]) -> set[str]:
    """The names of the file that have a public name."""
    return {candidate[1:] for given in table.values() for candidate in given if candidate[0] == ":"}


def _exports(walk: TypeScriptWalk, statement: Node) -> Iterator[Export]:
    source = statement.child_by_field_name("source")
    modules = rules.imported_modules(walk.file.request.path, plain(walk.segment(source))) if source is not None else []
    clause = next((c for c in statement.named_children if c.type in ("export_clause", "namespace_export")), None)
    value, declaration = statement.child_by_field_name("value"), statement.child_by_field_name("declaration")
    words = [c.type for c in statement.children[:3]]
    if clause is not None and clause.type == "namespace_export":
        name = plain(walk.segment(clause.named_children[0] if clause.named_children else None))
        yield from ((name, f"{module}:") for module in modules)
    elif clause is not None:
        for item in clause.named_children:
            if item.type == "export_specifier":
                name = plain(walk.segment(item.child_by_field_name("name")))
                public = plain(walk.segment(item.child_by_field_name("alias"))) or name
                yield from ((public, f"{module}:{name}") for module in (modules if source is not None else [""]))
    elif declaration is not None:
        names = list(_declared(walk, declaration))
        if "default" in words:
            yield "default", f":{names[0] if names else 'default'}"
        else:
            yield from ((name, f":{name}") for name in names)
    elif value is not None:
        yield "default", _entry(walk, value)
    elif "=" in words:
        yield "export=", _entry(walk, statement.named_children[-1])


def _entry(walk: TypeScriptWalk, value: Node) -> str:
    """What an exported expression is: a name of the file, a function or class that it defines, or neither."""
    while value.type in _WRAPPERS and value.named_children:
        value = value.named_children[0]
    if value.type in ("identifier", "shorthand_property_identifier"):
        return f":{walk.segment(value)}"
    return f":{walk.segment(value.child_by_field_name('name')) or 'default'}" if value.type in _NAMED else ":"


def _declared(walk: TypeScriptWalk, declaration: Node) -> Iterator[str]:
    """The names that a declaration binds in the module."""
    kind = declaration.type
    if kind in ("ambient_declaration", "expression_statement"):
        for inner in declaration.named_children:
            if kind == "ambient_declaration" or inner.type == "internal_module":
                yield from _declared(walk, inner)
    elif kind in ("lexical_declaration", "variable_declaration"):
        for declarator in declaration.named_children:
            name = declarator.child_by_field_name("name")
            yield from (walk.segment(bound) for bound in (rules.pattern_names(name) if name is not None else ()))
    elif kind == "import_alias":
        yield walk.segment(declaration.named_children[0])
    elif kind.endswith(("declaration", "signature", "module")):
        named = declaration.child_by_field_name("name")
        if named is not None and named.type != "string":
            yield walk.segment(named).partition(".")[0].strip()


def _commonjs(walk: TypeScriptWalk, statement: Node) -> Iterator[Export]:
    """`module.exports = …`, `exports.name = …`: what `require` gives."""
    assigned = statement.named_children[0] if statement.named_children else None
    if assigned is None or assigned.type != "assignment_expression":
        return
    left, value = assigned.child_by_field_name("left"), assigned.child_by_field_name("right")
    if left is None or value is None or left.type not in ("member_expression", "identifier"):
        return
    target = _COMMONJS.fullmatch(walk.segment(left))
    if target is None or walk.segment(left) == "exports":
        return
    if target.group(1):
        yield target.group(1), _local(walk, value)
    elif value.type == "object":
        for item in value.named_children:
            key = item.child_by_field_name("key") if item.type == "pair" else item
            inner = item.child_by_field_name("value") if item.type == "pair" else item
            if key is not None and inner is not None and item.type in ("pair", "shorthand_property_identifier"):
                yield plain(walk.segment(key)), _local(walk, inner)
    else:
        yield "export=", _local(walk, value)


def _local(walk: TypeScriptWalk, value: Node) -> str:
    """A function or class on the right side of an assignment is no symbol."""
    return ":" if value.type in _NAMED else _entry(walk, value)


def plain(text: str) -> str:
    """A name without the quotes that it may have."""
    return text[1:-1] if text[:1] in ("'", '"') else text
