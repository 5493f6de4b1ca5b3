"""Importance of features, and rules on a subset of the features."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats
from sklearn.feature_selection import f_classif, f_regression

from skescore._text import did_you_mean
from skescore._validation import check_integer
from skescore.rules import AtLeast, Domain, Linear, LinearOutput, RuleSet

# --- importance -----------------------------------------------------------------------------------

#: Share of unexplained variance below which a feature determines the predictions, up to rounding.
_UNEXPLAINED_TOLERANCE = 1e-12


def feature_importances(X: np.ndarray, predictions: np.ndarray, task: str) -> np.ndarray:
    """Return the univariate F statistic of each feature, divided by the largest.

    Values range from 0 to 1; they are 0 for constant features and for constant predictions. If some
    features determine the predictions, these get 1 and all others 0.
    """
    values, result = _standardize(X), np.zeros(X.shape[1])
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
            target = _standardize(predictions[:, None])[:, 0]
            statistic, _ = f_regression(values[:, varies], target, force_finite=False)
        explained = statistic / degrees  # ratio of explained and unexplained variance
    is_determining = ~(
        np.abs(explained) < 1 / _UNEXPLAINED_TOLERANCE
    )  # rounding may make the ratio negative
    if is_determining.any():
        result[varies] = is_determining
    elif (largest := explained.max()) > 0:
        result[varies] = np.maximum(explained, 0) / largest
    return result


def _standardize(columns: np.ndarray) -> np.ndarray:
    """Shift and scale columns to mean 0 and variance 1; constant columns become 0.

    Without the shift, sums of squares of features far from 0 would lose all precision.
    """
    lower, upper = columns.min(axis=0), columns.max(axis=0)
    width = (upper - lower) / 2
    shifted = columns - (upper + lower) / 2
    shifted /= np.where(width > 0, width, np.inf)
    shifted -= shifted.mean(axis=0)
    variance = np.einsum("ij,ij->j", shifted, shifted) / len(columns)
    return np.asarray(shifted / np.sqrt(np.where(variance > 0, variance, np.inf)))


def check_importances(importances: Any, n_features: int) -> np.ndarray:
    """Return the user's importances as an array; raise an error if they are invalid."""
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


#: Number of intervals with equally many rows between which predictions are compared.
_N_INTERVALS = 8
#: Family-wise error rate of the tests for important features.
_SIGNIFICANCE_LEVEL = 0.05


def important_features(
    X: np.ndarray,
    predictions: np.ndarray,
    task: str,
    n: int | None,
    categories: Container[int] = (),
) -> np.ndarray:
    """Return the indices of at most `n` most important features, in the order of columns.

    The importance is the share of the predictions' variance (or Gini impurity) between intervals of
    the feature with equally many rows, or between its `categories`, so it includes non-monotonic
    effects. If some features are significant (F test with Bonferroni correction), only those are
    returned. If n is None or at least the number of features, all are returned. Of equally
    important features, the first are returned.
    """
    n_rows, n_features = X.shape
    if n is None or n >= n_features:
        return np.arange(n_features)
    if task == "classification":
        columns = (predictions[:, None] == np.unique(predictions)).astype(float)
        columns -= columns.mean(axis=0)
    else:
        columns = _standardize(predictions[:, None])
    total = max(float((columns**2).sum()), np.finfo(float).tiny)
    borders = np.linspace(0, n_rows, _N_INTERVALS + 1)[1:-1].astype(np.intp)
    share, groups = np.empty(n_features), np.empty(n_features)
    for j, values in enumerate(X.T):
        edges = np.unique(values if j in categories else np.sort(values)[borders])
        group = np.searchsorted(edges, values, side="right")
        size = np.bincount(group)
        sums = np.array([np.bincount(group, column) for column in columns.T])
        share[j] = min((sums**2 / np.maximum(size, 1)).sum() / total, 1.0)
        groups[j] = np.count_nonzero(size)
    return _select_significant(share, groups, n_rows, n)


def important_histograms(
    weights: Sequence[np.ndarray],
    sums: Sequence[np.ndarray],
    total: float,
    n: int | None,
    categories: Container[int] = (),
) -> np.ndarray:
    """Return the most important features like :func:`important_features`, from histograms.

    Parameters
    ----------
    weights : sequence of ndarray of shape (n_bins,)
        Weight of the rows in each bin, per feature.
    sums : sequence of ndarray of shape (n_bins, n_sums)
        Sums of the predictions, or of the class indicators, in each bin, per feature.
    total : float
        Variance or Gini impurity of all rows, times their weight.
    n : int or None
        Largest number of features; None for all.
    categories : container of int, default=()
        Features whose bins are categories.

    Returns
    -------
    ndarray of int
        Indices of the features, in the order of columns.
    """
    if n is None or n >= len(weights):
        return np.arange(len(weights))
    all_rows = float(weights[0].sum())
    borders = np.floor(np.linspace(0, all_rows, _N_INTERVALS + 1)[1:-1])
    share, groups = np.empty(len(weights)), np.empty(len(weights))
    for j, (weight, values) in enumerate(zip(weights, sums, strict=True)):
        occupied_bins = np.flatnonzero(weight)
        edges = occupied_bins
        if j not in categories:
            edges = np.unique(np.searchsorted(np.cumsum(weight), borders, side="right"))
        group = np.searchsorted(edges, occupied_bins, side="right")
        size = np.bincount(group, weight[occupied_bins])
        deviation = values[occupied_bins] - weight[occupied_bins, None] * (
            values.sum(axis=0) / all_rows
        )
        group_sums = np.array([np.bincount(group, column) for column in deviation.T])
        occupied_groups = size > 0
        between = (group_sums[:, occupied_groups] ** 2 / size[occupied_groups]).sum()
        share[j] = min(between / max(total, np.finfo(float).tiny), 1.0)
        groups[j] = np.count_nonzero(occupied_groups)
    return _select_significant(share, groups, all_rows, n)


def _select_significant(share: np.ndarray, groups: np.ndarray, n_rows: float, n: int) -> np.ndarray:
    """Return the significant ones of the `n` features with the largest share, or all `n`."""
    n_features = len(share)
    order = np.argsort(-np.round(share, 9), kind="stable")[:n]
    inner, outer = np.maximum(groups - 1, 1), np.maximum(n_rows - groups, 1)
    with np.errstate(divide="ignore"):
        p_values = stats.f.sf(share / inner / ((1 - share) / outer), inner, outer)
    significant = order[(p_values * n_features < _SIGNIFICANCE_LEVEL)[order] & (groups > 1)[order]]
    return np.sort(significant if len(significant) else order)


# --- nearest rows ---------------------------------------------------------------------------------

#: Largest number of features for which a k-d tree is faster than computing all distances.
_MAX_TREE_FEATURES = 8
#: Number of distances that are computed at once; they fit into the CPU cache.
_MAX_DISTANCES = 262_144
#: Rounding errors of squared distances, relative to the squared size of the rows.
_ROUNDING = 1e-11


def nearest_row_search(rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that finds the nearest row of each point by Euclidean distance.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        The rows, without missing values.

    Returns
    -------
    callable
        Maps points of shape (n_points, n_features) to the indices of rows. With more than eight
        features, the first of equally near rows is chosen.

    Notes
    -----
    With many features, a k-d tree would visit almost all rows. A matrix product then gives all
    distances up to rounding errors. Rows that may be nearest within these errors are compared
    exactly, so the result does not depend on the order of additions in the product.

    Examples
    --------
    >>> import numpy as np
    >>> nearest = nearest_row_search(np.array([[0.0, 0.0], [1.0, 1.0]]))
    >>> nearest(np.array([[0.1, 0.2], [0.9, 0.4]])).tolist()
    [0, 1]
    """
    if rows.shape[1] <= _MAX_TREE_FEATURES:
        from scipy.spatial import cKDTree

        tree = cKDTree(rows)
        return lambda points: np.asarray(tree.query(points)[1], dtype=np.intp)
    center = rows.mean(axis=0)
    centered = rows - center
    sizes = (centered**2).sum(axis=1)

    def nearest(points: np.ndarray) -> np.ndarray:
        points = points - center
        step = max(1, _MAX_DISTANCES // len(rows))
        parts = [
            _nearest_rows(points[start : start + step], centered, sizes)
            for start in range(0, len(points), step)
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)

    return nearest


def _nearest_rows(points: np.ndarray, rows: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    distances = (-2 * points) @ rows.T
    distances += sizes  # squared distances minus the squared size of each point
    best = distances.argmin(axis=1)
    smallest = distances[np.arange(len(points)), best]
    largest = (points**2).sum(axis=1) + sizes.max()
    is_near = distances <= (smallest + _ROUNDING * largest)[:, np.newaxis]
    for i in np.flatnonzero(np.count_nonzero(is_near, axis=1) > 1):
        near = np.flatnonzero(is_near[i])
        exact = ((rows[near] - points[i]) ** 2).sum(axis=1)
        best[i] = near[exact.argmin()]
    return best


# --- rules on some features -----------------------------------------------------------------------


def feature_indices(features: Any, names: Sequence[str]) -> np.ndarray:
    """Return the sorted indices of columns given by name or index.

    Raises
    ------
    TypeError, ValueError
        If `features` is not a sequence of names and indices, is empty, or has an unknown column.
    """
    if isinstance(features, str | bytes) or not isinstance(features, Sequence | np.ndarray):
        raise TypeError(
            f"features must be None or a sequence of names or indices, got {features!r}. Pass a "
            "single feature as features=['age']."
        )
    names = [str(name) for name in names]
    chosen = set()
    for feature in features:
        if isinstance(feature, str):
            if feature not in names:
                raise ValueError(
                    f"features contains {feature!r}, which is not in X. "
                    f"{did_you_mean(feature, names)}"
                )
            chosen.add(names.index(feature))
        else:
            check_integer("features", feature, 0, len(names) - 1, remedy="Pass names or indices.")
            chosen.add(int(feature))
    if not chosen:
        raise ValueError("features must name at least one feature, got none. Pass None for all.")
    return np.array(sorted(chosen), dtype=np.intp)


def restrict_to_features(extraction: Any, chosen: np.ndarray) -> Any:
    """Restrict an Extraction to some features.

    In queried points, the other features take the values of the training row that is nearest in the
    chosen features.
    """
    X, settings = extraction.X, extraction.settings
    domain: Domain = settings["domain"]
    new_index = {int(j): k for k, j in enumerate(chosen)}
    extent = np.asarray(domain.upper) - np.asarray(domain.lower)
    scale = np.where(extent > 0, extent, 1.0)[chosen]
    nearest = nearest_row_search(np.nan_to_num(X[:, chosen]) / scale)

    def decode_filled(points: np.ndarray) -> Any:
        full_rows = X[nearest(np.nan_to_num(points) / scale)].copy()
        full_rows[:, chosen] = points
        return full_rows if extraction.decode is None else extraction.decode(full_rows)

    missing = np.asarray(domain.missing)[chosen].tolist()
    names = [settings["feature_names"][j] for j in chosen.tolist()]
    smaller = Domain(
        np.asarray(domain.lower)[chosen].tolist(),
        np.asarray(domain.upper)[chosen].tolist(),
        tuple((new_index[j], values) for j, values in domain.categories if j in new_index),
        missing,
    )
    return replace(
        extraction,
        X=np.ascontiguousarray(X[:, chosen]),
        settings=settings | {"feature_names": names, "domain": smaller},
        categories={new_index[j]: v for j, v in extraction.categories.items() if j in new_index},
        decode=decode_filled,
    )


def extend_to_all_features(
    ruleset: RuleSet, chosen: np.ndarray, settings: dict[str, Any]
) -> RuleSet:
    """Express rules on the chosen features as rules on all features."""
    original_index = chosen.tolist()

    def condition(part: Any) -> Any:
        if isinstance(part, AtLeast):
            return replace(part, conditions=tuple(map(condition, part.conditions)))
        if isinstance(part, Linear):
            return replace(part, terms=tuple((original_index[j], c) for j, c in part.terms))
        return replace(part, feature=original_index[part.feature])

    def output(part: Any) -> Any:
        if not isinstance(part, LinearOutput):
            return part
        return replace(part, terms=tuple((original_index[j], c) for j, c in part.terms))

    rules = [
        replace(rule, conditions=tuple(map(condition, rule.conditions)), output=output(rule.output))
        for rule in ruleset.rules
    ]
    return ruleset.replace(
        rules=rules, feature_names=settings["feature_names"], domain=settings["domain"]
    )
