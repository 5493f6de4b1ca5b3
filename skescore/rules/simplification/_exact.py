"""Fewer and shorter rules that answer alike.

Without rows, no answer changes on the whole domain: rules that others answer for go, touching boxes
of one output are joined, and bounds go behind which nothing is left to decide. With rows, single
steps are taken as long as the answers on these rows stay within a tolerance.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore.rules._columns import Table
from skescore.rules._domain import Domain
from skescore.rules._rule import RuleStatistics
from skescore.rules.simplification._merging import (
    all_implied,
    exclude,
    merge_boxes,
    unite_values,
)
from skescore.rules.simplification._on_rows import RuleRows, Step
from skescore.rules.simplification._subtraction import RuleTable, answering, slabs

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

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
