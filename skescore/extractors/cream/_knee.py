"""The knee of a descending curve: Kneedle, for points that are equally far apart."""

from __future__ import annotations

import numpy as np

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
