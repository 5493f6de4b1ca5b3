"""Numbers are written briefly, but never so briefly that they mislead."""

from __future__ import annotations

import json
import math
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skescore.rules._text import (
    bounds_text,
    decimals_for_range,
    exact_number,
    feature_name,
    format_label,
    format_number,
    linear_text,
    output_number,
    percent_text,
    plain_number,
)

#: Above 1.7975e308, four digits may be more than the largest float.
finite = st.floats(-1e308, 1e308)


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (0, None, "0"),
        (-0.0, None, "0"),
        (1, None, "1"),
        (2.4499999881, None, "2.45"),
        (-2.4499999881, None, "-2.45"),
        (0.1 + 0.2, None, "0.3"),
        (12345.678, None, "12346"),
        (123456789012345, None, "123456789012345"),
        (9999.6, None, "10000"),
        (0.99996, None, "1"),
        (0.00012346, None, "0.0001235"),
        (1e-9, None, "0.000000001"),
        (1.23456e-12, None, "1.235e-12"),
        (5e-324, None, "4.941e-324"),
        (-5e-324, None, "-4.941e-324"),
        (9.9996e15, None, "9999600000000000"),
        (1e16, None, "1e+16"),
        (1.23456e20, None, "1.235e+20"),
        (sys.float_info.max, None, "1.798e+308"),
        (math.inf, None, "∞"),
        (-math.inf, None, "-∞"),
        (math.nan, None, "NaN"),
        (2.449, 1, "2.4"),
        (2.0, 3, "2"),
        (200, 0, "200"),
        (-0.04, 1, "0"),
        (0.04, 1, "0"),
        (1.0000000001234567, 13, "1.0000000001235"),
        (1.2345678901e20, 2, "1.2345678901e+20"),
    ],
)
def test_format_number_returns_short_text(value, decimals, text):
    assert format_number(value, decimals) == text


@given(value=finite)
def test_format_number_keeps_four_digits(value):
    assert float(format_number(value)) == pytest.approx(value, rel=5.001e-4, abs=5e-324)


@given(value=st.floats(-1e9, 1e9), decimals=st.integers(0, 12))
@example(value=67108864.484375, decimals=5)
def test_format_number_keeps_given_decimals(value, decimals):
    text = format_number(value, decimals)
    # The printed number and the difference are floats themselves.
    assert abs(float(text) - value) <= 0.5000001 * 10.0**-decimals + 2 * math.ulp(value)
    assert len(text.partition(".")[2]) <= decimals
    assert "e" not in text
    assert text != "-0"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1, "100 %"),
        (0, "0 %"),
        (0.5, "50 %"),
        (0.994, "99.4 %"),
        (0.9999, "> 99.9 %"),
        (0.9996, "> 99.9 %"),
        (math.nextafter(1, 0), "> 99.9 %"),
        (0.0049, "0.5 %"),
        (0.0004, "< 0.1 %"),
        (5e-324, "< 0.1 %"),
        (2 / 3, "67 %"),
    ],
)
def test_percent_text_rounds_to_whole_percent(share, text):
    assert percent_text(share) == text


@given(share=st.floats(0, 1))
@example(0.99)
@example(0.995)
@example(math.nextafter(0.99, 0))
@example(0.01)
def test_percent_text_is_100_only_if_exact(share):
    text = percent_text(share)
    assert (text == "100 %") == (share == 1)
    assert (text == "0 %") == (share == 0)
    if text[0] not in "<>":
        assert float(text.removesuffix(" %")) == pytest.approx(100 * share, abs=0.5001)


def test_decimals_for_range_depends_on_span():
    assert decimals_for_range(0, 10) == 2
    assert decimals_for_range(0, 9.99) == 3
    assert decimals_for_range(0, 1e6) == -3
    assert decimals_for_range(3, 3) is None
    assert decimals_for_range(-sys.float_info.max, sys.float_info.max) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (724.5, "724.5"),
        (725.0, "725"),
        (-2.449999988079071, "-2.449999988079071"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e-9, "0.000000001"),
        (1.5e-10, "1.5e-10"),
        (9007199254740993.0, "9007199254740992"),
        (1e16, "1e+16"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
    ],
)
def test_exact_number_writes_all_digits(value, text):
    assert exact_number(value) == plain_number(0, value) == text


@given(value=st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1e3, 1e3))
def test_exact_number_round_trips(value):
    text = exact_number(value)
    assert float(text) == value
    assert len(text.replace(".", "").strip("-0")) <= max(len(repr(value)), 17)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234.56789, "1234.56789"), (-0.123456789, "-0.123456789"), (1 / 3, "0.3333")],
)
def test_output_number_is_exact_with_nine_digits(value, text):
    assert output_number(value) == text


def test_bounds_text_writes_both_bounds():
    assert bounds_text("a", 1.0, 2.0, True, False, "{:.2f}".format) == "1.00 ≤ a < 2.00"
    assert bounds_text("a", -math.inf, math.inf, False, False, str) == "a is anything"


def test_linear_text_joins_terms():
    assert linear_text([(0, 1), (1, -1), (2, 0.5)], ["1", "1", "0.5"]) == "x0 - x1 + 0.5·x2"
    assert linear_text([(1, -2.25)], ["2.25"], ["a", "b"]) == "-2.25·b"


@pytest.mark.parametrize("label", ["a", "a b (c)", "§ 3", 1, 1.0, True, -3, 0.1 + 0.2])
def test_format_label_keeps_plain_labels(label):
    assert format_label(label) == str(label)


@pytest.mark.parametrize("text", ["", " a", "a, b", "{a}", "a\nb", "a;b"])
def test_format_label_quotes_ambiguous_labels(text):
    assert format_label(text) == json.dumps(text)
    assert "\n" not in format_label(text)


@pytest.mark.parametrize("name", ["a", "petal length (cm)", "od280/od315", "α"])
def test_feature_name_keeps_plain_names(name):
    assert feature_name([name], 0) == name


@pytest.mark.parametrize("name", ["IF x > 3", "a\tb", "a = b", ""])
def test_feature_name_quotes_ambiguous_names(name):
    assert feature_name([name], 0) == json.dumps(name)
