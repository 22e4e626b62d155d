"""Node, edge, block and symbol kinds, declared once as data; validation, store DDL, import headers and the docs derive from them.

Sources: block kinds seed 1; relations seeds 1-3; symbol kinds contracts 8; confidence contracts 22.
"""

from __future__ import annotations

from dataclasses import dataclass

BLOCK_KINDS = ("heading", "paragraph", "list_item", "table", "code", "image", "page", "sheet", "slide", "note", "error")
TEXT_STATES = ("native", "ocr", "mixed", "unavailable")
RECORD_STATES = ("indexed", "degraded", "rejected")
CONFIDENCES = ("EXTRACTED", "INFERRED", "AMBIGUOUS", "VERIFIED")
VERIFICATIONS = ("candidate", "verified", "failed")
SYMBOL_KINDS = (
    "module",
    "package",
    "namespace",
    "class",
    "struct",
    "interface",
    "trait",
    "enum",
    "function",
    "method",
    "property",
    "field",
    "variable",
    "constant",
    "type_alias",
    "macro",
)
CODE_RELATIONS_BETWEEN_NODES = ("AST", "CFG", "REACHING_DEF")
CODE_RELATIONS_BETWEEN_SYMBOLS = ("CONTAINS", "CALLS", "IMPORTS", "INHERITS", "IMPLEMENTS", "INSTANTIATES", "OVERRIDES")
# what a module or class gives by name: references are resolved by these rows, which become no edge of the graph
CODE_NAMES = "EXPORTS"


@dataclass(frozen=True, slots=True)
class NodeKind:
    """A kind of canonical node. `code` tells code nodes (which only code evidence verifies) from context nodes."""

    name: str
    comment: str
    code: bool = False


@dataclass(frozen=True, slots=True)
class EdgeKind:
    """A relation and its legal (source kind, target kind) pairs; `code` relations are followed by `path` by default."""

    name: str
    comment: str
    pairs: tuple[tuple[str, str], ...]
    code: bool = False


NODE_KINDS: dict[str, NodeKind] = {
    k.name: k
    for k in (
        NodeKind("repository", "a source tree under one name", code=True),
        NodeKind("file", "a source code file", code=True),
        NodeKind("document", "a page, report or other document"),
        NodeKind("section", "a heading with what stands under it"),
        NodeKind("email", "a mail"),
        NodeKind("ticket", "an issue of a tracker"),
        NodeKind("data", "a path inside a data file"),
        NodeKind("person", "a mail address that sent or received something"),
        NodeKind("requirement", "a specification item"),
        NodeKind("route", "an HTTP method and path", code=True),
        NodeKind("sql_table", "a table named in a query", code=True),
        *(NodeKind(name, f"a code symbol: {name.replace('_', ' ')}", code=True) for name in SYMBOL_KINDS),
    )
}

_TYPES = ("class", "struct", "interface", "trait", "enum")
_CALLABLES = ("function", "method", "property", "macro")
_SCOPES = ("module", "package", "namespace", *_TYPES, "function", "method", "property")
# what a name that is called or extended may hold: `add = partial(plus, 1)`, `Base = make_base()`
_HOLDERS = ("field", "variable", "constant")
# what a record that is no source file is, and what it may hold: attachments, files of an archive, tickets of an export
_RECORDS = ("document", "email", "ticket")
_CALLERS = ("module", "namespace", *_TYPES, *_CALLABLES, *_HOLDERS)


def _pairs(sources: tuple[str, ...], targets: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((s, t) for s in sources for t in targets)


EDGE_KINDS: dict[str, EdgeKind] = {
    k.name: k
    for k in (
        EdgeKind(
            "CONTAINS",
            "the target lies inside the source",
            (
                *_pairs(("repository",), ("file", *_RECORDS)),
                *_pairs(_RECORDS, ("file", *_RECORDS)),
                ("file", "module"),
                *_pairs((*_RECORDS, "section"), ("section",)),
                ("document", "data"),
                ("data", "data"),
                *_pairs(_SCOPES, tuple(k for k in SYMBOL_KINDS if k not in ("module", "package"))),
                ("package", "module"),
            ),
            code=True,
        ),
        EdgeKind("CALLS", "the source calls the target", _pairs(_CALLERS, (*_CALLABLES, *_HOLDERS)), code=True),
        EdgeKind("IMPORTS", "the source imports the target", _pairs(("module",), SYMBOL_KINDS), code=True),
        EdgeKind("INSTANTIATES", "the source makes an instance of the target", _pairs(_CALLERS, _TYPES), code=True),
        EdgeKind("INHERITS", "the source extends the target", _pairs(_TYPES, (*_TYPES, "type_alias", *_HOLDERS)), code=True),
        EdgeKind(
            "IMPLEMENTS", "the source implements the target", _pairs(_TYPES, ("interface", "trait", "class", "type_alias")), code=True
        ),
        EdgeKind(
            "OVERRIDES", "the source replaces the inherited target", _pairs(("method", "property"), ("method", "property")), code=True
        ),
        EdgeKind("READS", "the source reads the target", _pairs(_CALLERS, (*_HOLDERS, "sql_table")), code=True),
        EdgeKind("WRITES", "the source writes the target", _pairs(_CALLERS, (*_HOLDERS, "sql_table")), code=True),
        EdgeKind(
            "ROUTES_TO",
            "a route to its handler, or a client call to a route",
            (*_pairs(("route",), _CALLABLES), *_pairs(_CALLERS, ("route",))),
            code=True,
        ),
        EdgeKind("USES_TYPE", "the source names the target as a type", _pairs(_CALLERS, (*_TYPES, "type_alias")), code=True),
        EdgeKind(
            "DESCRIBES",
            "a page or ticket names the target: context, never verification of code",
            _pairs((*_RECORDS, "section"), (*(k for k in NODE_KINDS if NODE_KINDS[k].code), *_RECORDS)),
        ),
        EdgeKind("SENT", "the person sent the mail", (("person", "email"),)),
        EdgeKind("RECEIVED", "the person received the mail", (("person", "email"),)),
        EdgeKind("CC", "the person was in copy of the mail", (("person", "email"),)),
        EdgeKind("REPLY_TO", "the mail answers the target", (("email", "email"),)),
        EdgeKind("TRACES_TO", "the source satisfies the requirement", _pairs(("requirement", *SYMBOL_KINDS), ("requirement",))),
    )
}
