"""Exact confidence intervals of shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore._validation import check_integer, check_number


def clopper_pearson(hits: int, n_samples: int, confidence: float = 0.99) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a probability, given counted hits.

    Use it for shares estimated by random points, even if no or all points are hits.

    References
    ----------
    C. J. Clopper, E. S. Pearson: The use of confidence or fiducial limits illustrated in the case
    of the binomial. Biometrika 26(4), 1934.
    """
    check_integer("n_samples", n_samples, low=1)
    check_integer("hits", hits, low=0, high=n_samples)
    check_number("confidence", confidence, above=0, below=1)
    low, high = clopper_pearson_intervals(hits, n_samples, confidence)
    return float(low), float(high)


def clopper_pearson_intervals(
    hits: Any, n_samples: Any, confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return an interval per number of hits; without samples, it is from 0 to 1."""
    from scipy.special import betaincinv

    x, n = np.asarray(hits, dtype=float), np.asarray(n_samples, dtype=float)
    tail = (1.0 - confidence) / 2.0
    low = np.where(x > 0, betaincinv(x, n - x + 1.0, tail), 0.0)
    high = np.where(x < n, betaincinv(x + 1.0, n - x, 1.0 - tail), 1.0)
    return low, high
