"""Searches with which the checker of certificates verifies lower bounds of losses.

Their contract is small: :meth:`_Search.exact_bound` returns a lower bound of the loss of all rules
of the space, and :func:`largest_f1` an upper bound of the weighted F1 of all predictions. Tests
compare both with the enumeration of all rules and predictions.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from skescore.certificates._check_schema import Budget

#: Factor by which the search for lists exceeds the required bound, because the bound also applies
#: to similar premises; and largest number of premises with stored bounds.
_BOUND_FACTOR, _MAX_STORED = 1.05, 256
#: Largest number of products for which the losses of all pairs of tests are computed at once.
_MAX_PAIR_PRODUCTS = 2e9
#: Precision of the largest weighted F1 at a number of errors, and largest number of intervals.
_F1_PRECISION, _MAX_INTERVALS = 1e-5, 1000


class _Search:
    """Base of the searches for trees and for lists.

    Parameters
    ----------
    weights : ndarray of float
        Weights of the rows.
    unit : int or None
        Integer that represents a weight of 1 if weights are integers; None if sums are rounded.
    budget : Budget
        Limits of time and memory.
    """

    max_costs: Any

    def __init__(self, weights: Any, unit: int | None, budget: Budget) -> None:
        self.unit, self.budget, self.n_rows = unit, budget, len(weights)
        #: Type of sums; single precision is exact for integers below this limit.
        is_small = unit is not None and weights.sum() < 2**24
        self.dtype = np.float32 if is_small else np.float64

    def error(self, size: int) -> float:
        """Return the largest rounding error of a loss: of sums of all rows, once per rule."""
        if self.unit is not None:
            return 0.0
        scale = float(np.asarray(self.max_costs, dtype=float).sum())
        return 8 * size * (self.n_rows + 100) * 2.0**-53 * scale

    def exact_bound(self, size: int, bound: Fraction) -> Fraction:
        """Return a lower bound of the loss, which is the smallest loss if it is below `bound`."""
        if self.unit is None:
            least = self.least_loss(size, float(bound))
            return max(Fraction(0), Fraction(least) - Fraction(self.error(size)))
        return Fraction(self.least_loss(size, math.ceil(bound * self.unit))) / self.unit

    def least_loss(self, size: int, limit: float) -> float:
        """Return the smallest loss of all rows, or a bound of it that is at least the limit."""
        raise NotImplementedError


class TreeSearch(_Search):
    """Search for the smallest loss of trees, or for a sufficient lower bound.

    Rows that no test separates form one point. The loss of a set of points exceeds the loss of a
    subset by at most the largest cost of the other points. The bound of a subset therefore also
    bounds similar subsets, and only few subsets must be solved.

    Parameters
    ----------
    test_matrix : ndarray of bool, shape (n_rows, n_tests)
        Rows for which each test holds.
    y : ndarray
        Class indices, or numbers.
    w : ndarray of float
        Weights.
    loss : {"errors", "squared_error", "absolute_error"}
        Loss that is summed over the rows.
    unit, budget
        See :class:`_Search`.
    """

    def __init__(
        self, test_matrix: Any, y: Any, w: Any, loss: str, unit: int | None, budget: Budget
    ) -> None:
        super().__init__(w, unit, budget)
        self.loss = loss
        _, point = np.unique(np.packbits(test_matrix, axis=1), axis=0, return_inverse=True)
        point = point.ravel()
        n = int(point.max()) + 1
        row_of_point = np.unique(point, return_index=True)[1]
        if loss == "errors":
            stats = np.zeros((n, int(y.max()) + 1))
            np.add.at(stats, (point, y), w)
            self.max_costs = stats.sum(axis=1)
        elif loss == "squared_error":
            y = y - np.average(y, weights=w)
            stats = np.zeros((n, 3))
            np.add.at(stats, point, np.column_stack([w, w * y, w * y * y]))
            largest = w * np.maximum((y - y.min()) ** 2, (y.max() - y) ** 2)
            self.max_costs = np.bincount(point, largest, n)
        else:  # medians require single rows, sorted by target
            row_of_point = np.argsort(y, kind="stable")
            self.y, stats = y[row_of_point], w[row_of_point, None]
            self.max_costs = stats[:, 0] * np.maximum(self.y - y.min(), y.max() - self.y)
        self.stats = stats
        self.test_matrix = test_matrix[row_of_point].astype(self.dtype)
        self.min_costs = (
            np.zeros(len(stats)) if loss == "absolute_error" else self._loss_of_sums(stats)
        )
        #: Lower bound by set of points and number of rules, and whether it is the smallest loss.
        self.cache: dict[tuple[bytes, int], tuple[float, bool]] = {}
        self.n_cached_bytes = 0

    def least_loss(self, size: int, limit: float) -> float:
        """Return the smallest loss of all rows, or a bound of it that is at least the limit."""
        return self._solve(np.arange(len(self.stats)), size, limit)[0]

    def _loss_of_sums(self, sums: Any) -> Any:
        """Return the loss of the best constant from the sums of the points' statistics."""
        if self.loss == "errors":
            return sums.sum(axis=-1) - sums.max(axis=-1)
        weight = sums[..., 0]
        weight = np.where(weight > 1e-12 * max(weight.max(), 1e-300), weight, np.inf)
        return np.maximum(sums[..., 2] - sums[..., 1] * (sums[..., 1] / weight), 0.0)

    def _class_bound(self, sums: Any, size: int) -> Any:
        """Return a lower bound for rules that predict at most as many classes as their number."""
        if self.loss != "errors" or size >= sums.shape[-1]:
            return np.zeros(sums.shape[:-1])
        return np.sort(sums, axis=-1)[..., : sums.shape[-1] - size].sum(axis=-1)

    def _leaf_loss(self, points: Any) -> float:
        """Return the loss of the best constant for some points."""
        if self.loss != "absolute_error":
            return float(self._loss_of_sums(self.stats[points].sum(axis=0)))
        y, w = self.y[points], self.stats[points, 0]
        weight = np.cumsum(w)
        return float((w * np.abs(y - y[np.searchsorted(weight, weight[-1] / 2)])).sum())

    def _split(self, points: Any) -> tuple[Any, Any, Any, Any]:
        """Return the tests that split points, their matrix, and the losses of both sides."""
        matrix = self.test_matrix[points]
        count = matrix.sum(axis=0)
        tests = np.flatnonzero((count > 0) & (count < len(points)))
        matrix = matrix[:, tests]
        if self.loss == "absolute_error":
            y, w = self.y[points, None], self.stats[points]
            losses = []
            for side in (matrix, 1 - matrix):
                weight = np.cumsum(side * w, axis=0)
                median_row = (weight < weight[-1] / 2).sum(axis=0).clip(0, len(y) - 1)
                losses.append(np.abs((y - y[median_row, 0]) * side * w).sum(axis=0))
            return tests, matrix, losses[0], losses[1]
        stats = self.stats[points]
        sums = matrix.T @ stats.astype(matrix.dtype)
        other_sums = stats.sum(axis=0) - sums
        return tests, matrix, self._loss_of_sums(sums), self._loss_of_sums(other_sums)

    def _solve(self, points: Any, size: int, limit: float) -> tuple[float, bool]:
        """Bound the smallest loss of at most `size` rules on `points` from below.

        Also return whether the bound is this loss, which is certain for bounds below `limit`.
        """
        key = points.tobytes(), size
        bound, is_least = self.cache.get(key, (-math.inf, False))
        if is_least or bound >= limit:
            return bound, is_least
        self.budget.check_time()
        leaf_loss, bound = self._leaf_loss(points), float(self.min_costs[points].sum())
        bound = max(bound, float(self._class_bound(self.stats[points].sum(axis=0), size)))
        if size == 1 or leaf_loss <= bound:
            result = leaf_loss, True
        elif bound >= limit:
            result = bound, False
        else:
            result = self._branch(points, size, limit, leaf_loss)
        self.n_cached_bytes += len(key[0]) + 200
        self.budget.check_memory(2 * self.n_cached_bytes)
        self.cache[key] = result
        return result

    def _branch(self, points: Any, size: int, limit: float, leaf_loss: float) -> tuple[float, bool]:
        """Solve the children of the tests at the root until the bound is proven."""
        tests, matrix, yes, no = self._split(points)
        if not len(tests):
            return leaf_loss, True
        best = min(leaf_loss, float((yes + no).min()))
        if size == 2:
            return best, True
        lower, is_least = self._child_bounds(points, size, tests, matrix, (yes, no))
        while True:
            sums = np.array([lower[0][k] + lower[1][size - k] for k in range(1, size)])
            position = int(sums.argmin())
            n_left, test = position // len(tests) + 1, position % len(tests)
            total = float(sums.flat[position])
            needed = min(best, limit)
            if total >= needed:
                return (best, True) if best <= limit else (min(total, best), False)
            leaves = n_left, size - n_left
            open_sides = [s for s in (0, 1) if not is_least[s][leaves[s]][test]]
            if not open_sides:
                best = total
                continue
            side = max(open_sides, key=lambda s: leaves[s])
            n_leaves = leaves[side]
            is_child = matrix[:, test] == (1 - side)
            child_limit = needed - float(lower[1 - side][leaves[1 - side]][test])
            bound, solved = self._solve(points[is_child], n_leaves, child_limit)
            child_costs = np.where(is_child, self.max_costs[points], 0.0)
            for s, side_matrix in ((0, matrix), (1, 1 - matrix)):
                similar = bound - (child_costs.sum() - child_costs @ side_matrix)
                for k in range(2, n_leaves + 1):
                    raised = np.minimum(similar, lower[s][1])
                    np.maximum(lower[s][k], raised, out=lower[s][k], where=~is_least[s][k])
            lower[side][n_leaves][test] = max(bound, lower[side][n_leaves][test])
            is_least[side][n_leaves][test] = solved

    def _child_bounds(
        self, points: Any, size: int, tests: Any, matrix: Any, leaf_losses: tuple[Any, Any]
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return lower bounds by side, leaves and test, and whether they are the smallest losses.

        The lists by leaves begin with an unused entry for 0 leaves.
        """
        min_costs = self.min_costs[points] @ matrix
        stats = self.stats[points]
        sums = matrix.T @ stats.astype(matrix.dtype)
        lower = []
        for losses, costs, counts in (
            (leaf_losses[0], min_costs, sums),
            (leaf_losses[1], self.min_costs[points].sum() - min_costs, stats.sum(axis=0) - sums),
        ):
            bounds = [np.maximum(costs, self._class_bound(counts, k)) for k in range(2, size)]
            lower.append([losses, losses, *(np.minimum(bound, losses) for bound in bounds)])
        is_least = [[np.full(len(tests), k == 1) for k in range(size)] for _ in (0, 1)]
        n_pairs = float(len(tests)) ** 2
        is_cheap = len(points) * n_pairs < _MAX_PAIR_PRODUCTS
        is_small = 48 * n_pairs * stats.shape[1] < self.budget.n_bytes
        if self.loss != "absolute_error" and is_cheap and is_small:
            for side, losses in enumerate(self._two_leaf_losses(points, matrix)):
                lower[side][2], is_least[side][2] = losses, np.ones(len(tests), dtype=bool)
        return lower, is_least

    def _two_leaf_losses(self, points: Any, matrix: Any) -> list[Any]:
        """Return the smallest loss of each side of each test with two leaves, from all pairs."""
        stats = self.stats[points].astype(matrix.dtype)
        total = stats.sum(axis=0)
        shared = np.stack([matrix.T @ (matrix * stats[:, [k]]) for k in range(stats.shape[1])], -1)
        first = matrix.T @ stats
        inside = self._loss_of_sums(shared) + self._loss_of_sums(first[:, None] - shared)
        second_only = first[None] - shared
        outside = self._loss_of_sums(second_only)
        outside = outside + self._loss_of_sums(total - first[:, None] - second_only)
        return [inside.min(axis=1), outside.min(axis=1)]


class F1TreeSearch(TreeSearch):
    """Search for trees that minimize the weight of rows minus the gains in the weighted F1.

    Let n be the weight of a class, and let the weight predicted as this class be between `low` and
    `high`. A leaf with weight s and weight c of the class gains n c / (n + max(s, low)). With the
    linear bound, it gains n c / (n + high) minus a cost of n min(n, high) / ((n + low) (n + high))
    per row; the cost of `high` rows is added as a constant. A positive Lagrange multiplier
    penalizes rows above `high`, a negative one penalizes rows below `low`.

    Parameters
    ----------
    test_matrix, y, w : ndarray
        Tests, class indices and weights of the rows.
    low, high : ndarray of shape (n_classes,)
        Limits of the weight predicted as each class.
    node : dict
        Leaf of the proof, with its multipliers and the classes with the linear bound.
    budget : Budget
        Limits of time and memory.
    """

    def __init__(
        self, test_matrix: Any, y: Any, w: Any, low: Any, high: Any, node: Any, budget: Budget
    ) -> None:
        self.n = n = np.bincount(y, w, len(low))
        self.low, self.high = low, high
        self.is_linear = np.isin(np.arange(len(n)), node["linear"])
        multipliers = np.array(node["multipliers"], dtype=float)
        max_ratio = np.minimum(np.minimum(n, high) / (n + low), 0.5)
        slope = n * max_ratio / (n + high) * self.is_linear
        row_costs = slope + multipliers
        # Each row is predicted once, so only differences between costs matter.
        self.row_costs = row_costs - row_costs.min()
        penalty = np.maximum(multipliers, 0) @ high + np.minimum(multipliers, 0) @ low
        #: Part of the objective that does not depend on the tree.
        self.constant = float(slope @ high + penalty - row_costs.min() * n.sum())
        super().__init__(test_matrix, y, w, "errors", None, budget)
        self.max_costs = self.max_costs * (1.25 + float(self.row_costs.max()))

    def _gain_of_hits(self, hits: Any, weight: Any) -> Any:
        """Return the gain of hits in leaves with a given weight, without the costs of rows."""
        predicted = np.maximum(weight, self.low)
        # Products of tiny weights would be 0.
        return hits * (self.n / (self.n + np.where(self.is_linear, self.high, predicted)))

    def _loss_of_sums(self, sums: Any) -> Any:
        sums = np.asarray(sums, dtype=float)
        weight = sums.sum(axis=-1)
        costs = self.row_costs * weight[..., None]
        gains = self._gain_of_hits(sums, weight[..., None]) - costs
        return weight - gains.max(axis=-1)

    def _class_bound(self, sums: Any, size: int) -> Any:
        """Return a lower bound: pure leaves for all but one predicted class."""
        sums = np.asarray(sums, dtype=float)
        pure = np.maximum(self._gain_of_hits(sums, sums) - self.row_costs * sums, 0)
        pure = np.sort(pure, axis=-1)[..., ::-1]
        largest = np.sort(sums, axis=-1)[..., ::-1][..., :size].sum(axis=-1)
        shortfall = np.where(self.is_linear, 0, np.maximum(self.low - sums, 0)).sum(axis=-1)
        total = sums.sum(axis=-1)
        other_weight = np.maximum(total - shortfall - largest, 0)[..., None]
        impure = self._gain_of_hits(sums, np.maximum(sums, self.low) + other_weight)
        impure = np.maximum((impure - self.row_costs * (sums + other_weight)).max(axis=-1), 0)
        gain = np.minimum(
            pure[..., :size].sum(axis=-1), pure[..., : size - 1].sum(axis=-1) + impure
        )
        return np.maximum(total - gain, 0)


class ListSearch(_Search):
    """Search for the smallest loss of lists in excess of the loss that no list can avoid.

    A list is a premise, followed by a list with one rule fewer for the remaining rows. Premises are
    the distinct sets of points of all conjunctions. Additional rows increase the loss by at most
    their `max_costs`. The bound for some remaining rows therefore also bounds similar sets of rows.

    Parameters
    ----------
    test_matrix, y, w, loss, unit, budget
        See :class:`TreeSearch`.
    max_conditions : int
        Largest number of tests in a premise.
    """

    def __init__(
        self,
        test_matrix: Any,
        y: Any,
        w: Any,
        loss: str,
        unit: int | None,
        budget: Budget,
        *,
        max_conditions: int,
    ) -> None:
        super().__init__(w, unit, budget)
        self.loss = loss
        row_of_point, point = np.unique(
            np.packbits(test_matrix, axis=1), axis=0, return_index=True, return_inverse=True
        )[1:]
        n, point = len(row_of_point), point.ravel()
        if loss == "errors":
            stats = np.zeros((n, int(y.max()) + 1))
            np.add.at(stats, (point, y), w)
            self.unavoidable_loss = float((stats.sum(axis=1) - stats.max(axis=1)).sum())
            stats -= stats.min(axis=1, keepdims=True)
            max_costs = stats.max(axis=1)
        elif loss == "squared_error":
            y = y - np.average(y, weights=w)
            weight, total = np.bincount(point, w, n), np.bincount(point, w * y, n)
            mean = total / weight
            stats = np.column_stack([weight, total, total * mean])
            self.unavoidable_loss = float((w * y * y).sum() - stats[:, 2].sum())
            max_costs = weight * np.maximum((mean - mean.min()) ** 2, (mean.max() - mean) ** 2)
        else:  # there is one statistic for each number that a rule may predict
            budget.check_memory(16.0 * len(y) * len(np.unique(y)))
            row_of_point, self.unavoidable_loss = np.arange(len(y)), 0.0
            stats = w[:, None] * np.abs(y[:, None] - np.unique(y))
            max_costs = stats.max(axis=1)
        self.stats, self.max_costs = stats.astype(self.dtype), max_costs.astype(self.dtype)
        self.premises = self._list_premises(test_matrix[row_of_point], max_conditions)
        #: Results for all rows, by the number of rules.
        self.cache: dict[int, tuple[float, bool, Any, Any]] = {}

    def error(self, size: int) -> float:
        """Return the largest rounding error of a loss, including its unavoidable part."""
        added = 0.0 if self.unit is not None else self.unavoidable_loss * (self.n_rows + 100)
        return super().error(size) + 8 * added * 2.0**-53

    def _list_premises(self, matrix: Any, max_conditions: int) -> Any:
        """Return the distinct conjunctions of tests and their negations, (n_premises, n_points)."""
        sides = np.concatenate([matrix, ~matrix], axis=1).T
        level, n = sides, matrix.shape[0]
        levels = [_distinct(np.packbits(sides, axis=1))]
        for _ in range(1, max_conditions):
            parts: Any = levels[-1]
            for side in sides:
                self.budget.check_time()
                intersections = _distinct(np.packbits(level & side, axis=1))
                parts = _distinct(np.concatenate([parts, intersections]))
                self.budget.check_memory(parts.nbytes * (8 * self.stats.itemsize + 2))
            level = np.unpackbits(parts, axis=1, count=n).astype(bool)
            levels.append(parts)
        packed = _distinct(np.concatenate(levels))
        self.budget.check_memory(8 * packed.nbytes * (self.stats.itemsize + 1))
        premises = np.unpackbits(packed, axis=1, count=n)
        is_proper = premises.any(axis=1) & ~premises.all(axis=1)
        return premises[is_proper].astype(self.dtype)

    def least_loss(self, size: int, limit: float) -> float:
        """Return the smallest loss of all rows, or a bound of it that is at least the limit."""
        return self.unavoidable_loss + self._solve_all(size, limit - self.unavoidable_loss)[0]

    def _solve_all(self, size: int, limit: float) -> tuple[float, bool, Any, Any]:
        """Solve all rows, unless the cache has a sufficient bound."""
        if size not in self.cache or not (self.cache[size][1] or self.cache[size][0] >= limit):
            self.cache[size] = self._solve(np.ones(len(self.stats), dtype=bool), size, limit)
        return self.cache[size]

    def _premise_losses(self, is_open: Any) -> tuple[Any, Any, Any]:
        """Return the losses of covered and remaining points, and the costs of the covered ones."""
        stats, max_costs = self.stats * is_open[:, None], self.max_costs * is_open
        sums, costs = self.premises @ stats, self.premises @ max_costs
        covered = self._loss_of_sums(sums, costs)
        remaining = self._loss_of_sums(stats.sum(axis=0) - sums, max_costs.sum() - costs)
        return covered, remaining, costs

    def _loss_of_sums(self, sums: Any, max_costs: Any) -> Any:
        """Return the loss of the best constant from the sums of the points' statistics."""
        if self.loss == "errors":
            return max_costs - sums.max(axis=-1)
        if self.loss == "absolute_error":
            return np.maximum(sums.min(axis=-1), 0.0)
        weight = sums[..., 0]
        weight = np.where(weight > 1e-12 * self.stats[:, 0].sum(), weight, np.inf)
        return np.maximum(sums[..., 2] - sums[..., 1] * (sums[..., 1] / weight), 0.0)

    def _solve(
        self,
        is_open: Any,
        size: int,
        limit: float,
        bound_of_fewer: float | None = None,
        similarity_bounds: Any = None,
    ) -> tuple[float, bool, Any, Any]:
        """Return the smallest loss of some points, or a lower bound that reaches the limit.

        Parameters
        ----------
        is_open : ndarray of bool
            Mask of the points.
        size : int
            Largest number of rules.
        limit : float
            Lower bound at which the search stops.
        bound_of_fewer : float, optional
            Lower bound of the loss with one rule fewer.
        similarity_bounds : ndarray of shape (n_premises,), optional
            For each premise, a lower bound of the loss of the points that it does not cover.

        Returns
        -------
        tuple of float, bool, ndarray and ndarray or None
            The bound; whether it is the smallest loss; by premise, the sum of `max_costs` of
            covered points, and a bound for the others (None if nothing was searched).
        """
        self.budget.check_time()
        covered, remaining, costs = self._premise_losses(is_open)
        stats, max_cost = self.stats[is_open].sum(axis=0), self.max_costs[is_open].sum()
        best = float(self._loss_of_sums(stats, max_cost))
        best = min(best, float((covered + remaining).min(initial=math.inf)))
        if size == 2 or best <= 0 or not len(costs):
            return best, True, costs, None
        bounds_of_fewer = None
        if size == 3:
            bound_of_fewer = best
        elif bound_of_fewer is None:
            bound_of_fewer, is_least, _, bounds_of_fewer = self._solve_all(size - 1, limit)
            best = min(best, bound_of_fewer) if is_least else best
        similar = 0.0 if similarity_bounds is None else np.maximum(similarity_bounds, 0.0)
        lower = np.maximum(bound_of_fewer - costs, similar)
        is_root = bool(is_open.all())
        max_stored = min(_MAX_STORED, int(self.budget.n_bytes / (8 * size * costs.nbytes)))
        solved_premises: list[int] = []
        solved_costs: list[Any] = []
        solved_bounds: list[Any] = []
        while True:
            target = min(best, limit)
            sums = covered + lower
            if size == 3 and not is_root:
                # All premises must be solved or bounded; large premises bound more of the others.
                premise = int(np.where(sums < target, costs, -1.0).argmax())
            else:
                premise = int(sums.argmin())
            if sums[premise] >= target:
                is_least = best <= limit
                bound = best if is_least else min(float(sums.min()), best)
                return bound, is_least, costs, lower
            child_bounds = None
            if solved_bounds and size > 3:
                distances = [float(one[premise]) for one in solved_costs]
                nearest = int(np.argmin(distances))
                child_bounds = solved_bounds[nearest] - distances[nearest]
                # The remaining points of two premises do not depend on their order.
                swapped = [one[premise] for one in solved_bounds]
                child_bounds[solved_premises] = np.maximum(child_bounds[solved_premises], swapped)
            bound, is_least, child_costs, child_lower = self._solve(
                is_open & (self.premises[premise] == 0),
                size - 1,
                _BOUND_FACTOR * target - float(covered[premise]),
                0.0 if bounds_of_fewer is None else float(bounds_of_fewer[premise]),
                child_bounds,
            )
            if is_least:
                best = min(best, float(covered[premise]) + bound)
            np.maximum(lower, bound - child_costs, out=lower)
            lower[premise] = max(float(lower[premise]), bound)
            if child_lower is not None and len(solved_bounds) < max_stored:
                solved_premises.append(premise)
                solved_costs.append(child_costs)
                solved_bounds.append(child_lower)


def _distinct(packed: Any) -> Any:
    """Return the distinct rows of a matrix of bytes."""
    rows = np.ascontiguousarray(packed)
    as_one = rows.view(np.dtype((np.void, rows.shape[1]))).ravel()
    return rows[np.unique(as_one, return_index=True)[1]]


def largest_f1(
    class_weights: Sequence[float], errors: float, n_predicted: int, budget: Budget
) -> float:
    """Return an upper bound of the weighted F1, given the errors and number of predicted classes.

    Let a class of weight n have false negatives a and false positives b. Its F1 is 2 (n - a) / (2 n
    - a + b), concave in a and convex in b. False negatives and false positives both sum to the
    errors e. False positives of a class are not of this class, so b is at most e - a. In the best
    case, one class has b = e - a, and another one has the remaining false positives.

    If not all classes are predicted, let a larger class replace a smaller one, with the same true
    positives and false positives: its share of the F1 is larger, and b exceeds e - a by at most the
    difference of the weights (`slack`).
    """
    # The bound does not depend on the unit, but products of huge or tiny weights are not floats.
    shift = -math.frexp(max(class_weights))[1]
    class_weights = [w for w in (math.ldexp(weight, shift) for weight in class_weights) if w]
    errors = math.ldexp(errors, shift)
    n_classes = len(class_weights)
    m = min(n_predicted, n_classes)
    total = math.fsum(class_weights)
    sets = {tuple(class_weights[:m]): 0.0}
    if math.comb(n_classes, m) <= 12:
        sets = dict.fromkeys(combinations(class_weights, m), 0.0)
    elif m < n_classes:
        pairs = zip(class_weights[:m], class_weights[-m:], strict=True)
        sets[tuple(class_weights[:m])] = max(large - small for large, small in pairs)
    bounds = []
    for n, slack in sets.items():
        budget.check_time()
        bounds.append(_largest_f1_of_classes(n, total, errors, slack, budget))
    return min(1.0, max(bounds) * (1 + 1e-12))


def _largest_f1_of_classes(
    n: tuple[float, ...], total: float, errors: float, slack: float, budget: Budget
) -> float:
    """Return an upper bound of the weighted F1 of predictions of these classes.

    Best-first search over pairs of classes and intervals of false negatives of the first class.
    """
    unpredicted = max(0.0, total - math.fsum(n))
    errors = max(errors, unpredicted)
    missed = errors - unpredicted

    def f1(k: int, a: float, b: float) -> float:
        return n[k] / total * 2 * max(n[k] - a, 0.0) / (2 * n[k] - min(a, n[k]) + b)

    if len(n) == 1:
        return f1(0, missed, errors)

    def bound(k: int, j: int, low: float, high: float) -> float:
        budget.check_time()
        other_bounds = [
            (n[i], max(low - slack, 0.0) if i == j else 0.0) for i in range(len(n)) if i != k
        ]
        first = f1(k, low, max(errors - high, 0.0))
        return first + _f1_of_others(other_bounds, missed - high, total)

    pairs = {(n[k], n[j]): (k, j) for k in range(len(n)) for j in range(len(n)) if k != j}
    heap = [
        (-bound(k, j, 0.0, end), k, j, 0.0, end)
        for k, j in pairs.values()
        for end in [min(n[k], missed)]
    ]
    heapq.heapify(heap)
    attained = 0.0
    for _ in range(_MAX_INTERVALS):
        top, k, j, low, high = heap[0]
        middle = (low + high) / 2
        attained = max(attained, bound(k, j, middle, middle))
        if -top <= attained + _F1_PRECISION or not low < middle < high:
            break
        heapq.heapreplace(heap, (-bound(k, j, low, middle), k, j, low, middle))
        heapq.heappush(heap, (-bound(k, j, middle, high), k, j, middle, high))
    return -heap[0][0]


def _f1_of_others(classes: Sequence[tuple[float, float]], missed: float, total: float) -> float:
    """Return an upper bound of the sum of F1, given false positives and the sum of false negatives.

    Every Lagrange multiplier of the sum gives a bound; bisection finds a good multiplier.
    """
    best = math.fsum(n / total * 2 * n / (2 * n + b) for n, b in classes)
    low, high = 1e-12 / total, 1e3 / total
    for _ in range(45 if missed > 0 else 0):
        multiplier = math.sqrt(low * high)
        sum_of_misses, dual = 0.0, -multiplier * missed
        for n, b in classes:
            a = 2 * n + b - math.sqrt(2 * n * (n + b) / (total * multiplier))
            a = min(max(a, 0.0), n)
            sum_of_misses += a
            dual += n / total * 2 * (n - a) / (2 * n - a + b) + multiplier * a
        best = min(best, dual)
        low, high = (low, multiplier) if sum_of_misses > missed else (multiplier, high)
    return best
