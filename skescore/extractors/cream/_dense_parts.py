"""The densest parts of some rows: what boxes are first drawn around.

A Gaussian mixture divides the rows into components, and in each of them DBSCAN finds the largest
cluster, at the first of many radii that leaves few clusters and little noise.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import cdist, squareform
from sklearn.cluster import DBSCAN
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

from skescore.extractors._sharing import Sharing, once

#: Ways to choose the number of components.
CRITERIA = ("bic", "bic/m")
#: Variance added to every column in every component, in squared units: rows that are equal in
#: some columns must not become components of their own.
_ADDED_VARIANCE = 1e-4
#: Steps of expectation maximisation; the likelihood is nearly at its maximum long before.
_MOST_STEPS = 50
#: Rows that mixtures are fitted to; others go with the component that is likeliest.
_MIXTURE_ROWS = 1000
#: Rows whose distances to neighbours make the curve that the first radius is read from.
_CURVE_ROWS = 300
#: Rows of a component that are clustered; others go with the nearest of these.
_CLUSTERED_ROWS = 600
#: Least first radius, in units of a typical deviation.
_LEAST_RADIUS = 1e-3
#: Rows within the radius, itself included, that make a row a core row.
_MIN_ROWS = 5
#: The radius grows by this share of the first one, so many times.
_RADIUS_STEP, _MOST_RADII = 0.1, 1000
#: Largest share of rows that may be noise: at a smaller radius a cluster is still falling apart.
_MOST_NOISE = 0.005
#: Fewer points have no bend.
_LEAST_POINTS = 3


def dense_parts(
    table: np.ndarray,
    n_features: int,
    most: int,
    criterion: str,
    seed: int,
    unit: float,
    sharing: Sharing | None = None,
) -> list[np.ndarray]:
    """Indices of the rows of the densest part of each component of a mixture.

    Density is measured in the first `n_features` columns, the others describe the target. The best
    mixture of `most` components at most starts from the seed; the unit is a typical deviation of a
    column. Through `sharing` other searches in this table with this seed and unit are not repeated.
    """
    components = mixture_components(table, most, criterion, seed, unit, sharing)
    if components is None:
        return []
    n_components, labels = components

    def find() -> tuple[np.ndarray, ...]:
        parts = []
        for number in range(n_components):
            rows = np.flatnonzero(labels == number)
            if not len(rows):
                continue
            # The radius of the rows that are clustered: fewer of them lie farther apart.
            some = rows[_evenly(len(rows), _CLUSTERED_ROWS)]
            radius = first_radius(table[some], unit)
            part = densest_cluster(table[some, :n_features], radius, n_components)
            if len(some) < len(rows):
                search = NearestNeighbors(n_neighbors=1, algorithm="brute")
                search.fit(table[some, :n_features])
                nearest = search.kneighbors(table[rows, :n_features], return_distance=False)
                part = part[nearest[:, 0]]
            parts.append(rows[part])
        return tuple(parts)

    return list(once(sharing, ("dense parts", n_components), find))


def mixture_components(
    table: np.ndarray,
    most: int,
    criterion: str,
    seed: int,
    unit: float = 1.0,
    sharing: Sharing | None = None,
) -> tuple[int, np.ndarray] | None:
    """Number of components of the best mixture, and each row's; None where none can be fitted."""
    some = table[_evenly(len(table), _MIXTURE_ROWS)]

    def fit(n_components: int) -> tuple[float, np.ndarray | None]:
        mixture = GaussianMixture(
            n_components,
            reg_covar=_ADDED_VARIANCE * unit**2,
            max_iter=_MOST_STEPS,
            random_state=seed,
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows
                mixture.fit(some)
        except ValueError:  # a component collapsed
            return np.nan, None
        return float(mixture.bic(some)), mixture.predict(table)

    best: tuple[float, int, np.ndarray] | None = None
    for n_components in range(2, min(most, len(some)) + 1):
        score, labels = once(sharing, ("mixture", n_components), partial(fit, n_components))
        if criterion == "bic/m":
            score /= n_components
        if labels is not None and np.isfinite(score) and (best is None or score < best[0]):
            best = score, n_components, labels
    return None if best is None else best[1:]


def first_radius(table: np.ndarray, unit: float) -> float:
    """Radius above 0 at which density falls off: the knee of the distances to neighbours."""
    n_neighbors = min(2 * table.shape[1], len(table))
    distances = cdist(table[_evenly(len(table), _CURVE_ROWS)], table)
    nearest = np.partition(distances, n_neighbors - 1, axis=1)[:, :n_neighbors]
    curve = np.sort(nearest.mean(axis=1))[::-1]
    return knee_of(curve) or max(float(curve[-1]), _LEAST_RADIUS * unit)


def knee_of(curve: np.ndarray) -> float | None:
    """Height at which a convex, descending curve stops falling steeply; None where it does not.

    With both axes scaled to [0, 1], the distance of the curve below the falling diagonal is largest
    where it bends. A local maximum of this distance is a knee if the distance falls by more than
    the mean step along the other axis (a sensitivity of 1) before its next local minimum. Of
    several knees the last one counts.

    References
    ----------
    V. Satopää, J. Albrecht, D. Irwin, B. Raghavan: Finding a "Kneedle" in a haystack: detecting
    knee points in system behavior. ICDCS workshops 2011. doi:10.1109/ICDCSW.2011.20
    """
    if len(curve) < _LEAST_POINTS or not curve[0] > curve[-1]:
        return None
    along = np.arange(len(curve)) / (len(curve) - 1)
    below = 1 - (curve - curve[-1]) / (curve[0] - curve[-1]) - along
    # Beyond the ends lie copies of them, so that an end may be a local extremum.
    padded = np.concatenate([below[:1], below, below[-1:]])
    is_maximum = (below >= padded[:-2]) & (below >= padded[2:])
    is_minimum = (below <= padded[:-2]) & (below <= padded[2:])
    positions = np.arange(len(curve))
    maximum = np.maximum.accumulate(np.where(is_maximum, positions, -1))[:-1]
    minimum = np.maximum.accumulate(np.where(is_minimum, positions, -1))[:-1]
    fallen = below[1:] < below[maximum] - np.diff(along).mean()
    found = np.flatnonzero(fallen & (maximum > minimum))
    return float(curve[maximum[found[-1]]]) if len(found) else None


def densest_cluster(points: np.ndarray, radius: float, most_labels: int) -> np.ndarray:
    """Find the largest DBSCAN cluster at the first radius that gives few labels and little noise.

    Running DBSCAN anew for every radius would cost as much as there are radii. Their numbers of
    clusters all follow from the minimum spanning tree of the points under the mutual reachability
    distance, the largest of the distance of two points and their core distances: at radius r the
    clusters' core points are what the tree's edges up to r connect.
    """
    if len(points) < _MIN_ROWS:
        return np.ones(len(points), dtype=bool)
    distances = cdist(points, points)
    core = np.partition(distances, _MIN_ROWS - 1, axis=1)[:, _MIN_ROWS - 1]
    mutual = np.maximum(distances, core)
    joined = np.sort(mutual.min(axis=1))  # radii from which on a point is no noise
    np.maximum(mutual, core[:, None], out=mutual)
    edges = linkage(squareform(mutual, checks=False), "single")[:, 2]
    core = np.sort(core)
    radii = radius * (1 + _RADIUS_STEP * np.arange(_MOST_RADII + 1))
    # At the largest of all distances there is one cluster without noise.
    changes = np.sort(np.concatenate([edges, core]))
    radii = np.append(radii, changes[changes > radii[-1]])
    n_noise = len(points) - np.searchsorted(joined, radii, side="right")
    n_clusters = np.searchsorted(core, radii, "right") - np.searchsorted(edges, radii, "right")
    few = (n_clusters + (n_noise > 0) <= most_labels) & (n_noise <= _MOST_NOISE * len(points))
    chosen = DBSCAN(eps=radii[few.argmax()], min_samples=_MIN_ROWS, metric="precomputed")
    labels = chosen.fit(distances).labels_
    return np.asarray(labels == np.bincount(labels[labels >= 0]).argmax())


def _evenly(n_rows: int, most: int) -> np.ndarray:
    """Up to so many rows, spread evenly."""
    return np.arange(n_rows) if n_rows <= most else np.linspace(0, n_rows - 1, most).astype(np.intp)
