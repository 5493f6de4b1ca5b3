"""How well rules predict: named performances and losses, on all rows or on covered rows only.

The measures that scores of rule sets are made of, :data:`METRICS`, are few and scikit-learn's, and
know rows without a rule. All others (of two classes, many classes, numbers and confidences) are in
the table :func:`performance_table`, by :mod:`skescore.metrics._catalogue`, whose names are to be
had here as well; survival has :mod:`skescore.metrics._survival`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import metrics as sk

from skescore._text import did_you_mean
from skescore.metrics._arguments import TASKS, row_weights
from skescore.metrics._catalogue import (
    PERFORMANCE_METRICS,
    PerformanceMetric,
    performance_report,
    performance_table,
    performance_value,
)

__all__ = [
    "METRICS",
    "PERFORMANCE_METRICS",
    "TASKS",
    "UNCOVERED",
    "PerformanceMetric",
    "PredictionMetric",
    "named_metric",
    "performance_report",
    "performance_table",
    "performance_value",
    "prediction_loss",
    "prediction_performance",
    "row_weights",
]


# --- the named measures of predictions in a few steps of NumPy -----------------------------------
# scikit-learn's functions give the same values. They check their input at every call though, which
# takes a hundred times as long as the measure itself where a search scores a few dozen rows. Here
# nothing is checked: labels come as codes, which :func:`label_codes` makes, numbers as finite
# floats, weights are positive, and there is a row at least.

Weights = NDArray[np.float64] | None

#: The code of a row that no rule answers: wrong, but no class of its own.
NO_RULE = -1


def label_codes(truth: np.ndarray, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the labels of any type, equal ones alike.

    Parameters
    ----------
    truth, answers : ndarray of shape (n_rows,)
        Labels.

    Returns
    -------
    truth, answers : ndarray of int, shape (n_rows,)
        Codes from 0, in the order in which the labels first occur.
    """
    labels = [*truth.tolist(), *answers.tolist()]
    places: dict[Any, int] = {}
    codes = np.array([places.setdefault(label, len(places)) for label in labels], dtype=np.intp)
    if all(isinstance(label, str | int | float) and label == label for label in places):
        return codes[: len(truth)], codes[len(truth) :]
    # A missing label does not equal itself; pandas knows that all of them are one.
    objects = np.fromiter(labels, dtype=object, count=len(labels))
    codes = pd.factorize(objects, use_na_sentinel=False)[0]
    return codes[: len(truth)], codes[len(truth) :]


def _mean(values: np.ndarray, weights: Weights) -> float:
    if weights is None:
        return float(values.mean())
    return float((values * weights).sum() / weights.sum())


# --- classes -------------------------------------------------------------------------------------


def accuracy(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Share of the rows that are answered rightly."""
    return _mean(truth == answers, weights)


def _counts(
    truth: np.ndarray, answers: np.ndarray, weights: Weights
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows answered rightly, rows answered and rows of every class that occurs."""
    n_codes = int(max(truth.max(), answers.max())) + 1
    right, ruled = truth == answers, answers != NO_RULE
    hits, answered, there = (
        np.bincount(codes[rows], None if weights is None else weights[rows], n_codes)
        for codes, rows in ((truth, right), (answers, ruled), (truth, slice(None)))
    )
    occurs = (there > 0) | (answered > 0)
    hits, answered, there = hits[occurs], answered[occurs], there[occurs]
    # Through the errors, as scikit-learn has it: sums of weights then round alike.
    return hits, hits + (answered - hits), hits + (there - hits)


def _f1_per_class(
    truth: np.ndarray, answers: np.ndarray, weights: Weights
) -> tuple[np.ndarray, np.ndarray]:
    hits, answered, there = _counts(truth, answers, weights)
    return 2.0 * hits / (there + answered), there


def f1_weighted(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """F1 of the classes, averaged by their rows."""
    return _mean(*_f1_per_class(truth, answers, weights))


def f1_macro(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Mean F1 of the classes that occur."""
    return _mean(_f1_per_class(truth, answers, weights)[0], None)


def balanced_accuracy(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Mean share of the rows answered rightly among those of each class."""
    hits, _, there = _counts(truth, answers, weights)
    known = there > 0
    return _mean(hits[known] / there[known], None)


# --- numbers -------------------------------------------------------------------------------------


def r2(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Share of the spread that the answers explain."""
    errors, spread = (truth - answers) ** 2, (truth - _mean(truth, weights)) ** 2
    if weights is not None:
        errors, spread = weights * errors, weights * spread
    left, whole = float(errors.sum()), float(spread.sum())
    if left == 0.0:
        return 1.0
    # An infinite quotient helps nobody who takes means over folds.
    return 0.0 if whole == 0.0 else float(1.0 - np.divide(left, whole))


def mean_absolute_error(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Mean distance from the truth."""
    return _mean(np.abs(answers - truth), weights)


def mean_squared_error(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Mean square of the distance from the truth."""
    return _mean((truth - answers) ** 2, weights)


def root_mean_squared_error(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Root of the mean square of the distance from the truth."""
    return math.sqrt(mean_squared_error(truth, answers, weights))


# --- How well rules predict: named performances and losses, on all rows or on covered row --------

#: What happens to rows without a rule in a score.
UNCOVERED = ("ignore", "penalise")


class PredictionMetric(NamedTuple):
    """A named measure of predictions.

    Parameters
    ----------
    function : callable
        ``function(y_true, y_pred, sample_weight=...)``.
    greater_is_better : bool
        True for a performance whose best value is 1, False for a loss whose best value is 0.
    tasks : tuple of str
        The tasks that it makes sense for.
    kernel : callable, optional
        The same, but quick: ``kernel(codes or finite floats, the answers', weights or None)``.
    """

    function: Callable[..., float]
    greater_is_better: bool
    tasks: tuple[str, ...]
    kernel: Callable[[np.ndarray, np.ndarray, np.ndarray | None], float] | None = None


def _f1(average: str) -> Callable[..., float]:
    def f1(y_true: np.ndarray, y_pred: np.ndarray, sample_weight: Any = None) -> float:
        # A row without a rule is wrong, but no class of its own.
        labels = np.setdiff1d(np.union1d(y_true, y_pred), [NO_RULE])
        return sk.f1_score(
            y_true, y_pred, labels=labels, average=average, sample_weight=sample_weight,
            zero_division=0.0,
        )  # fmt: skip

    return f1


def _balanced_accuracy(y_true: np.ndarray, y_pred: np.ndarray, sample_weight: Any = None) -> float:
    return sk.recall_score(
        y_true, y_pred, labels=np.unique(y_true), average="macro", sample_weight=sample_weight
    )


_CLASSIFICATION, _REGRESSION = ("classification",), ("regression",)


#: The named measures; adding one is one line.
METRICS: dict[str, PredictionMetric] = {
    "accuracy": PredictionMetric(sk.accuracy_score, True, _CLASSIFICATION, accuracy),
    "balanced_accuracy": PredictionMetric(
        _balanced_accuracy, True, _CLASSIFICATION, balanced_accuracy
    ),
    "f1_weighted": PredictionMetric(_f1("weighted"), True, _CLASSIFICATION, f1_weighted),
    "f1_macro": PredictionMetric(_f1("macro"), True, _CLASSIFICATION, f1_macro),
    "r2": PredictionMetric(sk.r2_score, True, _REGRESSION, r2),
    "mean_absolute_error": PredictionMetric(
        sk.mean_absolute_error, False, _REGRESSION, mean_absolute_error
    ),
    "mean_squared_error": PredictionMetric(
        sk.mean_squared_error, False, _REGRESSION, mean_squared_error
    ),
    "root_mean_squared_error": PredictionMetric(
        sk.root_mean_squared_error, False, _REGRESSION, root_mean_squared_error
    ),
    "median_absolute_error": PredictionMetric(sk.median_absolute_error, False, _REGRESSION),
}


def named_metric(name: str, task: str) -> PredictionMetric:
    """Find a named measure.

    Parameters
    ----------
    name : str
        One of :data:`METRICS`; a ``neg_`` in front is ignored.
    task : {"classification", "regression"}
        The measure must make sense for it.

    Returns
    -------
    PredictionMetric
        The measure.

    Raises
    ------
    ValueError
        If there is no such measure for the task.
    """
    metric = METRICS.get(name.removeprefix("neg_"))
    if metric is None or task not in metric.tasks:
        known = [key for key, metric in METRICS.items() if task in metric.tasks]
        raise ValueError(f"There is no measure {name!r} for {task}. {did_you_mean(name, known)}")
    return metric


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
    """How well rules predict, greater is better.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        The truth and the answers.
    metric : str or callable
        A performance of :data:`METRICS`, or ``metric(y_true, y_pred)``; with weights it is called
        with ``sample_weight`` as well.
    task : {"classification", "regression"}
        The kind of answers.
    covered : array-like of bool, shape (n_rows,), optional
        Rows that some rule answers; all by default.
    uncovered : {"ignore", "penalise"}, default="ignore"
        ``"ignore"`` leaves out the other rows. ``"penalise"`` counts them as wrong
        (classification) or as answered by `default` (regression).
    default : float, optional
        The mean that stands for a missing answer in regression; by default that of `y_true`.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.

    Returns
    -------
    float
        The performance; NaN if no row is left.

    Raises
    ------
    ValueError
        If the measure is a loss, or is unknown.

    Examples
    --------
    >>> options = {"metric": "accuracy", "task": "classification", "covered": [True, True, False]}
    >>> prediction_performance(["a", "b", "b"], ["a", "a", "b"], **options)
    0.5
    >>> prediction_performance(["a", "b", "b"], ["a", "a", "b"], uncovered="penalise", **options)
    0.3333333333333333
    """
    if isinstance(metric, str) and not named_metric(metric, task).greater_is_better:
        better = [k for k, m in METRICS.items() if task in m.tasks and m.greater_is_better]
        raise ValueError(
            f"performance={metric!r} is a loss; a performance whose best value is 1 is needed: "
            f"{', '.join(better)}, or a callable."
        )
    return _measure(y_true, y_pred, metric, task, covered, uncovered, default, sample_weight)


def prediction_loss(
    y_true: Any,
    y_pred: Any,
    *,
    metric: str | Callable[..., float],
    task: str,
    covered: Any = None,
    uncovered: str = "penalise",
    default: float | None = None,
    sample_weight: Any = None,
) -> float:
    """How badly rules predict, 0 is best.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        The truth and the answers.
    metric : str or callable
        A measure of :data:`METRICS` (a performance counts as 1 less it), or
        ``metric(y_true, y_pred)`` giving a loss; with weights it is called with ``sample_weight``
        as well.
    task : {"classification", "regression"}
        The kind of answers.
    covered : array-like of bool, shape (n_rows,), optional
        Rows that some rule answers; all by default.
    uncovered : {"penalise", "ignore"}, default="penalise"
        See :func:`prediction_performance`.
    default : float, optional
        The mean that stands for a missing answer in regression; by default that of `y_true`.
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
    if isinstance(metric, str) and named_metric(metric, task).greater_is_better:
        return 1 - value
    return value


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
    if uncovered not in UNCOVERED:
        raise ValueError(f"uncovered must be 'ignore' or 'penalise', got {uncovered!r}.")
    if task not in TASKS:
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}.")
    truth, answers = np.asarray(y_true), np.asarray(y_pred)
    has_rule = np.ones(truth.shape, bool) if covered is None else np.asarray(covered, dtype=bool)
    if truth.ndim != 1 or not truth.shape == answers.shape == has_rule.shape:
        raise ValueError(
            "y_true, y_pred and covered must hold one entry per row, got shapes "
            f"{truth.shape}, {answers.shape} and {has_rule.shape}."
        )
    weights = None if sample_weight is None else row_weights(sample_weight, len(truth))
    kept = has_rule if uncovered == "ignore" else np.ones(len(truth), bool)
    if weights is not None:
        kept = kept & (weights > 0)  # a row that weighs nothing must not count in any way
        weights = weights[kept]
    truth, answers, has_rule = truth[kept], answers[kept], has_rule[kept]
    if len(truth) == 0:
        return math.nan
    if callable(metric):
        known, function = None, metric
    else:
        known = named_metric(metric, task)
        function = known.function
    if task == "regression":
        if not has_rule.all():
            stand_in = np.average(truth, weights=weights) if default is None else default
            answers = np.where(has_rule, answers, stand_in)
        if function is sk.r2_score and len(truth) < 2:
            return math.nan
        if known is not None and known.kernel and _finite(truth) and _finite(answers):
            return known.kernel(truth, answers, weights)
    elif known is None:
        answers = _made_wrong(truth, answers, has_rule)
    else:
        # Codes make labels of any type comparable, and leave one for "no rule".
        truth, answers = label_codes(truth, answers)
        answers[~has_rule] = NO_RULE
        if known.kernel:
            return known.kernel(truth, answers, weights)
    options = {} if weights is None else {"sample_weight": weights}
    return float(function(truth, answers, **options))


def _finite(numbers: np.ndarray) -> bool:
    """Whether these are floats that need no check; what else there is, scikit-learn judges."""
    return numbers.dtype == np.float64 and bool(np.isfinite(numbers).all())


def _made_wrong(truth: np.ndarray, answers: np.ndarray, has_rule: np.ndarray) -> np.ndarray:
    """Replace the answers of rows without a rule by a label that is wrong there."""
    if has_rule.all():
        return answers
    labels = pd.unique(np.concatenate([truth, answers[has_rule]]))
    if len(labels) < 2:
        raise ValueError(
            f"All rows and answers are {labels.tolist()[0]!r}, so there is no wrong label to count "
            "rows without a rule as; choose uncovered='ignore'."
        )
    wrong = np.where(truth == labels[0], labels[1], labels[0])
    return np.where(has_rule, answers, wrong)
