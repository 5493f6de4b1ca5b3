"""Rows of tables: repetition by weight, selection, order by content, and averages."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from skescore._random import combine
from skescore._validation import row_weights

#: Mean number of repetitions per row if weights are not integers.
_PER_ROW = 4
#: Maximum number of repeated rows for which integer weights are used directly.
_MAX_ROWS = 5_000_000


def repeated_rows(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return the indices of rows, each repeated according to its weight.

    Parameters
    ----------
    sample_weight : array-like of shape (n_rows,)
        Nonnegative weights.
    n_rows : int
        The number of rows.

    Returns
    -------
    ndarray of int
        The indices in order.

    Raises
    ------
    ValueError
        If the weights do not fit the rows, are negative or not finite, or none is positive.

    Notes
    -----
    Integer weights with a sum of at most five million are used directly. Other weights are
    multiplied by a common factor :math:`f` and rounded: a row of weight :math:`w` is repeated
    :math:`wf` times, rounded to the nearest integer, and at least once if :math:`w > 0`. There are
    about :math:`4n` repeated rows. If the lightest row would count half a row or more, the factor
    is changed so that it counts an integer number of rows; there are then between :math:`8n/3` and
    :math:`8n` rows. The relative rounding error of a row of mean weight is at most 1/8 (3/16 with a
    changed factor), and 0 if all weights are equal.

    Examples
    --------
    >>> repeated_rows([2, 0, 1], 3).tolist()
    [0, 0, 2]
    """
    weights = row_weights(sample_weight, n_rows, finite_sum=False)
    if not weights.any():
        raise ValueError(
            f"sample_weight must hold a positive number, got {n_rows} zeros. Pass None for "
            "equal weights."
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not (weights == np.round(weights)).all() or total > _MAX_ROWS:
        weights = weights / weights.max()  # the sum of huge weights must not overflow
        factor, lightest = _PER_ROW * n_rows / weights.sum(), weights[weights > 0].min()
        if factor * lightest >= 0.5:  # often most rows have the smallest weight; it is not rounded
            factor = max(1, round(factor * lightest)) / lightest
        weights = np.where(weights > 0, np.maximum(1.0, np.round(weights * factor)), 0.0)
    return np.repeat(np.arange(n_rows), weights.astype(np.intp))


def take_rows(values: Any, row_index: np.ndarray) -> Any:
    """Return the rows at some indices, in the same type of container."""
    return _safe_indexing(
        values if hasattr(values, "__getitem__") else np.asarray(values), row_index
    )


def content_order(*columns: np.ndarray) -> np.ndarray:
    """Return an order of rows that depends only on their content.

    Rows are sorted by a hash of the ranks of their values. So the order is effectively random,
    equal rows are neighbors, and neither units nor the original order matter.

    Parameters
    ----------
    *columns : ndarray of shape (n_rows,)
        The columns of the table, without missing values.

    Returns
    -------
    ndarray of int, shape (n_rows,)
        Indices of the rows in this order.
    """
    keys = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        keys = combine(keys, np.unique(column, return_inverse=True)[1])
    return np.argsort(keys, kind="stable")


def scale_to_unit(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Divide numbers by a power of two near the largest, so that their squares do not overflow.

    The scaling is exact, so ratios do not change.

    Parameters
    ----------
    values : ndarray of float
        The numbers.

    Returns
    -------
    scaled : ndarray of float
        The numbers divided by ``2.0**exponent``, at most 1.
    exponent : int
        Exponent of the power of two.
    """
    exponent = int(np.frexp(np.abs(values).max(initial=0.0))[1])
    return np.asarray(np.ldexp(values, -exponent)), exponent


def scale_weights(weights: np.ndarray) -> np.ndarray:
    """Divide weights by a power of two near the largest; see :func:`scale_to_unit`."""
    return scale_to_unit(weights)[0]


def weighted_mean(values: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the weighted mean of numbers; the mean of equal numbers is exactly that number."""
    return float(values[0] if values.min() == values.max() else np.average(values, weights=weights))


def deviations_from_mean(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the deviations of numbers from their weighted mean; exactly 0 for equal numbers."""
    return np.asarray(values - weighted_mean(values, weights))
