"""Office math (OMML) → one line of text: (a)/(b), x^2, √(x), ∑_(n=1)^m x, [a, b; c, d].

Deleted parts are left out. The invariant: every character of the formula's runs comes out once.
Recursion is as deep as the parsed part is, at most 256 levels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
OMATH = M + "oMath"
OMATH_PARAGRAPH = M + "oMathPara"
_VAL = M + "val"
_LOOK = 500
_DROPPED = frozenset((W + "del", W + "moveFrom", W + "rPr"))


def math_text(element: Any) -> str:
    """Of an `oMath`, or the lines of an `oMathPara`."""
    if element.tag == OMATH_PARAGRAPH:
        return "\n".join(math_text(inner) for inner in element.iterchildren(OMATH))
    return " ".join(_inner(element).split())


def _inner(element: Any) -> str:
    out = ""
    for child in element if element is not None else ():
        apart = child.tag == M + "func" and out[-1:].isalnum()
        out += f" {_text(child)}" if apart else _text(child)
    return out


def _text(element: Any) -> str:
    tag = element.tag
    if tag == M + "t" or tag == W + "t":
        return element.text or ""
    if not isinstance(tag, str) or tag in _DROPPED or tag.endswith("Pr"):
        return ""
    make = _SHAPES.get(tag)
    return make(element) if make is not None else _inner(element)


def _part(element: Any, name: str) -> str:
    return _inner(element.find(M + name))


def _group(text: str) -> str:
    """Brackets around what is longer than a sign, a word or a number and has none yet."""
    text = text.strip()
    return text if len(text) <= 1 or text.isalnum() or _is_bracketed(text) else f"({text})"


def _is_bracketed(text: str) -> bool:
    """The bracket that opens the text closes at its end. What is long is not looked through at every level of a formula."""
    depth = 0
    for at, sign in enumerate(text[:_LOOK]):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return at > 0 and at == len(text) - 1
    return False


def _sign(element: Any, name: str, default: str) -> str:
    """A character that the properties of a shape name; an empty one is none."""
    properties = element.find(f"{element.tag}Pr")
    found = properties.find(M + name) if properties is not None else None
    return default if found is None else found.get(_VAL, default)


def _fraction(element: Any) -> str:
    form = element.find(f"{M}fPr/{M}type")
    top, bottom = _part(element, "num"), _part(element, "den")
    if form is not None and form.get(_VAL) == "noBar":
        return f"({_group(top)}¦{_group(bottom)})"
    return f"{_group(top)}/{_group(bottom)}"


def _scripts(element: Any) -> str:
    low, high = _part(element, "sub"), _part(element, "sup")
    return _group(_part(element, "e")) + _low(low) + _high(high)


def _before(element: Any) -> str:
    return _low(_part(element, "sub")) + _high(_part(element, "sup")) + _group(_part(element, "e"))


def _low(text: str) -> str:
    return f"_{_group(text)}" if text.strip() else ""


def _high(text: str) -> str:
    return f"^{_group(text)}" if text.strip() else ""


def _root(element: Any) -> str:
    degree = _part(element, "deg").strip()
    signs = {"": "√", "3": "∛", "4": "∜"}
    base = f"({_part(element, 'e')})"
    return signs[degree] + base if degree in signs else f"{_group(degree)}√{base}"


def _sum(element: Any) -> str:
    sign = _sign(element, "chr", "∫")
    return f"{sign}{_low(_part(element, 'sub'))}{_high(_part(element, 'sup'))} {_part(element, 'e')}"


def _brackets(element: Any) -> str:
    between = _sign(element, "sepChr", "|")
    inner = between.join(_inner(item) for item in element.iterchildren(M + "e"))
    left, right = _sign(element, "begChr", "("), _sign(element, "endChr", ")")
    return inner if left + right == "()" and _is_bracketed(inner) else left + inner + right


def _matrix(element: Any) -> str:
    rows = (", ".join(_inner(item) for item in row.iterchildren(M + "e")) for row in element.iterchildren(M + "mr"))
    return f"[{'; '.join(rows)}]"


def _lines(element: Any) -> str:
    return "; ".join(_inner(item) for item in element.iterchildren(M + "e"))


def _function(element: Any) -> str:
    return f"{_part(element, 'fName')} {_part(element, 'e')}"


def _accent(element: Any) -> str:
    return _part(element, "e") + _sign(element, "chr", "\u0302")


def _bar(element: Any) -> str:
    return _part(element, "e") + ("\u0332" if _sign(element, "pos", "bot") == "bot" else "\u0305")


def _limit(join: str) -> Callable[[Any], str]:
    return lambda element: f"{_group(_part(element, 'e'))}{join}{_group(_part(element, 'lim'))}"


_SHAPES: dict[str, Callable[[Any], str]] = {
    M + "f": _fraction,
    M + "sSup": _scripts,
    M + "sSub": _scripts,
    M + "sSubSup": _scripts,
    M + "sPre": _before,
    M + "rad": _root,
    M + "nary": _sum,
    M + "d": _brackets,
    M + "m": _matrix,
    M + "eqArr": _lines,
    M + "func": _function,
    M + "acc": _accent,
    M + "bar": _bar,
    M + "limLow": _limit("_"),
    M + "limUpp": _limit("^"),
}
