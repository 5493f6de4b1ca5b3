"""What reading PSyKE's rules rests on and needs no PSyKE: units and sets of numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from skescore.rules import Interval
from skescore.rules.importers import read_psyke
from skescore.rules.importers._psyke import (
    Columns,
    Units,
    _common,
    _without,
)

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(
    mean=st.floats(-1e9, 1e9),
    scale=st.floats(1e-9, 1e9),
    ends=st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).map(sorted),
    flags=st.tuples(st.booleans(), st.booleans()),
    free=st.sampled_from(["neither", "lower", "upper"]),
    value=st.floats(-1e6, 1e6),
)
def test_bounds_before_a_map_part_numbers_as_those_after_it(mean, scale, ends, flags, free, value):
    low = -math.inf if free == "lower" else ends[0]
    high = math.inf if free == "upper" else ends[1]
    assume(low < high or all(flags))
    after = Interval(0, low, high, *flags)
    before = Units({"a": (mean, scale)}).interval("a", after)
    x = value * scale + mean
    hair = 1e-12 * max(abs(end * scale) + abs(mean) for end in (*ends, value))
    assume(all(abs(x - (end * scale + mean)) > hair for end in ends))

    def column(value: float):
        return lambda _: np.array([value])

    assert before.holds(column(x))[0] == after.holds(column((x - mean) / scale))[0]


def test_units_of_answers():
    units = Units.of({"a": (1.0, 2.0), "b": (0.5, 4.0), "target": (10.0, 3.0)})
    assert units.output(2.0) == 16.0
    assert units.number("a", 3.0) == 7.0
    assert units.number("unknown", 3.0) == 3.0
    output = units.linear(0.25, [("a", 2, 0.5), ("b", 0, -1.0), ("c", 1, 2.0)])
    for row in np.random.default_rng(0).normal(size=(20, 3)):
        b, c, a = row
        scaled = 0.25 + 0.5 * (a - 1.0) / 2.0 - (b - 0.5) / 4.0 + 2.0 * c
        ours = output.intercept + sum(k * row[j] for j, k in output.terms)
        assert ours == pytest.approx(scaled * 3.0 + 10.0)
    assert Units.of(None) == Units.of({}) == Units({})


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_scales_are_above_zero(scale):
    with pytest.raises(ValueError, match=f"got the scale {scale} for 'a'"):
        Units.of({"a": (0.0, scale)})


cuts = st.tuples(st.integers(0, 5).map(float), st.integers(0, 1))
regions = st.lists(cuts, max_size=6, unique=True).map(
    lambda c: [(a, b) for a, b in zip(sorted(c)[::2], sorted(c)[1::2], strict=False)]
)


def within(region, x: float) -> bool:
    return any(start < (x, 0.5) < stop for start, stop in region)


@given(regions, regions)
def test_sets_of_numbers(one, other):
    for x in np.arange(-1, 7, 0.5).tolist():
        assert within(_without(one), x) == (not within(one, x))
        assert within(_common(one, other), x) == (within(one, x) and within(other, x))


def test_given_names_that_hold_psykes_say_where_they_are():
    assert Columns.of(["b", "a"], None).names == ("b", "a")
    assert Columns.of(["b", "a"], ["a", "c", "b"]).place == {"b": 2, "a": 0}
    assert Columns.of(["b", "a"], ["x", "y"]).place == {"b": 0, "a": 1}


@pytest.mark.parametrize("thing", [None, "GridEx", DecisionTreeClassifier()])
def test_only_extractors_of_psyke_are_read(thing):
    with pytest.raises(TypeError, match="must be a fitted extractor of PSyKE, got"):
        read_psyke(thing)
