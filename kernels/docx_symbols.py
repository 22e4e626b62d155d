"""A character of a symbol font (`w:sym`) → the Unicode character that looks like it: Greek and operators of Symbol, signs of Wingdings.

Data only, with one look-up. A place of a symbol font that is not listed is U+FFFD, and the caller counts it.
"""

from __future__ import annotations

UNKNOWN = "\ufffd"
_PRIVATE = range(0xF000, 0xF100)
_GREEK = dict(
    zip(
        "ABGDEZHQIKLMNXOPRSTUFCYWabgdezhqiklmnxoprstufcywVJj",
        "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρστυφχψωςϑϕ",
        strict=True,
    )
)
_SYMBOL = {ord(sign): other for sign, other in _GREEK.items()} | {
    0xA2: "′", 0xA3: "≤", 0xA5: "∞", 0xA7: "♣", 0xA8: "♦", 0xA9: "♥", 0xAA: "♠", 0xAB: "↔", 0xAC: "←", 0xAD: "↑", 0xAE: "→", 0xAF: "↓",
    0xB0: "°", 0xB1: "±", 0xB2: "″", 0xB3: "≥", 0xB4: "×", 0xB5: "∝", 0xB6: "∂", 0xB7: "•", 0xB8: "÷", 0xB9: "≠", 0xBA: "≡", 0xBB: "≈",
    0xBC: "…", 0xC0: "ℵ", 0xC5: "⊕", 0xC6: "∅", 0xC7: "∩", 0xC8: "∪", 0xC9: "⊃", 0xCC: "⊂", 0xCD: "⊆", 0xCE: "∈", 0xCF: "∉",
    0xD0: "∠", 0xD1: "∇", 0xD2: "®", 0xD3: "©", 0xD4: "™", 0xD5: "∏", 0xD6: "√", 0xD7: "⋅", 0xD8: "¬", 0xD9: "∧", 0xDA: "∨", 0xDB: "⇔",
    0xDC: "⇐", 0xDD: "⇑", 0xDE: "⇒", 0xDF: "⇓", 0xE5: "∑", 0xF2: "∫", 0x22: "∀", 0x24: "∃", 0x27: "∋", 0x2A: "∗", 0x2D: "−", 0x40: "≅",
    0x5C: "∴", 0x5E: "⊥", 0x7E: "∼",
}  # fmt: skip
_WINGDINGS = {
    0x21: "✏", 0x22: "✂", 0x28: "☎", 0x2A: "✉", 0x36: "⌛", 0x41: "✌", 0x43: "👍", 0x44: "👎", 0x46: "☞", 0x4A: "☺", 0x4C: "☹", 0x6C: "●",
    0x6D: "❍", 0x6E: "■", 0x6F: "□", 0x71: "❑", 0x75: "◆", 0x76: "❖", 0x77: "⬥", 0x9F: "•", 0xA1: "○", 0xA4: "◉", 0xA7: "▪", 0xA8: "◻",
    0xAB: "★", 0xD8: "➢", 0xDF: "←", 0xE0: "→", 0xE1: "↑", 0xE2: "↓", 0xE8: "➔", 0xEF: "⇦", 0xF0: "⇨", 0xF3: "⬄", 0xFB: "✗", 0xFC: "✓",
    0xFD: "☒", 0xFE: "☑",
}  # fmt: skip
_WINGDINGS_2 = {0x50: "✓", 0x4F: "✗", 0x51: "☒", 0x52: "☑", 0x54: "☒", 0xA3: "□"}
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2}


def symbol(font: str, code: str) -> str:
    """`code` is hexadecimal, as the attribute holds it; symbol fonts may stand at F000-F0FF."""
    try:
        number = int(code[:8], 16)
    except ValueError:
        return UNKNOWN
    signs = _FONTS.get(font.lower())
    if signs is not None:
        at = number - _PRIVATE.start if number in _PRIVATE else number
        ascii_sign = chr(at) if font.lower() == "symbol" and 0x20 <= at < 0x40 else UNKNOWN
        return signs.get(at, ascii_sign)
    if not 0x20 <= number < 0x110000 or 0xD800 <= number < 0xF900:
        return UNKNOWN
    return chr(number)
