"""Conditions compared with Python's own comparisons, one value at a time."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.rules import AtLeast, Interval, Linear, Missing, OneOf, Rule

INF, NAN = math.inf, math.nan
LARGEST = sys.float_info.max
#: Faces, their neighbors, and the ends of the number line.
VALUES = [
    -INF,
    -LARGEST,
    -2.0,
    math.nextafter(-1, -2),
    -1.0,
    math.nextafter(-1, 0),
    -5e-324,
    -0.0,
    0.0,
    5e-324,
    0.5,
    1.0,
    math.nextafter(1, 2),
    3.0,
    LARGEST,
    INF,
]
COLUMN = np.array([*VALUES, NAN])


@st.composite
def intervals(draw, feature=0):
    lower, upper = sorted(draw(st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES))))
    flags = draw(st.booleans()), draw(st.booleans())
    if lower == upper:
        flags = True, True
    if lower == upper and math.isinf(lower):
        lower, upper = -INF, INF
    return Interval(feature, lower, upper, *flags, missing=draw(st.booleans()))


def between(value, condition):
    """Return whether the condition holds for the value, by the definition of its class."""
    if value != value:
        return isinstance(condition, Interval) and condition.missing
    if condition.lower != -INF:
        if value < condition.lower:
            return False
        if value == condition.lower and not condition.lower_closed:
            return False
    if condition.upper != INF:
        if value > condition.upper:
            return False
        if value == condition.upper and not condition.upper_closed:
            return False
    return True


def held(condition, *columns):
    return condition.holds(lambda j: columns[j]).tolist()


# --- intervals -------------------------------------------------------------------------------


@given(condition=intervals())
def test_interval_compares_like_python(condition):
    assert held(condition, COLUMN) == [between(v, condition) for v in COLUMN.tolist()]


@given(one=intervals(), other=intervals())
def test_intersect_holds_where_both_intervals_hold(one, other):
    pair = [a and b for a, b in zip(held(one, COLUMN), held(other, COLUMN), strict=True)]
    try:
        assert held(one.intersect(other), COLUMN) == pair
        assert one.intersect(other) == other.intersect(one)
    except ValueError:
        assert not any(pair)


def test_intersect_rejects_intervals_of_different_features():
    with pytest.raises(ValueError, match="Intervals must be on the same feature, got 0 and 1"):
        Interval(0, 1, 2).intersect(Interval(1, 1, 2))


@pytest.mark.parametrize(
    ("bounds", "text", "literals"),
    [
        ({"upper": 2.45}, "x3 ≤ 2.45", 1),
        ({"upper": 2.45, "upper_closed": False}, "x3 < 2.45", 1),
        ({"lower": 2.45}, "x3 > 2.45", 1),
        ({"lower": 2.45, "lower_closed": True}, "x3 ≥ 2.45", 1),
        ({"lower": -1, "upper": 1}, "-1 < x3 ≤ 1", 2),
        ({"lower": -1, "upper": 1, "lower_closed": True, "upper_closed": False}, "-1 ≤ x3 < 1", 2),
        ({"lower": 4, "upper": 4, "lower_closed": True}, "x3 = 4", 2),
        ({}, "x3 is anything", 0),
        ({"missing": True}, "x3 is anything", 0),
        ({"upper": 2.45, "missing": True}, "x3 ≤ 2.45 or missing", 2),
        ({"lower": -1, "upper": 1, "missing": True}, "-1 < x3 ≤ 1 or missing", 3),
    ],
)
def test_interval_describes_itself(bounds, text, literals):
    condition = Interval(3, **bounds)
    assert str(condition) == text
    assert condition.n_literals == literals
    assert condition.is_trivial == (literals == 0)
    assert condition.features == (3,)
    assert condition.to_text(["a", "b", "c", "größe"]) == text.replace("x3", "größe")


def test_intersect_returns_missing_without_common_number():
    low, high = Interval(3, upper=1, missing=True), Interval(3, lower=1, missing=True)
    assert low.intersect(high) == Missing(3)
    with pytest.raises(ValueError, match="could never hold"):
        low.intersect(Interval(3, lower=1))


def test_interval_accepts_bounds_next_to_each_other():
    assert str(Interval(0, 1.00001, 1.00002)) == "1.00001 < x0 ≤ 1.00002"


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_interval_ignores_flags_of_free_sides(side):
    one, other = (Interval(0, **{f"{side}_closed": flag}) for flag in (True, False))
    assert one == other
    assert hash(one) == hash(other)


def test_interval_converts_bounds_to_python():
    condition = Interval(np.int64(1), np.float32(0.5), np.int8(3), np.True_, np.False_)
    assert condition == Interval(1, 0.5, 3.0, True, False)
    kinds = [type(v) for v in dataclasses.astuple(condition)]
    assert kinds == [int, float, float, bool, bool, bool]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Interval(0, NAN), ValueError, "lower must be a number, got nan"),
        (lambda: Interval(0, 1, NAN), ValueError, "upper must be a number, got nan"),
        (lambda: Interval(0, 2, 1), ValueError, "No number lies between lower=2.0 and upper=1.0"),
        (lambda: Interval(0, 1, 1), ValueError, "could never hold"),
        (lambda: Interval(0, INF), ValueError, "No number lies between"),
        (lambda: Interval(0, upper=-INF), ValueError, "No number lies between"),
        (lambda: Interval(-1, 1), ValueError, "feature must be an integer of 0 or more, got -1"),
        (lambda: Interval(1.5, 1), TypeError, "feature must be an integer of 0 or more, got 1.5"),
        (lambda: Interval(True, 1), TypeError, "feature must be an integer of 0 or more, got True"),
        (lambda: Interval("a", 1), TypeError, "feature must be an integer of 0 or more, got 'a'"),
        (lambda: Interval(0, "1"), TypeError, "lower must be a number, got '1'"),
        (lambda: Interval(0, None, 1), TypeError, "lower must be a number, got None"),
        (lambda: Interval(0, 0, True), TypeError, "upper must be a number, got True"),
        (lambda: Interval(0, 10**400), ValueError, "lower must fit a float"),
        (lambda: Interval(0, 1, 2, 1), TypeError, "lower_closed must be True or False, got 1"),
        (lambda: OneOf(0, []), ValueError, "at least one value"),
        (lambda: OneOf(0, "red"), TypeError, "values must be a collection of values, got 'red'"),
        (lambda: OneOf(0, 3), TypeError, "values must be a collection of values, got 3"),
        (lambda: OneOf(0, [NAN]), ValueError, "values must not be NaN or infinite, got nan"),
        (lambda: OneOf(0, [None]), TypeError, "values must be a str, int, float or bool, got None"),
        (lambda: OneOf(0, ["a"], "no"), TypeError, "negated must be True or False, got 'no'"),
        (lambda: AtLeast(0, [Interval(0, 1)]), ValueError, r"m must lie between 1 and .* \(1\)"),
        (lambda: AtLeast(2, [Interval(0, 1)]), ValueError, "got 2"),
        (lambda: AtLeast(1, []), ValueError, r"number of conditions \(0\)"),
        (lambda: AtLeast(1.0, [Interval(0, 1)]), TypeError, "m must be an integer, got 1.0"),
        (lambda: AtLeast(1, ["x0 > 1"]), TypeError, "must be Interval, OneOf, Missing,"),
        (lambda: Linear([]), ValueError, "at least one coefficient that is not 0"),
        (lambda: Linear([(0, 1), (0, -1)]), ValueError, "at least one coefficient that is not 0"),
        (lambda: Linear([(0, INF)]), ValueError, "coefficient must be a finite number, got inf"),
        (lambda: Linear([(0, LARGEST), (0, LARGEST)]), ValueError, "all of them finite"),
        (lambda: Linear([(-2, 1)]), ValueError, "feature must be an integer of 0 or more, got -2"),
        (lambda: Linear([(0, 1)], 3, 2), ValueError, "No number lies between"),
        (lambda: Rule([Interval(0, 2), "x"], 1).conditions, TypeError, "got str: 'x'"),
        (lambda: Rule([Interval(0, 2), Interval(0, 0, 1)], 1), ValueError, "could never hold"),
    ],
)
def test_conditions_reject_invalid_parameters(make, error, text):
    with pytest.raises(error, match=text):
        make()


# --- categories ------------------------------------------------------------------------------

CATEGORIES = ["red", "blue", "", "1", 1, 2, 2.5, True, False, -1]


@pytest.mark.filterwarnings("ignore:Rules compare x0 with numbers")
@given(
    values=st.lists(st.sampled_from(CATEGORIES), min_size=1),
    negated=st.booleans(),
    allowed=st.booleans(),
    column=st.lists(st.sampled_from([*CATEGORIES, None, NAN, pd.NA, np.str_("red"), np.int8(1)])),
)
def test_one_of_compares_like_python(values, negated, allowed, column):
    array = np.empty(len(column), dtype=object)
    array[:] = column
    missing = [v is None or v is pd.NA or v is NAN for v in column]
    expected = [
        allowed if is_missing else any(v == candidate for candidate in values) != negated
        for v, is_missing in zip(column, missing, strict=True)
    ]
    assert held(OneOf(0, values, negated, missing=allowed), array) == expected
    assert held(Missing(0), array) == missing
    assert held(Missing(0, negated=True), array) == [not is_missing for is_missing in missing]


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.0, 2.5, NAN, 0.0, INF]),
        np.array([1, 2, 0, -7]),
        np.array([1, 2], dtype=np.uint8),
        np.array([0.1, 2.5], dtype=np.float32),
        np.array([True, False]),
        np.array(["1", "red", "2.5"]),
        np.array([], dtype=float),
    ],
    ids=lambda c: c.dtype.str,
)
@pytest.mark.parametrize("values", [[1], [2.5, "red"], [True], ["red"], [-1, 0, 7], [0.1]])
@pytest.mark.filterwarnings("ignore:Rules compare x0 with")
def test_one_of_reads_plain_arrays(column, values):
    is_known = [v == v for v in column.tolist()]
    results = [any(v == known for known in values) for v in column.tolist()]
    assert held(OneOf(0, values), column) == results
    not_found = [a and not b for a, b in zip(is_known, results, strict=True)]
    assert held(OneOf(0, values, negated=True), column) == not_found
    removed = [not known for known in is_known]
    assert held(Missing(0), column) == removed
    either = [a or b for a, b in zip(removed, results, strict=True)]
    assert held(OneOf(0, values, missing=True), column) == either


def test_one_of_warns_about_mixed_types():
    for column in (np.array([NAN, 1.0]), np.array([1, 2]), np.array([True])):
        with pytest.warns(UserWarning, match=r"compare x0 with strings such as '1', but it holds"):
            assert not held(OneOf(0, ["1"]), column)[-1]
    for column in (np.array(["1", None], dtype=object), np.array(["1"])):
        with pytest.warns(UserWarning, match=r"numbers such as 1, but .* strings such as '1'"):
            assert not held(OneOf(0, [1]), column)[0]
    # Without observed values the column has no type, so nothing is reported.
    assert held(OneOf(0, ["1"]), np.array([NAN, NAN])) == [False, False]
    assert held(OneOf(0, [1]), np.array([None], dtype=object)) == [False]
    assert held(OneOf(0, [1]), np.array(["1", 1], dtype=object)) == [False, True]


def test_one_of_ignores_order_and_repetitions():
    condition = OneOf(0, ["b", 10, 9, "a", "b", np.float64(2.5), np.str_("a")])
    assert condition == OneOf(0, ("a", "b", 2.5, 9, 10))
    assert condition.values == (2.5, 9, 10, "a", "b")
    assert [type(v) for v in condition.values] == [float, int, int, str, str]
    assert hash(condition) == hash(OneOf(0, {"a", "b", 2.5, 9, 10}))
    assert OneOf(0, [2, 1.0]) == OneOf(0, [1, 2.0])
    assert condition.n_literals == 5
    assert OneOf(0, ["a", "b"], missing=True).n_literals == 3
    assert not condition.is_trivial


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (OneOf(1, ["red"]), "x1 = red"),
        (OneOf(1, ["red"], negated=True), "x1 ≠ red"),
        (OneOf(1, [10, 9]), "x1 in {9, 10}"),
        (OneOf(1, ["b", "a", True], negated=True), "x1 not in {True, a, b}"),
        (
            AtLeast(1, [Interval(0, 1), AtLeast(1, [OneOf(1, ["a"])])]),
            "at least 1 of (x0 > 1; at least 1 of (x1 = a))",
        ),
        (Linear([(1, -1.0), (0, 1.0)], 0, 1), "0 < x0 - x1 ≤ 1"),
        (Linear([(0, -0.25), (2, 3)], lower=2, lower_closed=True), "-0.25·x0 + 3·x2 ≥ 2"),
        (Linear([(0, 1)], 1.00001, 1.00002), "1.00001 < x0 ≤ 1.00002"),
    ],
)
def test_conditions_describe_themselves(condition, text):
    assert str(condition) == text


# --- counts and sums -------------------------------------------------------------------------


@given(
    m=st.integers(1, 4),
    inner=st.lists(intervals(0) | intervals(1), min_size=4, max_size=4),
    nested=st.integers(1, 2),
)
def test_at_least_counts_conditions(m, inner, nested):
    rows = list(itertools.product([-INF, -1.0, 0.0, 1.0, INF, NAN], repeat=2))
    columns = np.array(rows).T
    condition = AtLeast(m, [*inner[:3], AtLeast(nested, inner[2:])])
    expected = []
    for row in rows:
        one = [between(row[c.feature], c) for c in inner]
        expected.append(sum(one[:3]) + (sum(one[2:]) >= nested) >= m)
    assert held(condition, *columns) == expected


def test_at_least_describes_itself():
    condition = AtLeast(2, [Interval(4, 1, 2), OneOf(1, ["a", "b"]), Linear([(0, 1), (4, 2)], 0)])
    assert condition.features == (0, 1, 4)
    assert condition.n_literals == 6
    assert not condition.is_trivial


@given(coefficients=st.tuples(*[st.sampled_from([-2.0, -0.5, 1.0, 3.0])] * 2), bounds=intervals())
def test_linear_compares_weighted_sum(coefficients, bounds):
    rows = list(itertools.product([-INF, -LARGEST, -1.0, -0.5, 0.0, 1.0, INF, NAN], repeat=2))
    a, b = coefficients
    condition = Linear(
        [(1, b), (0, a)], bounds.lower, bounds.upper, bounds.lower_closed, bounds.upper_closed
    )
    expected = [between(a * x + b * y, condition) for x, y in rows]
    assert held(condition, *np.array(rows).T) == expected


def test_linear_merges_repeated_terms():
    condition = Linear([(3, 1), (1, 0.5), (3, 1), (2, 0)], upper=1)
    assert condition == Linear(((1, 0.5), (3, 2.0)), upper=1.0)
    assert hash(condition) == hash(Linear(((1, 0.5), (3, 2.0)), upper=1.0))
    assert condition.terms == ((1, 0.5), (3, 2.0))
    assert condition.features == (1, 3)
    assert condition.n_literals == 2
    assert not condition.is_trivial
    assert Linear([(0, 1)]).is_trivial


@pytest.mark.parametrize(
    "condition", [Interval(0, 1), Linear([(0, 1)], 1), AtLeast(1, [Interval(0, 1)])]
)
def test_interval_rejects_text_columns(condition):
    with pytest.raises(ValueError, match="compares feature 0 with numbers, but it holds object"):
        condition.holds(lambda j: np.array(["a", 1.0], dtype=object))


# --- conjunctions ----------------------------------------------------------------------------


def test_normalize_returns_one_form():
    given_conditions = [
        OneOf(0, ["a"]),
        Interval(2, 1),
        Linear([(0, 1)]),
        Interval(1, upper=5),
        Interval(0),
        OneOf(0, ["a"]),
        Interval(2, upper=9),
        Interval(2, 0, 7, upper_closed=False),
    ]
    expected = (Interval(1, upper=5), Interval(2, 1, 7, False, False), OneOf(0, ["a"]))
    assert Rule(given_conditions, 1).conditions == expected
    assert Rule(expected, 1).conditions == expected
    assert Rule(iter(()), 1).conditions == ()


@pytest.mark.parametrize(
    ("given_conditions", "expected"),
    [
        ([Interval(0, upper=5, missing=True), Interval(0, 1)], [Interval(0, 1, 5)]),
        (
            [Interval(0, upper=5, missing=True), Interval(0, 1, missing=True)],
            [Interval(0, 1, 5, missing=True)],
        ),
        ([Interval(0, upper=1, missing=True), Interval(0, 1, missing=True)], [Missing(0)]),
        ([Missing(0), Interval(0, upper=1, missing=True)], [Missing(0)]),
        ([Missing(0), OneOf(0, ["a"], missing=True)], [Missing(0)]),
        ([Missing(0, negated=True), Interval(0, 1, missing=True)], [Interval(0, 1)]),
        ([Missing(0, negated=True), OneOf(0, ["a"], missing=True)], [OneOf(0, ["a"])]),
        ([Missing(0, negated=True), Interval(0, missing=True)], [Missing(0, negated=True)]),
        (
            [OneOf(0, [1, 2], missing=True), Interval(0, 1)],
            [Interval(0, 1), OneOf(0, [1, 2])],
        ),
        (
            [OneOf(4, ["a"]), Missing(3), Missing(1, negated=True), Interval(2, 1)],
            [Interval(2, 1), Missing(1, negated=True), Missing(3), OneOf(4, ["a"])],
        ),
        ([Interval(0, missing=True), Interval(1)], []),
    ],
)
def test_normalize_aligns_missing_flags(given_conditions, expected):
    for order in itertools.permutations(given_conditions):
        assert Rule(order, 1).conditions == tuple(expected)


@pytest.mark.parametrize(
    "others",
    [[Missing(3, negated=True)], [Interval(3, 1)], [OneOf(3, ["a"])]],
    ids=["known", "interval", "one of"],
)
def test_normalize_rejects_missing_with_known(others):
    for order in itertools.permutations([Missing(3), *others]):
        with pytest.raises(ValueError, match="Feature 3 would have to be both missing and known"):
            Rule(order, 1)


@st.composite
def conditions_on_one_feature(draw):
    listed = st.lists(st.sampled_from([-1.0, 0.0, 1.0, 3.0]), min_size=1)
    kinds = [
        intervals(),
        st.builds(OneOf, st.just(0), listed, st.booleans(), st.booleans()),
        st.builds(Missing, st.just(0), st.booleans()),
    ]
    return draw(st.lists(st.one_of(kinds), max_size=4))


@given(conditions=conditions_on_one_feature())
def test_normalize_preserves_truth(conditions):
    holds = np.ones(len(COLUMN), dtype=bool)
    for condition in conditions:
        if not condition.is_trivial:
            holds &= condition.holds(lambda _: COLUMN)
    try:
        rule = Rule(conditions, 1)
    except ValueError:
        assert not holds.any()
        return
    assert rule.holds(lambda _: COLUMN, len(COLUMN)).tolist() == holds.tolist()
    assert Rule(rule.conditions, 1).conditions == rule.conditions
    assert len({type(c) for c in rule.conditions if isinstance(c, Missing)}) <= 1
    if Missing(0) in rule.conditions or Missing(0, negated=True) in rule.conditions:
        assert len(rule.conditions) == 1


# --- immutability ----------------------------------------------------------------------------

ONE_OF_EACH = [
    Interval(0, 1, 2),
    Interval(0, 1, 2, missing=True),
    OneOf(0, ["a", 1], missing=True),
    Missing(0),
    Missing(0, negated=True),
    OneOf(0, ["a", 1]),
    AtLeast(1, [Interval(0, 1), OneOf(1, ["a"])]),
    Linear([(0, 1), (1, 2)], 0, 1),
]


@pytest.mark.parametrize("condition", ONE_OF_EACH, ids=lambda c: type(c).__name__)
def test_conditions_are_immutable(condition):
    for field in dataclasses.fields(condition):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(condition, field.name, 1)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(condition, field.name)


@pytest.mark.parametrize("condition", ONE_OF_EACH, ids=lambda c: type(c).__name__)
def test_conditions_equal_their_copies(condition):
    for twin in (
        pickle.loads(pickle.dumps(condition)),
        copy.deepcopy(condition),
        copy.copy(condition),
        eval(repr(condition), {"inf": INF} | {c.__name__: c for c in map(type, ONE_OF_EACH)}),
    ):
        assert twin == condition
        assert hash(twin) == hash(condition)
    assert all(condition != other for other in ONE_OF_EACH if other is not condition)
