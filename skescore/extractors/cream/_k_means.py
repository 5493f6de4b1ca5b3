"""Lloyd's k-means from greedily spread first centres, for a few thousand rows.

The same clusters as scikit-learn's, whose checks take longer than the clustering of so few rows.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

#: Most steps; they end before where no row changes its cluster, or the centres move by less than
#: this share of the columns' mean variance.
_MOST_STEPS = 300
_TOLERANCE = 1e-4


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
    tolerance = _TOLERANCE * float(table.var(axis=0).mean())
    centres = _first_centres(centred, squares, n_clusters, np.random.RandomState(seed))
    numbers = np.arange(n_clusters)[:, None]
    labels = np.full(len(table), -1)
    for _ in range(_MOST_STEPS):
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
