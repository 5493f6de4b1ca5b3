"""The nearest rows of points, exactly, also with many features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

#: Largest number of features for which a k-d tree is faster than all distances.
_MAX_TREE_FEATURES = 8
#: Distances that are computed at once, so few that they stay in the cache of the processor.
_MAX_DISTANCES = 262_144
#: Rounding errors of squared distances, relative to the squared size of the rows.
_ROUNDING = 1e-11


def nearest_row_search(rows: Floats) -> Callable[[Floats], Integers]:
    """Return a function that finds the nearest row of each point by Euclidean distance.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        The rows, without missing values.

    Returns
    -------
    callable
        Maps points of shape (n_points, n_features) to the indices of rows. With more than eight
        features, the first one of equally near rows is chosen.

    Notes
    -----
    With many features a k-d tree visits almost all rows. Then a product of matrices gives all
    distances up to rounding errors, and only rows within these of the nearest one are compared
    exactly, so that the result does not depend on the order of additions in the product.

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

    def nearest(points: Floats) -> Integers:
        points = points - center
        step = max(1, _MAX_DISTANCES // len(rows))
        parts = [
            _nearest_rows(points[start : start + step], centered, sizes)
            for start in range(0, len(points), step)
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)

    return nearest


def _nearest_rows(points: Floats, rows: Floats, sizes: Floats) -> Integers:
    distances = (-2 * points) @ rows.T
    distances += sizes  # without the sizes of the points
    best = distances.argmin(axis=1)
    smallest = distances[np.arange(len(points)), best]
    largest = (points**2).sum(axis=1) + sizes.max()
    is_near = distances <= (smallest + _ROUNDING * largest)[:, np.newaxis]
    for i in np.flatnonzero(np.count_nonzero(is_near, axis=1) > 1):
        near = np.flatnonzero(is_near[i])
        exact = ((rows[near] - points[i]) ** 2).sum(axis=1)
        best[i] = near[exact.argmin()]
    return best
