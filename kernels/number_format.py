"""A value and its number format code → the text that a spreadsheet shows in the cell, at any width.

Sections, conditions, thousands, scaling, percent, exponents, fractions, dates of both systems, elapsed time, literals and currency. What
depends on the reader's own system (the "short date") is shown as ISO 8601. The invariant: every code gives a format, and every finite
value a text; a code that says nothing sensible, or hides every value, shows the value as `General` does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from raydex.kernels.serial_date import read_serial, show_date

_MAX_CODE = 1_000
_MAX_DECIMALS = 30
# below this size and number of decimals, and away from a tie, binary and decimal rounding agree
_EASY, _EASY_DECIMALS, _TIE = 1e8, 4, 1e-3
_CONTEXT = Context(prec=400, rounding=ROUND_HALF_UP)
_TOKEN = re.compile(
    r"""
    "(?P<quoted>[^"]*)"? | \\(?P<escaped>.) | [_*](?P<fill>.) | \[(?P<bracket>[^\]]*)\]
    | (?P<general>General) | (?P<half>AM/PM|A/P|上午/下午) | (?P<exponent>E[+-](?=[0\#?]))
    | (?P<date>y+|m+|d+|h+|s+(?:\.0+)?|e+|b+|g+|a{3,4}) | (?P<digit>[0\#?]) | (?P<mark>[.,%/@;]) | (?P<other>.)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?\d+(?:\.\d+)?)$")
_ELAPSED = re.compile(r"(h+|m+|s+)$", re.IGNORECASE)
_PLAIN = re.compile(r"#*,##0|0|#*0")
_SYSTEM = {"$-F800": "yyyy-mm-dd", "$-F400": "hh:mm:ss"}

Token = tuple[str, str]

BUILT_IN = {
    0: "General",
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    5: "$#,##0_);($#,##0)",
    6: "$#,##0_);[Red]($#,##0)",
    7: "$#,##0.00_);($#,##0.00)",
    8: "$#,##0.00_);[Red]($#,##0.00)",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    14: "yyyy-mm-dd",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "yyyy-mm-dd h:mm",
    **dict.fromkeys((27, 28, 29, 30, 31, 34, 35, 36, 50, 51, 52, 53, 54, 57, 58), "yyyy-mm-dd"),
    **dict.fromkeys((32, 33, 55, 56), "h:mm:ss"),
    37: "#,##0_);(#,##0)",
    38: "#,##0_);[Red](#,##0)",
    39: "#,##0.00_);(#,##0.00)",
    40: "#,##0.00_);[Red](#,##0.00)",
    41: '_(* #,##0_);_(* (#,##0);_(* "-"_);_(@_)',
    42: '_($* #,##0_);_($* (#,##0);_($* "-"_);_(@_)',
    43: '_(* #,##0.00_);_(* (#,##0.00);_(* "-"??_);_(@_)',
    44: '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)',
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss.0",
    48: "##0.0E+0",
    49: "@",
}


@dataclass(slots=True)
class Section:
    """One of the parts between semicolons. `kind`: number, date, general, fraction, exponent or text."""

    tokens: list[Token]
    kind: str = "number"
    condition: tuple[str, float] | None = None
    decimals: int = 0
    percents: int = 0
    thousands: bool = False
    scale: int = 0
    plain: str = ""  # the format specification where the digits are one plain run
    point: int = -1


@dataclass(slots=True)
class NumberFormat:
    """A compiled code. `is_date` tells the kind of values that it is made for."""

    sections: list[Section] = field(default_factory=list)
    text: Section | None = None
    general: bool = False
    is_date: bool = False
    conditional: bool = False

    def show(self, value: float, date1904: bool = False) -> str:
        if self.general or not self.sections:
            return show_general(value)
        section, signed = self._choose(value)
        if section.kind == "date":
            moment = read_serial(value, date1904)
            return show_general(value) if moment is None else show_date(moment, section.tokens).strip()
        text = _show_number(section, abs(value)).strip()
        return f"-{text}" if signed and text and any(char in "123456789" for char in text) else text

    def show_text(self, text: str) -> str:
        if self.text is None:
            return text
        return "".join(text if token == ("mark", "@") else token[1] for token in self.text.tokens)

    def _choose(self, value: float) -> tuple[Section, bool]:
        """The section of a value, and whether a minus goes before what it shows."""
        sections = self.sections
        if self.conditional:
            for section in sections:
                if section.condition is None or _meets(value, section.condition):
                    return section, value < 0 and not _only_negative(section.condition)
            return sections[-1], value < 0
        if len(sections) == 1:
            return sections[0], value < 0
        if value < 0:
            return sections[1], False
        return sections[2] if value == 0 and len(sections) > 2 else sections[0], False


@lru_cache(maxsize=512)
def compile_format(code: str) -> NumberFormat:
    """A format for any code."""
    parts = _split(code[:_MAX_CODE])
    made = [_compile(tokens) for tokens in parts]
    text = None
    if len(made) > 3 or (len(made) > 1 and made[-1].kind == "text"):
        text = made.pop() if len(made) <= 4 else made[3]
        made = made[:3]
    if len(made) == 1 and made[0].kind == "text":
        return NumberFormat(general=True, text=made[0] if len(made[0].tokens) > 1 else None)
    if not any(section.tokens for section in made):
        return NumberFormat(general=True)
    general = len(made) == 1 and made[0].tokens == [("general", "General")]
    dated = any(section.kind == "date" for section in made)
    return NumberFormat(made, text, general, dated, any(section.condition for section in made))


def show_general(value: float) -> str:
    """What `General` shows in a cell that is wide enough: 11 characters, whole numbers in full."""
    size = abs(value)
    if value == int(value) and size < 1e15:
        return str(int(value))
    if size >= 1e11 or size < 1e-4:
        mantissa, _, exponent = f"{value:.5E}".partition("E")
        return f"{_trim(mantissa)}E{exponent}"
    if size >= 1e10:
        return f"{value:.0f}"
    return _trim(f"{value:.9f}") if size < 1 else f"{value:.10g}"


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _split(code: str) -> list[list[Token]]:
    sections: list[list[Token]] = [[]]
    for found in _TOKEN.finditer(code):
        kind = str(found.lastgroup)
        text = found[kind]
        if kind == "mark" and text == ";":
            sections.append([])
        elif kind == "fill":
            sections[-1].append(("pad", " ")) if found[0][0] == "_" else None
        elif kind == "general":
            sections[-1].append((kind, "General"))
        elif kind in ("quoted", "escaped", "other"):
            sections[-1].append(("text", text))
        else:
            sections[-1].append((kind, text.lower() if kind == "date" else text))
    return sections


def _compile(tokens: list[Token]) -> Section:
    section = Section([])
    for kind, text in tokens:
        if kind == "bracket":
            _add_bracket(section, text)
        else:
            section.tokens.append((kind, text))
    kinds = {kind for kind, _ in section.tokens}
    marks = {text for kind, text in section.tokens if kind == "mark"}
    if "general" in kinds:
        section.kind = "general"
    elif kinds & {"date", "elapsed"}:
        section.kind = "date"
    elif "@" in marks:
        section.kind = "text"
    elif "digit" not in kinds:
        section.kind = "literal"
    elif "/" in marks:
        section.kind = "fraction"
    else:
        section.kind = "exponent" if "exponent" in kinds else "number"
        _measure(section)
    return section


def _add_bracket(section: Section, text: str) -> None:
    """[>=100], [h], [$€-407]; colours and the rest show nothing."""
    condition = _CONDITION.match(text)
    if condition:
        section.condition = (condition[1], float(condition[2]))
    elif _ELAPSED.match(text):
        section.tokens.append(("elapsed", text.lower()))
    elif text.upper() in _SYSTEM:
        section.tokens += [token for token in _split(_SYSTEM[text.upper()])[0] if token]
        section.tokens.append(("stop", ""))
    elif text.startswith("$"):
        symbol = text[1:].rpartition("-")[0] if "-" in text else text[1:]
        if symbol:
            section.tokens.append(("text", symbol))


def _measure(section: Section) -> None:
    """Counts of decimals, percents and scaling commas; the plain specification where no literal stands between the digits."""
    tokens = section.tokens
    end = next((at for at, (kind, _) in enumerate(tokens) if kind == "exponent"), len(tokens))
    section.percents = sum(token == ("mark", "%") for token in tokens)
    section.point = next((at for at in range(end) if tokens[at] == ("mark", ".")), -1)
    whole_end = section.point if section.point >= 0 else end
    digits = [at for at in range(whole_end) if tokens[at][0] == "digit"]
    if section.point >= 0:
        section.decimals = min(_MAX_DECIMALS, sum(tokens[at][0] == "digit" for at in range(section.point, end)))
    last = digits[-1] if digits else -1
    commas = [at for at in range(end) if tokens[at] == ("mark", ",")]
    placed = max((at for at in range(end) if tokens[at][0] == "digit"), default=end)
    section.scale = sum(at > placed or last < at < whole_end for at in commas)
    section.thousands = bool(digits) and any(digits[0] < at < last for at in commas)
    run = "".join(text for _, text in tokens[digits[0] : last + 1]) if digits else ""
    fixed = all(tokens[at][1] == "0" for at in range(section.point + 1, end) if tokens[at][0] == "digit") or section.point < 0
    if section.kind == "number" and fixed and _PLAIN.fullmatch(run):
        section.plain = ",f" if section.thousands else "f"


def _meets(value: float, condition: tuple[str, float]) -> bool:
    sign, bound = condition
    order = (value > bound) - (value < bound)
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0, "=": order == 0, "<>": order != 0}[sign]


def _only_negative(condition: tuple[str, float] | None) -> bool:
    return condition is not None and condition[0] in ("<", "<=") and condition[1] <= 0


def _show_number(section: Section, size: float) -> str:
    if section.kind == "general":
        return "".join(show_general(size) if kind == "general" else text for kind, text in section.tokens)
    if section.kind in ("literal", "text"):
        return "".join(show_general(size) if token == ("mark", "@") else token[1] for token in section.tokens if token[0] != "stop")
    if section.kind == "fraction":
        return _show_fraction(section, size)
    if section.kind == "exponent":
        return _show_exponent(section, size)
    if section.plain and size < _EASY and not section.scale and section.decimals <= _EASY_DECIMALS:
        number = size * 100**section.percents
        rest = number * 10**section.decimals % 1
        if abs(rest - 0.5) > _TIE:
            return _show_plain(section, format(number, f"{section.plain[:-1]}.{section.decimals}f"))
    value = Decimal(f"{size:.15g}").scaleb(2 * section.percents - 3 * section.scale, _CONTEXT)
    value = value.quantize(Decimal(1).scaleb(-section.decimals), context=_CONTEXT)
    if section.plain:
        return _show_plain(section, format(value, section.plain))
    whole, _, decimals = format(value, "f").partition(".")
    return _fill(section, section.tokens, whole, decimals)


def _show_plain(section: Section, number: str) -> str:
    """The number once, at its first digit; literals around it."""
    shown: list[str] = []
    placed = False
    for kind, text in section.tokens:
        if kind == "digit" or (kind == "mark" and text in ".,"):
            if not placed:
                shown.append(number)
                placed = True
        elif kind != "stop":
            shown.append(text)
    return "".join(shown)


def _fill(section: Section, tokens: list[Token], whole: str, decimals: str) -> str:
    """Digits into their placeholders, one by one; digits that are too many go to the first."""
    digits = whole.lstrip("0")
    point = section.point if section.point >= 0 else len(tokens)
    shown: list[str] = []
    written = 0
    places = sum(kind == "digit" for kind, _ in tokens[:point])
    for kind, text in reversed(tokens[:point]):
        if kind != "digit":
            if kind not in ("mark", "stop") or text == "%":
                shown.append(text)
            continue
        places -= 1
        count = max(1, len(digits)) if places == 0 else 1
        for _ in range(count):
            char = digits[-1:] or {"0": "0", "?": " "}.get(text, "")
            digits = digits[:-1]
            if char and written and section.thousands and written % 3 == 0 and char != " ":
                shown.append(",")
            written += bool(char)
            shown.append(char)
    shown.reverse()
    kept = len(decimals.rstrip("0"))
    at = 0
    for kind, text in tokens[point:]:
        if kind == "digit":
            char = decimals[at : at + 1]
            at += 1
            shown.append(char if at <= kept or text == "0" else (" " if text == "?" else ""))
        elif kind not in ("mark", "stop") or text in ".%":
            shown.append(text)
    return "".join(shown)


def _show_exponent(section: Section, size: float) -> str:
    tokens = section.tokens
    split = next(at for at, (kind, _) in enumerate(tokens) if kind == "exponent")
    end = section.point if 0 <= section.point < split else split
    places = max(1, sum(kind == "digit" for kind, _ in tokens[:end]))
    exponent = int(f"{size:.{section.decimals}E}".partition("E")[2]) if size else 0
    exponent -= exponent % places
    if section.plain and size < _EASY and not section.scale and section.decimals <= _EASY_DECIMALS:
        number = size * 100**section.percents
        rest = number * 10**section.decimals % 1
        if abs(rest - 0.5) > _TIE:
            return _show_plain(section, format(number, f"{section.plain[:-1]}.{section.decimals}f"))
    value = Decimal(f"{size:.15g}").scaleb(-exponent, _CONTEXT).quantize(Decimal(1).scaleb(-section.decimals), context=_CONTEXT)
    whole, _, decimals = format(value, "f").partition(".")
    rest = tokens[split + 1 :]
    width = 0
    while width < len(rest) and rest[width][0] == "digit":
        width += 1
    sign = "-" if exponent < 0 else "+" if tokens[split][1][1] == "+" else ""
    tail = "".join(text for kind, text in rest[width:] if kind != "stop")
    return f"{_fill(section, tokens[:split], whole or '0', decimals)}E{sign}{abs(exponent):0{width}d}{tail}"


def _show_fraction(section: Section, size: float) -> str:
    """`# ?/?`: whole part and fraction; without a placeholder of its own for the whole part, an improper fraction."""
    shown = "".join(text if kind in ("digit", "mark", "text") else " " for kind, text in section.tokens)
    before, _, after = shown.partition("/")
    groups = re.findall(r"[0#?]+", before)
    below = re.match(r"\s*(?:(\d*[1-9]\d*)|([0#?]+))", after)
    if below is None or not groups or size >= 1e15:
        return show_general(size)
    exact = Fraction(f"{size:.15g}")
    if below[1]:
        bottom = int(below[1][:6])
        top = int(exact * bottom + Fraction(1, 2))
    else:
        near = exact.limit_denominator(10 ** min(len(below[2]), 6) - 1)
        top, bottom = near.numerator, near.denominator
    if len(groups) == 1:
        return f"{top}/{bottom}"
    whole, top = divmod(top, bottom)
    if not top:
        return str(whole)
    return f"{whole} {top}/{bottom}" if whole else f"{top}/{bottom}"
