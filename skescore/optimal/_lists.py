"""Optimal decision lists: the fewest errors that an ordered list of so many rules can have.

Branch and bound over the first rule, then over the first rule of what is left, and so on. The last
two rules are never enumerated: the sums of all conjunctions of two tests over some rows come from
one matrix product, and the best conjunction from these.
"""

from __future__ import annotations

import copy
import math
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from skescore._deadline import check_deadline
from skescore._processes import parallel
from skescore._validation import (
    check_choice,
    check_instance,
    check_integer,
    check_number,
    check_squares,
    finite_numbers,
    python_value,
    row_weights,
    whole_labels,
)
from skescore.metrics._prediction import mean_of
from skescore.optimal._cuts import Cuts, Tests, candidate_cuts
from skescore.optimal._frontier import LOSSES, MOST_RULES, Frontier, check_targets
from skescore.rules import Condition, RowTable, Rule, RuleSet, RuleStatistics

#: Whole numbers up to this are exact in single precision.
_EXACT = 2**24


#: Of lists to be made longer, how many are kept at each length, among how many that are best at
#: once, and what share of the rows two must at least part otherwise.
_BEGUN, _LOOKED_AT, _ALIKE = 8, 100, 0.02
#: More than is needed is proven of what is left behind a premise, for the sake of similar ones.
_MARGIN = 0.05


class _Premises:
    """All conjunctions of some sides of tests, by number, and sums over their rows.

    Of tests ``t`` and two conditions, number ``(0, i, j)`` is ``t_i and t_j`` for i <= j (one test
    by itself for i = j), ``not t_i and not t_j`` for i > j; ``(1, i, j)`` is ``t_i and not t_j``
    (``not t_i`` by itself for i = j). Of three conditions the same follows for each test, and for
    the other side of it, with the tests after it.
    """

    def __init__(self, tests: np.ndarray, max_conditions: int, dtype: Any) -> None:
        self.table: np.ndarray = np.ascontiguousarray(tests, dtype=dtype)
        self.held = np.ascontiguousarray(tests.T, dtype=bool)
        self.max_conditions = max_conditions
        self.n_tests = m = tests.shape[1]
        #: Of each block of numbers: where it begins, its third condition, its first other test.
        self.blocks: list[tuple[int, tuple[tuple[int, bool], ...], int]] = [(0, (), 0)]
        self.size = 2 * m ** min(max_conditions, 2)
        if max_conditions == 3:
            for test in range(m - 1):
                for side in (True, False):
                    self.blocks.append((self.size, ((test, side),), test + 1))
                    self.size += 2 * (m - test - 1) ** 2
        self._begins = [begin for begin, *_ in self.blocks]
        self._below: Any = np.tri(m, k=-1, dtype=dtype) if max_conditions > 1 else None

    def sums(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Sum values of some rows over those that each premise holds for."""
        table = self.table[rows]
        if self.max_conditions == 1:
            inside = values @ table
            return np.concatenate([inside, values.sum() - inside])
        result = np.empty(self.size, dtype=table.dtype)
        for begin, third, first in self.blocks:
            some, among = values, table[:, first:]
            for test, side in third:
                kept = self.held[test][rows] == side
                some, among = values[kept], among[kept]
            self._pairs(among, some, result[begin : begin + 2 * among.shape[1] ** 2])
        return result

    def _pairs(self, table: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
        """The same of pairs of the columns of a table."""
        m, total = table.shape[1], values.sum()
        ones = len(values) == 0 or (values[0] == 1 and (values == 1).all())
        weighted = table if ones else table * values[:, None]
        first, second = out.reshape(2, m, m)
        np.matmul(weighted.T, table, out=first)
        diagonal = np.arange(m) * (m + 1)
        single = first.reshape(-1)[diagonal]
        np.subtract(single[:, None], first, out=second)
        second.reshape(-1)[diagonal] = total - single
        neither = total - single[:, None] - single
        neither *= self._below[:m, :m]
        first += neither

    def sides(self, number: int) -> list[tuple[int, bool]]:
        """The tests of a premise, each with the side that it takes."""
        if self.max_conditions == 1:
            block, i = divmod(number, self.n_tests)
            return [(i, block == 0)]
        begin, third, first = self.blocks[bisect_right(self._begins, number) - 1]
        m = self.n_tests - first
        block, at = divmod(number - begin, m**2)
        i, j = (first + test for test in divmod(at, m))
        if i == j:
            return [*third, (i, block == 0)]
        return [*third, *([(i, True), (j, False)] if block else [(i, i < j), (j, i < j)])]

    def holds(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Whether a premise holds for some rows."""
        result = np.ones(len(rows), dtype=bool)
        for test, side in self.sides(number):
            held = self.held[test][rows]
            result &= held if side else ~held
        return result


class _Pieces:
    """The loss of the pieces that each premise parts some rows into, and sums that it is of."""

    __slots__ = ("cap", "inside", "outside", "sums")

    def __init__(
        self,
        inside: np.ndarray,
        outside: np.ndarray,
        cap: np.ndarray,
        sums: Sequence[np.ndarray] = (),
    ) -> None:
        self.inside, self.outside, self.cap, self.sums = inside, outside, cap, sums


#: What is known of some more rows, and the others of these.
_Wider = tuple[_Pieces, np.ndarray]


class _Errors:
    """Weighted errors, over the least that rows alike must have.

    Parameters
    ----------
    counts : ndarray of shape (n_rows, n_classes)
        Weight of each class among rows alike.
    """

    def __init__(self, counts: np.ndarray) -> None:
        reduced = counts - counts.min(axis=1, keepdims=True)
        self.caps = reduced.max(axis=1)
        self.constant = float((counts.sum(axis=1) - counts.max(axis=1)).sum())
        total = counts.sum()
        self.exact = bool((counts == np.round(counts)).all()) and total < _EXACT
        self.dtype = np.float32 if self.exact else np.float64
        self._gains = reduced.astype(self.dtype)
        self._pure = bool(((reduced > 0).sum(axis=1) <= 1).all())
        self._class = reduced.argmax(axis=1)
        self.tolerance = 0.0 if self.exact else 1e-10 * max(float(total), 1e-300)

    def of(self, rows: np.ndarray) -> float:
        """The loss of the best constant."""
        return float(self.caps[rows].sum() - self._gains[rows].sum(axis=0, dtype=float).max())

    def pieces(self, premises: _Premises, rows: np.ndarray, wider: _Wider | None = None) -> _Pieces:
        """The loss where each premise holds, where not, and the most it could cost."""
        # Of whole numbers few rows can be taken off, where they are the fewer ones.
        less = self.exact and wider is not None and len(wider[1]) < len(rows)
        counted = wider[1] if less and wider is not None else rows
        kept: list[np.ndarray] = []
        cap: Any = None
        most: Any = None
        other: Any = None
        for k in range(self._gains.shape[1]):
            here = counted[self._class[counted] == k] if self._pure else counted
            sums = premises.sums(here, self._gains[here, k])
            if less and wider is not None:
                np.subtract(wider[0].sums[k], sums, out=sums)
            kept.append(sums)
            left = self._gains[rows, k].sum() - sums
            if cap is None:
                cap, most, other = sums.copy(), sums.copy(), left
            else:
                cap += sums
                np.maximum(most, sums, out=most)
                np.maximum(other, left, out=other)
        if not self._pure:
            cap = premises.sums(counted, self.caps[counted].astype(self.dtype))
            if less and wider is not None:
                np.subtract(wider[0].cap, cap, out=cap)
        total = self.caps[rows].sum().astype(self.dtype)
        np.subtract(cap, most, out=most)
        np.subtract(total - cap, other, out=other)
        return _Pieces(most, other, cap, kept)


class _Squared:
    """Weighted squared errors of a constant, over the least that rows alike must have."""

    exact = False
    dtype = np.float64

    def __init__(self, y: np.ndarray, weights: np.ndarray, groups: np.ndarray, n: int) -> None:
        self._w = np.bincount(groups, weights, n)
        mean = mean_of(y, weights)
        y = y - mean
        sums = np.bincount(groups, weights * y, n)
        means = sums / self._w
        self.constant = float((weights * (y - means[groups]) ** 2).sum())
        self._y = sums
        self._squares = sums * means
        low, high = means.min(), means.max()
        self.caps = self._w * np.maximum((means - low) ** 2, (high - means) ** 2)
        self.tolerance = 1e-10 * max(float((weights * y * y).sum()), 1e-300)

    def of(self, rows: np.ndarray) -> float:
        """The loss of the best constant."""
        if not len(rows):
            return 0.0
        total = float(self._y[rows].sum())
        return max(0.0, float(self._squares[rows].sum()) - total * total / self._w[rows].sum())

    def pieces(self, premises: _Premises, rows: np.ndarray, wider: _Wider | None = None) -> _Pieces:
        """The loss where each premise holds, where not, and the most it could cost."""
        w, y, squares = (premises.sums(rows, of[rows]) for of in (self._w, self._y, self._squares))
        inside = _squared(w, y, squares)
        outside = _squared(
            self._w[rows].sum() - w, self._y[rows].sum() - y, self._squares[rows].sum() - squares
        )
        return _Pieces(inside, outside, premises.sums(rows, self.caps[rows]))


def _squared(w: np.ndarray, y: np.ndarray, squares: np.ndarray) -> np.ndarray:
    some = w > 0
    means = np.divide(y, w, out=np.zeros_like(y), where=some)
    return np.where(some, np.maximum(squares - means * y, 0.0), 0.0)


class _Absolute:
    """Weighted absolute errors of a constant."""

    exact = False
    dtype = np.float64
    constant = 0.0

    def __init__(self, y: np.ndarray, weights: np.ndarray) -> None:
        self._y, self._w = y, weights
        self.caps = weights * np.maximum(y - y.min(), y.max() - y)
        self.tolerance = 1e-10 * max(float(self.caps.sum()), 1e-300)

    def of(self, rows: np.ndarray) -> float:
        """The loss of the best constant."""
        if not len(rows):
            return 0.0
        y, w = self._y[rows], self._w[rows]
        order = np.argsort(y, kind="stable")
        middle = np.searchsorted(np.cumsum(w[order]), w.sum() / 2)
        return float((w * np.abs(y - y[order[min(middle, len(y) - 1)]])).sum())

    def pieces(self, premises: _Premises, rows: np.ndarray, wider: _Wider | None = None) -> _Pieces:
        """The loss where each premise holds, where not, and the most it could cost."""
        y, w = self._y[rows], self._w[rows]
        inside: Any = None
        outside: Any = None
        for value in np.unique(y):
            costs = w * np.abs(y - value)
            sums = premises.sums(rows, costs)
            left = costs.sum() - sums
            inside = sums if inside is None else np.minimum(inside, sums, out=inside)
            outside = left if outside is None else np.minimum(outside, left, out=outside)
        cap = premises.sums(rows, self.caps[rows])
        if inside is None:
            return _Pieces(cap, cap, cap)
        return _Pieces(np.maximum(inside, 0.0), np.maximum(outside, 0.0), cap)


@dataclass
class _Node:
    """What is known of the best list for some rows."""

    lower: float
    upper: float
    premises: tuple[int, ...]
    #: The most that the rows of each premise could cost.
    cap: np.ndarray
    #: Lower bounds of the loss of what is left behind each premise; None where none were needed.
    rest: np.ndarray | None = None


class _Search:
    """Branch and bound for the rows of one table."""

    def __init__(self, premises: _Premises, loss: Any) -> None:
        self.premises, self.loss = premises, loss
        self.stopped: str | None = None
        #: On the clock of all processes.
        self.deadline = math.inf
        self.most_nodes = math.inf
        self.n_nodes = 0
        #: How many vectors of bounds each node may keep, and first rules tried side by side.
        self.most_kept, self.n_beside = 0, 1
        #: Processes that solve what is beside each other; None for this one.
        self.pool: Parallel | None = None
        useless = _useless(premises)
        self._barrier = np.where(useless, 4 * (float(loss.caps.sum()) + 1), 0.0).astype(loss.dtype)

    def pieces(self, rows: np.ndarray, wider: _Wider | None = None) -> _Pieces:
        """The pieces of some rows; premises that nobody needs cost more than anything."""
        self.n_nodes += 1
        found: _Pieces = self.loss.pieces(self.premises, rows, wider)
        found.inside += self._barrier
        return found

    def exhausted(self) -> bool:
        """Whether time or nodes are over."""
        check_deadline()
        if self.stopped is None:
            if self.n_nodes >= self.most_nodes:
                self.stopped = "node_limit"
            elif time.monotonic() >= self.deadline:
                self.stopped = "time_limit"
        return self.stopped is not None

    def solve(
        self,
        rows: np.ndarray,
        n_rules: int,
        target: float,
        hint: np.ndarray | None = None,
        known: float = 0.0,
        before: np.ndarray | None = None,
        wider: _Wider | None = None,
    ) -> _Node:
        """Find the least loss of a list of at most so many rules, if it is less than `target`.

        Whatever ends it, no list has less than the node's `lower`; if that is less than `target`
        and nothing stopped the search, it is the least loss.

        Parameters
        ----------
        rows : ndarray of int
            The rows.
        n_rules : int
            At least 2, the last one included, which always holds.
        target : float
            A lower bound of this much is enough.
        hint : ndarray, optional
            Lower bounds of the loss behind each premise.
        known : float, default=0.0
            A lower bound of the loss with one rule less.
        before : ndarray, optional
            Lower bounds of the loss behind each premise with one rule less.
        wider : tuple, optional
            The pieces of some more rows, and the others of these.
        """
        pieces = self.pieces(rows, wider)
        inside, cap = pieces.inside, pieces.cap
        pair = np.add(inside, pieces.outside, out=pieces.outside)
        at = int(pair.argmin())
        premises: tuple[int, ...] = ()
        best, two = self.loss.of(rows), float(pair[at])
        if two < best:
            best, premises = two, (at,)
        tolerance = self.loss.tolerance
        if n_rules == 2 or best <= tolerance:
            return _Node(best, best, premises, cap)
        # Behind a premise is at least what there is in all, but for its rows.
        lower = np.subtract(max(known, best) if n_rules == 3 else known, cap, out=pair)
        np.maximum(lower, 0.0, out=lower)
        if hint is not None:
            np.maximum(lower, hint, out=lower)
        lower += inside
        kept = _Kept(self.most_kept if n_rules > 3 else 0, len(lower), lower.dtype)
        try:
            while not self.exhausted():
                bound = min(best, target)
                beyond = _MARGIN * bound if n_rules > 3 else 0.0
                if self.loss.exact:  # no part of a whole number is needed
                    beyond = math.floor(beyond)
                tried = self._next(rows, lower, cap, bound - tolerance, n_rules)
                if not tried:
                    break
                held = [self.premises.holds(a, rows) for a in tried]
                asked = [
                    (
                        rows[~some],
                        n_rules - 1,
                        bound + beyond - float(inside[a]),
                        kept.behind(a),
                        0.0 if before is None else float(before[a]),
                        None,
                        None if self.pool is not None else (pieces, rows[some]),
                    )
                    for a, some in zip(tried, held, strict=True)
                ]
                for a, child in zip(tried, self._children(asked), strict=True):
                    price = float(inside[a])
                    if price + child.upper < best:
                        best, premises = price + child.upper, (a, *child.premises)
                    lower[a] = max(lower[a], price + child.lower)
                    # Rows that a premise leaves behind, but this one does not, cost their cap at
                    # most, so that the loss behind it is no more than that below this one's.
                    shift = np.subtract(inside, child.cap)
                    shift += child.lower
                    np.maximum(lower, shift, out=lower)
                    kept.add(a, child)
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        bound = min(best, float(lower.min()))
        return _Node(bound, best, premises, cap, np.subtract(lower, inside, out=lower))

    def _next(
        self, rows: np.ndarray, lower: np.ndarray, cap: np.ndarray, bound: float, n_rules: int
    ) -> list[int]:
        """First rules to try: of the least bound, those of most rows, but no two much alike.

        Before the last two rules, behind others, that of most rows: all have to be tried or bounded
        there, and what is found of large premises bounds more of the others.
        """
        if n_rules == 3 and len(rows) < len(self.premises.table):
            wide = np.where(lower < bound, cap, -1)
            a = int(wide.argmax())
            return [a] if wide[a] >= 0 else []
        tried: list[int] = []
        open_: np.ndarray = lower
        beside = self.n_beside if n_rules > 3 else 1
        while True:
            low = open_.min()
            if low >= bound:
                return tried
            ties = np.flatnonzero(open_ == low)
            a = int(ties[cap[ties].argmax()])
            tried.append(a)
            if len(tried) == beside:
                return tried
            left = rows[~self.premises.holds(a, rows)]
            apart = self.premises.sums(left, self.loss.caps[left].astype(cap.dtype))
            open_ = np.where(apart <= cap / 4, np.inf, open_)

    def _children(self, asked: list[tuple[Any, ...]]) -> list[_Node]:
        if len(asked) == 1 and self.n_beside == 1:
            return [self.solve(*asked[0])]
        searches = []
        for _ in asked:
            search = copy.copy(self)
            search.n_nodes, search.n_beside, search.pool = 0, 1, None
            searches.append(search)
        if self.pool is None or len(asked) == 1:
            found: list[tuple[_Node, int, str | None]] = []
            for search, given in zip(searches, asked, strict=True):
                if found and found[-1][2] == "interrupted":
                    search.stopped = "interrupted"
                found.append(_solved(search, given))
        else:
            jobs = zip(searches, asked, strict=True)
            found = self.pool(delayed(_solved_alone)(*job) for job in jobs)
        for _, n_nodes, stopped in found:
            self.n_nodes += n_nodes
            self.stopped = self.stopped or stopped
        return [node for node, *_ in found]

    # --- good lists, without a proof ---

    def loss_of(self, rows: np.ndarray, premises: Sequence[int]) -> float:
        """The loss of a list, whose last rule is added."""
        return sum(self.loss.of(piece) for _, piece in self.walk(rows, premises))

    def walk(
        self, rows: np.ndarray, premises: Sequence[int]
    ) -> Iterator[tuple[int | None, np.ndarray]]:
        """Give each premise with the rows that it takes, and at last those left."""
        for a in premises:
            held = self.premises.holds(a, rows)
            yield a, rows[held]
            rows = rows[~held]
        yield None, rows

    def insert(self, rows: np.ndarray, premises: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        """Put the best further rule at the best place of a list."""
        taken = [piece for _, piece in self.walk(rows, premises)]
        ahead = np.cumsum([0.0] + [self.loss.of(piece) for piece in taken])
        best, result = math.inf, premises
        behind: Any = 0.0
        for place in reversed(range(len(taken))):
            later, reached = taken[place], np.concatenate(taken[place:])
            if len(later):
                behind = behind + self.pieces(later).outside
            total = self.pieces(reached).inside
            total += behind
            a = int(total.argmin())
            if ahead[place] + float(total[a]) <= best:
                best = float(ahead[place]) + float(total[a])
                result = (*premises[:place], a, *premises[place:])
        return best, result

    def grow(self, rows: np.ndarray, max_rules: int) -> list[tuple[int, ...]]:
        """Good lists of 2, 3, ... rules: a few of each length are made longer.

        Of premises that part the rows nearly alike only the best is taken.
        """
        grown: list[tuple[int, ...]] = []
        begun: list[tuple[float, tuple[int, ...], np.ndarray]] = [(0.0, (), rows)]
        while len(grown) + 1 < max_rules and not self.exhausted():
            longer = []
            for ahead, premises, left in begun:
                found = self.pieces(left)
                total = ahead + found.inside
                total += found.outside
                first = np.argsort(total, kind="stable")[:_LOOKED_AT]
                longer += [
                    (float(total[a]), ahead + float(found.inside[a]), (*premises, int(a)), left)
                    for a in first
                ]
            longer.sort(key=lambda one: one[:3])
            grown.append(longer[0][2])
            begun, sets = [], np.zeros((0, len(self.premises.table)), dtype=bool)
            for _, ahead, premises, before in longer:
                rest = before[~self.premises.holds(premises[-1], before)]
                held = np.zeros(sets.shape[1], dtype=bool)
                held[rest] = True
                if ((sets != held).sum(axis=1) > _ALIKE * len(rows)).all() and len(rest):
                    begun.append((ahead, premises, rest))
                    sets = np.vstack([sets, held])
                    if len(begun) == _BEGUN:
                        break
            if not begun:
                break
        return grown

    def improve(self, rows: np.ndarray, premises: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        """Exchange one rule of a list at a time, as long as that makes it better."""
        best = self.loss_of(rows, premises)
        again = True
        while again and not self.exhausted():
            again = False
            for i in range(len(premises)):
                found = self.insert(rows, premises[:i] + premises[i + 1 :])
                if found[0] < best - self.loss.tolerance:
                    best, premises = found
                    again = True
                    break
        return best, premises

    def nearest(self, rows: np.ndarray, held: np.ndarray) -> int:
        """The premise that holds for nearly the same rows as given."""
        dtype = self.loss.dtype
        inner, outer = rows[held], rows[~held]
        apart = self.premises.sums(outer, self.loss.caps[outer].astype(dtype))
        apart -= self.premises.sums(inner, self.loss.caps[inner].astype(dtype))
        return int((apart + self._barrier).argmin())


def _solved(search: _Search, asked: tuple[Any, ...]) -> tuple[_Node, int, str | None]:
    node = search.solve(*asked)
    return node, search.n_nodes, search.stopped


def _solved_alone(search: _Search, asked: tuple[Any, ...]) -> tuple[_Node, int, str | None]:
    """The same in a process of its own, whose number of threads is its own as well."""
    with threadpool_limits(1):
        return _solved(search, asked)


class _Kept:
    """Bounds of what is left behind two premises, by the first of them."""

    def __init__(self, most: int, size: int, dtype: Any) -> None:
        self._most = most
        self._numbers: list[int] = []
        self._rest: list[np.ndarray] = []
        if most:
            self._distance = np.full(size, np.inf, dtype=dtype)
            self._nearest = np.zeros(size, dtype=np.int32)

    def add(self, number: int, node: _Node) -> None:
        """Remember what was found behind a premise."""
        if node.rest is None or len(self._numbers) >= self._most:
            return
        closer = node.cap < self._distance
        self._distance[closer] = node.cap[closer]
        self._nearest[closer] = len(self._numbers)
        self._numbers.append(number)
        self._rest.append(node.rest)

    def behind(self, number: int) -> np.ndarray | None:
        """Bounds of what is left behind a premise and each further one."""
        if not self._numbers:
            return None
        result: np.ndarray = self._rest[self._nearest[number]] - self._distance[number]
        # Two premises leave the same behind, whichever is the first.
        turned = [rest[number] for rest in self._rest]
        result[self._numbers] = np.maximum(result[self._numbers], turned)
        return result


def _useless(premises: _Premises) -> np.ndarray:
    """Premises that hold for no row or for all, or for the same rows as some of their tests."""
    n_rows = len(premises.table)
    held = premises.sums(np.arange(n_rows), np.ones(n_rows, dtype=premises.table.dtype))
    useless = (held == 0) | (held == n_rows)
    if premises.max_conditions == 1 or not premises.n_tests:
        return useless
    m = premises.n_tests
    pairs = held[: 2 * m * m].reshape(2, m, m)
    for begin, third, first in premises.blocks:
        size = m - first
        some = slice(begin, begin + 2 * size**2)
        both, one = held[some].reshape(2, size, size)
        yes, no = both.diagonal(), one.diagonal()
        below = np.tri(size, k=-1, dtype=bool)
        same = np.stack(
            [
                (both == np.where(below, no[:, None], yes[:, None]))
                | (both == np.where(below, no, yes)),
                (one == yes[:, None]) | (one == no),
            ]
        )
        single = np.arange(size)
        same[:, single, single] = bool(third)  # that is a pair
        if third:
            same |= held[some].reshape(same.shape) == pairs[:, first:, first:]
        useless[some] |= same.reshape(-1)
    return useless


def optimal_lists(
    X: Any,
    y: Any,
    *,
    loss: str = "errors",
    max_rules: int = 4,
    max_conditions: int = 2,
    cuts: Cuts | int | None = 8,
    classes: Sequence[Any] | None = None,
    sample_weight: Any = None,
    start: Sequence[RuleSet] = (),
    targets: Sequence[float] | None = None,
    feature_names: Sequence[str] | None = None,
    time_limit: float | None = None,
    max_nodes: int | None = None,
    memory_limit: float = 2**30,
    n_jobs: int | None = None,
) -> Frontier:
    r"""Find the fewest errors of decision lists of at most 1, 2, 3, ... rules.

    A list is read from the top: the first rule that holds predicts, and the last one always holds
    and counts. The premise of each other rule is a conjunction of at most `max_conditions` tests of
    a feature against a cut or a category; an interval with two bounds is two of them. Rules predict
    the class, or number, that is best for the rows they are left.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows; categories and missing values as they are.
    y : array-like of shape (n_rows,)
        Labels, or numbers where the loss is not ``"errors"``.
    loss : {"errors", "squared_error", "absolute_error"}, default="errors"
        What is summed over the rows. Absolute errors take far longer than the others.
    max_rules : int, default=4
        The largest size of the frontier, up to 10,000.
    max_conditions : {1, 2, 3}, default=2
        Most tests in a premise. With 3 time and memory grow with the third power of the tests.
    cuts : Cuts, int or None, default=8
        Where features are cut; a number is passed to :func:`candidate_cuts`, None cuts between any
        two neighboring values.
    classes : sequence, optional
        The labels in order; by default the sorted ones of y.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    start : sequence of RuleSet, default=()
        Rules to begin with. What they ask is replaced by what is nearest to it among the premises.
    targets : sequence of float, optional
        Lower bounds that are enough, for 1, 2, ... rules: no more is proven of lists of that size,
        unless their least loss is smaller. By default the least loss is looked for.
    feature_names : sequence of str, optional
        Names for the rules of an array.
    time_limit : float, optional
        Seconds after which the bounds found so far are returned. Each size but the last has half
        of the time that is left.
    max_nodes : int, optional
        The same with a number of nodes, so that the result does not depend on the machine.
    memory_limit : float, default=2**30
        Bytes that the bounds of premises may take. Where that is too little, only constants are
        compared, and the lower bounds of more rules are trivial.
    n_jobs : int, optional
        Processes. The result does not depend on it, unless the time is over; with `max_nodes` one
        works alone.

    Returns
    -------
    Frontier
        The bounds, and rules that have the upper ones. Interrupted from the keyboard, what was
        proven until then.

    Raises
    ------
    ValueError, TypeError
        If a parameter or the rows cannot be used.

    Notes
    -----
    Rows that no test tells apart are joined, which counts errors that no list can avoid. Let
    :math:`f_q(S)` be the least loss of q rules on the rows S. Then
    :math:`f_q(S) \leq f_q(T) + \sum_{i \in S \setminus T} c_i` and, for
    :math:`T \subseteq S`, :math:`f_q(T) \leq f_q(S)`, where :math:`c_i` is the most that row i
    can cost. So what was proven of the rows that one premise leaves behind bounds what all similar
    premises leave behind (Demirović et al., 2022, call it the similarity bound of trees); premises
    whose rows a better one contains, and other orders of the same premises, go the same way. First
    rules are tried by their bound, those of most rows first. The best list of two rules, and its
    bound for all others, comes from one product of the matrix of tests with itself.

    Bounds are exact where weights are whole numbers with a sum below 2**24; else they are rounded
    as floats are, and taken 1e-9 of the largest possible loss lower.

    References
    ----------
    E. Angelino, N. Larus-Stone, D. Alabi, M. Seltzer, C. Rudin: Learning certifiably optimal rule
    lists for categorical data. JMLR 18, 2018.

    E. Demirović et al.: MurTree: Optimal decision trees via dynamic programming and search. JMLR
    23, 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skescore.optimal import optimal_lists
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> frontier = optimal_lists(X, y, max_rules=4)
    >>> frontier.lower.tolist(), frontier.upper.tolist()
    ([100.0, 50.0, 7.0, 4.0], [100.0, 50.0, 7.0, 4.0])
    >>> print(frontier.rules[2])  # doctest: +NORMALIZE_WHITESPACE
    1. IF 2.45 < petal length (cm) ≤ 4.85 THEN 1   [49 rows, 94 % of this class]
    2. ELSE IF sepal length (cm) ≤ 5.95 AND petal length (cm) ≤ 4.05 THEN 0
       [50 rows, 100 % of this class]
    3. ELSE 2   [51 rows, 92 % of this class]
    """
    began = time.monotonic()
    check_choice("loss", loss, LOSSES)
    check_integer("max_rules", max_rules, 1, MOST_RULES)
    check_integer("max_conditions", max_conditions, 1, 3)
    check_number("time_limit", time_limit, 0, optional=True)
    check_integer("max_nodes", max_nodes, 1, optional=True)
    check_number("memory_limit", memory_limit, 0)
    enough = check_targets(targets, max_rules)
    if not (cuts is None or isinstance(cuts, Cuts)):
        cuts = check_integer("cuts", cuts, 1)
    given = _Rows(X, y, loss, classes, sample_weight, feature_names)
    space = cuts if isinstance(cuts, Cuts) else candidate_cuts(given.table, cuts)
    problem = _Problem(given, space, max_conditions)
    search = problem.search(max_rules, memory_limit)
    if search is not None:
        search.deadline = math.inf if time_limit is None else began + time_limit
        search.most_nodes = math.inf if max_nodes is None else max_nodes
        search.n_beside = 4 if max_nodes is None else 1
    # Products of small matrices gain nothing from threads.
    with threadpool_limits(1), parallel(n_jobs) as pool:
        if search is not None and max_rules > 3 and effective_n_jobs(n_jobs) > 1:
            search.pool = pool
        return problem.frontier(search, enough, start, began)


class _Rows:
    """Rows, what is to be predicted for them, and their weights."""

    def __init__(
        self, X: Any, y: Any, loss: str, classes: Any, sample_weight: Any, names: Any
    ) -> None:
        if names is None:
            names = getattr(X, "columns", None)
            names = [f"x{j}" for j in range(np.shape(X)[1])] if names is None else map(str, names)
        self.table = RowTable.of(X, list(names))
        n_rows = len(self.table)
        if n_rows == 0 or np.shape(y) != (n_rows,):
            raise ValueError(
                f"y must hold one value for each of the rows, at least one, got shape {np.shape(y)}"
                f" for {n_rows} rows."
            )
        ones = np.ones(n_rows) if sample_weight is None else sample_weight
        self.weights = row_weights(ones, n_rows)
        if not self.weights.any():
            raise ValueError("sample_weight must hold a positive number, got zeros only.")
        self.loss = loss
        self.classes: tuple[Any, ...] | None = None
        self.settings: dict[str, Any] = {"task": "regression"}
        if loss != "errors":
            self.y = finite_numbers("y", y)
            check_squares("y", self.y)
            return
        labels = whole_labels("y", y)
        found = np.unique(labels) if classes is None else np.asarray(classes)
        self.classes = tuple(map(python_value, found.tolist()))
        codes = {label: code for code, label in enumerate(self.classes)}
        try:
            self.y = np.array([codes[label] for label in labels.tolist()], dtype=np.intp)
        except KeyError as error:
            raise ValueError(
                f"classes must hold all labels of y, but lacks {error.args[0]!r}."
            ) from None
        self.settings = {"task": "classification", "classes": self.classes}


def _conclusion(given: _Rows, held: np.ndarray) -> tuple[Any, RuleStatistics, float]:
    """The best constant of some rows, what was seen there, and its loss."""
    y, weights = given.y[held], given.weights[held]
    total = float(weights.sum())
    if given.classes is not None:
        counts = np.bincount(y, weights, len(given.classes))
        k = int(counts.argmax())
        statistics = RuleStatistics(total, tuple(counts.tolist()))
        return given.classes[k], statistics, float(np.delete(counts, k).sum())
    mean = mean_of(y, weights)
    deviation = math.sqrt(np.average((y - mean) ** 2, weights=weights))
    statistics = RuleStatistics(total, None, mean, deviation)
    if given.loss == "squared_error":
        return mean, statistics, float((weights * (y - mean) ** 2).sum())
    order = np.argsort(y, kind="stable")
    place = int(np.searchsorted(np.cumsum(weights[order]), total / 2))
    median = float(y[order[min(place, len(y) - 1)]])
    return median, statistics, float((weights * np.abs(y - median)).sum())


def _shortened(rules: list[Rule]) -> list[Rule]:
    """Let the last rule always hold, and take those before it along that say the same."""
    result = list(rules)
    while len(result) > 1 and result[-1].output == result[-2].output:
        seen = [rule.statistics for rule in result[-2:]]
        result[-2:] = [Rule((), result[-1].output, _together(*seen))]
    last = result[-1]
    return [*result[:-1], Rule((), last.output, last.statistics)]


def _together(first: Any, second: Any) -> RuleStatistics | None:
    n_rows = first.n_rows + second.n_rows
    if first.class_counts is not None:
        pairs = zip(first.class_counts, second.class_counts, strict=True)
        return RuleStatistics(n_rows, tuple(a + b for a, b in pairs))
    share = first.n_rows / n_rows
    mean = share * first.mean + (1 - share) * second.mean
    squares = share * (first.standard_deviation**2 + (first.mean - mean) ** 2)
    squares += (1 - share) * (second.standard_deviation**2 + (second.mean - mean) ** 2)
    return RuleStatistics(n_rows, None, mean, math.sqrt(squares))


class _Problem:
    """A table's rows joined by what the tests say of them, and the search among its lists."""

    def __init__(self, given: _Rows, cuts: Cuts, max_conditions: int) -> None:
        self.given, self.cuts, self.max_conditions = given, cuts, max_conditions
        self.tests: Tests = cuts.tests(given.table)
        bits = np.unpackbits(
            self.tests.rows.astype("<u8").view(np.uint8), axis=1, bitorder="little"
        )[:, : self.tests.n_rows]
        weighed = np.flatnonzero(given.weights > 0)
        weights, y = given.weights[weighed], given.y[weighed]
        joined, group = np.unique(bits.T[weighed], axis=0, return_inverse=True)
        group = group.reshape(-1)
        self.group = np.full(len(given.weights), -1)
        self.group[weighed] = group
        if given.classes is not None:
            counts = np.zeros((len(joined), len(given.classes)))
            np.add.at(counts, (group, y.astype(np.intp)), weights)
            loss: Any = _Errors(counts)
        elif given.loss == "squared_error":
            loss = _Squared(y, weights, group, len(joined))
        else:
            loss = _Absolute(y, weights)
            joined, self.group[weighed] = bits.T[weighed], np.arange(len(weighed))
        self.loss, self.joined = loss, joined
        self.rows = np.arange(len(joined))

    def search(self, max_rules: int, memory_limit: float) -> _Search | None:
        """What searches the lists; None if the memory does not suffice."""
        n_rows, n_tests = self.joined.shape
        size = np.dtype(self.loss.dtype).itemsize
        vector = 2 * size * max(1, n_tests) ** self.max_conditions
        n_sums = len(self.given.classes or ())
        left = memory_limit - 4 * size * n_rows * n_tests - vector * (12 + (6 + n_sums) * max_rules)
        if left < 0:
            return None
        search = _Search(_Premises(self.joined, self.max_conditions, self.loss.dtype), self.loss)
        # At least one node at each level below the first and above the last two.
        search.most_kept = min(256, int(left / vector / max(1, max_rules - 3)))
        return search

    def frontier(
        self, search: _Search | None, enough: np.ndarray, start: Sequence[RuleSet], began: float
    ) -> Frontier:
        """Search the lists of at most 1, 2, ... rules, each with what is known of fewer."""
        loss, rows, max_rules = self.loss, self.rows, len(enough)
        single = loss.of(rows)
        lower, status = [single], ["optimal"]
        found: list[tuple[int, ...]] = [()]
        best: tuple[float, tuple[int, ...]] = (single, ())
        before: np.ndarray | None = None
        begun: list[tuple[int, ...]] = []
        for n_rules in range(2, max_rules + 1):
            proven, rest, ended = 0.0, None, "memory_limit"
            if search is not None and len(rows) and search.premises.n_tests:
                try:
                    if n_rules == 2:
                        begun = [self._translated(search, rules) for rules in start]
                        begun += search.grow(rows, max_rules)
                    if enough[n_rules - 1] > loss.constant:  # else nothing is asked
                        best = self._tried(search, n_rules, best, begun)
                    target = min(best[0], float(enough[n_rules - 1]) - loss.constant)
                    node = self._proven(search, n_rules, max_rules, target, lower[-1], before)
                    proven, rest = node.lower, node.rest
                    if node.upper < best[0] - loss.tolerance:
                        best = node.upper, node.premises
                except KeyboardInterrupt:
                    search.stopped = "interrupted"
                ended = search.stopped or "target"
                if ended == "node_limit" or (ended == "time_limit" and n_rules < max_rules):
                    search.stopped = None  # the next size has limits of its own
            elif search is not None:
                proven = best[0]  # there is nothing but a constant
            before = rest
            if proven >= best[0] - loss.tolerance:
                proven, ended = best[0], "optimal"
            elif proven >= enough[n_rules - 1] - loss.constant:
                ended = "target"
            lower.append(proven)
            found.append(best[1])
            status.append(ended)
        # What is proven of more rules holds for fewer as well.
        bounds = np.maximum.accumulate(np.array(lower)[::-1])[::-1]
        return self._made(bounds, found, status, time.monotonic() - began)

    def _tried(
        self,
        search: _Search,
        n_rules: int,
        best: tuple[float, tuple[int, ...]],
        begun: list[tuple[int, ...]],
    ) -> tuple[float, tuple[int, ...]]:
        """A good list of so many rules, from one with fewer and from what was given."""
        candidates = [search.insert(self.rows, best[1])[1]]
        candidates += [premises for premises in begun if len(premises) == n_rules - 1]
        for premises in candidates:
            improved = search.improve(self.rows, premises)
            if improved[0] < best[0] - self.loss.tolerance:
                best = improved
        return best

    def _proven(
        self,
        search: _Search,
        n_rules: int,
        max_rules: int,
        target: float,
        known: float,
        before: np.ndarray | None,
    ) -> _Node:
        """Search with a share of the time and nodes that are left."""
        deadline, most = search.deadline, search.most_nodes
        if n_rules < max_rules:
            now = time.monotonic()
            search.deadline = now + (deadline - now) / 2
            search.most_nodes = search.n_nodes + (most - search.n_nodes) // 2
        try:
            return search.solve(self.rows, n_rules, target, known=known, before=before)
        finally:
            search.deadline, search.most_nodes = deadline, most

    def _translated(self, search: _Search, rules: RuleSet) -> tuple[int, ...]:
        """The premises nearest to those of a rule set, but for those that always hold."""
        check_instance("start", rules, RuleSet)
        table = RowTable.of(self.given.table, rules.feature_names)
        weighed = self.group >= 0
        sizes = np.bincount(self.group[weighed], minlength=len(self.rows))
        result = []
        for rule in rules:
            if rule.conditions:
                held = np.ones(len(table), dtype=bool)
                for condition in rule.conditions:
                    held &= table.holds(condition)
                counts = np.bincount(self.group[weighed & held], minlength=len(self.rows))
                result.append(search.nearest(self.rows, 2 * counts >= sizes))
        return tuple(result)

    def _conditions(self, number: int, search: _Premises) -> tuple[Condition, ...]:
        return tuple(
            self.tests.conditions[test] if side else self.tests.negations[test]
            for test, side in search.sides(number)
        )

    def _made(
        self,
        bounds: np.ndarray,
        found: list[tuple[int, ...]],
        status: list[str],
        seconds: float,
    ) -> Frontier:
        premises = _Premises(self.joined, self.max_conditions, self.loss.dtype)
        made = [self._rules(premises, numbers) for numbers in found]
        upper = np.minimum.accumulate([loss for _, loss in made])
        lower = bounds + self.loss.constant
        if not self.loss.exact:
            lower = np.maximum(0.0, lower - 10 * self.loss.tolerance)
        proven = np.array([one == "optimal" for one in status])
        lower = np.where(proven, upper, np.minimum(lower, upper))
        lower = np.maximum.accumulate(lower[::-1])[::-1]
        status = [
            "optimal" if low == high else one
            for low, high, one in zip(lower, upper, status, strict=True)
        ]
        given = self.given
        space = {
            "kind": "list",
            "max_conditions": self.max_conditions,
            "default_counts": True,
            "cuts": self.cuts.to_json(),
            "n_tests": len(self.tests),
            "n_rows": len(given.weights),
            "classes": None if given.classes is None else list(given.classes),
        }
        return Frontier(
            "list",
            given.loss,
            tuple(range(1, len(made) + 1)),
            lower,
            upper,
            tuple(rules for rules, _ in made),
            float(given.weights.sum()),
            space,
            tuple(status),
            seconds,
        )

    def _rules(self, premises: _Premises, numbers: tuple[int, ...]) -> tuple[RuleSet, float]:
        """A list as a rule set, without rules that no row is left to, and its loss."""
        given = self.given
        left = self.group >= 0
        rules: list[Rule] = []
        total = 0.0
        for number in (*numbers, None):
            held = left.copy()
            if number is not None:
                held[left] = premises.holds(number, self.group[left])
            left &= ~held
            if held.any():
                output, statistics, loss = _conclusion(given, held)
                conditions = () if number is None else self._conditions(number, premises)
                rules.append(Rule(conditions, output, statistics))
                total += loss
        return RuleSet(_shortened(rules), given.table.names, **given.settings), total
