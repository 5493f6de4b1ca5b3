"""Statistics printed with rules, compared with held-out rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skescore.metrics import count_rows, rule_calibration
from skescore.rules import Interval, LinearOutput, Rule, RuleSet, RuleStatistics


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    numeric = draw(st.booleans())
    rules = []
    for _ in range(draw(st.integers(1, 4))):
        low, high = sorted(draw(st.tuples(st.integers(0, 5), st.integers(0, 5))))
        interval = Interval(0, low, high, True, True)
        if numeric:
            rules.append(
                Rule([interval], draw(st.sampled_from([1.0, LinearOutput(1, [(0, 2.0)])])))
            )
            continue
        counts = draw(st.sampled_from([None, (3, 1), (0, 4)]))
        statistics = None if counts is None else RuleStatistics(4, counts)
        rules.append(Rule([interval], draw(st.sampled_from("ab")), statistics))
    voting = draw(st.sampled_from([None, "mean" if numeric else "votes"]))
    ruleset = RuleSet(
        rules,
        ["x"],
        task="regression" if numeric else "classification",
        voting=voting,
        classes=None if numeric else [*"ab"],
        ordered=voting is None,
    )
    n = draw(st.integers(1, 10))
    X = np.array(draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), float)[:, None]
    labels = st.integers(-3, 3) if numeric else st.sampled_from("ab")
    y = np.array(draw(st.lists(labels, min_size=n, max_size=n)))
    weights = st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=n, max_size=n).filter(any)
    return ruleset, X, y, np.array(draw(weights)), draw(st.sampled_from([0.5, 0.95]))


@given(case=cases())
@settings(max_examples=25)
def test_calibration_agrees_with_loop(case: Any) -> None:
    rules, X, y, weights, confidence = case
    calibration = rule_calibration(rules, X, y, weights, confidence=confidence)
    match = rules.match(X)
    errors, total = 0.0, 0.0
    for i, rule in enumerate(rules):
        assigned = [
            k
            for k in range(len(X))
            if weights[k] and match[k, i] and (rules.voting or not match[k, :i].any())
        ]
        w, its = weights[assigned], y[assigned]
        assert calibration.rows[i] == pytest.approx(w.sum())
        n = w.sum() ** 2 / (w**2).sum() if len(assigned) else 0
        if rules.task == "classification":
            printed = rule.purity(rules.output_index(rule))
            share = np.average(its == rule.output, weights=w) if len(assigned) else math.nan
            k = share * n
            low = stats.beta.ppf((1 - confidence) / 2, k, n - k + 1) if len(assigned) and k else 0.0
            high = stats.beta.ppf((1 + confidence) / 2, k + 1, n - k) if n and k < n else 1.0
        else:
            linear = isinstance(rule.output, LinearOutput)
            says = 1 + 2 * X[assigned, 0] if linear else np.full(len(assigned), rule.output)
            printed = np.average(says, weights=w) if len(assigned) else math.nan
            share = np.average(its, weights=w) if len(assigned) else math.nan
            low, high = -math.inf, math.inf
            if n > 1.0000001:
                se = math.sqrt(np.average((its - share) ** 2, weights=w) / (n - 1))
                reach = stats.t.ppf((1 + confidence) / 2, n - 1) * se
                low, high = share - reach, share + reach
        assert calibration.printed[i] == pytest.approx(
            math.nan if printed is None else printed, nan_ok=True
        )
        assert calibration.observed[i] == pytest.approx(share, nan_ok=True)
        assert (calibration.low[i], calibration.high[i]) == pytest.approx((low, high), abs=1e-9)
        if len(assigned) and printed is not None:
            errors += w.sum() * abs(printed - share)
            total += w.sum()
    if not total:
        assert math.isnan(calibration.error)
        assert math.isnan(calibration.share_within)
    elif calibration.unit:
        assert calibration.error == pytest.approx(errors / total / calibration.unit)
        assert rules.task == "regression" or 0 <= calibration.error <= 1
    if rules.task == "regression" and weights.tolist() == [1.0] * len(y):
        assert calibration.unit == pytest.approx(np.std(y))
    assert 0 <= calibration.share_within <= 1 or not total


def test_calibration_intervals_have_stated_coverage() -> None:
    rng = np.random.default_rng(0)
    rules = RuleSet(
        [Rule([], "a", RuleStatistics(100, (80, 20)))],
        ["x"],
        task="classification",
        classes=[*"ab"],
    )
    inside = [
        rule_calibration(
            rules, np.zeros((40, 1)), np.where(rng.random(40) < 0.8, "a", "b"), confidence=0.9
        ).share_within
        for _ in range(200)
    ]
    assert np.mean(inside) >= 0.87


def test_calibration_returns_frames_and_rejects_bad_input() -> None:
    rules = RuleSet([Rule([Interval(0, 1)], 2.0)], ["x"], task="regression")
    calibration = rule_calibration(rules, [[2.0], [3.0]], [2.0, 2.0])
    assert calibration.error == 0.0
    assert calibration.to_frame().index.tolist() == [1]
    assert calibration.within.tolist() == [True]
    assert rule_calibration(rules, [[2.0], [3.0]], [3.0, 3.0]).error == math.inf
    for confidence in (0, 1, 1.5):
        with pytest.raises(ValueError, match="confidence must"):
            rule_calibration(rules, [[2.0]], [1.0], confidence=confidence)
    with pytest.raises(ValueError, match="one label per row"):
        rule_calibration(rules, [[2.0]], [1.0, 2.0])
    with pytest.raises(TypeError, match="rule_calibration needs every row"):
        rule_calibration(rules, count_rows(rules, [[2.0]], [1.0]), [1.0])


def test_calibration_unit_is_deviation_of_all_labels() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], 3.0, RuleStatistics(2, None, 3.0, 1.0))],
        ["x"],
        task="regression",
    )
    labels = [1.0, 2.0, 3.0, 10.0]
    calibration = rule_calibration(rules, [[0.0], [1.0], [2.0], [9.0]], labels)
    assert calibration.unit == pytest.approx(np.std(labels))


def test_calibration_compares_shares_of_same_reference() -> None:
    statistics = RuleStatistics(10, (8, 2), target_counts=(6, 4))
    weighted = replace(statistics, weighted=True)
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], "a", statistics), Rule([], "a", weighted)],
        ["x"],
        task="classification",
        classes=["a", "b"],
        ordered=True,
        reference="black_box",
    )
    rows, labels = [[0.0], [1.0], [9.0]], ["a", "b", "a"]

    def printed(reference: str | None, weights: list[float] | None = None) -> list[float]:
        return rule_calibration(rules, rows, labels, weights, reference=reference).printed.tolist()

    ones = [1.0, 1.0, 1.0]
    assert printed("data", ones) == [0.6, 0.6]
    assert printed("black_box", ones) == printed(None, ones) == [0.8, 0.8]
    assert printed("data")[0] == 0.6
    assert math.isnan(printed("data")[1])  # the printed rows are weighted, these are not
    with pytest.raises(ValueError, match="reference must be"):
        printed("model")


@pytest.mark.parametrize("factor", [1e-320, 1e-170, 2.0**-600, 1e170, 2.0**900, 1e305])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_calibration_ignores_scale_of_weights(task: str, factor: float) -> None:
    a, b = ("a", "b") if task == "classification" else (1.0, LinearOutput(0.5, [(0, 1.0)]))
    rules = RuleSet(
        [
            Rule([Interval(0, upper=2)], a, RuleStatistics(4, (3, 1)) if task[0] == "c" else None),
            Rule([Interval(0, lower=1)], b, RuleStatistics(4, (1, 3)) if task[0] == "c" else None),
        ],
        ["x"],
        task=task,
        ordered=False,
    )
    X, y = [[0.5], [1.5], [2.5], [3.5]], ["a", "a", "b", "a"] if task[0] == "c" else [1, 2, 3, 5]
    weights = np.array([4.0, 2.0, 2.0, 1.0])
    expected = rule_calibration(rules, X, y, weights)
    result = rule_calibration(rules, X, y, weights * factor)
    for name in ("printed", "observed", "low", "high"):
        np.testing.assert_allclose(getattr(result, name), getattr(expected, name), rtol=1e-3)
    np.testing.assert_allclose(result.rows, expected.rows * factor, rtol=1e-3)
    assert result.error == pytest.approx(expected.error, rel=1e-3)
    if np.frexp(factor)[0] == 0.5:  # powers of two scale exactly
        np.testing.assert_array_equal(result.low, expected.low)


@pytest.mark.parametrize("output", [1.0, LinearOutput(0.5, [(0, 1.0)])])
@pytest.mark.parametrize("label", [0.1, 5.0])
@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [1.0, 2.0, 1.0], [0.1, 0.7, 0.3]])
def test_calibration_ignores_rows_of_weight_zero(
    output: Any, label: float, weights: list[float]
) -> None:
    rules = RuleSet([Rule([Interval(0, upper=5)], output)], ["x"], task="regression")
    X, y = [[1.0], [2.0], [3.0]], [0.1] * 3
    expected = rule_calibration(rules, X, y, weights)
    for at in range(4):
        extended = [*X[:at], [4.0], *X[at:]], [*y[:at], label, *y[at:]]
        result = rule_calibration(rules, *extended, [*weights[:at], 0.0, *weights[at:]])
        for name in ("printed", "observed", "low", "high", "rows", "unit", "error"):
            np.testing.assert_array_equal(getattr(result, name), getattr(expected, name))


def test_calibration_of_classes_ignores_weight_zero() -> None:
    rule = Rule([Interval(0, upper=5)], "a", RuleStatistics(4, (3, 1)))
    rules = RuleSet([rule], ["x"], task="classification", classes=["a", "b"])
    expected = rule_calibration(rules, [[1.0], [2.0]], ["a", "b"], [1.0, 2.0])
    result = rule_calibration(rules, [[1.0], [4.0], [2.0]], ["a", "b", "b"], [1.0, 0.0, 2.0])
    assert result.to_frame().equals(expected.to_frame())


def test_calibration_unit_is_1_in_classification() -> None:
    rules = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])
    assert rule_calibration(rules, [[0.0], [1.0]], ["a", "b"]).unit == 1.0


def test_calibration_measures_only_rules_with_both_values() -> None:
    statistics = RuleStatistics(10, (10, 0))
    rules = RuleSet(
        [
            Rule([Interval(0, upper=1)], "a", statistics),
            Rule([Interval(0, 1, 2)], "a"),
            Rule([Interval(0, lower=9)], "a", statistics),
        ],
        ["x"],
        task="classification",
        classes=["a", "b"],
    )
    rows = np.repeat([[0.5], [1.5]], 40, axis=0)
    calibration = rule_calibration(rules, rows, ["b"] * 60 + ["a"] * 20)
    assert math.isnan(calibration.printed[1])
    assert calibration.rows[2] == 0
    assert calibration.error == 1.0
    assert calibration.share_within == 0.0
