"""Boxes that may set some rows apart: around the densest parts of a Gaussian mixture.

Where such a box ends hangs on a cluster's outermost rows, and not at all on what they answer; its
faces are therefore moved to where they set the answers apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from skescore.extractors._sharing import Sharing, once
from skescore.extractors.cream._cluster_density import densest_cluster
from skescore.extractors.cream._knee import knee_of
from skescore.extractors.cream._mixture import Mixture, fit_mixture

CRITERIA = ("bic", "bic/m")
#: Variance added to every column in every component, in squared units: rows that are equal in
#: some columns must not become components of their own.
_ADDED_VARIANCE = 1e-4
#: Rows that mixtures are fitted to; others go with the component that is likeliest.
_MIXTURE_ROWS = 1000
#: Rows whose distances to neighbours make the curve that the first radius is read from.
_CURVE_ROWS = 300
#: Rows of a component that are clustered; others go with the nearest of these.
_CLUSTERED_ROWS = 600
#: Least first radius, in units of a typical deviation.
_LEAST_RADIUS = 1e-3
#: Intervals of a feature, with equally many rows, whose borders are places for faces.
_INTERVALS = 32
#: Numbers worked on at a time.
_BLOCK = 1 << 20
#: A face is moved where that takes away this share of the scatter; so often, per feature.
_LEAST_GAIN, _MOST_MOVES = 0.002, 2


def mixture_components(
    table: np.ndarray,
    most: int,
    criterion: str,
    seed: int,
    unit: float = 1.0,
    sharing: Sharing | None = None,
) -> tuple[int, Mixture] | None:
    """Find the best Gaussian mixture.

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
    sharing : Sharing, optional
        Memory of what other searches in this table with this seed and unit have worked out.

    Returns
    -------
    tuple of int and Mixture, or None
        Number of components, and the mixture; None where none can be fitted.
    """
    some = table[_evenly(len(table), _MIXTURE_ROWS)]

    def judged(n_components: int) -> tuple[float, Mixture | None]:
        mixture = fit_mixture(some, n_components, _ADDED_VARIANCE * unit**2, seed)
        return (np.nan if mixture is None else mixture.bic(some)), mixture

    best: tuple[float, int, Mixture] | None = None
    for n_components in range(2, min(most, len(table)) + 1):
        score, mixture = once(sharing, ("mixture", n_components), partial(judged, n_components))
        if mixture is None:
            continue
        if criterion == "bic/m":
            score /= n_components
        if np.isfinite(score) and (best is None or score < best[0]):
            best = score, n_components, mixture
    if best is None:
        return None
    return best[1:]


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
    distances = cdist(table[_evenly(len(table), _CURVE_ROWS)], table)
    nearest = np.partition(distances, n_neighbors - 1, axis=1)[:, :n_neighbors]
    curve = np.sort(nearest.mean(axis=1))[::-1]
    return knee_of(curve) or max(float(curve[-1]), _LEAST_RADIUS * unit)


def dense_parts(
    table: np.ndarray,
    n_features: int,
    most: int,
    criterion: str,
    seed: int,
    unit: float,
    sharing: Sharing | None = None,
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
    sharing : Sharing, optional
        Memory of what other searches in this table with this seed and unit have worked out.

    Returns
    -------
    list of ndarray of int
        Positions of the rows of each part.
    """
    best = mixture_components(table, most, criterion, seed, unit, sharing)
    if best is None:
        return []
    n_components, mixture = best
    parts = once(
        sharing,
        ("dense parts", n_components),
        lambda: _dense_parts(table, n_features, n_components, mixture.components(table), unit),
    )
    return list(parts)


def _dense_parts(
    table: np.ndarray, n_features: int, n_components: int, component: np.ndarray, unit: float
) -> tuple[np.ndarray, ...]:
    parts = []
    for number in range(n_components):
        rows = np.flatnonzero(component == number)
        if not len(rows):
            continue
        # The radius of the rows that are clustered: fewer of them lie farther apart.
        some = rows[_evenly(len(rows), _CLUSTERED_ROWS)]
        radius = first_radius(table[some], unit)
        part = densest_cluster(table[some, :n_features], radius, n_components)
        parts.append(rows[_spread(part, table[some, :n_features], table[rows, :n_features])])
    return tuple(parts)


def _spread(part: np.ndarray, some: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Which points' nearest ones, among some of them, belong to a part."""
    if part.all():
        return np.ones(len(points), dtype=bool)
    if len(some) == len(points):
        return part
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(some)
    return np.asarray(part[search.kneighbors(points, return_distance=False)[:, 0]])


def _evenly(n_rows: int, most: int) -> np.ndarray:
    """Up to so many rows, spread evenly."""
    return np.arange(n_rows) if n_rows <= most else np.linspace(0, n_rows - 1, most).astype(np.intp)


class FaceMover:
    """Moves the faces of boxes to where they set the rows' targets apart.

    The box around a cluster reaches as far as the cluster's outermost rows, in every feature,
    whatever the target does there.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        The rows.
    moments : ndarray of shape (n_moments, n_rows)
        What the targets' scatter is computed from.
    scatter : callable
        Gives the scatter of sets of rows, given sums of moments along the last axis.
    inner_weight : float
        What scatter inside counts, that outside counting 1.
    """

    def __init__(
        self,
        features: np.ndarray,
        moments: np.ndarray,
        scatter: Callable[[np.ndarray], np.ndarray],
        inner_weight: float,
    ) -> None:
        self._scatter, self._moments, self._inner_weight = scatter, moments, inner_weight
        self._features, self._total = features, moments.sum(axis=1)
        n_rows, n_features = features.shape
        self._lowest: list[np.ndarray] = []  # of each feature: places for lower faces ...
        self._highest: list[np.ndarray] = []  # ... and for upper ones
        self._bins = np.empty((n_features, n_rows), dtype=np.intp)
        places = np.linspace(0, n_rows, _INTERVALS + 1)[1:-1].astype(np.intp)
        for j in range(n_features):
            ordered = np.sort(features[:, j])
            above = np.unique(ordered[places])
            above = above[above > ordered[0]]
            below = ordered[np.searchsorted(ordered, above) - 1]
            # Between neighbouring floats there is nothing, and half way is one of them.
            half = above / 2 + below / 2
            self._lowest.append(np.where(half > below, half, above))
            self._highest.append(np.where(half < above, half, below))
            self._bins[j] = j * _INTERVALS + np.searchsorted(above, features[:, j], side="right")
        self._first, self._last = np.triu_indices(_INTERVALS + 1, 1)
        self._whole = int((self._last - self._first).argmax())

    def move(
        self, lower: np.ndarray, upper: np.ndarray, outer_lower: np.ndarray, outer_upper: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Move the faces of a box, one feature after the other, as long as that is of use.

        Parameters
        ----------
        lower, upper : ndarray of shape (n_features,)
            The box.
        outer_lower, outer_upper : ndarray of shape (n_features,)
            The box that it lies in; a face there is none.

        Returns
        -------
        lower, upper : ndarray of shape (n_features,)
            The moved box.
        """
        lower, upper = lower.copy(), upper.copy()
        out = (self._features < lower) | (self._features > upper)
        n_out = out.sum(axis=1)
        scatter = float(self._both(self._moments[:, n_out == 0].sum(axis=1)))
        least = _LEAST_GAIN * float(self._scatter(self._total))
        for _ in range(_MOST_MOVES * len(lower)):
            possible = self._possible(out, n_out)
            j = int(possible.min(axis=1).argmin())
            # Of nearly equally good intervals the longest.
            close = np.flatnonzero(possible[j] <= possible[j].min() + least / 2)
            interval = int(close[(self._last - self._first)[close].argmax()])
            if not possible[j, interval] < scatter - least:
                # What may be left out one by one most often may be left out together.
                needless = possible[:, self._whole] <= scatter + 1e-9 * least
                inside = self._moments[:, ~out[:, ~needless].any(axis=1)].sum(axis=1)
                if inside[0] < len(out) and self._both(inside) <= scatter + 1e-6 * least:
                    lower[needless], upper[needless] = outer_lower[needless], outer_upper[needless]
                break
            scatter = float(possible[j, interval])
            first, last = self._first[interval], self._last[interval]
            n_places = len(self._lowest[j])
            lower[j] = self._lowest[j][first - 1] if first > 0 else outer_lower[j]
            upper[j] = self._highest[j][last - 1] if last <= n_places else outer_upper[j]
            n_out -= out[:, j]
            out[:, j] = (self._features[:, j] < lower[j]) | (self._features[:, j] > upper[j])
            n_out += out[:, j]
        return lower, upper

    def _possible(self, out: np.ndarray, n_out: np.ndarray) -> np.ndarray:
        """Scatter for every interval of every feature, the other features' faces staying."""
        sums = self._cumulated(out, n_out)
        scatter = np.empty((len(sums), len(self._first)))
        size = max(1, _BLOCK // (len(self._first) * sums.shape[2]))
        for begin in range(0, len(sums), size):
            some = slice(begin, begin + size)
            inside = sums[some, self._last] - sums[some, self._first]
            scatter[some] = self._both(inside)
            scatter[some][(inside[..., 0] < 1) | (inside[..., 0] > len(out) - 1)] = np.inf
        return scatter

    def _both(self, inside: np.ndarray) -> np.ndarray:
        """Weighted scatter inside and outside of boxes, given sums of moments inside."""
        return self._inner_weight * self._scatter(inside) + self._scatter(self._total - inside)

    def _cumulated(self, out: np.ndarray, n_out: np.ndarray) -> np.ndarray:
        """Sums of moments over rows in all faces but one feature's, by interval of the feature."""
        n_features = len(self._bins)
        inside = np.flatnonzero(n_out == 0)
        once = np.flatnonzero(n_out == 1)
        at = out[once].argmax(axis=1)
        places = np.concatenate([self._bins[:, inside].ravel(), self._bins[at, once]])
        size = n_features * _INTERVALS
        sums = np.zeros((n_features, _INTERVALS + 1, len(self._moments)))
        for k, moment in enumerate(self._moments):
            weights = np.concatenate([np.tile(moment[inside], n_features), moment[once]])
            counted = np.bincount(places, weights=weights, minlength=size)
            sums[:, 1:, k] = counted.reshape(n_features, _INTERVALS).cumsum(axis=1)
        return sums
