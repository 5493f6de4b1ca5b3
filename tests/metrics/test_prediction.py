"""Measures of predictions: values computed by hand, and properties on any rows."""

from __future__ import annotations

import math
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from skescore.metrics import (
    PREDICTION_METRICS,
    group_fidelity,
    prediction_loss,
    prediction_performance,
)

# Row 4 has a correct prediction, but no rule.
LABELS = {
    "y_true": ["a", "a", "b", "b", "c"],
    "y_pred": ["a", "b", "b", "b", "a"],
    "covered": [True, True, True, False, True],
    "task": "classification",
}
NUMBERS = {
    "y_true": [1.0, 2.0, 4.0, 8.0],
    "y_pred": [1.0, 3.0, 4.0, 0.0],
    "covered": [True, True, True, False],
    "task": "regression",
}
# Values by hand: (covered rows only, with the other row counted as wrong).
# F1 of a, b, c on covered rows: 1/2, 2/3, 0; penalized, b misses one row: 1/2, 1/2, 0.
PERFORMANCES = {
    "accuracy": (2 / 4, 2 / 5),
    "balanced_accuracy": ((1 / 2 + 1 + 0) / 3, (1 / 2 + 1 / 2 + 0) / 3),
    "f1_weighted": ((2 * 1 / 2 + 1 * 2 / 3 + 0) / 4, (2 * 1 / 2 + 2 * 1 / 2 + 0) / 5),
    "f1_macro": ((1 / 2 + 2 / 3 + 0) / 3, (1 / 2 + 1 / 2 + 0) / 3),
}
# The errors are 0, 1, 0 on covered rows, and 6 where the default 2 answers.
LOSSES = {
    "mean_absolute_error": (1 / 3, 7 / 4),
    "mean_squared_error": (1 / 3, 37 / 4),
    "root_mean_squared_error": (math.sqrt(1 / 3), math.sqrt(37 / 4)),
    "median_absolute_error": (0.0, 0.5),
}
R2 = (1 - 1 / (14 / 3), 1 - 37 / 28.75)


# --- values computed by hand ---------------------------------------------------------------------


def test_prediction_metrics_are_all_computed_by_hand_here() -> None:
    assert set(PREDICTION_METRICS) == {*PERFORMANCES, *LOSSES, "r2"}


@pytest.mark.parametrize("name", PERFORMANCES)
def test_classification_metrics_equal_hand_computed_values(name: str) -> None:
    covered_rows, all_rows = PERFORMANCES[name]
    ignore = {"metric": name, "uncovered": "ignore", **LABELS}
    penalize = {"metric": name, "uncovered": "penalize", **LABELS}
    assert prediction_performance(**ignore) == pytest.approx(covered_rows)
    assert prediction_performance(**penalize) == pytest.approx(all_rows)
    assert prediction_loss(**ignore) == pytest.approx(1 - covered_rows)
    assert prediction_loss(**penalize) == pytest.approx(1 - all_rows)


@pytest.mark.parametrize("name", LOSSES)
def test_regression_losses_equal_hand_computed_values(name: str) -> None:
    covered_rows, all_rows = LOSSES[name]
    ignored = prediction_loss(metric=name, uncovered="ignore", default=2.0, **NUMBERS)
    penalized = prediction_loss(metric=name, uncovered="penalize", default=2.0, **NUMBERS)
    assert ignored == pytest.approx(covered_rows)
    assert penalized == pytest.approx(all_rows)


def test_r2_equals_hand_computed_values() -> None:
    options = {"metric": "r2", "default": 2.0, **NUMBERS}
    assert prediction_performance(**options) == pytest.approx(R2[0])
    assert prediction_performance(uncovered="penalize", **options) == pytest.approx(R2[1])
    assert prediction_loss(**options) == pytest.approx(1 - R2[1])


def test_uncovered_rows_follow_default_policy() -> None:
    performance = prediction_performance(metric="accuracy", **LABELS)
    loss = prediction_loss(metric="accuracy", **LABELS)
    assert (performance, loss) == (2 / 4, 1 - 2 / 5)  # "ignore" and "penalize"


def test_prediction_loss_defaults_to_mean_of_target() -> None:
    options = {"metric": "mean_absolute_error", "uncovered": "penalize", **NUMBERS}
    assert prediction_loss(**options) == pytest.approx((1 + (8 - 15 / 4)) / 4)
    # The weighted mean is 31/6, and the row without a rule has weight 3.
    weighted = prediction_loss(sample_weight=[1, 1, 1, 3], **options)
    assert weighted == pytest.approx((1 + 3 * (8 - 31 / 6)) / 6)


def test_rows_are_covered_by_default() -> None:
    value = prediction_performance([1, 2], [1, 1], metric="accuracy", task="classification")
    assert value == 0.5


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_f1_equals_scikit_learn_if_all_rows_are_covered(average: str) -> None:
    # The predicted c is no true label, which costs the macro average a third.
    truth, answers = ["a", "a", "b"], ["a", "c", "b"]
    ours = prediction_performance(truth, answers, metric=f"f1_{average}", task="classification")
    assert ours == pytest.approx(sk.f1_score(truth, answers, average=average, zero_division=0.0))
    assert ours == pytest.approx({"macro": (2 / 3 + 1 + 0) / 3, "weighted": 7 / 9}[average])


def test_prediction_metrics_return_python_floats() -> None:
    assert type(prediction_performance(metric="accuracy", **LABELS)) is float
    assert type(prediction_loss(metric="mean_absolute_error", **NUMBERS)) is float


# --- properties on any rows ----------------------------------------------------------------------

CASES = [(name, task) for name, metric in PREDICTION_METRICS.items() for task in metric.tasks]


@st.composite
def rows(draw: st.DrawFn, task: str) -> dict[str, Any]:
    n_rows = draw(st.integers(2, 9))
    label = st.sampled_from("abc") if task == "classification" else st.integers(-4, 4).map(float)
    column = st.lists(label, min_size=n_rows, max_size=n_rows)
    flags = st.lists(st.booleans(), min_size=n_rows, max_size=n_rows)
    return {
        "y_true": np.array(draw(column)),
        "y_pred": np.array(draw(column)),
        "covered": np.array(draw(flags)),
        "uncovered": draw(st.sampled_from(["ignore", "penalize"])),
        "default": draw(st.sampled_from([None, 1.5])) if task == "regression" else None,
        "task": task,
    }


def same(one: float, other: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or one == pytest.approx(other, abs=1e-12)


@pytest.mark.parametrize(("name", "task"), CASES)
@settings(max_examples=30)
@given(data=st.data())
def test_prediction_loss_weights_equal_repetitions(
    name: str, task: str, data: st.DataObject
) -> None:
    given_rows = data.draw(rows(task))
    n_rows = len(given_rows["y_true"])
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows)))
    is_counted = (weights > 0) & (given_rows["covered"] | (given_rows["uncovered"] == "penalize"))
    assume(name != "r2" or is_counted.sum() != 1)  # undefined on one row with any weight
    repeated = given_rows | {
        key: np.repeat(given_rows[key], weights) for key in ("y_true", "y_pred", "covered")
    }
    weighted = prediction_loss(metric=name, sample_weight=weights, **given_rows)
    assert same(weighted, prediction_loss(metric=name, **repeated))


@pytest.mark.parametrize(("name", "task"), CASES)
@settings(max_examples=30)
@given(data=st.data())
def test_prediction_loss_ignores_predictions_without_rule(
    name: str, task: str, data: st.DataObject
) -> None:
    given_rows = data.draw(rows(task))
    other = data.draw(rows(task))["y_pred"]
    filled = np.resize(other, len(given_rows["y_pred"]))
    changed = np.where(given_rows["covered"], given_rows["y_pred"], filled)
    before = prediction_loss(metric=name, **given_rows)
    assert same(before, prediction_loss(metric=name, **given_rows | {"y_pred": changed}))


@pytest.mark.parametrize("name", PERFORMANCES)
@settings(max_examples=30)
@given(data=st.data())
def test_prediction_performance_accepts_labels_of_any_type(name: str, data: st.DataObject) -> None:
    given_rows = data.draw(rows("classification"))
    as_text = prediction_performance(metric=name, **given_rows)
    for labels in ([0, 1, 2], [2.5, -1.0, 0.0], [b"x", b"y", b"z"], [(1,), (2,), (3,)]):
        recoded = {}
        for key in ("y_true", "y_pred"):
            codes = ["abc".index(letter) for letter in given_rows[key]]
            recoded[key] = np.empty(len(codes), dtype=object)
            recoded[key][:] = [labels[code] for code in codes]
        assert same(as_text, prediction_performance(metric=name, **given_rows | recoded))


@pytest.mark.parametrize("name", PERFORMANCES)
@settings(max_examples=30)
@given(given_rows=rows("classification"))
def test_prediction_performance_never_gains_by_penalizing(
    name: str, given_rows: dict[str, Any]
) -> None:
    """The penalized value cannot exceed that of correct predictions for uncovered rows."""
    penalized = prediction_performance(metric=name, **given_rows | {"uncovered": "penalize"})
    right = np.where(given_rows["covered"], given_rows["y_pred"], given_rows["y_true"])
    corrected = given_rows | {"y_pred": right, "covered": np.ones(len(right), bool)}
    assert penalized <= prediction_performance(metric=name, **corrected) + 1e-12


# --- callables -----------------------------------------------------------------------------------


def test_callable_metric_gets_wrong_label_for_uncovered_rows() -> None:
    recorded = []

    def agreement(y_true: np.ndarray, y_pred: np.ndarray) -> float:
        recorded.append((y_true.tolist(), y_pred.tolist()))
        return float(np.mean(y_true == y_pred))

    assert prediction_performance(metric=agreement, **LABELS) == 2 / 4
    assert prediction_performance(metric=agreement, uncovered="penalize", **LABELS) == 2 / 5
    assert recorded[0] == (["a", "a", "b", "c"], ["a", "b", "b", "a"])
    truth, answers = recorded[1]
    assert truth == LABELS["y_true"]
    assert answers[3] in {"a", "c"}
    assert [answers[i] for i in (0, 1, 2, 4)] == ["a", "b", "b", "a"]


@settings(max_examples=30)
@given(given_rows=rows("classification"))
def test_callable_metric_equals_named_metric_on_uncovered_rows(
    given_rows: dict[str, Any],
) -> None:
    truth, covered = given_rows["y_true"], given_rows["covered"]
    assume(len({*truth, *given_rows["y_pred"][covered]}) > 1)
    named = prediction_performance(metric="accuracy", **given_rows)
    assert same(named, prediction_performance(metric=sk.accuracy_score, **given_rows))


def test_scikit_learn_metric_counts_uncovered_rows() -> None:
    """Labels must have a type that scikit-learn accepts."""
    y_true, y_pred = np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0])
    covered = np.array([True, True, True, False])
    value = prediction_performance(
        y_true,
        y_pred,
        metric=sk.matthews_corrcoef,
        task="classification",
        covered=covered,
        uncovered="penalize",
    )
    assert value == pytest.approx(sk.matthews_corrcoef(y_true, [1, 0, 0, 1]))


def test_callable_metric_gets_weights_only_if_passed() -> None:
    def count(y_true: Any, y_pred: Any, **options: Any) -> float:
        return float(sum(options["sample_weight"])) if options else -1.0

    assert prediction_loss(metric=count, uncovered="ignore", **NUMBERS) == -1.0
    weights = [1.0, 2.0, 0.0, 9.0]
    value = prediction_loss(metric=count, uncovered="ignore", sample_weight=weights, **NUMBERS)
    assert value == 3.0  # only covered rows
    assert prediction_loss(metric=count, sample_weight=weights, **NUMBERS) == 12.0


def test_callable_metric_is_used_as_loss_unchanged() -> None:
    value = prediction_loss(metric=lambda y_true, y_pred: 0.75, **LABELS)
    assert value == 0.75  # not 1 - 0.75, as for a named performance


def test_callable_metric_needs_two_labels_for_uncovered_rows() -> None:
    with pytest.raises(ValueError, match=r"there is no wrong label .* uncovered='ignore'"):
        prediction_performance(
            ["a", "a"],
            ["a", "a"],
            metric=sk.accuracy_score,
            task="classification",
            covered=[True, False],
            uncovered="penalize",
        )


# --- undefined -----------------------------------------------------------------------------------


def test_prediction_performance_of_no_rows_is_nan() -> None:
    nobody = LABELS | {"covered": [False] * 5}
    assert math.isnan(prediction_performance(metric="accuracy", **nobody))
    assert prediction_loss(metric="accuracy", **nobody) == 1.0  # all wrong
    unweighted = NUMBERS | {"sample_weight": [0, 0, 0, 1], "uncovered": "ignore"}
    assert math.isnan(prediction_loss(metric="mean_absolute_error", **unweighted))


@pytest.mark.parametrize("weights", [None, [1, 2, 1, 1, 1, 3, 1]])
def test_r2_of_equal_numbers_ignores_rounding(weights: Any) -> None:
    """The mean of seven times 2.13 differs from 2.13 in the last bit."""
    y = np.full(7, 2.13)
    for predicted, value in ((y, 1.0), (y + 0.5, 0.0)):
        performance = prediction_performance(
            y, predicted, metric="r2", task="regression", sample_weight=weights
        )
        assert performance == value


def test_r2_of_one_row_is_nan_without_warning() -> None:
    one = {"metric": "r2", "task": "regression"}
    assert math.isnan(prediction_performance([1.0], [1.0], **one))
    assert math.isnan(prediction_loss([1.0, 2.0], [1.0, 2.0], sample_weight=[5, 0], **one))


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "task", "message"),
    [
        ("acuracy", "classification", "'acuracy' for classification. Did you mean 'accuracy'"),
        ("r2", "classification", "'r2' for classification"),
        ("accuracy", "regression", "'accuracy' for regression. Known: .*r2"),
    ],
)
def test_prediction_performance_rejects_unknown_metrics(name: str, task: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prediction_performance([1, 2], [1, 2], metric=name, task=task)


def test_metric_name_may_have_prefix_neg() -> None:
    with_it, without = (
        prediction_loss(metric=f"{sign}mean_absolute_error", **NUMBERS) for sign in ("neg_", "")
    )
    assert with_it == without


@pytest.mark.parametrize("name", LOSSES)
def test_prediction_performance_rejects_losses(name: str) -> None:
    with pytest.raises(ValueError, match=f"performance={name!r} is a loss.*r2"):
        prediction_performance(metric=name, **NUMBERS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_pred": ["a"]}, r"one entry per row, got shapes \(5,\), \(1,\) and \(5,\)"),
        ({"covered": [True]}, "one entry per row"),
        ({"y_true": [["a"]] * 5}, "one entry per row"),
        ({"sample_weight": [1.0]}, r"shape \(5,\), got shape \(1,\)"),
        ({"sample_weight": [1, 1, -2, 1, 1]}, r"zero or more, got -2\.0 for row 2"),
        ({"sample_weight": [1, 1, 1, math.nan, 1]}, "finite .* got nan for row 3"),
        ({"uncovered": "skip"}, "'ignore', 'penalize', got 'skip'"),
        ({"task": "ranking"}, "'classification', 'regression', got 'ranking'"),
    ],
)
def test_prediction_loss_rejects_invalid_input(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prediction_loss(**{"metric": sk.zero_one_loss} | LABELS | changes)


def test_prediction_loss_accepts_weights_in_any_container() -> None:
    for weights in ([1, 2], (1, 2), np.array([1, 2]), pd.Series([1, 2], index=[7, 8])):
        loss = prediction_loss(
            ["a", "b"], ["a", "a"], metric="accuracy", task="classification", sample_weight=weights
        )
        assert loss == pytest.approx(2 / 3)


def test_r2_fills_uncovered_rows_with_constant_target() -> None:
    y, covered = np.full(7, 2.13), [True] * 6 + [False]
    options = {"metric": "r2", "task": "regression", "uncovered": "penalize"}
    assert prediction_performance(y, y, covered=covered, **options) == 1.0


# --- large integers ------------------------------------------------------------------------------

LARGE_LABELS = [
    ([2**53 + 1, 0.5], [2**53, 0.5]),
    ([1, 2**64 - 1], [1, 2**64 - 2]),
    ([-1, 2**63 + 1], [-1, 2**63]),
    ([2**70 + 1, 1], [2**70, 1]),
    ([1.5, 2.0**53], [1.5, 2**53 + 1]),
]


@pytest.mark.parametrize(("y_true", "y_pred"), LARGE_LABELS)
@pytest.mark.parametrize("container", [list, tuple, pd.Series])
def test_prediction_performance_compares_large_integers_exactly(
    container: Any, y_true: Any, y_pred: Any
) -> None:
    if container is pd.Series:
        true, pred = (pd.Series(values, dtype=object) for values in (y_true, y_pred))
    else:
        true, pred = container(y_true), container(y_pred)
    options = {"metric": "accuracy", "task": "classification"}
    assert prediction_performance(true, pred, **options) == 0.5
    assert prediction_performance(true, true, **options) == 1.0
    assert group_fidelity(true, pred, task="classification").overall == 0.5


def test_prediction_performance_compares_arrow_integers_exactly() -> None:
    options = {"metric": "accuracy", "task": "classification", "covered": [True, False]}
    predicted = pa.array([2**53, None])
    assert prediction_performance([2**53 + 1, 1], predicted, **options) == 0.0
    assert prediction_performance([2**53, 1], predicted, **options) == 1.0


def test_prediction_loss_reads_floats_of_lists() -> None:
    numbers = [1e300, -(2.0**60), 0.5]
    options = {"metric": "mean_absolute_error", "task": "regression"}
    assert prediction_loss(numbers, [*numbers[:2], 2**60], **options) == (2.0**60 - 0.5) / 3


# --- extreme numbers -----------------------------------------------------------------------------


def exact_r2(y_true: Any, y_pred: Any, weights: Any) -> Fraction:
    true, pred, weights = ([Fraction(v) for v in side] for side in (y_true, y_pred, weights))
    mean = sum(w * t for w, t in zip(weights, true, strict=True)) / sum(weights)
    residual = sum(w * (t - p) ** 2 for w, t, p in zip(weights, true, pred, strict=True))
    return 1 - residual / sum(w * (t - mean) ** 2 for w, t in zip(weights, true, strict=True))


def exact_rmse(y_true: Any, y_pred: Any, weights: Any) -> float:
    true, pred, weights = ([Fraction(v) for v in side] for side in (y_true, y_pred, weights))
    errors = [w * (t - p) ** 2 for w, t, p in zip(weights, true, pred, strict=True)]
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 50, 10000, -10000
        square = sum(errors) / sum(weights)
        return float((Decimal(square.numerator) / Decimal(square.denominator)).sqrt())


SIZES = [1e-300, 1e-200, 1e-162, 1e-158, 1e-150, 1.0, 1e150, 1e155, 1e200, 1e307]


@pytest.mark.parametrize("unit", [1e-300, 1e-20, 1.0, 1e200])
@pytest.mark.parametrize("size", SIZES)
def test_r2_and_rmse_of_extreme_numbers_are_exact(size: float, unit: float) -> None:
    y_true, y_pred = [1.0, 2.0, 3.5, -4.0], [3.0, 1.0, 2.0, -1.0]
    true, pred = ([size * v for v in side] for side in (y_true, y_pred))
    weights = [unit * w for w in (1.0, 2.0, 1.0, 3.0)]
    options = {"task": "regression"}
    for given_weights, used in ((weights, weights), (None, [1.0] * 4)):
        value = prediction_performance(
            true, pred, metric="r2", sample_weight=given_weights, **options
        )
        assert value == pytest.approx(float(exact_r2(true, pred, used)), rel=1e-12)
        value = prediction_loss(
            true,
            pred,
            metric="root_mean_squared_error",
            sample_weight=given_weights,
            **options,
        )
        assert value == pytest.approx(exact_rmse(true, pred, used), rel=1e-12)


def test_r2_handles_errors_of_another_size() -> None:
    options = {"metric": "r2", "task": "regression"}
    true = [1e-170, 2e-170, 3e-170]
    assert prediction_performance(true, [v * (1 + 1e-9) for v in true], **options) == 1.0
    assert prediction_performance(true, [1.0, 2.0, 3.0], **options) == -sys.float_info.max
    assert prediction_performance([1e150, 2e150, 3e150], true, **options) == pytest.approx(-6.0)
    assert prediction_performance([1e-170] * 3, true, **options) == 0.0
    assert prediction_performance([1e-170] * 3, [1e-170] * 3, **options) == 1.0


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=2, max_size=9))
def test_r2_of_ordinary_numbers_keeps_all_digits(pairs: Any) -> None:
    true, pred = np.array(pairs).T
    errors, deviations = (true - pred) ** 2, (true - true.mean()) ** 2
    assume(min(errors.sum(), deviations.sum()) > 1e-300 and true.min() < true.max())
    value = prediction_performance(true, pred, metric="r2", task="regression")
    assert value == 1.0 - errors.sum() / deviations.sum()


def test_f1_macro_ignores_classes_that_only_uncovered_rows_predict() -> None:
    value = prediction_performance(
        ["a", "b", "b"],
        ["a", "c", "d"],
        covered=[True, False, True],
        metric="f1_macro",
        task="classification",
        uncovered="penalize",
    )
    assert value == pytest.approx(1 / 3)
