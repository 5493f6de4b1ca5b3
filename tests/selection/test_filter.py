"""Filters of rules remove the right rules and change nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.metrics import RULE_MEASURES, confusion
from skescore.rules import Domain, Fallback, Interval, Rule, RuleSet, RuleStatistics, as_ruleset
from skescore.selection import select_rules, significant_rules

IRIS = load_iris()


@pytest.fixture(scope="module")
def leaves() -> RuleSet:
    tree = DecisionTreeClassifier(max_depth=5, random_state=0).fit(IRIS.data, IRIS.target)
    return as_ruleset(tree)


@given(measure=st.sampled_from(sorted(RULE_MEASURES)), rank=st.integers(0, 20))
def test_select_rules_keeps_rules_that_reach_threshold(
    leaves: RuleSet, measure: str, rank: int
) -> None:
    values = confusion(leaves, IRIS.data, IRIS.target).quality(measure)
    threshold = sorted(values)[rank % len(values)]
    selected = select_rules(leaves, IRIS.data, IRIS.target, measure, threshold)
    expected = [rule for rule, value in zip(leaves, values, strict=True) if value >= threshold]
    assert list(selected) == expected
    assert 1 <= len(selected) <= len(leaves)


def test_select_rules_changes_nothing_else() -> None:
    rules = RuleSet(
        [
            Rule([Interval(0, upper=1)], "b", RuleStatistics(3, (1, 2, 0)), 2.5),
            Rule([Interval(0, lower=1)], "a", RuleStatistics(4, (4, 0, 0)), 0.5),
            Rule([Interval(0, lower=2)], "a", weight=0.25),
        ],
        ["x"],
        task="classification",
        classes=["a", "b", "c"],
        domain=Domain((0,), (4,)),
        ordered=False,
        voting="votes",
        fallback=Fallback("c"),
    )
    X, y = np.arange(5.0)[:, None], [*"abbaa"]
    selected = select_rules(rules, X, y, "precision", 0.6)
    assert selected == rules.replace(rules=[rules[1], rules[2]])
    assert selected.predict([[0.0]]).tolist() == ["c"]
    none = select_rules(rules, X, y, "precision", 1.5)
    assert len(none) == 0
    assert none.classes == rules.classes
    assert none.predict(X).tolist() == ["c"] * 5


def test_select_rules_drops_undefined_measures_by_default() -> None:
    rules = RuleSet(
        [Rule([Interval(0, lower=99)], "a"), Rule([], "a")],
        ["x"],
        task="classification",
        classes=["a", "b"],
    )
    X, y = [[0.0], [1.0]], ["a", "b"]
    assert len(select_rules(rules, X, y, "precision", 0.0)) == 1
    assert len(select_rules(rules, X, y, "precision", 0.0, undefined=0.0)) == 2
    assert len(select_rules(rules, X, y, "precision", -np.inf)) == 1


def test_select_rules_uses_parameters_and_weights() -> None:
    rules = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])
    X, y = [[0.0], [1.0], [2.0]], ["a", "a", "b"]
    assert len(select_rules(rules, X, y, "g_measure", 0.5, g=1.0)) == 1
    assert len(select_rules(rules, X, y, "g_measure", 0.5, g=2.0)) == 0
    assert len(select_rules(rules, X, y, "precision", 0.5, sample_weight=[1, 1, 3])) == 0
    assert len(select_rules(rules, X, y, RULE_MEASURES["precision"], 0.5)) == 1


def test_select_rules_uses_assigned_rows_of_list() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], "a"), Rule([], "b")], ["x"], task="classification"
    )
    X, y = np.arange(6.0)[:, None], [*"aaabbb"]
    assert len(select_rules(rules, X, y, "precision", 0.9)) == 1
    assert select_rules(rules, X, y, "precision", 0.9, assigned=True) == rules


# --- significance --------------------------------------------------------------------------------


@pytest.mark.parametrize("correction", [None, "fdr_bh", "holm", "rulekit_fdr", "rulekit_fwer"])
@pytest.mark.parametrize("alpha", [1e-9, 0.001, 0.05])
def test_significant_rules_drop_insignificant_rules(correction: str | None, alpha: float) -> None:
    bunch = load_diabetes(scaled=False)
    tree = DecisionTreeRegressor(max_depth=5, random_state=0).fit(bunch.data, bunch.target)
    rules = as_ruleset(tree)
    retained = significant_rules(rules, bunch.data, bunch.target, alpha, correction)
    flags = confusion(rules, bunch.data, bunch.target).significant(alpha, correction)
    assert list(retained) == [rule for rule, flag in zip(rules, flags, strict=True) if flag]
    assert len(retained) < len(rules)


def test_significant_rules_shrink_with_stricter_corrections(leaves: RuleSet) -> None:
    options: list[Any] = [None, "fdr_bh", "holm"]
    retained = [
        set(significant_rules(leaves, IRIS.data, IRIS.target, 0.2, correction=option))
        for option in options
    ]
    assert retained[2] <= retained[1] <= retained[0] <= set(leaves)
    assert len(retained[2]) < len(retained[0])


def test_significant_rules_of_noise_may_be_empty() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 1)), rng.choice(["a", "b"], 60)
    rules = RuleSet(
        [Rule([Interval(0, k / 10, (k + 1) / 10)], "a") for k in range(10)],
        ["x"],
        task="classification",
        classes=["a", "b"],
        fallback=Fallback("b"),
    )
    significant = significant_rules(rules, X, y)
    assert len(significant) == 0
    assert significant.predict(X).tolist() == ["b"] * 60


def test_significant_rules_drop_untested_rules() -> None:
    x = np.arange(12.0)
    rules = RuleSet(
        [Rule([Interval(0, upper=0)], 0.0), Rule([Interval(0, upper=4)], 1.0)],
        ["x"],
        task="regression",
    )
    assert list(significant_rules(rules, x[:, None], x**2)) == [rules[1]]
    assert significant_rules(rules, x[:, None], x**2, untested=0.0) == rules


def test_significant_rules_count_weights_as_rows() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], "a")], ["x"], task="classification", classes=["a", "b"]
    )
    X, y = [[0.0], [1.0], [2.0], [3.0]], [*"aabb"]
    assert len(significant_rules(rules, X, y)) == 0
    assert len(significant_rules(rules, X, y, sample_weight=[5, 5, 5, 5])) == 1


def test_select_rules_rejects_invalid_input(leaves: RuleSet) -> None:
    X, y = IRIS.data, IRIS.target
    with pytest.raises(ValueError, match="no measure of rules 'presicion'"):
        select_rules(leaves, X, y, "presicion", 0.5)
    with pytest.raises(ValueError, match="threshold must be not NaN"):
        select_rules(leaves, X, y, "precision", np.nan)
    with pytest.raises(ValueError, match="threshold must be one number"):
        select_rules(leaves, X, y, "precision", [0.5, 0.6])
    with pytest.raises(TypeError, match="threshold must be a number"):
        select_rules(leaves, X, y, "precision", "half")
    with pytest.raises(ValueError, match="alpha must be"):
        significant_rules(leaves, X, y, 5)
    with pytest.raises(ValueError, match="got 'bh'"):
        significant_rules(leaves, X, y, correction="bh")
    with pytest.raises(ValueError, match="classes of the rules"):
        significant_rules(leaves, X, np.where(y == 1, "a", "b"))


@given(seed=st.integers(0, 2**32 - 1))
def test_select_rules_does_not_depend_on_order_of_selections(leaves: RuleSet, seed: int) -> None:
    """Each rule is selected independently, so that the order of two selections does not matter."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(IRIS.data), 50)
    X, y = IRIS.data[rows], IRIS.target[rows]
    lift, precision = rng.uniform(0, 3), rng.uniform(0, 1)
    one = select_rules(select_rules(leaves, X, y, "lift", lift), X, y, "precision", precision)
    other = select_rules(select_rules(leaves, X, y, "precision", precision), X, y, "lift", lift)
    assert one == other
    assert select_rules(one, X, y, "lift", lift) == one
