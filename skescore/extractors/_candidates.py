"""Boxes that may set some rows apart: around the densest parts of a Gaussian mixture."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from kneed import KneeLocator
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

from skescore.extractors._cluster_density import densest_cluster

CRITERIA = ("bic", "bic/m")
#: Steps of expectation maximisation; the likelihood is nearly at its maximum long before.
_MOST_ITERATIONS = 50
#: Variance added to every column in every component, in squared units: rows that are equal in
#: some columns must not become components of their own.
_ADDED_VARIANCE = 1e-4
#: Rows whose distances to neighbours make the curve that the first radius is read from.
_CURVE_ROWS = 1000
#: Rows of a component that are clustered; others go with the nearest of these.
_CLUSTERED_ROWS = 1500
#: Least first radius, in units of a typical deviation.
_LEAST_RADIUS = 1e-3


def mixture_components(
    table: np.ndarray, most: int, criterion: str, seed: int, unit: float = 1.0
) -> tuple[int, np.ndarray] | None:
    """Split rows into the components of the best Gaussian mixture.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        The rows.
    most : int
        Most components; from 2 on all numbers of them are tried.
    criterion : {"bic", "bic/m"}
        What is to be smallest: the Bayesian information criterion, or it divided by the number of
        components.
    seed : int
        Decides where the mixtures start from.
    unit : float, default=1.0
        A typical deviation of a column.

    Returns
    -------
    tuple of int and ndarray of int, or None
        Number of components and the component of each row; None where no mixture can be fitted.
    """
    best: tuple[float, Any] | None = None
    for n_components in range(2, min(most, len(table)) + 1):
        mixture = GaussianMixture(
            n_components,
            reg_covar=_ADDED_VARIANCE * unit**2,
            max_iter=_MOST_ITERATIONS,
            random_state=seed,
        )
        try:
            with warnings.catch_warnings():
                # Fewer distinct rows than components, or a likelihood that still grows a little.
                warnings.simplefilter("ignore", ConvergenceWarning)
                mixture.fit(table)
            score = float(mixture.bic(table))
        except ValueError:  # a component collapsed
            continue
        if criterion == "bic/m":
            score /= n_components
        if np.isfinite(score) and (best is None or score < best[0]):
            best = score, mixture
    if best is None:
        return None
    return best[1].n_components, best[1].predict(table)


def first_radius(table: np.ndarray, unit: float) -> float:
    """Radius at which the rows' density falls off: the knee of their distances to neighbours.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        The rows, at least one.
    unit : float
        A typical deviation, for the least radius where there is no knee.

    Returns
    -------
    float
        More than 0.
    """
    n_neighbors = min(2 * table.shape[1], len(table))
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(table)
    some = table[_evenly(len(table), _CURVE_ROWS)]
    curve = np.sort(search.kneighbors(some)[0].mean(axis=1))[::-1]
    knee = _knee(curve)
    return knee if knee > 0 else max(float(curve[-1]), _LEAST_RADIUS * unit)


def _knee(curve: np.ndarray) -> float:
    """Value at the knee of a descending curve; 0 where there is none."""
    if len(curve) < 3 or not curve[0] > curve[-1]:
        return 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # versions of the library warn that there is no knee
        found = KneeLocator(
            np.arange(len(curve)), curve, curve="convex", direction="decreasing", online=True
        ).knee_y
    return 0.0 if found is None else float(found)


def dense_parts(
    table: np.ndarray, n_features: int, most: int, criterion: str, seed: int, unit: float
) -> list[np.ndarray]:
    """Find the densest part of each component of a mixture.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        The rows: the features, then columns that describe the target.
    n_features : int
        How many columns are features; density is measured in them alone.
    most : int
        Most components.
    criterion : {"bic", "bic/m"}
        Chooses their number.
    seed : int
        Decides where the mixtures start from.
    unit : float
        A typical deviation of a column.

    Returns
    -------
    list of ndarray of int
        Positions of the rows of each part.
    """
    mixture = mixture_components(table, most, criterion, seed, unit)
    if mixture is None:
        return []
    n_components, component = mixture
    parts = []
    for number in range(n_components):
        rows = np.flatnonzero(component == number)
        if not len(rows):
            continue
        radius = first_radius(table[rows], unit)
        parts.append(rows[_densest(table[rows, :n_features], radius, n_components)])
    return parts


def _densest(points: np.ndarray, radius: float, most_labels: int) -> np.ndarray:
    chosen = _evenly(len(points), _CLUSTERED_ROWS)
    part = densest_cluster(points[chosen], radius, most_labels)
    if len(chosen) == len(points) or part.all():
        return np.ones(len(points), dtype=bool) if part.all() else part
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(points[chosen])
    return np.asarray(part[search.kneighbors(points, return_distance=False)[:, 0]])


def _evenly(n_rows: int, most: int) -> np.ndarray:
    """Up to so many rows, spread evenly."""
    return np.arange(n_rows) if n_rows <= most else np.linspace(0, n_rows - 1, most).astype(np.intp)
