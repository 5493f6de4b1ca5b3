"""Optimal decision lists: bounds on the smallest loss of lists with a limited number of rules.

Branch and bound over the first rule, then over the first rule for the remaining rows, and so on.
The last two rules are found without branching: one matrix product yields the sums over rows of all
conjunctions of two tests.
"""

from __future__ import annotations

import copy
import math
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from skescore._deadline import check_deadline
from skescore._processes import parallel
from skescore._rows import weighted_mean
from skescore._validation import check_instance
from skescore.optimal._cuts import Tests
from skescore.optimal._frontier import RESOLUTION, Frontier
from skescore.optimal._problem import SearchSpace, SolverLimits, TrainingRows, read_targets
from skescore.rules import Condition, Rule, RuleSet, RuleStatistics

#: Limit below which integers are exact in single precision.
_EXACT_LIMIT = 2**24
#: Beam search for initial incumbents: beam width, candidates per list, and smallest difference
#: between the remaining rows of two lists, as a share of the rows.
_BEAM_WIDTH, _MAX_CANDIDATES, _MIN_DIFFERENCE = 8, 100, 0.02

#: Share of the limits for initial incumbents.
_INCUMBENT_SHARE = 0.7
#: Largest number of first tests that are tried for a premise with three tests.
_MAX_FIRST_TESTS = 64
#: CPU seconds of a typical core per multiplication in a matrix product, per entry of an array of
#: premises, and per step.
_PRODUCT, _ENTRY, _STEP = 5e-11, 3e-9, 1e-4
#: Relative margin added to the target of a child, because its bound also bounds similar premises.
_BOUND_MARGIN = 0.05


class _Premises:
    """Numbered conjunctions of literals (tests and negated tests), with sums over their rows.

    With two conditions, premises on tests ``t`` form an array of shape (2, n_tests, n_tests): ``(0,
    i, j)`` is ``t_i and t_j`` for i <= j (a single test for i = j), and ``not t_i and not t_j`` for
    i > j; ``(1, i, j)`` is ``t_i and not t_j`` (``not t_i`` for i = j). With three conditions,
    further arrays follow: for each test and for its negation, one for pairs of later tests.

    Parameters
    ----------
    tests : ndarray of bool, shape (n_rows, n_tests)
        Rows for which each test holds.
    max_conditions : {1, 2, 3}
        Largest number of tests in a premise.
    dtype : dtype
        Type of the sums.
    """

    def __init__(self, tests: np.ndarray, max_conditions: int, dtype: Any) -> None:
        self.table: np.ndarray = np.ascontiguousarray(tests, dtype=dtype)
        self.test_masks = np.ascontiguousarray(tests.T, dtype=bool)
        self.max_conditions = max_conditions
        self.n_tests = m = tests.shape[1]
        #: For each array: its first number, its third literal, and the first of the later tests.
        self.blocks: list[tuple[int, tuple[tuple[int, bool], ...], int]] = [(0, (), 0)]
        self.size = 2 * m ** min(max_conditions, 2)
        if max_conditions == 3:
            for test in range(m - 1):
                for is_true in (True, False):
                    self.blocks.append((self.size, ((test, is_true),), test + 1))
                    self.size += 2 * (m - test - 1) ** 2
        self._block_starts = [begin for begin, *_ in self.blocks]
        self._lower_triangle: Any = np.tri(m, k=-1, dtype=dtype) if max_conditions > 1 else None

    def sums(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Sum the values of rows over the rows for which each premise holds."""
        table = self.table[rows]
        if self.max_conditions == 1:
            inside = values @ table
            return np.concatenate([inside, values.sum() - inside])
        sums = np.empty(self.size, dtype=table.dtype)
        for begin, third_literal, first_test in self.blocks:
            block_values, block_table = values, table[:, first_test:]
            for test, is_true in third_literal:
                mask = self.test_masks[test][rows] == is_true
                block_values, block_table = values[mask], block_table[mask]
            block = sums[begin : begin + 2 * block_table.shape[1] ** 2]
            self._sum_pairs(block_table, block_values, block)
        return sums

    def _sum_pairs(self, table: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
        """Write to `out` the sums of all premises with two literals on the tests of a table."""
        m, total = table.shape[1], values.sum()
        all_ones = len(values) == 0 or (values[0] == 1 and (values == 1).all())
        weighted = table if all_ones else table * values[:, None]
        first, second = out.reshape(2, m, m)
        np.matmul(weighted.T, table, out=first)
        diagonal = np.arange(m) * (m + 1)
        single = first.reshape(-1)[diagonal]
        np.subtract(single[:, None], first, out=second)
        second.reshape(-1)[diagonal] = total - single
        neither = total - single[:, None] - single
        neither *= self._lower_triangle[:m, :m]
        first += neither

    def literals(self, number: int) -> list[tuple[int, bool]]:
        """Return the literals of a premise: each test and whether it must hold."""
        if self.max_conditions == 1:
            block, i = divmod(number, self.n_tests)
            return [(i, block == 0)]
        begin, third_literal, first_test = self.blocks[bisect_right(self._block_starts, number) - 1]
        m = self.n_tests - first_test
        block, pair = divmod(number - begin, m**2)
        i, j = (first_test + test for test in divmod(pair, m))
        if i == j:
            return [*third_literal, (i, block == 0)]
        return [*third_literal, *([(i, True), (j, False)] if block else [(i, i < j), (j, i < j)])]

    def number(self, literals: Sequence[tuple[int, bool]]) -> int:
        """Return the number of the premise with the given literals."""
        literals = sorted(literals)
        if self.max_conditions == 1:
            ((i, is_true),) = literals
            return i if is_true else self.n_tests + i
        begin, first_test = 0, 0
        if len(literals) == 3:
            third_literal = (literals.pop(0),)
            begin, first_test = next(
                (begin, first) for begin, third, first in self.blocks if third == third_literal
            )
        m = self.n_tests - first_test
        (i, i_is_true), (j, j_is_true) = literals[0], literals[-1]
        is_negated = i_is_true != j_is_true
        if i == j:
            is_negated = not i_is_true
        elif not i_is_true:
            i, j = j, i  # two negated tests descend; otherwise the true test is first
        return begin + is_negated * m**2 + (i - first_test) * m + j - first_test

    def holds(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Return a mask of the rows that satisfy a premise."""
        mask = np.ones(len(rows), dtype=bool)
        for test, is_true in self.literals(number):
            mask &= self.test_masks[test][rows] == is_true
        return mask

    def find_redundant(self) -> np.ndarray:
        """Return a mask of redundant premises.

        Redundant premises hold for no row, for all rows, or for the same rows as a premise with
        fewer literals.
        """
        n_rows = len(self.table)
        n_covered = self.sums(np.arange(n_rows), np.ones(n_rows, dtype=self.table.dtype))
        is_redundant = (n_covered == 0) | (n_covered == n_rows)
        if self.max_conditions == 1 or not self.n_tests:
            return is_redundant
        m = self.n_tests
        pairs = n_covered[: 2 * m * m].reshape(2, m, m)
        for begin, third_literal, first_test in self.blocks:
            size = m - first_test
            block = slice(begin, begin + 2 * size**2)
            same_sign, first_only = n_covered[block].reshape(2, size, size)
            n_true, n_false = same_sign.diagonal(), first_only.diagonal()
            is_negated = np.tri(size, k=-1, dtype=bool)
            equals_literal = np.stack(
                [
                    (same_sign == np.where(is_negated, n_false[:, None], n_true[:, None]))
                    | (same_sign == np.where(is_negated, n_false, n_true)),
                    (first_only == n_true[:, None]) | (first_only == n_false),
                ]
            )
            single = np.arange(size)
            # With a third literal, the diagonal holds pairs that are also in the first array.
            equals_literal[:, single, single] = bool(third_literal)
            if third_literal:
                shape = equals_literal.shape
                equals_literal |= (
                    n_covered[block].reshape(shape) == pairs[:, first_test:, first_test:]
                )
            is_redundant[block] |= equals_literal.reshape(-1)
        return is_redundant


@dataclass(slots=True)
class _PremiseLosses:
    """Losses of the covered and of the remaining rows of each premise, with one output each.

    Parameters
    ----------
    covered, remaining : ndarray of shape (n_premises,)
        The losses.
    max_costs : ndarray of shape (n_premises,)
        Largest cost of the covered rows in any list.
    sums : sequence of ndarray of shape (n_premises,)
        Sums by class from which the losses were computed.
    """

    covered: np.ndarray
    remaining: np.ndarray
    max_costs: np.ndarray
    sums: Sequence[np.ndarray] = ()


#: Losses for a superset of some rows, and the additional rows of the superset.
_Superset = tuple[_PremiseLosses, np.ndarray]


class _ListErrors:
    """Weighted errors in excess of the errors that no list can avoid.

    Parameters
    ----------
    counts : ndarray of shape (n_rows, n_classes)
        Weight of each class in each equivalence class of rows.
    """

    def __init__(self, counts: np.ndarray) -> None:
        reduced = counts - counts.min(axis=1, keepdims=True)
        self.max_costs = reduced.max(axis=1)
        self.unavoidable_loss = float((counts.sum(axis=1) - counts.max(axis=1)).sum())
        total = counts.sum()
        self.is_exact = bool((counts == np.round(counts)).all()) and total < _EXACT_LIMIT
        self.dtype = np.float32 if self.is_exact else np.float64
        self._gains = reduced.astype(self.dtype)
        #: Number of sums per premise from which losses are computed.
        self.n_sums = counts.shape[1]
        self._is_pure = bool(((reduced > 0).sum(axis=1) <= 1).all())
        #: Number of products of the matrix of tests with itself, over all rows, for these sums.
        self.n_products = 1 if self._is_pure else counts.shape[1] + 1
        self._majority = reduced.argmax(axis=1)
        self.tolerance = 0.0 if self.is_exact else 1e-10 * max(float(total), 1e-300)

    def loss_of(self, rows: np.ndarray) -> float:
        """Return the loss of the best constant prediction for some rows."""
        best_gain = self._gains[rows].sum(axis=0, dtype=float).max()
        return float(self.max_costs[rows].sum() - best_gain)

    def premise_losses(
        self, premises: _Premises, rows: np.ndarray, superset: _Superset | None = None
    ) -> _PremiseLosses:
        """Return the losses of the covered and of the remaining rows of each premise."""
        # Sums of integers are exact, so they can be subtracted from the sums of a superset.
        if self.is_exact and superset is not None and len(superset[1]) < len(rows):
            base: _PremiseLosses | None = superset[0]
            summed_rows = superset[1]
        else:
            base, summed_rows = None, rows
        class_sums: list[np.ndarray] = []
        max_costs: Any = None
        covered_gain: Any = None
        remaining_gain: Any = None
        for k in range(self._gains.shape[1]):
            class_rows = summed_rows
            if self._is_pure:
                class_rows = summed_rows[self._majority[summed_rows] == k]
            sums = premises.sums(class_rows, self._gains[class_rows, k])
            if base is not None:
                np.subtract(base.sums[k], sums, out=sums)
            class_sums.append(sums)
            remaining_sums = self._gains[rows, k].sum() - sums
            if max_costs is None:
                max_costs, covered_gain, remaining_gain = sums.copy(), sums.copy(), remaining_sums
            else:
                max_costs += sums
                np.maximum(covered_gain, sums, out=covered_gain)
                np.maximum(remaining_gain, remaining_sums, out=remaining_gain)
        if not self._is_pure:
            max_costs = premises.sums(summed_rows, self.max_costs[summed_rows].astype(self.dtype))
            if base is not None:
                np.subtract(base.max_costs, max_costs, out=max_costs)
        total = self.max_costs[rows].sum().astype(self.dtype)
        np.subtract(max_costs, covered_gain, out=covered_gain)
        np.subtract(total - max_costs, remaining_gain, out=remaining_gain)
        return _PremiseLosses(covered_gain, remaining_gain, max_costs, class_sums)


class _ListSquaredErrors:
    """Weighted squared errors in excess of the errors that no list can avoid.

    Parameters
    ----------
    y, weights : ndarray of shape (n_rows,)
        Numbers and weights.
    groups : ndarray of int, shape (n_rows,)
        Equivalence class of each row.
    n_groups : int
        Number of equivalence classes.
    """

    is_exact = False
    dtype = np.float64
    n_sums = n_products = 4

    def __init__(
        self, y: np.ndarray, weights: np.ndarray, groups: np.ndarray, n_groups: int
    ) -> None:
        self._weights = np.bincount(groups, weights, n_groups)
        y = y - weighted_mean(y, weights)
        self._sums = np.bincount(groups, weights * y, n_groups)
        means = self._sums / self._weights
        self.unavoidable_loss = float((weights * (y - means[groups]) ** 2).sum())
        self._squares = self._sums * means
        low, high = means.min(), means.max()
        self.max_costs = self._weights * np.maximum((means - low) ** 2, (high - means) ** 2)
        self.tolerance = 1e-10 * max(float((weights * y * y).sum()), 1e-300)

    def loss_of(self, rows: np.ndarray) -> float:
        """Return the loss of the best constant prediction for some rows."""
        if not len(rows):
            return 0.0
        total = float(self._sums[rows].sum())
        squares = float(self._squares[rows].sum())
        return max(0.0, squares - total * (total / self._weights[rows].sum()))

    def premise_losses(
        self, premises: _Premises, rows: np.ndarray, superset: _Superset | None = None
    ) -> _PremiseLosses:
        """Return the losses of the covered and of the remaining rows of each premise."""
        moments = [values[rows] for values in (self._weights, self._sums, self._squares)]
        covered = [premises.sums(rows, values) for values in moments]
        remaining = [values.sum() - sums for values, sums in zip(moments, covered, strict=True)]
        max_costs = premises.sums(rows, self.max_costs[rows])
        return _PremiseLosses(_squared_loss(*covered), _squared_loss(*remaining), max_costs)


def _squared_loss(weights: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return the squared errors of the means, from sums of weights, values and squares."""
    has_weight = weights > 0
    means = np.divide(sums, weights, out=np.zeros_like(sums), where=has_weight)
    return np.where(has_weight, np.maximum(squares - means * sums, 0.0), 0.0)


class _ListAbsoluteErrors:
    """Weighted absolute errors.

    Parameters
    ----------
    y, weights : ndarray of shape (n_rows,)
        Numbers and weights.
    """

    is_exact = False
    dtype = np.float64
    unavoidable_loss = 0.0

    def __init__(self, y: np.ndarray, weights: np.ndarray) -> None:
        self._y, self._weights = y, weights
        self.n_sums = self.n_products = len(np.unique(y)) + 1
        self.max_costs = weights * np.maximum(y - y.min(), y.max() - y)
        self.tolerance = 1e-10 * max(float(self.max_costs.sum()), 1e-300)

    def loss_of(self, rows: np.ndarray) -> float:
        """Return the loss of the best constant prediction for some rows."""
        if not len(rows):
            return 0.0
        y, weights = self._y[rows], self._weights[rows]
        order = np.argsort(y, kind="stable")
        middle = np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)
        median = y[order[min(middle, len(y) - 1)]]
        return float((weights * np.abs(y - median)).sum())

    def premise_losses(
        self, premises: _Premises, rows: np.ndarray, superset: _Superset | None = None
    ) -> _PremiseLosses:
        """Return the losses of the covered and of the remaining rows of each premise."""
        y, weights = self._y[rows], self._weights[rows]
        max_costs = premises.sums(rows, self.max_costs[rows])
        covered: Any = None
        remaining: Any = None
        for value in np.unique(y):
            costs = weights * np.abs(y - value)
            sums = premises.sums(rows, costs)
            remaining_sums = costs.sum() - sums
            covered = sums if covered is None else np.minimum(covered, sums, out=covered)
            remaining = (
                remaining_sums
                if remaining is None
                else np.minimum(remaining, remaining_sums, out=remaining)
            )
        if covered is None:
            return _PremiseLosses(max_costs, max_costs, max_costs)
        return _PremiseLosses(np.maximum(covered, 0.0), np.maximum(remaining, 0.0), max_costs)


@dataclass
class _ListNode:
    """Bounds of the best list for some rows.

    Parameters
    ----------
    lower, upper : float
        Proven lower bound, and loss of the incumbent.
    premises : tuple of int
        The incumbent.
    max_costs : ndarray of shape (n_premises,)
        Largest cost of the rows that each premise covers.
    remaining_bounds : ndarray of shape (n_premises,), optional
        Lower bounds on the loss of each premise's remaining rows; None for two rules.
    """

    lower: float
    upper: float
    premises: tuple[int, ...]
    max_costs: np.ndarray
    remaining_bounds: np.ndarray | None = None


@dataclass
class _ListSubproblem:
    """Subproblem of the branch and bound: find the best list for some rows.

    Parameters
    ----------
    rows : ndarray of int
        The rows.
    n_rules : int
        Largest number of rules, at least 2, including the last rule, which always holds.
    target : float
        Lower bound at which the search stops.
    similarity_bounds : ndarray, optional
        Lower bounds on the loss of each premise's remaining rows, from similar premises.
    shorter_bound : float, default=0.0
        Lower bound on the loss of lists with one rule fewer.
    shorter_bounds : ndarray, optional
        Lower bounds on the loss of each premise's remaining rows, for lists with one rule fewer.
    superset : tuple, optional
        Losses for a superset of the rows, and the additional rows.
    """

    rows: np.ndarray
    n_rules: int
    target: float
    similarity_bounds: np.ndarray | None = None
    shorter_bound: float = 0.0
    shorter_bounds: np.ndarray | None = None
    superset: _Superset | None = field(default=None, repr=False)


class _ListSearch:
    """Branch and bound for decision lists.

    Parameters
    ----------
    premises : _Premises
        The premises.
    loss : _ListErrors, _ListSquaredErrors or _ListAbsoluteErrors
        The loss.
    """

    def __init__(self, premises: _Premises, loss: Any) -> None:
        self.premises, self.loss = premises, loss
        #: Limit that ended the search; None while it continues.
        self.stopped_by: str | None = None
        self.deadline = math.inf
        self.node_limit = math.inf
        self.work_limit = math.inf
        self.n_nodes = 0
        #: Counted work in CPU seconds.
        self.work = 0.0
        #: Largest number of bound vectors that a node stores, and of first rules per batch.
        self.max_stored_bounds, self.batch_size = 0, 1
        #: Processes that solve the subproblems of a batch; None for this process.
        self.pool: Parallel | None = None
        redundant_cost = 4 * (float(loss.max_costs.sum()) + 1)
        self._redundancy_costs = np.where(premises.find_redundant(), redundant_cost, 0.0).astype(
            loss.dtype
        )

    def premise_losses(self, rows: np.ndarray, superset: _Superset | None = None) -> _PremiseLosses:
        """Return the losses of each premise; the loss of a redundant one exceeds any list's."""
        self.n_nodes += 1
        self.work += self._work_of_losses(len(rows))
        losses: _PremiseLosses = self.loss.premise_losses(self.premises, rows, superset)
        losses.covered += self._redundancy_costs
        return losses

    @contextmanager
    def limited_to(self, share: float) -> Iterator[None]:
        """Limit a ``with`` block to a share of the remaining time, nodes and work."""
        limits = self.deadline, self.node_limit, self.work_limit
        used = time.monotonic(), self.n_nodes, self.work
        self.deadline, self.node_limit, self.work_limit = (
            u + (end - u) * share for u, end in zip(used, limits, strict=True)
        )
        try:
            yield
        finally:
            self.deadline, self.node_limit, self.work_limit = limits

    def _work_of_losses(self, n_rows: int) -> float:
        """Return the work for the losses of all premises over some rows."""
        seconds_per_premise = _PRODUCT * self.loss.n_products * n_rows + _ENTRY * self.loss.n_sums
        return _STEP + self.premises.size * seconds_per_premise

    def check_limits(self) -> bool:
        """Return whether a limit has ended the search."""
        check_deadline()
        if self.stopped_by is None:
            if self.n_nodes >= self.node_limit:
                self.stopped_by = "node_limit"
            elif self.work >= self.work_limit:
                self.stopped_by = "work_limit"
            elif time.monotonic() >= self.deadline:
                self.stopped_by = "time_limit"
        return self.stopped_by is not None

    def solve(self, problem: _ListSubproblem) -> _ListNode:
        """Find the list with the smallest loss if it is below the target.

        The returned `lower` is always a valid bound. If it is below the target and no limit ended
        the search, it is the smallest loss.
        """
        rows, n_rules = problem.rows, problem.n_rules
        losses = self.premise_losses(rows, problem.superset)
        covered, max_costs = losses.covered, losses.max_costs
        totals = np.add(covered, losses.remaining, out=losses.remaining)
        first = int(totals.argmin())
        premises: tuple[int, ...] = ()
        best, best_of_two = self.loss.loss_of(rows), float(totals[first])
        if best_of_two < best:
            best, premises = best_of_two, (first,)
        tolerance = self.loss.tolerance
        if n_rules == 2 or best <= tolerance:
            return _ListNode(best, best, premises, max_costs)
        # Removing the covered rows reduces the loss by at most their largest cost.
        shorter_bound = problem.shorter_bound
        if n_rules == 3:  # `best` is the smallest loss of two rules
            shorter_bound = max(shorter_bound, best)
        lower = np.subtract(shorter_bound, max_costs, out=totals)
        np.maximum(lower, 0.0, out=lower)
        if problem.similarity_bounds is not None:
            np.maximum(lower, problem.similarity_bounds, out=lower)
        lower += covered
        stored = _StoredBounds(
            self.max_stored_bounds if n_rules > 3 else 0, len(lower), lower.dtype
        )
        try:
            while not self.check_limits():
                bound = min(best, problem.target)
                margin = _BOUND_MARGIN * bound if n_rules > 3 else 0.0
                if self.loss.is_exact:  # losses are integers
                    margin = math.floor(margin)
                batch = self._choose_premises(rows, lower, max_costs, bound - tolerance, n_rules)
                if not batch:
                    break
                children = [
                    self._make_child(problem, a, bound + margin - float(covered[a]), stored, losses)
                    for a in batch
                ]
                for a, child in zip(batch, self._solve_batch(children), strict=True):
                    cost = float(covered[a])
                    if cost + child.upper < best:
                        best, premises = cost + child.upper, (a, *child.premises)
                    lower[a] = max(lower[a], cost + child.lower)
                    # Similarity bound: the remaining rows of another premise include these rows,
                    # except those that it covers. Removing rows reduces the loss by at most their
                    # largest cost.
                    similar = np.subtract(covered, child.max_costs)
                    similar += child.lower
                    np.maximum(lower, similar, out=lower)
                    stored.add(a, child)
        except KeyboardInterrupt:
            self.stopped_by = "interrupted"
        bound = min(best, float(lower.min()))
        remaining_bounds = np.subtract(lower, covered, out=lower)
        return _ListNode(bound, best, premises, max_costs, remaining_bounds)

    def _make_child(
        self,
        problem: _ListSubproblem,
        premise: int,
        target: float,
        stored: _StoredBounds,
        losses: _PremiseLosses,
    ) -> _ListSubproblem:
        """Return the subproblem of the remaining rows of a premise."""
        rows, shorter_bounds = problem.rows, problem.shorter_bounds
        holds = self.premises.holds(premise, rows)
        return _ListSubproblem(
            rows[~holds],
            problem.n_rules - 1,
            target,
            stored.bounds_after(premise),
            0.0 if shorter_bounds is None else float(shorter_bounds[premise]),
            None,
            None if self.pool is not None else (losses, rows[holds]),
        )

    def _choose_premises(
        self,
        rows: np.ndarray,
        lower: np.ndarray,
        max_costs: np.ndarray,
        bound: float,
        n_rules: int,
    ) -> list[int]:
        """Choose dissimilar first rules with the smallest bounds to branch on.

        Ties go to the premise with the largest cost of covered rows. Below the root, with three
        rules left, this cost alone decides: every premise with a bound below the incumbent must be
        solved there, and the bounds of large premises exclude more of the others.
        """
        if n_rules == 3 and len(rows) < len(self.premises.table):
            open_costs = np.where(lower < bound, max_costs, -1)
            a = int(open_costs.argmax())
            return [a] if open_costs[a] >= 0 else []
        batch: list[int] = []
        open_bounds: np.ndarray = lower
        batch_size = self.batch_size if n_rules > 3 else 1
        while True:
            least_bound = open_bounds.min()
            if least_bound >= bound:
                return batch
            ties = np.flatnonzero(open_bounds == least_bound)
            a = int(ties[max_costs[ties].argmax()])
            batch.append(a)
            if len(batch) == batch_size:
                return batch
            remaining = rows[~self.premises.holds(a, rows)]
            costs = self.loss.max_costs[remaining].astype(max_costs.dtype)
            difference = self.premises.sums(remaining, costs)
            open_bounds = np.where(difference <= max_costs / 4, np.inf, open_bounds)

    def _solve_batch(self, children: list[_ListSubproblem]) -> list[_ListNode]:
        """Solve subproblems, in other processes if available."""
        if len(children) == 1 and self.batch_size == 1:
            return [self.solve(children[0])]
        searches = []
        for _ in children:
            search = copy.copy(self)
            search.n_nodes, search.work, search.batch_size, search.pool = 0, 0.0, 1, None
            searches.append(search)
        jobs = zip(searches, children, strict=True)
        results: list[tuple[_ListNode, int, str | None]] = []
        if self.pool is not None and len(children) > 1:
            results = self.pool(delayed(_solve_in_process)(*job) for job in jobs)
        else:
            for search, child in jobs:
                if results and results[-1][2] == "interrupted":
                    search.stopped_by = "interrupted"
                results.append(_solve_alone(search, child))
        for _, n_nodes, stopped_by in results:
            self.n_nodes += n_nodes
            self.stopped_by = self.stopped_by or stopped_by
        return [node for node, *_ in results]

    # --- heuristics for incumbents ---

    def loss_of(self, rows: np.ndarray, premises: Sequence[int]) -> float:
        """Return the loss of a list of premises, followed by a last rule for the other rows."""
        return sum(self.loss.loss_of(part) for part in self._rows_by_rule(rows, premises))

    def _rows_by_rule(self, rows: np.ndarray, premises: Sequence[int]) -> Iterator[np.ndarray]:
        """Yield the rows that each premise covers first, and then the remaining rows."""
        for a in premises:
            mask = self.premises.holds(a, rows)
            yield rows[mask]
            rows = rows[~mask]
        yield rows

    def insert_rule(
        self, rows: np.ndarray, premises: tuple[int, ...]
    ) -> tuple[float, tuple[int, ...]]:
        """Insert the best additional rule at the best position of a list."""
        parts = list(self._rows_by_rule(rows, premises))
        loss_before = np.cumsum([0.0] + [self.loss.loss_of(part) for part in parts])
        best, best_premises = math.inf, premises
        loss_after: Any = 0.0
        for position in reversed(range(len(parts))):
            later, reached = parts[position], np.concatenate(parts[position:])
            if len(later):
                loss_after = loss_after + self.premise_losses(later).remaining
            total = self.premise_losses(reached).covered
            total += loss_after
            a = int(total.argmin())
            if loss_before[position] + float(total[a]) <= best:
                best = float(loss_before[position]) + float(total[a])
                best_premises = (*premises[:position], a, *premises[position:])
        return best, best_premises

    def grow_lists(self, rows: np.ndarray, max_rules: int) -> list[tuple[int, ...]]:
        """Find good lists with 2, 3, ... rules by a beam search.

        Of lists with nearly the same remaining rows, only the best stays in the beam.
        """
        best_lists: list[tuple[int, ...]] = []
        beam: list[tuple[float, tuple[int, ...], np.ndarray]] = [(0.0, (), rows)]
        while len(best_lists) + 1 < max_rules and not self.check_limits():
            extended: list[tuple[float, float, tuple[int, ...], np.ndarray]] = []
            for loss_before, premises, remaining in beam:
                if extended and self.check_limits():
                    break
                losses = self.premise_losses(remaining)
                total = loss_before + losses.covered
                total += losses.remaining
                candidates = np.argsort(total, kind="stable")[:_MAX_CANDIDATES]
                extended += [
                    (
                        float(total[a]),
                        loss_before + float(losses.covered[a]),
                        (*premises, int(a)),
                        remaining,
                    )
                    for a in candidates
                ]
            extended.sort(key=lambda candidate: candidate[:3])
            best_lists.append(extended[0][2])
            beam = self._prune_beam(extended, len(rows))
            if not beam:
                break
        return best_lists

    def _prune_beam(
        self, candidates: list[tuple[float, float, tuple[int, ...], np.ndarray]], n_rows: int
    ) -> list[tuple[float, tuple[int, ...], np.ndarray]]:
        """Choose the best candidates with dissimilar remaining rows."""
        beam: list[tuple[float, tuple[int, ...], np.ndarray]] = []
        masks = np.zeros((0, len(self.premises.table)), dtype=bool)
        for _, loss_before, premises, rows in candidates:
            remaining = rows[~self.premises.holds(premises[-1], rows)]
            mask = np.zeros(masks.shape[1], dtype=bool)
            mask[remaining] = True
            n_different = (masks != mask).sum(axis=1)
            if (n_different > _MIN_DIFFERENCE * n_rows).all() and len(remaining):
                beam.append((loss_before, premises, remaining))
                masks = np.vstack([masks, mask])
                if len(beam) == _BEAM_WIDTH:
                    break
        return beam

    def improve_list(
        self, rows: np.ndarray, premises: tuple[int, ...]
    ) -> tuple[float, tuple[int, ...]]:
        """Replace one rule of a list at a time as long as this reduces the loss."""
        best = self.loss_of(rows, premises)
        is_improved = True
        while is_improved and not self.check_limits():
            is_improved = False
            for i in range(len(premises)):
                loss, replaced = self.insert_rule(rows, premises[:i] + premises[i + 1 :])
                if loss < best - self.loss.tolerance:
                    best, premises = loss, replaced
                    is_improved = True
                    break
        return best, premises

    def separate_groups(self, rows: np.ndarray, group: np.ndarray) -> tuple[int, ...]:
        """Create a list of rules that each cover one group of rows.

        A premise that covers exactly one group still does so after other groups are removed, so
        the greedy choice finds such a list if the space contains one. Otherwise, premises cover
        groups approximately.

        Parameters
        ----------
        rows : ndarray of int
            The rows.
        group : ndarray of int
            Group of each row; groups are tried in the order of their numbers.

        Returns
        -------
        tuple of int
            Premises for all groups but the last, which the last rule covers.
        """
        premises: list[int] = []
        open_groups = np.unique(group[rows]).tolist()
        while len(open_groups) > 1 and len(rows):
            for chosen in open_groups:
                premise = self._exact_premise(rows, group[rows] == chosen)
                if premise is not None:
                    break
            else:
                chosen = open_groups[0]
                premise = self.nearest_premise(rows, group[rows] == chosen)
            premises.append(premise)
            rows = rows[~self.premises.holds(premise, rows)]
            open_groups = [g for g in open_groups if g != chosen and (group[rows] == g).any()]
        return tuple(premises)

    def _exact_premise(self, rows: np.ndarray, mask: np.ndarray) -> int | None:
        """Return a premise that covers exactly the rows of a mask; None if there is none."""
        inner, outer = self.premises.test_masks[:, rows[mask]], self.premises.test_masks[:, rows]
        outer = outer[:, ~mask]
        yes, no = np.flatnonzero(inner.all(axis=1)), np.flatnonzero(~inner.any(axis=1))
        literals = [(int(test), True) for test in yes] + [(int(test), False) for test in no]
        if not literals:
            return None
        # Wrongly covered rows of each literal, as floats for matrix products.
        wrong = np.concatenate([outer[yes], ~outer[no]]).astype(np.float32)
        max_conditions = self.premises.max_conditions
        self.work += _STEP + _PRODUCT * len(literals) ** min(2, max_conditions) * wrong.shape[1]
        n_wrong = wrong.sum(axis=1)
        if n_wrong.min() == 0:
            return self.premises.number([literals[int(n_wrong.argmin())]])
        if max_conditions == 1:
            return None
        first_tests: list[int | None] = [None]
        if max_conditions == 3:
            first_tests += np.argsort(n_wrong, kind="stable")[:_MAX_FIRST_TESTS].tolist()
        for first in first_tests:
            remaining = wrong if first is None else wrong[:, wrong[first] > 0]
            both_wrong = remaining @ remaining.T
            if both_wrong.min() == 0:
                pair = np.unravel_index(int(both_wrong.argmin()), both_wrong.shape)
                chosen = {int(i) for i in pair} | (set() if first is None else {first})
                return self.premises.number([literals[i] for i in sorted(chosen)])
        return None

    def nearest_premise(self, rows: np.ndarray, mask: np.ndarray) -> int:
        """Return the premise whose rows differ least from the rows of a mask."""
        dtype = self.loss.dtype
        inner, outer = rows[mask], rows[~mask]
        distance = self.premises.sums(outer, self.loss.max_costs[outer].astype(dtype))
        distance -= self.premises.sums(inner, self.loss.max_costs[inner].astype(dtype))
        return int((distance + self._redundancy_costs).argmin())


def _solve_alone(
    search: _ListSearch, problem: _ListSubproblem
) -> tuple[_ListNode, int, str | None]:
    """Solve a subproblem, and return its node, the number of nodes and the limit that ended it."""
    node = search.solve(problem)
    return node, search.n_nodes, search.stopped_by


def _solve_in_process(
    search: _ListSearch, problem: _ListSubproblem
) -> tuple[_ListNode, int, str | None]:
    """Solve a subproblem in a worker process, in which threads must be limited again."""
    with threadpool_limits(1):
        return _solve_alone(search, problem)


class _StoredBounds:
    """Lower bounds on the loss of the rows that remain after two premises, by the first premise.

    Parameters
    ----------
    capacity : int
        Largest number of first premises.
    n_premises : int
        Number of premises.
    dtype : dtype
        Type of the bounds.
    """

    def __init__(self, capacity: int, n_premises: int, dtype: Any) -> None:
        self._capacity = capacity
        self._numbers: list[int] = []
        self._bounds: list[np.ndarray] = []
        if capacity:
            self._distance = np.full(n_premises, np.inf, dtype=dtype)
            self._nearest = np.zeros(n_premises, dtype=np.int32)

    def add(self, number: int, node: _ListNode) -> None:
        """Store the bounds after a first premise, unless the capacity is reached."""
        if node.remaining_bounds is None or len(self._numbers) >= self._capacity:
            return
        is_closer = node.max_costs < self._distance
        self._distance[is_closer] = node.max_costs[is_closer]
        self._nearest[is_closer] = len(self._numbers)
        self._numbers.append(number)
        self._bounds.append(node.remaining_bounds)

    def bounds_after(self, number: int) -> np.ndarray | None:
        """Return the bounds for a first premise and each second premise."""
        if not self._numbers:
            return None
        bounds: np.ndarray = self._bounds[self._nearest[number]] - self._distance[number]
        # The rows that remain after two premises do not depend on their order.
        swapped = [stored[number] for stored in self._bounds]
        bounds[self._numbers] = np.maximum(bounds[self._numbers], swapped)
        return bounds


def optimal_lists(
    X: Any,
    y: Any,
    space: SearchSpace | None = None,
    *,
    loss: str = "errors",
    classes: Sequence[Any] | None = None,
    sample_weight: Any = None,
    start: Sequence[RuleSet] = (),
    targets: Sequence[float] | None = None,
    limits: SolverLimits | None = None,
) -> Frontier:
    r"""Find decision lists with the smallest loss among lists with at most 1, 2, 3, ... rules.

    The first rule of a list that holds predicts; the last rule always holds and counts as a rule.
    The premise of each other rule is a conjunction of at most `max_conditions` tests of a feature
    against a cut or a category; an interval with two bounds counts as two tests. Each rule predicts
    the class or number with the smallest loss for its rows.

    Parameters
    ----------
    X : array-like, DataFrame or RowTable of shape (n_rows, n_features)
        The rows, with categories and missing values.
    y : array-like of shape (n_rows,)
        Labels, or numbers if the loss is not ``"errors"``.
    space : SearchSpace, optional
        Largest number of rules and conditions, and the cuts; by default 4 rules with 2 conditions
        and 8 cuts per feature.
    loss : {"errors", "squared_error", "absolute_error"}, default="errors"
        Loss that is summed over the rows. Absolute errors take much longer than the others.
    classes : sequence, optional
        The labels, in the order of the rules' class counts; by default the sorted labels of y.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row.
    start : sequence of RuleSet, default=()
        Initial incumbents. If the space contains a list that divides the rows in the same way, it
        is used; otherwise premises are replaced by the most similar ones of the space.
    targets : sequence of float, optional
        Lower bounds that suffice for 1, 2, ... rules: the search for a size ends when its bound is
        proven. By default it ends when the smallest loss is proven.
    limits : SolverLimits, optional
        Limits of time, nodes, work and memory, and the number of processes. By default only the
        memory is limited. Initial incumbents use at most 70 % of the limits; each size but the last
        uses at most half of the remaining resources.

    Returns
    -------
    Frontier
        Proven lower bound and best list found for each number of rules. A keyboard interrupt ends
        the search like a limit.

    Raises
    ------
    ValueError, TypeError
        If a parameter or the rows are invalid.

    Notes
    -----
    Rows that no test separates form an equivalence class, with errors that no list can avoid. Let
    :math:`f_q(S)` be the smallest loss of q rules on the rows S, and :math:`c_i` the largest cost
    of row i. Then :math:`f_q(S) \leq f_q(T) + \sum_{i \in S \setminus T} c_i` and, for :math:`T
    \subseteq S`, :math:`f_q(T) \leq f_q(S)`. A bound for the remaining rows of a premise therefore
    also bounds the remaining rows of similar premises (for trees, this is the similarity bound of
    Demirović et al., 2022), of premises that cover a subset of its rows, and of other orders of the
    same premises. First rules are tried in the order of their bounds. One product of the matrix of
    tests with itself yields the best list of two rules and a lower bound for every first rule.

    Bounds are exact if weights are whole numbers with a sum below 2**24. Otherwise the proof
    ignores differences of up to 1e-10 of the largest possible loss: the loss of "optimal" lists may
    exceed the smallest loss by this amount, and bounds of other sizes are reduced by 1e-9 of the
    largest possible loss. If this is more than a thousandth of the loss, for example because of an
    extreme outlier, the status is "rounding".

    References
    ----------
    E. Angelino, N. Larus-Stone, D. Alabi, M. Seltzer, C. Rudin: Learning certifiably optimal rule
    lists for categorical data. JMLR 18, 2018.

    E. Demirović et al.: MurTree: Optimal decision trees via dynamic programming and search. JMLR
    23, 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skescore.optimal import SearchSpace, optimal_lists
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> frontier = optimal_lists(X, y, SearchSpace(max_rules=4))
    >>> frontier.lower.tolist(), frontier.upper.tolist()
    ([100.0, 50.0, 7.0, 4.0], [100.0, 50.0, 7.0, 4.0])
    >>> print(frontier.rules[2])  # doctest: +NORMALIZE_WHITESPACE
    1. IF 2.45 < petal length (cm) ≤ 4.85 THEN 1   [49 rows, 94 % of this class]
    2. ELSE IF sepal length (cm) ≤ 5.95 AND petal length (cm) ≤ 4.05 THEN 0
       [50 rows, 100 % of this class]
    3. ELSE 2   [51 rows, 92 % of this class]
    """
    started = time.monotonic()
    space, limits = space or SearchSpace(), limits or SolverLimits()
    max_rules = space.max_rules or 4
    target_bounds = read_targets(targets, max_rules)
    rows = TrainingRows.read(X, y, loss=loss, classes=classes, sample_weight=sample_weight)
    if not rows.weights.any():
        raise ValueError("sample_weight must hold a positive number, got only zeros.")
    for rules in start:
        check_instance("start", rules, RuleSet)
    problem = _ListProblem(rows, space, X)
    search = problem.make_search(max_rules, limits.memory_limit)
    if search is not None:
        search.deadline, search.node_limit = limits.deadline(started), limits.node_limit
        search.work_limit = limits.work_limit
        search.batch_size = 1 if limits.is_deterministic else 4
    # Products of small matrices are not faster with threads.
    with threadpool_limits(1), parallel(limits.n_jobs) as pool:
        if search is not None and max_rules > 3 and effective_n_jobs(limits.n_jobs) > 1:
            search.pool = pool
        return problem.solve(search, target_bounds, start, started)


class _ListProblem:
    """Equivalence classes of rows, and the search for lists that predict them.

    Parameters
    ----------
    rows : TrainingRows
        The rows.
    space : SearchSpace
        Space of the lists.
    X : array-like or DataFrame
        Original rows, from which cuts are chosen.
    """

    def __init__(self, rows: TrainingRows, space: SearchSpace, X: Any) -> None:
        self._training_rows, self._max_conditions = rows, space.max_conditions
        self._cuts = space.cuts_of(X)
        self._tests: Tests = self._cuts.tests(rows.table)
        bits = np.unpackbits(
            self._tests.rows.astype("<u8").view(np.uint8), axis=1, bitorder="little"
        )[:, : self._tests.n_rows]
        weighted = np.flatnonzero(rows.weights > 0)
        weights, y = rows.weights[weighted], rows.target[weighted]
        points, group = np.unique(bits.T[weighted], axis=0, return_inverse=True)
        group = group.reshape(-1)
        #: Equivalence class of each row; -1 for rows without weight.
        self._group = np.full(len(rows.weights), -1)
        self._group[weighted] = group
        if rows.classes is not None:
            counts = np.zeros((len(points), len(rows.classes)))
            np.add.at(counts, (group, y), weights)
            self._loss: Any = _ListErrors(counts)
        elif rows.loss == "squared_error":
            self._loss = _ListSquaredErrors(y, weights, group, len(points))
        else:
            # Medians require the rows instead of equivalence classes.
            self._loss = _ListAbsoluteErrors(y, weights)
            points, self._group[weighted] = bits.T[weighted], np.arange(len(weighted))
        self._points = points
        self._all_points = np.arange(len(points))

    def make_search(self, max_rules: int, memory_limit: float) -> _ListSearch | None:
        """Return the search for lists; None if its bounds exceed the memory limit."""
        n_points, n_tests = self._points.shape
        item_size = np.dtype(self._loss.dtype).itemsize
        vector_size = 2 * item_size * max(1, n_tests) ** self._max_conditions
        n_sums = len(self._training_rows.classes or ())
        needed = 4 * item_size * n_points * n_tests + vector_size * (12 + (6 + n_sums) * max_rules)
        free_memory = memory_limit - needed
        if free_memory < 0:
            return None
        premises = _Premises(self._points, self._max_conditions, self._loss.dtype)
        search = _ListSearch(premises, self._loss)
        # Nodes store bounds as long as more than three rules remain.
        capacity = int(free_memory / vector_size / max(1, max_rules - 3))
        search.max_stored_bounds = min(256, capacity)
        return search

    def solve(
        self,
        search: _ListSearch | None,
        targets: np.ndarray,
        start: Sequence[RuleSet],
        started: float,
    ) -> Frontier:
        """Search the lists with at most 1, 2, ... rules, using the bounds for fewer rules."""
        loss, rows, max_rules = self._loss, self._all_points, len(targets)
        constant_loss = loss.loss_of(rows)
        lower, status = [constant_loss], ["optimal"]
        incumbents: list[tuple[int, ...]] = [()]
        best: tuple[float, tuple[int, ...]] = (constant_loss, ())
        shorter_bounds: np.ndarray | None = None
        incumbent_by_size: dict[int, tuple[float, tuple[int, ...]]] = {}
        for n_rules in range(2, max_rules + 1):
            bound, remaining_bounds, ended_by = 0.0, None, "memory_limit"
            target = float(targets[n_rules - 1]) - loss.unavoidable_loss
            if search is not None and len(rows) and search.premises.n_tests:
                try:
                    if n_rules == 2:
                        incumbent_by_size = self._find_incumbents(search, targets, start)
                    if n_rules in incumbent_by_size:
                        best = min(
                            best, incumbent_by_size[n_rules], key=lambda incumbent: incumbent[0]
                        )
                    problem = _ListSubproblem(
                        rows,
                        n_rules,
                        min(best[0], target),
                        shorter_bound=lower[-1],
                        shorter_bounds=shorter_bounds,
                    )
                    with search.limited_to(1.0 if n_rules == max_rules else 0.5):
                        node = search.solve(problem)
                    bound, remaining_bounds = node.lower, node.remaining_bounds
                    if node.upper < best[0] - loss.tolerance:
                        best = node.upper, node.premises
                except KeyboardInterrupt:
                    search.stopped_by = "interrupted"
                ended_by = search.stopped_by or "rounding"
                if ended_by in ("node_limit", "work_limit", "time_limit") and n_rules < max_rules:
                    search.stopped_by = None  # the next size has its own share
            elif search is not None:
                bound = best[0]  # without tests, there are only constants
            shorter_bounds = remaining_bounds
            if bound >= best[0] - loss.tolerance:
                bound, ended_by = best[0], "optimal"
            elif bound >= target - loss.tolerance:
                ended_by = "target"
            lower.append(bound)
            incumbents.append(best[1])
            status.append(ended_by)
        # A bound for more rules is also valid for fewer rules.
        bounds = np.maximum.accumulate(np.array(lower)[::-1])[::-1]
        return self._make_frontier(bounds, incumbents, status, time.monotonic() - started)

    def _find_incumbents(
        self, search: _ListSearch, targets: np.ndarray, start: Sequence[RuleSet]
    ) -> dict[int, tuple[float, tuple[int, ...]]]:
        """Find good lists of all sizes with a share of the limits."""
        max_rules = len(targets)
        with search.limited_to(_INCUMBENT_SHARE):
            initial = [self._nearest_list(search, rules) for rules in start]
            initial += search.grow_lists(self._all_points, max_rules)
            best: tuple[float, tuple[int, ...]] = (self._loss.loss_of(self._all_points), ())
            incumbents = {}
            for n_rules in range(2, max_rules + 1):
                if targets[n_rules - 1] > self._loss.unavoidable_loss:
                    best = self._improve_incumbent(search, n_rules, best, initial)
                incumbents[n_rules] = best
        search.stopped_by = None
        return incumbents

    def _improve_incumbent(
        self,
        search: _ListSearch,
        n_rules: int,
        best: tuple[float, tuple[int, ...]],
        initial: list[tuple[int, ...]],
    ) -> tuple[float, tuple[int, ...]]:
        """Find a good list of a given size from the best shorter list and the initial lists."""
        candidates = [premises for premises in initial if len(premises) == n_rules - 1]
        if not search.check_limits():
            candidates.insert(0, search.insert_rule(self._all_points, best[1])[1])
        for premises in candidates:
            improved = search.improve_list(self._all_points, premises)
            if improved[0] < best[0] - self._loss.tolerance:
                best = improved
        return best

    def _nearest_list(self, search: _ListSearch, rules: RuleSet) -> tuple[int, ...]:
        """Return the premises of a list that divides the points approximately like the rules."""
        is_weighted = self._group >= 0
        n_points = len(self._all_points)
        partition = self._training_rows.partition(rules)
        # Rows of one point may satisfy different rules if the space lacks cuts of the rules.
        counts = np.zeros((n_points, len(rules) + 1))
        np.add.at(counts, (self._group[is_weighted], partition[is_weighted]), 1)
        return search.separate_groups(self._all_points, counts.argmax(axis=1))

    def _make_frontier(
        self,
        bounds: np.ndarray,
        incumbents: list[tuple[int, ...]],
        status: list[str],
        seconds: float,
    ) -> Frontier:
        """Create the frontier, with losses computed from the rows."""
        premises = _Premises(self._points, self._max_conditions, self._loss.dtype)
        lists = [self._make_rules(premises, numbers) for numbers in incumbents]
        upper = np.minimum.accumulate([loss for _, loss in lists])
        lower = bounds + self._loss.unavoidable_loss
        rounding_error = 0.0 if self._loss.is_exact else 10 * self._loss.tolerance
        lower = np.minimum(np.maximum(0.0, lower - rounding_error), upper)
        # With an extreme outlier, the losses of other rows may be smaller than rounding errors.
        is_solved = np.array([size_status == "optimal" for size_status in status])
        is_resolved = (rounding_error <= RESOLUTION * upper) | (lower == upper)
        lower = np.where(is_solved & is_resolved, upper, lower)
        status = [
            "rounding" if solved and not resolved else size_status
            for size_status, solved, resolved in zip(status, is_solved, is_resolved, strict=True)
        ]
        lower = np.maximum.accumulate(lower[::-1])[::-1]
        rows = self._training_rows
        space = {
            "kind": "list",
            "max_conditions": self._max_conditions,
            "default_counts": True,
            "cuts": self._cuts.to_json(),
            "n_tests": len(self._tests),
            "n_rows": len(rows.weights),
            "classes": None if rows.classes is None else list(rows.classes),
        }
        return Frontier(
            "list",
            rows.loss,
            tuple(range(1, len(lists) + 1)),
            lower,
            upper,
            tuple(rules for rules, _ in lists),
            float(rows.weights.sum()),
            space,
            tuple(np.where(lower == upper, "optimal", status).tolist()),
            seconds,
        )

    def _make_rules(self, premises: _Premises, numbers: tuple[int, ...]) -> tuple[RuleSet, float]:
        """Return a list as a rule set without rules that predict no row, and its loss."""
        training_rows = self._training_rows
        remaining = self._group >= 0
        rules: list[Rule] = []
        total = 0.0
        for number in (*numbers, None):
            holds = remaining.copy()
            conditions: tuple[Condition, ...] = ()
            if number is not None:
                holds[remaining] = premises.holds(number, self._group[remaining])
                conditions = tuple(
                    self._tests.conditions[test] if is_true else self._tests.negations[test]
                    for test, is_true in premises.literals(number)
                )
            remaining &= ~holds
            if holds.any():
                output, loss, statistics = training_rows.fit_constant(holds)
                rules.append(Rule(conditions, output, statistics))
                total += loss
        ruleset = RuleSet(
            _merge_last_rules(rules),
            training_rows.table.names,
            task=training_rows.task,
            classes=training_rows.classes,
        )
        return ruleset, total


def _merge_last_rules(rules: list[Rule]) -> list[Rule]:
    """Merge the last rules of a list as long as they have the same output."""
    merged = list(rules)
    while len(merged) > 1 and merged[-1].output == merged[-2].output:
        statistics = _merge_statistics(merged[-2].statistics, merged[-1].statistics)
        merged[-2:] = [Rule((), merged[-1].output, statistics)]
    last = merged[-1]
    return [*merged[:-1], Rule((), last.output, last.statistics)]


def _merge_statistics(first: Any, second: Any) -> RuleStatistics:
    """Return the joint statistics of two rules."""
    n_rows = first.n_rows + second.n_rows
    if first.class_counts is not None:
        pairs = zip(first.class_counts, second.class_counts, strict=True)
        return RuleStatistics(n_rows, tuple(a + b for a, b in pairs))
    share = first.n_rows / n_rows
    mean = share * first.mean + (1 - share) * second.mean
    squares = share * (first.standard_deviation**2 + (first.mean - mean) ** 2)
    squares += (1 - share) * (second.standard_deviation**2 + (second.mean - mean) ** 2)
    return RuleStatistics(n_rows, None, mean, math.sqrt(squares))
