"""Shortened bounds select the same rows with fewer digits and keep relations between rules."""

from __future__ import annotations

import math
import random
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from skescore.rules import (
    AtLeast,
    Domain,
    Fallback,
    Interval,
    Linear,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    as_ruleset,
)

NAMES = ["length", "width"]


def upper(bound, *, closed=True):
    return RuleSet(
        [Rule([Interval(0, upper=bound, upper_closed=closed)], 1.0)], NAMES[:1], task="regression"
    )


def column(*values):
    return np.array(values, dtype=float)[:, None]


def shortened(bound, *values, closed=True):
    return upper(bound, closed=closed).shorten(column(*values))[0].conditions[0].upper


def count_digits(value):
    """Return the number of decimals and of significant digits."""
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    return max(0, -exponent), len(digits)


def elementary(ruleset):
    results = [c for rule in ruleset.rules for c in rule.conditions]
    while results:
        condition = results.pop(0)
        if isinstance(condition, AtLeast):
            results = [*condition.conditions, *results]
        else:
            yield condition


def bounds(ruleset):
    """Return all bounds in order, with their feature or terms."""
    return [
        (c.feature if isinstance(c, Interval) else c.terms, side)
        for c in elementary(ruleset)
        if not isinstance(c, OneOf | Missing)
        for side in (c.lower, c.upper)
    ]


@pytest.mark.parametrize(
    ("bound", "values", "closed", "shortest"),
    [
        (2.449999988, [1.9, 3.0], True, 2.0),
        (2.449999988, [2.0, 3.0], True, 2.0),
        (2.449999988, [2.0, 3.0], False, 3.0),  # a bound x < 2 would lose the row at 2
        (2.449999988, [2.1, 2.9], True, 2.4),
        (2.449999988, [2.44, 2.46], True, 2.45),
        (2.449999988, [2.4499, 2.4501], True, 2.45),
        (41237.5, [41190.0, 41300.0], True, 41200.0),
        (12.5, [9.0, 20.0], True, 10.0),
        (99.97, [99.0, 150.0], True, 100.0),
        (0.0345, [-1.0, 1.0], True, 0.0),
        (1.7, [-5.0, 2.0], True, 1.0),
        (-0.97, [-5.0, -0.5], True, -1.0),
        (1.234e-9, [1.2e-9, 1.3e-9], True, 1.2e-9),
        (1.234e-9, [1.21e-9, 1.3e-9], True, 1.23e-9),
        (3e-310, [1e-310, 1e-300], True, 1e-301),
        (1.2345e200, [1.2e200, 1.3e200], True, 1.2e200),
        (7.483, [1.0, 2.0], True, 7.0),
        (7.0, [1.0, 9.0], True, 7.0),
        (0.1, [0.1, 0.2], True, 0.1),
        (0.1 + 0.2, [0.1, 0.2, 0.30000000000000004, 0.5], True, 0.4),
        (0.3, [0.3, math.nextafter(0.3, 1)], True, 0.3),
        (
            math.nextafter(0.3, 1),
            [0.3, math.nextafter(0.3, 1), math.nextafter(0.3, 1)],
            False,
            math.nextafter(0.3, 1),
        ),
        (2.45, [math.nan, -math.inf, math.inf], True, 2.0),
        (2.45, [math.nan], True, 2.45),  # no observed value
    ],
)
def test_shorten_finds_shortest_bounds(bound, values, closed, shortest):
    assert shortened(bound, *values, closed=closed) == shortest


@settings(max_examples=20)
@given(data=st.data())
def test_shorten_keeps_rows_of_every_condition(arbitrary, data):
    ruleset = data.draw(arbitrary.rule_sets())
    X = arbitrary.border_rows(ruleset, data.draw(st.integers(1, 60)), data.draw(st.integers(0, 9)))
    with np.errstate(all="ignore"):
        shorter = ruleset.shorten(X)
        assert (shorter.match(X) == ruleset.match(X)).all()
    for before, after in zip(elementary(ruleset), elementary(shorter), strict=True):
        holds = [
            c.holds(lambda j: X.iloc[:, j].to_numpy())  # including inner conditions
            for c in (before, after)
            if not isinstance(c, Linear)
        ]
        assert not holds or (holds[0] == holds[1]).all()
    assert arbitrary.answers(shorter, X) == arbitrary.answers(ruleset, X)


@settings(max_examples=20)
@given(data=st.data())
def test_shorten_adds_no_digits_and_keeps_order_of_bounds(arbitrary, data):
    ruleset = data.draw(arbitrary.rule_sets())
    X = arbitrary.border_rows(ruleset, data.draw(st.integers(1, 20)), data.draw(st.integers(0, 9)))
    with np.errstate(all="ignore"):
        shorter = ruleset.shorten(X)
    pairs = list(zip(bounds(ruleset), bounds(shorter), strict=True))
    for (_, before), (_, after) in pairs:
        assert (
            before == after if math.isinf(before) else count_digits(after) <= count_digits(before)
        )
    for (quantity, before), (_, after) in pairs:
        for (other, before_too), (_, after_too) in pairs:
            if quantity == other:
                assert (before < before_too) == (after < after_too)
                assert (before == before_too) == (after == after_too)
    rest = {"rules": ruleset.rules}
    assert shorter.replace(**rest) == ruleset  # only the conditions have changed
    assert [r.output for r in shorter] == [r.output for r in ruleset]
    assert [r.weight for r in shorter] == [r.weight for r in ruleset]
    assert [r.statistics for r in shorter] == [r.statistics for r in ruleset]


@given(
    bound=st.floats(-1000, 1000),
    values=st.lists(st.floats(-1000, 1000), min_size=1, max_size=8),
    closed=st.booleans(),
)
@example(bound=-999.5, values=[-999.5], closed=True)
@example(bound=999.5, values=[999.5], closed=False)
def test_shorten_overlooks_no_shorter_bound(bound, values, closed):
    """The test tries all numbers with fewer decimals near the bound."""
    X, result = column(*values), shortened(bound, *values, closed=closed)
    expected = upper(bound, closed=closed).covers(X)
    decimals, digits = count_digits(result)
    assert (upper(result, closed=closed).covers(X) == expected).all()
    rng = random.Random(0)
    for fewer in range(min(decimals, 5) + 1):
        step = Decimal(10) ** -fewer
        around = [bound, *values, result, *(rng.uniform(-1000, 1000) for _ in range(5))]
        for center in around:
            middle = Decimal(center).quantize(step)
            for shift in (-1, 0, 1):
                number = float(middle + shift * step)
                if (upper(number, closed=closed).covers(X) == expected).all():
                    assert count_digits(number) >= (decimals, digits) or number == result
                    if count_digits(number) == (decimals, digits):
                        assert abs(number - bound) >= abs(result - bound)


def test_shorten_keeps_close_bounds_distinct():
    rules = [
        Rule([Interval(0, upper=2.4499)], 1.0),
        Rule([Interval(0, 2.4499, 2.4501)], 2.0),
        Rule([Interval(0, 2.4501)], 3.0),
    ]
    ruleset = RuleSet(rules, NAMES[:1], task="regression", disjoint=True)
    shorter = ruleset.shorten(column(1.0, 5.0))
    first, middle, last = (rule.conditions[0] for rule in shorter.rules)
    assert first.upper == middle.lower < middle.upper == last.lower
    X = column(*np.linspace(0, 6, 1001), first.upper, last.lower)
    assert (shorter.match(X).sum(axis=1) == 1).all()


def test_shorten_rounds_linear_conditions():
    rules = [
        Rule([Linear([(0, 0.5), (1, 0.25)], upper=1.23456)], 1.0),
        Rule([Linear([(0, 1.0)], 1.23456)], 1.0),
    ]
    ruleset = RuleSet(rules, NAMES, task="regression")
    X = [[2.0, 0.0], [2.0, 2.0], [3.0, math.nan]]
    shorter = ruleset.shorten(X)
    assert shorter[0].conditions[0] == Linear([(0, 0.5), (1, 0.25)], upper=1.0)
    assert shorter[1].conditions[0] == Linear([(0, 1.0)], 1.0)
    assert (shorter.match(X) == ruleset.match(X)).all()


def test_shorten_keeps_nearest_rule():
    ruleset = RuleSet(
        [Rule([Interval(0, upper=1.26)], "low"), Rule([Interval(0, lower=4.74)], "high")],
        NAMES[:1],
        task="classification",
        domain=Domain((0,), (10,)),
        fallback=Fallback("low", "nearest"),
    )
    X = column(1.1, 2.995, 3.005, 5.5)  # the midpoint between the bounds is 3
    assert ruleset.replace(fallback=Fallback("low")).shorten(X)[0].conditions[0].upper == 2
    shorter = ruleset.shorten(X)
    assert shorter.predict(X).tolist() == ruleset.predict(X).tolist() == ["low"] * 2 + ["high"] * 2


def test_shorten_shortens_trees(fitted):
    X = fitted["cart", "classification"][1]
    tree = DecisionTreeClassifier(max_leaf_nodes=6, random_state=0)
    ruleset = as_ruleset(tree.fit(X, X.iloc[:, 1].to_numpy() > X.iloc[:, 0].to_numpy()))
    shorter, within = ruleset.shorten(X), ruleset.shorten(X, reach=0.001)
    assert (shorter.match(X) == ruleset.match(X)).all()
    assert (within.match(X) == ruleset.match(X)).all()
    before, between, after = (
        sum(len(repr(b)) for _, b in bounds(r) if math.isfinite(b))
        for r in (ruleset, within, shorter)
    )
    assert after < between < before / 2
    for (feature, old), (_, new) in zip(bounds(ruleset), bounds(within), strict=True):
        assert old == new or abs(old - new) <= 0.001 * np.ptp(X.iloc[:, feature])


def test_shorten_keeps_predictions_of_every_extractor(fitted):
    for ruleset, X in fitted.values():
        shorter = ruleset.shorten(X)
        assert shorter.predict(X).tolist() == ruleset.predict(X).tolist()
        assert shorter.feature_names == ruleset.feature_names
        assert shorter.shorten(X) == shorter


def test_shorten_selects_columns_by_name():
    frame = pd.DataFrame({"more": "text", "length": [1.9, 3.0]})
    assert upper(2.45).shorten(frame)[0].conditions[0].upper == 2.0


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((0, 1)), "X must hold at least one row"),
        (np.ones((3, 2)), "X has 2 features"),
        (pd.DataFrame({"width": [1.0]}), "X lacks the feature"),
        (np.array([["a"]], dtype=object), "compare feature 'length' with numbers"),
    ],
)
def test_shorten_rejects_invalid_rows(X, message):
    with pytest.raises(ValueError, match=message):
        upper(2.45).shorten(X)
