"""Measures of answered numbers: how far they lie from the truth, also as a share of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from skescore.metrics._arguments import as_numbers
from skescore.metrics._rows import (
    Floats,
    Numbers,
    check_undefined,
    mean,
    undefined_value,
)

__all__ = [
    "absolute_error",
    "relative_error",
    "relative_error_lenient",
    "relative_error_strict",
    "root_mean_squared_error",
    "squared_error",
]

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
