"""A count and the name of a number format of office documents → the digits, letters or signs that a reader sees.

The invariant: a result has at most some thirty characters; a count that a format has no sign for is shown in decimal digits.
"""

from __future__ import annotations

_ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"),
        strict=True,
    )
)
_ROMAN_BELOW = 4000
_LATIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_RUSSIAN = "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЫЭЮЯ"
_REPEATS = 30
_CHINESE = "〇一二三四五六七八九"
_LEGAL = "零壹贰叁肆伍陆柒捌玖"
_STEMS = "甲乙丙丁戊己庚辛壬癸"
_BRANCHES = "子丑寅卯辰巳午未申酉戌亥"
_CHINESE_COUNTING = frozenset(
    ("chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCounting", "taiwaneseCountingThousand")
)
_DIGIT_BY_DIGIT = frozenset(("ideographDigital", "japaneseDigitalTenThousand", "taiwaneseDigital", "koreanDigital2"))
_ORDINALS = {1: "st", 2: "nd", 3: "rd"}


def format_number(count: int, form: str) -> str:
    if form == "none":
        return ""
    if count > 0:
        if form in ("upperRoman", "lowerRoman") and count < _ROMAN_BELOW:
            return roman(count) if form == "upperRoman" else roman(count).lower()
        if form in ("upperLetter", "lowerLetter"):
            return _letters(count, _LATIN if form == "upperLetter" else _LATIN.lower())
        if form in ("russianUpper", "russianLower"):
            return _letters(count, _RUSSIAN if form == "russianUpper" else _RUSSIAN.lower())
        if form in _CHINESE_COUNTING and count < 10_000:
            return chinese(count)
        if form in ("chineseLegalSimplified", "ideographLegalTraditional", "japaneseLegal") and count < 10:
            return _LEGAL[count]
        if form == "ideographTraditional" and count <= len(_STEMS):
            return _STEMS[count - 1]
        if form == "ideographZodiac" and count <= len(_BRANCHES):
            return _BRANCHES[count - 1]
        if form in ("decimalEnclosedCircle", "decimalEnclosedCircleChinese") and count <= 20:
            return chr(0x245F + count)
        if form == "ordinal":
            return f"{count}{'th' if count % 100 in (11, 12, 13) else _ORDINALS.get(count % 10, 'th')}"
        if form == "hex":
            return f"{count:X}"
    digits = str(count)
    if form == "decimalZero":
        return digits.zfill(2)
    if form in _DIGIT_BY_DIGIT:
        return "".join(_CHINESE[int(digit)] if digit.isdigit() else digit for digit in digits)
    if form in ("decimalFullWidth", "decimalFullWidth2"):
        return "".join(chr(ord(digit) + 0xFEE0) for digit in digits)
    if form == "numberInDash":
        return f"- {digits} -"
    return digits


def roman(count: int) -> str:
    """Of 1 to 3999."""
    out = []
    for value, sign in _ROMAN:
        out.append(sign * (count // value))
        count %= value
    return "".join(out)


def chinese(count: int) -> str:
    """Of 1 to 9999, as it is counted: 十二, 一百零三."""
    out = ""
    gap = False
    for value, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = count // value
        count %= value
        if not digit:
            gap = gap or bool(out)
            continue
        out += "零" if gap else ""
        gap = False
        out += unit if (value == 10 and digit == 1 and not out) else _CHINESE[digit] + unit
    return out


def _letters(count: int, alphabet: str) -> str:
    """A … Z, AA, BB …: a letter is repeated, it is no positional system."""
    times, at = divmod(count - 1, len(alphabet))
    return alphabet[at] * (times + 1) if times < _REPEATS else str(count)
