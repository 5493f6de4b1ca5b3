"""How much each feature has to do with the black box's predictions."""

from __future__ import annotations

import warnings
from collections.abc import Container
from typing import Any

import numpy as np
from scipy.stats import f
from sklearn.feature_selection import f_classif, f_regression

#: A feature that leaves less of the variance than this unexplained determines the predictions:
#: what is left is rounding.
_NOTHING = 1e-12


def feature_importances(X: np.ndarray, predictions: np.ndarray, task: str) -> np.ndarray:
    """Univariate F statistic of each feature against the predictions, over the largest.

    From 0 to 1; 0 for a constant feature, and everywhere if the predictions are all alike. A
    feature that determines them has an infinite F and gets 1, all others 0 then.
    """
    values, result = _standardised(X), np.zeros(X.shape[1])
    varies = values.any(axis=0)
    if not varies.any() or (predictions == predictions[0]).all():
        return result
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if task == "classification":
            n_groups = len(np.unique(predictions))
            degrees = (len(X) - n_groups) / (n_groups - 1)
            statistic, _ = f_classif(values[:, varies], predictions)
        else:
            degrees = len(X) - 2
            target = _standardised(predictions[:, None])[:, 0]
            statistic, _ = f_regression(values[:, varies], target, force_finite=False)
        explained = statistic / degrees  # over unexplained variance
    certain = ~(np.abs(explained) < 1 / _NOTHING)  # rounding may leave less than nothing
    if certain.any():
        result[varies] = certain
    elif (largest := explained.max()) > 0:
        result[varies] = np.maximum(explained, 0) / largest
    return result


def _standardised(columns: np.ndarray) -> np.ndarray:
    """Shift and scale columns to mean 0 and variance 1; those that are constant become 0.

    Sums of squares lose all digits where a feature lies far from 0.
    """
    lower, upper = columns.min(axis=0), columns.max(axis=0)
    width = (upper - lower) / 2
    shifted = columns - (upper + lower) / 2
    shifted /= np.where(width > 0, width, np.inf)
    shifted -= shifted.mean(axis=0)
    variance = np.einsum("ij,ij->j", shifted, shifted) / len(columns)
    return np.asarray(shifted / np.sqrt(np.where(variance > 0, variance, np.inf)))


def given_importances(importances: Any, n_features: int) -> np.ndarray:
    """Check importances that a user gives: one number per feature."""
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


#: Intervals of equally many rows in which the predictions of important features differ.
_INTERVALS = 8
#: Chance that any of the features that say nothing is taken for one that does.
_LEVEL = 0.05


def important_features(
    X: np.ndarray,
    predictions: np.ndarray,
    task: str,
    n: int | None,
    categories: Container[int] = (),
) -> np.ndarray:
    """Indices of at most `n` features that say most of the predictions, in order of columns.

    They are ranked by the share of the predictions' variance, or of their Gini impurity, that is
    between intervals of the feature with equally many rows each, or between its `categories`: so
    that features count along which predictions go up and down again. If some of them say
    significantly more than chance (F test, Bonferroni's correction), only those are taken. None, or
    as many as there are, stands for all features. Of equally important ones the first are taken.
    """
    n_rows, n_features = X.shape
    if n is None or n >= n_features:
        return np.arange(n_features)
    if task == "classification":
        columns = (predictions[:, None] == np.unique(predictions)).astype(float)
        columns -= columns.mean(axis=0)
    else:
        columns = _standardised(predictions[:, None])
    total = max(float((columns**2).sum()), np.finfo(float).tiny)
    borders = np.linspace(0, n_rows, _INTERVALS + 1)[1:-1].astype(np.intp)
    share, groups = np.empty(n_features), np.empty(n_features)
    for j, values in enumerate(X.T):
        edges = np.unique(values if j in categories else np.sort(values)[borders])
        group = np.searchsorted(edges, values, side="right")
        size = np.bincount(group)
        sums = np.array([np.bincount(group, column) for column in columns.T])
        share[j] = min((sums**2 / np.maximum(size, 1)).sum() / total, 1.0)
        groups[j] = np.count_nonzero(size)
    order = np.argsort(-np.round(share, 9), kind="stable")[:n]
    inner, outer = np.maximum(groups - 1, 1), np.maximum(n_rows - groups, 1)
    with np.errstate(divide="ignore"):
        chance = f.sf(share / inner / ((1 - share) / outer), inner, outer)
    telling = order[(chance * n_features < _LEVEL)[order] & (groups > 1)[order]]
    return np.sort(telling if len(telling) else order)
