"""What predictions can at best be worth, given how many errors they have at least."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from skescore._validation import check_integer, check_number

#: Most choices of classes that are looked at one by one.
_CHOICES = 12
_STEPS = 40
#: Most numbers in one table, and most intervals that the rows missed of a class are parted into.
_TABLE, _INTERVALS = 6_000, 200


def most_weighted_f1(
    class_weights: Sequence[float], errors: float, max_classes: int | None = None
) -> float:
    r"""Bound the weighted F1 of predictions that have at least some errors.

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

    Raises
    ------
    TypeError, ValueError
        If a weight or the errors are negative or no numbers, or `max_classes` is below 1.

    Notes
    -----
    Let :math:`a_k` be the rows of class k that are missed, :math:`b_k` those that are taken for it
    and e all errors. Then :math:`F_k = 2 (n_k - a_k) / (2 n_k - a_k + b_k)` is concave in
    :math:`a_k` and convex in :math:`b_k`, both sum to e, and :math:`b_k \leq e - a_k`, as rows that
    are taken for a class are not of it. So at the most one class has :math:`b_k = e - a_k`, another
    one the :math:`a_k` that are left, and all others none. For each two classes and each interval
    of :math:`a_k` the best other a is bounded by Lagrange's dual, whose every value is a bound.

    Where not all classes are predicted, let the larger class k take the place of the smaller class
    i, with as many hits and false alarms: :math:`n_k F_k \geq n_i F_i` at the same errors, and
    :math:`b_k \leq e - a_k + n_k - n_i`.

    Examples
    --------
    >>> from skescore.certificates import most_weighted_f1
    >>> most_weighted_f1([50, 50, 50], 0)
    1.0
    >>> round(most_weighted_f1([50, 50, 50], 6), 4)
    0.9607
    >>> round(most_weighted_f1([50, 50, 50], 6, max_classes=2), 4)
    0.5556
    """
    check_number("errors", errors, 0)
    check_integer("max_classes", max_classes, 1, optional=True)
    given = np.asarray(class_weights, dtype=float)
    if given.ndim != 1 or not (np.isfinite(given) & (given >= 0)).all():
        raise ValueError(
            f"class_weights must be finite numbers of 0 or more, one per class, got "
            f"{given.tolist()!r}."
        )
    falling = np.sort(given[given > 0])[::-1]
    most = len(falling) if max_classes is None else min(max_classes, len(falling))
    return _most(tuple(falling.tolist()), float(errors), most) if len(falling) else 1.0


@lru_cache(maxsize=4096)
def _most(weights: tuple[float, ...], errors: float, most: int) -> float:
    """The same of weights that fall; certificates ask for it again and again."""
    falling = np.array(weights)
    total = float(falling.sum())
    if comb(len(weights), most) <= _CHOICES:
        chosen = {tuple(falling[list(kept)]) for kept in combinations(range(len(falling)), most)}
        bound = max(_of_classes(np.array(kept), total, errors, 0.0) for kept in chosen)
    else:
        # The largest classes are no worse than others, but for what is known of false alarms.
        apart = float((falling[:most] - falling[-most:]).max())
        bound = _of_classes(falling[:most], total, errors, apart)
    return min(1.0, bound * (1 + 1e-12))


def _of_classes(n: np.ndarray, total: float, errors: float, apart: float) -> float:
    """Bound F1 where other classes are never predicted.

    Each class may be taken for so many rows of its own as classes are `apart`.
    """
    errors = max(errors, total - float(n.sum()))
    missed = errors - (total - float(n.sum()))
    # As if misses knew nothing of false alarms, which are all of one class.
    m = len(n)
    bound = float(_dual(n, errors * np.eye(m), np.full(m, missed), total).max())
    if m == 1:
        return bound
    pairs = np.array([(k, j) for k in range(m) for j in range(m) if k != j])
    n_intervals = max(6, min(_INTERVALS, _TABLE // (len(pairs) * m)))
    own = n[pairs[:, 0]][:, None]
    steps = np.minimum(own, missed) * np.linspace(0, 1, n_intervals + 1)
    low, high = steps[:, :-1], steps[:, 1:]  # how many are missed of the pair's first class
    f = own / total * 2 * (own - low) / (2 * own - low + np.maximum(errors - high, 0))
    others = np.array([[i for i in range(m) if i != k] for k, _ in pairs])
    taken = np.where(
        (others == pairs[:, 1:])[:, None, :], np.maximum(low - apart, 0)[:, :, None], 0.0
    )
    rest = n[others][:, None, :]
    missed_there = np.clip(missed - high, 0, rest.sum(axis=-1))
    return min(bound, float((f + _dual(rest, taken, missed_there, total)).max()))


def _dual(n: np.ndarray, b: np.ndarray, missed: np.ndarray, total: float) -> np.ndarray:
    """Most Σ n/total · F over a with Σ a = missed, from above; sums are over the last axis."""
    shape = np.broadcast_shapes(b.shape[:-1], missed.shape)
    low, high = np.full(shape, 1e-12 / total), np.full(shape, 1e3 / total)
    best = np.full(shape, np.inf)
    for _ in range(_STEPS):
        slope = np.sqrt(low * high)
        price = slope[..., None]
        root = np.sqrt(2 * n * (n + b) / (total * price))
        a = np.clip(2 * n + b - root, 0, n)
        f = n / total * 2 * (n - a) / (2 * n - a + b)
        best = np.minimum(best, (f + price * a).sum(axis=-1) - slope * missed)
        more = a.sum(axis=-1) > missed
        low, high = np.where(more, low, slope), np.where(more, slope, high)
    return best
