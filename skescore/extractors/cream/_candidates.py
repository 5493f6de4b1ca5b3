"""Boxes that may set some rows apart: around the densest parts of a Gaussian mixture.

Where such a box ends hangs on a cluster's outermost rows, and not at all on what they answer; its
faces are therefore moved to where they set the answers apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.linalg import lapack
from scipy.spatial.distance import cdist, squareform
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors

from skescore.extractors._sharing import Sharing, once

# --- the knee of a descending curve: Kneedle, for points that are equally far apart --------------

#: Fewer points have no bend.
_LEAST_POINTS = 3


def knee_of(curve: np.ndarray) -> float | None:
    """Find where a convex, descending curve stops falling steeply.

    Parameters
    ----------
    curve : ndarray of shape (n_points,)
        Finite heights, the largest first.

    Returns
    -------
    float or None
        Height of the curve at its last knee; None where it has none.

    Notes
    -----
    With both axes scaled to [0, 1], the distance of the curve below the falling diagonal is largest
    where it bends. A local maximum of this distance is a knee if the distance falls by more than
    the mean step along the other axis (a sensitivity of 1) before its next local minimum.

    References
    ----------
    V. Satopää, J. Albrecht, D. Irwin, B. Raghavan: Finding a "Kneedle" in a haystack: detecting
    knee points in system behavior. ICDCS workshops 2011. doi:10.1109/ICDCSW.2011.20

    Examples
    --------
    >>> knee_of(np.array([9.0, 5.0, 1.0, 0.9, 0.8, 0.7, 0.6]))
    1.0
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


# --- lloyd's k-means from greedily spread first centres, for a few thousand rows -----------------
# The same clusters as scikit-learn's, whose checks take longer than the clustering of so few rows.

#: Most steps; they end before where no row changes its cluster, or the centres move by less than
#: this share of the columns' mean variance.
_K_MEANS_STEPS = 300
_K_MEANS_TOLERANCE = 1e-4


def k_means_labels(table: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Cluster rows.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        The rows, at least as many as clusters.
    n_clusters : int
        Number of clusters.
    seed : int
        Decides where the centres start.

    Returns
    -------
    ndarray of int, shape (n_rows,)
        Cluster of each row.
    """
    centred = table - table.mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    tolerance = _K_MEANS_TOLERANCE * float(table.var(axis=0).mean())
    centres = _first_centres(centred, squares, n_clusters, np.random.RandomState(seed))
    numbers = np.arange(n_clusters)[:, None]
    labels = np.full(len(table), -1)
    for _ in range(_K_MEANS_STEPS):
        before, labels = labels, _nearest(centred, centres)
        member = labels == numbers
        n_rows = member.sum(axis=1)
        if not n_rows.all():  # which rows become centres then is a matter of its own
            return _by_scikit_learn(table, n_clusters, seed)
        moved = (member.astype(float) @ centred) / n_rows[:, None]
        shift = float(((moved - centres) ** 2).sum())
        centres = moved
        if np.array_equal(labels, before):
            return labels
        if shift <= tolerance:
            break
    return _nearest(centred, centres)


def _nearest(table: np.ndarray, centres: np.ndarray) -> np.ndarray:
    squares = np.einsum("ij,ij->i", centres, centres)
    return (squares[:, None] - 2 * (centres @ table.T)).argmin(axis=0)


def _first_centres(
    table: np.ndarray, squares: np.ndarray, n_clusters: int, random: np.random.RandomState
) -> np.ndarray:
    """Rows that lie far apart: of a few drawn by squared distance the best one each (k-means++)."""
    n_rows = len(table)
    n_drawn = 2 + int(np.log(n_clusters))
    chosen = [int(random.choice(n_rows, p=np.full(n_rows, 1 / n_rows)))]
    distance = _squared_distances(table, squares, np.array(chosen))[0]
    for _ in range(1, n_clusters):
        places = random.uniform(size=n_drawn) * distance.sum()
        drawn = np.minimum(np.searchsorted(np.cumsum(distance), places), n_rows - 1)
        left = np.minimum(distance, _squared_distances(table, squares, drawn))
        best = int(left.sum(axis=1).argmin())
        chosen.append(int(drawn[best]))
        distance = left[best]
    return table[chosen]


def _squared_distances(table: np.ndarray, squares: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """From some rows to all."""
    found = squares[rows][:, None] - 2 * (table[rows] @ table.T) + squares
    return np.asarray(np.maximum(found, 0.0))


def _by_scikit_learn(table: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        found = KMeans(n_clusters, n_init=1, random_state=seed).fit(table)
    return np.asarray(found.labels_)


# --- gaussian mixtures fitted by expectation maximisation, started from k-means ------------------
# The same mixtures as scikit-learn's, but for rounding; for some hundred rows its checks take many
# times longer than the fit itself. All components are worked on at once, columns in rows, so that
# every pass runs along contiguous memory.

#: Steps of expectation maximisation; the likelihood is nearly at its maximum long before. They end
#: as soon as the mean log-likelihood changes by less than this.
_MOST_STEPS, _TOLERANCE = 50, 1e-3
#: Added to the rows of a component, of which there may be none.
_NONE = 10 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Mixture:
    """A fitted mixture.

    Parameters
    ----------
    log_weights : ndarray of shape (n_components,)
        Logarithms of the components' shares.
    means : ndarray of shape (n_components, n_columns)
        Their centres.
    whiteners : ndarray of shape (n_components, n_columns, n_columns)
        Lower triangular matrices that make a component's deviations from its mean uncorrelated, of
        variance 1.
    """

    log_weights: np.ndarray
    means: np.ndarray
    whiteners: np.ndarray

    def log_joint(self, columns: np.ndarray) -> np.ndarray:
        """Logarithms of the components' densities times their shares.

        Parameters
        ----------
        columns : ndarray of shape (n_columns, n_rows)
            The rows, transposed.

        Returns
        -------
        ndarray of shape (n_components, n_rows)
            The logarithms.
        """
        return self._log_joint(columns - self.means[:, :, None])

    def _log_joint(self, deviations: np.ndarray) -> np.ndarray:
        white = self.whiteners @ deviations
        np.square(white, out=white)
        n_columns = self.means.shape[1]
        volume = np.log(np.einsum("kjj->kj", self.whiteners)).sum(axis=1)
        level = self.log_weights + volume - 0.5 * n_columns * np.log(2 * np.pi)
        return np.asarray(level[:, None] - 0.5 * white.sum(axis=1))

    def components(self, table: np.ndarray) -> np.ndarray:
        """Tell the likeliest component of each row.

        Parameters
        ----------
        table : ndarray of shape (n_rows, n_columns)
            The rows.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            Its number.
        """
        return np.asarray(self.log_joint(np.ascontiguousarray(table.T)).argmax(axis=0))

    def bic(self, table: np.ndarray) -> float:
        """Bayesian information criterion of the mixture on the rows that it was fitted to.

        Parameters
        ----------
        table : ndarray of shape (n_rows, n_columns)
            The rows.

        Returns
        -------
        float
            The lower the better.
        """
        n_rows, n_columns = table.shape
        joint = self.log_joint(np.ascontiguousarray(table.T))
        per_component = n_columns * (n_columns + 1) // 2 + n_columns + 1
        n_parameters = len(self.means) * per_component - 1
        return float(-2 * _log_sum(joint).sum() + n_parameters * np.log(n_rows))


def fit_mixture(
    table: np.ndarray, n_components: int, added_variance: float, seed: int
) -> Mixture | None:
    """Fit a mixture.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        The rows, at least as many as components.
    n_components : int
        Number of components.
    added_variance : float
        Added to the variance of every column in every component.
    seed : int
        Decides where k-means starts.

    Returns
    -------
    Mixture or None
        None where a component collapsed.
    """
    columns = np.ascontiguousarray(table.T)
    labels = k_means_labels(table, n_components, seed)
    shares = (labels == np.arange(n_components)[:, None]).astype(float)
    mixture, deviations = _maximised(columns, shares, added_variance)
    likelihood = -np.inf
    for _ in range(_MOST_STEPS):
        if mixture is None:
            return None
        joint = mixture._log_joint(deviations)
        total = _log_sum(joint)
        joint -= total
        mixture, deviations = _maximised(columns, np.exp(joint, out=joint), added_variance)
        before, likelihood = likelihood, float(total.mean())
        if abs(likelihood - before) < _TOLERANCE:
            break
    return mixture


def _maximised(
    columns: np.ndarray, shares: np.ndarray, added_variance: float
) -> tuple[Mixture | None, np.ndarray]:
    """The likeliest mixture, given each component's share in each row; deviations from its means.

    Parameters
    ----------
    columns : ndarray of shape (n_columns, n_rows)
        The rows, transposed.
    shares : ndarray of shape (n_components, n_rows)
        Of each row they add up to 1.
    added_variance : float
        Added to all variances.
    """
    n_rows = shares.sum(axis=1) + _NONE
    means = (shares @ columns.T) / n_rows[:, None]
    deviations = columns - means[:, :, None]
    weighted = deviations * np.sqrt(shares)[:, None]
    covariances = weighted @ weighted.transpose(0, 2, 1)
    covariances /= n_rows[:, None, None]
    np.einsum("kjj->kj", covariances)[...] += added_variance
    if not np.isfinite(covariances).all():
        return None, deviations
    whiteners = np.empty_like(covariances)
    for number, covariance in enumerate(covariances):
        root, indefinite = lapack.dpotrf(covariance, lower=1)
        if indefinite:
            return None, deviations
        whiteners[number], singular = lapack.dtrtri(root, lower=1)
        if singular:
            return None, deviations
    return Mixture(np.log(n_rows / n_rows.sum()), means, whiteners), deviations


def _log_sum(logarithms: np.ndarray) -> np.ndarray:
    """Logarithm of the sum over components."""
    largest = logarithms.max(axis=0)
    return np.asarray(largest + np.log(np.exp(logarithms - largest).sum(axis=0)))


# --- the densest part of a set of rows: DBSCAN at the first of many radii that gives few  --------
# Running DBSCAN anew for every radius would cost as much as there are radii. All of them are
# answered at once by the minimum spanning tree of the rows under the mutual reachability distance,
# the largest of the distance of two rows and their core distances: at radius r the clusters' core
# rows are what the tree's edges up to r connect.

#: Rows within the radius, itself included, that make a row a core row.
MIN_ROWS = 5
#: The radius grows by this share of the first one, so many times.
RADIUS_STEP, MOST_STEPS = 0.1, 1000
#: Largest share of rows that may be noise: at a smaller radius a cluster is still falling apart.
MOST_NOISE = 0.005
#: Distances of so many rows are kept in memory (72 MB); of more they are computed when needed.
_KEPT_ROWS = 3000
#: Numbers in a block of distances.
_DENSITY_BLOCK = 1 << 21


def densest_cluster(points: np.ndarray, radius: float, most_labels: int) -> np.ndarray:
    """Find the largest DBSCAN cluster at the first radius that gives few labels and little noise.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_features)
        The rows, at least one.
    radius : float
        First radius; the next ones are larger by a tenth of it each. After 1000 of them come those
        at which something changes.
    most_labels : int
        Take the first radius with at most so many labels (clusters, and noise if there is any) at
        which at most 0.5 % of the rows are noise.

    Returns
    -------
    ndarray of bool, shape (n_rows,)
        Rows of the largest cluster, the first of equally large ones; all rows where everything is
        noise.
    """
    reach = Reachability(points)
    radii = radius * (1 + RADIUS_STEP * np.arange(MOST_STEPS + 1))
    # At the largest of all distances there is one cluster without noise.
    changes = np.sort(np.concatenate([reach.weights, reach.core]))
    radii = np.append(radii, changes[(changes > radii[-1]) & (changes < np.inf)])
    few = reach.n_labels(radii) <= most_labels
    chosen = np.flatnonzero(few & (reach.n_noise(radii) <= MOST_NOISE * len(points)))
    if not len(chosen):  # too few rows to be anything but noise
        return np.ones(len(points), dtype=bool)
    labels = reach.labels(float(radii[chosen[0]]))
    return np.asarray(labels == np.bincount(labels[labels >= 0]).argmax())


class Reachability:
    """What DBSCAN says about some rows at any radius.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_features)
        The rows, at least one.

    Attributes
    ----------
    core : ndarray of shape (n_rows,)
        Radius from which on each row is a core row.
    joined : ndarray of shape (n_rows,)
        Radius from which on each row is no noise.
    edges : ndarray of int, shape (n_rows - 1, 2)
        The minimum spanning tree of mutual reachability.
    weights : ndarray of shape (n_rows - 1,)
        Length of each edge.
    """

    def __init__(self, points: np.ndarray) -> None:
        self._points = np.ascontiguousarray(points)
        n_rows = len(points)
        self._distances = cdist(points, points) if n_rows <= _KEPT_ROWS else None
        self.core = np.full(n_rows, np.inf)
        if n_rows >= MIN_ROWS:
            for block in self._blocks(n_rows):
                nearest = np.partition(self._between(block), MIN_ROWS - 1, axis=1)
                self.core[block] = nearest[:, MIN_ROWS - 1]
        self.joined = self.core.copy()
        self.edges = np.empty((max(0, n_rows - 1), 2), dtype=np.intp)
        self.weights = np.full(max(0, n_rows - 1), np.inf)
        if n_rows >= MIN_ROWS:
            if self._distances is None:
                self._span()
            else:
                self._link(self._distances)

    def _blocks(self, n_columns: int) -> list[slice]:
        size = max(1, _DENSITY_BLOCK // max(1, n_columns))
        return [slice(i, i + size) for i in range(0, len(self._points), size)]

    def _between(self, block: slice) -> np.ndarray:
        if self._distances is not None:
            return self._distances[block]
        return cdist(self._points[block], self._points)

    def _link(self, distances: np.ndarray) -> None:
        """Join the nearest rows first; an edge leads from any row of one part to any of the other.

        Such edges connect the same rows at every radius as those of :meth:`_span`.
        """
        mutual = np.maximum(distances, self.core)
        self.joined = mutual.min(axis=1)
        np.maximum(mutual, self.core[:, None], out=mutual)
        merged = linkage(squareform(mutual, checks=False), "single")
        some_row = list(range(len(distances)))
        for first, second in merged[:, :2].astype(np.intp).tolist():
            self.edges[len(some_row) - len(distances)] = some_row[first], some_row[second]
            some_row.append(some_row[first])
        self.weights = merged[:, 2]

    def _span(self) -> None:
        """Grow the tree from the first row, always by the nearest row outside (Prim)."""
        n_rows = len(self._points)
        nearest = np.full(n_rows, np.inf)  # of each row outside: its distance to the tree ...
        parent = np.zeros(n_rows, dtype=np.intp)  # ... and where in the tree it would go
        outside = np.zeros(n_rows)
        last = 0
        for number in range(n_rows):
            # A row is joined to a cluster as soon as a core row lies within the radius.
            to_last = self._between(slice(last, last + 1))[0]
            mutual = np.maximum(to_last, self.core[last])
            np.minimum(self.joined, mutual, out=self.joined)
            if number == n_rows - 1:
                break
            np.maximum(mutual, self.core, out=mutual)
            outside[last] = np.inf
            closer = mutual < nearest
            parent[closer] = last
            np.minimum(nearest, mutual, out=nearest)
            last = int((nearest + outside).argmin())
            self.edges[number] = parent[last], last
            self.weights[number] = nearest[last]

    def n_noise(self, radii: np.ndarray) -> np.ndarray:
        """Count the rows that are noise at each radius.

        Parameters
        ----------
        radii : ndarray of shape (n_radii,)
            The radii.

        Returns
        -------
        ndarray of int, shape (n_radii,)
            From 0 to the number of rows.
        """
        return len(self.joined) - np.searchsorted(np.sort(self.joined), radii, side="right")

    def n_labels(self, radii: np.ndarray) -> np.ndarray:
        """Count the labels that DBSCAN gives at each radius, noise included.

        Parameters
        ----------
        radii : ndarray of shape (n_radii,)
            The radii.

        Returns
        -------
        ndarray of int, shape (n_radii,)
            At least 1.
        """
        n_core = np.searchsorted(np.sort(self.core), radii, side="right")
        n_edges = np.searchsorted(np.sort(self.weights), radii, side="right")
        return n_core - n_edges + (self.n_noise(radii) > 0)

    def labels(self, radius: float) -> np.ndarray:
        """Label the rows as DBSCAN does.

        Parameters
        ----------
        radius : float
            The radius.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            Clusters numbered by their first core row; -1 for noise. A row between clusters goes
            to the first of them.
        """
        n_rows = len(self._points)
        labels = np.full(n_rows, -1, dtype=np.intp)
        core = np.flatnonzero(self.core <= radius)
        if not len(core):
            return labels
        component = _connected(n_rows, self.edges[self.weights <= radius])[core]
        _, first_core, inverse = np.unique(component, return_index=True, return_inverse=True)
        labels[core] = np.argsort(np.argsort(first_core))[inverse]
        border = np.flatnonzero((self.core > radius) & (self.joined <= radius))
        if len(border):
            size = max(1, _DENSITY_BLOCK // len(core))
            for begin in range(0, len(border), size):
                some = border[begin : begin + size]
                near = cdist(self._points[some], self._points[core]) <= radius
                labels[some] = np.where(near, labels[core], n_rows).min(axis=1)
        return labels


def _connected(n_rows: int, edges: np.ndarray) -> np.ndarray:
    """A row of each row's part, the same for all rows that the edges of a forest connect."""
    parent = list(range(n_rows))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = row = parent[parent[row]]
        return row

    for first, second in edges.tolist():
        parent[root(second)] = root(first)
    return np.array([root(row) for row in range(n_rows)])


# --- Boxes that may set some rows apart: around the densest parts of a Gaussian mixture ----------

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
