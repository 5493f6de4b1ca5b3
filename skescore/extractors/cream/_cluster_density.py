"""The densest part of a set of rows: DBSCAN at the first of many radii that gives few clusters.

Running DBSCAN anew for every radius would cost as much as there are radii. All of them are answered
at once by the minimum spanning tree of the rows under the mutual reachability distance, the largest
of the distance of two rows and their core distances: at radius r the clusters' core rows are what
the tree's edges up to r connect.
"""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import cdist, squareform

#: Rows within the radius, itself included, that make a row a core row.
MIN_ROWS = 5
#: The radius grows by this share of the first one, so many times.
RADIUS_STEP, MOST_STEPS = 0.1, 1000
#: Largest share of rows that may be noise: at a smaller radius a cluster is still falling apart.
MOST_NOISE = 0.005
#: Distances of so many rows are kept in memory (72 MB); of more they are computed when needed.
_KEPT_ROWS = 3000
#: Numbers in a block of distances.
_BLOCK = 1 << 21


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
        size = max(1, _BLOCK // max(1, n_columns))
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
            size = max(1, _BLOCK // len(core))
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
