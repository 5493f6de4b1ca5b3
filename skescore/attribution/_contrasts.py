"""Rows beside the explained ones: backgrounds, typical rows, and numbers that stand for rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore.attribution._refinement import mixed

__all__ = ["joined", "parts", "row_keys", "typical_row", "with_threshold"]


def parts(n: int, length: int) -> list[tuple[int, int]]:
    """Cut 0, 1, ..., n - 1 into parts of a length.

    Parameters
    ----------
    n, length : int
        How many, and how many at a time.

    Returns
    -------
    list of (int, int)
        Start and stop of each part.
    """
    length = max(1, length)
    return [(start, min(start + length, n)) for start in range(0, n, length)]


def joined(X: Any, background: Any) -> tuple[Any, int]:
    """Put rows and background into one table.

    Parameters
    ----------
    X, background : array-like or DataFrame
        The rows.

    Returns
    -------
    tuple of (array or DataFrame, int)
        The table, and how many of its rows are those of `X`.

    Raises
    ------
    ValueError
        If they have not the same columns, or there is no background.
    """
    if isinstance(X, pd.DataFrame):
        others = background
        if not isinstance(others, pd.DataFrame):
            others = pd.DataFrame(np.atleast_2d(np.asarray(background)))
            if others.shape[1] == X.shape[1]:
                others.columns = X.columns
        missing = [name for name in X.columns if name not in set(others.columns)]
        if missing:
            raise ValueError(
                f"background must have the columns of X, got none named {missing[0]!r}. Pass rows "
                "of the same table."
            )
        others = others[list(X.columns)]
    else:
        others = np.atleast_2d(np.asarray(background))
        if others.shape[1] != X.shape[1]:
            raise ValueError(
                f"background must be rows of {X.shape[1]} features, got shape {others.shape!r}. "
                "Pass rows such as those the model was fitted on."
            )
    if len(others) == 0:
        raise ValueError("background must have a row, got none. Pass some training rows.")
    if isinstance(X, pd.DataFrame):
        return pd.concat([X, others], ignore_index=True), len(X)
    if X.dtype.kind in "OUS" or others.dtype.kind in "OUS":
        return np.concatenate([X.astype(object), others.astype(object)]), len(X)
    return np.concatenate([X, others]), len(X)


def typical_row(background: Any, how: str) -> Any:
    """Give the mean, median or most frequent value of each column.

    Parameters
    ----------
    background : array-like or DataFrame
        Rows.
    how : {"mean", "median", "mode"}
        What is typical. Columns that are no numbers have their mode.

    Returns
    -------
    ndarray or DataFrame
        One row.
    """
    framed = isinstance(background, pd.DataFrame)
    frame = background if framed else pd.DataFrame(np.asarray(background))
    values = {}
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        numeric = pd.api.types.is_numeric_dtype(column.dtype)
        if how != "mode" and numeric and not pd.api.types.is_bool_dtype(column.dtype):
            values[name] = [column.mean() if how == "mean" else column.median()]
        else:
            values[name] = [column.mode().iloc[0]]
    row = pd.DataFrame(values)
    return row if framed else row.to_numpy()[0]


def row_keys(X: Any, seed: int) -> NDArray[np.uint64]:
    """Give a number to each row that depends on its values alone, and on the seed.

    Parameters
    ----------
    X : ndarray or DataFrame
        The rows.
    seed : int
        The seed.

    Returns
    -------
    ndarray of uint64, shape (n_rows,)
        The numbers.
    """
    values = X.to_numpy() if isinstance(X, pd.DataFrame) else X
    keys = np.full(len(X), seed, dtype=np.uint64)
    if values.dtype.kind == "O":
        columns = [pd.Series(values[:, j]) for j in range(values.shape[1])]
        words = [pd.util.hash_array(c.to_numpy(), categorize=False) for c in columns]
    else:
        numbers = values.astype(np.float64) + 0.0  # there is one zero
        words = list(np.ascontiguousarray(numbers.T).view(np.uint64))
    for word in words:
        keys = mixed(keys ^ mixed(np.asarray(word, dtype=np.uint64)))
    return keys


def with_threshold(model: Any, threshold: float) -> Any:
    """Make the decision of a model "undecided" where its best class is not probable enough.

    Parameters
    ----------
    model : estimator or callable
        A classifier with ``predict_proba``, or a function that gives probabilities per class.
    threshold : float
        Least probability of a decision.

    Returns
    -------
    callable
        From rows to numbers of classes; one more stands for undecided.
    """
    ask = getattr(model, "predict_proba", model)
    if not callable(ask):
        raise TypeError(
            f"threshold needs a model with predict_proba, got {model!r}. Pass a function that "
            "gives one column of probabilities per class, or no threshold."
        )

    def decide(rows: Any) -> NDArray[np.int64]:
        scores = np.asarray(ask(rows), dtype=float)
        if scores.ndim != 2 or not np.isfinite(scores).all():
            raise ValueError(
                f"threshold needs finite probabilities per class, got shape {scores.shape!r}. "
                "Leave it out to compare labels."
            )
        best = scores.argmax(axis=1)
        return np.where(scores.max(axis=1) >= threshold, best, scores.shape[1])

    return decide
