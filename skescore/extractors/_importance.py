"""How much each feature has to do with the black box's answers."""

from __future__ import annotations

from typing import Any

import numpy as np

#: A feature that leaves less of the variance than this unexplained determines the answers: what
#: is left is rounding.
_NOTHING = 1e-12
#: Columns worked on at a time, which bounds the memory.
_COLUMNS = 8


def feature_importances(X: np.ndarray, answers: np.ndarray, task: str) -> np.ndarray:
    """Univariate F statistic of each feature against the answers, over the largest.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows.
    answers : ndarray of shape (n_rows,)
        Class indices or numbers.
    task : {"classification", "regression"}
        Analysis of variance, or linear regression.

    Returns
    -------
    ndarray of shape (n_features,)
        From 0 to 1; 0 for a constant feature, and everywhere if the answers are all alike. A
        feature that determines the answers has an infinite F and gets 1, all others 0 then.

    Notes
    -----
    With s the share of variance explained, F is s / (1 - s) times a number that is the same for
    all features. The shares are computed from standardised columns, since sums of squares lose
    all digits where a feature lies far from 0.
    """
    shares = np.zeros(X.shape[1])
    if (answers == answers[0]).all():
        return shares
    if task == "classification":
        groups = [np.flatnonzero(answers == g) for g in np.unique(answers)]
    else:
        target = _standardised(answers[:, None])[:, 0]
    for begin in range(0, X.shape[1], _COLUMNS):
        block = slice(begin, begin + _COLUMNS)
        values = _standardised(X[:, block])
        if task == "classification":
            explained = sum(values[g].sum(axis=0) ** 2 / len(g) for g in groups)
        else:
            explained = (target @ values) ** 2 / len(X)
        shares[block] = explained / len(X)
    unexplained = 1 - shares
    with np.errstate(divide="ignore"):
        result = shares / np.where(unexplained > _NOTHING, unexplained, 0)
    largest = result.max()
    if np.isinf(largest):
        return np.isinf(result).astype(float)
    return result / largest if largest > 0 else result


def _standardised(columns: np.ndarray) -> np.ndarray:
    """Shift and scale columns to mean 0 and variance 1; those that are constant become 0."""
    lower, upper = columns.min(axis=0), columns.max(axis=0)
    # Halves: the range of numbers near the largest float would overflow.
    width = upper / 2 - lower / 2
    shifted = columns - (upper / 2 + lower / 2)
    shifted /= np.where(width > 0, width, np.inf)
    shifted -= shifted.mean(axis=0)
    variance = np.einsum("ij,ij->j", shifted, shifted) / len(columns)
    shifted /= np.sqrt(np.where(variance > 0, variance, np.inf))
    return shifted


def given_importances(importances: Any, n_features: int) -> np.ndarray:
    """Check importances that a user gives.

    Parameters
    ----------
    importances : array-like of shape (n_features,)
        One number per feature.
    n_features : int
        Number of features.

    Returns
    -------
    ndarray of shape (n_features,)
        The importances as floats.

    Raises
    ------
    ValueError
        If they are not one number per feature.
    """
    try:
        result = np.asarray(importances, dtype=float)
    except (TypeError, ValueError):
        result = np.empty(0)
    if result.shape != (n_features,) or np.isnan(result).any():
        raise ValueError(
            f"importances must hold one number for each of the {n_features} features, got "
            f"{importances!r}."
        )
    return result
