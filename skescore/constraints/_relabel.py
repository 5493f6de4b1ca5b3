"""Cheapest outputs of rules that respect an order between rules.

An order relation states that the output of one rule may not exceed the output of another. Labels
are found by a minimum closure, numbers by isotonic regression; both are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

#: Cost of a forbidden label.
_FORBIDDEN = 1e9


def minimum_closure(costs: np.ndarray, implications: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the cheapest set of items that contains all items implied by its members.

    Parameters
    ----------
    costs : ndarray of shape (n_items,)
        Cost of each item; negative costs are gains.
    implications : sequence of (int, int)
        Pairs of items; the first requires the second.

    Returns
    -------
    ndarray of bool, shape (n_items,)
        The chosen items.

    Notes
    -----
    The linear program has a totally unimodular matrix, so its vertices are integral.

    References
    ----------
    J.-C. Picard: Maximal closure of a graph and applications to combinatorial problems.
    Management Science 22(11), 1976.

    Examples
    --------
    >>> minimum_closure(np.array([-3.0, 2.0, 1.0]), [(0, 1)]).tolist()
    [True, True, False]
    """
    if not len(implications) or not (costs < 0).any():
        return np.asarray(costs < 0)
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix

    pairs = np.asarray(implications)
    n_pairs = len(pairs)
    rows = np.repeat(np.arange(n_pairs), 2)
    values = np.tile([1.0, -1.0], n_pairs)
    matrix = coo_matrix((values, (rows, pairs.ravel())), shape=(n_pairs, len(costs))).tocsr()
    scale = np.abs(costs).max()
    result = linprog(
        costs / scale, A_ub=matrix, b_ub=np.zeros(n_pairs), bounds=(0, 1), method="highs-ds"
    )
    return np.asarray(result.x > 0.5)


def ordered_labels(costs: np.ndarray, relation: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the cheapest ranks of labels that do not decrease along a relation.

    Parameters
    ----------
    costs : ndarray of shape (n_rules, n_labels)
        Cost of each label, in the order of ranks; infinite for forbidden labels.
    relation : sequence of (int, int)
        The first rule may not have a higher rank than the second.

    Returns
    -------
    ndarray of int, shape (n_rules,)
        The ranks. Forbidden labels appear only if the relation permits nothing else.

    Notes
    -----
    Item (i, k) of a closure states that rule i has at least rank k.

    References
    ----------
    H. Ishikawa: Exact optimization for Markov random fields with convex priors. IEEE Transactions
    on Pattern Analysis and Machine Intelligence 25(10), 2003.

    Examples
    --------
    >>> costs = np.array([[3.0, 0.0], [0.0, 2.0], [5.0, 0.0]])
    >>> ordered_labels(costs, [(0, 1), (1, 2)]).tolist()
    [1, 1, 1]
    """
    n_rules, n_labels = costs.shape
    if n_labels == 1:
        return np.zeros(n_rules, dtype=int)
    steps = np.diff(np.minimum(costs, _FORBIDDEN), axis=1)
    item = np.arange(n_rules * (n_labels - 1)).reshape(n_rules, n_labels - 1)
    implications = [
        (int(item[i, k + 1]), int(item[i, k])) for i in range(n_rules) for k in range(n_labels - 2)
    ]
    for lower, upper in relation:
        implications += zip(item[lower].tolist(), item[upper].tolist(), strict=True)
    chosen = minimum_closure(steps.ravel(), implications)
    return np.asarray(chosen.reshape(item.shape).sum(axis=1))


def isotonic_values(
    values: np.ndarray,
    weights: np.ndarray,
    relation: Sequence[tuple[int, int]],
    fixed: Mapping[int, float],
) -> np.ndarray:
    """Return the values nearest to `values` that do not decrease along a relation.

    Parameters
    ----------
    values : ndarray of shape (n_rules,)
        Mean of the labels of each rule.
    weights : ndarray of shape (n_rules,)
        Number of rows of each rule; the weighted squared differences are minimized.
    relation : sequence of (int, int)
        The first rule may not have a larger value than the second.
    fixed : mapping of int to float
        Values that may not change.

    Returns
    -------
    ndarray of shape (n_rules,)
        The values.

    References
    ----------
    W. Maxwell, J. Muckstadt: Establishing consistent and realistic reorder intervals in
    production-distribution systems. Operations Research 33(6), 1985.

    Examples
    --------
    >>> isotonic_values(np.array([3.0, 1.0, 5.0]), np.ones(3), [(0, 1), (1, 2)], {}).tolist()
    [2.0, 2.0, 5.0]
    """
    values, weights = values.astype(float), np.maximum(weights.astype(float), 1e-9)
    for rule, value in fixed.items():
        values[rule], weights[rule] = value, _FORBIDDEN * weights.max()
    result = values.copy()
    pending = [np.arange(len(values))]
    while pending:
        block = pending.pop()
        mean = float(np.average(values[block], weights=weights[block]))
        position = {int(rule): i for i, rule in enumerate(block)}
        inside = [
            (position[a], position[b]) for a, b in relation if a in position and b in position
        ]
        gains = weights[block] * (mean - values[block])
        upper = minimum_closure(gains, inside)
        if gains[upper].sum() >= -1e-12 * (1 + np.abs(gains).sum()) or upper.all():
            result[block] = mean
        else:
            pending += [block[upper], block[~upper]]
    return _clipped(result, relation, fixed)


def _clipped(
    values: np.ndarray, relation: Sequence[tuple[int, int]], fixed: Mapping[int, float]
) -> np.ndarray:
    """Set the fixed values, and clip the others to the values below and above them."""
    if not fixed:
        return values
    lower = np.full(len(values), -np.inf)
    upper = np.full(len(values), np.inf)
    for rule, value in fixed.items():
        lower[rule] = upper[rule] = value
    for _ in range(len(values)):
        previous = lower.copy(), upper.copy()
        for a, b in relation:
            lower[b] = max(lower[b], lower[a])
            upper[a] = min(upper[a], upper[b])
        if np.array_equal(lower, previous[0]) and np.array_equal(upper, previous[1]):
            break
    result = np.clip(values, lower, np.maximum(lower, upper))
    for rule, value in fixed.items():
        result[rule] = value
    return result


def order_relation(decisions: Any, monotone: Mapping[int, str]) -> list[tuple[int, int]]:
    """Return pairs of rules whose first rule may not have a higher output than the second.

    Parameters
    ----------
    decisions : DecisionRegions
        Regions in which the rules decide.
    monotone : mapping of int to {"+", "-"}
        Direction of each monotone feature.

    Returns
    -------
    list of (int, int)
        Indices of rules; -1 is the fallback.
    """
    deciders = [i for i in decisions.deciders if decisions.output(i) is not None]
    pairs: dict[tuple[int, int], None] = {}
    for feature, direction in monotone.items():
        for lower in deciders:
            for upper in deciders:
                pair = (lower, upper) if direction == "+" else (upper, lower)
                if lower == upper or pair in pairs:
                    continue
                if decisions.precedes(lower, upper, feature) is not None:
                    pairs[pair] = None
    return list(pairs)
