"""Counts of rules compared with RuleKit's engine and with plain loops."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_diabetes, load_iris

from skescore.metrics import RuleConfusion, confusion
from skescore.rules import (
    BoxTable,
    Conclusions,
    Interval,
    LinearOutput,
    OneOf,
    Rule,
    RuleSet,
)

# RuleKit engine 2.1.24: the rules of ten models with the counts of the engine.
REFERENCE = json.loads(
    (Path(__file__).parents[1] / "data" / "rulekit_rule_sets.json").read_text(encoding="utf-8")
)["rule_sets"]
CASES = [pytest.param(case, id=case["id"]) for case in REFERENCE]


def training_rows(case: Any) -> tuple[np.ndarray, np.ndarray]:
    bunch = load_diabetes(scaled=False) if case["dataset"] == "diabetes" else load_iris()
    X, y = np.asarray(bunch.data), np.asarray(bunch.target)
    if case["task"] == "classification":
        y = np.asarray(bunch.target_names)[y]
    if case["dataset"] == "iris_vv":
        X, y = X[50:], y[50:]
    used = np.arange(len(X)) % 3 != 0 if "!=" in case["train"] else np.ones(len(X), dtype=bool)
    return X[used], y[used]


def engine_rules(case: Any, n_features: int) -> RuleSet:
    rules = []
    for rule in case["rules"]:
        premise = [
            Interval(
                feature,
                -math.inf if lower is None else lower,
                math.inf if upper is None else upper,
                *closed,
            )
            for feature, lower, upper, *closed in rule["conditions"]
        ]
        rules.append(Rule(premise, rule["output"]))
    names = [f"x{j}" for j in range(n_features)]
    return RuleSet(rules, names, task=case["task"], ordered=False)


def engine_values(case: Any, key: str) -> list[float]:
    return [rule[key] for rule in case["rules"]]


# --- the engine's numbers ------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_confusion_counts_equal_those_of_rulekit(case: Any) -> None:
    X, y = training_rows(case)
    counts = confusion(engine_rules(case, X.shape[1]), X, y)
    for key in ("p", "n", "P", "N"):
        assert getattr(counts, key).tolist() == engine_values(case, key)


@pytest.mark.parametrize("case", CASES)
def test_confusion_weights_and_p_values_equal_rulekit(case: Any) -> None:
    X, y = training_rows(case)
    counts = confusion(engine_rules(case, X.shape[1]), X, y)
    weights, p_values = engine_values(case, "weight"), engine_values(case, "pvalue")
    np.testing.assert_allclose(
        counts.quality(case["voting_measure"]), weights, rtol=1e-9, atol=1e-12
    )
    # The engine reports 0 for regression rules of a single row; by default they have no p-value.
    engine_like = counts.p_values(untested=0.0)
    np.testing.assert_allclose(engine_like, p_values, rtol=1e-6, atol=1e-300)
    is_single = (counts.covered == 1) & (case["task"] == "regression")
    assert np.isnan(counts.p_values()).tolist() == is_single.tolist()


@pytest.mark.parametrize("case", [c for c in REFERENCE if c["task"] == "regression"])
def test_confusion_deviations_equal_those_of_rulekit(case: Any) -> None:
    X, y = training_rows(case)
    counts = confusion(engine_rules(case, X.shape[1]), X, y)
    np.testing.assert_allclose(counts.std, engine_values(case, "sd"), rtol=1e-9)
    assert counts.label_std == pytest.approx(np.std(y, ddof=1), rel=1e-12)
    if case["id"] != "p09_diabetes":  # there, outputs are medians
        np.testing.assert_allclose(counts.mean, engine_values(case, "output"), rtol=1e-9)


# --- counting in loops ---------------------------------------------------------------------------


def holds(rule: Rule, row: np.ndarray) -> bool:
    return all(bool(c.holds(lambda j: row[j : j + 1])[0]) for c in rule.conditions)


def output_of(rule: Rule, row: np.ndarray) -> float:
    if not isinstance(rule.output, LinearOutput):
        return float(rule.output)
    return rule.output.intercept + sum(factor * row[j] for j, factor in rule.output.terms)


def counted_in_loops(
    rules: RuleSet, X: np.ndarray, y: Any, weights: list[float], assigned: bool
) -> dict[str, list[float]]:
    """Return all counts, computed in loops over rules and rows."""
    result: dict[str, list[float]] = {k: [] for k in ("p", "n", "P", "N", "unique", "std")}
    for index, rule in enumerate(rules):
        is_counted = []
        for row in X:
            first = next((k for k, r in enumerate(rules) if holds(r, row)), None)
            is_counted.append(first == index if assigned else holds(rule, row))
        inside = [(label, w) for label, w, c in zip(y, weights, is_counted, strict=True) if c and w]
        if rules.task == "classification":
            positive = [label == rule.output for label in y]
        elif inside:
            total = math.fsum(w for _, w in inside)
            mean = math.fsum(w * v for v, w in inside) / total
            spread = math.sqrt(math.fsum(w * (v - mean) ** 2 for v, w in inside) / total)
            # The labels are whole numbers, so that the tolerance affects only true ties.
            positive = [
                abs(v - output_of(rule, row)) <= spread + 1e-9 for v, row in zip(y, X, strict=True)
            ]
            result["std"].append(spread)
        else:
            positive = [False] * len(y)
            result["std"].append(math.nan)

        def total_of(flags: Any) -> float:
            return math.fsum(w for w, flag in zip(weights, flags, strict=True) if flag)

        result["p"].append(total_of(c and t for c, t in zip(is_counted, positive, strict=True)))
        result["n"].append(total_of(c and not t for c, t in zip(is_counted, positive, strict=True)))
        result["P"].append(total_of(positive))
        result["N"].append(total_of(not t for t in positive))
        other_items = [any(holds(r, row) for r in rules if r is not rule) for row in X]
        result["unique"].append(
            total_of(c and not other for c, other in zip(is_counted, other_items, strict=True))
        )
    return result


@st.composite
def labeled_rows(
    draw: st.DrawFn, task: str | None = None
) -> tuple[RuleSet, np.ndarray, np.ndarray]:
    """Draw rules over small whole numbers, with many ties and empty rules."""
    task = task or draw(st.sampled_from(["classification", "regression"]))
    n_rows = draw(st.integers(1, 12))
    numbers = st.integers(0, 5)
    X = np.array(
        draw(st.lists(st.tuples(numbers, numbers), min_size=n_rows, max_size=n_rows)), dtype=float
    )
    side = st.tuples(st.integers(-1, 6), st.integers(-1, 6)).map(sorted)
    outputs: Any = st.sampled_from(["a", "b", "c"])
    labels: Any = st.sampled_from(["a", "b", "c", "d"])
    if task == "regression":
        slope = st.tuples(st.integers(0, 1), st.sampled_from([-1.0, 0.5, 2.0]))
        linear = st.builds(LinearOutput, numbers.map(float), st.lists(slope, max_size=2))
        outputs = numbers.map(float) | linear
        labels = st.integers(0, 8).map(float)
    rules = []
    for _ in range(draw(st.integers(0, 5))):
        premise = []
        for feature in draw(st.sets(st.integers(0, 1))):
            low, high = draw(side)
            premise.append(Interval(feature, low, high, True, True))
        if draw(st.booleans()):
            premise.append(OneOf(draw(st.integers(0, 1)), [1.0, 2.0, 3.0, 6.0]))
        try:
            rules.append(Rule(premise, draw(outputs)))
        except ValueError:  # the conditions contradict each other
            continue
    y = np.array(draw(st.lists(labels, min_size=n_rows, max_size=n_rows)))
    classes = ["a", "b", "c", "d"] if task == "classification" else None
    return RuleSet(rules, ["u", "v"], task=task, classes=classes), X, y


@settings(max_examples=60)
@given(case=labeled_rows(), assigned=st.booleans(), data=st.data())
def test_confusion_agrees_with_loop(case: Any, assigned: bool, data: st.DataObject) -> None:
    rules, X, y = case
    weight = st.sampled_from([0.0, 0.1, 1 / 3, 1.0, 3.0])
    weights = data.draw(
        st.none() | st.lists(weight, min_size=len(y), max_size=len(y)).filter(any), label="weights"
    )
    counts = confusion(rules, X, y, weights, assigned=assigned)
    expected = counted_in_loops(rules, X, y, weights or [1.0] * len(y), assigned)
    if rules.task == "classification":
        assert counts.std is counts.mean is counts.label_std is None
        del expected["std"]
    for key, values in expected.items():
        np.testing.assert_allclose(getattr(counts, key), values, rtol=1e-12, atol=1e-12)
    assert (counts.p <= counts.P).all()
    assert (counts.n <= counts.N).all()
    assert (counts.unique <= counts.covered).all()
    counts.quality("odds_ratio")  # rejects counts that exceed their totals by rounding errors


@settings(max_examples=50)
@given(case=labeled_rows(), assigned=st.booleans(), data=st.data())
def test_confusion_weights_equal_repeated_rows(
    case: Any, assigned: bool, data: st.DataObject
) -> None:
    rules, X, y = case
    times = st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y)).filter(any)
    weights = data.draw(times)
    if rules.task == "classification" and rules.rules:
        rules = rules.replace(classes=[*"abcd"])
    weighted = confusion(rules, X, y, weights, assigned=assigned)
    second_repeated = np.repeat(np.arange(len(y)), weights)
    repeated = confusion(rules, X[second_repeated], y[second_repeated], assigned=assigned)
    for key in ("p", "n", "P", "N", "unique", "overlap", "mean", "std", "label_std"):
        result, expected = getattr(weighted, key), getattr(repeated, key)
        if expected is not None:
            np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12, err_msg=key)


@given(case=labeled_rows())
def test_confusion_is_equal_in_batches(case: Any) -> None:
    rules, X, y = case
    full_counts = confusion(rules, X, y)
    with pytest.MonkeyPatch.context() as patch:
        in_threes = functools.partialmethod(RuleSet.iter_match, batch_size=3)
        patch.setattr(RuleSet, "iter_match", in_threes)
        patch.setattr("skescore.rules._matching._BLOCK", 2)
        patch.setattr("skescore.metrics._confusion._NUMBERS", 5)
        for max_bytes in (0, 1 << 20):
            patch.setattr("skescore.metrics._confusion._MAX_CACHED_BYTES", max_bytes)
            in_parts = confusion(rules.replace(), X, y)  # without cached matches
            for key in ("p", "n", "P", "N", "unique"):
                assert getattr(in_parts, key).tolist() == getattr(full_counts, key).tolist()
            if full_counts.std is not None:
                np.testing.assert_allclose(in_parts.std, full_counts.std, rtol=1e-12, atol=1e-14)


def test_confusion_agrees_with_whole_matrices() -> None:
    rng = np.random.default_rng(3)
    n_rows, n_rules = 30_000, 150
    X = rng.random((n_rows, 3))
    ends = np.sort(rng.random((2, n_rules, 3)), axis=0)
    shape = np.ones(ends[0].shape, dtype=bool)
    boxes = BoxTable(ends[0], ends[1], shape, shape)
    names = ["a", "b", "c"]
    outputs = rng.integers(0, 4, n_rules)
    rules = RuleSet.from_boxes(
        boxes, Conclusions(outputs), names, task="classification", classes=range(4)
    )
    matches, y = rules.match(X), rng.integers(0, 4, n_rows)
    counts = confusion(rules, X, y)
    right = y[:, None] == outputs
    assert counts.p.tolist() == (matches & right).sum(axis=0).tolist()
    assert counts.n.tolist() == (matches & ~right).sum(axis=0).tolist()
    assert counts.P.tolist() == right.sum(axis=0).tolist()
    # Labels are far from zero and close together.
    labels = 1e6 + rng.normal(size=n_rows)
    rules = RuleSet.from_boxes(boxes, Conclusions(np.full(n_rules, 1e6)), names, task="regression")
    counts = confusion(rules, X, labels)
    spread = np.array([labels[column].std() if column.any() else np.nan for column in matches.T])
    np.testing.assert_allclose(counts.std, spread, rtol=1e-9, atol=1e-9)
    close = np.abs(labels[:, None] - 1e6) <= counts.std
    assert counts.p.tolist() == (matches & close).sum(axis=0).tolist()
    assert counts.N.tolist() == (~close).sum(axis=0).tolist()


def test_confusion_deviations_are_exact_for_distant_groups() -> None:
    rng = np.random.default_rng(1)
    group = rng.integers(0, 5, 4000)
    deviations = rng.normal(size=4000) * 10.0 ** -np.arange(5)[group]
    labels = 1e4 * group + deviations
    premises = [[Interval(0, k, k, True, True)] for k in range(5)]
    rules = regression(*((premise, 1e4 * k) for k, premise in enumerate(premises)))
    for weights in (None, rng.random(4000)):
        counts = confusion(rules, group[:, None], labels, weights)
        for k in range(5):
            inside = labels[group == k] - 1e4 * k
            shares = None if weights is None else weights[group == k]
            mean = np.average(inside, weights=shares)
            spread = np.sqrt(np.average((inside - mean) ** 2, weights=shares))
            # The labels themselves are rounded to 1e-11.
            assert counts.std[k] == pytest.approx(spread, rel=1e-9, abs=1e-12)
            assert counts.mean[k] - 1e4 * k == pytest.approx(mean, abs=2e-11)


# --- definitions ---------------------------------------------------------------------------------


def regression(*rules: tuple[list[Any], Any]) -> RuleSet:
    return RuleSet([Rule(*rule) for rule in rules], ["x"], task="regression")


def test_confusion_counts_border_labels_as_inside() -> None:
    # Both labels lie exactly one standard deviation from their mean, up to rounding.
    rng = np.random.default_rng(0)
    for a, b in rng.normal(size=(200, 2)) * 10.0 ** rng.integers(-8, 8, (200, 1)):
        counts = confusion(regression(([], float((a + b) / 2))), [[0.0], [1.0]], [a, b])
        assert counts.p.tolist() == [2.0]
        assert counts.n.tolist() == [0.0]


def test_confusion_of_equal_labels_has_zero_deviation() -> None:
    for label in (0.1, -7.3, 1e9 / 3):
        labels = [label] * 7
        counts = confusion(regression(([], label)), np.zeros((7, 1)), labels)
        assert (counts.std.tolist(), counts.label_std) == ([0.0], 0.0)
        assert counts.p.tolist() == [7.0]
        assert np.isnan(counts.p_values()).all()


def test_confusion_judges_linear_output_per_row() -> None:
    x = np.arange(10.0)
    rules = regression(([], 4.5), ([], LinearOutput(0.0, [(0, 1.0)])))
    counts = confusion(rules, x[:, None], x)
    assert counts.p.tolist() == [6.0, 10.0]
    assert counts.std.tolist() == [pytest.approx(np.std(x))] * 2
    # A missing value makes the output unknown, which counts as an error.
    x_missing = np.where(x == 3, np.nan, x)
    assert confusion(rules, x_missing[:, None], x).p.tolist() == [6.0, 9.0]


def test_confusion_of_rule_without_rows_has_no_positives() -> None:
    rules = regression(([Interval(0, lower=9)], 1.0), ([], 1.0))
    counts = confusion(rules, [[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0])
    assert counts.P.tolist()[0] == 0
    assert counts.N.tolist()[0] == 3
    assert np.isnan([counts.mean[0], counts.std[0], counts.overlap[0]]).all()
    assert np.isnan(counts.p_values("holm")).tolist() == [True, False]


def test_p_values_ignore_untested_rules_in_corrections() -> None:
    rules = regression(
        ([Interval(0, upper=4)], 1.0), ([Interval(0, lower=99)], 1.0), ([Interval(0, upper=0)], 0.0)
    )
    x = np.arange(12.0)
    counts = confusion(rules, x[:, None], x**2)
    raw = counts.p_values()
    assert np.isnan(raw).tolist() == [False, True, True]
    expected = stats.chi2.cdf(4 * (np.std(x[:5] ** 2) / np.std(x**2, ddof=1)) ** 2, 4)
    assert raw[0] == pytest.approx(expected, rel=1e-12)
    assert counts.p_values("fdr_bh")[0] == raw[0]
    assert counts.significant().tolist() == [True, False, False]


def test_significant_applies_each_correction() -> None:
    # Fisher's test of a rule for k of 20 rows, all positive ones of 10.
    x = np.arange(20.0)
    reach = [9, 5, 3, 2]
    rules = RuleSet(
        [Rule([Interval(0, upper=k - 0.5)], "a") for k in reach],
        ["x"],
        task="classification",
        classes=["a", "b"],
    )
    counts = confusion(rules, x[:, None], np.where(x < 10, "a", "b"))
    raw = [math.comb(10, k) / math.comb(20, k) for k in reach]
    assert counts.p_values().tolist() == pytest.approx(raw, rel=1e-9)
    assert counts.significant(0.05, None).tolist() == [r < 0.05 for r in raw]
    bh = [min(r * 4 / rank for rank, r in enumerate(raw, 1) if rank > k) for k in range(4)]
    assert counts.p_values("fdr_bh").tolist() == pytest.approx(bh, rel=1e-9)
    holm = [max(r * (4 - k) for k, r in enumerate(raw[: rank + 1])) for rank in range(4)]
    assert counts.p_values("holm").tolist() == pytest.approx(holm, rel=1e-9)
    for correction in ("fdr_bh", "holm"):
        flags = counts.p_values(correction) < 0.12
        assert counts.significant(0.12, correction).tolist() == flags.tolist()


def test_confusion_counts_assigned_rows_of_ordered_rules() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], "a"), Rule([Interval(0, upper=4)], "b"), Rule([], "a")],
        ["x"],
        task="classification",
    )
    x, y = np.arange(6.0)[:, None], np.array([*"aababb"])
    counts = confusion(rules, x, y, assigned=True)
    assert counts.covered.tolist() == [3.0, 2.0, 1.0]
    assert counts.p.tolist() == [2.0, 1.0, 0.0]
    assert counts.unique.tolist() == [0.0, 0.0, 1.0]
    assert counts.overlap.tolist() == [1.0, 1.0, 0.0]
    assert confusion(rules, x, y).covered.tolist() == [3.0, 5.0, 6.0]


def test_confusion_accepts_frames_and_labels_of_any_type() -> None:
    frame = pd.DataFrame({"other": [5, 6, 7], "color": ["red", "blue", "red"]})
    rules = RuleSet([Rule([OneOf(0, ["red"])], True)], ["color"], task="classification")
    for y in ([True, False, True], pd.Series([True, False, True], index=[7, 8, 9])):
        counts = confusion(rules, frame, y)
        assert counts.p.tolist() == [2.0]
        assert counts.N.tolist() == [1.0]
    full_rules = RuleSet([Rule([], 2)], ["x"], task="classification", classes=[1, 2])
    assert confusion(full_rules, [[0], [0]], np.array([2.0, 3.0])).p.tolist() == [1.0]
    assert confusion(full_rules, [[0], [0]], pd.Categorical([2, 1])).p.tolist() == [1.0]


def test_confusion_of_no_rules_is_empty() -> None:
    for task, y in (("classification", ["a", "b"]), ("regression", [1.0, 2.0])):
        rules = RuleSet([], ["x"], task=task)
        counts = confusion(rules, [[0.0], [1.0]], y)
        assert len(counts) == len(counts.covered) == len(counts.overlap) == 0
        assert counts.p_values("holm").shape == (0,)
        assert counts.quality("c2").shape == (0,)
        assert counts.significant().shape == (0,)


def test_confusion_is_read_only() -> None:
    counts = confusion(regression(([], 1.0)), [[0.0], [1.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        counts.p[0] = 7
    with pytest.raises(AttributeError):
        counts.p = np.zeros(1)  # type: ignore[misc]
    assert isinstance(counts, RuleConfusion)


# --- invalid input -------------------------------------------------------------------------------

LETTERS = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])


@pytest.mark.parametrize(
    ("rules", "X", "y", "options", "message"),
    [
        (LETTERS, np.zeros((0, 1)), [], {}, "at least one row"),
        (LETTERS, [[0.0]], ["a", "b"], {}, r"y must hold one label per row, shape \(1,\)"),
        (LETTERS, [[0.0]], [["a"]], {}, r"got shape \(1, 1\)"),
        (LETTERS, [[0.0]], "a", {}, "one label per row"),
        (LETTERS, [[0.0]], None, {}, "a label per row, but it is None"),
        (LETTERS, [[0.0], [1.0]], ["a", None], {}, "row 1 has none"),
        (LETTERS, [[0.0], [1.0]], [0, 1], {}, r"classes of the rules, \['a', 'b'\]"),
        (LETTERS, [[0.0], [1.0]], ["a", "b"], {"sample_weight": [0, 0]}, "got 2 zeros"),
        (LETTERS, [[0.0], [1.0]], ["a", "b"], {"sample_weight": [1, -1]}, "got -1.0 for row 1"),
        (LETTERS, [[0.0], [1.0]], ["a", "b"], {"sample_weight": [1]}, "one number per row"),
        (regression(([], 1.0)), [[0.0]], ["many"], {}, "y must hold numbers"),
        (regression(([], 1.0)), [[0.0], [1.0]], [1.0, np.nan], {}, "got nan in row 1"),
        (regression(([], 1.0)), [[0.0], [1.0]], [np.inf, 1.0], {}, "got inf in row 0"),
    ],
)
def test_confusion_rejects_invalid_input(
    rules: RuleSet, X: Any, y: Any, options: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        confusion(rules, X, y, **options)


def test_confusion_accepts_linear_output_equal_to_zero() -> None:
    line = RuleSet([Rule([], LinearOutput(0.0, [(0, 1.0)]))], ["x"], task="regression")
    assert confusion(line, [[0.0], [0.0]], [0.0, 0.0]).p.tolist() == [2.0]


def test_confusion_rejects_assigned_rows_of_voting_rules() -> None:
    voting = LETTERS.replace(ordered=False, voting="votes")
    assert confusion(voting, [[0.0]], ["a"]).p.tolist() == [1.0]
    with pytest.raises(ValueError, match="predict together"):
        confusion(voting, [[0.0]], ["a"], assigned=True)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 5, np.nan])
def test_significant_rejects_invalid_alpha(alpha: float) -> None:
    counts = confusion(LETTERS, [[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match="alpha must be"):
        counts.significant(alpha)


def test_confusion_rejects_unknown_names() -> None:
    counts = confusion(LETTERS, [[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match="precision"):
        counts.quality("precission")
    with pytest.raises(ValueError, match="holm"):
        counts.p_values("hollm")


def test_confusion_compares_large_labels_exactly() -> None:
    large = 2**64 - 1
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], 1), Rule([], large)], ["x"], task="classification"
    )
    X, y = [[1.0], [3.0], [1.0], [3.0]], [1, large, 1, large]
    result, expected = confusion(rules, X, y), confusion(rules, X, np.array(y, dtype=np.uint64))
    assert result.p.tolist() == expected.p.tolist() == [2, 2]
    assert confusion(rules, X, [1, large - 1, 1, large]).p.tolist() == [2, 1]


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e200])
def test_confusion_of_numbers_scales_with_weights(unit: float) -> None:
    rules = RuleSet([Rule([Interval(0, upper=2)], 2.0), Rule([], 4.0)], ["x"], task="regression")
    X, y = np.arange(6.0)[:, None], [1.0, 2, 4, 0, 3, 9]
    weights = np.array([1.0, 2, 1, 1, 3, 2])
    usual, scaled = (confusion(rules, X, y, weights * factor) for factor in (1.0, unit))
    assert scaled.std == pytest.approx(usual.std)
    assert scaled.p / unit == pytest.approx(usual.p)
    assert scaled.N / unit == pytest.approx(usual.N)
