"""Domains of rule sets that were built without one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skescore.rules import AtLeast, Fallback, Interval, Linear, OneOf, Rule, RuleSet
from skescore.scorers import evaluate_rules

RULES = RuleSet(
    [Rule([Interval(0, upper=2), OneOf(1, ["red"])], "a"), Rule([OneOf(2, [1, 2])], "b")],
    ["size", "color", "code"],
    task="classification",
    fallback=Fallback("b"),
)
ROWS = pd.DataFrame(
    {
        "code": [1, 2, 7, 2],
        "size": [1.0, np.nan, 3.0, np.inf],
        "color": ["red", "blue", None, "red"],
    }
)


def test_domain_around_reads_numbers_and_categories():
    domain = RULES.domain_around(ROWS)
    assert domain.lower[0] == pytest.approx(1)
    assert domain.upper == pytest.approx((3, 2, 3))
    assert domain.categories == ((1, ("blue", "red")), (2, (1, 2, 7)))
    assert domain.missing == (0.25, 0.25, 0.0)


def test_domain_around_reads_nested_conditions():
    rules = RuleSet(
        [Rule([AtLeast(1, [OneOf(0, [5]), Interval(1, upper=0)]), Linear([(2, 1)], upper=1)], 1)],
        ["a", "b", "c"],
        task="classification",
    )
    domain = rules.domain_around([[5, 1, 2], [6, 2, 2]])
    assert domain.categories == ((0, (5, 6)),)
    assert domain.ranges == pytest.approx((2, 1, 0))


def test_evaluate_rules_derives_domain():
    # (0 to 2 of 1 to 3) and red, of 2 values: 1/4; else code 1 or 2 of 3 values: 3/4 * 2/3.
    scored = evaluate_rules(RULES, ROWS.dropna().iloc[[0]], ["a"])
    assert scored.volume == pytest.approx(1)
    mixed_rows = ROWS.assign(size=[1.0, 2.0, 3.0, 3.0], color=["red", "blue", "blue", "red"])
    scored = evaluate_rules(RULES, mixed_rows, ["a", "b", "b", "a"])
    assert scored.volume == pytest.approx(1 / 4 + 3 / 4 * 2 / 3)
    assert scored.instances == pytest.approx(3 / 4)


def test_domain_around_rejects_text_as_numbers():
    with pytest.raises(ValueError, match="compare feature 'size' with numbers"):
        RULES.domain_around(ROWS.assign(size=list("abcd")))
    with pytest.raises(ValueError, match="got 0 rows"):
        RULES.domain_around(ROWS.iloc[:0])


def test_domain_around_ignores_unused_columns():
    odd = {
        "times": pd.to_datetime(["2020-01-01", None, "2021-01-01", "2022-01-01"]),
        "lists": pd.Series([[1], {}, None, object()], dtype=object),
        "text": ["a", None, 3, 2.5],
        "infinite": [np.inf, -np.inf, np.nan, 1.0],
    }
    rows = ROWS.assign(**odd)
    rules = RULES.replace(feature_names=["size", "color", "code", *odd])
    target = ["a", "b", "b", "b"]
    assert rules.predict(rows).tolist() == RULES.predict(ROWS).tolist()
    assert rules.match(rows).tolist() == RULES.match(ROWS).tolist()
    assert rules.simplify(rows).rules == RULES.simplify(ROWS).rules
    scored, plain = evaluate_rules(rules, rows, target), evaluate_rules(RULES, ROWS, target)
    assert scored.volume == pytest.approx(plain.volume)
    assert scored.instances == plain.instances
    assert rules.domain_around(rows).missing == (0.25, 0.25, 0.0, 0.0, 0.0, 0.25, 0.25)
    with pytest.raises(ValueError, match=r"X holds datetime64.* in feature 'times'"):
        rules.replace(rules=[Rule([OneOf(3, ["a"])], "a")]).domain_around(rows)


def test_domain_around_weights_equal_repetitions() -> None:
    rows = ROWS.assign(size=[1.0, np.nan, 9.0, 3.0])
    repeated = rows.iloc[[0, 0, 1, 3]]
    result = RULES.domain_around(rows, [2, 1, 0, 1])
    assert result == RULES.domain_around(repeated)
    assert result.missing[RULES.feature_names.index("size")] == 0.25
    with pytest.raises(ValueError, match="sample_weight must hold a positive number"):
        RULES.domain_around(rows, [0, 0, 0, 0])


def test_domain_around_without_finite_numbers():
    rules = RuleSet([Rule([Interval(0, upper=1)], 1.0)], ["a"], task="regression")
    domain = rules.domain_around([[np.nan], [np.inf]])
    assert (domain.lower, domain.upper, domain.missing) == ((0.0,), (0.0,), (0.5,))


@pytest.mark.parametrize(
    "X",
    [
        pl.DataFrame({"a": [100, 200], "b": [1.0, 2.0]}),
        pd.DataFrame({"a": pd.array([100, 200, None], dtype="Int64"), "b": [1.0, 2.0, 3.0]}),
    ],
    ids=["polars", "nullable"],
)
def test_domain_around_reads_integers_as_numbers(X):
    rules = RuleSet([Rule([Interval(1, upper=1)], 1.0)], ["a", "b"], task="regression")
    domain = rules.domain_around(X)
    assert domain.categories == ()
    assert (domain.lower[0], domain.upper[0]) == pytest.approx((100, 200))


def test_domain_around_lists_values_of_conditions_without_rows():
    rows = ROWS.assign(color=None, code=np.nan)
    domain = RULES.domain_around(rows)
    assert domain.categories == ((1, ("red",)), (2, (1, 2)))
    assert domain.missing == (0.25, 1.0, 1.0)
    assert evaluate_rules(RULES, rows, list("aabb")).volume == 0.0
