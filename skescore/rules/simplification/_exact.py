"""Fewer and shorter rules that answer alike.

Without rows, no answer changes on the whole domain: rules that others answer for go, touching boxes
of one output are joined, and bounds go behind which nothing is left to decide. With rows, single
steps are taken as long as the answers on these rows stay within a tolerance.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore.rules._arrays import BoxTable
from skescore.rules._columns import Table
from skescore.rules._domain import Domain
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules.simplification._merging import (
    Conditions,
    all_implied,
    combined,
    exclude,
    merge_boxes,
    merit_of,
    ranks_of,
    unite_values,
    without_implied,
)
from skescore.rules.simplification._on_rows import RuleRows, Step

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


# --- which boxes answer for a box: set arithmetic without rounding -------------------------------
# The faces of all boxes cut every feature's axis into a few pieces, and a box becomes a range of
# pieces per feature: whole numbers, half-open, the same whether faces are open or closed. What
# holds for the pieces holds for every floating-point number.

#: Steps of subtraction that one simplification, and one question in it, may take.
_STEPS, _STEPS_PER_QUESTION = 100_000, 500
#: Relative rounding error of a sum of cell counts that is put up with.
_ROUNDING = 1e-9


@dataclass(slots=True)
class CellBoxes:
    """Boxes as ranges of pieces, ``low <= piece < high``.

    Parameters
    ----------
    low, high : ndarray of int, shape (n_boxes, n_features)
        The ranges; an empty one (``low >= high``) marks a box without any point.
    last : ndarray of int, shape (n_features,)
        End of the pieces that hold numbers.
    end : ndarray of int, shape (n_features,)
        End of all pieces: without a domain there is one more, for the missing value, which only a
        box that is free on both sides holds.
    """

    low: np.ndarray
    high: np.ndarray
    last: np.ndarray
    end: np.ndarray


def cell_boxes(boxes: BoxTable, domain: Domain | None) -> CellBoxes:
    """Cut the axes at the faces of boxes.

    Parameters
    ----------
    boxes : BoxTable
        The boxes.
    domain : Domain, optional
        The only points that count; without it all do, missing values among them. A categorical
        feature has no border.

    Returns
    -------
    CellBoxes
        The boxes within the domain.
    """
    start, stop = boxes.entry_cuts()
    free_below, free_above = boxes.lower == -np.inf, boxes.upper == np.inf
    shape = boxes.lower.shape
    low, high = np.zeros(shape, dtype=np.int64), np.ones(shape, dtype=np.int64)
    last, end = np.ones(shape[1], dtype=np.int64), np.ones(shape[1], dtype=np.int64)
    categorical = [] if domain is None else [feature for feature, _ in domain.categories]
    for j in np.flatnonzero(boxes.bounded.any(axis=0)).tolist():
        if domain is None or j in categorical:
            cuts = np.unique(
                np.concatenate([start[~free_below[:, j], j], stop[~free_above[:, j], j]])
            )
            last[j], end[j] = len(cuts) + 1, len(cuts) + 2
            low[:, j] = np.searchsorted(cuts, start[:, j], side="right")
            high[:, j] = np.searchsorted(cuts, stop[:, j], side="right")
            high[free_above[:, j], j] = last[j]
            high[free_above[:, j] & free_below[:, j], j] = end[j]
            continue
        first = domain.lower[j]
        with np.errstate(over="ignore"):
            after = float(np.nextafter(domain.upper[j], np.inf))
        begins = np.maximum(start[:, j], first)
        stops = np.minimum(np.where(free_above[:, j], np.inf, stop[:, j]), after)
        empty = begins >= stops
        cuts = np.unique(np.concatenate([[first, after], begins[~empty], stops[~empty]]))
        last[j] = end[j] = len(cuts) - 1
        low[:, j] = np.searchsorted(cuts, begins)
        high[:, j] = np.where(empty, low[:, j], np.searchsorted(cuts, stops))
    return CellBoxes(low, high, last, end)


def slabs(
    low: np.ndarray, high: np.ndarray, cut_low: np.ndarray, cut_high: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Split what lies outside of a cut into disjoint boxes; the cut must meet the box."""
    parts = []
    low, high = low.copy(), high.copy()
    for j in np.flatnonzero((low < cut_low) | (high > cut_high)):
        if low[j] < cut_low[j]:
            part_high = high.copy()
            part_high[j] = cut_low[j]
            parts.append((low.copy(), part_high))
            low[j] = cut_low[j]
        if high[j] > cut_high[j]:
            part_low = low.copy()
            part_low[j] = cut_high[j]
            parts.append((part_low, high.copy()))
            high[j] = cut_high[j]
    return parts


class Budget:
    """Steps left: where none are, a question counts as answered by no."""

    def __init__(self, total: int, per_question: int) -> None:
        self.total = total
        self.per_question = per_question

    def asked(self) -> int:
        """Steps that the next question may take."""
        return min(self.total, self.per_question)


def answering(
    low: np.ndarray,
    high: np.ndarray,
    boxes_low: np.ndarray,
    boxes_high: np.ndarray,
    forbidden: np.ndarray,
    budget: Budget,
) -> list[int] | None:
    """Which boxes answer for a box, where the first one that holds a point does.

    Parameters
    ----------
    low, high : ndarray of int, shape (n_features,)
        The box in question, not empty.
    boxes_low, boxes_high : ndarray of int, shape (n_boxes, n_features)
        The boxes that may answer, in order.
    forbidden : ndarray of bool, shape (n_boxes,)
        The boxes that must not.
    budget : Budget
        Steps to spend.

    Returns
    -------
    list of int or None
        The boxes that answer some of its points, in order; None if some point has no answer or one
        that is forbidden, or if the steps did not suffice to tell.
    """
    met_low, met_high = np.maximum(boxes_low, low), np.minimum(boxes_high, high)
    # All their cells together are too few: most questions end here.
    cells = np.prod((met_high - met_low).astype(float), axis=1).sum()
    if cells < np.prod((high - low).astype(float)) * (1 - _ROUNDING):
        return None
    used: set[int] = set()
    left = budget.asked()
    stack = [(low, high)]
    while stack:
        if left == 0:
            return None
        left -= 1
        budget.total -= 1
        low, high = stack.pop()
        meets = np.flatnonzero(((boxes_low < high) & (boxes_high > low)).all(axis=1))
        if len(meets) == 0 or forbidden[meets[0]]:
            return None
        first = int(meets[0])
        used.add(first)
        stack += slabs(low, high, boxes_low[first], boxes_high[first])
    return sorted(used)


class RuleTable:
    """Rules in the order of the set, with the cells of their boxes.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    domain : Domain, optional
        The points whose answers must not change; None means all, missing values included.

    Attributes
    ----------
    low, high : ndarray of int, shape (n_rules, n_features)
        The boxes in cells; see :class:`skescore.rules.simplification._exact.CellBoxes`.
    alive : ndarray of bool, shape (n_rules,)
        Rules that are not struck out.
    frozen : ndarray of bool, shape (n_rules,)
        Rules that are left as they stand and meet no other.
    rank : ndarray of int, shape (n_rules,)
        Place of every rule in the order in which they answer.
    by_nearest : bool
        Whether boxes matter outside of themselves, as the nearest one answers there.
    """

    def __init__(self, ruleset: RuleSet, domain: Domain | None) -> None:
        self.ruleset = ruleset
        boxes = ruleset.boxes
        self.lower, self.upper = boxes.lower.copy(), boxes.upper.copy()
        self.lower_closed, self.upper_closed = boxes.lower_closed.copy(), boxes.upper_closed.copy()
        cells = cell_boxes(boxes, domain)
        self.low, self.high, self.last, self.end = cells.low, cells.high, cells.last, cells.end
        codes: dict[Any, int] = {}
        self.code = np.array(
            [codes.setdefault(rule.output, len(codes)) for rule in ruleset.rules], dtype=np.intp
        )
        self.others: list[Conditions] = [without_implied(rule.others) for rule in ruleset.rules]
        self.statistics: list[RuleStatistics | None] = [r.statistics for r in ruleset.rules]
        self.alive = np.ones(len(ruleset), dtype=bool)
        self.by_priority = not (ruleset.ordered or ruleset.disjoint)
        merit = [self._merit(rule, seen) for rule, seen in enumerate(self.statistics)]
        self.merit = np.array(merit).reshape(-1, 2)
        self.rank = ranks_of(self.merit, self.by_priority)
        self.budget = Budget(_STEPS, _STEPS_PER_QUESTION)
        empty = np.asarray((self.low >= self.high).any(axis=1))
        empty |= np.array([exclude(others, others) for others in self.others], dtype=bool)
        self.frozen = empty & self._touching_constants(domain)
        self.by_nearest = (
            ruleset.fallback is not None
            and ruleset.fallback.policy == "nearest"
            and not self._covers_everything()
        )
        if self.by_nearest:
            self.frozen = empty
        self.alive[empty & ~self.frozen] = False
        self.low[empty] = self.high[empty] = 0  # such rules meet nothing
        if domain is not None:
            self._free_borders(domain)

    def _touching_constants(self, domain: Domain | None) -> np.ndarray:
        """Rules that a measure of volume may count though they miss a constant by an open face."""
        if domain is None:
            return np.zeros(len(self.alive), dtype=bool)
        lower, upper = np.asarray(domain.lower), np.asarray(domain.upper)
        reached = (self.lower <= upper) & (lower <= self.upper)
        missed = (self.low >= self.high) & (lower == upper)
        return np.asarray(missed.any(axis=1) & reached.all(axis=1))

    def _covers_everything(self) -> bool:
        pure = np.array([not others for others in self.others], dtype=bool)
        where = np.flatnonzero(pure & (self.low < self.high).all(axis=1))
        none = np.zeros(len(where), dtype=bool)
        whole = np.zeros(len(self.end), dtype=self.end.dtype), self.end
        found = answering(*whole, self.low[where], self.high[where], none, self.budget)
        return found is not None

    def _free_borders(self, domain: Domain) -> None:
        """Take away the bounds that the domain sets as well."""
        ours = (self.alive & ~self.frozen)[:, None]
        self.lower[ours & (self.low == 0)] = -np.inf
        self.upper[ours & (self.high == self.last)] = np.inf

    # --- order --------------------------------------------------------------------------------

    def _merit(self, rule: int, seen: RuleStatistics | None) -> tuple[float, float]:
        old = self.ruleset.rules[rule]
        return merit_of(Rule((), old.output, seen), self.ruleset._output_index(old))

    def ranks_after(self, kept: int, lost: int) -> np.ndarray:
        """What :attr:`rank` would be if a rule took over another one's rows."""
        if not self.by_priority:
            return self.rank
        merit = self.merit.copy()
        merit[kept] = self._merit(kept, combined(self.statistics[kept], self.statistics[lost]))
        return ranks_of(merit, True)

    # --- questions ----------------------------------------------------------------------------

    @property
    def open(self) -> np.ndarray:
        """Indices of the rules that may change, in the order in which they answer."""
        where = np.flatnonzero(self.alive & ~self.frozen)
        return where[np.argsort(self.rank[where])]

    def meeting(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Indices of the rules whose boxes meet a box, in the order in which they answer."""
        meets = self.alive & ((self.low < high) & (self.high > low)).all(axis=1)
        where = np.flatnonzero(meets)
        return where[np.argsort(self.rank[where])]

    def answered_before(
        self, low: np.ndarray, high: np.ndarray, rank: int, given: Conditions, leave_out: int
    ) -> bool:
        """Whether rules before a rank surely answer a box, where the given conditions hold."""
        where = [
            m
            for m in self.meeting(low, high).tolist()
            if self.rank[m] < rank and m != leave_out and all_implied(given, self.others[m])
        ]
        none = np.zeros(len(where), dtype=bool)
        return (
            answering(low, high, self.low[where], self.high[where], none, self.budget) is not None
        )

    # --- changes ------------------------------------------------------------------------------

    def strike(self, rule: int, in_favour_of: int | None = None) -> None:
        """Take a rule out, and let another one have its rows."""
        self.alive[rule] = False
        self.low[rule] = self.high[rule] = 0
        if in_favour_of is not None:
            seen = combined(self.statistics[in_favour_of], self.statistics[rule])
            self.statistics[in_favour_of] = seen

    def join(self, kept: int, lost: int) -> None:
        """Let a rule, widened already, stand for another one as well."""
        self.strike(lost, in_favour_of=kept)
        self.merit[kept] = self._merit(kept, self.statistics[kept])
        self.rank = ranks_of(self.merit, self.by_priority)

    def free(self, rule: int, feature: int, below: bool) -> None:
        """Take a bound away."""
        low, high = self.freed(rule, feature, below)
        self.low[rule], self.high[rule] = low, high
        (self.lower if below else self.upper)[rule, feature] = -np.inf if below else np.inf

    def freed(self, rule: int, feature: int, below: bool) -> tuple[np.ndarray, np.ndarray]:
        """The box without one of its bounds."""
        low, high = self.low[rule].copy(), self.high[rule].copy()
        if below:
            low[feature] = 0
        else:
            high[feature] = self.last[feature]
        if low[feature] == 0 and high[feature] >= self.last[feature]:
            high[feature] = self.end[feature]
        return low, high

    def widen(self, rule: int, feature: int, other: int) -> None:
        """Take over the farther bounds of another rule along a feature."""
        if self.low[other, feature] < self.low[rule, feature]:
            for bounds in (self.low, self.lower, self.lower_closed):
                bounds[rule, feature] = bounds[other, feature]
        if self.high[other, feature] > self.high[rule, feature]:
            for bounds in (self.high, self.upper, self.upper_closed):
                bounds[rule, feature] = bounds[other, feature]

    # --- the outcome --------------------------------------------------------------------------

    def result(self) -> RuleSet:
        """The rules that are left; the very rule set if nothing has changed."""
        boxes = BoxTable(self.lower, self.upper, self.lower_closed, self.upper_closed)
        rules = []
        for i in np.flatnonzero(self.alive).tolist():
            old = self.ruleset.rules[i]
            conditions = (*boxes.intervals(i), *self.others[i])
            made = Rule(conditions, old.output, self.statistics[i])
            rules.append(old if made == old else made)
        if tuple(rules) == self.ruleset.rules:
            return self.ruleset
        return self.ruleset.replace(rules=rules)


# --- Fewer and shorter rules that answer alike ---------------------------------------------------

#: Pairs of rules that are looked at for a merge at a time, nearest ones first.
_PAIRS = 500


def simplified(ruleset: RuleSet, X: Any = None, tolerance: float = 0.0) -> RuleSet:
    """Make rules fewer and shorter without changing answers, or hardly.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        The rows whose answers count. By default those of the whole domain do; without a domain
        those of all rows whatever, missing values included.
    tolerance : float, default=0.0
        Share of the rows of X whose answers may change, from 0 to less than 1. In a regression
        1 - R² against the answers of the original rules.

    Returns
    -------
    RuleSet
        The rules, in their order; the very rule set if nothing can be left out.

    Raises
    ------
    TypeError
        If `tolerance` is no number.
    ValueError
        If `tolerance` is out of range or without rows, or X does not fit the rules.

    Notes
    -----
    Without X, a point of the domain has the same answer before and after, by a rule or by the
    fallback. Proven, not sampled, these steps are taken until none is left:

    - a rule goes that holds nowhere, or for which earlier rules answer, or later ones alike; if a
      single later rule of an ordered list does, it gets the rows and class counts;
    - two rules of one output become one where their union is a box, or where they differ in the
      values of one categorical feature, unless a rule of another output that answers between them
      sees a difference. Rows and class counts add up, mean and spread follow by moments. In
      unordered sets this changes who is purest, so rules stay apart where that could matter;
    - a bound goes that the domain sets as well: the rule then also answers beyond the training
      range, and rows without a value if no bound is left;
    - a bound of an ordered list goes behind which earlier rules answer all that there is.

    Questions that take too many steps of subtracting boxes are answered by "no", and the rule
    stays as it is. Conditions that are not intervals are kept as they are; a categorical feature
    may have values that nobody has listed. Where the nearest rule answers uncovered points, only
    bounds at the border go and neighbours in the list are joined.

    With X, the answers elsewhere are free. Single steps are taken, those that cost nothing first,
    then those that save most rules and comparisons for what they cost: a rule goes, a condition
    goes, two rules become the smallest box around both (in a regression also rules of different
    numbers, which get their mean answer). A row that loses its rule, or gets one, has changed,
    whatever the fallback says; in a regression it counts at least as much as a row whose answer
    is off by one standard deviation. Rules declared disjoint remain so.

    With X, a rule that then answers other rows of X than before tells their number; what was seen
    there is unknown, so its class counts, mean and spread go. Other rules keep their statistics,
    and so do all in an unordered set whose rules may overlap: there they decide who answers.

    Examples
    --------
    >>> from skescore.rules import Domain, Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [
    ...         Rule([Interval(0, upper=3)], "low"),
    ...         Rule([Interval(0, 3, 5)], "low"),
    ...         Rule([Interval(0, 5, 9)], "high"),
    ...     ],
    ...     ["x"],
    ...     task="classification",
    ...     domain=Domain((0,), (9,)),
    ... )
    >>> print(simplified(rules))
    1. IF x ≤ 5 THEN low
    2. ELSE high
    """
    if not isinstance(tolerance, Real) or isinstance(tolerance, bool):
        raise TypeError(f"tolerance must be a number from 0 to less than 1, got {tolerance!r}.")
    if not 0 <= tolerance < 1:
        raise ValueError(
            f"tolerance must be at least 0 and less than 1, got {tolerance!r}. It is a share of "
            "the rows of X: 0.05 lets 5 % of the answers change."
        )
    if X is None:
        if tolerance > 0:
            raise ValueError(
                f"tolerance={tolerance!r} is a share of rows, so it needs them: pass X, or "
                "tolerance=0 to change no answer at all."
            )
        return _without_change(ruleset, ruleset.domain)
    table = Table(X, ruleset.feature_names)
    if len(table) == 0:
        raise ValueError("X must hold at least one row to compare answers on, got 0 rows.")
    return _within_tolerance(ruleset, table, float(tolerance))


# ---------------------------------------------------------------- the same answers everywhere


def _without_change(ruleset: RuleSet, domain: Domain | None) -> RuleSet:
    if len(ruleset) == 0:
        return ruleset
    table = RuleTable(ruleset, domain)
    changed = True
    while changed:
        changed = _strike_needless(table)
        changed |= merge_boxes(table)
        changed |= unite_values(table)
        # Shorter rules last: boxes that are widened one by one may no longer fit together.
        if not changed and ruleset.ordered and not ruleset.disjoint:
            changed = _drop_implied(table)
    return table.result()


def _strike_needless(table: RuleTable) -> bool:
    """Take out the rules that others answer for: earlier ones always, later ones alike."""
    if table.by_nearest:
        return False
    before = int(table.alive.sum())
    for rule in table.open.tolist():
        if table.answered_before(
            table.low[rule], table.high[rule], table.rank[rule], table.others[rule], rule
        ):
            table.strike(rule)
    # From the end, so that a row of rules hands its statistics down to the last one.
    for rule in table.open[::-1].tolist():
        _strike_if_answered_alike(table, rule)
    return int(table.alive.sum()) < before


def _strike_if_answered_alike(table: RuleTable, rule: int) -> None:
    low, high, given = table.low[rule], table.high[rule], table.others[rule]
    where, forbidden = [], []
    for m in table.meeting(low, high).tolist():
        later, differs = table.rank[m] > table.rank[rule], table.code[m] != table.code[rule]
        known = all_implied(given, table.others[m])
        if m == rule:
            continue
        if later and differs:
            if not exclude(given, table.others[m]):
                where.append(m)
                forbidden.append(True)
        elif known:
            where.append(m)
            forbidden.append(False)
    found = answering(
        low, high, table.low[where], table.high[where], np.array(forbidden, bool), table.budget
    )
    if found is None:
        return
    heirs = [where[i] for i in found if table.rank[where[i]] > table.rank[rule]]
    one = len(heirs) == 1 and not table.by_priority
    table.strike(rule, in_favour_of=heirs[0] if one else None)


def _drop_implied(table: RuleTable) -> bool:
    """Take away the bounds of an ordered list behind which earlier rules answer everything."""
    if table.by_nearest:
        return False
    changed = False
    for rule in table.open.tolist():
        bounded = (table.lower[rule] > -np.inf) | (table.upper[rule] < np.inf)
        for feature in np.flatnonzero(bounded).tolist():
            for below, bounds in ((True, table.lower), (False, table.upper)):
                if np.isinf(bounds[rule, feature]):
                    continue
                wide = table.freed(rule, feature, below)
                more = slabs(*wide, table.low[rule], table.high[rule])
                given = table.others[rule]
                if all(
                    table.answered_before(*slab, table.rank[rule], given, rule) for slab in more
                ):
                    table.free(rule, feature, below)
                    changed = True
    return changed


# ---------------------------------------------------------------- nearly the same answers on rows


def _within_tolerance(ruleset: RuleSet, table: Table, tolerance: float) -> RuleSet:
    # Rows may lie anywhere, so nothing is taken for granted of the domain here.
    rows = RuleRows(_shortened(ruleset, table), table)
    first = rows.answer.copy()
    account = _Account(rows, tolerance)
    going_on = True
    while going_on:
        _take_what_is_free(rows, account)
        going_on = tolerance > 0 and _spend(rows, account)
    due = np.append(rows.heir, -1)[first]
    moved = due != rows.answer
    stale = {*due[moved].tolist(), *rows.answer[moved].tolist()}
    result = _recounted(
        rows.result(),
        np.append(np.cumsum(rows.alive) - 1, -1)[rows.answer],
        [number for number, place in enumerate(rows.places) if place in stale],
    )
    return _shortened(result, table)


def _shortened(ruleset: RuleSet, table: Table) -> RuleSet:
    """The same answers everywhere, with statistics that fit the rows."""
    short = _without_change(ruleset, None)
    if short is ruleset:
        return short
    answered, then = ruleset.assign(table), short.assign(table)
    # Statistics that were not added up are still those of the rules that they came from.
    known: dict[int, list[int]] = {}
    for i, rule in enumerate(ruleset.rules):
        known.setdefault(id(rule.statistics), []).append(i)
    stale = []
    for i, rule in enumerate(short.rules):
        own, givers = then == i, known.get(id(rule.statistics), [])
        if givers and not any(np.array_equal(own, answered == giver) for giver in givers):
            stale.append(i)
    return _recounted(short, then, stale)


def _recounted(ruleset: RuleSet, answer: np.ndarray, stale: list[int]) -> RuleSet:
    """Give some rules the number of rows that they answer, and nothing else that was seen.

    Where statistics decide who answers they stay as they are.
    """
    if not stale or not (ruleset.ordered or ruleset.disjoint):
        return ruleset
    rules = list(ruleset.rules)
    n_rows = np.bincount(answer[answer >= 0], minlength=len(rules)).tolist()
    for i in stale:
        if rules[i].statistics is not None:
            rules[i] = replace(rules[i], statistics=RuleStatistics(n_rows[i]))
    return ruleset.replace(rules=rules)


class _Account:
    """What the steps taken have cost: changed answers, in units of one row.

    A changed label costs 1, and so does a row that loses its rule or gets one. A changed number
    costs its square over the mean square deviation of the answers before, so that the mean over
    all rows is 1 - R²; if the row loses its rule or gets one, it costs at least 1.
    """

    def __init__(self, rows: RuleRows, tolerance: float) -> None:
        self.rows = rows
        self.tolerance = tolerance
        self.original = rows.values.copy()
        self.costs = np.zeros(len(self.original))
        fallback, is_numeric = rows.ruleset.fallback, rows.ruleset.task == "regression"
        self.by_nearest = fallback is not None and fallback.policy == "nearest"
        if self.by_nearest:
            self.predicted = rows.ruleset.predict(rows.table)
        #: What rows without a rule are told; NaN where that is nothing, or for the nearest rule.
        self.instead = math.nan
        if is_numeric and fallback is not None and fallback.policy == "default":
            self.instead = float(fallback.output)
        if is_numeric:
            self.before = self.predicted if self.by_nearest else self._told(self.original)
            self.scale, self.mean_square = self._mean_square()

    def _told(self, values: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(values), self.instead, values)

    def _mean_square(self) -> tuple[float, float]:
        """A scale that keeps squares from overflowing, and the mean square in its units."""
        known = self.before[np.isfinite(self.before)]
        if not len(known):
            return 1.0, 0.0
        deviation = known - known.mean()
        scale = float(np.abs(deviation).max()) or 1.0
        # Rows that are told nothing add nothing, as they do to the costs.
        return scale, float(np.square(deviation / scale).sum() / len(self.before))

    def _costs_of(
        self, rows: np.ndarray, new: np.ndarray, told: np.ndarray | None = None
    ) -> np.ndarray:
        """Costs of new values on some rows; `told` are the answers, by the nearest rule as well."""
        old = self.original[rows]
        lacks, lacked = np.isnan(new), np.isnan(old)
        turned = lacks != lacked
        if self.rows.ruleset.task == "classification":
            return np.where(lacks | lacked, turned, new != old).astype(float)
        told = self._told(new) if told is None else told
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            square = np.square((told - self.before[rows]) / self.scale)
            same = (square == 0) | (told == self.before[rows])  # both infinite
            numbers = np.where(same, 0.0, square / self.mean_square)
        numbers = np.where(lacks & lacked, 0.0, numbers)
        return np.where(turned, np.fmax(numbers, 1.0), numbers)

    def price(self, step: Step) -> float:
        """What a step costs; negative if it brings answers back."""
        rows, answer = self.rows.effect(step)
        new = self.rows.new_values(step, rows, answer)
        return float(self._costs_of(rows, new).sum() - self.costs[rows].sum())

    def allows(self, price: float) -> bool:
        """Whether a price may still be paid."""
        return bool((self.costs.sum() + price) / len(self.costs) <= self.tolerance)

    def take(self, step: Step) -> bool:
        """Take a step, unless the nearest rules of rows without one stand in its way."""
        rows, answer = self.rows.effect(step)
        values = self.rows.values.copy()
        values[rows] = self.rows.new_values(step, rows, answer)
        costs = self._costs_by_nearest(step, values) if self.by_nearest else None
        if costs is not None:
            if costs.mean() > self.tolerance:
                return False
            self.costs = costs
        else:
            self.costs[rows] = self._costs_of(rows, values[rows])
        self.rows.take(step)
        return True

    def _costs_by_nearest(self, step: Step, values: np.ndarray) -> np.ndarray | None:
        """What all rows cost after a step, as the nearest rules answer then; None if as priced."""
        alone = np.isnan(self.original)
        is_label = self.rows.ruleset.task == "classification"
        if not (alone if is_label else alone | np.isnan(values)).any():
            return None
        told = self.rows.result(step).predict(self.rows.table)
        if not (told[alone] == self.predicted[alone]).all():
            return np.full(len(values), np.inf)
        return self._costs_of(np.arange(len(values)), values, None if is_label else told)


def _take_what_is_free(rows: RuleRows, account: _Account) -> None:
    progress = True
    while progress:
        progress = False
        for place in rows.places:
            if len(rows.places) > 1:
                progress |= _take_if_free(account, rows.removal(place))
        for step in rows.merges(_PAIRS, alike=True):
            fits = rows.is_current(step) and rows.allowed([step])
            progress |= bool(fits) and _take_if_free(account, step)
        for place in rows.places:
            shortened = True
            while shortened:
                steps = sorted(rows.drops([place]), key=lambda step: -step.saved)
                shortened = any(_take_if_free(account, step) for step in steps)
                progress |= shortened


def _take_if_free(account: _Account, step: Step) -> bool:
    return account.price(step) <= 0 and account.take(step)


def _spend(rows: RuleRows, account: _Account) -> bool:
    """Take the steps that save most for what they cost, as long as they can be paid."""
    queue: list[tuple[float, int, Step]] = []
    number = 0

    def offer(steps: list[Step]) -> None:
        nonlocal number
        for step in steps:
            price = account.price(step)
            if account.allows(price):
                number += 1
                worth = math.inf if price <= 0 else step.saved / price
                heapq.heappush(queue, (-worth, number, step))

    offer([rows.removal(place) for place in rows.places])
    offer(rows.merges(_PAIRS, alike=rows.ruleset.task == "classification"))
    offer(rows.drops(rows.places))
    taken = False
    while queue:
        promised, at, step = heapq.heappop(queue)
        if not rows.is_current(step) or (step.new is None and len(rows.places) == 1):
            continue
        if step.new is not None and not rows.allowed([step]):
            continue
        price = account.price(step)
        worth = -math.inf if price <= 0 else -step.saved / price
        if not account.allows(price):
            continue
        if worth > promised and queue and worth > queue[0][0]:
            heapq.heappush(queue, (worth, at, step))  # earlier steps have made it dearer
        elif account.take(step):
            taken = True
            if step.kept is not None:
                offer([rows.removal(step.kept), *rows.drops([step.kept])])
    return taken
