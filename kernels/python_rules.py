"""What Python's names and decorators say, for both front ends (`ast` and tree-sitter): module path, visibility, symbol kind and role.

The invariant: both front ends give one definition the same kind, qualified name and discriminator, so that a file keeps its ids while
it does not parse (contracts 27).
"""

from __future__ import annotations

import builtins
import inspect
import re

from raydex.kernels.code_common import CodeFile, Definition, Owner, collapsed, lines_above
from raydex.kernels.code_scopes import Binding, Chain, Facts, Scope
from raydex.kernels.code_text import SourceText
from raydex.kernels.decode import clean

BUILTINS = frozenset(dir(builtins))
# possessive, and a string that never closes reaches to the end, so that it is read once
_COMMENT_OR_STRING = re.compile(r"""("(?:\\.|[^"\\])*+(?:"|\\?\Z)|'(?:\\.|[^'\\])*+(?:'|\\?\Z))|#[^\r\n]*""", re.DOTALL)
_BLANK_LINES = re.compile(r"(?:[ \t\f]*+\n)++")
_GETTERS = frozenset({"property", "cached_property", "abstractproperty"})
_MARKERS = _GETTERS | {"staticmethod", "classmethod", "overload", "abstractmethod", "override", "final"}
_TYPE_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_OPTIONAL = re.compile(r"(?:typing\s*\.\s*|t\.)?(?:Optional|Annotated|Final|ClassVar|Required|NotRequired)\s*\[(.*)\]", re.DOTALL)


def module_path(path: str) -> str:
    """`shop/orders.py` → `shop.orders`; a package's `__init__.py` is the package."""
    stem = re.sub(r"\.pyi?w?$", "", path)
    if stem.endswith("/__init__"):
        stem = stem[: -len("/__init__")]
    return stem.replace("/", ".")


def absolute_module(path: str, package: str, level: int, module: str | None) -> str | None:
    """Dotted module of `from <level dots><module> import …` in the file at `path`; None above the root."""
    if level == 0:
        return module or ""
    parts = package.split(".")
    if re.search(r"(^|/)__init__\.pyi?$", path):
        level -= 1
        parts = [] if package == "__init__" else parts
    if level > len(parts) or (level == len(parts) and not module):
        return None
    base = parts[: len(parts) - level]
    return ".".join([*base, module] if module else base)


def new_facts(file: CodeFile) -> Facts:
    """Facts with the module's scope, under Python's rules."""
    module = Scope("module", Owner(file.module), symbol=file.module)
    receivers = frozenset({"super()"})
    return Facts(module, BUILTINS, receivers, "__init__", class_scope_visible=True, annotations_hold=False, dotted_modules=True)


def visibility(name: str) -> str:
    """The underscore rule: `_x` protected, `__x` private, dunders and the rest public."""
    if not name.startswith("_") or (name.startswith("__") and name.endswith("__") and len(name) > 4):
        return "public"
    return "private" if name.startswith("__") else "protected"


def function_kind(name: str, decorators: list[str], in_class: bool) -> tuple[str, str]:
    """(symbol kind, role) by decorators as written: accessors are properties told apart by role, overloads need their types."""
    role = ""
    kind = "method" if in_class else "function"
    for decorator in decorators:
        head, _, last = decorator.rpartition(".")
        if in_class and (last or head) in _GETTERS:
            return "property", "getter"
        if in_class and head == name and last in ("setter", "deleter", "getter"):
            return "property", last
        if last == "overload":
            role = "overload"
    return kind, role


def is_marker(name: str, chain: Chain) -> bool:
    """Whether a decorator only marks a definition: accessors, static and class methods, overloads."""
    return chain[-1] in _MARKERS or (len(chain) == 2 and chain[0] == name)


def overload_role(found: Definition) -> str:
    """An overload is told apart by its parameter types."""
    return f"overload({', '.join(collapsed(p.type) for p in found.parameters)})"


def header(text: str) -> str:
    """A definition's header without comments, line breaks collapsed, the colon dropped."""
    if "#" in text:
        text = _COMMENT_OR_STRING.sub(lambda match: match.group(1) or "", text)
    return collapsed(text).rstrip(": ")


def header_end(text: str, at: int, stop: int) -> int:
    """Offset of the colon that ends a header, from a place after its last name or expression; comments are skipped."""
    while at < stop:
        char = text[at]
        if char == "#":
            while at < stop and text[at] not in "\r\n":
                at += 1
            continue
        if char == ":":
            return at
        at += 1
    return stop


def comment_above(source: SourceText, start: int) -> str:
    """The `#` lines right above a definition, without the signs; a `#!` line is none."""
    lines = [line for line in lines_above(source, start, "#") if not line.startswith("#!")]
    return "\n".join(line.lstrip("#").strip() for line in lines).strip()


def docstring(value: str) -> str:
    """The value of a docstring's literal → text that can be stored: its margin gone, U+FFFD for what escapes such as `\\ud800` or
    `\\0` left in it that is no text."""
    blank = _BLANK_LINES.match(value)
    text = inspect.cleandoc(value[blank.end() - 1 :] if blank else value)
    return clean(text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def type_chain(annotation: str) -> Chain | None:
    """Dotted class name of an annotation as written: `Shelf`, `"shop.Shelf"`, `Optional[Shelf]`, `Shelf | None`, `Box[int]`; else None."""
    text = annotation.strip()
    for _ in range(4):
        if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]:
            text = text[1:-1].strip()
        inner = _OPTIONAL.fullmatch(text)
        if inner:
            text = inner.group(1).partition(",")[0].strip() if "Annotated" in text[: inner.start(1)] else inner.group(1).strip()
            continue
        parts = [part.strip() for part in text.split("|")] if "|" in text and "[" not in text else [text]
        parts = [part for part in parts if part != "None"]
        if len(parts) != 1:
            return None
        text = parts[0]
    name = _TYPE_NAME.match(text)
    if name is None or (name.end() < len(text) and not (text[name.end() :].lstrip().startswith("[") and text.endswith("]"))):
        return None
    chain = tuple(name.group().split("."))
    return None if chain[-1] in ("Union", "type", "Type", "Callable", "Literal", "None", "Any") else chain


def import_bases(module: str | None, name: str) -> tuple[tuple[str, str], ...]:
    """What `from module import name` may bind: a submodule, or an attribute of the module."""
    if module is None:
        return ()
    return ((f"{module}.{name}" if module else name, ""), (module, name)) if module else ((name, ""),)


def from_candidates(module: str | None, name: str) -> list[str]:
    """Candidates of the IMPORTS edge of `from module import name`."""
    if module is None:
        return []
    return [f"{module}:{name}", f"{module}.{name}:"] if module else [f"{name}:"]


def module_candidates(module: str, alias: str) -> list[str]:
    """Candidates of the IMPORTS edge of `import module as alias` ("" for no alias). Without an alias, the first package of a dotted name is
    bound, which a reader tells from the label; so an alias that is called like the package is written as the `from` import that it is."""
    package, _, last = module.rpartition(".")
    return from_candidates(package, last) if package and alias == module.partition(".")[0] else [f"{module}:"]


def import_rule(facts: Facts, scope: Scope, name: str) -> str:
    """The rule of an IMPORTS edge that binds `name` in `scope`."""
    return "import" if facts.is_global(scope, name) else "import_local"


def note_star(facts: Facts, scope: Scope, module: str | None) -> str:
    """The rule of `from module import *`; the names of one in a class body are attributes of the class, not of the module."""
    if scope is not facts.module:
        return "import_local"
    if module:
        facts.stars.append(module)
    return "import_star"


def bind_parameter(scope: Scope, name: str, annotation: str, outer: Scope) -> None:
    """A parameter; its annotation is read where the function is defined."""
    chain = type_chain(annotation) if annotation else None
    scope.bind(name, Binding("value", type_chain=chain, type_scope=outer, typed_by="annotation" if chain else ""))
