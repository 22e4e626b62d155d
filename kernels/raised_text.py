"""Text that is set above or below the line → plain text that still says so: x², H₂O, x^T, v_max, 10th.

Unicode's own characters are taken where each character has one, and of letters only one alone: no search finds words of them. Else it is
`^` and `_` as in a formula (`office_math`). The invariant: the letters and digits of the text are all in what comes out, in their order.
"""

from __future__ import annotations

_HIGH = str.maketrans("0123456789+-−=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ")
_LOW = str.maketrans("0123456789+-−=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
_SIGNS = {"tm": "™", "sm": "℠"}
# endings of ordinal numbers: 1st, 2nde, 1er, 3ème
_ORDINALS = frozenset(("st", "nd", "rd", "th", "er", "re", "ère", "nde", "ème", "eme"))
_LONGEST = 30  # what is longer is small print, no index


def turn_pieces(pieces: list[str], start: int, *, low: bool, to_note: bool = False) -> None:
    """The pieces from `start` on, which stand above or, with `low`, below the line, as text that says so; their number stays. Text of more
    than one line, marked by a NUL, is left alone."""
    text = "".join(pieces[start:])
    if "\x00" in text or not text.strip():
        return
    before = next((piece for piece in reversed(pieces[max(0, start - 4) : start]) if piece), "")
    if low:
        turned = lower_text(text, before)
    else:
        turned = mark_reference(text) if to_note else raise_text(text, before)
    pieces[start:] = [turned, *[""] * (len(pieces) - start - 1)]


def raise_text(text: str, before: str) -> str:
    """A superscript as plain text; `before` is what stands before it on the line."""
    core = text.strip()
    if core.lower() in _SIGNS:
        return text.replace(core, _SIGNS[core.lower()])
    return text if core.lower() in _ORDINALS and before[-1:].isdigit() else _turn(text, core, before, _HIGH, "^")


def lower_text(text: str, before: str) -> str:
    """A subscript as plain text."""
    return _turn(text, text.strip(), before, _LOW, "_")


def mark_reference(text: str) -> str:
    """A superscript that leads to a note: [1], as notes of a Word document are written."""
    core = text.strip()
    if not any(sign.isalnum() for sign in core) or (core.startswith("[") and core.endswith("]")) or len(core) > _LONGEST:
        return text
    return text.replace(core, f"[{core}]")


def _turn(text: str, core: str, before: str, table: dict[int, int], sign: str) -> str:
    if all(ord(one) in table for one in core) and sum(one.isalpha() for one in core) <= 1:
        return text.translate(table)
    written = any(one.isalnum() for one in core) and not core.startswith("[") and len(core) <= _LONGEST
    if not written or not before or before[-1].isspace():
        return text
    return text.replace(core, f"{sign}{core}" if core.isalnum() else f"{sign}({core})")
