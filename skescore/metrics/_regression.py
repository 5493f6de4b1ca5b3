"""Formulas of the metrics of predicted numbers: errors, relative errors and correlations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skescore._rows import deviations_from_mean
from skescore._validation import as_numbers, check_flag
from skescore.metrics import _prediction
from skescore.metrics._rows import Floats, Numbers, metric_of

#: Relative errors treat smaller numbers as zero, as RuleKit does.
ZERO = 1e-6

_NEVER_WRONG = "where y_true never varies and is always predicted correctly"
_NO_CORRELATION = "where y_true or y_pred never vary"


def _mean(values: Floats, weights: Floats) -> float:
    """Compute the weighted mean; a mean that overflows is infinite."""
    with np.errstate(over="ignore"):
        return float(np.average(values, weights=weights))


@metric_of(Numbers)
def mean_absolute_error(rows: Numbers) -> float:
    """Compute the mean absolute error."""
    with np.errstate(over="ignore"):
        return _prediction.mean_absolute_error(rows.y_true, rows.y_pred, rows.weights)


@metric_of(Numbers)
def mean_squared_error(rows: Numbers) -> float:
    """Compute the mean squared error."""
    with np.errstate(over="ignore"):
        return _prediction.mean_squared_error(rows.y_true, rows.y_pred, rows.weights)


@metric_of(Numbers)
def root_mean_squared_error(rows: Numbers) -> float:
    """Compute the root of the mean squared error."""
    with np.errstate(over="ignore"):
        return _prediction.root_mean_squared_error(rows.y_true, rows.y_pred, rows.weights)


@metric_of(Numbers, "where y_true is zero in all rows")
def relative_error(rows: Numbers, *, zero: float = ZERO) -> float:
    """Compute the mean error relative to y_true, over rows where |y_true| is at least `zero`.

    scikit-learn's ``mean_absolute_percentage_error`` divides by a tiny number where y_true is 0,
    so that such rows decide alone.
    """
    is_nonzero = ~_is_zero(rows.y_true, _limit(zero))
    if not is_nonzero.any():
        return math.nan
    y_true, y_pred = rows.y_true[is_nonzero], rows.y_pred[is_nonzero]
    with np.errstate(over="ignore"):
        shares = _distance(y_true, y_pred) / np.abs(y_true)
    return _mean(shares, rows.weights[is_nonzero])


@metric_of(Numbers)
def relative_error_lenient(rows: Numbers, *, zero: float = ZERO) -> float:
    """Compute the mean error relative to the larger of the two numbers; at most 2.

    Distances below `zero` count as zero.
    """
    return _relative_error(rows, np.maximum, zero)


@metric_of(Numbers)
def relative_error_strict(rows: Numbers, *, zero: float = ZERO) -> float:
    """Compute the mean error relative to the smaller of the two numbers; infinite where one is 0.

    Numbers and distances below `zero` count as zero.
    """
    return _relative_error(rows, np.minimum, zero)


def _relative_error(rows: Numbers, of_the_two: Callable[..., Floats], zero: float) -> float:
    limit = _limit(zero)
    distance = _distance(rows.y_true, rows.y_pred)
    magnitude = of_the_two(np.abs(rows.y_true), np.abs(rows.y_pred))
    magnitude = np.where(_is_zero(magnitude, limit), 0.0, magnitude)
    shares, apart = np.zeros(len(distance)), ~_is_zero(distance, limit)
    with np.errstate(divide="ignore", over="ignore"):
        np.divide(distance, magnitude, out=shares, where=apart)
    return _mean(shares, rows.weights)


def _limit(zero: float) -> float:
    limit = as_numbers("zero", zero, low=0.0, remedy="Pass the least number that is not zero.")
    if limit.ndim:
        raise TypeError(f"zero must be a single number, got {zero!r}.")
    return float(limit)


def _is_zero(values: Floats, limit: float) -> NDArray[np.bool_]:
    return (np.abs(values) < limit) | (values == 0)


def _distance(y_true: Floats, y_pred: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.abs(y_true - y_pred)


@metric_of(Numbers, _NEVER_WRONG)
def normalized_absolute_error(rows: Numbers) -> float:
    """Compute the absolute error relative to that of the mean of y_true.

    scikit-learn's ``d2_absolute_error_score`` is 1 less the same with the median. RuleKit weighs y
    before it takes the mean from it.
    """
    errors, deviations = _beside_the_mean(rows)
    error, reference = (_mean(np.abs(x), rows.weights) for x in (errors, deviations))
    return _error_ratio(error, reference)


@metric_of(Numbers, _NEVER_WRONG)
def root_relative_squared_error(rows: Numbers) -> float:
    """Compute ``sqrt(1 - R²)``, the root of the relative squared error.

    RuleKit squares weights, and leaves them out of the mean.
    """
    errors, deviations = _beside_the_mean(rows)
    return _error_ratio(_norm(errors, rows.weights), _norm(deviations, rows.weights))


def _beside_the_mean(rows: Numbers) -> tuple[Floats, Floats]:
    """Compute the errors of the predictions and of the mean."""
    return rows.y_true - rows.y_pred, deviations_from_mean(rows.y_true, rows.weights)


def _norm(values: Floats, weights: Floats) -> float:
    return math.sqrt(_mean(values**2, weights))


def _error_ratio(error: float, reference: float) -> float:
    if reference:
        return error / reference
    return math.inf if error else math.nan


@metric_of(Numbers, _NO_CORRELATION)
def correlation(rows: Numbers, *, clip: bool = False) -> float:
    """Compute Pearson's correlation; ``clip=True`` replaces a negative one by 0 like RuleKit."""
    return _correlation(rows, clip)


@metric_of(Numbers, _NO_CORRELATION)
def squared_correlation(rows: Numbers, *, clip: bool = False) -> float:
    """Compute the squared correlation, which unlike R² ignores the scale of the predictions.

    ``clip=True`` has 0 where the correlation is negative, as RuleKit does.
    """
    return _correlation(rows, clip) ** 2


def _correlation(rows: Numbers, clip: bool) -> float:
    check_flag("clip", clip)
    y_true, y_pred = (
        deviations_from_mean(side, rows.weights) for side in (rows.y_true, rows.y_pred)
    )
    if not (y_true.any() and y_pred.any()):
        return math.nan
    deviations = [math.sqrt(_mean(side**2, rows.weights)) for side in (y_true, y_pred)]
    value = _mean(y_true * y_pred, rows.weights) / (deviations[0] * deviations[1])
    return min(max(value, 0.0 if clip else -1.0), 1.0)
