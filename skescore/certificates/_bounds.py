"""Upper bounds of the weighted F1 of predictions with a given number of errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from skescore._validation import check_integer, check_number

#: Largest number of sets of predicted classes that are bounded one by one.
_MAX_CLASS_SETS = 12
#: Number of bisection steps for the Lagrange multiplier.
_BISECTION_STEPS = 40
#: Largest numbers of entries of a table and of intervals of the false negatives of a class.
_TABLE_SIZE, _MAX_INTERVALS = 6_000, 200


def bound_weighted_f1(
    class_weights: Sequence[float], errors: float, max_classes: int | None = None
) -> float:
    r"""Return an upper bound of the weighted F1 of predictions, given a lower bound of errors.

    Parameters
    ----------
    class_weights : sequence of float
        Weight of the rows of each class.
    errors : float
        Lower bound of the weight of wrongly predicted rows.
    max_classes : int, optional
        Largest number of predicted classes, such as the number of rules.

    Returns
    -------
    float
        Upper bound of the weighted F1.

    Raises
    ------
    TypeError, ValueError
        If a weight or the errors are negative or not numbers, or `max_classes` is below 1.

    Notes
    -----
    Let :math:`a_k` be the false negatives and :math:`b_k` the false positives of class k, and e all
    errors. Then :math:`F_k = 2 (n_k - a_k) / (2 n_k - a_k + b_k)` is concave in :math:`a_k` and
    convex in :math:`b_k`. Both sum to e, and :math:`b_k \leq e - a_k`, because false positives of k
    are not of class k. In the best case, one class therefore has :math:`b_k = e - a_k`, another one
    the remaining :math:`a_k`, and all others none. For each pair of classes and each interval of
    :math:`a_k`, the Lagrangian dual gives an upper bound over the other a.

    If not all classes are predicted, let a larger class k replace a smaller class i, with as many
    true positives and false positives: then :math:`n_k F_k \geq n_i F_i` for the same errors, and
    :math:`b_k \leq e - a_k + n_k - n_i`.

    Examples
    --------
    >>> from skescore.certificates import bound_weighted_f1
    >>> bound_weighted_f1([50, 50, 50], 0)
    1.0
    >>> round(bound_weighted_f1([50, 50, 50], 6), 4)
    0.9607
    >>> round(bound_weighted_f1([50, 50, 50], 6, max_classes=2), 4)
    0.5556
    """
    check_number("errors", errors, 0)
    check_integer("max_classes", max_classes, 1, optional=True)
    weights = np.asarray(class_weights, dtype=float)
    if weights.ndim != 1 or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(
            f"class_weights must be finite numbers of 0 or more, one per class, got "
            f"{weights.tolist()!r}."
        )
    if not weights.any():
        return 1.0
    # The bound does not depend on the unit, but products of huge or tiny weights are not floats.
    shift = -math.frexp(weights.max())[1]
    weights, errors = np.ldexp(weights, shift), float(np.ldexp(min(errors, weights.sum()), shift))
    sorted_weights = tuple(np.sort(weights[weights > 0])[::-1].tolist())
    n_classes = len(sorted_weights)
    n_predicted = n_classes if max_classes is None else min(max_classes, n_classes)
    return _cached_bound(sorted_weights, errors, n_predicted)


@lru_cache(maxsize=4096)
def _cached_bound(weights: tuple[float, ...], errors: float, n_predicted: int) -> float:
    """Bound the weighted F1 for decreasing weights of classes."""
    class_weights = np.array(weights)
    total = float(class_weights.sum())
    if comb(len(weights), n_predicted) <= _MAX_CLASS_SETS:
        class_sets = {
            tuple(class_weights[list(classes)])
            for classes in combinations(range(len(weights)), n_predicted)
        }
        bound = max(_bound_for_classes(np.array(n), total, errors, 0.0) for n in class_sets)
    else:
        # The largest classes are at least as good, with a weaker limit on false positives.
        slack = float((class_weights[:n_predicted] - class_weights[-n_predicted:]).max())
        bound = _bound_for_classes(class_weights[:n_predicted], total, errors, slack)
    return min(1.0, bound * (1 + 1e-12))


def _bound_for_classes(n: np.ndarray, total: float, errors: float, slack: float) -> float:
    """Bound the weighted F1 of predictions of some classes.

    Parameters
    ----------
    n : ndarray of shape (n_predicted,)
        Weights of the predicted classes.
    total : float
        Weight of all classes.
    errors : float
        Lower bound of the weight of the errors.
    slack : float
        Weight of a class's own rows that may count as its false positives.

    Returns
    -------
    float
        The bound.
    """
    errors = max(errors, total - float(n.sum()))
    misses = errors - (total - float(n.sum()))
    # A first bound assigns all false positives to one class, regardless of its false negatives.
    m = len(n)
    bound = float(_dual_bound(n, errors * np.eye(m), np.full(m, misses), total).max())
    if m == 1:
        return bound
    class_pairs = np.array([(k, j) for k in range(m) for j in range(m) if k != j])
    n_intervals = max(6, min(_MAX_INTERVALS, _TABLE_SIZE // (len(class_pairs) * m)))
    n_first = n[class_pairs[:, 0]][:, None]
    # Intervals of the false negatives of the first class of each pair.
    ends = np.minimum(n_first, misses) * np.linspace(0, 1, n_intervals + 1)
    low, high = ends[:, :-1], ends[:, 1:]
    hits = n_first - low
    f1 = n_first / total * 2 * hits / (2 * n_first - low + np.maximum(errors - high, 0))
    other_classes = np.array([[i for i in range(m) if i != k] for k, _ in class_pairs])
    is_second = (other_classes == class_pairs[:, 1:])[:, None, :]
    false_alarms = np.where(is_second, np.maximum(low - slack, 0)[:, :, None], 0.0)
    n_others = n[other_classes][:, None, :]
    other_misses = np.clip(misses - high, 0, n_others.sum(axis=-1))
    dual = _dual_bound(n_others, false_alarms, other_misses, total)
    return min(bound, float((f1 + dual).max()))


def _dual_bound(
    n: np.ndarray, false_alarms: np.ndarray, misses: np.ndarray, total: float
) -> np.ndarray:
    """Bound the weighted F1 over all distributions of the false negatives to classes.

    The last axis holds the classes. Bisection finds the multiplier of the sum of false negatives.
    """
    shape = np.broadcast_shapes(false_alarms.shape[:-1], misses.shape)
    low, high = np.full(shape, 1e-12 / total), np.full(shape, 1e3 / total)
    bound = np.full(shape, np.inf)
    for _ in range(_BISECTION_STEPS):
        multiplier = np.sqrt(low * high)
        class_multiplier = multiplier[..., None]
        root = np.sqrt(2 * n * (n + false_alarms) / (total * class_multiplier))
        a = np.clip(2 * n + false_alarms - root, 0, n)
        f1 = n / total * 2 * (n - a) / (2 * n - a + false_alarms)
        dual = (f1 + class_multiplier * a).sum(axis=-1) - multiplier * misses
        bound = np.minimum(bound, dual)
        exceeds = a.sum(axis=-1) > misses
        low, high = np.where(exceeds, low, multiplier), np.where(exceeds, multiplier, high)
    return bound
