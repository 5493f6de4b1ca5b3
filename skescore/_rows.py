"""Rows of tables: repeat them by weight, select them in their container, order them by content."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from skescore._random import combine
from skescore._validation import row_weights

#: Weights that are no whole numbers become so many rows, for each row that there is.
_PER_ROW = 4
#: More rows than this are too many to be repeated one by one.
_MOST_ROWS = 5_000_000


def repeated_rows(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Indices of rows, each as often as it weighs.

    Parameters
    ----------
    sample_weight : array-like of shape (n_rows,)
        The weights, not negative.
    n_rows : int
        The number of rows.

    Returns
    -------
    ndarray of int
        In order.

    Raises
    ------
    ValueError
        If the weights do not fit the rows, are negative or not finite, or none is positive.

    Notes
    -----
    Whole numbers that add up to at most five million are taken as they are. Others are multiplied
    by one number :math:`f` and rounded: a row of weight :math:`w` is there :math:`wf` times, half a
    row more or less, and at least once if :math:`w > 0`. The weights of all rows add up to
    :math:`4n` rows then, or, where the lightest row weighs half a row or more, to between
    :math:`8n/3` and :math:`8n`, so that the lightest rows weigh whole rows. A row of mean weight is
    thus off by at most an eighth (3/16) of it, and rows that all weigh alike by nothing.

    Examples
    --------
    >>> repeated_rows([2, 0, 1], 3).tolist()
    [0, 0, 2]
    """
    weights = row_weights(sample_weight, n_rows)
    if not weights.any():
        raise ValueError(
            f"sample_weight must hold a positive number, got {n_rows} zeros. Pass None to weigh "
            "all rows alike."
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not (weights == np.round(weights)).all() or total > _MOST_ROWS:
        weights = weights / weights.max()  # the sum of huge weights must not overflow
        factor, least = _PER_ROW * n_rows / weights.sum(), weights[weights > 0].min()
        if factor * least >= 0.5:  # the smallest, of which most rows may be, without rounding
            factor = max(1, round(factor * least)) / least
        weights = np.where(weights > 0, np.maximum(1.0, np.round(weights * factor)), 0.0)
    return np.repeat(np.arange(n_rows), weights.astype(np.intp))


def take_rows(values: Any, places: np.ndarray) -> Any:
    """Take some rows, in the container that they come in."""
    return _safe_indexing(values if hasattr(values, "__getitem__") else np.asarray(values), places)


def content_order(*columns: np.ndarray) -> np.ndarray:
    """Return an order of rows that depends on their content alone.

    Rows are sorted by a hash of the ranks of their values, so that the order is as good as random,
    equal rows are neighbors, and neither the units nor the given order of the rows matter.

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
