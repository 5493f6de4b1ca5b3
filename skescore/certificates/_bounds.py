"""What predictions can at best be worth, given how many errors they have at least."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, inf, sqrt

import numpy as np

from skescore._validation import check_integer, check_number, row_weights

#: Most choices of classes that are looked at one by one.
_CHOICES = 500
_STEPS = 80


def most_weighted_f1(
    class_weights: Sequence[float], errors: float, max_classes: int | None = None
) -> float:
    """Bound the weighted F1 of predictions that have at least some errors.

    Parameters
    ----------
    class_weights : sequence of float
        How many rows each class has, or their weight.
    errors : float
        The least weight of rows that are predicted wrongly.
    max_classes : int, optional
        Most classes that are predicted at all, as many as there are rules.

    Returns
    -------
    float
        No predictions have a greater weighted F1.

    Notes
    -----
    Let :math:`a_k` be the rows of class k that are missed and :math:`b_k` those that are taken for
    it. Then :math:`F_k = 2 (n_k - a_k) / (2 n_k - a_k + b_k)` is concave in :math:`a_k` and convex
    in :math:`b_k`, and both sum to the errors. So at the most all of b is in one class; for each
    such class the best a is bounded by Lagrange's dual, whose every value is a bound.

    Examples
    --------
    >>> from skescore.certificates import most_weighted_f1
    >>> most_weighted_f1([50, 50, 50], 0)
    1.0
    >>> round(most_weighted_f1([50, 50, 50], 6), 4)
    0.9608
    >>> round(most_weighted_f1([50, 50, 50], 6, max_classes=2), 4)
    0.5556
    """
    check_number("errors", errors, 0)
    check_integer("max_classes", max_classes, 1, optional=True)
    given = row_weights(class_weights, len(class_weights))
    weights = given[given > 0]
    total = float(weights.sum())
    most = len(weights) if max_classes is None else min(max_classes, len(weights))
    if not len(weights):
        return 1.0
    if comb(len(weights), most) > _CHOICES:
        # Of all choices: those left out cost at least the smallest classes.
        dropped = float(np.sort(weights)[: len(weights) - most].sum())
        return min(1.0, _most(weights, total, max(errors, dropped), 0.0))
    best = 0.0
    for chosen in combinations(range(len(weights)), most):
        kept = weights[list(chosen)]
        dropped = total - float(kept.sum())
        best = max(best, _most(kept, total, max(errors, dropped), dropped))
    return min(1.0, best)


def _most(kept: np.ndarray, total: float, errors: float, dropped: float) -> float:
    """The bound where other classes, of the weight `dropped`, are never predicted."""
    missed = min(errors - dropped, float(kept.sum()))
    best = 0.0
    for k in range(len(kept)):
        taken = np.zeros(len(kept))
        taken[k] = errors
        best = max(best, _dual(kept, taken, missed, total))
    return best * (1 + 1e-12)


def _dual(n: np.ndarray, b: np.ndarray, missed: float, total: float) -> float:
    """Most Σ n/total · F over a with Σ a = missed, from above."""

    def value(slope: float) -> tuple[float, float]:
        root = np.sqrt(2 * n * (n + b) / (total * slope))
        a = np.clip(2 * n + b - root, 0, n)
        f = n / total * 2 * (n - a) / (2 * n - a + b)
        return float((f + slope * a).sum()) - slope * missed, float(a.sum())

    low, high, best = 1e-12 / total, 1e3 / total, inf
    for _ in range(_STEPS):
        slope = sqrt(low * high)
        bound, reached = value(slope)
        best = min(best, bound)
        if reached > missed:
            high = slope
        else:
            low = slope
    return best
