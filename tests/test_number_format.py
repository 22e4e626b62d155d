"""Number formats: what a cell shows, from the code and the stored value."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raydex.kernels.number_format import BUILT_IN, compile_format
from raydex.kernels.serial_date import to_serial

SHOWN = [
    ("General", 300.0, "300"),
    ("General", 0.1 + 0.2, "0.3"),
    ("General", 1 / 3, "0.333333333"),
    ("General", 3.14159265358979, "3.141592654"),
    ("General", 12345678901.5, "12345678902"),
    ("General", 1e20, "1E+20"),
    ("General", 0.0000123456, "1.23456E-05"),
    ("0.0%", 0.365, "36.5%"),
    ("0.00", 0.125, "0.13"),
    ("0.00", -1.005, "-1.01"),
    ("0", -0.3, "0"),
    ("00000", 42, "00042"),
    ("#,##0.00", 1234.565, "1,234.57"),
    ("#,###", 1234567, "1,234,567"),
    ("0.0#", 1.5, "1.5"),
    ("0.0#", 1.25, "1.25"),
    (".00", 0.5, ".50"),
    ("#,##0,", 1234567, "1,235"),
    ('#,##0.0,,"M"', 1234567, "1.2M"),
    ("[$€-407] #,##0.00", 1234.5, "€ 1,234.50"),
    ("$#,##0.00", 1234.5, "$1,234.50"),
    (BUILT_IN[37], -1234, "(1,234)"),
    ("0.00;[Red]-0.00", -2, "-2.00"),
    ("#,##0;-#,##0;", 0, ""),
    (";;;", 5, "5"),
    ('0;-0;"none"', 0, "none"),
    ('[>=100]"big";"small"', 150, "big"),
    ('[>=100]"big";"small"', 5, "small"),
    ('[<0]"under";0', -5, "under"),
    ("(000) 000-0000", 1234567890, "(123) 456-7890"),
    ("000-00-0000", 123456789, "123-45-6789"),
    ('0" kg"', 5, "5 kg"),
    ('General" x"', 2, "2 x"),
    ("# ?/?", 1.5, "1 1/2"),
    ("# ??/??", 0.333, "1/3"),
    ("?/8", 0.5, "4/8"),
    ("0.00E+00", 12345, "1.23E+04"),
    ("##0.0E+0", 12345, "12.3E+3"),
    ("0E-0", 0.001, "1E-3"),
    ("@", 3.5, "3.5"),
    ("yyyy-mm-dd", 46082, "2026-03-01"),
    (BUILT_IN[14], 46082, "2026-03-01"),
    ("[$-F800]dddd, mmmm dd, yyyy", 46082, "2026-03-01"),
    ("d. mmmm yyyy", 46082, "1. March 2026"),
    ("ddd mmm yy", 46082, "Sun Mar 26"),
    ("yyyy年m月d日", 46082, "2026年3月1日"),
    ("yyyy-mm-dd", 59, "1900-02-28"),
    ("yyyy-mm-dd", 60, "1900-02-29"),
    ("yyyy-mm-dd", 61, "1900-03-01"),
    ("yyyy-mm-dd", -1, "-1"),
    ("yyyy-mm-dd", 1e9, "1000000000"),
    ("m/d/yy h:mm", 46082.5, "3/1/26 12:00"),
    ("h:mm AM/PM", 0.75, "6:00 PM"),
    ("h:mm AM/PM", 0, "12:00 AM"),
    ("hh:mm:ss", 0.999999, "00:00:00"),
    ("[h]:mm:ss", 1.5, "36:00:00"),
    ("[mm]:ss", 0.0625, "90:00"),
    ("mm:ss.0", 0.000014, "00:01.2"),
]


@pytest.mark.parametrize(("code", "value", "shown"), SHOWN)
def test_what_a_format_shows(code: str, value: float, shown: str) -> None:
    assert compile_format(code).show(value) == shown


def test_dates_of_the_1904_system() -> None:
    assert compile_format("yyyy-mm-dd").show(44620, date1904=True) == "2026-03-01"
    assert compile_format("[h]:mm").show(1.5, date1904=True) == "36:00"


def test_text_sections() -> None:
    assert compile_format('0;0;0;"x: "@').show_text("a") == "x: a"
    assert compile_format('"<"@">"').show_text("a") == "<a>"
    assert compile_format("@").show_text("a") == "a"
    assert compile_format("0.00").show_text("a") == "a"


@given(st.dates(datetime.date(1900, 1, 1), datetime.date(9999, 12, 31)))
def test_every_date_comes_back(date: datetime.date) -> None:
    moment = datetime.datetime(date.year, date.month, date.day)
    assert compile_format("yyyy-mm-dd").show(to_serial(moment)) == date.isoformat()


@given(st.text('0#?.,%/@;E+-[]"\\_*ymdhsGenral APM$<>=1 ', max_size=30), st.floats(allow_nan=False, allow_infinity=False))
def test_any_code_shows_any_value(code: str, value: float) -> None:
    made = compile_format(code)
    assert isinstance(made.show(value), str)
    assert isinstance(made.show_text("x"), str)
