"""The box around the training rows, and predictions for rows outside of all rules."""

from __future__ import annotations

import dataclasses
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.rules import Domain, Fallback, Interval, OneOf, Rule, RuleSet

LARGEST = sys.float_info.max


@given(
    column=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
    margin=st.sampled_from([0.0, 1e-9, 0.1]),
)
def test_domain_contains_its_rows(column, margin):
    domain = Domain.around(np.array(column)[:, None], margin)
    assert domain.lower[0] <= min(column) <= max(column) <= domain.upper[0]
    span = max(column) / 2 - min(column) / 2
    for bound, end in ((domain.lower[0], min(column)), (domain.upper[0], max(column))):
        assert abs(bound / 2 - end / 2) <= margin * span * 1.01 + abs(end) * 1e-15 + 5e-324
        if margin == 0 or span == 0:
            assert bound == end


def test_domain_reports_ranges():
    domain = Domain([0, np.float32(1)], (2, 1))
    assert domain == Domain((0.0, 1.0), (2.0, 1.0))
    assert hash(domain) == hash(Domain((0.0, 1.0), (2.0, 1.0)))
    assert domain.ranges == (2.0, 0.0)
    assert Domain.around(np.array([[0, 5], [10, 5]]), 0.1) == Domain((-1, 5), (11, 5))
    assert Domain.around(np.array([[-LARGEST], [LARGEST]]), 0.1) == Domain((-LARGEST,), (LARGEST,))
    with pytest.raises(dataclasses.FrozenInstanceError):
        domain.lower = (1,)


@pytest.mark.parametrize(
    ("lower", "upper", "error", "text"),
    [
        ([0], [1, 2], ValueError, "lower and upper must have the same length, got 1 and 2"),
        ([0, 3], [1, 2], ValueError, r"lower <= upper, got 3.0 and 2.0 for feature 1"),
        ([math.nan], [1], ValueError, "lower must be a finite number, got nan"),
        ([0], [math.inf], ValueError, "upper must be a finite number, got inf"),
        (["0"], [1], TypeError, "lower must be a number, got '0'"),
    ],
)
def test_domain_rejects_invalid_bounds(lower, upper, error, text):
    with pytest.raises(error, match=text):
        Domain(lower, upper)


def test_domain_stores_missing_shares():
    X = np.array([[0.0, math.nan, 1.0], [math.nan, math.nan, 0.0], [2.0, math.nan, 1.0]])
    domain = Domain.around(np.vstack([X, [4.0, math.nan, 0.0]]), 0.0, {2: ["no", "yes"]})
    assert domain.missing == (0.25, 1.0, 0.0)
    assert (domain.lower, domain.upper) == ((0.0, 0.0, 0.0), (4.0, 0.0, 2.0))
    # Long arrays take a different code path to the minimum and maximum.
    long = Domain.around(np.tile(X, (1000, 1)), 0.0)
    assert long.missing == pytest.approx((1 / 3, 1.0, 0.0))
    assert (long.lower, long.upper) == ((0.0, 0.0, 0.0), (2.0, 0.0, 1.0))
    assert Domain.around(np.ones((2, 2))).missing == (0.0, 0.0)


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        ((0.5,), "a share for each of the 2 features, got 1"),
        ((0.5, 1.5), "shares from 0 to 1, got 1.5 for feature 1"),
        ((-0.1, 0), "shares from 0 to 1, got -0.1 for feature 0"),
        ((math.nan, 0), "missing must be a number, got nan"),
    ],
)
def test_domain_rejects_invalid_missing_shares(missing, text):
    with pytest.raises(ValueError, match=text):
        Domain((0, 0), (1, 1), missing=missing)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (("a", "majority"), ValueError, "one of 'default', 'nearest', 'abstain', got 'majority'"),
        ((None,), TypeError, "the fallback's output must be a str, int, float or bool, got None"),
        ((math.nan,), ValueError, "output must not be NaN or infinite, got nan"),
        (("a", "abstain", None, math.nan), ValueError, "abstain_label must not be NaN"),
        (("a", "abstain", None, ["b"]), TypeError, r"abstain_label must be a str.*got \['b'\]"),
        (("a", "default", (1, math.inf)), ValueError, "class_counts must be a finite number"),
    ],
)
def test_fallback_rejects_invalid_parameters(arguments, error, text):
    with pytest.raises(error, match=text):
        Fallback(*arguments)


def test_fallback_converts_values_to_python():
    fallback = Fallback(np.str_("a"), "abstain", np.array([1, 2]), np.int64(-1))
    assert fallback == Fallback("a", "abstain", (1.0, 2.0), -1)
    assert hash(fallback) == hash(Fallback("a", "abstain", (1.0, 2.0), -1))
    assert [type(v) for v in dataclasses.astuple(fallback)] == [str, str, tuple, int]


@pytest.mark.parametrize(
    ("fallback", "classes", "text"),
    [
        (Fallback("c"), ["a", "b"], r"predicts 'c', which is not among the classes \['a', 'b'\]"),
        (Fallback("a", "default", (1,)), ["a", "b"], "has 1 class_counts for 2 classes"),
        (Fallback("a", "abstain", None, "b"), ["a", "b"], "not be one of the classes, got 'b'"),
        (Fallback("a"), None, "must predict a number in regression, got 'a'"),
        (Fallback(True), None, "must predict a number in regression, got True"),
    ],
)
def test_fallback_rejects_unknown_classes(fallback, classes, text):
    with pytest.raises(ValueError, match=text):
        fallback.check(classes)


@pytest.mark.parametrize(
    ("classes", "label"),
    [
        (["a", "b"], "no rule"),
        ([0, 1], -1),
        ([0.5, 1.5], -1),
        ([0, "a"], -1),
        ([True, "a"], -1),
    ],
)
def test_fallback_abstains_with_free_label(classes, label):
    result = Fallback(classes[0], "abstain").abstention(classes)
    assert result == label
    assert type(result) is type(label)


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        ([True, False], "no label left besides True and False: pass abstain_label"),
        (["no rule", "a"], "would predict 'no rule', which is one of the classes"),
        ([-1, 1], "would predict -1, which is one of the classes: pass abstain_label"),
        ([-1.0, 1.0], "would predict -1, which is one of the classes"),
    ],
)
def test_fallback_abstention_needs_free_label(classes, text):
    with pytest.raises(ValueError, match=text):
        Fallback(classes[0], "abstain").abstention(classes)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["a", "bcd"], "U"),
        ([1, -2], "i"),
        ([1.5, 2.5], "f"),
        ([1, 2.5], "f"),
        ([True, False], "b"),
        ([True, 2], "O"),
        (["a", 1], "O"),
        (["a", True], "O"),
        ([2**70, 1], "O"),
        ([2**63, -1], "O"),
    ],
)
def test_predict_keeps_types_of_labels(labels, kind):
    rules = [Rule([Interval(0, i, i + 1)], label) for i, label in enumerate(labels)]
    ruleset = RuleSet(rules, ["x"], task="classification", classes=labels)
    array = ruleset.predict([[i + 0.5] for i in range(len(labels))])
    assert array.dtype.kind == kind
    assert array.tolist() == labels
    if kind == "O":
        assert [type(v) for v in array] == [type(v) for v in labels]


# --- categories ---


def test_domain_gives_categories_unit_length():
    X = np.array([[0.0, 1.5], [2.0, 2.5]])
    domain = Domain.around(X, margin=0.0, categories={0: ("a", "b", "c")})
    assert domain == Domain((0, 1.5), (3, 2.5), [(0, ["a", "b", "c"])])
    assert domain.values_of(0) == ("a", "b", "c")
    assert domain.values_of(1) is None
    assert domain.ranges == (3.0, 1.0)
    assert hash(domain) == hash(Domain((0, 1.5), (3, 2.5), [(0, ("a", "b", "c"))]))


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        ([(0, [])], "at least one"),
        ([(0, ["a", "a"])], "no duplicates"),
        ([(0, ["a", "b"])], r"bounds of feature 0 must be 0 and its number of categories, 2"),
        ([(5, ["a", "b", "c"])], r"each of the 1 features at most once"),
        ([(0, ["a", "b", "c"]), (0, ["a", "b", "c"])], "at most once"),
    ],
)
def test_domain_rejects_invalid_categories(categories, message):
    with pytest.raises(ValueError, match=message):
        Domain((0,), (3,), categories)


def test_domain_categories_survive_json():
    rules = RuleSet(
        [Rule([OneOf(0, ["a"])], 1.0)],
        ["letter"],
        task="regression",
        domain=Domain((0,), (2,), [(0, ["a", "b"])]),
    )
    assert RuleSet.from_json(rules.to_json()) == rules
    torn = rules.to_json(indent=None).replace('[[0, ["a", "b"]]]', "[[0]]")
    with pytest.raises(ValueError, match="pair of column and values"):
        RuleSet.from_json(torn)


@pytest.mark.parametrize("shape", [(3, 2), (5000, 1), (4099, 7), (40, 600)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_domain_around_finds_ranges_of_narrow_arrays(shape, order):
    X = np.asarray(np.random.default_rng(0).normal(size=shape), order=order)
    domain = Domain.around(X, margin=0.0)
    assert domain.lower == tuple(X.min(axis=0))
    assert domain.upper == tuple(X.max(axis=0))
