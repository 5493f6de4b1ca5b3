"""Optimal trees: the least loss of decision trees of at most so many leaves, between bounds.

Branch and bound over (rows, leaves), as in the papers below: the root splits the rows, both sides
are the same problem with fewer rows and leaves. A bound of a side comes from rows that no cut tells
apart, from classes that too few leaves cannot name, and from the sides of neighboring cuts: a tree
is no worse on fewer rows, and every further row costs it no more than its own weight.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from skescore._validation import (
    check_choice,
    check_instance,
    check_integer,
    check_number,
    check_squares,
    finite_numbers,
    label_order,
    python_value,
    row_weights,
    whole_labels,
)
from skescore.metrics._prediction import centered, mean_of
from skescore.optimal._cuts import Cuts, candidate_cuts
from skescore.optimal._frontier import LOSSES, MOST_RULES, Frontier, check_targets
from skescore.rules import (
    Condition,
    Fallback,
    Interval,
    RowTable,
    Rule,
    RuleSet,
    RuleStatistics,
    truth_table,
)

#: Up to so many cuts, and so many products, all pairs of cuts are counted at once.
_PAIRED_CUTS = 1500
_PAIRED_PRODUCTS = 4e10
#: Most entries of a table that is made at once.
BLOCK = 4_000_000
#: Up to so many splits of boxes, all of them are looked at.
_SPLITS = 20_000
#: Most sets of rows whose bounds are remembered.
_REMEMBERED = 300_000
#: A tree is None (a leaf) or (cut, tree where it holds, tree where it does not).
_Tree = Any


def optimal_trees(
    X: Any,
    y: Any,
    *,
    loss: str = "errors",
    max_rules: int = 4,
    cuts: Cuts | int | None = 16,
    classes: Sequence[Any] | None = None,
    sample_weight: Any = None,
    start: Sequence[RuleSet] = (),
    targets: Sequence[float] | None = None,
    feature_names: Sequence[str] | None = None,
    time_limit: float | None = None,
    max_nodes: int | None = None,
) -> Frontier:
    """Find the least loss of decision trees of at most 1, 2, 3, ... leaves.

    A leaf concludes one class or one number. Where time ends, the bounds are what was proven until
    then.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows; NaN or None for missing values, which go to either side of a split.
    y : array-like of shape (n_rows,)
        What trees should conclude: labels, or numbers.
    loss : {"errors", "squared_error", "absolute_error"}, default="errors"
        What is summed over the rows: 1 for a wrong label, or how far a number is off.
    max_rules : int, default=4
        Most leaves, up to 10,000.
    cuts : Cuts, int or None, default=16
        Where features may be split; a number is passed to :func:`candidate_cuts`, None cuts between
        any two neighboring values.
    classes : sequence, optional
        The labels, in the order of the rules' class counts; by default the sorted ones of y.
    sample_weight : array-like of shape (n_rows,), optional
        How much each row counts.
    start : sequence of RuleSet, default=()
        Rules to begin with: trees are never worse than the leaves of one that the space holds. Of
        others the nearest tree is taken, unless it has more leaves.
    targets : sequence of float, optional
        Lower bounds that are enough, for 1, 2, ... leaves: no more is proven of trees of that size,
        unless their least loss is smaller. By default the least loss is looked for.
    feature_names : sequence of str, optional
        Names of the features; by default those of a frame.
    time_limit : float, optional
        Seconds after which the bounds found so far are returned; None for none. Each size has half
        of the time that is left, and what others did not need.
    max_nodes : int, optional
        The same with a number of sets of rows, so that the result does not depend on the machine.

    Returns
    -------
    Frontier
        For each number of leaves a proven lower bound, and the best tree found. Interrupted from
        the keyboard, what was proven until then.

    Raises
    ------
    ValueError, TypeError
        If the rows or a parameter cannot be used.

    Notes
    -----
    One process searches. Parts of the search, such as the columns of the first cut, would not be
    faster side by side: most of what is proven in one of them, of sets of rows that many cuts have
    in common and of neighboring cuts, is what spares the others their work.

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
    >>> from skescore.optimal import optimal_trees
    >>> X, y = load_iris(return_X_y=True)
    >>> frontier = optimal_trees(X, y, cuts=None)
    >>> frontier.upper.tolist(), frontier.status
    ([100.0, 50.0, 6.0, 3.0], ('optimal', 'optimal', 'optimal', 'optimal'))
    """
    began = time.monotonic()
    check_integer("max_rules", max_rules, 1, MOST_RULES)
    check_choice("loss", loss, LOSSES)
    check_number("time_limit", time_limit, 0, optional=True)
    check_integer("max_nodes", max_nodes, 1, optional=True)
    enough = check_targets(targets, max_rules)
    if not (cuts is None or isinstance(cuts, Cuts)):
        cuts = check_integer("cuts", cuts, 1)
    if feature_names is None:
        columns = getattr(X, "columns", None)
        n_features = np.shape(X)[1]
        feature_names = (
            [f"x{j}" for j in range(n_features)] if columns is None else [str(c) for c in columns]
        )
    table = RowTable.of(X, feature_names)
    if len(table) == 0:
        raise ValueError("X must hold at least one row, got 0 rows.")
    if not isinstance(cuts, Cuts):
        cuts = candidate_cuts(X, cuts)
    target = whole_labels("y", y) if loss == "errors" else finite_numbers("y", y)
    if target.shape != (len(table),):
        raise ValueError(
            f"y must hold one value for each of the {len(table)} rows, got shape {target.shape}."
        )
    weights = (
        np.ones(len(table)) if sample_weight is None else row_weights(sample_weight, len(table))
    )
    labels: tuple[Any, ...] | None = None
    if loss == "errors":
        found = {python_value(value) for value in target.tolist()}
        labels = tuple(sorted(found, key=label_order)) if classes is None else tuple(classes)
        index = {label: i for i, label in enumerate(labels)}
        if not found <= set(index):
            unknown = sorted(found - set(index), key=label_order)[0]
            raise ValueError(f"classes must hold all labels of y, but it lacks {unknown!r}.")
        target = np.array([index[python_value(value)] for value in target.tolist()], dtype=np.intp)
    else:
        check_squares("y", target)
    families = Families(cuts, table)
    search = TreeSearch(
        families, target, weights, loss, labels, max_rules, began, time_limit, max_nodes
    )
    with threadpool_limits(1):  # products of small matrices gain nothing from threads
        lower, upper, trees = search.run(enough, [_matched(rules, table) for rules in start])
    makes = RuleMaker(families, table, target, weights, loss, labels, feature_names)
    rules = [makes.rules(tree) for tree in trees]
    losses = np.array([makes.loss_of(tree) for tree in trees])
    if (np.abs(losses - upper) > 10 * search.tolerance).any():
        raise RuntimeError(
            f"The trees' losses {losses.tolist()} are not those of the search, {upper.tolist()}: "
            "this is a fault of skescore, please report it."
        )
    upper = np.minimum.accumulate(losses)
    done = lower >= upper - 10 * search.tolerance
    lower = np.where(done, upper, np.minimum(search.proven(lower), upper))
    lower = np.maximum.accumulate(lower[::-1])[::-1]  # more leaves are no worse
    ended = np.where(lower >= enough - 10 * search.tolerance, "target", search.ended)
    return Frontier(
        "tree",
        loss,
        tuple(range(1, max_rules + 1)),
        lower,
        upper,
        tuple(rules),
        float(weights.sum()),
        {"cuts": cuts.to_json()},
        tuple(np.where(lower == upper, "optimal", ended).tolist()),
        time.monotonic() - began,
    )


def _matched(rules: RuleSet, table: RowTable) -> np.ndarray:
    """The first rule that holds for each row; as many as there are rules where none does."""
    check_instance("start", rules, RuleSet)
    table = RowTable.of(table, rules.feature_names)
    result = np.full(len(table), len(rules))
    for place, rule in reversed(list(enumerate(rules))):
        held = np.ones(len(table), dtype=bool)
        for condition in rule.conditions:
            held &= table.holds(condition)
        result[held] = place
    return result


# --- the table as the search sees it -------------------------------------------------------------


class Families:
    """Cuts as families: the cuts of one column are nested, each holds where the one before does.

    A number that some rows lack is two columns, with the gaps below all cuts and above them.
    A value of a category is a column of one cut.

    Parameters
    ----------
    cuts : Cuts
        Where features are cut.
    table : RowTable
        The rows.
    """

    def __init__(self, cuts: Cuts, table: RowTable) -> None:
        families: dict[tuple[Any, ...], list[tuple[Condition, Condition]]] = {}
        for condition, negation in cuts.pairs():
            feature = condition.features[0]
            if isinstance(condition, Interval):
                key: tuple[Any, ...] = (feature, truth_table(condition).missing)
            else:
                key = (feature, condition)
            families.setdefault(key, []).append((condition, negation))
        #: Each cut as its condition and its negation, the columns one after the other.
        self.pairs: list[tuple[Condition, Condition]] = []
        columns, codes, seen = [], [], set()
        for key, pairs in families.items():
            if len(key) == 2 and isinstance(key[1], bool):
                values = table.column(key[0])
                bounds = np.array([pair[0].upper for pair in pairs])  # type: ignore[union-attr]
                numbers = np.array(
                    [math.nan if v is None else v for v in values.tolist()], dtype=float
                )
                code = np.searchsorted(bounds, numbers, side="left")
                code[np.isnan(numbers)] = 0 if key[1] else len(bounds)
            else:
                code = (~table.holds(pairs[0][0])).astype(np.intp)
            used = np.unique(code)
            if len(used) < 2:
                continue
            identity = np.searchsorted(used, code).astype(np.int64)
            if identity.tobytes() in seen:
                continue
            seen.add(identity.tobytes())
            kept = [pairs[level] for level in used[:-1]]
            columns.append(len(kept))
            codes.append(identity)
            self.pairs += kept
        self.n_levels = np.array([n + 1 for n in columns], dtype=np.int64)
        self.codes = np.column_stack(codes) if codes else np.zeros((len(table), 0), dtype=np.int64)
        #: Where a column's cuts begin among all.
        self.first = np.concatenate([[0], np.cumsum(columns)]).astype(np.int64)


@dataclass
class _Rows:
    """Some rows, with the cuts that part them.

    Parameters
    ----------
    index : ndarray of int32
        Which points they are.
    levels : ndarray of int64, shape (n_points, n_columns)
        Their levels, counted through all columns.
    cut_of_level : ndarray of int64
        The cut above each level; -1 above the last of a column.
    column_of_level : ndarray of int64
        The column of each level.
    """

    index: np.ndarray
    levels: np.ndarray
    cut_of_level: np.ndarray
    column_of_level: np.ndarray
    at: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        #: Levels with a cut above them; all arrays "per cut" are in this order.
        self.at = np.flatnonzero(self.cut_of_level >= 0)

    @property
    def cuts(self) -> np.ndarray:
        return self.cut_of_level[self.at]

    @property
    def columns(self) -> np.ndarray:
        return self.column_of_level[self.at]

    def sums(self, values: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """Sums of the values of the points, or of some, below each cut, (n_cuts, n_values)."""
        levels = self.levels if mask is None else self.levels[mask]
        flat, n_columns, n_levels = levels.ravel(), levels.shape[1], len(self.cut_of_level)
        first = np.searchsorted(self.column_of_level, self.columns)
        result = np.empty((len(self.at), values.shape[1]))
        for k in range(values.shape[1]):
            counts = np.bincount(flat, np.repeat(values[:, k], n_columns), minlength=n_levels)
            total = np.concatenate([[0.0], np.cumsum(counts)])
            result[:, k] = total[self.at + 1] - total[first]
        return result

    def holds(self, position: int) -> np.ndarray:
        """Whether the points are below one of the cuts."""
        level = self.at[position]
        return np.asarray(self.levels[:, self.column_of_level[level]] <= level)

    def part(self, mask: np.ndarray) -> _Rows:
        """Some of the rows, with the cuts that part those."""
        levels = self.levels[mask]
        n_levels = len(self.cut_of_level)
        present = np.zeros(n_levels, dtype=bool)
        present[levels.ravel()] = True
        used = np.flatnonzero(present)
        columns = self.column_of_level[used]
        last = np.append(columns[1:] != columns[:-1], True)
        alone = np.bincount(columns, minlength=levels.shape[1]) < 2
        cut_of_level = np.where(last, -1, self.cut_of_level[used])
        if alone.any():
            levels = levels[:, ~alone]
            present[used[alone[columns]]] = False
            keep = ~alone[columns]
            cut_of_level = cut_of_level[keep]
            columns = (np.cumsum(~alone) - 1)[columns[keep]]
        return _Rows(self.index[mask], (np.cumsum(present) - 1)[levels], cut_of_level, columns)

    def below(self, dtype: Any) -> np.ndarray:
        """RowTable of points by cuts: 1 below the cut."""
        return (self.levels[:, self.columns] <= self.at).astype(dtype)


# --- losses --------------------------------------------------------------------------------------


class RowErrors:
    """Weight of the rows whose class is not the leaf's."""

    def __init__(self, counts: np.ndarray) -> None:
        self.stats = counts
        self.heaviest = counts.sum(axis=1)  # what a point costs a tree at most
        self.equal = self.heaviest - counts.max(axis=1, initial=0.0)  # and at least
        exact = bool((counts == np.floor(counts)).all())
        self.whole = exact and counts.sum() < 2**50
        self._dtype = np.float32 if exact and counts.sum() < 2**24 else np.float64

    def of_sums(self, sums: np.ndarray) -> np.ndarray:
        """The loss of leaves by the sums of their points' statistics."""
        return np.asarray(sums.sum(axis=-1) - sums.max(axis=-1, initial=0.0))

    def least(self, sums: np.ndarray, most: int) -> np.ndarray:
        """What no trees of 2, 3, ... leaves can be better than: they name no more classes."""
        rest = np.cumsum(np.sort(sums, axis=-1), axis=-1)  # of the rarest classes
        n_others = sums.shape[-1] - np.arange(2, most + 1)
        return np.where(n_others > 0, rest[..., n_others.clip(1) - 1], 0.0)

    def split_sides(self, rows: _Rows, sums: np.ndarray, total: np.ndarray) -> tuple[Any, ...]:
        """The least loss of both sides of every cut with two leaves each, and the cuts of it."""
        below, stats = rows.below(self._dtype), self.stats[rows.index]
        weight = sums.sum(axis=1)
        results: list[Any] = []
        n_cuts = len(weight)
        left, right = np.empty(n_cuts), np.empty(n_cuts)
        left_at, right_at = np.empty(n_cuts, dtype=np.intp), np.empty(n_cuts, dtype=np.intp)
        step = max(1, BLOCK // max(1, n_cuts))
        used = [k for k in range(stats.shape[1]) if total[k] > 0]
        sides = sums.astype(self._dtype), total.astype(self._dtype)
        weighted = {k: below * stats[:, k, None].astype(self._dtype) for k in used}
        for begin in range(0, n_cuts, step):
            some = slice(begin, begin + step)
            best: list[Any] = [None] * 4
            for k in used:
                both = below[:, some].T @ weighted[k]
                one, other = sides[0][some, k, None], sides[0][None, :, k]
                neither = other - both  # below the second cut alone
                quarters = both, one - both, neither, (sides[1][k] - one) - neither
                for i, quarter in enumerate(quarters):
                    if best[i] is None:
                        best[i] = quarter
                    else:
                        np.maximum(best[i], quarter, out=best[i])
            for kept, at, pair in ((left, left_at, best[:2]), (right, right_at, best[2:])):
                named = pair[0] + pair[1]
                at[some] = named.argmax(axis=1)
                kept[some] = named[np.arange(len(named)), at[some]]
        results = [weight - left, total.sum() - weight - right, left_at, right_at]
        return tuple(results)


class _Squares:
    """Weighted squared distance from the leaf's mean."""

    whole = False

    def __init__(self, y: np.ndarray, weights: np.ndarray, group: np.ndarray) -> None:
        n_points = int(group.max()) + 1
        y = centered(y, weights if weights.any() else None)
        low, high = y.min(), y.max()

        def sums(values: np.ndarray) -> np.ndarray:
            return np.bincount(group, values, minlength=n_points)

        self.stats = np.column_stack([sums(weights), sums(weights * y), sums(weights * y * y)])
        self.heaviest = np.maximum(sums(weights * (y - low) ** 2), sums(weights * (y - high) ** 2))
        self.equal = self.of_sums(self.stats)

    def of_sums(self, sums: np.ndarray) -> np.ndarray:
        weight, first, second = np.moveaxis(sums, -1, 0)
        return np.asarray(np.maximum(second - _squared_over(first, weight), 0.0))

    def least(self, sums: np.ndarray, most: int) -> np.ndarray:
        return np.zeros((*sums.shape[:-1], most - 1))

    def split_sides(self, rows: _Rows, sums: np.ndarray, total: np.ndarray) -> tuple[Any, ...]:
        below, stats = rows.below(float), self.stats[rows.index]
        n_cuts = len(sums)
        left, right = np.empty(n_cuts), np.empty(n_cuts)
        left_at, right_at = np.empty(n_cuts, dtype=np.intp), np.empty(n_cuts, dtype=np.intp)
        step = max(1, BLOCK // max(1, n_cuts))
        weighted = [below * stats[:, k, None] for k in (0, 1)]
        for begin in range(0, n_cuts, step):
            some = slice(begin, begin + step)
            w, f = (below[:, some].T @ values for values in weighted)
            w_one, f_one = sums[some, 0, None], sums[some, 1, None]
            w_other, f_other = sums[None, :, 0] - w, sums[None, :, 1] - f
            inside = _squared_over(f, w) + _squared_over(f_one - f, w_one - w)
            outside = _squared_over(f_other, w_other) + _squared_over(
                total[1] - f_one - f_other, total[0] - w_one - w_other
            )
            for kept, at, gain in ((left, left_at, inside), (right, right_at, outside)):
                at[some] = gain.argmax(axis=1)
                kept[some] = gain[np.arange(len(gain)), at[some]]
        second = sums[:, 2]
        left, right = np.maximum(second - left, 0), np.maximum(total[2] - second - right, 0)
        return left, right, left_at, right_at


def _squared_over(first: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """first² / weight; 0 where the weight is no more than rounding."""
    least = 1e-12 * max(1e-300, float(np.max(weight, initial=0.0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(weight > least, first * first / weight, 0.0)


class _Absolute:
    """Weighted distance from the leaf's median. Points are rows, by increasing number."""

    whole = False

    def __init__(self, y: np.ndarray, weights: np.ndarray, group: np.ndarray) -> None:
        y = y - np.median(y)
        self.y, self.weights = y, weights
        self.heaviest = weights * np.maximum(y - y.min(), y.max() - y)
        self.equal = np.zeros(len(y))
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(group[order]) != 0))
        for part in np.split(order, starts[1:]):
            self.equal[part[0]] = self._cost(y[part], weights[part])
        self.stats = weights[:, None]

    @staticmethod
    def _cost(y: np.ndarray, weights: np.ndarray) -> float:
        if not weights.any():
            return 0.0
        total = np.cumsum(weights)
        middle = y[np.searchsorted(total, total[-1] / 2)]
        return float((weights * np.abs(y - middle)).sum())

    def of_rows(self, index: np.ndarray) -> float:
        """The loss of one leaf."""
        return self._cost(self.y[index], self.weights[index])

    def of_sides(self, rows: _Rows) -> tuple[np.ndarray, np.ndarray]:
        """The loss of both sides of every cut with a leaf each."""
        y, weights = self.y[rows.index], self.weights[rows.index]
        n_cuts = len(rows.at)
        sides = np.empty((2, n_cuts))
        step = max(1, BLOCK // max(1, len(y)))
        columns = rows.columns
        for begin in range(0, n_cuts, step):
            some = slice(begin, begin + step)
            below = rows.levels[:, columns[some]] <= rows.at[some]
            for side, mask in enumerate((below, ~below)):
                counted = mask * weights[:, None]
                total = np.cumsum(counted, axis=0)
                at = (total < total[-1] / 2).sum(axis=0).clip(0, len(y) - 1)
                moment = np.cumsum(counted * y[:, None], axis=0)
                across = np.arange(counted.shape[1])
                under, first = total[at, across], moment[at, across]
                cost = y[at] * (2 * under - total[-1]) + moment[-1] - 2 * first
                sides[side, some] = np.maximum(cost, 0.0)
        return sides[0], sides[1]

    def least(self, sums: np.ndarray, most: int) -> np.ndarray:
        return np.zeros((*sums.shape[:-1], most - 1))


# --- the search ----------------------------------------------------------------------------------


class _Node:
    """What is known of a set of rows: bounds and best trees by leaves; place 0 is not used."""

    __slots__ = ("lower", "sides", "trees", "upper")

    def __init__(self, max_rules: int, loss: float, least: list[float]) -> None:
        self.lower = [math.inf, loss, *(min(low, loss) for low in least)]
        self.upper = [math.inf] + [loss] * max_rules
        self.trees: list[_Tree] = [None] * (max_rules + 1)
        self.sides: _Sides | None = None

    def found(self, leaves: int, loss: float, tree: _Tree) -> None:
        """A tree of at most so many leaves."""
        for size in range(leaves, len(self.upper)):
            if loss < self.upper[size]:
                self.upper[size], self.trees[size] = loss, tree

    def proven(self, leaves: int, bound: float) -> None:
        """No tree of at most so many leaves is better."""
        for size in range(2, leaves + 1):
            self.lower[size] = max(self.lower[size], min(bound, self.upper[size]))


class _Sides:
    """Bounds of both sides of every cut: arrays (side, leaves, cut).

    Parameters
    ----------
    search : TreeSearch
        The search.
    node : _Node
        What is known of the rows.
    rows : _Rows
        The rows.
    above : pair of _Sides and _Rows, optional
        The same of the rows that these are a part of.
    """

    def __init__(
        self, search: TreeSearch, node: _Node, rows: _Rows, above: tuple[_Sides, _Rows] | None
    ) -> None:
        loss, size = search.loss, search.max_rules
        index = rows.index
        additive = [loss.stats[index], loss.equal[index, None], loss.heaviest[index, None]]
        sums = rows.sums(np.hstack(additive))
        n_stats = additive[0].shape[1]
        stats = sums[:, :n_stats]
        self.sums, self.total = stats, additive[0].sum(axis=0)
        self.reach = sums[:, -1]
        equal, all_equal = sums[:, n_stats], float(additive[1].sum())
        n_cuts = len(rows.at)
        self.lower = np.zeros((2, size, n_cuts))
        for side in (0, 1):
            counted = stats if side == 0 else self.total - stats
            same = equal if side == 0 else all_equal - equal
            if size > 2:
                self.lower[side, 2:] = np.maximum(same[:, None], loss.least(counted, size - 1)).T
        if isinstance(loss, _Absolute):
            self.lower[0, 1], self.lower[1, 1] = loss.of_sides(rows)
        else:
            self.lower[0, 1] = loss.of_sums(stats)
            self.lower[1, 1] = loss.of_sums(self.total - stats)
        self.all_reach = float(additive[2].sum())
        # A part is at most so much better than the whole as the rest of its rows can cost.
        reach = np.stack([self.reach, self.all_reach - self.reach])
        for leaves in range(2, size):
            whole = self.lower[:, leaves]
            np.maximum(whole, node.lower[leaves] - (self.all_reach - reach), out=whole)
        if above is not None:
            wider, wider_rows = above
            at = np.searchsorted(wider_rows.cuts, rows.cuts)
            wider_reach = np.stack([wider.reach[at], wider.all_reach - wider.reach[at]])
            inherited = wider.lower[:, 2:, at] - (wider_reach - reach)[:, None]
            np.maximum(self.lower[:, 2:], inherited, out=self.lower[:, 2:])
        self.lower[:, 2:] = np.clip(self.lower[:, 2:], 0, self.lower[:, 1:2])
        columns = rows.columns
        self.begin = np.searchsorted(columns, columns, side="left")
        self.end = np.searchsorted(columns, columns, side="right")
        self.second: tuple[np.ndarray, np.ndarray] | None = None

    def bound_all(self, leaves: int, value: float, shared: np.ndarray, whole: float) -> None:
        """Some rows have at least this loss; `shared` is their reach below each cut."""
        for side, common in enumerate((shared, whole - shared)):
            lower = self.lower[side, leaves]
            np.maximum(lower, value - (whole - common), out=lower)

    def bound(self, side: int, leaves: int, at: int, value: float) -> None:
        """One side of one cut has at least this loss, so those of its column have as well."""
        begin, end = self.begin[at], self.end[at]
        lower, reach = self.lower[side, leaves], self.reach
        before, after = slice(begin, at), slice(at, end)
        if side == 0:  # the sides after it hold more rows
            np.maximum(lower[after], value, out=lower[after])
            fewer = value - (reach[at] - reach[before])
            np.maximum(lower[before], fewer, out=lower[before])
        else:
            after = slice(at + 1, end)
            upto = slice(begin, at + 1)
            np.maximum(lower[upto], value, out=lower[upto])
            fewer = value - (reach[after] - reach[at])
            np.maximum(lower[after], fewer, out=lower[after])


class TreeSearch:
    """Branch and bound for trees of at most so many leaves."""

    def __init__(
        self,
        families: Families,
        target: np.ndarray,
        weights: np.ndarray,
        loss: str,
        labels: tuple[Any, ...] | None,
        max_rules: int,
        began: float,
        time_limit: float | None,
        max_nodes: int | None,
    ) -> None:
        self.max_rules = max_rules
        self.deadline = math.inf if time_limit is None else began + time_limit
        self.most_nodes = math.inf if max_nodes is None else max_nodes
        self.n_nodes = 0
        self.stopped = False
        self.ended = "time_limit"
        self.known: dict[bytes, _Node] = {}
        self._boxes: _Boxes | None = None
        self.families, self.target, self.weights = families, target, weights
        codes = families.codes
        if codes.shape[1]:
            points, first, group = np.unique(codes, axis=0, return_index=True, return_inverse=True)
            group = group.ravel()
        else:
            points, group = codes[:1], np.zeros(len(codes), dtype=np.intp)
            first = np.zeros(1, dtype=np.intp)
        self.loss: Any
        if loss == "errors":
            n_classes = len(labels or ())
            flat = np.bincount(
                group * n_classes + target, weights, minlength=len(points) * n_classes
            )
            self.loss = RowErrors(flat.reshape(len(points), n_classes))
        elif loss == "squared_error":
            self.loss = _Squares(target, weights, group)
        else:
            order = np.argsort(target, kind="stable")
            points, first = codes[order], order
            self.loss = _Absolute(target[order], weights[order], group[order])
        self._row_of_point = first
        self.scale = float(self.loss.heaviest.sum())
        # What rounding leaves of the errors of equal numbers.
        noise = 4 * sys.float_info.epsilon * float(np.abs(target).max(initial=0))
        powers = {"errors": 0.0, "squared_error": noise**2}
        noise = float(weights.sum()) * powers.get(loss, noise)
        self.tolerance = max(1e-9 * max(self.scale, 1e-300), noise)
        starts = np.concatenate([[0], np.cumsum(families.n_levels)]).astype(np.int64)
        cut_of_level = np.full(int(starts[-1]), -1, dtype=np.int64)
        column_of_level = np.repeat(np.arange(len(families.n_levels)), families.n_levels)
        has_cut = np.ones(len(cut_of_level), dtype=bool)
        has_cut[starts[1:] - 1] = False
        cut_of_level[has_cut] = np.arange(len(families.pairs))
        self.rows = _Rows(
            np.arange(len(points), dtype=np.int32),
            points + starts[:-1],
            cut_of_level,
            column_of_level,
        )

    def run(
        self, enough: np.ndarray, given: Sequence[np.ndarray] = ()
    ) -> tuple[np.ndarray, np.ndarray, list[_Tree]]:
        """Lower bounds, losses and trees by leaves, given the rule of each row of other rules."""
        root = self._node(self.rows)
        if len(self.rows.at):
            try:
                self._start(root)
                for rule_of_row in given:
                    found, n_leaves = self._nearest(self.rows, rule_of_row[self._row_of_point])
                    if n_leaves <= self.max_rules:
                        root.found(n_leaves, self._loss_of(found), found)
                end = self.deadline
                for share in (0.5, 1.0):
                    for leaves in range(2, self.max_rules + 1):
                        now = time.monotonic()
                        last = leaves == self.max_rules
                        self.deadline = end if last else now + (end - now) * share
                        self.stopped = False
                        self._solve(root, self.rows, leaves, enough[leaves - 1], keep=True)
            except KeyboardInterrupt:  # the bounds hold at any moment
                self.ended = "interrupted"
        else:
            root.lower = [math.inf] + [root.upper[1]] * self.max_rules
        lower = np.array(root.lower[1:])
        # What more leaves cannot do, fewer cannot.
        lower = np.maximum.accumulate(lower[::-1])[::-1]
        return lower, np.array(root.upper[1:]), root.trees[1:]

    def proven(self, lower: np.ndarray) -> np.ndarray:
        """Bounds with what rounding may have added taken off, or whole numbers."""
        if self.loss.whole:
            return np.ceil(lower - 1e-6) + 0.0
        return np.maximum(lower - self.tolerance, 0.0)

    def _stop(self) -> bool:
        if not self.stopped:
            if time.monotonic() >= self.deadline:
                self.stopped, self.ended = True, "time_limit"
            elif self.n_nodes >= self.most_nodes:
                self.stopped, self.ended = True, "node_limit"
        return self.stopped

    def _node(self, rows: _Rows) -> _Node:
        key = blake2b(rows.index.tobytes(), digest_size=16).digest()
        node = self.known.get(key)
        if node is None:
            self.n_nodes += 1
            loss = self.loss
            if isinstance(loss, _Absolute):
                cost = loss.of_rows(rows.index)
                sums = loss.stats[rows.index].sum(axis=0)
            else:
                sums = loss.stats[rows.index].sum(axis=0)
                cost = float(loss.of_sums(sums))
            equal = float(loss.equal[rows.index].sum())
            least = np.maximum(equal, loss.least(sums, self.max_rules)).tolist()
            if not len(rows.at):  # nothing parts them
                least = [cost] * len(least)
            node = _Node(self.max_rules, cost, least)
            if len(self.known) < _REMEMBERED:
                self.known[key] = node
        return node

    def _solve(
        self,
        node: _Node,
        rows: _Rows,
        leaves: int,
        limit: float,
        above: tuple[_Sides, _Rows] | None = None,
        *,
        keep: bool = False,
    ) -> None:
        """Raise the lower bound to the least loss, or to the limit, unless time is over."""

        def finished() -> bool:
            return node.lower[leaves] >= min(limit, node.upper[leaves]) - self.tolerance

        if finished() or (self._stop() and node.sides is None and not keep):
            return
        sides = node.sides or _Sides(self, node, rows, above)
        if keep:
            node.sides = sides
        while True:
            totals = [
                sides.lower[0, left] + sides.lower[1, leaves - left] for left in range(1, leaves)
            ]
            places = [int(total.argmin()) for total in totals]
            values = [float(total[at]) for total, at in zip(totals, places, strict=True)]
            chosen = int(np.argmin(values))
            left, at, value = chosen + 1, places[chosen], values[chosen]
            if leaves == 2:
                cut = int(rows.cuts[at])
                node.found(2, value, (cut, None, None))
                node.proven(2, value)
                return
            node.proven(leaves, value)
            if finished() or self._stop():
                return
            if sides.second is None and self._count_pairs(node, rows, sides):
                continue
            self._examine(node, rows, sides, leaves, left, at, limit)

    def _examine(
        self, node: _Node, rows: _Rows, sides: _Sides, leaves: int, left: int, at: int, limit: float
    ) -> None:
        """Make the bounds of one cut better, or find a tree with it."""
        wanted = (left, leaves - left)
        holds = None
        trees: list[_Tree] = [None, None]
        costs = [0.0, 0.0]
        for side in (0, 1) if left >= leaves - left else (1, 0):
            size, other = wanted[side], wanted[1 - side]
            if size == 1:
                costs[side] = float(sides.lower[side, 1, at])
                continue
            if size == 2 and sides.second is not None:
                costs[side] = float(sides.lower[side, 2, at])
                trees[side] = (int(rows.cuts[sides.second[side][at]]), None, None)
                continue
            if holds is None:
                holds = rows.holds(at)
            mask = holds if side == 0 else ~holds
            if size == 2 and not isinstance(self.loss, _Absolute):
                costs[side], trees[side] = self._two_leaves(rows, mask)
                sides.bound(side, 2, at, costs[side])
                continue
            part = rows.part(mask)
            child = self._node(part)
            spare = min(limit, node.upper[leaves]) - float(sides.lower[1 - side, other, at])
            self._solve(child, part, size, spare, (sides, rows))
            sides.bound(side, size, at, child.lower[size])
            if size > 2:
                reach = np.where(mask, self.loss.heaviest[rows.index], 0.0)
                shared = rows.sums(reach[:, None])[:, 0]
                sides.bound_all(size, child.lower[size], shared, float(reach.sum()))
            costs[side], trees[side] = child.upper[size], child.trees[size]
        node.found(leaves, sum(costs), (int(rows.cuts[at]), *trees))

    def _two_leaves(self, rows: _Rows, mask: np.ndarray) -> tuple[float, _Tree]:
        """The least loss of some of the rows with two leaves, and the tree."""
        self.n_nodes += 1
        stats = self.loss.stats[rows.index[mask]]
        sums, total = rows.sums(stats, mask), stats.sum(axis=0)
        costs = self.loss.of_sums(sums) + self.loss.of_sums(total - sums)
        at = int(costs.argmin())
        return float(costs[at]), (int(rows.cuts[at]), None, None)

    def _count_pairs(self, node: _Node, rows: _Rows, sides: _Sides) -> bool:
        """Solve both sides of every cut with two leaves, where counting all pairs is cheap."""
        n_cuts = len(rows.at)
        products = float(n_cuts) ** 2 * len(rows.index) * self.loss.stats.shape[1]
        if isinstance(self.loss, _Absolute) or n_cuts > _PAIRED_CUTS or products > _PAIRED_PRODUCTS:
            return False
        left, right, *second = self.loss.split_sides(rows, sides.sums, sides.total)
        sides.second = (second[0], second[1])
        for side, costs in ((0, left), (1, right)):
            costs = np.clip(costs, 0, sides.lower[side, 1])
            sides.lower[side, 2] = costs
        for one in (0, 1):
            total = sides.lower[one, 2] + sides.lower[1 - one, 1]
            at = int(total.argmin())
            inner = (int(rows.cuts[second[one][at]]), None, None)
            trees: list[_Tree] = [None, None]
            trees[one] = inner
            node.found(3, float(total[at]), (int(rows.cuts[at]), *trees))
        total = sides.lower[0, 1] + sides.lower[1, 1]
        at = int(total.argmin())
        node.found(2, float(total[at]), (int(rows.cuts[at]), None, None))
        return True

    def _start(self, root: _Node) -> None:
        """Trees of scikit-learn, to compare with from the beginning."""
        codes, first = self.families.codes.astype(np.float32), self.families.first
        classification = isinstance(self.loss, RowErrors)
        kind: Any = DecisionTreeClassifier if classification else DecisionTreeRegressor
        if not self.weights.any():
            return
        for leaves in range(3, self.max_rules + 1):
            if time.monotonic() >= self.deadline:
                return
            for criterion in ("gini", "entropy") if classification else ("squared_error",):
                grown = kind(max_leaf_nodes=leaves, criterion=criterion, random_state=0)
                tree = grown.fit(codes, self.target, self.weights).tree_

                def shape(at: int, tree: Any = tree) -> _Tree:
                    if tree.children_left[at] < 0:
                        return None
                    cut = int(first[tree.feature[at]] + math.floor(tree.threshold[at]))
                    return cut, shape(tree.children_left[at]), shape(tree.children_right[at])

                found = shape(0)
                root.found(leaves, self._loss_of(found), found)

    def _nearest(self, rows: _Rows, rule: np.ndarray) -> tuple[_Tree, int]:
        """A tree that parts rows by their rule, and its number of leaves.

        The cut at the root leaves the fewest rows of a rule on the other side than the rest of it,
        and some rule on either side; so it is one that no rule is on both sides of, if there is.
        """
        known, code = np.unique(rule, return_inverse=True)
        if len(known) < 2 or not len(rows.at):
            return None, 1
        below = rows.sums(np.eye(len(known))[code])
        above = np.bincount(code, minlength=len(known)) - below
        parted = (below > above).any(axis=1) & (below <= above).any(axis=1)
        if not parted.any():
            return None, 1
        at = int(np.where(parted, np.minimum(below, above).sum(axis=1), np.inf).argmin())
        holds, mostly = rows.holds(at), below[at] > above[at]
        trees, n_leaves = [], 0
        for side in (True, False):
            # Rows of a rule that is on the other side belong to none here.
            mask = (holds == side) & (mostly[code] == side)
            tree, n = self._nearest(rows.part(mask), code[mask])
            trees.append(tree)
            n_leaves += n
        return (int(rows.cuts[at]), *trees), n_leaves

    def _loss_of(self, tree: _Tree) -> float:
        return math.fsum(self._node(rows).upper[1] for rows in self._parted(tree, self.rows))

    def _parted(self, tree: _Tree, rows: _Rows) -> list[_Rows]:
        """The rows of each leaf, but for those without any."""
        if tree is None or not len(rows.index):
            return [rows] if len(rows.index) else []
        cut, left, right = tree
        column = int(np.searchsorted(self.families.first, cut, side="right")) - 1
        level = cut - self.families.first[column]
        starts = self.families.n_levels[:column].sum()
        holds = self.rows.levels[rows.index, column] <= starts + level
        parts = [
            _Rows(rows.index[mask], rows.levels[mask], rows.cut_of_level, rows.column_of_level)
            for mask in (holds, ~holds)
        ]
        return self._parted(left, parts[0]) + self._parted(right, parts[1])

    def leaves(self, tree: _Tree) -> np.ndarray:
        """The sums of the statistics of each leaf's rows."""
        parts = self._parted(tree, self.rows)
        return np.array([self.loss.stats[rows.index].sum(axis=0) for rows in parts])

    def least(self, loss: Any, leaves: int, limit: float) -> tuple[float, _Tree]:
        """Search anew with another loss.

        Parameters
        ----------
        loss : RowErrors
            Of the same points.
        leaves : int
            Most leaves.
        limit : float
            A lower bound that is enough.

        Returns
        -------
        tuple of float and tree
            A lower bound, and the best tree found.
        """
        self.loss, self.known, self.stopped = loss, {}, False
        if self._boxes is None:
            self._boxes = _Boxes(self.families, self.rows, self.loss.stats)
        if self._boxes.few:
            self.n_nodes += 1
            self._stop()
            return self._boxes.least(loss, leaves)
        self.scale = float(loss.heaviest.sum())
        self.tolerance = 1e-9 * max(self.scale, 1e-300)
        root = self._node(self.rows)
        if leaves > 1 and len(self.rows.at):
            self._solve(root, self.rows, leaves, limit, keep=True)
        return float(root.lower[leaves]), root.trees[leaves]


class _Boxes:
    """All sets of rows that trees of few cuts can have in a leaf, and the best trees of them all.

    Parameters
    ----------
    families : Families
        The cuts.
    rows : _Rows
        All points.
    stats : ndarray of shape (n_points, n_statistics)
        What is summed over the points of a leaf.
    """

    def __init__(self, families: Families, rows: _Rows, stats: np.ndarray) -> None:
        levels = families.n_levels.tolist()
        #: Of each column, from which level to which a box can be.
        ranges = [[(a, b) for a in range(n) for b in range(a, n)] for n in levels]
        sizes = [len(some) for some in ranges]
        n_boxes = math.prod(sizes)
        n_splits = sum(
            n_boxes // size * sum(b - a for a, b in some)
            for size, some in zip(sizes, ranges, strict=True)
        )
        #: Whether there are few enough of them.
        self.few = 0 < n_splits <= _SPLITS
        if not self.few:
            return
        first_level = np.cumsum([0, *levels[:-1]])
        sums = np.zeros((*levels, stats.shape[1]))
        np.add.at(sums, tuple((rows.levels - first_level).T), stats)
        number = np.arange(n_boxes).reshape(sizes)
        splits = []
        for j, some in enumerate(ranges):
            inside = np.array([[a <= level <= b for level in range(levels[j])] for a, b in some])
            sums = np.moveaxis(np.tensordot(inside.astype(float), sums, (1, j)), 0, j)
            for a, b in some:
                for cut in range(a, b):
                    sides = (a, b), (a, cut), (cut + 1, b)
                    boxes = [number.take(some.index(side), j).ravel() for side in sides]
                    number_of_cut = np.full_like(boxes[0], families.first[j] + cut)
                    splits.append(np.stack([*boxes, number_of_cut]))
        self._sums = sums.reshape(n_boxes, -1)
        split = np.concatenate(splits, axis=1)
        self._box, self._left, self._right, self._cut = split[:, split[0].argsort(kind="stable")]
        self._parted, self._starts = np.unique(self._box, return_index=True)
        self._everything = int(
            number[tuple(some.index((0, n - 1)) for some, n in zip(ranges, levels, strict=True))]
        )

    def least(self, loss: Any, leaves: int) -> tuple[float, _Tree]:
        """The least loss of trees of at most so many leaves, and the tree."""
        costs = [loss.of_sums(self._sums)]
        for size in range(2, leaves + 1):
            best = costs[-1].copy()
            total = self._totals(costs, size, slice(None))[0]
            at = self._parted
            best[at] = np.minimum(best[at], np.minimum.reduceat(total, self._starts))
            costs.append(best)
        return float(costs[-1][self._everything]), self._tree(costs, self._everything, leaves)

    def _totals(self, costs: list[np.ndarray], size: int, some: slice) -> tuple[Any, Any]:
        """The least cost of splits with so many leaves, and how many of these are on the left."""
        totals = np.stack(
            [
                costs[left - 1][self._left[some]] + costs[size - left - 1][self._right[some]]
                for left in range(1, size)
            ]
        )
        return totals.min(axis=0), totals.argmin(axis=0) + 1

    def _tree(self, costs: list[np.ndarray], box: int, leaves: int) -> _Tree:
        while leaves > 1 and costs[leaves - 2][box] <= costs[leaves - 1][box]:
            leaves -= 1
        if leaves == 1:
            return None
        at = int(np.searchsorted(self._parted, box))
        ends = np.append(self._starts, len(self._box))
        some = slice(int(ends[at]), int(ends[at + 1]))
        totals, left = self._totals(costs, leaves, some)
        k = int(totals.argmin())
        sides = self._left[some][k], self._right[some][k]
        sizes = int(left[k]), leaves - int(left[k])
        below, above = (
            self._tree(costs, int(side), size) for side, size in zip(sides, sizes, strict=True)
        )
        return int(self._cut[some][k]), below, above


# --- rules ---------------------------------------------------------------------------------------


class RuleMaker:
    """Turns trees of cuts into rules, and measures them on the rows themselves."""

    def __init__(
        self,
        families: Families,
        table: RowTable,
        target: np.ndarray,
        weights: np.ndarray,
        loss: str,
        labels: tuple[Any, ...] | None,
        feature_names: Sequence[str],
    ) -> None:
        self._pairs, self._table = families.pairs, table
        self._target, self._weights, self._loss = target, weights, loss
        self._labels, self._names = labels, feature_names

    def _leaves(self, tree: _Tree, rows: np.ndarray, path: list[Condition]) -> list[Any]:
        if tree is None:
            return [(path, rows)]
        cut, left, right = tree
        condition, negation = self._pairs[cut]
        holds = self._table.holds(condition, rows)
        if holds.all() or not holds.any():
            return self._leaves(left if holds.all() else right, rows, path)
        return self._leaves(left, rows[holds], [*path, condition]) + self._leaves(
            right, rows[~holds], [*path, negation]
        )

    def _conclusion(self, rows: np.ndarray) -> tuple[Any, float, RuleStatistics]:
        """What a leaf says, its loss, and what it has seen."""
        y, w = self._target[rows], self._weights[rows]
        total = float(w.sum())
        if self._labels is not None:
            counts = np.bincount(y, w, minlength=len(self._labels))
            best = int(counts.argmax())
            loss = float(np.delete(counts, best).sum())  # never below 0, as a difference may be
            return self._labels[best], loss, RuleStatistics(total, tuple(counts.tolist()))
        used = w if total > 0 else np.ones_like(w)
        mean = mean_of(y, used)
        spread = math.sqrt(float(np.average((y - mean) ** 2, weights=used)))
        value = mean
        if self._loss == "absolute_error":
            order = np.argsort(y, kind="stable")
            sums = np.cumsum(used[order])
            value = float(y[order][np.searchsorted(sums, sums[-1] / 2)])
        off = np.abs(y - value)
        loss = float((w * (off if self._loss == "absolute_error" else off**2)).sum())
        return value, loss, RuleStatistics(total, mean=mean, standard_deviation=spread)

    def loss_of(self, tree: _Tree) -> float:
        """The loss of a tree on all rows."""
        everything = np.arange(len(self._target))
        leaves = self._leaves(tree, everything, [])
        return math.fsum(self._conclusion(rows)[1] for _, rows in leaves)

    def rules(self, tree: _Tree, conclusions: Sequence[int] | None = None) -> RuleSet:
        """The leaves of a tree as rules, with the best conclusions or with those classes."""
        everything = np.arange(len(self._target))
        rules = []
        for place, (path, rows) in enumerate(self._leaves(tree, everything, [])):
            output, _, statistics = self._conclusion(rows)
            if conclusions is not None and self._labels is not None:
                output = self._labels[conclusions[place]]
            rules.append(Rule(path, output, statistics))
        output = self._conclusion(everything)[0]
        return RuleSet(
            rules,
            self._names,
            task="regression" if self._labels is None else "classification",
            classes=self._labels,
            ordered=False,
            disjoint=True,
            fallback=Fallback(output),
        )
