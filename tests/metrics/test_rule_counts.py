"""Counts of rows instead of rows: equal results, from parts that can be added."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loaded_files import load_file

from skescore.metrics import RuleCounts, characteristics, confusion, count_rows, rule_report
from skescore.rules import Domain, Fallback, Interval, LinearOutput, Missing, Rule, RuleSet
from skescore.scorers import evaluate_rules, ice, knowledge, make_rule_scorer, make_score_scorer

arbitrary = load_file("rules/exporters/arbitrary.py")
same_numbers = load_file("sources/comparing.py").same_numbers

SPANS = [(0, 2), (1, 5), (7, 9)]


def rule_set(outputs: list[Any], task: str, **options: Any) -> RuleSet:
    rules = [
        Rule([Interval(0, low, high)], output)
        for (low, high), output in zip(SPANS, outputs, strict=True)
    ]
    return RuleSet(rules, ["x"], task=task, domain=Domain([0.0], [10.0]), **options)


CLASSES = rule_set(["a", "b", "a"], "classification", fallback=Fallback("b"))
NUMBERS = rule_set([1.0, LinearOutput(0.0, [(0, 0.5)]), -2.0], "regression", fallback=Fallback(0.5))


def rows(ruleset: RuleSet, n_rows: int = 60, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 10, (n_rows, 1))
    labels = ["a", "b", "other"] if ruleset.classes else [-2.0, 0.0, 1.0, 1.5, 2.0]
    return X, rng.choice(labels, n_rows), rng.choice([0.0, 0.5, 1.0, 2.0], n_rows)


@settings(max_examples=15)
@given(data=st.data())
def test_rule_counts_equal_rows_for_arbitrary_rules(data: Any) -> None:
    ruleset = data.draw(arbitrary.rule_sets())
    X = arbitrary.border_rows(ruleset, 40, infinite=False)
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    if ruleset.classes:
        fresh = ["none of them"] if isinstance(ruleset.classes[0], str) else [77]
        pool = np.array([*ruleset.classes, *fresh], dtype=object)
        y = rng.choice(pool, len(X))
        y[0] = ruleset.classes[0]
    else:
        y = rng.choice([-3.0, 0.0, 0.1, 0.1, 2.5, 1e6], len(X))
    weights = rng.choice([0.0, 0.25, 1.0, 2.0], len(X)) if data.draw(st.booleans()) else None
    if weights is not None:
        weights[0] = 1.0
    with np.errstate(all="ignore"):
        same_numbers(ruleset, count_rows(ruleset, X, y, weights), X, y, weights)


def test_rule_counts_treat_undefined_linear_outputs_like_rows() -> None:
    """R² of one row is undefined, but the missing prediction is still reported."""
    ruleset = RuleSet(
        [Rule([Missing(0)], LinearOutput(-3.0, [(0, -2.0)]))],
        ["x"],
        task="regression",
        ordered=False,
        domain=Domain([0.0], [10.0]),
    )
    X, y = np.array([[np.nan], [1.0], [3.0]]), np.array([1.0, 2.0, 2.5])
    same_numbers(ruleset, count_rows(ruleset, X, y), X, y)


@pytest.mark.parametrize("ruleset", [CLASSES, NUMBERS], ids=["classes", "numbers"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rule_counts_json_round_trips(ruleset: RuleSet, weighted: bool) -> None:
    X, y, weights = rows(ruleset)
    counts = count_rows(ruleset, X, y, weights if weighted else None)
    read = RuleCounts.from_json(counts.to_json())
    assert read.to_json() == counts.to_json()
    same_numbers(ruleset, read, X, y, weights if weighted else None)


def test_rule_counts_of_classes_add_up() -> None:
    X, y, weights = rows(CLASSES)
    parts = [
        count_rows(CLASSES, X[i : i + 20], y[i : i + 20], weights[i : i + 20]) for i in (40, 0, 20)
    ]
    same_numbers(CLASSES, sum(parts), X, y, weights)


def test_rule_counts_of_numbers_add_up_for_scores_only() -> None:
    X, y, weights = rows(NUMBERS)
    parts = [
        count_rows(NUMBERS, X[i : i + 20], y[i : i + 20], weights[i : i + 20]) for i in (0, 20, 40)
    ]
    total = sum(parts)
    expected = knowledge(NUMBERS, X, y, sample_weight=weights)
    assert knowledge(NUMBERS, total) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="the standard deviation of all labels"):
        confusion(NUMBERS, total)


def test_rule_counts_added_twice_equal_double_weights() -> None:
    for ruleset in (CLASSES, NUMBERS):
        X, y, weights = rows(ruleset)
        counts = count_rows(ruleset, X, y, weights)
        same_numbers(ruleset, counts + counts, X, y, 2 * weights)
        assert sum(counts.n_rows) == (weights > 0).sum()


def test_rule_counts_reject_addition_of_other_rules() -> None:
    X, y, _ = rows(NUMBERS)
    counts = count_rows(NUMBERS, X, y)
    with pytest.raises(ValueError, match="uncovered rows have the same prediction, got"):
        counts + count_rows(NUMBERS.replace(fallback=Fallback(0.25)), X, y)
    for add in (lambda: counts + 3, lambda: 3 + counts):
        with pytest.raises(TypeError, match="unsupported operand"):
            add()


def test_rule_counts_are_exact_for_labels_far_from_zero() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 10, (500, 1))
    y = 1e7 + rng.normal(0, 1e-3, 500)
    ruleset = rule_set([1e7, 1e7, 1e7], "regression")
    counts = count_rows(ruleset, X, y)
    expected, result = confusion(ruleset, X, y), confusion(ruleset, counts)
    # Sums of squares around 0 would have no correct digit.
    np.testing.assert_allclose(result.std, [np.std(y[h]) for h in ruleset.match(X).T], rtol=1e-11)
    assert result.p.tolist() == expected.p.tolist()
    assert result.P.tolist() == expected.P.tolist()


def test_rule_counts_are_exact_for_narrow_distant_labels() -> None:
    X, y, _ = rows(NUMBERS)
    near = X[:, 0] <= 2
    y = np.where(near, 1e9 + y / 64, y)  # no center is near both
    result, expected = confusion(NUMBERS, count_rows(NUMBERS, X, y)), confusion(NUMBERS, X, y)
    matches = NUMBERS.match(X)
    stds = [np.std(y[h] - 1e9 * near[h].all()) for h in matches.T]
    np.testing.assert_allclose(result.std, stds, rtol=1e-9)
    assert result.std[0] < 0.03
    for part in "pnPN":
        assert getattr(result, part).tolist() == getattr(expected, part).tolist()


def test_r2_of_counts_is_exact_for_labels_far_from_mean() -> None:
    X = rows(NUMBERS)[0]
    ruleset = NUMBERS.replace(rules=[Rule([Interval(0, upper=5)], LinearOutput(1e9, [(0, 1.0)]))])
    y = np.where(X[:, 0] <= 5, 1e9 + X[:, 0] + np.arange(60) % 3 / 4, -1e9)
    expected = evaluate_rules(ruleset, X, y).performance("r2", "ignore")
    assert 0.5 < expected < 1
    result = evaluate_rules(ruleset, count_rows(ruleset, X, y)).performance("r2", "ignore")
    assert result == pytest.approx(expected, rel=1e-9)


def test_rule_counts_are_exact_for_few_rows() -> None:
    one = count_rows(NUMBERS, [[0.5]], [1.5])
    assert math.isnan(confusion(NUMBERS, one).label_std)
    X, y = [[0.5], [1.5]], [1.0, -1.0 + 2**-50]
    two = count_rows(NUMBERS, X, y)
    assert confusion(NUMBERS, two).label_std == pytest.approx(math.sqrt(2))
    expected = evaluate_rules(NUMBERS, X, y).performance("r2", "penalize")
    assert evaluate_rules(NUMBERS, two).performance("r2", "penalize") == pytest.approx(expected)


def test_rule_counts_predict_mean_for_uncovered_rows() -> None:
    ruleset = NUMBERS.replace(fallback=None)
    X, y, weights = rows(ruleset)
    scorer = make_score_scorer("fire", metric="mean_absolute_error")
    result = scorer(ruleset, count_rows(ruleset, X, y, weights))
    assert result == pytest.approx(scorer(ruleset, X, y, sample_weight=weights), rel=1e-12)


def test_rule_counts_of_equal_labels_have_deviation_0() -> None:
    X = rows(NUMBERS)[0]
    y = np.full(len(X), 0.1)
    counts = count_rows(NUMBERS, X, y)
    assert confusion(NUMBERS, counts).std.tolist() == [0.0, 0.0, 0.0]
    assert confusion(NUMBERS, counts).label_std == 0.0
    assert evaluate_rules(NUMBERS, counts).performance("r2", "penalize") == 0.0


def test_callable_metric_gets_weighted_pairs_of_classes() -> None:
    def errors(y_true: Any, y_pred: Any, sample_weight: Any) -> float:
        return float(((y_true != y_pred) * sample_weight).sum() / sample_weight.sum())

    X, y, _ = rows(CLASSES)
    scorer = make_score_scorer("fire", metric=errors)
    assert scorer(CLASSES, count_rows(CLASSES, X, y)) == pytest.approx(
        scorer(CLASSES, X, y, sample_weight=np.ones(len(X))), rel=1e-12
    )


@pytest.mark.parametrize("metric", ["median_absolute_error", lambda y_true, y_pred: 0.0])
def test_rule_counts_reject_metrics_of_single_rows(metric: Any) -> None:
    X, y, _ = rows(NUMBERS)
    with pytest.raises(ValueError, match="needs the rows, but only sums"):
        make_score_scorer("fire", metric=metric)(NUMBERS, count_rows(NUMBERS, X, y))


def test_rule_counts_of_other_rules_are_rejected() -> None:
    X, y, _ = rows(CLASSES)
    others = rule_set(["a", "b", "b"], "classification")
    counts = count_rows(CLASSES, X, y)
    for use in (ice, confusion, rule_report, characteristics):
        with pytest.raises(ValueError, match="counts of the rules that are scored"):
            use(others, counts)
    with pytest.raises(ValueError, match="belong to the same rules"):
        counts + count_rows(others, X, y)


def test_rule_counts_without_domain_have_no_volume() -> None:
    ruleset = CLASSES.replace(domain=None)
    X, y, _ = rows(CLASSES)
    counts = count_rows(ruleset, X, y)
    with pytest.raises(ValueError, match="needs the domain"):
        ice(ruleset, counts)
    assert not math.isnan(make_score_scorer("ice", completeness="instances")(ruleset, counts))


def test_rule_counts_reject_labels_and_black_box() -> None:
    X, y, _ = rows(CLASSES)
    counts = count_rows(CLASSES, X, y)
    with pytest.raises(ValueError, match="already contain labels and weights"):
        ice(CLASSES, counts, y)
    with pytest.raises(ValueError, match="reference='black_box'"):
        make_rule_scorer("precision", reference="black_box")(CLASSES, counts)
    with pytest.raises(ValueError, match="is a class of the rules"):
        ice(CLASSES, count_rows(CLASSES, X, np.full(len(X), "c")))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": "skescore.RuleCounts"}'])
def test_rule_counts_from_json_rejects_other_texts(text: str) -> None:
    with pytest.raises(ValueError, match=r"not JSON written by RuleCounts\.to_json"):
        RuleCounts.from_json(text)


@pytest.mark.parametrize(
    ("X", "y", "weights", "message"),
    [
        (np.zeros((0, 1)), [], None, "at least one row"),
        ([[1.0]], [None], None, "row 0 has none"),
        ([[1.0]], ["a", "b"], None, "one label per row"),
        ([[1.0]], ["a"], [-1.0], "zero or more"),
        ([[1.0]], ["a"], [0.0], "1 zeros"),
    ],
)
def test_count_rows_rejects_invalid_rows(X: Any, y: Any, weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        count_rows(CLASSES, X, y, weights)


def test_count_rows_reads_frames_by_name() -> None:
    X, y, _ = rows(CLASSES)
    frame = pd.DataFrame({"other": 0.0, "x": X[:, 0]})
    assert count_rows(CLASSES, frame, y).to_json() == count_rows(CLASSES, X, y).to_json()


def test_rule_counts_reject_losses_as_performance() -> None:
    rules = RuleSet([Rule([Interval(0, upper=2)], 3.0)], ["x"], task="regression")
    counts = count_rows(rules, [[0.0], [1.0], [9.0]], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="performance='mean_absolute_error' is a loss"):
        evaluate_rules(rules, counts).performance("mean_absolute_error", "ignore")


def test_rule_counts_equal_rows_for_labels_at_border() -> None:
    """1 and 3 lie a standard deviation from 2; two rows that weigh a quarter have a deviation."""
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], 2.0), Rule([Interval(0, lower=2)], 7.5)],
        ["x"],
        task="regression",
    )
    X, y = [[0.0], [1.0], [5.0], [6.0]], [1.0, 3.0, 6.0, 9.0]
    for weights in (None, [0.25, 0.25, 0.125, 0.125]):
        direct = confusion(rules, X, y, weights)
        result = confusion(rules, count_rows(rules, X, y, weights))
        assert direct.p.tolist() == ([2.0, 2.0] if weights is None else [0.5, 0.25])
        for name in ("p", "n", "P", "N", "mean", "std"):
            assert getattr(result, name).tolist() == pytest.approx(getattr(direct, name).tolist())


def test_rule_counts_without_rows_are_strict_json() -> None:
    rules = RuleSet([Rule([Interval(0, lower=9)], 1.0), Rule([], 2.0)], ["x"], task="regression")
    counts = count_rows(rules, [[0.0], [1.0]], [1.5, 2.5])

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    data = json.loads(counts.to_json(), parse_constant=refuse)
    assert RuleCounts.from_json(json.dumps(data)).to_json() == counts.to_json()
    assert isinstance(data, dict)


def test_rule_counts_of_voting_rules_equal_predictions() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], "a", weight=2.0), Rule([Interval(0, lower=1)], "b")],
        ["x"],
        task="classification",
        classes=["a", "b"],
        ordered=False,
        voting="votes",
        fallback=Fallback("b"),
    )
    X, y = [[0.0], [1.5], [3.0], [4.0]], ["a", "b", "b", "a"]
    accuracy = np.mean(rules.predict(X) == np.array(y))
    evaluation = evaluate_rules(rules, count_rows(rules, X, y))
    assert evaluation.performance("accuracy", "penalize") == accuracy == 0.5


def test_f1_of_counts_ignores_scale_of_weights() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], "a"), Rule([], "b")],
        ["x"],
        task="classification",
        ordered=True,
    )
    X, y = [[0.0], [1.0], [3.0], [4.0]], ["a", "b", "b", "b"]
    values = [
        evaluate_rules(rules, count_rows(rules, X, y, np.full(4, unit))).performance(
            "f1_weighted", "penalize"
        )
        for unit in (1.0, 0.01)
    ]
    assert values[1] == pytest.approx(values[0], rel=1e-12)


def test_rule_counts_of_other_labels_add_up() -> None:
    X = [[1.0], [1.5], [8.0]]
    y = np.array(["a", "other", "third"], dtype=object)
    parts = count_rows(CLASSES, X[:1], y[:1]) + count_rows(CLASSES, X[1:], y[1:])
    expected = count_rows(CLASSES, X, y)
    assert parts.classes.labels == expected.classes.labels
    np.testing.assert_array_equal(parts.classes.by_rule, expected.classes.by_rule)


def test_rule_counts_of_many_rows_are_complete() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=i)], "a") for i in range(5000)],
        ["x"],
        task="classification",
    )
    X, y = np.full((2000, 1), 9999.0), np.full(2000, "a")
    assert count_rows(rules, X, y).n_rows == (0, 2000)


def test_rule_counts_replace_a_single_uncovered_row_by_mean() -> None:
    rules = NUMBERS.replace(fallback=None)
    X, y = [[0.5], [1.0], [-1.0]], [1.0, 2.0, 6.0]
    assert count_rows(rules, X, y).numbers.default == 3.0


def test_rule_counts_keep_undefined_defaults_in_json() -> None:
    counts = count_rows(NUMBERS.replace(fallback=None), [[0.5], [1.0]], [1.0, 2.0])
    assert math.isnan(RuleCounts.from_json(counts.to_json()).numbers.default)


def test_rule_counts_have_exact_means_of_equal_labels() -> None:
    rules = rule_set([1.0, 2.0, 3.0], "regression", fallback=Fallback(0.0))
    X, y = [[0.5]] * 3 + [[8.0]] * 3, [0.1] * 3 + [1e9, 2e9, 4e9]
    numbers = count_rows(rules, X, y).numbers
    assert numbers.moments[0, 0, 0] == 0.1
    assert numbers.rule_ends[0, :, 0].tolist() == [0.1, 0.1]
    assert numbers.ends.tolist()[0] == [0.1, 4e9]


def test_rule_counts_are_exact_for_fractions_of_rows() -> None:
    rules = rule_set([1.0, 2.0, 3.0], "regression", fallback=Fallback(0.0))
    labels = np.array([1e9, 1e9 + 1e-3])
    X, y = [[0.5]] * 2 + [[8.0]] * 2, [*labels, 0.0, 1.0]
    std = confusion(rules, count_rows(rules, X, y, [0.25] * 4)).std
    assert std[0] == pytest.approx(np.std(labels), rel=1e-4)


def test_rule_counts_without_equal_moments_have_no_ranges() -> None:
    X, y = [[0.5], [1.0], [1.5]], [1.0, 2.0, 4.0]
    parts = count_rows(NUMBERS, X[:2], y[:2]) + count_rows(NUMBERS, X[1:], y[1:])
    assert parts.numbers.within is None


def test_rule_counts_of_voting_rules_count_predicted_classes() -> None:
    rules = RuleSet(
        [Rule([], "a"), Rule([Interval(0, upper=1)], "b", weight=2.0)],
        ["x"],
        task="classification",
        ordered=False,
        voting="votes",
    )
    counts = count_rows(rules, [[0.0], [5.0], [6.0]], ["a", "a", "b"])
    assert counts.classes.predicted.tolist() == [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]


def test_metrics_of_counts_list_metrics_of_numbers() -> None:
    counts = count_rows(NUMBERS, [[0.5], [1.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="Choose one of") as caught:
        evaluate_rules(NUMBERS, counts).performance("median_absolute_error", "penalize")
    assert "accuracy" not in str(caught.value)


def test_rule_counts_of_parts_have_ends_of_all_rows() -> None:
    X, y = [[0.5], [1.0], [1.5], [8.0]], [4.0, 2.0, 7.0, 1.0]
    parts = count_rows(NUMBERS, X[:2], y[:2]) + count_rows(NUMBERS, X[2:], y[2:])
    whole = count_rows(NUMBERS, X, y)
    np.testing.assert_array_equal(parts.numbers.rule_ends, whole.numbers.rule_ends)
    np.testing.assert_array_equal(parts.numbers.ends, whole.numbers.ends)
