"""Measures of answered numbers beside what a constant would answer: errors and correlations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skescore.metrics._rows import (
    Floats,
    Numbers,
    check_undefined,
    mean,
    undefined_value,
)

__all__ = [
    "correlation",
    "normalized_absolute_error",
    "root_relative_squared_error",
    "squared_correlation",
]

# --- relative to what a constant answer would have ------------------------------------------------


def normalized_absolute_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, undefined: float = math.nan
) -> float:
    """Absolute error as a share of the one that the mean of the truth would make.

    Parameters
    ----------
    y_true, y_pred : array-like of float, shape (n_rows,)
        The truth and the answers.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive.
    undefined : float, default=NaN
        The value if the truth never varies and the answers are right; NaN comes with an
        ``UndefinedMetricWarning``.

    Returns
    -------
    float
        The error, 0 at best, 1 for the mean of the truth; infinity if the truth never varies and
        some answer is wrong.

    Raises
    ------
    ValueError
        If there are no rows, or something is not finite.
    TypeError
        If something is no number.

    Notes
    -----
    ``sum |y - z| / sum |y - mean(y)|``. scikit-learn's ``d2_absolute_error_score`` is 1 less the
    same with the median. A weight of 2 is a row given twice here; RuleKit weighs y before it takes
    the mean from it.

    Examples
    --------
    >>> normalized_absolute_error([1.0, 2.0, 3.0], [1.0, 2.0, 2.0])
    0.5
    """
    check_undefined(undefined)
    errors, deviations, weights = _beside_the_mean(y_true, y_pred, sample_weight)
    ratio = _error_ratio(mean(np.abs(errors), weights), mean(np.abs(deviations), weights))
    if math.isnan(ratio):
        return undefined_value(undefined, _NEVER_WRONG.format("normalized_absolute_error"))
    return ratio


def root_relative_squared_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, undefined: float = math.nan
) -> float:
    """Root of the squared error as a share of the one that the mean of the truth would make.

    Parameters
    ----------
    y_true, y_pred : array-like of float, shape (n_rows,)
        The truth and the answers.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive.
    undefined : float, default=NaN
        The value if the truth never varies and the answers are right; NaN comes with an
        ``UndefinedMetricWarning``.

    Returns
    -------
    float
        The error, 0 at best, 1 for the mean of the truth; infinity if the truth never varies and
        some answer is wrong.

    Raises
    ------
    ValueError
        If there are no rows, or something is not finite.
    TypeError
        If something is no number.

    Notes
    -----
    ``sqrt(sum (y - z)² / sum (y - mean(y))²)``, which is ``sqrt(1 - R²)``. A weight of 2 is a row
    given twice here; RuleKit squares weights, and leaves them out of the mean.

    Examples
    --------
    >>> round(root_relative_squared_error([1.0, 2.0, 3.0], [1.0, 2.0, 2.0]), 6)
    0.707107
    """
    check_undefined(undefined)
    errors, deviations, weights = _beside_the_mean(y_true, y_pred, sample_weight)
    ratio = _error_ratio(_norm(errors, weights), _norm(deviations, weights))
    if math.isnan(ratio):
        return undefined_value(undefined, _NEVER_WRONG.format("root_relative_squared_error"))
    return ratio


_NEVER_WRONG = "{} is undefined where the truth never varies and is always answered."


def _beside_the_mean(y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
    """Errors of the answers and of the mean, in a unit in which squares are no trouble."""
    rows = Numbers.of(y_true, y_pred, sample_weight)
    unit = _unit(np.concatenate([rows.truth, rows.answers]))
    truth, answers = rows.truth / unit, rows.answers / unit
    return truth - answers, _centred(truth, rows.weights), rows.weights


def _unit(values: Floats) -> float:
    """A power of two, so that no digit is lost, near the largest number."""
    return float(np.ldexp(1.0, max(int(np.frexp(np.abs(values).max())[1]) - 1, -1022)))


def _centred(values: Floats, weights: Floats) -> Floats:
    """Deviations from the mean, none at all for equal numbers, whatever the last bit of it is."""
    if values.min() == values.max():
        return np.zeros(len(values))
    return np.asarray(values - np.average(values, weights=weights))


def _norm(values: Floats, weights: Floats) -> float:
    unit = _unit(values)
    return unit * math.sqrt(mean((values / unit) ** 2, weights))


def _error_ratio(error: float, reference: float) -> float:
    if reference:
        return error / reference
    return math.inf if error else math.nan


# --- how answers follow the truth -----------------------------------------------------------------


def correlation(
    y_true: Any,
    y_pred: Any,
    *,
    clip: bool = False,
    sample_weight: Any = None,
    undefined: float = math.nan,
) -> float:
    """Pearson's correlation of the answers with the truth.

    Parameters
    ----------
    y_true, y_pred : array-like of float, shape (n_rows,)
        The truth and the answers.
    clip : bool, default=False
        True has 0 in place of a negative correlation.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive.
    undefined : float, default=NaN
        The value if the truth or the answers never vary; NaN comes with an
        ``UndefinedMetricWarning``.

    Returns
    -------
    float
        Between -1 and 1, whatever the units of the answers are.

    Raises
    ------
    ValueError
        If there are no rows, or something is not finite.
    TypeError
        If something is no number.

    Notes
    -----
    RuleKit has 0 for negative correlations and where there is none: ``clip=True, undefined=0.0``.

    Examples
    --------
    >>> correlation([1.0, 2.0, 3.0], [30.0, 20.0, 10.0])
    -1.0
    >>> correlation([1.0, 2.0, 3.0], [30.0, 20.0, 10.0], clip=True)
    0.0
    """
    value = _correlation(y_true, y_pred, clip, sample_weight, undefined)
    if math.isnan(value):
        return undefined_value(undefined, _NO_CORRELATION.format("correlation"))
    return value


def squared_correlation(
    y_true: Any,
    y_pred: Any,
    *,
    clip: bool = False,
    sample_weight: Any = None,
    undefined: float = math.nan,
) -> float:
    """Square of Pearson's correlation of the answers with the truth.

    It is not R², which also wants the answers to have the right size.

    Parameters
    ----------
    y_true, y_pred : array-like of float, shape (n_rows,)
        The truth and the answers.
    clip : bool, default=False
        True has 0 where the correlation is negative, so that answers in the wrong direction are not
        rewarded.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive.
    undefined : float, default=NaN
        The value if the truth or the answers never vary; NaN comes with an
        ``UndefinedMetricWarning``.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        If there are no rows, or something is not finite.
    TypeError
        If something is no number.

    Notes
    -----
    RuleKit has 0 for negative correlations and where there is none: ``clip=True, undefined=0.0``.

    Examples
    --------
    >>> squared_correlation([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])
    1.0
    """
    value = _correlation(y_true, y_pred, clip, sample_weight, undefined)
    if math.isnan(value):
        return undefined_value(undefined, _NO_CORRELATION.format("squared_correlation"))
    return value**2


_NO_CORRELATION = "{} is undefined where the truth or the answers never vary."


def _correlation(
    y_true: Any, y_pred: Any, clip: bool, sample_weight: Any, undefined: float
) -> float:
    if not isinstance(clip, bool):
        raise TypeError(f"clip must be True or False, got {clip!r}.")
    check_undefined(undefined)
    rows = Numbers.of(y_true, y_pred, sample_weight)
    sides = [_centred(side / _unit(side), rows.weights) for side in (rows.truth, rows.answers)]
    truth, answers = (side / _unit(side) for side in sides)
    if not (truth.any() and answers.any()):
        return math.nan
    spreads = [math.sqrt(mean(side**2, rows.weights)) for side in (truth, answers)]
    value = mean(truth * answers, rows.weights) / (spreads[0] * spreads[1])
    return min(max(value, 0.0 if clip else -1.0), 1.0)
