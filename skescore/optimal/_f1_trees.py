"""Upper bounds on the weighted F1 of decision trees with a limited number of leaves.

The weighted F1 is not a sum over leaves: false positives in one leaf reduce the value of the hits
in other leaves with the same class. But if the number of rows predicted for each class is between a
lower and an upper limit, sums over leaves bound the F1, and the search for optimal trees maximizes
these sums. Lagrange multipliers penalize trees that exceed the limits. Branch and bound narrows the
limits of one class at a time until the bound is tight enough.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from skescore._validation import check_integer, check_number
from skescore.optimal._cuts import Cuts
from skescore.optimal._problem import SearchSpace, SolverLimits, TrainingRows
from skescore.optimal._trees import CutColumns, Misclassification, TreeConverter, TreeSearch
from skescore.rules import RuleSet

#: Subgradient steps on the Lagrange multipliers before branching on the predicted counts.
_N_MULTIPLIER_STEPS = 5
#: Largest rounding error of single precision, relative to the largest loss.
_ROUNDING_ERROR = 2e-6


@dataclass(frozen=True, eq=False)
class F1Bound:
    """Proven upper bound on the weighted F1 of decision trees with a limited number of leaves.

    Parameters
    ----------
    max_leaves : int
        Largest number of leaves that the bound covers.
    upper_bound : float
        No tree with at most `max_leaves` leaves has a larger weighted F1.
    incumbent : float
        Weighted F1 of the best tree found; 0 if none was found.
    rules : RuleSet or None
        Leaves of the best tree found.
    proof : mapping
        Branch-and-bound tree as JSON values, with ``"classes"``, ``"target"`` and ``"root"``. An
        inner node branches on the number of rows predicted for a class (``"class"``): in the first
        of its ``"branches"``, this number is at most the first of ``"between"``; in the other, at
        least the second. A leaf has the Lagrange ``"multipliers"`` of the classes, and the classes
        with a ``"linear"`` bound.
    seconds : float
        Wall time of the search.
    """

    max_leaves: int
    upper_bound: float
    incumbent: float
    rules: RuleSet | None
    proof: dict[str, Any]
    seconds: float


def bound_f1_of_trees(
    X: Any,
    y: Any,
    max_leaves: int,
    *,
    target: float = 0.0,
    cuts: Cuts | int | None = 16,
    classes: Sequence[Any] | None = None,
    sample_weight: Any = None,
    limits: SolverLimits | None = None,
) -> F1Bound:
    r"""Bound the weighted F1 of decision trees with at most `max_leaves` leaves from above.

    Parameters
    ----------
    X : array-like, DataFrame or RowTable of shape (n_rows, n_features)
        The rows; NaN or None for missing values, which go to either side of a split.
    y : array-like of shape (n_rows,)
        Labels.
    max_leaves : int
        Largest number of leaves, at least 1.
    target : float, default=0.0
        Upper bound that suffices: the search ends when it is proven, or when a tree with a larger
        F1 is found. With 0, it ends with the first tree.
    cuts : Cuts, int or None, default=16
        Cuts of the features; an integer is passed to :func:`candidate_cuts`. None: cuts between all
        neighboring values.
    classes : sequence, optional
        The labels, in the order of the rules' class counts; by default the sorted labels of y.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row.
    limits : SolverLimits, optional
        Limits of time and nodes; by default none.

    Returns
    -------
    F1Bound
        The bound, and the best tree found.

    Raises
    ------
    ValueError, TypeError
        If the rows or a parameter are invalid.

    Notes
    -----
    Let :math:`n_k` be the weight of class k, W the total weight, :math:`q_k` the weight predicted
    as class k, and :math:`t_k` the hits among these, so that
    :math:`W F / 2 = \sum_k n_k t_k / (n_k + q_k)`. If :math:`l_k \leq q_k \leq u_k`, the term of
    class k is bounded by two sums over its leaves:

    - :math:`n_k c_k / (n_k + \max(s, l_k))` per leaf of weight s with the weight :math:`c_k` of
      class k; this is exact if class k has one leaf;
    - :math:`n_k t_k / (n_k + u_k) + n_k m_k (u_k - q_k) / (n_k + u_k)`, where :math:`m_k` bounds
      :math:`t_k / (n_k + q_k)`; it is at most 1/2, because :math:`t_k \leq \min(n_k, q_k)`.

    Lagrange multipliers of the limits add further sums over leaves. The search of
    :func:`optimal_trees` maximizes the total; its bounds hold because each added row increases the
    weight of a leaf minus its gain by a number between 0 and a constant. Rows of one class gain at
    most :math:`n_k c_k / (n_k + c_k)`, which bounds the gain of fewer leaves than classes. Initial
    limits: if F > f, each class has an F1 of at least :math:`1 - W (1 - f) / n_k`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skescore.optimal import bound_f1_of_trees
    >>> X, y = load_iris(return_X_y=True)
    >>> bound = bound_f1_of_trees(X, y, 3, target=0.97)
    >>> bound.upper_bound, round(bound.incumbent, 4)
    (0.97, 0.9599)
    """
    started = time.monotonic()
    check_integer("max_leaves", max_leaves, 1)
    check_number("target", target, 0)
    rows = TrainingRows.read(X, y, loss="errors", classes=classes, sample_weight=sample_weight)
    columns = CutColumns(SearchSpace(cuts=cuts).cuts_of(X), rows.table)
    limits = limits or SolverLimits()
    search = TreeSearch(columns, rows, max(2, max_leaves), limits, started)
    solver = _F1BranchAndBound(search, max_leaves, target, rows.weights)
    with threadpool_limits(1):
        upper_bound, root = solver.run()
    rules = None
    if solver.incumbent > 0:
        rules = TreeConverter(columns, rows).rules(solver.tree, solver.leaf_classes)
    proof = {"classes": list(rows.classes or ()), "target": target, "root": root}
    seconds = time.monotonic() - started
    return F1Bound(max_leaves, upper_bound, solver.incumbent, rules, proof, seconds)


def _linear_slope(n: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the coefficient of ``u - q`` in the linear bound of each class."""
    max_ratio = np.minimum(n, high) / np.maximum(n + low, sys.float_info.min)
    return np.asarray(n * np.minimum(0.5, max_ratio) / np.maximum(n + high, sys.float_info.min))


@dataclass(frozen=True, eq=False)
class _CountLimits:
    """Limits of the weight predicted as each class.

    Parameters
    ----------
    low, high : ndarray of shape (n_classes,)
        The limits.
    total : float
        Weight of all rows.
    """

    low: np.ndarray
    high: np.ndarray
    total: float

    @classmethod
    def tightened(cls, low: np.ndarray, high: np.ndarray, total: float) -> _CountLimits:
        """Tighten limits by the condition that all predicted weights sum to the total."""
        for _ in range(3):
            low = np.maximum(low, total - (high.sum() - high))
            high = np.minimum(high, total - (low.sum() - low))
        return cls(low, high, total)

    @property
    def is_infeasible(self) -> bool:
        """True if no prediction satisfies the limits."""
        return bool((self.low > self.high + 1e-9 * self.total).any())

    def branch(self, k: int, upper: float, lower: float) -> tuple[_CountLimits, _CountLimits]:
        """Return the limits for at most `upper`, and for at least `lower`, of class k."""
        low, high = self.low.copy(), self.high.copy()
        high[k], low[k] = upper, lower
        return (
            self.tightened(self.low, high, self.total),
            self.tightened(low, self.high, self.total),
        )


class _LagrangianLoss(Misclassification):
    """Loss in the Lagrangian relaxation: weight of the rows minus the gains of the leaves.

    Parameters
    ----------
    counts : ndarray of shape (n_points, n_classes)
        Weight of each class at each point.
    limits : _CountLimits
        Limits of the weight predicted as each class.
    is_linear : ndarray of bool, shape (n_classes,)
        Classes with the linear bound.
    multipliers : ndarray of shape (n_classes,)
        Lagrange multipliers: positive for the upper limit, negative for the lower limit.
    """

    is_integral = False
    _needs_weights = True

    def __init__(
        self,
        counts: np.ndarray,
        limits: _CountLimits,
        is_linear: np.ndarray,
        multipliers: np.ndarray,
    ) -> None:
        self.stats = counts
        low, high = limits.low, limits.high
        n = self._n = counts.sum(axis=0)
        self._low, self._is_linear = low, is_linear
        self._linear_gain = np.divide(n, n + high, out=np.zeros_like(n), where=n > 0)
        slope = _linear_slope(n, low, high)
        row_cost = np.where(is_linear, slope, 0.0) + multipliers
        #: Part of the objective that does not depend on the tree.
        self.constant = float(
            np.where(is_linear, slope * high, 0.0).sum()
            + np.where(multipliers > 0, multipliers * high, multipliers * low).sum()
            - row_cost.min() * n.sum()
        )
        # Each row is predicted once, so only differences between costs matter.
        self._row_cost = row_cost - row_cost.min()
        self.max_costs = counts.sum(axis=1) * (1.25 + float(self._row_cost.max()))
        self.min_costs = self.loss_of_sums(counts)
        self._choose_dtype()
        self.rounding_error = _ROUNDING_ERROR * float(self.max_costs.sum())

    def gains_of_leaves(self, sums: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the gain of leaves for each class that they could predict."""
        weight = weight[..., None]
        return self._gains_of_hits(sums, np.maximum(weight, self._low), weight)

    def loss_of_sums(self, sums: np.ndarray) -> np.ndarray:
        """Return the loss of leaves from the sums of their points' statistics."""
        weight = sums.sum(axis=-1)
        return np.asarray(weight - self.gains_of_leaves(sums, weight).max(axis=-1))

    def bounds_by_leaves(self, sums: np.ndarray, max_leaves: int) -> np.ndarray:
        """Return lower bounds on the loss for 2, 3, ... leaves.

        Each predicted class gains at most as much as a pure leaf with all its rows. The gain is
        convex in the weight of the other classes above the lower limits, so it is largest if one
        leaf contains all rows of the other classes.
        """
        weight = sums.sum(axis=-1)
        pure = np.maximum(self._gains_of_hits(sums, np.maximum(sums, self._low), sums), 0.0)
        best_pure = np.cumsum(-np.sort(-pure, axis=-1), axis=-1)
        largest = np.cumsum(-np.sort(-sums, axis=-1), axis=-1)
        n_classes = sums.shape[-1]
        n_predicted = np.minimum(np.arange(2, max_leaves + 1), n_classes) - 1
        shortfall = np.where(self._is_linear, 0.0, np.maximum(self._low - sums, 0.0)).sum(axis=-1)
        other_weight = np.maximum((weight - shortfall)[..., None] - largest[..., n_predicted], 0.0)
        other_weight, hits = other_weight[..., None], sums[..., None, :]
        impure = self._gains_of_hits(
            hits, np.maximum(hits, self._low) + other_weight, hits + other_weight
        )
        impure = np.maximum(impure.max(axis=-1, initial=0.0), 0.0)
        remaining = best_pure[..., np.minimum(np.arange(1, max_leaves), n_classes) - 1]
        gains = np.minimum(best_pure[..., n_predicted], remaining + impure)
        return np.asarray(np.maximum(weight[..., None] - gains, 0.0))

    def _gains_of_hits(
        self, hits: np.ndarray, predicted: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """Return the gains of leaves from their hits, bounded predictions, and weight."""
        # Products of tiny weights would be 0.
        curved = hits * (self._n / np.maximum(self._n + predicted, sys.float_info.min))
        gains = np.where(self._is_linear, self._linear_gain * hits, curved)
        return np.asarray(gains - self._row_cost * weight)

    def _gains(self, hits: np.ndarray, weights: np.ndarray, class_index: int) -> np.ndarray:
        """Return the gains of leaves that predict a class, with the data type of the search."""
        dtype, k = self._dtype, class_index
        gains: Any
        if self._is_linear[k]:
            gains = np.asarray(dtype(self._linear_gain[k]) * hits)
        else:
            gains = np.maximum(weights, dtype(self._low[k]))
            gains += dtype(self._n[k])
            np.divide(hits, gains, out=gains)
            gains *= dtype(self._n[k])
        if self._row_cost[k]:
            gains -= dtype(self._row_cost[k]) * weights
        return np.asarray(gains)


@dataclass
class _LimitsNode:
    """Node of the branch and bound over the predicted counts.

    Parameters
    ----------
    limits : _CountLimits
        Limits of the weight predicted as each class.
    hits, predicted : ndarray of shape (n_classes,)
        Hits and predicted weight of each class in the tree of the parent node.
    multipliers : ndarray of shape (n_classes,)
        Lagrange multipliers of the parent node.
    proof : dict
        Part of the proof, which the node fills in.
    """

    limits: _CountLimits
    hits: np.ndarray
    predicted: np.ndarray
    multipliers: np.ndarray
    proof: dict[str, Any]


class _F1BranchAndBound:
    """Branch and bound over the limits of the predicted counts.

    Parameters
    ----------
    search : TreeSearch
        Search for the tree with the largest sum of gains.
    max_leaves : int
        Largest number of leaves.
    target : float
        Upper bound that suffices.
    weights : ndarray of shape (n_rows,)
        Weights of the rows.
    """

    def __init__(
        self, search: TreeSearch, max_leaves: int, target: float, weights: np.ndarray
    ) -> None:
        self._search, self._max_leaves, self._target = search, max_leaves, target
        self._counts = search.loss.stats
        self._n = self._counts.sum(axis=0)
        self._total = float(self._n.sum())
        #: Whether predicted counts are whole numbers.
        self._is_whole = bool((weights == np.floor(weights)).all()) and self._total < 2**53
        #: Best tree, its weighted F1, and the classes that its leaves predict.
        self.incumbent, self.tree, self.leaf_classes = 0.0, None, ()

    def run(self) -> tuple[float, dict[str, Any]]:
        """Return the upper bound and the root of its proof."""
        n = self._n
        root: dict[str, Any] = {}
        stack = [_LimitsNode(self._initial_limits(), 0.7 * n, n.copy(), np.zeros(len(n)), root)]
        upper_bound = self._target
        while stack:
            node = stack.pop()
            if node.limits.is_infeasible:
                continue
            bound, tree = self._bound_node(node)
            if bound <= self._target:
                continue
            if tree is None or self.incumbent > self._target:
                upper_bound = max(upper_bound, bound)
                continue
            k = self._choose_class(node, tree)
            if k is None:
                upper_bound = max(upper_bound, bound)
                continue
            stack += self._branch(node, k)
        return min(upper_bound, 1.0), root

    def _initial_limits(self) -> _CountLimits:
        """Return the limits that all trees with an F1 above the target satisfy."""
        n, total = self._n, self._total
        loss = np.divide(total * (1 - self._target), n, out=np.ones_like(n), where=n > 0)
        f1 = np.maximum(1 - loss, 0.0)
        high = np.where(f1 > 0, n * (2 / np.where(f1 > 0, f1, 1) - 1), total)
        return _CountLimits.tightened(f1 * n / (2 - f1), np.minimum(high, total), total)

    def _branch(self, node: _LimitsNode, k: int) -> list[_LimitsNode]:
        """Branch on the number of rows predicted as class k, near the number in the tree."""
        low, high = float(node.limits.low[k]), float(node.limits.high[k])
        margin = (high - low) / 10
        middle = min(max(float(node.predicted[k]), low + margin), high - margin)
        floor = math.floor(middle)
        between = (floor, floor + 1.0) if self._is_whole else (middle, middle)
        node.proof.clear()
        node.proof.update({"class": k, "between": list(between), "branches": [{}, {}]})
        return [
            _LimitsNode(
                limits,
                node.hits,
                np.clip(node.predicted, limits.low, limits.high),
                node.multipliers,
                proof,
            )
            for limits, proof in zip(
                node.limits.branch(k, *between), node.proof["branches"], strict=True
            )
        ]

    def _bound_node(self, node: _LimitsNode) -> tuple[float, Any]:
        """Bound the F1 within the limits by subgradient steps on the multipliers.

        The node stores the best multipliers. Returns the best bound and its tree, which is None if
        a limit of the search ended the steps.
        """
        limits, multipliers = node.limits, node.multipliers
        is_linear = self._choose_linear(node)
        best_bound, best_tree = math.inf, None
        violation, step = np.zeros(len(multipliers)), 1.0
        for _ in range(_N_MULTIPLIER_STEPS):
            loss = _LagrangianLoss(self._counts, limits, is_linear, multipliers)
            sufficient = (
                self._total + loss.constant - self._target * self._total / 2 + loss.rounding_error
            )
            lower, tree = self._search.minimize(loss, self._max_leaves, sufficient)
            bound = 2 * (self._total + loss.constant - lower + loss.rounding_error) / self._total
            self._update_incumbent(loss, tree)
            if bound < best_bound:
                best_bound, best_tree, node.multipliers = bound, tree, multipliers
                linear_classes = np.flatnonzero(is_linear).tolist()
                node.proof.update({"linear": linear_classes, "multipliers": multipliers.tolist()})
                predicted = self._predictions(loss, tree)[1]
                violation = predicted - np.clip(predicted, limits.low, limits.high)
            else:
                step /= 3
            if bound <= self._target or self.incumbent > self._target:
                break
            if self._search.is_stopped:
                return best_bound, None
            if not violation.any():
                break
            excess = (best_bound - self._target) * self._total / 2
            largest = np.abs(violation).max()
            direction = violation / largest
            length = excess / largest * step / (direction**2).sum()
            multipliers = node.multipliers + direction * length
        return best_bound, best_tree

    def _choose_linear(self, node: _LimitsNode) -> np.ndarray:
        """Return a mask of the classes whose linear bound is tighter for the parent's tree."""
        n, low, high = self._n, node.limits.low, node.limits.high
        hits, predicted = node.hits, node.predicted
        curved = n * (hits / np.maximum(n + np.where(low > 0, low, predicted), sys.float_info.min))
        linear = n * (hits / np.maximum(n + high, sys.float_info.min))
        linear = linear + _linear_slope(n, low, high) * (high - predicted)
        return np.asarray((linear < curved) & (high < self._total))

    def _predictions(
        self, loss: _LagrangianLoss, tree: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return hits and predicted weight by class, and the class of each leaf."""
        counts = self._search.leaf_stats(tree)
        leaf_classes = loss.gains_of_leaves(counts, counts.sum(axis=1)).argmax(axis=1)
        return (*self._count_predictions(counts, leaf_classes), leaf_classes)

    def _count_predictions(
        self, counts: np.ndarray, leaf_classes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sum hits and predicted weight of the leaves by their class."""
        hits, predicted = np.zeros(len(self._n)), np.zeros(len(self._n))
        np.add.at(hits, leaf_classes, counts[np.arange(len(leaf_classes)), leaf_classes])
        np.add.at(predicted, leaf_classes, counts.sum(axis=1))
        return hits, predicted

    def _f1_terms(self, hits: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Return the term of each class in the weighted F1, times half of the total weight."""
        return np.asarray(self._n * (hits / np.maximum(self._n + predicted, sys.float_info.min)))

    def _update_incumbent(self, loss: _LagrangianLoss, tree: Any) -> None:
        """Store a tree if it is better; its leaves predict the largest gain or the majority."""
        counts = self._search.leaf_stats(tree)
        for leaf_classes in (
            loss.gains_of_leaves(counts, counts.sum(axis=1)).argmax(axis=1),
            counts.argmax(axis=1),
        ):
            terms = self._f1_terms(*self._count_predictions(counts, leaf_classes))
            f1 = 2 * float(terms.sum()) / self._total
            if f1 > self.incumbent:
                self.incumbent, self.tree = f1, tree
                self.leaf_classes = tuple(leaf_classes.tolist())

    def _choose_class(self, node: _LimitsNode, tree: Any) -> int | None:
        """Choose the class whose bound exceeds its term in the tree's F1 the most.

        The node stores the predictions of the tree. Returns None if all limits are too narrow to
        branch on.
        """
        low, high, n = node.limits.low, node.limits.high, self._n
        is_linear = np.zeros(len(n), dtype=bool)
        is_linear[node.proof["linear"]] = True
        multipliers = np.array(node.proof["multipliers"])
        loss = _LagrangianLoss(self._counts, node.limits, is_linear, multipliers)
        hits, predicted, leaf_classes = self._predictions(loss, tree)
        node.hits, node.predicted = hits, predicted
        bounds = np.zeros(len(n))
        for counts, k in zip(self._search.leaf_stats(tree), leaf_classes.tolist(), strict=True):
            denominator = n[k] + (high[k] if is_linear[k] else max(float(counts.sum()), low[k]))
            bounds[k] += n[k] * (counts[k] / denominator)
        bounds += np.where(is_linear, _linear_slope(n, low, high) * (high - predicted), 0.0)
        excess = bounds - self._f1_terms(hits, predicted)
        width = high - low
        can_branch = (
            (width >= (1 if self._is_whole else 1e-3 * n))
            & (low <= predicted)
            & (predicted <= high)
            & (excess > 0)
        )
        if can_branch.any():
            return int(np.where(can_branch, excess, -np.inf).argmax())
        k = int(width.argmax())
        return k if width[k] >= (1 if self._is_whole else 1e-3 * self._total) else None
