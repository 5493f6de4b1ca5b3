"""Measures of predictions by name, compared with RuleKit, plain loops and scikit-learn."""

from __future__ import annotations

import inspect
import json
import math
import pickle
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn.metrics as sk
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning

from skescore import metrics
from skescore.metrics import (
    PERFORMANCE_METRICS,
    PerformanceMetric,
    characteristics,
    performance_report,
    performance_table,
    performance_value,
)
from skescore.rules import Fallback, Interval, Rule, RuleSet

# RuleKit engine 2.1.24: measures of made-up predictions and of those of ten models.
REFERENCE = json.loads(
    (Path(__file__).parents[1] / "data" / "rulekit_performance.json").read_text(encoding="utf-8")
)["cases"]
CASES = [pytest.param(case, id=case["id"]) for case in REFERENCE]
CLOSE = {"rel": 1e-9, "abs": 1e-12}


def of_kind(*kinds: str) -> list[str]:
    return [name for name, metric in PERFORMANCE_METRICS.items() if metric.kind in kinds]


BINARY, CLASSES = of_kind("binary"), of_kind("multiclass")
NUMBERS, SHARES = of_kind("regression"), of_kind("probability")


def quiet(name: str, *columns: Any, **options: Any) -> float:
    """Return the value without warnings; NaN if it is undefined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return performance_value(name, *columns, **options)


def same(value: float, expected: float, **tolerance: float) -> bool:
    return bool(value == pytest.approx(expected, nan_ok=True, **(tolerance or CLOSE)))


# --- RuleKit -------------------------------------------------------------------------------------


def columns_of(case: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    if "labels" not in case:
        return case["y_true"], case["y_pred"]
    labels = case["labels"]
    return [labels[i] for i in case["y_true"]], [labels[i] for i in case["y_pred"]]


def positive_of(case: dict[str, Any], name: str) -> dict[str, Any]:
    return {"pos_label": case["positive"]} if name in BINARY else {}


OUR_NAMES = {metric.rulekit_name or name: name for name, metric in PERFORMANCE_METRICS.items()}


def measured(case: dict[str, Any]) -> dict[str, float]:
    """Return values of the engine for metrics that need no rules, under our names."""
    values = case["performance"].items()
    return {OUR_NAMES[k]: float(v) for k, v in values if not k.startswith("#")}


def test_reference_contains_every_metric_in_every_state() -> None:
    values = [(name, value) for case in REFERENCE for name, value in measured(case).items()]
    assert len(values) == 250
    assert {name for name, _ in values} == {*BINARY, *CLASSES, *NUMBERS} & set(WIKI)
    unknown = {name for name, value in values if math.isnan(value)}
    assert unknown >= {"cohen_kappa", "specificity", "fallout", "youden", "psep"}
    assert {name for name, value in values if value == math.inf} == {
        "relative_error_strict",
        "normalized_absolute_error",
        "root_relative_squared_error",
    }


@pytest.mark.parametrize("case", CASES)
def test_performance_value_equals_rulekit_with_its_options(case: dict[str, Any]) -> None:
    """The options reproduce peculiarities of the engine."""
    for name, expected in measured(case).items():
        options = {**PERFORMANCE_METRICS[name].rulekit, **positive_of(case, name)}
        value = quiet(name, *columns_of(case), **options)
        assert same(value, expected), name


@pytest.mark.parametrize("case", CASES)
def test_performance_value_equals_rulekit_except_correlations(case: dict[str, Any]) -> None:
    odd = set()
    for name, expected in measured(case).items():
        value = quiet(name, *columns_of(case), **positive_of(case, name))
        if not same(value, expected):
            odd.add(name)
    hides = case["id"].endswith(("negative_correlation", "constant_label"))
    assert odd == ({"correlation", "squared_correlation"} if hides else set())


def test_correlation_is_clipped_only_on_request() -> None:
    case = next(c for c in REFERENCE if c["id"].endswith("negative_correlation"))
    y, z = columns_of(case)
    r = np.corrcoef(y, z)[0, 1]
    assert r < -0.9
    assert performance_value("correlation", y, z) == pytest.approx(r)
    assert performance_value("squared_correlation", y, z) == pytest.approx(r**2)
    assert performance_value("correlation", y, z, clip=True) == 0.0
    assert performance_value("squared_correlation", y, z, clip=True) == 0.0


def test_conflicts_of_rules_without_rows_equal_rulekit() -> None:
    """No rule covers these rows of the reference; test_characteristics tests ten models."""
    case = next(c for c in REFERENCE if c["id"].endswith("multi_votes_none"))
    rules = RuleSet(
        [Rule([Interval(0, lower=100)], "a"), Rule([Interval(0, lower=100)], "b")],
        ["x"],
        task="classification",
        classes=["a", "b", "c"],
        ordered=False,
        fallback=Fallback("a"),
    )
    figures = characteristics(rules, np.zeros((6, 1)), columns_of(case)[0])
    for name in of_kind("rules"):
        assert figures[name] == float(case["performance"][f"#{name}"]) == 0.0


# --- plain loops ---------------------------------------------------------------------------------


def binary_by_loops(y: list[Any], z: list[Any], w: list[float], positive: Any) -> dict[str, float]:
    cells: Counter[tuple[bool, bool]] = Counter()
    for truth, answer, weight in zip(y, z, w, strict=True):
        cells[truth == positive, answer == positive] += weight
    tp, fp, tn, fn = (
        float(cells[key]) for key in [(True, True), (False, True), (False, False), (True, False)]
    )

    def per(part: float, whole: float) -> float:
        return part / whole if whole > 0 else math.nan

    result, spared, right, left = (
        per(tp, tp + fn),
        per(tn, tn + fp),
        per(tp, tp + fp),
        per(tn, tn + fn),
    )
    return {
        "precision": right,
        "recall": result,
        "specificity": spared,
        "negative_predictive_value": left,
        "fallout": per(fp, fp + tn),
        "youden": result + spared - 1,
        "psep": right + left - 1,
        "geometric_mean": (result * spared) ** 0.5,
        "lift": per(result * sum(w), tp + fp),
        "f1": per(2 * tp, 2 * tp + fp + fn),
        "true_positive": tp,
        "false_positive": fp,
        "true_negative": tn,
        "false_negative": fn,
    }


def classes_by_loops(y: list[Any], z: list[Any], w: list[float]) -> dict[str, float]:
    total = sum(w)
    rows = [row for row in zip(y, z, w, strict=True) if row[2] > 0]
    right = sum(weight for truth, answer, weight in rows if truth == answer) / total
    recalls, chance, f1 = [], 0.0, 0.0
    for label in {label for truth, answer, _ in rows for label in (truth, answer)}:
        true = sum(weight for truth, _, weight in rows if truth == label)
        predicted = sum(weight for _, answer, weight in rows if answer == label)
        both = sum(weight for truth, answer, weight in rows if truth == answer == label)
        chance += true / total * predicted / total
        if true:
            recalls.append(both / true)
        f1 += true / total * 2 * both / (true + predicted)
    one_class = len({label for truth, answer, _ in rows for label in (truth, answer)}) == 1
    return {
        "accuracy": right,
        "zero_one_loss": 1 - right,
        "balanced_accuracy": sum(recalls) / len(recalls),
        "cohen_kappa": math.nan if one_class else (right - chance) / (1 - chance),
        "f1_weighted": f1,
    }


def numbers_by_loops(y: list[float], z: list[float], w: list[float]) -> dict[str, float]:
    rows = [row for row in zip(y, z, w, strict=True) if row[2] > 0]
    total = sum(weight for _, _, weight in rows)

    def average(values: list[float]) -> float:
        return sum(v * weight for v, (_, _, weight) in zip(values, rows, strict=True)) / total

    def share(part: float, whole: float) -> float:
        if abs(part) < 1e-6:
            return 0.0
        return math.inf if abs(whole) < 1e-6 else part / whole

    away = [abs(truth - answer) for truth, answer, _ in rows]
    large = [row for row in rows if abs(row[0]) >= 1e-6]
    of_large = sum(abs(t - a) / abs(t) * weight for t, a, weight in large)
    mean, mean_answer = average([row[0] for row in rows]), average([row[1] for row in rows])
    varies = len({row[0] for row in rows}) > 1
    deviation, variance = (average([abs(row[0] - mean) ** k for row in rows]) for k in (1, 2))

    def beside(error: float, reference: float) -> float:
        if varies:
            return error / reference
        return math.inf if error else math.nan

    answers_move = average([(row[1] - mean_answer) ** 2 for row in rows])
    together = average([(row[0] - mean) * (row[1] - mean_answer) for row in rows])
    is_defined = varies and len({row[1] for row in rows}) > 1
    r = together / math.sqrt(variance * answers_move) if is_defined else math.nan
    squared = average([d * d for d in away])
    return {
        "mean_absolute_error": average(away),
        "mean_squared_error": squared,
        "root_mean_squared_error": math.sqrt(squared),
        "relative_error": of_large / sum(row[2] for row in large) if large else math.nan,
        "relative_error_lenient": average(
            [share(d, max(abs(row[0]), abs(row[1]))) for d, row in zip(away, rows, strict=True)]
        ),
        "relative_error_strict": average(
            [share(d, min(abs(row[0]), abs(row[1]))) for d, row in zip(away, rows, strict=True)]
        ),
        "normalized_absolute_error": beside(average(away), deviation),
        "root_relative_squared_error": math.sqrt(beside(squared, variance)),
        "r2": 1 - squared / variance if varies else math.nan,
        "correlation": r,
        "squared_correlation": r * r,
    }


def shares_by_loops(y: list[int], q: np.ndarray, w: list[float]) -> dict[str, float]:
    rows = [
        (q[i, label], weight) for i, (label, weight) in enumerate(zip(y, w, strict=True)) if weight
    ]
    total = sum(weight for _, weight in rows)

    def average(of: Any) -> float:
        return sum(of(sure) * weight for sure, weight in rows) / total

    return {
        "cross_entropy": average(lambda s: -math.log2(s) if s else math.inf),
        "margin": min(sure for sure, _ in rows),
        "soft_margin_loss": average(lambda s: max(0.0, 1 - s)),
        "logistic_loss": average(lambda s: math.log(1 + math.exp(-s))),
    }


@st.composite
def tables(draw: st.DrawFn, entries: st.SearchStrategy[Any]) -> tuple[list, list, list[float]]:
    n = draw(st.integers(1, 12))
    y, z = (draw(st.lists(entries, min_size=n, max_size=n)) for _ in range(2))
    w = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]), min_size=n, max_size=n))
    assume(any(w))
    return y, z, w


#: Quarters, so that sums are exact and means that agree are equal; some near zero.
QUARTERS = st.integers(-12, 12).map(lambda k: k / 4) | st.sampled_from([1e-7, -2e-7, 1e-5])


@given(tables(st.sampled_from(["no", "yes"])))
def test_binary_metrics_agree_with_loop(table: Any) -> None:
    y, z, w = table
    expected = binary_by_loops(y, z, w, "yes")
    assert set(expected) == set(BINARY)
    for name, value in expected.items():
        assert same(quiet(name, y, z, sample_weight=w, pos_label="yes"), value), name


@given(tables(st.sampled_from("abcd")))
def test_class_metrics_agree_with_loop(table: Any) -> None:
    expected = classes_by_loops(*table)
    assert set(expected) == set(CLASSES)
    for name, value in expected.items():
        assert same(quiet(name, *table[:2], sample_weight=table[2]), value), name


@given(tables(QUARTERS))
def test_number_metrics_agree_with_loop(table: Any) -> None:
    expected = numbers_by_loops(*table)
    assert set(expected) == set(NUMBERS)
    for name, value in expected.items():
        # Squares of the smallest numbers leave few digits of a difference in the loops.
        assert same(quiet(name, *table[:2], sample_weight=table[2]), value, rel=1e-6, abs=1e-9), (
            name
        )


@given(tables(st.integers(0, 2)), st.data())
def test_probability_metrics_agree_with_loop(table: Any, data: Any) -> None:
    y, _, w = table
    parts = data.draw(
        st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=len(y), max_size=len(y))
    )
    q = np.array(parts, dtype=float) + (np.sum(parts, axis=1, keepdims=True) == 0)
    q /= q.sum(axis=1, keepdims=True)
    expected = shares_by_loops(y, q, w)
    assert set(expected) == set(SHARES)
    labels = ["zero", "one", "two"]  # not sorted, like the columns
    for name, value in expected.items():
        got = performance_value(name, [labels[i] for i in y], q, labels=labels, sample_weight=w)
        assert same(got, value), name


# --- scikit-learn --------------------------------------------------------------------------------


@settings(max_examples=30)
@given(tables(st.integers(0, 1)))
def test_class_metrics_equal_named_scikit_learn_functions(table: Any) -> None:
    y, z, w = table
    for name in (*BINARY, *CLASSES):
        theirs = PERFORMANCE_METRICS[name].scikit_learn
        if not theirs:
            continue
        value = quiet(name, y, z, sample_weight=w)
        if math.isnan(value):
            continue  # scikit-learn returns 0 or NaN there, with or without a warning
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about predictions that are no true class
            assert value == pytest.approx(getattr(sk, theirs)(y, z, sample_weight=w)), name


@given(tables(QUARTERS))
def test_number_metrics_equal_named_scikit_learn_functions(table: Any) -> None:
    y, z, w = table
    for name in NUMBERS:
        if theirs := PERFORMANCE_METRICS[name].scikit_learn:
            value = quiet(name, y, z, sample_weight=w)
            if not math.isnan(value):  # R² of a constant
                expected = getattr(sk, theirs)(y, z, sample_weight=w)
                assert value == pytest.approx(expected, rel=1e-6, abs=1e-9), name


@given(tables(QUARTERS))
def test_root_relative_squared_error_follows_from_r2(table: Any) -> None:
    y, z, w = table
    assume(len({truth for truth, weight in zip(y, w, strict=True) if weight}) > 1)
    assume(max(map(abs, y)) > 0.1)
    value = performance_value("root_relative_squared_error", y, z, sample_weight=w)
    assert value**2 == pytest.approx(1 - sk.r2_score(y, z, sample_weight=w), rel=1e-6, abs=1e-9)


def test_cross_entropy_equals_log_loss_of_scikit_learn_in_bits() -> None:
    rng = np.random.default_rng(0)
    q, y, w = rng.dirichlet([1, 2, 3], 60), rng.integers(0, 3, 60), rng.random(60)
    value = performance_value("cross_entropy", y, q, sample_weight=w)
    assert value == pytest.approx(sk.log_loss(y, q, sample_weight=w) / math.log(2))


def test_f1_without_true_positives_is_0_or_undefined() -> None:
    y, z = [1, 1, 0], [0, 0, 1]
    assert performance_value("f1", y, z) == sk.f1_score(y, z) == 0.0
    with pytest.warns(UndefinedMetricWarning, match="f1 is undefined at TP = 0, FP = 1"):
        assert math.isnan(performance_value("f1", y, z, harmonic=True))
    with pytest.warns(UndefinedMetricWarning, match="TP = 0, FP = 0, TN = 2, FN = 0"):
        assert math.isnan(performance_value("f1", [0, 0], [0, 0]))
    assert performance_value("f1", y, [1, 0, 1], harmonic=True) == 0.5


# --- properties ----------------------------------------------------------------------------------


@settings(max_examples=40)
@given(tables(st.sampled_from([0, 1])))
def test_performance_value_weights_equal_repeated_rows(table: Any) -> None:
    y, z, _ = table
    counts = [(i * 7) % 4 for i in range(len(y))]
    assume(any(counts))
    longer_y, longer_z = (np.repeat(side, counts) for side in (y, z))
    for name in (*BINARY, *CLASSES, *NUMBERS):
        weighted = quiet(name, y, z, sample_weight=counts)
        assert same(quiet(name, longer_y, longer_z), weighted), name
    q = np.array([[0.25, 0.75], [0.5, 0.5]])[np.array(z)]
    for name in SHARES:
        weighted = performance_value(name, y, q, labels=[0, 1], sample_weight=counts)
        repeated = performance_value(name, longer_y, np.repeat(q, counts, axis=0), labels=[0, 1])
        assert weighted == pytest.approx(repeated), name


@given(tables(st.sampled_from(["no", "yes"])))
def test_binary_metrics_satisfy_identities(table: Any) -> None:
    y, z, w = table

    def value(name: str, pos_label: str = "yes") -> float:
        return quiet(name, y, z, sample_weight=w, pos_label=pos_label)

    pairs = {
        "recall": "specificity",
        "precision": "negative_predictive_value",
        "true_positive": "true_negative",
        "false_positive": "false_negative",
    }
    for one, other in pairs.items():
        assert same(value(one, "no"), value(other))
    for name in ("youden", "geometric_mean", "psep"):
        assert same(value(name), value(name, "no"))
    assert same(value("fallout"), 1 - value("specificity"))
    outcomes = of_kind("binary")[-4:]
    assert sum(map(value, outcomes)) == pytest.approx(sum(w))
    youden = value("youden")
    if not math.isnan(youden):
        balanced = quiet("balanced_accuracy", y, z, sample_weight=w)
        assert youden == pytest.approx(2 * balanced - 1, abs=1e-12)
        assert value("geometric_mean") <= balanced + 1e-12


@given(tables(QUARTERS), st.sampled_from([2.0, -0.5, 1e-50, 1e50]))
def test_number_metrics_ignore_units(table: Any, unit: float) -> None:
    y, z, w = (np.array(side) for side in table)
    for name in ("normalized_absolute_error", "root_relative_squared_error", "squared_correlation"):
        value = quiet(name, y, z, sample_weight=w)
        assert same(quiet(name, y * unit, z * unit, sample_weight=w), value), name
    assert same(
        quiet("correlation", y, z * unit, sample_weight=w),
        math.copysign(1, unit) * quiet("correlation", y, z, sample_weight=w),
    )
    if abs(unit) == 0.5:
        lenient, strict = (
            performance_value(f"relative_error_{how}", y, z, sample_weight=w, zero=0.0)
            for how in ("lenient", "strict")
        )
        assert lenient <= strict
        assert lenient <= 2.0
        assert same(
            performance_value("relative_error_strict", z, y, sample_weight=w, zero=0.0), strict
        )


@pytest.mark.parametrize("name", [*BINARY, *CLASSES, *NUMBERS])
def test_performance_value_of_perfect_predictions_is_best(name: str) -> None:
    y = [0, 1, 1, 0, 1] if name not in NUMBERS else [0.5, 2.0, -3.0]
    best, value = PERFORMANCE_METRICS[name].best, performance_value(name, y, y)
    data_dependent = {"lift": 5 / 3, "true_positive": 3.0, "true_negative": 2.0}
    assert math.isnan(best) is (name in data_dependent)
    assert value == pytest.approx(data_dependent.get(name, best))
    wrong = [1 - label for label in y] if name not in NUMBERS else [3.0, 1.0, 9.0]
    greater = PERFORMANCE_METRICS[name].greater_is_better
    worse = performance_value(name, y, wrong)
    assert worse < value if greater else worse > value


@pytest.mark.parametrize("name", SHARES)
def test_probability_metrics_are_best_if_sure_and_right(name: str) -> None:
    value = performance_value(name, ["a", "b"], np.eye(2))
    assert value == pytest.approx(PERFORMANCE_METRICS[name].best)
    assert math.copysign(1, value) == 1.0  # no negative zero
    worse = performance_value(name, ["a", "b"], [[0.9, 0.1], [0.0, 1.0]])
    assert worse < value if PERFORMANCE_METRICS[name].greater_is_better else worse > value


@pytest.mark.parametrize("same_number", [0.1, 1 / 3, 1e30, 1e-30, -7.7])
def test_number_metrics_ignore_rounding_of_constant_truth(same_number: float) -> None:
    y = [same_number] * 3
    for name in ("normalized_absolute_error", "root_relative_squared_error"):
        assert performance_value(name, y, [*y[:2], same_number / 2]) == math.inf
        assert performance_value(name, y, y, undefined=-1.0) == -1.0
    for name in ("correlation", "squared_correlation"):
        assert performance_value(name, y, [1.0, 2.0, 3.0], undefined=0.5) == 0.5
        assert performance_value(name, [1.0, 2.0, 3.0], y, undefined=0.5) == 0.5


def test_number_metrics_of_huge_errors_are_infinite() -> None:
    assert performance_value("mean_squared_error", [1e200], [-1e200]) == math.inf
    assert performance_value("mean_absolute_error", [1.7e308], [-1.7e308]) == math.inf


def test_relative_error_treats_rounding_errors_as_zero() -> None:
    y, z = [1e-7, 2.0], [2e-7, 2.0]
    assert performance_value("relative_error", y, z) == 0.0  # the first row is left out
    assert performance_value("relative_error", y, z, zero=0.0) == pytest.approx(0.5)
    assert performance_value("relative_error_strict", y, z) == 0.0
    assert performance_value("relative_error_strict", y, z, zero=0.0) == pytest.approx(0.5)
    assert performance_value("relative_error_strict", [0.0, 1.0], [1.0, 1.0], zero=0.0) == math.inf
    # A value at the limit does not count as zero.
    assert performance_value("relative_error", [1e-6], [2e-6]) == pytest.approx(1.0)


def test_performance_value_ignores_rows_of_weight_zero() -> None:
    with_it = {"sample_weight": [1, 1, 0]}
    assert (
        performance_value("margin", ["a", "b", "a"], [[1, 0], [0.2, 0.8], [0, 1]], **with_it) == 0.8
    )
    # Of three labels, only two have positive weight.
    assert (
        performance_value("specificity", ["n", "y", "?"], ["n", "y", "?"], pos_label="y", **with_it)
        == 1.0
    )
    assert (
        performance_value("balanced_accuracy", ["a", "a", "b"], ["a", "a", "a"], **with_it) == 1.0
    )


# --- labels of any kind --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "z", "pos_label"),
    [
        ([0, 0, 1, 1], [0, 1, 1, 1], None),
        ([-1, -1, 1, 1], [-1, 1, 1, 1], None),
        ([False, False, True, True], np.array([0.0, 1.0, 1.0, 1.0]), None),
        (pd.Series([0, 0, 1, 1], index=list("dcba")), pd.Series([0, 1, 1, 1]), 1),
        (pd.Categorical(["n", "n", "y", "y"]), np.array(["n", "y", "y", "y"]), "y"),
        (pd.Series(["n", "n", "y", "y"], dtype="string"), ["n", "y", "y", "y"], "y"),
        (np.array(["n", "n", 1, 1], dtype=object), np.array(["n", 1, 1, 1], dtype=object), 1),
        ([5, 5, 7, 7], [5, 7, 7, 7], 7),
    ],
)
def test_performance_value_accepts_labels_of_any_type(y: Any, z: Any, pos_label: Any) -> None:
    assert performance_value("specificity", y, z, pos_label=pos_label) == 0.5
    assert performance_value("recall", y, z, pos_label=pos_label) == 1.0
    assert performance_value("accuracy", y, z) == 0.75


def test_performance_value_accepts_rows_of_one_label() -> None:
    assert performance_value("recall", [1, 1], [1, 1]) == 1.0
    assert performance_value("specificity", [0, 0], [0, 0]) == 1.0
    assert performance_value("specificity", ["no"], ["no"], pos_label="yes") == 1.0
    assert performance_value("recall", ["no"], ["no"], pos_label="no") == 1.0


# --- undefined -----------------------------------------------------------------------------------

NEVER = {
    "precision": ([1, 0], [0, 0]),
    "recall": ([0, 0], [1, 0]),
    "specificity": ([1, 1], [1, 0]),
    "negative_predictive_value": ([1, 0], [1, 1]),
    "fallout": ([1, 1], [1, 0]),
    "youden": ([1, 1], [1, 0]),
    "geometric_mean": ([0, 0], [1, 0]),
    "psep": ([1, 0], [1, 1]),
    "lift": ([0, 0], [1, 0]),
    "f1": ([0, 0], [0, 0]),
    "cohen_kappa": ([1, 1], [1, 1]),
    "relative_error": ([0, 0], [1, 0]),
    "normalized_absolute_error": ([3, 3], [3, 3]),
    "root_relative_squared_error": ([3, 3], [3, 3]),
    "r2": ([3, 3], [1, 2]),
    "correlation": ([1, 2], [3, 3]),
    "squared_correlation": ([3, 3], [1, 2]),
}


@pytest.mark.parametrize("name", NEVER)
def test_performance_value_warns_if_undefined(name: str) -> None:
    with pytest.warns(UndefinedMetricWarning, match=rf"^{name} is undefined.*Pass undefined="):
        assert math.isnan(performance_value(name, *NEVER[name]))
    assert performance_value(name, *NEVER[name], undefined=0.25) == 0.25
    with pytest.raises(TypeError, match="undefined must be a number, got None"):
        performance_value(name, *NEVER[name], undefined=None)


@pytest.mark.parametrize("name", sorted({*BINARY, *CLASSES, *NUMBERS} - set(NEVER)))
@given(table=tables(st.integers(0, 1)))
@settings(max_examples=20)
def test_performance_value_of_other_metrics_is_always_defined(name: str, table: Any) -> None:
    value = performance_value(name, *table[:2], sample_weight=table[2])
    assert type(value) is float
    assert not math.isnan(value)


# --- errors --------------------------------------------------------------------------------------

EYE = np.eye(2)
REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    ("youdn", ([1], [1]), {}, ValueError, "no metric of predictions 'youdn'. Did you mean 'you"),
    (3, ([1], [1]), {}, ValueError, "no metric of predictions 3. Known: accuracy"),
    ("voting_conflicts", ([1], [1]), {}, ValueError, r"characteristics.*\['voting_conflicts'\]"),
    ("integrated_brier_score", ([1], [1]), {}, ValueError, "metrics.integrated_brier_score"),
    ("youden", ([1], [1]), {"clip": True}, TypeError, "no option 'clip'. Known: pos_label"),
    ("accuracy", ([1], [1]), {"pos_label": 1}, TypeError, "no option 'pos_label'. Known: none"),
    ("f1", ([1], [1]), {"harmonic": 1}, TypeError, "harmonic must be True or False, got 1"),
    ("correlation", ([1], [1]), {"clip": "r"}, TypeError, "clip must be True or False, got 'r'"),
    ("accuracy", ([], []), {}, ValueError, "at least one row, got 0 rows"),
    ("accuracy", ([1, 0], [1]), {}, ValueError, "same number of rows, got 2 and 1"),
    ("accuracy", ([[1], [0]], [1, 0]), {}, ValueError, r"one label per row, got shape \(2, 1\)"),
    ("accuracy", (["a", None], ["a", "a"]), {}, ValueError, "no missing labels, got None in row 1"),
    ("accuracy", (["a", "b"], ["a", np.nan]), {}, ValueError, "y_pred must have no missing labels"),
    ("accuracy", ([np.float32(0.5), 1.0], [0, 1]), {}, ValueError, r"0\.5\)? is not an integer"),
    ("accuracy", ([np.inf], [1]), {}, ValueError, "inf is not an integer"),
    ("cohen_kappa", (["1", "0"], [1, 0]), {}, ValueError, "labels of one type, got '1' and 1"),
    ("youden", ([0, 1, 2], [0, 1, 1]), {}, ValueError, "two classes, but .* 3 labels: 0, 1, 2"),
    (
        "youden",
        (["n", "y"], ["n", "y"]),
        {},
        ValueError,
        "pos_label must name the positive label .* None with",
    ),
    (
        "youden",
        ([1, 2], [1, 2]),
        {},
        ValueError,
        "pos_label must name the positive label .* labels 1, 2",
    ),
    ("youden", ([0, 1], [0, 1]), {"pos_label": 2}, ValueError, "one of the labels 0, 1, got 2"),
    ("youden", ([0, 0], [0, 0]), {"pos_label": "1"}, ValueError, "one of the labels 0, got '1'"),
    ("accuracy", ([1, 0], [1, 0]), {"sample_weight": [1]}, ValueError, "one number per row"),
    ("accuracy", ([1, 0], [1, 0]), {"sample_weight": [1, -1]}, ValueError, "or more, got -1.0"),
    ("accuracy", ([1, 0], [1, 0]), {"sample_weight": [0, 0]}, ValueError, "number, got 2 z"),
    ("accuracy", ([1, 0], [1, 0]), {"sample_weight": [1e308] * 2}, ValueError, "a finite sum"),
    ("mean_squared_error", ([1.0], [np.nan]), {}, ValueError, "y_pred must be not NaN, got nan"),
    ("mean_squared_error", ([1.0], [-np.inf]), {}, ValueError, "y_pred must be finite, got -inf"),
    ("mean_squared_error", ([np.inf], [1.0]), {}, ValueError, "y_true must be .* got inf"),
    ("mean_squared_error", (["a"], [1.0]), {}, TypeError, "y_true must be a number .* got 'a'"),
    ("mean_squared_error", ([[1.0]], [[1.0]]), {}, ValueError, r"per row, got shape \(1, 1\)"),
    ("relative_error", ([1.0], [1.0]), {"zero": -1}, ValueError, "zero must be >= 0"),
    ("relative_error", ([1.0], [1.0]), {"zero": [1.0]}, TypeError, "zero must be a single number"),
    ("margin", (["a", "b"], [0.5, 0.5]), {}, ValueError, "one column per class"),
    ("margin", (["a", "a"], EYE), {}, ValueError, "must have 1 columns, one for each label of"),
    ("margin", (["a", "b"], EYE), {"labels": "abc"}, ValueError, "one label per row, got shape"),
    ("margin", (["a", "b"], EYE), {"labels": ["a", "a"]}, ValueError, "different from each other"),
    ("margin", (["a", "b"], EYE), {"labels": ["a", "c"]}, ValueError, "label 'b', which is none"),
    ("margin", (["a", "b"], EYE / 2), {}, ValueError, "must sum to 1, but row 0 sums to 0.5"),
    ("margin", (["a", "b"], 2 * EYE - 0.5), {}, ValueError, "y_prob must be >= -0.0001"),
    ("margin", (["a", 1], EYE), {}, ValueError, "labels must name the columns .* cannot be sorted"),
]


@pytest.mark.parametrize(("name", "columns", "options", "kind", "message"), REFUSED)
def test_performance_value_rejects_invalid_arguments(
    name: Any, columns: Any, options: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        performance_value(name, *columns, **options)


# --- the catalog -------------------------------------------------------------------------------

#: The wiki's list of performance metrics.
WIKI = [
    "accuracy",
    "zero_one_loss",
    "balanced_accuracy",
    "cohen_kappa",
    "rules_per_example",
    "voting_conflicts",
    "negative_voting_conflicts",
    "cross_entropy",
    "margin",
    "soft_margin_loss",
    "logistic_loss",
    "precision",
    "recall",
    "specificity",
    "negative_predictive_value",
    "fallout",
    "youden",
    "geometric_mean",
    "psep",
    "lift",
    "f1",
    "false_positive",
    "false_negative",
    "true_positive",
    "true_negative",
    "mean_absolute_error",
    "relative_error",
    "relative_error_lenient",
    "relative_error_strict",
    "normalized_absolute_error",
    "mean_squared_error",
    "root_mean_squared_error",
    "root_relative_squared_error",
    "correlation",
    "squared_correlation",
    "integrated_brier_score",
]


def test_performance_table_lists_all_metrics() -> None:
    table = performance_table()
    assert list(table.index) == list(PERFORMANCE_METRICS)
    assert [name for name in PERFORMANCE_METRICS if name in WIKI] == WIKI
    for name, row in table.iterrows():
        module, _, function = row["function"].rpartition(".")
        metric = PERFORMANCE_METRICS[str(name)]
        if row["owner"] == "scikit-learn":
            assert module == "sklearn.metrics"
            assert callable(getattr(sk, function))
        elif metric.function is not None:
            assert row["owner"] == "skescore"
            assert (module, function) == ("skescore.metrics", "performance_value")
        else:
            # Measures that need rules have their own functions.
            assert module == "skescore.metrics"
            assert callable(getattr(metrics, function))
        assert OUR_NAMES[row["rulekit"]] == name
        assert (
            row["better"] == {True: "greater", False: "smaller", None: ""}[metric.greater_is_better]
        )
    owners = Counter(table["owner"])
    assert owners["scikit-learn"] == sum(bool(m.scikit_learn) for m in PERFORMANCE_METRICS.values())
    assert set(owners) == {"scikit-learn", "skescore", "scikit-survival"}
    assert performance_table("probability").index.tolist() == SHARES
    with pytest.raises(ValueError, match=r"no kind 'binry' of metrics. Did you mean 'binary'"):
        performance_table("binry")


@pytest.mark.parametrize("name", [*BINARY, *CLASSES, *NUMBERS, *SHARES])
def test_performance_functions_are_documented_and_picklable(name: str) -> None:
    function = PERFORMANCE_METRICS[name].function
    assert function is not None
    assert function.__name__ == name
    assert pickle.loads(pickle.dumps(function)) is function
    documentation = inspect.getdoc(function)
    assert documentation
    assert documentation.partition("\n")[0].endswith(".")
    parameters = inspect.signature(function).parameters
    assert [*parameters][:4] == ["y_true", "y_pred", "sample_weight", "undefined"]
    for option in PERFORMANCE_METRICS[name].options:
        assert option in f"{documentation} {performance_value.__doc__}", option


def test_performance_value_accepts_custom_metrics() -> None:
    def over(y_true: Any, y_pred: Any, *, by: float = 0.0, sample_weight: Any, undefined: float):
        return np.average(np.asarray(y_pred) > np.asarray(y_true) + by, weights=sample_weight)

    metric = PerformanceMetric("over", over, "regression", False, 0.0, "share of z > y + by")
    assert metric.options == ("by",)
    assert performance_value(metric, [1, 2], [2, 2.5], by=0.7) == 0.5
    with pytest.raises(TypeError, match=r"'over' has no option 'bye'. Did you mean 'by'"):
        performance_value(metric, [1, 2], [2, 2.5], bye=0.7)


# --- reports -------------------------------------------------------------------------------------


def test_performance_report_describes_two_classes() -> None:
    y, z, w = ["n", "n", "y", "y"], ["n", "y", "y", "y"], [1, 1, 2, 2]
    q = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.3, 0.7]])
    report = performance_report(
        y, z, task="classification", y_prob=q, pos_label="y", sample_weight=w
    )
    assert set(report.index) == {*BINARY, *CLASSES, *SHARES}
    for name, row in report.iterrows():
        pos_label = {"pos_label": "y"} if name in BINARY else {}
        column = q if name in SHARES else z
        assert row["value"] == performance_value(str(name), y, column, sample_weight=w, **pos_label)
        assert row["formula"] == PERFORMANCE_METRICS[str(name)].formula
    flipped = performance_report(
        y, z, task="classification", y_prob=q[:, ::-1], labels=["y", "n"], sample_weight=w
    )
    assert set(flipped.index) == {*CLASSES, *SHARES}  # measures without a positive class
    assert flipped["value"].to_dict() == report.loc[flipped.index, "value"].to_dict()


def test_performance_report_describes_many_classes_and_numbers() -> None:
    report = performance_report([0, 1, 2], [0, 1, 1], task="classification")
    assert report.index.tolist() == CLASSES
    report = performance_report([0, 1, 2], [0, 1, 1], task="regression")
    assert report.index.tolist() == NUMBERS
    assert report.loc["mean_absolute_error", "value"] == pytest.approx(1 / 3)


def test_performance_report_shows_undefined_metrics() -> None:
    report = performance_report([1, 1], [1, 1], task="classification")
    assert report["value"].isna().sum() == 7
    filled = performance_report([1, 1], [1, 1], task="classification", undefined=0.0)
    assert filled["value"].equals(report["value"].fillna(0.0))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"task": "class"},
            ValueError,
            "task must be one of 'classification', 'regression', got 'cla",
        ),
        ({"task": "regression", "pos_label": 1}, ValueError, "pos_label is for task='classificati"),
        ({"task": "regression", "y_prob": EYE}, ValueError, "y_prob is for task="),
        ({"task": "classification", "labels": [0, 1]}, ValueError, "None if y_prob is None"),
        ({"task": "classification", "pos_label": 3}, ValueError, "pos_label must be one of"),
        ({"task": "classification", "undefined": "0"}, TypeError, "undefined must be a number"),
    ],
)
def test_performance_report_rejects_invalid_options(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        performance_report([0, 1], [1, 1], **options)


def test_correlation_accepts_rows_at_mean() -> None:
    """The middle row does not deviate from the mean, but the value is defined."""
    assert performance_value("correlation", [1.0, 2.0, 3.0], [2.0, 4.0, 6.0]) == pytest.approx(1)
    first = performance_report([1.0, 2.0], [1.0, 2.0], task="regression").columns[0]
    assert first == "value"


CONTAINERS = {
    "arrow": pa.array,
    "arrow_chunks": lambda values: pa.chunked_array([values[:1], values[1:]]),
    "arrow_dictionary": lambda values: pa.array(values).dictionary_encode(),
    "polars": pl.Series,
    "pandas_arrow": lambda values: pd.Series(values).convert_dtypes(dtype_backend="pyarrow"),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("labels", [(0, 1), ("no", "yes"), (2**53, 2**53 + 1), (False, True)])
def test_performance_value_accepts_labels_in_all_containers(container: str, labels: Any) -> None:
    y_true, y_pred = ([labels[i] for i in codes] for codes in ([1, 0, 1, 1], [1, 0, 1, 0]))
    pack = CONTAINERS[container]
    options = {"pos_label": labels[1]}
    for name in [*BINARY, *CLASSES]:
        label_options = options if name in BINARY else {}
        expected = quiet(name, y_true, y_pred, **label_options)
        for pair in ((pack(y_true), y_pred), (y_true, pack(y_pred)), (pack(y_true), pack(y_pred))):
            assert same(quiet(name, *pair, **label_options), expected)
    probabilities = [[0.2, 0.8], [0.9, 0.1], [0.3, 0.7], [0.6, 0.4]]
    for name in SHARES:
        value = quiet(name, pack(y_true), probabilities, labels=pack(list(labels)))
        assert same(value, quiet(name, y_true, probabilities, labels=list(labels)))


@pytest.mark.parametrize("container", CONTAINERS)
def test_performance_value_accepts_numbers_in_all_containers(container: str) -> None:
    y_true, y_pred = [1.5, 2.0, -3.0], [1.0, 2.5, -2.0]
    pack = CONTAINERS[container]
    for name in NUMBERS:
        assert same(quiet(name, pack(y_true), pack(y_pred)), quiet(name, y_true, y_pred))


def test_performance_value_rejects_missing_labels_of_arrow() -> None:
    with pytest.raises(ValueError, match="y_true must have no missing labels, got None in row 1"):
        performance_value("accuracy", pa.array([1, None]), [1, 1])


@pytest.mark.parametrize("factor", [1e-320, 1e-170, 1.0, 1e170, 1e305])
def test_kappa_ignores_scale_of_weights(factor: float) -> None:
    value = performance_value("cohen_kappa", [0, 0, 1, 1], [0, 1, 1, 1], sample_weight=[factor] * 4)
    assert value == pytest.approx(0.5)
    assert performance_value("cohen_kappa", [1], [0], sample_weight=[3e306]) == 0.0


SCALE_FREE = (
    "correlation",
    "squared_correlation",
    "root_relative_squared_error",
    "normalized_absolute_error",
)


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e-170, 2.0**-700, 2.0**600, 1e170, 1e300])
@pytest.mark.parametrize("name", SCALE_FREE)
def test_scale_free_metrics_hold_for_extreme_numbers(name: str, size: float) -> None:
    y_true, y_pred = np.array([1.0, 2.0, 3.5]), np.array([3.0, 1.0, 2.5])
    expected = performance_value(name, y_true, y_pred)
    value = performance_value(name, y_true * size, y_pred * size)
    assert value == pytest.approx(expected, rel=1e-3 if size < 1e-307 else 1e-12)
    if np.frexp(size)[0] == 0.5:  # powers of two scale exactly
        assert value == expected


def test_correlation_ignores_scale_of_each_side() -> None:
    y_true, y_pred = np.array([1.0, 2.0, 3.5]), np.array([3.0, 1.0, 2.5])
    expected = performance_value("correlation", y_true, y_pred)
    value = performance_value("correlation", y_true * 1e-170, y_pred * 1e170)
    assert value == pytest.approx(expected)


def test_performance_report_rejects_invalid_undefined() -> None:
    with pytest.raises(TypeError, match="undefined must be a number"):
        performance_report([0, 1], [0, 1], task="classification", undefined="none")


def test_performance_table_names_scorers_except_those_of_survival() -> None:
    table = performance_table()
    is_survival = table["kind"] == "survival"
    assert (table.loc[is_survival, "scorer"] == "").all()
    assert (table.loc[~is_survival, "scorer"] != "").all()
    assert table.loc["relative_error", "scorer"] == "neg_relative_error"
    assert all(isinstance(metric.options, tuple) for metric in PERFORMANCE_METRICS.values())


def test_correlation_is_at_most_1() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        y = rng.normal(size=5)
        assert performance_value("correlation", y, 3.0 * y) <= 1.0
