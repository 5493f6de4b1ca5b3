"""Fast measures of predictions compared with functions of scikit-learn."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from skescore.metrics import PREDICTION_METRICS, prediction_loss, prediction_performance

CLASSES = [name for name, metric in PREDICTION_METRICS.items() if "classification" in metric.tasks]
NUMBERS = [name for name, metric in PREDICTION_METRICS.items() if "regression" in metric.tasks]
LABELS: dict[str, list[Any]] = {
    "text": ["b", "a", "ä c", ""],
    "whole": [3, -1, 2**60 + 1, 2**60],
    "flags": [True, False],
    "floats": [0.5, -1.0, 2.0**60],
    "mixed": ["1", 1, 1.5, "b"],
}


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about predictions that are no true class
        yield


def f1_by_scikit_learn(average: str, y_true: np.ndarray, y_pred: np.ndarray, **weights: Any) -> Any:
    labels = np.setdiff1d(np.union1d(y_true, y_pred), [NO_RULE])  # NO_RULE is not a class
    return sk.f1_score(y_true, y_pred, labels=labels, average=average, zero_division=0.0, **weights)


def recall_by_scikit_learn(y_true: np.ndarray, y_pred: np.ndarray, **weights: Any) -> Any:
    return sk.recall_score(y_true, y_pred, labels=np.unique(y_true), average="macro", **weights)


NO_RULE = -1
BY_SCIKIT_LEARN = {
    "accuracy": sk.accuracy_score,
    "balanced_accuracy": recall_by_scikit_learn,
    "f1_weighted": partial(f1_by_scikit_learn, "weighted"),
    "f1_macro": partial(f1_by_scikit_learn, "macro"),
    "r2": sk.r2_score,
    "mean_absolute_error": sk.mean_absolute_error,
    "mean_squared_error": sk.mean_squared_error,
    "root_mean_squared_error": sk.root_mean_squared_error,
    "median_absolute_error": sk.median_absolute_error,
}


@st.composite
def weighted(draw: Any, n_rows: int) -> np.ndarray | None:
    kind = draw(st.sampled_from(["none", "whole", "real"]))
    if kind == "none":
        return None
    one = st.integers(1, 4) if kind == "whole" else st.floats(1e-3, 1e3)
    return np.array(draw(st.lists(one, min_size=n_rows, max_size=n_rows)), dtype=float)


@given(data=st.data(), n_rows=st.integers(1, 30), n_classes=st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_kernels_of_classes_equal_scikit_learn(
    data: st.DataObject, n_rows: int, n_classes: int
) -> None:
    # Some class indices may be unused, like those of labels that occur only in uncovered rows.
    code = st.integers(0, n_classes - 1)
    rows = data.draw(
        st.lists(st.tuples(code, code | st.just(NO_RULE)), min_size=n_rows, max_size=n_rows)
    )
    truth, answers = np.array(rows).T
    weights = data.draw(weighted(n_rows))
    for name in CLASSES:
        metric = PREDICTION_METRICS[name]
        expected = BY_SCIKIT_LEARN[name](truth, answers, sample_weight=weights)
        assert metric.function(truth, answers, weights) == pytest.approx(expected, abs=1e-14), name


@given(data=st.data(), n_rows=st.integers(2, 30), scale=st.sampled_from([1e-8, 1.0, 1e8]))
@settings(max_examples=80, deadline=None)
def test_kernels_of_numbers_equal_scikit_learn(
    data: st.DataObject, n_rows: int, scale: float
) -> None:
    # Squares of smaller numbers underflow in scikit-learn.
    number = st.integers(-3, 3).map(float) | st.floats(-1, 1).filter(lambda x: abs(x) > 1e-100)
    rows = data.draw(st.lists(st.tuples(number, number), min_size=n_rows, max_size=n_rows))
    truth, answers = np.array(rows).T * scale
    weights = data.draw(weighted(n_rows))
    for name in NUMBERS:
        expected = BY_SCIKIT_LEARN[name](truth, answers, sample_weight=weights)
        quick = PREDICTION_METRICS[name].function(truth, answers, weights)
        if name == "r2" and np.ptp(truth) == 0:  # scikit-learn divides by the noise of the mean
            assert quick in (0.0, 1.0)
            continue
        assert quick == pytest.approx(expected, rel=1e-12), name


@given(data=st.data(), n_rows=st.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_kernels_of_sums_equal_kernels_of_rows(data: st.DataObject, n_rows: int) -> None:
    """Two sets of predictions at once equal the same sets one after the other."""
    code = st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows).map(np.array)
    y_true, *both = data.draw(code), data.draw(code), data.draw(code)
    counts = np.array(
        [
            [
                [np.sum((y == k) & (y_true == k)), np.sum(y == k), np.sum(y_true == k)]
                for k in range(3)
            ]
            for y in both
        ]
    )
    numbers = y_true - y_true.mean()
    errors = [np.abs(y - y_true) for y in both]
    sums = np.array(
        [
            [n_rows, numbers.sum(), (numbers**2).sum(), error.sum(), (error**2).sum()]
            for error in errors
        ]
    )
    for name, metric in PREDICTION_METRICS.items():
        if metric.of_sums is not None:
            axes = np.moveaxis(counts, -1, 0) if name in CLASSES else sums.T
            expected = [metric.function(y_true, y, None) for y in both]
            np.testing.assert_allclose(metric.of_sums(*axes), expected, atol=1e-12, err_msg=name)
    assert {name for name in PREDICTION_METRICS if PREDICTION_METRICS[name].of_sums is None} == {
        "median_absolute_error"
    }


@pytest.mark.parametrize(
    ("truth", "answers", "expected"),
    [([2.0, 2.0], [2.0, 2.0], 1.0), ([2.0, 2.0], [2.0, 3.0], 0.0), ([1.0, 2.0], [1.0, 2.0], 1.0)],
)
def test_r2_of_constant_truth_equals_scikit_learn(
    truth: list[float], answers: list[float], expected: float
) -> None:
    quick = prediction_performance(truth, answers, metric="r2", task="regression")
    assert quick == expected == sk.r2_score(truth, answers)


def test_prediction_loss_rejects_invalid_numbers() -> None:
    wrong = {
        "finite numbers, got nan in row 1": [1.0, math.nan],
        "finite numbers, got inf in row 1": [1.0, math.inf],
        "must hold numbers in regression": np.array([1.0, "x"], dtype=object),
    }
    for message, y_pred in wrong.items():
        with pytest.raises(ValueError, match=message):
            prediction_loss([1.0, 2.0], y_pred, metric="mean_absolute_error", task="regression")


def test_prediction_loss_accepts_numbers_of_other_types() -> None:
    for dtype in (np.float32, np.int8, bool, object):
        value = prediction_loss(
            np.array([1, 0], dtype=dtype),
            np.array([1, 1], dtype=dtype),
            metric="mean_squared_error",
            task="regression",
        )
        assert value == 0.5


@pytest.mark.parametrize("kind", LABELS)
@given(data=st.data(), n_rows=st.integers(1, 20))
@settings(max_examples=30, deadline=None)
def test_prediction_performance_distinguishes_labels_of_any_type(
    kind: str, data: st.DataObject, n_rows: int
) -> None:
    label = st.sampled_from(LABELS[kind])
    rows = data.draw(st.lists(st.tuples(label, label), min_size=n_rows, max_size=n_rows))
    dtype = object if kind == "mixed" else None
    truth, answers = (np.array(column, dtype=dtype) for column in zip(*rows, strict=True))
    codes, _ = pd.factorize(np.concatenate([truth.astype(object), answers.astype(object)]))
    for name in CLASSES:
        performance = prediction_performance(truth, answers, metric=name, task="classification")
        expected = PREDICTION_METRICS[name].function(codes[:n_rows], codes[n_rows:], None)
        assert performance == expected, name


@pytest.mark.parametrize("missing", [math.nan, None, pd.NA])
def test_prediction_performance_rejects_missing_labels(missing: object) -> None:
    labels = np.array(["a", missing, "b"], dtype=object)
    sound = np.array(["a", "a", "b"], dtype=object)
    options: dict[str, Any] = {"metric": "f1_weighted", "task": "classification"}
    with pytest.raises(ValueError, match="y_true must hold a label in every row, but row 1 has"):
        prediction_performance(labels, sound, **options)
    numbers = np.array([1.0, math.nan, 2.0])
    with pytest.raises(ValueError, match="y_true must hold a label in every row, but row 1 has"):
        prediction_performance(numbers, numbers.copy(), **options)


def test_prediction_performance_distinguishes_dates() -> None:
    days = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")
    options: dict[str, Any] = {"metric": "accuracy", "task": "classification"}
    assert prediction_performance(days, days.copy(), **options) == 1.0
    assert prediction_performance(days, days[::-1].copy(), **options) == 0.0
