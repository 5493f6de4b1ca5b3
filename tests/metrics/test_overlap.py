"""Overlap, contradictions, gaps and redundancy of rules, compared with plain loops."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from skescore.metrics import characteristics, count_rows, redundancy, rule_overlap, volume_overlap
from skescore.rules import (
    Domain,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
)

LOW, HIGH = Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1, upper=3)], "high")
RULES = RuleSet([LOW, HIGH], ["x"], task="classification", domain=Domain((0,), (4,)))
ROWS = [[0.5], [1.5], [2.5], [3.5]]


@st.composite
def cases(draw: st.DrawFn) -> tuple[RuleSet, np.ndarray, np.ndarray]:
    side = st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()).map(
        lambda ends: (min(ends[:2]), max(ends[:2]) if ends[2] else math.inf)
    )
    numeric = draw(st.booleans())
    outputs = st.sampled_from([1.0, 2.0, LinearOutput(1.0, [(0, 1.0)])] if numeric else [*"abc"])
    rules = []
    for sides in draw(st.lists(st.lists(side, max_size=2), max_size=5)):
        conditions = [Interval(j, *ends, True, True) for j, ends in enumerate(sides)]
        counts = (draw(st.integers(0, 3)), 1, 1)
        statistics = RuleStatistics(3) if numeric else RuleStatistics(3, counts)
        rules.append(Rule(conditions, draw(outputs), statistics, draw(st.sampled_from([0.5, 1.0]))))
    voting = draw(st.sampled_from([None, "mean" if numeric else "votes"]))
    ruleset = RuleSet(
        rules,
        ["x", "y"],
        task="regression" if numeric else "classification",
        classes=None if numeric else [*"abc"],
        voting=voting,
        ordered=voting is None and draw(st.booleans()),
    )
    n_rows = draw(st.integers(1, 10))
    X = draw(st.lists(st.tuples(*[st.integers(0, 5)] * 2), min_size=n_rows, max_size=n_rows))
    weights = st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=n_rows, max_size=n_rows)
    return ruleset, np.array(X, dtype=float), np.array(draw(weights.filter(any)))


@given(case=cases())
@settings(max_examples=50)
def test_rule_overlap_agrees_with_loop(case: Any) -> None:
    rules, X, weights = case
    total, shares, pairs = weights.sum(), np.zeros(3), np.zeros((len(rules), len(rules)))
    for row_matches, weight in zip(rules.match(X), weights, strict=True):
        its = [i for i, holds in enumerate(row_matches) if holds]
        shares += weight * np.array(
            [len(its) >= 2, len({rules[i].output for i in its}) >= 2, not its]
        )
        for i, j in itertools.product(its, its):
            pairs[i, j] += weight
    met = rule_overlap(rules, X, weights)
    shares_alone = rule_overlap(rules, X, weights, pairs=False)
    assert shares_alone.pairs is None
    assert (shares_alone.overlap, shares_alone.uncovered) == (met.overlap, met.uncovered)
    assert [met.overlap, met.negative_overlap, met.uncovered] == pytest.approx(shares / total)
    np.testing.assert_allclose(met.pairs, pairs / total)
    assert 0 <= met.negative_overlap <= met.overlap <= 1 - met.uncovered + 1e-12
    pair = [pairs[i, j] / total for i, j in itertools.combinations(range(len(rules)), 2)]
    assert met.mean_of_pairs == pytest.approx(np.mean(pair) if pair else 0.0)
    for i, j, share in met.worst_pairs():
        assert rules[i - 1].output != rules[j - 1].output
        assert share == pytest.approx(pairs[i - 1, j - 1] / total)


def test_worst_pairs_returns_ten_by_default() -> None:
    spans = range(1, 8)  # each rule contains all shorter ones
    rules = RuleSet(
        [Rule([Interval(0, upper=i)], "ab"[i % 2]) for i in spans], ["x"], task="classification"
    )
    pairs = rule_overlap(rules, np.arange(8.0)[:, None]).worst_pairs(99)
    assert {(i, j): share for i, j, share in pairs} == {
        (i, j): (i + 1) / 8 for i, j in itertools.combinations(spans, 2) if (i + j) % 2
    }
    assert [share for _, _, share in pairs] == sorted((p[2] for p in pairs), reverse=True)
    assert rule_overlap(rules, np.arange(8.0)[:, None]).worst_pairs() == pairs[:10]


def test_redundancy_of_votes_for_only_class_is_found() -> None:
    only = RuleSet(
        [Rule([Interval(0, upper=2)], "a"), Rule([Interval(0, upper=3)], "a")],
        ["x"],
        task="classification",
        ordered=False,
        voting="votes",
    )
    assert redundancy(only, ROWS).rules.tolist() == [True, False]


def test_rule_overlap_computes_pairs_on_request() -> None:
    met = rule_overlap(RULES, ROWS, pairs=False)
    with pytest.raises(ValueError, match="call rule_overlap with pairs=True"):
        met.worst_pairs()
    with pytest.raises(TypeError, match="pairs must be True or False"):
        rule_overlap(RULES, ROWS, pairs=3)


def left_out(rules: RuleSet, index: int) -> list[RuleSet]:
    """Return the rule set without a rule, then without each of the comparisons of this rule."""
    rest, rule = list(rules.rules), rules[index]
    results = [rules.replace(rules=[r for i, r in enumerate(rest) if i != index])]
    for position, c in enumerate(rule.conditions):
        two_sided = isinstance(c, Interval) and math.inf > c.upper and c.lower > -math.inf
        for side in (
            [
                Interval(c.feature, upper=c.upper, missing=c.missing),
                Interval(c.feature, lower=c.lower, lower_closed=True, missing=c.missing),
            ]
            if two_sided
            else [None]
        ):
            conditions = [*rule.conditions[:position], *rule.conditions[position + 1 :]]
            conditions += [side] if side else []
            rest[index] = replace(rule, conditions=tuple(conditions))
            results.append(rules.replace(rules=list(rest)))
    return results


@given(case=cases())
@settings(max_examples=50)
def test_redundancy_agrees_with_leaving_rules_out(case: Any) -> None:
    rules, X, weights = case
    stand_in = Fallback(0.0 if rules.classes is None else "a")
    counted = X[weights > 0]

    def predicted(subset: RuleSet) -> list[tuple[bool, Any]]:
        if not len(subset):
            return [(False, None)] * len(counted)
        pairs = zip(
            subset.covers(counted), subset.replace(fallback=stand_in).predict(counted), strict=True
        )
        return [(has, value if has else None) for has, value in pairs]

    result = redundancy(rules, X, weights)
    everything = predicted(rules)
    for index in range(len(rules)):
        rule, *literals = [predicted(subset) == everything for subset in left_out(rules, index)]
        assert result.rules[index] == rule
        assert result.literals[index].tolist() == literals


def test_redundancy_shares_count_rules_and_literals() -> None:
    result = redundancy(RULES, ROWS)
    assert result.rules.tolist() == [False, False]
    # A row above 3 needs the upper bound. No row needs the lower one, since the first rule holds
    # below it.
    assert [flags.tolist() for flags in result.literals] == [[False], [True, False]]
    assert result.share_of_literals == pytest.approx(1 / 3)
    nothing = redundancy(RULES.replace(rules=[], classes=["a"]), ROWS)
    assert math.isnan(nothing.share_of_rules)
    assert math.isnan(nothing.share_of_literals)
    always = redundancy(RULES.replace(rules=[Rule([], "low")]), ROWS)
    assert math.isnan(always.share_of_literals)
    twice = redundancy(RULES.replace(rules=[LOW, LOW], ordered=False), ROWS)
    assert twice.share_of_rules == 1.0


def test_rule_overlap_of_tree_is_0() -> None:
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_leaf_nodes=5, random_state=0).fit(X, y)
    met = rule_overlap(tree, X)
    assert (met.overlap, met.negative_overlap, met.uncovered) == (0.0, 0.0, 0.0)
    # Without a leaf, its rows have no rule, so that no leaf is redundant.
    assert redundancy(tree, X).share_of_rules == 0.0


def test_rule_overlap_handles_texts_and_missing_values() -> None:
    rules = RuleSet(
        [
            Rule([OneOf(0, ["red"]), Interval(1, upper=3, missing=True)], "a"),
            Rule([OneOf(0, ["red", "blue"])], "b"),
        ],
        ["color", "size"],
        task="classification",
        ordered=False,
    )
    X = pd.DataFrame({"size": [1.0, np.nan, 5.0, 2.0], "color": ["red", "red", "red", "blue"]})
    met = rule_overlap(rules, X)
    assert met.negative_overlap == 0.5
    figures = characteristics(rules, X, ["a"] * 4)
    assert met.negative_overlap == figures["voting_conflicts"] / 4
    assert redundancy(rules, X).literals[0].tolist() == [False, False]


def test_volume_overlap_equals_known_shares() -> None:
    assert volume_overlap(RULES).value == 0.25
    assert volume_overlap(RULES).exact
    assert volume_overlap(RULES.replace(rules=[LOW, LOW])).value == 0.0
    assert volume_overlap(RULES.replace(rules=[LOW, LOW]), negative=False).value == 0.5
    assert volume_overlap(RULES.replace(rules=[LOW])).value == 0.0
    oblique = RULES.replace(rules=[LOW, Rule([Linear([(0, 1.0)], upper=3.0)], "high")])
    with pytest.raises(ValueError, match="needs rules that are boxes, but rule 2 has other"):
        volume_overlap(oblique)


@given(case=cases(), seed=st.integers(0, 99))
@settings(max_examples=50)
def test_volume_overlap_equals_share_of_uniform_rows(case: Any, seed: int) -> None:
    rules = case[0].replace(domain=Domain((0, 0), (5, 5)), voting=None)
    # Sides lie on whole numbers, so that one row per cell represents its volume.
    cells = np.stack(np.meshgrid(np.arange(5), np.arange(5)), axis=-1).reshape(-1, 2) + 0.5
    met = rule_overlap(rules, cells)
    assert volume_overlap(rules).value == pytest.approx(met.negative_overlap, abs=1e-9)
    assert volume_overlap(rules, negative=False).value == pytest.approx(met.overlap, abs=1e-9)


def test_rule_overlap_rejects_counts_of_rows() -> None:
    counts = count_rows(RULES, ROWS, ["low", "high", "high", "low"], [1, 2, 1, 1])
    met = rule_overlap(RULES, ROWS, [1, 2, 1, 1])
    assert counts.overlap == met.overlap == 0.4
    for function in (rule_overlap, redundancy):
        with pytest.raises(TypeError, match="needs every row, but counts of rows"):
            function(RULES, counts)
        with pytest.raises(ValueError, match="at least one row"):
            function(RULES, np.empty((0, 1)))


def test_volume_overlap_is_reproducible_by_default() -> None:
    begins = np.random.default_rng(0).uniform(0, 0.3, (60, 10))
    rules = [
        Rule([Interval(j, begin, begin + 0.6) for j, begin in enumerate(row)], "ab"[i % 2])
        for i, row in enumerate(begins)
    ]
    ruleset = RuleSet(
        rules, [*"abcdefghij"], task="classification", domain=Domain((0,) * 10, (1,) * 10)
    )
    overlap = volume_overlap(ruleset, n_samples=500)
    assert not overlap.exact
    assert overlap == volume_overlap(ruleset, n_samples=500, random_state=0)


def test_redundancy_compares_votes_of_covered_rows() -> None:
    rules = [Rule([], "a", weight=1.0), Rule([Interval(0, upper=1)], "b", weight=2.0)]
    ruleset = RuleSet(rules, ["x"], task="classification", ordered=False, voting="votes")
    result = redundancy(ruleset, [[0.0], [5.0]])
    assert result.rules.tolist() == [False, False]
