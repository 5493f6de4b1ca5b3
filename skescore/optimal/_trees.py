"""Optimal decision trees: proven bounds on the smallest loss of trees with a limited size.

Branch and bound over subproblems (rows and a number of leaves), as in the papers of
:func:`optimal_trees`: a split at the root divides the rows, and both children are subproblems with
fewer rows and leaves. Lower bounds on a child's loss come from rows that no cut separates, from
classes that no leaf is left to predict, and from the children of neighboring cuts: removing rows
never increases the smallest loss, and each added row increases it by at most its largest cost.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from skescore._rows import deviations_from_mean
from skescore._validation import check_instance
from skescore.optimal._cuts import Cuts
from skescore.optimal._frontier import RESOLUTION, Frontier
from skescore.optimal._local_search import LocalTreeSearch
from skescore.optimal._problem import SearchSpace, SolverLimits, TrainingRows, read_targets
from skescore.rules import Condition, Fallback, RowTable, Rule, RuleSet

#: Largest numbers of cuts and of products for which losses of all pairs of cuts are computed at
#: once.
_MAX_PAIRED_CUTS = 1500
_MAX_PAIRED_PRODUCTS = 4e10
#: Largest number of entries of a temporary table.
_BLOCK_SIZE = 4_000_000
#: Largest number of splits of boxes for which dynamic programming over boxes replaces the search.
_MAX_BOX_SPLITS = 20_000
#: Largest number of cached subproblems.
_MAX_CACHED = 300_000
#: Shares of the limits for the proof and for local search before it; a last search gets the rest.
_PROOF_SHARE, _FIRST_SHARE = 0.85, 0.1
#: Largest number of sizes for which greedy trees are added.
_MAX_GREEDY_SIZES = 31
#: Number of rounds of local search per leaf before the proof, and number of nodes that a round
#: counts as in the limit.
_ROUNDS_PER_LEAF, _NODES_PER_ROUND = 2, 5
#: CPU seconds: per addition of a table, per entry of a table of cuts, per
#: multiplication in a matrix product, and per step.
_ADDITION, _ENTRY, _PRODUCT, _STEP = 3e-9, 3e-9, 4e-11, 5e-5
#: Largest number of classes whose sums are added one by one.
_FEW_CLASSES = 8
#: Replaces zero in logarithms.
_SMALLEST = 1e-300
#: None for a leaf, or a tuple of a cut, the tree if it holds, and the tree if it does not hold.
_Tree = Any


def optimal_trees(
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
    """Find decision trees with the smallest loss among trees with at most 1, 2, 3, ... leaves.

    Each leaf predicts a class or a number. If a limit ends the search, the bounds that have been
    proven are returned.

    Parameters
    ----------
    X : array-like, DataFrame or RowTable of shape (n_rows, n_features)
        The rows; NaN or None for missing values, which go to either side of a split.
    y : array-like of shape (n_rows,)
        Labels or numbers that the trees should predict.
    space : SearchSpace, optional
        Largest number of leaves and the cuts; by default 4 leaves and 16 cuts per feature.
    loss : {"errors", "squared_error", "absolute_error"}, default="errors"
        Loss that is summed over the rows.
    classes : sequence, optional
        The labels, in the order of the rules' class counts; by default the sorted labels of y.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row.
    start : sequence of RuleSet, default=()
        Initial incumbents. Rules that are the leaves of a tree of the space are used unchanged;
        others are replaced by the most similar tree, unless it has too many leaves.
    targets : sequence of float, optional
        Lower bounds that suffice for 1, 2, ... leaves: the search for a size ends when its bound
        is proven. By default it ends when the smallest loss is proven.
    limits : SolverLimits, optional
        Limits of time, nodes and work; by default none. Local search for incumbents uses at most a
        quarter of the limits, and the proofs of all sizes share the rest.

    Returns
    -------
    Frontier
        Proven lower bound and best tree found for each number of leaves. A keyboard interrupt ends
        the search like a limit.

    Raises
    ------
    ValueError, TypeError
        If the rows or a parameter are invalid.

    Notes
    -----
    The search uses one process. Solving subproblems in parallel would not be faster, because most
    bounds of a subproblem come from the cache and from neighboring cuts that were solved before.

    References
    ----------
    E. Demirović, A. Lukina, E. Hebrard, J. Chan, J. Bailey, C. Leckie, K. Ramamohanarao,
    P. J. Stuckey: MurTree: optimal decision trees via dynamic programming and search. JMLR 23,
    2022.
    J. G. M. van der Linden, M. M. de Weerdt, E. Demirović: Necessary and sufficient conditions for
    optimal decision trees using dynamic programming. NeurIPS 2023. arXiv:2305.19706
    C. E. Briţa, J. G. M. van der Linden, E. Demirović: Optimal classification trees for continuous
    feature data using dynamic programming with branch-and-bound. AAAI 2025. arXiv:2501.07903

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skescore.optimal import SearchSpace, optimal_trees
    >>> X, y = load_iris(return_X_y=True)
    >>> frontier = optimal_trees(X, y, SearchSpace(max_rules=4, cuts=None))
    >>> frontier.upper.tolist(), frontier.status
    ([100.0, 50.0, 6.0, 3.0], ('optimal', 'optimal', 'optimal', 'optimal'))
    """
    started = time.monotonic()
    space = SearchSpace(max_rules=4, cuts=16) if space is None else space
    max_leaves = space.max_rules or 4
    target_bounds = read_targets(targets, max_leaves)
    rows = TrainingRows.read(X, y, loss=loss, classes=classes, sample_weight=sample_weight)
    for rules in start:
        check_instance("start", rules, RuleSet)
    cuts = space.cuts_of(X)
    columns = CutColumns(cuts, rows.table)
    search = TreeSearch(columns, rows, max_leaves, limits or SolverLimits(), started)
    with threadpool_limits(1):  # products of small matrices are not faster with threads
        lower, upper, trees = search.run(target_bounds, list(map(rows.partition, start)))
    converter = TreeConverter(columns, rows)
    losses = np.array([converter.loss_of(tree) for tree in trees])
    if (np.abs(losses - upper) > 10 * search.tolerance).any():
        raise RuntimeError(
            f"The trees' losses {losses.tolist()} differ from those of the search, "
            f"{upper.tolist()}. This is a bug in skescore; please report it."
        )
    upper = np.minimum.accumulate(losses)
    rounding_error = 0.0 if search.loss.is_integral else 10 * search.tolerance
    is_solved = lower >= upper - 10 * search.tolerance
    lower = np.minimum(search.safe_bounds(lower), upper)
    # With an extreme outlier, the losses of other rows may be smaller than rounding errors.
    is_resolved = (rounding_error <= RESOLUTION * upper) | (lower == upper)
    lower = np.where(is_solved & is_resolved, upper, lower)
    lower = np.maximum.accumulate(lower[::-1])[::-1]  # more leaves never increase the loss
    status = np.where(lower >= target_bounds - 10 * search.tolerance, "target", search.ended_by)
    status = np.where(is_solved & ~is_resolved, "rounding", status)
    return Frontier(
        "tree",
        loss,
        tuple(range(1, max_leaves + 1)),
        lower,
        upper,
        tuple(converter.rules(tree) for tree in trees),
        float(rows.weights.sum()),
        {"cuts": cuts.to_json()},
        tuple(np.where(lower == upper, "optimal", status).tolist()),
        time.monotonic() - started,
    )


def grow_trees(
    X: Any,
    y: Any,
    space: SearchSpace,
    *,
    loss: str = "errors",
    classes: Sequence[Any] | None = None,
    sample_weight: Any = None,
    start: Sequence[RuleSet] = (),
    limits: SolverLimits | None = None,
) -> tuple[RuleSet, ...]:
    """Find decision trees with a small loss by local search, without bounds.

    Local search takes much less time per cut than a proof, so many cuts can be used.

    Parameters
    ----------
    X : array-like, DataFrame or RowTable of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Labels or numbers that the trees should predict.
    space : SearchSpace
        Largest number of leaves and the cuts.
    loss : {"errors", "squared_error", "absolute_error"}, default="errors"
        Loss that is summed over the rows.
    classes : sequence, optional
        The labels, in the order of the rules' class counts; by default the sorted labels of y.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row.
    start : sequence of RuleSet, default=()
        Initial incumbents.
    limits : SolverLimits, optional
        Limits of time, nodes and work. Without limits, the search tries a few changes per leaf.

    Returns
    -------
    tuple of RuleSet
        Trees with at most 1, 2, ... leaves.
    """
    started = time.monotonic()
    rows = TrainingRows.read(X, y, loss=loss, classes=classes, sample_weight=sample_weight)
    columns = CutColumns(space.cuts_of(X), rows.table)
    max_leaves = space.max_rules or 4
    search = TreeSearch(columns, rows, max_leaves, limits or SolverLimits(), started)
    with threadpool_limits(1):
        trees = search.grow(list(map(rows.partition, start)))
    converter = TreeConverter(columns, rows)
    return tuple(converter.rules(tree) for tree in trees)


# --- rows and cuts as the search represents them ---


class CutColumns:
    """Columns of nested cuts: each cut holds for all rows for which the previous cut holds.

    A numeric feature with missing values has two columns: with missing values below all cuts, and
    above all cuts. Each value of a categorical feature is a column with one cut.

    Parameters
    ----------
    cuts : Cuts
        Cuts of the features.
    table : RowTable
        The rows.
    """

    def __init__(self, cuts: Cuts, table: RowTable) -> None:
        self._cuts = cuts
        #: Feature and test of each cut, column by column; see :meth:`pair`.
        self._tests: list[tuple[int, bool, float | tuple[Any, ...] | None]] = []
        n_cuts, codes, seen_codes = [], [], set()
        for (feature, is_with_missing), thresholds, value_sets in cuts.columns():
            columns: list[tuple[np.ndarray, list[Any]]] = []
            if len(thresholds):
                numbers = table.numbers(feature, slice(None))
                code = _level_codes(numbers, thresholds, is_with_missing)
                columns.append((code, list(thresholds)))
            for values in value_sets:
                condition = cuts.pair(feature, is_with_missing, values)[0]
                columns.append(((~table.holds(condition)).astype(np.intp), [values]))
            for code, tests in columns:
                used_codes = np.unique(code)
                if len(used_codes) < 2:
                    continue
                compact_code = np.searchsorted(used_codes, code).astype(np.int64)
                if compact_code.tobytes() in seen_codes:
                    continue
                seen_codes.add(compact_code.tobytes())
                n_cuts.append(len(used_codes) - 1)
                codes.append(compact_code)
                self._tests += [
                    (feature, is_with_missing, tests[level]) for level in used_codes[:-1]
                ]
        self.n_cuts = len(self._tests)
        self.n_levels = np.array([n + 1 for n in n_cuts], dtype=np.int64)
        self.codes = np.column_stack(codes) if codes else np.zeros((len(table), 0), dtype=np.int64)
        #: Number of the first cut of each column.
        self.first_cuts = np.concatenate([[0], np.cumsum(n_cuts)]).astype(np.int64)

    def pair(self, cut: int) -> tuple[Condition, Condition]:
        """Return the condition of a cut and its negation."""
        return self._cuts.pair(*self._tests[cut])


def _level_codes(
    numbers: np.ndarray, thresholds: Sequence[float], is_with_missing: bool
) -> np.ndarray:
    """Return the number of thresholds below each value; for missing values, none or all."""
    code = np.searchsorted(np.array(thresholds), numbers, side="left")
    code[np.isnan(numbers)] = 0 if is_with_missing else len(thresholds)
    return code


@dataclass
class _Subset:
    """Points of a subproblem, with the cuts that split them.

    A point is an equivalence class of rows that no cut separates.

    Parameters
    ----------
    index : ndarray of int32
        Indices of the points.
    levels : ndarray of int64, shape (n_points, n_columns)
        Level of each point in each column; levels are numbered consecutively over all columns.
    cut_of_level : ndarray of int64
        The cut above each level; -1 for the last level of a column.
    column_of_level : ndarray of int64
        The column of each level.
    """

    index: np.ndarray
    levels: np.ndarray
    cut_of_level: np.ndarray
    column_of_level: np.ndarray
    cut_levels: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        #: Levels with a cut above them, in the order of all arrays "per cut".
        self.cut_levels = np.flatnonzero(self.cut_of_level >= 0)

    @cached_property
    def first_levels(self) -> np.ndarray:
        """First level of the column of each cut."""
        return np.searchsorted(self.column_of_level, self.columns)

    @property
    def cuts(self) -> np.ndarray:
        """Numbers of the cuts that split the points."""
        return self.cut_of_level[self.cut_levels]

    @property
    def columns(self) -> np.ndarray:
        """Column of each of these cuts."""
        return self.column_of_level[self.cut_levels]

    def sums_below(self, values: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """Sum values of the points, or of those in the mask, below each cut."""
        levels = self.levels if mask is None else self.levels[mask]
        flat, n_columns, n_levels = levels.ravel(), levels.shape[1], len(self.cut_of_level)
        sums = np.empty((len(self.cut_levels), values.shape[1]))
        for k in range(values.shape[1]):
            counts = np.bincount(flat, np.repeat(values[:, k], n_columns), minlength=n_levels)
            total = np.concatenate([[0.0], np.cumsum(counts)])
            sums[:, k] = total[self.cut_levels + 1] - total[self.first_levels]
        return sums

    def is_below(self, position: int) -> np.ndarray:
        """Return the mask of the points below one cut, given by its position."""
        level = self.cut_levels[position]
        return np.asarray(self.levels[:, self.column_of_level[level]] <= level)

    def restrict(self, mask: np.ndarray) -> _Subset:
        """Return the points of a mask, with the cuts that split them."""
        levels = self.levels[mask]
        n_levels = len(self.cut_of_level)
        is_present = np.zeros(n_levels, dtype=bool)
        is_present[levels.ravel()] = True
        used = np.flatnonzero(is_present)
        columns = self.column_of_level[used]
        is_last = np.append(columns[1:] != columns[:-1], True)
        is_constant = np.bincount(columns, minlength=levels.shape[1]) < 2
        cut_of_level = np.where(is_last, -1, self.cut_of_level[used])
        if is_constant.any():
            levels = levels[:, ~is_constant]
            is_present[used[is_constant[columns]]] = False
            varies = ~is_constant[columns]
            cut_of_level = cut_of_level[varies]
            columns = (np.cumsum(~is_constant) - 1)[columns[varies]]
        compact_levels = (np.cumsum(is_present) - 1)[levels]
        return _Subset(self.index[mask], compact_levels, cut_of_level, columns)

    def below_matrix(self, dtype: Any) -> np.ndarray:
        """Return a matrix of points by cuts: 1 where the point is below the cut."""
        return (self.levels[:, self.columns] <= self.cut_levels).astype(dtype)


# --- losses ---


class Misclassification:
    """Weight of the rows whose class is not the prediction of their leaf.

    Parameters
    ----------
    counts : ndarray of shape (n_points, n_classes)
        Weight of each class at each point.
    """

    #: Whether the gain of a leaf depends on the weight of all its classes.
    _needs_weights = False
    #: Whether :meth:`loss_of_sums` is available.
    sums_determine_loss = True
    #: Impurities for growing trees; the last one is the loss itself.
    criteria = ("gini", "entropy", "errors")

    def __init__(self, counts: np.ndarray) -> None:
        self.stats = counts
        #: Largest and smallest cost of each point in any tree.
        self.max_costs = counts.sum(axis=1)
        self.min_costs = self.max_costs - counts.max(axis=1, initial=0.0)
        has_whole_weights = bool((counts == np.floor(counts)).all())
        self.is_integral = has_whole_weights and counts.sum() < 2**50
        self._choose_dtype()

    def _choose_dtype(self) -> None:
        """Choose single precision where it represents all sums of weights exactly."""
        is_exact = (self.stats == np.floor(self.stats)).all() and self.stats.sum() < 2**24
        self._dtype = np.float32 if is_exact else np.float64

    def loss_of_sums(self, sums: np.ndarray) -> np.ndarray:
        """Return the loss of leaves from the sums of their points' statistics."""
        n_classes = sums.shape[-1]
        if not 0 < n_classes <= _FEW_CLASSES:
            return np.asarray(sums.sum(axis=-1) - sums.max(axis=-1, initial=0.0))
        # Reductions over a short last axis would take several times as long.
        total, largest = sums[..., 0], np.maximum(sums[..., 0], 0.0)
        for k in range(1, n_classes):
            total, largest = total + sums[..., k], np.maximum(largest, sums[..., k])
        return np.asarray(total - largest)

    @property
    def growth_stats(self) -> np.ndarray:
        """Statistics of each point; their sums determine impurities."""
        return self.stats

    def impurities(self, sums: np.ndarray, criterion: str) -> np.ndarray:
        """Return the impurity of leaves, multiplied by their weight, from sums of statistics."""
        if criterion == "errors":
            return self.loss_of_sums(sums)
        weight = np.einsum("...k->...", sums)
        if criterion == "gini":
            squares = np.einsum("...k,...k->...", sums, sums)
            return np.asarray(weight - _squared_over(np.sqrt(squares), weight))
        positive = np.maximum(sums, _SMALLEST)
        entropies = np.einsum("...k,...k->...", positive, np.log(positive))
        weight = np.maximum(weight, _SMALLEST)
        return np.asarray(weight * np.log(weight) - entropies)

    def fit_output(self, index: np.ndarray) -> int:
        """Return the class with the largest weight at some points."""
        return int(self.stats[index].sum(axis=0).argmax())

    def costs_of_output(self, index: np.ndarray, output: int) -> np.ndarray:
        """Return the cost of each point in a leaf that predicts a class."""
        return np.asarray(self.max_costs[index] - self.stats[index, output])

    def bounds_by_leaves(self, sums: np.ndarray, max_leaves: int) -> np.ndarray:
        """Bound the loss of 2, 3, ... leaves from below; k leaves predict at most k classes."""
        smallest_sums = np.cumsum(np.sort(sums, axis=-1), axis=-1)
        n_unpredicted = sums.shape[-1] - np.arange(2, max_leaves + 1)
        return np.where(n_unpredicted > 0, smallest_sums[..., n_unpredicted.clip(1) - 1], 0.0)

    def _gains(self, hits: np.ndarray, weights: np.ndarray, class_index: int) -> np.ndarray:
        """Return the gains of leaves that predict a class, from their weight of that class."""
        return hits

    def two_leaf_losses(
        self, subset: _Subset, sums: np.ndarray, total: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Return the smallest losses of both children of every cut, with two leaves each.

        Each child is divided by its own best second cut. The sums of the four quarters of all pairs
        of cuts come from the product of the matrix of cuts with itself.

        Parameters
        ----------
        subset : _Subset
            The points.
        sums : ndarray of shape (n_cuts, n_classes)
            Statistics below each cut.
        total : ndarray of shape (n_classes,)
            Statistics of all points.

        Returns
        -------
        tuple of four ndarrays of shape (n_cuts,)
            Losses below and above the cut, and positions of the best second cuts there.
        """
        dtype = self._dtype
        below, stats = subset.below_matrix(dtype), self.stats[subset.index].astype(dtype)
        weight = sums.sum(axis=1)
        n_cuts = len(weight)
        used = [k for k in range(stats.shape[1]) if total[k] > 0]
        # The last entry of each list is the weight of all classes.
        point_values = [*(stats[:, k] for k in used), stats.sum(axis=1)]
        values_below = [*(sums[:, k].astype(dtype) for k in used), weight.astype(dtype)]
        totals = [*(dtype(total[k]) for k in used), dtype(total.sum())]
        weighted = [below * values[:, None] for values in point_values]
        gains = np.empty((2, n_cuts))
        second_cuts = np.empty((2, n_cuts), dtype=np.intp)
        step = max(1, _BLOCK_SIZE // max(1, n_cuts))
        for begin in range(0, n_cuts, step):
            block = slice(begin, begin + step)

            def quarter_sums(i: int, block: slice = block) -> tuple[np.ndarray, ...]:
                shared = below[:, block].T @ weighted[i]
                first, second = values_below[i][block, None], values_below[i][None]
                second_only = second - shared
                return shared, first - shared, second_only, (totals[i] - first) - second_only

            weights = quarter_sums(len(used)) if self._needs_weights else (below,) * 4
            best: list[np.ndarray] = []
            for i, k in enumerate(used):
                class_gains = [
                    self._gains(hits, weight_in_quarter, k)
                    for hits, weight_in_quarter in zip(quarter_sums(i), weights, strict=True)
                ]
                if not best:
                    best = class_gains
                for best_gain, class_gain in zip(best, class_gains, strict=True):
                    np.maximum(best_gain, class_gain, out=best_gain)
            for child in (0, 1):
                pair_gains = best[2 * child] + best[2 * child + 1]
                second = pair_gains.argmax(axis=1)
                second_cuts[child, block] = second
                gains[child, block] = pair_gains[np.arange(len(pair_gains)), second]
        return weight - gains[0], total.sum() - weight - gains[1], *second_cuts


class _SquaredLoss:
    """Weighted squared distance from the mean of the leaf.

    Parameters
    ----------
    y, weights : ndarray of shape (n_rows,)
        Numbers and weights.
    group : ndarray of int, shape (n_rows,)
        Point of each row.
    """

    is_integral = False
    sums_determine_loss = True
    criteria = ("squared_error",)

    def __init__(self, y: np.ndarray, weights: np.ndarray, group: np.ndarray) -> None:
        n_points = int(group.max()) + 1
        y = deviations_from_mean(y, weights if weights.any() else None)
        low, high = y.min(), y.max()

        def sum_by_point(values: np.ndarray) -> np.ndarray:
            return np.bincount(group, values, minlength=n_points)

        moments = weights, weights * y, weights * y * y
        self.stats = np.column_stack([sum_by_point(values) for values in moments])
        self.max_costs = np.maximum(
            sum_by_point(weights * (y - low) ** 2), sum_by_point(weights * (y - high) ** 2)
        )
        self.min_costs = self.loss_of_sums(self.stats)

    def loss_of_sums(self, sums: np.ndarray) -> np.ndarray:
        """Return the loss of leaves from the sums of their points' statistics."""
        weight, first, second = np.moveaxis(sums, -1, 0)
        return np.asarray(np.maximum(second - _squared_over(first, weight), 0.0))

    @property
    def growth_stats(self) -> np.ndarray:
        """Statistics of each point; their sums determine impurities."""
        return self.stats

    def impurities(self, sums: np.ndarray, criterion: str) -> np.ndarray:
        """Return the squared errors of leaves from sums of statistics."""
        return self.loss_of_sums(sums)

    def fit_output(self, index: np.ndarray) -> float:
        """Return the mean of some points."""
        weight, first, _ = self.stats[index].sum(axis=0)
        return float(first / weight) if weight > 0 else 0.0

    def costs_of_output(self, index: np.ndarray, output: float) -> np.ndarray:
        """Return the cost of each point in a leaf that predicts a number."""
        weight, first, second = self.stats[index].T
        return np.asarray(np.maximum(second - 2 * output * first + output**2 * weight, 0.0))

    def bounds_by_leaves(self, sums: np.ndarray, max_leaves: int) -> np.ndarray:
        """Return the trivial lower bounds for 2, 3, ... leaves."""
        return np.zeros((*sums.shape[:-1], max_leaves - 1))

    def two_leaf_losses(
        self, subset: _Subset, sums: np.ndarray, total: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Return the losses of :meth:`Misclassification.two_leaf_losses` for squared errors."""
        below, stats = subset.below_matrix(float), self.stats[subset.index]
        n_cuts = len(sums)
        gains = np.empty((2, n_cuts))
        second_cuts = np.empty((2, n_cuts), dtype=np.intp)
        step = max(1, _BLOCK_SIZE // max(1, n_cuts))
        weighted = [below * stats[:, k, None] for k in (0, 1)]
        for begin in range(0, n_cuts, step):
            block = slice(begin, begin + step)
            w, f = (below[:, block].T @ values for values in weighted)
            w_first, f_first = sums[block, 0, None], sums[block, 1, None]
            w_second_only, f_second_only = sums[None, :, 0] - w, sums[None, :, 1] - f
            gain_below = _squared_over(f, w) + _squared_over(f_first - f, w_first - w)
            gain_above = _squared_over(f_second_only, w_second_only) + _squared_over(
                total[1] - f_first - f_second_only, total[0] - w_first - w_second_only
            )
            for child, gain in enumerate((gain_below, gain_above)):
                second = gain.argmax(axis=1)
                second_cuts[child, block] = second
                gains[child, block] = gain[np.arange(len(gain)), second]
        squares = sums[:, 2]
        left = np.maximum(squares - gains[0], 0)
        right = np.maximum(total[2] - squares - gains[1], 0)
        return left, right, *second_cuts


def _squared_over(first: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return first² / weight; 0 if the weight is a rounding error."""
    smallest = 1e-12 * max(1e-300, float(np.max(weight, initial=0.0)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(weight > smallest, first * (first / weight), 0.0)


class _AbsoluteLoss:
    """Weighted distance from the median of the leaf; points are rows, sorted by target.

    Parameters
    ----------
    y, weights : ndarray of shape (n_rows,)
        Sorted numbers and their weights.
    group : ndarray of int, shape (n_rows,)
        Equivalence class of each row.
    """

    is_integral = False
    sums_determine_loss = False
    criteria = ("squared_error",)

    def __init__(self, y: np.ndarray, weights: np.ndarray, group: np.ndarray) -> None:
        y = y - np.median(y)
        self.y, self.weights = y, weights
        self.max_costs = weights * np.maximum(y - y.min(), y.max() - y)
        self.min_costs = np.zeros(len(y))
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(group[order]) != 0))
        for rows in np.split(order, starts[1:]):
            self.min_costs[rows[0]] = self._cost(y[rows], weights[rows])
        self.stats = weights[:, None]
        self.growth_stats = np.column_stack([weights, weights * y, weights * y * y])

    def impurities(self, sums: np.ndarray, criterion: str) -> np.ndarray:
        """Return the squared errors of leaves from sums, which is faster than absolute errors."""
        weight, first, second = np.moveaxis(sums, -1, 0)
        return np.asarray(np.maximum(second - _squared_over(first, weight), 0.0))

    def fit_output(self, index: np.ndarray) -> float:
        """Return the median of some points."""
        index = np.sort(index)
        total = np.cumsum(self.weights[index])
        return float(self.y[index][np.searchsorted(total, total[-1] / 2)])

    def costs_of_output(self, index: np.ndarray, output: float) -> np.ndarray:
        """Return the cost of each point in a leaf that predicts a number."""
        return np.asarray(self.weights[index] * np.abs(self.y[index] - output))

    @staticmethod
    def _cost(y: np.ndarray, weights: np.ndarray) -> float:
        """Return the loss of the median of sorted numbers."""
        if not weights.any():
            return 0.0
        total = np.cumsum(weights)
        median = y[np.searchsorted(total, total[-1] / 2)]
        return float((weights * np.abs(y - median)).sum())

    def loss_of_rows(self, index: np.ndarray) -> float:
        """Return the loss of one leaf."""
        return self._cost(self.y[index], self.weights[index])

    def loss_of_children(self, subset: _Subset) -> tuple[np.ndarray, np.ndarray]:
        """Return the losses of the two children of each cut if each child is one leaf."""
        y, weights = self.y[subset.index], self.weights[subset.index]
        n_cuts = len(subset.cut_levels)
        losses = np.empty((2, n_cuts))
        step = max(1, _BLOCK_SIZE // max(1, len(y)))
        columns = subset.columns
        for begin in range(0, n_cuts, step):
            block = slice(begin, begin + step)
            below = subset.levels[:, columns[block]] <= subset.cut_levels[block]
            for child, mask in enumerate((below, ~below)):
                counted = mask * weights[:, None]
                total = np.cumsum(counted, axis=0)
                median_row = (total < total[-1] / 2).sum(axis=0).clip(0, len(y) - 1)
                moment = np.cumsum(counted * y[:, None], axis=0)
                across = np.arange(counted.shape[1])
                weight_below, moment_below = total[median_row, across], moment[median_row, across]
                cost = y[median_row] * (2 * weight_below - total[-1])
                cost = cost + moment[-1] - 2 * moment_below
                losses[child, block] = np.maximum(cost, 0.0)
        return losses[0], losses[1]

    def bounds_by_leaves(self, sums: np.ndarray, max_leaves: int) -> np.ndarray:
        """Return the trivial lower bounds for 2, 3, ... leaves."""
        return np.zeros((*sums.shape[:-1], max_leaves - 1))


# --- the search ---


class _Subproblem:
    """Bounds and incumbents for some rows by number of leaves.

    Parameters
    ----------
    max_leaves : int
        Largest number of leaves.
    loss : float
        Loss of one leaf.
    lower : list of float
        Lower bounds for 2, 3, ... leaves.
    """

    __slots__ = ("lower", "split_bounds", "trees", "upper")

    def __init__(self, max_leaves: int, loss: float, lower: list[float]) -> None:
        # The lists are indexed by the number of leaves; entry 0 is not used.
        self.lower = [math.inf, loss, *(min(bound, loss) for bound in lower)]
        self.upper = [math.inf] + [loss] * max_leaves
        self.trees: list[_Tree] = [None] * (max_leaves + 1)
        self.split_bounds: _SplitBounds | None = None

    def add_tree(self, n_leaves: int, loss: float, tree: _Tree) -> None:
        """Make a tree the incumbent of all sizes for which it is better."""
        for size in range(n_leaves, len(self.upper)):
            if loss < self.upper[size]:
                self.upper[size], self.trees[size] = loss, tree

    def raise_lower(self, n_leaves: int, bound: float) -> None:
        """Raise the lower bounds for at most this number of leaves."""
        for size in range(2, n_leaves + 1):
            self.lower[size] = max(self.lower[size], min(bound, self.upper[size]))


class _SplitBounds:
    """Lower bounds on the losses of both children of every cut: an array (child, leaves, cut).

    Parameters
    ----------
    search : TreeSearch
        The search.
    node : _Subproblem
        Bounds for all points.
    subset : _Subset
        The points.
    parent : pair of _SplitBounds and _Subset, optional
        The bounds for a superset of the points.
    """

    def __init__(
        self,
        search: TreeSearch,
        node: _Subproblem,
        subset: _Subset,
        parent: tuple[_SplitBounds, _Subset] | None,
    ) -> None:
        loss, max_leaves = search.loss, search.max_leaves
        index = subset.index
        point_values = [
            loss.stats[index],
            loss.min_costs[index, None],
            loss.max_costs[index, None],
        ]
        sums = subset.sums_below(np.hstack(point_values))
        n_stats = point_values[0].shape[1]
        stats = sums[:, :n_stats]
        self.sums, self.total = stats, point_values[0].sum(axis=0)
        #: Largest cost of the points below each cut.
        self.max_costs = sums[:, -1]
        min_costs, total_min_cost = sums[:, n_stats], float(point_values[1].sum())
        self.lower = np.zeros((2, max_leaves, len(subset.cut_levels)))
        for child in (0, 1):
            child_stats = stats if child == 0 else self.total - stats
            child_min_costs = min_costs if child == 0 else total_min_cost - min_costs
            if max_leaves > 2:
                class_bounds = loss.bounds_by_leaves(child_stats, max_leaves - 1)
                self.lower[child, 2:] = np.maximum(child_min_costs[:, None], class_bounds).T
        if isinstance(loss, _AbsoluteLoss):
            self.lower[0, 1], self.lower[1, 1] = loss.loss_of_children(subset)
        else:
            self.lower[0, 1] = loss.loss_of_sums(stats)
            self.lower[1, 1] = loss.loss_of_sums(self.total - stats)
        self.total_max_cost = float(point_values[2].sum())
        # The loss of all points exceeds a child's loss by at most the cost of the other points.
        max_costs = np.stack([self.max_costs, self.total_max_cost - self.max_costs])
        for n_leaves in range(2, max_leaves):
            bounds = self.lower[:, n_leaves]
            np.maximum(bounds, node.lower[n_leaves] - (self.total_max_cost - max_costs), out=bounds)
        if parent is not None:
            parent_bounds, parent_subset = parent
            position = np.searchsorted(parent_subset.cuts, subset.cuts)
            costs = parent_bounds.max_costs[position]
            costs = np.stack([costs, parent_bounds.total_max_cost - costs])
            inherited = parent_bounds.lower[:, 2:, position] - (costs - max_costs)[:, None]
            np.maximum(self.lower[:, 2:], inherited, out=self.lower[:, 2:])
        self.lower[:, 2:] = np.clip(self.lower[:, 2:], 0, self.lower[:, 1:2])
        columns = subset.columns
        self._column_begin = np.searchsorted(columns, columns, side="left")
        self._column_end = np.searchsorted(columns, columns, side="right")
        #: Best second cuts of both children; None until all pairs of cuts are computed.
        self.second_cuts: tuple[np.ndarray, np.ndarray] | None = None

    def bound_by_similarity(
        self, n_leaves: int, bound: float, shared_cost: np.ndarray, total_cost: float
    ) -> None:
        """Bound the losses of all children by similarity to a set of points with a known bound.

        Parameters
        ----------
        n_leaves : int
            Number of leaves.
        bound : float
            Lower bound on the loss of the set.
        shared_cost : ndarray of shape (n_cuts,)
            Largest cost of the points of the set below each cut.
        total_cost : float
            Largest cost of the set.
        """
        for child, cost in enumerate((shared_cost, total_cost - shared_cost)):
            lower = self.lower[child, n_leaves]
            np.maximum(lower, bound - (total_cost - cost), out=lower)

    def bound_child(self, child: int, n_leaves: int, position: int, bound: float) -> None:
        """Raise the bound of a child, and the bounds that follow for other cuts of its column."""
        begin, end = self._column_begin[position], self._column_end[position]
        lower, costs = self.lower[child, n_leaves], self.max_costs
        if child == 0:
            supersets, subsets = slice(position, end), slice(begin, position)
            reduced = bound - (costs[position] - costs[subsets])
        else:
            supersets, subsets = slice(begin, position + 1), slice(position + 1, end)
            reduced = bound - (costs[subsets] - costs[position])
        np.maximum(lower[supersets], bound, out=lower[supersets])
        np.maximum(lower[subsets], reduced, out=lower[subsets])


class TreeSearch:
    """Branch and bound for decision trees with a limited number of leaves.

    Parameters
    ----------
    columns : CutColumns
        The cuts.
    rows : TrainingRows
        The rows.
    max_leaves : int
        Largest number of leaves.
    limits : SolverLimits
        Limits of time, nodes and work.
    started : float
        Time at which the search started.
    """

    def __init__(
        self,
        columns: CutColumns,
        rows: TrainingRows,
        max_leaves: int,
        limits: SolverLimits,
        started: float,
    ) -> None:
        self.max_leaves = max_leaves
        self.deadline, self.node_limit = limits.deadline(started), limits.node_limit
        self.work_limit = limits.work_limit
        self.n_nodes = 0
        #: Counted work in CPU seconds.
        self.work = 0.0
        self.tolerance = 0.0
        self.is_stopped = False
        self.ended_by = "rounding"
        self._cache: dict[bytes, _Subproblem] = {}
        self._boxes: _BoxTable | None = None
        self.columns, self.rows = columns, rows
        codes = columns.codes
        if codes.shape[1]:
            points, first, group = np.unique(codes, axis=0, return_index=True, return_inverse=True)
            group = group.ravel()
        else:
            points, group = codes[:1], np.zeros(len(codes), dtype=np.intp)
            first = np.zeros(1, dtype=np.intp)
        target, weights = rows.target, rows.weights
        self.loss: Any
        if rows.classes is not None:
            n_classes = len(rows.classes)
            counts = np.bincount(
                group * n_classes + target, weights, minlength=len(points) * n_classes
            )
            self.loss = Misclassification(counts.reshape(len(points), n_classes))
        elif rows.loss == "squared_error":
            self.loss = _SquaredLoss(target, weights, group)
        else:
            order = np.argsort(target, kind="stable")
            points, first = codes[order], order
            self.loss = _AbsoluteLoss(target[order], weights[order], group[order])
        self._row_of_point = first
        self._set_tolerance()
        # Squared errors of equal numbers may differ from 0 by this rounding error.
        noise = 4 * sys.float_info.epsilon * float(np.abs(target).max(initial=0))
        noise_of_loss = {"errors": 0.0, "squared_error": noise**2}
        noise = float(weights.sum()) * noise_of_loss.get(rows.loss, noise)
        self.tolerance = max(self.tolerance, noise)
        starts = np.concatenate([[0], np.cumsum(columns.n_levels)]).astype(np.int64)
        cut_of_level = np.full(int(starts[-1]), -1, dtype=np.int64)
        column_of_level = np.repeat(np.arange(len(columns.n_levels)), columns.n_levels)
        has_cut = np.ones(len(cut_of_level), dtype=bool)
        has_cut[starts[1:] - 1] = False
        cut_of_level[has_cut] = np.arange(columns.n_cuts)
        self.all_points = _Subset(
            np.arange(len(points), dtype=np.int32),
            points + starts[:-1],
            cut_of_level,
            column_of_level,
        )

    def _set_tolerance(self) -> None:
        """Set the tolerance of comparisons relative to the largest possible loss."""
        self.tolerance = 1e-9 * max(float(self.loss.max_costs.sum()), 1e-300)

    def run(
        self, targets: np.ndarray, partitions: Sequence[np.ndarray] = ()
    ) -> tuple[np.ndarray, np.ndarray, list[_Tree]]:
        """Search the trees of all sizes.

        Parameters
        ----------
        targets : ndarray of shape (max_leaves,)
            Lower bounds at which the search stops.
        partitions : sequence of ndarray of int, shape (n_rows,)
            For each initial rule set, the rule that predicts each row.

        Returns
        -------
        tuple of ndarray, ndarray and list
            Lower bounds, losses and trees by the number of leaves.
        """
        root = self._subproblem(self.all_points)
        if len(self.all_points.cut_levels):
            try:
                self._search_in_stages(root, targets, partitions)
            except KeyboardInterrupt:  # the bounds are valid at any time
                self.ended_by = "interrupted"
        else:
            root.lower = [math.inf] + [root.upper[1]] * self.max_leaves
        lower = np.array(root.lower[1:])
        # A bound for more leaves is also valid for fewer leaves.
        lower = np.maximum.accumulate(lower[::-1])[::-1]
        return lower, np.array(root.upper[1:]), root.trees[1:]

    def _search_in_stages(
        self, root: _Subproblem, targets: np.ndarray, partitions: Sequence[np.ndarray]
    ) -> None:
        """Find incumbents, prove bounds, and improve the incumbents within the limits."""
        resources = self._resources()
        self._add_incumbents(root, partitions)
        self._limit_to(resources, _FIRST_SHARE)
        n_rounds = min(_ROUNDS_PER_LEAF * self.max_leaves, self.node_limit // _NODES_PER_ROUND)
        self._improve_incumbents(root, n_rounds)
        self._limit_to(resources, _PROOF_SHARE)
        self._solve_all_sizes(root, targets)
        is_limited = min(resources) < math.inf
        if is_limited and not np.isfinite(targets).any() and not self._is_solved(root):
            self._limit_to(resources, 1.0)
            self._improve_incumbents(root, self.node_limit - self.n_nodes)

    def grow(self, partitions: Sequence[np.ndarray]) -> list[_Tree]:
        """Find good trees by local search only.

        Parameters
        ----------
        partitions : sequence of ndarray of int, shape (n_rows,)
            For each initial rule set, the rule that predicts each row.

        Returns
        -------
        list of trees
            The trees by the number of leaves.
        """
        root = self._subproblem(self.all_points)
        if len(self.all_points.cut_levels):
            is_limited = min(self._resources()) < math.inf
            self._add_incumbents(root, partitions)
            n_rounds = self.node_limit if is_limited else _ROUNDS_PER_LEAF * self.max_leaves
            self._improve_incumbents(root, n_rounds)
        return root.trees[1:]

    def _add_incumbents(self, root: _Subproblem, partitions: Sequence[np.ndarray]) -> None:
        """Add greedy trees and the trees of initial rule sets."""
        self._grow_greedy_trees(root)
        for partition in partitions:
            tree, n_leaves = self._nearest_tree(self.all_points, partition[self._row_of_point])
            if n_leaves <= self.max_leaves:
                root.add_tree(n_leaves, self._loss_of(tree), tree)

    def _resources(self) -> tuple[float, float, float]:
        """Return the deadline and the limits of nodes and work."""
        return self.deadline, self.node_limit, self.work_limit

    def _limit_to(self, resources: tuple[float, float, float], share: float) -> None:
        """Limit the next stage to a share of the remaining time, nodes and work."""
        used = time.monotonic(), self.n_nodes, self.work
        limits = [u + (end - u) * share for u, end in zip(used, resources, strict=True)]
        self.deadline, self.node_limit, self.work_limit = limits
        self.is_stopped = False

    def _is_solved(self, root: _Subproblem) -> bool:
        """Return whether the tree with the largest number of leaves is proven optimal."""
        return root.lower[self.max_leaves] >= root.upper[self.max_leaves] - self.tolerance

    def _spend(self, seconds: float) -> bool:
        """Count work, and return whether a limit has ended the search."""
        self.work += seconds
        return self._check_limits()

    def _improve_incumbents(self, root: _Subproblem, n_rounds: float) -> None:
        """Improve the trees of all sizes by local search, with most effort for the largest."""
        if self._is_solved(root):
            return
        local_search = LocalTreeSearch(self.all_points, self.loss, self._spend)
        # Trees with many leaves take long, so only some sizes are improved.
        n_sizes = min(self.max_leaves - 1, _MAX_GREEDY_SIZES)
        for size in np.unique(np.linspace(2, self.max_leaves, n_sizes).astype(int)).tolist():
            if not self._check_limits():
                root.add_tree(size, *local_search.polish(root.trees[size], size))
        if n_rounds >= 1:
            loss, tree = local_search.improve(
                root.trees[self.max_leaves], self.max_leaves, n_rounds
            )
            self.n_nodes += local_search.n_rounds
            root.add_tree(self.max_leaves, loss, tree)
        smaller = local_search.load(root.trees[self.max_leaves])
        while not self._check_limits() and local_search.remove_split(smaller):
            loss, n_leaves = local_search.optimize(smaller), smaller.n_leaves
            root.add_tree(n_leaves, loss, smaller.to_tuple())

    def _solve_all_sizes(self, root: _Subproblem, targets: np.ndarray) -> None:
        """Solve all sizes with equal shares of the limits, and then again with the rest."""
        resources = self._resources()
        for is_first in (True, False):
            for n_leaves in range(2, self.max_leaves + 1):
                n_sizes = self.max_leaves - n_leaves + 1
                self._limit_to(resources, 1 / n_sizes if is_first else 1.0)
                self._solve(root, self.all_points, n_leaves, targets[n_leaves - 1], is_root=True)

    def safe_bounds(self, lower: np.ndarray) -> np.ndarray:
        """Return lower bounds that are valid despite rounding; integers if losses are integers."""
        if self.loss.is_integral:
            return np.ceil(lower - 1e-6) + 0.0
        return np.maximum(lower - self.tolerance, 0.0)

    def _check_limits(self) -> bool:
        """Return whether a limit has ended the search."""
        if not self.is_stopped:
            if time.monotonic() >= self.deadline:
                self.is_stopped, self.ended_by = True, "time_limit"
            elif self.n_nodes >= self.node_limit:
                self.is_stopped, self.ended_by = True, "node_limit"
            elif self.work >= self.work_limit:
                self.is_stopped, self.ended_by = True, "work_limit"
        return self.is_stopped

    def _subproblem(self, subset: _Subset) -> _Subproblem:
        """Return the (possibly cached) subproblem of some points."""
        key = blake2b(subset.index.tobytes(), digest_size=16).digest()
        node = self._cache.get(key)
        if node is not None:
            return node
        self.n_nodes += 1
        loss = self.loss
        self.work += _STEP + _ADDITION * len(subset.index) * loss.stats.shape[1]
        sums = loss.stats[subset.index].sum(axis=0)
        if isinstance(loss, _AbsoluteLoss):
            leaf_loss = loss.loss_of_rows(subset.index)
        else:
            leaf_loss = float(loss.loss_of_sums(sums))
        min_cost = float(loss.min_costs[subset.index].sum())
        lower = np.maximum(min_cost, loss.bounds_by_leaves(sums, self.max_leaves)).tolist()
        if not len(subset.cut_levels):
            lower = [leaf_loss] * len(lower)
        node = _Subproblem(self.max_leaves, leaf_loss, lower)
        if len(self._cache) < _MAX_CACHED:
            self._cache[key] = node
        return node

    def _solve(
        self,
        node: _Subproblem,
        subset: _Subset,
        n_leaves: int,
        limit: float,
        parent: tuple[_SplitBounds, _Subset] | None = None,
        *,
        is_root: bool = False,
    ) -> None:
        """Raise the lower bound of a subproblem to its smallest loss, or to `limit`.

        The limits of the search may end this earlier. The root keeps the bounds of its splits.
        """

        def is_solved() -> bool:
            return node.lower[n_leaves] >= min(limit, node.upper[n_leaves]) - self.tolerance

        if is_solved() or (self._check_limits() and node.split_bounds is None and not is_root):
            return
        bounds = node.split_bounds
        if bounds is None:
            bounds = _SplitBounds(self, node, subset, parent)
            self._count_sums(subset, self.loss.stats.shape[1] + 2)
            self.work += 20 * _ENTRY * self.max_leaves * len(subset.cut_levels)
        if is_root:
            node.split_bounds = bounds
        while True:
            self.work += _STEP + _ENTRY * n_leaves * len(subset.cut_levels)
            # Choose the split with the smallest bound over all distributions of the leaves.
            totals = [
                bounds.lower[0, left] + bounds.lower[1, n_leaves - left]
                for left in range(1, n_leaves)
            ]
            positions = [int(total.argmin()) for total in totals]
            values = [float(total[at]) for total, at in zip(totals, positions, strict=True)]
            best = int(np.argmin(values))
            n_left, position, value = best + 1, positions[best], values[best]
            if n_leaves == 2:
                node.add_tree(2, value, (int(subset.cuts[position]), None, None))
                node.raise_lower(2, value)
                return
            node.raise_lower(n_leaves, value)
            if is_solved() or self._check_limits():
                return
            if bounds.second_cuts is None and self._solve_two_leaf_children(node, subset, bounds):
                continue
            self._branch(node, subset, bounds, (n_left, n_leaves - n_left), position, limit)

    def _branch(
        self,
        node: _Subproblem,
        subset: _Subset,
        bounds: _SplitBounds,
        child_leaves: tuple[int, int],
        position: int,
        limit: float,
    ) -> None:
        """Solve both children of one candidate split, and update the bounds and the incumbent."""
        n_leaves = sum(child_leaves)
        below = None
        trees: list[_Tree] = [None, None]
        losses = [0.0, 0.0]
        for child in (0, 1) if child_leaves[0] >= child_leaves[1] else (1, 0):
            size, other_size = child_leaves[child], child_leaves[1 - child]
            if size == 1:
                losses[child] = float(bounds.lower[child, 1, position])
                continue
            if size == 2 and bounds.second_cuts is not None:
                losses[child] = float(bounds.lower[child, 2, position])
                second = bounds.second_cuts[child][position]
                trees[child] = (int(subset.cuts[second]), None, None)
                continue
            if below is None:
                below = subset.is_below(position)
            mask = below if child == 0 else ~below
            if size == 2 and not isinstance(self.loss, _AbsoluteLoss):
                losses[child], trees[child] = self._best_stump(subset, mask)
                bounds.bound_child(child, 2, position, losses[child])
                continue
            child_subset = subset.restrict(mask)
            self._count_sums(child_subset, 3)
            child_node = self._subproblem(child_subset)
            other_bound = float(bounds.lower[1 - child, other_size, position])
            child_limit = min(limit, node.upper[n_leaves]) - other_bound
            self._solve(child_node, child_subset, size, child_limit, (bounds, subset))
            bounds.bound_child(child, size, position, child_node.lower[size])
            if size > 2:
                costs = np.where(mask, self.loss.max_costs[subset.index], 0.0)
                shared_cost = subset.sums_below(costs[:, None])[:, 0]
                self._count_sums(subset, 1)
                bounds.bound_by_similarity(
                    size, child_node.lower[size], shared_cost, float(costs.sum())
                )
            losses[child], trees[child] = child_node.upper[size], child_node.trees[size]
        node.add_tree(n_leaves, sum(losses), (int(subset.cuts[position]), *trees))

    def _count_sums(self, subset: _Subset, n_values: int) -> None:
        """Count the work of sums below all cuts."""
        n_entries = subset.levels.size + len(subset.cut_of_level)
        self.work += _STEP + _ADDITION * n_entries * (n_values + 1)

    def _best_stump(self, subset: _Subset, mask: np.ndarray) -> tuple[float, _Tree]:
        """Return the smallest loss of the points of a mask with two leaves, and the tree."""
        self.n_nodes += 1
        self._count_sums(subset, self.loss.stats.shape[1])
        stats = self.loss.stats[subset.index[mask]]
        sums, total = subset.sums_below(stats, mask), stats.sum(axis=0)
        losses = self.loss.loss_of_sums(sums) + self.loss.loss_of_sums(total - sums)
        position = int(losses.argmin())
        return float(losses[position]), (int(subset.cuts[position]), None, None)

    def _solve_two_leaf_children(
        self, node: _Subproblem, subset: _Subset, bounds: _SplitBounds
    ) -> bool:
        """Solve all children with two leaves, unless there are too many pairs of cuts."""
        n_cuts = len(subset.cut_levels)
        n_stats = self.loss.stats.shape[1]
        n_products = float(n_cuts) ** 2 * len(subset.index) * n_stats
        if (
            isinstance(self.loss, _AbsoluteLoss)
            or n_cuts > _MAX_PAIRED_CUTS
            or n_products > _MAX_PAIRED_PRODUCTS
        ):
            return False
        self.work += _PRODUCT * n_products + 4 * _ENTRY * float(n_cuts) ** 2 * n_stats
        left, right, *second = self.loss.two_leaf_losses(subset, bounds.sums, bounds.total)
        bounds.second_cuts = (second[0], second[1])
        for child, losses in enumerate((left, right)):
            bounds.lower[child, 2] = np.clip(losses, 0, bounds.lower[child, 1])
        for child in (0, 1):
            total = bounds.lower[child, 2] + bounds.lower[1 - child, 1]
            position = int(total.argmin())
            trees: list[_Tree] = [None, None]
            trees[child] = (int(subset.cuts[second[child][position]]), None, None)
            node.add_tree(3, float(total[position]), (int(subset.cuts[position]), *trees))
        total = bounds.lower[0, 1] + bounds.lower[1, 1]
        position = int(total.argmin())
        node.add_tree(2, float(total[position]), (int(subset.cuts[position]), None, None))
        return True

    def _grow_greedy_trees(self, root: _Subproblem) -> None:
        """Add scikit-learn's trees as initial incumbents."""
        rows = self.rows
        codes, first_cuts = self.columns.codes.astype(np.float32), self.columns.first_cuts
        is_classification = rows.classes is not None
        estimator: Any = DecisionTreeClassifier if is_classification else DecisionTreeRegressor
        if not rows.weights.any() or self.max_leaves < 2:
            return
        for criterion in ("gini", "entropy") if is_classification else ("squared_error",):
            if time.monotonic() >= self.deadline:
                return
            self.work += 10 * _ADDITION * codes.size * math.log2(len(codes) + 1)
            max_leaves = min(self.max_leaves, max(2, len(codes)))
            model = estimator(max_leaf_nodes=max_leaves, criterion=criterion, random_state=0)
            fitted = model.fit(codes, rows.target, rows.weights).tree_
            n_sizes = min(int(fitted.n_leaves) - 1, _MAX_GREEDY_SIZES)
            for n_leaves in np.unique(np.linspace(2, int(fitted.n_leaves), n_sizes).astype(int)):
                tree = _first_splits(fitted, int(n_leaves), first_cuts)
                root.add_tree(int(n_leaves), self._loss_of(tree), tree)

    def _nearest_tree(self, subset: _Subset, rule: np.ndarray) -> tuple[_Tree, int]:
        """Build a tree that separates points by their rule, and count its leaves.

        Each split assigns every rule to one child, and separates the fewest points from the
        majority of their rule; splits that separate no points are preferred.
        """
        rules, code = np.unique(rule, return_inverse=True)
        if len(rules) < 2 or not len(subset.cut_levels):
            return None, 1
        below = subset.sums_below(np.eye(len(rules))[code])
        above = np.bincount(code, minlength=len(rules)) - below
        has_both_sides = (below > above).any(axis=1) & (below <= above).any(axis=1)
        if not has_both_sides.any():
            return None, 1
        n_separated = np.minimum(below, above).sum(axis=1)
        position = int(np.where(has_both_sides, n_separated, np.inf).argmin())
        is_below, goes_below = subset.is_below(position), below[position] > above[position]
        trees, n_leaves = [], 0
        for side in (True, False):
            # Points that are separated from the majority of their rule do not influence the child.
            mask = (is_below == side) & (goes_below[code] == side)
            tree, n = self._nearest_tree(subset.restrict(mask), code[mask])
            trees.append(tree)
            n_leaves += n
        return (int(subset.cuts[position]), *trees), n_leaves

    def _loss_of(self, tree: _Tree) -> float:
        """Return the loss of a tree."""
        subsets = self._leaf_subsets(tree, self.all_points)
        return math.fsum(self._subproblem(subset).upper[1] for subset in subsets)

    def _leaf_subsets(self, tree: _Tree, subset: _Subset) -> list[_Subset]:
        """Return the points of each nonempty leaf."""
        if tree is None or not len(subset.index):
            return [subset] if len(subset.index) else []
        cut, left, right = tree
        column = int(np.searchsorted(self.columns.first_cuts, cut, side="right")) - 1
        level = cut - self.columns.first_cuts[column]
        first_level = self.columns.n_levels[:column].sum()
        below = self.all_points.levels[subset.index, column] <= first_level + level
        children = [
            _Subset(
                subset.index[mask], subset.levels[mask], subset.cut_of_level, subset.column_of_level
            )
            for mask in (below, ~below)
        ]
        return self._leaf_subsets(left, children[0]) + self._leaf_subsets(right, children[1])

    def leaf_stats(self, tree: _Tree) -> np.ndarray:
        """Return the sums of the statistics of each leaf."""
        subsets = self._leaf_subsets(tree, self.all_points)
        return np.array([self.loss.stats[subset.index].sum(axis=0) for subset in subsets])

    def minimize(self, loss: Any, n_leaves: int, limit: float) -> tuple[float, _Tree]:
        """Find a tree that minimizes another loss.

        Parameters
        ----------
        loss : Misclassification
            Loss of the same points.
        n_leaves : int
            Largest number of leaves.
        limit : float
            Lower bound at which the search stops.

        Returns
        -------
        tuple
            Lower bound, and the best tree found.
        """
        self.loss, self._cache, self.is_stopped = loss, {}, False
        if self._boxes is None:
            self._boxes = _BoxTable(self.columns, self.all_points, self.loss.stats)
        if self._boxes.is_small:
            self.n_nodes += 1
            self._check_limits()
            return self._boxes.minimize(loss, n_leaves)
        self._set_tolerance()
        root = self._subproblem(self.all_points)
        if n_leaves > 1 and len(self.all_points.cut_levels):
            self._solve(root, self.all_points, n_leaves, limit, is_root=True)
        return float(root.lower[n_leaves]), root.trees[n_leaves]


def _first_splits(fitted: Any, n_leaves: int, first_cuts: np.ndarray) -> _Tree:
    """Return the tree after the first splits of a best-first tree of scikit-learn.

    Children are numbered when their parent is split, so the first nodes form the smaller tree.
    """

    def convert(index: int) -> _Tree:
        left, right = fitted.children_left[index], fitted.children_right[index]
        if left < 0 or left > 2 * n_leaves - 2:
            return None
        cut = int(first_cuts[fitted.feature[index]] + math.floor(fitted.threshold[index]))
        return cut, convert(left), convert(right)

    return convert(0)


class _BoxTable:
    """Dynamic programming over all possible boxes of leaves, for few cuts.

    Parameters
    ----------
    columns : CutColumns
        The cuts.
    points : _Subset
        All points.
    stats : ndarray of shape (n_points, n_statistics)
        Statistics that are summed over the points of a leaf.
    """

    def __init__(self, columns: CutColumns, points: _Subset, stats: np.ndarray) -> None:
        n_levels = columns.n_levels.tolist()
        #: Per column the ranges of levels (first, last) that a box can have.
        ranges = [[(a, b) for a in range(n) for b in range(a, n)] for n in n_levels]
        n_ranges = [len(column_ranges) for column_ranges in ranges]
        n_boxes = math.prod(n_ranges)
        n_splits = sum(
            n_boxes // n * sum(b - a for a, b in column_ranges)
            for n, column_ranges in zip(n_ranges, ranges, strict=True)
        )
        #: Whether the table is small enough to be used.
        self.is_small = 0 < n_splits <= _MAX_BOX_SPLITS
        if not self.is_small:
            return
        first_level = np.cumsum([0, *n_levels[:-1]])
        sums = np.zeros((*n_levels, stats.shape[1]))
        np.add.at(sums, tuple((points.levels - first_level).T), stats)
        box_numbers = np.arange(n_boxes).reshape(n_ranges)
        splits = []
        for j, column_ranges in enumerate(ranges):
            inside = np.array(
                [[a <= level <= b for level in range(n_levels[j])] for a, b in column_ranges]
            )
            sums = np.moveaxis(np.tensordot(inside.astype(float), sums, (1, j)), 0, j)
            position = {levels: i for i, levels in enumerate(column_ranges)}
            for a, b in column_ranges:
                for cut in range(a, b):
                    parts = (a, b), (a, cut), (cut + 1, b)
                    boxes = [box_numbers.take(position[part], j).ravel() for part in parts]
                    cut_number = np.full_like(boxes[0], columns.first_cuts[j] + cut)
                    splits.append(np.stack([*boxes, cut_number]))
        self._sums = sums.reshape(n_boxes, -1)
        split = np.concatenate(splits, axis=1)
        self._box, self._left, self._right, self._cut = split[:, split[0].argsort(kind="stable")]
        self._divisible, self._starts = np.unique(self._box, return_index=True)
        full_ranges = zip(ranges, n_levels, strict=True)
        self._root = int(box_numbers[tuple(r.index((0, n - 1)) for r, n in full_ranges)])

    def minimize(self, loss: Any, n_leaves: int) -> tuple[float, _Tree]:
        """Return the smallest loss of trees with at most this number of leaves, and the tree."""
        costs = [loss.loss_of_sums(self._sums)]
        for size in range(2, n_leaves + 1):
            best = costs[-1].copy()
            split_costs = self._split_costs(costs, size, slice(None))[0]
            boxes = self._divisible
            best[boxes] = np.minimum(best[boxes], np.minimum.reduceat(split_costs, self._starts))
            costs.append(best)
        return float(costs[-1][self._root]), self._build_tree(costs, self._root, n_leaves)

    def _split_costs(
        self, costs: list[np.ndarray], n_leaves: int, splits: slice
    ) -> tuple[Any, Any]:
        """Return the smallest cost of each split, and the number of leaves of its left child."""
        totals = np.stack(
            [
                costs[n_left - 1][self._left[splits]]
                + costs[n_leaves - n_left - 1][self._right[splits]]
                for n_left in range(1, n_leaves)
            ]
        )
        return totals.min(axis=0), totals.argmin(axis=0) + 1

    def _build_tree(self, costs: list[np.ndarray], box: int, n_leaves: int) -> _Tree:
        """Reconstruct an optimal tree of a box from the table of costs."""
        while n_leaves > 1 and costs[n_leaves - 2][box] <= costs[n_leaves - 1][box]:
            n_leaves -= 1
        if n_leaves == 1:
            return None
        splits = self._candidate_splits(box)
        split_costs, n_left_leaves = self._split_costs(costs, n_leaves, splits)
        best = int(split_costs.argmin())
        n_left = int(n_left_leaves[best])
        left = self._build_tree(costs, int(self._left[splits][best]), n_left)
        right = self._build_tree(costs, int(self._right[splits][best]), n_leaves - n_left)
        return int(self._cut[splits][best]), left, right

    def _candidate_splits(self, box: int) -> slice:
        """Return the splits of a box."""
        position = int(np.searchsorted(self._divisible, box))
        ends = np.append(self._starts, len(self._box))
        return slice(int(ends[position]), int(ends[position + 1]))


# --- conversion to rules ---


class TreeConverter:
    """Conversion of trees of cuts to rules, and computation of their loss.

    Parameters
    ----------
    columns : CutColumns
        The cuts.
    rows : TrainingRows
        The rows.
    """

    def __init__(self, columns: CutColumns, rows: TrainingRows) -> None:
        self._columns, self._rows = columns, rows

    def _leaves(
        self, tree: _Tree, rows: np.ndarray, path: list[Condition]
    ) -> list[tuple[list[Condition], np.ndarray]]:
        """Return the path and the rows of each leaf."""
        if tree is None:
            return [(path, rows)]
        cut, left, right = tree
        condition, negation = self._columns.pair(cut)
        holds = self._rows.table.holds(condition, rows)
        if holds.all() or not holds.any():
            return self._leaves(left if holds.all() else right, rows, path)
        return self._leaves(left, rows[holds], [*path, condition]) + self._leaves(
            right, rows[~holds], [*path, negation]
        )

    def loss_of(self, tree: _Tree) -> float:
        """Return the loss of a tree on all rows."""
        leaves = self._leaves(tree, np.arange(len(self._rows.target)), [])
        return math.fsum(self._rows.fit_constant(rows)[1] for _, rows in leaves)

    def rules(self, tree: _Tree, leaf_classes: Sequence[int] | None = None) -> RuleSet:
        """Return the leaves of a tree as rules.

        Parameters
        ----------
        tree : tree of cuts
            The tree.
        leaf_classes : sequence of int, optional
            Class index of each leaf; by default, each output has the smallest loss on its rows.

        Returns
        -------
        RuleSet
            The rules.
        """
        all_rows = np.arange(len(self._rows.target))
        rules = []
        for i, (path, rows) in enumerate(self._leaves(tree, all_rows, [])):
            output, _, statistics = self._rows.fit_constant(rows)
            if leaf_classes is not None and self._rows.classes is not None:
                output = self._rows.classes[leaf_classes[i]]
            rules.append(Rule(tuple(path), output, statistics))
        return RuleSet(
            rules,
            self._rows.table.names,
            task=self._rows.task,
            classes=self._rows.classes,
            ordered=False,
            disjoint=True,
            fallback=Fallback(self._rows.fit_constant(all_rows)[0]),
        )
