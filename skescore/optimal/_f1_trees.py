"""The best weighted F1 of decision trees of at most so many leaves, bounded from above.

The weighted F1 is no sum over leaves, as the false alarms of one leaf make the hits of another one
with the same class worth less. But between two limits of how many rows each class is predicted for,
sums over leaves bound it, for which the search of optimal trees finds the best tree. Limits are
parted where that is too wide.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from skescore._validation import (
    check_integer,
    check_number,
    label_order,
    python_value,
    row_weights,
    whole_labels,
)
from skescore.optimal._cuts import Cuts, candidate_cuts
from skescore.optimal._trees import BLOCK, Families, RowErrors, RuleMaker, TreeSearch
from skescore.rules import RowTable, RuleSet

#: How often prices of rows beyond the limits are made better, before limits are parted.
_PRICES = 5
#: What single precision may change, relative to the largest loss.
_ROUNDING = 2e-6


@dataclass(frozen=True, eq=False)
class F1Bound:
    """How large the weighted F1 of decision trees of at most so many leaves can be.

    Parameters
    ----------
    size : int
        The most leaves.
    most : float
        No such tree has a greater weighted F1.
    found : float
        That of the best tree found; 0 if there is none.
    rules : RuleSet or None
        Its leaves.
    proof : mapping
        What was proven, part by part, in plain JSON values: ``"classes"``, ``"enough"`` and
        ``"parts"``. A part is parted by how many rows a class is predicted for (``"class"``,
        ``"at"``: at most so many, at least so many; ``"parts"``), or it has ``"prices"`` of the
        rows predicted for each class, and classes for which a ``"linear"`` bound was taken.
    seconds : float
        How long the search took.
    """

    size: int
    most: float
    found: float
    rules: RuleSet | None
    proof: dict[str, Any]
    seconds: float


def most_f1_of_trees(
    X: Any,
    y: Any,
    size: int,
    *,
    enough: float = 0.0,
    cuts: Cuts | int | None = 16,
    classes: Sequence[Any] | None = None,
    sample_weight: Any = None,
    feature_names: Sequence[str] | None = None,
    time_limit: float | None = None,
    max_nodes: int | None = None,
) -> F1Bound:
    r"""Bound the weighted F1 of decision trees of at most so many leaves.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows; NaN or None for missing values, which go to either side of a split.
    y : array-like of shape (n_rows,)
        Labels.
    size : int
        Most leaves, at least 1.
    enough : float, default=0.0
        A bound that is small enough: the search ends where it is proven, or where a tree is found
        that is better. With 0 it ends with the first tree.
    cuts : Cuts, int or None, default=16
        Where features may be split; a number is passed to :func:`candidate_cuts`, None cuts between
        any two neighboring values.
    classes : sequence, optional
        The labels, in the order of the rules' class counts; by default the sorted ones of y.
    sample_weight : array-like of shape (n_rows,), optional
        How much each row counts.
    feature_names : sequence of str, optional
        Names of the features; by default those of a frame.
    time_limit : float, optional
        Seconds after which the bound is what was proven until then; None for none.
    max_nodes : int, optional
        The same with a number of sets of rows, so that the result does not depend on the machine.

    Returns
    -------
    F1Bound
        The bound, and the best tree found.

    Raises
    ------
    ValueError, TypeError
        If the rows or a parameter cannot be used.

    Notes
    -----
    Let class k have the weight :math:`n_k` of all W, let :math:`q_k` be predicted to be of it and
    :math:`t_k` of these rightly, so that :math:`W F / 2 = \sum_k n_k t_k / (n_k + q_k)`. Where
    :math:`l_k \leq q_k \leq u_k`, a term is at most

    - the sum over its leaves of :math:`n_k c_k / (n_k + \max(s, l_k))`, where a leaf of weight s
      has the weight :math:`c_k` of that class, which is all there is to it if a class has one leaf;
    - and at most :math:`n_k t_k / (n_k + u_k) + n_k m_k (u_k - q_k) / (n_k + u_k)`, where no
      :math:`t_k / (n_k + q_k)` is more than :math:`m_k`, which is at most 1/2 as :math:`t_k` is at
      most :math:`n_k` and :math:`q_k`.

    Both are sums over leaves, as are prices of the rows that exceed a limit, by Lagrange. The
    largest sum is found by the search of :func:`optimal_trees`, whose bounds hold for it: a row
    more adds between 0 and a constant to the weight of a leaf less what it earns. Rows of one class
    earn at most :math:`n_k c_k / (n_k + c_k)`, so that few leaves cannot earn much where classes
    are many. Where F > f, each class has an F1 of at least :math:`1 - W (1 - f) / n_k`, which gives
    limits to begin with.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skescore.optimal import most_f1_of_trees
    >>> X, y = load_iris(return_X_y=True)
    >>> bound = most_f1_of_trees(X, y, 3, enough=0.97)
    >>> bound.most, round(bound.found, 4)
    (0.97, 0.9599)
    """
    began = time.monotonic()
    check_integer("size", size, 1)
    check_number("enough", enough, 0)
    check_number("time_limit", time_limit, 0, optional=True)
    check_integer("max_nodes", max_nodes, 1, optional=True)
    if not (cuts is None or isinstance(cuts, Cuts)):
        cuts = check_integer("cuts", cuts, 1)
    columns = getattr(X, "columns", None)
    if feature_names is None:
        feature_names = (
            [f"x{j}" for j in range(np.shape(X)[1])]
            if columns is None
            else [str(c) for c in columns]
        )
    table = RowTable.of(X, feature_names)
    target = whole_labels("y", y)
    if len(table) == 0 or target.shape != (len(table),):
        raise ValueError(
            f"y must hold one label for each of the rows, at least one, got shape {target.shape} "
            f"for {len(table)} rows."
        )
    weights = row_weights(
        np.ones(len(table)) if sample_weight is None else sample_weight, len(table)
    )
    found = {python_value(value) for value in target.tolist()}
    labels = tuple(sorted(found, key=label_order)) if classes is None else tuple(classes)
    index = {label: i for i, label in enumerate(labels)}
    if not found <= set(index):
        unknown = sorted(found - set(index), key=label_order)[0]
        raise ValueError(f"classes must hold all labels of y, but it lacks {unknown!r}.")
    codes = np.array([index[python_value(value)] for value in target.tolist()], dtype=np.intp)
    families = Families(cuts if isinstance(cuts, Cuts) else candidate_cuts(X, cuts), table)
    search = TreeSearch(
        families, codes, weights, "errors", labels, max(2, size), began, time_limit, max_nodes
    )
    bounding = _Bounding(search, size, enough)
    with threadpool_limits(1):
        most, parts = bounding.run()
    rules = None
    if bounding.found > 0:
        makes = RuleMaker(families, table, codes, weights, "errors", labels, feature_names)
        rules = makes.rules(bounding.tree, bounding.conclusions)
    proof = {"classes": list(labels), "enough": enough, "parts": parts}
    seconds = time.monotonic() - began
    return F1Bound(size, most, bounding.found, rules, proof, seconds)


class _Earned(RowErrors):
    """The weight of the rows less what leaves earn, within limits of how much is predicted.

    Parameters
    ----------
    counts : ndarray of shape (n_points, n_classes)
        Weight of each class among rows alike.
    low, high : ndarray of shape (n_classes,)
        Between what limits each class is predicted.
    linear : ndarray of bool, shape (n_classes,)
        For which classes the linear bound is taken.
    prices : ndarray of shape (n_classes,)
        What a row beyond the upper limit costs; negative: a row short of the lower one.
    """

    whole = False

    def __init__(
        self,
        counts: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        linear: np.ndarray,
        prices: np.ndarray,
    ) -> None:
        self.stats = counts
        n = self._n = counts.sum(axis=0)
        self._low, self._linear = low, linear
        self._hit = np.divide(n, n + high, out=np.zeros_like(n), where=n > 0)  # where linear
        slope = _slope(n, low, high)
        row = np.where(linear, slope, 0.0) + prices
        #: What no tree has to pay, beside the weight of all rows.
        self.free = float(
            np.where(linear, slope * high, 0.0).sum()
            + np.where(prices > 0, prices * high, prices * low).sum()
            - row.min() * n.sum()
        )
        self._row = row - row.min()  # each row is predicted for one class: only differences count
        self.heaviest = counts.sum(axis=1) * (1.25 + float(self._row.max()))
        self.equal = self.of_sums(counts)
        exact = bool((counts == np.floor(counts)).all())
        self._dtype = np.float32 if exact and counts.sum() < 2**24 else np.float64
        self.rounding = _ROUNDING * float(self.heaviest.sum())

    def earned(self, sums: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """What leaves of that weight earn with each of the classes."""
        weight = weight[..., None]
        return self.earned_of(sums, np.maximum(weight, self._low), weight)

    def of_sums(self, sums: np.ndarray) -> np.ndarray:
        """The loss of leaves by the sums of their points' statistics."""
        weight = sums.sum(axis=-1)
        return np.asarray(weight - self.earned(sums, weight).max(axis=-1))

    def least(self, sums: np.ndarray, most: int) -> np.ndarray:
        """The same of 2, 3, ... leaves, from below.

        Each class earns no more than all its rows would by themselves, and one leaf has all rows of
        other classes, as what leaves earn is convex in these: beyond the lower limits.
        """
        weight = sums.sum(axis=-1)
        pure = np.maximum(self.earned_of(sums, np.maximum(sums, self._low), sums), 0.0)
        best = np.cumsum(-np.sort(-pure, axis=-1), axis=-1)
        largest = np.cumsum(-np.sort(-sums, axis=-1), axis=-1)
        n_classes = sums.shape[-1]
        chosen = np.minimum(np.arange(2, most + 1), n_classes) - 1
        free = np.where(self._linear, 0.0, np.maximum(self._low - sums, 0.0)).sum(axis=-1)
        others = np.maximum((weight - free)[..., None] - largest[..., chosen], 0.0)[..., None]
        some = sums[..., None, :]
        last = self.earned_of(some, np.maximum(some, self._low) + others, some + others)
        last = np.maximum(last.max(axis=-1, initial=0.0), 0.0)
        before = best[..., np.minimum(np.arange(1, most), n_classes) - 1]
        earned = np.minimum(best[..., chosen], before + last)
        return np.asarray(np.maximum(weight[..., None] - earned, 0.0))

    def earned_of(self, hits: np.ndarray, among: np.ndarray, taken: np.ndarray) -> np.ndarray:
        """What so many hits earn among so many predictions, with prices for those taken."""
        n = self._n
        curved = n * hits / np.maximum(n + among, 1e-300)
        return np.asarray(np.where(self._linear, self._hit * hits, curved) - self._row * taken)

    def _pairs_named(
        self, quarters: Sequence[np.ndarray], weights: Sequence[np.ndarray], k: int
    ) -> list[np.ndarray]:
        """What quarters earn with one class."""
        dtype = self._dtype
        earned = []
        for hits, weight in zip(quarters, weights, strict=True):
            if self._linear[k]:
                result = dtype(self._hit[k]) * hits
            else:
                result = np.maximum(weight, dtype(self._low[k]))
                result += dtype(self._n[k])
                np.divide(hits, result, out=result)
                result *= dtype(self._n[k])
            if self._row[k]:
                result -= dtype(self._row[k]) * weight
            earned.append(result)
        return earned

    def split_sides(self, rows: Any, sums: np.ndarray, total: np.ndarray) -> tuple[Any, ...]:
        """The least loss of both sides of every cut with two leaves each, and the cuts of it."""
        dtype = self._dtype
        below, stats = rows.below(dtype), self.stats[rows.index].astype(dtype)
        weight = sums.sum(axis=1)
        n_cuts = len(weight)
        named = np.empty((2, n_cuts))
        at = np.empty((2, n_cuts), dtype=np.intp)
        step = max(1, BLOCK // max(1, n_cuts))
        used = [k for k in range(stats.shape[1]) if total[k] > 0]
        columns = [*(stats[:, k] for k in used), stats.sum(axis=1)]
        one = [*(sums[:, k].astype(dtype) for k in used), weight.astype(dtype)]
        every = [*(dtype(total[k]) for k in used), dtype(total.sum())]
        weighted = [below * values[:, None] for values in columns]
        for begin in range(0, n_cuts, step):
            some = slice(begin, begin + step)

            def quarters(i: int, some: slice = some) -> tuple[np.ndarray, ...]:
                both = below[:, some].T @ weighted[i]
                first, second = one[i][some, None], one[i][None]
                neither = second - both
                return both, first - both, neither, (every[i] - first) - neither

            weights = quarters(len(used))
            best: list[np.ndarray] = []
            for i, k in enumerate(used):
                earned = self._pairs_named(quarters(i), weights, k)
                if not best:
                    best = earned
                for kept, other in zip(best, earned, strict=True):
                    np.maximum(kept, other, out=kept)
            for side in (0, 1):
                together = best[2 * side] + best[2 * side + 1]
                at[side, some] = together.argmax(axis=1)
                named[side, some] = together[np.arange(len(together)), at[side, some]]
        return weight - named[0], total.sum() - weight - named[1], at[0], at[1]


def _slope(n: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """What the linear bound gains by each row less that is predicted."""
    most = np.minimum(n, high) / np.maximum(n + low, 1e-300)
    return np.asarray(n * np.minimum(0.5, most) / np.maximum(n + high, 1e-300))


class _Limits:
    """Between what limits each class is predicted; both are tightened as all sum to the weight."""

    def __init__(self, low: np.ndarray, high: np.ndarray, total: float) -> None:
        for _ in range(3):
            low = np.maximum(low, total - (high.sum() - high))
            high = np.minimum(high, total - (low.sum() - low))
        self.low, self.high, self.total = low, high, total
        self.empty = bool((low > high + 1e-9 * total).any())

    def parted(self, k: int, most: float, least: float) -> tuple[_Limits, _Limits]:
        """At most, and at least, so much of a class."""
        low, high = self.low.copy(), self.high.copy()
        high[k], low[k] = most, least
        return _Limits(self.low, high, self.total), _Limits(low, self.high, self.total)


class _Bounding:
    """Branch and bound over limits of how much each class is predicted."""

    def __init__(self, search: TreeSearch, size: int, enough: float) -> None:
        self._search, self._size, self._enough = search, size, enough
        self._counts = search.loss.stats
        self._n = self._counts.sum(axis=0)
        self._total = float(self._n.sum())
        #: Whether predictions of a class are whole numbers.
        self._whole = bool((self._counts == np.floor(self._counts)).all())
        #: The best tree found, its weighted F1, and what its leaves conclude.
        self.found, self.tree, self.conclusions = 0.0, None, ()

    def run(self) -> tuple[float, dict[str, Any]]:
        """The bound and its proof."""
        n, total = self._n, self._total
        least = np.divide(total * (1 - self._enough), n, out=np.ones_like(n), where=n > 0)
        f = np.maximum(1 - least, 0.0)
        low = f * n / (2 - f)
        high = np.where(f > 0, n * (2 / np.where(f > 0, f, 1) - 1), total)
        parts: dict[str, Any] = {}
        first = _Limits(low, np.minimum(high, total), total)
        stack = [(first, 0.7 * n, n.copy(), np.zeros(len(n)), parts)]
        most = self._enough
        while stack:
            limits, hits, taken, prices, part = stack.pop()
            if limits.empty:
                continue
            bound, tree, prices = self._priced(limits, hits, taken, prices, part)
            if bound <= self._enough:
                continue
            if tree is None or self.found > self._enough:
                most = max(most, bound)
                continue
            hits, taken, k = self._widest(limits, tree, part)
            if k is None:
                most = max(most, bound)
                continue
            fewest, largest = float(limits.low[k]), float(limits.high[k])
            tenth = (largest - fewest) / 10
            at = min(max(float(taken[k]), fewest + tenth), largest - tenth)
            between = (math.floor(at), math.floor(at) + 1.0) if self._whole else (at, at)
            sides = limits.parted(k, *between)
            part.clear()
            part.update({"class": k, "at": list(between), "parts": [{}, {}]})
            for side, below in zip(sides, part["parts"], strict=True):
                stack.append((side, hits, np.clip(taken, side.low, side.high), prices, below))
        return min(most, 1.0), parts

    def _priced(
        self,
        limits: _Limits,
        hits: np.ndarray,
        taken: np.ndarray,
        prices: np.ndarray,
        part: dict[str, Any],
    ) -> tuple[float, Any, np.ndarray]:
        """Bound F1 within limits, the tree that the bound is of if time is not over, and prices."""
        linear = self._linear(limits, hits, taken)
        best: tuple[float, Any, np.ndarray] = (math.inf, None, prices)
        beyond, step = np.zeros(len(prices)), 1.0
        for _ in range(_PRICES):
            loss = _Earned(self._counts, limits.low, limits.high, linear, prices)
            target = self._total + loss.free - self._enough * self._total / 2 + loss.rounding
            low, tree = self._search.least(loss, self._size, target)
            bound = 2 * (self._total + loss.free - low + loss.rounding) / self._total
            self._try(loss, tree)
            if bound < best[0]:
                best = bound, tree, prices
                part.update({"linear": np.flatnonzero(linear).tolist(), "prices": prices.tolist()})
                predicted = self._predicted(loss, tree)[1]
                beyond = predicted - np.clip(predicted, limits.low, limits.high)
            else:
                step /= 3
            if bound <= self._enough or self.found > self._enough:
                return best
            if self._search.stopped:
                return best[0], None, best[2]
            if not beyond.any():
                return best
            over = (best[0] - self._enough) * self._total / 2
            prices = best[2] + beyond * over * step / (beyond**2).sum()
        return best

    def _linear(self, limits: _Limits, hits: np.ndarray, taken: np.ndarray) -> np.ndarray:
        """For which classes the linear bound is the lower one, for a tree known."""
        n, low, high = self._n, limits.low, limits.high
        one = hits / np.maximum(n + np.where(low > 0, low, taken), 1e-300)
        one, slope = n * one, _slope(n, low, high)
        other = n * hits / np.maximum(n + high, 1e-300) + slope * (high - taken)
        return np.asarray((other < one) & (high < self._total))

    def _predicted(self, loss: _Earned, tree: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Right and all predictions by class, and the leaves' classes."""
        counts = self._search.leaves(tree)
        named = loss.earned(counts, counts.sum(axis=1)).argmax(axis=1)
        return (*self._sums(counts, named), named)

    def _sums(self, counts: np.ndarray, named: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        hits, taken = np.zeros(len(self._n)), np.zeros(len(self._n))
        np.add.at(hits, named, counts[np.arange(len(named)), named])
        np.add.at(taken, named, counts.sum(axis=1))
        return hits, taken

    def _terms(self, hits: np.ndarray, taken: np.ndarray) -> np.ndarray:
        return np.asarray(self._n * hits / np.maximum(self._n + taken, 1e-300))

    def _try(self, loss: _Earned, tree: Any) -> None:
        """Remember a tree if it is better, with the classes that earn most or are most."""
        counts = self._search.leaves(tree)
        for named in (
            loss.earned(counts, counts.sum(axis=1)).argmax(axis=1),
            counts.argmax(axis=1),
        ):
            value = 2 * float(self._terms(*self._sums(counts, named)).sum()) / self._total
            if value > self.found:
                self.found, self.tree, self.conclusions = value, tree, tuple(named.tolist())

    def _widest(
        self, limits: _Limits, tree: Any, part: dict[str, Any]
    ) -> tuple[np.ndarray, np.ndarray, int | None]:
        """Predictions of a tree, and the class for which its bound is the farthest above."""
        linear = np.zeros(len(self._n), dtype=bool)
        linear[part["linear"]] = True
        prices = np.array(part["prices"])
        loss = _Earned(self._counts, limits.low, limits.high, linear, prices)
        hits, taken, named = self._predicted(loss, tree)
        bounded = np.zeros(len(self._n))
        low, high, n = limits.low, limits.high, self._n
        for counts, k in zip(self._search.leaves(tree), named.tolist(), strict=True):
            weight = n[k] + max(float(counts.sum()), low[k])
            bounded[k] += n[k] * counts[k] / (n[k] + high[k] if linear[k] else weight)
        slope = _slope(n, low, high)
        bounded += np.where(linear, slope * (high - taken), 0.0)
        above = bounded - self._terms(hits, taken)
        width = high - low
        inside = (
            (width >= (1 if self._whole else 1e-3 * n))
            & (low <= taken)
            & (taken <= high)
            & (above > 0)
        )
        if inside.any():
            return hits, taken, int(np.where(inside, above, -np.inf).argmax())
        k = int(width.argmax())
        wide = 1 if self._whole else 1e-3 * self._total
        return hits, taken, k if width[k] >= wide else None
