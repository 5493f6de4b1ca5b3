"""Metrics of predictions by rules, from which scores of rule sets are computed.

They equal scikit-learn's metrics, but handle uncovered rows. They are implemented here because a
search computes them thousands of times on few rows, where scikit-learn's checks dominate.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import median_absolute_error as sk_median_absolute_error

from skescore._names import PREDICTION_METRIC_NAMES
from skescore._rows import deviations_from_mean, scale_to_unit, scale_weights, weighted_mean
from skescore._scores import UNCOVERED
from skescore._text import did_you_mean
from skescore._validation import (
    TASKS,
    check_choice,
    finite_numbers,
    one_dimension,
    row_weights,
    whole_labels,
)

__all__ = ["PREDICTION_METRICS", "PredictionMetric", "prediction_loss", "prediction_performance"]

Weights = np.ndarray | None

#: Below this value, sums of squares have lost digits.
_MIN_SQUARES = sys.float_info.min

#: Code of the prediction of an uncovered row; it is wrong and no class.
NO_RULE = -1


def _mean(values: np.ndarray, weights: Weights) -> float:
    if weights is None:
        return float(values.mean())
    return float((values * weights).sum() / weights.sum())


def accuracy(y_true: np.ndarray, y_pred: np.ndarray, weights: Weights) -> float:
    """Compute the share of the rows that are predicted correctly."""
    return _mean(y_true == y_pred, weights)


def _counts(
    y_true: np.ndarray, y_pred: np.ndarray, weights: Weights
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the correct rows, the predicted rows and the true rows of every class that occurs."""
    n_codes = int(max(y_true.max(), y_pred.max())) + 1
    correct, has_rule = y_true == y_pred, y_pred != NO_RULE
    hits, predicted, actual = (
        np.bincount(codes[rows], None if weights is None else weights[rows], n_codes)
        for codes, rows in ((y_true, correct), (y_pred, has_rule), (y_true, slice(None)))
    )
    occurs = (actual > 0) | (predicted > 0)
    hits, predicted, actual = hits[occurs], predicted[occurs], actual[occurs]
    # Add the errors as scikit-learn does, so that sums of weights are rounded equally.
    return hits, hits + (predicted - hits), hits + (actual - hits)


def f1_weighted(y_true: np.ndarray, y_pred: np.ndarray, weights: Weights) -> float:
    """Compute the mean F1 of the classes, weighted by their rows."""
    return float(_f1_weighted_of_counts(*_counts(y_true, y_pred, weights)))


def f1_macro(y_true: np.ndarray, y_pred: np.ndarray, weights: Weights) -> float:
    """Compute the mean F1 of the classes that occur."""
    return float(_f1_macro_of_counts(*_counts(y_true, y_pred, weights)))


def balanced_accuracy(y_true: np.ndarray, y_pred: np.ndarray, weights: Weights) -> float:
    """Compute the mean recall of the classes of y_true."""
    counts = _counts(y_true, y_pred, weights)
    occurs = counts[2] > 0
    return float(_balanced_accuracy_of_counts(*(count[occurs] for count in counts)))


def r2(y_true: np.ndarray, y_pred: np.ndarray, weights: Weights) -> float:
    """Compute the share of the variance that the predictions explain; NaN for a single row."""
    if len(y_true) < 2:
        return math.nan
    with np.errstate(over="ignore", invalid="ignore"):
        errors, deviations = (y_true - y_pred) ** 2, deviations_from_mean(y_true, weights) ** 2
        if weights is not None:
            errors, deviations = weights * errors, weights * deviations
        residual, total = float(errors.sum()), float(deviations.sum())
    smallest = _MIN_SQUARES if weights is None else _MIN_SQUARES * max(1.0, float(weights.sum()))
    if not (smallest <= residual < math.inf and smallest <= total < math.inf):
        return _r2_of_extreme_numbers(y_true, y_pred, weights)
    return float(1.0 - np.divide(residual, total))


def _r2_of_extreme_numbers(y_true: np.ndarray, y_pred: np.ndarray, weights: Weights) -> float:
    """Compute R² if sums of squares vanish, or are too small or too large for floats."""
    weights = np.ones(len(y_true)) if weights is None else scale_weights(weights)
    both, both_unit = scale_to_unit(np.stack([y_true, y_pred]))
    errors, error_unit = scale_to_unit(both[0] - both[1])
    true, true_unit = scale_to_unit(y_true)
    deviations, unit = scale_to_unit(deviations_from_mean(true, weights))
    residual, total = float((weights * errors**2).sum()), float((weights * deviations**2).sum())
    if residual == 0.0:
        return 1.0
    # An infinite value would make means over folds useless.
    if total == 0.0:
        return 0.0
    with np.errstate(over="ignore"):
        exponent = 2 * (both_unit + error_unit - true_unit - unit)
        ratio = float(np.ldexp(residual / total, exponent))
    return max(1.0 - ratio, -sys.float_info.max)


def mean_absolute_error(y_true: np.ndarray, y_pred: np.ndarray, weights: Weights) -> float:
    """Compute the mean absolute error."""
    return _mean(np.abs(y_pred - y_true), weights)


def mean_squared_error(y_true: np.ndarray, y_pred: np.ndarray, weights: Weights) -> float:
    """Compute the mean squared error."""
    return _mean((y_true - y_pred) ** 2, weights)


def root_mean_squared_error(y_true: np.ndarray, y_pred: np.ndarray, weights: Weights) -> float:
    """Compute the root of the mean squared error."""
    with np.errstate(over="ignore", invalid="ignore"):
        squared = mean_squared_error(y_true, y_pred, weights)
    if _MIN_SQUARES <= squared < math.inf or (y_true == y_pred).all():
        return math.sqrt(squared)
    both, both_unit = scale_to_unit(np.stack([y_true, y_pred]))
    errors, unit = scale_to_unit(both[0] - both[1])
    weights = None if weights is None else scale_weights(weights)
    with np.errstate(over="ignore"):
        return float(np.ldexp(math.sqrt(_mean(errors**2, weights)), both_unit + unit))


def median_absolute_error(y_true: np.ndarray, y_pred: np.ndarray, weights: Weights) -> float:
    """Compute the median absolute error."""
    return float(sk_median_absolute_error(y_true, y_pred, sample_weight=weights))


def _accuracy_of_counts(hits: Any, predicted: Any, actual: Any) -> Any:
    return hits.sum(axis=-1) / actual.sum(axis=-1)


def _balanced_accuracy_of_counts(hits: Any, predicted: Any, actual: Any) -> Any:
    recall = np.where(actual > 0, hits / actual, 0.0)
    return recall.sum(axis=-1) / (actual > 0).sum(axis=-1)


def _f1_of_counts(hits: Any, predicted: Any, actual: Any) -> Any:
    return np.where(actual + predicted > 0, 2.0 * hits / (actual + predicted), 0.0)


def _f1_weighted_of_counts(hits: Any, predicted: Any, actual: Any) -> Any:
    return (_f1_of_counts(hits, predicted, actual) * actual).sum(axis=-1) / actual.sum(axis=-1)


def _f1_macro_of_counts(hits: Any, predicted: Any, actual: Any) -> Any:
    n_classes = (actual + predicted > 0).sum(axis=-1)
    return _f1_of_counts(hits, predicted, actual).sum(axis=-1) / n_classes


def _r2_of_sums(n_rows: Any, deviation: Any, squares: Any, absolute: Any, squared: Any) -> Any:
    n_rows = np.where(np.round(n_rows) >= 2, n_rows, np.nan)
    total = squares - deviation * (deviation / n_rows)
    perfect = np.where(squared > 0, 0.0, 1.0) + 0 * n_rows
    return np.where(total > 0, 1 - squared / total, perfect)


def _mean_absolute_error_of_sums(
    n_rows: Any, deviation: Any, squares: Any, absolute: Any, squared: Any
) -> Any:
    return absolute / n_rows


def _mean_squared_error_of_sums(
    n_rows: Any, deviation: Any, squares: Any, absolute: Any, squared: Any
) -> Any:
    return squared / n_rows


def _root_mean_squared_error_of_sums(
    n_rows: Any, deviation: Any, squares: Any, absolute: Any, squared: Any
) -> Any:
    return np.sqrt(squared / n_rows)


class PredictionMetric(NamedTuple):
    """A metric of predictions, from which scores of rule sets are computed.

    Parameters
    ----------
    function : callable
        ``function(y_true, y_pred, weights)`` of checked arrays: codes of labels, -1 for uncovered
        rows, or finite floats; `weights` are positive or None.
    greater_is_better : bool
        True for a performance whose best value is 1, False for a loss whose best value is 0.
    tasks : tuple of str
        Tasks that the metric supports.
    of_sums : callable, optional
        The same metric from sums, vectorized over many sets of predictions; NaN without rows. For
        classes ``of_sums(hits, predicted, actual)``, numbers of rows with the classes on the last
        axis. For numbers ``of_sums(n_rows, deviation, squares, absolute, squared)``, sums of the
        deviations from any center, of their squares, and of the absolute and squared errors.
    """

    function: Callable[[np.ndarray, np.ndarray, Weights], float]
    greater_is_better: bool
    tasks: tuple[str, ...]
    of_sums: Callable[..., np.ndarray] | None = None


#: Functions of rows and of sums by metric; tasks and directions are in
#: :data:`skescore._names.PREDICTION_METRIC_NAMES`.
_FUNCTIONS: dict[str, tuple[Callable[..., float], Callable[..., Any] | None]] = {
    "accuracy": (accuracy, _accuracy_of_counts),
    "balanced_accuracy": (balanced_accuracy, _balanced_accuracy_of_counts),
    "f1_weighted": (f1_weighted, _f1_weighted_of_counts),
    "f1_macro": (f1_macro, _f1_macro_of_counts),
    "r2": (r2, _r2_of_sums),
    "mean_absolute_error": (mean_absolute_error, _mean_absolute_error_of_sums),
    "mean_squared_error": (mean_squared_error, _mean_squared_error_of_sums),
    "root_mean_squared_error": (root_mean_squared_error, _root_mean_squared_error_of_sums),
    "median_absolute_error": (median_absolute_error, None),
}
#: Metrics of predictions for scores of rule sets. They handle uncovered rows, and most of them can
#: be computed from sums. :data:`PERFORMANCE_METRICS` is the catalog for predictions of any model.
PREDICTION_METRICS: dict[str, PredictionMetric] = {
    name: PredictionMetric(
        _FUNCTIONS[name][0], metric.greater_is_better, (metric.task,), _FUNCTIONS[name][1]
    )
    for name, metric in PREDICTION_METRIC_NAMES.items()
}


def _find_metric(name: str, task: str) -> PredictionMetric:
    """Find a metric by its name, with or without the prefix ``neg_``."""
    metric = PREDICTION_METRICS.get(name.removeprefix("neg_"))
    if metric is None or task not in metric.tasks:
        names = [key for key, metric in PREDICTION_METRICS.items() if task in metric.tasks]
        raise ValueError(f"There is no metric {name!r} for {task}. {did_you_mean(name, names)}")
    return metric


def common_codes(y_true: np.ndarray, y_pred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return integer codes of labels of any type; equal labels have the same code."""
    if y_true.dtype.kind == y_pred.dtype.kind == "i":
        coded = pd.factorize(np.concatenate([y_true, y_pred]))[0]
        return coded[: len(y_true)], coded[len(y_true) :]
    labels = [*y_true.tolist(), *y_pred.tolist()]
    codes: dict[Any, int] = {}
    coded = np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.intp)
    if not all(isinstance(label, str | int | float) and label == label for label in codes):
        # A missing label does not equal itself; pandas treats all missing labels as one.
        objects = np.fromiter(labels, dtype=object, count=len(labels))
        coded = pd.factorize(objects, use_na_sentinel=False)[0]
    return coded[: len(y_true)], coded[len(y_true) :]


def prediction_performance(
    y_true: Any,
    y_pred: Any,
    *,
    metric: str | Callable[..., float],
    task: str,
    covered: Any = None,
    uncovered: str = "ignore",
    default: float | None = None,
    sample_weight: Any = None,
) -> float:
    """Measure the quality of predictions by rules; greater is better.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        True and predicted labels or numbers.
    metric : str or callable
        A performance of :data:`PREDICTION_METRICS`, or ``metric(y_true, y_pred)``, which also gets
        ``sample_weight`` if there are weights.
    task : {"classification", "regression"}
        Task of the rules.
    covered : array-like of bool, shape (n_rows,), optional
        Rows that at least one rule covers; all by default.
    uncovered : {"ignore", "penalize"}, default="ignore"
        ``"ignore"`` omits the uncovered rows. ``"penalize"`` counts them as wrong (classification)
        or predicts `default` for them (regression).
    default : float, optional
        Prediction of uncovered rows in regression; by default the mean of `y_true`.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.

    Returns
    -------
    float
        The performance; NaN if no row is left.

    Raises
    ------
    ValueError
        If the metric is a loss, or is unknown.

    Examples
    --------
    >>> options = {"metric": "accuracy", "task": "classification", "covered": [True, True, False]}
    >>> prediction_performance(["a", "b", "b"], ["a", "a", "b"], **options)
    0.5
    >>> prediction_performance(["a", "b", "b"], ["a", "a", "b"], uncovered="penalize", **options)
    0.3333333333333333
    """
    if isinstance(metric, str):
        _check_performance(metric, task)
    return _measure(y_true, y_pred, metric, task, covered, uncovered, default, sample_weight)


def prediction_loss(
    y_true: Any,
    y_pred: Any,
    *,
    metric: str | Callable[..., float],
    task: str,
    covered: Any = None,
    uncovered: str = "penalize",
    default: float | None = None,
    sample_weight: Any = None,
) -> float:
    """Measure the loss of predictions by rules; 0 is best.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        True and predicted labels or numbers.
    metric : str or callable
        A metric of :data:`PREDICTION_METRICS` (1 minus a performance is its loss), or a function
        ``metric(y_true, y_pred)`` that returns a loss and also gets ``sample_weight`` if given.
    task : {"classification", "regression"}
        Task of the rules.
    covered : array-like of bool, shape (n_rows,), optional
        Rows that at least one rule covers; all by default.
    uncovered : {"penalize", "ignore"}, default="penalize"
        See :func:`prediction_performance`.
    default : float, optional
        Prediction of uncovered rows in regression; by default the mean of `y_true`.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.

    Returns
    -------
    float
        The loss; NaN if no row is left.

    Examples
    --------
    >>> prediction_loss([1.0, 2.0], [1.0, 2.5], metric="mean_absolute_error", task="regression")
    0.25
    """
    value = _measure(y_true, y_pred, metric, task, covered, uncovered, default, sample_weight)
    if isinstance(metric, str) and _find_metric(metric, task).greater_is_better:
        return 1 - value
    return value


class LabelSums(NamedTuple):
    """Sums over the rows of a regression that determine the metrics.

    Parameters
    ----------
    n_rows : int
        Rows with a positive weight.
    weight, deviation, squares, absolute, squared : float
        Sums of weights, of deviations of the labels from any center, of their squares, and of the
        absolute and squared errors.
    equal : bool
        Whether all labels are equal.
    """

    n_rows: int
    weight: float
    deviation: float
    squares: float
    absolute: float
    squared: float
    equal: bool


def metric_of_sums(sums: LabelSums, metric: str | Callable[..., float], *, loss: bool) -> float:
    """Compute :func:`prediction_loss` or :func:`prediction_performance` from sums."""
    if callable(metric):
        raise ValueError(
            f"The metric {getattr(metric, '__name__', metric)!r} of a regression needs the rows, "
            "but only sums over them are available. Choose a name such as 'mean_absolute_error' or "
            "'r2', or pass X and y."
        )
    named_metric = _find_metric(metric, "regression")
    if named_metric.of_sums is None:
        summed = [k for k, m in PREDICTION_METRICS.items() if "regression" in m.tasks and m.of_sums]
        raise ValueError(
            f"The metric {metric!r} needs the rows, but only sums over them are available. Choose "
            f"one of {', '.join(summed)}, or pass X and y."
        )
    if not loss:
        _check_performance(metric, "regression")
    if not math.isfinite(sums.squared):
        raise ValueError(
            "y_pred must hold finite numbers, but some predictions of the rules are not finite, "
            "such as predictions of a linear rule for missing values. Drop such rows."
        )
    if not sums.n_rows or (named_metric.function is r2 and sums.n_rows < 2):
        return math.nan
    # Scale to a mean weight of 1, since R² needs at least two rows.
    scale = sums.n_rows / sums.weight
    deviation, squares = scale * sums.deviation, scale * sums.squares
    if sums.equal:  # remove rounding errors
        deviation = squares = 0.0
    errors = scale * sums.absolute, scale * sums.squared
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(named_metric.of_sums(float(sums.n_rows), deviation, squares, *errors))
    return 1 - value if loss and named_metric.greater_is_better else value


def _check_performance(metric: str, task: str) -> None:
    if not _find_metric(metric, task).greater_is_better:
        better = [
            k for k, m in PREDICTION_METRICS.items() if task in m.tasks and m.greater_is_better
        ]
        raise ValueError(
            f"performance={metric!r} is a loss, but a performance with best value 1 is required: "
            f"{', '.join(better)}, or a callable."
        )


def _measure(
    y_true: Any,
    y_pred: Any,
    metric: str | Callable[..., float],
    task: str,
    covered: Any,
    uncovered: str,
    default: float | None,
    sample_weight: Any,
) -> float:
    check_choice("uncovered", uncovered, UNCOVERED)
    check_choice("task", task, TASKS)
    true = whole_labels if task == "classification" else one_dimension
    y_true, y_pred = true("y_true", y_true), one_dimension("y_pred", y_pred)
    has_rule = np.ones(y_true.shape, bool) if covered is None else np.asarray(covered, dtype=bool)
    if y_true.ndim != 1 or not y_true.shape == y_pred.shape == has_rule.shape:
        raise ValueError(
            "y_true, y_pred and covered must hold one entry per row, got shapes "
            f"{y_true.shape}, {y_pred.shape} and {has_rule.shape}."
        )
    weights = None if sample_weight is None else row_weights(sample_weight, len(y_true))
    is_counted = has_rule if uncovered == "ignore" else np.ones(len(y_true), bool)
    if weights is not None:
        is_counted = is_counted & (weights > 0)  # Rows of weight 0 are ignored.
        weights = weights[is_counted]
    y_true, y_pred, has_rule = y_true[is_counted], y_pred[is_counted], has_rule[is_counted]
    if len(y_true) == 0:
        return math.nan
    if task == "regression" and not has_rule.all():
        stand_in = weighted_mean(y_true, weights) if default is None else default
        y_pred = np.where(has_rule, y_pred, stand_in)
    if callable(metric):
        if task == "classification":
            y_pred = _replace_uncovered(y_true, y_pred, has_rule)
        options = {} if weights is None else {"sample_weight": weights}
        return float(metric(y_true, y_pred, **options))
    function = _find_metric(metric, task).function
    if task == "regression":
        y_true, y_pred = finite_numbers("y_true", y_true), finite_numbers("y_pred", y_pred)
    else:
        y_true, y_pred = common_codes(y_true, y_pred)
        y_pred[~has_rule] = NO_RULE
    return function(y_true, y_pred, weights)


def _replace_uncovered(y_true: np.ndarray, y_pred: np.ndarray, has_rule: np.ndarray) -> np.ndarray:
    """Replace the predictions of uncovered rows by a wrong label."""
    if has_rule.all():
        return y_pred
    labels = pd.unique(np.concatenate([y_true, y_pred[has_rule]]))
    if len(labels) < 2:
        raise ValueError(
            f"All labels and predictions are {labels.tolist()[0]!r}, so there is no wrong label "
            "that uncovered rows could get; choose uncovered='ignore'."
        )
    wrong = np.where(y_true == labels[0], labels[1], labels[0])
    return np.where(has_rule, y_pred, wrong)
