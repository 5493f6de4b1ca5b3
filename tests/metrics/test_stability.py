"""Stability of rules: similarity of rule sets and agreement of predictions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.metrics import prediction_agreement, rule_similarity, stability
from skescore.rules import (
    AtLeast,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
)

#: Quarters of the column begin at 24.75, 49.5 and 74.25.
ROWS = np.arange(100.0)[:, None]


def rule_sets(task: str = "classification") -> st.SearchStrategy[RuleSet]:
    side = st.tuples(st.integers(0, 99), st.integers(0, 99)).map(sorted)
    output = st.sampled_from("ab") if task == "classification" else st.sampled_from([1.0, 4.0])
    rule = st.tuples(side, output).map(
        lambda parts: Rule([Interval(0, *parts[0], True, True)], parts[1])
    )
    classes = [*"ab"] if task == "classification" else None
    fallback = st.sampled_from([None, Fallback("a" if classes else 2.0)])
    return st.tuples(st.lists(rule, max_size=5), fallback).map(
        lambda parts: RuleSet(parts[0], ["x"], task=task, classes=classes, fallback=parts[1])
    )


@given(one=rule_sets(), other=rule_sets(), n_bins=st.integers(1, 6))
@settings(max_examples=50)
def test_rule_similarity_agrees_with_loop(one: RuleSet, other: RuleSet, n_bins: int) -> None:
    edges = np.quantile(ROWS[:, 0], np.arange(1, n_bins) / n_bins)

    def description(rule: Rule) -> Any:
        [interval] = rule.conditions
        return (
            *(sum(bound > edge for edge in edges) for bound in (interval.lower, interval.upper)),
            rule.output,
        )

    left, common = [description(rule) for rule in other], 0
    for rule in one:
        if description(rule) in left:
            left.remove(description(rule))
            common += 1
    expected = 2 * common / (len(one) + len(other)) if len(one) + len(other) else 1.0
    result = rule_similarity(one, other, ROWS, n_bins=n_bins)
    assert result == rule_similarity(other, one, ROWS, n_bins=n_bins) == pytest.approx(expected)
    assert rule_similarity(one, one) == rule_similarity(one, one, ROWS) == 1.0
    # More bins never increase the similarity of rules.
    assert rule_similarity(one, other) <= rule_similarity(one, other, ROWS, n_bins=1)


def test_rule_similarity_puts_bounds_on_quantiles_below() -> None:
    def below(bound: float) -> RuleSet:
        return RuleSet([Rule([Interval(0, upper=bound)], "a")], ["x"], task="classification")

    assert rule_similarity(below(33), below(32.5), ROWS, n_bins=3) == 1.0
    assert rule_similarity(below(33), below(33.5), ROWS, n_bins=3) == 0.0


def test_rule_similarity_recognizes_equal_rules() -> None:
    def similarity(
        one: Any, other: Any, *, task: str = "classification", outputs: Any = "aa"
    ) -> float:
        classes = [*"ab"] if task == "classification" else None
        names = ["x", "y"], ["y", "x"]
        sets = [
            RuleSet([Rule(premise, output)], columns, task=task, classes=classes)
            for premise, columns, output in zip((one, other), names, outputs, strict=True)
        ]
        return rule_similarity(*sets)

    # Features are matched by name, not by position.
    assert similarity([Interval(0, 1, 2)], [Interval(1, 1, 2)]) == 1.0
    assert similarity([Interval(0, 1, 2)], [Interval(0, 1, 2)]) == 0.0
    assert similarity([Interval(0, 1, 2)], [Interval(1, 1, 2)], outputs="ab") == 0.0
    assert (
        similarity([Interval(0, 1)], [Interval(1, 1)], task="regression", outputs=[1.0, 2.0]) == 1
    )
    assert similarity([OneOf(0, ["r", "g"])], [OneOf(1, ["g", "r"])]) == 1.0
    assert similarity([OneOf(0, ["r"])], [OneOf(1, ["r"], negated=True)]) == 0.0
    assert similarity([Missing(0)], [Missing(1)]) == 1.0
    several = [
        AtLeast(1, [Interval(j, 1, 2), AtLeast(2, [Interval(j, 5), OneOf(1 - j, ["a"])])])
        for j in (0, 1)
    ]
    assert similarity([several[0]], [several[1]]) == 1.0
    assert similarity([Interval(0, 1)], [Interval(1, 1, missing=True)]) == 0.0
    one, other = Linear([(0, 1.0), (1, 2.0)], upper=3), Linear([(0, 2.0), (1, 1.0)], upper=3)
    assert similarity([one], [other]) == 1.0
    assert similarity([one], [one]) == 0.0
    some = AtLeast(1, [Interval(0, 1), OneOf(1, ["r"])])
    assert similarity([some], [AtLeast(1, [OneOf(0, ["r"]), Interval(1, 1)])]) == 1.0
    assert similarity([some], [AtLeast(2, [OneOf(0, ["r"]), Interval(1, 1)])]) == 0.0


@given(data=st.data(), task=st.sampled_from(["classification", "regression"]))
@settings(max_examples=50)
def test_prediction_agreement_agrees_with_loop(data: st.DataObject, task: str) -> None:
    one, other = (data.draw(rule_sets(task)) for _ in range(2))
    n = data.draw(st.integers(1, 8))
    X = np.array(data.draw(st.lists(st.integers(0, 99), min_size=n, max_size=n)), float)[:, None]
    weights = data.draw(
        st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=n, max_size=n).filter(any)
    )

    def outputs_of(rules: RuleSet) -> list[Any]:
        index = rules.assign(X)
        stand_in = None if rules.fallback is None or not len(rules) else rules.fallback.output
        return [stand_in if i < 0 else rules[i].output for i in index]

    pairs = [
        (a, b, w) for a, b, w in zip(outputs_of(one), outputs_of(other), weights, strict=True) if w
    ]
    result = prediction_agreement(one, other, X, weights)
    assert result == pytest.approx(prediction_agreement(other, one, X, weights), nan_ok=True)
    if task == "classification":
        expected = sum(w for a, b, w in pairs if a == b) / sum(weights)
    else:
        known_pairs = [(a, b) for a, b, w in pairs if None not in (a, b) for _ in range(int(w))]
        if not known_pairs:
            assert math.isnan(result)
            return
        a, b = np.array(known_pairs).T
        below = a.var() + b.var() + (a.mean() - b.mean()) ** 2
        expected = 2 * np.mean((a - a.mean()) * (b - b.mean())) / below if below else 1.0
    assert result == pytest.approx(expected, abs=1e-12)


@given(rules=st.lists(rule_sets(), min_size=2, max_size=4))
@settings(max_examples=50)
def test_stability_equals_mean_over_pairs(rules: list[RuleSet]) -> None:
    pairs = list(itertools.combinations(rules, 2))
    result = stability(rules, ROWS, n_bins=4)
    assert result.rules == pytest.approx(
        np.mean([rule_similarity(a, b, ROWS, n_bins=4) for a, b in pairs])
    )
    assert result.predictions == pytest.approx(
        np.mean([prediction_agreement(a, b, ROWS) for a, b in pairs])
    )
    assert result.similarities.shape == (len(rules),) * 2
    assert (np.diag(result.similarities) == 1).all()


def test_prediction_agreement_accepts_linear_outputs_and_gaps() -> None:
    X = pd.DataFrame({"x": [1.0, 2.0, np.nan, 4.0]})
    line = RuleSet(
        [Rule([Interval(0, 0)], LinearOutput(0.0, [(0, 1.0)]))], ["x"], task="regression"
    )
    constant = line.replace(rules=[Rule([Interval(0, 0)], 7.0)])
    assert prediction_agreement(line, line, X) == 1.0
    assert prediction_agreement(line, constant, X) == pytest.approx(0.0)
    assert rule_similarity(line, constant, X) == 1.0


def test_rule_similarity_rejects_invalid_arguments() -> None:
    rules = RuleSet([Rule([Interval(0, 1)], "a")], ["x"], task="classification")
    numbers = RuleSet([Rule([], 1.0)], ["x"], task="regression")
    with pytest.raises(ValueError, match="for one task to be compared, got classification and reg"):
        rule_similarity(rules, numbers)
    with pytest.raises(ValueError, match="at least two rule sets to be compared, got 1"):
        stability([rules], ROWS)
    with pytest.raises(ValueError, match="at least two rule sets to be compared, got 1"):
        stability(rules, ROWS)
    with pytest.raises(ValueError, match="n_bins must be"):
        rule_similarity(rules, rules, ROWS, n_bins=0)
    with pytest.raises(ValueError, match="at least one row to compute quantiles"):
        rule_similarity(rules, rules, ROWS[:0])


def test_prediction_agreement_compares_labels_exactly() -> None:
    labels = (2**53 + 1, 2.0**53), (2.0**53, 2**53 + 1), (2**53, 2.0**53), ("1", 1)
    for one, other in labels:
        rules = [
            RuleSet([Rule([Interval(0, upper=49)], label), Rule([], low)], ["x"], task=task)
            for label, low, task in ((one, 0, "classification"), (other, 0.0, "classification"))
        ]
        expected = 1.0 if one == other else 0.5
        assert prediction_agreement(*rules, ROWS) == expected


def test_prediction_agreement_of_equal_numbers_is_1() -> None:
    rules = RuleSet([Rule([Interval(0, upper=1)], 0.5), Rule([], 2.0)], ["x"], task="regression")
    assert prediction_agreement(rules, rules, [[0.0], [3.0]]) == 1.0


def test_rule_similarity_distinguishes_sides_in_bins() -> None:
    rows = np.arange(20.0)[:, None]

    def rules(condition):
        return RuleSet([Rule([condition], "a")], ["x"], task="classification", classes=["a"])

    below, above = rules(Interval(0, upper=5)), rules(Interval(0, lower=5))
    assert rule_similarity(below, above, rows, n_bins=4) == 0.0
    assert rule_similarity(below, below, rows, n_bins=4) == 1.0


def test_rule_similarity_bins_conditions_of_at_least() -> None:
    rows = np.column_stack([np.arange(40.0), np.arange(40.0)[::-1]])

    def rules(bound):
        parts = [Interval(0, upper=bound), Interval(1, upper=30)]
        return RuleSet(
            [Rule([AtLeast(1, parts)], "a")], ["x", "y"], task="classification", classes=["a"]
        )

    # Quartiles: 5 and 6 are in the same bin, 25 is in another one.
    assert rule_similarity(rules(5), rules(6), rows, n_bins=4) == 1.0
    assert rule_similarity(rules(5), rules(25), rows, n_bins=4) == 0.0


def test_rule_similarity_without_rows_compares_exact_bounds() -> None:
    def rules(*conditions):
        return RuleSet([Rule(conditions, "a")], ["x"], task="classification", classes=["a"])

    one, wider = rules(Interval(0, 1, 2)), rules(Interval(0, 1, 3))
    assert rule_similarity(one, wider) == 0.0
    assert rule_similarity(one, rules(Interval(0, 1, 2, True, True))) == 0.0
    assert rule_similarity(one, one) == 1.0
