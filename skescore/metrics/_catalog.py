"""Catalog of metrics of predictions, with their formulas and origins.

A metric has its name in scikit-learn if it exists there, otherwise in RuleKit or RapidMiner.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import cohen_kappa_score

from skescore._aliases import RULEKIT_PERFORMANCE_METRICS, AliasedTable
from skescore._rows import deviations_from_mean, scale_to_unit, scale_weights
from skescore._text import did_you_mean
from skescore._validation import TASKS, as_numbers, check_choice, check_flag, check_number_or_nan
from skescore.metrics import _prediction
from skescore.metrics._rows import (
    Floats,
    Labels,
    Numbers,
    Outcomes,
    Probabilities,
    metric_of,
    ratio,
)

__all__ = [
    "KINDS",
    "PERFORMANCE_METRICS",
    "PerformanceMetric",
    "find_metric",
    "performance_report",
    "performance_table",
    "performance_value",
]

#: Kinds of metrics by their input.
KINDS = ("binary", "multiclass", "regression", "probability", "rules", "survival")
#: Arguments of every metric; all others are options.
_COMMON = ("y_true", "y_pred", "y_prob", "sample_weight", "undefined")


@dataclass(frozen=True, slots=True)
class PerformanceMetric:
    """A metric of predictions.

    Pass an instance instead of a name to use your own metric in :func:`performance_value` or
    :func:`skescore.scorers.make_performance_scorer`.

    Parameters
    ----------
    name : str
        Name of the metric.
    function : callable or None
        ``function(y_true, y_pred, *, sample_weight, undefined, **options)``; None if the metric
        needs more than predictions.
    kind : str
        Input of the metric: ``"binary"`` or ``"multiclass"`` labels, numbers (``"regression"``),
        class probabilities as `y_pred` with the option ``labels`` (``"probability"``), ``"rules"``
        or ``"survival"``.
    greater_is_better : bool or None
        False for a loss, None if no value is better than another.
    best : float
        Best value; NaN if it depends on the data.
    formula : str
        Formula as text: y true, z predicted, q the probability of the true class; TP, FP, TN and
        FN are row counts by outcome.
    scikit_learn : str, default=""
        Equivalent function of ``sklearn.metrics``, if there is one.
    rulekit : mapping of str to value, optional
        Options that reproduce RuleKit's value if the defaults do not.
    rulekit_name : str, default=""
        RuleKit's name of the metric, if it differs.
    source : str, default=""
        Author or origin of the metric.

    Examples
    --------
    >>> from skescore.metrics import PERFORMANCE_METRICS
    >>> metric = PERFORMANCE_METRICS["youden"]
    >>> metric.formula, metric.greater_is_better, metric.best
    ('TP/(TP + FN) + TN/(TN + FP) - 1', True, 1.0)
    >>> metric.function([0, 0, 1, 1], [0, 1, 1, 1])
    0.5
    """

    name: str
    function: Callable[..., float] | None
    kind: str
    greater_is_better: bool | None
    best: float
    formula: str
    scikit_learn: str = ""
    rulekit: Mapping[str, Any] = field(default_factory=dict)
    rulekit_name: str = ""
    source: str = ""

    @property
    def scorer_name(self) -> str:
        """Name of the scorer; a loss is negated, so that greater is better."""
        return f"neg_{self.name}" if self.greater_is_better is False else self.name

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options of the function besides weights and `undefined`."""
        if self.function is None:
            return ()
        return tuple(k for k in inspect.signature(self.function).parameters if k not in _COMMON)


def find_metric(metric: str | PerformanceMetric, options: Mapping[str, Any]) -> PerformanceMetric:
    """Find a metric and check the names of its options."""
    if isinstance(metric, PerformanceMetric):
        checked_metric = metric
    else:
        named_metric = PERFORMANCE_METRICS.get(metric) if isinstance(metric, str) else None
        if named_metric is None:
            raise ValueError(
                f"There is no metric of predictions {metric!r}. "
                f"{did_you_mean(metric, PERFORMANCE_METRICS)}"
            )
        checked_metric = named_metric
    for option in options:
        if option not in checked_metric.options:
            raise TypeError(
                f"The metric {checked_metric.name!r} has no option {option!r}. "
                f"{did_you_mean(option, checked_metric.options)}"
            )
    return checked_metric


_TABLE = "statistics of two-by-two tables"
_STATISTICS = "statistics of errors"
_RAPIDMINER = "RapidMiner"
_RULEKIT = "catalog of RuleKit"
_NAN = math.nan
_CLIPPED = {"clip": True, "undefined": 0.0}

_METRICS: dict[str, PerformanceMetric] = {}
#: Catalog of metrics of predictions by any model, with options, formulas and origins. RuleKit's
#: names, such as ``"kappa"``, are aliases.
PERFORMANCE_METRICS: Mapping[str, PerformanceMetric] = AliasedTable(
    _METRICS, RULEKIT_PERFORMANCE_METRICS
)
#: Kind of a metric by the type of rows that its function takes.
_KIND_OF_ROWS = {
    Labels: "multiclass",
    Outcomes: "binary",
    Numbers: "regression",
    Probabilities: "probability",
}


def _add(metric: PerformanceMetric) -> None:
    _METRICS[metric.name] = metric


def _metric(
    rows: type[Any],
    greater_is_better: bool,
    formula: str,
    *,
    best: float | None = None,
    undefined_where: str = "",
    **origin: Any,
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Return a decorator that adds a function of checked `rows` to the catalog of metrics.

    The best value is 1, or 0 for a loss, unless `best` is passed.
    """

    def decorate(function: Callable[..., float]) -> Callable[..., float]:
        metric = metric_of(rows, undefined_where)(function)
        name, kind = function.__name__, _KIND_OF_ROWS[rows]
        optimum = float(greater_is_better) if best is None else best
        _add(PerformanceMetric(name, metric, kind, greater_is_better, optimum, formula, **origin))
        return metric

    return decorate


#: Relative errors treat numbers below this limit as zero, as RuleKit does.
ZERO = 1e-6
_NEVER_WRONG = "where y_true never varies and is always predicted correctly"
_NO_CORRELATION = "where y_true or y_pred never varies"


def _mean(values: Floats, weights: Floats) -> float:
    """Compute the weighted mean; it is infinite if the sum overflows."""
    with np.errstate(over="ignore"):
        return float(np.average(values, weights=weights))


def _relative_error(rows: Numbers, combine: Callable[..., Floats], zero: float) -> float:
    limit = _limit(zero)
    distance = _distance(rows.y_true, rows.y_pred)
    magnitude = combine(np.abs(rows.y_true), np.abs(rows.y_pred))
    magnitude = np.where(_is_zero(magnitude, limit), 0.0, magnitude)
    shares, differs = np.zeros(len(distance)), ~_is_zero(distance, limit)
    with np.errstate(divide="ignore", over="ignore"):
        np.divide(distance, magnitude, out=shares, where=differs)
    return _mean(shares, rows.weights)


def _limit(zero: float) -> float:
    limit = as_numbers("zero", zero, low=0.0, remedy="Smaller numbers count as zero.")
    if limit.ndim:
        raise TypeError(f"zero must be a single number, got {zero!r}.")
    return float(limit)


def _is_zero(values: Floats, limit: float) -> NDArray[np.bool_]:
    return (np.abs(values) < limit) | (values == 0)


def _distance(y_true: Floats, y_pred: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.abs(y_true - y_pred)


def _errors_and_deviations(rows: Numbers) -> tuple[Floats, Floats]:
    """Compute the errors of the predictions and of the mean."""
    return rows.y_true - rows.y_pred, deviations_from_mean(rows.y_true, rows.weights)


def _norm(values: Floats, weights: Floats) -> float:
    scaled, exponent = scale_to_unit(values)  # squares must neither vanish nor overflow
    return float(np.ldexp(math.sqrt(_mean(scaled**2, weights)), exponent))


def _error_ratio(error: float, reference: float) -> float:
    if reference:
        return error / reference
    return math.inf if error else math.nan


def _correlation(rows: Numbers, clip: bool) -> float:
    check_flag("clip", clip)
    y_true, y_pred = (
        scale_to_unit(deviations_from_mean(scale_to_unit(side)[0], rows.weights))[0]
        for side in (rows.y_true, rows.y_pred)
    )
    if not (y_true.any() and y_pred.any()):
        return math.nan
    deviations = [math.sqrt(_mean(side**2, rows.weights)) for side in (y_true, y_pred)]
    value = _mean(y_true * y_pred, rows.weights) / (deviations[0] * deviations[1])
    return min(max(value, 0.0 if clip else -1.0), 1.0)


@_metric(
    Labels, True, "share of rows with z = y", scikit_learn="accuracy_score", source=_STATISTICS
)
def accuracy(rows: Labels) -> float:
    """Compute the share of the rows that are predicted correctly."""
    return _prediction.accuracy(rows.y_true, rows.y_pred, rows.weights)


@_metric(
    Labels,
    False,
    "share of rows with z ≠ y",
    scikit_learn="zero_one_loss",
    rulekit_name="classification_error",
    source=_STATISTICS,
)
def zero_one_loss(rows: Labels) -> float:
    """Compute the share of the rows that are predicted wrongly."""
    return 1 - _prediction.accuracy(rows.y_true, rows.y_pred, rows.weights)


@_metric(
    Labels,
    True,
    "mean over the classes of y of the share with z = y",
    scikit_learn="balanced_accuracy_score",
    source=_STATISTICS,
)
def balanced_accuracy(rows: Labels) -> float:
    """Compute the mean recall of the classes of y_true; RuleKit ignores weights here."""
    return _prediction.balanced_accuracy(rows.y_true, rows.y_pred, rows.weights)


@_metric(
    Labels,
    True,
    "(a - e) / (1 - e), a = accuracy, e = accuracy of independent labels",
    undefined_where="where all labels and predictions are the same",
    scikit_learn="cohen_kappa_score",
    rulekit_name="kappa",
    source="J. Cohen 1960",
)
def cohen_kappa(rows: Labels) -> float:
    """Compute the agreement beyond chance."""
    if len(rows.labels) == 1:
        return math.nan  # scikit-learn divides 0 by 0 there
    weights = scale_weights(rows.weights)
    return float(cohen_kappa_score(rows.y_true, rows.y_pred, sample_weight=weights))


@_metric(
    Labels,
    True,
    "mean of the F1 of each class, weighted by its rows in y",
    source=_STATISTICS,
)
def f1_weighted(rows: Labels) -> float:
    """Compute the mean F1 of the classes, weighted by their rows in y_true.

    It is scikit-learn's ``f1_score`` with ``average="weighted"``.
    """
    return _prediction.f1_weighted(rows.y_true, rows.y_pred, rows.weights)


_add(
    PerformanceMetric(
        "rules_per_example",
        None,
        "rules",
        None,
        _NAN,
        "mean number of rules that cover a row",
        source=_RULEKIT,
    )
)


_add(
    PerformanceMetric(
        "voting_conflicts",
        None,
        "rules",
        False,
        0.0,
        "rows that rules of two or more classes cover",
        source=_RULEKIT,
    )
)


_add(
    PerformanceMetric(
        "negative_voting_conflicts",
        None,
        "rules",
        False,
        0.0,
        "rows that rules of two or more classes cover, and z ≠ y",
        source=_RULEKIT,
    )
)


@_metric(Probabilities, False, "mean of -log2(q)", source=_RAPIDMINER)
def cross_entropy(rows: Probabilities) -> float:
    """Compute the mean of -log2 of the probability of the true class, a loss in bits.

    A single probability of 0 makes it infinite. It is scikit-learn's ``log_loss`` divided by ln 2,
    except that ``log_loss`` replaces 0 by a tiny number.
    """
    with np.errstate(divide="ignore"):
        return abs(float(np.average(-np.log2(rows.of_true), weights=rows.weights)))  # not -0.0


@_metric(Probabilities, True, "min q", source=_RAPIDMINER)
def margin(rows: Probabilities) -> float:
    """Compute the smallest predicted probability of a true class among all rows."""
    return float(rows.of_true.min())


@_metric(Probabilities, False, "mean of 1 - q", source=_RAPIDMINER)
def soft_margin_loss(rows: Probabilities) -> float:
    """Compute the mean probability of the wrong classes, a loss."""
    return float(np.average(1 - rows.of_true, weights=rows.weights))


@_metric(
    Probabilities,
    False,
    "mean of ln(1 + exp(-q))",
    best=math.log1p(math.exp(-1)),
    source=_RAPIDMINER,
)
def logistic_loss(rows: Probabilities) -> float:
    """Compute the mean of ln(1 + exp(-q)) for the probability q of the true class, a loss.

    It lies between 0.313 and 0.693. The loss of logistic regression is scikit-learn's ``log_loss``.
    """
    return float(np.average(np.logaddexp(0.0, -rows.of_true), weights=rows.weights))


@_metric(Outcomes, True, "TP / (TP + FP)", scikit_learn="precision_score", source=_TABLE)
def precision(rows: Outcomes) -> float:
    """Compute the share of the predicted positives that are positive."""
    return rows.precision


@_metric(
    Outcomes,
    True,
    "TP / (TP + FN)",
    scikit_learn="recall_score",
    rulekit_name="sensitivity",
    source=_TABLE,
)
def recall(rows: Outcomes) -> float:
    """Compute the share of the positives that are predicted as positive (sensitivity)."""
    return rows.recall


@_metric(Outcomes, True, "TN / (TN + FP)", source=_TABLE)
def specificity(rows: Outcomes) -> float:
    """Compute the share of the negatives that are predicted as negative."""
    return rows.specificity


@_metric(Outcomes, True, "TN / (TN + FN)", source=_TABLE)
def negative_predictive_value(rows: Outcomes) -> float:
    """Compute the share of the predicted negatives that are negative."""
    return rows.negative_predictive_value


@_metric(Outcomes, False, "FP / (FP + TN)", source=_TABLE)
def fallout(rows: Outcomes) -> float:
    """Compute the share of the negatives that are predicted as positive, a loss."""
    return ratio(rows.fp, rows.fp + rows.tn)


@_metric(Outcomes, True, "TP/(TP + FN) + TN/(TN + FP) - 1", source="W. J. Youden 1950")
def youden(rows: Outcomes) -> float:
    """Compute recall plus specificity minus 1, the improvement over chance."""
    return rows.recall + rows.specificity - 1


@_metric(Outcomes, True, "sqrt(TP/(TP + FN) · TN/(TN + FP))", source="M. Kubat, S. Matwin 1997")
def geometric_mean(rows: Outcomes) -> float:
    """Compute the geometric mean of recall and specificity."""
    return math.sqrt(rows.recall * rows.specificity)


@_metric(Outcomes, True, "TP/(TP + FP) + TN/(TN + FN) - 1", source=_RAPIDMINER)
def psep(rows: Outcomes) -> float:
    """Compute precision plus negative predictive value minus 1."""
    return rows.precision + rows.negative_predictive_value - 1


@_metric(
    Outcomes,
    True,
    "TP/(TP + FP) / ((TP + FN)/(TP + FP + TN + FN))",
    best=_NAN,
    source="S. Brin et al. 1997",
)
def lift(rows: Outcomes) -> float:
    """Compute the ratio of the precision to the share of positives among all rows.

    The value of a random prediction is 1; the maximum is 1 divided by the share of positives.
    """
    total = rows.tp + rows.fp + rows.tn + rows.fn
    return ratio(rows.precision, (rows.tp + rows.fn) / total)


@_metric(
    Outcomes,
    True,
    "2 TP / (2 TP + FP + FN)",
    scikit_learn="f1_score",
    rulekit={"harmonic": True},
    rulekit_name="f_measure",
    source="C. J. van Rijsbergen 1979",
)
def f1(rows: Outcomes, *, harmonic: bool = False) -> float:
    """Compute F1; 0 without true positives, undefined if no label and no prediction is positive.

    scikit-learn returns 0 in both cases. ``harmonic=True`` follows RuleKit, for which F1 is
    undefined in both cases because the harmonic mean of precision and recall is 0/0.
    """
    if check_flag("harmonic", harmonic) and rows.tp == 0:
        return math.nan
    return ratio(2 * rows.tp, 2 * rows.tp + rows.fp + rows.fn)


@_metric(Outcomes, False, "FP", source=_TABLE)
def false_positive(rows: Outcomes) -> float:
    """Sum the weights of the negatives that are predicted as positive, a loss."""
    return rows.fp


@_metric(Outcomes, False, "FN", source=_TABLE)
def false_negative(rows: Outcomes) -> float:
    """Sum the weights of the positives that are predicted as negative, a loss."""
    return rows.fn


@_metric(Outcomes, True, "TP", best=_NAN, source=_TABLE)
def true_positive(rows: Outcomes) -> float:
    """Sum the weights of the positives that are predicted as positive."""
    return rows.tp


@_metric(Outcomes, True, "TN", best=_NAN, source=_TABLE)
def true_negative(rows: Outcomes) -> float:
    """Sum the weights of the negatives that are predicted as negative."""
    return rows.tn


@_metric(
    Numbers,
    False,
    "mean of |y - z|",
    scikit_learn="mean_absolute_error",
    rulekit_name="absolute_error",
    source=_STATISTICS,
)
def mean_absolute_error(rows: Numbers) -> float:
    """Compute the mean absolute error."""
    with np.errstate(over="ignore"):
        return _prediction.mean_absolute_error(rows.y_true, rows.y_pred, rows.weights)


@_metric(
    Numbers,
    False,
    "mean of |y - z| / |y| where y ≠ 0",
    undefined_where="where y_true is zero in all rows",
    source=_RAPIDMINER,
)
def relative_error(rows: Numbers, *, zero: float = ZERO) -> float:
    """Compute the mean error relative to y_true, over rows where |y_true| is at least `zero`.

    scikit-learn's ``mean_absolute_percentage_error`` divides by a tiny number where y_true is 0,
    so such rows dominate its mean.
    """
    is_nonzero = ~_is_zero(rows.y_true, _limit(zero))
    if not is_nonzero.any():
        return math.nan
    y_true, y_pred = rows.y_true[is_nonzero], rows.y_pred[is_nonzero]
    with np.errstate(over="ignore"):
        shares = _distance(y_true, y_pred) / np.abs(y_true)
    return _mean(shares, rows.weights[is_nonzero])


@_metric(Numbers, False, "mean of |y - z| / max(|y|, |z|)", source=_RAPIDMINER)
def relative_error_lenient(rows: Numbers, *, zero: float = ZERO) -> float:
    """Compute the mean error relative to the larger of the two numbers; at most 2.

    Distances below `zero` count as zero.
    """
    return _relative_error(rows, np.maximum, zero)


@_metric(Numbers, False, "mean of |y - z| / min(|y|, |z|)", source=_RAPIDMINER)
def relative_error_strict(rows: Numbers, *, zero: float = ZERO) -> float:
    """Compute the mean error relative to the smaller of the two numbers; infinite where one is 0.

    Numbers and distances below `zero` count as zero.
    """
    return _relative_error(rows, np.minimum, zero)


@_metric(
    Numbers,
    False,
    "sum |y - z| / sum |y - mean y|",
    undefined_where=_NEVER_WRONG,
    source=_STATISTICS,
)
def normalized_absolute_error(rows: Numbers) -> float:
    """Compute the absolute error relative to the error of predicting the mean of y_true.

    scikit-learn's ``d2_absolute_error_score`` is 1 minus the same ratio with the median. RuleKit
    multiplies y by the weights before it subtracts the mean.
    """
    errors, deviations = _errors_and_deviations(rows)
    error, reference = (_mean(np.abs(x), rows.weights) for x in (errors, deviations))
    return _error_ratio(error, reference)


@_metric(
    Numbers,
    False,
    "mean of (y - z)²",
    scikit_learn="mean_squared_error",
    rulekit_name="squared_error",
    source=_STATISTICS,
)
def mean_squared_error(rows: Numbers) -> float:
    """Compute the mean squared error."""
    with np.errstate(over="ignore"):
        return _prediction.mean_squared_error(rows.y_true, rows.y_pred, rows.weights)


@_metric(
    Numbers,
    False,
    "sqrt(mean of (y - z)²)",
    scikit_learn="root_mean_squared_error",
    source=_STATISTICS,
)
def root_mean_squared_error(rows: Numbers) -> float:
    """Compute the root of the mean squared error."""
    with np.errstate(over="ignore"):
        return _prediction.root_mean_squared_error(rows.y_true, rows.y_pred, rows.weights)


@_metric(
    Numbers,
    False,
    "sqrt(sum (y - z)² / sum (y - mean y)²)",
    undefined_where=_NEVER_WRONG,
    source=_STATISTICS,
)
def root_relative_squared_error(rows: Numbers) -> float:
    """Compute ``sqrt(1 - R²)``, the root of the relative squared error.

    RuleKit squares the weights, and ignores them in the mean.
    """
    errors, deviations = _errors_and_deviations(rows)
    return _error_ratio(_norm(errors, rows.weights), _norm(deviations, rows.weights))


@_metric(
    Numbers,
    True,
    "1 - sum (y - z)² / sum (y - mean y)²",
    undefined_where="where y_true never varies",
    scikit_learn="r2_score",
    source=_STATISTICS,
)
def r2(rows: Numbers) -> float:
    """Compute R², the share of the variance that the predictions explain.

    For a constant y_true, scikit-learn returns 1 if it is always predicted correctly, otherwise 0.
    """
    if (rows.y_true == rows.y_true[0]).all():
        return math.nan
    return _prediction.r2(rows.y_true, rows.y_pred, rows.weights)


@_metric(
    Numbers,
    True,
    "Pearson's r of y and z",
    undefined_where=_NO_CORRELATION,
    rulekit=_CLIPPED,
    source="K. Pearson 1895",
)
def correlation(rows: Numbers, *, clip: bool = False) -> float:
    """Compute Pearson's correlation; ``clip=True`` raises negative values to 0, as RuleKit does."""
    return _correlation(rows, clip)


@_metric(
    Numbers,
    True,
    "squared Pearson's r of y and z",
    undefined_where=_NO_CORRELATION,
    rulekit=_CLIPPED,
    source="K. Pearson 1895",
)
def squared_correlation(rows: Numbers, *, clip: bool = False) -> float:
    """Compute the squared correlation, which unlike R² ignores the scale of the predictions.

    ``clip=True`` returns 0 if the correlation is negative, as RuleKit does.
    """
    return _correlation(rows, clip) ** 2


_add(
    PerformanceMetric(
        "integrated_brier_score",
        None,
        "survival",
        False,
        0.0,
        "mean over time of the squared difference of predicted and observed survival",
        source="E. Graf et al. 1999",
    )
)


#: Functions for the kinds of metrics that need more than predictions.
_ELSEWHERE = {
    "rules": "use characteristics(ruleset, X, y)[{!r}], or the scorer of that name",
    "survival": "use skescore.metrics.{} or skescore.scorers.make_survival_scorer, which take "
    "censored times",
}


def performance_value(
    metric: str | PerformanceMetric,
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    undefined: float = math.nan,
    **options: Any,
) -> float:
    """Measure predictions by a metric of the catalog.

    Parameters
    ----------
    metric : str or PerformanceMetric
        A name of :data:`PERFORMANCE_METRICS`, or a user-defined metric.
    y_true : array-like of shape (n_rows,)
        True labels or numbers.
    y_pred : array-like of shape (n_rows,) or (n_rows, n_classes)
        The predictions; for a metric of class probabilities, the output of ``predict_proba``.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive; a row of weight 2 counts as two rows.
    undefined : float, default=NaN
        Value of an undefined metric; NaN comes with an ``UndefinedMetricWarning``.
    **options
        ``pos_label``, the positive class of binary metrics, required unless the labels are 0 and 1,
        or -1 and 1; ``labels``, the classes of the columns of probabilities, by default the labels
        of `y_true` in order; ``harmonic``, ``zero`` and ``clip``, each for a few metrics.

    Returns
    -------
    float
        Value; ``PERFORMANCE_METRICS[metric].greater_is_better`` states which values are better.

    Raises
    ------
    ValueError
        If there is no such metric, it needs more than predictions, or the rows do not fit it.
    TypeError
        If the metric has no such option, or an argument has the wrong type.

    Examples
    --------
    >>> performance_value("psep", ["no", "no", "yes"], ["no", "yes", "yes"], pos_label="yes")
    0.5
    >>> performance_value("correlation", [1.0, 2.0, 4.0], [2.0, 3.0, 5.0])
    1.0
    """
    checked_metric = find_metric(metric, options)
    if checked_metric.function is None:
        raise ValueError(
            f"{checked_metric.name!r} needs more than predictions: "
            f"{_ELSEWHERE[checked_metric.kind].format(checked_metric.name)}."
        )
    return float(
        checked_metric.function(
            y_true, y_pred, sample_weight=sample_weight, undefined=undefined, **options
        )
    )


def performance_table(kind: str | None = None) -> pd.DataFrame:
    """List the metrics of predictions and the packages that provide them.

    Parameters
    ----------
    kind : str, optional
        Only metrics of one kind: ``"binary"``, ``"multiclass"``, ``"regression"``,
        ``"probability"``, ``"rules"`` or ``"survival"``; by default all.

    Returns
    -------
    DataFrame
        One row per metric, indexed by name: ``kind``, ``owner`` ("scikit-learn", "skescore" or
        "scikit-survival"), ``function`` (import path), ``scorer`` (name as a scorer, or empty),
        ``rulekit`` (RuleKit's name), ``better`` ("greater", "smaller" or ""), ``best`` value,
        ``formula`` and ``source``.

    Raises
    ------
    ValueError
        If there is no such kind.

    Examples
    --------
    >>> table = performance_table("regression")
    >>> table.loc[["mean_absolute_error", "relative_error"], "owner"].tolist()
    ['scikit-learn', 'skescore']
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(f"There is no kind {kind!r} of metrics. {did_you_mean(kind, KINDS)}")
    metrics = [m for m in PERFORMANCE_METRICS.values() if kind in (None, m.kind)]
    better = {True: "greater", False: "smaller", None: ""}
    rows = [
        {
            "kind": metric.kind,
            "owner": _owner(metric)[0],
            "function": _owner(metric)[1],
            "scorer": "" if metric.kind == "survival" else metric.scorer_name,
            "rulekit": metric.rulekit_name or metric.name,
            "better": better[metric.greater_is_better],
            "best": metric.best,
            "formula": metric.formula,
            "source": metric.source,
        }
        for metric in metrics
    ]
    return pd.DataFrame(rows, index=pd.Index([metric.name for metric in metrics], name="metric"))


def _owner(metric: PerformanceMetric) -> tuple[str, str]:
    if metric.kind == "survival":
        return "scikit-survival", f"skescore.metrics.{metric.name}"
    if metric.scikit_learn:
        return "scikit-learn", f"sklearn.metrics.{metric.scikit_learn}"
    name = "characteristics" if metric.kind == "rules" else "performance_value"
    return "skescore", f"skescore.metrics.{name}"


def performance_report(
    y_true: Any,
    y_pred: Any,
    *,
    task: str,
    y_prob: Any = None,
    labels: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    undefined: float = math.nan,
) -> pd.DataFrame:
    """Compute all metrics of the catalog that apply to the predictions.

    Use it for an overview of a model, or to compare its values with another program.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        True and predicted labels or numbers.
    task : {"classification", "regression"}
        Task of the model.
    y_prob : array-like of shape (n_rows, n_classes), optional
        Output of ``predict_proba``; without it, metrics of class probabilities are omitted.
    labels : array-like of shape (n_classes,), optional
        The classes of the columns of `y_prob`; by default the labels of `y_true` in order.
    pos_label : label, optional
        Positive class of two; by default 1 if the labels are 0 and 1, or -1 and 1. Without it,
        metrics of two classes are omitted for other labels.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive.
    undefined : float, default=NaN
        Value of undefined metrics.

    Returns
    -------
    DataFrame
        One row per metric, indexed by name: ``value``, ``better`` ("greater" or "smaller"),
        ``best`` and ``formula``.

    Raises
    ------
    ValueError
        If there is no such task, arguments do not match in shape or labels, `pos_label` is passed
        for more than two classes, or an argument is for classification only.
    TypeError
        If an argument has the wrong type.

    Examples
    --------
    >>> report = performance_report([0, 0, 1, 1], [0, 1, 1, 1], task="classification")
    >>> report.loc[["accuracy", "specificity", "lift"], "value"].round(3).to_dict()
    {'accuracy': 0.75, 'specificity': 0.5, 'lift': 1.333}
    """
    check_choice("task", task, TASKS)
    check_number_or_nan("undefined", undefined)
    if task == "regression":
        for name, value in (("y_prob", y_prob), ("labels", labels), ("pos_label", pos_label)):
            if value is not None:
                raise ValueError(f"{name} is for task='classification', got {value!r}.")
        options: dict[str, dict[str, Any]] = {"regression": {}}
    else:
        options = {"multiclass": {}}
        rows = Labels.of(y_true, y_pred, sample_weight)
        if pos_label is not None or rows.one_is_positive:
            rows.positive(pos_label)  # Reject more than two labels with a pos_label.
            options["binary"] = {"pos_label": pos_label}
        if y_prob is not None:
            options["probability"] = {"labels": labels}
        elif labels is not None:
            raise ValueError(
                f"labels must be None if y_prob is None, because they name its columns; got "
                f"{labels!r}. Pass y_prob, or omit labels."
            )
    table = performance_table()
    table = table[table["kind"].isin(list(options))]
    with warnings.catch_warnings():
        # The table shows undefined values without a warning.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        values = [
            performance_value(
                name,
                y_true,
                y_prob if kind == "probability" else y_pred,
                sample_weight=sample_weight,
                undefined=undefined,
                **options[kind],
            )
            for name, kind in zip(table.index, table["kind"], strict=True)
        ]
    report = table[["better", "best", "formula"]]
    report.insert(0, "value", values)
    return report
