"""What TypeScript's names and headers say: module paths, import specifiers, signatures, comments, dotted names of types and callees."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from raydex.kernels.code_common import CodeFile, Owner, collapsed, lines_above
from raydex.kernels.code_scopes import Chain, Facts, Scope
from raydex.kernels.code_text import SourceText

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_COMMENT = 20_000
_SUFFIX = re.compile(r"(?:\.d)?\.[cm]?[jt]sx?$")
# possessive, and what never closes reaches to the end, so that it is read once
_COMMENT = re.compile(
    r"""("(?:\\.|[^"\\])*+(?:"|\\?\Z)|'(?:\\.|[^'\\])*+(?:'|\\?\Z)|`(?:\\.|[^`\\])*+(?:`|\\?\Z))|/\*.*?(?:\*/|\Z)|//[^\r\n]*""", re.DOTALL
)
_GLOBAL_NAMES = (
    "AbortController AggregateError Array ArrayBuffer Atomics BigInt BigInt64Array BigUint64Array Boolean Buffer DataView Date Error "
    "EvalError Event EventTarget FinalizationRegistry Float32Array Float64Array FormData Function Headers Infinity Int16Array Int32Array "
    "Int8Array Intl JSON Map Math NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Request Response Set "
    "SharedArrayBuffer String Symbol SyntaxError TextDecoder TextEncoder TypeError URIError URL URLSearchParams Uint16Array Uint32Array "
    "Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet atob btoa clearInterval clearTimeout console decodeURI decodeURIComponent "
    "document encodeURI encodeURIComponent eval exports fetch global globalThis isFinite isNaN module parseFloat parseInt process "
    "queueMicrotask require setImmediate setInterval setTimeout structuredClone window"
)
# a declaration at the top level with its decorators, each on lines of its own
OPENINGS = re.compile(
    rb"^(?:@[^\n]*\n(?:[ \t)}@][^\n]*\n)*)?(?:(?:export|declare|default|abstract|async|const)[ \t]+)*"
    rb"(?:function|class|interface|enum|namespace|module|type|const|let|var|import)\b",
    re.MULTILINE,
)
GLOBALS = frozenset(_GLOBAL_NAMES.split())


def module_path(path: str) -> str:
    """`src/shop/cart.ts` → `src/shop/cart`."""
    return _SUFFIX.sub("", path)


def imported_modules(path: str, specifier: str) -> list[str]:
    """Modules that a specifier in the file at `path` may name: a relative one as file or folder index, a bare one as it stands."""
    if not specifier.startswith("."):
        return [specifier] if specifier else []
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(path), specifier))
    if joined.startswith(".."):
        return []
    if specifier.rstrip("/").endswith((".", "..")) or specifier.endswith("/"):
        return ["index" if joined == "." else f"{joined}/index"]
    stem = _SUFFIX.sub("", joined)
    return [stem, f"{stem}/index"]


def new_facts(file: CodeFile) -> Facts:
    """Facts with the module's scope, under TypeScript's rules."""
    module = Scope("module", Owner(file.module), symbol=file.module)
    receivers = frozenset({"this", "super"})
    return Facts(module, GLOBALS, receivers, "constructor", class_scope_visible=False, annotations_hold=True, dotted_modules=False)


def signature(text: str) -> str:
    """A definition's header without comments and without the brace or arrow that opens its body, line breaks collapsed."""
    if "//" in text or "/*" in text:
        text = _COMMENT.sub(lambda match: match.group(1) or " ", text)
    return collapsed(text).removesuffix("=>").rstrip(" {;")


def comment_above(source: SourceText, start: int) -> str:
    """The text of a block comment, or of the line comments, that end right above a definition."""
    text = source.text
    before = start
    while before > 0 and text[before - 1].isspace():
        before -= 1
    if text.endswith("*/", 0, before):
        opening = text.rfind("/*", max(0, before - MAX_COMMENT), before)
        if opening < 0 or not text.startswith("/**", opening):
            return ""
        lines = [line.strip().lstrip("*").strip() for line in text[opening + 3 : before - 2].splitlines()]
        return "\n".join(lines).strip()
    return "\n".join(line.lstrip("/").strip() for line in lines_above(source, start, "//")).strip()


def type_chain(node: Node | None) -> Chain | None:
    """Dotted class name of a type: `Shelf`, `shop.Shelf`, `Shelf<T>`, `Shelf | null`; None for any other."""
    while node is not None:
        kind = node.type
        if kind in ("type_identifier", "identifier"):
            return (_text(node),)
        if kind in ("nested_type_identifier", "nested_identifier", "member_expression"):
            return callee_chain(node)
        if kind == "generic_type":
            node = node.child_by_field_name("name")
        elif kind in ("type_annotation", "parenthesized_type", "readonly_type"):
            node = node.named_children[0] if node.named_children else None
        elif kind == "union_type":
            parts = [part for part in node.named_children if _text(part) not in ("null", "undefined")]
            node = parts[0] if len(parts) == 1 else None
        else:
            return None
    return None


def callee_chain(node: Node | None) -> Chain | None:
    """`a.b.c`, `this.items.pop`, `a!.b?.c` → names; `super` → ("super",); None for any other expression."""
    names: list[str] = []
    while node is not None:
        kind = node.type
        if kind in ("identifier", "this", "super", "type_identifier"):
            names.append(_text(node))
            names.reverse()
            return tuple(names)
        if kind in ("member_expression", "nested_identifier"):
            names.append(_text(node.child_by_field_name("property")))
            node = node.child_by_field_name("object")
        elif kind == "nested_type_identifier":
            names.append(_text(node.child_by_field_name("name")))
            node = node.child_by_field_name("module")
        elif kind in ("non_null_expression", "instantiation_expression"):
            node = node.named_children[0] if node.named_children else None
        else:
            return None
    return None


def pattern_names(node: Node) -> list[Node]:
    """The nodes of the names that a binding pattern binds, in source order."""
    found: list[Node] = []
    stack = [node]
    while stack:
        at = stack.pop()
        kind = at.type
        if kind in ("identifier", "shorthand_property_identifier_pattern"):
            found.append(at)
        elif kind == "pair_pattern":
            value = at.child_by_field_name("value")
            if value is not None:
                stack.append(value)
        elif kind in ("assignment_pattern", "object_assignment_pattern"):
            left = at.child_by_field_name("left")
            if left is not None:
                stack.append(left)
        elif kind in ("object_pattern", "array_pattern", "rest_pattern"):
            stack.extend(reversed(at.named_children))
    return found


def _text(node: Node | None) -> str:
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""
