"""What to compare a row with: the nearest row that the model decides otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore.attribution._bits import as_whole
from skescore.attribution._contrasts import joined, parts
from skescore.attribution._decisions import as_decide

__all__ = ["nearest_contrasts", "nearest_rows", "taken"]

#: Distances that are alive at a time.
_CELLS = 1 << 24


def nearest_contrasts(model: Any, X: Any, background: Any, *, max_batch: int = 8192) -> Any:
    """Find for each row the nearest background row with another decision.

    Use it for the `contrast` of `responsibility`: the degrees then tell which features separate a
    row from the closest case that was decided otherwise. A typical row of one class, or a median,
    may be decided as the row is, and then there may be nothing to explain.

    Parameters
    ----------
    model : Formula, estimator or callable
        What decides, as in `responsibility`.
    X : array-like or DataFrame, shape (n_rows, n_features)
        The rows.
    background : array-like or DataFrame, shape (n_background, n_features)
        Where to look, such as the training rows.
    max_batch : int, default=8192
        How many rows the model is asked about at once, at most.

    Returns
    -------
    ndarray or DataFrame, shape (n_rows, n_features)
        One background row for each row. Of several nearest ones it is the first.

    Raises
    ------
    ValueError
        If the background decides every row as a row of `X` is decided, or columns do not fit.

    Notes
    -----
    The distance is the sum of absolute differences of numbers, each in standard deviations of the
    background, and of one for each column of names that differs.

    Examples
    --------
    >>> from skescore.attribution import nearest_contrasts, responsibility
    >>> def approved(X):
    ...     return (X[:, 0] > 50) & (X[:, 1] < 10)
    >>> background = [[60, 5, 1], [45, 9, 2], [52, 12, 3], [20, 30, 4]]
    >>> contrast = nearest_contrasts(approved, [[58, 8, 1]], background)
    >>> contrast.tolist()
    [[45, 9, 2]]
    >>> responsibility(approved, [[58, 8, 1]], contrast=contrast).tolist()
    [[1.0, 0.0, 0.0]]
    """
    max_batch = as_whole("max_batch", max_batch, low=1, remedy="8192 is the default.")
    rows = X if isinstance(X, pd.DataFrame) else np.asarray(X)
    if rows.ndim != 2 or len(rows) == 0:
        raise ValueError(
            f"X must be rows of features, got shape {rows.shape!r}. Pass one row as row[None, :]."
        )
    both, chosen, _ = nearest_rows(model, rows, background, max_batch)
    return taken(both, chosen[:, 0])


def taken(table: Any, places: NDArray[np.int64]) -> Any:
    """Give some rows of a table, which may be a frame.

    Parameters
    ----------
    table : ndarray or DataFrame
        The table.
    places : ndarray of int
        Numbers of the rows.

    Returns
    -------
    ndarray or DataFrame
        The rows; those of a frame are numbered from 0.
    """
    if isinstance(table, pd.DataFrame):
        return table.iloc[places].reset_index(drop=True)
    return table[places]


def nearest_rows(
    model: Any, X: Any, background: Any, max_batch: int, n_nearest: int = 1
) -> tuple[Any, NDArray[np.int64], int]:
    """Find for each row the nearest background rows with another decision.

    Numbers are compared in units of their standard deviation over the background, anything else
    by whether it is the same.

    Parameters
    ----------
    model : estimator or callable
        What decides.
    X, background : array-like or DataFrame
        The rows, and where to look.
    max_batch : int
        Rows asked for at once, at most.
    n_nearest : int, default=1
        How many, at most.

    Returns
    -------
    both : array or DataFrame
        The rows and the background in one table.
    chosen : ndarray of int, shape (n_rows, n_nearest)
        Numbers of the found rows in it, nearest first; -1 where there are no more.
    asked : int
        How many rows the model answered.

    Raises
    ------
    ValueError
        If all of the background has the decision of some row.
    """
    both, n_rows = joined(X, background)
    decide = as_decide(model)
    framed = isinstance(both, pd.DataFrame)
    answers = [
        decide(both.iloc[start:stop] if framed else both[start:stop])
        for start, stop in parts(len(both), max_batch)
    ]
    labels = np.concatenate(answers)
    columns = [both.iloc[:, j] if framed else pd.Series(both[:, j]) for j in range(both.shape[1])]
    coded = []
    for column in columns:
        if pd.api.types.is_numeric_dtype(column.dtype):
            numbers = column.to_numpy(dtype=float, na_value=np.nan)
            spread = float(np.nanstd(numbers[n_rows:])) if len(numbers) > n_rows else 0.0
            coded.append((True, numbers / (spread if spread > 0 else 1.0)))
        else:
            coded.append((False, pd.factorize(column, use_na_sentinel=False)[0].astype(float)))
    others = np.arange(n_rows, len(both))
    chosen = np.full((n_rows, n_nearest), -1, dtype=np.int64)
    for start, stop in parts(n_rows, _CELLS // max(1, len(others))):
        distance = np.zeros((stop - start, len(others)))
        for numeric, values in coded:
            apart = np.abs(values[start:stop, None] - values[others])
            # What is missing on one side only is as different as another category.
            unknown = np.isnan(values[start:stop, None]) != np.isnan(values[others])
            apart = np.where(np.isnan(apart), unknown, apart)
            distance += apart if numeric else apart > 0
        distance[labels[start:stop, None] == labels[others]] = np.inf
        alone = np.isinf(distance).all(axis=1)
        if alone.any():
            row = start + int(np.argmax(alone))
            raise ValueError(
                f"background must have a row with another decision than row {row} of X, got "
                f"{labels[[row]].tolist()[0]!r} in all {len(others)}. Pass more rows, or contrast=."
            )
        order = np.argsort(distance, axis=1, kind="stable")[:, :n_nearest]
        there = np.isfinite(np.take_along_axis(distance, order, axis=1))
        chosen[start:stop, : order.shape[1]] = np.where(there, others[order], -1)
    return both, chosen, len(both)
