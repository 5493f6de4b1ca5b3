"""Explainable clustering: nested boxes around the densest parts of the rows.

A node is a set of rows in a box. An inner box splits it into two children: the rows inside, and the
other rows, which keep the box of the node. The leaves form an ordered list of rules, inner ones
first, so each means "in this box and in no earlier one".
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.linalg.lapack import dtrtri
from scipy.spatial.distance import cdist, squareform
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import ThreadpoolController

from skescore import _validation as check
from skescore._random import combine, draw_seed
from skescore.extractors._features import (
    check_importances,
    feature_importances,
    important_features,
)
from skescore.extractors._sharing import Sharing, digest, once
from skescore.extractors.cream._targets import Target, column_moments
from skescore.rules import BoxTable, Conclusions, RowTable
from skescore.rules._matching import Matcher

# --- dense parts, around which boxes are drawn -----------------------------------------

# A Gaussian mixture divides the rows into components. In each component, DBSCAN finds the largest
# cluster, with the smallest radius that gives few clusters and little noise.

#: Criteria for the number of components.
CRITERIA = ("bic", "bic/m")
#: Variance that is added to every column of every component, in squared units, so that rows with
#: equal values do not become separate components.
_ADDED_VARIANCE = 1e-4
#: Limits of expectation maximization: number of steps, and change of the mean log-likelihood.
_MAX_STEPS, _TOLERANCE = 50, 1e-3
#: Largest number of rows to which mixtures are fitted; other rows get the likeliest component.
_MAX_MIXTURE_ROWS = 1000
#: Number of rows whose distances to neighbors determine the first radius.
_MAX_CURVE_ROWS = 300
#: Largest number of rows of a component that are clustered; other rows join the cluster of the
#: nearest clustered row.
_MAX_CLUSTERED_ROWS = 600
#: Smallest initial radius, in units of a typical deviation.
_MIN_RADIUS = 1e-3
#: Smallest number of rows within the radius of a core row, including the row itself.
_MIN_ROWS = 5
#: Increment of the radius as a share of the initial one, and number of increments.
_RADIUS_STEP, _N_RADII = 0.1, 1000
#: Largest share of noise; at smaller radii, clusters are fragmented.
_MAX_NOISE = 0.005
#: Smallest number of points of a curve that may have a knee.
_MIN_CURVE_POINTS = 3


def dense_parts(
    table: np.ndarray,
    n_features: int,
    max_components: int,
    criterion: str,
    seed: int,
    unit: float,
    sharing: Sharing | None = None,
) -> list[np.ndarray]:
    """Return the row indices of the densest part of each component of a Gaussian mixture.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        Density is measured in the first `n_features` columns; the others describe the target.
    n_features : int
        Number of features.
    max_components : int
        Largest number of components of the mixture.
    criterion : {"bic", "bic/m"}
        Criterion that the number of components minimizes: the Bayesian information criterion, or
        this criterion divided by the number of components.
    seed : int
        Seed for initializing the mixture.
    unit : float
        Typical deviation of a column.
    sharing : Sharing, optional
        Cache of results for the same table, seed and unit.

    Returns
    -------
    list of ndarray of int
        The parts; empty if no mixture could be fitted.
    """
    components = mixture_components(table, max_components, criterion, seed, unit, sharing)
    if components is None:
        return []
    n_components, labels = components

    def find() -> tuple[np.ndarray, ...]:
        parts = []
        for number in range(n_components):
            rows = np.flatnonzero(labels == number)
            if not len(rows):
                continue
            # The radius depends on the number of rows, so it is computed from the clustered ones.
            clustered_rows = rows[_evenly_spaced(len(rows), _MAX_CLUSTERED_ROWS)]
            radius = first_radius(table[clustered_rows], unit)
            part = densest_cluster(table[clustered_rows, :n_features], radius, n_components)
            if len(clustered_rows) < len(rows):
                search = NearestNeighbors(n_neighbors=1, algorithm="brute")
                search.fit(table[clustered_rows, :n_features])
                nearest = search.kneighbors(table[rows, :n_features], return_distance=False)
                part = part[nearest[:, 0]]
            parts.append(rows[part])
        return tuple(parts)

    return list(once(sharing, ("dense parts", n_components), find))


def mixture_components(
    table: np.ndarray,
    max_components: int,
    criterion: str,
    seed: int,
    unit: float = 1.0,
    sharing: Sharing | None = None,
) -> tuple[int, np.ndarray] | None:
    """Return the number of components of the best mixture, and each row's component.

    Mixtures have at least two components; the best one minimizes the criterion. Returns None if no
    mixture can be fitted.
    """
    fitted_rows = table[_evenly_spaced(len(table), _MAX_MIXTURE_ROWS)]

    def fit(n_components: int) -> tuple[float, np.ndarray | None]:
        try:
            mixture = fit_mixture(fitted_rows, n_components, _ADDED_VARIANCE * unit**2, seed)
        except np.linalg.LinAlgError:  # a component collapsed
            return np.nan, None
        return mixture.bic(fitted_rows), mixture.predict(table)

    best: tuple[float, int, np.ndarray] | None = None
    for n_components in range(2, min(max_components, len(fitted_rows)) + 1):
        score, labels = once(sharing, ("mixture", n_components), partial(fit, n_components))
        if criterion == "bic/m":
            score /= n_components
        if labels is not None and np.isfinite(score) and (best is None or score < best[0]):
            best = score, n_components, labels
    return None if best is None else best[1:]


class Mixture:
    """Mixture of normal distributions, estimated from the responsibilities of its components.

    `responsibilities` has the shape (n_rows, n_components). `added_variance` is added to the
    variance of every column.
    """

    def __init__(
        self, rows: np.ndarray, responsibilities: np.ndarray, added_variance: float
    ) -> None:
        n_columns = rows.shape[1]
        weights = responsibilities.sum(axis=0) + 10 * np.finfo(float).eps
        means = responsibilities.T @ rows / weights[:, None]
        covariances = np.empty((len(weights), n_columns, n_columns))
        for responsibility, mean, weight, covariance in zip(
            responsibilities.T, means, weights, covariances, strict=True
        ):
            deviations = rows - mean
            np.matmul(responsibility * deviations.T, deviations, out=covariance)
            covariance /= weight
            covariance.ravel()[:: n_columns + 1] += added_variance
        roots = np.linalg.cholesky(covariances)
        inverses = np.array([dtrtri(root, lower=1)[0] for root in roots])
        self._standardizers = inverses.reshape(-1, n_columns).T
        self._shifts = (inverses @ means[:, :, None]).ravel()
        log_roots = np.log(roots.diagonal(axis1=1, axis2=2)).sum(axis=1)
        normalizer = log_roots + n_columns / 2 * np.log(2 * np.pi)
        self._log_weights = np.log(weights / weights.sum()) - normalizer

    def log_densities(self, rows: np.ndarray) -> np.ndarray:
        """Return the logarithms of the weighted densities, of shape (n_rows, n_components)."""
        standardized = rows @ self._standardizers
        standardized -= self._shifts
        standardized = standardized.reshape(len(rows), len(self._log_weights), -1)
        return self._log_weights - np.einsum("ijk,ijk->ij", standardized, standardized) / 2

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Return the likeliest component of each row."""
        return np.asarray(self.log_densities(rows).argmax(axis=1))

    def bic(self, rows: np.ndarray) -> float:
        """Return the Bayesian information criterion; smaller is better."""
        n_rows, n_columns = rows.shape
        n_parameters_each = 1 + n_columns + n_columns * (n_columns + 1) / 2
        n_parameters = len(self._log_weights) * n_parameters_each - 1
        log_likelihood = np.logaddexp.reduce(self.log_densities(rows), axis=1).sum()
        return float(n_parameters * np.log(n_rows) - 2 * log_likelihood)


def fit_mixture(rows: np.ndarray, n_components: int, added_variance: float, seed: int) -> Mixture:
    """Fit a mixture by expectation maximization, starting from the clusters of k-means.

    `rows` has the shape (n_rows, n_columns). scikit-learn's ``GaussianMixture`` gives the same
    result, but takes twice as long for few rows. Raises ``LinAlgError`` if a component collapses.
    """
    clusters = KMeans(n_components, n_init=1, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows
        labels = clusters.fit(rows).labels_
    mixture = Mixture(rows, (labels[:, None] == np.arange(n_components)) * 1.0, added_variance)
    previous = -np.inf
    for _ in range(_MAX_STEPS):
        log_densities = mixture.log_densities(rows)
        log_sums = np.logaddexp.reduce(log_densities, axis=1)
        mixture = Mixture(rows, np.exp(log_densities - log_sums[:, None]), added_variance)
        log_likelihood = float(log_sums.mean())
        if abs(log_likelihood - previous) < _TOLERANCE:
            break
        previous = log_likelihood
    return mixture


def first_radius(table: np.ndarray, unit: float) -> float:
    """Return the radius at the knee of the sorted distances to neighbors; it is positive."""
    n_neighbors = min(2 * table.shape[1], len(table))
    distances = cdist(table[_evenly_spaced(len(table), _MAX_CURVE_ROWS)], table)
    nearest = np.partition(distances, n_neighbors - 1, axis=1)[:, :n_neighbors]
    curve = np.sort(nearest.mean(axis=1))[::-1]
    return knee_of(curve) or max(float(curve[-1]), _MIN_RADIUS * unit)


def knee_of(curve: np.ndarray) -> float | None:
    """Return the height of the last knee of a descending convex curve; None without a knee.

    With both axes scaled to [0, 1], the distance of the curve below the falling diagonal is largest
    where the curve bends. A local maximum of this distance is a knee if the distance falls by more
    than the mean step along the other axis (a sensitivity of 1) before its next local minimum.

    References
    ----------
    V. Satopää, J. Albrecht, D. Irwin, B. Raghavan: Finding a "Kneedle" in a haystack: detecting
    knee points in system behavior. ICDCS workshops 2011. doi:10.1109/ICDCSW.2011.20
    """
    if len(curve) < _MIN_CURVE_POINTS or not curve[0] > curve[-1]:
        return None
    along = np.arange(len(curve)) / (len(curve) - 1)
    below = 1 - (curve - curve[-1]) / (curve[0] - curve[-1]) - along
    # The end values are repeated, so that they may be local extrema.
    padded = np.concatenate([below[:1], below, below[-1:]])
    is_maximum = (below >= padded[:-2]) & (below >= padded[2:])
    is_minimum = (below <= padded[:-2]) & (below <= padded[2:])
    positions = np.arange(len(curve))
    maximum = np.maximum.accumulate(np.where(is_maximum, positions, -1))[:-1]
    minimum = np.maximum.accumulate(np.where(is_minimum, positions, -1))[:-1]
    fallen = below[1:] < below[maximum] - np.diff(along).mean()
    knees = np.flatnonzero(fallen & (maximum > minimum))
    return float(curve[maximum[knees[-1]]]) if len(knees) else None


def densest_cluster(points: np.ndarray, radius: float, max_labels: int) -> np.ndarray:
    """Return the largest DBSCAN cluster at the smallest radius with few labels and little noise.

    The clusters at all radii follow from a minimum spanning tree of the mutual reachability
    distances (the maximum of the distance of two points and their core distances): at radius r, the
    edges of length at most r connect the core points of a cluster.
    """
    if len(points) < _MIN_ROWS:
        return np.ones(len(points), dtype=bool)
    distances = cdist(points, points)
    core = np.partition(distances, _MIN_ROWS - 1, axis=1)[:, _MIN_ROWS - 1]
    mutual = np.maximum(distances, core)
    noise_radii = np.sort(mutual.min(axis=1))  # smallest radii at which points are not noise
    np.maximum(mutual, core[:, None], out=mutual)
    tree = linkage(squareform(mutual, checks=False), "single")
    edges, core_radii = tree[:, 2], np.sort(core)
    radii = radius * (1 + _RADIUS_STEP * np.arange(_N_RADII + 1))
    # At the largest distance, there is one cluster and no noise.
    changes = np.sort(np.concatenate([edges, core_radii]))
    radii = np.append(radii, changes[changes > radii[-1]])
    n_noise = len(points) - np.searchsorted(noise_radii, radii, side="right")
    n_core = np.searchsorted(core_radii, radii, "right")
    n_clusters = n_core - np.searchsorted(edges, radii, "right")
    is_acceptable = (n_clusters + (n_noise > 0) <= max_labels) & (
        n_noise <= _MAX_NOISE * len(points)
    )
    radius = radii[is_acceptable.argmax()]
    is_core = core <= radius
    core_labels = fcluster(tree, radius, "distance")[is_core]
    return _largest_cluster(is_core, core_labels, distances <= radius)


def _largest_cluster(
    is_core: np.ndarray, core_labels: np.ndarray, is_near: np.ndarray
) -> np.ndarray:
    """Return a mask of the points in the largest DBSCAN cluster.

    `is_core` (n_points,) marks the core points, `core_labels` (n_core,) holds their clusters, and
    `is_near` (n_points, n_points) marks the pairs within the radius. DBSCAN adds a point near
    several clusters to the one with the earliest core point.
    """
    _, first, cluster_of = np.unique(core_labels, return_index=True, return_inverse=True)
    clusters = first.argsort().argsort()[cluster_of]  # numbered in the order of first core points
    noise = len(first)
    labels = np.full(len(is_core), noise)
    labels[is_core] = clusters
    near_clusters = np.where(is_near[np.ix_(~is_core, is_core)], clusters, noise)
    labels[~is_core] = near_clusters.min(axis=1)
    return np.asarray(labels == np.bincount(labels[labels < noise]).argmax())


def _evenly_spaced(n_rows: int, max_rows: int) -> np.ndarray:
    """Return up to `max_rows` evenly spaced row indices."""
    return (
        np.arange(n_rows)
        if n_rows <= max_rows
        else np.linspace(0, n_rows - 1, max_rows).astype(np.intp)
    )


# --- the boxes ------------------------------------------------------------------------------------


#: Smallest number of rows for clustering.
_MIN_SAMPLES = 10
#: Share of the best impurity reduction that the largest box must reach.
_MIN_REDUCTION_SHARE = 0.5
#: Relative difference below which impurities are regarded as equal.
_IMPURITY_TOLERANCE = 1e-9
_INSIDE, _OUTSIDE, _CLUSTERED = 1, 2, 4
#: Largest number of rows for moving faces, relative to the number for clustering.
_FACE_ROWS = 4
#: Smallest side of a box in the computation of volumes, as a share of the domain's side.
_MIN_SIDE = 1e-6
#: Number of intervals with equally many rows between the candidate positions of faces.
_N_INTERVALS = 32
#: Number of values that are processed at a time.
_BLOCK_SIZE = 1 << 20
#: Smallest share of the scatter that a move of a face must remove, and largest number of moves per
#: feature.
_MIN_GAIN, _MAX_MOVES = 0.002, 2


@dataclass(frozen=True, kw_only=True)
class BoxParameters:
    """Parameters that the extractors and clusterers have in common.

    `split_outside` selects the algorithm. True (CREAM): choose the box that makes both children
    homogeneous, and split both. False (ExACT): choose the largest useful box, and split its inside.
    """

    split_outside: bool
    depth: int
    error_threshold: float | None
    gauss_components: int
    criterion: str
    scale: bool
    max_samples: int | None
    weighted: bool = True
    ignore_threshold: float
    importances: Any
    n_features_to_select: int | None = None
    output: str
    max_terms: int | None
    random_state: Any

    @classmethod
    def of(cls, estimator: Any, *, split_outside: bool) -> BoxParameters:
        """Check and copy the parameters of an extractor or clusterer."""
        field_names = {field.name for field in fields(cls)}
        values = {k: v for k, v in estimator.get_params(deep=False).items() if k in field_names}
        parameters = cls(split_outside=split_outside, **values)
        check.check_integer("depth", parameters.depth, 1)
        check.check_number("error_threshold", parameters.error_threshold, 0.0, optional=True)
        check.check_integer("gauss_components", parameters.gauss_components, 2)
        check.check_choice("criterion", parameters.criterion, CRITERIA)
        check.check_flag("scale", parameters.scale)
        check.check_integer("max_samples", parameters.max_samples, _MIN_SAMPLES, optional=True)
        check.check_flag("weighted", parameters.weighted)
        check.check_number("ignore_threshold", parameters.ignore_threshold, 0.0, 1.0)
        check.check_integer(
            "n_features_to_select", parameters.n_features_to_select, 1, optional=True
        )
        check.check_integer("max_terms", parameters.max_terms, 1, optional=True)
        check.check_choice("output", parameters.output, ("constant", "linear"))
        return parameters


@dataclass(frozen=True, eq=False)
class Clustering:
    """Ordered boxes with their outputs.

    `labels` holds the index of the first box that contains each row. Every box is the first one for
    some row, and the last box has no bounds. Importances are 0 if they were not computed.
    """

    boxes: BoxTable
    conclusions: Conclusions
    labels: np.ndarray
    importances: np.ndarray


def cluster(
    parameters: BoxParameters,
    X: np.ndarray,
    target: Target,
    feature_names: Any,
    sharing: Sharing | None = None,
) -> Clustering:
    """Grow boxes and compute their outputs.

    Boxes that are not the first one for any row are dropped, and the last remaining box gets no
    bounds. Extractions from the same rows share results through `sharing`.
    """
    n_features, ignore_threshold = X.shape[1], parameters.ignore_threshold
    importances = np.zeros(n_features)
    if parameters.importances is not None:
        importances = check_importances(parameters.importances, n_features)
    chosen = important_features(X, *target.importance_target(None), parameters.n_features_to_select)
    if sharing is not None and len(chosen) < n_features:
        sharing = sharing.with_scope(digest(chosen))
    inner = BoxGrower(X[:, chosen], target, parameters, sharing).grow()
    lower = np.full((len(inner[0]), n_features), -np.inf)
    upper = np.full_like(lower, np.inf)
    lower[:, chosen], upper[:, chosen] = inner
    if ignore_threshold > 0:
        if parameters.importances is None:
            labels = _assign(X, lower, upper, feature_names)
            importances = feature_importances(X, *target.importance_target(labels))
        ignored = importances < ignore_threshold
        lower, upper = np.where(ignored, -np.inf, lower), np.where(ignored, np.inf, upper)
    used, labels = np.unique(_assign(X, lower, upper, feature_names), return_inverse=True)
    lower, upper = lower[used], upper[used]
    # The last used box covers the rest of the domain.
    lower[-1], upper[-1] = -np.inf, np.inf
    return Clustering(
        _make_box_table(lower, upper), target.conclude(labels, len(used)), labels, importances
    )


def _make_box_table(lower: np.ndarray, upper: np.ndarray) -> BoxTable:
    return BoxTable(lower, upper, lower > -np.inf, upper < np.inf)


def _assign(X: np.ndarray, lower: np.ndarray, upper: np.ndarray, names: Any) -> np.ndarray:
    """Return the index of the first box that contains each row."""
    matcher = Matcher(_make_box_table(lower, upper), [()] * len(lower))
    first = matcher.first(RowTable(X, names), slice(0, len(X)))
    return np.append(np.arange(len(lower)), -1).take(first, mode="clip")


@dataclass(frozen=True, eq=False)
class _BoxNode:
    """Rows of a node, bounds of its box, its depth, and the key of its random numbers.

    A final node is not split.
    """

    rows: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: int
    key: np.ndarray
    final: bool = False


class _CandidateBox(NamedTuple):
    """Impurity of a split by a box, volume of the box, and number of rows inside."""

    impurity: float
    log_volume: float
    n_inside: int


class BoxGrower:
    """Find the nested boxes of CREAM and ExACT."""

    def __init__(
        self,
        X: np.ndarray,
        target: Target,
        parameters: BoxParameters,
        sharing: Sharing | None = None,
    ) -> None:
        self._X, self._target, self._parameters, self._sharing = X, target, parameters, sharing
        self._mean, self._deviation = column_moments(X, np.arange(len(X)))
        self._varying = np.flatnonzero(self._deviation > 0)
        self._low, self._high = X.min(axis=0), X.max(axis=0)
        threshold = parameters.error_threshold
        self._threshold = target.default_threshold if threshold is None else threshold

    def grow(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper bounds of ordered closed boxes; the last has no bounds."""
        n_rows, n_features = self._X.shape
        open_box = np.full(n_features, -np.inf), np.full(n_features, np.inf)
        root = _BoxNode(
            np.arange(n_rows), *open_box, 0, combine(draw_seed(self._parameters.random_state), 0)
        )
        stack, leaves = [root], []
        # The tasks are so small that several threads would slow each other down.
        with _thread_pools().limit(limits=1):
            while stack:
                node = stack.pop()
                children = None if self._is_final(node) else self._split(node)
                if children is None:
                    leaves.append(node)
                else:
                    stack += [children[1], children[0]]
        return np.array([n.lower for n in leaves]), np.array([n.upper for n in leaves])

    def _is_final(self, node: _BoxNode) -> bool:
        return (
            node.final
            or node.level >= self._parameters.depth
            or len(node.rows) < 2
            or not len(self._varying)
            or self._target.impurity(node.rows) <= self._threshold
        )

    def _split(self, node: _BoxNode) -> tuple[_BoxNode, _BoxNode] | None:
        """Split a node by the best inner box; return None if there is none."""
        rows = self._sample_rows(node)
        boxes = []
        for lower, upper in self._find_boxes(node, rows):
            inside = self._inside(rows, lower, upper)
            if 0 < inside.sum() < len(rows):
                boxes.append((self._evaluate(rows, inside, lower, upper), lower, upper))
        if not boxes:
            return None
        impurity = self._target.impurity(rows)
        chosen = self._choose([candidate for candidate, _, _ in boxes], impurity)
        best, lower, upper = boxes[chosen]
        if best.impurity > impurity * (1 + _IMPURITY_TOLERANCE) and self._parameters.weighted:
            return None  # linear models of few rows overfit, which increases the impurity
        inside = self._inside(node.rows, lower, upper)
        level = node.level + 1
        return (
            _BoxNode(node.rows[inside], lower, upper, level, combine(node.key, _INSIDE)),
            _BoxNode(
                node.rows[~inside],
                node.lower,
                node.upper,
                level,
                combine(node.key, _OUTSIDE),
                final=not self._parameters.split_outside,
            ),
        )

    def _sample_rows(self, node: _BoxNode) -> np.ndarray:
        """Draw the rows of a node from which boxes are computed."""
        max_samples = self._parameters.max_samples
        return (
            node.rows
            if max_samples is None
            else self._draw_rows(node.rows, _FACE_ROWS * max_samples, node.key)
        )

    def _draw_rows(self, rows: np.ndarray, max_rows: int, key: np.ndarray) -> np.ndarray:
        if len(rows) <= max_rows:
            return rows
        generator = np.random.default_rng(int(key))
        return rows[np.sort(generator.choice(len(rows), max_rows, replace=False))]

    def _find_boxes(self, node: _BoxNode, rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the candidate boxes inside a node, one around each dense part."""
        max_samples = self._parameters.max_samples or len(rows)
        clustered_rows = self._draw_rows(rows, max_samples, combine(node.key, _CLUSTERED))
        features = self._X[clustered_rows]
        table = features[:, self._varying]
        unit = 1.0
        if self._parameters.scale:
            table = (table - self._mean[self._varying]) / self._deviation[self._varying]
        else:
            unit = float(np.median(self._deviation[self._varying]))
        target_columns = self._target.columns(clustered_rows, self._parameters.scale)
        if self._parameters.scale:
            # The target gets as much weight as all features together.
            target_columns = target_columns * np.sqrt(len(self._varying))
        seed = int(combine(node.key, _INSIDE + _OUTSIDE) >> np.uint64(33))
        parts = dense_parts(
            np.column_stack([table, target_columns]),
            len(self._varying),
            self._parameters.gauss_components,
            self._parameters.criterion,
            seed,
            unit,
            # The table is the same for means and for linear models, which share the result.
            self._shared_part((digest(clustered_rows), seed, self._parameters.scale)),
        )
        return self._move_faces(
            [_box_around(features, part, node.lower, node.upper) for part in parts], node, rows
        )

    def _move_faces(
        self, boxes: list[tuple[np.ndarray, np.ndarray]], node: _BoxNode, rows: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Move the faces of boxes to where the target changes, if there is a target."""
        moments = self._target.moments(rows)
        if moments is None:
            return boxes
        # ExACT splits the inside of a box again, so scatter inside has a smaller weight.
        inner_weight = (
            1.0 if self._parameters.split_outside else 1.0 / (self._parameters.depth - node.level)
        )

        @cache
        def mover() -> FaceMover:
            return FaceMover(self._X[rows], moments, self._target.scatter, inner_weight)

        def moved(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return mover().move(lower, upper, node.lower, node.upper)

        sharing = self._shared_part((digest(rows), inner_weight))
        return [
            once(sharing, digest(*box, node.lower, node.upper), partial(moved, *box))
            for box in boxes
        ]

    def _shared_part(self, scope: Hashable) -> Sharing | None:
        return None if self._sharing is None else self._sharing.with_scope(scope)

    def _inside(self, rows: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Return a mask of the rows in a closed box."""
        left = np.arange(len(rows))
        for j in np.flatnonzero((lower > -np.inf) | (upper < np.inf)):
            values = self._X[rows[left], j]
            left = left[(values >= lower[j]) & (values <= upper[j])]
        result = np.zeros(len(rows), dtype=bool)
        result[left] = True
        return result

    def _evaluate(
        self, rows: np.ndarray, inside: np.ndarray, lower: np.ndarray, upper: np.ndarray
    ) -> _CandidateBox:
        n_inside = int(inside.sum())
        share = n_inside / len(rows) if self._parameters.weighted else 0.5
        inner = self._target.impurity(rows[inside])
        outer = self._target.impurity(rows[~inside])
        impurity = share * inner + (1 - share) * outer
        return _CandidateBox(impurity, self._log_volume(lower, upper), n_inside)

    def _choose(self, candidates: list[_CandidateBox], impurity: float) -> int:
        """Return the index of the best box; ties go to the first."""
        numbers = range(len(candidates))
        tolerance = _IMPURITY_TOLERANCE * max(impurity, *(c.impurity for c in candidates)) or 1.0
        if self._parameters.split_outside:
            return min(
                numbers,
                key=lambda i: (round(candidates[i].impurity / tolerance), candidates[i].log_volume),
            )
        # A large box that separates nothing is useless.
        gain = max(0.0, impurity - min(c.impurity for c in candidates))
        max_impurity = impurity - _MIN_REDUCTION_SHARE * gain + tolerance
        return min(
            numbers,
            key=lambda i: (
                candidates[i].impurity > max_impurity,
                -candidates[i].log_volume,
                -candidates[i].n_inside,
            ),
        )

    def _log_volume(self, lower: np.ndarray, upper: np.ndarray) -> float:
        """Return the logarithm of a box's share of the domain's volume."""
        varying = self._varying
        low, high = self._low[varying], self._high[varying]
        side = np.clip(upper[varying], low, high) - np.clip(lower[varying], low, high)
        return float(np.log(np.maximum(side / (high - low), _MIN_SIDE)).sum())


@cache
def _thread_pools() -> ThreadpoolController:
    """Return a controller of thread pools; it is cached, because its creation is slow."""
    return ThreadpoolController()


def _box_around(
    features: np.ndarray, part: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the box around some rows, with faces halfway to the next row outside.

    On a side without rows outside, the face of the outer box (`lower`, `upper`) is used.
    """
    low, high = features[part].min(axis=0), features[part].max(axis=0)
    below = np.where(features < low, features, -np.inf).max(axis=0)
    above = np.where(features > high, features, np.inf).min(axis=0)
    # The midpoint of neighboring floats rounds to one of them.
    down, up = low / 2 + below / 2, high / 2 + above / 2
    down, up = np.where(down > below, down, low), np.where(up < above, up, high)
    return np.where(below > -np.inf, down, lower), np.where(above < np.inf, up, upper)


class FaceMover:
    """Move the faces of boxes to reduce the scatter of the target inside and outside.

    The box around a cluster extends to its outermost rows, regardless of the target. `moments` and
    `scatter` describe the target; scatter inside has the weight `inner_weight`.
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
        #: Candidate positions of lower and of upper faces per feature.
        self._lower_positions: list[np.ndarray] = []
        self._upper_positions: list[np.ndarray] = []
        self._bins = np.empty((n_features, n_rows), dtype=np.intp)
        borders = np.linspace(0, n_rows, _N_INTERVALS + 1)[1:-1].astype(np.intp)
        for j in range(n_features):
            ordered = np.sort(features[:, j])
            above = np.unique(ordered[borders])
            above = above[above > ordered[0]]
            below = ordered[np.searchsorted(ordered, above) - 1]
            # The midpoint of neighboring floats rounds to one of them.
            half = above / 2 + below / 2
            self._lower_positions.append(np.where(half > below, half, above))
            self._upper_positions.append(np.where(half < above, half, below))
            self._bins[j] = j * _N_INTERVALS + np.searchsorted(above, features[:, j], side="right")
        self._first, self._last = np.triu_indices(_N_INTERVALS + 1, 1)
        self._whole = int((self._last - self._first).argmax())

    def move(
        self, lower: np.ndarray, upper: np.ndarray, outer_lower: np.ndarray, outer_upper: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Move the faces of a box, one feature at a time, as long as this reduces the scatter.

        Faces that would exclude no row are replaced by those of the outer box.
        """
        lower, upper = lower.copy(), upper.copy()
        out = (self._features < lower) | (self._features > upper)
        n_out = out.sum(axis=1)
        scatter = float(self._total_scatter(self._moments[:, n_out == 0].sum(axis=1)))
        min_gain = _MIN_GAIN * float(self._scatter(self._total))
        for _ in range(_MAX_MOVES * len(lower)):
            interval_scatter = self._interval_scatter(out, n_out)
            j = int(interval_scatter.min(axis=1).argmin())
            # Among equally good intervals, the longest is used.
            good = np.flatnonzero(interval_scatter[j] <= interval_scatter[j].min() + min_gain / 2)
            interval = int(good[(self._last - self._first)[good].argmax()])
            if not interval_scatter[j, interval] < scatter - min_gain:
                # Faces that can be removed one by one can usually be removed together.
                is_redundant = interval_scatter[:, self._whole] <= scatter + 1e-9 * min_gain
                inside = self._moments[:, ~out[:, ~is_redundant].any(axis=1)].sum(axis=1)
                if (
                    inside[0] < len(out)
                    and self._total_scatter(inside) <= scatter + 1e-6 * min_gain
                ):
                    lower[is_redundant], upper[is_redundant] = (
                        outer_lower[is_redundant],
                        outer_upper[is_redundant],
                    )
                break
            scatter = float(interval_scatter[j, interval])
            first, last = self._first[interval], self._last[interval]
            n_positions = len(self._lower_positions[j])
            lower[j] = self._lower_positions[j][first - 1] if first > 0 else outer_lower[j]
            upper[j] = self._upper_positions[j][last - 1] if last <= n_positions else outer_upper[j]
            n_out -= out[:, j]
            out[:, j] = (self._features[:, j] < lower[j]) | (self._features[:, j] > upper[j])
            n_out += out[:, j]
        return lower, upper

    def _interval_scatter(self, out: np.ndarray, n_out: np.ndarray) -> np.ndarray:
        """Return the scatter for every interval of every feature, with all other faces fixed."""
        sums = self._cumulative_moments(out, n_out)
        scatter = np.empty((len(sums), len(self._first)))
        size = max(1, _BLOCK_SIZE // (len(self._first) * sums.shape[2]))
        for begin in range(0, len(sums), size):
            block = slice(begin, begin + size)
            inside = sums[block, self._last] - sums[block, self._first]
            scatter[block] = self._total_scatter(inside)
            scatter[block][(inside[..., 0] < 1) | (inside[..., 0] > len(out) - 1)] = np.inf
        return scatter

    def _total_scatter(self, inside: np.ndarray) -> np.ndarray:
        """Return the weighted scatter inside and outside of boxes, given the moments inside."""
        return self._inner_weight * self._scatter(inside) + self._scatter(self._total - inside)

    def _cumulative_moments(self, out: np.ndarray, n_out: np.ndarray) -> np.ndarray:
        """Return, per feature, cumulative moments of the rows inside the faces of the others."""
        n_features = len(self._bins)
        inside = np.flatnonzero(n_out == 0)
        outside_once = np.flatnonzero(n_out == 1)
        feature = out[outside_once].argmax(axis=1)
        bins = np.concatenate([self._bins[:, inside].ravel(), self._bins[feature, outside_once]])
        size = n_features * _N_INTERVALS
        sums = np.zeros((n_features, _N_INTERVALS + 1, len(self._moments)))
        for k, moment in enumerate(self._moments):
            weights = np.concatenate([np.tile(moment[inside], n_features), moment[outside_once]])
            bin_sums = np.bincount(bins, weights=weights, minlength=size)
            sums[:, 1:, k] = bin_sums.reshape(n_features, _N_INTERVALS).cumsum(axis=1)
        return sums
