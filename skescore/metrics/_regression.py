"""Measures of answered numbers beside what a constant would answer: errors and correlations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from skescore.metrics._arguments import as_numbers
from skescore.metrics._rows import Floats, Numbers, check_undefined, mean, undefined_value

__all__ = [
    "absolute_error",
    "correlation",
    "normalized_absolute_error",
    "relative_error",
    "relative_error_lenient",
    "relative_error_strict",
    "root_mean_squared_error",
    "root_relative_squared_error",
    "squared_correlation",
    "squared_error",
]


# --- measures of answered numbers: how far they lie from the truth, also as a share of it --------

#: Numbers nearer to zero than this are zero to relative errors, as they are in RuleKit.
ZERO = 1e-6


# --- distances: scikit-learn's own ----------------------------------------------------------------


def absolute_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, undefined: float = math.nan
) -> float:
    """Mean distance of the answers from the truth: scikit-learn's ``mean_absolute_error``.

    Parameters
    ----------
    y_true, y_pred : array-like of float, shape (n_rows,)
        The truth and the answers.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive.
    undefined : float, default=NaN
        Taken for the sake of the other measures; this one always has a value.

    Returns
    -------
    float
        The error, 0 at best.

    Raises
    ------
    ValueError
        If there are no rows, or something is not finite.
    TypeError
        If something is no number.

    Examples
    --------
    >>> absolute_error([1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    1.0
    """
    return _distance(sk.mean_absolute_error, y_true, y_pred, sample_weight, undefined)


def squared_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, undefined: float = math.nan
) -> float:
    """Mean squared distance from the truth: scikit-learn's ``mean_squared_error``.

    Parameters and errors are those of :func:`absolute_error`.

    Examples
    --------
    >>> squared_error([1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    1.6666666666666667
    """
    return _distance(sk.mean_squared_error, y_true, y_pred, sample_weight, undefined)


def root_mean_squared_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, undefined: float = math.nan
) -> float:
    """Root of the mean squared distance: scikit-learn's ``root_mean_squared_error``.

    Parameters and errors are those of :func:`absolute_error`.

    Examples
    --------
    >>> root_mean_squared_error([1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    1.2909944487358056
    """
    return _distance(sk.root_mean_squared_error, y_true, y_pred, sample_weight, undefined)


def _distance(
    function: Any, y_true: Any, y_pred: Any, sample_weight: Any, undefined: float
) -> float:
    check_undefined(undefined)
    rows = Numbers.of(y_true, y_pred, sample_weight)
    with np.errstate(over="ignore"):  # an error too large for a float is infinite
        return float(function(rows.truth, rows.answers, sample_weight=rows.weights))


# --- relative to the numbers themselves -----------------------------------------------------------


def relative_error(
    y_true: Any,
    y_pred: Any,
    *,
    zero: float = ZERO,
    sample_weight: Any = None,
    undefined: float = math.nan,
) -> float:
    """Mean distance from the truth as a share of it; rows whose truth is zero are left out.

    Parameters
    ----------
    y_true, y_pred : array-like of float, shape (n_rows,)
        The truth and the answers.
    zero : float, default=1e-6
        Numbers nearer to zero than this count as zero; 0.0 for none but zero itself.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive.
    undefined : float, default=NaN
        The value if the truth is zero in all rows; NaN comes with an ``UndefinedMetricWarning``.

    Returns
    -------
    float
        The error, 0 at best.

    Raises
    ------
    ValueError
        If there are no rows, or something is not finite.
    TypeError
        If something is no number.

    Notes
    -----
    The mean of ``|y - z| / |y|``. scikit-learn's ``mean_absolute_percentage_error`` divides by a
    tiny number where the truth is zero, so that such rows decide alone.

    Examples
    --------
    >>> relative_error([0.0, 2.0, 4.0], [1.0, 3.0, 4.0])
    0.25
    """
    check_undefined(undefined)
    rows, limit = Numbers.of(y_true, y_pred, sample_weight), _limit(zero)
    kept = ~_is_zero(rows.truth, limit)
    if not kept.any():
        why = f"relative_error is undefined: the truth is zero in all {len(kept)} rows."
        return undefined_value(undefined, why)
    truth, answers = rows.truth[kept], rows.answers[kept]
    with np.errstate(over="ignore"):
        shares = _apart(truth, answers) / np.abs(truth)
    return mean(shares, rows.weights[kept])


def relative_error_lenient(
    y_true: Any,
    y_pred: Any,
    *,
    zero: float = ZERO,
    sample_weight: Any = None,
    undefined: float = math.nan,
) -> float:
    """Mean distance from the truth as a share of the greater of the two.

    Parameters
    ----------
    y_true, y_pred : array-like of float, shape (n_rows,)
        The truth and the answers.
    zero : float, default=1e-6
        Distances below this count as zero; 0.0 for none but zero itself.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive.
    undefined : float, default=NaN
        Taken for the sake of the other measures; this one always has a value.

    Returns
    -------
    float
        The error, 0 at best and 2 at worst, where signs differ.

    Raises
    ------
    ValueError
        If there are no rows, or something is not finite.
    TypeError
        If something is no number.

    Notes
    -----
    The mean of ``|y - z| / max(|y|, |z|)``, 0 where the distance is zero.

    Examples
    --------
    >>> relative_error_lenient([0.0, 2.0, 4.0], [0.0, 1.0, 4.0])
    0.16666666666666666
    """
    return _relative(np.maximum, y_true, y_pred, zero, sample_weight, undefined)


def relative_error_strict(
    y_true: Any,
    y_pred: Any,
    *,
    zero: float = ZERO,
    sample_weight: Any = None,
    undefined: float = math.nan,
) -> float:
    """Mean distance from the truth as a share of the smaller of the two.

    Parameters
    ----------
    y_true, y_pred : array-like of float, shape (n_rows,)
        The truth and the answers.
    zero : float, default=1e-6
        Numbers and distances below this count as zero; 0.0 for none but zero itself.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive.
    undefined : float, default=NaN
        Taken for the sake of the other measures; this one always has a value.

    Returns
    -------
    float
        The error, 0 at best; infinity where a zero stands for another number or the reverse.

    Raises
    ------
    ValueError
        If there are no rows, or something is not finite.
    TypeError
        If something is no number.

    Notes
    -----
    The mean of ``|y - z| / min(|y|, |z|)``, 0 where the distance is zero.

    Examples
    --------
    >>> relative_error_strict([0.0, 2.0, 4.0], [0.0, 1.0, 4.0])
    0.3333333333333333
    """
    return _relative(np.minimum, y_true, y_pred, zero, sample_weight, undefined)


def _relative(
    of_the_two: Any, y_true: Any, y_pred: Any, zero: float, sample_weight: Any, undefined: float
) -> float:
    check_undefined(undefined)
    rows, limit = Numbers.of(y_true, y_pred, sample_weight), _limit(zero)
    apart = _apart(rows.truth, rows.answers)
    whole = of_the_two(np.abs(rows.truth), np.abs(rows.answers))
    whole = np.where(_is_zero(whole, limit), 0.0, whole)
    with np.errstate(divide="ignore", over="ignore"):
        shares = np.divide(apart, whole, out=np.zeros(len(apart)), where=~_is_zero(apart, limit))
    return mean(shares, rows.weights)


def _limit(zero: float) -> float:
    limit = as_numbers("zero", zero, low=0.0, remedy="Pass the least number that is not zero.")
    if limit.ndim:
        raise TypeError(f"zero must be a single number, got {zero!r}.")
    return float(limit)


def _is_zero(values: Floats, limit: float) -> NDArray[np.bool_]:
    return (np.abs(values) < limit) | (values == 0)


def _apart(truth: Floats, answers: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.abs(truth - answers)


# --- Measures of answered numbers beside what a constant would answer: errors and correla --------

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
